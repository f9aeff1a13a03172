//! The databases that there are to be shown: those attached to the connection, and those that the keyring knows.
//!
//! A file that this process may have open is never opened behind SQLite's back: what is attached is read by its own file
//! object, everything else by the lower VFS, which keeps the locks of other connections when it closes a file.

use std::collections::BTreeMap;
use std::ffi::{c_int, CStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pellucid::hash::Sha256;
use pellucid::header::REGION_BYTES;

use super::keyring;
use crate::api::Api;
use crate::code::Code;
use crate::convert::copy_path;
use crate::ffi::{self, Connection, File, Vfs};
use crate::file::{discard, lower_of_main};
use crate::inspect::{kind_of, Kind};
use crate::lower::Lower;
use crate::named_file;
use crate::vfs::lower_vfs;

const FCNTL_FILE_POINTER: c_int = 7;

/// A database, and what was found in it.
#[derive(Debug)]
pub struct Known {
    /// Where it lies.
    pub path: PathBuf,
    /// What the connection calls it, if it is attached.
    pub schema: Option<String>,
    /// What its first bytes say, or why they could not be read.
    pub found: Result<Kind, String>,
}

/// Where rows come from.
#[derive(Debug)]
pub struct Source<'a> {
    api: Api,
    db: *mut Connection,
    _call: std::marker::PhantomData<&'a ()>,
}

impl Source<'_> {
    /// # Safety
    /// `db` is open, and the caller holds its mutex, until the source is dropped.
    pub unsafe fn new(api: Api, db: *mut Connection) -> Self {
        Self { api, db, _call: std::marker::PhantomData }
    }

    /// All databases, by path.
    pub fn databases(&self) -> Vec<Known> {
        let mut known = BTreeMap::new();
        for (schema, path) in self.attached() {
            let found = self.look_at_attached(&schema, &path);
            let schema = Some(schema.to_string_lossy().into_owned());
            known.entry(path.clone()).or_insert(Known { path, schema, found });
        }
        match keyring() {
            None => {}
            Some(Err((path, error))) => {
                known.insert(path.clone(), Known { path, schema: None, found: Err(error) });
            }
            Some(Ok(keyring)) => match keyring.each_database() {
                Ok(databases) => {
                    for (file, memory) in databases {
                        let (path, found) = match memory {
                            Ok(memory) => (memory.path, None),
                            Err(error) => (file, Some(Err(error.to_string()))),
                        };
                        // One that is gone is nobody's any more.
                        if path.as_os_str().is_empty() || matches!(path.try_exists(), Ok(false)) {
                            continue;
                        }
                        known.entry(path.clone()).or_insert_with(|| {
                            let found = found.unwrap_or_else(|| look_at(&path));
                            Known { path, schema: None, found }
                        });
                    }
                }
                Err(error) => {
                    let path = keyring.home().to_owned();
                    let found = Err(error.to_string());
                    known.insert(path.clone(), Known { path, schema: None, found });
                }
            },
        }
        known.into_values().collect()
    }

    /// Names and files of the databases that lie in a file.
    fn attached(&self) -> Vec<(std::ffi::CString, PathBuf)> {
        let mut attached = Vec::new();
        // SAFETY: the connection is open and its mutex held (`Source::new`); a file's name lives as long as it is attached.
        unsafe {
            let mut index = 0;
            while let Some(schema) = self.api.db_name(self.db, index) {
                index += 1;
                // One in memory has a name, too, that may be some other file's.
                if let Some(path) = named_file::of(self.api, self.db, &schema) {
                    attached.push((schema, path));
                }
            }
        }
        attached
    }

    fn look_at_attached(&self, schema: &CStr, path: &Path) -> Result<Kind, String> {
        let mut file: *mut File = std::ptr::null_mut();
        // SAFETY: as above; the operation writes one pointer, to a file object that is open as long as it is attached.
        let lower = unsafe {
            let out = std::ptr::addr_of_mut!(file).cast();
            match self.api.file_control()(self.db, schema.as_ptr(), FCNTL_FILE_POINTER, out) {
                ffi::OK if !file.is_null() => lower_of_main(file),
                _ => None,
            }
        };
        // Opened past the shim, SQLite could not read a sealed one.
        lower.map_or(Ok(Kind::Plain), |lower| read(lower, path))
    }
}

/// A number for a database that is the same in every process, made of its path.
pub fn database_id(path: &Path) -> i64 {
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_bytes());
    // As SQL Server's, it is a positive `int`.
    let digest = hash.finish();
    i64::from(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]) >> 1)
}

fn look_at(path: &Path) -> Result<Kind, String> {
    let failed = |why: &dyn std::fmt::Display| format!("`{}`: {why}", path.display());
    // What is no file might keep whoever opens it waiting.
    if !std::fs::metadata(path).map_err(|error| failed(&error))?.is_file() {
        return Err(failed(&"not a regular file"));
    }
    let lower = lower_vfs().ok_or("the VFS is not registered in this process")?;
    let opened = Opened::open(lower, path)
        .map_err(|Code(code)| failed(&format!("cannot be opened (SQLite's result code {code})")))?;
    read(opened.lower, path)
}

fn read(lower: Lower, path: &Path) -> Result<Kind, String> {
    let failed =
        |Code(code)| format!("`{}`: cannot be read (SQLite's result code {code})", path.display());
    let bytes = lower.size().map_err(failed)?;
    let mut region = vec![0; bytes.min(REGION_BYTES) as usize];
    lower.read(&mut region, 0).map_err(failed)?;
    Ok(kind_of(&region, copy_path(path).exists(), bytes <= REGION_BYTES))
}

/// A file of the lower VFS's, opened to be read and closed on drop.
struct Opened {
    lower: Lower,
    /// What the file object lies in, and its name: both as long as it is open.
    _memory: (Vec<u128>, Vec<u8>),
}

impl Opened {
    fn open(vfs: *mut Vfs, path: &Path) -> Result<Self, Code> {
        // SAFETY: a registered VFS stays valid.
        let (bytes, open) = unsafe { ((*vfs).file_bytes, (*vfs).open) };
        let open = open.ok_or(Code(ffi::CANTOPEN))?;
        let bytes = usize::try_from(bytes).map_err(|_| Code(ffi::CANTOPEN))?;
        let mut memory = vec![0u128; bytes.div_ceil(size_of::<u128>())];
        // A name of SQLite's has zeros before it and behind it, where no parameters of a URI follow.
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

impl Drop for Opened {
    fn drop(&mut self) {
        self.lower.close();
    }
}
