//! What SQL Server Management Studio scripts.

use super::{
    count, errors, percents, Server, BACKED_UP, BACKUP_ENDS, LOG_ENDS, RESTORED, RESTORE_ENDS,
    VALID,
};

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
    let no_base = "BACKUP LOG cannot be performed because there is no current database backup.";
    server.says(
        &format!("ALTER DATABASE [Orders] SET RECOVERY FULL WITH NO_WAIT\nGO\n{log}"),
        &[(4214, no_base), LOG_ENDS],
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
    // Nothing in it is as old.
    server.done(
        "EXECUTE master.dbo.xp_delete_file 0,N'D:\\backup',N'bak',N'2020-01-01T00:00:00',1
         RESTORE VERIFYONLY FROM DISK = N'D:\\backup\\Orders.bak'",
    );
}
