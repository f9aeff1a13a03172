//! Servers of S3's interface on this machine (versitygw and moto; `.ci/deps` installs them), each behind a proxy that does what a
//! network or a bad store does (faulty.py).

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::{said, Place, Said, PELLUCID};

pub const SECRET: &str = "a-secret-that-nobody-may-see";

/// A Python with moto: the system's, or the one that `.ci/deps` made.
pub fn python() -> PathBuf {
    let own = Path::new(PELLUCID).with_file_name("../tools/moto/bin/python3");
    let has_moto = |python: &PathBuf| {
        let look = Command::new(python).args(["-c", "import boto3, moto.server"]).output();
        look.is_ok_and(|looked| looked.status.success())
    };
    let found = [PathBuf::from("python3"), own].into_iter().find(has_moto);
    found.expect("moto is missing: .ci/deps installs it")
}

/// A server with a bucket `backups`, and a proxy before it.
pub struct Server {
    child: Child,
    ask: ChildStdin,
    hear: BufReader<ChildStdout>,
    pub port: String,
    pub name: &'static str,
    /// Of a request. Long where all are answered: a server on a busy machine takes its time.
    timeout: &'static str,
    _objects: tempfile::TempDir,
}

/// All servers that are here; the last one is the fastest.
pub fn servers() -> Vec<Server> {
    let versitygw = Path::new(PELLUCID).with_file_name("../tools/versitygw");
    let mut servers = vec![Server::start("moto", "moto")];
    match versitygw.exists() {
        true => servers.push(Server::start("versitygw", versitygw.to_str().unwrap())),
        false => println!("versitygw is not here: .ci/deps installs it where Go is; moto alone"),
    }
    servers
}

impl Server {
    pub fn start(name: &'static str, tool: &str) -> Self {
        let objects = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/faulty.py");
        let mut command = Command::new(python());
        command.arg(program).arg(tool).arg(objects.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let ask = child.stdin.take().unwrap();
        let mut hear = BufReader::new(child.stdout.take().unwrap());
        // It says that it starts before it says where.
        let port = loop {
            let mut line = String::new();
            assert!(hear.read_line(&mut line).unwrap() > 0, "{name} does not say its port");
            if line.trim().parse::<u16>().is_ok() {
                break line.trim().to_owned();
            }
        };
        Self { child, ask, hear, port, name, timeout: "60s", _objects: objects }
    }

    /// What support/faulty.py answers.
    pub fn ask(&mut self, line: &str) -> String {
        match line {
            "clear" => self.timeout = "60s",
            // One that hangs is tried again after that.
            rule if rule.ends_with(" hang") && !rule.starts_with("count") => self.timeout = "15s",
            _ => (),
        }
        writeln!(self.ask, "{line}").unwrap();
        let mut answer = String::new();
        self.hear.read_line(&mut answer).unwrap();
        answer.trim().to_owned()
    }

    pub fn objects(&mut self) -> Vec<String> {
        self.ask("objects").split_whitespace().map(str::to_owned).collect()
    }

    pub fn command(&self, place: &Place) -> Command {
        let mut command = place.command(PELLUCID);
        command.env("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port));
        command.env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "x").env("AWS_SECRET_ACCESS_KEY", SECRET);
        command.env("AWS_TIMEOUT", self.timeout);
        command
    }

    pub fn pellucid(&self, place: &Place, arguments: &[&str]) -> Said {
        let told = said(self.command(place).args(arguments));
        assert!(!told.all().contains(SECRET), "{told:?}");
        told
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its input, too, and versitygw with it.
        let _ = writeln!(self.ask, "end");
        let _ = self.child.wait();
    }
}
