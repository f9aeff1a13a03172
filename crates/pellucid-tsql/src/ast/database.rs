//! CREATE, ALTER and DROP DATABASE.

use super::{Name, StringLiteral};
use crate::keyword::words;

/// Statements on DATABASE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseStatement {
    /// `CREATE DATABASE`
    Create(Box<CreateDatabase>),
    /// `ALTER DATABASE`; `None`: `CURRENT`
    Alter { database: Option<Name>, action: AlterDatabase },
    /// `ALTER AUTHORIZATION ON DATABASE::name TO owner`
    Authorize { database: Name, owner: Name },
    /// `DROP DATABASE`
    Drop { if_exists: bool, databases: Vec<Name> },
}

/// `CREATE DATABASE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateDatabase {
    /// Its name.
    pub name: Name,
    /// `ON [PRIMARY]`
    pub files: Vec<FileSpec>,
    /// `FILEGROUP`
    pub filegroups: Vec<Filegroup>,
    /// `LOG ON`
    pub log_files: Vec<FileSpec>,
    /// `COLLATE`
    pub collation: Option<Name>,
    /// `FOR`
    pub attach: Option<Attach>,
    /// `WITH`
    pub options: Vec<CreateDatabaseOption>,
}

words! {
    /// What is done with files that are there already.
    pub enum Attach {
        Attach = ATTACH,
        RebuildLog = ATTACH_REBUILD_LOG,
    }
}

words! {
    /// Options of CREATE DATABASE that are on or off.
    pub enum CreateDatabaseSwitch {
        DbChaining = DB_CHAINING,
        Trustworthy = TRUSTWORTHY,
    }
}

/// Options of CREATE DATABASE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateDatabaseOption {
    /// Which.
    pub switch: CreateDatabaseSwitch,
    /// Whether it is on.
    pub on: bool,
}

/// `FILEGROUP name [DEFAULT] files`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filegroup {
    /// Its name.
    pub name: Name,
    /// The one for what names none.
    pub default: bool,
    /// Its files.
    pub files: Vec<FileSpec>,
}

/// `(NAME = .., FILENAME = .., ..)`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSpec {
    /// `NAME`: logical name
    pub name: Option<Name>,
    /// `NEWNAME`, of MODIFY FILE
    pub new_name: Option<Name>,
    /// `FILENAME`: path
    pub file_name: Option<StringLiteral>,
    /// `SIZE`
    pub size: Option<FileSize>,
    /// `MAXSIZE`
    pub max_size: Option<MaxSize>,
    /// `FILEGROWTH`
    pub growth: Option<FileSize>,
    /// `OFFLINE`
    pub offline: bool,
}

/// A size with its unit; without one, MB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSize {
    /// How many.
    pub value: u64,
    /// Of what.
    pub unit: Option<SizeUnit>,
}

words! {
    /// Units of sizes.
    pub enum ByteUnit {
        Kilobytes = KB,
        Megabytes = MB,
        Gigabytes = GB,
        Terabytes = TB,
    }
}

/// Units of sizes and growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnit {
    /// Powers of 1024.
    Bytes(ByteUnit),
    /// `%`, of FILEGROWTH
    Percent,
}

/// `MAXSIZE`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxSize {
    /// Up to this.
    Size(FileSize),
    /// `UNLIMITED`
    Unlimited,
}

/// What `ALTER DATABASE` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterDatabase {
    /// `SET ..`
    Set { options: Vec<DatabaseOption>, termination: Option<Termination> },
    /// `MODIFY FILE`
    ModifyFile(FileSpec),
    /// `ADD FILE .. [TO FILEGROUP]`
    AddFiles { files: Vec<FileSpec>, filegroup: Option<Name> },
    /// `ADD LOG FILE`
    AddLogFiles(Vec<FileSpec>),
    /// `REMOVE FILE`
    RemoveFile(Name),
    /// `ADD FILEGROUP`
    AddFilegroup(Name),
    /// `REMOVE FILEGROUP`
    RemoveFilegroup(Name),
    /// `MODIFY NAME`
    ModifyName(Name),
    /// `COLLATE`
    Collate(Name),
}

/// Options of `ALTER DATABASE .. SET`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseOption {
    /// `ENCRYPTION`
    Encryption(EncryptionAction),
    /// `RECOVERY`
    Recovery(RecoveryModel),
    /// `COMPATIBILITY_LEVEL`
    CompatibilityLevel(u64),
    /// Who may use it, and how.
    Access(DatabaseAccess),
    /// `PAGE_VERIFY`
    PageVerify(PageVerify),
    /// `PARAMETERIZATION {SIMPLE | FORCED}`
    ForcedParameterization(bool),
    /// `CURSOR_DEFAULT {GLOBAL | LOCAL}`
    LocalCursors(bool),
    /// `TARGET_RECOVERY_TIME = n {SECONDS | MINUTES}`, in seconds
    TargetRecoverySeconds(u64),
    /// `DELAYED_DURABILITY`
    DelayedDurability(DelayedDurability),
    /// What is on or off.
    Switch { switch: DatabaseSwitch, on: bool },
}

words! {
    /// What `SET ENCRYPTION` does.
    pub enum EncryptionAction {
        On = ON,
        Off = OFF,
        Suspend = SUSPEND,
        Resume = RESUME,
    }
}

words! {
    /// Recovery models.
    pub enum RecoveryModel {
        Full = FULL,
        BulkLogged = BULK_LOGGED,
        Simple = SIMPLE,
    }
}

words! {
    /// Who may use a database, and how.
    pub enum DatabaseAccess {
        SingleUser = SINGLE_USER,
        RestrictedUser = RESTRICTED_USER,
        MultiUser = MULTI_USER,
        Online = ONLINE,
        Offline = OFFLINE,
        Emergency = EMERGENCY,
        ReadOnly = READ_ONLY,
        ReadWrite = READ_WRITE,
        EnableBroker = ENABLE_BROKER,
        DisableBroker = DISABLE_BROKER,
        NewBroker = NEW_BROKER,
        ErrorBrokerConversations = ERROR_BROKER_CONVERSATIONS,
    }
}

words! {
    /// How torn pages are found.
    pub enum PageVerify {
        Checksum = CHECKSUM,
        TornPageDetection = TORN_PAGE_DETECTION,
        None = NONE,
    }
}

words! {
    /// Whether commits wait for the log.
    pub enum DelayedDurability {
        Disabled = DISABLED,
        Allowed = ALLOWED,
        Forced = FORCED,
    }
}

words! {
    /// Options of a database that are on or off.
    pub enum DatabaseSwitch {
        AllowSnapshotIsolation = ALLOW_SNAPSHOT_ISOLATION,
        AnsiNullDefault = ANSI_NULL_DEFAULT,
        AnsiNulls = ANSI_NULLS,
        AnsiPadding = ANSI_PADDING,
        AnsiWarnings = ANSI_WARNINGS,
        Arithabort = ARITHABORT,
        AutoClose = AUTO_CLOSE,
        AutoCreateStatistics = AUTO_CREATE_STATISTICS,
        AutoShrink = AUTO_SHRINK,
        AutoUpdateStatistics = AUTO_UPDATE_STATISTICS,
        AutoUpdateStatisticsAsync = AUTO_UPDATE_STATISTICS_ASYNC,
        ConcatNullYieldsNull = CONCAT_NULL_YIELDS_NULL,
        CursorCloseOnCommit = CURSOR_CLOSE_ON_COMMIT,
        DateCorrelationOptimization = DATE_CORRELATION_OPTIMIZATION,
        DbChaining = DB_CHAINING,
        MixedPageAllocation = MIXED_PAGE_ALLOCATION,
        NumericRoundabort = NUMERIC_ROUNDABORT,
        QuotedIdentifier = QUOTED_IDENTIFIER,
        ReadCommittedSnapshot = READ_COMMITTED_SNAPSHOT,
        RecursiveTriggers = RECURSIVE_TRIGGERS,
        Trustworthy = TRUSTWORTHY,
    }
}

/// What happens to those who are in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// `WITH ROLLBACK IMMEDIATE`
    RollbackImmediate,
    /// `WITH ROLLBACK AFTER n SECONDS`
    RollbackAfterSeconds(u64),
    /// `WITH NO_WAIT`
    NoWait,
}
