//! Goal: a database works under every name that a file can have, and under every one that leads to it.
//!
//! Method: the life of a database, from its encryption to its decryption, under each of these names, and each command's facts as
//! JSON. A conversion through a symbolic link is killed at each call on the copy, and finished under the other name. Where a
//! database has names of equal rank, of which an opener cannot know the other one, a conversion is refused before it begins.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::side_files::killed_at;
use crate::support::{said, Place, Said, PELLUCID};

/// A command with `@` for the database's name.
fn with(place: &Place, words: &str, name: &OsStr) -> Said {
    let mut command = place.command(PELLUCID);
    command.arg("--yes");
    for word in words.split(' ') {
        match word.strip_prefix('@') {
            Some(end) => command.arg([name, OsStr::new(end)].join(OsStr::new(""))),
            None => command.arg(word),
        };
    }
    said(&mut command)
}

/// From encryption to decryption.
const LIFE: [&str; 19] = [
    "encrypt @",
    "check @",
    "status @",
    "status",
    "status --prometheus",
    "protector list @",
    "scan status @",
    "rekey @",
    "scan verify @",
    "rewrap @ --certificate pellucid",
    "upgrade @",
    "upgrade @ --to 1",
    "backup @ --to one.bak",
    "restore one.bak --to @ --replace",
    "restore one.bak --to @-back",
    "salvage @ --to @-saved",
    "decrypt @ --keep-container",
    "encrypt @",
    "decrypt @",
];

fn lives(place: &Place, name: &OsStr) {
    let count = |name: &OsStr| {
        let mut command = place.command("/usr/bin/sqlite3");
        said(command.arg("-batch").arg(name).arg("SELECT count(*) FROM t")).succeeded()
    };
    for json in ["", "--json "] {
        for words in LIFE {
            let told = with(place, &format!("{json}{words}"), name);
            assert_eq!(told.code, 0, "{name:?}, {json}{words}: {told:?}");
            if let Some(facts) = told.stdout.lines().next().filter(|_| !json.is_empty()) {
                assert!(
                    serde_json::from_str::<serde_json::Value>(facts).is_ok()
                        || words.contains("prom")
                );
            }
        }
        assert_eq!(count(name), "200\n", "{name:?}");
        let shell = "rm -f one.bak; find . -name '*-back' -delete; find . -name '*-saved' -delete";
        said(place.command("/bin/sh").args(["-c", shell])).succeeded();
        let left = said(place.command("/usr/bin/find").args([".", "-name", "*-pellucid*"]));
        assert_eq!(left.stdout, "", "{name:?}");
    }
}

#[test]
fn a_database_lives_under_any_bytes() {
    for name in [&b"caf\xe9.db"[..], b"\xff\xfe", b"a b%20?#'\".db", b"-dash.db", b"new\nline.db"] {
        let place = Place::new();
        place.plain("app.db");
        let name = OsStr::from_bytes(name);
        std::fs::rename(place.path("app.db"), place.path(".").join(name)).unwrap();
        // A dash in front would be an option's.
        lives(&place, &[OsStr::new("./"), name].join(OsStr::new("")));
    }
}

#[test]
fn what_is_no_text_is_told_whole_all_the_same() {
    let place = Place::new();
    place.plain("app.db");
    let name = OsStr::from_bytes(b"caf\xe9.db");
    std::fs::rename(place.path("app.db"), place.path(".").join(name)).unwrap();
    let told = with(&place, "--json encrypt @", name).succeeded();
    let facts: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(facts["database"], "caf\u{fffd}.db");
    assert_eq!(facts["database_bytes"], "636166e92e6462");
    assert!(with(&place, "--json check @", name).succeeded().contains("database_bytes"));
}

#[test]
fn a_database_lives_under_every_path_to_it() {
    let place = Place::new();
    std::fs::create_dir(place.path("real")).unwrap();
    place.plain("real/app.db");
    std::fs::create_dir(place.path("links")).unwrap();
    std::os::unix::fs::symlink("../real/app.db", place.path("links/link.db")).unwrap();
    std::os::unix::fs::symlink("real", place.path("by")).unwrap();
    let whole = place.path("real/app.db").into_os_string();
    let slashes = |count: usize| {
        let mut name = OsString::from("/".repeat(count));
        name.push(&whole);
        name
    };
    let relative =
        ["real/app.db", "real//app.db", "links/link.db", "by/app.db", "by/../real/./app.db"];
    let mut names: Vec<OsString> = relative.map(OsString::from).to_vec();
    names.extend([whole.clone(), slashes(1), slashes(2)]);
    for name in names {
        lives(&place, &name);
    }
}

#[test]
fn what_was_interrupted_through_a_link_is_finished_under_either_name() {
    for (command, reader) in
        [("encrypt", "real"), ("encrypt", "links"), ("decrypt", "real"), ("decrypt", "links")]
    {
        let begun = Place::new();
        for directory in ["real", "links"] {
            std::fs::create_dir(begun.path(directory)).unwrap();
        }
        begun.plain("real/app.db");
        std::os::unix::fs::symlink("../real/app.db", begun.path("links/app.db")).unwrap();
        if command == "decrypt" {
            begun.pellucid(&["encrypt", "real/app.db"]).succeeded();
        }
        begun.compile_preload("exchange.c");
        for at in 1.. {
            let place = Place::new();
            begun.copy_to(&place);
            if !killed_at(&place, &[command, "links/app.db"], "/app.db-pellucid", at) {
                assert!(at > 3, "{command}");
                break;
            }
            let name = format!("{reader}/app.db");
            let run = ["run", "--", "/usr/bin/sqlite3", &name, "SELECT count(*) FROM t"];
            assert_eq!(place.pellucid(&run).succeeded(), "200\n", "{command}, {reader}, call {at}");
            assert!(!place.path("links/app.db-pellucid").exists());
        }
    }
}

#[test]
fn a_conversion_of_a_database_with_two_names_is_refused() {
    let place = Place::new();
    place.plain("app.db");
    place.sealed("sealed.db", &[]);
    place.pellucid(&["backup", "sealed.db", "--to", "one.bak"]).succeeded();
    for name in ["app.db", "sealed.db"] {
        std::fs::hard_link(place.path(name), place.path(&format!("other-{name}"))).unwrap();
    }
    let before = place.snapshot();
    for command in [
        &["encrypt", "app.db"][..],
        &["encrypt", "other-app.db"],
        &["decrypt", "sealed.db"],
        &["decrypt", "other-sealed.db"],
        &["restore", "one.bak", "--to", "app.db", "--replace"],
        &["restore", "one.bak", "--to", "sealed.db", "--replace"],
    ] {
        let told = place.pellucid(&[&["--yes"], command].concat());
        assert_eq!(told.code, 1, "{command:?}: {told:?}");
        assert!(told.stderr.contains("hard link"), "{command:?}: {told:?}");
    }
    for (path, found) in place.snapshot() {
        if path.extension().is_some_and(|end| end == "db") && !path.starts_with(place.path("keys"))
        {
            assert_eq!(before[&path], found, "{path:?}");
        }
    }
    std::fs::remove_file(place.path("other-app.db")).unwrap();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
}

#[test]
fn a_database_that_is_mounted_alone_is_converted_with_a_word() {
    let can = said(Place::new().command("/usr/bin/unshare").args(["-m", "true"])).code == 0;
    if !rustix::process::geteuid().is_root() || !can {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path("volume")).unwrap();
    place.plain("volume/app.db");
    std::fs::write(place.path("alone.db"), "").unwrap();
    let inside = |line: &str| {
        let shell = format!("mount --bind volume/app.db alone.db && exec {PELLUCID} --yes {line}");
        said(place.command("/usr/bin/unshare").args(["-m", "/bin/sh", "-c", &shell]))
    };
    let count = |name: &str| format!("run -- /usr/bin/sqlite3 {name} 'SELECT count(*) FROM t'");
    for (command, says) in [
        ("encrypt alone.db", true),
        ("backup alone.db --to one.bak", false),
        ("restore one.bak --to alone.db --replace", true),
        ("rekey alone.db", false),
        ("decrypt alone.db", true),
    ] {
        let told = inside(command);
        assert_eq!(told.code, 0, "{command}: {told:?}");
        let warned = told.stderr.contains("mounted as a single file");
        assert_eq!(warned, says, "{command}: {told:?}");
        for name in ["alone.db", "volume/app.db"] {
            assert_eq!(inside(&count(name)).succeeded(), "200\n", "{command}: {name}");
        }
    }
    // By its own name it is a file like any other.
    assert!(!place.pellucid(&["encrypt", "volume/app.db"]).stderr.contains("mounted"));
}

/// A log lies beside the file, and not beside a link to it.
#[test]
fn what_lies_beside_a_database_is_seen_through_a_link() {
    let place = Place::new();
    for directory in ["real", "links"] {
        std::fs::create_dir(place.path(directory)).unwrap();
    }
    place.sealed("real/app.db", &[]);
    std::os::unix::fs::symlink("../real/app.db", place.path("links/app.db")).unwrap();
    let program = "import os, sqlite3
db = sqlite3.connect('real/app.db')
db.execute('PRAGMA journal_mode = WAL')
db.execute('INSERT INTO t VALUES (1000, 0)')
db.commit()
os._exit(0)";
    place.pellucid(&["run", "--", "/usr/bin/python3", "-c", program]).succeeded();
    let at = |directory: &str, words: &str, name: &str| {
        let told = with(&place, words, OsStr::new(&format!("{directory}/{name}")));
        (told.code, told.all().replace(directory, "..").replace(name, "@"))
    };
    // The log stays as it is only as long as nobody opens the database to write.
    place.pellucid(&["salvage", "links/app.db", "--to", "saved.db"]).succeeded();
    let count = ["run", "--", "/usr/bin/sqlite3", "saved.db", "SELECT count(*) FROM t"];
    assert_eq!(place.pellucid(&count).succeeded(), "201\n");
    let status = |directory| at(directory, "--json status @", "app.db");
    assert!(status("links").1.contains("-wal"), "{:?}", status("links"));
    let logs = |told: (i32, String)| {
        let facts: serde_json::Value =
            serde_json::from_str(told.1.lines().next().unwrap()).unwrap();
        facts["databases"][0]["logs"].as_array().unwrap().len()
    };
    assert_eq!(logs(status("links")), 1);
    std::fs::rename(place.path("real/app.db-wal"), place.path("aside")).unwrap();
    said(place.command("/usr/bin/mkfifo").arg("real/app.db-wal")).succeeded();
    let mut check = place.command("/usr/bin/timeout");
    let told = said(check.args(["60", PELLUCID, "check", "links/app.db"]));
    assert_eq!(told.code, 1, "{told:?}");
    std::fs::rename(place.path("aside"), place.path("real/app.db-wal")).unwrap();
    assert_eq!(at("links", "check @", "app.db").0, 0);

    // A conversion that was interrupted has its copy there, too.
    place.plain("real/half.db");
    std::os::unix::fs::symlink("../real/half.db", place.path("links/half.db")).unwrap();
    let mut seen = Vec::new();
    for call in 1.. {
        if !killed_at(&place, &["encrypt", "real/half.db"], "/half.db-pellucid", call) {
            break;
        }
        let [told, own] = ["links", "real"].map(|directory| {
            let told = at(directory, "--json status @", "half.db").1;
            let is = |what| told.contains(what);
            ["left over", "\"kind\":\"PLAIN\"", "\"copy\":null", "DAMAGED"].map(is)
        });
        assert_eq!(told, own, "call {call}");
        seen.push(told[0]);
    }
    assert!(seen.contains(&true), "{seen:?}");
}
