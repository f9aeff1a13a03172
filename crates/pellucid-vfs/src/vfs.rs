//! The VFS `pellucid`: registered over the platform's VFS. It opens files; most other calls go to
//! the lower VFS unchanged.

mod named;

use std::ffi::{c_char, c_int, c_void, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Arc;

use pellucid_files::paths::{is_super_journal, OVER};
use pellucid_files::trusted;
use pellucid_files::way::Way;
use pellucid_host::api::Api;
use pellucid_host::code::{note, report};
use pellucid_host::connection::never_a_database;
use pellucid_host::ffi;
use pellucid_host::ffi::{File, Opaque, Vfs};
use pellucid_host::over::Over;

pub use named::by_default;
use named::Beside;

use crate::copy;
use crate::file;
use crate::in_memory;
use crate::lower::Lower;
use crate::main_file::plain_where_sealed_is_required;
use crate::mark;
use crate::names::{self, Folder};
use crate::newcomer;
use crate::pins::{note_resolved, Expectation, Lesser};
use crate::registry;
use crate::seal_request::{flag, Request};
use crate::shared_memory::Presence;

/// The name to open databases under: `file:app.db?vfs=pellucid`.
pub const NAME: &CStr = c"pellucid";

/// The registered VFS; made once and never freed, because SQLite keeps the pointer.
static SHIM: AtomicPtr<Vfs> = AtomicPtr::new(std::ptr::null_mut());

/// Registers the VFS over the host's default one.
///
/// # Safety
/// `table` is the `sqlite3_api_routines` pointer SQLite gave to an extension's entry point.
pub unsafe fn register(table: *const c_void, make_default: bool) -> c_int {
    let registered = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: by contract.
        let Some(api) = (unsafe { Api::install(table) }) else { return ffi::ERROR };
        register_over_default(api, make_default)
    }));
    registered.unwrap_or(ffi::ERROR)
}

/// Makes the VFS the default again, after `sqlite3_shutdown` undid that. Does nothing before
/// [`register`], and where the program has made a VFS of its own the default meanwhile.
pub fn make_default() -> c_int {
    match Api::get() {
        Some(api) if is_programs_own(api) => ffi::OK,
        Some(api) => register_over_default(api, true),
        None => ffi::OK,
    }
}

/// Whether the default VFS is neither the shim nor the one below it, nor one of SQLite's own: `sqlite3_shutdown` brings back
/// those.
fn is_programs_own(api: Api) -> bool {
    // SAFETY: null asks for the default; a registered VFS and its name stay valid.
    let (default, name) = unsafe {
        let default = api.vfs_find()(std::ptr::null());
        match default.is_null() || (*default).name.is_null() {
            true => return false,
            false => (default, CStr::from_ptr((*default).name)),
        }
    };
    let is_known = default == SHIM.load(Ordering::Acquire) || Some(default) == lower_vfs();
    !is_known && !name.to_bytes().starts_with(b"unix")
}

/// The VFS below the shim. `None` before [`register`].
pub fn lower_vfs() -> Option<*mut Vfs> {
    let shim = SHIM.load(Ordering::Acquire);
    (!shim.is_null()).then(|| below(shim).0)
}

/// The shim's own structure. `None` before [`register`].
pub(crate) fn shim() -> Option<&'static Vfs> {
    let shim = SHIM.load(Ordering::Acquire);
    // SAFETY: made once and never freed; SQLite changes nothing in it but the list it keeps.
    (!shim.is_null()).then(|| unsafe { &*shim })
}

fn register_over_default(api: Api, make_default: bool) -> c_int {
    // SAFETY: the name is terminated; null asks for the default.
    let (known, default) =
        unsafe { (api.vfs_find()(NAME.as_ptr()), api.vfs_find()(std::ptr::null())) };
    if default.is_null() {
        return ffi::ERROR;
    }
    let mut shim = SHIM.load(Ordering::Acquire);
    if shim.is_null() {
        // SAFETY: a registered VFS.
        unsafe { names::install(default) };
        let made = Box::into_raw(Box::new(shim_over(default, NAME.as_ptr())));
        let raced =
            SHIM.compare_exchange(std::ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        shim = match raced {
            Ok(_) => made,
            Err(first) => first,
        };
    }
    if make_default {
        in_memory::reserve_from_now_on(api);
        mark::offer(api);
    }
    if known == shim && (!make_default || default == shim) {
        return ffi::OK;
    }
    // SAFETY: the structure lives for ever and its lower VFS is one SQLite has registered.
    unsafe { api.vfs_register()(shim, c_int::from(make_default)) }
}

/// A shim of this name, which lives for ever, over a registered VFS. Its files without a name are the platform's.
fn shim_over(lower: *mut Vfs, name: *const c_char) -> Vfs {
    // SAFETY: SQLite gave the pointers; a registered VFS stays valid.
    let (below, platform) = unsafe { (&*lower, &*lower_vfs().unwrap_or(lower)) };
    let has = |version: c_int| below.version >= version;
    Vfs {
        version: below.version.clamp(1, 3),
        file_bytes: file::HEAD_BYTES as c_int + platform.file_bytes,
        max_pathname: below.max_pathname,
        next: std::ptr::null_mut(),
        name,
        app_data: lower.cast(),
        open: Some(open),
        delete: Some(delete),
        access: Some(access),
        full_pathname: Some(full_pathname),
        dl_open: Some(dl_open),
        dl_error: Some(dl_error),
        dl_sym: Some(dl_sym),
        dl_close: Some(dl_close),
        randomness: Some(randomness),
        sleep: Some(sleep),
        current_time: Some(current_time),
        get_last_error: Some(get_last_error),
        current_time_int64: platform
            .current_time_int64
            .filter(|_| has(2) && platform.version >= 2)
            .map(|_| current_time_int64 as unsafe extern "C" fn(*mut Vfs, *mut i64) -> c_int),
        set_system_call: Some(set_system_call),
        get_system_call: Some(get_system_call),
        next_system_call: Some(next_system_call),
    }
}

/// The lower VFS of the shim.
fn below<'a>(vfs: *mut Vfs) -> (*mut Vfs, &'a Vfs) {
    // SAFETY: SQLite calls with the structure it was given (`register_over_default`), whose
    // `app_data` is a registered VFS.
    unsafe {
        let lower: *mut Vfs = (*vfs).app_data.cast();
        (lower, &*lower)
    }
}

/// Reads the request for a main database from its URI.
///
/// # Safety
/// `name` is a filename SQLite passed to `xOpen` with `SQLITE_OPEN_MAIN_DB`.
unsafe fn request_of(name: *const c_char) -> Request {
    let Some(api) = Api::get() else { return Request::default() };
    let text = |key: &CStr| {
        // SAFETY: by contract `name` is one of SQLite's filename objects; the value it returns
        // lives as long as that.
        let value = unsafe { api.uri_parameter()(name, key.as_ptr()) };
        // SAFETY: SQLite's values are terminated.
        (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }.to_bytes().to_vec())
    };
    let string = |key: &CStr| text(key).and_then(|bytes| String::from_utf8(bytes).ok());
    let path = |key: &CStr| text(key).map(|bytes| PathBuf::from(OsStr::from_bytes(&bytes)));
    let levels = ["sealed", "container", "fresh"];
    let required = string(c"require").filter(|value| levels.contains(&value.as_str()));
    Request {
        certificate: string(c"certificate"),
        key_file: path(c"key_file"),
        passphrase_file: path(c"passphrase_file"),
        algorithm: string(c"algorithm"),
        birth: string(c"pellucid_birth"),
        require: required.is_some() || flag("PELLUCID_REQUIRE"),
        // The project's own connections work on a container in whatever state.
        require_sealed: match required.as_deref() {
            Some("container") => false,
            required => required.is_some() || flag("PELLUCID_REQUIRE"),
        },
        require_fresh: required.as_deref() == Some("fresh"),
        copy: string(c"pellucid_copy").is_some(),
        file_id: string(c"file_id"),
        own: string(c"pellucid_own").is_some(),
        strict_log: string(c"strict_log").is_some_and(|value| value == "1")
            || flag("PELLUCID_STRICT_LOG"),
        accept: string(c"pellucid_accept").is_some(),
        renew: string(c"pellucid_renew").is_some(),
        recover: string(c"pellucid_recover").is_some(),
        plain: false,
        encrypt_new: flag("PELLUCID_ENCRYPT_NEW"),
        seal_new: string(c"encrypt_new").is_some_and(|value| value == "1"),
        plain_copies: string(c"plain_copies").is_some_and(|value| value == "1")
            || flag("PELLUCID_PLAIN_COPIES"),
        unmapped: string(c"pellucid_mmap").is_some_and(|value| value == "0")
            || std::env::var_os("PELLUCID_MMAP").is_some_and(|value| value == "0"),
        over: None,
    }
}

unsafe extern "C" fn open(
    vfs: *mut Vfs,
    name: *const c_char,
    file: *mut File,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives `file_bytes` of memory.
    unsafe { (*file).methods = std::ptr::null() };
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let _moment = trusted::Moment::begin();
        // SAFETY: SQLite's names are terminated.
        let bytes = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes());
        // SAFETY: SQLite's name.
        let over = match unsafe { over_of(vfs, name, flags) } {
            Ok(over) => over,
            Err(code) => return code,
        };
        let path = bytes.map(|bytes| match over {
            Some(over) => over.place(bytes),
            None => PathBuf::from(OsStr::from_bytes(bytes)),
        });
        if let Some(path) = path.as_ref().filter(|path| over.is_none() && path.starts_with(OVER)) {
            note(ffi::CANTOPEN, path, "the place is that of databases over a VFS that was named");
            return ffi::CANTOPEN;
        }
        let mut request = if flags & ffi::OPEN_MAIN_DB != 0 && path.is_some() {
            // SAFETY: a main database's name is one of SQLite's filename objects.
            unsafe { request_of(name) }
        } else {
            Request::default()
        };
        request.over = over;
        // SAFETY: a name is terminated.
        let lent = || unsafe { lent(name) };
        let (copy, is_log) = match over.map_or_else(lent, |_| None) {
            Some(copy::Name::Copy(copy)) => (Some(copy), false),
            Some(copy::Name::Log) => (None, true),
            None => (None, false),
        };
        if copy.as_ref().is_some_and(copy::Opening::is_plain) {
            request = Request { plain: true, plain_copies: true, ..Request::default() };
        } else if request.copy && copy.is_none() {
            return ffi::CANTOPEN;
        }
        let (name, path, flags) = match is_log {
            true => (std::ptr::null(), None, NAMELESS),
            false => (name, path, flags),
        };
        // SAFETY: SQLite's name.
        let exists = |path: &Path| over.map_or_else(|| path.exists(), |it| unsafe { it.has(name) });
        if let Some(path) = path.as_ref().filter(|_| flags & ffi::OPEN_CREATE != 0) {
            // A file that would be refused as soon as it exists is not made.
            let copies = !request.plain_copies && newcomer::is_any();
            if request.forbids_birth() && !copies && !exists(path) {
                return report(path, &plain_where_sealed_is_required()).0;
            }
        }
        let mut expected = Expectation::default();
        if let Some(path) = path.as_ref() {
            // A FIFO under the name of a database or a log would make the open wait.
            let is_there = match over {
                Some(_) => flags & ffi::OPEN_MAIN_DB != 0 && exists(path),
                None => match std::fs::metadata(path) {
                    Ok(found) if never_a_database(&found) => {
                        note(ffi::CANTOPEN, path, "not a regular file");
                        return ffi::CANTOPEN;
                    }
                    found => found.is_ok(),
                },
            };
            if flags & ffi::OPEN_MAIN_DB != 0 {
                match expectation(path, is_there, flags, &request) {
                    Ok(found) => expected = found,
                    Err(code) => return code,
                }
            }
        }
        let (lower_vfs, lower) = match (over, lower_vfs()) {
            (Some(over), _) => over.lower(),
            // SAFETY: a registered VFS stays valid.
            (None, Some(platform)) => (platform, unsafe { &*platform }),
            (None, None) => return ffi::CANTOPEN,
        };
        let Some(open) = lower.open else { return ffi::CANTOPEN };
        let mut granted = flags;
        let own = path.as_ref().filter(|_| over.is_none());
        let folder = match own.map(|path| folder_of(path, flags)).transpose() {
            Ok(folder) => folder.flatten(),
            Err(code) => return code,
        };
        let mut memory = over.map(Over::memory);
        // SAFETY: the memory behind the shim's head has room for a file of the platform's, and `memory` for one of the VFS that was
        // named; the name is handed down as the same pointer, because URI parameters follow it in memory.
        unsafe {
            let lower_file = match &mut memory {
                Some(memory) => memory.as_mut_ptr().cast(),
                None => file::lower_of(file),
            };
            (*lower_file).methods = std::ptr::null();
            let inside = over.map(Over::enter);
            let code = names::within(folder.as_ref(), || {
                open(lower_vfs, name, lower_file, flags, &mut granted)
            });
            drop(inside);
            if !out_flags.is_null() {
                *out_flags = granted;
            }
            if code != ffi::OK {
                file::discard(lower_file);
                return code;
            }
            let presence = own.filter(|_| flags & ffi::OPEN_MAIN_DB != 0).map(|path| {
                let look =
                    || Presence::of(folder.as_deref(), path.file_name(), Lower::new(lower_file));
                names::within(folder.as_ref(), look)
            });
            if let (Some(copy), Some(path)) = (copy, path.as_ref()) {
                if let Err(error) = copy.prove(Lower::new(lower_file)) {
                    file::discard(lower_file);
                    let code = report(path, &error).0;
                    return if is_full(&error) { ffi::FULL } else { code };
                }
            }
            let code = names::within(folder.as_ref(), || {
                let files = (file, lower_file);
                file::open(files, name, path, flags, &mut granted, request, expected)
            });
            if code == ffi::OK {
                file::keep(file, folder, presence, memory);
            }
            if !out_flags.is_null() {
                *out_flags = granted;
            }
            code
        }
    }));
    opened.unwrap_or_else(|_| {
        // SAFETY: no methods: SQLite will not call into the half-open file.
        unsafe { (*file).methods = std::ptr::null() };
        ffi::ERROR
    })
}

/// The VFS that was named for a file. `None` is the platform's, to which every file without a name goes: what is written there is sealed
/// under a key that only this process has.
///
/// # Safety
/// `name` and `flags` are SQLite's.
unsafe fn over_of(
    vfs: *mut Vfs,
    name: *const c_char,
    flags: c_int,
) -> Result<Option<&'static Over>, c_int> {
    if name.is_null() {
        return Ok(None);
    }
    if flags & ffi::OPEN_MAIN_DB != 0 {
        // SAFETY: a main database's name is one of SQLite's filename objects.
        return unsafe { named::of_main(vfs, name) };
    }
    // SAFETY: SQLite's names are terminated.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    let path = Path::new(OsStr::from_bytes(bytes));
    if flags & (ffi::OPEN_MAIN_JOURNAL | ffi::OPEN_WAL) != 0 {
        // SAFETY: as above.
        return match unsafe { named::of_beside(vfs, name)? } {
            Beside::In(over) => Ok(over),
            // A VFS above has made the name its own.
            Beside::Perhaps(over) if !registry::is_of_platform(path) => Ok(Some(over)),
            Beside::Perhaps(_) => {
                let why = "databases of two VFSes are open to which it may belong: open one of them in another process";
                note(ffi::CANTOPEN, path, why);
                Err(ffi::CANTOPEN)
            }
        };
    }
    let over = named::below(vfs, path)?;
    // The platform's names are absolute: this one is of a database elsewhere.
    let is_elsewhere =
        || over.is_some() || !bytes.starts_with(b"/") || registry::is_named_elsewhere(bytes);
    if flags & ffi::OPEN_SUPER_JOURNAL != 0 && is_super_journal(bytes) && is_elsewhere() {
        note(
            ffi::CANTOPEN,
            path,
            "a transaction over several databases needs a super-journal, which only a file of this machine can be: write to one \
             of them at a time, or use the journal mode WAL",
        );
        return Err(ffi::CANTOPEN);
    }
    Ok(over)
}

/// The folder that a file lies in, for SQLite's calls with its name. A database's is walked to; its side files lie in that
/// of an open database. An error if the way leads over another user's link, or a link has taken the name since SQLite
/// resolved it.
fn folder_of(path: &Path, flags: c_int) -> Result<Option<Arc<Folder>>, c_int> {
    if flags & ffi::OPEN_MAIN_DB == 0 {
        return Ok(names::of(path));
    }
    let way = match Way::of(path) {
        Ok(way) => way,
        Err(error) if is_refusal(&error) => {
            note(ffi::CANTOPEN, path, &error.to_string());
            return Err(ffi::CANTOPEN);
        }
        // SQLite finds the same, and says so in its own words.
        Err(_) => return Ok(None),
    };
    if path.is_absolute() && way.path() != path {
        note(
            ffi::CANTOPEN,
            path,
            "a symbolic link has taken its name, or that of a folder above it",
        );
        return Err(ffi::CANTOPEN);
    }
    Ok(names::enter(way).ok())
}

/// Whether a way was refused, and not merely not there.
fn is_refusal(error: &std::io::Error) -> bool {
    error.raw_os_error().is_none()
}

/// What is expected at the path of a main database. An error if there is no file and one is expected, unless a new sealed
/// database is to be made.
fn expectation(
    path: &Path,
    is_there: bool,
    flags: c_int,
    request: &Request,
) -> Result<Expectation, c_int> {
    let found =
        Expectation::of_connection(path, request).map_err(|error| report(path, &error).0)?;
    let makes = flags & ffi::OPEN_CREATE != 0;
    if is_there {
        return Ok(found);
    }
    let is_sealed = request.begets() || newcomer::is_any() && !request.plain_copies;
    let allowed = match makes && is_sealed {
        true => found.refuse_birth(Lesser::Missing),
        false => found.refuse_lesser(Lesser::Missing),
    };
    match allowed {
        Ok(()) => Ok(found),
        Err(error) => {
            let code = report(path, &error).0;
            // A program that only looks whether there is a database gets SQLite's own answer.
            Err(if makes { code } else { ffi::CANTOPEN })
        }
    }
}

fn is_full(error: &pellucid::Error) -> bool {
    matches!(error, pellucid::Error::Io { source, .. }
        if source.kind() == std::io::ErrorKind::StorageFull)
}

/// The flags of a journal without a name, which is sealed as a temporary file is.
const NAMELESS: c_int = ffi::OPEN_READWRITE
    | ffi::OPEN_CREATE
    | ffi::OPEN_EXCLUSIVE
    | ffi::OPEN_DELETEONCLOSE
    | ffi::OPEN_TEMP_JOURNAL;

/// Looks up whether a name belongs to a copy that a conversion in this process is filling.
///
/// # Safety
/// `name` is null or terminated.
unsafe fn lent(name: *const c_char) -> Option<copy::Name> {
    // SAFETY: by contract.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }).and_then(copy::lookup)
}

/// Runs a call with a name in the folder of the open database beside which it lies.
fn beside(name: *const c_char, call: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: SQLite's names are terminated.
    let find = || unsafe { CStr::from_ptr(name) }.to_bytes();
    let found = catch_unwind(|| names::of(Path::new(OsStr::from_bytes(find()))));
    found.map_or(ffi::IOERR, |folder| names::within(folder.as_ref(), call))
}

unsafe extern "C" fn access(
    vfs: *mut Vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite's names are terminated.
    let Ok(found) = catch_unwind(|| unsafe { named::of_beside(vfs, name) }) else {
        return ffi::IOERR;
    };
    let perhaps = match found {
        Ok(Beside::In(Some(over))) => {
            let (lower_vfs, lower) = over.lower();
            let Some(call) = lower.access else { return ffi::IOERR };
            let _inside = over.enter();
            // SAFETY: SQLite's arguments go through unchanged.
            return unsafe { call(lower_vfs, name, flags, out) };
        }
        Ok(Beside::In(None)) => None,
        // It is there if either has it: a journal that is not seen is a transaction half done.
        Ok(Beside::Perhaps(over)) => Some(over),
        Err(code) => return code,
    };
    // SAFETY: SQLite's name, and its `out` is valid for a write.
    unsafe {
        if matches!(lent(name), Some(copy::Name::Log)) {
            *out = 0;
            return ffi::OK;
        }
    }
    let (lower_vfs, lower) = below(vfs);
    let Some(call) = lower.access else { return ffi::IOERR };
    // SAFETY: SQLite's arguments go through unchanged.
    let code = beside(name, || unsafe { call(lower_vfs, name, flags, out) });
    // SAFETY: `out` is valid, and the name terminated.
    unsafe {
        if code == ffi::OK && *out == 0 && flags == ffi::ACCESS_EXISTS {
            *out = perhaps.map_or(0, |over| over.has(name).into());
        }
    }
    code
}

unsafe extern "C" fn full_pathname(
    vfs: *mut Vfs,
    name: *const c_char,
    bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite's name, with its mark before it.
    let over = catch_unwind(|| unsafe { named::of_resolved(vfs, name) });
    match over.unwrap_or(Err(ffi::CANTOPEN)) {
        Ok(None) => {}
        Ok(Some(over)) => {
            let (lower_vfs, lower) = over.lower();
            let Some(call) = lower.full_pathname else { return ffi::CANTOPEN };
            let _inside = over.enter();
            // A VFS may write as many bytes as its longest name has, and no more.
            let bytes = match lower.max_pathname {
                most if most > 0 => bytes.min(most.saturating_add(1)),
                _ => bytes,
            };
            // SAFETY: SQLite's arguments go through, and `out` has room for more.
            return unsafe { call(lower_vfs, name, bytes, out) };
        }
        Err(code) => return code,
    }
    // SAFETY: SQLite's name, and `out` has room for `bytes` bytes.
    unsafe {
        // The name is absolute already, and a symbolic link that has taken it must not be followed.
        if matches!(lent(name), Some(copy::Name::Copy(_))) {
            let whole = CStr::from_ptr(name).to_bytes_with_nul();
            if whole.len() > bytes.max(0) as usize {
                return ffi::CANTOPEN;
            }
            std::ptr::copy_nonoverlapping(whole.as_ptr().cast(), out, whole.len());
            return ffi::OK;
        }
    }
    let (lower_vfs, lower) = below(vfs);
    let Some(call) = lower.full_pathname else { return ffi::CANTOPEN };
    // SAFETY: SQLite's arguments go through unchanged. Both names are terminated, `out` if the call succeeded: SQLite takes
    // its other results, of links that were followed, for successes too.
    unsafe {
        let code = call(lower_vfs, name, bytes, out);
        if code & 0xff == ffi::OK {
            let path =
                |name: *const c_char| Path::new(OsStr::from_bytes(CStr::from_ptr(name).to_bytes()));
            let found = catch_unwind(AssertUnwindSafe(|| {
                let code = walked(path(name), bytes, out);
                note_resolved(path(name), path(out));
                code
            }));
            if !matches!(found, Ok(ffi::OK)) {
                return ffi::CANTOPEN;
            }
        }
        code
    }
}

/// Makes the whole path of a database that which the shim has walked, and not that which SQLite has found by names alone.
///
/// # Safety
/// `out` has room for `bytes` bytes.
unsafe fn walked(name: &Path, bytes: c_int, out: *mut c_char) -> c_int {
    let way = match Way::of(name) {
        Ok(way) => way,
        Err(error) if is_refusal(&error) => {
            note(ffi::CANTOPEN, name, &error.to_string());
            return ffi::CANTOPEN;
        }
        Err(_) => return ffi::OK,
    };
    let whole = way.path().as_os_str().as_bytes();
    if whole.len() >= bytes.max(0) as usize {
        return ffi::CANTOPEN;
    }
    // SAFETY: by contract.
    unsafe {
        std::ptr::copy_nonoverlapping(whole.as_ptr().cast(), out, whole.len());
        *out.add(whole.len()) = 0;
    }
    ffi::OK
}

/// Functions that only hand their call to the platform's VFS, of shims over named ones, too: that has clock, libraries and randomness,
/// and is never taken back.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $missing:expr;)*) => {
        $(unsafe extern "C" fn $name(_: *mut Vfs, $($argument: $type),*) -> $result {
            let call = lower_vfs().and_then(|platform| {
                // SAFETY: a registered VFS of SQLite's own, or the program's default one.
                unsafe { (*platform).$name }.map(|call| (platform, call))
            });
            match call {
                // SAFETY: as above; SQLite's arguments go through unchanged.
                Some((platform, call)) => unsafe { call(platform, $($argument),*) },
                None => $missing,
            }
        })*
    };
}

/// Deletes a file by the lower VFS, but never the log of a later version: SQLite deletes a log
/// beside a database without pages, without reading it.
unsafe extern "C" fn delete(vfs: *mut Vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: SQLite's names are terminated.
    let Ok(found) = catch_unwind(|| unsafe { named::of_beside(vfs, name) }) else {
        return ffi::IOERR;
    };
    match found {
        Ok(Beside::In(Some(over))) => {
            let refused = catch_unwind(AssertUnwindSafe(|| {
                // SAFETY: SQLite's name.
                unsafe { named::refuse_newer_log(over, name) }.map_err(|code| code.0)
            }));
            match refused {
                Ok(Ok(())) => {}
                Ok(Err(code)) => return code,
                Err(_) => return ffi::IOERR,
            }
            let (lower_vfs, lower) = over.lower();
            let Some(call) = lower.delete else { return ffi::IOERR };
            let _inside = over.enter();
            // SAFETY: SQLite's arguments go through unchanged.
            return unsafe { call(lower_vfs, name, sync) };
        }
        // By its address alone: what is removed by mistake is gone.
        Ok(Beside::In(None) | Beside::Perhaps(_)) => {}
        Err(code) => return code,
    }
    // SAFETY: SQLite's name. What lies under the name of a log that a copy never had is somebody else's.
    if matches!(unsafe { lent(name) }, Some(copy::Name::Log)) {
        return ffi::OK;
    }
    let (lower_vfs, lower) = below(vfs);
    let refused = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: SQLite's names are terminated.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let path = Path::new(OsStr::from_bytes(name));
        if !name.ends_with(b"-wal") {
            return None;
        }
        crate::wal_file::refuse_newer_at(path).err().map(|error| report(path, &error).0)
    }));
    match (refused, lower.delete) {
        (Ok(None), Some(call)) => {
            // SAFETY: SQLite's arguments go through unchanged.
            beside(name, || unsafe { call(lower_vfs, name, sync) })
        }
        (Ok(Some(code)), _) => code,
        (Err(_), _) | (_, None) => ffi::IOERR,
    }
}

forward! {
    dl_open(name: *const c_char) -> *mut c_void = std::ptr::null_mut();
    dl_error(bytes: c_int, out: *mut c_char) -> () = ();
    dl_sym(library: *mut c_void, symbol: *const c_char) -> Opaque = None;
    dl_close(library: *mut c_void) -> () = ();
    randomness(bytes: c_int, out: *mut c_char) -> c_int = 0;
    sleep(microseconds: c_int) -> c_int = 0;
    current_time(out: *mut f64) -> c_int = ffi::ERROR;
    get_last_error(bytes: c_int, out: *mut c_char) -> c_int = 0;
    current_time_int64(out: *mut i64) -> c_int = ffi::ERROR;
    set_system_call(name: *const c_char, call: Opaque) -> c_int = ffi::NOTFOUND;
    get_system_call(name: *const c_char) -> Opaque = None;
    next_system_call(name: *const c_char) -> *const c_char = std::ptr::null();
}
