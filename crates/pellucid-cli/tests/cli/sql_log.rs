//! Goal: the statements of SQL Server's for log backups do what administrators expect, to the commit.
//!
//! Method: a database of format version 2 gets rows, one a commit, and log backups; each statement is given as a script, and
//! what is restored is asked for its rows. Expected texts are typed by hand from Microsoft's list of messages.

use crate::sql_server::{count, errors, Server};
use crate::support::PELLUCID;

pub const LOG_ENDS: (&str, &str) = ("Msg 3013", "BACKUP LOG is terminating abnormally.");
pub const RESTORE_ENDS: (&str, &str) = ("Msg 3013", "RESTORE LOG is terminating abnormally.");
const SCANNED: &str = "WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state IN (2, 5)) \
                       WAITFOR DELAY '00:00:00.05'";
/// That many commits of a row each, with room between their times.
pub fn rows(first: u32, last: u32) -> String {
    (first..=last).map(|id| format!("INSERT INTO Sales.dbo.t VALUES ({id})\nGO\n")).collect()
}

/// An instance whose databases get format version 2, with one that is encrypted.
pub fn ready() -> Server {
    let server = Server::with(&["D"]);
    let policy = ["policy", "set", "format-version", "2"];
    crate::support::said_with(server.0.command(PELLUCID).args(policy), "").succeeded();
    done(
        &server,
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd'
         CREATE CERTIFICATE Cert WITH SUBJECT = 'a', EXPIRY_DATE = '20991231'
         BACKUP CERTIFICATE Cert TO FILE = 'D:\\Cert.cer'
           WITH PRIVATE KEY (FILE = 'D:\\Cert.key', ENCRYPTION BY PASSWORD = 'p@ssw0rd')
         CREATE DATABASE Sales
         GO
         CREATE TABLE Sales.dbo.t(id INT NOT NULL PRIMARY KEY)",
    );
    server
}

fn encrypt(server: &Server) {
    done(
        server,
        &format!(
            "USE Sales
             CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE Cert
             ALTER DATABASE Sales SET ENCRYPTION ON
             {SCANNED}"
        ),
    );
}

/// Encrypted, under the model FULL, with a full backup of row 1.
pub fn with_chain() -> Server {
    let server = ready();
    encrypt(&server);
    done(
        &server,
        &format!(
            "ALTER DATABASE Sales SET RECOVERY FULL
             {}BACKUP DATABASE Sales TO DISK = 'D:\\full.bak'",
            rows(1, 1)
        ),
    );
    server
}

#[track_caller]
pub fn done(server: &Server, script: &str) -> String {
    let shown = server.run(script).succeeded();
    assert!(!shown.contains("Msg "), "{script}\n{shown}");
    shown
}

#[track_caller]
pub fn says(server: &Server, script: &str, expected: &[(&str, &str)]) -> String {
    let shown = server.run(script).succeeded();
    let found = errors(&shown);
    let expected: Vec<_> =
        expected.iter().map(|(number, text)| (number.to_string(), text.to_string())).collect();
    assert_eq!(found, expected, "{script}\n{shown}");
    shown
}

#[track_caller]
pub fn ids(server: &Server, database: &str) -> String {
    server.rows(&format!("SELECT id FROM {database}.dbo.t ORDER BY id")).join(" ")
}

#[track_caller]
pub fn one(server: &Server, query: &str) -> String {
    let rows = server.rows(query);
    assert_eq!(rows.len(), 1, "{query}: {rows:?}");
    rows[0].clone()
}

const MODEL: &str =
    "SELECT recovery_model, recovery_model_desc, log_reuse_wait, log_reuse_wait_desc, \
                     DATABASEPROPERTYEX(name, 'Recovery') FROM sys.databases WHERE name = 'Sales'";
const NO_BASE: (&str, &str) =
    ("Msg 4214", "BACKUP LOG cannot be performed because there is no current database backup.");

#[test]
fn the_header_of_a_container_says_the_recovery_model() {
    let server = ready();
    // A plain database keeps it, and can have no chain.
    done(
        &server,
        "ALTER DATABASE Sales SET RECOVERY FULL BACKUP DATABASE Sales TO DISK = 'D:\\plain.bak'",
    );
    assert_eq!(one(&server, MODEL), "1|FULL|0|NOTHING|FULL");
    let log = "BACKUP LOG Sales TO DISK = 'D:\\l.trn'";
    let shown = says(&server, log, &[NO_BASE, LOG_ENDS]);
    assert_eq!(
        count(&shown, "Database 'Sales' is not encrypted: any SQLite may begin its log"),
        1,
        "{shown}"
    );
    // Once it is encrypted, what was said counts.
    encrypt(&server);
    assert_eq!(one(&server, MODEL), "1|FULL|0|NOTHING|FULL");
    let shown = says(&server, log, &[NO_BASE, LOG_ENDS]);
    assert_eq!(count(&shown, "Database 'Sales'"), 0, "{shown}");
    done(&server, &format!("BACKUP DATABASE Sales TO DISK = 'D:\\full.bak' {log}"));
    assert_eq!(one(&server, MODEL), "1|FULL|0|NOTHING|FULL");
    done(&server, &rows(7, 7));
    assert_eq!(one(&server, MODEL), "1|FULL|2|LOG_BACKUP|FULL");
    // What another program changes is seen.
    let file = server.0.path("keys/data/Sales.db");
    let recovery = |model: &str| {
        let mut command = server.0.command(PELLUCID);
        command.arg("recovery").arg(&file).arg(model);
        crate::support::said_with(&mut command, "").succeeded();
    };
    recovery("simple");
    assert_eq!(one(&server, MODEL), "3|SIMPLE|0|NOTHING|SIMPLE");
    let simple = "The statement BACKUP LOG is not allowed while the recovery model is SIMPLE. Use BACKUP DATABASE or \
                  change the recovery model using ALTER DATABASE.";
    says(&server, log, &[("Msg 4208", simple), LOG_ENDS]);
    done(&server, "ALTER DATABASE Sales SET RECOVERY BULK_LOGGED");
    assert_eq!(one(&server, MODEL), "2|BULK_LOGGED|0|NOTHING|BULK_LOGGED");
    recovery("full");
    assert_eq!(one(&server, MODEL), "1|FULL|0|NOTHING|FULL");
    says(&server, log, &[NO_BASE, LOG_ENDS]);
    let master = "Cannot back up the log of the master database. Use BACKUP DATABASE instead.";
    says(&server, "BACKUP LOG master TO DISK = 'D:\\m.trn'", &[("Msg 4212", master), LOG_ENDS]);
}

#[test]
fn log_backups_and_what_is_known_of_them() {
    let server = with_chain();
    let shown = done(
        &server,
        &format!(
            "{}BACKUP LOG Sales TO DISK = 'D:\\1.trn' MIRROR TO DISK = 'D:\\1m.trn' WITH FORMAT, NAME = N'first', \
             COMPRESSION, CHECKSUM, STATS = 50",
            rows(2, 4)
        ),
    );
    assert_eq!(count(&shown, "50 percent processed."), 1, "{shown}");
    let processed = shown.lines().find(|line| line.starts_with("Processed ")).unwrap_or_default();
    assert!(
        processed.ends_with(" pages for database 'Sales', file 'Sales_log' on file 1."),
        "{shown}"
    );
    assert_eq!(count(&shown, "BACKUP LOG successfully processed "), 1, "{shown}");
    done(
        &server,
        &format!(
            "{}BACKUP LOG Sales TO DISK = 'D:\\c.trn' WITH COPY_ONLY
             BACKUP LOG Sales TO DISK = 'D:\\2.trn'
             BACKUP DATABASE Sales TO DISK = 'D:\\diff.bak' WITH DIFFERENTIAL",
            rows(5, 5)
        ),
    );
    let sets = server.rows(
        "SELECT type, recovery_model, is_copy_only, begins_log_chain, database_backup_lsn - (SELECT checkpoint_lsn FROM \
         msdb.dbo.backupset WHERE type = 'D'), CASE WHEN last_recovery_fork_guid = first_recovery_fork_guid THEN 1 END, \
         CASE WHEN first_lsn < last_lsn THEN 1 ELSE 0 END FROM msdb.dbo.backupset ORDER BY backup_set_id",
    );
    assert_eq!(
        sets[1..4],
        ["L|FULL|0|1|0|1|1", "L|FULL|1|0|0|1|1", "L|FULL|0|0|0|1|1"],
        "{sets:?}"
    );
    assert!(
        sets[0].starts_with("D|FULL|0|0|-") && sets[4].starts_with("I|FULL|0|0|0|1|"),
        "{sets:?}"
    );
    // Each goes on from the one before it; the copy has what the next one has, too.
    let joins = "SELECT CASE WHEN b.first_lsn = a.last_lsn THEN 1 ELSE 0 END FROM msdb.dbo.backupset a JOIN \
                 msdb.dbo.backupset b ON b.backup_set_id IN (a.backup_set_id + 1, a.backup_set_id + 2) WHERE a.name = \
                 'first' AND b.type = 'L'";
    assert_eq!(server.rows(joins), ["1", "1"]);
    let differential = "SELECT CASE WHEN i.differential_base_lsn = d.checkpoint_lsn AND i.differential_base_guid = \
                        d.backup_set_uuid THEN 1 END FROM msdb.dbo.backupset i, msdb.dbo.backupset d WHERE i.type = 'I' \
                        AND d.type = 'D'";
    assert_eq!(one(&server, differential), "1");
    let files = "SELECT f.file_type, f.logical_name FROM msdb.dbo.backupfile f JOIN msdb.dbo.backupset s ON \
                 s.backup_set_id = f.backup_set_id WHERE s.name = 'first' ORDER BY f.file_number";
    assert_eq!(server.rows(files), ["D|Sales", "L|Sales_log"]);
    // HEADERONLY says the same.
    let known = "SELECT first_lsn, last_lsn, checkpoint_lsn, database_backup_lsn, last_recovery_fork_guid, recovery_model \
                 FROM msdb.dbo.backupset WHERE name = 'first'";
    let known: Vec<_> = one(&server, known).split('|').map(str::to_owned).collect();
    let header: Vec<_> =
        one(&server, "RESTORE HEADERONLY FROM DISK = 'D:\\1.trn', DISK = 'D:\\1m.trn'")
            .split('|')
            .map(str::to_owned)
            .collect();
    assert_eq!((header[2].as_str(), header[49].as_str()), ("2", "Transaction Log"));
    assert_eq!(header[13..17], known[..4]);
    assert_eq!([31, 44, 46].map(|at| &header[at]), [&known[4], &known[4], &known[5]]);
    let lsn = &known[1];
    assert_eq!(
        one(&server, "SELECT last_log_backup_lsn FROM sys.database_recovery_status WHERE database_id = DB_ID('Sales')"),
        one(&server, "SELECT max(last_lsn) FROM msdb.dbo.backupset WHERE type = 'L' AND is_copy_only = 0"),
        "{lsn}"
    );
    let stats = "SELECT d.name, s.recovery_model, s.log_truncation_holdup_reason, CASE WHEN s.total_log_size_mb > 0 AND \
                 s.log_backup_time IS NOT NULL AND s.log_backup_lsn LIKE '%:0001' THEN 1 END, CASE WHEN s.log_min_lsn = \
                 s.log_backup_lsn THEN 1 END, CASE WHEN s.log_end_lsn > s.log_min_lsn THEN 1 ELSE 0 END, CASE WHEN \
                 s.log_since_last_log_backup_mb > 0 AND s.active_log_size_mb = s.log_since_last_log_backup_mb THEN 1 \
                 ELSE 0 END, s.log_recovery_lsn FROM sys.databases d CROSS APPLY sys.dm_db_log_stats(d.database_id) s \
                 WHERE d.name = 'Sales'";
    assert_eq!(one(&server, stats), "Sales|FULL|NOTHING|1|1|0|0|NULL");
    done(&server, &rows(6, 6));
    assert_eq!(one(&server, stats), "Sales|FULL|LOG_BACKUP|1|1|1|1|NULL");
    assert_eq!(
        one(&server, "SELECT recovery_model FROM sys.dm_db_log_stats(DB_ID('Sales'))"),
        "FULL"
    );
    let told = |option: &str| {
        format!(
            "One or more of the options ({option}) are not supported for this statement. Review the documentation for \
             supported options."
        )
    };
    for (what, option, name) in [
        ("DATABASE", "NORECOVERY", "norecovery"),
        ("DATABASE", "NO_TRUNCATE", "no_truncate"),
        ("DATABASE", "STANDBY = 'D:\\s.tuf'", "STANDBY"),
        ("LOG", "DIFFERENTIAL", "differential"),
    ] {
        let shown = server.run(&format!("BACKUP {what} Sales TO DISK = 'D:\\3.trn' WITH {option}"));
        let found = errors(&shown.succeeded());
        assert_eq!(found[0].0, "Msg 3032", "{found:?}");
        assert!(found[0].1.eq_ignore_ascii_case(&told(name)), "{found:?}");
    }
    let mut command = server.0.command(PELLUCID);
    let listed = crate::support::said_with(command.arg("history"), "").succeeded();
    assert_eq!(listed.matches(" log ").count(), 3, "{listed}");
}

#[test]
fn a_database_is_restored_by_its_logs() {
    let server = with_chain();
    done(
        &server,
        &format!(
            "{}BACKUP LOG Sales TO DISK = 'D:\\l.trn'
             GO
             {}BACKUP LOG Sales TO DISK = 'D:\\l.trn'
             GO
             {}BACKUP LOG Sales TO DISK = 'D:\\3.trn'
             DROP DATABASE Sales",
            rows(2, 3),
            rows(4, 5),
            rows(6, 7)
        ),
    );
    let full = "RESTORE DATABASE Sales FROM DISK = 'D:\\full.bak' WITH NORECOVERY";
    let not_made = "The database \"Sales\" does not exist. RESTORE can only create a database when restoring either a full \
                    backup or a file backup of the primary file.";
    says(
        &server,
        "RESTORE LOG Sales FROM DISK = 'D:\\l.trn'",
        &[("Msg 3118", not_made), RESTORE_ENDS],
    );
    done(&server, full);
    let lsns = server.rows("SELECT last_lsn FROM msdb.dbo.backupset ORDER BY backup_set_id");
    let first = one(&server, "SELECT first_lsn FROM msdb.dbo.backupset WHERE type = 'D'");
    let gap = format!(
        "The log in this backup set begins at LSN {}, which is too recent to apply to the database. An earlier log backup \
         that includes LSN {first} can be restored.",
        lsns[1]
    );
    says(
        &server,
        "RESTORE LOG Sales FROM DISK = 'D:\\l.trn' WITH FILE = 2, NORECOVERY",
        &[("Msg 4305", &gap), RESTORE_ENDS],
    );
    let shown =
        done(&server, "RESTORE LOG Sales FROM DISK = 'D:\\l.trn' WITH NORECOVERY, STATS = 50");
    assert_eq!(count(&shown, "100 percent processed."), 1, "{shown}");
    assert_eq!(
        count(&shown, "Processed 0 pages for database 'Sales', file 'Sales' on file 1."),
        1,
        "{shown}"
    );
    assert_eq!(count(&shown, "RESTORE LOG successfully processed "), 1, "{shown}");
    let early = format!(
        "The log in this backup set terminates at LSN {0}, which is too early to apply to the database. A more recent log \
         backup that includes LSN {0} can be restored.",
        lsns[1]
    );
    says(
        &server,
        "RESTORE LOG Sales FROM DISK = 'D:\\l.trn' WITH NORECOVERY",
        &[("Msg 4326", &early), RESTORE_ENDS],
    );
    assert_eq!(
        one(&server, "SELECT state_desc FROM sys.databases WHERE name = 'Sales'"),
        "RESTORING"
    );
    done(&server, "RESTORE LOG Sales FROM DISK = 'D:\\l.trn' WITH FILE = 2, RECOVERY");
    assert_eq!(ids(&server, "Sales"), "1 2 3 4 5");
    assert_eq!(one(&server, MODEL), "1|FULL|0|NOTHING|FULL");
    let history = "SELECT restore_type, recovery, destination_database_name FROM msdb.dbo.restorehistory ORDER BY \
                   restore_history_id";
    assert_eq!(server.rows(history), ["D|0|Sales", "L|0|Sales", "L|1|Sales"]);
    let ready = "The log or differential backup cannot be restored because no files are ready to rollforward.";
    says(
        &server,
        "RESTORE LOG Sales FROM DISK = 'D:\\3.trn'",
        &[("Msg 3117", ready), RESTORE_ENDS],
    );
    // RECOVERY by itself, with all logs.
    done(
        &server,
        &format!(
            "{full}, REPLACE
             RESTORE LOG Sales FROM DISK = 'D:\\l.trn' WITH NORECOVERY
             RESTORE LOG Sales FROM DISK = 'D:\\l.trn' WITH NORECOVERY, FILE = 2
             RESTORE LOG Sales FROM DISK = 'D:\\3.trn' WITH NORECOVERY
             RESTORE DATABASE Sales WITH RECOVERY"
        ),
    );
    assert_eq!(ids(&server, "Sales"), "1 2 3 4 5 6 7");
    // The database that was restored is on a path of its own.
    done(
        &server,
        &format!(
            "BACKUP DATABASE Sales TO DISK = 'D:\\full2.bak'
             {}BACKUP LOG Sales TO DISK = 'D:\\4.trn'
             {full}, REPLACE",
            rows(8, 8)
        ),
    );
    let shown = server.run("RESTORE LOG Sales FROM DISK = 'D:\\4.trn'").succeeded();
    assert_eq!(errors(&shown)[0].0, "Msg 4330", "{shown}");
    let shown = server.run("RESTORE LOG Sales FROM DISK = 'D:\\full.bak'").succeeded();
    assert!(errors(&shown)[0].1.contains("it is no log set"), "{shown}");
}

#[test]
fn a_restore_stops_where_it_is_told() {
    let server = with_chain();
    // Row 2, then a moment, then row 3; the next log has the rows 4 and 5.
    let moment = "WAITFOR DELAY '00:00:00.1'\nGO\n";
    let shown = done(
        &server,
        &format!(
            "{moment}{}{moment}SELECT 'at ' + CONVERT(VARCHAR(30), SYSUTCDATETIME(), 126)\nGO\n{moment}{}
             BACKUP LOG Sales TO DISK = 'D:\\1.trn'\nGO\n{moment}{}
             BACKUP LOG Sales TO DISK = 'D:\\2.trn'
             BACKUP DATABASE Sales TO DISK = 'D:\\diff.bak' WITH DIFFERENTIAL\nGO\n{}
             BACKUP LOG Sales TO DISK = 'D:\\3.trn'",
            rows(2, 2),
            rows(3, 3),
            rows(4, 5),
            rows(6, 6)
        ),
    );
    let at = shown.lines().find_map(|line| line.strip_prefix("at ")).expect(&shown).to_owned();
    let to = "MOVE 'Sales' TO 'D:\\Copy.db', REPLACE, NORECOVERY";
    let full = format!("RESTORE DATABASE Copy FROM DISK = 'D:\\full.bak' WITH {to}");
    let behind = "This backup set contains records that were logged before the designated point in time. The database is \
                  being left in the restoring state so that more roll forward can be performed.";
    // On each, as tools do.
    let shown = done(
        &server,
        &format!(
            "{full}, STOPAT = '{at}'
             RESTORE LOG Copy FROM DISK = 'D:\\1.trn' WITH STOPAT = '{at}'"
        ),
    );
    assert_eq!(count(&shown, behind), 0, "{shown}");
    assert_eq!(ids(&server, "Copy"), "1 2");
    let stopped = format!(
        "SELECT restore_type, CASE WHEN ABS(DATEDIFF(ms, stop_at, CAST(LEFT('{at}', 23) AS datetime))) < 5 THEN 1 END \
         FROM msdb.dbo.restorehistory ORDER BY restore_history_id"
    );
    assert_eq!(server.rows(&stopped), ["D|1", "L|1"]);
    // Behind the first log.
    let late = one(&server, "SELECT CONVERT(VARCHAR(30), DATEADD(day, 1, SYSUTCDATETIME()), 126)");
    let shown = done(
        &server,
        &format!(
            "{full}
             RESTORE LOG Copy FROM DISK = 'D:\\1.trn' WITH STOPAT = '{late}', RECOVERY"
        ),
    );
    assert_eq!(count(&shown, behind), 1, "{shown}");
    let shown = done(
        &server,
        &format!(
            "RESTORE LOG Copy FROM DISK = 'D:\\2.trn' WITH STOPAT = '{late}'
             RESTORE DATABASE Copy WITH RECOVERY"
        ),
    );
    assert_eq!(count(&shown, behind), 1, "{shown}");
    assert_eq!(ids(&server, "Copy"), "1 2 3 4 5");
    // Too early, and what comes behind the point.
    let too_early = "The specified STOPAT time is too early. All or part of the database is already rolled forward beyond \
                     that point.";
    let before_set = "The STOPAT clause specifies a point too early to allow this backup set to be restored. Choose a \
                      different stop point or use RESTORE DATABASE WITH RECOVERY to recover at the current point.";
    says(
        &server,
        &format!("{full}\nRESTORE LOG Copy FROM DISK = 'D:\\1.trn' WITH STOPAT = '2020-01-01'"),
        &[("Msg 4335", too_early), RESTORE_ENDS],
    );
    done(
        &server,
        &format!("RESTORE LOG Copy FROM DISK = 'D:\\1.trn' WITH STOPAT = '{at}', NORECOVERY"),
    );
    says(
        &server,
        &format!("RESTORE LOG Copy FROM DISK = 'D:\\2.trn' WITH STOPAT = '{at}', NORECOVERY"),
        &[("Msg 4338", before_set), RESTORE_ENDS],
    );
    done(&server, "RESTORE DATABASE Copy WITH RECOVERY");
    assert_eq!(ids(&server, "Copy"), "1 2");
    // By number: up to the end of the first log, and before its last commit.
    let lsn = one(&server, "SELECT last_lsn FROM msdb.dbo.backupset WHERE backup_set_id = 2");
    for (word, expected) in [("STOPATMARK", "1 2 3"), ("STOPBEFOREMARK", "1 2")] {
        done(
            &server,
            &format!("{full}\nRESTORE LOG Copy FROM DISK = 'D:\\1.trn' WITH {word} = 'lsn:{lsn}' AFTER '2020-01-01'"),
        );
        assert_eq!(ids(&server, "Copy"), expected, "{word}");
    }
    let no_mark = "This log file contains records logged before the designated mark. The database is being left in the \
                   Restoring state so you can apply another log file.";
    let shown = done(
        &server,
        &format!("{full}\nRESTORE LOG Copy FROM DISK = 'D:\\1.trn' WITH STOPATMARK = 'deploy'"),
    );
    assert_eq!(count(&shown, no_mark), 1, "{shown}");
    says(
        &server,
        "RESTORE LOG Copy FROM DISK = 'D:\\2.trn' WITH STOPATMARK = 'lsn:7'",
        &[("Msg 4334", "The named mark does not identify a valid LSN."), RESTORE_ENDS],
    );
    // A differential spares the logs before it.
    done(
        &server,
        &format!(
            "{full}
             RESTORE DATABASE Copy FROM DISK = 'D:\\diff.bak' WITH NORECOVERY
             RESTORE LOG Copy FROM DISK = 'D:\\3.trn' WITH RECOVERY"
        ),
    );
    assert_eq!(ids(&server, "Copy"), "1 2 3 4 5 6");
}

/// The files that are left when everything is old.
#[track_caller]
fn left_by_prune(server: &Server, more: &[&str]) -> Vec<String> {
    let prune = ["--yes", "history", "prune", "--older-than", "0", "--files", "--apply"];
    let mut command = server.0.command(PELLUCID);
    crate::support::said_with(command.args(prune).args(more), "").succeeded();
    let folder = std::fs::read_dir(server.drive("D")).unwrap();
    let names = folder.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> =
        names.filter(|name| name.ends_with(".bak") || name.ends_with(".trn")).collect();
    names.sort();
    names
}

#[test]
fn what_a_chain_needs_is_not_pruned() {
    let script = |expires: &str| {
        let two = rows(2, 2);
        format!(
            "BACKUP DATABASE Sales TO DISK = 'D:\\a.bak' {expires}\nGO\n{two}BACKUP LOG Sales TO DISK = 'D:\\a.trn'
             GO\n{}BACKUP DATABASE Sales TO DISK = 'D:\\b.bak'
             BACKUP LOG Sales TO DISK = 'D:\\b.trn'\nGO\n{}BACKUP LOG Sales TO DISK = 'D:\\c.trn'",
            rows(3, 3),
            rows(4, 4)
        )
    };
    // The last full backup stays, and the log behind it. What b.trn has was committed before.
    let server = with_chain();
    done(&server, &script(""));
    let kept = left_by_prune(&server, &[]);
    assert_eq!(kept, ["b.bak", "c.trn"], "{kept:?}");
    done(
        &server,
        "RESTORE DATABASE Copy FROM DISK = 'D:\\b.bak' WITH MOVE 'Sales' TO 'D:\\Copy.db', NORECOVERY
         RESTORE LOG Copy FROM DISK = 'D:\\c.trn'",
    );
    assert_eq!(ids(&server, "Copy"), "1 2 3 4");
    assert_eq!(left_by_prune(&server, &["--last", "Sales"]), [""; 0]);
    // The older full backup stays, and so does the way from it.
    let server = with_chain();
    done(&server, &script("WITH EXPIREDATE = '20990101'"));
    assert_eq!(left_by_prune(&server, &[]), ["a.bak", "a.trn", "b.bak", "b.trn", "c.trn"]);
    done(
        &server,
        "RESTORE DATABASE Copy FROM DISK = 'D:\\a.bak' WITH MOVE 'Sales' TO 'D:\\Copy.db', NORECOVERY
         RESTORE LOG Copy FROM DISK = 'D:\\a.trn' WITH NORECOVERY
         RESTORE LOG Copy FROM DISK = 'D:\\b.trn' WITH NORECOVERY
         RESTORE LOG Copy FROM DISK = 'D:\\c.trn'",
    );
    assert_eq!(ids(&server, "Copy"), "1 2 3 4");
    // One that the older one leads past may go.
    assert_eq!(left_by_prune(&server, &["--last", "Sales"]), ["a.bak", "a.trn", "b.trn", "c.trn"]);
}

/// Whoever has the certificate's public half can make a log set that opens, but no signature.
#[test]
fn a_log_without_a_signature_is_not_believed_behind_signed_backups() {
    let server = with_chain();
    let file = server.0.path("keys/data/Sales.db");
    done(&server, &rows(2, 2));
    let log = server.drive("D/l.trn");
    let mut command = server.0.command(PELLUCID);
    command.arg("backup").arg(&file).args(["--log", "--unsigned", "--to"]).arg(&log);
    crate::support::said_with(&mut command, "").succeeded();
    // Nobody knows any more who made it.
    for name in ["msdb.db", "msdb.db-wal", "msdb.db-shm"] {
        drop(std::fs::remove_file(server.0.path("keys").join(name)));
    }
    let to = server.0.path("at.db");
    let mut command = server.0.command(PELLUCID);
    command
        .arg("restore")
        .arg(server.drive("D/full.bak"))
        .arg(&log)
        .args(["--at", "last", "--to"])
        .arg(&to);
    let said = crate::support::said_with(&mut command, "");
    assert!(said.code == 1 && said.stderr.contains("it is NOT signed"), "{said:?}");
    assert!(!to.exists());
    crate::support::said_with(command.arg("--allow-unsigned"), "").succeeded();
    let shown = server
        .run(
            "RESTORE DATABASE Copy FROM DISK = 'D:\\full.bak' WITH NORECOVERY, MOVE 'Sales' TO 'D:\\Copy.db'
             GO
             RESTORE LOG Copy FROM DISK = 'D:\\l.trn'",
        )
        .succeeded();
    let found = errors(&shown);
    assert_eq!((found.len(), found[0].0.as_str()), (2, "Msg 50008"), "{shown}");
    assert!(found[0].1.contains("it is NOT signed"), "{shown}");
    let state = "SELECT state_desc FROM sys.databases WHERE name = 'Copy'";
    assert_eq!(one(&server, state), "RESTORING");
}

/// The table that Microsoft's page of RESTORE HEADERONLY describes, in the columns that scripts pair files by.
const HEADERS: &str = "CREATE TABLE #h (BackupName nvarchar(128), BackupDescription nvarchar(255), BackupType smallint,
  ExpirationDate datetime, Compressed bit, Position smallint, DeviceType tinyint, UserName nvarchar(128), ServerName nvarchar(128),
  DatabaseName nvarchar(128), DatabaseVersion int, DatabaseCreationDate datetime, BackupSize numeric(20, 0), FirstLSN numeric(25, 0),
  LastLSN numeric(25, 0), CheckpointLSN numeric(25, 0), DatabaseBackupLSN numeric(25, 0), BackupStartDate datetime,
  BackupFinishDate datetime, SortOrder smallint, CodePage smallint, UnicodeLocaleId int, UnicodeComparisonStyle int,
  CompatibilityLevel tinyint, SoftwareVendorId int, SoftwareVersionMajor int, SoftwareVersionMinor int, SoftwareVersionBuild int,
  MachineName nvarchar(128), Flags int, BindingID uniqueidentifier, RecoveryForkID uniqueidentifier, Collation nvarchar(128),
  FamilyGUID uniqueidentifier, HasBulkLoggedData bit, IsSnapshot bit, IsReadOnly bit, IsSingleUser bit, HasBackupChecksums bit,
  IsDamaged bit, BeginsLogChain bit, HasIncompleteMetaData bit, IsForceOffline bit, IsCopyOnly bit, FirstRecoveryForkID uniqueidentifier,
  ForkPointLSN numeric(25, 0), RecoveryModel nvarchar(60), DifferentialBaseLSN numeric(25, 0), DifferentialBaseGUID uniqueidentifier,
  BackupTypeDescription nvarchar(60), BackupSetGUID uniqueidentifier, CompressedBackupSize bigint, containment tinyint,
  KeyAlgorithm nvarchar(32), EncryptorThumbprint varbinary(20), EncryptorType nvarchar(32), LastValidRestoreTime datetime,
  TimeZone nvarchar(32), CompressionAlgorithm nvarchar(32))";

/// Scripts find the files that belong together by what their headers say, in tables that they have from the reference.
#[test]
fn headers_of_files_pair_them() {
    let server = with_chain();
    done(
        &server,
        &format!(
            "{}BACKUP DATABASE Sales TO DISK = 'D:\\\\diff.bak' WITH DIFFERENTIAL
             {}BACKUP LOG Sales TO DISK = 'D:\\\\log.trn'",
            rows(2, 2),
            rows(3, 3)
        ),
    );
    let script = format!(
        "SET NOCOUNT ON
         {HEADERS}
         INSERT #h EXEC ('RESTORE HEADERONLY FROM DISK = ''D:\\\\full.bak''')
         INSERT #h EXEC ('RESTORE HEADERONLY FROM DISK = ''D:\\\\diff.bak''')
         INSERT #h EXEC ('RESTORE HEADERONLY FROM DISK = ''D:\\\\log.trn''')
         SELECT f.BackupType, d.BackupType, l.BackupType, CASE WHEN d.FirstLSN >= f.LastLSN AND l.LastLSN >= d.LastLSN THEN 1 ELSE 0 END
         FROM #h f JOIN #h d ON d.DifferentialBaseLSN = f.CheckpointLSN AND d.DifferentialBaseGUID = f.BackupSetGUID
              AND d.DatabaseBackupLSN = f.CheckpointLSN
         JOIN #h l ON l.DatabaseBackupLSN = f.CheckpointLSN AND l.BackupType = 2
         WHERE f.BackupType = 1"
    );
    assert_eq!(server.rows(&script), ["1|5|2|1"]);
    // The certificate is found by what the file says, and by a variable of the documented length.
    let names = format!(
        "SET NOCOUNT ON
         {HEADERS}
         INSERT #h EXEC ('RESTORE HEADERONLY FROM DISK = ''D:\\\\full.bak''')
         DECLARE @print varbinary(20), @of_set varbinary(20)
         SELECT @print = thumbprint FROM sys.certificates WHERE name = 'Cert'
         SELECT @of_set = encryptor_thumbprint FROM msdb.dbo.backupset WHERE type = 'D'
         SELECT c.name, DATALENGTH(c.thumbprint), CASE WHEN @print = c.thumbprint AND @of_set = c.thumbprint THEN 'same' END, k.encryptor_type
         FROM #h h JOIN sys.certificates c ON c.thumbprint = h.EncryptorThumbprint
         JOIN sys.dm_database_encryption_keys k ON k.encryptor_thumbprint = c.thumbprint AND k.database_id = DB_ID('Sales')"
    );
    assert_eq!(server.rows(&names), ["Cert|20|same|CERTIFICATE"]);
}
