//! Media that are objects in stores. Another crate implements the access, because the shim must not
//! link it; a program hands it in.

use std::io;
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

/// Object stores, by URL.
pub trait Store: Send + Sync {
    /// Begins an object of about `expected_bytes` bytes.
    ///
    /// # Errors
    /// The store's error, or that of a store that overwrites although it must not.
    fn create(&self, url: &str, expected_bytes: u64) -> io::Result<Created>;
    /// Whether an object has that name.
    ///
    /// # Errors
    /// The store's.
    fn exists(&self, url: &str) -> io::Result<bool>;
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

/// Returns the URL, if the name is one.
pub fn url_of(path: &Path) -> Option<&str> {
    path.to_str().filter(|name| name.contains("://"))
}

/// Returns the store of a name that is a URL. `None` for a file's name.
///
/// # Errors
/// [`Error::Unsupported`] if this program brings none.
pub fn store_of(path: &Path) -> Result<Option<(&'static dyn Store, &str)>> {
    let Some(url) = url_of(path) else { return Ok(None) };
    match STORE.get() {
        Some(store) => Ok(Some((store.as_ref(), url))),
        None => Err(Error::unsupported(
            Subject::File(path.to_owned()),
            "this program was built without object stores",
        )),
    }
}
