//! The SQLite libraries of this process, and which of them a call was meant for.
//!
//! `RTLD_NEXT` alone is not enough: Python and Perl load their SQLite modules with `RTLD_LOCAL`, where the next
//! library in the global order is none at all. So every loaded object is asked, by its own handle, which
//! `sqlite3_open_v2` it would find. Mostly there is one. Where there are more (Python wheels bring their own
//! copies), the calling object decides, as the dynamic linker would have: handing a connection of one copy to
//! another would be the end of the process.

use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::{Mutex, PoisonError};

/// The function that tells a SQLite library from others.
const PROBE: &CStr = c"sqlite3_open_v2";
/// Frames of the stack that are looked through for the caller; the interposed function is among the first.
const FRAMES_MAX: usize = 16;

/// One loaded SQLite. Held open for good, so the addresses stay valid.
#[derive(Debug)]
pub struct Library {
    handle: *mut c_void,
    /// Where it is loaded; tells two copies apart.
    pub base: usize,
}

// SAFETY: a handle of the dynamic linker may be used by every thread, and is never closed.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// The function `name` as a value of the function pointer type `F`, if the library has it.
    ///
    /// # Safety
    /// `F` is an `extern "C"` function pointer type, and the right one for `name`.
    pub unsafe fn symbol<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the handle is open and `name` is a C string.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        // A library's handle finds the library's own symbols before those of what it depends on, so this is
        // never one of ours; were it ever, calling it would recurse without end.
        if address.is_null() || object_of(address).is_some_and(|found| found.base == own_base()) {
            return None;
        }
        // SAFETY: the caller vouches for the type; both are pointers of one size, checked above.
        Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }
}

/// The library that the current interposed call belongs to.
///
/// # Errors
/// A line for the user: there is none, or there are several and the caller tells nothing about which.
pub fn of_caller() -> Result<&'static Library, &'static str> {
    let all = all();
    match all[..] {
        [] => Err("no SQLite library was found in this process"),
        [only] => Ok(only),
        _ => next_in_global_order()
            .or_else(of_calling_object)
            .and_then(|wanted| all.into_iter().find(|library| library.base == wanted))
            .ok_or(
                "this process has several SQLite libraries, and which one was called is not known",
            ),
    }
}

/// Loads the system's SQLite, for programs whose own calls cannot be interposed.
pub fn load() -> Option<&'static Library> {
    // SAFETY: loading a library by a constant name; a SQLite library has no constructors of its own.
    let handle = unsafe { libc::dlopen(c"libsqlite3.so.0".as_ptr(), libc::RTLD_LAZY) };
    if handle.is_null() {
        return None;
    }
    let base = find_in(handle)?;
    all().into_iter().find(|library| library.base == base)
}

/// What [`all`] remembers between calls.
struct Known {
    /// The dynamic linker's count of objects ever loaded, when it was last asked.
    loads: u64,
    asked: Vec<CString>,
    libraries: Vec<&'static Library>,
}

/// Every SQLite library in the process, in the order of loading.
///
/// The lock is never held while the dynamic linker works: another thread may be inside `dlopen`, with the linker's
/// lock, in a constructor that opens a database.
pub fn all() -> Vec<&'static Library> {
    static KNOWN: Mutex<Known> =
        Mutex::new(Known { loads: 0, asked: Vec::new(), libraries: Vec::new() });
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);

    let loads = known().loads;
    let objects = loaded_objects(loads);
    if objects.loads == loads {
        return known().libraries.clone();
    }
    let asked: HashSet<CString> = known().asked.iter().cloned().collect();
    let new: Vec<_> = objects.names.into_iter().filter(|name| !asked.contains(name)).collect();
    let found: Vec<_> = new.iter().filter_map(|name| library_of(name)).collect();

    let mut known = known();
    for library in found {
        if known.libraries.iter().all(|other| other.base != library.base) {
            known.libraries.push(Box::leak(Box::new(library)));
        }
    }
    known.asked.extend(new);
    known.loads = known.loads.max(objects.loads);
    known.libraries.clone()
}

/// The SQLite library that the loaded object `name` would call, held open.
fn library_of(name: &CStr) -> Option<Library> {
    let asked = held(name)?;
    let found = find_in(asked).and_then(|base| {
        // SAFETY: the handle is open; the address found lies in a loaded object.
        let object = object_of(unsafe { libc::dlsym(asked, PROBE.as_ptr()) })?;
        let handle = held(&object.name)?;
        Some(Library { handle, base })
    });
    // SAFETY: closes what `held` opened; a library found has a hold of its own.
    unsafe { libc::dlclose(asked) };
    found
}

/// Base address of the object, not ours, whose `sqlite3_open_v2` is found through `handle`.
fn find_in(handle: *mut c_void) -> Option<usize> {
    // SAFETY: `handle` is an open handle or RTLD_NEXT.
    let address = unsafe { libc::dlsym(handle, PROBE.as_ptr()) };
    if address.is_null() {
        return None;
    }
    object_of(address).map(|object| object.base).filter(|base| *base != own_base())
}

/// What the dynamic linker would have found, had this library not been in front.
fn next_in_global_order() -> Option<usize> {
    find_in(libc::RTLD_NEXT)
}

/// The library that the object which called us depends on.
fn of_calling_object() -> Option<usize> {
    extern "C" {
        /// glibc's `backtrace(3)`.
        fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
    }
    let mut frames = [std::ptr::null_mut(); FRAMES_MAX];
    // SAFETY: the buffer takes as many frames as are asked for.
    let count = unsafe { backtrace(frames.as_mut_ptr(), FRAMES_MAX as c_int) };
    let caller = frames
        .iter()
        .take(usize::try_from(count).unwrap_or(0))
        .filter_map(|address| object_of(*address))
        .find(|object| object.base != own_base())?;
    let handle = held(&caller.name)?;
    let base = find_in(handle);
    // SAFETY: closes what `held` opened.
    unsafe { libc::dlclose(handle) };
    base
}

/// A loaded object: its name as the dynamic linker has it, and its base address.
struct Object {
    name: CString,
    base: usize,
}

fn object_of(address: *mut c_void) -> Option<Object> {
    // SAFETY: plain data, filled in by `dladdr` where it answers other than 0.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for.
    if unsafe { libc::dladdr(address, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` gave a C string that lives as long as the object is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }.to_owned();
    Some(Object { name, base: info.dli_fbase as usize })
}

fn own_base() -> usize {
    object_of(own_base as *mut c_void).map_or(0, |object| object.base)
}

/// A handle of an object that is loaded already; never loads one.
fn held(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: RTLD_NOLOAD runs no code of the object.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    (!handle.is_null()).then_some(handle)
}

/// Names of the loaded objects; none if nothing was loaded since the count `loads`.
struct Objects {
    known_loads: u64,
    loads: u64,
    names: Vec<CString>,
}

fn loaded_objects(known_loads: u64) -> Objects {
    let mut objects = Objects { known_loads, loads: known_loads, names: Vec::new() };
    // SAFETY: the callback gets back the pointer given here, and only within this call.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut objects).cast()) };
    objects
}

/// Only collects: the dynamic linker holds its lock, so nothing may be opened here.
unsafe extern "C" fn collect(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the `Objects` of the caller, `info` the linker's for the time of this call.
    let (objects, info) = unsafe { (&mut *data.cast::<Objects>(), &*info) };
    objects.loads = info.dlpi_adds;
    if objects.loads == objects.known_loads {
        return 1;
    }
    // The program itself has an empty name; its own SQLite would come before ours and never gets here.
    if !info.dlpi_name.is_null() {
        // SAFETY: the linker's names are C strings.
        let name = unsafe { CStr::from_ptr(info.dlpi_name.cast::<c_char>()) };
        if !name.is_empty() {
            objects.names.push(name.to_owned());
        }
    }
    0
}
