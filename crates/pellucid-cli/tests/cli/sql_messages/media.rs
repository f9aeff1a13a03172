//! Of backups and restores.

use super::{matches, Server, BACKUP_ENDS, RESTORE_ENDS};

#[test]
fn backups() {
    let server = Server::ready();
    let to = "BACKUP DATABASE sales TO DISK = 'D:\\s.bak'";
    server.says(
        &format!("BEGIN TRAN {to} ROLLBACK"),
        &[
            (3021, "Cannot perform a backup or restore operation within a transaction."),
            BACKUP_ENDS,
        ],
    );
    server.says(
        &format!("{to} WITH FORMAT, NOINIT"),
        &[
            (3031, "Option 'FORMAT' conflicts with option(s) 'NOINIT'. Remove the conflicting option and reissue the statement."),
            BACKUP_ENDS,
        ],
    );
    server.says(
        &format!("{to} WITH DIFFERENTIAL"),
        &[
            (
                3035,
                "Cannot perform a differential backup for database \"sales\", because a current database backup does not \
                 exist. Perform a full database backup by reissuing BACKUP DATABASE, omitting the WITH DIFFERENTIAL option.",
            ),
            BACKUP_ENDS,
        ],
    );
    let sealed = "ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = Cert)";
    server.says(
        &format!("{to} WITH FILE_SNAPSHOT, {sealed}"),
        &[
            (3072, "Backup encryption is incompatible with file snapshot backup if TDE is not enabled on the database."),
            BACKUP_ENDS,
        ],
    );
    server.says(
        &format!("{to} WITH BLOCKSIZE = 1000"),
        &[
            (3253, "The block size parameter must supply a value that is a power of 2."),
            BACKUP_ENDS,
        ],
    );
    server.says(
        "BACKUP DATABASE sales TO nowhere",
        &[
            (
                3206,
                "Backup device 'nowhere' does not exist. To view existing backup devices, use the sys.backup_devices catalog \
                 view. To create a new backup device use either sp_addumpdevice or SQL Server Management Studio.",
            ),
            BACKUP_ENDS,
        ],
    );
    server.says(
        "BACKUP DATABASE sales TO DISK = 'D:\\missing\\s.bak'",
        &[
            (
                3201,
                "Cannot open backup device '%/D/missing/s.bak'. Operating system error 2(No such file or directory).",
            ),
            BACKUP_ENDS,
        ],
    );
    server.says(
        "BACKUP DATABASE tempdb TO DISK = 'D:\\t.bak'",
        &[(3147, "Backup and restore operations are not allowed on database tempdb."), BACKUP_ENDS],
    );
    server.says(
        "BACKUP LOG sales TO DISK = 'D:\\l.bak'",
        &[
            (
                4208,
                "The statement BACKUP LOG is not allowed while the recovery model is SIMPLE. Use BACKUP DATABASE or change \
                 the recovery model using ALTER DATABASE.",
            ),
            (3013, "BACKUP LOG is terminating abnormally."),
        ],
    );
    server.says(
        "ALTER DATABASE sales SET RECOVERY FULL BACKUP LOG sales TO DISK = 'D:\\l.bak'",
        &[
            (
                50010,
                "10: Database 'sales' is not encrypted: any SQLite may begin its log anew, so it has no log backups. SET \
                 ENCRYPTION ON gives it format version 2, which has them, after 'pellucid policy set format-version 2'.",
            ),
            (4214, "BACKUP LOG cannot be performed because there is no current database backup."),
            (3013, "BACKUP LOG is terminating abnormally."),
        ],
    );
    let heard = server.run(&format!("{to} WITH INIT, STATS = 50"));
    let numbers: Vec<_> = heard.iter().map(|(number, severity, _)| (*number, *severity)).collect();
    assert_eq!(numbers, [(3211, 10), (4035, 10), (3211, 10), (3014, 10)], "{heard:?}");
    assert_eq!(heard[0].2, "50 percent processed.");
    assert!(
        matches(&heard[1].2, "Processed % pages for database 'sales', file 'sales' on file 1."),
        "{heard:?}"
    );
    assert_eq!(heard[2].2, "100 percent processed.");
    let done = "BACKUP DATABASE successfully processed % pages in %.% seconds (%.% MB/sec).";
    assert!(matches(&heard[3].2, done), "{heard:?}");
    server.says(
        &format!("{to} WITH INIT, {sealed}"),
        &[
            (
                3095,
                "The backup cannot be performed because 'ENCRYPTION' was requested after the media was formatted with an \
                 incompatible structure. To append to this media set, either omit 'ENCRYPTION' or create a new media set by \
                 using WITH FORMAT in your BACKUP statement. If you use WITH FORMAT on an existing media set, all its backup \
                 sets will be overwritten.",
            ),
            BACKUP_ENDS,
        ],
    );
    server.says(
        &format!("{to} WITH COMPRESSION"),
        &[
            (
                3098,
                "The backup cannot be performed because 'COMPRESSION' was requested after the media was formatted with an \
                 incompatible structure. To append to this media set, either omit 'COMPRESSION' or specify \
                 'NO_COMPRESSION'. Alternatively, you can create a new media set by using WITH FORMAT in your BACKUP \
                 statement. If you use WITH FORMAT on an existing media set, all its backup sets will be overwritten.",
            ),
            BACKUP_ENDS,
        ],
    );
    server.done("BACKUP DATABASE sales TO DISK = 'D:\\1.bak', DISK = 'D:\\2.bak' WITH FORMAT");
    server.says(
        "BACKUP DATABASE sales TO DISK = 'D:\\1.bak' WITH INIT",
        &[
            (
                3231,
                "The media loaded on \"%/D/1.bak\" is formatted to support 2 media families, but 1 media families are \
                 expected according to the backup device specification.",
            ),
            BACKUP_ENDS,
        ],
    );
    server.says(
        "BACKUP DATABASE sales TO DISK = 'D:\\s.bak' MIRROR TO DISK = 'D:\\m.bak' WITH INIT",
        &[(3215, "Use WITH FORMAT to create a new mirrored backup set."), BACKUP_ENDS],
    );
    let text = vec![b'x'; 4096];
    std::fs::write(server.path("D/text.bak"), &text).unwrap();
    for with in ["", " WITH INIT", " WITH INIT, SKIP", " WITH NOINIT"] {
        server.says(
            &format!("BACKUP DATABASE sales TO DISK = 'D:\\text.bak'{with}"),
            &[
                (
                    3241,
                    "The media family on device '%/D/text.bak' is incorrectly formed. SQL Server cannot process this media \
                     family.",
                ),
                BACKUP_ENDS,
            ],
        );
        assert_eq!(std::fs::read(server.path("D/text.bak")).unwrap(), text, "{with}");
    }
    // An exported key is no text: not even FORMAT takes it.
    let key = std::fs::read(server.path("C/temp/Cert.key")).unwrap();
    for with in ["INIT", "FORMAT"] {
        let heard = server
            .run(&format!("BACKUP DATABASE sales TO DISK = 'C:\\temp\\Cert.key' WITH {with}"));
        assert!(heard.iter().any(|(number, ..)| *number == 3013), "{heard:?}");
        assert_eq!(std::fs::read(server.path("C/temp/Cert.key")).unwrap(), key, "{with}");
    }
    server.done("BACKUP DATABASE sales TO DISK = 'D:\\text.bak' WITH FORMAT");
}

#[test]
fn restores() {
    let server = Server::ready();
    server.done(
        "BACKUP DATABASE sales TO DISK = 'D:\\s.bak' WITH INIT
         BACKUP DATABASE sales TO DISK = 'D:\\1.bak', DISK = 'D:\\2.bak' WITH FORMAT
         CREATE DATABASE other",
    );
    let from = "FROM DISK = 'D:\\s.bak'";
    server.says(
        &format!("USE sales RESTORE DATABASE sales {from} WITH REPLACE"),
        &[
            (
                3102,
                "RESTORE cannot process database 'sales' because it is in use by this session. It is recommended that the \
                 master database be used when performing this operation.",
            ),
            RESTORE_ENDS,
        ],
    );
    server.says(
        &format!("RESTORE DATABASE sales {from}"),
        &[
            (
                3159,
                "The tail of the log for the database \"sales\" has not been backed up. Use BACKUP LOG WITH NORECOVERY to \
                 backup the log if it contains work you do not want to lose. Use the WITH REPLACE or WITH STOPAT clause of \
                 the RESTORE statement to just overwrite the contents of the log.",
            ),
            RESTORE_ENDS,
        ],
    );
    server.says(
        &format!("RESTORE DATABASE other {from}"),
        &[
            (3154, "The backup set holds a backup of a database other than the existing 'other' database."),
            RESTORE_ENDS,
        ],
    );
    std::fs::write(server.path("D/taken.db"), b"something").unwrap();
    server.says(
        &format!("RESTORE DATABASE copy {from} WITH MOVE 'sales' TO 'D:\\taken.db'"),
        &[
            (
                3142,
                "File \"%/D/taken.db\" cannot be restored over the existing \"%/D/taken.db\". Reissue the RESTORE statement \
                 using WITH REPLACE to overwrite pre-existing files, or WITH MOVE to identify an alternate location.",
            ),
            RESTORE_ENDS,
        ],
    );
    server.says(
        &format!("RESTORE DATABASE copy {from} WITH MOVE 'nothing' TO 'D:\\copy.db'"),
        &[
            (
                3234,
                "Logical file 'nothing' is not part of database 'copy'. Use RESTORE FILELISTONLY to list the logical file \
                 names.",
            ),
            RESTORE_ENDS,
        ],
    );
    server.says(
        &format!("RESTORE DATABASE copy {from} WITH STOPAT = '20260101'"),
        &[
            (3145, "The STOPAT option is not supported for databases that use the SIMPLE recovery model."),
            RESTORE_ENDS,
        ],
    );
    server.says(
        "RESTORE DATABASE copy FROM DISK = 'D:\\1.bak' WITH MOVE 'sales' TO 'D:\\copy.db'",
        &[
            (3132, "The media set has 2 media families but only 1 are provided. All members must be provided."),
            RESTORE_ENDS,
        ],
    );
    server.says(
        "RESTORE DATABASE tempdb FROM DISK = 'D:\\s.bak'",
        &[
            (3147, "Backup and restore operations are not allowed on database tempdb."),
            RESTORE_ENDS,
        ],
    );
    server.says(
        "RESTORE HEADERONLY FROM DISK = 'D:\\missing.bak'",
        &[
            (3201, "Cannot open backup device '%/D/missing.bak'. Operating system error 2(No such file or directory)."),
            (3013, "RESTORE HEADERONLY is terminating abnormally."),
        ],
    );
    std::fs::write(server.path("D/tape.bak"), [b"TAPE".as_slice(), &[0; 4096]].concat()).unwrap();
    server.says(
        "RESTORE DATABASE copy FROM DISK = 'D:\\tape.bak'",
        &[(3242, "The file on device '%/D/tape.bak' is not a valid Microsoft Tape Format backup set."), RESTORE_ENDS],
    );
    server.says(
        &format!("RESTORE VERIFYONLY {from}"),
        &[(3262, "10: The backup set on file 1 is valid.")],
    );
    let mut bytes = std::fs::read(server.path("D/s.bak")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(server.path("D/bad.bak"), bytes).unwrap();
    let heard = server.run("RESTORE VERIFYONLY FROM DISK = 'D:\\bad.bak'");
    let last: Vec<_> =
        heard.iter().rev().take(2).map(|(number, _, text)| (*number, text.as_str())).collect();
    assert_eq!(
        last,
        [
            (3013, "RESTORE VERIFYONLY is terminating abnormally."),
            (3189, "Damage to the backup set was detected.")
        ],
        "{heard:?}"
    );
    // Another program has it open.
    let path = server.place.path("keys/data/other.db");
    let mut holder = server.place.command("/usr/bin/sqlite3");
    holder.args(["-batch"]).arg(&path);
    let mut holder = crate::support::Held::start_with(
        holder,
        "BEGIN IMMEDIATE; CREATE TABLE x(a); SELECT 'ready';\n",
    );
    server.says(
        &format!("RESTORE DATABASE other {from} WITH REPLACE"),
        &[
            (3101, "Exclusive access could not be obtained because the database is in use."),
            RESTORE_ENDS,
        ],
    );
    holder.end();
}

#[test]
fn differentials() {
    let server = Server::ready();
    server.done(
        "BACKUP DATABASE sales TO DISK = 'D:\\full.bak' WITH INIT
         USE sales INSERT INTO t VALUES (3, 'Cem') USE master
         BACKUP DATABASE sales TO DISK = 'D:\\diff.bak' WITH INIT, DIFFERENTIAL
         USE sales INSERT INTO t VALUES (4, 'Dana') USE master
         BACKUP DATABASE sales TO DISK = 'D:\\full2.bak' WITH INIT",
    );
    server.says(
        "RESTORE DATABASE sales FROM DISK = 'D:\\diff.bak' WITH REPLACE",
        &[
            (3117, "The log or differential backup cannot be restored because no files are ready to rollforward."),
            RESTORE_ENDS,
        ],
    );
    let heard = server.run(
        "RESTORE DATABASE sales FROM DISK = 'D:\\full2.bak' WITH REPLACE, NORECOVERY
         RESTORE DATABASE sales FROM DISK = 'D:\\diff.bak' WITH RECOVERY",
    );
    let last: Vec<_> =
        heard.iter().rev().take(2).map(|(number, _, text)| (*number, text.as_str())).collect();
    assert_eq!(
        last,
        [
            (3013, "RESTORE DATABASE is terminating abnormally."),
            (
                3136,
                "This differential backup cannot be restored because the database has not been restored to the correct \
                 earlier state."
            )
        ],
        "{heard:?}"
    );
    server.says(
        "USE sales",
        &[(927, "14: Database 'sales' cannot be opened. It is in the middle of a restore.")],
    );
    server.done(
        "RESTORE DATABASE sales FROM DISK = 'D:\\full.bak' WITH REPLACE, NORECOVERY
         RESTORE DATABASE sales FROM DISK = 'D:\\diff.bak' WITH RECOVERY
         GO
         USE sales IF (SELECT COUNT(*) FROM t) <> 3 RAISERROR('not three', 16, 1)",
    );
    // A full backup is there, and is none that this differential could be restored on.
    server.done(
        "BACKUP DATABASE sales TO DISK = 'D:\\sealed.bak'
           WITH FORMAT, ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = Cert)",
    );
    let heard =
        server.run("BACKUP DATABASE sales TO DISK = 'D:\\clear.bak' WITH FORMAT, DIFFERENTIAL");
    let numbers: Vec<_> = heard.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers[numbers.len() - 2..], [3035, 3013], "{heard:?}");
    assert!(
        heard.iter().any(|(.., text)| text.contains("a full backup has to come between")),
        "{heard:?}"
    );
    assert!(!server.path("D/clear.bak").exists());
}
