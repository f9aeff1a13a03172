//! Goal: a database that is put back to an older state, with its archive and with the keyring, is told by the place that it is shipped
//! to, and its chain is broken; nothing there is overwritten, and no set goes on behind a commit that another one goes on behind.
//!
//! Method: everything on the machine of the database, its keyring included, is copied and put back later, while the place goes on: a
//! directory, and the servers of tests/cli/objects.rs.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::archive::{
    database, facts, insert, insert_at_the_beginning, names, rows, sql, wait_until, Running,
};
use crate::support::store::{servers, Server};
use crate::support::{said, Place, Said, PELLUCID};

/// The database, what lies beside it, and the keyring.
const MACHINE: [&str; 5] = ["app.db", "app.db-wal", "app.db-shm", "app.db-log", "keys"];

fn copy_tree(from: &Path, to: &Path) {
    if !from.exists() {
        return;
    }
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        copy_tree(&entry.path(), &to.join(entry.file_name()));
    }
}

/// The whole machine, as it is now, in a folder.
fn remember(place: &Place, folder: &str) {
    fs::create_dir(place.path(folder)).unwrap();
    for name in MACHINE {
        copy_tree(&place.path(name), &place.path(folder).join(name));
    }
}

fn put_back(place: &Place, folder: &str) {
    for name in MACHINE {
        let _ = fs::remove_file(place.path(name));
        let _ = fs::remove_dir_all(place.path(name));
        copy_tree(&place.path(folder).join(name), &place.path(name));
    }
}

/// Where databases are shipped to.
enum To {
    Directory,
    Store(Box<Server>, &'static str),
}

impl To {
    fn name(&self) -> &str {
        match self {
            Self::Directory => "out",
            Self::Store(_, name) => name,
        }
    }

    fn command(&self, place: &Place) -> Command {
        match self {
            Self::Directory => place.command(PELLUCID),
            Self::Store(server, _) => server.command(place),
        }
    }

    fn pellucid(&self, place: &Place, words: &[&str]) -> Said {
        said(self.command(place).args(words))
    }

    fn ship(&self, place: &Place, more: &[&str]) -> Said {
        self.pellucid(
            place,
            &[&["archive", "app.db", "--to", self.name(), "--once"], more].concat(),
        )
    }

    /// What is in the place.
    fn content(&mut self, place: &Place) -> Vec<String> {
        match self {
            Self::Store(server, _) => server.objects(),
            Self::Directory => self.content_of_directory(place),
        }
    }

    fn content_of_directory(&self, place: &Place) -> Vec<String> {
        let found = place.snapshot();
        let within = found.iter().filter(|(path, _)| path.to_str().unwrap().contains("out/"));
        within.map(|(path, of)| format!("{path:?} {of:?}")).collect()
    }
}

fn everywhere() -> Vec<To> {
    let stores =
        servers().into_iter().map(|server| To::Store(Box::new(server), "s3://backups/put-back"));
    std::iter::once(To::Directory).chain(stores).collect()
}

/// A database with a row in the place, the older state in the folder `older`, and two rows more in the place.
fn begun(to: &To, small_sets_stay: bool) -> Place {
    let place = Place::new();
    database(&place, "app.db");
    fs::create_dir(place.path("out")).unwrap();
    to.ship(&place, &["--full-every", "1d"]).succeeded();
    insert(&place, "app.db");
    to.ship(&place, &[]).succeeded();
    remember(&place, "older");
    for _ in 0..2 {
        insert(&place, "app.db");
        to.ship(&place, &[]).succeeded();
    }
    if !small_sets_stay {
        for _ in 0..2 {
            to.ship(&place, &["--merge-every", "1h"]).succeeded();
        }
    }
    place
}

fn is_told(told: &Said, what: &str) {
    assert!(told.code != 0 && told.all().contains("was put back"), "{what}: {told:?}");
    assert!(told.all().contains("witness"), "{what}: {told:?}");
}

#[test]
fn all_of_a_machine_that_is_put_back_is_told_by_the_place() {
    for mut to in everywhere() {
        for small_sets_stay in [true, false] {
            let what = format!("{}, small sets stay: {small_sets_stay}", to.name());
            let place = begun(&to, small_sets_stay);
            let nothing_new = facts(
                to.pellucid(&place, &["--json", "archive", "app.db", "--to", to.name(), "--once"]),
            );
            assert_eq!(nothing_new["databases"][0]["sets"], 0, "{what}");
            put_back(&place, "older");
            assert_eq!(rows(&place, "app.db"), 1);
            let before = to.content(&place);
            // Neither while nothing is committed, nor with a full backup that is due.
            is_told(&to.ship(&place, &[]), &what);
            insert(&place, "app.db");
            is_told(&to.ship(&place, &["--full-every", "1s"]), &what);
            is_told(&to.ship(&place, &["--full-every", "1s", "--merge-every", "1h"]), &what);
            assert_eq!(before, to.content(&place), "{what}");
            // The chain is broken, and everybody says so.
            let log = place.pellucid(&["backup", "app.db", "--log", "--to", "own.bak"]);
            assert!(
                log.code == 3 && log.all().contains("missing from its chain"),
                "{what}: {log:?}"
            );
            let status = place.pellucid(&["status", "--check", "app.db"]);
            assert!(status.code == 4 && status.all().contains("is broken"), "{what}: {status:?}");
            assert!(status.all().contains("do not get to"), "{what}: {status:?}");
            let events = place.pellucid(&["events"]).succeeded();
            assert!(events.contains("chain of log backups put back"), "{what}: {events}");
            // The place has what is missing.
            facts(to.pellucid(
                &place,
                &["--json", "restore", to.name(), "--at", "last", "--to", "last.db"],
            ));
            assert_eq!(rows(&place, "last.db"), 3, "{what}");
            // Whoever accepts it as it is begins the chain anew, in the same place.
            let full = place.pellucid(&["backup", "app.db", "--to", "again.bak"]);
            assert_eq!(full.code, 0, "{what}: {full:?}");
            insert(&place, "app.db");
            let shipped = to.ship(&place, &[]);
            assert!(shipped.code == 0 && shipped.all().contains("1 commit shipped"), "{shipped:?}");
            let words =
                ["--json", "restore", "again.bak", to.name(), "--at", "last", "--to", "x.db"];
            facts(to.pellucid(&place, &words));
            assert_eq!(rows(&place, "x.db"), 3, "{what}");
            to.ship(&place, &[]).succeeded();
            if let To::Store(_, name) = &mut to {
                *name = "s3://backups/put-back-again";
            }
        }
    }
}

/// To before the chain began, and to a chain that has ended since. A chain that is begun anew is none that was put back.
#[test]
fn a_database_without_the_chain_of_the_place_is_told_if_it_is_older() {
    let to = To::Directory;
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["upgrade", "app.db"]).succeeded();
    sql(&place, "app.db", "PRAGMA journal_mode=WAL; CREATE TABLE rows(a INTEGER PRIMARY KEY);");
    remember(&place, "without");
    fs::create_dir(place.path("out")).unwrap();
    place.pellucid(&["recovery", "app.db", "full"]).succeeded();
    to.ship(&place, &["--full-every", "1d"]).succeeded();
    insert(&place, "app.db");
    to.ship(&place, &[]).succeeded();
    remember(&place, "first-chain");
    place.pellucid(&["recovery", "app.db", "simple"]).succeeded();
    place.pellucid(&["recovery", "app.db", "full"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "second.bak"]).succeeded();
    insert(&place, "app.db");
    let told = to.ship(&place, &[]);
    assert!(told.code == 0 && told.all().contains("1 commit shipped"), "{told:?}");
    for folder in ["without", "first-chain"] {
        put_back(&place, folder);
        let before = to.content_of_directory(&place);
        is_told(&to.ship(&place, &[]), folder);
        is_told(&to.ship(&place, &["--full-every", "1s"]), folder);
        assert_eq!(before, to.content_of_directory(&place), "{folder}");
    }
}

#[test]
fn a_check_against_the_place_tells_it_too() {
    for to in everywhere() {
        let place = begun(&to, false);
        let check = ["check", "app.db", "--against", to.name()];
        let clean = to.pellucid(&place, &check);
        assert!(clean.code == 0 && clean.all().contains("each is the newest"), "{clean:?}");
        put_back(&place, "older");
        let told = to.pellucid(&place, &check);
        is_told(&told, to.name());
        assert_eq!(told.code, 3, "{told:?}");
    }
}

/// Media alone say that they lead further, where nothing else knows.
#[test]
fn a_check_against_media_that_lead_further_tells_it() {
    let place = begun(&To::Directory, true);
    let folder = fs::read_dir(place.path("out")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(folder.join("witness")).unwrap();
    put_back(&place, "older");
    let told = place.pellucid(&["check", "app.db", "--against", "out"]);
    assert!(told.code != 0 && told.all().contains("was put back"), "{told:?}");
}

/// Without the witness the sets say it: who lists them knows how far they lead.
#[test]
fn sets_that_lead_further_are_told_where_the_witness_is_gone() {
    for small_sets_stay in [true, false] {
        let place = begun(&To::Directory, small_sets_stay);
        put_back(&place, "older");
        let folder = fs::read_dir(place.path("out")).unwrap().next().unwrap().unwrap().path();
        fs::remove_file(folder.join("witness")).unwrap();
        let before = names(&place, "out", ".log");
        let told = To::Directory.ship(&place, &[]);
        assert!(told.code != 0 && told.all().contains("was put back"), "{told:?}");
        insert(&place, "app.db");
        let told = To::Directory.ship(&place, &[]);
        assert!(told.code != 0 && told.all().contains("nothing is overwritten"), "{told:?}");
        assert_eq!(before, names(&place, "out", ".log"));
    }
}

/// A witness that nobody can read keeps the archiver from the place, and says what to do.
#[test]
fn a_damaged_witness_is_an_error_and_an_older_one_is_replaced() {
    let place = begun(&To::Directory, true);
    let folder = fs::read_dir(place.path("out")).unwrap().next().unwrap().unwrap().path();
    let witness = folder.join("witness");
    let whole = fs::read(&witness).unwrap();
    for at in [0, whole.len() / 2, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&witness, flipped).unwrap();
        insert(&place, "app.db");
        let told = To::Directory.ship(&place, &[]);
        assert!(told.code == 3 && told.all().contains("move it away"), "byte {at}: {told:?}");
    }
    fs::write(&witness, &whole).unwrap();
    To::Directory.ship(&place, &[]).succeeded();
    assert_ne!(fs::read(&witness).unwrap(), whole);
    // An older one says less, and is nothing against the database.
    fs::write(&witness, &whole).unwrap();
    insert(&place, "app.db");
    To::Directory.ship(&place, &[]).succeeded();
    // It is a set like others.
    let shown = place.pellucid(&["verify", "--open", witness.to_str().unwrap()]);
    assert_eq!(shown.code, 0, "{shown:?}");
}

/// Two archivers that go on beside each other: the names of the sets are free again behind a merging, and only the witness tells.
#[test]
fn a_copy_that_is_shipped_to_the_same_place_is_told_before_it_puts_a_set() {
    for mut to in everywhere() {
        if let To::Store(server, _) = &to {
            if server.name == "moto" {
                // It replaces an object whatever the condition says.
                continue;
            }
        }
        let place = Place::new();
        database(&place, "app.db");
        fs::create_dir(place.path("out")).unwrap();
        to.ship(&place, &["--full-every", "1d"]).succeeded();
        insert(&place, "app.db");
        to.ship(&place, &[]).succeeded();
        let copy = Place::new();
        place.copy_to(&copy);
        let out = place.path("out");
        let target = match &to {
            To::Directory => out.to_str().unwrap(),
            To::Store(..) => to.name(),
        };
        let every = ["--every", "100ms", "--merge-every", "1s"];
        let words = [&["archive", "app.db", "--to", target], &every[..]].concat();
        let start = |of: &Place| {
            let mut command = to.command(of);
            command.args(&words);
            Running::start(command)
        };
        let of_copy = start(&copy);
        // It has looked at the place, and has nothing to do.
        let behind = |of: &Place| facts(of.pellucid(&["--json", "status", "app.db"]));
        wait_until("the copy's archiver is there", &mut || {
            behind(&copy)["databases"][0]["archive"]["last_seen"].is_string()
        });
        std::thread::sleep(Duration::from_secs(2));
        for _ in 0..2 {
            insert(&place, "app.db");
            to.ship(&place, &[]).succeeded();
        }
        for _ in 0..2 {
            to.ship(&place, &["--merge-every", "1h"]).succeeded();
        }
        let before = to.content(&place);
        insert(&copy, "app.db");
        wait_until("it is told", &mut || {
            behind(&copy)["databases"][0]["archive"]["failing"] == true
        });
        let said = of_copy.end();
        assert!(said.contains("another copy of it"), "{said}");
        assert_eq!(before, to.content(&place), "{said}");
    }
}

/// The last set taken away leaves a place that is whole up to there.
#[test]
fn a_place_whose_end_was_taken_away_is_told_by_its_witness() {
    let place = begun(&To::Directory, true);
    // On a machine whose keyring knows nothing of the chain.
    fs::remove_dir_all(place.path("keys/keyring/witnesses")).unwrap();
    let restored = || {
        let words = ["restore", "out", "--at", "last", "--to", "new.db", "--replace"];
        let told = place.pellucid(&words);
        assert_eq!(told.code, 0, "{told:?}");
        told.all()
    };
    let whole = restored();
    assert!(!whole.contains("witness"), "{whole}");
    let folder = fs::read_dir(place.path("out")).unwrap().next().unwrap().unwrap().path();
    let mut within = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let chain = within.find(|path| path.is_dir()).unwrap();
    let newest = names(&place, "out", ".log").pop().unwrap();
    fs::remove_file(chain.join(newest)).unwrap();
    let cut = restored();
    assert!(cut.contains("the witness of their place knows of backups up to LSN"), "{cut}");
    // The archiver goes on, and says that there is a gap.
    insert(&place, "app.db");
    let told = To::Directory.ship(&place, &[]);
    assert!(told.code == 0 && told.all().contains("sets were taken away"), "{told:?}");
}

/// Two that ship one database replace each other's witness, and neither takes that for a copy of it.
#[test]
fn two_archivers_of_one_database_are_no_copies_of_each_other() {
    let to = To::Directory;
    let place = Place::new();
    database(&place, "app.db");
    fs::create_dir(place.path("out")).unwrap();
    to.ship(&place, &["--full-every", "1d"]).succeeded();
    let mut command = place.command(PELLUCID);
    command.args(["archive", "app.db", "--to", "out", "--every", "100ms", "--merge-every", "1s"]);
    let running = Running::start(command);
    for _ in 0..12 {
        insert_at_the_beginning(&place, "app.db");
        to.ship(&place, &[]).succeeded();
        insert_at_the_beginning(&place, "app.db");
        std::thread::sleep(Duration::from_millis(300));
    }
    to.ship(&place, &[]).succeeded();
    let said = running.end();
    assert!(!said.contains("put back") && !said.contains("copy"), "{said}");
    facts(place.pellucid(&["--json", "restore", "out", "--at", "last", "--to", "x.db"]));
    assert_eq!(rows(&place, "x.db"), 24);
}

#[test]
fn a_new_place_has_a_witness_before_it_has_a_log_set() {
    let place = Place::new();
    database(&place, "app.db");
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    fs::create_dir(place.path("out")).unwrap();
    let told = To::Directory.ship(&place, &[]);
    assert!(told.code == 0 && !told.all().contains("warning"), "{told:?}");
    let content = To::Directory.content(&place);
    assert!(content.iter().any(|one| one.contains("/witness")), "{content:?}");
}
