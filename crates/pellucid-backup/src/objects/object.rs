//! One object of a store, pinned: each range that is read of it is of the object that was found first, and has the bytes that
//! were asked for, or is an error.
//!
//! A store is not trusted. What is read is authenticated elsewhere; this bounds what is held of an answer, and tells an object
//! that was exchanged between two requests.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetResult, GetResultPayload, ObjectMeta, ObjectStore};

use super::io_error;

/// An object as its first answer described it.
#[derive(Debug, Clone)]
pub struct Object {
    store: Arc<dyn ObjectStore>,
    found: ObjectMeta,
}

impl Object {
    /// Reads bytes `0..to` of an object and pins it. Returns fewer bytes only if it has no more.
    ///
    /// # Errors
    /// The store's, naming the object and the range.
    pub async fn begin(
        store: Arc<dyn ObjectStore>,
        path: &Path,
        to: u64,
    ) -> io::Result<(Self, Bytes)> {
        let about = |error| about(path, 0, to, error);
        let options = GetOptions { range: Some((0..to).into()), ..GetOptions::default() };
        let answer = store.get_opts(path, options).await.map_err(io_error).map_err(about)?;
        let found = answer.meta.clone();
        let bytes = content(answer, 0, to.min(found.size)).await.map_err(about)?;
        Ok((Self { store, found }, bytes))
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.found.size
    }

    /// Its name in the store.
    pub fn path(&self) -> &Path {
        &self.found.location
    }

    /// Reads bytes `from..to`, all of them.
    ///
    /// # Errors
    /// The store's, naming the object and the range; `InvalidData` if the object is another one by now, or the answer has fewer
    /// bytes or more.
    pub async fn range(&self, from: u64, to: u64) -> io::Result<Bytes> {
        self.read(from, to).await.map_err(|error| about(&self.found.location, from, to, error))
    }

    async fn read(&self, from: u64, to: u64) -> io::Result<Bytes> {
        // Weak tags never match such a condition (RFC 9110, 13.1.1); the answer's is compared all the same.
        let strong = self.found.e_tag.as_ref().filter(|tag| !tag.starts_with("W/"));
        let options = GetOptions {
            range: Some((from..to).into()),
            if_match: strong.cloned(),
            ..GetOptions::default()
        };
        let answer = self.store.get_opts(&self.found.location, options).await;
        let answer = answer.map_err(|error| match error {
            object_store::Error::Precondition { .. } => changed(),
            error => io_error(error),
        })?;
        if !self.is_same(&answer.meta) {
            return Err(changed());
        }
        content(answer, from, to).await
    }

    fn is_same(&self, now: &ObjectMeta) -> bool {
        let (before, dated) = (&self.found, self.found.last_modified == now.last_modified);
        before.size == now.size && before.e_tag == now.e_tag && (now.e_tag.is_some() || dated)
    }
}

/// Collects an answer, and no more of it than was asked for.
async fn content(answer: GetResult, from: u64, to: u64) -> io::Result<Bytes> {
    let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    if answer.range != (from..to) {
        let (first, end) = (answer.range.start, answer.range.end);
        return Err(wrong(format!("the store answered with bytes {first} to {end}")));
    }
    let most = (to - from) as usize;
    let bytes = match answer.payload {
        GetResultPayload::File(..) => answer.bytes().await.map_err(io_error)?,
        GetResultPayload::Stream(mut stream) => {
            let mut bytes = BytesMut::with_capacity(most);
            while let Some(more) = stream.try_next().await.map_err(io_error)? {
                if more.len() > most - bytes.len() {
                    return Err(wrong(format!("the store sent more than {most} bytes")));
                }
                bytes.extend_from_slice(&more);
            }
            bytes.freeze()
        }
    };
    match bytes.len() == most {
        true => Ok(bytes),
        false => Err(wrong(format!("the store sent {} bytes of {most}", bytes.len()))),
    }
}

fn changed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the object was changed while it was read: read it again",
    )
}

/// Names the object and the range.
fn about(path: &Path, from: u64, to: u64, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("object `{path}`, bytes {from} to {to}: {error}"))
}
