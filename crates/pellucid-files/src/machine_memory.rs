//! `/dev/shm`: files of the machine's memory, which are gone when it starts again.

use std::fs::{File, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{fchown, PermissionsExt};

use rustix::fs::{fallocate, fstatfs, unlinkat, AtFlags, FallocateFlags, Mode, OFlags, CWD};

use crate::open_at::open_at;

/// Where the files lie.
pub const PLACE: &str = "/dev/shm";
/// File systems that keep nothing on a disk (statfs(2)): tmpfs and ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
/// The number that the kernel draws when the machine starts.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The directory `/dev/shm`.
#[derive(Debug)]
pub struct MachineMemory(File);

impl MachineMemory {
    /// Opens the directory.
    ///
    /// # Errors
    /// The system's; [`ErrorKind::Unsupported`] if what lies there is on a disk.
    pub fn enter() -> Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let directory = File::from(open_at(CWD, PLACE, flags, Mode::empty())?);
        // The field is signed on some platforms.
        let kind = fstatfs(&directory)?.f_type as u64 & u64::from(u32::MAX);
        match IN_MEMORY.contains(&kind) {
            true => Ok(Self(directory)),
            false => Err(Error::new(ErrorKind::Unsupported, "it is not memory")),
        }
    }

    /// Opens a file that is there, to be read, or read and written. No symbolic link is followed.
    ///
    /// # Errors
    /// The system's.
    pub fn open(&self, name: &str, to_write: bool) -> Result<File> {
        let access = if to_write { OFlags::RDWR } else { OFlags::RDONLY };
        Ok(File::from(open_at(&self.0, name, access | PLAIN, Mode::empty())?))
    }

    /// Makes a new file that its owner alone may read and write.
    ///
    /// # Errors
    /// The system's, [`ErrorKind::AlreadyExists`] among them.
    pub fn make(&self, name: &str) -> Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | PLAIN;
        Ok(File::from(open_at(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, name: &str) -> Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }
}

const PLAIN: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// Has the system keep room for the bytes, so that no later use of them finds the memory full.
///
/// # Errors
/// The system's, [`ErrorKind::StorageFull`] among them.
pub fn allocate(file: &File, at: u64, bytes: u64) -> Result<()> {
    Ok(rustix::io::retry_on_intr(|| fallocate(file, FallocateFlags::empty(), at, bytes))?)
}

/// Gives a file the owner, the group and the mode of another one, as far as this process may. False if the group could not be
/// given, or neither group nor owner.
///
/// # Errors
/// The system's, if the mode cannot be set.
pub fn give(file: &File, owner: u32, group: u32, mode: u32) -> Result<bool> {
    // Only root gives files away.
    let given =
        fchown(file, Some(owner), Some(group)).is_ok() || fchown(file, None, Some(group)).is_ok();
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(given)
}

/// The number of this start of the machine.
///
/// # Errors
/// The system's, or [`ErrorKind::InvalidData`].
pub fn boot_id() -> Result<[u8; 16]> {
    let text = std::fs::read_to_string(BOOT_ID)?;
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    let wrong = || Error::new(ErrorKind::InvalidData, "not the id of a start");
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_is_made_once_and_opened_by_its_name() {
        let Ok(memory) = MachineMemory::enter() else {
            return println!("SKIP: {PLACE} is not there");
        };
        let name = format!("pellucid-test-{}", std::process::id());
        let made = memory.make(&name).unwrap();
        assert_eq!(memory.make(&name).unwrap_err().kind(), ErrorKind::AlreadyExists);
        allocate(&made, 0, 4096).unwrap();
        let found = made.metadata().unwrap();
        assert!(give(&made, found.uid(), found.gid(), 0o640).unwrap());
        let opened = memory.open(&name, false).unwrap().metadata().unwrap();
        assert_eq!((opened.len(), opened.mode() & 0o777, opened.ino()), (4096, 0o640, found.ino()));
        memory.remove(&name).unwrap();
        assert_eq!(memory.open(&name, true).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn the_start_has_an_id() {
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
        assert_ne!(boot_id().unwrap(), [0; 16]);
    }
}
