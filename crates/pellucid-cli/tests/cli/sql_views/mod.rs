//! Goal: every column of the server's views, of msdb and of what media say of themselves that has a source changes with it.
//!
//! Method: each column is read, the state behind it is changed by a statement or another program, and it is read again: the
//! two have to differ, and where the value is known it is compared. What has no source is NULL, and is listed here too, so
//! that a column cannot be forgotten.

mod history;

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{said_with, Place, PELLUCID};

type Row = BTreeMap<String, serde_json::Value>;

struct Server(Place);

impl Server {
    fn new() -> Self {
        let server = Self(Place::new());
        server.done(
            "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd'
             CREATE CERTIFICATE First WITH SUBJECT = 'first'
             CREATE CERTIFICATE Second WITH SUBJECT = 'second', START_DATE = '20240102', EXPIRY_DATE = '20990102'
             CREATE DATABASE sales
             GO
             USE sales
             CREATE TABLE t(id INT NOT NULL PRIMARY KEY, name NVARCHAR(50))
             INSERT INTO t VALUES (1, 'Anna')",
        );
        server
    }

    fn lines(&self, script: &str) -> Vec<serde_json::Value> {
        let said = said_with(self.0.command(PELLUCID).args(["--json", "sql"]), script);
        said.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    fn done(&self, script: &str) {
        let lines = self.lines(script);
        let is_error = |line: &&serde_json::Value| line["severity"].as_u64().unwrap_or(0) > 10;
        assert_eq!(lines.iter().find(is_error), None, "{script}");
    }

    /// The rows of the last result.
    fn rows(&self, query: &str) -> Vec<Row> {
        let lines = self.lines(query);
        let result = lines.iter().rev().find(|line| line["columns"].is_array());
        let result = result.unwrap_or_else(|| panic!("{query}: {lines:?}"));
        let names: Vec<_> = result["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        let of = |row: &serde_json::Value| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .zip(row.as_array().unwrap().iter().cloned())
                .collect()
        };
        result["rows"].as_array().unwrap().iter().map(of).collect()
    }

    fn row(&self, query: &str) -> Row {
        self.rows(query).into_iter().next().unwrap_or_else(|| panic!("{query}"))
    }
}

/// What has been seen of a view: each of its columns has to end in one of these.
#[derive(Default)]
struct Seen {
    changed: BTreeSet<String>,
    without_source: BTreeSet<String>,
}

impl Seen {
    /// These columns differ between two rows.
    #[track_caller]
    fn differ(&mut self, before: &Row, after: &Row, columns: &[&str]) {
        for column in columns {
            let (old, new) = (&before[*column], &after[*column]);
            assert_ne!(old, new, "{column} did not change");
            self.changed.insert((*column).to_owned());
        }
    }

    /// These have no source: NULL in both.
    #[track_caller]
    fn nothing(&mut self, row: &Row, columns: &[&str]) {
        for column in columns {
            assert_eq!(row[*column], serde_json::Value::Null, "{column} has a value");
            self.without_source.insert((*column).to_owned());
        }
    }

    /// What can have one value only here: named with the reason in docs/statements.md.
    #[track_caller]
    fn fixed(&mut self, row: &Row, columns: &[(&str, serde_json::Value)]) {
        for (column, value) in columns {
            assert_eq!(row[*column], *value, "{column}");
            self.without_source.insert((*column).to_owned());
        }
    }

    /// No column was forgotten.
    #[track_caller]
    fn all(&self, row: &Row) {
        let all: BTreeSet<_> = row.keys().cloned().collect();
        let seen: BTreeSet<_> = self.changed.union(&self.without_source).cloned().collect();
        assert_eq!(all, seen);
    }
}

const WAIT: &str = "WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state IN (2, 4, 5))
    WAITFOR DELAY '00:00:00.05'\nGO\n";

/// An addition to SQL Server's: the algorithm of a database, and no backup's.
#[test]
fn a_database_under_aegis() {
    let server = Server::new();
    let query = "SELECT key_algorithm, key_length, encryption_state_desc FROM sys.dm_database_encryption_keys";
    let key = "ENCRYPTION BY SERVER CERTIFICATE First";
    server.done(&format!(
        "USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AEGIS_256 {key}
         ALTER DATABASE sales SET ENCRYPTION ON
         {WAIT}"
    ));
    let said = |algorithm: &str| {
        let row = server.row(query);
        assert_eq!(row["encryption_state_desc"], "ENCRYPTED");
        assert_eq!((&row["key_algorithm"], &row["key_length"]), (&algorithm.into(), &256.into()));
    };
    said("AEGIS");
    for (algorithm, shown) in [("AES_256", "AES"), ("AEGIS_256", "AEGIS")] {
        server.done(&format!(
            "USE sales ALTER DATABASE ENCRYPTION KEY REGENERATE WITH ALGORITHM = {algorithm}\nGO\n{WAIT}"
        ));
        said(shown);
    }
}

#[test]
fn encryption_keys() {
    let server = Server::new();
    server.done(
        "CREATE DATABASE other
         GO
         USE other CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_128 ENCRYPTION BY SERVER CERTIFICATE First
         USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE First",
    );
    let query = "SELECT * FROM sys.dm_database_encryption_keys WHERE database_id = DB_ID('sales')";
    let pending = server.row(query);
    let other = server
        .row("SELECT * FROM sys.dm_database_encryption_keys WHERE database_id = DB_ID('other')");
    let mut seen = Seen::default();
    seen.differ(&pending, &other, &["database_id", "key_length"]);
    assert_eq!(pending["encryption_state"], 1);
    assert_eq!(pending["encryption_state_desc"], "UNENCRYPTED");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    server.done(&format!("ALTER DATABASE sales SET ENCRYPTION ON\n{WAIT}"));
    let on = server.row(query);
    assert_eq!(
        (&on["encryption_state"], &on["encryption_state_desc"]),
        (&3.into(), &"ENCRYPTED".into())
    );
    seen.differ(
        &pending,
        &on,
        &["encryption_state", "encryption_state_desc", "create_date", "set_date"],
    );
    // Held in the middle, a scan shows how far it is.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let path = server.0.path("keys/data/sales.db");
    let mut reader = server.0.command(PELLUCID);
    reader.args(["run", "--", "python3", "-c"]).arg(format!(
        "import sqlite3,sys\nc=sqlite3.connect({:?})\nc.execute('BEGIN')\nc.execute('SELECT * FROM t').fetchall()\n\
         print('ready',flush=True)\nsys.stdin.read()",
        path.display().to_string()
    ));
    let mut reader = crate::support::Held::start(reader);
    server.done("USE sales ALTER DATABASE ENCRYPTION KEY REGENERATE WITH ALGORITHM = AES_192");
    let scanning = server.row(query);
    assert_eq!(scanning["encryption_state_desc"], "KEY_CHANGE_IN_PROGRESS");
    seen.differ(
        &on,
        &scanning,
        &[
            "regenerate_date",
            "modify_date",
            "encryption_scan_state",
            "encryption_scan_state_desc",
            "encryption_scan_modify_date",
        ],
    );
    let percent = server.row(
        "SELECT percent_complete FROM sys.dm_database_encryption_keys WHERE encryption_state = 4",
    );
    let requests = server
        .rows("SELECT * FROM sys.dm_exec_requests WHERE command = 'ALTER DATABASE ENCRYPTION'");
    reader.end();
    server.done(WAIT);
    assert!(requests.len() <= 1, "{requests:?}");
    assert!(percent["percent_complete"].is_number());
    seen.changed.insert("percent_complete".to_owned());
    server.done(
        "ALTER DATABASE sales SET COMPATIBILITY_LEVEL = 120
         GO
         USE sales
         ALTER DATABASE ENCRYPTION KEY ENCRYPTION BY SERVER CERTIFICATE Second",
    );
    let second = server.row(query);
    seen.differ(&on, &second, &["encryptor_thumbprint"]);
    server.done(&format!(
        "USE sales ALTER DATABASE ENCRYPTION KEY REGENERATE WITH ALGORITHM = TRIPLE_DES_3KEY\nGO\n{WAIT}"
    ));
    let triple = server.row(query);
    seen.differ(&second, &triple, &["key_algorithm"]);
    // One that a key file opens, attached.
    let key = server.0.path("raw.key");
    std::fs::write(&key, [7u8; 32]).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let raw = server.0.plain("raw.db");
    server.0.pellucid(&["encrypt", "raw.db", "--key-file", "raw.key"]).succeeded();
    let attach = format!(
        "CREATE DATABASE raw ON (FILENAME = '{}') FOR ATTACH\nGO\nSELECT encryptor_type FROM \
         sys.dm_database_encryption_keys WHERE database_id = DB_ID('raw')",
        raw.display()
    );
    let said = said_with(
        server.0.command(PELLUCID).args(["sql", "-W", "-h", "-1"]).env("PELLUCID_KEY_FILE", &key),
        &attach,
    );
    assert_eq!(said.succeeded().lines().next(), Some("KEY FILE"));
    seen.changed.insert("encryptor_type".to_owned());
    seen.nothing(&on, &["opened_date"]);
    seen.all(&on);
}

#[test]
fn certificates_and_keys() {
    let server = Server::new();
    let first = server.row("SELECT * FROM sys.certificates WHERE name = 'First'");
    let second = server.row("SELECT * FROM sys.certificates WHERE name = 'Second'");
    let mut seen = Seen::default();
    seen.differ(
        &first,
        &second,
        &[
            "name",
            "certificate_id",
            "cert_serial_number",
            "issuer_name",
            "subject",
            "expiry_date",
            "start_date",
            "thumbprint",
        ],
    );
    std::fs::create_dir_all(server.0.path("keys/backup")).unwrap();
    server.done(
        "BACKUP CERTIFICATE First TO FILE = 'First.cer' WITH PRIVATE KEY (FILE = 'First.key', ENCRYPTION BY PASSWORD = \
         'p@ssw0rd')",
    );
    let backed_up = server.row("SELECT * FROM sys.certificates WHERE name = 'First'");
    seen.differ(&first, &backed_up, &["pvt_key_last_backup_date"]);
    server.done("DROP CERTIFICATE First CREATE CERTIFICATE Half FROM FILE = 'First.cer'");
    let half = server.row("SELECT * FROM sys.certificates WHERE name = 'Half'");
    seen.differ(&first, &half, &["pvt_key_encryption_type", "pvt_key_encryption_type_desc"]);
    assert_eq!(half["pvt_key_encryption_type_desc"], "NO_PRIVATE_KEY");
    server.0.pellucid(&["cert", "create", "Large", "--bits", "4096"]).succeeded();
    let large = server.row("SELECT * FROM sys.certificates WHERE name = 'Large'");
    seen.differ(&first, &large, &["key_length"]);
    seen.nothing(&first, &["is_active_for_begin_dialog", "sid", "string_sid", "attested_by"]);
    seen.fixed(&first, &[("principal_id", 1.into())]);
    seen.all(&first);

    let master = "SELECT * FROM sys.symmetric_keys WHERE name = '##MS_DatabaseMasterKey##'";
    let encryptions = "SELECT crypt_type FROM sys.key_encryptions ORDER BY crypt_type";
    assert_eq!(server.rows(master).len(), 1);
    let kinds = |server: &Server| -> Vec<String> {
        let rows = server.rows(encryptions);
        rows.iter().map(|row| row["crypt_type"].as_str().unwrap().trim().to_owned()).collect()
    };
    assert_eq!(kinds(&server), ["ESKM", "ESP3"]);
    server.done("ALTER MASTER KEY ADD ENCRYPTION BY PASSWORD = 'another one'");
    assert_eq!(kinds(&server), ["ESKM", "ESP3", "ESP3"]);
    server.done(
        "DROP CERTIFICATE Half DROP CERTIFICATE Second DROP CERTIFICATE Large DROP MASTER KEY",
    );
    assert_eq!(server.rows(master).len(), 0);
    assert_eq!(kinds(&server), Vec::<String>::new());
}

#[test]
fn databases() {
    let server = Server::new();
    let query = "SELECT * FROM sys.databases WHERE name = 'sales'";
    let before = server.row(query);
    let mut seen = Seen::default();
    let master = server.row("SELECT * FROM sys.databases WHERE name = 'master'");
    seen.differ(
        &before,
        &master,
        &[
            "name",
            "database_id",
            "create_date",
            "is_master_key_encrypted_by_server",
            "physical_database_name",
        ],
    );
    server.done(
        "ALTER DATABASE sales SET RECOVERY FULL
         ALTER DATABASE sales SET COMPATIBILITY_LEVEL = 130
         ALTER DATABASE sales SET SINGLE_USER
         ALTER DATABASE sales SET AUTO_CLOSE ON
         ALTER DATABASE sales SET AUTO_SHRINK ON
         ALTER DATABASE sales SET AUTO_CREATE_STATISTICS OFF
         ALTER DATABASE sales SET AUTO_UPDATE_STATISTICS OFF
         ALTER DATABASE sales SET ALLOW_SNAPSHOT_ISOLATION ON
         ALTER DATABASE sales SET READ_COMMITTED_SNAPSHOT ON
         ALTER DATABASE sales SET PAGE_VERIFY NONE
         ALTER DATABASE sales SET READ_ONLY",
    );
    let set = server.row(query);
    seen.differ(
        &before,
        &set,
        &[
            "recovery_model",
            "recovery_model_desc",
            "compatibility_level",
            "user_access",
            "user_access_desc",
            "is_auto_close_on",
            "is_auto_shrink_on",
            "is_auto_create_stats_on",
            "is_auto_update_stats_on",
            "snapshot_isolation_state",
            "is_read_committed_snapshot_on",
            "page_verify_option",
            "page_verify_option_desc",
            "is_read_only",
        ],
    );
    server.done("ALTER DATABASE sales SET READ_WRITE ALTER DATABASE sales SET OFFLINE");
    let offline = server.row(query);
    seen.differ(&before, &offline, &["state", "state_desc"]);
    assert_eq!(offline["state_desc"], "OFFLINE");
    server.done("ALTER DATABASE sales SET ONLINE");
    let switches = [
        ("TRUSTWORTHY", "is_trustworthy_on"),
        ("DB_CHAINING", "is_db_chaining_on"),
        ("ANSI_NULL_DEFAULT", "is_ansi_null_default_on"),
        ("ANSI_NULLS", "is_ansi_nulls_on"),
        ("ANSI_PADDING", "is_ansi_padding_on"),
        ("ANSI_WARNINGS", "is_ansi_warnings_on"),
        ("ARITHABORT", "is_arithabort_on"),
        ("CONCAT_NULL_YIELDS_NULL", "is_concat_null_yields_null_on"),
        ("NUMERIC_ROUNDABORT", "is_numeric_roundabort_on"),
        ("QUOTED_IDENTIFIER", "is_quoted_identifier_on"),
        ("RECURSIVE_TRIGGERS", "is_recursive_triggers_on"),
        ("CURSOR_CLOSE_ON_COMMIT", "is_cursor_close_on_commit_on"),
        ("DATE_CORRELATION_OPTIMIZATION", "is_date_correlation_on"),
        ("AUTO_UPDATE_STATISTICS_ASYNC", "is_auto_update_stats_async_on"),
        ("MIXED_PAGE_ALLOCATION", "is_mixed_page_allocation_on"),
    ];
    let script = switches.map(|(option, _)| format!("ALTER DATABASE sales SET {option} ON\n"));
    server.done(&script.concat());
    let columns = switches.map(|(_, column)| column);
    seen.differ(&before, &server.row(query), &columns);
    seen.differ(&before, &set, &["snapshot_isolation_state_desc"]);
    server.done(&format!(
        "USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_128 ENCRYPTION BY SERVER CERTIFICATE First
         ALTER DATABASE sales SET ENCRYPTION ON\n{WAIT}"
    ));
    seen.differ(&before, &server.row(query), &["is_encrypted"]);
    seen.nothing(
        &before,
        &[
            "source_database_id",
            "owner_sid",
            "is_cleanly_shutdown",
            "replica_id",
            "group_database_id",
            "service_broker_guid",
            "resource_pool_id",
            "default_language_lcid",
            "default_language_name",
            "default_fulltext_language_lcid",
            "default_fulltext_language_name",
            "is_nested_triggers_on",
            "is_transform_noise_words_on",
            "two_digit_year_cutoff",
        ],
    );
    let never = [
        "is_fulltext_enabled",
        "is_parameterization_forced",
        "is_query_store_on",
        "is_subscribed",
        "is_merge_published",
        "is_sync_with_backup",
        "is_broker_enabled",
        "is_honor_broker_priority_on",
        "is_cdc_enabled",
        "is_local_cursor_default",
        "is_supplemental_logging_enabled",
        "is_auto_create_stats_incremental_on",
        "is_federation_member",
        "is_remote_data_archive_enabled",
        "is_accelerated_database_recovery_on",
        "is_ledger_on",
        "is_memory_optimized_elevate_to_snapshot_on",
        "is_temporal_history_retention_enabled",
        "is_result_set_caching_on",
        "is_tempdb_spill_to_remote_store",
        "is_stale_page_detection_on",
        "is_memory_optimized_enabled",
        "is_data_retention_enabled",
        "is_change_feed_enabled",
    ];
    seen.fixed(&before, &never.map(|column| (column, false.into())));
    seen.fixed(
        &before,
        &[
            ("catalog_collation_type", 0.into()),
            ("catalog_collation_type_desc", "DATABASE_DEFAULT".into()),
            ("containment", 0.into()),
            ("containment_desc", "NONE".into()),
            ("target_recovery_time_in_seconds", 0.into()),
            ("delayed_durability", 0.into()),
            ("delayed_durability_desc", "DISABLED".into()),
            ("collation_name", "SQL_Latin1_General_CP1_CI_AS".into()),
            ("is_in_standby", false.into()),
            ("is_published", false.into()),
            ("is_distributor", false.into()),
            // Without a chain of log backups; sql_log has one.
            ("log_reuse_wait", 0.into()),
            ("log_reuse_wait_desc", "NOTHING".into()),
        ],
    );
    seen.all(&before);

    let files =
        "SELECT * FROM sys.master_files WHERE database_id = DB_ID('sales') ORDER BY file_id";
    let before = server.rows(files);
    server.done(
        "ALTER DATABASE sales MODIFY FILE (NAME = sales, NEWNAME = sales_data, SIZE = 100MB, MAXSIZE = 1GB, FILEGROWTH = 10%)",
    );
    let after = server.rows(files);
    let mut seen = Seen::default();
    seen.differ(
        &before[0],
        &after[0],
        &["name", "size", "max_size", "growth", "is_percent_growth"],
    );
    seen.differ(
        &after[0],
        &after[1],
        &["file_id", "type", "type_desc", "physical_name", "data_space_id"],
    );
    server.done("ALTER DATABASE sales SET READ_ONLY");
    seen.differ(&after[0], &server.rows(files)[0], &["is_read_only"]);
    server.done("ALTER DATABASE sales SET READ_WRITE ALTER DATABASE sales SET OFFLINE");
    seen.differ(&after[0], &server.rows(files)[0], &["state", "state_desc"]);
    let other = server.row("SELECT * FROM sys.master_files WHERE database_id = 1");
    seen.differ(&after[0], &other, &["database_id"]);
    seen.nothing(
        &after[0],
        &[
            "file_guid",
            "create_lsn",
            "drop_lsn",
            "read_only_lsn",
            "read_write_lsn",
            "differential_base_guid",
            "differential_base_time",
            "redo_start_lsn",
            "redo_start_fork_guid",
            "redo_target_lsn",
            "redo_target_fork_guid",
            "backup_lsn",
            "credential_id",
        ],
    );
    let fixed = ["is_media_read_only", "is_sparse", "is_name_reserved"]
        .map(|column| (column, false.into()));
    seen.fixed(&after[0], &fixed);
    server.done("ALTER DATABASE sales SET ONLINE BACKUP DATABASE sales TO DISK = 'full.bak'");
    seen.differ(&after[0], &server.rows(files)[0], &["differential_base_lsn"]);
    seen.all(&after[0]);
}

/// Columns, indexes and partitions of what is in a database.
#[test]
fn what_is_in_a_database() {
    let server = Server::new();
    server.done(
        "USE sales
         CREATE TABLE items(id INT IDENTITY(1, 1) PRIMARY KEY, code VARCHAR(10) COLLATE Latin1_General_CS_AS NOT NULL UNIQUE,
           price DECIMAL(9, 2) DEFAULT 1, made DATETIME2(3), big NVARCHAR(MAX))
         CREATE TABLE wide(id BIGINT IDENTITY(1, 1) PRIMARY KEY)
         CREATE INDEX prices ON items(price DESC, made)
         INSERT items(code) VALUES ('a'), ('b')
         SELECT id, code INTO copied FROM items",
    );
    let of = |query: &str| server.rows(&format!("USE sales {query}"));
    let columns =
        of("SELECT * FROM sys.columns WHERE object_id = OBJECT_ID('items') ORDER BY column_id");
    let mut seen = Seen::default();
    let kind = [
        "name",
        "column_id",
        "system_type_id",
        "user_type_id",
        "max_length",
        "precision",
        "is_identity",
    ];
    seen.differ(&columns[0], &columns[1], &kind);
    seen.differ(&columns[0], &columns[1], &["collation_name", "is_ansi_padded"]);
    seen.differ(&columns[1], &columns[2], &["scale", "is_nullable", "default_object_id"]);
    let other = of("SELECT * FROM sys.columns WHERE object_id = OBJECT_ID('t')");
    seen.differ(&columns[0], &other[0], &["object_id"]);
    let bits = columns[0].iter().filter(|(_, value)| value.as_bool() == Some(false));
    let off: Vec<_> = bits.map(|(name, _)| (name.clone(), false.into())).collect();
    for (name, value) in &off {
        if !seen.changed.contains(name) {
            seen.fixed(&columns[0], &[(name.as_str(), serde_json::Value::clone(value))]);
        }
    }
    assert!(off.len() > 10, "{off:?}");
    seen.fixed(
        &columns[0],
        &[
            ("xml_collection_id", 0.into()),
            ("rule_object_id", 0.into()),
            ("generated_always_type", 0.into()),
            ("generated_always_type_desc", "NOT_APPLICABLE".into()),
        ],
    );
    seen.nothing(
        &columns[0],
        &[
            "encryption_type",
            "encryption_type_desc",
            "encryption_algorithm_name",
            "column_encryption_key_id",
            "column_encryption_key_database_name",
            "graph_type",
            "graph_type_desc",
            "ledger_view_column_type",
            "ledger_view_column_type_desc",
        ],
    );
    seen.all(&columns[0]);
    let shown = |row: &Row, name: &str| row[name].to_string();
    assert_eq!(shown(&columns[3], "precision") + "," + &shown(&columns[3], "scale"), "23,3");

    // An identity has the type that it was declared with, and so has its copy.
    let types = of(
        "SELECT CONCAT(TABLE_NAME, ' ', DATA_TYPE, ' ', NUMERIC_PRECISION) AS one FROM INFORMATION_SCHEMA.COLUMNS \
         WHERE COLUMN_NAME = 'id' ORDER BY TABLE_NAME",
    );
    let types: Vec<_> = types.iter().map(|row| row["one"].as_str().unwrap()).collect();
    assert_eq!(types, ["copied int 10", "items int 10", "t int 10", "wide bigint 19"]);
    let default =
        &of("SELECT COLUMN_DEFAULT FROM INFORMATION_SCHEMA.COLUMNS WHERE COLUMN_NAME = 'price'")[0];
    assert_eq!(default["COLUMN_DEFAULT"], "(1)");

    let indexes =
        of("SELECT * FROM sys.indexes WHERE object_id = OBJECT_ID('items') ORDER BY index_id");
    let shown: Vec<_> = indexes.iter().map(|row| row["type_desc"].as_str().unwrap()).collect();
    assert_eq!(shown, ["CLUSTERED", "NONCLUSTERED", "NONCLUSTERED"]);
    assert_eq!(
        (&indexes[1]["is_unique_constraint"], &indexes[2]["is_unique_constraint"]),
        (&true.into(), &false.into())
    );
    assert_eq!((&indexes[2]["name"], &indexes[2]["fill_factor"]), (&"prices".into(), &0.into()));
    let of_index = of(
        "SELECT CONCAT(c.name, ' ', ic.key_ordinal, ' ', ic.is_descending_key) AS one FROM sys.index_columns ic \
         JOIN sys.indexes i ON i.object_id = ic.object_id AND i.index_id = ic.index_id JOIN sys.columns c ON \
         c.object_id = ic.object_id AND c.column_id = ic.column_id WHERE i.name = 'prices' ORDER BY ic.key_ordinal",
    );
    let of_index: Vec<_> = of_index.iter().map(|row| row["one"].as_str().unwrap()).collect();
    assert_eq!(of_index, ["price 1 1", "made 2 0"]);
    let keys = of("SELECT type FROM sys.key_constraints WHERE parent_object_id = OBJECT_ID('items') ORDER BY type");
    assert_eq!(
        keys.iter().map(|row| row["type"].as_str().unwrap().trim()).collect::<Vec<_>>(),
        ["PK", "UQ"]
    );

    let rows = |table: &str| {
        let query = format!(
            "SELECT p.rows, s.row_count, s.used_page_count FROM sys.partitions p JOIN sys.dm_db_partition_stats s ON \
             s.partition_id = p.partition_id WHERE p.object_id = OBJECT_ID('{table}') AND p.index_id < 2"
        );
        of(&query).remove(0)
    };
    assert_eq!((&rows("items")["rows"], &rows("items")["row_count"]), (&2.into(), &2.into()));
    assert_eq!((&rows("wide")["rows"], &rows("items")["used_page_count"]), (&0.into(), &1.into()));
    let shipped = of(
        "SELECT COUNT(*) AS n FROM sys.system_columns WHERE object_id = OBJECT_ID('sys.databases')",
    );
    let every = of(
        "SELECT COUNT(*) AS n FROM sys.all_columns WHERE object_id = OBJECT_ID('sys.databases')",
    );
    assert_eq!(shipped[0]["n"], every[0]["n"]);
    assert!(shipped[0]["n"].as_u64().unwrap() > 80, "{shipped:?}");

    // Scripts look there for what a version has.
    for query in [
        "SELECT COUNT(*) AS n FROM msdb..syscolumns WHERE name = 'is_copy_only' AND id = OBJECT_ID('msdb.dbo.backupset')",
        "SELECT COUNT(*) AS n FROM msdb.INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'backupset' AND COLUMN_NAME = 'is_copy_only'",
        "SELECT COUNT(*) AS n FROM msdb.sys.tables WHERE name = 'backupset'",
        "SELECT COUNT(*) AS n FROM msdb.dbo.sysobjects WHERE name = 'backupset'",
        "SELECT COUNT(*) AS n FROM master..sysprocesses WHERE spid = @@SPID AND dbid = DB_ID('sales')",
        "SELECT COUNT(*) AS n FROM master.sys.dm_exec_sessions WHERE session_id = @@SPID AND database_id = DB_ID('sales')",
        "SELECT COUNT(*) AS n FROM sysprocesses WHERE loginame IS NOT NULL AND status = 'running'",
    ] {
        assert_eq!(of(query)[0]["n"], 1, "{query}");
    }
}

/// Scripts that take all columns rely on SQL Server's order; first and last columns of each.
#[test]
fn columns_stand_in_their_order() {
    let server = Server::new();
    for (view, first, last) in [
        ("sys.columns", "object_id", "is_dropped_ledger_column"),
        ("sys.objects", "name", "is_schema_published"),
        ("sys.tables", "name", "is_dropped_ledger_table"),
        ("sys.views", "name", "is_dropped_ledger_view"),
        ("sys.procedures", "name", "skips_repl_constraints"),
        ("sys.sql_modules", "object_id", "is_inlineable"),
        ("sys.indexes", "object_id", "optimize_for_sequential_key"),
        ("sys.database_files", "file_id", "backup_lsn"),
        ("sys.master_files", "database_id", "credential_id"),
        ("sys.servers", "server_id", "is_rda_server"),
        ("sys.database_principals", "name", "allow_encrypted_value_modifications"),
        ("sys.dm_exec_requests", "session_id", "dist_statement_id"),
        ("sys.dm_exec_sessions", "session_id", "contained_availability_group_id"),
        ("sys.dm_os_sys_info", "cpu_ticks", "container_type_desc"),
        ("sys.sysobjects", "name", "cache"),
        ("sysdatabases", "name", "version"),
        ("sys.sql_logins", "name", "password_hash"),
        ("sys.syslogins", "sid", "loginname"),
        ("sysusers", "uid", "isapprole"),
        ("sysservers", "srvid", "nonsqlsub"),
        ("sys.dm_server_services", "servicename", "instant_file_initialization_enabled"),
        ("msdb.dbo.backupset", "backup_set_id", "compression_algorithm"),
        ("msdb.dbo.backupfile", "backup_set_id", "is_present"),
        ("msdb.dbo.sysjobsteps", "job_id", "step_uid"),
        ("sys.assemblies", "name", "is_user_defined"),
        ("sys.service_queues", "name", "is_poison_message_handling_enabled"),
        ("sys.server_audits", "audit_id", "is_operator_audit"),
        ("msdb.dbo.sysalerts", "id", "category_id"),
    ] {
        let lines = server.lines(&format!("SELECT * FROM {view}"));
        let result = lines.iter().find(|line| line["columns"].is_array()).expect(view);
        let columns = result["columns"].as_array().unwrap();
        let ends = (columns[0]["name"].as_str(), columns[columns.len() - 1]["name"].as_str());
        assert_eq!(ends, (Some(first), Some(last)), "{view}");
    }
    // What nothing here can be: no rows.
    for view in [
        "sys.assemblies",
        "sys.services",
        "sys.triggers",
        "sys.server_triggers",
        "msdb.dbo.sysmail_profile",
    ] {
        assert_eq!(server.rows(&format!("SELECT * FROM {view}")).len(), 0, "{view}");
    }
    let governor = server.row("SELECT * FROM sys.resource_governor_configuration");
    assert_eq!(governor["is_enabled"], false);
}
