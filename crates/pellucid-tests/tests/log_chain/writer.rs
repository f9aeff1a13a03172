//! A program that writes: an ordinary one, which knows nothing of log backups.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use pellucid_tests::processes::{load_extension, told, Random};
use rusqlite::{Connection, ErrorCode};

pub fn run() {
    let database = PathBuf::from(told("CRASH_DATABASE"));
    let mut random = Random(told("CRASH_SEED").parse().unwrap());
    let mode = told("CRASH_MODE");
    load_extension();
    loop {
        let connection = open(&database, &mut random, &mode);
        for _ in 0..random.below(200u64) + 5 {
            if random.below(12u64) == 0 {
                let how = ["PASSIVE", "FULL", "RESTART", "TRUNCATE"][random.below(4usize)];
                let sql = format!("PRAGMA wal_checkpoint({how})");
                retried(|| connection.query_row(&sql, [], |_| Ok(())));
            }
            if random.below(40u64) == 0 {
                rolled_back(&connection, &mut random);
            }
            commit(&connection, &mut random);
        }
        drop(connection);
        if random.below(4u64) == 0 {
            return;
        }
    }
}

fn open(database: &std::path::Path, random: &mut Random, mode: &str) -> Connection {
    let uri = format!("file:{}?vfs=pellucid", database.display());
    let connection = pellucid_tests::content::open(&uri).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    let synchronous = ["NORMAL", "FULL"][random.below(2usize)];
    let every = [0, 1, 10, 50, 1000][random.below(5usize)];
    let cache = [5, 2000][random.below(2usize)];
    let locking = match (mode, random.below(2u64)) {
        ("exclusive", 0) => "PRAGMA locking_mode=EXCLUSIVE;",
        // With the index in shared memory.
        ("exclusive", _) => {
            "SELECT 1 FROM counter; PRAGMA locking_mode=EXCLUSIVE; SELECT 1 FROM counter;"
        }
        _ => "",
    };
    let settings = format!(
        "PRAGMA synchronous={synchronous}; PRAGMA wal_autocheckpoint={every}; PRAGMA cache_size={cache}; {locking}"
    );
    retried(|| connection.execute_batch(&settings));
    connection
}

fn change(connection: &Connection, random: &mut Random) -> rusqlite::Result<()> {
    let id = 1 + random.below(400u64) as i64;
    match random.below(6u64) {
        0 => connection.execute("INSERT OR REPLACE INTO t VALUES(?1, ?1, randomblob(900))", [id]),
        1 => connection.execute("DELETE FROM t WHERE id = ?1", [id]),
        2 => connection.execute(
            "UPDATE t SET v = v + 1, b = randomblob(300) WHERE id BETWEEN ?1 AND ?1 + 20",
            [id],
        ),
        _ => connection.execute("UPDATE t SET v = v + 3 WHERE id = ?1", [id]),
    }
    .map(drop)
}

fn commit(connection: &Connection, random: &mut Random) {
    let mut own = Random(random.below(u64::MAX));
    let done = retried(|| {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut change_all = || {
            connection.execute("UPDATE counter SET n = n + 1", [])?;
            for _ in 0..own.below(4u64) + 1 {
                change(connection, &mut own)?;
            }
            if own.below(10u64) == 0 {
                connection.execute_batch(
                    "SAVEPOINT s; UPDATE t SET b = randomblob(200) WHERE id < 60; ROLLBACK TO s",
                )?;
                change(connection, &mut own)?;
            }
            let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
            Ok((one("SELECT n FROM counter")?, one("SELECT coalesce(sum(v), 0) FROM t")?))
        };
        let done = change_all().and_then(|done| connection.execute_batch("COMMIT").map(|()| done));
        if done.is_err() {
            let _ = connection.execute_batch("ROLLBACK");
        }
        done
    });
    println!("\ncommitted {} {}", done.0, done.1);
    std::io::stdout().flush().unwrap();
}

fn rolled_back(connection: &Connection, random: &mut Random) {
    retried(|| {
        connection
            .execute_batch("BEGIN IMMEDIATE; UPDATE t SET b = randomblob(400) WHERE id < 150")?;
        change(connection, random)?;
        connection.execute_batch("ROLLBACK")
    });
}

fn retried<T>(mut call: impl FnMut() -> rusqlite::Result<T>) -> T {
    for _ in 0..2000 {
        match call() {
            Ok(done) => return done,
            Err(rusqlite::Error::SqliteFailure(error, _))
                if matches!(error.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {}
            Err(error) => fail(&error.to_string()),
        }
    }
    fail("busy for ever");
}

fn fail(what: &str) -> ! {
    println!("\nfailed {what}");
    let _ = std::io::stdout().flush();
    panic!("{what}");
}
