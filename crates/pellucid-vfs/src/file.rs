//! The file object that SQLite calls: each function finds its state, calls a safe method inside a
//! panic guard and returns the code.
//!
//! Memory: [`ShimFile`] comes first, the lower VFS's file right behind it. Locks, shared memory and
//! the device's promises are the lower VFS's; the shim only ever removes promises.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use pellucid_host::api::Api;
use pellucid_host::code::{note, Code, Outcome};
use pellucid_host::ffi;
use pellucid_host::ffi::{File, IoMethods};

use crate::attached::Attached;
use crate::files::{Files, Journal, Log, Through};
use crate::journal_file::JournalFile;
use crate::lower::{Lower, ReadEnd};
use crate::main_file::MainFile;
use crate::names::{self, Folder};
use crate::newcomer;
use crate::pins::Expectation;
use crate::registry;
use crate::registry::Partner;
use crate::seal_request::Request;
use crate::shared_memory::Presence;
use crate::sqlite_file::SqliteFile;
use crate::temp_file::TempStore;
use crate::wal_file::WalFile;
use crate::wal_index::REGION_BYTES;

/// The file control that asks a file object for the shim's own one, through other shims that may
/// lie above it.
const FCNTL_SELF: c_int = 0x5045_4c01;

/// Bytes of the shim's part of a file object; a multiple of every alignment.
pub const HEAD_BYTES: usize = std::mem::size_of::<ShimFile>().next_multiple_of(16);

#[repr(C)]
struct ShimFile {
    base: File,
    state: *mut State,
}

struct State {
    kind: Kind,
    lower: Lower,
    /// Where the names of the file and of those beside it are looked for.
    folder: Option<Arc<Folder>>,
    /// Of a main database: dropped when the lower file, and with it the connection's locks, is closed.
    presence: Option<Presence>,
    /// The lower file's object, where it does not lie behind the shim's.
    memory: Option<Vec<u128>>,
}

enum Kind {
    Through(Through),
    Main(Box<MainFile>),
    Log(Log),
    Journal(Journal),
    Temp(Box<TempStore<Lower>>),
}

impl Kind {
    fn file(&mut self) -> &mut dyn SqliteFile {
        match self {
            Kind::Through(file) => file,
            Kind::Main(file) => &mut **file,
            Kind::Log(file) => file,
            Kind::Journal(file) => file,
            Kind::Temp(file) => &mut **file,
        }
    }
}

/// Returns the lower file, which lies behind the shim's head.
///
/// # Safety
/// `file` has the memory the shim's VFS asks for.
pub unsafe fn lower_of(file: *mut File) -> *mut File {
    // SAFETY: by contract.
    unsafe { file.cast::<u8>().add(HEAD_BYTES).cast() }
}

/// Closes a lower file whose open failed but which has methods nevertheless.
///
/// # Safety
/// `lower` was passed to the lower VFS's open.
pub unsafe fn discard(lower: *mut File) {
    // SAFETY: methods mean that close is to be called (sqlite3_vfs.xOpen).
    unsafe {
        if let Some(methods) = (*lower).methods.as_ref() {
            if let Some(close) = methods.close {
                close(lower);
            }
        }
    }
}

/// Decides what kind an opened file is and gives it its methods. Afterwards `granted` says what the
/// connection may do.
///
/// # Safety
/// `file` has the shim's memory; the lower file is open and stays where it is; `name` is SQLite's.
pub unsafe fn open(
    (file, lower): (*mut File, *mut File),
    name: *const c_char,
    path: Option<PathBuf>,
    flags: c_int,
    granted: &mut c_int,
    request: Request,
    expected: Expectation,
) -> c_int {
    // SAFETY: by contract; the handle lives in `State`, which close drops.
    let lower = unsafe { Lower::new(lower) };
    let kind = match path {
        None => TempStore::new(lower)
            .map(|store| Kind::Temp(Box::new(store)))
            .map_err(|_| Code(ffi::NOMEM)),
        Some(path) if flags & ffi::OPEN_MAIN_DB != 0 => {
            let read_only = *granted & ffi::OPEN_READONLY != 0;
            // SAFETY: by contract.
            let attached = unsafe { Attached::new(name) };
            MainFile::open(path, attached, lower, read_only, request, expected).map(|main| {
                if !read_only && main.files().container.check_writable().is_err() {
                    *granted =
                        *granted & !(ffi::OPEN_READWRITE | ffi::OPEN_CREATE) | ffi::OPEN_READONLY;
                }
                registry::enter(name, main.files());
                Kind::Main(Box::new(main))
            })
        }
        Some(path) if flags & ffi::OPEN_WAL != 0 => {
            // SAFETY: SQLite's name of a WAL.
            unsafe { partner(name, &path) }.map(|files| match files {
                Some(files) if files.container.is_sealing() => {
                    let wal = WalFile::new(files.container.clone(), lower, path);
                    Kind::Log(Log::open(files, wal))
                }
                files => Kind::Through(Through::new(lower, files)),
            })
        }
        Some(path) if flags & ffi::OPEN_MAIN_JOURNAL != 0 => {
            // SAFETY: SQLite's name of a main journal.
            unsafe { partner(name, &path) }.map(|files| match files {
                Some(files) if files.container.is_sealing() => {
                    let found = (flags & ffi::OPEN_CREATE == 0).then_some(path);
                    let journal = JournalFile::new(files.container.clone(), lower, found);
                    Kind::Journal(Journal::open(files, journal))
                }
                _ => Kind::Through(Through::new(lower, None)),
            })
        }
        // A temporary file with a name has content too.
        Some(_) if flags & TEMPORARY != 0 => TempStore::new(lower)
            .map(|store| Kind::Temp(Box::new(store)))
            .map_err(|_| Code(ffi::NOMEM)),
        Some(_) => Ok(Kind::Through(Through::new(lower, None))),
    };
    let kind = match kind {
        Ok(kind) => kind,
        Err(Code(code)) => {
            lower.close();
            return code;
        }
    };
    let version = lower.version().clamp(1, 3);
    let state = State { kind, lower, folder: None, presence: None, memory: None };
    // SAFETY: `file` has room for a `ShimFile`.
    unsafe {
        (*file.cast::<ShimFile>()).state = Box::into_raw(Box::new(state));
        (*file).methods = &METHODS[version as usize - 1];
    }
    ffi::OK
}

/// Keeps the folder in which the names of an opened file are looked for, and counts its connection. Keeps `memory`, in which the lower
/// file's object lies, as long as that is open.
///
/// # Safety
/// `file` was opened by [`open`].
pub unsafe fn keep(
    file: *mut File,
    folder: Option<Arc<Folder>>,
    presence: Option<Presence>,
    memory: Option<Vec<u128>>,
) {
    // SAFETY: by contract.
    let state = unsafe { &mut *(*file.cast::<ShimFile>()).state };
    (state.folder, state.presence, state.memory) = (folder, presence, memory);
}

const TEMPORARY: c_int =
    ffi::OPEN_TEMP_DB | ffi::OPEN_TRANSIENT_DB | ffi::OPEN_TEMP_JOURNAL | ffi::OPEN_SUBJOURNAL;

/// The lower file and the files of an open main database. `None` unless it is sealed.
///
/// # Safety
/// `file` is the file object of an open connection, and is not closed while the handle is used.
pub unsafe fn lower_of_open(file: *mut File) -> Option<(Lower, Rc<Files>)> {
    // SAFETY: by contract.
    let state = unsafe { state_of_open(file) }?;
    match &state.kind {
        Kind::Main(main) if main.files().container.is_born() => {
            Some((state.lower, main.files().clone()))
        }
        _ => None,
    }
}

/// The lower file of an open main database of the shim, sealed or plain.
///
/// # Safety
/// As [`lower_of_open`].
pub unsafe fn lower_of_main(file: *mut File) -> Option<Lower> {
    // SAFETY: by contract.
    let state = unsafe { state_of_open(file) }?;
    matches!(state.kind, Kind::Main(_)).then_some(state.lower)
}

/// The lower file and the files of an open main database of the shim, sealed or plain.
///
/// # Safety
/// As [`lower_of_open`].
pub unsafe fn files_of_main(file: *mut File) -> Option<(Lower, Rc<Files>)> {
    // SAFETY: by contract.
    let state = unsafe { state_of_open(file) }?;
    match &state.kind {
        Kind::Main(main) => Some((state.lower, main.files().clone())),
        _ => None,
    }
}

/// # Safety
/// As [`lower_of_open`].
unsafe fn state_of_open<'a>(file: *mut File) -> Option<&'a State> {
    let mut found: *mut File = std::ptr::null_mut();
    // SAFETY: by contract; the control is answered by the shim alone and writes one pointer.
    unsafe {
        let control = file.as_ref()?.methods.as_ref()?.file_control?;
        if control(file, FCNTL_SELF, std::ptr::addr_of_mut!(found).cast()) != ffi::OK {
            return None;
        }
        (!found.is_null()).then(|| &*(*found.cast::<ShimFile>()).state)
    }
}

/// Finds the files of the database that a journal or WAL belongs to. `None` if that database is not
/// of the shim.
///
/// # Safety
/// `name` is the filename object SQLite opens a main journal or WAL with.
unsafe fn partner(name: *const c_char, path: &Path) -> Outcome<Option<Rc<Files>>> {
    let api = Api::get().ok_or(Code(ffi::CANTOPEN))?;
    // SAFETY: by contract.
    let database = unsafe { api.filename_database()(name) };
    match registry::find(database, path) {
        Partner::Found(files) => Ok(Some(files)),
        Partner::Unknown => Ok(None),
        Partner::Ambiguous => {
            note(ffi::CANTOPEN, path, "it cannot be told which connection this belongs to");
            Err(Code(ffi::CANTOPEN))
        }
    }
}

/// Finds the state behind a file object and runs `call` on it. A panic becomes `SQLITE_IOERR`.
///
/// # Safety
/// `file` was opened by [`open`] and is not closed; SQLite makes one call at a time on it.
unsafe fn with(file: *mut File, call: impl FnOnce(&mut State) -> c_int) -> c_int {
    // SAFETY: by contract the state is alive and not aliased.
    let state = unsafe { &mut *(*file.cast::<ShimFile>()).state };
    catch_unwind(AssertUnwindSafe(|| call(state))).unwrap_or(ffi::IOERR)
}

/// Like [`with`], for calls in which SQLite uses names.
///
/// # Safety
/// As [`with`].
unsafe fn with_names(file: *mut File, call: impl FnOnce(&mut State) -> c_int) -> c_int {
    // SAFETY: by contract.
    unsafe {
        with(file, |state| {
            let folder = state.folder.clone();
            names::within(folder.as_ref(), || call(state))
        })
    }
}

fn code(outcome: Outcome<()>) -> c_int {
    match outcome {
        Ok(()) => ffi::OK,
        Err(Code(code)) => code,
    }
}

static METHODS: [IoMethods; 3] = [methods(1), methods(2), methods(3)];

const fn methods(version: c_int) -> IoMethods {
    IoMethods {
        version,
        close: Some(close),
        read: Some(read),
        write: Some(write),
        truncate: Some(truncate),
        sync: Some(sync),
        file_size: Some(file_size),
        lock: Some(lock),
        unlock: Some(unlock),
        check_reserved_lock: Some(check_reserved_lock),
        file_control: Some(file_control),
        sector_size: Some(sector_size),
        device_characteristics: Some(device_characteristics),
        shm_map: Some(shm_map),
        shm_lock: Some(shm_lock),
        shm_barrier: Some(shm_barrier),
        shm_unmap: Some(shm_unmap),
        fetch: Some(fetch),
        unfetch: Some(unfetch),
    }
}

unsafe extern "C" fn close(file: *mut File) -> c_int {
    // SAFETY: SQLite closes an open file once; the state was boxed by `open`.
    let state = unsafe { Box::from_raw((*file.cast::<ShimFile>()).state) };
    // SAFETY: as above; without methods SQLite calls nothing more.
    unsafe { (*file).methods = std::ptr::null() };
    let mut state = state;
    let (lower, folder, presence) = (state.lower, state.folder.clone(), state.presence.take());
    let memory = state.memory.take();
    let closed = catch_unwind(AssertUnwindSafe(|| {
        let mut state = state;
        names::within(state.folder.clone().as_ref(), || state.close())
    }));
    let flushed = closed.unwrap_or(ffi::IOERR);
    let code = names::within(folder.as_ref(), || lower.close());
    drop((presence, memory));
    match code {
        ffi::OK => flushed,
        code => code,
    }
}

impl State {
    fn close(&mut self) -> c_int {
        if let Kind::Main(main) = &mut self.kind {
            let attached = *main.attached();
            if let Some(other) = attached.detached_from() {
                newcomer::keep_detached(main.files().container.address(), other);
            }
            registry::leave(attached.name(), main.files());
        }
        code(self.kind.file().close())
    }
}

unsafe extern "C" fn read(file: *mut File, out: *mut c_void, bytes: c_int, offset: i64) -> c_int {
    let (Ok(length), Ok(offset)) = (usize::try_from(bytes), u64::try_from(offset)) else {
        return ffi::IOERR_READ;
    };
    // SAFETY: SQLite gives `bytes` of writable memory; the file is open.
    unsafe {
        let buffer = std::slice::from_raw_parts_mut(out.cast::<u8>(), length);
        with(file, |state| match state.kind.file().read(buffer, offset) {
            Ok(ReadEnd::Full) => ffi::OK,
            Ok(ReadEnd::Short) => ffi::IOERR_SHORT_READ,
            Err(Code(code)) => code,
        })
    }
}

unsafe extern "C" fn write(
    file: *mut File,
    data: *const c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    let (Ok(length), Ok(offset)) = (usize::try_from(bytes), u64::try_from(offset)) else {
        return ffi::IOERR_WRITE;
    };
    // SAFETY: SQLite gives `bytes` of readable memory; the file is open.
    unsafe {
        let data = std::slice::from_raw_parts(data.cast::<u8>(), length);
        with(file, |state| code(state.kind.file().write(data, offset)))
    }
}

unsafe extern "C" fn truncate(file: *mut File, size: i64) -> c_int {
    let Ok(size) = u64::try_from(size) else { return ffi::IOERR };
    // SAFETY: the file is open.
    unsafe { with(file, |state| code(state.kind.file().truncate(size))) }
}

unsafe extern "C" fn sync(file: *mut File, flags: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe { with_names(file, |state| code(state.kind.file().sync(flags))) }
}

unsafe extern "C" fn file_size(file: *mut File, out: *mut i64) -> c_int {
    // SAFETY: the file is open and `out` is valid for a write.
    unsafe {
        with(file, |state| match state.kind.file().size() {
            Ok(size) => {
                *out = size as i64;
                ffi::OK
            }
            Err(Code(code)) => code,
        })
    }
}

unsafe extern "C" fn lock(file: *mut File, level: c_int) -> c_int {
    let mut empty = None;
    // SAFETY: the file is open.
    let locked = unsafe {
        with(file, |state| match &mut state.kind {
            Kind::Main(main) => match main.lock(level) {
                Ok(needs_reserve) => {
                    empty = needs_reserve.then_some(*main.attached());
                    ffi::OK
                }
                Err(Code(code)) => {
                    // A VACUUM that finds the database busy fixes its page size nevertheless, and
                    // after that an empty database could no longer be given its reserved bytes.
                    let first = level == ffi::LOCK_SHARED && main.may_be_sealed();
                    empty = first.then_some(*main.attached());
                    code
                }
            },
            _ => code(state.lower.lock(level)),
        })
    };
    if let Some(attached) = empty {
        // No borrow of the state is left: SQLite comes back into the shim.
        let _ = catch_unwind(AssertUnwindSafe(|| attached.set_reserve()));
    }
    locked
}

unsafe extern "C" fn unlock(file: *mut File, level: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe {
        with(file, |state| match &mut state.kind {
            Kind::Main(main) => code(main.unlock(level)),
            _ => code(state.lower.unlock(level)),
        })
    }
}

unsafe extern "C" fn check_reserved_lock(file: *mut File, out: *mut c_int) -> c_int {
    // SAFETY: the file is open and `out` is valid for a write.
    unsafe { with(file, |state| state.lower.check_reserved_lock(&mut *out)) }
}

unsafe extern "C" fn file_control(file: *mut File, op: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the file is open; each arm uses `argument` as its operation defines it.
    unsafe {
        with_names(file, |state| {
            if op == FCNTL_SELF {
                *argument.cast::<*mut File>() = file;
                return ffi::OK;
            }
            state.control(op, argument)
        })
    }
}

impl State {
    /// # Safety
    /// `argument` is what `op` requires.
    unsafe fn control(&mut self, op: c_int, argument: *mut c_void) -> c_int {
        if let Kind::Main(main) = &mut self.kind {
            match op {
                // SAFETY: by contract.
                ffi::FCNTL_PDB => unsafe { main.attached().set(argument.cast()) },
                ffi::FCNTL_SYNC | ffi::FCNTL_COMMIT_PHASETWO => {
                    if let Err(Code(code)) = main.settle() {
                        return code;
                    }
                }
                ffi::FCNTL_RESET_CACHE => main.forget(),
                ffi::FCNTL_PERSIST_WAL => {
                    // SAFETY: by contract; the argument of this operation is an `int *`.
                    return unsafe { keeps_log(main, self.lower, argument.cast()) };
                }
                // SAFETY: by contract; the argument of this operation is a `char **`.
                ffi::FCNTL_PRAGMA => match unsafe { pragma(main, argument.cast()) } {
                    ffi::NOTFOUND => {}
                    code => return code,
                },
                ffi::FCNTL_CKPT_START => main.begin_checkpoint(),
                ffi::FCNTL_CKPT_DONE => main.wrote_checkpoint(),
                // SQLite's sizes lack the header region, and a hint saves too little to correct
                // them.
                ffi::FCNTL_SIZE_HINT | ffi::FCNTL_CHUNK_SIZE if main.is_sealing() => {
                    return ffi::OK
                }
                ffi::FCNTL_BEGIN_ATOMIC_WRITE if main.is_sealing() => return ffi::NOTFOUND,
                _ => {}
            }
        }
        let through = match &self.kind {
            Kind::Through(_) => true,
            Kind::Main(main) => !main.is_sealing(),
            _ => false,
        };
        match op {
            // SQLite would read the sealed bytes through a mapping of the lower file.
            ffi::FCNTL_MMAP_SIZE if !through => {
                // SAFETY: the argument of this operation is an `sqlite3_int64 *`.
                unsafe { *argument.cast::<i64>() = 0 };
                ffi::OK
            }
            ffi::FCNTL_SIZE_HINT | ffi::FCNTL_CHUNK_SIZE if !through => ffi::OK,
            ffi::FCNTL_VFSNAME => {
                // SAFETY: by contract; the argument is a `char **`.
                unsafe { self.vfs_name(argument.cast()) }
            }
            // SAFETY: by contract.
            _ => unsafe { self.lower.file_control(op, argument) },
        }
    }

    /// Puts the shim's name before the lower VFS's: `pellucid/unix`.
    ///
    /// # Safety
    /// `out` is the `char **` of `SQLITE_FCNTL_VFSNAME`.
    unsafe fn vfs_name(&self, out: *mut *mut c_char) -> c_int {
        let Some(api) = Api::get() else { return ffi::NOTFOUND };
        // SAFETY: by contract; names from SQLite are terminated and allocated by it.
        unsafe {
            let code = self.lower.file_control(ffi::FCNTL_VFSNAME, out.cast());
            if code != ffi::OK || (*out).is_null() {
                return code;
            }
            let below = std::ffi::CStr::from_ptr(*out).to_bytes();
            let name = [b"pellucid/", below].concat();
            let copy = api.text(&name);
            if copy.is_null() {
                return ffi::NOMEM;
            }
            api.free()((*out).cast());
            *out = copy;
        }
        ffi::OK
    }
}

/// Answers whether the log stays when the last connection closes. It does where the archive could not have it.
///
/// # Safety
/// `argument` is that of `SQLITE_FCNTL_PERSIST_WAL`.
unsafe fn keeps_log(main: &mut MainFile, lower: Lower, argument: *mut c_int) -> c_int {
    // SAFETY: by contract.
    let is_asked = unsafe { *argument } < 0;
    // SAFETY: by contract.
    let code = unsafe { lower.file_control(ffi::FCNTL_PERSIST_WAL, argument.cast()) };
    // SAFETY: by contract.
    if is_asked && code == ffi::OK && unsafe { *argument } == 0 && !main.may_remove_log() {
        // SAFETY: by contract.
        unsafe { *argument = 1 };
    }
    code
}

/// Looks at a PRAGMA before SQLite carries it out. `SQLITE_NOTFOUND` lets it.
///
/// # Safety
/// `argument` is that of `SQLITE_FCNTL_PRAGMA`: room for an answer, a name, a value or null.
unsafe fn pragma(main: &mut MainFile, argument: *mut *mut c_char) -> c_int {
    let text = |at: usize| {
        // SAFETY: by contract; SQLite's texts are terminated.
        let text = unsafe { *argument.add(at) };
        // SAFETY: as above.
        (!text.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes())
    };
    let (name, value) = (text(1).unwrap_or_default(), text(2));
    if name.eq_ignore_ascii_case(b"wal_checkpoint") {
        main.is_asked_to_checkpoint();
    }
    let leaves_wal = name.eq_ignore_ascii_case(b"journal_mode")
        && value.is_some_and(|value| !value.eq_ignore_ascii_case(b"wal"));
    let container = &main.files().container;
    if !leaves_wal || container.leaves_wal.get() || container.chain().is_none() {
        return ffi::NOTFOUND;
    }
    let said = "its commits go into a chain of log backups (recovery model FULL), which needs the journal mode WAL; set the \
                recovery model to SIMPLE first";
    container.note(ffi::ERROR, said);
    if let Some(api) = Api::get() {
        // SAFETY: SQLite frees the answer by `sqlite3_free`; the room for it is the first of the three.
        unsafe { *argument = api.text(said.as_bytes()) };
    }
    ffi::ERROR
}

unsafe extern "C" fn sector_size(file: *mut File) -> c_int {
    // SAFETY: the file is open.
    let state = unsafe { &*(*file.cast::<ShimFile>()).state };
    let below = state.lower.sector_size();
    match &state.kind {
        Kind::Through(_) => below,
        // A journal's header needs the room, and a larger sector only removes a promise.
        _ => below.max(pellucid::sector::SECTOR_BYTES as c_int),
    }
}

unsafe extern "C" fn device_characteristics(file: *mut File) -> c_int {
    // SAFETY: the file is open.
    let state = unsafe { &*(*file.cast::<ShimFile>()).state };
    let promises = state.lower.device_characteristics();
    match &state.kind {
        Kind::Through(_) => promises,
        _ => promises & !ffi::IOCAP_REMOVED,
    }
}

unsafe extern "C" fn shm_map(
    file: *mut File,
    region: c_int,
    bytes: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: the file is open; `out` is SQLite's. What the lower VFS gives stays mapped until `shm_unmap`.
    unsafe {
        with_names(file, |state| {
            let code = match &mut state.kind {
                Kind::Main(main) => {
                    let place = (state.folder.as_ref(), state.presence.as_ref());
                    main.shm_map(place, region, bytes, extend, out)
                }
                _ => state.lower.shm_map(region, bytes, extend, out),
            };
            let mapped = matches!(code, ffi::OK | ffi::READONLY) && !(*out).is_null();
            let whole = usize::try_from(bytes) == Ok(REGION_BYTES);
            if let (Kind::Main(main), Ok(region), true) =
                (&state.kind, usize::try_from(region), mapped && whole)
            {
                main.files().container.index.map(region, *out);
            }
            code
        })
    }
}

unsafe extern "C" fn shm_lock(file: *mut File, first: c_int, count: c_int, flags: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe {
        with(file, |state| match &mut state.kind {
            Kind::Main(main) => main.shm_lock(first, count, flags),
            _ => state.lower.shm_lock(first, count, flags),
        })
    }
}

unsafe extern "C" fn shm_barrier(file: *mut File) {
    // SAFETY: the file is open.
    unsafe {
        with(file, |state| {
            if let Kind::Main(main) = &mut state.kind {
                main.barrier();
            }
            state.lower.shm_barrier();
            ffi::OK
        });
    }
}

unsafe extern "C" fn shm_unmap(file: *mut File, delete: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe {
        with_names(file, |state| {
            if let Kind::Main(main) = &mut state.kind {
                main.shm_unmap();
            }
            state.lower.shm_unmap(delete)
        })
    }
}

/// Declines to map a page, because SQLite must never see the sealed bytes.
unsafe extern "C" fn fetch(
    _file: *mut File,
    _offset: i64,
    _bytes: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: `out` is valid for a write.
    unsafe { *out = std::ptr::null_mut() };
    ffi::OK
}

unsafe extern "C" fn unfetch(_file: *mut File, _offset: i64, _page: *mut c_void) -> c_int {
    ffi::OK
}
