//! What a scan says of itself in the instance, so that it is found again from anywhere.
//!
//! Whoever cannot write there scans all the same, and is seen by the lock on the database only.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid_engine::inspect::SealedHeader;
use pellucid_engine::scan::Doing;
use pellucid_host::holders;
use pellucid_keyring::{Keyring, Run, Stopped};

use crate::container::sealed;
use crate::output::{now, Failure};

/// How often it is written.
const EVERY: Duration = Duration::from_secs(1);

/// The words for it.
pub fn name(doing: Doing) -> &'static str {
    match doing {
        Doing::Rewriting => "rewriting",
        Doing::WaitingForReaders => "waiting for readers",
        Doing::Proving => "proving",
    }
}

/// The entry of a scan that this process runs.
pub struct Entry {
    database: PathBuf,
    home: Option<PathBuf>,
    begun: Instant,
    /// What was said last, and when; none before the first word.
    put: Option<(Doing, Instant)>,
    run: Run,
}

impl Entry {
    /// Nothing is said before the scan does something: it may not be its turn.
    pub fn new(database: &Path) -> Self {
        Self {
            database: database.to_owned(),
            home: Keyring::locate().ok(),
            begun: Instant::now(),
            put: None,
            run: Run::begin(database, seconds_now()),
        }
    }

    /// What it does now, for [`pellucid_engine::scan::Watch`].
    pub fn told(&mut self, doing: Doing, done: u32, pages: u32) {
        if pages > 1 {
            (self.run.done, self.run.pages) = (done, pages);
        }
        let due = self.put.is_none_or(|(said, at)| said != doing || at.elapsed() >= EVERY);
        let Some(home) = self.home.as_deref().filter(|_| due) else { return };
        if self.put.is_none() {
            Run::sweep(home);
        }
        self.put = Some((doing, Instant::now()));
        self.run.doing = name(doing).to_owned();
        if doing == Doing::Rewriting {
            self.run.rate =
                f64::from(self.run.done) / self.begun.elapsed().as_secs_f64().max(0.001);
        }
        self.run.held_by = match doing {
            Doing::WaitingForReaders => holders::names(&holders::in_transaction(&self.database)),
            _ => String::new(),
        };
        self.run.at = seconds_now();
        // It is for whoever looks on.
        let _ = self.run.put(home);
    }

    /// There is nothing to be found any more.
    pub fn remove(self) {
        if let Some(home) = &self.home {
            // Also one of an earlier scan, which this one has ended.
            let _ = Run::remove(home, &self.database);
        }
    }
}

/// Leaves behind why the scan of `database` has stopped. Where none is under way any more there is nothing to leave, and
/// where somebody else goes on with it the word is theirs.
pub fn leave(database: &Path, failure: &Failure) {
    let Ok(home) = Keyring::locate() else { return };
    let new = Run::begin(database, seconds_now());
    let own = Run::find(&home, database).filter(|run| run.process == new.process);
    let stopped = sealed(database).is_ok_and(|found| {
        found.header.scan.state.is_under_way() && found.is_scanned != Some(true)
    });
    if !stopped {
        if own.is_some() {
            let _ = Run::remove(&home, database);
        }
        return;
    }
    let mut run = own.unwrap_or(new);
    run.at = seconds_now();
    run.stopped = Some(Stopped {
        error: failure.message.clone(),
        hint: failure.hint.clone().unwrap_or_default(),
    });
    let _ = run.put(&home);
}

fn seconds_now() -> u64 {
    u64::try_from(now()).unwrap_or(0)
}

/// Why the last scan of `database` has stopped.
pub fn stopped(database: &Path) -> Option<Stopped> {
    Run::find(&Keyring::locate().ok()?, database)?.stopped
}

/// The process that scans `database`, as far as it can be seen from here.
pub fn process(database: &Path) -> Option<u32> {
    running(database)?
}

/// Whether `database` is scanned, and the process that does it, as far as it can be seen from here.
pub fn running(database: &Path) -> Option<Option<u32>> {
    match find(database, &*sealed(database).ok()?)? {
        Found::Running(run) => Some(run.map(|run| run.process.pid)),
        Found::Stopped(_) | Found::Gone(_) => None,
    }
}

/// Whoever should be scanning a database.
#[derive(Debug)]
pub enum Found {
    /// It does; none if it has said nothing that can be read here.
    Running(Option<Run>),
    /// It has told why not.
    Stopped(Stopped),
    /// It does not; which process it was, if that is known.
    Gone(Option<Run>),
}

/// Who scans `database`, of which `header` is the header; none if no scan is under way.
pub fn find(database: &Path, header: &SealedHeader) -> Option<Found> {
    if !header.header.scan.state.is_under_way() {
        return None;
    }
    let run = Keyring::locate().ok().and_then(|home| Run::find(&home, database));
    let alive = run.as_ref().is_some_and(|run| run.stopped.is_none() && run.process.is_alive());
    Some(match (header.is_scanned.unwrap_or(alive), run) {
        (true, run) => Found::Running(run.filter(|_| alive)),
        (false, Some(Run { stopped: Some(stopped), .. })) => Found::Stopped(stopped),
        (false, run) => Found::Gone(run),
    })
}
