//! GOTO: labels of a batch, and the way to them.
//!
//! A label may stand in any block, loop or branch but in a TRY or CATCH that the GOTO is not in. Each is declared once.

use pellucid_tsql::ast::{Control, Name, Statement, StatementKind};

use super::{Done, Raised};
use crate::message::{table, Message};
use crate::session::Session;

/// Before anything is executed: each label is declared once, and each GOTO has one that it may go to.
pub(super) fn check(statements: &[Statement]) -> Done {
    let mut found = Found::default();
    found.look(statements, &mut Vec::new())?;
    for (name, line, scope) in &found.jumps {
        let label = name.as_str().to_lowercase();
        let at_line = |message: Message| Raised { line: Some(*line), ..message.into() };
        match found.labels.iter().find(|(other, _)| *other == label) {
            None => return Err(at_line(Message::of(table::UNKNOWN_LABEL, [&name.as_str()]))),
            Some((_, tries)) if !scope.starts_with(tries) => {
                return Err(at_line(Message::of(table::GOTO_INTO_TRY, [])))
            }
            Some(_) => {}
        }
    }
    Ok(())
}

#[derive(Default)]
struct Found {
    /// Each label in lower case, with the TRY and CATCH blocks around it.
    labels: Vec<(String, Vec<u32>)>,
    /// Each GOTO with its line, and the same.
    jumps: Vec<(Name, u32, Vec<u32>)>,
    blocks: u32,
}

impl Found {
    fn look<'s>(
        &mut self,
        statements: impl IntoIterator<Item = &'s Statement>,
        scope: &mut Vec<u32>,
    ) -> Done {
        for statement in statements {
            let StatementKind::Control(control) = &statement.kind else { continue };
            match control {
                Control::Label(name) => {
                    let label = name.as_str().to_lowercase();
                    if self.labels.iter().any(|(other, _)| *other == label) {
                        let message = Message::of(table::LABEL_TWICE, [&name.as_str()]);
                        return Err(Raised { line: Some(statement.line), ..message.into() });
                    }
                    self.labels.push((label, scope.clone()));
                }
                Control::Goto(name) => {
                    self.jumps.push((name.clone(), statement.line, scope.clone()))
                }
                Control::If { then, otherwise, .. } => {
                    self.look([&**then], scope)?;
                    self.look(otherwise.as_deref(), scope)?;
                }
                Control::While { body, .. } => self.look([&**body], scope)?,
                Control::Block(body) => self.look(body, scope)?,
                Control::Try { body, catch } => {
                    for block in [body, catch] {
                        self.blocks += 1;
                        scope.push(self.blocks);
                        let looked = self.look(block, scope);
                        scope.pop();
                        looked?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Session {
    /// The statement of a block with which a GOTO goes on: the label, or the one that has it inside.
    pub(super) fn sought_in(&self, statements: &[Statement]) -> Option<usize> {
        let label = self.label.as_deref()?;
        statements.iter().position(|statement| has(statement, label))
    }

    /// Whether a GOTO goes on in a statement.
    pub(super) fn seeks_within(&self, statement: &Statement) -> bool {
        self.label.as_deref().is_some_and(|label| has(statement, label))
    }
}

fn has(statement: &Statement, label: &str) -> bool {
    let StatementKind::Control(control) = &statement.kind else { return false };
    let any = |all: &[Statement]| all.iter().any(|inner| has(inner, label));
    match control {
        Control::Label(name) => name.as_str().to_lowercase() == label,
        Control::If { then, otherwise, .. } => {
            has(then, label) || otherwise.as_deref().is_some_and(|inner| has(inner, label))
        }
        Control::While { body, .. } => has(body, label),
        Control::Block(body) => any(body),
        Control::Try { body, catch } => any(body) || any(catch),
        _ => false,
    }
}
