//! What the prompt remembers: a file of the user's alone, without secrets.

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::sql::secret;

/// Lines kept at most.
pub const LINES_MOST: usize = 1000;

/// The file, its directory made: below `XDG_STATE_HOME`, or in `~/.local/state`. None where neither is known.
pub fn file() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let directory = state_directory(of("XDG_STATE_HOME"), of("HOME"))?.join("pellucid");
    make(&directory).ok()?;
    Some(directory.join("sql_history"))
}

/// A relative `XDG_STATE_HOME` does not count, as the specification says.
fn state_directory(state: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    state.filter(absolute).or_else(|| Some(home.filter(absolute)?.join(".local/state")))
}

/// For the user alone.
fn make(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Whether `line` may be kept, which comes behind the lines `pending` of its batch.
///
/// Not if either holds a literal behind PASSWORD or SECRET, also one that only the two of them make; and not the value
/// of a variable, which may be one, nor a line of `:connect`, which may have one.
pub fn may_keep(pending: &str, line: &str) -> bool {
    let batch = Zeroizing::new(format!("{pending}{line}\n"));
    // What was pasted has several lines.
    let is_value = |line: &str| {
        line.split_whitespace().next().is_some_and(|word| {
            word.eq_ignore_ascii_case(":setvar") || word.eq_ignore_ascii_case(":connect")
        })
    };
    !line.trim().is_empty() && !line.lines().any(is_value) && !secret::is_shown(&batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_kept() {
        for (pending, line) in [
            ("", "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'x'"),
            ("", "create credential c with identity = 'i', secret = N'x'"),
            ("", "CREATE CERTIFICATE c FROM BINARY = 0x30 WITH PRIVATE KEY (BINARY = 0x3082)"),
            ("CREATE MASTER KEY ENCRYPTION BY PASSWORD =\n", "  'x'"),
            ("", "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'x"),
            ("OPEN MASTER KEY DECRYPTION BY PASSWORD = 'x\n", "y'"),
            ("", "EXEC('OPEN MASTER KEY DECRYPTION BY PASSWORD = ''x''')"),
            ("", ":setvar pw x"),
            ("", ":connect . -U sa -P x"),
            ("", "PRINT 'a'\n:SETVAR pw x\nGO"),
            ("", "   "),
        ] {
            assert!(!may_keep(pending, line), "{pending}{line}");
        }
    }

    #[test]
    fn everything_else_is_kept() {
        for (pending, line) in [
            ("", "SELECT name FROM sys.databases"),
            ("", "CREATE MASTER KEY ENCRYPTION BY PASSWORD ="),
            ("", "OPEN MASTER KEY DECRYPTION BY PASSWORD = '$(pw)'"),
            ("BACKUP DATABASE a\n", "TO DISK = 'a.bak'"),
            ("", "GO"),
            ("", ":r keys.sql"),
        ] {
            assert!(may_keep(pending, line), "{pending}{line}");
        }
    }

    #[test]
    fn it_lies_in_the_users_state() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(state_directory(path("/s"), path("/h")), path("/s"));
        assert_eq!(state_directory(path("s"), path("/h")), path("/h/.local/state"));
        assert_eq!(state_directory(None, None), None);
    }
}
