//! Goal: a backup set in clear, which anybody can make, is believed nowhere that sealed ones belong: not in their place, not
//! among them, not of a database that is known as encrypted, and not where everything has to be sealed.
//!
//! Method: the same attacks by somebody who can write to the files and has no key, and for each the commands and statements
//! that read media; then the same with leave, and plain databases that nobody knows as anything else.

use std::path::Path;

use crate::support::{edit, said, said_with, sha256, Place, Said, PELLUCID};

/// Sealed `app.db` and a backup of it, and the attacker's plain database and backup under the same name.
fn scene() -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    // Nothing is put behind sets that are signed, whatever the flag says.
    place.pellucid(&["backup", "app.db", "--unsigned", "--to", "app.bak"]).succeeded();
    std::fs::create_dir(place.path("evil")).unwrap();
    place
        .sqlite3("evil/app.db", "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'mallory')")
        .succeeded();
    theirs(&place, &["backup", "evil/app.db", "--to", "evil.bak"]).succeeded();
    place
}

/// With another instance, which knows nothing of this one's.
fn theirs(place: &Place, words: &[&str]) -> Said {
    said(place.command(PELLUCID).env("PELLUCID_HOME", place.path("evil/keys")).args(words))
}

/// Sets or clears the flag of the media header that says that sets are sealed (docs/format.md, "Media header").
fn flag(path: &Path, sealed: bool) {
    edit(path, |bytes| {
        bytes[26] = bytes[26] & !2 | u8::from(sealed) << 1;
        let sum = sha256(&bytes[..4064]);
        bytes[4064..4096].copy_from_slice(&sum);
    });
}

type Attack = fn(&Place);

/// What is done to `app.bak`; how many sets it has then, the last one the attacker's; what says so.
const ATTACKS: [(&str, Attack, u32, &str); 5] = [
    (
        "replaced",
        |place| replace(place, "evil.bak"),
        1,
        "the history knows sealed sets of this name",
    ),
    (
        "appended, the flag as it was",
        |place| {
            append(place);
            flag(&place.path("app.bak"), true);
        },
        2,
        "its media are of sealed sets",
    ),
    ("appended, the flag cleared", append, 2, "its media are of sealed sets"),
    (
        "replaced by a header that says sealed",
        |place| {
            replace(place, "evil.bak");
            flag(&place.path("app.bak"), true);
        },
        1,
        "its media are of sealed sets",
    ),
    (
        "replaced by one in which the name is another",
        |place| {
            std::fs::rename(place.path("evil/app.db"), place.path("evil/x.db")).unwrap();
            theirs(place, &["backup", "evil/x.db", "--to", "x.bak"]).succeeded();
            replace(place, "x.bak");
        },
        1,
        "the history knows sealed sets of this name",
    ),
];

fn replace(place: &Place, by: &str) {
    std::fs::copy(place.path(by), place.path("app.bak")).unwrap();
}

fn append(place: &Place) {
    flag(&place.path("app.bak"), false);
    theirs(place, &["backup", "evil/app.db", "--to", "app.bak", "--append"]).succeeded();
}

fn sql(place: &Place, script: &str) -> Said {
    said_with(place.command(PELLUCID).args(["sql", "-b"]), script)
}

#[track_caller]
fn refused(said: &Said, code: i32, why: &str) {
    assert_eq!(said.code, code, "{said:?}");
    assert!(said.all().contains("NOT sealed") && said.all().contains(why), "{why}: {said:?}");
}

#[test]
fn in_the_place_of_sealed_sets_or_among_them_it_is_refused_everywhere() {
    for (attack, make, sets, why) in ATTACKS {
        println!("{attack}");
        let place = scene();
        make(&place);
        refused(&place.pellucid(&["restore", "app.bak", "--to", "new.db"]), 1, why);
        refused(&place.pellucid(&["restore", "app.bak", "--to", "new.db", "--decrypted"]), 1, why);
        for more in [&[][..], &["--open"], &["--check"], &["--open", "--check"]] {
            let said = place.pellucid(&[&["verify", "app.bak"], more].concat());
            refused(&said, 4, why);
            let valid = said.stdout.matches("is valid").count() as u32;
            assert_eq!(valid, sets - 1, "{more:?}: {said:?}");
            let facts = place.pellucid(&[&["--json", "verify", "app.bak"], more].concat()).stdout;
            let last = facts.lines().last().unwrap();
            assert!(
                last.contains("\"valid\":false") && last.contains("\"sealed\":false"),
                "{facts}"
            );
        }
        assert!(place.pellucid(&["header", "app.bak"]).stderr.contains("NOT sealed"));
        let from = format!("FROM DISK = '{}' WITH FILE = {sets}", place.path("app.bak").display());
        for statement in ["RESTORE DATABASE other", "RESTORE VERIFYONLY"] {
            let said = sql(&place, &format!("{statement} {from}\nGO\n"));
            refused(&said, 1, why);
            assert!(said.all().contains("terminating abnormally"), "{said:?}");
        }
        for statement in ["RESTORE HEADERONLY", "RESTORE FILELISTONLY"] {
            let said = sql(&place, &format!("{statement} {from}\nGO\n"));
            assert!(said.code == 0 && said.all().contains("NOT sealed"), "{said:?}");
        }
        // It is not learned either: known, it would be one that was made here.
        let said = place.pellucid(&["history", "rebuild", "app.bak"]);
        assert!(said.stderr.contains("it is not written down"), "{said:?}");
        refused(&place.pellucid(&["restore", "app.bak", "--to", "new.db"]), 1, why);
        assert!(!place.path("new.db").exists());

        // Who asks for it gets it, and is told what it is.
        let said = place.pellucid(&["verify", "app.bak", "--open", "--allow-clear"]);
        assert!(said.code == 0 && said.stdout.contains("NOT sealed"), "{said:?}");
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_ALLOW_CLEAR", "1").args(["sql", "-b"]);
        let said = said_with(&mut command, &format!("RESTORE DATABASE other {from}\nGO\n"));
        assert!(said.code == 0 && said.all().contains("NOT sealed"), "{said:?}");
        let said = place.pellucid(&["restore", "app.bak", "--to", "new.db", "--allow-clear"]);
        assert!(said.code == 0 && said.stderr.contains("NOT sealed"), "{said:?}");
        let read = place.sqlite3("new.db", "SELECT b FROM t").succeeded();
        assert_eq!(read, "mallory\n", "{attack}");
    }
}

#[test]
fn under_whatever_name_the_file_is_read_it_is_the_one_that_is_known() {
    let place = scene();
    std::fs::rename(place.path("evil/app.db"), place.path("evil/x.db")).unwrap();
    theirs(&place, &["backup", "evil/x.db", "--to", "x.bak"]).succeeded();
    replace(&place, "x.bak");
    std::os::unix::fs::symlink("app.bak", place.path("latest.bak")).unwrap();
    std::os::unix::fs::symlink(".", place.path("folder")).unwrap();
    let why = "the history knows sealed sets of this name";
    for name in ["app.bak", "evil/../app.bak", "latest.bak", "folder/app.bak"] {
        refused(&place.pellucid(&["restore", name, "--to", "new.db"]), 1, why);
        refused(&place.pellucid(&["verify", name]), 4, why);
        let from = format!("FROM DISK = '{}'", place.path(name).display());
        for statement in ["RESTORE DATABASE other", "RESTORE VERIFYONLY"] {
            refused(&sql(&place, &format!("{statement} {from}\nGO\n")), 1, why);
        }
    }
    assert!(!place.path("new.db").exists());
}

#[test]
fn of_a_database_that_is_known_as_encrypted_it_is_refused_under_any_name() {
    let place = scene();
    // Under a name that nobody knows.
    let known = "the history knows backups of `app` that are";
    refused(&place.pellucid(&["restore", "evil.bak", "--to", "new.db"]), 1, known);
    refused(&place.pellucid(&["verify", "evil.bak"]), 4, known);
    // To where the keyring knows another one, which is gone; to where it is.
    std::fs::rename(place.path("evil/app.db"), place.path("evil/x.db")).unwrap();
    theirs(&place, &["backup", "evil/x.db", "--to", "x.bak"]).succeeded();
    let over = ["restore", "x.bak", "--to", "app.db", "--replace"];
    assert!(place.pellucid(&over).stderr.contains("`--decrypted` says that a plain one"));
    refused(&place.pellucid(&[&over[..], &["--decrypted"]].concat()), 1, "app.db` is");
    let pages = place.pellucid(&["restore", "x.bak", "--to", "app.db", "--page", "2"]);
    refused(&pages, 1, "app.db` is");
    std::fs::rename(place.path("app.db"), place.path("gone.db")).unwrap();
    refused(
        &place.pellucid(&["restore", "x.bak", "--to", "app.db"]),
        1,
        "the keyring knows the database",
    );
    assert!(!place.path("app.db").exists());
    // Of a path that it knows.
    theirs(&place, &["restore", "x.bak", "--to", "app.db"]).succeeded();
    theirs(&place, &["backup", "app.db", "--to", "y.bak"]).succeeded();
    std::fs::remove_file(place.path("app.db")).unwrap();
    refused(
        &place.pellucid(&["restore", "y.bak", "--to", "new.db"]),
        1,
        "the keyring knows the database",
    );
    // Without a history the keyring knows it all the same.
    std::fs::remove_file(place.path("keys/msdb.db")).unwrap();
    refused(&place.pellucid(&["verify", "y.bak"]), 4, "the keyring knows the database");
    // Through a store.
    let url = format!("file://{}", place.path("y.bak").display());
    refused(
        &place.pellucid(&["restore", &url, "--to", "new.db"]),
        1,
        "the keyring knows the database",
    );
    assert!(!place.path("new.db").exists());
}

#[test]
fn where_everything_has_to_be_sealed_none_is_taken() {
    let place = Place::new();
    place.plain("app.db");
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    let run =
        |words: &[&str]| said(place.command(PELLUCID).env("PELLUCID_REQUIRE", "1").args(words));
    refused(&run(&["restore", "app.bak", "--to", "new.db"]), 1, "PELLUCID_REQUIRE=1");
    refused(&run(&["verify", "app.bak", "--open", "--check"]), 4, "PELLUCID_REQUIRE=1");
    assert!(!place.path("new.db").exists());
    run(&["restore", "app.bak", "--to", "new.db", "--allow-clear"]).succeeded();
}

#[test]
fn a_chain_is_sealed_as_a_whole_or_in_clear_as_a_whole() {
    let place = Place::new();
    place.plain("app.db");
    place.pellucid(&["backup", "app.db", "--to", "clear.bak"]).succeeded();
    place.pellucid(&["init"]).succeeded();
    place.pellucid(&["cert", "create", "backups"]).succeeded();
    let differential = ["--differential", "--base", "clear.bak", "--certificate", "backups"];
    let differential = [&["backup", "app.db", "--to", "d.bak"], &differential[..]].concat();
    let said = place.pellucid(&differential);
    assert!(
        said.code == 1 && said.stderr.contains("a full backup has to come between"),
        "{said:?}"
    );
    assert!(!place.path("d.bak").exists());
    // One that was made all the same, as older versions did.
    said_with(place.command(PELLUCID).env("PELLUCID_ALLOW_CLEAR", "1").args(differential), "")
        .succeeded();
    let restore = ["restore", "d.bak", "--base", "clear.bak", "--to", "new.db"];
    refused(&place.pellucid(&restore), 1, "");
    assert!(!place.path("new.db").exists());
    place.pellucid(&[&restore[..], &["--allow-clear"]].concat()).succeeded();
}

#[test]
fn plain_databases_go_on_as_ever() {
    let place = scene();
    place.plain("other.db");
    place.pellucid(&["backup", "other.db", "--to", "other.bak"]).succeeded();
    let said = place.pellucid(&["verify", "other.bak"]);
    assert!(
        said.code == 0 && said.stdout.contains("It is NOT sealed: anybody can have made it."),
        "{said:?}"
    );
    let said = place.pellucid(&["verify", "other.bak", "--open", "--check"]);
    assert!(said.code == 0 && !said.stdout.contains("its key"), "{said:?}");
    place.pellucid(&["restore", "other.bak", "--to", "back.db"]).succeeded();
    // One that has the name of an encrypted one, and that the history knows by its path.
    std::fs::create_dir(place.path("far")).unwrap();
    place.plain("far/app.db");
    place.pellucid(&["backup", "far/app.db", "--to", "far.bak"]).succeeded();
    place.pellucid(&["restore", "far.bak", "--to", "far.db"]).succeeded();
    // And what was sealed is said to be, with what opened it.
    let said = place.pellucid(&["verify", "app.bak", "--open"]);
    assert!(
        said.code == 0 && said.stdout.contains("with its key, by certificate `pellucid`"),
        "{said:?}"
    );
    // Decrypted for good, a database is a plain one.
    place.pellucid(&["decrypt", "app.db"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "plain.bak"]).succeeded();
    place.pellucid(&["restore", "plain.bak", "--to", "again.db"]).succeeded();
}

#[test]
fn a_statement_puts_none_in_the_place_of_an_encrypted_database() {
    let place = scene();
    std::fs::create_dir(place.path("evil/other")).unwrap();
    place.sqlite3("evil/other/x.db", "CREATE TABLE t(a)").succeeded();
    theirs(&place, &["backup", "evil/other/x.db", "--to", "x.bak"]).succeeded();
    let path = |name: &str| place.path(name).display().to_string();
    let before = std::fs::read(place.path("app.db")).unwrap();
    let script = format!("RESTORE DATABASE app FROM DISK = '{}' WITH REPLACE\nGO\n", path("x.bak"));
    refused(&sql(&place, &script), 1, "the database 'app' is");
    assert_eq!(std::fs::read(place.path("app.db")).unwrap(), before);
    // Nor where it was.
    std::fs::rename(place.path("app.db"), place.path("gone.db")).unwrap();
    refused(&sql(&place, &script), 1, "the keyring knows the database");
    assert!(!place.path("app.db").exists());
}
