//! Views that scripts make: each is a sub-select of the query that names it.
//!
//! What stands within sees the names of the view's own database and nothing else: no variable, no common table
//! expression and no column of the query around. Each name inside goes through the [`Catalog`] as any other does.

use std::borrow::Cow;
use std::rc::Rc;

use pellucid_tsql::ast::{self, Name, ObjectName};

use super::budget::too_complex;
use super::from::{add, named_columns};
use super::scope::{object_text, same, Level, Relation, ScopeColumn, ScopeTable};
use super::{Catalog, ResultColumn, Table, Translator, VariableTypes, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::SqlType;

/// Views within one another, as SQL Server has it.
const NESTED_MOST: usize = 32;
/// Views that one statement names, those within views counted wherever they are named.
const NAMED_MOST: usize = 1000;
/// How deep queries and expressions lie in one another where a view may still be named: another such depth comes
/// within it.
const DEPTH_MOST: u32 = 100;

/// A view that a script has made.
#[derive(Debug, Clone)]
pub struct ViewDefinition {
    /// The database that it lies in, whose names those within it are.
    pub database: Name,
    /// Its name, columns and query.
    pub view: Rc<ast::View>,
    /// ANSI_NULLS of its making.
    pub ansi_nulls: bool,
    /// The length of its text, in bytes.
    pub bytes: usize,
}

/// A view that is translated.
#[derive(Debug, Clone)]
pub(super) struct Within {
    database: Name,
    name: ObjectName,
    /// It is made now, WITH SCHEMABINDING.
    is_bound: bool,
}

impl Within {
    pub(super) fn of(database: &Name, name: &ObjectName, is_bound: bool) -> Self {
        Self { database: database.clone(), name: name.clone(), is_bound }
    }

    fn is(&self, other: &Self) -> bool {
        same(self.database.as_str(), other.database.as_str())
            && same(&local(&self.name), &local(&other.name))
    }
}

/// What a name of FROM stands for.
pub(super) enum Named {
    Table(Table),
    View(ViewDefinition),
}

/// A view has no variables.
struct NoVariables;

impl VariableTypes for NoVariables {
    fn variable_type(&self, _: &str) -> Option<SqlType> {
        None
    }
}

impl Translator<'_> {
    /// The columns of a view that is about to be made.
    ///
    /// # Errors
    /// As [`Self::select`]; 4506, 4511, 8158, 8159 for its columns, 4429 for one that names itself.
    pub fn view(self, definition: &ViewDefinition) -> Result<Vec<ResultColumn>> {
        let view = &definition.view;
        let relation = self.work().expanded(definition, view.schema_binding)?;
        let name = &view.name.object;
        let names = named_columns(name, &relation.columns, &view.columns);
        let names = names.map_err(|message| made_columns(message, name, &relation, view))?;
        Ok(result_columns(names, relation))
    }
}

impl Translator<'_> {
    /// The columns of a view that there is.
    ///
    /// # Errors
    /// As [`Self::select`], what is not found any more.
    pub fn columns_of_view(self, definition: &ViewDefinition) -> Result<Vec<ResultColumn>> {
        let relation = self.work().expanded(definition, false)?;
        let view = &definition.view;
        let names = named_columns(&view.name.object, &relation.columns, &view.columns)?;
        Ok(result_columns(names, relation))
    }
}

fn result_columns(names: Vec<String>, relation: Relation) -> Vec<ResultColumn> {
    let columns = names.into_iter().zip(relation.columns);
    columns.map(|(name, column)| ResultColumn { name, data_type: column.data_type }).collect()
}

/// What CREATE VIEW says of columns in the words of derived tables.
fn made_columns(message: Message, name: &Name, relation: &Relation, view: &ast::View) -> Message {
    let of = |at: usize| match view.columns.get(at) {
        Some(name) => Some(name.as_str().to_owned()),
        None => relation.columns.get(at).and_then(|column| column.name.clone()),
    };
    match message.number {
        number if number == table::COLUMN_WITHOUT_NAME.number => {
            let at = (0..relation.columns.len()).find(|at| of(*at).is_none()).unwrap_or_default();
            Message::of(table::VIEW_COLUMN_WITHOUT_NAME, [&(at + 1)])
        }
        number if number == table::COLUMN_NAMED_TWICE.number => {
            let all: Vec<String> = (0..relation.columns.len()).filter_map(of).collect();
            let is_again = |at: &usize| all[..*at].iter().any(|other| same(other, &all[*at]));
            let twice = (0..all.len()).find(is_again).map_or("", |at| all[at].as_str());
            Message::of(table::VIEW_COLUMN_TWICE, [&twice, &name.as_str()])
        }
        _ => message,
    }
}

impl<'c> Work<'c> {
    /// What a name stands for here.
    ///
    /// # Errors
    /// 208; 4508 and 4512 within a view.
    pub(super) fn named(&self, name: &ObjectName) -> Result<Named> {
        if let Some(within) = self.views.last() {
            if name.object.as_str().starts_with('#') {
                return Err(Message::of(table::VIEW_OF_TEMPORARY, []));
            }
            if within.is_bound && (name.schema.is_none() || name.database.is_some()) {
                let values: [&dyn std::fmt::Display; 2] =
                    [&object_text(&within.name), &object_text(name)];
                return Err(Message::of(table::NOT_BOUND_TO_SCHEMA, values));
            }
        }
        let placed = self.placed(name);
        if let Some(table) = self.catalog.table(&placed)? {
            return Ok(Named::Table(table));
        }
        match self.catalog.view(&placed)? {
            Some(view) => Ok(Named::View(view)),
            None => Err(Message::of(table::UNKNOWN_OBJECT, [&object_text(name)])),
        }
    }

    /// A name as the catalog has to know it: within a view one of the view's database.
    pub(super) fn placed<'n>(&self, name: &'n ObjectName) -> Cow<'n, ObjectName> {
        match self.views.last() {
            Some(within) if name.database.is_none() && name.server.is_none() => {
                Cow::Owned(ObjectName { database: Some(within.database.clone()), ..name.clone() })
            }
            _ => Cow::Borrowed(name),
        }
    }

    /// The table variable of this name; none within a view.
    pub(super) fn table_variable(&self, name: &str) -> Option<Table> {
        match self.views.is_empty() {
            true => self.catalog.table_variable(name),
            false => None,
        }
    }

    /// 1054 for `*` in a view that is bound to what it names.
    pub(super) fn refuse_bound_star(&self) -> Result<()> {
        match self.views.last().is_some_and(|within| within.is_bound) {
            true => Err(Message::of(table::STAR_BOUND_TO_SCHEMA, [])),
            false => Ok(()),
        }
    }

    /// A view in FROM, where it is called `called`.
    pub(super) fn viewed(
        &mut self,
        definition: &ViewDefinition,
        called: ObjectName,
        level: &mut Level,
    ) -> Result<String> {
        let name = &definition.view.name;
        let catalog: &'c dyn Catalog = self.catalog;
        let failed = |message: Message| {
            catalog.view_failed(name, &message);
            message
        };
        let relation = self.expanded(definition, false).map_err(failed)?;
        let names = named_columns(&name.object, &relation.columns, &definition.view.columns);
        let t = self.alias();
        let columns = names
            .map_err(failed)?
            .into_iter()
            .zip(&relation.columns)
            .enumerate()
            .map(|(at, (name, column))| ScopeColumn { name, value: column.of(&t, at) })
            .collect();
        add(
            level,
            ScopeTable { name: called, columns, computed: false, row: None, is_prefixed: false },
        )?;
        Ok(format!("({}) AS {t}", relation.sql))
    }

    fn expanded(&mut self, definition: &ViewDefinition, is_bound: bool) -> Result<Relation> {
        let view = &definition.view;
        let within = Within::of(&definition.database, &view.name, is_bound);
        self.within(within, definition.bytes, definition.ansi_nulls, |work| {
            let others = work.arguments.take();
            let relation = work.query(&view.query, View::EMPTY, true);
            work.arguments = others;
            relation
        })
    }

    /// Translates what a view or function holds: with the names of its database, and no variables of who names it.
    pub(super) fn within<T: Written>(
        &mut self,
        within: Within,
        bytes: usize,
        ansi_nulls: bool,
        translate: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.views.iter().any(|other| other.is(&within)) {
            return Err(Message::of(table::VIEW_OF_ITSELF, [&object_text(&within.name)]));
        }
        if self.views.len() >= NESTED_MOST {
            return Err(Message::of(table::TOO_DEEP, []));
        }
        self.views_named += 1;
        if self.views_named > NAMED_MOST || self.depth > DEPTH_MOST {
            return Err(too_complex());
        }
        self.repeat(bytes)?;
        self.views.push(within);
        let variables = std::mem::replace(&mut self.variables, &NoVariables);
        let ansi_nulls = std::mem::replace(&mut self.ansi_nulls, ansi_nulls);
        let split = self.split.take();
        let translated = translate(self);
        self.split = split;
        self.ansi_nulls = ansi_nulls;
        self.variables = variables;
        self.views.pop();
        let translated = translated?;
        self.repeat(translated.bytes())?;
        Ok(translated)
    }
}

/// What was written of a view or function.
pub(super) trait Written {
    /// How long it is within the statement.
    fn bytes(&self) -> usize;
}

impl Written for Relation {
    fn bytes(&self) -> usize {
        self.sql.len()
    }
}

impl Written for (ScopeTable, String) {
    fn bytes(&self) -> usize {
        self.1.len()
    }
}

/// Statements of their own are no part of the one that calls for them.
impl Written for Vec<super::routine::Step> {
    fn bytes(&self) -> usize {
        0
    }
}

/// A name within its database.
pub(super) fn local(name: &ObjectName) -> String {
    let schema = name.schema.as_ref().map_or("dbo", Name::as_str);
    format!("{schema}.{}", name.object.as_str())
}
