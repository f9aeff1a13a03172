//! The dates of a container: when it, its keys and its scan changed.

use super::Header;

/// Dates in seconds since 1970. A part that never changed has the date of the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dates {
    /// When the container was made.
    pub created: u64,
    /// When its current DEK was made.
    pub regenerated: u64,
    /// When a DEK or a protector changed last.
    pub modified: u64,
    /// When encryption was switched on or off last.
    pub set: u64,
    /// When its scan began, stopped, went on or ended last; `None` if there never was one.
    pub scan_modified: Option<u64>,
}

impl Header {
    /// Returns the dates in the header.
    pub fn dates(&self) -> Dates {
        let since = |at: u64| if at == 0 { self.created } else { at };
        Dates {
            created: self.created,
            regenerated: since(self.scan.regenerated),
            modified: since(self.scan.keys_modified),
            set: since(self.scan.set),
            scan_modified: Some(self.scan.modified).filter(|at| *at != 0),
        }
    }
}
