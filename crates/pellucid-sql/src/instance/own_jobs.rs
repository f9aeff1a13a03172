//! Jobs run in the `msdb` in which they were made or enabled, and in no other one.
//!
//! `msdb` says who owns a job and when it runs, and an agent believes it. Its file opens with the history's key alone, which no
//! maker of media has. But RESTORE puts under that key what a set has, and whoever has a certificate that opens here can make a
//! set with anything in it. So `msdb` names the file that it is in, by its file id: a restored file has a new one, which the set
//! cannot name. Where they differ, the file is taken in before anything else is done with it, in one transaction. What could
//! change or hide a row by itself goes, the tables of jobs get their own form, all jobs are disabled, and what was asked for
//! is forgotten.

use std::path::Path;

use pellucid::hash::hex;
use pellucid_backup::history::FILE;
use pellucid_host::code::note;
use pellucid_host::ffi;
use pellucid_vfs::pins::Expectation;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::{is_read_only, make_all, Instance};
use crate::message::{table, Message, Result};
use crate::translate::quoted;

const SETTING: &str = "jobs are of";
/// Tables of what was asked for, or was under way, when a backup was made.
const OF_THEN: [&str; 4] =
    ["pellucid_request", "pellucid_request_text", "pellucid_job_request", "pellucid_job_activity"];

impl Instance {
    /// Whether the jobs of `msdb` are this instance's.
    ///
    /// # Errors
    /// SQLite's; that the keyring cannot be read.
    pub fn owns_jobs(&self) -> Result<bool> {
        owns(&self.home, &self.msdb)
    }

    /// Disables the jobs of an `msdb` that took the place of another one.
    ///
    /// # Errors
    /// As [`Instance::owns_jobs`].
    pub fn take_in(&self) -> Result<()> {
        take_in(&self.home, &self.msdb)
    }
}

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

fn owns(home: &Path, msdb: &Connection) -> Result<bool> {
    let Some(file) = file_of(home)? else { return Ok(false) };
    let there = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'pellucid_setting'";
    if msdb.query_row(there, [], |_| Ok(())).optional()?.is_none() {
        return Ok(false);
    }
    let sql = "SELECT value FROM pellucid_setting WHERE name = ?1";
    let named: Option<String> = msdb.query_row(sql, [SETTING], |row| row.get(0)).optional()?;
    Ok(named.is_some_and(|named| named == file))
}

/// Makes an `msdb` this instance's if it is not yet; its jobs are disabled then.
pub(super) fn take_in(home: &Path, msdb: &Connection) -> Result<()> {
    if owns(home, msdb)? {
        return Ok(());
    }
    // No restore takes the file's place while the transaction is open.
    let changed = match Transaction::new_unchecked(msdb, TransactionBehavior::Immediate) {
        // No agent runs what it cannot disable.
        Err(error) if is_read_only(&error) => return Ok(()),
        begun => begun?,
    };
    // Another process may have been faster.
    if owns(home, &changed)? {
        return Ok(());
    }
    drop_strangers(&changed)?;
    restore_form(&changed)?;
    make_all(&changed)?;
    for gone in OF_THEN {
        changed.execute(&format!("DELETE FROM {gone}"), [])?;
    }
    let jobs = changed.execute("UPDATE pellucid_job SET enabled = 0 WHERE enabled <> 0", [])?;
    // Whoever enables one has its next time found.
    changed.execute_batch(
        "UPDATE pellucid_job_schedule SET next_run = NULL;
         DELETE FROM pellucid_job_schedule WHERE job_id NOT IN (SELECT job_id FROM pellucid_job)
           OR schedule_id NOT IN (SELECT schedule_id FROM pellucid_schedule)",
    )?;
    let is_any = "SELECT EXISTS (SELECT 1 FROM pellucid_job WHERE enabled IS NOT 0)";
    if changed.query_row(is_any, [], |row| row.get(0))? {
        return Err(Message::of(table::MSDB_NOT_TAKEN_IN, []));
    }
    let sql = "INSERT INTO pellucid_setting(name, value) VALUES (?1, ?2) \
               ON CONFLICT(name) DO UPDATE SET value = excluded.value";
    changed.execute(sql, (SETTING, file_of(home)?.unwrap_or_default()))?;
    changed.commit()?;
    if jobs > 0 {
        let told = format!(
            "another msdb than before: its enabled jobs, {jobs}, are disabled; look at them, and enable by sp_update_job what is to \
             run here"
        );
        note(ffi::NOTICE, &home.join(FILE), &told);
    }
    Ok(())
}

/// Drops what could change or hide rows: triggers, views, virtual tables, indexes that `msdb` does not have.
fn drop_strangers(msdb: &Connection) -> Result<()> {
    let own = fresh()?;
    let sql = "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view') OR (type = 'table' AND rootpage = 0) \
               OR (type = 'index' AND sql IS NOT NULL)";
    let mut statement = msdb.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    for (kind, name, sql) in rows.collect::<rusqlite::Result<Vec<(String, String, String)>>>()? {
        if kind != "index" || text_of(&own, &name)?.as_ref() != Some(&sql) {
            // A view takes its triggers along.
            msdb.execute_batch(&format!("DROP {kind} IF EXISTS {}", quoted(&name)))?;
        }
    }
    Ok(())
}

/// Gives the tables that decide which jobs run their own form, with the rows that fit.
fn restore_form(msdb: &Connection) -> Result<()> {
    let own = fresh()?;
    let mut names = own.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name GLOB 'pellucid_job*' OR name GLOB 'pellucid_schedule' \
         OR name GLOB 'pellucid_request*' OR name IN ('pellucid_setting', 'pellucid_agent_session', 'pellucid_operator'))",
    )?;
    let names = names.query_map([], |row| row.get(0))?;
    for name in names.collect::<rusqlite::Result<Vec<String>>>()? {
        let (Some(is), Some(wanted)) = (text_of(msdb, &name)?, text_of(&own, &name)?) else {
            continue;
        };
        if is == wanted {
            continue;
        }
        let columns = |of: &Connection| -> rusqlite::Result<Vec<String>> {
            let sql = "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0";
            let mut statement = of.prepare(sql)?;
            let rows = statement.query_map([&name], |row| row.get(0))?;
            rows.collect()
        };
        let there = columns(msdb)?;
        let both = columns(&own)?.into_iter().filter(|column| there.contains(column));
        let both: Vec<String> = both.map(|column| quoted(&column)).collect();
        let (table, list) = (quoted(&name), both.join(", "));
        let rows = format!("SELECT {} FROM {table}", if both.is_empty() { "1" } else { &list });
        msdb.execute_batch(&format!(
            "CREATE TEMP TABLE \"rows of before\" AS {rows}; DROP TABLE {table}; {wanted}"
        ))?;
        if !both.is_empty() {
            let back = format!(
                "INSERT OR IGNORE INTO {table}({list}) SELECT {list} FROM temp.\"rows of before\""
            );
            msdb.execute_batch(&back)?;
        }
        msdb.execute_batch("DROP TABLE temp.\"rows of before\"")?;
    }
    Ok(())
}

/// What `msdb` is made with.
fn fresh() -> Result<Connection> {
    let own = Connection::open_in_memory()?;
    own.execute_batch(pellucid_backup::history::SCHEMA)?;
    make_all(&own)?;
    Ok(own)
}

fn text_of(msdb: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT sql FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE";
    msdb.query_row(sql, [name], |row| row.get(0)).optional().map(Option::flatten)
}

/// The file id of `msdb`, by the keyring. None is no file's.
fn file_of(home: &Path) -> Result<Option<String>> {
    let pins = Expectation::at(&home.join(FILE))?.pins()?;
    let first = pins.first().map(|pin| pin.file_id);
    let is_one = pins.iter().all(|pin| Some(pin.file_id) == first);
    Ok(first.filter(|_| is_one).map(|id| hex(&id)))
}
