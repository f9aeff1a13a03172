//! SELECT .. INTO: the query without INTO, and its rows as a new table holds them.

use pellucid_tsql::ast::{ObjectName, Query, QueryBody, Select};

use super::scope::same;
use super::{assign, quoted, ResultColumn, Statement, TableColumn, Translator, Typed, View};
use crate::message::{table, Message, Result};
use crate::values::types::SqlType;

/// What stands behind INTO of a query's first SELECT, and the query without it.
pub(crate) fn without_into(query: &Query) -> Option<(ObjectName, Query)> {
    first(&query.body).into.as_ref()?;
    let mut query = query.clone();
    let into = first_mut(&mut query.body).into.take()?;
    Some((into, query))
}

fn first(body: &QueryBody) -> &Select {
    match body {
        QueryBody::Select(select) => select,
        QueryBody::Sets(chain) => first(&chain.first),
    }
}

fn first_mut(body: &mut QueryBody) -> &mut Select {
    match body {
        QueryBody::Select(select) => select,
        QueryBody::Sets(chain) => first_mut(&mut chain.first),
    }
}

impl Translator<'_> {
    /// INSERT of a query's rows into the table `target`, quoted, which is made afterwards with the columns of this
    /// statement; `called` is its name in messages.
    ///
    /// # Errors
    /// As [`Self::select`]; 1038 for a column without a name, 2705 for two of one name.
    pub fn into_table(self, query: &Query, target: &str, called: &str) -> Result<Statement> {
        if assign::assigns(query) {
            return Err(Message::of(table::INTO_ASSIGNS, []));
        }
        if query.xml.is_some() {
            return Err(Message::of(table::XML_NOT_IN, [&"SELECT INTO"]));
        }
        let mut work = self.work();
        let relation = work.query(query, View::EMPTY, false)?;
        let mut columns: Vec<ResultColumn> = Vec::new();
        let mut values = Vec::new();
        for (at, column) in relation.columns.iter().enumerate() {
            let name = column.name.clone().unwrap_or_default();
            if name.is_empty() {
                return Err(Message::nameless_column());
            }
            if columns.iter().any(|other| same(&other.name, &name)) {
                return Err(Message::of(table::COLUMN_MADE_TWICE, [&name, &called]));
            }
            let data_type = match column.data_type {
                SqlType::Null => SqlType::Int,
                data_type => data_type,
            };
            let value = Typed {
                sql: format!("c{}", at + 1),
                data_type: column.data_type,
                sensitive: false,
                constant: None,
            };
            values.push(work.written(value, &TableColumn::new(&name, data_type), called)?);
            columns.push(ResultColumn { name, data_type });
        }
        let list: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
        let sql = format!(
            "INSERT INTO {target} ({}) SELECT {} FROM ({})",
            list.join(", "),
            values.join(", "),
            relation.sql
        );
        Ok(Statement { sql, parameters: work.parameters, columns, ..Statement::default() })
    }
}
