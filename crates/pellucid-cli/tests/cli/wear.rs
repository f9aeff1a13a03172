//! Goal: no generation of keys seals more than it may, over all processes, and a count that was damaged moves on.
//!
//! Method: the limit of writes under a generation is lowered by the environment; many short processes write; the header
//! says how far the generations went, and the content is compared with a plain twin.

use crate::support::{edit, header, said, Place, PELLUCID};

const LIMIT: u32 = 300;
const PROCESSES: u32 = 12;

fn write(place: &Place, name: &str, sql: &str) {
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_KEY_FILE", "right.key");
    command.env("PELLUCID_GENERATION_WRITES", LIMIT.to_string());
    said(command.args(["run", "--", "sqlite3", "-batch", name, sql])).succeeded();
}

fn twins(mode: &str) -> Place {
    let place = Place::new();
    place.secret("right.key", &[7; 32]);
    place.plain("app.db");
    place.sqlite3("app.db", &format!("PRAGMA journal_mode = {mode}")).succeeded();
    std::fs::copy(place.path("app.db"), place.path("twin.db")).unwrap();
    place.pellucid(&["encrypt", "app.db", "--key-file", "right.key"]).succeeded();
    place
}

fn compare(place: &Place) {
    place.pellucid(&["check", "app.db", "--key-file", "right.key"]).succeeded();
    place.pellucid(&["decrypt", "app.db", "--key-file", "right.key"]).succeeded();
    let dump = |name: &str| place.sqlite3(name, ".dump").succeeded();
    assert!(dump("app.db") == dump("twin.db"));
}

#[test]
fn generations_move_on_before_they_are_worn_out() {
    for mode in ["delete", "wal"] {
        let place = twins(mode);
        for i in 0..PROCESSES {
            let sql =
                format!("INSERT INTO t SELECT NULL, hex(zeroblob(400)) || {i} FROM t LIMIT 100");
            write(&place, "app.db", &sql);
            place.sqlite3("twin.db", &sql).succeeded();
        }
        // At least 200 pages of 4096 bytes were sealed, each also in a log, in blocks of at most a quarter of the limit.
        let generation = header(&place.path("app.db")).generation;
        assert!(generation > 3, "{mode}: still at generation {generation}");
        compare(&place);
    }
}

#[test]
fn a_damaged_count_moves_to_the_next_generation() {
    for (mode, sector) in [("delete", 512), ("wal", 1024)] {
        let place = twins(mode);
        let before = header(&place.path("app.db")).generation;
        edit(&place.path("app.db"), |bytes| bytes[sector + 20] ^= 1);
        let sql = "UPDATE t SET b = b || 'x' WHERE a < 20";
        write(&place, "app.db", sql);
        place.sqlite3("twin.db", sql).succeeded();
        let after = header(&place.path("app.db")).generation;
        assert_eq!(after, before + 1, "{mode}");
        compare(&place);
    }
}
