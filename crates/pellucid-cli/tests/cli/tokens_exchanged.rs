//! Goal: whoever can write the instance's directory, and exchanges `service.provider`, gets no program run that root has not
//! installed, and no key out of a plugin; a plugin that misbehaves costs an error.
//!
//! Method: each byte of the file changed; the file of another instance; names that lead elsewhere; a plugin that hands out
//! another key, hangs, or does not answer.

use std::time::{Duration, Instant};

use crate::support::token::{pellucid, script, Token};
use crate::support::{edit, Place, Said};

fn place() -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place
}

fn check(place: &Place) -> Said {
    pellucid(place, &["check", "app.db"])
}

fn bind(place: &Place, plugin: &str, key: &str) {
    pellucid(place, &["key", "bind", "--plugin", plugin, "--key", key]).succeeded();
}

#[test]
fn each_changed_byte_and_the_file_of_another_instance_are_refused() {
    let place = place();
    let Some(token) = Token::make(&place) else { return };
    bind(&place, "pkcs11", &token.key("smk"));
    let file = place.path("keys/service.provider");
    let whole = std::fs::read(&file).unwrap();
    let stride = whole.len().div_ceil(60);
    for at in (0..whole.len()).step_by(stride) {
        edit(&file, |bytes| bytes[at] ^= 1);
        let told = check(&place);
        assert!(told.code != 0, "byte {at}: {told:?}");
        edit(&file, |bytes| bytes[at] ^= 1);
    }
    check(&place).succeeded();
    for length in [0, 20, 57, whole.len() - 1] {
        place.secret("keys/service.provider", &whole[..length]);
        assert_ne!(check(&place).code, 0, "{length} bytes");
    }
    // Another instance with a key of its own, under the same key of the token.
    std::fs::rename(place.path("keys"), place.path("first")).unwrap();
    pellucid(&place, &["init"]).succeeded();
    bind(&place, "pkcs11", &token.key("smk"));
    let other = std::fs::read(place.path("keys/service.provider")).unwrap();
    std::fs::remove_dir_all(place.path("keys")).unwrap();
    std::fs::rename(place.path("first"), place.path("keys")).unwrap();
    place.secret("keys/service.provider", &other);
    let told = check(&place);
    assert!(told.code != 0 && told.stderr.contains("is not this keyring's"), "{told:?}");
    // With the other's check value exchanged for this one's, the token refuses it.
    let mut mixed = other.clone();
    mixed[20..36].copy_from_slice(&whole[20..36]);
    place.secret("keys/service.provider", &mixed);
    let told = check(&place);
    assert!(told.code != 0 && told.stderr.contains("does not open it"), "{told:?}");
    // And so it does this one's wrapped key in the other's file.
    let end = whole.len() - 61;
    let mixed = [&other[..20], &whole[20..36], &other[36..end], &whole[end..]].concat();
    place.secret("keys/service.provider", &mixed);
    assert!(check(&place).code != 0);
    place.secret("keys/service.provider", &whole);
    check(&place).succeeded();
}

#[test]
fn no_program_runs_that_root_has_not_put_there() {
    let place = place();
    let Some(token) = Token::make(&place) else { return };
    bind(&place, "pkcs11", &token.key("smk"));
    let whole = std::fs::read(place.path("keys/service.provider")).unwrap();
    let ran = place.path("ran");
    script(&place, "pkcs12", &format!("touch {}", ran.display()));
    let script_file = place.path("plugins/pellucid-plugin-pkcs12");
    // As somebody who may write to the instance would name it; lengths stay.
    let renamed = |name: &[u8; 6]| {
        let mut bytes = whole.clone();
        bytes[58..64].copy_from_slice(name);
        bytes
    };
    place.secret("keys/service.provider", &renamed(b"pkcs12"));
    check(&place);
    assert!(ran.exists(), "one of root's is run: what it answers is what counts");
    std::fs::remove_file(&ran).unwrap();
    std::os::unix::fs::chown(&script_file, Some(65533), None).unwrap();
    let told = check(&place);
    assert!(told.code != 0 && told.stderr.contains("only what is root's"), "{told:?}");
    std::os::unix::fs::chown(&script_file, Some(0), None).unwrap();
    for name in [b"../a/b", b"/bin/x", b"PKCS12", b"a b c ", b"pkcs1\0", b"pkcs1\n"] {
        place.secret("keys/service.provider", &renamed(name));
        let told = check(&place);
        assert!(told.code != 0 && told.stderr.contains("a plugin's name has"), "{told:?}");
    }
    assert!(!ran.exists());
}

#[test]
fn a_plugin_that_misbehaves_costs_an_error() {
    let place = place();
    let Some(token) = Token::make(&place) else { return };
    let real = place.path("plugins/pellucid-plugin-pkcs11");
    script(&place, "odd", &format!("echo \"$line\" | {}", real.display()));
    bind(&place, "odd", &token.key("smk"));
    check(&place).succeeded();
    let answer = |fields: &str| format!("echo \"{{\\\"v\\\":1,\\\"id\\\":\\\"$id\\\",{fields}}}\"");
    let other = format!("\\\"secret\\\":\\\"{}=\\\"", "A".repeat(43));
    for (body, part) in [
        (answer(&other), "not the service master key"),
        (answer("\\\"secret\\\":\\\"AQID\\\""), "not the service master key"),
        ("yes".to_owned(), "more than an answer"),
        ("yes >&2".to_owned(), "more than an answer"),
        ("echo out of order >&2; exit 1".to_owned(), "out of order"),
        ("env >&2; exit 1".to_owned(), "exit status 1"),
        ("trap '' TERM; sleep 60".to_owned(), "no answer within 10 s"),
    ] {
        script(&place, "odd", &body);
        let began = Instant::now();
        let told = check(&place);
        assert!(told.code != 0 && told.stderr.contains(part), "{body}: {told:?}");
        assert!(!told.all().contains("PELLUCID_HOME="), "{told:?}");
        assert!(began.elapsed() < Duration::from_secs(45), "{body}: {:?}", began.elapsed());
        assert!(!place.path("keys/service.key").exists());
    }
    // Where the key is put back, it opens as before.
    script(&place, "odd", &format!("echo \"$line\" | {}", real.display()));
    check(&place).succeeded();
}
