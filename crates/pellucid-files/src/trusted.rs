//! Whose a file is: no key, no file of a keyring and no library is taken that another account could have put there.
//!
//! The rule and its table: docs/guide/keys.md, "Whose files are taken". A path is walked as the kernel walks it, one
//! component after the other and each by the descriptor of the one before, so that what was looked at is what is opened.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;

use crate::open_at::open_at;
use rustix::fs::{fstat, fstatfs, readlinkat, FileType, Mode, OFlags, Stat, CWD};
use rustix::io::Errno;

use pellucid::error::{Error, Result, Subject};
use pellucid::shown::Shown;

/// What nobody else may do with a file that is to be opened.
#[derive(Debug, Clone, Copy)]
pub enum Guard<'a> {
    /// Exchange it or write to it.
    Unchanged,
    /// That, nor read it.
    Secret {
        /// What it is called, for people.
        what: &'a str,
        /// The group of the system instance that it belongs to.
        group: Option<u32>,
    },
}

/// Opens a file for reading that nobody could have put there or changed but root and the caller, by the effective user
/// id. Does not wait for the writer of a FIFO.
///
/// # Errors
/// [`Error::Misuse`] if somebody else could, [`Error::Io`] if it cannot be opened.
pub fn open(path: &Path, guard: Guard<'_>) -> Result<File> {
    Walk::new().open(path, guard).map_err(|stop| stop.into_error(path))
}

/// Looks at `path`, a file or a directory, and at the way to it, as far as they are there and the caller may look.
///
/// # Errors
/// [`Error::Misuse`] if somebody other than root and the caller could exchange it, or write to it.
pub fn check(path: &Path) -> Result<()> {
    match Walk::new().end_of(path, Last::Directory).and_then(|end| end.check()) {
        // Whoever uses it cannot get there either, and is told.
        Ok(()) | Err(Stop::Io(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP)) => {
            Ok(())
        }
        Err(stop) => Err(stop.into_error(path)),
    }
}

/// Opens a regular file that nobody but root could have put there or changed, whoever the caller is: a program that is run
/// unasked, a module that it loads, their settings.
///
/// # Errors
/// [`Error::Misuse`] if somebody else could, or others may write to its directory; [`Error::Io`] if it cannot be opened.
pub fn open_of_root(path: &Path) -> Result<File> {
    Walk::of_root().open(path, Guard::Unchanged).map_err(|stop| stop.into_error(path))
}

/// Looks at an extension of SQLite's before it is loaded, as [`check`] does: at the name as it is and as SQLite makes it. A bare
/// name is the dynamic linker's to find in the system's directories.
///
/// # Errors
/// Those of [`check`].
pub fn check_extension(extension: &Path) -> Result<()> {
    if extension.components().count() > 1 {
        check(extension)?;
        let mut longer = extension.as_os_str().to_owned();
        longer.push(".so");
        check(Path::new(&longer))?;
    }
    Ok(())
}

/// One moment, in which a few directories that were looked at count as looked at: later walks of this thread go on from their
/// descriptors. An opening of a database walks to the same directory six times. Ends with the value.
///
/// [`Moment::number`] tells those apart who keep what they have read in one.
#[derive(Debug)]
pub struct Moment(PhantomData<*const ()>);

/// What is known in a moment.
#[derive(Default)]
struct Known {
    /// Moments within each other.
    depth: u32,
    /// Of the outermost of them, in this thread.
    number: u64,
    caller: Option<(u32, Vec<u32>)>,
    /// Directories that no symbolic link led to.
    directories: Vec<(PathBuf, Rc<OwnedFd>)>,
}

/// The instance's, its keyring's, and that of the files in it which an opening reads.
const DIRECTORIES_MOST: usize = 4;

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

impl Moment {
    /// Begins one.
    pub fn begin() -> Self {
        let _ = KNOWN.try_with(|known| {
            let mut known = known.borrow_mut();
            known.number += u64::from(known.depth == 0);
            known.depth += 1;
        });
        Self(PhantomData)
    }

    /// The number of this thread's moment, which no other moment of the thread has; none outside of one.
    pub fn number() -> Option<u64> {
        let number = |known: &RefCell<Known>| {
            let known = known.borrow();
            (known.depth > 0).then_some(known.number)
        };
        KNOWN.try_with(number).ok().flatten()
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        let _ = KNOWN.try_with(|known| {
            let mut known = known.borrow_mut();
            known.depth = known.depth.saturating_sub(1);
            if known.depth == 0 {
                *known = Known { number: known.number, ..Known::default() };
            }
        });
    }
}

/// As the kernel: a path with more symbolic links than that has a circle.
const LINKS_MOST: u32 = 40;
/// `DEFAULT_OVERFLOWUID` of the kernel.
const OVERFLOW_USUALLY: u32 = 65534;
const STICKY: u32 = 0o1000;
/// The file system of pipes without a name (linux/magic.h).
const PIPEFS_MAGIC: u64 = 0x5049_5045;
/// The rights of an entry of an access control list, and of each third of a mode.
const READ_WRITE_RUN: u32 = 7;
const WRITE: u32 = 2;
/// The most that the kernel keeps of it (`XATTR_SIZE_MAX`).
const LIST_BYTES_MOST: usize = 65536;

enum Stop {
    Io(Errno),
    /// Why, as the rest of a sentence about the path.
    Refused(String),
}

impl Stop {
    fn into_error(self, path: &Path) -> Error {
        let subject = Subject::File(path.to_owned());
        match self {
            Stop::Io(errno) => Error::io(subject, errno.into()),
            Stop::Refused(cause) => Error::misuse(subject, cause),
        }
    }
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Stop::Io(errno)
    }
}

type Walked<T> = std::result::Result<T, Stop>;

/// What the last name of a path is taken for first: it costs a call to find that it is the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Directory,
    File,
}

/// Where a path ends.
struct End<'a> {
    walk: &'a Walk,
    /// The directory that it lies in, with its name there and what was found; none for a directory.
    entry: Option<(Rc<OwnedFd>, OsString, Stat)>,
    /// As a descriptor of this process, by way of `/proc`: somebody gave it, no name led to it.
    is_descriptor: bool,
    found: Rc<OwnedFd>,
    /// For people.
    shown: PathBuf,
}

struct Walk {
    caller: u32,
    groups: Vec<u32>,
    /// Takes nothing of the caller's, and nothing that another walk of this moment has looked at.
    is_of_root: bool,
}

impl Walk {
    fn new() -> Self {
        let known = KNOWN.try_with(|known| known.borrow().caller.clone()).ok().flatten();
        let (caller, groups) = known.unwrap_or_else(|| {
            let mut groups = vec![rustix::process::getegid().as_raw()];
            let more = rustix::process::getgroups().unwrap_or_default();
            groups.extend(more.into_iter().map(rustix::process::Gid::as_raw));
            (rustix::process::geteuid().as_raw(), groups)
        });
        let walk = Self { caller, groups, is_of_root: false };
        let _ = KNOWN.try_with(|known| {
            let mut known = known.borrow_mut();
            if known.depth > 0 && known.caller.is_none() {
                known.caller = Some((walk.caller, walk.groups.clone()));
            }
        });
        walk
    }

    fn of_root() -> Self {
        Self { caller: 0, groups: Vec::new(), is_of_root: true }
    }

    /// Where a walk to `path` begins: the directory, its path, and the names that are left.
    fn begin(&self, path: &Path) -> Walked<(Rc<OwnedFd>, PathBuf, VecDeque<OsString>)> {
        let near = KNOWN.try_with(|known| {
            let known = known.borrow();
            let on_the_way = known.directories.iter().filter(|(one, _)| path.starts_with(one));
            let (directory, descriptor) =
                on_the_way.max_by_key(|(one, _)| one.as_os_str().len())?;
            let rest = path.strip_prefix(directory).ok()?;
            Some((descriptor.clone(), directory.clone(), names(rest.as_os_str()).collect()))
        });
        match near {
            Ok(Some(near)) if !self.is_of_root => return Ok(near),
            _ => {}
        }
        let root = Rc::new(self.enter(CWD, OsStr::new("/"), Path::new("/"))?);
        Ok((root, PathBuf::from("/"), names(path.as_os_str()).collect()))
    }

    /// Keeps the directory at `path` for the rest of the moment.
    fn keep(&self, path: &Path, directory: &Rc<OwnedFd>) {
        if self.is_of_root {
            return;
        }
        let _ = KNOWN.try_with(|known| {
            let mut known = known.borrow_mut();
            let is_new = known.directories.iter().all(|(one, _)| one != path);
            if known.depth > 0 && is_new && known.directories.len() < DIRECTORIES_MOST {
                known.directories.push((path.to_owned(), directory.clone()));
            }
        });
    }

    fn end_of(&self, path: &Path, last: Last) -> Walked<End<'_>> {
        let whole = std::path::absolute(path).map_err(|_| Errno::NOENT)?;
        let (mut directory, mut shown, mut rest) = self.begin(&whole)?;
        let is_straight = !rest.iter().any(|name| name == "..");
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            let here = shown.join(&name);
            let look = || -> Walked<(OwnedFd, Stat)> {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let found = open_at(&directory, &name, flags, Mode::empty())?;
                let stat = fstat(&found)?;
                Ok((found, stat))
            };
            let mut looked = None;
            if last == Last::File && rest.is_empty() {
                let is_directory = |(_, stat): &(OwnedFd, Stat)| {
                    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                };
                looked = Some(look()?).filter(|looked| !is_directory(looked));
            }
            if looked.is_none() {
                match self.enter(&directory, &name, &here) {
                    Ok(inner) => {
                        directory = Rc::new(inner);
                        shown = match name == ".." {
                            true => shown.parent().map(Path::to_owned).unwrap_or(shown),
                            false => here,
                        };
                        continue;
                    }
                    Err(Stop::Io(Errno::NOTDIR | Errno::LOOP)) => {}
                    Err(stop) => return Err(stop),
                }
            }
            let (found, stat) = looked.map_or_else(look, Ok)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
                if !rest.is_empty() {
                    return Err(Stop::Io(Errno::NOTDIR));
                }
                if links == 0 && is_straight {
                    self.keep(&shown, &directory);
                }
                let entry = Some((directory, name, stat));
                let found = Rc::new(found);
                return Ok(End { walk: self, entry, is_descriptor: false, found, shown: here });
            }
            self.check_owner(&stat, &here)?;
            links += 1;
            if links > LINKS_MOST {
                return Err(Stop::Io(Errno::LOOP));
            }
            // By the link's own descriptor: the one whose owner was looked at.
            let target = readlinkat(&found, "", Vec::new())?.into_bytes();
            if is_of_proc(&directory)? && leads_by_itself(&target) {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                let found = open_at(&directory, &name, flags, Mode::empty())?;
                let stat = fstat(&found)?;
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    self.check_directory(&found, &here)?;
                    (directory, shown) = (Rc::new(found), here);
                    continue;
                }
                return match rest.is_empty() {
                    true => Ok(End {
                        walk: self,
                        entry: Some((directory, name, stat)),
                        is_descriptor: true,
                        found: Rc::new(found),
                        shown: here,
                    }),
                    false => Err(Stop::Io(Errno::NOTDIR)),
                };
            }
            if target.first() == Some(&b'/') {
                directory = Rc::new(self.enter(CWD, OsStr::new("/"), Path::new("/"))?);
                shown = PathBuf::from("/");
            }
            for name in names(OsStr::from_bytes(&target)).collect::<Vec<_>>().into_iter().rev() {
                rest.push_front(name);
            }
        }
        if links == 0 && is_straight {
            self.keep(&shown, &directory);
        }
        Ok(End { walk: self, entry: None, is_descriptor: false, found: directory, shown })
    }

    /// A directory by its name in another one, links apart.
    fn enter(&self, directory: impl AsFd, name: &OsStr, shown: &Path) -> Walked<OwnedFd> {
        // Asked for as a directory, so that an automounter mounts it.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inner = open_at(directory, name, flags, Mode::empty())?;
        self.check_directory(&inner, shown)?;
        Ok(inner)
    }

    fn check_directory(&self, directory: &OwnedFd, shown: &Path) -> Walked<()> {
        let stat = fstat(directory)?;
        self.check_owner(&stat, shown)?;
        // There nobody exchanges what is not theirs, and what is in it has to be root's or the caller's as well.
        if stat.st_mode & STICKY != 0 {
            return Ok(());
        }
        self.check_writers(directory, &stat, shown)
    }

    fn check_owner(&self, stat: &Stat, shown: &Path) -> Walked<()> {
        let owner = stat.st_uid;
        if owner == 0 {
            return Ok(());
        }
        if is_unmapped(owner)? {
            return Err(Stop::Refused(format!(
                "the owner of `{}` is not known in this user namespace, and so nobody who is trusted with it; map its \
                 owner, or root, into the container",
                shown.shown()
            )));
        }
        if owner == self.caller {
            return Ok(());
        }
        let name = field_of(owner, 0);
        let whom =
            name.as_deref().map_or_else(|| format!("user {owner}"), |name| format!("`{name}`"));
        if self.is_of_root {
            return Err(Stop::Refused(format!(
                "`{}` belongs to {whom}, and only what is root's is taken here; `chown root` it, with each directory on the \
                 way to it",
                shown.shown()
            )));
        }
        let run = name.unwrap_or_else(|| format!("'#{owner}'"));
        Err(Stop::Refused(format!(
            "`{}` belongs to {whom}, who could exchange what is there; run it as that user (`sudo -u {run} ..`), or name \
             what belongs to you or to root",
            shown.shown()
        )))
    }

    fn check_writers(&self, file: impl AsFd, stat: &Stat, shown: &Path) -> Walked<()> {
        let path = shown.shown();
        if stat.st_mode & WRITE != 0 {
            return Err(Stop::Refused(format!(
                "everybody may write to `{path}` (mode {:04o}); `chmod o-w` it",
                stat.st_mode & 0o7777
            )));
        }
        // No entry of a list gives more than the group's bits.
        if stat.st_mode >> 3 & WRITE == 0 {
            return Ok(());
        }
        for (holder, rights) in holders(file, stat)? {
            let may = match holder {
                _ if rights & WRITE == 0 => true,
                Holder::User(user) => user == 0 || user == self.caller,
                Holder::Group(group) => self.is_private(group)?,
            };
            if !may {
                return Err(Stop::Refused(format!(
                    "{holder} may write to `{path}` (mode {:04o}); `chmod g-w` it",
                    stat.st_mode & 0o7777
                )));
            }
        }
        Ok(())
    }

    /// Nobody but its owner may read it, and where that is root a group of the caller's.
    fn check_readers(
        &self,
        file: impl AsFd,
        stat: &Stat,
        what: &str,
        instance: Option<u32>,
    ) -> Walked<()> {
        let private = || {
            let todo = match stat.st_uid == self.caller {
                true => "`chmod 600` it".to_owned(),
                false => "let it be yours alone (0600), or root's and a group's of yours (0440)"
                    .to_owned(),
            };
            Stop::Refused(format!(
                "others can read {what} (mode {:04o}); {todo}",
                stat.st_mode & 0o7777
            ))
        };
        if stat.st_mode & READ_WRITE_RUN != 0 {
            return Err(private());
        }
        for (holder, rights) in holders(file, stat)? {
            let may = match holder {
                _ if rights == 0 => true,
                Holder::User(user) => user == 0 || user == self.caller,
                Holder::Group(_) if rights & WRITE != 0 => false,
                Holder::Group(group) => {
                    (stat.st_uid == 0 && self.groups.contains(&group)) || instance == Some(group)
                }
            };
            if !may {
                return Err(private());
            }
        }
        Ok(())
    }

    /// The group that was made with the caller's account, or root's, and has nobody else in it: with it, a umask of 002
    /// lets nobody in. A group that the two files do not know may have anybody in it.
    fn is_private(&self, group: u32) -> Walked<bool> {
        let (users, groups) = (text_of("/etc/passwd")?, text_of("/etc/group")?);
        let users: Vec<Vec<&str>> = users.lines().map(|line| line.split(':').collect()).collect();
        let number = |fields: &[&str], at: usize| fields.get(at)?.parse::<u32>().ok();
        let mut own = users.iter().filter(|user| number(user, 3) == Some(group));
        let (Some(user), None) = (own.next(), own.next()) else { return Ok(false) };
        let trusted = number(user, 2).is_some_and(|uid| uid == 0 || uid == self.caller);
        let mut named = groups
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .filter(|fields| number(fields, 2) == Some(group));
        let (Some(found), None) = (named.next(), named.next()) else { return Ok(false) };
        let members = found.get(3).copied().unwrap_or_default();
        let is_own = |member: &str| member.is_empty() || Some(&member) == user.first();
        Ok(trusted && found.first() == user.first() && members.split(',').all(is_own))
    }

    fn open(&self, path: &Path, guard: Guard<'_>) -> Walked<File> {
        let end = self.end_of(path, Last::File)?;
        let Some((directory, name, stat)) = &end.entry else { return Err(Stop::Io(Errno::ISDIR)) };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let unnamed = kind == FileType::Fifo && fstatfs(&end.found)?.f_type as u64 == PIPEFS_MAGIC;
        // A pipe of the shell's and a terminal have no content that lies anywhere.
        let is_stream = unnamed || kind == FileType::CharacterDevice;
        if self.is_of_root {
            if kind != FileType::RegularFile {
                return Err(Stop::Refused("not a regular file".to_owned()));
            }
            // In a sticky directory others can give a file of root's another name.
            let within = end.shown.parent().unwrap_or(Path::new("/"));
            self.check_writers(directory, &fstat(directory)?, within)?;
        }
        if kind != FileType::RegularFile && !is_stream {
            let told = "neither a file nor a pipe of this command's; `-` reads standard input";
            return Err(Stop::Refused(told.to_owned()));
        }
        let links = if end.is_descriptor { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | links;
        let file = open_at(directory, name, flags, Mode::empty())?;
        // What was opened, which may be another one than was found.
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
        }
        if FileType::from_raw_mode(stat.st_mode) != kind {
            return Err(Stop::Refused("it was exchanged just now; try again".to_owned()));
        }
        if is_stream {
            if !end.is_descriptor {
                self.check_owner(&stat, &end.shown)?;
            }
            return Ok(file.into());
        }
        self.check_owner(&stat, &end.shown)?;
        if let Guard::Secret { what, group } = guard {
            self.check_readers(&file, &stat, what, group)?;
        }
        self.check_writers(&file, &stat, &end.shown)?;
        Ok(file.into())
    }
}

impl End<'_> {
    fn check(&self) -> Walked<()> {
        match &self.entry {
            // On the way.
            None => Ok(()),
            Some((_, _, stat)) => {
                self.walk.check_owner(stat, &self.shown)?;
                self.walk.check_writers(&self.found, stat, &self.shown)
            }
        }
    }
}

fn names(path: &OsStr) -> impl Iterator<Item = OsString> + '_ {
    let names = path.as_bytes().split(|byte| *byte == b'/');
    names.filter(|name| !matches!(*name, b"" | b".")).map(|name| OsStr::from_bytes(name).to_owned())
}

fn is_of_proc(directory: &OwnedFd) -> Walked<bool> {
    Ok(fstatfs(directory)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// Whether a link of `/proc` leads to what a process has, and its text only describes that (proc(5), `/proc/pid/fd`).
/// Those that are paths, `self` and `mounts`, are relative.
fn leads_by_itself(target: &[u8]) -> bool {
    target.first() == Some(&b'/') || target.contains(&b':')
}

/// An account, or a group of them, with rights by a mode or an access control list.
#[derive(Debug, Clone, Copy)]
enum Holder {
    User(u32),
    Group(u32),
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Holder::User(user) => write!(f, "the user {user}"),
            Holder::Group(group) => write!(f, "the group {group}"),
        }
    }
}

/// Who has rights but the owner and everybody. Where there is an access control list, the bits of the group in the mode
/// are the most that any of its entries gives (acl(5)).
fn holders(file: impl AsFd, stat: &Stat) -> Walked<Vec<(Holder, u32)>> {
    let most = stat.st_mode >> 3 & READ_WRITE_RUN;
    let by_mode = vec![(Holder::Group(stat.st_gid), most)];
    if most == 0 {
        return Ok(by_mode);
    }
    // By `/proc`, because a descriptor that only names a directory does not give its list.
    let itself = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let mut list = vec![0; LIST_BYTES_MOST];
    let unreadable =
        || Stop::Refused("an access control list on the way to it cannot be read".to_owned());
    match rustix::fs::getxattr(itself, "system.posix_acl_access", &mut list[..]) {
        Ok(bytes) => list.truncate(bytes),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(by_mode),
        Err(_) => return Err(unreadable()),
    }
    entries(&list, stat.st_gid, most).ok_or_else(unreadable)
}

/// The list as Linux hands it out: version 2, then a tag, rights and an id for each entry, little-endian
/// (linux/posix_acl_xattr.h).
fn entries(list: &[u8], group: u32, most: u32) -> Option<Vec<(Holder, u32)>> {
    let (version, entries) = list.split_first_chunk()?;
    if u32::from_le_bytes(*version) != 2 || entries.len() % 8 != 0 {
        return None;
    }
    let mut holders = Vec::new();
    for entry in entries.chunks_exact(8) {
        let rights = u32::from(u16::from_le_bytes([entry[2], entry[3]])) & most;
        let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        match u16::from_le_bytes([entry[0], entry[1]]) {
            0x02 => holders.push((Holder::User(id), rights)),
            0x04 => holders.push((Holder::Group(group), rights)),
            0x08 => holders.push((Holder::Group(id), rights)),
            // The owner, the mask and everybody: as in the mode.
            0x01 | 0x10 | 0x20 => {}
            _ => return None,
        }
    }
    Some(holders)
}

/// The home directory of an account, by `/etc/passwd`.
pub fn home_of(user: u32) -> Option<PathBuf> {
    field_of(user, 5).filter(|home| home.starts_with('/')).map(PathBuf::from)
}

/// A field of the account's line in `/etc/passwd`; the name is the first.
fn field_of(user: u32, at: usize) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let line = lines.find(|fields| fields.get(2).and_then(|id| id.parse().ok()) == Some(user))?;
    line.get(at).map(|field| (*field).to_owned())
}

/// Whether `id` is what the kernel says for every account that a user namespace does not have (user_namespaces(7)): then
/// it may be anybody's, even if the caller's own looks the same.
fn is_unmapped(id: u32) -> Walked<bool> {
    static OVERFLOW: OnceLock<u32> = OnceLock::new();
    // What could not be read is asked for again, and not taken for the usual number from then on.
    let overflow = match OVERFLOW.get() {
        Some(known) => *known,
        None => {
            let told = text_of("/proc/sys/kernel/overflowuid")?;
            *OVERFLOW.get_or_init(|| told.trim().parse().unwrap_or(OVERFLOW_USUALLY))
        }
    };
    if id != overflow {
        return Ok(false);
    }
    let map = text_of("/proc/self/uid_map")?;
    let covers = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        let (first, count) = (numbers.next()?.ok()?, numbers.nth(1)?.ok()?);
        Some(id >= first && id - first < count)
    };
    Ok(!map.lines().any(|line| covers(line).unwrap_or(false)))
}

/// What the system says in one of its files; nothing, if it has none. Without a descriptor for it nothing is known, and that
/// is no answer.
fn text_of(path: &str) -> Walked<String> {
    let failed = match std::fs::read_to_string(path) {
        Ok(text) => return Ok(text),
        Err(error) => Errno::from_io_error(&error),
    };
    match failed {
        Some(errno @ (Errno::MFILE | Errno::NFILE)) => Err(Stop::Io(errno)),
        _ => Ok(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_root_is_what_nobody_else_could_have_put_there() {
        use std::os::unix::fs::{chown, symlink, PermissionsExt};
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().canonicalize().unwrap().join("plugins");
        let file = directory.join("one");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(&file, "").unwrap();
        mode(&directory, 0o755);
        mode(&file, 0o755);
        if !rustix::process::geteuid().is_root() {
            // The caller's own is taken elsewhere, and not here.
            open(&file, Guard::Unchanged).unwrap();
            assert!(open_of_root(&file).unwrap_err().to_string().contains("only what is root's"));
            return;
        }
        let refused = |path: &Path, part: &str| {
            let told = open_of_root(path).unwrap_err().to_string();
            assert!(told.contains(part), "{told}");
        };
        open_of_root(&file).unwrap();
        refused(&directory.join("none"), "No such file");
        refused(&directory, "");
        mode(&file, 0o757);
        refused(&file, "everybody may write");
        mode(&file, 0o755);
        mode(&directory, 0o1777);
        refused(&file, "everybody may write");
        mode(&directory, 0o755);
        chown(&directory, Some(65533), None).unwrap();
        // Also where a moment has looked at the directory by another rule.
        let moment = Moment::begin();
        let _ = check(&file);
        refused(&file, "only what is root's");
        drop(moment);
        chown(&directory, Some(0), None).unwrap();
        chown(&file, Some(65533), None).unwrap();
        refused(&file, "only what is root's");
        let fifo = directory.join("fifo");
        let user = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, user, 0).unwrap();
        refused(&fifo, "not a regular file");
        let link = directory.join("link");
        symlink("/bin/sh", &link).unwrap();
        open_of_root(&link).unwrap();
    }

    #[test]
    fn a_moment_goes_on_from_the_directory_that_was_looked_at_and_ends() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (home, other) = (place.join("home"), place.join("other"));
        for (directory, content) in [(&home, "mine"), (&other, "another's")] {
            std::fs::create_dir_all(directory.join("keys")).unwrap();
            std::fs::write(directory.join("keys/one"), content).unwrap();
        }
        let read = || {
            let file = open(&home.join("keys/one"), Guard::Unchanged).unwrap();
            std::io::read_to_string(file).unwrap()
        };
        let outer = Moment::begin();
        check(&home).unwrap();
        drop(Moment::begin());
        std::fs::rename(&home, place.join("aside")).unwrap();
        std::fs::rename(&other, &home).unwrap();
        assert_eq!(read(), "mine", "what was looked at");
        assert!(open(&place.join("nothing"), Guard::Unchanged).is_err());
        drop(outer);
        assert_eq!(read(), "another's");
    }
}
