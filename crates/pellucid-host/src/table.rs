//! Eponymous virtual tables that are only read. A cursor makes its rows once, at its first use, so
//! that a statement sees one state however often it reads them.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

use crate::api::Api;
use crate::connection::Handle;
use crate::ffi;
use crate::ffi::{Connection, Context, Module, Value, VirtualTable};

/// A table: its name, its columns, the source of its rows.
#[derive(Debug)]
pub struct View {
    /// Its name.
    pub name: &'static CStr,
    /// Its columns, as `CREATE TABLE x(..)`.
    pub schema: &'static CStr,
    /// Makes its rows, over the connection that reads it.
    pub rows: fn(&Handle<'_>) -> Vec<Row>,
}

/// The values of a row, in the order of the columns.
pub type Row = Vec<Cell>;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// A number.
    Integer(i64),
    /// A fraction.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Cell {
    /// Makes the cell of a value as it is displayed.
    pub fn text(value: impl ToString) -> Self {
        Cell::Text(value.to_string())
    }

    /// Makes the cell of a path, for people.
    pub fn path(path: &Path) -> Self {
        Cell::Text(path.display().to_string())
    }

    /// Makes the cell of a time in seconds since 1970, as SQLite writes it: `YYYY-MM-DD HH:MM:SS`,
    /// UTC.
    pub fn time(seconds: i64) -> Self {
        let Ok(at) = time::OffsetDateTime::from_unix_timestamp(seconds) else { return Cell::Null };
        let (hour, minute, second) = at.to_hms();
        Cell::Text(format!("{} {hour:02}:{minute:02}:{second:02}", at.date()))
    }

    /// Like [`Cell::time`]; NULL for 0, which stands for never.
    pub fn time_unless_never(seconds: u64) -> Self {
        match i64::try_from(seconds) {
            Ok(seconds) if seconds > 0 => Self::time(seconds),
            _ => Cell::Null,
        }
    }
}

/// A table of a connection; SQLite sees its beginning.
#[repr(C)]
struct Table {
    base: VirtualTable,
    api: Api,
    db: *mut Connection,
    view: &'static View,
}

/// A walk through its rows; SQLite sees its beginning.
#[repr(C)]
struct Cursor {
    base: ffi::Cursor,
    rows: Option<Vec<Row>>,
    at: usize,
}

/// The module has no function to create a table. The table exists once for each connection, under
/// the module's name.
static MODULE: Module = Module {
    version: 1,
    create: None,
    connect: Some(connect),
    best_index: Some(best_index),
    disconnect: Some(disconnect),
    destroy: None,
    open: Some(open),
    close: Some(close),
    filter: Some(filter),
    next: Some(next),
    eof: Some(eof),
    column: Some(column),
    rowid: Some(rowid),
    others: [None; 12],
};

/// # Safety
/// `db` is an open connection of the SQLite behind `api`.
pub unsafe fn define(api: Api, db: *mut Connection, view: &'static View) -> c_int {
    let data = std::ptr::from_ref(view).cast_mut().cast();
    // SAFETY: by contract; name, module and view are there for ever.
    unsafe { api.create_module_v2()(db, view.name.as_ptr(), &MODULE, data, None) }
}

fn guarded(call: impl FnOnce() -> c_int) -> c_int {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(ffi::ERROR)
}

unsafe extern "C" fn connect(
    db: *mut Connection,
    data: *mut c_void,
    _: c_int,
    _: *const *const c_char,
    out: *mut *mut VirtualTable,
    _: *mut *mut c_char,
) -> c_int {
    guarded(|| {
        let Some(api) = Api::get() else { return ffi::ERROR };
        // SAFETY: what `define` gave with the module: a view that is there for ever.
        let view: &'static View = unsafe { &*data.cast_const().cast() };
        // SAFETY: SQLite is connecting the table; the text is terminated, and the option takes no argument.
        let declared = unsafe {
            // Like `pellucid_encrypt`, it is not for a schema that came with a file.
            api.vtab_config()(db, ffi::VTAB_DIRECTONLY);
            api.declare_vtab()(db, view.schema.as_ptr())
        };
        if declared != ffi::OK {
            return declared;
        }
        let base =
            VirtualTable { module: std::ptr::null(), references: 0, error: std::ptr::null_mut() };
        let table = Box::new(Table { base, api, db, view });
        // SAFETY: SQLite gives a place for the pointer, and has `disconnect` take it back.
        unsafe { *out = Box::into_raw(table).cast() };
        ffi::OK
    })
}

unsafe extern "C" fn best_index(_: *mut VirtualTable, _: *mut c_void) -> c_int {
    // There is one plan, through all rows, and SQLite's default cost is right for it.
    ffi::OK
}

unsafe extern "C" fn disconnect(table: *mut VirtualTable) -> c_int {
    guarded(|| {
        // SAFETY: made by `connect`, given back once.
        drop(unsafe { Box::from_raw(table.cast::<Table>()) });
        ffi::OK
    })
}

unsafe extern "C" fn open(table: *mut VirtualTable, out: *mut *mut ffi::Cursor) -> c_int {
    guarded(|| {
        let cursor = Box::new(Cursor { base: ffi::Cursor { table }, rows: None, at: 0 });
        // SAFETY: SQLite gives a place for the pointer, and has `close` take it back.
        unsafe { *out = Box::into_raw(cursor).cast() };
        ffi::OK
    })
}

unsafe extern "C" fn close(cursor: *mut ffi::Cursor) -> c_int {
    guarded(|| {
        // SAFETY: made by `open`, given back once.
        drop(unsafe { Box::from_raw(cursor.cast::<Cursor>()) });
        ffi::OK
    })
}

/// Runs `call` on a cursor; a panic becomes `SQLITE_ERROR`.
///
/// # Safety
/// SQLite made the cursor by [`open`], has not closed it, and makes one call at a time.
unsafe fn with(cursor: *mut ffi::Cursor, call: impl FnOnce(&mut Cursor) -> c_int) -> c_int {
    // SAFETY: by contract.
    guarded(|| call(unsafe { &mut *cursor.cast::<Cursor>() }))
}

unsafe extern "C" fn filter(
    cursor: *mut ffi::Cursor,
    _: c_int,
    _: *const c_char,
    _: c_int,
    _: *mut *mut Value,
) -> c_int {
    // SAFETY: as `with` asks. The table lives as long as its cursors, and its connection, which is in this call and
    // so holds its mutex, as long as the table.
    unsafe {
        with(cursor, |cursor| {
            let table = &*cursor.base.table.cast::<Table>();
            cursor.at = 0;
            if cursor.rows.is_none() {
                let connection = Handle::borrowed(table.api, table.db);
                cursor.rows = Some((table.view.rows)(&connection));
            }
            ffi::OK
        })
    }
}

unsafe extern "C" fn next(cursor: *mut ffi::Cursor) -> c_int {
    // SAFETY: as `with` asks.
    unsafe {
        with(cursor, |cursor| {
            cursor.at += 1;
            ffi::OK
        })
    }
}

unsafe extern "C" fn eof(cursor: *mut ffi::Cursor) -> c_int {
    // SAFETY: as `with` asks.
    unsafe { with(cursor, |cursor| c_int::from(cursor.row().is_none())) }
}

unsafe extern "C" fn column(
    cursor: *mut ffi::Cursor,
    context: *mut Context,
    column: c_int,
) -> c_int {
    /// Lets SQLite copy the value.
    const TRANSIENT: isize = -1;
    // SAFETY: as `with` asks; the context is SQLite's, and texts and blobs go with their lengths.
    unsafe {
        with(cursor, |cursor| {
            let api = (*cursor.base.table.cast::<Table>()).api;
            let cell = cursor.row().and_then(|row| row.get(usize::try_from(column).ok()?));
            let length = |bytes: &[u8]| c_int::try_from(bytes.len()).unwrap_or(0);
            match cell {
                // A column without a value is NULL.
                None | Some(Cell::Null) => {}
                Some(Cell::Integer(value)) => api.result_int64()(context, *value),
                Some(Cell::Real(value)) => api.result_double()(context, *value),
                Some(Cell::Text(text)) => {
                    let bytes = text.as_bytes();
                    api.result_text()(context, bytes.as_ptr().cast(), length(bytes), TRANSIENT);
                }
                Some(Cell::Blob(bytes)) => {
                    api.result_blob()(context, bytes.as_ptr().cast(), length(bytes), TRANSIENT);
                }
            }
            ffi::OK
        })
    }
}

unsafe extern "C" fn rowid(cursor: *mut ffi::Cursor, out: *mut i64) -> c_int {
    // SAFETY: as `with` asks; SQLite gives a place for the number.
    unsafe {
        with(cursor, |cursor| {
            *out = cursor.at as i64 + 1;
            ffi::OK
        })
    }
}

impl Cursor {
    fn row(&self) -> Option<&Row> {
        self.rows.as_ref()?.get(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_sqlite_writes_them() {
        assert_eq!(Cell::time(1_700_000_000), Cell::text("2023-11-14 22:13:20"));
        assert_eq!(Cell::time(-1), Cell::text("1969-12-31 23:59:59"));
        assert_eq!(Cell::time(i64::MAX), Cell::Null);
        assert_eq!(Cell::time_unless_never(0), Cell::Null);
        assert_eq!(Cell::time_unless_never(u64::MAX), Cell::Null);
    }
}
