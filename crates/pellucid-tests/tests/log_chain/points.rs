//! What log backups lead to, what they do not, and what the tests of both share.

use std::path::{Path, PathBuf};

use pellucid::header::{RecoveryModel, Standing};
use pellucid::Algorithm;
use pellucid_backup::job::{
    back_up, processors, restore, Done, Files, Job, JobError, Library, LogJob, Point, Restored,
    Restoring,
};
use pellucid_engine::log_chain;
use pellucid_host::DatabaseError;
use rusqlite::Connection;

use super::Bench;

pub fn files(path: PathBuf) -> Files {
    Files { families: vec![path], mirrors: Vec::new() }
}

pub fn full(bench: &Bench, name: &str) -> PathBuf {
    let path = bench.path(name);
    back_up(&Job::new(bench.database(), files(path.clone())), &mut |_| ()).unwrap();
    path
}

pub fn differential(bench: &Bench, name: &str, of: &Path) -> PathBuf {
    let path = bench.path(name);
    let job = Job::new(bench.database(), files(path.clone()));
    back_up(&Job { differential: Some(vec![of.to_owned()]), ..job }, &mut |_| ()).unwrap();
    path
}

pub fn log(bench: &Bench, name: &str) -> PathBuf {
    log_done(bench, name).1
}

pub fn log_done(bench: &Bench, name: &str) -> (Done, PathBuf) {
    (try_log(bench, name).unwrap(), bench.path(name))
}

pub fn try_log(bench: &Bench, name: &str) -> Result<Done, JobError> {
    let job = Job::new(bench.database(), files(bench.path(name)));
    back_up(&Job { log: Some(LogJob::default()), ..job }, &mut |_| ())
}

pub fn restoring(media: &[PathBuf], point: Point, to: PathBuf) -> Restoring {
    Restoring {
        media: media.to_vec(),
        base: None,
        position: None,
        point: Some(point),
        only: Vec::new(),
        to,
        protections: Vec::new(),
        algorithm: Algorithm::Aes256,
        decrypted: false,
        plain_differential: false,
        allow_clear: false,
        allow_unsigned: false,
        replace: false,
        leave: Standing::Online,
        timeout: std::time::Duration::from_secs(10),
        workers: processors(),
    }
}

pub fn restored(media: &[PathBuf], point: Point, to: PathBuf) -> Result<Restored, DatabaseError> {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(pellucid_files::paths::beside(&to, end));
    }
    restore(&restoring(media, point, to), &mut |_, _| ())
}

pub fn open(path: &Path) -> Connection {
    pellucid_tests::content::open(&format!("file:{}?vfs=pellucid", path.display())).unwrap()
}

pub fn dump(connection: &Connection) -> Vec<(i64, i64, Vec<u8>)> {
    let mut statement = connection.prepare("SELECT id, v, b FROM t ORDER BY id").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Commits of every kind: small ones, one that makes the file three times as large, one that makes it small again, a rebuilt one.
pub fn commit(connection: &Connection, number: usize) {
    let change = match number % 11 {
        3 => {
            "WITH RECURSIVE c(x) AS (SELECT 1000 UNION ALL SELECT x + 1 FROM c WHERE x < 1200)
              INSERT OR REPLACE INTO t SELECT x, x, randomblob(2000) FROM c"
        }
        5 => "DELETE FROM t WHERE id >= 1000",
        7 => "VACUUM",
        9 => "UPDATE t SET b = randomblob(700) WHERE id % 3 = 0",
        _ => "UPDATE t SET v = v + 1 WHERE id % 17 = 0",
    };
    connection.execute_batch(change).unwrap();
}

#[test]
fn what_cannot_be_had_is_named_with_what_can() {
    let bench = Bench::new(4096);
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let connection = bench.open();
    let full = full(&bench, "full.bak");
    let mut logs = Vec::new();
    for round in 0..3 {
        (0..5).for_each(|number| commit(&connection, number));
        logs.push(log(&bench, &format!("log-{round}.bak")));
    }
    let to = bench.path("db/restored.db");
    let told = |media: &[&PathBuf], point: Point| {
        let media: Vec<PathBuf> = media.iter().map(|path| (*path).clone()).collect();
        let error = restored(&media, point, to.clone()).unwrap_err().to_string();
        assert!(!to.exists(), "{error}");
        error
    };
    let gap = told(&[&full, &logs[0], &logs[2]], Point::Last);
    assert!(gap.contains("the log backups behind LSN") && gap.contains("are missing"), "{gap}");
    let early = told(&[&full, &logs[0]], Point::Time(1_000_000));
    assert!(early.contains("the earliest point is that of the full backup of"), "{early}");
    let late = told(&[&full, &logs[0]], Point::Time(u64::MAX / 2000));
    assert!(late.contains("a log backup of now has the rest"), "{late}");
    let none = told(&[&logs[0]], Point::Last);
    assert!(none.contains("no full backup"), "{none}");
    let mark = told(&[&full, &logs[0]], Point::Mark("deploy".into()));
    assert!(mark.contains("no commit of these media has the mark `deploy`"), "{mark}");
    // Another fork's log sets: the chain was ended and begun anew.
    log_chain::set_model(&bench.database(), RecoveryModel::Simple).unwrap();
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let again = super::points::full(&bench, "again.bak");
    commit(&connection, 0);
    let other = log(&bench, "other.bak");
    let forks = told(&[&full, &logs[0], &other], Point::Last);
    assert!(forks.contains("another recovery fork"), "{forks}");
    let media = [full, logs[0].clone(), again];
    assert!(Library::open(&media).is_ok());
}

#[test]
fn a_log_backup_that_was_not_noted_has_its_commits_twice_and_they_count_once() {
    let bench = Bench::new(4096);
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let connection = bench.open();
    let mut media = vec![full(&bench, "full.bak")];
    commit(&connection, 0);
    let path = bench.path("copy.bak");
    let job = Job::new(bench.database(), files(path.clone()));
    let job = Job { log: Some(LogJob::default()), copy_only: true, ..job };
    back_up(&job, &mut |_| ()).unwrap();
    media.push(path);
    commit(&connection, 9);
    media.push(log(&bench, "log.bak"));
    commit(&connection, 1);
    media.push(log(&bench, "later.bak"));
    let to = bench.path("db/restored.db");
    let reached = restored(&media, Point::Last, to.clone()).unwrap().reached;
    assert!(dump(&open(&to)) == dump(&connection));
    media.remove(1);
    assert_eq!(restored(&media, Point::Last, to.clone()).unwrap().reached, reached);
    assert!(dump(&open(&to)) == dump(&connection));
}
