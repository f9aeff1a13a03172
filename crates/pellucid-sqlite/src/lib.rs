//! STAND-IN, to be replaced whole at the merge: registers a plain copy of the `unix` VFS as `pellucid`.
//! It only lets the extension and `pellucid run` be built and tested before the shim is here.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

#[repr(C)]
struct Vfs {
    head: [i32; 4],
    next: *mut Vfs,
    name: *const c_char,
    rest: [*mut c_void; 19],
}

static COPY: AtomicPtr<Vfs> = AtomicPtr::new(std::ptr::null_mut());
static REGISTER: AtomicUsize = AtomicUsize::new(0);

type Find = unsafe extern "C" fn(*const c_char) -> *mut Vfs;
type Register = unsafe extern "C" fn(*mut Vfs, c_int) -> c_int;

/// Registers the VFS `pellucid`.
///
/// # Safety
/// `api` is the table SQLite handed to an entry point.
pub unsafe fn register(api: *const c_void, make_default: bool) -> c_int {
    let table = api.cast::<usize>();
    // SAFETY: `sqlite3_api_routines` is a table of function pointers; 141 and 142 are vfs_find and vfs_register.
    let (find, register) = unsafe {
        (
            std::mem::transmute::<usize, Find>(*table.add(141)),
            std::mem::transmute::<usize, Register>(*table.add(142)),
        )
    };
    if COPY.load(Ordering::Acquire).is_null() {
        // SAFETY: `unix` always exists, and its description is constant.
        let unix = unsafe { std::ptr::read(find(c"unix".as_ptr())) };
        let copy = Box::leak(Box::new(Vfs { name: c"pellucid".as_ptr(), ..unix }));
        COPY.store(copy, Ordering::Release);
    }
    REGISTER.store(register as usize, Ordering::Release);
    // SAFETY: the copy is never freed.
    unsafe { register(COPY.load(Ordering::Acquire), c_int::from(make_default)) }
}

/// Puts the VFS back as default; no-op before [`register`].
pub fn make_default() -> c_int {
    let register = REGISTER.load(Ordering::Acquire);
    if register == 0 {
        return 0;
    }
    // SAFETY: `register` stored a `sqlite3_vfs_register`, and the copy is never freed.
    unsafe {
        std::mem::transmute::<usize, Register>(register)(COPY.load(Ordering::Acquire), 1)
    }
}
