//! Goal: every state of a database goes through every kind of set: what `backup` makes and `verify` calls valid, `restore` gives
//! back, whatever happened to the database between a full backup and the next one.
//!
//! Method: the states of `backup_states.rs`, plain and sealed, times kinds of sets, times what is done between two sets. A run
//! draws some of them; PELLUCID_TEST_SEED=N draws others, PELLUCID_PAIRS=N so many, and PELLUCID_PAIRS=all takes each state with
//! each kind of set. A backup may refuse, exit 1, with a word about why; then what was there before is still whole.

use crate::backup_states::{dump, place, ROWS, STATES};
use crate::support::{said_with, Place, Said, PELLUCID};

/// So many take about half a minute.
const DRAWN: usize = 20;
/// The exit status of `verify` for a set in clear of a database that the keyring knows as sealed.
const NOT_SEALED: i32 = 4;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// What is done between two backups: a word of `pellucid`'s, or SQL.
const CHANGES: [(&str, &str); 12] = [
    ("nothing", ""),
    ("rows", "CREATE TABLE IF NOT EXISTS z(a, b); INSERT INTO z VALUES (1, hex(randomblob(500)))"),
    ("many rows", "CREATE TABLE z(a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) INSERT INTO z SELECT hex(randomblob(200)) FROM n"),
    ("fewer pages", "DROP TABLE IF EXISTS t; VACUUM"),
    ("another order of pages", "VACUUM"),
    ("another page size", "PRAGMA journal_mode = delete; PRAGMA page_size = 8192; VACUUM"),
    ("a WAL", "PRAGMA journal_mode = wal; CREATE TABLE z(a)"),
    ("no WAL", "PRAGMA journal_mode = delete; CREATE TABLE z(a)"),
    ("another auto_vacuum", "PRAGMA auto_vacuum = 1; VACUUM"),
    ("rekey", "!rekey app.db"),
    ("switched over", "!switch"),
    ("encrypted again", "!again"),
];

/// The options of the first and the second backup, and what verify and restore are asked for.
struct Kind {
    name: &'static str,
    /// Of `backup app.db`, each a set; what happened between the sets happens before the last one.
    sets: &'static [&'static str],
    /// The media, and what both commands take besides.
    reads: &'static str,
    /// Whether the last set is read.
    is_last: bool,
}

const fn kind(name: &'static str, sets: &'static [&'static str], reads: &'static str) -> Kind {
    Kind { name, sets, reads, is_last: true }
}

const KINDS: [Kind; 20] = [
    kind("full", &["--to a.bak"], "a.bak"),
    kind("not compressed", &["--to a.bak --compression none"], "a.bak"),
    kind("LZ4", &["--to a.bak --compression lz4"], "a.bak"),
    kind("zstd at 19", &["--to a.bak --compression zstd:19"], "a.bak"),
    kind("copy-only", &["--to a.bak --copy-only"], "a.bak"),
    kind("striped", &["--to a.bak b.bak c.bak"], "c.bak a.bak b.bak"),
    kind("mirrored", &["--to a.bak --mirror b.bak"], "b.bak"),
    kind("striped and mirrored", &["--to a.bak b.bak --mirror c.bak d.bak"], "c.bak d.bak"),
    kind("sealed for a certificate", &["--to a.bak --certificate one"], "a.bak"),
    kind("another algorithm", &["--to a.bak --certificate one --algorithm AES_128"], "a.bak"),
    kind("for a key file", &["--to a.bak --key-file k.key"], "a.bak --key-file k.key"),
    kind("differential", &["--to a.bak", "--to a.bak --append --differential"], "a.bak"),
    kind(
        "differential elsewhere",
        &["--to a.bak", "--to b.bak --differential --base a.bak"],
        "b.bak --base a.bak",
    ),
    kind(
        "striped differential",
        &["--to a.bak b.bak", "--to c.bak d.bak --differential --base a.bak b.bak"],
        "c.bak d.bak --base a.bak b.bak",
    ),
    kind(
        "differential, mirrored",
        &["--to a.bak --mirror b.bak", "--to a.bak --mirror b.bak --append --differential"],
        "b.bak",
    ),
    kind(
        "differential of a set that is not compressed",
        &["--to a.bak --compression none", "--to a.bak --append --differential"],
        "a.bak",
    ),
    kind(
        "differential behind a copy",
        &["--to a.bak", "--to a.bak --append --copy-only", "--to a.bak --append --differential"],
        "a.bak",
    ),
    kind(
        "the last full of three",
        &["--to a.bak", "--to a.bak --append", "--to a.bak --append"],
        "a.bak",
    ),
    Kind {
        name: "the first of two",
        sets: &["--to a.bak", "--to a.bak --append"],
        reads: "a.bak --position 1",
        is_last: false,
    },
    kind("overwritten", &["--to a.bak", "--to a.bak --overwrite"], "a.bak"),
];

fn run(place: &Place, line: &str) -> Said {
    place.pellucid(&line.split(' ').collect::<Vec<_>>())
}

fn is_sealed(place: &Place) -> bool {
    std::fs::read(place.path("app.db")).unwrap().starts_with(b"Pellucid") || {
        let status = place.pellucid(&["--json", "status", "app.db"]).stdout;
        !status.contains("\"plain\"")
    }
}

/// Does what stands between two sets. What is refused is a database as it was.
fn change(place: &Place, change: &str) {
    let encrypt = "encrypt app.db --load ./odd.so";
    match change {
        "" => {}
        "!switch" | "!again" => {
            let was_sealed = is_sealed(place);
            let _ = run(place, if was_sealed { "decrypt app.db --load ./odd.so" } else { encrypt });
            if change == "!again" {
                let _ =
                    run(place, if was_sealed { encrypt } else { "decrypt app.db --load ./odd.so" });
            }
        }
        _ => {
            if let Some(line) = change.strip_prefix('!') {
                let _ = run(place, line);
                return;
            }
            let mut shell = place.command(PELLUCID);
            let script = format!(".load ./odd\n{change};\n");
            let _ = said_with(shell.args(["run", "--", "sqlite3", "-batch", "app.db"]), &script);
        }
    }
}

/// A database in a state; none if SQLite cannot copy it, so that it cannot be encrypted.
fn make(place: &Place, state: usize, sealed: bool) -> bool {
    let (_, before, behind, codes) = STATES[state];
    let script = format!(".load ./odd\n{before}\n{ROWS}\n{behind}\n");
    said_with(place.command("/usr/bin/sqlite3").args(["-batch", "app.db"]), &script).succeeded();
    place.secret("k.key", &[7; 32]);
    place.pellucid(&["cert", "create", "one"]).succeeded();
    let made = sealed && run(place, "encrypt app.db --load ./odd.so --certificate one").code != 0;
    assert!(!made || codes.check != 0, "{}: it is not encrypted", STATES[state].0);
    !made
}

/// Makes the sets, and says what of that is wrong.
fn pair(state: usize, sealed: bool, kind: &Kind, between: &(&str, &str)) -> Result<(), String> {
    let place = place();
    let what = format!("{}, sealed: {sealed}, {}, {}", STATES[state].0, kind.name, between.0);
    if !make(&place, state, sealed) {
        return Ok(());
    }
    let mut expected = dump(&place, "app.db");
    let mut whole = None;
    for (number, set) in kind.sets.iter().enumerate() {
        if number > 0 && number + 1 == kind.sets.len() {
            change(&place, between.1);
        }
        if kind.is_last {
            expected = dump(&place, "app.db");
        }
        let told = run(&place, &format!("backup app.db {set}"));
        if told.code == 0 {
            whole = Some(*set);
            continue;
        }
        // A certificate seals; a set in clear goes on no media of sealed ones; a differential needs a full set that fits.
        if told.code != 1 || told.stderr.lines().count() == 0 || number == 0 {
            return Err(format!("{what}: backup {set}: {told:?}"));
        }
        // What was there is still whole, but for what the refused one would have been read with.
        let first = kind.sets[0].split(' ').skip(1).take_while(|word| !word.starts_with('-'));
        let verify = format!("verify {}", first.collect::<Vec<_>>().join(" "));
        let kept = run(&place, &verify);
        if ![0, NOT_SEALED].contains(&kept.code) && whole.is_some() {
            return Err(format!("{what}: {told:?}, and then {verify}: {kept:?}"));
        }
        return Ok(());
    }
    let check = STATES[state].3.check;
    // A set in clear of a database that is sealed by now is believed only if somebody says so.
    let is_doubted = run(&place, &format!("verify {}", kind.reads)).code == NOT_SEALED;
    let reads =
        if is_doubted { format!("{} --allow-clear", kind.reads) } else { kind.reads.to_owned() };
    let more = |line: &str| format!("{line} {reads}");
    for (line, code) in [
        (more("verify"), 0),
        (more("verify --open"), 0),
        (more("verify --check --load ./odd.so"), check),
        (format!("restore {reads} --to back.db"), 0),
    ] {
        let told = run(&place, &line);
        if told.code != code {
            return Err(format!("{what}: {line}: {told:?}"));
        }
    }
    match dump(&place, "back.db") == expected {
        true => Ok(()),
        false => Err(format!("{what}: what is restored is not what was backed up")),
    }
}

#[test]
fn whatever_goes_into_whichever_set_comes_back() {
    let seed = std::env::var("PELLUCID_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let mut random = Random(seed.unwrap_or(1));
    println!("PELLUCID_TEST_SEED={}", random.0);
    let wanted = std::env::var("PELLUCID_PAIRS").unwrap_or_default();
    let all = STATES.len() * 2 * KINDS.len();
    let count = match wanted.as_str() {
        "all" => all,
        other => other.parse().unwrap_or(DRAWN),
    };
    let mut wrong = Vec::new();
    for number in 0..count {
        let pick = if count == all { number } else { random.below(all) };
        let (state, kind) = (pick % STATES.len(), &KINDS[pick / STATES.len() % KINDS.len()]);
        let sealed = pick / STATES.len() / KINDS.len() == 1;
        let between = &CHANGES[random.below(CHANGES.len())];
        wrong.extend(pair(state, sealed, kind, between).err());
    }
    println!("{count} pairs");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}
