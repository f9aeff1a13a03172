//! What maintenance solutions emit: backups, and what they ask before.

use super::{
    count, percents, Server, BACKED_UP, BACKUP_ENDS, NULLS, RESTORED, RESTORE_ENDS, VALID,
    VERIFY_ENDS,
};

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
        &with("CHECKSUM, COMPRESSION (ALGORITHM = QAT_DEFLATE)"),
        &[(50001, "'COMPRESSION (ALGORITHM = QAT_DEFLATE)' is not supported."), BACKUP_ENDS],
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
    // Nothing is mirrored.
    let mirrored = "SELECT COUNT(*), COUNT(mirroring_guid) FROM sys.database_mirroring WHERE database_id = DB_ID(N'Orders')";
    assert_eq!(server.rows(mirrored), ["1|0", NULLS]);
    let host = "SELECT host_platform, host_service_pack_level FROM sys.dm_os_host_info";
    assert_eq!(server.rows(host), ["Linux|"]);
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
    assert_eq!(forks, ["Pubs|0|1|NULL|2"]);

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
                3117,
                "The log or differential backup cannot be restored because no files are ready to rollforward.",
            ),
            (3013, "RESTORE LOG is terminating abnormally."),
        ],
    );
    server.says("KILL 55;", &[(50001, "'KILL' is not supported.")]);
    server.says("ALTER AUTHORIZATION ON DATABASE::[Orders] TO [sa]", &[]);
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
    assert_eq!(late, ["Orders|Last backed up: once|0", "Other|Last backed up: never|1", NULLS]);
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
    // A month may have begun since.
    let has_begun = trend == ["Orders|-1|some"] || trend == ["Orders|-1|some", "Orders|0|some"];
    assert!(has_begun || trend == ["Orders|0|some"], "{trend:?}");
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
    let by_type = server.rows(
        "SELECT database_name, CASE WHEN D > 0 THEN 'full' END, I FROM (SELECT database_name, type, backup_size FROM \
         msdb.dbo.backupset) AS s PIVOT (SUM(backup_size) FOR type IN ([D], [I])) AS p",
    );
    assert_eq!(by_type, ["Orders|full|NULL"]);
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
        // 3201 comes before 3013, and what TRY catches is shown to nobody.
        &[(50000, "backup failed")],
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
