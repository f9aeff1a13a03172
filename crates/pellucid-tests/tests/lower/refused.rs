//! What only a file of this machine can have is refused by name.

use crate::place::{number, over, pellucid, said_ok, text, Place, MARK};

#[test]
fn a_plain_database_is_not_encrypted_in_place() {
    let place = Place::new();
    let plain = place.open("p.db", "vfs=unix-dotfile").unwrap();
    plain.execute_batch(&format!("CREATE TABLE t(a); INSERT INTO t VALUES ('{MARK}')")).unwrap();
    drop(plain);
    let before = std::fs::read(place.path("p.db")).unwrap();
    let told = place.open("p.db", &over("unix-dotfile")).unwrap_err();
    let says = "encryption in place is not possible over the VFS `unix-dotfile`";
    assert!(told.contains(says) && told.contains("VACUUM INTO"), "{told}");
    // By the function of the extension.
    let uri =
        format!("file:{}?vfs=pellucid&pellucid_over=unix-dotfile", place.path("p.db").display());
    let db = rusqlite::Connection::open(uri).unwrap();
    // SAFETY: the library is this repository's own, built for the tests.
    unsafe {
        db.load_extension_enable().unwrap();
        db.load_extension(pellucid_tests::processes::extension(), None::<&str>).unwrap();
    }
    let told = db.query_row("SELECT pellucid_encrypt('pellucid')", [], |_| Ok(())).unwrap_err();
    assert!(told.to_string().contains(says), "{told}");
    assert_eq!(std::fs::read(place.path("p.db")).unwrap(), before);
    // What the error says to do.
    let into = format!("file:{}?{}", place.path("s.db").display(), over("unix-dotfile"));
    db.execute_batch(&format!("VACUUM INTO '{into}'")).unwrap();
    let sealed = place.open("s.db", &over("unix-dotfile")).unwrap();
    assert_eq!(text(&sealed, "SELECT a FROM t"), MARK);
}

#[test]
fn a_database_with_log_backups_or_an_index_in_memory_is_not_opened() {
    let place = Place::new();
    let [full, memory] = ["full.db", "memory.db"].map(|name| place.path(name));
    for path in [&full, &memory] {
        let db = place.open(path.file_name().unwrap().to_str().unwrap(), "vfs=unix").unwrap();
        db.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(a)").unwrap();
        drop(db);
        said_ok(&pellucid(&["encrypt", path.to_str().unwrap()]));
    }
    said_ok(&pellucid(&["recovery", full.to_str().unwrap(), "full"]));
    said_ok(&pellucid(&["index", memory.to_str().unwrap(), "memory"]));
    for (name, says, back) in [
        (
            "full.db",
            "the recovery model FULL is not possible over the VFS `unix-dotfile`",
            "pellucid recovery FILE simple",
        ),
        (
            "memory.db",
            "a wal-index in memory is not possible over the VFS `unix-dotfile`",
            "pellucid index FILE file",
        ),
    ] {
        let told = place.open(name, &over("unix-dotfile")).unwrap_err();
        assert!(told.contains(says) && told.contains(back), "{told}");
        // As a file of this machine it is what it was.
        assert_eq!(number(&place.open(name, "vfs=pellucid").unwrap(), "SELECT count(*) FROM t"), 0);
    }
}

#[test]
fn a_transaction_over_several_databases_is_refused_and_changes_none() {
    let place = Place::new();
    for vfs in ["unix", "unix-dotfile"] {
        let main = format!("main-{vfs}.db");
        let db = place.born(&main, vfs);
        let other = format!(
            "file:{}?{}",
            place.path(&format!("other-{vfs}.db")).display(),
            over("unix-dotfile")
        );
        db.execute_batch(&format!("ATTACH '{other}' AS o; CREATE TABLE o.t(a)")).unwrap();
        let both = "BEGIN; INSERT INTO main.t VALUES (1); INSERT INTO o.t VALUES (1); COMMIT";
        assert!(db.execute_batch(both).is_err(), "{vfs}");
        let told = place.last_error();
        assert!(told.contains("a transaction over several databases"), "{told}");
        let _ = db.execute_batch("ROLLBACK");
        assert_eq!(number(&db, "SELECT count(*) FROM main.t"), 1);
        assert_eq!(number(&db, "SELECT count(*) FROM o.t"), 0);
        // One at a time.
        db.execute_batch("INSERT INTO main.t VALUES (1); INSERT INTO o.t VALUES (1)").unwrap();
        drop(db);
        let db = place.open(&format!("other-{vfs}.db"), &over("unix-dotfile")).unwrap();
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 1);
    }
}

#[test]
fn commands_name_the_vfs_of_a_database_that_is_no_file_of_this_machine() {
    let place = Place::new();
    drop(place.born("a.db", "unix-dotfile"));
    let known = format!("/pellucid-over/unix-dotfile{}", place.path("a.db").display());
    for command in [&["rekey"][..], &["decrypt"], &["encrypt"], &["recovery"], &["check"]] {
        let output = pellucid(&[command, &[known.as_str()]].concat());
        assert!(!output.status.success(), "{command:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("lies over the VFS `unix-dotfile`"), "{command:?}: {said}");
        assert!(said.contains("VACUUM INTO"), "{command:?}: {said}");
    }
}
