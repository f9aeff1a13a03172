//! Goal: every statement on keys, SQL Server's reference for each. Method: a table of what is written and what is
//! printed, typed by hand.

use pellucid_tsql_testing::{prints_as, prints_the_same, round_trip, ToSql};

#[test]
fn service_master_key() {
    prints_the_same(&[
        "ALTER SERVICE MASTER KEY REGENERATE",
        "ALTER SERVICE MASTER KEY FORCE REGENERATE",
        "BACKUP SERVICE MASTER KEY TO FILE = 'f' ENCRYPTION BY PASSWORD = 'p'",
        "RESTORE SERVICE MASTER KEY FROM FILE = 'f' DECRYPTION BY PASSWORD = 'p'",
        "RESTORE SERVICE MASTER KEY FROM FILE = 'f' DECRYPTION BY PASSWORD = 'p' FORCE",
    ]);
}

#[test]
fn database_master_key() {
    prints_the_same(&[
        "CREATE MASTER KEY",
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p'",
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'it''s'",
        "CLOSE MASTER KEY",
        "DROP MASTER KEY",
        "ALTER MASTER KEY REGENERATE WITH ENCRYPTION BY PASSWORD = 'p'",
        "ALTER MASTER KEY FORCE REGENERATE WITH ENCRYPTION BY PASSWORD = 'p'",
        "ALTER MASTER KEY ADD ENCRYPTION BY SERVICE MASTER KEY",
        "ALTER MASTER KEY ADD ENCRYPTION BY PASSWORD = 'p'",
        "ALTER MASTER KEY DROP ENCRYPTION BY SERVICE MASTER KEY",
        "ALTER MASTER KEY DROP ENCRYPTION BY PASSWORD = 'p'",
        "BACKUP MASTER KEY TO FILE = N'f' ENCRYPTION BY PASSWORD = 'p'",
        "RESTORE MASTER KEY FROM FILE = 'f' DECRYPTION BY PASSWORD = 'p' ENCRYPTION BY PASSWORD = 'q'",
        "RESTORE MASTER KEY FROM FILE = 'f' DECRYPTION BY PASSWORD = 'p' ENCRYPTION BY PASSWORD = 'q' FORCE",
    ]);
    prints_as(&[(
        "create\nMaster Key encryption By -- why\n password=N'p'",
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p'",
    )]);
}

#[test]
fn certificates() {
    prints_the_same(&[
        "CREATE CERTIFICATE c WITH SUBJECT = 's'",
        "CREATE CERTIFICATE c AUTHORIZATION u WITH SUBJECT = N's', START_DATE = '20260101', EXPIRY_DATE = '20300101'",
        "CREATE CERTIFICATE c ENCRYPTION BY PASSWORD = 'p' WITH SUBJECT = 's'",
        "CREATE CERTIFICATE c WITH SUBJECT = 's' ACTIVE FOR BEGIN_DIALOG = OFF",
        "CREATE CERTIFICATE c FROM ASSEMBLY a",
        "CREATE CERTIFICATE c FROM FILE = 'f'",
        "CREATE CERTIFICATE c FROM EXECUTABLE FILE = 'f'",
        "CREATE CERTIFICATE c FROM FILE = 'f' WITH PRIVATE KEY (FILE = 'k', DECRYPTION BY PASSWORD = 'p')",
        "CREATE CERTIFICATE c FROM FILE = 'f' WITH PRIVATE KEY (FILE = 'k', DECRYPTION BY PASSWORD = 'p', ENCRYPTION BY PASSWORD = 'q') ACTIVE FOR BEGIN_DIALOG = ON",
        "CREATE CERTIFICATE c FROM FILE = 'f' WITH FORMAT = 'PFX', PRIVATE KEY (DECRYPTION BY PASSWORD = 'p')",
        "CREATE CERTIFICATE c FROM BINARY = 0x3082",
        "CREATE CERTIFICATE c FROM BINARY = 0x3082 WITH PRIVATE KEY (BINARY = 0x00FF, DECRYPTION BY PASSWORD = 'p')",
        "ALTER CERTIFICATE c REMOVE PRIVATE KEY",
        "ALTER CERTIFICATE c WITH PRIVATE KEY (FILE = 'k', DECRYPTION BY PASSWORD = 'p')",
        "ALTER CERTIFICATE c WITH ACTIVE FOR BEGIN_DIALOG = ON",
        "BACKUP CERTIFICATE c TO FILE = 'f'",
        "BACKUP CERTIFICATE c TO FILE = 'f' WITH PRIVATE KEY (FILE = 'k', ENCRYPTION BY PASSWORD = 'p')",
        "BACKUP CERTIFICATE c TO FILE = 'f' WITH PRIVATE KEY (FILE = 'k', DECRYPTION BY PASSWORD = 'q', ENCRYPTION BY PASSWORD = 'p')",
        "BACKUP CERTIFICATE c TO FILE = 'f' WITH FORMAT = 'PFX', PRIVATE KEY (ENCRYPTION BY PASSWORD = 'p', ALGORITHM = 'AES_256')",
        "BACKUP CERTIFICATE c TO FILE = 'f' WITH FORMAT = 'DER'",
        "DROP CERTIFICATE [my cert]",
    ]);
    prints_as(&[
        (
            "CREATE CERTIFICATE c WITH SUBJECT = 's', EXPIRY_DATE = 'e', START_DATE = 'd'",
            "CREATE CERTIFICATE c WITH SUBJECT = 's', START_DATE = 'd', EXPIRY_DATE = 'e'",
        ),
        (
            "CREATE CERTIFICATE c FROM FILE = 'f' WITH PRIVATE KEY (DECRYPTION BY PASSWORD = 'p', FILE = 'k')",
            "CREATE CERTIFICATE c FROM FILE = 'f' WITH PRIVATE KEY (FILE = 'k', DECRYPTION BY PASSWORD = 'p')",
        ),
    ]);
}

#[test]
fn database_encryption_keys() {
    for algorithm in ["AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY", "AEGIS_256"] {
        let create = format!(
            "CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = {algorithm} ENCRYPTION BY SERVER"
        );
        let alter =
            format!("ALTER DATABASE ENCRYPTION KEY REGENERATE WITH ALGORITHM = {algorithm}");
        let (first, second) =
            (format!("{create} CERTIFICATE c"), format!("{create} ASYMMETRIC KEY k"));
        prints_the_same(&[&first, &second, &alter]);
    }
    prints_the_same(&[
        "ALTER DATABASE ENCRYPTION KEY ENCRYPTION BY SERVER CERTIFICATE c",
        "ALTER DATABASE ENCRYPTION KEY ENCRYPTION BY SERVER ASYMMETRIC KEY k",
        "DROP DATABASE ENCRYPTION KEY",
        // Names that only look like it.
        "CREATE DATABASE [ENCRYPTION]",
        "DROP DATABASE [ENCRYPTION]",
    ]);
    prints_as(&[("DROP DATABASE encryption", "DROP DATABASE [encryption]")]);
}

#[test]
fn providers() {
    prints_the_same(&[
        "CREATE CRYPTOGRAPHIC PROVIDER p FROM FILE = 'p.dll'",
        "DROP CRYPTOGRAPHIC PROVIDER p",
        "CREATE CREDENTIAL c WITH IDENTITY = 'i'",
        "CREATE CREDENTIAL c WITH IDENTITY = 'i', SECRET = 's' FOR CRYPTOGRAPHIC PROVIDER p",
        "CREATE CREDENTIAL [https://store/container] WITH IDENTITY = 'SHARED ACCESS SIGNATURE', SECRET = 's'",
        "DROP CREDENTIAL c",
        "CREATE ASYMMETRIC KEY k FROM PROVIDER p WITH ALGORITHM = RSA_2048, PROVIDER_KEY_NAME = 'n'",
        "CREATE ASYMMETRIC KEY k AUTHORIZATION u FROM PROVIDER p WITH PROVIDER_KEY_NAME = 'n', CREATION_DISPOSITION = OPEN_EXISTING",
        "CREATE ASYMMETRIC KEY k FROM PROVIDER p WITH CREATION_DISPOSITION = CREATE_NEW",
        "DROP ASYMMETRIC KEY k",
        "DROP ASYMMETRIC KEY k REMOVE PROVIDER KEY",
        "CREATE LOGIN l FROM ASYMMETRIC KEY k",
        "ALTER LOGIN l ADD CREDENTIAL c",
        "ALTER LOGIN l DROP CREDENTIAL c",
        "EXECUTE sp_configure 'EKM provider enabled', 1",
        "RECONFIGURE",
        "RECONFIGURE WITH OVERRIDE",
    ]);
}

#[test]
fn every_secret_is_masked_and_the_mask_parses() {
    for statement in [
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'MARKER'",
        "RESTORE MASTER KEY FROM FILE = 'f' DECRYPTION BY PASSWORD = 'MARKER' ENCRYPTION BY PASSWORD = 'MARKER'",
        "ALTER MASTER KEY DROP ENCRYPTION BY PASSWORD = 'MARKER'",
        "CREATE CERTIFICATE c ENCRYPTION BY PASSWORD = 'MARKER' WITH SUBJECT = 's'",
        "CREATE CERTIFICATE c FROM BINARY = 0x30 WITH PRIVATE KEY (BINARY = 0xBADC0FFEE0, DECRYPTION BY PASSWORD = 'MARKER', ENCRYPTION BY PASSWORD = 'MARKER')",
        "CREATE CREDENTIAL c WITH IDENTITY = 'i', SECRET = 'MARKER'",
        "RESTORE DATABASE d FROM DISK = 'f' WITH PASSWORD = 'MARKER', MEDIAPASSWORD = 'MARKER'",
        "EXEC('CREATE MASTER KEY ENCRYPTION BY PASSWORD = ''MARKER''')",
        "SET @sql = N'OPEN MASTER KEY DECRYPTION BY PASSWORD = ''MARKER''; PRINT 1'",
        "EXEC sp_executesql N'BACKUP MASTER KEY TO FILE = ''f'' ENCRYPTION BY PASSWORD = ''MARKER'''",
    ] {
        let parsed = &round_trip(statement)[0];
        let (shown, debug) = (parsed.to_sql(), format!("{parsed:?}"));
        for secret in ["MARKER", "BADC0FFEE0"] {
            assert!(!shown.contains(secret), "{shown}");
            // A string that holds a statement is data; its own statement masks it when it runs.
            assert!(!debug.contains(secret) || statement.contains("''MARKER''"), "{debug}");
        }
        assert!(shown.contains("***"), "{shown}");
        pellucid_tsql::parse(&shown).unwrap();
    }
}
