//! What belongs to one batch, or to one string that `sp_executesql` executes: variables, and where it is.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::cursor::{CursorHandle, CursorStatus};
use crate::translate::{Table, VariableTypes, Variables};
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Variables and place of a batch.
#[derive(Default)]
pub(crate) struct Frame {
    /// By name in lower case, without the `@`.
    scalars: HashMap<String, (SqlType, Value)>,
    tables: HashMap<String, TableVariable>,
    /// Cursors that are LOCAL, by name in lower case.
    pub cursors: HashMap<String, CursorHandle>,
    /// Variables of the type CURSOR, with what they hold.
    pub cursor_variables: HashMap<String, Option<CursorHandle>>,
    /// What is executed: the batch, or the string.
    pub text: Rc<str>,
    /// The line of the statement at hand.
    pub line: u32,
    /// Its bytes within the text.
    pub span: Range<usize>,
    /// The procedure that is executed.
    pub procedure: Option<Arc<str>>,
}

/// A table variable.
#[derive(Debug, Clone)]
pub(crate) struct TableVariable {
    /// What translations need.
    pub table: Table,
}

/// Without the text, which may have passwords in it.
impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").field("line", &self.line).finish_non_exhaustive()
    }
}

impl Frame {
    /// The text of the statement at hand, with `***` for secrets.
    pub fn statement(&self) -> String {
        pellucid_tsql::secret::redact(self.text.get(self.span.clone()).unwrap_or_default())
            .into_owned()
    }

    /// Declares a variable; whether there was none of that name.
    pub fn declare(&mut self, name: &str, data_type: SqlType, value: Value) -> bool {
        let name = name.to_lowercase();
        let is_new = !self.scalars.contains_key(&name) && !self.tables.contains_key(&name);
        if is_new {
            self.scalars.insert(name, (data_type, value));
        }
        is_new
    }

    /// Declares a table variable.
    pub fn declare_table(&mut self, name: &str, table: TableVariable) -> bool {
        let name = name.to_lowercase();
        let is_new = !self.scalars.contains_key(&name) && !self.tables.contains_key(&name);
        if is_new {
            self.tables.insert(name, table);
        }
        is_new
    }

    /// A table variable.
    pub fn table(&self, name: &str) -> Option<&TableVariable> {
        self.tables.get(&name.to_lowercase())
    }

    /// Declares a variable of the type CURSOR.
    pub fn declare_cursor(&mut self, name: &str) -> bool {
        let name = name.to_lowercase();
        let is_new = !self.has(&name) && !self.cursor_variables.contains_key(&name);
        if is_new {
            self.cursor_variables.insert(name, None);
        }
        is_new
    }

    /// What CURSOR_STATUS finds from here, with the session's own cursors.
    pub fn cursor_statuses(&self, global: &HashMap<String, CursorHandle>) -> Vec<CursorStatus> {
        let of = |scope| {
            move |(name, cursor): (&String, &CursorHandle)| CursorStatus {
                scope,
                name: name.clone(),
                status: cursor.borrow().status(),
            }
        };
        let local = self.cursors.iter().map(of("local"));
        let variables = self.cursor_variables.iter().map(|(name, held)| CursorStatus {
            scope: "variable",
            name: format!("@{name}"),
            status: held.as_ref().map_or(-2, |cursor| cursor.borrow().status()),
        });
        local.chain(global.iter().map(of("global"))).chain(variables).collect()
    }

    /// Whether a variable of that name is declared.
    pub fn has(&self, name: &str) -> bool {
        self.scalars.contains_key(&name.to_lowercase())
    }
}

impl VariableTypes for Frame {
    fn variable_type(&self, name: &str) -> Option<SqlType> {
        self.scalars.get(&name.to_lowercase()).map(|(data_type, _)| *data_type)
    }
}

impl Variables for Frame {
    fn get(&self, name: &str) -> Value {
        let found = self.scalars.get(&name.to_lowercase());
        found.map_or(Value::Null, |(_, value)| value.clone())
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some((_, held)) = self.scalars.get_mut(&name.to_lowercase()) {
            *held = value;
        }
    }
}
