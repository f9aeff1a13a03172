//! SQL that changes the schema.
//!
//! The first letter of a table's name tells its columns, so that statements fit without asking:
//! `r` has a row id, `w` is WITHOUT ROWID, `k` has a foreign key, `f` is FTS5, `s` an R-tree, `v` a
//! view; all but the R-tree have columns `a`, `b` and `c`.

use crate::random::Random;

/// Makes a table in `schema`; which is its name, and the statement.
pub fn create_table(random: &mut Random, schema: &str) -> String {
    let kind = random.weighted(&[(10, 'r'), (4, 'w'), (2, 'k'), (2, 'f'), (1, 's')]);
    let name = format!("{kind}{}", random.below(if kind == 'r' { 4usize } else { 2 }));
    let table = format!("{schema}.{name}");
    let unless = if random.chance(50) { "IF NOT EXISTS " } else { "" };
    match kind {
        'w' => format!(
            "CREATE TABLE {unless}{table}(a {}, b TEXT, c, PRIMARY KEY({})) WITHOUT ROWID",
            random.pick(&["INT", "TEXT", "ANY COLLATE NOCASE", ""]),
            random.pick(&["a,b", "b,a DESC", "a"]),
        ),
        'k' => format!(
            "CREATE TABLE {unless}{table}(a INTEGER REFERENCES r0(id) ON DELETE {} ON UPDATE {}{}, b, c BLOB)",
            random.pick(&["CASCADE", "SET NULL", "RESTRICT", "NO ACTION"]),
            random.pick(&["CASCADE", "SET NULL", "NO ACTION"]),
            random.pick(&["", " DEFERRABLE INITIALLY DEFERRED"]),
        ),
        'f' => format!("CREATE VIRTUAL TABLE {unless}{table} USING fts5(a, b, c)"),
        's' => format!("CREATE VIRTUAL TABLE {unless}{table} USING rtree(id, x1, x2)"),
        _ => format!(
            "CREATE TABLE {unless}{table}(id INTEGER PRIMARY KEY{}, a{}, b TEXT{}, c{}{})",
            random.pick(&["", " AUTOINCREMENT"]),
            random.pick(&["", "", " UNIQUE", " NOT NULL", " DEFAULT 7"]),
            random.pick(&["", " COLLATE NOCASE", " UNIQUE ON CONFLICT REPLACE"]),
            random.pick(&["", " BLOB", " CHECK(length(c)<>13)"]),
            random.pick(&[
                "",
                "",
                ", g AS (length(b)+1) STORED",
                ", g AS (substr(c,1,20)) VIRTUAL",
                ", g AS (a||b) STORED UNIQUE",
            ]),
        ),
    }
}

pub fn create_index(random: &mut Random, schema: &str, table: &str) -> String {
    format!(
        "CREATE {}INDEX {}{schema}.i{} ON {table}({}){}",
        random.pick(&["", "", "", "UNIQUE "]),
        random.pick(&["", "IF NOT EXISTS "]),
        random.below(6usize),
        random.pick(&[
            "a",
            "b",
            "c",
            "a,b,c",
            "b COLLATE NOCASE,a DESC",
            "length(c)",
            "a,substr(c,1,40)",
            "c DESC",
        ]),
        random.pick(&["", "", "", " WHERE a>20", " WHERE b IS NOT NULL"]),
    )
}

/// `table` and `other` without their schema.
pub fn create_trigger(random: &mut Random, schema: &str, table: &str, other: &str) -> String {
    let view = table.starts_with('v');
    let event = random.pick(&["INSERT", "UPDATE", "DELETE", "UPDATE OF b"]);
    let row = if event == "DELETE" { "old" } else { "new" };
    let action = match random.below(6usize) {
        0 => format!("DELETE FROM {other} WHERE a={row}.a"),
        1 => format!("UPDATE {other} SET b=b||'t' WHERE a={row}.a AND length(b)<200"),
        2 => format!(
            "SELECT RAISE({}) WHERE {row}.a=13",
            random.pick(&["IGNORE", "ABORT,'thirteen'", "FAIL,'thirteen'", "ROLLBACK,'thirteen'"])
        ),
        _ => format!("INSERT OR IGNORE INTO {other}(a,b) VALUES({row}.a,{row}.b)"),
    };
    let when = if view { "INSTEAD OF" } else { random.pick(&["AFTER", "AFTER", "BEFORE"]) };
    let event = if view { "INSERT" } else { event };
    format!(
        "CREATE TRIGGER IF NOT EXISTS {schema}.g{} {when} {event} ON {table} BEGIN {action}; END",
        random.below(3usize)
    )
}

/// Any other change of the schema; `table` without its schema.
pub fn alter(random: &mut Random, schema: &str, table: &str, other: &str) -> String {
    let n = random.below(6usize);
    match random.below(16usize) {
        0 => format!("ALTER TABLE {schema}.{table} ADD COLUMN e{n} DEFAULT {n}"),
        1 => format!("ALTER TABLE {schema}.{table} ADD COLUMN e{n} AS (a||{n}) VIRTUAL"),
        2 => format!("ALTER TABLE {schema}.{table} DROP COLUMN e{n}"),
        3 => format!(
            "ALTER TABLE {schema}.{table} RENAME TO {}{}",
            &table[..1],
            random.below(4usize)
        ),
        4 => {
            format!("ALTER TABLE {schema}.{table} RENAME COLUMN e{n} TO e{}", random.below(6usize))
        }
        5 | 6 => format!("DROP TABLE {schema}.{table}"),
        7 | 8 => format!("DROP INDEX IF EXISTS {schema}.i{n}"),
        9 => format!("DROP TRIGGER IF EXISTS {schema}.g{}", random.below(3usize)),
        10 => format!(
            "CREATE VIEW {schema}.v{} AS SELECT a, b, c FROM {other} WHERE a<50",
            random.below(2usize)
        ),
        11 => format!("DROP VIEW IF EXISTS {schema}.v{}", random.below(2usize)),
        12 => format!(
            "CREATE TABLE IF NOT EXISTS {schema}.r{} AS SELECT * FROM {table}",
            random.below(4usize)
        ),
        13 => random.pick(&["REINDEX", "REINDEX NOCASE"]).to_owned(),
        14 => format!("REINDEX {schema}.{table}"),
        _ => random.pick(&["ANALYZE", "ANALYZE main", "PRAGMA optimize", "ANALYZE r0"]).to_owned(),
    }
}
