//! CREATE, ALTER and DROP DATABASE.

use pellucid_tsql::ast::{
    AlterDatabase, CreateDatabase, CreateDatabaseOption, DatabaseOption, DatabaseStatement,
    FileSize, FileSpec, Filegroup, MaxSize, SizeUnit, Termination,
};

use super::{put, If, List, Listed, Maybe, OnOff, One, Print, Printer};

impl Print for DatabaseStatement {
    fn print(&self, to: &mut Printer) {
        match self {
            DatabaseStatement::Create(create) => create.print(to),
            DatabaseStatement::Alter { database, action } => {
                put!(to, "ALTER DATABASE ");
                match database {
                    Some(name) => put!(to, name, " ", action),
                    None => put!(to, "CURRENT ", action),
                }
            }
            DatabaseStatement::Authorize { database, owner } => {
                put!(to, "ALTER AUTHORIZATION ON DATABASE::", database, " TO ", owner);
            }
            DatabaseStatement::Drop { if_exists, databases } => {
                put!(to, "DROP DATABASE ", If(*if_exists, "IF EXISTS "), List(databases));
            }
        }
    }
}

impl Print for CreateDatabase {
    fn print(&self, to: &mut Printer) {
        put!(to, "CREATE DATABASE ", self.name);
        if !self.files.is_empty() || !self.filegroups.is_empty() {
            put!(to, " ON ", List(&self.files));
            put!(to, If(!self.files.is_empty() && !self.filegroups.is_empty(), ", "));
            put!(to, List(&self.filegroups));
        }
        put!(to, Listed(" LOG ON ", &self.log_files, ""), Maybe(" COLLATE ", &self.collation));
        put!(to, Maybe(" FOR ", &self.attach.map(One)), Listed(" WITH ", &self.options, ""));
    }
}

impl Print for CreateDatabaseOption {
    fn print(&self, to: &mut Printer) {
        put!(to, One(self.switch), " ", OnOff(self.on));
    }
}

impl Print for Filegroup {
    fn print(&self, to: &mut Printer) {
        put!(to, "FILEGROUP ", self.name, If(self.default, " DEFAULT"), " ", List(&self.files));
    }
}

impl Print for FileSpec {
    fn print(&self, to: &mut Printer) {
        let mut before = "(";
        let mut property = |word: &str, what: &dyn Print, to: &mut Printer| {
            put!(to, before, word);
            what.print(to);
            before = ", ";
        };
        if let Some(name) = &self.name {
            property("NAME = ", name, to);
        }
        if let Some(name) = &self.new_name {
            property("NEWNAME = ", name, to);
        }
        if let Some(path) = &self.file_name {
            property("FILENAME = ", path, to);
        }
        if let Some(size) = &self.size {
            property("SIZE = ", size, to);
        }
        if let Some(size) = &self.max_size {
            property("MAXSIZE = ", size, to);
        }
        if let Some(growth) = &self.growth {
            property("FILEGROWTH = ", growth, to);
        }
        if self.offline {
            property("OFFLINE", &"", to);
        }
        put!(to, ")");
    }
}

impl Print for FileSize {
    fn print(&self, to: &mut Printer) {
        put!(to, self.value);
        match self.unit {
            Some(SizeUnit::Bytes(unit)) => put!(to, " ", One(unit)),
            Some(SizeUnit::Percent) => put!(to, "%"),
            None => {}
        }
    }
}

impl Print for MaxSize {
    fn print(&self, to: &mut Printer) {
        match self {
            MaxSize::Size(size) => size.print(to),
            MaxSize::Unlimited => put!(to, "UNLIMITED"),
        }
    }
}

impl Print for AlterDatabase {
    fn print(&self, to: &mut Printer) {
        match self {
            AlterDatabase::Set { options, termination } => {
                put!(to, "SET ", List(options), Maybe(" WITH ", termination));
            }
            AlterDatabase::ModifyFile(file) => put!(to, "MODIFY FILE ", file),
            AlterDatabase::AddFiles { files, filegroup } => {
                put!(to, "ADD FILE ", List(files), Maybe(" TO FILEGROUP ", filegroup));
            }
            AlterDatabase::AddLogFiles(files) => put!(to, "ADD LOG FILE ", List(files)),
            AlterDatabase::RemoveFile(name) => put!(to, "REMOVE FILE ", name),
            AlterDatabase::AddFilegroup(name) => put!(to, "ADD FILEGROUP ", name),
            AlterDatabase::RemoveFilegroup(name) => put!(to, "REMOVE FILEGROUP ", name),
            AlterDatabase::ModifyName(name) => put!(to, "MODIFY NAME = ", name),
            AlterDatabase::Collate(name) => put!(to, "COLLATE ", name),
        }
    }
}

impl Print for Termination {
    fn print(&self, to: &mut Printer) {
        match self {
            Termination::RollbackImmediate => put!(to, "ROLLBACK IMMEDIATE"),
            Termination::RollbackAfterSeconds(seconds) => {
                put!(to, "ROLLBACK AFTER ", seconds, " SECONDS");
            }
            Termination::NoWait => put!(to, "NO_WAIT"),
        }
    }
}

impl Print for DatabaseOption {
    fn print(&self, to: &mut Printer) {
        match self {
            DatabaseOption::Encryption(action) => put!(to, "ENCRYPTION ", One(*action)),
            DatabaseOption::Recovery(model) => put!(to, "RECOVERY ", One(*model)),
            DatabaseOption::CompatibilityLevel(level) => put!(to, "COMPATIBILITY_LEVEL = ", level),
            DatabaseOption::Access(access) => put!(to, One(*access)),
            DatabaseOption::PageVerify(how) => put!(to, "PAGE_VERIFY ", One(*how)),
            DatabaseOption::ForcedParameterization(forced) => {
                put!(to, "PARAMETERIZATION ", if *forced { "FORCED" } else { "SIMPLE" });
            }
            DatabaseOption::LocalCursors(local) => {
                put!(to, "CURSOR_DEFAULT ", if *local { "LOCAL" } else { "GLOBAL" });
            }
            DatabaseOption::TargetRecoverySeconds(seconds) => {
                put!(to, "TARGET_RECOVERY_TIME = ", seconds, " SECONDS");
            }
            DatabaseOption::DelayedDurability(how) => {
                put!(to, "DELAYED_DURABILITY = ", One(*how));
            }
            DatabaseOption::Switch { switch, on } => put!(to, One(*switch), " ", OnOff(*on)),
        }
    }
}
