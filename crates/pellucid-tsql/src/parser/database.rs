//! CREATE, ALTER and DROP DATABASE.

use super::Parser;
use crate::ast::{
    AlterDatabase, ByteUnit, CreateDatabase, CreateDatabaseOption, DatabaseAccess, DatabaseOption,
    DatabaseStatement, DatabaseSwitch, FileSize, FileSpec, Filegroup, MaxSize, SizeUnit,
    StatementKind, Termination,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

/// Each of these begins behind its verb.
impl Parser<'_> {
    pub(super) fn create_database(&mut self) -> Result<StatementKind> {
        self.require(K::DATABASE)?;
        let mut create = CreateDatabase {
            name: self.name()?,
            files: Vec::new(),
            filegroups: Vec::new(),
            log_files: Vec::new(),
            collation: None,
            attach: None,
            options: Vec::new(),
        };
        if self.at_both(K::AS, K::COPY) {
            return self.unsupported("CREATE DATABASE AS COPY OF");
        }
        if self.accept(K::CONTAINMENT) {
            // NONE is what there is anyway, and Management Studio always writes it.
            self.require_symbol(Symbol::Equal)?;
            if !self.accept(K::NONE) {
                return self.unsupported("CREATE DATABASE CONTAINMENT = PARTIAL");
            }
        }
        if self.accept(K::ON) {
            self.accept(K::PRIMARY);
            self.create_files(&mut create)?;
        }
        if self.accept(K::LOG) {
            self.require(K::ON)?;
            create.log_files = self.comma_list(Self::file_spec)?;
        }
        if self.accept(K::COLLATE) {
            create.collation = Some(self.name()?);
        }
        if self.at_both(K::AS, K::SNAPSHOT) {
            return self.unsupported("CREATE DATABASE AS SNAPSHOT OF");
        }
        if self.accept(K::FOR) {
            create.attach = Some(self.require_word()?);
        }
        if self.accept(K::WITH) {
            create.options = self.comma_list(Self::create_database_option)?;
        }
        Ok(StatementKind::Database(DatabaseStatement::Create(Box::new(create))))
    }

    /// Files of the primary filegroup, then those of the others.
    fn create_files(&mut self, create: &mut CreateDatabase) -> Result<()> {
        loop {
            match self.at(K::FILEGROUP) {
                true => create.filegroups.push(self.filegroup()?),
                false => match create.filegroups.last_mut() {
                    Some(group) => group.files.push(self.file_spec()?),
                    None => create.files.push(self.file_spec()?),
                },
            }
            if !self.accept_symbol(Symbol::Comma) {
                return Ok(());
            }
        }
    }

    fn filegroup(&mut self) -> Result<Filegroup> {
        self.advance();
        let name = self.name()?;
        if self.accept(K::CONTAINS) {
            return self.unsupported(format!("FILEGROUP CONTAINS {}", self.text(self.current)));
        }
        let default = self.accept(K::DEFAULT);
        Ok(Filegroup { name, default, files: vec![self.file_spec()?] })
    }

    fn create_database_option(&mut self) -> Result<CreateDatabaseOption> {
        match self.accept_word() {
            Some(switch) => {
                self.accept_symbol(Symbol::Equal);
                Ok(CreateDatabaseOption { switch, on: self.on_off()? })
            }
            None if self.at_name() => {
                let option = self.text(self.current).to_uppercase();
                self.unsupported(format!("CREATE DATABASE WITH {option}"))
            }
            None => self.unexpected(),
        }
    }

    /// `(NAME = .., ..)`
    fn file_spec(&mut self) -> Result<FileSpec> {
        let mut spec = FileSpec::default();
        self.parenthesized_list(|p| p.file_property(&mut spec))?;
        Ok(spec)
    }

    fn file_property(&mut self, spec: &mut FileSpec) -> Result<()> {
        let word = self.keyword();
        let repeated = match word {
            Some(K::NAME) => spec.name.is_some(),
            Some(K::NEWNAME) => spec.new_name.is_some(),
            Some(K::FILENAME) => spec.file_name.is_some(),
            Some(K::SIZE) => spec.size.is_some(),
            Some(K::MAXSIZE) => spec.max_size.is_some(),
            Some(K::FILEGROWTH) => spec.growth.is_some(),
            Some(K::OFFLINE) => spec.offline,
            _ => true,
        };
        if repeated {
            return self.unexpected();
        }
        self.advance();
        if word == Some(K::OFFLINE) {
            spec.offline = true;
            return Ok(());
        }
        self.require_symbol(Symbol::Equal)?;
        match word {
            Some(K::NAME) => spec.name = Some(self.name_or_string()?),
            Some(K::NEWNAME) => spec.new_name = Some(self.name_or_string()?),
            Some(K::FILENAME) => spec.file_name = Some(self.string()?),
            Some(K::SIZE) => spec.size = Some(self.file_size()?),
            Some(K::FILEGROWTH) => spec.growth = Some(self.file_growth()?),
            _ => {
                spec.max_size = Some(match self.accept(K::UNLIMITED) {
                    true => MaxSize::Unlimited,
                    false => MaxSize::Size(self.file_size()?),
                });
            }
        }
        Ok(())
    }

    fn file_size(&mut self) -> Result<FileSize> {
        let value = self.integer()?;
        Ok(FileSize { value, unit: self.accept_word::<ByteUnit>().map(SizeUnit::Bytes) })
    }

    fn file_growth(&mut self) -> Result<FileSize> {
        let mut size = self.file_size()?;
        if size.unit.is_none() && self.accept_symbol(Symbol::Percent) {
            size.unit = Some(SizeUnit::Percent);
        }
        Ok(size)
    }

    /// `ALTER AUTHORIZATION ON DATABASE::name TO owner`
    pub(super) fn alter_authorization(&mut self) -> Result<StatementKind> {
        self.advance();
        self.require(K::ON)?;
        if !self.accept(K::DATABASE) {
            return self.unsupported("ALTER AUTHORIZATION ON other than a database");
        }
        self.require_symbol(Symbol::DoubleColon)?;
        let database = self.name()?;
        self.require(K::TO)?;
        if self.at(K::SCHEMA) {
            return self.unexpected();
        }
        let owner = self.name()?;
        Ok(StatementKind::Database(DatabaseStatement::Authorize { database, owner }))
    }

    pub(super) fn alter_database(&mut self) -> Result<StatementKind> {
        self.require(K::DATABASE)?;
        let database = match self.accept(K::CURRENT) {
            true => None,
            false => Some(self.name()?),
        };
        let action = self.alter_database_action()?;
        Ok(StatementKind::Database(DatabaseStatement::Alter { database, action }))
    }

    fn alter_database_action(&mut self) -> Result<AlterDatabase> {
        let second = match self.peek() {
            TokenKind::Keyword(word) => Some(word),
            _ => None,
        };
        match (self.keyword(), second) {
            (Some(K::SET), _) => {
                self.advance();
                let options = self.comma_list(Self::database_option)?;
                let termination = self.termination()?;
                Ok(AlterDatabase::Set { options, termination })
            }
            (Some(K::MODIFY), Some(K::FILE)) => {
                self.require_all(&[K::MODIFY, K::FILE])?;
                self.file_spec().map(AlterDatabase::ModifyFile)
            }
            (Some(K::MODIFY), Some(K::NAME)) => {
                self.require_all(&[K::MODIFY, K::NAME])?;
                self.require_symbol(Symbol::Equal)?;
                self.name().map(AlterDatabase::ModifyName)
            }
            (Some(K::MODIFY), Some(K::FILEGROUP)) => {
                self.unsupported("ALTER DATABASE MODIFY FILEGROUP")
            }
            (Some(K::ADD), Some(K::FILE)) => {
                self.require_all(&[K::ADD, K::FILE])?;
                let files = self.comma_list(Self::file_spec)?;
                let filegroup = match self.accept(K::TO) {
                    true => {
                        self.require(K::FILEGROUP)?;
                        Some(self.name()?)
                    }
                    false => None,
                };
                Ok(AlterDatabase::AddFiles { files, filegroup })
            }
            (Some(K::ADD), Some(K::LOG)) => {
                self.require_all(&[K::ADD, K::LOG, K::FILE])?;
                self.comma_list(Self::file_spec).map(AlterDatabase::AddLogFiles)
            }
            (Some(K::ADD), Some(K::FILEGROUP)) => {
                self.require_all(&[K::ADD, K::FILEGROUP])?;
                let name = self.name()?;
                match self.at(K::CONTAINS) {
                    true => self.unsupported("ADD FILEGROUP CONTAINS"),
                    false => Ok(AlterDatabase::AddFilegroup(name)),
                }
            }
            (Some(K::REMOVE), Some(K::FILE)) => {
                self.require_all(&[K::REMOVE, K::FILE])?;
                self.name_or_string().map(AlterDatabase::RemoveFile)
            }
            (Some(K::REMOVE), Some(K::FILEGROUP)) => {
                self.require_all(&[K::REMOVE, K::FILEGROUP])?;
                self.name().map(AlterDatabase::RemoveFilegroup)
            }
            (Some(K::COLLATE), _) => {
                self.advance();
                self.name().map(AlterDatabase::Collate)
            }
            (Some(K::REBUILD), Some(K::LOG)) => self.unsupported("ALTER DATABASE REBUILD LOG"),
            _ => self.unexpected(),
        }
    }

    fn termination(&mut self) -> Result<Option<Termination>> {
        let follows = matches!(self.peek(), TokenKind::Keyword(K::ROLLBACK | K::NO_WAIT));
        if !(self.at(K::WITH) && follows) {
            return Ok(None);
        }
        self.advance();
        if self.accept(K::NO_WAIT) {
            return Ok(Some(Termination::NoWait));
        }
        self.require(K::ROLLBACK)?;
        if self.accept(K::IMMEDIATE) {
            return Ok(Some(Termination::RollbackImmediate));
        }
        self.require(K::AFTER)?;
        let seconds = self.integer()?;
        self.accept(K::SECONDS);
        Ok(Some(Termination::RollbackAfterSeconds(seconds)))
    }

    /// `(INCREMENTAL = OFF)`, which is how statistics are.
    fn incremental(&mut self) -> Result<()> {
        if !self.accept_symbol(Symbol::LeftParenthesis) {
            return Ok(());
        }
        self.require(K::INCREMENTAL)?;
        self.require_symbol(Symbol::Equal)?;
        if self.on_off()? {
            return self.unsupported("AUTO_CREATE_STATISTICS ON (INCREMENTAL = ON)");
        }
        self.require_symbol(Symbol::RightParenthesis)
    }

    fn database_option(&mut self) -> Result<DatabaseOption> {
        if let Some(access) = self.accept_word::<DatabaseAccess>() {
            return Ok(DatabaseOption::Access(access));
        }
        if let Some(switch) = self.accept_word::<DatabaseSwitch>() {
            self.accept_symbol(Symbol::Equal);
            let on = self.on_off()?;
            if switch == DatabaseSwitch::AutoCreateStatistics {
                self.incremental()?;
            }
            return Ok(DatabaseOption::Switch { switch, on });
        }
        let word = self.keyword();
        match word {
            Some(
                K::ENCRYPTION
                | K::RECOVERY
                | K::COMPATIBILITY_LEVEL
                | K::PAGE_VERIFY
                | K::PARAMETERIZATION
                | K::CURSOR_DEFAULT
                | K::TARGET_RECOVERY_TIME
                | K::DELAYED_DURABILITY,
            ) => self.advance(),
            _ if self.at_name() => {
                let option = self.text(self.current).to_uppercase();
                return self.unsupported(format!("ALTER DATABASE SET {option}"));
            }
            _ => return self.unexpected(),
        };
        Ok(match word {
            Some(K::ENCRYPTION) => DatabaseOption::Encryption(self.require_word()?),
            Some(K::RECOVERY) => DatabaseOption::Recovery(self.require_word()?),
            Some(K::PAGE_VERIFY) => DatabaseOption::PageVerify(self.require_word()?),
            Some(K::PARAMETERIZATION) => {
                DatabaseOption::ForcedParameterization(self.either(K::FORCED, K::SIMPLE)?)
            }
            Some(K::CURSOR_DEFAULT) => {
                DatabaseOption::LocalCursors(self.either(K::LOCAL, K::GLOBAL)?)
            }
            Some(K::COMPATIBILITY_LEVEL) => {
                DatabaseOption::CompatibilityLevel(self.equal_integer()?)
            }
            Some(K::TARGET_RECOVERY_TIME) => self.target_recovery()?,
            _ => {
                self.require_symbol(Symbol::Equal)?;
                DatabaseOption::DelayedDurability(self.require_word()?)
            }
        })
    }

    /// Whether it is `yes`; else it has to be `no`.
    fn either(&mut self, yes: K, no: K) -> Result<bool> {
        match self.accept(yes) {
            true => Ok(true),
            false => self.require(no).map(|()| false),
        }
    }

    fn target_recovery(&mut self) -> Result<DatabaseOption> {
        let value = self.equal_integer()?;
        let seconds = match self.either(K::MINUTES, K::SECONDS)? {
            true => value.checked_mul(60),
            false => Some(value),
        };
        match seconds {
            Some(seconds) => Ok(DatabaseOption::TargetRecoverySeconds(seconds)),
            None => self.unexpected(),
        }
    }

    pub(super) fn drop_database(&mut self) -> Result<StatementKind> {
        self.require(K::DATABASE)?;
        let if_exists = self.if_exists()?;
        let databases = self.comma_list(Self::name)?;
        Ok(StatementKind::Database(DatabaseStatement::Drop { if_exists, databases }))
    }

    /// `[IF EXISTS]`
    pub(super) fn if_exists(&mut self) -> Result<bool> {
        match self.accept(K::IF) {
            true => self.require(K::EXISTS).map(|()| true),
            false => Ok(false),
        }
    }
}
