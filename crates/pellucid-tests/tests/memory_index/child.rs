//! A process with one connection, which does what the test tells it line by line; in namespaces and under accounts of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};

use pellucid_host::code::{last_report, take_notices};
use rusqlite::types::ValueRef;
use rusqlite::Connection;

use pellucid_tests::content::open;

const ROLE: &str = "PELLUCID_MEMORY_INDEX_CHILD";

/// What the process does, if it is a child.
pub fn entry() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    pellucid_bundled::register().unwrap();
    let mut connection: Option<Connection> = None;
    println!("\nready");
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        if word == "soak" {
            soak(connection.as_ref().unwrap(), rest.parse().unwrap());
        }
        let answer = match word {
            "open" => open(rest).map(|opened| {
                opened.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
                connection = Some(opened);
                String::new()
            }),
            "fork" => Ok(forked(connection.as_ref().unwrap(), rest)),
            "close" => {
                connection = None;
                Ok(String::new())
            }
            _ => answer(connection.as_ref().unwrap(), rest),
        };
        let _ = take_notices();
        match answer {
            Ok(text) => println!("ok {text}"),
            Err(error) => {
                let told = last_report().map_or(String::new(), |report| report.line);
                println!("err {error} {told}");
            }
        }
    }
    std::process::exit(0);
}

/// What a forked child writes by its parent's connection, and by one of its own: 1 and 2, or nothing. Forked here, where no other
/// thread has a lock of SQLite's.
fn forked(connection: &Connection, uri: &str) -> String {
    let insert = "INSERT INTO t VALUES(-1)";
    // SAFETY: the child makes calls of SQLite's alone, as the program does that this is about, and ends without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let wrote = connection.execute_batch(insert).is_ok();
        // SQLite has the parent's `-shm` for a connection of the child's own, too, without its locks.
        let own = open(uri).and_then(|own| own.execute_batch(insert));
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(i32::from(wrote) + 2 * i32::from(own.is_ok())) };
    }
    let mut status = 0;
    // SAFETY: the child of above; `status` is valid for a write.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    (status >> 8).to_string()
}

/// Writes and reads until it is killed; says what it is about to commit, and when COMMIT has returned.
fn soak(connection: &Connection, first: i64) {
    let mut out = std::io::stdout();
    let mut mine = 0;
    for value in first.. {
        writeln!(out, "begins {value}").unwrap();
        let insert = format!("BEGIN IMMEDIATE; INSERT INTO t VALUES({value}); COMMIT");
        match connection.execute_batch(&insert) {
            Ok(()) => {
                writeln!(out, "ack {value}").unwrap();
                mine += 1;
            }
            Err(error) => {
                let _ = connection.execute_batch("ROLLBACK");
                writeln!(out, "failed {error} {:?}", last_report()).unwrap();
            }
        }
        if value % 7 == 0 {
            let sql = format!("SELECT count(*) FROM t WHERE x BETWEEN {first} AND {value}");
            match connection.query_row(&sql, [], |row| row.get::<_, i64>(0)) {
                Ok(found) if found < mine => writeln!(out, "lost {found} of {mine}").unwrap(),
                Ok(_) => {}
                Err(error) => writeln!(out, "failed {error} {:?}", last_report()).unwrap(),
            }
        }
        if value % 101 == 0 {
            let how = ["PASSIVE", "RESTART", "TRUNCATE"][(value % 3) as usize];
            let _ = connection.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(()));
        }
    }
}

fn answer(connection: &Connection, sql: &str) -> rusqlite::Result<String> {
    let mut text = String::new();
    for part in sql.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let mut statement = connection.prepare(part)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                let value = match row.get_ref(column)? {
                    ValueRef::Integer(number) => number.to_string(),
                    ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    other => format!("{other:?}"),
                };
                text.push_str(&value);
                text.push(' ');
            }
        }
    }
    Ok(text.trim().to_owned())
}

/// The test's end of it.
pub struct Child {
    pub process: Process,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Child {
    pub fn start() -> Self {
        Self::under(&[], "")
    }

    /// Under a program that starts others, `unshare` say, and after commands of a shell. `None` if the machine does not allow it.
    pub fn try_under(starter: &[&str], before: &str) -> Option<Self> {
        let own = std::env::current_exe().unwrap();
        let script = format!(
            "{before}\nexec ${{CHROOT:+chroot \"$CHROOT\"}} '{}' --exact child_entry --nocapture --test-threads 1",
            own.display()
        );
        let mut words: Vec<&str> = starter.to_vec();
        words.extend(["sh", "-ec", &script]);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env(ROLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().ok()?;
        let (to, from) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut child = Self { process, to, from: BufReader::new(from) };
        let mut line = String::new();
        loop {
            line.clear();
            match child.from.read_line(&mut line) {
                Ok(0) | Err(_) => {
                    let _ = child.process.wait();
                    return None;
                }
                Ok(_) if line.trim() == "ready" => return Some(child),
                Ok(_) => {}
            }
        }
    }

    pub fn under(starter: &[&str], before: &str) -> Self {
        Self::try_under(starter, before).expect("a child")
    }

    /// One command: its text, or the error's with what the shim said.
    pub fn tell(&mut self, line: &str) -> Result<String, String> {
        writeln!(self.to, "{line}").map_err(|error| error.to_string())?;
        let mut answer = String::new();
        self.from.read_line(&mut answer).map_err(|error| error.to_string())?;
        match answer.trim_end().split_once(' ').unwrap_or((answer.trim_end(), "")) {
            ("ok", text) => Ok(text.to_owned()),
            ("err", text) => Err(text.to_owned()),
            other => Err(format!("no answer: {other:?}")),
        }
    }

    pub fn open(&mut self, path: &Path) -> Result<String, String> {
        self.open_with(path, "")
    }

    pub fn open_with(&mut self, path: &Path, more: &str) -> Result<String, String> {
        self.tell(&format!("open file:{}?vfs=pellucid{more}", path.display()))
    }

    pub fn sql(&mut self, sql: &str) -> Result<String, String> {
        self.tell(&format!("sql {sql}"))
    }

    /// Has it write from a value on until it is killed, by the id that is returned; the thread ends with all that it said.
    pub fn soak(mut self, first: i64) -> (u32, std::thread::JoinHandle<Vec<String>>) {
        writeln!(self.to, "soak {first}").unwrap();
        let said = |child: &mut Self| child.from.by_ref().lines().map_while(Result::ok).collect();
        (self.process.id(), std::thread::spawn(move || said(&mut self)))
    }

    /// Ends it as SIGKILL does.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
