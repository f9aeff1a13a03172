//! Goal: the statements that maintenance tools and tutorials of TDE emit run, or fail with the right message.
//!
//! Method: each test names a tool and where its source or its page is, and runs the forms of its statements: their
//! options and the order of clauses are the tool's, names and files are made up. Expected texts are typed by hand.
//! docs/statements.md says what is refused. Nothing here leaves this machine: TO URL is not tried.

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

/// Management Studio's "Script" button and its maintenance plans: the options in its order, two spaces and all, and the
/// second batch that looks up the position and verifies it.
/// Source: https://www.edwinmsarmiento.com/the-scariest-lie-we-believed-about-backup-verification/ prints one.
#[test]
fn management_studio_scripts_a_backup() {
    let server = Server::new();
    let verify =
        "declare @backupSetId as int
         select @backupSetId = position from msdb..backupset where database_name=N'Orders' and backup_set_id=(select \
         max(backup_set_id) from msdb..backupset where database_name=N'Orders' )
         if @backupSetId is null begin raiserror(N'Verify failed. Backup information for database ''Orders'' not found.', \
         16, 1) end
         RESTORE VERIFYONLY FROM  DISK = N'D:\\backup\\Orders.bak' WITH  FILE = @backupSetId,  NOUNLOAD,  NOREWIND
         GO";
    // Before there is any: its own error, then SQL Server's of FILE = NULL is not reached.
    let shown = server.run(verify).succeeded();
    let text = "Verify failed. Backup information for database 'Orders' not found.";
    assert_eq!(errors(&shown)[0], ("Msg 50000".to_owned(), text.to_owned()));

    let shown = server.done(&format!(
        "BACKUP DATABASE [Orders] TO  DISK = N'D:\\backup\\Orders.bak' WITH  DESCRIPTION = N'to disk',  RETAINDAYS = 7, \
         NOFORMAT, NOINIT,  NAME = N'Orders-Full Database Backup', SKIP, NOREWIND, NOUNLOAD,  STATS = 10, CHECKSUM
         GO
         {verify}"
    ));
    percents(&shown, 10);
    assert_eq!((count(&shown, BACKED_UP), count(&shown, VALID)), (1, 1), "{shown}");

    // Appended: the position is the second one's.
    let shown = server.done(&format!(
        "BACKUP DATABASE [Orders] TO  DISK = N'D:\\backup\\Orders.bak' WITH  DIFFERENTIAL , NOFORMAT, NOINIT,  \
         NAME = N'Orders-Differential', SKIP, NOREWIND, NOUNLOAD,  STATS = 10, CHECKSUM, CONTINUE_AFTER_ERROR
         GO
         {verify}"
    ));
    let told = "BACKUP DATABASE WITH DIFFERENTIAL successfully processed ";
    assert_eq!(count(&shown, told), 1, "{shown}");
    assert_eq!(count(&shown, "The backup set on file 2 is valid."), 1, "{shown}");

    // "Back up to a new media set", "Encrypt backup".
    let shown = server.done(
        "BACKUP DATABASE [Orders] TO  DISK = N'D:\\backup\\sealed.bak' WITH  COPY_ONLY, FORMAT, INIT,  \
         MEDIANAME = N'Orders media',  MEDIADESCRIPTION = N'one set',  NAME = N'Orders-Full Database Backup', SKIP, \
         NOREWIND, NOUNLOAD, COMPRESSION, ENCRYPTION(ALGORITHM = AES_256, SERVER CERTIFICATE = [BackupCert]),  STATS = 20",
    );
    percents(&shown, 20);

    // A task that appends compressed sets to what is not.
    let incompatible = "The backup cannot be performed because 'COMPRESSION' was requested after the media was formatted \
                        with an incompatible structure. To append to this media set, either omit 'COMPRESSION' or specify \
                        'NO_COMPRESSION'. Alternatively, you can create a new media set by using WITH FORMAT in your \
                        BACKUP statement. If you use WITH FORMAT on an existing media set, all its backup sets will be \
                        overwritten.";
    server.says(
        "BACKUP DATABASE [Orders] TO  DISK = N'D:\\backup\\Orders.bak' WITH NOFORMAT, NOINIT,  NAME = N'x', SKIP, REWIND, \
         NOUNLOAD, COMPRESSION,  STATS = 10",
        &[(3098, incompatible), BACKUP_ENDS],
    );
    let simple = "The statement BACKUP LOG is not allowed while the recovery model is SIMPLE. Use BACKUP DATABASE or \
                  change the recovery model using ALTER DATABASE.";
    let log = "BACKUP LOG [Orders] TO  DISK = N'D:\\backup\\Orders.trn' WITH NOFORMAT, NOINIT,  NAME = N'log', SKIP, \
               NOREWIND, NOUNLOAD,  STATS = 10";
    server.says(log, &[(4208, simple), LOG_ENDS]);
    let later =
        "BACKUP LOG is not available yet: take full and differential backups of database 'Orders'.";
    server.says(
        &format!("ALTER DATABASE [Orders] SET RECOVERY FULL WITH NO_WAIT\nGO\n{log}"),
        &[(50010, later), LOG_ENDS],
    );
}

/// Management Studio's "Restore Database" and a maintenance plan's cleanup task. Source: the same, and Microsoft's
/// https://learn.microsoft.com/sql/relational-databases/backup-restore/restore-a-database-backup-using-ssms
#[test]
fn management_studio_scripts_a_restore() {
    let server = Server::new();
    server.done(
        "BACKUP DATABASE Orders TO DISK = N'D:\\backup\\Orders.bak' WITH FORMAT, MEDIANAME = N'm'
         INSERT INTO Orders.dbo.Item VALUES (3, N'salt')
         BACKUP DATABASE Orders TO DISK = N'D:\\backup\\Orders.bak' WITH DIFFERENTIAL",
    );
    // What its dialogs ask before.
    let shown = server.done(
        "RESTORE LABELONLY FROM  DISK = N'D:\\backup\\Orders.bak' WITH  NOUNLOAD
         RESTORE HEADERONLY FROM  DISK = N'D:\\backup\\Orders.bak' WITH  NOUNLOAD
         RESTORE FILELISTONLY FROM  DISK = N'D:\\backup\\Orders.bak' WITH  NOUNLOAD,  FILE = 2",
    );
    assert_eq!(count(&shown, "(1 rows affected)"), 1, "{shown}");
    assert_eq!(count(&shown, "(2 rows affected)"), 2, "{shown}");

    // To a folder that is not there: three messages and the end, and no database.
    let base =
        "RESTORE DATABASE [OrdersCopy] FROM  DISK = N'D:\\backup\\Orders.bak' WITH  FILE = 1,";
    let no_folder = "Directory lookup for the file \"%/C/data/OrdersCopy.mdf\" failed with the operating system error \
                     2(No such file or directory).";
    let moves = "MOVE N'Orders' TO N'C:\\data\\OrdersCopy.mdf',  MOVE N'Orders_log' TO N'C:\\data\\OrdersCopy_log.ldf',";
    let planned =
        "Problems were identified while planning for the RESTORE statement. Previous messages provide details.";
    server.says(
        &format!("{base}  {moves}  NORECOVERY,  NOUNLOAD,  STATS = 5"),
        &[
            (5133, no_folder),
            (
                3156,
                "File 'Orders' cannot be restored to '%/C/data/OrdersCopy.mdf'. Use WITH MOVE to identify a valid \
                 location for the file.",
            ),
            (3119, planned),
            RESTORE_ENDS,
        ],
    );
    assert_eq!(server.rows("SELECT name FROM sys.databases WHERE name = 'OrdersCopy'").len(), 0);
    std::fs::create_dir(server.drive("C/data")).unwrap();

    let shown = server.done(&format!(
        "{base}  {moves}  NORECOVERY,  NOUNLOAD,  STATS = 5
         RESTORE DATABASE [OrdersCopy] FROM  DISK = N'D:\\backup\\Orders.bak' WITH  FILE = 2,  NOUNLOAD,  STATS = 5
         GO"
    ));
    assert_eq!(count(&shown, RESTORED), 2, "{shown}");
    assert_eq!(server.rows("SELECT COUNT(*) FROM OrdersCopy.dbo.Item"), ["3"]);

    // Over the database itself, alone.
    let shown = server.done(
        "USE [master]
         ALTER DATABASE [Orders] SET SINGLE_USER WITH ROLLBACK IMMEDIATE
         RESTORE DATABASE [Orders] FROM  DISK = N'D:\\backup\\Orders.bak' WITH  FILE = 1,  NOUNLOAD,  REPLACE,  STATS = 5
         ALTER DATABASE [Orders] SET MULTI_USER
         GO",
    );
    percents(&shown, 5);
    assert_eq!(server.rows("SELECT COUNT(*) FROM Orders.dbo.Item"), ["2"]);

    // "Delete backup and restore history", "Close existing connections", "Maintenance Cleanup Task".
    server.done(
        "EXEC msdb.dbo.sp_delete_database_backuphistory @database_name = N'OrdersCopy'
         USE [master]
         ALTER DATABASE [OrdersCopy] SET  SINGLE_USER WITH ROLLBACK IMMEDIATE
         DROP DATABASE [OrdersCopy]
         declare @dt datetime select @dt = cast(N'2020-01-01T00:00:00' as datetime) exec msdb.dbo.sp_delete_backuphistory @dt",
    );
    server.says(
        "EXECUTE master.dbo.xp_delete_file 0,N'D:\\backup',N'bak',N'2020-01-01T00:00:00',1",
        &[(2812, "Could not find stored procedure 'xp_delete_file'.")],
    );
}

/// Ola Hallengren's SQL Server Maintenance Solution: CommandExecute runs the statement it has made by `sp_executesql` of
/// another database, in a variable, and tells times and outcome by RAISERROR.
/// Source: https://github.com/olahallengren/sql-server-maintenance-solution CommandExecute.sql, DatabaseBackup.sql
#[test]
fn ola_hallengrens_solution_backs_up() {
    let server = Server::new();
    let execute = |command: &str| {
        format!(
            "DECLARE @Procedure nvarchar(max) = QUOTENAME(N'master') + '.sys.sp_executesql', @Command nvarchar(max), \
             @Message nvarchar(max), @Error int = 0, @StartTime datetime2 = SYSDATETIME(), @EndTime datetime2
             SET @Command = N'{}'
             SET @Message = 'Date and time: ' + CONVERT(nvarchar(max), @StartTime, 120)
             RAISERROR('%s', 10, 1, @Message) WITH NOWAIT
             SET @Message = 'Command: ' + @Command
             RAISERROR('%s', 10, 1, @Message) WITH NOWAIT
             BEGIN TRY
               EXECUTE @Procedure @stmt = @Command
             END TRY
             BEGIN CATCH
               SET @Error = ERROR_NUMBER()
               SET @Message = 'Msg ' + CAST(ERROR_NUMBER() AS nvarchar(max)) + ', ' + ISNULL(ERROR_MESSAGE(), '')
               RAISERROR('%s', 16, 1, @Message) WITH NOWAIT
             END CATCH
             SET @EndTime = SYSDATETIME()
             SET @Message = 'Outcome: ' + CASE WHEN @Error = 0 THEN 'Succeeded' ELSE 'Failed' END
             RAISERROR('%s', 10, 1, @Message) WITH NOWAIT
             SET @Message = 'Duration: ' + CASE WHEN (DATEDIFF(SECOND, @StartTime, @EndTime) / (24 * 3600)) > 0 THEN \
             CAST((DATEDIFF(SECOND, @StartTime, @EndTime) / (24 * 3600)) AS nvarchar(max)) + '.' ELSE '' END + \
             CONVERT(nvarchar(max), DATEADD(SECOND, DATEDIFF(SECOND, @StartTime, @EndTime), '1900-01-01'), 108)
             RAISERROR('%s', 10, 1, @Message) WITH NOWAIT
             GO
            ",
            command.replace('\'', "''")
        )
    };
    // A folder, as before each backup; twice.
    let folder = "DECLARE @ReturnCode int EXECUTE @ReturnCode = dbo.xp_create_subdir N'D:\\backup\\Orders\\FULL' IF \
                  @ReturnCode <> 0 OR @ReturnCode IS NULL RAISERROR('Error creating directory.', 16, 1)";
    let shown = server.done(&[execute(folder), execute(folder)].concat());
    assert_eq!(count(&shown, "Outcome: Succeeded"), 2, "{shown}");
    assert!(server.drive("D/backup/Orders/FULL").is_dir());

    let with = |options: &str| {
        format!(
            "BACKUP DATABASE [Orders] TO DISK = N'D:\\backup\\Orders\\FULL\\f.bak' WITH {options}"
        )
    };
    for options in [
        "CHECKSUM, NO_COMPRESSION, INIT, FORMAT",
        "NO_CHECKSUM, COMPRESSION, INIT, FORMAT",
        "CHECKSUM, COMPRESSION, COPY_ONLY, INIT, FORMAT, BLOCKSIZE = 65536, BUFFERCOUNT = 50, MAXTRANSFERSIZE = 4194304, \
         DESCRIPTION = N'Full of it''s', NAME = N'nightly', STATS = 5",
        "CHECKSUM, COMPRESSION (ALGORITHM = ZSTD, LEVEL = HIGH), INIT, FORMAT",
        "CHECKSUM, COMPRESSION, INIT, FORMAT, ENCRYPTION (ALGORITHM = AES_128, SERVER CERTIFICATE = [BackupCert])",
        "CHECKSUM, COMPRESSION, INIT, FORMAT, EXPIREDATE = '2020-01-01 00:00:00.000'",
        "CHECKSUM, COMPRESSION, INIT, FORMAT, RETAINDAYS = 3",
    ] {
        let shown = server.done(&execute(&with(options)));
        assert_eq!((count(&shown, BACKED_UP), count(&shown, "Outcome: Succeeded")), (1, 1), "{shown}");
        assert!(shown.contains("\nDuration: 00:0"), "{shown}");
    }
    // Several files, and their mirror; each verified as it is.
    let striped = "BACKUP DATABASE [Orders] TO DISK = N'D:\\stripes\\1.bak', DISK = N'D:\\stripes\\2.bak', DISK = \
                   N'D:\\stripes\\3.bak' MIRROR TO DISK = N'D:\\backup\\m1.bak', DISK = N'D:\\backup\\m2.bak', DISK = \
                   N'D:\\backup\\m3.bak' WITH CHECKSUM, COMPRESSION, FORMAT";
    server.done(&execute(striped));
    for files in [
        ["D:\\stripes\\1", "D:\\stripes\\2", "D:\\stripes\\3"],
        ["D:\\backup\\m1", "D:\\backup\\m2", "D:\\backup\\m3"],
    ] {
        let from = files.map(|file| format!("DISK = N'{file}.bak'")).join(", ");
        let shown = server
            .done(&execute(&format!("RESTORE VERIFYONLY FROM {from} WITH CHECKSUM, STATS = 50")));
        assert_eq!(count(&shown, VALID), 1, "{shown}");
    }
    server.says(
        "RESTORE VERIFYONLY FROM DISK = N'D:\\stripes\\1.bak', DISK = N'D:\\stripes\\3.bak' WITH CHECKSUM",
        &[
            (
                3132,
                "The media set has 3 media families but only 2 are provided. All members must be provided.",
            ),
            VERIFY_ENDS,
        ],
    );
    let shown = server.done(&execute(
        "BACKUP DATABASE [Orders] TO DISK = N'D:\\backup\\d.bak' WITH CHECKSUM, COMPRESSION, DIFFERENTIAL",
    ));
    assert!(shown.contains("BACKUP DATABASE WITH DIFFERENTIAL successfully processed "), "{shown}");

    // What fails, as CATCH has it: the last of the messages, the others told before.
    let shown = server.run(&execute(
        "BACKUP LOG [Orders] TO DISK = N'D:\\backup\\l.trn' WITH CHECKSUM, COMPRESSION",
    ));
    let shown = shown.succeeded();
    assert!(shown.contains("Msg 3013, BACKUP LOG is terminating abnormally."), "{shown}");
    assert_eq!(count(&shown, "Outcome: Failed"), 1, "{shown}");
    let asymmetric = "Extensible Key Management is disabled or not supported on this edition of SQL Server.  Use \
                      sp_configure 'EKM provider enabled' to enable it.";
    server.says(
        &with("CHECKSUM, ENCRYPTION (ALGORITHM = AES_256, SERVER ASYMMETRIC KEY = [Vault])"),
        &[(33053, asymmetric), BACKUP_ENDS],
    );
    server.says(
        "BACKUP DATABASE [Orders] READ_WRITE_FILEGROUPS TO DISK = N'D:\\backup\\p.bak' WITH CHECKSUM",
        &[(50001, "'BACKUP DATABASE of files and filegroups' is not supported."), BACKUP_ENDS],
    );
    server.says(
        &with("CHECKSUM, COMPRESSION (ALGORITHM = MS_XPRESS)"),
        &[(50001, "'COMPRESSION (ALGORITHM = MS_XPRESS)' is not supported."), BACKUP_ENDS],
    );
    server.says(
        "BACKUP DATABASE [Orders] TO DISK = N'\\\\files\\share\\Orders.bak' WITH CHECKSUM, COMPRESSION",
        &[
            (
                50012,
                "'\\\\files\\share\\Orders.bak': shares of other machines are not reached: mount it and name the folder.",
            ),
            BACKUP_ENDS,
        ],
    );
}

/// What DatabaseBackup asks of the server before it begins. Source: the same.
#[test]
fn ola_hallengrens_solution_asks_first() {
    let server = Server::new();
    let version = server.rows(
        "DECLARE @Version nvarchar(max) = CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(max)), @EngineEdition int = \
         CAST(SERVERPROPERTY('EngineEdition') AS int), @IsHadrEnabled bit = CAST(SERVERPROPERTY('IsHadrEnabled') AS bit), \
         @IsClustered bit = CAST(SERVERPROPERTY('IsClustered') AS bit)
         SELECT LEFT(@Version, CHARINDEX('.', @Version) - 1), @EngineEdition, @IsHadrEnabled, @IsClustered, \
         CASE WHEN @@SERVERNAME = CAST(SERVERPROPERTY('ServerName') AS nvarchar(max)) THEN 'same' ELSE 'renamed' END, \
         ISNULL(CAST(SERVERPROPERTY('InstanceName') AS nvarchar(max)), 'default'), IS_SRVROLEMEMBER('sysadmin')",
    );
    assert_eq!(version, ["16|3|0|0|same|default|1"]);
    let backup = server.0.path("keys/backup").display().to_string();
    assert_eq!(
        server.rows("SELECT SERVERPROPERTY('InstanceDefaultBackupPath')"),
        std::slice::from_ref(&backup)
    );
    let directory = "DECLARE @DefaultDirectory nvarchar(4000)
         EXECUTE [master].dbo.xp_instance_regread N'HKEY_LOCAL_MACHINE', N'SOFTWARE\\Microsoft\\MSSQLServer\\MSSQLServer', \
         N'BackupDirectory', @DefaultDirectory OUTPUT
         SELECT @DefaultDirectory";
    assert_eq!(server.rows(directory), [backup]);
    let default = "SELECT CASE WHEN EXISTS(SELECT * FROM sys.configurations WHERE name = 'backup compression default' AND \
                   value_in_use = 1) THEN 'Y' ELSE 'N' END";
    assert_eq!(server.rows(default), ["N"]);
    server.done("EXECUTE sp_configure 'backup compression default', 1\nRECONFIGURE WITH OVERRIDE");
    assert_eq!(server.rows(default), ["Y"]);
    let known = server.rows(
        "SELECT [name], recovery_model_desc, state_desc, user_access_desc, is_read_only, is_in_standby, is_encrypted, \
         DATABASEPROPERTYEX([name], 'Status'), DATABASEPROPERTYEX([name], 'Updateability'), \
         CAST(DATABASEPROPERTYEX([name], 'Recovery') AS nvarchar(60))
         FROM sys.databases WHERE [name] <> 'tempdb' AND source_database_id IS NULL AND database_id > 4 ORDER BY [name] ASC",
    );
    assert_eq!(known, ["Orders|SIMPLE|ONLINE|MULTI_USER|0|0|0|ONLINE|READ_WRITE|SIMPLE"]);
    server
        .done("ALTER DATABASE Orders SET READ_ONLY\nGO\nALTER DATABASE Orders SET RESTRICTED_USER");
    let now = "SELECT DATABASEPROPERTYEX('orders', 'Updateability'), DATABASEPROPERTYEX('Orders', 'UserAccess'), \
               ISNULL(DATABASEPROPERTYEX('Nothing', 'Status'), 'none')";
    assert_eq!(server.rows(now), ["READ_ONLY|RESTRICTED_USER|none"]);
    let size = "SELECT CASE WHEN SUM(CAST(size AS bigint)) > 0 THEN 'some' END FROM sys.master_files WHERE [type] = 0 AND \
                database_id = DB_ID(N'Orders')";
    assert_eq!(server.rows(size), ["some"]);
    let running = "SELECT CASE WHEN EXISTS(SELECT * FROM sys.dm_exec_requests WHERE database_id = DB_ID(N'Orders') AND \
                   command = 'BACKUP DATABASE') THEN 1 ELSE 0 END";
    assert_eq!(server.rows(running), ["0"]);
    for view in ["sys.database_recovery_status", "sys.dm_os_host_info", "sys.database_mirroring"] {
        let unknown = format!("Invalid object name '{view}'.");
        server.says(&format!("SELECT * FROM {view}"), &[(208, &unknown)]);
    }
}

/// dbatools: Management Objects write its statements, as Management Studio's; the queries of the history are its own.
/// Source: https://github.com/dataplat/dbatools public/Backup-DbaDatabase.ps1, Restore-DbaDatabase.ps1,
/// New-DbaDbMasterKey.ps1, New-DbaDbCertificate.ps1, Backup-DbaDbCertificate.ps1, New-DbaDbEncryptionKey.ps1,
/// Enable-DbaDbEncryption.ps1, Get-DbaDbBackupHistory.ps1
#[test]
fn dbatools() {
    let server = Server::empty();
    server.done(
        "USE [master]
         CREATE MASTER KEY ENCRYPTION BY PASSWORD = N'c0mplex!Word'
         GO
         USE [master]
         CREATE CERTIFICATE [tools] WITH SUBJECT = N'tools certificate', START_DATE = N'2026-01-01 00:00:00', \
         EXPIRY_DATE = N'2050-12-31 00:00:00' ACTIVE FOR BEGIN_DIALOG = ON
         GO
         USE [master]
         BACKUP CERTIFICATE [tools] TO FILE = N'D:\\keys\\db1-master-tools.cer' WITH PRIVATE KEY (FILE = \
         N'D:\\keys\\db1-master-tools.pvk', ENCRYPTION BY PASSWORD = N'c0mplex!Word2')
         GO
         CREATE DATABASE [Pubs]
         GO
         USE [Pubs]
         CREATE TABLE t(id INT)
         INSERT INTO t VALUES (1)
         CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE [tools]
         GO
         USE [master]
         ALTER DATABASE [Pubs] SET ENCRYPTION ON
         GO
         WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state = 2) WAITFOR DELAY '00:00:00.05'",
    );
    let shown = server.done(
        "BACKUP DATABASE [Pubs] TO  DISK = N'D:\\stripes\\Pubs-1-of-2.bak',  DISK = N'D:\\stripes\\Pubs-2-of-2.bak' WITH \
         NOFORMAT, NOINIT,  NOSKIP, REWIND, NOUNLOAD, COMPRESSION,  STATS = 1, CHECKSUM, BUFFERCOUNT = 24, \
         MAXTRANSFERSIZE = 1048576, BLOCKSIZE = 4096",
    );
    percents(&shown, 1);
    server.done("BACKUP DATABASE [Pubs] TO  DISK = N'NUL' WITH  COPY_ONLY, NOFORMAT, NOINIT,  NOSKIP, REWIND, NOUNLOAD,  STATS = 1");
    // The last full backup of a database, by rank, one row for each of its files.
    let history = server.rows(
        "SELECT a.BackupSetRank, a.[Database], a.DatabaseId, a.Type, a.DeviceType, a.position, a.is_copy_only, \
         ISNULL(a.EncryptorType, 'none'), ISNULL(a.software_major_version, 0)
         FROM (SELECT RANK() OVER (ORDER BY backupset.last_lsn DESC, backupset.backup_finish_date DESC) AS 'BackupSetRank',
           backupset.database_name AS [Database],
           (SELECT database_id FROM sys.databases WHERE name = backupset.database_name) AS DatabaseId,
           DATEDIFF(SECOND, backupset.backup_start_date, backupset.backup_finish_date) AS Duration,
           mediafamily.physical_device_name AS Path, backupset.encryptor_type AS EncryptorType,
           CASE backupset.type WHEN 'L' THEN 'Log' WHEN 'D' THEN 'Full' WHEN 'I' THEN 'Differential' ELSE NULL END AS Type,
           CASE mediafamily.device_type WHEN 2 THEN 'Disk' WHEN 9 THEN 'URL' ELSE 'Unknown' END AS DeviceType,
           backupset.position, backupset.is_copy_only, backupset.software_major_version
           FROM msdb..backupmediafamily AS mediafamily
           JOIN msdb..backupmediaset AS mediaset ON mediafamily.media_set_id = mediaset.media_set_id
           JOIN msdb..backupset AS backupset ON backupset.media_set_id = mediaset.media_set_id
           JOIN (SELECT TOP 1 database_name, database_guid FROM msdb..backupset WHERE database_name = 'Pubs'
             ORDER BY backup_finish_date DESC) AS last_guids ON last_guids.database_name = backupset.database_name
             AND last_guids.database_guid = backupset.database_guid
           WHERE (type = 'D' OR type = 'P') AND is_copy_only='0' AND mediafamily.mirror='0'
             AND backupset.backup_finish_date >= CONVERT(datetime, '2020-01-01T00:00:00', 126)) AS a
         WHERE a.BackupSetRank = 1 ORDER BY a.Type",
    );
    assert_eq!(history, ["1|Pubs|5|Full|Disk|1|0|CERTIFICATE|0"; 2]);
    let forks = server.rows(
        "SELECT database_name, MIN(database_backup_lsn) AS 'FirstLsn', MAX(database_backup_lsn) AS 'FinalLsn', \
         last_recovery_fork_guid 'RecFork', count(1) as 'backupcount'
         FROM msdb.dbo.backupset WHERE database_name='Pubs' GROUP by database_name, last_recovery_fork_guid",
    );
    assert_eq!(forks, ["Pubs|NULL|NULL|NULL|2"]);

    let shown = server.done(
        "RESTORE DATABASE [Pubs2] FROM  DISK = N'D:\\stripes\\Pubs-1-of-2.bak',  DISK = N'D:\\stripes\\Pubs-2-of-2.bak' WITH  \
         FILE = 1,  MOVE N'Pubs' TO N'C:\\Pubs2.mdf',  MOVE N'Pubs_log' TO N'C:\\Pubs2_log.ldf',  NORECOVERY,  NOUNLOAD,  \
         REPLACE,  STATS = 1, BUFFERCOUNT = 24, MAXTRANSFERSIZE = 1048576, BLOCKSIZE = 4096
         RESTORE DATABASE [Pubs2] WITH RECOVERY",
    );
    assert_eq!(count(&shown, RESTORED), 2, "{shown}");
    let encrypted = "SELECT name FROM sys.databases WHERE is_encrypted = 1 ORDER BY name";
    assert_eq!(server.rows(encrypted), ["Pubs", "Pubs2"]);
}

/// First Responder Kit: what sp_DatabaseRestore runs.
/// Source: https://github.com/BrentOzarULTD/SQL-Server-First-Responder-Kit sp_DatabaseRestore.sql
#[test]
fn first_responder_kit_restores() {
    let server = Server::new();
    server.done(
        "BACKUP DATABASE Orders TO DISK = 'D:\\backup\\Orders_FULL.bak', DISK = 'D:\\backup\\Orders_FULL_2.bak' WITH FORMAT
         INSERT INTO Orders.dbo.Item VALUES (3, N'salt')
         BACKUP DATABASE Orders TO DISK = 'D:\\backup\\Orders_DIFF.bak' WITH DIFFERENTIAL",
    );
    server.done(
        "DECLARE @sql nvarchar(max) = N'EXEC (''RESTORE HEADERONLY FROM DISK=''''{Path}'''''')'
         SET @sql = REPLACE(@sql, N'{Path}', N'D:\\backup\\Orders_DIFF.bak')
         EXEC (@sql)
         SET @sql = N'EXEC (''RESTORE FILELISTONLY FROM DISK=''''{Path}'''''')'
         SET @sql = REPLACE(@sql, N'{Path}', N'D:\\backup\\Orders_DIFF.bak')
         EXEC (@sql)",
    );
    let shown = server.done(
        "DECLARE @sql nvarchar(max), @name sysname = QUOTENAME(N'Orders2'), @options nvarchar(500) = N''
         SET @options += N', BufferCount=' + CAST(50 AS nvarchar(10)) + N', MaxTransferSize=' + CAST(1048576 AS nvarchar(7))
         SET @options += N', BlockSize=' + CAST(65536 AS nvarchar(5))
         SET @sql = N'RESTORE DATABASE ' + @name + N' FROM ' + NCHAR(10) + N'DISK=''D:\\backup\\Orders_FULL.bak''' + NCHAR(10) \
         + N',DISK=''D:\\backup\\Orders_FULL_2.bak'' WITH NORECOVERY, REPLACE' + @options + N', MOVE ''Orders'' TO \
         ''C:\\Orders2.mdf'', MOVE ''Orders_log'' TO ''C:\\Orders2_log.ldf''' + NCHAR(13) + NCHAR(10)
         EXECUTE sp_executesql @stmt = @sql
         IF DATABASEPROPERTYEX('Orders2', 'STATUS') = 'RESTORING' PRINT 'it waits'
         SET @sql = N'RESTORE DATABASE ' + @name + N' FROM DISK = ''D:\\backup\\Orders_DIFF.bak'' WITH NORECOVERY' + \
         @options + NCHAR(13) + NCHAR(10)
         EXECUTE sp_executesql @stmt = @sql
         SET @sql = N'RESTORE DATABASE ' + @name + N' WITH RECOVERY'
         EXECUTE sp_executesql @stmt = @sql
         SET @sql = N'ALTER DATABASE ' + @name + N' SET RECOVERY SIMPLE'
         EXECUTE sp_executesql @stmt = @sql
         SET @sql = N'DBCC CHECKDB (' + @name + N') WITH NO_INFOMSGS, ALL_ERRORMSGS, DATA_PURITY;'
         EXECUTE sp_executesql @stmt = @sql",
    );
    assert_eq!((count(&shown, RESTORED), count(&shown, "it waits")), (3, 1), "{shown}");
    assert_eq!(server.rows("SELECT COUNT(*) FROM Orders2.dbo.Item"), ["3"]);
    let last = server.rows(
        "SELECT TOP 1 REVERSE(LEFT(REVERSE(bf.physical_device_name), CHARINDEX('/', REVERSE(bf.physical_device_name)) - 1))
         FROM msdb.dbo.backupmediafamily bf INNER JOIN msdb.dbo.backupset bs ON bs.media_set_id = bf.media_set_id
         INNER JOIN msdb.dbo.restorehistory rh ON rh.backup_set_id = bs.backup_set_id
         WHERE physical_device_name LIKE '%' + N'_DIFF' + '%' AND rh.destination_database_name = N'Orders2'
         ORDER BY physical_device_name DESC",
    );
    assert_eq!(last, ["Orders_DIFF.bak"]);
    // What it does to a database that is in the way.
    server.done(
        "ALTER DATABASE [Orders2] SET SINGLE_USER WITH ROLLBACK IMMEDIATE;
         GO
         ALTER DATABASE [Orders2] SET OFFLINE WITH ROLLBACK IMMEDIATE
         GO
         DROP DATABASE [Orders2]",
    );
    server.says(
        "RESTORE DATABASE [Orders3] FROM DISK = 'D:\\backup\\Orders_FULL.bak', DISK = 'D:\\backup\\Orders_FULL_2.bak' WITH  \
         REPLACE, MOVE 'Orders' TO 'C:\\Orders3.mdf' , STANDBY = 'C:\\Orders3Undo.ldf'",
        &[(50001, "'STANDBY' is not supported."), RESTORE_ENDS],
    );
    server.says(
        "ALTER DATABASE [Orders] SET RECOVERY FULL
         RESTORE LOG [Orders] FROM DISK = 'D:\\backup\\Orders_LOG.trn' WITH NORECOVERY",
        &[
            (
                50010,
                "RESTORE LOG is not available yet: take full and differential backups of database 'Orders'.",
            ),
            (3013, "RESTORE LOG is terminating abnormally."),
        ],
    );
    server.says("KILL 55;", &[(50001, "'KILL' is not supported.")]);
    let authorization = "ALTER AUTHORIZATION ON DATABASE::[Orders] TO [sa]";
    server.says(authorization, &[(50001, "'ALTER AUTHORIZATION' is not supported.")]);
}

/// First Responder Kit: the checks of sp_Blitz and the measures of sp_BlitzBackups, over the history.
/// Source: the same repository, sp_Blitz.sql, sp_BlitzBackups.sql
#[test]
fn first_responder_kit_looks_at_the_history() {
    let server = Server::new();
    server.done(
        "CREATE DATABASE Other
         GO
         BACKUP DATABASE Orders TO DISK = 'D:\\backup\\1.bak' WITH INIT
         WAITFOR DELAY '00:00:01'
         BACKUP DATABASE Orders TO DISK = 'D:\\backup\\2.bak' WITH INIT, COMPRESSION, ENCRYPTION (ALGORITHM = AES_256, \
         SERVER CERTIFICATE = BackupCert)
         BACKUP DATABASE Orders TO DISK = 'NUL' WITH COPY_ONLY",
    );
    let late = server.rows(
        "SELECT d.[name], 'Last backed up: ' + CASE WHEN COALESCE(CAST(MAX(b.backup_finish_date) AS VARCHAR(25)),'never') = \
         'never' THEN 'never' ELSE 'once' END,
         CASE WHEN MAX(b.backup_finish_date) <= DATEADD(dd, -7, GETDATE()) OR MAX(b.backup_finish_date) IS NULL THEN 1 \
         ELSE 0 END
         FROM master.sys.databases d
         LEFT OUTER JOIN msdb.dbo.backupset b ON d.name COLLATE SQL_Latin1_General_CP1_CI_AS = b.database_name COLLATE \
         SQL_Latin1_General_CP1_CI_AS AND b.type = 'D' AND b.server_name = SERVERPROPERTY('ServerName')
         WHERE d.database_id <> 2 AND d.state NOT IN(1, 6, 10) AND d.is_in_standby = 0 AND d.source_database_id IS NULL
         AND d.database_id > 4 GROUP BY d.name ORDER BY 1",
    );
    assert_eq!(late, ["Orders|Last backed up: once|0", "Other|Last backed up: never|1"]);
    let nowhere = server.rows(
        "SELECT bs.database_name, COUNT(*) FROM msdb.dbo.backupset AS bs INNER JOIN msdb.dbo.backupmediafamily bmf ON \
         bs.media_set_id = bmf.media_set_id WHERE UPPER(bmf.physical_device_name) = N'NUL' AND (bs.is_copy_only = 1 OR \
         bs.recovery_model = N'SIMPLE') AND bs.backup_finish_date >= DATEADD(dd, -1, GETDATE()) GROUP BY bs.database_name",
    );
    assert_eq!(nowhere, ["Orders|1"]);
    let keys = server.rows(
        "SELECT DISTINCT 'The certificate ' + c.name + ' is used to encrypt database backups. Last backup date: ' + \
         CASE WHEN COALESCE(CAST(c.pvt_key_last_backup_date AS VARCHAR(100)), 'Never') = 'Never' THEN 'never' ELSE 'once' END
         FROM sys.certificates c INNER JOIN msdb.dbo.backupset bs ON c.thumbprint = bs.encryptor_thumbprint
         WHERE pvt_key_last_backup_date IS NULL OR pvt_key_last_backup_date <= DATEADD(dd, 30, GETDATE()) OPTION (RECOMPILE)",
    );
    assert_eq!(
        keys,
        ["The certificate BackupCert is used to encrypt database backups. Last backup date: once"]
    );
    // The longest time between two backups, as it looks for it.
    let gaps = server.rows(
        "SELECT bs.database_name, CASE WHEN MAX(DATEDIFF(ss, bsPrior.backup_finish_date, bs.backup_finish_date)) >= 1 THEN \
         'some' END, COUNT(*) FROM msdb.dbo.backupset AS bs CROSS APPLY (SELECT TOP 1 bs1.backup_set_id, \
         bs1.backup_finish_date FROM msdb.dbo.backupset AS bs1 WHERE bs.database_name = bs1.database_name AND \
         bs.database_guid = bs1.database_guid AND bs.backup_finish_date > bs1.backup_finish_date AND bs.backup_set_id > \
         bs1.backup_set_id ORDER BY bs1.backup_finish_date DESC, bs1.backup_set_id DESC) bsPrior
         WHERE bs.backup_finish_date > DATEADD(dd, -14, SYSDATETIME()) GROUP BY bs.database_name",
    );
    assert_eq!(gaps, ["Orders|some|2"]);
    let sizes = server.rows(
        ";WITH Backups AS (SELECT bs.database_name, bs.database_guid, bs.type AS backup_type, MBpsAvg = CAST(AVG(( \
         bs.backup_size / ( CASE WHEN DATEDIFF(ss, bs.backup_start_date, bs.backup_finish_date) = 0 THEN 1 ELSE DATEDIFF(ss, \
         bs.backup_start_date, bs.backup_finish_date) END ) / 1048576 )) AS INT), SizeMBAvg = AVG(backup_size / 1048576.0), \
         CompressedSizeMBMax = MAX(compressed_backup_size / 1048576.0)
         FROM [msdb].dbo.backupset bs WHERE bs.backup_finish_date >= DATEADD(dd, -7, SYSDATETIME()) AND bs.is_damaged = 0
         GROUP BY bs.database_name, bs.database_guid, bs.type)
         SELECT bF.database_name, CASE WHEN bF.SizeMBAvg > 0 AND bF.CompressedSizeMBMax > 0 THEN 'sizes' END, \
         ISNULL(CAST(bD.SizeMBAvg AS varchar(20)), 'no differential'), bF.MBpsAvg
         FROM Backups bF LEFT OUTER JOIN Backups bD ON bF.database_name = bD.database_name AND bF.database_guid = \
         bD.database_guid AND bD.backup_type = 'I' WHERE bF.backup_type = 'D'",
    );
    assert_eq!(sizes, ["Orders|sizes|no differential|0"]);
    // DATEDIFF once with MONTH, once with mm.
    let trend = server.rows(
        "DECLARE @StartTime datetime2 = SYSDATETIME()
         SELECT b.database_name, DATEDIFF(MONTH, @StartTime, b.backup_start_date) AS MonthsAgo, CASE WHEN CONVERT(DECIMAL(18, \
         2), AVG(bf.file_size / 1048576.0)) > 0 THEN 'some' END
         FROM msdb.dbo.backupset AS b INNER JOIN msdb.dbo.backupfile AS bf ON b.backup_set_id = bf.backup_set_id
         WHERE b.database_name NOT IN ('master', 'msdb', 'model', 'tempdb') AND bf.file_type = 'D'
         GROUP BY b.database_name, b.database_guid, DATEDIFF(mm, @StartTime, b.backup_start_date)",
    );
    assert_eq!(trend, ["Orders|0|some"]);
    let switched = server.rows(
        ";WITH RecoveryHistory AS (SELECT b.database_name, b.recovery_model, LAG(b.recovery_model) OVER (PARTITION BY \
         b.database_name ORDER BY b.backup_finish_date, b.backup_set_id) AS prev_recovery_model FROM msdb.dbo.backupset AS b \
         WHERE b.recovery_model <> 'BULK-LOGGED')
         SELECT database_name FROM RecoveryHistory GROUP BY database_name HAVING SUM(CASE WHEN prev_recovery_model IS NOT \
         NULL AND recovery_model <> prev_recovery_model THEN 1 ELSE 0 END) > 0",
    );
    assert_eq!(switched, Vec::<String>::new());
    let people = server.rows(
        "WITH common_people AS (SELECT TOP 1 b.user_name, COUNT_BIG(*) AS Records FROM msdb.dbo.backupset AS b GROUP BY \
         b.user_name ORDER BY Records DESC)
         SELECT 'The database ' + QUOTENAME(b.database_name) + ' ' + CONVERT(VARCHAR(10), COUNT(*)) + ' times.'
         FROM msdb.dbo.backupset AS b WHERE b.user_name NOT LIKE '%Agent%' AND NOT EXISTS (SELECT 1 FROM common_people AS cp \
         WHERE cp.user_name <> b.user_name) GROUP BY b.database_name, b.user_name HAVING COUNT(*) > 1",
    );
    assert_eq!(people, ["The database [Orders] 3 times."]);
    server.says(
        "SELECT * FROM (SELECT database_name, type, backup_size FROM msdb.dbo.backupset) AS s PIVOT (SUM(backup_size) FOR \
         type IN ([D], [I])) AS p",
        &[(50001, "'PIVOT' is not supported.")],
    );
}

/// dbaTDPMon, which writes its file names into the statement, reads what it took by `sp_executesql` with OUTPUT, and
/// verifies. Source: https://github.com/rentadba/dbaTDPMon
/// source/maintenance-plan/stored-procedures/dbo.usp_mpDatabaseBackup.sql
#[test]
fn dba_tdp_mon() {
    let server = Server::new();
    let script = "DECLARE @dbName sysname = N'Orders', @fileName nvarchar(260) = N'/D/db1_Orders_full.BAK', @location \
         nvarchar(1024) = N'{D}', @queryToRun nvarchar(max), @queryParameters nvarchar(max), @backupStartDate datetime, \
         @backupDurationSec int, @backupSizeBytes bigint, @options nvarchar(256) = N''
         SET @options = @options + N', CHECKSUM' + N', COMPRESSION' + N', COPY_ONLY' + N', RETAINDAYS=' + CAST(3 AS \
         [nvarchar](32))
         SET @queryToRun = N'BACKUP DATABASE ['+ @dbName + N'] TO DISK = ''' + @location + @fileName + N''' WITH STATS = 10, \
         NAME = ''' + @fileName + N'''' + @options
         EXEC (@queryToRun)
         SET @queryToRun = N'SELECT @backupStartDate = [backup_start_date], @backupDurationSec = [backup_duration_sec], \
         @backupSizeBytes = [backup_size] FROM (SELECT TOP 1 bs.[backup_start_date], DATEDIFF(ss, bs.[backup_start_date], \
         bs.[backup_finish_date]) AS [backup_duration_sec], bs.[compressed_backup_size] AS [backup_size] FROM \
         msdb.dbo.backupset bs INNER JOIN msdb.dbo.backupmediafamily bmf ON bmf.[media_set_id] = bs.[media_set_id] WHERE \
         bmf.[physical_device_name] = (''' + @location + @fileName + N''') ORDER BY bs.[backup_set_id] DESC)X'
         SET @queryParameters = N'@backupStartDate [datetime] OUTPUT, @backupDurationSec [int] OUTPUT, @backupSizeBytes \
         [bigint] OUTPUT'
         EXEC sp_executesql @queryToRun, @queryParameters, @backupStartDate = @backupStartDate OUT, @backupDurationSec = \
         @backupDurationSec OUT, @backupSizeBytes = @backupSizeBytes OUT
         PRINT 'took ' + REPLICATE('0', 2-LEN(CAST(@backupDurationSec / 3600 AS [varchar]))) + CAST(@backupDurationSec / 3600 \
         AS [varchar]) + 'h, ' + CASE WHEN @backupSizeBytes > 0 AND @backupStartDate <= GETDATE() THEN 'known' END
         SET @queryToRun = N'RESTORE VERIFYONLY FROM DISK=''' + @location + @fileName + N''' WITH CHECKSUM'
         EXEC (@queryToRun)
         SET @queryToRun = 'SELECT COUNT(*) AS counted FROM msdb.dbo.backupset WHERE [database_name]=''' + @dbName + N''' AND \
         [type] IN (''D'', ''I'') AND [is_copy_only]=0'
         EXEC (@queryToRun)";
    let drives = server.0.path("keys/drives").display().to_string();
    let shown = server.done(&script.replace("{D}", &drives));
    percents(&shown, 10);
    assert!(shown.contains("\ntook 00h, known\n"), "{shown}");
    assert_eq!((count(&shown, BACKED_UP), count(&shown, VALID)), (1, 1), "{shown}");
    // A copy is no base of differentials.
    assert!(shown.contains("counted\n-------\n0\n"), "{shown}");
}

/// Jobs of one's own, as they are found in forums: a file name with the date, a variable for everything, TRY and CATCH.
/// Source: Microsoft's https://learn.microsoft.com/sql/t-sql/statements/backup-transact-sql
#[test]
fn a_job_of_ones_own() {
    let server = Server::new();
    let shown = server.done(
        "DECLARE @db sysname = N'Orders', @file nvarchar(260), @name nvarchar(128), @stats int = 25, @days int = 2
         SET @file = N'D:\\backup\\' + @db + N'_' + CONVERT(nvarchar(8), GETDATE(), 112) + N'_' + \
         REPLACE(CONVERT(nvarchar(8), GETDATE(), 108), N':', N'') + N'.bak'
         SET @name = @db + N' full'
         BACKUP DATABASE @db TO DISK = @file WITH INIT, NAME = @name, RETAINDAYS = @days, STATS = @stats
         DECLARE @position int = (SELECT MAX(position) FROM msdb.dbo.backupset WHERE database_name = @db)
         RESTORE VERIFYONLY FROM DISK = @file WITH FILE = @position
         RESTORE HEADERONLY FROM DISK = @file",
    );
    percents(&shown, 25);
    assert!(shown.contains(VALID) && shown.contains("\nOrders full NULL 1 "), "{shown}");
    let shown = server.says(
        "BEGIN TRY
           BACKUP DATABASE Orders TO DISK = N'D:\\nowhere\\x.bak' WITH INIT
           PRINT 'not reached'
         END TRY
         BEGIN CATCH
           PRINT 'caught ' + CAST(ERROR_NUMBER() AS varchar(10)) + ': ' + ERROR_MESSAGE()
           DECLARE @text nvarchar(4000) = N'backup failed', @severity int = ERROR_SEVERITY(), @state int = ERROR_STATE()
           RAISERROR(@text, @severity, @state)
         END CATCH
         PRINT 'after'",
        &[
            (
                3201,
                "Cannot open backup device '%/D/nowhere/x.bak'. Operating system error 2(No such file or directory).",
            ),
            (50000, "backup failed"),
        ],
    );
    assert!(shown.contains("caught 3013: BACKUP DATABASE is terminating abnormally."), "{shown}");
    assert!(!shown.contains("not reached") && shown.contains("\nafter\n"), "{shown}");
    // A device, as old jobs have it.
    let shown = server.done(
        "EXEC master.dbo.sp_addumpdevice @devtype = N'disk', @logicalname = N'OrdersDevice', @physicalname = \
         N'D:\\backup\\device.bak'
         GO
         BACKUP DATABASE Orders TO OrdersDevice WITH INIT
         RESTORE VERIFYONLY FROM OrdersDevice",
    );
    assert_eq!((count(&shown, BACKED_UP), count(&shown, VALID)), (1, 1), "{shown}");
    // Progress, as it is asked for in another window; nothing is under way here.
    let progress = server.rows(
        "SELECT r.session_id, r.command, CONVERT(NUMERIC(6,2), r.percent_complete) AS [Percent Complete], \
         CONVERT(VARCHAR(20), DATEADD(ms, r.estimated_completion_time, GETDATE()), 20) AS [ETA], \
         CONVERT(NUMERIC(10,2), r.total_elapsed_time/1000.0/60.0) AS [Elapsed Min]
         FROM sys.dm_exec_requests r WHERE r.command IN ('RESTORE DATABASE', 'BACKUP DATABASE')",
    );
    assert_eq!(progress, Vec::<String>::new());
    let last = server.rows(
        "SELECT d.name, ISNULL(CASE WHEN MAX(b.backup_finish_date) > '20200101' THEN 'some' END, 'never') AS LastBackup, \
         MAX(CASE WHEN b.type = 'D' THEN m.physical_device_name END) AS f
         FROM sys.databases d LEFT JOIN msdb.dbo.backupset b ON b.database_name = d.name
         LEFT JOIN msdb.dbo.backupmediafamily m ON m.media_set_id = b.media_set_id
         WHERE d.name NOT IN ('tempdb', 'master', 'model', 'msdb') GROUP BY d.name ORDER BY LastBackup",
    );
    assert!(last[0].starts_with("Orders|some|/") && last.len() == 1, "{last:?}");
}

const SCANNED: &str = "WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state IN (2, 5)) \
                       WAITFOR DELAY '00:00:00.05'";

/// Microsoft's tutorial: TDE is switched on, the database is detached and attached at another instance.
/// Source: https://learn.microsoft.com/sql/relational-databases/security/encryption/transparent-data-encryption and
/// https://learn.microsoft.com/sql/relational-databases/security/encryption/move-a-tde-protected-database-to-another-sql-server
#[test]
fn a_tde_database_moves_by_detach_and_attach() {
    let server = Server::empty();
    let shown = server.done(&format!(
        "USE master;
         GO
         CREATE MASTER KEY ENCRYPTION BY PASSWORD = '<UseStrongPasswordHere>';
         GO
         CREATE CERTIFICATE LedgerCert WITH SUBJECT = 'Certificate to protect the key';
         GO
         BACKUP CERTIFICATE LedgerCert TO FILE = 'LedgerCert' WITH PRIVATE KEY (FILE = 'LedgerKey', ENCRYPTION BY PASSWORD = \
         '<UseStrongPasswordHere2>');
         GO
         CREATE DATABASE Ledger ON ( NAME = Ledger_data, FILENAME = 'C:\\Ledger.mdf' ) LOG ON ( NAME = Ledger_log, FILENAME = \
         'C:\\Ledger.ldf');
         GO
         USE Ledger;
         GO
         CREATE TABLE dbo.Entry(id INT IDENTITY(1,1) PRIMARY KEY, note NVARCHAR(30));
         INSERT INTO dbo.Entry(note) VALUES (N'written'), (N'kept');
         CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_128 ENCRYPTION BY SERVER CERTIFICATE LedgerCert;
         GO
         ALTER DATABASE Ledger SET ENCRYPTION ON;
         GO
         {SCANNED}
         GO
         SELECT * FROM sys.dm_database_encryption_keys WHERE encryption_state = 3;
         GO"
    ));
    assert_eq!(count(&shown, "(1 rows affected)"), 1, "{shown}");
    let detach = "USE master;\nGO\nEXEC master.dbo.sp_detach_db @dbname = N'Ledger';";
    server.done(detach);
    assert_eq!(
        server.rows("SELECT name FROM sys.databases WHERE database_id > 4"),
        Vec::<String>::new()
    );
    server.says(
        detach,
        &[(
            15010,
            "The database 'Ledger' does not exist. Supply a valid database name. To see available databases, use \
             sys.databases.",
        )],
    );
    assert!(!server.drive("C/Ledger.mdf-wal").exists(), "the log is in the file");

    let other = Server::empty();
    std::fs::copy(server.drive("C/Ledger.mdf"), other.drive("C/Ledger.mdf")).unwrap();
    let attach = "CREATE DATABASE [Ledger] ON ( FILENAME = N'C:\\Ledger.mdf' ), ( FILENAME = N'C:\\Ledger.ldf' ) FOR ATTACH;";
    let shown = other.run(attach).succeeded();
    let (number, text) = errors(&shown).remove(0);
    assert_eq!(number, "Msg 33111", "{shown}");
    assert!(text.starts_with("Cannot find server certificate with thumbprint '0x"), "{shown}");
    for key in ["LedgerCert", "LedgerKey"] {
        std::fs::copy(server.0.path("keys/backup").join(key), other.drive("D/keys").join(key))
            .unwrap();
    }
    other.done(&format!(
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = '<UseStrongPasswordHere3>';
         GO
         CREATE CERTIFICATE LedgerCert FROM FILE = 'D:\\keys\\LedgerCert' WITH PRIVATE KEY ( FILE = 'D:\\keys\\LedgerKey', \
         DECRYPTION BY PASSWORD = '<UseStrongPasswordHere2>' );
         GO
         {attach}
         GO"
    ));
    assert_eq!(other.rows("SELECT note FROM Ledger.dbo.Entry ORDER BY id"), ["written", "kept"]);
    // Back again where it was.
    server.done(attach);
    let known = "SELECT d.name, k.encryption_state FROM sys.databases d JOIN sys.dm_database_encryption_keys k ON \
                 d.database_id = k.database_id";
    assert_eq!(server.rows(known), ["Ledger|3"]);
}

/// A set that says nothing of compression takes the media's, whatever the instance's default is; and a set that the media
/// do not have. Source: Microsoft's KB 2297053, https://support.microsoft.com/en-us/help/2297053
#[test]
fn appended_sets_are_compressed_as_the_media() {
    let server = Server::new();
    server.done(
        "BACKUP DATABASE Orders TO DISK = 'D:\\backup\\small.bak' WITH FORMAT, COMPRESSION
         BACKUP DATABASE Orders TO DISK = 'D:\\backup\\small.bak' WITH DIFFERENTIAL
         BACKUP DATABASE Orders TO DISK = 'D:\\backup\\large.bak' WITH FORMAT, NO_COMPRESSION
         EXEC sp_configure 'backup compression default', 1
         RECONFIGURE
         BACKUP DATABASE Orders TO DISK = 'D:\\backup\\large.bak' WITH COPY_ONLY
         BACKUP DATABASE Orders TO DISK = 'D:\\backup\\new.bak'
         EXEC sp_configure 'backup compression default', 0
         RECONFIGURE
         BACKUP DATABASE Orders TO DISK = 'D:\\backup\\small.bak' WITH INIT, COPY_ONLY
         BACKUP DATABASE Orders TO DISK = 'D:\\backup\\small.bak' WITH FORMAT, COPY_ONLY",
    );
    let compressed = server.rows(
        "SELECT CASE WHEN compression_algorithm IS NULL THEN 0 ELSE 1 END FROM msdb.dbo.backupset ORDER BY backup_set_id",
    );
    assert_eq!(compressed, ["1", "1", "0", "0", "1", "1", "0"]);
    let none = "Cannot find file ID 3 on device '%/D/backup/large.bak'.";
    let from = "FROM DISK = 'D:\\backup\\large.bak' WITH FILE = 3";
    server.says(&format!("RESTORE DATABASE Orders {from}, REPLACE"), &[(4038, none), RESTORE_ENDS]);
    server.says(&format!("RESTORE VERIFYONLY {from}"), &[(4038, none), VERIFY_ENDS]);
}

/// What sp_detach_db refuses. Source: Microsoft's "sp_detach_db".
#[test]
fn a_database_that_cannot_be_detached() {
    let server = Server::new();
    let system = "System databases master, model, msdb, and tempdb cannot be detached.";
    server.says("EXEC sp_detach_db 'msdb'", &[(7940, system)]);
    let in_use = "Cannot detach the database 'Orders' because it is currently in use.";
    server.says("USE Orders EXEC sp_detach_db 'Orders'", &[(3703, in_use)]);
    server.done("EXEC sp_detach_db 'Orders', 'true'");
    // The file stays, and its name is taken until it is attached again.
    let made = server.run("CREATE DATABASE Orders").succeeded();
    assert_eq!(errors(&made)[0].0, "Msg 5170", "{made}");
    let path = server.0.path("keys/data/Orders.db").display().to_string();
    server.done(&format!("CREATE DATABASE Orders ON (FILENAME = '{path}') FOR ATTACH"));
    assert_eq!(server.rows("SELECT COUNT(*) FROM Orders.dbo.Item"), ["2"]);
}

/// The tutorials' queries of states, and how TDE is taken away again.
/// Source: https://www.sqlshack.com/how-to-monitor-and-manage-transparent-data-encryption-tde-in-sql-server/,
/// https://www.sqlshack.com/remove-transparent-data-encryption-tde-from-sql-server-user-databases/ and
/// https://www.sqlservercentral.com/steps/stairway-to-tde-removing-tde-from-a-database
#[test]
fn tde_is_watched_and_removed() {
    let server = Server::new();
    server.done(&format!(
        "USE Orders
         GO
         CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE BackupCert
         GO
         ALTER DATABASE Orders SET ENCRYPTION ON
         GO
         {SCANNED}"
    ));
    let states = "SELECT DB_NAME(database_id) AS DatabaseName, encryption_state, encryption_state_desc = CASE \
         encryption_state WHEN '0' THEN 'No database encryption key present, no encryption' WHEN '1' THEN 'Unencrypted' \
         WHEN '2' THEN 'Encryption in progress' WHEN '3' THEN 'Encrypted' WHEN '4' THEN 'Key change in progress' WHEN '5' \
         THEN 'Decryption in progress' WHEN '6' THEN 'Protection change in progress' ELSE 'No Status' END, percent_complete, \
         encryptor_type, key_algorithm, key_length FROM sys.dm_database_encryption_keys";
    assert_eq!(server.rows(states), ["Orders|3|Encrypted|0.0|CERTIFICATE|AES|256"]);
    let certificates = "SELECT DB_NAME(db.database_id) DbName, db.encryption_state, encryptor_type, cer.name, cer.subject \
         FROM sys.dm_database_encryption_keys db JOIN sys.certificates cer ON db.encryptor_thumbprint = cer.thumbprint";
    assert_eq!(server.rows(certificates), ["Orders|3|CERTIFICATE|BackupCert|CN=Backups"]);
    let all = "SELECT db.name, db.is_encrypted, dm.encryption_state, dm.percent_complete, dm.key_algorithm, dm.key_length \
         FROM sys.databases db LEFT OUTER JOIN sys.dm_database_encryption_keys dm ON db.database_id = dm.database_id WHERE \
         db.name IN ('master', 'Orders') ORDER BY DB.NAME";
    assert_eq!(server.rows(all), ["master|0|NULL|NULL|NULL|NULL", "Orders|1|3|0.0|AES|256"]);
    let not_backed_up = "SELECT pvt_key_last_backup_date, Db_name(dek.database_id) AS encrypteddatabase, c.name AS \
         Certificate_Name FROM sys.certificates c INNER JOIN sys.dm_database_encryption_keys dek ON c.thumbprint = \
         dek.encryptor_thumbprint WHERE pvt_key_last_backup_date IS NULL";
    assert_eq!(server.rows(not_backed_up), Vec::<String>::new());
    let key = "SELECT name FROM sys.symmetric_keys WHERE name = '##MS_DatabaseMasterKey##' AND symmetric_key_id = 101";
    assert_eq!(server.rows(key), ["##MS_DatabaseMasterKey##"]);
    let by_server =
        "SELECT name, is_master_key_encrypted_by_server FROM sys.databases WHERE name = 'master'";
    assert_eq!(server.rows(by_server), ["master|1"]);

    // Out of order.
    server.says(
        "USE Orders DROP DATABASE ENCRYPTION KEY",
        &[(
            33105,
            "Cannot drop the database encryption key because it is currently in use. Database encryption needs to be \
             turned off to be able to drop the database encryption key.",
        )],
    );
    server.says(
        "DROP CERTIFICATE BackupCert",
        &[(
            33127,
            "The certificate cannot be dropped because it is used by one or more databases to encrypt a Database \
             Encryption Key.",
        )],
    );
    server.says(
        "DROP MASTER KEY",
        &[(15580, "Cannot drop master key because certificate 'BackupCert' is encrypted by it.")],
    );
    server.done(&format!("ALTER DATABASE Orders SET ENCRYPTION OFF\nGO\n{SCANNED}"));
    assert_eq!(server.rows(states), ["Orders|1|Unencrypted|0.0|CERTIFICATE|AES|256"]);
    server.done(
        "USE Orders
         GO
         DROP DATABASE ENCRYPTION KEY
         GO
         USE master
         GO
         DROP CERTIFICATE BackupCert
         GO
         DROP MASTER KEY
         GO",
    );
    assert_eq!(server.rows(states), Vec::<String>::new());
    assert_eq!(server.rows("SELECT Name FROM Orders.dbo.Item ORDER BY ItemID"), ["bread", "milk"]);
}

/// A certificate goes to another instance, and an encrypted backup is restored there.
/// Source: https://matthewmcgiffen.com/2018/02/14/migrating-or-recovering-a-tde-protected-database/ and
/// https://gavindraper.com/2019/01/28/Encrypting-And-Restoring-Database-Backups
#[test]
fn an_encrypted_backup_is_restored_elsewhere() {
    let server = Server::new();
    let shown = server.done(
        "BACKUP DATABASE Orders TO DISK = 'D:\\backup\\Orders.bak' WITH INIT, COMPRESSION, ENCRYPTION ( ALGORITHM = AES_256, \
         SERVER CERTIFICATE = BackupCert )",
    );
    assert_eq!(count(&shown, BACKED_UP), 1, "{shown}");
    let other = Server::empty();
    for file in ["D/backup/Orders.bak", "D/keys/BackupCert.cer", "D/keys/BackupCert.pvk"] {
        std::fs::copy(server.drive(file), other.drive(file)).unwrap();
    }
    let restore = "RESTORE DATABASE Orders FROM DISK = 'D:\\backup\\Orders.bak' WITH MOVE 'Orders' TO 'C:\\Orders.mdf', MOVE \
                   'Orders_log' TO 'C:\\Orders_log.ldf'";
    let missing = "Cannot find server certificate with thumbprint '0x%'.";
    for (statement, end) in [
        (restore, RESTORE_ENDS),
        ("RESTORE VERIFYONLY FROM DISK = 'D:\\backup\\Orders.bak'", VERIFY_ENDS),
    ] {
        other.says(statement, &[(33111, missing), end]);
    }
    let create = |password: &str| {
        format!(
            "USE master; CREATE CERTIFICATE BackupCert FROM FILE = 'D:\\keys\\BackupCert.cer' WITH PRIVATE KEY ( FILE = \
             'D:\\keys\\BackupCert.pvk', DECRYPTION BY PASSWORD = '{password}' );"
        )
    };
    let no_key = "Please create a master key in the database or open the master key in the session before performing this \
                  operation.";
    other.says(&create("p@ssw0rd2"), &[(15581, no_key)]);
    other.done("USE MASTER; CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'An0ther!Word';");
    other.says(&create("forgotten!"), &[(15465, "The private key password is invalid.")]);
    other.done(&create("p@ssw0rd2"));
    let shown = other.done(restore);
    assert_eq!(count(&shown, RESTORED), 1, "{shown}");
    assert_eq!(other.rows("SELECT Name FROM Orders.dbo.Item ORDER BY ItemID"), ["bread", "milk"]);
    let files =
        other.rows("SELECT name, physical_name FROM Orders.sys.database_files ORDER BY file_id");
    assert!(files[0].starts_with("Orders|/") && files[0].ends_with("/C/Orders.mdf"), "{files:?}");
    assert!(files[1].starts_with("Orders_log|/"), "{files:?}");
}
