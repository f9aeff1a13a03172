//! Runs cases by number, and counts what came of them.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use pellucid_tests::random::Random;

use crate::act::{self, Action};
use crate::exchange::{self, Exchange};
use crate::oracle::{self, Class};
use crate::verdict::compare;
use crate::world::World;

/// Failures that are shown; more are of the same cause.
const SHOWN: usize = 60;

/// Runs `count` cases of `seed` from number `first` on.
pub fn run(seed: u64, first: u64, count: u64) {
    println!("seed {seed}, cases {first} to {}", first + count);
    let begun = Instant::now();
    let mut world = World::new();
    println!("a history in {:.1} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let mut counts: BTreeMap<Class, u64> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in first..first + count {
        match try_case(&mut world, seed, case) {
            Ok(class) => *counts.entry(class).or_default() += 1,
            Err(failure) => {
                println!("case {case}: {failure}");
                failures.push(case);
            }
        }
        if failures.len() >= SHOWN {
            break;
        }
    }
    let all: Vec<_> = Class::ALL
        .iter()
        .map(|class| format!("{} {}", class.name(), counts.get(class).unwrap_or(&0)))
        .collect();
    let took = begun.elapsed();
    println!(
        "{}, {:.1} s, {:?} each",
        all.join(", "),
        took.as_secs_f64(),
        took / count.max(1) as u32
    );
    assert!(
        failures.is_empty(),
        "cases outside their class: {failures:?}; PELLUCID_ADVERSARY_SEED={seed} \
         PELLUCID_ADVERSARY_FIRST=N PELLUCID_ADVERSARY_CASES=1 runs one of them"
    );
}

fn try_case(world: &mut World, seed: u64, case: u64) -> Result<Class, String> {
    // Each case has numbers of its own, so that it runs alone as it runs among others.
    let mut random =
        Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ case.wrapping_mul(0x9e37_79b9));
    random.draw();
    world.put_back();
    let exchange = exchange::draw(world, &mut random);
    let action = random.weighted(&Action::WEIGHTS);
    let verdict = oracle::judge(world, exchange.target, &exchange.put);
    put(world, &exchange);
    let secret = format!("SECRET-{case}-");
    let path = world.path(exchange.target.file());
    let outcome = act::act(world, &path, action, &secret);
    let described = |problem: String| {
        format!(
            "{problem}\n  {}: {}, {:?}; {action:?}\n  expected {:?} ({}), {:?}\n  came {:?}, {} lines, {:?}, {:?}",
            exchange.target.file(),
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
    compare(world, &verdict, action, &outcome, &secret).map_err(described)?;
    let clear = act::in_clear(world, &secret);
    if !clear.is_empty() {
        return Err(described(format!("what was written lies in clear in {clear:?}")));
    }
    if verdict.class == Class::Lost && !verdict.may_fail {
        let kept = format!("{}-wal-lost-1", path.display());
        let kept = fs::metadata(&kept).is_ok_and(|about| about.len() > 0);
        if !kept {
            return Err(described("commits of the log are lost and not kept".to_owned()));
        }
    }
    Ok(verdict.class)
}

fn put(world: &World, exchange: &Exchange) {
    let path = world.path(exchange.target.file());
    let put = &exchange.put;
    let sides = [("", &put.database), ("-wal", &put.log), ("-journal", &put.journal)];
    for (end, bytes) in sides {
        let path = world.path(&format!("{}{end}", exchange.target.file()));
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
