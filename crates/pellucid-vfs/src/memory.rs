//! Memory for keys: left out of core dumps, locked where the system allows, wiped when it is given back.
//!
//! A library inside somebody else's program cannot forbid that program's core dumps. So everything the shim allocates,
//! in Rust ([`Guarded`], as the global allocator of the extension and of the program) and in the crypto library
//! ([`guard`]), comes from mappings of its own marked `MADV_DONTDUMP`. Small blocks, where keys live (a key has 32
//! bytes, a key schedule some 600, an RSA-4096 private key 2.4 KiB), are kept apart from page buffers and locked
//! against swapping with `mlock`, within half of `RLIMIT_MEMLOCK`: the other half is the application's own.
//!
//! What remains is said in SECURITY.md: registers at the moment of a crash, and what SQLite caches in its own memory.

mod crypto;
mod heap;
mod slab;

use std::alloc::{GlobalAlloc, Layout};
use std::sync::Once;

use heap::Heap;
pub(crate) use slab::Slab;

/// Blocks up to this size are locked, because keys are among them.
const LOCKED_BYTES: usize = 4096;

static KEYS: Heap = Heap::new(true);
static BUFFERS: Heap = Heap::new(false);

/// The allocator of an artefact that handles keys: `#[global_allocator]` of the extension and of the program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guarded;

/// The heap for blocks of a size; the same for one block's whole life.
#[cfg_attr(pellucid_system_heap, allow(dead_code))]
fn heap(size: usize) -> &'static Heap {
    if size <= LOCKED_BYTES {
        &KEYS
    } else {
        &BUFFERS
    }
}

// A sanitizer sees what is done to the system's heap, not to this one: tests/campaigns/sanitizers builds with
// `--cfg pellucid_system_heap`, and nothing else does. Blocks are wiped all the same.
#[cfg(pellucid_system_heap)]
// SAFETY: the system's allocator, with the caller's own arguments.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        unsafe { std::alloc::System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block has the layout's size and is the caller's no longer.
        unsafe {
            libc::explicit_bzero(block.cast(), layout.size());
            std::alloc::System.dealloc(block, layout);
        }
    }
}

#[cfg(not(pellucid_system_heap))]
// SAFETY: the two heaps hand out disjoint blocks of at least the size and alignment asked for, and a block's size, which
// `Layout` gives back at the end, names the heap it came from.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `GlobalAlloc` promises a size above zero.
        unsafe { heap(layout.size()).allocate(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { heap(layout.size()).allocate_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller gives back what `alloc` handed out, with the same layout.
        unsafe { heap(layout.size()).release(block, layout) }
    }

    // `realloc` is the standard one, by way of the three above: what is moved is wiped where it was.
}

/// Lets the crypto library allocate here too, and keeps the heaps usable in forked children. Called before the first use
/// of either; any number of times.
///
/// Only artefacts with [`Guarded`] as their global allocator call this.
pub fn guard() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crypto::allocate_here();
        // SAFETY: the handlers only lock and unlock; glibc runs them around each fork, on the forking thread.
        unsafe { libc::pthread_atfork(Some(lock), Some(unlock), Some(unlock)) };
    });
}

/// Before a fork: no other thread is inside a heap when the memory is copied.
extern "C" fn lock() {
    KEYS.lock();
    BUFFERS.lock();
}

/// After it, in the parent and in the child.
extern "C" fn unlock() {
    BUFFERS.unlock();
    KEYS.unlock();
}

#[cfg(test)]
mod tests;
