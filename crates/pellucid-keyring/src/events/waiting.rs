//! Events that wait to be taken into the log: those of accounts that may not write it, and those that are recorded without
//! waiting for it. One file of lines for each account, `waiting/events-` and its number.
//!
//! An account can change its own lines until they are taken in. Nobody else's: others may not open the file.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::clock::now_micros;
use pellucid::error::Error;
use pellucid::hash::hex;
use pellucid::secret::fill_random;
use pellucid_files::locked::Locked;
use rustix::fs::OFlags;
use serde_json::{Map, Value};

use crate::instance;
use pellucid::shown::printable;

const PREFIX: &str = "events-";
/// More than any event has: what is longer is cut.
const LINE_BYTES_MOST: usize = 16_384;
/// Some hundred thousand events. A file that has more gets another name, under which it waits on, and the next one begins.
const FILE_BYTES_MOST: u64 = 64 << 20;
/// Of a file that somebody goes on writing to. What lies behind it was made to be in the way.
const READ_BYTES_MOST: u64 = 2 * FILE_BYTES_MOST;
/// Ten tries, ten milliseconds in all, unless the event has to be recorded.
const TRIES: [u32; 2] = [10, 10_000];
const PAUSE: Duration = Duration::from_millis(1);

/// An event is known by its account and a number of its own, so that a crash takes none in twice.
pub(super) type Id = (u32, String);

/// Where the group of a system instance may put files, too. An instance of before has `run` alone, until its owner makes the
/// other one.
const DIRECTORIES: [&str; 2] = ["waiting", "run"];

/// Makes the directory of an instance where events wait.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn make_directory(home: &Path) -> Result<(), Error> {
    instance::make_run_directory(home, &home.join(DIRECTORIES[0]))
}

/// Whether the directory of [`make_directory`] is there.
pub(super) fn has_directory(home: &Path) -> bool {
    home.join(DIRECTORIES[0]).is_dir()
}

fn directory(home: &Path) -> std::io::Result<PathBuf> {
    let [own, older] = DIRECTORIES.map(|name| home.join(name));
    if own.is_dir() {
        return Ok(own);
    }
    match make_directory(home) {
        Ok(()) => Ok(own),
        Err(_) if older.is_dir() => Ok(older),
        Err(Error::Io { source, .. }) => Err(source),
        Err(error) => Err(plain(error)),
    }
}

/// Adds an event of this account. With `synced` it is on disk when this returns; else nothing is waited for.
pub(super) fn put(home: &Path, mut facts: Map<String, Value>, synced: bool) -> std::io::Result<()> {
    let mut id = [0; 8];
    fill_random(&mut id).map_err(plain)?;
    facts.insert("id".into(), hex(&id).into());
    let line = super::line_of(facts);
    for attempt in 0..TRIES[usize::from(synced)] {
        let Some((path, file)) = own(home)? else { continue };
        match Locked::take(file, true)? {
            Err(_) => std::thread::sleep(PAUSE),
            // Taken in since it was opened: what is written to it now would be lost.
            Ok(held) if !held.is_at(&path) => {}
            Ok(held) => {
                let mut file = held.file();
                let (length, mut last) = (file.metadata()?.len(), [b'\n']);
                if length + LINE_BYTES_MOST as u64 > most() {
                    set_aside(&path)?;
                    continue;
                }
                if length > 0 {
                    file.read_exact_at(&mut last, length - 1)?;
                }
                let begin = if last == *b"\n" { "" } else { "\n" };
                file.write_all(format!("{begin}{line}\n").as_bytes())?;
                if synced {
                    file.sync_data()?;
                    File::open(path.parent().unwrap_or(home))?.sync_all()?;
                }
                return Ok(());
            }
        }
        if attempt + 1 == TRIES[usize::from(synced)] {
            break;
        }
    }
    Err(std::io::Error::new(
        ErrorKind::TimedOut,
        "another process holds the file of events that wait",
    ))
}

fn most() -> u64 {
    #[cfg(test)]
    if let Some(most) = super::parts::tests::MOST.get() {
        return most + LINE_BYTES_MOST as u64;
    }
    FILE_BYTES_MOST
}

/// Gives a file that is full another name, by which the next writer of the log takes it in. Whoever still appends to it is taken in
/// with it.
fn set_aside(path: &Path) -> std::io::Result<()> {
    let uid = rustix::process::geteuid().as_raw();
    // By the time, so that the order of names is that of the events.
    let other = path.with_file_name(format!("{PREFIX}{uid}-{:016x}", now_micros()));
    match pellucid_files::paths::rename_new(path, &other) {
        // Another process has done so.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => {
            Ok(())
        }
        renamed => renamed,
    }
}

fn plain(error: Error) -> std::io::Error {
    std::io::Error::other(error.to_string())
}

/// The file of this account, made where there is none. Another member of the group may have made one of that name.
fn own(home: &Path) -> std::io::Result<Option<(PathBuf, File)>> {
    let uid = rustix::process::geteuid().as_raw();
    let directory = directory(home)?;
    let named = directory.join(format!("{PREFIX}{uid}"));
    match open(&named, true) {
        Ok(file) if is_ours(&file, uid) => return Ok(Some((named, file))),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if !is_occupied(&error) => return Err(error),
        _ => {}
    }
    let mut random = [0; 8];
    fill_random(&mut random).map_err(plain)?;
    let other = directory.join(format!("{PREFIX}{uid}-{}", hex(&random)));
    open(&other, true).map(|file| Some((other, file)))
}

/// A link, a pipe, a directory, another account's file.
fn is_occupied(error: &std::io::Error) -> bool {
    let named = [rustix::io::Errno::LOOP, rustix::io::Errno::NXIO, rustix::io::Errno::ISDIR];
    let code = error.raw_os_error();
    named.iter().any(|errno| code == Some(errno.raw_os_error()))
        || error.kind() == ErrorKind::PermissionDenied
}

fn open(path: &Path, create: bool) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(create).mode(0o600);
    options.custom_flags(flags.bits() as i32).open(path)
}

fn is_ours(file: &File, uid: u32) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.uid() == uid && meta.nlink() <= 1)
}

/// A file of events that is being taken in: nobody adds to it as long as this lives.
#[derive(Debug)]
pub(super) struct Taken {
    path: PathBuf,
    #[allow(dead_code, reason = "dropping it gives the lock back")]
    file: Locked,
}

impl Taken {
    /// Takes the file away, once its events are in the log.
    pub(super) fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The events that wait, without those of `known`, and their files. One that somebody is writing to waits on.
pub(super) fn take(home: &Path, known: &HashSet<Id>) -> (Vec<Map<String, Value>>, Vec<Taken>) {
    let (mut events, mut taken) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for path in files(home) {
        let Some((uid, file)) = found(&path) else { continue };
        // What many of them have waits for the next writer: it is all in memory.
        if bytes > FILE_BYTES_MOST {
            break;
        }
        let Ok(Ok(file)) = Locked::take(file, false) else { continue };
        if !file.is_at(&path) {
            continue;
        }
        let Some(lines) = read(file.file(), uid) else { continue };
        bytes += file.file().metadata().map_or(0, |metadata| metadata.len());
        events.extend(
            lines.into_iter().filter(|facts| id(facts).is_none_or(|id| !known.contains(&id))),
        );
        taken.push(Taken { path, file });
    }
    (events, taken)
}

/// The events that wait, as far as the caller may read them.
pub(super) fn list(home: &Path) -> Vec<Map<String, Value>> {
    let found = files(home).into_iter().filter_map(|path| found(&path));
    found.filter_map(|(uid, file)| read(&file, uid)).flatten().collect()
}

/// Who an event of an account is by, and its number.
pub(super) fn id(facts: &Map<String, Value>) -> Option<Id> {
    let uid = facts.get("noted_by_uid")?.as_u64()?.try_into().ok()?;
    Some((uid, facts.get("id")?.as_str()?.to_owned()))
}

fn files(home: &Path) -> Vec<PathBuf> {
    let entries = DIRECTORIES.into_iter().flat_map(|name| std::fs::read_dir(home.join(name)));
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()))
    };
    let mut found: Vec<PathBuf> =
        entries.flatten().flatten().map(|entry| entry.path()).filter(named).collect();
    // Of one account what was set aside comes before what is written to.
    let key = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parts: Vec<String> = name.split('-').map(str::to_owned).collect();
        (parts.get(1).cloned(), parts.len() < 3, name)
    };
    found.sort_by_cached_key(key);
    found
}

/// Members of the group may have put anything there: a link is not followed, a pipe not waited for, and what was opened is
/// looked at. Whose it is says the file system.
fn found(path: &Path) -> Option<(u32, File)> {
    let file = open(path, false).ok()?;
    let uid = file.metadata().ok()?.uid();
    is_ours(&file, uid).then_some((uid, file))
}

fn read(file: &File, uid: u32) -> Option<Vec<Map<String, Value>>> {
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MOST).read_to_end(&mut bytes).ok()?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Some(lines.map(|line| event(line, uid)).collect())
}

/// An event as an account wrote it, with what the log says itself. What is no event is kept as text.
fn event(line: &[u8], uid: u32) -> Map<String, Value> {
    let line = &line[..line.len().min(LINE_BYTES_MOST)];
    let mut facts = match serde_json::from_slice(line) {
        Ok(Value::Object(facts)) => facts,
        _ => {
            let text = printable(&String::from_utf8_lossy(line)).into_owned();
            Map::from_iter([("text".to_owned(), Value::String(text))])
        }
    };
    for own in ["seq", "prev", "mac", "begins", "unfinished_bytes"] {
        facts.remove(own);
    }
    facts.insert("noted_by_uid".into(), uid.into());
    facts
}
