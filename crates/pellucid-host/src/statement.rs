//! A statement that is run many times, and a row of a running one.

use std::ffi::{c_int, CStr};

use crate::api::Api;
use crate::connection::Handle;
use crate::ffi;
use crate::DatabaseError;

/// A statement with one parameter, finalized on drop.
#[derive(Debug)]
pub struct Prepared<'a> {
    handle: &'a Handle<'a>,
    statement: *mut ffi::Statement,
}

impl<'a> Prepared<'a> {
    /// Takes a statement of `handle`, which no other code finalizes.
    pub(super) fn of(handle: &'a Handle<'a>, statement: *mut ffi::Statement) -> Self {
        Self { handle, statement }
    }

    /// Runs it to its end for its effect.
    pub fn run(&self, parameter: i64) -> Result<(), DatabaseError> {
        let api = self.handle.api();
        // SAFETY: prepared and not finalized; a reset makes it ready for the next run, whatever the last one said.
        unsafe {
            self.handle.check(api.bind_int64()(self.statement, 1, parameter))?;
            let mut code = ffi::ROW;
            while code == ffi::ROW {
                code = api.step()(self.statement);
            }
            let outcome = if code == ffi::DONE { Ok(()) } else { Err(self.handle.error(code)) };
            api.reset()(self.statement);
            outcome
        }
    }

    /// Runs it to its end for its effect, with a blob as its second parameter.
    pub fn run_with(&self, parameter: i64, blob: &[u8]) -> Result<(), DatabaseError> {
        let api = self.handle.api();
        let bytes = c_int::try_from(blob.len()).unwrap_or(c_int::MAX);
        // SAFETY: the statement is prepared and not finalized. The blob has as many bytes, and lives until it is bound no more, which
        // is before this returns: no destructor is told of it (SQLITE_STATIC).
        unsafe {
            let bound = api.bind_blob()(self.statement, 2, blob.as_ptr().cast(), bytes, None);
            let ran = self.handle.check(bound).and_then(|()| self.run(parameter));
            api.clear_bindings()(self.statement);
            ran
        }
    }

    /// Runs it and copies the blob in the first column of its first row into `into`. False if there is no row, or the
    /// blob has another length.
    pub fn blob(&self, parameter: i64, into: &mut [u8]) -> Result<bool, DatabaseError> {
        let api = self.handle.api();
        // SAFETY: as in `run`; the blob lives until the reset, and has as many bytes as `column_bytes` says.
        unsafe {
            self.handle.check(api.bind_int64()(self.statement, 1, parameter))?;
            let outcome = match api.step()(self.statement) {
                ffi::ROW => {
                    let blob = api.column_blob()(self.statement, 0).cast::<u8>();
                    let bytes = api.column_bytes()(self.statement, 0);
                    let fits = !blob.is_null() && usize::try_from(bytes) == Ok(into.len());
                    if fits {
                        into.copy_from_slice(std::slice::from_raw_parts(blob, into.len()));
                    }
                    Ok(fits)
                }
                ffi::DONE => Ok(false),
                code => Err(self.handle.error(code)),
            };
            api.reset()(self.statement);
            outcome
        }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // SAFETY: finalized once, before its connection closes, which it borrows.
        unsafe { self.handle.api().finalize()(self.statement) };
    }
}

/// A row of a running statement.
#[derive(Debug)]
pub struct Row {
    api: Api,
    statement: *mut ffi::Statement,
}

impl Row {
    /// Makes the row of a statement that its caller steps.
    pub(super) fn of(api: Api, statement: *mut ffi::Statement) -> Self {
        Self { api, statement }
    }

    /// Returns a column as text; empty for NULL.
    pub fn text(&self, column: c_int) -> String {
        // SAFETY: the statement stands on a row; the text lives until the next step.
        unsafe {
            let text = self.api.column_text()(self.statement, column);
            if text.is_null() {
                return String::new();
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }

    /// Whether a column is NULL.
    pub fn is_null(&self, column: c_int) -> bool {
        // SAFETY: the statement stands on a row; the text lives until the next step.
        unsafe { self.api.column_text()(self.statement, column).is_null() }
    }

    /// Returns a column as a number.
    pub fn number(&self, column: c_int) -> i64 {
        // SAFETY: the statement stands on a row.
        unsafe { self.api.column_int64()(self.statement, column) }
    }
}
