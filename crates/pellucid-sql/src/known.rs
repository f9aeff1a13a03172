//! What SQL Server has and Pellucid has not, by its names: refused as not supported (50001), never called unknown.
//!
//! Each list is asked last, when nothing here has the name. A list is text, its names sorted and apart by white space.

mod dbcc;
mod functions;
mod procedures;
mod views;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use pellucid_tsql::ast::{Name, ObjectName};

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It does what SQL Server's does.
    Works,
    /// It is taken and changes nothing, or has nothing to show.
    NoEffect,
    /// Message 50001, before anything was changed.
    Refused,
}

impl State {
    /// As it is shown.
    pub fn text(self) -> &'static str {
        match self {
            State::Works => "works",
            State::NoEffect => "without effect",
            State::Refused => "refused",
        }
    }
}

/// The names of a list.
pub(crate) fn names(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split_ascii_whitespace()
}

/// Each name of a script is looked for in several of the lists.
fn has(list: &'static str, name: &str) -> bool {
    type Sets = HashMap<*const u8, HashSet<String>>;
    thread_local! {
        static SETS: RefCell<Sets> = RefCell::default();
    }
    SETS.with_borrow_mut(|sets| {
        let set = sets.entry(list.as_ptr());
        let set = set.or_insert_with(|| names(list).map(str::to_ascii_lowercase).collect());
        set.contains(&name.to_ascii_lowercase())
    })
}

fn is(name: Option<&Name>, wanted: &str) -> bool {
    name.is_some_and(|name| name.as_str().eq_ignore_ascii_case(wanted))
}

/// A built-in function.
pub(crate) fn is_function(name: &str) -> bool {
    has(functions::FUNCTIONS, name)
}

/// A function within `sys` or `msdb` that gives a value, by whatever name scripts call it.
pub(crate) fn is_sys_function(name: &ObjectName) -> bool {
    let is_there = match &name.schema {
        Some(schema) if schema.as_str().eq_ignore_ascii_case("sys") => true,
        Some(_) => is(name.database.as_ref(), "master") && is(name.schema.as_ref(), "dbo"),
        None => is(name.database.as_ref(), "master"),
    };
    let is_of_msdb = is(name.database.as_ref(), "msdb")
        && name.schema.as_ref().is_none_or(|schema| schema.as_str().eq_ignore_ascii_case("dbo"));
    let object = name.object.as_str();
    (is_there && has(functions::OF_SYS, object)) || (is_of_msdb && has(functions::OF_MSDB, object))
}

/// A global variable, without its `@@`.
pub(crate) fn is_global(name: &str) -> bool {
    names(functions::GLOBALS).any(|known| known[2..].eq_ignore_ascii_case(name))
}

/// A function that gives a table.
pub(crate) fn is_table_function(name: &ObjectName) -> bool {
    let object = name.object.as_str();
    match &name.schema {
        Some(schema) if schema.as_str().eq_ignore_ascii_case("sys") => {
            has(views::TABLE_FUNCTIONS, object)
        }
        Some(_) => false,
        // The old ones are found without a schema.
        None => {
            let is_old = object.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("fn_"));
            (is_old && has(views::TABLE_FUNCTIONS, object)) || is_function(object)
        }
    }
}

/// A view of `sys` or `INFORMATION_SCHEMA`.
pub(crate) fn is_view(schema: &str, name: &str) -> bool {
    match schema.eq_ignore_ascii_case("sys") {
        true => [views::CATALOG, views::DYNAMIC, views::COMPATIBILITY, views::TABLE_FUNCTIONS]
            .into_iter()
            .any(|list| has(list, name)),
        false => has(views::INFORMATION, name),
    }
}

/// A view that is found without a schema in every database.
pub(crate) fn is_compatibility_view(name: &str) -> bool {
    has(views::COMPATIBILITY, name)
}

/// A table or view of `msdb`.
pub(crate) fn is_of_msdb(name: &str) -> bool {
    has(views::OF_MSDB, name)
}

/// A table of `master`.
pub(crate) fn is_of_master(name: &str) -> bool {
    has(views::OF_MASTER, name)
}

fn is_of_the_server(name: &ObjectName) -> bool {
    name.server.is_none()
        && (name.schema.is_none()
            || is(name.schema.as_ref(), "dbo")
            || is(name.schema.as_ref(), "sys"))
}

/// A procedure that every database has: no other one of the name is called.
pub(crate) fn is_procedure(name: &ObjectName) -> bool {
    is_of_the_server(name) && has(procedures::EVERYWHERE, name.object.as_str())
}

/// A procedure of `msdb`: another database may have one of the name.
pub(crate) fn is_procedure_of_msdb(name: &ObjectName) -> bool {
    is_of_the_server(name) && has(procedures::OF_MSDB, name.object.as_str())
}

/// A command of DBCC.
pub(crate) fn is_dbcc(name: &str) -> bool {
    has(dbcc::COMMANDS, name)
}

/// The lists, for [`crate::features`].
pub(crate) mod lists {
    pub(crate) use super::dbcc::COMMANDS as DBCC;
    pub(crate) use super::functions::{FUNCTIONS, GLOBALS, OF_MSDB as FUNCTIONS_OF_MSDB, OF_SYS};
    pub(crate) use super::procedures::{EVERYWHERE, OF_MSDB as PROCEDURES_OF_MSDB};
    pub(crate) use super::views::{
        CATALOG, COMPATIBILITY, DYNAMIC, INFORMATION, OF_MASTER, OF_MSDB, TABLE_FUNCTIONS,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_is_sorted_and_names_nothing_twice() {
        for list in [
            lists::CATALOG,
            lists::COMPATIBILITY,
            lists::DBCC,
            lists::DYNAMIC,
            lists::EVERYWHERE,
            lists::FUNCTIONS,
            lists::FUNCTIONS_OF_MSDB,
            lists::GLOBALS,
            lists::INFORMATION,
            lists::OF_MASTER,
            lists::OF_MSDB,
            lists::OF_SYS,
            lists::PROCEDURES_OF_MSDB,
            lists::TABLE_FUNCTIONS,
        ] {
            let names: Vec<_> = names(list).collect();
            for pair in names.windows(2) {
                assert!(pair[0] < pair[1], "{pair:?}");
            }
        }
    }

    #[test]
    fn what_is_here_is_in_no_list() {
        for view in crate::views::every() {
            let (schema, name) = (view.schema, view.name);
            let is_listed = match schema {
                "msdb" => is_of_msdb(name),
                _ => is_view(schema, name),
            };
            assert!(!is_listed, "{schema}.{name} is here: take it from known/views.rs");
        }
        for name in crate::execute::PROCEDURES {
            let is_listed = has(procedures::EVERYWHERE, name) || has(procedures::OF_MSDB, name);
            assert!(!is_listed, "{name} is here: take it from known/procedures.rs");
        }
        for name in crate::execute::DBCC_COMMANDS {
            assert!(!is_dbcc(name), "DBCC {name} is here: take it from known/dbcc.rs");
        }
        for name in crate::translate::function_names() {
            assert!(!is_function(name), "{name} is here: take it from known/functions.rs");
        }
    }
}
