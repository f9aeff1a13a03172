//! A backup from its first look at the media to its entry in the history.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid::clock::now_micros;
use pellucid::header::Header;
use pellucid::media::{
    Compression, Description, Kind, Manifest, MediaHeader, MediaVersion, SetHeader, Version2,
    CHUNK_BYTES,
};
use pellucid::secret::fill_random;
use pellucid::shown::Shown;
use pellucid::unit::TAIL_BYTES;
use pellucid::{Error, Subject};
use pellucid_engine::convert::switch::check_space;
use pellucid_engine::inspect::{inspect, not_a_database, Kind as Found};
use pellucid_files::paths::{beside, directory_of, full_name};
use pellucid_host::DatabaseError;
use pellucid_keyring::{Action, Event};
use pellucid_vfs::pins::{Expectation, Lesser};
use pellucid_vfs::seal_request::{Credentials, Protection, Request};

use super::chain::{check_base, page_of};
use super::clear::Believe;
use super::error::JobError;
use super::leftovers::leftovers;
use super::media::open_media;
use super::plan::Job;
use super::seal::{seal, signer, thumbprint};
use super::standing::{standing_to_build_on, Looked};
use super::targets::{is_file, new_name, Targets};
use crate::history;
use crate::history::{chain_at, chain_of, Begun, FamilyFile, History, Link, Origin, SetRecord};
use crate::restore::OpenSet;
use crate::set::{write_set_telling, Base, NewSet, Options, PageSource, Spool, Written};
use crate::snapshot::Snapshot;

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
    /// Mirrors that failed.
    pub fenced: Vec<(PathBuf, std::io::Error)>,
    /// Working files of stopped backups that were removed.
    pub cleared: Vec<PathBuf>,
    /// Pages that could not be read.
    pub missing: Vec<(u32, Error)>,
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
    let before = sealed_header(&job.database)?;
    let was_sealed = before.is_some();
    let encrypted = was_sealed || !job.protections.is_empty();
    let credentials = Credentials::gather(&Request::default())?;
    let version = match wants_version2(job, before.as_ref(), encrypted, &credentials)? {
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
    let base = base(job, was_sealed, &credentials)?;
    settle_chain(job, before.as_ref());
    // Dropped behind the files.
    let mut known = BegunSet::default();
    let mut targets =
        Targets::prepare(&job.files, &job.rules, media_header, expected_bytes(&database))?;

    let begun = now_micros();
    let snapshot = Snapshot::begin(&job.database, job.timeout)?;
    let started = Instant::now();
    // Another process may have encrypted the database since the first look, or changed its
    // protectors. From here on none can.
    let sealed = snapshot.sealed_header()?;
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
    let mut header = set_header(job, &snapshot, &targets, sealed.as_ref(), begun)?;
    if let Some(full) = &base {
        header.base = full.header.set;
    }
    let keys = match encrypted {
        true => {
            Some(seal(&mut header, job.algorithm, &job.protections, sealed.as_ref(), &credentials)?)
        }
        false => None,
    };
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
        let base = base.as_ref().map(|full| &full.pages);
        let mut tell = |done, stored| tell(Phase::Writing, done, stored);
        let mut commits = |hash| known.write_down(&to_begin, hash);
        let families = targets.families();
        Ok(write_set_telling(source, &set, base, families, &options, &mut tell, &mut commits)?)
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
    let fenced: Vec<_> = written.fenced.iter().map(|(path, _)| path.clone()).collect();
    let (header, description) = (set.header, set.description);
    let media = targets.header.clone();
    let can_be_read = targets.can_be_read();
    let mut replaced = targets.replaced().to_vec();
    replaced.retain(|path| !fenced.contains(path) && !fenced.contains(&new_name(path)));
    targets.finish(&fenced)?;
    known.keep();
    let manifest = &written.manifest;
    let files = job.files.present(&fenced);
    if can_be_read {
        assert_written(&files, &header)?;
    }
    let record = SetRecord {
        media: &media,
        set: &header,
        manifest,
        description: &description,
        files: &files,
        replaced: &replaced,
        link: Link { manifest: written.hash, signer: thumbprint, origin: Origin::Own },
    };
    let unrecorded = history::told(record_set(&record));
    let cleared = clear_away(job);
    Ok(Done {
        header,
        manifest: written.manifest,
        fenced: job.files.as_named(written.fenced),
        cleared,
        missing: written.missing,
        signer: signer.as_ref().map(|own| own.public().name().to_owned()),
        could_be_signed: version == MediaVersion::Two
            && media.version == MediaVersion::One
            && !job.unsigned,
        told: base.map(|full| full.told).unwrap_or_default(),
        held,
        unrecorded,
    })
}

/// Removes the working files of stopped backups beside the files of this one. One that cannot be removed is for `doctor`.
fn clear_away(job: &Job) -> Vec<PathBuf> {
    let files = job.files.all();
    let on_disk = files.iter().filter(|path| is_file(path));
    let dead =
        leftovers(on_disk.map(|path| directory_of(path))).into_iter().filter(|one| one.is_dead);
    dead.filter(|one| one.remove().is_ok()).map(|one| one.path).collect()
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

fn record_set(record: &SetRecord<'_>) -> Result<(), DatabaseError> {
    match History::open_or_begin()? {
        Some(history) => history.record_set(record).map(drop),
        None => Ok(()),
    }
}

/// Returns the header of a sealed database, `None` for a plain one. Only used before the database
/// is held.
fn sealed_header(database: &Path) -> Result<Option<Header>, DatabaseError> {
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
    /// What speaks against its place in the chain of the database.
    told: Vec<String>,
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
    let pages = Base { page_hash_key: set.page_hash_key(), hashes: set.page_hashes()? };
    let (header, hash) = (set.header().clone(), set.hash());
    Ok(Some(FullSet { header, hash, pages, told: told.collect() }))
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

/// Whether something asks for media of version 2: a certificate that can sign, or padding.
fn wants_version2(
    job: &Job,
    sealed: Option<&Header>,
    encrypted: bool,
    credentials: &Credentials,
) -> Result<bool, DatabaseError> {
    if job.padded && !encrypted {
        let what =
            "only an encrypted backup is padded: its length shows in a backup in clear as well";
        return Err(Error::misuse(Subject::Option("padding".into()), what).into());
    }
    let is_certificate = |one: &Protection| matches!(one, Protection::Certificate(_));
    let signs = match job.protections.is_empty() {
        true => sealed.is_some_and(|header| signer(&header.protectors, credentials).is_some()),
        false => job.protections.iter().any(is_certificate),
    };
    Ok(job.padded || (signs && !job.unsigned))
}

/// Joins a set of version 2 to the set before it in the chain of its database: the last one that the history knows or, where
/// it knows none, the last one on the media.
fn join(
    job: &Job,
    header: &mut SetHeader,
    said: &Description,
    is_signed: bool,
    targets: &Targets,
) -> Result<(), DatabaseError> {
    if targets.header.version == MediaVersion::One {
        if job.padded {
            let what =
                "these media are of version 1, which has no padding: make new ones (`--format`)";
            return Err(Error::misuse(Subject::Option("padding".into()), what).into());
        }
        return Ok(());
    }
    if targets.has_signed && !is_signed {
        let or = match job.unsigned {
            true => "leave `--unsigned` away",
            false => "protect it by a certificate whose private key is at hand",
        };
        return Err(Error::misuse(
            Subject::BackupSet(header.position),
            format!(
                "the backup sets before it on these media are signed, and it would not be: take other media, or {or}"
            ),
        )
        .into());
    }
    let known = chain_of(header, said).and_then(|chain| {
        let history = History::open().ok().flatten()?;
        history.last_of_chain(&chain).ok().flatten()
    });
    let on_media = || {
        let mut sets = targets.before.iter().rev();
        let source = header.source;
        sets.find(|(of, _)| *of == source && source != [0; 16]).map(|(_, hash)| *hash)
    };
    let before = known.or_else(on_media).unwrap_or_default();
    header.version2 = Some(Version2 { before, padded: job.padded, ..Version2::default() });
    Ok(())
}

fn new_media(
    job: &Job,
    encrypted: bool,
    version: MediaVersion,
) -> Result<MediaHeader, DatabaseError> {
    let mut media_set = [0; 16];
    fill_random(&mut media_set)?;
    Ok(MediaHeader {
        version,
        media_set,
        families: job.files.families.len() as u16,
        family: 1,
        mirrors: job.files.mirrors.len() as u8 + 1,
        mirror: 0,
        compressed: job.compression != Compression::None,
        encrypted,
        made: now_micros(),
        name: job.media_name.clone(),
        description: job.media_description.clone(),
    })
}

fn set_header(
    job: &Job,
    snapshot: &Snapshot,
    targets: &Targets,
    sealed: Option<&Header>,
    begun: u64,
) -> Result<SetHeader, DatabaseError> {
    let (mut set, mut page_hash_key) = ([0; 16], [0; 32]);
    fill_random(&mut set)?;
    fill_random(&mut page_hash_key)?;
    let page_size = snapshot.page_size();
    Ok(SetHeader {
        version2: None,
        media_set: targets.header.media_set,
        set,
        family: 1,
        families: targets.header.families,
        position: targets.position,
        kind: if job.differential.is_some() { Kind::Differential } else { Kind::Full },
        algorithm: None,
        compression: job.compression,
        copy_only: job.copy_only && job.differential.is_none(),
        sealed_source: sealed.is_some(),
        page_size,
        pages: snapshot.pages(),
        chunk_pages: (CHUNK_BYTES as u32 / page_size.max(512)).max(1),
        begun,
        expires: job.expires,
        source: sealed.map_or([0; 16], |header| header.file_id),
        base: [0; 16],
        commitment: [0; 32],
        source_thumbprint: sealed.map_or([0; 32], thumbprint),
        page_hash_key,
        flags: pellucid::flags::Flags::default(),
        protectors: Vec::new(),
        description: Vec::new(),
    })
}

fn description(job: &Job) -> Description {
    let from_environment = || std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    let user = job.user.clone().or_else(from_environment).unwrap_or_default();
    Description {
        database: job.database_name.clone().unwrap_or_else(|| database_name(&job.database)),
        path: full_name(&job.database),
        name: job.name.clone(),
        description: job.description.clone(),
        user,
        machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        server: job.server.clone(),
    }
    // A name from the system may have control characters; a name from the caller was checked.
    .readable()
}

/// Looks whether backups of the database that were stopped before the history knew of them were finished.
fn settle_chain(job: &Job, sealed: Option<&Header>) {
    let chain =
        chain_at(sealed.map_or([0; 16], |header| header.file_id), &full_name(&job.database));
    // A history that cannot be read or written counts as none.
    if let (Some(chain), Ok(Some(history))) = (chain, History::open()) {
        let _ = history.settle_begun(&chain);
    }
}

/// The set that is being written, which the history knows as begun. A drop before [`BegunSet::keep`] takes that back if the
/// set is not there.
#[derive(Debug, Default)]
struct BegunSet(Option<[u8; 16]>);

impl BegunSet {
    /// Without a history, or with one that cannot be written, it is known when it is finished.
    fn write_down(&mut self, begun: &Begun<'_>, manifest: [u8; 32]) {
        if let Ok(Some(history)) = History::open_or_begin() {
            self.0 = history.begin_set(begun, manifest).is_ok().then_some(begun.set);
        }
    }

    fn keep(&mut self) {
        self.0 = None;
    }
}

impl Drop for BegunSet {
    fn drop(&mut self) {
        if let (Some(set), Ok(Some(history))) = (self.0, History::open()) {
            let _ = history.forget_begun(&set);
        }
    }
}

/// Makes a database's name: that of its file without the last extension.
fn database_name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
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

/// Reads the set's header again from the media, and checks that it is sealed if it should be.
fn assert_written(files: &[FamilyFile], header: &SetHeader) -> Result<(), DatabaseError> {
    let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
    let media = open_media(&paths)?;
    let sets = media.set(header.position)?;
    let same = |set: &SetHeader| set.set == header.set && set.algorithm == header.algorithm;
    if sets.iter().flatten().all(|(_, found)| same(&found.header)) {
        return Ok(());
    }
    Err(Error::corrupt(
        Subject::BackupSet(header.position),
        "what is on the media is not what was written",
    )
    .into())
}
