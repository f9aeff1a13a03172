//! Ways by which a commit could escape the chain, or something come into it that never was: each was found by reading.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use pellucid::header::RecoveryModel;
use pellucid_engine::log_chain::{self, KeptLog};
use pellucid_files::paths::beside;
use pellucid_tests::processes::{child, extension, load_extension, preload, told};
use pellucid_vfs::log_archive::path_of;
use rusqlite::Connection;

use super::{write, Bench};

fn mode(connection: &Connection) -> String {
    connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap()
}

fn checkpoint(connection: &Connection, mode: &str) {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())).unwrap();
}

/// A PRAGMA without a schema is for each attached database, and SQLite shows it to the first alone.
#[test]
fn an_attached_database_does_not_leave_wal_either() {
    let bench = Bench::new(4096);
    let mut chain = bench.begin();
    let uri = format!("file:{}?vfs=pellucid", bench.database().display());
    let connection = pellucid_tests::content::open("file::memory:").unwrap();
    connection.execute("ATTACH ?1 AS app", [&uri]).unwrap();
    connection.execute_batch("UPDATE app.counter SET n = n + 1").unwrap();
    for journal in ["DELETE", "TRUNCATE", "MEMORY", "OFF"] {
        let _ = connection.query_row(&format!("PRAGMA journal_mode={journal}"), [], |_| Ok(()));
        let told = connection.execute_batch("UPDATE app.counter SET n = n + 1");
        // Either it is in WAL mode still, or it writes nothing.
        if told.is_ok() {
            let mode: String =
                connection.query_row("PRAGMA app.journal_mode", [], |row| row.get(0)).unwrap();
            assert_eq!(mode, "wal", "{journal}");
        }
    }
    drop(connection);
    let connection = bench.open();
    assert_eq!(mode(&connection), "wal");
    write(&connection, 3);
    chain.take(&bench.database());
    let n: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
    assert_eq!(chain.commits() as i64, n);
    chain.assert_last(&connection);
}

/// A connection that knew the header of before the chain.
#[test]
fn a_connection_from_before_the_chain_does_not_leave_wal() {
    let bench = Bench::new(4096);
    let (before, idle) = (bench.open(), bench.open());
    before.query_row("SELECT n FROM counter", [], |_| Ok(())).unwrap();
    drop(idle);
    let mut chain = bench.begin();
    let _ = before.query_row("PRAGMA journal_mode=DELETE", [], |_| Ok(()));
    let _ = before.execute_batch("UPDATE counter SET n = n + 1");
    drop(before);
    let connection = bench.open();
    assert_eq!(mode(&connection), "wal");
    chain.take(&bench.database());
    let n: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
    assert_eq!(chain.commits() as i64, n);
    chain.assert_last(&connection);
}

/// In an exclusive locking mode a connection begins the log anew without asking, and may have written long ago.
#[test]
fn who_takes_the_database_for_itself_knows_what_others_have_committed() {
    for ends in ["", "RESTART", "TRUNCATE"] {
        let bench = Bench::new(4096);
        let mut chain = bench.begin();
        let first = bench.open();
        first.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        write(&first, 2);
        let second = bench.open();
        write(&second, 20);
        checkpoint(&second, "PASSIVE");
        drop(second);
        first.execute_batch("PRAGMA locking_mode=EXCLUSIVE").unwrap();
        write(&first, 1);
        if !ends.is_empty() {
            checkpoint(&first, ends);
            write(&first, 2);
        }
        write(&first, 3);
        checkpoint(&first, "PASSIVE");
        write(&first, 4);
        drop(first);
        chain.take(&bench.database());
        let connection = bench.open();
        let n: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
        assert_eq!(chain.commits() as i64, n, "{ends}");
        chain.assert_last(&connection);
    }
}

/// What the child does: commits, synced each.
pub fn commits() {
    load_extension();
    let uri = format!("file:{}?vfs=pellucid", told("CRASH_DATABASE"));
    let connection = pellucid_tests::content::open(&uri).unwrap();
    connection.execute_batch("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0").unwrap();
    write(&connection, 4);
}

/// A transaction whose frames are all in the log, and whose writer was killed before the index counted them, was never committed.
#[test]
fn a_transaction_that_was_never_committed_does_not_come_into_the_chain() {
    for (at, ends) in
        (1..=9).flat_map(|at| ["TRUNCATE", "RESTART", "restart by a writer"].map(|ends| (at, ends)))
    {
        let bench = Bench::new(4096);
        let mut chain = bench.begin();
        // As long as it is open nobody recovers the log.
        let connection = bench.open();
        connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        write(&connection, 2);
        let ended = child("commits")
            .env("CRASH_DATABASE", bench.database())
            .env("CRASH_EXTENSION", extension())
            .env("LD_PRELOAD", preload("killat.c"))
            .env("KILL_DIR", beside(&bench.database(), "-wal"))
            .env("KILL_AT", at.to_string())
            .output()
            .unwrap();
        let what = format!("killed at {at}, {ends}");
        match ends {
            "TRUNCATE" | "RESTART" => checkpoint(&connection, ends),
            _ => {
                checkpoint(&connection, "PASSIVE");
                chain.take(&bench.database());
            }
        }
        write(&connection, 3);
        chain.take(&bench.database());
        let n: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
        assert_eq!(chain.commits() as i64, n, "{what}: {ended:?}");
        chain.assert_last(&connection);
    }
}

#[test]
fn a_log_whose_header_is_damaged_stays() {
    for byte in 0..8 {
        let bench = Bench::new(4096);
        let _chain = bench.begin();
        let connection = bench.open();
        write(&connection, 5);
        let log = beside(&bench.database(), "-wal");
        flip(&log, byte);
        drop(connection);
        assert!(log.exists(), "byte {byte}: its commits are kept nowhere else");
    }
}

fn flip(path: &Path, at: u64) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

/// Each byte of what is kept, and frames that open at each other's places.
#[test]
fn kept_frames_that_were_changed_are_in_no_backup() {
    let bench = Bench::new(512);
    let _chain = bench.begin();
    write(&bench.open(), 3);
    let folder = path_of(&bench.database());
    let names = || std::fs::read_dir(&folder).unwrap().map(|name| name.unwrap().path());
    let segment = names().find(|path| path.extension().is_some_and(|end| end == "frames")).unwrap();
    let whole = std::fs::read(&segment).unwrap();
    let taken = || KeptLog::open(&bench.database(), Duration::from_secs(10));
    let commits = taken().unwrap().commits().len();
    assert_eq!(commits, 3);
    for at in (0..whole.len() as u64).step_by(7) {
        flip(&segment, at);
        assert!(taken().is_err(), "byte {at}");
        std::fs::write(&segment, &whole).unwrap();
    }
    for length in [0, 100, 512, whole.len() - 1, whole.len() - 536] {
        std::fs::write(&segment, &whole[..length]).unwrap();
        assert!(taken().is_err(), "cut to {length}");
    }
    std::fs::remove_file(&segment).unwrap();
    let told = taken().unwrap_err().to_string();
    assert!(told.contains("chain of log backups is broken"), "{told}");
    std::fs::write(&segment, &whole).unwrap();
    assert_eq!(taken().unwrap().commits().len(), commits);
}

#[test]
fn a_database_that_takes_the_place_ends_the_chain() {
    use pellucid_backup::job::{back_up, restore, Files, Job};
    let bench = Bench::new(4096);
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let connection = bench.open();
    let media = bench.path("full.bak");
    let files = Files { families: vec![media.clone()], mirrors: Vec::new() };
    back_up(&Job::new(bench.database(), files), &mut |_| ()).unwrap();
    write(&connection, 5);
    drop(connection);
    let job =
        super::points::restoring(&[media], pellucid_backup::job::Point::Last, bench.database());
    restore(&pellucid_backup::job::Restoring { replace: true, ..job }, &mut |_, _| ()).unwrap();
    assert!(!path_of(&bench.database()).exists());
    let connection = bench.open();
    let n: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
    assert_eq!(n, 0);
    write(&connection, 2);
}

/// What the child does: it appends, and begins the log anew in each way.
pub fn restarts() {
    load_extension();
    let uri = format!("file:{}?vfs=pellucid", told("CRASH_DATABASE"));
    let connection = pellucid_tests::content::open(&uri).unwrap();
    connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
    for how in ["RESTART", "TRUNCATE"] {
        write(&connection, 7);
        checkpoint(&connection, how);
        write(&connection, 2);
    }
}

/// Who survives had written to the log before, and knows less of it than the index that was made anew meanwhile.
#[test]
fn a_program_that_is_killed_between_the_index_and_the_header_leaves_the_chain_whole() {
    for at in (1..=60).step_by(2) {
        let bench = Bench::new(4096);
        let mut chain = bench.begin();
        let survivor = bench.open();
        survivor.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        write(&survivor, 3);
        let ended = child("restarts")
            .env("CRASH_DATABASE", bench.database())
            .env("CRASH_EXTENSION", extension())
            .env("LD_PRELOAD", preload("killat.c"))
            .env("KILL_DIR", bench.database())
            .env("KILL_AT", at.to_string())
            .output()
            .unwrap();
        write(&survivor, 4);
        checkpoint(&survivor, "TRUNCATE");
        write(&survivor, 1);
        chain.take(&bench.database());
        let n: i64 = survivor.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
        assert_eq!(chain.commits() as i64, n, "killed at {at}: {}", ended.status);
        chain.assert_last(&survivor);
    }
}

/// The archive has said that the log may begin anew, and a reader kept SQLite from it.
#[test]
fn commits_behind_an_answer_that_was_not_used_are_kept() {
    for ends in ["", "TRUNCATE", "RESTART"] {
        let bench = Bench::new(4096);
        let mut chain = bench.begin();
        let writer = bench.open();
        writer.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        write(&writer, 10);
        let reader = bench.open();
        reader.execute_batch("BEGIN").unwrap();
        reader.query_row("SELECT n FROM counter", [], |_| Ok(())).unwrap();
        checkpoint(&writer, "PASSIVE");
        writer.busy_timeout(Duration::ZERO).unwrap();
        for how in ["RESTART", "TRUNCATE"] {
            let _ = writer.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(()));
        }
        write(&writer, 6);
        drop(reader);
        writer.execute_batch("PRAGMA locking_mode=EXCLUSIVE").unwrap();
        checkpoint(&writer, "PASSIVE");
        if !ends.is_empty() {
            checkpoint(&writer, ends);
        }
        write(&writer, 3);
        drop(writer);
        chain.take(&bench.database());
        let connection = bench.open();
        let n: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
        assert_eq!((chain.commits() as i64, n), (19, 19), "{ends}");
        chain.assert_last(&connection);
    }
}

/// A transaction that was refused, because the archive could not have the log, takes none with it.
#[test]
fn a_refusal_in_an_exclusive_locking_mode_costs_that_transaction_alone() {
    let begins = ["", "SELECT n FROM counter; "];
    let goes_on = ["EXCLUSIVE", "NORMAL"];
    for (begins, goes_on) in begins.iter().flat_map(|one| goes_on.map(|other| (one, other))) {
        let begins = format!("{begins}PRAGMA locking_mode=EXCLUSIVE");
        let bench = Bench::new(4096);
        let mut chain = bench.begin();
        let connection = bench.open();
        connection.execute_batch(&begins).unwrap();
        connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        write(&connection, 2);
        write(&connection, 5);
        checkpoint(&connection, "PASSIVE");
        let folder = path_of(&bench.database());
        let aside = folder.with_extension("aside");
        std::fs::rename(&folder, &aside).unwrap();
        for _ in 0..3 {
            let told = connection.execute_batch("UPDATE counter SET n = n + 1").unwrap_err();
            assert!(told.to_string().contains("full"), "{told}");
        }
        if goes_on == "NORMAL" {
            // Others go on with the log, and the archive has what is in it.
            connection.execute_batch("PRAGMA locking_mode=NORMAL; SELECT n FROM counter").unwrap();
        }
        std::fs::rename(&aside, &folder).unwrap();
        write(&connection, 4);
        drop(connection);
        chain.take(&bench.database());
        let connection = bench.open();
        let n: i64 = connection.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap();
        assert_eq!((chain.commits() as i64, n), (11, 11), "{begins}, {goes_on}");
        chain.assert_last(&connection);
    }
}

/// A folder of that name that some other program keeps.
#[test]
fn a_folder_that_is_no_archive_is_left_as_it_is() {
    let bench = Bench::new(4096);
    let folder = path_of(&bench.database());
    std::fs::create_dir(&folder).unwrap();
    for name in ["state", "mine.txt"] {
        std::fs::write(folder.join(name), "somebody's").unwrap();
    }
    pellucid_vfs::log_archive::remove(&bench.database()).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    // Nor does it become one by a link.
    let elsewhere = bench.path("elsewhere");
    std::fs::rename(&folder, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    assert!(pellucid_vfs::log_archive::Archive::open(&bench.database()).is_err());
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    assert!(log_chain::begin(&bench.database()).is_err());
    assert_eq!(std::fs::read(elsewhere.join("state")).unwrap(), b"somebody's");
}

/// Whoever may write the database may write its archive.
#[test]
fn an_archive_has_the_mode_of_its_database() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(4096);
    let shared = std::fs::Permissions::from_mode(0o660);
    std::fs::set_permissions(bench.database(), shared).unwrap();
    let _chain = bench.begin();
    write(&bench.open(), 3);
    let folder = path_of(&bench.database());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o770);
    let files: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|name| name.unwrap().path()).collect();
    assert!(files.len() == 3 && files.iter().all(|path| mode(path) == 0o660), "{files:?}");
}

/// The header of a log lies in one sector with the first frame: a power cut before the first commit's sync may spoil both. SQLite
/// has no log then, and neither has the chain.
#[test]
fn a_header_that_a_power_cut_spoiled_leaves_the_chain_whole() {
    for writer_comes_first in [false, true] {
        let bench = Bench::new(4096);
        let mut chain = bench.begin();
        let connection = bench.open();
        write(&connection, 3);
        checkpoint(&connection, "TRUNCATE");
        chain.take(&bench.database());
        write(&connection, 1);
        let log = beside(&bench.database(), "-wal");
        let archive = path_of(&bench.database());
        let files = [bench.database(), log.clone(), archive.join("state")];
        let left = files.clone().map(|file| std::fs::read(file).unwrap());
        drop(connection);
        for entry in std::fs::read_dir(&archive).unwrap().map(Result::unwrap) {
            std::fs::remove_file(entry.path()).unwrap();
        }
        for (file, bytes) in files.iter().zip(left) {
            std::fs::write(file, bytes).unwrap();
        }
        let spoiled = std::fs::OpenOptions::new().write(true).open(&log).unwrap();
        spoiled.write_all_at(&[7; 32], 0).unwrap();
        if writer_comes_first {
            write(&bench.open(), 1);
        } else {
            chain.take(&bench.database());
            assert_eq!(chain.commits(), 3);
            write(&bench.open(), 1);
        }
        chain.take(&bench.database());
        assert_eq!(chain.commits(), 4);
        chain.assert_last(&bench.open());
    }
}
