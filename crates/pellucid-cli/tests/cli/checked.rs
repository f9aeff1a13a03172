//! Goal: what a check found is known afterwards to `status`, `doctor`, the metrics and DATABASEPROPERTYEX, until a later
//! check finds it mended; and no check fails because nothing can be remembered.
//!
//! Method: databases checked whole, damaged and mended again, by `check` and by DBCC CHECKDB; copied, replaced and dropped;
//! a keyring that cannot be written, that is not there, and one whose memory was changed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::{at_a_terminal, edit, said, said_with, Place, Said, PELLUCID};

const DAMAGE: i32 = 3;
const ATTENTION: i32 = 4;

/// A place with a sealed database, whose certificate needs no attention.
fn place() -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["policy", "set", "certificate-backup-age", "off"]).succeeded();
    place
}

fn check_of(place: &Place, database: &str) -> Value {
    let said = place.pellucid(&["--json", "status", database]).succeeded();
    let facts: Value = serde_json::from_str(&said).unwrap();
    facts["databases"][0]["check"].clone()
}

/// The words of the column `checked`, without the date.
fn column(place: &Place, database: &str) -> String {
    let said = place.pellucid(&["status", database]).succeeded();
    let line = said.lines().find(|line| line.starts_with(database)).unwrap().to_owned();
    let (_, rest) = line.split_once("encrypted").unwrap();
    let (checked, _) = rest.split_once("AES_256").unwrap();
    checked.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '-').trim().to_owned()
}

fn attention(place: &Place) -> (i32, i32) {
    (place.pellucid(&["status", "--check"]).code, place.pellucid(&["doctor"]).code)
}

/// Changes a byte in the middle of the file.
fn damage(path: &Path) {
    let at = std::fs::metadata(path).unwrap().len() as usize - 2000;
    edit(path, |bytes| bytes[at] ^= 1);
}

#[test]
fn what_a_check_found_stands_until_a_later_one_finds_it_mended() {
    let place = place();
    assert_eq!((column(&place, "app.db").as_str(), attention(&place)), ("never", (0, 0)));
    place.pellucid(&["check", "--physical-only", "app.db"]).succeeded();
    assert_eq!(column(&place, "app.db"), "pages ok");
    place.pellucid(&["check", "app.db"]).succeeded();
    assert_eq!((column(&place, "app.db").as_str(), attention(&place)), ("ok", (0, 0)));
    let good = check_of(&place, "app.db")["last_good"].clone();
    assert!(good.is_string(), "{good}");

    let path = place.path("app.db");
    damage(&path);
    assert_eq!(place.pellucid(&["check", "app.db"]).code, DAMAGE);
    assert_eq!(
        (column(&place, "app.db").as_str(), attention(&place)),
        ("DAMAGED", (ATTENTION, ATTENTION))
    );
    let known = check_of(&place, "app.db");
    assert_eq!((&known["ok"], &known["last_good"]), (&Value::Bool(false), &good));
    assert_eq!(known["damage"]["pages"].as_array().unwrap().len(), 1, "{known}");
    let told = place.pellucid(&["status"]);
    assert!(
        told.stderr.contains("its check on 20") && told.stderr.contains(", on page "),
        "{told:?}"
    );
    let doctor = place.pellucid(&["doctor"]).stdout;
    assert!(doctor.contains("pellucid salvage"), "{doctor}");
    let metrics = place.pellucid(&["status", "--prometheus"]).succeeded();
    let metric = metrics.lines().find(|line| line.starts_with("pellucid_database_check_findings{"));
    assert!(metric.is_some_and(|line| !line.ends_with(" 0")), "{metrics}");

    // Mended, and nobody has looked yet.
    damage(&path);
    assert_eq!(
        (column(&place, "app.db").as_str(), attention(&place)),
        ("DAMAGED", (ATTENTION, ATTENTION))
    );
    place.pellucid(&["check", "app.db"]).succeeded();
    assert_eq!((column(&place, "app.db").as_str(), attention(&place)), ("ok", (0, 0)));
    assert_eq!(check_of(&place, "app.db")["damage"], Value::Null);
}

#[test]
fn a_check_is_of_one_file_at_one_path() {
    let place = place();
    damage(&place.path("app.db"));
    assert_eq!(place.pellucid(&["check", "app.db"]).code, DAMAGE);
    std::fs::copy(place.path("app.db"), place.path("copy.db")).unwrap();
    assert_eq!(column(&place, "copy.db"), "never");
    damage(&place.path("copy.db"));
    place.pellucid(&["check", "copy.db"]).succeeded();
    assert_eq!(
        (column(&place, "copy.db"), column(&place, "app.db")),
        ("ok".into(), "DAMAGED".into())
    );
    std::os::unix::fs::symlink(place.path("copy.db"), place.path("link.db")).unwrap();
    assert_eq!(column(&place, "link.db"), "ok");

    // Another database at the path was not checked.
    place.sealed("other.db", &[]);
    std::fs::rename(place.path("other.db"), place.path("copy.db")).unwrap();
    assert_eq!(column(&place, "copy.db"), "never");
}

#[test]
fn the_policy_calls_out_a_check_that_is_missing() {
    let place = place();
    place.pellucid(&["policy", "set", "check-age", "7d"]).succeeded();
    let told = place.pellucid(&["status", "--check"]);
    assert_eq!(told.code, ATTENTION);
    assert!(
        told.stderr.contains("app.db`: no check of it is known that found nothing"),
        "{told:?}"
    );
    place.pellucid(&["check", "app.db"]).succeeded();
    assert_eq!(attention(&place), (0, 0));
}

#[test]
fn no_check_fails_because_nothing_can_be_remembered() {
    let remembered = |said: &Said| {
        let facts: Value = serde_json::from_str(&said.stdout).unwrap();
        facts["remembered"].clone()
    };
    // Without a keyring.
    let alone = Place::new();
    alone.secret("pass", b"a long passphrase");
    alone.sealed_anew("app.db", &["--passphrase-file", "pass"]);
    let said = alone.pellucid(&["--json", "check", "app.db", "--passphrase-file", "pass"]);
    assert_eq!(
        (said.code, remembered(&said)),
        (0, Value::Bool(alone.path("keys/keyring").exists()))
    );

    // A file lies where the directory would be, as if it could not be made: root is not kept from writing by a mode.
    let place = place();
    let checks = place.path("keys/keyring/checks");
    std::fs::write(&checks, "").unwrap();
    std::fs::set_permissions(&checks, PermissionsExt::from_mode(0o600)).unwrap();
    let said = place.pellucid(&["--json", "check", "app.db"]);
    assert_eq!((said.code, remembered(&said)), (0, Value::Bool(false)));
    let said = place.pellucid(&["check", "app.db"]);
    assert!(said.code == 0 && said.stdout.contains("`status` will not know of it"), "{said:?}");
    std::fs::remove_file(&checks).unwrap();

    // A memory that was changed is told, and the next check makes another one.
    place.pellucid(&["check", "app.db"]).succeeded();
    let file = std::fs::read_dir(&checks).unwrap().next().unwrap().unwrap().path();
    edit(&file, |bytes| *bytes.last_mut().unwrap() ^= 1);
    assert_eq!(
        (column(&place, "app.db").as_str(), attention(&place)),
        ("?", (ATTENTION, ATTENTION))
    );
    place.pellucid(&["check", "app.db"]).succeeded();
    assert_eq!((column(&place, "app.db").as_str(), attention(&place)), ("ok", (0, 0)));
}

#[test]
fn last_good_checkdb_time_is_that_of_check_and_goes_with_the_database() {
    let place = Place::new();
    let sql = |text: &str| {
        let said =
            place.pellucid(&["sql", "-W", "-h", "-1", "-Q", &format!("SET NOCOUNT ON; {text}")]);
        said.stdout.trim().to_owned()
    };
    let asked = "SELECT CONVERT(varchar(10), DATABASEPROPERTYEX('q', 'LastGoodCheckDbTime'), 120)";
    sql("CREATE DATABASE q");
    assert_eq!(sql(asked), "1900-01-01");
    sql("DBCC CHECKDB (q) WITH NO_INFOMSGS");
    let today = sql("SELECT CONVERT(varchar(10), SYSUTCDATETIME(), 120)");
    assert!(sql(asked) >= today && today.starts_with("20"), "{today}");
    // Inside a transaction of a session that has the database open.
    let within = format!(
        "USE q; CREATE TABLE t(a int); BEGIN TRAN; INSERT INTO t VALUES(1); {asked}; COMMIT"
    );
    assert!(sql(&within).ends_with(&sql(asked)), "{}", sql(&within));
    sql("DROP DATABASE q");
    sql("CREATE DATABASE q");
    assert_eq!(sql(asked), "1900-01-01", "another database of the name");

    // Sealed, and checked from outside.
    let file = "keys/data/q.db";
    place.pellucid(&["encrypt", file]).succeeded();
    assert_eq!(sql(asked), "1900-01-01");
    place.pellucid(&["check", file]).succeeded();
    assert!(sql(asked) >= today);
    damage(&place.path(file));
    assert_eq!(place.pellucid(&["sql", "-b", "-Q", "DBCC CHECKDB (q)"]).code, 1);
    assert_eq!(column(&place, file), "DAMAGED");
}

#[test]
fn colour_is_for_what_needs_an_eye_and_where_it_is_wanted() {
    const ALARM: &str = "\x1b[1;31m!!\x1b[0m";
    const WARNING: &str = "pellucid: \x1b[33mwarning:\x1b[0m";
    let place = place();
    damage(&place.path("app.db"));
    assert_eq!(place.pellucid(&["check", "app.db"]).code, DAMAGE);
    let said = |arguments: &[&str]| place.pellucid(arguments).all();
    assert!(said(&["--color", "always", "doctor"]).contains(ALARM));
    assert!(said(&["--color=always", "status"]).contains(WARNING));
    assert!(said(&["--color=always", "status"]).contains("\x1b[1;31mDAMAGED\x1b[0m"));
    for plain in [
        &["doctor"][..],
        &["status"],
        &["--color=never", "doctor"],
        &["--color=always", "--json", "doctor"],
    ] {
        assert!(!said(plain).contains('\x1b'), "{plain:?}");
    }
    let at = |words: &str| at_a_terminal(&place, words, "").stdout;
    assert!(at("doctor").contains(ALARM) && at("status").contains(WARNING));
    assert!(!at("--color never doctor").contains('\x1b'));
    let mut command = place.command("script");
    command.args(["-qec", &format!("NO_COLOR=1 {PELLUCID} doctor"), "/dev/null"]);
    let quiet = said_with(&mut command, "").stdout;
    assert!(quiet.contains("!!") && !quiet.contains('\x1b'), "{quiet}");
}

/// What a program that is killed between two commands, or somebody with the storage, may do while a check runs for hours.
#[test]
fn a_check_is_of_the_database_that_it_read() {
    let place = place();
    place.sealed("other.db", &[]);
    let (app, other) = (place.path("app.db"), place.path("other.db"));
    // The rename comes while the pages are authenticated, behind the opening.
    let mut traced = place.command("strace");
    traced.args(["-f", "-qq", "-o", "trace", "-e", "trace=pread64", "-e"]);
    traced.args(["inject=pread64:delay_enter=20000", PELLUCID, "check", "app.db"]);
    let mut check = traced.stdout(std::process::Stdio::null()).spawn().unwrap();
    let trace = place.path("trace");
    let is_reading = || {
        let text = std::fs::read_to_string(&trace).unwrap_or_default();
        // Its pages: behind the header's region, and 4096 bytes or more.
        text.lines().filter(|line| line.contains(", 4096, 16384)")).count() > 0
    };
    while !is_reading() && check.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    std::fs::rename(&other, &app).unwrap();
    check.wait().unwrap();
    assert_eq!(column(&place, "app.db"), "never", "nobody has looked at this one");
}

#[test]
fn something_else_with_the_name_of_a_database_is_told() {
    use std::os::unix::net::UnixListener;
    let place = place();
    let names = ["a.db", "b.db", "c.db", "d.db", "gone.db"];
    for name in names {
        place.sealed(name, &[]);
    }
    assert_eq!(attention(&place), (0, 0));
    for name in names {
        std::fs::remove_file(place.path(name)).unwrap();
    }
    // What is gone was moved, as a rule.
    assert_eq!(attention(&place), (0, 0));
    std::fs::create_dir(place.path("a.db")).unwrap();
    said(place.command("mkfifo").arg("b.db")).succeeded();
    std::os::unix::fs::symlink("/nonexistent", place.path("c.db")).unwrap();
    let socket = UnixListener::bind(place.path("d.db")).unwrap();
    assert_eq!(attention(&place), (ATTENTION, ATTENTION));
    for command in ["status", "doctor"] {
        let told = place.pellucid(&[command]).all();
        for what in [
            "a.db` is a directory",
            "b.db` is a FIFO",
            "c.db` is a symbolic link",
            "d.db` is a socket",
        ] {
            assert!(told.contains(what), "{command}: {told}");
        }
        assert!(!told.contains("gone.db` is"), "{told}");
    }
    drop(socket);
}
