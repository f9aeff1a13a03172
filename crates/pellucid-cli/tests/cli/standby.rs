//! Goal: `pellucid standby` keeps a copy up to date within seconds; whoever reads it sees one commit or another one and never a mixture,
//! and keeps nobody out; a kill at any moment harms nothing; a place that went back, forked, lacks sets or has somebody else's is refused
//! by name, and a database that is no standby any more is never touched.
//!
//! Method: directories, and the servers of tests/cli/objects.rs behind the proxy that counts requests. Each commit changes two tables on
//! far pages, so that a mixture shows. The follower is killed before each call that changes a file (tests/tools/killat.c).
//!
//! Each of these calls: PELLUCID_KILL_STRIDE=1 cargo test --workspace --test cli standby::killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::archive::{database, facts, insert, names, rows, sql, wait_until, Running};
use crate::support::store::servers;
use crate::support::{kill_stride, said, Held, Place, Said, PELLUCID};

const FULL: [&str; 7] =
    ["--quiet", "archive", "app.db", "--to", "out", "--once", "--full-every=1d"];
const SHIP: [&str; 6] = ["--quiet", "archive", "app.db", "--to", "out", "--once"];
const FOLLOW: [&str; 6] = ["--json", "standby", "out", "--to", "ro.db", "--once"];

/// A database that is archived to `out` with some commits, and a standby of it.
fn followed() -> Place {
    let place = Place::new();
    database(&place, "app.db");
    fs::create_dir(place.path("out")).unwrap();
    place.pellucid(&FULL).succeeded();
    ship(&place);
    let told = facts(place.pellucid(&FOLLOW));
    assert_eq!((&told["made"], rows(&place, "ro.db")), (&true.into(), 1), "{told}");
    place
}

fn ship(place: &Place) {
    insert(place, "app.db");
    place.pellucid(&SHIP).succeeded();
}

/// What the standby and its model have, with what SQLite says of it.
fn assert_same(place: &Place, what: &str) {
    let dump = "PRAGMA integrity_check;\n.dump\n";
    let model = sql(place, "app.db", dump);
    assert!(model.starts_with("ok\n"));
    assert_eq!(sql(place, "ro.db", dump), model, "{what}");
}

fn copy_tree(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        copy_tree(&entry.path(), &to.join(entry.file_name()));
    }
}

fn put_back(place: &Place, from: &str, to: &str) {
    fs::remove_dir_all(place.path(to)).unwrap();
    copy_tree(&place.path(from), &place.path(to));
}

/// The files of the log sets, in their order.
fn logs(place: &Place) -> Vec<PathBuf> {
    let mut found: Vec<_> = place
        .snapshot()
        .into_keys()
        .filter(|path| {
            path.to_str().unwrap().ends_with(".log") && path.to_str().unwrap().contains("/out/")
        })
        .collect();
    found.sort();
    found
}

/// The witness of the one database that is archived to `out`.
fn witness(place: &Place) -> PathBuf {
    let is_one =
        |path: &PathBuf| path.to_str().unwrap().contains("/out/") && path.ends_with("witness");
    place.snapshot().into_keys().find(is_one).unwrap()
}

/// The follower says no, says why and what to do, and the standby stays as it is.
fn assert_refused(place: &Place, why: &str) -> Said {
    let before = (rows(place, "ro.db"), fs::read(place.path("ro.db")).unwrap());
    let refused = place.pellucid(&FOLLOW);
    assert!(refused.code != 0 && refused.all().contains(why), "{why}: {refused:?}");
    assert_eq!((rows(place, "ro.db"), fs::read(place.path("ro.db")).unwrap()), before, "{why}");
    refused
}

#[test]
fn a_standby_follows_commit_by_commit_and_says_how_far_it_is() {
    let place = followed();
    for commits in 1..=3 {
        (0..commits).for_each(|_| ship(&place));
        let told = facts(place.pellucid(&FOLLOW));
        let found = (&told["made"], &told["sets"], &told["commits"]);
        assert_eq!(found, (&false.into(), &commits.into(), &commits.into()), "{told}");
        assert_same(&place, "after some commits");
    }
    let told = facts(place.pellucid(&FOLLOW));
    assert_eq!((&told["sets"], &told["commits"]), (&0.into(), &0.into()));
    let status = facts(place.pellucid(&["--json", "status", "ro.db"]));
    let standby = &status["databases"][0]["standby"];
    assert_eq!(standby["from"], place.path("out").to_str().unwrap(), "{standby}");
    assert_eq!((&standby["failing"], &standby["last_lsn"]), (&false.into(), &told["last_lsn"]));
    assert_eq!(standby["last_commit"], told["last_commit"]);
    let shown = place.pellucid(&["status", "ro.db"]).succeeded();
    assert!(shown.contains("standby") && shown.contains("last commit"), "{shown}");
    // A full backup in between changes nothing, nor does one of a kind that a restore would begin with.
    place.pellucid(&["--quiet", "archive", "app.db", "--to", "out", "--once", "--full-every=1s"]);
    ship(&place);
    assert_eq!(facts(place.pellucid(&FOLLOW))["made"], false);
    assert_same(&place, "behind a full backup");
}

#[test]
fn pages_come_and_go_in_databases_of_each_kind() {
    for (page_size, vacuum) in
        [(512, "none"), (4096, "full"), (8192, "incremental"), (65536, "full")]
    {
        let place = Place::new();
        database(&place, "app.db");
        let script = format!(
            "PRAGMA journal_mode=DELETE; PRAGMA page_size={page_size}; PRAGMA auto_vacuum={vacuum}; VACUUM; \
             PRAGMA journal_mode=WAL; CREATE TABLE big(a INTEGER PRIMARY KEY, b BLOB);"
        );
        place.pellucid(&["--quiet", "recovery", "app.db", "simple"]).succeeded();
        sql(&place, "app.db", &script);
        place.pellucid(&["--quiet", "recovery", "app.db", "full"]).succeeded();
        fs::create_dir(place.path("out")).unwrap();
        place.pellucid(&FULL).succeeded();
        facts(place.pellucid(&FOLLOW));
        for step in [
            "INSERT INTO big(b) SELECT randomblob(3000) FROM (VALUES(1),(2),(3),(4),(5),(6),(7),(8));",
            "INSERT INTO big(b) SELECT randomblob(100000) FROM big; DELETE FROM big WHERE a % 2;",
            "DELETE FROM big WHERE a > 3; CREATE INDEX more ON big(b);",
            "BEGIN; DELETE FROM big; INSERT INTO big(b) VALUES(randomblob(500000)); COMMIT; DELETE FROM big;",
            "INSERT INTO big(b) SELECT randomblob(70000) FROM rows, (VALUES(1),(2),(3),(4),(5)); DROP INDEX more;",
            "VACUUM;",
            "PRAGMA auto_vacuum=none; VACUUM; INSERT INTO big(b) VALUES(randomblob(90000)); DELETE FROM big;",
            "INSERT INTO big(b) VALUES(randomblob(900)); DROP TABLE big; PRAGMA auto_vacuum=full; VACUUM;",
            "CREATE TABLE big(b); INSERT INTO big VALUES(randomblob(9000)),(randomblob(90000)); DELETE FROM big;",
        ] {
            insert(&place, "app.db");
            sql(&place, "app.db", step);
            place.pellucid(&SHIP).succeeded();
            // Half of the steps come two at a time.
            if step.starts_with("INSERT") || step.starts_with("CREATE") {
                facts(place.pellucid(&FOLLOW));
                assert_same(&place, &format!("{page_size} {vacuum}: {step}"));
            }
        }
        let count = |name| sql(&place, name, "PRAGMA page_count; PRAGMA auto_vacuum;");
        assert_eq!(count("ro.db"), count("app.db"));
        place.pellucid(&["check", "ro.db"]).succeeded();
    }
}

/// Two far pages are changed by each commit, and one more each time.
const PAIR: &str =
    "UPDATE one SET n = n + 1; UPDATE two SET n = n + 1; INSERT INTO rows DEFAULT VALUES;";

#[test]
fn readers_see_one_commit_or_another_and_keep_nobody_out() {
    let place = Place::new();
    database(&place, "app.db");
    sql(
        &place,
        "app.db",
        "CREATE TABLE one(n, p); INSERT INTO one VALUES(0, zeroblob(9000)); CREATE TABLE two(n, p); \
         INSERT INTO two VALUES(0, zeroblob(9000));",
    );
    fs::create_dir(place.path("out")).unwrap();
    place.pellucid(&FULL).succeeded();
    place.pellucid(&FOLLOW).succeeded();
    let start = |words: &str| {
        let mut command = place.command(PELLUCID);
        command.args(words.split_whitespace());
        Running::start(command)
    };
    let _archiver = start("--quiet archive app.db --to out --every 50ms");
    let follower = start("standby out --to ro.db --every 50ms");
    // One that begins to read and does not end.
    let mut command = place.command(PELLUCID);
    command.args(["run", "--", "sqlite3", "-readonly", "-batch", "ro.db"]);
    let script = "BEGIN;\nSELECT n FROM one;\nSELECT 'ready';\n";
    let mut held = Held::start_with(command, script);
    let seen = |place: &Place| {
        let all = "SELECT (SELECT n FROM one), (SELECT n FROM two), (SELECT count(*) FROM rows); PRAGMA integrity_check;";
        let found = sql(place, "ro.db", all);
        let (numbers, check) = found.trim().split_once('\n').unwrap();
        assert_eq!(check, "ok");
        let numbers: Vec<u32> = numbers.split('|').map(|one| one.parse().unwrap()).collect();
        assert!(numbers.iter().all(|one| *one == numbers[0]), "a mixture: {numbers:?}");
        numbers[0]
    };
    let (mut last, mut states) = (0, 0);
    for commits in 1..=40 {
        sql(&place, "app.db", &format!("BEGIN; {PAIR} COMMIT;"));
        let now = seen(&place);
        assert!(now >= last && now <= commits, "{now} after {last}, of {commits}");
        states += u32::from(now > last);
        last = now;
    }
    let took = wait_until("the last commit is there", &mut || seen(&place) == 40);
    println!("{states} states were seen on the way; the last commit was there {took:.1?} after it was made");
    assert!(states > 3, "{states} states show nothing");
    held.end();
    assert_eq!(follower.end(), "");
}

#[test]
fn killed_before_each_change_it_goes_on_as_if_nothing_had_been() {
    let model = followed();
    ship(&model);
    sql(&model, "app.db", "CREATE TABLE big(b); INSERT INTO big VALUES(randomblob(60000));");
    model.pellucid(&SHIP).succeeded();
    sql(&model, "app.db", "DELETE FROM big; VACUUM;");
    model.pellucid(&SHIP).succeeded();
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/killat.c");
    let tools = Place::new();
    let preload = tools.compile_library(&tool, "killat.so");
    let prepared = Place::new();
    model.copy_to(&prepared);
    // In one place, by whose path the history knows the standby.
    let live = model;
    let begin = |anew: bool| {
        for entry in fs::read_dir(live.path("")).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => fs::remove_dir_all(entry).unwrap(),
                false => fs::remove_file(entry).unwrap(),
            }
        }
        prepared.copy_to(&live);
        for end in ["", "-wal", "-shm"].into_iter().filter(|_| anew) {
            let _ = fs::remove_file(live.path(&format!("ro.db{end}")));
        }
    };
    let run = |at: u32| {
        let mut command = live.command(PELLUCID);
        command.args(FOLLOW).env("LD_PRELOAD", &preload).env("KILL_DIR", live.path(""));
        command.env("KILL_COUNT_FILE", live.path("count"));
        if at > 0 {
            command.env("KILL_AT", at.to_string());
        }
        said(&mut command)
    };
    // Going on from where it is, and made anew; the history of the instance is a part of it.
    for (anew, times) in [(false, 1), (true, 3)] {
        begin(anew);
        facts(run(0));
        let calls: u32 = fs::read_to_string(live.path("count")).unwrap().trim().parse().unwrap();
        println!("{calls} calls");
        assert!(calls > 20, "{calls} calls show nothing");
        for at in (1..=calls).step_by((kill_stride() * times) as usize) {
            let what = format!("anew: {anew}, killed at {at} of {calls}");
            begin(anew);
            let killed = run(at);
            assert!(killed.code != 0, "{what}: {killed:?}");
            if live.path("ro.db").exists() {
                // Whoever reads it finds one of the states, and the log that was left is no hindrance.
                let check = "PRAGMA integrity_check; SELECT count(*) FROM rows;";
                let said = sql(&live, "ro.db", check);
                assert!(["ok\n1\n", "ok\n2\n"].contains(&said.as_str()), "{what}: {said}");
            }
            let told = facts(live.pellucid(&FOLLOW));
            assert_same(&live, &what);
            assert!(anew || told["made"] == false, "{what}: {told}");
            ship(&live);
            assert_eq!(facts(live.pellucid(&FOLLOW))["made"], false, "{what}");
            assert_same(&live, &what);
        }
    }
}

#[test]
fn merged_sets_are_found_by_who_was_away() {
    let place = followed();
    let merge = [&SHIP[..], &["--merge-every", "1h"]].concat();
    ship(&place);
    ship(&place);
    facts(place.pellucid(&FOLLOW));
    ship(&place);
    ship(&place);
    // The standby is in the middle of what the merged set has, then behind the small ones that are gone.
    place.pellucid(&merge).succeeded();
    place.pellucid(&merge).succeeded();
    let left = names(&place, "out", ".log");
    assert!(left.len() == 1 && left[0].contains('-'), "{left:?}");
    let told = facts(place.pellucid(&FOLLOW));
    assert_eq!((&told["made"], &told["sets"]), (&false.into(), &1.into()), "{told}");
    assert_same(&place, "in the middle of a merged set");
    for _ in 0..2 {
        ship(&place);
        facts(place.pellucid(&FOLLOW));
        place.pellucid(&merge).succeeded();
        place.pellucid(&merge).succeeded();
        facts(place.pellucid(&FOLLOW));
        ship(&place);
        assert_eq!(facts(place.pellucid(&FOLLOW))["made"], false);
        assert_same(&place, "at the end of a merged set");
    }
}

#[test]
fn a_place_that_does_not_lead_on_is_refused_by_name() {
    let place = followed();
    copy_tree(&place.path("out"), &place.path("older"));
    (0..3).for_each(|_| ship(&place));
    facts(place.pellucid(&FOLLOW));
    copy_tree(&place.path("out"), &place.path("newer"));

    // Put back to an older state, with its witness and without.
    put_back(&place, "older", "out");
    let told = assert_refused(&place, "it went back");
    assert!(told.stderr.contains("--at last --standby --to"), "{told:?}");
    let status = place.pellucid(&["status", "--check", "ro.db"]);
    assert!(status.code == 4 && status.all().contains("it does not follow"), "{status:?}");
    fs::remove_file(witness(&place)).unwrap();
    assert_refused(&place, "it went back");
    put_back(&place, "newer", "out");
    facts(place.pellucid(&FOLLOW));
    let status = place.pellucid(&["status", "ro.db"]).all();
    assert!(!status.contains("it does not follow"), "{status}");

    // A set is missing: whoever comes after it is not taken.
    ship(&place);
    ship(&place);
    copy_tree(&place.path("out"), &place.path("newest"));
    let all = logs(&place);
    fs::remove_file(&all[all.len() - 2]).unwrap();
    assert_refused(&place, "are missing there");
    // The last ones are: the witness knows of them.
    fs::remove_file(&all[all.len() - 1]).unwrap();
    assert_refused(&place, "are missing there");
    put_back(&place, "newest", "out");

    // Damaged, or another one under its name.
    let next = &all[all.len() - 2];
    let good = fs::read(next).unwrap();
    for at in [good.len() / 2, good.len() - 9, 5000] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(next, bad).unwrap();
        let refused = place.pellucid(&FOLLOW);
        assert!(refused.code != 0, "{at}: {refused:?}");
        assert_eq!(rows(&place, "ro.db"), 4);
    }
    fs::write(next, fs::read(&all[all.len() - 1]).unwrap()).unwrap();
    assert_refused(&place, "has the name of one that goes on behind");
    let other = followed();
    ship(&other);
    fs::write(next, fs::read(logs(&other).last().unwrap()).unwrap()).unwrap();
    assert_refused(&place, "somebody else has put it there");
    fs::write(next, good).unwrap();

    // So is another one's witness.
    let own = fs::read(witness(&place)).unwrap();
    fs::write(witness(&place), fs::read(witness(&other)).unwrap()).unwrap();
    assert_refused(&place, "witness");
    fs::write(witness(&place), own).unwrap();

    let told = facts(place.pellucid(&FOLLOW));
    assert_eq!((&told["made"], rows(&place, "ro.db")), (&false.into(), 6), "{told}");

    // A branch: the database goes on behind an older commit, by the name of a set.
    let [.., first, _] = &logs(&place)[..] else { panic!("no logs") };
    let name = first.to_str().unwrap().replace(".log", "-b0000000099.log");
    fs::copy(first, &name).unwrap();
    assert_refused(&place, "went on from there");
    fs::remove_file(name).unwrap();
    facts(place.pellucid(&FOLLOW));

    // Another recovery fork.
    place.pellucid(&["--quiet", "recovery", "app.db", "simple"]).succeeded();
    place.pellucid(&["--quiet", "recovery", "app.db", "full"]).succeeded();
    place.pellucid(&[&SHIP[..], &["--full-every=1s"]].concat()).succeeded();
    ship(&place);
    assert_refused(&place, "another recovery fork");
    // What it says to do does it.
    std::thread::sleep(Duration::from_millis(1100));
    place.pellucid(&["restore", "out", "--at", "last", "--standby", "--to", "ro.db"]).succeeded();
    facts(place.pellucid(&FOLLOW));
    assert_same(&place, "made anew");
    ship(&place);
    assert_eq!(facts(place.pellucid(&FOLLOW))["made"], false);
    assert_same(&place, "made anew");
}

#[test]
fn a_standby_that_was_put_back_is_made_anew() {
    let place = followed();
    let older = fs::read(place.path("ro.db")).unwrap();
    ship(&place);
    facts(place.pellucid(&FOLLOW));
    ship(&place);
    fs::write(place.path("ro.db"), older).unwrap();
    let told = facts(place.pellucid(&FOLLOW));
    assert_eq!(told["made"], true, "{told}");
    assert_same(&place, "made anew");
}

#[test]
fn what_is_no_standby_is_never_touched() {
    let place = followed();
    ship(&place);
    let mut command = place.command(PELLUCID);
    command.args(["standby", "out", "--to", "ro.db", "--every", "50ms"]);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    wait_until("it follows", &mut || rows(&place, "ro.db") == 2);
    place.pellucid(&["restore", "--online", "--to", "ro.db"]).succeeded();
    ship(&place);
    insert(&place, "ro.db");
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(1) && said.contains("it is no standby"), "{said}");
    ship(&place);
    assert_refused(&place, "it is no standby");
    assert_eq!(rows(&place, "ro.db"), 3);
    insert(&place, "ro.db");
    // Nor any other file.
    place.plain("plain.db");
    fs::write(place.path("text"), "what somebody has written").unwrap();
    for name in ["plain.db", "text", "app.db"] {
        let before = fs::read(place.path(name)).unwrap();
        let refused = place.pellucid(&["standby", "out", "--to", name, "--once"]);
        assert!(refused.code == 1 && refused.stderr.contains("it is no standby"), "{refused:?}");
        assert_eq!(fs::read(place.path(name)).unwrap(), before);
    }
    // The database that took over goes to the same place, into a folder of its own, and the places of two are told apart.
    place.pellucid(&["--quiet", "recovery", "ro.db", "full"]).succeeded();
    let to = ["archive", "ro.db", "--to", "out", "--once", "--full-every=1d"];
    place.pellucid(&to).succeeded();
    let refused = place.pellucid(&["standby", "out", "--to", "other.db", "--once"]);
    assert!(refused.code == 1 && refused.stderr.contains("several databases"), "{refused:?}");
    let folders = fs::read_dir(place.path("out")).unwrap().map(|entry| entry.unwrap().path());
    let new = folders.into_iter().find(|path| path.to_str().unwrap().contains("ro-")).unwrap();
    insert(&place, "ro.db");
    place.pellucid(&to).succeeded();
    let new = new.to_str().unwrap();
    place.pellucid(&["standby", new, "--to", "other.db", "--once"]).succeeded();
    assert_eq!(rows(&place, "other.db"), 5);
}

#[test]
fn a_signal_ends_it_with_a_word_and_the_next_one_goes_on() {
    let place = followed();
    let mut command = place.command(PELLUCID);
    command.args(["standby", "out", "--to", "ro.db", "--every", "50ms"]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    ship(&place);
    wait_until("it follows", &mut || rows(&place, "ro.db") == 2);
    let pid = child.id().to_string();
    said(Command::new("/bin/kill").args(["-TERM", &pid])).succeeded();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("interrupted; ro.db stays a standby"), "{said}");
    ship(&place);
    let told: Value = facts(place.pellucid(&FOLLOW));
    assert_eq!((&told["made"], &told["commits"]), (&false.into(), &1.into()), "{told}");
}

#[test]
fn a_store_is_followed_within_seconds_and_asked_once_a_round() {
    for mut server in servers() {
        let place = Place::new();
        database(&place, "app.db");
        let to = "s3://backups/live";
        let archive =
            |more: &[&'static str]| [&["archive", "app.db", "--to", to][..], more].concat();
        server.pellucid(&place, &archive(&["--once", "--full-every", "1d"])).succeeded();
        insert(&place, "app.db");
        server.pellucid(&place, &archive(&["--once"])).succeeded();
        let mut command = server.command(&place);
        command.args(archive(&["--every", "1s"]));
        let archiver = Running::start(command);
        let mut command = server.command(&place);
        command.args(["standby", to, "--to", "ro.db", "--every", "1s"]);
        let follower = Running::start(command);
        wait_until("it is made", &mut || place.path("ro.db").exists());
        for number in 2..=4 {
            insert(&place, "app.db");
            let took = wait_until("a commit arrives", &mut || rows(&place, "ro.db") == number);
            println!("{}: commit {number} was read {took:.1?} after it was made", server.name);
        }
        std::thread::sleep(Duration::from_secs(3));
        server.ask("count any");
        std::thread::sleep(Duration::from_secs(6));
        let asked: u32 = server.ask("count any").parse().unwrap();
        println!("{}: {asked} requests in 6 s in which nothing was committed", server.name);
        assert!((4..=8).contains(&asked), "{}: {asked} requests in 6 s", server.name);
        // A store that does not answer, then does.
        server.ask("any 0 9999 500");
        insert(&place, "app.db");
        std::thread::sleep(Duration::from_secs(2));
        server.ask("clear");
        wait_until("it goes on", &mut || rows(&place, "ro.db") == 5);
        drop((archiver, follower));
        assert_same(&place, server.name);
    }
}
