//! SQL functions of the extension, on the connection that loads it.
//!
//! `pellucid_encrypt()` and `pellucid_encrypt(CERTIFICATE)` encrypt the main database of the connection in place, with
//! the collations and functions that the application defined on it.
//!
//! `pellucid_mark(NAME)` and `pellucid_mark(NAME, DESCRIPTION)` give the commit of the transaction under way a mark, by which
//! `pellucid restore --at mark:NAME` finds it. They return the name.
//!
//! `pellucid_last_error()` takes the last line that the shim logged for the calling thread, for a program that tells its
//! user more than SQLite's words for a number: JSON with SQLite's code and the line; empty text if there is none. Each line is
//! given once.

use std::time::Duration;

use pellucid::shown::Shown;
use pellucid::{Algorithm, Error, Subject};
use pellucid_host::code::last_report;
use pellucid_host::connection::Handle;
use pellucid_host::function::{Call, Function};
use pellucid_host::lending::Lender;
use pellucid_host::{DatabaseError, Options};
use pellucid_vfs::seal_request::{Birth, Protection};
use pellucid_vfs::{mark, named_file, opened};

use crate::convert::encrypt::encrypt;

/// How long to wait for other connections.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The functions that the extension defines.
pub static FUNCTIONS: [Function; 5] = [
    Function { name: c"pellucid_encrypt", arguments: 0, call: pellucid_encrypt },
    Function { name: c"pellucid_encrypt", arguments: 1, call: pellucid_encrypt },
    Function { name: c"pellucid_last_error", arguments: 0, call: pellucid_last_error },
    Function { name: c"pellucid_mark", arguments: 1, call: mark::call },
    Function { name: c"pellucid_mark", arguments: 2, call: mark::call },
];

fn pellucid_last_error(_: &Call<'_>) -> Result<String, String> {
    Ok(last_report().map_or_else(String::new, |report| {
        serde_json::json!({ "code": report.code, "line": report.line }).to_string()
    }))
}

fn pellucid_encrypt(call: &Call<'_>) -> Result<String, String> {
    call.lending(|lender| encrypt_main(lender, call.text(0))).map_err(|error| error.to_string())
}

fn encrypt_main(lender: Lender<'_>, certificate: Option<String>) -> Result<String, DatabaseError> {
    let own = lender.handle();
    let refuse = |why: &'static str| Error::misuse(Subject::Container, why);
    if !own.autocommit() {
        return Err(refuse("the connection is inside a transaction; commit or roll it back").into());
    }
    // SQLite has no file object before it has opened the file.
    own.number("SELECT count(*) FROM main.sqlite_schema")?;
    if let Some(over) = opened::over(&own)? {
        return Err(over.refuse_in_place().into());
    }
    let path = named_file::of(&own, c"main").ok_or_else(|| {
        refuse(
            "the main database is not a file that this connection has open by the system's VFS; `pellucid encrypt` \
             encrypts a file by its name",
        )
    })?;
    if opened::sealed(&own)?.is_some() {
        return Err(Error::misuse(Subject::File(path), "it is encrypted already").into());
    }
    let protections = match certificate {
        Some(name) => vec![Protection::Certificate(Some(name))],
        None => Protection::from_environment()?,
    };
    let birth = || Ok(Birth::new(Algorithm::Aes256, &protections)?);
    let was_wal = leave_wal(&own, &path)?;
    let options =
        Options { lender: Some(lender.clone()), was_wal, ..Options::new(TIMEOUT, Vec::new()) };
    let encrypted = encrypt(&path, birth, &options, &mut |_, _, _| ());
    if encrypted.is_err() && was_wal {
        // The database was not changed; the journal mode becomes what it was.
        let _ = own.text("PRAGMA main.journal_mode=WAL");
    }
    encrypted?;
    Ok("encrypted; open it again through the VFS pellucid".to_owned())
}

/// Leaves WAL mode on the calling connection. In WAL mode the connection keeps a lock while it is
/// open, so the conversion would wait for it.
fn leave_wal(own: &Handle<'_>, path: &std::path::Path) -> Result<bool, DatabaseError> {
    if own.text("PRAGMA main.journal_mode")? != "wal" {
        return Ok(false);
    }
    let in_use = || DatabaseError::InUse {
        file: path.shown().to_string(),
        holders: pellucid_host::holders::find(path),
    };
    match own.text("PRAGMA main.journal_mode=DELETE") {
        Ok(mode) if mode == "delete" => Ok(true),
        Ok(_) => Err(in_use()),
        Err(error) if Handle::is_busy(&error) => Err(in_use()),
        Err(error) => Err(error),
    }
}
