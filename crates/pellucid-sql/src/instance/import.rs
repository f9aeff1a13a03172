//! `msdb` out of a backup: its rows, and nothing else of it.
//!
//! A set that opens here was made by somebody who has a certificate of this keyring, and has whatever its maker put in: owners of
//! jobs, requests, triggers, tables of another form. So the set is restored to a working file, and from that the rows of the
//! tables that `msdb` has are read into them, in one transaction. What is no row of theirs, or reads as none, ends the restore
//! before anything has changed. Jobs are disabled, and what was asked for when the set was made is left out: nothing in a set says
//! who asks here.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::{make_all, own_uri, Instance, WAIT};
use crate::jobs::store;
use crate::message::{table, Message, Result};
use crate::translate::quoted;

/// What was asked for or under way when the set was made, and the agents of then.
const OF_THEN: [&str; 5] = [
    "pellucid_request",
    "pellucid_request_text",
    "pellucid_job_request",
    "pellucid_job_activity",
    "pellucid_agent_session",
];

/// Nothing that a file brings along runs by itself (<https://sqlite.org/security.html>).
pub(super) fn harden(msdb: &Connection) -> rusqlite::Result<()> {
    for (config, is_on) in [
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
    ] {
        msdb.set_db_config(config, is_on)?;
    }
    Ok(())
}

impl Instance {
    /// Puts the rows of the `msdb` in the file `from` into this one's place. Gives back how many jobs were enabled in it.
    ///
    /// # Errors
    /// SQLite's; 50008 for a file whose rows are not those of an `msdb`. Nothing has changed then.
    pub fn import_msdb(&self, from: &Path) -> Result<usize> {
        let source = Connection::open_with_flags(
            own_uri(from),
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI,
        )?;
        source.busy_timeout(WAIT)?;
        harden(&source)?;
        source.execute_batch("PRAGMA cell_size_check = ON; PRAGMA query_only = ON")?;
        let changed = Transaction::new_unchecked(&self.msdb, TransactionBehavior::Immediate)?;
        changed.execute("DELETE FROM sqlite_sequence", [])?;
        for name in tables()? {
            changed.execute(&format!("DELETE FROM {}", quoted(&name)), [])?;
            copy(&source, &changed, &name)?;
        }
        let sql = "SELECT count(*) FROM pellucid_job WHERE enabled IS NOT 0";
        let enabled: i64 = changed.query_row(sql, [], |row| row.get(0))?;
        changed.execute_batch(
            "DELETE FROM pellucid_job_request; DELETE FROM pellucid_job_activity;
             UPDATE pellucid_job SET enabled = 0;
             UPDATE pellucid_job_schedule SET next_run = NULL;
             DELETE FROM pellucid_job_schedule WHERE job_id NOT IN (SELECT job_id FROM pellucid_job)
               OR schedule_id NOT IN (SELECT schedule_id FROM pellucid_schedule);
             DELETE FROM pellucid_job_step WHERE job_id NOT IN (SELECT job_id FROM pellucid_job)",
        )?;
        make_all(&changed)?;
        self.reads()?;
        changed.commit()?;
        Ok(usize::try_from(enabled).unwrap_or(0))
    }

    /// Reads all that statements find names, settings and jobs by.
    fn reads(&self) -> Result<()> {
        for known in self.databases()? {
            self.modules(&known)?;
        }
        self.options()?;
        self.pending_keys()?;
        let msdb = &self.msdb;
        let mut ids = msdb.prepare("SELECT job_id FROM pellucid_job")?;
        let ids = ids.query_map([], |row| row.get(0))?;
        for id in ids.collect::<rusqlite::Result<Vec<String>>>()? {
            let Some(job) = store::job_of(msdb, &id)? else { continue };
            for schedule in store::schedules(msdb, &job)? {
                store::next_from_now(&store::schedule_of(msdb, schedule)?);
            }
        }
        Ok(())
    }
}

/// The tables of an `msdb` whose rows are of a backup.
fn tables() -> Result<Vec<String>> {
    let own = Connection::open_in_memory()?;
    own.execute_batch(pellucid_backup::history::SCHEMA)?;
    make_all(&own)?;
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'";
    let mut names = own.prepare(sql)?;
    let names = names.query_map([], |row| row.get(0))?;
    let names = names.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(names.into_iter().filter(|name| !OF_THEN.contains(&name.as_str())).collect())
}

/// Copies the columns that both have. A table that the source does not have was none when the set was made.
fn copy(source: &Connection, to: &Connection, name: &str) -> Result<()> {
    let columns = |of: &Connection| -> rusqlite::Result<Vec<(String, String)>> {
        let sql = "SELECT name, type FROM pragma_table_xinfo(?1) WHERE hidden = 0";
        let mut statement = of.prepare(sql)?;
        let rows = statement.query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let there = columns(source)?;
    let is_there = |column: &(String, String)| there.iter().any(|(name, _)| *name == column.0);
    let both: Vec<(String, String)> = columns(to)?.into_iter().filter(is_there).collect();
    if both.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = both.iter().map(|(column, _)| quoted(column)).collect();
    let (list, places) = (list.join(", "), vec!["?"; both.len()].join(", "));
    let mut read = source.prepare(&format!("SELECT {list} FROM main.{}", quoted(name)))?;
    let sql = format!("INSERT INTO {}({list}) VALUES ({places})", quoted(name));
    let mut write = to.prepare(&sql)?;
    let mut rows = read.query([])?;
    while let Some(row) = rows.next()? {
        let mut values = Vec::with_capacity(both.len());
        for (at, (column, declared)) in both.iter().enumerate() {
            let value: Value = row.get(at)?;
            let fits = match (&value, declared.as_str()) {
                (Value::Null, _) | (_, "NUMERIC") => true,
                (Value::Integer(_), kind) => matches!(kind, "INTEGER" | "REAL"),
                (Value::Real(_), kind) => kind == "REAL",
                (Value::Text(_), kind) => kind == "TEXT",
                (Value::Blob(_), _) => false,
            };
            if !fits {
                return Err(Message::of(table::NOT_AN_MSDB, [&name, &column.as_str()]));
            }
            values.push(value);
        }
        write.execute(rusqlite::params_from_iter(values))?;
    }
    Ok(())
}
