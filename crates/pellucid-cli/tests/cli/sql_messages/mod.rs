//! Goal: statements that cannot be done say so in SQL Server's words.
//!
//! Method: each message is provoked from outside and compared word for word with the text of the reference, typed by
//! hand; `%` in an expected text stands for what differs from run to run. docs/statements.md names the messages that
//! cannot be met here.

mod batches;
mod encryption;
mod keys;
mod media;
mod providers;

use std::path::PathBuf;

use crate::support::{said_with, Place, PELLUCID};

/// Number, severity, text.
type Heard = (u64, u64, String);

struct Server {
    place: Place,
}

impl Server {
    /// A new instance with folders for backups.
    fn new() -> Self {
        let server = Self { place: Place::new() };
        server.done("SELECT 1 AS made");
        for folder in ["C/temp", "D"] {
            std::fs::create_dir_all(server.path(folder)).unwrap();
        }
        server
    }

    /// With a master key, a certificate and a database that has rows.
    fn ready() -> Self {
        let server = Self::new();
        server.done(
            "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd'
             CREATE CERTIFICATE Cert WITH SUBJECT = 'a', EXPIRY_DATE = '20991231'
             BACKUP CERTIFICATE Cert TO FILE = 'C:\\temp\\Cert.cer'
               WITH PRIVATE KEY (FILE = 'C:\\temp\\Cert.key', ENCRYPTION BY PASSWORD = 'p@ssw0rd')
             CREATE DATABASE sales
             GO
             USE sales
             CREATE TABLE t(id INT NOT NULL CONSTRAINT PK_t PRIMARY KEY, name NVARCHAR(50))
             INSERT INTO t VALUES (1, 'Anna'), (2, 'Bob')
             GO",
        );
        server
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path("keys/drives").join(name)
    }

    /// What a script says, informing messages of number 0 left aside.
    fn run(&self, script: &str) -> Vec<Heard> {
        let mut command = self.place.command(PELLUCID);
        command.env("PELLUCID_PLUGIN_PATH", self.place.path("plugins"));
        let said = said_with(command.args(["--json", "sql"]), script);
        assert!(said.code == 0 || said.code == 1, "{said:?}");
        let mut heard = Vec::new();
        for line in said.stdout.lines() {
            let value: serde_json::Value = serde_json::from_str(line).expect(line);
            if let Some(number) = value["number"].as_u64().filter(|number| *number > 0) {
                heard.push((
                    number,
                    value["severity"].as_u64().unwrap(),
                    value["text"].as_str().unwrap().to_owned(),
                ));
            }
        }
        heard
    }

    /// Without an error.
    fn done(&self, script: &str) {
        let heard = self.run(script);
        assert!(heard.iter().all(|(_, severity, _)| *severity <= 10), "{script}: {heard:?}");
    }

    /// With exactly these errors, of severity 16 unless the text says another: `10: text`.
    #[track_caller]
    fn says(&self, script: &str, expected: &[(u64, &str)]) {
        let heard = self.run(script);
        let wanted: Vec<_> = heard
            .iter()
            .filter(|(number, severity, _)| {
                *severity > 10 || expected.iter().any(|(other, _)| other == number)
            })
            .collect();
        assert_eq!(wanted.len(), expected.len(), "{script}: {heard:?}");
        for ((number, severity, text), (other, pattern)) in wanted.iter().zip(expected) {
            let (level, pattern) =
                match pattern.split_once(": ").map(|(level, rest)| (level.parse(), rest)) {
                    Some((Ok(level), rest)) => (level, rest),
                    _ => (16, *pattern),
                };
            assert_eq!((number, severity), (other, &level), "{script}: {heard:?}");
            assert!(matches(text, pattern), "{script}\n  heard    {text}\n  expected {pattern}");
        }
    }
}

/// `%` is anything.
fn matches(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('%');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

const BACKUP_ENDS: (u64, &str) = (3013, "BACKUP DATABASE is terminating abnormally.");
const RESTORE_ENDS: (u64, &str) = (3013, "RESTORE DATABASE is terminating abnormally.");
const ALTER_ENDS: (u64, &str) = (5069, "ALTER DATABASE statement failed.");

const NOT_BACKED_UP: &str = "10: Warning: The certificate used for encrypting the database encryption key has not been \
    backed up. You should immediately back up the certificate and the private key associated with the certificate. If \
    the certificate ever becomes unavailable or if you must restore or attach the database on another server, you must \
    have backups of both the certificate and the private key or you will not be able to open the database.";
