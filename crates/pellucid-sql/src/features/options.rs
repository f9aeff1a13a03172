//! What SET, ALTER DATABASE, BACKUP and RESTORE set, and types.

use pellucid_tsql::ast::{DatabaseAccess, DatabaseSwitch, SessionSwitch};
use pellucid_tsql::keyword::Word;
use pellucid_tsql::known::{BACKUP_OPTIONS, RESTORE_OPTIONS, SETTINGS as NO_SETTINGS};

use super::State::{NoEffect, Refused, Works};
use super::{entries, Entry, Feature, Kind};
use crate::execute::{is_refused_access, state_of_switch};

const SETTINGS: &[Entry] = &[
    (Refused, "CONTEXT_INFO", "", "SET CONTEXT_INFO 0x01"),
    (NoEffect, "DATEFIRST", "7 only", "SET DATEFIRST 7"),
    (NoEffect, "DATEFORMAT", "mdy only", "SET DATEFORMAT mdy"),
    (NoEffect, "DEADLOCK_PRIORITY", "", "SET DEADLOCK_PRIORITY LOW"),
    (Works, "IDENTITY_INSERT", "", "CREATE TABLE #t (a int IDENTITY); SET IDENTITY_INSERT #t ON"),
    (NoEffect, "LANGUAGE", "us_english only", "SET LANGUAGE us_english"),
    (Works, "LOCK_TIMEOUT", "", "SET LOCK_TIMEOUT 30000"),
    (NoEffect, "QUERY_GOVERNOR_COST_LIMIT", "0 only", "SET QUERY_GOVERNOR_COST_LIMIT 0"),
    (Works, "ROWCOUNT", "", "SET ROWCOUNT 0"),
    (Refused, "STATISTICS IO", "OFF is taken", "SET STATISTICS IO ON"),
    (Refused, "STATISTICS PROFILE", "OFF is taken", "SET STATISTICS PROFILE ON"),
    (Works, "STATISTICS TIME", "", "SET STATISTICS TIME OFF"),
    (Refused, "STATISTICS XML", "OFF is taken", "SET STATISTICS XML ON"),
    (NoEffect, "TEXTSIZE", "", "SET TEXTSIZE 4096"),
    (
        NoEffect,
        "TRANSACTION ISOLATION LEVEL",
        "SERIALIZABLE, whatever is said",
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    ),
];

const DATABASE_OPTIONS: &[Entry] = &[
    (Refused, "ACCELERATED_DATABASE_RECOVERY", "", "= ON"),
    (Refused, "AUTOMATIC_TUNING", "", "(FORCE_LAST_GOOD_PLAN = ON)"),
    (Refused, "CHANGE_TRACKING", "", "= ON"),
    (NoEffect, "COMPATIBILITY_LEVEL", "kept and shown", "= 160"),
    (Refused, "CONTAINMENT", "", "= NONE"),
    (Works, "CURSOR_DEFAULT", "", "LOCAL"),
    (Refused, "DATA_RETENTION", "", "OFF"),
    (Refused, "DEFAULT_FULLTEXT_LANGUAGE", "", "= 1033"),
    (Refused, "DEFAULT_LANGUAGE", "", "= 1033"),
    (NoEffect, "DELAYED_DURABILITY", "DISABLED only", "= DISABLED"),
    (Works, "ENCRYPTION", "", "OFF"),
    (Refused, "FILESTREAM", "", "(NON_TRANSACTED_ACCESS = OFF)"),
    (Refused, "HADR", "", "OFF"),
    (Refused, "HONOR_BROKER_PRIORITY", "", "OFF"),
    (Refused, "MEMORY_OPTIMIZED_ELEVATE_TO_SNAPSHOT", "", "OFF"),
    (Refused, "NESTED_TRIGGERS", "", "= ON"),
    (NoEffect, "PAGE_VERIFY", "kept and shown", "CHECKSUM"),
    (NoEffect, "PARAMETERIZATION", "kept and shown", "SIMPLE"),
    (Refused, "PARTNER", "", "OFF"),
    (Refused, "PERSISTENT_LOG_BUFFER", "", "OFF"),
    (Refused, "QUERY_STORE", "", "= OFF"),
    (Works, "RECOVERY", "", "SIMPLE"),
    (Refused, "REMOTE_DATA_ARCHIVE", "", "= OFF"),
    (Refused, "SUPPLEMENTAL_LOGGING", "", "OFF"),
    (Refused, "SUSPEND_FOR_SNAPSHOT_BACKUP", "", "= OFF"),
    (NoEffect, "TARGET_RECOVERY_TIME", "kept and shown", "= 60 SECONDS"),
    (Refused, "TEMPORAL_HISTORY_RETENTION", "", "ON"),
    (Refused, "TRANSFORM_NOISE_WORDS", "", "= OFF"),
    (Refused, "TWO_DIGIT_YEAR_CUTOFF", "", "= 2049"),
    (Refused, "VARDECIMAL_STORAGE_FORMAT", "", "ON"),
    (Refused, "WITNESS", "", "OFF"),
];

/// What stands behind an option of BACKUP in its example, or the whole of it.
const BACKUP: &[Entry] = &[
    (Works, "BLOCKSIZE", "", "BLOCKSIZE = 65536"),
    (NoEffect, "BUFFERCOUNT", "", "BUFFERCOUNT = 4"),
    (Works, "CHECKSUM", "", "CHECKSUM"),
    (Works, "COMPRESSION", "", "COMPRESSION"),
    (Works, "CONTINUE_AFTER_ERROR", "", "CONTINUE_AFTER_ERROR"),
    (Works, "COPY_ONLY", "", "COPY_ONLY"),
    (Refused, "CREDENTIAL", "", "CREDENTIAL = 'x'"),
    (Works, "DESCRIPTION", "", "DESCRIPTION = 'x'"),
    (Works, "DIFFERENTIAL", "", "DIFFERENTIAL"),
    (Works, "ENCRYPTION", "", "ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = none)"),
    (Works, "EXPIREDATE", "", "EXPIREDATE = '2020-01-01'"),
    (Refused, "FILE_SNAPSHOT", "", "FILE_SNAPSHOT"),
    (Works, "FORMAT", "", "FORMAT"),
    (Works, "INIT", "", "INIT"),
    (NoEffect, "MAXTRANSFERSIZE", "", "MAXTRANSFERSIZE = 65536"),
    (Works, "MEDIADESCRIPTION", "", "FORMAT, MEDIADESCRIPTION = 'x'"),
    (Works, "MEDIANAME", "", "FORMAT, MEDIANAME = 'x'"),
    (Refused, "MEDIAPASSWORD", "", "MEDIAPASSWORD = 'none'"),
    (Works, "NAME", "", "NAME = 'x'"),
    (Works, "NO_CHECKSUM", "", "NO_CHECKSUM"),
    (Works, "NO_COMPRESSION", "", "FORMAT, NO_COMPRESSION"),
    (Works, "NO_ENCRYPTION", "", "NO_ENCRYPTION"),
    (Works, "NOFORMAT", "", "NOFORMAT"),
    (Works, "NOINIT", "", "NOINIT"),
    (Works, "NORECOVERY", "of BACKUP LOG", "NORECOVERY"),
    (NoEffect, "NOREWIND", "of tapes", "NOREWIND"),
    (Works, "NOSKIP", "", "NOSKIP"),
    (Works, "NO_TRUNCATE", "of BACKUP LOG", "NO_TRUNCATE"),
    (NoEffect, "NOUNLOAD", "of tapes", "NOUNLOAD"),
    (Refused, "PASSWORD", "", "PASSWORD = 'none'"),
    (NoEffect, "RESTART", "", "RESTART"),
    (Works, "RETAINDAYS", "", "RETAINDAYS = 0"),
    (NoEffect, "REWIND", "of tapes", "REWIND"),
    (Works, "SKIP", "", "SKIP"),
    (Works, "STANDBY", "of BACKUP LOG", "STANDBY = 'none.undo'"),
    (Works, "STATS", "", "STATS = 10"),
    (Works, "STOP_ON_ERROR", "", "STOP_ON_ERROR"),
    (NoEffect, "UNLOAD", "of tapes", "UNLOAD"),
];

const RESTORE: &[Entry] = &[
    (Works, "BLOCKSIZE", "", "BLOCKSIZE = 65536"),
    (NoEffect, "BUFFERCOUNT", "", "BUFFERCOUNT = 4"),
    (Works, "CHECKSUM", "", "CHECKSUM"),
    (Works, "CONTINUE_AFTER_ERROR", "", "CONTINUE_AFTER_ERROR"),
    (Refused, "CREDENTIAL", "", "CREDENTIAL = 'x'"),
    (Refused, "ENABLE_BROKER", "", "ENABLE_BROKER"),
    (Refused, "ERROR_BROKER_CONVERSATIONS", "", "ERROR_BROKER_CONVERSATIONS"),
    (Works, "FILE", "", "FILE = 1"),
    (Refused, "KEEP_CDC", "", "KEEP_CDC"),
    (Refused, "KEEP_REPLICATION", "", "KEEP_REPLICATION"),
    (Works, "LOADHISTORY", "of VERIFYONLY", "LOADHISTORY"),
    (NoEffect, "MAXTRANSFERSIZE", "", "MAXTRANSFERSIZE = 65536"),
    (Works, "MEDIANAME", "", "MEDIANAME = 'x'"),
    (Refused, "MEDIAPASSWORD", "", "MEDIAPASSWORD = 'none'"),
    (Works, "MOVE", "", "MOVE 'none' TO 'none.db'"),
    (Refused, "NEW_BROKER", "", "NEW_BROKER"),
    (Works, "NO_CHECKSUM", "", "NO_CHECKSUM"),
    (Works, "NORECOVERY", "", "NORECOVERY"),
    (NoEffect, "NOREWIND", "of tapes", "NOREWIND"),
    (NoEffect, "NOUNLOAD", "of tapes", "NOUNLOAD"),
    (Refused, "PARTIAL", "", "PARTIAL"),
    (Refused, "PASSWORD", "", "PASSWORD = 'none'"),
    (Works, "RECOVERY", "", "RECOVERY"),
    (Works, "REPLACE", "", "REPLACE"),
    (NoEffect, "RESTART", "", "RESTART"),
    (Works, "RESTRICTED_USER", "", "RESTRICTED_USER"),
    (NoEffect, "REWIND", "of tapes", "REWIND"),
    (Works, "STANDBY", "where a chain of log backups is", "RECOVERY, STANDBY = 'none.undo'"),
    (Works, "STATS", "", "STATS = 10"),
    (Works, "STOP_ON_ERROR", "", "STOP_ON_ERROR"),
    (Works, "STOPAT", "", "STOPAT = '2020-01-01'"),
    (Works, "STOPATMARK", "", "STOPATMARK = 'none'"),
    (Works, "STOPBEFOREMARK", "", "STOPBEFOREMARK = 'none'"),
    (NoEffect, "UNLOAD", "of tapes", "UNLOAD"),
];

/// Their names are their declarations.
const TYPES: &[Entry] = &[
    (Works, "bigint", "", ""),
    (Works, "binary", "", "(10)"),
    (Works, "bit", "", ""),
    (Works, "char", "", "(10)"),
    (Works, "cursor", "of variables", ""),
    (Works, "date", "", ""),
    (Works, "datetime", "", ""),
    (Works, "datetime2", "", "(7)"),
    (Refused, "datetimeoffset", "", "(7)"),
    (Works, "decimal", "", "(10, 2)"),
    (Works, "float", "", ""),
    (Refused, "geography", "", ""),
    (Refused, "geometry", "", ""),
    (Refused, "hierarchyid", "", ""),
    (Works, "image", "", ""),
    (Works, "int", "", ""),
    (Refused, "json", "", ""),
    (Works, "money", "", ""),
    (Works, "nchar", "", "(10)"),
    (Works, "ntext", "", ""),
    (Works, "numeric", "", "(10, 2)"),
    (Works, "nvarchar", "", "(max)"),
    (Works, "real", "", ""),
    (Refused, "rowversion", "", ""),
    (Works, "smalldatetime", "", ""),
    (Works, "smallint", "", ""),
    (Works, "smallmoney", "", ""),
    (Works, "sql_variant", "", ""),
    (Works, "sysname", "", ""),
    (Works, "table", "of variables", " (a int)"),
    (Works, "text", "", ""),
    (Works, "time", "", "(7)"),
    (Refused, "timestamp", "", ""),
    (Works, "tinyint", "", ""),
    (Works, "uniqueidentifier", "", ""),
    (Works, "varbinary", "", "(max)"),
    (Works, "varchar", "", "(max)"),
    (Refused, "vector", "", "(3)"),
    (Works, "xml", "without markup", ""),
];

/// The database that examples name.
const DATABASE: &str = "example";

pub(super) fn all() -> impl Iterator<Item = Feature> {
    let switches = SessionSwitch::ALL.iter().flat_map(|switch| {
        [true, false].map(|on| {
            let name = format!("{switch} {}", if on { "ON" } else { "OFF" });
            let example = format!("SET {name}");
            Feature::new(Kind::Setting, name, state_of_switch(*switch, on), example)
        })
    });
    let no_settings = NO_SETTINGS
        .iter()
        .map(|name| Feature::new(Kind::Setting, *name, Refused, format!("SET {name} ON")));
    let of_database = |name: &str, state, value: &str| {
        let example = format!("ALTER DATABASE {DATABASE} SET {name} {value}");
        Feature::new(Kind::DatabaseOption, name, state, example)
    };
    let options = DATABASE_OPTIONS
        .iter()
        .map(move |(state, name, note, value)| of_database(name, *state, value).with_note(note));
    let of_switches = DatabaseSwitch::ALL.iter().map(move |switch| {
        of_database(&switch.to_string(), NoEffect, "OFF").with_note("kept and shown")
    });
    let accesses = DatabaseAccess::ALL.iter().map(move |access| {
        let state = if is_refused_access(*access) { Refused } else { Works };
        of_database(&access.to_string(), state, "")
    });
    let with = |before: &'static str| {
        move |feature: Feature| Feature {
            example: format!("{before} {}", feature.example),
            ..feature
        }
    };
    let backup = with("BACKUP DATABASE example TO DISK = 'example.bak' WITH");
    let restore = with("RESTORE DATABASE example FROM DISK = 'example.bak' WITH REPLACE,");
    let refused = |kind, name: &'static str| Feature::new(kind, name, Refused, name);
    let no_backup = BACKUP_OPTIONS.iter().map(move |name| refused(Kind::BackupOption, name));
    let no_restore = RESTORE_OPTIONS.iter().map(move |name| refused(Kind::RestoreOption, name));
    let types = entries(Kind::DataType, TYPES).map(|feature| {
        let example = format!("DECLARE @a {}{}", feature.name, feature.example);
        Feature { example, ..feature }
    });
    entries(Kind::Setting, SETTINGS)
        .chain(switches)
        .chain(no_settings)
        .chain(options)
        .chain(of_switches)
        .chain(accesses)
        .chain(entries(Kind::BackupOption, BACKUP).chain(no_backup).map(backup))
        .chain(entries(Kind::RestoreOption, RESTORE).chain(no_restore).map(restore))
        .chain(types)
}
