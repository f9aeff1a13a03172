//! Goal: the statements that maintenance tools and tutorials of TDE emit run, or fail with the right message.
//!
//! Method: each test names a tool and where its source or its page is, and runs the forms of its statements: their
//! options and the order of clauses are the tool's, names and files are made up. Expected texts are typed by hand.
//! docs/statements.md says what is refused. Nothing here leaves this machine: TO URL is not tried.

mod encryption;
mod logs;
mod maintenance;
mod management_studio;
mod solutions;

use crate::sql_server::{count, errors, Server};

/// 8153
const NULLS: &str = "Warning: Null value is eliminated by an aggregate or other SET operation.";

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
        Self::with(&["C", "D/backup", "D/stripes", "D/keys"])
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
