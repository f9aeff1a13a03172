//! What `sys.dm_exec_requests` shows of a backup or restore, to every session of the instance.

use std::time::{Duration, Instant};

use crate::instance::Instance;
use crate::session::Shared;

/// How often it is told how far it is.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// A statement that says how far it is; its row goes when it ends.
pub(super) struct Request<'i> {
    instance: &'i Instance,
    session: i64,
    begun: Instant,
    told: Instant,
}

impl<'i> Request<'i> {
    /// Writes the row of a statement that begins.
    pub fn begin(
        instance: &'i Instance,
        shared: &Shared,
        command: &str,
        database: &str,
        statement: &str,
    ) -> Self {
        let session = shared.session_id();
        // Nobody waits for it: a session that cannot tell goes on.
        let _ = instance.msdb().execute(
            "INSERT OR REPLACE INTO pellucid_request(pid, started, session_id, command, start_time, database_name) \
             VALUES (?1, ?2, ?3, ?4, strftime('%Y-%m-%d %H:%M:%f', 'now'), ?5)",
            (std::process::id(), began(), session, command, database),
        );
        let _ = instance.msdb().execute(
            "INSERT OR REPLACE INTO pellucid_request_text(pid, started, session_id, statement) VALUES (?1, ?2, ?3, ?4)",
            (std::process::id(), began(), session, statement),
        );
        let now = Instant::now();
        Self { instance, session, begun: now, told: now }
    }

    /// Writes how far the statement is, twice a second at most.
    pub fn progress(&mut self, percent: f64) {
        if self.told.elapsed() < TELL_EVERY {
            return;
        }
        self.told = Instant::now();
        let left = (percent > 0.5)
            .then(|| self.begun.elapsed().as_millis() as f64 * (100.0 - percent) / percent)
            .map(|left| left as i64);
        let _ = self.instance.msdb().execute(
            "UPDATE pellucid_request SET percent_complete = ?3, estimated_ms = ?4 WHERE pid = ?1 AND session_id = ?2",
            (std::process::id(), self.session, percent, left),
        );
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        for table in ["pellucid_request", "pellucid_request_text"] {
            let _ = self.instance.msdb().execute(
                &format!("DELETE FROM {table} WHERE pid = ?1 AND session_id = ?2"),
                (std::process::id(), self.session),
            );
        }
    }
}

/// When this process began, so that another one of its number is told from it.
fn began() -> i64 {
    i64::try_from(pellucid_keyring::ProcessId::own().began).unwrap_or(0)
}
