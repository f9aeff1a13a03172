//! The tail of the log once the database file is gone: every commit that was acknowledged is in it, and nothing that was changed is
//! believed.

use std::path::PathBuf;
use std::time::Duration;

use pellucid::header::RecoveryModel;
use pellucid_backup::job::{back_up, restore, Done, Job, LogJob, Point};
use pellucid_engine::log_chain;
use pellucid_engine::scan::{self, Options};
use pellucid_files::paths::beside;
use pellucid_tests::processes::Random;
use pellucid_vfs::log_archive::path_of;

use super::points::{files, full, log, restoring};
use super::{write, Acknowledged, Bench, Writers};

fn tail(bench: &Bench, name: &str, go_on: bool) -> Result<(PathBuf, Done), String> {
    let path = bench.path(name);
    let job = Job::new(bench.database(), files(path.clone()));
    let job = Job {
        log: Some(LogJob { no_truncate: true, ..LogJob::default() }),
        continue_after_error: go_on,
        timeout: Duration::from_secs(60),
        ..job
    };
    let done = back_up(&job, &mut |_| ()).map_err(|error| error.to_string())?;
    Ok((path, done))
}

/// The counter and the sum of what the media lead to.
fn counted(bench: &Bench, media: &[PathBuf]) -> (i64, i64) {
    let to = bench.path("restored.db");
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(&to, end));
    }
    restore(&restoring(media, Point::Last, to.clone()), &mut |_, _| ()).unwrap();
    let uri = format!("file:{}?vfs=pellucid", to.display());
    let connection = pellucid_tests::content::open(&uri).unwrap();
    let one = |sql: &str| connection.query_row(sql, [], |row| row.get(0)).unwrap();
    let whole: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    (one("SELECT n FROM counter"), one("SELECT coalesce(sum(v), 0) FROM t"))
}

/// Removes the database file, and what a reboot removes.
fn lose(bench: &Bench) {
    std::fs::remove_file(bench.database()).unwrap();
    let _ = std::fs::remove_file(beside(&bench.database(), "-shm"));
}

fn begin(page_bytes: usize) -> (Bench, Vec<PathBuf>) {
    let bench = Bench::new(page_bytes);
    log_chain::set_model(&bench.database(), RecoveryModel::Full).unwrap();
    let media = vec![full(&bench, "full.bak")];
    (bench, media)
}

/// Counts `count` commits, and leaves the log as a killed program leaves it.
fn commit_and_die(bench: &Bench, count: usize) {
    let connection = bench.open();
    connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
    write(&connection, count);
    let ends = ["-wal", "-shm"].map(|end| beside(&bench.database(), end));
    let [log, _] = &ends;
    let left = std::fs::read(log).unwrap();
    let file = std::fs::read(bench.database()).unwrap();
    let archive = path_of(&bench.database());
    let aside = bench.path("aside");
    let _ = std::fs::remove_dir_all(&aside);
    std::fs::create_dir(&aside).unwrap();
    for name in std::fs::read_dir(&archive).unwrap().map(|name| name.unwrap().path()) {
        std::fs::copy(&name, aside.join(name.file_name().unwrap())).unwrap();
    }
    drop(connection);
    std::fs::write(log, left).unwrap();
    std::fs::write(bench.database(), file).unwrap();
    std::fs::remove_dir_all(&archive).unwrap();
    std::fs::rename(&aside, &archive).unwrap();
}

#[test]
fn a_tail_has_every_commit_of_killed_writers_once_the_database_file_is_gone() {
    for (page_bytes, mode) in [(4096, "wal"), (512, "wal"), (4096, "exclusive")] {
        let mut random = Random(11 + page_bytes as u64);
        let (bench, mut media) = begin(page_bytes);
        let mut writers =
            Writers { database: bench.database(), mode, children: Vec::new(), started: 0 };
        let mut acknowledged = Acknowledged::new();
        let most = if mode == "exclusive" { 1 } else { 3usize };
        for round in 0..12 {
            while writers.children.len() < most {
                writers.start(&mut random);
            }
            std::thread::sleep(Duration::from_millis(60 + random.below(150u64)));
            writers.collect(&mut acknowledged);
            if mode == "wal" && round == 6 {
                while !writers.children.is_empty() {
                    writers.end(0, &mut acknowledged);
                }
                scan::rekey(&bench.database(), None).unwrap();
            }
            if !writers.children.is_empty() {
                writers.end(random.below(writers.children.len()), &mut acknowledged);
            }
            if round % 4 == 3 {
                while mode == "exclusive" && !writers.children.is_empty() {
                    writers.end(0, &mut acknowledged);
                }
                media.push(log(&bench, &format!("log-{round}.bak")));
            }
        }
        writers.start(&mut random);
        std::thread::sleep(Duration::from_millis(300));
        while !writers.children.is_empty() {
            writers.end(0, &mut acknowledged);
        }
        lose(&bench);
        let (path, done) = tail(&bench, "tail.bak", false).unwrap();
        assert!(done.told[0].contains("without the database file"), "{:?}", done.told);
        media.push(path);
        let (n, sum) = counted(&bench, &media);
        let (last, of_last) = acknowledged.iter().next_back().unwrap();
        assert!(n >= *last, "{n} commits, and {last} were acknowledged ({mode}, {page_bytes})");
        if n == *last {
            assert_eq!(sum, *of_last);
        }
        assert!(acknowledged.len() > 20, "{} commits show nothing", acknowledged.len());
        // Nothing was taken: the same once more.
        let (again, _) = tail(&bench, "again.bak", false).unwrap();
        *media.last_mut().unwrap() = again;
        assert_eq!(counted(&bench, &media), (n, sum));
    }
}

#[test]
fn a_tail_of_a_whole_database_leaves_the_log_and_of_a_damaged_one_does_not_need_it() {
    let (bench, mut media) = begin(4096);
    write(&bench.open(), 7);
    let (path, done) = tail(&bench, "tail.bak", false).unwrap();
    assert!(done.told.is_empty() && done.header.copy_only, "{:?}", done.told);
    media.push(path);
    assert_eq!(counted(&bench, &media).0, 7);
    media.pop();
    commit_and_die(&bench, 5);
    let whole = std::fs::read(bench.database()).unwrap();
    // Each header copy, sector 0, page 1, and a file that is none.
    for (from, to) in [(2048, 16384), (0, 2048), (0, whole.len()), (0, 512)] {
        let mut damaged = whole.clone();
        damaged[from..to].fill(0x5a);
        std::fs::write(bench.database(), &damaged).unwrap();
        let _ = std::fs::remove_file(bench.path("tail.bak"));
        let (path, _) = tail(&bench, "tail.bak", false).unwrap();
        let media = [media[0].clone(), path];
        assert_eq!(counted(&bench, &media).0, 12, "{from} to {to}");
    }
}

#[test]
fn what_was_changed_for_a_tail_is_told() {
    let (bench, media) = begin(512);
    write(&bench.open(), 3);
    commit_and_die(&bench, 6);
    lose(&bench);
    let archive = path_of(&bench.database());
    let kept: Vec<_> =
        std::fs::read_dir(&archive).unwrap().map(|name| name.unwrap().path()).collect();
    let segment = kept.iter().find(|path| path.extension().is_some_and(|end| end == "frames"));
    let log = beside(&bench.database(), "-wal");
    let frames = (std::fs::metadata(&log).unwrap().len() as usize - 32) / 536;
    // The last transaction's frames look as those of one that was not finished.
    let ends = |frame: usize, bytes: &[u8]| bytes[32 + frame * 536 + 4..][..4] != [0; 4];
    let bytes = std::fs::read(&log).unwrap();
    let commits: Vec<usize> = (0..frames).filter(|frame| ends(*frame, &bytes)).collect();
    let before_last = 32 + 536 * (commits[commits.len() - 2] + 1);
    let header = archive.join("header");
    let state = std::fs::read(archive.join("state")).unwrap();
    let flip = |path: &PathBuf, bytes: std::ops::Range<usize>, step: usize| {
        let whole = std::fs::read(path).unwrap();
        for bit in (bytes.start * 8..bytes.end * 8).step_by(step) {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(path, &flipped).unwrap();
            let told = tail(&bench, "tail.bak", false);
            assert!(told.is_err(), "bit {bit} of `{}`", path.display());
        }
        std::fs::write(path, &whole).unwrap();
    };
    flip(&header, 0..7168, 13 * 8 + 1);
    flip(&log, 0..before_last, 211);
    assert!(std::fs::read(archive.join("state")).unwrap() == state, "nothing was noted");
    // With what is lost left out by word, the tail ends before it.
    let mut flipped = bytes.clone();
    flipped[32 + 536 * (commits[1] + 1) + 100] ^= 1;
    std::fs::write(&log, &flipped).unwrap();
    let (path, done) = tail(&bench, "tail.bak", true).unwrap();
    assert!(done.told[1].contains("ends before damage"), "{:?}", done.told);
    let log_facts = done.header.version2.unwrap().log.unwrap();
    assert!(log_facts.gap && log_facts.commits == 5);
    assert_eq!(counted(&bench, &[media[0].clone(), path.clone()]).0, 5);
    std::fs::remove_file(path).unwrap();
    flip(segment.unwrap(), 0..512 + 2 * 536, 67);
}

#[test]
fn a_header_copy_of_another_database_chain_or_key_is_refused_by_name() {
    let (bench, media) = begin(4096);
    let archive = path_of(&bench.database());
    let copy = archive.join("header");
    let first = std::fs::read(&copy).unwrap();
    write(&bench.open(), 2);
    scan::rekey(&bench.database(), None).unwrap();
    write(&bench.open(), 2);
    let amid = std::fs::read(&copy).unwrap();
    assert_ne!(first, amid, "it is written before the header");
    scan::run(&bench.database(), &Options::default(), &mut |_, _, _| ()).unwrap();
    let now = std::fs::read(&copy).unwrap();
    commit_and_die(&bench, 2);
    lose(&bench);
    let (other, _) = begin(4096);
    let others = std::fs::read(path_of(&other.database()).join("header")).unwrap();
    let told = |bytes: &[u8]| {
        std::fs::write(&copy, bytes).unwrap();
        tail(&bench, "tail.bak", false).unwrap_err()
    };
    let of_another = told(&others);
    assert!(of_another.contains("authentication tag"), "{of_another}");
    // The key of before the rekey opens neither the state nor what was written since.
    let older = told(&first);
    assert!(older.contains("authentication tag"), "{older}");
    let short = told(&now[..7000]);
    assert!(short.contains("not as long as a header copy"), "{short}");
    std::fs::remove_file(&copy).unwrap();
    let none = tail(&bench, "tail.bak", false).unwrap_err();
    assert!(none.contains("No such file"), "{none}");
    std::fs::write(&copy, &now).unwrap();
    let (path, _) = tail(&bench, "tail.bak", false).unwrap();
    assert_eq!(counted(&bench, &[media[0].clone(), path]).0, 6);
}

#[test]
fn a_log_that_is_gone_or_of_another_run_is_no_whole_tail() {
    let (bench, media) = begin(4096);
    commit_and_die(&bench, 3);
    let log_path = beside(&bench.database(), "-wal");
    let backed_up = super::points::log(&bench, "log.bak");
    commit_and_die(&bench, 2);
    lose(&bench);
    let bytes = std::fs::read(&log_path).unwrap();
    let salts = |bytes: &mut Vec<u8>| bytes[16] ^= 1;
    let mut other = bytes.clone();
    salts(&mut other);
    std::fs::write(&log_path, &other).unwrap();
    assert!(tail(&bench, "tail.bak", false).unwrap_err().contains("header"));
    // What was backed up is no loss; what came behind was in the log alone, and nobody had handed it out.
    std::fs::remove_file(&log_path).unwrap();
    let (path, _) = tail(&bench, "tail.bak", false).unwrap();
    assert_eq!(counted(&bench, &[media[0].clone(), backed_up, path]).0, 3);
    // Once a tail has them, the archive does.
    std::fs::write(&log_path, &bytes).unwrap();
    tail(&bench, "second.bak", false).unwrap();
    std::fs::remove_file(&log_path).unwrap();
    let (path, _) = tail(&bench, "third.bak", false).unwrap();
    assert_eq!(counted(&bench, &[media[0].clone(), bench.path("log.bak"), path]).0, 5);
}

#[test]
fn no_key_is_changed_past_the_copy_of_the_header_and_the_next_backup_mends_it() {
    let (bench, _) = begin(4096);
    write(&bench.open(), 2);
    let (archive, copy) = (path_of(&bench.database()), path_of(&bench.database()).join("header"));
    let present = || std::fs::read(bench.database()).unwrap()[2048..2048 + 7168].to_vec();
    assert!(std::fs::read(&copy).unwrap() == present());
    let (before, aside) = (present(), bench.path("aside"));
    std::fs::rename(&archive, &aside).unwrap();
    assert!(scan::rekey(&bench.database(), None).is_err());
    assert!(present() == before, "the header is as it was");
    std::fs::rename(&aside, &archive).unwrap();
    for (round, wrong) in [&before[..7000], &[7; 7168][..]].into_iter().enumerate() {
        std::fs::write(&copy, wrong).unwrap();
        write(&bench.open(), 1);
        match round {
            0 => drop(full(&bench, "again.bak")),
            _ => drop(log(&bench, "log.bak")),
        }
        assert!(std::fs::read(&copy).unwrap() == present());
    }
    scan::rekey(&bench.database(), None).unwrap();
    assert!(std::fs::read(&copy).unwrap() == present() && present() != before);
}
