//! When things happened to a container.

use super::Header;

/// In seconds since 1970; what never changed is as old as the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dates {
    /// It was made.
    pub created: u64,
    /// Its current DEK was made.
    pub regenerated: u64,
    /// A DEK or a protector changed last.
    pub modified: u64,
    /// Encryption was switched on or off last.
    pub set: u64,
    /// Its scan began, stopped, went on or ended last; none if there never was one.
    pub scan_modified: Option<u64>,
}

impl Header {
    /// What the header says of them.
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
