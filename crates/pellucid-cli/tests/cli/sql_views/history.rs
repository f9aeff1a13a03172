//! Columns of the history: of msdb's tables, and of what media say of themselves.

use super::*;

#[test]
fn the_history() {
    let server = Server::new();
    server.done(
        "ALTER DATABASE sales SET RECOVERY FULL
         BACKUP DATABASE sales TO DISK = 'a.bak' WITH FORMAT, NAME = 'one', DESCRIPTION = 'the first', MEDIANAME = 'm', \
           MEDIADESCRIPTION = 'medium', EXPIREDATE = '20990101'",
    );
    std::thread::sleep(std::time::Duration::from_millis(20));
    server.done(
        "CREATE DATABASE other
         ALTER DATABASE sales SET RECOVERY SIMPLE
         ALTER DATABASE sales SET COMPATIBILITY_LEVEL = 120
         USE sales
         ;WITH n(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < 500)
         INSERT INTO t SELECT n, REPLICATE(N'x', 40) FROM n OPTION (MAXRECURSION 0)
         USE master
         BACKUP DATABASE sales TO DISK = 'b1.bak', DISK = 'b2.bak' MIRROR TO DISK = 'c1.bak', DISK = 'c2.bak'
           WITH FORMAT, COMPRESSION, COPY_ONLY, ENCRYPTION (ALGORITHM = AES_192, SERVER CERTIFICATE = First)
         BACKUP DATABASE other TO DISK = 'a.bak' WITH NOINIT, SKIP
         BACKUP DATABASE sales TO DISK = 'd.bak' WITH DIFFERENTIAL, FORMAT",
    );
    let sets = server.rows("SELECT * FROM msdb.dbo.backupset ORDER BY backup_set_id");
    assert_eq!(sets.len(), 4);
    let mut seen = Seen::default();
    seen.differ(
        &sets[0],
        &sets[1],
        &[
            "backup_set_id",
            "backup_set_uuid",
            "media_set_id",
            "expiration_date",
            "name",
            "description",
            "backup_start_date",
            "backup_finish_date",
            "compatibility_level",
            "backup_size",
            "recovery_model",
            "is_copy_only",
            "compressed_backup_size",
            "key_algorithm",
            "encryptor_thumbprint",
            "encryptor_type",
            "compression_algorithm",
            "first_lsn",
            "last_lsn",
            "checkpoint_lsn",
            "database_backup_lsn",
        ],
    );
    let database =
        ["position", "database_name", "database_creation_date", "database_guid", "family_guid"];
    seen.differ(&sets[0], &sets[2], &database);
    assert_eq!(sets[0]["database_guid"], sets[1]["database_guid"]);
    seen.differ(&sets[0], &sets[3], &["type", "differential_base_guid", "differential_base_lsn"]);
    assert_eq!(sets[3]["type"], "I");
    assert_eq!(sets[1]["key_algorithm"], "AES_192");
    assert_eq!(sets[1]["encryptor_type"], "CERTIFICATE");
    // The same on every row of this machine and user; other ones have others.
    for column in ["user_name", "server_name", "machine_name"] {
        assert!(sets[0][column].is_string(), "{column}");
        seen.changed.insert(column.to_owned());
    }
    assert_eq!(
        (&sets[0]["has_backup_checksums"], &sets[0]["is_damaged"]),
        (&true.into(), &false.into())
    );
    seen.changed.insert("is_damaged".to_owned());
    seen.fixed(
        &sets[0],
        &[
            ("has_backup_checksums", true.into()),
            ("begins_log_chain", sets[0]["begins_log_chain"].clone()),
            ("first_family_number", 1.into()),
            ("first_media_number", 1.into()),
            ("last_media_number", 1.into()),
            ("catalog_family_number", 1.into()),
            ("catalog_media_number", 1.into()),
            ("collation_name", "SQL_Latin1_General_CP1_CI_AS".into()),
            // What no set is here; scripts ask for 0.
            ("is_password_protected", false.into()),
            ("is_readonly", false.into()),
            ("has_bulk_logged_data", false.into()),
            ("is_snapshot", false.into()),
            ("is_single_user", false.into()),
            ("has_incomplete_metadata", false.into()),
            ("is_force_offline", false.into()),
        ],
    );
    seen.nothing(
        &sets[0],
        &[
            "last_family_number",
            "time_zone",
            "mtf_minor_version",
            "sort_order",
            "code_page",
            "database_version",
            "flags",
            "unicode_locale",
            "unicode_compare_style",
            "software_vendor_id",
            "software_major_version",
            "software_minor_version",
            "software_build_version",
            "first_recovery_fork_guid",
            "last_recovery_fork_guid",
            "fork_point_lsn",
        ],
    );
    seen.without_source.insert("last_valid_restore_time".to_owned());
    seen.all(&sets[0]);

    let media = server.rows("SELECT * FROM msdb.dbo.backupmediaset ORDER BY media_set_id");
    let mut seen = Seen::default();
    seen.differ(
        &media[0],
        &media[1],
        &[
            "media_set_id",
            "media_uuid",
            "media_family_count",
            "name",
            "description",
            "mirror_count",
            "is_compressed",
            "is_encrypted",
        ],
    );
    for column in
        ["software_name", "software_vendor_id", "MTF_major_version", "is_password_protected"]
    {
        seen.without_source.insert(column.to_owned());
    }
    seen.all(&media[0]);

    let families =
        server.rows("SELECT * FROM msdb.dbo.backupmediafamily WHERE media_set_id = 2 ORDER BY mirror, family_sequence_number");
    assert_eq!(families.len(), 4);
    let mut seen = Seen::default();
    seen.differ(&families[0], &families[1], &["family_sequence_number", "physical_device_name"]);
    seen.differ(&families[0], &families[2], &["mirror"]);
    let other = server.row("SELECT * FROM msdb.dbo.backupmediafamily WHERE media_set_id = 1");
    seen.differ(&families[0], &other, &["media_set_id"]);
    for column in [
        "media_family_id",
        "media_count",
        "logical_device_name",
        "device_type",
        "physical_block_size",
    ] {
        seen.without_source.insert(column.to_owned());
    }
    assert_eq!(families[0]["device_type"], 2);
    seen.all(&families[0]);

    let files = server.rows("SELECT * FROM msdb.dbo.backupfile ORDER BY backup_set_id");
    let mut seen = Seen::default();
    seen.differ(
        &files[0],
        &files[1],
        &["backup_set_id", "backed_up_page_count", "file_size", "backup_size"],
    );
    seen.differ(&files[0], &files[2], &["logical_name", "physical_name"]);
    for column in files[0].keys() {
        if !seen.changed.contains(column) {
            seen.without_source.insert(column.clone());
        }
    }
    assert_eq!((&files[0]["page_size"], &files[0]["file_type"]), (&4096.into(), &"D".into()));
    assert_eq!(files[0]["state_desc"], "ONLINE");

    let groups = server.rows("SELECT * FROM msdb.dbo.backupfilegroup ORDER BY backup_set_id");
    let mut seen = Seen::default();
    seen.differ(&groups[0], &groups[1], &["backup_set_id"]);
    seen.fixed(
        &groups[0],
        &[
            ("name", "PRIMARY".into()),
            ("filegroup_id", 1.into()),
            ("type", "FG".into()),
            ("type_desc", "ROWS_FILEGROUP".into()),
            ("is_default", true.into()),
            ("is_readonly", false.into()),
        ],
    );
    seen.nothing(&groups[0], &["filegroup_guid", "log_filegroup_guid"]);
    seen.all(&groups[0]);

    server.done(
        "RESTORE DATABASE copy FROM DISK = 'a.bak' WITH MOVE 'sales' TO 'C:\\copy.db', NORECOVERY",
    );
    server.done(
        "RESTORE DATABASE copy FROM DISK = 'd.bak' WITH RECOVERY
         RESTORE DATABASE sales FROM DISK = 'b1.bak', DISK = 'b2.bak' WITH REPLACE",
    );
    let restores = server.rows("SELECT * FROM msdb.dbo.restorehistory ORDER BY restore_history_id");
    assert_eq!(restores.len(), 3, "{restores:?}");
    let mut seen = Seen::default();
    seen.differ(
        &restores[0],
        &restores[1],
        &["restore_history_id", "restore_date", "backup_set_id", "restore_type", "recovery"],
    );
    seen.differ(
        &restores[1],
        &restores[2],
        &["destination_database_name", "device_count", "replace"],
    );
    let groups = server.rows("SELECT * FROM msdb.dbo.restorefilegroup");
    assert_eq!(groups.len(), 2, "{groups:?}");
    assert_eq!(groups[0]["filegroup_name"], "PRIMARY");
    // What the history knew of a set it knows after a restore.
    let again = server.rows("SELECT * FROM msdb.dbo.backupset ORDER BY backup_set_id");
    assert_eq!(again, sets);
    assert!(restores[0]["user_name"].is_string());
    seen.changed.insert("user_name".to_owned());
    seen.fixed(&restores[0], &[("restart", false.into())]);
    seen.nothing(&restores[0], &["stop_at", "stop_at_mark_name", "stop_before"]);
    seen.all(&restores[0]);
}

#[test]
fn what_media_say() {
    let server = Server::new();
    server.done(
        "BACKUP DATABASE sales TO DISK = 'a.bak' WITH FORMAT, NAME = 'one', DESCRIPTION = 'first', EXPIREDATE = '20990101', \
           MEDIANAME = 'm', MEDIADESCRIPTION = 'medium'",
    );
    std::thread::sleep(std::time::Duration::from_millis(20));
    server.done(&format!(
        "ALTER DATABASE sales SET RECOVERY FULL
         ALTER DATABASE sales SET COMPATIBILITY_LEVEL = 120
         BACKUP DATABASE sales TO DISK = 'd.bak' WITH DIFFERENTIAL, FORMAT
         BACKUP DATABASE sales TO DISK = 'd.bak' WITH COPY_ONLY, NOINIT
         USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_128 ENCRYPTION BY SERVER CERTIFICATE First
         INSERT INTO t VALUES (2, 'Bob')
         ALTER DATABASE sales SET ENCRYPTION ON\n{WAIT}
         CREATE DATABASE other ON (NAME = o, FILENAME = 'C:\\o.db')
         BACKUP DATABASE sales TO DISK = 'e1.bak', DISK = 'e2.bak' WITH FORMAT, COMPRESSION
         BACKUP DATABASE other TO DISK = 'o.bak' WITH FORMAT"
    ));
    let of = |what: &str, files: &str| server.rows(&format!("RESTORE {what} FROM {files}"));
    let one = &of("HEADERONLY", "DISK = 'a.bak'")[0];
    let two = of("HEADERONLY", "DISK = 'd.bak'");
    let sealed = &of("HEADERONLY", "DISK = 'e1.bak', DISK = 'e2.bak'")[0];
    let other = &of("HEADERONLY", "DISK = 'o.bak'")[0];
    let mut seen = Seen::default();
    seen.differ(
        one,
        &two[0],
        &[
            "BackupName",
            "BackupDescription",
            "BackupType",
            "ExpirationDate",
            "BackupStartDate",
            "BackupFinishDate",
            "CompatibilityLevel",
            "RecoveryModel",
            "DifferentialBaseGUID",
            "BackupTypeDescription",
            "BackupSetGUID",
            "FamilyGUID",
            "CompressedBackupSize",
        ],
    );
    seen.differ(&two[0], &two[1], &["Position", "IsCopyOnly", "BackupSize"]);
    seen.differ(
        one,
        sealed,
        &[
            "Compressed",
            "CompressionAlgorithm",
            "KeyAlgorithm",
            "EncryptorThumbprint",
            "EncryptorType",
            "BindingID",
        ],
    );
    seen.differ(one, other, &["DatabaseName", "DatabaseCreationDate"]);
    for column in ["UserName", "ServerName", "MachineName"] {
        assert!(one[column].is_string(), "{column}");
        seen.changed.insert(column.to_owned());
    }
    for column in
        ["IsDamaged", "SoftwareVersionMajor", "SoftwareVersionMinor", "SoftwareVersionBuild"]
    {
        seen.changed.insert(column.to_owned());
    }
    seen.fixed(
        one,
        &[
            ("DeviceType", 2.into()),
            ("SoftwareVendorId", 0.into()),
            ("HasBulkLoggedData", false.into()),
            ("IsSnapshot", false.into()),
            ("HasBackupChecksums", true.into()),
            ("BeginsLogChain", false.into()),
            ("HasIncompleteMetaData", false.into()),
            ("IsForceOffline", false.into()),
            ("containment", 0.into()),
        ],
    );
    seen.nothing(
        one,
        &[
            "DatabaseVersion",
            "FirstLSN",
            "LastLSN",
            "CheckpointLSN",
            "DatabaseBackupLSN",
            "SortOrder",
            "CodePage",
            "UnicodeLocaleId",
            "UnicodeComparisonStyle",
            "Flags",
            "RecoveryForkID",
            "Collation",
            "IsReadOnly",
            "IsSingleUser",
            "FirstRecoveryForkID",
            "ForkPointLSN",
            "DifferentialBaseLSN",
            "LastValidRestoreTime",
            "TimeZone",
        ],
    );
    seen.all(one);

    let plain = &of("FILELISTONLY", "DISK = 'a.bak'")[0];
    let sealed = &of("FILELISTONLY", "DISK = 'e1.bak', DISK = 'e2.bak'")[0];
    let other = of("FILELISTONLY", "DISK = 'o.bak'");
    let difference = &of("FILELISTONLY", "DISK = 'd.bak'")[0];
    let mut seen = Seen::default();
    seen.differ(plain, &other[0], &["LogicalName", "PhysicalName", "Size", "BackupSizeInBytes"]);
    seen.differ(
        &other[0],
        &other[1],
        &["Type", "FileGroupName", "FileID", "FileGroupID", "MaxSize"],
    );
    seen.differ(plain, sealed, &["TDEThumbprint"]);
    seen.differ(plain, difference, &["DifferentialBaseGUID"]);
    seen.fixed(
        plain,
        &[
            ("SourceBlockSize", 4096.into()),
            ("IsReadOnly", false.into()),
            ("IsPresent", true.into()),
        ],
    );
    seen.nothing(
        plain,
        &[
            "CreateLSN",
            "DropLSN",
            "UniqueID",
            "ReadOnlyLSN",
            "ReadWriteLSN",
            "LogGroupGUID",
            "DifferentialBaseLSN",
            "SnapshotURL",
        ],
    );
    seen.all(plain);

    let one = &of("LABELONLY", "DISK = 'a.bak'")[0];
    let striped = &of("LABELONLY", "DISK = 'e1.bak', DISK = 'e2.bak'")[0];
    let mut seen = Seen::default();
    seen.differ(
        one,
        striped,
        &[
            "MediaName",
            "MediaSetId",
            "FamilyCount",
            "MediaFamilyId",
            "MediaDescription",
            "MediaDate",
            "IsCompressed",
            "IsEncrypted",
        ],
    );
    for column in ["FamilySequenceNumber", "Mirror_Count"] {
        seen.changed.insert(column.to_owned());
    }
    seen.fixed(
        one,
        &[
            ("MediaSequenceNumber", 1.into()),
            ("MediaLabelPresent", 1.into()),
            ("SoftwareName", "Pellucid".into()),
            ("SoftwareVendorId", 0.into()),
        ],
    );
    seen.all(one);
}
