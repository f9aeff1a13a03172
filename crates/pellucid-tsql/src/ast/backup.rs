//! BACKUP DATABASE and BACKUP LOG, and what RESTORE shares with them.

use super::{Algorithm, Encryptor, Name, Number, OrVariable, StringLiteral, Text};
use crate::keyword::words;
use crate::secret::Secret;

/// A database by name or by a variable that holds it.
pub type NameOrVariable = OrVariable<Name>;

words! {
    /// What is backed up or restored.
    pub enum BackupKind {
        Database = DATABASE,
        Log = LOG,
    }
}

/// `BACKUP {DATABASE | LOG}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Data or log.
    pub kind: BackupKind,
    /// Of which database.
    pub database: NameOrVariable,
    /// Only these files.
    pub files: Vec<FileSelection>,
    /// `TO`: the stripes.
    pub devices: Vec<Device>,
    /// `MIRROR TO`, each as wide as `devices`.
    pub mirrors: Vec<Vec<Device>>,
    /// `WITH`
    pub options: Vec<BackupOption>,
}

/// A part of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSelection {
    /// `FILE = '..'`
    File(Text),
    /// `FILEGROUP = '..'`
    Filegroup(Text),
    /// `READ_WRITE_FILEGROUPS`
    ReadWriteFilegroups,
    /// `PAGE = 'f:p, ..'`, of RESTORE.
    Page(Text),
}

words! {
    /// Kinds of places that a path names.
    pub enum DeviceKind {
        Disk = DISK,
        Tape = TAPE,
        Url = URL,
    }
}

/// Where a backup goes to or comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// A backup device by its logical name.
    Logical(NameOrVariable),
    /// `DISK = '..'`
    Physical { kind: DeviceKind, path: Text },
}

/// Options of BACKUP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupOption {
    /// Options that are one word.
    Flag(BackupFlag),
    /// Options that RESTORE has, too.
    Media(MediaOption),
    /// `COMPRESSION [(..)]`
    Compression(Option<Compression>),
    /// `ENCRYPTION (ALGORITHM = .., SERVER ..)`
    Encryption { algorithm: Algorithm, encryptor: Encryptor },
    /// `NAME`: of the backup set.
    Name(Text),
    /// `DESCRIPTION`: of the backup set.
    Description(Text),
    /// `MEDIADESCRIPTION`
    MediaDescription(Text),
    /// `EXPIREDATE`
    ExpireDate(Text),
    /// `RETAINDAYS`
    RetainDays(Number),
    /// `STANDBY`: undo file of a tail-log backup.
    Standby(Text),
}

words! {
    /// Options of BACKUP that are one word.
    pub enum BackupFlag {
        Differential = DIFFERENTIAL,
        CopyOnly = COPY_ONLY,
        NoCompression = NO_COMPRESSION,
        NoEncryption = NO_ENCRYPTION,
        FileSnapshot = FILE_SNAPSHOT,
        Init = INIT,
        NoInit = NOINIT,
        Skip = SKIP,
        NoSkip = NOSKIP,
        Format = FORMAT,
        NoFormat = NOFORMAT,
        NoRecovery = NORECOVERY,
        NoTruncate = NO_TRUNCATE,
    }
}

/// `COMPRESSION (ALGORITHM = .. [, LEVEL = ..])`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compression {
    /// How.
    pub algorithm: CompressionAlgorithm,
    /// How hard.
    pub level: Option<CompressionLevel>,
}

words! {
    /// Compressors of backups.
    pub enum CompressionAlgorithm {
        MsXpress = MS_XPRESS,
        QatDeflate = QAT_DEFLATE,
        Zstd = ZSTD,
    }
}

words! {
    /// How hard a compressor tries.
    pub enum CompressionLevel {
        Low = LOW,
        Medium = MEDIUM,
        High = HIGH,
    }
}

/// Options that BACKUP and RESTORE share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaOption {
    /// One word.
    Flag(MediaFlag),
    /// `BLOCKSIZE`, bytes
    BlockSize(Number),
    /// `BUFFERCOUNT`
    BufferCount(Number),
    /// `MAXTRANSFERSIZE`, bytes
    MaxTransferSize(Number),
    /// `STATS [= percent]`
    Stats(Option<Number>),
    /// `MEDIANAME`
    MediaName(Text),
    /// `MEDIAPASSWORD`, of old media
    MediaPassword(Secret),
    /// `PASSWORD`, of old backup sets
    Password(Secret),
    /// `CREDENTIAL = '..'`, of a URL
    Credential(StringLiteral),
}

words! {
    /// Options that BACKUP and RESTORE share and that are one word.
    pub enum MediaFlag {
        Checksum = CHECKSUM,
        NoChecksum = NO_CHECKSUM,
        StopOnError = STOP_ON_ERROR,
        ContinueAfterError = CONTINUE_AFTER_ERROR,
        Restart = RESTART,
        Rewind = REWIND,
        NoRewind = NOREWIND,
        Unload = UNLOAD,
        NoUnload = NOUNLOAD,
    }
}
