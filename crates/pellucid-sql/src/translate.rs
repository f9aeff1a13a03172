//! Queries of T-SQL as statements of SQLite, with the names and types of their columns.
//!
//! Every table gets an alias `t1`, `t2`, .., every selected column a name `c1`, `c2`, ..: names of T-SQL appear only
//! where a table of SQLite's has them, so none can clash. Types are inferred ([`crate::values::types`]), and every conversion
//! is written down as a call of a function of [`crate::functions`]. What is not supported is message 50001.

mod aggregate;
mod alike;
mod apply;
mod assign;
mod budget;
mod change;
mod change_common;
mod condition;
mod convert;
mod expression;
mod from;
mod function;
mod into;
mod metadata;
mod module;
mod narrow;
mod operator;
mod order;
mod output;
mod over;
mod pivot;
mod query;
mod recursion;
mod routine;
mod scope;
mod select;
mod special;
mod table_function;
mod visit;
mod xml;

use std::collections::HashMap;

use crate::message::{table, Message, Result};
use crate::values::types::SqlType;

pub(crate) use aggregate::AGGREGATES;
pub(crate) use assign::binary as operator_of;
pub use assign::{execute_assignments, Variables};
pub(crate) use change::changed_table;
pub(crate) use into::without_into;
pub(crate) use metadata::METADATA;
pub use module::ViewDefinition;
pub use narrow::{Given, RowKey};
pub use output::OutputChange;
pub(crate) use over::RANKINGS;
use pellucid_tsql::ast::{
    Condition, Delete, Expression, Insert, ObjectName, OutputClause, Query, Update,
};
pub(crate) use routine::Step;
pub use routine::{FunctionDefinition, Program};
pub(crate) use scope::object_text;
use scope::{Typed, View};
pub(crate) use special::{CLOCKS, SPECIALS};
pub(crate) use table_function::{is_table_function, table_functions};

/// What a name stands for in SQLite. A session implements it.
pub trait Catalog {
    /// The table or view of this name; `None`: message 208.
    ///
    /// # Errors
    /// What SQL Server says of the name, such as 911 for its database.
    fn table(&self, name: &ObjectName) -> Result<Option<Table>>;

    /// The same of a view of the server's of which the statement needs these rows alone.
    ///
    /// # Errors
    /// As [`Self::table`].
    fn table_of(&self, name: &ObjectName, _key: &RowKey) -> Result<Option<Table>> {
        self.table(name)
    }

    /// The view of a script's of this name, asked for where there is no table of it.
    ///
    /// # Errors
    /// As [`Self::table`].
    fn view(&self, _name: &ObjectName) -> Result<Option<ViewDefinition>> {
        Ok(None)
    }

    /// The function of this name that a script has made; `None`: another one, or none.
    ///
    /// # Errors
    /// As [`Self::table`].
    fn function(&self, _name: &ObjectName) -> Result<Option<FunctionDefinition>> {
        Ok(None)
    }

    /// The number of a function's program, by a name that is its own, and whether this statement has not made it yet.
    fn reserve_program(&self, _key: &str) -> (usize, bool) {
        (0, true)
    }

    /// Keeps the program of that number, which is run where the statement calls it.
    ///
    /// # Errors
    /// As [`Self::table`].
    fn keep_program(&self, _number: usize, _program: Program) -> Result<()> {
        Ok(())
    }

    /// A view could not be used because of what was found within it.
    fn view_failed(&self, _name: &ObjectName, _found: &Message) {}

    /// The table variable of this name, without the `@`; `None`: message 1087.
    fn table_variable(&self, _name: &str) -> Option<Table> {
        None
    }
}

/// A table, a view, or anything else that SQLite selects from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// How it is written in a FROM clause of SQLite, quoted.
    pub sqlite: String,
    /// Its columns, in order.
    pub columns: Vec<TableColumn>,
    /// What identifies a row, `rowid` or a column's name, quoted; `None`: rows cannot be changed.
    pub row: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name in T-SQL.
    pub name: String,
    /// Its name in SQLite, not quoted.
    pub sqlite: String,
    /// Its type.
    pub data_type: SqlType,
    /// How it is declared in SQLite, where that is known.
    pub declared: Option<String>,
    /// How it holds its values.
    pub stored: Stored,
    /// What DEFAULT stands for, as an expression of SQLite; `None`: NULL.
    pub default: Option<String>,
    /// Whether INSERT gives it values: not those of computed columns, and those of an identity only where IDENTITY_INSERT is on
    /// (messages 544, 8101).
    pub writable: bool,
    /// Whether the table numbers its rows by it.
    pub identity: bool,
    /// Whether it may be NULL, as far as the table says.
    pub nullable: bool,
    /// Whether it is one of a common table expression, and none of the table below.
    pub derived: bool,
    /// Whether its text tells `a` from `A`.
    pub sensitive: bool,
    /// Whether it is what SQLite knows the rows by.
    pub is_row: bool,
}

impl TableColumn {
    /// A column that is called the same in SQLite and holds plain values.
    pub fn new(name: &str, data_type: SqlType) -> Self {
        Self {
            name: name.to_owned(),
            sqlite: name.to_owned(),
            data_type,
            declared: None,
            stored: Stored::Plain,
            default: None,
            writable: true,
            identity: false,
            nullable: true,
            derived: false,
            sensitive: false,
            is_row: false,
        }
    }
}

/// How a column holds its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// As SQLite's applications write them: numerics as numbers or text, dates as text or as seconds since 1970.
    Plain,
    /// In the forms of [`crate::values::types`]; nothing is converted, so indexes serve every comparison.
    AsTyped,
}

/// The types of the variables of a batch.
pub trait VariableTypes {
    /// The type of `@name`; `None`: message 137.
    fn variable_type(&self, name: &str) -> Option<SqlType>;
}

/// A statement of SQLite. `Debug` leaves its text out, which may hold secrets.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Statement {
    /// Its text.
    pub sql: String,
    /// What its parameters `?1`, `?2`, .. stand for.
    pub parameters: Vec<Parameter>,
    /// The columns of its rows.
    pub columns: Vec<ResultColumn>,
    /// Its rows get numbers of an identity.
    pub gives_identity: bool,
}

impl std::fmt::Debug for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { sql: _, parameters, columns, gives_identity: _ } = self;
        f.debug_struct("Statement")
            .field("parameters", parameters)
            .field("columns", columns)
            .finish_non_exhaustive()
    }
}

/// What a parameter stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// A variable, as it is when the statement begins.
    Variable(String),
    /// A column of the row at hand, from 0: in the steps of [`Assignments`] only.
    Row(usize),
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its type: how to read what SQLite gives.
    pub data_type: SqlType,
}

/// What a SELECT is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// It gives rows.
    Rows(Statement),
    /// It assigns to variables.
    Assign(Assignments),
}

/// A SELECT that assigns: a query, and what is done with each of its rows in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignments {
    /// The rows, in order.
    pub rows: Statement,
    /// What is assigned for each, in order.
    pub each: Vec<Assignment>,
}

/// One assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable, as it is declared or written.
    pub variable: String,
    /// A SELECT of one value, of the variable's type.
    pub step: Statement,
}

/// Translates what refers to the same names and variables.
#[derive(Clone, Copy)]
pub struct Translator<'c> {
    catalog: &'c dyn Catalog,
    variables: &'c dyn VariableTypes,
    ansi_nulls: bool,
    narrows: bool,
}

impl std::fmt::Debug for Translator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Translator").finish_non_exhaustive()
    }
}

impl<'c> Translator<'c> {
    /// With these names and variables.
    pub fn new(catalog: &'c dyn Catalog, variables: &'c dyn VariableTypes) -> Self {
        Self { catalog, variables, ansi_nulls: true, narrows: false }
    }

    /// With ANSI_NULLS as it is: OFF, NULL equals NULL where a literal or a variable is compared.
    #[must_use]
    pub fn ansi_nulls(self, ansi_nulls: bool) -> Self {
        Self { ansi_nulls, ..self }
    }

    /// The statement is executed at once and with the variables as they are now: views of the server need no more rows than it asks
    /// for.
    #[must_use]
    pub fn at_once(self) -> Self {
        Self { narrows: true, ..self }
    }

    fn work(self) -> Work<'c> {
        Work {
            catalog: self.catalog,
            variables: self.variables,
            ansi_nulls: self.ansi_nulls,
            narrows: self.narrows,
            equations: narrow::Equations::default(),
            parameters: Vec::new(),
            aliases: 0,
            recursion_most: 100,
            split: None,
            views: Vec::new(),
            arguments: None,
            functions: Vec::new(),
            views_named: 0,
            depth: 0,
            in_output: false,
            gives_identity: false,
            budget: budget::Budget::default(),
        }
    }

    /// A SELECT.
    ///
    /// # Errors
    /// What SQL Server says of names and types, and 50001 for what is not supported.
    pub fn select(self, query: &Query) -> Result<Selection> {
        match assign::assigns(query) {
            true => self.work().assignments(query).map(Selection::Assign),
            false => self.query(query).map(Selection::Rows),
        }
    }

    /// A SELECT that gives rows.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub fn query(self, query: &Query) -> Result<Statement> {
        let mut work = self.work();
        let relation = work.query(query, View::EMPTY, false)?;
        Ok(work.finish(relation.sql, &relation.columns))
    }

    /// `SELECT value`, as a value of type `to`; without, of its own type.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub fn value(self, value: &Expression, to: Option<SqlType>) -> Result<Statement> {
        let mut work = self.work();
        let typed = work.expression(value, View::EMPTY)?;
        let typed = match to {
            Some(to) => work.coerced(typed, to)?,
            None => typed,
        };
        let column = ResultColumn { name: String::new(), data_type: typed.data_type };
        let sql = format!("SELECT {}", typed.sql);
        Ok(Statement {
            sql,
            parameters: work.parameters,
            columns: vec![column],
            ..Statement::default()
        })
    }

    /// `SELECT 1` or 0 for a condition of IF and WHILE; unknown is 0.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub fn condition(self, condition: &Condition) -> Result<Statement> {
        let mut work = self.work();
        let sql = work.condition(condition, View::EMPTY)?;
        let column = ResultColumn { name: String::new(), data_type: SqlType::Bit };
        let sql = format!("SELECT {sql} IS TRUE");
        Ok(Statement {
            sql,
            parameters: work.parameters,
            columns: vec![column],
            ..Statement::default()
        })
    }

    /// INSERT; its rows are counted by SQLite's `changes()`.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub fn insert(self, insert: &Insert) -> Result<Statement> {
        refuse_output(&insert.output)?;
        let mut work = self.work();
        let sql = work.insert(insert)?;
        Ok(work.finish(sql, &[]))
    }

    /// UPDATE.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub fn update(self, update: &Update) -> Result<Statement> {
        refuse_output(&update.output)?;
        let mut work = self.work();
        let sql = work.update(update)?;
        Ok(work.finish(sql, &[]))
    }

    /// DELETE.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub fn delete(self, delete: &Delete) -> Result<Statement> {
        refuse_output(&delete.output)?;
        let mut work = self.work();
        let sql = work.delete(delete)?;
        Ok(work.finish(sql, &[]))
    }
}

/// What gives rows is translated by [`Translator::insert_output`] and its like.
fn refuse_output(output: &[OutputClause]) -> Result<()> {
    match output.is_empty() {
        true => Ok(()),
        false => Err(Message::unsupported("OUTPUT clause here")),
    }
}

/// A translation under way.
struct Work<'c> {
    catalog: &'c dyn Catalog,
    variables: &'c dyn VariableTypes,
    ansi_nulls: bool,
    /// Whether views may show the rows alone that are asked for.
    narrows: bool,
    /// Of the SELECT whose FROM is translated.
    equations: narrow::Equations,
    parameters: Vec<Parameter>,
    /// Aliases given so far.
    aliases: u32,
    /// MAXRECURSION; 0: without limit.
    recursion_most: u64,
    /// While the steps of assignments are made.
    split: Option<assign::Split>,
    /// The views around what is translated, the innermost last.
    views: Vec<module::Within>,
    /// The functions whose programs are being made, the innermost last.
    functions: Vec<FunctionDefinition>,
    /// What the parameters of the function around stand for, if it gives a table.
    arguments: Option<HashMap<String, Typed>>,
    /// Views translated so far.
    views_named: usize,
    /// How many queries, conditions and expressions are around what is translated.
    depth: u32,
    /// Within an OUTPUT clause, which has no queries.
    in_output: bool,
    /// What is translated puts rows into a table with an identity.
    gives_identity: bool,
    budget: budget::Budget,
}

impl Work<'_> {
    /// A new alias for a table.
    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    /// The number of a parameter, the same one for the same thing.
    fn parameter(&mut self, parameter: Parameter) -> usize {
        let found = self.parameters.iter().position(|other| *other == parameter);
        found.unwrap_or_else(|| {
            self.parameters.push(parameter);
            self.parameters.len() - 1
        }) + 1
    }

    fn finish_value(self, sql: String, column: ResultColumn) -> Statement {
        Statement {
            sql,
            parameters: self.parameters,
            columns: vec![column],
            ..Statement::default()
        }
    }

    fn selection(self, query: &Query) -> Result<Selection> {
        match assign::assigns(query) {
            true => self.assignments(query).map(Selection::Assign),
            false => Err(Message::of(table::FUNCTION_RETURNS_DATA, [])),
        }
    }

    fn finish(self, sql: String, columns: &[scope::Column]) -> Statement {
        let columns = columns
            .iter()
            .map(|column| ResultColumn {
                name: column.name.clone().unwrap_or_default(),
                data_type: column.data_type,
            })
            .collect();
        let gives_identity = self.gives_identity;
        Statement { sql, parameters: self.parameters, columns, gives_identity }
    }
}

/// A name as SQLite takes it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQLite takes it. A zero byte would end the statement.
fn text_literal(text: &str) -> String {
    match text.contains('\0') {
        false => format!("'{}'", text.replace('\'', "''")),
        true => format!("CAST(X'{}' AS TEXT)", crate::values::convert::to_hex(text.as_bytes())),
    }
}

/// Operands under an operator that may be grouped at will, as a tree of little depth.
fn balanced(operands: &[String], operator: &str) -> String {
    match operands {
        [] => String::new(),
        [only] => only.clone(),
        _ => {
            let (left, right) = operands.split_at(operands.len() / 2);
            format!("({} {operator} {})", balanced(left, operator), balanced(right, operator))
        }
    }
}

/// A constant of SQLite's that has a type.
fn typed(sql: impl Into<String>, data_type: SqlType) -> Typed {
    Typed { sql: sql.into(), data_type, sensitive: false, constant: None }
}

/// The names of the functions that are translated without the session.
#[cfg(test)]
pub(crate) fn function_names() -> Vec<&'static str> {
    let builtins = crate::functions::BUILTINS.iter().map(|builtin| builtin.name);
    let specials = SPECIALS.iter().chain(&RANKINGS).map(|(name, _, _)| *name);
    let clocks = CLOCKS.iter().map(|(name, _, _)| *name);
    let metadata = METADATA.iter().map(|function| function.name);
    builtins.chain(specials).chain(clocks).chain(AGGREGATES).chain(metadata).collect()
}
