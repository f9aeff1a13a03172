//! SQL for values, conditions and rows; small domains, so that rows collide and conditions meet.

use crate::random::Random;

/// An expression for column `a`: any type, often equal to another one.
pub fn key(random: &mut Random) -> String {
    match random.below(12usize) {
        0 => "NULL".to_owned(),
        1 => format!("{}.5", random.below(20usize)),
        2 => format!("'k{}'", random.below(30usize)),
        3 => format!("x'{:04x}'", random.below(40usize)),
        4 => format!("-{}", random.draw() >> 2),
        5 => format!("{}e{}", random.between(1, 9), random.below(300usize)),
        _ => random.below(60usize).to_string(),
    }
}

/// An expression for column `b`: text, sometimes long.
pub fn text(random: &mut Random, page: usize) -> String {
    match random.below(10usize) {
        0 => "''".to_owned(),
        1 => "NULL".to_owned(),
        2 => long(random, page),
        3 => format!("'Straße {} ☃'", random.below(30usize)),
        4 => random.below(100usize).to_string(),
        _ => format!("'word{} and {}'", random.below(50usize), random.below(9usize)),
    }
}

/// An expression for column `c`: bytes, up to many overflow pages.
pub fn bytes(random: &mut Random, page: usize) -> String {
    match random.below(8usize) {
        0 => "NULL".to_owned(),
        1 | 2 => long(random, page),
        3 => format!("zeroblob({})", size(random, page)),
        4 => format!("CAST({} AS BLOB)", long(random, page)),
        5 => format!("x'{:08x}'", random.draw() as u32),
        6 => format!("{}.25", random.below(1000usize)),
        _ => format!("'c{}'", random.below(1000usize)),
    }
}

/// Text that fills pages, no two alike.
fn long(random: &mut Random, page: usize) -> String {
    let word = format!("{:05x}", random.draw() & 0xf_ffff);
    format!("replace(hex(zeroblob({})),'00','{word}')", size(random, page) / 5)
}

/// Sizes about the borders at which SQLite begins overflow pages, and some far beyond.
fn size(random: &mut Random, page: usize) -> usize {
    let usable = page - 32;
    let size = match random.below(6usize) {
        0 => random.below(usable),
        1 => usable - 35 - random.below(8usize),
        2 => usable / 4 + random.below(16usize),
        3 => usable * random.between(1, 3) + random.below(16usize),
        4 => random.below(4 * usable),
        _ => random.below(usable / 4 + 1),
    };
    size.min(40_000)
}

/// A condition over columns `a`, `b` and `c` that some rows meet.
pub fn condition(random: &mut Random) -> String {
    let n = random.below(60usize);
    match random.below(9usize) {
        0 => format!("a={n}"),
        1 => format!("a BETWEEN {n} AND {}", n + random.below(20usize)),
        2 => format!("a>{n}"),
        3 => format!("b LIKE 'word{}%'", random.below(6usize)),
        4 => format!("length(c)>{}", random.below(3000usize)),
        5 => "a IS NULL".to_owned(),
        6 => format!("typeof(c)='{}'", random.pick(&["text", "blob", "null", "real"])),
        7 => format!("abs(CAST(a AS INTEGER))%{}={}", random.between(2, 7), random.below(3usize)),
        _ => format!("b<'word{}' OR a IN ({n},{},{})", random.below(50usize), n + 1, n + 2),
    }
}

/// Row ids that bulk inserts use too.
pub fn row_id(random: &mut Random) -> usize {
    random.between(1, 400)
}

/// `SELECT` of many rows of three columns out of nothing.
pub fn many(random: &mut Random, page: usize) -> String {
    let rows = random.weighted(&[(6, 12), (4, 60), (2, 250)]);
    let rows = random.between(2, rows);
    let each = (60_000 / rows).min(size(random, page)) / 4;
    let (step, word) = (random.between(1, 97), random.below(1000usize));
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<{rows}) \
         SELECT i*{step}%61, 'word'||(i*{step}%50), substr(replace(hex(zeroblob({})),'00',\
         'z{word}.'||i),1,{each}) FROM n",
        each / 4 + 1
    )
}
