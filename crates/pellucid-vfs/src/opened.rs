//! The files of an open connection: its main database below the shim, its log, and the state that
//! they share.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use pellucid::log_archive::ArchiveState;
use pellucid_host::code::{Code, Outcome};
use pellucid_host::connection::Handle;
use pellucid_host::ffi::{self, File, Vfs};
use pellucid_host::over::Over;
use pellucid_host::DatabaseError;

use crate::container::Container;
use crate::file::{discard, files_of_main, lower_of_main, lower_of_open};
use crate::files::Files;
use crate::log_archive::Locked;
use crate::lower::{Lower, ReadEnd};
use crate::open_file::{Beginning, OpenFile};
use crate::vfs::lower_vfs;
use crate::wal_file::{Standing, WalFile};

/// The state that the files of one open database share: header, keys, locks.
#[derive(Debug)]
pub struct OpenDatabase<'a> {
    files: Rc<Files>,
    _open: PhantomData<&'a ()>,
}

impl Deref for OpenDatabase<'_> {
    type Target = Container;

    fn deref(&self) -> &Container {
        &self.files.container
    }
}

impl OpenDatabase<'_> {
    /// Like [`Container::with_header_locks`], for its own main database.
    ///
    /// # Errors
    /// A code.
    pub fn with_header_locks(
        &self,
        file: OpenFile<'_>,
        change: impl FnOnce() -> Outcome<()>,
    ) -> Outcome<bool> {
        self.files.container.with_header_locks(file.lower(), change)
    }
}

/// The main database of `handle` below the shim, with what this connection knows of it. `None` if it is not sealed.
///
/// # Errors
/// SQLite's error, if the connection has no file.
pub fn sealed<'a>(
    handle: &'a Handle<'_>,
) -> Result<Option<(OpenFile<'a>, OpenDatabase<'a>)>, DatabaseError> {
    // SAFETY: the file object of an open connection, which the result borrows.
    let found = unsafe { lower_of_open(handle.file()?) };
    Ok(found.map(|(lower, files)| {
        (OpenFile::of_sealed(lower), OpenDatabase { files, _open: PhantomData })
    }))
}

/// Calls `each` with what this connection knows of the database `schema`. None if it has no file, or is not sealed.
pub fn with_attached<T>(
    handle: &Handle<'_>,
    schema: &CStr,
    each: impl FnOnce(&Container) -> T,
) -> Option<T> {
    // SAFETY: the file object of a database that is attached, and stays so within this call.
    let found = unsafe { lower_of_open(handle.file_of(schema).ok()?) };
    found.map(|(_, files)| each(&files.container))
}

/// The main database of `handle` below the shim, with what this connection knows of it, sealed or plain. `None` if another
/// VFS opened it.
///
/// # Errors
/// SQLite's error, if the connection has no file.
pub fn main<'a>(
    handle: &'a Handle<'_>,
) -> Result<Option<(OpenFile<'a>, OpenDatabase<'a>)>, DatabaseError> {
    // SAFETY: the file object of an open connection, which the result borrows.
    let found = unsafe { files_of_main(handle.file()?) };
    Ok(found.map(|(lower, files)| {
        (OpenFile::within(lower), OpenDatabase { files, _open: PhantomData })
    }))
}

/// The lower VFS that was named for the main database of `handle`. `None` if that is a file of this machine, or not of the
/// shim.
///
/// # Errors
/// SQLite's error, if the connection has no file.
pub fn over(handle: &Handle<'_>) -> Result<Option<&'static Over>, DatabaseError> {
    Ok(main(handle)?.and_then(|(_, database)| database.over()))
}

/// The write-ahead log of `handle`, if its main database is sealed and has one open.
///
/// # Errors
/// SQLite's error, if the connection has no file.
pub fn wal<'a>(handle: &'a Handle<'_>) -> Result<Option<OpenWal<'a>>, DatabaseError> {
    let found = sealed(handle)?.map(|(_, database)| OpenWal { database });
    Ok(found.filter(|wal| wal.lower().is_ok()))
}

/// The write-ahead log of an open connection. It is asked for at each use: SQLite may close it meanwhile.
#[derive(Debug)]
pub struct OpenWal<'a> {
    database: OpenDatabase<'a>,
}

impl OpenWal<'_> {
    /// Reads; zeros stand for what lies behind the end.
    ///
    /// # Errors
    /// The lower VFS's code; `SQLITE_IOERR` if the log is closed by now.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Outcome<ReadEnd> {
        self.lower()?.read(buffer, offset)
    }

    /// Bytes of the log on disk.
    ///
    /// # Errors
    /// As [`OpenWal::read`].
    pub fn size(&self) -> Outcome<u64> {
        self.lower()?.size()
    }

    /// Forces the log to disk.
    ///
    /// # Errors
    /// As [`OpenWal::read`].
    pub fn sync(&self) -> Outcome<()> {
        self.lower()?.sync(ffi::SYNC_NORMAL)
    }

    /// Copies what nobody has of the log into its archive, whose lock is held.
    ///
    /// # Errors
    /// [`pellucid::Error`]; the log stays as it is.
    pub fn keep_all(&self, locked: &Locked<'_>) -> pellucid::Result<Standing> {
        self.with_wal(|wal| wal.keep_all(locked))
    }

    /// Notes that what counts now is handed out, and syncs it first.
    ///
    /// # Errors
    /// [`pellucid::Error`].
    pub fn hand_out(&self, locked: &Locked<'_>) -> pellucid::Result<Standing> {
        self.with_wal(|wal| wal.hand_out(locked))
    }

    /// The first state of an archive, in which the chain begins behind what counts now. The caller has the write lock.
    ///
    /// # Errors
    /// [`pellucid::Error`].
    pub fn begin_chain(&self, fork: [u8; 16]) -> pellucid::Result<ArchiveState> {
        self.with_wal(|wal| wal.begin_chain(fork))
    }

    fn with_wal<T>(
        &self,
        call: impl FnOnce(&mut WalFile) -> pellucid::Result<T>,
    ) -> pellucid::Result<T> {
        let closed =
            || pellucid::Error::misuse(pellucid::Subject::WalHeader, "the log is not open");
        self.database.files.with_wal(call).unwrap_or_else(|| Err(closed()))
    }

    fn lower(&self) -> Outcome<Lower> {
        self.database.files.with_wal(|wal| wal.lower()).ok_or(Code(ffi::IOERR))
    }
}

/// The main database of `handle` as it lies on disk, whichever VFS opened it.
///
/// # Errors
/// SQLite's error, if the connection has no file.
pub fn on_disk<'a>(handle: &'a Handle<'_>) -> Result<OpenFile<'a>, DatabaseError> {
    // SAFETY: the file object of an open connection, which the result borrows; `main` is never detached.
    match unsafe { lower_of_main(handle.file()?) } {
        Some(below) => Ok(OpenFile::within(below)),
        None => OpenFile::of(handle),
    }
}

/// The first bytes, `most` of them, and the size of the database `schema` of `handle` as it lies on disk below the shim. `None` if
/// another VFS opened it. No file is handed out: a database may be detached at any moment.
///
/// # Errors
/// SQLite's error, if the database has no file.
pub fn beginning(
    handle: &Handle<'_>,
    schema: &CStr,
    most: u64,
) -> Result<Option<Outcome<Beginning>>, DatabaseError> {
    // SAFETY: the file object of a database that is attached, and stays so within this call.
    let below = unsafe { lower_of_main(handle.file_of(schema)?) };
    Ok(below.map(|lower| OpenFile::within(lower).beginning(most)))
}

/// A connection with its sealed main database.
#[derive(Debug)]
pub struct OpenContainer {
    lower: Lower,
    files: Rc<Files>,
    handle: Handle<'static>,
}

impl OpenContainer {
    /// Keeps `handle` open. `None` if its main database is not sealed.
    ///
    /// # Errors
    /// SQLite's error, if the connection has no file.
    pub fn of(handle: Handle<'static>) -> Result<Option<Self>, DatabaseError> {
        // SAFETY: the file object of an open connection, which is kept beside what points into it.
        let found = unsafe { lower_of_open(handle.file()?) };
        Ok(found.map(|(lower, files)| Self { lower, files, handle }))
    }

    /// The connection.
    pub fn handle(&self) -> &Handle<'static> {
        &self.handle
    }

    /// The database as it lies on disk.
    pub fn file(&self) -> OpenFile<'_> {
        OpenFile::of_sealed(self.lower)
    }

    /// The database as this connection knows it.
    pub fn container(&self) -> &Container {
        &self.files.container
    }
}

/// A file that the VFS below the shim opened for reading, and closes on drop. SQLite keeps its
/// locks.
#[derive(Debug)]
pub struct ReadFile {
    lower: Lower,
    /// The memory of the file object and of its name, both kept as long as the file is open.
    _memory: (Vec<u128>, Vec<u8>),
}

impl ReadFile {
    /// Opens the file `path` by the VFS below the shim. The shim has to be registered.
    ///
    /// # Errors
    /// The lower VFS's code.
    pub fn open(path: &Path) -> Outcome<Self> {
        let vfs: *mut Vfs = lower_vfs().ok_or(Code(ffi::CANTOPEN))?;
        // SAFETY: a registered VFS stays valid.
        let (bytes, open) = unsafe { ((*vfs).file_bytes, (*vfs).open) };
        let open = open.ok_or(Code(ffi::CANTOPEN))?;
        let bytes = usize::try_from(bytes).map_err(|_| Code(ffi::CANTOPEN))?;
        let mut memory = vec![0u128; bytes.div_ceil(size_of::<u128>())];
        // A name of SQLite's has zeros before it, and behind it where no parameters of a URI
        // follow.
        const ZEROS: [u8; 4] = [0; 4];
        let name = [&ZEROS[..], path.as_os_str().as_bytes(), &ZEROS].concat();
        let file: *mut File = memory.as_mut_ptr().cast();
        let mut granted = 0;
        // SAFETY: the memory is as large as the VFS asks for, aligned for anything and zero, so without methods; the
        // name is terminated, and like the memory it lives until the file is closed.
        unsafe {
            let start = name.as_ptr().add(ZEROS.len()).cast();
            let flags = ffi::OPEN_READONLY | ffi::OPEN_MAIN_DB;
            if let Err(code) = Code::check(open(vfs, start, file, flags, &mut granted)) {
                discard(file);
                return Err(code);
            }
            Ok(Self { lower: Lower::new(file), _memory: (memory, name) })
        }
    }
}

impl ReadFile {
    /// The file, as long as it is open.
    pub fn file(&self) -> OpenFile<'_> {
        OpenFile::within(self.lower)
    }
}

impl Drop for ReadFile {
    fn drop(&mut self) {
        self.lower.close();
    }
}
