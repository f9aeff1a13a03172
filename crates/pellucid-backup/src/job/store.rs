//! Media that are objects in stores. Another crate implements the access, because the shim must not
//! link it; a program hands it in.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use pellucid::{Error, Result, Subject};

use crate::restore::MediaSource;
use crate::set::MediaSink;

/// An object that is being written.
pub struct Created {
    /// The sink of its bytes.
    pub sink: Box<dyn MediaSink>,
    /// Gives the object its name. Dropped before that, it leaves nothing of the object.
    pub commit: Box<dyn Commit>,
}

/// The end of an object, in two steps, so that of several objects all are whole before the first has a name.
pub trait Commit: Send {
    /// Returns when all bytes are in the store. No object has the name yet.
    ///
    /// # Errors
    /// The store's error; nothing of the object is left then.
    fn complete(&mut self) -> io::Result<()>;
    /// Gives a complete object its name, if no object has it.
    ///
    /// # Errors
    /// The store's.
    fn give_name(&mut self) -> io::Result<()>;
    /// Removes the name and the bytes again, if the name is this object's.
    ///
    /// # Errors
    /// The store's error; the object keeps its name then.
    fn take_back(&mut self) -> io::Result<()>;
}

impl std::fmt::Debug for Created {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Created").field("name", &self.sink.name()).finish_non_exhaustive()
    }
}

/// Which content of an object was read or written, in the store's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Its ETag (RFC 9110, 8.8.3).
    pub tag: Option<String>,
    /// The number of a version, where the store counts them.
    pub version: Option<String>,
}

/// Object stores, by URL.
pub trait Store: Send + Sync {
    /// Begins an object of about `expected_bytes` bytes.
    ///
    /// # Errors
    /// The store's error, or that of a store that overwrites although it must not.
    fn create(&self, url: &str, expected_bytes: u64) -> io::Result<Created>;
    /// Begins an object that is put by one request, when it gets its name. All of it is in memory until then, and nothing is
    /// asked before: whether the store heeds conditions says [`Store::check`].
    ///
    /// # Errors
    /// For a URL that is none.
    fn create_whole(&self, url: &str) -> io::Result<Created>;
    /// Whether the store refuses to overwrite an object of that name where it is told not to.
    ///
    /// # Errors
    /// `Unsupported` if it overwrites; the store's.
    fn check(&self, url: &str) -> io::Result<()>;
    /// The names of all objects behind a URL and a slash, without that.
    ///
    /// # Errors
    /// The store's.
    fn list(&self, url: &str) -> io::Result<Vec<String>>;
    /// Removes an object. It is no error if there is none.
    ///
    /// # Errors
    /// The store's.
    fn remove(&self, url: &str) -> io::Result<()>;
    /// Whether an object has that name.
    ///
    /// # Errors
    /// The store's.
    fn exists(&self, url: &str) -> io::Result<bool>;
    /// The bytes of a small object and which content that is; none if there is none.
    ///
    /// # Errors
    /// `InvalidData` for more than `most` bytes; the store's.
    fn content(&self, url: &str, most: u64) -> io::Result<Option<(Vec<u8>, Content)>>;
    /// Puts an object in the place of the content `over`, or where there is none, by one request that says so.
    ///
    /// # Errors
    /// `AlreadyExists` if another content is there by now; `Unsupported` if the store cannot be told that; the store's.
    fn replace(&self, url: &str, bytes: Vec<u8>, over: Option<&Content>) -> io::Result<Content>;
    /// Opens an object for reading.
    ///
    /// # Errors
    /// The store's.
    fn open(&self, url: &str) -> io::Result<Box<dyn MediaSource>>;
}

static STORE: OnceLock<Box<dyn Store>> = OnceLock::new();

/// Sets the store that media with URLs for names are written to and read from, in this process.
///
/// # Errors
/// [`Error::Misuse`] if there is one already.
pub fn use_store(store: Box<dyn Store>) -> Result<()> {
    let twice = |_| Error::misuse(Subject::Option("object store".into()), "there is one already");
    STORE.set(store).map_err(twice)
}

/// Returns the URL, if the name is one: a scheme, then `://`. A path with these signs further on is a file's.
pub fn url_of(path: &Path) -> Option<&str> {
    path.to_str().filter(|name| begins_as_url(name.as_bytes()))
}

/// Whether a name begins with a scheme (RFC 3986, 3.1) and `://`.
fn begins_as_url(name: &[u8]) -> bool {
    let Some(end) = name.windows(3).position(|signs| signs == b"://") else { return false };
    let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    name[0].is_ascii_alphabetic() && name[..end].iter().all(is_of_scheme)
}

/// The scheme of a name that would be a URL with another slash.
fn one_slash(name: &[u8]) -> Option<&'static str> {
    const SCHEMES: [&str; 11] =
        ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https", "file"];
    SCHEMES.into_iter().find(|scheme| {
        let behind = name.get(scheme.len()..).unwrap_or_default();
        name.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
            && behind.starts_with(b":/")
            && !behind.starts_with(b"://")
    })
}

/// Refuses a URL that has one slash, or is no text: as a file's name it would make directories, or name one in silence.
///
/// # Errors
/// [`Error::Misuse`] naming the slash or the byte.
pub fn refuse_odd_url(path: &Path) -> Result<()> {
    let name = path.as_os_str().as_bytes();
    if let Some(scheme) = one_slash(name) {
        return Err(Error::misuse(
            Subject::File(path.to_owned()),
            format!(
                "a URL has two slashes: `{scheme}://`; a file of this name is `./{scheme}:/..`"
            ),
        ));
    }
    let odd = name.iter().find(|byte| !byte.is_ascii()).filter(|_| path.to_str().is_none());
    match odd {
        Some(byte) if begins_as_url(name) => Err(Error::misuse(
            Subject::File(path.to_owned()),
            format!("a URL is text in UTF-8: a byte of it, {byte:02X} in hexadecimal, is `%{byte:02X}` there"),
        )),
        _ => Ok(()),
    }
}

/// Returns the store of a name that is a URL. `None` for a file's name.
///
/// # Errors
/// [`Error::Unsupported`] if this program brings none.
pub fn store_of(path: &Path) -> Result<Option<(&'static dyn Store, &str)>> {
    refuse_odd_url(path)?;
    let Some(url) = url_of(path) else { return Ok(None) };
    match STORE.get() {
        Some(store) => Ok(Some((store.as_ref(), url))),
        None => Err(Error::unsupported(
            Subject::File(path.to_owned()),
            "this program was built without object stores",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_scheme_in_front_makes_a_url_and_odd_bytes_are_named() {
        for (name, is_url) in [
            ("s3://bucket/a.bak", true),
            ("file:///tmp/a.bak", true),
            ("./s3://bucket/a.bak", false),
            ("a b://c", false),
            ("://x", false),
            ("1://x", false),
            ("a/b://c", false),
            ("file:x", false),
            ("", false),
        ] {
            assert_eq!(url_of(Path::new(name)).is_some(), is_url, "{name}");
        }
        let odd = |bytes: &'static [u8]| Path::new(OsStr::from_bytes(bytes));
        let refused = store_of(odd(b"s3://bucket/caf\xe9.bak")).err().unwrap().to_string();
        assert!(refused.contains("%E9"), "{refused}");
        assert!(store_of(odd(b"./s3://bucket/caf\xe9.bak")).unwrap().is_none());
    }

    #[test]
    fn a_url_with_one_slash_is_no_path() {
        for name in ["s3:/bucket/a.bak", "S3:/bucket/a.bak", "file:/srv/a.bak", "https:/x"] {
            let refused = store_of(Path::new(name)).err().unwrap().to_string();
            assert!(refused.contains("two slashes"), "{refused}");
        }
        for name in ["./s3:/bucket/a.bak", "s3:bucket", "s3:", "s3", "s4:/x", ":/x", "files:/x"] {
            assert!(store_of(Path::new(name)).unwrap().is_none(), "{name}");
        }
    }
}
