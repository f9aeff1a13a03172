//! Goal: a set that a certificate protects is signed by it, and whoever has the set's key and not the private key can neither
//! exchange it, strip its signature, nor put one of his own behind it, where anybody knows better; a fork of a database's
//! backups is told, and two backups at the same time are none.
//!
//! Method: backups of one database by two instances with the same certificate, one of which is a copy of the other; media
//! are rewritten with the set's key, which the certificate opens. Vectors have what needs no instance.

use std::path::PathBuf;

use pellucid::certificate::Certificate;
use pellucid::media::{Manifest, MediaVersion, SetHeader, SetKeys, Signing};
use pellucid::protector::KeySource;
use pellucid_keyring::Keyring;

use crate::support::{edit, said, said_with, Place, Said, PELLUCID};

/// The certificates of an instance.
struct AtHand(Keyring);

impl KeySource for AtHand {
    fn certificate(&self, thumbprint: &[u8; 32]) -> pellucid::Result<Option<Certificate>> {
        self.0.certificate_by_thumbprint(thumbprint)
    }
}

/// Sealed `app.db` under the default certificate.
pub fn scene() -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place
}

/// The instance as it is now, once more: another machine with the same certificate.
pub fn copy_instance(place: &Place) {
    let keys = place.path("keys");
    said(std::process::Command::new("cp").arg("-a").arg(&keys).arg(place.path("other-keys")))
        .succeeded();
}

pub fn elsewhere(place: &Place, words: &[&str]) -> Said {
    said(place.command(PELLUCID).env("PELLUCID_HOME", place.path("other-keys")).args(words))
}

pub fn back_up(place: &Place, to: &str) {
    place.pellucid(&["backup", "app.db", "--to", to]).succeeded();
}

/// The facts of each set that `verify` tells.
pub fn verified(said: &Said) -> Vec<serde_json::Value> {
    said.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn what_a_certificate_protects_is_signed_and_says_so() {
    let place = scene();
    let made = place.pellucid(&["backup", "app.db", "--to", "a.bak"]).succeeded();
    assert!(made.contains(", signed"), "{made}");
    let verify = place.pellucid(&["verify", "a.bak", "--json"]);
    let facts = verified(&verify);
    assert_eq!((verify.code, facts.len()), (0, 1), "{verify:?}");
    assert!(facts[0]["signed_by"].is_string() && facts[0]["chain"] == serde_json::json!([]));
    assert!(place.pellucid(&["verify", "a.bak"]).all().contains("nobody else can have made it"));
    place.pellucid(&["restore", "a.bak", "--to", "b.db"]).succeeded();
    // Asked not to, and as it lies on media of before.
    place.pellucid(&["backup", "app.db", "--to", "old.bak", "--unsigned"]).succeeded();
    let header = place.pellucid(&["header", "old.bak", "--json"]).succeeded();
    assert!(header.contains("\"format_version\":1"), "{header}");
    let appended = place.pellucid(&["backup", "app.db", "--to", "old.bak", "--append"]).succeeded();
    assert!(appended.contains("media are of version 1"), "{appended}");
    let said = place.pellucid(&["verify", "old.bak", "--open"]);
    assert!(said.code == 0 && said.all().contains("not signed: whoever has its key"), "{said:?}");
    // Nothing that is not signed goes behind what is.
    let behind = place.pellucid(&["backup", "app.db", "--to", "a.bak", "--append", "--unsigned"]);
    assert!(behind.code == 1 && behind.stderr.contains("before it on these media"), "{behind:?}");
    assert!(behind.stderr.contains("leave `--unsigned` away"), "{behind:?}");
    back_up(&place, "c.bak");
    place.pellucid(&["backup", "app.db", "--to", "a.bak", "--append"]).succeeded();
    let said = place.pellucid(&["verify", "a.bak"]);
    assert_eq!(said.code, 0, "its chain goes by way of other media: {said:?}");
}

#[test]
fn padding_fills_a_class_and_comes_off_again() {
    let place = scene();
    let made = ["backup", "app.db", "--padding", "--to", "a.bak", "b.bak"];
    place.pellucid(&made).succeeded();
    place.pellucid(&["verify", "a.bak", "b.bak", "--open"]).succeeded();
    place.pellucid(&["restore", "a.bak", "b.bak", "--to", "new.db"]).succeeded();
    place.pellucid(&["check", "new.db"]).succeeded();
    for name in ["a.bak", "b.bak"] {
        let bytes = std::fs::read(place.path(name)).unwrap();
        let manifest = Manifest::length_by_end(bytes.last_chunk().unwrap()).unwrap();
        let length = (bytes.len() - 4096 - manifest) as u64;
        assert!(pellucid::media::padding_of(length).is_empty(), "{name}: {length}");
    }
    place.plain("plain.db");
    let clear = place.pellucid(&["backup", "plain.db", "--padding", "--to", "p.bak"]);
    assert!(clear.code != 0 && clear.stderr.contains("only an encrypted backup"), "{clear:?}");
    place.pellucid(&["backup", "app.db", "--unsigned", "--to", "one.bak"]).succeeded();
    let old = place.pellucid(&["backup", "app.db", "--padding", "--append", "--to", "one.bak"]);
    assert!(old.code != 0 && old.stderr.contains("of version 1"), "{old:?}");
}

/// Rewrites the only set of media as somebody does who has its key: `change` gets its manifest.
pub fn with_the_key(place: &Place, name: &str, change: impl FnOnce(&mut Manifest)) {
    let at_hand = AtHand(Keyring::open(&place.path("keys")).unwrap());
    edit(&place.path(name), |bytes| {
        let length = u32::from_be_bytes(bytes[4116..4120].try_into().unwrap()) as usize;
        let header = SetHeader::parse(&bytes[4096..4096 + length], 1).unwrap();
        let key = header.unwrap(&at_hand).unwrap();
        let keys = SetKeys::derive(&key, &header.set, header.algorithm.unwrap()).unwrap();
        let length = match header.version() {
            MediaVersion::One => Manifest::bytes_of(1),
            MediaVersion::Two => Manifest::length_by_end(bytes.last_chunk().unwrap()).unwrap(),
        };
        let at = bytes.len() - length;
        let mut manifest = Manifest::parse(&bytes[at..]).unwrap();
        change(&mut manifest);
        bytes.truncate(at);
        bytes.extend_from_slice(&manifest.encode(Some(&keys)).unwrap());
    });
}

#[test]
fn a_stripped_or_exchanged_set_is_told_where_it_was_made() {
    let place = scene();
    copy_instance(&place);
    back_up(&place, "a.bak");
    let whole = std::fs::read(place.path("a.bak")).unwrap();
    type Change = fn(&mut Manifest);
    let cases: [(&str, Change); 2] = [
        ("stripped", |manifest| manifest.signing = Signing::Unsigned),
        ("stripped and changed", |manifest| {
            manifest.signing = Signing::Unsigned;
            manifest.finished += 1;
        }),
    ];
    for (what, change) in cases {
        std::fs::write(place.path("a.bak"), &whole).unwrap();
        with_the_key(&place, "a.bak", change);
        for words in [&["verify", "a.bak"][..], &["restore", "a.bak", "--to", "new.db"]] {
            let said = place.pellucid(words);
            assert!(
                said.code == 3 && said.stderr.contains("wrote another manifest"),
                "{what}: {said:?}"
            );
            assert!(!place.path("new.db").exists());
        }
        let sql = said_with(
            place.command(PELLUCID).args(["sql", "-b"]),
            &format!("RESTORE VERIFYONLY FROM DISK = '{}';\nGO\n", place.path("a.bak").display()),
        );
        assert!(sql.code != 0 && sql.all().contains("wrote another manifest"), "{what}: {sql:?}");
        // Its hashes say which pages a differential leaves out.
        let behind = ["backup", "app.db", "--to", "d.bak", "--differential", "--base", "a.bak"];
        let said = place.pellucid(&behind);
        assert!(
            said.code == 3 && said.stderr.contains("wrote another manifest"),
            "{what}: {said:?}"
        );
        assert!(!place.path("d.bak").exists());
        // Where nobody knows it, it is said who can have made it.
        let said = elsewhere(&place, &["verify", "a.bak"]);
        assert!(said.code == 0 && said.all().contains("whoever has its key"), "{what}: {said:?}");
    }
    // A signature that does not fit is refused everywhere.
    std::fs::write(place.path("a.bak"), &whole).unwrap();
    with_the_key(&place, "a.bak", |manifest| manifest.finished += 1);
    let said = elsewhere(&place, &["restore", "a.bak", "--to", "new.db"]);
    assert!(said.code == 3 && said.stderr.contains("signature"), "{said:?}");
    assert_eq!(elsewhere(&place, &["verify", "a.bak"]).code, 3);
}

/// The signature that is looked at covers what the manifest says of all files. Each file has a manifest of its own, which
/// `verify` compares the file with.
#[test]
fn each_file_of_a_set_has_the_manifest_that_was_signed() {
    let place = scene();
    let striped = ["backup", "app.db", "--to", "1.bak", "2.bak"];
    let mirrored = ["backup", "app.db", "--to", "1.bak", "--mirror", "2.bak"];
    for words in [&striped[..], &mirrored] {
        place.pellucid(words).succeeded();
        let files = &["verify", "1.bak", "2.bak"];
        let said = place.pellucid(files);
        assert!(said.code == 0 && said.all().contains("nobody else"), "{said:?}");
        with_the_key(&place, "2.bak", |manifest| manifest.families[0].root[0] ^= 1);
        let said = place.pellucid(files);
        assert!(said.code != 0 && !said.all().contains("nobody else"), "{words:?}: {said:?}");
        assert!(said.all().contains("2.bak"), "{words:?}: {said:?}");
        for file in ["1.bak", "2.bak"] {
            std::fs::remove_file(place.path(file)).unwrap();
        }
    }
}

#[test]
fn a_set_without_a_signature_where_signed_ones_are_known_has_to_be_asked_for() {
    let place = scene();
    copy_instance(&place);
    back_up(&place, "a.bak");
    // Another machine's, of the same database, which is no set of this instance.
    elsewhere(&place, &["backup", "app.db", "--unsigned", "--to", "b.bak"]).succeeded();
    for words in [&["verify", "b.bak"][..], &["restore", "b.bak", "--to", "new.db"]] {
        let said = place.pellucid(words);
        assert!(said.code == 1 && said.stderr.contains("it is NOT signed"), "{said:?}");
        assert!(!place.path("new.db").exists());
    }
    let script = format!(
        "RESTORE DATABASE x FROM DISK = '{}' WITH MOVE 'app' TO '{}';\nGO\n",
        place.path("b.bak").display(),
        place.path("x.db").display()
    );
    let sql = said_with(place.command(PELLUCID).args(["sql", "-b"]), &script);
    assert!(sql.code != 0 && sql.all().contains("it is NOT signed"), "{sql:?}");
    place.pellucid(&["restore", "b.bak", "--to", "new.db", "--allow-unsigned"]).succeeded();
    // What was taken by leave is not known as one's own afterwards.
    let again = place.pellucid(&["restore", "b.bak", "--to", "other.db"]);
    assert!(again.code == 1 && again.stderr.contains("it is NOT signed"), "{again:?}");
    // One's own from before is.
    place.pellucid(&["backup", "app.db", "--unsigned", "--to", "own.bak"]).succeeded();
    back_up(&place, "signed.bak");
    place.pellucid(&["restore", "own.bak", "--to", "own.db"]).succeeded();
}

#[test]
fn a_fork_is_told_and_two_backups_at_once_are_none() {
    let place = scene();
    back_up(&place, "first.bak");
    copy_instance(&place);
    back_up(&place, "here.bak");
    elsewhere(&place, &["backup", "app.db", "--to", "there.bak"]).succeeded();
    let said = place.pellucid(&["verify", "there.bak"]);
    assert!(said.code == 4 && said.all().contains("a fork"), "{said:?}");
    let restored = place.pellucid(&["restore", "there.bak", "--to", "there.db"]);
    assert!(restored.code == 0 && restored.stderr.contains("a fork"), "{restored:?}");
    assert_eq!(place.pellucid(&["verify", "here.bak"]).code, 0);
    let workers: Vec<_> = (0..4)
        .map(|number| {
            let mut command = place.command(PELLUCID);
            command.args(["backup", "app.db", "--to", &format!("at-once-{number}.bak")]);
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    back_up(&place, "after.bak");
    let names: Vec<PathBuf> = (0..4).map(|number| format!("at-once-{number}.bak").into()).collect();
    for name in names.iter().chain([&PathBuf::from("after.bak")]) {
        let said = place.pellucid(&["verify", name.to_str().unwrap(), "--json"]);
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(verified(&said)[0]["chain"], serde_json::json!([]));
    }
}

#[test]
fn a_history_that_was_made_again_has_no_false_alarms_and_copies_that_disagree_are_told() {
    let place = scene();
    copy_instance(&place);
    for name in ["one.bak", "two.bak"] {
        back_up(&place, name);
    }
    place.pellucid(&["backup", "app.db", "--to", "one.bak", "--append"]).succeeded();
    elsewhere(&place, &["history", "rebuild", "one.bak", "two.bak"]).succeeded();
    for name in ["one.bak", "two.bak"] {
        let said = elsewhere(&place, &["verify", name]);
        assert_eq!(said.code, 0, "{said:?}");
    }
    with_the_key(&place, "two.bak", |manifest| manifest.signing = Signing::Unsigned);
    let said = elsewhere(&place, &["verify", "two.bak", "--allow-unsigned"]);
    assert!(said.code == 4 && said.all().contains("two copies of it disagree"), "{said:?}");
    // Without a history a set that is missing between two on media shows.
    std::fs::remove_file(place.path("other-keys/msdb.db")).unwrap();
    let said = elsewhere(&place, &["verify", "one.bak"]);
    assert!(said.all().contains("does not go on behind set 1"), "{said:?}");
}

/// A disk that forgets is no forger: a checksum says which it was.
#[test]
fn a_flipped_checksum_of_a_chunk_is_damage_and_no_forgery() {
    let place = scene();
    back_up(&place, "a.bak");
    let whole = std::fs::read(place.path("a.bak")).unwrap();
    let chunk = whole.windows(4).position(|window| window == b"PCHK").unwrap();
    // In the prefix: the number of pages, what is stored, and the checksum.
    for at in [20, 27, 40] {
        edit(&place.path("a.bak"), |bytes| bytes[chunk + at] ^= 1);
        for words in [&["restore", "a.bak", "--to", "new.db"][..], &["verify", "a.bak", "--open"]] {
            let said = place.pellucid(words);
            assert!(said.code == 3 && said.stderr.contains("damaged"), "{at}: {said:?}");
            assert!(!said.stderr.contains("that were signed"), "{at}: {said:?}");
        }
        std::fs::write(place.path("a.bak"), &whole).unwrap();
    }
}
