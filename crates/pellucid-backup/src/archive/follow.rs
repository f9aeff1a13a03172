//! A standby that is kept up to date from the place of an archiver.
//!
//! Made anew, it is restored as any standby. From then on the next log set has the name that says what it goes on behind, so that one
//! question tells whether it is there ([`LogName`]). Now and then the names in the place are listed: merged sets have others. The
//! place's witness says then whether it still leads to where the standby is.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid::clock::now_micros;
use pellucid::hash::hex;
use pellucid::header::Standing;
use pellucid::lsn::Lsn;
use pellucid::media::Kind;
use pellucid::shown::Shown;
use pellucid::{Algorithm, Error, Result, Subject};
use pellucid_engine::inspect::{inspect, Kind as Found};
use pellucid_files::paths::is_there;
use pellucid_files::way::Way;
use pellucid_host::DatabaseError;
use pellucid_vfs::seal_request::{Credentials, Request};

use super::find::{holder_of, media_of};
use super::names::LogName;
use super::onto::{Is, Onto};
use super::place::Place;
use super::witness;
use crate::history::{History, Reached, StandbyRecord};
use crate::job::{open_media, processors, restore, Point, Restoring};
use crate::restore::{not_signed, LogSet, Media, OpenSet};

/// How often the names in the place are listed, and its witness is read, while nothing new has the name that is asked for.
const LISTED_EVERY: Duration = Duration::from_secs(60);
/// The same where that name is not known yet: behind a full backup without logs.
const LISTED_AT_FIRST: Duration = Duration::from_secs(2);
/// So many sets go into one transaction at most.
const MOST_SETS: usize = 32;
/// The pauses after errors.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The same error is told again after that.
const SAID_AGAIN: Duration = Duration::from_secs(600);
/// How often the history is told that nothing is new.
const NOTED: Duration = Duration::from_secs(15);

/// How a place is followed.
#[derive(Debug, Clone)]
pub struct FollowOptions {
    /// How often it is looked at.
    pub every: Duration,
    /// Ends once all that is there was applied.
    pub once: bool,
    /// How long to wait for locks of other connections.
    pub timeout: Duration,
}

/// What a follower tells.
#[derive(Debug)]
pub enum FollowNews {
    /// Pages were restored, of so many.
    Restoring(u32, u32),
    /// The standby was made anew, up to this moment.
    Made(Reached),
    /// What speaks against a set's place in the chain.
    Told(String),
    /// Sets were applied.
    Applied {
        /// How many.
        sets: usize,
        /// Commits of theirs.
        commits: u64,
        /// Up to where.
        at: Reached,
    },
    /// A round failed; there is another one after so long.
    Failed(DatabaseError, Duration),
    /// It goes on, after errors for so long.
    GoesOn(Duration),
}

/// Why a follower does not go on.
#[derive(Debug)]
pub enum FollowError {
    /// What is there is no standby, and is left as it is.
    NoStandby(Error),
    /// Anything else, which may be better the next time.
    Other(DatabaseError),
}

impl From<DatabaseError> for FollowError {
    fn from(error: DatabaseError) -> Self {
        Self::Other(error)
    }
}

impl From<Error> for FollowError {
    fn from(error: Error) -> Self {
        Self::Other(error.into())
    }
}

impl From<FollowError> for DatabaseError {
    fn from(error: FollowError) -> Self {
        match error {
            FollowError::NoStandby(error) => error.into(),
            FollowError::Other(error) => error,
        }
    }
}

/// A standby, and the place that it follows.
#[derive(Debug)]
pub struct Follower {
    to: PathBuf,
    named: PathBuf,
    /// Its whole path, or its URL.
    root: String,
    options: FollowOptions,
    record: StandbyRecord,
    open: Option<Onto>,
    /// The place that holds the folder of the database, and that.
    holder: Option<(Place, String)>,
    listed: Option<Instant>,
    noted: Option<Instant>,
}

/// Follows; for ever, if not `once`.
///
/// # Errors
/// [`FollowError::NoStandby`] once it is one no more; with `once` all.
pub fn follow(
    follower: &mut Follower,
    tell: &mut dyn FnMut(FollowNews),
) -> std::result::Result<Reached, FollowError> {
    let mut failing: Option<(Instant, u64, Duration, String, Instant)> = None;
    loop {
        let begun = Instant::now();
        let done = follower.round(tell);
        let once = follower.options.once;
        match done {
            Ok(()) => {
                if let Some((since, ..)) = failing.take() {
                    tell(FollowNews::GoesOn(since.elapsed()));
                    follower.noted = None;
                }
                follower.note_alive("", 0);
                if once {
                    return Ok(follower.record.at);
                }
                std::thread::sleep(follower.options.every.saturating_sub(begun.elapsed()));
            }
            Err(FollowError::Other(error)) if !once => {
                // What is open may be what has failed, and what was found may be there no more.
                (follower.open, follower.holder, follower.listed) = (None, None, None);
                let said = error.to_string();
                let now = Instant::now();
                let (since, micros, pause, before, at) = failing.take().unwrap_or((
                    now,
                    now_micros(),
                    FIRST_PAUSE / 2,
                    String::new(),
                    now,
                ));
                let pause = (pause * 2).min(LONGEST_PAUSE);
                let is_known = before == said && at.elapsed() < SAID_AGAIN;
                failing =
                    Some((since, micros, pause, said.clone(), if is_known { at } else { now }));
                follower.noted = None;
                follower.note_alive(&said, micros);
                if !is_known {
                    tell(FollowNews::Failed(error, pause));
                }
                std::thread::sleep(pause);
            }
            Err(error) => {
                follower.noted = None;
                match &error {
                    FollowError::NoStandby(_) => follower.forget(),
                    FollowError::Other(why) => follower.note_alive(&why.to_string(), now_micros()),
                }
                return Err(error);
            }
        }
    }
}

impl Follower {
    /// Of the standby at `to`, which need not be there yet.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a place that is none, or without an instance, whose history knows where a standby is.
    pub fn new(
        place: &Path,
        to: &Path,
        options: FollowOptions,
    ) -> std::result::Result<Self, DatabaseError> {
        let root = Place::of(place)?.root().display().to_string();
        let way = Way::of(to).map_err(|error| Error::io(Subject::File(to.to_owned()), error))?;
        let to = way.path().to_owned();
        let record = history(&to)?.standby(&to)?.unwrap_or_default();
        let named = place.to_owned();
        Ok(Self {
            to,
            named,
            root,
            options,
            record,
            open: None,
            holder: None,
            listed: None,
            noted: None,
        })
    }

    /// Where the standby is, by its whole path.
    pub fn to(&self) -> &Path {
        &self.to
    }

    /// Applies what is new.
    fn round(&mut self, tell: &mut dyn FnMut(FollowNews)) -> std::result::Result<(), FollowError> {
        self.open = self.open.take().filter(|open| open.is_of(&self.to));
        let is = match &self.open {
            Some(open) => Some(open.look()?),
            None => self.find()?,
        };
        match is {
            Some(is) if self.knows(&is)? => {}
            _ => self.make(tell)?,
        }
        loop {
            let looked = now_micros();
            let named = self.named_next()?;
            let found = match named {
                Some(name) => vec![name],
                None if self.is_to_be_listed() => self.survey()?,
                None => Vec::new(),
            };
            if found.is_empty() {
                self.record.until = looked;
                return Ok(());
            }
            self.apply(found, tell)?;
        }
    }

    /// The standby that is there, opened; none if nothing is there, or another kind of restore has not ended.
    fn find(&mut self) -> std::result::Result<Option<Is>, FollowError> {
        if !is_there(&self.to) {
            return Ok(None);
        }
        // No connection of this process has it open, whose locks that would end.
        match inspect(&self.to)?.kind {
            Found::Sealed(sealed) => match sealed.header.standing() {
                Standing::Standby => {}
                Standing::Restoring => return Ok(None),
                Standing::Online => return Err(self.no_standby()),
            },
            Found::Unfinished => {}
            Found::Damaged(error) => return Err(error.into()),
            _ => return Err(self.no_standby()),
        }
        let open = Onto::open(&self.to, self.options.timeout)?;
        let is = open.look()?;
        self.open = Some(open);
        Ok(Some(is))
    }

    fn no_standby(&self) -> FollowError {
        let what = "it is no standby, and nothing of it is changed: a restore or `--online` has made it a database like any other. Stop \
                    what follows it; a standby of that place gets another name";
        FollowError::NoStandby(Error::misuse(Subject::File(self.to.clone()), what))
    }

    /// Whether what is there is what this follower has left, where the history says.
    fn knows(&mut self, is: &Is) -> std::result::Result<bool, FollowError> {
        if is.standing == Standing::Online {
            return Err(self.no_standby());
        }
        if is.standing != Standing::Standby || is.file_id != self.record.file_id {
            return Ok(false);
        }
        if is.counter != self.record.counter {
            // Another follower may have been at it.
            let other = history(&self.to)?.standby(&self.to)?.unwrap_or_default();
            if other.file_id == is.file_id {
                self.record = other;
            }
        }
        Ok(settle(&mut self.record, is.counter))
    }

    /// Restores the newest state that the place has, as a standby.
    fn make(&mut self, tell: &mut dyn FnMut(FollowNews)) -> std::result::Result<(), FollowError> {
        (self.open, self.holder, self.listed) = (None, None, None);
        let is_new = !is_there(&self.to);
        let job = Restoring {
            media: media_of(std::slice::from_ref(&self.named), &Point::Last)?,
            base: None,
            position: None,
            point: Some(Point::Last),
            only: Vec::new(),
            to: self.to.clone(),
            protections: Vec::new(),
            algorithm: Algorithm::Aes256,
            decrypted: false,
            plain_differential: false,
            allow_clear: false,
            allow_unsigned: false,
            replace: false,
            leave: Standing::Standby,
            timeout: self.options.timeout,
            workers: processors(),
        };
        let done = restore(&job, &mut |pages, all| tell(FollowNews::Restoring(pages, all)))?;
        let (fork, ends) = done.ends.unwrap_or_default();
        let open = Onto::open(&self.to, self.options.timeout)?;
        let is = open.look()?;
        let before = std::mem::take(&mut self.record);
        self.record = StandbyRecord {
            database: self.to.clone(),
            file_id: is.file_id,
            source: hex(&done.source),
            place: self.root.clone(),
            fork: hex(&fork),
            is_signed: done.signer.is_known(),
            at: Reached {
                lsn: ends,
                behind: Lsn::NONE,
                committed: done.reached.map_or(0, |(_, time)| time),
            },
            counter: is.counter,
            every_seconds: self.options.every.as_secs(),
            is_once: self.options.once,
            ..StandbyRecord::default()
        };
        if before.fork == self.record.fork && is_new {
            self.record.witnessed = before.witnessed;
        }
        self.open = Some(open);
        self.note()?;
        done.told.into_iter().for_each(|what| tell(FollowNews::Told(what)));
        tell(FollowNews::Made(self.record.at));
        match before.at.lsn > ends && before.fork == self.record.fork && is_new {
            true => Err(self.went_back(before.at.lsn, ends).into()),
            false => Ok(()),
        }
    }

    /// The path of the next log set, if it is there under the one name that it can have unless it was merged.
    fn named_next(&mut self) -> Result<Option<PathBuf>> {
        // At first the place has to prove that it is the one that the standby knows.
        if self.listed.is_none() {
            return Ok(None);
        }
        let Some((place, folder)) = &self.holder else { return Ok(None) };
        let name = format!(
            "{folder}/{}/{}",
            self.record.fork,
            LogName::of(self.record.at.lsn, None).text()
        );
        Ok(place.has(&name)?.then(|| place.path_of(&name)))
    }

    fn is_to_be_listed(&self) -> bool {
        let every = match self.record.at.behind.is_none() {
            true => LISTED_AT_FIRST,
            false => LISTED_EVERY,
        };
        self.options.once || self.listed.is_none_or(|at| at.elapsed() >= every)
    }

    /// Looks at what the place has, and whether it leads to where the standby is. Returns the sets that go on from there.
    fn survey(&mut self) -> Result<Vec<PathBuf>> {
        if self.holder.is_none() {
            let place = Place::of(&self.named)?;
            self.holder = holder_of(&place, &self.record.fork, &self.record.source)?;
        }
        let Some((place, folder)) = self.holder.clone() else {
            return Err(self.refused(format!(
                "sets of the database that it follows, recovery fork {}, are there no more",
                self.record.fork
            )));
        };
        // Before the names are listed: what it knows of is among them.
        let witness = witness::told((&place, &folder), &self.record.source, self.record.is_signed)?;
        if let Some((fork, lsn)) = witness {
            if hex(&fork) != self.record.fork {
                return Err(self.refused(format!(
                    "its database goes on under another recovery fork, {}; the standby is of fork {}",
                    hex(&fork),
                    self.record.fork
                )));
            }
            if lsn < self.record.witnessed {
                return Err(self.went_back(self.record.witnessed, lsn));
            }
        }
        let within = format!("{folder}/{}", self.record.fork);
        let names = place.list(Some(&within))?;
        let mut names: Vec<_> = names.iter().filter_map(|name| LogName::parse(name)).collect();
        names.sort_unstable();
        let at = self.record.at;
        let head = names.iter().map(|name| name.last.unwrap_or(name.first)).max();
        if let Some(branch) = names.iter().find(|name| {
            name.first < at.lsn && name.branch.is_some_and(|epoch| Lsn::new(epoch, 0) > at.lsn)
        }) {
            return Err(self.refused(format!(
                "its database went back to LSN {} and went on from there: the standby has commits up to LSN {} that it no longer has",
                branch.first, at.lsn
            )));
        }
        if let Some(head) = head.filter(|head| *head < at.behind) {
            return Err(self.went_back(at.lsn, head));
        }
        if head.is_none() && !at.behind.is_none() && witness.is_none() {
            return Err(self.refused("no log set of it is there any more".to_owned()));
        }
        let smallest = names.iter().filter(|name| name.last.is_none() && name.first <= at.lsn);
        let smallest = smallest.max_by_key(|name| name.first);
        let mut found: Vec<_> = names
            .iter()
            .filter(|name| name.first <= at.lsn && name.last.is_some_and(|last| last > at.lsn))
            .chain(smallest.filter(|name| name.first > at.behind || at.behind.is_none()))
            .collect();
        // Of several that go on the one that begins last is the smallest.
        found.sort_by_key(|name| std::cmp::Reverse(name.first));
        for name in found {
            let path = place.path_of(&format!("{within}/{}", name.text()));
            // What has the very name is refused by what is wrong with it.
            if name.first == at.lsn || self.goes_on(&path)? {
                return Ok(vec![path]);
            }
        }
        let next = names.iter().map(|name| name.first).filter(|first| *first > at.lsn).min();
        let known = witness.map(|(_, lsn)| lsn).filter(|lsn| *lsn > at.lsn);
        if let Some(next) = next.or(known) {
            return Err(self.refused(format!(
                "the sets behind LSN {} are missing there: the next thing that is known of is LSN {next}",
                at.lsn
            )));
        }
        self.record.witnessed =
            self.record.witnessed.max(witness.map_or(Lsn::NONE, |(_, lsn)| lsn));
        self.listed = Some(Instant::now());
        Ok(Vec::new())
    }

    /// Whether a set has commits behind where the standby is, by what its header says, which is proven before it is applied.
    fn goes_on(&self, path: &Path) -> Result<bool> {
        let media = open_media(&[path.to_owned()])?;
        let sets = media.set(1)?;
        let header = sets.iter().flatten().next().map(|(_, set)| &set.header);
        let place = header.and_then(|header| header.version2?.chain);
        Ok(place.is_some_and(|place| place.last > self.record.at.lsn))
    }

    fn went_back(&self, from: Lsn, to: Lsn) -> Error {
        self.refused(format!(
            "it went back: it leads to LSN {to}, and had led to LSN {from} before"
        ))
    }

    /// The error of a place that does not lead on from where the standby is.
    fn refused(&self, what: String) -> Error {
        let again = format!(
            "`pellucid restore {} --at last --standby --to {}` makes the standby anew of what is there, once you know why",
            self.named.shown(),
            self.to.shown()
        );
        Error::misuse(
            Subject::File(self.named.clone()),
            format!("{what}; `{}` stays as it is. {again}", self.to.shown()),
        )
    }

    /// Applies the set at `first`, and those that are there behind it.
    fn apply(
        &mut self,
        first: Vec<PathBuf>,
        tell: &mut dyn FnMut(FollowNews),
    ) -> std::result::Result<(), FollowError> {
        let credentials = Credentials::gather(&Request::default())?.for_many();
        let mut paths = first;
        let mut media: Vec<(PathBuf, Media)> = Vec::new();
        let mut at = self.record.at;
        // Which ones there are is known by their headers, which are checked against what is opened.
        while let Some(path) = paths.pop() {
            let one = open_media(std::slice::from_ref(&path))?;
            let end = one
                .set(1)?
                .iter()
                .flatten()
                .next()
                .and_then(|(_, set)| set.header.version2?.chain.map(|place| place.last));
            media.push((path, one));
            let Some(end) = end.filter(|end| *end > at.lsn && media.len() < MOST_SETS) else {
                break;
            };
            at.lsn = end;
            if let Some((place, folder)) = &self.holder {
                let name =
                    format!("{folder}/{}/{}", self.record.fork, LogName::of(end, None).text());
                if place.has(&name)? {
                    paths.push(place.path_of(&name));
                }
            }
        }
        let mut at = self.record.at;
        let mut opened = Vec::new();
        for (path, media) in &media {
            let set = OpenSet::open(media, 1, &credentials).map_err(|error| error.of_file(path))?;
            at = self.checked(&set, path, at)?;
            opened.push((path, set));
        }
        let mut sets = Vec::new();
        for (path, set) in &opened {
            sets.push(LogSet::open(set).map_err(|error| error.of_file(path))?);
        }
        let commits: u64 = sets.iter().map(|set| set.commits().len() as u64).sum();
        let last = sets.iter().flat_map(|set| set.commits()).map(|commit| commit.time).next_back();
        at.committed = last.unwrap_or(self.record.at.committed);
        let Some(open) = self.open.take() else { return Ok(()) };
        let mut gone = None;
        let applied = open.apply(&sets, &mut |is| {
            if is.standing != Standing::Standby || is.file_id != self.record.file_id {
                gone = Some(self.no_standby());
                return Ok(false);
            }
            if is.counter != self.record.counter {
                // Another follower was faster.
                return Ok(false);
            }
            self.record.next = Some(at);
            self.note()?;
            Ok(true)
        });
        let is = open.look();
        self.open = Some(open);
        if let Some(gone) = gone {
            return Err(gone);
        }
        if !applied? {
            let is = is?;
            return match self.knows(&is)? {
                true => Ok(()),
                false => Err(self.changed().into()),
            };
        }
        (self.record.at, self.record.counter, self.record.next) = (at, is?.counter, None);
        self.note()?;
        tell(FollowNews::Applied { sets: sets.len(), commits, at });
        Ok(())
    }

    fn changed(&self) -> Error {
        let what = "it was changed by somebody else than its follower, or put back to an older state; the next round makes it anew";
        Error::misuse(Subject::File(self.to.clone()), what)
    }

    /// Refuses a set that is not of the chain that is followed, or does not go on behind `at`. Returns where it ends.
    fn checked(&self, set: &OpenSet<'_>, path: &Path, at: Reached) -> Result<Reached> {
        let header = set.header();
        let refused = |what: String| Err(Error::misuse(Subject::File(path.to_owned()), what));
        let chain = header.version2.and_then(|own| own.chain);
        let Some(place) = chain.filter(|_| header.kind == Kind::Log && header.algorithm.is_some())
        else {
            return refused("it is no log set of a chain, or not sealed".to_owned());
        };
        let (fork, source) = (hex(&place.fork), hex(&header.source));
        if fork != self.record.fork || source != self.record.source {
            return refused(format!(
                "it is of recovery fork {fork} of database {source}, and `{}` follows fork {} of database {}: somebody else has put it \
                 there",
                self.to.shown(),
                self.record.fork,
                self.record.source
            ));
        }
        if self.record.is_signed && !set.signer().is_known() {
            let why = "the sets that the standby was made of are signed";
            return Err(not_signed(header.position, set.signer(), why).of_file(path));
        }
        if place.first > at.lsn || place.last <= at.lsn {
            return refused(format!(
                "it leads from LSN {} to LSN {}, and has the name of one that goes on behind LSN {}",
                place.first, place.last, at.lsn
            ));
        }
        Ok(Reached { lsn: place.last, behind: place.first, committed: at.committed })
    }

    fn note(&mut self) -> std::result::Result<(), DatabaseError> {
        self.record.alive = now_micros();
        history(&self.to)?.note_standby(&self.record)
    }

    /// Tells the history now and then how it is, for `status`.
    fn note_alive(&mut self, error: &str, since: u64) {
        if self.record.file_id.is_empty() || self.noted.is_some_and(|at| at.elapsed() < NOTED) {
            return;
        }
        self.noted = Some(Instant::now());
        (self.record.error, self.record.failing_since) = (error.to_owned(), since);
        self.record.place.clone_from(&self.root);
        (self.record.every_seconds, self.record.is_once) =
            (self.options.every.as_secs(), self.options.once);
        // It is told again.
        let _ = self.note();
    }

    fn forget(&self) {
        if let Ok(history) = history(&self.to) {
            let _ = history.forget_standby(&self.to);
        }
    }
}

/// Brings a record to where the change counter says that the database is. False if it says neither.
fn settle(record: &mut StandbyRecord, counter: u32) -> bool {
    match record.next {
        Some(next) if counter == record.counter.wrapping_add(1) => {
            (record.at, record.counter, record.next) = (next, counter, None);
            true
        }
        _ => counter == record.counter,
    }
}

fn history(to: &Path) -> std::result::Result<History, DatabaseError> {
    let what = "a standby that is kept up to date needs an instance, whose history knows where it is: `pellucid init` makes one";
    History::open_or_begin()?
        .ok_or_else(|| Error::misuse(Subject::File(to.to_owned()), what).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_says_which_of_two_commits_was_the_last() {
        let at = |frame| Reached { lsn: Lsn::new(1, frame), ..Reached::default() };
        let record =
            StandbyRecord { at: at(1), counter: 7, next: Some(at(2)), ..StandbyRecord::default() };
        for (counter, is_known, frame) in [(7, true, 1), (8, true, 2), (6, false, 1), (9, false, 1)]
        {
            let mut record = record.clone();
            assert_eq!(
                (settle(&mut record, counter), record.at),
                (is_known, at(frame)),
                "{counter}"
            );
        }
        let mut alone = StandbyRecord { next: None, ..record };
        assert!(!settle(&mut alone, 8) && settle(&mut alone, 7));
    }
}
