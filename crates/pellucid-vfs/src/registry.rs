//! The open main files of this process by their names, to find the database that a journal or WAL
//! belongs to.
//!
//! SQLite keeps the names of a database, its journal and its WAL in one piece of memory, so the
//! address of the database's name says which *connection* a journal belongs to. If a shim above
//! makes names of its own, only the path is left. `sqlite3_database_file_object` would crash on
//! such names, because it trusts a pointer in front of them.

use std::ffi::{c_char, CStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Mutex;

use pellucid_host::api::Api;
use pellucid_host::over::Over;

use crate::files::Files;

struct Entry {
    name: usize,
    path: PathBuf,
    /// A counted reference, as `Rc::into_raw` returned it.
    files: usize,
    /// The address of its container.
    container: usize,
    /// The lower VFS that was named for it.
    over: Option<&'static Over>,
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
        over: files.container.over(),
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
    let mut by_path = open.iter().filter(|entry| is_named_after(journal, entry));
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

/// Where a name lies.
#[derive(Debug)]
pub enum Lies {
    /// In the VFS of the database that it belongs to by its address, or in the platform's.
    In(Option<&'static Over>),
    /// By its address it belongs to none. By its text it does to one over a VFS that was named, which may use the platform's names.
    Perhaps(&'static Over),
}

/// Where the journal or log of a name lies. By the address of the name: two VFSes may use the same names.
pub fn over_of(name: *const c_char) -> Lies {
    let Some(api) = Api::get() else { return Lies::In(None) };
    let open = open();
    let is_of = |entry: &&Entry| {
        let database = entry.name as *const c_char;
        // SAFETY: the name of an open main database, which SQLite made and keeps.
        let beside = unsafe { [api.filename_journal()(database), api.filename_wal()(database)] };
        database == name || beside.contains(&name)
    };
    if let Some(entry) = open.iter().find(is_of) {
        return Lies::In(entry.over);
    }
    // SAFETY: SQLite's names are terminated.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    let named = open.iter().filter_map(|entry| entry.over.map(|over| (entry, over)));
    let mut named = named.filter(|(entry, over)| is_named_after(&over.place(bytes), entry));
    named.next().map_or(Lies::In(None), |(_, over)| Lies::Perhaps(over))
}

/// Whether a super-journal is named after an open database over a VFS that was named.
pub fn is_named_elsewhere(super_journal: &[u8]) -> bool {
    open().iter().any(|entry| {
        let over = entry.over.map(|over| over.place(super_journal));
        over.is_some_and(|place| {
            let place = place.as_os_str().as_bytes();
            place
                .strip_prefix(entry.path.as_os_str().as_bytes())
                .is_some_and(|end| end.starts_with(b"-mj"))
        })
    })
}

/// Whether a database of the platform is open that a journal or log is named after.
pub fn is_of_platform(journal: &Path) -> bool {
    open().iter().any(|entry| entry.over.is_none() && is_named_after(journal, entry))
}

fn is_named_after(journal: &Path, entry: &Entry) -> bool {
    let journal = journal.as_os_str().as_bytes();
    let end = journal.strip_prefix(entry.path.as_os_str().as_bytes());
    end.is_some_and(|end| end == b"-journal" || end == b"-wal")
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
