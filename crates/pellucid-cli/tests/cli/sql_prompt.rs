//! Goal: the prompt takes batches over several lines, forgets them at Ctrl-C, completes names, leaves at Ctrl-D, and
//! remembers lines but no secrets.
//!
//! Method: a pseudo-terminal of Python's; what is typed waits for what is shown.

use std::os::unix::fs::PermissionsExt;

use crate::support::{said, Place, Said, PELLUCID};

/// Waits for each `shown` before it types. Then shows everything to the end.
const TERMINAL: &str = r#"
import json, os, pty, select, sys, time
steps = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen = b''
def read(seconds):
    global seen
    if not select.select([terminal], [], [], seconds)[0]:
        return False
    try:
        new = os.read(terminal, 65536)
    except OSError:
        return False
    seen += new
    return bool(new)
at = 0
for shown, typed in steps:
    end = time.time() + 300
    while seen.find(shown.encode(), at) < 0:
        if time.time() > end or (not read(1) and os.waitpid(pid, os.WNOHANG)[0]):
            sys.exit(f'no {shown!r} in {seen[at:]!r}')
    at = seen.find(shown.encode(), at) + len(shown)
    if typed:
        os.write(terminal, typed.encode())
while read(300):
    pass
os.close(terminal)
sys.stdout.buffer.write(seen.replace(b'\r', b''))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

fn typed(place: &Place, options: &[&str], steps: &[(&str, &str)]) -> Said {
    let steps = serde_json::to_string(steps).unwrap();
    let mut command = place.command("/usr/bin/python3");
    command.env("TERM", "xterm").args(["-c", TERMINAL, &steps, PELLUCID, "sql"]).args(options);
    said(&mut command)
}

#[test]
fn a_batch_is_typed_line_by_line() {
    let place = Place::new();
    let told = typed(
        &place,
        &[],
        &[
            ("1> ", "PRINT 'dropped' + 'first'\r"),
            ("2> ", "\x03"),
            ("1> ", "PRINT 'a' +\r"),
            ("2> ", "'bc'\r"),
            ("3> ", ":list\r"),
            ("3> ", "GO\r"),
            ("abc", ""),
            ("1> ", ":help\r"),
            (":quit, quit", ""),
            ("1> ", ":setvar word kept\r"),
            ("1> ", ":nonsense\r"),
            ("there is no command", ""),
            ("1> ", "PRINT '$(word)'\r"),
            ("2> ", "GO\r"),
            ("kept", ""),
            ("1> ", "PRINT 'never' + 'last'\r"),
            ("2> ", "\x04"),
        ],
    );
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stdout.contains("GO executes, :help shows commands"), "{told:?}");
    assert_eq!(told.stdout.matches("abc\n").count(), 1, "{told:?}");
    assert!(
        !told.stdout.contains("droppedfirst") && !told.stdout.contains("neverlast"),
        "{told:?}"
    );
}

/// A paste without brackets, `expect`, typing while a batch runs: all of it arrives at once.
#[test]
fn lines_that_arrive_together_are_all_read() {
    let place = Place::new();
    let all =
        "PRINT 'one' + 'first'\rGO\rPRINT 'two' +\r'second'\rGO\rPRINT 'three' + 'third'\rGO\r";
    let told = typed(&place, &[], &[("1> ", all), ("threethird\r\n", ""), ("1> ", "\x04")]);
    assert_eq!(told.code, 0, "{told:?}");
    for said in ["onefirst\n", "twosecond\n", "threethird\n"] {
        assert_eq!(told.stdout.matches(said).count(), 1, "{said}: {told:?}");
    }
}

#[test]
fn words_and_names_are_completed() {
    let place = Place::new();
    let told = typed(
        &place,
        &["--quiet"],
        &[
            ("1> ", "SELECT * FROM sys.dm_da\t"),
            ("sys.dm_database_encryption_keys", "\x03"),
            ("\n", ""),
            ("1> ", "USE [mast\t"),
            ("USE [master", "\x03"),
            ("\n", ""),
            ("1> ", "exit\r"),
        ],
    );
    assert_eq!(told.code, 0, "{told:?}");
    assert!(!told.stdout.contains("GO executes"), "{told:?}");
}

#[test]
fn the_history_keeps_lines_but_no_secrets() {
    let place = Place::new();
    let first = typed(
        &place,
        &[],
        &[
            ("1> ", "PRINT 'remem' + 'bered'\r"),
            ("2> ", "GO\r"),
            ("remembered", ""),
            ("1> ", "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'marker-55aa'\r"),
            ("2> ", "GO\r"),
            ("Msg", ""),
            ("1> ", ":setvar pw marker-55aa\r"),
            ("1> ", "OPEN MASTER KEY DECRYPTION BY PASSWORD =\r"),
            ("2> ", "'marker-55aa'\r"),
            ("3> ", ":reset\r"),
            ("1> ", "quit\r"),
        ],
    );
    assert_eq!(first.code, 0, "{first:?}");
    let path = place.path(".local/state/pellucid/sql_history");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let directory = path.parent().unwrap().metadata().unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept.contains("PRINT 'remem' + 'bered'\n") && !kept.contains("marker"), "{kept}");
    // The arrow up, to the first line; before it stands the format's own.
    let lines = kept.lines().count() - 1;
    let up = "\x1b[A".repeat(lines);
    let second = typed(
        &place,
        &[],
        &[("1> ", &format!("{up}\r")), ("2> ", "GO\r"), ("remembered", ""), ("1> ", "\x04")],
    );
    assert_eq!(second.code, 0, "{second:?}");
}

#[test]
fn an_initial_query_comes_before_the_prompt() {
    let options = ["-q", "PRINT 'first'"];
    let told = typed(&Place::new(), &options, &[("1> ", "GO\r"), ("1> ", "\x04")]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stdout.starts_with("first\n"), "{told:?}");
}

#[test]
fn an_interrupt_cancels_the_statement_and_the_prompt_stays() {
    let told = typed(
        &Place::new(),
        &[],
        &[
            ("1> ", "PRINT 'be' + 'gun'; WAITFOR DELAY '00:10:00'\r"),
            ("2> ", "GO\r"),
            ("begun", "\x03"),
            ("Query was cancelled by user.", ""),
            ("1> ", "PRINT 'still' + ' here'\r"),
            ("2> ", "GO\r"),
            ("still here", ""),
            ("1> ", "exit\r"),
        ],
    );
    assert_eq!(told.code, 0, "{told:?}");
}
