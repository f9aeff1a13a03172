//! Goal: `run` works in whatever environment it is started, or says what of it is in the way.
//!
//! Method: a table. Each row changes the environment of a shell that starts `run` over a sealed database; the answer comes, or the
//! error has the words of the row. Rows that change what is mounted need `unshare` as root, else they are named as skipped.

use std::process::Command;

use crate::support::{said, Place, PELLUCID};

/// What is wanted of a row: the answer, or these words.
enum Wanted {
    Answer,
    Words(&'static str),
}

use Wanted::{Answer, Words};

const ASK: &str = "\"$PELLUCID\" run -- sqlite3 app.db 'SELECT count(*) FROM t'";
const NO_KEYRING: Wanted = Words("names no absolute path: there is no place for a keyring");
const NOT_THERE: Wanted = Words("which is not in the keyring");

/// A name, what a shell does before it asks, and what comes of it. `@` asks.
const ROWS: [(&str, &str, Wanted); 45] = [
    ("as it is", "@", Answer),
    ("XDG_DATA_HOME empty", "XDG_DATA_HOME= @", Answer),
    ("XDG_DATA_HOME relative", "XDG_DATA_HOME=x @", Answer),
    ("XDG_DATA_HOME elsewhere", "unset PELLUCID_HOME; XDG_DATA_HOME=/nowhere @", NOT_THERE),
    ("XDG_CONFIG_HOME empty", "XDG_CONFIG_HOME= @", Answer),
    ("XDG_CONFIG_HOME relative", "XDG_CONFIG_HOME=./x @", Answer),
    ("XDG_CONFIG_HOME elsewhere", "XDG_CONFIG_HOME=/nowhere @", Answer),
    ("XDG_RUNTIME_DIR empty", "XDG_RUNTIME_DIR= @", Answer),
    ("XDG_RUNTIME_DIR relative", "XDG_RUNTIME_DIR=x @", Answer),
    ("XDG_RUNTIME_DIR elsewhere", "XDG_RUNTIME_DIR=/nowhere @", Answer),
    ("HOME empty, a keyring named", "HOME= @", Answer),
    ("HOME relative, a keyring named", "HOME=x @", Answer),
    ("HOME unset, a keyring named", "unset HOME; @", Answer),
    ("HOME a file, a keyring named", "HOME=$PWD/app.db @", Answer),
    ("HOME empty", "unset PELLUCID_HOME; HOME= @", NO_KEYRING),
    ("HOME relative", "unset PELLUCID_HOME; HOME=x @", NO_KEYRING),
    ("HOME unset", "unset PELLUCID_HOME HOME; @", NO_KEYRING),
    ("HOME elsewhere", "unset PELLUCID_HOME; HOME=/nowhere @", NOT_THERE),
    ("PELLUCID_HOME elsewhere", "PELLUCID_HOME=/nowhere @", NOT_THERE),
    ("PELLUCID_HOME relative", "PELLUCID_HOME=keys @", Answer),
    ("TMPDIR empty", "TMPDIR= @", Answer),
    ("TMPDIR relative", "TMPDIR=x @", Answer),
    ("TMPDIR missing", "TMPDIR=/nowhere @", Answer),
    ("TMPDIR a file", "TMPDIR=$PWD/app.db @", Answer),
    ("PATH empty", "PATH= @", Words("put its directory into `PATH`")),
    ("PATH relative", "PATH=x @", Words("put its directory into `PATH`")),
    ("PATH unset", "unset PATH; @", Answer),
    ("LC_ALL C", "LC_ALL=C @", Answer),
    ("LC_ALL odd", "LC_ALL=../../x LANG=xx_YY @", Answer),
    ("LC_ALL of bytes", "LC_ALL=$'\\xff' @", Answer),
    ("TERM odd, TZ odd", "TERM=$'\\x01' TZ=../../x @", Answer),
    ("LD_PRELOAD set already", "LD_PRELOAD=libm.so.6 @", Answer),
    ("LD_PRELOAD of two and spaces", "LD_PRELOAD=' libm.so.6  libdl.so.2 ' @", Answer),
    ("LD_PRELOAD empty", "LD_PRELOAD= @", Answer),
    ("LD_PRELOAD missing", "LD_PRELOAD=/nowhere.so @", Answer),
    ("stdin closed", "@ <&-", Answer),
    ("stderr closed", "@ 2>&-", Answer),
    ("stdin and stderr closed", "@ <&- 2>&-", Answer),
    ("a directory that is gone", "mkdir g; cd g; rmdir ../g; \"$PELLUCID\" run -- sqlite3 \"$PLACE/app.db\" 'SELECT count(*) FROM t'", Answer),
    ("umask 777", "umask 777; @", Answer),
    ("12 descriptors", "ulimit -n 12; @", Answer),
    ("a variable that is no text", "export ODD=$'\\xff\\xfe'; @", Answer),
    ("unshared: no /proc", "mount -t tmpfs none /proc; @", Words("mount `/proc`")),
    ("unshared: a read-only root", "mount -o remount,ro,bind / /; touch probe 2>/dev/null && exit 9; @", Answer),
    ("unshared: a read-only keyring", "mount --bind keys keys; mount -o remount,ro,bind keys keys; touch keys/probe 2>/dev/null && exit 9; @", Answer),
];

#[test]
fn run_works_in_any_environment_or_says_what_is_in_the_way() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let can_unshare = said(Command::new("unshare").args(["-m", "true"])).code == 0;
    for (what, script, wanted) in ROWS {
        let script = script.replace('@', ASK);
        let mut command = match (what.starts_with("unshared: "), can_unshare) {
            (false, _) => place.command("/bin/bash"),
            (true, true) => {
                let mut command = place.command("/usr/bin/unshare");
                command.args(["-m", "/bin/bash"]);
                command
            }
            (true, false) => {
                println!("skipped: {what}: `unshare -m` is not possible here");
                continue;
            }
        };
        command.args(["-c", &script]).env("PELLUCID", PELLUCID).env("PLACE", place.path(""));
        let told = said(&mut command);
        match wanted {
            Answer => assert_eq!((told.code, told.stdout.trim()), (0, "200"), "{what}: {told:?}"),
            Words(words) => {
                assert!(told.code != 0 && told.stderr.contains(words), "{what}: {told:?}");
            }
        }
    }
}
