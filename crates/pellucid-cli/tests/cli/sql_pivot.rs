//! Goal: PIVOT, UNPIVOT and the methods of xml give what SQL Server's give.
//!
//! Method: scripts through the program; expected rows are worked out by hand after Microsoft's pages of PIVOT and of xml.

use crate::sql_queries::prints;

fn refused(script: &str, number: u32) {
    let told = crate::sql_server::Server::with(&[]).run(script).all();
    assert!(told.contains(&format!("Msg {number},")), "{script}\n{told}");
}

const SALES: &str = "CREATE TABLE #s (y int, q char(2), amt decimal(9, 2), who varchar(10))
    INSERT #s VALUES (2020, 'Q1', 10, 'a'), (2020, 'Q1', 5, 'a'), (2020, 'q2', 7, 'a'), (2021, 'Q1', NULL, 'b'),
      (2021, 'Q3', 2, 'b')\n";

#[test]
fn a_column_is_made_of_each_value() {
    let warned = "Warning: Null value is eliminated by an aggregate or other SET operation.";
    for (query, expected) in [
        (
            "SELECT * FROM #s PIVOT (SUM(amt) FOR q IN ([Q1], [Q2], Q4)) AS p ORDER BY y",
            &["2020 a 15.00 7.00 NULL", "2021 b NULL NULL NULL", warned][..],
        ),
        (
            "SELECT y, isnull([Q1], 0) a, p.Q2 FROM (SELECT y, q, 1 AS d FROM #s) s
               PIVOT (COUNT(d) FOR q IN ([Q1], [Q2])) AS p WHERE p.Q1 > 0 ORDER BY y",
            &["2020 2 1", "2021 1 0"],
        ),
        (
            "SELECT p.y, d.name, p.Q1 FROM (SELECT y, q, amt FROM #s WHERE amt > 0) s
               PIVOT (MAX(amt) FOR q IN (Q1)) AS p JOIN sys.databases d ON d.database_id = p.y - 2019 ORDER BY 1",
            &["2020 master 10.00", "2021 tempdb NULL"],
        ),
        (
            "SELECT [1], [2] FROM (SELECT 1 AS k, 5 AS v UNION ALL SELECT 2, 6 UNION ALL SELECT 2, 7) z
               PIVOT (SUM(v) FOR k IN ([1], [2])) p",
            &["5 13"],
        ),
        (
            "SELECT * FROM (SELECT 1 AS k, 2 AS v) z PIVOT (SUM(v) FOR k IN ([1], [1])) p",
            &[
                "Msg 8156",
                "The column '1' was specified multiple times for 'p'.",
            ],
        ),
        (
            "SELECT * FROM #s PIVOT (SUM(none) FOR q IN ([Q1])) AS p",
            &["Msg 207", "Invalid column name 'none'."],
        ),
        // No column of a query around is meant.
        (
            "SELECT (SELECT [1] FROM (SELECT 1 x) s PIVOT (MAX(outercol) FOR x IN ([1])) p) FROM (SELECT 2 outercol) o",
            &["Msg 207", "Invalid column name 'outercol'."],
        ),
        (
            "SELECT (SELECT [1] FROM (SELECT 1 x) s PIVOT (MAX(x) FOR outercol IN ([1])) p) FROM (SELECT 2 outercol) o",
            &["Msg 207", "Invalid column name 'outercol'."],
        ),
        (
            "SELECT (SELECT v FROM (SELECT 1 x) s UNPIVOT (v FOR n IN (outercol)) p) FROM (SELECT 2 outercol) o",
            &["Msg 207", "Invalid column name 'outercol'."],
        ),
        (
            "SELECT (SELECT [1] FROM (SELECT 1 x, outercol y) s PIVOT (MAX(y) FOR x IN ([1])) p) FROM (SELECT 2 outercol) o",
            &["2"],
        ),
        (
            "SELECT y, v, n FROM (SELECT 9 AS y, 1 AS a, CAST(NULL AS int) AS b, 3 AS c) s
               UNPIVOT (v FOR n IN (a, b, c)) u",
            &["9 1 a", "9 3 c"],
        ),
        (
            "SELECT * FROM #s UNPIVOT (v FOR n IN (y, q)) u",
            &[
                "Msg 8167",
                "The type of column \"q\" conflicts with the type of other columns specified in the UNPIVOT list.",
            ],
        ),
    ] {
        prints(&format!("{SALES}{query}"), expected);
    }
}

/// What is turned does not see the left side of APPLY in SQLite: a function that turns what its argument chooses is refused.
#[test]
fn a_function_that_turns_is_applied_where_it_can_be() {
    prints(
        "CREATE TABLE s (a int, k int, v int)
        INSERT s VALUES (1, 1, 5), (2, 2, 6)
        GO
        CREATE FUNCTION turned(@a int) RETURNS TABLE AS RETURN
          SELECT p.[1] AS one FROM (SELECT k, v FROM s WHERE a = @a) q PIVOT (MAX(v) FOR k IN ([1])) p
        GO
        CREATE FUNCTION chosen(@a int) RETURNS TABLE AS RETURN
          SELECT p.[1] AS one FROM (SELECT a, k, v FROM s) q PIVOT (MAX(v) FOR k IN ([1])) p WHERE p.a = @a
        GO
        SELECT one FROM dbo.turned(1)
        SELECT l.a, c.one FROM (VALUES (1), (2)) l(a) CROSS APPLY dbo.chosen(l.a) c ORDER BY 1
        GO
        SELECT l.a, c.one FROM (VALUES (1), (2)) l(a) CROSS APPLY dbo.turned(l.a) c
        GO
        SELECT l.a, c.one FROM (VALUES (1), (2)) l(a) OUTER APPLY dbo.turned(l.a) c",
        &[
            "5",
            "1 5",
            "2 NULL",
            "Msg 50001",
            "'APPLY of a query whose FROM depends on the left side' is not supported.",
            "Msg 50001",
            "'APPLY of a query whose FROM depends on the left side' is not supported.",
        ],
    );
}

#[test]
fn xml_is_asked_by_paths() {
    for (query, expected) in [
        (
            "DECLARE @x xml = '<A>1</A><A>2</A><B id=\"7\"> t </B>'
             SELECT t.value('.', 'VARCHAR(512)') AS v FROM @x.nodes('/A') AS x(t)
             SELECT @x.value('(/B/@id)[1]', 'int'), @x.exist('/B[@id=7]'), @x.exist('/C'), @x.query('/A')
             SELECT @x.query('/B').value('(B)[1]', 'varchar(10)') + '|'",
            &["1", "2", "7 1 0 <A>1</A><A>2</A>", " t |"][..],
        ),
        // How scripts cut a list into its parts.
        (
            "SELECT Split.a.value('.', 'VARCHAR(100)') + ';' AS s
             FROM (SELECT CAST('<M>' + REPLACE('a,b,,c&amp;d', ',', '</M><M>') + '</M>' AS XML) AS D) AS A
             CROSS APPLY D.nodes('/M') AS Split(a)",
            &["a;", "b;", ";", "c&d;"],
        ),
        (
            "SELECT n.c.value('@n', 'int') n, n.c.query('.') q
             FROM (SELECT CAST('<r><a n=\"1\"/><a n=\"2\"><k>z</k></a></r>' AS xml) AS d UNION ALL SELECT NULL) t
             OUTER APPLY t.d.nodes('/r/a') n(c)",
            &["1 <a n=\"1\"/>", "2 <a n=\"2\"><k>z</k></a>", "NULL NULL"],
        ),
        (
            "CREATE TABLE #x (id int, record xml)
             INSERT #x VALUES (1, N'<Record id=\"5\">\n  <v>9</v>\n</Record>'), (2, NULL)
             SELECT id, record.value('(./Record/@id)[1]', 'int'), record.value('(/Record/v/text())[1]', 'int') FROM #x
             SELECT record FROM #x WHERE record.exist('/Record/v') = 1",
            &["1 5 9", "2 NULL NULL", "<Record id=\"5\"><v>9</v></Record>"],
        ),
        (
            "DECLARE @x xml = '<r><a k=\"1\">x</a><a k=\"2\"/></r>'
             SELECT @x.query('data(/r/a/@k)'), @x.value('string((/r/a)[2])', 'varchar(9)') + '|', @x.exist('string((/z)[1])')
             SELECT c.value('count(*)', 'int') FROM @x.nodes('/') t(c)",
            &["1 2 | 1", "1"],
        ),
        // A function of the script's own may have the name of a method.
        (
            "EXEC ('CREATE FUNCTION dbo.query (@x varchar(9)) RETURNS varchar(9) AS BEGIN RETURN @x + ''!'' END')
             SELECT dbo.query('x') FROM sys.databases WHERE database_id = 1",
            &["x!"],
        ),
    ] {
        prints(query, expected);
    }
}

#[test]
fn no_depth_of_what_stands_behind_one_another_ends_the_process() {
    let method = ".query('.')".repeat(4);
    let within = (0..30).fold("@x".to_owned(), |inner, _| format!("({inner}{method})"));
    let turned = " PIVOT (MAX(v) FOR q IN ([1])) AS p".repeat(4);
    // Each takes its own two columns, and all are there again for those around.
    let four: String =
        (0..4).map(|at| format!(" PIVOT (MAX(v{at}) FOR q{at} IN ([c{at}])) AS p{at}")).collect();
    let columns =
        (0..4).map(|at| format!("1 AS v{at}, 'c' AS q{at}")).collect::<Vec<_>>().join(", ");
    let derived = (0..20).fold("#s".to_owned(), |inner, _| {
        format!("(SELECT {columns} FROM (SELECT {columns} FROM {inner}) i{four}) s")
    });
    let server = crate::sql_server::Server::with(&[]);
    for query in [
        format!("DECLARE @x xml = '<A/>' SELECT @x{}", ".query('.')".repeat(20_000)),
        format!("DECLARE @x xml = '<A/>' SELECT {within}"),
        format!("CREATE TABLE #s (v int, q int) SELECT * FROM {derived}"),
        format!("CREATE TABLE #s (v int, q int) SELECT * FROM #s{}", turned.repeat(5_000)),
    ] {
        let said = server.run(&query);
        // What ends a process by its stack has no code, and what panics has 101.
        assert!(matches!(said.code, 0 | 1), "{said:?}");
        let told = said.all();
        let is_run = told.contains("(0 rows affected)");
        assert!(is_run || told.contains("Msg 191,") || told.contains("Msg 8631,"), "{told:.500}");
    }
}

/// As any value that does not convert.
#[test]
fn what_is_no_xml_ends_the_batch_and_its_transaction() {
    let server = crate::sql_server::Server::with(&[]);
    let said = server.run(
        "CREATE TABLE #x (x xml)
         GO
         BEGIN TRAN
         INSERT #x VALUES ('<a/>')
         INSERT #x VALUES ('<a>')
         PRINT 'went on'
         COMMIT
         GO
         SELECT COUNT(*) AS n, @@TRANCOUNT AS t FROM #x",
    );
    assert!(said.stdout.contains("0 0") && !said.stdout.contains("went on"), "{}", said.stdout);
}

#[test]
fn rows_are_elements_with_attributes() {
    prints(
        "SELECT name AS n, NULL AS none, database_id AS id FROM sys.databases WHERE database_id < 3 ORDER BY 3 FOR XML RAW
         SELECT 1 AS a, NULL AS c FOR XML RAW ('r'), ROOT ('all'), ELEMENTS
         SELECT (SELECT 'x<\"' AS a FOR XML RAW ('k'), TYPE).value('(/k/@a)[1]', 'varchar(9)')",
        &["<row n=\"master\" id=\"1\"/><row n=\"tempdb\" id=\"2\"/>", "<all><r><a>1</a></r></all>", "x<\""],
    );
    prints(
        "SELECT 1 FOR XML RAW",
        &[
            "Msg 6809",
            "Unnamed tables cannot be used as XML identifiers as well as unnamed columns cannot be used for attribute names. \
             Name unnamed columns/tables using AS in the SELECT statement.",
        ],
    );
}

#[test]
fn a_node_is_there_or_not() {
    prints(
        "DECLARE @x xml = '<a>1</a><a>2</a>'
         SELECT c.value('.', 'int') FROM @x.nodes('/a') t(c) WHERE c IS NOT NULL ORDER BY 1
         SELECT COUNT(*) FROM @x.nodes('/a') t(c) WHERE t.c IS NULL",
        &["1", "2", "0"],
    );
}

/// Without PATH a name is a name, whatever is in it.
#[test]
fn a_name_of_a_column_is_one_of_xml() {
    prints(
        "SELECT 1 AS [@a], 2 AS [b c], 3 AS [d/e], 4 AS [1], 5 AS [_x], 6 AS [f:g] FOR XML RAW
         SELECT 1 AS [@a], 2 AS [b/c] FOR XML RAW, ELEMENTS
         SELECT (SELECT 1 AS [@a] FOR XML RAW, TYPE).value('(/row/@_x0040_a)[1]', 'int')",
        &[
            "<row _x0040_a=\"1\" b_x0020_c=\"2\" d_x002F_e=\"3\" _x0031_=\"4\" _x005F_x=\"5\" f_x003A_g=\"6\"/>",
            "<row><_x0040_a>1</_x0040_a><b_x002F_c>2</b_x002F_c></row>",
            "1",
        ],
    );
    refused("SELECT 1 FOR XML RAW, ELEMENTS", 6809);
    refused("SELECT 1 AS [@@a] FOR XML PATH", 6850);
}

/// A column that stands elsewhere ends an element, and the next one is new: rows of tables for mails are written so.
#[test]
fn an_attribute_begins_an_element_anew() {
    prints(
        "SELECT 'left' AS 'td/@align', name AS td, '', 'right' AS 'td/@align', database_id AS td, '' FROM sys.databases
           WHERE database_id = 1 FOR XML PATH('tr')
         SELECT 1 AS 'a/b/@x', 2 AS 'a/c', 3 AS 'a/b/@x' FOR XML PATH('r')",
        &[
            "<tr><td align=\"left\">master</td><td align=\"right\">1</td></tr>",
            "<r><a><b x=\"1\"/><c>2</c><b x=\"3\"/></a></r>",
        ],
    );
    for late in [
        "SELECT 1 AS a, 2 AS '@b'",
        "SELECT 1 AS 'a/b', 2 AS 'a/@c'",
        "SELECT 1 AS 'a/b/c', 2 AS 'a/b/@d'",
    ] {
        refused(&format!("{late} FOR XML PATH('r')"), 6852);
    }
    refused("SELECT 1 AS 'a/@b', 2 AS 'a/@b' FOR XML PATH('r')", 50001);
}

#[test]
fn what_xml_does_not_take_is_told() {
    for (query, number) in [
        ("DECLARE @x xml = '<A/>' SELECT c FROM @x.nodes('/A') t(c)", 493),
        ("DECLARE @x xml = '<A/>' SELECT * FROM @x.nodes('/A') t(c)", 493),
        ("DECLARE @x xml = '<A/>' SELECT c.value('/A[1]', 'int') FROM @x.nodes('/A') t(c)", 50001),
        ("DECLARE @x xml = '<A/>' SELECT @x.value('/A', 'int')", 2389),
        ("DECLARE @x xml = '<A>1</B>'", 9436),
        ("DECLARE @x xml = '<A>&#xD800;</A>'", 9420),
        ("DECLARE @x xml = '<A' + '>'", 9436),
        ("DECLARE @x xml = 'a & b'", 9411),
        ("DECLARE @x xml = '<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>'", 50001),
        ("DECLARE @x xml = '<a xmlns=\"u\"/>'", 50001),
        (
            "DECLARE @x xml = REPLICATE(CAST('<a>' AS varchar(max)), 200) + REPLICATE('</a>', 200)",
            6335,
        ),
        ("DECLARE @x xml = '<A/>' SELECT @x.value('for $a in /A return $a', 'int')", 50001),
        ("SELECT 1 FROM (SELECT 'x' AS t) s CROSS APPLY t.nodes('/a') n(c)", 258),
        ("DECLARE @x xml = '<A/>' SELECT c.value('(.[/A])[1]', 'int') FROM @x.nodes('/A') t(c)", 50001),
        ("DECLARE @x xml = '<a xml:space=\"preserve\"> </a>'", 50001),
        ("CREATE TABLE #x (x xml DEFAULT '<a>')", 50001),
        ("DECLARE @t TABLE (x xml DEFAULT '<a>')", 50001),
        ("CREATE TABLE #x (i int) ALTER TABLE #x ADD x xml DEFAULT '<a>'", 50001),
        ("CREATE TABLE #x (x xml) ALTER TABLE #x ADD CONSTRAINT d DEFAULT '<a>' FOR x", 50001),
        ("DECLARE @x xml = '<abc/>' SELECT CAST(@x AS varchar(3))", 6354),
        ("SELECT CONVERT(xml, '<a> </a>', 1)", 50001),
        ("DECLARE @x xml = '<a>AQ==</a>' SELECT @x.value('.', 'varbinary(9)')", 50001),
        ("DECLARE @x xml = '<a b=\"1\"/>' SELECT @x.query('/a/@b')", 50001),
        ("DECLARE @x xml = '<a/>' SELECT 1 FROM @x.nodes('count(/a)') t(c)", 50001),
        ("DECLARE @x xml = '<a/>' SELECT @x.query('.').query('.').query('.').query('.').query('.')", 191),
    ] {
        let server = crate::sql_server::Server::with(&[]);
        let said = server.run(query);
        let shown = format!("{}{}", said.stdout, said.stderr);
        assert!(shown.contains(&format!("Msg {number},")), "{query}: {shown}");
    }
}
