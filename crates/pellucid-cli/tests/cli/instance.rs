//! Goal: an instance goes to another machine in one sealed file: databases open there, nothing that is there is lost, and
//! whoever finds the file has nothing.
//!
//! Method: two instances of one place. Every byte of a bundle is flipped and refused; wrong password, damage and another
//! kind of file are told apart; a marker of each private key is looked for in everything that is written.

use serde_json::Value;

use crate::keys::{place, PASSWORD};
use crate::support::{edit, said, Place, Said, PELLUCID};

/// In the instance in the directory `home`; words split at blanks.
fn at(place: &Place, home: &str, words: &str) -> Said {
    let mut command = place.command(PELLUCID);
    said(command.env("PELLUCID_HOME", place.path(home)).args(words.split(' ')))
}

#[track_caller]
fn works(place: &Place, home: &str, words: &str) -> String {
    at(place, home, words).succeeded()
}

/// Refused with this exit status and these words; nothing was changed but for an empty lock.
#[track_caller]
fn refused(place: &Place, home: &str, words: &str, exit: i32, kind: &str, text: &str) {
    let before = place.snapshot();
    let told = at(place, home, &format!("--json {words}"));
    assert_eq!(told.code, exit, "{words}: {told:?}");
    let facts: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(facts["kind"], kind, "{words}: {told:?}");
    assert!(told.stderr.contains(text), "{words}: {told:?}");
    let mut after = place.snapshot();
    after.retain(|path, _| before.contains_key(path) || !path.ends_with("keyring/lock"));
    assert_eq!(before, after, "{words}: something was changed");
}

/// What became of each thing: kind of thing and fate.
fn fates(told: &str) -> Vec<(String, String)> {
    let facts: Value = serde_json::from_str(told).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let entries = facts["entries"].as_array().unwrap();
    entries.iter().map(|entry| (text(&entry["what"]), text(&entry["fate"]))).collect()
}

fn is(what: &str, fate: &str) -> (String, String) {
    (what.to_owned(), fate.to_owned())
}

#[test]
fn a_database_opens_where_the_instance_went() {
    let place = place();
    place.sealed("app.db", &[]);
    let told = at(&place, "keys", "instance export --to keys.bundle --password-file password");
    assert!(told.code == 0 && told.stdout.contains("wrote  instance   keys.bundle"), "{told:?}");
    assert!(!works(&place, "keys", "cert list").contains("NEVER"), "the bundle is a backup");
    let import = "instance import keys.bundle --password-file password";

    let looked = works(&place, "new", &format!("--json {import} --dry-run"));
    assert!(!place.path("new").exists(), "a look makes nothing");
    let all = [is("database master key", "new"), is("certificate", "new"), is("database", "new")];
    assert_eq!(fates(&looked), all);
    assert_eq!(fates(&works(&place, "new", &format!("--json {import}"))), all);
    works(&place, "new", "check app.db");
    assert!(works(&place, "new", "status").contains("/app.db"), "it knows the database");
    let told = at(&place, "new", "cert drop pellucid");
    assert!(told.stderr.contains("(33127)"), "{told:?}");
    let events = works(&place, "new", "events");
    for event in [
        "instance `keys.bundle` imported",
        "certificate `pellucid` imported",
        "service master key created",
    ] {
        assert!(events.contains(event), "{event}: {events}");
    }
    let events = works(&place, "keys", "events");
    for event in ["instance `keys.bundle` exported", "private key `pellucid` backed up"] {
        assert!(events.contains(event), "{event}: {events}");
    }
    let again = fates(&works(&place, "new", &format!("--json {import}")));
    assert!(again.iter().all(|(_, fate)| fate == "same"), "{again:?}");
    works(&place, "new", "key regenerate service");
    works(&place, "new", "check app.db");
}

#[test]
fn names_that_something_else_has_are_refused_and_named() {
    let place = place();
    place.sealed("app.db", &[]);
    for name in ["first", "second"] {
        works(&place, "keys", &format!("cert create {name}"));
        works(&place, "new", &format!("cert create {name}"));
    }
    works(&place, "keys", "instance export --to keys.bundle --password-file password");
    let import = "instance import keys.bundle --password-file password";
    refused(&place, "new", import, 1, "message", "'first', 'second' already exists");
    let looked = at(&place, "new", &format!("{import} --dry-run"));
    assert!(looked.stdout.matches("CONFLICT").count() == 2, "{looked:?}");
    // What is in the way goes under another name; the rest comes in.
    for name in ["first", "second"] {
        works(&place, "new", &format!("cert drop {name}"));
    }
    let fates = fates(&works(&place, "new", &format!("--json {import}")));
    assert_eq!(fates[0], is("database master key", "kept"));
    assert_eq!(fates.iter().filter(|(_, fate)| fate == "new").count(), 4, "{fates:?}");
    works(&place, "new", "check app.db");
}

#[test]
fn a_bundle_for_a_certificate_opens_there_only_and_says_that_it_proves_nothing() {
    let place = place();
    place.sealed("app.db", &[]);
    works(&place, "new", "cert create inbox");
    works(&place, "new", "cert export inbox --cert-file inbox.pem");
    works(&place, "keys", "cert import inbox --cert-file inbox.pem");
    works(&place, "keys", "instance export --to keys.bundle --certificate inbox");
    let told = at(&place, "new", "instance import keys.bundle");
    assert!(told.code == 0 && told.stderr.contains("compare the thumbprints"), "{told:?}");
    works(&place, "new", "check app.db");
    refused(&place, "third", "instance import keys.bundle", 1, "missing-key", "inbox");
}

#[test]
fn a_bundle_under_ones_own_certificate_is_no_backup_of_it() {
    let place = place();
    place.sealed("app.db", &[]);
    let export = |name: &str| {
        let words = format!("instance export --to {name} --certificate pellucid");
        let told = at(&place, "keys", &words);
        assert_eq!(told.code, 0, "{told:?}");
        told.stderr
    };
    let told = export("first.bundle");
    assert!(told.contains("no backup") && told.contains("cert export pellucid"), "{told}");
    assert!(works(&place, "keys", "cert list").contains("NEVER"));
    assert!(!works(&place, "keys", "events").contains("backed up"));
    works(
        &place,
        "keys",
        "cert export pellucid --cert-file p.pem --key-file p.key --password-file password",
    );
    assert_eq!(export("second.bundle"), "");
}

#[test]
fn wrong_passwords_damage_and_other_files_are_told_apart() {
    let place = place();
    place.sealed("app.db", &[]);
    let export = "instance export --to keys.bundle --password-file";
    refused(&place, "keys", &format!("{export} short"), 1, "message", "(33062)");
    refused(&place, "none", &format!("{export} password"), 1, "missing-key", "no keyring");
    works(&place, "keys", &format!("{export} password"));
    refused(&place, "keys", &format!("{export} password"), 1, "message", "(15240)");
    let import = "instance import keys.bundle";
    refused(&place, "new", import, 1, "missing-key", "--password-file");
    refused(
        &place,
        "new",
        &format!("{import} --password-file wrong"),
        1,
        "missing-key",
        "wrong passphrase",
    );
    let other = "instance import app.db --password-file password";
    refused(&place, "new", other, 1, "misuse", "not a bundle");
    let gone = "instance import nothing --password-file password";
    refused(&place, "new", gone, 1, "io", "nothing");
    let bytes = std::fs::read(place.path("keys.bundle")).unwrap();
    for at in (16..bytes.len()).step_by(97) {
        edit(&place.path("keys.bundle"), |bytes| bytes[at] ^= 1);
        let told = format!("{import} --password-file password");
        refused(&place, "new", &told, 3, "corrupt", "torn or damaged");
        std::fs::write(place.path("keys.bundle"), &bytes).unwrap();
    }
}

/// PKCS#8 of an RSA key begins the same in each: what is looked for is the key's own bytes.
#[test]
fn no_private_key_lies_in_clear_anywhere() {
    let place = place();
    place.sealed("app.db", &[]);
    works(
        &place,
        "keys",
        "cert export pellucid --cert-file p.pem --key-file p.key --password-file password",
    );
    let mut command = place.command("/usr/bin/openssl");
    let pass = format!("pass:{PASSWORD}");
    let args = ["pkcs8", "-in", "p.key", "-passin", &pass, "-outform", "DER", "-nocrypt", "-topk8"];
    said(command.args(args).args(["-out", "key.der"])).succeeded();
    let key = std::fs::read(place.path("key.der")).unwrap();
    let marker = key[key.len() / 2..][..24].to_vec();
    let found = |place: &Place| {
        let holds = |path: &std::path::Path| {
            std::fs::read(path).unwrap().windows(marker.len()).any(|window| window == marker)
        };
        place.snapshot().into_keys().filter(|path| holds(path)).count()
    };
    assert_eq!(found(&place), 1, "the marker is in the file that openssl made");
    std::fs::remove_file(place.path("key.der")).unwrap();
    // Whatever is written on the way is written by one of these calls.
    let trace = |home: &str, words: &str| {
        let mut command = place.command("/usr/bin/strace");
        command.env("PELLUCID_HOME", place.path(home));
        command.args([
            "-f",
            "-xx",
            "-s",
            "100000",
            "-e",
            "trace=write,pwrite64,writev",
            "-o",
            "trace",
        ]);
        said(command.arg(PELLUCID).args(words.split(' '))).succeeded();
        std::fs::read_to_string(place.path("trace")).unwrap()
    };
    if !std::path::Path::new("/usr/bin/strace").exists() {
        println!("no strace here: only what is left on disk is looked at");
        works(&place, "keys", "instance export --to keys.bundle --password-file password");
        works(&place, "new", "instance import keys.bundle --password-file password");
    } else {
        let shown: String = marker.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        for (home, words) in [
            ("keys", "instance export --to keys.bundle --password-file password"),
            ("new", "instance import keys.bundle --password-file password"),
        ] {
            let trace = trace(home, words);
            assert!(
                trace.contains("\\x50\\x65\\x6c\\x6c\\x75\\x63\\x69\\x64"),
                "nothing was traced"
            );
            assert!(!trace.contains(&shown), "{words}: a private key was written in clear");
        }
    }
    assert_eq!(found(&place), 0);
}
