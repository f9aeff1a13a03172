//! SQLite's temporary files while they are open: how long they are, and whether a text can be read in them.
//!
//! They lose their name as soon as they are made (sqlite.org/tempfiles.html, 2), or never have one (O_TMPFILE, where the
//! file system has it: open(2)), so they are found by this process's open files.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use pellucid_lab_measure::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// What SQLite's names of temporary files begin with.
const NAME: &str = "etilqs_";
/// What proc(5) shows behind the name of a file that has none.
const DELETED: &str = " (deleted)";
/// Of each file that much is looked through.
const LOOKED_AT_BYTES: u64 = 1 << 20;

/// What was seen at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Temporary {
    /// Length of all files together.
    pub bytes: u64,
    /// Whether one of them shows the text.
    pub is_readable: bool,
}

impl Temporary {
    /// Looks for `text` in the temporary files that this process has open.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn look(text: &str) -> Result<Self> {
        Self::among(Path::new("/proc/self/fd"), text).map_err(Error::io("/proc/self/fd"))
    }

    fn among(open: &Path, text: &str) -> std::io::Result<Self> {
        let mut seen = Self::default();
        for entry in fs::read_dir(open)? {
            let path = entry?.path();
            // One that was closed meanwhile, such as that of the directory itself, is gone.
            let Ok(target) = fs::read_link(&path) else { continue };
            let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !is_temporary(&name) {
                continue;
            }
            let file = match File::open(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            seen.bytes += file.metadata()?.len();
            let mut bytes = Vec::new();
            file.take(LOOKED_AT_BYTES).read_to_end(&mut bytes)?;
            seen.is_readable |= bytes.windows(text.len()).any(|window| window == text.as_bytes());
        }
        Ok(seen)
    }

    /// What was seen at several moments: the longest, and whether the text was seen at any.
    pub fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.max(other.bytes),
            is_readable: self.is_readable || other.is_readable,
        }
    }
}

/// `etilqs_0123456789abcdef`, or the number of a file that never had a name: `#395569 (deleted)`.
fn is_temporary(name: &str) -> bool {
    let number = name.strip_prefix('#').and_then(|rest| rest.strip_suffix(DELETED));
    name.starts_with(NAME)
        || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_temporary_files_are_looked_at() {
        let (files, open) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (number, (name, text)) in
            [("etilqs_1", "sealed"), ("etilqs_2", "a word of it"), ("app.db", "a word of it")]
                .into_iter()
                .enumerate()
        {
            let file = files.path().join(name);
            fs::write(&file, text).unwrap();
            std::os::unix::fs::symlink(&file, open.path().join(number.to_string())).unwrap();
        }
        let seen = |text| Temporary::among(open.path(), text).unwrap();
        assert_eq!(seen("word"), Temporary { bytes: 18, is_readable: true });
        assert_eq!(seen("other"), Temporary { bytes: 18, is_readable: false });
        assert_eq!(seen("sealed").and(seen("other")), seen("sealed"));
    }

    #[test]
    fn a_file_without_a_name_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("etilqs_of_a_test");
        fs::write(&path, "Lantern").unwrap();
        let kept = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let seen = Temporary::look("Lantern").unwrap();
        assert!(seen.is_readable && seen.bytes >= 7, "{seen:?}");
        drop(kept);
        let mut kept = tempfile::tempfile_in(dir.path()).unwrap();
        kept.write_all(b"Juniper").unwrap();
        assert!(Temporary::look("Juniper").unwrap().is_readable);
        assert!(is_temporary("#395569 (deleted)") && is_temporary("etilqs_0f (deleted)"));
        assert!(!is_temporary("#a (deleted)") && !is_temporary("app.db (deleted)"));
    }
}
