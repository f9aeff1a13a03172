//! Goal: a database under AEGIS_256 is used like any other, and content of another one never goes under it.
//!
//! Method: the program and the stock python3 from outside. Temporary files are read through the descriptors of the process that
//! has them: the generation in a block's tail says its algorithm (docs/format.md, "Temporary file").

use pellucid::Algorithm;

use super::rekey::query;
use crate::support::{extension, header, Place};

const ROWS: &str = "SELECT count(*), sum(length(b)) FROM t";

#[test]
fn a_database_under_it_is_made_read_backed_up_and_restored() {
    let place = Place::new();
    let path = place.sealed("app.db", &["--algorithm", "AEGIS_256"]);
    let made = header(&path);
    assert_eq!((made.algorithm().unwrap(), made.version()), (Algorithm::Aegis256, 2));
    let rows = query(&place, "app.db", ROWS);
    for mode in ["wal", "delete"] {
        let sql = format!("PRAGMA journal_mode = {mode}; INSERT INTO t SELECT NULL, b FROM t;");
        query(&place, "app.db", &sql);
    }
    place.pellucid(&["check", "app.db"]).succeeded();
    let status = place.pellucid(&["status", "app.db", "--json"]).succeeded();
    assert!(status.contains("\"AEGIS_256\"") && status.contains("\"AEGIS\""), "{status}");
    let now = query(&place, "app.db", ROWS);
    assert_ne!(now, rows);

    let refused =
        place.pellucid(&["backup", "app.db", "--to", "a.bak", "--algorithm", "AEGIS_256"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    place.pellucid(&["backup", "app.db", "--to", "a.bak"]).succeeded();
    place.pellucid(&["restore", "a.bak", "--to", "b.db", "--algorithm", "AEGIS_256"]).succeeded();
    place.pellucid(&["restore", "a.bak", "--to", "c.db"]).succeeded();
    assert_eq!(header(&place.path("b.db")).algorithm().unwrap(), Algorithm::Aegis256);
    assert_eq!(header(&place.path("c.db")).algorithm().unwrap(), Algorithm::Aes256);
    assert_eq!(
        [query(&place, "b.db", ROWS), query(&place, "c.db", ROWS)],
        [now.clone(), now.clone()]
    );

    for algorithm in ["AES_256", "AEGIS_256"] {
        place.pellucid(&["rekey", "app.db", "--algorithm", algorithm]).succeeded();
        place.pellucid(&["check", "app.db"]).succeeded();
        assert_eq!(query(&place, "app.db", ROWS), now);
    }
    place.pellucid(&["decrypt", "app.db"]).succeeded();
    assert_eq!(place.sqlite3("app.db", ROWS).succeeded(), now);
}

#[test]
fn a_database_of_version_1_is_told_to_be_upgraded_first() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    let before = std::fs::read(&path).unwrap();
    let refused = place.pellucid(&["rekey", "app.db", "--algorithm", "AEGIS_256"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("format version 1 has no AEGIS_256"), "{}", refused.stderr);
    assert!(refused.stderr.contains("pellucid upgrade"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// Prints the generations of the blocks in the process's temporary files after each step.
const APPLICATION: &str = r#"
import os, sqlite3, sys
def connect(name):
    db = sqlite3.connect("file:" + name + "?vfs=pellucid", uri=True, isolation_level=None)
    db.execute("PRAGMA temp_store = 1")
    db.execute("PRAGMA temp.cache_size = 5")
    return db
loader = sqlite3.connect(":memory:")
loader.enable_load_extension(True)
loader.load_extension(sys.argv[1])
UNIT = 4128
def generations():
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue
        if not target.endswith("(deleted)"):
            continue
        size = os.fstat(int(fd)).st_size
        for at in range(0, size - UNIT + 1, UNIT):
            unit = os.pread(int(fd), UNIT, at)
            if any(unit):
                found.add((fd, at, int.from_bytes(unit[4096 + 12:4096 + 16], "big"), unit))
    return found
def fill(db, table, source):
    db.execute("CREATE TEMP TABLE IF NOT EXISTS %s(b)" % table)
    db.execute("INSERT INTO temp.%s SELECT b FROM %s" % (table, source))
    db.execute("SELECT count(*) FROM (SELECT b FROM temp.%s ORDER BY b)" % table).fetchall()
# Blocks that were sealed before and wait to be written together: 15 for each file.
HELD = 15
def told(what, before=None):
    count = {}
    for fd, at, generation, unit in generations() - (before or set()):
        count[fd, generation] = count.get((fd, generation), 0) + 1
    late = HELD if before is not None else 0
    print(what, *sorted({key[1] for key, n in count.items() if key[1] == 1 or n > late}), flush=True)

one = connect("one.db")
fill(one, "x", "main.t")
told("aegis")
other = connect("other.db")
fill(other, "x", "main.t")
told("two of them")
before = generations()
one.execute("ATTACH 'file:aes.db?vfs=pellucid' AS aes")
one.execute("SELECT count(*) FROM aes.t").fetchall()
fill(one, "x", "aes.t")
told("attached", before)
one.execute("DETACH aes")
before = generations()
fill(one, "y", "main.t")
told("detached", before)
before = generations()
fill(other, "y", "main.t")
told("another connection", before)
fresh = connect("one.db")
before = generations()
fill(fresh, "z", "main.t")
told("a new one", before)
wrong = one.execute("SELECT (SELECT count(*) FROM temp.x) - 2 * (SELECT count(*) FROM main.t)").fetchone()
told_sum = one.execute("SELECT count(*) FROM temp.x WHERE b NOT IN (SELECT b FROM main.t)").fetchone()
print("rows", wrong[0], told_sum[0])
"#;

#[test]
fn no_block_is_under_it_once_another_database_was_open() {
    let place = Place::new();
    for (name, algorithm) in
        [("one.db", "AEGIS_256"), ("other.db", "AEGIS_256"), ("aes.db", "AES_256")]
    {
        let plain = place.plain(name);
        drop(plain);
        let sql = "DELETE FROM t; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) \
                   INSERT INTO t SELECT NULL, printf('%0500d', i) FROM n";
        place.sqlite3(name, sql).succeeded();
        place.pellucid(&["encrypt", name, "--algorithm", algorithm]).succeeded();
    }
    place.script("application.py", APPLICATION);
    let mut command = place.command("/usr/bin/python3");
    command.args(["application.py", &extension(&place)]);
    command.env("PELLUCID_TEMP_MEMORY", "0");
    let said = crate::support::said(&mut command).succeeded();
    let lines: Vec<&str> = said.lines().collect();
    let expected = [
        "aegis 2",
        "two of them 2",
        "attached 1",
        "detached 1",
        "another connection 1",
        "a new one 1",
        "rows 0 0",
    ];
    assert_eq!(lines, expected);
}
