//! Goal: a backup to an object store is whole or not there, restores from there, and no secret of the store is in an
//! argument, a message or the history; whatever the store or the network does, an error names the object, nothing passes
//! for a set, and what was there is.
//!
//! Method: servers of S3's interface on this machine (versitygw and moto; `.ci/deps` installs them) behind a proxy that
//! answers 500, answers nothing, loses parts or ignores conditions (support/faulty.py), and a store of files by URL.
//!
//! A database of 2 GiB: PELLUCID_OBJECT_MIB=2048 cargo test --workspace --test cli objects::a_large_backup -- --nocapture.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::support::store::{servers, Server, SECRET};
use crate::support::{said, Place, PELLUCID};

pub fn database(place: &Place) -> String {
    let sql = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
        INSERT INTO t SELECT i, 'marked-plaintext ' || hex(randomblob(150)) FROM n;";
    place.sqlite3("app.db", sql).succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    rows(place, "app.db")
}

pub fn rows(place: &Place, name: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", name, "SELECT count(*), max(b) FROM t"]).succeeded()
}

#[test]
fn a_store_of_s3s_kind_keeps_backups_that_restore() {
    for server in servers() {
        keeps_backups_that_restore(&server);
    }
}

fn keeps_backups_that_restore(server: &Server) {
    let place = Place::new();
    let before = database(&place);
    // More than one part: it does not compress.
    let backup = ["backup", "app.db", "--compression", "none", "--to"];
    let to = ["s3://backups/nightly/1.bak", "s3://backups/nightly/2.bak"];
    server.pellucid(&place, &[&backup[..], &to].concat()).succeeded();
    let again = server.pellucid(&place, &[&backup[..], &to].concat());
    assert!(again.code == 1 && again.stderr.contains("it is there already"), "{again:?}");
    for more in ["--append", "--overwrite", "--format"] {
        let refused = server.pellucid(&place, &[&backup[..], &to, &[more]].concat());
        assert!(refused.code == 1 && refused.stderr.contains("another name"), "{refused:?}");
    }
    server.pellucid(&place, &[&["verify", "--open"], &to[..]].concat()).succeeded();
    server.pellucid(&place, &[&["restore"], &to[..], &["--to", "back.db"]].concat()).succeeded();
    assert_eq!(rows(&place, "back.db"), before);
    let update = "UPDATE t SET b = 'z' WHERE a = 7";
    place.pellucid(&["run", "--", "sqlite3", "app.db", update]).succeeded();
    let differential = ["s3://backups/nightly/d.bak", "--differential", "--base", to[0], to[1]];
    server.pellucid(&place, &[&backup[..], &differential].concat()).succeeded();
    let restore = ["restore", "s3://backups/nightly/d.bak", "--base", to[0], to[1], "--to", "d.db"];
    server.pellucid(&place, &restore).succeeded();
    assert_eq!(rows(&place, "d.db"), rows(&place, "app.db"));
    let known = place.pellucid(&["--json", "history"]).succeeded();
    assert!(known.contains("s3://backups/nightly/1.bak") && !known.contains(SECRET), "{known}");
    let missing = server.pellucid(&place, &["header", "s3://backups/nothing.bak"]);
    assert!(missing.code == 1, "{missing:?}");
    let nowhere = server.pellucid(&place, &[&backup[..], &["s3://no-such-bucket/x.bak"]].concat());
    assert!(nowhere.code == 1, "{nowhere:?}");
    let mut command = place.command(PELLUCID);
    command.env("AWS_ENDPOINT", "http://127.0.0.1:no port").args([&backup[..], &[to[0]]].concat());
    let refused = said(&mut command);
    assert!(refused.code == 1 && refused.stderr.contains("AWS_ENDPOINT"), "{refused:?}");
    let secret = format!("s3://key:{SECRET}@backups/x.bak");
    let refused = place.pellucid(&[&backup[..], &[&secret]].concat());
    assert!(refused.code == 1 && refused.stderr.contains("from the environment"), "{refused:?}");
}

/// More than one part of each of four stripes, whichever length the parts have.
#[test]
fn a_large_backup_goes_through_a_store() {
    let mib: u32 = std::env::var("PELLUCID_OBJECT_MIB").map_or(48, |text| text.parse().unwrap());
    let Some(server) = servers().pop() else { return };
    let place = Place::new();
    let sql = format!(
        "PRAGMA journal_mode = wal; CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {mib} * 16)
         INSERT INTO t SELECT i, randomblob(65000) FROM n;"
    );
    place.sqlite3("app.db", &sql).succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    let bytes = std::fs::metadata(place.path("app.db")).unwrap().len();
    assert!(bytes > u64::from(mib) * 1_000_000);
    let stripes = [1, 2, 3, 4].map(|stripe| format!("s3://backups/large/{stripe}.bak"));
    let stripes = stripes.each_ref().map(String::as_str);
    let run = |words: &[&str], more: &[&str]| {
        let begun = std::time::Instant::now();
        let mut command = server.command(&place);
        command.env_remove("AWS_TIMEOUT").arg("--quiet").args(words).args(stripes).args(more);
        said(&mut command).succeeded();
        println!("{}: {} of {bytes} bytes in {:.1?}", server.name, words[0], begun.elapsed());
    };
    run(&["backup", "app.db", "--compression", "none", "--to"], &[]);
    run(&["verify", "--open"], &[]);
    run(&["restore"], &["--to", "back.db"]);
    // Both sealed under keys of their own: equal are their rows.
    let differ = "ATTACH 'back.db' AS back;
        SELECT count(*), (SELECT count(*) FROM back.t), (SELECT count(*) FROM t JOIN back.t USING (a, b)) FROM t";
    let rows = mib * 16;
    let found = place.pellucid(&["run", "--", "sqlite3", "app.db", differ]).succeeded();
    assert_eq!(found.trim(), format!("{rows}|{rows}|{rows}"));
}

#[test]
fn a_killed_backup_leaves_no_object_under_its_name() {
    let place = Place::new();
    database(&place);
    std::fs::create_dir(place.path("store")).unwrap();
    let url = format!("file://{}", place.path("store/app.bak").display());
    for wait in [5, 20, 40, 60, 80] {
        let mut backup = place.command(PELLUCID);
        backup.args(["backup", "app.db", "--compression", "none", "--quiet", "--to", &url]);
        let mut backup = backup.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        backup.kill().unwrap();
        backup.wait().unwrap();
        if place.path("store/app.bak").exists() {
            place.pellucid(&["verify", &url, "--open"]).succeeded();
            std::fs::remove_file(place.path("store/app.bak")).unwrap();
        }
    }
    place.pellucid(&["backup", "app.db", "--to", &url]).succeeded();
    let bytes = std::fs::read(place.path("store/app.bak")).unwrap();
    assert!(bytes.starts_with(b"{"), "the name is a pointer");
    for entry in std::fs::read_dir(place.path("store")).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(!bytes.windows(16).any(|window| window == b"marked-plaintext"));
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{entry:?}");
    }
    place.pellucid(&["restore", &url, "--to", "back.db"]).succeeded();
    assert_eq!(rows(&place, "back.db"), rows(&place, "app.db"));
}

/// What may come of a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Comes {
    /// Tried again, and whole.
    Whole,
    /// An error with this in it.
    Error(&'static str),
    /// One or the other.
    Either,
}

use Comes::*;

/// Requests of a backup: two of kind `put` for a probe, `begin`, parts, `complete`, `put` for the name.
const FAULTS: &[(&str, Comes)] = &[
    ("head 0 1 500", Whole),
    ("put 0 1 500", Whole),
    ("put 0 1 500-after", Whole),
    ("put 1 1 500-after", Whole),
    ("put 0 1 drop-after", Either),
    ("begin 0 1 500", Whole),
    ("begin 0 1 drop", Either),
    ("part 0 2 500", Whole),
    ("part 1 1 500-after", Whole),
    ("part 0 1 drop", Whole),
    ("part 1 1 drop-after", Whole),
    ("part 0 1 hang", Whole),
    ("part 0 1 lose", Error("")),
    ("part 1 1 lose", Error("")),
    ("complete 0 1 500", Whole),
    ("complete 0 1 500-after", Whole),
    ("complete 0 1 drop", Either),
    ("complete 0 1 drop-after", Whole),
    ("put 2 1 500", Whole),
    ("put 2 1 500-after", Whole),
    ("put 2 1 drop", Either),
    ("put 2 1 drop-after", Whole),
    ("put 0 9 ignore", Error("overwrites an object although it was told not to")),
];

/// Makes a backup under a rule and looks at what came of it.
fn meets(server: &mut Server, place: &Place, number: usize, rule: &str, comes: Comes) {
    let what = format!("{}, {rule}", server.name);
    let url = format!("s3://backups/faults/{number}.bak");
    let before = server.objects();
    assert_eq!(server.ask(rule), "ok");
    let backup = ["--quiet", "backup", "app.db", "--compression", "none", "--to", &url];
    let told = server.pellucid(place, &backup);
    server.ask("clear");
    let mut more = server.objects();
    more.retain(|name| !before.contains(name));
    if told.code == 0 {
        assert!(matches!(comes, Whole | Either), "{what}: {told:?}");
        server.pellucid(place, &["verify", "--open", &url]).succeeded();
        assert!(
            more.contains(&format!("faults/{number}.bak")) && more.len() == 2,
            "{what}: {more:?}"
        );
    } else {
        assert!(comes != Whole, "{what}: {told:?}");
        if let Error(says) = comes {
            assert!(told.stderr.contains(says), "{what}: {told:?}");
        }
        assert!(told.code == 1 && told.stderr.contains(&url), "{what}: {told:?}");
        let none = server.pellucid(place, &["header", &url]);
        assert!(none.code == 1, "{what}: something passes for a set: {none:?}");
        assert!(!more.contains(&format!("faults/{number}.bak")), "{what}: {more:?}");
    }
    assert_eq!(server.ask("uploads"), "0", "{what}: parts are left");
    assert!(before.iter().all(|name| server.objects().contains(name)), "{what}: others are gone");
}

#[test]
fn whatever_a_store_answers_there_is_a_whole_backup_or_an_error_and_none() {
    if let Some(mut server) = servers().pop() {
        let place = Place::new();
        let before = database(&place);
        let good = "s3://backups/good.bak";
        server.pellucid(&place, &["backup", "app.db", "--to", good]).succeeded();
        for (number, (rule, comes)) in FAULTS.iter().enumerate() {
            meets(&mut server, &place, number, rule, *comes);
        }
        server.pellucid(&place, &["restore", good, "--to", "back.db"]).succeeded();
        assert_eq!(rows(&place, "back.db"), before);
    }
}

#[test]
fn a_store_that_never_answers_right_is_given_up() {
    let mut server = Server::start("moto", "moto");
    let place = Place::new();
    database(&place);
    meets(&mut server, &place, 0, "part 0 999 500", Error("500"));
    meets(&mut server, &place, 1, "complete 0 999 drop", Error(""));
    // It says that all is well.
    meets(&mut server, &place, 2, "part 1 1 lose", Error("a part was lost"));
}

#[test]
fn what_is_read_from_a_bad_store_is_right_or_an_error() {
    for mut server in servers() {
        let place = Place::new();
        let before = database(&place);
        let url = "s3://backups/app.bak";
        server
            .pellucid(&place, &["backup", "app.db", "--compression", "none", "--to", url])
            .succeeded();
        let mut right = 0;
        for (number, rule) in [
            "get 0 3 500",
            "get 2 1 half",
            "get 3 2 drop",
            "get 4 1 hang",
            "head 0 1 500",
            "get 0 1 half",
        ]
        .iter()
        .enumerate()
        {
            let what = format!("{}, {rule}", server.name);
            server.ask(rule);
            let to = format!("back-{number}.db");
            let told = server.pellucid(&place, &["--quiet", "restore", url, "--to", &to]);
            server.ask("clear");
            match told.code {
                0 => {
                    assert_eq!(rows(&place, &to), before, "{what}");
                    right += 1;
                }
                _ => {
                    assert!(told.stderr.contains(url), "{what}: {told:?}");
                    assert!(!place.path(&to).exists(), "{what}");
                }
            }
        }
        assert!(right > 2, "{}: nothing was tried again", server.name);
    }
}

#[test]
fn of_writers_that_race_for_a_name_one_has_it() {
    for mut server in servers() {
        let place = Place::new();
        database(&place);
        for round in 0..4 {
            let url = format!("s3://backups/race-{round}.bak");
            let started = [0; 3].map(|_| {
                let mut command = server.command(&place);
                command.args(["--quiet", "backup", "app.db", "--to", &url]);
                command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
            });
            let mut won = 0;
            for child in started {
                let output = child.wait_with_output().unwrap();
                let text = String::from_utf8_lossy(&output.stderr).into_owned();
                won += u32::from(output.status.success());
                assert!(output.status.success() || text.contains(&url), "{text}");
            }
            assert_eq!(won, 1, "{}, round {round}", server.name);
            server.pellucid(&place, &["verify", "--open", &url]).succeeded();
            let name = format!("race-{round}.bak");
            let objects = server.objects();
            let of_round: Vec<_> =
                objects.iter().filter(|object| object.starts_with(&name)).collect();
            assert_eq!(of_round.len(), 2, "{}: the name and the bytes: {of_round:?}", server.name);
        }
        assert_eq!(server.ask("uploads"), "0");
    }
}

#[test]
fn a_backup_to_a_store_that_is_killed_has_no_name_there_and_the_next_one_has() {
    for mut server in servers() {
        let place = Place::new();
        let before = database(&place);
        let url = "s3://backups/killed.bak";
        let backup = ["--quiet", "backup", "app.db", "--compression", "none", "--to", url];
        let mut killed = 0;
        for rule in ["part 0 9 hang", "complete 0 9 hang", "put 2 9 hang"] {
            server.ask(rule);
            server.ask("count hang");
            let mut command = server.command(&place);
            command.env("AWS_TIMEOUT", "30s").args(backup);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            while server.ask("count hang") == "0" && child.try_wait().unwrap().is_none() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            child.kill().unwrap();
            killed += u32::from(child.wait().unwrap().code().is_none());
            server.ask("clear");
            let none = server.pellucid(&place, &["header", url]);
            assert_eq!(none.code, 1, "{}, {rule}: {none:?}", server.name);
        }
        assert_eq!(killed, 3, "{}", server.name);
        server.pellucid(&place, &backup).succeeded();
        server.pellucid(&place, &["restore", url, "--to", "back.db"]).succeeded();
        assert_eq!(rows(&place, "back.db"), before);
    }
}
