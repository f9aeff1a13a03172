//! The chain as a reader of it has it: the state at the beginning, and what each commit made of pages.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use pellucid::lsn::Lsn;
use pellucid_engine::log_chain::KeptLog;
use rusqlite::Connection;

pub struct Chain {
    page_bytes: usize,
    base: Vec<Vec<u8>>,
    commits: Vec<(Lsn, u32, Vec<(u32, Vec<u8>)>)>,
    last: Option<Lsn>,
    pieces: usize,
}

impl Chain {
    pub fn begin(connection: &Connection) -> Self {
        let base = pages(connection);
        Self { page_bytes: base[0].len(), base, commits: Vec::new(), last: None, pieces: 0 }
    }

    /// Takes what no log backup has.
    pub fn take(&mut self, database: &Path) {
        let mut kept = KeptLog::open(database, Duration::from_secs(60)).unwrap();
        assert!(
            self.last.is_none_or(|last| last == kept.behind()),
            "{:?} and {:?}",
            self.last,
            kept.behind()
        );
        // What only seals pages anew changes no state.
        let mut places = Vec::new();
        for commit in kept.commits() {
            assert!(self.commits.last().is_none_or(|(lsn, _, _)| *lsn < commit.lsn));
            places.push(self.commits.len());
            if !commit.reseals_only {
                self.commits.push((commit.lsn, commit.pages, Vec::new()));
            }
        }
        for version in kept.versions().to_vec() {
            let mut page = vec![0; self.page_bytes];
            kept.read(version, &mut page).unwrap();
            self.commits[places[version.commit as usize]].2.push((version.page, page));
        }
        self.last = Some(kept.last());
        self.pieces += 1;
        kept.is_backed_up([1; 32]).unwrap();
    }

    pub fn commits(&self) -> usize {
        self.commits.len()
    }

    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Compares states behind commits, about `sampled` of them, with what was acknowledged there.
    pub fn assert_states(&self, acknowledged: &BTreeMap<i64, i64>, sampled: usize) {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let mut state = self.base.clone();
        let step = (self.commits.len() / sampled).max(1);
        for (number, commit) in (1i64..).zip(&self.commits) {
            apply(&mut state, commit, self.page_bytes);
            let known = acknowledged.get(&number);
            if number as usize % step != 0 && number as usize != self.commits.len() {
                continue;
            }
            let path = directory.path().join("state.db");
            std::fs::write(&path, as_rollback(&state)).unwrap();
            let built = pellucid_tests::content::open(&format!("file:{}?vfs=unix", path.display()))
                .unwrap();
            let one = |sql: &str| built.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
            assert_eq!(one("SELECT n FROM counter"), number);
            let sum = one("SELECT coalesce(sum(v), 0) FROM t");
            assert!(
                known.is_none_or(|known| *known == sum),
                "commit {number}: {sum} for {known:?}"
            );
            let whole: String =
                built.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(whole, "ok", "commit {number}");
        }
        let last = acknowledged.keys().next_back().copied().unwrap_or(0);
        assert!(last <= self.commits.len() as i64, "commit {last} was acknowledged and is missing");
    }

    /// Compares what the chain leads to with the database.
    pub fn assert_last(&self, connection: &Connection) {
        let mut state = self.base.clone();
        for commit in &self.commits {
            apply(&mut state, commit, self.page_bytes);
        }
        let found = pages(connection);
        assert_eq!(state.len(), found.len(), "pages");
        for (number, (built, found)) in (1..).zip(state.iter().zip(&found)) {
            assert!(built == found, "page {number} is another one");
        }
    }
}

fn apply(
    state: &mut Vec<Vec<u8>>,
    (_, pages, versions): &(Lsn, u32, Vec<(u32, Vec<u8>)>),
    bytes: usize,
) {
    state.resize(*pages as usize, vec![0; bytes]);
    for (page, content) in versions {
        state[*page as usize - 1].clone_from(content);
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
