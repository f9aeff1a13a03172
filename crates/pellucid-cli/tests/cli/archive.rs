//! Goal: `pellucid archive` ships every commit once, and each can be restored from the place alone; no kill and no fault of a store
//! loses one; nothing there is overwritten; and a store is asked nothing while nothing is committed.
//!
//! Method: a directory, and the servers of tests/cli/objects.rs behind their proxy, which counts requests and lets them fail. A
//! database gets a row a commit, so that the count of rows says which commit a restore stopped behind. The archiver is killed before
//! each call that changes a file of the database, its archive or the place (tests/tools/killat.c).
//!
//! Each of these calls: PELLUCID_KILL_STRIDE=1 cargo test --workspace --test cli archive::killed.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::store::{servers, Server};
use crate::support::{kill_stride, said, said_with, Place, Said, PELLUCID};

/// A database under the recovery model FULL, with an empty table.
pub fn database(place: &Place, name: &str) {
    place.sealed(name, &[]);
    place.pellucid(&["upgrade", name]).succeeded();
    sql(place, name, "PRAGMA journal_mode=WAL; CREATE TABLE rows(a INTEGER PRIMARY KEY);");
    place.pellucid(&["recovery", name, "full"]).succeeded();
}

pub fn sql(place: &Place, name: &str, script: &str) -> String {
    let mut command = place.command(PELLUCID);
    said_with(command.args(["run", "--", "sqlite3", "-batch", "-bail", name]), script).succeeded()
}

pub fn insert(place: &Place, name: &str) {
    sql(place, name, "INSERT INTO rows DEFAULT VALUES;");
}

/// The same while an archiver begins, too: whoever opens a database first with its log closed keeps it for itself for a moment, and SQLite
/// tells others that it is locked unless they wait.
pub fn insert_at_the_beginning(place: &Place, name: &str) {
    sql(place, name, ".timeout 60000\nINSERT INTO rows DEFAULT VALUES;");
}

pub fn rows(place: &Place, name: &str) -> u32 {
    sql(place, name, "SELECT count(*) FROM rows;").trim().parse().unwrap()
}

pub fn facts(said: Said) -> Value {
    serde_json::from_str(&said.succeeded()).unwrap()
}

fn last_lsn(told: &Value) -> String {
    told["databases"][0]["last_lsn"].as_str().unwrap().to_owned()
}

/// Ships `commits` rows, one a set, and gives back the LSN of each.
fn shipped(commits: u32, ship: &mut dyn FnMut() -> Value, insert: &dyn Fn()) -> Vec<String> {
    let mut lsns = Vec::new();
    for _ in 0..commits {
        insert();
        let told = ship();
        assert_eq!(
            (&told["databases"][0]["sets"], &told["databases"][0]["commits"]),
            (&1.into(), &1.into())
        );
        lsns.push(last_lsn(&told));
    }
    lsns
}

/// Files of the archiver's in a directory, by the end of their names.
pub fn names(place: &Place, folder: &str, end: &str) -> Vec<String> {
    let found = place.snapshot();
    let within = |path: &&std::path::PathBuf| path.to_str().unwrap().contains(folder);
    let mut names: Vec<_> = found
        .keys()
        .filter(within)
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name.ends_with(end))
        .collect();
    names.sort();
    names
}

/// The commits of some LSNs are in a place, the first one with one row.
fn assert_all_restore(restore: &dyn Fn(&str, &str), place: &Place, lsns: &[String]) {
    for (at, lsn) in lsns.iter().enumerate() {
        let to = "restored.db";
        restore(&format!("lsn:{lsn}"), to);
        assert_eq!(rows(place, to), at as u32 + 1, "lsn:{lsn}");
        remove(place, to);
    }
}

fn remove(place: &Place, name: &str) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(place.path(&format!("{name}{end}")));
    }
}

/// Restores the last commit there is, and nothing speaks against a set.
pub fn last(restored: Said) {
    let told = facts(restored);
    assert_eq!(told["chain"], Value::Array(Vec::new()), "{told}");
}

fn restore_from<'a>(place: &'a Place, from: &'a str) -> impl Fn(&str, &str) + 'a {
    move |at, to| {
        last(place.pellucid(&["--json", "restore", from, "--at", at, "--to", to]));
    }
}

#[test]
fn each_commit_is_restored_from_the_directory_before_and_after_a_merging() {
    let place = Place::new();
    database(&place, "app.db");
    std::fs::create_dir(place.path("out")).unwrap();
    let early = place.pellucid(&["archive", "app.db", "--to", "out", "--once"]);
    assert!(
        early.code == 1
            && early.stderr.contains("pellucid backup")
            && early.stderr.contains("first.full"),
        "{early:?}"
    );
    let ship = ["--json", "archive", "app.db", "--to", "out", "--once", "--full-every", "1d"];
    let told = facts(place.pellucid(&ship));
    assert_eq!(told["databases"][0]["sets"], 0);
    let mut lsns = shipped(4, &mut || facts(place.pellucid(&ship)), &|| insert(&place, "app.db"));
    assert_eq!((names(&place, "out", ".full").len(), names(&place, "out", ".log").len()), (1, 4));
    assert_all_restore(&restore_from(&place, "out"), &place, &lsns);
    // The first round makes the set, the next one removes what it has replaced.
    let merge = ["archive", "app.db", "--to", "out", "--once", "--merge-every", "1h"];
    let told = place.pellucid(&merge).succeeded();
    assert!(told.contains("4 log sets became"), "{told}");
    assert_eq!(names(&place, "out", ".log").len(), 5);
    assert_all_restore(&restore_from(&place, "out"), &place, &lsns);
    let told = place.pellucid(&merge).succeeded();
    assert!(told.contains("4 sets removed"), "{told}");
    let left = names(&place, "out", ".log");
    assert!(left.len() == 1 && left[0].contains('-'), "{left:?}");
    lsns.extend(shipped(2, &mut || facts(place.pellucid(&ship)), &|| insert(&place, "app.db")));
    assert_all_restore(&restore_from(&place, "out"), &place, &lsns);
    // A moment, and the folder of the one database.
    let folder = std::fs::read_dir(place.path("out")).unwrap().next().unwrap().unwrap().path();
    let told = facts(place.pellucid(&[
        "--json",
        "restore",
        folder.to_str().unwrap(),
        "--at",
        "last",
        "--to",
        "x.db",
    ]));
    assert_eq!((rows(&place, "x.db"), told["chain"].as_array().unwrap().len()), (6, 0), "{told}");
    // What the merged set is for the history, and that it is signed.
    let known = place.pellucid(&["--json", "history"]).succeeded();
    let known: Value = serde_json::from_str(&known).unwrap();
    let logs =
        known["backups"].as_array().unwrap().iter().filter(|set| set["type"] == "log").count();
    assert_eq!(logs, 3, "{known}");
    place
        .pellucid(&[
            "verify",
            "--open",
            folder.join(chain(&folder)).join(&left[0]).to_str().unwrap(),
        ])
        .succeeded();
    let told = facts(place.pellucid(&["--json", "status", "app.db"]));
    let archive = &told["databases"][0]["archive"];
    assert_eq!(
        (archive["failing"].as_bool(), archive["behind_seconds"].as_u64()),
        (Some(false), Some(0)),
        "{archive}"
    );
    let metrics = place.pellucid(&["status", "--prometheus", "app.db"]).succeeded();
    for name in ["behind_seconds", "complete_timestamp_seconds", "failing"] {
        let sample = format!("pellucid_database_archive_{name}{{database=");
        assert!(metrics.contains(&sample), "{metrics}");
    }
}

/// Also those that a timer makes, under names of their own, and beside the ones of another fork.
#[test]
fn log_backups_in_a_directory_are_found_whatever_their_names() {
    let place = Place::new();
    database(&place, "app.db");
    std::fs::create_dir(place.path("out")).unwrap();
    let back_up = |to: &str, log: bool| {
        let mut words = vec!["--quiet", "backup", "app.db", "--to", to];
        words.extend(log.then_some("--log"));
        place.pellucid(&words).succeeded();
    };
    let mut moments = Vec::new();
    for round in ["1", "2"] {
        place.pellucid(&["recovery", "app.db", "simple"]).succeeded();
        place.pellucid(&["recovery", "app.db", "full"]).succeeded();
        back_up(&format!("out/{round}.bak"), false);
        for log in ["a", "b"] {
            insert(&place, "app.db");
            moments.push(sql(
                &place,
                "app.db",
                "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now', '+0.001 seconds');",
            ));
            std::thread::sleep(Duration::from_millis(5));
            back_up(&format!("out/{round}-{log}.log.bak"), true);
        }
    }
    let restore = ["--json", "restore", "out", "--at", "last", "--to", "x.db"];
    let told = facts(place.pellucid(&restore));
    assert_eq!((rows(&place, "x.db"), told["sets"].as_array().unwrap().len()), (4, 3), "{told}");
    remove(&place, "x.db");
    // The moment says which chain.
    for (at, moment) in moments.iter().enumerate() {
        place.pellucid(&["restore", "out", "--at", moment.trim(), "--to", "x.db"]).succeeded();
        assert_eq!(rows(&place, "x.db") as usize, at + 1);
        remove(&place, "x.db");
    }
    // One of them taken away is a gap, and no older state.
    std::fs::remove_file(place.path("out/2-a.log.bak")).unwrap();
    let gap = place.pellucid(&restore);
    assert!(gap.code == 1 && gap.stderr.contains("are missing"), "{gap:?}");
    // Another database's full backup is not taken for a newer one of this.
    database(&place, "other.db");
    place.pellucid(&["--quiet", "backup", "other.db", "--to", "out/3.bak"]).succeeded();
    let several = place.pellucid(&restore);
    assert!(several.code == 1 && several.stderr.contains("out/3.bak"), "{several:?}");
}

/// The folder of the one chain in a database's folder.
fn chain(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut folders = entries.filter(|entry| entry.path().is_dir());
    folders.next().unwrap().file_name().into_string().unwrap()
}

#[test]
fn what_another_copy_of_the_database_has_put_is_never_overwritten() {
    let place = Place::new();
    database(&place, "app.db");
    std::fs::create_dir(place.path("out")).unwrap();
    let ship = ["archive", "app.db", "--to", "out", "--once", "--full-every", "1d"];
    insert(&place, "app.db");
    place.pellucid(&ship).succeeded();
    let other = Place::new();
    place.copy_to(&other);
    insert(&place, "app.db");
    place.pellucid(&ship).succeeded();
    sql(&other, "app.db", "INSERT INTO rows VALUES (77);");
    let out = place.path("out");
    let before = place.snapshot();
    let there = ["archive", "app.db", "--to", out.to_str().unwrap(), "--once"];
    let refused = other.pellucid(&there);
    assert!(refused.code == 1 && refused.stderr.contains("nothing is overwritten"), "{refused:?}");
    let sets = |found: &crate::support::Snapshot| {
        found
            .iter()
            .filter(|(path, _)| path.to_str().unwrap().contains("out/"))
            .map(|(path, of)| (path.clone(), *of))
            .collect::<Vec<_>>()
    };
    assert_eq!(sets(&before), sets(&place.snapshot()));
    // It is told until that is mended, and the commit is with the database.
    let told = other.pellucid(&["status", "--check", "app.db"]);
    assert!(told.code == 4 && told.all().contains("do not get to"), "{told:?}");
    std::fs::create_dir(other.path("elsewhere")).unwrap();
    other.pellucid(&["archive", "app.db", "--to", "elsewhere", "--once"]).succeeded();
    let told = other.pellucid(&["status", "--check", "app.db"]).all();
    assert!(!told.contains("do not get to"), "{told}");
    // Nor is a directory made where a disk may not be mounted.
    std::fs::rename(place.path("out"), place.path("away")).unwrap();
    insert(&place, "app.db");
    let refused = place.pellucid(&ship);
    assert!(refused.code != 0 && !place.path("out").exists(), "{refused:?}");
    let told = place.pellucid(&["doctor"]).all();
    assert!(told.contains("do not get to"), "{told}");
    std::fs::rename(place.path("away"), place.path("out")).unwrap();
    place.pellucid(&ship).succeeded();
    place.pellucid(&["restore", "out", "--at", "last", "--to", "x.db"]).succeeded();
    assert_eq!(rows(&place, "x.db"), 3);
}

#[test]
fn killed_before_each_change_no_commit_is_lost_and_none_is_there_twice() {
    let model = Place::new();
    database(&model, "a.db");
    std::fs::create_dir(model.path("a-out")).unwrap();
    let ship = ["--json", "archive", "a.db", "--to", "a-out", "--once", "--full-every", "1d"];
    model.pellucid(&ship).succeeded();
    let mut lsns = shipped(2, &mut || facts(model.pellucid(&ship)), &|| insert(&model, "a.db"));
    insert(&model, "a.db");
    let merge = ["--json", "archive", "a.db", "--to", "a-out", "--once", "--merge-every", "1h"];
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/killat.c");
    let preload = model.compile_library(&tool, "killat.so");
    let run = |place: &Place, at: u32| {
        let mut command = place.command(PELLUCID);
        command.args(merge).env("LD_PRELOAD", &preload).env("KILL_DIR", place.path("a"));
        command.env("KILL_COUNT_FILE", place.path("count"));
        if at > 0 {
            command.env("KILL_AT", at.to_string());
        }
        said(&mut command)
    };
    // The round that ships and merges, then the one that removes.
    for round in 1..=2 {
        let counted = Place::new();
        model.copy_to(&counted);
        let told = facts(run(&counted, 0));
        let calls: u32 =
            std::fs::read_to_string(counted.path("count")).unwrap().trim().parse().unwrap();
        assert!(calls > 3, "{calls} calls show nothing");
        if round == 1 {
            lsns.push(last_lsn(&told));
        }
        for at in (1..=calls).step_by(kill_stride() as usize) {
            let what = format!("round {round}, killed at {at} of {calls}");
            let live = Place::new();
            model.copy_to(&live);
            let killed = run(&live, at);
            assert!(killed.code != 0, "{what}: {killed:?}");
            last(live.pellucid(&["--json", "restore", "a-out", "--at", "last", "--to", "at.db"]));
            assert!((2..=3).contains(&rows(&live, "at.db")), "{what}");
            // Whatever is there, two rounds make one set of it.
            for _ in 0..3 {
                live.pellucid(&merge).succeeded();
            }
            let left = names(&live, "a-out", ".log");
            assert!(left.len() == 1 && left[0].contains('-'), "{what}: {left:?}");
            assert_all_restore(&restore_from(&live, "a-out"), &live, &lsns);
            insert(&live, "a.db");
            live.pellucid(&merge).succeeded();
            last(live.pellucid(&["--json", "restore", "a-out", "--at", "last", "--to", "end.db"]));
            assert_eq!(rows(&live, "end.db"), 4, "{what}");
        }
        model.pellucid(&merge).succeeded();
    }
}

#[test]
fn what_no_point_within_the_time_needs_goes_and_nothing_else() {
    let place = Place::new();
    database(&place, "app.db");
    std::fs::create_dir(place.path("out")).unwrap();
    let to = ["archive", "app.db", "--to", "out", "--once"];
    let with = |more: &[&str]| place.pellucid(&[&to[..], more].concat()).succeeded();
    with(&["--full-every", "1s"]);
    insert(&place, "app.db");
    with(&[]);
    insert(&place, "app.db");
    with(&[]);
    // All of it is within a day.
    with(&["--keep", "1d"]);
    assert_eq!((names(&place, "out", ".full").len(), names(&place, "out", ".log").len()), (1, 2));
    std::thread::sleep(Duration::from_millis(1100));
    with(&["--full-every", "1s"]);
    insert(&place, "app.db");
    with(&[]);
    assert_eq!((names(&place, "out", ".full").len(), names(&place, "out", ".log").len()), (2, 3));
    std::thread::sleep(Duration::from_millis(2100));
    // A full backup that cannot be read whole lets nothing go: damaged, or another one under its name.
    let folders = std::fs::read_dir(place.path("out")).unwrap().map(|entry| entry.unwrap().path());
    let mut fulls: Vec<_> = folders
        .flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.to_string_lossy().ends_with(".full"))
        .collect();
    fulls.sort();
    let newest = std::fs::read(&fulls[1]).unwrap();
    let mut damaged = newest.clone();
    damaged[newest.len() * 3 / 4] ^= 1;
    let cut = newest[..newest.len() * 3 / 4].to_vec();
    for wrong in [damaged, cut, std::fs::read(&fulls[0]).unwrap()] {
        std::fs::write(&fulls[1], wrong).unwrap();
        place.pellucid(&[&to[..], &["--keep", "1s"]].concat());
        let left = (names(&place, "out", ".full").len(), names(&place, "out", ".log").len());
        assert_eq!(left, (2, 3));
    }
    std::fs::write(&fulls[1], newest).unwrap();
    // Of the last second nothing needs the first full backup, nor the logs behind it.
    let told = with(&["--keep", "1s"]);
    assert!(told.contains("3 sets removed"), "{told}");
    assert_eq!((names(&place, "out", ".full").len(), names(&place, "out", ".log").len()), (1, 1));
    place.pellucid(&["restore", "out", "--at", "last", "--to", "x.db"]).succeeded();
    assert_eq!(rows(&place, "x.db"), 3);
}

#[test]
fn sets_of_several_databases_are_told_apart() {
    let place = Place::new();
    database(&place, "one.db");
    database(&place, "two.db");
    std::fs::create_dir(place.path("out")).unwrap();
    let ship =
        ["--json", "archive", "one.db", "two.db", "--to", "out", "--once", "--full-every", "1d"];
    place.pellucid(&ship).succeeded();
    insert(&place, "one.db");
    insert(&place, "two.db");
    insert(&place, "two.db");
    let told = facts(place.pellucid(&ship));
    let mut commits: Vec<_> =
        told["databases"].as_array().unwrap().iter().map(|one| one["commits"].as_u64()).collect();
    commits.sort();
    assert_eq!(commits, [Some(1), Some(2)]);
    let refused = place.pellucid(&["restore", "out", "--at", "last", "--to", "x.db"]);
    assert!(refused.code == 1 && refused.stderr.contains("several databases"), "{refused:?}");
    let folders = std::fs::read_dir(place.path("out")).unwrap().map(|entry| entry.unwrap().path());
    for folder in folders {
        let folder = folder.to_str().unwrap();
        let wanted = if folder.contains("one-") { 1 } else { 2 };
        place.pellucid(&["restore", folder, "--at", "last", "--to", "x.db"]).succeeded();
        assert_eq!(rows(&place, "x.db"), wanted);
        remove(&place, "x.db");
    }
}

/// An archiver that goes on until it is dropped.
pub struct Running(Child);

impl Running {
    pub fn start(mut command: std::process::Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// What it has said on standard error.
    pub fn end(mut self) -> String {
        self.0.kill().unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(self.0.stderr.as_mut().unwrap(), &mut said).unwrap();
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn wait_until(what: &str, is_so: &mut dyn FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    begun.elapsed()
}

#[test]
fn commits_arrive_by_themselves_and_an_idle_database_asks_a_store_for_nothing() {
    for mut server in servers() {
        let place = Place::new();
        database(&place, "app.db");
        let to = "s3://backups/live";
        server
            .pellucid(&place, &["archive", "app.db", "--to", to, "--once", "--full-every", "1d"])
            .succeeded();
        let mut command = server.command(&place);
        command.args(["archive", "app.db", "--to", to, "--every", "1s"]);
        let running = Running::start(command);
        let logs = |server: &mut Server| {
            server.objects().iter().filter(|name| name.ends_with(".log")).count()
        };
        for number in 1..=3 {
            let before = logs(&mut server);
            insert_at_the_beginning(&place, "app.db");
            let took = wait_until("a commit arrives", &mut || logs(&mut server) > before);
            println!("{}: commit {number} was there {took:.1?} after it was made", server.name);
        }
        // What closes behind the last commit changes files once more.
        std::thread::sleep(Duration::from_secs(2));
        server.ask("count any");
        std::thread::sleep(Duration::from_secs(5));
        assert_eq!(server.ask("count any"), "0", "{}", server.name);
        // The archiver still holds the database, and that keeps nobody from it.
        insert(&place, "app.db");
        let before = 3;
        wait_until("the next commit arrives", &mut || logs(&mut server) > before);
        // One request for one set: no listing, no question before it.
        assert_eq!(server.ask("count any"), "1", "{}", server.name);
        // A program that does not wait for locks is never told that the database is locked.
        for _ in 0..20 {
            insert(&place, "app.db");
        }
        wait_until("the last commits arrive", &mut || {
            let told = facts(place.pellucid(&["--json", "status", "app.db"]));
            told["databases"][0]["archive"]["behind_seconds"] == 0
        });
        assert_eq!(running.end(), "");
        let rest = ["--json", "archive", "app.db", "--to", to, "--once"];
        facts(server.pellucid(&place, &rest));
        last(server.pellucid(&place, &["--json", "restore", to, "--at", "last", "--to", "x.db"]));
        assert_eq!(rows(&place, "x.db"), 24);
    }
}

/// Faults of the request that puts a set.
const FAULTS: [&str; 6] = [
    "put 0 1 500",
    "put 0 1 500-after",
    "put 0 1 drop-after",
    "put 0 1 drop",
    "put 0 99 500",
    "put 0 99 500-after",
];

#[test]
fn no_fault_of_a_store_loses_a_commit_or_leaves_it_there_twice() {
    for mut server in servers() {
        let place = Place::new();
        database(&place, "app.db");
        let to = "s3://backups/faults";
        let ship = ["--json", "archive", "app.db", "--to", to, "--once"];
        let first = [&ship[..], &["--full-every", "1d"]].concat();
        facts(server.pellucid(&place, &first));
        insert(&place, "app.db");
        facts(server.pellucid(&place, &ship));
        let mut commits = 1;
        for rule in FAULTS {
            insert(&place, "app.db");
            // Behind the probe of the conditions, which is two of them.
            let rule = rule.replacen("put 0", "put 2", 1);
            assert_eq!(server.ask(&rule), "ok");
            let told = server.pellucid(&place, &ship);
            server.ask("clear");
            assert!(told.code <= 1, "{rule}: {told:?}");
            commits += 1;
            insert(&place, "app.db");
            commits += 1;
            facts(server.pellucid(&place, &ship));
            last(
                server.pellucid(&place, &["--json", "restore", to, "--at", "last", "--to", "x.db"]),
            );
            assert_eq!(rows(&place, "x.db"), commits, "{}: {rule}", server.name);
            remove(&place, "x.db");
        }
        // None of the sets overlaps another: merged they have each commit once.
        let merge = [&ship[..], &["--merge-every", "1h"]].concat();
        facts(server.pellucid(&place, &merge));
        facts(server.pellucid(&place, &merge));
        let logs: Vec<_> =
            server.objects().into_iter().filter(|name| name.ends_with(".log")).collect();
        assert!(logs.len() == 1 && logs[0].contains('-'), "{}: {logs:?}", server.name);
        last(server.pellucid(&place, &["--json", "restore", to, "--at", "last", "--to", "x.db"]));
        assert_eq!(rows(&place, "x.db"), commits);
        remove(&place, "x.db");
        // One that overwrites is refused before anything is shipped there.
        insert(&place, "app.db");
        server.ask("put 0 99 ignore");
        let refused =
            server.pellucid(&place, &["archive", "app.db", "--to", "s3://backups/other", "--once"]);
        server.ask("clear");
        assert!(
            refused.code == 1 && refused.stderr.contains("overwrites an object"),
            "{refused:?}"
        );
        facts(server.pellucid(&place, &ship));
        last(server.pellucid(&place, &["--json", "restore", to, "--at", "last", "--to", "x.db"]));
        assert_eq!(rows(&place, "x.db"), commits + 1);
    }
}

#[test]
fn an_archiver_goes_on_by_itself_once_the_store_answers_again() {
    let Some(mut server) = servers().pop() else { return };
    let place = Place::new();
    database(&place, "app.db");
    let to = "s3://backups/down";
    server
        .pellucid(&place, &["archive", "app.db", "--to", to, "--once", "--full-every", "1d"])
        .succeeded();
    server.ask("any 0 9999 500");
    let mut command = server.command(&place);
    command.args(["archive", "app.db", "--to", to, "--every", "100ms"]).env("AWS_TIMEOUT", "2s");
    let running = Running::start(command);
    insert_at_the_beginning(&place, "app.db");
    insert_at_the_beginning(&place, "app.db");
    let status = |place: &Place| {
        facts(place.pellucid(&["--json", "status", "app.db"]))["databases"][0]["archive"].clone()
    };
    wait_until("it is told", &mut || status(&place)["failing"] == true);
    server.ask("clear");
    wait_until("it goes on", &mut || status(&place)["failing"] == false);
    let said = running.end();
    assert!(said.contains("nothing is lost") && said.contains("it goes on"), "{said}");
    last(server.pellucid(&place, &["--json", "restore", to, "--at", "last", "--to", "x.db"]));
    assert_eq!(rows(&place, "x.db"), 2);
}
