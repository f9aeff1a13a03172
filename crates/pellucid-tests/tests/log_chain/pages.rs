//! Damaged pages of a database with a chain of log backups are put back and rolled forward to its last commit, and to no other.

use std::path::PathBuf;
use std::time::Duration;

use pellucid::header::{RecoveryModel, REGION_BYTES};
use pellucid_backup::job::{mend, Mending};
use pellucid_engine::log_chain;

use super::points::{commit, dump, full, log};
use super::{Bench, Connection};

fn mending(bench: &Bench, media: &[PathBuf], pages: &[u32]) -> Mending {
    Mending {
        media: media.to_vec(),
        base: None,
        position: None,
        to: bench.database(),
        pages: pages.to_vec(),
        unproven: false,
        allow_clear: false,
        allow_unsigned: false,
        timeout: Duration::from_millis(500),
    }
}

fn told(bench: &Bench, media: &[PathBuf], pages: &[u32]) -> String {
    mend(&mending(bench, media, pages)).unwrap_err().to_string()
}

fn checkpoint(connection: &Connection) {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

fn damage(bench: &Bench, pages: &[u32]) {
    let mut file = std::fs::read(bench.database()).unwrap();
    for page in pages {
        file[REGION_BYTES as usize + (*page as usize - 1) * 4096 + 100] ^= 1;
    }
    std::fs::write(bench.database(), file).unwrap();
}

fn is_whole(bench: &Bench, rows: &[(i64, i64, Vec<u8>)]) {
    let connection = bench.open();
    let whole: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    assert!(dump(&connection) == rows);
}

#[test]
fn pages_are_rolled_forward_to_the_last_commit() {
    let bench = Bench::new(4096);
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let mut media = vec![full(&bench, "full.bak")];
    let connection = bench.open();
    for round in 0..12 {
        commit(&connection, round);
        if round % 5 == 2 {
            media.push(log(&bench, &format!("log-{round}.bak")));
        }
    }
    checkpoint(&connection);
    let rows = dump(&connection);
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    drop(connection);
    let all: Vec<u32> = (2..=pages as u32).collect();
    // The last commits are in no log backup.
    damage(&bench, &all);
    let behind = told(&bench, &media, &all);
    assert!(behind.contains("take a log backup"), "{behind}");
    media.push(log(&bench, "last.bak"));
    let none = told(&bench, &media, &[pages as u32 + 1]);
    assert!(none.contains("it has no page"), "{none}");
    let gap = told(&bench, &[media[0].clone(), media[3].clone()], &all);
    assert!(gap.contains("missing among these media"), "{gap}");
    let open = bench.open();
    open.query_row("SELECT 1", [], |_| Ok(())).unwrap();
    let _ = open.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    assert!(mend(&mending(&bench, &media, &all)).is_err(), "another connection has it open");
    drop(open);
    assert_eq!(mend(&mending(&bench, &media, &all)).unwrap().pages, all);
    is_whole(&bench, &rows);
    // Pages that no log has are those of the full set.
    let connection = bench.open();
    commit(&connection, 0);
    checkpoint(&connection);
    let rows = dump(&connection);
    drop(connection);
    damage(&bench, &[3, 5]);
    media.push(log(&bench, "more.bak"));
    mend(&mending(&bench, &media, &[3, 5])).unwrap();
    is_whole(&bench, &rows);
    // Another chain has other pages.
    log_chain::set_model(&bench.database(), RecoveryModel::Simple).unwrap();
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    full(&bench, "again.bak");
    let fork = told(&bench, &media, &[3]);
    assert!(fork.contains("another recovery fork"), "{fork}");
}
