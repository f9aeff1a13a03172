//! SELECT .. INTO: a table is made of what a query gives.
//!
//! As in SQL Server the table is made first: if a row fails, the empty table stays, but for a transaction that rolls back.

use pellucid_tsql::ast::{Expression, ObjectName, Query, QueryBody, SelectItem, TablePrimary};

use super::Done;
use crate::message::Message;
use crate::session::{catalog_type, declaration, Session, IDENTITY_IS};
use crate::translate::{object_text, quoted, ResultColumn, Table, TableColumn};
use crate::values::types::Family;

impl Session {
    /// `query` is the query without INTO.
    pub(super) fn select_into(&mut self, into: &ObjectName, query: &Query) -> Done {
        self.check_row_count()?;
        if into.server.is_some() {
            return Err(Message::unsupported("SELECT INTO at a linked server").into());
        }
        self.check_writable_table(into)?;
        let (schema, sqlite) = self.new_table(into)?;
        let target = format!("{}.{}", quoted(&schema), quoted(&sqlite));
        let called = object_text(into);
        let statement =
            self.translated(|translator| translator.into_table(query, &target, &called))?;
        let taken_over = self.taken_over(query)?;
        let columns: Vec<String> = statement
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| column_text(column, taken_over.get(at).and_then(Option::as_ref)))
            .collect();
        let create = format!("CREATE TABLE {target}({})", columns.join(", "));
        self.databases.connection.execute_batch(&create)?;
        let rows = self.change(&statement)?;
        self.count(rows);
        Ok(())
    }

    /// The stored columns that a query of one table gives, in order; `None` for what is computed. Nothing if the query
    /// is of more than that, or gives its identity twice.
    fn taken_over(&mut self, query: &Query) -> Done<Vec<Option<TableColumn>>> {
        let QueryBody::Select(select) = &query.body else { return Ok(Vec::new()) };
        let [source] = &select.from[..] else { return Ok(Vec::new()) };
        let TablePrimary::Table { name, .. } = &source.table else { return Ok(Vec::new()) };
        let is_common = |name: &ObjectName| {
            let same = |other: &str| other.to_lowercase() == name.object.as_str().to_lowercase();
            name.is_bare() && query.with.iter().any(|common| same(common.name.as_str()))
        };
        if !source.joins.is_empty()
            || !select.group.is_empty()
            || select.having.is_some()
            || is_common(name)
        {
            return Ok(Vec::new());
        }
        let Some(table): Option<Table> = self.table(name)? else { return Ok(Vec::new()) };
        let mut columns = Vec::new();
        for item in &select.items {
            match item {
                SelectItem::Star(_) => columns.extend(table.columns.iter().cloned().map(Some)),
                SelectItem::Value { value: Expression::Column(column), .. } => {
                    let name = column.column.as_str().to_lowercase();
                    let found =
                        table.columns.iter().find(|other| other.name.to_lowercase() == name);
                    columns.push(found.cloned());
                }
                _ => columns.push(None),
            }
        }
        let identities = columns.iter().flatten().filter(|column| column.identity).count();
        if identities != 1 || select.distinct {
            columns.iter_mut().flatten().for_each(|column| column.identity = false);
        }
        Ok(columns)
    }
}

/// One column; `from` is what it is a copy of.
fn column_text(column: &ResultColumn, from: Option<&TableColumn>) -> String {
    let name = quoted(&column.name);
    if from.is_some_and(|from| from.identity) {
        let known = declaration(column.data_type);
        return format!("{name} INTEGER {IDENTITY_IS}{known}*/ PRIMARY KEY AUTOINCREMENT NOT NULL");
    }
    // A copy keeps what types alone do not say: decimal, sysname, text.
    let kept = from.filter(|from| from.data_type == column.data_type);
    let kept = kept.and_then(|from| from.declared.as_deref());
    let declared = match kept {
        Some(kept) if catalog_type(kept, column.data_type) != column.data_type.name() => {
            kept.to_owned()
        }
        _ => declaration(column.data_type),
    };
    let mut text = format!("{name} {declared}");
    if column.data_type.family() == Family::Text {
        text.push_str(" COLLATE NOCASE");
    }
    if from.is_some_and(|from| !from.nullable) {
        text.push_str(" NOT NULL");
    }
    text
}
