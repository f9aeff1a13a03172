//! Goal: under a certificate with a companion key new backups and bundles open with both keys, never with one; what was made before
//! still opens, and what is made afterwards by RSA alone is refused.
//!
//! Method: two instances that share a certificate, of which one gets the companion first; `cert add-hybrid` is killed before each
//! call that changes a file. The wraps themselves are attacked in `pellucid-tests`, `format/hybrid.rs`.

use std::path::Path;

use crate::support::{kill_stride, said, Place, Said, PELLUCID};

fn words(place: &Place, words: &str) -> Said {
    place.pellucid(&words.split(' ').collect::<Vec<_>>())
}

fn works(place: &Place, told: &str) -> String {
    words(place, told).succeeded()
}

fn facts(place: &Place, told: &str) -> serde_json::Value {
    serde_json::from_str(&works(place, &format!("--json {told}"))).unwrap()
}

fn classical_allowed(place: &Place, told: &str) -> Said {
    let mut command = place.command(PELLUCID);
    said(command.env("PELLUCID_ALLOW_CLASSICAL", "1").args(told.split(' ')))
}

const EXPORT: &str = "cert export pellucid --password-file password";
const IMPORT: &str = "cert import pellucid --password-file password";

fn copy(from: &Place, to: &Place, names: &[&str]) {
    for name in names {
        std::fs::copy(from.path(name), to.path(name)).unwrap();
    }
}

#[test]
fn backups_are_hybrid_from_then_on_and_those_of_before_open() {
    let here = Place::new();
    here.sealed("app.db", &[]);
    here.secret("password", b"a long enough password");
    works(&here, &format!("{EXPORT} --cert-file old.pem --key-file old.key"));
    works(&here, "backup app.db --to before.bak");
    assert_eq!(facts(&here, "cert show pellucid")["hybrid_since"], serde_json::Value::Null);

    let added = words(&here, "cert add-hybrid pellucid");
    assert!(added.stderr.contains("exports of `pellucid` made before"), "{added:?}");
    assert!(added.succeeded().contains("RSA-3072 and ML-KEM-768"));
    let again = words(&here, "cert add-hybrid pellucid");
    assert!(again.code == 1 && again.stderr.contains("it has a companion key"), "{again:?}");
    let shown = facts(&here, "cert show pellucid");
    assert_eq!(shown["backed_up"], serde_json::Value::Null, "the old export lacks the companion");
    assert!(shown["hybrid_since"].is_string());
    assert!(works(&here, "cert list").contains("RSA-3072 and ML-KEM-768"));
    assert!(facts(&here, "cert list")["certificates"][0]["hybrid_since"].is_string());
    // The certificate itself, and what is under it, are as before.
    works(&here, "check app.db");

    let told = works(&here, "backup app.db --to after.bak");
    assert!(told.contains("hybrid certificate `pellucid`"), "{told}");
    assert!(works(&here, "header after.bak").contains("pellucid (hybrid)"));
    assert_eq!(
        facts(&here, "header after.bak")["hybrid_certificates"][0],
        shown["thumbprint_sha256"]
    );
    assert_eq!(facts(&here, "header after.bak")["encryptor_type"], "CERTIFICATE");
    assert_eq!(
        facts(&here, "header before.bak")["hybrid_certificates"].as_array().unwrap().len(),
        0
    );
    assert!(works(&here, "history").contains("hybrid certificate pellucid"));
    for (set, to) in [("before.bak", "one.db"), ("after.bak", "two.db")] {
        works(&here, &format!("verify --open {set}"));
        works(&here, &format!("restore {set} --to {to}"));
        works(&here, &format!("check {to}"));
    }
    // Nor is the certificate dropped that opens it.
    assert_eq!(words(&here, "cert drop pellucid").code, 1);

    // Another instance has the certificate as it was.
    let there = Place::new();
    copy(&here, &there, &["after.bak", "old.pem", "old.key"]);
    there.secret("password", b"a long enough password");
    works(&there, "init");
    works(&there, &format!("{IMPORT} --cert-file old.pem --key-file old.key"));
    let refused = words(&there, "restore after.bak --to app.db");
    for says in ["whose companion key is not in the keyring", "pellucid cert import pellucid"] {
        assert!(refused.code != 0 && refused.stderr.contains(says), "{refused:?}");
    }
    assert!(!there.path("app.db").exists());

    // What it makes after that date is a downgrade where the companion is.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    there.plain("own.db");
    works(&there, "backup own.db --certificate pellucid --to late.bak");
    copy(&there, &here, &["late.bak"]);
    for told in ["restore late.bak --to late.db", "verify --open late.bak"] {
        let refused = words(&here, told);
        assert!(refused.code != 0 && refused.stderr.contains("RSA alone"), "{refused:?}");
    }
    assert!(!here.path("late.db").exists());
    classical_allowed(&here, "restore late.bak --to late.db").succeeded();

    // An export with both keys mends the other instance.
    works(&here, &format!("{EXPORT} --cert-file new.pem --key-file new.key"));
    copy(&here, &there, &["new.pem", "new.key"]);
    for (certificate, key, lacks) in [
        ("new.pem", "old.key", "the private key's file has no companion key"),
        ("old.pem", "new.key", "the certificate's file has no companion key"),
    ] {
        let half = words(&there, &format!("{IMPORT} --cert-file {certificate} --key-file {key}"));
        assert!(half.code == 1 && half.stderr.contains(lacks), "{half:?}");
    }
    works(&there, &format!("{IMPORT} --cert-file new.pem --key-file new.key"));
    assert!(words(&there, &format!("{IMPORT} --cert-file new.pem --key-file new.key")).code == 1);
    works(&there, "restore after.bak --to app.db");
    works(&there, "check app.db");
    assert!(
        works(&there, "backup own.db --certificate pellucid --to hybrid.bak").contains("hybrid")
    );
}

#[test]
fn a_bundle_carries_the_companion_and_gives_it_to_who_lacks_it() {
    let here = Place::new();
    here.secret("password", b"a long enough password");
    works(&here, "init");
    assert!(facts(&here, "cert create both --hybrid")["hybrid_since"].is_string());
    works(&here, "cert create plain");
    works(&here, "cert export plain --cert-file p.pem --key-file p.key --password-file password");
    assert!(facts(&here, "cert add-hybrid plain")["hybrid_since"].is_string());
    works(&here, "instance export --to keys.bundle --password-file password");
    let companion = |place: &Place, name: &str| {
        facts(place, &format!("cert show {name}"))["companion_thumbprint_sha256"].clone()
    };
    let there = Place::new();
    copy(&here, &there, &["keys.bundle", "p.pem", "p.key"]);
    there.secret("password", b"a long enough password");
    works(&there, "init");
    works(&there, "cert import mine --cert-file p.pem --key-file p.key --password-file password");
    let import = "instance import keys.bundle --password-file password";
    let told = works(&there, import);
    assert!(told.contains("there already, as `mine`, which gets its companion key"), "{told}");
    assert!(works(&there, import).contains("there already, as `mine`"));
    assert_eq!(companion(&there, "mine"), companion(&here, "plain"));
    assert_eq!(companion(&there, "both"), companion(&here, "both"));

    // With a companion of its own it is another certificate.
    let third = Place::new();
    copy(&here, &third, &["keys.bundle", "p.pem", "p.key"]);
    third.secret("password", b"a long enough password");
    works(&third, "init");
    works(&third, "cert import mine --cert-file p.pem --key-file p.key --password-file password");
    works(&third, "cert add-hybrid mine");
    let own = companion(&third, "mine");
    assert_eq!(words(&third, import).code, 1);
    assert_eq!(companion(&third, "mine"), own);
    assert_eq!(words(&third, "cert show both").code, 1, "nothing was imported");

    // For a certificate's public half it is hybrid, too.
    works(&there, "cert export both --cert-file both.pem");
    copy(&there, &third, &["both.pem"]);
    works(&third, "cert import both --cert-file both.pem");
    works(&third, "instance export --to for-them.bundle --certificate both");
    copy(&third, &there, &["for-them.bundle"]);
    let told = works(&there, "--json instance import for-them.bundle --dry-run");
    assert!(told.contains("hybrid certificate `both`"), "{told}");
}

/// Before each call that changes a file.
#[test]
fn adding_a_companion_is_killed_everywhere_and_nothing_is_lost() {
    let model = Place::new();
    model.sealed("app.db", &[]);
    works(&model, "backup app.db --to before.bak");
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/killat.c");
    let preload = model.compile_library(&tool, "killat.so");
    let mut at = 1;
    loop {
        let live = Place::new();
        model.copy_to(&live);
        let mut command = live.command(PELLUCID);
        command.env("LD_PRELOAD", &preload).env("KILL_DIR", live.path("keys").join(""));
        command.env("KILL_AT", at.to_string()).args(["cert", "add-hybrid", "pellucid"]);
        let told = said(&mut command);
        let what = format!("killed at {at}");
        assert!(told.code == 0 || told.code == 128 + 9, "{what}: {told:?}");
        works(&live, "check app.db");
        works(&live, "verify --open before.bak");
        // Both halves or none: what is there makes sets that it opens.
        let since = facts(&live, "cert show pellucid")["hybrid_since"].clone();
        let backup = works(&live, "backup app.db --to after.bak");
        assert_eq!(backup.contains("hybrid certificate"), since.is_string(), "{what}: {backup}");
        works(&live, "verify --open after.bak");
        assert_eq!(words(&live, "cert add-hybrid pellucid").code, i32::from(since.is_string()));
        if told.code == 0 {
            break;
        }
        at += 2 * kill_stride();
    }
    assert!(at > 3, "killed at {at} only");
}
