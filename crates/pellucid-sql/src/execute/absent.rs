//! DROP of what nobody can create here; ENABLE and DISABLE TRIGGER.
//!
//! A script that removes what it may have made runs to its end: told is what is not there, when the statement is reached.

use pellucid_tsql::ast::{ObjectName, TriggerPlace};
use rusqlite::OptionalExtension;

use super::Done;
use crate::message::{table, Message};
use crate::session::Session;
use crate::translate::{object_text, quoted};

/// Users and roles that every database has.
const FIXED: [&str; 14] = [
    "db_accessadmin",
    "db_backupoperator",
    "db_datareader",
    "db_datawriter",
    "db_ddladmin",
    "db_denydatareader",
    "db_denydatawriter",
    "db_owner",
    "db_securityadmin",
    "dbo",
    "guest",
    "INFORMATION_SCHEMA",
    "public",
    "sys",
];
/// Roles that every server has.
const FIXED_OF_SERVER: [&str; 9] = [
    "bulkadmin",
    "dbcreator",
    "diskadmin",
    "processadmin",
    "public",
    "securityadmin",
    "serveradmin",
    "setupadmin",
    "sysadmin",
];

impl Session {
    pub(super) fn drop_absent(
        &mut self,
        what: &str,
        if_exists: bool,
        names: &[ObjectName],
        on: Option<&TriggerPlace>,
    ) -> Done {
        for name in names {
            let shown = name.object.as_str();
            let fixed: &[&str] = match what {
                "USER" | "ROLE" => &FIXED,
                "SERVER ROLE" => &FIXED_OF_SERVER,
                _ => &[],
            };
            let kind = what.to_lowercase();
            if fixed.iter().any(|fixed| fixed.eq_ignore_ascii_case(shown)) {
                return Err(Message::of(table::CANNOT_DROP_FIXED, [&kind, &shown]).into());
            }
            // SQLite has triggers, which a program has made.
            if what == "TRIGGER" && on.is_none() && self.has_trigger(None, Some(shown))? {
                return Err(Message::unsupported("DROP TRIGGER of a trigger of SQLite's").into());
            }
            if if_exists {
                continue;
            }
            return Err(match what {
                "TYPE" => Message::of(table::UNKNOWN_TYPE, [&object_text(name)]),
                "SEQUENCE" => Message::cannot_drop("sequence object", &object_text(name)),
                "AGGREGATE" | "DEFAULT" | "RULE" | "SYNONYM" | "TRIGGER" => {
                    Message::cannot_drop(&kind, &object_text(name))
                }
                _ => Message::does_not_exist("drop", &kind, shown),
            }
            .into());
        }
        Ok(())
    }

    pub(super) fn switch_triggers(
        &mut self,
        enable: bool,
        names: &[ObjectName],
        on: &TriggerPlace,
    ) -> Done {
        let place = match on {
            TriggerPlace::Object(table) => match self.find(table)? {
                Some((schema, sqlite, _)) => Some((schema, sqlite)),
                None => return Err(Message::unknown_target(&object_text(table)).into()),
            },
            TriggerPlace::Database | TriggerPlace::Server => None,
        };
        let verb = if enable { "ENABLE" } else { "DISABLE" };
        let refused = || Message::unsupported(format!("{verb} TRIGGER of a trigger of SQLite's"));
        if let (Some(place), []) = (&place, names) {
            return match self.has_trigger(Some(place), None)? {
                true => Err(refused().into()),
                false => Ok(()),
            };
        }
        // The first of them that is not there ends it, and none is.
        let Some(name) = names.first() else { return Ok(()) };
        match &place {
            Some(place) if self.has_trigger(Some(place), Some(name.object.as_str()))? => {
                Err(refused().into())
            }
            _ => Err(Message::unknown_target(&object_text(name)).into()),
        }
    }

    /// Whether SQLite has such a trigger: of a table, or in the current database.
    fn has_trigger(&self, table: Option<&(String, String)>, name: Option<&str>) -> Done<bool> {
        let schema = match table {
            Some((schema, _)) => schema.clone(),
            None if self.databases.current()?.is_system() => return Ok(false),
            None => self.databases.attach(&self.databases.current()?)?,
        };
        let sql = format!(
            "SELECT 1 FROM {}.sqlite_schema WHERE type = 'trigger' AND (?1 IS NULL OR tbl_name = ?1 COLLATE NOCASE) \
             AND (?2 IS NULL OR name = ?2 COLLATE NOCASE)",
            quoted(&schema)
        );
        let found = self.databases.connection.query_row(
            &sql,
            (table.map(|(_, sqlite)| sqlite), name),
            |_| Ok(()),
        );
        Ok(found.optional()?.is_some())
    }
}
