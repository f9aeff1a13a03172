//! What maintenance procedures ask of a server on Linux, and the commands that they make of the answers.
//!
//! Source: https://github.com/olahallengren/sql-server-maintenance-solution DatabaseBackup.sql, DatabaseIntegrityCheck.sql;
//! `make campaign NAME=maintenance-solution` runs them as they are.

use std::os::unix::fs::PermissionsExt;

use super::{count, Server, BACKED_UP, BACKUP_ENDS, NULLS};

/// The order in which the databases are taken comes from a table expression that is changed.
#[test]
fn databases_are_put_in_order() {
    let server = Server::new();
    let shown = server.rows(
        "SET NOCOUNT ON
         DECLARE @Found TABLE (Name nvarchar(max), Place int, Position int, Chosen bit)
         INSERT INTO @Found VALUES ('b', 2, 0, 1), ('a', 1, 0, 1), ('c', 0, 0, 0)
         ;WITH Found AS (
           SELECT Name, Position, ROW_NUMBER() OVER (ORDER BY Place ASC, Name ASC) AS Number
           FROM @Found Found
           WHERE Chosen = 1)
         UPDATE Found SET Position = Number
         IF EXISTS (SELECT * FROM @Found GROUP BY Chosen HAVING COUNT(*) > 1) PRINT 'two'
         IF NOT EXISTS (SELECT * FROM @Found GROUP BY Name HAVING COUNT(*) <> 1) PRINT 'each once'
         SELECT Name, Position FROM @Found ORDER BY Name",
    );
    assert_eq!(shown, ["two", "each once", "a|1", "b|2", "c|0"]);
}

/// A procedure of the server's, called by the name of another database, works in that one.
#[test]
fn a_procedure_works_in_the_database_of_its_name() {
    let server = Server::new();
    let asked = "DECLARE @Here nvarchar(128), @Pages bigint, @Changed bigint, @Name nvarchar(max) = QUOTENAME('Orders') + '.sys.sp_executesql'
                 EXECUTE @Name @stmt = N'SELECT @h = DB_NAME(), @p = SUM(allocated_extent_page_count), @m = \
                 SUM(modified_extent_page_count) FROM sys.dm_db_file_space_usage', @params = N'@h nvarchar(128) OUTPUT, @p \
                 bigint OUTPUT, @m bigint OUTPUT', @h = @Here OUTPUT, @p = @Pages OUTPUT, @m = @Changed OUTPUT
                 SELECT @Here, CASE WHEN @Pages BETWEEN 1 AND 10 THEN 'some' END, ISNULL(@Changed, -1), DB_NAME()";
    // Which pages have changed is not known here, and a sum of nothing but NULL says so.
    assert_eq!(server.rows(asked), [NULLS, "Orders|some|-1|master"]);
    let files = "SET NOCOUNT ON CREATE TABLE #f(name sysname, id smallint, path nchar(260), grp sysname NULL, size nvarchar(15), most \
                 nvarchar(15), growth nvarchar(15), usage varchar(9)) INSERT INTO #f EXEC Orders..sp_helpfile SELECT name FROM #f";
    assert_eq!(server.rows(files), ["Orders", "Orders_log"]);
    let gone = "Database 'Gone' does not exist. Make sure that the name is entered correctly.";
    server.says("EXECUTE Gone.sys.sp_executesql N'SELECT 1'", &[(911, gone)]);
}

/// Folders are asked for, and what a backup's path lacks of them is made for the owner alone.
#[test]
fn folders_of_backups_are_looked_for_and_made() {
    let server = Server::new();
    let looked = "SELECT x.*, (SELECT file_is_a_directory FROM sys.dm_os_file_exists(N'D:\\backup')), f.file_is_a_directory FROM \
                  sys.dm_os_file_exists(N'D:\\backup\\none\\x.bak') x CROSS JOIN (VALUES (N'D:\\keys'), (N'E:\\'), \
                  (N'D:\\..\\keys'), (NULL)) v(path) CROSS APPLY sys.dm_os_file_exists(v.path) f";
    assert_eq!(server.rows(looked), ["0|0|0|1|1", "0|0|0|1|0", "0|0|0|1|0", "0|0|0|1|0"]);
    assert!(!server.drive("E").exists(), "who looks makes nothing");
    let file = "D:\\backup/here/Orders/FULL/full.bak";
    let backup = format!(
        "BACKUP DATABASE [Orders] TO DISK = N'{file}' WITH CHECKSUM, COMPRESSION (ALGORITHM = MS_XPRESS)"
    );
    let missing = "Cannot open backup device '%/D/backup/here/Orders/FULL/full.bak'. Operating system error 2(No such file or directory).";
    let xpress = "COMPRESSION (ALGORITHM = MS_XPRESS): this set is compressed by the standard algorithm here, ZSTD.";
    let shown = server.says(&backup, &[(3201, missing), BACKUP_ENDS]);
    assert_eq!(count(&shown, xpress), 1, "{shown}");
    assert!(!server.drive("D/backup/here").exists(), "nobody has asked for the folder above");
    let asked = "IF EXISTS (SELECT * FROM sys.dm_os_file_exists('D:\\backup') WHERE file_is_a_directory = 1)\n";
    let shown = server.done(&format!("{asked}{backup}"));
    assert_eq!(count(&shown, BACKED_UP), 1, "{shown}");
    let folder = server.drive("D/backup/here/Orders");
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let there =
        format!("SELECT file_exists, parent_directory_exists FROM sys.dm_os_file_exists('{file}')");
    assert_eq!(server.rows(&there), ["1|1"]);
    // A restore makes none.
    server.run("RESTORE VERIFYONLY FROM DISK = N'D:\\backup/other/full.bak'");
    assert!(!server.drive("D/backup/other").exists());
}

/// Whether a differential backup can be made, and of which set; the sets are in order without a log, too.
#[test]
fn sets_have_their_order_and_their_base() {
    let server = Server::new();
    let base = "SELECT ISNULL(CAST(differential_base_lsn AS varchar(30)), 'none') FROM sys.master_files WHERE database_id = \
                DB_ID(N'Orders') ORDER BY file_id";
    assert_eq!(server.rows(base), ["none", "none"]);
    for (name, with) in [("1", ""), ("2", "WITH COPY_ONLY"), ("3", ""), ("4", "WITH DIFFERENTIAL")]
    {
        server.done(&format!("BACKUP DATABASE Orders TO DISK = N'D:\\backup\\{name}.bak' {with}"));
    }
    assert_eq!(server.rows(base), ["3", "none"]);
    let sets = "SELECT type, first_lsn, last_lsn, checkpoint_lsn, database_backup_lsn, ISNULL(differential_base_lsn, 0) FROM \
                msdb.dbo.backupset ORDER BY backup_set_id";
    assert_eq!(server.rows(sets), ["D|1|1|1|0|0", "D|2|2|2|1|0", "D|3|3|3|1|0", "I|4|4|4|3|3"]);
    let belongs = "SELECT f.position FROM msdb.dbo.backupset d JOIN msdb.dbo.backupset f ON f.checkpoint_lsn = \
                   d.database_backup_lsn AND f.type = 'D' WHERE d.type = 'I'";
    assert_eq!(server.rows(belongs), ["1"]);
    // Another database of the same name has no backup yet.
    server.done("DROP DATABASE Orders WAITFOR DELAY '00:00:01.1' CREATE DATABASE Orders");
    assert_eq!(server.rows(base), ["none", "none"]);
}

#[test]
fn parts_of_a_database_are_checked() {
    let server = Server::new();
    server.done(
        "CREATE DATABASE Shop
         GO
         USE Shop EXEC('CREATE SCHEMA Production') CREATE TABLE Production.Product(ID int)",
    );
    let shown = server.done(
        "USE Orders
         DBCC CHECKALLOC
         DBCC CHECKALLOC ([Orders]) WITH NO_INFOMSGS, ALL_ERRORMSGS
         DBCC CHECKCATALOG ([Orders]) WITH NO_INFOMSGS
         DBCC CHECKFILEGROUP ([PRIMARY], NOINDEX) WITH NO_INFOMSGS, ALL_ERRORMSGS, PHYSICAL_ONLY
         DBCC CHECKFILEGROUP (0)
         DBCC CHECKTABLE ('dbo.Item') WITH ALL_ERRORMSGS
         DBCC CHECKTABLE ('Shop.Production.Product', NOINDEX) WITH NO_INFOMSGS
         DECLARE @id varchar(20) = OBJECT_ID('dbo.Item')
         EXEC('DBCC CHECKTABLE (' + @id + ') WITH NO_INFOMSGS')",
    );
    for told in [
        "CHECKALLOC found 0 allocation errors and 0 consistency errors in database 'Orders'.",
        "CHECKFILEGROUP found 0 allocation errors and 0 consistency errors in database 'Orders'.",
        "DBCC results for 'Item'.",
        "There are 2 rows in 1 pages for object \"Item\".",
    ] {
        assert_eq!(count(&shown, told), 1, "{told}\n{shown}");
    }
    assert_eq!(count(&shown, "DBCC execution completed."), 3, "{shown}");
    let missing =
        "Cannot find a table or object with the name \"dbo.Gone\". Check the system catalog.";
    server.says("DBCC CHECKTABLE ('dbo.Gone')", &[(2501, missing)]);
    server.says(
        "USE Orders DBCC CHECKFILEGROUP (N'Other')",
        &[(1921, "Invalid filegroup 'Other' specified.")],
    );
    server.says(
        "DBCC CHECKALLOC (Orders, REPAIR_REBUILD)",
        &[(50001, "'repair by DBCC CHECKALLOC: 'pellucid salvage' writes what is whole' is not supported.")],
    );
    let tables = "SELECT name, is_memory_optimized, uses_ansi_nulls, type FROM Orders.sys.tables";
    assert_eq!(server.rows(tables), ["Item|0|1|U"]);
    let groups = "SELECT name, data_space_id, type, is_read_only FROM sys.filegroups";
    assert_eq!(server.rows(groups), ["PRIMARY|1|FG|0"]);
}

/// There is no other server: nothing is shipped, seeded or preferred elsewhere.
#[test]
fn no_other_server_has_the_database() {
    let server = Server::new();
    let asked = "SELECT sys.fn_hadr_backup_is_preferred_replica(N'Orders'), (SELECT COUNT(*) FROM sys.dm_hadr_physical_seeding_stats), \
                 (SELECT COUNT(*) FROM msdb.dbo.log_shipping_primary_databases), (SELECT COUNT(*) FROM \
                 msdb.dbo.log_shipping_secondary_databases), (SELECT ISNULL(CAST(contained_availability_group_id AS char(36)), '-') \
                 FROM sys.dm_exec_sessions WHERE session_id = @@SPID)";
    assert_eq!(server.rows(asked), ["1|0|0|0|-"]);
    let bare = "'FN_HADR_BACKUP_IS_PREFERRED_REPLICA' is not a recognized built-in function name.";
    server.says("SELECT fn_hadr_backup_is_preferred_replica('Orders')", &[(195, bare)]);
}
