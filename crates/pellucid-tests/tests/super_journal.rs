//! Goal: opening a database deletes no file but a super-journal that names its journal, whatever its journal names; and no
//! transaction over several databases is split.
//!
//! Method: a hot journal, as a killed process leaves it, gets a record of a super-journal appended by hand, with names of
//! all shapes, in all places, of all kinds of thing that can be there. Nothing but a right one may go, and the interrupted
//! transaction is taken back, except where SQLite commits by the super-journal's removal. Then two databases in two
//! folders with one super-journal, at each step of a commit.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};

use pellucid_host::code::last_report;
use rusqlite::Connection;

use pellucid_tests::content;

use content::dump;

const PAGE: usize = 1024;
/// The number of the page that holds SQLite's locks, which begins the record.
const LOCK_PAGE: u32 = (1 << 30) / PAGE as u32 + 1;

struct Bench {
    place: tempfile::TempDir,
}

/// A database and its hot journal, and the content that it had before and has now.
struct Hot {
    database: Vec<u8>,
    journal: Vec<u8>,
    before: String,
}

impl Bench {
    fn new() -> Self {
        pellucid_bundled::register().unwrap();
        let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let bench = Self { place };
        for folder in ["data", "other", "deep/down"] {
            fs::create_dir_all(bench.path(folder)).unwrap();
        }
        fs::write(bench.path("key"), [7; 32]).unwrap();
        fs::set_permissions(bench.path("key"), Permissions::from_mode(0o600)).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn open(&self, name: &str) -> Connection {
        let (path, key) = (self.path(name), self.path("key"));
        let uri = format!("file:{}?vfs=pellucid&key_file={}", path.display(), key.display());
        content::open(&uri).unwrap()
    }

    fn hot(&self, name: &str, seed: u64) -> Hot {
        let connection = self.open(name);
        content::fill(&connection, PAGE, 60, seed);
        let before = dump(&connection).unwrap();
        content::spill(&connection);
        let read = |end: &str| fs::read(self.path(&format!("{name}{end}"))).unwrap();
        let hot = Hot { database: read(""), journal: read("-journal"), before };
        connection.execute_batch("ROLLBACK").unwrap();
        hot
    }

    /// As a killed process left it, with a record that names `name`.
    fn put(&self, database: &str, hot: &Hot, name: Option<&[u8]>) {
        fs::write(self.path(database), &hot.database).unwrap();
        let record = name.map(record).unwrap_or_default();
        let journal = [&hot.journal[..], &record].concat();
        fs::write(self.path(&format!("{database}-journal")), journal).unwrap();
    }

    fn has_journal(&self, database: &str) -> bool {
        self.path(&format!("{database}-journal")).exists()
    }
}

fn record(name: &[u8]) -> Vec<u8> {
    let sum = name.iter().fold(0u32, |sum, byte| sum.wrapping_add(*byte as i8 as u32));
    let number = LOCK_PAGE.to_be_bytes();
    let length = (name.len() as u32).to_be_bytes();
    [&number[..], name, &length, &sum.to_be_bytes(), &pellucid::journal::MAGIC].concat()
}

fn list(journals: &[&Path]) -> Vec<u8> {
    journals.iter().flat_map(|path| [path.as_os_str().as_bytes(), &[0]].concat()).collect()
}

/// Everything below a folder but the databases: path, and content or where a link leads.
fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            found.push((path.clone(), Vec::new()));
            found.extend(everything(&path));
        } else if kind.is_symlink() {
            found.push((
                path.clone(),
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
            ));
        } else if kind.is_file() && !path.to_string_lossy().contains("app.db") {
            found.push((path.clone(), fs::read(&path).unwrap()));
        } else {
            found.push((path, Vec::new()));
        }
    }
    found.sort();
    found
}

#[test]
fn no_name_of_another_shape_is_believed() {
    let bench = Bench::new();
    let hot = bench.hot("data/app.db", 1);
    let journal = bench.path("data/app.db-journal");
    for end in [
        "important.conf",
        "a-mj0123AF9F",
        "a-mj0123AF9F00",
        "a-mj0123AF8F0",
        "a-mj0123af9f0",
        "a-MJ0123AF9F0",
        "a_mj0123AF9F0",
        "a-mj0123AF9F0 ",
        "a-mj0123AF9F0\n",
        "-mj0123AF9F0",
    ] {
        for folder in ["data", "other", "deep/down", "data/../other"] {
            let victim = bench.path(folder).join(end);
            // Even one that lists the journal.
            fs::write(&victim, list(&[&journal])).unwrap();
            let what = format!("`{}`", victim.display());
            let name = victim.as_os_str().as_bytes();
            is_taken_back(&bench, &hot, name, &what);
            fs::remove_file(&victim).unwrap();
            // And one that is not there commits nothing.
            is_taken_back(&bench, &hot, name, &what);
        }
    }
    let right = bench.path("other/a-mj0123AF9F0");
    let victim = bench.path("other/important.conf");
    fs::write(&victim, "setting = 1\n").unwrap();
    for (what, name) in [
        ("a zero inside", [victim.as_os_str().as_bytes(), b"\0-mj0123AF9F0"].concat()),
        ("a zero behind", [right.as_os_str().as_bytes(), b"\0"].concat()),
        ("relative", b"a-mj0123AF9F0".to_vec()),
        ("relative, with folders", b"../other/a-mj0123AF9F0".to_vec()),
    ] {
        is_taken_back(&bench, &hot, &name, what);
    }
}

/// The transaction is rolled back, as is everything that SQLite does not know to be committed, and nothing is deleted.
fn is_taken_back(bench: &Bench, hot: &Hot, name: &[u8], what: &str) {
    bench.put("data/app.db", hot, Some(name));
    let before = everything(bench.place.path());
    last_report();
    let connection = bench.open("data/app.db");
    assert_eq!(dump(&connection).unwrap(), hot.before, "{what}");
    let sound: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok", "{what}");
    drop(connection);
    let after: Vec<_> = everything(bench.place.path());
    let gone: Vec<_> = before.iter().filter(|one| !after.contains(one)).collect();
    let journal = bench.path("data/app.db-journal");
    assert!(gone.iter().all(|(path, _)| *path == journal), "{what}: {gone:?}");
    assert!(!bench.has_journal("data/app.db"), "{what}: the journal is still there");
}

#[test]
fn nothing_but_a_super_journal_of_this_journal_is_believed() {
    let bench = Bench::new();
    let hot = bench.hot("data/app.db", 1);
    let journal = bench.path("data/app.db-journal");
    let another = bench.path("data/another.db-journal");
    let victim = bench.path("deep/down/important.conf");
    fs::write(&victim, list(&[&journal])).unwrap();
    for folder in ["data", "other"] {
        let name = bench.path(folder).join("main.db-mj0123AF9F0");
        let bytes = name.as_os_str().as_bytes();
        let contents: [(&str, Vec<u8>); 8] = [
            ("a text", b"setting = 1\n".to_vec()),
            ("another journal", list(&[&another])),
            ("the database", list(&[&bench.path("data/app.db")])),
            (
                "no end",
                list(&[&another, &journal])[..list(&[&another, &journal]).len() - 1].to_vec(),
            ),
            ("a part of a name", [b"x", &list(&[&journal])[..]].concat()),
            ("something before it", [b"key = 1\0", &list(&[&journal])[..]].concat()),
            ("something behind it", [&list(&[&journal])[..], b"key = 1"].concat()),
            ("too much", [&list(&[&journal])[..], &list(&[&another]).repeat(1 << 16)].concat()),
        ];
        for (what, content) in contents {
            fs::write(&name, content).unwrap();
            is_taken_back(&bench, &hot, bytes, what);
        }
        fs::remove_file(&name).unwrap();
        symlink(&victim, &name).unwrap();
        is_taken_back(&bench, &hot, bytes, "a link");
        fs::remove_file(&name).unwrap();
        symlink("/nowhere/at/all", &name).unwrap();
        is_taken_back(&bench, &hot, bytes, "a link to nothing");
        fs::remove_file(&name).unwrap();
        fs::create_dir(&name).unwrap();
        is_taken_back(&bench, &hot, bytes, "a folder");
        fs::remove_dir(&name).unwrap();
        let path = std::ffi::CString::new(bytes).unwrap();
        // SAFETY: the path is terminated.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        is_taken_back(&bench, &hot, bytes, "a pipe");
        fs::remove_file(&name).unwrap();
        // A right one goes, with the transaction taken back.
        fs::write(&name, list(&[&another, &journal])).unwrap();
        bench.put("data/app.db", &hot, Some(bytes));
        assert_eq!(dump(&bench.open("data/app.db")).unwrap(), hot.before, "{folder}");
        assert!(!name.exists() && !bench.has_journal("data/app.db"), "{folder}");
        // One that is gone has committed it: the journal goes, and nothing is taken back.
        bench.put("data/app.db", &hot, Some(bytes));
        drop(bench.open("data/app.db").query_row("SELECT 1 FROM t", [], |_| Ok(())));
        assert!(!bench.has_journal("data/app.db"), "{folder}");
        assert!(fs::read(bench.path("data/app.db")).unwrap() == hot.database, "{folder}");
    }
    assert!(victim.exists());
}

/// Both databases with their hot journals that name one super-journal, beside another database in a third folder.
#[test]
fn a_transaction_over_folders_is_committed_by_the_removal_of_its_super_journal_and_never_split() {
    let names = ["data/app.db", "other/app.db"];
    let bench = Bench::new();
    let hot = [bench.hot(names[0], 1), bench.hot(names[1], 2)];
    let journals = names.map(|name| bench.path(&format!("{name}-journal")));
    for order in [[0, 1], [1, 0]] {
        for super_journal in ["data/app.db", "other/app.db", "deep/down/plain.db"] {
            let mut name = bench.path(super_journal).into_os_string();
            name.push("-mj00AFFE900");
            let put = |is_there: bool| {
                for (name_of, hot) in names.iter().zip(&hot) {
                    bench.put(name_of, hot, Some(name.as_bytes()));
                }
                if is_there {
                    fs::write(&name, list(&[&journals[0], &journals[1]])).unwrap();
                }
            };
            put(true);
            for (nth, index) in order.into_iter().enumerate() {
                let found = dump(&bench.open(names[index])).unwrap();
                assert_eq!(found, hot[index].before, "{name:?}");
                assert_eq!(Path::new(&name).exists(), nth == 0, "{name:?}: with the last journal");
            }
            put(false);
            for index in order {
                drop(bench.open(names[index]).query_row("SELECT 1 FROM t", [], |_| Ok(())));
                let now = fs::read(bench.path(names[index])).unwrap();
                assert!(now == hot[index].database, "{name:?}: something was taken back");
                assert!(!bench.has_journal(names[index]), "{name:?}");
            }
        }
    }
}

/// A commit that fails goes back by its own journals, and its super-journal goes as well.
#[test]
fn a_commit_over_two_databases_leaves_nothing_behind() {
    let bench = Bench::new();
    for name in ["data/app.db", "other/app.db"] {
        content::fill(&bench.open(name), PAGE, 60, 1);
    }
    for mode in ["DELETE", "TRUNCATE", "PERSIST"] {
        let connection = bench.open("data/app.db");
        let attached = bench.path("other/app.db");
        let key = bench.path("key");
        let sql = format!(
            "ATTACH 'file:{}?vfs=pellucid&key_file={}' AS o;
             PRAGMA main.journal_mode={mode}; PRAGMA o.journal_mode={mode};",
            attached.display(),
            key.display()
        );
        connection.execute_batch(&sql).unwrap();
        for round in 0..3 {
            let sql = format!(
                "BEGIN; UPDATE main.t SET body = '{mode}{round}'; UPDATE o.t SET body = '{mode}{round}';
                 COMMIT; BEGIN; UPDATE main.t SET body = 'no'; UPDATE o.t SET body = 'no'; ROLLBACK;"
            );
            connection.execute_batch(&sql).unwrap();
            for schema in ["main", "o"] {
                let sql = format!("SELECT count(*) FROM {schema}.t WHERE body = '{mode}{round}'");
                let rows: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
                assert_eq!(rows, 60, "{mode} {round} {schema}");
            }
        }
        drop(connection);
        let left = everything(bench.place.path());
        let is_one = |path: &Path| path.to_string_lossy().contains("-mj");
        assert!(!left.iter().any(|(path, _)| is_one(path)), "{mode}: {left:?}");
    }
}
