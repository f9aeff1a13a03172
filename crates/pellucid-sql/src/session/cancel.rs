//! Cancelling a batch from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use rusqlite::InterruptHandle;

/// Cancels the batch that a session executes: SQLite stops at once, waits end, no further statement begins.
#[derive(Clone)]
pub struct Cancel {
    asked: Arc<AtomicBool>,
    interrupt: Arc<InterruptHandle>,
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cancel").field("asked", &self.is_asked()).finish()
    }
}

impl Cancel {
    pub(super) fn new(interrupt: InterruptHandle) -> Self {
        Self { asked: Arc::default(), interrupt: Arc::new(interrupt) }
    }

    /// Cancels it.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
        self.interrupt.interrupt();
    }

    /// Whether it is to end.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    pub(super) fn begin(&self) {
        self.asked.store(false, Ordering::SeqCst);
    }
}
