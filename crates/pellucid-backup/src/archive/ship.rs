//! One database: its new commits go to the place, as one small set each time.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pellucid::clock::now_micros;
use pellucid::header::Header;
use pellucid::log_archive::ArchiveState;
use pellucid::lsn::Lsn;
use pellucid::media::LogCommit;
use pellucid::shown::Shown;
use pellucid::{message, Error, Subject};
use pellucid_engine::log_chain::{self, chain_of, wants_chain, KeptLog};
use pellucid_files::paths::look_at_name;
use pellucid_host::connection::Handle;
use pellucid_host::DatabaseError;
use pellucid_vfs::seal_request::{Credentials, Request};
use time::OffsetDateTime;

use super::names::{folder_of_database, folder_of_fork, LogName, FULL};
use super::place::Place;
use super::run::News;
use super::set::{last_of, read, write_down, Owner, Reading};
use super::witness::{put_back, Kept};
use crate::history::told;
use crate::job::{
    back_up, back_up_kept, check_log, open_family, open_log, sealed_header, signer_of, Done, Files,
    Job, JobError, LogJob,
};

/// A set of more bytes is not held in memory: it goes to a store in parts, as every backup does.
const MOST_WHOLE_BYTES: u64 = 64 << 20;
/// Sets that somebody else has put under names that come next, in a row.
const MOST_FOUND: u32 = 3;

/// How databases are archived.
#[derive(Debug, Clone)]
pub struct Options {
    /// Commits wait at most so long for others that go with them.
    pub every: Duration,
    /// Ships what there is, and ends.
    pub once: bool,
    /// Makes one set of small ones now and then; none for never. With `once`: now.
    pub merge: Option<Duration>,
    /// What is needed for no point within so long before now goes.
    pub keep: Option<Duration>,
    /// Makes a full backup, too, when the last one is so old.
    pub full: Option<Duration>,
    /// How long to wait for a lock.
    pub timeout: Duration,
}

/// The folder of a database in a place.
///
/// # Errors
/// [`JobError`] for one that is not encrypted, or cannot be read.
pub fn folder_of(database: &Path) -> Result<String, JobError> {
    Ok(folder_by(database, &header_of(database)?))
}

fn folder_by(database: &Path, header: &Header) -> String {
    let name = database.file_stem().unwrap_or_default().to_string_lossy();
    folder_of_database(&name, &header.file_id)
}

pub(super) fn header_of(database: &Path) -> Result<Header, JobError> {
    let what = "a plain database has no log backups, because any SQLite may begin its log anew: encrypt it, in format version 2";
    let plain = || Error::misuse(Subject::File(database.to_owned()), what);
    Ok(sealed_header(database)?.ok_or_else(plain)?)
}

/// A database that is archived.
#[derive(Debug)]
pub struct Shipper {
    /// The database, by its whole path.
    pub database: PathBuf,
    pub(super) place: Place,
    /// Its folder there.
    pub(super) folder: String,
    pub(super) options: Options,
    /// The chain that is being shipped, and where its sets end in the place, if that is known.
    pub(super) chain: Option<([u8; 16], Option<Lsn>)>,
    /// The chain whose folder is there, in a place that heeds conditions.
    pub(super) prepared: Option<[u8; 16]>,
    /// What says there how far the database had come.
    pub(super) witness: Kept,
    /// When the last full backup there was begun, in seconds since 1970.
    full: Option<u64>,
    /// Small sets since the last merging, those found at the beginning among them.
    pub(super) small: u32,
    /// Sets are there that a merged one has made superfluous.
    pub(super) has_merged: bool,
    /// The event log says that this process ships it.
    is_noted: bool,
    /// The header, and what the archive said, of the chain that was shipped last.
    owner: Option<(Header, ArchiveState)>,
}

/// A connection that stays open, so that no closing of another one of this process takes the database for itself
/// ([`log_chain::stay`]). While there is one, nothing of this process opens the file of the database otherwise.
#[derive(Debug)]
pub struct Staying {
    connection: Handle<'static>,
    /// Which one of the process it is: each counts versions for itself.
    number: u64,
    /// The file, which another one may have taken the place of.
    file: Option<(u64, u64)>,
}

impl Staying {
    fn at(database: &Path) -> Result<Self, JobError> {
        static STAYING: AtomicU64 = AtomicU64::new(0);
        let number = STAYING.fetch_add(1, Ordering::Relaxed);
        Ok(Self { file: identity(database), connection: log_chain::stay(database)?, number })
    }

    /// A number that is another one behind each commit of others; none if it cannot be read, or the file is another one. It comes from
    /// the wal-index: size and time of the log change before a commit counts, and nothing of a file's may change when it does.
    pub fn version(&self, database: &Path) -> Option<(u64, i64)> {
        if !self.is_of(database) {
            return None;
        }
        Some((self.number, self.connection.number("PRAGMA data_version").ok()?))
    }

    fn is_of(&self, database: &Path) -> bool {
        self.file.is_some() && self.file == identity(database)
    }
}

/// Device and inode of what has a name. It is not opened for that.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = look_at_name(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// What came of one try.
#[derive(Debug, Default, Clone, Copy)]
pub struct Shipped {
    /// Sets that were put.
    pub sets: u32,
    /// Their commits.
    pub commits: u64,
    /// The last one that is in the place now, as far as this process knows.
    pub last: Option<Lsn>,
    /// All that was committed before this moment is in the place, in microseconds since 1970.
    pub until: u64,
}

impl Shipper {
    /// A database, and where it goes.
    ///
    /// # Errors
    /// [`JobError`] for one that is not encrypted, or cannot be read.
    pub fn new(database: &Path, place: Place, options: Options) -> Result<Self, JobError> {
        let database = pellucid_files::paths::resolved(database)?;
        let folder = folder_of(&database)?;
        Ok(Self {
            database,
            place,
            folder,
            options,
            chain: None,
            prepared: None,
            witness: Kept::default(),
            full: None,
            small: 0,
            has_merged: false,
            is_noted: false,
            owner: None,
        })
    }

    /// The folder of the database in the place.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// Where it goes, for people.
    pub(super) fn root(&self) -> String {
        self.place.path_of(&self.folder).display().to_string()
    }

    /// Whether the last full backup that this process knows of is too old.
    pub(super) fn is_full_due(&self) -> bool {
        let now = now_micros() / 1_000_000;
        let is_old = |every: Duration| {
            self.full.is_some_and(|last| now.saturating_sub(last) >= every.as_secs())
        };
        self.options.full.is_some_and(is_old)
    }

    pub(super) fn job(&self, name: &str) -> Job {
        let files = Files { families: vec![self.place.path_of(name)], mirrors: Vec::new() };
        let mut job = Job::new(self.database.clone(), files);
        job.timeout = self.options.timeout;
        job
    }

    pub(super) fn owner_of(&self, header: Header, fork: [u8; 16]) -> pellucid::Result<Owner> {
        let credentials = Credentials::gather(&Request::default())?;
        let signer = signer_of(&header.protectors, &credentials);
        Ok(Owner { signer: signer.map(|own| *own.public().thumbprint()), header, fork })
    }

    /// The owner of the sets of the chain that was shipped last; none without one.
    pub(super) fn present_owner(&self) -> Result<Option<Owner>, JobError> {
        let of = self.owner.clone();
        Ok(of.map(|(header, state)| self.owner_of(header, state.fork)).transpose()?)
    }

    /// What its archive said last.
    pub(super) fn present_state(&self) -> Option<ArchiveState> {
        self.owner.as_ref().map(|(_, state)| *state)
    }

    /// Ships what there is: a full backup if one is due, then the commits that no log backup has.
    ///
    /// # Errors
    /// [`JobError`]. What was not shipped is with the database, and goes with the next try.
    pub fn ship(
        &mut self,
        staying: &mut Option<Staying>,
        tell: &mut dyn FnMut(News),
    ) -> Result<Shipped, JobError> {
        *staying = staying.take().filter(|one| one.is_of(&self.database) && !self.is_full_due());
        if staying.is_none() {
            let header = header_of(&self.database)?;
            self.is_in(folder_by(&self.database, &header));
            if self.options.full.is_some() {
                // It would accept what was put back.
                self.consult()?;
                self.make_full(&header, tell)?;
            }
            if let Err(error) = check_log(&self.job("")) {
                // One that was put back to before its chain has none either.
                self.consult()?;
                return Err(self.without_base(error));
            }
            if !self.options.once {
                *staying = Some(Staying::at(&self.database)?);
            }
        }
        self.ship_log(tell).map_err(|error| self.without_base(error))
    }

    /// Makes the folder of a chain, once, in a place that has to heed conditions.
    fn prepare(&mut self, fork: [u8; 16]) -> Result<(), JobError> {
        if self.prepared != Some(fork) {
            self.place.prepare(&folder_of_fork(&self.folder, &fork))?;
            self.prepared = Some(fork);
        }
        Ok(())
    }

    /// The database has this folder. `rekey --new-id` gives it another one, and so does another database under its name.
    fn is_in(&mut self, folder: String) {
        if folder != self.folder {
            (self.folder, self.full) = (folder, None);
            self.look_again();
        }
    }

    fn ship_log(&mut self, tell: &mut dyn FnMut(News)) -> Result<Shipped, JobError> {
        let mut shipped = Shipped::default();
        let mut found = 0;
        loop {
            let mut job = self.job("");
            let (mut kept, begun) = open_log(&job)?;
            self.is_in(folder_by(&self.database, kept.header()));
            let (fork, state) = (kept.state().fork, *kept.state());
            self.owner = Some((kept.header().clone(), state));
            shipped.until = begun;
            if self.chain.is_some_and(|(of, end)| of == fork && end > Some(state.backed_up)) {
                // Put back while this process was shipping it.
                self.look_again();
            }
            self.consult()?;
            self.begin_chain(&kept, fork, tell)?;
            let owner = self.owner_of(kept.header().clone(), fork)?;
            if kept.commits().is_empty() {
                drop(kept);
                if self.options.once {
                    self.prepare(fork)?;
                    self.renew_if_behind(&owner, &state, tell)?;
                }
                shipped.last = shipped.last.or(Some(state.backed_up));
                return Ok(shipped);
            }
            self.prepare(fork)?;
            self.renew_if_old(&owner, &state, tell)?;
            let name = self.name_of(&kept);
            let path = self.place.path_of(&name);
            job.files.families = vec![path.clone()];
            let bytes = kept.versions().len() as u64 * u64::from(kept.header().page_size);
            let whole = self.place.is_store() && bytes <= MOST_WHOLE_BYTES;
            let routine = self.is_noted;
            job.log = Some(LogJob { whole, routine, ..LogJob::default() });
            let (commits, last) = (kept.commits().len() as u64, kept.last());
            match back_up_kept(&job, &mut kept, (begun, false), &mut |_| ()) {
                Ok(done) => {
                    let state = kept.is_backed_up(done.hash)?;
                    self.owner = self.owner.take().map(|(header, _)| (header, state));
                    self.chain = Some((fork, Some(last)));
                    self.small += 1;
                    self.is_noted = true;
                    shipped.sets += 1;
                    shipped.commits += commits;
                    shipped.last = Some(last);
                    unrecorded(&done, tell);
                    if self.options.once {
                        self.renew_if_behind(&owner, &state, tell)?;
                    }
                    return Ok(shipped);
                }
                Err(error) if is_taken(&error) && found < MOST_FOUND => {
                    found += 1;
                    let last = self.recognise(&path, kept, fork)?;
                    if let Some(why) = told(write_down(&path)) {
                        tell(News::Unrecorded { why });
                    }
                    self.chain = Some((fork, Some(last)));
                    shipped.last = Some(last);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A set has the name already. If it has these commits, it was put by a process that was killed before it could say so, or whose
    /// answer was lost: then it counts.
    fn recognise(&self, path: &Path, kept: KeptLog, fork: [u8; 16]) -> Result<Lsn, JobError> {
        let owner = self.owner_of(kept.header().clone(), fork)?;
        let found = read(path, &owner, Reading::Whole)?;
        let own = kept.commits().iter().take(found.commits.len());
        let same = |(own, there): (&pellucid_engine::log_chain::Commit, &LogCommit)| {
            (own.lsn, own.time, own.pages) == (there.lsn, there.time, there.pages)
        };
        let last = last_of(&found.commits, &found.place);
        let is_own = found.place.first == kept.behind()
            && found.commits.len() <= kept.commits().len()
            && own.zip(&found.commits).all(same);
        if !is_own {
            return Err(Error::misuse(
                Subject::File(path.to_owned()),
                format!(
                    "it goes on behind LSN {} with other commits than `{}` has: a copy of the database was archived there, or an \
                     older state of it was put back; nothing is overwritten",
                    found.place.first,
                    self.database.shown()
                ),
            )
            .into());
        }
        kept.is_backed_up_to(last, found.hash)?;
        Ok(last)
    }

    fn name_of(&self, kept: &KeptLog) -> String {
        let is_branch = kept.behind() < kept.state().backed_up;
        let epoch = kept.commits().first().filter(|_| is_branch).map(|first| first.lsn.epoch);
        let name = LogName::of(kept.behind(), epoch);
        format!("{}/{}", folder_of_fork(&self.folder, &kept.state().fork), name.text())
    }

    /// Looks once at what the place has of a chain: the only question that is asked there before a merging.
    fn begin_chain(
        &mut self,
        kept: &KeptLog,
        fork: [u8; 16],
        tell: &mut dyn FnMut(News),
    ) -> Result<(), JobError> {
        if self.chain.is_some_and(|(of, _)| of == fork) {
            return Ok(());
        }
        let folder = folder_of_fork(&self.folder, &fork);
        let names = self.place.list(Some(&folder))?;
        let names: Vec<_> = names.iter().filter_map(|name| LogName::parse(name)).collect();
        self.small = names.iter().filter(|name| name.last.is_none()).count() as u32;
        self.has_merged = names.iter().any(|name| name.last.is_some()) && self.small > 0;
        let newest = names.iter().max_by_key(|name| name.last.unwrap_or(name.first));
        let end = match newest {
            None => None,
            Some(LogName { last: Some(last), .. }) => Some(*last),
            Some(name) => {
                let path = self.place.path_of(&format!("{folder}/{}", name.text()));
                let family = open_family(&path)?;
                let set = family.sets.first().and_then(|set| set.header.version2?.chain);
                set.map(|place| place.last)
            }
        };
        let next = format!("{folder}/");
        let next = self.name_of(kept).strip_prefix(&next).and_then(LogName::parse);
        let is_own = !kept.commits().is_empty() && names.iter().any(|name| Some(*name) == next);
        if let Some(end) = end.filter(|end| *end > kept.state().backed_up && !is_own) {
            // A set that was put by a process that was killed before it could say so has the next name.
            let path = self.place.path_of(&folder);
            let what = format!("commits up to LSN {end}");
            let to_accept = "make a full backup of it, and take another place";
            return Err(put_back(&self.database, &path, &what, to_accept).into());
        }
        if let Some(end) = end.filter(|end| *end < kept.behind()) {
            tell(News::Gap { from: end, to: kept.behind() });
        }
        self.chain = Some((fork, end));
        Ok(())
    }

    /// Makes a full backup if one is due: at first, and when the last one there is too old.
    fn make_full(&mut self, header: &Header, tell: &mut dyn FnMut(News)) -> Result<(), JobError> {
        let Some(every) = self.options.full.filter(|_| wants_chain(header)) else { return Ok(()) };
        let now = now_micros() / 1_000_000;
        let has_chain = chain_of(header).is_some();
        if self.full.is_none() && has_chain {
            let names = self.place.list(Some(&self.folder))?;
            self.full = names.iter().filter_map(|name| time_of_full(name)).max();
        }
        let is_due = self.full.is_none_or(|last| now.saturating_sub(last) >= every.as_secs());
        if has_chain && !is_due {
            return Ok(());
        }
        if self.chain.is_none() {
            self.place.prepare(&self.folder)?;
        }
        let name = format!("{}/{}{FULL}", self.folder, utc(now));
        let done = back_up(&self.job(&name), &mut |_| ())?;
        self.full = Some(now);
        unrecorded(&done, tell);
        tell(News::Full { path: self.place.path_of(&name) });
        Ok(())
    }

    /// Says how the full backup is made that the chain begins with.
    fn without_base(&self, error: JobError) -> JobError {
        let number = message::NO_CURRENT_BACKUP.number;
        match &error {
            JobError::Database(DatabaseError::Typed(Error::Message { message, .. }))
                if message.number == number =>
            {
                if !self.place.is_store() {
                    // So that what is said can be done. Whether it could be made is told by who does.
                    let _ = self.place.prepare(&self.folder);
                }
                Error::misuse(
                    Subject::File(self.database.clone()),
                    format!(
                        "its chain of log backups has not begun ({number}): `pellucid backup {} --to {}`, or `--full-every`",
                        self.database.shown(),
                        self.place.path_of(&format!("{}/first{FULL}", self.folder)).shown()
                    ),
                )
                .into()
            }
            _ => error,
        }
    }
}

/// The time of a full set of the archiver's, by its name.
pub(super) fn time_of_full(name: &str) -> Option<u64> {
    let text = name.strip_suffix(FULL)?;
    let format = time::macros::format_description!("[year][month][day]T[hour][minute][second]Z");
    let at = time::PrimitiveDateTime::parse(text, format).ok()?;
    u64::try_from(at.assume_utc().unix_timestamp()).ok()
}

fn utc(seconds: u64) -> String {
    let at = OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap_or(0));
    let at = at.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, clock) = (at.date(), at.time());
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second()
    )
}

/// Tells what a set that was made has to say.
pub(super) fn unrecorded(done: &Done, tell: &mut dyn FnMut(News)) {
    for why in &done.told {
        tell(News::Left { why: why.clone() });
    }
    if let Some(why) = &done.unrecorded {
        tell(News::Unrecorded { why: why.clone() });
    }
}

/// Whether something has the name already.
pub(super) fn is_taken(error: &JobError) -> bool {
    match error {
        JobError::Exists(_) => true,
        JobError::Database(DatabaseError::Typed(Error::Io { source, .. })) => {
            source.kind() == std::io::ErrorKind::AlreadyExists
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_set_is_named_by_its_time() {
        let name = format!("{}{FULL}", utc(1_764_072_001));
        assert_eq!(name, "20251125T120001Z.full");
        assert_eq!(time_of_full(&name), Some(1_764_072_001));
        assert_eq!(time_of_full("first.full"), None);
        assert_eq!(time_of_full("x/20251125T120001Z.full"), None);
    }
}
