//! Small sets become one, and not a commit is lost: the new one is read back whole before what it has replaced goes, and that not
//! before the next time, so that a restore which has just listed the place finds what it has listed.

use std::path::Path;

use pellucid::media::{ChainPlace, LogCommit, LogFacts};
use pellucid::{Error, Result, Subject};

use super::names::{folder_of_fork, LogName};
use super::run::News;
use super::set::{read, write_down, Found, Owner, Reading};
use super::ship::{is_taken, unrecorded, Shipper};
use crate::history::{told, History};
use crate::job::{write_log, JobError, LogJob, LogOf};
use crate::set::LogSource;

/// Sets are merged as long as their pages are no more than that: they are held in memory.
const MOST_BYTES: usize = 64 << 20;

impl Shipper {
    /// Whether a merging would find something to do.
    pub(super) fn has_to_tidy(&self) -> bool {
        self.small > 1 || self.has_merged
    }

    /// Removes sets that a merged one has replaced, merges what came since, and removes what is not kept any longer.
    ///
    /// # Errors
    /// [`JobError`]. What is there is whole, and the next time does the rest.
    pub fn tidy(&mut self, tell: &mut dyn FnMut(News)) -> std::result::Result<(), JobError> {
        let Some(owner) = self.present_owner()? else { return Ok(()) };
        if let Some(state) = self.present_state() {
            self.renew_if_behind(&owner, &state, tell)?;
        }
        let folder = folder_of_fork(&self.folder, &owner.fork);
        let names = self.place.list(Some(&folder))?;
        let mut names: Vec<_> = names.iter().filter_map(|name| LogName::parse(name)).collect();
        if self.options.merge.is_some() {
            let gone = self.remove_merged(&owner, &folder, &names, tell)?;
            names.retain(|name| !gone.contains(name));
            let (left, made) = self.merge(&owner, &folder, &names, tell)?;
            // Of those that are left the last one alone may become a part of the next.
            (self.small, self.has_merged) = (left.min(1), made);
        }
        self.remove_old(&owner, tell)
    }

    fn path(&self, folder: &str, name: &LogName) -> std::path::PathBuf {
        self.place.path_of(&format!("{folder}/{}", name.text()))
    }

    /// Removes the small sets all of whose commits a merged one has, which is whole.
    fn remove_merged(
        &self,
        owner: &Owner,
        folder: &str,
        names: &[LogName],
        tell: &mut dyn FnMut(News),
    ) -> std::result::Result<Vec<LogName>, JobError> {
        let mut gone = Vec::new();
        let mut forgotten = Vec::new();
        for merged in names.iter().filter(|name| name.last.is_some()) {
            let within = |name: &&LogName| {
                let last = merged.last.unwrap_or(merged.first);
                name.last.is_none() && (merged.first..last).contains(&name.first)
            };
            let small: Vec<_> = names.iter().filter(within).collect();
            if small.is_empty() {
                continue;
            }
            let whole = match read(&self.path(folder, merged), owner, Reading::Whole) {
                Ok(whole) => whole,
                Err(error) => {
                    tell(News::Left { why: about(&self.path(folder, merged), &error) });
                    continue;
                }
            };
            if let Some(why) = told(write_down(&self.path(folder, merged))) {
                tell(News::Unrecorded { why });
            }
            for name in small {
                match read(&self.path(folder, name), owner, Reading::Commits) {
                    Ok(found) if whole.has_all_of(&found) => {
                        self.place.remove(&format!("{folder}/{}", name.text()))?;
                        gone.push(*name);
                        forgotten.push(found.id);
                    }
                    // A branch, whose commits are its own.
                    Ok(_) => {}
                    Err(error) => {
                        tell(News::Left { why: about(&self.path(folder, name), &error) });
                    }
                }
            }
        }
        self.forget(&forgotten, tell);
        if !gone.is_empty() {
            tell(News::Removed { sets: gone.len() });
        }
        Ok(gone)
    }

    /// Takes sets out of the history that are gone.
    pub(super) fn forget(&self, sets: &[String], tell: &mut dyn FnMut(News)) {
        if sets.is_empty() {
            return;
        }
        let forgotten = match History::open() {
            Ok(Some(history)) => history.forget_archived(sets),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Some(why) = told(forgotten) {
            tell(News::Unrecorded { why });
        }
    }

    /// Makes one set of each run of small ones. Returns how many small ones are left, and whether some have become superfluous.
    fn merge(
        &self,
        owner: &Owner,
        folder: &str,
        names: &[LogName],
        tell: &mut dyn FnMut(News),
    ) -> std::result::Result<(u32, bool), JobError> {
        let mut run: Vec<Found> = Vec::new();
        let (mut left, mut has_merged) = (0, false);
        let mut branch = None;
        for name in names.iter().filter(|name| name.last.is_none()) {
            let path = self.path(folder, name);
            let found = match read(&path, owner, Reading::Pages(MOST_BYTES as u64 / 2)) {
                Ok(found) => found,
                Err(error) => {
                    tell(News::Left { why: about(&path, &error) });
                    left += 1;
                    continue;
                }
            };
            let bytes: usize = run.iter().map(|one| one.bytes.len()).sum();
            let goes_on = run.last().is_some_and(|last| last.place.last == found.place.first)
                && name.branch.is_none()
                && bytes + found.bytes.len() <= MOST_BYTES;
            if !goes_on {
                self.end_run(
                    owner,
                    folder,
                    (&mut run, branch),
                    (&mut left, &mut has_merged),
                    tell,
                )?;
                branch = name.branch;
            }
            match found.can_be_merged() {
                true => run.push(found),
                false => left += 1,
            }
        }
        self.end_run(owner, folder, (&mut run, branch), (&mut left, &mut has_merged), tell)?;
        Ok((left, has_merged))
    }

    fn end_run(
        &self,
        owner: &Owner,
        folder: &str,
        (run, branch): (&mut Vec<Found>, Option<u32>),
        (left, has_merged): (&mut u32, &mut bool),
        tell: &mut dyn FnMut(News),
    ) -> std::result::Result<(), JobError> {
        let run = std::mem::take(run);
        if run.len() < 2 {
            *left += run.len() as u32;
            return Ok(());
        }
        let merged = Merged::of(run)?;
        let name = LogName::merged(merged.place.first, merged.place.last, branch);
        let text = format!("{folder}/{}", name.text());
        let path = self.place.path_of(&text);
        let mut job = self.job(&text);
        let whole = self.place.is_store();
        job.log = Some(LogJob { whole, routine: true, ..LogJob::default() });
        let of = LogOf {
            header: owner.header.clone(),
            place: merged.place,
            facts: merged.facts,
            pages: merged.pages,
            begun: merged.begun,
            before: Some(merged.before),
        };
        let sets = merged.sets;
        let mut source = merged;
        match write_log(&job, of, &mut source, &mut |_| ()) {
            Ok(done) => unrecorded(&done, tell),
            // By a process that was killed, or another one: it is read back as one's own is.
            Err(error) if is_taken(&error) => {}
            Err(error) => return Err(error),
        }
        let found = read(&path, owner, Reading::Whole)?;
        if found.commits != source.commits || found.place != source.place {
            let what = "it has other commits than the sets that it was made of, which stay";
            return Err(Error::corrupt(Subject::File(path), what).into());
        }
        *has_merged = true;
        tell(News::Merged { path, sets });
        Ok(())
    }
}

/// Why a set is left alone.
pub(super) fn about(path: &Path, error: &Error) -> String {
    use pellucid::shown::Shown;
    format!("`{}` stays as it is: {error}", path.shown())
}

/// Sets that go on behind each other, as one.
struct Merged {
    place: ChainPlace,
    facts: LogFacts,
    pages: u32,
    /// Later commits than when the last of them was begun are not in it.
    begun: u64,
    before: [u8; 32],
    sets: usize,
    commits: Vec<LogCommit>,
    versions: Vec<(u32, u32)>,
    /// Where the bytes of each version are: in which set, and from where on.
    at: Vec<(u32, usize)>,
    bytes: Vec<Vec<u8>>,
}

impl Merged {
    fn of(run: Vec<Found>) -> Result<Self> {
        let none = || Error::misuse(Subject::LogArchive, "no sets are to be merged");
        let (first, last) = (run.first().ok_or_else(none)?, run.last().ok_or_else(none)?);
        let place = ChainPlace { last: last.place.last, ..first.place };
        let (pages, begun, before, sets) = (last.pages, last.begun, first.before, run.len());
        let full = first.facts.full;
        let mut commits = Vec::new();
        let mut all = Vec::new();
        let mut bytes = Vec::with_capacity(run.len());
        for (number, one) in (0u32..).zip(run) {
            let behind = commits.len() as u32;
            let versions = one.versions.iter();
            all.extend(versions.map(|(page, commit, at)| (*page, behind + commit, number, *at)));
            commits.extend(one.commits);
            bytes.push(one.bytes);
        }
        all.sort_unstable();
        let times = commits.iter().map(|commit: &LogCommit| commit.time);
        let facts = LogFacts {
            full,
            first_time: times.clone().min().unwrap_or(0),
            last_time: times.max().unwrap_or(0),
            commits: commits.len() as u32,
            ..LogFacts::default()
        };
        let versions = all.iter().map(|(page, commit, ..)| (*page, *commit)).collect();
        let at = all.iter().map(|(.., set, at)| (*set, *at)).collect();
        Ok(Self { place, facts, pages, begun, before, sets, commits, versions, at, bytes })
    }
}

impl LogSource for Merged {
    fn commits(&self) -> &[LogCommit] {
        &self.commits
    }

    fn versions(&self) -> &[(u32, u32)] {
        &self.versions
    }

    fn read(&mut self, at: usize, into: &mut [u8]) -> Result<()> {
        let page = self.at.get(at).and_then(|(set, from)| {
            self.bytes.get(*set as usize)?.get(*from..from.checked_add(into.len())?)
        });
        let none = || Error::misuse(Subject::LogArchive, "a version that it does not have");
        into.copy_from_slice(page.ok_or_else(none)?);
        Ok(())
    }
}
