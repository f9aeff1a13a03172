//! `pellucid run --encrypt-new`: new databases are sealed, and it is confirmed at the end.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use super::host::HOSTS;
use super::workplace::{answer, need, text, Workplace};

fn python() -> PathBuf {
    need("/usr/bin/python3", "python3")
}

#[test]
fn every_host_makes_sealed_databases() {
    for host in HOSTS {
        let place = Workplace::with_database();
        let arguments = host.arguments("new.db");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = place.run(&["--encrypt-new"], &host.program(), &arguments);
        assert_eq!(answer(&output), "4", "{}", host.name);
        assert!(place.is_sealed("new.db"), "{}", host.name);
        assert_eq!(answer(&place.run(&[], &host.program(), &arguments)), "8", "{}", host.name);
    }
}

#[test]
fn the_programs_own_status_and_signal_come_back() {
    let place = Workplace::with_database();
    for (end, status) in [("sys.exit(7)", 7), ("os.kill(os.getpid(), 15)", 128 + 15)] {
        let script = format!("import os, sqlite3, sys\nsqlite3.connect('app.db')\n{end}");
        let output = place.run(&["--encrypt-new"], &python(), &["-c", &script]);
        assert_eq!(output.status.code(), Some(status), "{}", text(&output));
    }
}

#[test]
fn signals_are_passed_on() {
    let place = Workplace::with_database();
    let script = "
import signal, sqlite3, sys
sqlite3.connect('app.db')
signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))
print('ready', flush=True)
while True: signal.pause()";
    let mut command = place.pellucid(&["run", "--encrypt-new", "--"]);
    command.arg(python()).args(["-c", script]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(42));
}

#[test]
fn a_program_that_never_entered_the_shim_fails() {
    let place = Workplace::with_database();
    let output = place.run(&["--encrypt-new"], &need("/usr/bin/true", "coreutils"), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("went through the shim"), "{}", text(&output));
    assert!(text(&output).contains("--eager"), "{}", text(&output));
}

/// As `svnadmin create`: there is nothing that could have missed the shim.
#[test]
fn a_program_that_has_sqlite_and_opens_nothing_ends_as_it_would() {
    let place = Workplace::with_database();
    let unused = place.compile("unused.c", "unused", &["-lsqlite3"]);
    let sh = need("/bin/sh", "dash");
    let (import, failing) = ("import sqlite3", "import sqlite3, sys; sys.exit(126)");
    for (program, arguments, status) in [
        (&unused, &[][..], 0),
        (&unused, &["7"], 7),
        (&unused, &["127"], 127),
        (&python(), &["-c", import], 0),
        (&python(), &["-c", failing], 126),
        (&sh, &["-c", "./unused; /usr/bin/python3 -c 'import sqlite3'"], 0),
    ] {
        let output = place.run(&["--encrypt-new"], program, arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output));
        if status == 0 {
            assert_eq!(text(&output).lines().count(), 1, "{}", text(&output));
        }
    }
}

#[test]
fn a_program_that_failed_keeps_its_status() {
    let place = Workplace::with_database();
    let sh = need("/bin/sh", "dash");
    for (script, status) in
        [("exit 7", 7), ("kill -9 $$", 128 + 9), ("exec ./nowhere", 127), ("exec ./instance", 126)]
    {
        let output = place.run(&["--encrypt-new"], &sh, &["-c", script]);
        assert_eq!(output.status.code(), Some(status), "{script}: {}", text(&output));
    }
}

/// Far away, where nobody looks for new databases: whether statistics tell of them or the program switched those off.
#[test]
fn a_connection_past_the_preload_is_never_taken_for_none() {
    let place = Workplace::with_database();
    std::fs::create_dir(place.path("far")).unwrap();
    for prepare in ["", "lib.sqlite3_config(9, 0)"] {
        let script = format!(
            "
import ctypes, sqlite3
lib, db = ctypes.CDLL('libsqlite3.so.0'), ctypes.c_void_p()
lib.sqlite3_shutdown()
{prepare}
lib.sqlite3_open(b'far/past.db', ctypes.byref(db))
lib.sqlite3_exec(db, b'CREATE TABLE t(a)', None, None, None)
lib.sqlite3_close(db)"
        );
        let both = format!("/usr/bin/python3 -c 'import sqlite3'; exec \"$0\" -c \"{script}\"");
        let python = python();
        let shell = ["-c", &both, python.to_str().unwrap()];
        for (program, arguments) in
            [(&python, &["-c", &script][..]), (&need("/bin/sh", "dash"), &shell)]
        {
            let output = place.run(&["--encrypt-new"], program, arguments);
            assert_eq!(output.status.code(), Some(1), "{prepare}: {}", text(&output));
            assert!(text(&output).contains("went through the shim"), "{}", text(&output));
            assert!(!place.is_sealed("far/past.db"));
        }
    }
}

/// Python's ctypes finds `sqlite3_open` by itself, past the preload; eagerly the shim is there all the same.
#[test]
fn a_program_that_goes_past_the_preload_is_found_out() {
    let place = Workplace::with_database();
    let script = "
import ctypes
lib, db = ctypes.CDLL('libsqlite3.so.0'), ctypes.c_void_p()
lib.sqlite3_open(b'past.db', ctypes.byref(db))
lib.sqlite3_exec(db, b'CREATE TABLE t(a)', None, None, None)";
    let output = place.run(&["--encrypt-new"], &python(), &["-c", script]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("`past.db` is a new database"), "{}", text(&output));
    assert!(!place.is_sealed("past.db"));
    std::fs::remove_file(place.path("past.db")).unwrap();
    answer(&place.run(&["--encrypt-new", "--eager"], &python(), &["-c", script]));
    assert!(place.is_sealed("past.db"));
}

#[test]
fn a_plain_database_made_beside_sealed_ones_is_named() {
    let place = Workplace::with_database();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    let sqlite3 = need("/usr/bin/sqlite3", "sqlite3");
    assert!(place.command(sqlite3).args(["old.db", "VACUUM"]).status().unwrap().success());
    let script = "
import sqlite3, sys
sqlite3.connect('app.db').execute('SELECT * FROM t')
for name in sys.argv[1:] + ['old.db']:
    with sqlite3.connect(f'file:{name}?vfs=unix', uri=True) as c: c.execute('CREATE TABLE t(a)')";
    let names = ["here.db", "elsewhere/there.db"];
    let output = place.run(&["--encrypt-new"], &python(), &[&["-c", script], &names[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    for name in names {
        assert!(
            text(&output).contains(&format!("`{name}` is a new database")),
            "{}",
            text(&output)
        );
    }
    assert!(!text(&output).contains("old.db"), "{}", text(&output));
}
