//! A media family read from an object, or from any object that has the bytes of one.
//!
//! A request takes as long for one byte as for many. Small reads get a block, which is kept; who reads on gets what was
//! [read ahead](super::ahead).

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::restore::MediaSource;
use bytes::Bytes;
use object_store::path::Path;
use object_store::ObjectStoreExt;
use pellucid::media::MediaHeader;

use super::ahead::{Ahead, Failed, Fetch};
use super::object::Object;
use super::place::Place;
use super::pointer::{Pointer, MOST_BYTES};
use super::runtime;

/// What is read at once where little is asked for: media header and set header, or index and manifest of a small set.
const BLOCK_BYTES: u64 = 64 * 1024;
/// How many of them are kept.
const BLOCKS: usize = 4;
/// Small reads that go forward in steps of at most [`STEP_BYTES`] are a walk from chunk to chunk after so many.
const STEPS: u32 = 4;
const STEP_BYTES: u64 = 8 << 20;

struct Source {
    url: String,
    object: Arc<Object>,
    failed: Failed,
    state: Mutex<State>,
}

struct State {
    /// Blocks and where they begin; the newest is the last.
    blocks: VecDeque<(u64, Bytes)>,
    ahead: Option<Ahead>,
    /// Whether a long read has missed what is read ahead, and none has found anything there since.
    has_missed: bool,
    last_small: u64,
    steps: u32,
}

/// Opens what the place names.
pub fn open(place: Place) -> io::Result<Box<dyn MediaSource>> {
    runtime()?.block_on(find(place)).map(|source| Box::new(source) as Box<dyn MediaSource>)
}

async fn find(place: Place) -> io::Result<Source> {
    let begun = Object::begin(place.store.clone(), &place.path, BLOCK_BYTES).await;
    let (object, start) = match begun {
        Ok(begun) => begun,
        // A store refuses every range of an empty object, and the answer to a range does not say what is missing.
        Err(error) => {
            let head = match place.store.head(&place.path).await {
                Err(object_store::Error::NotFound { .. }) => return Err(place.why_nothing().await),
                head => head.map_err(|error| place.tell(error))?,
            };
            return Err(match (head.size, Pointer::parse(&[])) {
                (0, Err(empty)) => empty,
                _ => error,
            });
        }
    };
    if MediaHeader::begins(&start) {
        // A file that somebody has put there as it was.
        return Ok(Source::of(place.url, object, start));
    }
    let pointer = Pointer::parse(&start[..start.len().min(MOST_BYTES)])?;
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let data = Path::parse(&pointer.data).map_err(|error| invalid(error.to_string()))?;
    let (object, start) = Object::begin(place.store.clone(), &data, BLOCK_BYTES).await?;
    if object.bytes() != pointer.bytes {
        return Err(invalid(format!(
            "object `{}` has {} bytes, and {} were written",
            object.path(),
            object.bytes(),
            pointer.bytes
        )));
    }
    Ok(Source::of(place.url, object, start))
}

/// Where the next bytes come from.
enum Next {
    /// They are there.
    Here(Bytes),
    /// They come with a part that begins at this byte.
    Part(u64, Fetch),
    /// They have to be asked for: bytes `from..to`, and whether they are kept.
    Ask { from: u64, to: u64, keep: bool },
}

impl Source {
    fn of(url: String, object: Object, start: Bytes) -> Self {
        let state = State {
            blocks: VecDeque::from([(0, start)]),
            ahead: None,
            has_missed: false,
            last_small: 0,
            steps: 0,
        };
        let (object, state) = (Arc::new(object), Mutex::new(state));
        Self { url, object, failed: Failed::default(), state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Some of the `wanted` bytes from `at` on, at least one.
    fn some(&self, at: u64, wanted: u64) -> io::Result<Bytes> {
        loop {
            if let Some(failure) = self.failed.get() {
                // What is under way is given up.
                self.state().ahead = None;
                return Err(failure.error());
            }
            let next = self.next(at, wanted)?;
            match next {
                Next::Here(bytes) => return Ok(bytes),
                Next::Part(begin, fetch) => {
                    let begun = Instant::now();
                    let Some((bytes, took)) = runtime()?.block_on(fetch) else { continue };
                    let waited = begun.elapsed();
                    let rest = slice(&bytes, at - begin, wanted);
                    if let Some(ahead) = &mut self.state().ahead {
                        ahead.was_read(at, rest.len() as u64, took, waited);
                    }
                    return Ok(rest);
                }
                Next::Ask { from, to, keep } => {
                    let bytes = runtime()?.block_on(self.object.range(from, to))?;
                    if keep {
                        let mut state = self.state();
                        state.blocks.push_back((from, bytes.clone()));
                        if state.blocks.len() > BLOCKS {
                            state.blocks.pop_front();
                        }
                    }
                    return Ok(slice(&bytes, at - from, wanted));
                }
            }
        }
    }

    fn next(&self, at: u64, wanted: u64) -> io::Result<Next> {
        let mut state = self.state();
        let of_block = |(begin, bytes): &(u64, Bytes)| {
            let from = at.checked_sub(*begin).filter(|from| *from < bytes.len() as u64)?;
            Some(slice(bytes, from, wanted))
        };
        if let Some(bytes) = state.blocks.iter().find_map(of_block) {
            return Ok(Next::Here(bytes));
        }
        if let Some(ahead) = &mut state.ahead {
            if let Some((begin, fetch)) = ahead.part(at, wanted)? {
                state.has_missed = false;
                return Ok(Next::Part(begin, fetch));
            }
        }
        let is_long = wanted >= BLOCK_BYTES;
        if is_long && (state.ahead.is_none() || state.has_missed) || state.walks(at, is_long) {
            let mut ahead = Ahead::new(self.object.clone(), self.failed.clone(), at);
            let part = ahead.part(at, wanted.max(BLOCK_BYTES))?;
            state.ahead = Some(ahead);
            state.has_missed = false;
            if let Some((begin, fetch)) = part {
                return Ok(Next::Part(begin, fetch));
            }
        }
        state.has_missed |= is_long;
        let to = self.object.bytes().min(at.saturating_add(wanted.max(BLOCK_BYTES)));
        // The last block ends with the object: index and manifest are there.
        let from = if is_long { at } else { at.min(to.saturating_sub(BLOCK_BYTES)) };
        Ok(Next::Ask { from, to, keep: !is_long })
    }
}

impl State {
    /// Whether small reads go from chunk to chunk.
    fn walks(&mut self, at: u64, is_long: bool) -> bool {
        if is_long {
            return false;
        }
        let step = at.checked_sub(self.last_small).filter(|step| (1..=STEP_BYTES).contains(step));
        self.steps = if step.is_some() { self.steps + 1 } else { 0 };
        self.last_small = at;
        self.steps >= STEPS
    }
}

/// At most `most` bytes from `from` on.
fn slice(bytes: &Bytes, from: u64, most: u64) -> Bytes {
    let from = bytes.len().min(from as usize);
    let to = bytes.len().min(from.saturating_add(most as usize));
    bytes.slice(from..to)
}

impl MediaSource for Source {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = self.object.bytes().min(offset.saturating_add(into.len() as u64));
        let mut at = offset;
        while at < end {
            let bytes = self.some(at, end - at)?;
            let (from, count) = ((at - offset) as usize, bytes.len());
            into[from..from + count].copy_from_slice(&bytes);
            at += count as u64;
        }
        Ok((at - offset) as usize)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.object.bytes())
    }

    fn name(&self) -> PathBuf {
        self.url.clone().into()
    }

    fn is_far(&self) -> bool {
        true
    }
}
