//! One side of a comparison: how its databases are opened, everything else being equal.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid_lab_report::record::{Engine, SideDescription};
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::extension;
use crate::files::{has_magic, holds};
use crate::machine;

const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
const KEY_BYTES: u64 = 32;

/// One side: its name, what its databases are, and which SQLite opens them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Side {
    pub name: String,
    pub kind: Kind,
    /// Directory of the `libsqlite3.so.0` that its workers run; `None`: the one that is built in.
    pub library: Option<PathBuf>,
    pub recovery: Recovery,
}

/// What becomes of the commits of a side's databases before their log begins anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recovery {
    /// The recovery model SIMPLE, and all other databases: nothing.
    #[default]
    Simple,
    /// The recovery model FULL: they are kept for a log backup, which nobody makes.
    Full,
    /// The same, and `pellucid archive` ships them every second.
    Archived,
}

/// What the databases of a side are, and what opens them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Kind {
    /// SQLite over its own VFS.
    Plain,
    /// A plain database in a process that has loaded the extension: it goes through the shim, and so do temporary files.
    Loaded { extension: PathBuf },
    /// The same SQLite over the shim.
    Sealed { extension: PathBuf, key_file: PathBuf, algorithm: String },
    /// A library of its own, with its defaults: AES-256-CBC and HMAC-SHA512.
    Sqlcipher { key_file: PathBuf },
    /// SQLite3 Multiple Ciphers with one of its ciphers, and that one's defaults.
    Ciphers { cipher: Cipher, key_file: PathBuf },
}

/// Of SQLite3 Multiple Ciphers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cipher {
    /// AEGIS-256.
    Aegis,
    /// ChaCha20 and Poly1305.
    Chacha20,
}

impl Cipher {
    /// The name by which SQLite3 Multiple Ciphers knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aegis => "aegis",
            Self::Chacha20 => "chacha20",
        }
    }
}

impl Kind {
    /// The name of the kind, as records have it.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Loaded { .. } => "loaded",
            Kind::Sealed { .. } => "sealed",
            Kind::Sqlcipher { .. } => "sqlcipher",
            Kind::Ciphers { cipher, .. } => cipher.name(),
        }
    }

    /// Whether its databases are in clear.
    pub fn is_plain(&self) -> bool {
        matches!(self, Kind::Plain | Kind::Loaded { .. })
    }
}

impl Side {
    /// The record's words for it, without what its databases say.
    ///
    /// # Errors
    /// [`Error::Io`] if the extension cannot be read.
    pub fn describe(&self) -> Result<SideDescription> {
        let (extension, algorithm) = match &self.kind {
            Kind::Sealed { extension, algorithm, .. } => (Some(extension), Some(algorithm)),
            Kind::Loaded { extension } => (Some(extension), None),
            Kind::Plain | Kind::Sqlcipher { .. } | Kind::Ciphers { .. } => (None, None),
        };
        // Its last part only: where it lies says something of one machine and nothing of a figure.
        let shown = |path: &PathBuf| {
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        Ok(SideDescription {
            side: self.name.clone(),
            kind: self.kind.name().into(),
            algorithm: algorithm.cloned(),
            extension: extension.map(shown),
            extension_sha256: extension.map(|path| machine::sha256(path)).transpose()?,
            library: self.library.as_ref().map(shown),
            change: None,
            engine: None,
            file_bytes: None,
            page_size_bytes: None,
        })
    }

    /// Brings into this process what the side needs. Call once, before [`Side::open`].
    ///
    /// # Errors
    /// As [`extension::load`].
    pub fn load(&self) -> Result<()> {
        match &self.kind {
            Kind::Sealed { extension, .. } | Kind::Loaded { extension } => {
                extension::load(extension)
            }
            Kind::Plain | Kind::Sqlcipher { .. } | Kind::Ciphers { .. } => Ok(()),
        }
    }

    /// Opens the database at `path`, an absolute path, with pages of `page_size_bytes`; makes it if
    /// `create`.
    ///
    /// # Errors
    /// [`Error::Sqlite`], and [`Error::Invalid`] if a peer does not take its key.
    pub fn open(&self, path: &Path, page_size_bytes: u32, create: bool) -> Result<Connection> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
        let what = || format!("{} database `{}`", self.name, path.display());
        let connection =
            Connection::open_with_flags(self.uri(path), flags).map_err(Error::sqlite(what()))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(Error::sqlite(what()))?;
        self.key(&connection, page_size_bytes)?;
        if create {
            connection
                .pragma_update(None, "page_size", page_size_bytes)
                .map_err(Error::sqlite("PRAGMA page_size"))?;
        }
        Ok(connection)
    }

    /// Hands a peer its raw key; in a statement, for that is how a peer takes one. Its error would
    /// show the statement, so it is not passed on.
    fn key(&self, connection: &Connection, page_size_bytes: u32) -> Result<()> {
        let (key_file, before, after) = match &self.kind {
            Kind::Plain | Kind::Loaded { .. } | Kind::Sealed { .. } => return Ok(()),
            Kind::Sqlcipher { key_file } => {
                (key_file, "", format!("PRAGMA cipher_page_size = {page_size_bytes};"))
            }
            Kind::Ciphers { cipher: Cipher::Aegis, key_file } => {
                (key_file, "PRAGMA cipher = 'aegis';", String::new())
            }
            Kind::Ciphers { cipher: Cipher::Chacha20, key_file } => {
                (key_file, "PRAGMA cipher = 'chacha20';", String::new())
            }
        };
        let key = key_in_hex(key_file)?;
        connection
            .execute_batch(&format!("{before} PRAGMA key = \"x'{key}'\"; {after}"))
            .map_err(|_| Error::invalid(format!("{}: the key was not taken", self.name)))
    }

    /// Has a peer change its key to the one in [`Side::next`]'s file, in its one transaction.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it does not, or is no peer.
    pub fn rekey(&self, connection: &Connection) -> Result<()> {
        let (Kind::Sqlcipher { key_file } | Kind::Ciphers { key_file, .. }) = &self.kind else {
            return Err(Error::invalid(format!("{} has no PRAGMA rekey", self.name)));
        };
        let key = key_in_hex(&next_key_file(key_file))?;
        connection
            .execute_batch(&format!("PRAGMA rekey = \"x'{key}'\""))
            .map_err(|_| Error::invalid(format!("{}: the new key was not taken", self.name)))
    }

    /// The side after [`Side::rekey`]: a peer with its next key.
    pub fn next(&self) -> Self {
        let mut side = self.clone();
        if let Kind::Sqlcipher { key_file } | Kind::Ciphers { key_file, .. } = &mut side.kind {
            *key_file = next_key_file(key_file);
        }
        side
    }

    /// Asks `connection` what it is.
    ///
    /// # Errors
    /// [`Error::Sqlite`], also if a peer's library is not the peer's.
    pub fn engine(&self, connection: &Connection) -> Result<Engine> {
        let ask = |sql: &str| -> Result<String> {
            connection.query_row(sql, [], |row| row.get(0)).map_err(Error::sqlite(sql))
        };
        let both = |a: &str, b: &str| Ok::<_, Error>(format!("{}, {}", ask(a)?, ask(b)?));
        let cipher = match &self.kind {
            Kind::Plain | Kind::Loaded { .. } | Kind::Sealed { .. } => None,
            Kind::Sqlcipher { .. } => {
                let version = ask("PRAGMA cipher_version")?;
                let provider = both("PRAGMA cipher_provider", "PRAGMA cipher_provider_version")?;
                Some(format!("SQLCipher {version}, {provider}"))
            }
            Kind::Ciphers { .. } => Some(both("SELECT sqlite3mc_version()", "PRAGMA cipher")?),
        };
        Ok(Engine {
            sqlite: ask("SELECT sqlite_version()")?,
            sqlite_source: ask("SELECT sqlite_source_id()")?,
            cipher,
        })
    }

    /// The name by which this side opens the database at `path`.
    pub fn uri(&self, path: &Path) -> String {
        let path = percent_encoded(path);
        match &self.kind {
            Kind::Plain => format!("file:{path}?vfs=unix"),
            Kind::Sealed { key_file, algorithm, .. } => {
                let key_file = percent_encoded(key_file);
                format!("file:{path}?vfs=pellucid&key_file={key_file}&algorithm={algorithm}")
            }
            // The extension makes the shim the default, and so does SQLite3 Multiple Ciphers with a VFS of its own.
            Kind::Loaded { .. } | Kind::Sqlcipher { .. } | Kind::Ciphers { .. } => {
                format!("file:{path}")
            }
        }
    }

    /// Makes sure that the first bytes of the file at `path` are what the side claims.
    ///
    /// # Errors
    /// [`Error::Invalid`] if not.
    pub fn check_magic(&self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        let magic = has_magic(path)?;
        if magic == self.kind.is_plain() {
            return Ok(());
        }
        let seen = if magic { "seen" } else { "not seen" };
        Err(Error::invalid(format!("{} database `{name}`: SQLite's magic {seen}", self.name)))
    }

    /// Makes sure that the file at `path` is what the side claims: plain SQLite shows its magic and
    /// `marker`, a text that one of its rows holds; a sealed file shows neither.
    ///
    /// # Errors
    /// [`Error::Invalid`] if not; the comparison would be of plain with plain.
    pub fn check_file(&self, path: &Path, marker: &str) -> Result<()> {
        let (magic, text) = (has_magic(path)?, holds(path, marker)?);
        let plain = self.kind.is_plain();
        if (magic, text) != (plain, plain) {
            return Err(Error::invalid(format!(
                "{} database `{}`: SQLite's magic {}, a row's text {}",
                self.name,
                path.display(),
                if magic { "seen" } else { "not seen" },
                if text { "seen" } else { "not seen" },
            )));
        }
        Ok(())
    }
}

/// Reads a key file, as statements of the peers take a key.
///
/// # Errors
/// [`Error::Io`]
pub fn key_in_hex(path: &Path) -> Result<String> {
    let key = std::fs::read(path).map_err(Error::io(path.display().to_string()))?;
    Ok(key.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The key that a peer changes to.
pub fn next_key_file(key_file: &Path) -> PathBuf {
    key_file.with_extension("next")
}

/// Writes a key file of 32 random bytes, readable by its owner only.
///
/// # Errors
/// [`Error::Io`]
pub fn write_key_file(path: &Path) -> Result<()> {
    let what = || format!("key file `{}`", path.display());
    let mut key = Vec::new();
    std::fs::File::open("/dev/urandom")
        .and_then(|random| random.take(KEY_BYTES).read_to_end(&mut key))
        .map_err(Error::io("/dev/urandom"))?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(&key))
        .map_err(Error::io(what()))
}

/// As sqlite.org/uri.html wants it, 3.1: everything but the plainest characters as `%HH`.
fn percent_encoded(path: &Path) -> String {
    let mut encoded = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                encoded.push(char::from(*byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn side(kind: Kind) -> Side {
        Side { name: "side".into(), kind, library: None, recovery: Recovery::Simple }
    }

    fn sealed(key_file: &str) -> Side {
        let (extension, key_file) = ("/x.so".into(), key_file.into());
        side(Kind::Sealed { extension, key_file, algorithm: "AES_256".into() })
    }

    #[test]
    fn a_record_names_no_place_of_this_machine() {
        let dir = tempfile::tempdir().unwrap();
        let extension = dir.path().join("libpellucid.so");
        std::fs::write(&extension, "library").unwrap();
        let kind = Kind::Sealed { extension, key_file: "/k".into(), algorithm: "AES_256".into() };
        let side = Side {
            name: "sealed".into(),
            kind,
            library: Some(dir.path().join("plain")),
            recovery: Recovery::Full,
        };
        let record = serde_json::to_string(&side.describe().unwrap()).unwrap();
        assert!(record.contains("\"libpellucid.so\"") && record.contains("\"plain\""), "{record}");
        assert!(!record.contains('/'), "{record}");
    }

    #[test]
    fn uris_survive_any_path() {
        let plain = side(Kind::Plain);
        assert_eq!(plain.uri(Path::new("/a b/c?d#e%.db")), "file:/a%20b/c%3Fd%23e%25.db?vfs=unix");
        assert_eq!(
            sealed("/k&y").uri(Path::new("/d.db")),
            "file:/d.db?vfs=pellucid&key_file=/k%26y&algorithm=AES_256"
        );
    }

    #[test]
    fn a_key_file_is_private_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write_key_file(&path).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (32, 0o600));
        assert!(write_key_file(&path).is_err());
    }

    #[test]
    fn a_side_that_is_not_what_it_claims_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a ?.db");
        let plain = side(Kind::Plain);
        let connection = plain.open(&path, 4096, true).unwrap();
        connection.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES ('marker')").unwrap();
        drop(connection);
        plain.check_file(&path, "marker").unwrap();
        assert!(plain.check_file(&path, "other").is_err());
        let error = sealed("/k").check_file(&path, "marker").unwrap_err().to_string();
        assert!(error.contains("SQLite's magic seen"), "{error}");
    }
}
