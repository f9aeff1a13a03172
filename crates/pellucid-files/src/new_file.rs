//! A new file, whole under its name or not there: what is exported into a directory that may be another user's.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::open_at::open_at;
use pellucid::secret::fill_random;
use rustix::fs::{linkat, unlinkat, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::way::Way;

/// A file that was written, with the directory that it was written in.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    directory: File,
    name: OsString,
}

impl NewFile {
    /// Writes and syncs a file that only its owner can read, and gives it the name `path`. `None` if the name is taken.
    ///
    /// # Errors
    /// The system's; nothing is left then, on a full disk for one.
    pub fn write(path: &Path, content: &[u8]) -> io::Result<Option<Self>> {
        let way = Way::to_name(path)?;
        let mut random = [0; 8];
        fill_random(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let mut temporary = OsString::from(".");
        temporary.push(way.name());
        temporary.push(format!(".{:016x}", u64::from_be_bytes(random)));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory: File = open_at(way.directory(), ".", flags, Mode::empty())?.into();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        let only = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file: File = open_at(&directory, temporary.as_os_str(), flags | only, mode)?.into();
        let written = file.write_all(content).and_then(|()| file.sync_all());
        let linked = written.and_then(|()| {
            match linkat(&directory, &temporary, &directory, way.name(), AtFlags::empty()) {
                Err(Errno::EXIST) => Ok(false),
                linked => linked.map(|()| true).map_err(io::Error::from),
            }
        });
        let _ = unlinkat(&directory, &temporary, AtFlags::empty());
        let new = Self { file, directory, name: way.name().to_owned() };
        if !linked? {
            return Ok(None);
        }
        if !new.has_name() {
            return Err(io::Error::other("another file has taken its name while it was written"));
        }
        new.directory.sync_all()?;
        Ok(Some(new))
    }

    /// Removes the file again. Another one that has its name by now stays.
    pub fn take_back(self) {
        if self.has_name() {
            let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }

    fn has_name(&self) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let named = open_at(&self.directory, self.name.as_os_str(), flags, Mode::empty());
        let identity = |found: Metadata| (found.dev(), found.ino());
        let named = named.map_err(io::Error::from).and_then(|file| File::from(file).metadata());
        named.ok().map(identity) == self.file.metadata().ok().map(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_whole_or_not_there_and_takes_no_name_of_another() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        let new = NewFile::write(&path, b"content").unwrap().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"content");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(NewFile::write(&path, b"other").unwrap().is_none());
        assert_eq!(std::fs::read(&path).unwrap(), b"content");
        new.take_back();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);

        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert!(NewFile::write(&path, b"content").unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
        let new = NewFile::write(&path, b"content").unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "another's").unwrap();
        new.take_back();
        assert_eq!(std::fs::read(&path).unwrap(), b"another's");
    }
}
