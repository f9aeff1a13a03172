//! Folders that a backup makes for its media, as SQL Server on Linux does.
//!
//! Maintenance procedures rely on it there: they ask for the folder that they were given, and write into folders below it. So
//! folders are made only below one that the session has asked for (`sys.dm_os_file_exists`): a slip of the pen makes none.
//! Where the volume that is meant is not mounted, the media would lie on another one and nobody would know. So no folder is
//! made in the root, in a mount point of fstab(5) on which nothing is mounted, or in such a folder of `/mnt` or `/media`.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use pellucid_files::paths::look;

/// Makes the folder that `file` is to lie in, for the owner alone, if it is missing, below one of `roots`, and may be made.
///
/// # Errors
/// The operating system's; whoever writes the file then finds no folder and says so.
pub(crate) fn make_for(file: &Path, roots: &[PathBuf]) -> std::io::Result<()> {
    let Some(folder) = file.parent().filter(|folder| folder.is_absolute()) else { return Ok(()) };
    if look(folder).is_ok() || !roots.iter().any(|root| folder.starts_with(root)) {
        return Ok(());
    }
    let Some(below) = folder.ancestors().skip(1).find(|above| look(above).is_ok()) else {
        return Ok(());
    };
    if awaits_volume(below, &declared()) {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The mount points that the machine is to have. Source: fstab(5).
fn declared() -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/etc/fstab").unwrap_or_default();
    let entries = table.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let points = entries.filter_map(|line| line.split_whitespace().nth(1));
    points.map(|point| PathBuf::from(point.replace("\\040", " "))).collect()
}

/// Whether a folder is there for a volume that is not.
fn awaits_volume(folder: &Path, declared: &[PathBuf]) -> bool {
    let Some(above) = folder.parent() else { return true };
    let is_for_volumes = ["/mnt", "/media"].map(Path::new);
    let is_meant = declared.iter().any(|point| point == folder)
        || is_for_volumes.contains(&above)
        || is_for_volumes.contains(&folder);
    let device = |path: &Path| look(path).map(|found| found.dev()).ok();
    is_meant && device(folder) == device(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_not_made_where_a_volume_is_missing() {
        assert!(awaits_volume(Path::new("/"), &[]));
        assert!(awaits_volume(Path::new("/mnt"), &[]));
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().join("nas");
        std::fs::create_dir(&point).unwrap();
        assert!(awaits_volume(&point, std::slice::from_ref(&point)));
        assert!(!awaits_volume(&point, &[]));
    }

    #[test]
    fn a_missing_folder_is_made_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b/full.bak");
        make_for(&file, &[folder.path().join("other")]).unwrap();
        assert!(look(&folder.path().join("a")).is_err(), "nobody has asked for the folder");
        make_for(&file, &[folder.path().to_owned()]).unwrap();
        for made in ["a", "a/b"] {
            let found = look(&folder.path().join(made)).unwrap();
            assert_eq!(found.mode() & 0o777, 0o700, "{made}");
        }
    }
}
