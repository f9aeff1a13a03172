//! Files as they lie on the storage, kept in memory and put back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What lies in a folder: file names, or paths in it, and bytes.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The files in `folder` whose names begin so, without `-shm`, which is made anew.
pub fn keep(folder: &Path, begins: &str) -> Files {
    let mut files = Files::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with(begins) && path.is_file() && !name.ends_with("-shm") {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

/// A folder with all that is in it, put back where it changed.
pub struct Folder {
    root: PathBuf,
    files: BTreeMap<PathBuf, (Vec<u8>, Stamp)>,
}

/// What tells that a file was changed. A file that is changed and keeps its length is replaced by a rename, or has another time.
type Stamp = (u64, u64, i64, i64);

fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let about = fs::symlink_metadata(path).ok()?;
    Some((about.ino(), about.len(), about.mtime(), about.mtime_nsec()))
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

impl Folder {
    /// Keeps what lies in `root` now.
    pub fn keep(root: &Path) -> Self {
        let mut found = Vec::new();
        walk(root, &mut found);
        let files = found.into_iter().map(|path| {
            let kept = (fs::read(&path).unwrap(), stamp(&path).unwrap());
            (path, kept)
        });
        // What is changed within a tick of the clock of file times would look unchanged.
        std::thread::sleep(std::time::Duration::from_millis(20));
        Self { root: root.to_owned(), files: files.collect() }
    }

    /// Puts back what was changed since, and removes what came.
    pub fn put_back(&mut self) {
        let mut found = Vec::new();
        walk(&self.root, &mut found);
        for path in found.iter().filter(|path| !self.files.contains_key(*path)) {
            fs::remove_file(path).unwrap();
        }
        for (path, (bytes, known)) in &mut self.files {
            if stamp(path).as_ref() != Some(known) {
                let _ = fs::remove_file(path);
                write_private(path, bytes);
                // A time of its own, so that a change within the same tick shows.
                let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
                fs::File::options().write(true).open(path).unwrap().set_modified(past).unwrap();
                *known = stamp(path).unwrap();
            }
        }
    }
}

/// Writes a file that only its owner may read.
pub fn write_private(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let options =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    options.unwrap().write_all(bytes).unwrap();
}

/// Whether `word` lies in `bytes`. The C library's search is quick where nothing of the test is optimised.
pub fn has(bytes: &[u8], word: &str) -> bool {
    // SAFETY: both are there for the call, with these lengths.
    let found = unsafe {
        libc::memmem(bytes.as_ptr().cast(), bytes.len(), word.as_ptr().cast(), word.len())
    };
    !found.is_null()
}
