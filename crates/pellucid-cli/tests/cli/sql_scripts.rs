//! Goal: what scripts around backups ask for is there, and says what SQL Server says.
//!
//! Method: scripts as administrators have them, in our own words; what they print is typed by hand from the pages of Microsoft's
//! reference, or from how the server is set up.

use std::time::{Duration, Instant};

use crate::support::{said_with, Place, PELLUCID};

struct Server(Place);

impl Server {
    fn new() -> Self {
        let server = Self(Place::new());
        server.prints(
            "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd'
             CREATE CERTIFICATE Backups WITH SUBJECT = 'backups', EXPIRY_DATE = '20990102'
             CREATE DATABASE q",
            &[],
        );
        server
    }

    fn lines(&self, script: &str) -> Vec<String> {
        let said = said_with(self.0.command(PELLUCID).args(["sql", "-W", "-h", "-1"]), script);
        let shown = said
            .stdout
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("Changed database"));
        let cut = |line: &str| match line.strip_prefix("Msg ") {
            Some(rest) => format!("Msg {}", rest.split(',').next().unwrap_or_default()),
            None => line.to_owned(),
        };
        shown.map(cut).collect()
    }

    #[track_caller]
    fn prints(&self, script: &str, expected: &[&str]) {
        assert_eq!(self.lines(&format!("SET NOCOUNT ON\n{script}")), expected, "{script}");
    }
}

#[test]
fn both_errors_of_a_backup_are_caught_and_thrown_again() {
    let server = Server::new();
    let script = "BEGIN TRY BACKUP DATABASE q TO DISK = '/nowhere/x.bak' END TRY
         BEGIN CATCH PRINT CONCAT('handled ', ERROR_NUMBER()) END CATCH
         GO
         PRINT 'the rest'";
    server.prints(script, &["handled 3013", "the rest"]);
    // Nothing has failed, so that -b goes on.
    let all = said_with(server.0.command(PELLUCID).args(["sql", "-b"]), script);
    assert_eq!(all.code, 0, "{all:?}");
    server.prints(
        "BEGIN TRY RESTORE DATABASE q FROM DISK = '/nowhere/x.bak' END TRY
         BEGIN CATCH PRINT 'caught'; THROW END CATCH",
        &[
            "caught",
            "Msg 3201",
            "Cannot open backup device '/nowhere/x.bak'. Operating system error 2(No such file or directory).",
            "Msg 3013",
            "RESTORE DATABASE is terminating abnormally.",
        ],
    );
    // What is thrown within another TRY is caught as a whole again.
    server.prints(
        "BEGIN TRY
             BEGIN TRY CREATE DATABASE q END TRY
             BEGIN CATCH THROW END CATCH
         END TRY
         BEGIN CATCH PRINT ERROR_NUMBER() END CATCH",
        &["1801"],
    );
}

#[test]
fn a_set_without_a_name_has_none() {
    let server = Server::new();
    server.lines(
        "BACKUP DATABASE q TO DISK = 'a.bak'
         BACKUP DATABASE q TO DISK = 'b.bak' WITH NAME = 'named', DESCRIPTION = 'described', MEDIANAME = 'medium'",
    );
    server.prints(
        "SELECT ISNULL(s.name, 'none'), ISNULL(s.description, 'none'), ISNULL(m.name, 'none'), ISNULL(m.description, 'none')
         FROM msdb.dbo.backupset AS s JOIN msdb.dbo.backupmediaset AS m ON m.media_set_id = s.media_set_id
         ORDER BY s.backup_set_id",
        &["none none none none", "named described medium none"],
    );
}

#[test]
fn the_folders_for_databases_end_with_a_separator() {
    let server = Server::new();
    let data = format!("{}/x.mdf", server.0.path("keys/data").display());
    server.prints(
        "SELECT CAST(SERVERPROPERTY('InstanceDefaultDataPath') AS nvarchar(4000)) + 'x.mdf'
         SELECT CAST(SERVERPROPERTY('InstanceDefaultLogPath') AS nvarchar(4000)) + 'x.mdf'",
        &[&data, &data],
    );
}

/// The query by which everybody watches a backup, from another session. It sees the statement, and no password in it.
#[test]
fn a_backup_is_watched_with_its_statement() {
    let server = Server::new();
    server.prints(
        "USE q
         CREATE TABLE t(a VARCHAR(MAX))
         INSERT t SELECT REPLICATE(CAST(NEWID() AS VARCHAR(MAX)), 40000) FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8)) AS v(x)
         INSERT t SELECT a.a FROM t AS a CROSS JOIN (VALUES (1), (2), (3), (4)) AS v(x)",
        &[],
    );
    let watch = "SET NOCOUNT ON
         SELECT r.command, DB_NAME(r.database_id), SUBSTRING(t.text, r.statement_start_offset / 2 + 1,
             CASE r.statement_end_offset WHEN -1 THEN LEN(t.text) ELSE 100 END)
         FROM sys.dm_exec_requests AS r CROSS APPLY sys.dm_exec_sql_text(r.sql_handle) AS t
         JOIN sys.dm_exec_sessions AS s ON s.session_id = r.session_id
         JOIN sys.dm_exec_connections AS c ON c.session_id = r.session_id
         WHERE r.command IN ('BACKUP DATABASE', 'RESTORE DATABASE') AND r.session_id <> @@SPID AND s.is_user_process = 1";
    server.prints(watch, &[]);
    let mut command = server.0.command(PELLUCID);
    command.args(["sql", "-Q"]).arg(
        "DECLARE @n int = 0
         WHILE @n < 200
         BEGIN
             SET @n += 1
             EXEC('/* PASSWORD = ''secret'' */ BACKUP DATABASE q TO DISK = ''q.bak'' WITH INIT, COMPRESSION, /* PASSWORD = */ NAME = ''n''')
         END",
    );
    let mut backing = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let mut seen = Vec::new();
    while seen.is_empty() && begun.elapsed() < Duration::from_secs(60) {
        seen = server.lines(watch);
        seen.retain(|line| line.starts_with("BACKUP"));
    }
    backing.kill().unwrap();
    backing.wait().unwrap();
    let [line] = &seen[..] else { panic!("{seen:?}") };
    assert!(
        line.starts_with("BACKUP DATABASE q BACKUP DATABASE q TO DISK = 'q.bak' WITH INIT"),
        "{line}"
    );
    // A killed session has no request.
    server.prints(watch, &[]);
}

#[test]
fn views_of_the_server_and_functions_that_give_tables() {
    let server = Server::new();
    server.prints(
        "SELECT COUNT(*), MIN(session_id - @@SPID), MIN(program_name) FROM sys.dm_exec_sessions
         SELECT net_transport, client_net_address FROM sys.dm_exec_connections WHERE session_id = @@SPID
         SELECT f.name, IIF(v.total_bytes > v.available_bytes AND v.available_bytes > 0, 'sizes', 'none'), v.is_read_only
         FROM sys.master_files AS f CROSS APPLY sys.dm_os_volume_stats(f.database_id, f.file_id) AS v
         WHERE f.database_id = DB_ID('q')
         SELECT COUNT(*) FROM sys.dm_os_volume_stats(DB_ID('q'), 9)
         SELECT COUNT(*) FROM sys.dm_os_volume_stats(NULL, 1)
         SELECT m.name, v.volume_mount_point FROM (VALUES ('none')) AS m(name) OUTER APPLY sys.dm_os_volume_stats(99, 1) AS v
         SELECT COUNT(*) FROM master.sys.dm_exec_sql_text(0x0200)
         SELECT RTRIM(counter_name) FROM sys.dm_os_performance_counters WHERE instance_name = 'q' AND cntr_value >= 0
         SELECT IIF(cpu_count > 0 AND physical_memory_kb > 1024 AND sqlserver_start_time <= GETDATE(), 'machine', 'none')
         FROM sys.dm_os_sys_info",
        &[
            "1 0 pellucid sql",
            "Shared memory <local machine>",
            "q sizes 0",
            "q_log sizes 0",
            "0",
            "0",
            "none NULL",
            "0",
            "Data File(s) Size (KB)",
            "Log File(s) Size (KB)",
            "machine",
        ],
    );
    server.prints(
        "SELECT * FROM sys.dm_exec_sql_text
         GO
         SELECT * FROM sys.dm_exec_sql_text()
         GO
         SELECT * FROM sys.dm_os_volume_stats(1)
         GO
         SELECT sql_handle FROM sys.dm_exec_sql_text(0x02)",
        &[
            "Msg 216",
            "Parameters were not supplied for the function 'sys.dm_exec_sql_text'.",
            "Msg 174",
            "The dm_exec_sql_text function requires 1 argument(s).",
            "Msg 174",
            "The dm_os_volume_stats function requires 2 argument(s).",
            "Msg 207",
            "Invalid column name 'sql_handle'.",
        ],
    );
}

/// Without availability groups, mirroring and jobs, scripts that look for them go on.
#[test]
fn what_a_server_alone_does_not_have_is_empty() {
    let server = Server::new();
    server.prints(
        "SELECT COUNT(*) FROM sys.databases AS d
         LEFT JOIN sys.dm_hadr_database_replica_states AS s ON s.database_id = d.database_id AND s.is_local = 1
         LEFT JOIN sys.availability_replicas AS r ON r.replica_id = d.replica_id
         LEFT JOIN sys.availability_groups AS g ON g.group_id = r.group_id
         WHERE d.group_database_id IS NULL AND g.name IS NULL AND d.name = 'q'
         SELECT COUNT(*) FROM sys.dm_hadr_availability_replica_states AS a
         JOIN sys.dm_hadr_availability_replica_cluster_states AS c ON c.replica_id = a.replica_id
         JOIN sys.dm_hadr_database_replica_cluster_states AS d ON d.replica_id = a.replica_id
         SELECT COUNT(*) FROM sys.availability_group_listeners
         SELECT COUNT(*) FROM sys.availability_databases_cluster
         SELECT COUNT(*) FROM sys.dm_hadr_cluster CROSS JOIN sys.dm_hadr_cluster_members
         SELECT mirroring_role_desc FROM sys.database_mirroring WHERE database_id = DB_ID('q')
         SELECT COUNT(*) FROM msdb.dbo.sysjobs AS j JOIN msdb.dbo.sysjobhistory AS h ON h.job_id = j.job_id
         JOIN msdb.dbo.sysjobsteps AS s ON s.job_id = j.job_id JOIN msdb.dbo.sysjobactivity AS a ON a.job_id = j.job_id
         IF OBJECT_ID('msdb.dbo.backupset') IS NOT NULL AND OBJECT_ID('msdb..sysjobs', 'U') IS NOT NULL PRINT 'tables'
         IF OBJECT_ID('sys.dm_hadr_cluster') IS NULL OR OBJECT_ID('msdb.dbo.nothing') IS NOT NULL PRINT 'wrong'",
        &["1", "0", "0", "0", "0", "NULL", "0", "tables"],
    );
}

#[test]
fn properties_and_functions_of_the_server() {
    let server = Server::new();
    server.prints(
        "SELECT CAST(CERTPROPERTY(CERT_ID('Backups'), 'Expiry_Date') AS date), CERTPROPERTY(CERT_ID('none'), 'Subject'),
             IIF(CERTPROPERTY(CERT_ID('Backups'), 'Subject') = (SELECT subject FROM sys.certificates), 'subject', 'none')
         SELECT IIF(DATALENGTH(CERTENCODED(CERT_ID('Backups'))) > 500, 'DER', 'none'), CERTENCODED(1)
         SELECT KEY_ID('##MS_DatabaseMasterKey##'), KEY_ID('none')
         SELECT CONNECTIONPROPERTY('net_transport'), CONNECTIONPROPERTY('local_tcp_port'), CONTEXT_INFO()
         SELECT TYPE_NAME(56), TYPE_NAME(TYPE_ID('sys.nvarchar')), TYPE_ID('none')
         SELECT DATABASEPROPERTY('q', 'IsReadOnly'), DATABASEPROPERTY('q', 'IsTruncLog'), DATABASEPROPERTY('none', 'IsReadOnly')
         SELECT @@CONNECTIONS, @@PACK_SENT, @@TIMETICKS, @@MAX_CONNECTIONS, IIF(@@CPU_BUSY >= 0, 'busy', 'none')
         GO
         EXEC sp_set_session_context @key = N'who', @value = N'me', @read_only = 1
         EXEC sp_set_session_context N'how', 5
         SELECT SESSION_CONTEXT(N'who'), SESSION_CONTEXT(N'how'), SESSION_CONTEXT(N'none')
         EXEC sp_set_session_context N'who', N'another'
         GO
         USE q
         CREATE TABLE t(id INT NOT NULL PRIMARY KEY, name NVARCHAR(40), long VARCHAR(MAX))
         CREATE TABLE #t(a INT, b CHAR(7))
         GO
         SELECT COL_LENGTH('t', 'name'), COL_LENGTH('q.dbo.t', 'long'), COL_LENGTH('t', 'none'), COL_LENGTH('none', 'name'),
             COL_LENGTH('tempdb..#t', 'b'), COL_NAME(OBJECT_ID('t'), 2)
         SELECT FILEPROPERTY('q', 'IsPrimaryFile'), FILEPROPERTY('q_log', 'IsLogFile'), FILEPROPERTY('none', 'IsLogFile'),
             IIF(FILEPROPERTY('q', 'SpaceUsed') > 0, 'used', 'none')",
        &[
            "2099-01-02 NULL subject",
            "DER NULL",
            "101 NULL",
            "Shared memory NULL NULL",
            "int nvarchar NULL",
            "0 1 NULL",
            "1 0 31250 32767 busy",
            "me 5 NULL",
            "Msg 15664",
            "Cannot set key 'who' in the session context. The key has been set as read_only for this session.",
            "80 -1 NULL NULL 7 name",
            "1 1 NULL used",
        ],
    );
    for refused in
        ["CERTPRIVATEKEY(CERT_ID('Backups'), 'p@ssw0rd')", "SYSDATETIMEOFFSET()", "@@IDLE"]
    {
        let lines = server.lines(&format!("SELECT {refused}"));
        assert_eq!(lines[0], "Msg 50001", "{refused}: {lines:?}");
        assert!(!lines.concat().contains("p@ssw0rd"), "{lines:?}");
    }
}

#[test]
fn trace_flags_are_taken_and_shown() {
    let server = Server::new();
    let ends = "DBCC execution completed. If DBCC printed error messages, contact your system administrator.";
    server.prints(
        "DBCC TRACESTATUS (-1) WITH NO_INFOMSGS
         DBCC TRACEON (3604) WITH NO_INFOMSGS
         DBCC TRACEON (3042, 1222, -1)
         DBCC TRACESTATUS (-1) WITH NO_INFOMSGS
         DBCC TRACEOFF (1222, -1) WITH NO_INFOMSGS
         DBCC TRACESTATUS (1222, 3604) WITH NO_INFOMSGS
         DBCC TRACEOFF (3604, 3042) WITH NO_INFOMSGS
         DBCC TRACESTATUS ()",
        &[ends, "1222 1 1 0", "3042 1 1 0", "3604 1 0 1", "1222 0 0 0", "3604 1 0 1", ends],
    );
}

#[test]
fn the_last_good_check_is_found() {
    let server = Server::new();
    server.prints(
        "CREATE TABLE #info(ParentObject varchar(255), Object varchar(255), Field varchar(255), Value varchar(255))
         SELECT IIF(DATABASEPROPERTYEX('q', 'LastGoodCheckDbTime') > '20200101', 'known', 'never')
         GO
         DBCC DBINFO ('q') WITH TABLERESULTS, NO_INFOMSGS
         GO
         DBCC CHECKDB ('q') WITH NO_INFOMSGS
         GO
         SELECT IIF(DATABASEPROPERTYEX('q', 'LastGoodCheckDbTime') > '20200101', 'known', 'never')",
        &[
            "never",
            "DBINFO STRUCTURE: DBINFO dbi_dbid 5",
            "DBINFO STRUCTURE: DBINFO dbi_cmptlevel 160",
            &created(&server),
            "DBINFO STRUCTURE: DBINFO dbi_dbname q",
            "DBINFO STRUCTURE: DBINFO dbi_dbccLastKnownGood 1900-01-01 00:00:00.000",
            "known",
        ],
    );
    let lines = server.lines("DBCC DBINFO (q) WITH TABLERESULTS");
    assert!(lines.iter().any(|line| line.contains("dbi_dbccLastKnownGood 2")), "{lines:?}");
}

fn created(server: &Server) -> String {
    let lines = server.lines("DBCC DBINFO (q) WITH TABLERESULTS");
    lines.into_iter().find(|line| line.contains("dbi_crdate")).expect("a date")
}

#[test]
fn procedures_that_maintenance_calls() {
    let server = Server::new();
    server.prints(
        "EXEC sp_MSforeachdb @command1 = N'IF ''?'' NOT IN (''model'', ''tempdb'') PRINT ''in ?''',
             @precommand = N'PRINT ''begin''', @postcommand = N'PRINT ''end'''
         EXEC master.dbo.sp_MSforeachdb N'USE [*]; IF DB_ID() > 4 PRINT DB_NAME() + ''?''', N'*'
         GO
         PRINT DB_NAME()
         USE q
         CREATE TABLE a(id INT)
         CREATE TABLE b(id INT)
         GO
         EXEC sp_MSforeachtable 'PRINT ''?''', @command2 = 'INSERT ? VALUES (1)'
         SELECT COUNT(*) FROM a CROSS JOIN b
         USE master
         EXEC sp_renamedb 'q', 'new]q'
         EXEC sp_renamedb N'new]q', N'q'
         EXEC sp_detach_db 'q'
         EXEC sp_attach_db @dbname = N'q', @filename1 = N'q.db'
         SELECT COUNT(*) FROM q.dbo.a",
        &[
            "begin",
            "in master",
            "in msdb",
            "in q",
            "end",
            "q?",
            "master",
            "[dbo].[a]",
            "[dbo].[b]",
            "1",
            "The database name 'new]q' has been set.",
            "The database name 'q' has been set.",
            "1",
        ],
    );
    server.prints(
        "EXEC master.dbo.xp_create_subdir N'one/two'
         EXEC xp_dirtree N'', 0, 1
         EXEC master..xp_dirtree 'none'
         EXEC xp_dirtree '.', 1
         EXEC xp_fileexist N'one'
         EXEC xp_fileexist N'none/x'
         DECLARE @there int
         EXEC master.dbo.xp_fileexist N'one/two', @there OUTPUT
         SELECT @there
         EXEC xp_cmdshell 'id'",
        &[
            "one 1 0",
            "two 2 0",
            "one 1",
            "0 1 1",
            "0 0 0",
            "0",
            "Msg 15281",
            "SQL Server blocked access to procedure 'sys.xp_cmdshell' of component 'xp_cmdshell' because this component is turned \
             off as part of the security configuration for this server. A system administrator can enable the use of \
             'xp_cmdshell' by using sp_configure. For more information about enabling 'xp_cmdshell', search for 'xp_cmdshell' in \
             SQL Server Books Online.",
        ],
    );
    let drives = server.lines("SET NOCOUNT ON\nEXEC xp_fixeddrives");
    assert!(drives.is_empty(), "{drives:?}");
    server.lines("EXEC xp_create_subdir 'E:\\x'");
    let drives = server.lines("SET NOCOUNT ON\nEXEC master.dbo.xp_fixeddrives");
    assert!(drives.len() == 1 && drives[0].starts_with("E "), "{drives:?}");
}

/// A differential of nothing has few pages, and RESTORE says how many.
#[test]
fn the_pages_of_a_differential_are_its_own() {
    let server = Server::new();
    let lines = server.lines(
        "USE q
         CREATE TABLE t(a VARCHAR(MAX))
         INSERT t VALUES (REPLICATE(CAST('x' AS VARCHAR(MAX)), 400000))
         USE master
         BACKUP DATABASE q TO DISK = 'full.bak'
         BACKUP DATABASE q TO DISK = 'diff.bak' WITH DIFFERENTIAL
         RESTORE DATABASE q FROM DISK = 'full.bak' WITH REPLACE, NORECOVERY
         RESTORE DATABASE q FROM DISK = 'diff.bak'",
    );
    let pages: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("Processed "))
        .map(|line| line.split(' ').nth(1).unwrap())
        .collect();
    assert_eq!(pages.len(), 4, "{lines:?}");
    assert_eq!(pages[0], pages[2], "{lines:?}");
    assert_eq!(pages[1], pages[3], "{lines:?}");
    assert_ne!(pages[0], pages[1], "{lines:?}");
}
