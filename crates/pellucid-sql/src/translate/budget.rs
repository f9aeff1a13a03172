//! What a translation may cost: an expression that is written twice, nested, doubles at each level.

use super::Work;
use crate::message::{table, Message, Result};

/// Expressions that are translated at most, those that are translated twice counted twice.
const NODES_MOST: u32 = 2_000_000;
/// Bytes of SQLite's text that repeat what is written elsewhere in the statement, at most.
const REPEATED_MOST: usize = 16 << 20;
/// Repeated at no cost: the name of a column.
const FREE: usize = 512;

/// What is spent so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    nodes: u32,
    repeated: usize,
}

impl Work<'_> {
    /// One more expression.
    ///
    /// # Errors
    /// 8623
    pub(super) fn visit(&mut self) -> Result<()> {
        self.budget.nodes += 1;
        match self.budget.nodes <= NODES_MOST {
            true => Ok(()),
            false => Err(too_complex()),
        }
    }

    /// So much text is about to be written once more than its expression is.
    ///
    /// # Errors
    /// 8623
    pub(super) fn repeat(&mut self, bytes: usize) -> Result<()> {
        if bytes > FREE {
            self.budget.repeated = self.budget.repeated.saturating_add(bytes);
        }
        match self.budget.repeated <= REPEATED_MOST {
            true => Ok(()),
            false => Err(too_complex()),
        }
    }
}

/// 8623
pub(super) fn too_complex() -> Message {
    Message::of(table::PLAN_TOO_LARGE, [])
}
