//! Goal: an application whose schema needs collations and functions of its own can encrypt its database from its own
//! connection, where `pellucid encrypt` refuses by name.
//!
//! Method: a stock python3 defines both (one replaces SQLite's own NOCASE), builds tables, indexes, a generated column
//! and a check upon them, loads the extension, and calls `pellucid_encrypt()`; a fresh connection compares every row and
//! runs SQLite's check, which finds an index in a wrong order.

use crate::support::{extension, said, Place, Said, PELLUCID};

const APPLICATION: &str = r#"
import sqlite3, sys
mode, extension, step = sys.argv[1:4]
back = lambda text: text[::-1].lower()
def connect(name, **options):
    db = sqlite3.connect(name, isolation_level=None, timeout=0.1, **options)
    db.create_collation('REVERSE', lambda a, b: (a < b) - (a > b))
    db.create_collation('NOCASE', lambda a, b: (back(a) > back(b)) - (back(a) < back(b)))
    db.create_function('half', 1, lambda x: None if x is None else x / 2, deterministic=True)
    return db
def rows(db):
    return [db.execute('SELECT * FROM ' + t).fetchall() for t in ('t', 'w', 't ORDER BY b, a', 't ORDER BY c, a')]
db = connect('app.db')
if step == 'make':
    db.execute('PRAGMA journal_mode = ' + mode)
    db.execute('''CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT COLLATE reverse, c TEXT COLLATE nocase,
                  d AS (half(a)) STORED, CHECK (half(a) < 1e9))''')
    db.execute('CREATE INDEX i ON t(b)')
    db.execute('CREATE INDEX j ON t(c)')
    db.execute('CREATE INDEX k ON t(half(a)) WHERE half(a) > 3')
    db.execute('CREATE TABLE w(k TEXT COLLATE reverse PRIMARY KEY, v) WITHOUT ROWID')
    made = [(str(i * 7919 % 1000), 'Ab' + str(i)) for i in range(3000)]
    db.executemany('INSERT INTO t(b, c) VALUES(?, ?)', made)
    db.executemany('INSERT OR IGNORE INTO w VALUES(?, ?)', made)
    sys.exit()
before = rows(db)
db.enable_load_extension(True)
db.load_extension(extension)
def refused(sql, why):
    try:
        db.execute(sql).fetchone()
    except sqlite3.Error as error:
        assert why in str(error), error
    else:
        raise AssertionError(sql)
if step == 'refused':
    db.execute('BEGIN')
    refused('SELECT pellucid_encrypt()', 'inside a transaction')
    db.execute('ROLLBACK')
    refused("SELECT pellucid_encrypt('nobody')", 'nobody')
    memory = sqlite3.connect(':memory:')
    memory.enable_load_extension(True)
    memory.load_extension(extension)
    memory.execute('CREATE VIEW v AS SELECT pellucid_encrypt()')
    for sql, why in ('SELECT pellucid_encrypt()', 'not a file'), ('SELECT * FROM v', 'unsafe use'):
        try:
            memory.execute(sql).fetchone()
        except sqlite3.Error as error:
            assert why in str(error), error
        else:
            raise AssertionError(sql)
    other = connect('app.db')
    other.execute('BEGIN IMMEDIATE')
    refused('SELECT pellucid_encrypt()', 'is in use')
    other.execute('ROLLBACK')
    assert rows(db) == before and db.execute('PRAGMA journal_mode').fetchone()[0] == mode
    sys.exit()
said = db.execute('SELECT pellucid_encrypt()').fetchone()[0]
assert said.startswith('encrypted'), said
refused('SELECT count(*) FROM t', 'file is not a database')
refused("INSERT INTO w VALUES('lost', 1)", 'file is not a database')
sealed = connect('file:app.db?vfs=pellucid', uri=True)
assert rows(sealed) == before
assert sealed.execute('PRAGMA integrity_check').fetchall() == [('ok',)]
assert sealed.execute('PRAGMA journal_mode').fetchone()[0] == mode
sealed.enable_load_extension(True)
sealed.load_extension(extension)
try:
    sealed.execute('SELECT pellucid_encrypt()').fetchone()
except sqlite3.Error as error:
    assert 'encrypted already' in str(error), error
else:
    raise AssertionError('encrypted twice')
"#;

fn application(place: &Place, mode: &str, step: &str) -> Said {
    let mut command = place.command("/usr/bin/python3");
    said(command.args(["-I", "-c", APPLICATION, mode, &extension(place), step]))
}

#[test]
fn an_application_encrypts_what_only_it_understands() {
    for mode in ["delete", "wal"] {
        let place = Place::new();
        application(&place, mode, "make").succeeded();
        let database = place.path("app.db");
        // The last row: long enough that chance does not put it into a sealed page.
        let has_text = |bytes: &[u8]| bytes.windows(8).any(|window| window == b"81Ab2999");
        assert!(has_text(&std::fs::read(&database).unwrap()), "{mode}");
        let before = place.snapshot();
        let told = place.pellucid(&["--json", "encrypt", "app.db"]);
        assert_eq!(told.code, 1, "{told:?}");
        for name in ["half", "reverse"] {
            assert!(told.stderr.to_lowercase().contains(name), "{told:?}");
        }
        assert_eq!(before[&database], place.snapshot()[&database], "{mode}: changed by a refusal");

        application(&place, mode, "encrypt").succeeded();
        let bytes = std::fs::read(&database).unwrap();
        assert!(bytes.starts_with(b"Pellucid "), "{mode}");
        assert!(!has_text(&bytes), "{mode}: plain text in it");
        let told = said(place.command(PELLUCID).args(["check", "app.db", "--physical-only"]));
        assert_eq!(told.code, 0, "{told:?}");
    }
}

#[test]
fn a_refusal_leaves_everything_as_it_was() {
    for mode in ["delete", "wal"] {
        let place = Place::new();
        application(&place, mode, "make").succeeded();
        place.sealed("other.db", &[]); // makes the keyring
        application(&place, mode, "refused").succeeded();
        assert!(std::fs::read(place.path("app.db")).unwrap().starts_with(b"SQLite format 3"));
        assert!(!place.path("app.db-pellucid").exists());
    }
}

/// Databases that SQLite names by a path, and that are not what lies there.
const NOT_THAT_FILE: &str = r#"
import os, sqlite3, sys
extension, step = sys.argv[1:3]
here = os.path.abspath('.')
def connect(name):
    db = sqlite3.connect(name, isolation_level=None, uri=True, timeout=0.1)
    db.enable_load_extension(True)
    db.load_extension(extension)
    return db
def is_refused(what, db):
    try:
        said = db.execute('SELECT pellucid_encrypt()').fetchone()
    except sqlite3.Error as error:
        assert 'not a file' in str(error), (what, error)
    else:
        raise AssertionError((what, said))
    paths = [row[0] for row in db.execute('SELECT path FROM pellucid_databases')]
    assert not [path for path in paths if os.path.basename(path) in ('x', 'y', 'z')], (what, paths)
if step == 'works':
    for vfs in 'unix', 'pellucid':
        sqlite3.connect('file:%s.db?vfs=unix' % vfs, uri=True).executescript('CREATE TABLE t(a)')
        db = connect('file:%s.db?vfs=%s' % (vfs, vfs))
        assert db.execute('SELECT pellucid_encrypt()').fetchone()[0].startswith('encrypted'), vfs
    sys.exit()
source = sqlite3.connect(':memory:')
source.executescript('CREATE TABLE t(a)')
db = connect(':memory:')
db.deserialize(source.serialize())
is_refused('deserialized', db)
db = connect('y')
db.deserialize(source.serialize())
is_refused('deserialized over a file', db)
for name in here + '/y', '/x', 'x', 'y':
    db = connect('file:%s?vfs=memdb' % name)
    db.execute('CREATE TABLE IF NOT EXISTS t(a)')
    is_refused('memdb, ' + name, db)
    # Somebody else in this process has that file open.
    beside = sqlite3.connect('y')
    beside.execute('SELECT * FROM innocent').fetchall()
    is_refused('memdb beside, ' + name, db)
    beside.close()
for name in 'file::memory:?cache=shared', 'file:z?mode=memory', 'file:y?mode=memory&cache=shared', '':
    db = connect(name)
    db.execute('CREATE TABLE IF NOT EXISTS t(a)')
    db.execute('ATTACH ? AS other', ('file:%s/y?vfs=memdb' % here,))
    is_refused(name, db)
# The file has another name by now, and another file has its.
for vfs in 'unix', 'unix-none', 'unix-dotfile', 'unix&nolock=1', 'pellucid', 'pellucid&nolock=1':
    sqlite3.connect('file:z?vfs=unix', uri=True).executescript('CREATE TABLE t(a)')
    db = connect('file:z?vfs=' + vfs)
    db.execute('SELECT * FROM t').fetchall()
    os.rename('z', 'moved')
    sqlite3.connect('file:z?vfs=unix', uri=True).executescript('CREATE TABLE innocent(a)')
    is_refused('moved, ' + vfs, db)
    db.close()
    for name in 'z', 'moved':
        assert open(name, 'rb').read(6) == b'SQLite', (vfs, name)
        os.remove(name)
"#;

#[test]
fn no_file_is_encrypted_but_the_one_that_the_connection_has() {
    let place = Place::new();
    place.pellucid(&["cert", "create", "pellucid"]).succeeded();
    for name in ["x", "y"] {
        place.sqlite3(name, "CREATE TABLE innocent(a)").succeeded();
    }
    for step in ["refused", "works"] {
        let before = ["x", "y"].map(|name| std::fs::read(place.path(name)).unwrap());
        let mut command = place.command("/usr/bin/python3");
        said(command.args(["-I", "-c", NOT_THAT_FILE, &extension(&place), step])).succeeded();
        let after = ["x", "y"].map(|name| std::fs::read(place.path(name)).unwrap());
        assert_eq!(before, after, "{step}");
    }
}
