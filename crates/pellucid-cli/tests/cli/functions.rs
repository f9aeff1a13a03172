//! Goal: what a stock SQLite computes, the SQLite inside computes as well, so that a schema which uses it can be
//! encrypted, checked, rekeyed and decrypted; what only an application has is no damage.
//!
//! Method: the functions, modules and collations that this system's `sqlite3` and `python3` list are looked up in the
//! SQLite inside, apart from a list of those that the `sqlite3` program brings itself. That list is held to be needed
//! where the program is there to ask. A schema that uses one of each kind goes the whole way; one with an application's
//! function, collation and module is checked with and without it, damaged and whole.

use std::collections::BTreeSet;

use crate::support::{edit, said, Place, Said, PELLUCID};

/// What the program `sqlite3` brings besides its library (shell.c.in: the extensions that are compiled into it).
const OF_THE_PROGRAM: &[&str] = &[
    "base64",
    "base85",
    "decimal",
    "decimal_add",
    "decimal_cmp",
    "decimal_exp",
    "decimal_mul",
    "decimal_pow2",
    "decimal_sub",
    "decimal_sum",
    "dtostr",
    "edit",
    "eval",
    "ieee754",
    "ieee754_exponent",
    "ieee754_from_blob",
    "ieee754_from_int",
    "ieee754_inc",
    "ieee754_mantissa",
    "ieee754_to_blob",
    "ieee754_to_int",
    "is_base85",
    "lsmode",
    "readfile",
    "realpath",
    "regexp",
    "regexpi",
    "sha1",
    "sha1b",
    "sha1_query",
    "sha3",
    "sha3_agg",
    "sha3_query",
    "shell_add_schema",
    "shell_escape_crnl",
    "shell_idquote",
    "shell_int32",
    "shell_module_schema",
    "shell_prompt_test",
    "shell_putsnl",
    "sqlar_compress",
    "sqlar_uncompress",
    "strtod",
    "usleep",
    "writefile",
    "zipfile",
    "zipfile_cds",
    "completion",
    "fsdir",
    "generate_series",
    "pragma_vtab_info",
    "uint",
    // Of this connection of the program's, not of SQLite: recovery, `.expert`, `.stmt`.
    "sqlite_dbdata",
    "sqlite_dbptr",
];

const LISTS: &str = "SELECT 'function', lower(name), narg FROM pragma_function_list
    UNION SELECT 'module', lower(name), 0 FROM pragma_module_list WHERE name NOT LIKE 'pragma\\_%' ESCAPE '\\'
    UNION SELECT 'collation', lower(name), 0 FROM pragma_collation_list ORDER BY 1, 2, 3";

type List = BTreeSet<(String, String, i64)>;

fn of_lines(lines: &str) -> List {
    let fields = |line: &str| {
        let mut fields = line.split('|');
        let mut next = || fields.next().unwrap().to_owned();
        (next(), next(), next().parse().unwrap())
    };
    lines.lines().map(fields).collect()
}

fn inside() -> List {
    let db = rusqlite::Connection::open_in_memory().unwrap();
    // Known from the first use on.
    db.execute_batch("SELECT 1 FROM json_each('[]'), json_tree('[]')").unwrap();
    let mut statement = db.prepare(LISTS).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Whether `inside` has it: with as many arguments, or with any number (negative; which one says how many at least).
fn has(inside: &List, (kind, name, arguments): &(String, String, i64)) -> bool {
    inside.iter().any(|(own, called, with)| {
        (own, called) == (kind, name) && (with == arguments || *with < 0)
    })
}

#[test]
fn the_sqlite_inside_has_what_the_systems_has() {
    let place = Place::new();
    let inside = inside();
    let library = of_lines(
        &said(place.command("/usr/bin/python3").args([
            "-c",
            "import sqlite3, sys\nfor row in sqlite3.connect(':memory:').execute(sys.argv[1]): print(*row, sep='|')",
            LISTS,
        ]))
        .succeeded(),
    );
    assert!(library.len() > 100, "{library:?}");
    let missing: Vec<_> = library.iter().filter(|one| !has(&inside, one)).collect();
    assert!(missing.is_empty(), "of the library: {missing:?}");
    let program = of_lines(&place.sqlite3(":memory:", LISTS).succeeded());
    let missing: Vec<_> = program.iter().filter(|one| !has(&inside, one)).collect();
    let (listed, others): (Vec<_>, Vec<_>) =
        missing.into_iter().partition(|(_, name, _)| OF_THE_PROGRAM.contains(&name.as_str()));
    assert!(others.is_empty(), "of the program: {others:?}");
    assert!(!listed.is_empty(), "the list of exceptions is not needed");
    // Other builds have these, and a schema may use them.
    for name in ["sqrt", "ln", "floor", "soundex", "geopoly_area", "percentile", "sqlite_offset"] {
        assert!(inside.iter().any(|(_, own, _)| own == name), "{name}");
    }
    for name in ["fts3", "fts4", "fts5", "rtree", "geopoly", "dbstat", "sqlite_stmt"] {
        assert!(inside.iter().any(|(kind, own, _)| kind == "module" && own == name), "{name}");
    }
}

/// One of each kind: an index, a generated column, a check, a partial index, a view, full text and a tree.
const OF_SQLITE: &str = "CREATE TABLE t(a REAL, s AS (sqrt(a)) STORED, v AS (cos(a)), w TEXT, CHECK (floor(a) = a));
    CREATE INDEX i ON t(ln(a)); CREATE INDEX j ON t(soundex(w)) WHERE pow(a, 2) > 10;
    CREATE VIEW q AS SELECT log2(a) FROM t;
    CREATE VIRTUAL TABLE f4 USING fts4(x); CREATE VIRTUAL TABLE f5 USING fts5(x);
    CREATE VIRTUAL TABLE r USING rtree(id, x0, x1);
    INSERT INTO t(a, w) VALUES (4, 'four'), (9, 'nine'), (16, 'sixteen');
    INSERT INTO f4 VALUES ('four and five'); INSERT INTO f5 VALUES ('four and five'); INSERT INTO r VALUES (1, 2, 3)";

#[test]
fn a_schema_with_functions_of_sqlites_goes_all_the_way() {
    let place = Place::new();
    place.sqlite3("app.db", OF_SQLITE).succeeded();
    let dump = |name: &str| place.sqlite3(name, ".dump").succeeded();
    let before = dump("app.db");
    place.pellucid(&["--quiet", "encrypt", "app.db"]).succeeded();
    for words in ["check app.db", "rekey app.db", "salvage app.db --to saved.db --decrypted"] {
        place.pellucid(&words.split(' ').collect::<Vec<_>>()).succeeded();
    }
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    place.pellucid(&["verify", "app.bak", "--check"]).succeeded();
    place.pellucid(&["decrypt", "app.db"]).succeeded();
    assert_eq!(dump("app.db"), before);
    let rows = "SELECT a, s, v, w FROM t ORDER BY ln(a)";
    let told = [rows, "SELECT * FROM f4 WHERE x MATCH 'five'", "SELECT * FROM f5('five')"];
    for sql in told {
        let (whole, saved) = (place.sqlite3("app.db", sql), place.sqlite3("saved.db", sql));
        assert_eq!(whole.succeeded(), saved.succeeded(), "{sql}");
    }
}

const APPLICATION: &str = "
import sqlite3
db = sqlite3.connect('app.db')
db.create_function('twice', 1, lambda x: 2 * x, deterministic=True)
db.create_collation('REVERSE', lambda a, b: (a < b) - (a > b))
db.executescript('''CREATE TABLE plain(a INTEGER PRIMARY KEY, b); CREATE TABLE i(a, b); CREATE INDEX by_twice ON i(twice(a));
    CREATE TABLE c(a TEXT COLLATE reverse PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE k(a, CHECK (twice(a) > 0)); CREATE TABLE g(a, d AS (twice(a)) STORED)''')
for n in range(1, 400):
    db.execute('INSERT INTO plain VALUES(?, ?)', (n, 'a row of some length ' * 4))
    db.execute('INSERT INTO i VALUES(?, ?)', (n, 'x' * 40))
    db.execute('INSERT INTO c VALUES(?)', (str(n),))
    db.execute('INSERT INTO k VALUES(?)', (n,))
    db.execute('INSERT INTO g(a) VALUES(?)', (n,))
db.commit()
assert db.execute('PRAGMA integrity_check').fetchone() == ('ok',)
";

const LIBRARY: &str = "#include <sqlite3ext.h>\nSQLITE_EXTENSION_INIT1\n#include <string.h>\n\
static void twice(sqlite3_context *c, int n, sqlite3_value **v) { (void)n; \
sqlite3_result_int64(c, 2 * sqlite3_value_int64(v[0])); }\n\
static int reverse(void *p, int n, const void *a, int m, const void *b) { (void)p; int least = n < m ? n : m; \
int is = memcmp(b, a, (size_t)least); return is ? is : m - n; }\n\
int sqlite3_own_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) { (void)error; \
SQLITE_EXTENSION_INIT2(api); sqlite3_create_collation(db, \"REVERSE\", SQLITE_UTF8, 0, reverse); \
return sqlite3_create_function(db, \"twice\", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, 0, twice, 0, 0); }\n";

#[test]
fn what_only_the_application_has_is_no_damage() {
    let place = Place::new();
    let born = ["run", "--encrypt-new", "--", "/usr/bin/python3", "-c", APPLICATION];
    said(place.command(PELLUCID).args(born)).succeeded();
    let check = |more: &[&str]| -> Said {
        place.pellucid(&[&["--json", "check", "app.db"], more].concat())
    };
    let facts = |said: &Said| -> serde_json::Value { serde_json::from_str(&said.stdout).unwrap() };
    let told = check(&[]);
    assert_eq!(told.code, 4, "{told:?}");
    let found = facts(&told);
    assert!(found["clean"].as_bool().unwrap() && found["integrity_check"] == serde_json::json!([]));
    let unchecked = found["unchecked"].to_string();
    for part in ["`i`", "`c`", "twice", "REVERSE"] {
        assert!(unchecked.to_lowercase().contains(&part.to_lowercase()), "{part}: {unchecked}");
    }
    assert!(!unchecked.contains("`plain`"), "{unchecked}");
    let told = place.pellucid(&["check", "app.db"]);
    assert!(told.stdout.contains("clean") && !told.stdout.contains("DAMAGED"), "{told:?}");
    assert!(told.stdout.contains("--load FILE"), "{told:?}");
    // Where the bytes alone are asked for, nothing is left out.
    place.pellucid(&["check", "--physical-only", "app.db"]).succeeded();

    // With what has it, everything is checked.
    std::fs::write(place.path("own.c"), LIBRARY).unwrap();
    let library = place.compile_library(&place.path("own.c"), "own.so");
    let told = check(&["--load", library.to_str().unwrap()]);
    assert!(told.code == 0 && facts(&told)["unchecked"] == serde_json::json!([]), "{told:?}");

    // A backup of it is whole, and says that SQLite could not look.
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    place.pellucid(&["verify", "app.bak"]).succeeded();
    let told = place.pellucid(&["verify", "app.bak", "--check"]);
    assert!(
        told.code == 1 && told.stderr.contains("cannot check the restored database"),
        "{told:?}"
    );
    place.pellucid(&["rekey", "app.db"]).succeeded();

    // Damage is damage all the same.
    edit(&place.path("app.db"), |bytes| bytes[50_000] ^= 1);
    let told = place.pellucid(&["check", "app.db"]);
    assert!(told.code == 3 && told.stdout.contains("DAMAGED"), "{told:?}");
}
