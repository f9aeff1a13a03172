//! What the databases hold whose bits are flipped, how a killed process leaves them, and what shows that flips are caught.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Once;

use rusqlite::{Connection, OpenFlags};

/// Runs `test`. Where authentication is taken away, it has to fail, and to say `finding`.
pub fn caught(finding: &str, test: fn()) {
    if std::env::var_os("PELLUCID_SABOTAGE").is_none_or(|what| what != "authentication") {
        return test();
    }
    let failed = std::panic::catch_unwind(test)
        .expect_err("authentication is gone and nothing was noticed: the test shows nothing");
    let said = failed.downcast_ref::<String>().map_or("", String::as_str);
    assert!(said.contains(finding), "it failed for another reason: {said}");
}

/// A table and an index; `seed` makes other rows of the same length.
pub fn fill(connection: &Connection, page_bytes: usize, rows: usize, seed: u64) {
    connection
        .execute_batch(&format!(
            "PRAGMA page_size={page_bytes}; CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT);
             CREATE INDEX i ON t(body);
             WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {rows})
             INSERT INTO t SELECT x, printf('row %d %s', x, hex(x * 7919 + {seed})) FROM c;"
        ))
        .unwrap();
}

/// The whole content as text, by the table and by the index.
pub fn dump(connection: &Connection) -> rusqlite::Result<String> {
    let mut all = String::new();
    for sql in [
        "SELECT type || name || coalesce(sql, '') FROM sqlite_schema",
        "SELECT id || ':' || body FROM t ORDER BY id",
        "SELECT id || ':' || body FROM t INDEXED BY i ORDER BY body",
    ] {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            all.push_str(&row.get::<_, String>(0)?);
            all.push('\n');
        }
    }
    Ok(all)
}

/// Opens a database by its URI.
pub fn open(uri: &str) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(uri, OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI)
}

/// A plain database with the same reserved bytes as a sealed one, so that it has the same pages.
pub fn plain(path: &std::path::Path) -> Connection {
    let connection = open(&format!("file:{}?vfs=unix", path.display())).unwrap();
    let mut reserve: i32 = 32;
    // SAFETY: the operation takes an `int *`; the connection is open.
    unsafe {
        rusqlite::ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            rusqlite::ffi::SQLITE_FCNTL_RESERVE_BYTES,
            std::ptr::addr_of_mut!(reserve).cast(),
        );
    }
    connection
}

/// Four commits that stay in the WAL: the content before and after each.
pub fn commits(connection: &Connection) -> Vec<String> {
    connection.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0").unwrap();
    let mut states = vec![dump(connection).unwrap()];
    for n in 0..4 {
        connection
            .execute_batch(&format!("UPDATE t SET body = body || 'v{n}' WHERE id % 13 = {n}"))
            .unwrap();
        states.push(dump(connection).unwrap());
    }
    states
}

/// A transaction that has spilled: the database is half written, the journal is hot.
pub fn spill(connection: &Connection) {
    connection
        .execute_batch(
            "PRAGMA cache_size=2; BEGIN; UPDATE t SET body = 'changed ' || body WHERE id > 5;
             UPDATE t SET body = 'twice ' || body;",
        )
        .unwrap();
}

/// Where the headers of a plain journal are, and where its records begin (SQLite file format, 3).
pub fn parts(journal: &[u8], page: usize) -> (Vec<usize>, Vec<usize>) {
    let word = |at: usize| u32::from_be_bytes(journal[at..at + 4].try_into().unwrap()) as usize;
    let (mut headers, mut records, mut at) = (Vec::new(), Vec::new(), 0);
    while at + 28 <= journal.len() && journal[at..at + 8] == pellucid::journal::MAGIC {
        headers.push(at);
        let (count, sector) = (word(at + 8), word(at + 20));
        let start = at + sector;
        records.extend((0..count).map(|n| start + n * (page + 8)));
        at = (start + count * (page + 8)).next_multiple_of(sector);
    }
    (headers, records)
}

/// A directory for databases that nothing has to outlive: in memory, where the system has such a place.
pub fn directory_in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The format version of new databases: tests run for each, by `PELLUCID_FORMAT`.
pub fn version() -> u32 {
    match std::env::var("PELLUCID_FORMAT").as_deref() {
        Ok("2") => 2,
        _ => 1,
    }
}

/// From now on each new database of this process is sealed, under one key file that every opener finds in the environment.
pub fn seal_new_databases() {
    static KEY: Once = Once::new();
    KEY.call_once(|| {
        let place = Box::leak(Box::new(tempfile::tempdir().unwrap()));
        let key = place.path().join("key");
        fs::write(&key, [7; 32]).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        std::env::set_var("PELLUCID_KEY_FILE", key);
        std::env::set_var("PELLUCID_ENCRYPT_NEW", "1");
    });
}
