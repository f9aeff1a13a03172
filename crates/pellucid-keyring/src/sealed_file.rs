//! One small sealed file of the keyring, replaced atomically.
//!
//! Layout: docs/format.md, "Sealed file".

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::certificates::has_companion;
use super::instance;
use pellucid::algorithm::Algorithm;
use pellucid::cipher::Cipher;
use pellucid::derive::hkdf_sha256;
use pellucid::error::{Error, Result, Subject};
use pellucid::flags::Flags;
use pellucid::message;
use pellucid::secret::{fill_random, Secret32};
use pellucid::shown::Shown;
use pellucid_files::new_file::NewFile;
use pellucid_files::trusted::Guard;

const MAGIC: &[u8; 16] = b"Pellucid key\0\0\0\0";
const VERSION: u16 = 1;
/// Of a certificate with a companion key, which an older version would lose.
const VERSION_HYBRID: u16 = 2;
/// Magic 16, version 2, type 1, flags 1, check value of the parent key 16, nonce 12.
const HEADER_BYTES: usize = 48;
const FLAGS_AT: usize = 19;
pub(super) const CHECK_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
/// A certificate of 4096 bits with its key has about 5 KiB.
const FILE_BYTES_MOST: u64 = 65536;
const FILE_BYTES_USUALLY: usize = 8192;
/// What such a file can hold.
pub(super) const CONTENT_BYTES_MOST: usize = FILE_BYTES_MOST as usize - HEADER_BYTES - TAG_BYTES;

/// What is in the file; each kind is sealed under a key of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    MasterKey = 1,
    Certificate = 2,
    Database = 3,
    Settings = 4,
    History = 5,
    Events = 6,
    Pin = 7,
    Retired = 8,
    Check = 9,
    Witness = 10,
    Providers = 11,
    Roles = 12,
}

/// A sealed file by path.
#[derive(Debug)]
pub(super) struct SealedFile {
    path: PathBuf,
    kind: Kind,
    /// Bound by the tag, so that no file passes for another.
    name: String,
}

impl SealedFile {
    pub(super) fn new(path: PathBuf, kind: Kind, name: &str) -> Self {
        Self { path, kind, name: name.to_owned() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The content; none if the file is not there.
    pub(super) fn read(&self, parent: &Secret32) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let subject = || Subject::File(self.path.clone());
        let Some(file) = instance::open(&self.path, Guard::Unchanged)? else { return Ok(None) };
        // Most fit: one call reads them, and one finds the end.
        let mut bytes = Vec::with_capacity(FILE_BYTES_USUALLY);
        file.take(FILE_BYTES_MOST + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Error::io(subject(), error))?;
        if bytes.len() as u64 > FILE_BYTES_MOST {
            return Err(Error::corrupt(subject(), "longer than any file of a keyring"));
        }
        if bytes.len() < HEADER_BYTES + TAG_BYTES || bytes[..16] != MAGIC[..] {
            return Err(Error::corrupt(subject(), "not a file of a keyring, or truncated"));
        }
        let (header, rest) = bytes.split_at(HEADER_BYTES);
        self.known_flags(header)?;
        if header[20..36] != check_value(parent)? {
            return Err(Error::missing_key(
                subject(),
                format!(
                    "it was sealed under another key, the keyring's files do not belong together: {}",
                    message::DECRYPTION_FAILED.text
                ),
            ));
        }
        let (ciphertext, tag) = rest.split_at(rest.len() - TAG_BYTES);
        let (Some(nonce), Some(tag)) = (header.last_chunk::<12>(), tag.first_chunk()) else {
            return Err(Error::corrupt(subject(), "truncated"));
        };
        let mut content = Zeroizing::new(vec![0; ciphertext.len()]);
        self.cipher(parent)?
            .open(nonce, &self.aad(header), ciphertext, tag, &mut content)
            .map_err(|_| {
                let told = message::KEY_CORRUPTED.text;
                Error::unauthentic(subject(), format!("its tag does not match: {told}"))
            })?;
        if header[16..18] != self.version_of(&content).to_be_bytes() {
            return Err(Error::corrupt(subject(), "its content is that of another version"));
        }
        Ok(Some(content))
    }

    /// The oldest version that reads this content.
    fn version_of(&self, content: &[u8]) -> u16 {
        match self.kind == Kind::Certificate && has_companion(content) {
            true => VERSION_HYBRID,
            false => VERSION,
        }
    }

    /// Makes the file; false if there is one already.
    pub(super) fn create(&self, parent: &Secret32, content: &[u8]) -> Result<bool> {
        let temporary = self.write_temporary(parent, content, Flags::default())?;
        link_new(&temporary, &self.path)
    }

    /// Whether this version may put another file in the place of the one there, if there is one, which a newer version may
    /// have forbidden; and what the other one has to keep. Whatever the file was sealed under: nobody authenticates this, and who
    /// forges it keeps the file as it is.
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming the version or the flag that is not known.
    pub(super) fn check_writable(&self) -> Result<Flags> {
        let mut header = [0; HEADER_BYTES];
        let read = File::open(&self.path).and_then(|mut file| file.read_exact(&mut header));
        if read.is_err() || header[..16] != MAGIC[..] {
            return Ok(Flags::default());
        }
        let flags = self.known_flags(&header)?;
        flags.check_writable(Subject::File(self.path.clone()))?;
        Ok(flags)
    }

    /// The flags of a header of this version.
    fn known_flags(&self, header: &[u8]) -> Result<Flags> {
        let subject = Subject::File(self.path.clone());
        let version = u16::from_be_bytes([header[16], header[17]]);
        let newest = match self.kind {
            Kind::Certificate => VERSION_HYBRID,
            _ => VERSION,
        };
        if !(VERSION..=newest).contains(&version) {
            let told = format!("version {version} is newer than {newest}");
            return Err(Error::unsupported(subject, told));
        }
        Flags::from_byte(header[FLAGS_AT], subject)
    }

    /// Makes the file, or puts it in the place of the one there, whose flags it keeps.
    pub(super) fn replace(&self, parent: &Secret32, content: &[u8]) -> Result<()> {
        let temporary = self.write_temporary(parent, content, self.check_writable()?)?;
        rename(&temporary, &self.path)?;
        sync_parent(&self.path)
    }

    /// Removes the file, if there is one, readable or not.
    pub(super) fn remove(&self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Ok(()) => sync_parent(&self.path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io(Subject::File(self.path.clone()), error)),
        }
    }

    fn write_temporary(&self, parent: &Secret32, content: &[u8], flags: Flags) -> Result<PathBuf> {
        if content.len() > CONTENT_BYTES_MOST {
            let told = format!("{} bytes are more than a file of a keyring has", content.len());
            return Err(Error::limit(Subject::File(self.path.clone()), told));
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES + content.len() + TAG_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.version_of(content).to_be_bytes());
        bytes.extend_from_slice(&[self.kind as u8, flags.to_byte()]);
        bytes.extend_from_slice(&check_value(parent)?);
        let mut nonce = [0; 12];
        fill_random(&mut nonce)?;
        bytes.extend_from_slice(&nonce);
        let aad = self.aad(&bytes);
        let mut ciphertext = vec![0; content.len()];
        let mut tag = [0; TAG_BYTES];
        self.cipher(parent)?.seal(&nonce, &aad, content, &mut ciphertext, &mut tag)?;
        bytes.extend_from_slice(&ciphertext);
        bytes.extend_from_slice(&tag);
        write_temporary(&self.path, &bytes, self.path.parent().and_then(instance::group_of))
    }

    fn aad(&self, header: &[u8]) -> Vec<u8> {
        [header, self.name.as_bytes()].concat()
    }

    fn cipher(&self, parent: &Secret32) -> Result<Cipher> {
        let mut key = Zeroizing::new([0u8; 32]);
        let info: [&[u8]; 2] = [b"pellucid/1 keyring", &[self.kind as u8]];
        hkdf_sha256(parent.expose(), b"", &info, &mut key[..])?;
        Cipher::new(Algorithm::Aes256, &key[..])
    }
}

/// The check value of the key that the sealed file at `path` says it is sealed under; none if there is no such file, or what is
/// there says nothing.
pub(super) fn stated_parent(path: &Path) -> Result<Option<[u8; CHECK_BYTES]>> {
    let Some(mut file) = instance::open(path, Guard::Unchanged)? else { return Ok(None) };
    let mut header = [0; HEADER_BYTES];
    if file.read_exact(&mut header).is_err() || header[..16] != MAGIC[..] {
        return Ok(None);
    }
    Ok(header[20..].first_chunk().copied())
}

/// Tells a wrong key from a damaged file.
pub(super) fn check_value(key: &Secret32) -> Result<[u8; CHECK_BYTES]> {
    let mut value = [0; CHECK_BYTES];
    hkdf_sha256(key.expose(), b"", &[b"pellucid/1 key check"], &mut value)?;
    Ok(value)
}

/// Writes and syncs a file that only its owner can read, and `group`, under a name beside `path`; nothing is left of it
/// after an error, on a full disk for one.
pub(super) fn write_temporary(path: &Path, content: &[u8], group: Option<u32>) -> Result<PathBuf> {
    write_beside(path, content, group, File::sync_all)
}

/// The same without the sync: after a crash the file may be anything.
pub(super) fn write_unsynced(path: &Path, content: &[u8], group: Option<u32>) -> Result<PathBuf> {
    write_beside(path, content, group, |_| Ok(()))
}

fn write_beside(
    path: &Path,
    content: &[u8],
    group: Option<u32>,
    sync: fn(&File) -> std::io::Result<()>,
) -> Result<PathBuf> {
    let temporary = temporary_name(path)?;
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(io)?;
    let shared = group.map_or(Ok(()), |group| instance::share_file(&file, group));
    let written = shared.and_then(|()| file.write_all(content)).and_then(|()| sync(&file));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        io(error)
    })?;
    Ok(temporary)
}

/// A name beside `path` that no other process takes.
fn temporary_name(path: &Path) -> Result<PathBuf> {
    let mut random = [0; 8];
    fill_random(&mut random)?;
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{:016x}", u64::from_be_bytes(random)));
    Ok(path.with_file_name(name))
}

/// Gives the temporary file its name, over what had it; the temporary name goes.
pub(super) fn rename(temporary: &Path, path: &Path) -> Result<()> {
    std::fs::rename(temporary, path).map_err(|error| {
        let _ = std::fs::remove_file(temporary);
        Error::io(Subject::File(path.to_owned()), error)
    })
}

/// Gives the temporary file its name if that is free; false if it is not. The temporary name goes.
pub(super) fn link_new(temporary: &Path, path: &Path) -> Result<bool> {
    let linked = std::fs::hard_link(temporary, path);
    let _ = std::fs::remove_file(temporary);
    match linked {
        Ok(()) => sync_parent(path).map(|()| true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::io(Subject::File(path.to_owned()), error)),
    }
}

/// An early look, before anything is recorded: [`write_new`] decides.
pub(super) fn check_new(path: &Path) -> Result<()> {
    match pellucid_files::paths::look_at_name(path) {
        Ok(_) => Err(Error::message(message::FILE_EXISTS, &path.shown().to_string())),
        Err(_) => Ok(()),
    }
}

/// Writes a new file for its owner only, wherever it is to lie; one that is there is left alone (message 15240).
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<NewFile> {
    let written = NewFile::write(path, bytes)
        .map_err(|error| Error::io(Subject::File(path.to_owned()), error))?;
    written.ok_or_else(|| Error::message(message::FILE_EXISTS, &path.shown().to_string()))
}

/// The same of several: all of them, or none.
pub(super) fn write_all_new(files: &[(&Path, &[u8])]) -> Result<Vec<NewFile>> {
    let mut made = Vec::with_capacity(files.len());
    for (path, bytes) in files {
        match write_new(path, bytes) {
            Ok(file) => made.push(file),
            Err(error) => {
                made.into_iter().for_each(NewFile::take_back);
                return Err(error);
            }
        }
    }
    Ok(made)
}

/// An early look, before anything is recorded: whether the caller may put another file in the place of the one at `path`.
pub(super) fn may_replace(path: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let may = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let flags = rustix::fs::AtFlags::EACCESS;
    rustix::fs::accessat(rustix::fs::CWD, parent, may, flags)
        .map_err(|error| Error::io(Subject::File(path.to_owned()), error.into()))
}

/// Writes a new file inside `keyring`: for the group of a system instance, too.
pub(super) fn write_new_inside(path: &Path, bytes: &[u8]) -> Result<()> {
    let group = path.parent().and_then(instance::group_of);
    let temporary = write_temporary(path, bytes, group)?;
    match link_new(&temporary, path)? {
        true => Ok(()),
        false => Err(Error::message(message::FILE_EXISTS, &path.shown().to_string())),
    }
}

/// Syncs the directory `path` lies in.
pub(super) fn sync_parent(path: &Path) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| Error::io(Subject::File(parent.to_owned()), error))
}
