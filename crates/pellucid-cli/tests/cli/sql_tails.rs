//! Goal: tails of logs, databases that are restoring and standbys are to an administrator what they are in SQL Server, and the mark in
//! the header keeps every other program out, too.
//!
//! Method: a database with a chain of log backups; each statement is given as a script, each state asked of `sys.databases`, of
//! `sqlite3` under `run` and of the command. Expected texts are typed by hand from Microsoft's list of messages.

use std::path::PathBuf;

use crate::sql_log::{done, ids, one, rows, says, with_chain, RESTORE_ENDS};
use crate::sql_server::Server;
use crate::support::{said_with, PELLUCID};

const STATE: &str = "SELECT state, state_desc, is_in_standby, is_read_only, DATABASEPROPERTYEX(name, 'Status'), \
                     DATABASEPROPERTYEX(name, 'IsInStandBy') FROM sys.databases WHERE name = 'Sales'";
const CLOSED: (&str, &str) =
    ("Msg 927", "Database 'Sales' cannot be opened. It is in the middle of a restore.");
const READ: &str = "SELECT count(*) FROM Sales.dbo.t";

fn file(server: &Server) -> PathBuf {
    let known = "SELECT physical_name FROM sys.master_files WHERE type = 0 AND database_id = DB_ID('Sales')";
    PathBuf::from(one(server, known))
}

/// What another program sees.
fn sqlite(server: &Server, sql: &str) -> (bool, String) {
    let path = file(server);
    let mut command = server.0.command(PELLUCID);
    command.args(["run", "--", "sqlite3", "-batch", "-bail"]).arg(path);
    let said = said_with(&mut command, sql);
    (said.code == 0, said.all())
}

#[test]
fn a_tail_leaves_the_database_restoring_for_every_program_until_it_is_recovered() {
    let server = with_chain();
    done(&server, &rows(2, 3));
    let in_use = "Exclusive access could not be obtained because the database is in use.";
    let tail = "BACKUP LOG Sales TO DISK = 'D:\\tail.trn' WITH NORECOVERY";
    let ends = "BACKUP LOG is terminating abnormally.";
    says(&server, &format!("USE Sales {tail}"), &[("Msg 3101", in_use), ("Msg 3013", ends)]);
    done(&server, tail);
    assert_eq!(one(&server, STATE), "1|RESTORING|0|0|RESTORING|0");
    says(&server, READ, &[CLOSED]);
    let (is_open, told) = sqlite(&server, "SELECT count(*) FROM t;");
    assert!(!is_open && told.contains("is being restored"), "{told}");
    // The mark is in the header, whatever the instance remembers.
    done(&server, "RESTORE DATABASE Sales WITH RECOVERY");
    assert_eq!(one(&server, STATE), "0|ONLINE|0|0|ONLINE|0");
    assert_eq!(ids(&server, "Sales"), "1 2 3");
    says(
        &server,
        "RESTORE DATABASE Sales WITH RECOVERY",
        &[
            ("Msg 3153", "The database is already fully recovered."),
            ("Msg 3013", "RESTORE DATABASE is terminating abnormally."),
        ],
    );
    // The chain goes on behind it, and leads over it.
    done(&server, &rows(4, 4));
    done(&server, "BACKUP LOG Sales TO DISK = 'D:\\last.trn' WITH NORECOVERY");
    done(
        &server,
        "RESTORE DATABASE Sales FROM DISK = 'D:\\full.bak' WITH NORECOVERY
         RESTORE LOG Sales FROM DISK = 'D:\\tail.trn' WITH NORECOVERY
         RESTORE LOG Sales FROM DISK = 'D:\\last.trn' WITH RECOVERY",
    );
    assert_eq!(
        (one(&server, STATE).as_str(), ids(&server, "Sales").as_str()),
        ("0|ONLINE|0|0|ONLINE|0", "1 2 3 4")
    );
}

#[test]
fn a_database_that_is_restored_without_recovery_is_closed_to_every_program() {
    let server = with_chain();
    done(&server, &format!("{}BACKUP LOG Sales TO DISK = 'D:\\1.trn'", rows(2, 2)));
    done(&server, "RESTORE DATABASE Sales FROM DISK = 'D:\\full.bak' WITH NORECOVERY, REPLACE");
    assert_eq!(one(&server, STATE), "1|RESTORING|0|0|RESTORING|0");
    let (is_open, told) = sqlite(&server, "SELECT count(*) FROM t;");
    assert!(!is_open && told.contains("is being restored"), "{told}");
    let mut command = server.0.command(PELLUCID);
    command.args(["restore", "--online", "--to"]).arg(file(&server));
    assert!(said_with(&mut command, "").succeeded().contains("recovered"));
    assert!(sqlite(&server, "SELECT count(*) FROM t;").0);
    done(&server, "RESTORE LOG Sales FROM DISK = 'D:\\1.trn' WITH NORECOVERY");
    assert!(!sqlite(&server, "SELECT count(*) FROM t;").0, "the log goes on with it");
    done(&server, "RESTORE DATABASE Sales WITH RECOVERY");
    assert_eq!(ids(&server, "Sales"), "1 2");
}

#[test]
fn a_standby_is_read_between_logs_and_changed_by_nobody() {
    let server = with_chain();
    done(
        &server,
        &format!(
            "{}BACKUP LOG Sales TO DISK = 'D:\\1.trn'
             GO
             {}BACKUP LOG Sales TO DISK = 'D:\\2.trn'
             RESTORE DATABASE Sales FROM DISK = 'D:\\full.bak' WITH STANDBY = 'D:\\undo.tuf', REPLACE",
            rows(2, 2),
            rows(3, 3)
        ),
    );
    let standby = "0|ONLINE|1|1|ONLINE|1";
    assert_eq!((one(&server, STATE).as_str(), ids(&server, "Sales").as_str()), (standby, "1"));
    let read_only = "Failed to update database \"Sales\" because the database is read-only.";
    says(&server, "INSERT INTO Sales.dbo.t VALUES (9)", &[("Msg 3906", read_only)]);
    let (is_done, told) = sqlite(&server, "INSERT INTO t VALUES (9);");
    assert!(!is_done && told.contains("readonly"), "{told}");
    done(&server, "RESTORE LOG Sales FROM DISK = 'D:\\1.trn' WITH STANDBY = 'D:\\undo.tuf'");
    assert_eq!((one(&server, STATE).as_str(), ids(&server, "Sales").as_str()), (standby, "1 2"));
    let both =
        "RESTORE LOG Sales FROM DISK = 'D:\\2.trn' WITH STANDBY = 'D:\\undo.tuf', NORECOVERY";
    let shown = server.run(both).succeeded();
    assert!(shown.contains(RESTORE_ENDS.1) && shown.contains("STANDBY"), "{shown}");
    done(&server, "RESTORE LOG Sales FROM DISK = 'D:\\2.trn' WITH NORECOVERY");
    says(&server, READ, &[CLOSED]);
    done(&server, "RESTORE DATABASE Sales WITH STANDBY = 'D:\\undo.tuf'");
    assert_eq!((one(&server, STATE).as_str(), ids(&server, "Sales").as_str()), (standby, "1 2 3"));
    done(&server, "RESTORE DATABASE Sales WITH RECOVERY");
    done(&server, &rows(4, 4));
    assert_eq!(
        (one(&server, STATE).as_str(), ids(&server, "Sales").as_str()),
        ("0|ONLINE|0|0|ONLINE|0", "1 2 3 4")
    );
}

#[test]
fn a_tail_is_taken_without_the_database_file() {
    let server = with_chain();
    done(&server, &format!("{}BACKUP LOG Sales TO DISK = 'D:\\1.trn'", rows(2, 2)));
    done(&server, &rows(3, 4));
    std::fs::remove_file(file(&server)).unwrap();
    let shown =
        done(&server, "BACKUP LOG Sales TO DISK = 'D:\\tail.trn' WITH NO_TRUNCATE, NORECOVERY");
    assert!(shown.contains("without the database file"), "{shown}");
    done(
        &server,
        "RESTORE DATABASE Sales FROM DISK = 'D:\\full.bak' WITH NORECOVERY, REPLACE
         RESTORE LOG Sales FROM DISK = 'D:\\1.trn' WITH NORECOVERY
         RESTORE LOG Sales FROM DISK = 'D:\\tail.trn' WITH RECOVERY",
    );
    assert_eq!(ids(&server, "Sales"), "1 2 3 4");
}
