//! A database in a directory, sealed under a key file: its header, its keys and its units as they lie on disk.

use std::cell::OnceCell;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use pellucid::header::{EncryptionState, Header, COPY_BYTES, COPY_OFFSETS, REGION_BYTES};
use pellucid::keys::ContainerKeys;
use pellucid::protector::KeyFile;
use pellucid::scan::ScanState;
use pellucid::unit::{self, FileKind, Place, TAIL_BYTES};
use pellucid::Subject;
use pellucid_vfs::seal_request::{offer, Offer};
use rusqlite::{Connection, OpenFlags};

pub const KEY: [u8; 32] = [7; 32];

pub struct Bench {
    directory: tempfile::TempDir,
    /// The database, opened once and never closed: a close would drop SQLite's locks (howtocorrupt.html, 2.2).
    file: OnceCell<&'static File>,
}

impl Bench {
    pub fn new() -> Self {
        pellucid_bundled::register().unwrap();
        offer(Offer::KeyFile(KeyFile::parse(&KEY).unwrap()));
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let key = directory.path().join("key");
        fs::write(&key, KEY).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        Self { directory, file: OnceCell::new() }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("a.db")
    }

    pub fn beside(&self, suffix: &str) -> PathBuf {
        self.directory.path().join(format!("a.db{suffix}"))
    }

    pub fn open(&self) -> Connection {
        self.try_open().unwrap()
    }

    pub fn try_open(&self) -> rusqlite::Result<Connection> {
        self.open_with("")
    }

    /// With more parameters of its URI.
    pub fn open_with(&self, parameters: &str) -> rusqlite::Result<Connection> {
        let (path, key) = (self.path(), self.directory.path().join("key"));
        let (path, key) = (path.display(), key.display());
        let uri = format!("file:{path}?vfs=pellucid&key_file={key}{parameters}");
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri, flags)?;
        connection.busy_timeout(Duration::from_secs(60))?;
        Ok(connection)
    }

    /// Rows, an index, overflow pages, and pages on the freelist.
    pub fn make(&self, mode: &str, page_bytes: u32, rows: u32) -> Connection {
        let connection = self.open();
        connection
            .execute_batch(&format!(
                "PRAGMA page_size={page_bytes}; PRAGMA journal_mode={mode};
                 CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT); CREATE INDEX i ON t(body);
                 CREATE TABLE gone(body);
                 WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {rows})
                 INSERT INTO t SELECT x, printf('row %d %s', x, hex(zeroblob(x % 700))) FROM c;
                 INSERT INTO gone SELECT body FROM t; DROP TABLE gone;"
            ))
            .unwrap();
        connection
    }

    pub fn file(&self) -> &'static File {
        self.file.get_or_init(|| {
            let file = OpenOptions::new().read(true).write(true).open(self.path()).unwrap();
            Box::leak(Box::new(file))
        })
    }

    pub fn headers(&self) -> [Header; 2] {
        let mut file = vec![0; REGION_BYTES as usize];
        self.file().read_exact_at(&mut file, 0).unwrap();
        [0, 1].map(|copy| {
            let at = COPY_OFFSETS[copy] as usize;
            Header::parse(&file[at..at + COPY_BYTES], copy as u8).unwrap()
        })
    }

    /// The keys behind the header as it is.
    pub fn keys(&self) -> ContainerKeys {
        let header = &self.headers()[0];
        let dek = header.unwrap(&vec![KeyFile::parse(&KEY).unwrap()]).unwrap();
        ContainerKeys::new(header, &dek).unwrap()
    }

    /// The file as it lies on disk.
    pub fn whole(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.file().metadata().unwrap().len() as usize];
        self.file().read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// A page as it lies on disk.
    pub fn unit(&self, page: u32) -> Vec<u8> {
        let page_bytes = self.headers()[0].page_size as usize;
        let mut bytes = vec![0; page_bytes];
        self.file().read_exact_at(&mut bytes, self.offset(page)).unwrap();
        bytes
    }

    pub fn offset(&self, page: u32) -> u64 {
        REGION_BYTES + u64::from(page - 1) * u64::from(self.headers()[0].page_size)
    }

    pub fn pages(&self) -> u32 {
        let bytes = self.file().metadata().unwrap().len() - REGION_BYTES;
        (bytes / u64::from(self.headers()[0].page_size)) as u32
    }

    pub fn put(&self, offset: u64, bytes: &[u8]) {
        self.file().write_all_at(bytes, offset).unwrap();
    }

    /// No unit of the file opens under `old`, and neither copy of the header knows its key.
    pub fn is_free_of(&self, old: &ContainerKeys, old_header: &Header) {
        let commitment = old_header.current_dek().unwrap().commitment;
        for header in self.headers() {
            assert_eq!(header.state, EncryptionState::Encrypted);
            assert_eq!(header.scan.state, ScanState::Complete);
            assert_eq!(header.deks.len(), 1);
            assert_ne!(header.deks[0].commitment, commitment);
            assert!(header.protectors.iter().all(|one| !old_header.protectors.contains(one)));
        }
        // Nor does anything of it lie anywhere in the file, wrapped or protected.
        let file = self.whole();
        let found = |bytes: &[u8]| file.windows(bytes.len()).any(|window| window == bytes);
        assert!(!found(&commitment), "the old key's commitment is left");
        assert!(!old_header.protectors.iter().any(|one| found(one)), "an old protector is left");
        let mut page = vec![0; old_header.page_size as usize - TAIL_BYTES];
        for number in 1..=self.pages() {
            let place = Place::page(&old_header.file_id, number);
            let opened =
                old.open(FileKind::Database, &place, &self.unit(number), &mut page, || {
                    Subject::Page(number)
                });
            assert!(opened.is_err(), "page {number} opens under the old key");
            let named = unit::generation(&self.unit(number)).unwrap();
            assert!(named > old_header.generation, "page {number} is of generation {named}");
        }
    }
}

pub fn dump(connection: &Connection) -> String {
    let sql = "SELECT count(*) || ' ' || sum(id * length(body)) || ' ' || group_concat(id)
               FROM (SELECT * FROM t INDEXED BY i ORDER BY body)";
    let integrity: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}
