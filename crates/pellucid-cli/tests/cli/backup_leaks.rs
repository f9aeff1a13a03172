//! Goal: nothing of a sealed database is on a disk in clear while it is backed up, verified or restored, and no key is ever
//! there: not on media, in the spool, in temporary files, in what a store gets, in logs or in the history.
//!
//! Method: the program is stopped every few milliseconds, and every file below its directory and every file that it has
//! open, with a name or without, is searched for a text of the database. Then all files, all that was said and every row
//! of the history are searched for keys. That the search works is shown with a backup in clear.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use pellucid::protector::KeyFile;
use pellucid_backup::restore::{Family, FileSource};
use rustix::process::{kill_process, Pid, Signal};

use crate::secrets::shapes;
use crate::support::{header, history, Place, Said, PELLUCID};

const MARKER: &[u8] = b"marked-plaintext";
const RAW: &[u8; 32] = b"marker-raw-key-of-32-bytes-5bb01";
const PASSPHRASE: &[u8] = b"marker-passphrase-5bb02";

fn database(place: &Place, name: &str, journal: &str) {
    let sql = format!(
        "PRAGMA journal_mode = {journal}; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
         INSERT INTO t SELECT i, 'marked-plaintext ' || hex(randomblob(200)) FROM n;"
    );
    place.sqlite3(name, &sql).succeeded();
}

fn has(bytes: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(bytes, what).is_some()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// What was seen while a program ran.
#[derive(Debug, Default)]
struct Seen {
    /// Looks at which it had a file without a name open that was not empty.
    nameless: u32,
    /// Where the marker was.
    leaks: Vec<String>,
}

/// The same, until it was seen with a file without a name: looks may all fall before or behind that. What it makes is
/// removed before it is made again.
fn watched_with_spool(place: &Place, words: &[&str], plain: &[&str], made: &str) -> (Said, Seen) {
    for _ in 0..50 {
        let _ = std::fs::remove_file(place.path(made));
        let (said, seen) = watched(place, words, plain);
        if seen.nameless > 0 || said.code != 0 || !seen.leaks.is_empty() {
            return (said, seen);
        }
    }
    panic!("the spool was never seen")
}

/// Runs it, and looks into everything again and again.
fn watched(place: &Place, words: &[&str], plain: &[&str]) -> (Said, Seen) {
    std::fs::create_dir_all(place.path("tmp")).unwrap();
    let mut command = place.command(PELLUCID);
    command.env("TMPDIR", place.path("tmp")).args(words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    let mut seen = Seen::default();
    while child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(4));
        // It may have ended meanwhile: until it is waited for, its number is nobody else's.
        let _ = kill_process(pid, Signal::STOP);
        look(place, child.id(), plain, &mut seen);
        let _ = kill_process(pid, Signal::CONT);
    }
    look(place, child.id(), plain, &mut seen);
    let output = child.wait_with_output().unwrap();
    let said = Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    (said, seen)
}

fn look(place: &Place, process: u32, plain: &[&str], seen: &mut Seen) {
    for path in files(&place.path("")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let may = plain.iter().any(|plain| name.starts_with(plain));
        if !may && std::fs::read(&path).is_ok_and(|bytes| has(&bytes, MARKER)) {
            seen.leaks.push(path.display().to_string());
        }
    }
    for entry in std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        // One that has got its own name, and lost the other, was looked at there.
        let is_named = std::fs::metadata(entry.path()).is_ok_and(|file| file.nlink() > 0);
        if is_named || !target.to_string_lossy().ends_with("(deleted)") {
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        seen.nameless += u32::from(!bytes.is_empty());
        if has(&bytes, MARKER) {
            seen.leaks.push(target.display().to_string());
        }
    }
}

#[test]
fn no_file_has_a_word_of_a_sealed_database_at_any_moment() {
    for journal in ["DELETE", "WAL"] {
        let place = Place::new();
        std::fs::create_dir(place.path("out")).unwrap();
        database(&place, "app.db", journal);
        place.pellucid(&["encrypt", "app.db"]).succeeded();
        let store = format!("file://{}", place.path("out/stored.bak").display());
        let works = [
            "backup app.db --to out/app.bak --compression none",
            "backup app.db --to out/a.bak out/b.bak --mirror out/c.bak out/d.bak",
            "backup app.db --to out/app.bak --append --differential --compression none",
            "backup app.db --to out/app.bak --overwrite --no-spool --compression none",
            &format!("backup app.db --to {store} --compression none"),
            "verify out/app.bak --open",
            "verify out/app.bak --check",
            "restore out/app.bak --to out/new.db",
            "restore out/app.bak --to out/new.db --replace",
            &format!("restore {store} --to out/far.db"),
            "history",
        ];
        for (number, work) in works.into_iter().enumerate() {
            let words = work.split(' ').collect::<Vec<_>>();
            let (said, seen) = match number == 0 && journal == "DELETE" {
                true => watched_with_spool(&place, &words, &[], "out/app.bak"),
                false => watched(&place, &words, &[]),
            };
            assert_eq!(said.code, 0, "{work}: {said:?}");
            assert_eq!(seen.leaks, [""; 0], "{journal}, {work}");
            assert!(!has(said.all().as_bytes(), MARKER), "{work}");
        }
        assert!(files(&place.path("tmp")).is_empty());
    }
}

#[test]
fn a_plain_databases_sealed_backup_is_sealed_at_any_moment_and_one_in_clear_is_found() {
    let place = Place::new();
    std::fs::create_dir(place.path("out")).unwrap();
    place.pellucid(&["init"]).succeeded();
    place.pellucid(&["cert", "create", "backups"]).succeeded();
    database(&place, "plain.db", "DELETE");
    let backup = ["backup", "plain.db", "--compression", "none", "--to"];
    let sealed = [&backup[..], &["out/sealed.bak", "--certificate", "backups"]].concat();
    let (said, seen) = watched_with_spool(&place, &sealed, &["plain.db"], "out/sealed.bak");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(seen.leaks, [""; 0]);
    let (said, seen) = watched(&place, &[&backup[..], &["out/clear.bak"]].concat(), &["plain.db"]);
    assert_eq!(said.code, 0, "{said:?}");
    let found = |name: &str| seen.leaks.iter().any(|leak| leak.contains(name));
    assert!(found("clear.bak"), "the search does not work: {seen:?}");
    assert!(!found("deleted"), "the spool of a backup in clear is sealed, too: {seen:?}");
}

/// Every value of every table.
fn dump(history: &rusqlite::Connection) -> String {
    let mut tables =
        history.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut all = String::new();
    for name in names.map(Result::unwrap) {
        let mut rows = history.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values = (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at).unwrap());
            all += &format!("{name} {:?}\n", values.collect::<Vec<_>>());
        }
    }
    all
}

#[test]
fn no_key_is_in_the_history_in_logs_or_on_media() {
    let place = Place::new();
    let raw = place.secret("raw.key", RAW);
    place.secret("passphrase", PASSPHRASE);
    place.pellucid(&["init"]).succeeded();
    place.sealed("app.db", &["--key-file", "raw.key"]);
    place.plain("plain.db");
    let works = [
        "backup app.db --to app.bak --key-file raw.key",
        "backup plain.db --to plain.bak --passphrase-file passphrase",
        "restore app.bak --to back.db --key-file raw.key",
        "restore plain.bak --to other.db --passphrase-file passphrase",
        "header app.bak plain.bak",
        "verify app.bak --open --key-file raw.key",
    ];
    let mut said = String::new();
    for work in works {
        said += &place.pellucid(&work.split(' ').collect::<Vec<_>>()).all();
    }
    // As SQLite reads it: in its file it is encrypted.
    let dump = dump(&history(&place));
    assert!(dump.contains("plain.bak") && dump.contains("restorehistory"), "{dump}");
    let keys = vec![KeyFile::parse(&std::fs::read(raw).unwrap()).unwrap()];
    let mut secrets = vec![RAW.to_vec(), PASSPHRASE.to_vec()];
    for name in ["app.db", "back.db"] {
        secrets.push(header(&place.path(name)).unwrap(&keys).unwrap().expose().to_vec());
    }
    let media = Family::open(Box::new(FileSource::open(&place.path("app.bak")).unwrap())).unwrap();
    secrets.push(media.sets[0].header.unwrap(&keys).unwrap().expose().to_vec());
    for (number, secret) in secrets.iter().enumerate() {
        for shape in shapes(secret) {
            assert!(!has(dump.as_bytes(), &shape), "secret {number} is in the history");
            assert!(!has(said.as_bytes(), &shape), "secret {number} was said");
            for path in files(&place.path("")) {
                let bytes = std::fs::read(&path).unwrap();
                let own = path.ends_with("raw.key") || path.ends_with("passphrase");
                assert!(own || !has(&bytes, &shape), "secret {number}: {}", path.display());
            }
        }
    }
    // The search finds what is there.
    let own = std::fs::read(place.path("passphrase")).unwrap();
    assert!(shapes(&secrets[1]).iter().any(|shape| has(&own, shape)));
}
