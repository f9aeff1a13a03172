//! The processes that hold locks on a file: `/proc/locks`, by inode, and by the descriptors of each process, because other file
//! systems have the same inode numbers.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its command's name. Empty if the process is gone or not visible to this user.
    pub command: String,
}

/// The byte of a wal-index where the locks of readers and writers end. The byte behind it is locked
/// by every connection (os_unix.c, `UNIX_SHM_DMS`).
const EVERYBODY: u64 = 128;

/// Finds the other processes with locks on `database` or its wal-index. Empty without `/proc`.
pub fn find(database: &Path) -> Vec<Holder> {
    let files = [database.to_owned(), index(database)];
    let files: Vec<_> = files.iter().filter_map(|path| File::at(path)).collect();
    with_locks(|lock| files.iter().any(|file| lock.is_on(file)))
}

/// Finds those of them that are in a transaction.
pub fn in_transaction(database: &Path) -> Vec<Holder> {
    // In WAL mode an idle connection has a lock on the database file too.
    match File::at(&index(database)) {
        Some(index) => with_locks(|lock| lock.start < EVERYBODY && lock.is_on(&index)),
        None => find(database),
    }
}

fn index(database: &Path) -> PathBuf {
    let mut index = pellucid_files::paths::own_name(database).into_os_string();
    index.push("-shm");
    PathBuf::from(index)
}

/// What tells a file from any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct File {
    device: u64,
    inode: u64,
}

impl File {
    fn at(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// How often the list of locks is read: as often as this, as long as it names nobody.
const READINGS: usize = 10;
/// How often it is read where it does name somebody.
const AT_LEAST: usize = 3;

/// The holders of the locks that are wanted, of several readings of `/proc/locks`.
///
/// The system gives the list a page at a time, by position (`fs/locks.c`, `locks_start`). Locks that others give back between two
/// pages move those behind them, and one or another is passed over.
fn with_locks(wanted: impl Fn(&Lock) -> bool) -> Vec<Holder> {
    let mut holders: Vec<Holder> = Vec::new();
    for reading in 0..READINGS {
        if reading >= AT_LEAST && !holders.is_empty() {
            break;
        }
        let Some(locks) = of_proc("/proc/locks") else { break };
        for lock in locks.lines().filter_map(parse).filter(&wanted) {
            let pid = lock.pid;
            if pid == std::process::id() || holders.iter().any(|holder| holder.pid == pid) {
                continue;
            }
            let command = of_proc(&format!("/proc/{pid}/comm")).unwrap_or_default();
            holders.push(Holder { pid, command: command.trim().to_owned() });
        }
    }
    holders
}

/// A file that the system makes (proc(5)).
fn of_proc(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// A line of `/proc/locks`.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    pid: u32,
    /// Of the file system. Some, such as btrfs and overlayfs, name another one for their files.
    device: u64,
    inode: u64,
    start: u64,
}

impl Lock {
    /// Whether it is on `file`: its process has that file open. Of a process whose descriptors this user may not look at, the
    /// devices decide.
    fn is_on(&self, file: &File) -> bool {
        if self.inode != file.inode {
            return false;
        }
        match std::fs::read_dir(format!("/proc/{}/fd", self.pid)) {
            Ok(open) => open.flatten().any(|one| File::at(&one.path()).as_ref() == Some(file)),
            Err(_) => self.device == file.device,
        }
    }
}

/// Parses a line such as `1: POSIX  ADVISORY  READ 1234 08:01:5678 0 EOF` (proc(5)). Locks of open
/// files have no process.
fn parse(line: &str) -> Option<Lock> {
    let mut fields =
        line.split_whitespace().skip_while(|field| *field != "READ" && *field != "WRITE");
    let pid = fields.nth(1)?.parse().ok()?;
    let mut place = fields.next()?.split(':');
    let mut number = || u32::from_str_radix(place.next()?, 16).ok();
    let device = libc::makedev(number()?, number()?);
    let inode = place.next()?.parse().ok()?;
    let start = fields.next()?.parse().ok()?;
    Some(Lock { pid, device, inode, start })
}

/// Describes holders as `: held by python3 (1234), app (77)`. Empty if none was found.
pub fn describe(holders: &[Holder]) -> String {
    if holders.is_empty() {
        return String::new();
    }
    format!(": held by {}", names(holders))
}

/// Lists holders as `python3 (1234), app (77)`.
pub fn names(holders: &[Holder]) -> String {
    let names: Vec<String> = holders
        .iter()
        .map(|holder| {
            let name = if holder.command.is_empty() { "process" } else { &holder.command };
            format!("{name} ({})", holder.pid)
        })
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that holds a file, until it is dropped.
    struct Child(std::process::Child);

    impl Drop for Child {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_holder_is_found_while_others_take_and_give_back_locks() {
        let folder = tempfile::tempdir().unwrap();
        let held = folder.path().join("held");
        let program = ["--no-fork", held.to_str().unwrap(), "sleep", "600"];
        let child = Child(std::process::Command::new("flock").args(program).spawn().unwrap());
        while find(&held).is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let busy = std::fs::File::create(folder.path().join("busy")).unwrap();
                    for at in 0..200 {
                        assert!(crate::byte_lock::hold(&busy, 2 * at, true).unwrap());
                    }
                }
            });
            let missed =
                (0..3_000).filter(|_| find(&held).iter().all(|one| one.pid != child.0.id()));
            let missed = missed.count();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(missed, 0);
        });
    }

    #[test]
    fn a_line_of_proc_locks_is_read() {
        let line = "12: POSIX  ADVISORY  READ 4711 fe:00:131 1073741826 1073742335";
        let device = libc::makedev(0xfe, 0);
        assert_eq!(parse(line), Some(Lock { pid: 4711, device, inode: 131, start: 1073741826 }));
        let waiting = "12: -> POSIX  ADVISORY  WRITE 9 fe:00:7 0 EOF";
        assert_eq!(parse(waiting), Some(Lock { pid: 9, device, inode: 7, start: 0 }));
        assert_eq!(
            parse("3: OFDLCK ADVISORY  WRITE -1 fe:00:7 4611686018427387904 4611686018427387904"),
            None
        );
        assert_eq!(parse("nothing"), None);
    }
}
