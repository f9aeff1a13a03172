//! Checkpoints the WAL on a thread of its own while an exclusive scan goes on writing.
//!
//! A checkpoint opens each frame, seals each page once more and waits for the disk twice: a third
//! of the time of a scan on one thread (docs/design/speed.md, "A scan with nobody else there"). It
//! is an SQLite checkpoint over a connection of its own, as another process would make it
//! (sqlite.org/wal.html, 2.1), so it is as safe as that one.
//!
//! If it fails, the scan makes the checkpoint itself, meets the error again and reports it.

use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TryRecvError};
use std::thread::{Builder, Scope};
use std::time::Duration;

use super::open;
use crate::convert::switch::free_bytes;

/// The bytes by which the log may grow before the scan waits, unless a quarter of the free room is
/// less.
///
/// A writer restarts the log only when all of it is in the database, which never happens beside a
/// writer that does not wait.
const LOG_BYTES: u64 = 64 << 20;

/// The handle of the thread, which ends when the handle is dropped.
pub struct Checkpointer {
    asks: SyncSender<()>,
    /// One answer for each checkpoint that was made. A closed channel means that the thread has
    /// failed.
    answers: Receiver<()>,
    /// Whether the thread was asked and its answer not taken yet.
    asked: bool,
    grown_bytes: u64,
    most_bytes: u64,
}

impl Checkpointer {
    /// Starts the thread. `None` if the system starts none. The thread waits for a lock as long as
    /// `patience`.
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        path: &Path,
        patience: Duration,
    ) -> Option<Self> {
        let (asks, asked) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let of = path.to_owned();
        let work = move || checkpoint(&of, patience, &asked, &answer);
        Builder::new().name("checkpoint".into()).spawn_scoped(scope, work).ok()?;
        let most_bytes = LOG_BYTES.min(free_bytes(path).unwrap_or(0) / 4);
        Some(Self { asks, answers, asked: false, grown_bytes: 0, most_bytes })
    }

    /// Notes that a transaction of `bytes` bytes was committed, and waits if the log has grown too
    /// far. False if the thread has failed.
    pub fn committed(&mut self, bytes: u64) -> bool {
        self.grown_bytes += bytes;
        if self.grown_bytes < self.most_bytes {
            return match self.asked.then(|| self.answers.try_recv()) {
                Some(Err(TryRecvError::Empty)) => true,
                Some(Err(TryRecvError::Disconnected)) => false,
                Some(Ok(())) | None => self.ask(),
            };
        }
        self.grown_bytes = 0;
        // The present checkpoint may have begun before this transaction was committed.
        (!self.asked || self.wait()) && self.ask() && self.wait()
    }

    fn ask(&mut self) -> bool {
        self.asked = true;
        self.asks.send(()).is_ok()
    }

    fn wait(&mut self) -> bool {
        self.asked = false;
        self.answers.recv().is_ok()
    }
}

fn checkpoint(path: &Path, patience: Duration, asked: &Receiver<()>, answer: &SyncSender<()>) {
    let Ok(handle) = open(path, patience) else { return };
    for () in asked {
        // Frames that a reader holds back are left to the next checkpoint.
        let done = handle.number("PRAGMA wal_checkpoint(PASSIVE)");
        if done.is_err() || answer.send(()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_fails_is_noticed() {
        std::thread::scope(|scope| {
            let mut checkpointer =
                Checkpointer::start(scope, Path::new("/not/there.db"), Duration::ZERO).unwrap();
            // With no room known, each transaction is waited for.
            assert!(!checkpointer.committed(1));
            assert!(!checkpointer.committed(1));
        });
    }
}
