//! A media family read from an object, or from any object that has the bytes of one.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::restore::MediaSource;
use bytes::Bytes;
use object_store::path::Path;
use object_store::ObjectStoreExt;
use pellucid::media::MediaHeader;

use super::place::Place;
use super::pointer::{Pointer, MOST_BYTES};
use super::{io_error, runtime};

/// What is read at once where little is asked for: a walk goes from prefix to prefix.
const BLOCK_BYTES: u64 = 64 * 1024;

struct Source {
    place: Place,
    data: Path,
    bytes: u64,
    /// The block that was read last, and where it begins.
    block: Mutex<(u64, Bytes)>,
}

/// Opens what the place names.
pub fn open(place: Place) -> io::Result<Box<dyn MediaSource>> {
    let head = runtime()?.block_on(place.store.head(&place.path)).map_err(io_error)?;
    let start = read(&place, &place.path, 0, head.size.min(MOST_BYTES as u64))?;
    let (data, bytes) = match MediaHeader::begins(&start) {
        // A file that somebody has put there as it was.
        true => (place.path.clone(), head.size),
        false => {
            let pointer = Pointer::parse(&start)?;
            let invalid = |error: object_store::path::Error| {
                io::Error::new(io::ErrorKind::InvalidData, error.to_string())
            };
            (Path::parse(&pointer.data).map_err(invalid)?, pointer.bytes)
        }
    };
    Ok(Box::new(Source { place, data, bytes, block: Mutex::new((0, Bytes::new())) }))
}

fn read(place: &Place, path: &Path, from: u64, to: u64) -> io::Result<Bytes> {
    if from >= to {
        return Ok(Bytes::new());
    }
    runtime()?.block_on(place.store.get_range(path, from..to)).map_err(io_error)
}

impl MediaSource for Source {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = self.bytes.min(offset.saturating_add(into.len() as u64));
        if offset >= end {
            return Ok(0);
        }
        let wanted = (end - offset) as usize;
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        let (begin, bytes) = &*block;
        let has = *begin <= offset && begin + bytes.len() as u64 >= end;
        if !has && wanted as u64 >= BLOCK_BYTES {
            drop(block);
            let bytes = read(&self.place, &self.data, offset, end)?;
            let count = bytes.len().min(wanted);
            into[..count].copy_from_slice(&bytes[..count]);
            return Ok(count);
        }
        if !has {
            let to = self.bytes.min(offset + BLOCK_BYTES.max(wanted as u64));
            *block = (offset, read(&self.place, &self.data, offset, to)?);
        }
        let (begin, bytes) = &*block;
        let rest = &bytes[(offset - begin) as usize..];
        let count = rest.len().min(wanted);
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn name(&self) -> PathBuf {
        self.place.url.clone().into()
    }
}
