//! The connection that a main database is attached to, as SQLite names it to the shim (`SQLITE_FCNTL_PDB`).

use std::ffi::{c_char, c_int};

use pellucid_host::api::Api;
use pellucid_host::ffi::{self, Connection};

use crate::newcomer::Connected;
use crate::registry;

/// The most databases that a connection has: `SQLITE_MAX_ATTACHED`, main and temp.
const MOST_DATABASES: c_int = 128;

/// Where a main database is attached. It is asked within SQLite's calls on that file only, in which SQLite holds the mutex of
/// the connection, a recursive one.
#[derive(Debug, Clone, Copy)]
pub struct Attached {
    name: *const c_char,
    /// SQLite's own pointer to the connection. Null until it was told.
    connection: *mut *mut Connection,
}

impl Attached {
    /// The database that SQLite opened under the name at `name`, of no connection yet.
    ///
    /// # Safety
    /// `name` is null or SQLite's, and lives until the file is closed.
    pub unsafe fn new(name: *const c_char) -> Self {
        Self { name, connection: std::ptr::null_mut() }
    }

    /// Notes the connection.
    ///
    /// # Safety
    /// `connection` is the argument of `SQLITE_FCNTL_PDB`.
    pub unsafe fn set(&mut self, connection: *mut *mut Connection) {
        self.connection = connection;
    }

    /// The name under which SQLite opened the file.
    pub fn name(&self) -> *const c_char {
        self.name
    }

    fn connection(&self) -> Option<*mut Connection> {
        // SAFETY: null or SQLite's pointer, by the contract of `set`.
        unsafe { self.connection.as_ref() }.copied().filter(|db| !db.is_null())
    }

    /// Reserves the room for tails in a new database: `SQLITE_FCNTL_RESERVE_BYTES` on the connection. This works for main,
    /// attached and `VACUUM INTO` databases alike. Called inside `xLock` of the database.
    pub fn set_reserve(&self) {
        let (Some(api), Some(db)) = (Api::get(), self.connection()) else { return };
        // SAFETY: inside a call of SQLite's, which holds the recursive mutex; the names live across the calls.
        unsafe {
            for n in 0..MOST_DATABASES {
                let Some(schema) = api.db_name(db, n) else { return };
                if api.db_filename()(db, schema.as_ptr()) == self.name {
                    let mut reserve = pellucid::unit::TAIL_BYTES as c_int;
                    let argument = std::ptr::addr_of_mut!(reserve).cast();
                    api.file_control()(db, schema.as_ptr(), ffi::FCNTL_RESERVE_BYTES, argument);
                    return;
                }
            }
        }
    }

    /// The databases of the connection, as far as they are of the shim.
    pub fn databases(&self) -> Connected {
        let mut found = Connected::default();
        let (Some(api), Some(db)) = (Api::get(), self.connection()) else { return found };
        // SAFETY: as in `set_reserve`.
        unsafe {
            for n in 0..MOST_DATABASES {
                let Some(schema) = api.db_name(db, n) else { break };
                let container = registry::address(api.db_filename()(db, schema.as_ptr()));
                if n == 0 {
                    found.main = container;
                }
                found.all.extend(container);
            }
            found.is_idle = api.writes_nothing(db);
        }
        found
    }

    /// The main database of a connection that goes on without the file being closed, because of a DETACH; within it `None` if
    /// that is not of the shim. `None` if the connection is closed.
    pub fn detached_from(&self) -> Option<Option<usize>> {
        let api = Api::get()?;
        let db = self.connection()?;
        // SAFETY: as in `set_reserve`. SQLite closes `main` first when it closes a connection, and has no name for it then.
        let main = unsafe { api.db_filename()(db, c"main".as_ptr()) };
        (!main.is_null() && main != self.name).then(|| registry::address(main))
    }
}
