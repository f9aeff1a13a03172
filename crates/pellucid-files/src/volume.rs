//! The volume that a folder lies on: where it is mounted, of which kind it is, how much of it is free.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor, statvfs, StatVfsMountFlags};

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// The topmost folder of it.
    pub mount_point: PathBuf,
    /// `ext4`, `btrfs` and so on, as the kernel calls it; none where it does not say.
    pub kind: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// What anybody may still write.
    pub free_bytes: u64,
    /// Whether nothing can be written.
    pub is_read_only: bool,
}

impl Volume {
    /// The volume of a folder.
    ///
    /// # Errors
    /// The system's.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let found = statvfs(&folder)?;
        let device = folder.metadata()?.dev();
        let on_it = |above: &&Path| above.metadata().is_ok_and(|there| there.dev() == device);
        let mount_point = folder.ancestors().take_while(on_it).last().unwrap_or(&folder).to_owned();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Ok(Self {
            kind: kind_of(&mounts, &format!("{}:{}", major(device), minor(device))),
            mount_point,
            bytes: found.f_blocks.saturating_mul(found.f_frsize),
            free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
            is_read_only: found.f_flag.contains(StatVfsMountFlags::RDONLY),
        })
    }
}

/// The kind of file system of a device (proc_pid_mountinfo(5), fields 3 and 9).
fn kind_of(mounts: &str, device: &str) -> Option<String> {
    let line = mounts.lines().rev().find(|line| line.split(' ').nth(2) == Some(device))?;
    let (_, behind) = line.split_once(" - ")?;
    behind.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_lies_on_a_volume() {
        let directory = tempfile::tempdir().unwrap();
        let volume = Volume::of(directory.path()).unwrap();
        assert!(directory.path().canonicalize().unwrap().starts_with(&volume.mount_point));
        assert!(volume.bytes >= volume.free_bytes && volume.bytes > 0);
        assert!(!volume.is_read_only);
        assert!(Volume::of(&directory.path().join("missing")).is_err());
    }

    #[test]
    fn mountinfo_names_the_kind() {
        let mounts = "36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root rw\n\
                      37 35 98:1 / /mnt/a rw - tmpfs none rw\n";
        assert_eq!(kind_of(mounts, "98:0").as_deref(), Some("ext3"));
        assert_eq!(kind_of(mounts, "98:1").as_deref(), Some("tmpfs"));
        assert_eq!(kind_of(mounts, "98:2"), None);
    }
}
