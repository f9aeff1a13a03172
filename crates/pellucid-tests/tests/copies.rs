//! Goal: a database that is made beside a sealed one is sealed like it, by the connection that makes it, whatever other
//! connections and threads have open.
//!
//! Method: the bundled SQLite, key files `one` and `two`, databases in the same process. It is one test, because every
//! connection of the process counts.
#![allow(clippy::unwrap_used)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rusqlite::backup::Backup;
use rusqlite::{Connection, ErrorCode, OpenFlags};

const MARKER: &str = "a marker that no file in clear has";
const COUNT: &str = "SELECT count(*) FROM t";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        pellucid_bundled::register().unwrap();
        let place =
            Self(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap());
        for (name, byte) in [("one", 1), ("two", 2)] {
            fs::write(place.path(name), [byte; 32]).unwrap();
            fs::set_permissions(place.path(name), Permissions::from_mode(0o600)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn uri(&self, name: &str, rest: &str) -> String {
        format!("file:{}?vfs=pellucid{rest}", self.path(name).display())
    }

    fn key(&self, name: &str, key: &str) -> String {
        self.uri(name, &format!("&key_file={}", self.path(key).display()))
    }

    /// Makes a sealed database with rows.
    fn sealed(&self, name: &str, key: &str) -> Connection {
        let connection = open(&self.key(name, key));
        let rows = format!(
            "CREATE TABLE t(a); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 500)
             INSERT INTO t SELECT n || '{MARKER}' FROM c"
        );
        connection.execute_batch(&rows).unwrap();
        connection
    }

    /// Checks that the copy is sealed, opens under `key` and under no other.
    fn assert_sealed(&self, name: &str, key: &str, what: &str) {
        let bytes = fs::read(self.path(name)).unwrap();
        assert!(bytes.starts_with(b"Pellucid "), "{what}");
        self.assert_no_marker(what);
        let other = if key == "one" { "two" } else { "one" };
        // Under another name, as a copy that was carried to another machine.
        fs::copy(self.path(name), self.path("moved")).unwrap();
        let connection = open(&self.key("moved", key));
        assert_eq!(connection.query_row(COUNT, [], |row| row.get::<_, i64>(0)).unwrap(), 500);
        let check = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        assert_eq!(connection.query_row("PRAGMA integrity_check", [], check).unwrap(), "ok");
        drop(connection);
        let refused = try_open(&self.key("moved", other));
        assert_eq!(
            refused.unwrap_err().sqlite_error_code(),
            Some(ErrorCode::AuthorizationForStatementDenied)
        );
        fs::remove_file(self.path("moved")).unwrap();
    }

    fn assert_no_marker(&self, what: &str) {
        for entry in fs::read_dir(self.0.path()).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(MARKER.len()).any(|part| part == MARKER.as_bytes()), "{what}");
        }
    }
}

fn try_open(uri: &str) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(uri, OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI)
}

fn open(uri: &str) -> Connection {
    try_open(uri).unwrap()
}

fn back_up(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    Backup::new(from, to)?.run_to_completion(100, std::time::Duration::ZERO, None)
}

#[test]
fn a_new_database_is_sealed_like_the_one_beside_it() {
    let place = Place::new();
    // What was closed is no reason to seal.
    drop(place.sealed("closed.db", "two"));
    open(&place.uri("plain.db", "")).execute_batch("CREATE TABLE u(a)").unwrap();
    assert!(fs::read(place.path("plain.db")).unwrap().starts_with(b"SQLite"));

    let one = place.sealed("one.db", "one");
    one.execute("VACUUM INTO ?1", [place.uri("into.db", "")]).unwrap();
    place.assert_sealed("into.db", "one", "VACUUM INTO");
    let mut target = open(&place.uri("backup.db", ""));
    back_up(&one, &mut target).unwrap();
    // One page at a time, into a file that was looked at before, with a cache that spills.
    let mut slow = open(&place.uri("slow.db", ""));
    slow.execute_batch("PRAGMA cache_size = 1; SELECT * FROM sqlite_schema").unwrap();
    Backup::new(&one, &mut slow)
        .unwrap()
        .run_to_completion(1, std::time::Duration::ZERO, None)
        .unwrap();
    drop((target, slow));
    place.assert_sealed("backup.db", "one", "backup");
    place.assert_sealed("slow.db", "one", "backup by pages");

    // Another database with the same key file is of one kind with it.
    let like = place.sealed("like.db", "one");
    back_up(&like, &mut open(&place.uri("kind.db", ""))).unwrap();
    place.assert_sealed("kind.db", "one", "two databases with one key file");

    // Another key in the process: a connection of its own does not say whose copy it is, one with a sealed database does.
    let two = place.sealed("two.db", "two");
    let refused = back_up(&one, &mut open(&place.uri("refused.db", ""))).unwrap_err();
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::AuthorizationForStatementDenied));
    assert_eq!(fs::metadata(place.path("refused.db")).unwrap().len(), 0);
    place.assert_no_marker("refused");
    for (connection, key) in [(&one, "one"), (&two, "two")] {
        let name = format!("attached-{key}.db");
        connection.execute("ATTACH ?1 AS c", [place.uri(&name, "")]).unwrap();
        connection.execute_batch("CREATE TABLE c.t AS SELECT * FROM t; DETACH c").unwrap();
        place.assert_sealed(&name, key, "attached");
    }
    let memory = open("file::memory:?vfs=pellucid");
    memory.execute("ATTACH ?1 AS s", [place.key("two.db", "two")]).unwrap();
    memory.execute("ATTACH ?1 AS c", [place.uri("scope.db", "")]).unwrap();
    memory.execute_batch("CREATE TABLE c.t AS SELECT * FROM s.t; DETACH c").unwrap();
    place.assert_sealed("scope.db", "two", "the only one of the connection");
    back_up(
        &one,
        &mut open(&place.uri("named.db", &format!("&key_file={}", place.path("one").display()))),
    )
    .unwrap();
    place.assert_sealed("named.db", "one", "a key in the URI");
    drop((memory, two, like));

    // Threads with connections of their own.
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let place = &place;
            scope.spawn(move || {
                for round in 0..5 {
                    let source = open(&place.key("one.db", "one"));
                    let name = format!("thread-{thread}-{round}.db");
                    source.execute("VACUUM INTO ?1", [place.uri(&name, "")]).unwrap();
                    let bytes = fs::read(place.path(&name)).unwrap();
                    assert!(bytes.starts_with(b"Pellucid "), "{name}");
                }
            });
        }
    });
    place.assert_no_marker("threads");

    // What was detached is a reason: its rows may be in a temporary table.
    drop(one);
    let memory = open("file::memory:?vfs=pellucid");
    memory.execute("ATTACH ?1 AS s", [place.key("two.db", "two")]).unwrap();
    memory.execute_batch("CREATE TEMP TABLE x AS SELECT * FROM s.t; DETACH s").unwrap();
    memory.execute("ATTACH ?1 AS c", [place.uri("detached.db", "")]).unwrap();
    memory.execute_batch("CREATE TABLE c.t AS SELECT * FROM x").unwrap();
    drop(memory);
    place.assert_sealed("detached.db", "two", "detached");
}
