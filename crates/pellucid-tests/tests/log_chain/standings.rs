//! A database that is restoring is opened by nobody, a standby for reading alone, whatever program comes; the end of the restore makes
//! it one like any other.

use std::path::{Path, PathBuf};

use pellucid::header::{RecoveryModel, Standing};
use pellucid_backup::job::{back_up, restore, Job, LogJob, Point, Restoring};
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_engine::{header_change, log_chain, standing};
use pellucid_files::paths::beside;

use super::points::{files, full, log, restoring};
use super::{write, Bench, Writers};
use pellucid_tests::processes::Random;

fn begin() -> (Bench, Vec<PathBuf>) {
    let bench = Bench::new(4096);
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let media = vec![full(&bench, "full.bak")];
    (bench, media)
}

fn tail(bench: &Bench, name: &str) -> Result<PathBuf, String> {
    let path = bench.path(name);
    let job = Job::new(bench.database(), files(path.clone()));
    let leave = LogJob { leave: Standing::Restoring, ..LogJob::default() };
    let done = back_up(&Job { log: Some(leave), ..job }, &mut |_| ());
    let done = done.map_err(|error| error.to_string())?;
    assert!(done.header.version2.unwrap().log.unwrap().tail);
    Ok(path)
}

fn found(path: &Path) -> Standing {
    match inspect(path).unwrap().kind {
        Kind::Sealed(sealed) => sealed.header.standing(),
        other => panic!("{other:?}"),
    }
}

fn counter(path: &Path) -> Result<i64, String> {
    let uri = format!("file:{}?vfs=pellucid", path.display());
    let connection = pellucid_tests::content::open(&uri).map_err(|error| error.to_string())?;
    let found = connection.query_row("SELECT n FROM counter", [], |row| row.get(0));
    found.map_err(|error| error.to_string())
}

#[test]
fn behind_a_tail_nobody_commits_and_what_it_leads_to_is_the_last_commit() {
    let (bench, mut media) = begin();
    // Programs that have it open, one within a transaction.
    let (writer, reader) = (bench.open(), bench.open());
    writer.busy_timeout(std::time::Duration::ZERO).unwrap();
    write(&writer, 5);
    let one = |connection: &rusqlite::Connection| {
        connection.query_row("SELECT n FROM counter", [], |row| row.get::<_, i64>(0))
    };
    assert_eq!(one(&reader).unwrap(), 5);
    media.push(tail(&bench, "tail.bak").unwrap());
    assert_eq!(found(&bench.database()), Standing::Restoring);
    // Who has it open reads what the tail has, and writes nothing.
    for connection in [&writer, &reader] {
        assert!(one(connection).is_ok_and(|n| n == 5));
        assert!(connection.execute_batch("UPDATE counter SET n = n + 1").is_err());
    }
    drop((writer, reader));
    assert!(counter(&bench.database()).is_err());
    for told in [
        log_chain::set_model(&bench.database(), RecoveryModel::Simple).map(drop),
        header_change::change(&bench.database(), |_, _, _| Ok(None), || Ok(())).map(drop),
    ] {
        assert!(told.is_err(), "no command changes it");
    }
    let job = Job::new(bench.database(), files(bench.path("refused.bak")));
    assert!(back_up(&job, &mut |_| ()).is_err() && tail(&bench, "second.bak").is_err());
    let to = bench.path("restored.db");
    restore(&restoring(&media, Point::Last, to.clone()), &mut |_, _| ()).unwrap();
    assert_eq!(counter(&to).unwrap(), 5);
    // The end of it: the chain goes on behind the tail.
    assert!(standing::change(&bench.database(), Standing::Online, || Ok(())).unwrap());
    assert!(!standing::change(&bench.database(), Standing::Online, || Ok(())).unwrap());
    write(&bench.open(), 2);
    media.push(log(&bench, "log.bak"));
    std::fs::remove_file(&to).unwrap();
    restore(&restoring(&media, Point::Last, to.clone()), &mut |_, _| ()).unwrap();
    assert_eq!((counter(&bench.database()).unwrap(), counter(&to).unwrap()), (7, 7));
}

#[test]
fn a_tail_that_fails_leaves_the_database_as_it_was() {
    let (bench, _) = begin();
    write(&bench.open(), 3);
    let there = bench.path("tail.bak");
    std::fs::write(&there, "no backup").unwrap();
    assert!(tail(&bench, "tail.bak").is_err());
    assert_eq!(
        (found(&bench.database()), counter(&bench.database()).unwrap()),
        (Standing::Online, 3)
    );
}

#[test]
fn a_restore_leaves_its_database_restoring_or_as_a_standby_and_the_next_one_goes_on() {
    let (bench, mut media) = begin();
    write(&bench.open(), 4);
    media.push(log(&bench, "one.bak"));
    write(&bench.open(), 4);
    let both = [&media[..], &[log(&bench, "two.bak")]].concat();
    let to = bench.path("restored.db");
    let leaving = |media: &[PathBuf], leave| {
        let job = Restoring { leave, ..restoring(media, Point::Last, to.clone()) };
        restore(&job, &mut |_, _| ()).map(drop)
    };
    leaving(&media[..1], Standing::Restoring).unwrap();
    assert_eq!(found(&to), Standing::Restoring);
    assert!(counter(&to).is_err());
    leaving(&media, Standing::Standby).unwrap();
    assert_eq!((found(&to), counter(&to).unwrap()), (Standing::Standby, 4));
    let uri = format!("file:{}?vfs=pellucid", to.display());
    let reader = pellucid_tests::content::open(&uri).unwrap();
    let told = reader.execute_batch("UPDATE counter SET n = 0").unwrap_err().to_string();
    assert!(told.contains("readonly"), "{told}");
    assert!(
        reader.execute_batch("VACUUM").is_err() && reader.execute_batch("DROP TABLE t").is_err()
    );
    assert!(reader.query_row("PRAGMA journal_mode=DELETE", [], |_| Ok(())).is_err());
    assert_eq!(counter(&to).unwrap(), 4);
    drop(reader);
    assert!(log_chain::set_model(&to, RecoveryModel::Full).is_err());
    leaving(&both, Standing::Standby).unwrap();
    assert_eq!(counter(&to).unwrap(), 8);
    leaving(&both, Standing::Online).unwrap();
    assert_eq!((found(&to), counter(&to).unwrap()), (Standing::Online, 8));
    // From here on it is a database of its own, which no restore takes without a word.
    assert!(leaving(&both, Standing::Online).is_err());
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(&to, end));
    }
    leaving(&media, Standing::Restoring).unwrap();
    assert!(standing::change(&to, Standing::Online, || Ok(())).unwrap());
    assert_eq!(counter(&to).unwrap(), 4);
    write(&pellucid_tests::content::open(&uri).unwrap(), 1);
    assert_eq!(counter(&to).unwrap(), 5);
}

#[test]
fn no_writer_commits_behind_the_tail() {
    for seed in 0..3 {
        let (bench, mut media) = begin();
        let mut random = Random(5 + seed);
        let mut writers =
            Writers { database: bench.database(), mode: "wal", children: Vec::new(), started: 0 };
        (0..3).for_each(|_| writers.start(&mut random));
        std::thread::sleep(std::time::Duration::from_millis(400));
        media.push(tail(&bench, "tail.bak").unwrap());
        std::thread::sleep(std::time::Duration::from_millis(200));
        let mut last = 0;
        for (mut child, told) in writers.children.drain(..) {
            let _ = child.kill();
            child.wait().unwrap();
            // What they were refused is told as well.
            let counts = told.iter().filter_map(|line| {
                line.strip_prefix("committed ")?.split(' ').next()?.parse::<i64>().ok()
            });
            last = counts.chain([last]).max().unwrap();
        }
        let to = bench.path("restored.db");
        restore(&restoring(&media, Point::Last, to.clone()), &mut |_, _| ()).unwrap();
        let n = counter(&to).unwrap();
        assert!(n >= last && last > 5, "{n} commits in the tail, {last} were acknowledged");
        standing::change(&bench.database(), Standing::Online, || Ok(())).unwrap();
        assert_eq!(counter(&bench.database()).unwrap(), n, "commits behind the tail");
    }
}
