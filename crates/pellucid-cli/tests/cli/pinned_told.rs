//! Goal: whoever looks is told which databases the keyring does not expect yet, which of those it expects are missing, and,
//! where a statement is refused, why and what accepts it.
//!
//! Method: files are removed and exchanged by hand, and a keyring is taken away while a database is made; then `status`,
//! `doctor` and statements are asked.

use crate::support::{Place, Said};

fn told(place: &Place, arguments: &[&str]) -> Said {
    place.pellucid(arguments)
}

#[test]
fn a_database_that_is_not_pinned_is_told_until_it_was_opened_once() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    std::fs::copy(place.path("app.db"), place.path("copy.db")).unwrap();
    let status = told(&place, &["status", "--check", "copy.db"]);
    assert!(status.code == 4 && status.stderr.contains("`copy.db`: not pinned"), "{status:?}");
    assert!(status.stderr.contains("open it once"), "{status:?}");
    assert!(!told(&place, &["status", "app.db"]).stderr.contains("not pinned"));
    told(&place, &["check", "copy.db"]).succeeded();
    assert!(!told(&place, &["status", "copy.db"]).stderr.contains("not pinned"));
}

/// Of root every keyring can be written: its directory is made one that cannot be, instead.
#[test]
fn a_pin_that_is_missing_is_made_at_the_first_opening_that_may_write() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    // As where the keyring could not be written when the database was sealed.
    for pin in std::fs::read_dir(place.path("keys/keyring/paths")).unwrap() {
        std::fs::remove_file(pin.unwrap().path()).unwrap();
    }
    let query = ["run", "--", "/usr/bin/sqlite3", "app.db", "SELECT count(*) FROM t"];
    for words in [&["status", "--check"][..], &["doctor"]] {
        let said = told(&place, words);
        assert!(said.code == 4 && said.all().contains("not pinned"), "{said:?}");
    }
    told(&place, &query).succeeded();
    for words in [&["status"][..], &["doctor"]] {
        assert!(!told(&place, words).all().contains("not pinned"), "{words:?}");
    }
}

#[test]
fn a_pinned_file_that_is_missing_is_told_and_one_that_was_renamed_is_not() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.sealed("other.db", &[]);
    std::fs::rename(place.path("other.db"), place.path("moved.db")).unwrap();
    told(&place, &["check", "moved.db"]).succeeded();
    std::fs::remove_file(place.path("app.db")).unwrap();
    for words in [&["status"][..], &["--json", "status"], &["doctor"]] {
        let said = told(&place, words);
        let all = said.all().replace('\n', " ");
        assert!(all.contains("/app.db") && all.contains("missing"), "{said:?}");
        assert!(!all.contains("other.db"), "{said:?}");
    }
    told(&place, &["accept", "--gone", "--under", "."]).succeeded();
    assert!(!told(&place, &["status"]).all().contains("is missing"));
}

#[test]
fn a_statement_says_why_a_path_is_refused_and_what_accepts_it() {
    let place = Place::new();
    let path = place.path("app.db").display().to_string();
    place
        .pellucid(&[
            "sql",
            "-Q",
            &format!("CREATE DATABASE app ON (NAME = app, FILENAME = '{path}')"),
        ])
        .succeeded();
    told(&place, &["run", "--", "/usr/bin/sqlite3", "app.db", "CREATE TABLE t(a)"]).succeeded();
    told(&place, &["encrypt", "app.db"]).succeeded();
    let sealed = std::fs::read(place.path("app.db")).unwrap();
    told(&place, &["rekey", "app.db"]).succeeded();
    place.sqlite3("plain.db", "CREATE TABLE t(a)").succeeded();
    let plain = std::fs::read(place.path("plain.db")).unwrap();
    let backup = format!("BACKUP DATABASE app TO DISK = '{path}.bak'");
    for content in [Some(plain), Some(sealed), Some(Vec::new()), None] {
        std::fs::remove_file(place.path("app.db")).unwrap_or_default();
        if let Some(content) = &content {
            std::fs::write(place.path("app.db"), content).unwrap();
        }
        let read = Some("SELECT * FROM app.dbo.t").filter(|_| content != Some(Vec::new()));
        for statement in [&backup[..]].into_iter().chain(read) {
            let said = place.pellucid(&["sql", "-Q", statement]);
            let all = said.all();
            let accepts = format!("pellucid accept '{path}'");
            assert!(all.contains("Msg 50008") && all.contains(&accepts), "{statement}: {said:?}");
        }
        assert!(!place.path("app.db.bak").exists());
    }
}

/// A pin is believed only by the key that made it, so that one which cannot be read refuses; the error says what brings the key.
#[test]
fn a_key_file_opens_a_pinned_database_only_where_its_pin_can_be_read() {
    let place = Place::new();
    place.secret("k", &[7; 32]);
    place.secret("pass", b"correct horse");
    place.plain("app.db");
    told(&place, &["encrypt", "app.db", "--key-file", "k"]).succeeded();
    told(&place, &["init"]);
    told(&place, &["check", "app.db", "--key-file", "k"]).succeeded();
    told(&place, &["key", "bind", "--passphrase-file", "pass"]).succeeded();
    let read =
        ["run", "--", "/usr/bin/sqlite3", "file:app.db?key_file=k", "SELECT count(*) FROM t"];
    let refused = told(&place, &read);
    assert!(refused.code != 0, "{refused:?}");
    assert!(refused.stderr.contains("PELLUCID_SERVICE_PASSPHRASE_FILE"), "{refused:?}");
    let mut command = place.command(crate::support::PELLUCID);
    command.args(read).env("PELLUCID_SERVICE_PASSPHRASE_FILE", place.path("pass"));
    crate::support::said(&mut command).succeeded();
}

#[test]
fn a_removed_copy_is_forgotten_and_holds_no_rotation_up() {
    for words in [&["accept", "copy.db"][..], &["accept", "--gone", "--under", "."]] {
        let place = Place::new();
        place.sealed("app.db", &[]);
        let sql = "VACUUM INTO 'copy.db'";
        place.pellucid(&["run", "--", "sqlite3", "app.db", sql]).succeeded();
        place.pellucid(&["check", "copy.db"]).succeeded();
        std::fs::remove_file(place.path("copy.db")).unwrap();
        place.pellucid(&["cert", "create", "next"]).succeeded();
        let rotate = ["rewrap", "--all-under", "pellucid", "--certificate", "next"];
        let before = place.pellucid(&rotate);
        assert!(before.code == 1 && before.stderr.contains("copy.db"), "{before:?}");
        place.pellucid(words).succeeded();
        place.pellucid(&["rewrap", "--all-under", "pellucid", "--certificate", "next"]).succeeded();
        let dropped = place.pellucid(&["cert", "drop", "pellucid"]);
        assert!(!dropped.all().contains("copy.db"), "{dropped:?}");
        place.pellucid(&["check", "app.db"]).succeeded();
    }
}
