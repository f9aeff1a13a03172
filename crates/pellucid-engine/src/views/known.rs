//! The databases that the views show: those attached to the connection, and those that the keyring
//! knows.
//!
//! A file that this process may have open is never opened behind SQLite's back. Attached databases
//! are read by their own file object, all others by the lower VFS, which keeps the locks of other
//! connections when it closes a file.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pellucid::hash::Sha256;
use pellucid::header::REGION_BYTES;
use pellucid::shown::Shown;
use pellucid_files::paths::copy_path;
use pellucid_host::code::{Code, Outcome};
use pellucid_host::connection::Handle;
use pellucid_vfs::named_file;
use pellucid_vfs::open_file::Beginning;
use pellucid_vfs::opened::{self, ReadFile};

use super::keyring;
use crate::inspect::{kind_of, Kind};

/// A database and the kind of its file.
#[derive(Debug)]
pub struct Known {
    /// Its path.
    pub path: PathBuf,
    /// Its schema name on the connection, if it is attached.
    pub schema: Option<String>,
    /// Its kind by its first bytes, or why they could not be read.
    pub found: Result<Kind, String>,
}

/// All databases, by path: those of the connection and those of the keyring.
pub fn databases(connection: &Handle<'_>) -> Vec<Known> {
    let mut known = BTreeMap::new();
    for (schema, path) in attached(connection) {
        let found = look_at_attached(connection, &schema, &path);
        let schema = Some(schema.to_string_lossy().into_owned());
        known.entry(path.clone()).or_insert(Known { path, schema, found });
    }
    match keyring() {
        None => {}
        Some(Err((path, error))) => {
            known.insert(path.clone(), Known { path, schema: None, found: Err(error) });
        }
        Some(Ok(keyring)) => match keyring.each_database() {
            Ok(databases) => {
                for (file, memory) in databases {
                    let (path, found) = match memory {
                        Ok(memory) => (memory.path, None),
                        Err(error) => (file, Some(Err(error.to_string()))),
                    };
                    // A database that is gone is not shown.
                    if path.as_os_str().is_empty() || matches!(path.try_exists(), Ok(false)) {
                        continue;
                    }
                    known.entry(path.clone()).or_insert_with(|| {
                        let found = found.unwrap_or_else(|| look_at(&path));
                        Known { path, schema: None, found }
                    });
                }
            }
            Err(error) => {
                let path = keyring.home().to_owned();
                let found = Err(error.to_string());
                known.insert(path.clone(), Known { path, schema: None, found });
            }
        },
    }
    known.into_values().collect()
}

/// Returns the names and files of the connection's databases that lie in a file. A database in
/// memory has a name too, which may be another file's.
fn attached(connection: &Handle<'_>) -> Vec<(CString, PathBuf)> {
    let of = |schema: CString| named_file::of(connection, &schema).map(|path| (schema, path));
    connection.schemas().into_iter().filter_map(of).collect()
}

fn look_at_attached(connection: &Handle<'_>, schema: &CStr, path: &Path) -> Result<Kind, String> {
    match opened::beginning(connection, schema, REGION_BYTES) {
        Ok(Some(beginning)) => kind(beginning, path),
        // It was opened without the shim, so SQLite could not read it if it were sealed.
        _ => Ok(Kind::Plain),
    }
}

/// Makes a number for a database out of its path. It is the same in every process.
pub fn database_id(path: &Path) -> i64 {
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_bytes());
    // As in SQL Server, it is a positive `int`.
    let digest = hash.finish();
    i64::from(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]) >> 1)
}

fn look_at(path: &Path) -> Result<Kind, String> {
    let failed = |why: &dyn std::fmt::Display| format!("`{}`: {why}", path.shown());
    // Opening something else than a file might block.
    if !std::fs::metadata(path).map_err(|error| failed(&error))?.is_file() {
        return Err(failed(&"not a regular file"));
    }
    let opened = ReadFile::open(path)
        .map_err(|Code(code)| failed(&format!("cannot be opened (SQLite's result code {code})")))?;
    kind(opened.file().beginning(REGION_BYTES), path)
}

fn kind(beginning: Outcome<Beginning>, path: &Path) -> Result<Kind, String> {
    let (region, bytes) = beginning.map_err(|Code(code)| {
        format!("`{}`: cannot be read (SQLite's result code {code})", path.shown())
    })?;
    Ok(kind_of(&region, copy_path(path).exists(), bytes <= REGION_BYTES))
}
