//! Goal: neither an older header put back nor a container made with the public half of our certificate is taken.
//!
//! Method: both are made with the core crate alone, as somebody with write access (and, for the header, a past
//! reader's key) would make them, and are valid in every other respect. `check` and `sqlite3` through `run` have to
//! refuse them with a message of their own; directory and keyring stay as they were.

use crate::support::{edit, header, said, Place, PELLUCID};
use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::derive::commitment;
use pellucid::header::{EncryptionState, Header, COPY_OFFSETS, REGION_BYTES};
use pellucid::keys::HeaderKey;
use pellucid::protector::{wrap, Binding, KeyFile, Protector};
use pellucid::protector::{Purpose, Wrapping};
use pellucid::Dek;
use pellucid_keyring::Keyring;

/// Refused by `check` and by the shim in front of `sqlite3`, each time with `says`, and nothing is changed but what the keyring
/// remembers of the check.
fn refused(place: &Place, exit: i32, kind: &str, says: &str, sqlite: &str) {
    let snapshot = || {
        let mut files = place.snapshot();
        files.retain(|path, _| !path.starts_with(place.path("keys/keyring/checks")));
        files
    };
    let before = snapshot();
    for subcommand in ["check", "decrypt"] {
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_KEY_FILE", "right.key").args(["--json", subcommand, "app.db"]);
        let told = said(&mut command);
        let facts: serde_json::Value =
            serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"));
        assert_eq!((told.code, facts["kind"].as_str().unwrap()), (exit, kind), "{told:?}");
        assert!(told.stderr.contains(says), "{told:?}");
    }
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_KEY_FILE", "right.key");
    let told = said(command.args(["run", "--", "sqlite3", "-batch", "app.db", "SELECT b FROM t"]));
    assert!(told.code != 0 && told.stdout.is_empty(), "{told:?}");
    assert!(told.stderr.contains(says) && told.stderr.contains(sqlite), "{told:?}");
    assert_eq!(before, snapshot());
}

fn dek_of(header: &Header) -> Dek {
    header.unwrap(&vec![KeyFile::parse(&[7; 32]).unwrap()]).unwrap()
}

fn put(place: &Place, header: &Header, dek: &Dek) {
    let key = HeaderKey::derive(dek, &header.file_id).unwrap();
    let copy = header.encode(&key).unwrap();
    edit(&place.path("app.db"), |bytes| {
        for at in COPY_OFFSETS {
            bytes[at as usize..at as usize + copy.len()].copy_from_slice(&copy[..]);
        }
    });
}

/// The header of a time when encryption was switched off, put back after it was switched on again.
fn switched_off_by_an_old_header(place: &Place, options: &[&str]) {
    let pellucid = |arguments: &[&str]| {
        let mut command = place.command(PELLUCID);
        if !options.is_empty() {
            command.env("PELLUCID_KEY_FILE", "right.key");
        }
        said(command.args(arguments)).succeeded();
    };
    place.secret("right.key", &[7; 32]);
    place.sealed_anew("app.db", options);
    pellucid(&["decrypt", "--keep-container", "app.db"]);
    let path = place.path("app.db");
    assert_eq!(header(&path).state, EncryptionState::Unencrypted);
    let old = std::fs::read(&path).unwrap()[..REGION_BYTES as usize].to_vec();
    pellucid(&["encrypt", "app.db"]);
    assert_eq!(header(&path).state, EncryptionState::Encrypted);
    pellucid(&["check", "app.db"]);
    edit(&path, |bytes| bytes[..old.len()].copy_from_slice(&old));
}

#[test]
fn an_old_header_that_says_unencrypted_is_refused_where_the_keyring_knows_better() {
    let place = Place::new();
    switched_off_by_an_old_header(&place, &[]);
    refused(&place, 3, "unauthentic", "an older header was put back", "disk I/O error");
}

/// Nobody remembers, but the pages are of a key that the old header does not list.
#[test]
fn it_opens_no_page_where_nobody_remembers() {
    let place = Place::new();
    switched_off_by_an_old_header(&place, &["--key-file", "right.key"]);
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_KEY_FILE", "right.key");
    command.args(["run", "--", "sqlite3", "-batch", "app.db", "INSERT INTO t VALUES (NULL, 'x')"]);
    let told = said(&mut command);
    assert!(told.code != 0 && told.stderr.contains("which the header does not list"), "{told:?}");
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_KEY_FILE", "right.key").args(["check", "app.db"]);
    assert_eq!(said(&mut command).code, 3);
}

/// A state that the header's keys do not fit is no state: nobody's plain page passes by it.
#[test]
fn a_header_whose_state_does_not_fit_its_keys_is_refused() {
    let place = Place::new();
    place.secret("right.key", &[7; 32]);
    place.sealed_anew("app.db", &["--key-file", "right.key"]);
    let mut old = header(&place.path("app.db"));
    let dek = dek_of(&old);
    old.state = EncryptionState::Unencrypted;
    put(&place, &old, &dek);
    let says = "the header's state is `unencrypted`, but its keys belong to another state";
    refused(&place, 3, "corrupt", says, "database disk image is malformed");
}

/// A container of somebody who has only our certificate's public half, and knows the DEK of course.
fn substituted(place: &Place, forge: impl Fn(&Dek, &Binding<'_>, &Certificate) -> Protector) {
    place.secret("right.key", &[7; 32]);
    place.sealed_anew("other.db", &[]); // makes the keyring
    std::fs::remove_file(place.path("other.db")).unwrap();
    place.sealed_anew("app.db", &["--key-file", "right.key"]);
    let mut header = header(&place.path("app.db"));
    let dek = dek_of(&header);
    let keyring = Keyring::open(&place.path("keys")).unwrap();
    let ours = keyring.certificate("pellucid").unwrap();
    let commitment = commitment(&dek, &header.file_id).unwrap();
    let binding = Binding {
        purpose: Purpose::Database,
        id: &header.file_id,
        algorithm: header.algorithm().unwrap(),
        commitment: &commitment,
    };
    let mut encoded = Vec::new();
    forge(&dek, &binding, &ours).encode(&mut encoded);
    header.protectors = vec![encoded];
    put(place, &header, &dek);
}

/// Recovery protectors carry no signature and are used only when asked for: that flag is in the header.
#[test]
fn a_protector_made_with_the_public_half_is_not_used() {
    let place = Place::new();
    substituted(&place, |dek, binding, ours| {
        wrap(dek, binding, &Wrapping::Recovery(ours.public())).unwrap()
    });
    let says = "no key for it. It opens with recovery certificate `pellucid` (`--online` or `PELLUCID_RECOVERY=1`).";
    refused(&place, 1, "missing-key", says, "authorization denied");
}

/// The flag taken away, and whatever can be had in place of the signature.
#[test]
fn key_substitution_is_refused() {
    let forgeries: [fn(&Dek, &Binding<'_>, &Certificate) -> Protector; 2] = [
        // Another certificate's signature over the right bytes, but for its thumbprint.
        |dek, binding, ours| {
            let theirs =
                Certificate::generate("pellucid", &CertificateRequest::new("pellucid", 365))
                    .unwrap();
            let (Protector::Certificate(real), Protector::Certificate(signed)) = (
                wrap(dek, binding, &Wrapping::Recovery(ours.public())).unwrap(),
                wrap(dek, binding, &Wrapping::Certificate(&theirs)).unwrap(),
            ) else {
                unreachable!()
            };
            forged(&real, &signature_of(&signed))
        },
        // No signature at all.
        |dek, binding, ours| {
            let made = wrap(dek, binding, &Wrapping::Recovery(ours.public())).unwrap();
            let Protector::Certificate(real) = made else { unreachable!() };
            forged(&real, &[])
        },
    ];
    for forge in forgeries {
        let place = Place::new();
        substituted(&place, forge);
        let says = "the protector was not made by this certificate";
        refused(&place, 3, "unauthentic", says, "disk I/O error");
    }
}

type OfCertificate = pellucid::protector::CertificateProtector;

fn encoded(protector: &OfCertificate) -> Vec<u8> {
    let mut bytes = Vec::new();
    Protector::Certificate(protector.clone()).encode(&mut bytes);
    bytes
}

/// The last field of the payload (docs/format.md, "Protectors").
fn signature_of(protector: &OfCertificate) -> Vec<u8> {
    let bytes = encoded(protector);
    let name_bytes = usize::from(bytes[4]);
    let wrapped_at = 4 + 1 + name_bytes + 32;
    let wrapped = u16::from_be_bytes([bytes[wrapped_at], bytes[wrapped_at + 1]]);
    bytes[wrapped_at + 2 + usize::from(wrapped) + 2..].to_vec()
}

/// `real` without its recovery flag and with another signature.
fn forged(real: &OfCertificate, signature: &[u8]) -> Protector {
    let mut bytes = encoded(real);
    bytes[1] &= !1;
    let tail = bytes.len() - 2 - signature_of(real).len();
    bytes.truncate(tail);
    bytes.extend_from_slice(&(signature.len() as u16).to_be_bytes());
    bytes.extend_from_slice(signature);
    let length = (bytes.len() - 4) as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    Protector::decode(&bytes).unwrap().0
}
