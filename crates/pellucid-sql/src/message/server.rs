//! Messages that names, batches, transactions and databases meet, as functions: what each takes, and its state.

use std::path::Path;

use pellucid::shown::Shown;

use super::{table, Message};

impl Message {
    /// 927: a database that is being restored.
    pub fn restoring(name: &str) -> Self {
        Self::of(table::RESTORING, [&name]).with_state(2)
    }

    /// 942: a database that is offline.
    pub fn offline(name: &str) -> Self {
        Self::of(table::OFFLINE, [&name]).with_state(4)
    }

    /// 5120: the file of a database that cannot be opened, and why.
    pub fn inaccessible(path: &Path, why: &str) -> Self {
        let path = path.shown();
        Self::of(table::INACCESSIBLE, [&path, &why]).with_state(101)
    }

    /// 1801: a name that another database has.
    pub fn database_exists(name: &str) -> Self {
        Self::of(table::DATABASE_EXISTS, [&name]).with_state(3)
    }

    /// 1834: a file that a statement would overwrite and database `name` has.
    pub fn file_in_use(path: &Path, name: &str) -> Self {
        let path = path.shown();
        Self::of(table::FILE_IN_USE, [&path, &name])
    }

    /// 5170: a file that a new database would overwrite.
    pub fn file_exists(path: &Path) -> Self {
        let path = path.shown();
        Self::of(table::FILE_EXISTS, [&path])
    }

    /// 7202: a server that is not this one.
    pub fn unknown_server(name: &str) -> Self {
        Self::of(table::UNKNOWN_SERVER, [&name]).with_state(2)
    }

    /// 5133: a folder that cannot be looked at, with the system's error.
    pub fn no_directory(path: &std::path::Path, why: &std::io::Error) -> Self {
        let (path, why) = (path.shown(), system_error(why));
        Self::of(table::NO_DIRECTORY, [&path, &why])
    }

    /// 2812: a procedure that there is not.
    pub fn unknown_procedure(name: &str) -> Self {
        Self::of(table::UNKNOWN_PROCEDURE, [&name]).with_state(62)
    }

    /// 226: a statement that no transaction may have.
    pub fn not_in_transaction(statement: &str) -> Self {
        Self::of(table::NOT_IN_TRANSACTION, [&statement]).with_state(6)
    }

    /// 628: SAVE TRANSACTION outside a transaction.
    pub fn save_without_transaction() -> Self {
        Self::of(table::SAVE_WITHOUT_TRANSACTION, []).with_state(0)
    }

    /// 201: a parameter without a default that a call leaves out.
    pub fn argument_missing(procedure: &str, parameter: &str) -> Self {
        Self::of(table::ARGUMENT_MISSING, [&procedure, &parameter]).with_state(4)
    }

    /// 8144: a call with more arguments than parameters.
    pub fn too_many_arguments(procedure: &str) -> Self {
        Self::of(table::TOO_MANY_ARGUMENTS, [&procedure]).with_state(2)
    }

    /// 2745: what stands before an error that was raised with a severity which ends the session.
    pub fn session_ended(session: i64, number: u32, severity: u8) -> Self {
        Self::of(table::SESSION_ENDED, [&session, &number, &severity]).with_state(2)
    }

    /// 2714: a name that another object has.
    pub fn object_exists(name: &str) -> Self {
        Self::of(table::OBJECT_EXISTS, [&name]).with_state(6)
    }

    /// 1038: a column that SELECT INTO would make has no name.
    pub fn nameless_column() -> Self {
        Self::of(table::NAMELESS_COLUMN, []).with_state(5)
    }

    /// 3701: a `table`, `view`, `index` or `database` (`what`) to drop that there is not.
    pub fn cannot_drop(what: &str, name: &str) -> Self {
        Self::of(table::CANNOT_DROP, [&what, &name]).with_state(5)
    }

    /// 1088: a table to make an index of that there is not.
    pub fn unknown_target(name: &str) -> Self {
        Self::of(table::UNKNOWN_TARGET, [&name]).with_state(9)
    }

    /// 15151: a thing of a kind that cannot be found, altered or dropped (`verb`), because there is none.
    pub fn does_not_exist(verb: &str, kind: &str, name: &str) -> Self {
        Self::known(&pellucid::message::DOES_NOT_EXIST, &[verb, kind, name])
    }

    /// 3031: an option that cannot stand beside others.
    pub fn option_conflict(option: &str, others: &str) -> Self {
        Self::known(&pellucid::message::OPTION_CONFLICTS, &[option, others])
    }

    /// 3701 of DROP DATABASE, which has another state.
    pub fn unknown_database_to_drop(name: &str) -> Self {
        Self::cannot_drop("database", name).with_state(1)
    }

    /// 1802, behind the error that ended a CREATE DATABASE.
    pub fn create_failed() -> Self {
        Self::of(table::CREATE_FAILED, []).with_state(4)
    }

    /// A text without number and severity, as PRINT writes it.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(0, 0, text)
    }
}

/// An error of the system as SQL Server writes it: `2(No such file or directory)`.
pub(crate) fn system_error(error: &std::io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => {
            let text = text.split(" (os error").next().unwrap_or(&text);
            format!("{number}({text})")
        }
        None => text,
    }
}
