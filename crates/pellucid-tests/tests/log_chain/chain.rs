//! The chain as a reader of it has it: the state at the beginning, then behind each commit.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use pellucid::lsn::Lsn;
use pellucid_engine::log_chain::KeptLog;
use rusqlite::Connection;

pub struct Chain {
    page_bytes: usize,
    /// The pages behind the last commit.
    state: Vec<Vec<u8>>,
    commits: usize,
    last: Option<Lsn>,
    pieces: usize,
    /// One of so many states is looked at.
    every: usize,
    /// The sums behind the commits that were looked at.
    sums: BTreeMap<i64, i64>,
    /// The states between the log backups, by what they end with, where they are asked for.
    between: Option<BTreeMap<Lsn, (Vec<Vec<u8>>, usize)>>,
    directory: tempfile::TempDir,
}

impl Chain {
    pub fn begin(connection: &Connection) -> Self {
        let state = pages(connection);
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self {
            page_bytes: state[0].len(),
            state,
            commits: 0,
            last: None,
            pieces: 0,
            every: 1,
            sums: BTreeMap::new(),
            between: None,
            directory,
        }
    }

    /// Looks at one of so many states.
    pub fn look_at_each(&mut self, every: usize) {
        self.every = every;
    }

    /// Takes what no log backup has.
    pub fn take(&mut self, database: &Path) {
        let kept = KeptLog::open(database, Duration::from_secs(60)).unwrap();
        self.apply(kept);
    }

    /// The same of an archive that may be an older one: commits may come again. False if the chain is broken, and it says so.
    pub fn take_again(&mut self, database: &Path) -> bool {
        let Ok(kept) = KeptLog::open(database, Duration::from_secs(60)) else { return false };
        if self.last.is_some() {
            let found = self.between.as_ref().and_then(|between| between.get(&kept.behind()));
            let (state, commits) = found.expect("it goes on behind the end of a log backup");
            (self.state, self.commits) = (state.clone(), *commits);
            self.last = Some(kept.behind());
        }
        self.apply(kept);
        true
    }

    /// Keeps the states between log backups, so that one may come again.
    pub fn keep_between(&mut self) {
        self.between = Some(BTreeMap::new());
    }

    fn note(&mut self, lsn: Lsn) {
        if let Some(between) = &mut self.between {
            between.insert(lsn, (self.state.clone(), self.commits));
        }
    }

    fn apply(&mut self, mut kept: KeptLog) {
        assert!(
            self.last.is_none_or(|last| last == kept.behind()),
            "{:?} and {:?}",
            self.last,
            kept.behind()
        );
        self.note(kept.behind());
        let mut versions = kept.versions().to_vec();
        versions.sort_by_key(|version| version.commit);
        let mut versions = versions.into_iter().peekable();
        let mut before = self.last.unwrap_or(Lsn::NONE);
        for (number, commit) in (0..).zip(kept.commits().to_vec()) {
            assert!(before < commit.lsn);
            before = commit.lsn;
            self.state.resize(commit.pages as usize, vec![0; self.page_bytes]);
            let mut changed = Vec::new();
            while let Some(version) = versions.next_if(|version| version.commit == number) {
                assert!(!commit.reseals_only, "what only seals pages anew changes no state");
                changed.push(version.page);
                kept.read(version, &mut self.state[version.page as usize - 1]).unwrap();
            }
            // With page 1 a scan changes the change counter, and no table.
            if !commit.reseals_only && changed != [1] {
                self.commits += 1;
                if self.commits % self.every == 0 {
                    self.look();
                }
            }
        }
        self.last = Some(kept.last());
        self.note(kept.last());
        self.pieces += 1;
        kept.is_backed_up([1; 32]).unwrap();
    }

    /// Builds the database behind the last commit, and looks at it.
    fn look(&mut self) {
        let number = self.commits as i64;
        let path = self.directory.path().join("state.db");
        std::fs::write(&path, as_rollback(&self.state)).unwrap();
        let built =
            pellucid_tests::content::open(&format!("file:{}?vfs=unix", path.display())).unwrap();
        let one = |sql: &str| built.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(one("SELECT n FROM counter"), number, "a commit is missing in the chain");
        self.sums.insert(number, one("SELECT coalesce(sum(v), 0) FROM t"));
        let whole: String =
            built.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok", "commit {number}");
    }

    pub fn commits(&self) -> usize {
        self.commits
    }

    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// How many states were looked at.
    pub fn looked_at(&self) -> usize {
        self.sums.len()
    }

    /// Compares the states that were looked at with what was acknowledged there.
    pub fn assert_states(&self, acknowledged: &BTreeMap<i64, i64>) {
        for (number, sum) in &self.sums {
            let known = acknowledged.get(number);
            assert!(known.is_none_or(|known| known == sum), "commit {number}: {sum} for {known:?}");
        }
        let last = acknowledged.keys().next_back().copied().unwrap_or(0);
        assert!(last <= self.commits as i64, "commit {last} was acknowledged and is missing");
    }

    /// Compares what the chain leads to with the database.
    pub fn assert_last(&self, connection: &Connection) {
        let found = pages(connection);
        assert_eq!(self.state.len(), found.len(), "pages");
        for (number, (built, found)) in (1..).zip(self.state.iter().zip(&found)) {
            assert!(built == found, "page {number} is another one");
        }
    }
}

/// The file of a database whose log is empty.
fn as_rollback(state: &[Vec<u8>]) -> Vec<u8> {
    let mut file = state.concat();
    (file[18], file[19]) = (1, 1);
    file
}

/// All pages as SQLite sees them.
fn pages(connection: &Connection) -> Vec<Vec<u8>> {
    let mut statement = connection.prepare("SELECT data FROM sqlite_dbpage ORDER BY pgno").unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}
