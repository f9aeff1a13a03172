//! The witness of a place: how far its database had come, out of reach of whoever can put back the database, its archive and the
//! keyring together. Described in docs/format.md, "Archived sets".
//!
//! It is a log set without commits, signed and sealed as all sets of the database are, and replaced under the condition that the one
//! that was read is still there. It says nothing that is not stored, and lags behind by a minute at most: what is newer say the sets.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid::clock::now_micros;
use pellucid::hash::hex;
use pellucid::header::Header;
use pellucid::log_archive::ArchiveState;
use pellucid::lsn::Lsn;
use pellucid::media::{ChainPlace, Kind, LogFacts};
use pellucid::shown::Shown;
use pellucid::{Error, Result, Subject};
use pellucid_engine::log_chain;
use pellucid_files::paths::full_name;
use pellucid_keyring::Witness;
use pellucid_vfs::seal_request::{Credentials, Request};

use super::find::place_at;
use super::place::{Place, Seen};
use super::run::News;
use super::set::Owner;
use super::ship::Shipper;
use crate::job::{bytes_of_log, JobError, LogOf};
use crate::restore::{Family, Media, MediaSource, OpenSet, Signer};

/// Its name in the folder of a database, and what it is called within.
pub const NAME: &str = "witness";
/// So often it is renewed at most while commits are shipped: a PUT more a minute.
const EVERY: Duration = Duration::from_secs(60);

/// What an archiver knows of the witness of its place.
#[derive(Debug, Default)]
pub struct Kept {
    /// What is there, once it was looked at.
    seen: Option<Option<Seen>>,
    /// Up to where it says that commits are in the place.
    says: Lsn,
    renewed: Option<Instant>,
    /// Why there is none, as far as that was told.
    told: Option<String>,
}

/// What a witness says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Says {
    file_id: [u8; 16],
    fork: [u8; 16],
    lsn: Lsn,
    last_set: [u8; 32],
    /// The sequences of the database's header and of its archive's state; none where nobody can vouch for it: its key is not at hand, or
    /// it is not signed where sets are.
    sequences: Option<(u64, u64)>,
    /// Where the database lay; empty where nobody can vouch for it.
    path: String,
}

/// The text that its description has of the two sequences.
struct Sequences(u64, u64);

impl fmt::Display for Sequences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "header sequence {}, archive sequence {}", self.0, self.1)
    }
}

impl Sequences {
    fn parse(text: &str) -> Option<(u64, u64)> {
        let (header, archive) =
            text.strip_prefix("header sequence ")?.split_once(", archive sequence ")?;
        let found = (header.parse().ok()?, archive.parse().ok()?);
        (Self(found.0, found.1).to_string() == text).then_some(found)
    }
}

impl Says {
    /// From the bytes of the one that lies at `path`.
    fn read(bytes: Vec<u8>, path: &Path, is_signed: bool) -> Result<Self> {
        let none = |what: &str| {
            let what = format!("{what}: nobody knows whether the database was put back; if the place is right, move it away");
            Error::corrupt(Subject::File(path.to_owned()), what)
        };
        let of = |error: Error| none(&format!("the witness cannot be read ({error})"));
        let source = Bytes { bytes, path: path.to_owned() };
        let media = Family::open(Box::new(source))
            .and_then(|one| Media::assemble(vec![one]))
            .map_err(of)?;
        let sets = media.set(1).map_err(of)?;
        let header = sets.iter().flatten().next().map(|(_, set)| set.header.clone());
        let found = header.and_then(|header| {
            let own = header.version2?;
            let is_one = header.kind == Kind::Log && header.algorithm.is_some();
            let place = own.chain.filter(|place| is_one && place.first == place.last)?;
            let says = Self {
                file_id: header.source,
                fork: place.fork,
                lsn: place.last,
                last_set: own.before,
                sequences: None,
                path: String::new(),
            };
            Some(says)
        });
        let says = found.ok_or_else(|| none("it is no witness"))?;
        let credentials = Credentials::gather(&Request::default())?;
        match OpenSet::open(&media, 1, &credentials) {
            // What it says in clear is not believed, and held against the database all the same.
            Err(Error::MissingKey { .. }) => Ok(says),
            Err(error) => Err(of(error)),
            Ok(set) => {
                let described = set.description();
                let sequences = Sequences::parse(&described.description);
                let sequences = sequences
                    .filter(|_| described.name == NAME)
                    .ok_or_else(|| none("it is no witness"))?;
                if is_signed && !matches!(set.signer(), Signer::Certificate { .. }) {
                    return Ok(says);
                }
                Ok(Self { sequences: Some(sequences), path: described.path.clone(), ..says })
            }
        }
    }

    /// What it knows, as the keyring's witness of the database at `path`; none where nobody can vouch for it.
    fn as_witness(&self, path: &Path) -> Option<Witness> {
        let (header_sequence, archive_sequence) = self.sequences?;
        Some(Witness {
            path: path.to_owned(),
            file_id: self.file_id,
            fork: self.fork,
            header_sequence,
            archive_sequence,
            lsn: self.lsn,
            base: Lsn::NONE,
            last_set: self.last_set,
            at: pellucid::clock::now(),
        })
    }

    /// What it has against a database that is not as new.
    fn against(&self, header: &Header, state: Option<&ArchiveState>) -> Option<String> {
        if self.file_id != header.file_id {
            return Some("it is of another database".to_owned());
        }
        let (header_sequence, archive_sequence) = self.sequences.unwrap_or_default();
        let ahead = match state {
            Some(state) if state.fork == self.fork => {
                self.lsn > state.backed_up || archive_sequence > state.sequence
            }
            // The chain that comes later begins with a change of the header.
            _ => self.sequences.is_none() || header_sequence > header.sequence,
        };
        let vouched = match self.sequences {
            Some(_) => "",
            None => " (no key at hand opens it, or it is not signed)",
        };
        ahead.then(|| {
            format!("commits of the chain {} up to LSN {}{vouched}", hex(&self.fork), self.lsn)
        })
    }
}

/// The error of a database that is older than the witness at `path`.
pub(super) fn put_back(database: &Path, path: &Path, what: &str, to_accept: &str) -> Error {
    let what = format!(
        "it was put back to an older state: `{}` has a later one: {what}; nothing is overwritten. \
         `pellucid restore` from there has what is missing; to accept the database as it is, {to_accept}",
        path.shown()
    );
    Error::corrupt(Subject::LogArchive, format!("`{}`: {what}", database.shown()))
}

/// The error of a database another copy of which is archived to the place of the witness at `path`.
fn of_a_copy(database: &Path, path: &Path, other: &str, what: &str) -> Error {
    let what = format!(
        "another copy of it, `{}`, is archived there, and has a later state: {what}; or it was moved and put back. Give each its own \
         place; nothing is overwritten",
        other.shown()
    );
    let database = database.shown();
    Error::misuse(Subject::File(path.to_owned()), format!("`{database}`: {what}"))
}

/// Compares a database with the witness in the folder `folder` of a place. One that is older is told: its chain is broken, and the
/// keyring remembers what the witness knows. Returns what is there, and up to which commit it vouches for the present chain.
///
/// # Errors
/// That of a database that is older; what keeps the witness from being read, or the database.
fn compare(
    database: &Path,
    (place, folder): (&Place, &str),
    signer: &dyn Fn(&Header) -> Result<bool>,
) -> std::result::Result<(Option<Seen>, Option<Lsn>), JobError> {
    let name = format!("{folder}/{NAME}");
    let Some((bytes, seen)) = place.small(&name)? else { return Ok((None, None)) };
    let path = place.path_of(&name);
    let (header, state) = match log_chain::state_at(database)? {
        Some((header, state)) => (header, Some(state)),
        None => (super::ship::header_of(database)?, None),
    };
    let says = Says::read(bytes, &path, signer(&header)?)?;
    let Some(what) = says.against(&header, state.as_ref()) else {
        let own = state.filter(|state| state.fork == says.fork);
        return Ok((Some(seen), own.map(|_| says.lsn)));
    };
    let own = full_name(database);
    if !says.path.is_empty() && says.path != own {
        return Err(of_a_copy(database, &path, &says.path, &what).into());
    }
    let to_accept = match (says.as_witness(database), state) {
        (Some(witness), Some(state)) if state.fork == witness.fork => {
            log_chain::break_by(database, &witness)?;
            "make a full backup, which begins the chain anew"
        }
        _ => "move the witness away, and take another place",
    };
    Err(put_back(database, &path, &what, to_accept).into())
}

/// Looks whether one of the places among `media` knows a later state of a database: one that has no witness of it knows none.
///
/// # Errors
/// As [`compare`].
pub fn look_at(database: &Path, media: &[PathBuf]) -> std::result::Result<(), JobError> {
    let database = pellucid_files::paths::resolved(database)?;
    let folder = super::ship::folder_of(&database)?;
    let signer = |header: &Header| {
        let credentials = Credentials::gather(&Request::default())?;
        Ok(crate::job::signer_of(&header.protectors, &credentials).is_some())
    };
    for path in media {
        let Some(place) = place_at(path)? else { continue };
        // The folder of the one database may be named, or that of its chain.
        let root = place.root().to_string_lossy().into_owned();
        let above = match root.rfind(&format!("/{folder}")) {
            Some(at) => Place::of(Path::new(&root[..at]))?,
            None => place,
        };
        compare(&database, (&above, &folder), &signer)?;
    }
    Ok(())
}

/// What the witness in a folder of a place says to who reads the sets of the database `source` there: its fork, and its last commit.
/// None if there is none.
///
/// # Errors
/// [`Error::Unauthentic`] for one that nobody can vouch for, or of another database; what keeps it from being read.
pub(super) fn told(
    (place, folder): (&Place, &str),
    source: &str,
    is_signed: bool,
) -> Result<Option<([u8; 16], Lsn)>> {
    let name = format!("{folder}/{NAME}");
    let Some((bytes, _)) = place.small(&name)? else { return Ok(None) };
    let path = place.path_of(&name);
    let says = Says::read(bytes, &path, is_signed)?;
    let what = match says.sequences {
        None => "no key at hand opens the witness, or it is not signed as the sets are: somebody else has put it there",
        Some(_) if hex(&says.file_id) != source => "the witness is of another database: somebody else has put it there",
        Some(_) => return Ok(Some((says.fork, says.lsn))),
    };
    Err(Error::unauthentic(Subject::File(path), what))
}

/// Up to which commit of a recovery fork the witnesses of the places among `media` say that there are backups.
///
/// # Errors
/// What keeps a place, or a witness in it, from being read.
pub fn furthest(media: &[PathBuf], fork: &[u8; 16]) -> Result<Option<Lsn>> {
    let mut found = None;
    for path in media {
        let Some(place) = place_at(path)? else { continue };
        let is_one = |name: &String| name.rsplit('/').next() == Some(NAME);
        for name in place.list(None)?.into_iter().filter(is_one) {
            let Some((bytes, _)) = place.small(&name)? else { continue };
            let says = Says::read(bytes, &place.path_of(&name), false)?;
            found = found.max(Some(says.lsn).filter(|_| says.fork == *fork));
        }
    }
    Ok(found)
}

impl Shipper {
    /// Looks at the witness of the place, once, before anything is put there.
    ///
    /// # Errors
    /// As [`compare`].
    pub(super) fn consult(&mut self) -> std::result::Result<(), JobError> {
        if self.witness.seen.is_some() {
            return Ok(());
        }
        let signer = |header: &Header| Ok(self.owner_of(header.clone(), [0; 16])?.signer.is_some());
        let (seen, says) = compare(&self.database, (&self.place, &self.folder), &signer)?;
        let says = says.unwrap_or(Lsn::NONE);
        let renewed = seen.is_some().then(Instant::now);
        self.witness = Kept { seen: Some(seen), says, renewed, told: self.witness.told.take() };
        Ok(())
    }

    /// Forgets what was seen in the place, which is looked at again.
    pub(super) fn look_again(&mut self) {
        (self.chain, self.prepared, self.witness.seen) = (None, None, None);
    }

    /// Renews the witness before more is put, if that is long ago: an archiver of another copy, which has renewed it meanwhile, is
    /// found by that before two sets go on behind one commit. What a merging of that one removes is older than the time in between.
    ///
    /// # Errors
    /// As [`Shipper::renew`].
    pub(super) fn renew_if_old(
        &mut self,
        owner: &Owner,
        state: &ArchiveState,
        tell: &mut dyn FnMut(News),
    ) -> std::result::Result<(), JobError> {
        let every = self.options.merge.map_or(EVERY, |merge| EVERY.min(merge / 2));
        match self.witness.renewed.is_some_and(|at| at.elapsed() < every) || self.options.once {
            true => Ok(()),
            false => self.renew(owner, state, tell),
        }
    }

    /// The same for who ends behind it, or is about to remove sets, if the one that is there does not say it already.
    ///
    /// # Errors
    /// As [`Shipper::renew`].
    pub(super) fn renew_if_behind(
        &mut self,
        owner: &Owner,
        state: &ArchiveState,
        tell: &mut dyn FnMut(News),
    ) -> std::result::Result<(), JobError> {
        match state.backed_up > self.witness.says {
            true => self.renew(owner, state, tell),
            false => Ok(()),
        }
    }

    /// Puts a new witness in the place of the one that was seen, by a state that is synced.
    ///
    /// # Errors
    /// As [`compare`]. What else keeps it from being renewed is told, and keeps no commit from being shipped.
    fn renew(
        &mut self,
        owner: &Owner,
        state: &ArchiveState,
        tell: &mut dyn FnMut(News),
    ) -> std::result::Result<(), JobError> {
        let name = format!("{}/{NAME}", self.folder);
        let bytes = self.made(owner, state)?;
        let over = self.witness.seen.clone().flatten();
        let replaced = match self.place.replace(&name, bytes.clone(), over.as_ref()) {
            Ok(None) => self.after_another(&name, bytes),
            replaced => replaced.map_err(JobError::from),
        };
        // The next one is not tried at once, whatever came of it.
        self.witness.renewed = Some(Instant::now());
        match replaced {
            Ok(Some(seen)) => {
                (self.witness.seen, self.witness.says) = (Some(Some(seen)), state.backed_up);
                self.witness.told = None;
                Ok(())
            }
            // Another process of this database replaces it just now: what it says was compared a moment ago.
            Ok(None) => {
                self.witness.seen = None;
                Ok(())
            }
            Err(error) if is_of_store(&error) => self.no_witness(&error.to_string(), tell),
            Err(error) => Err(error),
        }
    }

    /// Something else is there than was seen: the own one, whose answer was lost, or another archiver's.
    fn after_another(
        &mut self,
        name: &str,
        bytes: Vec<u8>,
    ) -> std::result::Result<Option<Seen>, JobError> {
        if let Some((found, seen)) = self.place.small(name)? {
            if found == bytes {
                return Ok(Some(seen));
            }
        }
        self.witness.seen = None;
        self.consult()?;
        let over = self.witness.seen.clone().flatten();
        Ok(self.place.replace(name, bytes, over.as_ref())?)
    }

    fn no_witness(
        &mut self,
        why: &str,
        tell: &mut dyn FnMut(News),
    ) -> std::result::Result<(), JobError> {
        let why = format!(
            "the place has no new witness, so that it does not tell when the database is put back: {why}"
        );
        if self.witness.told.as_ref() != Some(&why) {
            tell(News::Left { why: why.clone() });
            self.witness.told = Some(why);
        }
        Ok(())
    }

    fn made(&self, owner: &Owner, state: &ArchiveState) -> std::result::Result<Vec<u8>, JobError> {
        let mut job = self.job(NAME);
        job.name = NAME.to_owned();
        job.description = Sequences(owner.header.sequence, state.sequence).to_string();
        bytes_of_log(
            &job,
            LogOf {
                header: owner.header.clone(),
                place: ChainPlace {
                    fork: state.fork,
                    first: state.backed_up,
                    last: state.backed_up,
                },
                facts: LogFacts { full: state.base, ..LogFacts::default() },
                pages: 1,
                begun: now_micros(),
                before: Some(state.last_set),
            },
        )
    }
}

/// Whether a store or a disk says no, and nothing speaks against the database.
fn is_of_store(error: &JobError) -> bool {
    matches!(error, JobError::Database(pellucid_host::DatabaseError::Typed(Error::Io { .. })))
}

/// Media in memory.
struct Bytes {
    bytes: Vec<u8>,
    path: PathBuf,
}

impl MediaSource for Bytes {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let rest = &self.bytes[from..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn name(&self) -> PathBuf {
        self.path.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequences_read_back_and_nothing_else_does() {
        let text = Sequences(7, u64::MAX).to_string();
        assert_eq!(Sequences::parse(&text), Some((7, u64::MAX)));
        for other in ["", "header sequence 7", "header sequence 07, archive sequence 1"] {
            assert_eq!(Sequences::parse(other), None, "{other}");
        }
        assert_eq!(Sequences::parse(&format!("{text} ")), None);
    }
}
