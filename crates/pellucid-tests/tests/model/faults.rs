//! The comparison can fail: a VFS over the shim that loses writes, or answers with old pages, is caught,
//! and the script that shows it becomes small.
//!
//! The VFS is the shim's own, its open replaced: a file gets the shim's methods, two of them replaced.
//! So whatever lies between SQLite and the disk may be at fault here, and nothing knows of it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::time::Duration;

use rusqlite::ffi;

use crate::generator::Generator;
use crate::replaced::Replaced;
use crate::run::Bench;
use crate::script::Script;
use crate::shrink::{shrink, Found};
use crate::STEPS;

/// Steps of a script that was made small.
const SMALL: usize = 40;

/// What goes wrong with database files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Each so many writes of a page one is not done.
    LostWrite(u32),
    /// Each so many reads of a page one brings what the first read of its place brought.
    OldPage(u32),
}

thread_local! {
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
    static CALLS: Cell<u32> = const { Cell::new(0) };
    static FIRST: RefCell<HashMap<i64, Vec<u8>>> = RefCell::new(HashMap::new());
}

fn is_due(every: u32) -> bool {
    CALLS.set(CALLS.get() + 1);
    CALLS.get() % every == 0
}

const NAME: &CStr = c"faulty";

static SHIM: Replaced = Replaced::new();

fn register() {
    pellucid_bundled::register().unwrap();
    SHIM.register(c"pellucid", NAME, open);
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite's arguments go through.
    unsafe {
        SHIM.open((vfs, name, file), flags, out, |methods| {
            methods.xRead = Some(read);
            methods.xWrite = Some(write);
        })
    }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    let Some(honest) = SHIM.honest() else { return ffi::SQLITE_ERROR };
    // SAFETY: SQLite's arguments; the buffer has `length` bytes.
    unsafe {
        let code = honest.xRead.unwrap()(file, buffer, length, offset);
        let Fault::OldPage(every) = FAULT.get() else { return code };
        if code != ffi::SQLITE_OK || length < 512 || offset == 0 {
            return code;
        }
        let page = std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length as usize);
        FIRST.with_borrow_mut(|first| {
            let old = first.entry(offset).or_insert_with(|| page.to_vec());
            if is_due(every) && old.len() == page.len() {
                page.copy_from_slice(old);
            }
        });
        code
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    buffer: *const c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    let Some(honest) = SHIM.honest() else { return ffi::SQLITE_ERROR };
    if matches!(FAULT.get(), Fault::LostWrite(every) if offset > 0 && is_due(every)) {
        return ffi::SQLITE_OK;
    }
    // SAFETY: SQLite's arguments go through.
    unsafe { honest.xWrite.unwrap()(file, buffer, length, offset) }
}

fn begin(fault: Fault) {
    FAULT.set(fault);
    CALLS.set(0);
    FIRST.with_borrow_mut(HashMap::clear);
}

/// Runs scripts until one is caught, and makes it small.
fn caught(fault: Fault) -> Found {
    register();
    let bench = Bench::new("faulty").before_each(move || begin(fault));
    for seed in 1..60 {
        let run = bench.run(&mut Generator::new(seed, true, STEPS), true);
        if let Some(difference) = run.difference {
            let before = run.steps.len();
            let script = Script { same_pages: true, steps: run.steps };
            let mut found = Found { script, difference };
            // As long again as a busy machine needs.
            for _ in 0..30 {
                found = shrink(&bench, found, Duration::from_secs(10));
                if found.script.steps.len() <= SMALL {
                    break;
                }
            }
            println!(
                "{fault:?}, seed {seed}: {before} steps became\n{}{}",
                found.script, found.difference
            );
            return found;
        }
    }
    panic!("{fault:?} was never noticed");
}

#[test]
fn faults_are_caught_and_made_small() {
    for fault in [Fault::LostWrite(25), Fault::OldPage(30)] {
        let found = caught(fault);
        assert!(found.script.steps.len() <= SMALL, "{} steps are left", found.script.steps.len());
        // The script is at fault by that VFS only, and survives its text.
        let again: Script = found.script.to_string().parse().unwrap();
        assert_eq!(again, found.script);
        assert!(Bench::new("pellucid").replay(&again).difference.is_none());
        let bench = Bench::new("faulty").before_each(move || begin(fault));
        assert!(bench.replay(&again).difference.is_some());
    }
    begin(Fault::None);
}
