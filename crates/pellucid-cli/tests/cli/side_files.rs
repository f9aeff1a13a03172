//! Goal: what lies under the name of a side file is never trusted for its name: nothing of somebody else's file is read into
//! a database, nothing of it is changed, and nobody waits for it.
//!
//! Nor is the name of the database itself, once a conversion has begun.
//!
//! Method: a preloaded library gives the name of a conversion's copy, or of a restore's unfinished file, to another file right
//! before each call of the command that has that name in it, one after the other until the command has no more of them; or it
//! kills the command there. And before a command begins, each kind of file lies there.

use std::os::unix::fs::{symlink, MetadataExt};
use std::path::Path;

use pellucid::sector::{SectorZero, SECTOR_BYTES};

use crate::support::{edit, said, sha256, Place, Said, PELLUCID};

/// Of a file that nobody else may read. Longer than a database's first page, whose bytes 18 to 96 a conversion sets.
fn private(place: &Place) -> Vec<u8> {
    let content = b"somebody's own line\n".repeat(2000);
    place.secret("private", &content);
    content
}

/// How a file gets a name that is not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exchanged {
    Link,
    HardLink,
    Dangling,
    Another,
}

impl Exchanged {
    const ALL: [Self; 4] = [Self::Link, Self::HardLink, Self::Dangling, Self::Another];

    fn prepare(self, place: &Place) {
        let ready = place.path("ready");
        let _ = std::fs::remove_file(&ready);
        match self {
            Self::Link => symlink(place.path("private"), ready).unwrap(),
            Self::HardLink => std::fs::hard_link(place.path("private"), ready).unwrap(),
            Self::Dangling => symlink(place.path("made"), ready).unwrap(),
            Self::Another => std::fs::write(ready, "another's").unwrap(),
        }
    }
}

/// A database and what is done with it.
struct Case {
    what: &'static str,
    /// The end of the name that is exchanged.
    name: &'static str,
    arguments: &'static [&'static str],
    begin: fn(&Place),
}

const CASES: [Case; 7] = [
    Case {
        what: "encrypt",
        name: "/app.db-pellucid",
        arguments: &["encrypt", "app.db"],
        begin: |place| drop(place.plain("app.db")),
    },
    Case {
        what: "decrypt",
        name: "/app.db-pellucid",
        arguments: &["decrypt", "app.db"],
        begin: |place| drop(place.sealed("app.db", &[])),
    },
    Case {
        what: "restore over it: the unfinished file",
        name: "/app.db.pellucid-new",
        arguments: &["restore", "one.bak", "--to", "app.db", "--replace"],
        begin: with_backup,
    },
    Case {
        what: "restore over it: the copy",
        name: "/app.db-pellucid",
        arguments: &["restore", "one.bak", "--to", "app.db", "--replace"],
        begin: with_backup,
    },
    Case {
        what: "restore to a new name",
        name: "/app.db.pellucid-new",
        arguments: &["restore", "one.bak", "--to", "app.db"],
        begin: |place| {
            with_backup(place);
            std::fs::remove_file(place.path("app.db")).unwrap();
        },
    },
    Case {
        what: "what finishes an encryption",
        name: "/app.db-pellucid",
        arguments: &["run", "--", "/usr/bin/sqlite3", "app.db", "SELECT count(*) FROM t"],
        begin: half_sealed,
    },
    Case {
        what: "what finishes a decryption",
        name: "/app.db-pellucid",
        arguments: &["run", "--", "/usr/bin/sqlite3", "app.db", "SELECT count(*) FROM t"],
        begin: half_plain,
    },
];

fn with_backup(place: &Place) {
    place.sealed("app.db", &[]);
    place.pellucid(&["backup", "app.db", "--to", "one.bak"]).succeeded();
}

/// An encryption that was killed right after its commit point (docs/format.md, "Laying").
fn half_sealed(place: &Place) {
    let path = place.plain("app.db");
    let plain = std::fs::read(&path).unwrap();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    let sealed = std::fs::read(&path).unwrap();
    std::fs::write(place.path("app.db-pellucid"), &sealed).unwrap();
    std::fs::write(&path, [&sealed[..SECTOR_BYTES], &plain[SECTOR_BYTES..]].concat()).unwrap();
}

/// The same of a decryption.
fn half_plain(place: &Place) {
    let path = place.plain("app.db");
    let plain = std::fs::read(&path).unwrap();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    let mut sealed = std::fs::read(&path).unwrap();
    let (file_id, copy_bytes, copy_sha256) = ([7; 16], plain.len() as u64, sha256(&plain));
    let sector = SectorZero::LayingPlain { file_id, copy_bytes, copy_sha256 };
    sealed[..SECTOR_BYTES].copy_from_slice(&sector.encode(4096));
    std::fs::write(place.path("app.db-pellucid"), &plain).unwrap();
    std::fs::write(path, &sealed).unwrap();
    // A decryption says beforehand that the database may go.
    place.pellucid(&["accept", "app.db"]).succeeded();
}

/// Rows of the database, by whichever SQLite reads it; none if neither does.
fn rows(place: &Place) -> Option<String> {
    let count = "SELECT count(*) FROM t";
    let plain = place.sqlite3("app.db", count);
    let run = ["run", "--", "/usr/bin/sqlite3", "app.db", count];
    let told = if plain.code == 0 { plain } else { place.pellucid(&run) };
    (told.code == 0).then(|| told.stdout.lines().last().unwrap_or_default().to_owned())
}

fn has(path: &Path, content: &[u8]) -> bool {
    // What leads to the other file gives nobody anything that they did not have.
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    is_file
        && std::fs::read(path)
            .is_ok_and(|bytes| bytes.windows(20).any(|part| part == &content[..20]))
}

#[test]
fn a_name_that_is_exchanged_at_any_call_gives_nothing_away_and_changes_nothing() {
    for case in CASES {
        let begun = Place::new();
        let content = private(&begun);
        (case.begin)(&begun);
        begun.compile_preload("exchange.c");
        for with in Exchanged::ALL {
            let mut reached = 0;
            for at in 1.. {
                let place = Place::new();
                begun.copy_to(&place);
                let library = place.path("exchange.so");
                with.prepare(&place);
                let mut command = place.command(PELLUCID);
                command.args(["--quiet", "--yes"]).args(case.arguments);
                command.env("LD_PRELOAD", library).env("EXCHANGE_NAME", case.name);
                command.env("EXCHANGE_WITH", place.path("ready"));
                command.env("EXCHANGE_AT", at.to_string());
                let told = said(&mut command);
                if place.path("ready").symlink_metadata().is_ok() {
                    break;
                }
                reached = at;
                let what = format!("{} with {with:?} at call {at}: {told:?}", case.what);
                assert_eq!(std::fs::read(place.path("private")).unwrap(), content, "{what}");
                assert!(!place.path("made").exists(), "{what}: a file was made behind the link");
                assert!(!has(&place.path("app.db"), &content), "{what}: it was read");
                let finishes = case.what.starts_with("what finishes");
                match rows(&place) {
                    Some(count) => assert_eq!(count, "200", "{what}"),
                    // Without its copy nobody can finish; and a restore to a new name may make nothing.
                    None => assert!(finishes || case.what.ends_with("new name"), "{what}"),
                }
                assert!(told.code == 0 || told.stderr.contains("app.db"), "{what}");
            }
            assert!(reached > 0, "{}: its name was never called", case.what);
        }
    }
}

/// Runs a conversion of `app.db` during which `private.db` has its name, too, from its call number `at` to the number
/// `back`; zero for never. What was `app.db` has to have its own rows afterwards. True if there were that many calls.
fn converts_its_own(begun: &Place, command: &str, at: u32, back: u32) -> bool {
    let place = Place::new();
    begun.copy_to(&place);
    std::fs::hard_link(place.path("private.db"), place.path("ready")).unwrap();
    let mut conversion = place.command(PELLUCID);
    conversion.args(["--quiet", "--yes", command, "app.db"]);
    conversion.env("LD_PRELOAD", place.path("exchange.so")).env("EXCHANGE_NAME", "/app.db");
    conversion.env("EXCHANGE_WITH", place.path("ready")).env("EXCHANGE_AT", at.to_string());
    let told = said(conversion.env("EXCHANGE_BACK", back.to_string()));
    let inode = |name| std::fs::metadata(place.path(name)).unwrap().ino();
    let is_exchanged = inode("app.db") == inode("private.db");
    if is_exchanged {
        std::fs::rename(place.path("ready"), place.path("app.db")).unwrap();
    }
    let what = format!("{command}, exchanged at call {at}, back at {back}: {told:?}");
    for name in names(&place).iter().filter(|name| name.starts_with("app.db")) {
        assert!(!has(&place.path(name), &b"somebody's own line\n"[..]), "{what}: {name}");
    }
    assert_eq!(rows(&place).as_deref(), Some("200"), "{what}");
    let left = std::fs::read(place.path("private.db")).unwrap();
    let before = std::fs::read(begun.path("private.db")).unwrap();
    assert!(left == before, "{what}: somebody else's database was changed");
    is_exchanged
}

#[test]
fn a_database_whose_name_is_exchanged_is_converted_itself_or_not_at_all() {
    for command in ["encrypt", "decrypt"] {
        let begun = Place::new();
        let private =
            "CREATE TABLE mine(a); INSERT INTO mine VALUES('somebody''s own line' || char(10))";
        begun.sqlite3("private.db", private).succeeded();
        begun.plain("app.db");
        if command == "decrypt" {
            begun.pellucid(&["encrypt", "app.db"]).succeeded();
            begun.pellucid(&["encrypt", "private.db"]).succeeded();
        }
        begun.compile_preload("exchange.c");
        let mut calls = 0;
        while converts_its_own(&begun, command, calls + 1, 0) {
            calls += 1;
        }
        assert!(calls > 2, "{command}: its name was called {calls} times");
        for at in 1..calls {
            for back in at + 1..=calls {
                converts_its_own(&begun, command, at, back);
            }
        }
    }
}

#[test]
fn what_is_no_copy_of_its_own_finishes_nothing() {
    type Lay = fn(&Place);
    let lay: [(&str, Lay); 7] = [
        ("link", |place| symlink(place.path("aside"), place.path("app.db-pellucid")).unwrap()),
        ("dangling link", |place| symlink("nothing", place.path("app.db-pellucid")).unwrap()),
        ("hard link", |place| {
            std::fs::hard_link(place.path("aside"), place.path("app.db-pellucid")).unwrap();
        }),
        ("FIFO", |place| run(place, "mkfifo app.db-pellucid")),
        ("directory", |place| std::fs::create_dir(place.path("app.db-pellucid")).unwrap()),
        ("device", |place| symlink("/dev/zero", place.path("app.db-pellucid")).unwrap()),
        ("another file", |place| {
            std::fs::write(place.path("app.db-pellucid"), "something else".repeat(100)).unwrap();
        }),
    ];
    for half in [half_sealed, half_plain] {
        for (kind, lay) in lay {
            let place = Place::new();
            half(&place);
            std::fs::rename(place.path("app.db-pellucid"), place.path("aside")).unwrap();
            let whole = std::fs::read(place.path("aside")).unwrap();
            let before = std::fs::read(place.path("app.db")).unwrap();
            lay(&place);
            for command in [
                &["check", "app.db"][..],
                &["status", "app.db"],
                &["run", "--", "/usr/bin/sqlite3", "app.db", "SELECT count(*) FROM t"],
            ] {
                let told = in_time(&place, command);
                let is_status = command[0] == "status";
                assert_eq!(told.code == 0, is_status, "{kind}, {command:?}: {told:?}");
                assert!(
                    is_status || told.stderr.contains("app.db"),
                    "{kind}, {command:?}: {told:?}"
                );
            }
            assert_eq!(std::fs::read(place.path("app.db")).unwrap(), before, "{kind}");
            assert_eq!(std::fs::read(place.path("aside")).unwrap(), whole, "{kind}");
            // The right one is there again.
            run(&place, "rm -rf app.db-pellucid; mv aside app.db-pellucid");
            assert_eq!(rows(&place).as_deref().or(Some("200")), Some("200"));
            place
                .pellucid(&["run", "--", "/usr/bin/sqlite3", "app.db", "SELECT 1 FROM t"])
                .succeeded();
            assert!(!place.path("app.db-pellucid").exists(), "{kind}");
        }
    }
}

#[test]
fn check_finishes_what_was_interrupted_and_other_commands_name_it() {
    for (half, is_sealed) in [(half_sealed as fn(&Place), true), (half_plain, false)] {
        for command in [
            &["check", "app.db"][..],
            &["status", "app.db"],
            &["encrypt", "app.db"],
            &["decrypt", "app.db"],
            &["rekey", "app.db"],
            &["backup", "app.db", "--to", "a.bak"],
        ] {
            let place = Place::new();
            half(&place);
            let told = place.pellucid(command);
            assert!(!told.stderr.contains("restore a backup"), "{command:?}: {told:?}");
            if command[0] == "check" {
                assert_eq!(told.code == 0, is_sealed, "{told:?}");
            } else if place.path("app.db-pellucid").exists() {
                let words = format!("{}{}", told.stdout, told.stderr);
                assert!(words.contains("`pellucid check`"), "{command:?}: {told:?}");
                place.pellucid(&["check", "app.db"]);
            }
            assert!(!place.path("app.db-pellucid").exists(), "{command:?}: {told:?}");
            assert_eq!(rows(&place).as_deref(), Some("200"), "{command:?}: {told:?}");
        }
    }
}

#[test]
fn a_strangers_copy_finishes_nothing() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    half_plain(&place);
    let copy = place.path("app.db-pellucid");
    std::os::unix::fs::chown(&copy, Some(65534), Some(65534)).unwrap();
    let query = ["run", "--", "/usr/bin/sqlite3", "app.db", "SELECT count(*) FROM t"];
    assert_ne!(place.pellucid(&query).code, 0);
    assert!(copy.exists());
    // Of the database's owner it is taken, as a killed `sudo pellucid decrypt` leaves it.
    std::os::unix::fs::chown(place.path("app.db"), Some(65534), Some(65534)).unwrap();
    assert_eq!(place.pellucid(&query).succeeded(), "200\n");
}

/// Runs a command that is killed right before its call number `at` on a file whose name ends so; false if it has no more of
/// them.
pub fn killed_at(place: &Place, arguments: &[&str], name: &str, at: u32) -> bool {
    let library = place.path("exchange.so");
    if !library.exists() {
        place.compile_preload("exchange.c");
    }
    let mut command = place.command(PELLUCID);
    command.args(["--quiet", "--yes"]).args(arguments).env("LD_PRELOAD", library);
    command.env("EXCHANGE_NAME", name).env("EXCHANGE_AT", at.to_string());
    let killed = place.path("killed");
    said(command.env("EXCHANGE_KILLED", &killed));
    std::fs::remove_file(killed).is_ok()
}

/// Every name in a place.
fn names(place: &Place) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let found = std::fs::read_dir(place.path(".")).unwrap().map(name);
    let mut names: Vec<String> = found.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// The cases in which a program makes a copy.
fn makers() -> impl Iterator<Item = Case> {
    CASES.into_iter().filter(|case| !case.what.starts_with("what finishes"))
}

#[test]
fn a_killed_conversion_or_restore_is_simply_run_again() {
    for case in makers() {
        let begun = Place::new();
        (case.begin)(&begun);
        begun.compile_preload("exchange.c");
        // The record comes and goes on its own.
        for name in [case.name.to_owned(), format!("{}-of", case.name)] {
            for at in 1.. {
                let place = Place::new();
                begun.copy_to(&place);
                if !killed_at(&place, case.arguments, &name, at) {
                    assert!(at > 1 || name.ends_with("-new-of"), "{}, {name}", case.what);
                    break;
                }
                let what = format!("{}, killed at call {at} on {name}", case.what);
                let again = place.pellucid(&[&["--yes"], case.arguments].concat());
                // Killed behind the commit point it is done, or whoever opens it finishes.
                let known = ["was interrupted", "is already enabled", "is not encrypted", "(3159)"];
                let is_done = known.iter().any(|known| again.stderr.contains(known))
                    || (case.what.ends_with("new name") && again.stderr.contains("(31"));
                assert!(again.code == 0 || is_done, "{what}: {again:?}");
                assert_eq!(rows(&place).as_deref(), Some("200"), "{what}");
                if again.code == 0 {
                    let left: Vec<_> = names(&place)
                        .into_iter()
                        .filter(|name| name.contains("pellucid"))
                        .collect();
                    assert!(left.is_empty(), "{what}: {left:?}");
                }
            }
        }
    }
}

#[test]
fn what_no_conversion_of_this_database_has_left_stays() {
    let lay: [(&str, &str); 10] = [
        ("a text", "echo text > NAME"),
        ("an empty file", ": > NAME; chmod 600 NAME"),
        ("a plain database", "sqlite3 NAME 'CREATE TABLE mine(a)'"),
        ("a copy of the database", "cp -p app.db NAME"),
        ("a hard link", "ln other NAME"),
        ("a link", "ln -s other NAME"),
        ("a dangling link", "ln -s nothing NAME"),
        ("a FIFO", "mkfifo NAME"),
        ("a directory", "mkdir NAME"),
        ("a device", "ln -s /dev/null NAME"),
    ];
    for case in makers() {
        let begun = Place::new();
        begun.secret("other", b"somebody's");
        (case.begin)(&begun);
        let of_record = format!("{}-of", case.name);
        for name in [case.name, &of_record] {
            if name.ends_with("-new-of") {
                continue;
            }
            let name = name.trim_start_matches('/');
            for (kind, shell) in lay {
                let place = Place::new();
                begun.copy_to(&place);
                let shell = shell.replace("app.db", "$(ls app.db one.bak 2>/dev/null | head -1)");
                run(&place, &shell.replace("NAME", name));
                let see = format!("stat -c '%n %i %s %Y %F %h' {name} other; cat other");
                let look = || said(place.command("/bin/sh").args(["-c", &see])).succeeded();
                let (before, seen) = (std::fs::read(place.path("app.db")).ok(), look());
                let arguments = [&["timeout", "60", PELLUCID, "--yes"], case.arguments].concat();
                let told = said(place.command("/usr/bin/env").args(arguments));
                let what = format!("{}: {kind} under {name}: {told:?}", case.what);
                assert_eq!(told.code, 1, "{what}");
                assert!(told.stderr.contains(&format!("{name}`")), "{what}");
                assert_eq!(look(), seen, "{what}");
                assert_eq!(std::fs::read(place.path("app.db")).ok(), before, "{what}");
                run(&place, &format!("rm -r {name}"));
                place.pellucid(&[&["--yes"], case.arguments].concat()).succeeded();
                assert_eq!(rows(&place).as_deref(), Some("200"), "{what}");
            }
        }
    }
}

#[test]
fn the_copy_of_another_database_stays_and_finishes_that() {
    let place = Place::new();
    place.plain("app.db");
    // The last call removes the copy: until then it is whole.
    let mut at = 1;
    while killed_at(&place, &["encrypt", "app.db"], "/app.db-pellucid", at) {
        if std::fs::read(place.path("app.db")).unwrap().starts_with(b"Pellucid") {
            break;
        }
        at += 1;
    }
    // It was about to be removed. As if it was still needed:
    edit(&place.path("app.db"), |bytes| bytes[SECTOR_BYTES..].fill(0));
    std::fs::rename(place.path("app.db"), place.path("half.db")).unwrap();
    place.plain("app.db");
    let copy = std::fs::read(place.path("app.db-pellucid")).unwrap();
    let told = place.pellucid(&["encrypt", "app.db"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stderr.contains("move it away"), "{told:?}");
    assert_eq!(std::fs::read(place.path("app.db-pellucid")).unwrap(), copy);
    run(&place, "mv app.db new.db; mv half.db app.db");
    assert_eq!(rows(&place).as_deref(), Some("200"));
}

#[test]
fn logs_under_the_copys_name_are_nobodys_business() {
    for case in makers() {
        let place = Place::new();
        (case.begin)(&place);
        let sides = ["-journal", "-wal", "-shm"].map(|side| format!("app.db-pellucid{side}"));
        for side in &sides {
            std::fs::write(place.path(side), "somebody's").unwrap();
        }
        place.pellucid(&[&["--yes"], case.arguments].concat()).succeeded();
        for side in &sides {
            assert_eq!(std::fs::read(place.path(side)).unwrap(), b"somebody's", "{}", case.what);
        }
        assert_eq!(rows(&place).as_deref(), Some("200"));
    }
}

fn run(place: &Place, shell: &str) {
    said(place.command("/bin/sh").args(["-c", shell])).succeeded();
}

/// What waits for something is ended after a minute, which is no answer.
fn in_time(place: &Place, arguments: &[&str]) -> Said {
    said(place.command("/usr/bin/timeout").arg("60").arg(PELLUCID).args(arguments))
}

#[test]
fn no_command_waits_for_a_fifo() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.plain("plain.db");
    place.pellucid(&["backup", "app.db", "--to", "one.bak"]).succeeded();
    place.secret("a.password", b"a password of some length\n");
    run(&place, "mkfifo fifo; chmod 600 fifo");
    let open = "import sqlite3, sys\nsqlite3.connect(sys.argv[1]).execute('SELECT 1 FROM t')";
    std::fs::write(place.path("open.py"), open).unwrap();
    let of_databases = [
        "status fifo",
        "status app.db fifo",
        "check fifo",
        "encrypt fifo",
        "decrypt fifo",
        "decrypt fifo --keep-container",
        "salvage fifo --to new.db",
        "salvage app.db --to fifo",
        "protector list fifo",
        "rekey fifo",
        "rewrap fifo --certificate pellucid",
        "upgrade fifo",
        "scan status fifo",
        "scan resume fifo",
        "scan verify fifo",
        "backup fifo --to new.bak",
        "restore one.bak --to fifo --replace",
        "run -- /usr/bin/python3 open.py fifo",
        "run -- /usr/bin/sqlite3 -readonly fifo .tables",
        "run -- /usr/bin/sqlite3 file:fifo?mode=ro .tables",
    ];
    let of_media = [
        "header fifo",
        "files fifo",
        "label fifo",
        "verify fifo",
        "verify fifo --open",
        "restore fifo --to new.db",
        "restore one.bak fifo --to new.db",
        "backup app.db --to fifo",
        "backup app.db --to fifo --append",
    ];
    let of_keys = [
        "encrypt plain.db --key-file fifo",
        "encrypt plain.db --passphrase-file fifo",
        "check app.db --key-file fifo",
        "cert import new --cert-file fifo",
        "cert import new --cert-file fifo --key-file fifo --password-file a.password",
        "cert export pellucid --cert-file new.pem --key-file new.key --password-file fifo",
        "instance import fifo --password-file a.password",
        "key backup service --file new.smk --password-file fifo",
        "key restore service --file fifo --password-file a.password",
    ];
    for words in of_databases.iter().chain(&of_media).chain(&of_keys) {
        let arguments: Vec<&str> = words.split(' ').collect();
        let told = in_time(&place, &arguments);
        assert!(![0, 3, 124].contains(&told.code), "{words}: {told:?}");
        assert!(told.code != 101, "{words}: {told:?}");
        // Usage is told before anything is opened: then nothing was shown.
        let is_usage = told.stderr.contains("Usage:");
        assert!(!is_usage, "{words}: {told:?}");
    }
    for name in ["app.db", "plain.db"] {
        for side in ["-journal", "-wal", "-pellucid", "-pellucid-of"] {
            let fifo = format!("{name}{side}");
            run(&place, &format!("mkfifo {fifo}"));
            for words in ["status", "check", "encrypt", "decrypt", "rekey", "scan verify"] {
                let mut arguments: Vec<&str> = words.split(' ').collect();
                arguments.push(name);
                let told = in_time(&place, &arguments);
                assert!(![3, 101, 124].contains(&told.code), "{fifo}, {words}: {told:?}");
            }
            for command in [
                &["backup", name, "--to", "side.bak"][..],
                &["salvage", name, "--to", "side.db"],
                &["run", "--", "/usr/bin/sqlite3", name, "SELECT 1"],
                &["run", "--", "/usr/bin/sqlite3", "-readonly", name, "SELECT 1"],
            ] {
                let told = in_time(&place, command);
                assert!(![3, 101, 124].contains(&told.code), "{fifo}, {command:?}: {told:?}");
                run(&place, "rm -f side.bak side.db");
            }
            run(&place, &format!("rm -f {fifo}"));
            let is_sealed = std::fs::read(place.path(name)).unwrap().starts_with(b"Pellucid");
            assert_eq!(is_sealed, name == "app.db", "{fifo}: a command has gone on over it");
        }
    }
    // What whoever starts the program hands over is no name in a directory.
    let shell = |line: &str| {
        let mut command = place.command("/bin/bash");
        said(command.args(["-c", &line.replace("pellucid ", &format!("{PELLUCID} "))]))
    };
    shell("pellucid verify - < one.bak").succeeded();
    shell("pellucid verify /dev/stdin < one.bak").succeeded();
    shell("pellucid encrypt plain.db --passphrase-file <(cat a.password)").succeeded();
    shell("pellucid check plain.db --passphrase-file /dev/stdin < a.password").succeeded();
}
