//! An older archive in the place of the present one: the next log backups have every commit, or say that some are missing.

use std::fs;
use std::path::Path;

use pellucid_vfs::log_archive::path_of;
use rusqlite::config::DbConfig;
use rusqlite::Connection;

use super::chain::Chain;
use super::{write, Bench};

/// What is done with the database, one after the other.
#[derive(Debug, Clone, Copy)]
enum Step {
    Write(usize),
    Backup,
    Checkpoint(&'static str),
    /// The last connection closes: the log goes.
    Close,
    /// The archive cannot be written while this is done.
    Unwritable(&'static [Step]),
}

struct Case {
    bench: Bench,
    chain: Chain,
    connection: Option<Connection>,
    /// Whether a log backup has said that commits are missing.
    is_told: bool,
    /// An older archive is there.
    is_older: bool,
}

impl Case {
    fn new() -> Self {
        let bench = Bench::new(4096);
        let mut chain = bench.begin();
        chain.keep_between();
        Self { bench, chain, connection: None, is_told: false, is_older: false }
    }

    fn connection(&mut self) -> &Connection {
        self.connection.get_or_insert_with(|| {
            let connection = self.bench.open();
            connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
            connection
        })
    }

    fn go(&mut self, step: Step) {
        match step {
            Step::Write(count) => write(self.connection(), count),
            Step::Checkpoint(mode) => self
                .connection()
                .query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()))
                .unwrap(),
            Step::Close => drop(self.connection.take()),
            Step::Backup if self.is_older => {
                let goes_on = self.chain.take_again(&self.bench.database());
                assert!(!(goes_on && self.is_told), "it was broken, and is not any more");
                self.is_told |= !goes_on;
            }
            Step::Backup => self.chain.take(&self.bench.database()),
            Step::Unwritable(steps) => {
                // Root may write everything: a name that leads to nothing keeps it away.
                let (archive, aside) = (self.archive(), self.bench.path("aside"));
                fs::rename(&archive, &aside).unwrap();
                steps.iter().for_each(|step| self.go(*step));
                fs::rename(&aside, &archive).unwrap();
            }
        }
    }

    fn archive(&self) -> std::path::PathBuf {
        path_of(&self.bench.database())
    }

    /// Each commit is in the chain, or it was said that some are missing.
    fn assert_whole_or_told(&mut self) {
        self.go(Step::Backup);
        if self.is_told {
            return;
        }
        let chain = self.chain.commits() as i64;
        let connection = self.connection();
        let n: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
        assert_eq!(chain, n);
        let connection = self.connection.take().unwrap();
        self.chain.assert_last(&connection);
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Goes the steps with the archive of behind step `from` put back behind step `to`. Returns whether the break was told.
fn put_back(steps: &[Step], from: usize, to: usize) -> bool {
    let mut case = Case::new();
    let older = case.bench.path("older");
    for (number, step) in (0..).zip(steps) {
        case.go(*step);
        if number == from {
            copy(&case.archive(), &older);
        }
        if number == to {
            copy(&older, &case.archive());
            case.is_older = true;
        }
    }
    case.assert_whole_or_told();
    case.is_told
}

/// Runs that ended and runs that go on, kept and backed up to some frame or not at all.
#[test]
fn an_older_archive_hides_no_commit() {
    use Step::{Backup, Checkpoint, Close, Write};
    let steps = [
        Write(1),
        Backup,
        Write(2),
        Checkpoint("TRUNCATE"),
        Write(1),
        Backup,
        Checkpoint("RESTART"),
        Write(1),
        Close,
        Write(1),
        Backup,
        Write(1),
        Close,
        Backup,
    ];
    let mut told = 0;
    for from in 0..steps.len() - 1 {
        for to in from + 1..steps.len() {
            println!(
                "archive of {from} ({:?}) put back behind {to} ({:?})",
                steps[from], steps[to]
            );
            told += usize::from(put_back(&steps, from, to));
        }
    }
    assert!(told > 40, "{told}");
    // Nothing of the log began anew in between, so the log has everything.
    assert!(!put_back(&steps, 0, 2) && !put_back(&steps, 1, 2));
}

/// Without the archive only such a run of the log begins behind which nothing is missing. An older state may not look like one.
#[test]
fn an_older_archive_does_not_take_a_run_that_began_without_it_for_its_next_one() {
    use Step::{Backup, Checkpoint, Unwritable, Write};
    let steps = [
        Write(2),
        Backup,
        Write(2),
        Backup,
        Write(3),
        Checkpoint("TRUNCATE"),
        Unwritable(&[Write(2)]),
        Write(1),
        Backup,
        Write(1),
    ];
    let told = [0, 1, 2, 3, 4].map(|from| put_back(&steps, from, 6));
    assert_eq!(told, [true; 5]);
    assert!(!put_back(&steps, 5, 6), "the state of then is the present one");
}

/// A log that is gone although nobody said that its run ended, also where log backups have all that was handed out.
#[test]
fn a_log_that_was_removed_is_told() {
    for (backed_up, cut) in [(true, false), (true, true), (false, false)] {
        let bench = Bench::new(4096);
        let mut chain = bench.begin();
        chain.keep_between();
        let connection = bench.open();
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        write(&connection, 2);
        if backed_up {
            chain.take(&bench.database());
        }
        write(&connection, 1);
        drop(connection);
        let log = pellucid_files::paths::beside(&bench.database(), "-wal");
        match cut {
            true => fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(0).unwrap(),
            false => fs::remove_file(&log).unwrap(),
        }
        write(&bench.open(), 1);
        // What nobody was told of may be a crash's.
        assert_eq!(chain.take_again(&bench.database()), !backed_up, "{backed_up}, {cut}");
    }
}
