//! A connection of the shim's own, over the host's function table.

use std::cell::Cell;
use std::ffi::{c_int, c_void, CStr, CString};
use std::path::Path;
use std::time::Duration;

use pellucid::{Error, Subject};

use crate::api::Api;
use crate::ffi;
use crate::ffi::{Connection, Context, File, Value};
use crate::patience::Patience;
use crate::statement::{Prepared, Row};
use crate::DatabaseError;

const FCNTL_FILE_POINTER: c_int = 7;
/// Steps of a statement between two calls of a progress handler.
const PROGRESS_STEPS: c_int = 20_000;
/// How long SQLite waits for a lock in one long try, and how long in each short one.
const LONG_ASK: Duration = Duration::from_secs(1);
const SHORT_ASK: Duration = Duration::from_millis(100);
/// The number of short tries between two long ones. A long one keeps new readers out for as long as
/// it waits.
const SHORT_ASKS: u32 = 10;

/// An open connection, closed on drop unless it is the application's.
pub struct Handle<'a> {
    api: Api,
    db: *mut Connection,
    borrowed: bool,
    file: String,
    progress: Option<Box<Told<'a>>>,
}

impl std::fmt::Debug for Handle<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("file", &self.file).finish_non_exhaustive()
    }
}

impl<'a> Handle<'a> {
    /// Opens `uri`, which names its VFS itself.
    pub fn open(file: &Path, uri: &str, flags: c_int) -> Result<Self, DatabaseError> {
        let api = Api::get().ok_or_else(|| {
            Error::misuse(Subject::Container, "the VFS is not registered in this process")
        })?;
        // SQLite would wait for a program that opens the other end of a FIFO.
        for suffix in ["", "-journal", "-wal"] {
            let mut name = pellucid_files::paths::own_name(file).into_os_string();
            name.push(suffix);
            if std::fs::metadata(&name).is_ok_and(|found| never_a_database(&found)) {
                let error = std::io::Error::other("not a regular file");
                return Err(Error::io(Subject::File(name.into()), error).into());
            }
        }
        let name = terminated(uri)?;
        let mut db = std::ptr::null_mut();
        // SAFETY: the name is terminated; `db` is valid for a write.
        let code = unsafe {
            api.open_v2()(name.as_ptr(), &mut db, flags | ffi::OPEN_URI, std::ptr::null())
        };
        let handle =
            Self { api, db, borrowed: false, file: file.display().to_string(), progress: None };
        match code {
            ffi::OK => Ok(handle),
            code => Err(handle.error(code)),
        }
    }

    /// Sets how long a busy statement waits.
    pub fn busy_timeout(&self, milliseconds: c_int) {
        // SAFETY: the connection is open.
        unsafe { self.api.busy_timeout()(self.db, milliseconds) };
    }

    /// Begins a transaction within `patience`.
    ///
    /// SQLite's own waits grow to 100 ms, and a connection that commits one transaction after the
    /// other leaves the lock free only for a moment in between. So this tries again and again, and
    /// each try's waits are short again.
    pub fn begin(&self, begin: &str, patience: Duration) -> Result<(), DatabaseError> {
        let milliseconds = |wait: Duration| wait.as_millis().try_into().unwrap_or(c_int::MAX);
        // SQLite itself waits during a try.
        let waiting = Patience::new(patience, Duration::ZERO);
        let mut asks = 0;
        let begun = loop {
            let long = asks % (SHORT_ASKS + 1) == 0;
            self.busy_timeout(milliseconds(waiting.left().min(if long {
                LONG_ASK
            } else {
                SHORT_ASK
            })));
            asks += 1;
            match self.run(begin) {
                Err(error) if Self::is_busy(&error) && waiting.wait() => {}
                begun => break begun,
            }
        };
        self.busy_timeout(milliseconds(patience));
        begun
    }

    /// Calls `tell` now and then while statements run, but never while it is running itself.
    pub fn on_progress(&mut self, tell: impl FnMut() + 'a) {
        let mut told = Box::new(Told { busy: Cell::new(false), tell: Box::new(tell) });
        let argument: *mut c_void = std::ptr::from_mut(&mut *told).cast();
        // SAFETY: the box lives until the handler is taken away in drop.
        unsafe {
            self.api.progress_handler()(self.db, PROGRESS_STEPS, Some(call_progress), argument)
        };
        self.progress = Some(told);
    }

    /// Calls `tell` now and then while `work` runs, but never while it is running itself.
    pub fn watched<T>(&self, tell: &mut dyn FnMut(), work: impl FnOnce(&Self) -> T) -> T {
        let mut told = Told { busy: Cell::new(false), tell: Box::new(tell) };
        let argument: *mut c_void = std::ptr::addr_of_mut!(told).cast();
        // SAFETY: `told` lives across the call, and the handler is taken away before it ends, however that ends.
        unsafe {
            self.api.progress_handler()(self.db, PROGRESS_STEPS, Some(call_progress), argument);
        }
        let _unwatched = Unwatched(self);
        work(self)
    }

    fn unwatch(&self) {
        // SAFETY: the connection is open.
        unsafe { self.api.progress_handler()(self.db, 0, None, std::ptr::null_mut()) };
    }

    /// Runs statements for their effect.
    pub fn run(&self, sql: &str) -> Result<(), DatabaseError> {
        self.rows(sql, |_| ())
    }

    /// Runs a statement and returns the first column of its first row, as text.
    pub fn text(&self, sql: &str) -> Result<String, DatabaseError> {
        let mut found = String::new();
        self.rows(sql, |row| found = row.text(0))?;
        Ok(found)
    }

    /// Runs a statement and returns the first column of its first row, as a number.
    pub fn number(&self, sql: &str) -> Result<i64, DatabaseError> {
        let mut found = 0;
        self.rows(sql, |row| found = row.number(0))?;
        Ok(found)
    }

    /// Runs one statement and calls `each` with each row.
    pub fn rows(&self, sql: &str, mut each: impl FnMut(&Row)) -> Result<(), DatabaseError> {
        let statement = self.prepare(sql)?;
        let row = Row::of(self.api, statement);
        let last = loop {
            // SAFETY: the statement was prepared and is not finalized.
            match unsafe { self.api.step()(statement) } {
                ffi::ROW => each(&row),
                code => break code,
            }
        };
        let outcome = if last == ffi::DONE { Ok(()) } else { Err(self.error(last)) };
        // SAFETY: finalized once.
        unsafe { self.api.finalize()(statement) };
        outcome
    }

    /// Borrows the application's connection, which must not be closed.
    ///
    /// # Safety
    /// `db` is an open connection of the SQLite behind `api` until this is dropped, and the caller may use it.
    pub unsafe fn borrowed(api: Api, db: *mut Connection) -> Self {
        // SAFETY: by contract; the name lives across the call, and null stands for none.
        let name = unsafe {
            let name = api.db_filename()(db, c"main".as_ptr());
            if name.is_null() {
                c""
            } else {
                CStr::from_ptr(name)
            }
        };
        let file = name.to_string_lossy().into_owned();
        Self { api, db, borrowed: true, file, progress: None }
    }

    /// The function table that the connection was opened by.
    pub fn api(&self) -> Api {
        self.api
    }

    /// SQLite's pointer to the connection.
    pub fn raw(&self) -> *mut Connection {
        self.db
    }

    /// Whether the connection is in no transaction.
    pub fn autocommit(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { self.api.get_autocommit()(self.db) != 0 }
    }

    /// Returns the names of its databases: `main`, `temp` and the attached ones.
    pub fn schemas(&self) -> Vec<CString> {
        // SAFETY: the connection is open.
        let name = |index| unsafe { self.api.db_name(self.db, index) };
        (0..).map_while(name).collect()
    }

    /// Defines a collation of that name that compares nothing. It serves to parse a schema only.
    pub fn make_up_collation(&self, name: &str) -> Result<(), DatabaseError> {
        let name = terminated(name)?;
        // SAFETY: the connection is open, the name terminated; no data goes with the collation.
        let code = unsafe {
            self.api.create_collation_v2()(
                self.db,
                name.as_ptr(),
                UTF8,
                std::ptr::null_mut(),
                Some(compare_nothing),
                None,
            )
        };
        self.check(code)
    }

    /// Defines a function of that name, with any number of arguments, that returns NULL.
    pub fn make_up_function(&self, name: &str) -> Result<(), DatabaseError> {
        let name = terminated(name)?;
        // SAFETY: as above.
        let code = unsafe {
            self.api.create_function_v2()(
                self.db,
                name.as_ptr(),
                -1,
                UTF8 | DETERMINISTIC,
                std::ptr::null_mut(),
                Some(give_null),
                None,
                None,
                None,
            )
        };
        self.check(code)
    }

    pub(crate) fn check(&self, code: c_int) -> Result<(), DatabaseError> {
        match code {
            ffi::OK => Ok(()),
            code => Err(self.error(code)),
        }
    }

    /// Prepares a statement, which the caller finalizes.
    pub fn prepare(&self, sql: &str) -> Result<*mut ffi::Statement, DatabaseError> {
        let text = terminated(sql)?;
        let mut statement = std::ptr::null_mut();
        // SAFETY: the text is terminated; `statement` is valid for a write.
        let code = unsafe {
            self.api.prepare_v2()(self.db, text.as_ptr(), -1, &mut statement, std::ptr::null_mut())
        };
        if code != ffi::OK {
            return Err(self.error(code));
        }
        Ok(statement)
    }

    /// Prepares a statement that is run many times.
    pub fn prepared(&self, sql: &str) -> Result<Prepared<'_>, DatabaseError> {
        Ok(Prepared::of(self, self.prepare(sql)?))
    }

    /// Loads an extension with its default entry point.
    pub fn load(&self, extension: &Path) -> Result<(), DatabaseError> {
        pellucid_files::trusted::check_extension(extension)?;
        let name = terminated(&extension.display().to_string())?;
        let mut message = std::ptr::null_mut();
        // SAFETY: the name is terminated; a message is SQLite's to free. Loading by the C function
        // needs no enabling by SQL.
        let code = unsafe {
            self.api.load_extension()(self.db, name.as_ptr(), std::ptr::null(), &mut message)
        };
        if code == ffi::OK {
            return Ok(());
        }
        let mut told = String::from("cannot be loaded");
        if !message.is_null() {
            // SAFETY: a terminated string of SQLite's, freed once.
            unsafe {
                told = CStr::from_ptr(message).to_string_lossy().into_owned();
                self.api.free()(message.cast());
            }
        }
        Err(DatabaseError::Sqlite { file: extension.display().to_string(), code, message: told })
    }

    /// Returns the file object of the main database.
    ///
    /// # Errors
    /// SQLite's, if it has none.
    pub fn file(&self) -> Result<*mut File, DatabaseError> {
        self.file_of(c"main")
    }

    /// Returns the file object of the database `schema`. It is open as long as this connection is
    /// and the database is attached.
    ///
    /// # Errors
    /// SQLite's, if it has none.
    pub fn file_of(&self, schema: &CStr) -> Result<*mut File, DatabaseError> {
        let mut file: *mut File = std::ptr::null_mut();
        let out: *mut c_void = std::ptr::addr_of_mut!(file).cast();
        // SAFETY: the name is terminated; the operation writes one pointer.
        let code =
            unsafe { self.api.file_control()(self.db, schema.as_ptr(), FCNTL_FILE_POINTER, out) };
        if code != ffi::OK {
            return Err(self.error(code));
        }
        // SAFETY: SQLite's file object of an attached database; without methods none is open.
        match unsafe { file.as_ref() } {
            Some(found) if !found.methods.is_null() => Ok(file),
            _ => {
                Err(Error::misuse(Subject::File(self.file.clone().into()), "it is not a file")
                    .into())
            }
        }
    }

    /// Whether an error means that other connections hold locks.
    pub fn is_busy(error: &DatabaseError) -> bool {
        matches!(error, DatabaseError::Sqlite { code, .. } if matches!(code & 0xff, ffi::BUSY | 6))
    }

    /// Makes an error out of SQLite's last message.
    pub fn error(&self, code: c_int) -> DatabaseError {
        if self.db.is_null() {
            let message = "out of memory".to_owned();
            return DatabaseError::Sqlite { file: self.file.clone(), code, message };
        }
        // SAFETY: the connection is open; the message lives until its next call.
        let (message, code) = unsafe {
            let message = CStr::from_ptr(self.api.errmsg()(self.db));
            (message.to_string_lossy().into_owned(), self.api.extended_errcode()(self.db))
        };
        DatabaseError::Sqlite { file: self.file.clone(), code, message }
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        if self.db.is_null() {
            return;
        }
        if self.progress.is_some() {
            self.unwatch();
        }
        if !self.borrowed {
            // SAFETY: closed once; the progress handler went before the box it points to.
            unsafe { self.api.close_v2()(self.db) };
        }
    }
}

/// What a progress handler calls.
struct Told<'a> {
    /// It is running: a statement that it runs itself does not call it again.
    busy: Cell<bool>,
    tell: Box<dyn FnMut() + 'a>,
}

/// Takes the progress handler away on drop.
struct Unwatched<'h, 'a>(&'h Handle<'a>);

impl Drop for Unwatched<'_, '_> {
    fn drop(&mut self) {
        self.0.unwatch();
    }
}

const UTF8: c_int = 1;
const DETERMINISTIC: c_int = 0x800;

unsafe extern "C" fn compare_nothing(
    _: *mut c_void,
    _: c_int,
    _: *const c_void,
    _: c_int,
    _: *const c_void,
) -> c_int {
    0
}

unsafe extern "C" fn give_null(_: *mut Context, _: c_int, _: *mut *mut Value) {}

unsafe extern "C" fn call_progress(argument: *mut c_void) -> c_int {
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let told = argument.cast::<Told<'_>>();
        // SAFETY: `on_progress` and `watched` registered what outlives the handler. The flag is read apart from the function,
        // which nobody else touches while the flag is down.
        unsafe {
            let busy = &(*told).busy;
            if !busy.replace(true) {
                ((*told).tell)();
                busy.set(false);
            }
        }
    }));
    c_int::from(told.is_err())
}

/// Whether a file is neither a regular file, nor a directory (for which SQLite has an error of its
/// own), nor a disk. `/dev/null` does not count: programs name it on purpose, as `.backup
/// /dev/null` to read everything, and it neither blocks nor keeps anything.
pub fn never_a_database(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    /// The device number of `/dev/null` (null(4)).
    const NULL_DEVICE: u64 = libc::makedev(1, 3);
    let kind = found.file_type();
    let is_device = kind.is_char_device() && found.rdev() != NULL_DEVICE;
    kind.is_fifo() || is_device || kind.is_socket()
}

fn terminated(text: &str) -> Result<CString, DatabaseError> {
    CString::new(text)
        .map_err(|_| Error::misuse(Subject::Container, "a zero byte in a name or statement").into())
}

/// Writes a path as the `file:` part of a URI. An absolute path gets an empty authority in front:
/// two slashes at its own beginning would be taken for one (uri.html, 3.1).
pub fn uri(path: &Path, query: &str) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from(if path.is_absolute() { "file://" } else { "file:" });
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push('?');
    uri.push_str(query);
    uri
}

/// Writes a text as an SQL string literal.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Writes a name as a quoted SQL name.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
