//! Where the service master key comes from: systemd's credential, the instance's file, in clear, under a passphrase or under a
//! key that a plugin asks for, or a provider.
//!
//! A provider is a program's own: a host that Pellucid is built into hands out the key. Then the instance has no `service.key`,
//! and the key is not Pellucid's to change. Tokens, TPMs and key services are plugins' (`plugin.rs`).

use std::fmt::Debug;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::instance::{self, group};
use super::{bound, plugin};
use pellucid::error::{Error, Result, Subject};
use pellucid::secret::Secret32;
use pellucid::shown::Shown;
use pellucid_files::trusted::Guard;

const CREDENTIAL: &str = "pellucid-smk";
const SERVICE_KEY_BYTES: usize = 32;

/// A holder of service master keys.
pub trait ServiceKeyProvider: Debug + Send + Sync {
    /// What to call it, for people (`PKCS#11 token "HSM-1"`).
    fn name(&self) -> String;

    /// The service master key of the instance at `home`; none if it has none for it. Asked each time a keyring is opened,
    /// by any thread.
    ///
    /// # Errors
    /// Why it cannot hand it out now: [`Error::MissingKey`] where somebody has to act (a PIN, a token that is out).
    fn service_key(&self, home: &Path) -> Result<Option<Secret32>>;
}

static PROVIDER: OnceLock<Box<dyn ServiceKeyProvider>> = OnceLock::new();

/// Has every keyring of this process ask `provider` first. Once, before the first keyring is opened.
///
/// # Errors
/// [`Error::Misuse`] if there is one already.
pub fn use_provider(provider: Box<dyn ServiceKeyProvider>) -> Result<()> {
    PROVIDER.set(provider).map_err(|_| {
        Error::misuse(Subject::Key("service master key"), "this process has a provider already")
    })
}

/// Where the key in use comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A provider, by its name.
    Provider(String),
    /// systemd's credential `pellucid-smk`.
    Credential(PathBuf),
    /// The instance's own file in clear; the only one that Pellucid changes.
    File(PathBuf),
    /// The instance's own file, sealed under a passphrase.
    Sealed(PathBuf),
    /// The instance's own file, under a key that the plugin asks for.
    Plugin {
        /// The file.
        path: PathBuf,
        /// The plugin's name.
        plugin: String,
        /// The key's.
        key: String,
    },
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Provider(name) => f.write_str(name),
            Source::Credential(path) => write!(f, "systemd's credential {}", path.shown()),
            Source::File(path) => write!(f, "{}", path.shown()),
            Source::Sealed(path) => write!(f, "{}, under a passphrase", path.shown()),
            Source::Plugin { path, plugin, key } => write!(
                f,
                "{}, under a key of the plugin {}: {}",
                path.shown(),
                plugin.shown(),
                key.shown()
            ),
        }
    }
}

/// The service master key with its source; none if there is none.
pub(super) fn find(home: &Path) -> Result<Option<(Secret32, Source)>> {
    if let Some(provider) = PROVIDER.get() {
        if let Some(key) = provider.service_key(home)? {
            return Ok(Some((key, Source::Provider(provider.name()))));
        }
    }
    let (path, source): (PathBuf, fn(PathBuf) -> Source) = match credential() {
        Some(path) => (path, Source::Credential),
        None => (home.join("service.key"), Source::File),
    };
    if let Some(key) = read_key(home, path.clone())? {
        return Ok(Some((key, source(path))));
    }
    match bound::read(home) {
        // A move from one to the other was interrupted: either opens.
        Err(Error::MissingKey { .. }) if plugin::is_there(home) => {}
        Ok(None) => {}
        found => return Ok(found?.map(|key| (key, Source::Sealed(bound::path(home))))),
    }
    Ok(plugin::read(home)?.map(|(key, place)| {
        let source =
            Source::Plugin { path: plugin::path(home), plugin: place.plugin, key: place.key };
        (key, source)
    }))
}

/// systemd's credential, if there is one.
pub(super) fn credential() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY")
        .map(|directory| Path::new(&directory).join(CREDENTIAL))
        .filter(|path| path.exists())
}

pub(super) fn read_key(home: &Path, path: PathBuf) -> Result<Option<Secret32>> {
    let io = |error| Error::io(Subject::File(path.clone()), error);
    let guard = Guard::Secret { what: "the service master key", group: group(home) };
    let Some(file) = instance::open(&path, guard)? else { return Ok(None) };
    let mut bytes = zeroize::Zeroizing::new(Vec::with_capacity(SERVICE_KEY_BYTES + 1));
    file.take(SERVICE_KEY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
    Secret32::from_slice(&bytes)
        .map(Some)
        .ok_or_else(|| Error::corrupt(Subject::File(path), "a service master key has 32 bytes"))
}
