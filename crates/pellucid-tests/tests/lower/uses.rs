//! Birth, use, reopening, backup, restore, a new key.

use crate::place::{
    alone_over, is_sealed, number, over, pellucid, said_ok, text, Place, MARK, NAMED,
};

#[test]
fn a_database_is_born_sealed_and_used_in_each_journal_mode() {
    let place = Place::new();
    for vfs in NAMED {
        for mode in ["delete", "truncate", "persist", "memory", "wal"] {
            let name = format!("{vfs}-{mode}.db");
            let db = place.open(&name, &alone_over(vfs)).unwrap();
            assert_eq!(text(&db, &format!("PRAGMA journal_mode={mode}")), mode, "{vfs}");
            db.execute_batch("CREATE TABLE t(a); PRAGMA cache_size=4").unwrap();
            for _ in 0..20 {
                let insert = format!(
                    "INSERT INTO t SELECT '{MARK}' || hex(randomblob(900)) FROM (VALUES (1),(2),(3))"
                );
                db.execute_batch(&insert).unwrap();
            }
            // Journal, log and a statement's files while they are there.
            db.execute_batch("BEGIN; UPDATE t SET a = a || 'x'").unwrap();
            assert_eq!(place.in_clear(), [""; 0].map(std::path::PathBuf::from), "{vfs} {mode}");
            db.execute_batch("ROLLBACK; VACUUM").unwrap();
            db.close().unwrap();
            assert!(is_sealed(&place.path(&name)), "{vfs} {mode}");
            let db = place.open(&name, &alone_over(vfs)).unwrap();
            assert_eq!(number(&db, "SELECT count(*) FROM t WHERE a GLOB 'MARK*'"), 60);
            assert_eq!(text(&db, "PRAGMA integrity_check"), "ok");
        }
    }
    assert!(place.in_clear().is_empty());
}

#[test]
fn locks_and_files_are_those_of_the_vfs_that_was_named() {
    let place = Place::new();
    let db = place.born("a.db", "unix-dotfile");
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(place.path("a.db.lock").exists(), "its locks are files");
    let other = place.open("a.db", &over("unix-dotfile"));
    assert!(other.unwrap_err().contains("locked"));
    db.execute_batch("COMMIT").unwrap();
    assert!(!place.path("a.db.lock").exists());
    drop(db);
    // By the name of its shim as well, which is registered by now.
    let db = place.open("a.db", "vfs=pellucid-unix-dotfile").unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(place.path("a.db.lock").exists());
    // Temporary files are the platform's, and sealed.
    db.execute_batch("PRAGMA temp_store=FILE; CREATE TEMP TABLE s(a); INSERT INTO s VALUES (1)")
        .unwrap();
}

#[test]
fn the_platform_s_own_vfs_may_be_named_and_is_what_it_was() {
    let place = Place::new();
    drop(place.born("a.db", "unix"));
    let db = place.open("a.db", "vfs=pellucid").unwrap();
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 1);
    drop(db);
    said_ok(&pellucid(&["check", place.path("a.db").to_str().unwrap()]));
}

#[test]
fn a_backup_is_made_of_a_sealed_copy_and_restored_to_an_ordinary_file() {
    let place = Place::new();
    let [copy, media, new] = ["copy.db", "copy.bak", "new.db"].map(|name| place.path(name));
    let [copy, media, new] = [&copy, &media, &new].map(|path| path.to_str().unwrap());
    for vfs in NAMED.into_iter().chain(["memdb"]) {
        let name = format!("{vfs}.db");
        let db = place.born(&name, vfs);
        db.execute_batch(&format!("VACUUM INTO 'file:{copy}?vfs=pellucid'")).unwrap();
        assert!(is_sealed(copy.as_ref()), "{vfs}: a copy of what is sealed is sealed");
        said_ok(&pellucid(&["backup", copy, "--to", media]));
        said_ok(&pellucid(&["restore", media, "--to", new]));
        said_ok(&pellucid(&["check", new]));
        let restored = place.open("new.db", "vfs=pellucid&require=sealed").unwrap();
        assert_eq!(text(&restored, "SELECT a FROM t"), MARK, "{vfs}");
        // And back, to another name over the VFS.
        let back = format!("file:{}?{}", place.path(&format!("back-{name}")).display(), over(vfs));
        restored.execute_batch(&format!("VACUUM INTO '{back}'")).unwrap();
        let again = place.open(&format!("back-{name}"), &over(vfs));
        // A database in `memdb` is gone with its last connection.
        if vfs != "memdb" {
            assert_eq!(text(&again.unwrap(), "SELECT a FROM t"), MARK, "{vfs}");
        }
        drop((db, restored));
        for file in [copy, media, new] {
            std::fs::remove_file(file).unwrap();
        }
        said_ok(&pellucid(&["accept", copy, new]));
    }
    assert!(place.in_clear().is_empty());
}

#[test]
fn a_copy_over_the_same_vfs_has_a_new_key() {
    let place = Place::new();
    let db = place.born("a.db", "unix-dotfile");
    let into = format!("file:{}?{}", place.path("b.db").display(), over("unix-dotfile"));
    db.execute_batch(&format!("VACUUM INTO '{into}'")).unwrap();
    let [old, new] = ["a.db", "b.db"].map(|name| std::fs::read(place.path(name)).unwrap());
    assert!(new.starts_with(b"Pellucid "));
    // The file id, and behind the header the pages.
    assert_ne!(old[..512], new[..512]);
    let copied = place.open("b.db", &over("unix-dotfile")).unwrap();
    assert_eq!(text(&copied, "SELECT a FROM t"), MARK);
}

#[test]
fn two_vfses_at_once_may_use_the_same_name() {
    let place = Place::new();
    let local = place.born("a.db", "unix");
    let memory = place.born("a.db", "memdb");
    let dotted = place.born("b.db", "unix-dotfile");
    for n in 0..10 {
        for db in [&local, &memory, &dotted] {
            db.execute_batch(&format!("BEGIN; INSERT INTO t VALUES ({n})")).unwrap();
        }
        // Its journal is beside the file, and only that of the one that has a file.
        assert!(place.path("a.db-journal").exists());
        dotted.execute_batch("COMMIT").unwrap();
        memory.execute_batch("COMMIT").unwrap();
        local.execute_batch("ROLLBACK").unwrap();
    }
    let rows = [&local, &memory, &dotted].map(|db| number(db, "SELECT count(*) FROM t"));
    assert_eq!(rows, [1, 11, 11]);
    for db in [local, memory, dotted] {
        assert_eq!(text(&db, "PRAGMA integrity_check"), "ok");
    }
    assert!(is_sealed(&place.path("a.db")) && is_sealed(&place.path("b.db")));
}
