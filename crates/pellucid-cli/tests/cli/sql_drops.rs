//! Goal: a script that removes what it may have made runs to its end, whether or not Pellucid has anything of the kind.
//!
//! Method: DROP of each kind behind a condition, with IF EXISTS and without; a trigger that another program has made.

use crate::sql_server::{errors, Server};

fn told(server: &Server, script: &str) -> Vec<String> {
    let shown = errors(&server.run(script).all());
    shown.into_iter().map(|(number, text)| format!("{}: {text}", &number[4..])).collect()
}

#[test]
fn what_cannot_be_there_is_not_there() {
    let server = Server::with(&[]);
    let script = "IF EXISTS (SELECT 1 FROM sys.databases WHERE name = 'none') DROP TRIGGER x
IF EXISTS (SELECT 1 FROM sys.databases WHERE name = 'none') DISABLE TRIGGER x ON ALL SERVER
DROP TRIGGER IF EXISTS a, dbo.b
DROP TRIGGER IF EXISTS d ON ALL SERVER
DROP USER IF EXISTS u
DROP TYPE IF EXISTS dbo.t
DISABLE TRIGGER ALL ON DATABASE
ENABLE TRIGGER ALL ON ALL SERVER
PRINT 'behind all'";
    let shown = server.run(script).all();
    assert_eq!(shown, "behind all\n");
    let missing = |what: &str, name: &str| {
        format!("Cannot drop the {what} '{name}', because it does not exist or you do not have permission.")
    };
    for (statement, number, text) in [
        ("DROP TRIGGER dbo.x", "3701", missing("trigger", "dbo.x")),
        ("DROP TRIGGER x ON DATABASE", "3701", missing("trigger", "x")),
        ("DROP SYNONYM s", "3701", missing("synonym", "s")),
        ("DROP SEQUENCE s", "3701", missing("sequence object", "s")),
        ("DROP USER u", "15151", missing("user", "u")),
        ("DROP ROLE r", "15151", missing("role", "r")),
        ("DROP SERVER ROLE r", "15151", missing("server role", "r")),
        ("DROP SYMMETRIC KEY k", "15151", missing("symmetric key", "k")),
        ("DROP USER IF EXISTS dbo", "15150", "Cannot drop the user 'dbo'.".to_owned()),
        ("DROP ROLE db_owner", "15150", "Cannot drop the role 'db_owner'.".to_owned()),
        (
            "DROP TYPE t",
            "218",
            "Could not find the type 't'. Either it does not exist or you do not have the necessary permission.".to_owned(),
        ),
        (
            "DISABLE TRIGGER x ON DATABASE",
            "1088",
            "Cannot find the object \"x\" because it does not exist or you do not have permissions.".to_owned(),
        ),
        (
            "ENABLE TRIGGER ALL ON nowhere",
            "1088",
            "Cannot find the object \"nowhere\" because it does not exist or you do not have permissions.".to_owned(),
        ),
    ] {
        assert_eq!(told(&server, statement), [format!("{number}: {text}")], "{statement}");
        // Only once it is reached.
        assert_eq!(told(&server, &format!("IF 1 = 0 {statement}")), [""; 0], "{statement}");
    }
    // Statistics there are.
    assert_eq!(told(&server, "DROP STATISTICS t.s").len(), 1);
}

/// SQLite's triggers are a program's own: nothing here may say that they are not there.
#[test]
fn a_trigger_of_a_program_is_left_alone() {
    let server = Server::with(&[]);
    server.run("CREATE DATABASE app\nGO\nUSE app\nGO\nCREATE TABLE t(a int)").succeeded();
    let path = server
        .rows("SET NOCOUNT ON USE app SELECT physical_name FROM sys.database_files WHERE type = 0");
    let path = path.last().unwrap();
    server.0.sqlite3(path, "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END").succeeded();
    for statement in ["DROP TRIGGER r", "DISABLE TRIGGER r ON t", "DISABLE TRIGGER ALL ON t"] {
        let told = told(&server, &format!("USE app {statement}"));
        assert!(told.len() == 1 && told[0].starts_with("50001: "), "{statement}: {told:?}");
    }
    let count = server.0.sqlite3(path, "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'");
    assert_eq!(count.succeeded(), "1\n");
}
