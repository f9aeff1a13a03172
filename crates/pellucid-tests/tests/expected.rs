//! Goal: what the keyring or the caller expects at a path decides about a container as the vectors `expected_*` state.
//!
//! Method: the container of each is put together and opened by SQLite under the shim, in an instance of its own that knows
//! what the vector says. A binary of its own, because the instance is a variable of the process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pellucid::header::Header;
use pellucid::sector::SectorZero;
use pellucid_host::code::last_report;
use pellucid_keyring::policy::{Limit, Policy};
use pellucid_keyring::{DatabaseMemory, Keyring, Pin};
use rusqlite::{Connection, OpenFlags};

#[allow(dead_code)] // the generator writes, this reads
#[path = "format/vectors/case.rs"]
mod case;

use case::Case;

/// The container of the case: sector 0, both header copies and page 1.
fn container(case: &Case) -> Vec<u8> {
    let mut bytes = SectorZero::Sealed { file_id: case.array("file-id") }.encode(512).to_vec();
    bytes.resize(2048, 0);
    bytes.extend_from_slice(&case.body);
    bytes.extend_from_slice(&case.body);
    bytes.extend_from_slice(&case.bytes("page"));
    bytes
}

/// An instance that knows what the case says.
fn know(case: &Case, home: &Path, path: &Path) {
    let (keyring, _) = Keyring::open_or_create(home).unwrap();
    let id = |key: &str| case.get(key).map(|_| case.array(key));
    if let Some(file_id) = id("pin") {
        let pin = Pin {
            path: path.to_owned(),
            file_id,
            sequence: case.number("pin-sequence"),
            sealed: case.text("pin-sealed") == "yes",
            next: id("pin-next"),
            former: id("pin-former"),
            retired: case.get("pin-retired").map(|_| case.array("pin-retired")),
            ..Pin::default()
        };
        keyring.change_pin(path, |_| Some(pin)).unwrap();
    }
    if case.get("retired").is_some() {
        keyring.retire(&case.array("retired")).unwrap();
    }
    if case.get("known-sequence").is_some() {
        let sequence = case.number("known-sequence");
        let memory = DatabaseMemory { sequence, sealed: true, ..DatabaseMemory::default() };
        keyring.remember_database(&case.array("file-id"), &memory).unwrap();
    }
    if case.get("strict") == Some("yes") {
        keyring.set_policy(Policy::StrictPaths, Some(Limit::On)).unwrap();
    }
}

fn check(case: &Case) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().canonicalize().unwrap();
    let (home, path, key) =
        (directory.join("keys"), directory.join("app.db"), directory.join("key"));
    std::env::set_var("PELLUCID_HOME", &home);
    know(case, &home, &path);
    std::fs::write(&path, container(case)).unwrap();
    std::fs::write(&key, case.bytes("key-file")).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    Header::parse(&case.body, 0).unwrap();
    let ids = case.get("file-ids").map_or(String::new(), |ids| format!("&file_id={ids}"));
    let uri = format!("file:{}?vfs=pellucid&key_file={}{ids}", path.display(), key.display());
    last_report();
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI;
    let read = Connection::open_with_flags(uri, flags).and_then(|connection| {
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
    });
    let line = last_report().map(|report| report.line).unwrap_or_default();
    match case.get("error") {
        None => assert_eq!(read.unwrap(), 0, "{line}"),
        Some(error) => {
            read.expect_err(error);
            assert!(line.contains(error), "told `{line}`");
        }
    }
}

#[test]
fn every_vector_of_what_is_expected_gives_what_it_says() {
    pellucid_bundled::register().unwrap();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let mut names: Vec<_> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("expected_"))
        .collect();
    names.sort();
    assert!(names.len() >= 19, "{names:?}");
    let mut failed = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(directory.join(&name)).unwrap();
        let case = Case::parse(&text).expect(&name);
        if std::panic::catch_unwind(|| check(&case)).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:#?}");
}
