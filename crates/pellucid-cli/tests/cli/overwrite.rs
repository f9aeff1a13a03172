//! Goal: media that are there are appended to, overwritten or refused as SQL Server's rules of INIT, FORMAT, SKIP, expiry,
//! media name and structure say, with its messages.
//!
//! Method: a table of what is there, what is asked for and what comes of it; after each row the files are either the same
//! bytes as before or hold what was asked for.

use crate::support::{edit, Place};

const BESIDE: &str = "m.bak.pellucid-new";

/// What lies at `m.bak` before.
#[derive(Debug, Clone, Copy, PartialEq)]
enum There {
    Nothing,
    NoMedia,
    /// A private key as `cert export` writes it.
    Key,
    Empty,
    /// A media header with a byte changed.
    Damaged,
    /// Media, and under the name that a backup has until it is whole, somebody's notes.
    BesideIsNotes,
    /// Sealed, compressed, called `nightly`, expired or never expiring.
    Sealed,
    /// The same, to expire in nine days.
    Unexpired,
    Plain,
    Uncompressed,
    /// `m.bak` and `n.bak` are two stripes.
    Striped,
    /// `n.bak` is a mirror.
    Mirrored,
}

/// What comes of it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Comes {
    /// New media with one set.
    New,
    /// The same media with one set.
    Initialized,
    /// The same media with two sets.
    Appended,
    /// Refused with this in the message; nothing is changed.
    Refused(&'static str),
    /// The same with the exit status of damage.
    Damage,
}

use Comes::*;
use There::*;

/// `sealed.db` is backed up unless `plain` is among the words.
const TABLE: &[(There, &str, Comes)] = &[
    (Nothing, "", New),
    (Nothing, "--append", New),
    (Nothing, "--overwrite", New),
    (Nothing, "--format", New),
    // What is no media is left to whom it belongs; FORMAT alone takes what nobody knows for something else.
    (NoMedia, "", Refused("there already")),
    (NoMedia, "--append", Refused("(3241)")),
    (NoMedia, "--overwrite", Refused("(3241)")),
    (NoMedia, "--overwrite --skip", Refused("(3241)")),
    (NoMedia, "--to n.bak --overwrite", Refused("(3241)")),
    (NoMedia, "--mirror n.bak --overwrite", Refused("(3241)")),
    (NoMedia, "--format", New),
    (NoMedia, "--mirror n.bak --format", New),
    (Key, "--append", Refused("(3241)")),
    (Key, "--overwrite", Refused("a key or a certificate")),
    (Key, "--format", Refused("a key or a certificate")),
    (Key, "--mirror n.bak --format", Refused("a key or a certificate")),
    (Empty, "--append", Refused("(3241)")),
    (Empty, "--overwrite", New),
    (Empty, "--format", New),
    // Media that nobody reads any more are media.
    (Damaged, "--overwrite", Damage),
    (Damaged, "--format", New),
    (BesideIsNotes, "", Refused("move it away")),
    (BesideIsNotes, "--append", Refused("move it away")),
    (BesideIsNotes, "--overwrite", Refused("move it away")),
    (BesideIsNotes, "--format", Refused("move it away")),
    (BesideIsNotes, "--to n.bak --format", Refused("move it away")),
    (Sealed, "", Refused("there already")),
    (Sealed, "--append", Appended),
    (Sealed, "--overwrite", Initialized),
    (Sealed, "--format", New),
    (Sealed, "--append --skip", Appended),
    // Expiry keeps from overwriting, not from appending; FORMAT does not look.
    (Unexpired, "--append", Appended),
    (Unexpired, "--overwrite", Refused("(4030)")),
    (Unexpired, "--overwrite --skip", Initialized),
    (Unexpired, "--format", New),
    // A media name has to be that of the media.
    (Sealed, "--append --media-name nightly", Appended),
    (Sealed, "--append --media-name weekly", Refused("is called `nightly`, not `weekly`")),
    (Sealed, "--append --media-name weekly --skip", Appended),
    (Sealed, "--overwrite --media-name weekly", Refused("is called `nightly`")),
    (Sealed, "--overwrite --media-name weekly --skip", Initialized),
    (Sealed, "--format --media-name weekly", New),
    // What the media were formatted for stays.
    (Plain, "--append", Refused("(3095)")),
    (Plain, "--overwrite", Refused("(3095)")),
    (Plain, "--overwrite --skip", Refused("(3095)")),
    (Plain, "--format", New),
    (Plain, "--append plain", Appended),
    (Plain, "--overwrite plain", Initialized),
    (Sealed, "--append plain", Refused("'NO_ENCRYPTION'")),
    (Sealed, "--overwrite plain", Refused("(3098)")),
    (Sealed, "--format plain", New),
    (Sealed, "--append --compression none", Refused("'NO_COMPRESSION'")),
    (Sealed, "--append --compression lz4", Appended),
    (Uncompressed, "--append", Refused("'COMPRESSION' was requested")),
    (Uncompressed, "--overwrite", Refused("(3098)")),
    (Uncompressed, "--append --compression none", Appended),
    (Uncompressed, "--format", New),
    (Striped, "--append", Refused("is missing")),
    (Striped, "--to n.bak --append", Appended),
    (Striped, "--to n.bak --overwrite", Initialized),
    (Sealed, "--to n.bak --append", Refused("No such file")),
    (Sealed, "--to n.bak --format", New),
    (Sealed, "--mirror n.bak --overwrite", Refused("No such file")),
    (Sealed, "--mirror n.bak --format", New),
    (Mirrored, "--append", Refused("copies of each file")),
    (Mirrored, "--mirror n.bak --append", Appended),
    (Mirrored, "--mirror n.bak --overwrite", Initialized),
];

fn make(place: &Place, there: There) {
    let how = match there {
        Nothing => return,
        NoMedia => {
            std::fs::write(place.path("m.bak"), "somebody's notes").unwrap();
            return;
        }
        Key => {
            let key = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIFLTBXBgkqhkiG9w0BBQ0wSjAp\n";
            std::fs::write(place.path("m.bak"), key).unwrap();
            return;
        }
        Empty => {
            std::fs::write(place.path("m.bak"), "").unwrap();
            return;
        }
        Sealed | Damaged | BesideIsNotes => "sealed.db --to m.bak",
        Unexpired => "sealed.db --to m.bak --retain-days 9",
        Plain => "plain.db --to m.bak",
        Uncompressed => "sealed.db --to m.bak --compression none",
        Striped => "sealed.db --to m.bak n.bak",
        Mirrored => "sealed.db --to m.bak --mirror n.bak",
    };
    let words = format!("backup {how} --media-name nightly");
    place.pellucid(&words.split(' ').collect::<Vec<_>>()).succeeded();
    match there {
        Damaged => edit(&place.path("m.bak"), |bytes| bytes[100] ^= 1),
        BesideIsNotes => std::fs::write(place.path(BESIDE), "somebody's notes").unwrap(),
        _ => {}
    }
}

fn files(place: &Place) -> Vec<Option<Vec<u8>>> {
    ["m.bak", "n.bak", BESIDE].iter().map(|name| std::fs::read(place.path(name)).ok()).collect()
}

/// Media set and number of sets, as `label` tells.
fn label(place: &Place) -> (String, u64) {
    let media: Vec<&str> =
        ["m.bak", "n.bak"].into_iter().filter(|name| place.path(name).exists()).collect();
    let said = place.pellucid(&[&["--json", "label"], &media[..]].concat());
    let said: serde_json::Value = serde_json::from_str(&said.stdout).unwrap_or_default();
    (said["media_set"].as_str().unwrap_or("").to_owned(), said["sets"].as_u64().unwrap_or(0))
}

#[test]
fn the_matrix() {
    let place = Place::new();
    place.sealed("sealed.db", &[]);
    place.plain("plain.db");
    for (there, words, comes) in TABLE {
        let row = format!("{there:?} {words}");
        for name in ["m.bak", "n.bak", BESIDE] {
            let _ = std::fs::remove_file(place.path(name));
        }
        make(&place, *there);
        let (before, media) = (files(&place), label(&place));
        let plain = words.contains("plain");
        let mut arguments = vec!["backup", if plain { "plain.db" } else { "sealed.db" }];
        arguments.extend(["--to", "m.bak"]);
        let words = words.strip_prefix("--to ").unwrap_or(words);
        let words = words.split(' ').filter(|word| !word.is_empty() && *word != "plain");
        arguments.extend(words);
        let said = place.pellucid(&arguments);
        let after = label(&place);
        match comes {
            Refused(_) | Damage => {
                let (code, why) = match comes {
                    Refused(why) => (1, *why),
                    _ => (3, "m.bak"),
                };
                assert_eq!(said.code, code, "{row}: {said:?}");
                assert!(said.stderr.contains(why), "{row}: {said:?}");
                assert_eq!(files(&place), before, "{row}: something was changed");
                continue;
            }
            New => {
                assert_ne!(after.0, media.0, "{row}");
                assert_eq!(after.1, 1, "{row}");
            }
            Initialized => assert_eq!(after, (media.0, 1), "{row}"),
            Appended => assert_eq!(after, (media.0, 2), "{row}"),
        }
        assert_eq!(said.code, 0, "{row}: {said:?}");
    }
}

#[test]
fn a_last_day_counts_as_a_whole_and_days_to_keep_go_before_it() {
    let place = Place::new();
    place.plain("plain.db");
    let expires = |more: &[&str]| {
        let _ = std::fs::remove_file(place.path("m.bak"));
        place.pellucid(&[&["backup", "plain.db", "--to", "m.bak"], more].concat()).succeeded();
        let said = place.pellucid(&["--json", "header", "m.bak"]).succeeded();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        said["expires"].clone()
    };
    assert_eq!(expires(&[]), serde_json::Value::Null);
    assert_eq!(expires(&["--expires", "2031-02-03"]), "2031-02-03");
    assert_ne!(expires(&["--expires", "2031-02-03", "--retain-days", "1"]), "2031-02-03");
    place.pellucid(&["backup", "plain.db", "--to", "m.bak", "--format", "--expires", "2001-01-01"]);
    place.pellucid(&["backup", "plain.db", "--to", "m.bak", "--overwrite"]).succeeded();
}
