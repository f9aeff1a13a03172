//! Goal: whatever fails under a backup or a restore, the error names it, nothing passes for a set that is none, the last
//! good set is there, and so is the database.
//!
//! Method: real small disks that are full or read-only (tmpfs in namespaces of this user's), disks that break after any number
//! of bytes or syncs (support/disk_full.c), directories that are removed meanwhile.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{said, sha256, Place, Said, PELLUCID};

fn query(place: &Place, name: &str, sql: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", "-batch", name, sql]).succeeded()
}

/// A database of that many KiB that do not compress.
fn database(place: &Place, name: &str, kib: u32, sealed: bool, journal: &str) {
    let sql = format!(
        "PRAGMA journal_mode = {journal}; CREATE TABLE t(a INTEGER PRIMARY KEY, v INTEGER, b BLOB);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {kib})
         INSERT INTO t SELECT i, 0, randomblob(950) FROM n;"
    );
    place.sqlite3(name, &sql).succeeded();
    if sealed {
        place.pellucid(&["encrypt", name]).succeeded();
    }
}

fn rows(place: &Place, name: &str) -> [u8; 32] {
    let said = query(place, name, "SELECT * FROM t ORDER BY a; PRAGMA integrity_check");
    assert!(said.ends_with("\nok\n"), "{name}");
    sha256(said.as_bytes())
}

fn files(place: &Place, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(place.path(directory)).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What the last set on media gives.
fn restored(place: &Place, media: &[&str]) -> [u8; 32] {
    let _ = std::fs::remove_file(place.path("back.db"));
    place.pellucid(&[&["restore"], media, &["--to", "back.db"]].concat()).succeeded();
    rows(place, "back.db")
}

/// `script` where `small` is a disk of 7 MiB of its own: only inside, so that it has to say all. None where this user may
/// not make namespaces.
fn with_small_disk(place: &Place, script: &str) -> Option<Said> {
    let tried = std::process::Command::new("unshare").args(["-rm", "true"]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        println!("not tested: this user may not mount (`unshare -rm` fails)");
        return None;
    }
    std::fs::create_dir_all(place.path("small")).unwrap();
    let whole = format!(
        "mount -t tmpfs -o size=7m,mode=755 tmpfs small
         refused() {{ code=0; \"$P\" --quiet \"$@\" >/dev/null 2>err || code=$?; test $code = 1 || {{ echo \"$*: $code\"; cat err; exit 9; }}; cat err; }}
         made() {{ \"$P\" --quiet \"$@\"; }}
         {script}"
    );
    let mut command = place.command("unshare");
    command.env("P", PELLUCID).args(["-rm", "bash", "-euc", &whole]);
    Some(said(&mut command))
}

#[test]
fn a_full_disk() {
    let place = Place::new();
    database(&place, "app.db", 4000, true, "WAL");
    database(&place, "wide.db", 9000, true, "WAL");
    let before = rows(&place, "app.db");
    let script = "
        refused backup wide.db --to small/x.bak
        made backup app.db --to small/app.bak
        size=$(stat -c %s small/app.bak)
        refused backup app.db --to small/app.bak --append
        test $size = $(stat -c %s small/app.bak) || echo 'the disk stays full'
        refused backup app.db --to small/app.bak --overwrite
        refused backup app.db --to small/app.bak --format
        refused backup wide.db --to small/stripe.bak small/other.bak
        made verify --open small/app.bak
        ls small
        cp small/app.bak first.bak
        # A mirror that is full is given up, whichever it is.
        \"$P\" backup app.db --to one.bak --mirror small/mirror.bak 2>&1 | sed 's/^/mirror: /'
        \"$P\" backup app.db --to small/mirror.bak --mirror two.bak 2>&1 | sed 's/^/first: /'
        ls small";
    let Some(told) = with_small_disk(&place, script) else { return };
    assert_eq!(told.code, 0, "{told:?}");
    let out = told.stdout.as_str();
    let full: Vec<_> = out.lines().filter(|line| line.contains("No space left")).collect();
    let named = ["x.bak", "app.bak", "app.bak", "app.bak", "small/", "mirror.bak", "mirror.bak"];
    assert_eq!(full.len(), named.len(), "{out}");
    for (line, name) in full.iter().zip(named) {
        assert!(line.contains(name), "{name}: {line}");
    }
    assert_eq!(out.matches("this mirror was given up").count(), 2, "{out}");
    assert!(!out.contains("the disk stays full"), "{out}");
    let left: Vec<_> = out
        .lines()
        .filter(|line| line.ends_with(".bak") || line.contains("pellucid-new"))
        .filter(|line| !line.contains(' '))
        .collect();
    assert_eq!(left, ["app.bak", "app.bak"], "{out}");
    let here = files(&place, ".");
    assert!(!here.iter().any(|name| name.contains("-new")), "{here:?}");
    for media in ["first.bak", "one.bak", "two.bak"] {
        place.pellucid(&["verify", "--open", media]).succeeded();
        assert_eq!(restored(&place, &[media]), before, "{media}");
    }
}

#[test]
fn a_restore_to_a_full_disk_and_a_spool_that_has_no_room() {
    let place = Place::new();
    database(&place, "app.db", 4000, true, "WAL");
    database(&place, "slow.db", 9000, true, "DELETE");
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    let before = rows(&place, "app.db");
    let script = "
        cp app.db small/live.db
        refused restore app.bak --to small/x.db
        refused restore app.bak --to small/live.db --replace
        refused backup slow.db --to small/slow.bak
        ls small
        cp small/live.db after.db";
    let Some(told) = with_small_disk(&place, script) else { return };
    assert_eq!(told.code, 0, "{told:?}");
    let errors: Vec<_> = told.stdout.lines().filter(|line| line.contains("error:")).collect();
    assert_eq!(errors.len(), 3, "{told:?}");
    for (line, name) in errors.iter().zip(["x.db", "live.db", "small"]) {
        assert!(
            line.contains(name)
                && (line.contains("space") || line.contains("room") || line.contains("free")),
            "{name}: {line}"
        );
    }
    assert!(told.stdout.ends_with("live.db\n"), "{told:?}");
    assert_eq!(rows(&place, "after.db"), before);
}

#[test]
fn a_disk_that_is_read_only() {
    let place = Place::new();
    database(&place, "app.db", 1500, true, "DELETE");
    let before = rows(&place, "app.db");
    let script = "
        made backup app.db --to small/app.bak
        made restore small/app.bak --to small/live.db
        mount -o remount,ro small
        refused backup app.db --to small/x.bak
        refused backup app.db --to small/app.bak --append
        refused backup app.db --to small/app.bak --overwrite
        refused backup app.db --to one.bak small/stripe.bak --no-spool
        refused restore small/app.bak --to small/x.db
        refused restore small/app.bak --to small/live.db --replace
        made verify --open small/app.bak
        ls small
        cp small/live.db after.db; cp small/app.bak app.bak";
    let Some(told) = with_small_disk(&place, script) else { return };
    assert_eq!(told.code, 0, "{told:?}");
    let errors: Vec<_> = told.stdout.lines().filter(|line| line.contains("error:")).collect();
    let named = ["x.bak", "app.bak", "app.bak", "stripe.bak", "x.db", "live.db"];
    assert_eq!(errors.len(), named.len(), "{told:?}");
    for (line, name) in errors.iter().zip(named) {
        assert!(line.contains(name) && line.contains("Read-only"), "{name}: {line}");
    }
    assert!(told.stdout.ends_with("app.bak\nlive.db\n"), "{told:?}");
    assert_eq!(rows(&place, "after.db"), before);
    assert_eq!(restored(&place, &["app.bak"]), before);
    assert!(!files(&place, ".").iter().any(|name| name.contains("one.bak")));
}

/// A program whose files below `path` fail with `errno` after so many bytes.
struct Broken {
    library: PathBuf,
    path: PathBuf,
    errno: &'static str,
}

impl Broken {
    fn pellucid(&self, place: &Place, room: u64, words: &[&str]) -> Said {
        let mut command = place.command(PELLUCID);
        command.env("LD_PRELOAD", &self.library).env("ROOM_PATH", &self.path);
        command.env("ROOM_ERRNO", self.errno).env("ROOM_BYTES", room.to_string());
        said(command.arg("--quiet").args(words))
    }
}

/// Breaks the second of two stripes after each number of bytes that `rooms` makes of what is stored there.
fn break_a_stripe(kib: u32, rooms: impl Fn(u64) -> Vec<u64>) {
    let place = Place::new();
    database(&place, "app.db", kib, true, "WAL");
    for directory in ["a", "b"] {
        std::fs::create_dir(place.path(directory)).unwrap();
    }
    let files_of = ["a/m.bak", "b/m.bak"];
    let backup = ["backup", "app.db", "--to", files_of[0], files_of[1]];
    place.pellucid(&backup).succeeded();
    let old = rows(&place, "app.db");
    query(&place, "app.db", "UPDATE t SET v = 1");
    let new = rows(&place, "app.db");
    let library = place.compile_preload("disk_full.c");
    let broken = Broken { library, path: place.path("b/"), errno: "5" };
    let first = files_of.map(|name| std::fs::read(place.path(name)).unwrap());
    let rooms = rooms(first[1].len() as u64);
    for (how, is_there) in [("--append", true), ("--overwrite", true), ("", false)] {
        let mut refused = 0;
        for room in &rooms {
            let what = format!("{how}, {room} bytes");
            let words = match is_there {
                true => [&backup[..], &[how]].concat(),
                false => vec!["backup", "app.db", "--to", "a/n.bak", "b/n.bak"],
            };
            let told = broken.pellucid(&place, *room, &words);
            if told.code == 0 {
                for name in ["a/n.bak", "b/n.bak"] {
                    let _ = std::fs::remove_file(place.path(name));
                }
                assert!(!is_there || restored(&place, &files_of) == new, "{what}");
                for (name, bytes) in files_of.iter().zip(&first) {
                    std::fs::write(place.path(name), bytes).unwrap();
                }
                continue;
            }
            refused += 1;
            assert_eq!(told.code, 1, "{what}: {told:?}");
            let named = told.stderr.contains("b/") && told.stderr.contains("Input/output error");
            assert!(named, "{what}: {told:?}");
            for directory in ["a", "b"] {
                assert_eq!(files(&place, directory), ["m.bak"], "{what}: {told:?}");
            }
            place.pellucid(&["verify", files_of[0], files_of[1]]).succeeded();
            let shown = place.pellucid(&["--json", "header", files_of[0], files_of[1]]);
            assert_eq!(shown.stdout.lines().count(), 1, "{what}: something passes for a set");
            assert_eq!(restored(&place, &files_of), old, "{what}");
        }
        println!("{how}: {refused} of {}", rooms.len());
        assert!(refused > 3, "{how}: {refused}");
    }
}

#[test]
fn a_stripes_disk_that_breaks_in_mid_write() {
    break_a_stripe(3000, |_| vec![0, 1, 4096, 5000, 300_000, 1_200_000]);
}

#[test]
fn a_stripes_disk_that_breaks_while_the_set_is_committed() {
    // The manifest is the last 240 bytes; what is appended has no media header.
    break_a_stripe(20, |stored| {
        let ends = [stored - 4096, stored];
        ends.iter().flat_map(|end| (0..8).rev().map(move |less| end - less * 60)).collect()
    });
}

#[test]
fn a_mirror_whose_disk_breaks_is_given_up_and_the_others_are_whole() {
    let place = Place::new();
    database(&place, "app.db", 3000, true, "WAL");
    for directory in ["a", "b"] {
        std::fs::create_dir(place.path(directory)).unwrap();
    }
    let library = place.compile_preload("disk_full.c");
    for (lost, kept) in [("a", "b"), ("b", "a")] {
        let broken =
            Broken { library: library.clone(), path: place.path(lost).join(""), errno: "5" };
        for room in [0u64, 5000, 1_200_000] {
            for directory in ["a", "b"] {
                std::fs::remove_dir_all(place.path(directory)).unwrap();
                std::fs::create_dir(place.path(directory)).unwrap();
            }
            let words = ["backup", "app.db", "--to", "a/m.bak", "--mirror", "b/m.bak"];
            for how in [None, Some("--append"), Some("--overwrite")] {
                if how.is_some() {
                    let _ = std::fs::remove_file(place.path("a/m.bak"));
                    let _ = std::fs::remove_file(place.path("b/m.bak"));
                    place.pellucid(&words).succeeded();
                }
                query(&place, "app.db", "UPDATE t SET v = v + 1");
                let what = format!("{lost} after {room}, {how:?}");
                let told = broken.pellucid(&place, room, &[&words[..], how.as_slice()].concat());
                let at_once = room == 0;
                assert!(told.code == 0 || (at_once && told.code == 1), "{what}: {told:?}");
                assert!(told.stderr.contains(&format!("{lost}/m.bak")), "{what}: {told:?}");
                if told.code == 0 {
                    assert!(told.stderr.contains("this mirror was given up"), "{what}: {told:?}");
                    let media = format!("{kept}/m.bak");
                    assert_eq!(restored(&place, &[&media]), rows(&place, "app.db"), "{what}");
                }
                assert!(!place.path(lost).join("m.bak.pellucid-new").exists(), "{what}");
            }
        }
    }
}

#[test]
fn a_spool_and_a_restore_whose_disk_is_full_in_the_middle() {
    let place = Place::new();
    database(&place, "app.db", 3000, true, "DELETE");
    std::fs::create_dir(place.path("far")).unwrap();
    place.pellucid(&["backup", "app.db", "--to", "far/app.bak"]).succeeded();
    let before = rows(&place, "app.db");
    let library = place.compile_preload("disk_full.c");
    let full = Broken { library, path: place.path("far/"), errno: "28" };
    for room in [0, 10_000, 1_500_000, 2_500_000] {
        let told = full.pellucid(&place, room, &["backup", "app.db", "--to", "far/x.bak"]);
        assert!(told.code == 1 && told.stderr.contains("No space left"), "{room}: {told:?}");
        assert!(told.stderr.contains("far"), "{room}: {told:?}");
        assert_eq!(files(&place, "far"), ["app.bak"], "{room}: {told:?}");
        let told = full.pellucid(&place, room, &["restore", "far/app.bak", "--to", "far/x.db"]);
        assert!(told.code == 1 && told.stderr.contains("No space left"), "{room}: {told:?}");
        assert!(told.stderr.contains("far/x.db"), "{room}: {told:?}");
        assert_eq!(files(&place, "far"), ["app.bak"], "{room}: {told:?}");
        // Nobody is kept from writing.
        query(&place, "app.db", "UPDATE t SET v = v WHERE a = 1");
    }
    assert_eq!(restored(&place, &["far/app.bak"]), before);
}

#[test]
fn a_database_under_restore_when_its_disk_breaks() {
    let place = Place::new();
    std::fs::create_dir(place.path("far")).unwrap();
    database(&place, "far/live.db", 2000, true, "DELETE");
    place.pellucid(&["backup", "far/live.db", "--to", "new.bak"]).succeeded();
    let new = rows(&place, "far/live.db");
    query(&place, "far/live.db", "UPDATE t SET v = -1");
    let old = rows(&place, "far/live.db");
    let whole = std::fs::read(place.path("far/live.db")).unwrap();
    let library = place.compile_preload("disk_full.c");
    let broken = Broken { library, path: place.path("far/"), errno: "5" };
    let words = ["restore", "new.bak", "--to", "far/live.db", "--replace"];
    let all = whole.len() as u64;
    let rooms =
        [0, 20_000, all / 2, all - 100, all + 100, all + 5000, all + all / 2, 2 * all - 5000];
    let (mut olds, mut news) = (0, 0);
    for room in rooms {
        for name in files(&place, "far") {
            std::fs::remove_file(place.path("far").join(name)).unwrap();
        }
        std::fs::write(place.path("far/live.db"), &whole).unwrap();
        // The one that the round before has replaced.
        place.pellucid(&["accept", "far/live.db"]).succeeded();
        let told = broken.pellucid(&place, room, &words);
        assert!(told.code == 1 || told.code == 0, "{room}: {told:?}");
        assert!(told.code == 0 || told.stderr.contains("far/live.db"), "{room}: {told:?}");
        let found = rows(&place, "far/live.db");
        assert!(found == old || found == new, "{room}: a mix: {told:?}");
        assert!(found == new || told.code != 0, "{room}: {told:?}");
        olds += u32::from(found == old);
        news += u32::from(found == new);
        place.pellucid(&words).succeeded();
        assert_eq!(rows(&place, "far/live.db"), new, "{room}: the next one");
    }
    assert!(olds > 2 && news > 1, "{olds} old, {news} new");
}

#[test]
fn a_directory_that_is_removed_during_a_backup() {
    let place = Place::new();
    database(&place, "app.db", 9000, true, "WAL");
    place.pellucid(&["backup", "app.db", "--to", "good.bak"]).succeeded();
    let before = rows(&place, "app.db");
    for targets in [&["gone/x.bak"][..], &["x.bak", "gone/y.bak"], &["gone/y.bak", "x.bak"]] {
        let mut hit = false;
        for _ in 0..200 {
            std::fs::create_dir_all(place.path("gone")).unwrap();
            // A round before that came too late left it.
            let _ = std::fs::remove_file(place.path("x.bak"));
            let mut command = place.command(PELLUCID);
            command.args(["--quiet", "backup", "app.db", "--compression", "zstd:9", "--to"]);
            let child = command.args(targets).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
            let mut child = child.unwrap();
            let last = place.path(&format!("{}.pellucid-new", targets[targets.len() - 1]));
            let begun = Instant::now();
            while !last.exists() && child.try_wait().unwrap().is_none() {
                assert!(begun.elapsed() < Duration::from_secs(120), "it hangs");
                std::thread::sleep(Duration::from_micros(200));
            }
            std::fs::remove_dir_all(place.path("gone")).unwrap();
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            hit = output.status.code() == Some(1);
            if hit {
                assert!(text.contains("gone/") && text.contains("No such file"), "{text}");
                assert!(!files(&place, ".").iter().any(|name| name.starts_with("x.bak")), "{text}");
                break;
            }
        }
        assert!(hit, "the directory was never removed in time");
    }
    assert_eq!(restored(&place, &["good.bak"]), before);
}
