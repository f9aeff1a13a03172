//! Goal: small things that stopped people on their first days stay mended.
//!
//! Method: each is done as somebody would do it, by the program, and its answer is looked at.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::support::{said, Place};

#[test]
fn a_misspelt_value_is_usage_and_named_with_the_right_ones() {
    let place = Place::new();
    place.plain("app.db");
    for (arguments, says) in [
        (&["encrypt", "app.db", "--algorithm", "aes256"][..], "AES_256"),
        (&["rekey", "app.db", "--algorithm", "AES-256"], "AES_256"),
        (&["restore", "a.bak", "--to", "b.db", "--algorithm", "x"], "TRIPLE_DES_3KEY"),
        (&["backup", "app.db", "--to", "a.bak", "--algorithm", "x"], "AES_192"),
        (&["backup", "app.db", "--to", "a.bak", "--compression", "gzip"], "lz4"),
        (&["backup", "app.db", "--to", "a.bak", "--compression", "zstd:23"], "from 1 to 22"),
        (&["policy", "set", "rekey", "1d"], "rekey-after"),
        (&["policy", "clear", "rekey"], "rekey-after"),
    ] {
        let told = place.pellucid(arguments);
        assert_eq!(told.code, 2, "{arguments:?}: {told:?}");
        assert!(told.stderr.contains(says) && !told.stderr.contains("newer"), "{told:?}");
    }
    place.pellucid(&["encrypt", "app.db", "--algorithm", "aes_128"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "a.bak", "--compression", "zstd:19"]).succeeded();
}

#[test]
fn shells_complete_values() {
    let place = Place::new();
    place.pellucid(&["manual", "share"]).succeeded();
    let bash = std::fs::read_to_string(place.path("share/bash-completion/completions/pellucid"));
    let bash = bash.unwrap();
    for values in ["AES_128 AES_192 AES_256 TRIPLE_DES_3KEY", "zstd lz4 none", "rekey-after "] {
        assert!(bash.contains(values), "{values}");
    }
}

#[test]
fn what_has_nothing_to_show_says_so() {
    let place = Place::new();
    let told = place.pellucid(&["status"]).succeeded();
    assert!(told.contains("No keyring yet") && told.contains("`pellucid encrypt DB`"), "{told}");
    let mut nowhere = place.command(crate::support::PELLUCID);
    let told =
        said(nowhere.env_remove("PELLUCID_HOME").env_remove("HOME").arg("status")).succeeded();
    assert!(told.contains("No keyring"), "{told}");
    place.sealed("app.db", &[]);
    assert!(place.pellucid(&["scan", "status"]).succeeded().contains("app.db"));
    place.pellucid(&["decrypt", "app.db"]).succeeded();
    std::fs::remove_file(place.path("app.db")).unwrap();
    assert!(place.pellucid(&["scan", "status"]).succeeded().contains("knows no encrypted"));
    place.pellucid(&["rotate", "--help"]).succeeded();
}

#[test]
fn two_databases_of_one_name_and_names_that_are_no_text() {
    let place = Place::new();
    for service in ["one", "two"] {
        std::fs::create_dir(place.path(service)).unwrap();
        place.sealed(&format!("{service}/data.db"), &[]);
        let database = format!("{service}/data.db");
        place.pellucid(&["backup", &database, "--to", "{path}-{utc}.bak"]).succeeded();
    }
    let names = std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.filter(|name| name.as_bytes().ends_with(b"Z.bak")).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let (one, two) = (b"one-data-".as_slice(), b"two-data-".as_slice());
    let has = |part: &[u8]| {
        names.iter().any(|name| name.as_bytes().windows(part.len()).any(|w| w == part))
    };
    assert!(has(one) && has(two), "{names:?}");
    std::fs::write(place.path("{utc}"), "").unwrap();
    let database = place.path("").join(OsStr::from_bytes(b"caf\xe9.db"));
    std::fs::copy(place.path("one/data.db"), &database).unwrap();
    let medium = OsStr::from_bytes(b"caf\xe9.db.bak");
    let backup = |to: &OsStr| {
        let mut command = place.command(crate::support::PELLUCID);
        said(command.arg("backup").arg(&database).arg("--to").arg(to))
    };
    backup(medium).succeeded();
    backup(OsStr::from_bytes(b"\xff{db}.bak")).succeeded();
    assert!(place.path("").join(medium).exists());
    assert!(place.path("").join(OsStr::from_bytes(b"\xffcaf\xe9.bak")).exists());
}

/// A working file as a backup leaves it that was stopped, an hour old.
fn stopped(place: &Place, from: &str, to: &str, bytes: usize) -> PathBuf {
    let medium = std::fs::read(place.path(from)).unwrap();
    let path = place.path(&format!("{to}.pellucid-new"));
    std::fs::write(&path, &medium[..bytes.min(medium.len())]).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    path
}

#[test]
fn what_a_stopped_backup_left_is_named_and_goes_with_the_next_one() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["backup", "app.db", "--to", "one.bak"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "two.bak"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "three.bak"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "x1.bak", "x2.bak"]).succeeded();
    let dead = [
        stopped(&place, "one.bak", "empty.bak", 0),
        stopped(&place, "two.bak", "header.bak", 4096),
        stopped(&place, "three.bak", "half.bak", 5000),
    ];
    // The machine stopped before this one was renamed: it is the backup.
    let whole = stopped(&place, "one.bak", "whole.bak", usize::MAX);
    // Of these two one has the manifest, which makes the set whole.
    let second = stopped(&place, "x2.bak", "y2.bak", 5000);
    std::fs::rename(place.path("x1.bak"), place.path("x1.bak.pellucid-new")).unwrap();
    let told = place.pellucid(&["doctor"]);
    assert_eq!(told.code, 4, "{told:?}");
    for path in dead.iter().chain([&whole, &second]) {
        assert!(told.stdout.contains(path.file_name().unwrap().to_str().unwrap()), "{told:?}");
    }
    let told = place.pellucid(&["backup", "app.db", "--to", "new.bak"]).succeeded();
    assert!(told.contains("half.bak.pellucid-new"), "{told}");
    assert!(dead.iter().all(|path| !path.exists()), "{told}");
    assert!(whole.exists() && second.exists(), "{told}");
    place.pellucid(&["verify", "whole.bak"]).succeeded();
    // Both files of a set that has no manifest.
    std::fs::remove_file(&second).unwrap();
    std::fs::remove_file(place.path("x1.bak.pellucid-new")).unwrap();
    place.pellucid(&["backup", "app.db", "--to", "z1.bak", "z2.bak"]).succeeded();
    let both =
        [stopped(&place, "z1.bak", "w1.bak", 5000), stopped(&place, "z2.bak", "w2.bak", 4500)];
    place.pellucid(&["backup", "app.db", "--to", "newer.bak"]).succeeded();
    assert!(both.iter().all(|path| !path.exists()));
}

/// Somebody has said that it is none. Between its set's end and its name it may have become one all the same.
#[test]
fn a_backup_that_is_stopped_leaves_no_working_file() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let fill = "CREATE TABLE big(a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO big SELECT randomblob(8000) FROM n";
    place.pellucid(&["run", "--", "sqlite3", "app.db", fill]).succeeded();
    let working = place.path("x.bak.pellucid-new");
    let mut stopped = 0;
    for _ in 0..5 {
        let mut command = place.command(crate::support::PELLUCID);
        command.args(["backup", "app.db", "--to", "x.bak"]).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        while !working.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = nix::sys::signal::kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        let ended = child.wait_with_output().unwrap();
        if working.exists() {
            std::fs::rename(&working, place.path("whole.bak")).unwrap();
            place.pellucid(&["verify", "whole.bak", "--open"]).succeeded();
        } else if !place.path("x.bak").exists() {
            assert_eq!(ended.status.signal(), Some(Signal::SIGTERM as i32), "{ended:?}");
            stopped += 1;
        }
        let _ = std::fs::remove_file(place.path("x.bak"));
    }
    println!("{stopped} of 5 stopped in time");
}

#[test]
fn a_failed_mirror_has_the_name_that_was_asked_for() {
    let place = Place::new();
    place.plain("app.db");
    let mut command = place.command("sh");
    command.env("PROGRAM", crate::support::PELLUCID);
    // The first file goes through; the mirror's directory is a file system that is full.
    let full = "[ -w /dev/full ] && ulimit -f unlimited; mkdir small; mount -t tmpfs -o size=16k tmpfs small 2>/dev/null || exit 77
        \"$PROGRAM\" --json backup app.db --to a.bak --mirror small/a.bak --compression none; code=$?
        umount small; exit $code";
    let told = said(command.args(["-c", full]));
    if told.code == 77 {
        eprintln!("SKIP: a small file system cannot be mounted here");
        return;
    }
    let facts: serde_json::Value = serde_json::from_str(told.stdout.trim()).unwrap();
    assert_eq!(facts["failed_mirrors"], serde_json::json!(["small/a.bak"]), "{told:?}");
}

#[test]
fn a_database_with_any_number_of_reserved_bytes_is_encrypted_and_decrypted() {
    let place = Place::new();
    let mut wrong = Vec::new();
    for page_size in [512, 4096, 65536] {
        for reserve in [0, 8, 12, 31, 32, 33, 48, 80, 255] {
            // SQLite wants 480 bytes of a page for itself.
            if page_size - reserve < 480 {
                continue;
            }
            let name = format!("{page_size}-{reserve}.db");
            let reserve_bytes = format!(".filectrl reserve_bytes {reserve}");
            let page = format!("PRAGMA page_size={page_size}");
            let rows = "CREATE TABLE t(a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                INSERT INTO t SELECT i || hex(zeroblob(200)) FROM n";
            let mut shell = place.command("/usr/bin/sqlite3");
            said(shell.args(["-batch", &name, &page, &reserve_bytes, rows])).succeeded();
            assert_eq!(std::fs::read(place.path(&name)).unwrap()[20], reserve as u8);
            let dump = || place.sqlite3(&name, "SELECT count(*), sum(length(a)) FROM t").stdout;
            let before = dump();
            let told = place.pellucid(&["encrypt", &name]);
            let checked = place.pellucid(&["check", &name]);
            let back = place.pellucid(&["decrypt", &name]);
            if told.code != 0 || checked.code != 0 || back.code != 0 || dump() != before {
                wrong.push(format!("{name}: {told:?} {checked:?} {back:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A process that holds the write lock of `app.db` until its standard input ends. This one would lose a lock of its own where
/// it reads the file.
fn holder(place: &Place) -> Child {
    let hold = "import sqlite3, sys
c = sqlite3.connect('app.db', isolation_level=None)
c.execute('BEGIN IMMEDIATE')
print('held', flush=True)
sys.stdin.read()";
    let mut holder = place.command("python3");
    holder.args(["-c", hold]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = holder.spawn().unwrap();
    let mut held = [0; 5];
    holder.stdout.as_mut().unwrap().read_exact(&mut held).unwrap();
    holder
}

/// Waits until a set of a process's signals, by its name in proc_pid_status(5), has this one.
fn wait_until_in(pid: Pid, set: &str, signal: Signal) {
    let is_in = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        // A program that is told to ignore it, as in the background of a script, waits to its end.
        assert!(!status.contains("\nState:\tZ"), "{signal} is not in {set}");
        let mask = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(":\t"));
        u64::from_str_radix(mask.unwrap(), 16).unwrap() & (1 << (signal as u32 - 1)) != 0
    };
    while !is_in() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_says_in_what_state_the_database_is() {
    let place = Place::new();
    place.plain("app.db");
    let mut held = holder(&place);
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut command = place.command(crate::support::PELLUCID);
        command.args(["encrypt", "app.db", "--timeout", "60"]).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32);
        // It has said that it waits for signals as soon as it catches them.
        wait_until_in(pid, "SigCgt", signal);
        nix::sys::signal::kill(pid, signal).unwrap();
        let ended = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.signal(), Some(signal as i32), "{told}");
        assert!(told.contains("interrupted; `app.db` is as it was"), "{told}");
    }
    // Who is to outlive a hang-up does.
    let mut command = place.command("nohup");
    command.args([crate::support::PELLUCID, "encrypt", "app.db", "--timeout", "2"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_raw(child.id() as i32);
    wait_until_in(pid, "SigIgn", Signal::SIGHUP);
    nix::sys::signal::kill(pid, Signal::SIGHUP).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    drop(held.stdin.take());
    held.wait().unwrap();
    assert_eq!(place.sqlite3("app.db", "SELECT count(*) FROM t").succeeded().trim(), "200");
}

#[test]
fn a_refused_encryption_leaves_no_keys_behind() {
    let place = Place::new();
    place.plain("app.db");
    place.plain("schema.db");
    let index = "CREATE TABLE x(a COLLATE nocase); CREATE VIEW v AS SELECT nobody(1)";
    place.sqlite3("schema.db", index).succeeded();
    let mut holder = holder(&place);
    let before = place.snapshot();
    for arguments in [
        &["encrypt", "app.db", "--timeout", "0"][..],
        &["encrypt", "missing.db"],
        &["encrypt", "app.db", "--certificate", "nobody"],
        &["encrypt", "app.db", "--key-file", "nowhere"],
        &["encrypt", "app.db", "--load", "nowhere.so"],
    ] {
        let told = place.pellucid(arguments);
        assert_ne!(told.code, 0, "{arguments:?}: {told:?}");
        assert_eq!(place.snapshot(), before, "{arguments:?}: {told:?}");
    }
    let library = crate::support::extension(&place);
    let load = format!(".load {library}");
    let mut shell = place.command("/usr/bin/sqlite3");
    let call = ["-batch", "-cmd", &load, "file:app.db?vfs=unix", "SELECT pellucid_encrypt()"];
    let told = said(shell.args(call));
    assert_ne!(told.code, 0, "{told:?}");
    assert_eq!(place.snapshot(), before, "{told:?}");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    let told = place.pellucid(&["encrypt", "app.db"]).succeeded();
    assert!(told.contains("made  certificate `pellucid`"), "{told}");
}

#[test]
fn statements_seal_no_database_under_the_key_of_the_history() {
    let place = Place::new();
    let sql = |text: &str| place.pellucid(&["sql", "-b", "-Q", text]);
    sql("CREATE DATABASE q").succeeded();
    let file = place.path("keys/data/q.db");
    std::fs::write(&file, "").unwrap();
    sql("USE q; CREATE TABLE t(a int); INSERT INTO t VALUES(1)").succeeded();
    assert!(std::fs::read(&file).unwrap().starts_with(b"SQLite format 3\0"));
    // Where an encrypted one was expected it is not replaced by a plain one.
    place.pellucid(&["encrypt", file.to_str().unwrap()]).succeeded();
    std::fs::write(&file, "").unwrap();
    let told = sql("USE q; CREATE TABLE t(a int)");
    assert_ne!(told.code, 0, "{told:?}");
    assert!(std::fs::read(&file).unwrap().is_empty(), "{told:?}");
}
