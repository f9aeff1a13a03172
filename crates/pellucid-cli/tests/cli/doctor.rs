//! Goal: `doctor` and `status` call out each thing that costs people their databases, by name and with what to do.
//!
//! Method: each trouble is made in a place of its own, and is gone again from the answer once it is mended.

use std::os::unix::fs::PermissionsExt;

use crate::support::{edit, Place, Said, PELLUCID};

fn told(place: &Place) -> Said {
    place.pellucid(&["doctor"])
}

#[track_caller]
fn calls_out(place: &Place, what: &str, todo: &str) {
    let said = told(place);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(
        said.stdout.lines().any(|line| line.starts_with("!!") && line.contains(what)),
        "{said:?}"
    );
    assert!(said.stdout.contains(todo), "{said:?}");
}

fn export(place: &Place) {
    place.secret("password", b"a Pa55word of some length");
    let words = "cert export pellucid --cert-file a.pem --key-file a.key --password-file password";
    place.pellucid(&words.split(' ').collect::<Vec<_>>()).succeeded();
}

#[test]
fn a_machine_in_order_has_nothing_called_out() {
    let place = Place::new();
    assert_eq!(told(&place).code, 0, "{:?}", told(&place));
    place.sealed("app.db", &[]);
    calls_out(&place, "`pellucid` has no backup", "pellucid cert export pellucid");
    export(&place);
    let said = told(&place);
    assert_eq!(said.code, 0, "{said:?}");
    let facts: serde_json::Value =
        serde_json::from_str(&place.pellucid(&["--json", "doctor"]).stdout).unwrap();
    assert!(facts["findings"].as_array().unwrap().iter().all(|one| one["todo"].is_null()));
}

/// It protects nothing here, and a second ago it came from a backup: what is said of it has to be true of it, too.
#[test]
fn nothing_is_said_of_databases_where_a_certificate_protects_none() {
    let place = Place::new();
    place.pellucid(&["cert", "create", "pellucid"]).succeeded();
    export(&place);
    place.pellucid(&["cert", "drop", "pellucid"]).succeeded();
    let words = "cert import own --cert-file a.pem --key-file a.key --password-file password";
    place.pellucid(&words.split(' ').collect::<Vec<_>>()).succeeded();
    calls_out(&place, "`own` has no backup that this keyring knows of", "pellucid cert export own");
    assert!(!told(&place).stdout.contains("every database"), "{:?}", told(&place));
}

#[test]
fn certificates_that_are_over_or_gone_are_called_out() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    export(&place);
    let create = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        place.pellucid(&[&["cert", "create"], &words[..]].concat()).succeeded();
    };
    create("over --start 2020-01-01 --expiry 2020-12-31");
    calls_out(&place, "`over` expired on 2020-12-31", "make another");
    create("early --start 2090-01-01 --expiry 2090-12-31");
    calls_out(&place, "`early` is valid only from 2090-01-01", "clock");
    for name in ["over", "early"] {
        place.pellucid(&["cert", "drop", name]).succeeded();
    }
    assert_eq!(told(&place).code, 0);
    place.pellucid(&["cert", "drop", "pellucid", "--force"]).succeeded();
    calls_out(&place, "its certificate `pellucid` is gone", "pellucid cert import");
}

#[test]
fn databases_that_are_not_what_the_keyring_knows_are_called_out() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    export(&place);
    let sealed = std::fs::read(place.path("app.db")).unwrap();
    edit(&place.path("app.db"), |bytes| bytes.truncate(9000));
    calls_out(&place, "truncated: 9000 of its first 16384", "restore a backup");
    std::fs::remove_file(place.path("app.db")).unwrap();
    assert_eq!(told(&place).code, 0, "one that is gone is nobody's trouble");
    place.plain("app.db");
    calls_out(&place, "app.db` is PLAIN", "pellucid accept");
    std::fs::write(place.path("app.db"), sealed).unwrap();
    assert_eq!(told(&place).code, 0);

    std::fs::remove_file(place.path("keys/keyring/master.key")).unwrap();
    calls_out(&place, "keyring", "pellucid key restore");
}

/// Keys that a group may read belong to the machine's instance; others are called out, and closed by what is said.
#[test]
fn keys_that_a_group_may_read_are_called_out() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    export(&place);
    for (name, mode) in [("keys", 0o750), ("keys/keyring", 0o750), ("keys/service.key", 0o640)] {
        std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    place.pellucid(&["check", "app.db"]).succeeded();
    let todo = format!("chmod -R g= {}", place.path("keys").display());
    calls_out(&place, "may read the keys", &todo);
    std::fs::write(place.path("conf"), format!("home = {}\n", place.path("keys").display()))
        .unwrap();
    let mut command = place.command(PELLUCID);
    let told =
        crate::support::said(command.env("PELLUCID_CONFIG", place.path("conf")).arg("doctor"));
    assert_eq!(told.code, 0, "the machine's: {told:?}");
    let mut close = place.command("/bin/sh");
    crate::support::said(close.args(["-c", &todo])).succeeded();
    assert_eq!(self::told(&place).code, 0);
    place.pellucid(&["check", "app.db"]).succeeded();
}

/// `status --check` is what monitoring runs: it calls out what is lost, too.
#[test]
fn status_calls_out_what_is_lost() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    export(&place);
    let check = || place.pellucid(&["status", "--check", "--quiet"]);
    assert_eq!((check().code, check().all()), (0, String::new()));
    let key = place.path("keys/service.key");
    std::fs::rename(&key, place.path("aside")).unwrap();
    let said = check();
    assert!(said.code == 4 && said.stderr.contains("service.key` is not there"), "{said:?}");
    // The cause is named to whoever opens the database as well; the certificate is there.
    let said = place.pellucid(&["check", "app.db"]);
    assert!(said.code == 1 && said.stderr.contains("service.key` is not there"), "{said:?}");
    std::fs::rename(place.path("aside"), &key).unwrap();
    place.pellucid(&["cert", "drop", "pellucid", "--force"]).succeeded();
    let said = check();
    assert!(said.code == 4 && said.stderr.contains("`pellucid` is gone"), "{said:?}");

    std::fs::write(place.path("conf"), format!("home = {}\n", place.path("lost").display()))
        .unwrap();
    for words in [&["status", "--check"][..], &["doctor"]] {
        let mut command = place.command(PELLUCID);
        command.env_remove("PELLUCID_HOME").env("PELLUCID_CONFIG", place.path("conf"));
        let told = crate::support::said(command.args(words));
        assert!(told.code == 4 && told.all().contains("conf` names"), "{told:?}");
    }
}

/// Known to one keyring, the database comes to another; there `check` makes it known, and its copies do not.
#[test]
fn a_database_from_elsewhere_is_known_after_a_check() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    export(&place);
    std::fs::rename(place.path("keys"), place.path("old-keys")).unwrap();
    place.secret("password", b"a Pa55word of some length");
    let import = "cert import ours --cert-file a.pem --key-file a.key --password-file password";
    place.pellucid(&import.split(' ').collect::<Vec<_>>()).succeeded();
    let known = || place.pellucid(&["status"]).succeeded();
    assert!(!known().contains("app.db"));
    place.pellucid(&["check", "app.db"]).succeeded();
    std::fs::copy(place.path("app.db"), place.path("copy.db")).unwrap();
    place.pellucid(&["check", "copy.db"]).succeeded();
    let path = place.path("app.db").display().to_string();
    assert!(known().contains(&path) && !known().contains("copy.db"), "{}", known());
    assert_eq!(place.pellucid(&["cert", "drop", "ours"]).code, 1);
}

/// Without a name, `status` shows what the keyring knows; as metrics, too.
#[test]
fn status_knows_the_databases_and_tells_prometheus() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.sealed("raw \"1\".db", &[]);
    place.pellucid(&["decrypt", "raw \"1\".db"]).succeeded();
    let shown = place.pellucid(&["status"]).succeeded();
    assert!(shown.contains("/app.db") && !shown.contains("raw "), "{shown}");
    let metrics = |words: &[&str]| {
        let told = place.pellucid(&[&["status", "--prometheus"], words].concat());
        assert_eq!(told.code, 0, "{told:?}");
        told.stdout
    };
    let value = |text: &str, start: &str| {
        let line = text.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no `{start}` in {text}"));
        line.rsplit(' ').next().unwrap().parse::<i64>().unwrap()
    };
    let text = metrics(&[]);
    let of_app = format!("{{database=\"{}\"}}", place.path("app.db").display());
    assert_eq!(value(&text, &format!("pellucid_database_encryption_state{of_app}")), 3);
    let bytes = std::fs::metadata(place.path("app.db")).unwrap().len();
    assert_eq!(value(&text, &format!("pellucid_database_size_bytes{of_app}")), bytes as i64);
    let certificate = "{certificate=\"pellucid\",thumbprint_sha256=\"";
    let backup = format!("pellucid_certificate_backup_timestamp_seconds{certificate}");
    assert_eq!(value(&text, &backup), 0);
    assert_eq!(value(&text, "pellucid_warnings "), 1);
    export(&place);
    let text = metrics(&["raw \"1\".db"]);
    assert!(value(&text, &backup) > 1_700_000_000);
    let expiry =
        value(&text, &format!("pellucid_certificate_expiry_timestamp_seconds{certificate}"));
    assert!(expiry > value(&text, &backup));
    assert_eq!(
        value(&text, "pellucid_database_encryption_state{database=\"raw \\\"1\\\".db\"}"),
        0
    );
    assert_eq!(value(&text, "pellucid_warnings "), 1, "one plain database");
    let told = place.pellucid(&["status", "--prometheus", "--check", "raw \"1\".db"]);
    assert_eq!(told.code, 4, "{told:?}");
}
