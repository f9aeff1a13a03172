//! Goal: FOR XML PATH writes what SQL Server's does, and text comes out of it as it went in.
//!
//! Method: executed, the expected text typed by hand.

use crate::server::Session;
use pellucid_sql::values::types::SqlType;

fn session() -> Session {
    let mut session = Session::new();
    session.table(
        "t",
        "CREATE TABLE t(id INTEGER PRIMARY KEY, g TEXT, name TEXT);
         INSERT INTO t VALUES (1, 'x', 'b<c'), (2, 'x', 'a&b'), (3, 'y', NULL), (4, 'z', 'd');",
        &[("id", SqlType::Int), ("g", SqlType::varchar(3)), ("name", SqlType::nvarchar(20))],
    );
    session
}

#[track_caller]
fn gives(table: &[(&str, &str)]) {
    let mut session = session();
    for (query, expected) in table {
        let rows = session.run(query).unwrap_or_else(|message| panic!("{query}\n{message:?}"));
        let rows: Vec<String> = rows.iter().map(|row| row.join(" ")).collect();
        assert_eq!(rows.join("|"), *expected, "{query}");
    }
}

#[test]
fn text_is_joined() {
    gives(&[
        (
            "SELECT STUFF((SELECT ',' + name FROM t ORDER BY name DESC FOR XML PATH('')), 1, 1, '')",
            "d,b&lt;c,a&amp;b",
        ),
        (
            "SELECT STUFF((SELECT ',' + name FROM t ORDER BY name FOR XML PATH(''), TYPE).value('.', 'nvarchar(max)'), 1, 1, '')",
            "a&b,b<c,d",
        ),
        (
            "SELECT g, STUFF((SELECT ', ' + u.name FROM t AS u WHERE u.g = t.g ORDER BY u.id DESC FOR XML PATH(''), TYPE)
               .value('(./text())[1]', 'varchar(20)'), 1, 2, '') FROM t GROUP BY g ORDER BY g",
            "x a&b, b<c|y NULL|z d",
        ),
        (
            "SELECT g, LEFT(d.list, LEN(d.list) - 1) FROM (SELECT DISTINCT g FROM t WHERE name IS NOT NULL) AS o
             CROSS APPLY (SELECT name + ';' FROM t AS u WHERE u.g = o.g ORDER BY id FOR XML PATH('')) AS d (list) ORDER BY g",
            "x b&lt;c;a&amp;b|z d",
        ),
        (
            "SELECT d.list.value('text()[1]', 'nvarchar(9)'), list.value('.', 'nvarchar(3)') FROM
             (SELECT (SELECT name + ' ' FROM t WHERE id < 3 ORDER BY id FOR XML PATH(''), TYPE) AS list) AS d",
            "b<c a&b  b<c",
        ),
        ("SELECT (SELECT name AS [data()] FROM t ORDER BY id FOR XML PATH(''))", "b&lt;c a&amp;b d"),
        ("SELECT (SELECT name AS [text()] FROM t ORDER BY id FOR XML PATH(''))", "b&lt;ca&amp;bd"),
        ("SELECT (SELECT ',' + name FROM t WHERE id > 9 FOR XML PATH(''))", "NULL"),
        ("SELECT (SELECT ',' + name FROM t WHERE id > 9 FOR XML PATH(''), TYPE).value('.', 'int')", "NULL"),
        ("SELECT (SELECT id * 7 FROM t WHERE id = 3 FOR XML PATH(''), TYPE).value('.', 'int') + 1", "22"),
        (
            "SELECT (SELECT CHAR(13) + CHAR(10) + CHAR(9) + '\"''' + CHAR(1) FOR XML PATH(''))",
            "&#x0D;\n\t\"'&#x01;",
        ),
        ("SELECT (SELECT CHAR(13) + '<' FOR XML PATH(''), TYPE).value('.', 'varchar(9)')", "\r<"),
    ]);
}

#[test]
fn elements_are_called_like_columns() {
    gives(&[
        (
            "SELECT id, name FROM t WHERE id IN (1, 3) ORDER BY id FOR XML PATH",
            "<row><id>1</id><name>b&lt;c</name></row><row><id>3</id></row>",
        ),
        (
            "SELECT id AS '@id', name AS n FROM t WHERE id > 2 ORDER BY id DESC FOR XML PATH('e'), ROOT('all')",
            "<all><e id=\"4\"><n>d</n></e><e id=\"3\"/></all>",
        ),
        (
            "SELECT td = id, '', td = g, '' FROM t WHERE id < 3 FOR XML PATH('tr'), TYPE",
            "<tr><td>1</td><td>x</td></tr><tr><td>2</td><td>x</td></tr>",
        ),
        ("SELECT 1 AS a, 2 AS a, 3 AS [b/c], 4 AS [b/d] WHERE 1 = 0 FOR XML PATH('')", ""),
        ("SELECT 1 AS a, 2 AS a, 3 AS [b/@c], 4 AS [b/d], 5 AS [b] FOR XML PATH('')", "<a>12</a><b c=\"3\"><d>4</d>5</b>"),
        ("SELECT '' AS a FOR XML PATH(''), ELEMENTS", "<a></a>"),
        ("SELECT '' AS a, NULL AS b FOR XML PATH(''), TYPE, ROOT", "<root><a/></root>"),
        (
            "SELECT id, (SELECT g AS [*] FROM t AS u WHERE u.id = t.id FOR XML PATH('in'), TYPE) AS within,
               (SELECT g FROM t AS u WHERE u.id = t.id FOR XML PATH('')) AS text FROM t WHERE id = 1 FOR XML PATH('')",
            "<id>1</id><within><in>x</in></within><text>&lt;g&gt;x&lt;/g&gt;</text>",
        ),
        (
            "SELECT CAST('2020-01-02T03:04:05' AS datetime) AS d, CAST('20200102' AS date) AS e, CAST(1.5 AS money) AS m,
               CAST(2.50 AS numeric(5, 2)) AS n, CAST(1 AS bit) AS b, NULL AS o FOR XML PATH('')",
            "<d>2020-01-02T03:04:05</d><e>2020-01-02</e><m>1.5000</m><n>2.50</n><b>1</b>",
        ),
        ("SELECT g FROM t WHERE id = 1 UNION ALL SELECT 'q' ORDER BY g FOR XML PATH('')", "<g>q</g><g>x</g>"),
    ]);
}

#[test]
fn what_is_refused() {
    session().fails(&[
        (
            "SELECT 1 AS [a b] FOR XML PATH('')",
            6850,
            "Column name 'a b' contains an invalid XML identifier as required by FOR XML; ' '(0x0020) is the first character at fault.",
        ),
        (
            "SELECT 1 AS a, 2 AS [@b] FOR XML PATH",
            6852,
            "Attribute-centric column '@b' must not come after a non-attribute-centric sibling in XML hierarchy in FOR XML PATH.",
        ),
        (
            "SELECT 1 AS [@a] FOR XML PATH('')",
            6864,
            "Row tag omission (empty row tag name) cannot be used with attribute-centric FOR XML serialization.",
        ),
        ("SELECT 1 AS a FOR XML PATH, ROOT('')", 6861, "Empty root tag name can't be specified with FOR XML."),
        ("SELECT (SELECT 1 AS a FOR XML PATH('')).value('.', 'int')", 258, "Cannot call methods on nvarchar."),
        (
            "SELECT (SELECT 1 AS a FOR XML PATH(''), TYPE).value('/a[@b=\"secret\"]/..', 'int')",
            50_001,
            "'the path '/a[@b=..' in xml' is not supported.",
        ),
        (
            "SELECT (SELECT 1 AS a FOR XML PATH(''), TYPE).value('.', 'int, @x int')",
            50_001,
            "'the type 'int, @x int' of a value in xml' is not supported.",
        ),
        ("SELECT 0x01 AS a FOR XML PATH('')", 50_001, "'varbinary in FOR XML' is not supported."),
        (
            "INSERT t (name) SELECT 'a' FOR XML PATH('')",
            6819,
            "The FOR XML and FOR JSON clauses are not allowed in a INSERT statement.",
        ),
        ("SELECT 1 AS [x:a] FOR XML PATH('')", 50_001, "'the namespace in 'x:a' in FOR XML' is not supported."),
        ("SELECT 1 AS [a//b] FOR XML PATH('')", 50_001, "'the name 'a//b' in FOR XML' is not supported."),
    ]);
    let mut session = session();
    assert_eq!(
        session.run("SELECT (SELECT CHAR(1) FOR XML PATH(''), TYPE)").unwrap_err().number,
        6841
    );
    let sets = "SELECT (SELECT 1 AS a UNION SELECT 2 FOR XML PATH(''))";
    assert_eq!(session.run(sets).unwrap_err().number, 1086);
}
