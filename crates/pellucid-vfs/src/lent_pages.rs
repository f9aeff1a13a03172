//! A database that SQLite reads from memory, page by page: whoever lends it opens each page when SQLite asks for it.
//!
//! A VFS of its own, `pellucid-pages`, under which only a lent database can be opened, by a name that nobody else knows.
//! Nothing of it reaches a disk: it has no file, no journal and no log, and the temporary files of a connection to it are the
//! shim's, which are sealed.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use pellucid::{Error, Result, Subject};
use pellucid_host::api::Api;
use pellucid_host::code::report;
use pellucid_host::ffi::{self, File, IoMethods, Vfs};

use crate::vfs;

/// The name of the VFS.
const NAME: &CStr = c"pellucid-pages";

/// What a lent database is read from.
pub trait Pages: Send + Sync {
    /// Its length in bytes.
    fn bytes(&self) -> u64;

    /// Reads bytes that lie within one page.
    ///
    /// # Errors
    /// Those that the borrower of the connection gets.
    fn read(&self, buffer: &mut [u8], at: u64) -> Result<()>;

    /// Checks that what it is read from has not changed since.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it has.
    fn assert_unchanged(&self) -> Result<()>;
}

/// A database that is lent, until this is dropped.
pub struct LentPages(Arc<Shared>);

impl std::fmt::Debug for LentPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LentPages").field("of", &self.0.path).finish_non_exhaustive()
    }
}

struct Shared {
    token: String,
    /// The file that errors name.
    path: PathBuf,
    pages: Arc<dyn Pages>,
    /// The first page that could not be read.
    failed: Mutex<Option<Error>>,
}

static LENT: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());

fn lent() -> MutexGuard<'static, Vec<Arc<Shared>>> {
    LENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl LentPages {
    /// Lends `pages`, read from the file `path`.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the shim is not registered.
    pub fn new(path: PathBuf, pages: Arc<dyn Pages>) -> Result<Self> {
        register()?;
        let mut random = [0; 16];
        pellucid::secret::fill_random(&mut random)?;
        let token = format!("pellucid-pages-{:032x}", u128::from_ne_bytes(random));
        let shared = Arc::new(Shared { token, path, pages, failed: Mutex::new(None) });
        lent().push(shared.clone());
        Ok(Self(shared))
    }

    /// The URI that opens it.
    pub fn uri(&self) -> String {
        format!("file:{}?vfs={}&immutable=1", self.0.token, NAME.to_string_lossy())
    }

    /// Why SQLite could not read a page, for SQLite itself only has a number for it.
    pub fn failure(&self) -> Option<Error> {
        self.0.failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }
}

impl Drop for LentPages {
    fn drop(&mut self) {
        lent().retain(|shared| !Arc::ptr_eq(shared, &self.0));
    }
}

/// Registers the VFS over the shim, once.
fn register() -> Result<()> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let done = REGISTERED.get_or_init(|| {
        let (Some(api), Some(shim)) = (Api::get(), vfs::shim()) else { return false };
        let own = std::mem::size_of::<Opened>() as c_int;
        let made = Box::into_raw(Box::new(Vfs {
            file_bytes: own.max(shim.file_bytes),
            next: std::ptr::null_mut(),
            name: NAME.as_ptr(),
            open: Some(open),
            access: Some(access),
            full_pathname: Some(full_pathname),
            ..*shim
        }));
        // SAFETY: the structure lives for ever; its other functions are the shim's, which find the lower VFS in its
        // `app_data`, as in the shim's own.
        unsafe { api.vfs_register()(made, 0) == ffi::OK }
    });
    match done {
        true => Ok(()),
        false => {
            Err(Error::misuse(Subject::Container, "the VFS is not registered in this process"))
        }
    }
}

/// The lent database of a name.
///
/// # Safety
/// `name` is null or terminated.
unsafe fn find(name: *const c_char) -> Option<Arc<Shared>> {
    if name.is_null() {
        return None;
    }
    // SAFETY: by contract.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    catch_unwind(|| lent().iter().find(|shared| shared.token.as_bytes() == name).cloned()).ok()?
}

/// Whether a name is that of a lent database or of a log beside one, which never is there.
///
/// # Safety
/// `name` is null or terminated.
unsafe fn is_beside(name: *const c_char) -> bool {
    if name.is_null() {
        return false;
    }
    // SAFETY: by contract.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let found = catch_unwind(|| lent().iter().any(|one| name.starts_with(one.token.as_bytes())));
    found.unwrap_or(true)
}

/// An open file of the VFS, in memory that SQLite gives.
#[repr(C)]
struct Opened {
    head: File,
    /// From `Arc::into_raw`; given back by `close`.
    shared: *const Shared,
}

static METHODS: IoMethods = IoMethods {
    version: 1,
    close: Some(close),
    read: Some(read),
    write: Some(write),
    truncate: Some(truncate),
    sync: Some(sync),
    file_size: Some(file_size),
    lock: Some(lock),
    unlock: Some(lock),
    check_reserved_lock: Some(check_reserved_lock),
    file_control: Some(file_control),
    sector_size: Some(sector_size),
    device_characteristics: Some(device_characteristics),
    shm_map: None,
    shm_lock: None,
    shm_barrier: None,
    shm_unmap: None,
    fetch: None,
    unfetch: None,
};

unsafe extern "C" fn open(
    vfs: *mut Vfs,
    name: *const c_char,
    file: *mut File,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite's name, and `file_bytes` of memory.
    unsafe {
        (*file).methods = std::ptr::null();
        let Some(shared) = find(name).filter(|_| flags & ffi::OPEN_MAIN_DB != 0) else {
            // A temporary file, which the shim seals. Nothing else has a place here.
            return match (name.is_null(), vfs::shim().and_then(|shim| shim.open)) {
                (true, Some(open)) => open(vfs, name, file, flags, out_flags),
                _ => ffi::CANTOPEN,
            };
        };
        let opened: *mut Opened = file.cast();
        (*opened).shared = Arc::into_raw(shared);
        (*opened).head.methods = &raw const METHODS;
        if !out_flags.is_null() {
            *out_flags = ffi::OPEN_READONLY | ffi::OPEN_MAIN_DB;
        }
    }
    ffi::OK
}

unsafe extern "C" fn access(
    vfs: *mut Vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite's name, and its `out` is valid for a write.
    unsafe {
        if is_beside(name) {
            *out = 0;
            return ffi::OK;
        }
        match vfs::shim().and_then(|shim| shim.access) {
            Some(call) => call(vfs, name, flags, out),
            None => ffi::IOERR,
        }
    }
}

unsafe extern "C" fn full_pathname(
    vfs: *mut Vfs,
    name: *const c_char,
    bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite's name, and `out` has room for `bytes` bytes.
    unsafe {
        if find(name).is_some() {
            let whole = CStr::from_ptr(name).to_bytes_with_nul();
            if whole.len() > bytes.max(0) as usize {
                return ffi::CANTOPEN;
            }
            std::ptr::copy_nonoverlapping(whole.as_ptr().cast(), out, whole.len());
            return ffi::OK;
        }
        match vfs::shim().and_then(|shim| shim.full_pathname) {
            Some(call) => call(vfs, name, bytes, out),
            None => ffi::CANTOPEN,
        }
    }
}

/// The lent database of an open file.
///
/// # Safety
/// `file` was opened by [`open`] and is not closed; the result is not used after it is.
unsafe fn shared<'a>(file: *mut File) -> &'a Shared {
    // SAFETY: by contract.
    unsafe { &*(*file.cast::<Opened>()).shared }
}

unsafe extern "C" fn close(file: *mut File) -> c_int {
    // SAFETY: SQLite closes a file once; the pointer is that of `open`.
    unsafe {
        drop(Arc::from_raw((*file.cast::<Opened>()).shared));
        (*file).methods = std::ptr::null();
    }
    ffi::OK
}

unsafe extern "C" fn read(file: *mut File, out: *mut c_void, bytes: c_int, at: i64) -> c_int {
    // SAFETY: SQLite's buffer of so many bytes, and its open file.
    let (buffer, shared) = unsafe {
        (std::slice::from_raw_parts_mut(out.cast::<u8>(), bytes.max(0) as usize), shared(file))
    };
    let done = catch_unwind(AssertUnwindSafe(|| {
        buffer.fill(0);
        let (size, at) = (shared.pages.bytes(), at.max(0) as u64);
        let there = (size.saturating_sub(at)).min(buffer.len() as u64) as usize;
        if there > 0 {
            if let Err(error) = shared.pages.read(&mut buffer[..there], at) {
                buffer.fill(0);
                let code = report(&shared.path, &error).0;
                let mut failed =
                    shared.failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                failed.get_or_insert(error);
                return code;
            }
        }
        match there == buffer.len() {
            true => ffi::OK,
            false => ffi::IOERR_SHORT_READ,
        }
    }));
    done.unwrap_or(ffi::IOERR_READ)
}

unsafe extern "C" fn file_size(file: *mut File, out: *mut i64) -> c_int {
    // SAFETY: SQLite's open file, and its `out` is valid for a write.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe {
        *out = shared(file).pages.bytes().try_into().unwrap_or(i64::MAX);
    }));
    if done.is_ok() {
        ffi::OK
    } else {
        ffi::IOERR
    }
}

unsafe extern "C" fn write(_: *mut File, _: *const c_void, _: c_int, _: i64) -> c_int {
    ffi::READONLY
}

unsafe extern "C" fn truncate(_: *mut File, _: i64) -> c_int {
    ffi::READONLY
}

unsafe extern "C" fn sync(_: *mut File, _: c_int) -> c_int {
    ffi::OK
}

unsafe extern "C" fn lock(_: *mut File, _: c_int) -> c_int {
    ffi::OK
}

unsafe extern "C" fn check_reserved_lock(_: *mut File, out: *mut c_int) -> c_int {
    // SAFETY: `out` is valid for a write.
    unsafe { *out = 0 };
    ffi::OK
}

unsafe extern "C" fn file_control(_: *mut File, _: c_int, _: *mut c_void) -> c_int {
    ffi::NOTFOUND
}

unsafe extern "C" fn sector_size(_: *mut File) -> c_int {
    4096
}

unsafe extern "C" fn device_characteristics(_: *mut File) -> c_int {
    ffi::IOCAP_IMMUTABLE
}
