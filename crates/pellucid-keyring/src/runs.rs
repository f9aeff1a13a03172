//! What runs over the databases of an instance: a small file in its `run` directory for each scan, for whoever looks on.
//!
//! It decides nothing: whether somebody scans is said by a lock on the database itself, and an entry whose process is
//! gone is known by when that process began. Replaced in one piece and not synced. No key material is in it.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};
use pellucid::hash::hex;
use pellucid::hash::Sha256;
use pellucid::shown::printable;
use rustix::fs::OFlags;

use super::instance;
use super::sealed_file::{rename, write_unsynced};

/// More than any entry has.
const MOST_BYTES: u64 = 65_536;

/// What a scan says of itself, or what was left of one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// The database, by its whole path.
    pub database: PathBuf,
    /// The process.
    pub process: ProcessId,
    /// When the scan was begun by it, in seconds since 1970.
    pub started: u64,
    /// What it was doing, in words.
    pub doing: String,
    /// Who is in its way, in words; empty: nobody.
    pub held_by: String,
    /// Pages looked at.
    pub done: u32,
    /// Pages in all.
    pub pages: u32,
    /// Pages a second since it was begun.
    pub rate: f64,
    /// When this was written.
    pub at: u64,
    /// Why it has stopped, and what to do about it.
    pub stopped: Option<Stopped>,
}

/// Why a scan has stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stopped {
    /// The error.
    pub error: String,
    /// What to do.
    pub hint: String,
}

/// A process, told from every other one that had or will have its number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// When it began, in the kernel's ticks since it was booted.
    pub began: u64,
    /// Which boot.
    pub boot: String,
}

impl ProcessId {
    /// This process; with zeros where there is no `/proc`.
    pub fn own() -> Self {
        let pid = std::process::id();
        Self { pid, began: began(pid).unwrap_or(0), boot: boot() }
    }

    /// Whether it is still running.
    pub fn is_alive(&self) -> bool {
        self.boot == boot() && began(self.pid).is_some_and(|began| began == self.began)
    }
}

/// proc_pid_stat(5), field 22; the second field is a name and may hold anything. None for one that is no more than a
/// number its parent has not asked for yet.
fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    fields.nth(18)?.parse().ok().filter(|_| !matches!(state, "Z" | "X"))
}

fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

impl Run {
    /// An entry for `database` by this process.
    pub fn begin(database: &Path, now: u64) -> Self {
        Self {
            database: whole(database),
            process: ProcessId::own(),
            started: now,
            at: now,
            ..Self::default()
        }
    }

    /// What is kept in the instance `home` about a scan of `database`. What cannot be read as an entry is none.
    pub fn find(home: &Path, database: &Path) -> Option<Self> {
        Self::read(&entry_path(home, database))
    }

    fn read(path: &Path) -> Option<Self> {
        // Members of the group may put anything there, and something else a moment later: a link is not followed, a pipe
        // not waited for, and what was opened is looked at.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file =
            OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > MOST_BYTES {
            return None;
        }
        Self::parse(&bytes)
    }

    /// Puts it into the instance, over what was there.
    ///
    /// # Errors
    /// [`Error::Io`]: the instance may be one that the caller can only read.
    pub fn put(&self, home: &Path) -> Result<()> {
        let path = entry_path(home, &self.database);
        if !directory(home).is_dir() {
            instance::make_run_directory(home, &directory(home))?;
        }
        let temporary = write_unsynced(&path, self.encode().as_bytes(), instance::group(home))?;
        rename(&temporary, &path)
    }

    /// Takes the entry of `database` away.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(home: &Path, database: &Path) -> Result<()> {
        let path = entry_path(home, database);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io(Subject::File(path), error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the entries of databases that are not there any more, and what a killed writer left behind.
    pub fn sweep(home: &Path) {
        let Ok(entries) = std::fs::read_dir(directory(home)) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().as_bytes();
            let gone = match name.starts_with(b"scan-") {
                // A path that is no text, or has control characters, is not in the entry as it is.
                true => Self::read(&path).is_some_and(|run| {
                    !run.process.is_alive()
                        && !run.database.exists()
                        && entry_path(home, &run.database) == path
                }),
                false => name.starts_with(b".scan-") && is_old(&path),
            };
            if gone {
                let _ = std::fs::remove_file(&path);
            }
        }
    }

    fn encode(&self) -> String {
        let mut facts = serde_json::json!({
            "database": self.database.to_string_lossy(),
            "pid": self.process.pid,
            "process_began": self.process.began,
            "boot": self.process.boot,
            "started": self.started,
            "doing": self.doing,
            "held_by": self.held_by,
            "done": self.done,
            "pages": self.pages,
            "pages_per_second": self.rate,
            "at": self.at,
        });
        if let Some(stopped) = &self.stopped {
            facts["error"] = stopped.error.as_str().into();
            facts["hint"] = stopped.hint.as_str().into();
        }
        facts.to_string()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let facts: serde_json::Value = serde_json::from_slice(bytes).ok()?;
        let number = |name: &str| facts[name].as_u64();
        let short = |name: &str| number(name).and_then(|number| u32::try_from(number).ok());
        // Members of the group of a system instance may write it, and it is shown at a terminal.
        let text = |name: &str| facts[name].as_str().map(|text| printable(text).into_owned());
        Some(Self {
            database: text("database")?.into(),
            process: ProcessId {
                pid: short("pid")?,
                began: number("process_began")?,
                boot: text("boot")?,
            },
            started: number("started")?,
            doing: text("doing")?,
            held_by: text("held_by")?,
            done: short("done")?,
            pages: short("pages")?,
            rate: facts["pages_per_second"].as_f64()?,
            at: number("at")?,
            stopped: text("error")
                .map(|error| Stopped { error, hint: text("hint").unwrap_or_default() }),
        })
    }
}

fn directory(home: &Path) -> PathBuf {
    home.join("run")
}

fn whole(database: &Path) -> PathBuf {
    database.canonicalize().unwrap_or_else(|_| database.to_owned())
}

/// By the path, because copies of a database share its file id.
fn entry_path(home: &Path, database: &Path) -> PathBuf {
    let mut hash = Sha256::new();
    hash.update(whole(database).as_os_str().as_bytes());
    directory(home).join(format!("scan-{}", hex(&hash.finish()[..16])))
}

/// Nobody takes a minute between a temporary name and the rename.
fn is_old(path: &Path) -> bool {
    let modified = path.symlink_metadata().and_then(|metadata| metadata.modified()).ok();
    modified.and_then(|at| at.elapsed().ok()).is_some_and(|age| age.as_secs() > 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(database: &Path) -> Run {
        Run {
            doing: "rewriting".to_owned(),
            held_by: "app (12)".to_owned(),
            done: 5,
            pages: 9,
            rate: 2.5,
            at: 7,
            stopped: Some(Stopped { error: "page 3".to_owned(), hint: "mend it".to_owned() }),
            ..Run::begin(database, 6)
        }
    }

    #[test]
    fn an_entry_is_found_by_its_database_and_taken_away() {
        let place = tempfile::tempdir().unwrap();
        let (home, database) = (place.path().join("home"), place.path().join("a.db"));
        std::fs::write(&database, "").unwrap();
        assert_eq!(Run::find(&home, &database), None);
        Run::remove(&home, &database).unwrap();
        let put = run(&database);
        put.put(&home).unwrap();
        assert_eq!(Run::find(&home, &database), Some(put.clone()));
        let link = place.path().join("link.db");
        std::os::unix::fs::symlink(&database, &link).unwrap();
        assert_eq!(Run::find(&home, &link), Some(put.clone()));
        Run { done: 6, stopped: None, ..put }.put(&home).unwrap();
        let found = Run::find(&home, &database).unwrap();
        assert_eq!((found.done, found.stopped), (6, None));
        assert_eq!(std::fs::read_dir(directory(&home)).unwrap().count(), 1);
        Run::remove(&home, &database).unwrap();
        assert_eq!(Run::find(&home, &database), None);
    }

    #[test]
    fn a_process_that_has_the_number_of_another_one_is_not_taken_for_it() {
        let own = ProcessId::own();
        assert!(own.is_alive());
        assert!(!ProcessId { began: own.began + 1, ..own.clone() }.is_alive());
        assert!(!ProcessId { boot: "an earlier one".to_owned(), ..own }.is_alive());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let one = ProcessId { pid: child.id(), began: began(child.id()).unwrap(), boot: boot() };
        assert!(one.is_alive());
        child.kill().unwrap();
        while one.is_alive() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
        assert!(!one.is_alive());
    }

    #[test]
    fn whatever_lies_there_is_read_or_is_no_entry() {
        let place = tempfile::tempdir().unwrap();
        let (home, database) = (place.path(), place.path().join("a.db"));
        std::fs::create_dir(directory(home)).unwrap();
        let whole = run(&database).encode();
        for length in 0..whole.len() {
            std::fs::write(entry_path(home, &database), &whole[..length]).unwrap();
            assert_eq!(Run::find(home, &database), None, "{length} bytes");
        }
        std::fs::write(entry_path(home, &database), whole.replace("page 3", "\\u001b[31m"))
            .unwrap();
        let stopped = Run::find(home, &database).unwrap().stopped.unwrap();
        assert_eq!(stopped.error, "\\x1b[31m");
        std::fs::write(entry_path(home, &database), vec![b' '; MOST_BYTES as usize + 1]).unwrap();
        assert_eq!(Run::find(home, &database), None);
    }

    /// Members of the group may put anything there.
    #[test]
    fn neither_links_nor_pipes_are_read() {
        let place = tempfile::tempdir().unwrap();
        let (home, database) = (place.path(), place.path().join("a.db"));
        let entry = entry_path(home, &database);
        run(&database).put(home).unwrap();
        std::fs::rename(&entry, home.join("aside")).unwrap();
        std::os::unix::fs::symlink(home.join("aside"), &entry).unwrap();
        assert_eq!(Run::find(home, &database), None);
        std::fs::remove_file(&entry).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, &entry, kind, mode, 0).unwrap();
        assert_eq!(Run::find(home, &database), None);
        std::fs::remove_file(&entry).unwrap();
        std::fs::rename(home.join("aside"), &entry).unwrap();
        assert_eq!(Run::find(home, &database), Some(run(&database)));
    }

    #[test]
    fn a_path_that_is_no_text_or_has_control_characters_is_found_again() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path();
        for name in [&b"\xff.db"[..], b"\x1b[31m.db"] {
            let database = home.join(std::ffi::OsStr::from_bytes(name));
            std::fs::write(&database, "").unwrap();
            let dead = ProcessId { began: 0, ..ProcessId::own() };
            Run { process: dead, ..run(&database) }.put(home).unwrap();
            let found = Run::find(home, &database).unwrap();
            assert!(!found.database.to_string_lossy().contains(char::is_control), "{found:?}");
            Run::sweep(home);
            assert!(Run::find(home, &database).is_some(), "it is there");
            Run::remove(home, &database).unwrap();
            assert_eq!(Run::find(home, &database), None);
        }
    }

    #[test]
    fn entries_of_databases_that_are_gone_are_swept() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path();
        let (gone, there) = (home.join("gone.db"), home.join("there.db"));
        std::fs::write(&there, "").unwrap();
        let dead = ProcessId { began: 0, ..ProcessId::own() };
        Run { process: dead.clone(), ..run(&gone) }.put(home).unwrap();
        Run { process: dead, ..run(&there) }.put(home).unwrap();
        assert!(Run::find(home, &gone).is_some());
        Run::sweep(home);
        assert!(Run::find(home, &gone).is_none());
        assert!(Run::find(home, &there).is_some());
        run(&gone).put(home).unwrap();
        Run::sweep(home);
        assert!(Run::find(home, &gone).is_some(), "its process lives");
    }
}
