//! Collations and functions that only the application's connection has, lent to connections of the shim's own.
//!
//! SQLite gives out no pointers to an application's collations and functions, but it names them
//! (`PRAGMA collation_list`, `PRAGMA function_list`), and the application's connection can run
//! them. So each call is answered by a statement there.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void, CStr, CString};
use std::marker::PhantomData;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

use crate::api::Api;
use crate::connection::{quoted, Handle};
use crate::ffi;
use crate::ffi::{Connection, Context, Statement, Value};
use crate::DatabaseError;

const UTF8: c_int = 1;
/// The flags of a lent function: usable in indexes and in untrusted schemas, because it is lent to
/// read one schema and no other.
const FUNCTION_FLAGS: c_int = UTF8 | 0x800 | 0x20_0000;

/// The application's connection, in the middle of a call that came from it.
#[derive(Clone)]
pub struct Lender<'call> {
    api: Api,
    db: *mut Connection,
    state: Rc<State>,
    _call: PhantomData<&'call ()>,
}

impl std::fmt::Debug for Lender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lender").field("state", &self.state).finish_non_exhaustive()
    }
}

/// What lender and loans share.
#[derive(Debug, Default)]
struct State {
    /// A collation could not be asked.
    failed: Cell<bool>,
    /// The call is over: nothing may be asked of the application's connection any more.
    over: Cell<bool>,
    /// The statements of collations on that connection, which end with the call at the latest.
    statements: RefCell<Vec<*mut Statement>>,
}

/// One collation or function on loan.
struct Loan {
    lender: Lender<'static>,
    name: String,
    /// Prepared on the application's connection. Null for functions, whose number of arguments
    /// varies.
    statement: *mut Statement,
}

impl Lender<'_> {
    /// # Safety
    /// `db` is the connection whose SQL function is being called. Before that call ends, [`Lender::end`] is called, and no
    /// lender of this state is used afterwards. What was lent may be left: it answers with errors then.
    pub unsafe fn new(api: Api, db: *mut Connection) -> Self {
        Self { api, db, state: Rc::default(), _call: PhantomData }
    }

    /// Whether a call of a collation failed. An order may be wrong then, and nothing that was made
    /// with it is used.
    pub fn failed(&self) -> bool {
        self.state.failed.get()
    }

    /// Ends every loan: from now on nothing is asked of the application's connection.
    pub(crate) fn end(&self) {
        self.state.over.set(true);
        for statement in self.state.statements.take() {
            // SAFETY: prepared by `lend_collation` and not finalized: `end_loan` takes those it finalizes off the list.
            unsafe { self.api.finalize()(statement) };
        }
    }

    /// The application's connection, for statements of the shim's own.
    pub fn handle(&self) -> Handle<'_> {
        // SAFETY: by the contract of `new`.
        unsafe { Handle::borrowed(self.api, self.db) }
    }

    /// Defines the application's collations and scalar functions on `borrower`. SQLite's own NOCASE
    /// and RTRIM are lent too, because an application may have replaced them.
    ///
    /// # Errors
    /// SQLite's.
    pub fn lend(&self, borrower: &Handle<'_>) -> Result<(), DatabaseError> {
        let own = self.handle();
        let mut collations = Vec::new();
        own.rows("PRAGMA collation_list", |row| collations.push(row.text(1)))?;
        for name in collations.iter().filter(|name| *name != "BINARY") {
            self.lend_collation(name, borrower)?;
        }
        let known = functions(borrower)?;
        for function in functions(&own)?.iter().filter(|function| !known.contains(function)) {
            self.lend_function(function, borrower)?;
        }
        Ok(())
    }

    /// Makes the lender of a loan. SQLite ends the loan when the borrower closes, which is within
    /// the call by the contract of `new`.
    fn for_ever(&self) -> Lender<'static> {
        Lender { api: self.api, db: self.db, state: self.state.clone(), _call: PhantomData }
    }

    fn lend_collation(&self, name: &str, borrower: &Handle<'_>) -> Result<(), DatabaseError> {
        let collation = quoted(name);
        let sql = format!(
            "SELECT CASE WHEN ?1 < ?2 COLLATE {collation} THEN -1 WHEN ?1 > ?2 COLLATE {collation} \
             THEN 1 ELSE 0 END"
        );
        let statement = self.handle().prepare(&sql)?;
        self.state.statements.borrow_mut().push(statement);
        let loan = Box::into_raw(Box::new(Loan {
            lender: self.for_ever(),
            name: name.to_owned(),
            statement,
        }));
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the borrower is open; the loan is freed by `end_loan`, which SQLite calls once, or here if the
        // collation was not taken over (then SQLite calls nothing, sqlite3_create_collation_v2).
        unsafe {
            let code = self.api.create_collation_v2()(
                borrower.raw(),
                name.as_ptr(),
                UTF8,
                loan.cast(),
                Some(compare),
                Some(end_loan),
            );
            if code != ffi::OK {
                end_loan(loan.cast());
                return Err(borrower.error(code));
            }
        }
        Ok(())
    }

    fn lend_function(
        &self,
        (name, arguments): &(String, i64),
        borrower: &Handle<'_>,
    ) -> Result<(), DatabaseError> {
        let loan = Box::into_raw(Box::new(Loan {
            lender: self.for_ever(),
            name: name.clone(),
            statement: std::ptr::null_mut(),
        }));
        let name = CString::new(name.as_str()).unwrap_or_default();
        // SAFETY: as above; a function that is not taken over has its loan ended by SQLite itself
        // (sqlite3_create_function_v2).
        let code = unsafe {
            self.api.create_function_v2()(
                borrower.raw(),
                name.as_ptr(),
                *arguments as c_int,
                FUNCTION_FLAGS,
                loan.cast(),
                Some(call),
                None,
                None,
                Some(end_loan),
            )
        };
        if code != ffi::OK {
            return Err(borrower.error(code));
        }
        Ok(())
    }
}

/// Returns name and number of arguments of each scalar function that is not SQLite's own. Uses the
/// pragma itself, which reads no schema: SQLite resolves the schema's functions once, when it reads
/// the schema.
fn functions(handle: &Handle<'_>) -> Result<Vec<(String, i64)>, DatabaseError> {
    let mut found = Vec::new();
    handle.rows("PRAGMA function_list", |row| {
        if row.number(1) == 0 && row.text(2) == "s" {
            found.push((row.text(0), row.number(4)));
        }
    })?;
    Ok(found)
}

/// # Safety
/// SQLite calls it once with a loan that nobody uses any more.
unsafe extern "C" fn end_loan(loan: *mut c_void) {
    // SAFETY: by contract.
    let loan = unsafe { Box::from_raw(loan.cast::<Loan>()) };
    let mut statements = loan.lender.state.statements.borrow_mut();
    if let Some(at) = statements.iter().position(|one| *one == loan.statement) {
        let statement = statements.swap_remove(at);
        drop(statements);
        // SAFETY: it is this loan's own, and was on the list: `end` has not finalized it.
        unsafe { loan.lender.api.finalize()(statement) };
    }
}

/// # Safety
/// SQLite calls it with a loan and two texts of the lengths given.
unsafe extern "C" fn compare(
    loan: *mut c_void,
    first_bytes: c_int,
    first: *const c_void,
    second_bytes: c_int,
    second: *const c_void,
) -> c_int {
    // SAFETY: by contract.
    let loan = unsafe { &*loan.cast::<Loan>() };
    if loan.lender.state.over.get() {
        loan.lender.state.failed.set(true);
        return 0;
    }
    let (api, statement) = (loan.lender.api, loan.statement);
    // SAFETY: the statement is the loan's own and reset; both texts outlive the step, and the bindings go after it.
    let answer = unsafe {
        let bound = api.bind_text()(statement, 1, first.cast(), first_bytes, None) == ffi::OK
            && api.bind_text()(statement, 2, second.cast(), second_bytes, None) == ffi::OK;
        let answer = (bound && api.step()(statement) == ffi::ROW)
            .then(|| api.column_int64()(statement, 0) as c_int);
        api.reset()(statement);
        api.clear_bindings()(statement);
        answer
    };
    answer.unwrap_or_else(|| {
        loan.lender.state.failed.set(true);
        0
    })
}

/// # Safety
/// SQLite calls it as an SQL function.
unsafe extern "C" fn call(context: *mut Context, count: c_int, values: *mut *mut Value) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: by contract; the context's data is the loan.
        unsafe { answer(context, count, values) }
    }));
}

/// # Safety
/// As [`call`].
unsafe fn answer(context: *mut Context, count: c_int, values: *mut *mut Value) {
    let Some(api) = Api::get() else { return };
    // SAFETY: the context's data is the loan; `values` has `count` values; the statement is finalized here.
    unsafe {
        let loan = &*api.user_data()(context).cast::<Loan>();
        if loan.lender.state.over.get() {
            let why = c"the call that lent this function is over";
            return api.result_error()(context, why.as_ptr(), -1);
        }
        let places = vec!["?"; usize::try_from(count).unwrap_or(0)].join(",");
        let sql = format!("SELECT {}({places})", quoted(&loan.name));
        let Ok(statement) = loan.lender.handle().prepare(&sql) else {
            return fail(api, context, loan.lender.db);
        };
        for index in 0..count {
            api.bind_value()(statement, index + 1, *values.add(index as usize));
        }
        if api.step()(statement) == ffi::ROW {
            api.result_value()(context, api.column_value()(statement, 0));
        } else {
            fail(api, context, loan.lender.db);
        }
        api.finalize()(statement);
    }
}

/// # Safety
/// The context of a running function, and an open connection with an error.
unsafe fn fail(api: Api, context: *mut Context, db: *mut Connection) {
    // SAFETY: by contract; SQLite copies the message.
    unsafe {
        let message = CStr::from_ptr(api.errmsg()(db));
        api.result_error()(context, message.as_ptr(), -1);
    }
}
