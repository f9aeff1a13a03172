//! The allocator, called as the standard library would; that dumps lack keys is shown by tests/cli/core_dump.rs of
//! the program, with a real core file.

use std::alloc::{GlobalAlloc, Layout};

use super::Guarded;

/// The flags that the kernel keeps for the mapping around `address`.
fn flags_of(address: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut inside = false;
    for line in maps.lines() {
        let range = line.split_whitespace().next().unwrap_or_default().split_once('-');
        let bounds = range.and_then(|(start, end)| {
            Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
        });
        if let Some((start, end)) = bounds {
            inside = (start..end).contains(&address);
        }
        if inside && line.starts_with("VmFlags:") {
            return line.to_owned();
        }
    }
    panic!("no mapping has {address:x}");
}

#[test]
fn no_block_is_dumped_and_small_ones_are_locked() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    let may_lock = limit.is_none_or(|bytes| bytes >= 1 << 20);
    for (size, small) in [(32, true), (4096, true), (4097, false), (300_000, false)] {
        let locked = small && may_lock;
        let layout = Layout::from_size_align(size, 8).unwrap();
        // SAFETY: the size is not zero; the block is given back with its layout.
        unsafe {
            let block = Guarded.alloc(layout);
            block.write_bytes(1, size);
            let flags = flags_of(block as usize);
            assert!(flags.contains(" dd"), "{size}: {flags}");
            assert_eq!(flags.contains(" lo"), locked, "{size}: {flags}");
            Guarded.dealloc(block, layout);
        }
    }
}

#[test]
fn blocks_keep_alignment_and_content_through_all_sizes() {
    let mut held: Vec<(*mut u8, Layout, u8)> = Vec::new();
    let mut random = 1u64;
    for step in 0..20_000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step | 1);
        let size = 1 + (random >> 33) as usize % [64, 5000, 100_000][step as usize % 3];
        let layout = Layout::from_size_align(size, 1 << (step % 8)).unwrap();
        // SAFETY: sizes are above zero; each block is read within its size and given back once, with its layout.
        unsafe {
            let block = match step % 2 {
                0 => Guarded.alloc(layout),
                _ => Guarded.alloc_zeroed(layout),
            };
            assert_eq!(block as usize % layout.align(), 0);
            let content = std::slice::from_raw_parts(block, size);
            assert!(step % 2 == 0 || content.iter().all(|byte| *byte == 0));
            block.write_bytes(step as u8, size);
            held.push((block, layout, step as u8));
            if held.len() > 50 {
                let (block, layout, fill) = held.swap_remove(random as usize % 50);
                let content = std::slice::from_raw_parts(block, layout.size());
                assert!(content.iter().all(|byte| *byte == fill));
                let grown = Guarded.realloc(block, layout, layout.size() * 2);
                let content = std::slice::from_raw_parts(grown, layout.size());
                assert!(content.iter().all(|byte| *byte == fill));
                let layout = Layout::from_size_align(layout.size() * 2, layout.align()).unwrap();
                Guarded.dealloc(grown, layout);
            }
        }
    }
    for (block, layout, _) in held {
        // SAFETY: as above.
        unsafe { Guarded.dealloc(block, layout) };
    }
}

/// A child forked while other threads allocate can allocate. In a process of its own: children would hold the locks of
/// other tests.
#[test]
fn a_forked_child_allocates() {
    const ALONE: &str = "PELLUCID_TEST_FORKS_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "memory::tests::a_forked_child_allocates"]).env(ALONE, "1");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
        return;
    }
    super::guard();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let layout = Layout::from_size_align(100, 8).unwrap();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    // SAFETY: given back at once with its layout.
                    unsafe { Guarded.dealloc(Guarded.alloc(layout), layout) };
                }
            });
        }
        for _ in 0..100 {
            // SAFETY: the child only allocates here and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let layout = Layout::from_size_align(100, 8).unwrap();
                // SAFETY: the alarm ends a child that hangs; the block is not used.
                unsafe {
                    libc::alarm(300);
                    libc::_exit(i32::from(Guarded.alloc(layout).is_null()));
                }
            }
            let mut status = 0;
            // SAFETY: the child is ours.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
