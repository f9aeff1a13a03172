//! Tables, indexes, views and schemas.

use pellucid_tsql::ast::{
    AlterTable, Column, ColumnConstraint, ColumnProperty, CreateIndex, CreateTable, DropIndex,
    Function, FunctionBody, IndexColumn, Key, ObjectStatement, Procedure, ProcedureParameter,
    References, ReferentialAction, TableConstraint, TableElement, TableRule, TriggerPlace, View,
    ViewVerb,
};

use super::control::Indented;
use super::maintenance::Options;
use super::{put, If, List, Listed, Maybe, One, Print, Printer};

impl Print for ObjectStatement {
    fn print(&self, to: &mut Printer) {
        match self {
            ObjectStatement::CreateTable(create) => create.print(to),
            ObjectStatement::AlterTable { table, action } => {
                put!(to, "ALTER TABLE ", table, " ", action);
            }
            ObjectStatement::DropTables { if_exists, tables } => {
                put!(to, "DROP TABLE ", If(*if_exists, "IF EXISTS "), List(tables));
            }
            ObjectStatement::TruncateTable(table) => put!(to, "TRUNCATE TABLE ", table),
            ObjectStatement::CreateIndex(create) => create.print(to),
            ObjectStatement::DropIndexes { if_exists, indexes } => {
                put!(to, "DROP INDEX ", If(*if_exists, "IF EXISTS "), List(indexes));
            }
            ObjectStatement::View(view) => view.print(to),
            ObjectStatement::Function(function) => function.print(to),
            ObjectStatement::DropFunctions { if_exists, functions } => {
                put!(to, "DROP FUNCTION ", If(*if_exists, "IF EXISTS "), List(functions));
            }
            ObjectStatement::Procedure(procedure) => procedure.print(to),
            ObjectStatement::DropProcedures { if_exists, procedures } => {
                put!(to, "DROP PROCEDURE ", If(*if_exists, "IF EXISTS "), List(procedures));
            }
            ObjectStatement::DropViews { if_exists, views } => {
                put!(to, "DROP VIEW ", If(*if_exists, "IF EXISTS "), List(views));
            }
            ObjectStatement::CreateSchema { name, authorization } => {
                put!(to, "CREATE SCHEMA ", name, Maybe(" AUTHORIZATION ", authorization));
            }
            ObjectStatement::DropAbsent { what, if_exists, names, on } => {
                put!(
                    to,
                    "DROP ",
                    *what,
                    " ",
                    If(*if_exists, "IF EXISTS "),
                    List(names),
                    Maybe(" ON ", on)
                );
            }
            ObjectStatement::SwitchTriggers { enable, names, on } => {
                put!(to, if *enable { "ENABLE" } else { "DISABLE" }, " TRIGGER ");
                match names.as_slice() {
                    [] => put!(to, "ALL"),
                    names => put!(to, List(names)),
                }
                put!(to, " ON ", on);
            }
            ObjectStatement::DropSchema { if_exists, name } => {
                put!(to, "DROP SCHEMA ", If(*if_exists, "IF EXISTS "), name);
            }
        }
    }
}

impl Print for TriggerPlace {
    fn print(&self, to: &mut Printer) {
        match self {
            TriggerPlace::Object(name) => put!(to, name),
            TriggerPlace::Database => put!(to, "DATABASE"),
            TriggerPlace::Server => put!(to, "ALL SERVER"),
        }
    }
}

impl Print for CreateTable {
    fn print(&self, to: &mut Printer) {
        put!(to, "CREATE TABLE ", self.name, " (", List(&self.elements), ")");
        put!(to, Maybe(" ON ", &self.filegroup), Maybe(" TEXTIMAGE_ON ", &self.text_filegroup));
        put!(to, Options(&self.options));
    }
}

impl Print for TableElement {
    fn print(&self, to: &mut Printer) {
        match self {
            TableElement::Column(column) => column.print(to),
            TableElement::Computed { name, value, persisted } => {
                put!(to, name, " AS (", value, ")", If(*persisted, " PERSISTED"));
            }
            TableElement::Constraint(constraint) => constraint.print(to),
            TableElement::Index(index) => {
                put!(to, "INDEX ", index.name, If(index.unique, " UNIQUE"));
                put!(to, Maybe(" ", &index.clustering.map(One)), Listed(" (", &index.columns, ")"));
                put!(to, Listed(" INCLUDE (", &index.include, ")"), Options(&index.options));
                put!(to, Maybe(" ON ", &index.filegroup));
            }
        }
    }
}

impl Print for Column {
    fn print(&self, to: &mut Printer) {
        put!(to, self.name, " ", self.data_type, Maybe(" COLLATE ", &self.collation));
        for property in &self.properties {
            put!(to, " ", property);
        }
    }
}

impl Print for ColumnProperty {
    fn print(&self, to: &mut Printer) {
        match self {
            ColumnProperty::Nullable(nullable) => put!(to, If(!nullable, "NOT "), "NULL"),
            ColumnProperty::Identity(None) => put!(to, "IDENTITY"),
            ColumnProperty::Identity(Some(identity)) => {
                put!(to, format!("IDENTITY({}, {})", identity.seed, identity.increment).as_str());
            }
            ColumnProperty::RowGuid => put!(to, "ROWGUIDCOL"),
            ColumnProperty::Sparse => put!(to, "SPARSE"),
            ColumnProperty::Constraint { name, constraint } => {
                put!(to, Maybe("CONSTRAINT ", name), If(name.is_some(), " "), constraint);
            }
        }
    }
}

impl Print for ColumnConstraint {
    fn print(&self, to: &mut Printer) {
        match self {
            ColumnConstraint::Default(value) => put!(to, "DEFAULT (", value, ")"),
            ColumnConstraint::Key(key) => put!(to, KeyKind(key), KeyStorage(key)),
            ColumnConstraint::Check(condition) => put!(to, "CHECK (", condition, ")"),
            ColumnConstraint::References(references) => references.print(to),
        }
    }
}

struct KeyKind<'a>(&'a Key);

impl Print for KeyKind<'_> {
    fn print(&self, to: &mut Printer) {
        put!(to, if self.0.primary { "PRIMARY KEY" } else { "UNIQUE" });
        put!(to, Maybe(" ", &self.0.clustering.map(One)));
    }
}

struct KeyStorage<'a>(&'a Key);

impl Print for KeyStorage<'_> {
    fn print(&self, to: &mut Printer) {
        put!(to, Options(&self.0.options), Maybe(" ON ", &self.0.filegroup));
    }
}

impl Print for References {
    fn print(&self, to: &mut Printer) {
        put!(to, "REFERENCES ", self.table, Listed(" (", &self.columns, ")"));
        put!(to, Maybe(" ON DELETE ", &self.on_delete), Maybe(" ON UPDATE ", &self.on_update));
    }
}

impl Print for ReferentialAction {
    fn print(&self, to: &mut Printer) {
        let text = match self {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::SetDefault => "SET DEFAULT",
        };
        put!(to, text);
    }
}

impl Print for TableConstraint {
    fn print(&self, to: &mut Printer) {
        put!(to, Maybe("CONSTRAINT ", &self.name), If(self.name.is_some(), " "));
        match &self.rule {
            TableRule::Key { key, columns } => {
                put!(to, KeyKind(key), " (", List(columns), ")", KeyStorage(key));
            }
            TableRule::ForeignKey { columns, references } => {
                put!(to, "FOREIGN KEY (", List(columns), ") ", references);
            }
            TableRule::Check(condition) => put!(to, "CHECK (", condition, ")"),
            TableRule::Default { value, column } => {
                put!(to, "DEFAULT (", value, ") FOR ", column);
            }
        }
    }
}

impl Print for IndexColumn {
    fn print(&self, to: &mut Printer) {
        put!(to, self.name, If(self.descending, " DESC"));
    }
}

impl Print for AlterTable {
    fn print(&self, to: &mut Printer) {
        let check = |check: bool| if check { "CHECK" } else { "NOCHECK" };
        match self {
            AlterTable::Add { check: with, elements } => {
                put!(to, Maybe("WITH ", &with.map(check)), If(with.is_some(), " "));
                put!(to, "ADD ", List(elements));
            }
            AlterTable::AlterColumn(column) => put!(to, "ALTER COLUMN ", column),
            AlterTable::DropColumns { if_exists, columns } => {
                put!(to, "DROP COLUMN ", If(*if_exists, "IF EXISTS "), List(columns));
            }
            AlterTable::DropConstraints { if_exists, constraints } => {
                put!(to, "DROP CONSTRAINT ", If(*if_exists, "IF EXISTS "), List(constraints));
            }
            AlterTable::CheckConstraints { check: with, enable, constraints } => {
                put!(to, Maybe("WITH ", &with.map(check)), If(with.is_some(), " "));
                put!(to, check(*enable), " CONSTRAINT ");
                put!(to, If(constraints.is_empty(), "ALL"), List(constraints));
            }
            AlterTable::Rebuild(options) => put!(to, "REBUILD", Options(options)),
        }
    }
}

impl Print for CreateIndex {
    fn print(&self, to: &mut Printer) {
        put!(to, "CREATE ", If(self.unique, "UNIQUE "), Maybe("", &self.clustering.map(One)));
        put!(to, If(self.clustering.is_some(), " "), If(self.columnstore, "COLUMNSTORE "));
        put!(to, "INDEX ", self.name, " ON ", self.table, Listed(" (", &self.columns, ")"));
        put!(to, Listed(" INCLUDE (", &self.include, ")"), Maybe(" WHERE ", &self.filter));
        put!(to, Options(&self.options), Maybe(" ON ", &self.filegroup));
    }
}

impl Print for DropIndex {
    fn print(&self, to: &mut Printer) {
        put!(to, self.name, " ON ", self.table);
    }
}

impl Print for ViewVerb {
    fn print(&self, to: &mut Printer) {
        let verb = match self {
            ViewVerb::Create => "CREATE",
            ViewVerb::CreateOrAlter => "CREATE OR ALTER",
            ViewVerb::Alter => "ALTER",
        };
        put!(to, verb);
    }
}

impl Print for Procedure {
    fn print(&self, to: &mut Printer) {
        put!(to, self.verb, " PROCEDURE ", self.name, Listed(" ", &self.parameters, ""));
        put!(to, If(self.recompile, " WITH RECOMPILE"), " AS", Indented(&self.body));
    }
}

impl Print for Function {
    fn print(&self, to: &mut Printer) {
        put!(to, self.verb, " FUNCTION ", self.name, " (", List(&self.parameters), ") RETURNS ");
        match &self.body {
            FunctionBody::Scalar { data_type, .. } => put!(to, data_type),
            FunctionBody::Table(_) => put!(to, "TABLE"),
        }
        put!(to, If(self.schema_binding, " WITH SCHEMABINDING"));
        let word = if self.schema_binding { ", " } else { " WITH " };
        put!(to, If(self.null_on_null, word));
        put!(to, If(self.null_on_null, "RETURNS NULL ON NULL INPUT"), " AS ");
        match &self.body {
            FunctionBody::Scalar { statements, .. } => {
                put!(to, "BEGIN", Indented(statements), "END");
            }
            FunctionBody::Table(query) => put!(to, "RETURN (", query, ")"),
        }
    }
}

impl Print for ProcedureParameter {
    fn print(&self, to: &mut Printer) {
        put!(to, self.variable, " ", self.data_type, Maybe(" = ", &self.default));
        put!(to, If(self.output, " OUTPUT"));
    }
}

impl Print for View {
    fn print(&self, to: &mut Printer) {
        put!(to, self.verb, " VIEW ", self.name, Listed(" (", &self.columns, ")"));
        put!(to, If(self.schema_binding, " WITH SCHEMABINDING"));
        let word = if self.schema_binding { ", " } else { " WITH " };
        put!(to, If(self.metadata, word), If(self.metadata, "VIEW_METADATA"), " AS ", self.query);
        put!(to, If(self.check_option, " WITH CHECK OPTION"));
    }
}
