//! The Python package: its errors say what the shim said, in every way in which Python raises them.

use std::path::Path;
use std::process::{Command, Output};

use super::workplace::{answer, library, need, text, Workplace};

/// The Python package over the library of this build.
pub fn wheel(place: &Workplace, script: &str) -> Output {
    let python = need("/usr/bin/python3", "python3");
    python_of(&mut place.command(python), script)
}

/// The same behind `pellucid run`.
fn under_run(place: &Workplace, script: &str) -> Output {
    let python = need("/usr/bin/python3", "python3");
    python_of(place.pellucid(&["run", "--"]).arg(python), script)
}

fn python_of(command: &mut Command, script: &str) -> Output {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/python");
    let script = format!(
        "import sqlite3, pellucid\npellucid.extension = lambda: {:?}\n{script}",
        library().to_str().unwrap()
    );
    command.env("PYTHONPATH", package).args(["-c", &script]).output().unwrap()
}

/// `app.db`, sealed, with rows on many pages, one of which is damaged.
fn place() -> Workplace {
    let place = Workplace::new();
    let rows = "CREATE TABLE t(a); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000)
                INSERT INTO t SELECT n || hex(zeroblob(50)) FROM c";
    let sqlite3 = need("/usr/bin/sqlite3", "sqlite3");
    let made = place.command(sqlite3).args(["app.db", rows]).output().unwrap();
    assert!(made.status.success(), "{}", text(&made));
    assert!(place.pellucid(&["encrypt", "app.db"]).status().unwrap().success());
    std::fs::copy(place.path("app.db"), place.path("whole.db")).unwrap();
    let mut bytes = std::fs::read(place.path("app.db")).unwrap();
    bytes[16384 + 20 * 4096 + 100] ^= 1;
    std::fs::write(place.path("app.db"), bytes).unwrap();
    place
}

#[test]
fn its_errors_say_what_the_shim_said() {
    let place = place();
    let page = "app.db`: page 21";
    // The error of the script is raised by `do`, of the given class, and has these words.
    for (what, first, does, words) in [
        (
            "execute",
            "c = pellucid.connect('app.db')",
            "c.execute('SELECT count(a||1) FROM t')",
            page,
        ),
        (
            "fetchall",
            "c = pellucid.connect('app.db'); k = c.execute('SELECT a FROM t')",
            "k.fetchall()",
            page,
        ),
        (
            "a loop",
            "c = pellucid.connect('app.db'); k = c.cursor(); k.execute('SELECT a FROM t')",
            "list(k)",
            page,
        ),
        (
            "fetchmany",
            "c = pellucid.connect('app.db'); k = c.cursor(); k.execute('SELECT a FROM t')",
            "k.fetchmany(5000)",
            page,
        ),
        (
            "executescript",
            "c = pellucid.connect('app.db')",
            "c.executescript('CREATE TEMP TABLE u AS SELECT a FROM t')",
            page,
        ),
        (
            "executemany",
            "c = pellucid.connect('app.db')",
            "c.executemany('UPDATE t SET a = a || ?', [(1,)])",
            page,
        ),
        (
            "backup",
            "c = pellucid.connect('app.db'); d = pellucid.connect('to.db')",
            "c.backup(d)",
            page,
        ),
        (
            "another thread",
            "import threading; c = pellucid.connect('app.db', check_same_thread=False)",
            "raises_in_thread(lambda: c.execute('SELECT count(a||1) FROM t'))",
            page,
        ),
        (
            "a header that is damaged twice",
            "b = open('whole.db', 'rb').read(); open('torn.db', 'wb').write(b[:4096] + bytes(12288) + b[16384:])",
            "pellucid.connect('torn.db').execute('SELECT 1 FROM sqlite_schema')",
            "torn.db`: container: ",
        ),
        (
            "a plain one where sealed is wanted",
            "sqlite3.connect('file:plain.db?vfs=unix', uri=True).execute('CREATE TABLE t(a)')",
            "pellucid.connect('plain.db', require_sealed=True).execute('SELECT * FROM t')",
            "plain.db",
        ),
        (
            "no certificate",
            "import os; os.mkdir('none'); os.environ['PELLUCID_HOME'] = 'none'",
            "pellucid.connect('whole.db').execute('SELECT * FROM t')",
            "certificate",
        ),
    ] {
        let script = format!(
            "
def raises_in_thread(work):
    import threading
    raised = []
    def catches():
        try:
            work()
        except sqlite3.Error as error:
            raised.append(error)
    thread = threading.Thread(target=catches)
    thread.start()
    thread.join()
    raise raised[0]
{first}
try:
    {does}
except sqlite3.DatabaseError as error:
    print('said', error)
else:
    print('no error')
"
        );
        let output = wheel(&place, &script);
        let told = text(&output);
        assert!(output.status.success() && told.contains("said "), "{what}: {told}");
        assert!(told.contains(words), "{what}: {told}");
    }
}

/// What was said of one error is said of no other.
#[test]
fn its_other_errors_are_pythons_own() {
    let place = place();
    let script = "
c = pellucid.connect('app.db')
# Raised past the package, which never takes what was said of it.
plain = sqlite3.connect('file:app.db?vfs=pellucid', uri=True)
for connection in c, plain:
    try:
        connection.execute('SELECT count(a||1) FROM t')
    except sqlite3.DatabaseError as error:
        print('said', error)
for statement in 'SELECT * FROM nothing', 'SELECT * FROM t WHERE', 'CREATE TABLE t(a)':
    try:
        c.execute(statement)
    except sqlite3.OperationalError as error:
        print('own', error)
try:
    with c:
        c.execute('CREATE TEMP TABLE u(a UNIQUE)')
        c.execute('INSERT INTO u VALUES(1), (1)')
except sqlite3.IntegrityError as error:
    print('own', error)
class Mine(sqlite3.Connection):
    pass
print(type(pellucid.connect('whole.db', factory=Mine)).__name__, type(c.cursor(sqlite3.Cursor)).__name__)
";
    let output = wheel(&place, script);
    let told = text(&output);
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("page 21").count(), 1, "{told}");
    let own: Vec<_> = told.lines().filter(|line| line.starts_with("own ")).collect();
    assert_eq!(own.len(), 4, "{told}");
    assert!(own.iter().all(|line| !line.contains("app.db")), "{told}");
    assert!(told.contains("Mine Cursor"), "{told}");
}

/// A Python whose sqlite3 loads no extensions, as pyenv builds it: under `pellucid run` the package has what it needs.
#[test]
fn a_python_without_extensions_has_the_preloaded_one() {
    let place = place();
    let script = "
import functools
class Without(sqlite3.Connection):
    enable_load_extension = property()
sqlite3.connect = functools.partial(sqlite3.connect, factory=Without)
try:
    print(pellucid.connect('whole.db', require_sealed=True).execute('SELECT count(*) FROM t').fetchone())
    new = pellucid.connect('new.db')
    new.execute('CREATE TABLE t(a)')
    new.close()
except sqlite3.NotSupportedError as error:
    print('said', error)
";
    let alone = text(&wheel(&place, script));
    assert!(alone.contains("said ") && alone.contains("-m pellucid run -- python3"), "{alone}");
    assert!(!place.path("new.db").exists(), "{alone}");

    // Of another version, which may not know what the package asks for.
    std::fs::copy(library(), place.path("other.so")).unwrap();
    let other = format!("pellucid.extension = lambda: 'other.so'\n{script}");
    let other = text(&under_run(&place, &other));
    assert!(other.contains("said ") && !place.path("new.db").exists(), "{other}");

    let output = under_run(&place, script);
    assert_eq!(answer(&output), "(2000,)", "{}", text(&output));
    assert!(place.is_sealed("new.db"));
}
