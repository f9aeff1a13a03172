//! A connection without databases, for values that no table has a part in.
//!
//! A procedure computes most of its values from variables. SQLite reads a statement again once anything has changed in the
//! connection that it was prepared on: a temporary table that was made, a database that was let go. Nothing changes in this one.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;

use super::{Databases, Shared};
use crate::message::Result;

/// Statements that are kept as SQLite has read them.
const STATEMENTS_MOST: usize = 512;

/// The connection.
pub(crate) struct Calculator(Connection);

impl Calculator {
    /// Opens it.
    ///
    /// # Errors
    /// As [`connect`].
    pub(super) fn open(load: &[PathBuf], shared: &Arc<Shared>) -> Result<Self> {
        let connection = connect(load, shared)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MOST);
        Ok(Self(connection))
    }

    /// Forgets the statements that were prepared.
    pub(super) fn forget(&self) {
        self.0.flush_prepared_statement_cache();
    }
}

impl Databases {
    /// Where a statement of SQLite's is executed that gives values.
    pub fn connection_for(&self, sql: &str) -> &Connection {
        match needs_no_table(sql) {
            true => &self.calculator.0,
            false => &self.connection,
        }
    }
}

/// Whether a statement reads no table, by itself or by a function of a script's: without FROM there is none.
fn needs_no_table(sql: &str) -> bool {
    !sql.contains("FROM") && !sql.contains("tsql_scripted")
}

/// A connection in memory with the functions of a session.
///
/// # Errors
/// SQLite's; those of an extension.
pub(super) fn connect(load: &[PathBuf], shared: &Arc<Shared>) -> Result<Connection> {
    let connection = Connection::open_in_memory()?;
    // Temporary tables and sorts have rows of sealed databases, and SQLite would spill them by the VFS of this connection, in clear.
    connection.execute_batch("PRAGMA temp_store = MEMORY")?;
    for extension in load {
        pellucid_files::trusted::check_extension(extension)?;
        pellucid_bundled::load(&connection, extension)?;
    }
    // After the extensions: what the session needs is its own.
    crate::functions::register(&connection, shared.clone())?;
    Ok(connection)
}
