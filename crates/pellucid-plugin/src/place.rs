//! Where plugins are: in directories of root's alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};
use pellucid::shown::Shown;
use pellucid_files::trusted;

/// The environment variable that names more directories, separated by `:`.
pub const SEARCH: &str = "PELLUCID_PLUGIN_PATH";
/// The environment variable that forbids plugins where it is `0`.
pub const FORBID: &str = "PELLUCID_PLUGINS";

const DIRECTORIES: [&str; 2] = ["/usr/lib/pellucid/plugins", "/usr/local/lib/pellucid/plugins"];
const PREFIX: &str = "pellucid-plugin-";
const NAME_BYTES_MOST: usize = 32;

/// The directories that are looked in, in that order: those of the system, then those that `PELLUCID_PLUGIN_PATH` names by
/// absolute paths.
pub fn directories() -> Vec<PathBuf> {
    let named = std::env::var_os(SEARCH).unwrap_or_default();
    let named = std::env::split_paths(&named).filter(|path| path.is_absolute());
    DIRECTORIES.iter().map(PathBuf::from).chain(named).collect()
}

pub(crate) fn find(name: &str) -> Result<PathBuf> {
    let subject = || Subject::Option(format!("{PREFIX}{name}").into());
    if !is_name(name) {
        return Err(Error::misuse(
            Subject::Option("--plugin".into()),
            "a plugin's name has 1 to 32 of a-z, 0-9 and `-`",
        ));
    }
    if std::env::var_os(FORBID).is_some_and(|value| value == "0") {
        return Err(Error::misuse(subject(), format!("`{FORBID}=0` forbids plugins here")));
    }
    for directory in directories() {
        let file = directory.join(format!("{PREFIX}{name}"));
        match trusted::open_of_root(&file) {
            Ok(_) => return Ok(file),
            Err(Error::Io { source, .. }) if is_absent(&source) => {}
            Err(error) => return Err(error),
        }
    }
    let places: Vec<_> = directories().iter().map(|path| path.shown().to_string()).collect();
    Err(Error::missing_key(
        Subject::Container,
        format!("there is no `{PREFIX}{name}` in {}: install it in one of them", places.join(", ")),
    ))
}

/// The plugins that are there, by name; each with its program, or why it is not taken.
pub fn found() -> BTreeMap<String, Result<PathBuf>> {
    let mut found = BTreeMap::new();
    for directory in directories() {
        for name in names_in(&directory) {
            let path = directory.join(format!("{PREFIX}{name}"));
            let taken = trusted::open_of_root(&path).map(|_| path);
            found.entry(name).or_insert(taken);
        }
    }
    found
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter_map(|name| Some(name.strip_prefix(PREFIX)?.to_owned()))
        .filter(|name| is_name(name))
        .collect()
}

fn is_name(name: &str) -> bool {
    let is_known = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (1..=NAME_BYTES_MOST).contains(&name.len()) && name.bytes().all(is_known)
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}
