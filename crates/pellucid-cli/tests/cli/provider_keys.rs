//! Goal: a database and its backups under a key that never leaves a token are as those under a certificate, and open nowhere without it.
//!
//! Method: SoftHSM's token and the plugin as it is shipped; the commands that the tests of certificates run.

use crate::support::token::{command, open_at_once, pellucid, shell, Token};
use crate::support::{said, Place, Said};

fn words(place: &Place, words: &str) -> Said {
    pellucid(place, &words.split(' ').collect::<Vec<_>>())
}

fn create(place: &Place, name: &str, key: &str, more: &[&str]) -> Said {
    let mut all = vec!["cert", "create", name, "--plugin", "pkcs11", "--key", key];
    all.extend(more);
    pellucid(place, &all)
}

/// What a program's SQLite reads of the database's table.
fn rows(place: &Place, database: &str) -> Said {
    said(&mut shell(place, &[&format!(".open {database}"), "SELECT count(*) FROM t"]))
}

#[test]
fn a_key_of_a_token_does_what_a_certificate_does() {
    let place = Place::new();
    let Some(token) = Token::make(&place) else { return };
    place.secret("password", b"a Pa55word of some length");
    let told = create(&place, "hsm", &token.key("tde"), &["--new-key"]).succeeded();
    assert!(told.contains("in provider `pkcs11`, key `pkcs11:token=T;object=tde"), "{told}");
    place.plain("app.db");
    words(&place, "encrypt app.db --certificate hsm").succeeded();
    assert_eq!(rows(&place, "app.db").stdout.trim(), "200");
    let header = std::fs::read(place.path("app.db")).unwrap();
    assert!(header[..8192].windows(6).any(|part| part == b"pkcs11"), "a provider key's protector");
    for told in
        [words(&place, "status app.db"), words(&place, "cert show hsm"), words(&place, "cert list")]
    {
        assert!(told.succeeded().contains("hsm"));
    }
    // Nobody asks for a backup of what cannot be had.
    let told = words(&place, "doctor");
    assert!(!told.all().contains("has not been backed up"), "{told:?}");
    let told = words(
        &place,
        "cert export hsm --cert-file hsm.pem --key-file hsm.key --password-file password",
    );
    assert!(told.code != 0 && told.stderr.contains("which it never leaves"), "{told:?}");
    assert!(!place.path("hsm.key").exists() && !place.path("hsm.pem").exists());

    words(&place, "backup app.db --to app.bak --certificate hsm").succeeded();
    words(&place, "verify app.bak").succeeded();
    words(&place, "restore app.bak --to again.db").succeeded();
    assert_eq!(rows(&place, "again.db").stdout.trim(), "200");
    words(&place, "rekey app.db").succeeded();
    words(&place, "check app.db").succeeded();
    // To a certificate, and to another key of the token.
    words(&place, "cert create soft").succeeded();
    words(&place, "rewrap app.db --certificate soft").succeeded();
    token.pkcs11("--keypairgen --key-type RSA:4096 --label other");
    create(&place, "other", &token.key("other"), &[]).succeeded();
    words(&place, "rewrap app.db --certificate other").succeeded();
    assert_eq!(rows(&place, "app.db").stdout.trim(), "200");

    // Another instance with the same token.
    words(&place, "instance export --to all.pellucid --password-file password").succeeded();
    let elsewhere = |words: &str| {
        let mut pellucid = command(&place);
        pellucid.env("PELLUCID_HOME", place.path("elsewhere"));
        said(pellucid.args(words.split(' ')))
    };
    elsewhere("instance import all.pellucid --password-file password").succeeded();
    elsewhere("check app.db").succeeded();
    elsewhere("verify app.bak").succeeded();

    // Without the token nothing opens, and it is said who must act; a passphrase beside it still does.
    std::fs::rename(place.path("tokens"), place.path("out")).unwrap();
    std::fs::create_dir(place.path("tokens")).unwrap();
    for one in ["check app.db", "restore app.bak --to other.db", "backup app.db --to other.bak"] {
        let told = words(&place, one);
        assert!(
            told.code != 0 && told.stderr.contains("no token in any slot fits the key"),
            "{one}: {told:?}"
        );
    }
    assert_eq!(rows(&place, "app.db").stdout.trim(), "");
}

#[test]
fn a_key_that_cannot_be_told_from_another_one_is_refused() {
    let place = Place::new();
    let Some(token) = Token::make(&place) else { return };
    for _ in 0..2 {
        token.pkcs11("--keypairgen --key-type RSA:2048 --label twice");
    }
    let told = create(&place, "hsm", &token.key("twice"), &[]);
    assert!(told.code != 0 && told.stderr.contains("twice"), "{told:?}");
    let told = create(&place, "hsm", &token.key("nothing"), &[]);
    assert!(told.code != 0, "{told:?}");
    assert!(!words(&place, "cert list").all().contains("hsm"));
    // And one that is there is not made again under its name.
    create(&place, "hsm", &token.key("new"), &["--new-key"]).succeeded();
    assert_ne!(create(&place, "second", &token.key("new"), &["--new-key"]).code, 0);
}

#[test]
fn many_processes_open_at_once() {
    let place = Place::new();
    let Some(token) = Token::make(&place) else { return };
    create(&place, "hsm", &token.key("tde"), &["--new-key"]).succeeded();
    place.plain("app.db");
    words(&place, "encrypt app.db --certificate hsm").succeeded();
    open_at_once(&place, 25);
}
