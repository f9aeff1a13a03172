//! Goal: what a newer version made is named as such and left alone, whatever is done with it; a flag that only forbids
//! writing leaves it readable, and one that forbids nothing is kept.
//!
//! Method: the header of a database is given flags, a byte in use or a later version with the key of the place's keyring,
//! in both copies or in one. Every command and `sqlite3` through `run` are tried with and without a WAL beside it, and all
//! files have to stay as they are.

use std::path::Path;

use crate::support::{edit, header, plant, said, said_with, sha256, Place, PELLUCID};
use pellucid::header::{COPY_BYTES, COPY_OFFSETS};

/// Changes bytes of header copies and signs them again.
fn forge(place: &Place, copies: &[usize], change: impl Fn(&mut [u8])) {
    let key = plant::header_and_key(place, "app.db").1;
    edit(&place.path("app.db"), |bytes| {
        for copy in copies {
            let at = COPY_OFFSETS[*copy] as usize;
            let copy = &mut bytes[at..at + COPY_BYTES];
            change(copy);
            let mac = key.sign(&[&copy[..COPY_BYTES - 64]]);
            copy[COPY_BYTES - 64..COPY_BYTES - 32].copy_from_slice(&mac);
            let sum = sha256(&copy[..COPY_BYTES - 32]);
            copy[COPY_BYTES - 32..].copy_from_slice(&sum);
        }
    });
}

fn sqlite3(place: &Place, sql: &str) -> crate::support::Said {
    let mut command = place.command(PELLUCID);
    said(command.args(["run", "--", "sqlite3", "-batch", "-bail", "app.db", sql]))
}

/// A sealed database with a commit that is in its WAL alone, as a killed writer leaves it.
fn with_wal() -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.secret("new.key", &[9; 32]);
    let mut command = place.command(PELLUCID);
    command.args(["run", "--", "sqlite3", "-batch", "-bail", "app.db"]);
    let script = "PRAGMA journal_mode=WAL;\nINSERT INTO t VALUES (1000, 'in the log');\n\
                  .shell mkdir kept && cp app.db app.db-wal kept\n";
    said_with(&mut command, script).succeeded();
    for name in ["app.db", "app.db-wal"] {
        std::fs::rename(place.path("kept").join(name), place.path(name)).unwrap();
    }
    place
}

/// Each of these has to end with 1, say `says`, and change nothing.
fn refuse_everything(place: &Place, says: &str) {
    let before = place.snapshot();
    for words in [
        "check app.db",
        "backup app.db --to app.bak",
        "rekey app.db",
        "decrypt app.db",
        "salvage app.db --to saved.db",
        "protector add app.db --new-key-file new.key",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let told = place.pellucid(&words);
        assert_eq!(told.code, 1, "{words:?}: {told:?}");
        assert!(told.stderr.contains(says), "{words:?}: {told:?}");
    }
    for sql in ["SELECT count(*) FROM t", "INSERT INTO t VALUES (NULL, 'x')", "VACUUM"] {
        let told = sqlite3(place, sql);
        assert!(told.code != 0 && told.stdout.is_empty(), "{sql}: {told:?}");
        assert!(told.stderr.contains(says), "{sql}: {told:?}");
    }
    let after = place.snapshot();
    // SQLite makes an index before it looks at a log.
    let index = place.path("app.db-shm");
    let changed = |path: &Path| !path.starts_with(place.path("keys")) && path != index;
    let own = |files: &crate::support::Snapshot| {
        files.clone().into_iter().filter(|(path, _)| changed(path)).collect::<Vec<_>>()
    };
    assert_eq!(own(&before), own(&after));
}

fn status_says(place: &Place, says: &str) {
    let told = place.pellucid(&["status", "app.db"]);
    assert!(told.all().contains(says), "{told:?}");
}

#[test]
fn a_newer_header_is_refused_by_name_before_its_log_is_looked_at() {
    for (copies, what, says) in [
        (&[0, 1][..], (19, 3), "format version 3 is newer than 2"),
        (&[0], (19, 3), "format version 3 is newer than 2"),
        (&[1], (19, 3), "format version 3 is newer than 2"),
        (&[0, 1], (121, 4), "incompatible flags 0x0004 are not known to this version"),
        (&[1], (121, 4), "incompatible flags 0x0004 are not known to this version"),
        (&[0, 1], (70, 1), "byte 70 is not zero"),
        (&[0, 1], (7000, 1), "byte 7000 is not zero"),
    ] {
        let place = with_wal();
        let (at, value) = what;
        forge(&place, copies, |copy| copy[at] = value);
        refuse_everything(&place, says);
        assert!(!place.path("app.db-shm").exists(), "no index was made");
        status_says(&place, says);
        // Sector 0 makes no difference: it is not taken for another kind of file.
        edit(&place.path("app.db"), |bytes| bytes[..512].fill(0x55));
        refuse_everything(&place, says);
    }
}

#[test]
fn a_newer_sector_0_is_refused_by_name() {
    for (magic, at) in [(&b"Pellucid sealed\0"[..], 60), (b"Pellucid laying\0", 100)] {
        let place = with_wal();
        edit(&place.path("app.db"), |bytes| {
            bytes[..16].copy_from_slice(magic);
            bytes[at] = 1;
            let sum = sha256(&bytes[..480]);
            bytes[480..512].copy_from_slice(&sum);
        });
        refuse_everything(&place, &format!("sector 0: byte {at} is not zero"));
        status_says(&place, &format!("sector 0: byte {at} is not zero"));
    }
}

/// A header of the WAL with another version, and the checksum that goes with it (SQLite file format, 4.1).
fn with_version(wal: &mut [u8], version: u32) {
    wal[4..8].copy_from_slice(&version.to_be_bytes());
    let word = |at: usize| {
        let bytes: [u8; 4] = wal[at..at + 4].try_into().unwrap();
        if wal[3] & 1 == 1 {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    };
    let (mut first, mut second) = (0u32, 0u32);
    for at in (0..24).step_by(8) {
        first = first.wrapping_add(word(at)).wrapping_add(second);
        second = second.wrapping_add(word(at + 4)).wrapping_add(first);
    }
    wal[24..28].copy_from_slice(&first.to_be_bytes());
    wal[28..32].copy_from_slice(&second.to_be_bytes());
}

#[test]
fn the_log_of_a_newer_version_is_refused_and_left_as_it_is() {
    for (version, torn, newest) in [
        // Of the version that a database of version 2 has.
        (0x5045_4c02, false, "0x50454c01"),
        (0x5045_4c02, true, "0x50454c01"),
        (0x5045_4c04, false, "0x50454c02"),
        (0x5045_4c04, true, "0x50454c02"),
        (0x5045_4c05, false, "0x50454c02"),
    ] {
        let place = with_wal();
        edit(&place.path("app.db-wal"), |wal| {
            with_version(wal, version);
            wal[27] ^= u8::from(torn);
        });
        refuse_everything(&place, &format!("version {version:#x} is newer than {newest}"));
        // With its own version it is the log it was.
        edit(&place.path("app.db-wal"), |wal| with_version(wal, 0x5045_4c01));
        let told = sqlite3(&place, "SELECT count(*) FROM t WHERE b = 'in the log'");
        assert_eq!(told.stdout, "1\n", "{told:?}");
    }
}

/// SQLite deletes a log without a look at it where the database has no pages.
#[test]
fn the_log_of_a_newer_version_is_not_deleted_beside_a_database_without_pages() {
    let place = with_wal();
    edit(&place.path("app.db"), |bytes| bytes.truncate(16384));
    edit(&place.path("app.db-wal"), |wal| with_version(wal, 0x5045_4c04));
    // Where the keyring has seen pages at the path, a header alone is refused before.
    std::fs::remove_dir_all(place.path("keys/keyring/paths")).unwrap();
    let before = std::fs::read(place.path("app.db-wal")).unwrap();
    let told = sqlite3(&place, "SELECT count(*) FROM sqlite_schema");
    assert!(told.code != 0 && told.stderr.contains("version 0x50454c04"), "{told:?}");
    assert!(before == std::fs::read(place.path("app.db-wal")).unwrap());
}

#[test]
fn with_an_unknown_read_only_flag_it_can_be_read_and_not_written() {
    let place = with_wal();
    forge(&place, &[0, 1], |copy| copy[123] = 0x10);
    let whole = std::fs::read(place.path("app.db")).unwrap();
    let says = "read-only flags 0x0010 are not known to this version";
    for sql in ["SELECT count(*) FROM t", "SELECT count(*) FROM t WHERE b = 'in the log'"] {
        let told = sqlite3(&place, sql);
        assert_eq!(told.code, 0, "{told:?}");
        assert!(["201\n", "1\n"].contains(&told.stdout.as_str()), "{told:?}");
    }
    place.pellucid(&["check", "app.db"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    for sql in ["INSERT INTO t VALUES (NULL, 'x')", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"] {
        let told = sqlite3(&place, sql);
        let busy = told.stdout.starts_with("1|");
        assert!(told.code != 0 || busy, "{sql}: {told:?}");
        assert!(told.stderr.contains(says), "{sql}: {told:?}");
    }
    for words in ["rekey app.db", "decrypt --keep-container app.db", "decrypt app.db"] {
        let words: Vec<&str> = words.split(' ').collect();
        let told = place.pellucid(&words);
        assert_eq!(told.code, 1, "{words:?}: {told:?}");
        assert!(told.stderr.contains(says), "{words:?}: {told:?}");
    }
    assert!(whole == std::fs::read(place.path("app.db")).unwrap(), "nothing was written");
    // The commit is still where it was, for the newer version.
    forge(&place, &[0, 1], |copy| copy[123] = 0);
    let told = sqlite3(&place, "SELECT count(*) FROM t WHERE b = 'in the log'");
    assert_eq!(told.stdout, "1\n", "{told:?}");
}

#[test]
fn an_unknown_compatible_flag_is_kept_by_whoever_writes_the_header() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    forge(&place, &[0, 1], |copy| copy[124..126].copy_from_slice(&[0x80, 1]));
    let kept = |when: &str| {
        let bytes = std::fs::read(place.path("app.db")).unwrap();
        for at in COPY_OFFSETS {
            assert_eq!(bytes[at as usize + 124..][..2], [0x80, 1], "{when}");
        }
    };
    let before = header(&place.path("app.db")).sequence;
    sqlite3(&place, "INSERT INTO t VALUES (NULL, 'x')").succeeded();
    kept("after a write");
    place.pellucid(&["rekey", "app.db"]).succeeded();
    kept("after a rekey");
    place.secret("new.key", &[9; 32]);
    let key = ["--new-key-file", "new.key"];
    place.pellucid(&[&["protector", "add", "app.db"], &key[..]].concat()).succeeded();
    kept("after another protector");
    place.pellucid(&["protector", "drop", "app.db", "--number", "2"]).succeeded();
    place.pellucid(&["decrypt", "--keep-container", "app.db"]).succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    kept("after off and on");
    assert!(header(&place.path("app.db")).sequence >= before + 5);
}

/// The bytes of a vector, in a file of the place, and its key beside it.
fn media_of(place: &Place, vector: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(vector);
    let text = std::fs::read_to_string(path).unwrap();
    let unhex = |digits: &str| -> Vec<u8> {
        let pair = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(pair).collect()
    };
    let (head, body) = text.split_once("\n\n").unwrap();
    let key = head.lines().find_map(|line| line.strip_prefix("key-file: ")).unwrap();
    place.secret("a.key", &unhex(key));
    std::fs::write(place.path("a.bak"), unhex(&body.replace('\n', ""))).unwrap();
}

#[test]
fn nothing_is_appended_to_media_that_only_a_newer_version_may_write() {
    let key = ["--key-file", "a.key"];
    for (vector, readable, says) in [
        ("media_read-only-flag", true, "read-only flags 0x0002"),
        ("media_compatible-flag", true, ""),
        ("media_incompatible-flag", false, "incompatible flags 0x0002"),
        ("media_reserved-set-type", false, "backup type 2 is reserved"),
        ("media_set-byte-in-use", false, "byte 83 is not zero"),
    ] {
        let place = Place::new();
        media_of(&place, vector);
        place.plain("app.db");
        let before = std::fs::read(place.path("a.bak")).unwrap();
        let append = ["backup", "app.db", "--to", "a.bak", "--append", "--compression", "none"];
        let told = place.pellucid(&[&append[..], &key].concat());
        let header = place.pellucid(&["header", "a.bak"]);
        if says.is_empty() {
            assert_eq!(told.code, 0, "{vector}: {told:?}");
        } else {
            assert_eq!(told.code, 1, "{vector}: {told:?}");
            assert!(told.stderr.contains(says), "{vector}: {told:?}");
            assert!(before == std::fs::read(place.path("a.bak")).unwrap(), "{vector}");
            assert!(!header.all().contains("damaged"), "{vector}: {header:?}");
        }
        // The pages of the vector are no database's: it is read to its end, and only then refused for that (3).
        let restore = ["restore", "a.bak", "--to", "new.db", "--decrypted", "--position", "1"];
        let told = place.pellucid(&[&restore[..], &key].concat());
        assert_eq!(told.code, if readable { 3 } else { 1 }, "{vector}: {told:?}");
        assert_eq!(told.stderr.contains("no SQLite database's"), readable, "{vector}: {told:?}");
        assert!(!place.path("new.db").exists(), "{vector}");
    }
}

#[test]
fn a_log_set_is_listed_and_verified_and_no_database_is_made_of_it() {
    let place = Place::new();
    media_of(&place, "media_log-set");
    let header = place.pellucid(&["header", "a.bak", "--json"]);
    assert_eq!(header.code, 0, "{header:?}");
    assert!(header.stdout.contains("\"type\":\"log\""), "{header:?}");
    let verify = ["verify", "a.bak", "--position", "2", "--key-file", "a.key"];
    let told = place.pellucid(&[&verify[..], &["--open"]].concat());
    assert_eq!(told.code, 0, "{told:?}");
    let restore = [
        "restore",
        "a.bak",
        "--to",
        "new.db",
        "--decrypted",
        "--position",
        "2",
        "--key-file",
        "a.key",
    ];
    for command in [[&verify[..], &["--check"]].concat(), restore.to_vec()] {
        let told = place.pellucid(&command);
        assert_eq!(told.code, 1, "{told:?}");
        assert!(told.stderr.contains("backup set 2: it is a log set"), "{told:?}");
    }
    assert!(!place.path("new.db").exists());
}
