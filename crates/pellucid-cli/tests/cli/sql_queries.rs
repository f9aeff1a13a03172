//! Goal: queries of scripts for administrators give what SQL Server gives, through the program.
//!
//! Method: scripts in an instance of their own; expected rows are typed by hand.

use crate::sql_server::Server;

#[test]
fn a_union_is_ordered_by_a_column_of_its_first_query() {
    let server = Server::with(&[]);
    let rows = server.rows(
        "SELECT msdb.dbo.backupset.database_name, 1 AS here FROM msdb.dbo.backupset
         UNION SELECT master.dbo.sysdatabases.name, 2 FROM master.dbo.sysdatabases WHERE dbid < 3
         ORDER BY msdb.dbo.backupset.database_name DESC",
    );
    assert_eq!(rows, ["tempdb|2", "master|2"]);
}
