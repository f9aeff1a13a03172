//! Goal: Debian's own sqlite3, python3, Perl's DBD::SQLite and PHP's PDO work over a sealed database as they are.
//!
//! Method: each program runs the same statements over the same sealed file, in WAL and in DELETE mode, through
//! `pellucid run`, and where the program allows it with the extension loaded by itself. It has to read the rows
//! that were there before encryption and to write; afterwards `pellucid check` is clean, and the decrypted copy read
//! by plain sqlite3 equals a plain twin on which plain sqlite3 did the same. New databases made with `--encrypt-new`
//! are sealed. A program that is not there fails the test, by the name of its Debian package.

use std::path::Path;

use crate::support::{extension, said, Place, Said, PELLUCID};

const KEY: &str = "right.key";
/// What every program does; `changes` of the last one is 1.
const WRITE: &str = "BEGIN; INSERT INTO t SELECT a + 1000, b || 'x' FROM t WHERE a <= 100; \
    UPDATE t SET b = b || '!' WHERE a % 7 = 0; DELETE FROM t WHERE a = 13; COMMIT";
const READ: &str = "SELECT count(*) || '/' || sum(a) || '/' || sum(length(b)) FROM t";

/// A command line for: database name, statements, query.
type CommandLine = fn(&str, &str, &str) -> Vec<String>;

/// A program of the distribution.
struct Program {
    path: &'static str,
    package: &'static str,
    /// Prints the one value of the query.
    arguments: CommandLine,
    /// Arguments that have it load the extension first; none if it cannot. `%EXT%` and `%DIR%` stand for the path.
    loading: Option<CommandLine>,
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

const PYTHON: &str = "
import sqlite3, sys
name, write, read = sys.argv[1:4]
if len(sys.argv) > 4:
    loader = sqlite3.connect(':memory:')
    loader.enable_load_extension(True)
    loader.load_extension(sys.argv[4])
    loader.close()
db = sqlite3.connect(name, uri=True, isolation_level=None)
for statement in write.split(';'):
    db.execute(statement)
print(db.execute(read).fetchone()[0])
";

const PERL: &str = "
use strict; use DBI; use DBD::SQLite;
my ($name, $write, $read, $extension) = @ARGV;
if ($extension) {
    my $loader = DBI->connect('dbi:SQLite:dbname=:memory:', '', '', { RaiseError => 1 });
    $loader->sqlite_enable_load_extension(1);
    $loader->sqlite_load_extension($extension);
}
my $dsn = $name =~ /^file:/ ? \"dbi:SQLite:uri=$name\" : \"dbi:SQLite:dbname=$name\";
my $db = DBI->connect($dsn, '', '', { RaiseError => 1, AutoCommit => 1 });
$db->do($_) for split /;/, $write;
print $db->selectrow_array($read), qq(\\n);
$db->disconnect;
";

const PDO: &str = "
[$_, $name, $write, $read] = $argv;
$db = new PDO('sqlite:' . $name, null, null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
foreach (explode(';', $write) as $statement) $db->exec($statement);
echo $db->query($read)->fetchColumn(), PHP_EOL;
";

/// PDO cannot load extensions; once SQLite3 has, in the same process, PDO can use the VFS.
const PHP_LOADING: &str = "
[$_, $name, $write, $read, $extension] = $argv;
$loader = new SQLite3(':memory:');
if (!$loader->loadExtension(basename($extension))) exit(9);
$db = new PDO('sqlite:' . $name, null, null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
foreach (explode(';', $write) as $statement) $db->exec($statement);
echo $db->query($read)->fetchColumn(), PHP_EOL;
";

const PROGRAMS: [Program; 4] = [
    Program {
        path: "/usr/bin/sqlite3",
        package: "sqlite3",
        arguments: |name, write, read| words(&["-batch", name, write, read]),
        loading: Some(|name, write, read| {
            let open = format!(".open {name}");
            words(&["-batch", "-cmd", ".load %EXT%", "-cmd", &open, ":memory:", write, read])
        }),
    },
    Program {
        path: "/usr/bin/python3",
        package: "python3",
        arguments: |name, write, read| words(&["-c", PYTHON, name, write, read]),
        loading: Some(|name, write, read| words(&["-c", PYTHON, name, write, read, "%EXT%"])),
    },
    Program {
        path: "/usr/bin/perl",
        package: "libdbd-sqlite3-perl",
        arguments: |name, write, read| words(&["-e", PERL, name, write, read]),
        loading: Some(|name, write, read| words(&["-e", PERL, name, write, read, "%EXT%"])),
    },
    Program {
        path: "/usr/bin/php",
        package: "php-sqlite3",
        arguments: |name, write, read| words(&["-r", PDO, "--", name, write, read]),
        loading: Some(|name, write, read| {
            let directory = "sqlite3.extension_dir=%DIR%";
            words(&["-d", directory, "-r", PHP_LOADING, "--", name, write, read, "%EXT%"])
        }),
    },
];

impl Program {
    fn check_present(&self, place: &Place) {
        let probe: &[&str] = match self.package {
            "libdbd-sqlite3-perl" => &["-MDBD::SQLite", "-e", "1"],
            "php-sqlite3" => &["-r", "exit(extension_loaded('pdo_sqlite') ? 0 : 1);"],
            _ => &["--version"],
        };
        let there =
            Path::new(self.path).exists() && said(place.command(self.path).args(probe)).code == 0;
        assert!(there, "`{}` cannot be tested: `apt install {}`", self.path, self.package);
    }

    fn through_run(&self, place: &Place, options: &[&str], name: &str, write: &str) -> Said {
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_KEY_FILE", KEY).arg("run").args(options).args(["--", self.path]);
        said(command.args((self.arguments)(name, write, READ)))
    }

    fn through_extension(&self, place: &Place, name: &str) -> Option<Said> {
        let library = extension(place);
        let directory = Path::new(&library).parent().unwrap().to_str().unwrap();
        let uri = format!("file:{name}?vfs=pellucid");
        let arguments: Vec<_> = (self.loading?)(&uri, WRITE, READ)
            .iter()
            .map(|word| word.replace("%EXT%", &library).replace("%DIR%", directory))
            .collect();
        let mut command = place.command(self.path);
        Some(said(command.env("PELLUCID_KEY_FILE", KEY).args(arguments)))
    }
}

/// A sealed database in `mode`, and its plain twin on which plain sqlite3 did the same.
fn twins(mode: &str) -> (Place, String) {
    let place = Place::new();
    place.secret(KEY, &[7; 32]);
    place.plain("app.db");
    place.sqlite3("app.db", &format!("PRAGMA journal_mode = {mode}")).succeeded();
    std::fs::copy(place.path("app.db"), place.path("twin.db")).unwrap();
    place.pellucid(&["encrypt", "app.db", "--key-file", KEY]).succeeded();
    let answer = place.sqlite3("twin.db", &format!("{WRITE}; {READ}")).succeeded();
    (place, answer)
}

/// Sealed and clean; decrypted, it is the twin.
fn compare(place: &Place, mode: &str, what: &str) {
    let bytes = std::fs::read(place.path("app.db")).unwrap();
    assert!(!bytes.windows(7).any(|window| window == b"row 42 "), "{what}: plain text in it");
    place.pellucid(&["check", "app.db", "--key-file", KEY]).succeeded();
    place.pellucid(&["decrypt", "app.db", "--key-file", KEY]).succeeded();
    let dump = |name: &str| place.sqlite3(name, ".dump").succeeded();
    assert!(dump("app.db") == dump("twin.db"), "{what}: the dumps differ");
    let kept = place.sqlite3("app.db", "PRAGMA journal_mode").succeeded();
    assert_eq!(kept.trim().to_uppercase(), mode, "{what}");
}

fn works(program: &Program) {
    program.check_present(&Place::new());
    for mode in ["WAL", "DELETE"] {
        let what = format!("{} through run, {mode}", program.path);
        let (place, answer) = twins(mode);
        let told = program.through_run(&place, &[], "app.db", WRITE);
        assert_eq!((told.code, &told.stdout), (0, &answer), "{what}: {told:?}");
        assert_eq!(told.stderr, "", "{what}");
        compare(&place, mode, &what);

        let what = format!("{} with the extension, {mode}", program.path);
        let (place, answer) = twins(mode);
        let Some(told) = program.through_extension(&place, "app.db") else { continue };
        assert_eq!((told.code, &told.stdout), (0, &answer), "{what}: {told:?}");
        compare(&place, mode, &what);
    }
    makes_sealed_databases(program);
}

fn makes_sealed_databases(program: &Program) {
    let place = Place::new();
    place.secret(KEY, &[7; 32]);
    let write = "CREATE TABLE t(a, b); INSERT INTO t VALUES(5, 'a text to be found')";
    let told = program.through_run(&place, &["--encrypt-new"], "new.db", write);
    assert_eq!((told.code, told.stdout.trim()), (0, "1/5/18"), "{}: {told:?}", program.path);
    let bytes = std::fs::read(place.path("new.db")).unwrap();
    assert!(bytes.starts_with(b"Pellucid "), "{}: new.db is not sealed", program.path);
    assert!(!bytes.windows(6).any(|window| window == b"a text"), "{}", program.path);
    place.pellucid(&["check", "new.db", "--key-file", KEY]).succeeded();
    assert_ne!(place.sqlite3("new.db", READ).code, 0, "{}: open without a key", program.path);
}

#[test]
fn sqlite3_works() {
    works(&PROGRAMS[0]);
}

#[test]
fn python3_works() {
    works(&PROGRAMS[1]);
}

#[test]
fn perl_works() {
    works(&PROGRAMS[2]);
}

#[test]
fn php_works() {
    works(&PROGRAMS[3]);
}
