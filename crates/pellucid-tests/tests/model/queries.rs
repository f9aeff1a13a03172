//! SQL that only reads, with an order wherever it asks for more than one row.

use crate::random::Random;
use crate::values::{condition, row_id};

/// A query over `table` (with its schema), perhaps joined with `other`.
pub fn query(random: &mut Random, table: &str, other: &str) -> String {
    let name = table.rsplit('.').next().unwrap_or(table);
    match &name[..1] {
        "s" => {
            let x = random.below(1500usize);
            return format!("SELECT * FROM {table} WHERE x1>={x} AND x2<={} ORDER BY id", x + 700);
        }
        "f" => return search(random, table, name),
        _ => {}
    }
    let met = condition(random);
    let n = random.between(1, 40);
    match random.below(16usize) {
        0 => format!("SELECT count(*), sum(length(b)), total(a), max(c), min(b) FROM {table}"),
        1 => format!("SELECT * FROM {table} WHERE {met} ORDER BY a, b LIMIT {n}"),
        2 => format!("SELECT a, count(*), group_concat(b) FROM {table} GROUP BY a ORDER BY a"),
        // Large enough for the sorter to leave memory.
        3 => format!(
            "WITH t AS (SELECT a, b, c FROM {table} ORDER BY a, b LIMIT 60) \
             SELECT x.a, y.b, x.c FROM t x, t y ORDER BY y.c, x.b, x.a, y.b LIMIT {n}"
        ),
        4 => format!(
            "SELECT x.a, length(y.c) FROM {table} x JOIN {other} y ON x.a=y.a ORDER BY 1, 2, x.b LIMIT {n}"
        ),
        5 => format!("SELECT DISTINCT b FROM {table} ORDER BY b DESC LIMIT {n}"),
        6 => format!(
            "SELECT a, row_number() OVER (PARTITION BY typeof(a) ORDER BY b, a), \
             lag(b) OVER (ORDER BY a, b) FROM {table} ORDER BY 1, 2 LIMIT {n}"
        ),
        7 => format!("SELECT a, b FROM {table} UNION SELECT a, b FROM {other} ORDER BY 1, 2 LIMIT {n}"),
        8 => format!("SELECT a FROM {table} EXCEPT SELECT a FROM {other} ORDER BY 1"),
        9 => format!("SELECT * FROM {table} WHERE a IN (SELECT a FROM {other} WHERE {met}) ORDER BY a, b"),
        10 => format!("SELECT rowid, * FROM {table} WHERE rowid>={} ORDER BY rowid LIMIT {n}", row_id(random)),
        11 => format!("SELECT max(a), max(rowid) FROM {table}"),
        12 => format!("SELECT *, typeof(a), hex(substr(c,1,9)) FROM {table} ORDER BY b DESC, a LIMIT {n}"),
        13 => format!("SELECT json_group_array(a) FROM (SELECT a FROM {table} WHERE {met} ORDER BY a, b)"),
        14 => format!("SELECT count(*) FROM {table} WHERE {met}"),
        _ => format!("SELECT sum(length(a)+coalesce(length(b),0)+coalesce(length(c),0)) FROM {table}"),
    }
}

fn search(random: &mut Random, table: &str, name: &str) -> String {
    let word = random.below(50usize);
    match random.below(4usize) {
        0 => format!("SELECT rowid, a, b FROM {table} WHERE {name} MATCH 'word{word}' ORDER BY rowid LIMIT 30"),
        1 => format!("SELECT rowid, bm25({name}) FROM {table} WHERE {name} MATCH 'word{word}*' ORDER BY 2, 1 LIMIT 9"),
        2 => format!("SELECT snippet({name},1,'<','>','~',4) FROM {table} WHERE b MATCH 'word{word}' ORDER BY rowid LIMIT 5"),
        _ => format!("SELECT count(*) FROM {table} WHERE {name} MATCH 'word1* NOT and'"),
    }
}
