//! SQLite's calls with a name, by the descriptor of the database's folder.
//!
//! SQLite opens a database's log, journal and wal-index by their names, and removes them so. Whoever owns the folder, or one
//! above it, can exchange what these names lead to in between. So the shim holds the folder that a database was opened in,
//! and gives SQLite's `unix` VFS functions in the place of the system's (`xSetSystemCall`): inside a call of the shim's they
//! look for a name in that folder alone, follow no symbolic link, and refuse a file that is not to be written there before
//! its first byte. Every other call goes on as before.

use std::cell::Cell;
use std::ffi::{c_char, c_int, CStr, CString, OsStr};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pellucid::memory_index::Place;
use pellucid_files::open_at::{look_at, writable_or_not};
use pellucid_files::way::{has_foreign_name, Way};
use pellucid_host::code::note;
use pellucid_host::connection::never_a_database;
use pellucid_host::ffi;
use pellucid_host::ffi::{Opaque, Vfs};

/// The folder of an open database.
#[derive(Debug)]
pub struct Folder {
    directory: File,
    path: PathBuf,
    identity: (u64, u64),
}

static OPEN: Mutex<Vec<Weak<Folder>>> = Mutex::new(Vec::new());

/// The end of a wal-index's name.
pub(crate) const INDEX_END: &str = "-shm";

/// The file `-shm` that SQLite has opened. The descriptor is SQLite's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenedIndex {
    pub descriptor: c_int,
    pub place: Place,
}

thread_local! {
    /// The file `-shm` that a call of SQLite's has opened on this thread.
    static INDEX_OPENED: Cell<Option<OpenedIndex>> = const { Cell::new(None) };
    /// The folder whose names the running call of SQLite's may use.
    static HERE: Cell<*const Folder> = const { Cell::new(std::ptr::null()) };
}

/// The folder that a way has led to. It is the same one for all databases in it.
///
/// # Errors
/// The system's.
pub(crate) fn enter(way: Way) -> std::io::Result<Arc<Folder>> {
    let (directory, path) = way.into_directory();
    let found = directory.metadata()?;
    let identity = (found.dev(), found.ino());
    let path = path.parent().unwrap_or(Path::new("/")).to_owned();
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|folder| folder.strong_count() > 0);
    let known = open.iter().filter_map(Weak::upgrade);
    let same = |folder: &Arc<Folder>| folder.identity == identity && folder.path == path;
    if let Some(folder) = known.into_iter().find(same) {
        return Ok(folder);
    }
    let folder = Arc::new(Folder { directory, path, identity });
    open.push(Arc::downgrade(&folder));
    Ok(folder)
}

/// The folder of open databases in which a file of this name lies: the one that was opened last, if several had its path.
pub(crate) fn of(name: &Path) -> Option<Arc<Folder>> {
    let directory = name.parent()?;
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut known = open.iter().rev().filter_map(Weak::upgrade);
    known.find(|folder| folder.path == directory)
}

/// Runs `call` with the names of a folder; without one, names lead where the system leads them.
pub(crate) fn within<T>(folder: Option<&Arc<Folder>>, call: impl FnOnce() -> T) -> T {
    struct Back(*const Folder);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = HERE.try_with(|here| here.set(self.0));
        }
    }
    let folder = folder.map_or(std::ptr::null(), Arc::as_ptr);
    let _back = HERE.try_with(|here| Back(here.replace(folder))).ok();
    call()
}

/// Takes what the last call of SQLite's on this thread has opened as a wal-index.
pub(crate) fn take_opened_index() -> Option<OpenedIndex> {
    INDEX_OPENED.try_with(Cell::take).ok().flatten()
}

/// The folder of a database that is opened without the shim: until this is dropped, SQLite's calls of the thread find names
/// there by the folder's descriptor, too.
#[derive(Debug)]
pub struct Held {
    before: *const Folder,
    _folder: Arc<Folder>,
}

impl Held {
    /// Holds the folder that the way to `path` leads to.
    ///
    /// # Errors
    /// The system's, and those of [`Way::of`].
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let folder = enter(Way::of(path)?)?;
        let before = HERE.replace(Arc::as_ptr(&folder));
        Ok(Self { before, _folder: folder })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = HERE.try_with(|here| here.set(self.before));
    }
}

type OpenCall = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;
type AccessCall = unsafe extern "C" fn(*const c_char, c_int) -> c_int;
type StatCall = unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int;
type UnlinkCall = unsafe extern "C" fn(*const c_char) -> c_int;

/// The functions that SQLite had before, by address; zero before [`install`].
static BEFORE: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
const CALLS: [&CStr; 4] = [c"open", c"access", c"stat", c"unlink"];

/// Puts the functions in the place of those of a `unix` VFS, once in a process.
///
/// # Safety
/// `lower` is a registered VFS.
pub(crate) unsafe fn install(lower: *mut Vfs) {
    // SAFETY: by contract; names of VFSes are terminated.
    let vfs = unsafe { &*lower };
    // SAFETY: as above.
    let is_unix = unsafe { CStr::from_ptr(vfs.name) }.to_bytes().starts_with(b"unix");
    let (Some(get), Some(set)) = (vfs.get_system_call, vfs.set_system_call) else { return };
    if !is_unix || vfs.version < 3 {
        return;
    }
    // SAFETY: the type that SQLite hands functions around in; it calls each by its own signature.
    let ours: [Opaque; 4] = unsafe {
        [
            std::mem::transmute::<OpenCall, Opaque>(open),
            std::mem::transmute::<AccessCall, Opaque>(access),
            std::mem::transmute::<StatCall, Opaque>(stat),
            std::mem::transmute::<UnlinkCall, Opaque>(unlink),
        ]
    };
    for ((name, ours), before) in CALLS.iter().zip(ours).zip(&BEFORE) {
        // SAFETY: the VFS has both functions; the name is terminated.
        let Some(found) = (unsafe { get(lower, name.as_ptr()) }) else { continue };
        let unset = Ordering::Acquire;
        if before.compare_exchange(0, found as usize, Ordering::AcqRel, unset).is_ok() {
            // SAFETY: as above; the function is static.
            unsafe { set(lower, name.as_ptr(), ours) };
        }
    }
}

/// The folder's descriptor and the name in it, if the running call may use that folder and `path` lies in it.
///
/// # Safety
/// `path` is terminated.
unsafe fn here<'a>(path: *const c_char) -> Option<(&'a Folder, CString)> {
    let folder = HERE.try_with(Cell::get).ok().filter(|folder| !folder.is_null())?;
    // SAFETY: whoever set it holds the folder until it is set back (`within`, `Held`).
    let folder = unsafe { &*folder };
    // SAFETY: by contract.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
    let name = match path.parent() {
        Some(parent) if parent == folder.path => path.file_name()?.as_bytes(),
        // SQLite syncs it by a descriptor of its own.
        _ if path == folder.path => b".",
        _ => return None,
    };
    Some((folder, CString::new(name).ok()?))
}

unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let opened = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: SQLite's name.
        let (folder, name) = unsafe { here(path) }?;
        // It says nothing about a regular file, and nothing waits for the other end of a FIFO.
        let flags = flags | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let at = folder.directory.as_raw_fd();
        // SAFETY: the descriptor is open and the name terminated.
        let opened = unsafe { libc::openat(at, name.as_ptr(), flags, mode) };
        if opened >= 0 && name.as_bytes() != b"." {
            if let Some(why) = folder.refuses(opened) {
                // SAFETY: it was opened just now.
                unsafe { libc::close(opened) };
                // SAFETY: SQLite's name.
                let path = unsafe { CStr::from_ptr(path) }.to_bytes();
                note(ffi::CANTOPEN, Path::new(OsStr::from_bytes(path)), &why);
                return Some(fails_with(libc::EPERM));
            }
        }
        if opened >= 0 && name.as_bytes().ends_with(INDEX_END.as_bytes()) {
            note_index(opened);
        }
        Some(opened)
    }));
    match opened {
        Ok(Some(opened)) => opened,
        Ok(None) => match BEFORE[0].load(Ordering::Acquire) {
            0 => fails_with(libc::ENOSYS),
            // SAFETY: SQLite's function of this signature; its arguments go through unchanged.
            before => unsafe { std::mem::transmute::<usize, OpenCall>(before)(path, flags, mode) },
        },
        Err(_) => fails_with(libc::EIO),
    }
}

/// Notes which file SQLite has opened as a wal-index.
fn note_index(descriptor: c_int) {
    // SAFETY: the descriptor was opened just now, and stays SQLite's.
    let held = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    let place = |found: std::fs::Metadata| Place { device: found.dev(), inode: found.ino() };
    let place = held.metadata().ok().map(place);
    let found = place.map(|place| OpenedIndex { descriptor, place });
    let _ = INDEX_OPENED.try_with(|last| last.set(found));
}

unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: SQLite's name.
    match catch_unwind(|| unsafe { here(path) }) {
        Ok(Some((folder, name))) => {
            // SAFETY: the descriptor is open and the name terminated.
            unsafe { libc::faccessat(folder.directory.as_raw_fd(), name.as_ptr(), mode, 0) }
        }
        Ok(None) => match BEFORE[1].load(Ordering::Acquire) {
            0 => fails_with(libc::ENOSYS),
            // SAFETY: as in `open`.
            before => unsafe { std::mem::transmute::<usize, AccessCall>(before)(path, mode) },
        },
        Err(_) => fails_with(libc::EIO),
    }
}

unsafe extern "C" fn stat(path: *const c_char, out: *mut libc::stat) -> c_int {
    // SAFETY: SQLite's name.
    match catch_unwind(|| unsafe { here(path) }) {
        Ok(Some((folder, name))) => {
            let (at, flags) = (folder.directory.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
            // SAFETY: the descriptor is open, the name terminated, and `out` SQLite's.
            unsafe { libc::fstatat(at, name.as_ptr(), out, flags) }
        }
        Ok(None) => match BEFORE[2].load(Ordering::Acquire) {
            0 => fails_with(libc::ENOSYS),
            // SAFETY: as in `open`.
            before => unsafe { std::mem::transmute::<usize, StatCall>(before)(path, out) },
        },
        Err(_) => fails_with(libc::EIO),
    }
}

unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: SQLite's name.
    match catch_unwind(|| unsafe { here(path) }) {
        Ok(Some((folder, name))) => {
            // SAFETY: the descriptor is open and the name terminated.
            unsafe { libc::unlinkat(folder.directory.as_raw_fd(), name.as_ptr(), 0) }
        }
        Ok(None) => match BEFORE[3].load(Ordering::Acquire) {
            0 => fails_with(libc::ENOSYS),
            // SAFETY: as in `open`.
            before => unsafe { std::mem::transmute::<usize, UnlinkCall>(before)(path) },
        },
        Err(_) => fails_with(libc::EIO),
    }
}

impl Folder {
    /// Which file has the name here; a symbolic link is not followed.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn look(&self, name: &OsStr) -> std::io::Result<Place> {
        let (device, inode) = look_at(&self.directory, name)?;
        Ok(Place { device, inode })
    }

    /// Opens a file here, to write where this process may. A symbolic link is not followed.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn open(&self, name: &OsStr) -> std::io::Result<(File, bool)> {
        writable_or_not(&self.directory, name)
    }

    /// Why a file that was opened here is not used. SQLite would write to it, cut it and give it away.
    fn refuses(&self, opened: c_int) -> Option<String> {
        // SAFETY: the descriptor is open, and stays SQLite's.
        let opened = ManuallyDrop::new(unsafe { File::from_raw_fd(opened) });
        let unknown = || Some("it cannot be looked at".to_owned());
        let Ok(found) = opened.metadata() else { return unknown() };
        if never_a_database(&found) {
            return Some("not a regular file".to_owned());
        }
        match has_foreign_name(&self.directory, &found) {
            Ok(why) => why.filter(|_| found.is_file()),
            Err(_) => unknown(),
        }
    }
}

/// Says why a call failed, as the C library does.
fn fails_with(error: c_int) -> c_int {
    // SAFETY: the address of this thread's `errno`.
    unsafe { *libc::__errno_location() = error };
    -1
}
