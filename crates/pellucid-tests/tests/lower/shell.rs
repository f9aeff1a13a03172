//! In the stock `sqlite3`: its stacked VFS `apndvfs`, and `PELLUCID_OVER`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pellucid_tests::processes::extension;

use crate::place::{instance, is_sealed, Place, MARK};

/// Runs a script in the stock shell, which loads the extension first.
fn shell(over: &str, script: &str) -> Output {
    let mut child = Command::new("sqlite3")
        .args(["-batch", ":memory:"])
        .env("PELLUCID_HOME", instance().join("keys"))
        .env("PELLUCID_OVER", over)
        .env("PELLUCID_LOG", "stderr")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let script = format!(".load {}\n{script}\n", extension().display());
    // One that was killed does not read all.
    let _ = child.stdin.take().unwrap().write_all(script.as_bytes());
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    let [out, error] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{error}")
}

fn open(path: &Path, parameters: &str) -> String {
    format!(".open 'file:{}?{parameters}'", path.display())
}

#[test]
fn a_database_lies_sealed_behind_another_file_by_a_stacked_vfs() {
    let place = Place::new();
    let path = place.path("program");
    // `apndvfs` puts a database behind what is there: a program, say.
    std::fs::write(&path, "#!/bin/sh\necho a program\n".repeat(40)).unwrap();
    let program = std::fs::read(&path).unwrap();
    let over = "vfs=pellucid&pellucid_over=apndvfs&certificate=pellucid";
    let made = shell("", &format!(
        "{}\nCREATE TABLE t(a); WITH RECURSIVE s(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM s LIMIT 500) INSERT INTO t SELECT '{MARK}' || v FROM s;\nSELECT count(*) FROM t;",
        open(&path, over)
    ));
    assert_eq!(said(&made).trim(), "500");
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.starts_with(&program) && bytes.windows(9).any(|part| part == b"Pellucid "));
    assert!(place.in_clear().is_empty());
    // Killed with pages of a transaction in the file, and its journal beside it.
    let killed = shell("", &format!(
        "{}\nPRAGMA cache_size=2;\nBEGIN; UPDATE t SET a = '{MARK} changed' || hex(randomblob(500));\n.shell kill -9 $PPID",
        open(&path, over)
    ));
    assert!(!killed.status.success());
    assert!(place.path("program-journal").exists());
    assert!(place.in_clear().is_empty());
    let back = shell(
        "",
        &format!(
            "{}\nSELECT count(*) FROM t WHERE a NOT LIKE '%changed%'; PRAGMA integrity_check;",
            open(&path, over)
        ),
    );
    assert_eq!(said(&back).split_whitespace().collect::<Vec<_>>(), ["500", "ok"]);
    // By the stacked VFS alone.
    let alone = shell("", &format!("{}\nSELECT count(*) FROM t;", open(&path, "vfs=apndvfs")));
    assert!(!said(&alone).contains("500"), "{}", said(&alone));
    // A copy as an ordinary file, which is sealed.
    let copied = shell(
        "",
        &format!(
            "{}\nVACUUM INTO 'file:{}?vfs=pellucid';",
            open(&path, over),
            place.path("copy.db").display()
        ),
    );
    assert!(!said(&copied).contains("rror"), "{}", said(&copied));
    assert!(is_sealed(&place.path("copy.db")));
}

#[test]
fn the_variable_names_the_vfs_of_what_names_none() {
    let place = Place::new();
    let path = place.path("a.db");
    let script = format!(
        "{}\nCREATE TABLE t(a); INSERT INTO t VALUES ('{MARK}');\nBEGIN IMMEDIATE;\n.shell ls {}\nCOMMIT; SELECT count(*) FROM t;",
        open(&path, "certificate=pellucid"),
        place.path("").display()
    );
    let made = said(&shell("unix-dotfile", &script));
    assert!(made.contains("a.db.lock") && made.trim().ends_with('1'), "{made}");
    assert!(is_sealed(&path) && place.in_clear().is_empty());
    // The URI comes first.
    let local = said(&shell(
        "unix-dotfile",
        &script
            .replace("?certificate", "?pellucid_over=unix&certificate")
            .replace("CREATE TABLE t(a);", ""),
    ));
    assert!(!local.contains("a.db.lock") && local.trim().ends_with('2'), "{local}");
    // And nothing is opened by another one than the one that is named.
    let other = place.path("b.db");
    for (over, says) in
        [("nowhere", "no VFS `nowhere` in this process"), ("a/b", "1 to 64 letters")]
    {
        let told =
            shell(over, &format!("{}\nCREATE TABLE t(a);", open(&other, "certificate=pellucid")));
        assert!(said(&told).contains(says), "{}", said(&told));
        let told = shell(over, &format!(".open {}\nCREATE TABLE t(a);", other.display()));
        assert!(said(&told).contains(says), "{}", said(&told));
        assert!(!other.exists(), "{over}");
    }
}
