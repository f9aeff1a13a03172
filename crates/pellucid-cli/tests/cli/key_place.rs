//! Goal: a service master key that lies in clear beside what it protects is called that, and one command binds it elsewhere;
//! whenever that command is killed, the databases open.
//!
//! Method: each command that looks at databases, on one file system and on two; each way of binding, killed before each call
//! that changes a file of the instance. systemd-creds(1) is stood in for by a program that opens what it has sealed, or
//! something else.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::support::token::place;
use crate::support::{kill_stride, said, Place, Said, PELLUCID};

const BESIDE: &str = "lies in clear on the same file system";

/// With the passphrase that the key may be bound to, and a systemd-creds in the place's own `bin`.
fn pellucid(place: &Place, words: &str) -> Said {
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_SERVICE_PASSPHRASE_FILE", place.path("phrase"));
    command.env("PATH", format!("{}:/usr/bin:/bin", place.path("bin").display()));
    said(command.args(words.split(' ')))
}

/// A tool that turns bytes around, twice the same; `decrypt` is what it does to open them.
fn tool(place: &Place, decrypt: &str) {
    let script = format!("#!/bin/sh\ncase $1 in has-tpm2) exit 1;; encrypt) tr '\\000-\\377' '\\200-\\377\\000-\\177';; *) {decrypt};; esac\n");
    place.script("bin/systemd-creds", &script);
}

const OPENS: &str = "tr '\\200-\\377\\000-\\177' '\\000-\\377'";

#[test]
fn a_passphrase_beside_the_key_that_it_opens_is_called_that() {
    let place = Place::new();
    place.plain("app.db");
    pellucid(&place, "encrypt app.db").succeeded();
    place.secret("keys/phrase", b"correct horse battery");
    place.secret("phrase", b"correct horse battery");
    pellucid(&place, "key bind --passphrase-file keys/phrase").succeeded();
    for (file, is_beside) in [("keys/phrase", true), ("phrase", false)] {
        for words in ["status", "doctor"] {
            let mut command = place.command(PELLUCID);
            command.env("PELLUCID_SERVICE_PASSPHRASE_FILE", place.path(file)).arg(words);
            let told = said(&mut command).stdout;
            assert_eq!(
                told.contains("passphrase of the service master key lies beside"),
                is_beside,
                "{told}"
            );
        }
    }
}

#[test]
fn the_key_beside_the_lock_is_called_that_where_somebody_looks() {
    let place = Place::new();
    place.secret("phrase", b"correct horse battery");
    place.secret("password", b"a Pa55word of some length");
    place.plain("app.db");
    let told = pellucid(&place, "encrypt app.db");
    assert!(told.stdout.contains(BESIDE) && told.stdout.contains("pellucid key bind"), "{told:?}");
    pellucid(
        &place,
        "cert export pellucid --cert-file c.pem --key-file c.key --password-file password",
    )
    .succeeded();
    for words in ["status", "status app.db", "status --check", "doctor"] {
        let told = pellucid(&place, words);
        assert!(
            told.stdout.contains(BESIDE) && told.stdout.contains("pellucid key bind"),
            "{told:?}"
        );
        assert!(!told.stderr.contains(BESIDE), "it is no warning: {told:?}");
        assert_eq!(
            told.code,
            i32::from(words == "doctor" && told.stdout.contains("!!")) * 4,
            "{told:?}"
        );
    }
    for words in ["status", "doctor"] {
        let json = pellucid(&place, &format!("--json {words}")).stdout;
        assert!(json.contains(BESIDE), "{json}");
    }
    assert!(!pellucid(&place, "--quiet status").all().contains(BESIDE));
    // What a passphrase protects is nothing to the keyring.
    place.plain("phrase.db");
    let told = pellucid(&place, "encrypt phrase.db --passphrase-file phrase");
    assert!(!told.all().contains(BESIDE), "{told:?}");
    assert!(!pellucid(&place, "status phrase.db").all().contains(BESIDE));
    pellucid(&place, "key bind --passphrase-file phrase").succeeded();
    for words in ["status", "doctor"] {
        assert!(!pellucid(&place, words).all().contains(BESIDE), "{words}");
    }
}

#[test]
fn a_keyring_on_another_file_system_is_none_beside_the_lock() {
    let other = Path::new("/dev/shm");
    let place = place();
    let device = |path: &Path| path.metadata().map(|found| found.dev()).ok();
    let Ok(elsewhere) = tempfile::tempdir_in(other) else {
        println!("/dev/shm takes no directory: nothing is tested");
        return;
    };
    if device(elsewhere.path()) == device(&place.path("app.db")) {
        println!("there is one file system: nothing is tested");
        return;
    }
    place.plain("one.db");
    let home = elsewhere.path().join("keys");
    for words in ["encrypt one.db", "status one.db", "doctor"] {
        let mut command = place.command(PELLUCID);
        let told = said(command.env("PELLUCID_HOME", &home).args(words.split(' ')));
        assert!(!told.all().contains(BESIDE), "{told:?}");
    }
}

#[test]
fn a_bound_key_needs_its_passphrase_and_comes_back() {
    let place = place();
    let key = std::fs::read(place.path("keys/service.key")).unwrap();
    let told = pellucid(&place, "key bind --passphrase-file phrase").succeeded();
    for word in ["PELLUCID_SERVICE_PASSPHRASE_FILE=", "may stay on the medium"] {
        assert!(told.contains(word), "{told}");
    }
    assert!(!place.path("keys/service.key").exists());
    for (path, _) in place.snapshot() {
        let holds = std::fs::read(&path).is_ok_and(|all| all.windows(32).any(|part| part == key));
        assert!(!holds, "{}", path.display());
    }
    pellucid(&place, "check app.db").succeeded();
    let told = place.pellucid(&["check", "app.db"]);
    assert!(told.code == 1 && told.stderr.contains("PELLUCID_SERVICE_PASSPHRASE_FILE"), "{told:?}");
    // No key is made in its place, and none is exchanged past it.
    place.plain("other.db");
    assert_eq!(place.pellucid(&["encrypt", "other.db"]).code, 1);
    let told = pellucid(&place, "key regenerate service");
    assert!(told.code == 1 && told.stderr.contains("key bind --here"), "{told:?}");
    assert!(!place.path("keys/service.key").exists());
    place.secret("phrase", b"another passphrase");
    let told = pellucid(&place, "check app.db");
    assert!(told.code == 1 && told.stderr.contains("password"), "{told:?}");
    place.secret("phrase", b"correct horse battery");
    // Another passphrase, by the first.
    place.secret("next", b"the next passphrase");
    pellucid(&place, "key bind --passphrase-file next").succeeded();
    place.secret("phrase", b"the next passphrase");
    pellucid(&place, "check app.db").succeeded();
    pellucid(&place, "key backup service --file smk --password-file password").succeeded();
    pellucid(&place, "key bind --here").succeeded();
    assert_eq!(std::fs::read(place.path("keys/service.key")).unwrap(), key);
    assert!(!place.path("keys/service.sealed").exists());
    place.pellucid(&["check", "app.db"]).succeeded();
    // A lost passphrase: the backup opens it.
    pellucid(&place, "key bind --passphrase-file phrase").succeeded();
    std::fs::remove_file(place.path("phrase")).unwrap();
    let restore = "key restore service --file smk --password-file password";
    place.pellucid(&restore.split(' ').collect::<Vec<_>>()).succeeded();
    place.pellucid(&["check", "app.db"]).succeeded();
    assert!(!place.path("keys/service.sealed").exists());
}

#[test]
fn a_credential_opens_where_systemd_hands_it_out() {
    let place = place();
    let key = std::fs::read(place.path("keys/service.key")).unwrap();
    // One that gives something else back, and one that fails: the key stays.
    for decrypt in ["head -c 32 /dev/zero", "cat", "exit 1"] {
        tool(&place, decrypt);
        let told = pellucid(&place, "key bind --credential sealed.cred");
        assert_ne!(told.code, 0, "{told:?}");
        assert_eq!(std::fs::read(place.path("keys/service.key")).unwrap(), key);
        std::fs::remove_file(place.path("sealed.cred")).unwrap();
        place.pellucid(&["check", "app.db"]).succeeded();
    }
    tool(&place, OPENS);
    let told = pellucid(&place, "key bind --credential sealed.cred").succeeded();
    let unit =
        format!("LoadCredentialEncrypted=pellucid-smk:{}", place.path("sealed.cred").display());
    assert!(told.contains(&unit) && told.contains("no TPM was found"), "{told}");
    assert!(!place.path("keys/service.key").exists());
    assert_eq!(place.path("sealed.cred").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.pellucid(&["check", "app.db"]).code, 1);
    // As systemd does: in clear, in a directory in memory that the variable names.
    std::fs::create_dir(place.path("credentials")).unwrap();
    place.secret("credentials/pellucid-smk", &key);
    let mut command = place.command(PELLUCID);
    command.env("CREDENTIALS_DIRECTORY", place.path("credentials")).args(["check", "app.db"]);
    said(&mut command).succeeded();
}

#[test]
fn binding_is_killed_everywhere_and_every_database_opens() {
    let model = place();
    tool(&model, OPENS);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/killat.c");
    let preload = model.compile_library(&source, "killat.so");
    let mut calls = 0;
    for (before, words) in [
        ("", "key bind --passphrase-file phrase"),
        ("key bind --passphrase-file phrase", "key bind --here"),
        ("", "key bind --credential sealed.cred"),
    ] {
        let mut at = 1;
        loop {
            let live = Place::new();
            model.copy_to(&live);
            if !before.is_empty() {
                pellucid(&live, before).succeeded();
            }
            let mut command = live.command(PELLUCID);
            command.env("PELLUCID_SERVICE_PASSPHRASE_FILE", live.path("phrase"));
            command.env("PATH", format!("{}:/usr/bin:/bin", live.path("bin").display()));
            command.env("LD_PRELOAD", &preload).env("KILL_DIR", live.path("keys").join(""));
            command.env("KILL_AT", at.to_string()).args(words.split(' '));
            let told = said(&mut command);
            let what = format!("{words} killed at {at}");
            assert!(told.code == 0 || told.code == 128 + 9, "{what}: {told:?}");
            if words.contains("credential") && !live.path("keys/service.key").exists() {
                // It went last, with the proof behind it.
                assert!(live.path("sealed.cred").metadata().unwrap().len() == 32, "{what}");
            } else {
                pellucid(&live, "check app.db").succeeded();
                std::fs::remove_file(live.path("sealed.cred")).ok();
                pellucid(&live, words).succeeded();
                if !words.contains("credential") {
                    pellucid(&live, "check app.db").succeeded();
                }
            }
            if told.code == 0 {
                break;
            }
            at += kill_stride();
        }
        calls += at;
        println!("{words}: {at} calls");
        assert!(at > 4, "{words}: killed at {at} only");
    }
    println!("RESULT {calls}");
}

#[test]
fn a_bound_key_is_regenerated_in_the_steps_that_the_refusal_names() {
    let place = place();
    pellucid(&place, "key bind --passphrase-file phrase").succeeded();
    let before = std::fs::read(place.path("keys/service.sealed")).unwrap();
    // Without the passphrase, too, it is said what is missing.
    let told = place.pellucid(&["key", "regenerate", "service"]);
    assert!(told.code == 1 && told.stderr.contains("PELLUCID_SERVICE_PASSPHRASE_FILE"), "{told:?}");
    let told = pellucid(&place, "key regenerate service");
    for word in ["key bind --here", "do this again", "key bind --passphrase-file"] {
        assert!(told.code == 1 && told.stderr.contains(word), "{word}: {told:?}");
    }
    for step in ["key bind --here", "key regenerate service", "key bind --passphrase-file phrase"] {
        pellucid(&place, step).succeeded();
    }
    assert!(std::fs::read(place.path("keys/service.sealed")).unwrap() != before);
    assert!(!place.path("keys/service.key").exists());
    pellucid(&place, "check app.db").succeeded();
}
