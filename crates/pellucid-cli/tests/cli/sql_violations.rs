//! Goal: a change that a constraint does not take is refused in SQL Server's words, with the constraint's name, and 3621 behind it; a
//! foreign key to nothing is not made.
//!
//! Method: tables with named constraints and without, in a database, in tempdb and as variables. The texts are those of Microsoft's
//! table of messages, filled in by hand.

use crate::sql_server::Server;

/// The lines of messages of a script, without the server's name and the place.
fn told(server: &Server, script: &str) -> Vec<String> {
    let shown = server.run(&format!("USE d\nGO\nSET NOCOUNT ON\n{script}")).all();
    let lines = shown.lines().filter(|line| !line.starts_with("Changed database"));
    let cut = |line: &str| match line.split_once(", Server ") {
        Some((header, _)) => header.to_owned(),
        None => line.to_owned(),
    };
    lines.filter(|line| !line.is_empty()).map(cut).collect()
}

fn server() -> Server {
    let server = Server::with(&[]);
    server
        .run(
            "CREATE DATABASE d
GO
USE d
GO
CREATE TABLE dbo.k(id int NOT NULL CONSTRAINT PK_k PRIMARY KEY, a varchar(9) CONSTRAINT UQ_a UNIQUE, b int, c date, n int NOT NULL DEFAULT 1)
CREATE UNIQUE INDEX ix ON k(b, c)
CREATE TABLE s.two(a int, b int, CONSTRAINT [PK 2] PRIMARY KEY (b, a))
CREATE TABLE plain(id int PRIMARY KEY, u int UNIQUE)
CREATE TABLE p(id int NOT NULL PRIMARY KEY, other int UNIQUE)
CREATE TABLE c(id int CONSTRAINT FK_one REFERENCES p(id), other int, CONSTRAINT FK_two FOREIGN KEY (other) REFERENCES p(other))
CREATE TABLE tree(id int PRIMARY KEY, parent int CONSTRAINT FK_tree REFERENCES tree(id))
CREATE TABLE twice(a int, b int, CONSTRAINT FK_both FOREIGN KEY (a, b) REFERENCES s.two(b, a))
INSERT k VALUES (1, 'x', 1, '20200102', 1)
INSERT s.two VALUES (1, 2)
INSERT plain VALUES (1, 1)
INSERT p VALUES (1, 10), (2, 20)
INSERT c VALUES (1, 20)
INSERT tree VALUES (1, NULL), (2, 1)",
        )
        .succeeded();
    server
}

const END: &str = "The statement has been terminated.";

#[track_caller]
fn violates(server: &Server, statement: &str, header: &str, text: &str) {
    assert_eq!(told(server, statement), [header, text, END], "{statement}");
}

#[test]
fn keys_that_are_there_already() {
    let server = server();
    let violates = |statement: &str, text: &str| {
        violates(&server, statement, "Msg 2627, Level 14, State 1", text);
    };
    let primary = |value: &str| {
        format!("Violation of PRIMARY KEY constraint 'PK_k'. Cannot insert duplicate key in object 'dbo.k'.{value}")
    };
    violates("INSERT k(id) VALUES (1)", &primary(" The duplicate key value is (1)."));
    violates("INSERT k(id) VALUES (7), (8), (7)", &primary(" The duplicate key value is (7)."));
    violates(
        "INSERT d.dbo.k(b, id) SELECT b, id FROM k",
        &primary(" The duplicate key value is (1)."),
    );
    violates("INSERT k(id) OUTPUT inserted.id VALUES (1)", &primary(""));
    violates("INSERT k(id) EXEC('SELECT 1')", &primary(""));
    violates(
        "INSERT k(id, a) VALUES (2, 'X')",
        "Violation of UNIQUE KEY constraint 'UQ_a'. Cannot insert duplicate key in object 'dbo.k'. The duplicate key value is (X).",
    );
    violates(
        "INSERT s.two VALUES (1, 2)",
        "Violation of PRIMARY KEY constraint 'PK 2'. Cannot insert duplicate key in object 's.two'. The duplicate key value is \
         (2, 1).",
    );
    violates(
        "INSERT plain VALUES (1, 2)",
        "Violation of PRIMARY KEY constraint 'PK_plain'. Cannot insert duplicate key in object 'dbo.plain'. The duplicate key \
         value is (1).",
    );
    violates(
        "INSERT plain VALUES (2, 1)",
        "Violation of UNIQUE KEY constraint 'UQ_plain'. Cannot insert duplicate key in object 'dbo.plain'. The duplicate key value \
         is (1).",
    );
    violates(
        "INSERT p VALUES (3, 30) UPDATE x SET x.other = 10 FROM p AS x WHERE x.id = 3 DELETE p WHERE id = 3",
        "Violation of UNIQUE KEY constraint 'UQ_p'. Cannot insert duplicate key in object 'dbo.p'.",
    );
    violates(
        "CREATE TABLE #t(a int CONSTRAINT PK_t PRIMARY KEY) INSERT #t VALUES (5) INSERT #t VALUES (5)",
        "Violation of PRIMARY KEY constraint 'PK_t'. Cannot insert duplicate key in object 'dbo.#t'. The duplicate key value is (5).",
    );
    violates(
        "DECLARE @t table(a int PRIMARY KEY) INSERT @t VALUES (5) INSERT @t VALUES (5)",
        "Violation of PRIMARY KEY constraint 'PK_@t'. Cannot insert duplicate key in object 'dbo.@t'. The duplicate key value is \
         (5).",
    );
}

#[test]
fn unique_indexes_and_columns_without_null() {
    let server = server();
    violates(
        &server,
        "INSERT k(id, b, c) VALUES (2, 1, '20200102')",
        "Msg 2601, Level 14, State 1",
        "Cannot insert duplicate key row in object 'dbo.k' with unique index 'ix'. The duplicate key value is (1, 2020-01-02).",
    );
    let null = "Msg 515, Level 16, State 2";
    let text = |table: &str, verb: &str| {
        format!("Cannot insert the value NULL into column 'n', table '{table}'; column does not allow nulls. {verb} fails.")
    };
    violates(&server, "INSERT k(id, n) VALUES (3, NULL)", null, &text("d.dbo.k", "INSERT"));
    violates(&server, "UPDATE k SET n = NULL", null, &text("d.dbo.k", "UPDATE"));
    let variable = "DECLARE @t table(n int NOT NULL) INSERT @t VALUES (NULL)";
    violates(&server, variable, null, &text("@t", "INSERT"));
    let temporary = "CREATE TABLE #t(n int NOT NULL) INSERT #t VALUES (NULL)";
    violates(&server, temporary, null, &text("tempdb.dbo.#t", "INSERT"));
    // Caught, and with XACT_ABORT, nothing stands behind it.
    for script in [
        "BEGIN TRY INSERT k(id) VALUES (1) END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH",
        "SET XACT_ABORT ON INSERT k(id) VALUES (1)",
    ] {
        assert!(!told(&server, script).contains(&END.to_owned()), "{script}");
    }
    let overflow = told(&server, "UPDATE k SET n = 2147483647 UPDATE k SET n = n + 1");
    assert_eq!((&overflow[0][..8], &*overflow[2]), ("Msg 8115", END), "{overflow:?}");
    let cut = told(&server, "INSERT k(id, a) VALUES (4, 'longer than nine')");
    assert_eq!((&cut[0][..8], &*cut[2]), ("Msg 2628", END), "{cut:?}");
}

#[test]
fn foreign_keys_both_ways() {
    let server = server();
    for (statement, kind, name, place) in [
        ("INSERT c VALUES (9, 10)", "INSERT FOREIGN KEY", "FK_one", "\"dbo.p\", column 'id'"),
        ("INSERT c VALUES (1, 11)", "INSERT FOREIGN KEY", "FK_two", "\"dbo.p\", column 'other'"),
        ("UPDATE c SET other = 11", "UPDATE FOREIGN KEY", "FK_two", "\"dbo.p\", column 'other'"),
        ("DELETE p WHERE id = 1", "DELETE REFERENCE", "FK_one", "\"dbo.c\", column 'id'"),
        (
            "DELETE x FROM p AS x WHERE x.id = 2",
            "DELETE REFERENCE",
            "FK_two",
            "\"dbo.c\", column 'other'",
        ),
        (
            "UPDATE p SET id = 5 WHERE id = 1",
            "UPDATE REFERENCE",
            "FK_one",
            "\"dbo.c\", column 'id'",
        ),
        (
            "INSERT tree VALUES (3, 9)",
            "INSERT FOREIGN KEY SAME TABLE",
            "FK_tree",
            "\"dbo.tree\", column 'id'",
        ),
        (
            "DELETE tree WHERE id = 1",
            "DELETE SAME TABLE REFERENCE",
            "FK_tree",
            "\"dbo.tree\", column 'parent'",
        ),
        ("INSERT twice VALUES (1, 1)", "INSERT FOREIGN KEY", "FK_both", "\"s.two\""),
    ] {
        let (verb, kind) = kind.split_once(' ').unwrap();
        let text = format!(
            "The {verb} statement conflicted with the {kind} constraint \"{name}\". The conflict occurred in database \"d\", table \
             {place}."
        );
        violates(&server, statement, "Msg 547, Level 16, State 0", &text);
    }
    // What was tried to find the key has changed nothing, and the transaction goes on.
    let script =
        "BEGIN TRAN INSERT p VALUES (7, 70) INSERT c VALUES (1, 11) INSERT c VALUES (7, 70) COMMIT
                  SELECT CONCAT(COUNT(*), ' ', @@TRANCOUNT) FROM c";
    let shown = told(&server, script);
    assert_eq!(shown.last().map(String::as_str), Some("2 0"), "{shown:?}");
}

#[test]
fn a_foreign_key_to_nothing_is_not_made() {
    let server = server();
    let not_made = [
        "Msg 1750, Level 16, State 1",
        "Could not create constraint or index. See previous errors.",
    ];
    for (statement, header, text) in [
        (
            "CREATE TABLE x(a int, CONSTRAINT FK_x FOREIGN KEY (a) REFERENCES dbo.nosuch(id))",
            "Msg 1767",
            "Foreign key 'FK_x' references invalid table 'dbo.nosuch'.",
        ),
        (
            "ALTER TABLE plain ADD CONSTRAINT FK_x FOREIGN KEY (u) REFERENCES nosuch(id)",
            "Msg 1767",
            "Foreign key 'FK_x' references invalid table 'nosuch'.",
        ),
        (
            "ALTER TABLE plain ADD z int NULL CONSTRAINT FK_x REFERENCES nosuch(id)",
            "Msg 1767",
            "Foreign key 'FK_x' references invalid table 'nosuch'.",
        ),
        (
            "CREATE TABLE x(a int CONSTRAINT FK_x REFERENCES p(nosuch))",
            "Msg 1770",
            "Foreign key 'FK_x' references invalid column 'nosuch' in referenced table 'dbo.p'.",
        ),
        (
            "CREATE TABLE x(a int CONSTRAINT FK_x REFERENCES k(n))",
            "Msg 1776",
            "There are no primary or candidate keys in the referenced table 'dbo.k' that match the referencing column list in the \
             foreign key 'FK_x'.",
        ),
        (
            "CREATE TABLE x(a int CONSTRAINT FK_x REFERENCES c)",
            "Msg 1773",
            "Foreign key 'FK_x' has implicit reference to object 'dbo.c' which does not have a primary key defined on it.",
        ),
        (
            "CREATE TABLE x(a int CONSTRAINT FK_x REFERENCES master.dbo.p(id))",
            "Msg 1763",
            "Cross-database foreign key references are not supported. Foreign key 'master.dbo.p'.",
        ),
    ] {
        let header = format!("{header}, Level 16, State 0");
        let expected = [&*header, text, not_made[0], not_made[1]];
        assert_eq!(told(&server, statement), expected, "{statement}");
        let left = "IF OBJECT_ID('x') IS NOT NULL OR COL_LENGTH('plain', 'z') IS NOT NULL PRINT 'made'";
        assert_eq!(told(&server, left), [""; 0], "{statement}");
    }
    for statement in [
        "ALTER TABLE plain ADD CONSTRAINT FK_ok FOREIGN KEY (u) REFERENCES plain(id)",
        "CREATE TABLE self(id int PRIMARY KEY, a int REFERENCES self(id), b int REFERENCES dbo.self)",
        "CREATE TABLE y(a int REFERENCES d.dbo.p(id), b int REFERENCES plain, c varchar(9) REFERENCES k(a))",
    ] {
        assert_eq!(told(&server, statement), [""; 0], "{statement}");
    }
}

#[test]
fn what_rows_do_not_fulfil_is_not_added() {
    let server = server();
    let not_made = [
        "Msg 1750, Level 16, State 1",
        "Could not create constraint or index. See previous errors.",
    ];
    let twice = |index: &str| {
        format!(
            "The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the object name 'dbo.twins' and the \
             index name '{index}'."
        )
    };
    server
        .run("USE d\nGO\nCREATE TABLE twins(a int NOT NULL) INSERT twins VALUES (3), (3)")
        .succeeded();
    let header = "Msg 1505, Level 16, State 1";
    let made = told(&server, "CREATE UNIQUE INDEX ix_twins ON twins(a)");
    assert_eq!(made, [header, &twice("ix_twins"), END]);
    let added = told(&server, "ALTER TABLE twins ADD CONSTRAINT PK_twins PRIMARY KEY (a)");
    assert_eq!(added, [header, &twice("PK_twins"), not_made[0], not_made[1], END]);
    let added =
        told(&server, "ALTER TABLE twins ADD CONSTRAINT FK_twins FOREIGN KEY (a) REFERENCES p");
    let text = "The ALTER TABLE statement conflicted with the FOREIGN KEY constraint \"FK_twins\". The conflict occurred in database \
                \"d\", table \"dbo.p\", column 'id'.";
    assert_eq!(added, ["Msg 547, Level 16, State 0", text]);
}
