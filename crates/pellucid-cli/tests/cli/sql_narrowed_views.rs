//! Goal: a query that asks a view of the server for one database or object gets the rows that it would get from all of them.
//!
//! Method: each query is put to the views, and to temporary tables with a copy of their rows, which no condition narrows; what both
//! show is the same. Then what changes between statements, and within one, is asked for.

use crate::sql_server::{count, Server};

const VIEWS: [&str; 4] =
    ["databases", "master_files", "database_recovery_status", "dm_database_encryption_keys"];

fn some() -> Server {
    let server = Server::with(&[]);
    let told = server.run(
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'aB3-aB3-aB3-aB3'
CREATE CERTIFICATE c WITH SUBJECT = 'c'
CREATE DATABASE Alpha; CREATE DATABASE beta; CREATE DATABASE [Gamma delta]; CREATE DATABASE Ärger
ALTER DATABASE beta SET RECOVERY FULL
ALTER DATABASE Alpha MODIFY FILE (NAME = Alpha, NEWNAME = beta)
GO
USE beta
CREATE TABLE t(a int)
CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE c
ALTER DATABASE beta SET ENCRYPTION ON
GO
WHILE EXISTS (SELECT * FROM sys.dm_database_encryption_keys WHERE encryption_state <> 3) WAITFOR DELAY '00:00:00.1'
GO",
    );
    assert!(!told.all().contains("Msg "), "{told:?}");
    server
}

/// Conditions that narrow, and such as look alike.
const QUERIES: &[&str] = &[
    "SELECT name, database_id FROM sys.databases WHERE name = @v",
    "SELECT name FROM sys.databases WHERE @v = name",
    "SELECT name FROM sys.databases WHERE name = 'ALPHA  '",
    "SELECT name FROM sys.databases WHERE name = N'ärger'",
    "SELECT name FROM sys.databases WHERE name = N'Ärger'",
    "SELECT name FROM sys.databases WHERE name = @v COLLATE Latin1_General_BIN",
    "SELECT name FROM sys.databases WHERE name = @unset",
    "SELECT name FROM sys.databases WHERE name = 'nothing'",
    "SELECT name FROM sys.databases WHERE database_id = @id",
    "SELECT name FROM sys.databases WHERE database_id = @number",
    "SELECT name FROM sys.databases WHERE database_id = 4",
    "SELECT name FROM sys.databases WHERE database_id = DB_ID()",
    "SELECT name FROM sys.databases WHERE database_id = DB_ID(@v)",
    "SELECT name FROM sys.databases WHERE database_id = DB_ID('Gamma Delta')",
    "SELECT name FROM sys.databases WHERE database_id = DB_ID(@unset)",
    "SELECT name FROM sys.databases WHERE database_id = DB_ID('nothing')",
    "SELECT name FROM sys.databases WHERE name = @v AND database_id = @id",
    "SELECT name FROM sys.databases WHERE name = @v AND name = 'beta'",
    "SELECT name FROM sys.databases WHERE name = @v OR database_id = @id ORDER BY name",
    "SELECT name FROM sys.databases WHERE (name = @v OR database_id = @id) AND database_id > 0 ORDER BY name",
    "SELECT COUNT(*) FROM sys.databases WHERE NOT name = @v",
    "SELECT COUNT(*) FROM sys.databases WHERE NOT (name = @v AND database_id > 0)",
    "SELECT COUNT(*) FROM sys.databases WHERE name <> @v",
    "SELECT COUNT(*) FROM sys.databases WHERE name >= @v",
    "SELECT COUNT(*) FROM sys.databases WHERE name IN (@v, 'beta')",
    "SELECT COUNT(*) FROM sys.databases WHERE CASE WHEN name = @v THEN 0 ELSE 1 END = 1",
    "SELECT COUNT(*) FROM sys.databases",
    // A column that comes out is called as one within.
    "SELECT COUNT(*) FROM sys.databases AS d PIVOT (COUNT(database_id) FOR state_desc IN ([database_id])) AS d \
     WHERE d.database_id = 0",
    // Two places of one view, and two views.
    "SELECT COUNT(*) FROM sys.databases a CROSS JOIN sys.databases b WHERE a.name = @v",
    "SELECT a.name, b.name FROM sys.databases a, sys.databases b WHERE a.name = @v AND b.name = 'beta'",
    "SELECT COUNT(*) FROM sys.databases a JOIN sys.databases b ON a.database_id <> b.database_id WHERE b.name = @v",
    "SELECT d.name, f.name, f.type FROM sys.databases d JOIN sys.master_files f ON f.database_id = d.database_id \
     WHERE d.name = @v ORDER BY f.type",
    // The name is a file's.
    "SELECT d.name, f.type FROM sys.databases d JOIN sys.master_files f ON f.database_id = d.database_id \
     WHERE f.name = @v ORDER BY d.name, f.type",
    "SELECT database_id, type FROM sys.master_files WHERE name = 'beta' ORDER BY database_id, type",
    "SELECT database_id, type FROM sys.master_files WHERE database_id = DB_ID(@v) ORDER BY type",
    "SELECT physical_name FROM sys.master_files WHERE database_id = @id AND type = 0",
    "SELECT f.type FROM sys.master_files AS f WHERE f.database_id = DB_ID(@v) AND f.[file_id] = 1",
    // Outer joins, with the condition in WHERE and in ON.
    "SELECT d.name, k.encryption_state FROM sys.databases d LEFT JOIN sys.dm_database_encryption_keys k \
     ON k.database_id = d.database_id WHERE d.name = @v",
    "SELECT d.name, k.encryption_state FROM sys.databases d LEFT JOIN sys.dm_database_encryption_keys k \
     ON k.database_id = d.database_id WHERE k.database_id = DB_ID('beta')",
    "SELECT d.name, k.encryption_state FROM sys.databases d LEFT JOIN sys.dm_database_encryption_keys k \
     ON k.database_id = d.database_id AND d.name = @v ORDER BY d.name",
    "SELECT d.name, k.database_id FROM sys.databases d LEFT JOIN sys.dm_database_encryption_keys k \
     ON k.database_id = d.database_id AND k.database_id = DB_ID('beta') ORDER BY d.name",
    "SELECT d.name, k.database_id FROM sys.dm_database_encryption_keys k RIGHT JOIN sys.databases d \
     ON k.database_id = d.database_id AND d.name = @v ORDER BY d.name",
    "SELECT d.name, k.database_id FROM sys.databases d FULL JOIN sys.dm_database_encryption_keys k \
     ON k.database_id = d.database_id WHERE d.name = @v",
    "SELECT d.name FROM sys.databases d LEFT JOIN sys.dm_database_encryption_keys k \
     ON k.database_id = d.database_id WHERE k.database_id IS NULL ORDER BY d.name",
    "SELECT d.name FROM sys.databases d LEFT JOIN sys.databases e ON e.database_id = d.database_id AND e.name = @v \
     WHERE e.database_id IS NULL AND d.name = 'beta'",
    // Queries within queries.
    "SELECT name, (SELECT SUM(CAST(size AS bigint)) FROM sys.master_files WHERE type = 0 AND database_id = sys.databases.database_id) \
     FROM sys.databases WHERE name = @v",
    "SELECT name, (SELECT COUNT(*) FROM sys.master_files f WHERE f.database_id = d.database_id) FROM sys.databases d WHERE d.name = @v",
    "SELECT name, (SELECT COUNT(*) FROM sys.master_files f WHERE f.database_id = d.database_id) FROM sys.databases d ORDER BY name",
    "SELECT name, (SELECT COUNT(*) FROM sys.master_files f WHERE f.database_id <> d.database_id) FROM sys.databases d WHERE d.name = @v",
    "SELECT name, (SELECT COUNT(*) FROM sys.databases e WHERE e.database_id = e.database_id) FROM sys.databases d WHERE d.name = @v",
    "SELECT name, (SELECT COUNT(*) FROM sys.databases d WHERE d.database_id = d.database_id) FROM sys.databases d WHERE d.name = @v",
    "SELECT name, (SELECT COUNT(*) FROM sys.databases) FROM sys.databases d WHERE d.name = @v",
    "SELECT name FROM sys.databases d WHERE EXISTS (SELECT * FROM sys.dm_database_encryption_keys k WHERE k.database_id = d.database_id) \
     ORDER BY name",
    "SELECT name FROM sys.databases d WHERE NOT EXISTS (SELECT * FROM sys.master_files WHERE database_id = d.database_id AND name = @v) \
     ORDER BY name",
    "SELECT name FROM sys.databases WHERE name NOT IN (SELECT name FROM sys.databases WHERE name = @v) ORDER BY name",
    "SELECT COUNT(*) FROM (SELECT name FROM sys.databases WHERE name = @v) AS x CROSS JOIN sys.databases AS y",
    "SELECT x.name FROM (SELECT * FROM sys.databases) AS x WHERE x.name = @v",
    "WITH c AS (SELECT * FROM sys.databases) SELECT name, (SELECT COUNT(*) FROM c) AS n FROM c WHERE name = @v",
    "WITH databases AS (SELECT 'x' AS name) SELECT a.name, databases.name FROM databases, sys.databases AS a WHERE databases.name = 'x' \
     ORDER BY a.name",
    "SELECT name FROM sys.databases WHERE name = @v UNION ALL SELECT name FROM sys.databases WHERE name = 'beta'",
    "SELECT name FROM sys.databases EXCEPT SELECT name FROM sys.databases WHERE name = @v ORDER BY name",
    "SELECT d.name, f.n FROM sys.databases d CROSS APPLY (SELECT COUNT(*) AS n FROM sys.master_files m \
     WHERE m.database_id = d.database_id) AS f WHERE d.name = @v",
    "SELECT d.name, f.n FROM sys.databases d OUTER APPLY (SELECT COUNT(*) AS n FROM sys.master_files m \
     WHERE m.database_id = DB_ID(@v)) AS f ORDER BY d.name",
    "SELECT d.name, f.name FROM sys.databases d CROSS APPLY (SELECT d.name FROM sys.databases d WHERE d.database_id > 0) AS f \
     WHERE d.name = @v ORDER BY f.name",
    "SELECT d.name, f.name FROM sys.databases d OUTER APPLY (SELECT d.name FROM sys.databases d) AS f WHERE d.name = @v ORDER BY f.name",
    "SELECT f.n FROM sys.databases d JOIN sys.databases x ON x.database_id = d.database_id \
     CROSS APPLY (SELECT d.name AS n FROM sys.databases d WHERE d.database_id <> x.database_id) AS f WHERE d.name = @v ORDER BY f.n",
    "SELECT d.name, f.name FROM sys.databases d CROSS APPLY (SELECT e.name FROM sys.databases e WHERE e.name = @v AND d.database_id > 0) AS f \
     ORDER BY d.name",
    "SELECT d.name, f.name FROM sys.databases d OUTER APPLY (SELECT e.name FROM sys.databases e WHERE e.name = d.name) AS f \
     WHERE f.name = @v",
    "SELECT TOP 1 name FROM sys.databases WHERE name = @v ORDER BY database_id DESC",
    "SELECT COUNT(*), MAX(recovery_model_desc) FROM sys.databases WHERE name = @v GROUP BY recovery_model HAVING COUNT(*) = 1",
    "SELECT last_log_backup_lsn FROM sys.database_recovery_status WHERE database_id = DB_ID('beta')",
    "SELECT CASE WHEN EXISTS (SELECT * FROM sys.databases WHERE name = @v) THEN 1 ELSE 0 END",
    // As a view of another database, which shows the same; `DB_ID()` is the session's.
    "SELECT name FROM msdb.sys.databases WHERE database_id = DB_ID()",
    "SELECT name FROM beta.sys.databases WHERE database_id = DB_ID() OR name = @v ORDER BY name",
    "SELECT name FROM beta.sys.databases WHERE name = @v",
    "SELECT COUNT(*) FROM msdb.sys.master_files WHERE database_id = DB_ID('beta')",
    "SELECT last_log_backup_lsn FROM msdb.sys.database_recovery_status WHERE database_id = DB_ID('beta')",
    // Variables that the same SELECT assigns.
    "SELECT @seen = name, @v = 'beta' FROM sys.databases WHERE name = @v; SELECT @seen, @v; SET @v = 'alpha'",
    "SELECT @id = database_id FROM sys.databases WHERE database_id = @id; SELECT @id",
];

#[test]
fn every_query_has_the_rows_that_it_would_have_from_all() {
    let server = some();
    let copies = VIEWS.map(|view| format!("SELECT * INTO #{view} FROM sys.{view};\n")).concat();
    let mut script = format!(
        "SET NOCOUNT ON\n{copies}DECLARE @v nvarchar(300) = N'alpha', @unset sysname, @id int = 3, @number varchar(10) = '4', \
         @seen sysname\n"
    );
    for query in QUERIES {
        let mut of_copies = (*query).to_owned();
        for view in VIEWS {
            for database in ["msdb", "beta"] {
                of_copies =
                    of_copies.replace(&format!("{database}.sys.{view}"), &format!("#{view}"));
            }
            of_copies = of_copies.replace(&format!("sys.{view}"), &format!("#{view}"));
        }
        script += &format!("PRINT 'begin';\n{query}\nPRINT 'copy';\n{of_copies}\n");
    }
    let told = server.run(&script).all();
    assert!(!told.contains("Msg "), "{told}");
    let blocks: Vec<&str> = told.split("begin\n").skip(1).collect();
    assert_eq!(blocks.len(), QUERIES.len(), "{told}");
    for (query, block) in QUERIES.iter().zip(blocks) {
        let (of_views, of_copies) = block.split_once("copy\n").unwrap();
        assert_eq!(of_views.trim(), of_copies.trim(), "{query}");
    }
}

/// What stands for the current database, and what for all of them, is the same from everywhere.
#[test]
fn functions_of_a_database_have_its_rows() {
    let server = some();
    let made = "USE Alpha\nCREATE TABLE a(a int)\nGO\nUSE [Gamma delta]\nCREATE TABLE a(a int)\nCREATE TABLE b(a int)";
    server.run(made).succeeded();
    let pages = |arguments: &str| {
        let of = "database_id), COUNT(DISTINCT object_id)";
        format!("SELECT COUNT(DISTINCT {of} FROM sys.dm_db_index_physical_stats({arguments}, NULL, NULL, NULL, 'LIMITED')")
    };
    for (query, rows) in [
        (pages("NULL"), "3|4"),
        (pages("0"), "3|4"),
        (pages("DB_ID('beta')"), "1|1"),
        (pages("DB_ID(N'gamma delta')"), "1|2"),
        (pages("DB_ID()"), "1|1"),
        (pages("DB_ID('nothing')"), "3|4"),
        ("DECLARE @d int = DB_ID('nothing') ".to_owned() + &pages("@d"), "3|4"),
        ("DECLARE @d int = DB_ID('beta') ".to_owned() + &pages("@d"), "1|1"),
        ("SELECT DB_NAME(database_id) FROM sys.dm_db_log_stats(DB_ID())".to_owned(), "Alpha"),
        ("SELECT DB_NAME(database_id) FROM sys.dm_db_log_stats(NULL)".to_owned(), "Alpha"),
        ("SELECT DB_NAME(database_id) FROM beta.sys.dm_db_log_stats(DB_ID())".to_owned(), "Alpha"),
        (
            "SELECT DB_NAME(database_id) FROM beta.sys.dm_db_log_stats(DB_ID('beta'))".to_owned(),
            "beta",
        ),
    ] {
        assert_eq!(server.rows(&format!("USE Alpha\nGO\n{query}"))[1..], [rows], "{query}");
    }
}

/// A damaged database keeps nobody from those of the others, nor do so many that not all are attached at once.
#[test]
fn pages_of_a_database_are_told_beside_damaged_and_many_ones() {
    let server = some();
    server
        .run(&"xyzuvw".chars().map(|c| format!("CREATE DATABASE {c}{c}\n")).collect::<String>())
        .succeeded();
    server.run("USE Alpha\nCREATE TABLE a(a int)\nINSERT INTO a VALUES (1)").succeeded();
    let damaged = server.0.path("keys/data/xx.db");
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes.iter_mut().take(4096).for_each(|byte| *byte = 0x55);
    std::fs::write(&damaged, bytes).unwrap();
    let told = server
        .run(
            "USE Alpha
BEGIN TRANSACTION
INSERT INTO a VALUES (2)
SELECT CONCAT('pages ', s.page_count, ' of ', o.name) FROM sys.dm_db_index_physical_stats(DB_ID(), NULL, NULL, NULL, 'LIMITED') s
  JOIN sys.objects o ON o.object_id = s.object_id
COMMIT
GO
SELECT CONCAT('all ', COUNT(DISTINCT database_id)) FROM sys.dm_db_index_physical_stats(NULL, NULL, NULL, NULL, 'LIMITED')",
        )
        .all();
    assert!(
        !told.contains("Msg ") && told.contains("pages 1 of a") && told.contains("all 2"),
        "{told}"
    );
}

/// In a loop the statement is the same and the variable another one; behind it all are there.
#[test]
fn each_time_it_is_the_database_that_is_asked_for_now() {
    let server = some();
    let told = server.run(
        "SET NOCOUNT ON
DECLARE @v sysname, @i int = 0, @files int, @all int, @state nvarchar(60)
WHILE @i < 6 BEGIN
  SET @v = CASE @i % 3 WHEN 0 THEN 'Alpha' WHEN 1 THEN 'beta' ELSE 'nothing' END
  SELECT @files = -1, @state = 'none'
  SELECT @state = recovery_model_desc,
         @files = (SELECT COUNT(*) FROM sys.master_files WHERE database_id = sys.databases.database_id)
    FROM sys.databases WHERE name = @v
  IF EXISTS (SELECT * FROM sys.databases WHERE name = @v) SET @all = (SELECT COUNT(*) FROM sys.databases) ELSE SET @all = 0
  PRINT CONCAT(@v, ' ', @state, ' ', @files, ' ', @all)
  SET @i += 1
END
GO
CREATE PROCEDURE dbo.p @v sysname AS
  SELECT d.name, s.recovery_model FROM sys.databases d CROSS APPLY sys.dm_db_log_stats(d.database_id) s WHERE d.name = @v
  SELECT database_id FROM sys.dm_db_log_stats(DB_ID(@v))
GO
EXECUTE dbo.p 'beta'
EXECUTE dbo.p 'Alpha'
EXECUTE dbo.p 'nothing'",
    );
    let told = told.all();
    for line in ["Alpha SIMPLE 2 8", "beta FULL 2 8", "nothing none -1 0"] {
        assert_eq!(count(&told, line), 2, "{line}\n{told}");
    }
    for line in ["beta FULL", "Alpha SIMPLE"] {
        assert!(told.lines().any(|told| told == line), "{line}\n{told}");
    }
    // NULL stands for the database that the session is in.
    let numbers: Vec<_> = told.lines().filter(|line| line.parse::<u32>().is_ok()).collect();
    assert_eq!(numbers, ["6", "5", "1"], "{told}");
}

/// What changes between two statements of one loop is seen by the second.
#[test]
fn what_has_changed_meanwhile_is_shown() {
    let server = some();
    let told = server.run(
        "SET NOCOUNT ON
DECLARE @v sysname = 'Alpha', @i int = 0, @model nvarchar(60)
WHILE @i < 3 BEGIN
  SET @model = 'gone'
  SELECT @model = recovery_model_desc FROM sys.databases WHERE database_id = DB_ID(@v)
  PRINT CONCAT(@i, ' ', @model, ' ', (SELECT COUNT(*) FROM sys.master_files WHERE database_id = DB_ID(@v)))
  IF @i = 0 ALTER DATABASE Alpha SET RECOVERY FULL
  IF @i = 1 ALTER DATABASE Alpha MODIFY NAME = Omega
  SET @i += 1
END
IF EXISTS (SELECT * FROM sys.databases WHERE name = 'omega') PRINT 'renamed'
DECLARE @name sysname = 'beta'
DECLARE c CURSOR FOR SELECT name FROM sys.databases WHERE name = @name
SET @name = 'Omega'
SELECT name AS other FROM sys.databases WHERE name = @name
OPEN c
FETCH NEXT FROM c",
    );
    let told = told.all();
    for line in ["0 SIMPLE 2", "1 FULL 2", "2 gone 0", "renamed", "Omega", "beta"] {
        assert_eq!(told.lines().filter(|told| *told == line).count(), 1, "{line}\n{told}");
    }
}

#[test]
fn the_text_of_a_procedure_is_its_own() {
    let server = some();
    let told = server.run(
        "CREATE PROCEDURE dbo.one AS SELECT OBJECT_NAME(object_id) AS own FROM sys.sql_modules WHERE object_id = @@PROCID
GO
CREATE PROCEDURE dbo.two AS EXECUTE dbo.one; SELECT OBJECT_NAME(object_id) AS own FROM sys.sql_modules WHERE @@PROCID = object_id
GO
SET NOCOUNT ON
EXECUTE dbo.two
DECLARE @id int = OBJECT_ID('dbo.two')
SELECT LEFT(definition, 24) FROM sys.sql_modules WHERE object_id = @id
SELECT COUNT(*) AS n FROM sys.sql_modules WHERE object_id = @id OR object_id = OBJECT_ID('dbo.one')
SELECT COUNT(*) AS n FROM sys.sql_modules WHERE object_id = @@PROCID
SELECT COUNT(*) AS n FROM sys.sql_modules m JOIN sys.objects o ON o.object_id = m.object_id WHERE o.name = 'one'",
    );
    let told = told.all();
    let own: Vec<_> =
        told.lines().filter(|line| ["one", "two", "0", "1", "2"].contains(line)).collect();
    assert_eq!(own, ["one", "two", "2", "0", "1"], "{told}");
    assert!(told.contains("CREATE PROCEDURE dbo.two"), "{told}");
}
