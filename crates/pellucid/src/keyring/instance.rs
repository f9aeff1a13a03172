//! The instance directory and the service master key in it.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::sealed_file::{link_new, write_temporary};
use crate::error::{Error, Result, Subject};
use crate::secret::Secret32;

const CONFIG: &str = "/etc/pellucid.conf";
const CREDENTIAL: &str = "pellucid-smk";
const SERVICE_KEY_BYTES: usize = 32;

pub(super) fn locate() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("PELLUCID_HOME").filter(|home| !home.is_empty()) {
        return Ok(PathBuf::from(home));
    }
    if let Ok(config) = std::fs::read_to_string(CONFIG) {
        let home = config.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == "home").then(|| PathBuf::from(value.trim()))
        });
        if let Some(home) = home {
            return Ok(home);
        }
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

pub(super) fn make_directories(home: &Path) -> Result<()> {
    for directory in ["", "keyring", "keyring/certificates", "keyring/databases"] {
        let path = if directory.is_empty() { home.to_owned() } else { home.join(directory) };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|error| Error::io(Subject::File(path), error))?;
    }
    Ok(())
}

/// Whether anything is there that is sealed under the database master key.
pub(super) fn has_children(home: &Path) -> Result<bool> {
    for directory in ["keyring/certificates", "keyring/databases"] {
        let path = home.join(directory);
        let io = |error| Error::io(Subject::File(path.clone()), error);
        for entry in std::fs::read_dir(&path).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            if !name.as_encoded_bytes().starts_with(b".") {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The service master key: systemd's credential, else the instance's file; none if neither is there.
pub(super) fn read_service_key(home: &Path) -> Result<Option<Secret32>> {
    let credential = std::env::var_os("CREDENTIALS_DIRECTORY")
        .map(|directory| Path::new(&directory).join(CREDENTIAL))
        .filter(|path| path.exists());
    let path = credential.unwrap_or_else(|| home.join("service.key"));
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
