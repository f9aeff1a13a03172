//! Texts of the messages that names, batches, transactions and databases meet.
//!
//! Source: Microsoft's "Database engine events and errors", SQL Server 2022.

use std::path::Path;

use super::Message;

impl Message {
    fn with_state(mut self, state: u8) -> Self {
        self.state = state;
        self
    }

    /// 134
    pub fn declared_twice(variable: &str) -> Self {
        Self::new(
            134,
            15,
            format!(
                "The variable name '@{variable}' has already been declared. Variable names must be unique within a \
                 query batch or stored procedure."
            ),
        )
    }

    /// 911
    pub fn unknown_database(name: &str) -> Self {
        Self::new(
            911,
            16,
            format!(
                "Database '{name}' does not exist. Make sure that the name is entered correctly."
            ),
        )
    }

    /// 927
    pub fn restoring(name: &str) -> Self {
        Self::new(
            927,
            14,
            format!("Database '{name}' cannot be opened. It is in the middle of a restore."),
        )
        .with_state(2)
    }

    /// 942
    pub fn offline(name: &str) -> Self {
        Self::new(942, 14, format!("Database '{name}' cannot be opened because it is offline."))
            .with_state(4)
    }

    /// 5120
    pub fn inaccessible(_name: &str, path: &Path, why: &str) -> Self {
        let path = path.display();
        Self::new(
            5120,
            16,
            format!(
                "Unable to open the physical file \"{path}\". Operating system error 2: \"{why}\"."
            ),
        )
        .with_state(101)
    }

    /// 1801
    pub fn database_exists(name: &str) -> Self {
        Self::new(
            1801,
            16,
            format!("Database '{name}' already exists. Choose a different database name."),
        )
        .with_state(3)
    }

    /// 1834
    pub fn file_in_use(path: &Path, name: &str) -> Self {
        let path = path.display();
        Self::new(
            1834,
            16,
            format!(
                "The file '{path}' cannot be overwritten.  It is being used by database '{name}'."
            ),
        )
    }

    /// 5170
    pub fn file_exists(path: &Path) -> Self {
        let path = path.display();
        Self::new(
            5170,
            16,
            format!(
                "Cannot create file '{path}' because it already exists. Change the file path or the file name, and \
                 retry the operation."
            ),
        )
    }

    /// 7202
    pub fn unknown_server(name: &str) -> Self {
        Self::new(
            7202,
            11,
            format!(
                "Could not find server '{name}' in sys.servers. Verify that the correct server name was specified. If \
                 necessary, execute the stored procedure sp_addlinkedserver to add the server to sys.servers."
            ),
        )
        .with_state(2)
    }

    /// 5133
    pub fn no_directory(path: &std::path::Path, why: &std::io::Error) -> Self {
        let (path, why) = (path.display(), system_error(why));
        Self::new(
            5133,
            16,
            format!("Directory lookup for the file \"{path}\" failed with the operating system error {why}."),
        )
    }

    /// 2812
    pub fn unknown_procedure(name: &str) -> Self {
        Self::new(2812, 16, format!("Could not find stored procedure '{name}'.")).with_state(62)
    }

    /// 226
    pub fn not_in_transaction(statement: &str) -> Self {
        Self::new(
            226,
            16,
            format!("{statement} statement not allowed within multi-statement transaction."),
        )
        .with_state(6)
    }

    /// 628
    pub fn save_without_transaction() -> Self {
        Self::new(628, 16, "Cannot issue SAVE TRANSACTION when there is no active transaction.")
            .with_state(0)
    }

    /// 3902
    pub fn commit_without_transaction() -> Self {
        Self::new(
            3902,
            16,
            "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.",
        )
    }

    /// 3903
    pub fn rollback_without_transaction() -> Self {
        Self::new(
            3903,
            16,
            "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.",
        )
    }

    /// 6401
    pub fn unknown_savepoint(name: &str) -> Self {
        Self::new(
            6401,
            16,
            format!("Cannot roll back {name}. No transaction or savepoint of that name was found."),
        )
    }

    /// 10704
    pub fn throw_outside_catch() -> Self {
        Self::new(
            10704,
            15,
            "To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside \
             a CATCH block, or add error parameters to the THROW statement.",
        )
    }

    /// 148
    pub fn bad_wait(time: &str) -> Self {
        Self::new(
            148,
            15,
            format!("Incorrect time syntax in time string '{time}' used with WAITFOR."),
        )
    }

    /// 217
    pub fn too_deep() -> Self {
        Self::new(
            217,
            16,
            "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).",
        )
    }

    /// 8178
    pub fn parameter_missing(statement: &str, parameter: &str) -> Self {
        Self::new(
            8178,
            16,
            format!(
                "The parameterized query '{statement}' expects the parameter '@{parameter}', which was not supplied."
            ),
        )
    }

    /// 201
    pub fn argument_missing(procedure: &str, parameter: &str) -> Self {
        Self::new(
            201,
            16,
            format!(
                "Procedure or function '{procedure}' expects parameter '@{parameter}', which was not supplied."
            ),
        )
        .with_state(4)
    }

    /// 8144
    pub fn too_many_arguments(procedure: &str) -> Self {
        Self::new(
            8144,
            16,
            format!("Procedure or function {procedure} has too many arguments specified."),
        )
        .with_state(2)
    }

    /// 8145
    pub fn unknown_parameter(procedure: &str, parameter: &str) -> Self {
        Self::new(8145, 16, format!("@{parameter} is not a parameter for procedure {procedure}."))
    }

    /// 2714
    pub fn object_exists(name: &str) -> Self {
        Self::new(2714, 16, format!("There is already an object named '{name}' in the database."))
            .with_state(6)
    }

    /// 3701; what: `table`, `view`, `index`, `database`
    pub fn cannot_drop(what: &str, name: &str) -> Self {
        Self::new(
            3701,
            11,
            format!("Cannot drop the {what} '{name}', because it does not exist or you do not have permission."),
        )
        .with_state(5)
    }

    /// 4902
    pub fn unknown_table(name: &str) -> Self {
        Self::new(
            4902,
            16,
            format!("Cannot find the object \"{name}\" because it does not exist or you do not have permissions."),
        )
    }

    /// 1088
    pub fn unknown_target(name: &str) -> Self {
        Self::new(
            1088,
            16,
            format!("Cannot find the object \"{name}\" because it does not exist or you do not have permissions."),
        )
        .with_state(9)
    }

    /// 15151; what is to be done (`find`, `alter`, `drop`), with which kind of thing
    pub fn does_not_exist(verb: &str, kind: &str, name: &str) -> Self {
        Self::known(&pellucid::message::DOES_NOT_EXIST, &[verb, kind, name])
    }

    /// 3031
    pub fn option_conflict(option: &str, others: &str) -> Self {
        Self::known(&pellucid::message::OPTION_CONFLICTS, &[option, others])
    }

    /// 3013, behind the error that ended a backup or restore
    pub fn terminating(statement: &str) -> Self {
        Self::new(3013, 16, format!("{statement} is terminating abnormally."))
    }

    /// 3701 of DROP DATABASE
    pub fn unknown_database_to_drop(name: &str) -> Self {
        Self::cannot_drop("database", name).with_state(1)
    }

    /// 5069, behind what ended an ALTER DATABASE
    pub fn alter_failed() -> Self {
        Self::new(5069, 16, "ALTER DATABASE statement failed.")
    }

    /// 1802, behind what ended a CREATE DATABASE
    pub fn create_failed() -> Self {
        Self::new(
            1802,
            16,
            "CREATE DATABASE failed. Some file names listed could not be created. Check related errors.",
        )
        .with_state(4)
    }

    /// 4712
    pub fn truncate_referenced(name: &str) -> Self {
        Self::new(
            4712,
            16,
            format!("Cannot truncate table '{name}' because it is being referenced by a FOREIGN KEY constraint."),
        )
    }

    /// 3726
    pub fn drop_referenced(name: &str) -> Self {
        Self::new(
            3726,
            16,
            format!("Could not drop object '{name}' because it is referenced by a FOREIGN KEY constraint."),
        )
    }

    /// 3930
    pub fn doomed() -> Self {
        Self::new(
            3930,
            16,
            "The current transaction cannot be committed and cannot support operations that write to the log file. Roll \
             back the transaction.",
        )
    }

    /// 3998
    pub fn doomed_at_end() -> Self {
        Self::new(
            3998,
            16,
            "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.",
        )
    }

    /// 5052
    pub fn not_permitted_while(state: &str) -> Self {
        Self::new(
            5052,
            16,
            format!("ALTER DATABASE is not permitted while a database is in the {state} state."),
        )
    }

    /// 3906
    pub fn read_only(name: &str) -> Self {
        Self::new(
            3906,
            16,
            format!("Failed to update database \"{name}\" because the database is read-only."),
        )
    }

    /// 5041
    pub fn unknown_file(name: &str) -> Self {
        Self::new(5041, 16, format!("MODIFY FILE failed. File '{name}' does not exist."))
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
