//! Every page of a plain database written as it is read, through `sqlite_dbpage`: what a scan does, without the shim.
//!
//! The control of the scan scenarios. Transactions, pace and end are those of Pellucid's scan
//! (`crates/pellucid-engine/src/scan`), so that what is compared is the shim and not another way to go about it. But this has one
//! thread: a scan with nobody else there makes its checkpoints on a second one.

use std::time::{Duration, Instant};

use pellucid_lab_measure::error::{Error, Result};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

const REWRITE: &str = "UPDATE sqlite_dbpage SET data = data WHERE pgno = ?1";
/// The page that SQLite never uses begins there (sqlite.org/fileformat.html, 1.4).
const PENDING_BYTE: u64 = 0x4000_0000;

/// Of the scan: pages of the first batch, the most, and those of a batch with nobody to wait for it; how long the lock is
/// left free, in times of how long it was held.
const FIRST: usize = 4;
const MOST: usize = 4096;
const EXCLUSIVE: usize = 2048;
const FREE_WAL: u32 = 1;
const FREE_ROLLBACK: u32 = 4;
/// Of the scan: how long it waits for a lock, and its page cache.
const PATIENCE: Duration = Duration::from_secs(60);
const CACHE_KIB: i64 = 8192;

/// What is rewritten, and how.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Task {
    /// Shares of the database, 0 to 1: the second half is what a resumed scan has to do.
    pub from: f64,
    pub to: f64,
    /// How long the write lock is held at a time; nobody else gets in if there is none.
    pub hold_us: Option<u64>,
}

/// Rewrites the pages, and at the end empties WAL or journal, as a scan does.
///
/// # Errors
/// [`Error::Sqlite`], also if a lock was not to be had for a minute.
pub fn rewrite(connection: &Connection, task: Task, wal: bool) -> Result<()> {
    let run = |sql: &str| connection.execute_batch(sql).map_err(Error::sqlite(sql));
    connection.busy_timeout(PATIENCE).map_err(Error::sqlite("busy_timeout"))?;
    if wal {
        run("PRAGMA synchronous=NORMAL")?;
    }
    run(&format!("PRAGMA cache_size=-{CACHE_KIB}"))?;
    let page_bytes = number(connection, "PRAGMA page_size")?;
    let mut page = connection.prepare(REWRITE).map_err(Error::sqlite(REWRITE))?;
    let lock_page = PENDING_BYTE / page_bytes + 1;

    let hold = task.hold_us.map(Duration::from_micros);
    let mut pace = Pace::new(hold, wal);
    let mut next = (number(connection, "PRAGMA page_count")? as f64 * task.from) as u64 + 1;
    loop {
        run(if hold.is_some() { "BEGIN IMMEDIATE" } else { "BEGIN EXCLUSIVE" })?;
        let held = Instant::now();
        let last = (number(connection, "PRAGMA page_count")? as f64 * task.to) as u64;
        let batch: Vec<u64> =
            (next..=last).filter(|page| *page != lock_page).take(pace.batch).collect();
        for number in &batch {
            page.execute([*number as i64]).map_err(Error::sqlite(REWRITE))?;
        }
        run("COMMIT")?;
        let Some(done) = batch.last() else { break };
        next = done + 1;
        std::thread::sleep(pace.after(batch.len(), held.elapsed()));
    }
    if task.to >= 1.0 {
        end(connection, wal)
    } else {
        Ok(())
    }
}

/// `scan::Scanner::empty_logs` and `cut_physical_tail`.
fn end(connection: &Connection, wal: bool) -> Result<()> {
    const EACH: Duration = Duration::from_millis(100);
    const FREE: Duration = Duration::from_millis(200);
    let run = |sql: &str| connection.execute_batch(sql).map_err(Error::sqlite(sql));
    if !wal {
        number_or_text(connection, "PRAGMA journal_mode=DELETE")?;
        run("BEGIN EXCLUSIVE")?;
        connection.execute(REWRITE, [1]).map_err(Error::sqlite(REWRITE))?;
        return run("COMMIT");
    }
    number(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
    connection.busy_timeout(EACH).map_err(Error::sqlite("busy_timeout"))?;
    let deadline = Instant::now() + PATIENCE;
    while number(connection, "PRAGMA wal_checkpoint(TRUNCATE)")? != 0 {
        if Instant::now() > deadline {
            return Err(Error::invalid("plain rewrite: readers kept the WAL for a minute"));
        }
        std::thread::sleep(FREE);
    }
    connection.busy_timeout(PATIENCE).map_err(Error::sqlite("busy_timeout"))?;
    run("BEGIN EXCLUSIVE; COMMIT")
}

fn number(connection: &Connection, sql: &str) -> Result<u64> {
    connection
        .query_row(sql, [], |row| row.get::<_, i64>(0))
        .map(i64::unsigned_abs)
        .map_err(Error::sqlite(sql))
}

fn number_or_text(connection: &Connection, sql: &str) -> Result<()> {
    connection.query_row(sql, [], |_| Ok(())).map_err(Error::sqlite(sql))
}

/// `scan::pace::Pace`.
#[derive(Debug)]
struct Pace {
    hold: Option<Duration>,
    free: u32,
    batch: usize,
    least: Duration,
}

impl Pace {
    fn new(hold: Option<Duration>, wal: bool) -> Self {
        let batch = if hold.is_some() { FIRST } else { EXCLUSIVE };
        let free = if wal { FREE_WAL } else { FREE_ROLLBACK };
        Self { hold, free, batch, least: Duration::MAX }
    }

    fn after(&mut self, pages: usize, held: Duration) -> Duration {
        let Some(hold) = self.hold else { return Duration::ZERO };
        self.least = self.least.min(held);
        let fits =
            pages as f64 * hold.max(self.least * 2).as_secs_f64() / held.as_secs_f64().max(1e-6);
        let most = self.batch + self.batch / 2 + 1;
        self.batch = (fits as usize).clamp(1, most.min(MOST));
        held.max(hold) * self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(journal: &str, task: Task) -> u64 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let other = Connection::open(&path).unwrap();
        number_or_text(&other, &format!("PRAGMA journal_mode={journal}")).unwrap();
        other.execute_batch("PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a)").unwrap();
        other
            .execute_batch(
                "INSERT INTO t SELECT zeroblob(3000) FROM json_each('[1,2,3,4,5,6,7,8,9,10]')",
            )
            .unwrap();
        let connection = Connection::open(&path).unwrap();
        rewrite(&connection, task, journal == "wal").unwrap();
        let text: String = other.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(text, "ok");
        connection.total_changes() - u64::from(journal == "delete" && task.to >= 1.0)
    }

    #[test]
    fn every_page_of_its_share_is_rewritten_once() {
        let all = Task { from: 0.0, to: 1.0, hold_us: Some(4000) };
        for journal in ["wal", "delete"] {
            let pages = written(journal, all);
            assert!(pages > 10, "{pages}");
            assert_eq!(written(journal, Task { hold_us: None, ..all }), pages);
            let first = written(journal, Task { to: 0.4, ..all });
            assert_eq!(first + written(journal, Task { from: 0.4, ..all }), pages);
        }
    }
}
