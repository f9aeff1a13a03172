//! sp_delete_backuphistory, sp_delete_database_backuphistory, sp_readerrorlog

use super::Arguments;
use crate::execute::Done;
use crate::message::Message;
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
        let wanted = [arguments.text(2)?, arguments.text(3)?];
        let events = match number {
            0 => pellucid_keyring::read_events(self.databases.instance.home())?,
            _ => Vec::new(),
        };
        let shown = |event: &&String| {
            let lower = event.to_lowercase();
            wanted.iter().flatten().all(|word| lower.contains(&word.to_lowercase()))
        };
        let rows = events.iter().filter(shown).map(|event| {
            let (at, rest) = event.split_once(' ').unwrap_or(("", event));
            let at = at.trim_end_matches('Z');
            let date = Moment::parse(at, 0).map_or(Value::Null, |_| Value::Text(at.to_owned()));
            vec![date, Value::Text("Server".to_owned()), Value::Text(rest.to_owned())]
        });
        let rows = rows.collect();
        self.give_rows(&columns, rows)
    }
}
