//! Folders that a backup makes for its media, as SQL Server on Linux does.
//!
//! Maintenance procedures rely on it there: they ask for the folder that they were given, and write into folders below it. So
//! folders are made only below one that the session has asked for (`sys.dm_os_file_exists`): a slip of the pen makes none.
//! Where the volume that is meant is not mounted, the media would lie on another one and nobody would know. So no folder is
//! made in the root, in a mount point of fstab(5) on which nothing is mounted, or in such a folder of `/mnt` or `/media`.

use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use pellucid_files::paths::look;
use pellucid_host::folder::Folder;

/// Makes the folder that `file` is to lie in, for the owner alone, if it is missing, below one of `roots`, and may be made.
///
/// # Errors
/// The operating system's; whoever writes the file then finds no folder and says so.
pub(crate) fn make_for(file: &Path, roots: &[PathBuf]) -> std::io::Result<()> {
    let Some(folder) = file.parent().filter(|folder| folder.is_absolute()) else { return Ok(()) };
    let is_below = |root: &&PathBuf| folder.starts_with(root) && root.parent().is_some();
    if look(folder).is_ok() || !roots.iter().any(|root| is_below(&root)) {
        return Ok(());
    }
    let Some(below) = folder.ancestors().skip(1).find(|above| look(above).is_ok()) else {
        return Ok(());
    };
    // A name such as `..` would lead out of what was asked for.
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if !folder.components().all(is_plain) || awaits_volume(below, &declared()) {
        return Ok(());
    }
    make(folder)
}

/// Makes a folder and those above it that are missing, for the owner alone: step by step from one that is open, so that links of
/// others are not followed, as where media are opened.
///
/// # Errors
/// The operating system's.
pub(crate) fn make(folder: &Path) -> std::io::Result<()> {
    let below = folder.ancestors().find(|above| look(above).is_ok_and(|found| found.is_dir()));
    let Some((below, missing)) = below.and_then(|at| Some((at, folder.strip_prefix(at).ok()?)))
    else {
        return Err(std::io::ErrorKind::NotFound.into());
    };
    let mut here = Folder::of(&below.join("x"))?;
    for name in missing {
        match here.make_folder(name, 0o700) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            _ => here = here.folder(name)?,
        }
    }
    Ok(())
}

/// The mount points that the machine is to have. Source: fstab(5).
fn declared() -> Vec<PathBuf> {
    let table = pellucid_files::regular::open(Path::new("/etc/fstab"));
    let table = table.and_then(std::io::read_to_string).unwrap_or_default();
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
        make_for(&file, &[PathBuf::from("/")]).unwrap();
        make_for(&folder.path().join("x/../a/b/full.bak"), &[folder.path().join("x")]).unwrap();
        assert!(look(&folder.path().join("a")).is_err(), "neither the root nor `..` counts");
        make_for(&file, &[folder.path().to_owned()]).unwrap();
        for made in ["a", "a/b"] {
            let found = look(&folder.path().join(made)).unwrap();
            assert_eq!(found.mode() & 0o777, 0o700, "{made}");
        }
    }
}
