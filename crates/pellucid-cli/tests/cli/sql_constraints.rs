//! Goal: ALTER TABLE ADD gives a table its constraints, with its rows, indexes and numbers as they were, or changes nothing.
//!
//! Method: constraints added to tables with and without rows, temporary ones and others; then what the table takes and refuses.

use crate::sql_server::{errors, Server};

fn told(server: &Server, script: &str) -> Vec<String> {
    let shown = errors(&server.run(script).all());
    shown.into_iter().map(|(number, _)| number[4..].to_owned()).collect()
}

fn server() -> Server {
    let server = Server::with(&[]);
    server.run("CREATE DATABASE app").succeeded();
    server
}

#[test]
fn a_temporary_table_gets_its_primary_key() {
    let server = server();
    let script = "CREATE TABLE #t(a int NOT NULL, b varchar(9) NULL)
ALTER TABLE #t ADD CONSTRAINT PK_t PRIMARY KEY CLUSTERED (a ASC) WITH (FILLFACTOR = 90)
INSERT #t VALUES (1, 'x')
INSERT #t VALUES (1, 'y')
SELECT a, b FROM #t";
    let shown = server.run(script).all();
    assert!(shown.contains("Msg 2627") && shown.contains("\n1 x\n"), "{shown}");
}

#[test]
fn rows_indexes_and_numbers_stay() {
    let server = server();
    let script = "USE app
GO
CREATE TABLE parent(id int NOT NULL PRIMARY KEY)
INSERT parent VALUES (1)
CREATE TABLE t(n int IDENTITY(10, 1), a int NOT NULL, b nvarchar(20) COLLATE Latin1_General_CS_AS, p int)
CREATE INDEX ix_b ON t(b)
INSERT t(a, b, p) VALUES (1, N'x', 1), (2, N'y', NULL), (3, N'z', 1)
DELETE t WHERE a = 3
GO
ALTER TABLE t ADD CONSTRAINT PK_t PRIMARY KEY (n), CONSTRAINT UQ_t UNIQUE (a),
  CONSTRAINT DF_b DEFAULT 'none' FOR b, CONSTRAINT FK_t FOREIGN KEY (p) REFERENCES parent(id), c int NULL
GO
INSERT t(a) VALUES (4)";
    assert_eq!(told(&server, script), [""; 0]);
    let rows = |query: &str| server.rows(&format!("SET NOCOUNT ON USE app {query}"));
    assert_eq!(
        rows("SELECT n, a, b, p, c FROM t ORDER BY n")[1..],
        ["10|1|x|1|NULL", "11|2|y|NULL|NULL", "13|4|none|NULL|NULL"]
    );
    let types = "SELECT TYPE_NAME(user_type_id), is_identity FROM sys.columns WHERE name = 'n'";
    assert_eq!(rows(types)[1..], ["int|1"]);
    for index in ["PK_t", "UQ_t", "ix_b"] {
        let rebuild = format!("USE app ALTER INDEX {index} ON t REBUILD");
        assert_eq!(told(&server, &rebuild), [""; 0], "{index}");
    }
    for (statement, number) in [
        ("INSERT t(a) VALUES (1)", "2627"),
        ("INSERT t(a, p) VALUES (5, 9)", "547"),
        ("DELETE parent", "547"),
    ] {
        assert_eq!(told(&server, &format!("USE app {statement}")), [number], "{statement}");
    }
}

#[test]
fn what_cannot_be_added_changes_nothing() {
    let server = server();
    server
        .run(
            "USE app
GO
CREATE TABLE t(a int NOT NULL, b int DEFAULT 1)
INSERT t VALUES (1, 1), (1, NULL)
CREATE TABLE keyed(a int NOT NULL CONSTRAINT PK_k PRIMARY KEY)
INSERT keyed VALUES (1)
CREATE TABLE child(a int REFERENCES keyed(a))
CREATE TABLE other(a int PRIMARY KEY)",
        )
        .succeeded();
    let text = || {
        let query = "SET NOCOUNT ON USE app SELECT TABLE_NAME, COLUMN_NAME, IS_NULLABLE FROM INFORMATION_SCHEMA.COLUMNS";
        (server.rows(query), server.rows("SET NOCOUNT ON SELECT a, b FROM app.dbo.t"))
    };
    let before = text();
    for (action, numbers) in [
        ("t ADD CONSTRAINT x PRIMARY KEY (a)", &["1505", "1750"][..]),
        ("t ADD c int, CONSTRAINT x PRIMARY KEY (a)", &["1505", "1750"]),
        ("t ADD CONSTRAINT x UNIQUE (a)", &["1505", "1750"]),
        ("t ADD CONSTRAINT x PRIMARY KEY (b)", &["515"]),
        ("t ADD CONSTRAINT x DEFAULT 2 FOR b", &["1781", "1750"]),
        ("t ADD CONSTRAINT x DEFAULT 2 FOR c", &["1752", "1750"]),
        ("t ADD CONSTRAINT x PRIMARY KEY (c)", &["1911", "1750"]),
        ("t ADD CONSTRAINT x CHECK (a > 0)", &["50001"]),
        ("t ADD CONSTRAINT x FOREIGN KEY (b) REFERENCES child(a)", &["1776", "1750"]),
        ("t ADD CONSTRAINT x FOREIGN KEY (a, b) REFERENCES keyed(a)", &["8139", "1750"]),
        ("t ADD CONSTRAINT x FOREIGN KEY (a) REFERENCES other", &["547"]),
        ("keyed ADD CONSTRAINT x PRIMARY KEY (a)", &["1779", "1750"]),
        ("keyed ADD CONSTRAINT x UNIQUE (a)", &["50001"]),
    ] {
        let found = told(&server, &format!("USE app ALTER TABLE {action}"));
        assert_eq!(found, numbers, "{action}");
        assert_eq!(text(), before, "{action}");
    }
}

/// Words of a table's text within literals and names are no words of it.
#[test]
fn words_within_literals_and_names_say_nothing() {
    let server = server();
    let words = [
        "a PRIMARY KEY AUTOINCREMENT b",
        "a CONSTRAINT b",
        "INTEGER /* identity is int */ PRIMARY KEY AUTOINCREMENT",
        "a, b (c -- d",
        "\"id\" integer autoincrement",
        "\"id\" text collate binary",
    ];
    for (at, words) in words.into_iter().enumerate() {
        let script = format!(
            "USE app
CREATE TABLE e{at}(id int NOT NULL, [{words}] varchar(80) NOT NULL DEFAULT '{words}')
CREATE TABLE i{at}([it's] int, n int IDENTITY, [{words}] varchar(80) NOT NULL DEFAULT '{words}')
GO
ALTER TABLE e{at} ADD CONSTRAINT PK_e{at} PRIMARY KEY ([{words}])
ALTER TABLE i{at} ADD CONSTRAINT PK_i{at} PRIMARY KEY (n)
GO
INSERT e{at}(id) VALUES (1)
INSERT i{at} DEFAULT VALUES"
        );
        assert_eq!(told(&server, &script), [""; 0], "{words}");
        let again = format!("USE app INSERT e{at}(id) VALUES (2)");
        assert_eq!(told(&server, &again), ["2627"], "{words}");
        let rows = |query: &str| server.rows(&format!("SET NOCOUNT ON USE app {query}"));
        assert_eq!(rows(&format!("SELECT * FROM e{at}"))[1..], [format!("1|{words}")]);
        assert_eq!(rows(&format!("SELECT * FROM i{at}"))[1..], [format!("NULL|1|{words}")]);
        let keys = "SELECT COUNT(*) FROM sys.key_constraints WHERE type = 'PK'";
        assert_eq!(rows(keys)[1..], [(2 * (at + 1)).to_string()], "{words}");
        let identity = format!("SELECT is_identity FROM sys.columns WHERE object_id = OBJECT_ID('e{at}') ORDER BY column_id");
        assert_eq!(rows(&identity)[1..], ["0", "0"], "{words}");
    }
}
