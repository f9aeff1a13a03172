//! The views and functions of scripts as translations need them, read once, and the columns of views.

use std::rc::Rc;

use pellucid_tsql::ast::{self, Name, ObjectStatement, StatementKind};
use pellucid_tsql::parse_as;

use super::{Databases, Frame, Names};
use crate::instance::{Known, Module, ModuleKind};
use crate::message::Result;
use crate::translate::{FunctionDefinition, ResultColumn, Translator, ViewDefinition};

/// Views that are kept as they were read.
const READ_MOST: usize = 64;

/// A view that was read.
#[derive(Debug)]
pub(super) struct ReadView {
    definition: String,
    quoted_identifier: bool,
    view: Rc<ast::View>,
}

/// A function that was read.
#[derive(Debug)]
pub(super) struct ReadFunction {
    definition: String,
    quoted_identifier: bool,
    function: Rc<ast::Function>,
}

impl Databases {
    /// The view of that name in a database.
    ///
    /// # Errors
    /// SQLite's; what the parser says of its text.
    pub fn view(&self, known: &Known, sqlite: &str) -> Result<Option<ViewDefinition>> {
        match self.instance.module(known, sqlite)? {
            Some(module) => self.view_of(known, &module),
            None => Ok(None),
        }
    }

    fn view_of(&self, known: &Known, module: &Module) -> Result<Option<ViewDefinition>> {
        let database = Name::new(known.name.clone());
        let (Some(database), ModuleKind::View) = (database, module.kind) else { return Ok(None) };
        let definition = |view| ViewDefinition {
            database,
            view,
            ansi_nulls: module.ansi_nulls,
            bytes: module.definition.len(),
        };
        let is_it = |read: &&ReadView| {
            read.definition == module.definition
                && read.quoted_identifier == module.quoted_identifier
        };
        let read = self.read_views.borrow().iter().find(is_it).map(|read| Rc::clone(&read.view));
        if let Some(view) = read {
            return Ok(Some(definition(view)));
        }
        let parsed = parse_as(&module.definition, module.quoted_identifier)?;
        let view = parsed.statements.into_iter().find_map(|statement| match statement.kind {
            StatementKind::Object(ObjectStatement::View(view)) => Some(Rc::new(view)),
            _ => None,
        });
        if let Some(view) = &view {
            let mut views = self.read_views.borrow_mut();
            if views.len() >= READ_MOST {
                views.clear();
            }
            views.push(ReadView {
                definition: module.definition.clone(),
                quoted_identifier: module.quoted_identifier,
                view: Rc::clone(view),
            });
        }
        Ok(view.map(definition))
    }

    /// The temporary procedure of that name, which this session alone has.
    pub fn temporary_procedure(&self, name: &str) -> Option<Module> {
        let all = self.temporary_procedures.borrow();
        all.iter().find(|module| module.name.eq_ignore_ascii_case(name)).cloned()
    }

    /// Keeps one as long as the session.
    pub fn keep_temporary_procedure(&self, module: Module) {
        self.temporary_procedures.borrow_mut().push(module);
    }

    /// Forgets one; whether there was one.
    pub fn drop_temporary_procedure(&self, name: &str) -> bool {
        let mut all = self.temporary_procedures.borrow_mut();
        let before = all.len();
        all.retain(|module| !module.name.eq_ignore_ascii_case(name));
        all.len() < before
    }

    /// The function of that name in a database.
    ///
    /// # Errors
    /// SQLite's; what the parser says of its text.
    pub fn function(&self, known: &Known, sqlite: &str) -> Result<Option<FunctionDefinition>> {
        let module = self.instance.module(known, sqlite)?;
        let Some(module) = module.filter(|module| module.kind.is_function()) else {
            return Ok(None);
        };
        let Some(database) = Name::new(known.name.clone()) else { return Ok(None) };
        let definition = |function| FunctionDefinition {
            database,
            function,
            ansi_nulls: module.ansi_nulls,
            bytes: module.definition.len(),
        };
        let is_it = |read: &&ReadFunction| {
            read.definition == module.definition
                && read.quoted_identifier == module.quoted_identifier
        };
        let read =
            self.read_functions.borrow().iter().find(is_it).map(|read| read.function.clone());
        if let Some(function) = read {
            return Ok(Some(definition(function)));
        }
        let parsed = parse_as(&module.definition, module.quoted_identifier)?;
        let function = parsed.statements.into_iter().find_map(|statement| match statement.kind {
            StatementKind::Object(ObjectStatement::Function(function)) => Some(Rc::from(function)),
            _ => None,
        });
        if let Some(function) = &function {
            let mut functions = self.read_functions.borrow_mut();
            if functions.len() >= READ_MOST {
                functions.clear();
            }
            functions.push(ReadFunction {
                definition: module.definition.clone(),
                quoted_identifier: module.quoted_identifier,
                function: Rc::clone(function),
            });
        }
        Ok(function.map(definition))
    }

    /// The columns of the current database's views that can be used: name, and columns.
    ///
    /// # Errors
    /// SQLite's.
    pub fn columns_of_views(&self, known: &Known) -> Result<Vec<(String, Vec<ResultColumn>)>> {
        // A view may be one of the very list that is made here.
        if self.lists_views.replace(true) {
            return Ok(Vec::new());
        }
        let failed = self.failed_views.take();
        let attached = self.attached_ids();
        let listed = self.list_columns_of_views(known);
        // The statement that asks may have named them before: none of them has made room for another one.
        let all = self.instance.databases().unwrap_or_default();
        for id in attached {
            let known = all.iter().find(|known| known.id == id);
            // One that cannot be attached any more is told where it is named.
            let _ = known.map(|known| self.attach(known));
        }
        self.failed_views.replace(failed);
        self.lists_views.set(false);
        listed
    }

    fn list_columns_of_views(&self, known: &Known) -> Result<Vec<(String, Vec<ResultColumn>)>> {
        let frame = Frame::default();
        let names = Names { databases: self, frame: &frame };
        let mut all = Vec::new();
        for module in self.instance.modules(known)? {
            // One whose tables are gone has none.
            let Ok(Some(definition)) = self.view_of(known, &module) else { continue };
            if let Ok(columns) = Translator::new(&names, &frame).columns_of_view(&definition) {
                all.push((module.name, columns));
            }
        }
        Ok(all)
    }
}
