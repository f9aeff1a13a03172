//! A directory with a key and a keyring, and databases in it, sealed and plain.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use pellucid::protector::KeyFile;
use pellucid::Algorithm;
use pellucid_vfs::seal_request::{offer, prepare_birth, Birth, Offer, Protection};
use rusqlite::Connection;

use super::bed::Found;
use super::content::{dump, fill, open};
use super::limits::limit_files;
use super::random::Random;

pub const KEY: [u8; 32] = [7; 32];

/// A journal that is believed whatever it says can ask for terabytes.
const MOST_FILE_BYTES: u64 = 16 << 20;

pub struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        limit_files(MOST_FILE_BYTES);
        // What stays in memory has no bytes to flip.
        std::env::set_var("PELLUCID_TEMP_MEMORY", "0");
        pellucid_bundled::register().unwrap();
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let key = directory.path().join("key");
        fs::write(&key, KEY).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        std::env::set_var("PELLUCID_HOME", directory.path().join("home"));
        offer(Offer::KeyFile(KeyFile::parse(&KEY).unwrap()));
        Self { directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn read(&self, name: &str) -> (PathBuf, Vec<u8>) {
        (self.path(name), fs::read(self.path(name)).unwrap())
    }

    /// A new sealed database, under the key file and the keyring's certificate.
    pub fn birth(&self, name: &str, algorithm: Algorithm) -> Connection {
        let key = KeyFile::parse(&KEY).unwrap();
        let protections = [Protection::KeyFile(key), Protection::Certificate(None)];
        let birth = Birth::new(algorithm, &protections).unwrap();
        let token = prepare_birth(birth).unwrap();
        open(&format!("file:{}?vfs=pellucid&pellucid_birth={token}", self.path(name).display()))
            .unwrap()
    }

    pub fn sealed(&self, name: &str) -> rusqlite::Result<Connection> {
        open(&format!("file:{}?vfs=pellucid", self.path(name).display()))
    }

    /// The content of a sealed database, to its end; with `writes` a change of it and the content again.
    pub fn look(&self, name: &str, writes: bool) -> Found {
        Found::new(self.sealed(name).and_then(|connection| {
            let content = dump(&connection)?;
            if !writes {
                return Ok(content);
            }
            connection.execute("UPDATE t SET body = body WHERE id % 5 = 0", [])?;
            dump(&connection)
        }))
    }
}

/// What a database is made with.
#[derive(Debug, Clone)]
pub struct Shape {
    pub page_bytes: usize,
    pub algorithm: Algorithm,
    pub seed: u64,
}

impl Shape {
    pub fn draw(random: &mut Random) -> Self {
        let algorithms = [
            Algorithm::Aes128,
            Algorithm::Aes192,
            Algorithm::Aes256,
            Algorithm::Aes256,
            Algorithm::TripleDes3Key,
        ];
        Self {
            page_bytes: [512, 512, 1024, 4096][random.below(4usize)],
            algorithm: algorithms[random.below(5usize)],
            seed: random.below(1 << 32),
        }
    }

    pub fn fill(&self, connection: &Connection) {
        let Self { page_bytes, seed, .. } = self;
        fill(connection, *page_bytes, 50 * page_bytes / 512, *seed);
    }
}
