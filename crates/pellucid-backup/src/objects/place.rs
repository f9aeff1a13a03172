//! Where in which store: a URL, and what the environment says of the store.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use url::Url;

use super::{io_error, runtime};

/// Variables that stores are configured by, credentials among them.
const VARIABLES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// An object's name in a store.
#[derive(Debug, Clone)]
pub struct Place {
    pub store: Arc<dyn ObjectStore>,
    pub path: Path,
    /// For messages.
    pub url: String,
}

impl Place {
    /// From `s3://bucket/name`, `az://`, `gs://`, `https://`.
    ///
    /// # Errors
    /// `InvalidInput` for a URL that is none, names a secret, or a store that is not known.
    pub fn find(url: &str) -> io::Result<Self> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
        let parsed = Url::parse(url).map_err(|error| invalid(error.to_string()))?;
        if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some()
        {
            return Err(invalid(
                "a URL has no credentials in it: they come from the environment".to_owned(),
            ));
        }
        // The client takes an address that is none for its own defect.
        for (name, value) in variables().filter(|(name, _)| name.contains("_ENDPOINT")) {
            Url::parse(&value).map_err(|error| invalid(format!("`{name}`: {error}")))?;
        }
        let own = |name: &str| VARIABLES.iter().any(|prefix| name.starts_with(prefix));
        let options = variables()
            .filter(|(name, _)| own(name))
            .map(|(name, value)| (name.to_ascii_lowercase(), value));
        let (store, path) = object_store::parse_url_opts(&parsed, options).map_err(io_error)?;
        Ok(Self { store: Arc::from(store), path, url: url.to_owned() })
    }

    /// The same store, another name behind this one's.
    pub fn with_suffix(&self, suffix: &str) -> io::Result<Path> {
        Path::parse(format!("{}{suffix}", self.path))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
    }

    /// Whether there is something of that name.
    ///
    /// # Errors
    /// The store's.
    pub fn exists(&self) -> io::Result<bool> {
        match runtime()?.block_on(self.store.head(&self.path)) {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(io_error(error)),
        }
    }

    /// What an object has in it; none if there is none.
    ///
    /// # Errors
    /// The store's.
    pub fn content(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let read = async { self.store.get(path).await?.bytes().await };
        match runtime()?.block_on(read) {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(io_error(error)),
        }
    }

    /// Creates an object; fails if there is one.
    ///
    /// # Errors
    /// `AlreadyExists`, or the store's.
    pub fn create(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.store.put_opts(path, Bytes::from(bytes).into(), options);
        runtime()?.block_on(put).map(|_| ()).map_err(io_error)
    }

    /// Removes an object; it is no error if there is none.
    ///
    /// # Errors
    /// The store's.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        match runtime()?.block_on(self.store.delete(path)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(io_error(error)),
        }
    }

    /// Whether the store heeds "only if there is none". One that does not would let a backup overwrite another.
    ///
    /// # Errors
    /// `Unsupported` if it does not.
    pub fn check_conditions(&self) -> io::Result<()> {
        let probe = self.with_suffix(&format!(".{}.probe", super::pointer::random_name()?))?;
        match self.create(&probe, b"first".to_vec()) {
            // A second try, because the answer to the first was lost: nobody else knows the name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created?,
        }
        let second = self.create(&probe, b"second".to_vec());
        // What is left of it is five bytes of nobody's.
        let _ = runtime()?.block_on(self.store.delete(&probe));
        match second {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(()) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this store overwrites an object although it was told not to: backups there would \
                 not be safe from each other",
            )),
        }
    }
}

/// The environment, without what is no text: nothing of a store's is called so.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_a_secret_in_it_is_refused_and_not_repeated() {
        for url in ["s3://key:secret@bucket/x", "https://host/x?sig=secret", "not a url", "x://y/z"]
        {
            let refused = Place::find(url).unwrap_err();
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }
}
