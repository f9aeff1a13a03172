//! A backup of the log: the commits that no log backup has yet.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pellucid::clock::now_micros;
use pellucid::header::{Header, RecoveryModel, Standing};
use pellucid::media::{ChainPlace, Kind, LogCommit, LogFacts, MediaVersion, Version2};
use pellucid::{message, Error, Result as Outcome, Subject};
use pellucid_engine::log_chain::{model_of, of_version_1, KeptLog, Marked, Tail};
use pellucid_engine::standing;
use pellucid_files::paths::full_name;
use pellucid_host::connection::Handle;
use pellucid_host::DatabaseError;
use pellucid_keyring::{Action, Event};
use pellucid_vfs::seal_request::{Credentials, Request};

use super::conclude::{settle_chain, BegunSet, Concluding};
use super::facts::{description, join, new_media, set_header};
use super::{no_place, sealed_header, Done, Phase, Progress};
use crate::history::{self, Begun, History, MarkRecord};
use crate::job::error::JobError;
use crate::job::plan::{Job, LogJob};
use crate::job::seal::{seal, signer};
use crate::job::targets::Targets;
use crate::set::{write_log_set, LogSource, MediaSink, NewSet, Options};

/// Makes a backup of the log.
///
/// # Errors
/// [`JobError`]. The media have no new set then, and the next log backup has the same commits.
pub(super) fn back_up_log(
    job: &Job,
    log: &LogJob,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Done, JobError> {
    if log.leave == Standing::Online {
        return make(job, log, progress);
    }
    let mut made = None;
    // Whoever commits waits for the set, and finds the database closed behind it.
    let left = standing::change(&job.database, log.leave, || {
        let done = make(job, log, progress);
        let failed = done.is_err();
        made = Some(done);
        match failed {
            true => {
                Err(Error::misuse(Subject::File(job.database.clone()), "no tail was made").into())
            }
            false => Ok(()),
        }
    });
    match (made, left) {
        (Some(done), Ok(_)) => done,
        // Its file is gone or damaged: nobody commits.
        (None, Err(error)) => match JobError::from(error) {
            error if log.no_truncate && is_of_file(&error) => make(job, log, progress),
            error => Err(error),
        },
        (Some(Err(error)), Err(_)) => Err(error),
        (Some(Ok(_)), Err(error)) => Err(error.into()),
        (None, Ok(_)) => Err(Error::misuse(
            Subject::File(job.database.clone()),
            format!("it is {} already: `pellucid restore --online` ends that", log.leave.name()),
        )
        .into()),
    }
}

fn make(job: &Job, log: &LogJob, progress: &mut dyn FnMut(&Progress)) -> Result<Done, JobError> {
    let credentials = Credentials::gather(&Request::default())?;
    let begun = now_micros();
    let found = pellucid_files::paths::resolved(&job.database);
    let database = found.as_ref().unwrap_or(&job.database).clone();
    new_media(job, true, MediaVersion::Two)?.encode()?;
    job.files.spare(&database, job.rules.existing, None)?;
    let by_database = found.map_err(JobError::from).and_then(|path| open(job, &path));
    let (mut kept, said) = match by_database {
        Err(error) if log.no_truncate && is_of_file(&error) => open_tail(job, &credentials, error)?,
        opened => (opened?, Told::default()),
    };
    if !kept.state().has_base {
        return Err(Error::message(message::NO_CURRENT_BACKUP, "").into());
    }
    let job = &Job { copy_only: job.copy_only || log.no_truncate, ..job.clone() };
    let mut done = back_up_kept(job, &mut kept, (begun, said.has_gap), progress)?;
    done.told.splice(0..0, said.lines);
    if !job.copy_only {
        kept.is_backed_up(done.hash)?;
    }
    Ok(done)
}

/// Whether the database has a chain of log backups.
///
/// # Errors
/// [`JobError`], in the words of SQL Server's.
pub fn check_log(job: &Job) -> Result<(), JobError> {
    refuse_without_chain(job, &pellucid_files::paths::resolved(&job.database)?)
}

/// Opens the commits that no log backup has yet. Later ones than of the moment that is given back may be missing among them.
///
/// It is for a database that this process may have open: nothing opens the file behind SQLite's back, whose locks would go.
///
/// # Errors
/// [`JobError`]: there is no chain, of which [`check_log`] says more, or it is broken.
pub fn open_log(job: &Job) -> Result<(KeptLog, u64), JobError> {
    let database = pellucid_files::paths::resolved(&job.database)?;
    let begun = now_micros();
    let kept = KeptLog::open(&database, job.timeout)?;
    super::assert_meant(job, Some(kept.header()))?;
    match kept.state().has_base {
        true => Ok((kept, begun)),
        false => Err(Error::message(message::NO_CURRENT_BACKUP, "").into()),
    }
}

/// Makes a set of them, begun then; whether commits behind them are lost. That they are backed up, whoever calls it says to `kept`.
///
/// # Errors
/// [`JobError`]. The media have no new set then.
pub fn back_up_kept(
    job: &Job,
    kept: &mut KeptLog,
    (begun, has_gap): (u64, bool),
    progress: &mut dyn FnMut(&Progress),
) -> Result<Done, JobError> {
    let header = kept.header().clone();
    let (place, mut facts) = place_of(kept);
    let leave = job.log.map_or(Standing::Online, |log| log.leave);
    (facts.tail, facts.gap) = (leave != Standing::Online, has_gap);
    let pages = kept.commits().last().map_or(1, |commit| commit.pages);
    let of = LogOf { header, place, facts, pages, begun, before: None };
    let mut done = write_log(job, of, &mut Source::of(kept), progress)?;
    done.told.extend(lost_marks(kept));
    let recorded = record_marks(kept, place, &description(job).database);
    done.unrecorded = done.unrecorded.or_else(|| history::told(recorded));
    Ok(done)
}

/// What a log set is of.
#[derive(Debug)]
pub struct LogOf {
    /// The database's header.
    pub header: Header,
    /// Its place in the chain.
    pub place: ChainPlace,
    /// Its commits.
    pub facts: LogFacts,
    /// Pages of the database behind the last one.
    pub pages: u32,
    /// Later commits are not in it.
    pub begun: u64,
    /// The hash of the manifest of the set before it; none for that of the last set that the history knows.
    pub before: Option<[u8; 32]>,
}

/// Writes a log set.
///
/// # Errors
/// [`JobError`]. The media have no new set then.
pub fn write_log(
    job: &Job,
    of: LogOf,
    source: &mut dyn LogSource,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Done, JobError> {
    let log = job.log.unwrap_or_default();
    let from = &of.header;
    let credentials = Credentials::gather(&Request::default())?;
    let media_header = new_media(job, true, MediaVersion::Two)?;
    media_header.encode()?;
    settle_chain(job, Some(from));
    let mut known = BegunSet::default();
    let bytes = source.versions().len() as u64 * u64::from(from.page_size);
    let mut targets = match (log.whole, job.files.families.first()) {
        (true, Some(path)) => Targets::whole(path, media_header)?,
        _ => Targets::prepare(&job.files, &job.rules, media_header, bytes)?,
    };
    let size = (Kind::Log, from.page_size, of.pages);
    let mut header = set_header(job, size, &targets, Some(from), of.begun)?;
    if targets.header.version == MediaVersion::One {
        return Err(no_place(&targets, header.position).into());
    }
    // Before the protectors are made: the header's bytes are bound to nothing of it.
    let keys = seal(&mut header, job.algorithm, &job.protections, Some(from), &credentials)?;
    if !log.routine {
        let found = pellucid_files::paths::resolved(&job.database);
        let database = found.unwrap_or_else(|_| job.database.clone());
        Event::new(Action::BackedUp, "log").of(full_name(&database)).record_here()?;
    }
    let description = description(job);
    let signer = if job.unsigned { None } else { signer(&header.protectors, &credentials) };
    join(job, &mut header, &description, signer.is_some(), &targets)?;
    let own = header.version2.get_or_insert_with(Version2::default);
    (own.chain, own.log) = (Some(of.place), Some(of.facts));
    own.before = of.before.unwrap_or(own.before);
    let thumbprint = signer.as_ref().map(|own| *own.public().thumbprint());
    let files = job.files.present(&[]);
    let to_begin = Begun::new(&header, &description, thumbprint, &files);
    let set = NewSet { header, description, keys: Some(&keys), signer: signer.as_ref() };
    let all = u32::try_from(source.versions().len()).unwrap_or(u32::MAX);
    let page_size = from.page_size;
    let mut tell = |pages, stored| {
        progress(&Progress { phase: Phase::Writing, pages, all, page_size, stored });
    };
    let options = Options { workers: job.workers, level: job.level, continue_after_error: false };
    let mut commits = |hash| {
        // Whether one that was begun is there would be asked of a store that does not answer.
        if !log.whole {
            known.write_down(&to_begin, hash);
        }
    };
    let families = targets.families();
    let written = write_log_set(source, &set, families, &options, &mut tell, &mut commits)?;
    let set = (set.header, set.description);
    let wanted = MediaVersion::Two;
    Concluding { job, targets, known, set, signer, wanted }.conclude(written)
}

/// The bytes of media with a log set that has no commits, for whoever keeps them elsewhere than under a name of the job's: the history
/// does not know of it, and no event says that it was made.
///
/// # Errors
/// [`JobError`].
pub fn bytes_of_log(job: &Job, of: LogOf) -> Result<Vec<u8>, JobError> {
    let from = &of.header;
    let credentials = Credentials::gather(&Request::default())?;
    let sink = Memory::default();
    let media_header = new_media(job, true, MediaVersion::Two)?;
    let mut targets = Targets::of_sink(Box::new(sink.clone()), media_header)?;
    let size = (Kind::Log, from.page_size, of.pages);
    let mut header = set_header(job, size, &targets, Some(from), of.begun)?;
    let keys = seal(&mut header, job.algorithm, &job.protections, Some(from), &credentials)?;
    let signer = signer(&header.protectors, &credentials);
    header.version2 = Some(Version2 {
        before: of.before.unwrap_or_default(),
        chain: Some(of.place),
        log: Some(of.facts),
        ..Version2::default()
    });
    let description = description(job);
    let set = NewSet { header, description, keys: Some(&keys), signer: signer.as_ref() };
    let options = Options { workers: 1, level: job.level, continue_after_error: false };
    let (families, mut none) = (targets.families(), |_| ());
    write_log_set(&mut NoCommits, &set, families, &options, &mut |_, _| (), &mut none)?;
    Ok(sink.take())
}

/// Bytes in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl MediaSink for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn name(&self) -> PathBuf {
        PathBuf::from("memory")
    }
}

struct NoCommits;

impl LogSource for NoCommits {
    fn commits(&self) -> &[LogCommit] {
        &[]
    }

    fn versions(&self) -> &[(u32, u32)] {
        &[]
    }

    fn read(&mut self, _: usize, _: &mut [u8]) -> Outcome<()> {
        Err(Error::misuse(Subject::LogArchive, "a version of no commit"))
    }
}

/// What is told of a log backup that was made without the database file.
#[derive(Default)]
struct Told {
    lines: Vec<String>,
    has_gap: bool,
}

/// Opens what no log backup has, by the database.
fn open(job: &Job, database: &Path) -> Result<KeptLog, JobError> {
    refuse_without_chain(job, database)?;
    Ok(KeptLog::open(database, job.timeout)?)
}

/// The same by the log and its archive, because of an `error` of the database file.
fn open_tail(
    job: &Job,
    credentials: &Credentials,
    error: JobError,
) -> Result<(KeptLog, Told), JobError> {
    let tail = Tail::open(&job.database, credentials, job.timeout, job.continue_after_error)?;
    let Some(Tail { kept, gap }) = tail else { return Err(error) };
    let mut lines =
        vec![format!("made of the log and its archive, without the database file: {error}")];
    lines.extend(gap.as_ref().map(|gap| format!("the tail ends before damage of the log: {gap}")));
    Ok((kept, Told { lines, has_gap: gap.is_some() }))
}

/// Whether an error says that a database file is gone, damaged or another one. What a key, a lock or the recovery model forbids
/// is forbidden without that file, too.
fn is_of_file(error: &JobError) -> bool {
    match error {
        JobError::Database(DatabaseError::Typed(error)) => !matches!(
            error,
            Error::MissingKey { .. } | Error::LimitReached { .. } | Error::Message { .. }
        ),
        JobError::Database(error @ DatabaseError::Sqlite { .. }) => !Handle::is_busy(error),
        _ => false,
    }
}

/// The statements of SQL Server's for a log that has no chain.
fn refuse_without_chain(job: &Job, database: &Path) -> Result<(), JobError> {
    let header = sealed_header(&job.database)?.ok_or_else(|| {
        Error::misuse(
            Subject::File(database.to_owned()),
            "a plain database has no log backups, because any SQLite may begin its log anew: encrypt it, in format version 2",
        )
    })?;
    let Some(second) = &header.second else { return Err(of_version_1(database).into()) };
    if model_of(&header) == RecoveryModel::Simple {
        return Err(Error::message(message::NO_LOG_UNDER_SIMPLE, "BACKUP LOG").into());
    }
    match second.has_chain {
        true => Ok(()),
        false => Err(Error::message(message::NO_CURRENT_BACKUP, "").into()),
    }
}

/// Writes the marks into the history, as far as there is one.
fn record_marks(kept: &KeptLog, place: ChainPlace, database: &str) -> Result<(), DatabaseError> {
    let mut marks = Vec::new();
    for Marked { commit, mark } in kept.marked() {
        if let (Ok(mark), Some(commit)) = (mark, kept.commits().get(*commit)) {
            let (lsn, time) = (commit.lsn, commit.time);
            marks.push(MarkRecord { database, fork: place.fork, lsn, time, mark });
        }
    }
    match (marks.is_empty(), History::open_or_begin()?) {
        (false, Some(history)) => history.record_marks(&marks),
        _ => Ok(()),
    }
}

/// What to say of marks that cannot be read.
fn lost_marks(kept: &KeptLog) -> Vec<String> {
    let lost = |marked: &Marked| {
        let (error, commit) = (marked.mark.as_ref().err()?, kept.commits().get(marked.commit)?);
        Some(format!(
            "the commit with LSN {} has a mark that is lost: {error}; `--at lsn:{}` restores it",
            commit.lsn, commit.lsn
        ))
    };
    kept.marked().iter().filter_map(lost).collect()
}

/// What the set says of its place.
fn place_of(kept: &KeptLog) -> (ChainPlace, LogFacts) {
    let times = kept.commits().iter().map(|commit| commit.time);
    let place = ChainPlace { fork: kept.state().fork, first: kept.behind(), last: kept.last() };
    let facts = LogFacts {
        full: kept.state().base,
        first_time: times.clone().min().unwrap_or(0),
        last_time: times.max().unwrap_or(0),
        commits: kept.commits().len() as u32,
        ..LogFacts::default()
    };
    (place, facts)
}

/// The commits as a set has them.
struct Source<'a> {
    kept: &'a mut KeptLog,
    commits: Vec<LogCommit>,
    versions: Vec<(u32, u32)>,
}

impl<'a> Source<'a> {
    fn of(kept: &'a mut KeptLog) -> Self {
        let commit = |commit: &pellucid_engine::log_chain::Commit| LogCommit {
            lsn: commit.lsn,
            time: commit.time,
            pages: commit.pages,
            stepped_back: commit.stepped_back,
            mark: None,
        };
        let mut commits: Vec<LogCommit> = kept.commits().iter().map(commit).collect();
        for marked in kept.marked() {
            if let (Ok(mark), Some(commit)) = (&marked.mark, commits.get_mut(marked.commit)) {
                commit.mark = Some(mark.name().to_owned());
            }
        }
        let versions = kept.versions().iter().map(|one| (one.page, one.commit)).collect();
        Self { kept, commits, versions }
    }
}

impl LogSource for Source<'_> {
    fn commits(&self) -> &[LogCommit] {
        &self.commits
    }

    fn versions(&self) -> &[(u32, u32)] {
        &self.versions
    }

    fn read(&mut self, at: usize, into: &mut [u8]) -> Outcome<()> {
        let gone = || Error::misuse(Subject::LogArchive, "a version that it does not have");
        let version = *self.kept.versions().get(at).ok_or_else(gone)?;
        self.kept.read(version, into)
    }
}
