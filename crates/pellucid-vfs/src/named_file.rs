//! Whether a database of a connection is the file that its name leads to.
//!
//! `sqlite3_db_filename` returns whatever the VFS was opened with: `x` for a deserialized database,
//! any path for one in `memdb`, and for another VFS a name that only that VFS understands. None of
//! these may be taken for a file of the system.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void, CStr, OsStr};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pellucid_host::connection::Handle;
use pellucid_host::ffi;
use pellucid_host::ffi::{File, Vfs};

use crate::file::lower_of_main;
use crate::vfs::NAME;

const FCNTL_VFS_POINTER: c_int = 27;
const FCNTL_FILE_POINTER: c_int = 7;
/// SQLite's VFSes that pass a name to the system unchanged and keep the inode of each open file
/// (os_unix.c).
const SYSTEM: [&[u8]; 2] = [b"unix", b"unix-excl"];

/// The path of the database `schema`, if it is a file: opened by the system's VFS, below the shim
/// or without it, open in this process, and still the file that the path leads to.
///
/// This is known only of files with SQLite's locks. Without them (`nolock=1`) the VFS does not keep
/// the inode and has no shared memory.
pub fn of(handle: &Handle<'_>, schema: &CStr) -> Option<PathBuf> {
    let (api, db) = (handle.api(), handle.raw());
    // SAFETY: the connection is open; the name is SQLite's, terminated, and lives as long as the database is attached. Each control
    // writes what its operation defines; a name of a VFS is terminated and freed as SQLite asks.
    unsafe {
        let name = api.db_filename()(db, schema.as_ptr());
        let path = (!name.is_null()).then(|| CStr::from_ptr(name).to_bytes())?;
        let path = PathBuf::from(OsStr::from_bytes(path));
        let control = |op: c_int, out: *mut c_void| {
            (api.file_control()(db, schema.as_ptr(), op, out) == ffi::OK).then_some(())
        };
        // The VFS that the name was given to.
        let mut vfs: *mut Vfs = std::ptr::null_mut();
        control(FCNTL_VFS_POINTER, std::ptr::addr_of_mut!(vfs).cast())?;
        let opener = CStr::from_ptr(vfs.as_ref()?.name).to_bytes();
        // And the VFSes of the file object, which say how the name reached the system:
        // `pellucid/unix`.
        let mut stack: *mut c_char = std::ptr::null_mut();
        control(ffi::FCNTL_VFSNAME, std::ptr::addr_of_mut!(stack).cast())?;
        let of = (!stack.is_null()).then(|| CStr::from_ptr(stack).to_bytes().to_vec());
        api.free()(stack.cast());
        let of = of?;
        let ours = NAME.to_bytes();
        let below = of.strip_prefix(ours).and_then(|of| of.strip_prefix(b"/"));
        let by_shim = opener == ours && below.is_some_and(|below| SYSTEM.contains(&below));
        let by_system = SYSTEM.contains(&opener) && SYSTEM.contains(&&of[..]);
        let mut file: *mut File = std::ptr::null_mut();
        control(FCNTL_FILE_POINTER, std::ptr::addr_of_mut!(file).cast())?;
        let has_inode = match by_shim {
            true => lower_of_main(file)?.has_shared_memory(),
            false => file.as_ref()?.methods.as_ref()?.shm_map.is_some(),
        };
        let mut moved: c_int = 1;
        control(ffi::FCNTL_HAS_MOVED, std::ptr::addr_of_mut!(moved).cast())?;
        let named = (by_shim || by_system) && has_inode && moved == 0;
        (named && is_open_here(&path)).then_some(path)
    }
}

/// Whether this process has the file open that the path leads to now.
fn is_open_here(path: &Path) -> bool {
    let Ok(named) = path.metadata() else { return false };
    named.is_file() && open_files().values().any(|file| *file == (named.dev(), named.ino()))
}

/// Device and inode.
pub type Identity = (u64, u64);

/// The regular files that this process has open, by descriptor.
///
/// Without `/proc` it looks at the descriptors below the lowest free number. A new descriptor gets
/// the lowest free number (open(2)), so the file opened last is among them.
pub fn open_files() -> BTreeMap<c_int, Identity> {
    let numbers: Vec<c_int> = match std::fs::read_dir("/proc/self/fd") {
        Ok(open) => {
            open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        }
        Err(_) => (0..lowest_free()).collect(),
    };
    let identified = |number| {
        // SAFETY: all zeros are a `stat`, and the call writes one or says why not: the number may be none by now.
        unsafe {
            let mut found: libc::stat = std::mem::zeroed();
            let is_file = libc::fstat(number, &mut found) == 0
                && found.st_mode & libc::S_IFMT == libc::S_IFREG;
            is_file.then_some((number, (found.st_dev, found.st_ino)))
        }
    };
    numbers.into_iter().filter_map(identified).collect()
}

fn lowest_free() -> c_int {
    let root = rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty());
    root.map_or(0, |root| root.as_raw_fd())
}
