//! `SELECT @v = ..`: a query, and a step for each of its rows.
//!
//! What a step needs of its row is a column of the query; what depends on a variable that the same SELECT assigns is
//! computed by the step, after the rows before have been.

use pellucid_tsql::ast::{
    AssignmentOperator, BinaryOperator, Expression, Query, QueryBody, SelectItem,
};
use rusqlite::types::Value;
use rusqlite::Connection;

use super::order::Selected;
use super::{Assignment, Assignments, Parameter, ResultColumn, Statement, Typed, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::SqlType;

/// The steps under way.
#[derive(Debug, Default)]
pub(super) struct Split {
    /// Variables that are assigned, in lower case.
    assigned: Vec<String>,
    /// Whether what was just translated depends on one of them.
    touched: bool,
    /// Columns of the rows so far.
    row: Vec<Typed>,
    /// Parameters of the rows while those of a step are at work.
    others: Vec<Parameter>,
    /// Whether a step is at work.
    stepping: bool,
    steps: Vec<Assignment>,
}

impl Split {
    /// Whether a variable is assigned.
    pub fn assigns(&self, name: &str) -> bool {
        self.assigned.iter().any(|other| other == name)
    }

    /// A variable is used.
    pub fn note(&mut self, name: &str) {
        self.touched |= self.assigned.iter().any(|other| *other == name.to_lowercase());
    }
}

/// Whether a query assigns.
pub(super) fn assigns(query: &Query) -> bool {
    matches!(&query.body, QueryBody::Select(select)
        if select.items.iter().any(|item| matches!(item, SelectItem::Assign { .. })))
}

impl Work<'_> {
    pub(super) fn assignments(mut self, query: &Query) -> Result<Assignments> {
        if query.xml.is_some() {
            return Err(Message::of(table::XML_NOT_IN, [&"ASSIGNMENT"]));
        }
        let QueryBody::Select(select) = &query.body else {
            return Err(Message::unsupported("an assignment within a set operator"));
        };
        let assigned = select.items.iter().filter_map(|item| match item {
            SelectItem::Assign { variable, .. } => Some(variable.0.to_lowercase()),
            _ => None,
        });
        self.split = Some(Split { assigned: assigned.collect(), ..Split::default() });
        let relation = self.query(query, View::EMPTY, false)?;
        let each = self.split.take().map(|split| split.steps).unwrap_or_default();
        let rows = self.finish(relation.sql, &relation.columns);
        Ok(Assignments { rows, each })
    }

    /// Whether expressions are split up just now.
    pub(super) fn splits(&self) -> bool {
        self.split.as_ref().is_some_and(|split| split.stepping)
    }

    /// Without splitting what `run` translates.
    pub(super) fn outside_split<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let stepping = self.set_stepping(false);
        let result = run(self);
        self.set_stepping(stepping);
        result
    }

    fn set_stepping(&mut self, stepping: bool) -> bool {
        match &mut self.split {
            Some(split) => std::mem::replace(&mut split.stepping, stepping),
            None => false,
        }
    }

    fn swap_parameters(&mut self) {
        if let Some(split) = &mut self.split {
            std::mem::swap(&mut split.others, &mut self.parameters);
        }
    }

    /// The columns that the steps of these items need; the steps are kept.
    pub(super) fn assigned(
        &mut self,
        items: &[SelectItem],
        view: View<'_>,
    ) -> Result<Vec<Selected>> {
        for item in items {
            let SelectItem::Assign { variable, operator, value } = item else {
                return Err(Message::of(table::ASSIGNS_AND_RETRIEVES, []));
            };
            self.swap_parameters();
            let step = self.step(&variable.0, *operator, value, view);
            self.swap_parameters();
            let step = step?;
            if let Some(split) = &mut self.split {
                split.others.clear();
                split.steps.push(Assignment { variable: variable.0.clone(), step });
            }
        }
        let row = self.split.as_mut().map(|split| std::mem::take(&mut split.row));
        let mut row = row.unwrap_or_default();
        if row.is_empty() {
            // Rows without columns are counted all the same.
            row.push(super::typed("1", SqlType::Int));
        }
        Ok(row.into_iter().map(|value| Selected { name: None, value }).collect())
    }

    fn step(
        &mut self,
        name: &str,
        operator: AssignmentOperator,
        value: &Expression,
        view: View<'_>,
    ) -> Result<Statement> {
        let data_type =
            self.variables.variable_type(name).ok_or_else(|| Message::undeclared(name))?;
        let stepping = self.set_stepping(true);
        let value = self.expression(value, view);
        self.set_stepping(stepping);
        let value = value?;
        let value = match binary(operator) {
            None => value,
            Some(operator) => {
                let number = self.parameter(Parameter::Variable(name.to_lowercase()));
                let variable = super::typed(format!("?{number}"), data_type);
                self.operated(variable, operator, value)?
            }
        };
        let value = self.coerced(value, data_type)?;
        let column = ResultColumn { name: String::new(), data_type };
        Ok(Statement {
            sql: format!("SELECT {}", value.sql),
            parameters: self.parameters.clone(),
            columns: vec![column],
            ..Statement::default()
        })
    }

    /// Part of a step: a column of the row, if it depends on no variable that is assigned.
    pub(super) fn split_expression(
        &mut self,
        expression: &Expression,
        view: View<'_>,
    ) -> Result<Typed> {
        if let Expression::Literal(_) = expression {
            return self.node(expression, view);
        }
        self.swap_parameters();
        let kept = self.parameters.clone();
        self.set_stepping(false);
        if let Some(split) = &mut self.split {
            split.touched = false;
        }
        let whole = self.node(expression, view);
        let touched = self.split.as_ref().is_some_and(|split| split.touched);
        if touched {
            self.parameters = kept;
        }
        self.swap_parameters();
        self.set_stepping(true);
        if touched {
            return self.node(expression, view);
        }
        let whole = whole?;
        let column = self.split.as_mut().map(|split| {
            split.row.push(whole.clone());
            split.row.len() - 1
        });
        let number = self.parameter(Parameter::Row(column.unwrap_or_default()));
        Ok(Typed { sql: format!("?{number}"), ..whole })
    }
}

/// The operator behind `+=` and its like.
pub(crate) fn binary(operator: AssignmentOperator) -> Option<BinaryOperator> {
    Some(match operator {
        AssignmentOperator::Set => return None,
        AssignmentOperator::Add => BinaryOperator::Add,
        AssignmentOperator::Subtract => BinaryOperator::Subtract,
        AssignmentOperator::Multiply => BinaryOperator::Multiply,
        AssignmentOperator::Divide => BinaryOperator::Divide,
        AssignmentOperator::Modulo => BinaryOperator::Modulo,
        AssignmentOperator::BitAnd => BinaryOperator::BitAnd,
        AssignmentOperator::BitOr => BinaryOperator::BitOr,
        AssignmentOperator::BitXor => BinaryOperator::BitXor,
    })
}

/// The values of a batch's variables, in the forms of [`crate::values::types`]. Names come in lower case.
pub trait Variables {
    /// What `@name` holds.
    fn get(&self, name: &str) -> Value;
    /// `@name` holds this from now on.
    fn set(&mut self, name: &str, value: Value);
}

impl Statement {
    /// Prepared, its parameters bound: for `raw_query` and `raw_execute`.
    ///
    /// # Errors
    /// SQLite's.
    pub fn prepare<'c>(
        &self,
        connection: &'c Connection,
        variables: &dyn Variables,
    ) -> Result<rusqlite::Statement<'c>> {
        let mut prepared = connection.prepare(&self.sql)?;
        bind(&mut prepared, self.bound(variables, &[]))?;
        Ok(prepared)
    }

    /// The same, kept with the connection for the next time: the value of an expression is asked for often.
    ///
    /// # Errors
    /// SQLite's.
    pub fn prepare_cached<'c>(
        &self,
        connection: &'c Connection,
        variables: &dyn Variables,
    ) -> Result<rusqlite::CachedStatement<'c>> {
        let mut prepared = connection.prepare_cached(&self.sql)?;
        bind(&mut prepared, self.bound(variables, &[]))?;
        Ok(prepared)
    }

    /// The values of its parameters.
    pub fn bound(&self, variables: &dyn Variables, row: &[Value]) -> Vec<Value> {
        self.parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Variable(name) => variables.get(name),
                Parameter::Row(column) => row.get(*column).cloned().unwrap_or(Value::Null),
            })
            .collect()
    }
}

/// Binds as many as the statement has: a part that was dropped from it may have had the last ones.
fn bind(statement: &mut rusqlite::Statement<'_>, values: Vec<Value>) -> Result<()> {
    let count = statement.parameter_count();
    for (at, value) in values.into_iter().take(count).enumerate() {
        statement.raw_bind_parameter(at + 1, value)?;
    }
    Ok(())
}

/// Executes a SELECT that assigns, row for row; returns how many rows there were. `connection` says where a statement is executed.
///
/// # Errors
/// What SQLite and the functions say.
pub fn execute_assignments<'c>(
    connection: impl Fn(&str) -> &'c Connection,
    assignments: &Assignments,
    variables: &mut dyn Variables,
) -> Result<u64> {
    let rows = &assignments.rows;
    let mut statement = rows.prepare_cached(connection(&rows.sql), variables)?;
    let columns = statement.column_count();
    let mut steps = Vec::new();
    for assignment in &assignments.each {
        let sql = &assignment.step.sql;
        steps.push((assignment, connection(sql).prepare_cached(sql)?));
    }
    let mut rows = statement.raw_query();
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let row: Vec<Value> =
            (0..columns).map(|at| row.get(at)).collect::<rusqlite::Result<_>>()?;
        for (assignment, step) in &mut steps {
            let bound = assignment.step.bound(variables, &row);
            bind(step, bound)?;
            let mut values = step.raw_query();
            let value = match values.next()? {
                Some(row) => row.get(0)?,
                None => Value::Null,
            };
            variables.set(&assignment.variable.to_lowercase(), value);
        }
        count += 1;
    }
    Ok(count)
}
