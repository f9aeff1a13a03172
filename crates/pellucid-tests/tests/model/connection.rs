//! A connection, by SQLite's own calls: what it answers, down to types, codes and counters.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr::{null, null_mut};

use rusqlite::ffi;

/// One value as SQLite returned it; a real by its bits, so that it can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(u64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

/// All that a step shows of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Extended result code, `SQLITE_OK` for success.
    pub code: c_int,
    pub message: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    pub counters: Counters,
}

/// What the connection says of itself after a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    pub changes: i64,
    pub total_changes: i64,
    pub last_insert_rowid: i64,
    pub autocommit: bool,
    /// `sqlite3_txn_state`: none, read, write.
    pub transaction: c_int,
}

impl Outcome {
    /// A step that was not possible on either side, such as one on a connection that is not open.
    pub fn skipped(why: &str) -> Self {
        Self { code: -1, message: why.to_owned(), ..Self::default() }
    }

    pub fn is_ok(&self) -> bool {
        self.code == ffi::SQLITE_OK
    }

    pub fn primary(&self) -> c_int {
        if self.code < 0 {
            self.code
        } else {
            self.code & 0xff
        }
    }
}

pub struct Connection {
    db: *mut ffi::sqlite3,
    cursor: *mut ffi::sqlite3_stmt,
}

/// Operations of SQLite's virtual machine after which a statement is interrupted: shrinking makes some
/// that have no end.
const MOST_OPERATIONS: u32 = 300_000;

/// A backup under way; ended before either connection closes.
pub struct Backup {
    backup: *mut ffi::sqlite3_backup,
    pub from: usize,
}

fn c_text(text: &str) -> CString {
    CString::new(text).unwrap()
}

impl Connection {
    /// Opens `uri`; the connection is there even if that fails, as with SQLite.
    pub fn open(uri: &str) -> (Self, Outcome) {
        let mut db = null_mut();
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_URI;
        // SAFETY: terminated text, and a place for the connection.
        let code = unsafe {
            let code = ffi::sqlite3_open_v2(c_text(uri).as_ptr(), &mut db, flags, null());
            ffi::sqlite3_extended_result_codes(db, 1);
            code
        };
        let connection = Self { db, cursor: null_mut() };
        connection.interrupt_after(MOST_OPERATIONS);
        let outcome = connection.told(code, Vec::new());
        (connection, outcome)
    }

    /// The outcome of a call that answered `code`.
    pub fn told(&self, code: c_int, rows: Vec<Vec<Value>>) -> Outcome {
        let bad = code != ffi::SQLITE_OK;
        Outcome {
            code,
            message: if bad { self.message() } else { String::new() },
            rows,
            ..self.now()
        }
    }

    /// The code of the last call that failed, for calls that give none themselves.
    pub fn last_code(&self) -> c_int {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_extended_errcode(self.db) }
    }

    pub fn is_in_transaction(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe {
            ffi::sqlite3_get_autocommit(self.db) == 0
                || ffi::sqlite3_txn_state(self.db, null()) != ffi::SQLITE_TXN_NONE
        }
    }

    fn message(&self) -> String {
        // SAFETY: the message is terminated and copied before the next call.
        unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(self.db)) }.to_string_lossy().into_owned()
    }

    fn now(&self) -> Outcome {
        // SAFETY: the connection is open.
        let counters = unsafe {
            Counters {
                changes: ffi::sqlite3_changes64(self.db),
                total_changes: ffi::sqlite3_total_changes64(self.db),
                last_insert_rowid: ffi::sqlite3_last_insert_rowid(self.db),
                autocommit: ffi::sqlite3_get_autocommit(self.db) != 0,
                transaction: ffi::sqlite3_txn_state(self.db, null()),
            }
        };
        Outcome { counters, ..Outcome::default() }
    }

    fn prepare(&self, sql: &str) -> Result<*mut ffi::sqlite3_stmt, Outcome> {
        let mut statement = null_mut();
        // SAFETY: terminated text; the place is for the statement.
        let code = unsafe {
            ffi::sqlite3_prepare_v2(self.db, c_text(sql).as_ptr(), -1, &mut statement, null_mut())
        };
        match code {
            ffi::SQLITE_OK => Ok(statement),
            code => Err(self.told(code, Vec::new())),
        }
    }

    /// Steps at most `most` rows; whether the statement is done.
    fn step(&self, statement: *mut ffi::sqlite3_stmt, most: u32) -> (Outcome, bool) {
        let mut rows = Vec::new();
        let mut code = ffi::SQLITE_ROW;
        while code == ffi::SQLITE_ROW && rows.len() < most as usize {
            // SAFETY: a statement that was prepared and not ended; null does nothing but answer MISUSE.
            code = unsafe { ffi::sqlite3_step(statement) };
            if code == ffi::SQLITE_ROW {
                rows.push(row(statement));
            }
        }
        match code {
            ffi::SQLITE_ROW => (self.told(ffi::SQLITE_OK, rows), false),
            ffi::SQLITE_DONE => (self.told(ffi::SQLITE_OK, rows), true),
            code => (self.told(code, rows), true),
        }
    }

    /// Runs a statement to its end.
    pub fn run(&self, sql: &str) -> Outcome {
        let statement = match self.prepare(sql) {
            Ok(statement) => statement,
            Err(outcome) => return outcome,
        };
        let (mut outcome, _) = self.step(statement, u32::MAX);
        outcome.columns = columns(statement);
        // SAFETY: the statement is this function's.
        unsafe { ffi::sqlite3_finalize(statement) };
        // The end of a statement may be the end of its transaction.
        outcome.counters = self.now().counters;
        outcome
    }

    /// Runs a statement that is interrupted after `after` operations.
    pub fn run_interrupted(&self, sql: &str, after: u32) -> Outcome {
        self.interrupt_after(after);
        let outcome = self.run(sql);
        self.interrupt_after(MOST_OPERATIONS);
        outcome
    }

    fn interrupt_after(&self, operations: u32) {
        unsafe extern "C" fn stop(_: *mut c_void) -> c_int {
            1
        }
        // SAFETY: the connection is open; the handler lives for ever and needs no data.
        unsafe {
            ffi::sqlite3_progress_handler(self.db, operations as c_int, Some(stop), null_mut());
        }
    }

    /// Begins a query and reads its first row.
    pub fn begin_cursor(&mut self, sql: &str) -> Outcome {
        self.end_cursor();
        match self.prepare(sql) {
            Ok(statement) => {
                self.cursor = statement;
                let columns = columns(statement);
                Outcome { columns, ..self.fetch(1) }
            }
            Err(outcome) => outcome,
        }
    }

    pub fn fetch(&mut self, rows: u32) -> Outcome {
        if self.cursor.is_null() {
            return Outcome::skipped("no query is open");
        }
        let (mut outcome, done) = self.step(self.cursor, rows);
        if done {
            self.end_cursor();
            outcome.counters = self.now().counters;
        }
        outcome
    }

    pub fn end_cursor(&mut self) -> Outcome {
        // SAFETY: the statement is this connection's; null is allowed.
        unsafe { ffi::sqlite3_finalize(self.cursor) };
        self.cursor = null_mut();
        self.now()
    }

    /// Reads part of column `c` of a row, or overwrites it with bytes made of its place.
    pub fn blob(
        &self,
        schema: &str,
        table: &str,
        row: i64,
        part: (u32, u32),
        write: bool,
    ) -> Outcome {
        let (schema, table) = (c_text(schema), c_text(table));
        let (offset, length) = (part.0 as c_int, part.1 as c_int);
        let mut blob = null_mut();
        let mut bytes: Vec<u8> = (0..part.1).map(|i| ((i + part.0) % 251) as u8).collect();
        // SAFETY: terminated names; the buffer has `length` bytes; the handle is closed in any case.
        unsafe {
            let (db, names) = (self.db, (schema.as_ptr(), table.as_ptr()));
            let flags = c_int::from(write);
            let mut code =
                ffi::sqlite3_blob_open(db, names.0, names.1, c"c".as_ptr(), row, flags, &mut blob);
            let mut outcome = self.told(code, Vec::new());
            if code == ffi::SQLITE_OK {
                let size = i64::from(ffi::sqlite3_blob_bytes(blob));
                code = match write {
                    true => ffi::sqlite3_blob_write(blob, bytes.as_ptr().cast(), length, offset),
                    false => {
                        ffi::sqlite3_blob_read(blob, bytes.as_mut_ptr().cast(), length, offset)
                    }
                };
                outcome = self.told(code, vec![vec![Value::Integer(size), Value::Blob(bytes)]]);
            }
            let closed = ffi::sqlite3_blob_close(blob);
            outcome.counters = self.now().counters;
            match closed {
                ffi::SQLITE_OK => outcome,
                code => self.told(code, Vec::new()),
            }
        }
    }

    /// The bytes of a whole database; none if SQLite gives none.
    pub fn serialize(&self, schema: &str) -> Option<Vec<u8>> {
        let mut size = 0;
        // SAFETY: terminated name; what SQLite gives is `size` bytes and freed once.
        unsafe {
            let bytes = ffi::sqlite3_serialize(self.db, c_text(schema).as_ptr(), &mut size, 0);
            if bytes.is_null() {
                return None;
            }
            let copy = std::slice::from_raw_parts(bytes, size as usize).to_vec();
            ffi::sqlite3_free(bytes.cast());
            Some(copy)
        }
    }

    /// Leaves `bytes` of each page of a new database unused.
    pub fn reserve(&self, schema: &str, bytes: c_int) {
        let mut argument = bytes;
        let operation = ffi::SQLITE_FCNTL_RESERVE_BYTES;
        // SAFETY: the operation takes an `int *`.
        unsafe {
            let argument = std::ptr::addr_of_mut!(argument).cast();
            ffi::sqlite3_file_control(self.db, c_text(schema).as_ptr(), operation, argument);
        }
    }

    /// Begins a backup of `source`'s schema into a schema of this connection.
    pub fn begin_backup(
        &self,
        names: (&str, &str),
        source: &Self,
        from: usize,
    ) -> (Option<Backup>, Outcome) {
        let (to, of) = (c_text(names.0), c_text(names.1));
        // SAFETY: both connections are open and outlive the backup, which the world sees to.
        let backup =
            unsafe { ffi::sqlite3_backup_init(self.db, to.as_ptr(), source.db, of.as_ptr()) };
        if backup.is_null() {
            return (None, self.told(self.last_code(), Vec::new()));
        }
        (Some(Backup { backup, from }), self.now())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end_cursor();
        // SAFETY: nothing of the connection is left open; the world ended its backups.
        unsafe { ffi::sqlite3_close(self.db) };
    }
}

impl Backup {
    /// Copies pages; rows: what is left, and of how many.
    pub fn copy(&self, pages: c_int) -> Outcome {
        // SAFETY: the backup is under way.
        unsafe {
            let code = ffi::sqlite3_backup_step(self.backup, pages);
            let counts = [
                ffi::sqlite3_backup_remaining(self.backup),
                ffi::sqlite3_backup_pagecount(self.backup),
            ];
            let row = counts.map(|count| Value::Integer(count.into())).to_vec();
            Outcome { code, rows: vec![row], ..Outcome::default() }
        }
    }

    pub fn finish(self) -> c_int {
        // SAFETY: the backup is under way, and this is its end.
        unsafe { ffi::sqlite3_backup_finish(self.backup) }
    }
}

fn columns(statement: *mut ffi::sqlite3_stmt) -> Vec<String> {
    // SAFETY: a prepared statement, or null, which has no columns; names are terminated.
    unsafe {
        (0..ffi::sqlite3_column_count(statement))
            .map(|n| CStr::from_ptr(ffi::sqlite3_column_name(statement, n)))
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }
}

fn row(statement: *mut ffi::sqlite3_stmt) -> Vec<Value> {
    // SAFETY: the statement stands on a row; what a value points to is copied at once.
    unsafe {
        let bytes = |n: c_int, from: *const c_char| {
            let length = ffi::sqlite3_column_bytes(statement, n) as usize;
            match length {
                0 => Vec::new(),
                _ => std::slice::from_raw_parts(from.cast::<u8>(), length).to_vec(),
            }
        };
        (0..ffi::sqlite3_column_count(statement))
            .map(|n| match ffi::sqlite3_column_type(statement, n) {
                ffi::SQLITE_INTEGER => Value::Integer(ffi::sqlite3_column_int64(statement, n)),
                ffi::SQLITE_FLOAT => {
                    Value::Real(ffi::sqlite3_column_double(statement, n).to_bits())
                }
                ffi::SQLITE_TEXT => {
                    Value::Text(bytes(n, ffi::sqlite3_column_text(statement, n).cast()))
                }
                ffi::SQLITE_BLOB => {
                    Value::Blob(bytes(n, ffi::sqlite3_column_blob(statement, n).cast()))
                }
                _ => Value::Null,
            })
            .collect()
    }
}
