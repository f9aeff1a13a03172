//! Goal: "held by" names the processes that hold the very file, not one of the same name or the same inode on another file system.
//!
//! Method: two file systems in memory, in each the first file, `app.db`: their inode numbers are equal. Both are held by a program in a
//! transaction; a command on one of them names its holder alone. Needs `unshare` as root, else it says so.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use crate::support::{said, Place, PELLUCID};

const SETUP: &str = r#"
mkdir one two
mount -t tmpfs one one && mount -t tmpfs two two || exit 77
for dir in one two; do sqlite3 $dir/app.db "CREATE TABLE t(a)"; done
[ "$(stat -c %i one/app.db)" = "$(stat -c %i two/app.db)" ] || exit 78
for dir in one two; do
  python3 -c "
import sqlite3
db = sqlite3.connect('$dir/app.db', isolation_level=None); db.execute('BEGIN'); db.execute('SELECT count(*) FROM t').fetchall()
print('$dir', __import__('os').getpid(), flush=True); __import__('time').sleep(60)" &
done
read go
"$PELLUCID" encrypt one/app.db --timeout 1
echo end $?
kill %1 %2
"#;

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_of_the_same_inode_elsewhere_is_another_one() {
    let place = Place::new();
    let has = said(Command::new("unshare").args(["-m", "true"]));
    if has.code != 0 {
        println!("skipped: `unshare -m` is not possible here: {}", has.stderr);
        return;
    }
    let mut command = place.command("/usr/bin/unshare");
    command.args(["-m", "/bin/bash", "-c", SETUP]).env("PELLUCID", PELLUCID);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut go = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let _ended = Ended(child);
    let mut pids = std::collections::BTreeMap::new();
    while pids.len() < 2 {
        let Some(line) = lines.next() else {
            println!("skipped: no file systems with files of the same inode");
            return;
        };
        let (directory, pid) = line.split_once(' ').unwrap();
        pids.insert(directory.to_owned(), pid.to_owned());
    }
    writeln!(go).unwrap();
    let end = lines.find(|line| line.starts_with("end ")).unwrap();
    drop(go);
    let mut told = String::new();
    while !told.contains("held by") && errors.read_line(&mut told).unwrap() > 0 {}
    assert_eq!(end, "end 1", "{told}");
    assert!(told.contains(&format!("({})", pids["one"])), "{pids:?}: {told}");
    assert!(!told.contains(&format!("({})", pids["two"])), "{pids:?}: {told}");
}
