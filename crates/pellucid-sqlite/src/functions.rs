//! SQL functions of the extension, on the connection that loads it.
//!
//! `pellucid_encrypt()` and `pellucid_encrypt(CERTIFICATE)` encrypt the main database of the connection in place, with
//! the collations and functions that the application defined on it.

use std::ffi::{c_int, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

use pellucid::{Algorithm, Error, Subject};

use crate::api::Api;
use crate::convert::connection::Handle;
use crate::convert::encrypt::encrypt;
use crate::convert::lending::Lender;
use crate::convert::{ConvertError, Options};
use crate::ffi::{self, Connection, Context, Value};
use crate::file;
use crate::seal_request::{Birth, Protection};
use crate::views;

/// Callable by the application only, never by a schema (`SQLITE_DIRECTONLY`), and in UTF-8.
const FLAGS: c_int = 1 | 0x8_0000;
/// How long other connections may take to give way.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Gives the connection that loads the extension its functions and views.
///
/// # Safety
/// `db` is the connection an entry point was called with, after [`crate::register`].
pub unsafe fn define(db: *mut Connection) -> c_int {
    let Some(api) = Api::get() else { return ffi::ERROR };
    if db.is_null() {
        return ffi::OK;
    }
    (0..=1)
        .map(|arguments| {
            // SAFETY: by contract; the name is terminated, and no data of ours goes with the function.
            unsafe {
                api.create_function_v2()(
                    db,
                    c"pellucid_encrypt".as_ptr(),
                    arguments,
                    FLAGS,
                    std::ptr::null_mut(),
                    Some(pellucid_encrypt),
                    None,
                    None,
                    None,
                )
            }
        })
        .find(|code| *code != ffi::OK)
        // SAFETY: by contract.
        .unwrap_or_else(|| unsafe { views::define(api, db) })
}

/// # Safety
/// SQLite calls it as an SQL function.
unsafe extern "C" fn pellucid_encrypt(
    context: *mut Context,
    count: c_int,
    values: *mut *mut Value,
) {
    let Some(api) = Api::get() else { return };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: by contract; a text of SQLite's is terminated and lives across the call.
        let certificate = (count == 1).then(|| unsafe {
            let text = api.value_text()(*values);
            let bytes = if text.is_null() { b"" } else { CStr::from_ptr(text).to_bytes() };
            String::from_utf8_lossy(bytes).into_owned()
        });
        // SAFETY: the context of a running function has a connection; the lender is gone when this returns.
        let lender = unsafe { Lender::new(api, api.context_db_handle()(context)) };
        encrypt_main(lender, certificate)
    }));
    let message = match outcome {
        Ok(Ok(said)) => Ok(said),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("an internal error; nothing more was done".to_owned()),
    };
    // SAFETY: the context is SQLite's; both texts are terminated and copied (SQLITE_TRANSIENT is -1).
    unsafe {
        match message {
            Ok(said) => {
                let said = CString::new(said).unwrap_or_default();
                api.result_text()(context, said.as_ptr(), -1, -1);
            }
            Err(why) => {
                let why = CString::new(format!("pellucid_encrypt: {why}")).unwrap_or_default();
                api.result_error()(context, why.as_ptr(), -1);
            }
        }
    }
}

fn encrypt_main(lender: Lender, certificate: Option<String>) -> Result<String, ConvertError> {
    let own = lender.handle();
    let refuse = |why: &'static str| Error::misuse(Subject::Container, why);
    if !own.autocommit() {
        return Err(refuse("the connection is inside a transaction; commit or roll it back").into());
    }
    // An SQLite that has not opened its file yet has none.
    own.number("SELECT count(*) FROM main.sqlite_schema")?;
    let path = own.main_path().ok_or_else(|| {
        refuse(
            "the main database is not a file that this connection has open by the system's VFS; `pellucid encrypt` \
             encrypts a file by its name",
        )
    })?;
    // SAFETY: the file object of an open connection, used before that closes.
    if unsafe { file::lower_of_open(own.file()?) }.is_some() {
        return Err(Error::misuse(Subject::File(path), "it is encrypted already").into());
    }
    let protections = match certificate {
        Some(name) => vec![Protection::Certificate(Some(name))],
        None => Protection::from_environment()?,
    };
    let birth = Birth::new(Algorithm::Aes256, &protections)?;
    let was_wal = leave_wal(&own, &path)?;
    let options =
        Options { timeout: TIMEOUT, load: Vec::new(), lender: Some(lender.clone()), was_wal };
    let encrypted = encrypt(&path, birth, &options, &mut |_, _, _| ());
    if encrypted.is_err() && was_wal {
        // Nothing was changed; the journal mode is given back as it was.
        let _ = own.text("PRAGMA main.journal_mode=WAL");
    }
    encrypted?;
    Ok("encrypted; open it again through the VFS pellucid".to_owned())
}

/// The connection itself would be in its own way: in WAL mode it keeps a lock while it is open.
fn leave_wal(own: &Handle<'_>, path: &std::path::Path) -> Result<bool, ConvertError> {
    if own.text("PRAGMA main.journal_mode")? != "wal" {
        return Ok(false);
    }
    let in_use = || ConvertError::InUse {
        file: path.display().to_string(),
        holders: crate::convert::holders::find(path),
    };
    match own.text("PRAGMA main.journal_mode=DELETE") {
        Ok(mode) if mode == "delete" => Ok(true),
        Ok(_) => Err(in_use()),
        Err(error) if Handle::is_busy(&error) => Err(in_use()),
        Err(error) => Err(error),
    }
}
