//! What is run: a way of keeping a database, and steps drawn from a seed.

use std::collections::BTreeMap;

use pellucid::Algorithm;
use pellucid_engine::scan::Target;

use crate::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    Plain,
    Sealed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Delete,
    Truncate,
    Persist,
    Memory,
    Off,
    Wal,
}

impl Mode {
    pub const SAFE: [Self; 4] = [Self::Delete, Self::Truncate, Self::Persist, Self::Wal];

    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Truncate => "TRUNCATE",
            Self::Persist => "PERSIST",
            Self::Memory => "MEMORY",
            Self::Off => "OFF",
            Self::Wal => "WAL",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Off,
    Normal,
    Full,
    Extra,
}

impl Level {
    pub const ALL: [Self; 4] = [Self::Off, Self::Normal, Self::Full, Self::Extra];
}

/// What besides rows the steps are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Rows, from the birth of the database on.
    Rows,
    /// The same under `locking_mode=EXCLUSIVE`.
    Exclusive,
    /// Two databases in one transaction.
    Pair,
    /// VACUUM, another page size, another journal mode.
    Rebuild,
    /// Protectors come and go between commits.
    Protectors,
    /// The format version goes up and back between commits.
    Versions,
    /// Few writes to a generation.
    Generations,
    /// A plain database becomes a container.
    Encrypt,
    /// A container becomes a plain database.
    Decrypt,
    /// A new key of another algorithm, and the scan.
    Rekey,
    /// Encryption is switched off, and the scan.
    SwitchOff,
    /// Encryption is switched on, and the scan.
    SwitchOn,
    /// Off and on again in mid-scan, suspended and resumed.
    TurnBack,
    /// A chain of log backups, log backups in between.
    LogChain,
}

impl Theme {
    /// Those with a scan.
    pub fn scans(self) -> bool {
        matches!(self, Self::Rekey | Self::SwitchOff | Self::SwitchOn | Self::TurnBack)
    }

    /// Those that plain SQLite has too.
    pub fn has_control(self) -> bool {
        matches!(self, Self::Rows | Self::Exclusive | Self::Pair | Self::Rebuild)
    }
}

/// One way of keeping a database.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    pub over: Over,
    pub mode: Mode,
    pub level: Level,
    pub page_bytes: usize,
    pub powersafe: bool,
    pub theme: Theme,
    pub seed: u64,
}

impl std::fmt::Display for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let overwrite = if self.powersafe { "psow" } else { "no-psow" };
        write!(
            f,
            "{:?}/{:?}/{:?}/{:?}/{}/{overwrite}/seed {}",
            self.over, self.theme, self.mode, self.level, self.page_bytes, self.seed
        )
    }
}

/// Row and new version; version 0 deletes.
pub type Change = (i64, i64);

/// Rows by id, with their versions; row 0 carries the number of the last commit. None before the table
/// is there.
pub type State = Option<BTreeMap<i64, i64>>;

#[derive(Debug, Clone)]
pub enum Step {
    /// A transaction; with `spill` the cache is too small for it.
    Commit {
        changes: Vec<Change>,
        spill: bool,
    },
    /// One that the application takes back.
    TakenBack(Vec<Change>),
    /// One with a statement that fails and a savepoint taken back, both by themselves.
    Savepoint(Vec<Change>),
    /// A sort and a temporary table, both too large for the cache.
    Temporary,
    Checkpoint(&'static str),
    Reopen,
    Vacuum,
    PageSize(usize),
    Journal(Mode),
    AddProtector,
    DropProtector,
    /// The other format version.
    Version(u32),
    /// The recovery model FULL, and a chain of log backups.
    BeginChain,
    LogBackup,
    Encrypt,
    Decrypt,
    /// Another key or none from now on; a scan is due.
    Switch(Target),
    /// The scan, with commits in between; suspended before the batch of that number, if one is named.
    Scan {
        commits: Vec<Vec<Change>>,
        stop: Option<usize>,
    },
}

const CHECKPOINTS: [&str; 4] = ["PASSIVE", "FULL", "RESTART", "TRUNCATE"];

/// Rows a database has at most, besides row 0.
pub const ROWS: i64 = 24;

impl Scenario {
    /// The steps; the first commit makes the tables.
    pub fn steps(&self, count: usize) -> Vec<Step> {
        let mut random = Random(self.seed ^ 0x5eed_0000);
        let mut version = 0;
        let mut changes = |random: &mut Random, most: u64| -> Vec<Change> {
            version += 1;
            let many = 1 + random.below(most);
            (0..many)
                .map(|_| {
                    let id = 1 + random.below(ROWS as u64) as i64;
                    (id, if random.below(6u64) == 0 { 0 } else { version })
                })
                .collect()
        };
        let first = (1..=ROWS / 2).map(|id| (id, 1000)).collect();
        let mut steps = vec![Step::Commit { changes: first, spill: false }];
        for number in 1..count {
            let step = match self.special(number, &mut random, &mut changes) {
                Some(step) => step,
                None => match random.below(12u64) {
                    0 => Step::TakenBack(changes(&mut random, 12)),
                    1 => Step::Savepoint(changes(&mut random, 8)),
                    2 => Step::Reopen,
                    3 if self.mode == Mode::Wal => {
                        Step::Checkpoint(CHECKPOINTS[random.below(4usize)])
                    }
                    4..=5 => Step::Commit { changes: changes(&mut random, 30), spill: true },
                    _ => Step::Commit { changes: changes(&mut random, 4), spill: false },
                },
            };
            steps.push(step);
        }
        steps
    }

    fn special(
        &self,
        number: usize,
        random: &mut Random,
        changes: &mut impl FnMut(&mut Random, u64) -> Vec<Change>,
    ) -> Option<Step> {
        let sizes = [512, 1024, 4096];
        match self.theme {
            Theme::Rebuild if number % 3 == 0 => Some(match random.below(3u64) {
                0 if self.mode != Mode::Wal => Step::PageSize(sizes[random.below(3usize)]),
                1 => Step::Journal(Mode::SAFE[random.below(4usize)]),
                _ => Step::Vacuum,
            }),
            Theme::Protectors if number % 2 == 0 => Some(match number % 4 {
                0 => Step::DropProtector,
                _ => Step::AddProtector,
            }),
            Theme::Versions if number % 3 == 2 => Some(Step::Version(match number % 2 {
                0 => 2,
                _ => 1,
            })),
            Theme::LogChain => Some(match (number, random.below(10u64)) {
                (1, _) => Step::BeginChain,
                (_, 0) => Step::TakenBack(changes(random, 12)),
                (_, 1) => Step::Reopen,
                (_, 2..=3) => Step::LogBackup,
                (_, 4..=5) => Step::Checkpoint(CHECKPOINTS[random.below(4usize)]),
                (_, 6) => Step::Commit { changes: changes(random, 30), spill: true },
                _ => Step::Commit { changes: changes(random, 4), spill: false },
            }),
            Theme::Encrypt if number == 3 => Some(Step::Encrypt),
            Theme::Decrypt if number == 3 => Some(Step::Decrypt),
            _ => self.scan(number, random, changes),
        }
    }
}

impl Scenario {
    /// A switch, something in between, and the scan.
    fn scan(
        &self,
        number: usize,
        random: &mut Random,
        changes: &mut impl FnMut(&mut Random, u64) -> Vec<Change>,
    ) -> Option<Step> {
        const ON: Target = Target::On(Algorithm::Aes256);
        let mut scan = |stop| {
            let commits = (0..3).map(|_| changes(random, 6)).collect();
            Some(Step::Scan { commits, stop })
        };
        match (self.theme, number) {
            (Theme::Rekey, 3) => Some(Step::Switch(Target::NewKey(Algorithm::Aes128))),
            // So that the scan that is suspended has something to do: the rows of a step are in most pages, and what is in
            // the log alone needs no scan.
            (Theme::TurnBack, 3) if self.mode == Mode::Wal => Some(Step::Checkpoint("TRUNCATE")),
            (Theme::SwitchOff, 3) | (Theme::SwitchOn, 1) | (Theme::TurnBack, 4) => {
                Some(Step::Switch(Target::Off))
            }
            (Theme::SwitchOn, 4) | (Theme::TurnBack, 6) => Some(Step::Switch(ON)),
            (Theme::SwitchOn, 2) => Some(Step::Scan { commits: Vec::new(), stop: None }),
            (Theme::TurnBack, 5) => scan(Some(2)),
            (Theme::Rekey | Theme::SwitchOff, 5) | (Theme::SwitchOn, 6) => scan(None),
            (Theme::TurnBack, 8) => scan(None),
            _ => None,
        }
    }
}

/// A state after a commit.
pub fn changed(state: &State, changes: &[Change], number: usize) -> State {
    let mut rows = state.clone().unwrap_or_default();
    rows.insert(0, number as i64);
    for (id, version) in changes {
        match version {
            0 => rows.remove(id),
            version => rows.insert(*id, *version),
        };
    }
    Some(rows)
}
