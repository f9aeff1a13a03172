//! Every file in `vectors/` gives the bytes, or the very failure, that it states.
//!
//! Each case is opened from the inputs in it alone; a success is sealed again with the nonce of the
//! case and has to give the same bytes. A kind of object or failure without a case fails the test, and
//! so does a case of an unlisted kind. A vector is not regenerated to pass a test.

use std::collections::BTreeSet;
use std::path::Path;

use pellucid::Error;

mod case;
mod media;
mod objects;

use case::Case;

/// Object and kind of each case there has to be.
const KINDS: &[(&str, &[&str])] = &[
    ("unit", &["AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY"]),
    (
        "page",
        &[
            "AES_128",
            "AES_192",
            "AES_256",
            "TRIPLE_DES_3KEY",
            "older-generation",
            "flipped-tag",
            "flipped-tag-triple-des",
            "flipped-nonce",
            "flipped-ciphertext",
            "wrong-place",
            "wrong-file-id",
            "wrong-key",
            "generation-unlisted",
            "generation-0",
            "all-zero",
        ],
    ),
    (
        "wal-header",
        &[
            "little-endian",
            "big-endian",
            "plain",
            "flipped",
            "reserved-version",
            "reserved-version-torn",
            "later-version",
        ],
    ),
    (
        "wal-frame",
        &[
            "sealed",
            "flipped-tag",
            "flipped-clear",
            "wrong-place",
            "wrong-file-id",
            "generation-unlisted",
            "generation-0",
            "page-of-the-database",
        ],
    ),
    (
        "journal-header",
        &[
            "sealed",
            "one-copy-damaged",
            "both-copies-damaged",
            "wrong-place",
            "byte-in-use",
            "rest-in-use",
        ],
    ),
    (
        "journal-record",
        &["sealed", "flipped-tag", "flipped-page-number", "wrong-place", "wrong-journal"],
    ),
    ("temporary-block", &["sealed", "flipped-tag", "wrong-place", "wrong-key"]),
    (
        "sector-0",
        &[
            "sealed",
            "sealed-65536",
            "laying",
            "foreign",
            "flipped",
            "byte-in-use",
            "laying-byte-in-use",
        ],
    ),
    ("wear", &["counted", "flipped", "wrong-place", "byte-in-use"]),
    (
        "header",
        &[
            "key-file",
            "key-file-hexadecimal",
            "passphrase",
            "certificate",
            "recovery",
            "several",
            "older-dek",
            "torn",
            "not-a-header",
            "forged",
            "newer-version",
            "incompatible-flag",
            "read-only-flag",
            "compatible-flag",
            "byte-in-use",
            "padding-in-use",
            "row-in-use",
            "current-dek-wrapped",
            "ends-elsewhere",
            "reserved-algorithm",
            "reserved-protector-4",
            "reserved-protector-5",
            "unknown-algorithm",
            "unknown-state",
            "unknown-protector",
            "too-many-protectors",
            "protector-runs-over",
            "no-protector",
            "control-character-in-name",
            "argon2-cost-too-high",
            "argon2-lanes-too-many",
            "no-key",
            "wrong-key",
            "wrong-passphrase",
            "missing-certificate",
            "recovery-not-asked-for",
            "substituted-certificate",
            "substituted-dek",
            "protector-of-another-file",
            "flipped-older-dek",
            "another-file-id",
            "another-file-id-unflagged",
        ],
    ),
    (
        "keyring",
        &[
            "master-key",
            "certificate",
            "database",
            "torn",
            "flipped-tag",
            "wrong-key",
            "newer-version",
            "wrong-name",
            "read-only-flag",
            "compatible-flag",
            "incompatible-flag-1",
            "incompatible-flag-2",
            "incompatible-flag-4",
        ],
    ),
    (
        "bundle",
        &[
            "passphrase",
            "certificate",
            "wrong-passphrase",
            "torn",
            "flipped",
            "forged",
            "entry-twice",
            "entry-elsewhere",
            "unknown-entry",
        ],
    ),
    (
        "media",
        &[
            "in-clear",
            "sealed",
            "sealed-zstd",
            "sealed-lz4",
            "triple-des",
            "differential",
            "without-tails",
            "striped",
            "flipped-chunk",
            "forged-chunk",
            "forged-set-header",
            "forged-manifest",
            "interrupted",
            "newer-version",
            "no-media",
            "wrong-key",
            "unknown-compression",
            "media-byte-in-use",
            "media-padding-in-use",
            "media-unknown-flag",
            "set-byte-in-use",
            "set-unknown-flag",
            "incompatible-flag",
            "read-only-flag",
            "compatible-flag",
            "reserved-set-type",
            "manifest-byte-in-use",
            "manifest-unknown-flag",
            "reserved-chunk-5",
            "reserved-chunk-6",
            "chunk-byte-in-use",
            "damaged-chunk-kind",
        ],
    ),
];

fn kind_of(error: &Error) -> &'static str {
    match error {
        Error::Unauthentic { .. } => "unauthentic",
        Error::Corrupt { .. } => "corrupt",
        Error::Unsupported { .. } => "unsupported",
        Error::MissingKey { .. } => "missing-key",
        Error::Misuse { .. } => "misuse",
        Error::LimitReached { .. } => "limit",
        _ => "io",
    }
}

fn check(case: &Case) {
    let expected = case.text("expect");
    match objects::run(case) {
        Ok(()) => assert_eq!(expected, "success", "it opened"),
        Err(error) => {
            assert_eq!(expected, kind_of(&error), "{error}");
            let told = error.to_string();
            assert!(told.contains(case.text("error")), "told `{told}`");
        }
    }
}

#[test]
fn every_vector_gives_what_it_says_and_no_kind_is_left_out() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let mut missing: BTreeSet<(&str, &str)> = KINDS
        .iter()
        .flat_map(|(object, kinds)| kinds.iter().map(move |kind| (*object, *kind)))
        .collect();
    let all = missing.clone();
    let mut failed = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.contains('.') {
            continue;
        }
        let case = Case::parse(&std::fs::read_to_string(&path).unwrap()).expect(&name);
        let kind = (case.text("object"), case.text("kind"));
        assert_eq!(name, format!("{}_{}", kind.0, kind.1), "a file is named by object and kind");
        if !all.contains(&kind) {
            failed.push(format!("{name}: not in the list of kinds"));
        }
        missing.retain(|listed| *listed != kind);
        if std::panic::catch_unwind(|| check(&case)).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:#?}");
    assert!(missing.is_empty(), "no case for: {missing:#?}");
}
