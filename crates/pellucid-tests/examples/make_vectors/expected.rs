//! Vectors of what is expected at a path: a header, and what a keyring or the caller says of it.

use pellucid::derive::commitment;
use pellucid::header::{EncryptionState, Header};
use pellucid::keys::{ContainerKeys, HeaderKey};
use pellucid::protector::{self, Binding, KeyFile, Purpose, Wrapping};
use pellucid::unit::{FileKind, Place};
use pellucid::{Algorithm, Result};

use super::{case, dek, header, key_bytes, Case, Fixed, FILE_ID, OTHER_ID};

const ALGORITHM: Algorithm = Algorithm::Aes256;
const REPLACED: &str = "replaced";

/// Page 1 of a database without tables, without its reserved bytes.
fn page_1() -> Vec<u8> {
    let mut page = b"SQLite format 3\0".to_vec();
    page.extend_from_slice(&[2, 0, 1, 1, 32, 64, 32, 32]);
    page.resize(480, 0);
    // Change counter and pages in sight of each other, schema format 4, UTF-8.
    for (at, value) in [(27, 1), (31, 1), (47, 4), (59, 1), (95, 1)] {
        page[at] = value;
    }
    page[96..100].copy_from_slice(&3_040_001u32.to_be_bytes());
    // An empty leaf of a table, whose cells would end where the reserved bytes begin.
    page[100] = 13;
    page[105..107].copy_from_slice(&480u16.to_be_bytes());
    page
}

/// A container in this state, with one page.
fn container(kind: &str, state: EncryptionState) -> Result<Case> {
    let key_file = KeyFile::parse(&key_bytes(64)).unwrap();
    let commitment = commitment(&dek(), &FILE_ID)?;
    let binding = Binding {
        purpose: Purpose::Database,
        id: &FILE_ID,
        algorithm: ALGORITHM,
        commitment: &commitment,
    };
    let mut protector = Vec::new();
    protector::wrap(&dek(), &binding, &Wrapping::KeyFile(&key_file))?.encode(&mut protector);
    let mut header = Header { state, ..header(&dek(), FILE_ID, ALGORITHM)? };
    header.protectors = vec![protector];
    header.deks[0].plain = state == EncryptionState::Unencrypted;
    let keys = ContainerKeys::new(&header, &dek())?;
    let (place, mut page) = (Place::page(&FILE_ID, 1), vec![0; 512]);
    keys.seal(FileKind::Database, &place, &mut Fixed(0), &page_1(), &mut page)?;
    Ok(case("expected", kind, ALGORITHM)
        .with("sequence", 5)
        .with_bytes("key-file", &key_bytes(64))
        .with_bytes("page", &page)
        .with_body(&header.encode(&HeaderKey::derive(&dek(), &FILE_ID)?)?[..]))
}

pub fn cases() -> Result<Vec<Case>> {
    let nothing = container("nothing", EncryptionState::Encrypted)?;
    let off = container("off", EncryptionState::Unencrypted)?;
    let own = commitment(&dek(), &FILE_ID)?;
    let pinned = |case: &Case, id: &[u8; 16], sequence: u64| {
        case.clone().with_bytes("pin", id).with("pin-sequence", sequence).with("pin-sealed", "yes")
    };
    let kind = |case: Case, kind: &str| case.with("kind", kind);
    let (same, later) = (pinned(&nothing, &FILE_ID, 5), pinned(&nothing, &FILE_ID, 6));
    let another = pinned(&nothing, &OTHER_ID, 5);
    let other = pellucid::hash::hex(&OTHER_ID);
    let both = format!("{other},{}", pellucid::hash::hex(&FILE_ID));
    let known = |case: &Case, sequence: u64| case.clone().with("known-sequence", sequence);
    Ok(vec![
        kind(same.clone(), "pinned"),
        later.failing("older-header", REPLACED, "an older header, 5, of it"),
        pinned(&off, &FILE_ID, 5).failing("switched-off", REPLACED, "is switched off"),
        pinned(&off, &OTHER_ID, 5).failing(
            "another-switched-off",
            REPLACED,
            "another database, whose encryption is switched off",
        ),
        kind(pinned(&off, &FILE_ID, 5).with("pin-sealed", "no"), "switched-off-as-known"),
        kind(another.clone(), "another"),
        another
            .failing("another-where-strict", REPLACED, "another encrypted database, file id")
            .with("strict", "yes"),
        another
            .failing("former", REPLACED, "the database that was here before")
            .with_bytes("pin-former", &FILE_ID),
        kind(another.clone().with("strict", "yes").with_bytes("pin-next", &FILE_ID), "next"),
        known(&another, 6).failing(
            "older-header-of-another",
            REPLACED,
            "an older header of another database",
        ),
        nothing
            .failing("retired", REPLACED, "it is under a key that a rekey replaced")
            .with_bytes("retired", &own),
        same.failing("retired-and-pinned", REPLACED, "under a key that a rekey replaced")
            .with_bytes("retired", &own),
        kind(
            same.clone().with_bytes("retired", &own).with_bytes("pin-retired", &own),
            "retired-and-accepted",
        ),
        nothing
            .failing("another-file-id", REPLACED, "is asked for, and this is")
            .with("file-ids", &other),
        kind(nothing.clone().with("file-ids", both), "one-of-the-file-ids"),
        known(&off, 5).failing(
            "known-as-encrypted",
            "unauthentic",
            "the keyring knows this database as encrypted",
        ),
        kind(known(&off, 4), "switched-off-later"),
        nothing,
        off,
    ])
}
