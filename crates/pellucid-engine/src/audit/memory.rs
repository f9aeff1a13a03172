//! The memory that a check may use.

use std::fs::read_to_string;

/// Bytes that a check may use: what `/proc/meminfo` calls available, limited by the process's
/// control group (cgroup v2, `memory.max`). `None` if the system does not say.
pub fn available() -> Option<u64> {
    let info = read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib * 1024).min(of_the_group().unwrap_or(u64::MAX)))
}

fn of_the_group() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    read_to_string(format!("/sys/fs/cgroup/{group}/memory.max")).ok()?.trim().parse().ok()
}

/// The number of cache pages for SQLite's checks of a database of `pages` pages.
///
/// The checks look up each row's entry in every index, at random, so a page that is not cached is
/// read and opened again for most of its rows. So all pages are cached, as far as a quarter of the
/// memory reaches; at least 64 MiB. That helps if opening is slow: with 3DES, or without hardware
/// AES. A plain page is read as fast as it is found in a cache.
pub fn cache_pages(pages: u64, page_bytes: u64) -> u64 {
    fitting(pages, page_bytes, available().unwrap_or(0))
}

fn fitting(pages: u64, page_bytes: u64, available: u64) -> u64 {
    /// The approximate bytes that SQLite keeps beside each page.
    const BESIDE: u64 = 256;
    const LEAST: u64 = 64 << 20;
    /// The largest number that `PRAGMA cache_size` takes.
    const MOST: u64 = i32::MAX as u64;
    let each = page_bytes + BESIDE;
    pages.min(available / 4 / each).max(LEAST / each).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_keeps_all_pages_or_a_quarter_of_the_memory_or_64_mib() {
        const GIB: u64 = 1 << 30;
        assert_eq!(fitting(100_000, 4096, 16 * GIB), 100_000);
        assert_eq!(fitting(10_000_000, 4096, 16 * GIB), 4 * GIB / 4352);
        let least = (64 << 20) / 4352;
        assert_eq!((fitting(100_000, 4096, 0), fitting(1, 4096, 16 * GIB)), (least, least));
        assert_eq!(fitting(u64::MAX, 512, u64::MAX), i32::MAX as u64);
    }

    #[test]
    fn the_system_says_how_much_there_is() {
        let bytes = available().unwrap();
        assert!(bytes > 1 << 20, "{bytes}");
    }
}
