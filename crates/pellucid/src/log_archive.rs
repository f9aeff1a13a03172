//! The archive of logs beside a database: what is known of the chain of its commits, and the heads of kept frames.
//!
//! Layout: docs/format.md, "Log archive".

mod changed;
mod header;
mod mark;
mod segment;
mod state;

pub use changed::{ChangedPages, CHANGED_HEAD_BYTES};
pub use header::check_header;
pub use mark::{Mark, MarkedFrame, MARK_FILE_BYTES, MOST_DESCRIPTION_CHARACTERS};
pub use segment::{Segment, SEGMENT_HEAD_BYTES};
pub use state::{ArchiveState, LogRun, ARCHIVE_SECTORS, ARCHIVE_SECTOR_BYTES};
