//! Goal: `check` answers while a program has the database open and the newest pages lie in the write-ahead log.
//!
//! Method: stock Python under `pellucid run` writes without a checkpoint and, still connected, has the database checked:
//! as it is, with transactions of others going on, and with one byte of a frame changed.

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
