//! Goal: the scripts that the five articles print run as they are, and say what SQL Server says.
//!
//! Method: the scripts lie in crates/pellucid-sql/tests/articles as they were extracted, word for word; databases with
//! the objects that they name are made here. Expected texts are typed by hand.

use std::path::Path;

use crate::sql_server::{count, errors, Server};
use crate::support::PELLUCID;

fn instance() -> Server {
    Server::with(&["C/temp", "C/TEMP", "D/CTP2_Data", "D/backup", "E/CTP2_Data", "E/backup"])
}

impl Server {
    /// A script of an article.
    fn article(&self, name: &str) -> String {
        self.run(&printed(name)).succeeded()
    }
}

fn printed(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pellucid-sql/tests/articles");
    std::fs::read_to_string(directory.join(name)).unwrap()
}

/// A database in the shape of AdventureWorks2012, with its logical names; `rows` scales it.
fn adventure_works(server: &Server, rows: u32) {
    let script = format!(
        "CREATE DATABASE made ON (NAME = AdventureWorks2012_Data, FILENAME = 'C:\\temp\\aw.mdf')
           LOG ON (NAME = AdventureWorks2012_Log, FILENAME = 'C:\\temp\\aw_log.ldf')
         GO
         USE made
         CREATE TABLE Person.Person(BusinessEntityID INT NOT NULL CONSTRAINT PK_Person PRIMARY KEY, Name NVARCHAR(50),
           Info NVARCHAR(200))
         ;WITH n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {rows})
         INSERT INTO Person.Person SELECT n, N'Name ' + CONVERT(NVARCHAR(20), n), REPLICATE(N'x', n % 150) FROM n
         OPTION (MAXRECURSION 0)"
    );
    let made = instance();
    assert_eq!(errors(&made.run(&script).succeeded()), []);
    for file in ["D/CTP2_Data/awHDD.mdf", "E/CTP2_Data/awSSD.mdf"] {
        std::fs::copy(made.drive("C/temp/aw.mdf"), server.drive(file)).unwrap();
    }
}

#[test]
fn article_0_as_its_author_ran_it() {
    let server = instance();
    adventure_works(&server, 500);
    assert_eq!(errors(&server.article("0-attach.sql")), []);
    assert_eq!(errors(&server.article("0-keys.sql")), []);
    assert_eq!(errors(&server.article("0-backup-keys.sql")), []);
    let script = printed("0-generate.sql").replace("--EXEC", "EXEC").replace("--GO 10", "GO 10");
    let shown = server.run(&script).succeeded();
    assert_eq!(count(&shown, "BACKUP DATABASE successfully processed"), 400, "{shown}");
    let end: Vec<_> = shown.lines().rev().take(3).collect();
    assert_eq!(end[2], "Batch execution completed 10 times.");
    assert!(
        end[1].starts_with("Msg 137, Level 15, State 2, Server ") && end[1].ends_with(", Line 1"),
        "{shown}"
    );
    assert_eq!(end[0], "Must declare the scalar variable \"@sql\".");
    assert_eq!(errors(&shown).len(), 1, "{shown}");

    let durations = server.article("0-durations.sql");
    assert_eq!(count(&durations, "test"), 40, "{durations}");
    let first = durations.lines().nth(2).unwrap_or_default();
    assert!(first.starts_with("test01-NO_ENCRYPTION-HDD-to-HDD-COMPRESSION "), "{durations}");
    let heading = "name natural_size compressed_size min_duration max_duration avg_duration";
    assert_eq!(durations.lines().next(), Some(heading));
    // One row for each of the ten runs: INIT replaces what is on the medium, not what is known of it.
    let counts = server
        .rows("SELECT name, COUNT(*) FROM msdb.dbo.backupset GROUP BY name HAVING COUNT(*) <> 10");
    assert_eq!(counts, Vec::<String>::new());

    let files = server.run("USE awHDD EXEC sp_helpfile").succeeded();
    let lines: Vec<_> = files.lines().collect();
    assert_eq!(lines[1], "name fileid filename filegroup size maxsize growth usage");
    assert!(lines[3].starts_with("AdventureWorks2012_Data 1 "), "{files}");
    assert!(lines[3].ends_with(" KB Unlimited 512000 KB data only"), "{files}");
    assert!(
        lines[4].starts_with("AdventureWorks2012_Log 2 ") && lines[4].ends_with("log only"),
        "{files}"
    );
    assert_eq!(errors(&server.article("0-backups.sql")), []);
}

#[test]
fn article_0_and_what_failed_there() {
    let server = instance();
    adventure_works(&server, 50);
    for script in ["0-attach.sql", "0-keys.sql", "0-backup-keys.sql"] {
        assert_eq!(errors(&server.article(script)), [], "{script}");
    }
    let sealed = "BACKUP DATABASE awHDD TO DISK = 'D:\\backup\\one.bak' WITH {}ENCRYPTION (ALGORITHM = AES_256, SERVER \
                  CERTIFICATE = TestCert)";
    assert_eq!(errors(&server.run(&sealed.replace("{}", "INIT, ")).succeeded()), []);
    // An encrypted set behind an encrypted one.
    let shown =
        server.run(&format!("\n\n\n\n\n\n\n\n\n\n{}", sealed.replace("{}", ""))).succeeded();
    let text = "The backup cannot be performed because 'ENCRYPTION' was requested after the media was formatted with an \
                incompatible structure. To append to this media set, either omit 'ENCRYPTION' or create a new media set by \
                using WITH FORMAT in your BACKUP statement. If you use WITH FORMAT on an existing media set, all its \
                backup sets will be overwritten.";
    assert_eq!(
        errors(&shown),
        [
            ("Msg 3095".to_owned(), text.to_owned()),
            ("Msg 3013".to_owned(), "BACKUP DATABASE is terminating abnormally.".to_owned())
        ]
    );
    // The bug of the article: a plain set behind an encrypted one. It is refused.
    let shown = server.run("BACKUP DATABASE awHDD TO DISK = 'D:\\backup\\one.bak'").succeeded();
    let numbers: Vec<_> = errors(&shown).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, ["Msg 3098", "Msg 3013"], "{shown}");
    // Its wish: the file says itself that it is encrypted, without the history.
    assert_eq!(
        errors(&server.run("EXEC msdb.dbo.sp_delete_backuphistory '20990101'").succeeded()),
        []
    );
    assert_eq!(server.rows("SELECT name FROM msdb.dbo.backupset"), Vec::<String>::new());
    let shown = server.run("RESTORE HEADERONLY FROM DISK = 'D:\\backup\\one.bak'").succeeded();
    let lines: Vec<_> = shown.lines().collect();
    assert!(lines[0].contains(" KeyAlgorithm EncryptorThumbprint EncryptorType "), "{shown}");
    let print =
        server.rows("SELECT thumbprint FROM sys.certificates WHERE name = 'TestCert'").remove(0);
    assert!(lines[2].contains(&format!(" AES_256 {print} CERTIFICATE ")), "{shown}");
}

#[test]
fn article_1_twice() {
    let server = instance();
    let made = "CREATE DATABASE IndexDemo
                GO
                USE IndexDemo CREATE TABLE t(a INT NOT NULL PRIMARY KEY, b NVARCHAR(20)) INSERT INTO t VALUES (1, 'x')";
    assert_eq!(errors(&server.run(made).succeeded()), []);
    for round in [1, 2] {
        let shown = server.article("1-backup.sql");
        let expected = [(
            "Msg 15578".to_owned(),
            "There is already a master key in the database. Please drop it before performing this statement.".to_owned(),
        )];
        assert_eq!(errors(&shown), if round == 1 { &[][..] } else { &expected }, "{shown}");
        assert_eq!(count(&shown, "BACKUP DATABASE successfully processed"), 1, "{shown}");
        let percents: Vec<_> =
            shown.lines().filter_map(|line| line.strip_suffix(" percent processed.")).collect();
        let steps: Vec<_> = (1..=20).map(|step| (step * 5).to_string()).collect();
        assert_eq!(percents, steps, "{shown}");
        assert_eq!(count(&shown, "Warning: The certificate used for encrypting"), 1, "{shown}");
    }
    let bytes = std::fs::read(server.0.path("keys/backup/IndexDemoDB.bak")).unwrap();
    assert!(!bytes.is_empty());
    assert_eq!(errors(&server.article("1-create.sql")), []);
    let shown = server.run("USE TestDBonLocal EXEC sp_helpfile").succeeded();
    assert!(shown.contains("10485760 KB Unlimited 262144 KB data only"), "{shown}");
    assert!(shown.contains("1048576 KB Unlimited 32768 KB log only"), "{shown}");
}

/// A database in the shape of WideWorldImporters, with the objects that article 2 names.
const WIDE_WORLD: &str = "
CREATE DATABASE WideWorldImporters
GO
USE WideWorldImporters
CREATE TABLE Warehouse.StockItemTransactions(StockItemTransactionID INT NOT NULL CONSTRAINT
  PK_Warehouse_StockItemTransactions PRIMARY KEY NONCLUSTERED, StockItemID INT NOT NULL, Quantity DECIMAL(18,3) NOT NULL,
  OccurredWhen DATETIME2(7) NOT NULL)
CREATE CLUSTERED COLUMNSTORE INDEX CCX_Warehouse_StockItemTransactions ON Warehouse.StockItemTransactions
CREATE TABLE Sales.OrderLines(OrderLineID INT NOT NULL CONSTRAINT PK_Sales_OrderLines PRIMARY KEY, OrderID INT NOT NULL,
  StockItemID INT NOT NULL, Quantity INT NOT NULL, Description NVARCHAR(100))
CREATE INDEX IX_Sales_OrderLines_Perf_20160301_01 ON Sales.OrderLines(OrderID, Quantity) INCLUDE (Description)
CREATE TABLE Warehouse.StockItems(StockItemID INT NOT NULL CONSTRAINT PK_Warehouse_StockItems PRIMARY KEY,
  StockItemName NVARCHAR(100) NOT NULL, CONSTRAINT UQ_Warehouse_StockItems_StockItemName UNIQUE (StockItemName))
CREATE TABLE Application.People(PersonID INT NOT NULL, FullName NVARCHAR(50) NOT NULL,
  CONSTRAINT PK_Application_People PRIMARY KEY CLUSTERED (PersonID))
CREATE TABLE Purchasing.PurchaseOrderLines(PurchaseOrderLineID INT IDENTITY(1,1) CONSTRAINT
  PK_Purchasing_PurchaseOrderLines PRIMARY KEY, StockItemID INT NOT NULL, Description NVARCHAR(100))
CREATE INDEX FK_Purchasing_PurchaseOrderLines_StockItemID ON Purchasing.PurchaseOrderLines(StockItemID)
GO
WITH n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000)
INSERT INTO Warehouse.StockItems SELECT n, N'Item ' + CONVERT(NVARCHAR(20), n) FROM n OPTION (MAXRECURSION 0)
INSERT INTO Application.People SELECT StockItemID, REPLACE(StockItemName, 'Item', 'Person') FROM Warehouse.StockItems
INSERT INTO Warehouse.StockItemTransactions SELECT a.StockItemID * 10 + b.n, a.StockItemID, a.StockItemID * 1.5,
  DATEADD(MINUTE, a.StockItemID, '20160301') FROM Warehouse.StockItems a CROSS JOIN (VALUES(0),(1),(2),(3),(4)) b(n)
INSERT INTO Sales.OrderLines SELECT StockItemTransactionID, StockItemID / 3, StockItemID, StockItemID % 17, N'Line of item'
  FROM Warehouse.StockItemTransactions
INSERT INTO Purchasing.PurchaseOrderLines(StockItemID, Description) SELECT StockItemID, N'Ordered' FROM Sales.OrderLines
GO
BACKUP DATABASE WideWorldImporters TO DISK = 'wwi.bak' WITH INIT
RESTORE DATABASE WideWorldImporters_encrypted FROM DISK = 'wwi.bak' WITH MOVE 'WideWorldImporters' TO
  'C:\\temp\\wwi_encrypted.db', MOVE 'WideWorldImporters_log' TO 'C:\\temp\\wwi_encrypted.ldf'
";

const WAIT: &str =
    "WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state = 2) WAITFOR DELAY '00:00:00.05'";

#[test]
fn article_2() {
    let server = instance();
    assert_eq!(errors(&server.run(WIDE_WORLD).succeeded()), []);
    assert_eq!(errors(&server.article("2-keys.sql")), []);
    assert_eq!(errors(&server.run(WAIT).succeeded()), []);
    let on = server.rows("SELECT name FROM sys.databases WHERE is_encrypted = 1");
    assert_eq!(on, ["WideWorldImporters_encrypted"]);

    let shown = server.article("2-checkdb.sql");
    assert_eq!(errors(&shown), []);
    let times: Vec<_> = shown.lines().filter(|line| line.starts_with("   CPU time = ")).collect();
    assert_eq!(count(&shown, " SQL Server Execution Times:"), times.len());
    assert!(
        times.len() >= 2 && times.iter().all(|line| line.contains(" ms,  elapsed time = ")),
        "{shown}"
    );
    assert!(!shown.contains("DBCC execution completed"), "NO_INFOMSGS: {shown}");

    let shown = server.article("2-backup.sql");
    assert_eq!(errors(&shown), []);
    assert_eq!(count(&shown, "100 percent processed."), 2, "{shown}");
    assert_eq!(count(&shown, "BACKUP DATABASE successfully processed "), 2, "{shown}");
    assert_eq!(count(&shown, "Processed "), 2, "{shown}");
    // Nobody asked for ENCRYPTION, and the backup of the encrypted database is sealed all the same.
    let marker = b"Ordered";
    let has = |name: &str| {
        let bytes = std::fs::read(server.drive(name)).unwrap();
        bytes.windows(marker.len()).any(|window| window == marker)
    };
    assert!(!has("D/DBAWorkWideWorldImporters_encrypted-Full.bak"));
    let heads = server
        .run("RESTORE HEADERONLY FROM DISK = N'D:DBAWorkWideWorldImporters_encrypted-Full.bak'")
        .succeeded();
    assert!(
        heads.lines().nth(2).unwrap_or_default().ends_with(" CERTIFICATE NULL NULL ZSTD"),
        "{heads}"
    );
    let heads = server
        .run("RESTORE HEADERONLY FROM DISK = N'D:DBAWorkWideWorldImporters-Full.bak'")
        .succeeded();
    assert!(
        heads.lines().nth(2).unwrap_or_default().contains(" NO_Encryption NULL NULL "),
        "{heads}"
    );

    let shown = server.article("2-restore.sql");
    assert_eq!(errors(&shown), []);
    assert_eq!(count(&shown, "RESTORE DATABASE successfully processed "), 2, "{shown}");
    assert_eq!(server.rows("SELECT name FROM sys.databases WHERE is_encrypted = 1"), on);

    let shown = server.article("2-rebuild.sql");
    assert_eq!(errors(&shown), []);
    let marks: Vec<_> = shown.lines().filter(|line| line.starts_with("---")).collect();
    assert_eq!(
        marks,
        [
            "--- Normal DB ---",
            "--- END Normal DB ---",
            "--- Encrypted DB ---",
            "--- END Encrypted DB ---"
        ]
    );
    let shown = server.article("2-statistics.sql");
    assert_eq!(errors(&shown), []);
    let statistics = "SELECT count(*) FROM sqlite_stat1";
    let path = server.0.path("keys/data/WideWorldImporters.db");
    let counted = server.0.sqlite3(path.to_str().unwrap(), statistics).succeeded();
    assert!(counted.trim().parse::<u32>().unwrap() >= 5, "{counted}");
    for name in ["WideWorldImporters", "WideWorldImporters_encrypted"] {
        let rows =
            server.rows(&format!("SELECT COUNT(*) FROM {name}.Purchasing.PurchaseOrderLines"));
        assert_eq!(rows, ["5000"], "{name}");
    }
}

#[test]
fn each_rebuild_writes_the_b_tree_that_it_names() {
    let server = instance();
    assert_eq!(errors(&server.run(WIDE_WORLD).succeeded()), []);
    let path = server.0.path("keys/data/WideWorldImporters.db");
    // While somebody has it open the log stays, and says how many pages were written.
    let open = rusqlite::Connection::open(&path).unwrap();
    let rebuilds = [
        (
            "CCX_Warehouse_StockItemTransactions",
            "Warehouse.StockItemTransactions",
            "Warehouse.StockItemTransactions",
        ),
        (
            "IX_Sales_OrderLines_Perf_20160301_01",
            "Sales.OrderLines",
            "IX_Sales_OrderLines_Perf_20160301_01",
        ),
        (
            "UQ_Warehouse_StockItems_StockItemName",
            "Warehouse.StockItems",
            "sqlite_autoindex_Warehouse.StockItems_2",
        ),
        ("PK_Application_People", "Application.People", "Application.People"),
        (
            "FK_Purchasing_PurchaseOrderLines_StockItemID",
            "Purchasing.PurchaseOrderLines",
            "FK_Purchasing_PurchaseOrderLines_StockItemID",
        ),
    ];
    for (index, table, tree) in rebuilds {
        let pages: i64 = open
            .query_row("SELECT count(*) FROM dbstat WHERE name = ?1", [tree], |row| row.get(0))
            .unwrap();
        assert!(pages > 0, "{tree}");
        open.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let (schema, name) = table.split_once('.').unwrap();
        let script = format!(
            "USE WideWorldImporters ALTER INDEX [{index}] ON [{schema}].[{name}] REBUILD PARTITION = ALL"
        );
        assert_eq!(errors(&server.run(&script).succeeded()), []);
        let log = std::fs::metadata(format!("{}-wal", path.display())).unwrap().len();
        let written = i64::try_from(log.saturating_sub(32) / (4096 + 24)).unwrap();
        assert!(written >= pages, "{index}: {written} pages of {pages}");
    }
}

/// Article 4 prints no script; these are the statements that its tests are made of.
#[test]
fn article_4_encrypts_and_decrypts_by_each_algorithm() {
    let server = instance();
    let made = "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd'
         CREATE CERTIFICATE c WITH SUBJECT = 'a'
         CREATE DATABASE sap
         ALTER DATABASE sap SET COMPATIBILITY_LEVEL = 120
         GO
         USE sap CREATE TABLE t(a INT NOT NULL PRIMARY KEY, b NVARCHAR(200))
         ;WITH n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 500)
         INSERT INTO t SELECT n, REPLICATE(N'x', 100) FROM n OPTION (MAXRECURSION 0)";
    assert_eq!(errors(&server.run(made).succeeded()), []);
    let wait = |states: &str| {
        format!(
            "WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state IN ({states})) \
             WAITFOR DELAY '00:00:00.05'\nGO\n"
        )
    };
    for algorithm in ["AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY"] {
        let round = format!(
            "USE sap
             CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = {algorithm} ENCRYPTION BY SERVER CERTIFICATE c
             ALTER DATABASE sap SET ENCRYPTION ON
             {on}
             SELECT 'state', encryption_state FROM sys.dm_database_encryption_keys
             DBCC CHECKDB(sap) WITH NO_INFOMSGS
             DBCC CHECKDB(sap) WITH PHYSICAL_ONLY
             ALTER DATABASE sap SET ENCRYPTION OFF
             {off}
             SELECT 'state', encryption_state FROM sys.dm_database_encryption_keys
             USE sap
             DROP DATABASE ENCRYPTION KEY
             SELECT 'rows', COUNT(*) FROM t",
            on = wait("1, 2"),
            off = wait("3, 5"),
        );
        let shown = server.run(&round).succeeded();
        assert_eq!(errors(&shown), [], "{algorithm}: {shown}");
        for line in ["state 3", "state 1", "rows 500"] {
            assert_eq!(count(&shown, line), 1, "{algorithm}, {line}: {shown}");
        }
    }
}

/// What a backup of one session is doing, another one sees.
#[test]
fn a_backup_under_way_is_seen_from_another_session() {
    let server = instance();
    assert_eq!(errors(&server.run("CREATE DATABASE large").succeeded()), []);
    let path = server.0.path("keys/data/large.db");
    let fill =
        "CREATE TABLE t(a); WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 96)
        INSERT INTO t SELECT randomblob(1000000) FROM n;";
    server.0.sqlite3(path.to_str().unwrap(), fill).succeeded();
    let mut backup = server.0.command(PELLUCID);
    backup.args([
        "sql",
        "-Q",
        "BACKUP DATABASE large TO DISK = 'NUL' WITH COMPRESSION (ALGORITHM = ZSTD, LEVEL = HIGH)",
    ]);
    let mut backup = backup.stdout(std::process::Stdio::null()).spawn().unwrap();
    let query = "SELECT command, DB_NAME(database_id) FROM sys.dm_exec_requests";
    let mut seen = Vec::new();
    while seen.is_empty() && backup.try_wait().unwrap().is_none() {
        seen = server.rows(query);
    }
    assert!(backup.wait().unwrap().success());
    assert_eq!(seen, ["BACKUP DATABASE|large"]);
    assert_eq!(server.rows(query), Vec::<String>::new());
}
