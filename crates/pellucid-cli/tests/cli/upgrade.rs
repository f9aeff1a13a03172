//! Goal: a database gets the other format version by a command of its own and by nothing else, keeps every row, and whatever stands
//! in the way is told by name and changes nothing; 0.1.0 refuses version 2 by name.
//!
//! Method: both directions with a journal and with a log; the header as it lies on disk. Each refusal is made to happen, with
//! headers signed by the place's own key where no command makes them. Kills before each call that changes a file beside the
//! database, and in the middle of each write (tests/tools/killat.c); what is left is opened, changed and changed back.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pellucid::header::{Header, RecoveryModel, Second, COPY_BYTES, COPY_OFFSETS};
use pellucid::scan::ScanState;
use serde_json::Value;

use crate::support::{
    extension, header, plant, said, said_with, sha256, Held, Place, Said, PELLUCID,
};

const UPGRADE: &str = "upgrade app.db --timeout 0";
const BACK: &str = "upgrade app.db --to 1 --timeout 0";

fn run(place: &Place, words: &str) -> Said {
    place.pellucid(&words.split(' ').collect::<Vec<_>>())
}

fn sql(place: &Place, sql: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", "-batch", "-bail", "app.db", sql]).succeeded()
}

fn rows(place: &Place) -> [u8; 32] {
    let told = sql(place, "SELECT * FROM t ORDER BY a; PRAGMA integrity_check");
    assert!(told.ends_with("ok\n"), "{told}");
    sha256(told.as_bytes())
}

fn sealed(mode: &str) -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    assert_eq!(sql(&place, &format!("PRAGMA journal_mode={mode}")).trim(), mode);
    place
}

fn version(place: &Place) -> u32 {
    newest(place).version()
}

/// The newest whole copy of the header: a kill may have torn the other one.
fn newest(place: &Place) -> Header {
    let bytes = std::fs::read(place.path("app.db")).unwrap();
    let copies = COPY_OFFSETS.iter().enumerate().filter_map(|(copy, at)| {
        Header::parse(&bytes[*at as usize..][..COPY_BYTES], copy as u8).ok()
    });
    copies.max_by_key(|header| header.sequence).unwrap()
}

/// All files of the place but those of the keyring, which learns of a header.
fn files(place: &Place) -> Vec<(PathBuf, (u32, [u8; 32]))> {
    let keys = place.path("keys");
    place.snapshot().into_iter().filter(|(path, _)| !path.starts_with(&keys)).collect()
}

/// The command is refused with that id and those words, and nothing is changed.
fn refused(place: &Place, words: &str, id: &str, says: &str) {
    let before = files(place);
    let told = run(place, words);
    assert_eq!(told.code, 1, "{words}: {told:?}");
    assert!(told.stderr.contains(&format!("[{id}]")), "{words}: {told:?}");
    assert!(told.stderr.contains(says), "{words}: {told:?}");
    assert_eq!(before, files(place), "{words}");
}

#[test]
fn there_and_back_every_row_stays() {
    for mode in ["delete", "truncate", "persist", "wal"] {
        let place = sealed(mode);
        sql(&place, &format!("PRAGMA journal_mode={mode}; INSERT INTO t VALUES (1000, 'more')"));
        let (before, was) = (rows(&place), header(&place.path("app.db")));
        assert_eq!(was.version(), 1);
        for (to, action) in [(2, "upgraded"), (1, "downgraded"), (2, "upgraded")] {
            let last = header(&place.path("app.db"));
            let told = run(&place, &format!("--json upgrade app.db --to {to}")).succeeded();
            let facts: Value = serde_json::from_str(&told).unwrap();
            assert_eq!(
                (&facts["format_version"], &facts["before"]),
                (&to.into(), &(3 - to).into())
            );
            let now = header(&place.path("app.db"));
            assert_eq!(now.version(), to);
            assert!(now.sequence > last.sequence);
            let same =
                Header { sequence: last.sequence, second: last.second.clone(), ..now.clone() };
            assert_eq!(same, last, "nothing else of the header changes");
            for gone in ["app.db-wal", "app.db-journal"] {
                assert!(!place.path(gone).exists(), "{mode}: {gone}");
            }
            assert_eq!(rows(&place), before, "{mode}");
            run(&place, "check app.db").succeeded();
            let events = run(&place, "events").succeeded();
            assert!(events.contains(action), "{events}");
            let again = run(&place, &format!("upgrade app.db --to {to}")).succeeded();
            assert!(again.contains(&format!("is of format version {to} already")), "{again}");
            assert_eq!(header(&place.path("app.db")), now);
        }
        assert_eq!(
            sql(&place, "PRAGMA journal_mode").trim(),
            if mode == "wal" { mode } else { "delete" }
        );
        // The generation did not move: sector 2 kept its count.
        assert_eq!(header(&place.path("app.db")).generation, was.generation);
        sql(&place, "INSERT INTO t VALUES (1001, 'after')");
        assert_eq!(header(&place.path("app.db")).generation, was.generation);
    }
}

/// What the keyring has seen last is not put back: the sequence grows with the version.
#[test]
fn a_header_of_before_is_an_older_one() {
    let place = sealed("delete");
    let before = std::fs::read(place.path("app.db")).unwrap();
    run(&place, UPGRADE).succeeded();
    std::fs::write(place.path("app.db"), before).unwrap();
    let told = run(&place, "check app.db");
    assert!(told.code != 0 && told.stderr.contains("older header"), "{told:?}");
}

/// A commit that is in the log alone is in the database afterwards.
#[test]
fn a_killed_writers_log_and_journal_are_brought_in_first() {
    let place = sealed("wal");
    let mut command = place.command(PELLUCID);
    command.args(["run", "--", "sqlite3", "-batch", "-bail", "app.db"]);
    let script = "INSERT INTO t VALUES (1000, 'in the log');\n\
                  .shell mkdir kept && cp app.db app.db-wal kept\n";
    said_with(&mut command, script).succeeded();
    for name in ["app.db", "app.db-wal"] {
        std::fs::rename(place.path("kept").join(name), place.path(name)).unwrap();
    }
    run(&place, UPGRADE).succeeded();
    assert_eq!(sql(&place, "SELECT b FROM t WHERE a = 1000").trim(), "in the log");

    let place = sealed("delete");
    let before = rows(&place);
    let program = "import os, sqlite3
db = sqlite3.connect('app.db', isolation_level=None)
db.execute('PRAGMA cache_size=1')
db.execute('BEGIN')
db.execute('UPDATE t SET b = b || hex(randomblob(2000))')
os._exit(0)";
    said(place.command(PELLUCID).args(["run", "--", "python3", "-c", program])).succeeded();
    assert!(place.path("app.db-journal").metadata().unwrap().len() > 512, "a hot journal");
    run(&place, UPGRADE).succeeded();
    assert!(!place.path("app.db-journal").exists());
    assert_eq!(rows(&place), before);
}

#[test]
fn a_scan_that_is_not_over_is_in_the_way() {
    for state in [ScanState::Running, ScanState::Suspended, ScanState::Aborted] {
        let place = sealed("delete");
        plant::rewrite_header(&place, "app.db", 0, |header| header.scan.state = state);
        refused(&place, UPGRADE, "scan-unfinished", "a scan of it is under way");
        plant::rewrite_header(&place, "app.db", 0, |header| {
            header.second = Some(Second::default())
        });
        refused(&place, BACK, "scan-unfinished", "a scan of it is under way");
    }
}

#[test]
fn logs_of_another_version_beside_it_are_in_the_way() {
    for (to, words) in [(2, UPGRADE), (1, BACK)] {
        let place = sealed("delete");
        if to == 1 {
            run(&place, UPGRADE).succeeded();
        }
        for name in ["app.db-wal-lost-1", "app.db-wal-accepted-1"] {
            std::fs::write(place.path(name), "a rest").unwrap();
            refused(&place, words, "lost-log", name);
            std::fs::remove_file(place.path(name)).unwrap();
        }
        let archive = place.path("app.db-log");
        std::fs::write(&archive, "no directory").unwrap();
        refused(&place, words, "log-archive", "app.db-log");
        std::fs::remove_file(&archive).unwrap();
        std::fs::create_dir(&archive).unwrap();
        std::fs::write(archive.join("state"), "").unwrap();
        refused(&place, words, "log-archive", "app.db-log");
        std::fs::remove_file(archive.join("state")).unwrap();
        run(&place, words).succeeded();
        assert_eq!(version(&place), to);
    }
}

#[test]
fn what_version_1_does_not_have_keeps_a_database_in_version_2() {
    let place = sealed("delete");
    run(&place, UPGRADE).succeeded();
    let used = Second { index_in_memory: true, ..Second::default() };
    plant::rewrite_header(&place, "app.db", 0, |header| header.second = Some(used));
    refused(&place, BACK, "needs-newer-format", "it has its wal-index in memory");
    // Whatever else version 1 has no room for.
    for (at, value, says) in [
        (69, RecoveryModel::Full as u8, "recovery model FULL"),
        (69, RecoveryModel::BulkLogged as u8, "recovery model BULK_LOGGED"),
        (70, 2, "chain of log backups"),
        (70, 8, "standby"),
        (128, 7, "log backups"),
    ] {
        let place = sealed("delete");
        run(&place, UPGRADE).succeeded();
        let key = plant::header_and_key(&place, "app.db").1;
        crate::support::edit_headers(&place.path("app.db"), |copy| {
            copy[at] = value;
            let mac = key.sign(&[&copy[..copy.len() - 64]]);
            let end = copy.len();
            copy[end - 64..end - 32].copy_from_slice(&mac);
        });
        refused(&place, BACK, "needs-newer-format", says);
    }
}

/// Eight certificates with long names: they fit beside one key, and no rekey would have room.
#[test]
fn the_next_rekey_keeps_its_room() {
    let place = Place::new();
    place.pellucid(&["init"]).succeeded();
    let name = "a-certificate-with-a-name-of-some-length-and-room";
    place.pellucid(&["cert", "create", name]).succeeded();
    place.sealed("app.db", &["--certificate", name]);
    let one = header(&place.path("app.db")).protectors[0].clone();
    plant::rewrite_header(&place, "app.db", 0, |header| header.protectors = vec![one; 8]);
    let is_full = |header: &Header| header.in_version(2).is_err();
    assert!(is_full(&header(&place.path("app.db"))), "the test has to fill the header");
    refused(&place, UPGRADE, "limit-reached", "the next rekey would have no room");
    place.pellucid(&["protector", "drop", "app.db", "--number", "8"]).succeeded();
    run(&place, UPGRADE).succeeded();
}

#[test]
fn what_is_no_sealed_database_is_named() {
    let place = sealed("delete");
    place.plain("plain.db");
    std::fs::write(place.path("empty.db"), "").unwrap();
    std::fs::write(place.path("text.db"), "a text").unwrap();
    for (name, id) in [
        ("plain.db", "plain"),
        ("empty.db", "not-a-database"),
        ("text.db", "not-a-database"),
        ("gone.db", "not-found"),
    ] {
        refused(&place, &format!("upgrade {name}"), id, name);
    }
    std::fs::hard_link(place.path("app.db"), place.path("other.db")).unwrap();
    refused(&place, UPGRADE, "misuse", "hard links");
    std::fs::remove_file(place.path("other.db")).unwrap();
    for words in ["upgrade app.db --to 3", "upgrade app.db --to 0"] {
        assert_eq!(run(&place, words).code, 2, "{words}");
    }
    assert_eq!(version(&place), 1);
}

#[test]
fn what_may_not_be_written_stays_as_it_is() {
    let place = sealed("delete");
    let path = place.path("app.db");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
    if std::fs::OpenOptions::new().write(true).open(&path).is_ok() {
        println!("SKIP: this user writes every file; `services` tries it as another one");
        return;
    }
    let told = run(&place, UPGRADE);
    assert!(told.code == 1 && told.stderr.contains("(33118)"), "{told:?}");
    assert_eq!(version(&place), 1);
}

/// A program that has the database open, and does what it is told by lines on its standard input.
const OTHER: &str = "import sqlite3, sys
db = sqlite3.connect('app.db', isolation_level=None, timeout=0)
db.execute('SELECT count(*) FROM t').fetchone()
for line in sys.argv[1:]:
    db.execute(line)
print('ready', flush=True)
sys.stdin.readline()
db.execute('ROLLBACK') if db.in_transaction else None
db.execute('INSERT INTO t VALUES (2000, ?)', ('by the other one',))
db.close()
";

fn other(place: &Place, statements: &[&str]) -> Held {
    let mut command = place.command(PELLUCID);
    command.args(["run", "--", "python3", "-c", OTHER]).args(statements);
    Held::start(command)
}

#[test]
fn another_connection_is_named_and_nothing_is_changed() {
    for (mode, statements) in [
        // An idle connection in WAL mode has the log open.
        ("wal", &[][..]),
        ("wal", &["BEGIN IMMEDIATE"]),
        ("delete", &["BEGIN", "SELECT count(*) FROM t"]),
        ("delete", &["BEGIN IMMEDIATE"]),
        ("delete", &["PRAGMA locking_mode=EXCLUSIVE", "BEGIN EXCLUSIVE"]),
    ] {
        for to in [2, 1] {
            let place = sealed(mode);
            if to == 1 {
                run(&place, UPGRADE).succeeded();
            }
            let was = header(&place.path("app.db"));
            let mut other = other(&place, statements);
            let told = run(&place, &format!("upgrade app.db --to {to} --timeout 1"));
            assert_eq!(told.code, 1, "{mode} {statements:?}: {told:?}");
            assert!(told.stderr.contains("[in-use]"), "{mode} {statements:?}: {told:?}");
            assert!(told.stderr.contains("python3"), "{mode} {statements:?}: {told:?}");
            assert_eq!(header(&place.path("app.db")), was);
            other.end();
            assert_eq!(sql(&place, "SELECT b FROM t WHERE a = 2000").trim(), "by the other one");
            run(&place, &format!("upgrade app.db --to {to}")).succeeded();
            assert_eq!(version(&place), to);
        }
    }
}

/// With a rollback journal an idle connection holds no lock. It reads the new header at its next one.
#[test]
fn an_idle_connection_goes_on_under_the_new_header() {
    for to in [2, 1] {
        let place = sealed("delete");
        if to == 1 {
            run(&place, UPGRADE).succeeded();
        }
        let mut other = other(&place, &[]);
        run(&place, &format!("upgrade app.db --to {to} --timeout 1")).succeeded();
        other.end();
        assert_eq!(sql(&place, "SELECT b FROM t WHERE a = 2000").trim(), "by the other one");
        assert_eq!(version(&place), to);
    }
}

/// The program of a release, if it runs here.
fn release(place: &Place) -> Option<PathBuf> {
    let name = format!("program-{}.tar.xz", std::env::consts::ARCH);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packed = root.join("tests/releases/0.1.0").join(name);
    if !packed.exists() {
        println!("SKIP: {} is not there", packed.display());
        return None;
    }
    let to = place.path("release");
    std::fs::create_dir(&to).unwrap();
    let mut command = std::process::Command::new("tar");
    said(command.arg("-xJf").arg(packed).arg("-C").arg(&to)).succeeded();
    Some(to.join("pellucid"))
}

#[test]
fn the_release_before_refuses_version_2_by_name_and_opens_what_went_back() {
    for mode in ["delete", "wal"] {
        let place = sealed(mode);
        let Some(program) = release(&place) else { return };
        let program = program.to_str().unwrap();
        run(&place, UPGRADE).succeeded();
        let before = files(&place);
        for words in [
            &["check", "app.db"][..],
            &["rekey", "app.db"],
            &["decrypt", "app.db"],
            &["backup", "app.db", "--to", "app.bak"],
            &["run", "--", "sqlite3", "-bail", "app.db", "INSERT INTO t VALUES (3000, 'x')"],
        ] {
            let told = said(place.command(program).args(words));
            assert_ne!(told.code, 0, "{words:?}: {told:?}");
            assert!(
                told.stderr.contains("format version 2 is newer than 1"),
                "{words:?}: {told:?}"
            );
        }
        assert_eq!(before, files(&place));
        run(&place, BACK).succeeded();
        let count = ["run", "--", "sqlite3", "-bail", "app.db", "SELECT count(*) FROM t"];
        let generation = header(&place.path("app.db")).generation;
        assert_eq!(said(place.command(program).args(count)).succeeded().trim(), "200");
        let insert =
            ["run", "--", "sqlite3", "-bail", "app.db", "INSERT INTO t VALUES (3000, 'x')"];
        said(place.command(program).args(insert)).succeeded();
        assert_eq!(header(&place.path("app.db")).generation, generation, "sector 2 is its own");
        said(place.command(program).args(["check", "app.db"])).succeeded();
    }
}

/// Kills the command before its `at`th change beside the database, in the middle of a write. Gives its status.
fn killed_at(place: &Place, preload: &Path, words: &str, at: u32) -> i32 {
    let mut command = place.command(PELLUCID);
    command.env("LD_PRELOAD", preload).env("KILL_AT", at.to_string());
    command.env("KILL_DIR", place.path("app.db"));
    command.env("KILL_TORN", "512");
    let told = said(command.args(words.split(' ')));
    assert!(told.code == 0 || told.code == 128 + 9, "{words} at {at}: {told:?}");
    told.code
}

#[test]
fn killed_anywhere_it_is_of_one_version_or_the_other() {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/killat.c");
    for mode in ["delete", "persist", "wal"] {
        let model = sealed(mode);
        // `persist` leaves an ended journal, and the copied log of a killed writer is there in WAL mode.
        let mut command = model.command(PELLUCID);
        command.args(["run", "--", "sqlite3", "-batch", "-bail", "app.db"]);
        let script = format!(
            "PRAGMA journal_mode={mode};\nINSERT INTO t VALUES (1000, 'late');\n\
             .shell mkdir kept && cp app.db* kept\n"
        );
        said_with(&mut command, &script).succeeded();
        std::fs::remove_file(model.path("kept/app.db-shm")).ok();
        let preload = model.compile_library(&tool, "killat.so");
        let expected = rows(&model);
        for (from, to) in [(1, 2), (2, 1)] {
            let words = format!("upgrade app.db --to {to} --timeout 0");
            let mut versions = [0; 3];
            let mut at = 0;
            loop {
                at += 1;
                let what = format!("{mode}, to {to}, killed at {at}");
                let live = Place::new();
                model.copy_to(&live);
                if from == 1 {
                    let kept = live.path("kept");
                    for name in std::fs::read_dir(&kept).unwrap() {
                        let name = name.unwrap().file_name();
                        std::fs::rename(kept.join(&name), live.path(name.to_str().unwrap()))
                            .unwrap();
                    }
                } else {
                    run(&live, "upgrade app.db").succeeded();
                }
                let code = killed_at(&live, &preload, &words, at);
                assert_eq!(rows(&live), expected, "{what}");
                let generation = newest(&live).generation;
                sql(&live, "INSERT INTO t VALUES (4000, 'x'); DELETE FROM t WHERE a = 4000");
                let found = version(&live);
                versions[found as usize] += 1;
                assert!(code != 0 || found == to, "{what}: it said that it had succeeded");
                assert_eq!(newest(&live).generation, generation, "{what}");
                for next in [to, from] {
                    let words = format!("upgrade app.db --to {next} --timeout 0");
                    run(&live, &words).succeeded();
                    assert_eq!(version(&live), next, "{what}");
                    assert_eq!(rows(&live), expected, "{what}");
                }
                if code == 0 {
                    break;
                }
            }
            println!("{mode}, to {to}: {at} calls, {versions:?}");
            assert!(versions[1] > 1 && versions[2] > 1, "{mode}: {versions:?}");
        }
    }
}

#[test]
fn births_obey_the_instance_and_copies_their_original() {
    let place = Place::new();
    let told = run(&place, "policy set format-version 3");
    assert_eq!(told.code, 1, "{told:?}");
    place.pellucid(&["init"]).succeeded();
    extension(&place);
    let facts: Value =
        serde_json::from_str(&run(&place, "--json policy show").succeeded()).unwrap();
    let row =
        facts["policies"].as_array().unwrap().iter().find(|row| row["name"] == "format-version");
    assert_eq!(row.unwrap()["value"], "1");
    place.sealed("old.db", &[]);
    run(&place, "policy set format-version 2").succeeded();
    let version = |name: &str| header(&place.path(name)).version();
    let sqlite = |words: &[&str], environment: &[(&str, &str)]| {
        let mut command = place.command(PELLUCID);
        command.envs(environment.iter().copied());
        said(command.args([&["run", "--", "sqlite3", "-batch", "-bail"], words].concat()))
            .succeeded()
    };
    place.sealed("app.db", &[]);
    sqlite(&["env.db", "CREATE TABLE t(a)"], &[("PELLUCID_ENCRYPT_NEW", "1")]);
    sqlite(&["file:uri.db?encrypt_new=1", "CREATE TABLE t(a)"], &[]);
    sqlite(&["app.db", "VACUUM INTO 'copy.db'"], &[]);
    sqlite(&["app.db", ".backup backup.db"], &[]);
    let create =
        format!("CREATE DATABASE made ON (FILENAME = '{}')", place.path("made.db").display());
    let told = place.pellucid(&["sql", "-b", "-Q", &create]);
    let made = told.code == 0 && place.path("made.db").exists();
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    place.pellucid(&["restore", "app.bak", "--to", "back.db"]).succeeded();
    for name in ["app.db", "env.db", "uri.db", "copy.db", "backup.db", "back.db"] {
        assert_eq!(version(name), 2, "{name}");
    }
    assert!(made, "{told:?}");
    // A copy is of the version of what it is a copy of, in both directions.
    sqlite(&["old.db", "VACUUM INTO 'older.db'"], &[]);
    assert_eq!((version("old.db"), version("older.db")), (1, 1));
    run(&place, "policy clear format-version").succeeded();
    sqlite(&["app.db", "VACUUM INTO 'second.db'"], &[]);
    place.sealed("new.db", &[]);
    assert_eq!((version("second.db"), version("new.db")), (2, 1));
}

#[test]
fn status_and_doctor_tell_the_version() {
    let place = sealed("delete");
    let status = |place: &Place| -> Value {
        serde_json::from_str(&run(place, "--json status app.db").succeeded()).unwrap()
    };
    assert_eq!(status(&place)["databases"][0]["format_version"], 1);
    let doctor = run(&place, "doctor app.db").succeeded();
    assert!(doctor.contains("of format version 1: it has no times of commits"), "{doctor}");
    assert!(!run(&place, "doctor").all().contains("of format version"), "nothing newer is wanted");
    run(&place, "policy set format-version 2").succeeded();
    let doctor = run(&place, "doctor").all();
    assert!(doctor.contains("is of format version 1, and new databases are of 2"), "{doctor}");
    run(&place, UPGRADE).succeeded();
    assert_eq!(status(&place)["databases"][0]["format_version"], 2);
    let doctor = run(&place, "doctor app.db").succeeded();
    assert!(doctor.contains("of format version 2 "), "{doctor}");
    assert!(!run(&place, "doctor").all().contains("of format version"));
}
