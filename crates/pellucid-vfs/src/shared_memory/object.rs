//! The object in `/dev/shm` that has the regions of a wal-index.
//!
//! Its name is known to everybody on the machine, so what lies there is looked at before it is used: whose it is, and who may
//! write to it. It is mapped by its descriptor, behind a look at its size; its room is allocated before, so that a full memory is
//! an error and no signal. It is cut only while nobody has it.

use std::collections::btree_map::{BTreeMap, Entry};
use std::ffi::c_void;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Result as IoResult};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use pellucid::memory_index::{object_name, Head, Place, HEAD_BYTES, REGIONS_AT, TOKEN_BYTES};
use pellucid::secret::fill_random;
use pellucid::Result;
use pellucid_files::machine_memory::{allocate, boot_id, give, MachineMemory, PLACE};

use super::{elsewhere, told, unusable};
use crate::wal_index::REGION_BYTES;

/// Bytes of the object that its head has for itself.
const HEAD_ROOM: usize = 4096;
/// The permissions that an object can have.
const PERMISSIONS: u32 = 0o666;

/// An open object, with what of it is mapped for this process.
#[derive(Debug)]
pub struct Object {
    file: File,
    head: Head,
    to_write: bool,
    top: Mapping,
    /// By the number of their first region.
    mapped: Mutex<BTreeMap<usize, Mapping>>,
}

impl Object {
    /// Opens the object of a database.
    ///
    /// # Errors
    /// [`pellucid::Error::IndexInMemory`].
    pub fn find(database: Place, owner: &Metadata, to_write: bool) -> Result<Self> {
        let memory = MachineMemory::enter().map_err(|error| told(&error))?;
        let boot = boot_id().map_err(|error| no_boot_id(&error))?;
        let file = match memory.open(&object_name(database, &boot), to_write) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(elsewhere(&format!("`{PLACE}` here does not have its index")))
            }
            Err(error) => return Err(told(&error)),
        };
        let found = file.metadata().map_err(|error| told(&error))?;
        if !is_theirs(&found, owner) {
            return Err(foreign());
        }
        let mut bytes = [0; HEAD_BYTES];
        let read = file.read_exact_at(&mut bytes, 0);
        let head = read.ok().and_then(|()| Head::parse(&bytes)).filter(|head| {
            head.boot == boot && head.database == database && found.len() >= end_of(0)
        });
        let head = head.ok_or_else(|| elsewhere("the index in memory is of another opening"))?;
        Self::open(file, head, to_write).map_err(|error| told(&error))
    }

    /// Makes the object of a database. What has its name is left over from a process that was killed: nobody has it.
    ///
    /// # Errors
    /// [`pellucid::Error::IndexInMemory`]; then there is none.
    pub fn make(database: Place, index: Place, owner: &Metadata) -> Result<Self> {
        let memory = MachineMemory::enter().map_err(|error| told(&error))?;
        let boot = boot_id().map_err(|error| no_boot_id(&error))?;
        let name = object_name(database, &boot);
        let mut token = [0; TOKEN_BYTES];
        fill_random(&mut token)?;
        let head = Head { token, boot, database, index };
        let made = match memory.remove(&name) {
            // Another account's in a directory in which only owners remove files.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Self::make_over(&memory, &name, head, owner)
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(told(&error)),
            _ => memory.make(&name).map_err(|error| told(&error))?,
        };
        let filled = give(&made, owner.uid(), owner.gid(), owner.mode() & PERMISSIONS)
            .map_err(|error| told(&error))
            .and_then(|is_given| match is_given || !needs_group(owner) {
                true => Self::fill(made, head).map_err(|error| told(&error)),
                false => Err(unusable("this account cannot give it to the group of the database")),
            });
        filled.inspect_err(|_| {
            let _ = memory.remove(&name);
        })
    }

    fn make_over(memory: &MachineMemory, name: &str, head: Head, owner: &Metadata) -> Result<Self> {
        let file = memory.open(name, true).map_err(|error| told(&error))?;
        let found = file.metadata().map_err(|error| told(&error))?;
        if !is_theirs(&found, owner) || found.mode() & PERMISSIONS != owner.mode() & PERMISSIONS {
            return Err(foreign());
        }
        // Nobody has it: the lock on the database is this process's alone.
        let cut = file.set_len(0);
        cut.and_then(|()| Self::fill(file, head)).map_err(|error| told(&error))
    }

    fn fill(file: File, head: Head) -> IoResult<Self> {
        allocate(&file, 0, HEAD_ROOM as u64)?;
        allocate(&file, REGIONS_AT, REGION_BYTES as u64)?;
        file.write_all_at(&head.encode(), 0)?;
        Self::open(file, head, true)
    }

    fn open(file: File, head: Head, to_write: bool) -> IoResult<Self> {
        let top = Mapping::of(&file, 0, HEAD_ROOM, false)?;
        Ok(Self { file, head, to_write, top, mapped: Mutex::default() })
    }

    /// Removes the object's name, if it is that of `own`, or of anything where none is given.
    pub fn remove(database: Place, own: Option<&Self>) {
        let (Ok(memory), Ok(boot)) = (MachineMemory::enter(), boot_id()) else { return };
        let name = object_name(database, &boot);
        let id = |file: &File| file.metadata().ok().map(|found| (found.dev(), found.ino()));
        let is_own =
            |own: &Self| memory.open(&name, false).is_ok_and(|named| id(&named) == id(&own.file));
        if own.is_none_or(is_own) {
            // What stays, because it is another account's, is found by its name at the next opening.
            let _ = memory.remove(&name);
        }
    }

    /// What the object said of itself when it was opened.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Whether its regions can be written.
    pub fn is_writable(&self) -> bool {
        self.to_write
    }

    /// Whether the object still has the token.
    pub fn has_token(&self) -> bool {
        let token = &self.head.encode()[8..8 + TOKEN_BYTES];
        let start = self.top.start.as_ptr().cast::<u8>();
        // SAFETY: the head is mapped as long as the object is, and was whole when it was.
        token
            .iter()
            .enumerate()
            .all(|(at, byte)| unsafe { start.add(8 + at).read_volatile() } == *byte)
    }

    /// The start of a region. `None` if it is not there and `extend` does not ask for it.
    ///
    /// # Errors
    /// The system's.
    pub fn region(&self, number: usize, extend: bool) -> IoResult<Option<*mut c_void>> {
        // Mappings begin at pages of the system, which may be larger than a region.
        let each = (system_page_bytes() / REGION_BYTES).max(1);
        let first = number - number % each;
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match mapped.entry(first) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => {
                let (at, end) = (end_of(first) - REGION_BYTES as u64, end_of(first + each - 1));
                if self.file.metadata()?.len() < end {
                    if !extend || !self.to_write {
                        return Ok(None);
                    }
                    allocate(&self.file, at, end - at)?;
                }
                place.insert(Mapping::of(&self.file, at, each * REGION_BYTES, self.to_write)?)
            }
        };
        let start = found.start.as_ptr().cast::<u8>();
        // SAFETY: the mapping has `each` regions.
        Ok(Some(unsafe { start.add((number - first) * REGION_BYTES).cast() }))
    }
}

fn system_page_bytes() -> usize {
    // SAFETY: the call touches no memory.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Where a region ends in the object.
fn end_of(region: usize) -> u64 {
    REGIONS_AT + (region as u64 + 1) * REGION_BYTES as u64
}

/// Whether an object is of somebody who may write the database, and lets nobody else in.
fn is_theirs(found: &Metadata, database: &Metadata) -> bool {
    // Only a member of a group can give a file to it.
    let by_group = database.mode() & 0o020 != 0 && found.gid() == database.gid();
    let own = rustix::process::geteuid().as_raw();
    let is_known = [0, own, database.uid()].contains(&found.uid());
    let is_whose = is_known || by_group || database.mode() & 0o002 != 0;
    found.is_file() && is_whose && found.mode() & 0o777 & !(database.mode() & PERMISSIONS) == 0
}

/// Whether the database's group may do with it what others may not.
fn needs_group(database: &Metadata) -> bool {
    (database.mode() >> 3) & 0o6 != database.mode() & 0o6
}

fn foreign() -> pellucid::Error {
    unusable(&format!("in `{PLACE}` lies another account's file under the name of the index"))
}

fn no_boot_id(error: &std::io::Error) -> pellucid::Error {
    unusable(&format!("the kernel does not say which start of the machine this is: {error}"))
}

/// A part of an object, mapped until it is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: the memory is shared between processes anyway: who reads and writes it when is SQLite's business, by its locks and
// barriers. The address is never changed.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a part that lies before the file's end.
    fn of(file: &File, at: u64, bytes: usize, to_write: bool) -> IoResult<Self> {
        let access = if to_write { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: a shared mapping at no fixed address touches nothing that exists; the descriptor is open.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                at as libc::off_t,
            )
        };
        match NonNull::new(start).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, bytes }),
            None => Err(std::io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `of` with this length; SQLite has given its pointers up before the last connection drops the
        // object.
        unsafe { libc::munmap(self.start.as_ptr(), self.bytes) };
    }
}
