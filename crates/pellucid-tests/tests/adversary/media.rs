//! Backup media of the history, and cases in which they are exchanged.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pellucid::certificate::CertificateRequest;
use pellucid::hash::Sha256;
use pellucid::Result as Outcome;
use pellucid_backup::job::{self, Existing, Files, Job, Rules};
use pellucid_backup::restore::{restore_pages, verify_checksums, OpenSet, PageTarget};
use pellucid_host::DatabaseError;
use pellucid_tests::random::Random;
use pellucid_vfs::seal_request::{Credentials, Request};

use crate::act;
use crate::oracle::{Class, Content, Verdict};
use crate::programs;
use crate::rows;
use crate::storage::write_private;
use crate::world::{open, Name, World, PAGE};

/// Bytes of a media header, and where its flags and its sum are (docs/format.md, "Media header").
const HEADER: usize = 4096;
const FLAGS_AT: usize = 26;
const SUM_AT: usize = 4064;

/// Media of the history: their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// Two sets of one database, the second appended.
    Appended,
    /// Two stripes, replaced by a later backup.
    Striped,
    /// A set of another database.
    Other,
}

impl Media {
    const ALL: [Self; 3] = [Self::Appended, Self::Striped, Self::Other];

    /// The names of its files.
    pub fn files(self) -> &'static [&'static str] {
        match self {
            Self::Appended => &["log.bak"],
            Self::Striped => &["roll-1.bak", "roll-2.bak"],
            Self::Other => &["off.bak"],
        }
    }

    fn of(self) -> Name {
        match self {
            Self::Appended => Name::Log,
            Self::Striped => Name::Roll,
            Self::Other => Name::Off,
        }
    }
}

/// A certificate for tests.
pub fn request() -> CertificateRequest {
    CertificateRequest { rsa_bits: 2048, ..CertificateRequest::new("second", 300) }
}

fn back_up(folder: &Path, database: &Path, names: &[&str], existing: Existing) {
    try_back_up(folder, database, names, existing).unwrap();
}

fn try_back_up(
    folder: &Path,
    database: &Path,
    names: &[&str],
    existing: Existing,
) -> Result<(), job::JobError> {
    let families = names.iter().map(|name| folder.join(name)).collect();
    let files = Files { families, mirrors: Vec::new() };
    let rules = Rules { existing, skip: true, parity: false };
    let job = Job { workers: 1, rules, ..Job::new(database.to_owned(), files) };
    job::back_up(&job, &mut |_| ()).map(|_| ())
}

/// Backs a database of the history up.
pub fn make(world: &World, media: Media, existing: Existing) {
    let folder = world.folder("live");
    back_up(&folder, &world.path(media.of().file()), media.files(), existing);
}

/// Backs the plain database up, in clear.
pub fn plain(world: &World) {
    back_up(&world.folder("live"), &world.path("plain.db"), &["plain.bak"], Existing::Refuse);
}

/// What the process of the other instance makes: its own backup.
pub fn foreign(place: &Path) {
    let live = place.join("live");
    back_up(&live, &live.join("foreign.db"), &["foreign.bak"], Existing::Refuse);
}

/// What somebody without a key makes of the media: sets in clear of a database under the same name.
pub fn forge(place: &Path) {
    let evil = place.join("evil");
    fs::create_dir(&evil).unwrap();
    pellucid_bundled::register().unwrap();
    let database = evil.join("log.db");
    let connection = open(&database, "vfs=unix").unwrap();
    rows::make(&connection, PAGE, "DELETE");
    rows::add(&connection, "evil.db", 1, 9);
    drop(connection);
    back_up(&evil, &database, &["clear"], Existing::Refuse);
    let clear = fs::read(evil.join("clear")).unwrap();
    write_private(&evil.join("clear that says sealed"), &flagged(&clear, true));
    let sealed = fs::read(place.join("live/log.bak")).unwrap();
    write_private(&evil.join("appended"), &flagged(&sealed, false));
    // To signed sets the program appends none without a signature.
    match try_back_up(&evil, &database, &["appended"], Existing::Append) {
        Ok(()) => {
            let appended = fs::read(evil.join("appended")).unwrap();
            write_private(&evil.join("appended that says sealed"), &flagged(&appended, true));
        }
        Err(_) => fs::remove_file(evil.join("appended")).unwrap(),
    }
    fs::remove_file(database).unwrap();
}

/// Sets or clears the flag of the media header that says that sets are sealed, which nothing authenticates.
fn flagged(media: &[u8], is_sealed: bool) -> Vec<u8> {
    let mut media = media.to_vec();
    media[FLAGS_AT] = media[FLAGS_AT] & !2 | u8::from(is_sealed) << 1;
    let mut sum = Sha256::new();
    sum.update(&media[..SUM_AT]);
    media[SUM_AT..HEADER].copy_from_slice(&sum.finish());
    media
}

/// What is done with media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Verify,
    Restore,
    /// Over the database, whose path is pinned.
    RestoreOver,
}

/// A case about media.
pub struct Exchange {
    pub media: Media,
    pub put: Vec<Option<Vec<u8>>>,
    pub action: Action,
    pub said: String,
    pub verdict: Verdict,
}

fn at(world: &World, moment: usize, media: Media) -> Vec<Option<Vec<u8>>> {
    media.files().iter().map(|name| world.file(moment, name).cloned()).collect()
}

/// Draws a case, and says what has to come of it.
pub fn draw(world: &World, random: &mut Random) -> Exchange {
    let media = Media::ALL[random.weighted(&[(4, 0), (3, 1), (1, 2)])];
    let now = at(world, world.moments.len() - 1, media);
    let mut put = now.clone();
    let which = random.below(put.len());
    let mut said = Vec::new();
    let mut is_forged = false;
    match random.below(7usize) {
        0 => {
            let moment = random.below(world.moments.len());
            put = at(world, moment, media);
            said.push(format!("as at moment {moment}"));
        }
        1 => {
            let forged = &world.forged[random.below(world.forged.len())];
            said.push(format!("forged: {}", forged.0));
            put[which] = Some(forged.1.clone());
            is_forged = true;
        }
        2 => {
            let names = ["plain.bak", "foreign.bak", "off.bak", "log.bak", "roll-1.bak", "log.db"];
            let name = names[random.below(names.len())];
            said.push(format!("{name} in its place"));
            put[which] = world.now().files.get(name).cloned();
        }
        3 => {
            let moment = random.below(world.moments.len());
            said.push(format!("file {which} of moment {moment}"));
            put[which] = at(world, moment, media)[which].clone();
        }
        4 => {
            if let Some(file) = &mut put[which] {
                let to = random.below(file.len());
                file.truncate(to);
                said.push(format!("file {which} cut to {to}"));
            }
        }
        5 => {
            if let Some(file) = &mut put[which] {
                let (byte, bit) = (random.below(file.len()), random.below(8usize));
                file[byte] ^= 1 << bit;
                said.push(format!("bit {bit} of byte {byte} of file {which}"));
            }
        }
        _ => {
            let moment = random.below(world.moments.len());
            let names =
                ["plain.bak", "foreign.bak", "off.bak", "log.bak", "roll-1.bak", "roll-2.bak"];
            let name = names[random.below(names.len())];
            if let (Some(file), Some(from)) = (&mut put[which], world.file(moment, name)) {
                let start = random.below(file.len().min(from.len()).div_ceil(512)) * 512;
                let end =
                    (start + [512, 4096][random.below(2usize)]).min(file.len()).min(from.len());
                file[start..end].copy_from_slice(&from[start..end]);
                said.push(format!("{start} to {end} of {name} of moment {moment}"));
            }
        }
    }
    let action = match random.below(5usize) {
        0 | 1 => Action::Verify,
        2 | 3 => Action::Restore,
        _ => Action::RestoreOver,
    };
    let verdict = judge(world, media, &put, is_forged);
    Exchange { media, put, action, said: said.join(", "), verdict }
}

/// What has to come of media with these files.
fn judge(world: &World, media: Media, put: &[Option<Vec<u8>>], is_forged: bool) -> Verdict {
    let refused = |why: &str| Verdict {
        class: Class::Refused,
        content: Content::None,
        whose: vec![media.of()],
        may_fail: false,
        by_header: true,
        also_idle: true,
        check_may_fail: false,
        kept: None,
        is_left: false,
        why: why.to_owned(),
    };
    let one = |class: Class, whose: Name, states: BTreeSet<usize>, may_fail: bool| Verdict {
        class,
        content: Content::One(states),
        whose: vec![whose],
        may_fail,
        by_header: true,
        also_idle: true,
        check_may_fail: false,
        kept: None,
        is_left: false,
        why: String::new(),
    };
    if is_forged {
        return refused("a set in clear");
    }
    let now = at(world, world.moments.len() - 1, media);
    let backed_up = |media: Media| -> Vec<(&Vec<Option<Vec<u8>>>, usize)> {
        world.backups.iter().filter(|b| b.media == media).map(|b| (&b.files, b.state)).collect()
    };
    for other in Media::ALL {
        // The whole media of another database are a backup of the instance: which one, the name does not say.
        if let Some((_, state)) = backed_up(other).into_iter().find(|(files, _)| *files == put) {
            let class = if put == now { Class::Harmless } else { Class::Remains };
            return one(class, other.of(), BTreeSet::from([state]), false);
        }
    }
    let begins = |(put, now): (&Option<Vec<u8>>, &Option<Vec<u8>>)| match (put, now) {
        (Some(put), Some(now)) => put.get(..HEADER) == now.get(..HEADER),
        _ => false,
    };
    if !put.iter().zip(&now).all(begins) {
        return refused("of other media");
    }
    if media != Media::Appended {
        let last = world.backups.iter().rfind(|backup| backup.media == media);
        let last = last.expect("each was made");
        // The manifest that commits a set is in each stripe: that of another one counts, too.
        let changed = put.iter().zip(&now).zip(&last.manifests);
        let is_before = changed.filter_map(|((put, now), at)| {
            let (put, now) = (put.as_ref()?, now.as_ref()?);
            let first = put.iter().zip(now).position(|(one, other)| one != other);
            let first = first.unwrap_or(put.len().min(now.len())) as u64;
            (put != now).then_some(first < *at)
        });
        let places: Vec<bool> = is_before.collect();
        if put.len() > 1 && places == [false] {
            return one(Class::Remains, media.of(), BTreeSet::from([last.state]), true);
        }
        return refused("damaged");
    }
    let sets = backed_up(Media::Appended);
    let (Some(file), [(first, older), (_, newer)]) = (&put[0], &sets[..]) else {
        return refused("no media");
    };
    let first = first[0].as_ref().unwrap();
    if file.len() < first.len() {
        return refused("cut within its first set");
    }
    if file[..first.len()] == first[..] {
        // What is behind the first set is damaged: it may look like a backup that was interrupted.
        return one(Class::Remains, Name::Log, BTreeSet::from([*older]), true);
    }
    // The first set is damaged. Who restores the last one need not look at it.
    one(Class::Remains, Name::Log, BTreeSet::from([*newer]), true)
}

/// Does it, by the programs or in this process.
pub fn act(world: &World, exchange: &Exchange, by_programs: bool) -> act::Outcome {
    let names: Vec<PathBuf> = exchange.media.files().iter().map(|name| world.path(name)).collect();
    let replaces = exchange.action == Action::RestoreOver;
    let to = match replaces {
        true => world.path(exchange.media.of().file()),
        false => world.folder("out").join("restored.db"),
    };
    let restores = exchange.action != Action::Verify;
    if by_programs {
        return programs::act_on_media(&names, restores.then_some((&to, replaces)));
    }
    let mut outcome = act::Outcome::default();
    if !restores {
        return outcome.end(verify(&names));
    }
    let job = job::Restoring { replace: replaces, ..act::restoring(names, &to) };
    let restored = job::restore(&job, &mut |_, _| ());
    if let Err(error) = restored {
        return outcome.end(Err::<(), _>(error));
    }
    let read = act::connect(&to).and_then(|it| rows::read(&it, &mut outcome.lines));
    outcome.end(read)
}

/// A target that keeps nothing.
struct Nowhere;

impl PageTarget for Nowhere {
    fn write(&self, _: u32, _: &[u8]) -> Outcome<()> {
        Ok(())
    }
}

/// As `pellucid verify --open` does.
fn verify(names: &[PathBuf]) -> Result<(), DatabaseError> {
    let media = job::open_media(names)?;
    let believe = job::Believe::default();
    for position in 1..=media.sets().max(1) {
        if !believe.any() {
            job::refuse_looked_at(&media, position, names)?;
        }
        for (family, set) in media.set(position)?.into_iter().flatten() {
            verify_checksums(family, set, &mut |_| ())?;
        }
        let credentials = Credentials::gather(&Request::default())?;
        let set = match believe.any() {
            true => OpenSet::open_as_it_is(&media, position, &credentials)?,
            false => OpenSet::open(&media, position, &credentials)?,
        };
        restore_pages(&set, &Nowhere, 1, &mut |_| ())?;
    }
    media.last()?;
    Ok(())
}

/// What is wrong with the outcome, if anything is.
///
/// # Errors
/// What it should have been.
pub fn compare(world: &World, exchange: &Exchange, outcome: &act::Outcome) -> Result<(), String> {
    let verdict = &exchange.verdict;
    let Content::One(states) = &verdict.content else {
        return match &outcome.error {
            Some((rusqlite::ffi::SQLITE_ERROR, text)) => Err(format!("it ended badly: {text}")),
            Some(_) => Ok(()),
            None => Err(format!("it had to be refused, and it works: {:?}", outcome.lines.first())),
        };
    };
    match &outcome.error {
        Some(_) if verdict.may_fail => Ok(()),
        Some((_, text)) => Err(format!("it had to work: {text}")),
        None if exchange.action == Action::Verify => Ok(()),
        None if states.iter().any(|state| world.states[*state].lines == outcome.lines) => Ok(()),
        None => Err(format!("not the content of {states:?}: {:?}", outcome.lines.first())),
    }
}
