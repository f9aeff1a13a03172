//! Messages of the server: number, severity, state and text, as `sys.messages` has them.
//!
//! A message that a function raises while SQLite executes goes through SQLite as text, marked, and is read back from
//! the error that SQLite gives ([`Message::from`]). The texts are the rows of `table`.

use pellucid_tsql::ParseError;

use crate::values::types::SqlType;
use crate::values::Error;

pub mod product;
mod server;
mod sqlite;
pub(crate) mod table;
mod texts;

pub(crate) use server::system_error;

/// Number of what SQL Server knows and Pellucid does not do.
pub const UNSUPPORTED: u32 = 50_001;
/// Number of what SQLite says and SQL Server has no message for.
pub const OF_SQLITE: u32 = 50_002;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Message {
    /// As in `sys.messages`; from 50000, one of our own.
    pub number: u32,
    /// 0 to 10 inform, 11 to 16 are the user's, 17 and more the server's.
    pub severity: u8,
    /// Where it was raised.
    pub state: u8,
    /// Its text, filled in.
    pub text: String,
}

/// Result with [`Message`].
pub type Result<T> = std::result::Result<T, Message>;

impl Message {
    /// A message with state 1.
    pub fn new(number: u32, severity: u8, text: impl Into<String>) -> Self {
        Self { number, severity, state: 1, text: text.into() }
    }

    /// A message of the table with its values, in the order of its places; state 1.
    pub(crate) fn of<const PLACES: usize>(
        row: table::Row<PLACES>,
        values: [&dyn std::fmt::Display; PLACES],
    ) -> Self {
        Self::new(row.number, row.severity, row.filled(values))
    }

    /// The message with another state.
    pub(crate) fn with_state(self, state: u8) -> Self {
        Self { state, ..self }
    }

    /// 50001: what is not done, by its name.
    pub fn unsupported(construct: impl std::fmt::Display) -> Self {
        Self::of(table::NOT_SUPPORTED, [&construct])
    }

    /// Whether the server closes the connection behind it.
    pub fn ends_session(&self) -> bool {
        self.severity >= 20
    }

    /// Whether it only informs.
    pub fn informs(&self) -> bool {
        self.severity <= 10
    }
}

impl From<Error> for Message {
    fn from(error: Error) -> Self {
        let (number, severity, state) = (error.number(), error.severity(), error.state());
        Self { number, severity, state, text: error.to_string() }
    }
}

impl From<ParseError> for Message {
    fn from(error: ParseError) -> Self {
        Self::new(error.number(), ParseError::SEVERITY, error.to_string())
    }
}

/// How messages call a type: without its size.
pub(crate) fn type_name(data_type: SqlType) -> &'static str {
    data_type.name()
}
