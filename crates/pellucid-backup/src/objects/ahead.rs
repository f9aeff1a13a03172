//! Reads an object ahead of its reader: parts one behind the other, several requests at once, a bounded number of bytes.
//!
//! How far ahead grows with each part that its reader has to wait for, until the requests only wait for one another: who reads one
//! chunk does not pay for the rest of the object, and a line or a reader that is slow needs little memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use tokio::task::{AbortHandle, JoinError};

use super::object::Object;
use super::runtime;

const MIB: u64 = 1 << 20;
/// Bytes of a request. Many of them at once, not long ones: what a reader waits for is the first.
pub const PART_BYTES: u64 = 2 * MIB;
/// How far ahead of the furthest reader parts are asked for. A line of 1 GB/s has 30 MB under way where a request takes 30 ms, and
/// the bytes of the requests that share it.
pub const AHEAD_BYTES: u64 = 192 * MIB;
/// How far ahead a reading begins, and goes on once its second part is read.
const FIRST_BYTES: u64 = 2 * PART_BYTES;
const LEAST_BYTES: u64 = 4 * PART_BYTES;
/// How far behind the furthest reader a part is kept that was never read to its end.
const BEHIND_BYTES: u64 = 8 * MIB;
/// A part further than that behind the last one is a jump, and no part of one reading.
const REACH_BYTES: u64 = 16 * MIB;
/// A reader that waits no longer than that for a part is fast enough.
const SOON: Duration = Duration::from_micros(500);
/// A part that takes as often as long as the quickest one waits for the line and not for the store: more requests gain nothing.
const CROWDED: u32 = 8;
/// A part that takes longer shares a slow line with too many others, and would run into the client's time limit.
const SLOW: Duration = Duration::from_secs(5);

/// Bytes that all readings ahead of this process hold.
static HELD: AtomicU64 = AtomicU64::new(0);
/// The most that they hold.
pub const ROOM_BYTES: u64 = 224 * MIB;

/// A share of [`ROOM_BYTES`].
#[derive(Debug)]
struct Room(u64);

impl Room {
    fn take(bytes: u64) -> Option<Self> {
        let more = |held: u64| held.checked_add(bytes).filter(|held| *held <= ROOM_BYTES);
        let taken = HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then_some(Self(bytes))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// An error that every reader of an object gets.
#[derive(Debug, Clone)]
pub struct Failure(io::ErrorKind, Arc<str>);

impl Failure {
    /// The error, for one of them.
    pub fn error(&self) -> io::Error {
        io::Error::new(self.0, self.1.to_string())
    }
}

/// Set by the first request that fails: it ends the others.
pub type Failed = Arc<OnceLock<Failure>>;

/// The content of a part and how long it took; none if its request was given up.
pub type Fetch = Shared<BoxFuture<'static, Option<(Bytes, Duration)>>>;

struct Part {
    end: u64,
    fetch: Fetch,
    request: AbortHandle,
    /// Bytes that nobody has read yet.
    unread: u64,
    is_used: bool,
    _room: Room,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.request.abort();
    }
}

/// One reading of an object from some byte on.
pub struct Ahead {
    object: Arc<Object>,
    failed: Failed,
    /// By their first byte.
    parts: BTreeMap<u64, Part>,
    /// The end of the last part that was asked for.
    front: u64,
    /// The end of what was read furthest on.
    furthest: u64,
    /// How many bytes ahead of that parts are asked for.
    ahead: u64,
    /// Parts that somebody has read of.
    used: u32,
    /// The shortest time that a part took.
    quickest: Duration,
}

impl Ahead {
    /// One that begins at byte `from`. Nothing is asked for yet.
    pub fn new(object: Arc<Object>, failed: Failed, from: u64) -> Self {
        let parts = BTreeMap::new();
        let quickest = Duration::MAX;
        Self {
            object,
            failed,
            parts,
            front: from,
            furthest: from,
            ahead: FIRST_BYTES,
            used: 0,
            quickest,
        }
    }

    /// Returns the part that has byte `at`, and its first byte, and asks for parts behind it. `wanted` bytes are wanted from
    /// there on. None if byte `at` is elsewhere, or there is no room.
    ///
    /// # Errors
    /// If no thread for requests could be started.
    pub fn part(&mut self, at: u64, wanted: u64) -> io::Result<Option<(u64, Fetch)>> {
        if at >= self.front && at - self.front > REACH_BYTES {
            return Ok(None);
        }
        while self.front <= at {
            // The first one is as long as what is wanted: perhaps it is all that is.
            let is_first = self.used == 0 && self.parts.is_empty();
            let bytes = if is_first { wanted } else { PART_BYTES };
            if !self.ask(bytes, at)? {
                return Ok(None);
            }
        }
        let found = self.parts.range(..=at).next_back().filter(|(_, part)| at < part.end);
        let Some((begin, part)) = found else { return Ok(None) };
        let (begin, fetch) = (*begin, part.fetch.clone());
        self.furthest = self.furthest.max(part.end.min(at.saturating_add(wanted)));
        self.go_on()?;
        Ok(Some((begin, fetch)))
    }

    /// Takes note of `bytes` bytes that were read from `at` on, how long their part had taken, and how long the reader waited.
    pub fn was_read(&mut self, at: u64, bytes: u64, took: Duration, waited: Duration) {
        let Some((begin, part)) = self.parts.range_mut(..=at).next_back() else { return };
        let begin = *begin;
        part.unread = part.unread.saturating_sub(bytes);
        let is_new = !std::mem::replace(&mut part.is_used, true);
        if part.unread == 0 {
            self.parts.remove(&begin);
        }
        if !is_new {
            return;
        }
        self.used += 1;
        self.quickest = self.quickest.min(took);
        let is_crowded = took > self.quickest.saturating_mul(CROWDED);
        self.ahead = match self.used {
            1 => FIRST_BYTES,
            _ if took > SLOW => (self.ahead / 2).max(PART_BYTES),
            _ if (waited <= SOON || is_crowded) && self.ahead >= LEAST_BYTES => self.ahead,
            _ => (self.ahead * 4).clamp(LEAST_BYTES, AHEAD_BYTES),
        };
    }

    /// Asks for parts as far as may be.
    fn go_on(&mut self) -> io::Result<()> {
        let to = self.furthest.saturating_add(self.ahead);
        while self.front < to && self.front < self.object.bytes() {
            let behind = self.furthest.saturating_sub(BEHIND_BYTES);
            if !self.ask(PART_BYTES, behind)? {
                break;
            }
        }
        Ok(())
    }

    /// Asks for the next part. Parts that end before `spare` make room for it. False if there is none.
    fn ask(&mut self, bytes: u64, spare: u64) -> io::Result<bool> {
        let end = self.object.bytes().min(self.front.saturating_add(bytes));
        let bytes = end.saturating_sub(self.front);
        if bytes == 0 {
            return Ok(false);
        }
        let room = loop {
            if let Some(room) = Room::take(bytes) {
                break room;
            }
            match self.parts.first_entry() {
                Some(first) if first.get().end <= spare => first.remove(),
                _ => return Ok(false),
            };
        };
        let (object, failed, from) = (self.object.clone(), self.failed.clone(), self.front);
        let ended = failed.clone();
        let request = runtime()?.spawn(async move {
            let begun = Instant::now();
            match object.range(from, end).await {
                Ok(bytes) => Some((bytes, begun.elapsed())),
                Err(error) => {
                    let _ = failed.set(Failure(error.kind(), error.to_string().into()));
                    None
                }
            }
        });
        let abort = request.abort_handle();
        let whole = move |done: Result<Option<_>, JoinError>| {
            if done.as_ref().is_err_and(JoinError::is_panic) {
                let _ = ended.set(Failure(io::ErrorKind::Other, "a request came to no end".into()));
            }
            done.ok().flatten()
        };
        let fetch = request.map(whole).boxed().shared();
        let part = Part { end, fetch, request: abort, unread: bytes, is_used: false, _room: room };
        self.parts.insert(from, part);
        self.front = end;
        Ok(true)
    }
}
