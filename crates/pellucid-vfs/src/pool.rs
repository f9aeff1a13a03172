//! The nonces drawn ahead and the writes reserved of one connection, in memory that a forked child
//! does not inherit.
//!
//! A nonce is 96 random bits, and the next ones are that number counted up: NIST SP 800-38D, 8.2.2,
//! allows both as the random field. So one short call of the system's generator serves a
//! transaction. Without that, the calls would be made under the write lock, for which other
//! connections wait.
//!
//! If two processes used the same nonces under one key, GCM's authenticity would end. SQLite's rule
//! (howtocorrupt.html, 2.6) does not stop a program from forking with a connection open. So the
//! kernel wipes the page in a child (`MADV_WIPEONFORK`, Linux 4.14); where it cannot, the process
//! id is compared at each use.

use std::ptr::NonNull;

use pellucid::cipher::NONCE_BYTES;
use pellucid::nonce::NonceSource;
use pellucid::secret::fill_random;
use pellucid::{Error, Result, Subject};

/// Nonces that follow from one draw.
const AHEAD: u32 = 64;
const PAGE_BYTES: usize = 4096;

/// The wear count that a seal belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WearKind {
    /// Pages of the database file.
    Pages,
    /// WAL frames and journal records.
    Log,
}

#[repr(C)]
struct Contents {
    /// Not zero in the process that filled the page.
    owner: u32,
    /// Nonces left of the last draw, the first of them in `next`.
    left: u32,
    next: [u8; NONCE_BYTES],
    reserved: [u64; 2],
}

impl Contents {
    fn draw(&mut self) -> Result<()> {
        fill_random(&mut self.next)?;
        self.left = AHEAD;
        Ok(())
    }
}

/// The pool of one connection.
#[derive(Debug)]
pub struct Pool {
    page: NonNull<Contents>,
    wiped_on_fork: bool,
}

impl Pool {
    /// Makes an empty pool on a page of its own.
    ///
    /// # Errors
    /// [`Error::Io`] if no memory can be mapped.
    pub fn new() -> Result<Self> {
        // SAFETY: an anonymous private mapping at no fixed address touches nothing that exists.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let failed = || Error::io(Subject::Key("nonce pool"), std::io::Error::last_os_error());
        let page = NonNull::new(page.cast::<Contents>())
            .filter(|page| page.as_ptr().cast() != libc::MAP_FAILED)
            .ok_or_else(failed)?;
        // SAFETY: the page was just mapped with this length. It is kept out of core dumps too.
        let wiped_on_fork = unsafe {
            libc::madvise(page.as_ptr().cast(), PAGE_BYTES, libc::MADV_DONTDUMP);
            guard_fork(page.as_ptr().cast())
        };
        Ok(Self { page, wiped_on_fork })
    }

    /// Takes one of the reserved writes. False if none is left.
    pub fn take_reserved(&mut self, kind: WearKind) -> bool {
        let left = &mut self.contents().reserved[kind as usize];
        let had = *left > 0;
        *left = left.saturating_sub(1);
        had
    }

    /// Adds writes that were reserved on disk.
    pub fn add_reserved(&mut self, kind: WearKind, writes: u64) {
        self.contents().reserved[kind as usize] += writes;
    }

    /// Forgets every reserved write, because they belong to a generation that is over.
    pub fn drop_reserved(&mut self) {
        self.contents().reserved = [0; 2];
    }

    /// Wipes the nonces drawn ahead. Called when the write or checkpoint lock is released, or could
    /// not be taken.
    pub fn drop_nonces(&mut self) {
        let contents = self.contents();
        contents.next = [0; NONCE_BYTES];
        contents.left = 0;
    }

    /// Draws nonces before a lock is taken, so that no connection waits for the draw. An error is
    /// returned where a nonce is needed.
    pub fn draw_ahead(&mut self) {
        let contents = self.contents();
        if contents.left == 0 {
            let _ = contents.draw();
        }
    }

    fn contents(&mut self) -> &mut Contents {
        // SAFETY: the page is mapped until drop, page aligned, zeroed by the kernel (every bit
        // pattern is a valid `Contents`), and reached through `&mut self` alone.
        let contents = unsafe { self.page.as_mut() };
        let owner = if self.wiped_on_fork { 1 } else { std::process::id() };
        if contents.owner != owner {
            *contents = Contents { owner, left: 0, next: [0; NONCE_BYTES], reserved: [0; 2] };
        }
        contents
    }
}

unsafe fn guard_fork(page: *mut libc::c_void) -> bool {
    // The fork test has to notice that.
    #[cfg(feature = "sabotage")]
    if pellucid::sabotage::Sabotage::ForkGuard.is_on() {
        return true;
    }
    // SAFETY: the caller mapped `page` with this length.
    unsafe { libc::madvise(page, PAGE_BYTES, libc::MADV_WIPEONFORK) == 0 }
}

impl NonceSource for Pool {
    fn next_nonce(&mut self) -> Result<[u8; NONCE_BYTES]> {
        let contents = self.contents();
        if contents.left == 0 {
            contents.draw()?;
        }
        contents.left -= 1;
        let nonce = contents.next;
        count_up(&mut contents.next);
        Ok(nonce)
    }
}

/// Adds one to a nonce as a big-endian number. Zero follows the last number.
fn count_up(nonce: &mut [u8; NONCE_BYTES]) {
    for byte in nonce.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.drop_nonces();
        // SAFETY: the page was mapped by `new` with this length and is not used afterwards.
        unsafe { libc::munmap(self.page.as_ptr().cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_drawn_anew_after_so_many_and_after_a_drop() {
        let mut pool = Pool::new().unwrap();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            assert!(seen.insert(pool.next_nonce().unwrap()));
            assert!(pool.contents().left < AHEAD);
        }
        pool.drop_nonces();
        assert_eq!((pool.contents().left, pool.contents().next), (0, [0; NONCE_BYTES]));
        pool.draw_ahead();
        let (drawn, left) = (pool.contents().next, pool.contents().left);
        pool.draw_ahead();
        assert_eq!((pool.contents().next, left), (drawn, AHEAD), "nothing is drawn twice");
        assert_eq!(pool.next_nonce().unwrap(), drawn);
        assert!(seen.insert(drawn) && seen.insert(pool.next_nonce().unwrap()));
    }

    #[test]
    fn counting_carries_and_wraps() {
        let mut nonce = [0xff; NONCE_BYTES];
        nonce[0] = 7;
        count_up(&mut nonce);
        assert_eq!(nonce, [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let mut last = [0xff; NONCE_BYTES];
        count_up(&mut last);
        assert_eq!(last, [0; NONCE_BYTES]);
    }

    #[test]
    fn reserved_writes_run_out() {
        let mut pool = Pool::new().unwrap();
        assert!(!pool.take_reserved(WearKind::Log));
        pool.add_reserved(WearKind::Log, 2);
        assert!(pool.take_reserved(WearKind::Log));
        assert!(!pool.take_reserved(WearKind::Pages));
        assert!(pool.take_reserved(WearKind::Log));
        assert!(!pool.take_reserved(WearKind::Log));
    }
}
