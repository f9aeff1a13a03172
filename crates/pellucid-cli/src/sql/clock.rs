//! How long a batch may take (-t), and how long it took (-p).

use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pellucid_sql::session::Cancel;

/// Cancels a batch that takes too long.
pub struct Alarm {
    over: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Alarm {
    /// Rings after `limit`.
    ///
    /// # Errors
    /// What the system says of a thread.
    pub fn set(limit: Duration, cancel: Cancel) -> std::io::Result<Self> {
        let (over, waits) = channel();
        let thread = std::thread::Builder::new().name("timeout".to_owned()).spawn(move || {
            let has_rung = waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if has_rung {
                cancel.ask();
            }
            has_rung
        })?;
        Ok(Self { over, thread })
    }

    /// The batch has ended; whether it was asked to.
    pub fn end(self) -> bool {
        drop(self.over);
        self.thread.join().unwrap_or(false)
    }
}

/// What -p prints of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Statistics {
    /// -p1: with colons.
    pub has_colons: bool,
}

impl Statistics {
    /// Of one that began at `since`.
    pub fn of(self, since: Instant, packet_bytes: &str) -> String {
        let milliseconds = since.elapsed().as_millis().max(1);
        let (count, total) = (1, milliseconds);
        let rate = 1000.0 / milliseconds as f64;
        match self.has_colons {
            true => format!("{packet_bytes}:{count}:{total}:{total}.00:{rate:.2}"),
            false => format!(
                "\nNetwork packet size (bytes): {packet_bytes}\n{count} xact[s]:\n\
                 Clock Time (ms.): total {total:>9}  avg {total:>6}.00 ({rate:.2} xacts per sec.)"
            ),
        }
    }
}
