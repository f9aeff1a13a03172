//! Any statement, with its semicolon.

use pellucid_tsql::ast::{Statement, StatementKind};

use super::control::ends_with_statement;
use super::{put, List, Print, Printer};

impl Print for Statement {
    fn print(&self, to: &mut Printer) {
        put!(to, self.kind);
        match &self.kind {
            StatementKind::Control(control) if ends_with_statement(control) => {}
            _ => put!(to, ";"),
        }
    }
}

impl Print for StatementKind {
    fn print(&self, to: &mut Printer) {
        match self {
            StatementKind::MasterKey(statement) => statement.print(to),
            StatementKind::Certificate(statement) => statement.print(to),
            StatementKind::DatabaseEncryptionKey(statement) => statement.print(to),
            StatementKind::Provider(statement) => statement.print(to),
            StatementKind::Backup(statement) => statement.print(to),
            StatementKind::Restore(statement) => statement.print(to),
            StatementKind::Inspect(statement) => statement.print(to),
            StatementKind::Database(statement) => statement.print(to),
            StatementKind::Object(statement) => statement.print(to),
            StatementKind::Maintenance(statement) => statement.print(to),
            StatementKind::Select(query) => query.print(to),
            StatementKind::Insert(statement) => statement.print(to),
            StatementKind::Update(statement) => statement.print(to),
            StatementKind::Delete(statement) => statement.print(to),
            StatementKind::Execute(statement) => statement.print(to),
            StatementKind::Declare(declarations) => put!(to, "DECLARE ", List(declarations)),
            StatementKind::Cursor(statement) => statement.print(to),
            StatementKind::Session(statement) => statement.print(to),
            StatementKind::Transaction(statement) => statement.print(to),
            StatementKind::Control(statement) => statement.print(to),
        }
    }
}
