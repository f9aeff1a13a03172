//! Where media go.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use pellucid_files::paths::look_at_name;
use pellucid_host::folder::{name_of, Folder};

/// One media family, or one mirror of it: bytes are written one after the other.
pub trait MediaSink: Send {
    /// Writes all of `bytes` behind what was written before.
    ///
    /// # Errors
    /// The system's; nothing may be written after one.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns when everything written is on stable storage.
    ///
    /// # Errors
    /// The system's.
    fn sync(&mut self) -> io::Result<()>;
    /// What people call it.
    fn name(&self) -> PathBuf;
}

/// A file, locked while it is written, so that two backups that meet do not write into each other's.
#[derive(Debug)]
pub struct FileSink {
    file: File,
    path: PathBuf,
    ahead: Ahead,
}

impl FileSink {
    /// A file that must not be there yet; only its owner may read it.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = Folder::of(path)?.create(&name_of(path))?;
        lock(&file, path)?;
        Ok(Self { file, path: path.to_owned(), ahead: Ahead::default() })
    }

    /// A file that is there, and that nobody else writes from now on. Its last name is no link: whoever has the directory
    /// could change where that leads.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if another backup writes it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(pellucid_files::regular::open_named_to_write(path)?, path)
    }

    /// A file that was opened to be written, under a name for people, and that nobody else writes from now on.
    ///
    /// # Errors
    /// As [`FileSink::open`].
    pub fn of(file: File, path: &Path) -> io::Result<Self> {
        lock(&file, path)?;
        Ok(Self { file, path: path.to_owned(), ahead: Ahead::default() })
    }

    /// The same file once more, which stays what it is whatever happens to its name.
    ///
    /// # Errors
    /// The system's.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// What is written next comes to byte `at`; what lies behind that is cut off.
    ///
    /// # Errors
    /// The system's.
    pub fn go_on_at(&mut self, at: u64) -> io::Result<()> {
        use std::io::Seek;
        self.ahead.end()?;
        self.file.set_len(at)?;
        self.file.seek(io::SeekFrom::Start(at)).map(|_| ())
    }
}

/// Bytes that are written before they are sent to the disk.
const AHEAD_BYTES: usize = 8 << 20;

/// Sends to the disk what was written, while more is written: the disk would have nothing to do until the end, and the end would wait for
/// all of it.
#[derive(Debug, Default)]
struct Ahead {
    waiting: usize,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Ahead {
    /// What an earlier call could not write is told: the system says it once.
    fn written(&mut self, bytes: usize, file: &File) -> io::Result<()> {
        self.waiting += bytes;
        if self.waiting < AHEAD_BYTES || self.thread.as_ref().is_some_and(|one| !one.is_finished())
        {
            return Ok(());
        }
        self.end()?;
        self.waiting = 0;
        // Without a descriptor or a thread the end waits.
        let Ok(file) = file.try_clone() else { return Ok(()) };
        self.thread = std::thread::Builder::new().spawn(move || file.sync_data()).ok();
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread that writes ended")))
    }
}

impl Drop for Ahead {
    /// The file is locked for as long as the thread has it.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Locks a file by its name. One that has lost its name since it was opened, to nobody who has it now, was removed:
/// with its directory, perhaps.
fn lock(file: &File, path: &Path) -> io::Result<()> {
    lock_media(file).map_err(|error| match look_at_name(path) {
        Err(gone) if gone.kind() == io::ErrorKind::NotFound => gone,
        _ => error,
    })
}

/// Locks a file of media until it is closed.
///
/// # Errors
/// `WouldBlock` if another backup has it locked, or has just taken its name away.
pub fn lock_media(file: &File) -> io::Result<()> {
    use rustix::fs::{flock, FlockOperation};
    use std::os::unix::fs::MetadataExt;
    let busy = || io::Error::new(io::ErrorKind::WouldBlock, "another backup is writing to it");
    // Any other error is of a file system without locks; whoever backs up to one keeps two backups apart.
    if let Err(rustix::io::Errno::WOULDBLOCK) =
        flock(file, FlockOperation::NonBlockingLockExclusive)
    {
        return Err(busy());
    }
    match file.metadata()?.nlink() {
        0 => Err(busy()),
        _ => Ok(()),
    }
}

/// Ends what [`lock_media`] began, also for a process that was just forked and has the descriptor until it executes its own
/// program: closing the file here would leave the lock to it.
pub fn unlock_media(file: &File) {
    use rustix::fs::{flock, FlockOperation};
    // On a file system without locks there is none to be ended.
    let _ = flock(file, FlockOperation::Unlock);
}

impl MediaSink for FileSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.ahead.written(bytes.len(), &self.file)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.ahead.end()?;
        self.file.sync_all()
    }

    fn name(&self) -> PathBuf {
        self.path.clone()
    }
}

/// Standard output: for a pipe into something else.
#[derive(Debug, Default, Clone, Copy)]
pub struct StdoutSink;

impl MediaSink for StdoutSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::stdout().lock().write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.flush()?;
        match rustix::io::retry_on_intr(|| rustix::fs::fsync(&out)) {
            // A pipe has no disk behind it that this end could wait for.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::ROFS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn name(&self) -> PathBuf {
        "-".into()
    }
}

/// A sink that keeps nothing: SQL Server's `NUL`, for measuring.
#[derive(Debug, Default, Clone, Copy)]
pub struct NullSink;

impl MediaSink for NullSink {
    fn write(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn name(&self) -> PathBuf {
        "NUL".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_sent_ahead_is_told_once_before_the_end() {
        // It has no disk: EINVAL.
        let file = std::fs::OpenOptions::new().write(true).open("/dev/null").unwrap();
        let mut ahead = Ahead::default();
        ahead.written(AHEAD_BYTES - 1, &file).unwrap();
        assert!(ahead.thread.is_none(), "too little");
        ahead.written(1, &file).unwrap();
        assert_eq!(ahead.end().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        ahead.end().unwrap();

        ahead.written(AHEAD_BYTES, &file).unwrap();
        while !ahead.thread.as_ref().unwrap().is_finished() {
            std::thread::yield_now();
        }
        let next = ahead.written(AHEAD_BYTES, &file);
        assert_eq!(next.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_file_that_was_sent_ahead_is_unlocked_once_it_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.bak");
        let mut made = FileSink::create(&path).unwrap();
        let part = vec![7; AHEAD_BYTES / 2];
        for _ in 0..5 {
            made.write(&part).unwrap();
        }
        made.sync().unwrap();
        made.write(&part).unwrap();
        drop(made);
        lock_media(&pellucid_files::regular::open_to_write(&path).unwrap()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), part.repeat(6));
    }

    #[test]
    fn a_lock_that_was_ended_is_not_kept_by_whoever_has_inherited_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.bak");
        let made = FileSink::create(&path).unwrap();
        let inherited = made.handle().unwrap();
        drop(made);
        let again = || lock_media(&pellucid_files::regular::open_to_write(&path)?);
        assert_eq!(again().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        unlock_media(&inherited);
        again().unwrap();
    }
}
