//! Object classes: what a byte range of a file is, for the table of hits.

use std::collections::BTreeMap;

/// What can be lost or struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Page,
    SectorZero,
    WearOfPages,
    WearOfLog,
    HeaderCopy0,
    HeaderCopy1,
    WalHeader,
    WalFrame,
    JournalHeader,
    JournalRecord,
    SuperJournal,
    ConversionCopy,
    TemporaryFile,
    WalIndex,
    FileSize,
    ArchiveState,
    KeptFrames,
    ArchiveFile,
    DirectoryEntry,
    Lock,
    Memory,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Self::Page => "database page",
            Self::SectorZero => "sector 0",
            Self::WearOfPages => "wear of pages",
            Self::WearOfLog => "wear of log",
            Self::HeaderCopy0 => "header copy 0",
            Self::HeaderCopy1 => "header copy 1",
            Self::WalHeader => "WAL header",
            Self::WalFrame => "WAL frame",
            Self::JournalHeader => "journal header",
            Self::JournalRecord => "journal record",
            Self::SuperJournal => "super-journal",
            Self::ConversionCopy => "conversion copy",
            Self::TemporaryFile => "temporary file",
            Self::WalIndex => "WAL index",
            Self::FileSize => "file size",
            Self::ArchiveState => "state of the log archive",
            Self::KeptFrames => "kept frames",
            Self::ArchiveFile => "other file of the log archive",
            Self::DirectoryEntry => "directory entry",
            Self::Lock => "lock",
            Self::Memory => "memory",
        }
    }
}

/// What a file is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Main,
    Journal,
    Wal,
    Super,
    Copy,
    Temporary,
    Index,
    ArchiveState,
    KeptFrames,
    /// A mark, the list of changed pages, the copy of the header.
    ArchiveFile,
}

impl Role {
    pub fn of(name: &str) -> Self {
        if name.ends_with("-log/state") {
            Self::ArchiveState
        } else if name.contains("-log/") && name.ends_with(".frames") {
            Self::KeptFrames
        } else if name.contains("-log/") {
            Self::ArchiveFile
        } else if name.ends_with("-journal") {
            Self::Journal
        } else if name.ends_with("-wal") {
            Self::Wal
        } else if name.ends_with("-pellucid") {
            Self::Copy
        } else if name.ends_with("-shm") {
            Self::Index
        } else if name.contains("-mj") {
            Self::Super
        } else if name.starts_with("etilqs_") || name.starts_with("pellucid-") {
            Self::Temporary
        } else {
            Self::Main
        }
    }

    /// The class of `length` bytes at `offset`; `sealed` says whether the database has a header region.
    pub fn class(self, sealed: bool, offset: u64, length: usize, page_bytes: usize) -> Class {
        match self {
            Self::Main if sealed => match offset {
                0..512 => Class::SectorZero,
                512..1024 => Class::WearOfPages,
                1024..2048 => Class::WearOfLog,
                2048..9216 => Class::HeaderCopy0,
                9216..16384 => Class::HeaderCopy1,
                _ => Class::Page,
            },
            Self::Main => Class::Page,
            Self::Wal if offset < 32 => Class::WalHeader,
            Self::Wal => Class::WalFrame,
            // A header is written at a sector border; whole records have their own length.
            Self::Journal if offset % 512 == 0 && length % (page_bytes + 8) != 0 => {
                Class::JournalHeader
            }
            Self::Journal => Class::JournalRecord,
            Self::Super => Class::SuperJournal,
            Self::Copy => Class::ConversionCopy,
            Self::Temporary => Class::TemporaryFile,
            Self::Index => Class::WalIndex,
            Self::ArchiveState => Class::ArchiveState,
            Self::KeptFrames => Class::KeptFrames,
            Self::ArchiveFile => Class::ArchiveFile,
        }
    }
}

/// How often each class was hit.
#[derive(Debug, Default, Clone)]
pub struct Hits(pub BTreeMap<Class, u64>);

impl Hits {
    pub fn add(&mut self, class: Class) {
        *self.0.entry(class).or_default() += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (class, count) in &other.0 {
            *self.0.entry(*class).or_default() += count;
        }
    }
}
