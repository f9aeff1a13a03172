//! The instance directory and the service master key in it.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::sealed_file::{link_new, sync_parent, write_temporary};
use crate::error::{Error, Result, Subject};
use crate::secret::Secret32;

const CONFIG: &str = "/etc/pellucid.conf";
const CREDENTIAL: &str = "pellucid-smk";
const SERVICE_KEY_BYTES: usize = 32;

/// The file that names the system instance's directory, `home = PATH`; `PELLUCID_CONFIG` names another one.
pub(super) fn config_path() -> PathBuf {
    std::env::var_os("PELLUCID_CONFIG").map_or_else(|| PathBuf::from(CONFIG), PathBuf::from)
}

pub(super) fn locate() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("PELLUCID_HOME").filter(|home| !home.is_empty()) {
        return Ok(PathBuf::from(home));
    }
    if let Some(home) = configured() {
        return Ok(home);
    }
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(data) = variable("XDG_DATA_HOME") {
        return Ok(Path::new(&data).join("pellucid"));
    }
    match variable("HOME") {
        Some(home) => Ok(Path::new(&home).join(".local/share/pellucid")),
        None => Err(Error::misuse(
            Subject::Option("PELLUCID_HOME".into()),
            "not set, and neither is HOME: there is no place for a keyring",
        )),
    }
}

/// What [`config_path`] names.
pub(super) fn configured() -> Option<PathBuf> {
    std::fs::read_to_string(config_path()).ok()?.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "home").then(|| PathBuf::from(value.trim()))
    })
}

pub(super) fn make_directories(home: &Path) -> Result<()> {
    for directory in ["", "keyring", "keyring/certificates", "keyring/databases"] {
        match directory {
            "" => make_directory(home)?,
            _ => make_directory(&home.join(directory))?,
        }
    }
    Ok(())
}

pub(super) fn make_directory(path: &Path) -> Result<()> {
    let shared = path.parent().and_then(group_of);
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.and_then(|()| shared.map_or(Ok(()), |group| share_directory(path, group)))
        .map_err(|error| Error::io(Subject::File(path.to_owned()), error))
}

fn share_directory(path: &Path, group: u32) -> std::io::Result<()> {
    if group_of(path) == Some(group) {
        return Ok(());
    }
    std::os::unix::fs::chown(path, None, Some(group))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o750))
}

/// Makes the directory of a system instance: 0750, for `group` to read; and what is in it.
pub(super) fn make_system_directories(home: &Path, group: u32) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o750).create(home);
    made.and_then(|()| std::os::unix::fs::chown(home, None, Some(group)))
        .and_then(|()| std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o750)))
        .map_err(|error| Error::io(Subject::File(home.to_owned()), error))?;
    make_directories(home)
}

/// The group that may read in a directory of a system instance (0750); none in a private one.
pub(super) fn group_of(directory: &Path) -> Option<u32> {
    let metadata = std::fs::metadata(directory).ok()?;
    (metadata.mode() & 0o7777 == 0o750).then(|| metadata.gid())
}

/// The files of a directory, in order; those being written begin with a dot and are left out.
pub(super) fn names_in(directory: &Path) -> Result<Vec<String>> {
    let io = |error| Error::io(Subject::File(directory.to_owned()), error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        names.extend(name.into_string().ok().filter(|name| !name.starts_with('.')));
    }
    names.sort();
    Ok(names)
}

/// Whether anything is there that is sealed under the database master key.
pub(super) fn has_children(home: &Path) -> Result<bool> {
    for directory in ["keyring/certificates", "keyring/databases"] {
        if !names_in(&home.join(directory))?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// systemd's credential, if there is one.
pub(super) fn credential() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY")
        .map(|directory| Path::new(&directory).join(CREDENTIAL))
        .filter(|path| path.exists())
}

/// The service master key; none if it is nowhere.
pub(super) fn read_service_key(home: &Path) -> Result<Option<Secret32>> {
    Ok(super::provider::find(home)?.map(|(key, _)| key))
}

/// The service master key.
pub(super) fn service_key(home: &Path) -> Result<Secret32> {
    read_service_key(home)?.ok_or_else(|| {
        let cause = match has_keyring(home) {
            true => format!(
                "`{}` is not there, and what is sealed under it is; systemd may have it as a credential",
                home.join("service.key").display()
            ),
            false => format!(
                "no keyring in `{}`; set `PELLUCID_HOME` to the one that has the keys",
                home.display()
            ),
        };
        Error::missing_key(Subject::Key("service master key"), cause)
    })
}

/// Whether an instance is there, or was, as far as the caller may look.
pub(super) fn has_keyring(home: &Path) -> bool {
    !matches!(std::fs::symlink_metadata(home.join("keyring")),
        Err(error) if error.kind() == ErrorKind::NotFound)
}

/// The one that is about to take the service master key's place.
pub(super) fn read_next_service_key(home: &Path) -> Result<Option<Secret32>> {
    read_key(home, next_path(home))
}

fn next_path(home: &Path) -> PathBuf {
    home.join("service.next")
}

pub(super) fn put_next_service_key(home: &Path, key: &Secret32) -> Result<()> {
    let path = next_path(home);
    let temporary = write_temporary(&path, key.expose())?;
    rename(&temporary, &path)
}

pub(super) fn adopt_next_service_key(home: &Path) -> Result<()> {
    rename(&next_path(home), &home.join("service.key"))
}

pub(super) fn drop_next_service_key(home: &Path) -> Result<()> {
    let path = next_path(home);
    std::fs::remove_file(&path).map_err(|error| Error::io(Subject::File(path.clone()), error))?;
    sync_parent(&path)
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).map_err(|error| Error::io(Subject::File(to.to_owned()), error))?;
    sync_parent(to)
}

pub(super) fn read_key(home: &Path, path: PathBuf) -> Result<Option<Secret32>> {
    let io = |error| Error::io(Subject::File(path.clone()), error);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    // The opened file's own mode: a name may lead elsewhere a moment later.
    let metadata = file.metadata().map_err(io)?;
    let shared_by_group = metadata.mode() & 0o027 == 0 && is_system_instance(home);
    if metadata.mode() & 0o077 != 0 && !shared_by_group {
        return Err(Error::misuse(
            Subject::File(path),
            format!(
                "others can read the service master key (mode {:04o}); `chmod 600` it",
                metadata.mode() & 0o7777
            ),
        ));
    }
    let mut bytes = zeroize::Zeroizing::new(Vec::with_capacity(SERVICE_KEY_BYTES + 1));
    file.take(SERVICE_KEY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
    Secret32::from_slice(&bytes)
        .map(Some)
        .ok_or_else(|| Error::corrupt(Subject::File(path), "a service master key has 32 bytes"))
}

/// A system instance's directory is 0750: its group may read.
fn is_system_instance(home: &Path) -> bool {
    std::fs::metadata(home).is_ok_and(|metadata| metadata.mode() & 0o7777 == 0o750)
}

/// Makes the service master key; none if another process was faster.
pub(super) fn make_service_key(home: &Path) -> Result<Option<PathBuf>> {
    let path = home.join("service.key");
    let temporary = write_temporary(&path, Secret32::random()?.expose())?;
    Ok(link_new(&temporary, &path)?.then_some(path))
}
