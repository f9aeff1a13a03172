//! Goal: whoever can put files where somebody reads them, and has no key, changes nothing that the history knows: neither of
//! this instance's own sets nor of others, nor which files `history prune` removes; and a copy that is restored does not
//! make the history forget the file that was made.
//!
//! Method: sets made with another instance's key, with the identity, media and dates that an attacker likes, read by
//! `history rebuild`; then the history, `verify`, `prune` and `restore` are asked.

use std::path::Path;

use pellucid::media::{Description, Manifest, MediaHeader, SetHeader, SetKeys};
use pellucid::Dek;
use pellucid_backup::restore::{Family, FileSource};
use pellucid_backup::set::{write_set, FamilyTarget, FileSink, NewSet, Options, PageSource};
use serde_json::Value;

use crate::support::{edit, history, said, Place, Said, PELLUCID};

const MEDIA_HEADER: usize = 4096;
/// 2020, in microseconds since 1970.
const LONG_AGO: u64 = 1_577_836_800_000_000;

/// Sealed `app.db` and a set of it in `a.bak`; the attacker's instance, and a set of his own in `evil.bak`.
fn scene() -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    back_up(&place, "--to a.bak").succeeded();
    std::fs::create_dir(place.path("evil")).unwrap();
    place.plain("evil/app.db");
    theirs(&place, &["encrypt", "evil/app.db"]).succeeded();
    theirs(&place, &["backup", "evil/app.db", "--to", "evil.bak"]).succeeded();
    place
}

fn theirs(place: &Place, words: &[&str]) -> Said {
    said(place.command(PELLUCID).env("PELLUCID_HOME", place.path("evil/keys")).args(words))
}

fn back_up(place: &Place, words: &str) -> Said {
    place.pellucid(&[&["backup", "app.db"], &words.split(' ').collect::<Vec<_>>()[..]].concat())
}

fn known(place: &Place) -> Value {
    let shown = place.pellucid(&["--json", "history"]).succeeded();
    serde_json::from_str::<Value>(&shown).unwrap()["backups"].clone()
}

/// Reads it; what was warned of.
fn rebuild(place: &Place, media: &str) -> String {
    let said = place.pellucid(&["history", "rebuild", media]);
    assert_eq!(said.code, 0, "{said:?}");
    said.stderr
}

fn family(path: &Path) -> Family {
    Family::open(Box::new(FileSource::open(path).unwrap())).unwrap()
}

/// The header of a set.
fn header(path: &Path, position: usize) -> SetHeader {
    family(path).sets[position - 1].header.clone()
}

struct Zeros;

impl PageSource for Zeros {
    fn read(&mut self, _: u32, into: &mut [u8]) -> pellucid::Result<()> {
        into.fill(0);
        Ok(())
    }
}

/// Makes `path` media with a set of this header, sealed under some key, that was finished long ago.
fn forge(path: &Path, header: SetHeader) {
    forge_copy(path, header, 0);
}

/// The same, as a copy of this number.
fn forge_copy(path: &Path, header: SetHeader, mirror: u8) {
    let media = family(path).header;
    let media = MediaHeader { media_set: header.media_set, mirror, mirrors: mirror + 1, ..media };
    std::fs::write(path, media.encode().unwrap()).unwrap();
    let keys = SetKeys::derive(&Dek::random().unwrap(), &header.set, header.algorithm.unwrap());
    let keys = keys.unwrap();
    let description = Description::default();
    let set = NewSet { header, description, keys: Some(&keys), signer: None };
    let mut sink = FileSink::open(path).unwrap();
    sink.go_on_at(MEDIA_HEADER as u64).unwrap();
    let mut targets = [FamilyTarget::new(vec![Box::new(sink)])];
    let options = Options { workers: 1, level: 1, continue_after_error: false };
    write_set(&mut Zeros, &set, None, &mut targets, &options, &mut |_, _| ()).unwrap();
    edit(path, |bytes| {
        let at = bytes.len() - Manifest::length_by_end(bytes.last_chunk().unwrap()).unwrap();
        let mut manifest = Manifest::parse(&bytes[at..]).unwrap();
        manifest.finished = LONG_AGO;
        bytes.truncate(at);
        bytes.extend_from_slice(&manifest.encode(Some(&keys)).unwrap());
    });
}

#[test]
fn a_forged_set_with_the_identity_of_ones_own_changes_nothing() {
    let place = scene();
    let before = known(&place);
    let (own, evil) = (header(&place.path("a.bak"), 1), header(&place.path("evil.bak"), 1));
    for (what, header, told) in [
        ("no key at hand", SetHeader { set: own.set, ..evil.clone() }, "it believes more"),
        (
            "with the media of its own",
            SetHeader { set: own.set, media_set: own.media_set, ..evil },
            "it believes more",
        ),
        ("its own protectors", own, "does not authenticate"),
    ] {
        forge(&place.path("evil.bak"), header);
        let warned = rebuild(&place, "evil.bak");
        assert!(warned.contains(told) && warned.contains("not written down"), "{what}: {warned}");
        assert_eq!(known(&place), before, "{what}");
        let prune =
            ["history", "prune", "--older-than", "30", "--files", "--last", "app", "--apply"];
        place.pellucid(&prune).succeeded();
        assert!(place.path("a.bak").exists() && known(&place) == before, "{what}");
        assert_eq!(place.pellucid(&["verify", "a.bak"]).code, 0, "{what}");
    }
}

/// A set of a copy of the instance, which this one does not know.
fn unknown(place: &Place, words: &str) {
    let other = place.path("other-keys");
    said(std::process::Command::new("cp").arg("-a").args([place.path("keys"), other.clone()]))
        .succeeded();
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_HOME", other).args(["backup", "app.db"]);
    said(command.args(words.split(' '))).succeeded();
}

#[test]
fn a_forged_set_with_the_identity_of_an_unknown_one_does_not_stand_against_it() {
    let place = scene();
    unknown(&place, "--to there.bak");
    let there = header(&place.path("there.bak"), 1);
    let evil = header(&place.path("evil.bak"), 1);
    forge(&place.path("evil.bak"), SetHeader { set: there.set, ..evil });
    let warned = rebuild(&place, "evil.bak");
    assert!(warned.contains("nothing shows who made it"), "{warned}");
    assert_eq!(known(&place).as_array().unwrap().len(), 2);
    let verified = place.pellucid(&["verify", "there.bak"]);
    assert!(verified.code == 0 && !verified.all().contains("disagree"), "{verified:?}");
    // With its key it is what it is.
    assert_eq!(rebuild(&place, "there.bak"), "");
    let all = known(&place);
    let found = all.as_array().unwrap().iter().find(|set| set["files"][0] == there_path(&place));
    assert_eq!(found.expect("the true one")["database_name"], "app", "{all}");
    // And the forged one is no copy of it.
    assert!(rebuild(&place, "evil.bak").contains("believes more"));
    assert_eq!(known(&place), all);
}

fn there_path(place: &Place) -> Value {
    place.path("there.bak").to_str().unwrap().into()
}

#[test]
fn a_forged_set_removes_no_file() {
    let place = scene();
    back_up(&place, "--to a.bak --append").succeeded();
    // The first one is old, the second one unknown, as after a backup that could not write the history.
    let (one, two) = (header(&place.path("a.bak"), 1), header(&place.path("a.bak"), 2));
    history(&place)
        .execute_batch(
            "DELETE FROM pellucid_manifest WHERE backup_set_uuid = (SELECT backup_set_uuid FROM backupset WHERE position = 2);
             DELETE FROM backupset WHERE position = 2;
             UPDATE backupset SET backup_finish_date = '2020-01-01 00:00:00.000000'",
        )
        .unwrap();
    let evil = header(&place.path("evil.bak"), 1);
    forge(&place.path("evil.bak"), SetHeader { set: two.set, media_set: one.media_set, ..evil });
    rebuild(&place, "evil.bak");
    assert_eq!(known(&place).as_array().unwrap().len(), 2);
    let prune =
        ["history", "prune", "--older-than", "30", "--files", "--last", "app", "--last", ""];
    for more in [&[][..], &["--apply"]] {
        let said = place.pellucid(&[&prune[..], more].concat());
        assert!(said.code == 1 && said.stderr.contains("another one than"), "{said:?}");
        assert!(place.path("a.bak").exists());
    }
    // What was read is what it is compared with.
    let place = scene();
    std::fs::remove_file(place.path("keys/msdb.db")).unwrap();
    rebuild(&place, "evil.bak");
    let prune = ["history", "prune", "--older-than", "0", "--files", "--apply", "--last", ""];
    place.pellucid(&prune).succeeded();
    assert!(!place.path("evil.bak").exists());
}

/// It says that it is a copy of media that this instance wrote.
#[test]
fn a_forged_copy_hides_no_last_backup() {
    let place = scene();
    let (own, evil) = (header(&place.path("a.bak"), 1), header(&place.path("evil.bak"), 1));
    let forged = SetHeader { media_set: own.media_set, begun: own.begun + 1, ..evil };
    forge_copy(&place.path("evil.bak"), forged, 1);
    rebuild(&place, "evil.bak");
    let prune = ["history", "prune", "--older-than", "0", "--files", "--apply"];
    place.pellucid(&prune).succeeded();
    assert!(place.path("a.bak").exists() && files(&place).contains(&"a.bak".to_owned()));
    assert!(!files(&place).contains(&"evil.bak".to_owned()));
}

/// Of a plain database anybody makes a set that looks like a newer one.
#[test]
fn a_set_that_anybody_can_have_made_is_not_the_last_one_of_a_database() {
    let place = Place::new();
    place.pellucid(&["init"]).succeeded();
    place.plain("app.db");
    back_up(&place, "--to a.bak").succeeded();
    theirs(&place, &["backup", "app.db", "--to", "evil.bak"]).succeeded();
    rebuild(&place, "evil.bak");
    let prune = ["history", "prune", "--older-than", "0", "--files", "--apply"];
    place.pellucid(&prune).succeeded();
    assert!(place.path("a.bak").exists(), "the last one that was made here");
    back_up(&place, "--to b.bak").succeeded();
    place.pellucid(&prune).succeeded();
    assert!(!place.path("a.bak").exists() && place.path("b.bak").exists());
}

#[test]
fn a_damaged_set_is_not_written_down() {
    let place = scene();
    std::fs::remove_file(place.path("keys/msdb.db")).unwrap();
    edit(&place.path("a.bak"), |bytes| {
        let length = u32::from_be_bytes(bytes[4116..4120].try_into().unwrap()) as usize;
        bytes[MEDIA_HEADER + length + 100] ^= 1;
    });
    let warned = rebuild(&place, "a.bak");
    assert!(warned.contains("not written down") && warned.contains("a.bak"), "{warned}");
    assert_eq!(known(&place), serde_json::json!([]));
}

fn files(place: &Place) -> Vec<String> {
    let all = known(place);
    let name =
        |set: &Value| set["files"][0].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    all.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn a_restored_copy_does_not_take_the_place_of_the_file_that_was_made() {
    let place = scene();
    std::fs::copy(place.path("a.bak"), place.path("drill.bak")).unwrap();
    place.pellucid(&["restore", "drill.bak", "--to", "x.db"]).succeeded();
    rebuild(&place, "drill.bak");
    assert_eq!(files(&place), ["a.bak"]);
    // A holder of the key puts a set without a signature there, of another database.
    let whole = std::fs::read(place.path("a.bak")).unwrap();
    let other = place.path("other-keys");
    said(std::process::Command::new("cp").arg("-a").args([place.path("keys"), other.clone()]))
        .succeeded();
    let elsewhere =
        |words: &[&str]| said(place.command(PELLUCID).env("PELLUCID_HOME", &other).args(words));
    place.plain("other.db");
    elsewhere(&["encrypt", "other.db"]).succeeded();
    let backup = ["backup", "other.db", "--unsigned", "--to", "a.bak", "--format"];
    elsewhere(&backup).succeeded();
    let said = place.pellucid(&["restore", "a.bak", "--to", "y.db"]);
    assert!(said.code == 1 && said.stderr.contains("signed sets of this name"), "{said:?}");
    // A file that was moved is where it was moved to.
    std::fs::write(place.path("a.bak"), whole).unwrap();
    std::fs::rename(place.path("a.bak"), place.path("b.bak")).unwrap();
    place.pellucid(&["restore", "b.bak", "--to", "z.db"]).succeeded();
    assert_eq!(files(&place), ["b.bak"]);
    // And where another backup has its name by now.
    std::fs::rename(place.path("b.bak"), place.path("b.1.bak")).unwrap();
    back_up(&place, "--to b.bak").succeeded();
    rebuild(&place, "b.1.bak");
    assert_eq!(files(&place), ["b.1.bak", "b.bak"]);
}
