//! The archiver of many databases: looks whether their logs have changed, ships what is new, and tries again where that failed.
//!
//! While nothing changes nothing is asked of the store. A look reads the wal-index.

use std::path::PathBuf;
use std::sync::mpsc::{channel, Sender};
use std::time::{Duration, Instant};

use pellucid::clock::now_micros;
use pellucid::lsn::Lsn;

use super::ship::{Options, Shipped, Shipper, Staying};
use crate::history::{ArchiverRecord, History};
use crate::job::JobError;

/// So many databases are shipped at once at most.
const THREADS: usize = 16;
/// How often logs are looked at: a part of the interval, within bounds.
const LOOKS: u32 = 5;
const SHORTEST_LOOK: Duration = Duration::from_millis(20);
const LONGEST_LOOK: Duration = Duration::from_millis(200);
/// After a look that found nothing new the next one waits so long at most.
const AFTER_NOTHING: Duration = Duration::from_millis(300);
/// The pauses after errors.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The same error is told again after that.
const SAID_AGAIN: Duration = Duration::from_secs(600);
/// How often the history is told of a database that changes, and of one that does not.
const NOTED: Duration = Duration::from_secs(5);
const NOTED_IDLE: Duration = Duration::from_secs(60);

/// What happened.
#[derive(Debug)]
pub struct Happened {
    /// To which database.
    pub database: PathBuf,
    /// What.
    pub news: News,
}

/// What the archiver tells.
#[derive(Debug)]
pub enum News {
    /// All that was committed is in the place.
    Shipped(Shipped),
    /// It is not: it is tried again after so long; with `once` not.
    Failed {
        /// Why.
        error: JobError,
        /// When it is tried again.
        again: Option<Duration>,
    },
    /// It went on after errors.
    GoesOn {
        /// How long nothing was shipped.
        after: Duration,
    },
    /// Commits between are in no set of the place: another log backup has them.
    Gap {
        /// The last one that is there.
        from: Lsn,
        /// The one that the next set goes on behind.
        to: Lsn,
    },
    /// A full backup was made.
    Full {
        /// Where.
        path: PathBuf,
    },
    /// Small sets became one.
    Merged {
        /// The new one.
        path: PathBuf,
        /// Of how many.
        sets: usize,
    },
    /// Sets were removed: a merged one has all of their commits, or they are of no use within the time that is kept.
    Removed {
        /// How many.
        sets: usize,
    },
    /// A set was left as it is.
    Left {
        /// Why, with its name.
        why: String,
    },
    /// The history has no entry of it.
    Unrecorded {
        /// Why.
        why: String,
    },
}

/// Archives databases; forever, if not `once`. Returns whether all went well.
pub fn run(databases: Vec<Shipper>, options: &Options, tell: &mut dyn FnMut(Happened)) -> bool {
    let mut of_threads: Vec<Vec<Shipper>> = Vec::new();
    of_threads.resize_with(databases.len().clamp(1, THREADS), Vec::new);
    let threads = of_threads.len();
    for (at, shipper) in databases.into_iter().enumerate() {
        of_threads[at % threads].push(shipper);
    }
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for shippers in of_threads {
            let sender = sender.clone();
            scope.spawn(move || {
                let mut watched: Vec<_> = shippers.into_iter().map(Watched::new).collect();
                match options.once {
                    true => watched.iter_mut().for_each(|one| one.once(options, &sender)),
                    false => watch(&mut watched, options, &sender),
                }
            });
        }
        drop(sender);
        let mut all_went_well = true;
        for happened in receiver {
            all_went_well &= !matches!(happened.news, News::Failed { .. });
            tell(happened);
        }
        all_went_well
    })
}

/// Until nobody listens any more.
fn watch(watched: &mut [Watched], options: &Options, sender: &Sender<Happened>) {
    let pause = (options.every / LOOKS).clamp(SHORTEST_LOOK, LONGEST_LOOK);
    loop {
        for one in &mut *watched {
            one.look(options, sender);
        }
        std::thread::sleep(pause);
    }
}

/// A database, and what came of it so far.
struct Watched {
    shipper: Shipper,
    staying: Option<Staying>,
    /// Its version ([`Staying::version`]) before everything was shipped that was there.
    seen: Option<(u64, i64)>,
    shipped_at: Option<Instant>,
    /// When there was nothing new.
    in_vain_at: Option<Instant>,
    failing: Option<Failing>,
    tidied_at: Instant,
    noted_at: Option<Instant>,
    /// Something was shipped since.
    is_unnoted: bool,
    until: u64,
}

/// Errors on end.
struct Failing {
    since: (Instant, u64),
    pause: Duration,
    again_at: Instant,
    said: String,
    said_at: Instant,
}

impl Watched {
    fn new(shipper: Shipper) -> Self {
        Self {
            shipper,
            staying: None,
            seen: None,
            shipped_at: None,
            in_vain_at: None,
            failing: None,
            tidied_at: Instant::now(),
            noted_at: None,
            is_unnoted: false,
            until: 0,
        }
    }

    fn say(&self, sender: &Sender<Happened>, news: News) {
        // Nobody listens only when the process ends.
        let _ = sender.send(Happened { database: self.shipper.database.clone(), news });
    }

    /// Ships what there is; then merges and removes, if that was asked for.
    fn once(&mut self, options: &Options, sender: &Sender<Happened>) {
        let news = self.try_once(options, sender);
        let error = match &news {
            News::Failed { error, .. } => Some(error.to_string()),
            _ => None,
        };
        self.note(error.as_deref(), now_micros());
        self.say(sender, news);
    }

    fn try_once(&mut self, options: &Options, sender: &Sender<Happened>) -> News {
        let database = self.shipper.database.clone();
        let mut tell = |news| {
            let _ = sender.send(Happened { database: database.clone(), news });
        };
        let failed = |error| News::Failed { error, again: None };
        let shipped = match self.shipper.ship(&mut self.staying, &mut tell) {
            Ok(shipped) => shipped,
            Err(error) => return failed(error),
        };
        self.until = shipped.until;
        if options.merge.is_some() || options.keep.is_some() {
            if let Err(error) = self.shipper.tidy(&mut tell) {
                return failed(error);
            }
        }
        News::Shipped(shipped)
    }

    /// Looks whether there is something to do, and does it.
    fn look(&mut self, options: &Options, sender: &Sender<Happened>) {
        let now = Instant::now();
        if self.failing.as_ref().is_some_and(|failing| now < failing.again_at) {
            return;
        }
        if self.shipped_at.is_some_and(|at| now.duration_since(at) < options.every) {
            return;
        }
        let pause = (options.every / 2).min(AFTER_NOTHING);
        if self.in_vain_at.is_some_and(|at| now.duration_since(at) < pause) {
            return;
        }
        let looked = now_micros();
        let version = || self.staying.as_ref()?.version(&self.shipper.database);
        let present = version();
        let is_same = present.is_some() && self.seen == present;
        let is_full_due = self.shipper.is_full_due();
        if is_same && !is_full_due && self.failing.is_none() {
            self.tidy_if_due(options, sender);
            let after = if self.is_unnoted { NOTED } else { NOTED_IDLE };
            if self.is_to_be_noted(after) {
                self.until = looked;
                self.note(None, 0);
            }
            return;
        }
        let database = self.shipper.database.clone();
        let shipped = self.shipper.ship(&mut self.staying, &mut |news| {
            let _ = sender.send(Happened { database: database.clone(), news });
        });
        match shipped {
            Ok(shipped) => {
                match shipped.sets {
                    0 => self.in_vain_at = Some(now),
                    _ => self.shipped_at = Some(now),
                }
                (self.seen, self.until) = (present, shipped.until);
                self.is_unnoted |= shipped.sets > 0;
                if let Some(failing) = self.failing.take() {
                    let after = failing.since.0.elapsed();
                    self.say(sender, News::GoesOn { after });
                    self.note(None, 0);
                }
                if self.is_to_be_noted(NOTED) {
                    self.note(None, 0);
                }
                self.tidy_if_due(options, sender);
            }
            Err(error) => self.failed(error, sender),
        }
    }

    fn failed(&mut self, error: JobError, sender: &Sender<Happened>) {
        let said = error.to_string();
        let now = Instant::now();
        let before = self.failing.take();
        let pause = before.as_ref().map_or(FIRST_PAUSE, |one| (one.pause * 2).min(LONGEST_PAUSE));
        let since = before.as_ref().map_or((now, now_micros()), |one| one.since);
        let is_known = before
            .as_ref()
            .is_some_and(|one| one.said == said && now.duration_since(one.said_at) < SAID_AGAIN);
        let said_at = match (&before, is_known) {
            (Some(one), true) => one.said_at,
            _ => now,
        };
        self.note(Some(&said), since.1);
        self.failing = Some(Failing { since, pause, again_at: now + pause, said, said_at });
        if !is_known {
            self.say(sender, News::Failed { error, again: Some(pause) });
        }
    }

    /// Merges small sets and removes what is not kept, now and then.
    fn tidy_if_due(&mut self, options: &Options, sender: &Sender<Happened>) {
        let Some(every) = options.merge else { return };
        if self.tidied_at.elapsed() < every || !self.shipper.has_to_tidy() {
            return;
        }
        self.tidied_at = Instant::now();
        let database = self.shipper.database.clone();
        let tidied = self.shipper.tidy(&mut |news| {
            let _ = sender.send(Happened { database: database.clone(), news });
        });
        if let Err(error) = tidied {
            // Nothing is lost by that, and the next time is soon enough.
            self.say(sender, News::Left { why: error.to_string() });
        }
    }

    fn is_to_be_noted(&self, after: Duration) -> bool {
        self.noted_at.is_none_or(|at| at.elapsed() >= after)
    }

    /// Tells the history how far it is, for `status`, `doctor` and metrics. Without a history they know nothing of it.
    fn note(&mut self, error: Option<&str>, since: u64) {
        (self.noted_at, self.is_unnoted) = (Some(Instant::now()), false);
        let Ok(Some(history)) = History::open_or_begin() else { return };
        let _ = history.note_archiver(&ArchiverRecord {
            database: self.shipper.database.clone(),
            place: self.shipper.root(),
            every_seconds: self.shipper.options.every.as_secs(),
            is_once: self.shipper.options.once,
            until: self.until,
            alive: now_micros(),
            failing_since: if error.is_some() { since } else { 0 },
            error: error.unwrap_or_default().to_owned(),
        });
    }
}
