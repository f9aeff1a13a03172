//! Ways around the VFS that was named: shims under other names, VFSes that go away, and files that two VFSes reach.

use std::ffi::{c_char, CStr, CString};

use rusqlite::ffi;

use crate::place::{over, Place};

/// A copy of a registered VFS under another name, which lives for ever, as a VFS that wraps another one is made.
fn copy_of(vfs: &CStr, name: &str) -> *mut ffi::sqlite3_vfs {
    let name: *const c_char = CString::new(name).unwrap().into_raw();
    // SAFETY: a registered VFS is read; the copy and its name live for ever.
    unsafe {
        let found = ffi::sqlite3_vfs_find(vfs.as_ptr());
        assert!(!found.is_null(), "{vfs:?}");
        let mut copy = Box::new(*found);
        (copy.zName, copy.pNext) = (name, std::ptr::null_mut());
        let copy = Box::into_raw(copy);
        assert_eq!(ffi::sqlite3_vfs_register(copy, 0), ffi::SQLITE_OK);
        copy
    }
}

#[test]
fn a_shim_under_another_name_lies_over_the_same_vfs() {
    let place = Place::new();
    drop(place.born("a.db", "unix-dotfile"));
    copy_of(c"pellucid-unix-dotfile", "wrapped");
    let db = place.open("a.db", "vfs=wrapped&certificate=pellucid").unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(place.path("a.db.lock").exists(), "the lock of unix-dotfile");
}

#[test]
fn a_vfs_that_was_taken_back_is_no_longer_called() {
    let place = Place::new();
    drop(place.open("first.db", &over("unix-dotfile")));
    let gone = copy_of(c"unix-dotfile", "gone");
    drop(place.born("a.db", "gone"));
    // SAFETY: no connection uses it any more; what it had is overwritten as freed memory may be.
    unsafe {
        assert_eq!(ffi::sqlite3_vfs_unregister(gone), ffi::SQLITE_OK);
        std::ptr::write_bytes(gone, 0xff, 1);
    }
    for how in [over("gone"), "vfs=pellucid-gone&certificate=pellucid".to_owned()] {
        assert!(place.open("a.db", &how).is_err(), "{how}");
    }
}

#[test]
fn what_is_expected_at_a_path_holds_for_every_vfs_of_the_platform() {
    let place = Place::new();
    drop(place.open("a.db", "vfs=pellucid&certificate=pellucid").map(|db| {
        db.execute_batch("CREATE TABLE t(a)").unwrap();
    }));
    std::fs::remove_file(place.path("a.db")).unwrap();
    let plain = rusqlite::Connection::open_with_flags_and_vfs(
        place.path("a.db"),
        rusqlite::OpenFlags::default(),
        "unix",
    );
    plain.unwrap().execute_batch("CREATE TABLE t(a)").unwrap();
    for how in ["vfs=pellucid", "vfs=pellucid&pellucid_over=unix-none"] {
        let read = place.open("a.db", how).and_then(|db| {
            let count = db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
            count.map_err(|error| error.to_string())
        });
        assert!(read.is_err(), "{how}");
    }
}

/// SQLite removes the log beside a database without pages, without reading it.
#[test]
fn a_log_of_a_later_version_is_left() {
    let place = Place::new();
    drop(place.open("first.db", &over("unix-none")));
    for how in ["vfs=pellucid", "vfs=pellucid&pellucid_over=unix-none"] {
        std::fs::write(place.path("w.db"), "").unwrap();
        let mut log = vec![0; 4152];
        log[..4].copy_from_slice(&0x377f_0682_u32.to_be_bytes());
        log[4..8].copy_from_slice(&0x5045_4c04_u32.to_be_bytes());
        std::fs::write(place.path("w.db-wal"), &log).unwrap();
        let told = place.open("w.db", how).and_then(|db| {
            db.execute_batch("SELECT * FROM sqlite_master").map_err(|error| error.to_string())
        });
        assert!(told.is_err(), "{how}");
        assert_eq!(std::fs::read(place.path("w.db-wal")).unwrap(), log, "{how}");
    }
}
