//! Names that lead nowhere, and VFSes that lie over the shim.

use std::ffi::CStr;

use rusqlite::ffi;

use crate::place::{open_uri, over, Place};

#[test]
fn a_name_that_leads_nowhere_is_an_error_and_makes_no_file() {
    let place = Place::new();
    for (name, says) in [
        ("ceph", "no VFS `ceph` in this process: load the extension that brings it first"),
        ("", "1 to 64 letters"),
        ("a%2Fb", "1 to 64 letters"),
        ("unix%20", "1 to 64 letters"),
        (&"x".repeat(65), "1 to 64 letters"),
        ("pellucid", "name the one below it"),
        ("pellucid-unix-dotfile", "name the one below it"),
    ] {
        let told = place.open("a.db", &over(name)).unwrap_err();
        assert!(told.contains(says), "{name}: {told}");
        assert!(!place.path("a.db").exists(), "{name}");
    }
    assert!(place.open("a.db", "vfs=pellucid-ceph").unwrap_err().contains("no such vfs"));
}

#[test]
fn a_wrong_key_and_none_are_refused_and_nothing_is_written() {
    let place = Place::new();
    drop(place.born("a.db", "unix-dotfile"));
    let before = std::fs::read(place.path("a.db")).unwrap();
    let key = place.path("key");
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let sealed = format!(
        "file:{}?vfs=pellucid&pellucid_over=unix-dotfile&key_file={}",
        place.path("b.db").display(),
        key.display()
    );
    open_uri(&sealed).unwrap().execute_batch("CREATE TABLE t(a)").unwrap();
    let wrong = place.path("wrong");
    std::fs::write(&wrong, [8; 32]).unwrap();
    std::fs::set_permissions(&wrong, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let with = format!("vfs=pellucid&pellucid_over=unix-dotfile&key_file={}", wrong.display());
    assert!(place.open("b.db", &with).is_err());
    assert!(place.open("b.db", "vfs=pellucid&pellucid_over=unix-dotfile").is_err());
    // Nor as a plain one, by the VFS alone.
    assert!(place.open("a.db", "vfs=unix-dotfile").unwrap_err().contains("not a database"));
    // A changed byte.
    let mut changed = before.clone();
    let last = changed.len() - 100;
    changed[last] ^= 1;
    std::fs::write(place.path("a.db"), &changed).unwrap();
    let read = place.open("a.db", &over("unix-dotfile")).and_then(|db| {
        let check = db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
        check.map_err(|error| error.to_string())
    });
    assert!(read.is_err());
    assert_eq!(std::fs::read(place.path("a.db")).unwrap(), changed);
}

/// The shim's own VFS under another name, as a VFS that hands all to the one below it.
fn over_the_shim(name: &'static CStr) {
    // SAFETY: the shim is registered; a copy of its structure stays valid, and SQLite keeps its own list in `pNext`.
    unsafe {
        let shim = ffi::sqlite3_vfs_find(c"pellucid".as_ptr());
        let copy = Box::leak(Box::new(std::ptr::read(shim)));
        copy.zName = name.as_ptr();
        copy.pNext = std::ptr::null_mut();
        assert_eq!(ffi::sqlite3_vfs_register(copy, 0), ffi::SQLITE_OK);
    }
}

#[test]
fn a_vfs_that_lies_over_the_shim_is_refused() {
    let place = Place::new();
    over_the_shim(c"above");
    for parameters in [over("above"), "vfs=pellucid-above&certificate=pellucid".to_owned()] {
        let told = place.open("a.db", &parameters).unwrap_err();
        assert!(told.contains("lies over Pellucid's own"), "{told}");
        assert!(!place.path("a.db").exists());
    }
    // Without a name of a lower one it is a VFS like any other.
    place.open("a.db", "vfs=above&certificate=pellucid").unwrap();
}

#[test]
fn what_the_keyring_expects_is_kept_by_the_name_of_the_vfs() {
    let place = Place::new();
    drop(place.born("a.db", "unix-dotfile"));
    let sealed = std::fs::read(place.path("a.db")).unwrap();
    let pinned = format!("/pellucid-over/unix-dotfile{}", place.path("a.db").display());
    let put = [Vec::new(), plain(&place)];
    for bytes in &put {
        std::fs::write(place.path("a.db"), bytes).unwrap();
        let told = place.open("a.db", "vfs=pellucid&pellucid_over=unix-dotfile").unwrap_err();
        assert!(told.contains("the keyring expects"), "{told}");
        assert!(told.contains(&format!("pellucid accept '{pinned}'")), "{told}");
        assert_eq!(&std::fs::read(place.path("a.db")).unwrap(), bytes);
    }
    std::fs::remove_file(place.path("a.db")).unwrap();
    let told = place.open("a.db", "vfs=pellucid&pellucid_over=unix-dotfile").unwrap_err();
    assert!(told.contains("there is no file"), "{told}");
    assert!(!place.path("a.db").exists());
    std::fs::write(place.path("a.db"), &sealed).unwrap();
    drop(place.open("a.db", &over("unix-dotfile")).unwrap());
    // The command that the error names ends it.
    crate::place::said_ok(&crate::place::pellucid(&["accept", &pinned]));
    std::fs::write(place.path("a.db"), &put[1]).unwrap();
    place.open("a.db", "vfs=pellucid&pellucid_over=unix-dotfile").unwrap();
}

fn plain(place: &Place) -> Vec<u8> {
    let db = place.open("plain.db", "vfs=unix").unwrap();
    db.execute_batch("CREATE TABLE p(a)").unwrap();
    drop(db);
    std::fs::read(place.path("plain.db")).unwrap()
}
