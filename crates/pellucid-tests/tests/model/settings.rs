//! Pragmas: those that choose how SQLite reads and writes, and those that ask.

use crate::random::Random;

/// The page size of a new database.
pub fn page_size(random: &mut Random) -> usize {
    random.weighted(&[
        (4, 512),
        (5, 1024),
        (3, 2048),
        (4, 4096),
        (2, 8192),
        (1, 16384),
        (1, 32768),
        (1, 65536),
    ])
}

/// What only a database without tables takes.
pub fn birth(random: &mut Random, page: usize) -> Vec<String> {
    let mut all = vec![format!("PRAGMA page_size={page}")];
    if random.chance(50) {
        all.push(format!("PRAGMA auto_vacuum={}", random.below(3usize)));
    }
    if random.chance(30) {
        let encoding = random.pick(&["UTF-8", "UTF-16", "UTF-16le", "UTF-16be"]);
        all.push(format!("PRAGMA encoding='{encoding}'"));
    }
    all
}

pub fn journal_mode(random: &mut Random) -> String {
    let mode = random.weighted(&[
        (5, "WAL"),
        (4, "DELETE"),
        (3, "TRUNCATE"),
        (3, "PERSIST"),
        (2, "MEMORY"),
        (1, "OFF"),
    ]);
    format!("PRAGMA journal_mode={mode}")
}

/// How a connection works.
pub fn tune(random: &mut Random) -> String {
    let one = |random: &mut Random, of: &[&'static str]| random.pick(of);
    match random.below(22usize) {
        0 | 1 => format!("PRAGMA synchronous={}", one(random, &["OFF", "NORMAL", "FULL", "EXTRA"])),
        2..=4 => {
            format!("PRAGMA cache_size={}", one(random, &["1", "2", "5", "10", "50", "-2000"]))
        }
        5 => format!("PRAGMA cache_spill={}", one(random, &["0", "1", "3", "20"])),
        6 => format!("PRAGMA temp_store={}", random.below(3usize)),
        7 => format!("PRAGMA mmap_size={}", one(random, &["0", "65536", "1000000", "268435456"])),
        8 => format!("PRAGMA secure_delete={}", one(random, &["0", "1", "FAST"])),
        9 => format!("PRAGMA wal_autocheckpoint={}", one(random, &["0", "1", "5", "20", "1000"])),
        10 => format!("PRAGMA journal_size_limit={}", one(random, &["-1", "0", "4096", "100000"])),
        11 => format!("PRAGMA locking_mode={}", one(random, &["NORMAL", "NORMAL", "EXCLUSIVE"])),
        12 => format!("PRAGMA foreign_keys={}", random.below(2usize)),
        13 => format!("PRAGMA recursive_triggers={}", random.below(2usize)),
        14 => format!("PRAGMA reverse_unordered_selects={}", random.below(2usize)),
        15 => format!("PRAGMA automatic_index={}", random.below(2usize)),
        16 => format!("PRAGMA user_version={}", random.below(1000usize)),
        17 => format!("PRAGMA application_id={}", random.below(1000usize)),
        18 => format!("PRAGMA auto_vacuum={}", random.below(3usize)),
        19 => format!("PRAGMA cell_size_check={}", random.below(2usize)),
        20 => "PRAGMA shrink_memory".to_owned(),
        _ => format!("PRAGMA defer_foreign_keys={}", random.below(2usize)),
    }
}

/// How many pages a database may have: SQLITE_FULL comes at the same statement on both sides.
pub fn most_pages(random: &mut Random) -> String {
    format!(
        "PRAGMA max_page_count={}",
        random.pick(&["1", "40", "150", "400", "1073741823", "1073741823"])
    )
}

pub fn checkpoint(random: &mut Random) -> String {
    format!(
        "PRAGMA wal_checkpoint({})",
        random.pick(&["PASSIVE", "FULL", "RESTART", "TRUNCATE", "NOOP"])
    )
}

pub fn ask(random: &mut Random, schema: &str) -> String {
    let what = random.pick(&[
        "page_count",
        "freelist_count",
        "schema_version",
        "data_version",
        "journal_mode",
        "integrity_check",
        "quick_check",
        "foreign_key_check",
        "user_version",
        "application_id",
        "encoding",
        "page_size",
        "auto_vacuum",
        "locking_mode",
        "cache_size",
        "max_page_count",
        "synchronous",
        "secure_delete",
    ]);
    match random.chance(15) {
        true => "SELECT name, path, pageno, pagetype, ncell, payload, unused, mx_payload, pgoffset, pgsize \
                 FROM dbstat ORDER BY pageno".to_owned(),
        false => format!("PRAGMA {schema}.{what}"),
    }
}
