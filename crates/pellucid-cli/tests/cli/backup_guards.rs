//! Goal: a backup never takes away what it is made from or what was there: not the locks, not the secrecy, not the files.
//!
//! Method: backups stopped in the middle, by a pipe that nobody reads or by a store or a progress hook of the test's own,
//! while something else happens to the same files; and names that would cost somebody a database.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, Once};
use std::time::Duration;

use pellucid::header::REGION_BYTES;
use pellucid::media::Compression;
use pellucid::protector::KeyFile;
use pellucid::Algorithm;
use pellucid_backup::job::{
    back_up, restore, use_store, Commit, Content, Created, Existing, Files, Job, Phase, Restoring,
    Rules, Store,
};
use pellucid_backup::restore::MediaSource;
use pellucid_backup::set::MediaSink;
use pellucid_vfs::seal_request::{offer, Offer};

use crate::support::{edit, Place, PELLUCID};

/// A database of that many KiB that do not compress.
pub fn database(place: &Place, name: &str, kib: u32, journal: &str) {
    let sql = format!(
        "PRAGMA journal_mode = {journal}; CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {kib})
         INSERT INTO t SELECT i, randomblob(950) FROM n;"
    );
    place.sqlite3(name, &sql).succeeded();
}

pub fn names(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path(".")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub fn bytes(place: &Place, name: &str) -> Vec<u8> {
    std::fs::read(place.path(name)).unwrap()
}

fn rows(place: &Place, name: &str) -> String {
    let sql = "PRAGMA integrity_check; SELECT count(*), sum(unicode(hex(b))), max(a) FROM t";
    place.pellucid(&["run", "--", "sqlite3", "-batch", name, sql]).succeeded()
}

#[test]
fn what_is_read_through_a_transaction_stays_locked_to_the_end() {
    let place = Place::new();
    database(&place, "app.db", 30_000, "DELETE");
    let before = rows(&place, "app.db");
    let mut command = place.command(PELLUCID);
    command.args(["backup", "app.db", "--to", "-", "--no-spool", "--workers", "1"]);
    command.args(["--compression", "none"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    // The third chunk is written only after progress was told of the first. What follows does not fit into the pipe and
    // the chunks under way: the backup waits.
    let mut set = vec![0; 3 << 20];
    out.read_exact(&mut set).unwrap();
    let written = place.sqlite3("app.db", "INSERT INTO t(b) VALUES (zeroblob(9))");
    assert!(written.code != 0 && written.stderr.contains("locked"), "{written:?}");
    out.read_to_end(&mut set).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::write(place.path("app.bak"), set).unwrap();
    place.pellucid(&["restore", "app.bak", "--to", "back.db"]).succeeded();
    assert_eq!(rows(&place, "back.db"), before);
    place.sqlite3("app.db", "INSERT INTO t(b) VALUES (zeroblob(9))").succeeded();
}

/// A store whose objects are named after what they do, and that remembers what was done. One for the process.
struct Scripted;

static DONE: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn did(what: &str, name: &str) {
    DONE.lock().unwrap().push(format!("{what} {name}"));
}

/// What was done with the objects of one test.
fn done(of: &str) -> Vec<String> {
    DONE.lock().unwrap().iter().filter(|line| line.contains(of)).cloned().collect()
}

struct Object(PathBuf);

impl MediaSink for Object {
    fn write(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn name(&self) -> PathBuf {
        self.0.clone()
    }
}

struct End(String);

impl End {
    fn act(&self, what: &str) -> io::Result<()> {
        did(what, &self.0);
        match self.0.contains(&format!("no-{what}")) {
            true => Err(io::Error::other("refused for the test")),
            false => Ok(()),
        }
    }
}

impl Commit for End {
    fn complete(&mut self) -> io::Result<()> {
        self.act("complete")
    }

    fn give_name(&mut self) -> io::Result<()> {
        self.act("name")
    }

    fn take_back(&mut self) -> io::Result<()> {
        self.act("take-back")
    }
}

impl Store for Scripted {
    fn create(&self, url: &str, _: u64) -> io::Result<Created> {
        did("create", url);
        Ok(Created { sink: Box::new(Object(url.into())), commit: Box::new(End(url.to_owned())) })
    }

    fn create_whole(&self, url: &str) -> io::Result<Created> {
        self.create(url, 0)
    }

    fn check(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn remove(&self, url: &str) -> io::Result<()> {
        did("remove", url);
        Ok(())
    }

    /// Asked before the database is held. `test://encrypt/PROGRAM|DIRECTORY` encrypts `app.db` there.
    fn exists(&self, url: &str) -> io::Result<bool> {
        if let Some((_, words)) = url.split_once("encrypt/") {
            let (program, directory) = words.split_once('|').unwrap();
            let mut command = Command::new(program);
            command.current_dir(directory).env_clear().env("PELLUCID_HOME", "keys");
            command.env("PATH", "/usr/bin:/bin");
            let output =
                command.args(["encrypt", "app.db", "--key-file", "raw.key"]).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        Ok(false)
    }

    fn content(&self, _: &str, _: u64) -> io::Result<Option<(Vec<u8>, Content)>> {
        Err(io::Error::other("nothing is read here"))
    }

    fn replace(&self, _: &str, _: Vec<u8>, _: Option<&Content>) -> io::Result<Content> {
        Err(io::Error::other("nothing is replaced here"))
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn MediaSource>> {
        Err(io::Error::other("nothing is read here"))
    }
}

/// The library in this process.
pub fn ready() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The history of whoever runs the tests may know backups of these names.
        let nobodys = Path::new(PELLUCID).with_file_name("no instance");
        std::env::set_var("PELLUCID_HOME", nobodys);
        pellucid_bundled::register().unwrap();
        use_store(Box::new(Scripted)).unwrap();
    });
}

pub fn job(database: PathBuf, families: Vec<PathBuf>, existing: Existing) -> Job {
    Job {
        rules: Rules { existing, skip: false, parity: false },
        compression: Compression::None,
        level: 0,
        workers: 1,
        ..Job::new(database, Files { families, mirrors: Vec::new() })
    }
}

#[test]
fn a_database_that_is_encrypted_meanwhile_is_not_backed_up_in_clear() {
    ready();
    let place = Place::new();
    database(&place, "app.db", 100, "DELETE");
    place.secret("raw.key", &[7; 32]);
    offer(Offer::KeyFile(KeyFile::parse(&[7; 32]).unwrap()));
    let url = format!("test://encrypt/{PELLUCID}|{}", place.path("").display());
    let job = job(place.path("app.db"), vec![url.clone().into()], Existing::Refuse);
    let refused = back_up(&job, &mut |_| ()).unwrap_err().to_string();
    assert!(refused.contains("was encrypted or decrypted while"), "{refused}");
    assert_eq!(done(&url), [format!("create {url}")], "nothing was completed");
}

#[test]
fn no_file_is_replaced_before_all_objects_are_there_and_no_object_alone_stays() {
    ready();
    let place = Place::new();
    database(&place, "app.db", 100, "DELETE");
    place.pellucid(&["backup", "app.db", "--to", "a.bak"]).succeeded();
    let before = bytes(&place, "a.bak");
    let cases = [
        ("no-complete", &["complete one", "complete two"][..]),
        ("no-name", &["complete one", "complete two", "name one", "name two"]),
    ];
    for (fails, expected) in cases {
        let (one, two) = (format!("test://{fails}-not/1"), format!("test://{fails}/2"));
        // Only the second one fails.
        let one = one.replace("no-", "yes-");
        let files = vec![place.path("a.bak"), one.clone().into(), two.clone().into()];
        let job = job(place.path("app.db"), files, Existing::Format);
        let failed = back_up(&job, &mut |_| ()).unwrap_err().to_string();
        assert!(failed.contains("refused for the test") && failed.contains(&two), "{failed}");
        assert_eq!(bytes(&place, "a.bak"), before, "{fails}");
        assert!(!place.path("a.bak.pellucid-new").exists(), "{fails}");
        let order: Vec<_> = DONE
            .lock()
            .unwrap()
            .iter()
            .filter(|line| line.ends_with(&one) || line.ends_with(&two))
            .map(|line| line.replace(&one, "one").replace(&two, "two"))
            .filter(|line| !line.starts_with("create"))
            .collect();
        assert_eq!(order[..expected.len()], *expected, "{fails}");
        let taken_back = order.contains(&"take-back one".to_owned());
        assert_eq!(taken_back, fails == "no-name", "{fails}: {order:?}");
    }
}

#[test]
fn a_file_that_appears_while_a_backup_is_written_is_not_replaced() {
    ready();
    let place = Place::new();
    database(&place, "app.db", 3000, "DELETE");
    let names_before = names(&place);
    let files = vec![place.path("a.bak"), place.path("b.bak")];
    let job = job(place.path("app.db"), files, Existing::Refuse);
    let mut phases = Vec::new();
    let refused = back_up(&job, &mut |now| {
        phases.push(now.phase);
        assert_eq!(now.page_size, 4096);
        std::fs::write(place.path("b.bak"), "somebody's").unwrap();
    });
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("b.bak") && refused.contains("it is there already"), "{refused}");
    assert_eq!(bytes(&place, "b.bak"), b"somebody's");
    assert_eq!(names(&place), [&names_before[..], &["b.bak".to_owned()]].concat(), "and no a.bak");
    let writes_from = phases.iter().position(|phase| *phase == Phase::Writing).unwrap();
    assert!(writes_from > 0, "pages were set aside first");
    assert!(phases[writes_from..].iter().all(|phase| *phase == Phase::Writing));
}

#[test]
fn a_database_that_a_program_makes_during_a_restore_keeps_its_logs() {
    ready();
    let place = Place::new();
    database(&place, "app.db", 100, "DELETE");
    place.pellucid(&["backup", "app.db", "--to", "a.bak"]).succeeded();
    for made in [&["new.db", "new.db-wal", "new.db-shm"][..], &["new.db-journal"]] {
        let job = Restoring {
            media: vec![place.path("a.bak")],
            base: None,
            point: None,
            only: Vec::new(),
            position: None,
            to: place.path("new.db"),
            protections: Vec::new(),
            algorithm: Algorithm::Aes256,
            decrypted: false,
            plain_differential: false,
            allow_clear: false,
            allow_unsigned: false,
            leave: Default::default(),
            replace: true,
            timeout: Duration::from_secs(10),
            workers: 1,
        };
        let before = names(&place);
        let refused = restore(&job, &mut |_, _| {
            made.iter().for_each(|name| std::fs::write(place.path(name), name).unwrap());
        });
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("a program has made it"), "{refused}");
        for name in made {
            assert_eq!(bytes(&place, name), name.as_bytes());
            std::fs::remove_file(place.path(name)).unwrap();
        }
        assert_eq!(names(&place), before);
    }
}

#[test]
fn names_that_would_cost_a_database_or_the_base_are_refused_and_nothing_is_changed() {
    let place = Place::new();
    for name in ["app.db", "other.db", "x.bak.pellucid-new"] {
        place.plain(name);
    }
    place.sealed("sealed.db", &[]);
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "later.bak"]).succeeded();
    std::fs::hard_link(place.path("app.db"), place.path("same.db")).unwrap();
    std::os::unix::fs::symlink("nothing", place.path("link.bak")).unwrap();
    let (own, other) = ("is to be backed up, or a file that belongs to it", "it is a database");
    let base = "holds the full backup that the differential";
    let control = "has control characters";
    let cases: &[(&[&str], &str)] = &[
        (&["--to", "app.db", "--overwrite"], own),
        (&["--to", "app.db", "--format"], own),
        (&["--to", "./same.db", "--format"], own),
        (&["--to", "app.db-wal"], own),
        (&["--to", "later.bak", "--mirror", "app.db-journal", "--format"], own),
        (&["--to", "other.db", "--overwrite"], other),
        (&["--to", "sealed.db", "--format"], other),
        (&["--to", "link.bak", "--format"], "symbolic link to nothing"),
        (&["--to", "full.bak", "--differential", "--overwrite"], base),
        (&["--to", "full.bak", "--differential", "--format"], base),
        (&["--to", "later.bak", "--differential", "--base", "later.bak", "--overwrite"], base),
        (&["--to", "full.bak", "--format", "--media-name", "\x1b[2J"], control),
        (&["--to", "full.bak", "--format", "--media-description", "a\x07"], control),
        (&["--to", "full.bak", "--overwrite", "--name", "\x1b[2J"], control),
        (&["--to", "full.bak", "--append", "--description", "a\rb"], control),
    ];
    let before = place.snapshot();
    for (words, why) in cases {
        let refused = place.pellucid(&[&["backup", "app.db"], *words].concat());
        assert!(refused.code == 1 && refused.stderr.contains(why), "{words:?}: {refused:?}");
        assert_eq!(place.snapshot(), before, "{words:?}: something was changed");
    }
    // The database is what the other name of a file is.
    let refused = place.pellucid(&["backup", "x.bak.pellucid-new", "--to", "x.bak"]);
    assert!(refused.code == 1 && refused.stderr.contains(own), "{refused:?}");
    assert_eq!(place.snapshot(), before);
    // A log lies beside the file, not beside a symbolic link to it.
    std::fs::create_dir(place.path("far")).unwrap();
    place.plain("far/real.db");
    std::os::unix::fs::symlink("far/real.db", place.path("link.db")).unwrap();
    let before = place.snapshot();
    for end in ["", "-wal", "-journal", "-shm", "-pellucid"] {
        let refused = place.pellucid(&["backup", "link.db", "--to", &format!("far/real.db{end}")]);
        assert!(refused.code == 1 && refused.stderr.contains(own), "{end}: {refused:?}");
        assert_eq!(place.snapshot(), before, "{end}: something was changed");
    }
    place.pellucid(&["backup", "link.db", "--to", "linked.bak"]).succeeded();
    // What is not in the way of any of that.
    let apart = ["--to", "later.bak", "--differential", "--base", "full.bak", "--overwrite"];
    place.pellucid(&[&["backup", "app.db"], &apart[..]].concat()).succeeded();
    let append = ["--to", "full.bak", "--differential", "--append"];
    place.pellucid(&[&["backup", "app.db"], &append[..]].concat()).succeeded();
}

#[test]
fn a_differential_in_clear_of_a_sealed_set_is_refused_when_it_is_made() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    place.pellucid(&["decrypt", "app.db"]).succeeded();
    let words = ["backup", "app.db", "--to", "d.bak", "--differential", "--base", "full.bak"];
    let refused = place.pellucid(&words);
    assert!(refused.code == 1 && refused.stderr.contains("full backup has to come between"));
    assert!(!place.path("d.bak").exists() && !place.path("d.bak.pellucid-new").exists());
    // The other way round nobody answers for the pages of the full set.
    place.pellucid(&["backup", "app.db", "--to", "clear.bak"]).succeeded();
    place.pellucid(&["cert", "create", "backups"]).succeeded();
    let sealed = ["--differential", "--base", "clear.bak", "--certificate", "backups"];
    let refused = place.pellucid(&[&["backup", "app.db", "--to", "s.bak"], &sealed[..]].concat());
    assert!(refused.code == 1 && refused.stderr.contains("full backup has to come between"));
    place
        .pellucid(&["backup", "app.db", "--to", "full2.bak", "--certificate", "backups"])
        .succeeded();
    let sealed = ["--differential", "--base", "full2.bak", "--certificate", "backups"];
    place.pellucid(&[&["backup", "app.db", "--to", "s.bak"], &sealed[..]].concat()).succeeded();
    place.pellucid(&["restore", "s.bak", "--base", "full2.bak", "--to", "back.db"]).succeeded();
}

#[test]
fn a_differential_after_a_change_of_the_page_size_is_refused_when_it_is_made() {
    for (sealed, journal) in [(true, "DELETE"), (true, "WAL"), (false, "DELETE"), (false, "WAL")] {
        let place = Place::new();
        place.plain("app.db");
        if sealed {
            place.pellucid(&["encrypt", "app.db"]).succeeded();
        }
        let run = |sql: &str| {
            place.pellucid(&["run", "--", "sqlite3", "-batch", "app.db", sql]).succeeded()
        };
        place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
        run(&format!("PRAGMA page_size = 8192; VACUUM; PRAGMA journal_mode = {journal}; DELETE FROM t WHERE a > 100"));
        let before = place
            .snapshot()
            .into_iter()
            .filter(|(name, _)| name.extension() == Some(OsStr::new("bak")));
        let before: Vec<_> = before.collect();
        for more in
            [&["--to", "d.bak", "--base", "full.bak"][..], &["--to", "full.bak", "--append"]]
        {
            let refused = place.pellucid(&[&["backup", "app.db", "--differential"], more].concat());
            let why = "pages of 8192 bytes, and its full backup has pages of 4096: a full backup has to come between";
            assert!(
                refused.code == 1 && refused.stderr.contains(why),
                "{sealed} {journal} {more:?}: {refused:?}"
            );
        }
        let left = place
            .snapshot()
            .into_iter()
            .filter(|(name, _)| name.to_string_lossy().contains(".bak"));
        assert_eq!(left.collect::<Vec<_>>(), before, "{sealed} {journal}");
        place.pellucid(&["backup", "app.db", "--to", "full.bak", "--append"]).succeeded();
        run("DELETE FROM t WHERE a > 50");
        place
            .pellucid(&["backup", "app.db", "--to", "full.bak", "--append", "--differential"])
            .succeeded();
        place.pellucid(&["restore", "full.bak", "--to", "back.db"]).succeeded();
        assert_eq!(rows(&place, "back.db"), rows(&place, "app.db"));
    }
}

#[test]
fn a_differential_of_a_database_that_was_encrypted_since_is_refused_when_it_is_made() {
    let place = Place::new();
    place.plain("app.db");
    place.pellucid(&["init"]).succeeded();
    place.pellucid(&["cert", "create", "backups"]).succeeded();
    place
        .pellucid(&["backup", "app.db", "--to", "full.bak", "--certificate", "backups"])
        .succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    let differential =
        ["backup", "app.db", "--to", "d.bak", "--differential", "--base", "full.bak"];
    let refused = place.pellucid(&differential);
    assert!(
        refused.code == 1 && refused.stderr.contains("full backup has to come between"),
        "{refused:?}"
    );
    assert!(!place.path("d.bak").exists());
    place.pellucid(&["backup", "app.db", "--to", "full.bak", "--append"]).succeeded();
    place.pellucid(&differential).succeeded();
    place.pellucid(&["restore", "d.bak", "--base", "full.bak", "--to", "back.db"]).succeeded();
}

/// Two states of the same media, the first one begun earlier.
fn two_states(place: &Place, words: &[&str], files: &[&str]) -> [Vec<Vec<u8>>; 2] {
    let state = |more: &[&str]| {
        place.pellucid(&[&["backup", "app.db"], words, more].concat()).succeeded();
        files.iter().map(|name| bytes(place, name)).collect()
    };
    let first = state(&[]);
    place.sqlite3("app.db", "INSERT INTO t(b) VALUES ('later')").succeeded();
    [first, state(&["--overwrite"])]
}

#[test]
fn stripes_between_two_names_are_told_from_the_old_ones_whatever_the_clock_said() {
    let place = Place::new();
    place.plain("app.db");
    let earlier = rows(&place, "app.db");
    let [new, old] = two_states(&place, &["--to", "a.bak", "b.bak"], &["a.bak", "b.bak"]);
    // As after a crash between two renames, where the clock was set back before the backup: the new set begun earlier.
    let crashed = || {
        std::fs::write(place.path("a.bak"), &new[0]).unwrap();
        std::fs::write(place.path("b.bak"), &old[1]).unwrap();
        std::fs::write(place.path("b.bak.pellucid-new"), &new[1]).unwrap();
    };
    crashed();
    place.pellucid(&["restore", "a.bak", "b.bak", "--to", "back.db"]).succeeded();
    assert_eq!(rows(&place, "back.db"), earlier);
    place.pellucid(&["backup", "app.db", "--to", "a.bak", "b.bak", "--append"]).succeeded();
    assert!(!place.path("b.bak.pellucid-new").exists());
    assert_eq!(bytes(&place, "b.bak")[..new[1].len()], new[1]);

    // What nobody can tell, or read, is kept.
    std::fs::write(place.path("a.bak"), &new[0]).unwrap();
    std::fs::write(place.path("b.bak"), &old[1]).unwrap();
    place.pellucid(&["backup", "app.db", "--to", "c.bak", "d.bak"]).succeeded();
    std::fs::copy(place.path("d.bak"), place.path("b.bak.pellucid-new")).unwrap();
    let to_both = ["backup", "app.db", "--to", "a.bak", "b.bak", "--format"];
    let refused = place.pellucid(&to_both);
    assert!(refused.code == 1 && refused.stderr.contains("move it away first"), "{refused:?}");
    assert_eq!(bytes(&place, "b.bak.pellucid-new"), bytes(&place, "d.bak"));
    std::fs::remove_file(place.path("b.bak.pellucid-new")).unwrap();
    std::fs::create_dir(place.path("b.bak.pellucid-new")).unwrap();
    let refused = place.pellucid(&to_both);
    assert!(refused.code == 1 && refused.stderr.contains("b.bak.pellucid-new"), "{refused:?}");
    assert_eq!(bytes(&place, "b.bak"), old[1]);
    std::fs::remove_dir(place.path("b.bak.pellucid-new")).unwrap();
    place.pellucid(&to_both).succeeded();
}

#[test]
fn of_mirrors_that_disagree_none_is_chosen_by_the_clock_and_all_are_replaced_together() {
    let place = Place::new();
    place.plain("app.db");
    let words = ["--to", "a.bak", "--mirror", "b.bak"];
    let earlier = rows(&place, "app.db");
    let [old, _] = two_states(&place, &words, &["a.bak", "b.bak"]);
    let later = rows(&place, "app.db");
    // As after a backup that gave the mirror up.
    std::fs::write(place.path("b.bak"), &old[1]).unwrap();
    for media in [["a.bak", "b.bak"], ["b.bak", "a.bak"]] {
        for verb in [&["restore", "--to", "back.db"][..], &["verify", "--open"], &["header"]] {
            let said = place.pellucid(&[verb, &media[..]].concat());
            let (code, told) = (said.code, &said.stderr);
            assert!(code == 1 && told.contains("a.bak`") && told.contains("b.bak`"), "{said:?}");
            assert!(told.contains("name the files of one of them alone"), "{said:?}");
        }
        assert!(!place.path("back.db").exists());
    }
    for (media, expected) in [("a.bak", &later), ("b.bak", &earlier)] {
        place.pellucid(&["restore", media, "--to", "back.db"]).succeeded();
        assert_eq!(rows(&place, "back.db"), *expected);
        std::fs::remove_file(place.path("back.db")).unwrap();
    }
    let append = [&["backup", "app.db"], &words[..], &["--append"]].concat();
    let refused = place.pellucid(&append);
    assert!(refused.code == 3 && refused.stderr.contains("`--overwrite`"), "{refused:?}");
    place.pellucid(&[&["backup", "app.db"], &words[..], &["--overwrite"]].concat()).succeeded();
    let said = place.pellucid(&["verify", "a.bak", "b.bak"]);
    assert!(said.code == 0 && !said.stderr.contains("left out"), "{said:?}");
}

#[test]
fn a_mirror_that_is_behind_and_not_whole_is_left_out_and_named() {
    let place = Place::new();
    place.plain("app.db");
    let files = ["a1.bak", "a2.bak", "b1.bak", "b2.bak"];
    let words = ["--to", files[0], files[1], "--mirror", files[2], files[3]];
    let [old, _] = two_states(&place, &words, &files);
    let later = rows(&place, "app.db");
    // Of the older set one stripe alone.
    std::fs::write(place.path("b1.bak"), &old[2]).unwrap();
    let said = place.pellucid(&[&["restore"], &files[..], &["--to", "back.db"]].concat());
    assert!(said.code == 0 && said.stderr.contains("b1.bak`: it holds another"), "{said:?}");
    assert_eq!(rows(&place, "back.db"), later);
    let said = place.pellucid(&[&["verify", "--open"], &files[..]].concat());
    assert!(said.code == 0 && said.stderr.contains("it was left out"), "{said:?}");
    // Both stripes: it is as good as the other one.
    std::fs::write(place.path("b2.bak"), &old[3]).unwrap();
    let said = place.pellucid(&[&["verify"], &files[..]].concat());
    assert!(said.code == 1 && said.stderr.contains("one of them alone"), "{said:?}");
}

#[test]
fn a_mirror_that_has_not_expired_is_not_overwritten_with_one_that_disagrees() {
    let place = Place::new();
    place.plain("app.db");
    let words = ["backup", "app.db", "--to", "a.bak", "--mirror", "b.bak"];
    place.pellucid(&[&words[..], &["--retain-days", "9"]].concat()).succeeded();
    let kept = bytes(&place, "b.bak");
    place.pellucid(&[&words[..], &["--overwrite", "--skip"]].concat()).succeeded();
    std::fs::write(place.path("b.bak"), &kept).unwrap();
    let refused = place.pellucid(&[&words[..], &["--overwrite"]].concat());
    assert!(refused.code == 1 && refused.stderr.contains("(4030)"), "{refused:?}");
    assert_eq!(bytes(&place, "b.bak"), kept);
}

#[test]
fn damaged_pages_are_zeros_in_every_journal_mode_until_a_differential_has_them() {
    // In page 12, behind the region.
    let at = REGION_BYTES as usize + 11 * 4096 + 100;
    for (journal, options) in [("DELETE", &[][..]), ("DELETE", &["--no-spool"]), ("WAL", &[])] {
        let place = Place::new();
        database(&place, "app.db", 400, journal);
        place.pellucid(&["encrypt", "app.db"]).succeeded();
        let before = rows(&place, "app.db");
        let damage = || edit(&place.path("app.db"), |bytes| bytes[at] ^= 1);
        damage();
        let backup = [&["--json", "backup", "app.db", "--to", "full.bak"], options].concat();
        assert_eq!(place.pellucid(&backup).code, 3, "{journal} {options:?}");
        assert!(!place.path("full.bak").exists());
        let said = place.pellucid(&[&backup[..], &["--continue-after-error"]].concat());
        assert_eq!(said.code, 3, "{said:?}");
        let facts: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(facts["damaged_pages"], serde_json::json!([12]), "{journal} {options:?}");
        let restored = place.pellucid(&["restore", "full.bak", "--to", "holed.db"]);
        assert!(restored.code == 3 && restored.stderr.contains("page 12"), "{restored:?}");
        // Mended, and in a differential: nothing is missing then.
        damage();
        let differential = ["backup", "app.db", "--to", "full.bak", "--append", "--differential"];
        place.pellucid(&differential).succeeded();
        place.pellucid(&["restore", "full.bak", "--to", "whole.db"]).succeeded();
        assert_eq!(rows(&place, "whole.db"), before, "{journal} {options:?}");
    }
}

#[test]
fn a_restore_over_what_nobody_can_read_leaves_no_copy_where_its_logs_do_not_move() {
    let place = Place::new();
    database(&place, "new.db", 20, "DELETE");
    place.pellucid(&["backup", "new.db", "--to", "a.bak"]).succeeded();
    place.sealed("app.db", &[]);
    std::fs::rename(place.path("keys"), place.path("lost")).unwrap();
    std::fs::write(place.path("app.db-wal"), "nor this").unwrap();
    std::fs::create_dir_all(place.path("app.db-wal.pellucid-old/x")).unwrap();
    let before = place.snapshot();
    // The set is in clear, and what it goes over is not.
    let over = ["restore", "a.bak", "--to", "app.db", "--replace", "--decrypted", "--allow-clear"];
    let refused = place.pellucid(&over);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(!refused.stderr.contains("NOT sealed"), "{refused:?}");
    assert_eq!(place.snapshot(), before);
    std::fs::remove_dir_all(place.path("app.db-wal.pellucid-old")).unwrap();
    place.pellucid(&over).succeeded();
    assert_eq!(rows(&place, "app.db"), rows(&place, "new.db"));
}

#[test]
fn a_variable_that_is_no_text_does_not_keep_a_backup_from_a_store() {
    let place = Place::new();
    place.plain("app.db");
    let url = format!("file://{}", place.path("app.bak").display());
    let mut command = place.command(PELLUCID);
    command.env(OsStr::from_bytes(b"X_\xff"), OsStr::from_bytes(b"\xfe"));
    command.args(["backup", "app.db", "--to", &url]);
    crate::support::said(&mut command).succeeded();
    place.pellucid(&["restore", &url, "--to", "back.db"]).succeeded();
    assert!(Path::new(&place.path("back.db")).exists());
}
