//! Goal: whoever meets an error is told which one, by a message, an exit status and a word for machines of its own,
//! and nothing was changed by having met it.
//!
//! Method: each case makes a database that cannot be opened for one reason, asks `check` or `decrypt` in words and in
//! JSON and stock `sqlite3` through `run`, and compares mode and SHA-256 of every file of the place, the keyring's
//! too, before and after. The last test compares the messages of all cases with each other.

use std::os::unix::fs::PermissionsExt;

use crate::side_files::killed_at;
use crate::support::{edit, edit_headers, said, Place, PELLUCID};

const FAILED: i32 = 1;
const DAMAGE: i32 = 3;

/// One reason, and what it has to look like.
struct Case {
    name: &'static str,
    /// Makes `app.db`, and says which options and variables to open it with.
    make: fn(&Place) -> Way,
    exit: i32,
    kind: &'static str,
    /// In the message of `check`.
    says: &'static str,
    /// In the hint.
    hint: &'static str,
    /// What `sqlite3` makes of the SQLite code.
    sqlite: &'static str,
    /// What the shim says on the way.
    shim: &'static str,
}

#[derive(Default)]
struct Way {
    options: Vec<&'static str>,
    variables: Vec<(&'static str, &'static str)>,
}

const AUTH: &str = "authorization denied";
const CORRUPT: &str = "database disk image is malformed";
const CANTOPEN: &str = "unable to open database file";
const PERM: &str = "access permission denied";
const NOTADB: &str = "file is not a database";
const IOERR: &str = "disk I/O error";

fn key_file(place: &Place) -> Way {
    place.secret("right.key", &[7; 32]);
    place.sealed_anew("app.db", &["--key-file", "right.key"]);
    Way {
        options: vec!["--key-file", "right.key"],
        variables: vec![("PELLUCID_KEY_FILE", "right.key")],
    }
}

const CASES: &[Case] = &[
    Case {
        name: "wrong key file",
        make: |place| {
            key_file(place);
            place.secret("wrong.key", &[8; 32]);
            Way {
                options: vec!["--key-file", "wrong.key"],
                variables: vec![("PELLUCID_KEY_FILE", "wrong.key")],
            }
        },
        exit: FAILED,
        kind: "missing-key",
        says: "wrong key: the key file given does not open it",
        hint: "bring the key",
        sqlite: AUTH,
        shim: "wrong key: the key file given does not open it",
    },
    Case {
        name: "no key file",
        make: |place| {
            key_file(place);
            Way::default()
        },
        exit: FAILED,
        kind: "missing-key",
        says: "no key for it. It opens with a key file (`--key-file`, ",
        hint: "bring the key",
        sqlite: AUTH,
        shim: "no key for it. It opens with a key file (`--key-file`, ",
    },
    Case {
        name: "wrong passphrase",
        make: |place| {
            place.secret("right.txt", b"correct horse\n");
            place.secret("wrong.txt", b"battery staple\n");
            place.sealed_anew("app.db", &["--passphrase-file", "right.txt"]);
            Way {
                options: vec!["--passphrase-file", "wrong.txt"],
                variables: vec![("PELLUCID_PASSPHRASE_FILE", "wrong.txt")],
            }
        },
        exit: FAILED,
        kind: "missing-key",
        says: "wrong passphrase: the passphrase given does not open it",
        hint: "bring the key",
        sqlite: AUTH,
        shim: "wrong passphrase: the passphrase given does not open it",
    },
    Case {
        name: "missing certificate",
        make: |place| {
            place.sealed_anew("app.db", &[]);
            // Another keyring, whole, with a certificate of the same name.
            std::fs::rename(place.path("keys"), place.path("first-keys")).unwrap();
            place.sealed_anew("other.db", &[]);
            Way::default()
        },
        exit: FAILED,
        kind: "missing-key",
        says: "no key for it. It opens with certificate `pellucid`, which is not in the keyring. Cannot find server certificate",
        hint: "`PELLUCID_HOME`",
        sqlite: AUTH,
        shim: "no key for it. It opens with certificate `pellucid`, which is not in the keyring. Cannot find server certificate",
    },
    Case {
        name: "damaged keyring",
        make: |place| {
            place.sealed_anew("app.db", &[]);
            edit(&place.path("keys/keyring/certificates/pellucid"), |bytes| {
                *bytes.last_mut().unwrap() ^= 1;
            });
            Way::default()
        },
        exit: FAILED,
        kind: "missing-key",
        says: "keyring/certificates/pellucid`: its tag does not match",
        hint: "restore the file from a backup of the instance",
        sqlite: AUTH,
        shim: "cannot be read: `",
    },
    Case {
        name: "header copies damaged",
        make: |place| {
            let way = key_file(place);
            edit(&place.path("app.db"), |bytes| {
                bytes[2048 + 200] ^= 1;
                bytes[2048 + 7168 + 200] ^= 1;
            });
            way
        },
        exit: DAMAGE,
        kind: "corrupt",
        says: "header",
        hint: "restore a backup",
        sqlite: CORRUPT,
        shim: "both copies of its header are damaged or missing",
    },
    Case {
        name: "cut inside its header region",
        make: |place| {
            let way = key_file(place);
            edit(&place.path("app.db"), |bytes| bytes.truncate(9000));
            way
        },
        exit: DAMAGE,
        kind: "corrupt",
        says: "truncated: 9000 of its first 16384 bytes are there",
        hint: "restore a backup",
        sqlite: CORRUPT,
        shim: "truncated: 9000 of its first 16384 bytes are there",
    },
    Case {
        name: "newer format",
        make: |place| {
            let way = key_file(place);
            edit_headers(&place.path("app.db"), |copy| copy[19] = 3);
            way
        },
        exit: FAILED,
        kind: "unsupported",
        says: "format version 3 is newer than 2",
        hint: "a newer version of pellucid",
        sqlite: CANTOPEN,
        shim: "format version 3 is newer than 2",
    },
    Case {
        name: "unknown algorithm",
        make: |place| {
            let way = key_file(place);
            edit_headers(&place.path("app.db"), |copy| copy[128 + 8] = 77);
            way
        },
        exit: FAILED,
        kind: "unsupported",
        says: "algorithm 77 is not known to this version",
        hint: "a newer version of pellucid",
        sqlite: CANTOPEN,
        shim: "algorithm 77 is not known to this version",
    },
    Case {
        name: "key file that others can read",
        make: |place| {
            let way = key_file(place);
            let mode = PermissionsExt::from_mode(0o644);
            std::fs::set_permissions(place.path("right.key"), mode).unwrap();
            way
        },
        exit: FAILED,
        kind: "misuse",
        says: "`right.key`: others can read this secret (mode 0644); `chmod 600` it",
        hint: "",
        sqlite: PERM,
        shim: "others can read this secret (mode 0644)",
    },
    Case {
        name: "not a database",
        make: |place| {
            place.secret("app.db", &[0x5a; 20_000]);
            Way::default()
        },
        exit: FAILED,
        kind: "not-a-database",
        says: "neither an SQLite database nor an encrypted one",
        hint: "look at the path",
        sqlite: NOTADB,
        shim: "",
    },
    Case {
        name: "no file",
        make: |_| Way::default(),
        exit: FAILED,
        kind: "io",
        says: "No such file or directory",
        hint: "look at the path",
        sqlite: CANTOPEN,
        shim: "",
    },
];

/// What `check` says in words; every other way of asking is compared on the way.
fn ask(case: &Case) -> String {
    let place = Place::new();
    let way = (case.make)(&place);
    let before = place.snapshot();
    let mut first = String::new();
    for subcommand in ["check", "decrypt"] {
        let ask = |json: &[&'static str]| {
            place.pellucid(&[json, &[subcommand, "app.db"], &way.options[..]].concat())
        };
        let told = ask(&[]);
        let what = format!("{}, {subcommand}: {told:?}", case.name);
        assert_eq!(told.code, case.exit, "{what}");
        let line = told.stderr.lines().next().unwrap_or_default().to_owned();
        assert!(line.starts_with("pellucid: error: "), "{what}");
        assert!(line.contains(case.says), "{what}");
        let twice = format!("`app.db`: `{}`", place.path("app.db").display());
        assert!(!line.contains(&twice), "{what}");
        let hint = told.stderr.lines().nth(1).unwrap_or_default();
        assert!(hint.contains(case.hint), "{what}");
        assert!(case.hint.is_empty() || hint.starts_with("pellucid: hint: "), "{what}");

        let machine = ask(&["--json"]);
        let facts: serde_json::Value = serde_json::from_str(&machine.stdout).expect(&what);
        assert_eq!(facts["kind"], case.kind, "{what}");
        let mut expected = facts["error"].as_str().unwrap().to_owned();
        expected += &match facts["message"].as_u64() {
            Some(number) => format!(" ({number})"),
            None => format!(" [{}]", facts["id"].as_str().unwrap()),
        };
        assert_eq!(expected, &line["pellucid: error: ".len()..], "{what}");
        assert_eq!(machine.code, case.exit, "{what}");
        if first.is_empty() {
            first = line;
        }
    }
    let sqlite = ["run", "--", "sqlite3", "-batch", "-readonly", "app.db", "SELECT b FROM t"];
    let told = said(place.command(PELLUCID).args(sqlite).envs(way.variables));
    assert_ne!(told.code, 0, "{}: {told:?}", case.name);
    assert!(told.stderr.contains(case.sqlite), "{}: {told:?}", case.name);
    assert!(told.stderr.contains(case.shim), "{}: {told:?}", case.name);
    assert_eq!(before, place.snapshot(), "{}: something was changed", case.name);
    first
}

#[test]
fn each_error_has_a_message_of_its_own_and_changes_nothing() {
    let mut told: Vec<String> = CASES.iter().map(ask).collect();
    let all = told.len();
    told.sort();
    told.dedup();
    assert_eq!(told.len(), all, "two errors say the same: {told:#?}");
}

#[test]
fn a_damaged_page_is_named_with_its_table() {
    let place = Place::new();
    let way = key_file(&place);
    edit(&place.path("app.db"), |bytes| bytes[16384 + 4096 + 99] ^= 0x10);
    let before = place.snapshot();
    let told = place.pellucid(&[&["check", "app.db"], &way.options[..]].concat());
    assert_eq!(told.code, DAMAGE, "{told:?}");
    let line = "page 2: authentication tag does not match (belongs to table `t`)";
    assert!(told.stdout.contains(line), "{told:?}");

    let told = place.pellucid(&[&["--json", "check", "app.db"], &way.options[..]].concat());
    let facts: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((told.code, &facts["clean"]), (DAMAGE, &false.into()), "{told:?}");
    assert_eq!(facts["damaged_pages"][0]["page"], 2, "{told:?}");

    let told = place.pellucid(&[&["--json", "decrypt", "app.db"], &way.options[..]].concat());
    let facts: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((told.code, &facts["kind"]), (DAMAGE, &"unauthentic".into()), "{told:?}");
    assert!(told.stderr.contains("page 2: authentication tag does not match"), "{told:?}");

    let sqlite = ["run", "--", "sqlite3", "-batch", "app.db", "SELECT b FROM t"];
    let told = said(place.command(PELLUCID).args(sqlite).envs(way.variables));
    assert_ne!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains("page 2: authentication tag does not match"), "{told:?}");
    assert!(told.stderr.contains(IOERR) && told.stdout.is_empty(), "{told:?}");
    assert_eq!(before, place.snapshot());
}

#[test]
fn a_page_that_is_cut_short_is_named() {
    let place = Place::new();
    let way = key_file(&place);
    edit(&place.path("app.db"), |bytes| {
        let end = bytes.len() - 1096;
        bytes.truncate(end);
    });
    let before = place.snapshot();
    let told = place.pellucid(&[&["check", "app.db"], &way.options[..]].concat());
    assert_eq!(told.code, DAMAGE, "{told:?}");
    assert!(told.stdout.contains("truncated: 3000 of its 4096 bytes are there"), "{told:?}");
    let sqlite = ["run", "--", "sqlite3", "-batch", "app.db", "SELECT b FROM t"];
    let told = said(place.command(PELLUCID).args(sqlite).envs(way.variables));
    assert_ne!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains("truncated: 3000 of its 4096 bytes are there"), "{told:?}");
    assert_eq!(before, place.snapshot());
}

#[test]
fn plain_and_empty_files_are_refused_where_sealed_ones_are_required() {
    let place = Place::new();
    place.plain("plain.db");
    place.secret("empty.db", b"");
    let before = place.snapshot();
    for name in ["plain.db", "empty.db", "new.db"] {
        let sql = "CREATE TABLE x(y)";
        let told =
            place.pellucid(&["run", "--require-sealed", "--", "sqlite3", "-batch", name, sql]);
        assert_eq!(told.code, 1, "{told:?}");
        assert!(told.stderr.contains(PERM), "{told:?}");
        assert!(told.stderr.contains("where a sealed one is required"), "{told:?}");
        assert!(told.stderr.contains(name), "{told:?}");
    }
    for (name, kind) in [("plain.db", "plain"), ("empty.db", "empty")] {
        for subcommand in ["check", "decrypt"] {
            let told = place.pellucid(&["--json", subcommand, name]);
            let facts: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
            assert_eq!((told.code, &facts["kind"]), (FAILED, &kind.into()), "{told:?}");
        }
    }
    assert_eq!(before, place.snapshot());
}

#[test]
fn a_second_encryption_and_a_wrong_argument_are_refused() {
    let place = Place::new();
    key_file(&place);
    let before = place.snapshot();
    let told = place.pellucid(&["encrypt", "app.db", "--key-file", "right.key"]);
    assert_eq!(told.code, FAILED, "{told:?}");
    assert!(told.stderr.contains("the database is encrypted already"), "{told:?}");
    assert_eq!(place.pellucid(&["check"]).code, 2);
    assert_eq!(place.pellucid(&["encrypt", "app.db", "--passphrase", "x"]).code, 2);
    place.plain("two.db");
    let told = place.pellucid(&["encrypt", "two.db", "--algorithm", "ROT13"]);
    assert_eq!(told.code, 2, "{told:?}");
    std::fs::remove_file(place.path("two.db")).unwrap();
    assert_eq!(place.pellucid(&["status", "--check", "app.db"]).code, 0);
    assert_eq!(before, place.snapshot());
    place.plain("three.db");
    assert_eq!(place.pellucid(&["status", "--check", "three.db"]).code, 4);
}

#[test]
fn what_a_killed_decryption_leaves_is_told() {
    let place = Place::new();
    key_file(&place);
    assert_eq!(place.pellucid(&["status", "--check", "app.db"]).code, 0);
    let arguments = ["decrypt", "app.db", "--key-file", "right.key"];
    assert!(killed_at(&place, &arguments, "/app.db-pellucid", 2));
    let told = place.pellucid(&["status", "--check", "app.db"]);
    assert_eq!(told.code, 4, "{told:?}");
    let line = "app.db-pellucid` is left over from an interrupted conversion and may hold plain";
    assert!(told.stderr.contains(line), "{told:?}");
    place.pellucid(&["decrypt", "app.db", "--key-file", "right.key"]).succeeded();
    assert!(!place.path("app.db-pellucid").exists());
}

/// A preload lets a number of bytes through and then answers every write as a full disk does: any machine can do that,
/// a small file system of its own needs rights.
#[test]
fn a_full_disk_is_said_and_the_database_stays() {
    let place = Place::new();
    key_file(&place);
    place.plain("plain.db");
    let full = place.compile_preload("disk_full.c");
    let grow = "INSERT INTO t SELECT NULL, hex(zeroblob(2000)) FROM t";
    let mut refused = 0;
    for room in (0..1_000_000).step_by(50_000) {
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_KEY_FILE", "right.key").env("LD_PRELOAD", &full);
        command.args(["run", "--", "sqlite3", "-batch", "app.db", grow]);
        let told = said(command.env("ROOM_BYTES", room.to_string()));
        if told.code == 0 {
            break;
        }
        refused += 1;
        assert!(told.stderr.contains("database or disk is full"), "{room}: {told:?}");
        assert_eq!(place.pellucid(&["check", "app.db", "--key-file", "right.key"]).code, 0);
    }
    assert!(refused > 2, "the disk was never full");
    place.sqlite3("plain.db", grow).succeeded();
    place.pellucid(&["decrypt", "app.db", "--key-file", "right.key"]).succeeded();
    assert_eq!(place.sqlite3("app.db", ".dump").stdout, place.sqlite3("plain.db", ".dump").stdout);

    let before = place.snapshot();
    let size = place.path("plain.db").metadata().unwrap().len();
    // From nothing up to almost the whole copy; the switch needs no room in the file itself.
    for room in (0..size).step_by(size as usize / 12) {
        let mut command = place.command(PELLUCID);
        command.env("LD_PRELOAD", &full).env("ROOM_BYTES", room.to_string());
        let told = said(command.args(["--json", "encrypt", "plain.db", "--key-file", "right.key"]));
        assert_eq!(told.code, FAILED, "{room}: {told:?}");
        assert!(told.stderr.contains("pellucid: error: `plain.db`: "), "{told:?}");
        let facts: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
        assert_eq!(facts["kind"], "full", "{room}: {told:?}");
        assert_eq!(before, place.snapshot(), "{room}");
    }
}

/// Where the directory of what is named is missing, the hint names that, and no working file is named.
#[test]
fn a_directory_that_is_missing_is_named() {
    let place = Place::new();
    place.plain("app.db");
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "a.bak"]).succeeded();
    let folder = place.path("none");
    let file = folder.join("deep/x");
    let file = file.to_str().unwrap();
    let url = format!("file://{file}");
    for arguments in [
        &["backup", "app.db", "--to", file][..],
        &["backup", "app.db", "--to", "b.bak", "--to", file],
        &["backup", "app.db", "--to", "c.bak", "--mirror", file],
        &["backup", file, "--to", "d.bak"],
        &["restore", "a.bak", "--to", file],
        &["restore", file, "--to", "e.db"],
        &["salvage", "app.db", "--to", file],
        &["salvage", file, "--to", "f.db"],
        &["verify", file],
        &["header", file],
        &["check", file],
        &["encrypt", file],
        &["decrypt", file],
        &["rekey", file],
    ] {
        let told = place.pellucid(arguments);
        let hint =
            format!("there is no directory `{}`: make it, or look at the path", folder.display());
        assert_eq!(told.code, 1, "{arguments:?}: {told:?}");
        assert!(told.stderr.contains(&hint), "{arguments:?}: {told:?}");
        assert!(!told.stderr.contains("pellucid-new"), "{arguments:?}: {told:?}");
        assert!(told.stderr.contains(&format!("`{file}`: ")), "{arguments:?}: {told:?}");
    }
    let told = place.pellucid(&["backup", "app.db", "--to", &url]);
    assert!(told.code == 1 && told.stderr.contains(&url), "{told:?}");
    let mut left: Vec<_> =
        std::fs::read_dir(place.path(".")).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("pellucid-new")), "{left:?}");
}
