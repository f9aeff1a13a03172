//! The logs that lie where a database is restored to, set aside: SQLite would take them for the
//! restored one's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_host::folder::{name_of, Folder};
use pellucid_host::DatabaseError;

/// The suffix under which the logs of an unreadable database are set aside.
const ASIDE: &str = ".pellucid-old";

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// A WAL and a journal that were set aside under other names.
#[derive(Debug, Default)]
pub struct Aside {
    moved: Vec<(PathBuf, PathBuf)>,
    /// Files that an interrupted restore left under those names.
    left: Vec<PathBuf>,
}

impl Aside {
    /// Gives the logs their names back. If another file has such a name by now, the log stays
    /// aside, and the returned error says so.
    pub fn put_back(self, folder: &Folder, error: impl Into<DatabaseError>) -> DatabaseError {
        let mut error = error.into();
        for (name, aside) in self.moved {
            let renamed = folder.rename_new(&name_of(&aside), &name_of(&name));
            let Err(why) = renamed else { continue };
            let cause = format!("{error}; `{}` stays under this name: {why}", name.shown());
            error = Error::io(Subject::File(aside), std::io::Error::other(cause)).into();
        }
        error
    }

    /// Removes the logs, because their database is gone.
    pub fn remove(self, folder: &Folder) {
        for aside in self.moved.into_iter().map(|(_, aside)| aside).chain(self.left) {
            // No program reads them under that name, so an error does not matter.
            let _ = folder.remove_name(&name_of(&aside));
        }
    }
}

/// Sets `which` of the logs of the database at `to`, in `folder`, aside: all of them, or none.
///
/// # Errors
/// [`Error::Io`].
pub fn set_logs_aside(
    folder: &Folder,
    to: &Path,
    which: &[PathBuf],
) -> std::result::Result<Aside, DatabaseError> {
    let mut aside = Aside::default();
    let mut outcome = Ok(());
    for name in log_names(to) {
        let other = with_suffix(&name, ASIDE);
        if !which.contains(&name) || !folder.has(&name_of(&name)) {
            aside.left.extend(Some(other).filter(|other| folder.has(&name_of(other))));
            continue;
        }
        outcome = folder
            .rename_name(&name_of(&name), &name_of(&other))
            .map_err(|error| Error::io(Subject::File(name.clone()), error));
        if outcome.is_err() {
            break;
        }
        aside.moved.push((name, other));
    }
    if outcome.is_ok() && !aside.moved.is_empty() {
        outcome = folder.sync().map_err(|error| Error::io(Subject::File(to.to_owned()), error));
    }
    match outcome {
        Ok(()) => Ok(aside),
        Err(error) => Err(aside.put_back(folder, error)),
    }
}

/// Returns the files that SQLite would take for the logs of a database at `to`.
pub fn logs(folder: &Folder, to: &Path) -> Vec<PathBuf> {
    log_names(to).into_iter().filter(|name| folder.has(&name_of(name))).collect()
}

fn log_names(to: &Path) -> [PathBuf; 3] {
    ["-wal", "-journal", "-shm"].map(|suffix| with_suffix(to, suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_moved_all_or_none_and_come_back() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("app.db");
        let folder = Folder::of(&to).unwrap();
        let [wal, journal, shm] = log_names(&to);
        std::fs::write(&wal, "the log").unwrap();
        std::fs::write(&journal, "the journal").unwrap();
        // A rename does not replace a directory that is not empty.
        let in_the_way = with_suffix(&journal, ASIDE);
        std::fs::create_dir_all(in_the_way.join("x")).unwrap();
        let all = || logs(&folder, &to);
        assert!(set_logs_aside(&folder, &to, &all()).is_err());
        assert_eq!(std::fs::read(&wal).unwrap(), b"the log");
        assert_eq!(std::fs::read(&journal).unwrap(), b"the journal");

        std::fs::remove_dir_all(in_the_way).unwrap();
        std::fs::write(with_suffix(&shm, ASIDE), "left by another restore").unwrap();
        let aside = set_logs_aside(&folder, &to, &all()).unwrap();
        assert_eq!(logs(&folder, &to), Vec::<PathBuf>::new());
        assert_eq!(aside.put_back(&folder, the_error()).to_string(), the_error().to_string());
        assert_eq!(logs(&folder, &to), [wal, journal]);
        set_logs_aside(&folder, &to, &all()).unwrap().remove(&folder);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    fn the_error() -> Error {
        Error::misuse(Subject::Container, "the first error")
    }

    #[test]
    fn a_log_that_a_program_has_begun_is_neither_moved_nor_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("app.db");
        let folder = Folder::of(&to).unwrap();
        let [wal, journal, _] = log_names(&to);
        std::fs::write(&wal, "of a database that is gone").unwrap();
        std::fs::write(&journal, "begun after the look").unwrap();
        let aside = set_logs_aside(&folder, &to, std::slice::from_ref(&wal)).unwrap();
        assert!(!wal.exists());
        assert_eq!(std::fs::read(&journal).unwrap(), b"begun after the look");
        std::fs::write(&wal, "the program's").unwrap();
        let told = aside.put_back(&folder, the_error()).to_string();
        let stays = with_suffix(&wal, ASIDE);
        for said in ["the first error", wal.to_str().unwrap(), stays.to_str().unwrap()] {
            assert!(told.contains(said), "{told}");
        }
        assert_eq!(std::fs::read(&wal).unwrap(), b"the program's");
        assert_eq!(std::fs::read(&stays).unwrap(), b"of a database that is gone");
    }
}
