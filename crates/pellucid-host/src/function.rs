//! SQL functions that an application calls on its connection.

use std::ffi::{c_int, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::api::Api;
use crate::ffi::{self, Connection, Context, Value};
use crate::lending::Lender;
use crate::table::{self, View};

/// The flags of a function: callable by the application only, never by a schema
/// (`SQLITE_DIRECTONLY`), and in UTF-8.
const FLAGS: c_int = 1 | 0x8_0000;

/// A function: its name, its number of arguments, its code.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static CStr,
    /// How many arguments it takes.
    pub arguments: c_int,
    /// Returns its result or its error message.
    pub call: fn(&Call<'_>) -> Result<String, String>,
}

/// One call of a function.
#[derive(Debug)]
pub struct Call<'a> {
    api: Api,
    context: *mut Context,
    arguments: &'a [*mut Value],
}

impl Call<'_> {
    /// Returns an argument as text. `None` if there are fewer.
    pub fn text(&self, index: usize) -> Option<String> {
        let value = *self.arguments.get(index)?;
        // SAFETY: SQLite gave the value for this call; its text is terminated and lives across it.
        let bytes = unsafe {
            let text = self.api.value_text()(value);
            if text.is_null() {
                b""
            } else {
                CStr::from_ptr(text).to_bytes()
            }
        };
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Runs `work` with the calling connection, and with a lender of its collations and functions.
    pub fn lending<T>(&self, work: impl FnOnce(Lender<'_>) -> T) -> T {
        /// Ends what was lent, however the work ends.
        struct Ends<'a>(Lender<'a>);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                self.0.end();
            }
        }
        // SAFETY: the context of a running function has a connection. The work gets a lender of any lifetime, and so can
        // keep none; all that was lent ends before this returns.
        let lender = unsafe { Lender::new(self.api, self.api.context_db_handle()(self.context)) };
        let ends = Ends(lender);
        work(ends.0.clone())
    }
}

/// Defines functions and tables on a connection.
///
/// # Safety
/// `db` is the connection that an entry point was called with, after the function table was set, or null.
pub unsafe fn define(
    db: *mut Connection,
    functions: &'static [Function],
    views: &'static [View],
) -> c_int {
    let Some(api) = Api::get() else { return ffi::ERROR };
    if db.is_null() {
        return ffi::OK;
    }
    let defined = functions.iter().map(|function| {
        let data = std::ptr::from_ref(function).cast_mut().cast();
        // SAFETY: by contract; the name is terminated, and the function is there for ever.
        unsafe {
            api.create_function_v2()(
                db,
                function.name.as_ptr(),
                function.arguments,
                FLAGS,
                data,
                Some(call),
                None,
                None,
                None,
            )
        }
    });
    // SAFETY: by contract.
    let shown = views.iter().map(|view| unsafe { table::define(api, db, view) });
    defined.chain(shown).find(|code| *code != ffi::OK).unwrap_or(ffi::OK)
}

/// # Safety
/// SQLite calls it as an SQL function that [`define`] made.
unsafe extern "C" fn call(context: *mut Context, count: c_int, values: *mut *mut Value) {
    let Some(api) = Api::get() else { return };
    // SAFETY: by contract: the data is what `define` gave, and there are as many values as SQLite says.
    let (function, arguments) = unsafe {
        let function: &'static Function = &*api.user_data()(context).cast_const().cast();
        let count = usize::try_from(count).unwrap_or(0);
        (function, if count == 0 { &[] } else { std::slice::from_raw_parts(values, count) })
    };
    let call = Call { api, context, arguments };
    let outcome = catch_unwind(AssertUnwindSafe(|| (function.call)(&call)));
    let name = function.name.to_string_lossy();
    // SAFETY: the context is SQLite's; both texts are terminated and copied (SQLITE_TRANSIENT is -1).
    unsafe {
        match outcome.unwrap_or_else(|_| Err("an internal error; nothing more was done".to_owned()))
        {
            Ok(said) => {
                let said = CString::new(said).unwrap_or_default();
                api.result_text()(context, said.as_ptr(), -1, -1);
            }
            Err(why) => {
                let why = CString::new(format!("{name}: {why}")).unwrap_or_default();
                api.result_error()(context, why.as_ptr(), -1);
            }
        }
    }
}
