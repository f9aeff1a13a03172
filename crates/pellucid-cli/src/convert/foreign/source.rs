//! The old database's file and its log: held still while they are read, opened page by page, never written.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use pellucid::sector::SQLITE_MAGIC;
use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_engine::inspect::{inspect, not_a_database, Kind};
use pellucid_files::paths::beside;
use pellucid_files::regular;
use pellucid_foreign::find::{find, NotFound, SAMPLE_BYTES};
use pellucid_foreign::log::{Damage, Log, FRAME_HEADER_BYTES, HEADER_BYTES};
use pellucid_foreign::looks::{is_even, look, Looks};
use pellucid_foreign::settings::{Program, Settings};
use pellucid_foreign::{Opener, Secret, Unopened};
use pellucid_host::patience::Patience;
use pellucid_host::{byte_lock, holders, DatabaseError};
use pellucid_vfs::lent_pages::Pages;
use zeroize::Zeroizing;

use super::{Failure, Id};

/// The first of the bytes that each connection locks that reads a database (os_unix.c, `SHARED_FIRST`). While this is locked
/// for writing, no connection reads or writes, and none opens the log.
const SHARED_FIRST: i64 = 0x4000_0002;
const RETRY: Duration = Duration::from_millis(20);
/// Behind a damaged frame a hole is looked for after so many frames.
const FRAMES_BETWEEN_HOLES: u64 = 1024;
/// What a rollback journal begins with that has to be played back (SQLite file format, 3).
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// A file that may be a database of another program.
pub struct Candidate {
    path: PathBuf,
    file: File,
    sample: Vec<u8>,
    before: Metadata,
}

impl Candidate {
    /// Opens the file, and keeps every other program away from it.
    pub fn open(path: &Path, settings: &Settings, timeout: Duration) -> Result<Self, Failure> {
        let io = |error| Failure::from(Error::io(Subject::File(path.to_owned()), error));
        // A lock for writing needs a file that is open for writing. Nothing is written.
        let (file, is_lockable) = match regular::open_to_write(path) {
            Ok(file) => (file, true),
            Err(_) => (regular::open(path).map_err(io)?, false),
        };
        hold(path, &file, is_lockable, timeout)?;
        let mut sample = Vec::with_capacity(SAMPLE_BYTES);
        (&file).take(SAMPLE_BYTES as u64).read_to_end(&mut sample).map_err(io)?;
        let before = file.metadata().map_err(io)?;
        refuse_other_kinds(path, &sample, before.len(), settings)?;
        refuse_hot_journal(path)?;
        Ok(Self { path: path.to_owned(), file, sample, before })
    }

    /// Finds its settings with the secret, reads its log, and looks at page 1.
    pub fn unlock(
        self,
        program: Program,
        settings: &Settings,
        secret: &Secret,
    ) -> Result<Foreign, Failure> {
        let opener =
            find(program, settings, secret, &self.sample).map_err(|error| match error {
                // What is encrypted has no structure; with RC4 alone it may, and then a secret opens it.
                NotFound::NoneOpens { .. } if !is_even(&self.sample) => {
                    not_a_database(&self.path).into()
                }
                error => not_found(&error, secret),
            })?;
        let Self { path, file, before, .. } = self;
        let pages = before.len() / u64::from(opener.page_bytes());
        let mut source = Foreign {
            path,
            file,
            before,
            opener,
            log: None,
            log_before: None,
            pages: pages.try_into().unwrap_or(u32::MAX),
            commits: 0,
            was_wal: false,
            last: Mutex::new(None),
        };
        source.read_log()?;
        source.check_header()?;
        Ok(source)
    }
}

/// Waits until no other program has the database open, and keeps them away where the file can be locked.
fn hold(path: &Path, file: &File, is_lockable: bool, timeout: Duration) -> Result<(), Failure> {
    let patience = Patience::new(timeout, RETRY);
    loop {
        let is_free = match is_lockable {
            true => byte_lock::take(file, SHARED_FIRST)
                .map_err(|error| Error::io(Subject::File(path.to_owned()), error))?,
            false => byte_lock::is_taken(file, SHARED_FIRST) != Some(true),
        };
        if is_free {
            return Ok(());
        }
        if !patience.wait() {
            return Err(DatabaseError::InUse {
                file: path.shown().to_string(),
                holders: holders::find(path),
            }
            .into());
        }
    }
}

/// Refuses what is no encrypted database of another program, in words about what it is.
fn refuse_other_kinds(
    path: &Path,
    sample: &[u8],
    bytes: u64,
    settings: &Settings,
) -> Result<(), Failure> {
    let looks = look(sample, bytes);
    if sample.starts_with(SQLITE_MAGIC) && settings.plaintext_header == 0 {
        return Err(match looks {
            Looks::PlainHeader { .. } => Failure::new(Id::HeaderInClear,
                "it has a header in clear, and no plain database behind it",
                "if SQLCipher made it with `cipher_plaintext_header_size`, give `--plaintext-header 32` and `--salt`, or a \
                 raw key with the salt",
            ),
            _ => Failure::new(Id::Plain,
                "it is not encrypted",
                "leave out `--from`: `pellucid encrypt` encrypts it in place",
            ),
        });
    }
    match inspect(path)?.kind {
        Kind::Empty => {
            return Err(Failure::new(
                Id::Empty,
                "it is empty: there is nothing to encrypt",
                "look at the path",
            ))
        }
        Kind::Sealed(_) | Kind::Unfinished | Kind::Damaged(_) => {
            return Err(Failure::new(
                Id::Sealed,
                "it is encrypted by pellucid already",
                "leave out `--from`; `pellucid status` shows what opens it",
            ))
        }
        _ => {}
    }
    Ok(())
}

/// A rollback journal that has to be played back changes pages: only the program that wrote it does that.
fn refuse_hot_journal(path: &Path) -> Result<(), Failure> {
    let Some(journal) = hot_journal(path)? else { return Ok(()) };
    Err(Failure::new(
        Id::HotJournal,
        format!("it has a hot journal, `{}`: a program was stopped in a transaction", journal.shown()),
        "open the database once with the program that it belongs to, which rolls the transaction back; nothing was \
         changed",
    ))
}

/// The rollback journal beside a database that has to be played back, if there is one.
fn hot_journal(path: &Path) -> Result<Option<PathBuf>, Error> {
    let journal = beside(path, "-journal");
    let mut begins = [0; JOURNAL_MAGIC.len()];
    let file = match regular::open(&journal) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(Subject::File(journal), error)),
    };
    let is_hot = file.read_exact_at(&mut begins, 0).is_ok() && begins == JOURNAL_MAGIC;
    Ok(is_hot.then_some(journal))
}

fn not_found(error: &NotFound, secret: &Secret) -> Failure {
    match error {
        NotFound::NoneOpens { tried } => {
            let what = match secret {
                Secret::Passphrase(_) => "passphrase",
                Secret::Raw(_) => "raw key",
            };
            Failure::new(Id::WrongKey,
                format!("the {what} opens no page of it; tried: {}", tried.join(", ")),
                "look at the secret first; then name what its program set: `--kdf-iter`, `--kdf-algorithm`, `--hmac`, \
                 `--cipher`, `--plaintext-header`. If all of that is right, its first pages are damaged",
            )
        }
        NotFound::Untagged { told } => Failure::new(Id::Untagged,
            format!("it opens only if nothing is authenticated ({told}): it has no tags, or somebody changed them"),
            "if its program was told `PRAGMA cipher_use_hmac = OFF`, or is SQLCipher 1, give `--hmac none`; else restore a \
             backup",
        ),
        NotFound::NoSalt => Failure::new(Id::SaltNotNamed,
            "with a plaintext header the salt is not in the file",
            "give `--salt`, or a raw key with the salt",
        ),
        NotFound::TooShort => {
            Failure::new(Id::TooShort, "it is shorter than a page", "look at the path")
        }
        NotFound::Refused(cipher) => Failure::new(Id::CipherNotRead,
            format!("`{cipher}` is not read: no well-kept library has this cipher"),
            "with its own program, `PRAGMA rekey` to `chacha20` or `sqlcipher` first",
        ),
        NotFound::Setting(why) => super::usage(why, "look at the option"),
    }
}

/// An open database of another program.
pub struct Foreign {
    path: PathBuf,
    file: File,
    before: Metadata,
    opener: Opener,
    log: Option<OpenLog>,
    /// What lay beside it when its log was read: a log that comes later has commits that are not taken.
    log_before: Option<Stamp>,
    pages: u32,
    commits: u64,
    was_wal: bool,
    /// The page that was opened last: SQLite reads the header in pieces.
    last: Mutex<Option<(u32, Zeroizing<Vec<u8>>)>>,
}

/// Its log, with the frame of each page that it holds.
struct OpenLog {
    path: PathBuf,
    file: File,
    frames: HashMap<u32, u64>,
}

impl std::fmt::Debug for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Foreign").field("opener", &self.opener).finish_non_exhaustive()
    }
}

impl Foreign {
    /// Whether its pages have tags.
    pub fn is_authenticated(&self) -> bool {
        self.opener.is_authenticated()
    }

    /// Whether it was in WAL mode.
    pub fn was_wal(&self) -> bool {
        self.was_wal
    }

    /// Its settings, in words.
    pub fn settings(&self) -> &str {
        self.opener.told()
    }

    /// The commits that its log holds.
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// What it was found to be, in words.
    pub fn told(&self) -> String {
        let log = match self.commits {
            0 => String::new(),
            1 => ", with one commit of its log".to_owned(),
            many => format!(", with {many} commits of its log"),
        };
        format!("{}{log}", self.settings())
    }

    /// Finds the frames that are committed.
    fn read_log(&mut self) -> Result<(), Failure> {
        let path = beside(&self.path, "-wal");
        let io = |error| Failure::from(Error::io(Subject::File(path.clone()), error));
        let file = match regular::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(io(error)),
        };
        let before = file.metadata().map_err(io)?;
        self.log_before = Some(stamp(&before));
        let mut header = [0; HEADER_BYTES];
        if before.len() < header.len() as u64 {
            return Ok(());
        }
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        reader.seek(SeekFrom::Start(0)).map_err(io)?;
        reader.read_exact(&mut header).map_err(io)?;
        let damaged = |damage| damaged_log(&path, damage);
        let page_bytes = self.opener.page_bytes();
        let mut log = Log::begin(&header, page_bytes).map_err(damaged)?;
        let mut frames = HashMap::new();
        let (mut head, mut page) = ([0; FRAME_HEADER_BYTES], vec![0; page_bytes as usize]);
        let frame_bytes = (FRAME_HEADER_BYTES + page.len()) as u64;
        for number in 0u64.. {
            // A hole costs its maker nothing.
            if log.is_broken() && number % FRAMES_BETWEEN_HOLES == 0 {
                let at = reader.stream_position().map_err(io)?;
                let Some(data) = next_data(&file, at).map_err(io)? else { break };
                let frames = (data - at) / frame_bytes;
                log.skip(frames);
                reader.seek(SeekFrom::Start(at + frames * frame_bytes)).map_err(io)?;
            }
            match reader.read_exact(&mut head).and_then(|()| reader.read_exact(&mut page)) {
                Ok(()) => {}
                // A torn frame at the end.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(io(error)),
            }
            if let Some(commit) = log.next(&head, &page) {
                frames.extend(commit.pages);
                self.pages = commit.size;
                self.commits += 1;
            }
        }
        log.end().map_err(damaged)?;
        self.log = Some(OpenLog { path, file, frames });
        Ok(())
    }

    /// Looks at the header of page 1: the format that was set, and whether all pages are there.
    fn check_header(&mut self) -> Result<(), Failure> {
        let page = self.open_page(1)?;
        let number = |at: usize| {
            let four = page.get(at..at + 4).and_then(|four| four.try_into().ok());
            four.map_or(0, u32::from_be_bytes)
        };
        self.was_wal = page.get(18) == Some(&2);
        // Written by a version of SQLite that keeps the number (SQLite file format, 1.3.7).
        let is_kept = number(24) == number(92);
        if is_kept && number(28) > self.pages {
            return Err(Error::corrupt(
                Subject::File(self.path.clone()),
                format!("it is cut off: {} of {} pages are there", self.pages, number(28)),
            )
            .into());
        }
        Ok(())
    }

    /// Opens a page: from the log if that has it.
    fn open_page(&self, number: u32) -> Result<Zeroizing<Vec<u8>>, Error> {
        let bytes = self.opener.page_bytes();
        let mut page = Zeroizing::new(vec![0; bytes as usize]);
        let in_log = self.log.as_ref().and_then(|log| Some((log, *log.frames.get(&number)?)));
        let (file, path, at) = match in_log {
            Some((log, frame)) => {
                let head = FRAME_HEADER_BYTES as u64;
                let at = HEADER_BYTES as u64 + (frame - 1) * (head + u64::from(bytes)) + head;
                (&log.file, &log.path, at)
            }
            None => (&self.file, &self.path, u64::from(number - 1) * u64::from(bytes)),
        };
        file.read_exact_at(&mut page, at).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                Error::corrupt(Subject::Page(number), "the file ends before it")
            }
            _ => Error::io(Subject::File(path.clone()), error),
        })?;
        self.opener.open(number, &mut page).map_err(|unopened| match (unopened, in_log) {
            (Unopened::Unauthentic, None) => {
                Error::unauthentic(Subject::Page(number), "authentication tag does not match")
            }
            (Unopened::Unauthentic, Some((_, frame))) => Error::unauthentic(
                Subject::Page(number),
                format!("authentication tag does not match in frame {frame} of the log"),
            ),
            (Unopened::Length, _) => {
                Error::corrupt(Subject::Page(number), "it cannot be decrypted")
            }
        })?;
        Ok(page)
    }
}

impl Pages for Foreign {
    fn bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.opener.page_bytes())
    }

    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), Error> {
        let bytes = u64::from(self.opener.page_bytes());
        let number = u32::try_from(at / bytes + 1).unwrap_or(u32::MAX);
        let within = (at % bytes) as usize;
        let mut last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !matches!(&*last, Some((kept, _)) if *kept == number) {
            *last = None;
            let mut page = self.open_page(number)?;
            if number == 1 {
                // The log is read here already; SQLite is to look for none.
                page[18..20].fill(1);
            }
            *last = Some((number, page));
        }
        let page = last.as_ref().map(|(_, page)| &page[..]).unwrap_or_default();
        let part = page.get(within..within + buffer.len()).ok_or_else(|| {
            Error::corrupt(Subject::Page(number), "SQLite asks for more than a page")
        })?;
        buffer.copy_from_slice(part);
        Ok(())
    }

    fn assert_unchanged(&self) -> Result<(), Error> {
        let changed = |path: PathBuf| {
            Err(Error::misuse(
                Subject::File(path),
                "a program changed it while it was read: close every program that uses it and try again; no new database \
                 was made",
            ))
        };
        let io = |path: &Path, error| Error::io(Subject::File(path.to_owned()), error);
        let now = self.file.metadata().map_err(|error| io(&self.path, error))?;
        if stamp(&now) != stamp(&self.before) {
            return changed(self.path.clone());
        }
        // A file that cannot be locked may have got either meanwhile.
        let path = beside(&self.path, "-wal");
        let now = match regular::open(&path).and_then(|file| file.metadata()) {
            Ok(now) => Some(stamp(&now)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(io(&path, error)),
        };
        if now != self.log_before {
            return changed(path);
        }
        match hot_journal(&self.path)? {
            Some(journal) => changed(journal),
            None => Ok(()),
        }
    }
}

/// Identity and length of a file, and when it was written.
type Stamp = [i128; 7];

/// What differs after a write, or where another file has the name.
fn stamp(found: &Metadata) -> Stamp {
    let (written, changed) = (found.mtime_nsec(), found.ctime_nsec());
    [
        found.dev().into(),
        found.ino().into(),
        found.len().into(),
        found.mtime().into(),
        written.into(),
        found.ctime().into(),
        changed.into(),
    ]
}

/// Where the next bytes are from `at` on that are no hole; none if there are no more. At once where the system cannot say.
fn next_data(file: &File, at: u64) -> std::io::Result<Option<u64>> {
    use rustix::fs::{seek, SeekFrom};
    use rustix::io::Errno;
    let found = match seek(file, SeekFrom::Data(at)) {
        Ok(data) => Some(data.max(at)),
        Err(Errno::NXIO) => None,
        Err(Errno::INVAL | Errno::NOTSUP) => Some(at),
        Err(error) => return Err(error.into()),
    };
    // The reader goes on where it was.
    seek(file, SeekFrom::Start(at))?;
    Ok(found)
}

fn damaged_log(path: &Path, damage: Damage) -> Failure {
    let subject = |frame: u64| Subject::Frame(frame.try_into().unwrap_or(u32::MAX));
    let behind =
        "commits lie behind it, which the program that wrote them would drop without a word";
    let error = match damage {
        Damage::Header => Error::corrupt(Subject::WalHeader, format!("damaged; {behind}")),
        Damage::Frame(frame) => Error::corrupt(subject(frame), format!("damaged; {behind}")),
        Damage::PageSize(bytes) => Error::corrupt(
            Subject::WalHeader,
            format!("it is a log of pages of {bytes} bytes, which this database does not have"),
        ),
    };
    let hint = "restore database and log from a backup; its own program, which opens it, keeps the commits before that place \
                and drops the others";
    Failure { hint: Some(hint.to_owned()), ..Failure::from(error).about(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database that this process may only read is not locked.
    #[test]
    fn a_log_or_journal_that_comes_while_it_is_read_is_a_change() {
        const HOT: &[u8] = &[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0, 0, 0, 1];
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/foreign");
        let word = Secret::of_passphrase(b"correct horse");
        for (name, has_log) in [("sc4-iter-1000.db", false), ("sc4-log.db", true)] {
            for (suffix, content) in [("-wal", HOT), ("-journal", HOT), ("-journal", &[0; 12])] {
                let place = tempfile::tempdir().unwrap();
                let path = place.path().join("old.db");
                std::fs::copy(data.join(name), &path).unwrap();
                if has_log {
                    std::fs::copy(data.join(format!("{name}-wal")), beside(&path, "-wal")).unwrap();
                }
                let iterations = (!has_log).then_some(1000);
                let settings = Settings { iterations, ..Settings::default() };
                let open = Candidate::open(&path, &settings, Duration::ZERO)
                    .and_then(|found| found.unlock(Program::SqlCipher, &settings, &word));
                let Ok(open) = open else { panic!("{name} does not open") };
                assert!(open.assert_unchanged().is_ok());
                let beside = beside(&path, suffix);
                let _ = std::fs::remove_file(&beside);
                std::fs::write(&beside, content).unwrap();
                let is_change = content == HOT;
                let told = open.assert_unchanged();
                assert_eq!(told.is_err(), is_change, "{name} {suffix} {told:?}");
            }
        }
    }

    /// Commits behind a hole are found, and a hole of a terabyte costs nothing.
    #[test]
    fn holes_of_a_log_are_passed_over() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/foreign");
        let word = Secret::of_passphrase(b"correct horse");
        let good = std::fs::read(data.join("sc4-log.db-wal")).unwrap();
        let frame = FRAME_HEADER_BYTES + 4096;
        assert!(good.len() > HEADER_BYTES + 4 * frame, "some frames");
        for (hole, is_whole) in [(1u64 << 40, true), (64 << 20, false)] {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("old.db");
            std::fs::copy(data.join("sc4-log.db"), &path).unwrap();
            let log = File::create(beside(&path, "-wal")).unwrap();
            let frames = hole.div_ceil(frame as u64);
            if is_whole {
                log.write_all_at(&good, 0).unwrap();
                log.set_len(hole).unwrap();
            } else {
                // The first frame is gone, and all others lie behind the hole.
                log.write_all_at(&good[..HEADER_BYTES], 0).unwrap();
                let at = HEADER_BYTES as u64 + frames * frame as u64;
                log.write_all_at(&good[HEADER_BYTES + frame..], at).unwrap();
            }
            let settings = Settings::default();
            let open = Candidate::open(&path, &settings, Duration::ZERO)
                .and_then(|found| found.unlock(Program::SqlCipher, &settings, &word));
            match (open, is_whole) {
                (Ok(open), true) => assert!(open.commits() > 0),
                (Err(failure), false) => {
                    assert!(failure.message.contains("damaged"), "{failure:?}")
                }
                (open, _) => panic!("{hole}: {open:?}"),
            }
        }
    }
}
