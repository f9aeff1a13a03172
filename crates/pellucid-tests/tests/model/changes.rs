//! SQL that changes rows. A table's first letter tells its columns: `schema.rs`.

use crate::random::Random;
use crate::values::{bytes, condition, key, many, row_id, text};

/// A statement that changes rows of `table` (with its schema), perhaps out of `other`.
pub fn change(random: &mut Random, table: &str, other: &str, page: usize) -> String {
    let name = table.rsplit('.').next().unwrap_or(table);
    let statement = match &name[..1] {
        "s" => return spatial(random, table),
        "f" => return search(random, table, page),
        "v" => return view(random, table, page),
        "k" => child(random, table, page),
        _ => ordinary(random, table, other, page),
    };
    match random.chance(8) {
        true => format!("{statement} RETURNING a, length(b), typeof(c)"),
        false => statement,
    }
}

/// Makes a statement on a table, with values that suit a page size.
type Kind = fn(&mut Random, &str, usize) -> String;

fn ordinary(random: &mut Random, table: &str, other: &str, page: usize) -> String {
    const KINDS: [(usize, Kind); 8] = [
        (8, one),
        (5, some),
        (6, bulk),
        (6, update),
        (3, update_many),
        (5, delete),
        (2, upsert),
        (1, clear),
    ];
    if random.chance(6) {
        let or = conflict(random);
        let by = if random.chance(30) { " ORDER BY a, b" } else { "" };
        return format!("INSERT{or} INTO {table}(a,b,c) SELECT a,b,c FROM {other}{by} LIMIT 40");
    }
    random.weighted(&KINDS)(random, table, page)
}

fn conflict(random: &mut Random) -> &'static str {
    random.pick(&[
        "",
        "",
        " OR IGNORE",
        " OR REPLACE",
        " OR ABORT",
        " OR FAIL",
        " OR ROLLBACK",
        " OR REPLACE",
    ])
}

fn one(random: &mut Random, table: &str, page: usize) -> String {
    let (or, a, b, c) = (conflict(random), key(random), text(random, page), bytes(random, page));
    match table.contains(".r") && random.chance(40) {
        true => format!("INSERT{or} INTO {table}(id,a,b,c) VALUES({},{a},{b},{c})", row_id(random)),
        false => format!("INSERT{or} INTO {table}(a,b,c) VALUES({a},{b},{c})"),
    }
}

fn some(random: &mut Random, table: &str, page: usize) -> String {
    let rows: Vec<String> = (0..random.between(2, 6))
        .map(|_| format!("({},{},{})", key(random), text(random, page), bytes(random, page)))
        .collect();
    format!("INSERT{} INTO {table}(a,b,c) VALUES{}", conflict(random), rows.join(","))
}

fn bulk(random: &mut Random, table: &str, page: usize) -> String {
    format!("INSERT{} INTO {table}(a,b,c) {}", conflict(random), many(random, page))
}

fn update(random: &mut Random, table: &str, page: usize) -> String {
    let or = conflict(random);
    let to = match random.below(5usize) {
        0 => format!("a={}", key(random)),
        1 => format!("b={}", text(random, page)),
        2 => "a=a+1".to_owned(),
        3 => format!("c={},b=b||'.'", bytes(random, page)),
        _ => format!("c={}", bytes(random, page)),
    };
    format!("UPDATE{or} {table} SET {to} WHERE {}", condition(random))
}

fn update_many(random: &mut Random, table: &str, _page: usize) -> String {
    let to =
        random.pick(&["c=substr(c,2)", "c=c||c", "b=upper(b)", "a=-a", "b=b||a, c=NULL", "c=a"]);
    // What doubles has an end.
    format!("UPDATE{} {table} SET {to} WHERE length(c)<3000 OR c IS NULL", conflict(random))
}

fn delete(random: &mut Random, table: &str, _page: usize) -> String {
    format!("DELETE FROM {table} WHERE {}", condition(random))
}

fn upsert(random: &mut Random, table: &str, page: usize) -> String {
    let (a, b, c) = (key(random), text(random, page), bytes(random, page));
    match table.contains(".r") {
        true => format!(
            "INSERT INTO {table}(id,a,b,c) VALUES({},{a},{b},{c}) ON CONFLICT(id) DO UPDATE SET \
             a=excluded.a, c=c||excluded.c WHERE length(c)<9000",
            row_id(random)
        ),
        false => format!("INSERT INTO {table}(a,b,c) VALUES({a},{b},{c}) ON CONFLICT DO NOTHING"),
    }
}

fn clear(_random: &mut Random, table: &str, _page: usize) -> String {
    format!("DELETE FROM {table}")
}

fn child(random: &mut Random, table: &str, page: usize) -> String {
    match random.below(5usize) {
        0 => delete(random, table, page),
        1 => format!("UPDATE {table} SET a={} WHERE {}", row_id(random), condition(random)),
        2 => format!("INSERT INTO {table}(a,b,c) SELECT id,b,c FROM main.r0 ORDER BY id LIMIT 30"),
        _ => {
            let (or, c) = (conflict(random), bytes(random, page));
            format!("INSERT{or} INTO {table}(a,b,c) VALUES({},'child',{c})", row_id(random))
        }
    }
}

fn spatial(random: &mut Random, table: &str) -> String {
    let (x, y) = (random.below(1000usize), random.below(1000usize));
    match random.below(6usize) {
        0 => format!("DELETE FROM {table} WHERE x1>{x} AND x2<{}", x + 300),
        1 => format!("UPDATE {table} SET x2=x2+{y} WHERE x1<{x}"),
        2 => format!("INSERT INTO {table} VALUES({},{},{x})", row_id(random), x + y + 1),
        3 => format!(
            "INSERT OR REPLACE INTO {table} WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 \
             FROM n WHERE i<80) SELECT i, i*{}%997, i*{}%997+997 FROM n",
            x + 1,
            y + 1
        ),
        _ => format!("INSERT OR REPLACE INTO {table} VALUES({},{x},{})", row_id(random), x + y),
    }
}

fn search(random: &mut Random, table: &str, page: usize) -> String {
    let name = table.rsplit('.').next().unwrap_or(table);
    match random.below(8usize) {
        0 => format!("DELETE FROM {table} WHERE rowid%3={}", random.below(3usize)),
        1 => format!("INSERT INTO {table}({name}) VALUES('optimize')"),
        2 => format!("INSERT INTO {table}({name}) VALUES('rebuild')"),
        3 => format!("INSERT INTO {table}({name}) VALUES('integrity-check')"),
        4 => {
            format!(
                "UPDATE {table} SET b={} WHERE rowid={}",
                text(random, page),
                random.below(50usize)
            )
        }
        _ => format!("INSERT INTO {table}(a,b,c) {}", many(random, page)),
    }
}

/// A view takes changes by its trigger, or refuses them.
fn view(random: &mut Random, table: &str, page: usize) -> String {
    format!("INSERT INTO {table}(a,b) VALUES({},{})", key(random), text(random, page))
}
