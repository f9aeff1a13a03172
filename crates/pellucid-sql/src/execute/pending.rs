//! Changes of `msdb` that belong to the session's transaction: they come and go with it.
//!
//! `msdb` has a connection of its own. It gets a transaction when a statement of a transaction first changes it, and that
//! ends behind the session's own. A crash between the two keeps the databases' changes and loses those of `msdb`.

use rusqlite::Connection;

use super::{Done, Raised};
use crate::session::Session;
use crate::translate::quoted;

/// What a statement's own changes are undone by.
const STATEMENT: &str = "\"statement\"";

impl Session {
    /// Changes `msdb`, all or nothing; within a transaction until that is committed.
    pub(super) fn change_msdb<T>(&mut self, work: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        let msdb = self.databases.instance.msdb();
        let is_alone = self.transactions == 0;
        let undo = || {
            // SQLite may have rolled back by itself.
            let _ = match is_alone {
                true => msdb.execute_batch("ROLLBACK"),
                false => {
                    msdb.execute_batch(&format!("ROLLBACK TO {STATEMENT}; RELEASE {STATEMENT}"))
                }
            };
        };
        if msdb.is_autocommit() {
            msdb.execute_batch("BEGIN IMMEDIATE")?;
            for savepoint in self.savepoints.iter().skip(1).filter(|_| !is_alone) {
                msdb.execute_batch(&format!("SAVEPOINT {}", savepoint_name(savepoint)))?;
            }
        }
        if !is_alone {
            msdb.execute_batch(&format!("SAVEPOINT {STATEMENT}"))?;
        }
        let done = work(msdb).and_then(|value| {
            let end = if is_alone { "COMMIT".to_owned() } else { format!("RELEASE {STATEMENT}") };
            msdb.execute_batch(&end).map(|()| value).map_err(Raised::from)
        });
        if done.is_err() {
            undo();
        }
        done
    }

    /// What the transaction has changed in `msdb` stays.
    pub(super) fn commit_msdb(&mut self) -> Done {
        let msdb = self.databases.instance.msdb();
        if msdb.is_autocommit() {
            return Ok(());
        }
        let done = msdb.execute_batch("COMMIT");
        if done.is_err() {
            self.roll_back_msdb();
        }
        Ok(done?)
    }

    /// None of it stays.
    pub(super) fn roll_back_msdb(&mut self) {
        let msdb = self.databases.instance.msdb();
        if !msdb.is_autocommit() {
            let _ = msdb.execute_batch("ROLLBACK");
        }
    }

    /// SAVE TRANSACTION
    pub(super) fn save_msdb(&mut self, name: &str) -> Done {
        self.if_changed(&format!("SAVEPOINT {}", savepoint_name(name)))
    }

    /// ROLLBACK to a savepoint.
    pub(super) fn roll_back_msdb_to(&mut self, name: &str) -> Done {
        self.if_changed(&format!("ROLLBACK TO {}", savepoint_name(name)))
    }

    fn if_changed(&mut self, statement: &str) -> Done {
        let msdb = self.databases.instance.msdb();
        if !msdb.is_autocommit() {
            msdb.execute_batch(statement)?;
        }
        Ok(())
    }
}

/// What SQLite calls a savepoint of a session.
pub(super) fn savepoint_name(name: &str) -> String {
    quoted(&format!("save {}", name.to_lowercase()))
}
