//! Goal: what lies beside a database belongs to who made it, and counts only as long as SQLite would count it.
//!
//! Method: the copy of a conversion under the eyes of a second one; a hot journal with a super-journal's name behind it.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::time::Duration;

use pellucid::sqlite::Source;
use pellucid::Error;
use pellucid_engine::convert;
use pellucid_engine::look::look_by;
use pellucid_engine::page_source::Pages;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::{DatabaseError, Options};

use super::bench::Bench;

/// Who waited for a conversion in vain removed its copy: had the first one been killed then, nothing could have finished it.
#[test]
fn who_waits_in_vain_leaves_the_copy_of_another_conversion() {
    let bench = Bench::new();
    let first = bench.make("delete", 4096, 20);
    first.execute_batch("BEGIN IMMEDIATE").unwrap();
    let copy = bench.beside("-pellucid");
    fs::write(&copy, "of the first").unwrap();
    let options = Options::new(Duration::from_millis(50), Vec::new());
    let refused = convert::decrypt::decrypt(&bench.path(), &options, &mut |_, _, _| ());
    assert!(matches!(refused, Err(DatabaseError::InUse { .. })), "{refused:?}");
    assert_eq!(fs::read(&copy).unwrap(), b"of the first");
    // Nor is it removed afterwards: no conversion of this database has said that it is its own.
    first.execute_batch("ROLLBACK").unwrap();
    drop(first);
    let refused = convert::decrypt::decrypt(&bench.path(), &options, &mut |_, _, _| ());
    assert!(matches!(refused, Err(DatabaseError::Typed(Error::Misuse { .. }))), "{refused:?}");
    assert_eq!(fs::read(&copy).unwrap(), b"of the first");
    fs::remove_file(&copy).unwrap();
    convert::decrypt::decrypt(&bench.path(), &options, &mut |_, _, _| ()).unwrap();
    assert!(!copy.exists());
}

/// A transaction over several files is committed with the removal of its super-journal; the journals go after it.
#[test]
fn a_journal_whose_super_journal_is_gone_is_not_played_back() {
    let bench = Bench::new();
    let writer = bench.make("delete", 4096, 200);
    writer.execute_batch("PRAGMA cache_size=2; BEGIN; UPDATE t SET body = 'new'").unwrap();
    // What a power cut would leave: some pages are in the file, all of them before are in the journal.
    let (crashed, super_journal) = (Bench::new(), bench.beside("-mj0123AF9F0"));
    fs::copy(bench.beside("-journal"), crashed.beside("-journal")).unwrap();
    fs::write(crashed.path(), bench.whole()).unwrap();
    let name = super_journal.as_os_str().as_encoded_bytes();
    let sum = name.iter().fold(0u32, |sum, byte| sum.wrapping_add(u32::from(*byte)));
    let mut journal = fs::OpenOptions::new().append(true).open(crashed.beside("-journal")).unwrap();
    let word = |number: u32| number.to_be_bytes();
    journal.write_all(&word(0x4000_0000 / 4096 + 1)).unwrap();
    journal.write_all(name).unwrap();
    journal.write_all(&word(name.len() as u32)).unwrap();
    journal.write_all(&word(sum)).unwrap();
    journal.write_all(&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]).unwrap();
    drop(journal);

    let content = || {
        let pages = Pages::open(&crashed.path()).unwrap();
        (1..=pages.pages()).map(|number| pages.page(number)).collect::<Vec<_>>()
    };
    let committed = content();
    let mut list = crashed.beside("-journal").into_os_string().into_encoded_bytes();
    list.push(0);
    fs::write(&super_journal, list).unwrap();
    let taken_back = content();
    assert!(committed != taken_back, "it was not played back");
    fs::remove_file(crashed.beside("-journal")).unwrap();
    assert!(content() == committed, "it counted");
}

/// One after the other, writers may be killed: each between the recovery of the one before and the next look.
#[test]
fn a_look_takes_back_what_each_of_many_killed_writers_left() {
    let bench = Bench::new();
    let writer = bench.make("delete", 4096, 200);
    writer.execute_batch("PRAGMA cache_size=2; BEGIN; UPDATE t SET body = 'new'").unwrap();
    let (crashed, killed) = (Bench::new(), Cell::new(0));
    let journal = fs::read(bench.beside("-journal")).unwrap();
    fs::write(crashed.path(), bench.whole()).unwrap();

    let (path, options) = (crashed.path(), Options::new(Duration::from_secs(10), Vec::new()));
    let looked = look_by(&path, &options, |flags| {
        if flags == ffi::OPEN_READONLY && killed.get() < 3 {
            killed.set(killed.get() + 1);
            fs::write(crashed.beside("-journal"), &journal).unwrap();
        }
        Handle::open(&path, &uri(&path, "vfs=pellucid"), flags)
    });
    let reader = looked.unwrap();
    assert_eq!(killed.get(), 3);
    // And one that is killed after the look: what a writer leaves while others read is played back after them.
    fs::write(crashed.beside("-journal"), &journal).unwrap();
    assert_eq!(reader.number("SELECT count(*) FROM t WHERE body <> 'new'").unwrap(), 200);
    drop(reader);
    assert!(crashed.beside("-journal").exists(), "a look rolled it back");
}
