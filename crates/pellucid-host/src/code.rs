//! Result codes: the table from typed errors to SQLite's codes, and the log line of each error.
//!
//! The same table stands in docs/guide/errors.md; a test compares them.

use std::ffi::c_int;
use std::path::Path;

use pellucid::shown::{printable, Shown};
use pellucid::Error;

use crate::api::Api;
use crate::ffi;

/// An SQLite result code other than `SQLITE_OK`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub c_int);

/// The result of a function whose error goes to SQLite.
pub type Outcome<T> = Result<T, Code>;

impl Code {
    /// Turns `SQLITE_OK` into `Ok`.
    ///
    /// # Errors
    /// Any other code.
    pub fn check(code: c_int) -> Outcome<()> {
        match code {
            ffi::OK => Ok(()),
            code => Err(Code(code)),
        }
    }
}

/// Returns the code that SQLite gets for an error, whatever the file.
pub fn code_of(error: &Error) -> Code {
    Code(match error {
        error if is_out_of_files(error) => ffi::CANTOPEN,
        Error::Io { .. } => ffi::IOERR,
        Error::Corrupt { .. } => ffi::CORRUPT,
        Error::Unauthentic { .. } => ffi::IOERR_DATA,
        Error::WrongKind { .. } => ffi::NOTADB,
        Error::Unsupported { .. } => ffi::CANTOPEN,
        Error::MissingKey { .. } | Error::Message { .. } => ffi::AUTH,
        Error::Replaced { .. } => ffi::AUTH_REPLACED,
        Error::IndexInMemory { .. } => ffi::CANTOPEN_INDEX,
        Error::Misuse { .. } => ffi::PERM,
        Error::LimitReached { .. } => ffi::FULL,
        _ => ffi::ERROR,
    })
}

/// Whether the process, or the system, has no descriptor left: the file may be whole, and is not looked at.
pub fn is_out_of_files(error: &Error) -> bool {
    let system = match error {
        Error::Io { source, .. } => source.raw_os_error(),
        _ => None,
    };
    matches!(system, Some(libc::EMFILE | libc::ENFILE))
}

/// Logs `error` about `file` and returns the code for SQLite.
pub fn report(file: &Path, error: &Error) -> Code {
    let code = code_of(error);
    note(code.0, file, &error.to_string());
    LAST.with_borrow_mut(|last| {
        if let Some(last) = last {
            last.number = error.number();
        }
    });
    code
}

/// The last logged line. SQLite itself returns only a number.
#[derive(Debug, Clone)]
pub struct Report {
    /// SQLite's result code.
    pub code: c_int,
    /// File and cause.
    pub line: String,
    /// SQL Server's number, if it is one of its messages.
    pub number: Option<u16>,
}

thread_local! {
    static LAST: std::cell::RefCell<Option<Report>> = const { std::cell::RefCell::new(None) };
}

/// Takes the last line that this thread logged, for a program that reports more than SQLite does.
pub fn last_report() -> Option<Report> {
    LAST.with_borrow_mut(Option::take)
}

/// Lines that an opening told, with [`ffi::NOTICE`], and nobody has taken yet. Bounded: a program may never take them.
static NOTICES: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
const NOTICES_MOST: usize = 64;

/// Takes what openings in this process told, each once, for a program that says more than SQLite does.
pub fn take_notices() -> Vec<String> {
    std::mem::take(&mut *NOTICES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Writes one line about `file` to SQLite's log and, as `PELLUCID_LOG` says, to standard error or
/// to syslog. It is one line: control characters of names are escaped.
pub fn note(code: c_int, file: &Path, what: &str) {
    let what = printable(what);
    let line = format!("pellucid: {}: {what}", file.shown());
    if let Some(api) = Api::get() {
        api.log(code, &line);
    }
    LAST.with_borrow_mut(|last| {
        let line = format!("`{}`: {what}", file.shown());
        *last = Some(Report { code, line, number: None });
    });
    if code == ffi::NOTICE {
        let mut notices = NOTICES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let told = format!("`{}`: {what}", file.display());
        if notices.len() < NOTICES_MOST && !notices.contains(&told) {
            notices.push(told);
        }
    }
    let to = std::env::var_os("PELLUCID_LOG").unwrap_or_default();
    if to == "stderr" {
        // An error of a closed standard error must not fail the caller's statement.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
    } else if to == "syslog" {
        syslog(&line);
    }
}

/// Writes to syslog by the host's own connection and under its name. The facility is the user's.
fn syslog(line: &str) {
    // It has no NUL: control characters are escaped.
    let Ok(line) = std::ffi::CString::new(line) else { return };
    // SAFETY: the format takes one string, and `line` is one.
    unsafe { libc::syslog(libc::LOG_USER | libc::LOG_WARNING, c"%s".as_ptr(), line.as_ptr()) };
}

#[cfg(test)]
mod tests {
    use pellucid::Subject;

    use super::*;

    #[test]
    fn the_guide_has_the_same_table() {
        let guide = include_str!("../../../docs/guide/errors.md");
        let subject = || Subject::Container;
        let table = [
            ("Io", Error::io(subject(), std::io::Error::other("x"))),
            ("Corrupt", Error::corrupt(subject(), "x")),
            ("Unauthentic", Error::unauthentic(subject(), "x")),
            ("Unsupported", Error::unsupported(subject(), "x")),
            ("MissingKey", Error::missing_key(subject(), "x")),
            ("Replaced", Error::replaced(subject(), "x")),
            ("IndexInMemory", Error::index_in_memory("x")),
            ("Misuse", Error::misuse(subject(), "x")),
            ("LimitReached", Error::limit(subject(), "x")),
        ];
        for (name, error) in table {
            let start = format!("| `{name}` |");
            let line = guide.lines().find(|line| line.starts_with(&start)).unwrap_or_default();
            assert!(line.ends_with(&format!("| {} |", code_of(&error).0)), "{name}: `{line}`");
        }
    }
}
