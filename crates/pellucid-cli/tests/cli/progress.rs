//! Goal: a bar is one line while the work is under way, says nothing before there is something to say, and leaves nothing.
//!
//! Method: commands at a terminal of Python's of 80, 100 and 120 columns; what they write is played on a screen. Those that
//! know at once how much there is to do draw a bar in any case, the others where the machine lets them take long enough.

use crate::support::{said, Place, PELLUCID};

const TERMINAL: &str = "
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, int(sys.argv[1]), 0, 0))
    os.execv(sys.argv[2], sys.argv[2:])
while True:
    try:
        seen = os.read(terminal, 65536)
    except OSError:
        break
    if not seen:
        break
    sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";

/// A terminal's screen, with all that has left it at its top.
struct Screen {
    columns: usize,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Each line with a bar that was on it.
    bars: Vec<String>,
}

fn is_bar(character: char) -> bool {
    matches!(character, '█' | '░')
}

impl Screen {
    fn play(columns: usize, written: &str) -> Self {
        let mut screen = Self { columns, lines: vec![vec![]], row: 0, column: 0, bars: Vec::new() };
        let mut characters = written.chars();
        while let Some(character) = characters.next() {
            match character {
                '\r' => screen.column = 0,
                '\n' => screen.down(1),
                '\x1b' => {
                    assert_eq!(characters.next(), Some('['), "a sequence that is not known");
                    let mut number = String::new();
                    let end = loop {
                        match characters.next().expect("the end of a sequence") {
                            end if end.is_ascii_alphabetic() => break end,
                            digit => number.push(digit),
                        }
                    };
                    screen.control(end, number.parse().ok());
                }
                shown => screen.put(shown),
            }
        }
        screen
    }

    fn control(&mut self, end: char, number: Option<usize>) {
        match end {
            'A' => self.row -= number.unwrap_or(1).min(self.row),
            'B' => self.down(number.unwrap_or(1)),
            'K' if number == Some(2) => self.lines[self.row].clear(),
            'K' => self.lines[self.row].truncate(self.column),
            'J' => {
                self.lines.truncate(self.row + 1);
                self.lines[self.row].truncate(self.column);
            }
            'm' | 'h' | 'l' => {}
            other => panic!("a sequence that is not known: {other}"),
        }
    }

    fn down(&mut self, rows: usize) {
        self.row += rows;
        self.lines.resize(self.lines.len().max(self.row + 1), vec![]);
    }

    fn put(&mut self, character: char) {
        if self.column == self.columns {
            let line: String = self.lines[self.row].iter().collect();
            assert!(!line.contains(is_bar), "a bar takes more than a line: {line}");
            self.down(1);
            self.column = 0;
        }
        let line = &mut self.lines[self.row];
        line.resize(line.len().max(self.column + 1), ' ');
        line[self.column] = character;
        self.column += 1;
        if line.iter().any(|shown| is_bar(*shown)) && line.ends_with(&['l', 'e', 'f', 't']) {
            self.bars.push(line.iter().collect());
        }
    }

    fn text(&self) -> String {
        self.lines.iter().flat_map(|line| line.iter().chain(['\n'].iter())).collect()
    }
}

#[test]
fn a_bar_is_one_line_and_leaves_nothing() {
    for columns in [80, 100, 120] {
        let place = Place::new();
        let rows = "CREATE TABLE t(a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
            INSERT INTO t SELECT hex(randomblob(500)) FROM n;";
        place.sqlite3("app.db", rows).succeeded();
        for (words, counts) in [
            ("encrypt app.db", "MiB"),
            ("check app.db", "MiB"),
            ("backup app.db --to app.bak", "MiB"),
            ("verify app.bak", "MiB"),
            ("restore app.bak --to copy.db", "pages"),
            ("rekey app.db --background --throttle 1", ""),
            ("scan suspend app.db", ""),
            ("scan resume app.db", "pages"),
            ("rekey app.db", "pages"),
            ("scan verify app.db", "pages"),
            ("salvage app.db --to saved.db", " of "),
            ("decrypt app.db", "MiB"),
        ] {
            let mut command = place.command("/usr/bin/python3");
            command.env("TERM", "xterm").args(["-c", TERMINAL, &columns.to_string(), PELLUCID]);
            let told = said(command.args(words.split(' ')));
            let nothing_to_resume = words.starts_with("scan resume")
                && told.stdout.contains("no scan of it is under way");
            // Whether the scan is found at work depends on the machine: then there is something to suspend, and to go on with.
            assert!(
                told.code == 0 || words.starts_with("scan suspend") || nothing_to_resume,
                "{words}: {told:?}"
            );
            let screen = Screen::play(columns, &told.stdout);
            let what = format!("{words}, {columns} columns: {:?}\n{}", screen.bars, screen.text());
            assert!(!screen.text().contains(is_bar), "a bar stayed: {what}");
            let at_once = words.starts_with("verify") || words.starts_with("salvage");
            assert!(!screen.bars.is_empty() || !at_once, "no bar was drawn: {what}");
            for bar in &screen.bars {
                assert!(bar.contains(counts), "{what}");
                assert!(!bar.contains(" 0 B of 0 B") && !bar.contains(" 0 of 0 "), "{what}");
                assert!(!bar.contains("MB/s"), "two units: {what}");
                let rate = bar.split("pages  ").nth(1).and_then(|rest| rest.split("/s").next());
                assert!(
                    rate.is_none_or(|rate| rate.chars().all(|shown| shown.is_ascii_digit())),
                    "{what}"
                );
            }
        }
    }
}
