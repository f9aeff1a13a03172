//! Advice about the place of the service master key: in clear on the file system of what it protects, it goes where that
//! goes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pellucid::shown::Shown;
use pellucid_engine::inspect::{Inspection, Kind};
use pellucid_keyring::{Keyring, Source};

use crate::known::Known;

/// What to say of the instance at `home` and of `databases` under a certificate of it; none if its service master key lies
/// elsewhere than each of them, or not in clear.
pub fn advice<'a>(home: &Path, databases: impl IntoIterator<Item = &'a Path>) -> Option<String> {
    let (what_lies, key) = match Keyring::service_key_source(home) {
        Ok(Some(Source::File(key))) => ("service master key lies in clear", key),
        Ok(Some(Source::Sealed(_))) => {
            let passphrase = std::env::var_os("PELLUCID_SERVICE_PASSPHRASE_FILE")?;
            // Elsewhere on this file system it may be out of what is copied and taken along; beside the key it never is.
            let passphrase = PathBuf::from(passphrase);
            let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            if !whole(&passphrase).starts_with(whole(home)) {
                return None;
            }
            ("passphrase of the service master key lies beside that key,", passphrase)
        }
        _ => return None,
    };
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    let here = device(&key)?;
    let beside = databases.into_iter().filter(|database| device(database) == Some(here)).count();
    let what = match beside {
        0 => return None,
        1 => "a database that it protects".to_owned(),
        more => format!("{more} databases that it protects"),
    };
    Some(format!(
        "the {what_lies} on the same file system as {what}: who takes the disk has both (`{}`)",
        key.shown(),
    ))
}

/// Where the service master key of the instance at `home` lies, if that is not its file in clear.
pub fn elsewhere(home: &Path) -> Option<String> {
    match Keyring::service_key_source(home) {
        Ok(Some(Source::File(_)) | None) | Err(_) => None,
        Ok(Some(source)) => Some(format!("service master key: {source}")),
    }
}

/// Those of `databases` that a certificate of the keyring opens without being asked.
pub fn under_certificates<'a>(databases: &'a [Inspection], known: &Known) -> Vec<&'a Path> {
    let is_under = |found: &&Inspection| match &found.kind {
        Kind::Sealed(sealed) => known.opens(sealed),
        _ => false,
    };
    databases.iter().filter(is_under).map(|found| found.path.as_path()).collect()
}

/// The default way out, in one command.
pub const INSTEAD: &str =
    "`pellucid key bind --passphrase-file FILE`, or `--credential FILE`, binds it elsewhere";
