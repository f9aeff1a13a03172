//! Content in memory of its own: left out of core dumps, wiped and given back to the system when it is dropped.

use std::ops::Range;
use std::ptr::NonNull;

/// A mapping of zeros, which takes memory only where it was written.
#[derive(Debug)]
pub(crate) struct Slab {
    start: NonNull<u8>,
    /// Nothing was written behind it.
    written: usize,
}

impl Slab {
    /// 1 MiB.
    pub const BYTES: usize = 1 << 20;

    /// Maps one. `None` if the system gives no memory.
    pub fn map() -> Option<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping wherever the system likes.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), Self::BYTES, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the mapping is whole pages of ours. Where the system refuses, content is no worse off than in SQLite's cache.
        unsafe { libc::madvise(start, Self::BYTES, libc::MADV_DONTDUMP) };
        NonNull::new(start.cast()).map(|start| Self { start, written: 0 })
    }

    /// Gives the memory back to the system, wiped. What is read afterwards is zeros.
    pub fn discard(&mut self) {
        self.wipe();
        // SAFETY: whole pages of our own private mapping, to which nobody has a reference: `&mut self`. They become zeros.
        if unsafe { libc::madvise(self.start.as_ptr().cast(), Self::BYTES, libc::MADV_DONTNEED) }
            == 0
        {
            self.written = 0;
        }
    }

    fn wipe(&mut self) {
        // SAFETY: the mapping is ours and has this length, and nobody has a reference to it: `&mut self`.
        unsafe {
            libc::explicit_bzero(self.start.as_ptr().cast(), self.written.min(Self::BYTES));
        }
    }

    /// The bytes of a range inside it.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        // SAFETY: mapped until drop, zeroed by the kernel, and written through `&mut self` alone.
        let all = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), Self::BYTES) };
        &all[range]
    }

    /// The same, to write them.
    pub fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        self.written = self.written.max(range.end);
        // SAFETY: as above, and `&mut self` is the only way to it.
        let all = unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), Self::BYTES) };
        &mut all[range]
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        self.wipe();
        // SAFETY: the mapping is ours, of this length, and nobody has a reference any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), Self::BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of `/proc/self/smaps` about the mapping that an address lies in.
    fn about(address: usize) -> Option<String> {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut found = None;
        for line in maps.lines() {
            let bounds = line.split(' ').next().and_then(|range| range.split_once('-'));
            let bound = |hex| usize::from_str_radix(hex, 16);
            if let Some((Ok(from), Ok(to))) = bounds.map(|(from, to)| (bound(from), bound(to))) {
                if found.is_some() {
                    break;
                }
                found = (from..to).contains(&address).then(String::new);
            }
            if let Some(found) = &mut found {
                found.push_str(line);
                found.push('\n');
            }
        }
        found
    }

    #[test]
    fn no_core_dump_has_it() {
        let mut slab = Slab::map().unwrap();
        slab.bytes_mut(0..4096).fill(7);
        let address = slab.start.as_ptr() as usize;
        let told = about(address).unwrap();
        let flags = told.lines().find_map(|line| line.strip_prefix("VmFlags:")).unwrap();
        assert!(flags.split(' ').any(|flag| flag == "dd"), "{told}");
    }

    #[test]
    fn what_is_discarded_takes_no_memory_and_is_zeros() {
        let mut slab = Slab::map().unwrap();
        slab.bytes_mut(0..Slab::BYTES).fill(7);
        let start = slab.start.as_ptr().cast();
        let resident = || {
            let mut pages = vec![0u8; Slab::BYTES / 4096];
            // SAFETY: the mapping is there, and there is a byte for each page of it.
            assert_eq!(unsafe { libc::mincore(start, Slab::BYTES, pages.as_mut_ptr()) }, 0);
            pages.iter().filter(|page| *page & 1 != 0).count()
        };
        assert_eq!(resident(), Slab::BYTES / 4096);
        slab.discard();
        assert_eq!(resident(), 0);
        assert!(slab.bytes(0..Slab::BYTES).iter().all(|byte| *byte == 0));
    }

    #[test]
    fn it_begins_with_zeros_and_keeps_what_is_written() {
        let mut slab = Slab::map().unwrap();
        assert!(slab.bytes(0..Slab::BYTES).iter().all(|byte| *byte == 0));
        slab.bytes_mut(Slab::BYTES - 3..Slab::BYTES).copy_from_slice(b"end");
        slab.bytes_mut(0..5).copy_from_slice(b"begin");
        assert_eq!(slab.bytes(Slab::BYTES - 3..Slab::BYTES), b"end");
        assert_eq!(slab.bytes(0..6), b"begin\0");
    }
}
