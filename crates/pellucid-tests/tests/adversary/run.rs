//! Runs cases by number, and counts what came of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use pellucid_tests::processes::number;
use pellucid_tests::random::Random;
use pellucid_vfs::lost_log;

use crate::act::{self, Action};
use crate::exchange::{self, Exchange};
use crate::index;
use crate::media;
use crate::oracle::{self, Class};
use crate::programs;
use crate::verdict::compare;
use crate::world::World;

/// What is exchanged, each with its weight.
const KINDS: [(usize, &str); 3] = [(84, "files"), (14, "media"), (2, "index")];
/// One case of so many is run by the programs.
const PROGRAMS: u64 = 50;

/// Runs `count` cases of `seed` from number `first` on.
pub fn run(seed: u64, first: u64, count: u64) {
    println!("seed {seed}, cases {first} to {}", first + count);
    let begun = Instant::now();
    let mut world = World::new();
    println!("a history in {:.1} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let mut counts: BTreeMap<Class, u64> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, BTreeMap<Class, u64>> = BTreeMap::new();
    // More are of the same causes.
    let shown = number("PELLUCID_ADVERSARY_SHOWN", 20);
    let mut failures = Vec::new();
    for case in first..first + count {
        match try_case(&mut world, seed, case) {
            Ok((kind, class)) => {
                *counts.entry(class).or_default() += 1;
                *kinds.entry(kind).or_default().entry(class).or_default() += 1;
            }
            Err(failure) => {
                println!("case {case}: {failure}");
                failures.push(case);
            }
        }
        if failures.len() >= shown {
            break;
        }
    }
    let took = begun.elapsed();
    println!("{:.1} s, {:?} each", took.as_secs_f64(), took / count.max(1) as u32);
    let each = |counts: &BTreeMap<Class, u64>| {
        Class::ALL.map(|class| counts.get(&class).copied().unwrap_or(0).to_string())
    };
    println!("{}", Class::ALL.map(Class::name).join(", "));
    for (kind, counts) in &kinds {
        println!("HITS\t{kind}\t{}", each(counts).join("\t"));
    }
    println!("RESULT {count} {}", each(&counts).join(" "));
    assert!(
        failures.is_empty(),
        "cases outside their class: {failures:?}; PELLUCID_ADVERSARY_SEED={seed} \
         PELLUCID_ADVERSARY_FIRST=N PELLUCID_ADVERSARY_CASES=1 runs one of them"
    );
}

/// Tries a case: what was exchanged, and its class.
fn try_case(world: &mut World, seed: u64, case: u64) -> Result<(&'static str, Class), String> {
    // Each case has numbers of its own, so that it runs alone as it runs among others.
    let mut random =
        Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ case.wrapping_mul(0x9e37_79b9));
    random.draw();
    world.put_back();
    world.use_home(false);
    let by_programs = case % number("PELLUCID_ADVERSARY_PROGRAMS", PROGRAMS) == 0;
    // The first cases have one of each kind.
    let kind = match usize::try_from(case).unwrap_or(usize::MAX) {
        first if first < exchange::KINDS.len() => "files",
        first => match first - exchange::KINDS.len() {
            0..3 => "media",
            3..6 => "index",
            _ => random.weighted(&KINDS),
        },
    };
    match kind {
        "files" => {}
        "media" => return try_media(world, &mut random, by_programs).map(|class| (kind, class)),
        _ => return index::try_case(world, &mut random).map(|()| (kind, Class::Refused)),
    }
    let exchange = exchange::draw(world, &mut random, usize::try_from(case).unwrap_or(usize::MAX));
    let mut action = random.weighted(&Action::WEIGHTS);
    if exchange.is_fresh || exchange.put.is_link || exchange.put.copy.is_some() {
        // What an idle connection has open is the file itself.
        action = if action == Action::Idle { Action::Write } else { action };
    }
    let is_strict = random.chance(15);
    world.use_home(is_strict);
    let verdict = oracle::judge(world, &exchange, is_strict);
    let secret = format!("SECRET-{case}-");
    let path = world.path(exchange.file());
    let events = world.events();
    let outcome = match action {
        _ if by_programs => {
            put(world, &exchange);
            let looked = programs::status(&path, &verdict);
            looked.map_err(|said| {
                let Exchange { kind, said: done, .. } = &exchange;
                format!("{said}\n  {}: {kind}, {done:?}; {}", exchange.file(), verdict.why)
            })?;
            programs::act(world, &path, action, &secret)
        }
        Action::Idle => {
            let mut idle = act::Idle::new(&path);
            put_within(world, &exchange);
            // A look at the file's length serves a reader of the log for 1 ms (docs/design/crash.md, "Locks").
            std::thread::sleep(std::time::Duration::from_millis(2));
            idle.go_on(&secret)
        }
        _ => {
            put(world, &exchange);
            act::act(world, &path, action, &secret)
        }
    };
    let described = |problem: String| {
        format!(
            "{problem}\n  {}: {}, {:?}; {action:?}\n  expected {:?} ({}), {:?}\n  came {:?}, {} lines, {:?}, {:?}",
            exchange.file(),
            exchange.kind,
            exchange.said,
            verdict.class,
            verdict.why,
            verdict.content,
            outcome.error,
            outcome.lines.len(),
            outcome.notices,
            outcome.damage,
        )
    };
    compare(world, exchange.target, &verdict, action, (&outcome, &secret)).map_err(described)?;
    let clear = act::in_clear(world, &secret);
    if !clear.is_empty() {
        return Err(described(format!("what was written lies in clear in {clear:?}")));
    }
    if verdict.class == Class::Told && world.events() == events && action != Action::Idle {
        return Err(described("another database is there, and no event says so".to_owned()));
    }
    if let (Some(end), false) = (verdict.kept, verdict.may_fail || action == Action::Idle) {
        let kept = fs::metadata(format!("{}{end}", path.display()));
        if verdict.class == Class::Lost && !kept.is_ok_and(|about| about.len() > 0) {
            return Err(described(format!("commits of the log are lost and not kept as `{end}`")));
        }
    }
    let is_healthy = !matches!(verdict.class, Class::Refused | Class::Lost) && !verdict.may_fail;
    if is_healthy && !lost_log::kept(&path).is_empty() {
        return Err(described("a log that lost nothing was kept as a damaged one".to_owned()));
    }
    if verdict.is_left && verdict.class == Class::Refused && action != Action::Idle {
        let is_there = |end: &str, bytes: &Option<Vec<u8>>| {
            fs::read(format!("{}{end}", path.display())).ok() == *bytes
        };
        let put = &exchange.put;
        if !is_there("-wal", &put.log) || put.journal.is_none() && !is_there("", &put.database) {
            return Err(described("it was changed and not left as it was".to_owned()));
        }
    }
    Ok((exchange.kind, verdict.class))
}

fn try_media(world: &World, random: &mut Random, by_programs: bool) -> Result<Class, String> {
    let exchange = media::draw(world, random);
    for (name, bytes) in exchange.media.files().iter().zip(&exchange.put) {
        let path = world.path(name);
        match bytes {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    let outcome = media::act(world, &exchange, by_programs);
    let verdict = &exchange.verdict;
    media::compare(world, &exchange, &outcome).map_err(|problem| {
        format!(
            "{problem}\n  {:?}, {:?}: {}\n  expected {:?} ({}), {:?}\n  came {:?}, {} lines",
            exchange.media,
            exchange.action,
            exchange.said,
            verdict.class,
            verdict.why,
            verdict.content,
            outcome.error,
            outcome.lines.len()
        )
    })?;
    Ok(verdict.class)
}

/// Puts the files where a connection has them open: in the files that are there.
fn put_within(world: &World, exchange: &Exchange) {
    let put = &exchange.put;
    for (end, bytes) in [("", &put.database), ("-wal", &put.log), ("-journal", &put.journal)] {
        let path = world.path(&format!("{}{end}", exchange.file()));
        match bytes {
            Some(bytes) => {
                let file = fs::File::options().write(true).create(true).truncate(false).open(&path);
                let file = file.unwrap();
                file.write_all_at(bytes, 0).unwrap();
                file.set_len(bytes.len() as u64).unwrap();
            }
            None => drop(fs::remove_file(&path)),
        }
    }
}

fn put(world: &World, exchange: &Exchange) {
    let path = world.path(exchange.file());
    let put = &exchange.put;
    let sides = [
        ("", &put.database),
        ("-wal", &put.log),
        ("-journal", &put.journal),
        ("-pellucid", &put.copy),
    ];
    for (end, bytes) in sides {
        let path = world.path(&format!("{}{end}", exchange.file()));
        let _ = fs::remove_file(&path);
        if let (Some(bytes), false) = (bytes, put.is_link) {
            fs::write(&path, bytes).unwrap();
        }
    }
    if put.is_link {
        let to = world.folder("elsewhere").join("linked.db");
        fs::write(&to, put.database.as_deref().unwrap_or_default()).unwrap();
        std::os::unix::fs::symlink(&to, &path).unwrap();
    }
}
