//! Backup media in object stores. Behind the feature `objects` because of its dependencies: a build without it has none of
//! them.
//!
//! An object cannot be appended to or renamed, and is there when its upload is complete. So the bytes of a media family go
//! to an object under a name of its own, and the name that was asked for is a small object that points to it, created only
//! if there is none: the commit point, and never an overwrite. Described in docs/format.md, "Objects".

mod ahead;
mod object;
mod place;
mod pointer;
mod source;
mod upload;
mod whole;

use std::io;
use std::sync::OnceLock;

use crate::job::{Content, Created, Store};
use crate::restore::MediaSource;
use tokio::runtime::Runtime;

use place::Place;

/// Object stores by URL, with what the environment says of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObjectStores;

impl Store for ObjectStores {
    fn create(&self, url: &str, expected_bytes: u64) -> io::Result<Created> {
        let place = Place::find(url)?;
        place.check_length()?;
        place.check_conditions()?;
        upload::begin(place, expected_bytes)
    }

    fn create_whole(&self, url: &str) -> io::Result<Created> {
        let place = Place::find(url)?;
        place.check_length()?;
        Ok(whole::begin(place))
    }

    fn check(&self, url: &str) -> io::Result<()> {
        let place = Place::find(url)?;
        place.check_length()?;
        place.check_conditions()
    }

    fn list(&self, url: &str) -> io::Result<Vec<String>> {
        Place::of_many(url)?.list()
    }

    fn remove(&self, url: &str) -> io::Result<()> {
        let place = Place::find(url)?;
        place.remove(&place.path)
    }

    fn exists(&self, url: &str) -> io::Result<bool> {
        Place::find(url)?.exists()
    }

    fn content(&self, url: &str, most: u64) -> io::Result<Option<(Vec<u8>, Content)>> {
        Place::find(url)?.small(most)
    }

    fn replace(&self, url: &str, bytes: Vec<u8>, over: Option<&Content>) -> io::Result<Content> {
        Place::find(url)?.replace(bytes, over)
    }

    fn open(&self, url: &str) -> io::Result<Box<dyn MediaSource>> {
        source::open(Place::find(url)?)
    }
}

/// The one runtime that all requests of this process run on.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().ok()
    });
    made.as_ref().ok_or_else(|| io::Error::other("no thread for requests could be started"))
}

/// An error of a store as the system's: no credentials are in its text.
fn io_error(error: object_store::Error) -> io::Error {
    let kind = match &error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        object_store::Error::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. } => {
            io::ErrorKind::Unsupported
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error.to_string())
}
