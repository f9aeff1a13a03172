//! `pellucid extension`: where the loadable extension is.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pellucid::shown::Shown;

use crate::output::{Failure, Id, Output};

/// The library's file name; SQLite derives the entry point from it.
pub const FILE_NAME: &str = "libpellucid.so";
const ENTRY_POINT: &str = "sqlite3_pellucid_init";
const VFS: &str = "pellucid";

/// Print the path of the loadable SQLite extension
///
/// Example: `sqlite3 -cmd ".load $(pellucid extension)" -cmd ".open app.db"`
#[derive(Debug, clap::Args)]
pub struct ExtensionArgs {}

/// Runs the command: the path, or with `--json` also entry point and VFS.
///
/// # Errors
/// [`Failure`] if there is no extension to use.
pub fn run(output: &Output) -> Result<ExitCode, Failure> {
    let path =
        locate().map_err(|missing| Failure::new(Id::LibraryMissing, &missing, missing.hint()))?;
    if output.json {
        output.facts(&serde_json::json!({ "path": crate::output::name(&path), "entry_point": ENTRY_POINT, "vfs": VFS }));
        return Ok(ExitCode::SUCCESS);
    }
    output.path(&path)?;
    Ok(ExitCode::SUCCESS)
}

/// Why there is no extension to use.
#[derive(Debug)]
pub enum Missing {
    /// `PELLUCID_EXTENSION` names something that is not there.
    Named(PathBuf, std::io::Error),
    /// Nothing in the usual places.
    Nowhere(Vec<PathBuf>),
    /// Others may change or exchange what would be loaded.
    Untrusted(pellucid::Error),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Named(path, error) => {
                write!(f, "`PELLUCID_EXTENSION` names `{}`: {error}", path.shown())
            }
            Missing::Nowhere(_) => write!(f, "`{FILE_NAME}` was not found"),
            Missing::Untrusted(error) => write!(f, "the library is not loaded: {error}"),
        }
    }
}

impl Missing {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Missing::Named(..) => format!("set it to the path of `{FILE_NAME}`, or unset it"),
            Missing::Nowhere(tried) if tried.is_empty() => format!(
                "it lies beside the program, and without `/proc` the program does not know where it is itself: mount `/proc`, \
                 or set `PELLUCID_EXTENSION` to the path of `{FILE_NAME}`"
            ),
            Missing::Nowhere(tried) => {
                let tried: Vec<_> =
                    tried.iter().map(|path| format!("`{}`", path.shown())).collect();
                format!(
                    "looked for {}; build it by `cargo build --release -p pellucid-extension` or set `PELLUCID_EXTENSION`",
                    tried.join(" and ")
                )
            }
            Missing::Untrusted(_) => {
                "it and every directory on its way have to be yours or root's, and nobody else's to write to".to_owned()
            }
        }
    }
}

/// Finds the library: `PELLUCID_EXTENSION`, beside the program, or in `../lib/pellucid` from there.
///
/// # Errors
/// [`Missing`], also for a library that others could exchange.
pub fn locate() -> Result<PathBuf, Missing> {
    match std::env::var_os("PELLUCID_EXTENSION").filter(|path| !path.is_empty()) {
        Some(path) => named(path),
        None => usual(),
    }
}

fn named(path: OsString) -> Result<PathBuf, Missing> {
    let path = PathBuf::from(path);
    pellucid_files::trusted::check(&path).map_err(Missing::Untrusted)?;
    let found = path.canonicalize().map_err(|error| Missing::Named(path, error))?;
    if found.is_file() {
        return Ok(found);
    }
    Err(Missing::Named(found, std::io::Error::other("not a file")))
}

fn usual() -> Result<PathBuf, Missing> {
    let mut tried = Vec::new();
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    if let Some(directory) = program.as_deref().ok().and_then(Path::parent) {
        for place in [directory.join(FILE_NAME), directory.join("../lib/pellucid").join(FILE_NAME)]
        {
            match place.canonicalize() {
                Ok(found) if found.is_file() => {
                    pellucid_files::trusted::check(&place).map_err(Missing::Untrusted)?;
                    return Ok(found);
                }
                _ => tried.push(place),
            }
        }
    }
    Err(Missing::Nowhere(tried))
}
