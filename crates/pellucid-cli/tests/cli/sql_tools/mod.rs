//! Goal: the statements that maintenance tools and tutorials of TDE emit run, or fail with the right message.
//!
//! Method: each test names a tool and where its source or its page is, and runs the forms of its statements: their
//! options and the order of clauses are the tool's, names and files are made up. Expected texts are typed by hand.
//! docs/statements.md says what is refused. Nothing here leaves this machine: TO URL is not tried.

mod encryption;
mod management_studio;
mod solutions;

use std::path::PathBuf;

use crate::support::{said_with, Place, Said, PELLUCID};

struct Server(Place);

impl Server {
    /// An instance with keys, a database `Orders` with two rows, and folders.
    fn new() -> Self {
        let server = Self::empty();
        server.done(
            "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd'
             CREATE CERTIFICATE BackupCert WITH SUBJECT = 'Backups'
             BACKUP CERTIFICATE BackupCert TO FILE = 'D:\\keys\\BackupCert.cer'
               WITH PRIVATE KEY (FILE = 'D:\\keys\\BackupCert.pvk', ENCRYPTION BY PASSWORD = 'p@ssw0rd2')
             CREATE DATABASE Orders
             GO
             USE Orders
             CREATE TABLE dbo.Item(ItemID INT NOT NULL PRIMARY KEY, Name NVARCHAR(50))
             INSERT INTO dbo.Item VALUES (1, N'bread'), (2, N'milk')",
        );
        server
    }

    fn empty() -> Self {
        let server = Self(Place::new());
        server.done("SELECT 1 AS made");
        for folder in ["C", "D/backup", "D/stripes", "D/keys"] {
            std::fs::create_dir_all(server.drive(folder)).unwrap();
        }
        server
    }

    fn drive(&self, name: &str) -> PathBuf {
        self.0.path("keys/drives").join(name)
    }

    fn run(&self, script: &str) -> Said {
        said_with(self.0.command(PELLUCID).args(["sql", "-W"]), script)
    }

    /// What a script without errors shows.
    #[track_caller]
    fn done(&self, script: &str) -> String {
        let shown = self.run(script).succeeded();
        assert!(!shown.contains("Msg "), "{script}\n{shown}");
        shown
    }

    /// The errors of a script, number and text.
    #[track_caller]
    fn says(&self, script: &str, expected: &[(u32, &str)]) -> String {
        let shown = self.run(script).succeeded();
        let found = errors(&shown);
        assert_eq!(found.len(), expected.len(), "{script}\n{shown}");
        for ((number, text), (other, pattern)) in found.iter().zip(expected) {
            assert_eq!(number, &format!("Msg {other}"), "{script}\n{shown}");
            let (start, end) = pattern.split_once('%').unwrap_or((pattern, ""));
            let fits = match pattern.contains('%') {
                true => text.starts_with(start) && text.ends_with(end),
                false => text == pattern,
            };
            assert!(fits, "{script}\n{text}\n{pattern}");
        }
        shown
    }

    /// The rows of a query, columns divided by `|`.
    #[track_caller]
    fn rows(&self, query: &str) -> Vec<String> {
        let options = ["sql", "-W", "-h", "-1", "-s", "|"];
        let shown = said_with(self.0.command(PELLUCID).args(options), query).succeeded();
        assert!(!shown.contains("Msg "), "{query}\n{shown}");
        shown.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

fn errors(shown: &str) -> Vec<(String, String)> {
    let lines: Vec<_> = shown.lines().collect();
    let is_error = |at: &usize| lines[*at].starts_with("Msg ") && lines[*at].contains(", Level ");
    let number = |line: &str| line.split(',').next().unwrap_or_default().to_owned();
    let found = (0..lines.len()).filter(is_error);
    found.map(|at| (number(lines[at]), lines.get(at + 1).unwrap_or(&"").to_string())).collect()
}

fn count(shown: &str, start: &str) -> usize {
    shown.lines().filter(|line| line.starts_with(start)).count()
}

const BACKED_UP: &str = "BACKUP DATABASE successfully processed ";
const RESTORED: &str = "RESTORE DATABASE successfully processed ";
const VALID: &str = "The backup set on file 1 is valid.";
const BACKUP_ENDS: (u32, &str) = (3013, "BACKUP DATABASE is terminating abnormally.");
const RESTORE_ENDS: (u32, &str) = (3013, "RESTORE DATABASE is terminating abnormally.");
const VERIFY_ENDS: (u32, &str) = (3013, "RESTORE VERIFYONLY is terminating abnormally.");
const LOG_ENDS: (u32, &str) = (3013, "BACKUP LOG is terminating abnormally.");

/// Steps of ten, or of another size.
#[track_caller]
fn percents(shown: &str, step: usize) {
    let shown_steps: Vec<usize> = shown
        .lines()
        .filter_map(|line| line.strip_suffix(" percent processed."))
        .map(|number| number.parse().unwrap())
        .collect();
    assert_eq!(shown_steps, (1..=100 / step).map(|at| at * step).collect::<Vec<_>>(), "{shown}");
}

const SCANNED: &str = "WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state IN (2, 5)) \
                       WAITFOR DELAY '00:00:00.05'";
