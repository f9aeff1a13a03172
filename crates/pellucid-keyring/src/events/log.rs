//! Who appends to the event log, one at a time, and what the keyring holds of its last line.
//!
//! The line is synced first, then the keyring takes note of it: a log that is ahead of the keyring by lines that chain is
//! one whose writer was interrupted. A writer holds `keyring/events.lock` and waits for no other lock meanwhile, so it may
//! hold `keyring/lock` already. Described in docs/format.md, "Event log".

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid::error::{Error, Result, Subject};
use pellucid::secret::Secret32;
use pellucid_files::locked::Locked;
use serde_json::{Map, Value};

use super::chain::{self, EventLog, Head, LogBreak, Memory, Wrong};
use super::{parts, waiting};
use crate::instance;
use crate::sealed_file::{Kind, SealedFile};
use crate::Keyring;

const NAME: &str = "events";
/// As long as a writer waits for others. Each is done within some syncs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The log of the instance at `home`.
pub(super) fn path(home: &Path) -> PathBuf {
    parts::open_part(home)
}

/// What the keyring holds of the log.
pub(crate) fn file(home: &Path) -> SealedFile {
    SealedFile::new(home.join("keyring").join(NAME), Kind::Events, NAME)
}

/// One writer at a time. Of the group of a system instance nobody can take it.
#[derive(Debug)]
struct Turn(#[allow(dead_code, reason = "dropping it gives the lock back")] Locked);

impl Turn {
    fn take(home: &Path) -> std::io::Result<Self> {
        let path = home.join("keyring/events.lock");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let begun = Instant::now();
        loop {
            match Locked::take(file, false)? {
                Ok(held) => return Ok(Self(held)),
                Err(back) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(1));
                    file = back;
                }
                Err(_) => {
                    let told = "another process holds `keyring/events.lock`";
                    return Err(std::io::Error::new(ErrorKind::TimedOut, told));
                }
            }
        }
    }
}

/// Who hears of a line before it is written.
pub(super) type Tell<'a> = &'a dyn Fn(&str);

/// Records an event: in the log, or where it waits for it. It is on disk when this returns.
pub(super) fn record(
    home: &Path,
    facts: Map<String, Value>,
    key: Option<&Keyring>,
    tell: Tell<'_>,
) -> Result<()> {
    let forbidden = |error: &std::io::Error| {
        matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
    };
    let io = |error| Error::io(Subject::File(path(home)), error);
    let opened = Turn::take(home).and_then(|turn| Ok((turn, open(home)?)));
    let (_turn, log) = match opened {
        Err(error) if forbidden(&error) => return wait(home, facts, tell),
        opened => opened.map_err(io)?,
    };
    match Chain::of(home, key) {
        Some(chain) => {
            // For the group of an instance of before there was one.
            if instance::group(home).is_some() && !waiting::has_directory(home) {
                waiting::make_directory(home)?;
            }
            chain.append(home, log, facts, false, tell)
        }
        // Nothing is chained yet, and there is no key for it: the first line of the chain answers for this one.
        None if !file(home).path().exists() && is_before_chain(home)? => {
            let line = super::line_of(facts);
            tell(&line);
            put(log, &line).map_err(io)
        }
        None => wait(home, facts, tell),
    }
}

fn wait(home: &Path, facts: Map<String, Value>, tell: Tell<'_>) -> Result<()> {
    tell(&super::line_of(facts.clone()));
    waiting::put(home, facts, true).map_err(|error| {
        let told = format!(
            "what has to be recorded is not done: this account can write neither the event log nor `waiting`, where events wait \
             for it: {error}; an administrator's next change makes `waiting`"
        );
        Error::io(Subject::File(path(home)), std::io::Error::new(error.kind(), told))
    })
}

fn open(home: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).create(true).mode(0o600).open(path(home))?;
    if file.metadata()?.len() == 0 {
        // Its name has to be there as soon as the keyring holds one of its lines.
        File::open(home)?.sync_all()?;
    }
    if let Some(group) = instance::group(home) {
        if file.metadata()?.permissions().mode() & 0o777 == 0o600 {
            std::os::unix::fs::fchown(&file, None, Some(group))?;
            file.set_permissions(PermissionsExt::from_mode(0o640))?;
        }
    }
    Ok(file)
}

/// Whether a log of which the keyring holds nothing is one of before there was a chain, or of before there was a key.
fn is_before_chain(home: &Path) -> Result<bool> {
    let log = bytes(home)?;
    let has_key = home.join("keyring/master.key").exists();
    Ok(missed(&log).is_none() || (log.is_empty() && !has_key))
}

/// What the log has from `start` on.
fn tail(mut log: &File, start: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // What is shorter by its length is not read: a device has none.
    if log.metadata()?.len() > start {
        log.seek(SeekFrom::Start(start))?;
        log.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// One write to the end, taken back where it was not finished, and a sync.
fn put(mut log: File, text: &str) -> std::io::Result<()> {
    let length = log.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        log.read_exact_at(&mut last, length - 1)?;
    }
    let begin = if last == *b"\n" { "" } else { "\n" };
    let written = log.write_all(format!("{begin}{text}\n").as_bytes());
    if written.is_err() {
        // Not where the system lets nobody shorten it; the next writer says so then.
        let _ = log.set_len(length);
    }
    written.and_then(|()| log.sync_data())
}

/// The chain of a log, for its next lines.
struct Chain {
    memory: Memory,
    /// What the memory is sealed under.
    parent: Secret32,
}

impl Chain {
    /// None where no key is at hand, or what the keyring holds cannot be read or is gone: a chain is not begun anew unasked.
    fn of(home: &Path, key: Option<&Keyring>) -> Option<Self> {
        let (keyring, read) = read(home, key).ok()?;
        match read {
            Some((memory, parent)) => Some(Self { memory, parent }),
            None => {
                let log = bytes(home).ok()?;
                (missed(&log).is_none()).then(|| Self::begin(home, &keyring).ok())?
            }
        }
    }

    fn begin(home: &Path, keyring: &Keyring) -> Result<Self> {
        let (memory, parent) = (Memory::begin()?, keyring.key().clone());
        // Before any line: a chain whose key is lost cannot be gone on with.
        file(home).replace(&parent, &memory.encode())?;
        Ok(Self { memory, parent })
    }

    /// Appends an event behind those that wait, `anew` as the beginning of a chain.
    fn append(
        mut self,
        home: &Path,
        log: File,
        facts: Map<String, Value>,
        anew: bool,
        tell: Tell<'_>,
    ) -> Result<()> {
        let io = |error| Error::io(Subject::File(path(home)), error);
        let base = parts::closed_bytes(home).map_err(io)?;
        let (mut rest, known) = match anew {
            true => (bytes(home)?, HashSet::new()),
            false => {
                let from = self.memory.head.end.saturating_sub(base);
                self.adopt(tail(&log, from).map_err(io)?, base + from)
            }
        };
        let (log, base) =
            match rest.is_empty() && log.metadata().map_err(io)?.len() >= parts::most() {
                true => self.go_on_in_the_next_part(home, log, base)?,
                false => (log, base),
            };
        // An unfinished line gets its end. Whatever else stands there is not of this chain, and nothing answers for it.
        let ends = rest.is_empty() || rest.last() == Some(&b'\n');
        if !ends {
            rest.push(b'\n');
        }
        let is_unfinished = !ends && rest.iter().filter(|byte| **byte == b'\n').count() == 1;
        let (mut events, taken) = waiting::take(home, &known);
        events.push(facts);
        let (key, mut text, mut between) = (&self.memory.key, String::new(), &[][..]);
        if is_unfinished {
            between = &rest;
        }
        let mut head = self.memory.head;
        for event in events {
            let line = match anew || head.seq == 0 {
                true if text.is_empty() => key.first(event, head.seq + 1, &rest),
                _ => key.line(event, &head, between),
            } + "\n";
            (head.seq, head.hash, between) = (head.seq + 1, chain::hash(&[line.as_bytes()]), &[]);
            text += &line;
        }
        let text = text.trim_end_matches('\n');
        tell(text.rsplit('\n').next().unwrap_or(text));
        put(log, text).map_err(io)?;
        taken.iter().for_each(waiting::Taken::remove);
        head.end = base + path(home).metadata().map_err(io)?.len();
        self.memory.head = head;
        file(home).replace(&self.parent, &self.memory.encode())
    }

    /// Closes the part that is large enough, and begins the next one. Where that is not possible, the part grows on: nothing that has
    /// to be recorded is refused for it.
    fn go_on_in_the_next_part(&self, home: &Path, log: File, base: u64) -> Result<(File, u64)> {
        let io = |error| Error::io(Subject::File(path(home)), error);
        let length = log.metadata().map_err(io)?.len();
        // First: a part is closed with lines that the keyring holds.
        file(home).replace(&self.parent, &self.memory.encode())?;
        match parts::close(home) {
            Ok(()) => Ok((open(home).map_err(io)?, base + length)),
            Err(_) => Ok((log, base)),
        }
    }

    /// Goes on to the last line that a writer brought into the log and not into the keyring. What is behind it, and the
    /// events of accounts among these lines.
    fn adopt(&mut self, bytes: Vec<u8>, begun: u64) -> (Vec<u8>, HashSet<waiting::Id>) {
        let (mut at, mut known) = (0, HashSet::new());
        let head = &mut self.memory.head;
        let key = &self.memory.key;
        for (start, line, _) in chain::lines(&bytes) {
            let Some(link) = key.read(line) else { continue };
            let fits = match head.seq {
                0 => link.begins_after(&bytes[..start]),
                _ => link.follows(head, &bytes[at..start]),
            };
            if !fits {
                break;
            }
            at = start + line.len() + 1;
            *head = Head::of(link.seq, begun + start as u64, line);
            known.extend(waiting::id(&link.facts));
        }
        (bytes.get(at..).unwrap_or_default().to_vec(), known)
    }
}

type Remembered = Option<(Memory, Secret32)>;

/// What the keyring holds of the log, by its own way to open or by `key`.
fn read(home: &Path, key: Option<&Keyring>) -> Result<(Keyring, Remembered)> {
    let keyring = match (Keyring::open_now(home), key) {
        (Err(_), Some(key)) => {
            Keyring { home: home.to_owned(), master_key: key.master_key.clone() }
        }
        (opened, _) => opened?,
    };
    let file = file(home);
    let Some((content, parent)) = keyring.read_with_key(&file)? else { return Ok((keyring, None)) };
    let memory = Memory::decode(&content)?.ok_or_else(|| {
        Error::corrupt(Subject::File(file.path().to_owned()), "its fields do not fit")
    })?;
    Ok((keyring, Some((memory, parent))))
}

/// Seals what the keyring holds of the log under another master key, so that the chain goes on.
pub(crate) fn carry_over(home: &Path, present: &Secret32, fresh: &Secret32) -> Result<()> {
    let file = file(home);
    if !file.path().exists() {
        return Ok(());
    }
    let io = |error| Error::io(Subject::File(path(home)), error);
    let _turn = Turn::take(home).map_err(io)?;
    match file.read(present) {
        Ok(Some(content)) => file.replace(fresh, &content),
        Err(error @ Error::Unsupported { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Why a log of which the keyring holds nothing is not one of before there was a chain; and the line that says so. Each
/// instance with keys has events: those of their making are recorded first.
fn missed(log: &[u8]) -> Option<(usize, &'static str)> {
    if log.is_empty() {
        return Some((
            1,
            "it is missing or empty, and so is `keyring/events`, although there are keys",
        ));
    }
    let chained = chain::lines(log).position(|(_, line, _)| chain::looks_chained(line));
    chained.map(|line| (line + 1, "`keyring/events` is missing"))
}

/// Looks whether the event log of the instance at `home` is as it was written.
///
/// # Errors
/// As [`Keyring::open`]; [`Error::Io`] if the log cannot be read.
pub fn check_events(home: &Path) -> Result<EventLog> {
    // Opened first: trouble with the keyring itself is not the log's.
    let keyring = Keyring::open_now(home)?;
    // Before the log is read: lines that are written meanwhile are no trouble.
    let remembered = read(home, Some(&keyring));
    let parts::Joined { bytes: log, closed } = read_parts(home)?;
    let waiting = waiting::list(home).len();
    let unknown = |line, why: &str| EventLog {
        lines: chain::lines(&log).count(),
        closed: closed.clone(),
        waiting,
        wrong: Some(LogBreak { line, wrong: Wrong::Unknown(why.to_owned()) }),
        ..EventLog::default()
    };
    match remembered {
        Ok((_, Some((memory, _)))) => {
            Ok(EventLog { waiting, closed, ..chain::judge(&log, &memory) })
        }
        Ok((_, None)) => Ok(match missed(&log) {
            Some((line, why)) => unknown(line, why),
            None => {
                let lines = chain::lines(&log).count();
                EventLog { lines, closed: closed.clone(), waiting, ..EventLog::default() }
            }
        }),
        Err(error) => Ok(unknown(1, &error.to_string())),
    }
}

/// Begins the chain of the log anew over what the log has now, and records that.
///
/// # Errors
/// As [`Keyring::open`]; [`Error::Io`].
pub(super) fn restart(home: &Path, facts: Map<String, Value>, tell: Tell<'_>) -> Result<()> {
    let keyring = Keyring::open_now(home)?;
    let io = |error| Error::io(Subject::File(path(home)), error);
    let _turn = Turn::take(home).map_err(io)?;
    let log = open(home).map_err(io)?;
    let chain = match read(home, None) {
        Ok((_, Some((memory, parent)))) => Chain { memory, parent },
        // What cannot be read any more is given up.
        _ => Chain::begin(home, &keyring)?,
    };
    chain.append(home, log, facts, true, tell)
}

/// The bytes of the log, in all its parts; none where there is no log.
pub(super) fn bytes(home: &Path) -> Result<Vec<u8>> {
    Ok(read_parts(home)?.bytes)
}

fn read_parts(home: &Path) -> Result<parts::Joined> {
    parts::read(home).map_err(|error| Error::io(Subject::File(path(home)), error))
}
