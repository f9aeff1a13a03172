//! Goal: a path where the keyring has seen an encrypted database becomes, unasked, nothing less than that; and what people do
//! with their files every day works as before.
//!
//! Method: the guide's two tables, "What is refused" and "What works", and the cases here have the same titles, row by row. A
//! case is a list of shell commands in a place of its own. What a line begins with says how it has to end: `+` in silence,
//! `~` done and told, `!` refused with the command that accepts; without a mark, done.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use crate::support::{said, Place, Said, PELLUCID};

/// `sealed NAME`: an encrypted database with a row `NAME`. `db`: a program under `run`. `new`: one whose new databases are sealed.
/// `put NAME FILE`: the bytes of FILE into NAME, which keeps its inode.
const WORDS: &str = r#"
export PATH=$BIN:/usr/bin:/bin
p() { pellucid --quiet --yes "$@"; }
sealed() { /usr/bin/sqlite3 "$1" "CREATE TABLE note(t); INSERT INTO note VALUES('$1')" && p encrypt "$1" 2>/dev/null; }
plain() { /usr/bin/sqlite3 "$1" "CREATE TABLE note(t); INSERT INTO note VALUES('planted')"; }
db() { pellucid run -- sqlite3 -batch "$@"; }
new() { pellucid run --encrypt-new -- sqlite3 -batch "$@"; }
row() { db "$1" "SELECT t FROM note LIMIT 1" | grep -qx "$2"; }
put() { cat "$2" > "$1"; }
ADD="INSERT INTO note VALUES('TOP-SECRET')"
MAKE="CREATE TABLE IF NOT EXISTS note(t); $ADD"
"#;

/// What is refused: title, commands.
const REFUSED: &[(&str, &str)] = &[
    ("emptied", "sealed a.db\n: > a.db\n! db a.db \"$MAKE\"\n! db a.db 'SELECT * FROM sqlite_schema'"),
    (
        "cut to its header",
        "sealed a.db\nrow a.db a.db\nhead -c 16384 a.db > cut\nput a.db cut\n! db a.db \"$MAKE\"\n! db a.db 'SELECT * FROM sqlite_schema'\n! p check a.db",
    ),
    (
        "cut to its header, where `file_id=` names it",
        "sealed a.db\nid=$(pellucid --json status a.db | tr ',' '\\n' | sed -n 's/.*\"file_id\": *\"\\([0-9a-f]*\\)\".*/\\1/p' | head -1)\nhead -c 16384 a.db > cut.db\n= 'is asked for' db \"file:cut.db?file_id=$id\" 'SELECT * FROM sqlite_schema'",
    ),
    ("removed", "sealed a.db\nrm a.db\n! db a.db \"$MAKE\""),
    ("a plain file renamed over it", "sealed a.db\nplain b.db\nmv b.db a.db\n! db a.db \"$ADD\"\n! db a.db 'SELECT * FROM note'\n! p decrypt a.db\n! p sql -b -r1 -Q 'ALTER DATABASE a SET ENCRYPTION OFF'\n! p sql -b -r1 -Q 'ALTER DATABASE a SET ENCRYPTION ON'"),
    ("a plain file written into it", "sealed a.db\nplain b.db\nput a.db b.db\n! db a.db \"$ADD\""),
    ("a plain file, and new databases are sealed", "sealed a.db\nplain b.db\nmv b.db a.db\n! new a.db \"$ADD\""),
    ("a symbolic link to a plain file", "sealed a.db\nplain b.db\nrm a.db\nln -s b.db a.db\n! db a.db \"$ADD\""),
    (
        "its directory exchanged for a link",
        "mkdir d e\nsealed d/a.db\nplain e/a.db\nmv d f\nln -s e d\n! db d/a.db \"$ADD\"",
    ),
    ("a plain file, attached", "sealed a.db\nplain b.db\nmv b.db a.db\n! db :memory: \"ATTACH 'a.db' AS a; INSERT INTO a.note VALUES('TOP-SECRET')\""),
    ("a plain file, encrypted by the administrator", "sealed a.db\nplain b.db\nmv b.db a.db\n! p encrypt a.db"),
    ("a plain file at a path that it was moved away from", "sealed a.db\nmv a.db b.db\n+ row b.db a.db\nplain a.db\n! db a.db \"$ADD\""),
    (
        "its file of when encryption was switched off",
        "sealed a.db\np decrypt --keep-container a.db\ncp a.db off\np encrypt a.db\nput a.db off\n= 'older header' db a.db \"$ADD\"",
    ),
    (
        "another database whose encryption is switched off",
        "sealed a.db\nsealed b.db\np decrypt --keep-container b.db\nput a.db b.db\n! db a.db \"$ADD\"\n! db a.db 'SELECT * FROM note'",
    ),
    (
        "its file of before its protectors changed",
        "sealed a.db\ncp a.db old\nhead -c 32 /dev/zero > k; chmod 600 k\np protector add a.db --new-key-file k\nput a.db old\n! db a.db \"$ADD\"\n! db a.db 'SELECT * FROM note'",
    ),
    ("its file of before a rekey", "sealed a.db\ncp a.db old\np rekey a.db\nput a.db old\n! db a.db \"$ADD\""),
    ("its file of before a rekey, elsewhere", "sealed a.db\ncp a.db old.db\np rekey a.db\n! db old.db 'SELECT * FROM note'"),
    (
        "its file of before a rekey, and what accepts it",
        "sealed a.db\ncp a.db old\np rekey a.db\nput a.db old\np accept a.db\nrow a.db a.db\n= readonly db a.db \"$ADD\"\np accept --rekey a.db\n+ db a.db \"$ADD\"",
    ),
    (
        "another database in the place of the instance's own `msdb.db` or `master.db`, whatever the policy",
        "sealed a.db\np sql -Q 'CREATE TABLE t(n int)'\nput keys/master.db a.db\n= 'not sealed under the key' pellucid sql -b -r1 -Q 'SELECT n FROM t'\nput keys/msdb.db a.db\n= 'not sealed under the key' pellucid sql -b -r1 -Q 'SELECT 1'\n= 'not sealed under the key' pellucid agent --once\n= 'not sealed under the key' pellucid history",
    ),
    (
        "another database, where the instance is strict",
        "sealed a.db\nsealed b.db\np policy set strict-paths on\nput a.db b.db\n! db a.db 'SELECT * FROM note'\np accept a.db\n+ row a.db b.db",
    ),
    (
        "a copy of it whose encryption was switched off",
        "sealed a.db\ncp a.db copy.db\np decrypt --keep-container copy.db\nput a.db copy.db\n! db a.db \"$ADD\"",
    ),
    (
        "the database of before a restore put back",
        "sealed a.db\ncp a.db old\np backup a.db --to a.bak\np restore a.bak --to a.db --replace\nput a.db old\n! db a.db \"$ADD\"",
    ),
    (
        "a rekey of a copy that would stop the original",
        "sealed a.db\ncp a.db b.db\nrow b.db a.db\n= 'under the same key' pellucid --quiet rekey b.db\n+ db a.db \"$ADD\"",
    ),
    ("a relative name, its directory exchanged for a link", "mkdir d e\nsealed $PWD/d/a.db\n( cd d; db a.db 'SELECT * FROM note' )\nplain e/a.db\nmv d f; ln -s e d\n! ( cd d; db a.db \"$ADD\" )"),
    ("a new database where `file_id=` names one", "= 'is asked for' new 'file:a.db?file_id=00112233445566778899aabbccddeeff' \"$MAKE\""),
    ("an instance that others can exchange", "sealed a.db\n: > a.db\nchmod 777 keys\n= 'may write' db a.db \"$MAKE\""),
    ("an unreadable pin", "sealed a.db\nfor f in keys/keyring/paths/*; do : > $f; done\n= keyring db a.db 'SELECT * FROM note'"),
    ("another file id than `file_id=` names", "sealed a.db\n= 'is asked for' db 'file:a.db?file_id=00112233445566778899aabbccddeeff' 'SELECT * FROM note'"),
    (
        "another file id than `PELLUCID_PIN` names",
        "sealed a.db\n= 'is asked for' env PELLUCID_PIN=00112233445566778899aabbccddeeff pellucid run -- sqlite3 a.db 'SELECT * FROM note'",
    ),
    ("a plain file where `PELLUCID_PIN` names a file id", "plain a.db\n= 'is asked for' env PELLUCID_PIN=00112233445566778899aabbccddeeff pellucid run -- sqlite3 a.db 'SELECT * FROM note'"),
    (
        "a database switched off elsewhere, under `--require-sealed`",
        "sealed a.db\np decrypt --keep-container a.db\ncp a.db b.db\n= 'switched off' pellucid run --require-sealed -- sqlite3 b.db 'SELECT * FROM note'\n= 'switched off' pellucid run --require-sealed -- sqlite3 a.db \"$ADD\"",
    ),
];

/// What works: title, commands.
const WORKS: &[(&str, &str)] = &[
    ("open, read, write", "sealed a.db\n+ db a.db \"$ADD\"\n+ row a.db a.db"),
    ("removed and made anew, sealed from birth", "new a.db \"$MAKE\"\nrm a.db\nnew a.db \"$MAKE\"\nrm a.db\nnew a.db \"$MAKE\""),
    ("emptied and made anew, sealed from birth", "new a.db \"$MAKE\"\n: > a.db\nnew a.db \"$MAKE\""),
    ("renamed", "sealed a.db\nmv a.db b.db\n+ row b.db a.db\n+ db b.db \"$ADD\""),
    ("renamed and back", "sealed a.db\nmv a.db b.db\n+ row b.db a.db\nmv b.db a.db\n+ row a.db a.db"),
    ("another encrypted database renamed over it", "sealed a.db\nsealed b.db\nmv b.db a.db\n~ db a.db \"$ADD\"\n~ row a.db b.db\np accept a.db\n+ row a.db b.db"),
    ("saved by writing another file and renaming it", "new a.db \"$MAKE\"\nnew a.tmp \"$MAKE\"\nmv a.tmp a.db\n~ db a.db 'SELECT * FROM note'"),
    ("two exchanged by their names", "sealed a.db\nsealed b.db\nmv a.db c; mv b.db a.db; mv c b.db\n~ row a.db b.db\n~ row b.db a.db"),
    ("copied", "sealed a.db\ncp a.db b.db\n+ db b.db \"$ADD\"\n+ db a.db \"$ADD\""),
    ("copied into another directory, with all that is beside it", "mkdir d\nsealed a.db\ncp -a a.db d\n+ row d/a.db a.db"),
    ("yesterday's file copied back, no key changed since", "sealed a.db\ncp a.db old\ndb a.db \"$ADD\"\nput a.db old\n+ row a.db a.db"),
    ("yesterday's file renamed back, no key changed since", "sealed a.db\ncp a.db old\ndb a.db \"$ADD\"\nmv old a.db\n+ row a.db a.db"),
    (
        "yesterday's file copied back, a key changed since",
        "sealed a.db\ncp a.db old\nhead -c 32 /dev/zero > k; chmod 600 k\np protector add a.db --new-key-file k\nput a.db old\n! row a.db a.db\np accept a.db\n+ db a.db \"$ADD\"",
    ),
    ("a hard link to it", "sealed a.db\nln a.db b.db\n+ row b.db a.db\n+ row a.db a.db"),
    ("a symbolic link to it", "sealed a.db\nln -s a.db l.db\n+ db l.db \"$ADD\"\n+ row a.db a.db"),
    ("a directory that is a symbolic link", "mkdir d\nsealed d/a.db\nln -s d e\n+ db e/a.db \"$ADD\"\n+ row d/a.db d/a.db"),
    ("the directory renamed", "mkdir d\nsealed d/a.db\ndb d/a.db \"$ADD\"\nmv d e\n+ row e/a.db d/a.db"),
    (
        "two releases, and a link that is turned",
        "mkdir 1 2\nsealed 1/a.db\nsealed 2/a.db\nln -s 1 now\n+ row now/a.db 1/a.db\nln -sfn 2 now\n~ row now/a.db 2/a.db\np accept now/a.db\n+ row now/a.db 2/a.db",
    ),
    ("a relative name, and another one from elsewhere", "mkdir d\nsealed d/a.db\n( cd d && row a.db d/a.db )\n+ row ./d/../d/a.db d/a.db"),
    ("decrypted", "sealed a.db\np decrypt a.db\n+ db a.db \"$ADD\""),
    ("decrypted and encrypted again", "sealed a.db\np decrypt a.db\np encrypt a.db\n+ db a.db \"$ADD\"\nrm a.db\n! db a.db \"$MAKE\""),
    ("switched off and on", "sealed a.db\np decrypt --keep-container a.db\n+ db a.db \"$ADD\"\np encrypt a.db\n+ db a.db \"$ADD\""),
    ("switched off, and read where a sealed one is required", "sealed a.db\np decrypt --keep-container a.db\npellucid run --require-sealed -- sqlite3 a.db 'SELECT * FROM note'"),
    (
        "rekeyed, where the instance is strict",
        "sealed a.db\np policy set strict-paths on\np rekey a.db\n+ db a.db \"$ADD\"\np rekey a.db\n+ db a.db \"$ADD\"\np backup a.db --to a.bak\np restore a.bak --to a.db --replace\n+ db a.db \"$ADD\"\np rekey a.db --new-id\n+ db a.db \"$ADD\"\np decrypt --keep-container a.db\n+ db a.db \"$ADD\"\np encrypt a.db\n+ db a.db \"$ADD\"",
    ),
    ("rekeyed", "sealed a.db\np rekey a.db\n+ db a.db \"$ADD\"\np rekey a.db\n+ db a.db \"$ADD\""),
    ("a copy gets a file id of its own", "sealed a.db\ncp a.db b.db\np rekey b.db --new-id\n+ db b.db \"$ADD\"\n+ db a.db \"$ADD\""),
    ("protectors changed", "sealed a.db\nhead -c 32 /dev/zero > k; chmod 600 k\np protector add a.db --new-key-file k\n+ row a.db a.db\np rewrap a.db --certificate pellucid\n+ row a.db a.db"),
    ("restored over it", "sealed a.db\np backup a.db --to a.bak\ndb a.db \"$ADD\"\np restore a.bak --to a.db --replace\n+ row a.db a.db"),
    ("removed and restored", "sealed a.db\np backup a.db --to a.bak\nrm a.db\np restore a.bak --to a.db\n+ db a.db \"$ADD\""),
    ("restored beside it, and renamed over it", "sealed a.db\np backup a.db --to a.bak\np restore a.bak --to b.db\nmv b.db a.db\n~ row a.db a.db"),
    ("restored in clear, as asked for", "sealed a.db\np backup a.db --to a.bak\nrm a.db\np restore a.bak --to a.db --decrypted\n+ db a.db \"$ADD\""),
    ("a damaged one salvaged, and renamed over it", "sealed a.db\np salvage a.db --to b.db\nmv b.db a.db\n~ row a.db a.db"),
    ("VACUUM, another page size, another journal mode", "sealed a.db\n+ db a.db 'PRAGMA page_size = 8192; VACUUM'\n+ db a.db 'PRAGMA journal_mode = WAL'\n+ db a.db \"$ADD\"\n+ row a.db a.db"),
    ("many at once, made in one home", "for i in 1 2 3 4 5 6 7 8; do mkdir t$i; new t$i/a.db \"$MAKE\" & done; wait\nfor i in 1 2 3 4 5 6 7 8; do row t$i/a.db TOP-SECRET || exit 1; done"),
    ("many at once, opened at one path", "sealed a.db\ndb a.db 'PRAGMA journal_mode = WAL'\nfor i in 1 2 3 4 5 6 7 8; do row a.db a.db & done; wait\n+ row a.db a.db"),
    ("a test's directory removed, and another test's made in its place", "mkdir t\nnew t/a.db \"$MAKE\"\nrm -r t; mkdir t\n! db t/a.db \"$MAKE\"\nrm -rf t; p accept --gone --under .\nmkdir t\n+ db t/a.db \"$MAKE\""),
    ("a copy of it where the keyring does not know it", "sealed a.db\ncp -a keys keys2; rm -r keys2/keyring/paths keys2/keyring/databases; mkdir keys2/keyring/databases\nexport PELLUCID_HOME=$PWD/keys2\n+ row a.db a.db"),
    ("the keyring of before a key change put back", "sealed a.db\ncp -a keys old\np rekey a.db\nrm -r keys; mv old keys\n+ db a.db \"$ADD\""),
    ("a keyring restored from its bundle", "sealed a.db\nprintf 'A Pa55word, long' > w; chmod 600 w\np instance export --to k.bundle --password-file w\nrm -r keys\np instance import k.bundle --password-file w\n+ db a.db \"$ADD\""),
    ("two hosts with keyrings of their own on one volume", "sealed a.db\ncp -a keys other\np rekey a.db\n( export PELLUCID_HOME=$PWD/other; row a.db a.db && p rekey a.db )\n+ db a.db \"$ADD\"\n( export PELLUCID_HOME=$PWD/other; row a.db a.db )"),
    ("another host takes over", "sealed a.db\ncp -a keys other\ndb a.db \"$ADD\"\nexport PELLUCID_HOME=$PWD/other\n+ db a.db \"$ADD\""),
    ("the master keys regenerated", "sealed a.db\np key regenerate master\np key regenerate service\n+ row a.db a.db\n: > a.db\n! db a.db \"$MAKE\""),
    ("opened with a key file, with no keyring", "export PELLUCID_HOME=$PWD/none\nhead -c 32 /dev/urandom > k; chmod 600 k\nplain a.db; p encrypt a.db --key-file k\nexport PELLUCID_KEY_FILE=$PWD/k\n+ db a.db \"$ADD\"\n[ ! -e none ]"),
    ("the file id that `file_id=` names", "sealed a.db\nid=$(pellucid --json status a.db | tr ',' '\\n' | sed -n 's/.*\"file_id\": *\"\\([0-9a-f]*\\)\".*/\\1/p' | head -1)\n+ db \"file:a.db?file_id=$id\" 'SELECT * FROM note'\n+ env PELLUCID_PIN=$id pellucid run -- sqlite3 a.db 'SELECT * FROM note'"),
    ("a plain database beside it", "sealed a.db\nplain b.db\n+ db b.db \"$ADD\"\n+ db a.db \"ATTACH 'b.db' AS b; SELECT * FROM b.note\""),
    ("no database yet, looked for", "+ db 'file:a.db?mode=rwc' 'SELECT 1'\nsealed b.db\nrm b.db\n= 'unable to open' db 'file:b.db?mode=rw' 'SELECT * FROM note'"),
    ("dropped by a statement, and a plain one made in its place", "sealed a.db\np sql -Q \"DROP DATABASE IF EXISTS [a]\"\n[ ! -e a.db ]\nplain a.db\n+ db a.db \"$ADD\""),
];

#[test]
fn no_path_becomes_less_unasked_and_everyday_work_goes_on() {
    let guide = include_str!("../../../../docs/guide/pinned-paths.md");
    let keys = Place::new();
    keys.sealed_anew("first.db", &[]);
    let next = Mutex::new(REFUSED.iter().chain(WORKS));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| loop {
                let Some((title, commands)) = next.lock().unwrap().next() else { break };
                if !guide.lines().any(|line| line.starts_with(&format!("| {title} |"))) {
                    failed.lock().unwrap().push(format!("`{title}` is not in the guide"));
                }
                if let Err(told) = run(&keys, commands) {
                    failed.lock().unwrap().push(format!("{title}: {told}"));
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} cases\n{}", failed.len(), failed.join("\n"));
    let rows = guide.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows, REFUSED.len() + WORKS.len() + 2, "rows of the guide's tables, and two heads");
}

fn run(keys: &Place, commands: &str) -> Result<(), String> {
    let place = Place::new();
    said(Command::new("cp").arg("-a").arg(keys.path("keys")).arg(place.path("keys"))).succeeded();
    let bin = Path::new(PELLUCID).parent().unwrap();
    // Lines without a mark are gathered: an `export` or a `cd` of theirs holds for the next ones.
    let mut before = String::from(WORDS);
    let mut expected = Vec::new();
    for line in commands.lines() {
        let marked =
            line.split_once(' ').filter(|(mark, _)| matches!(*mark, "+" | "~" | "!" | "="));
        let Some((mark, command)) = marked else {
            before += &format!(
                "{{ {line}\n}} || {{ echo >&2 'FAILED: {}'; exit 99; }}\n",
                line.replace('\'', "\"")
            );
            continue;
        };
        let (words, command) = match mark {
            "=" => split_word(command),
            _ => (String::new(), command.to_owned()),
        };
        let number = expected.len();
        before += &format!("{command} >out{number} 2>err{number}; echo $? >rc{number}\n");
        expected.push((mark.to_owned(), words, command));
    }
    let mut shell = place.command("/bin/bash");
    shell.env("BIN", bin).env("PELLUCID_LIB", bin.join("libpellucid.so"));
    let all = said(shell.arg("-c").arg(&before));
    if all.code != 0 {
        return Err(format!("{all:?}"));
    }
    let read = |name: String| std::fs::read_to_string(place.path(&name)).unwrap_or_default();
    for (number, (mark, words, command)) in expected.iter().enumerate() {
        let told = Said {
            code: read(format!("rc{number}")).trim().parse().unwrap_or(-1),
            stdout: read(format!("out{number}")),
            stderr: read(format!("err{number}")),
        };
        let holds = match &mark[..] {
            "+" => told.code == 0 && !told.stderr.contains("pellucid"),
            "~" => told.code == 0 && told.stderr.contains("has taken the place"),
            "!" => told.code != 0 && told.stderr.contains("pellucid accept"),
            _ => told.code != 0 && told.stderr.contains(words),
        };
        if !holds {
            return Err(format!("`{mark} {command}`: {told:?}"));
        }
        if mark != "+"
            && mark != "~"
            && in_clear(&place, "TOP-SECRET")
            && !commands.contains("+ db")
        {
            return Err(format!("`{command}`: in clear on the disk"));
        }
    }
    Ok(())
}

/// The first word, which may be quoted, and the rest.
fn split_word(text: &str) -> (String, String) {
    let (word, rest) = match text.strip_prefix('\'') {
        Some(quoted) => quoted.split_once("' ").unwrap(),
        None => text.split_once(' ').unwrap(),
    };
    (word.to_owned(), rest.to_owned())
}

/// Whether a file of the place has `secret` in it.
fn in_clear(place: &Place, secret: &str) -> bool {
    said(place.command("grep").args(["-rlF", "--include=*.db", secret, "."])).code == 0
}
