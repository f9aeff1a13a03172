//! An object that is put by one request, with its name: a set that is small enough to be held in memory.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::place::Place;
use crate::job::{Commit, Created};
use crate::set::MediaSink;

/// How long a request may take at least, and the bytes a second that a line has at least. The client tries again by itself for
/// minutes; whoever waits here holds a lock, and comes back with more.
const PATIENCE: Duration = Duration::from_secs(20);
const LEAST_BYTES_A_SECOND: u64 = 128 * 1024;

/// Begins one.
pub fn begin(place: Place) -> Created {
    let place = Arc::new(Whole { place, bytes: Mutex::default() });
    Created { sink: Box::new(Sink(place.clone())), commit: Box::new(Finish(place)) }
}

struct Whole {
    place: Place,
    bytes: Mutex<Vec<u8>>,
}

impl Whole {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Sink(Arc<Whole>);

struct Finish(Arc<Whole>);

impl MediaSink for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.bytes().extend_from_slice(bytes);
        Ok(())
    }

    /// It is with the store once it has its name.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn name(&self) -> PathBuf {
        self.0.place.url.clone().into()
    }
}

impl Commit for Finish {
    fn complete(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn give_name(&mut self) -> io::Result<()> {
        let place = &self.0.place;
        let bytes = std::mem::take(&mut *self.0.bytes());
        let patience = PATIENCE + Duration::from_secs(bytes.len() as u64 / LEAST_BYTES_A_SECOND);
        match place.create_within(&place.path, bytes.clone(), patience) {
            // A second try of the client's, because the answer to the first was lost.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match place.content(&place.path)? {
                    Some(found) if found == bytes => Ok(()),
                    _ => Err(error),
                }
            }
            created => created,
        }
    }

    /// What may have arrived after all stays: whoever comes next finds it under the name.
    fn take_back(&mut self) -> io::Result<()> {
        Ok(())
    }
}
