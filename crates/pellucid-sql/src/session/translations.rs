//! Translations of a batch's statements, kept as long as what they stand on is the same.
//!
//! A translation follows from the statement, ANSI_NULLS, and what the catalog and the variables have answered. All of that is kept
//! with it. Where the same statement comes again, in a loop or in another call of a procedure, each name is asked for again, which
//! also makes the rows of the server's views, and where the answers are the same the translation is.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use pellucid_tsql::ast::{Condition, Delete, Expression, Insert, ObjectName, Query, Update};

use crate::message::{Message, Result};
use crate::translate::{
    Catalog, FunctionDefinition, Program, RowKey, Selection, Statement, Table, VariableTypes,
    ViewDefinition,
};
use crate::values::types::SqlType;

/// Translations that are kept.
const KEPT_MOST: usize = 2048;

/// What is translated.
#[derive(Clone, PartialEq)]
pub(crate) enum Source {
    Select(Query),
    Value(Expression, Option<SqlType>),
    Condition(Condition),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
}

/// The same where it stands.
#[derive(Clone, Copy)]
pub(crate) enum SourceRef<'s> {
    Select(&'s Query),
    Value(&'s Expression, Option<SqlType>),
    Condition(&'s Condition),
    Insert(&'s Insert),
    Update(&'s Update),
    Delete(&'s Delete),
}

impl SourceRef<'_> {
    /// Where it lies: the same statement lies in the same place, although another one may later.
    fn place(self) -> usize {
        match self {
            Self::Select(source) => std::ptr::from_ref(source) as usize,
            Self::Value(source, _) => std::ptr::from_ref(source) as usize,
            Self::Condition(source) => std::ptr::from_ref(source) as usize,
            Self::Insert(source) => std::ptr::from_ref(source) as usize,
            Self::Update(source) => std::ptr::from_ref(source) as usize,
            Self::Delete(source) => std::ptr::from_ref(source) as usize,
        }
    }

    fn is(self, other: &Source) -> bool {
        match (self, other) {
            (Self::Select(source), Source::Select(other)) => source == other,
            (Self::Value(source, to), Source::Value(other, other_to)) => {
                to == *other_to && source == other
            }
            (Self::Condition(source), Source::Condition(other)) => source == other,
            (Self::Insert(source), Source::Insert(other)) => source == other,
            (Self::Update(source), Source::Update(other)) => source == other,
            (Self::Delete(source), Source::Delete(other)) => source == other,
            _ => false,
        }
    }

    fn owned(self) -> Source {
        match self {
            Self::Select(source) => Source::Select(source.clone()),
            Self::Value(source, to) => Source::Value(source.clone(), to),
            Self::Condition(source) => Source::Condition(source.clone()),
            Self::Insert(source) => Source::Insert(source.clone()),
            Self::Update(source) => Source::Update(source.clone()),
            Self::Delete(source) => Source::Delete(source.clone()),
        }
    }
}

/// What comes of it.
pub(crate) enum Translated {
    Selection(Selection),
    Statement(Statement),
}

/// A question of a translation's, and the answer.
enum Asked {
    Table(ObjectName, Option<Table>),
    TableOf(ObjectName, RowKey, Option<Table>),
    /// There was no view of a script's of that name.
    NoView(ObjectName),
    /// There was no function of a script's of that name.
    NoFunction(ObjectName),
    TableVariable(String, Option<Table>),
    Variable(String, Option<SqlType>),
}

impl Translated {
    /// The one statement, or the one that gives the rows of a SELECT.
    pub fn statement(&self) -> &Statement {
        match self {
            Self::Statement(statement) | Self::Selection(Selection::Rows(statement)) => statement,
            Self::Selection(Selection::Assign(assignments)) => &assignments.rows,
        }
    }
}

struct Entry {
    source: Source,
    ansi_nulls: bool,
    asked: Vec<Asked>,
    translated: Rc<Translated>,
}

/// By the place of the statement.
#[derive(Default)]
pub(crate) struct Translations(RefCell<HashMap<usize, Rc<Entry>>>);

impl Translations {
    /// The translation of before, if it would be the same now.
    pub fn find(
        &self,
        source: SourceRef<'_>,
        ansi_nulls: bool,
        catalog: &dyn Catalog,
        variables: &dyn VariableTypes,
    ) -> Option<Rc<Translated>> {
        let entry = self.0.borrow().get(&source.place()).cloned()?;
        let is_same = ansi_nulls == entry.ansi_nulls
            && source.is(&entry.source)
            && entry.asked.iter().all(|asked| asked.holds(catalog, variables));
        is_same.then(|| Rc::clone(&entry.translated))
    }

    /// Keeps one, unless it has asked for what may have changed in ways that nobody would see.
    pub fn keep(
        &self,
        source: SourceRef<'_>,
        ansi_nulls: bool,
        recorder: Recorder<'_>,
        translated: &Rc<Translated>,
    ) {
        let mut kept = self.0.borrow_mut();
        if !recorder.is_whole.get() {
            kept.remove(&source.place());
            return;
        }
        if kept.len() >= KEPT_MOST {
            kept.clear();
        }
        let asked = recorder.asked.into_inner();
        let entry =
            Entry { source: source.owned(), ansi_nulls, asked, translated: Rc::clone(translated) };
        kept.insert(source.place(), Rc::new(entry));
    }

    /// Forgets all of them.
    pub fn forget(&self) {
        self.0.borrow_mut().clear();
    }
}

impl Asked {
    fn holds(&self, catalog: &dyn Catalog, variables: &dyn VariableTypes) -> bool {
        match self {
            // An error is one of the statement's: the translation that follows comes upon it again.
            Self::Table(name, table) => catalog.table(name).is_ok_and(|now| now == *table),
            Self::TableOf(name, key, table) => {
                catalog.table_of(name, key).is_ok_and(|now| now == *table)
            }
            Self::NoView(name) => matches!(catalog.view(name), Ok(None)),
            Self::NoFunction(name) => matches!(catalog.function(name), Ok(None)),
            Self::TableVariable(name, table) => catalog.table_variable(name) == *table,
            Self::Variable(name, data_type) => variables.variable_type(name) == *data_type,
        }
    }
}

/// Hands questions on, and keeps them with their answers.
pub(crate) struct Recorder<'c> {
    catalog: &'c dyn Catalog,
    variables: &'c dyn VariableTypes,
    asked: RefCell<Vec<Asked>>,
    /// Whether the answers say all that the translation stands on.
    is_whole: Cell<bool>,
}

impl<'c> Recorder<'c> {
    /// One that asks these.
    pub fn new(catalog: &'c dyn Catalog, variables: &'c dyn VariableTypes) -> Self {
        Self { catalog, variables, asked: RefCell::default(), is_whole: Cell::new(true) }
    }

    fn note(&self, asked: Asked) {
        self.asked.borrow_mut().push(asked);
    }
}

impl Catalog for Recorder<'_> {
    fn table(&self, name: &ObjectName) -> Result<Option<Table>> {
        let found = self.catalog.table(name);
        match &found {
            Ok(table) => self.note(Asked::Table(name.clone(), table.clone())),
            // Whoever asks may go on without it.
            Err(_) => self.is_whole.set(false),
        }
        found
    }

    fn table_of(&self, name: &ObjectName, key: &RowKey) -> Result<Option<Table>> {
        let found = self.catalog.table_of(name, key);
        match &found {
            Ok(table) => self.note(Asked::TableOf(name.clone(), key.clone(), table.clone())),
            Err(_) => self.is_whole.set(false),
        }
        found
    }

    fn view(&self, name: &ObjectName) -> Result<Option<ViewDefinition>> {
        let found = self.catalog.view(name);
        match &found {
            Ok(None) => self.note(Asked::NoView(name.clone())),
            _ => self.is_whole.set(false),
        }
        found
    }

    fn function(&self, name: &ObjectName) -> Result<Option<FunctionDefinition>> {
        let found = self.catalog.function(name);
        match &found {
            Ok(None) => self.note(Asked::NoFunction(name.clone())),
            _ => self.is_whole.set(false),
        }
        found
    }

    fn reserve_program(&self, key: &str) -> (usize, bool) {
        self.is_whole.set(false);
        self.catalog.reserve_program(key)
    }

    fn keep_program(&self, number: usize, program: Program) -> Result<()> {
        self.is_whole.set(false);
        self.catalog.keep_program(number, program)
    }

    fn view_failed(&self, name: &ObjectName, found: &Message) {
        self.is_whole.set(false);
        self.catalog.view_failed(name, found);
    }

    fn table_variable(&self, name: &str) -> Option<Table> {
        let found = self.catalog.table_variable(name);
        self.note(Asked::TableVariable(name.to_owned(), found.clone()));
        found
    }
}

impl VariableTypes for Recorder<'_> {
    fn variable_type(&self, name: &str) -> Option<SqlType> {
        let found = self.variables.variable_type(name);
        let is_known = |asked: &Asked| matches!(asked, Asked::Variable(other, _) if other == name);
        if !self.asked.borrow().iter().any(is_known) {
            self.note(Asked::Variable(name.to_owned(), found));
        }
        found
    }
}
