//! Of batches, names and what a statement may touch.

use super::{Server, ALTER_ENDS};

/// A database that a program has open is not dropped, although it holds no lock; a rebuild takes no row of another table along.
#[test]
fn what_others_would_lose() {
    let server = Server::ready();
    let path = server.place.path("keys/data/sales.db");
    server.place.sqlite3(path.to_str().unwrap(), "PRAGMA journal_mode = DELETE").succeeded();
    let mut program = server.place.command("/usr/bin/sqlite3");
    program.arg("-batch").arg(&path);
    let mut program =
        crate::support::Held::start_with(program, "SELECT count(*) FROM t; SELECT 'ready';\n");
    server.says(
        "DROP DATABASE sales",
        &[(3702, "Cannot drop database \"sales\" because it is currently in use.")],
    );
    program.end();
    server.done(
        "USE sales
         CREATE TABLE line(id INT NOT NULL PRIMARY KEY, t INT REFERENCES t(id) ON DELETE CASCADE)
         INSERT INTO line VALUES (1, 1), (2, 2)
         ALTER INDEX PK_t ON t REBUILD
         IF (SELECT COUNT(*) FROM line) <> 2 RAISERROR('rows are gone', 16, 1)",
    );
    server.says(
        "USE sales BEGIN TRAN ALTER INDEX PK_t ON t REBUILD ROLLBACK",
        &[(50001, "15: 'a rebuild of the table itself within a transaction' is not supported.")],
    );
    server.done("USE sales IF (SELECT COUNT(*) FROM line) <> 2 RAISERROR('rows are gone', 16, 1)");
    server.done("DROP DATABASE sales");
    assert!(!path.exists());
}

#[test]
fn batches_and_names() {
    let server = Server::ready();
    server.says("SELECT @x", &[(137, "15: Must declare the scalar variable \"@x\".")]);
    server.says(
        "DECLARE @x INT DECLARE @x INT",
        &[(
            134,
            "15: The variable name '@x' has already been declared. Variable names must be unique within a query batch or \
             stored procedure.",
        )],
    );
    server.says("SELECT 1 +", &[(102, "15: Incorrect syntax near '+'.")]);
    server.says("SELECT * FROM nothing", &[(208, "Invalid object name 'nothing'.")]);
    server.says("EXEC sp_nothing", &[(2812, "Could not find stored procedure 'sp_nothing'.")]);
    server.says(
        "USE nothing PRINT 'not reached'",
        &[(
            911,
            "Database 'nothing' does not exist. Make sure that the name is entered correctly.",
        )],
    );
    server.says(
        "CREATE DATABASE sales",
        &[(1801, "Database 'sales' already exists. Choose a different database name.")],
    );
    server.says(
        "DROP DATABASE nothing",
        &[(3701, "11: Cannot drop the database 'nothing', because it does not exist or you do not have permission.")],
    );
    server.says(
        "ALTER DATABASE sales MODIFY FILE (NAME = nothing, SIZE = 10MB)",
        &[(5041, "MODIFY FILE failed. File 'nothing' does not exist."), ALTER_ENDS],
    );
    server.says(
        "COMMIT",
        &[(3902, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.")],
    );
    server.says(
        "ROLLBACK",
        &[(3903, "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.")],
    );
    server.says(
        "EXEC sp_configure 'nothing'",
        &[(
            15123,
            "The configuration option 'nothing' does not exist, or it may be an advanced option.",
        )],
    );
    server.says(
        "EXEC sp_configure 'backup compression default', 1",
        &[(
            15457,
            "10: Configuration option 'backup compression default' changed from 0 to 1. Run the RECONFIGURE statement to \
             install.",
        )],
    );
    server.says("THROW 50123, 'own', 7", &[(50123, "own")]);
    server.says("RAISERROR('value %d of %s', 12, 3, 7, 'x')", &[(50000, "12: value 7 of x")]);
}
