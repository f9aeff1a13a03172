//! RESTORE DATABASE and LOG, and the statements that look at media.

use super::{BackupKind, Device, FileSelection, MediaOption, NameOrVariable, Number, Text};
use crate::keyword::words;

/// `RESTORE {DATABASE | LOG}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restore {
    /// Data or log.
    pub kind: BackupKind,
    /// To which database.
    pub database: NameOrVariable,
    /// Only these files or pages.
    pub files: Vec<FileSelection>,
    /// `FROM`
    pub source: RestoreSource,
    /// `WITH`
    pub options: Vec<RestoreOption>,
}

/// Where a database comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreSource {
    /// No `FROM`: recover only.
    Nothing,
    /// Backups.
    Devices(Vec<Device>),
    /// `DATABASE_SNAPSHOT = ..`
    Snapshot(NameOrVariable),
}

words! {
    /// What is read from media without restoring it.
    pub enum InspectKind {
        HeaderOnly = HEADERONLY,
        FileListOnly = FILELISTONLY,
        LabelOnly = LABELONLY,
        VerifyOnly = VERIFYONLY,
        RewindOnly = REWINDONLY,
    }
}

/// `RESTORE {HEADERONLY | FILELISTONLY | LABELONLY | VERIFYONLY | REWINDONLY}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspect {
    /// What is looked at.
    pub kind: InspectKind,
    /// `FROM`
    pub devices: Vec<Device>,
    /// `WITH`
    pub options: Vec<RestoreOption>,
}

/// Options of RESTORE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOption {
    /// Options that are one word.
    Flag(RestoreFlag),
    /// Options that BACKUP has, too.
    Media(MediaOption),
    /// `STANDBY`: undo file.
    Standby(Text),
    /// `MOVE 'logical' TO 'path'`
    Move { logical: Text, path: Text },
    /// `FILE`: position of the backup set.
    File(Number),
    /// `STOPAT`
    StopAt(Text),
    /// `STOPATMARK`
    StopAtMark(StopMark),
    /// `STOPBEFOREMARK`
    StopBeforeMark(StopMark),
}

words! {
    /// Options of RESTORE that are one word.
    pub enum RestoreFlag {
        Recovery = RECOVERY,
        NoRecovery = NORECOVERY,
        Replace = REPLACE,
        RestrictedUser = RESTRICTED_USER,
        KeepReplication = KEEP_REPLICATION,
        KeepCdc = KEEP_CDC,
        EnableBroker = ENABLE_BROKER,
        ErrorBrokerConversations = ERROR_BROKER_CONVERSATIONS,
        NewBroker = NEW_BROKER,
        Partial = PARTIAL,
        LoadHistory = LOADHISTORY,
    }
}

/// `'lsn:..' [AFTER 'dt']`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopMark {
    /// Name of the mark, or `lsn:..`.
    pub mark: Text,
    /// Not before this time.
    pub after: Option<Text>,
}
