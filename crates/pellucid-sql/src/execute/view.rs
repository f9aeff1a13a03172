//! CREATE, ALTER and DROP VIEW, and what has a name already.
//!
//! Source: Microsoft's "CREATE VIEW". The definition is kept as it was written and translated where a query names it.

use std::rc::Rc;

use pellucid_tsql::ast::{Name, ObjectName, View, ViewVerb};

use super::Done;
use crate::instance::files::FILES_TABLE;
use crate::instance::{Known, ModuleKind, MASTER, TEMPDB};
use crate::message::{table, Message};
use crate::session::{sqlite_name, Session};
use crate::translate::{object_text, quoted, ViewDefinition};

use super::object::INDEXES_TABLE;

impl Session {
    pub(super) fn create_view(&mut self, view: &View) -> Done {
        let shown = view.name.object.as_str();
        if view.name.database.is_some() || view.name.server.is_some() {
            return Err(Message::of(table::NO_DATABASE_PREFIX, [&"CREATE/ALTER VIEW"]).into());
        }
        if shown.starts_with('#') {
            return Err(Message::of(table::TEMPORARY_VIEW, [&shown]).into());
        }
        if view.check_option {
            return Err(Message::unsupported("VIEW WITH CHECK OPTION").into());
        }
        self.outside_transaction("CREATE/ALTER VIEW")?;
        let known = self.databases.current()?;
        if known.is_system() && known.id != MASTER {
            return Err(Message::unsupported(format!("views in {}", known.name)).into());
        }
        if let Some(schema) = view.name.schema.as_ref().map(Name::as_str).filter(is_servers) {
            return Err(Message::of(table::UNKNOWN_SCHEMA, [&schema]).into());
        }
        self.check_module_name(&known, ModuleKind::View, view.verb, &view.name)?;
        let definition = self.definition(view.verb);
        let made = ViewDefinition {
            database: Name::new(known.name.clone())
                .ok_or_else(|| Message::unsupported("views in a database of this name"))?,
            view: Rc::new(view.clone()),
            ansi_nulls: !self.settings.nulls_are_equal,
            bytes: definition.len(),
        };
        self.translated(|translator| translator.view(&made))?;
        let as_set = (!self.settings.nulls_are_equal, !self.settings.quotes_are_strings);
        let named = (ModuleKind::View, sqlite_name(&view.name));
        let (kind, name) = (named.0, named.1.as_str());
        Ok(self.databases.instance.keep_module(&known, (kind, name), &definition, as_set)?)
    }

    /// Whether a module may get the name: 2714 if something else has it, 208 and 2010 for ALTER of nothing and of
    /// something else.
    pub(super) fn check_module_name(
        &mut self,
        known: &Known,
        kind: ModuleKind,
        verb: ViewVerb,
        name: &ObjectName,
    ) -> Done {
        let module = self.databases.instance.module(known, &sqlite_name(name))?;
        let is_table = self.is_own_table(name) || self.stored_object(known, name)?.is_some();
        let shown = name.object.as_str();
        match (verb, module.map(|module| module.kind)) {
            (ViewVerb::Create, Some(_)) => Err(Message::object_exists(shown).into()),
            (ViewVerb::Create, None) if is_table => Err(Message::object_exists(shown).into()),
            (ViewVerb::Alter | ViewVerb::CreateOrAlter, Some(own)) if own == kind => Ok(()),
            (_, None) if !is_table && verb != ViewVerb::Alter => Ok(()),
            (_, None) if !is_table => {
                Err(Message::of(table::UNKNOWN_OBJECT, [&object_text(name)]).into())
            }
            _ => Err(Message::of(table::INCOMPATIBLE_OBJECT, [&shown]).into()),
        }
    }

    /// Whether the name is that of a table that Pellucid keeps in a database.
    pub(super) fn is_own_table(&self, name: &ObjectName) -> bool {
        let own = [FILES_TABLE, INDEXES_TABLE];
        own.iter().any(|own| own.eq_ignore_ascii_case(name.object.as_str()))
    }

    /// The table or view of SQLite's that has the name in a database: attached schema, SQLite's name, whether a view.
    pub(super) fn stored_object(
        &self,
        known: &Known,
        name: &ObjectName,
    ) -> Done<Option<(String, String, bool)>> {
        let schema = match known.id {
            MASTER => self.databases.attach_master()?,
            TEMPDB => Some("temp".to_owned()),
            _ if known.is_system() => None,
            _ => Some(self.databases.attach(known)?),
        };
        let Some(schema) = schema else { return Ok(None) };
        let found = self.databases.find_object(&schema, name)?;
        Ok(found.map(|(sqlite, is_view)| (schema, sqlite, is_view)))
    }

    pub(super) fn drop_views(&mut self, names: &[ObjectName], if_exists: bool) -> Done {
        for name in names {
            if name.database.is_some() || name.server.is_some() {
                return Err(Message::of(table::NO_DATABASE_PREFIX, [&"DROP VIEW"]).into());
            }
            let known = self.databases.current()?;
            match self.stored_object(&known, name)? {
                Some((schema, sqlite, true)) => {
                    let sql = format!("DROP VIEW {}.{}", quoted(&schema), quoted(&sqlite));
                    self.databases.connection.execute_batch(&sql)?;
                    continue;
                }
                Some(_) => return Err(of_another_kind("VIEW", name, "table")),
                None => {}
            }
            self.drop_module_of(&known, ModuleKind::View, name, if_exists)?;
        }
        Ok(())
    }

    /// DROP PROCEDURE and DROP VIEW of a module.
    pub(super) fn drop_module_of(
        &mut self,
        known: &Known,
        kind: ModuleKind,
        name: &ObjectName,
        if_exists: bool,
    ) -> Done {
        self.refuse_drop_of_module(known, Some(kind), name)?;
        let sqlite = sqlite_name(name);
        if self.databases.instance.module(known, &sqlite)?.is_some() {
            self.outside_transaction(&format!("DROP {}", kind.name().to_uppercase()))?;
            self.databases.instance.drop_module(known, &sqlite)?;
        } else if !if_exists {
            return Err(Message::cannot_drop(kind.name(), &object_text(name)).into());
        }
        Ok(())
    }

    /// 3705 for a module of another kind than DROP says; `None`: DROP TABLE.
    pub(super) fn refuse_drop_of_module(
        &self,
        known: &Known,
        kind: Option<ModuleKind>,
        name: &ObjectName,
    ) -> Done {
        let found = self.databases.instance.module(known, &sqlite_name(name))?;
        match found {
            Some(module) if Some(module.kind) != kind => {
                let what = kind.map_or("table", ModuleKind::name).to_uppercase();
                Err(of_another_kind(&what, name, module.kind.name()))
            }
            _ => Ok(()),
        }
    }
}

/// 3705
pub(super) fn of_another_kind(what: &str, name: &ObjectName, kind: &str) -> super::Raised {
    let (name, other) = (object_text(name), kind.to_uppercase());
    Message::of(table::DROP_OF_ANOTHER_KIND, [&what, &name, &name, &kind, &other]).into()
}

fn is_servers(schema: &&str) -> bool {
    ["sys", "information_schema"].iter().any(|own| own.eq_ignore_ascii_case(schema))
}
