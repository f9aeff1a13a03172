//! Backups, databases, tables and their like out of bytes.

use pellucid_tsql::ast::*;

use super::Choices;

impl Choices<'_> {
    fn database_name(&mut self) -> NameOrVariable {
        self.or_variable(Self::name)
    }

    pub(super) fn device(&mut self) -> Device {
        match self.flag() {
            true => Device::Logical(self.database_name()),
            false => Device::Physical { kind: self.word(), path: self.text() },
        }
    }

    fn files(&mut self) -> Vec<FileSelection> {
        self.list(0, |c| match c.below(4) {
            0 => FileSelection::File(c.text()),
            1 => FileSelection::Filegroup(c.text()),
            2 => FileSelection::ReadWriteFilegroups,
            _ => FileSelection::Page(c.text()),
        })
    }

    fn media_option(&mut self) -> MediaOption {
        use pellucid_tsql::secret::Secret;
        match self.below(9) {
            0 => MediaOption::Flag(self.word()),
            1 => MediaOption::BlockSize(self.count()),
            2 => MediaOption::BufferCount(self.count()),
            3 => MediaOption::MaxTransferSize(self.count()),
            4 => MediaOption::Stats(self.maybe(Self::count)),
            5 => MediaOption::MediaName(self.text()),
            6 => MediaOption::MediaPassword(Secret::new(self.string().text)),
            7 => MediaOption::Password(Secret::new(self.string().text)),
            _ => MediaOption::Credential(self.string()),
        }
    }

    pub(super) fn backup(&mut self) -> Backup {
        Backup {
            kind: self.word(),
            database: self.database_name(),
            files: self.files(),
            devices: self.list(1, Self::device),
            mirrors: self.list(0, |c| c.list(1, Self::device)),
            options: self.list(0, |c| match c.below(10) {
                0 => BackupOption::Flag(c.word()),
                1 => BackupOption::Media(c.media_option()),
                2 => BackupOption::Compression(
                    c.maybe(|c| Compression { algorithm: c.word(), level: c.maybe(Self::word) }),
                ),
                3 => BackupOption::Encryption {
                    algorithm: c.word(),
                    encryptor: match c.flag() {
                        true => Encryptor::Certificate(c.name()),
                        false => Encryptor::AsymmetricKey(c.name()),
                    },
                },
                4 => BackupOption::Name(c.text()),
                5 => BackupOption::Description(c.text()),
                6 => BackupOption::MediaDescription(c.text()),
                7 => BackupOption::ExpireDate(c.text()),
                8 => BackupOption::RetainDays(c.count()),
                _ => BackupOption::Standby(c.text()),
            }),
        }
    }

    pub(super) fn restore(&mut self) -> Restore {
        let source = match self.below(3) {
            0 => RestoreSource::Nothing,
            1 => RestoreSource::Devices(self.list(1, Self::device)),
            _ => RestoreSource::Snapshot(self.database_name()),
        };
        Restore {
            kind: self.word(),
            database: self.database_name(),
            files: self.files(),
            source,
            options: self.list(0, Self::restore_option),
        }
    }

    pub(super) fn restore_option(&mut self) -> RestoreOption {
        match self.below(8) {
            0 => RestoreOption::Flag(self.word()),
            1 => RestoreOption::Media(self.media_option()),
            2 => RestoreOption::Standby(self.text()),
            3 => RestoreOption::Move { logical: self.text(), path: self.text() },
            4 => RestoreOption::File(self.count()),
            5 => RestoreOption::StopAt(self.text()),
            6 => RestoreOption::StopAtMark(self.stop_mark()),
            _ => RestoreOption::StopBeforeMark(self.stop_mark()),
        }
    }

    fn stop_mark(&mut self) -> StopMark {
        StopMark { mark: self.text(), after: self.maybe(Self::text) }
    }

    fn size(&mut self) -> FileSize {
        FileSize { value: self.number(), unit: self.maybe(|c| SizeUnit::Bytes(c.word())) }
    }

    fn file(&mut self) -> FileSpec {
        FileSpec {
            name: Some(self.name()),
            new_name: self.maybe(Self::name),
            file_name: self.maybe(Self::string),
            size: self.maybe(Self::size),
            max_size: self.maybe(|c| match c.flag() {
                true => MaxSize::Unlimited,
                false => MaxSize::Size(c.size()),
            }),
            growth: self.maybe(|c| match c.flag() {
                true => FileSize { value: 10, unit: Some(SizeUnit::Percent) },
                false => c.size(),
            }),
            offline: self.flag(),
        }
    }

    pub(super) fn database(&mut self) -> DatabaseStatement {
        match self.below(4) {
            3 => DatabaseStatement::Authorize { database: self.name(), owner: self.name() },
            0 => DatabaseStatement::Drop { if_exists: self.flag(), databases: self.names(1) },
            1 => DatabaseStatement::Create(Box::new(CreateDatabase {
                name: self.name(),
                files: self.list(0, Self::file),
                filegroups: self.list(0, |c| Filegroup {
                    name: c.name(),
                    default: c.flag(),
                    files: c.list(1, Self::file),
                }),
                log_files: self.list(0, Self::file),
                collation: self.maybe(Self::name),
                attach: self.maybe(Self::word),
                options: self.list(0, |c| CreateDatabaseOption { switch: c.word(), on: c.flag() }),
            })),
            _ => DatabaseStatement::Alter {
                database: self.maybe(Self::name),
                action: self.alter_database(),
            },
        }
    }

    fn alter_database(&mut self) -> AlterDatabase {
        match self.below(9) {
            0 => AlterDatabase::Set {
                options: self.list(1, Self::database_option),
                termination: self.maybe(|c| match c.below(3) {
                    0 => Termination::NoWait,
                    1 => Termination::RollbackImmediate,
                    _ => Termination::RollbackAfterSeconds(c.number()),
                }),
            },
            1 => AlterDatabase::ModifyFile(self.file()),
            2 => AlterDatabase::AddFiles {
                files: self.list(1, Self::file),
                filegroup: self.maybe(Self::name),
            },
            3 => AlterDatabase::AddLogFiles(self.list(1, Self::file)),
            4 => AlterDatabase::RemoveFile(self.name()),
            5 => AlterDatabase::AddFilegroup(self.name()),
            6 => AlterDatabase::RemoveFilegroup(self.name()),
            7 => AlterDatabase::ModifyName(self.name()),
            _ => AlterDatabase::Collate(self.name()),
        }
    }

    fn database_option(&mut self) -> DatabaseOption {
        match self.below(10) {
            0 => DatabaseOption::Encryption(self.word()),
            1 => DatabaseOption::Recovery(self.word()),
            2 => DatabaseOption::CompatibilityLevel(self.number()),
            3 => DatabaseOption::Access(self.word()),
            4 => DatabaseOption::PageVerify(self.word()),
            5 => DatabaseOption::ForcedParameterization(self.flag()),
            6 => DatabaseOption::LocalCursors(self.flag()),
            7 => DatabaseOption::TargetRecoverySeconds(self.number()),
            8 => DatabaseOption::DelayedDurability(self.word()),
            _ => DatabaseOption::Switch { switch: self.word(), on: self.flag() },
        }
    }

    fn index_options(&mut self, least: usize) -> Vec<IndexOption> {
        self.list(least, |c| match c.below(6) {
            0 => {
                let switch = c.word();
                // IGNORE_DUP_KEY = ON is refused.
                let on = switch != IndexSwitch::IgnoreDupKey && c.flag();
                IndexOption::Switch { switch, on }
            }
            1 => IndexOption::FillFactor(c.number()),
            2 => IndexOption::MaxDop(c.number()),
            3 => IndexOption::MaxDurationMinutes(c.number()),
            4 => IndexOption::CompressionDelayMinutes(c.number()),
            _ => IndexOption::DataCompression(c.word()),
        })
    }

    pub(super) fn maintenance(&mut self) -> MaintenanceStatement {
        match self.below(5) {
            0 => MaintenanceStatement::Checkpoint(self.maybe(Self::number)),
            1 => MaintenanceStatement::Reconfigure { with_override: self.flag() },
            2 => MaintenanceStatement::Dbcc {
                command: self.name(),
                arguments: self.list(0, |c| match c.below(4) {
                    0 => DbccArgument::Name(c.object()),
                    1 => DbccArgument::Variable(c.variable()),
                    2 => DbccArgument::SystemVariable("SPID".to_owned()),
                    _ => {
                        let (negative, value) = c.signed();
                        DbccArgument::Literal { negative, value }
                    }
                }),
                options: self
                    .list(0, |c| DbccOption { name: c.name(), value: c.maybe(Self::number) }),
            },
            3 => MaintenanceStatement::UpdateStatistics {
                table: self.object(),
                targets: self.names(0),
                options: self.list(0, |c| match c.below(8) {
                    0 => StatisticsOption::FullScan,
                    1 => StatisticsOption::Resample,
                    2 => StatisticsOption::SamplePercent(c.number()),
                    3 => StatisticsOption::SampleRows(c.number()),
                    4 => StatisticsOption::NoRecompute,
                    5 => StatisticsOption::Scope(c.word()),
                    6 => StatisticsOption::Incremental(c.flag()),
                    _ => StatisticsOption::MaxDop(c.number()),
                }),
            },
            _ => MaintenanceStatement::AlterIndex {
                index: self.maybe(Self::name),
                table: self.object(),
                action: match self.below(4) {
                    0 => IndexAction::Disable,
                    1 => IndexAction::Set(self.index_options(1)),
                    2 => IndexAction::Reorganize {
                        partition: self.maybe(Self::number),
                        options: self.index_options(0),
                    },
                    _ => IndexAction::Rebuild {
                        partition: self.maybe(|c| match c.flag() {
                            true => Partition::All,
                            false => Partition::Number(c.number()),
                        }),
                        options: self.index_options(0),
                    },
                },
            },
        }
    }

    fn key(&mut self) -> Key {
        Key {
            primary: self.flag(),
            clustering: self.maybe(Self::word),
            options: self.index_options(0),
            filegroup: self.maybe(Self::name),
        }
    }

    fn references(&mut self) -> References {
        let action = |c: &mut Self| {
            [
                ReferentialAction::NoAction,
                ReferentialAction::Cascade,
                ReferentialAction::SetNull,
                ReferentialAction::SetDefault,
            ][c.below(4)]
        };
        References {
            table: self.object(),
            columns: self.names(0),
            on_delete: self.maybe(action),
            on_update: self.maybe(action),
        }
    }

    fn column_definition(&mut self) -> Column {
        let name = self.name();
        let data_type = self.data_type();
        let collation = self.maybe(Self::name);
        let properties = self.list(0, |c| match c.below(5) {
            0 => ColumnProperty::Nullable(c.flag()),
            1 => ColumnProperty::Identity(
                c.maybe(|c| Identity { seed: c.number() as i64, increment: c.number() as i64 }),
            ),
            2 => ColumnProperty::RowGuid,
            3 => ColumnProperty::Sparse,
            _ => ColumnProperty::Constraint {
                name: c.maybe(Self::name),
                constraint: match c.below(4) {
                    0 => ColumnConstraint::Default(c.expression()),
                    1 => ColumnConstraint::Key(c.key()),
                    2 => ColumnConstraint::Check(c.condition()),
                    _ => ColumnConstraint::References(c.references()),
                },
            },
        });
        Column { name, data_type, collation, properties }
    }

    fn index_columns(&mut self, least: usize) -> Vec<IndexColumn> {
        self.list(least, |c| IndexColumn { name: c.name(), descending: c.flag() })
    }

    pub(super) fn elements(&mut self) -> Vec<TableElement> {
        self.list(1, |c| match c.below(4) {
            3 => TableElement::Index(TableIndex {
                name: c.name(),
                unique: c.flag(),
                clustering: c.maybe(Self::word),
                columns: c.index_columns(1),
                include: c.names(0),
                options: c.index_options(0),
                filegroup: c.maybe(Self::name),
            }),
            0 => TableElement::Column(Box::new(c.column_definition())),
            1 => TableElement::Computed {
                name: c.name(),
                value: c.expression(),
                persisted: c.flag(),
            },
            _ => TableElement::Constraint(TableConstraint {
                name: c.maybe(Self::name),
                rule: match c.below(4) {
                    0 => TableRule::Key { key: c.key(), columns: c.index_columns(1) },
                    1 => TableRule::ForeignKey { columns: c.names(1), references: c.references() },
                    2 => TableRule::Check(c.condition()),
                    _ => TableRule::Default { value: c.expression(), column: c.name() },
                },
            }),
        })
    }

    fn trigger_place(&mut self) -> TriggerPlace {
        match self.below(3) {
            0 => TriggerPlace::Database,
            1 => TriggerPlace::Server,
            _ => TriggerPlace::Object(self.object()),
        }
    }

    pub(super) fn object_statement(&mut self) -> ObjectStatement {
        let if_exists = self.flag();
        match self.below(8) {
            0 => ObjectStatement::DropTables { if_exists, tables: self.list(1, Self::object) },
            1 if self.flag() => ObjectStatement::DropProcedures {
                if_exists,
                procedures: self.list(1, Self::object),
            },
            1 if self.flag() => {
                ObjectStatement::DropFunctions { if_exists, functions: self.list(1, Self::object) }
            }
            1 => ObjectStatement::DropViews { if_exists, views: self.list(1, Self::object) },
            2 if self.flag() => ObjectStatement::DropSchema { if_exists, name: self.name() },
            2 if self.flag() => ObjectStatement::DropAbsent {
                what: "TRIGGER",
                if_exists,
                names: self.list(1, Self::object),
                on: self.maybe(Self::trigger_place),
            },
            2 => ObjectStatement::SwitchTriggers {
                enable: if_exists,
                names: self.list(0, Self::object),
                on: self.trigger_place(),
            },
            3 => ObjectStatement::DropIndexes {
                if_exists,
                indexes: self.list(1, |c| DropIndex { name: c.name(), table: c.object() }),
            },
            4 => ObjectStatement::TruncateTable(self.object()),
            5 => ObjectStatement::CreateTable(CreateTable {
                name: self.object(),
                elements: self.elements(),
                filegroup: self.maybe(Self::name),
                text_filegroup: self.maybe(Self::name),
                options: self.index_options(0),
            }),
            6 => {
                let columnstore = self.flag();
                ObjectStatement::CreateIndex(CreateIndex {
                    unique: self.flag(),
                    clustering: self.maybe(Self::word),
                    columnstore,
                    name: self.name(),
                    table: self.object(),
                    columns: self.index_columns(usize::from(!columnstore)),
                    include: self.names(0),
                    filter: self.maybe(Self::condition),
                    options: self.index_options(0),
                    filegroup: self.maybe(Self::name),
                })
            }
            _ => ObjectStatement::AlterTable { table: self.object(), action: self.alter_table() },
        }
    }

    fn alter_table(&mut self) -> AlterTable {
        match self.below(6) {
            0 => AlterTable::Add { check: self.maybe(Self::flag), elements: self.elements() },
            1 => AlterTable::AlterColumn(self.column_definition()),
            2 => AlterTable::DropColumns { if_exists: self.flag(), columns: self.names(1) },
            3 => AlterTable::DropConstraints { if_exists: self.flag(), constraints: self.names(1) },
            4 => AlterTable::CheckConstraints {
                check: self.maybe(Self::flag),
                enable: self.flag(),
                constraints: self.names(0),
            },
            _ => AlterTable::Rebuild(self.index_options(0)),
        }
    }
}
