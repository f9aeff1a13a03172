//! Views of the server's with a row for each database or object, where a query asks for one of them alone.
//!
//! A condition that WHERE requires of every row, `name = @v` or `database_id = DB_ID('a')`, leaves no other row of the view, whatever
//! is joined and how: such a row, and the NULLs in its place, do not satisfy it. So the others need not be
//! made. That holds for the one place where the view is named: what stands under OR, NOT or ON, and the same view somewhere else in
//! the statement, has all rows.

use pellucid_tsql::ast::{
    ColumnName, Comparison, Condition, Expression, FunctionArguments, FunctionCall, Literal, Name,
    ObjectName, Select, TablePrimary,
};

use super::scope::{called_so, same};
use super::{View, Work};

/// What a view has to show; it may show more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowKey {
    /// Databases of this name.
    Name(Given),
    /// The database of this number.
    Id(Given),
    /// The database whose number `DB_ID` gives for this name.
    IdOf(Given),
    /// The database that the session is in.
    Current,
    /// That one, too.
    OrCurrent(Box<RowKey>),
    /// Or all, where there is none such: NULL, and what is NULL, stands for all.
    OrAll(Box<RowKey>),
    /// Objects of this number.
    Object(Given),
    /// The procedure that is executed.
    ThisProcedure,
}

/// What a column is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// A variable, by its name in lower case.
    Variable(String),
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
}

/// What a column tells rows by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    DatabaseName,
    DatabaseId,
    ObjectId,
}

/// Views of `sys` and their columns.
const COLUMNS: [(&str, &str, Kind); 6] = [
    ("databases", "name", Kind::DatabaseName),
    ("databases", ID, Kind::DatabaseId),
    ("master_files", ID, Kind::DatabaseId),
    ("database_recovery_status", ID, Kind::DatabaseId),
    ("dm_database_encryption_keys", ID, Kind::DatabaseId),
    ("sql_modules", "object_id", Kind::ObjectId),
];
const ID: &str = "database_id";

/// The other side of an equation.
#[derive(Debug, Clone)]
enum Other {
    Given(Given),
    /// A number of a database.
    Id(RowKey),
    /// `@@PROCID`
    ThisProcedure,
}

/// What WHERE says of the tables in FROM.
#[derive(Debug, Default)]
pub(super) struct Equations {
    all: Vec<(ColumnName, Other)>,
    /// FROM names one table and nothing else.
    is_alone: bool,
}

impl Equations {
    /// The key of a view that FROM calls so.
    fn find(&self, view: &str, called: &ObjectName) -> Option<RowKey> {
        let of = |(column, other): &(ColumnName, Other)| {
            let is_of_it = match &column.table {
                Some(table) => called_so(called, table),
                // Another table may have such a column.
                None => self.is_alone,
            };
            if !is_of_it {
                return None;
            }
            let is_it = |(of, name, _): &&(&str, &str, Kind)| {
                same(of, view) && same(name, column.column.as_str())
            };
            let (_, _, kind) = COLUMNS.iter().find(is_it)?;
            match (kind, other) {
                (Kind::DatabaseName, Other::Given(given)) => Some(RowKey::Name(given.clone())),
                (Kind::DatabaseId, Other::Given(given)) => Some(RowKey::Id(given.clone())),
                (Kind::DatabaseId, Other::Id(key)) => Some(key.clone()),
                (Kind::ObjectId, Other::Given(given)) => Some(RowKey::Object(given.clone())),
                (Kind::ObjectId, Other::ThisProcedure) => Some(RowKey::ThisProcedure),
                _ => None,
            }
        };
        self.all.iter().find_map(of)
    }
}

impl Work<'_> {
    /// What the WHERE of a SELECT says of the tables in its FROM.
    pub(super) fn equations(&self, select: &Select, outer: &View<'_>) -> Equations {
        let mut equations = Equations::default();
        // Within views and functions, names and variables are others.
        if !self.narrows || !self.views.is_empty() || !self.functions.is_empty() {
            return equations;
        }
        if self.arguments.is_some() {
            return equations;
        }
        let own = match &select.from[..] {
            [only] if only.joins.is_empty() => match &only.table {
                TablePrimary::Table { name, alias, .. } => Some(called(name, alias.as_ref())),
                _ => None,
            },
            _ => None,
        };
        equations.is_alone = own.is_some();
        let required = match &select.filter {
            Some(Condition::And(all)) => &all[..],
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for condition in required {
            let Condition::Compare { left, comparison: Comparison::Equal, right } = condition
            else {
                continue;
            };
            for (column, other) in [(left, right), (right, left)] {
                let Expression::Column(column) = column else { continue };
                if let Some(other) = self.other(other, own.as_ref(), outer) {
                    equations.all.push((column.as_ref().clone(), other));
                }
            }
        }
        equations
    }

    fn other(
        &self,
        value: &Expression,
        own: Option<&ObjectName>,
        outer: &View<'_>,
    ) -> Option<Other> {
        match value {
            Expression::Function(call) => self.database_id(call).map(Other::Id),
            Expression::SystemVariable(name) if same(name, "PROCID") => Some(Other::ThisProcedure),
            // A column of a query around, in which that view was narrowed.
            Expression::Column(column) => {
                let table = column.table.as_ref()?;
                if own.is_none_or(|own| called_so(own, table)) || !same(column.column.as_str(), ID)
                {
                    return None;
                }
                outer.database_key(column).map(Other::Id)
            }
            other => self.given(other).map(Other::Given),
        }
    }

    /// `DB_ID()`, `DB_ID(name)`
    fn database_id(&self, call: &FunctionCall) -> Option<RowKey> {
        let FunctionArguments::Values(arguments) = &call.arguments else { return None };
        if !call.name.is_bare() || !same(call.name.object.as_str(), "DB_ID") || call.over.is_some()
        {
            return None;
        }
        match &arguments[..] {
            [] => Some(RowKey::Current),
            [name] => self.given(name).map(RowKey::IdOf),
            _ => None,
        }
    }

    fn given(&self, value: &Expression) -> Option<Given> {
        match value {
            Expression::Variable(variable) => {
                let name = variable.0.to_lowercase();
                // What the same SELECT assigns is another value by the time that it is compared with.
                let is_assigned = self.split.as_ref().is_some_and(|split| split.assigns(&name));
                (!is_assigned).then_some(Given::Variable(name))
            }
            Expression::Literal(Literal::String(literal)) => {
                Some(Given::Text(literal.text.clone()))
            }
            Expression::Literal(Literal::Integer(digits)) => digits.parse().ok().map(Given::Number),
            _ => None,
        }
    }

    /// What a table in FROM has to show, if it is such a view and not all is needed.
    pub(super) fn row_key(&self, name: &ObjectName, alias: Option<&Name>) -> Option<RowKey> {
        let is_sys = name.schema.as_ref().is_some_and(|schema| same(schema.as_str(), "sys"));
        if !is_sys || name.server.is_some() || self.equations.all.is_empty() {
            return None;
        }
        self.equations.find(name.object.as_str(), &called(name, alias))
    }

    /// The databases that `sys.dm_db_log_stats(value)` and its like have to show.
    pub(super) fn argument_key(&self, value: &Expression) -> Option<RowKey> {
        if !self.narrows || !self.views.is_empty() || !self.functions.is_empty() {
            return None;
        }
        if self.arguments.is_some() {
            return None;
        }
        match value {
            Expression::Function(call) => self.database_id(call),
            other => self.given(other).map(RowKey::Id),
        }
    }
}

fn called(name: &ObjectName, alias: Option<&Name>) -> ObjectName {
    match alias {
        Some(alias) => alias.clone().into(),
        None => name.clone(),
    }
}
