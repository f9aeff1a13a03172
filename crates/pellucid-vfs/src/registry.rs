//! The open main files of this process by their names, to find the database that a journal or WAL
//! belongs to.
//!
//! SQLite keeps the names of a database, its journal and its WAL in one piece of memory, so the
//! address of the database's name says which *connection* a journal belongs to. If a shim above
//! makes names of its own, only the path is left. `sqlite3_database_file_object` would crash on
//! such names, because it trusts a pointer in front of them.

use std::ffi::{c_char, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Mutex;

use crate::files::Files;

struct Entry {
    name: usize,
    path: PathBuf,
    /// A counted reference, as `Rc::into_raw` returned it.
    files: usize,
    /// The address of its container.
    container: usize,
}

static OPEN: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// The database that a journal or WAL belongs to.
#[derive(Debug)]
pub enum Partner {
    /// The database of the same connection.
    Found(Rc<Files>),
    /// No database of that name is open here, so there is nothing to protect and no key.
    Unknown,
    /// Several databases of that name are open, and the name's address fits none. Opening the file
    /// plain could leak content.
    Ambiguous,
}

/// Enters an open main file.
pub fn enter(name: *const c_char, files: &Rc<Files>) {
    let entry = Entry {
        name: name as usize,
        path: files.container.path().to_owned(),
        files: Rc::into_raw(files.clone()) as usize,
        container: files.container.address(),
    };
    open().push(entry);
}

/// Removes a main file, which is about to be closed.
pub fn leave(name: *const c_char, files: &Rc<Files>) {
    let at = Rc::as_ptr(files) as usize;
    let mut open = open();
    if let Some(found) = open.iter().position(|e| e.name == name as usize && e.files == at) {
        let entry = open.swap_remove(found);
        drop(open);
        // SAFETY: `enter` gave this reference to the registry; it is taken back once.
        drop(unsafe { Rc::from_raw(entry.files as *const Files) });
    }
}

/// Finds the database whose name lies at `database`, or else the one that `journal` is named after.
pub fn find(database: *const c_char, journal: &Path) -> Partner {
    let open = open();
    if let Some(entry) = open.iter().find(|entry| entry.name == database as usize) {
        return Partner::Found(share(entry));
    }
    let named_after = |entry: &&Entry| {
        [OsStr::new("-journal"), OsStr::new("-wal")].iter().any(|suffix| {
            let mut name = entry.path.as_os_str().to_owned();
            name.push(suffix);
            name.as_bytes() == journal.as_os_str().as_bytes()
        })
    };
    let mut by_path = open.iter().filter(named_after);
    match (by_path.next(), by_path.next()) {
        (None, _) => Partner::Unknown,
        (Some(entry), None) => Partner::Found(share(entry)),
        _ => Partner::Ambiguous,
    }
}

/// The address of the container of the main file that SQLite opened under the name at `name`. `None`
/// if it is not of the shim.
pub fn address(name: *const c_char) -> Option<usize> {
    open().iter().find(|entry| entry.name == name as usize).map(|entry| entry.container)
}

fn share(entry: &Entry) -> Rc<Files> {
    let files = entry.files as *const Files;
    // SAFETY: the registry holds a reference, so the files are alive. The count is not atomic: the
    // opener of a journal has its database open and serialised, and it is this one, by the address of
    // its name or because it is the only one of that path.
    unsafe {
        Rc::increment_strong_count(files);
        Rc::from_raw(files)
    }
}

fn open() -> std::sync::MutexGuard<'static, Vec<Entry>> {
    OPEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
