//! The names that a translation may ask for: tables, views and functions of databases, of the server and of the frame.

use pellucid_tsql::ast::{Name, ObjectName};

use super::narrowed::Sought;
use super::{sqlite_name, Databases, Frame};
use crate::instance::{Known, MASTER, MSDB, TEMPDB};
use crate::known;
use crate::message::{Message, Result};
use crate::translate::{
    object_text, Catalog, FunctionDefinition, Program, RowKey, Table, ViewDefinition,
};
use crate::views::{self, View};

/// The names of a session, and the table variables of a frame.
pub(crate) struct Names<'s> {
    pub databases: &'s Databases,
    pub frame: &'s Frame,
}

impl Names<'_> {
    /// The database that a name names, or the session's.
    fn database_of(&self, name: &ObjectName) -> Result<Option<Known>> {
        match &name.database {
            Some(database) => self.databases.instance.find(database.as_str()),
            None => self.databases.current().map(Some),
        }
    }
}

impl Names<'_> {
    /// A view of `sys` or `information_schema`.
    fn server_view(
        &self,
        view: &'static View,
        name: &ObjectName,
        key: Option<&RowKey>,
    ) -> Result<Table> {
        let databases = self.databases;
        // `DB_ID()` is the session's database, whichever one the view is of.
        let sought = key.map(|key| Sought::of(key, databases, self.frame));
        let shown = || databases.server_view(view, sought.as_ref());
        let Some(other) = &name.database else { return shown() };
        // Of another database: as if the session were there.
        let here = databases.current()?;
        databases.use_database(other.as_str())?;
        if view.is_of_sessions() {
            databases.enter(&here);
        }
        let table = shown();
        databases.enter(&here);
        table
    }
}

impl Catalog for Names<'_> {
    fn table_of(&self, name: &ObjectName, key: &RowKey) -> Result<Option<Table>> {
        let is_sys = |schema: &Name| schema.as_str().eq_ignore_ascii_case("sys");
        let is_servers = name.schema.as_ref().is_some_and(is_sys) && name.server.is_none();
        let view =
            views::find("sys", name.object.as_str()).filter(|view| view.shows_what_is_sought());
        match view.filter(|_| is_servers) {
            Some(view) => self.server_view(view, name, Some(key)).map(Some),
            None => self.table(name),
        }
    }

    fn table(&self, name: &ObjectName) -> Result<Option<Table>> {
        if let Some(server) = &name.server {
            return Err(Message::unknown_server(server.as_str()));
        }
        let databases = self.databases;
        let schema = name.schema.as_ref().map_or("", Name::as_str);
        let object = name.object.as_str();
        let database = name.database.as_ref().map(Name::as_str);
        if schema.eq_ignore_ascii_case("sys") || schema.eq_ignore_ascii_case("information_schema") {
            let view = views::find(schema, object);
            return match view {
                None if known::is_view(schema, object) => {
                    Err(Message::unsupported(object_text(name)))
                }
                None => Ok(None),
                Some(view) => self.server_view(view, name, None).map(Some),
            };
        }
        if object.starts_with('#') {
            return match databases.find_object("temp", &name.object.clone().into())? {
                Some((sqlite, _)) => databases.table_of("temp", &sqlite, false).map(Some),
                None => Ok(None),
            };
        }
        let in_msdb = match database {
            Some(database) => database.eq_ignore_ascii_case("msdb"),
            None => databases.current_id() == MSDB,
        };
        if in_msdb {
            let own = schema.is_empty() || schema.eq_ignore_ascii_case("dbo");
            match views::find("msdb", object).filter(|_| own) {
                Some(view) => return databases.server_view(view, None).map(Some),
                None if own && known::is_of_msdb(object) => {
                    return Err(Message::unsupported(object_text(name)))
                }
                // As in each database, the old views.
                None => {}
            }
        }
        let Some(known) = self.database_of(name)? else { return Ok(None) };
        if known.id == TEMPDB {
            if let Some((sqlite, is_view)) = databases.find_object("temp", name)? {
                return databases.table_of("temp", &sqlite, is_view).map(Some);
            }
        }
        if known.id == MASTER {
            if let Some(schema) = databases.attach_master()? {
                if let Some((sqlite, is_view)) = databases.find_object(&schema, name)? {
                    return databases.table_of(&schema, &sqlite, is_view).map(Some);
                }
            }
        }
        let is_own = schema.is_empty() || schema.eq_ignore_ascii_case("dbo");
        let is_elsewhere = known::is_compatibility_view(object)
            || (known.id == MASTER && known::is_of_master(object));
        // Of another database: as if the session were there.
        let compatible = || match views::find("sys", object).filter(|view| view.is_compatibility) {
            Some(view) => {
                let here = databases.current()?;
                if !view.is_of_sessions() {
                    databases.enter(&known);
                }
                let table = databases.server_view(view, None);
                databases.enter(&here);
                table.map(Some)
            }
            None if is_own && is_elsewhere => Err(Message::unsupported(object_text(name))),
            None => Ok(None),
        };
        if known.is_system() {
            return compatible();
        }
        let attached = databases.attach_named(&known)?;
        match databases.find_object(&attached, name)? {
            Some((sqlite, is_view)) => databases.table_of(&attached, &sqlite, is_view).map(Some),
            None => compatible(),
        }
    }

    fn view(&self, name: &ObjectName) -> Result<Option<ViewDefinition>> {
        let is_servers = name.schema.as_ref().map(Name::as_str).is_some_and(|schema| {
            schema.eq_ignore_ascii_case("sys") || schema.eq_ignore_ascii_case("information_schema")
        });
        if is_servers || name.server.is_some() || name.object.as_str().starts_with('#') {
            return Ok(None);
        }
        match self.database_of(name)? {
            Some(known) => self.databases.view(&known, &sqlite_name(name)),
            None => Ok(None),
        }
    }

    fn function(&self, name: &ObjectName) -> Result<Option<FunctionDefinition>> {
        if name.schema.is_none() && name.database.is_none() || name.server.is_some() {
            return Ok(None);
        }
        match self.database_of(name)? {
            Some(known) => self.databases.function(&known, &sqlite_name(name)),
            None => Ok(None),
        }
    }

    fn reserve_program(&self, key: &str) -> (usize, bool) {
        self.databases.shared.programs.reserve(key)
    }

    fn keep_program(&self, number: usize, program: Program) -> Result<()> {
        // What it asks the session for has to be there when it runs.
        program.statements().into_iter().try_for_each(|sql| self.databases.refresh(sql))?;
        self.databases.shared.programs.keep(number, program);
        Ok(())
    }

    fn view_failed(&self, name: &ObjectName, found: &Message) {
        /// What names and columns are not, or not any more.
        const OF_BINDING: [u32; 12] =
            [206, 207, 208, 209, 911, 4104, 4121, 8120, 8155, 8156, 8158, 8159];
        if OF_BINDING.contains(&found.number) {
            self.databases.failed_views.borrow_mut().push(object_text(name));
        }
    }

    fn table_variable(&self, name: &str) -> Option<Table> {
        self.frame.table(name).map(|variable| variable.table.clone())
    }
}
