//! Goal: no flipped bit of any object of docs/format.md gives wrong data, in any shape of database.
//!
//! Method: databases of random algorithm, page size and content, in each encryption state and with each kind of
//! file beside them, protectors and keyrings; of each class of object random bits are flipped, one at a time,
//! and everything is read, sometimes written. Allowed are the right data, or an error with a line in the log.
//! Counted apart is a third outcome: of a WAL the state after an earlier commit, with a line in the log; of a
//! journal what plain SQLite makes of the same record when it finds it broken, also with a line, and of a
//! super-journal and its record, which are in clear, what it makes of the same bit.
//! `flip.rs` tries every byte of one container, WAL and journal. Only the event log is not among the objects:
//! nothing that opens a database reads it.
//!
//! CI: 40 flips of each class. PELLUCID_FLIPS_SECONDS, PELLUCID_FLIPS_SEED and PELLUCID_FLIPS_EACH (of a class
//! before the next database) choose other runs (tests/campaigns/flips). Without authentication
//! (`PELLUCID_SABOTAGE=authentication`) it has to find something.
#![allow(clippy::single_range_in_vec_init)] // an object may lie in several places
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bed;
mod bench;
mod container;
use pellucid_tests::content;
mod keys;
use pellucid_tests::limits;
mod logs;
use pellucid_tests::random;

use std::rc::Rc;
use std::time::{Duration, Instant};

use bed::{Bed, Tally};
use bench::{Bench, Shape};
use container::STATES;
use random::Random;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

const BEDS: usize = STATES.len() + 10;

fn bed(bench: &Rc<Bench>, which: usize, random: &mut Random) -> Bed {
    let shape = Shape::draw(random);
    for name in ["a.db", "l.db", "p.db"] {
        for suffix in ["", "-wal", "-shm", "-journal", "-pellucid"] {
            let _ = std::fs::remove_file(bench.path(&format!("{name}{suffix}")));
        }
    }
    match which {
        0..=3 => container::container(bench, STATES[which], &shape),
        4 => container::laying_plain(bench, &shape),
        5 => container::laying_sealed(bench, &shape),
        6 => logs::wal(bench, &shape),
        7 => logs::journal(bench, &shape),
        8 => {
            shape.fill(&bench.birth("a.db", shape.algorithm));
            logs::temporary(bench, random)
        }
        9..=11 => keys::protector(bench, which - 9),
        12 => keys::keyring(bench),
        _ => keys::password_file(bench),
    }
}

#[test]
fn random_bits_of_every_object() {
    content::caught("undetected", flip_random_bits);
}

fn flip_random_bits() {
    let seed = number("PELLUCID_FLIPS_SEED", 1);
    let length = Duration::from_secs(number("PELLUCID_FLIPS_SECONDS", 0));
    let each = number("PELLUCID_FLIPS_EACH", 40);
    println!("seed {seed}, {length:?}, {each} flips of a class at a time");
    let (begun, mut random, mut tally) = (Instant::now(), Random(seed), Tally::default());
    let bench = Rc::new(Bench::new());
    for round in 0.. {
        // Each class gets the same number of flips, whatever its size.
        for which in 0..BEDS {
            bed(&bench, which, &mut random).run(each, &mut random, &mut tally);
        }
        if round > 1000 || begun.elapsed() >= length {
            break;
        }
    }
    let mut all = bed::Count::default();
    for (name, count) in &tally.classes {
        let bed::Count { flips, right, third, error, undetected } = count;
        println!("RESULT {name}\t{flips}\t{right}\t{third}\t{error}\t{undetected}");
        all.add(count);
    }
    println!("{all:?}");
    tally.findings.truncate(20);
    assert_eq!(all.undetected, 0, "undetected: {:#?}", tally.findings);
}
