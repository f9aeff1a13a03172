//! Goal: every line of the grammar of BACKUP and RESTORE. Method: a table of what is written and what is printed,
//! typed by hand from the grammar.

use pellucid_tsql_testing::{prints_as, prints_the_same};

#[test]
fn what_is_backed_up_and_where_to() {
    prints_the_same(&[
        "BACKUP DATABASE db TO DISK = 'f'",
        "BACKUP DATABASE @db TO DISK = @path",
        "BACKUP DATABASE db FILE = 'a', FILE = @f, FILEGROUP = 'g' TO DISK = 'f'",
        "BACKUP DATABASE db READ_WRITE_FILEGROUPS TO DISK = 'f'",
        "BACKUP DATABASE db READ_WRITE_FILEGROUPS, FILEGROUP = 'g' TO DISK = 'f'",
        "BACKUP DATABASE db TO device, @device, DISK = 'NUL', TAPE = '\\\\.\\tape0', URL = 'https://s/c/f.bak'",
        "BACKUP DATABASE db TO DISK = 'a', DISK = 'b' MIRROR TO DISK = 'c', DISK = 'd'",
        "BACKUP DATABASE db TO DISK = 'a' MIRROR TO DISK = 'b' MIRROR TO DISK = 'c' MIRROR TO DISK = 'd' WITH FORMAT",
        "BACKUP LOG db TO DISK = 'f'",
        "BACKUP LOG @db TO DISK = 'f' MIRROR TO DISK = 'g' WITH NORECOVERY",
        // Names that only look like keywords.
        "BACKUP DATABASE [CERTIFICATE] TO [URL]",
    ]);
    let stripes: Vec<_> = (1..=64).map(|n| format!("DISK = '{n}'")).collect();
    prints_the_same(&[&format!("BACKUP DATABASE db TO {}", stripes.join(", "))]);
}

#[test]
fn options_of_backup() {
    let options = [
        "DIFFERENTIAL",
        "COPY_ONLY",
        "COMPRESSION",
        "COMPRESSION (ALGORITHM = MS_XPRESS)",
        "COMPRESSION (ALGORITHM = QAT_DEFLATE)",
        "COMPRESSION (ALGORITHM = ZSTD)",
        "COMPRESSION (ALGORITHM = ZSTD, LEVEL = LOW)",
        "COMPRESSION (ALGORITHM = ZSTD, LEVEL = MEDIUM)",
        "COMPRESSION (ALGORITHM = ZSTD, LEVEL = HIGH)",
        "NO_COMPRESSION",
        "ENCRYPTION (ALGORITHM = AES_128, SERVER CERTIFICATE = c)",
        "ENCRYPTION (ALGORITHM = AES_192, SERVER CERTIFICATE = [c d])",
        "ENCRYPTION (ALGORITHM = AES_256, SERVER ASYMMETRIC KEY = k)",
        "ENCRYPTION (ALGORITHM = TRIPLE_DES_3KEY, SERVER CERTIFICATE = c)",
        "NO_ENCRYPTION",
        "FORMAT",
        "NOFORMAT",
        "INIT",
        "NOINIT",
        "SKIP",
        "NOSKIP",
        "NAME = 'n'",
        "NAME = @n",
        "DESCRIPTION = N'd'",
        "MEDIANAME = 'm'",
        "MEDIADESCRIPTION = @m",
        "EXPIREDATE = '20300101'",
        "EXPIREDATE = @date",
        "RETAINDAYS = 14",
        "RETAINDAYS = @days",
        "BLOCKSIZE = 65536",
        "BUFFERCOUNT = 50",
        "MAXTRANSFERSIZE = 4194304",
        "MAXTRANSFERSIZE = @size",
        "CHECKSUM",
        "NO_CHECKSUM",
        "STOP_ON_ERROR",
        "CONTINUE_AFTER_ERROR",
        "STATS",
        "STATS = 5",
        "REWIND",
        "NOREWIND",
        "UNLOAD",
        "NOUNLOAD",
        "RESTART",
        "NORECOVERY",
        "STANDBY = 'undo'",
        "NO_TRUNCATE",
        "CREDENTIAL = 'c'",
        "FILE_SNAPSHOT",
        "MEDIAPASSWORD = 'm'",
        "PASSWORD = 'p'",
    ];
    for option in options {
        for what in ["DATABASE", "LOG"] {
            prints_the_same(&[&format!("BACKUP {what} db TO DISK = 'f' WITH {option}")]);
        }
    }
    prints_the_same(&[&format!("BACKUP DATABASE db TO DISK = 'f' WITH {}", options.join(", "))]);
    prints_as(&[
        // Both spellings of the reference, and a credential by its name.
        (
            "BACKUP DATABASE db TO DISK='f' WITH COMPRESSION ALGORITHM = ZSTD, CREDENTIAL = [c]",
            "BACKUP DATABASE db TO DISK = 'f' WITH COMPRESSION (ALGORITHM = ZSTD), CREDENTIAL = 'c'",
        ),
    ]);
}

#[test]
fn what_is_restored_and_where_from() {
    prints_the_same(&[
        "RESTORE DATABASE db FROM DISK = 'f'",
        "RESTORE DATABASE @db FROM @device",
        "RESTORE DATABASE db WITH RECOVERY",
        "RESTORE DATABASE db FILE = 'a', FILEGROUP = 'g' FROM DISK = 'f' WITH NORECOVERY",
        "RESTORE DATABASE db READ_WRITE_FILEGROUPS FROM DISK = 'f' WITH PARTIAL",
        "RESTORE DATABASE db PAGE = '1:57, 1:202' FROM DISK = 'f' WITH NORECOVERY",
        "RESTORE DATABASE db PAGE = @pages FROM DISK = 'f'",
        "RESTORE DATABASE db FROM DISK = 'a', DISK = 'b', URL = 'c'",
        "RESTORE DATABASE db FROM DATABASE_SNAPSHOT = snap",
        "RESTORE LOG db FROM DISK = 'f' WITH STOPAT = '2026-01-01T00:00:00', NORECOVERY",
        "RESTORE LOG db PAGE = '1:57' FROM DISK = 'f'",
    ]);
    prints_as(&[(
        "RESTORE DATABASE db FROM DATABASE_SNAPSHOT = 'snap'",
        "RESTORE DATABASE db FROM DATABASE_SNAPSHOT = snap",
    )]);
}

#[test]
fn options_of_restore() {
    let options = [
        "RECOVERY",
        "NORECOVERY",
        "STANDBY = 'undo'",
        "STANDBY = @undo",
        "MOVE 'logical' TO 'path'",
        "MOVE @logical TO @path",
        "REPLACE",
        "RESTART",
        "RESTRICTED_USER",
        "FILE = 2",
        "FILE = @position",
        "MEDIANAME = 'm'",
        "MEDIANAME = @m",
        "MEDIAPASSWORD = 'm'",
        "PASSWORD = 'p'",
        "BLOCKSIZE = 512",
        "BUFFERCOUNT = @count",
        "MAXTRANSFERSIZE = 65536",
        "CHECKSUM",
        "NO_CHECKSUM",
        "STOP_ON_ERROR",
        "CONTINUE_AFTER_ERROR",
        "STATS",
        "STATS = 100",
        "PARTIAL",
        "REWIND",
        "NOREWIND",
        "UNLOAD",
        "NOUNLOAD",
        "STOPAT = '20260101'",
        "STOPAT = @time",
        "STOPATMARK = 'lsn:15000000040000037'",
        "STOPATMARK = 'mark' AFTER '20260101'",
        "STOPBEFOREMARK = 'lsn:15000000040000037' AFTER @time",
        "STOPBEFOREMARK = @mark",
        "KEEP_REPLICATION",
        "KEEP_CDC",
        "ENABLE_BROKER",
        "ERROR_BROKER_CONVERSATIONS",
        "NEW_BROKER",
        "CREDENTIAL = 'c'",
        "LOADHISTORY",
    ];
    for option in options {
        for what in [
            "DATABASE db",
            "LOG db",
            "HEADERONLY",
            "FILELISTONLY",
            "LABELONLY",
            "VERIFYONLY",
            "REWINDONLY",
        ] {
            prints_the_same(&[&format!("RESTORE {what} FROM DISK = 'f' WITH {option}")]);
        }
    }
    prints_the_same(&[&format!("RESTORE DATABASE db FROM DISK = 'f' WITH {}", options.join(", "))]);
}

#[test]
fn looking_at_media() {
    prints_the_same(&[
        "RESTORE HEADERONLY FROM DISK = 'f'",
        "RESTORE HEADERONLY FROM @device WITH NOUNLOAD",
        "RESTORE FILELISTONLY FROM DISK = 'f' WITH FILE = 2",
        "RESTORE LABELONLY FROM DISK = 'a', DISK = 'b'",
        "RESTORE VERIFYONLY FROM DISK = 'f' WITH CHECKSUM, LOADHISTORY, STATS = 10",
        "RESTORE REWINDONLY FROM TAPE = '\\\\.\\tape0' WITH UNLOAD",
    ]);
}

#[test]
fn statements_follow_one_another_without_semicolons() {
    let batch = "USE [master] RESTORE DATABASE a FROM DISK = 'f' WITH REPLACE RESTORE DATABASE b FROM DISK = 'g' \
                 BACKUP LOG a TO d WITH INIT DECLARE @v int = 1 PRINT @v CREATE MASTER KEY DROP DATABASE a, b";
    assert_eq!(pellucid_tsql_testing::round_trip(batch).len(), 8);
}
