//! Goal: media of which one file was cut do not pass for older media: nothing but a set that somebody chose is restored from
//! them, and nothing is appended.
//!
//! Method: two signed sets on two stripes; one of the files is cut at the end of the first set, within the second one and in
//! front of both, by somebody who has no key.

use crate::support::{edit, said_with, Place, Said, PELLUCID};

const STRIPES: [&str; 2] = ["1.bak", "2.bak"];

/// A database under a certificate, its rows, and two sets of it; the second one has more rows. Given back is where the first
/// set ends in each file.
fn scene(files: &[&str], more: &[&str]) -> (Place, Vec<u64>) {
    let place = Place::new();
    place.sealed("app.db", &[]);
    // Some chunks for each file.
    let blobs = "CREATE TABLE b(b); INSERT INTO b SELECT randomblob(900000) FROM (VALUES (1),(2),(3),(4),(5),(6))";
    query(&place, "app.db", blobs);
    let backup = [&["backup", "app.db", "--to"], files, more].concat();
    place.pellucid(&backup).succeeded();
    let names = files.iter().chain(more.iter().filter(|word| word.ends_with(".bak")));
    let lengths = names.map(|name| std::fs::metadata(place.path(name)).unwrap().len()).collect();
    query(&place, "app.db", "CREATE TABLE later(a); INSERT INTO later VALUES (1)");
    place.pellucid(&[&backup[..], &["--append"]].concat()).succeeded();
    (place, lengths)
}

fn query(place: &Place, name: &str, sql: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", "-batch", name, sql]).succeeded()
}

/// Whether what was restored is of the first set.
fn is_older(place: &Place, name: &str) -> bool {
    query(place, name, "SELECT count(*) FROM sqlite_schema WHERE name = 'later'").trim() == "0"
}

fn is_told(said: &Said, whole: &str, cut: &str) {
    assert_eq!(said.code, 3, "{said:?}");
    for what in ["backup set 2", &format!("whole in `{whole}`"), &format!("`{cut}`")] {
        assert!(said.stderr.contains(what), "{what}: {said:?}");
    }
}

#[test]
fn a_cut_stripe_does_not_make_an_older_set_the_last_one() {
    for (cut, whole) in [(0, 1), (1, 0)] {
        let (place, lengths) = scene(&STRIPES, &[]);
        let [file, other] = [cut, whole].map(|at| STRIPES[at]);
        let all = std::fs::read(place.path(file)).unwrap();
        for to in [lengths[cut], lengths[cut] + 1, lengths[cut] + 2000, lengths[cut] + 5000] {
            edit(&place.path(file), |bytes| bytes.truncate(to as usize));
            for words in [
                &["restore", "1.bak", "2.bak", "--to", "new.db"][..],
                &["restore", "1.bak", "2.bak", "--to", "app.db", "--page", "2"],
                &["verify", "1.bak", "2.bak"],
                &["verify", "1.bak", "2.bak", "--open"],
            ] {
                is_told(&place.pellucid(words), other, file);
                assert!(!place.path("new.db").exists(), "{to}");
            }
            // Who looks at them is told, too.
            let script = format!(
                "RESTORE HEADERONLY FROM DISK = '{}', DISK = '{}';\nGO\n",
                place.path("1.bak").display(),
                place.path("2.bak").display()
            );
            let sql = said_with(place.command(PELLUCID).args(["sql", "-b"]), &script);
            let header = place.pellucid(&["header", "1.bak", "2.bak"]);
            assert!(sql.all().contains("it is whole in"), "{sql:?}");
            assert!(header.stderr.contains("it is whole in"), "{header:?}");
            // Nothing goes behind it, and what there is stays.
            let behind = ["backup", "app.db", "--to", "1.bak", "2.bak", "--append"];
            let said = place.pellucid(&behind);
            assert!(said.code == 3 && said.stderr.contains("--overwrite"), "{said:?}");
            // A differential would be of an older full set than the last one.
            let of = ["backup", "app.db", "--to", "d.bak", "--differential", "--base"];
            is_told(&place.pellucid(&[&of[..], &STRIPES].concat()), other, file);
            assert!(!place.path("d.bak").exists());
            // The set before is what it was, for who chooses it.
            let chosen = ["restore", "1.bak", "2.bak", "--position", "1", "--to", "old.db"];
            place.pellucid(&chosen).succeeded();
            assert!(is_older(&place, "old.db"));
            std::fs::remove_file(place.path("old.db")).unwrap();
            std::fs::write(place.path(file), &all).unwrap();
        }
        place.pellucid(&["restore", "1.bak", "2.bak", "--to", "new.db"]).succeeded();
        assert!(!is_older(&place, "new.db"));
        edit(&place.path(file), |bytes| bytes.truncate(lengths[cut] as usize));
        let again = ["backup", "app.db", "--to", "1.bak", "2.bak", "--overwrite"];
        place.pellucid(&again).succeeded();
        place.pellucid(&["verify", "1.bak", "2.bak", "--open"]).succeeded();
    }
}

#[test]
fn cut_before_its_first_set_it_has_none_and_the_other_has_two() {
    let (place, _) = scene(&STRIPES, &[]);
    edit(&place.path("2.bak"), |bytes| bytes.truncate(4096));
    for words in
        [&["restore", "1.bak", "2.bak", "--to", "new.db"][..], &["verify", "1.bak", "2.bak"]]
    {
        let said = place.pellucid(words);
        assert!(said.code == 3 && said.stderr.contains("whole in `1.bak`"), "{said:?}");
        assert!(!place.path("new.db").exists());
    }
}

#[test]
fn what_no_stripe_has_whole_was_interrupted_and_the_set_before_is_the_last_one() {
    let (place, lengths) = scene(&STRIPES, &[]);
    for (file, length) in STRIPES.iter().zip(lengths) {
        edit(&place.path(file), |bytes| bytes.truncate(length as usize + 1000));
    }
    place.pellucid(&["restore", "1.bak", "2.bak", "--to", "new.db"]).succeeded();
    assert!(is_older(&place, "new.db"));
    place.pellucid(&["backup", "app.db", "--to", "1.bak", "2.bak", "--append"]).succeeded();
    place.pellucid(&["restore", "1.bak", "2.bak", "--to", "last.db"]).succeeded();
    assert!(!is_older(&place, "last.db"));
}

#[test]
fn a_mirror_that_was_cut_is_made_up_for_by_the_other_one_and_both_are_not() {
    let files = ["1.bak", "2.bak", "m1.bak", "m2.bak"];
    let (place, lengths) = scene(&STRIPES, &["--mirror", "m1.bak", "m2.bak"]);
    let cut =
        |at: usize| edit(&place.path(files[at]), |bytes| bytes.truncate(lengths[at] as usize));
    cut(1);
    let restore = |to| [&["restore"], &files[..], &["--to", to]].concat();
    place.pellucid(&restore("new.db")).succeeded();
    assert!(!is_older(&place, "new.db"));
    let append = ["backup", "app.db", "--append", "--to", "1.bak", "2.bak", "--mirror"];
    let said = place.pellucid(&[&append[..], &["m1.bak", "m2.bak"]].concat());
    assert!(said.code == 3 && said.stderr.contains("--overwrite"), "{said:?}");
    cut(3);
    is_told(&place.pellucid(&restore("other.db")), "1.bak", "2.bak");
    assert!(!place.path("other.db").exists());
}
