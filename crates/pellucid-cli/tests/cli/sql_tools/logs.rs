//! What tools emit for log backups.

use super::{count, percents, Server, SCANNED, VALID};
use crate::support::{said_with, PELLUCID};

const LOGGED: &str = "BACKUP LOG successfully processed ";
const LOG_RESTORED: &str = "RESTORE LOG successfully processed ";

/// `Orders`, encrypted in format version 2, under the model FULL.
fn full_model() -> Server {
    let server = Server::new();
    let policy = ["policy", "set", "format-version", "2"];
    said_with(server.0.command(PELLUCID).args(policy), "").succeeded();
    server.done(&format!(
        "USE Orders
         CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE BackupCert
         ALTER DATABASE Orders SET ENCRYPTION ON
         {SCANNED}
         USE master
         ALTER DATABASE [Orders] SET RECOVERY FULL WITH NO_WAIT"
    ));
    server
}

fn items(server: &Server, database: &str) -> String {
    server.rows(&format!("SELECT ItemID FROM {database}.dbo.Item ORDER BY ItemID")).join(" ")
}

fn add(id: u32) -> String {
    format!("INSERT INTO Orders.dbo.Item VALUES ({id}, N'item')\nGO\n")
}

/// Ola Hallengren's DatabaseBackup with @BackupType = 'LOG': a log is backed up only if the database has had one or a full
/// backup, and how much of it there is decides whether it is.
/// Source: https://github.com/olahallengren/sql-server-maintenance-solution DatabaseBackup.sql
#[test]
fn ola_hallengrens_solution_backs_up_logs() {
    let server = full_model();
    let asks = "DECLARE @Lsn numeric(25,0), @Time datetime2, @Size float, @Type nvarchar(10) = 'LOG'
         SELECT @Lsn = last_log_backup_lsn FROM sys.database_recovery_status WHERE database_id = DB_ID(N'Orders')
         SELECT @Time = log_backup_time, @Size = log_since_last_log_backup_mb FROM sys.dm_db_log_stats(DB_ID(N'Orders'))
         IF @Type = 'LOG' AND DATABASEPROPERTYEX(N'Orders', 'Recovery') <> 'SIMPLE' AND @Lsn IS NULL SET @Type = 'FULL'
         SELECT @Type, CASE WHEN @Time IS NULL THEN 'never' ELSE 'before' END";
    assert_eq!(server.rows(asks), ["FULL|never"]);
    server.done("BACKUP DATABASE [Orders] TO DISK = N'D:\\backup\\f.bak' WITH CHECKSUM, COMPRESSION, INIT, FORMAT");
    assert_eq!(server.rows(asks), ["LOG|never"]);
    for (at, options) in [
        "CHECKSUM, COMPRESSION, INIT, FORMAT",
        "CHECKSUM, NO_COMPRESSION, COPY_ONLY, INIT, FORMAT, DESCRIPTION = N'log', NAME = N'hourly'",
        "CHECKSUM, COMPRESSION, INIT, FORMAT, ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = [BackupCert])",
    ]
    .iter()
    .enumerate()
    {
        let file = format!("N'D:\\backup\\Orders_LOG_{at}.trn'");
        let shown = server.done(&format!(
            "{}DECLARE @Procedure nvarchar(max) = QUOTENAME(N'master') + '.sys.sp_executesql', @Command nvarchar(max)
             SET @Command = N'BACKUP LOG [Orders] TO DISK = {} WITH {}'
             EXECUTE @Procedure @stmt = @Command
             RESTORE VERIFYONLY FROM DISK = {file} WITH CHECKSUM",
            add(10 + at as u32),
            file.replace('\'', "''"),
            options.replace('\'', "''")
        ));
        assert_eq!((count(&shown, LOGGED), count(&shown, VALID)), (1, 1), "{shown}");
    }
    assert_eq!(server.rows(asks), ["LOG|before"]);
    // A damaged log is found.
    let path = server.drive("D/backup/Orders_LOG_0.trn");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let shown =
        server.run("RESTORE VERIFYONLY FROM DISK = N'D:\\backup\\Orders_LOG_0.trn'").succeeded();
    assert!(shown.contains("Damage to the backup set was detected."), "{shown}");
}

/// dbatools: Backup-DbaDatabase -Type Log, Get-DbaDbBackupHistory and Restore-DbaDatabase -RestoreTime, which gives STOPAT to each
/// restore and does not say RECOVERY. Source: https://github.com/dataplat/dbatools
#[test]
fn dbatools_restores_to_a_moment() {
    let server = full_model();
    let with = "WITH NOFORMAT, NOINIT,  NOSKIP, REWIND, NOUNLOAD,  STATS = 1";
    let pause = "WAITFOR DELAY '00:00:00.1'\nGO\n";
    let shown = server.done(&format!(
        "BACKUP DATABASE [Orders] TO  DISK = N'D:\\backup\\Orders.bak' {with}
         GO
         {}{pause}SELECT 'now ' + CONVERT(VARCHAR(30), SYSUTCDATETIME(), 126)
         GO
         {pause}{}BACKUP LOG [Orders] TO  DISK = N'D:\\backup\\Orders1.trn' {with}
         GO
         {}BACKUP LOG [Orders] TO  DISK = N'D:\\backup\\s1.trn',  DISK = N'D:\\backup\\s2.trn' {with}",
        add(3),
        add(4),
        add(5)
    ));
    assert_eq!((count(&shown, LOGGED), count(&shown, "100 percent processed.")), (2, 3), "{shown}");
    let now = shown.lines().find_map(|line| line.strip_prefix("now ")).expect(&shown).to_owned();
    // The logs behind the last full backup, as its history finds them.
    let history = "SELECT a.type, a.position, a.devices FROM (SELECT RANK() OVER (ORDER BY backupset.last_lsn DESC, \
         backupset.backup_finish_date DESC) AS rk, backupset.type, backupset.position, backupset.first_lsn, (SELECT COUNT(*) \
         FROM msdb.dbo.backupmediafamily f WHERE f.media_set_id = backupset.media_set_id) AS devices FROM msdb..backupset AS \
         backupset WHERE backupset.database_name = 'Orders' AND is_copy_only = '0' AND last_recovery_fork_guid = (SELECT TOP 1 \
         last_recovery_fork_guid FROM msdb..backupset WHERE type = 'D' ORDER BY backup_set_id DESC) AND backupset.type = 'L' \
         AND backupset.database_backup_lsn >= (SELECT TOP 1 checkpoint_lsn FROM msdb..backupset WHERE type = 'D') AND \
         last_lsn > 1000001) AS a ORDER BY a.first_lsn";
    assert_eq!(server.rows(history), ["L|1|1", "L|1|2"]);
    let stop = format!("NOUNLOAD,  STATS = 10,  STOPAT = N'{now}'");
    let shown = server.done(&format!(
        "RESTORE DATABASE [Copy] FROM  DISK = N'D:\\backup\\Orders.bak' WITH  FILE = 1,  MOVE N'Orders' TO \
         N'D:\\Copy.mdf',  MOVE N'Orders_log' TO N'D:\\Copy_log.ldf',  NORECOVERY,  {stop}
         GO
         RESTORE LOG [Copy] FROM  DISK = N'D:\\backup\\Orders1.trn' WITH  FILE = 1,  {stop}"
    ));
    assert_eq!(count(&shown, LOG_RESTORED), 1, "{shown}");
    assert_eq!(items(&server, "Copy"), "1 2 3");
    let last = server.rows(
        "SELECT TOP 1 restore_type, CASE WHEN stop_at IS NULL THEN 0 ELSE 1 END, recovery FROM msdb.dbo.restorehistory WHERE \
         destination_database_name = N'Copy' ORDER BY restore_history_id DESC",
    );
    assert_eq!(last, ["L|1|1"]);
    // Without a moment, to the end, over what is there, with the stripes of the last log.
    let shown = server.done(
        "RESTORE DATABASE [Copy] FROM  DISK = N'D:\\backup\\Orders.bak' WITH  FILE = 1,  NORECOVERY,  NOUNLOAD,  REPLACE,  \
         STATS = 10
         GO
         RESTORE LOG [Copy] FROM  DISK = N'D:\\backup\\Orders1.trn' WITH  FILE = 1,  NORECOVERY,  NOUNLOAD,  STATS = 10
         GO
         RESTORE LOG [Copy] FROM  DISK = N'D:\\backup\\s1.trn',  DISK = N'D:\\backup\\s2.trn' WITH  FILE = 1,  NOUNLOAD,  \
         STATS = 10",
    );
    assert_eq!(count(&shown, LOG_RESTORED), 2, "{shown}");
    assert_eq!(items(&server, "Copy"), "1 2 3 4 5");
}

/// Management Studio's "Back Up Database", type "Transaction Log", to the file of the full backup, and "Restore Database" of it,
/// also after the database has gone on another recovery path. Source: Microsoft's
/// https://learn.microsoft.com/sql/relational-databases/backup-restore/back-up-a-transaction-log-sql-server
#[test]
fn management_studio_keeps_all_in_one_file() {
    let server = full_model();
    let to = "TO  DISK = N'D:\\backup\\Orders.bak' WITH NOFORMAT, NOINIT,  NAME = N'Orders', SKIP, NOREWIND, NOUNLOAD,  \
              STATS = 10";
    let shown = server.done(&format!(
        "BACKUP DATABASE [Orders] {to}\nGO\n{}BACKUP LOG [Orders] {to}\nGO\n{}BACKUP LOG [Orders] {to}",
        add(3),
        add(4)
    ));
    percents(&server.done(&format!("{}BACKUP LOG [Orders] {to}\nGO", add(5))), 10);
    assert_eq!(count(&shown, LOGGED), 2, "{shown}");
    let kinds =
        server.rows("RESTORE HEADERONLY FROM  DISK = N'D:\\backup\\Orders.bak' WITH NOUNLOAD");
    let kinds: Vec<_> = kinds.iter().map(|row| row.split('|').nth(2).unwrap_or("")).collect();
    assert_eq!(kinds, ["1", "2", "2", "2"]);
    // Its tail-log backup before a restore: the database is restoring behind it.
    let shown = server.done(
        "BACKUP LOG [Orders] TO  DISK = N'D:\\backup\\tail.trn' WITH NOFORMAT, NOINIT,  NAME = N'tail', NOSKIP, NOREWIND, \
         NOUNLOAD,  NORECOVERY ,  STATS = 5",
    );
    assert_eq!(count(&shown, LOGGED), 1, "{shown}");
    let restore = |last: u32| {
        let logs: String = (2..=last)
            .map(|file| {
                let more = if file < last { "NORECOVERY,  " } else { "" };
                format!(
                    "RESTORE LOG [Orders] FROM  DISK = N'D:\\backup\\Orders.bak' WITH  FILE = {file},  {more}NOUNLOAD,  \
                     STATS = 5\n"
                )
            })
            .collect();
        format!(
            "USE [master]
             ALTER DATABASE [Orders] SET SINGLE_USER WITH ROLLBACK IMMEDIATE
             RESTORE DATABASE [Orders] FROM  DISK = N'D:\\backup\\Orders.bak' WITH  FILE = 1,  NORECOVERY,  NOUNLOAD,  \
             REPLACE,  STATS = 5
             {logs}ALTER DATABASE [Orders] SET MULTI_USER\nGO"
        )
    };
    let single = "ALTER DATABASE [Orders] SET SINGLE_USER WITH ROLLBACK IMMEDIATE\n";
    server.done(&restore(3).replace(single, ""));
    assert_eq!(items(&server, "Orders"), "1 2 3 4");
    // From here on it is another path, in the same file.
    server.done(&format!(
        "BACKUP DATABASE [Orders] {to}\nGO\n{}BACKUP LOG [Orders] {to}\nGO",
        add(6)
    ));
    server.done(&restore(4));
    assert_eq!(items(&server, "Orders"), "1 2 3 4 5");
    let of_new = restore(2).replace("FILE = 1,", "FILE = 5,").replace("FILE = 2,", "FILE = 6,");
    server.done(&of_new);
    assert_eq!(items(&server, "Orders"), "1 2 3 4 6");
}
