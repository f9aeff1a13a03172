//! Goal: `check` answers while a program has the database open and the newest pages lie in the write-ahead log, calls no
//! page damaged that somebody is writing, and finds rows without their parents.
//!
//! Method: stock Python under `pellucid run` writes without a checkpoint and, still connected, has the database checked:
//! as it is, with transactions of others going on, and with one byte of a frame changed. Another writes and vacuums
//! without a pause while checks run.

use crate::support::{said, Place, PELLUCID};

const HOLDER: &str = r#"
import json, sqlite3, subprocess, sys
db = sqlite3.connect("app.db", isolation_level=None)
db.execute("PRAGMA wal_autocheckpoint=0")

def check(status):
    done = subprocess.run([sys.argv[1], "--json", "check", "app.db"], capture_output=True, text=True)
    assert done.returncode == status, done
    return json.loads(done.stdout)

for round in 1, 2:
    db.execute("UPDATE t SET b = b || 'x'")
    if round == 2:
        db.execute("BEGIN IMMEDIATE")
    facts = check(0)
    assert facts["clean"] and facts["frames"] > 5 and facts["integrity_check"] == [], facts
db.execute("COMMIT")
frames = facts["frames"]

# All of it goes into the database, and the next writer begins the log anew: the old frames behind are left over.
assert db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0] == 0
db.execute("INSERT INTO t(b) VALUES('one row')")
facts = check(0)
assert 0 < facts["frames"] < frames, facts

with open("app.db-wal", "r+b") as log:
    log.seek(32 + 24 + 1000)
    byte = log.read(1)
    log.seek(-1, 1)
    log.write(bytes([byte[0] ^ 1]))
facts = check(3)
assert [number for number, _ in facts["damaged_frames"]] == [1], facts
"#;

#[test]
fn a_write_ahead_log_is_checked_while_a_program_has_the_database_open() {
    let place = Place::new();
    place.secret("right.key", &[7; 32]);
    place.plain("app.db");
    place.sqlite3("app.db", "PRAGMA journal_mode = wal").succeeded();
    place.pellucid(&["encrypt", "app.db", "--key-file", "right.key"]).succeeded();
    let mut holder = place.command(PELLUCID);
    holder.env("PELLUCID_KEY_FILE", "right.key");
    said(holder.args(["run", "--", "/usr/bin/python3", "-c", HOLDER, PELLUCID])).succeeded();
}

const WRITER: &str = r#"
import random, sqlite3, subprocess, sys, threading
db = sqlite3.connect("app.db", isolation_level=None, timeout=300, check_same_thread=False)
db.execute("PRAGMA journal_mode=" + sys.argv[2])
db.execute("PRAGMA synchronous=OFF"); db.execute("PRAGMA wal_autocheckpoint=20"); db.execute("PRAGMA cache_size=10")
db.execute("INSERT INTO t(b) SELECT b || hex(zeroblob(500)) FROM t, (SELECT 1 UNION SELECT 2 UNION SELECT 3)")
over, writes = False, 0

def write():
    global writes
    while not over:
        db.execute("UPDATE t SET b = b || 'x' WHERE a % 7 = ?", (random.randrange(7),))
        if writes % 20 == 19:
            db.execute("DELETE FROM t WHERE a > 700"); db.execute("VACUUM")
        writes += 1

writer = threading.Thread(target=write)
writer.start()
rounds = 0
# As many more as the writer needs to come to something, if it has not ended.
while rounds < 25 or (writes <= 20 and writer.is_alive()):
    rounds += 1
    done = subprocess.run([sys.argv[1], "--json", "check", "--physical-only", "app.db"], capture_output=True, text=True)
    assert done.returncode == 0, done
over = True
writer.join()
assert writes > 20, writes
print(writes)
"#;

#[test]
fn what_is_being_written_is_not_damaged() {
    for mode in ["wal", "delete"] {
        let place = Place::new();
        place.secret("right.key", &[7; 32]);
        place.sealed("app.db", &["--key-file", "right.key"]);
        let mut writer = place.command(PELLUCID);
        writer.env("PELLUCID_KEY_FILE", "right.key");
        writer.args(["run", "--", "/usr/bin/python3", "-c", WRITER, PELLUCID, mode]);
        println!("{mode}: {} writes beside 25 checks", said(&mut writer).succeeded().trim());
    }
}

#[test]
fn rows_without_a_parent_are_named() {
    let place = Place::new();
    place.secret("right.key", &[7; 32]);
    let sql = "CREATE TABLE parent(id INTEGER PRIMARY KEY); INSERT INTO parent VALUES (1), (2);
        CREATE TABLE child(id INTEGER PRIMARY KEY, of INT REFERENCES parent);
        INSERT INTO child VALUES (10, 1), (11, 3), (12, NULL);";
    place.sqlite3("app.db", sql).succeeded();
    place.pellucid(&["encrypt", "app.db", "--key-file", "right.key"]).succeeded();
    let told = place.pellucid(&["--json", "check", "app.db", "--key-file", "right.key"]);
    let facts: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    let expected = serde_json::json!([{"table": "child", "rowid": 11, "parent": "parent"}]);
    assert_eq!((told.code, &facts["foreign_keys"]), (3, &expected), "{told:?}");
    let told = place.pellucid(&["check", "app.db", "--key-file", "right.key"]);
    assert!(told.stdout.contains("row 11 of `child` has no parent in `parent`"), "{told:?}");
    let only = ["check", "app.db", "--physical-only", "--cores", "1", "--key-file", "right.key"];
    place.pellucid(&only).succeeded();
}

#[test]
fn what_cannot_be_checked_hides_nothing_of_the_others() {
    let place = Place::new();
    place.plain("plain.db");
    place.sealed("good.db", &[]);
    let told = place.pellucid(&["check", "plain.db", "none.db", "good.db"]);
    assert!(told.code == 1 && told.stdout.contains("good.db: clean"), "{told:?}");
    assert!(told.stderr.contains("`plain.db`") && told.stderr.contains("`none.db`"), "{told:?}");
    let bad = place.sealed("bad.db", &[]);
    crate::support::edit(&bad, |bytes| {
        let at = bytes.len() - 3000;
        bytes[at] ^= 1;
    });
    let told = place.pellucid(&["check", "bad.db", "plain.db", "good.db"]);
    assert!(told.code == 3 && told.stdout.contains("bad.db: DAMAGED"), "{told:?}");
    assert!(told.stdout.contains("good.db: clean"), "{told:?}");
}
