//! Goal: the message, number, line and near-text of what does not parse, and the name of what is not supported.
//! Method: tables typed by hand; numbers and texts from SQL Server's list of messages.

use pellucid_tsql::{parse, ErrorKind, ParseError, MAX_DEPTH};
use pellucid_tsql_testing::ToSql;

fn failure(batch: &str) -> ParseError {
    match parse(batch) {
        Ok(statements) => panic!("{batch}\nparsed: {statements:?}"),
        Err(error) => error,
    }
}

/// Batch, number, line, text.
fn fail_with(table: &[(&str, u32, u32, &str)]) {
    for (batch, number, line, text) in table {
        let error = failure(batch);
        assert_eq!(
            (error.number(), error.line, &error.to_string()[..]),
            (*number, *line, *text),
            "{batch}"
        );
        assert_eq!(ParseError::SEVERITY, 15);
        let lines = batch.as_bytes()[..error.offset].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines as u32 + 1, error.line, "offset and line agree: {batch}");
    }
}

#[test]
fn syntax() {
    fail_with(&[
        ("SELECT 1\nFORM t x y", 102, 2, "Incorrect syntax near 't'."),
        ("SELECT * FROM", 102, 1, "Incorrect syntax near 'FROM'."),
        ("SELECT\n*\nfrom where", 156, 3, "Incorrect syntax near the keyword 'where'."),
        ("PRINT", 102, 1, "Incorrect syntax near 'PRINT'."),
        ("USE 'x'", 102, 1, "Incorrect syntax near 'x'."),
        ("USE [a] [b c]", 102, 1, "Incorrect syntax near 'b c'."),
        ("SELECT 1 +", 102, 1, "Incorrect syntax near '+'."),
        ("SELECT (1", 102, 1, "Incorrect syntax near '1'."),
        ("SELECT 1)", 102, 1, "Incorrect syntax near ')'."),
        ("SELECT a > b", 102, 1, "Incorrect syntax near '>'."),
        ("SELECT ?", 102, 1, "Incorrect syntax near '?'."),
        ("DECLARE @a int = 1, b int", 102, 1, "Incorrect syntax near 'b'."),
        ("BEGIN\nEND", 156, 2, "Incorrect syntax near the keyword 'END'."),
        ("BEGIN PRINT 1", 102, 1, "Incorrect syntax near '1'."),
        ("BEGIN TRY PRINT 1 END TRY PRINT 2", 156, 1, "Incorrect syntax near the keyword 'PRINT'."),
        ("ELSE PRINT 1", 156, 1, "Incorrect syntax near the keyword 'ELSE'."),
        ("PRINT 1 sp_helpfile", 102, 1, "Incorrect syntax near 'sp_helpfile'."),
        ("BACKUP DATABASE db TO DISK 'f'", 102, 1, "Incorrect syntax near 'f'."),
        ("BACKUP DATABASE db\nWITH INIT", 319, 2, WITH),
        ("BACKUP DATABASE db TO DISK = 'f' WITH STATS = 99999999999999999999", 102, 1, "Incorrect syntax near '99999999999999999999'."),
        ("BACKUP DATABASE db TO DISK = 'f' WITH COMPRESSION (LEVEL = LOW)", 102, 1, "Incorrect syntax near 'LEVEL'."),
        ("BACKUP DATABASE db TO DISK = 'f' WITH ENCRYPTION (ALGORITHM = , SERVER CERTIFICATE = )", 102, 1, "Incorrect syntax near ','."),
        ("BACKUP DATABASE db TO DISK = 'f' WITH ENCRYPTION (ALGORITHM = AES_512, SERVER CERTIFICATE = c)", 102, 1, "Incorrect syntax near 'AES_512'."),
        ("BACKUP DATABASE db TO DISK = 'f' WITH ENCRYPTION (ALGORITHM = AEGIS_256, SERVER CERTIFICATE = c)", 102, 1, "Incorrect syntax near 'AEGIS_256'."),
        ("BACKUP DATABASE ... WITH ENCRYPTION", 102, 1, "Incorrect syntax near '.'."),
        ("ALTER DATABASE db SET ENCRYPTION MAYBE", 102, 1, "Incorrect syntax near 'MAYBE'."),
        ("CREATE CERTIFICATE c WITH SUBJECT = 's', START_DATE = 'a', START_DATE = 'b'", 102, 1, "Incorrect syntax near 'START_DATE'."),
        ("SELECT 1 UNION", 102, 1, "Incorrect syntax near 'UNION'."),
        ("SELECT a FROM t ORDER BY a COLLATE x COLLATE y", 156, 1, "Incorrect syntax near the keyword 'COLLATE'."),
        ("CREATE VIEW v AS SELECT 1 AS a SELECT 2", 156, 1, "Incorrect syntax near the keyword 'SELECT'."),
        ("DELETE t OUTPUT *", 102, 1, "Incorrect syntax near '*'."),
        ("DELETE t OUTPUT @v = deleted.a", 102, 1, "Incorrect syntax near '@v'."),
        ("DELETE t OUTPUT deleted.a OUTPUT deleted.b", 102, 1, "Incorrect syntax near 'deleted'."),
        ("DELETE t OUTPUT deleted.a INTO @a OUTPUT deleted.b INTO @b", 156, 1, "Incorrect syntax near the keyword 'INTO'."),
        ("CREATE VIEW v AS SELECT 1 AS a\nOPTION (MAXRECURSION 5)", 156, 2, "Incorrect syntax near the keyword 'OPTION'."),
        ("CREATE VIEW v WITH NOTHING AS SELECT 1 AS a", 102, 1, "Incorrect syntax near 'NOTHING'."),
        ("CREATE VIEW v WITH SCHEMABINDING, ENCRYPTION AS SELECT 1 AS a", 50001, 1, "'VIEW WITH ENCRYPTION' is not supported."),
    ]);
}

const WITH: &str = "Incorrect syntax near the keyword 'with'. If this statement is a common table expression, an \
                    xmlnamespaces clause or a change tracking context clause, the previous statement must be terminated \
                    with a semicolon.";

#[test]
fn what_does_not_end() {
    fail_with(&[
        (
            "PRINT 1\nPRINT 'abc",
            105,
            2,
            "Unclosed quotation mark after the character string 'abc'.",
        ),
        ("SELECT [abc", 105, 1, "Unclosed quotation mark after the character string 'abc'."),
        ("PRINT 1 /* x\n", 113, 1, "Missing end comment mark '*/'."),
        // What is wrong before it comes first.
        ("PRINT PRINT 'abc", 156, 1, "Incorrect syntax near the keyword 'PRINT'."),
    ]);
}

#[test]
fn with_needs_a_semicolon_before_it() {
    let cte = "WITH x AS (SELECT 1 AS a) SELECT a FROM x";
    for before in [
        "SELECT 1",
        "DECLARE @a int = 1",
        "BEGIN PRINT 1 END",
        "EXEC p",
        "EXEC p 1",
        "USE master",
        "PRINT 1",
    ] {
        let error = failure(&format!("{before}\n{cte}"));
        assert_eq!(
            (error.number(), error.line, &error.to_string()[..]),
            (319, 2, WITH),
            "{before}"
        );
        assert_eq!(parse(&format!("{before};\n{cte}")).unwrap().len(), 2, "{before}");
    }
    for first in ["", ";", "BEGIN ", "IF 1 = 1 ", "WHILE 1 = 0 ", "BEGIN TRY "] {
        let end = if first.contains("TRY") {
            " END TRY BEGIN CATCH END CATCH"
        } else if first == "BEGIN " {
            " END"
        } else {
            ""
        };
        parse(&format!("{first}{cte}{end}")).unwrap();
    }
}

#[test]
fn other_messages() {
    let long = "n".repeat(129);
    let starts = format!(
        "The identifier that starts with '{}' is too long. Maximum length is 128.",
        &long[1..]
    );
    fail_with(&[
        (&format!("USE {long}"), 103, 1, &starts),
        (&format!("PRINT @{}", &long[1..]), 103, 1, &format!("The identifier that starts with '@{}' is too long. Maximum length is 128.", &long[2..])),
        ("SELECT 1\nCREATE VIEW v AS SELECT 1 AS a", 111, 2, "'CREATE VIEW' must be the first statement in a query batch."),
        ("IF 1 = 1 CREATE SCHEMA s", 111, 1, "'CREATE SCHEMA' must be the first statement in a query batch."),
        ("SELECT * FROM a.b.c.d.e", 117, 1, "The object name 'a.b.c.d.e' contains more than the maximum number of prefixes. The maximum is 3."),
        ("EXEC p @a = 1, 2", 119, 1, "Must pass parameter number 2 and subsequent parameters as '@name = value'. After the form '@name = value' has been used, all subsequent parameters must be passed in the form '@name = value'."),
        ("BREAK", 135, 1, "Cannot use a BREAK statement outside the scope of a WHILE statement."),
        ("WHILE 1 = 1 BREAK\nCONTINUE", 136, 2, "Cannot use a CONTINUE statement outside the scope of a WHILE statement."),
        ("SELECT @a = 1, b", 141, 1, "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations."),
        ("BACKUP DATABASE db TO DISK = 'f' WITH INIT,\nCOMPRESS", 155, 2, "'COMPRESS' is not a recognized BACKUP option."),
        ("RESTORE DATABASE db FROM DISK = 'f' WITH ENCRYPTION (ALGORITHM = AES_256)", 155, 1, "'ENCRYPTION' is not a recognized RESTORE option."),
        ("RETURN 1", 178, 1, "A RETURN statement with a return value cannot be used in this context."),
        ("EXEC p 1 OUTPUT", 179, 1, "Cannot use the OUTPUT option when passing a constant to a stored procedure."),
        ("SET NOCUONT ON", 195, 1, "'NOCUONT' is not a recognized SET option."),
        ("CREATE TABEL t (a int)", 343, 1, "Unknown object type 'TABEL' used in a CREATE, DROP, or ALTER statement."),
        ("SELECT 1 AS []", 1038, 1, "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. For other statements, look for empty alias names. Aliases defined as \"\" or [] are not allowed. Change the alias to a valid name."),
        ("IF 1 PRINT 'x'", 4145, 1, "An expression of non-boolean type specified in a context where a condition is expected, near 'PRINT'."),
        ("SELECT 1 WHERE a", 4145, 1, "An expression of non-boolean type specified in a context where a condition is expected, near 'a'."),
        ("BEGIN TRY THROW END TRY BEGIN CATCH THROW END CATCH", 10704, 1, "To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside a CATCH block, or add error parameters to the THROW statement."),
    ]);
}

#[test]
fn what_is_not_supported_is_named() {
    for (batch, construct) in [
        ("MERGE t USING u ON t.a = u.a WHEN MATCHED THEN DELETE;", "MERGE"),
        ("WITH x AS (SELECT 1 AS a) MERGE t", "MERGE"),
        ("ALTER TRIGGER t ON u AFTER INSERT AS PRINT 1", "ALTER TRIGGER"),
        (
            "CREATE SYMMETRIC KEY k WITH ALGORITHM = AES_256 ENCRYPTION BY PASSWORD = 'MARKER'",
            "CREATE SYMMETRIC KEY",
        ),
        ("OPEN SYMMETRIC KEY k DECRYPTION BY PASSWORD = 'MARKER'", "OPEN SYMMETRIC KEY"),
        (
            "CREATE LOGIN l WITH PASSWORD = 'MARKER'",
            "CREATE LOGIN other than from an asymmetric key",
        ),
        ("ALTER LOGIN sa WITH PASSWORD = 'MARKER'", "ALTER LOGIN other than its credential"),
        (
            "CREATE ASYMMETRIC KEY k WITH ALGORITHM = RSA_2048",
            "CREATE ASYMMETRIC KEY outside a provider",
        ),
        (
            "CREATE DATABASE SCOPED CREDENTIAL c WITH IDENTITY = 'i', SECRET = 'MARKER'",
            "CREATE DATABASE SCOPED CREDENTIAL",
        ),
        ("CREATE DATABASE a CONTAINMENT = PARTIAL", "CREATE DATABASE CONTAINMENT = PARTIAL"),
        ("CREATE DATABASE a AS COPY OF b", "CREATE DATABASE AS COPY OF"),
        (
            "CREATE DATABASE a ON (NAME = x, FILENAME = 'f') AS SNAPSHOT OF b",
            "CREATE DATABASE AS SNAPSHOT OF",
        ),
        ("ALTER DATABASE db SET QUERY_STORE = ON", "ALTER DATABASE SET QUERY_STORE"),
        ("BACKUP DATABASE db TO VIRTUAL_DEVICE = 'v'", "VIRTUAL_DEVICE"),
        ("BACKUP DATABASE db TO DISK = 'f' WITH METADATA_ONLY", "BACKUP WITH METADATA_ONLY"),
        ("BACKUP LOG db TO DISK = 'f' WITH TRUNCATE_ONLY", "BACKUP WITH TRUNCATE_ONLY"),
        (
            "ALTER SERVICE MASTER KEY WITH OLD_ACCOUNT = 'a', OLD_PASSWORD = 'MARKER'",
            "ALTER SERVICE MASTER KEY WITH an account",
        ),
        ("ALTER INDEX ix ON t RESUME", "ALTER INDEX RESUME"),
        ("SELECT a FROM t FOR XML AUTO", "FOR XML AUTO"),
        ("SELECT a FROM t FOR XML RAW('r'), XMLSCHEMA", "FOR XML with XMLSCHEMA"),
        ("SELECT a FROM t FOR XML EXPLICIT", "FOR XML EXPLICIT"),
        ("SELECT a FROM t FOR XML PATH, ELEMENTS XSINIL", "FOR XML with ELEMENTS XSINIL"),
        ("SELECT a FROM t FOR XML PATH(''), BINARY BASE64", "FOR XML with BINARY"),
        ("SELECT (SELECT 1 FOR XML PATH, TYPE).modify('a')", "the method modify of xml"),
        ("SELECT a FROM t FOR JSON AUTO", "FOR JSON"),
        ("SELECT a FROM t OPTION (HASH JOIN)", "OPTION (HASH)"),
        ("SELECT a FROM t WITH (INDEX(1))", "WITH (INDEX)"),
        ("SELECT a FROM t INNER REMOTE JOIN u ON 1 = 1", "REMOTE JOIN"),
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT a FROM OPENROWSET(BULK 'f', SINGLE_BLOB) AS x", "OPENROWSET"),
        ("SELECT a FROM t GROUP BY ROLLUP(a)", "GROUP BY ROLLUP"),
        ("SELECT a FROM t GROUP BY GROUPING SETS ((a), ())", "GROUP BY GROUPING SETS"),
        ("SELECT a FROM t GROUP BY a WITH CUBE", "GROUP BY WITH CUBE"),
        ("SELECT a AT TIME ZONE 'UTC' FROM t", "AT TIME ZONE"),
        ("SELECT {d '2026-01-01'}", "ODBC escape sequence"),
        ("SELECT TRIM('x' FROM a)", "TRIM with FROM"),
        ("UPDATE t SET a = 1 WHERE CURRENT OF c", "WHERE CURRENT OF"),
        ("GRANT SELECT ON t TO u", "GRANT"),
        ("KILL 52", "KILL"),
        ("BULK INSERT t FROM 'f'", "BULK INSERT"),
        ("WAITFOR (RECEIVE * FROM q)", "WAITFOR a statement"),
        ("EXEC ('x') AT server", "EXECUTE AT a linked server"),
        ("EXECUTE AS USER = 'u' WITH NO REVERT", "EXECUTE AS WITH"),
        ("BEGIN DISTRIBUTED TRAN", "BEGIN DISTRIBUTED TRANSACTION"),
    ] {
        let error = failure(batch);
        assert_eq!(error.kind, ErrorKind::Unsupported { construct: construct.into() }, "{batch}");
        assert_eq!(error.number(), 50_001);
        assert!(!format!("{error:?} {error}").contains("MARKER"), "{batch}");
    }
}

#[test]
fn no_secret_is_near() {
    for batch in [
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD 'MARKER'",
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'MARKER",
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = MARKER",
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = [MARKER]",
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = @MARKER",
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'it's MARKER' PRINT 1",
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'a'MARKER",
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'a' MARKER",
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'a' 'MARKER'",
        "CREATE CREDENTIAL c WITH IDENTITY = 'i', SECRET N'MARKER'",
        "CREATE CERTIFICATE c FROM BINARY = 0x30 WITH PRIVATE KEY (BINARY 0x4D41524B4552)",
        "BACKUP DATABASE db TO DISK = 'f' WITH PASSWORD = 'it's, MARKER",
        "RESTORE DATABASE db FROM DISK = 'f' WITH MEDIAPASSWORD = 'a', MARKER",
        "PRINT 1 2 'CREATE MASTER KEY ENCRYPTION BY PASSWORD = ''MARKER'''",
        "PRINT 'CREATE MASTER KEY ENCRYPTION BY PASSWORD = ''MARKER'' PRINT",
        "USE 'CREATE MASTER KEY ENCRYPTION BY PASSWORD = ''MARKER'''",
    ] {
        let error = failure(batch);
        let told = format!("{error} {error:?}");
        assert!(!told.contains("MARKER") && !told.contains("4D41524B4552"), "{batch}: {told}");
    }
    // What is not secret is told.
    assert!(failure("CREATE MASTER KEY ENCRYPTION BY PASWORD = 'x'")
        .to_string()
        .contains("PASWORD"));
}

#[test]
fn depth_is_limited_and_the_limit_is_safe() {
    for (before, open, middle, close) in [
        ("SELECT ", "(", "1", ")"),
        ("SELECT ", "- ", "1", ""),
        ("SELECT ", "1 * -", "1", ""),
        ("SELECT ", "~ +", "1", ""),
        ("SELECT ", "~", "1", ""),
        ("SELECT ", "f(", "1", ")"),
        ("SELECT ", "CASE WHEN 1 = 1 THEN ", "1", " END"),
        ("SELECT ", "IIF(1 = 1, 2, ", "1", ")"),
        ("SELECT ", "(SELECT ", "1", ")"),
        ("SELECT 1 WHERE ", "(", "1 = 1", ")"),
        ("SELECT 1 WHERE ", "NOT ", "1 = 1", ""),
        ("SELECT 1 WHERE ", "1 IN (", "1", ")"),
        ("SELECT 1 WHERE ", "EXISTS (SELECT 1 WHERE ", "1 = 1", ")"),
        ("SELECT 1 FROM ", "(", "t JOIN u ON 1 = 1", ")"),
        ("SELECT 1 FROM ", "t JOIN ", "u", " ON 1 = 1"),
        ("SELECT 1 FROM ", "(SELECT 1 AS a FROM ", "t", ") AS x"),
        ("SELECT ", "(SELECT ", "@x", ".query('.').query('.').query('.').query('.'))"),
        ("", "(", "SELECT 1", ")"),
        ("", "BEGIN ", "PRINT 1", " END"),
        ("", "IF 1 = 1 ", "PRINT 1", ""),
        ("", "IF 1 = 1 PRINT 1 ELSE ", "PRINT 2", ""),
        ("", "WHILE 1 = 1 ", "PRINT 1", ""),
        ("", "BEGIN TRY ", "PRINT 1", " END TRY BEGIN CATCH END CATCH"),
    ] {
        let nested = |levels: usize| {
            format!("{before}{}{middle}{}", open.repeat(levels), close.repeat(levels))
        };
        // `1 IN (1 IN ..` does not nest: a condition is no value.
        if !open.starts_with("1 IN") {
            // The deepest that is taken is also taken as it is printed.
            let deepest =
                (10..=MAX_DEPTH as usize).rev().find_map(|deep| parse(&nested(deep)).ok());
            let statements = deepest.unwrap_or_else(|| panic!("{open}: {:?}", parse(&nested(10))));
            let printed: String = statements.iter().map(|one| one.to_sql()).collect();
            let again = parse(&printed).unwrap_or_else(|error| panic!("{error:?}\n{printed}"));
            assert!(again == statements, "{printed}");
            let error = failure(&nested(MAX_DEPTH as usize + 1));
            assert_eq!(error.number(), 191, "{open}: {error}");
        }
        parse(&nested(100_000)).unwrap_err();
    }
}

#[test]
fn what_holds_all_before_it_follows_few_times() {
    let times = |count: usize| {
        let pivots = " PIVOT (MAX(v) FOR q IN (a)) p".repeat(count);
        let within =
            "(".repeat(count.min(90) / 2) + "@x" + &".query('.'))".repeat(count.min(90) / 2);
        [
            format!("SELECT @x{}", ".query('.')".repeat(count)),
            format!("SELECT {within}{}", ".query('.')".repeat(count - count.min(90) / 2)),
            format!("SELECT 1 FROM t{pivots}"),
        ]
    };
    for batch in times(4) {
        parse(&batch).unwrap();
    }
    // Within one another, too.
    for levels in [10, 40, 50_000] {
        let turned = format!("{}) s", " PIVOT (MAX(v) FOR q IN (a)) p".repeat(4));
        let batch =
            format!("SELECT 1 FROM {}t{}", "(SELECT a FROM ".repeat(levels), turned.repeat(levels));
        assert_eq!(parse(&batch).is_ok(), levels < 50, "{levels}");
    }
    for batch in times(5).into_iter().chain(times(50_000)) {
        assert_eq!(failure(&batch).number(), 191);
    }
}

#[test]
fn long_is_not_deep() {
    let many = |item: &str, between: &str| vec![item; 20_000].join(between);
    for batch in [
        format!("SELECT {}", many("a", " + ")),
        format!("SELECT {}", many("a", " * ")),
        format!("SELECT 1 WHERE {}", many("a = 1", " AND ")),
        format!("SELECT 1 WHERE {}", many("a = 1", " OR ")),
        many("SELECT 1", " UNION ALL "),
        format!("SELECT 1 FROM t {}", many("CROSS JOIN u", " ")),
        format!("INSERT INTO t VALUES {}", many("(1)", ", ")),
        many("PRINT 1", " "),
    ] {
        let statements = parse(&batch).unwrap();
        let printed: String = statements.iter().map(|one| one.to_sql()).collect();
        assert!(parse(&printed).unwrap() == statements);
    }
}
