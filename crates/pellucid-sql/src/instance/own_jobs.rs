//! Jobs run in the `msdb` in which they were made or enabled, and in no other one.
//!
//! `msdb` says who owns a job and when it runs, and an agent believes it. Whoever made a backup that opens here, by a shared
//! certificate, could have written anything into it. So `msdb` names the file that it is in, by its file id. A file that was
//! restored, or accepted in its place, is another one: before anything else is done with it, all its jobs are disabled and what
//! was asked for is forgotten, in one transaction. The keyring knows which file is expected; the name in `msdb` is nothing
//! that a maker of backups can foresee, because a restored file gets a new id.

use std::path::Path;

use pellucid::hash::hex;
use pellucid_backup::history::FILE;
use pellucid_host::code::note;
use pellucid_host::ffi;
use pellucid_vfs::pins::Expectation;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::{is_read_only, Instance};
use crate::jobs::reschedule_all;
use crate::message::Result;

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
    pub fn disown_jobs(&self) -> Result<()> {
        disown(&self.home, &self.msdb)
    }
}

fn owns(home: &Path, msdb: &Connection) -> Result<bool> {
    let Some(file) = file_of(home)? else { return Ok(false) };
    let sql = "SELECT value FROM pellucid_setting WHERE name = ?1";
    let named: Option<String> = msdb.query_row(sql, [SETTING], |row| row.get(0)).optional()?;
    Ok(named.is_some_and(|named| named == file))
}

/// Disables all jobs if they are another file's.
pub(super) fn disown(home: &Path, msdb: &Connection) -> Result<()> {
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
    for gone in OF_THEN {
        changed.execute(&format!("DELETE FROM {gone}"), [])?;
    }
    reschedule_all(&changed)?;
    let jobs = changed.execute("UPDATE pellucid_job SET enabled = 0 WHERE enabled", [])?;
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

/// The file id of `msdb`, by the keyring. None is no file's.
fn file_of(home: &Path) -> Result<Option<String>> {
    let pins = Expectation::at(&home.join(FILE))?.pins()?;
    let first = pins.first().map(|pin| pin.file_id);
    let is_one = pins.iter().all(|pin| Some(pin.file_id) == first);
    Ok(first.filter(|_| is_one).map(|id| hex(&id)))
}
