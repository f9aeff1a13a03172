//! Tables that any SQLite client can select from: the databases, certificates and keys at hand, and
//! their state.
//!
//! `pellucid_databases`, `pellucid_certificates` and `pellucid_encryption_keys` have the columns of
//! SQL Server's `sys.databases`, `sys.certificates` and `sys.dm_database_encryption_keys`, as far
//! as those have a source here, and some of their own. They show the parts of headers in clear and
//! what the keyring knows, but no key. An error of one row stands in its column `error` and hides
//! no other row.

mod certificates;
mod databases;
mod encryption_keys;
mod known;

use pellucid_host::table::View;
use pellucid_keyring::Keyring;

/// The tables.
pub static VIEWS: [View; 3] = [databases::VIEW, certificates::VIEW, encryption_keys::VIEW];

/// Opens the keyring, or returns its error and its path. `None` if there is none.
fn keyring() -> Option<Result<Keyring, (std::path::PathBuf, String)>> {
    let home = Keyring::locate().ok().filter(|home| Keyring::is_at(home))?;
    Some(Keyring::open(&home).map_err(|error| (home, error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schema_says_how_many_columns_it_has() {
        for view in &VIEWS {
            let text = view.schema.to_str().unwrap();
            assert!(text.starts_with("CREATE TABLE x(") && text.contains("error TEXT"), "{text}");
        }
    }
}
