//! One heap over mappings that no core dump gets.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr::{addr_of_mut, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use dlmalloc::{Allocator, Dlmalloc};

/// A heap with its own mappings.
pub(super) struct Heap {
    /// POSIX's, because a forked child has to unlock what the forking thread locked.
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    blocks: UnsafeCell<Dlmalloc<Mappings>>,
}

// SAFETY: `blocks` is only touched while `mutex` is held.
unsafe impl Sync for Heap {}

impl Heap {
    pub(super) const fn new(locked: bool) -> Self {
        Self {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            blocks: UnsafeCell::new(Dlmalloc::new_with_allocator(Mappings { locked })),
        }
    }

    pub(super) fn lock(&self) {
        // SAFETY: initialised statically and never moved; a normal mutex that is free or another thread's.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
    }

    pub(super) fn unlock(&self) {
        // SAFETY: as above, and this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }

    fn with<T>(&self, work: impl FnOnce(&mut Dlmalloc<Mappings>) -> T) -> T {
        self.lock();
        // SAFETY: the mutex is held; `work` neither panics nor comes back here: it only calls the allocator.
        let result = work(unsafe { &mut *self.blocks.get() });
        self.unlock();
        result
    }

    /// A block; null when there is no memory.
    ///
    /// # Safety
    /// The size is not zero.
    pub(super) unsafe fn allocate(&self, layout: Layout) -> *mut u8 {
        // SAFETY: size and alignment are a layout's.
        self.with(|blocks| unsafe { blocks.malloc(layout.size(), layout.align()) })
    }

    /// A block of zeros; null when there is no memory.
    ///
    /// # Safety
    /// The size is not zero.
    pub(super) unsafe fn allocate_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: size and alignment are a layout's.
        self.with(|blocks| unsafe { blocks.calloc(layout.size(), layout.align()) })
    }

    /// Wipes a block and takes it back.
    ///
    /// # Safety
    /// It came from this heap, with this layout.
    pub(super) unsafe fn release(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block has at least `size` bytes and is the caller's no longer.
        unsafe { libc::explicit_bzero(block.cast(), layout.size()) };
        // SAFETY: as the caller says.
        self.with(|blocks| unsafe { blocks.free(block, layout.size(), layout.align()) });
    }
}

/// Where a heap gets its memory.
struct Mappings {
    locked: bool,
}

// SAFETY: `alloc` gives fresh private mappings of the size it names; the other functions act on those only.
unsafe impl Allocator for Mappings {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping wherever the system likes.
        let start = unsafe { libc::mmap(null_mut(), size, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return (null_mut(), 0, 0);
        }
        // SAFETY: the mapping is whole pages of ours. Where the system refuses, keys are no worse off than in malloc's
        // memory: memory is given all the same.
        unsafe { libc::madvise(start, size, libc::MADV_DONTDUMP) };
        if self.locked && within_allowance(size) {
            // SAFETY: as above.
            unsafe { libc::mlock(start, size) };
        }
        (start.cast(), size, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, start: *mut u8, before: usize, after: usize) -> bool {
        // SAFETY: the tail of a mapping of ours that nobody uses.
        unsafe { libc::munmap(start.add(after).cast(), before - after) == 0 }
    }

    fn free(&self, start: *mut u8, size: usize) -> bool {
        // SAFETY: a mapping of ours that nobody uses.
        unsafe { libc::munmap(start.cast(), size) == 0 }
    }

    fn can_release_part(&self, _: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        // SAFETY: a plain question.
        unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
    }
}

/// Whether so many bytes more may be locked: half of what the process may lock in all.
fn within_allowance(size: usize) -> bool {
    static LOCKED: AtomicUsize = AtomicUsize::new(0);
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a whole structure for the answer.
    if unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, addr_of_mut!(limit)) } != 0 {
        return false;
    }
    let allowance = usize::try_from(limit.rlim_cur / 2).unwrap_or(usize::MAX);
    let more = |held: usize| held.checked_add(size).filter(|sum| *sum <= allowance);
    LOCKED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}
