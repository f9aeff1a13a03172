//! The way to a file: walked once, so that what was looked at is what is opened.
//!
//! Whoever owns a directory can exchange what its names lead to at any moment. A symbolic link of such a user's may lead to
//! that user's own files, and to no other user's: it is the caller who would read and write them. The rule and its reasons:
//! docs/design/files.md, "Names".

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::open_at::open_at;
use pellucid::shown::Shown;
use rustix::fs::{
    fstat, openat2, readlinkat, statat, AtFlags, FileType, Mode, OFlags, ResolveFlags, CWD,
};
use rustix::io::{retry_on_intr, Errno};

/// As the kernel: a path with more symbolic links than that has a circle.
const LINKS_MOST: usize = 40;
const WRITE_OF_OTHERS: u32 = 0o022;

/// Where a path leads: a name in an open directory.
#[derive(Debug)]
pub struct Way {
    directory: File,
    name: OsString,
    /// None if there is no file.
    owner: Option<u32>,
    path: PathBuf,
    is_link: bool,
}

impl Way {
    /// Walks to `path`, through symbolic links. The last name need not exist.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::PermissionDenied`], which names the link, if a link of another user's leads to a file
    /// that is not that user's.
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::walk(path, true)
    }

    /// Walks to the name `path` itself: a symbolic link under it is what it leads to.
    ///
    /// # Errors
    /// Those of [`Way::of`].
    pub fn to_name(path: &Path) -> io::Result<Self> {
        Self::walk(path, false)
    }

    fn walk(path: &Path, follow: bool) -> io::Result<Self> {
        let whole = std::path::absolute(path)?;
        match Self::straight(&whole) {
            Ok(Some(way)) if !(follow && way.is_link) => Ok(way),
            _ => Self::step_by_step(&whole, follow),
        }
    }

    /// The way without a symbolic link but for the last name, in one call of the kernel. `None` if there is another, or the
    /// kernel cannot say.
    fn straight(whole: &Path) -> io::Result<Option<Self>> {
        let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
            return Ok(None);
        };
        if whole.components().any(|part| part == Component::ParentDir) {
            return Ok(None);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) =
            retry_on_intr(|| openat2(CWD, parent, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS))
        else {
            return Ok(None);
        };
        let found = match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Some(found),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        let owner = found.map(|found| found.st_uid);
        let is_link =
            found.is_some_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
        let path = parent.components().chain([Component::Normal(name)]).collect();
        Ok(Some(Self { directory: directory.into(), name: name.to_owned(), owner, path, is_link }))
    }

    fn step_by_step(whole: &Path, follow: bool) -> io::Result<Self> {
        let mut rest: VecDeque<OsString> = names(whole).collect();
        let (mut directory, mut path) = (enter(CWD, OsStr::new("/"))?, PathBuf::from("/"));
        let mut links: Vec<(u32, PathBuf)> = Vec::new();
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                directory = enter(&directory, &name)?;
                path.pop();
                continue;
            }
            let found = look(&directory, &name)?;
            let here = path.join(&name);
            match found {
                Some((link, owner, true)) if follow || !rest.is_empty() => {
                    links.push((owner, here));
                    if links.len() > LINKS_MOST {
                        return Err(Errno::LOOP.into());
                    }
                    // By the link's own descriptor: the one whose owner was looked at.
                    let target = readlinkat(&link, "", Vec::new())?.into_bytes();
                    if target.first() == Some(&b'/') {
                        (directory, path) = (enter(CWD, OsStr::new("/"))?, PathBuf::from("/"));
                    }
                    let parts: Vec<_> = names(Path::new(OsStr::from_bytes(&target))).collect();
                    parts.into_iter().rev().for_each(|part| rest.push_front(part));
                }
                found if rest.is_empty() => {
                    let owner = found.as_ref().map(|(_, owner, _)| *owner);
                    let of = match owner {
                        Some(owner) => owner,
                        None => fstat(&directory)?.st_uid,
                    };
                    refuse_foreign(&links, of, &here)?;
                    let is_link = found.is_some_and(|(_, _, is_link)| is_link);
                    return Ok(Self {
                        directory: directory.into(),
                        name,
                        owner,
                        path: here,
                        is_link,
                    });
                }
                _ => {
                    directory = enter(&directory, &name)?;
                    path = here;
                }
            }
        }
        // A directory: its own name in it is a point.
        let owner = fstat(&directory)?.st_uid;
        refuse_foreign(&links, owner, &path)?;
        let name = OsString::from(".");
        Ok(Self { directory: directory.into(), name, owner: Some(owner), path, is_link: false })
    }

    /// The directory that the file lies in (`O_PATH`).
    pub fn directory(&self) -> &File {
        &self.directory
    }

    /// Gives the directory away, with the whole path of the file.
    pub fn into_directory(self) -> (File, PathBuf) {
        (self.directory, self.path)
    }

    /// The file's name in the directory.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// The whole path, without symbolic links on the way.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a file has the name.
    pub fn is_there(&self) -> bool {
        self.owner.is_some()
    }

    /// What has the name now; a symbolic link is not followed.
    ///
    /// # Errors
    /// The system's.
    pub fn look(&self) -> io::Result<Metadata> {
        self.open(OFlags::PATH)?.metadata()
    }

    /// Opens the file that has the name now. A symbolic link is never followed: the walk has followed those that were there.
    ///
    /// # Errors
    /// The system's.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(open_at(&self.directory, self.name.as_os_str(), flags, Mode::empty())?.into())
    }
}

/// What has a name in a directory: its descriptor (`O_PATH`), its owner, and whether it is a symbolic link.
fn look(directory: impl AsFd, name: &OsStr) -> io::Result<Option<(OwnedFd, u32, bool)>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match open_at(directory, name, flags, Mode::empty()) {
        Ok(found) => {
            let stat = fstat(&found)?;
            let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
            Ok(Some((found, stat.st_uid, is_link)))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory by its name in another one, links apart. Asked for as a directory, so that an automounter mounts it.
fn enter(directory: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(open_at(directory, name, flags, Mode::empty())?)
}

fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/');
    names.filter(|name| !matches!(*name, b"" | b".")).map(|name| OsStr::from_bytes(name).to_owned())
}

/// Refuses a link of a user who is neither root, nor the caller, nor the owner of what it leads to.
fn refuse_foreign(links: &[(u32, PathBuf)], owner: u32, to: &Path) -> io::Result<()> {
    let trusted = [0, rustix::process::geteuid().as_raw(), owner];
    let Some((user, link)) = links.iter().find(|(user, _)| !trusted.contains(user)) else {
        return Ok(());
    };
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "the symbolic link `{}` of user {user} leads to what belongs to user {owner}; it is not followed: name `{}` itself, \
             if that is the file",
            link.shown(),
            to.shown()
        ),
    ))
}

/// Why a file that was opened in a directory is not written to: it has another name elsewhere, and whoever else can write to
/// the directory may have made this one. A kernel that protects hard links (`fs.protected_hardlinks`) refuses to make most of
/// such names; not every kernel does.
///
/// # Errors
/// The system's.
pub fn has_foreign_name(directory: &File, found: &Metadata) -> io::Result<Option<String>> {
    if found.nlink() < 2 {
        return Ok(None);
    }
    let directory = directory.metadata()?;
    let alone = directory.mode() & WRITE_OF_OTHERS == 0;
    let own = alone && directory.uid() == found.uid();
    Ok((!own).then(|| {
        format!(
            "it is user {}'s and has another name (hard link), which may have been made by whoever can write to its folder: \
             it is not opened; `find -samefile` finds the other, and a copy is a file of its own",
            found.uid()
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, lchown, symlink};

    #[test]
    fn the_way_is_the_one_that_the_kernel_goes() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "bytes").unwrap();
        symlink("a", root.join("to-a")).unwrap();
        symlink(root.join("a/b"), root.join("a/to-b")).unwrap();
        symlink("b/file", root.join("a/to-file")).unwrap();
        symlink("nothing", root.join("a/dangling")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        for (name, leads) in [
            ("a/b/file", "a/b/file"),
            ("to-a/b/file", "a/b/file"),
            ("to-a/to-b/file", "a/b/file"),
            ("a/to-b/../to-file", "a/b/file"),
            ("a//./b/../b/file", "a/b/file"),
            ("a/dangling", "a/nothing"),
            ("to-a/new", "a/new"),
        ] {
            let way = Way::of(&root.join(name)).unwrap();
            assert_eq!(way.path(), root.join(leads), "{name}");
            assert_eq!(way.is_there(), root.join(leads).exists(), "{name}");
        }
        assert_eq!(
            Way::to_name(&root.join("to-a/to-file")).unwrap().path(),
            root.join("a/to-file")
        );
        assert!(Way::to_name(&root.join("a/to-file")).unwrap().open(OFlags::RDONLY).is_err());
        assert!(Way::of(&root.join("circle")).is_err());
        assert!(Way::of(&root.join("a/b/file/x")).is_err());
        assert_eq!(Way::of(Path::new("/")).unwrap().path(), Path::new("/"));
        assert_eq!(Way::of(&root.join("a/..")).unwrap().path(), root);
    }

    #[test]
    fn a_link_of_another_users_leads_to_that_users_own_files_alone() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("theirs")).unwrap();
        std::fs::create_dir_all(root.join("roots")).unwrap();
        for name in ["theirs/file", "roots/file"] {
            std::fs::write(root.join(name), "bytes").unwrap();
        }
        chown(root.join("theirs"), Some(12345), None).unwrap();
        chown(root.join("theirs/file"), Some(12345), None).unwrap();
        let link = |name: &str, to: &str, owner: u32| {
            symlink(root.join(to), root.join(name)).unwrap();
            lchown(root.join(name), Some(owner), None).unwrap();
        };
        link("theirs/own", "theirs/file", 12345);
        link("theirs/ours", "roots/file", 12345);
        link("theirs/folder", "roots", 12345);
        link("theirs/by-root", "roots/file", 0);
        link("theirs/over-own", "theirs/ours", 0);
        link("theirs/of-third", "theirs/file", 54321);
        let goes = |name: &str| Way::of(&root.join(name)).is_ok();
        assert!(goes("theirs/own") && goes("theirs/by-root") && goes("theirs/file"));
        for name in ["ours", "folder", "folder/file", "folder/new", "over-own", "of-third"] {
            let error = Way::of(&root.join("theirs").join(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{name}");
            assert!(error.to_string().contains("is not followed"), "{name}: {error}");
        }
    }
}
