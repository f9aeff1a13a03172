//! BEGIN, COMMIT, ROLLBACK, SAVE TRANSACTION.

use pellucid::log_archive::MOST_DESCRIPTION_CHARACTERS;
use pellucid::media::MOST_MARK_CHARACTERS;
use pellucid_tsql::ast::{Name, OrVariable, StringLiteral, TransactionStatement};

use super::pending::savepoint_name;
use super::Done;
use crate::message::{table, Message};
use crate::session::Session;

impl Session {
    pub(super) fn transaction(&mut self, statement: &TransactionStatement) -> Done {
        match statement {
            TransactionStatement::Begin { name, mark } => {
                let name = self.transaction_name(name.as_ref())?;
                if self.transactions == 0 {
                    self.databases.connection.execute_batch("BEGIN")?;
                    self.savepoints = vec![name.clone().unwrap_or_default()];
                    self.mark = None;
                }
                self.transactions += 1;
                match (mark, name) {
                    (Some(_), Some(_)) if self.mark.is_some() => {
                        self.inform(Message::of(table::MARK_OF_ANOTHER, []));
                    }
                    (Some(description), Some(name)) => {
                        let about = description.as_ref().map(|text| text.text.as_str());
                        self.mark = Some((name, about.unwrap_or_default().to_owned()));
                    }
                    _ => {}
                }
            }
            TransactionStatement::Commit { .. } => match self.transactions {
                _ if !self.may_commit() => {
                    return Err(Message::of(table::COMMIT_IN_INSERT_EXEC, []).into());
                }
                0 => return Err(Message::of(table::COMMIT_WITHOUT_TRANSACTION, []).into()),
                1 => {
                    self.set_mark();
                    self.databases.connection.execute_batch("COMMIT")?;
                    self.transactions = 0;
                    self.savepoints.clear();
                    self.shared.set_transactions(0, self.is_doomed);
                    self.commit_msdb()?;
                }
                _ => self.transactions -= 1,
            },
            TransactionStatement::Rollback { name } => {
                if self.kept.is_some() {
                    return Err(Message::of(table::ROLLBACK_IN_INSERT_EXEC, []).into());
                }
                let name = self.transaction_name(name.as_ref())?;
                if self.transactions == 0 {
                    return Err(Message::of(table::ROLLBACK_WITHOUT_TRANSACTION, []).into());
                }
                match name {
                    Some(name)
                        if !self.savepoints.first().is_some_and(|first| same(first, &name)) =>
                    {
                        let found = self.savepoints.iter().skip(1).any(|other| same(other, &name));
                        if !found {
                            return Err(Message::of(table::UNKNOWN_SAVEPOINT, [&name]).into());
                        }
                        let savepoint = savepoint_name(&name);
                        self.databases
                            .connection
                            .execute_batch(&format!("ROLLBACK TO {savepoint}"))?;
                        self.roll_back_msdb_to(&name)?;
                    }
                    _ => self.rollback_all(),
                }
            }
            TransactionStatement::Save { name } => {
                if self.transactions == 0 {
                    return Err(Message::save_without_transaction().into());
                }
                let name = self.transaction_name(Some(name))?.unwrap_or_default();
                let savepoint = savepoint_name(&name);
                self.databases.connection.execute_batch(&format!("SAVEPOINT {savepoint}"))?;
                self.save_msdb(&name)?;
                self.savepoints.push(name);
            }
        }
        self.shared.set_transactions(self.transactions, self.is_doomed);
        Ok(())
    }

    fn transaction_name(&mut self, name: Option<&OrVariable<Name>>) -> Done<Option<String>> {
        Ok(match name {
            None => None,
            Some(OrVariable::Given(name)) => Some(name.as_str().to_owned()),
            Some(OrVariable::Variable(variable)) => {
                let text: OrVariable<StringLiteral> = OrVariable::Variable(variable.clone());
                Some(self.text(&text)?)
            }
        })
    }

    /// Gives the transaction that is about to be committed its mark. Like there, one that changes no database with a chain of log
    /// backups has none: nothing could find it.
    fn set_mark(&mut self) {
        let Some((name, description)) = self.mark.take() else { return };
        let shown = |text: &str, most: usize| -> String {
            let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { ' ' } else { c };
            text.chars().take(most).map(shown).collect()
        };
        let values =
            [shown(&name, MOST_MARK_CHARACTERS), shown(&description, MOST_DESCRIPTION_CHARACTERS)];
        let connection = &self.databases.connection;
        let _ = connection.query_row("SELECT pellucid_mark(?1, ?2)", values, |_| Ok(()));
    }

    /// ROLLBACK of everything.
    pub(super) fn rollback_all(&mut self) {
        if !self.databases.connection.is_autocommit() {
            // SQLite may have rolled back by itself.
            let _ = self.databases.connection.execute_batch("ROLLBACK");
        }
        self.roll_back_msdb();
        self.transactions = 0;
        self.is_doomed = false;
        self.savepoints.clear();
        self.shared.set_transactions(0, false);
        self.close_for_rollback();
    }

    /// SQLite rolls back by itself where it cannot go on.
    pub(super) fn watch_transaction(&mut self) {
        if self.transactions > 0 && self.databases.connection.is_autocommit() {
            self.roll_back_msdb();
            self.transactions = 0;
            self.is_doomed = false;
            self.savepoints.clear();
            self.shared.set_transactions(0, false);
            self.close_for_rollback();
        }
    }

    /// What is left of a batch that was cancelled, of a session that has ended, or of a transaction that cannot be committed:
    /// nothing.
    pub(crate) fn end_of_batch(&mut self) {
        if self.cancel.is_asked() || self.is_ended {
            self.rollback_all();
        }
        if self.is_doomed {
            self.rollback_all();
            self.tell(Message::of(table::DOOMED_AT_END, []), 1);
        }
    }
}

fn same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}
