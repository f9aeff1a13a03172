//! SET STATISTICS TIME.

use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

use crate::message::Message;

/// Measures a statement.
pub(super) struct Watch {
    begun: Instant,
    processor: Duration,
}

impl Watch {
    /// Starts to measure: the clock, and the processor time of the process.
    pub fn start() -> Self {
        Self { begun: Instant::now(), processor: processor_time() }
    }

    /// As SQL Server lays it out; processor time is that of all threads of the process.
    pub fn message(&self) -> Message {
        let used = processor_time().saturating_sub(self.processor).as_millis();
        let elapsed = self.begun.elapsed().as_millis();
        Message::text(format!(
            "\n SQL Server Execution Times:\n   CPU time = {used} ms,  elapsed time = {elapsed} ms."
        ))
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
