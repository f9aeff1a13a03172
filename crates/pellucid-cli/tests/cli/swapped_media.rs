//! Goal: whoever can change names in a directory does not make a backup in it write to, cut or remove a file that is not the
//! backup's own, and nothing that is no file keeps one waiting.
//!
//! Method: names are exchanged in the middle of a backup, when its progress is told, for others and for links; then it fails,
//! because its database is cut, or goes on. Pipes under every name that is opened, with a limit to the time.

use std::os::unix::fs::symlink;
use std::path::Path;

use pellucid::media::Compression;
use pellucid_backup::job::{back_up, Existing, Job};

use crate::backup_guards::{bytes, database, job, names, ready};
use crate::support::{said, Place, Said, PELLUCID};

const VICTIM: &[u8] = &[b'r'; 48_000];

fn scene() -> Place {
    let place = Place::new();
    database(&place, "app.db", 6_000, "WAL");
    std::fs::write(place.path("victim"), VICTIM).unwrap();
    place.pellucid(&["backup", "app.db", "--to", "a.bak", "--compression", "none"]).succeeded();
    place
}

fn to(place: &Place, existing: Existing) -> Job {
    let mut job = job(place.path("app.db"), vec![place.path("a.bak")], existing);
    job.compression = Compression::None;
    job
}

/// Runs it, with `change` once in its middle; and if it is to fail the database is cut then.
fn in_its_middle(place: &Place, job: &Job, fails: bool, change: impl Fn()) -> Result<(), String> {
    let mut changed = false;
    let outcome = back_up(job, &mut |_| {
        if !changed {
            change();
            if fails {
                said(place.command("truncate").args(["--size=0", "app.db"])).succeeded();
            }
            changed = true;
        }
    });
    assert!(changed);
    outcome.map(drop).map_err(|error| error.to_string())
}

fn swap(place: &Place, name: &str, by: impl Fn(&Path)) {
    std::fs::rename(place.path(name), place.path("moved")).unwrap();
    by(&place.path(name));
}

#[test]
fn a_failed_append_cuts_the_file_that_it_wrote_to_and_no_other() {
    ready();
    type By = fn(&Path);
    let link: By = |name| symlink("victim", name).unwrap();
    let other: By = |name| std::fs::write(name, VICTIM).unwrap();
    let second: By = |name| std::fs::hard_link(name.with_file_name("victim"), name).unwrap();
    for by in [link, other, second] {
        let place = scene();
        let before = bytes(&place, "a.bak");
        let change = || swap(&place, "a.bak", by);
        let told = in_its_middle(&place, &to(&place, Existing::Append), true, change).unwrap_err();
        assert!(told.contains("app.db"), "{told}");
        assert_eq!(bytes(&place, "victim"), VICTIM);
        assert_eq!(bytes(&place, "a.bak"), VICTIM);
        assert_eq!(bytes(&place, "moved"), before, "what it wrote to is as it was");
    }
}

#[test]
fn a_backup_that_ends_neither_replaces_nor_removes_what_has_its_names_by_then() {
    ready();
    for (existing, fails) in
        [(Existing::Initialize, false), (Existing::Format, false), (Existing::Format, true)]
    {
        // Under the name that it has until it is whole.
        let place = scene();
        let before = bytes(&place, "a.bak");
        let new = "a.bak.pellucid-new";
        let change = || swap(&place, new, |name| std::fs::write(name, "somebody's").unwrap());
        assert!(in_its_middle(&place, &to(&place, existing), fails, change).is_err());
        assert_eq!((bytes(&place, "a.bak"), bytes(&place, new)), (before, b"somebody's".to_vec()));
        // Under the name that it is to get.
        let place = scene();
        let change = || swap(&place, "a.bak", |name| std::fs::write(name, "somebody's").unwrap());
        let told = in_its_middle(&place, &to(&place, existing), fails, change).unwrap_err();
        assert!(fails || told.contains("another file than when the backup began"), "{told}");
        assert_eq!(bytes(&place, "a.bak"), b"somebody's");
        assert!(!place.path(new).exists(), "{told}");
    }
}

#[test]
fn a_directory_that_is_exchanged_gets_nothing() {
    ready();
    let place = scene();
    for name in ["d", "e"] {
        std::fs::create_dir(place.path(name)).unwrap();
    }
    std::fs::write(place.path("e/a.bak.pellucid-new"), "root's").unwrap();
    let mut job = to(&place, Existing::Refuse);
    job.files.families = vec![place.path("d/a.bak")];
    let change = || {
        std::fs::rename(place.path("d"), place.path("real")).unwrap();
        symlink("e", place.path("d")).unwrap();
    };
    let _ = in_its_middle(&place, &job, false, change);
    assert_eq!(std::fs::read(place.path("e/a.bak.pellucid-new")).unwrap(), b"root's");
    assert!(!place.path("e/a.bak").exists());
}

#[test]
fn a_link_of_ones_own_is_gone_through_and_one_to_no_media_is_not_written_to() {
    let place = scene();
    symlink("a.bak", place.path("link.bak")).unwrap();
    place
        .pellucid(&["backup", "app.db", "--to", "link.bak", "--append", "--compression", "none"])
        .succeeded();
    let said = place.pellucid(&["--json", "label", "a.bak"]).succeeded();
    assert!(said.contains("\"sets\":2"), "{said}");
    symlink("victim", place.path("evil.bak")).unwrap();
    symlink("victim", place.path("b.bak.pellucid-new")).unwrap();
    symlink("victim", place.path("x.db.pellucid-new")).unwrap();
    let before = names(&place);
    for words in [
        &["backup", "app.db", "--to", "evil.bak", "--append"][..],
        &["backup", "app.db", "--to", "evil.bak", "--overwrite"],
        &["backup", "app.db", "--to", "b.bak"],
        &["restore", "a.bak", "--to", "x.db"],
    ] {
        assert_eq!(place.pellucid(words).code, 1, "{words:?}");
        assert_eq!(bytes(&place, "victim"), VICTIM, "{words:?}");
        assert_eq!(names(&place), before, "{words:?}");
    }
}

#[test]
fn somebodys_file_under_the_name_of_a_restore_that_is_not_whole_stays() {
    let place = scene();
    std::fs::write(place.path("x.db.pellucid-new"), "somebody's notes").unwrap();
    let said = place.pellucid(&["restore", "a.bak", "--to", "x.db"]);
    assert!(said.code == 1 && said.stderr.contains("move it away"), "{said:?}");
    assert_eq!(bytes(&place, "x.db.pellucid-new"), b"somebody's notes");
    assert!(!place.path("x.db").exists());
}

#[test]
fn a_pipe_under_a_name_of_media_is_not_waited_for() {
    let place = scene();
    for name in ["p.bak", "q.bak.pellucid-new", "x.db.pellucid-new"] {
        said(place.command("mkfifo").arg(name)).succeeded();
    }
    let quick = |words: &[&str]| -> Said {
        said(place.command("timeout").args(["60", PELLUCID]).args(words))
    };
    for words in [
        &["backup", "app.db", "--to", "p.bak"][..],
        &["backup", "app.db", "--to", "p.bak", "--append"],
        &["backup", "app.db", "--to", "p.bak", "--overwrite"],
        &["backup", "app.db", "--to", "a.bak", "--mirror", "p.bak", "--format"],
        &["backup", "app.db", "--to", "q.bak"],
        &["backup", "app.db", "--to", "d.bak", "--differential", "--base", "p.bak"],
        &["restore", "p.bak", "--to", "y.db"],
        &["restore", "a.bak", "--to", "x.db"],
        &["verify", "p.bak"],
        &["header", "p.bak"],
        &["files", "p.bak"],
        &["label", "p.bak"],
        &["history", "rebuild", "p.bak"],
    ] {
        let said = quick(words);
        assert!(said.code == 1, "{words:?}: {said:?}");
    }
}
