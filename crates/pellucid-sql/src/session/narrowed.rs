//! Views of the server with the rows of the databases alone that a statement asks for.
//!
//! Each place of a statement where that is so has a temporary table of its own, so that none has the rows of another. Which databases
//! they are is found once for a statement: a name that is given to another database meanwhile is the one's still, also for `DB_ID`.

use std::cell::{Cell, RefCell};

use super::{Databases, Frame};
use crate::instance::Known;
use crate::message::Result;
use crate::translate::{Given, RowKey, VariableTypes, Variables};
use crate::values::convert::Value;
use crate::values::types::Family;

/// Characters of the name that `DB_ID` takes.
const NAME_CHARS_MOST: usize = 128;

/// Of the statement that is translated.
#[derive(Default)]
pub(super) struct Narrowed {
    /// The databases as they were when one was looked for first.
    databases: RefCell<Option<Vec<Known>>>,
    /// How many tables it has so far.
    tables: Cell<u32>,
    shown: RefCell<Shown>,
}

/// What rows are made of.
#[derive(Default)]
pub(super) struct Shown {
    /// None: of all databases.
    databases: Option<Vec<Known>>,
    /// None: of all objects.
    object: Option<i64>,
}

/// What is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sought {
    Any,
    Named(String),
    Numbered(i64),
    /// Or the one of this number, which the session is in.
    OrNumbered(i64, Box<Sought>),
    /// Or all, where there is none such.
    OrAll(Box<Sought>),
    /// No database, but an object.
    Object(i64),
}

impl Sought {
    /// What a key asks for with the variables as they are, from the database that the session is in. What is no plain name or number is compared by SQLite alone.
    pub fn of(key: &RowKey, databases: &Databases, frame: &Frame) -> Self {
        let text = |given: &Given| match given {
            Given::Text(text) => Some(text.clone()),
            Given::Variable(name) => match (frame.variable_type(name)?.family(), frame.get(name)) {
                (Family::Text, Value::Text(text)) => Some(text),
                _ => None,
            },
            Given::Number(_) => None,
        };
        let number = |given: &Given| match given {
            Given::Number(number) => Some(*number),
            Given::Variable(name) => match (frame.variable_type(name)?.family(), frame.get(name)) {
                (Family::Integer, Value::Integer(number)) => Some(number),
                _ => None,
            },
            Given::Text(_) => None,
        };
        // SQLite compares no further than a zero byte.
        let name = |text: &String| !text.contains('\0');
        match key {
            RowKey::Name(given) => text(given).filter(name).map_or(Self::Any, Self::Named),
            RowKey::IdOf(given) => {
                let is_short = |text: &String| text.chars().count() <= NAME_CHARS_MOST;
                text(given).filter(name).filter(is_short).map_or(Self::Any, Self::Named)
            }
            RowKey::Id(given) => number(given).map_or(Self::Any, Self::Numbered),
            RowKey::Current => Self::Numbered(databases.current_id()),
            RowKey::OrCurrent(key) => {
                let sought = Box::new(Self::of(key, databases, frame));
                Self::OrNumbered(databases.current_id(), sought)
            }
            RowKey::OrAll(key) => Self::OrAll(Box::new(Self::of(key, databases, frame))),
            RowKey::Object(given) => number(given).map_or(Self::Any, Self::Object),
            RowKey::ThisProcedure => Self::Object(databases.shared.procedure_id()),
        }
    }

    fn is(&self, known: &Known) -> bool {
        match self {
            Self::Any | Self::Object(_) => true,
            // Letters but A to Z have one case: SQLite's NOCASE.
            Self::Named(name) => known.name.trim_end().eq_ignore_ascii_case(name.trim_end()),
            Self::Numbered(number) => known.id == *number,
            Self::OrAll(sought) => sought.is(known),
            Self::OrNumbered(number, sought) => known.id == *number || sought.is(known),
        }
    }
}

impl Narrowed {
    /// Another statement is translated.
    pub fn begin(&self) {
        self.databases.replace(None);
        self.tables.set(0);
    }

    /// The number of the statement's next table.
    pub fn next_table(&self) -> u32 {
        let number = self.tables.get();
        self.tables.set(number + 1);
        number
    }

    /// The databases of this statement, if one was looked for.
    pub fn databases(&self) -> Option<Vec<(i64, String)>> {
        let databases = self.databases.borrow();
        let all = databases.as_ref()?.iter();
        Some(all.map(|known| (known.id, known.name.clone())).collect())
    }

    /// Makes rows of these.
    pub fn while_shown<R>(&self, shown: Shown, make: impl FnOnce() -> R) -> R {
        let outer = self.shown.replace(shown);
        let made = make();
        self.shown.replace(outer);
        made
    }
}

impl Databases {
    /// The databases that a view has rows of, which is all of them if the statement does not ask for some.
    ///
    /// # Errors
    /// SQLite's.
    pub fn shown(&self) -> Result<Vec<Known>> {
        match &self.narrowed.shown.borrow().databases {
            Some(shown) => Ok(shown.clone()),
            None => self.instance.databases(),
        }
    }

    /// The object that a view has rows of; none: of all.
    pub fn shown_object(&self) -> Option<i64> {
        self.narrowed.shown.borrow().object
    }

    /// What of the databases and objects is sought.
    ///
    /// # Errors
    /// SQLite's.
    pub(super) fn find_sought(&self, sought: &Sought) -> Result<Shown> {
        if let Sought::Object(number) = sought {
            return Ok(Shown { object: Some(*number), databases: None });
        }
        let mut databases = self.narrowed.databases.borrow_mut();
        let all = match &*databases {
            Some(all) => all,
            None => databases.insert(self.instance.databases()?),
        };
        let mut found: Vec<_> = all.iter().filter(|known| sought.is(known)).cloned().collect();
        if found.is_empty() && matches!(sought, Sought::OrAll(_)) {
            found.clone_from(all);
        }
        Ok(Shown { databases: Some(found), object: None })
    }
}
