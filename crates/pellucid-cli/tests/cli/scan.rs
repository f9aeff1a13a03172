//! Goal: a scan in the background is found again from anywhere; one that has stopped says why and what to do, and two
//! never scan one database.
//!
//! Method: the program from outside. Scans are slowed down so that they are still running when they are looked at, then
//! killed, made to fail, and asked for twice.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use pellucid::header::EncryptionState;
use pellucid::scan::ScanState;
use serde_json::Value;

use crate::rekey::{large, query, slow, wait_for, SLOW_ROWS};
use crate::support::{edit, header, Place, PELLUCID};

fn json(place: &Place, arguments: &[&str]) -> Value {
    let said = place.pellucid(&[&["--json"], arguments].concat()).succeeded();
    serde_json::from_str(&said).unwrap()
}

/// What `scan status` says of the process.
fn process(place: &Place) -> Value {
    json(place, &["scan", "status", "app.db"])["scans"][0]["process"].clone()
}

fn pid(place: &Place) -> Option<u64> {
    process(place)["pid"].as_u64()
}

fn kill(pid: u64) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// The files of the registry. Not those that begin with a dot: a process that was killed leaves what it was about to rename.
fn entry_paths(place: &Place) -> Vec<PathBuf> {
    let Ok(found) = std::fs::read_dir(place.path("keys/run")) else { return Vec::new() };
    let paths = found.map(|entry| entry.unwrap().path());
    paths.filter(|path| !path.file_name().unwrap().as_bytes().starts_with(b".")).collect()
}

/// What lies in the registry.
fn entries(place: &Place) -> Vec<String> {
    // One that is gone by now was that of a scan that has ended.
    entry_paths(place).iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

#[test]
fn a_scan_in_the_background_is_found_again_and_its_kill_is_seen() {
    let place = Place::new();
    slow(&place);
    place.pellucid(&["rekey", "app.db", "--background", "--throttle", "1"]).succeeded();
    // At once: the command returns when the scan has begun.
    let first = pid(&place).expect("a process");
    wait_for("progress", || process(&place)["pages_done"].as_u64() > Some(0));
    let seen = process(&place);
    assert_eq!((&seen["running"], &seen["doing"]), (&true.into(), &"rewriting".into()));
    assert!(seen["pages"].as_u64() > Some(1000) && seen["pages_per_second"].as_f64() > Some(1.0));
    assert!(seen["seconds_left"].as_f64() > Some(0.0), "{seen}");
    // From anywhere: another directory, and the path through a link.
    std::os::unix::fs::symlink(place.path("app.db"), place.path("link.db")).unwrap();
    let mut command = place.command(PELLUCID);
    command.current_dir("/").args(["scan", "status"]).arg(place.path("link.db"));
    let told = crate::support::said(&mut command).succeeded();
    assert!(told.contains(&format!("running as process {first}: rewriting")), "{told}");
    let told = place.pellucid(&["status", "app.db"]);
    assert!(told.stdout.contains(&format!("in process {first}")), "{told:?}");
    assert!(!told.stderr.contains("scan"), "nothing to warn about: {told:?}");

    // Nobody else scans it meanwhile.
    let refused = place.pellucid(&["scan", "resume", "app.db"]);
    let said = format!("a scan of it is running already, in process {first}");
    assert!(refused.code == 1 && refused.stderr.contains(&said), "{refused:?}");

    kill(first);
    wait_for("the end of it", || process(&place)["running"] == false);
    assert_eq!(process(&place)["gone"], first);
    let told = place.pellucid(&["scan", "status", "app.db"]).succeeded();
    let said = format!("not running, process {first} is gone: `pellucid scan resume app.db`");
    assert!(told.contains(&said), "{told}");
    let told = place.pellucid(&["status", "--check", "app.db"]);
    assert_eq!(told.code, 4);
    let said = "its scan is not running; `pellucid scan resume app.db` goes on with it";
    assert!(told.stderr.contains(said), "{told:?}");
    // A number that another process has now is not taken for it.
    let mut entry: Value = serde_json::from_str(&entries(&place)[0]).unwrap();
    entry["pid"] = std::process::id().into();
    std::fs::write(&entry_paths(&place)[0], entry.to_string()).unwrap();
    assert_eq!(process(&place)["running"], false);

    place.pellucid(&["scan", "resume", "app.db"]).succeeded();
    assert_eq!(header(&place.path("app.db")).scan.state, ScanState::Complete);
    assert_eq!(entries(&place), [""; 0], "nothing is left of it");
    assert_eq!(process(&place), Value::Null);
}

#[test]
fn a_scan_that_fails_leaves_its_error_and_what_to_do() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    let damage = |path: &std::path::Path| edit(path, |bytes| bytes[16384 + 3 * 4096 + 100] ^= 1);
    damage(&path);
    let refused = place.pellucid(&["rekey", "app.db"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    let said = "Database encryption scan for database 'app.db' was aborted. Reissue ALTER DB to resume the scan. (33114)";
    assert!(refused.stderr.contains(said), "{refused:?}");
    assert_eq!(header(&path).scan.state, ScanState::Aborted);
    let told = place.pellucid(&["status", "--check", "app.db"]);
    assert_eq!(told.code, 4);
    for said in
        ["its scan was aborted: ", "page 4", "restore a backup", "`pellucid scan resume app.db`"]
    {
        assert!(told.stderr.contains(said), "{said}: {told:?}");
    }
    let seen = process(&place);
    assert_eq!(seen["running"], false);
    assert!(seen["error"].as_str().unwrap().contains("page 4"), "{seen}");
    // In the background the caller hears of it, or finds it afterwards.
    let again = place.pellucid(&["scan", "resume", "app.db", "--background"]);
    wait_for("the error", || process(&place)["error"].is_string());
    assert!(again.code == 0 || again.stderr.contains("page 4"), "{again:?}");
    let told = place.pellucid(&["scan", "status", "app.db"]).succeeded();
    assert!(told.contains("stopped: ") && told.contains("page 4"), "{told}");
    damage(&path);
    place.pellucid(&["scan", "resume", "app.db"]).succeeded();
    assert_eq!(entries(&place), [""; 0]);
    place.pellucid(&["check", "app.db"]).succeeded();
}

/// Off and on again in the background, and turned back while it runs: whoever comes second waits, and goes on where
/// the first one was killed.
#[test]
fn who_comes_second_waits_and_takes_over() {
    let place = Place::new();
    slow(&place);
    let path = place.path("app.db");
    let refused = place.pellucid(&["decrypt", "app.db", "--background"]);
    assert_eq!(refused.code, 2, "without --keep-container: {refused:?}");
    // As slow as `decrypt` leaves it: suspended, and resumed slowly.
    place.pellucid(&["decrypt", "app.db", "--keep-container", "--background"]).succeeded();
    wait_for("off", || header(&path).state == EncryptionState::Unencrypted);
    place.pellucid(&["encrypt", "app.db", "--background"]).succeeded();
    wait_for("on", || header(&path).state == EncryptionState::Encrypted);
    wait_for("no entry", || entries(&place).is_empty());

    place.pellucid(&["rekey", "app.db", "--background", "--throttle", "1"]).succeeded();
    let first = pid(&place).expect("a process");
    place.pellucid(&["scan", "suspend", "app.db"]).succeeded();
    wait_for("the end of it", || process(&place)["running"] == false);
    assert_ne!(pid(&place), Some(first));
    place.pellucid(&["scan", "resume", "app.db", "--background", "--throttle", "1"]).succeeded();
    let second = pid(&place).expect("another one");
    assert_ne!(first, second);
    // `scan run` is what --background starts; it waits for its turn.
    let mut third = waiting(&place);
    std::thread::sleep(Duration::from_millis(400));
    assert!(third.try_wait().unwrap().is_none(), "it does not wait");
    assert_eq!(pid(&place), Some(second));
    kill(second);
    // On a busy machine it may be done before anybody looks; only it can have done it.
    wait_for("another one", || {
        pid(&place) == Some(third.id().into()) || third.try_wait().unwrap().is_some()
    });
    assert!(third.wait().unwrap().success());
    assert_eq!(header(&path).scan.state, ScanState::Complete);
    let rows = (SLOW_ROWS + 200).to_string();
    assert_eq!(query(&place, "app.db", "SELECT count(*) FROM t").trim(), rows);
    assert_eq!(entries(&place), [""; 0]);
}

fn waiting(place: &Place) -> Child {
    let mut command = place.command(PELLUCID);
    command
        .args(["--quiet", "scan", "run", "--throttle", "10", "app.db"])
        .stderr(Stdio::null())
        .process_group(0);
    command.spawn().unwrap()
}

/// A reader of an old snapshot reads right through a whole rekey, delays its end, and is named; one that only has it open
/// is not.
#[test]
fn who_holds_up_the_end_is_named() {
    let place = Place::new();
    large(&place);
    let reader = "import sqlite3, sys
db = sqlite3.connect('app.db', isolation_level=None)
db.execute(sys.argv[1]).fetchall()
query = 'SELECT count(*), sum(a * length(b)), group_concat(substr(b, 1, 1)) FROM t'
before = db.execute(query).fetchall()
print('ready', flush=True)
sys.stdin.read()
assert sys.argv[1] != 'BEGIN' or db.execute(query).fetchall() == before
assert db.execute('PRAGMA integrity_check').fetchall() == [('ok',)]";
    let start = |first: &str| {
        let mut command = place.command(PELLUCID);
        command.args(["run", "--", "python3", "-c", reader, first]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let mut ready = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        child
    };
    let mut idle = start("SELECT 1");
    let mut old = start("BEGIN");
    query(&place, "app.db", "UPDATE t SET b = b || 'x' WHERE a = 1");
    place.pellucid(&["rekey", "app.db", "--background", "--timeout", "600"]).succeeded();
    wait_for("the wait", || process(&place)["held_by"].as_str().is_some_and(|by| !by.is_empty()));
    let seen = process(&place);
    assert_eq!(seen["doing"], "waiting for readers");
    let by = seen["held_by"].as_str().unwrap();
    assert_eq!(by.matches("python3").count(), 1, "{by}");
    let told = place.pellucid(&["scan", "status", "app.db"]).succeeded();
    assert!(told.contains("held up by python3"), "{told}");
    drop(old.stdin.take());
    assert!(old.wait().unwrap().success(), "it has read something else");
    wait_for("the end", || header(&place.path("app.db")).scan.state == ScanState::Complete);
    drop(idle.stdin.take());
    assert!(idle.wait().unwrap().success());
}
