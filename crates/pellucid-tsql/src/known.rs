//! What SQL Server's grammar has and Pellucid's has not, by its words: refused as not supported, never a syntax error.
//!
//! What the grammar refuses within a statement that it has (`FOR JSON`, `PIVOT`) stands where that is read.

/// What CREATE, ALTER and DROP have behind them.
pub const OBJECTS: &[&str] = &[
    "AGGREGATE",
    "APPLICATION ROLE",
    "ASSEMBLY",
    "AVAILABILITY GROUP",
    "BROKER PRIORITY",
    "COLUMN ENCRYPTION KEY",
    "COLUMN MASTER KEY",
    "CONTRACT",
    "COUNTER SIGNATURE",
    "DATABASE AUDIT SPECIFICATION",
    "DATABASE SCOPED CONFIGURATION",
    "DATABASE SCOPED CREDENTIAL",
    "DEFAULT",
    "ENDPOINT",
    "EVENT NOTIFICATION",
    "EVENT SESSION",
    "EXTERNAL DATA SOURCE",
    "EXTERNAL FILE FORMAT",
    "EXTERNAL LANGUAGE",
    "EXTERNAL LIBRARY",
    "EXTERNAL MODEL",
    "EXTERNAL RESOURCE POOL",
    "EXTERNAL TABLE",
    "FULLTEXT CATALOG",
    "FULLTEXT INDEX",
    "FULLTEXT STOPLIST",
    "MESSAGE TYPE",
    "PARTITION FUNCTION",
    "PARTITION SCHEME",
    "PRIMARY XML INDEX",
    "QUEUE",
    "REMOTE SERVICE BINDING",
    "RESOURCE GOVERNOR",
    "RESOURCE POOL",
    "ROLE",
    "ROUTE",
    "RULE",
    "SEARCH PROPERTY LIST",
    "SECURITY POLICY",
    "SELECTIVE XML INDEX",
    "SENSITIVITY CLASSIFICATION",
    "SEQUENCE",
    "SERVER AUDIT",
    "SERVER AUDIT SPECIFICATION",
    "SERVER CONFIGURATION",
    "SERVER ROLE",
    "SERVICE",
    "SIGNATURE",
    "SPATIAL INDEX",
    "STATISTICS",
    "SYMMETRIC KEY",
    "SYNONYM",
    "TRIGGER",
    "TYPE",
    "USER",
    "WORKLOAD CLASSIFIER",
    "WORKLOAD GROUP",
    "XML INDEX",
    "XML SCHEMA COLLECTION",
];

/// What DROP is read of and there is never: it is told when it is reached, and IF EXISTS does nothing.
pub const DROPS: &[&str] = &[
    "AGGREGATE",
    "APPLICATION ROLE",
    "ASSEMBLY",
    "DEFAULT",
    "QUEUE",
    "ROLE",
    "RULE",
    "SEQUENCE",
    "SERVER ROLE",
    "SERVICE",
    "SYMMETRIC KEY",
    "SYNONYM",
    "TRIGGER",
    "TYPE",
    "USER",
];

/// What statements begin with.
pub const STATEMENTS: &[&str] = &[
    "ADD COUNTER SIGNATURE",
    "ADD SENSITIVITY CLASSIFICATION",
    "ADD SIGNATURE",
    "BULK INSERT",
    "DENY",
    "DUMP",
    "END CONVERSATION",
    "GET CONVERSATION GROUP",
    "GRANT",
    "KILL",
    "LINENO",
    "LOAD",
    "MERGE",
    "MOVE CONVERSATION",
    "READTEXT",
    "RECEIVE",
    "REVOKE",
    "SEND",
    "SETUSER",
    "SHUTDOWN",
    "UPDATETEXT",
    "WRITETEXT",
];

/// Behind BACKUP.
pub const BACKUPS: &[&str] = &["GROUP", "SERVER", "SYMMETRIC KEY", "TRAN", "TRANSACTION"];

/// Options of BACKUP.
pub const BACKUP_OPTIONS: &[&str] = &["METADATA_ONLY", "NO_LOG", "SNAPSHOT", "TRUNCATE_ONLY"];

/// Options of RESTORE.
pub const RESTORE_OPTIONS: &[&str] = &[
    "COMMIT_DIFFERENTIAL_BASE",
    "DBNAME",
    "DBO_ONLY",
    "FILESTREAM",
    "KEEP_TEMPORAL_RETENTION",
    "METADATA_ONLY",
    "PAGE",
    "SNAPSHOT",
];

/// What SET sets.
pub const SETTINGS: &[&str] = &[
    "DISABLE_DEF_CNST_CHK",
    "ERRLVL",
    "FIPS_FLAGGER",
    "NO_BROWSETABLE",
    "OFFSETS",
    "PROCID",
    "RESULT_SET_CACHING",
];

/// Options of tables and indexes.
pub const TABLE_OPTIONS: &[&str] = &[
    "CLUSTERED",
    "DATA_DELETION",
    "DURABILITY",
    "FILETABLE_COLLATE_FILENAME",
    "FILETABLE_DIRECTORY",
    "FILETABLE_FULLPATH_UNIQUE_CONSTRAINT_NAME",
    "FILETABLE_PRIMARY_KEY_CONSTRAINT_NAME",
    "FILETABLE_STREAMID_UNIQUE_CONSTRAINT_NAME",
    "LEDGER",
    "MEMORY_OPTIMIZED",
    "REMOTE_DATA_ARCHIVE",
    "SYSTEM_VERSIONING",
    "XML_COMPRESSION",
];

/// Options of UPDATE STATISTICS.
pub const STATISTICS_OPTIONS: &[&str] =
    &["AUTO_DROP", "PAGECOUNT", "PERSIST_SAMPLE_PERCENT", "ROWCOUNT", "STATS_STREAM"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_is_sorted_and_names_nothing_twice() {
        for list in [
            BACKUPS,
            BACKUP_OPTIONS,
            DROPS,
            OBJECTS,
            RESTORE_OPTIONS,
            SETTINGS,
            STATEMENTS,
            STATISTICS_OPTIONS,
            TABLE_OPTIONS,
        ] {
            for pair in list.windows(2) {
                assert!(pair[0] < pair[1], "{pair:?}");
            }
        }
    }
}
