//! Restore: a database made from backup sets.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pellucid::clock::now_micros;
use pellucid::header::{Header, Standing};
use pellucid::keys::ContainerKeys;
use pellucid::lsn::Lsn;
use pellucid::media::{Kind, SetHeader};
use pellucid::{Algorithm, Error, Result, Subject};
use pellucid_engine::convert::original::Original;
use pellucid_engine::convert::switch::check_space;
use pellucid_engine::standing::of_version_1;
use pellucid_files::paths::{assert_one_name, belongs_beside, full_name, BELONGS_BESIDE};
use pellucid_files::way::Way;
use pellucid_host::folder::{name_of, Folder};
use pellucid_host::DatabaseError;
use pellucid_keyring::{Action, Event};
use pellucid_vfs::copy::CopyFile;
use pellucid_vfs::pins::Expectation;
use pellucid_vfs::seal_request::{leave, remember, Birth, Credentials, Protection, Request};
use pellucid_vfs::{log_archive, witness};

use super::aside::{logs, set_logs_aside};
use super::chain::Chain;
use super::clear::{is_doubtful, refuse_chain, Believe};
use super::media::{about, open_media};
use super::point::{Library, Plan, Point};
use super::replace::{self, Incoming, Whole};
use super::standing::{standing_of_log, standings};
use super::targets::new_name;
use crate::history;
use crate::history::{files_of, History, Link, RestoreRecord, SetRecord};
use crate::restore::{
    LogSet, Media, OpenSet, PageTarget, PlainTarget, SealedTarget, Signer, UNFINISHED_MODE,
};

/// A restore to be made: from which set, to which file, and how.
#[derive(Debug, Clone)]
pub struct Restoring {
    /// The media of the set; for a differential those of its full set too, unless it is on the same.
    pub media: Vec<PathBuf>,
    /// The media of the full set that a differential is based on; `None` for the same media.
    pub base: Option<Vec<PathBuf>>,
    /// The position of the set; `None` for the last one.
    pub position: Option<u32>,
    /// The point to restore to; the media are then several media sets: a full one, perhaps a differential, and logs.
    pub point: Option<Point>,
    /// With a point, the only sets that count: a file of their media, and their position. If empty, all that are there.
    pub only: Vec<(PathBuf, u32)>,
    /// The database to make.
    pub to: PathBuf,
    /// The protectors of the database. If empty, those of the set.
    pub protections: Vec<Protection>,
    /// The algorithm that seals the database.
    pub algorithm: Algorithm,
    /// Makes a plain database, although the set is of a sealed one.
    pub decrypted: bool,
    /// Accepts a differential that is not encrypted, although its full set, of a plain database, is
    /// ([`Chain::open_with`]).
    pub plain_differential: bool,
    /// Believes a set in clear, wherever it lies and whatever is known of the database.
    pub allow_clear: bool,
    /// Believes a set without a signature where signed ones belong.
    pub allow_unsigned: bool,
    /// Replaces an existing database.
    pub replace: bool,
    /// Who may open the database then. Anything but everybody needs an encrypted one, which is of format version 2 then.
    pub leave: Standing,
    /// How long to wait for programs that have the existing database open.
    pub timeout: Duration,
    /// The number of threads.
    pub workers: usize,
}

/// A database that was restored.
#[derive(Debug)]
pub struct Restored {
    /// The number of pages.
    pub pages: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Whether it replaced another database.
    pub replaced: bool,
    /// The positions and kinds of the sets that were needed.
    pub sets: Vec<(u32, Kind)>,
    /// The last commit that it has, of those in log sets: number and time, in microseconds since 1970.
    pub reached: Option<(Lsn, u64)>,
    /// The file id of the database that was backed up; zeros for a plain one.
    pub source: [u8; 16],
    /// Its recovery fork, and where its sets end, if they are of a chain of log backups.
    pub ends: Option<([u8; 16], Lsn)>,
    /// Later commits with the mark that was asked for: their numbers and times.
    pub same_mark: Vec<(Lsn, u64)>,
    /// Pages that were unreadable at the backup. They are zeros.
    pub missing: Vec<u32>,
    /// Whether a set in clear was believed although sealed databases are known here, or although it
    /// came from no named place, so that anybody can have made it.
    pub doubtful: bool,
    /// What speaks against the place of its sets in the chain of the database.
    pub told: Vec<String>,
    /// Who signed its sets ([`Chain::signer`]).
    pub signer: Signer,
    /// Media that were left out, because they hold another set than their mirrors.
    pub stale: Vec<PathBuf>,
    /// Why the history has no entry of it, if there is a history and the entry failed.
    pub unrecorded: Option<String>,
}

/// Restores a database. `progress` is called with the pages done and the pages in all.
///
/// # Errors
/// [`DatabaseError`]. The earlier file is there then, or the next connection that may write
/// finishes the restore.
pub fn restore(
    job: &Restoring,
    progress: &mut dyn FnMut(u32, u32),
) -> std::result::Result<Restored, DatabaseError> {
    restore_and(job, progress, &mut || Ok(()))
}

/// The same, with what is to be done with the restored file before the history is written.
///
/// # Errors
/// As [`restore`]; those of `then`, behind which the file is there.
pub fn restore_and(
    job: &Restoring,
    progress: &mut dyn FnMut(u32, u32),
    then: &mut dyn FnMut() -> std::result::Result<(), DatabaseError>,
) -> std::result::Result<Restored, DatabaseError> {
    let begun = now_micros();
    refuse_beside(&job.to)?;
    let credentials = Credentials::gather(&Request::default())?.for_many();
    let believe = Believe {
        clear: job.allow_clear,
        unsigned: job.allow_unsigned,
        differential: job.plain_differential,
    };
    let from = From::find(job, &credentials)?;
    let (media, base, position) = (from.media(), from.base(), from.position);
    let chain = Chain::open_with(media, base, position, &credentials, believe)
        .map_err(|error| from.about(job, error))?;
    let logs = from.logs(&credentials, chain.header().page_size)?;
    let (last, header) = (chain.last(), chain.header());
    let sealed = header.sealed_source && !job.decrypted;
    let files = from.files(job);
    let pages = from.plan.as_ref().map_or(header.pages, |plan| plan.pages);
    refuse_chain(&chain, files, None, believe)?;
    let expected = Expectation::at_all_names(&job.to)?;
    let place = Place::find(job, last, sealed)?;
    // Permission to make a plain database does not say that the set can be believed.
    refuse_chain(&chain, files, Some(&job.to), believe)?;
    let doubtful = is_doubtful(&chain, &job.media)?;
    let mut told = standings(&chain, [media, base], files, Some(&job.to), believe)?;
    told.extend(what_is_cut_off(job, from.plan.as_ref()));
    for ((set, _), on) in logs.iter().zip(from.places_of_logs()) {
        told.extend(standing_of_log(set, &chain, on, Some(&job.to), believe)?);
    }
    if !sealed {
        // Before a page is there in clear, it is what was signed.
        chain.sets().try_for_each(OpenSet::prove)?;
    }
    if job.leave != Standing::Online && !sealed {
        return Err(of_version_1(&job.to).into());
    }
    let bytes = u64::from(pages.max(header.pages)) * u64::from(header.page_size);
    check_space(&place.to, bytes + bytes / 64)?;
    let beside = new_name(&place.to);
    remove_stale(&place.folder, &beside)?;
    // An unfinished file is removed.
    let whole = |file: &std::fs::File| {
        let io = |error| Error::io(Subject::File(beside.clone()), error);
        let folder = place.folder.try_clone().map_err(io)?;
        Ok::<_, Error>(CopyFile::made(file.try_clone().map_err(io)?, folder, beside.clone()))
    };
    match sealed {
        true => {
            let birth = birth(job, last, &credentials)?;
            let mut container = birth.header(header.page_size)?;
            if job.leave != Standing::Online {
                container = left_as(container, job, header)?;
            }
            if place.is_taken {
                // Connections to the old database see by the sequence number that the header is
                // another one.
                container.sequence = now_micros();
            }
            let keys = birth.keys()?;
            let target = SealedTarget::create_unfinished(
                &place.folder,
                &beside,
                container.clone(),
                keys.clone(),
            )?;
            let file = whole(target.file())?;
            chain.fill(&target, job.workers, progress).map_err(|error| from.about(job, error))?;
            from.apply(&logs, (&target, job.workers), (header.page_size, header.pages, pages))?;
            target.finish(pages)?;
            place.record(false)?;
            place.install(file, header.page_size, Some(&keys), &expected, job.timeout)?;
            remember(&container, &place.to);
            expected.put_if_writable(&place.to, &container);
        }
        false => {
            // Before the first page is there in clear.
            place.record(header.sealed_source)?;
            let target = PlainTarget::create_unfinished(&place.folder, &beside, header.page_size)?;
            let file = whole(target.file())?;
            chain.fill(&target, job.workers, progress).map_err(|error| from.about(job, error))?;
            from.apply(&logs, (&target, job.workers), (header.page_size, header.pages, pages))?;
            assert_database(target.file(), pages)?;
            target.finish(pages)?;
            place.install(file, header.page_size, None, &expected, job.timeout)?;
            expected.release()?;
        }
    }
    then()?;
    let mut record = RestoreRecord {
        at: begun,
        sets: chain
            .sets()
            .chain(logs.iter().map(|(set, _)| set))
            .map(|set| set.header().set)
            .collect(),
        kind: match (logs.is_empty(), chain.base()) {
            (false, _) => Kind::Log,
            (true, Some(_)) => Kind::Differential,
            (true, None) => Kind::Full,
        },
        to: place.to.clone(),
        replaced: place.is_taken,
        devices: header.families,
        seconds: 0.0,
        bytes,
    };
    record.seconds = now_micros().saturating_sub(begun) as f64 / 1e6;
    let sets = [(base, chain.base()), (media, Some(last))];
    let unrecorded = history::told(write_down(&sets, &record));
    let kind = |set: &OpenSet<'_>| (set.header().position, set.header().kind);
    Ok(Restored {
        pages,
        page_size: header.page_size,
        sealed,
        replaced: place.is_taken,
        sets: chain.sets().chain(logs.iter().map(|(set, _)| set)).map(kind).collect(),
        reached: from.plan.as_ref().and_then(|plan| plan.reached),
        source: header.source,
        ends: from.plan.as_ref().map(|plan| (plan.fork, plan.ends)),
        same_mark: from.plan.as_ref().map_or_else(Vec::new, |plan| plan.same_mark.clone()),
        missing: chain.missing(),
        doubtful,
        told,
        signer: chain.signer().clone(),
        stale: from.library.stale(),
        unrecorded,
    })
}

/// The header of a database that not everybody may open. It is of version 2 if that is what the database was that was backed up:
/// it had a chain of log backups.
fn left_as(container: Header, job: &Restoring, set: &SetHeader) -> Result<Header> {
    let had_chain = set.version2.is_some_and(|own| own.chain.is_some());
    let mut next = if had_chain { container.in_version(2)? } else { container };
    let second = next.second.as_mut().ok_or_else(|| of_version_1(&job.to))?;
    second.set_standing(job.leave);
    Ok(next)
}

/// What to say where the last commit is asked for, and the keyring knows of later backups than these media have: nothing in them tells
/// that their end was cut off.
fn what_is_cut_off(job: &Restoring, plan: Option<&Plan>) -> Option<String> {
    let plan = plan.filter(|_| job.point == Some(Point::Last))?;
    let known = witness::furthest(&plan.fork).filter(|known| *known > plan.ends)?;
    Some(format!(
        "the media lead to LSN {}, and the keyring knows of backups up to LSN {known}: the last ones are not among these media",
        plan.ends
    ))
}

/// Where a restore comes from.
pub(super) struct From {
    /// All media: those of one set and perhaps of its full set, or any number for a point in time.
    library: Library,
    /// Which of them have the set, and its full set.
    of: (usize, usize),
    position: u32,
    plan: Option<Plan>,
}

impl From {
    fn find(job: &Restoring, credentials: &Credentials) -> Result<Self> {
        if let Some(point) = &job.point {
            return Self::of_point(&job.media, &job.only, point, credentials);
        }
        let media = open_media(&job.media)?;
        let position = match job.position {
            Some(position) => position,
            None => media.last().map_err(|error| about(&job.media[0], error))?,
        };
        let mut library = Library::of(media, job.media.clone());
        let mut of = (0, 0);
        if let Some(base) = &job.base {
            of.1 = library.add(open_media(base)?, base.clone());
        }
        Ok(Self { library, of, position, plan: None })
    }

    /// The sets among `media` that lead to a point, of those of `only` if that names any.
    pub(super) fn of_point(
        media: &[PathBuf],
        only: &[(PathBuf, u32)],
        point: &Point,
        credentials: &Credentials,
    ) -> Result<Self> {
        let mut library = Library::open(media)?;
        library.keep_only(only);
        let plan = library.plan(point, credentials)?;
        let of = (plan.base.media, plan.full);
        Ok(Self { library, of, position: plan.base.position, plan: Some(plan) })
    }

    pub(super) fn position(&self) -> u32 {
        self.position
    }

    /// The last commit of the logs, if they have any that counts, and the pages of the database there.
    pub(super) fn reached(&self) -> (Option<Lsn>, Option<u32>) {
        let plan = self.plan.as_ref();
        (plan.and_then(|plan| plan.reached).map(|(lsn, _)| lsn), plan.map(|plan| plan.pages))
    }

    /// The media of each log, and their files.
    pub(super) fn places_of_logs(&self) -> impl Iterator<Item = (&Media, &[PathBuf])> {
        let spots = self.plan.iter().flat_map(|plan| &plan.logs);
        spots.map(|(spot, _)| (self.library.media(spot.media), self.library.files(spot.media)))
    }

    pub(super) fn media(&self) -> &Media {
        self.library.media(self.of.0)
    }

    pub(super) fn base(&self) -> &Media {
        self.library.media(self.of.1)
    }

    /// The files of the full set or the differential, and of the full set.
    pub(super) fn files_of_sets(&self) -> [&[PathBuf]; 2] {
        [self.of.0, self.of.1].map(|number| self.library.files(number))
    }

    fn files<'a>(&'a self, job: &'a Restoring) -> [&'a [PathBuf]; 2] {
        match self.plan {
            Some(_) => self.files_of_sets(),
            None => [&job.media[..], job.base.as_ref().unwrap_or(&job.media)],
        }
    }

    /// The same error about the file that it is of.
    fn about(&self, job: &Restoring, error: Error) -> Error {
        match self.plan {
            Some(_) => self.about_base(error),
            None => about(&job.media[0], error),
        }
    }

    /// The same, where media of several sets were named: else who asks knows the file.
    fn about_base(&self, error: Error) -> Error {
        match self.plan {
            Some(_) => self.library.about(self.of.0, error),
            None => error,
        }
    }

    /// Writes what log sets made of pages over what the full set had. Pages that no commit wrote behind the end that the database had
    /// get zeros: SQLite leaves such gaps (`sqlite3PagerDontWrite`).
    fn apply(
        &self,
        logs: &[(OpenSet<'_>, usize)],
        (target, workers): (&dyn PageTarget, usize),
        (page_size, had, pages): (u32, u32, u32),
    ) -> Result<()> {
        let new: Vec<_> = (had..pages).map(|_| AtomicBool::new(false)).collect();
        let spots = self.plan.iter().flat_map(|plan| &plan.logs);
        for ((set, commits), (spot, _)) in logs.iter().zip(spots) {
            let about = |error| self.library.about(spot.media, error);
            let log = LogSet::open(set).map_err(about)?;
            let write = |number: u32, page: &[u8]| {
                if number > pages {
                    return Ok(());
                }
                let at = number.checked_sub(had + 1);
                if let Some(new) = at.and_then(|at| new.get(at as usize)) {
                    new.store(true, Ordering::Relaxed);
                }
                target.write(number, page)
            };
            log.apply_on(workers, *commits, &write).map_err(about)?;
        }
        let zeros = vec![0; page_size as usize];
        let gaps =
            (had + 1..=pages).zip(new).filter(|(_, is_there)| !is_there.load(Ordering::Relaxed));
        gaps.map(|(number, _)| number).try_for_each(|number| target.write(number, &zeros))
    }

    /// Opens the log sets, with how many of their commits are applied.
    pub(super) fn logs(
        &self,
        credentials: &Credentials,
        page_size: u32,
    ) -> Result<Vec<(OpenSet<'_>, usize)>> {
        let Some(plan) = &self.plan else { return Ok(Vec::new()) };
        let mut found = Vec::with_capacity(plan.logs.len());
        for (spot, commits) in &plan.logs {
            let set = OpenSet::open(self.library.media(spot.media), spot.position, credentials)
                .map_err(|error| self.library.about(spot.media, error))?;
            if set.header().page_size != page_size {
                let what = "its pages have another size than those of the full backup";
                return Err(Error::misuse(Subject::BackupSet(spot.position), what));
            }
            found.push((set, *commits));
        }
        Ok(found)
    }
}

/// Writes the restore and its sets into the history.
fn write_down(
    from: &[(&Media, Option<&OpenSet<'_>>)],
    record: &RestoreRecord,
) -> std::result::Result<(), DatabaseError> {
    let Some(history) = History::open_or_begin()? else { return Ok(()) };
    for (media, set) in from {
        let Some(set) = set else { continue };
        history.record_set(&SetRecord {
            media: media.header(),
            set: set.header(),
            manifest: set.manifest(),
            description: set.description(),
            files: &files_of(media),
            replaced: &[],
            link: match set.header().algorithm {
                Some(_) => Link::proven(set.hash(), set.signer()),
                None => Link::seen(set.hash()),
            },
        })?;
    }
    history.record_restore(record)
}

/// The place that a database is restored to.
#[derive(Debug)]
struct Place {
    /// The whole path, with symbolic links followed as SQLite does.
    to: PathBuf,
    /// The folder that it lies in.
    folder: Folder,
    /// The file that is there.
    original: Option<Original>,
    /// Whether a file is there.
    is_taken: bool,
    /// The file id of the container that is replaced.
    older: Option<[u8; 16]>,
    /// The logs of a database that is gone, if no database is there.
    logs: Vec<PathBuf>,
}

impl Place {
    fn find(
        job: &Restoring,
        set: &OpenSet<'_>,
        sealed: bool,
    ) -> std::result::Result<Self, DatabaseError> {
        let io = |error| Error::io(Subject::File(job.to.clone()), error);
        let way = Way::of(&job.to).map_err(io)?;
        let (to, is_taken) = (way.path().to_owned(), way.is_there());
        refuse_beside(&to)?;
        let folder = Folder::at_end_of(&way).map_err(io)?;
        if is_taken {
            remove_second_name(&folder, &to)?;
        }
        let logs = if is_taken { Vec::new() } else { logs(&folder, &to) };
        let original = is_taken.then(|| Original::hold(&to)).transpose()?;
        let mut place = Self { to, folder, original, is_taken, older: None, logs };
        if is_taken {
            let incoming = Incoming { set: set.header(), description: set.description(), sealed };
            place.older = replace::check(&place.to, &incoming, job.replace, job.decrypted)?;
            assert_one_name(&place.to)?;
        } else if let (false, Some(log)) = (job.replace, place.logs.first()) {
            return Err(Error::misuse(
                Subject::File(log.clone()),
                "it belonged to another database, and SQLite would take it for the restored one's",
            )
            .into());
        }
        Ok(place)
    }

    /// Records the restore, once everything was checked.
    fn record(&self, in_clear: bool) -> Result<()> {
        if !self.is_taken {
            self.assert_free()?;
        }
        let event = Event::new(Action::Restored, "database").of(full_name(&self.to));
        event.forced(self.is_taken).in_clear(in_clear).record_here()
    }

    /// Gives the complete database its name.
    fn install(
        &self,
        file: CopyFile,
        page_size: u32,
        keys: Option<&ContainerKeys>,
        expected: &Expectation,
        timeout: Duration,
    ) -> std::result::Result<(), DatabaseError> {
        if !self.is_taken {
            // A database that a program has made meanwhile belongs to that program, and so do its
            // logs.
            self.assert_free()?;
            // Only the logs that the caller allowed to replace are set aside. A log that appeared
            // since belongs to a program.
            let aside = set_logs_aside(&self.folder, &self.to, &self.logs)?;
            match keys {
                Some(keys) => expected.announce(Some(*keys.file_id()))?,
                None => expected.let_go(Some(pellucid_vfs::laying::digest(&file)?.1))?,
            }
            if let Err(error) = file.link(&self.to) {
                return Err(aside.put_back(&self.folder, error));
            }
            // From here on SQLite would take the logs for the new database's.
            aside.remove(&self.folder);
            file.remove()?;
            let synced = self.folder.sync();
            return Ok(synced.map_err(|error| Error::io(Subject::File(self.to.clone()), error))?);
        }
        let Some(original) = &self.original else { return Ok(()) };
        let new = Whole { file, page_bytes: page_size as usize, keys, expected };
        if let Err(error) = replace::take_place(new, &self.to, original, timeout) {
            // Once the laying was begun, the next connection finishes it and needs the announcement.
            if !pellucid_vfs::laying::is_copy_beside(&self.to) {
                let _ = expected.announce(None).and_then(|()| expected.let_go(None));
            }
            return Err(error);
        }
        if let Some(older) = &self.older {
            leave(older, &self.to);
        }
        // Its database is gone.
        log_archive::remove(&self.to)?;
        Ok(())
    }
}

impl Place {
    /// Checks that no program has made a database at the path meanwhile.
    fn assert_free(&self) -> Result<()> {
        let is_new = |log: &PathBuf| !self.logs.contains(log);
        let taken = self.folder.has(&name_of(&self.to));
        let began = logs(&self.folder, &self.to).into_iter().find(is_new);
        if let Some(path) = taken.then(|| self.to.clone()).or(began) {
            return Err(Error::misuse(
                Subject::File(path),
                "a program has made it while the backup was being restored: nothing was changed",
            ));
        }
        Ok(())
    }
}

/// Refuses a path that SQLite would take for a log or another part of another database.
fn refuse_beside(to: &Path) -> Result<()> {
    match belongs_beside(to) {
        true => Err(Error::misuse(Subject::File(to.to_owned()), BELONGS_BESIDE)),
        false => Ok(()),
    }
}

/// Refuses a restored file that is no database, before it gets its name. In media in clear anybody
/// can have written the pages.
fn assert_database(file: &std::fs::File, pages: u32) -> Result<()> {
    use std::os::unix::fs::FileExt;
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let mut start = [0; MAGIC.len()];
    let is_one = pages == 0 || (file.read_exact_at(&mut start, 0).is_ok() && start == *MAGIC);
    match is_one {
        true => Ok(()),
        false => Err(Error::corrupt(
            Subject::Page(1),
            "the backup set's first page is no SQLite database's: nothing was restored",
        )),
    }
}

/// Removes the name under which a restored database was filled, if a restore was killed when it had just given it its own.
fn remove_second_name(folder: &Folder, to: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let beside = new_name(to);
    let [own, other] = [to, &beside].map(|path| folder.look(&name_of(path)));
    let (Ok(own), Ok(other)) = (own, other) else { return Ok(()) };
    if (own.dev(), own.ino()) != (other.dev(), other.ino()) {
        return Ok(());
    }
    folder.remove_name(&name_of(&beside)).map_err(|error| Error::io(Subject::File(beside), error))
}

/// Removes the files that a killed restore left. A running restore holds a lock on its file.
fn remove_stale(folder: &Folder, beside: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{flock, FlockOperation};
    let io = |error: std::io::Error| Error::io(Subject::File(beside.to_owned()), error);
    let file = match folder.open(&name_of(beside)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(io)?,
    };
    let mode = file.metadata().map_err(io)?.mode() & 0o7777;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if mode != UNFINISHED_MODE => Err(Error::misuse(
            Subject::File(beside.to_owned()),
            "it has the name that is needed, and no interrupted restore has left it: move it away, or remove it if nobody \
             needs it; nothing was changed",
        )),
        Ok(()) => {
            let folder = folder.try_clone().map_err(io)?;
            CopyFile::made(file, folder, beside.to_owned()).remove()
        }
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Err(Error::misuse(Subject::File(beside.to_owned()), "another restore is writing it"))
        }
        Err(error) => Err(io(error.into())),
    }
}

/// Makes a new DEK. Its protectors are those that the job names, else those of the set.
fn birth(job: &Restoring, set: &OpenSet<'_>, credentials: &Credentials) -> Result<Birth> {
    if !job.protections.is_empty() {
        return Birth::new(job.algorithm, &job.protections);
    }
    let header = set.header();
    let (protectors, old) = (header.protectors()?, header.binding()?);
    Birth::protected(job.algorithm, |dek, new| {
        protectors.iter().map(|one| one.again(&old, new, dek, credentials)).collect()
    })
}
