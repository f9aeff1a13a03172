//! Goal: whoever can write the storage, without a key, gets nothing that SECURITY.md does not list.
//!
//! Method: a small instance lives through a history, and all that lies on its storage is kept at twenty moments. Then files, parts
//! of files, logs, journals and backup sets are exchanged between moments, databases and instances, cut, flipped and mixed,
//! by a seed, and each time one thing is done with them: opened and read, written, checked, brought in from the log, backed
//! up, verified or restored. An oracle that knows what every part is, and has no key, says beforehand what has to come of it:
//! refused, told, lost commits kept and told, an older state that remains by design, or nothing at all. A case of which something
//! else comes fails, with its number, which runs it again alone. One database is of the other version of the format than all
//! others, which are of version 2 with `PELLUCID_FORMAT=2`.
//!
//! It can fail: with each rule taken away (`PELLUCID_SABOTAGE`) some case of the first 5,000 has to.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod act;
mod archive;
#[cfg(feature = "sabotage")]
mod caught;
mod exchange;
mod full;
mod index;
mod logs;
mod media;
mod name;
mod oracle;
mod programs;
mod rows;
mod run;
mod storage;
mod verdict;
mod world;

use pellucid_tests::content;
use pellucid_tests::processes::{child, number, role, told};

/// Cases of each change, and of each version of the format.
const EACH_TIME: u64 = 50;

#[test]
fn a_seeded_thousandth() {
    run::run(
        number("PELLUCID_ADVERSARY_SEED", 1),
        number("PELLUCID_ADVERSARY_FIRST", 0),
        number("PELLUCID_ADVERSARY_CASES", EACH_TIME),
    );
}

/// The same where new databases are of the other version of the format.
#[test]
fn a_seeded_thousandth_of_the_other_version() {
    let ended = child("cases")
        .env("PELLUCID_FORMAT", (3 - content::version()).to_string())
        .env("PELLUCID_ADVERSARY_PLACE", "")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    println!("{said}");
}

/// An older state of a database with a chain of log backups.
#[test]
fn a_seeded_part_of_what_a_chain_tells() {
    let ended = child("full").env("PELLUCID_ADVERSARY_PLACE", "").output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    println!("{said}");
}

#[test]
fn child_entry() {
    let Some(role) = role() else { return };
    let place = told("PELLUCID_ADVERSARY_PLACE");
    let place = std::path::Path::new(&place);
    match role.as_str() {
        "foreign" => world::make_foreign(place),
        "forge" => media::forge(place),
        "cases" => a_seeded_thousandth(),
        "full" => full::run(
            number("PELLUCID_ADVERSARY_SEED", 1),
            number("PELLUCID_ADVERSARY_FIRST", 0),
            number("PELLUCID_FULL_CASES", EACH_TIME),
        ),
        other => panic!("there is no role {other}"),
    }
}
