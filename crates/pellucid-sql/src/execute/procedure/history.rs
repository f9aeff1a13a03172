//! sp_delete_backuphistory, sp_delete_database_backuphistory, sp_readerrorlog, sp_enumerrorlogs

use super::Arguments;
use crate::execute::Done;
use crate::message::{table, Message};
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::moment::Moment;
use crate::values::types::SqlType;

/// What goes with the sets that are named; media go once nothing of them is left.
const FORGET: &str = "
    CREATE TEMP TABLE forgotten AS SELECT backup_set_id FROM backupset WHERE {};
    DELETE FROM restorefile WHERE restore_history_id IN (SELECT restore_history_id FROM restorehistory
      WHERE backup_set_id IN (SELECT backup_set_id FROM forgotten));
    DELETE FROM pellucid_restore WHERE restore_history_id IN (SELECT restore_history_id FROM restorehistory
      WHERE backup_set_id IN (SELECT backup_set_id FROM forgotten));
    DELETE FROM restorehistory WHERE backup_set_id IN (SELECT backup_set_id FROM forgotten);
    DELETE FROM backupfile WHERE backup_set_id IN (SELECT backup_set_id FROM forgotten);
    DELETE FROM pellucid_encryptor WHERE backup_set_id IN (SELECT backup_set_id FROM forgotten);
    DELETE FROM pellucid_gone WHERE backup_set_id IN (SELECT backup_set_id FROM forgotten);
    DELETE FROM pellucid_log WHERE backup_set_uuid IN (SELECT backup_set_uuid FROM backupset WHERE backup_set_id IN
      (SELECT backup_set_id FROM forgotten));
    DELETE FROM backupset WHERE backup_set_id IN (SELECT backup_set_id FROM forgotten);
    DELETE FROM backupmediafamily WHERE media_set_id NOT IN (SELECT media_set_id FROM backupset);
    DELETE FROM backupmediaset WHERE media_set_id NOT IN (SELECT media_set_id FROM backupset);
    DROP TABLE forgotten;";

impl Session {
    pub(super) fn sp_delete_backuphistory(&mut self, arguments: &Arguments<'_>) -> Done {
        let text = arguments.required(0)?;
        let oldest = Moment::parse(&text, 0).ok_or_else(Message::not_a_date)?;
        let oldest = oldest.to_iso(SqlType::DateTime2(6)).replace('T', " ");
        self.forget(&format!("backup_finish_date < '{oldest}'"))
    }

    pub(super) fn sp_delete_database_backuphistory(&mut self, arguments: &Arguments<'_>) -> Done {
        let name = arguments.required(0)?.replace('\'', "''");
        self.forget(&format!("database_name = '{name}' COLLATE NOCASE"))
    }

    fn forget(&mut self, which: &str) -> Done {
        self.change_msdb(|msdb| Ok(msdb.execute_batch(&FORGET.replace("{}", which))?))
    }

    /// The events of the instance; one log, which begins with the instance.
    pub(super) fn sp_readerrorlog(&mut self, arguments: &Arguments<'_>) -> Done {
        let columns = [
            ("LogDate", SqlType::DateTime),
            ("ProcessInfo", SqlType::nvarchar(50)),
            ("Text", SqlType::nvarchar(3998)),
        ];
        let number = arguments.integer(0)?.unwrap_or(0);
        let is_servers = arguments.integer(1)?.unwrap_or(SERVERS) == SERVERS;
        let wanted = [arguments.text(2)?, arguments.text(3)?];
        let date = |at: usize| -> Done<Option<Moment>> {
            match arguments.text(at)?.filter(|text| !text.trim().is_empty()) {
                Some(text) => Ok(Some(Moment::parse(&text, 0).ok_or_else(Message::not_a_date)?)),
                None => Ok(None),
            }
        };
        let (first, last) = (date(4)?, date(5)?);
        let is_descending =
            arguments.text(6)?.is_some_and(|order| order.trim().eq_ignore_ascii_case("desc"));
        let events = match (number, is_servers) {
            (0, true) => pellucid_keyring::read_events(self.databases.instance.home())?,
            _ => Vec::new(),
        };
        let mut rows = Vec::new();
        for event in &events {
            let lower = event.to_lowercase();
            if !wanted.iter().flatten().all(|word| lower.contains(&word.to_lowercase())) {
                continue;
            }
            let at = moment_of(event);
            let is_within = at.is_none_or(|at| {
                first.is_none_or(|first| at >= first) && last.is_none_or(|last| at <= last)
            });
            if is_within {
                let date = at.map_or(Value::Null, |at| Value::Text(at.to_iso(SqlType::DateTime)));
                rows.push(vec![date, Value::Text("Server".to_owned()), Value::Text(event.clone())]);
            }
        }
        if is_descending {
            rows.reverse();
        }
        self.give_rows(&columns, rows)
    }

    /// The events of a home are one chain, which nothing cuts: it goes on.
    pub(super) fn sp_cycle_errorlog(&mut self) -> Done {
        let told = "The log of events is one file here, and goes on: nothing of it is put away.";
        self.inform(Message::of(table::DBCC_ENDS, []));
        self.inform(Message::text(told));
        Ok(())
    }

    /// Logs are shipped by `pellucid`, not by jobs of SQL Server's.
    pub(super) fn sp_help_log_shipping_monitor(&mut self) -> Done {
        self.give_rows(&SHIPPED, Vec::new())
    }

    /// The logs that there are to be read: of the server one, of the agent none.
    pub(super) fn sp_enumerrorlogs(&mut self, arguments: &Arguments<'_>) -> Done {
        let columns = [
            ("Archive #", SqlType::Int),
            ("Date", SqlType::nvarchar(30)),
            ("Log File Size (Byte)", SqlType::BigInt),
        ];
        if arguments.integer(0)?.unwrap_or(SERVERS) != SERVERS {
            return self.give_rows(&columns, Vec::new());
        }
        let events = pellucid_keyring::read_events(self.databases.instance.home())?;
        let bytes: usize = events.iter().map(|event| event.len() + 1).sum();
        let date = events.iter().rev().find_map(|event| moment_of(event)).map(|at| {
            let ((year, month, day), (hour, minute, ..)) = (at.ymd(), at.hms());
            Value::Text(format!("{month:02}/{day:02}/{year:04}  {hour:02}:{minute:02}"))
        });
        let bytes = Value::Integer(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.give_rows(&columns, vec![vec![Value::Integer(0), date.unwrap_or(Value::Null), bytes]])
    }
}

/// Source: Microsoft's "sp_help_log_shipping_monitor".
const SHIPPED: [(&str, SqlType); 15] = [
    ("status", SqlType::Bit),
    ("is_primary", SqlType::Bit),
    ("server", SqlType::SYSNAME),
    ("database_name", SqlType::SYSNAME),
    ("time_since_last_backup", SqlType::Int),
    ("last_backup_file", SqlType::nvarchar(500)),
    ("backup_threshold", SqlType::Int),
    ("is_backup_alert_enabled", SqlType::Bit),
    ("time_since_last_copy", SqlType::Int),
    ("last_copied_file", SqlType::nvarchar(500)),
    ("time_since_last_restore", SqlType::Int),
    ("last_restored_file", SqlType::nvarchar(500)),
    ("last_restored_latency", SqlType::Int),
    ("restore_threshold", SqlType::Int),
    ("is_restore_alert_enabled", SqlType::Bit),
];

/// The server's log; 2 is the agent's.
const SERVERS: i64 = 1;

/// When an event was.
fn moment_of(event: &str) -> Option<Moment> {
    let (_, behind) = event.split_once("\"time\":\"")?;
    let (time, _) = behind.split_once('"')?;
    Moment::parse(time.trim_end_matches('Z'), 0)
}
