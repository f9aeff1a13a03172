//! Goal: a differential is restored with the full set that it was made from and with no other one, whoever has that one's key;
//! `verify --check` says of the full set what `restore` says; and what speaks against a set is told wherever it is used.
//!
//! Method: backups of one database by two instances with the same certificate, one of which is a copy of the other; full sets
//! are rewritten with their key, or put there by the other instance.

use pellucid::media::Signing;

use crate::signed_sets::{back_up, copy_instance, elsewhere, scene, verified, with_the_key};
use crate::support::{edit, sha256, Place, Said};

const CHECK: [&str; 5] = ["verify", "d.bak", "--base", "full.bak", "--check"];
const RESTORE: [&str; 6] = ["restore", "d.bak", "--base", "full.bak", "--to", "new.db"];
const DIFFERENTIAL: [&str; 7] =
    ["backup", "app.db", "--to", "d.bak", "--differential", "--base", "full.bak"];

/// What the other instance knew of backups is gone.
fn forget(place: &Place) {
    std::fs::remove_file(place.path("other-keys/msdb.db")).unwrap();
}

/// An error of both files, and nothing restored.
fn is_another(place: &Place, said: &Said) {
    assert_eq!(said.code, 3, "{said:?}");
    for what in ["has another manifest than the full set", "full.bak", "d.bak"] {
        assert!(said.stderr.contains(what), "{what}: {said:?}");
    }
    assert!(!place.path("new.db").exists());
}

#[test]
fn a_signed_differential_takes_no_other_full_set_of_its_id() {
    for unsigned in [false, true] {
        let place = scene();
        let more: &[&str] = if unsigned { &["--unsigned"] } else { &[] };
        place.pellucid(&[&["backup", "app.db", "--to", "full.bak"], more].concat()).succeeded();
        copy_instance(&place);
        place.pellucid(&DIFFERENTIAL).succeeded();
        // Here nobody knows which one was written.
        let _ = elsewhere(&place, &["verify", "full.bak"]);
        forget(&place);
        let checked = elsewhere(&place, &CHECK);
        assert_eq!(checked.code, if unsigned { 4 } else { 0 }, "{checked:?}");
        with_the_key(&place, "full.bak", |manifest| {
            manifest.finished += 1;
            if !unsigned {
                manifest.signing = Signing::Unsigned;
            }
        });
        for words in [&RESTORE[..], &CHECK] {
            is_another(&place, &elsewhere(&place, words));
            is_another(&place, &elsewhere(&place, &[words, &["--allow-unsigned"]].concat()));
        }
        let here = place.pellucid(&RESTORE);
        assert_eq!(here.code, 3, "{here:?}");
    }
}

#[test]
fn a_full_set_without_a_signature_under_a_signed_differential_is_told() {
    let place = scene();
    copy_instance(&place);
    place.pellucid(&["backup", "app.db", "--to", "full.bak", "--unsigned"]).succeeded();
    place.pellucid(&DIFFERENTIAL).succeeded();
    // Its own.
    let own = place.pellucid(&CHECK);
    assert_eq!(own.code, 0, "{own:?}");
    assert!(own.all().contains("not signed: whoever has its key"), "the weaker one: {own:?}");
    let facts = verified(&place.pellucid(&[&CHECK[..], &["--json"]].concat()));
    assert_eq!(facts[0]["signed_by"], serde_json::Value::Null);
    // Another machine's.
    let said = elsewhere(&place, &CHECK);
    let what = "the full set, backup set 1: it is not signed, and its differential is signed";
    assert!(said.code == 4 && said.stderr.contains(what), "{said:?}");
    let said = elsewhere(&place, &RESTORE);
    assert!(said.code == 0 && said.stderr.contains(what), "{said:?}");
    // One that knows signed sets of the database asks for one, as `restore` does.
    back_up(&place, "signed.bak");
    elsewhere(&place, &["history", "rebuild", "signed.bak"]).succeeded();
    std::fs::remove_file(place.path("new.db")).unwrap();
    for words in [&RESTORE[..], &CHECK] {
        let said = elsewhere(&place, words);
        assert!(said.code == 1 && said.stderr.contains("it is NOT signed"), "{said:?}");
    }
    let said = elsewhere(&place, &[&CHECK[..], &["--allow-unsigned"]].concat());
    assert!(said.code == 4 && said.stderr.contains(what), "{said:?}");
}

#[test]
fn a_full_set_of_a_fork_is_told_by_who_checks_restores_and_builds_on_it() {
    let place = scene();
    back_up(&place, "first.bak");
    copy_instance(&place);
    back_up(&place, "here.bak");
    elsewhere(&place, &["backup", "app.db", "--to", "full.bak"]).succeeded();
    elsewhere(&place, &DIFFERENTIAL).succeeded();
    let what = "the full set, backup set 1: a fork";
    let said = place.pellucid(&CHECK);
    assert!(said.code == 4 && said.stderr.contains(what), "{said:?}");
    let said = place.pellucid(&RESTORE);
    assert!(said.code == 0 && said.stderr.contains(what), "{said:?}");
    std::fs::remove_file(place.path("new.db")).unwrap();
    let json = place.pellucid(&[&RESTORE[..], &["--json"]].concat());
    assert!(verified(&json)[0]["chain"][0].as_str().unwrap().contains(what), "{json:?}");
    std::fs::remove_file(place.path("d.bak")).unwrap();
    let said = place.pellucid(&DIFFERENTIAL);
    assert!(said.code == 0 && said.stderr.contains(what), "{said:?}");
    std::fs::remove_file(place.path("d.bak")).unwrap();
    let json = place.pellucid(&[&DIFFERENTIAL[..], &["--json"]].concat());
    assert!(verified(&json)[0]["chain"][0].as_str().unwrap().contains(what), "{json:?}");
    // The pages of a fork.
    let mend = ["restore", "full.bak", "--to", "app.db", "--page", "2"];
    let said = place.pellucid(&mend);
    assert!(said.code == 0 && said.stderr.contains("backup set 1: a fork"), "{said:?}");
}

#[test]
fn no_differential_is_made_of_one_of_two_copies_that_disagree() {
    let place = scene();
    copy_instance(&place);
    place.pellucid(&["backup", "app.db", "--to", "full.bak", "--unsigned"]).succeeded();
    elsewhere(&place, &["history", "rebuild", "full.bak"]).succeeded();
    with_the_key(&place, "full.bak", |manifest| manifest.finished += 1);
    let said = elsewhere(&place, &DIFFERENTIAL);
    assert!(said.code == 3 && said.stderr.contains("two copies of it disagree"), "{said:?}");
    assert!(!place.path("d.bak").exists());
}

#[test]
fn a_history_that_is_there_and_does_not_open_is_told() {
    let place = scene();
    back_up(&place, "full.bak");
    edit(&place.path("keys/msdb.db"), |bytes| bytes.fill(7));
    let what = "the history could not be asked";
    let said = place.pellucid(&["verify", "full.bak"]);
    assert!(said.code == 4 && said.stderr.contains(what), "{said:?}");
    let said = place.pellucid(&["restore", "full.bak", "--to", "new.db"]);
    assert!(said.code == 0 && said.stderr.contains(what), "{said:?}");
    let said = place.pellucid(&DIFFERENTIAL);
    assert!(said.code == 0 && said.stderr.contains(what), "{said:?}");
    std::fs::remove_file(place.path("keys/msdb.db")).unwrap();
    let said = place.pellucid(&["verify", "full.bak"]);
    assert_eq!(said.code, 0, "no history is none: {said:?}");
}

/// The manifest's SHA-256 needs no key, and its HMAC does.
#[test]
fn who_has_no_key_is_not_taken_for_somebody_who_has() {
    let place = scene();
    place.pellucid(&["backup", "app.db", "--to", "a.bak", "--unsigned"]).succeeded();
    let whole = std::fs::read(place.path("a.bak")).unwrap();
    with_the_key(&place, "a.bak", |manifest| manifest.finished += 1);
    let said = place.pellucid(&["verify", "a.bak"]);
    assert!(said.code == 3 && said.stderr.contains("somebody who has its key"), "{said:?}");
    std::fs::write(place.path("a.bak"), &whole).unwrap();
    edit(&place.path("a.bak"), |bytes| {
        let (at, end) = (bytes.len() - 200, bytes.len() - 32);
        bytes[at + 55] ^= 1;
        let sum = sha256(&bytes[at..end]);
        bytes[end..].copy_from_slice(&sum);
    });
    let said = place.pellucid(&["verify", "a.bak"]);
    assert!(said.code == 3 && said.stderr.contains("does not authenticate"), "{said:?}");
    assert!(!said.stderr.contains("somebody who has its key"), "{said:?}");
}
