//! A backup from its first look at the media to its entry in the history.

mod conclude;
mod expected;
mod facts;
pub(crate) mod log;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid::clock::now_micros;
use pellucid::hash::hex;
use pellucid::header::Header;
use pellucid::lsn::Lsn;
use pellucid::media::{ChainPlace, Description, Kind, Manifest, MediaVersion, SetHeader};
use pellucid::shown::Shown;
use pellucid::unit::TAIL_BYTES;
use pellucid::{Error, Subject};
use pellucid_engine::convert::switch::check_space;
use pellucid_engine::inspect::{inspect, not_a_database, Kind as Found};
use pellucid_engine::log_chain;
use pellucid_files::paths::{beside, full_name};
use pellucid_host::DatabaseError;
use pellucid_keyring::{Action, Event};
use pellucid_vfs::pins::{Expectation, Lesser};
use pellucid_vfs::seal_request::{Credentials, Request};

use super::chain::{check_base, page_of};
use super::clear::Believe;
use super::error::JobError;
use super::media::open_media;
use super::plan::Job;
use super::seal::{seal, signer};
use super::standing::{standing_to_build_on, Looked};
use super::store::url_of;
use super::targets::Targets;
use crate::history::Begun;
use crate::restore::OpenSet;
use crate::set::{write_set_telling, Against, Base, NewSet, Options, PageSource, Spool, Written};
use crate::snapshot::Snapshot;
use conclude::{settle_chain, BegunSet, Concluding};
pub use expected::compare_with_last;
use expected::{base_of_list, why_not, Before};
use facts::{database_name, description, join, new_media, set_header, wants_version2};

/// The step of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Copying pages aside; no connection can commit meanwhile.
    Spooling,
    /// Reading, compressing, sealing, writing.
    Writing,
}

/// The progress of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The step.
    pub phase: Phase,
    /// Pages done.
    pub pages: u32,
    /// Pages in all.
    pub all: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Bytes stored.
    pub stored: u64,
}

/// A backup that was made.
#[derive(Debug)]
pub struct Done {
    /// The header of its set.
    pub header: SetHeader,
    /// The manifest, which commits the set.
    pub manifest: Manifest,
    /// Its hash.
    pub hash: [u8; 32],
    /// Mirrors that failed.
    pub fenced: Vec<(PathBuf, std::io::Error)>,
    /// Working files of stopped backups that were removed.
    pub cleared: Vec<PathBuf>,
    /// Pages that could not be read.
    pub missing: Vec<(u32, Error)>,
    /// Pages that no commit made what they are, in a backup that goes on after errors.
    pub older: Vec<u32>,
    /// The name of the certificate that signed it.
    pub signer: Option<String>,
    /// Whether it would be signed on new media: these are of version 1.
    pub could_be_signed: bool,
    /// What speaks against the place of a differential's full set in the chain of the database.
    pub told: Vec<String>,
    /// How long no connection could commit. `None` in WAL mode.
    pub held: Option<Duration>,
    /// Why the history has no entry of it, if there is a history and the entry failed.
    pub unrecorded: Option<String>,
}

/// Makes a backup.
///
/// `progress` is called with how far it is. The database may be held during the call, so `progress`
/// must not open it: closing it again would drop the locks (howtocorrupt.html, 2.2).
///
/// # Errors
/// [`JobError`]. The media have no new set then, and are as before.
pub fn back_up(job: &Job, progress: &mut dyn FnMut(&Progress)) -> Result<Done, JobError> {
    Description::check_given(&job.name, &job.description)?;
    if let Some(log) = &job.log {
        return log::back_up_log(job, log, progress);
    }
    let before = sealed_header(&job.database)?;
    let was_sealed = before.is_some();
    let encrypted = was_sealed || !job.protections.is_empty();
    let credentials = Credentials::gather(&Request::default())?;
    let has_chain = before.as_ref().is_some_and(log_chain::wants_chain);
    let version = match wants_version2(job, before.as_ref(), encrypted, &credentials)? || has_chain
    {
        true => MediaVersion::Two,
        false => MediaVersion::One,
    };
    let media_header = new_media(job, encrypted, version)?;
    // The names are checked before anything is touched.
    media_header.encode()?;
    // The logs lie beside the file itself, not beside a symbolic link to it.
    let database = job.database.canonicalize();
    let database = database.map_err(|e| Error::io(Subject::File(job.database.clone()), e))?;
    job.files.spare(&database, job.rules.existing, job.differential.as_deref())?;
    let mut base = base(job, was_sealed, &credentials)?;
    settle_chain(job, before.as_ref());
    // Dropped behind the files.
    let mut known = BegunSet::default();
    let mut targets =
        Targets::prepare(&job.files, &job.rules, media_header, expected_bytes(&database))?;

    let begun = now_micros();
    let first = if has_chain { moment_before(job, &database)? } else { None };
    let listed = first.and_then(|_| base_of_list(&database));
    let snapshot = Snapshot::begin(&job.database, job.timeout)?;
    let started = Instant::now();
    // Another process may have encrypted the database since the first look, or changed its
    // protectors. From here on none can.
    let sealed = snapshot.sealed_header()?;
    assert_meant(job, sealed.as_ref())?;
    if sealed.is_some() != was_sealed {
        return Err(Error::misuse(
            Subject::File(job.database.clone()),
            "it was encrypted or decrypted while the backup was prepared: begin it again",
        )
        .into());
    }
    if snapshot.pages() == 0 {
        return Err(empty(&job.database).into());
    }
    let kind = if job.differential.is_some() { Kind::Differential } else { Kind::Full };
    let size = (kind, snapshot.page_size(), snapshot.pages());
    let mut header = set_header(job, size, &targets, sealed.as_ref(), begun)?;
    if let Some(full) = &base {
        header.base = full.header.set;
    }
    let keys = match encrypted {
        true => {
            Some(seal(&mut header, job.algorithm, &job.protections, sealed.as_ref(), &credentials)?)
        }
        false => None,
    };
    if let Some(full) = &mut base {
        full.read_only_what_changed(&database);
    }
    let before = match base.is_none() && first.is_some() {
        true => {
            let to_store = job.files.families.iter().any(|path| url_of(path).is_some());
            let of = (header.page_size, header.source);
            Before::find(&database, of, listed, to_store, &credentials)
        }
        false => None,
    };
    let is_compared = before.is_some() || base.is_some() || first.is_none();
    let not_compared = if is_compared { None } else { why_not(&database) };
    if let Some(full) = &base {
        check_base(&full.header, &header, Believe::default()).map_err(unfit)?;
    }
    if encrypted {
        Event::new(Action::BackedUp, "database").of(full_name(&database)).record_here()?;
    }
    let description = description(job);
    let signer = match targets.header.version {
        MediaVersion::Two if !job.unsigned => signer(&header.protectors, &credentials),
        _ => None,
    };
    join(job, &mut header, &description, signer.is_some(), &targets)?;
    if let (Some(full), Some(own)) = (&base, &mut header.version2) {
        own.base = full.hash;
    }
    if let Some((fork, first)) = first {
        let last = snapshot.moment()?.unwrap_or(first);
        match &mut header.version2 {
            Some(own) => own.chain = Some(ChainPlace { fork, first, last }),
            None => return Err(no_place(&targets, header.position).into()),
        }
    }
    let thumbprint = signer.as_ref().map(|own| *own.public().thumbprint());
    let files = job.files.present(&[]);
    let to_begin = Begun::new(&header, &description, thumbprint, &files);
    let set = NewSet { header, description, keys: keys.as_ref(), signer: signer.as_ref() };
    let mut held = None;
    let (all, page_size) = (set.header.pages, set.header.page_size);
    let mut tell = |phase, pages, stored| {
        progress(&Progress { phase, pages, all, page_size, stored });
    };
    let mut write = |source: &mut dyn PageSource,
                     tell: &mut dyn FnMut(Phase, u32, u64)|
     -> Result<Written, JobError> {
        let options = Options {
            workers: job.workers,
            level: job.level,
            continue_after_error: job.continue_after_error,
        };
        let against = Against {
            base: base.as_ref().map(|full| &full.pages),
            expected: before.as_ref().map(|before| before.expected.as_ref()),
        };
        let mut tell = |done, stored| tell(Phase::Writing, done, stored);
        let mut commits = |hash| known.write_down(&to_begin, hash);
        let families = targets.families();
        write_set_telling(source, &set, against, families, &options, &mut tell, &mut commits)
            .map_err(|error| match &before {
                Some(before) => before.in_place_of(error, job),
                None => error.into(),
            })
    };
    let written = if snapshot.lets_write() || job.no_spool {
        let written = write(&mut snapshot.reader()?, &mut tell)?;
        assert_same(job, &snapshot)?;
        if !snapshot.lets_write() {
            held = Some(started.elapsed());
        }
        written
    } else {
        let mut spool = spool(job, &snapshot, &mut |pages| tell(Phase::Spooling, pages, 0))?;
        assert_same(job, &snapshot)?;
        drop(snapshot);
        held = Some(started.elapsed());
        write(&mut spool, &mut tell)?
    };
    let moment =
        set.header.version2.and_then(|own| own.chain).filter(|_| !job.copy_only && base.is_none());
    let mut told = base.map(|full| full.told).unwrap_or_default();
    let older = before.as_ref().map_or(Vec::new(), |before| before.older(&written));
    told.extend(match before {
        Some(before) => before.told(job, &older),
        None => not_compared,
    });
    let done = Concluding {
        job,
        targets,
        known,
        set: (set.header, set.description),
        signer,
        wanted: version,
    }
    .conclude(written)?;
    if let Some(place) = moment {
        log_chain::has_base(&database, (place.fork, place.first, place.last), done.hash)?;
    }
    Ok(Done { told, older, held, ..done })
}

/// Begins a chain of log backups if the recovery model asks for one and none has begun. Returns its fork, and a moment that is not
/// behind the snapshot which comes next.
fn moment_before(job: &Job, database: &Path) -> Result<Option<([u8; 16], Lsn)>, JobError> {
    let fork = match job.copy_only || job.differential.is_some() {
        true => log_chain::fork_at(database)?,
        false => log_chain::begin(database)?,
    };
    let Some(fork) = fork else { return Ok(None) };
    Ok(log_chain::moment(database)?.map(|first| (fork, first)))
}

/// Refuses another database than the one that was meant. `header` is that of the file that was opened.
pub(crate) fn assert_meant(job: &Job, header: Option<&Header>) -> Result<(), Error> {
    let Some(meant) = job.file_id else { return Ok(()) };
    let is_it = |header: &Header| header.file_id == meant && !header.is_switched_off();
    match header.is_some_and(is_it) {
        true => Ok(()),
        false => Err(Error::replaced(
            Subject::File(job.database.clone()),
            format!("it is not the encrypted database with the file id {} any more", hex(&meant)),
        )),
    }
}

fn no_place(targets: &Targets, position: u32) -> Error {
    debug_assert!(targets.header.version == MediaVersion::One);
    Error::misuse(
        Subject::BackupSet(position),
        "the database has a chain of log backups, and media of version 1 have no place for it: make new ones (`--format`)",
    )
}

/// Checks that the database is still the file that was opened. The read of the last page checks
/// that too, but a backup that continues after errors takes that error for a damaged page.
fn assert_same(job: &Job, snapshot: &Snapshot) -> Result<(), DatabaseError> {
    match snapshot.assert_same() {
        // Each missing page was reported.
        Err(_) if job.continue_after_error && !snapshot.has_first() => Ok(()),
        looked => Ok(looked?),
    }
}

/// The approximate bytes that a family gets: all of the database, because chunks go where there is
/// room, and what its WAL may add.
fn expected_bytes(database: &Path) -> u64 {
    let bytes =
        |path: &Path| pellucid_files::paths::look(path).map_or(0, |metadata| metadata.len());
    bytes(database) + bytes(&beside(database, "-wal"))
}

fn empty(database: &Path) -> DatabaseError {
    let what = "it is empty: there is nothing to back up";
    Error::misuse(Subject::File(database.to_owned()), what).into()
}

/// Returns the header of a sealed database, `None` for a plain one. Only used before the database
/// is held.
pub(crate) fn sealed_header(database: &Path) -> Result<Option<Header>, DatabaseError> {
    let misuse =
        |what: &'static str| Err(Error::misuse(Subject::File(database.to_owned()), what).into());
    match inspect(database)?.kind {
        // The pages are in clear during a switch, but the database is meant to be encrypted.
        Found::Sealed(sealed) => Ok(Some(sealed.header)),
        Found::Plain => Ok(None),
        Found::Empty => {
            // Where an encrypted database is expected, that is what is wrong with it.
            Expectation::at(database)
                .and_then(|expected| expected.refuse_lesser(Lesser::Empty))
                .map_err(|error| error.of_file(database))?;
            Err(empty(database))
        }
        Found::Unfinished => misuse(
            "an encryption or decryption of it was interrupted: `pellucid check` finishes the work",
        ),
        Found::Damaged(error) => Err(error.into()),
        _ => Err(not_a_database(database).into()),
    }
}

/// The full set that a differential is based on.
struct FullSet {
    header: SetHeader,
    /// The hash of its manifest.
    hash: [u8; 32],
    pages: Base,
    /// Pages that could not be read then.
    missing: Vec<u32>,
    /// What speaks against its place in the chain of the database.
    told: Vec<String>,
}

impl FullSet {
    /// Finds out from a chain of log backups which pages commits have changed since. Called behind the snapshot: what is known then has
    /// all of its commits. Where the chain does not say it, every page is compared.
    fn read_only_what_changed(&mut self, database: &Path) {
        let found = log_chain::changed_since(database, &self.hash);
        self.pages.only = found.ok().flatten().map(|mut changed| {
            self.missing.iter().for_each(|page| changed.add(*page));
            changed
        });
    }
}

/// Finds the last full set on the media that a differential is based on.
fn base(job: &Job, sealed: bool, credentials: &Credentials) -> Result<Option<FullSet>, JobError> {
    let Some(paths) = &job.differential else { return Ok(None) };
    let media = open_media(paths)?;
    // A newer full set may be there, which would be the one.
    media.refuse_cut()?;
    let full = (1..=media.sets()).rev().find(|position| {
        let found = media.set(*position);
        let header = found.ok().and_then(|set| set.first()?.first().map(|(_, set)| &set.header));
        header.is_some_and(|header| header.kind == Kind::Full && !header.copy_only)
    });
    let Some(full) = full else {
        return Err(Error::message(
            pellucid::message::NO_DATABASE_BACKUP,
            &database_name(&job.database),
        )
        .into());
    };
    let set = OpenSet::open(&media, full, credentials).map_err(|error| match error {
        // The set may be under the protectors that the database had before a rotation.
        Error::MissingKey { cause, .. } => {
            let names: Vec<String> =
                paths.iter().map(|path| format!("`{}`", path.shown())).collect();
            let what = format!("the full backup in {} does not open: {cause}", names.join(", "));
            JobError::FullBackupLocked(Error::missing_key(Subject::Container, what))
        }
        other => other.into(),
    })?;
    // Pages are left out because of what it says of them, so it has to be the one that this instance knows.
    let told = standing_to_build_on(&Looked::at(&set), &media, paths)?;
    let told = told.into_iter().map(|what| format!("the full set, backup set {full}: {what}"));
    if sealed && !set.header().sealed_source && !has_room(&set)? {
        return Err(JobError::FullBackupNeeded(Error::misuse(
            Subject::BackupSet(full),
            "the database was not encrypted then, and its pages have no room for tags: a full backup has to come between",
        )));
    }
    let hashes = set.page_hashes()?;
    let pages = Base { page_hash_key: set.page_hash_key(), hashes, only: None };
    let missing = set.index().missing.clone();
    let (header, hash) = (set.header().clone(), set.hash());
    Ok(Some(FullSet { header, hash, pages, missing, told: told.collect() }))
}

/// Makes the error for a full backup that the differential does not fit.
fn unfit(error: Error) -> JobError {
    match error {
        misuse @ Error::Misuse { .. } => JobError::FullBackupNeeded(misuse),
        other => other.into(),
    }
}

/// Whether the pages of a set have room for a tail behind their content (SQLite file format,
/// 1.3.4).
fn has_room(set: &OpenSet<'_>) -> Result<bool, Error> {
    let first = page_of(set, 1, set.header().page_size as usize)?;
    Ok(first.is_some_and(|page| page.get(20).copied() == Some(TAIL_BYTES as u8)))
}

/// Makes the spool of pages in the directory of the first file, which needs room anyway.
fn spool(
    job: &Job,
    snapshot: &Snapshot,
    progress: &mut dyn FnMut(u32),
) -> Result<Spool, DatabaseError> {
    let bytes = u64::from(snapshot.pages()) * u64::from(snapshot.page_size());
    let beside = job.files.families.first().filter(|path| path.parent().is_some_and(Path::is_dir));
    let beside = beside.unwrap_or(&job.database);
    check_space(beside, bytes + bytes / 16)?;
    let directory = pellucid_files::paths::directory_of(beside);
    let mut source = snapshot.reader()?;
    let (page_size, pages) = (snapshot.page_size(), snapshot.pages());
    let go_on = job.continue_after_error;
    Ok(Spool::fill(&mut source, page_size, pages, directory, go_on, progress)?)
}
