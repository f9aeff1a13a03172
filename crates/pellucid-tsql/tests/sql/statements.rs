//! Goal: every other statement that is supported. Method: a table of what is written and what is printed, typed by
//! hand from SQL Server's reference.

use pellucid_tsql_testing::{prints_as, prints_the_same, round_trip, ToSql};

#[test]
fn databases() {
    prints_the_same(&[
        "CREATE DATABASE db",
        "CREATE DATABASE db ON (FILENAME = 'f.mdf') FOR ATTACH",
        "CREATE DATABASE db ON (FILENAME = 'f.mdf') FOR ATTACH_REBUILD_LOG",
        "CREATE DATABASE db ON (NAME = a, FILENAME = 'a', SIZE = 10 GB, MAXSIZE = UNLIMITED, FILEGROWTH = 10%), FILEGROUP g DEFAULT (NAME = b, FILENAME = 'b'), (NAME = c, FILENAME = 'c', MAXSIZE = 1 TB), FILEGROUP h (NAME = d, FILENAME = 'd') LOG ON (NAME = l, FILENAME = 'l', SIZE = 1) COLLATE Latin1_General_BIN2",
        "CREATE DATABASE db ON (FILENAME = 'f') FOR ATTACH WITH TRUSTWORTHY ON, DB_CHAINING OFF",
        "ALTER DATABASE db MODIFY FILE (NAME = a, NEWNAME = b, FILEGROWTH = 512000 KB)",
        "ALTER DATABASE db MODIFY FILE (NAME = a, OFFLINE)",
        "ALTER DATABASE db ADD FILE (NAME = a, FILENAME = 'a') TO FILEGROUP g",
        "ALTER DATABASE db ADD LOG FILE (NAME = a, FILENAME = 'a'), (NAME = b, FILENAME = 'b')",
        "ALTER DATABASE db REMOVE FILE a",
        "ALTER DATABASE db ADD FILEGROUP g",
        "ALTER DATABASE db REMOVE FILEGROUP g",
        "ALTER DATABASE db MODIFY NAME = d",
        "ALTER DATABASE CURRENT COLLATE Latin1_General_CI_AS",
        "ALTER DATABASE db SET ENCRYPTION ON",
        "ALTER DATABASE db SET ENCRYPTION OFF",
        "ALTER DATABASE db SET ENCRYPTION SUSPEND",
        "ALTER DATABASE db SET ENCRYPTION RESUME",
        "ALTER DATABASE db SET RECOVERY FULL",
        "ALTER DATABASE db SET RECOVERY BULK_LOGGED",
        "ALTER DATABASE db SET RECOVERY SIMPLE WITH NO_WAIT",
        "ALTER DATABASE db SET COMPATIBILITY_LEVEL = 120",
        "ALTER DATABASE db SET SINGLE_USER WITH ROLLBACK IMMEDIATE",
        "ALTER DATABASE db SET RESTRICTED_USER, READ_ONLY WITH ROLLBACK AFTER 30 SECONDS",
        "ALTER DATABASE db SET PAGE_VERIFY CHECKSUM, PARAMETERIZATION FORCED, CURSOR_DEFAULT LOCAL",
        "ALTER DATABASE db SET TARGET_RECOVERY_TIME = 60 SECONDS",
        "ALTER DATABASE db SET DELAYED_DURABILITY = ALLOWED",
        "ALTER DATABASE db SET AUTO_CLOSE OFF, ALLOW_SNAPSHOT_ISOLATION ON",
        "DROP DATABASE a, b",
        "DROP DATABASE IF EXISTS a",
    ]);
    prints_as(&[
        (
            "alter database db modify file (name = N'a b', size = 10mb)",
            "ALTER DATABASE db MODIFY FILE (NAME = [a b], SIZE = 10 MB)",
        ),
        (
            "ALTER DATABASE db SET TARGET_RECOVERY_TIME = 2 MINUTES",
            "ALTER DATABASE db SET TARGET_RECOVERY_TIME = 120 SECONDS",
        ),
        (
            "CREATE DATABASE [db] CONTAINMENT = NONE ON PRIMARY (NAME = N'db', FILENAME = N'f', SIZE = 8192KB)",
            "CREATE DATABASE db ON (NAME = db, FILENAME = N'f', SIZE = 8192 KB)",
        ),
        (
            "CREATE DATABASE db ON PRIMARY (NAME = a, FILENAME = 'a')",
            "CREATE DATABASE db ON (NAME = a, FILENAME = 'a')",
        ),
    ]);
}

#[test]
fn sessions() {
    prints_the_same(&[
        "USE [master]",
        "SET STATISTICS TIME, IO ON",
        "SET NOCOUNT ON",
        "SET XACT_ABORT, ARITHABORT OFF",
        "SET LOCK_TIMEOUT -1",
        "SET DATEFORMAT dmy",
        "SET LANGUAGE 'Deutsch'",
        "SET DEADLOCK_PRIORITY [LOW]",
        "SET ROWCOUNT @n",
        "SET CONTEXT_INFO 0x01",
        "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET TRANSACTION ISOLATION LEVEL SNAPSHOT",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET IDENTITY_INSERT dbo.t ON",
        "SET @v += N'x'",
        "DECLARE @a int, @b nvarchar(max) = N'', @c decimal(20, 0), @d char(8)",
        "DECLARE @t TABLE (id int NOT NULL PRIMARY KEY, n sysname)",
    ]);
    prints_as(&[("DECLARE @a AS [int]=1", "DECLARE @a int = 1"), ("SET @v -= 1", "SET @v -= 1")]);
}

#[test]
fn control_of_flow() {
    prints_the_same(&[
        "PRINT 'a' + CAST(@n AS varchar(10))",
        "SELECT * FROM a([NOLOCK](0)), b WITH (NOLOCK)",
        "IF (1 >= a)\n    (SELECT 1 UNION SELECT 2) INTERSECT SELECT 3",
        "THROW 50001, 'text', 1",
        "THROW @number, @message, @state",
        "RAISERROR('%s', 16, 1, @a, 2) WITH NOWAIT, LOG",
        "RAISERROR(50001, 10, -1)",
        "WAITFOR DELAY '00:00:05'",
        "WAITFOR TIME @t",
        "RETURN",
        "CHECKPOINT",
        "CHECKPOINT 10",
        "BEGIN TRANSACTION",
        "BEGIN TRANSACTION t WITH MARK 'd'",
        "BEGIN TRANSACTION @t WITH MARK",
        "COMMIT TRANSACTION t",
        "ROLLBACK TRANSACTION",
        "SAVE TRANSACTION s",
        "EXECUTE sp_helpfile",
        "EXECUTE @r = m.dbo.p 1, -2.5, N'x', NULL, DEFAULT, @v OUTPUT, @@SPID, word",
        "EXECUTE p @a = 1, @b = @v OUTPUT",
        "EXECUTE @name 1",
        "EXECUTE ('BACKUP LOG ' + @db)",
    ]);
    prints_as(&[
        ("COMMIT WORK", "COMMIT TRANSACTION"),
        ("ROLLBACK", "ROLLBACK TRANSACTION"),
        ("sp_helpdb 'x'", "EXECUTE sp_helpdb 'x'"),
        (
            "EXEC xp_instance_regwrite N'HKEY', N'Path', N'DefaultLog', REG_SZ, N'D:\\x'",
            "EXECUTE xp_instance_regwrite N'HKEY', N'Path', N'DefaultLog', REG_SZ, N'D:\\x'",
        ),
    ]);
    for (written, printed) in [
        ("IF @a = 1 PRINT 'x'; ELSE PRINT 'y'", "IF @a = 1\n    PRINT 'x';\nELSE\n    PRINT 'y';"),
        (
            "while @i < 3 begin set @i += 1 if @i = 2 break else continue end",
            "WHILE @i < 3 BEGIN\n    SET @i += 1;\n    IF @i = 2\n        BREAK;\n    ELSE\n        CONTINUE;\nEND;",
        ),
        (
            "begin try begin tran select 1/0 commit end try begin catch if xact_state() <> 0 rollback; throw end catch",
            "BEGIN TRY\n    BEGIN TRANSACTION;\n    SELECT 1 / 0;\n    COMMIT TRANSACTION;\nEND TRY\nBEGIN CATCH\n    \
             IF xact_state() <> 0\n        ROLLBACK TRANSACTION;\n    THROW;\nEND CATCH;",
        ),
        (
            "IF 1=1 IF 2=2 PRINT 'a' ELSE PRINT 'b'",
            "IF 1 = 1\n    IF 2 = 2\n        PRINT 'a';\n    ELSE\n        PRINT 'b';",
        ),
    ] {
        assert_eq!(*round_trip(written)[0].to_sql_with_secrets(), printed);
    }
}

#[test]
fn maintenance() {
    prints_the_same(&[
        "DBCC CHECKDB",
        "DBCC CHECKDB (WideWorldImporters) WITH NO_INFOMSGS, PHYSICAL_ONLY",
        "DBCC CHECKIDENT ('dbo.t', RESEED, -1)",
        "DBCC CHECKDB (N'x', NOINDEX) WITH [MAXDOP] = 4",
        "DBCC TRACEON (5004, -1)",
        "ALTER INDEX ix ON s.t REBUILD",
        "ALTER INDEX ALL ON t REBUILD PARTITION = ALL WITH (DATA_COMPRESSION = COLUMNSTORE)",
        "ALTER INDEX ix ON t REBUILD PARTITION = 3 WITH (SORT_IN_TEMPDB = ON, FILLFACTOR = 80, MAXDOP = 2, MAX_DURATION = 5 MINUTES)",
        "ALTER INDEX ix ON t REORGANIZE PARTITION = 1 WITH (LOB_COMPACTION = OFF)",
        "ALTER INDEX ix ON t DISABLE",
        "ALTER INDEX ix ON t SET (ALLOW_ROW_LOCKS = ON, COMPRESSION_DELAY = 10 MINUTES)",
        "UPDATE STATISTICS s.t",
        "UPDATE STATISTICS s.t (ix, iy) WITH FULLSCAN, NORECOMPUTE",
        "UPDATE STATISTICS t WITH SAMPLE 10 PERCENT, COLUMNS, INCREMENTAL = ON, MAXDOP = 2",
        "UPDATE STATISTICS t WITH SAMPLE 1000 ROWS",
        "UPDATE STATISTICS t WITH RESAMPLE",
    ]);
    prints_as(&[(
        "UPDATE STATISTICS t ix WITH FULLSCAN",
        "UPDATE STATISTICS t (ix) WITH FULLSCAN",
    )]);
}

#[test]
fn tables() {
    prints_the_same(&[
        "CREATE TABLE dbo.t (id int IDENTITY(1, 1) NOT NULL, [name] nvarchar(50) COLLATE Latin1_General_CI_AS NULL DEFAULT (N''), price AS (a * 2) PERSISTED, CONSTRAINT pk PRIMARY KEY CLUSTERED (id DESC) WITH (PAD_INDEX = OFF) ON [PRIMARY], CONSTRAINT fk FOREIGN KEY (a, b) REFERENCES dbo.u (a, b) ON DELETE CASCADE ON UPDATE SET NULL, CHECK (id > 0 OR [name] IS NULL)) ON [PRIMARY] TEXTIMAGE_ON [PRIMARY]",
        "CREATE TABLE #t (a int NOT NULL UNIQUE NONCLUSTERED, b uniqueidentifier ROWGUIDCOL, c int REFERENCES u ON DELETE NO ACTION, d int CONSTRAINT dd DEFAULT (1), e int IDENTITY(-9223372036854775808, -1))",
        "ALTER TABLE t ADD c int NULL, CONSTRAINT d DEFAULT (getdate()) FOR c",
        "ALTER TABLE t WITH NOCHECK ADD CONSTRAINT c CHECK (a > 1)",
        "ALTER TABLE t ALTER COLUMN c bigint NOT NULL",
        "ALTER TABLE t DROP COLUMN IF EXISTS a, b",
        "ALTER TABLE t DROP CONSTRAINT c",
        "ALTER TABLE t WITH CHECK CHECK CONSTRAINT ALL",
        "ALTER TABLE t NOCHECK CONSTRAINT a, b",
        "ALTER TABLE t REBUILD WITH (DATA_COMPRESSION = PAGE)",
        "DROP TABLE IF EXISTS a, s.b",
        "TRUNCATE TABLE t",
        "CREATE UNIQUE NONCLUSTERED INDEX ix ON s.t (a, b DESC) INCLUDE (c) WHERE d IS NOT NULL WITH (ONLINE = ON) ON g",
        "CREATE CLUSTERED COLUMNSTORE INDEX cci ON t",
        "DROP INDEX ix ON s.t, iy ON t",
        "CREATE VIEW v (a, b) WITH SCHEMABINDING AS SELECT a, b FROM dbo.t WITH CHECK OPTION",
        "CREATE OR ALTER VIEW v AS WITH x AS (SELECT 1 AS a) SELECT a FROM x",
        "CREATE VIEW v WITH SCHEMABINDING, VIEW_METADATA AS SELECT 1 AS a",
        "CREATE VIEW v WITH VIEW_METADATA AS SELECT 1 AS a",
        "ALTER VIEW v AS SELECT 1 AS a",
        "DROP VIEW IF EXISTS v",
        "CREATE SCHEMA s AUTHORIZATION dbo",
        "DROP SCHEMA IF EXISTS s",
    ]);
    prints_as(&[("DROP INDEX s.t.ix", "DROP INDEX ix ON s.t")]);
}

#[test]
fn cursors_and_labels() {
    prints_the_same(&[
        "DECLARE c CURSOR FOR SELECT a FROM t",
        "DECLARE c CURSOR LOCAL FORWARD_ONLY STATIC READ_ONLY TYPE_WARNING FOR WITH x AS (SELECT 1 AS a) SELECT a FROM x ORDER BY a",
        "DECLARE c CURSOR FOR SELECT a FROM t FOR UPDATE OF a, t.b",
        "DECLARE @c CURSOR, @d INT",
        "SET @c = CURSOR SCROLL KEYSET OPTIMISTIC FOR SELECT 1 FOR UPDATE",
        "OPEN c",
        "OPEN GLOBAL c",
        "FETCH NEXT FROM c",
        "FETCH PRIOR FROM GLOBAL c INTO @a, @b",
        "FETCH ABSOLUTE -5 FROM @c INTO @a",
        "FETCH RELATIVE @n FROM c",
        "CLOSE @c",
        "DEALLOCATE GLOBAL c",
        "GOTO done",
        "done:",
        "DROP PROCEDURE IF EXISTS p, dbo.q",
        "DROP TRIGGER IF EXISTS a, dbo.b ON ALL SERVER",
        "DROP SERVER ROLE r",
        "DISABLE TRIGGER ALL ON DATABASE",
        "ENABLE TRIGGER a, b ON dbo.t",
    ]);
    prints_as(&[
        (
            "DECLARE c INSENSITIVE SCROLL CURSOR FOR SELECT 1 FOR READ ONLY",
            "DECLARE c CURSOR STATIC SCROLL READ_ONLY FOR SELECT 1",
        ),
        ("DROP PROC p", "DROP PROCEDURE p"),
        (
            "CREATE PROC p (@a int, @b varchar(max) = none OUT) WITH RECOMPILE AS RETURN -1",
            "CREATE PROCEDURE p @a int, @b varchar(max) = N'none' OUTPUT WITH RECOMPILE AS\n    RETURN -1;\n",
        ),
        ("ALTER PROCEDURE s.p AS", "ALTER PROCEDURE s.p AS\n"),
        ("FETCH c INTO @a", "FETCH NEXT FROM c INTO @a"),
        ("FETCH FROM c", "FETCH NEXT FROM c"),
        ("FETCH FIRST FROM first", "FETCH FIRST FROM [first]"),
    ]);
}

/// As Management Studio writes them: a label behind what may end with a name.
#[test]
fn a_label_is_no_name_of_the_statement_before_it() {
    for (script, count) in [
        ("IF (@@TRANCOUNT > 0) ROLLBACK TRANSACTION\nEndSave:", 2),
        ("COMMIT TRAN\nEndSave:\nBEGIN TRANSACTION\nagain:", 4),
        ("ROLLBACK TRANSACTION t\nEndSave:", 2),
        ("EXEC p\nEndSave:", 2),
        ("EXEC p word\nEndSave:", 2),
    ] {
        let statements = pellucid_tsql::parse(script).unwrap();
        assert_eq!(statements.len(), count, "{script}");
    }
}

#[test]
fn output_clauses() {
    prints_the_same(&[
        "INSERT INTO t (a) OUTPUT inserted.* VALUES (1)",
        "INSERT INTO t OUTPUT inserted.a AS b, 1 + inserted.c INTO @o (x, y) OUTPUT inserted.a SELECT 1",
        "INSERT INTO t OUTPUT inserted.a INTO s.logs DEFAULT VALUES",
        "UPDATE t SET a = 1 OUTPUT deleted.a, inserted.a FROM t JOIN x ON x.a = t.a WHERE b = 2",
        "DELETE FROM t OUTPUT deleted.*, x.b INTO @o FROM t JOIN x ON x.a = t.a",
    ]);
}

#[test]
fn queries() {
    prints_the_same(&[
        "SELECT *",
        "SELECT DISTINCT TOP (10) PERCENT WITH TIES t.*, a AS b, 'x' AS [my y] FROM t ORDER BY a DESC, b",
        "SELECT a INTO #t FROM db..t AS x WITH (NOLOCK, READPAST) WHERE x.a = 1 GROUP BY a, b HAVING COUNT(*) > 1",
        "SELECT @v += a FROM t ORDER BY r",
        "SELECT @a = 1, @b -= 2",
        "SELECT a FROM s1.db.dbo.t, u AS v CROSS JOIN w",
        "SELECT a FROM t JOIN u ON t.a = u.a LEFT JOIN v ON v.b = u.b RIGHT JOIN w ON 1 = 1 FULL JOIN x ON 1 = 0",
        "SELECT a FROM t CROSS APPLY dbo.f(t.a) AS g (x, y) OUTER APPLY (SELECT TOP (1) b FROM u ORDER BY b) AS h",
        "SELECT a FROM t CROSS JOIN (u JOIN v ON u.a = v.a)",
        "SELECT a FROM t JOIN u JOIN v ON u.a = v.a ON t.a = u.a",
        "SELECT m FROM (VALUES ('AES_128'), (NULL)) AS m (m)",
        "SELECT a FROM @t AS t",
        "WITH s (s) AS (SELECT 1 UNION ALL SELECT 2), m AS (SELECT 1 AS m) SELECT * FROM s CROSS JOIN m OPTION (MAXRECURSION 100, RECOMPILE, MAXDOP 1)",
        "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 4 ORDER BY 1",
        "(SELECT 1 UNION SELECT 2) INTERSECT SELECT 3",
        "SELECT 1 EXCEPT (SELECT 2 EXCEPT SELECT 3)",
        "SELECT a FROM t ORDER BY a OFFSET 10 ROWS FETCH NEXT 5 ROWS ONLY",
        "SELECT ROW_NUMBER() OVER (PARTITION BY d.d ORDER BY s.s, m.m DESC) AS r, SUM(a) OVER (ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM t",
        "SELECT STRING_AGG(a, ',') WITHIN GROUP (ORDER BY a), COUNT(DISTINCT b) FROM t",
        "INSERT INTO t (a, b) VALUES (1, DEFAULT), (-2, N'x')",
        "INSERT TOP (5) INTO db.dbo.t SELECT a FROM u",
        "INSERT INTO @t EXECUTE p 1",
        "INSERT INTO t DEFAULT VALUES",
        "WITH x AS (SELECT 1 AS a) INSERT INTO t SELECT a FROM x",
        "UPDATE t SET a = 1, b += 2, @v = c = c + 1, @w = 3, t.d = DEFAULT FROM t JOIN u ON t.a = u.a WHERE t.b IN (SELECT b FROM v)",
        "DELETE TOP (10) FROM t FROM t JOIN u ON t.a = u.a WHERE u.b IS NULL OPTION (RECOMPILE)",
    ]);
    prints_as(&[
        (
            "SELECT n = 1, [m] = 2, 'o' = 3, 4 p, 5 'q'",
            "SELECT 1 AS n, 2 AS m, 3 AS o, 4 AS p, 5 AS q",
        ),
        ("SELECT TOP 5 a FROM t (NOLOCK)", "SELECT TOP (5) a FROM t WITH (NOLOCK)"),
        (
            "SELECT a FROM t INNER JOIN u JOIN v ON 1=1 ON 2=2",
            "SELECT a FROM t JOIN u JOIN v ON 1 = 1 ON 2 = 2",
        ),
        (
            "SELECT a FROM ((SELECT 1) UNION SELECT 2) x",
            "SELECT a FROM (SELECT 1 UNION SELECT 2) AS x",
        ),
        (
            "SELECT a FROM ((t JOIN u ON 1=1) JOIN v ON 1=1)",
            "SELECT a FROM ((t JOIN u ON 1 = 1) JOIN v ON 1 = 1)",
        ),
        ("DELETE t", "DELETE FROM t"),
        ("INSERT t (a) (SELECT 1)", "INSERT INTO t (a) SELECT 1"),
        ("((SELECT 1))", "SELECT 1"),
        (";;WITH x AS (SELECT 1 a) SELECT * FROM x;;", "WITH x AS (SELECT 1 AS a) SELECT * FROM x"),
    ]);
}

#[test]
fn expressions_keep_their_meaning_with_few_parentheses() {
    for (written, printed) in [
        ("1+2*3", "1 + 2 * 3"),
        ("(1+2)*3", "(1 + 2) * 3"),
        ("(1+2)+3", "1 + 2 + 3"),
        ("1-(2-3)", "1 - (2 - 3)"),
        ("1/2%3", "1 / 2 % 3"),
        ("1/(2/3)", "1 / (2 / 3)"),
        // A sign takes a whole product.
        ("-a*b", "-a * b"),
        ("(-a)*b", "(-a) * b"),
        ("a*-b*c", "a * -b * c"),
        ("a*(-b)*c", "a * (-b) * c"),
        ("a*-b*-c + d", "a * -b * -c + d"),
        ("- -1", "- -1"),
        ("-(-a*b)", "- -a * b"),
        ("-((-a)*b)", "-(-a) * b"),
        ("a - -b + c", "a - -b + c"),
        ("a - (b - -c)", "a - (b - -c)"),
        ("~-a*b", "~ -a * b"),
        ("(~-a)*b", "(~ -a) * b"),
        ("-~-~a", "- ~ - ~a"),
        ("~a*b", "~a * b"),
        ("~(a+b)", "~(a + b)"),
        ("a & b | c ^ d", "a & b | c ^ d"),
        ("a + b COLLATE x", "a + b COLLATE x"),
        ("(a + b) COLLATE x", "(a + b) COLLATE x"),
        ("@@VERSION + @v", "@@VERSION + @v"),
        ("N'it''s' + 'x'", "N'it''s' + 'x'"),
        ("0xAbC + 1.50 + 1e3 + $2.5", "0x0ABC + 1.50 + 1e3 + $2.5"),
        (
            "CASE WHEN a=1 AND NOT (b=2 OR c=3) THEN 1 ELSE 2 END",
            "CASE WHEN a = 1 AND NOT (b = 2 OR c = 3) THEN 1 ELSE 2 END",
        ),
        ("CASE s WHEN 1 THEN 'HDD' END", "CASE s WHEN 1 THEN 'HDD' END"),
        ("CONVERT(VARCHAR(8000), a)", "CAST(a AS VARCHAR(8000))"),
        ("CONVERT(varchar(30), a, 121)", "CONVERT(varchar(30), a, 121)"),
        ("TRY_CAST(a AS [int])", "TRY_CAST(a AS int)"),
        ("TRY_CONVERT(date, a, 3)", "TRY_CONVERT(date, a, 3)"),
        ("IIF(a > 1, b, c)", "IIF(a > 1, b, c)"),
        (
            "LEFT(a, 1) + right(b, 2) + COALESCE(c, NULL)",
            "LEFT(a, 1) + right(b, 2) + COALESCE(c, NULL)",
        ),
        ("DATEDIFF(SECOND, a, GETDATE())", "DATEDIFF(SECOND, a, GETDATE())"),
        ("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
        ("(SELECT MAX(a) FROM t) + 1", "(SELECT MAX(a) FROM t) + 1"),
        ("((SELECT 1)) * 2", "(SELECT 1) * 2"),
        ("db.dbo.t.c + a.[b c]", "db.dbo.t.c + a.[b c]"),
        (
            "1.0*DATEDIFF(SECOND, backup_start_date, backup_finish_date)",
            "1.0 * DATEDIFF(SECOND, backup_start_date, backup_finish_date)",
        ),
    ] {
        prints_as(&[(&format!("SELECT {written}"), &format!("SELECT {printed}"))]);
    }
}

#[test]
fn conditions_keep_their_meaning_with_few_parentheses() {
    for (written, printed) in [
        ("a=1 AND b=2 OR c=3", "a = 1 AND b = 2 OR c = 3"),
        ("a=1 AND (b=2 OR c=3)", "a = 1 AND (b = 2 OR c = 3)"),
        ("((a=1))", "a = 1"),
        ("(a+1)*2 = 3", "(a + 1) * 2 = 3"),
        ("((a)+1) = 3 AND (((b)) > 1 OR (c) IS NULL)", "a + 1 = 3 AND (b > 1 OR c IS NULL)"),
        ("NOT a=1", "NOT a = 1"),
        ("NOT (a=1 AND b=2)", "NOT (a = 1 AND b = 2)"),
        ("NOT NOT a=1", "NOT NOT a = 1"),
        ("a != 1 AND a !< 2 AND a !> 3", "a <> 1 AND a >= 2 AND a <= 3"),
        (
            "a NOT BETWEEN 1 AND 2 AND b BETWEEN 3 AND 4",
            "a NOT BETWEEN 1 AND 2 AND b BETWEEN 3 AND 4",
        ),
        ("a IN (1, 2) OR b NOT IN (SELECT b FROM t)", "a IN (1, 2) OR b NOT IN (SELECT b FROM t)"),
        ("a LIKE 'x!%' ESCAPE '!' AND b NOT LIKE c", "a LIKE 'x!%' ESCAPE '!' AND b NOT LIKE c"),
        ("a IS NOT NULL", "a IS NOT NULL"),
        ("a IS NOT DISTINCT FROM b", "a IS NOT DISTINCT FROM b"),
        ("a >= ALL (SELECT b FROM t)", "a >= ALL (SELECT b FROM t)"),
        (
            "a = any (SELECT b FROM t) or a < some (select 1)",
            "a = ANY (SELECT b FROM t) OR a < SOME (SELECT 1)",
        ),
        (
            "EXISTS (SELECT * FROM t) AND NOT EXISTS ((SELECT 1) UNION (SELECT 2))",
            "EXISTS (SELECT * FROM t) AND NOT EXISTS (SELECT 1 UNION SELECT 2)",
        ),
        ("(SELECT 1) = 1", "(SELECT 1) = 1"),
        ("((SELECT 1) + 1) = 1", "(SELECT 1) + 1 = 1"),
    ] {
        prints_as(&[(&format!("SELECT 1 WHERE {written}"), &format!("SELECT 1 WHERE {printed}"))]);
    }
}

#[test]
fn only_reserved_words_need_brackets() {
    use pellucid_tsql::keyword::Keyword;
    for &word in Keyword::EVERY {
        let bare = format!("SELECT {word:?} FROM {word:?} AS {word:?}");
        let quoted = format!("SELECT [{word:?}] FROM [{word:?}] AS [{word:?}]");
        prints_the_same(&[&quoted]);
        // The catalog views have columns that are called PRECISION.
        match word.is_reserved() && word != Keyword::PRECISION {
            true => assert!(pellucid_tsql::parse(&bare).is_err(), "{bare}"),
            false => prints_as(&[(&bare, &quoted)]),
        }
    }
    prints_as(&[(
        "SELECT \"a b\", \"c\"\"d\", [e]]f], n, größe",
        "SELECT [a b], [c\"d], [e]]f], n, größe",
    )]);
}
