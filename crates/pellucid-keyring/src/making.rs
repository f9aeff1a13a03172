//! One maker at a time of what an instance has from its beginning: the keyring with its master keys, `msdb.db` and `master.db`.
//!
//! A maker holds `making.lock`, in the instance's directory, from before the directory `keyring` is there. So whoever finds a keyring
//! without keys knows whether a process is making them, and waits for it, or whether one was interrupted. Who finds all there takes no
//! lock. Order: `making.lock`, then `keyring/lock`, then `keyring/events.lock`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::error::{Error, Result, Subject};
use pellucid_files::locked::Locked;
use pellucid_files::paths::is_there;

use super::instance::{self, MADE_BY_SCRIPTS};
use super::master;

/// As long as anybody waits. What is made takes less than a second; of many who begin at once each looks for a moment.
const PATIENCE: Duration = Duration::from_secs(60);

/// The right to make, given back on drop.
#[derive(Debug)]
pub struct Making(#[allow(dead_code, reason = "dropping it gives the lock back")] Locked);

impl Making {
    /// Waits until nobody else makes something in the instance at `home`, whose directory is made if it is not there. What was missing
    /// may be there then.
    ///
    /// # Errors
    /// [`Error::Misuse`] if others could exchange the directory; [`Error::Io`], `TimedOut` if another process does not end.
    pub fn begin(home: &Path) -> Result<Self> {
        instance::make_home(home)?;
        let path = path(home);
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let held = Locked::wait_for(&path, PATIENCE).map_err(io)?;
        held.map(Self).ok_or_else(|| {
            let told = "another process holds it for a minute and makes the keyring or `msdb.db`: `fuser` names it; end that, and do \
                        this again";
            io(std::io::Error::new(std::io::ErrorKind::TimedOut, told))
        })
    }

    /// Waits for the process that makes the keyring, where one without keys is there; nothing is made by that. Who may not look at the
    /// lock, or waits in vain, goes on. Returns whether there was one without keys.
    pub(super) fn wait_if_begun(home: &Path) -> bool {
        let is_begun = instance::has_keyring(home) && is_unmade(home).unwrap_or(false);
        if is_begun {
            let _ = Locked::wait_until_free(&path(home), PATIENCE);
        }
        is_begun
    }
}

fn path(home: &Path) -> PathBuf {
    home.join("making.lock")
}

/// Whether there is no database master key, nor anything in the keyring that needs one: nobody has begun, or nobody has ended, or all
/// of it is lost.
///
/// # Errors
/// [`Error::Io`] where the caller may not look.
pub(super) fn is_unmade(home: &Path) -> Result<bool> {
    if !instance::has_keyring(home) {
        return Ok(true);
    }
    let keys = [master::master_path(home), master::next_file(home).path().to_owned()];
    Ok(!keys.iter().any(|key| is_there(key))
        && !master::has_children(home)?
        && master::passwords(home)?.is_empty())
}

/// The instance's own databases, if one is there. They are sealed under its keys and made after them: where they are and the keys are
/// not, those are lost, and no others take their place.
pub(super) fn sealed_database(home: &Path) -> Option<PathBuf> {
    ["msdb.db", MADE_BY_SCRIPTS].map(|name| home.join(name)).into_iter().find(|path| is_there(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keyring;

    #[test]
    fn of_many_that_make_a_keyring_at_once_one_does() {
        for _ in 0..20 {
            let place = tempfile::tempdir().unwrap();
            let home = place.path().join("keys");
            let made: Vec<_> = std::thread::scope(|scope| {
                let make = || {
                    // As a program does that finds one and makes nothing.
                    let opened = instance::has_keyring(&home).then(|| Keyring::open(&home));
                    opened.transpose().unwrap();
                    Keyring::open_or_create(&home).unwrap().1
                };
                let each: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
                each.into_iter().map(|one| one.join().unwrap()).collect()
            });
            let makers = made.iter().filter(|made| made.service_master_key.is_some());
            assert_eq!(makers.count(), 1, "{made:?}");
            let makers = made.iter().filter(|made| made.database_master_key.is_some());
            assert_eq!(makers.count(), 1, "{made:?}");
        }
    }

    #[test]
    fn what_an_instance_with_databases_has_lost_is_not_made_anew() {
        let losses: [&[&str]; 4] = [
            &["keyring", "service.key"],
            &["keyring"],
            &["service.key"],
            &["keyring/master.key", "keyring/databases", "keyring/history"],
        ];
        for (database, lost, is_emptied) in ["msdb.db", MADE_BY_SCRIPTS]
            .into_iter()
            .flat_map(|database| losses.map(|lost| (database, lost)))
            .flat_map(|(database, lost)| [(database, lost, false), (database, lost, true)])
        {
            let place = tempfile::tempdir().unwrap();
            let home = place.path();
            Keyring::open_or_create(home).unwrap();
            std::fs::write(home.join(database), "").unwrap();
            for name in lost {
                let path = home.join(name);
                if path.is_dir() {
                    std::fs::remove_dir_all(path).unwrap();
                } else if path.exists() {
                    std::fs::remove_file(path).unwrap();
                }
            }
            if is_emptied {
                std::fs::create_dir_all(home.join("keyring")).unwrap();
            }
            let what = format!("{database} {lost:?} {is_emptied}");
            let files = || {
                ["service.key", "keyring/master.key"]
                    .map(|name| std::fs::read(home.join(name)).ok())
            };
            let before = files();
            let told = Keyring::open_or_create(home).unwrap_err();
            assert!(matches!(told, Error::MissingKey { .. }), "{what}: {told:?}");
            assert!(
                !Keyring::open(home).unwrap_err().to_string().contains("interrupted"),
                "{what}"
            );
            assert_eq!(files(), before, "{what}");
        }
    }

    #[test]
    fn who_finds_all_there_takes_no_lock() {
        let home = tempfile::tempdir().unwrap();
        Keyring::open_or_create(home.path()).unwrap();
        std::fs::remove_file(path(home.path())).unwrap();
        Keyring::open_or_create(home.path()).unwrap();
        Keyring::open(home.path()).unwrap();
        assert!(!path(home.path()).exists());
    }
}
