//! Brings the WAL into the database on a thread of its own while an exclusive scan writes on.
//!
//! A checkpoint opens each frame, seals each page once more and waits for the disk twice: a third of the time of a scan on
//! one thread (docs/design/speed.md, "A scan with nobody else there"). It is SQLite's own, over a connection of its own, as if
//! another process made it (sqlite.org/wal.html, 2.1): what is safe then is safe here.
//!
//! It only helps. What it fails to do, the scan does by itself: there an error is met again, and told.

use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TryRecvError};
use std::thread::{Builder, Scope};
use std::time::Duration;

use super::open;
use crate::convert::switch::free_bytes;

/// A writer begins the log anew only when all of it is in the database, which it never is beside a writer who does not
/// wait. So the scan waits whenever the log has grown by so much, or by a quarter of the room that there is.
const LOG_BYTES: u64 = 64 << 20;

/// The thread ends when this is dropped.
pub struct Checkpointer {
    asks: SyncSender<()>,
    /// One for each checkpoint that was made; the thread has failed when there are no more.
    answers: Receiver<()>,
    /// It has been asked, and its answer has not been taken yet.
    asked: bool,
    grown_bytes: u64,
    most_bytes: u64,
}

impl Checkpointer {
    /// Starts the thread; none if the system starts none. For a lock it waits as long as `patience`.
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

    /// Told that a transaction of so many bytes was committed. False if the thread has failed.
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
        // What it does now may have begun before this transaction was committed.
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
        // What a reader keeps it from is left to the next one.
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
