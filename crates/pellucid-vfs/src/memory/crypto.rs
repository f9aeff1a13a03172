//! The crypto library's allocations: key schedules, big numbers, private keys.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use super::Guarded;

/// Before each block lies its size: C gives a block back without one. As wide as the alignment C expects.
const PREFIX: usize = 16;

/// Has AWS-LC allocate through [`Guarded`]. It takes this once; a second library in the process has its own.
pub(super) fn allocate_here() {
    // SAFETY: the three functions keep C's contract of malloc, realloc and free.
    unsafe { aws_lc_sys::CRYPTO_set_mem_functions(Some(allocate), Some(resize), Some(release)) };
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(PREFIX)?, PREFIX).ok()
}

unsafe extern "C" fn allocate(size: usize, _: *const c_char, _: c_int) -> *mut c_void {
    let Some(layout) = layout(size) else { return null_mut() };
    // SAFETY: the layout is not empty: the prefix is in it.
    let start = unsafe { Guarded.alloc(layout) };
    if start.is_null() {
        return null_mut();
    }
    // SAFETY: the block has room for the prefix and is aligned for it.
    unsafe {
        start.cast::<usize>().write(size);
        start.add(PREFIX).cast()
    }
}

unsafe extern "C" fn resize(
    block: *mut c_void,
    size: usize,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    // SAFETY: `block` is null or came from `allocate`; the old and the new block are disjoint.
    unsafe {
        let moved = allocate(size, file, line);
        if !block.is_null() && !moved.is_null() {
            let before = block.cast::<u8>().sub(PREFIX).cast::<usize>().read();
            moved.cast::<u8>().copy_from_nonoverlapping(block.cast(), before.min(size));
            release(block, file, line);
        }
        moved
    }
}

unsafe extern "C" fn release(block: *mut c_void, _: *const c_char, _: c_int) {
    if block.is_null() {
        return;
    }
    // SAFETY: `block` came from `allocate`, which wrote the size before it and made the layout of it.
    unsafe {
        let start = block.cast::<u8>().sub(PREFIX);
        if let Some(layout) = layout(start.cast::<usize>().read()) {
            Guarded.dealloc(start, layout);
        }
    }
}
