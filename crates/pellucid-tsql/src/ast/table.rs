//! CREATE, ALTER and DROP of tables, indexes, views and schemas.

use super::{
    Condition, DataType, Expression, Function, IndexOption, Name, ObjectName, Procedure, Query,
};
use crate::keyword::words;

/// Statements on what is in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectStatement {
    /// `CREATE TABLE`
    CreateTable(CreateTable),
    /// `ALTER TABLE`
    AlterTable { table: ObjectName, action: AlterTable },
    /// `DROP TABLE`
    DropTables { if_exists: bool, tables: Vec<ObjectName> },
    /// `TRUNCATE TABLE`
    TruncateTable(ObjectName),
    /// `CREATE INDEX`
    CreateIndex(CreateIndex),
    /// `DROP INDEX`
    DropIndexes { if_exists: bool, indexes: Vec<DropIndex> },
    /// `CREATE VIEW`, `ALTER VIEW`
    View(View),
    /// `CREATE FUNCTION` and its like.
    Function(Box<Function>),
    /// `DROP FUNCTION`
    DropFunctions { if_exists: bool, functions: Vec<ObjectName> },
    /// `DROP VIEW`
    DropViews { if_exists: bool, views: Vec<ObjectName> },
    /// `CREATE PROCEDURE`, `ALTER PROCEDURE`
    Procedure(Box<Procedure>),
    /// `DROP PROCEDURE`
    DropProcedures { if_exists: bool, procedures: Vec<ObjectName> },
    /// `CREATE SCHEMA`
    CreateSchema { name: Name, authorization: Option<Name> },
    /// `DROP SCHEMA`
    DropSchema { if_exists: bool, name: Name },
    /// DROP of what nobody can create here, by the words of [`crate::known::DROPS`]
    DropAbsent {
        what: &'static str,
        if_exists: bool,
        names: Vec<ObjectName>,
        on: Option<TriggerPlace>,
    },
    /// `{ENABLE | DISABLE} TRIGGER`; no names: `ALL`
    SwitchTriggers { enable: bool, names: Vec<ObjectName>, on: TriggerPlace },
}

/// Where a trigger is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerPlace {
    /// `ON table`
    Object(ObjectName),
    /// `ON DATABASE`
    Database,
    /// `ON ALL SERVER`
    Server,
}

/// `CREATE TABLE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTable {
    /// Its name.
    pub name: ObjectName,
    /// Columns and constraints, at least one.
    pub elements: Vec<TableElement>,
    /// `ON filegroup`
    pub filegroup: Option<Name>,
    /// `TEXTIMAGE_ON filegroup`
    pub text_filegroup: Option<Name>,
    /// `WITH (..)`
    pub options: Vec<IndexOption>,
}

/// A column or a constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableElement {
    /// A column.
    Column(Box<Column>),
    /// `name AS expression [PERSISTED]`
    Computed { name: Name, value: Expression, persisted: bool },
    /// A constraint.
    Constraint(TableConstraint),
    /// `INDEX name (columns)`
    Index(TableIndex),
}

/// `INDEX name [UNIQUE] [CLUSTERED] (columns) [INCLUDE (..)] [WITH (..)] [ON filegroup]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableIndex {
    /// Its name.
    pub name: Name,
    /// `UNIQUE`
    pub unique: bool,
    /// `CLUSTERED`, `NONCLUSTERED`
    pub clustering: Option<Clustering>,
    /// Its columns.
    pub columns: Vec<IndexColumn>,
    /// `INCLUDE`
    pub include: Vec<Name>,
    /// `WITH (..)`
    pub options: Vec<IndexOption>,
    /// `ON filegroup`
    pub filegroup: Option<Name>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub data_type: DataType,
    /// `COLLATE`
    pub collation: Option<Name>,
    /// What else is said of it, in order.
    pub properties: Vec<ColumnProperty>,
}

/// What is said of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnProperty {
    /// `NULL`, `NOT NULL`
    Nullable(bool),
    /// `IDENTITY [(seed, increment)]`
    Identity(Option<Identity>),
    /// `ROWGUIDCOL`
    RowGuid,
    /// `SPARSE`
    Sparse,
    /// `[CONSTRAINT name] ..`
    Constraint { name: Option<Name>, constraint: ColumnConstraint },
}

/// `(seed, increment)`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The first.
    pub seed: i64,
    /// What is added.
    pub increment: i64,
}

/// A constraint on one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnConstraint {
    /// `DEFAULT`
    Default(Expression),
    /// `PRIMARY KEY`, `UNIQUE`
    Key(Key),
    /// `CHECK`
    Check(Condition),
    /// `REFERENCES`
    References(References),
}

/// `{PRIMARY KEY | UNIQUE} [CLUSTERED | NONCLUSTERED] [WITH (..)] [ON filegroup]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// `PRIMARY KEY`
    pub primary: bool,
    /// `CLUSTERED`, `NONCLUSTERED`
    pub clustering: Option<Clustering>,
    /// `WITH (..)`
    pub options: Vec<IndexOption>,
    /// `ON filegroup`
    pub filegroup: Option<Name>,
}

words! {
    /// Whether an index is the table's own order.
    pub enum Clustering {
        Clustered = CLUSTERED,
        Nonclustered = NONCLUSTERED,
    }
}

/// `REFERENCES t [(columns)] [ON DELETE ..] [ON UPDATE ..]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct References {
    /// What is referred to.
    pub table: ObjectName,
    /// Its columns; empty: its primary key.
    pub columns: Vec<Name>,
    /// `ON DELETE`
    pub on_delete: Option<ReferentialAction>,
    /// `ON UPDATE`
    pub on_update: Option<ReferentialAction>,
}

/// What follows a change of the row referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferentialAction {
    /// `NO ACTION`
    NoAction,
    /// `CASCADE`
    Cascade,
    /// `SET NULL`
    SetNull,
    /// `SET DEFAULT`
    SetDefault,
}

/// A constraint on a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableConstraint {
    /// `CONSTRAINT name`
    pub name: Option<Name>,
    /// What it says.
    pub rule: TableRule,
}

/// What a constraint on a table says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableRule {
    /// `PRIMARY KEY (..)`, `UNIQUE (..)`
    Key { key: Key, columns: Vec<IndexColumn> },
    /// `FOREIGN KEY (..) REFERENCES`
    ForeignKey { columns: Vec<Name>, references: References },
    /// `CHECK`
    Check(Condition),
    /// `DEFAULT value FOR column`, of ALTER TABLE
    Default { value: Expression, column: Name },
}

/// `name [ASC | DESC]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexColumn {
    /// Its name.
    pub name: Name,
    /// `DESC`
    pub descending: bool,
}

/// What `ALTER TABLE` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterTable {
    /// `[WITH {CHECK | NOCHECK}] ADD ..`
    Add { check: Option<bool>, elements: Vec<TableElement> },
    /// `ALTER COLUMN`
    AlterColumn(Column),
    /// `DROP COLUMN`
    DropColumns { if_exists: bool, columns: Vec<Name> },
    /// `DROP CONSTRAINT`
    DropConstraints { if_exists: bool, constraints: Vec<Name> },
    /// `[WITH ..] {CHECK | NOCHECK} CONSTRAINT`; empty: `ALL`
    CheckConstraints { check: Option<bool>, enable: bool, constraints: Vec<Name> },
    /// `REBUILD`
    Rebuild(Vec<IndexOption>),
}

/// `CREATE INDEX`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateIndex {
    /// `UNIQUE`
    pub unique: bool,
    /// `CLUSTERED`, `NONCLUSTERED`
    pub clustering: Option<Clustering>,
    /// `COLUMNSTORE`
    pub columnstore: bool,
    /// Its name.
    pub name: Name,
    /// Of which table.
    pub table: ObjectName,
    /// Its columns; empty only for a clustered columnstore.
    pub columns: Vec<IndexColumn>,
    /// `INCLUDE`
    pub include: Vec<Name>,
    /// `WHERE`
    pub filter: Option<Condition>,
    /// `WITH (..)`
    pub options: Vec<IndexOption>,
    /// `ON filegroup`
    pub filegroup: Option<Name>,
}

/// `name ON table`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropIndex {
    /// Its name.
    pub name: Name,
    /// Of which table.
    pub table: ObjectName,
}

/// `{CREATE [OR ALTER] | ALTER} VIEW`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Whether it may or must be there already.
    pub verb: ViewVerb,
    /// Its name.
    pub name: ObjectName,
    /// Its columns; empty: those of the query.
    pub columns: Vec<Name>,
    /// `WITH SCHEMABINDING`
    pub schema_binding: bool,
    /// `WITH VIEW_METADATA`, which changes no result.
    pub metadata: bool,
    /// What it stands for.
    pub query: Box<Query>,
    /// `WITH CHECK OPTION`
    pub check_option: bool,
}

/// What is done with a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewVerb {
    /// `CREATE`
    Create,
    /// `CREATE OR ALTER`
    CreateOrAlter,
    /// `ALTER`
    Alter,
}
