//! BEGIN, COMMIT, ROLLBACK, SAVE TRANSACTION.

use pellucid_tsql::ast::{Name, OrVariable, StringLiteral, TransactionStatement};

use super::Done;
use crate::message::{table, Message};
use crate::session::Session;
use crate::translate::quoted;

impl Session {
    pub(super) fn transaction(&mut self, statement: &TransactionStatement) -> Done {
        match statement {
            TransactionStatement::Begin { name, mark: _ } => {
                let name = self.transaction_name(name.as_ref())?;
                if self.transactions == 0 {
                    self.databases.connection.execute_batch("BEGIN")?;
                    self.savepoints = vec![name.unwrap_or_default()];
                }
                self.transactions += 1;
            }
            TransactionStatement::Commit { .. } => match self.transactions {
                0 => return Err(Message::of(table::COMMIT_WITHOUT_TRANSACTION, []).into()),
                1 => {
                    self.databases.connection.execute_batch("COMMIT")?;
                    self.transactions = 0;
                    self.savepoints.clear();
                }
                _ => self.transactions -= 1,
            },
            TransactionStatement::Rollback { name } => {
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
                        let savepoint = quoted(&format!("save {}", name.to_lowercase()));
                        self.databases
                            .connection
                            .execute_batch(&format!("ROLLBACK TO {savepoint}"))?;
                    }
                    _ => self.rollback_all(),
                }
            }
            TransactionStatement::Save { name } => {
                if self.transactions == 0 {
                    return Err(Message::save_without_transaction().into());
                }
                let name = self.transaction_name(Some(name))?.unwrap_or_default();
                let savepoint = quoted(&format!("save {}", name.to_lowercase()));
                self.databases.connection.execute_batch(&format!("SAVEPOINT {savepoint}"))?;
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

    /// ROLLBACK of everything.
    pub(super) fn rollback_all(&mut self) {
        if !self.databases.connection.is_autocommit() {
            // SQLite may have rolled back by itself.
            let _ = self.databases.connection.execute_batch("ROLLBACK");
        }
        self.transactions = 0;
        self.is_doomed = false;
        self.savepoints.clear();
        self.shared.set_transactions(0, false);
    }

    /// SQLite rolls back by itself where it cannot go on.
    pub(super) fn watch_transaction(&mut self) {
        if self.transactions > 0 && self.databases.connection.is_autocommit() {
            self.transactions = 0;
            self.is_doomed = false;
            self.savepoints.clear();
            self.shared.set_transactions(0, false);
        }
    }

    /// What is left of a batch that was cancelled, or of a transaction that cannot be committed: nothing.
    pub(crate) fn end_of_batch(&mut self) {
        if self.cancel.is_asked() {
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
