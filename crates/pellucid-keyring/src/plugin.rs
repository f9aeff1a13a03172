//! The service master key under a key that lies elsewhere: `service.provider`, in the place of `service.key`.
//!
//! Layout: docs/format.md, "Service master key by a plugin". A plugin unwraps it, once in a process. Whoever exchanges the file
//! can have a program of root's asked about another key, and gets none: what comes out has to be the key whose check value the
//! file and the keyring state, and the context that the plugin authenticates covers the file.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use aws_lc_rs::digest;
use pellucid::error::{Error, Result, Subject};
use pellucid::secret::{fill_random, Secret32};
use pellucid::shown::Shown;
use pellucid_files::trusted::Guard;
use pellucid_plugin::{check_key, Plugin, BYTES_MOST, KEY_BYTES_MOST};

use super::instance::{self, group};
use super::sealed_file::{check_value, stated_parent, CHECK_BYTES};

const MAGIC: &[u8; 16] = b"Pellucid plugin\0";
const VERSION: u16 = 1;
/// Magic 16, version 2, reserved 2, check value of the key 16, random 16, three lengths of 2.
const HEADER_BYTES: usize = 58;
const CHECK_AT: usize = 20;
const RANDOM_AT: usize = 36;
const LENGTHS_AT: usize = 52;
const PLUGIN_BYTES_MOST: usize = 32;
const FILE_BYTES_MOST: usize = HEADER_BYTES + PLUGIN_BYTES_MOST + KEY_BYTES_MOST + BYTES_MOST;
/// For that long a failure is told again and not met again: one opening asks more than once.
const REMEMBERED: Duration = Duration::from_secs(1);

/// The key that was unwrapped last, by the SHA-256 of its file. No lock is held while a plugin runs, because the process may be
/// forked then.
static OPENED: Mutex<Option<([u8; 32], Secret32)>> = Mutex::new(None);
static FAILED: Mutex<Option<([u8; 32], Instant, Failed)>> = Mutex::new(None);

/// Where it lies.
pub(super) fn path(home: &Path) -> PathBuf {
    home.join("service.provider")
}

/// What the file says; nothing of it is authenticated before the key is out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) plugin: String,
    pub(super) key: String,
    check: [u8; CHECK_BYTES],
    /// All but the wrapped key.
    bound: Vec<u8>,
    wrapped: Vec<u8>,
}

impl Place {
    /// Has `plugin` wrap the service master key; the bytes of the file, out of which it came again.
    pub(super) fn make(plugin: &str, key: &str, secret: &Secret32) -> Result<Vec<u8>> {
        check_key(key)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(&[0, 0]);
        let check = check_value(secret)?;
        bytes.extend_from_slice(&check);
        let mut random = [0; LENGTHS_AT - RANDOM_AT];
        fill_random(&mut random)?;
        bytes.extend_from_slice(&random);
        // The length of the wrapped key is not known yet, and bound by none but itself.
        for length in [plugin.len(), key.len()] {
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        let mut place = Self {
            plugin: plugin.to_owned(),
            key: key.to_owned(),
            check,
            bound: [&bytes[..], plugin.as_bytes(), key.as_bytes()].concat(),
            wrapped: Vec::new(),
        };
        let asked = Plugin::find(plugin)?;
        place.wrapped = asked.wrap(key, secret.expose(), &place.context())?;
        let length = (place.wrapped.len() as u16).to_be_bytes();
        let made =
            [&bytes, &length[..], plugin.as_bytes(), key.as_bytes(), &place.wrapped].concat();
        let written = Self::parse(&made, Path::new("service.provider"))?;
        match written == place && written.unwrap()? == *secret {
            true => Ok(made),
            false => Err(Error::misuse(
                Subject::Option(format!("pellucid-plugin-{plugin}").into()),
                "the service master key does not come out as it was put in; the key was left where it is",
            )),
        }
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let subject = || Subject::File(path.to_owned());
        let damaged =
            || Error::corrupt(subject(), "not a service master key by a plugin, or damaged");
        if bytes.len() < HEADER_BYTES || bytes[..16] != MAGIC[..] {
            return Err(damaged());
        }
        let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        match number(16) {
            VERSION => {}
            other => {
                let told = format!("version {other} is newer than {VERSION}");
                return Err(Error::unsupported(subject(), told));
            }
        }
        let [plugin, key, wrapped] = [0, 2, 4].map(|at| usize::from(number(LENGTHS_AT + at)));
        let fits = (1..=PLUGIN_BYTES_MOST).contains(&plugin)
            && (1..=KEY_BYTES_MOST).contains(&key)
            && (1..=BYTES_MOST).contains(&wrapped)
            && bytes.len() == HEADER_BYTES + plugin + key + wrapped
            && number(18) == 0;
        if !fits {
            return Err(damaged());
        }
        let (header, rest) = bytes.split_at(HEADER_BYTES);
        let (names, wrapped) = rest.split_at(plugin + key);
        let (plugin, key) = names.split_at(plugin);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| damaged());
        let mut check = [0; CHECK_BYTES];
        check.copy_from_slice(&header[CHECK_AT..RANDOM_AT]);
        Ok(Self {
            plugin: text(plugin)?,
            key: text(key)?,
            check,
            bound: [&header[..LENGTHS_AT + 4], names].concat(),
            wrapped: wrapped.to_vec(),
        })
    }

    /// What the wrapped key is bound to.
    fn context(&self) -> Vec<u8> {
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(b"pellucid/1 service provider");
        hash.update(&self.bound);
        hash.finish().as_ref().to_vec()
    }

    fn unwrap(&self) -> Result<Secret32> {
        let plugin = Plugin::find(&self.plugin)?;
        let secret = plugin.unwrap(&self.key, &self.wrapped, &self.context())?;
        let key = Secret32::from_slice(&secret);
        match key {
            Some(key) if check_value(&key)? == self.check => Ok(key),
            _ => Err(Error::unauthentic(
                Subject::Option(format!("pellucid-plugin-{}", self.plugin).into()),
                "what it unwrapped is not the service master key that was wrapped",
            )),
        }
    }
}

/// The key, with what the file says of its place; none if there is no such file.
pub(super) fn read(home: &Path) -> Result<Option<(Secret32, Place)>> {
    let Some(bytes) = read_bytes(home)? else { return Ok(None) };
    let path = path(home);
    let place = Place::parse(&bytes, &path)?;
    // A file of another instance is refused before anybody is asked for a PIN because of it.
    let master = home.join("keyring/master.key");
    if stated_parent(&master)?.is_some_and(|stated| stated != place.check) {
        return Err(Error::missing_key(
            Subject::Key("service master key"),
            format!(
                "`{}` is not this keyring's, or `keyring/master.key` is not; put back the file that belongs to the other",
                path.shown()
            ),
        ));
    }
    let mut sum = [0; 32];
    sum.copy_from_slice(digest::digest(&digest::SHA256, &bytes).as_ref());
    if let Some((known, key)) = locked(&OPENED).as_ref() {
        if *known == sum {
            return Ok(Some((key.clone(), place)));
        }
    }
    if let Some((known, at, failed)) = locked(&FAILED).as_ref() {
        if *known == sum && at.elapsed() < REMEMBERED {
            return Err(failed.again());
        }
    }
    match place.unwrap() {
        Ok(key) => {
            *locked(&OPENED) = Some((sum, key.clone()));
            Ok(Some((key, place)))
        }
        Err(error) => {
            if let Some(failed) = Failed::of(&error) {
                *locked(&FAILED) = Some((sum, Instant::now(), failed));
            }
            Err(error)
        }
    }
}

/// Whether the file is there, and may be read.
pub(super) fn is_there(home: &Path) -> bool {
    read_bytes(home).is_ok_and(|bytes| bytes.is_some())
}

/// What lies there is `bytes`.
pub(super) fn prove(home: &Path, bytes: &[u8]) -> Result<bool> {
    Ok(read_bytes(home)?.as_deref() == Some(bytes))
}

fn read_bytes(home: &Path) -> Result<Option<Vec<u8>>> {
    let path = path(home);
    let guard = Guard::Secret { what: "the wrapped service master key", group: group(home) };
    let Some(file) = instance::open(&path, guard)? else { return Ok(None) };
    let mut bytes = Vec::new();
    match file.take(FILE_BYTES_MOST as u64 + 1).read_to_end(&mut bytes) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) => Err(Error::io(Subject::File(path), error)),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// An error that can be told twice.
struct Failed {
    make: fn(Subject, pellucid::error::Cause) -> Error,
    subject: Subject,
    cause: String,
}

impl Failed {
    fn of(error: &Error) -> Option<Self> {
        let (make, subject, cause): (fn(_, _) -> _, _, _) = match error {
            Error::MissingKey { subject, cause } => {
                (|subject, cause| Error::MissingKey { subject, cause }, subject, cause.to_string())
            }
            Error::Unauthentic { subject, cause } => {
                (|subject, cause| Error::Unauthentic { subject, cause }, subject, cause.to_string())
            }
            Error::Io { subject, source } => (
                |subject, cause| Error::io(subject, std::io::Error::other(cause.into_owned())),
                subject,
                source.to_string(),
            ),
            _ => return None,
        };
        Some(Self { make, subject: subject.clone(), cause })
    }

    fn again(&self) -> Error {
        (self.make)(self.subject.clone(), self.cause.clone().into())
    }
}

#[cfg(test)]
mod tests;
