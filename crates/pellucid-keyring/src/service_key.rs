//! The file of the service master key: read, made, and exchanged for the next one.

use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};
use pellucid::secret::Secret32;
use pellucid::shown::Shown;

use super::instance::{group, has_keyring};
use super::making::{is_unmade, sealed_database};
use super::provider;
use super::sealed_file::{link_new, sync_parent, write_temporary};

/// The service master key; none if it is nowhere.
pub(super) fn read_service_key(home: &Path) -> Result<Option<Secret32>> {
    Ok(provider::find(home)?.map(|(key, _)| key))
}

/// The service master key.
pub(super) fn service_key(home: &Path) -> Result<Secret32> {
    read_service_key(home)?.ok_or_else(|| {
        let is_begun = sealed_database(home).is_none() && is_unmade(home).unwrap_or(false);
        let cause = match (has_keyring(home), is_begun) {
            (true, true) => format!(
                "`{}` is not there, nor is anything sealed under it: the making of this keyring was interrupted; `pellucid init` \
                 completes it",
                home.join("service.key").shown()
            ),
            (true, _) => format!(
                "`{}` is not there, and what is sealed under it is; systemd may have it as a credential",
                home.join("service.key").shown()
            ),
            (false, _) => format!(
                "no keyring in `{}`; set `PELLUCID_HOME` to the one that has the keys",
                home.shown()
            ),
        };
        Error::missing_key(Subject::Key("service master key"), cause)
    })
}

/// The one that is about to take the service master key's place.
pub(super) fn read_next_service_key(home: &Path) -> Result<Option<Secret32>> {
    provider::read_key(home, next_path(home))
}

fn next_path(home: &Path) -> PathBuf {
    home.join("service.next")
}

pub(super) fn put_next_service_key(home: &Path, key: &Secret32) -> Result<()> {
    let path = next_path(home);
    let temporary = write_temporary(&path, key.expose(), group(home))?;
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

/// Makes the service master key; none if another process was faster.
pub(super) fn make_service_key(home: &Path) -> Result<Option<PathBuf>> {
    let path = home.join("service.key");
    let temporary = write_temporary(&path, Secret32::random()?.expose(), group(home))?;
    Ok(link_new(&temporary, &path)?.then_some(path))
}
