//! Ctrl-C: the first one cancels the batch that is being executed, the second one ends the process.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pellucid_sql::session::Cancel;
use signal_hook::consts::signal::SIGINT;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Nothing is executed.
const IDLE: u8 = 0;
/// A batch is being executed.
const BUSY: u8 = 1;
/// It was asked to end.
const ASKED: u8 = 2;

/// Waits for the signal on a thread of its own.
#[derive(Debug, Clone)]
pub struct Interrupts {
    state: Arc<AtomicU8>,
    cancel: Arc<Mutex<Option<Cancel>>>,
}

impl Interrupts {
    /// From now on.
    ///
    /// # Errors
    /// What the system says of a handler or a thread.
    pub fn watch(is_prompt: bool) -> std::io::Result<Self> {
        let watched = Self { state: Arc::default(), cancel: Arc::default() };
        let mut signals = Signals::new([SIGINT])?;
        let seen = watched.clone();
        std::thread::Builder::new().name("interrupts".to_owned()).spawn(move || {
            for signal in signals.forever() {
                let is_answered = seen.cancels() || (is_prompt && seen.is_idle());
                if !is_answered {
                    let _ = emulate_default_handler(signal);
                }
            }
        })?;
        Ok(watched)
    }

    /// What the signal cancels.
    pub fn cancels_by(&self, cancel: Cancel) {
        *self.cancel.lock().unwrap_or_else(PoisonError::into_inner) = Some(cancel);
    }

    /// A batch begins.
    pub fn begin(&self) {
        self.state.store(BUSY, Ordering::SeqCst);
    }

    /// It has ended; whether it was asked to.
    pub fn end(&self) -> bool {
        self.state.swap(IDLE, Ordering::SeqCst) == ASKED
    }

    fn is_idle(&self) -> bool {
        self.state.load(Ordering::SeqCst) == IDLE
    }

    /// Cancels the batch; `false` if there is none, or it was asked before.
    fn cancels(&self) -> bool {
        let is_first =
            self.state.compare_exchange(BUSY, ASKED, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if is_first {
            let cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner);
            cancel.iter().for_each(Cancel::ask);
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_asked_once() {
        let interrupts = Interrupts { state: Arc::default(), cancel: Arc::default() };
        assert!(!interrupts.cancels() && interrupts.is_idle());
        interrupts.begin();
        assert!(interrupts.cancels() && !interrupts.cancels());
        assert!(interrupts.end() && interrupts.is_idle());
        interrupts.begin();
        assert!(!interrupts.end());
    }
}
