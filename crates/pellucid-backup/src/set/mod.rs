//! Writes backup sets: pages in, media out, compressed and sealed in one pass on several cores.
//!
//! One thread reads pages in order ([`PageSource`]), workers compress and seal chunks, and each media family has a writer
//! ([`MediaSink`]). The family with the least waiting takes the next chunk, so that the slowest device does not hold
//! up the others. A fixed number of chunks is under way, whatever the size of the database.

mod expected;
mod families;
mod log;
mod pipeline;
mod pool;
mod sink;
mod spool;
mod worker;
mod write;

pub use expected::Expected;
pub use families::FamilyTarget;
#[cfg(test)]
pub use log::testing::write_chunks_as_given;
pub use log::{write_log_set, LogSource};
pub use sink::{lock_media, unlock_media, FileSink, MediaSink, NullSink, StdoutSink};
pub use spool::{nameless, Spool};
pub use write::{write_set, write_set_telling, Against, Base, NewSet, Options, Written};

use pellucid::error::Result;

/// Where pages come from: one moment of a database, as SQLite sees it.
pub trait PageSource {
    /// Reads pages from number `first` (from 1) on, as many as fit into `into`.
    ///
    /// # Errors
    /// What is wrong with them; a backup that goes on after errors then asks for them one by one.
    fn read(&mut self, first: u32, into: &mut [u8]) -> Result<()>;
}
