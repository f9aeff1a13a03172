//! What the system calls on one directory are: recorded in order, and failed where a test wants it.
//!
//! `syscalls.rs` calls in here. Only the thread that began to watch is watched; the WAL index is not
//! recorded, because no power cut leaves anything of it that SQLite would use.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Mutex;

use crate::trace::{Event, FileId, Trace};

/// Kinds of system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    Open,
    Read,
    Write,
    Sync,
    Truncate,
    Unlink,
    Rename,
    MakeFolder,
    Look,
    Lock,
    Map,
}

/// How calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// EIO, from any call; ENOMEM from a mapping.
    Broken,
    /// ENOSPC, after half of a write: of its sectors or, if it has one, of its bytes.
    Full,
    /// Half of the bytes.
    Short,
    /// EINTR.
    Interrupted,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Broken, Self::Full, Self::Short, Self::Interrupted];

    fn concerns(self, call: Call, creates: bool) -> bool {
        match self {
            Self::Broken => true,
            Self::Full => call == Call::Write || creates || call == Call::Sync,
            Self::Short => matches!(call, Call::Read | Call::Write),
            Self::Interrupted => {
                matches!(call, Call::Open | Call::Read | Call::Write | Call::Sync | Call::Truncate)
            }
        }
    }
}

/// A fault to come.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub kind: Kind,
    /// The call of those the kind concerns, from 0.
    pub at: u64,
    /// From that call on, and not that one alone.
    pub persistent: bool,
}

/// What a call is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Go,
    Half,
    /// Half of it, in whole sectors if it has several; the rest fails.
    HalfOfSectors,
    Fail(i32),
}

enum Opened {
    File(FileId),
    /// The one that is watched, which has no name, or one in it.
    Directory(String),
    /// The WAL index.
    Index,
}

struct Watch {
    directory: String,
    opened: HashMap<i32, Opened>,
    names: BTreeMap<String, FileId>,
    folders: BTreeSet<String>,
    trace: Trace,
    fault: Option<Fault>,
    counted: u64,
    fill_up: bool,
    struck: Vec<Struck>,
}

/// A call that was made to fail.
#[derive(Debug, Clone)]
pub struct Struck {
    pub call: Call,
    /// The file's name.
    pub name: String,
    pub offset: u64,
    pub length: usize,
}

static WATCH: Mutex<Option<Watch>> = Mutex::new(None);

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}

fn with<T>(call: impl FnOnce(&mut Watch) -> T) -> Option<T> {
    if !WATCHED.try_with(Cell::get).unwrap_or(false) {
        return None;
    }
    // Whatever is called below does not come back here.
    WATCHED.set(false);
    let done = WATCH.lock().unwrap_or_else(|p| p.into_inner()).as_mut().map(call);
    WATCHED.set(true);
    done
}

/// What is there, and in the directories in it.
fn base(directory: &Path, before: &str, trace: &mut Trace) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{before}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            base(&entry.path(), &format!("{name}/"), trace);
            trace.folders.insert(name);
        } else if !is_index(&name) {
            trace.base.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}

/// Begins to record what this thread does to `directory`.
pub fn begin(directory: &Path) {
    let mut trace = Trace::default();
    let mut names = BTreeMap::new();
    base(directory, "", &mut trace);
    for (file, name) in trace.base.keys().enumerate() {
        names.insert(name.clone(), file);
        trace.files.push(name.clone());
    }
    let watch = Watch {
        directory: directory.to_str().unwrap().to_owned(),
        opened: HashMap::new(),
        names,
        folders: trace.folders.clone(),
        trace,
        fault: None,
        counted: 0,
        fill_up: false,
        struck: Vec::new(),
    };
    *WATCH.lock().unwrap_or_else(|p| p.into_inner()) = Some(watch);
    WATCHED.set(true);
}

/// Ends it.
pub fn end() -> Trace {
    WATCHED.set(false);
    let ended = WATCH.lock().unwrap_or_else(|p| p.into_inner()).take();
    ended.map(|watch| watch.trace).unwrap_or_default()
}

/// Puts a word of the application's into the record.
pub fn tell(event: Event) {
    with(|watch| watch.trace.events.push(event));
}

/// How many events were recorded so far.
pub fn events() -> usize {
    with(|watch| watch.trace.events.len()).unwrap_or_default()
}

/// Arms a fault; calls are counted from here.
pub fn arm(fault: Fault) {
    with(|watch| {
        watch.fault = Some(fault);
        watch.counted = 0;
        watch.fill_up = false;
        watch.struck.clear();
    });
}

/// Disarms it; which calls were struck.
pub fn disarm() -> Vec<Struck> {
    with(|watch| {
        watch.fault = None;
        std::mem::take(&mut watch.struck)
    })
    .unwrap_or_default()
}

const INDEX: &str = "-shm";

fn is_index(name: &str) -> bool {
    name.ends_with(INDEX)
}

impl Watch {
    fn name_in<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(&self.directory)?.strip_prefix('/')
    }

    fn file_of(&self, descriptor: i32) -> Option<FileId> {
        match self.opened.get(&descriptor) {
            Some(Opened::File(file)) => Some(*file),
            _ => None,
        }
    }

    fn decide(&mut self, call: Call, creates: bool, name: &str, place: (u64, usize)) -> Verdict {
        let Some(fault) = self.fault else { return Verdict::Go };
        if std::mem::take(&mut self.fill_up) && call == Call::Write {
            return Verdict::Fail(libc::ENOSPC);
        }
        if !fault.kind.concerns(call, creates) {
            return Verdict::Go;
        }
        let number = self.counted;
        self.counted += 1;
        if number < fault.at || (number > fault.at && !fault.persistent) {
            return Verdict::Go;
        }
        let (offset, length) = place;
        self.struck.push(Struck { call, name: name.to_owned(), offset, length });
        match fault.kind {
            Kind::Broken if call == Call::Map => Verdict::Fail(libc::ENOMEM),
            Kind::Broken => Verdict::Fail(libc::EIO),
            // Half of a sector that nothing may be put over is not what a disk leaves (docs/format.md, "Laying").
            Kind::Full if call == Call::Write && fault.persistent && place.1 <= 512 => {
                Verdict::Fail(libc::ENOSPC)
            }
            Kind::Full if call == Call::Write && number == fault.at => {
                self.fill_up = place.1 >= 2;
                Verdict::HalfOfSectors
            }
            Kind::Full => Verdict::Fail(libc::ENOSPC),
            Kind::Short => Verdict::Half,
            // A call that is interrupted for ever would never return.
            Kind::Interrupted if number > fault.at && number % 3 != 0 => Verdict::Go,
            Kind::Interrupted => Verdict::Fail(libc::EINTR),
        }
    }
}

/// The path that a descriptor was opened by, as the system knows it.
pub fn path_of(descriptor: i32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    path.into_os_string().into_string().ok()
}

impl Watch {
    /// Takes up a descriptor that was opened by a system call of its own, past the C library.
    fn take_up(&mut self, descriptor: i32) {
        if self.opened.contains_key(&descriptor) {
            return;
        }
        if let Some(path) = path_of(descriptor) {
            self.note(&path, descriptor, 0);
        }
    }
}

/// Asked before a call on a descriptor, about `length` bytes at `offset` where it has them.
pub fn before(descriptor: i32, call: Call, offset: u64, length: usize) -> Verdict {
    with(|watch| {
        watch.take_up(descriptor);
        if watch.fault.is_none() {
            return Verdict::Go;
        }
        let name = match watch.opened.get(&descriptor) {
            Some(Opened::File(file)) => watch.trace.files[*file].clone(),
            Some(Opened::Index) => INDEX.to_owned(),
            // SQLite takes no notice of a directory that cannot be synced (`unixSync`), which makes every
            // promise void.
            Some(Opened::Directory(_)) | None => return Verdict::Go,
        };
        watch.decide(call, false, &name, (offset, length))
    })
    .unwrap_or(Verdict::Go)
}

/// Asked before a call on a path.
pub fn before_path(path: &str, call: Call, flags: i32) -> Verdict {
    with(|watch| {
        let Some(name) = watch.name_in(path).map(str::to_owned) else { return Verdict::Go };
        let known = watch.names.contains_key(&name);
        let creates = call == Call::Open && flags & libc::O_CREAT != 0 && !known;
        watch.decide(call, creates, &name, (0, 0))
    })
    .unwrap_or(Verdict::Go)
}

/// A path was opened.
pub fn opened(path: &str, descriptor: i32, flags: i32) {
    with(|watch| watch.note(path, descriptor, flags));
}

impl Watch {
    fn note(&mut self, path: &str, descriptor: i32, flags: i32) {
        if path == self.directory {
            self.opened.insert(descriptor, Opened::Directory(String::new()));
            return;
        }
        let Some(name) = self.name_in(path).map(str::to_owned) else { return };
        if self.folders.contains(&name) {
            self.opened.insert(descriptor, Opened::Directory(name));
            return;
        }
        if is_index(&name) {
            self.opened.insert(descriptor, Opened::Index);
            return;
        }
        let file = match self.names.get(&name) {
            Some(file) => *file,
            None => {
                let file = self.trace.files.len();
                self.trace.files.push(name.clone());
                self.names.insert(name.clone(), file);
                self.trace.events.push(Event::Create { name, file });
                file
            }
        };
        self.opened.insert(descriptor, Opened::File(file));
        if flags & libc::O_TRUNC != 0 {
            self.trace.events.push(Event::Truncate { file, size: 0 });
        }
    }
}

/// A descriptor was closed.
pub fn closed(descriptor: i32) {
    with(|watch| watch.opened.remove(&descriptor));
}

/// Bytes were written.
pub fn wrote(descriptor: i32, offset: u64, bytes: &[u8]) {
    with(|watch| {
        if let Some(file) = watch.file_of(descriptor) {
            let bytes = bytes.to_vec();
            watch.trace.events.push(Event::Write { file, offset, bytes });
        }
    });
}

/// A file was cut or extended.
pub fn truncated(descriptor: i32, size: u64) {
    with(|watch| {
        if let Some(file) = watch.file_of(descriptor) {
            watch.trace.events.push(Event::Truncate { file, size });
        }
    });
}

/// A file or directory was synced.
pub fn synced(descriptor: i32) {
    with(|watch| match watch.opened.get(&descriptor) {
        Some(Opened::File(file)) => {
            let file = *file;
            watch.trace.events.push(Event::Sync { file });
        }
        Some(Opened::Directory(folder)) => {
            let folder = folder.clone();
            watch.trace.events.push(Event::SyncDirectory { folder });
        }
        _ => {}
    });
}

/// A name was removed.
pub fn unlinked(path: &str) {
    with(|watch| {
        let Some(name) = watch.name_in(path).map(str::to_owned) else { return };
        if watch.names.remove(&name).is_some() {
            watch.trace.events.push(Event::Unlink { name });
        }
    });
}

/// A file got another name.
pub fn renamed(from: &str, to: &str) {
    with(|watch| {
        let (Some(from), Some(to)) = (watch.name_in(from), watch.name_in(to)) else { return };
        let (from, to) = (from.to_owned(), to.to_owned());
        if let Some(file) = watch.names.remove(&from) {
            watch.names.insert(to.clone(), file);
            watch.trace.files[file].clone_from(&to);
            watch.trace.events.push(Event::Rename { from, to });
        }
    });
}

/// A directory was made.
pub fn made_folder(path: &str) {
    with(|watch| {
        let Some(name) = watch.name_in(path).map(str::to_owned) else { return };
        watch.folders.insert(name.clone());
        watch.trace.events.push(Event::MakeFolder { name });
    });
}

/// A directory was removed.
pub fn removed_folder(path: &str) {
    with(|watch| {
        let Some(name) = watch.name_in(path).map(str::to_owned) else { return };
        if watch.folders.remove(&name) {
            watch.trace.events.push(Event::RemoveFolder { name });
        }
    });
}
