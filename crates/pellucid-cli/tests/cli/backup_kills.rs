//! Goal: whenever a backup or a restore is killed, there is a complete set or nothing that passes for one, the last good
//! set restores, and the database under a restore is the old one or the new one.
//!
//! Method: kills at random moments of a backup's or restore's usual length, of plain and sealed databases in WAL and
//! DELETE mode, onto new media, appended, overwriting, formatting, striped and mirrored, differential; every row is
//! compared. Then kills before each call that changes a file of striped media (tests/tools/killat.c), also of the next
//! backup after such a kill; and backups that meet on the same media.
//!
//! The seed is printed. More kills, of one kind of database or all: PELLUCID_BACKUP_KILLS=50 PELLUCID_KILLS_SEED=7 cargo
//! test --release --locked --workspace --test cli backup_kills::sealed_wal -- --exact --nocapture. Campaign:
//! tests/campaigns/backup-kills.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{said, sha256, Place, Said, PELLUCID};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % end.max(1)
    }
}

fn query(place: &Place, name: &str, sql: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", "-batch", name, sql]).succeeded()
}

/// Every row, in order, of a database that SQLite finds whole.
fn rows(place: &Place, name: &str) -> [u8; 32] {
    let said = query(place, name, "SELECT * FROM t ORDER BY a; PRAGMA integrity_check");
    assert!(said.ends_with("\nok\n"), "{name}: {}", &said[said.len().saturating_sub(200)..]);
    sha256(said.as_bytes())
}

fn database(place: &Place, name: &str, kib: u32, sealed: bool, journal: &str) {
    let sql = format!(
        "PRAGMA journal_mode = {journal};
         CREATE TABLE t(a INTEGER PRIMARY KEY, v INTEGER, b BLOB);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {kib})
         INSERT INTO t SELECT i, 0, randomblob(950) FROM n;"
    );
    place.sqlite3(name, &sql).succeeded();
    if sealed {
        place.pellucid(&["encrypt", name]).succeeded();
    }
}

/// Starts a command, kills it after `wait`, and says whether it had ended by itself.
fn killed(place: &Place, words: &[&str], wait: Duration) -> bool {
    let mut command = place.command(PELLUCID);
    command.arg("--quiet").args(words).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(wait);
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let killed = output.status.code().is_none();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(killed || output.status.success(), "{words:?}: {text}");
    !killed
}

/// Files of one media set, and what a backup to it is called.
struct Way {
    /// All files, first copies first.
    files: &'static [&'static str],
    /// Of these, those that are no mirrors.
    first: usize,
    options: &'static [&'static str],
}

const WAYS: [Way; 6] = [
    Way { files: &["new.bak"], first: 1, options: &[] },
    Way { files: &["one.bak"], first: 1, options: &["--append"] },
    Way { files: &["one.bak"], first: 1, options: &["--overwrite"] },
    Way { files: &["a.bak", "b.bak", "c.bak", "d.bak"], first: 2, options: &["--overwrite"] },
    Way {
        files: &["a.bak", "b.bak", "c.bak", "d.bak"],
        first: 2,
        options: &["--append", "--differential"],
    },
    Way { files: &["f.bak"], first: 1, options: &["--format"] },
];

impl Way {
    fn words(&self) -> Vec<&'static str> {
        let mut words = vec!["backup", "app.db", "--to"];
        words.extend(&self.files[..self.first]);
        if self.files.len() > self.first {
            words.push("--mirror");
            words.extend(&self.files[self.first..]);
        }
        words.extend(self.options);
        words
    }

    fn is_new(&self) -> bool {
        self.options.is_empty()
    }
}

/// Whole sets on the media, as `header` lists them; 0 if there are no media.
fn sets(place: &Place, files: &[&str]) -> usize {
    let shown = place.pellucid(&[&["--json", "header"], files].concat());
    shown.stdout.lines().filter(|line| line.contains("\"backup_set\"")).count()
}

fn restored(place: &Place, files: &[&str], position: Option<usize>) -> Said {
    for name in ["back.db", "back.db-wal", "back.db-shm"] {
        let _ = std::fs::remove_file(place.path(name));
    }
    let position = position.map(|position| position.to_string());
    let mut words = [&["restore"], files, &["--to", "back.db"]].concat();
    if let Some(position) = &position {
        words.extend(["--position", position]);
    }
    place.pellucid(&words)
}

/// How long it takes when nobody kills it.
fn length(place: &Place, words: &[&str]) -> Duration {
    let begun = Instant::now();
    place.pellucid(words).succeeded();
    begun.elapsed()
}

struct Kills {
    place: Place,
    random: Random,
    backups_ended: u64,
    sets_stayed: u64,
    restores_ended: u64,
    new_ones: u64,
}

impl Kills {
    fn moment(&mut self, length: Duration) -> Duration {
        Duration::from_micros(self.random.below(length.as_micros() as u64 * 11 / 10))
    }

    /// Changes the database and kills its backup. `good` is the content of the last set on those media.
    fn backup(&mut self, way: &Way, good: &mut [u8; 32], usual: Duration) {
        query(&self.place, "app.db", "UPDATE t SET v = v + 1 WHERE a % 7 < 5");
        let now = rows(&self.place, "app.db");
        let before = if way.is_new() { 0 } else { sets(&self.place, way.files) };
        assert!(way.is_new() || before > 0, "{:?}", way.files);
        let wait = self.moment(usual);
        let ended = killed(&self.place, &way.words(), wait);
        self.backups_ended += u64::from(ended);
        let what = format!("{:?}, killed after {wait:?}", way.words());
        let after = sets(&self.place, way.files);
        if way.is_new() && after == 0 {
            assert!(!ended, "{what}: it said that it had succeeded");
            let refused = restored(&self.place, way.files, None);
            assert!(
                refused.code != 0 && !self.place.path("back.db").exists(),
                "{what}: {refused:?}"
            );
        } else {
            let verified = self.place.pellucid(&[&["verify", "--open"], way.files].concat());
            assert_eq!(verified.code, 0, "{what}: {verified:?}");
            restored(&self.place, way.files, None).succeeded();
            let last = rows(&self.place, "back.db");
            let is_new = last == now;
            assert!(
                is_new || (last == *good && !ended),
                "{what}: neither the old nor the new content"
            );
            self.sets_stayed += u64::from(is_new);
            if way.options.contains(&"--append") {
                assert_eq!(after - before, usize::from(is_new), "{what}: sets");
                restored(&self.place, way.files, Some(before)).succeeded();
                assert_eq!(rows(&self.place, "back.db"), *good, "{what}: the set before");
            }
            *good = last;
        }
        if way.is_new() {
            for name in ["new.bak", "new.bak.pellucid-new"] {
                let _ = std::fs::remove_file(self.place.path(name));
            }
        }
    }

    /// Kills a restore over a database that is there, or to a new one.
    fn restore(&mut self, replace: bool, old: [u8; 32], new: [u8; 32], usual: Duration) {
        let wait = self.moment(usual);
        let words: &[&str] = match replace {
            true => &["restore", "one.bak", "--to", "live.db", "--replace"],
            false => &["restore", "one.bak", "--to", "fresh.db"],
        };
        let ended = killed(&self.place, words, wait);
        self.restores_ended += u64::from(ended);
        let what = format!("{words:?}, killed after {wait:?}");
        let name = if replace { "live.db" } else { "fresh.db" };
        assert!(replace || !ended || self.place.path(name).exists(), "{what}: nothing is there");
        if self.place.path(name).exists() {
            let found = rows(&self.place, name);
            assert!(found == new || (replace && found == old && !ended), "{what}: a mix");
            self.new_ones += u64::from(found == new);
        }
        if replace {
            // The next one is whole, and so is the old one again.
            self.place.pellucid(words).succeeded();
            assert_eq!(rows(&self.place, name), new, "{what}: the next one");
            self.place.pellucid(&["restore", "old.bak", "--to", name, "--replace"]).succeeded();
        } else {
            let _ = std::fs::remove_file(self.place.path(name));
            self.place.pellucid(words).succeeded();
            std::fs::remove_file(self.place.path(name)).unwrap();
        }
    }
}

fn kills(name: &str, sealed: bool, journal: &str) {
    let turns = number("PELLUCID_BACKUP_KILLS").unwrap_or(3);
    let seed = number("PELLUCID_KILLS_SEED").unwrap_or(1);
    println!("{name}: {turns} kills of each, seed {seed}");
    let place = Place::new();
    database(&place, "live.db", 3000, sealed, journal);
    query(&place, "live.db", "UPDATE t SET v = -1");
    let old = rows(&place, "live.db");
    place.pellucid(&["backup", "live.db", "--to", "old.bak"]).succeeded();
    database(&place, "app.db", 4000, sealed, journal);
    let mut good = [rows(&place, "app.db"); WAYS.len()];
    // Each of them once as it is, to know how long it takes; differentials after full ones.
    let usual = WAYS.map(|way| length(&place, &way.words()));
    std::fs::remove_file(place.path("new.bak")).unwrap();
    let fresh = length(&place, &["restore", "one.bak", "--to", "fresh.db"]);
    std::fs::remove_file(place.path("fresh.db")).unwrap();
    let over = length(&place, &["restore", "one.bak", "--to", "live.db", "--replace"]);
    place.pellucid(&["restore", "old.bak", "--to", "live.db", "--replace"]).succeeded();
    let mut kills = Kills {
        place,
        random: Random(seed),
        backups_ended: 0,
        sets_stayed: 0,
        restores_ended: 0,
        new_ones: 0,
    };
    // Not the same ones each time that there are few.
    let begin = kills.random.below(WAYS.len() as u64) as usize;
    for turn in 0..turns as usize {
        let at = (begin + turn) % WAYS.len();
        let mut content = good[at];
        kills.backup(&WAYS[at], &mut content, usual[at]);
        // Ways that share media.
        for (way, good) in WAYS.iter().zip(&mut good) {
            if way.files == WAYS[at].files {
                *good = content;
            }
        }
        kills.restore(
            (begin + turn) % 3 != 0,
            old,
            good[1],
            if turn % 3 != 0 { over } else { fresh },
        );
    }
    // Afterwards all goes on as if nothing had been, and nothing is left but what has a name.
    for way in &WAYS {
        kills.place.pellucid(&way.words()).succeeded();
        for file in way.files {
            let left = kills.place.path(&format!("{file}.pellucid-new"));
            assert!(!left.exists(), "{}", left.display());
        }
    }
    let Kills { backups_ended, sets_stayed, restores_ended, new_ones, .. } = kills;
    println!(
        "RESULT {name} {seed} {turns} {backups_ended} {sets_stayed} {restores_ended} {new_ones}"
    );
}

#[test]
fn sealed_wal() {
    kills("sealed_wal", true, "WAL");
}

#[test]
fn sealed_delete() {
    kills("sealed_delete", true, "DELETE");
}

#[test]
fn plain_wal() {
    kills("plain_wal", false, "WAL");
}

#[test]
fn plain_delete() {
    kills("plain_delete", false, "DELETE");
}

const STRIPES: [&str; 2] = ["media/a.bak", "media/b.bak"];

/// A place with a small sealed database and two sets of it on two stripes; the content of the last set, and of the database.
fn striped() -> (Place, [u8; 32], [u8; 32]) {
    let place = Place::new();
    std::fs::create_dir(place.path("media")).unwrap();
    database(&place, "app.db", 20, true, "DELETE");
    let backup = [&["backup", "app.db", "--to"], &STRIPES[..]].concat();
    place.pellucid(&backup).succeeded();
    place.pellucid(&[&backup[..], &["--append"]].concat()).succeeded();
    let old = rows(&place, "app.db");
    query(&place, "app.db", "UPDATE t SET v = 1");
    let new = rows(&place, "app.db");
    (place, old, new)
}

/// Kills a backup before its `at`th change to the media. Gives its status.
fn killed_at(place: &Place, preload: &Path, how: &str, at: u32) -> i32 {
    let mut command = place.command(PELLUCID);
    command.env("LD_PRELOAD", preload).env("KILL_DIR", place.path("media"));
    command.env("KILL_AT", at.to_string()).args(["--quiet", "backup", "app.db", how, "--to"]);
    // With whole names, because it looks at them.
    let told = said(command.args(STRIPES.map(|name| place.path(name))));
    assert!(told.code == 0 || told.code == 128 + 9, "{how} at {at}: {told:?}");
    told.code
}

#[test]
fn killed_before_any_change_to_its_media_and_then_once_more() {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/killat.c");
    let (model, old, new) = striped();
    let preload = model.compile_library(&tool, "killat.so");
    let content = |place: &Place, what: &str| {
        let back = restored(place, &STRIPES, None);
        assert_eq!(back.code, 0, "{what}: {back:?}");
        let found = rows(place, "back.db");
        assert!(found == old || found == new, "{what}: a mix");
        found == new
    };
    for how in ["--append", "--overwrite", "--format"] {
        let (mut at, mut counts, mut again) = (0, [0, 0], 0);
        loop {
            at += 1;
            let what = format!("{how}, killed at {at}");
            let live = Place::new();
            model.copy_to(&live);
            let code = killed_at(&live, &preload, how, at);
            let is_new = content(&live, &what);
            counts[usize::from(is_new)] += 1;
            assert!(is_new || code != 0, "{what}: it said that it had succeeded");
            // The new set has one of its names, and the other file still lies beside its own.
            let half = is_new && code != 0 && live.path("media/b.bak.pellucid-new").exists();
            for second in 1.. {
                if !half {
                    break;
                }
                let next = Place::new();
                live.copy_to(&next);
                let ended = killed_at(&next, &preload, how, second) == 0;
                let what = format!("{what}, the next one at {second}");
                assert!(content(&next, &what), "{what}: the last good set is gone");
                again += 1;
                if ended {
                    assert!(!next.path("media/b.bak.pellucid-new").exists(), "{what}");
                    break;
                }
            }
            if code == 0 {
                break;
            }
        }
        println!(
            "{how}: {at} calls, {} old, {} new; {again} more of the next",
            counts[0], counts[1]
        );
        assert!(counts[0] > 3 && counts[1] > 0, "{counts:?}");
        assert!(again > 3 || how == "--append", "no kill between two renames");
    }
}

#[test]
fn backups_that_meet_on_the_same_media_give_way_to_each_other() {
    let place = Place::new();
    database(&place, "app.db", 3000, true, "WAL");
    place.pellucid(&["backup", "app.db", "--to", "one.bak"]).succeeded();
    let content = rows(&place, "app.db");
    let (mut gave_way, mut last) = (0, 1);
    for round in 0..80 {
        // On a busy machine the one may be done before the other begins.
        if round >= 8 && gave_way > 0 {
            break;
        }
        let hows = match round % 4 {
            0 => ["--append", "--append"],
            1 => ["--overwrite", "--overwrite"],
            2 => ["--overwrite", "--append"],
            _ => ["--append", "--format"],
        };
        let started = hows.map(|how| {
            let mut command = place.command(PELLUCID);
            command.args(["--quiet", "backup", "app.db", "--to", "one.bak", how]);
            std::thread::sleep(Duration::from_millis(round % 8 * 3));
            (how, command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
        });
        let mut succeeded = Vec::new();
        for (how, child) in started {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() {
                succeeded.push(how);
                continue;
            }
            gave_way += 1;
            assert!(text.contains("another backup"), "round {round}, {how}: {text}");
        }
        assert!(!succeeded.is_empty(), "round {round}: both were refused");
        let verified = place.pellucid(&["verify", "one.bak", "--open"]);
        assert!(
            verified.code == 0 && !verified.stderr.contains("interrupted"),
            "{round}: {verified:?}"
        );
        restored(&place, &["one.bak"], None).succeeded();
        assert_eq!(rows(&place, "back.db"), content);
        let now = sets(&place, &["one.bak"]);
        if hows == ["--append", "--append"] {
            assert_eq!(now, last + succeeded.len(), "round {round}: a set was lost");
        }
        assert!(!place.path("one.bak.pellucid-new").exists(), "round {round}");
        last = now;
    }
    println!("{gave_way} gave way");
    assert!(gave_way > 0, "none met another");
}
