//! Goal: a session does what SQL Server's does with batches, strings that are executed, errors and transactions, and no
//! statement touches what it does not name.
//!
//! Method: scripts from outside; what they print is typed by hand.

use crate::support::{said_with, Place, PELLUCID};

struct Server(Place);

impl Server {
    fn new() -> Self {
        let server = Self(Place::new());
        server.prints(
            "SET NOCOUNT ON
             CREATE DATABASE s
             CREATE DATABASE t
             GO
             USE s
             CREATE TABLE x(id INT NOT NULL PRIMARY KEY)
             INSERT x VALUES (1)
             CREATE TABLE p(id INT IDENTITY PRIMARY KEY, v INT)
             INSERT p(v) VALUES (1), (2)
             CREATE TABLE c(id INT NOT NULL PRIMARY KEY, pid INT REFERENCES p(id) ON DELETE CASCADE)
             INSERT c VALUES (10, 1), (11, 2)",
            &[],
        );
        server
    }

    fn path(&self, name: &str) -> String {
        self.0.path(name).display().to_string()
    }

    /// Lines of a script, without blank ones, changes of database and names of servers.
    fn lines(&self, script: &str) -> Vec<String> {
        let said = said_with(self.0.command(PELLUCID).args(["sql", "-W", "-h", "-1"]), script);
        assert!(said.stderr.is_empty(), "{script}: {said:?}");
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

    /// A script in database `s`, without counts of rows.
    #[track_caller]
    fn prints(&self, script: &str, expected: &[&str]) {
        let lines = self.lines(&format!("SET NOCOUNT ON\n{script}"));
        assert_eq!(lines, expected, "{script}");
    }
}

#[test]
fn rows_of_other_tables_stay() {
    let server = Server::new();
    server.prints(
        "USE s TRUNCATE TABLE p",
        &[
            "Msg 4712",
            "Cannot truncate table 'p' because it is being referenced by a FOREIGN KEY constraint.",
        ],
    );
    server.prints(
        "USE s DROP TABLE p",
        &[
            "Msg 3726",
            "Could not drop object 'p' because it is referenced by a FOREIGN KEY constraint.",
        ],
    );
    server.prints("USE s ALTER INDEX ALL ON p REBUILD SELECT COUNT(*) FROM c", &["2"]);
    server.prints(
        "USE s DROP TABLE c TRUNCATE TABLE p INSERT p(v) VALUES (7) SELECT id, v FROM p",
        &["1 7"],
    );
}

#[test]
fn strings_end_with_what_they_have_set() {
    let server = Server::new();
    server.prints("USE s EXEC ('USE t') PRINT DB_NAME()", &["s"]);
    server.prints(
        "EXEC ('CREATE TABLE #inner(i INT)') SELECT COUNT(*) FROM #inner",
        &["Msg 208", "Invalid object name '#inner'."],
    );
    server.prints(
        "CREATE TABLE #outer(i INT) EXEC ('INSERT #outer VALUES (3)') SELECT i FROM #outer",
        &["3"],
    );
    assert_eq!(server.lines("EXEC ('SET NOCOUNT ON') SELECT 1 AS a"), ["1", "(1 rows affected)"]);
    server.prints(
        "DECLARE @rc INT EXEC @rc = sp_executesql N'SELECT 1/0' PRINT CONVERT(VARCHAR(10), @rc)",
        &["Msg 8134", "Divide by zero error encountered.", "8134"],
    );
    server.prints(
        "EXEC ('SELECT 1/0') PRINT CONVERT(VARCHAR(10), @@ERROR)",
        &["Msg 8134", "Divide by zero error encountered.", "8134"],
    );
    server.prints(
        "DECLARE @rc INT EXEC @rc = sp_executesql N'PRINT 1' PRINT CONVERT(VARCHAR(10), @rc)",
        &["1", "0"],
    );
    server.prints(
        "DECLARE @o INT = 1 EXEC sp_executesql N'SET @p += 41', N'@p INT OUTPUT', @p = @o OUTPUT PRINT CONVERT(VARCHAR(10), @o)",
        &["42"],
    );
}

#[test]
fn transactions_that_an_error_has_ended() {
    let server = Server::new();
    let duplicate = "Violation of PRIMARY KEY constraint 'PK_x'. Cannot insert duplicate key in object 'dbo.x'. The duplicate key value is \
                     (1).";
    server.prints(
        "USE s SET XACT_ABORT ON BEGIN TRAN INSERT x VALUES (2) EXEC ('INSERT x VALUES (1)') INSERT x VALUES (3) COMMIT
         GO
         SELECT @@TRANCOUNT, COUNT(*) FROM s.dbo.x",
        &["Msg 2627", duplicate, "0 1"],
    );
    server.prints(
        "USE s SET XACT_ABORT ON
         BEGIN TRY BEGIN TRAN INSERT x VALUES (2) INSERT x VALUES (1) END TRY
         BEGIN CATCH SELECT XACT_STATE() COMMIT END CATCH
         GO
         SELECT @@TRANCOUNT, COUNT(*) FROM s.dbo.x",
        &[
            "-1",
            "Msg 3930",
            "The current transaction cannot be committed and cannot support operations that write to the log file. Roll back \
             the transaction.",
            "0 1",
        ],
    );
    server.prints(
        "USE s SET XACT_ABORT ON
         BEGIN TRY BEGIN TRAN INSERT x VALUES (2) INSERT x VALUES (1) END TRY BEGIN CATCH PRINT 'nothing is done' END CATCH
         GO
         SELECT @@TRANCOUNT, COUNT(*) FROM s.dbo.x",
        &[
            "nothing is done",
            "Msg 3998",
            "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.",
            "0 1",
        ],
    );
    server.prints(
        "USE s SET XACT_ABORT ON
         BEGIN TRY BEGIN TRAN INSERT x VALUES (2) INSERT x VALUES (1) END TRY BEGIN CATCH ROLLBACK PRINT 'back' END CATCH
         SELECT @@TRANCOUNT, COUNT(*) FROM x",
        &["back", "0 1"],
    );
    server.prints(
        "USE s BEGIN TRAN INSERT x VALUES (2) SELECT CAST('a' AS INT)
         GO
         SELECT @@TRANCOUNT, COUNT(*) FROM s.dbo.x",
        &[
            "Msg 245",
            "Conversion failed when converting the varchar value 'a' to data type int.",
            "0 1",
        ],
    );
    server.prints(
        "USE s SET XACT_ABORT ON BEGIN TRAN INSERT x VALUES (2) RAISERROR('said', 16, 1) COMMIT SELECT COUNT(*) FROM x",
        &["Msg 50000", "said", "2"],
    );
    server.prints(
        "USE s BEGIN TRAN INSERT x VALUES (5) SAVE TRAN half INSERT x VALUES (6) ROLLBACK TRAN half COMMIT
         SELECT id FROM x WHERE id > 4",
        &["5"],
    );
}

#[test]
fn settings_count_from_where_they_are_said() {
    let server = Server::new();
    server.prints(
        "SET PARSEONLY ON DROP DATABASE s
         GO
         SET PARSEONLY OFF
         GO
         SELECT COUNT(*) FROM sys.databases WHERE name = 's'",
        // NOCOUNT was not set: nothing of that batch was executed.
        &["1", "(1 rows affected)"],
    );
    server.prints("SET ROWCOUNT 1 SELECT id FROM s.dbo.c ORDER BY id", &["10"]);
    server.prints(
        "SET ROWCOUNT 1 DELETE s.dbo.c",
        &["Msg 50001", "'SET ROWCOUNT for changes' is not supported."],
    );
    server.prints("SELECT COUNT(*) FROM s.dbo.c", &["2"]);
}

#[test]
fn states_protect() {
    let server = Server::new();
    server.prints(
        "USE msdb TRUNCATE TABLE pellucid_database",
        &["Msg 50001", "'tables in msdb' is not supported."],
    );
    server.prints(
        "USE msdb DROP TABLE backupset",
        &["Msg 50001", "'tables in msdb' is not supported."],
    );
    server.prints("SELECT COUNT(*) FROM sys.databases WHERE database_id > 4", &["2"]);
    server.prints("ALTER DATABASE t SET OFFLINE DROP DATABASE t", &[]);
    assert!(std::path::Path::new(&server.path("keys/data/t.db")).exists());
    server.prints(
        "CREATE DATABASE [../../evil]",
        &["Msg 50012", "'../../evil': it is no name for a file: give one with FILENAME."],
    );
    let quiet = server.lines("BACKUP DATABASE s TO DISK = 's.bak' WITH INIT");
    assert!(
        quiet.last().is_some_and(|line| line.starts_with("BACKUP DATABASE successfully")),
        "{quiet:?}"
    );
    let quiet = server
        .lines("RESTORE DATABASE s2 FROM DISK = 's.bak' WITH MOVE 's' TO 's2.db', NORECOVERY");
    assert!(
        quiet.last().is_some_and(|line| line.starts_with("RESTORE DATABASE successfully")),
        "{quiet:?}"
    );
    server.prints(
        "ALTER DATABASE s2 SET ONLINE",
        &[
            "Msg 5052",
            "ALTER DATABASE is not permitted while a database is in the Restoring state.",
            "Msg 5069",
            "ALTER DATABASE statement failed.",
        ],
    );
    // The same file by another way.
    let (data, link) = (server.path("keys/data"), server.path("link"));
    std::os::unix::fs::symlink(&data, &link).unwrap();
    let numbers: Vec<_> = server
        .lines(&format!(
            "RESTORE DATABASE s3 FROM DISK = 's.bak' WITH REPLACE, MOVE 's' TO '{link}/s.db'"
        ))
        .into_iter()
        .filter(|line| line.starts_with("Msg "))
        .collect();
    assert_eq!(numbers, ["Msg 1834", "Msg 3156", "Msg 3119", "Msg 3013"]);
    server.prints("SELECT COUNT(*) FROM s.dbo.c", &["2"]);
}

#[test]
fn views_are_of_the_database_that_is_named() {
    let server = Server::new();
    server.prints(
        "USE t CREATE TABLE only_in_t(i INT) USE master
         SELECT 's', COUNT(*) FROM s.sys.tables UNION ALL SELECT 't', COUNT(*) FROM t.sys.tables",
        &["s 3", "t 1"],
    );
    server.prints(
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd' CREATE CERTIFICATE c WITH SUBJECT = 'a'
         BACKUP CERTIFICATE c TO FILE = 'c.cer' WITH PRIVATE KEY (FILE = 'c.key', ENCRYPTION BY PASSWORD = 'p@ssw0rd')
         GO
         USE s CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_128 ENCRYPTION BY SERVER CERTIFICATE c
         ALTER DATABASE s SET ENCRYPTION ON
         WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state <> 3) WAITFOR DELAY '00:00:00.05'
         BEGIN TRAN
         SELECT COUNT(*) FROM x
         SELECT is_encrypted FROM sys.databases WHERE name = 's'
         SELECT encryption_state FROM sys.dm_database_encryption_keys
         COMMIT",
        &["1", "1", "3"],
    );
}
