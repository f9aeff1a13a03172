//! Brings the WAL into the database on a thread of its own while an exclusive scan writes on.
//!
//! A checkpoint opens each frame, seals each page once more and waits for the disk twice: a third of the time of a scan on
//! one thread (docs/measuring.md, "A scan with nobody else there"). It is SQLite's own, over a connection of its own, as if
//! another process made it (sqlite.org/wal.html, 2.1): what is safe then is safe here.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TryRecvError};
use std::thread::{Builder, Scope};

use super::open;
use crate::convert::ConvertError;
use crate::ffi;

/// A writer begins the log anew only when all of it is in the database, which it never is beside a writer who does not
/// wait. So the scan waits whenever the log has grown by so much.
const LOG_BYTES: u64 = 64 << 20;

type Answer = Result<(), ConvertError>;

pub struct Checkpointer {
    path: PathBuf,
    asks: SyncSender<()>,
    answers: Receiver<Answer>,
    /// It has been asked, and its answer has not been taken yet.
    asked: bool,
    log_bytes: u64,
}

impl Checkpointer {
    /// Starts the thread, which ends when this is dropped; none if the system starts none.
    pub fn start<'scope>(scope: &'scope Scope<'scope, '_>, path: &Path) -> Option<Self> {
        let (asks, asked) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let of = path.to_owned();
        let work = move || checkpoint(&of, &asked, &answer);
        Builder::new().name("checkpoint".into()).spawn_scoped(scope, work).ok()?;
        Some(Self { path: path.to_owned(), asks, answers, asked: false, log_bytes: 0 })
    }

    /// Told that a transaction of so many bytes was committed.
    ///
    /// # Errors
    /// Of an earlier checkpoint.
    pub fn committed(&mut self, bytes: u64) -> Result<(), ConvertError> {
        self.log_bytes += bytes;
        if self.log_bytes < LOG_BYTES {
            if self.asked {
                match self.answers.try_recv() {
                    Ok(answer) => answer?,
                    Err(TryRecvError::Empty) => return Ok(()),
                    Err(TryRecvError::Disconnected) => return Err(self.ended()),
                }
            }
            return self.ask();
        }
        self.log_bytes = 0;
        if self.asked {
            // What it does now may have begun before this transaction was committed.
            self.wait()?;
        }
        self.ask()?;
        self.wait()
    }

    fn ask(&mut self) -> Result<(), ConvertError> {
        self.asked = true;
        // A thread that has ended has said why.
        self.asks.send(()).or_else(|_| self.wait())
    }

    fn wait(&mut self) -> Result<(), ConvertError> {
        self.asked = false;
        self.answers.recv().map_err(|_| self.ended())?
    }

    fn ended(&self) -> ConvertError {
        ConvertError::Sqlite {
            file: self.path.display().to_string(),
            code: ffi::IOERR,
            message: "the thread that checkpoints has ended".to_owned(),
        }
    }
}

fn checkpoint(path: &Path, asked: &Receiver<()>, answer: &SyncSender<Answer>) {
    let handle = match open(path) {
        Ok(handle) => handle,
        Err(error) => {
            // Nobody takes it if the scan is over.
            let _ = answer.send(Err(error));
            return;
        }
    };
    for () in asked {
        // What a reader keeps it from is left to the next one.
        let done = handle.number("PRAGMA wal_checkpoint(PASSIVE)").map(|_| ());
        if answer.send(done).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_its_thread_ends_the_scan() {
        let path = Path::new("/not/there.db");
        std::thread::scope(|scope| {
            let mut checkpointer = Checkpointer::start(scope, path).unwrap();
            let first = checkpointer.committed(LOG_BYTES).unwrap_err();
            assert!(!first.to_string().contains("has ended"), "{first}");
            assert!(checkpointer.committed(1).unwrap_err().to_string().contains("/not/there.db"));
        });
    }
}
