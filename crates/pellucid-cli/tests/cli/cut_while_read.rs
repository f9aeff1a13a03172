//! Goal: a database file that something cuts, empties or writes over while a backup reads it never becomes a set: its pages
//! behind the new end are not zeros, and pages of another database are not among those of the first.
//!
//! Method: backups that are in their middle, because a pipe is full or because their progress is told to the test, and a
//! change of the file that goes past SQLite. Few chunks are under way at once, so that most pages are read after it.

use std::io::Read;
use std::process::Stdio;

use pellucid::media::Compression;
use pellucid::protector::KeyFile;
use pellucid::Error;
use pellucid_backup::job::{back_up, Existing, Job, Phase};
use pellucid_host::DatabaseError;
use pellucid_vfs::seal_request::{offer, Offer};

use crate::backup_guards::{bytes, database, job, ready};
use crate::support::{said, Place, PELLUCID};

const KIB: u32 = 24_000;

/// What happens to the file, by a program of its own: closing a descriptor here would drop the locks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    /// `: > app.db`
    Emptied,
    /// To half its pages.
    Halved,
    /// In the middle of its last page but one.
    Torn,
    /// `cp other.db app.db`: another database of as many pages.
    Copied,
    /// An older state of the same one, of which each page is authentic.
    PutBack,
}

impl Change {
    const ALL: [Self; 5] = [Self::Emptied, Self::Halved, Self::Torn, Self::Copied, Self::PutBack];

    fn make(self, place: &Place) {
        let whole = std::fs::metadata(place.path("app.db")).unwrap().len();
        let cut = |to: u64| vec!["truncate".to_owned(), format!("--size={to}"), "app.db".into()];
        // As `cp` does, but that the file is never shorter.
        let over = |with: &str| {
            ["dd", &format!("if={with}"), "of=app.db", "conv=notrunc", "bs=1M", "status=none"]
                .map(str::to_owned)
                .to_vec()
        };
        let words = match self {
            Self::Emptied => cut(0),
            Self::Halved => cut(whole / 2),
            Self::Torn => cut(whole - 5000),
            Self::Copied => over("other.db"),
            Self::PutBack => over("older.db"),
        };
        said(place.command(&words[0]).args(&words[1..])).succeeded();
    }
}

/// `app.db`, an older state of it, and another database that is as long.
fn scene(sealed: bool, journal: &str) -> Place {
    let place = Place::new();
    for name in ["app.db", "other.db"] {
        database(&place, name, KIB, journal);
        if sealed {
            place.secret("raw.key", &[9; 32]);
            place.pellucid(&["encrypt", name, "--key-file", "raw.key"]).succeeded();
        }
    }
    std::fs::copy(place.path("app.db"), place.path("older.db")).unwrap();
    run(
        &place,
        sealed,
        "UPDATE t SET b = randomblob(950) WHERE a % 2 = 0; PRAGMA user_version = 2",
    );
    place
}

/// All names but those of the logs, which readers leave.
fn names(place: &Place) -> Vec<String> {
    let mut names = crate::backup_guards::names(place);
    names.retain(|name| !name.ends_with("-wal") && !name.ends_with("-shm"));
    names
}

fn keyed(place: &Place, sealed: bool) -> std::process::Command {
    let mut command = place.command(PELLUCID);
    if sealed {
        command.env("PELLUCID_KEY_FILE", place.path("raw.key"));
    }
    command
}

/// By way of SQLite.
fn run(place: &Place, sealed: bool, sql: &str) {
    let words = ["run", "--", "sqlite3", "-batch", "app.db", sql];
    said(keyed(place, sealed).args(words)).succeeded();
}

/// Makes a backup during which the file is changed once, when `phase` has begun.
fn disturbed(place: &Place, job: &Job, change: Change, phase: Phase) -> DatabaseError {
    let mut changed = false;
    let outcome = back_up(job, &mut |now| {
        if now.phase == phase && !changed {
            assert!(now.pages < now.all / 2, "it is in its middle");
            change.make(place);
            changed = true;
        }
    });
    assert!(changed, "{change:?}: nothing was changed");
    match outcome {
        Err(error) => error.into(),
        Ok(_) => panic!("{change:?}: a backup of it was made"),
    }
}

fn assert_damage(error: &DatabaseError, what: &str) {
    let told = error.to_string();
    assert!(matches!(error, DatabaseError::Typed(Error::Corrupt { .. })), "{what}: {error:?}");
    assert!(told.contains("app.db") && told.contains("page "), "{what}: {told}");
}

fn of(place: &Place, names: &[&str], existing: Existing) -> Job {
    let families = names.iter().map(|name| place.path(name)).collect();
    let mut job = job(place.path("app.db"), families, existing);
    job.compression = Compression::None;
    job
}

#[test]
fn whatever_happens_to_the_file_in_the_middle_there_is_no_set() {
    ready();
    offer(Offer::KeyFile(KeyFile::parse(&[9; 32]).unwrap()));
    for sealed in [false, true] {
        for (journal, no_spool, phase) in [
            ("WAL", false, Phase::Writing),
            ("DELETE", true, Phase::Writing),
            ("DELETE", false, Phase::Spooling),
        ] {
            let place = scene(sealed, journal);
            let whole = bytes(&place, "app.db");
            for change in Change::ALL {
                let what = format!("sealed: {sealed}, {journal}, no spool: {no_spool}, {change:?}");
                let mut job = of(&place, &["a.bak"], Existing::Refuse);
                job.no_spool = no_spool;
                let before = names(&place);
                let error = disturbed(&place, &job, change, phase);
                assert_damage(&error, &what);
                assert_eq!(names(&place), before, "{what}: something is left");
                std::fs::write(place.path("app.db"), &whole).unwrap();
            }
            // The same job, left alone.
            back_up(&of(&place, &["a.bak"], Existing::Refuse), &mut |_| ()).unwrap();
        }
    }
}

#[test]
fn no_target_and_no_kind_of_backup_takes_zeros_for_pages() {
    ready();
    let place = scene(false, "WAL");
    let whole = bytes(&place, "app.db");
    back_up(&of(&place, &["full.bak"], Existing::Refuse), &mut |_| ()).unwrap();
    let media = bytes(&place, "full.bak");
    let differential = Some(vec![place.path("full.bak")]);
    let jobs: Vec<(&str, Job)> = vec![
        ("appended", of(&place, &["full.bak"], Existing::Append)),
        ("replaced", of(&place, &["full.bak"], Existing::Initialize)),
        ("formatted", of(&place, &["full.bak"], Existing::Format)),
        ("striped", of(&place, &["1.bak", "2.bak"], Existing::Refuse)),
        ("copy-only", Job { copy_only: true, ..of(&place, &["1.bak"], Existing::Refuse) }),
        ("differential", Job { differential, ..of(&place, &["1.bak"], Existing::Refuse) }),
        ("mirrored", {
            let mut job = of(&place, &["1.bak"], Existing::Refuse);
            job.files.mirrors = vec![vec![place.path("2.bak")]];
            job
        }),
    ];
    for (what, job) in jobs {
        for change in [Change::Emptied, Change::Copied] {
            let before = names(&place);
            assert_damage(&disturbed(&place, &job, change, Phase::Writing), what);
            assert_eq!(names(&place), before, "{what}: something is left");
            assert_eq!(bytes(&place, "full.bak"), media, "{what}");
            std::fs::write(place.path("app.db"), &whole).unwrap();
        }
    }
}

#[test]
fn pages_behind_the_end_are_told_one_by_one_where_a_backup_goes_on() {
    ready();
    let place = scene(false, "WAL");
    let whole = bytes(&place, "app.db");
    let job = Job { continue_after_error: true, ..of(&place, &["a.bak"], Existing::Refuse) };
    let mut changed = false;
    let done = back_up(&job, &mut |_| {
        if !changed {
            Change::Halved.make(&place);
            changed = true;
        }
    });
    let done = done.unwrap();
    let pages = (whole.len() / 4096) as u32;
    let missing: Vec<_> = done.missing.iter().map(|(page, _)| *page).collect();
    assert_eq!(missing, (pages / 2 + 1..=pages).collect::<Vec<_>>());
    assert!(done.manifest.damaged);
    // Of another database not one page is taken, not even so.
    std::fs::remove_file(place.path("a.bak")).unwrap();
    std::fs::write(place.path("app.db"), &whole).unwrap();
    assert_damage(&disturbed(&place, &job, Change::Copied, Phase::Writing), "copied");
    assert!(!place.path("a.bak").exists());
}

#[test]
fn what_came_out_of_a_pipe_is_no_set_and_the_exit_status_is_that_of_damage() {
    for (sealed, change) in
        [(true, Change::Emptied), (false, Change::Emptied), (false, Change::Copied)]
    {
        let place = scene(sealed, "WAL");
        let mut command = keyed(&place, sealed);
        command.args(["backup", "app.db", "--to", "-", "--workers", "1", "--compression", "none"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        // What follows does not fit into the pipe and the chunks under way: the backup waits.
        let mut media = vec![0; 1 << 20];
        out.read_exact(&mut media).unwrap();
        change.make(&place);
        out.read_to_end(&mut media).unwrap();
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(
            told.contains("app.db") && told.contains("page ") && told.contains("hint"),
            "{told}"
        );
        std::fs::write(place.path("a.bak"), media).unwrap();
        assert_ne!(place.pellucid(&["verify", "a.bak"]).code, 0);
    }
}

#[test]
fn what_is_written_by_way_of_sqlite_meanwhile_is_no_damage() {
    ready();
    offer(Offer::KeyFile(KeyFile::parse(&[9; 32]).unwrap()));
    for sealed in [false, true] {
        let place = scene(sealed, "WAL");
        // Commits and checkpoints during the backup, of page 1 and of pages that it has yet to read.
        let sql =
            "UPDATE t SET b = randomblob(950) WHERE a % 3 = 0; CREATE TABLE IF NOT EXISTS later(a);
                   PRAGMA user_version = 7; PRAGMA wal_checkpoint(PASSIVE);";
        for name in ["checkpointed.bak", "in-the-log.bak"] {
            let mut writes = 0;
            back_up(&of(&place, &[name], Existing::Refuse), &mut |_| {
                if writes < 3 {
                    run(&place, sealed, sql);
                    writes += 1;
                }
            })
            .unwrap();
            assert_eq!(writes, 3);
        }
    }
}
