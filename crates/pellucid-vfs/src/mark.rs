//! Named marks: the commit of a transaction gets a name, by which a restore finds it.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

use pellucid::log_archive::Mark;
use pellucid_host::api::Api;
use pellucid_host::connection::Handle;
use pellucid_host::ffi::{self, Connection};
use pellucid_host::function::{define, Call, Function};

use crate::container::Container;
use crate::opened;

/// What a database of the connection says to a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    /// The transaction has not changed it.
    Unchanged,
    /// The connection has it for itself alone.
    Exclusive,
    /// No chain of log backups has begun.
    NoChain,
    /// The commit has a mark already.
    HasOne,
    /// The commit will have the mark.
    Marked,
}

/// Gives the commit of the transaction that `handle` has under way its mark, in every database that the transaction has changed and
/// that has a chain of log backups.
///
/// # Errors
/// Why no commit will have it.
fn set(handle: &Handle<'_>, mark: &Mark) -> Result<(), &'static str> {
    if handle.autocommit() {
        return Err(
            "no transaction is open: a mark is that of the transaction which sets it; BEGIN first",
        );
    }
    let answers = ask(handle, |container| {
        let transaction = &container.transaction;
        if container.chain().is_none() {
            return if transaction.writes_wal() { Answer::NoChain } else { Answer::Unchanged };
        }
        match transaction.writes_wal() {
            false if transaction.lock_level() == ffi::LOCK_EXCLUSIVE => Answer::Exclusive,
            false => Answer::Unchanged,
            true if container.mark.borrow().is_some() => Answer::HasOne,
            true => Answer::Marked,
        }
    });
    match answers.iter().max().copied().unwrap_or(Answer::Unchanged) {
        // Of several databases one may have the mark already.
        _ if answers.contains(&Answer::HasOne) => Err("the transaction has a mark already"),
        Answer::Marked | Answer::HasOne => {
            ask(handle, |container| {
                if container.chain().is_some() && container.transaction.writes_wal() {
                    container.mark.replace(Some(mark.clone()));
                }
                Answer::Marked
            });
            Ok(())
        }
        Answer::NoChain => Err(
            "the database has no chain of log backups, so nothing could find the mark: `pellucid recovery DB full`, and a full backup",
        ),
        Answer::Exclusive => Err("in an exclusive locking mode no transaction can have a mark"),
        Answer::Unchanged => Err(
            "the transaction has changed no encrypted database yet: set the mark behind the first change, or BEGIN IMMEDIATE",
        ),
    }
}

fn ask(handle: &Handle<'_>, mut each: impl FnMut(&Container) -> Answer) -> Vec<Answer> {
    let schemas = handle.schemas();
    schemas.iter().filter_map(|schema| opened::with_attached(handle, schema, &mut each)).collect()
}

/// The function as every connection of this SQLite has it.
static FUNCTIONS: [Function; 2] = [
    Function { name: c"pellucid_mark", arguments: 1, call },
    Function { name: c"pellucid_mark", arguments: 2, call },
];

/// `pellucid_mark(NAME)` and `pellucid_mark(NAME, DESCRIPTION)` give the commit of the transaction under way its mark. They return the name.
///
/// # Errors
/// Why there is no mark.
pub fn call(call: &Call<'_>) -> Result<String, String> {
    let (name, description) = (call.text(0).unwrap_or_default(), call.text(1).unwrap_or_default());
    let wanted = Mark::new(&name, &description).map_err(|error| error.to_string())?;
    let marked = call.lending(|lender| set(&lender.handle(), &wanted));
    marked.map(|()| name).map_err(str::to_owned)
}

/// Has every connection that is opened from now on get the function. Asked again, SQLite goes on with the first time.
pub(crate) fn offer(api: Api) {
    // SAFETY: the function has the type that SQLite calls, and lives for ever. Where SQLite has no memory for it, connections do not
    // have the function, and a statement that calls it says so.
    unsafe { api.auto_extension()(opened) };
}

unsafe extern "C" fn opened(
    connection: *mut Connection,
    _message: *mut *mut c_char,
    _table: *const c_void,
) -> c_int {
    // SAFETY: SQLite hands over the connection that it has just opened.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { define_on(connection) }));
    ffi::OK
}

/// Defines the function on a connection that is being opened.
///
/// # Safety
/// As [`define`].
pub unsafe fn define_on(db: *mut Connection) -> c_int {
    // SAFETY: by contract.
    unsafe { define(db, &FUNCTIONS, &[]) }
}
