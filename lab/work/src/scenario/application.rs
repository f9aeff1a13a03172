//! A constant load on a large database: writers and readers that go on while its keys are changed.
//!
//! Each client waits a set time, does one thing, and waits again, so that the load is the same before a scan and during
//! one. A writer's transaction adds an entry to a journal of its own and changes the order that the entry names;
//! afterwards the entries say what every writer was told is there.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::histogram::{Histogram, SparseHistogram};
use pellucid_lab_measure::machine::as_ns;
use pellucid_lab_measure::random::Random;
use rusqlite::{Connection, Statement};
use serde::{Deserialize, Serialize};

use super::purchase::two_words;

/// Beside the orders of `scenario::whole`. EntryID follows the order of the commits: each is given under the write lock.
const TABLE: &str = "
    CREATE TABLE Entry (
        EntryID INTEGER PRIMARY KEY,
        Writer INTEGER NOT NULL,
        Number INTEGER NOT NULL,
        OrderID INTEGER NOT NULL,
        Note TEXT NOT NULL,
        UNIQUE (Writer, Number))";
const ADD: &str = "INSERT INTO Entry (Writer, Number, OrderID, Note) VALUES (?1, ?2, ?3, ?4)";
const CHANGE: &str = "UPDATE CustomerOrder SET Note = ?2 WHERE OrderID = ?1";
const READ: &str =
    "SELECT Customer, Article, Amount, Note, DateCreated FROM CustomerOrder WHERE OrderID = ?1";

/// Entries that are not what their writer wrote, and orders that do not have the note of their last entry.
const WRONG: &str = "
    SELECT (SELECT count(*) FROM Entry WHERE Note NOT LIKE Writer || '-' || Number || ' %')
         + (SELECT count(*) FROM (SELECT OrderID, Note, max(EntryID) FROM Entry GROUP BY OrderID) AS last
            LEFT JOIN CustomerOrder USING (OrderID) WHERE CustomerOrder.Note IS NOT last.Note)";

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    Writer,
    Reader,
}

/// What one client is told.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Task {
    pub role: Role,
    /// A number of its own.
    pub client: u64,
    pub seed: u64,
    pub orders: u64,
    pub pause_us: u64,
    pub busy_timeout_ms: u64,
}

/// What one client noticed from `go` to `stop`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Stretch {
    pub latencies: SparseHistogram,
    pub longest_call_ns: u64,
    pub failed: BTreeMap<String, u64>,
    /// Transactions committed since the client began, over all stretches.
    pub acknowledged: u64,
}

/// Makes the tables that the clients write to.
///
/// # Errors
/// [`Error::Sqlite`]
pub fn prepare(connection: &Connection) -> Result<()> {
    connection.execute_batch(TABLE).map_err(Error::sqlite("CREATE TABLE Entry"))
}

/// One client, with its own sequence of random rows.
#[derive(Debug)]
pub struct Client<'connection> {
    connection: &'connection Connection,
    begin: Statement<'connection>,
    add: Statement<'connection>,
    change: Statement<'connection>,
    commit: Statement<'connection>,
    read: Statement<'connection>,
    task: Task,
    random: Random,
    acknowledged: u64,
}

impl<'connection> Client<'connection> {
    /// A client at `connection`, with its statements prepared.
    ///
    /// # Errors
    /// [`Error::Sqlite`]
    pub fn new(connection: &'connection Connection, task: Task) -> Result<Self> {
        connection
            .busy_timeout(Duration::from_millis(task.busy_timeout_ms))
            .map_err(Error::sqlite("busy_timeout"))?;
        let prepare = |sql| connection.prepare(sql).map_err(Error::sqlite(sql));
        Ok(Self {
            connection,
            begin: prepare("BEGIN IMMEDIATE")?,
            add: prepare(ADD)?,
            change: prepare(CHANGE)?,
            commit: prepare("COMMIT")?,
            read: prepare(READ)?,
            task,
            random: Random::of(&[task.seed, task.client]),
            acknowledged: 0,
        })
    }

    /// Works until `stop` says so, and does one thing at least: of a stretch in which a client did nothing nobody could say
    /// what it noticed. A statement that fails is counted, and the work goes on.
    ///
    /// # Errors
    /// [`Error::Invalid`] if an order is missing.
    pub fn work(&mut self, mut stop: impl FnMut() -> bool) -> Result<Stretch> {
        let mut latencies = Histogram::default();
        let mut stretch = Stretch::default();
        loop {
            // From half the pause to one and a half, so that clients do not go in step.
            let pause = self.task.pause_us / 2 + self.random.below(self.task.pause_us + 1);
            std::thread::sleep(Duration::from_micros(pause));
            let over = stop();
            if over && latencies.count() > 0 {
                break;
            }
            let start = Instant::now();
            match self.task.role {
                Role::Writer => self.write(&mut stretch)?,
                Role::Reader => self.read(&mut stretch)?,
            }
            latencies.add(as_ns(start.elapsed()));
            if over {
                break;
            }
        }
        stretch.latencies = latencies.sparse();
        stretch.acknowledged = self.acknowledged;
        Ok(stretch)
    }

    fn write(&mut self, stretch: &mut Stretch) -> Result<()> {
        let number = self.acknowledged + 1;
        let writer = self.task.client;
        let order = self.random.id(self.task.orders) as i64;
        let note = format!("{writer}-{number} {}", two_words(&mut self.random));
        let Self { begin, add, change, commit, .. } = self;
        let mut rows = 0;
        let done = stretch.call("BEGIN", || begin.execute([]))
            && stretch.call("INSERT", || add.execute((writer as i64, number as i64, order, &note)))
            && stretch.call("UPDATE", || {
                rows = change.execute((order, &note))?;
                Ok(rows)
            })
            && stretch.call("COMMIT", || commit.execute([]));
        if done {
            self.acknowledged = number;
            return one_row(rows, "UPDATE");
        }
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK").map_err(Error::sqlite("ROLLBACK"))?;
        }
        Ok(())
    }

    fn read(&mut self, stretch: &mut Stretch) -> Result<()> {
        let order = self.random.id(self.task.orders) as i64;
        let read = &mut self.read;
        let mut rows = 0;
        let done = stretch.call("SELECT", || {
            let mut found = read.query([order])?;
            while let Some(row) = found.next()? {
                for column in 0..5 {
                    black_box(row.get_ref(column)?);
                }
                rows += 1;
            }
            Ok(rows)
        });
        if done {
            one_row(rows, "SELECT")
        } else {
            Ok(())
        }
    }
}

impl Stretch {
    /// One statement: whether it worked.
    fn call(&mut self, name: &str, run: impl FnOnce() -> rusqlite::Result<usize>) -> bool {
        let start = Instant::now();
        let done = run();
        self.longest_call_ns = self.longest_call_ns.max(as_ns(start.elapsed()));
        let Err(error) = done else { return true };
        let what = match error.sqlite_error() {
            Some(error) => format!("{name}: {}", error.extended_code),
            None => format!("{name}: {error}"),
        };
        *self.failed.entry(what).or_default() += 1;
        false
    }
}

fn one_row(rows: usize, what: &str) -> Result<()> {
    match rows {
        1 => Ok(()),
        _ => Err(Error::invalid(format!("{what} of one order: {rows} rows"))),
    }
}

/// What is wrong with the entries, where writer number `i` was told of `acknowledged[i]` commits, and with the
/// number of orders; and what SQLite's own check says of the file.
///
/// # Errors
/// [`Error::Sqlite`]
pub fn account(
    connection: &Connection,
    orders: u64,
    acknowledged: &[u64],
) -> Result<(u64, String)> {
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map(i64::unsigned_abs)
            .map_err(Error::sqlite(sql))
    };
    let mut wrong = number(WRONG)?;
    wrong += number("SELECT count(*) FROM CustomerOrder")?.abs_diff(orders);
    let mut all = 0;
    for (writer, expected) in acknowledged.iter().enumerate() {
        // Numbers are unique: as many as the highest, and none is missing.
        let of_writer = format!("FROM Entry WHERE Writer = {writer}");
        wrong += number(&format!("SELECT count(*) {of_writer}"))?.abs_diff(*expected);
        wrong += number(&format!("SELECT ifnull(max(Number), 0) {of_writer}"))?.abs_diff(*expected);
        all += expected;
    }
    wrong += number("SELECT count(*) FROM Entry")?.abs_diff(all);
    let sql = "PRAGMA integrity_check(1)";
    let integrity = connection.query_row(sql, [], |row| row.get(0)).map_err(Error::sqlite(sql))?;
    Ok((wrong, integrity))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::whole;

    const ORDERS: u64 = 50;

    fn database() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        whole::fill(&mut connection, 4096, 1).unwrap();
        let more = "INSERT INTO CustomerOrder SELECT value, 'c', 'a', 1, 'n', 'd' FROM json_each('[' || ?1 || ']')";
        let have = whole::rows(&connection).unwrap();
        let ids: Vec<_> = (have + 1..=ORDERS).map(|id| id.to_string()).collect();
        connection.execute(more, [ids.join(",")]).unwrap();
        prepare(&connection).unwrap();
        connection
    }

    fn task(role: Role, client: u64) -> Task {
        Task { role, client, seed: 3, orders: ORDERS, pause_us: 0, busy_timeout_ms: 50 }
    }

    fn times(n: usize) -> impl FnMut() -> bool {
        let mut left = n;
        move || {
            let over = left == 0;
            left = left.saturating_sub(1);
            over
        }
    }

    #[test]
    fn what_was_acknowledged_is_there_and_what_is_missing_is_found() {
        let connection = database();
        for client in 0..2 {
            let mut client = Client::new(&connection, task(Role::Writer, client)).unwrap();
            let stretch = client.work(times(40)).unwrap();
            assert_eq!((stretch.acknowledged, stretch.failed.len()), (40, 0));
        }
        let mut reader = Client::new(&connection, task(Role::Reader, 2)).unwrap();
        assert!(reader.work(times(40)).unwrap().longest_call_ns > 0);
        // Told to stop before it came to anything.
        assert!(reader.work(|| true).unwrap().longest_call_ns > 0);

        let wrong = |acknowledged: &[u64]| account(&connection, ORDERS, acknowledged).unwrap();
        assert_eq!(wrong(&[40, 40]), (0, "ok".to_string()));
        assert_ne!(wrong(&[40, 41]).0, 0);
        assert_ne!(wrong(&[40]).0, 0);
        for harm in [
            "DELETE FROM Entry WHERE Writer = 1 AND Number = 7",
            "UPDATE CustomerOrder SET Note = 'x' WHERE OrderID = (SELECT OrderID FROM Entry LIMIT 1)",
            "UPDATE Entry SET Note = '0-0 x' WHERE EntryID = 1",
            "DELETE FROM CustomerOrder WHERE OrderID = 50",
        ] {
            connection.execute_batch(&format!("SAVEPOINT harm; {harm}")).unwrap();
            assert_ne!(wrong(&[40, 40]).0, 0, "{harm}");
            connection.execute_batch("ROLLBACK TO harm; RELEASE harm").unwrap();
        }
    }

    #[test]
    fn a_statement_that_fails_is_counted_and_its_number_used_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        database().execute("VACUUM INTO ?1", [path.to_str().unwrap()]).unwrap();
        let (one, other) = (Connection::open(&path).unwrap(), Connection::open(&path).unwrap());
        let mut client = Client::new(&one, task(Role::Writer, 0)).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let stretch = client.work(times(2)).unwrap();
        assert_eq!(stretch.failed.iter().next(), Some((&"BEGIN: 5".to_string(), &2)));
        assert!(stretch.longest_call_ns >= 40_000_000, "{stretch:?}");
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(client.work(times(3)).unwrap().acknowledged, 3);
        assert_eq!(account(&one, ORDERS, &[3]).unwrap().0, 0);
    }
}
