//! What `sp_configure` and the registry procedures set.

use rusqlite::OptionalExtension;

use super::options::{Setting, SETTINGS};
use super::Instance;
use crate::message::Result;

const DECLARED: &str = "database master key declared";

impl Instance {
    /// What is set under a name.
    ///
    /// # Errors
    /// SQLite's.
    pub fn text_setting(&self, name: &str) -> Result<Option<String>> {
        let sql = "SELECT value FROM pellucid_setting WHERE name = ?1";
        Ok(self.msdb.query_row(sql, [name], |row| row.get(0)).optional()?)
    }

    /// Whether there are settings whose names begin so.
    ///
    /// # Errors
    /// SQLite's.
    pub fn has_settings(&self, start: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM pellucid_setting WHERE substr(name, 1, length(?1)) = ?1 COLLATE NOCASE)";
        Ok(self.msdb.query_row(sql, [start], |row| row.get(0))?)
    }

    /// Sets it.
    ///
    /// # Errors
    /// SQLite's.
    pub fn set_text(&self, name: &str, value: &str) -> Result<()> {
        let sql = "INSERT INTO pellucid_setting(name, value) VALUES (?1, ?2) \
                   ON CONFLICT(name) DO UPDATE SET value = excluded.value";
        self.msdb.execute(sql, [name, value])?;
        Ok(())
    }

    /// Forgets it; whether it was there.
    ///
    /// # Errors
    /// SQLite's.
    pub fn forget_setting(&self, name: &str) -> Result<bool> {
        Ok(self.msdb.execute("DELETE FROM pellucid_setting WHERE name = ?1", [name])? > 0)
    }

    /// What an option of `sp_configure` was set to, and what is in use.
    ///
    /// # Errors
    /// SQLite's.
    pub fn configured(&self, setting: &Setting) -> Result<(i64, i64)> {
        let sql = "SELECT value, running FROM pellucid_setting WHERE name = ?1";
        let of = |text: Option<String>| {
            text.and_then(|text| text.parse().ok()).unwrap_or(setting.default)
        };
        let found = self.msdb.query_row(sql, [format!("config:{}", setting.name)], |row| {
            Ok((of(row.get(0)?), of(row.get(1)?)))
        });
        Ok(found.optional()?.unwrap_or((setting.default, setting.default)))
    }

    /// What is in use of an option.
    ///
    /// # Errors
    /// SQLite's.
    pub fn running(&self, name: &str) -> Result<i64> {
        match SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name)) {
            Some(setting) => Ok(self.configured(setting)?.1),
            None => Ok(0),
        }
    }

    /// Sets an option; in use after RECONFIGURE.
    ///
    /// # Errors
    /// SQLite's.
    pub fn configure(&self, setting: &Setting, value: i64) -> Result<()> {
        let sql = "INSERT INTO pellucid_setting(name, value) VALUES (?1, ?2) \
                   ON CONFLICT(name) DO UPDATE SET value = excluded.value";
        self.msdb.execute(sql, (format!("config:{}", setting.name), value.to_string()))?;
        Ok(())
    }

    /// RECONFIGURE
    ///
    /// # Errors
    /// SQLite's.
    pub fn reconfigure(&self) -> Result<()> {
        self.msdb.execute(
            "UPDATE pellucid_setting SET running = value WHERE name LIKE 'config:%'",
            [],
        )?;
        Ok(())
    }

    /// Whether somebody has made the database master key, by a statement or otherwise. One that was made only for `msdb`
    /// counts as none.
    ///
    /// # Errors
    /// SQLite's.
    pub fn is_master_key_declared(&self) -> Result<bool> {
        Ok(self.text_setting(DECLARED)?.as_deref() != Some("0"))
    }

    /// Notes whether it counts.
    ///
    /// # Errors
    /// SQLite's.
    pub fn set_master_key_declared(&self, declared: bool) -> Result<()> {
        self.set_text(DECLARED, if declared { "1" } else { "0" })
    }
}
