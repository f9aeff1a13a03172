//! A differential reads the pages that commits have changed, and no other one; with them it restores to the same database.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pellucid::header::{RecoveryModel, REGION_BYTES};
use pellucid_backup::job::{back_up, Job, Point};
use pellucid_engine::log_chain;
use pellucid_vfs::log_archive::path_of;
use rusqlite::Connection;

use super::points::{commit, differential, dump, files, full, log, open, restored, try_log};
use super::{write, Bench};

fn begun(page_bytes: usize) -> (Bench, Connection) {
    let bench = Bench::new(page_bytes);
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let connection = bench.open();
    (bench, connection)
}

/// The list, of which no differential knows without it.
fn list(bench: &Bench) -> PathBuf {
    path_of(&bench.database()).join("changed")
}

fn assert_restores(bench: &Bench, full: &Path, differential: &Path, connection: &Connection) {
    let media = [full.to_owned(), differential.to_owned()];
    restored(&media, Point::Last, bench.path("restored.db")).unwrap();
    let built = open(&bench.path("restored.db"));
    assert_eq!(dump(&built), dump(connection));
    let whole: String = built.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
}

/// Commits of every kind, with log backups, checkpoints and closes between, and full backups while log backups are made.
#[test]
fn a_differential_by_the_log_restores_what_one_by_comparing_does() {
    for page_bytes in [512, 4096] {
        let (bench, mut connection) = begun(page_bytes);
        let mut base = full(&bench, "full-0.bak");
        for round in 0..24 {
            commit(&connection, round);
            match round % 6 {
                1 => drop(log(&bench, &format!("log-{round}.bak"))),
                2 => {
                    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap()
                }
                4 => {
                    drop(connection);
                    connection = bench.open();
                }
                5 if round > 12 => base = full(&bench, &format!("full-{round}.bak")),
                _ => {}
            }
            assert!(list(&bench).exists(), "round {round}");
            let by_log = differential(&bench, &format!("by-log-{round}.bak"), &base);
            fs::rename(list(&bench), bench.path("aside")).unwrap();
            let compared = differential(&bench, &format!("compared-{round}.bak"), &base);
            fs::rename(bench.path("aside"), list(&bench)).unwrap();
            assert_restores(&bench, &base, &by_log, &connection);
            assert_restores(&bench, &base, &compared, &connection);
        }
    }
}

/// A damaged page that no commit wrote ends a backup that compares every page. This one does not read it.
#[test]
fn a_page_that_no_commit_wrote_is_not_read() {
    let (bench, connection) = begun(4096);
    connection
        .execute_batch("CREATE TABLE large(b); INSERT INTO large VALUES(zeroblob(400000))")
        .unwrap();
    let base = full(&bench, "full.bak");
    write(&connection, 3);
    drop(log(&bench, "one.bak"));
    write(&connection, 1);
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let pages: u32 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let file = fs::OpenOptions::new().write(true).open(bench.database()).unwrap();
    let at = REGION_BYTES + u64::from(pages - 5) * 4096 + 100;
    file.write_all_at(&[1, 2, 3], at).unwrap();
    let of = |name: &str| {
        let job = Job::new(bench.database(), files(bench.path(name)));
        back_up(&Job { differential: Some(vec![base.clone()]), ..job }, &mut |_| ())
    };
    let done = of("by-log.bak").unwrap();
    assert!((3..30).contains(&done.manifest.pages), "{}", done.manifest.pages);
    assert_restores(&bench, &base, &bench.path("by-log.bak"), &connection);
    // A list that was changed, or of another full backup, is none.
    let list = list(&bench);
    let whole = fs::read(&list).unwrap();
    for at in [0, 40, 90, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&list, flipped).unwrap();
        assert!(of("flipped.bak").is_err(), "byte {at}");
    }
    fs::write(&list, &whole).unwrap();
    of("again.bak").unwrap();
    fs::remove_file(&list).unwrap();
    assert!(of("without.bak").is_err());
}

/// A list from before a log backup does not have its pages.
#[test]
fn an_older_list_is_none() {
    let (bench, connection) = begun(4096);
    let base = full(&bench, "full.bak");
    write(&connection, 1);
    drop(log(&bench, "one.bak"));
    let older = fs::read(list(&bench)).unwrap();
    connection.execute_batch("UPDATE t SET b = randomblob(300) WHERE id % 9 = 0").unwrap();
    drop(log(&bench, "two.bak"));
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    fs::write(list(&bench), older).unwrap();
    let made = differential(&bench, "differential.bak", &base);
    assert_restores(&bench, &base, &made, &connection);
    write(&connection, 1);
    drop(log(&bench, "three.bak"));
    assert!(!list(&bench).exists(), "nobody knows what the second log set had");
    let made = differential(&bench, "later.bak", &base);
    assert_restores(&bench, &base, &made, &connection);
    drop(full(&bench, "again.bak"));
    assert!(list(&bench).exists());
}

/// Of two full backups at the same time, with a log backup between, the list of the one does not do for the other.
#[test]
fn two_full_backups_at_once_share_no_list() {
    let (bench, connection) = begun(4096);
    let database = bench.database();
    drop(full(&bench, "before.bak"));
    let fork = log_chain::fork_at(&database).unwrap().unwrap();
    let mut ended = 0;
    for is_other_between in [false, true] {
        // The first one begins.
        let first = log_chain::moment(&database).unwrap().unwrap();
        write(&connection, 2);
        drop(log(&bench, &format!("log-{is_other_between}.bak")));
        if is_other_between {
            drop(full(&bench, "other.bak"));
        }
        ended += 1;
        log_chain::has_base(&database, (fork, first, first), [ended; 32]).unwrap();
        let changed = log_chain::changed_since(&database, &[ended; 32]).unwrap();
        assert_eq!(changed.is_some(), !is_other_between);
        assert!(changed.is_none_or(|changed| changed.count() > 1));
    }
}

/// A commit that was handed out and is gone leaves pages that no commit wrote, and breaks the chain, also where only a full backup has
/// it: it was synced before.
#[test]
fn behind_a_lost_commit_every_page_is_compared() {
    use rusqlite::config::DbConfig;
    let (bench, connection) = begun(4096);
    write(&connection, 1);
    full(&bench, "first.bak");
    let base = {
        write(&connection, 1);
        connection.execute_batch("UPDATE t SET b = randomblob(90) WHERE id = 77").unwrap();
        full(&bench, "full.bak")
    };
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    drop(connection);
    let log_file = pellucid_files::paths::beside(&bench.database(), "-wal");
    let bytes = fs::metadata(&log_file).unwrap().len();
    fs::OpenOptions::new().write(true).open(&log_file).unwrap().set_len(bytes - 4120).unwrap();
    let connection = bench.open();
    write(&connection, 1);
    let told = try_log(&bench, "one.bak").err().map(|error| error.to_string()).unwrap_or_default();
    assert!(told.contains("are missing from its chain of log backups"), "{told}");
    assert!(!list(&bench).exists());
    let made = differential(&bench, "differential.bak", &base);
    assert_restores(&bench, &base, &made, &connection);
}
