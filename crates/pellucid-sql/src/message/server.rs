//! Messages that names, batches, transactions and databases meet, as functions: what each takes, and its state.

use std::path::Path;

use super::{table, Message};

impl Message {
    /// 927
    pub fn restoring(name: &str) -> Self {
        Self::of(table::RESTORING, [&name]).with_state(2)
    }

    /// 942
    pub fn offline(name: &str) -> Self {
        Self::of(table::OFFLINE, [&name]).with_state(4)
    }

    /// 5120
    pub fn inaccessible(_name: &str, path: &Path, why: &str) -> Self {
        let path = path.display();
        Self::of(table::INACCESSIBLE, [&path, &why]).with_state(101)
    }

    /// 1801
    pub fn database_exists(name: &str) -> Self {
        Self::of(table::DATABASE_EXISTS, [&name]).with_state(3)
    }

    /// 1834
    pub fn file_in_use(path: &Path, name: &str) -> Self {
        let path = path.display();
        Self::of(table::FILE_IN_USE, [&path, &name])
    }

    /// 5170
    pub fn file_exists(path: &Path) -> Self {
        let path = path.display();
        Self::of(table::FILE_EXISTS, [&path])
    }

    /// 7202
    pub fn unknown_server(name: &str) -> Self {
        Self::of(table::UNKNOWN_SERVER, [&name]).with_state(2)
    }

    /// 5133
    pub fn no_directory(path: &std::path::Path, why: &std::io::Error) -> Self {
        let (path, why) = (path.display(), system_error(why));
        Self::of(table::NO_DIRECTORY, [&path, &why])
    }

    /// 2812
    pub fn unknown_procedure(name: &str) -> Self {
        Self::of(table::UNKNOWN_PROCEDURE, [&name]).with_state(62)
    }

    /// 226
    pub fn not_in_transaction(statement: &str) -> Self {
        Self::of(table::NOT_IN_TRANSACTION, [&statement]).with_state(6)
    }

    /// 628
    pub fn save_without_transaction() -> Self {
        Self::of(table::SAVE_WITHOUT_TRANSACTION, []).with_state(0)
    }

    /// 201
    pub fn argument_missing(procedure: &str, parameter: &str) -> Self {
        Self::of(table::ARGUMENT_MISSING, [&procedure, &parameter]).with_state(4)
    }

    /// 8144
    pub fn too_many_arguments(procedure: &str) -> Self {
        Self::of(table::TOO_MANY_ARGUMENTS, [&procedure]).with_state(2)
    }

    /// 2714
    pub fn object_exists(name: &str) -> Self {
        Self::of(table::OBJECT_EXISTS, [&name]).with_state(6)
    }

    /// 3701; what: `table`, `view`, `index`, `database`
    pub fn cannot_drop(what: &str, name: &str) -> Self {
        Self::of(table::CANNOT_DROP, [&what, &name]).with_state(5)
    }

    /// 1088
    pub fn unknown_target(name: &str) -> Self {
        Self::of(table::UNKNOWN_TARGET, [&name]).with_state(9)
    }

    /// 15151; what is to be done (`find`, `alter`, `drop`), with which kind of thing
    pub fn does_not_exist(verb: &str, kind: &str, name: &str) -> Self {
        Self::known(&pellucid::message::DOES_NOT_EXIST, &[verb, kind, name])
    }

    /// 3031
    pub fn option_conflict(option: &str, others: &str) -> Self {
        Self::known(&pellucid::message::OPTION_CONFLICTS, &[option, others])
    }

    /// 3701 of DROP DATABASE
    pub fn unknown_database_to_drop(name: &str) -> Self {
        Self::cannot_drop("database", name).with_state(1)
    }

    /// 1802, behind what ended a CREATE DATABASE
    pub fn create_failed() -> Self {
        Self::of(table::CREATE_FAILED, []).with_state(4)
    }

    /// 0
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
