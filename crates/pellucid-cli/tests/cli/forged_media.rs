//! Goal: media that somebody has put together of true parts, or changed without the key, are told, each with a message and
//! an exit status of its own; nothing of them is restored.
//!
//! Method: parts of whole media are cut out by their layout (docs/format.md, "Backup media") and put elsewhere, checksums
//! made right where that needs no key.

use std::path::Path;

use pellucid::media::{page_hash, Description, Kind, SetHeader};
use pellucid_backup::restore::{Family, FileSource};
use pellucid_backup::set::{write_set, Base, FamilyTarget, FileSink, NewSet, Options, PageSource};

use crate::support::{edit, sha256, Place};

const MEDIA_HEADER: usize = 4096;
const PREFIX: usize = 48;

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// A set: where it begins, its chunks, its manifest, where it ends.
#[derive(Debug)]
struct Parts {
    begin: usize,
    chunks: Vec<std::ops::Range<usize>>,
    manifest: std::ops::Range<usize>,
}

fn sets(bytes: &[u8]) -> Vec<Parts> {
    let (mut found, mut at) = (Vec::new(), MEDIA_HEADER);
    while at < bytes.len() {
        let begin = at;
        at += number(bytes, at + 20);
        let mut chunks = Vec::new();
        while bytes[at..].starts_with(b"PCHK") {
            let end = at + PREFIX + number(bytes, at + 28);
            chunks.push(at..end);
            at = end;
        }
        let end = at + number(bytes, at + 20);
        found.push(Parts { begin, chunks, manifest: at..end });
        at = end;
    }
    found
}

/// A sealed database of some MiB that does not compress, and a set of it in `m.bak`.
fn place(files: &[&str]) -> Place {
    let place = Place::new();
    let sql = "CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6)
        INSERT INTO t SELECT i, randomblob(900000) FROM n;";
    place.sqlite3("app.db", sql).succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    back_up(&place, files, &[]);
    place
}

fn back_up(place: &Place, files: &[&str], more: &[&str]) {
    let arguments = [&["backup", "app.db", "--compression", "none", "--to"], files, more].concat();
    place.pellucid(&arguments).succeeded();
}

/// `restore` and, with the key, `verify` refuse it; without the key only if `seen`.
fn told(place: &Place, media: &[&str], position: &str, seen: bool, says: &str) {
    let at = ["--position", position];
    let restore = [&["restore"], media, &at[..], &["--to", "x.db"]].concat();
    let restored = place.pellucid(&restore);
    assert_eq!(restored.code, 3, "{restored:?}");
    assert!(restored.stderr.contains(says), "`{says}`: {restored:?}");
    assert!(!place.path("x.db").exists() && !place.path("x.db.pellucid-new").exists());
    let verified = place.pellucid(&[&["verify"], media, &at[..]].concat());
    assert_eq!(verified.code, if seen { 3 } else { 0 }, "without the key: {verified:?}");
    let opened = place.pellucid(&[&["verify", "--open"], media, &at[..]].concat());
    assert_eq!(opened.code, 3, "{opened:?}");
}

#[test]
fn a_manifest_of_another_set_of_the_same_media() {
    let place = place(&["m.bak"]);
    back_up(&place, &["m.bak"], &["--append"]);
    edit(&place.path("m.bak"), |bytes| {
        let sets = sets(bytes);
        let (one, two) = (sets[0].manifest.clone(), sets[1].manifest.clone());
        let other = bytes[two.clone()].to_vec();
        let own = bytes[one.clone()].to_vec();
        bytes[one].copy_from_slice(&other);
        bytes[two].copy_from_slice(&own);
    });
    told(&place, &["m.bak"], "1", true, "manifest: it belongs to another backup set");
    // And it does not pass for media that end before.
    let last = place.pellucid(&["restore", "m.bak", "--to", "x.db"]);
    assert!(last.code == 3 && last.stderr.contains("cannot be found"), "{last:?}");
    assert_eq!(place.pellucid(&["verify", "m.bak"]).code, 3);
}

#[test]
fn chunks_exchanged_between_stripes_and_within_one() {
    let place = place(&["m.bak", "n.bak"]);
    // Of signed sets the roots are asked first: `media_signed-other-chunks` in vectors/.
    back_up(&place, &["m.bak", "n.bak"], &["--format", "--unsigned"]);
    let whole = ["m.bak", "n.bak"].map(|name| std::fs::read(place.path(name)).unwrap());
    let chunks = [&whole[0], &whole[1]].map(|bytes| sets(bytes)[0].chunks.clone());
    let same = |range: &&std::ops::Range<usize>, other: &std::ops::Range<usize>| {
        range.len() == other.len() && range.len() > 1 << 20
    };
    let mine = chunks[0].iter().find(|range| range.len() > 1 << 20).unwrap().clone();
    let theirs = chunks[1].iter().find(|range| same(range, &mine)).unwrap().clone();
    edit(&place.path("m.bak"), |bytes| {
        bytes[mine.clone()].copy_from_slice(&whole[1][theirs.clone()])
    });
    edit(&place.path("n.bak"), |bytes| {
        bytes[theirs.clone()].copy_from_slice(&whole[0][mine.clone()])
    });
    told(&place, &["m.bak", "n.bak"], "1", true, "it is not the one that the index names");
    let verified = place.pellucid(&["verify", "m.bak", "n.bak"]);
    assert!(
        verified.stderr.contains("chunks were exchanged, left out or repeated"),
        "{verified:?}"
    );

    // What is behind the prefixes alone.
    std::fs::write(place.path("m.bak"), &whole[0]).unwrap();
    std::fs::write(place.path("n.bak"), &whole[1]).unwrap();
    edit(&place.path("m.bak"), |bytes| {
        bytes[mine.start + PREFIX..mine.end]
            .copy_from_slice(&whole[1][theirs.start + PREFIX..theirs.end]);
    });
    told(&place, &["m.bak", "n.bak"], "1", true, "damaged: its checksum does not match");

    // The stripes under each other's name: which is which is in them.
    std::fs::write(place.path("m.bak"), &whole[1]).unwrap();
    std::fs::write(place.path("n.bak"), &whole[0]).unwrap();
    place.pellucid(&["restore", "m.bak", "n.bak", "--to", "y.db"]).succeeded();
    // One of another backup of the same database.
    back_up(&place, &["o.bak", "p.bak"], &[]);
    let mixed = place.pellucid(&["restore", "m.bak", "o.bak", "--to", "x.db"]);
    assert!(mixed.code == 1 && mixed.stderr.contains("another media set"), "{mixed:?}");
}

#[test]
fn a_set_under_the_header_of_another_media_set() {
    let place = place(&["m.bak"]);
    edit(&place.path("m.bak"), |bytes| {
        bytes[32] ^= 1;
        let sum = sha256(&bytes[..4064]);
        bytes[4064..4096].copy_from_slice(&sum);
    });
    told(&place, &["m.bak"], "1", true, "was written to another media set");
}

/// Pages that nobody changed: a differential of them is empty.
struct Unchanged;

impl PageSource for Unchanged {
    fn read(&mut self, _: u32, into: &mut [u8]) -> pellucid::Result<()> {
        into.fill(0);
        Ok(())
    }
}

/// Puts a differential that is not encrypted behind the only set: what anybody can write who may write to the media, for no
/// key is in it.
fn forge_differential(path: &Path, sealed_source: bool) {
    let family = Family::open(Box::new(FileSource::open(path).unwrap())).unwrap();
    let full = &family.sets[0].header;
    let forged = SetHeader {
        set: [7; 16],
        position: 2,
        kind: Kind::Differential,
        algorithm: None,
        sealed_source,
        base: full.set,
        commitment: [0; 32],
        page_hash_key: [9; 32],
        flags: pellucid::flags::Flags::default(),
        protectors: Vec::new(),
        description: Vec::new(),
        ..full.clone()
    };
    let hash = page_hash(&[9; 32], &vec![0; full.page_size as usize]);
    let base =
        Base { page_hash_key: [9; 32], hashes: hash.repeat(full.pages as usize), only: None };
    let set =
        NewSet { header: forged, description: Description::default(), keys: None, signer: None };
    let mut sink = FileSink::open(path).unwrap();
    sink.go_on_at(family.end).unwrap();
    let mut targets = [FamilyTarget::new(vec![Box::new(sink)])];
    let options = Options { workers: 1, level: 1, continue_after_error: false };
    write_set(&mut Unchanged, &set, Some(&base), &mut targets, &options, &mut |_, _| ()).unwrap();
}

#[test]
fn a_differential_that_would_have_the_sealed_set_before_it_restored_in_clear() {
    for sealed_source in [false, true] {
        let place = place(&["m.bak"]);
        forge_differential(&place.path("m.bak"), sealed_source);
        let shown = place.pellucid(&["--json", "header", "m.bak"]).succeeded();
        assert_eq!(shown.lines().count(), 2, "it passes for a set: {shown}");
        for more in [&[][..], &["--decrypted"], &["--allow-plain-differential"]] {
            let restore = [&["restore", "m.bak", "--to", "x.db"], more].concat();
            let refused = place.pellucid(&restore);
            assert!(
                refused.code == 1 && refused.stderr.contains("differential that is not encrypted"),
                "{refused:?}"
            );
            assert!(!place.path("x.db").exists() && !place.path("x.db.pellucid-new").exists());
        }
        let verified = place.pellucid(&["verify", "m.bak", "--check"]);
        assert_ne!(verified.code, 0, "{verified:?}");
    }
}

#[test]
fn a_differential_in_clear_of_a_plain_database_is_restored_if_somebody_asks_for_it() {
    let place = Place::new();
    place.plain("app.db");
    place.pellucid(&["cert", "create", "backups"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "m.bak", "--certificate", "backups"]).succeeded();
    forge_differential(&place.path("m.bak"), false);
    let restore = ["restore", "m.bak", "--to", "x.db"];
    let refused = place.pellucid(&restore);
    assert!(refused.code == 1 && refused.stderr.contains("differential that is not encrypted"));
    assert!(!place.path("x.db").exists());
    place.pellucid(&[&restore[..], &["--allow-plain-differential"]].concat()).succeeded();
    let rows = "PRAGMA integrity_check; SELECT * FROM t";
    let [app, x] = ["app.db", "x.db"].map(|name| place.sqlite3(name, rows).succeeded());
    assert_eq!(app, x);
}

#[test]
fn an_appended_set_that_was_cut_off() {
    let place = place(&["m.bak"]);
    let first = std::fs::read(place.path("m.bak")).unwrap().len();
    back_up(&place, &["m.bak"], &["--append"]);
    let whole = std::fs::read(place.path("m.bak")).unwrap();
    let second = &sets(&whole)[1];
    for cut in [first + 1, second.chunks[0].start, second.manifest.start, whole.len() - 1] {
        edit(&place.path("m.bak"), |bytes| bytes.truncate(cut));
        let asked = ["restore", "m.bak", "--position", "2", "--to", "x.db"];
        let refused = place.pellucid(&asked);
        assert!(
            refused.code == 3 && refused.stderr.contains("was interrupted after"),
            "{refused:?}"
        );
        assert!(!place.path("x.db").exists());
        let verified = place.pellucid(&["verify", "m.bak"]);
        assert!(verified.code == 0 && verified.stderr.contains("was interrupted"), "{verified:?}");
        // The set before it is what it was.
        place.pellucid(&["restore", "m.bak", "--to", "y.db"]).succeeded();
        std::fs::remove_file(place.path("y.db")).unwrap();
        std::fs::write(place.path("m.bak"), &whole).unwrap();
    }
}

#[test]
fn an_older_manifest_replayed_as_it_was_and_with_its_id_changed() {
    let place = place(&["m.bak"]);
    let older = std::fs::read(place.path("m.bak")).unwrap();
    back_up(&place, &["m.bak"], &["--overwrite"]);
    let newer = std::fs::read(place.path("m.bak")).unwrap();
    let (old, new) = (sets(&older)[0].manifest.clone(), sets(&newer)[0].manifest.clone());
    edit(&place.path("m.bak"), |bytes| bytes[new.clone()].copy_from_slice(&older[old.clone()]));
    told(&place, &["m.bak"], "1", true, "manifest: it belongs to another backup set");
    // Whoever has no key can make the id and the checksum fit, and no more.
    edit(&place.path("m.bak"), |bytes| {
        bytes.copy_within(sets(&newer)[0].begin + 40..sets(&newer)[0].begin + 56, new.start + 24);
        let sum = sha256(&bytes[new.start..new.end - 32]);
        bytes[new.end - 32..].copy_from_slice(&sum);
    });
    told(&place, &["m.bak"], "1", true, "manifest: authentication tag does not match");
}

#[test]
fn a_set_put_in_the_place_of_another_and_a_header_that_says_something_else() {
    let place = place(&["m.bak"]);
    back_up(&place, &["m.bak"], &["--append"]);
    let whole = std::fs::read(place.path("m.bak")).unwrap();
    let two = sets(&whole)[1].begin;
    edit(&place.path("m.bak"), |bytes| *bytes = [&whole[..MEDIA_HEADER], &whole[two..]].concat());
    told(&place, &["m.bak"], "1", true, "it says that its position is another one");
    // Dates, algorithm, thumbprint: the checksum made right, and the tag not.
    for (at, what) in
        [(84, "begun"), (92, "expires"), (67, "flags"), (164, "thumbprint"), (72, "pages")]
    {
        edit(&place.path("m.bak"), |bytes| {
            *bytes = whole.clone();
            bytes[MEDIA_HEADER + at] ^= 1;
            let end = MEDIA_HEADER + number(bytes, MEDIA_HEADER + 20);
            let sum = sha256(&bytes[MEDIA_HEADER..end - 32]);
            bytes[end - 32..end].copy_from_slice(&sum);
        });
        let restored = place.pellucid(&["restore", "m.bak", "--position", "1", "--to", "x.db"]);
        assert_eq!(restored.code, 3, "{what}: {restored:?}");
        assert!(
            restored.stderr.contains("its header does not authenticate"),
            "{what}: {restored:?}"
        );
    }
}

/// Pages that are a rollback journal's.
struct Journal;

impl PageSource for Journal {
    fn read(&mut self, _: u32, into: &mut [u8]) -> pellucid::Result<()> {
        into.fill(0);
        into[..8].copy_from_slice(&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
        Ok(())
    }
}

/// The only set of media in clear, with other pages.
fn forge_full(path: &Path) {
    let family = Family::open(Box::new(FileSource::open(path).unwrap())).unwrap();
    let header = family.sets[0].header.clone();
    let set = NewSet { header, description: Description::default(), keys: None, signer: None };
    let mut sink = FileSink::open(path).unwrap();
    sink.go_on_at(MEDIA_HEADER as u64).unwrap();
    let mut targets = [FamilyTarget::new(vec![Box::new(sink)])];
    let options = Options { workers: 1, level: 1, continue_after_error: false };
    write_set(&mut Journal, &set, None, &mut targets, &options, &mut |_, _| ()).unwrap();
}

#[test]
fn what_is_no_database_is_never_restored_as_a_plain_one() {
    let place = Place::new();
    place.plain("app.db");
    place.pellucid(&["backup", "app.db", "--to", "m.bak"]).succeeded();
    forge_full(&place.path("m.bak"));
    place.pellucid(&["verify", "m.bak", "--open"]).succeeded();
    let restored = place.pellucid(&["restore", "m.bak", "--to", "x.db"]);
    assert!(restored.code == 3 && restored.stderr.contains("no SQLite database"), "{restored:?}");
    assert!(!place.path("x.db").exists() && !place.path("x.db.pellucid-new").exists());
    let before = place.path("app.db");
    let before = std::fs::read(before).unwrap();
    let replaced = place.pellucid(&["restore", "m.bak", "--to", "app.db", "--replace"]);
    assert_eq!(replaced.code, 3, "{replaced:?}");
    assert_eq!(std::fs::read(place.path("app.db")).unwrap(), before);
}
