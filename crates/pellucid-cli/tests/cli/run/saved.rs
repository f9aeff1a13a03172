//! Databases in memory that programs save by SQLite's backup interface, and page-by-page copies that cannot be made.

use std::path::PathBuf;

use super::workplace::{answer, need, text, Workplace};

/// A database of some 22 MB, more than the cache has, copied over another one in one journal mode: from memory, from a temporary
/// database without a name, from a plain file. Prints the result, the tables and SQLite's check.
const COPY: &str = "
import sqlite3, sys
source, journal, target = sys.argv[1:]
own = sqlite3.connect({'memory': ':memory:', 'temporary': ''}.get(source, source))
if source != 'plain.db':
    own.execute('CREATE TABLE t(a)')
    for i in range(1, 11):
        own.execute('INSERT INTO t VALUES(?)', ('b' * (50 * i * 8192),))
    own.commit()
other = sqlite3.connect(target)
other.execute('PRAGMA journal_mode=' + journal)
if target == 'old.db':
    other.executescript('CREATE TABLE keep(a); INSERT INTO keep VALUES(7)')
try:
    own.backup(other)
    told = 'ok'
except sqlite3.Error as error:
    told = error
names = [name for name, in other.execute('SELECT name FROM sqlite_schema')]
print(told, *names, other.execute('PRAGMA integrity_check').fetchone()[0], sep=', ')
";

const JOURNALS: [&str; 3] = ["DELETE", "WAL", "TRUNCATE"];
const TARGETS: [&str; 2] = ["new.db", "old.db"];

fn python() -> PathBuf {
    need("/usr/bin/python3", "python3")
}

fn copied(place: &Workplace, source: &str, journal: &str, target: &str) -> (String, String) {
    let output = place.run(&["--encrypt-new"], &python(), &["-c", COPY, source, journal, target]);
    assert!(place.is_sealed(target), "{source} {journal} {target}: {}", text(&output));
    (answer(&output), text(&output))
}

#[test]
fn a_database_in_memory_is_saved_into_a_sealed_file() {
    for source in ["memory", "temporary"] {
        for journal in JOURNALS {
            for target in TARGETS {
                let place = Workplace::new();
                let (answer, text) = copied(&place, source, journal, target);
                assert_eq!(answer, "ok, t, ok", "{source} {journal} {target}: {text}");
            }
        }
    }
    let place = Workplace::new();
    let shell = need("/usr/bin/sqlite3", "sqlite3");
    for save in [".save a.db", ".backup main b.db"] {
        let words = [":memory:", "CREATE TABLE t(a); INSERT INTO t VALUES(1)", save];
        let output = place.run(&["--encrypt-new"], &shell, &words);
        assert!(output.status.success(), "{save}: {}", text(&output));
    }
    assert!(place.is_sealed("a.db") && place.is_sealed("b.db"));
}

#[test]
fn a_copy_that_is_refused_is_no_damage() {
    for journal in JOURNALS {
        for target in TARGETS {
            let place = Workplace::new();
            let rows = "CREATE TABLE t(a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
                INSERT INTO t SELECT hex(randomblob(200000)) FROM n";
            let shell = need("/usr/bin/sqlite3", "sqlite3");
            assert!(place.command(shell).args(["plain.db", rows]).status().unwrap().success());
            let (answer, text) = copied(&place, "plain.db", journal, target);
            let kept = if target == "old.db" { ", keep, ok" } else { ", ok" };
            assert_eq!(
                answer,
                format!("access permission denied{kept}"),
                "{journal} {target}: {text}"
            );
            assert!(text.contains("cannot be copied page by page"), "{journal} {target}: {text}");
        }
    }
}
