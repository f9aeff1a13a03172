//! Goal: SQLite's checks that statements run reach what only an application has, as those of the other commands do.
//!
//! Method: a database with a collation and a function of an extension, plain and sealed, is checked, backed up, verified,
//! restored, encrypted and decrypted by statements, with `--load` and without.

use std::path::Path;

use crate::support::{said, said_with, Place, Said, PELLUCID};

const ODD: &str = ".load ./odd
    CREATE TABLE o(a TEXT COLLATE odd UNIQUE, b CHECK (odd(b) > 0));
    INSERT INTO o VALUES('x', 1), ('y', 3); CREATE INDEX o2 ON o(odd(b));
    CREATE TABLE t(a); INSERT INTO t VALUES(1);
";

fn place() -> Place {
    let place = Place::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/odd.c");
    place.compile_library(&source, "odd.so");
    let mut shell = place.command("/usr/bin/sqlite3");
    said_with(shell.args(["-batch", "app.db"]), ODD).succeeded();
    let attach = format!(
        "CREATE DATABASE app ON (FILENAME = '{}') FOR ATTACH",
        place.path("app.db").display()
    );
    sql(&place, &[], &attach).succeeded();
    place
}

fn sql(place: &Place, more: &[&str], text: &str) -> Said {
    said(place.command(PELLUCID).args(["sql", "-b"]).args(more).args(["-Q", text]))
}

const LOAD: [&str; 2] = ["--load", "./odd.so"];

/// Executes what the end of work in the background has to come before.
fn settled(place: &Place, text: &str) {
    let is_under_way = |told: &Said| {
        ["Msg 1222,", "Msg 33105,", "is in use"].iter().any(|words| told.stdout.contains(words))
    };
    let mut told = sql(place, &LOAD, text);
    while is_under_way(&told) {
        std::thread::sleep(std::time::Duration::from_millis(50));
        told = sql(place, &LOAD, text);
    }
    told.succeeded();
}

#[test]
fn statements_check_with_the_extensions_that_are_named() {
    let place = place();
    for kind in ["plain", "sealed"] {
        // Without it the check says what it did not check, and never that something is damaged.
        let without = sql(&place, &[], "DBCC CHECKDB(app)");
        assert!(without.stdout.contains("not checked: table `o`"), "{kind}: {without:?}");
        assert!(without.stdout.contains("found 0 allocation errors and 0"), "{kind}: {without:?}");
        let with = sql(&place, &LOAD, "DBCC CHECKDB(app)").succeeded();
        assert!(!with.contains("not checked"), "{kind}: {with}");
        let set = format!("BACKUP DATABASE app TO DISK = '{kind}.bak' WITH INIT, CHECKSUM");
        sql(&place, &[], &set).succeeded();
        let verify = format!("RESTORE VERIFYONLY FROM DISK = '{kind}.bak' WITH CHECKSUM");
        sql(&place, &[], &verify).succeeded();
        let restore = format!("RESTORE DATABASE app FROM DISK = '{kind}.bak' WITH REPLACE");
        sql(&place, &[], &restore).succeeded();
        sql(&place, &LOAD, "DBCC CHECKDB(app) WITH NO_INFOMSGS").succeeded();
        if kind == "plain" {
            let key = "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'Aa1!aaaaaaaa';\nGO\nCREATE CERTIFICATE c WITH \
                       SUBJECT = 'c';\nGO\n";
            said_with(place.command(PELLUCID).args(["sql", "-b"]), key).succeeded();
            let key =
                "USE app; CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY \
                       SERVER CERTIFICATE c";
            sql(&place, &[], key).succeeded();
            let on = "ALTER DATABASE app SET ENCRYPTION ON";
            let refused = sql(&place, &[], on);
            assert!(refused.code == 1 && refused.stdout.contains("--load"), "{refused:?}");
            sql(&place, &LOAD, on).succeeded();
            settled(&place, "DBCC CHECKDB(app)");
        }
    }
    sql(&place, &LOAD, "ALTER DATABASE app SET ENCRYPTION OFF").succeeded();
    settled(&place, "USE app; DROP DATABASE ENCRYPTION KEY");
    let whole = "SELECT a FROM o ORDER BY a";
    let rows = said_with(
        place.command("/usr/bin/sqlite3").args(["-batch", "app.db"]),
        &format!(".load ./odd\n{whole};\n"),
    );
    assert_eq!(rows.succeeded(), "y\nx\n");
}

#[test]
fn an_extension_that_is_none_is_named() {
    let place = place();
    place.secret("none.so", b"no library");
    for name in ["./none.so", "./missing.so"] {
        let told = sql(&place, &["--load", name], "SELECT 1");
        assert!(told.code == 1 && told.stderr.contains(name), "{told:?}");
    }
}
