//! What tutorials of TDE and of encrypted backups show.

use super::{count, errors, Server, BACKED_UP, RESTORED, RESTORE_ENDS, SCANNED, VERIFY_ENDS};

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
    assert_eq!(server.rows(certificates), ["Orders|3|CERTIFICATE|BackupCert|Backups"]);
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
