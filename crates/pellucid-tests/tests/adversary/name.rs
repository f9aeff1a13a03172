//! The databases of the history.

/// A database of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// WAL mode, with commits in its log.
    Log,
    /// Rollback mode, with hot journals, and other protectors since.
    Roll,
    /// WAL mode, rekeyed.
    Key,
    /// WAL mode, in the middle of a rekey: pages under two keys.
    Scan,
    /// Switched off, and on again.
    Off,
    /// A copy of the first, at another path, which went its own way.
    Copy,
    /// WAL mode, of the other version of the format.
    Other,
    /// Of another instance.
    Foreign,
    /// Not encrypted.
    Plain,
}

impl Name {
    /// Each of them.
    pub const ALL: [Self; 9] = [
        Self::Log,
        Self::Roll,
        Self::Key,
        Self::Scan,
        Self::Off,
        Self::Copy,
        Self::Other,
        Self::Foreign,
        Self::Plain,
    ];
    /// Those whose paths are pinned.
    pub const PINNED: [Self; 7] =
        [Self::Log, Self::Roll, Self::Key, Self::Scan, Self::Off, Self::Copy, Self::Other];

    /// Its file.
    pub fn file(self) -> &'static str {
        match self {
            Self::Log => "log.db",
            Self::Roll => "roll.db",
            Self::Key => "key.db",
            Self::Scan => "scan.db",
            Self::Off => "off.db",
            Self::Copy => "copy.db",
            Self::Other => "other.db",
            Self::Foreign => "foreign.db",
            Self::Plain => "plain.db",
        }
    }

    /// Whether it is in WAL mode.
    pub fn has_log(self) -> bool {
        matches!(
            self,
            Self::Log | Self::Key | Self::Scan | Self::Copy | Self::Other | Self::Foreign
        )
    }

    /// Its journal mode.
    pub fn mode(self) -> &'static str {
        if self.has_log() {
            "WAL"
        } else {
            "DELETE"
        }
    }
}
