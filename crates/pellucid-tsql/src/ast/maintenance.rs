//! DBCC, ALTER INDEX, UPDATE STATISTICS and their like.

use super::{Literal, Name, ObjectName, Variable};
use crate::keyword::words;

/// What keeps a database in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaintenanceStatement {
    /// `DBCC command [(arguments)] [WITH options]`
    Dbcc { command: Name, arguments: Vec<DbccArgument>, options: Vec<DbccOption> },
    /// `ALTER INDEX`; `None`: `ALL`
    AlterIndex { index: Option<Name>, table: ObjectName, action: IndexAction },
    /// `UPDATE STATISTICS`
    UpdateStatistics { table: ObjectName, targets: Vec<Name>, options: Vec<StatisticsOption> },
    /// `CHECKPOINT [seconds]`
    Checkpoint(Option<u64>),
    /// `RECONFIGURE [WITH OVERRIDE]`
    Reconfigure { with_override: bool },
}

/// An argument of DBCC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DbccArgument {
    /// A name, such as a database.
    Name(ObjectName),
    /// A constant, maybe with a sign.
    Literal { negative: bool, value: Literal },
    /// A variable.
    Variable(Variable),
    /// `@@NAME`, without the signs.
    SystemVariable(String),
}

/// `name [= n]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DbccOption {
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: Option<u64>,
}

/// What `ALTER INDEX` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexAction {
    /// `REBUILD`
    Rebuild { partition: Option<Partition>, options: Vec<IndexOption> },
    /// `REORGANIZE`
    Reorganize { partition: Option<u64>, options: Vec<IndexOption> },
    /// `DISABLE`
    Disable,
    /// `SET (..)`
    Set(Vec<IndexOption>),
}

/// `PARTITION =`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// `ALL`
    All,
    /// One, by its number.
    Number(u64),
}

/// Options of indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexOption {
    /// What is on or off.
    Switch { switch: IndexSwitch, on: bool },
    /// `FILLFACTOR`, percent
    FillFactor(u64),
    /// `MAXDOP`
    MaxDop(u64),
    /// `MAX_DURATION`, minutes
    MaxDurationMinutes(u64),
    /// `COMPRESSION_DELAY`, minutes
    CompressionDelayMinutes(u64),
    /// `DATA_COMPRESSION`
    DataCompression(DataCompression),
}

words! {
    /// Options of indexes that are on or off.
    pub enum IndexSwitch {
        AllowPageLocks = ALLOW_PAGE_LOCKS,
        AllowRowLocks = ALLOW_ROW_LOCKS,
        CompressAllRowGroups = COMPRESS_ALL_ROW_GROUPS,
        DropExisting = DROP_EXISTING,
        IgnoreDupKey = IGNORE_DUP_KEY,
        LobCompaction = LOB_COMPACTION,
        Online = ONLINE,
        OptimizeForSequentialKey = OPTIMIZE_FOR_SEQUENTIAL_KEY,
        PadIndex = PAD_INDEX,
        Resumable = RESUMABLE,
        SortInTempdb = SORT_IN_TEMPDB,
        StatisticsIncremental = STATISTICS_INCREMENTAL,
        StatisticsNoRecompute = STATISTICS_NORECOMPUTE,
    }
}

words! {
    /// How rows are stored.
    pub enum DataCompression {
        None = NONE,
        Row = ROW,
        Page = PAGE,
        Columnstore = COLUMNSTORE,
        ColumnstoreArchive = COLUMNSTORE_ARCHIVE,
    }
}

/// Options of UPDATE STATISTICS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatisticsOption {
    /// `FULLSCAN`
    FullScan,
    /// `RESAMPLE`
    Resample,
    /// `SAMPLE n PERCENT`
    SamplePercent(u64),
    /// `SAMPLE n ROWS`
    SampleRows(u64),
    /// `NORECOMPUTE`
    NoRecompute,
    /// `ALL`, `COLUMNS`, `INDEX`
    Scope(StatisticsScope),
    /// `INCREMENTAL = {ON | OFF}`
    Incremental(bool),
    /// `MAXDOP`
    MaxDop(u64),
}

words! {
    /// Which statistics.
    pub enum StatisticsScope {
        All = ALL,
        Columns = COLUMNS,
        Index = INDEX,
    }
}
