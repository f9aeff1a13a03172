//! Openers of every kind at once, drawn by a seed: what they may see is known, and so is what has to be there at the end.
//!
//! A value is acknowledged once its INSERT has returned, open where that failed, and forbidden where the shim refused it in
//! words before anything was sealed. Whoever reads has to see each acknowledged value, none that is forbidden, or be refused.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use pellucid::memory_index::{record, RECORD_AT};
use pellucid_tests::processes::Random;

use crate::child::Child;
use crate::namespaces::{child_of, shared, ACCOUNTS, GROUP};
use crate::{Bench, ELSEWHERE, UNUSABLE};

/// What an opener is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ordinary,
    /// In mount and IPC namespaces of its own, with the machine's `/dev/shm`.
    Namespaces,
    Private,
    Full,
    ReadOnly,
    Missing,
    /// Under another root directory, with the machine's `/dev/shm` in it.
    Chroot,
    /// The file alone, mounted elsewhere. Its log has another name, too: where such an opener comes first, what others left in
    /// theirs is not seen. So it only reads, and may miss what was committed, as with plain SQLite.
    Mounted,
    FirstAccount,
    SecondAccount,
}

const KINDS: [Kind; 10] = [
    Kind::Ordinary,
    Kind::Namespaces,
    Kind::Private,
    Kind::Full,
    Kind::ReadOnly,
    Kind::Missing,
    Kind::Chroot,
    Kind::Mounted,
    Kind::FirstAccount,
    Kind::SecondAccount,
];

struct Opener {
    kind: Kind,
    child: Child,
    path: PathBuf,
}

impl Opener {
    fn start(bench: &Bench, kind: Kind, number: usize) -> Option<Self> {
        let apart = ["unshare", "--mount", "--propagation", "private"];
        let directory = bench.directory.path().display();
        let path = bench.database();
        let group = GROUP.to_string();
        let under = |before: &str| Child::try_under(&apart, before);
        let (child, path) = match kind {
            Kind::Ordinary => (Some(Child::start()), path),
            Kind::Namespaces => (Child::try_under(&["unshare", "--mount", "--ipc"], ""), path),
            Kind::Private => (under("mount -t tmpfs none /dev/shm"), path),
            Kind::Full => (under("mount -t tmpfs -o size=64k none /dev/shm"), path),
            Kind::ReadOnly => (under("mount -t tmpfs -o ro none /dev/shm"), path),
            Kind::Missing => (
                under("mount --bind /var/empty /dev/shm 2>/dev/null || mount --bind /mnt /dev/shm"),
                path,
            ),
            Kind::Chroot => {
                let own = bench.homes.path().join(format!("root-{number}"));
                std::fs::create_dir(&own).unwrap();
                let before = format!("mount --rbind / '{0}'; cd '{0}'", own.display());
                let script = under(&format!("{before}; CHROOT='{}'", own.display()));
                (script, path)
            }
            Kind::Mounted => {
                let place = bench.path(&format!("in-{number}"));
                std::fs::create_dir(&place).unwrap();
                std::fs::write(place.join("a.db"), "").unwrap();
                let before = format!("mount --bind '{directory}/a.db' '{}/a.db'", place.display());
                (under(&before), place.join("a.db"))
            }
            Kind::FirstAccount => (child_of(ACCOUNTS[0], &group, bench), path),
            Kind::SecondAccount => (child_of(ACCOUNTS[1], &group, bench), path),
        };
        let mut child = child?;
        // A folder to which others may write, or a name too many, can be refused by itself.
        let _ = child.open(&path);
        Some(Self { kind, child, path })
    }
}

/// What is known of the values.
#[derive(Default)]
struct Values {
    acknowledged: BTreeSet<i64>,
    open: BTreeSet<i64>,
    next: i64,
}

impl Values {
    #[track_caller]
    fn check(&self, seen: &str, has_log: bool, what: &str) {
        let seen: BTreeSet<i64> =
            seen.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let lost: Vec<_> = self.acknowledged.difference(&seen).collect();
        assert!(lost.is_empty() || !has_log, "{what}: lost {lost:?}");
        let strange: Vec<_> = seen
            .iter()
            .filter(|value| !self.acknowledged.contains(value) && !self.open.contains(value))
            .collect();
        assert!(strange.is_empty(), "{what}: of nobody {strange:?}");
    }
}

/// Counts of a run.
#[derive(Debug, Default)]
pub struct Counts {
    pub openings: u64,
    pub commits: u64,
    pub reads: u64,
    pub refused: u64,
    pub kills: u64,
    pub swaps: u64,
}

fn is_refusal(told: &str) -> bool {
    told.contains(ELSEWHERE) || told.contains(UNUSABLE)
}

/// One case. `None` if this machine does not allow it.
pub fn case(seed: u64, counts: &mut Counts) -> Option<()> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let bench = shared(0o660)?;
    let mut values = Values { next: 2, ..Values::default() };
    values.acknowledged.insert(1);
    let mut openers: Vec<Opener> = Vec::new();
    let mut token = None;
    let steps = 40 + random.below(60u64);
    for step in 0..steps {
        let what = format!("seed {seed}, step {step}");
        if openers.is_empty() || (openers.len() < 5 && random.below(6u64) == 0) {
            let kind = KINDS[random.below(KINDS.len())];
            let number = step as usize;
            openers.extend(Opener::start(&bench, kind, number));
            counts.openings += 1;
            continue;
        }
        let at = random.below(openers.len());
        let opener = &mut openers[at];
        let what = format!("{what}, {:?}", opener.kind);
        let does = match opener.kind {
            Kind::Mounted => [0, 2, 12][random.below(3usize)],
            _ => random.below(20u64),
        };
        match does {
            0 => {
                openers.swap_remove(at).child.kill();
                counts.kills += 1;
            }
            1 => {
                for opener in openers.drain(..) {
                    opener.child.kill();
                    counts.kills += 1;
                }
            }
            2 => {
                let _ = opener.child.tell("close");
                let _ = opener.child.open(&opener.path.clone());
            }
            3 => {
                // With whatever answer: refused, busy or done.
                let how = ["PASSIVE", "RESTART", "TRUNCATE"][random.below(3usize)];
                let _ = opener.child.sql(&format!("PRAGMA wal_checkpoint({how})"));
            }
            4 => {
                // Exchanged by whoever can write the storage, and put back some steps later.
                let index = std::fs::OpenOptions::new().write(true).open(bench.path("a.db-shm"));
                let Ok(index) = index else { continue };
                match token.take().or_else(|| bench.token()) {
                    Some(right) if random.below(2u64) == 0 => {
                        index.write_all_at(&record(&right), RECORD_AT).unwrap();
                    }
                    Some(right) => {
                        token = Some(right);
                        index.write_all_at(&record(&[9; 16]), RECORD_AT).unwrap();
                        counts.swaps += 1;
                    }
                    None => {}
                }
            }
            5..=11 => {
                let value = values.next;
                values.next += 1;
                match opener.child.sql(&format!("INSERT INTO t VALUES({value})")) {
                    Ok(_) => {
                        values.acknowledged.insert(value);
                        counts.commits += 1;
                    }
                    Err(told) if is_refusal(&told) && !told.contains("No space left") => {
                        counts.refused += 1;
                    }
                    Err(_) => {
                        values.open.insert(value);
                    }
                }
            }
            _ => match opener.child.sql("SELECT x FROM t") {
                Ok(seen) => {
                    values.check(&seen, opener.kind != Kind::Mounted, &what);
                    counts.reads += 1;
                }
                Err(told) if is_refusal(&told) => counts.refused += 1,
                Err(_) => {}
            },
        }
    }
    drop(openers);
    let mut last = Child::start();
    let what = format!("seed {seed}, at the end");
    last.open(&bench.database()).unwrap();
    let seen = last.sql("SELECT x FROM t").unwrap_or_else(|told| panic!("{what}: {told}"));
    values.check(&seen, true, &what);
    assert_eq!(last.sql("PRAGMA integrity_check").unwrap(), "ok", "{what}");
    last.tell("close").unwrap();
    assert!(!bench.object().exists(), "{what}: an object is left");
    Some(())
}

/// CI: a few cases. tests/campaigns/memory-index sets seed and number.
#[test]
fn drawn_openers_lose_nothing_and_see_nothing_wrong() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |n| n.parse().unwrap());
    let (first, cases) = (number("PELLUCID_INDEX_SEED", 1), number("PELLUCID_INDEX_CASES", 8));
    let mut counts = Counts::default();
    for seed in first..first + cases {
        if case(seed, &mut counts).is_none() {
            return println!("SKIP: namespaces or accounts are missing");
        }
    }
    println!("{counts:?}");
    println!(
        "RESULT {} {} {} {} {} {}",
        counts.openings, counts.commits, counts.reads, counts.refused, counts.kills, counts.swaps
    );
}

/// Writers at once, killed one by one and all together: each has what it was told is committed, and so has the end.
#[test]
fn writers_at_once_that_are_killed_lose_nothing() {
    const WRITERS: usize = 6;
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |n| n.parse().unwrap());
    let seconds = number("PELLUCID_INDEX_SECONDS", 5);
    let mut random = Random(number("PELLUCID_INDEX_SEED", 1));
    let bench = Bench::new();
    let mut next = 0;
    let mut start = |bench: &Bench| {
        let mut child = Child::start();
        child.open(&bench.database()).unwrap();
        next += 1_000_000;
        child.soak(next)
    };
    let mut writers: Vec<_> = (0..WRITERS).map(|_| start(&bench)).collect();
    let mut said: Vec<Vec<String>> = Vec::new();
    let mut kills = 0;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    while std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(50 + random.below(300u64)));
        let how_many = if random.below(5u64) == 0 { WRITERS } else { 1 };
        let ended: Vec<_> =
            (0..how_many).map(|_| writers.swap_remove(random.below(writers.len()))).collect();
        for (id, _) in &ended {
            // SAFETY: a process that this test has started and not yet waited for.
            unsafe { libc::kill(*id as libc::pid_t, libc::SIGKILL) };
        }
        said.extend(ended.into_iter().map(|(_, reader)| reader.join().unwrap()));
        kills += how_many;
        writers.extend((0..how_many).map(|_| start(&bench)));
    }
    for (id, reader) in writers {
        // SAFETY: as above.
        unsafe { libc::kill(id as libc::pid_t, libc::SIGKILL) };
        said.push(reader.join().unwrap());
    }
    let mut values = Values::default();
    values.acknowledged.insert(1);
    for line in said.iter().flatten() {
        match line.split_once(' ') {
            Some(("ack", value)) => drop(values.acknowledged.insert(value.parse().unwrap())),
            // The last line of one that was killed may have been cut.
            Some(("begins", value)) => drop(values.open.insert(value.parse().unwrap())),
            Some(("lost" | "failed", _)) => panic!("{line}"),
            _ => {}
        }
    }
    let mut last = Child::start();
    last.open(&bench.database()).unwrap();
    values.check(&last.sql("SELECT x FROM t").unwrap(), true, "at the end");
    assert_eq!(last.sql("PRAGMA integrity_check").unwrap(), "ok");
    last.tell("close").unwrap();
    assert!(!bench.object().exists());
    let commits = values.acknowledged.len();
    println!("RESULT {} {commits} 1 0 {} 0", said.len(), kills + WRITERS);
    assert!(commits > 100 && kills > 3, "{commits} commits and {kills} kills show nothing");
}
