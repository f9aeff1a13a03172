//! Every file in `vectors/` gives the bytes, or the very failure, that it states.
//!
//! Each case is opened from the inputs in it alone; a success is sealed again with the nonce of the
//! case and has to give the same bytes. A kind of object or failure without a case fails the test, and
//! so does a case of an unlisted kind. A vector is not regenerated to pass a test.

use std::collections::BTreeSet;
use std::path::Path;

use pellucid::Error;

mod archives;
mod case;
mod kinds;
mod logs;
mod media;
mod objects;

use case::Case;
use kinds::KINDS;

fn kind_of(error: &Error) -> &'static str {
    match error {
        Error::Unauthentic { .. } => "unauthentic",
        Error::Corrupt { .. } => "corrupt",
        Error::WrongKind { .. } => "wrong-kind",
        Error::Unsupported { .. } => "unsupported",
        Error::MissingKey { .. } => "missing-key",
        Error::Misuse { .. } => "misuse",
        Error::LimitReached { .. } => "limit",
        Error::Replaced { .. } => "replaced",
        Error::Message { message, .. } if message.number == 15465 => "missing-key",
        Error::Message { .. } => "corrupt",
        _ => "io",
    }
}

fn check(case: &Case) {
    let expected = case.text("expect");
    match objects::run(case) {
        Ok(()) => assert_eq!(expected, "success", "it opened"),
        Err(error) => {
            assert_eq!(expected, kind_of(&error), "{error}");
            let (told, says) = (error.to_string(), case.text("error"));
            // The words of a reader of version 1. Where version 2 has given the number a meaning, the object is refused by its
            // fields: an error of the same kind.
            let of_first = says == "format version 2 is newer than 1";
            assert!(of_first || told.contains(says), "told `{told}`");
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
        if kind.0 == "expected" {
            // `tests/expected.rs` opens it: it takes an instance that the whole process has.
            continue;
        }
        if std::panic::catch_unwind(|| check(&case)).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:#?}");
    assert!(missing.is_empty(), "no case for: {missing:#?}");
}
