//! Goal: a new key goes through a database that is in use, nobody notices, and the old key opens nothing
//! afterwards.
//!
//! Method: databases with content that can be compared, rekeyed while other connections are idle, read an old
//! snapshot or write; then every unit of the file is tried under the old key. What a proof has to find is
//! planted while it is under way.
#![cfg(not(feature = "sabotage-authentication"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::OnceCell;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use pellucid::header::{EncryptionState, Header, COPY_BYTES, COPY_OFFSETS, REGION_BYTES};
use pellucid::keys::ContainerKeys;
use pellucid::protector::{KeyFile, KeySource, Passphrase};
use pellucid::scan::ScanState;
use pellucid::unit::{self, FileKind, Place, TAIL_BYTES};
use pellucid::{Algorithm, Subject};
use pellucid_sqlite::convert::ConvertError;
use pellucid_sqlite::scan::{self, Doing, Ended, Options, Target};
use pellucid_sqlite::seal_request::{offer, Offer};
use rusqlite::{Connection, OpenFlags};

const KEY: [u8; 32] = [7; 32];

struct Bench {
    directory: tempfile::TempDir,
    /// The database, opened once and never closed: a close would drop SQLite's locks (howtocorrupt.html, 2.2).
    file: OnceCell<&'static File>,
}

impl Bench {
    fn new() -> Self {
        pellucid_bundled::register().unwrap();
        offer(Offer::KeyFile(KeyFile::parse(&KEY).unwrap()));
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let key = directory.path().join("key");
        fs::write(&key, KEY).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        Self { directory, file: OnceCell::new() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("a.db")
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.directory.path().join(format!("a.db{suffix}"))
    }

    fn open(&self) -> Connection {
        let (path, key) = (self.path(), self.directory.path().join("key"));
        let uri = format!("file:{}?vfs=pellucid&key_file={}", path.display(), key.display());
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri, flags).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    /// Rows, an index, overflow pages, and pages on the freelist.
    fn make(&self, mode: &str, page_bytes: u32, rows: u32) -> Connection {
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

    fn file(&self) -> &'static File {
        self.file.get_or_init(|| {
            let file = OpenOptions::new().read(true).write(true).open(self.path()).unwrap();
            Box::leak(Box::new(file))
        })
    }

    fn headers(&self) -> [Header; 2] {
        let mut file = vec![0; REGION_BYTES as usize];
        self.file().read_exact_at(&mut file, 0).unwrap();
        [0, 1].map(|copy| {
            let at = COPY_OFFSETS[copy] as usize;
            Header::parse(&file[at..at + COPY_BYTES], copy as u8).unwrap()
        })
    }

    /// The keys behind the header as it is.
    fn keys(&self) -> ContainerKeys {
        struct OneKey([KeyFile; 1]);
        impl KeySource for OneKey {
            fn key_files(&self) -> &[KeyFile] {
                &self.0
            }
            fn passphrases(&self) -> &[Passphrase] {
                &[]
            }
            fn certificate(
                &self,
                _: &[u8; 32],
            ) -> pellucid::Result<Option<pellucid::certificate::Certificate>> {
                Ok(None)
            }
        }
        let header = &self.headers()[0];
        let dek = header.unwrap(&OneKey([KeyFile::parse(&KEY).unwrap()])).unwrap();
        ContainerKeys::new(header, &dek).unwrap()
    }

    /// A page as it lies on disk.
    fn unit(&self, page: u32) -> Vec<u8> {
        let page_bytes = self.headers()[0].page_size as usize;
        let mut bytes = vec![0; page_bytes];
        self.file().read_exact_at(&mut bytes, self.offset(page)).unwrap();
        bytes
    }

    fn offset(&self, page: u32) -> u64 {
        REGION_BYTES + u64::from(page - 1) * u64::from(self.headers()[0].page_size)
    }

    fn pages(&self) -> u32 {
        let bytes = self.file().metadata().unwrap().len() - REGION_BYTES;
        (bytes / u64::from(self.headers()[0].page_size)) as u32
    }

    fn put(&self, offset: u64, bytes: &[u8]) {
        self.file().write_all_at(bytes, offset).unwrap();
    }

    /// No unit of the file opens under `old`, and neither copy of the header knows its key.
    fn is_free_of(&self, old: &ContainerKeys, old_header: &Header) {
        let commitment = old_header.current_dek().unwrap().commitment;
        for header in self.headers() {
            assert_eq!(header.state, EncryptionState::Encrypted);
            assert_eq!(header.scan.state, ScanState::Complete);
            assert_eq!(header.deks.len(), 1);
            assert_ne!(header.deks[0].commitment, commitment);
            assert!(header.protectors.iter().all(|one| !old_header.protectors.contains(one)));
        }
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

fn dump(connection: &Connection) -> String {
    let sql = "SELECT count(*) || ' ' || sum(id * length(body)) || ' ' || group_concat(id)
               FROM (SELECT * FROM t INDEXED BY i ORDER BY body)";
    let integrity: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn quick() -> Options {
    Options { patience: Duration::from_secs(5), ..Options::default() }
}

fn scan(bench: &Bench) -> Ended {
    scan::run(&bench.path(), &quick(), &mut |_, _, _| ()).unwrap()
}

#[test]
fn the_old_key_opens_nothing_after_a_rekey() {
    for (mode, page_bytes) in
        [("wal", 512), ("delete", 4096), ("persist", 1024), ("truncate", 65536)]
    {
        let bench = Bench::new();
        let connection = bench.make(mode, page_bytes, 900);
        let content = dump(&connection);
        let (old, old_header) = (bench.keys(), bench.headers()[0].clone());
        let header = scan::rekey(&bench.path(), Some(Algorithm::Aes128)).unwrap();
        assert_eq!((header.state, header.deks.len()), (EncryptionState::KeyChange, 2));
        assert_eq!(dump(&connection), content, "{mode}: in between");
        assert_eq!(scan(&bench), Ended::Complete);
        bench.is_free_of(&old, &old_header);
        assert_eq!(bench.headers()[0].algorithm().unwrap(), Algorithm::Aes128);
        assert_eq!(dump(&connection), content, "{mode}: a connection from before");
        assert_eq!(dump(&bench.open()), content, "{mode}: a new connection");
        assert_eq!(scan(&bench), Ended::NothingToDo);
        if mode == "wal" {
            assert_eq!(fs::metadata(bench.beside("-wal")).unwrap().len(), 0);
        }
        // Once more, and back to another algorithm.
        scan::rekey(&bench.path(), Some(Algorithm::TripleDes3Key)).unwrap();
        let exclusive = Options { exclusive: true, ..quick() };
        drop(connection);
        assert_eq!(
            scan::run(&bench.path(), &exclusive, &mut |_, _, _| ()).unwrap(),
            Ended::Complete
        );
        assert_eq!(dump(&bench.open()), content);
    }
}

#[test]
fn a_connection_that_was_idle_reads_and_writes_on() {
    for mode in ["wal", "delete"] {
        let bench = Bench::new();
        let idle = bench.make(mode, 1024, 400);
        let content = dump(&idle);
        let writer = bench.open();
        writer.execute("UPDATE t SET body = body || '!' WHERE id = 7", []).unwrap();
        scan::rekey(&bench.path(), None).unwrap();
        // Everybody seals under the new key from now on, whoever checkpoints.
        idle.execute("UPDATE t SET body = body || '?' WHERE id = 8", []).unwrap();
        let checkpointed: i64 =
            idle.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(0)).unwrap();
        assert_eq!(checkpointed, 0);
        let current = bench.headers()[0].generation;
        assert_eq!(unit::generation(&bench.unit(1)).unwrap(), current, "{mode}");
        assert_eq!(scan(&bench), Ended::Complete);
        writer.execute("UPDATE t SET body = rtrim(body, '!?') WHERE id IN (7, 8)", []).unwrap();
        assert_eq!(dump(&idle), content, "{mode}");
        idle.execute("INSERT INTO t VALUES (100000, 'after')", []).unwrap();
        assert_eq!(dump(&writer), dump(&bench.open()), "{mode}");
    }
}

#[test]
fn an_old_snapshot_is_read_to_its_end_and_delays_only_the_end() {
    let bench = Bench::new();
    let reader = bench.make("wal", 1024, 300);
    reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
    let writer = bench.open();
    scan::rekey(&bench.path(), None).unwrap();
    writer.execute("DELETE FROM t WHERE id % 2", []).unwrap();
    let options = Options { patience: Duration::from_millis(400), ..Options::default() };
    let mut waited = false;
    let refused = scan::run(&bench.path(), &options, &mut |doing, _, _| {
        waited |= doing == Doing::WaitingForReaders;
    });
    assert!(matches!(refused, Err(ConvertError::InUse { .. })), "{refused:?}");
    assert!(waited);
    assert_eq!(bench.headers()[0].state, EncryptionState::KeyChange);
    let count = |connection: &Connection| -> i64 {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count(&reader), count(&writer)), (300, 150));
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(scan(&bench), Ended::Complete);
    assert_eq!(count(&reader), 150);
}

#[test]
fn a_scan_is_suspended_and_goes_on() {
    let bench = Bench::new();
    let connection = bench.make("wal", 512, 2000);
    let content = dump(&connection);
    let (old, old_header) = (bench.keys(), bench.headers()[0].clone());
    let none = scan::change_state(&bench.path(), ScanState::Suspended).unwrap_err().to_string();
    assert!(none.contains("no scan of it is under way"), "{none}");
    scan::rekey(&bench.path(), None).unwrap();
    let path = bench.path();
    let mut seen = Vec::new();
    let ended = scan::run(&path, &quick(), &mut |_, done, _| {
        if seen.is_empty() {
            scan::change_state(&path, ScanState::Suspended).unwrap();
        }
        seen.push(done);
    })
    .unwrap();
    assert_eq!(ended, Ended::Suspended);
    assert!(seen.len() < 4, "it stops with its next batch: {seen:?}");
    assert_eq!(scan(&bench), Ended::Suspended);
    let refused = scan::rekey(&path, None).unwrap_err().to_string();
    assert!(refused.contains("Cannot change database encryption key while"), "{refused}");
    assert_eq!(dump(&connection), content);
    scan::change_state(&path, ScanState::Running).unwrap();
    assert_eq!(scan(&bench), Ended::Complete);
    bench.is_free_of(&old, &old_header);
    assert_eq!(dump(&connection), content);
}

/// Plants something at the moment before the proof, and counts how often pages were rewritten again.
fn plant(
    bench: &Bench,
    times: usize,
    mut put: impl FnMut(&Bench),
) -> (Result<Ended, ConvertError>, usize) {
    let (mut planted, mut passes, mut before) = (0, 0, Doing::WaitingForReaders);
    let ended = scan::run(&bench.path(), &quick(), &mut |doing, _, _| {
        passes += usize::from(doing == Doing::Rewriting && before != Doing::Rewriting);
        if doing == Doing::Proving && before != Doing::Proving && planted < times {
            planted += 1;
            put(bench);
        }
        before = doing;
    });
    (ended, passes)
}

#[test]
fn the_proof_finds_what_is_of_the_old_key() {
    for mode in ["wal", "delete"] {
        let bench = Bench::new();
        let connection = bench.make(mode, 512, 5000);
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        let content = dump(&connection);
        let last = bench.pages();
        let free: u32 =
            connection.query_row("PRAGMA freelist_count", [], |row| row.get(0)).unwrap();
        assert!(free > 10, "{free}");
        // The first page of the freelist's trunk.
        let head: u32 = connection
            .query_row(
                "SELECT substr(hex(data), 65, 8) FROM sqlite_dbpage WHERE pgno = 1",
                [],
                |row| {
                    let hex: String = row.get(0)?;
                    Ok(u32::from_str_radix(&hex, 16).unwrap())
                },
            )
            .unwrap();
        let of_freelist = bench.unit(head);
        let of_last = bench.unit(last);
        let old_header = bench.headers()[0].clone();
        let old = bench.keys();
        let rekeyed = || drop(scan::rekey(&bench.path(), None).unwrap());

        rekeyed();
        let (ended, passes) = plant(&bench, 1, |bench| bench.put(bench.offset(head), &of_freelist));
        assert_eq!(
            (ended.unwrap(), passes),
            (Ended::Complete, 2),
            "{mode}: a page of the freelist"
        );
        bench.is_free_of(&old, &old_header);
        assert_eq!(dump(&connection), content);

        // Behind the last page: cut off, and not more often than three times.
        rekeyed();
        let (ended, passes) = plant(&bench, 1, |bench| bench.put(bench.offset(last + 1), &of_last));
        assert_eq!((ended.unwrap(), passes), (Ended::Complete, 2), "{mode}: behind the last page");
        assert_eq!(bench.pages(), last);
        rekeyed();
        let (ended, passes) = plant(&bench, 9, |bench| bench.put(bench.offset(last + 1), &of_last));
        assert!(ended.is_err(), "{mode}: {ended:?}");
        assert_eq!(passes, 3);
        assert_eq!(bench.headers()[0].scan.state, ScanState::Aborted);
        assert_eq!(bench.headers()[0].deks.len(), 2, "the older key is still there");
        assert_eq!(scan(&bench), Ended::Complete, "aborted is not for ever");

        if mode == "wal" {
            rekeyed();
            let mut frame = vec![0; 32 + 24 + 512];
            frame[56..].copy_from_slice(&of_last);
            let (ended, _) =
                plant(&bench, 1, |bench| fs::write(bench.beside("-wal"), &frame).unwrap());
            let told = ended.unwrap_err().to_string();
            assert!(told.contains("frame 1 of the WAL is of an older key"), "{told}");
            assert_eq!(scan(&bench), Ended::Complete);
        }
        assert_eq!(dump(&connection), content, "{mode}");
    }
}

#[test]
fn a_damaged_page_aborts_the_scan_and_is_named() {
    let bench = Bench::new();
    drop(bench.make("delete", 512, 500));
    let page = bench.pages() / 2;
    scan::rekey(&bench.path(), None).unwrap();
    let right = bench.unit(page);
    bench.put(bench.offset(page) + 100, &[right[100] ^ 1]);
    let told = scan::run(&bench.path(), &quick(), &mut |_, _, _| ()).unwrap_err();
    assert!(matches!(told, ConvertError::Sqlite { code: 8202 | 11, .. }), "{told:?}");
    assert_eq!(bench.headers()[0].scan.state, ScanState::Aborted);
    bench.put(bench.offset(page), &right);
    assert_eq!(scan(&bench), Ended::Complete);
}

/// Whether a piece of the content can be read off the file by anybody.
fn is_readable(bench: &Bench) -> bool {
    let mut file = vec![0; bench.file().metadata().unwrap().len() as usize];
    bench.file().read_exact_at(&mut file, 0).unwrap();
    file.windows(8).any(|window| window == b"row 42 0")
}

#[test]
fn encryption_is_switched_off_and_on_while_others_use_it() {
    for (mode, page_bytes) in [("wal", 1024), ("delete", 4096), ("persist", 512)] {
        let bench = Bench::new();
        let connection = bench.make(mode, page_bytes, 700);
        let idle = bench.open();
        let content = dump(&connection);
        assert_eq!(dump(&idle), content);
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        assert!(!is_readable(&bench));

        scan::set(&bench.path(), Target::Off).unwrap();
        assert_eq!(dump(&idle), content, "{mode}: in between");
        assert_eq!(scan(&bench), Ended::Complete);
        assert!(is_readable(&bench), "{mode}: it is not off");
        let header = bench.headers()[0].clone();
        assert_eq!(header.state, EncryptionState::Unencrypted);
        assert_eq!(dump(&idle), content, "{mode}: off");
        idle.execute("INSERT INTO t VALUES (90000, 'while off')", []).unwrap();
        // In clear, and authentic all the same.
        let page = bench.pages() - 1;
        let right = bench.unit(page);
        bench.put(bench.offset(page) + 7, &[right[7] ^ 1]);
        let damaged = pellucid_sqlite::audit::audit(&bench.path(), true, &mut |_, _| ()).unwrap();
        assert!(!damaged.is_clean(), "{mode}: a changed byte of a plain page passes");
        bench.put(bench.offset(page), &right);

        let (old, old_header) = (bench.keys(), bench.headers()[0].clone());
        scan::set(&bench.path(), Target::On(Algorithm::Aes192)).unwrap();
        assert_eq!(scan(&bench), Ended::Complete);
        bench.is_free_of(&old, &old_header);
        assert!(!is_readable(&bench), "{mode}: content is left in clear");
        assert_eq!(bench.headers()[0].algorithm().unwrap(), Algorithm::Aes192);
        idle.execute("DELETE FROM t WHERE id = 90000", []).unwrap();
        assert_eq!(dump(&connection), content, "{mode}: on");
    }
}

#[test]
fn a_scan_turns_back_in_the_middle() {
    let bench = Bench::new();
    let connection = bench.make("wal", 512, 2000);
    let content = dump(&connection);
    let (old, old_header) = (bench.keys(), bench.headers()[0].clone());
    for target in
        [Target::Off, Target::On(Algorithm::Aes256), Target::Off, Target::On(Algorithm::Aes256)]
    {
        scan::set(&bench.path(), target).unwrap();
        let path = bench.path();
        let mut calls = 0;
        let ended = scan::run(&path, &quick(), &mut |_, _, _| {
            calls += 1;
            if calls == 2 {
                scan::change_state(&path, ScanState::Suspended).unwrap();
            }
        });
        assert_eq!(ended.unwrap(), Ended::Suspended);
        assert_eq!(dump(&connection), content);
    }
    assert_eq!(
        (bench.headers()[0].state, bench.headers()[0].deks.len()),
        (EncryptionState::Encrypting, 5)
    );
    scan::change_state(&bench.path(), ScanState::Running).unwrap();
    assert_eq!(scan(&bench), Ended::Complete);
    bench.is_free_of(&old, &old_header);
    assert_eq!(dump(&connection), content);
}

/// A proof is of one key. Who turns back while it is made has made another one current, and the pages need the
/// one that was proved.
#[test]
fn a_proof_drops_no_key_that_somebody_made_an_older_one_meanwhile() {
    for mode in ["wal", "delete"] {
        let bench = Bench::new();
        let connection = bench.make(mode, 512, 9000);
        // More than the cache of a scan holds: it would read pages whose key is gone from there.
        let content = dump(&connection);
        scan::rekey(&bench.path(), None).unwrap();
        assert_eq!(scan(&bench), Ended::Complete);
        scan::set(&bench.path(), Target::Off).unwrap();
        let path = bench.path();
        let mut turned = false;
        let ended = scan::run(&path, &quick(), &mut |doing, done, _| {
            // The last page has been looked at; nothing is dropped yet.
            if doing == Doing::Proving && done > 0 && !turned {
                turned = true;
                scan::set(&path, Target::On(Algorithm::Aes256)).unwrap();
            }
        });
        assert!(turned);
        assert_eq!(ended.unwrap(), Ended::Complete, "{mode}");
        assert_eq!(bench.headers()[0].state, EncryptionState::Encrypted, "{mode}");
        assert_eq!(dump(&connection), content, "{mode}");
        assert_eq!(dump(&bench.open()), content, "{mode}");
    }
}
