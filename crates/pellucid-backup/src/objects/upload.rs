//! A media family on its way into an object: equal parts, some at once, and nothing left of one that failed.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::job::{Commit, Created};
use crate::set::MediaSink;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, UploadPart};
use tokio::task::JoinSet;

use super::place::Place;
use super::pointer::{random_name, Pointer};
use super::{io_error, runtime};

const MIB: u64 = 1 << 20;
/// What every store takes: all parts but the last are equally long (Cloudflare R2 wants that), and no more than so many.
const MOST_PARTS: u64 = 10_000;
const LEAST_PART_BYTES: u64 = 8 * MIB;
const MOST_PART_BYTES: u64 = 512 * MIB;
/// So many parts are under way at once, and in memory.
const AT_ONCE: usize = 3;

/// The length of parts for an object of so many bytes.
///
/// # Errors
/// `InvalidInput` if no length is enough.
pub fn part_bytes(expected: u64) -> io::Result<u64> {
    // Incompressible chunks grow by prefixes and tags; a sixteenth is far more.
    let needed = (expected + expected / 16).div_ceil(MOST_PARTS - 1);
    let bytes = needed.max(LEAST_PART_BYTES).next_multiple_of(MIB);
    if bytes > MOST_PART_BYTES {
        let most = MOST_PART_BYTES * MOST_PARTS;
        let what = format!("{expected} bytes are more than {most}, which an object can have");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    Ok(bytes)
}

struct Upload {
    place: Place,
    data: Path,
    part_bytes: usize,
    parts: u64,
    buffer: Vec<u8>,
    bytes: u64,
    upload: Option<Box<dyn MultipartUpload>>,
    under_way: JoinSet<object_store::Result<()>>,
    /// All bytes are in the store, and nothing points to them.
    nameless: bool,
}

/// Begins one. The object that points to it is created when the upload is complete.
pub fn begin(place: Place, expected: u64) -> io::Result<Created> {
    // Before anything is there that would have to be taken back.
    let part_bytes = part_bytes(expected)? as usize;
    let data = place.with_suffix(&format!(".{}", random_name()?))?;
    place.keep_to_oneself();
    let upload = runtime()?.block_on(place.store.put_multipart(&data)).map_err(io_error)?;
    let upload = Arc::new(Mutex::new(Upload {
        part_bytes,
        parts: 0,
        buffer: Vec::new(),
        bytes: 0,
        upload: Some(upload),
        under_way: JoinSet::new(),
        nameless: false,
        place,
        data,
    }));
    Ok(Created { sink: Box::new(Sink(upload.clone())), commit: Box::new(Finish(upload)) })
}

fn lock(upload: &Mutex<Upload>) -> std::sync::MutexGuard<'_, Upload> {
    upload.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Sink(Arc<Mutex<Upload>>);

struct Finish(Arc<Mutex<Upload>>);

impl Commit for Finish {
    fn complete(&mut self) -> io::Result<()> {
        lock(&self.0).complete()
    }

    fn give_name(&mut self) -> io::Result<()> {
        lock(&self.0).point()
    }

    fn take_back(&mut self) -> io::Result<()> {
        lock(&self.0).take_back()
    }
}

impl MediaSink for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        lock(&self.0).write(bytes)
    }

    /// Parts are safe with the store once they are answered; those that are not full yet go with the last one.
    fn sync(&mut self) -> io::Result<()> {
        lock(&self.0).wait_for(0)
    }

    fn name(&self) -> PathBuf {
        lock(&self.0).place.url.clone().into()
    }
}

impl Upload {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = self.part_bytes - self.buffer.len();
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = rest;
            if self.buffer.len() == self.part_bytes {
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        self.wait_for(AT_ONCE - 1)?;
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return Err(io::Error::other("more parts than an object can have"));
        }
        let part = Bytes::from(std::mem::take(&mut self.buffer));
        let upload = self.upload.as_mut().ok_or_else(gone)?;
        let sent: UploadPart = upload.put_part(part.into());
        self.under_way.spawn_on(sent, runtime()?.handle());
        Ok(())
    }

    /// Waits until at most so many parts are under way; tells the first one that failed.
    fn wait_for(&mut self, most: usize) -> io::Result<()> {
        while self.under_way.len() > most {
            let done = runtime()?.block_on(self.under_way.join_next());
            match done {
                Some(Ok(sent)) => sent.map_err(io_error)?,
                Some(Err(error)) => return Err(io::Error::other(error.to_string())),
                None => break,
            }
        }
        Ok(())
    }

    /// Completes the upload and looks whether all of it arrived.
    fn complete(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.send()?;
        }
        self.wait_for(0)?;
        let mut upload = self.upload.take().ok_or_else(gone)?;
        let completed = runtime()?.block_on(upload.complete());
        let arrived = runtime()?.block_on(self.place.store.head(&self.data));
        // Where only the answer was lost the object is there all the same.
        if arrived.as_ref().is_ok_and(|found| found.size == self.bytes) {
            self.nameless = true;
            return Ok(());
        }
        if completed.is_err() {
            // The parts would be paid for.
            let _ = runtime()?.block_on(upload.abort());
        }
        self.remove();
        match (completed, arrived) {
            (Err(error), _) | (_, Err(error)) => Err(io_error(error)),
            (_, Ok(found)) => Err(io::Error::other(format!(
                "the store has {} bytes of {}: a part was lost",
                found.size, self.bytes
            ))),
        }
    }

    /// Creates the object that points to the bytes.
    fn point(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.nameless) {
            return Err(gone());
        }
        let pointer = Pointer::new(&self.data, self.bytes).encode()?;
        let Err(error) = self.place.create(&self.place.path, pointer.clone()) else {
            return Ok(());
        };
        match self.place.content(&self.place.path) {
            // It was created, and the answer was lost: what it points to is nobody else's.
            Ok(Some(found)) if found == pointer => Ok(()),
            Ok(_) => {
                self.remove();
                Err(error)
            }
            Err(_) => Err(io::Error::new(
                error.kind(),
                format!("{error}; whether it was created nevertheless is not known: `pellucid verify` says"),
            )),
        }
    }

    /// Removes the object that points to the bytes, if it is this one's, then the bytes. What cannot be looked at stays: a
    /// name without bytes would be worse than one with.
    fn take_back(&mut self) -> io::Result<()> {
        let pointer = Pointer::new(&self.data, self.bytes).encode()?;
        if self.place.content(&self.place.path)?.is_some_and(|found| found == pointer) {
            self.place.remove(&self.place.path)?;
            self.remove();
        }
        Ok(())
    }

    /// Removes bytes that nothing points to.
    fn remove(&self) {
        if let Ok(runtime) = runtime() {
            // What cannot be removed is the store's to expire.
            let _ = runtime.block_on(self.place.store.delete(&self.data));
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the upload has ended")
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.under_way.abort_all();
        if let (Some(mut upload), Ok(runtime)) = (self.upload.take(), runtime()) {
            // What cannot be taken back is the store's to expire.
            let _ = runtime.block_on(upload.abort());
        }
        if self.nameless {
            self.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_parts_are_enough_for_every_size_that_is_taken() {
        assert_eq!(part_bytes(0).unwrap(), LEAST_PART_BYTES);
        for gib in [1, 10, 79, 80, 100, 500, 1000, 4000] {
            let bytes = gib << 30;
            let part = part_bytes(bytes).unwrap();
            let stored = bytes + bytes / 20;
            assert!(stored.div_ceil(part) <= MOST_PARTS, "{gib} GiB in parts of {part}");
            assert!(part % MIB == 0 && part >= LEAST_PART_BYTES);
        }
        assert!(part_bytes(6 << 40).is_err());
    }
}
