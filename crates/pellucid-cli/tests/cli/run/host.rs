//! The programs that stand for all: what each is told to do with a database.

use std::path::PathBuf;

use super::workplace::need;

/// A language or tool with a SQLite of the system's.
pub struct Host {
    pub name: &'static str,
    program: (&'static str, &'static str),
    /// Options that make it run one line.
    options: &'static [&'static str],
    /// Adds row 4 to `t` of `{db}`, makes it if need be, and prints the sum.
    script: &'static str,
    /// The same after `{library}` was loaded by hand.
    loading: Option<&'static str>,
}

impl Host {
    pub fn program(&self) -> PathBuf {
        need(self.program.0, self.program.1)
    }

    pub fn arguments(&self, database: &str) -> Vec<String> {
        self.words(self.script, database, "")
    }

    pub fn arguments_loading(&self, database: &str, library: &str) -> Option<Vec<String>> {
        Some(self.words(self.loading?, database, library))
    }

    fn words(&self, script: &str, database: &str, library: &str) -> Vec<String> {
        let fill = |word: &str| word.replace("{db}", database).replace("{library}", library);
        let options = self.options.iter().copied();
        if self.name == "sqlite3" {
            return script.split('|').map(fill).collect();
        }
        options.chain([script]).map(fill).collect()
    }
}

pub const HOSTS: [Host; 5] = [
    Host {
        name: "sqlite3",
        program: ("/usr/bin/sqlite3", "sqlite3"),
        options: &[],
        script: "{db}|CREATE TABLE IF NOT EXISTS t(a INTEGER); INSERT INTO t VALUES (4); SELECT sum(a) FROM t",
        loading: Some(
            ":memory:|.load {library}|.open {db}|\
             CREATE TABLE IF NOT EXISTS t(a INTEGER); INSERT INTO t VALUES (4); SELECT sum(a) FROM t",
        ),
    },
    Host {
        name: "python3",
        program: ("/usr/bin/python3", "python3"),
        options: &["-c"],
        script: "
import sqlite3
with sqlite3.connect('{db}') as c:
    c.execute('CREATE TABLE IF NOT EXISTS t(a INTEGER)')
    c.execute('INSERT INTO t VALUES (4)')
print(c.execute('SELECT sum(a) FROM t').fetchone()[0])",
        loading: Some(
            "
import sqlite3
first = sqlite3.connect(':memory:')
first.enable_load_extension(True)
first.load_extension('{library}')
first.close()
with sqlite3.connect('file:{db}?vfs=pellucid', uri=True) as c:
    c.execute('INSERT INTO t VALUES (4)')
print(c.execute('SELECT sum(a) FROM t').fetchone()[0])",
        ),
    },
    Host {
        name: "perl",
        program: ("/usr/bin/perl", "perl libdbd-sqlite3-perl"),
        options: &["-MDBI", "-e"],
        script: "
my $d = DBI->connect('dbi:SQLite:{db}', '', '', {RaiseError => 1});
$d->do('CREATE TABLE IF NOT EXISTS t(a INTEGER)');
$d->do('INSERT INTO t VALUES (4)');
print $d->selectrow_array('SELECT sum(a) FROM t'), qq(\\n);",
        loading: Some(
            "
my $f = DBI->connect('dbi:SQLite::memory:', '', '', {RaiseError => 1});
$f->sqlite_enable_load_extension(1);
$f->sqlite_load_extension('{library}') or die;
my $d = DBI->connect('dbi:SQLite:{db}', '', '', {RaiseError => 1});
$d->do('INSERT INTO t VALUES (4)');
print $d->selectrow_array('SELECT sum(a) FROM t'), qq(\\n);",
        ),
    },
    Host {
        name: "php PDO",
        program: ("/usr/bin/php", "php-cli php-sqlite3"),
        options: &["-r"],
        script: "
$d = new PDO('sqlite:{db}');
$d->exec('CREATE TABLE IF NOT EXISTS t(a INTEGER)');
$d->exec('INSERT INTO t VALUES (4)');
echo $d->query('SELECT sum(a) FROM t')->fetchColumn(), PHP_EOL;",
        loading: None, // before PHP 8.4
    },
    Host {
        name: "php SQLite3",
        program: ("/usr/bin/php", "php-cli php-sqlite3"),
        options: &["-d", "sqlite3.extension_dir={library}/..", "-r"],
        script: "
$d = new SQLite3('{db}');
$d->exec('CREATE TABLE IF NOT EXISTS t(a INTEGER)');
$d->exec('INSERT INTO t VALUES (4)');
echo $d->querySingle('SELECT sum(a) FROM t'), PHP_EOL;",
        loading: Some(
            "
$f = new SQLite3(':memory:');
$f->loadExtension('libpellucid.so') or die(1);
$d = new SQLite3('{db}');
$d->exec('INSERT INTO t VALUES (4)');
echo $d->querySingle('SELECT sum(a) FROM t'), PHP_EOL;",
        ),
    },
];
