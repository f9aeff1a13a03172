//! Goal: what an application's connection lends ends with the call that it was lent in, whoever keeps the borrower.
//!
//! Method: an SQL function that puts its borrower aside; it is used after the call, and after the application has gone.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::path::Path;

use pellucid_host::connection::Handle;
use pellucid_host::ffi;
use pellucid_host::function::{define, Call, Function};
use rusqlite::functions::FunctionFlags;
use rusqlite::Connection;

static FUNCTIONS: [Function; 1] = [Function { name: c"keep", arguments: 0, call: keep }];

thread_local! {
    static KEPT: RefCell<Option<Handle<'static>>> = const { RefCell::new(None) };
}

const DESCENDING: &str =
    "SELECT group_concat(x, '') FROM (SELECT column1 AS x FROM (VALUES ('a'), ('b')) \
                          ORDER BY x COLLATE backwards)";

fn keep(call: &Call<'_>) -> Result<String, String> {
    call.lending(|lender| {
        let flags = ffi::OPEN_READWRITE | ffi::OPEN_CREATE;
        let borrower =
            Handle::open(Path::new("memory"), ":memory:", flags).map_err(|e| e.to_string())?;
        lender.lend(&borrower).map_err(|error| error.to_string())?;
        let said = borrower.text(DESCENDING).map_err(|error| error.to_string())?;
        assert_eq!(borrower.number("SELECT twice(21)").map_err(|error| error.to_string())?, 42);
        KEPT.set(Some(borrower));
        Ok(said)
    })
}

/// # Safety
/// SQLite calls it with two texts of the lengths given.
unsafe extern "C" fn backwards(
    _: *mut c_void,
    first_bytes: c_int,
    first: *const c_void,
    second_bytes: c_int,
    second: *const c_void,
) -> c_int {
    let text = |start: *const c_void, bytes: c_int| {
        // SAFETY: by contract.
        unsafe { std::slice::from_raw_parts(start.cast::<u8>(), bytes as usize) }
    };
    text(second, second_bytes).cmp(text(first, first_bytes)) as c_int
}

#[test]
fn a_borrower_that_is_kept_gets_nothing_after_the_call() {
    pellucid_bundled::register().unwrap();
    let application = Connection::open_in_memory().unwrap();
    // SAFETY: the connection is open, the name terminated, and the function is there for ever.
    let code = unsafe {
        rusqlite::ffi::sqlite3_create_collation_v2(
            application.handle(),
            c"backwards".as_ptr(),
            rusqlite::ffi::SQLITE_UTF8,
            std::ptr::null_mut(),
            Some(backwards),
            None,
        )
    };
    assert_eq!(code, ffi::OK);
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    application
        .create_scalar_function("twice", 1, flags, |context| Ok(2 * context.get::<i64>(0)?))
        .unwrap();
    // SAFETY: the connection is open, and the function is there for ever.
    let code = unsafe { define(application.handle().cast(), &FUNCTIONS, &[]) };
    assert_eq!(code, ffi::OK);
    let said: String = application.query_row("SELECT keep()", [], |row| row.get(0)).unwrap();
    assert_eq!(said, "ba", "the collation is the application's");
    for _ in 0..2 {
        KEPT.with_borrow(|kept| {
            let borrower = kept.as_ref().unwrap();
            let refused = borrower.number("SELECT twice(21)").unwrap_err().to_string();
            assert!(refused.contains("is over"), "{refused}");
            assert_eq!(
                borrower.text(DESCENDING).unwrap().len(),
                2,
                "no order is known, and none is asked for"
            );
        });
        // No statement of the loan is left on it: it can be closed.
        assert!(application.is_autocommit());
    }
    application.close().map_err(|(_, error)| error).unwrap();
    KEPT.with_borrow(|kept| assert!(kept.as_ref().unwrap().number("SELECT twice(21)").is_err()));
    KEPT.set(None);
}
