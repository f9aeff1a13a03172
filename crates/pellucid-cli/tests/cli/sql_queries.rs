//! Goal: queries of scripts for administrators give what SQL Server gives, through the program.
//!
//! Method: scripts in an instance of their own; expected rows are typed by hand.

use crate::sql_server::Server;
use crate::support::{said_with, PELLUCID};

/// An instance with a database `q`, and a script in it: its lines without blank ones, changes of database, what
/// BACKUP says, and the places of messages.
#[track_caller]
pub(crate) fn prints(script: &str, expected: &[&str]) {
    let server = Server::with(&[]);
    let whole = format!("SET NOCOUNT ON\nCREATE DATABASE q\nGO\nUSE q\nGO\n{script}");
    let said = said_with(server.0.command(PELLUCID).args(["sql", "-W", "-h", "-1"]), &whole);
    assert!(said.stderr.is_empty(), "{script}: {said:?}");
    let is_told = |line: &&str| {
        let aside = ["Changed database", "Processed ", "BACKUP DATABASE successfully"];
        !line.trim().is_empty() && !aside.iter().any(|start| line.starts_with(start))
    };
    let shown = said.stdout.lines().filter(is_told);
    let cut = |line: &str| match line.strip_prefix("Msg ") {
        Some(rest) => format!("Msg {}", rest.split(',').next().unwrap_or_default()),
        None => line.to_owned(),
    };
    assert_eq!(shown.map(cut).collect::<Vec<_>>(), expected, "{script}");
}

#[test]
fn a_union_is_ordered_by_a_column_of_its_first_query() {
    let server = Server::with(&[]);
    let rows = server.rows(
        "SELECT msdb.dbo.backupset.database_name, 1 AS here FROM msdb.dbo.backupset
         UNION SELECT master.dbo.sysdatabases.name, 2 FROM master.dbo.sysdatabases WHERE dbid < 3
         ORDER BY msdb.dbo.backupset.database_name DESC",
    );
    assert_eq!(rows, ["tempdb|2", "master|2"]);
}

#[test]
fn select_into_makes_a_table_of_what_the_query_gives() {
    let server = Server::with(&[]);
    let shown = server.run("SELECT name, database_id INTO #d FROM sys.databases;").succeeded();
    assert!(shown.contains("(4 rows affected)"), "{shown}");
    prints(
        "SELECT 3 AS k, CAST(1.5 AS numeric(8, 3)) AS n, N'text' AS t, CAST('20200102' AS date) AS d, 0x01FF AS b, NULL AS nothing,
           CAST('007' AS sql_variant) AS v
         INTO #t
         SELECT k, n, t, d, b, nothing, v FROM #t
         SELECT c.name, TYPE_OF = c.max_length, c.is_nullable FROM tempdb.sys.columns AS c
         WHERE c.object_id = OBJECT_ID('tempdb..#t') AND c.name IN ('k', 'n', 't', 'd') ORDER BY c.column_id
         SELECT 1 AS a INTO u UNION ALL SELECT 2 ORDER BY a DESC
         SELECT @@ROWCOUNT, COUNT(*) FROM u
         ;WITH w AS (SELECT a FROM u WHERE a > 1) SELECT a + 1 AS a INTO dbo.w FROM w
         SELECT a FROM w
         INSERT w VALUES (NULL)
         SELECT COUNT(*) FROM w",
        &[
            "3 1.500 text 2020-01-02 0x01FF NULL 007",
            "k 4 1",
            "n 5 1",
            "t 8 1",
            "d 3 1",
            "2 2",
            "3",
            "2",
        ],
    );
}

#[test]
fn select_into_of_one_table_takes_over_its_identity_and_what_is_not_null() {
    prints(
        "CREATE TABLE s (id int IDENTITY(5, 1) PRIMARY KEY, n int NOT NULL, o int)
         INSERT s VALUES (1, NULL), (2, NULL)
         SELECT * INTO c FROM s
         INSERT c VALUES (3, 4)
         SELECT id, n, o FROM c
         INSERT c (n) VALUES (NULL)
         INSERT c (id, n) VALUES (1, 1)
         SELECT a.id, a.n INTO j FROM s AS a JOIN s AS b ON b.id = a.id
         INSERT j VALUES (9, NULL)
         SELECT COUNT(*) FROM j
         SELECT id AS x, id AS y INTO two FROM s
         INSERT two VALUES (9, 9)
         SELECT id INTO empty FROM s WHERE 1 = 0
         INSERT empty DEFAULT VALUES
         SELECT id FROM empty",
        &[
            "5 1 NULL",
            "6 2 NULL",
            "7 3 4",
            "Msg 515",
            "Cannot insert the value NULL into column 'n', table 'q.dbo.c'; column does not allow nulls. INSERT fails.",
            "The statement has been terminated.",
            "Msg 544",
            "Cannot insert explicit value for identity column in table 'c' when IDENTITY_INSERT is set to OFF.",
            "3",
            "1",
        ],
    );
}

#[test]
fn select_into_that_cannot_be() {
    prints(
        "SELECT 1 AS a INTO t
         SELECT 2 AS a INTO dbo.t
         SELECT a FROM t
         GO
         SELECT 1 INTO n
         GO
         SELECT 1 AS a, 2 AS A INTO n
         GO
         SELECT 1 AS a UNION SELECT 2 AS a INTO n
         GO
         DECLARE @x int; SELECT @x = 1 INTO n FROM t
         GO
         SELECT (SELECT 1 AS a INTO n)
         GO
         BEGIN TRAN; SELECT a INTO n FROM t; ROLLBACK
         IF OBJECT_ID('n') IS NULL PRINT 'rolled back'
         SELECT 1 / a AS q INTO n FROM (VALUES (1), (0)) AS v (a)
         SELECT COUNT(*) FROM n",
        &[
            "Msg 2714",
            "There is already an object named 't' in the database.",
            "1",
            "Msg 1038",
            "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. For \
             other statements, look for empty alias names. Aliases defined as \"\" or [] are not allowed. Change the alias \
             to a valid name.",
            "Msg 2705",
            "Column names in each table must be unique. Column name 'A' in table 'n' is specified more than once.",
            "Msg 196",
            "SELECT INTO must be the first query in a statement containing a UNION, INTERSECT or EXCEPT operator.",
            "Msg 194",
            "A SELECT INTO statement cannot contain a SELECT statement that assigns values to a variable.",
            "Msg 50001",
            "'SELECT INTO' is not supported.",
            "rolled back",
            "Msg 8134",
            "Divide by zero error encountered.",
            "0",
        ],
    );
}

/// SQLite's `temp` is tempdb: the session's own.
#[test]
fn tempdb_has_tables() {
    prints(
        "CREATE TABLE tempdb.dbo.plain (a int)
         INSERT tempdb..plain VALUES (1)
         SELECT a + 1 AS a INTO tempdb..#t FROM tempdb.dbo.plain
         SELECT a FROM tempdb..#t
         EXEC ('CREATE TABLE ##g (a int) INSERT ##g VALUES (9) CREATE TABLE #l (a int)')
         SELECT a FROM ##g
         IF OBJECT_ID('tempdb..#l') IS NULL PRINT '#l has ended'
         IF OBJECT_ID('tempdb..##g') IS NOT NULL DROP TABLE ##g
         GO
         USE tempdb
         SELECT name FROM sys.tables ORDER BY name
         SELECT a INTO s.other FROM plain
         SELECT a FROM s.other
         UPDATE plain SET a = 7
         USE q
         SELECT a FROM tempdb.dbo.plain
         SELECT name FROM sys.tables
         SELECT id - OBJECT_ID('tempdb..#t') FROM tempdb..sysobjects WHERE name = '#t' AND xtype = 'U'
         SELECT name FROM dbo.sysobjects
         DROP TABLE tempdb.dbo.plain, tempdb.s.other, #t
         SELECT TABLE_NAME FROM tempdb.INFORMATION_SCHEMA.TABLES
         GO
         SELECT a FROM plain
         GO
         CREATE TABLE tempdb.dbo.[@1] (a int)",
        &[
            "2",
            "9",
            "#l has ended",
            "#t",
            "plain",
            "1",
            "7",
            "0",
            "Msg 208",
            "Invalid object name 'plain'.",
            "Msg 50001",
            "'the name @1 in tempdb' is not supported.",
        ],
    );
}

#[test]
fn insert_execute_takes_what_is_given() {
    prints(
        "CREATE TABLE #t (a int, b nvarchar(5), n numeric(6, 2))
         INSERT #t EXEC ('SELECT 1, ''one'', 1.25 UNION ALL SELECT 2, ''two'', 2.5; SELECT ''3'', 33, ''3.333''')
         SELECT a, b, n FROM #t ORDER BY a
         INSERT INTO #t (b, a) EXECUTE sp_executesql N'PRINT ''told'' SELECT @x, COUNT(*) FROM #t', N'@x nchar(1)', @x = N'y'
         SELECT @@ROWCOUNT, COUNT(*), MAX(a), MAX(b) FROM #t
         DECLARE @v TABLE (id int, note nvarchar(20))
         INSERT @v EXEC ('UPDATE #t SET n = 0')
         SELECT COUNT(*) FROM @v
         SELECT SUM(n) FROM #t
         CREATE TABLE i (id int IDENTITY PRIMARY KEY, a int)
         INSERT i EXEC ('SELECT 7; SELECT 8')
         SELECT id, a FROM i",
        &[
            "1 one 1.25",
            "2 two 2.50",
            "3 33 3.33",
            "told",
            "1 4 3 y",
            "0",
            ".00",
            "1 7",
            "2 8",
        ],
    );
}

#[test]
fn insert_execute_reads_what_is_on_a_medium() {
    prints(
        "BACKUP DATABASE q TO DISK = 'q.bak' WITH NAME = N'first'
         GO
         CREATE TABLE #l (MediaName nvarchar(128), MediaSetId uniqueidentifier, FamilyCount int, FamilySequenceNumber int,
           MediaFamilyId uniqueidentifier, MediaSequenceNumber int, MediaLabelPresent tinyint, MediaDescription nvarchar(255),
           SoftwareName nvarchar(128), SoftwareVendorId int, MediaDate datetime, Mirror_Count int, IsCompressed bit,
           IsEncrypted bit)
         INSERT INTO #l EXEC (N'RESTORE LABELONLY FROM DISK = ''q.bak''')
         SELECT FamilyCount, MediaName FROM #l
         CREATE TABLE #few (a int)
         INSERT #few EXEC ('RESTORE FILELISTONLY FROM DISK = ''q.bak''')
         GO
         SELECT COUNT(*) FROM #few
         CREATE TABLE #c (name nvarchar(35), minimum int, maximum int, config_value int, run_value int)
         INSERT #c EXEC sp_configure 'backup compression default'
         SELECT COUNT(*), MAX(maximum) FROM #c",
        &[
            "1 NULL",
            "Msg 213",
            "Column name or number of supplied values does not match table definition.",
            "0",
            "1 1",
        ],
    );
}

/// 213 of a result ends the batch and its transaction where it comes, also within procedures, and is caught like another one.
#[test]
fn insert_execute_of_another_width() {
    prints(
        "CREATE TABLE t (a int)
         GO
         CREATE PROCEDURE gives AS SELECT 1 SELECT 2, 3 PRINT 'not executed'
         GO
         CREATE PROCEDURE around AS INSERT t EXEC gives PRINT 'not executed'
         GO
         BEGIN TRAN INSERT t VALUES (7)
         EXEC around
         PRINT 'not executed'
         GO
         SELECT @@TRANCOUNT, COUNT(*) FROM t
         BEGIN TRY EXEC around END TRY BEGIN CATCH PRINT CONCAT(ERROR_NUMBER(), ' ', ERROR_PROCEDURE()) END CATCH
         SELECT COUNT(*) FROM t
         INSERT t EXEC ('SELECT 4; SELECT 5')
         SELECT SUM(a) FROM t",
        &[
            "Msg 213",
            "Column name or number of supplied values does not match table definition.",
            "0 0",
            "213 gives",
            "0",
            "9",
        ],
    );
}

/// All rows of a result go into the table or none.
#[test]
fn insert_execute_that_cannot_be() {
    prints(
        "CREATE TABLE t (a int NOT NULL PRIMARY KEY)
         INSERT t EXEC ('SELECT 1; SELECT 1')
         INSERT t EXEC ('SELECT 1; SELECT NULL')
         INSERT t EXEC ('SELECT 1; SELECT 1, 2; PRINT ''not executed''')
         PRINT 'not executed'
         GO
         SELECT COUNT(*) FROM t
         INSERT t EXEC ('INSERT t EXEC (''SELECT 1'')')
         INSERT t EXEC ('ROLLBACK')
         INSERT t EXEC ('COMMIT')
         INSERT t EXEC ('BEGIN TRAN SELECT 5 COMMIT')
         BEGIN TRAN
         INSERT t EXEC ('SELECT 6; COMMIT')
         SELECT @@TRANCOUNT, COUNT(*) FROM t
         ROLLBACK
         BEGIN TRY INSERT t EXEC ('SELECT 9; SELECT 1 / 0') END TRY BEGIN CATCH PRINT ERROR_MESSAGE() END CATCH
         INSERT t EXEC ('SELECT 10; RAISERROR (''told'', 16, 1)')
         SELECT a FROM t
         GO
         INSERT nowhere EXEC ('PRINT ''not executed''')
         GO
         INSERT t EXEC ('SELECT ''x''')
         GO
         SELECT 'shown again'",
        &[
            "Msg 2627",
            "Violation of PRIMARY KEY constraint 'PK_t'. Cannot insert duplicate key in object 'dbo.t'.",
            "The statement has been terminated.",
            "Msg 515",
            "Cannot insert the value NULL into column 'a', table 'q.dbo.t'; column does not allow nulls. INSERT fails.",
            "The statement has been terminated.",
            "Msg 213",
            "Column name or number of supplied values does not match table definition.",
            "0",
            "Msg 8164",
            "An INSERT EXEC statement cannot be nested.",
            "Msg 3915",
            "Cannot use the ROLLBACK statement within an INSERT-EXEC statement.",
            "Msg 3916",
            "Cannot use the COMMIT statement within an INSERT-EXEC statement unless BEGIN TRANSACTION is used first.",
            "Msg 3916",
            "Cannot use the COMMIT statement within an INSERT-EXEC statement unless BEGIN TRANSACTION is used first.",
            "1 2",
            "Divide by zero error encountered.",
            "Msg 50000",
            "told",
            "5",
            "10",
            "Msg 208",
            "Invalid object name 'nowhere'.",
            "Msg 245",
            "Conversion failed when converting the varchar value 'x' to data type int.",
            "shown again",
        ],
    );
}

#[test]
fn text_is_joined_by_for_xml_path() {
    prints(
        "SELECT 'list: ' + STUFF((SELECT ',' + name FROM sys.databases WHERE database_id < 3 ORDER BY database_id
           FOR XML PATH('')), 1, 1, '')
         DECLARE @all nvarchar(max) = (SELECT N'&' + name FROM sys.databases WHERE database_id < 3 ORDER BY name DESC
           FOR XML PATH(''), TYPE).value('.', 'nvarchar(max)')
         PRINT @all
         DECLARE @x xml = (SELECT name AS n FROM sys.databases WHERE database_id = 1 FOR XML PATH(''), TYPE)
         SELECT @x.value('.', 'nvarchar(9)')
         SELECT name FROM sys.databases WHERE database_id = 1 FOR XML PATH('d'), ROOT('all')
         SELECT name FROM sys.databases WHERE database_id = 0 FOR XML PATH('d')
         SELECT (SELECT name + ';' FROM sys.databases WHERE database_id < 3 ORDER BY name FOR XML PATH('')) AS names INTO #n
         SELECT names FROM #n
         GO
         SELECT name INTO #m FROM sys.databases FOR XML PATH('')",
        &[
            "list: master,tempdb",
            "&tempdb&master",
            "master",
            "<all><d><name>master</name></d></all>",
            "master;tempdb;",
            "Msg 6819",
            "The FOR XML and FOR JSON clauses are not allowed in a SELECT INTO statement.",
        ],
    );
}

/// 8153, once for a statement, where rows were left out; not for the least of a column that an index may find, and not with
/// ANSI_WARNINGS OFF.
#[test]
fn a_null_that_an_aggregate_leaves_out_is_told() {
    let server = Server::with(&[]);
    server
        .run(
            "CREATE DATABASE d
GO
USE d
CREATE TABLE t(a int, b decimal(9, 2), c varchar(9))
INSERT t VALUES (1, 2.5, 'x'), (NULL, NULL, NULL)",
        )
        .succeeded();
    let warning = "Warning: Null value is eliminated by an aggregate or other SET operation.";
    for (statement, times) in [
        ("SELECT SUM(a), AVG(b) FROM t", 1),
        ("SELECT COUNT(c) FROM t", 1),
        ("SELECT COUNT(DISTINCT c) FROM t", 1),
        ("SELECT c, MAX(a) FROM t GROUP BY c", 1),
        ("SELECT SUM(b) OVER () FROM t", 1),
        ("DECLARE @n int; SELECT @n = SUM(a) FROM t; PRINT @n", 1),
        ("DECLARE @n int; SET @n = (SELECT SUM(a) FROM t)", 1),
        ("IF (SELECT COUNT(c) FROM t) = 1 PRINT 'one'", 1),
        ("UPDATE t SET a = (SELECT SUM(a) FROM t) WHERE a = 1", 1),
        ("SELECT d.name, MAX(s.backup_finish_date) FROM sys.databases AS d LEFT JOIN msdb.dbo.backupset AS s \
          ON s.database_name = d.name GROUP BY d.name", 1),
        ("EXEC('SELECT SUM(a) FROM t'); SELECT SUM(a) FROM t", 2),
        ("SELECT COUNT(*) FROM t", 0),
        ("SELECT SUM(a) FROM t WHERE a IS NOT NULL", 0),
        ("SELECT MAX(a) FROM t", 0),
        ("SET ANSI_WARNINGS OFF; SELECT SUM(a) FROM t", 0),
    ] {
        let told = server.run(&format!("USE d; {statement}")).succeeded();
        assert_eq!(told.matches(warning).count(), times, "{statement}\n{told}");
    }
}
