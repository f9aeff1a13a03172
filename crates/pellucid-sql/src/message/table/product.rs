//! Pellucid's own messages, with numbers from 50001.

use crate::message::product::{IO, MISUSE, NO_LOG_BACKUPS, PATH, REMARK, WORKER};
use crate::message::{OF_SQLITE, UNSUPPORTED};

rows! {
    UNSUPPORTED, 15, NOT_SUPPORTED = "'{construct}' is not supported.";
    OF_SQLITE, 16, SQLITE_CODE = "SQLite: {text} ({code})";
    OF_SQLITE, 16, SQLITE_ERROR = "SQLite: {error}";
    OF_SQLITE, 16, SQLITE_ARGUMENT = "SQLite: argument {at} has another type than expected.";
    OF_SQLITE, 16, NO_RANDOM_NUMBERS = "random numbers: {error}";
    IO, 16, SYSTEM_ERROR = "{error}.";
    MISUSE, 16, INDEX_OF_TABLE_UNKNOWN = "Cannot find index '{index}' of table '{table}'.";
    MISUSE, 16, BAD_PAGE_LIST =
        "The page list '{pages}' is not valid: pages are written as '1:57, 1:202'.";
    MISUSE, 16, ANOTHER_MEDIA_NAME = "The media are called '{there}', not '{name}'.";
    MISUSE, 16, NOT_AN_MSDB =
        "Table '{table}' of the set has values in column '{column}' that no msdb has: nothing was changed.";
    NO_LOG_BACKUPS, 10, NO_CHAIN_IN_PLAIN =
        "Database '{database}' is not encrypted: any SQLite may begin its log anew, so it has no log backups. SET \
         ENCRYPTION ON gives it format version 2, which has them, after 'pellucid policy set format-version 2'.";
    NO_LOG_BACKUPS, 10, NO_CHAIN_IN_VERSION_1 =
        "Database '{database}' is of format version 1, which has no log backups: 'pellucid upgrade {path}' gives it \
         version 2.";
    PATH, 16, BAD_PATH = "'{path}': {reason}.";
    WORKER, 16, WORK_NOT_STARTED = "The work could not be started: {error}.";
    REMARK, 10, REMARK_OF = "{what}.";
    REMARK, 10, JOBS_DISABLED =
        "The jobs of this backup that were enabled, {jobs}, are disabled: look at them, and enable by sp_update_job what \
         is to run here.";
    REMARK, 10, KEYS_NOT_IN_MASTER =
        "The keys of this instance are not in a database: BACKUP MASTER KEY, BACKUP SERVICE MASTER KEY and BACKUP \
         CERTIFICATE write them to files, 'pellucid instance export' all of them to one.";
    REMARK, 10, UNDER_OWN_KEY =
        "The backup of '{database}' opens with the keys of this instance alone: 'pellucid instance export' takes them to \
         another one, or WITH ENCRYPTION names a certificate.";
    REMARK, 10, MODEL_IS_EMPTY =
        "Database 'model' has no file here and nothing in it: no backup was written.";
    REMARK, 10, MIRROR_GIVEN_UP = "'{path}': {error}: this mirror was given up.";
    REMARK, 10, SETS_LOST =
        "Warning: {sets} can be restored only where another copy of certificate '{certificate}' is.";
    REMARK, 10, ONLY_SQL_SERVER_RESTORES =
        "'{path}' is a backup of a Microsoft SQL Server database: its pages are not SQLite's, so only SQL Server \
         restores it.";
    REMARK, 10, PAGES_ARE_ZEROS =
        "Pages that could not be read when the set was made are zeros in it.";
    REMARK, 10, HISTORY_NOT_WRITTEN = "The history was not written: {error}.";
    REMARK, 10, RESTORED_TO =
        "The database was restored to '{path}': nobody of this instance answers for the path in the backup. WITH MOVE \
         names another one.";
    REMARK, 10, NOT_ENCRYPTED_ANY_MORE =
        "Warning: database '{database}' is not encrypted any more: the backup is of a database without encryption.";
    REMARK, 10, MIRROR_LEFT_OUT =
        "'{path}': it holds another backup set than its mirrors: it was left out.";
    REMARK, 10, SET_NOT_SEALED = "The backup set is NOT sealed: anybody can have made it.";
    REMARK, 10, NO_AGENT_RUNS =
        "Job '{job}' is to be started: no 'pellucid agent' is running, and the next one starts it.";
    REMARK, 10, PAGE_IS_ZEROS = "Page {page} could not be read when it was backed up: it is zeros.";
}
