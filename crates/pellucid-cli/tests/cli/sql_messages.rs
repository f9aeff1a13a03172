//! Goal: statements that cannot be done say so in SQL Server's words.
//!
//! Method: each message is provoked from outside and compared word for word with the text of the reference, typed by
//! hand; `%` in an expected text stands for what differs from run to run. docs/statements.md names the messages that
//! cannot be met here.

use std::path::PathBuf;

use crate::support::{said_with, Place, PELLUCID};

/// Number, severity, text.
type Heard = (u64, u64, String);

struct Server {
    place: Place,
}

impl Server {
    /// A new instance with folders for backups.
    fn new() -> Self {
        let server = Self { place: Place::new() };
        server.done("SELECT 1 AS made");
        for folder in ["C/temp", "D"] {
            std::fs::create_dir_all(server.path(folder)).unwrap();
        }
        server
    }

    /// With a master key, a certificate and a database that has rows.
    fn ready() -> Self {
        let server = Self::new();
        server.done(
            "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd'
             CREATE CERTIFICATE Cert WITH SUBJECT = 'a', EXPIRY_DATE = '20991231'
             BACKUP CERTIFICATE Cert TO FILE = 'C:\\temp\\Cert.cer'
               WITH PRIVATE KEY (FILE = 'C:\\temp\\Cert.key', ENCRYPTION BY PASSWORD = 'p@ssw0rd')
             CREATE DATABASE sales
             GO
             USE sales
             CREATE TABLE t(id INT NOT NULL CONSTRAINT PK_t PRIMARY KEY, name NVARCHAR(50))
             INSERT INTO t VALUES (1, 'Anna'), (2, 'Bob')
             GO",
        );
        server
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path("keys/drives").join(name)
    }

    /// What a script says, informing messages of number 0 left aside.
    fn run(&self, script: &str) -> Vec<Heard> {
        let said = said_with(self.place.command(PELLUCID).args(["--json", "sql"]), script);
        assert!(said.code == 0 || said.code == 1, "{said:?}");
        let mut heard = Vec::new();
        for line in said.stdout.lines() {
            let value: serde_json::Value = serde_json::from_str(line).expect(line);
            if let Some(number) = value["number"].as_u64().filter(|number| *number > 0) {
                heard.push((
                    number,
                    value["severity"].as_u64().unwrap(),
                    value["text"].as_str().unwrap().to_owned(),
                ));
            }
        }
        heard
    }

    /// Without an error.
    fn done(&self, script: &str) {
        let heard = self.run(script);
        assert!(heard.iter().all(|(_, severity, _)| *severity <= 10), "{script}: {heard:?}");
    }

    /// With exactly these errors, of severity 16 unless the text says another: `10: text`.
    #[track_caller]
    fn says(&self, script: &str, expected: &[(u64, &str)]) {
        let heard = self.run(script);
        let wanted: Vec<_> = heard
            .iter()
            .filter(|(number, severity, _)| {
                *severity > 10 || expected.iter().any(|(other, _)| other == number)
            })
            .collect();
        assert_eq!(wanted.len(), expected.len(), "{script}: {heard:?}");
        for ((number, severity, text), (other, pattern)) in wanted.iter().zip(expected) {
            let (level, pattern) =
                match pattern.split_once(": ").map(|(level, rest)| (level.parse(), rest)) {
                    Some((Ok(level), rest)) => (level, rest),
                    _ => (16, *pattern),
                };
            assert_eq!((number, severity), (other, &level), "{script}: {heard:?}");
            assert!(matches(text, pattern), "{script}\n  heard    {text}\n  expected {pattern}");
        }
    }
}

/// `%` is anything.
fn matches(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('%');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

const BACKUP_ENDS: (u64, &str) = (3013, "BACKUP DATABASE is terminating abnormally.");
const RESTORE_ENDS: (u64, &str) = (3013, "RESTORE DATABASE is terminating abnormally.");
const ALTER_ENDS: (u64, &str) = (5069, "ALTER DATABASE statement failed.");

const NOT_BACKED_UP: &str = "10: Warning: The certificate used for encrypting the database encryption key has not been \
    backed up. You should immediately back up the certificate and the private key associated with the certificate. If \
    the certificate ever becomes unavailable or if you must restore or attach the database on another server, you must \
    have backups of both the certificate and the private key or you will not be able to open the database.";

#[test]
fn master_keys() {
    let server = Server::new();
    server.says(
        "CREATE CERTIFICATE c WITH SUBJECT = 'a'",
        &[(
            15581,
            "Please create a master key in the database or open the master key in the session before performing this \
             operation.",
        )],
    );
    server.says(
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'short'",
        &[(
            33062,
            "Password validation failed. The password does not meet SQL Server password policy requirements because it \
             is too short. The password must be at least 8 characters.",
        )],
    );
    server.says("CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd'", &[]);
    server.says(
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd'",
        &[(
            15578,
            "There is already a master key in the database. Please drop it before performing this statement.",
        )],
    );
    server.says(
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'another!'",
        &[(15313, "The key is not encrypted using the specified decryptor.")],
    );
    server.says("OPEN MASTER KEY DECRYPTION BY PASSWORD = 'p@ssw0rd' CLOSE MASTER KEY", &[]);
    server.says(
        "CLOSE MASTER KEY",
        &[(15315, "The key 'master key' is not open. Please open the key before using it.")],
    );
    server.says(
        "BACKUP MASTER KEY TO FILE = 'C:\\temp\\m.key' ENCRYPTION BY PASSWORD = 'p@ssw0rd2'",
        &[],
    );
    server.says(
        "BACKUP MASTER KEY TO FILE = 'C:\\temp\\m.key' ENCRYPTION BY PASSWORD = 'p@ssw0rd2'",
        &[(
            15240,
            "Cannot write into file '%m.key'. Verify that you have write permissions, that the file path is valid, and \
             that the file does not already exist.",
        )],
    );
    std::fs::write(server.path("C/temp/no.key"), b"no key").unwrap();
    server.says(
        "RESTORE MASTER KEY FROM FILE = 'C:\\temp\\no.key' DECRYPTION BY PASSWORD = 'p@ssw0rd2' \
         ENCRYPTION BY PASSWORD = 'p@ssw0rd3'",
        &[(15317, "10: The master key file does not exist or has invalid format.")],
    );
    server.says(
        "RESTORE MASTER KEY FROM FILE = 'C:\\temp\\m.key' DECRYPTION BY PASSWORD = 'wrong password' \
         ENCRYPTION BY PASSWORD = 'p@ssw0rd3'",
        &[(15465, "The private key password is invalid.")],
    );
    server.says(
        "RESTORE MASTER KEY FROM FILE = 'C:\\temp\\m.key' DECRYPTION BY PASSWORD = 'p@ssw0rd2' \
         ENCRYPTION BY PASSWORD = 'p@ssw0rd3'
         OPEN MASTER KEY DECRYPTION BY PASSWORD = 'p@ssw0rd3'",
        &[],
    );
    server.says("CREATE CERTIFICATE c WITH SUBJECT = 'a'", &[]);
    server.says(
        "DROP MASTER KEY",
        &[(15580, "Cannot drop master key because certificate 'c' is encrypted by it.")],
    );
    server.says("DROP CERTIFICATE c DROP MASTER KEY", &[]);
    server.says(
        "DROP MASTER KEY",
        &[(
            15151,
            "Cannot drop the symmetric key 'master key', because it does not exist or you do not have permission.",
        )],
    );
    server.says("BACKUP SERVICE MASTER KEY TO FILE = 'C:\\temp\\s.key' ENCRYPTION BY PASSWORD = 'p@ssw0rd2'", &[]);
    server.says("RESTORE SERVICE MASTER KEY FROM FILE = 'C:\\temp\\s.key' DECRYPTION BY PASSWORD = 'p@ssw0rd2'", &[]);
    server.says("ALTER SERVICE MASTER KEY REGENERATE", &[]);
}

#[test]
fn a_master_key_that_only_a_password_opens() {
    let server = Server::ready();
    server.done("ALTER MASTER KEY DROP ENCRYPTION BY SERVICE MASTER KEY");
    server.says("SELECT name FROM sys.databases WHERE is_master_key_encrypted_by_server = 1", &[]);
    server.says(
        "BACKUP DATABASE sales TO DISK = 'x.bak'",
        &[
            (
                15581,
                "Please create a master key in the database or open the master key in the session before performing this \
                 operation.",
            ),
            BACKUP_ENDS,
        ],
    );
    server.done(
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'p@ssw0rd'
         ALTER MASTER KEY ADD ENCRYPTION BY SERVICE MASTER KEY
         BACKUP DATABASE sales TO DISK = 'x.bak'",
    );
    server.done("BACKUP DATABASE sales TO DISK = 'y.bak'");
}

#[test]
fn certificates() {
    let server = Server::ready();
    server.says(
        "CREATE CERTIFICATE cert WITH SUBJECT = 'a'
         CREATE CERTIFICATE Cert WITH SUBJECT = 'a'",
        &[(
            15232,
            "A certificate with name 'Cert' already exists or this certificate already has been added to the database.",
        )],
    );
    server.says(
        "DROP CERTIFICATE Nobody",
        &[(
            15151,
            "Cannot drop the certificate 'Nobody', because it does not exist or you do not have permission.",
        )],
    );
    server.says(
        "BACKUP CERTIFICATE Nobody TO FILE = 'x.cer'",
        &[(
            15151,
            "Cannot find the certificate 'Nobody', because it does not exist or you do not have permission.",
        )],
    );
    server.says(
        "CREATE CERTIFICATE c1 WITH SUBJECT = 'a', START_DATE = '20300101', EXPIRY_DATE = '20200101'",
        &[(
            15213,
            "Warning: The certificate you created has an invalid validity period; its expiration date precedes its start \
             date.",
        )],
    );
    server.says(
        "CREATE CERTIFICATE c2 WITH SUBJECT = 'a', START_DATE = '20190101', EXPIRY_DATE = '20200101'",
        &[(15214, "Warning: The certificate you created is expired.")],
    );
    server.says(
        "CREATE CERTIFICATE c3 WITH SUBJECT = 'a', START_DATE = '20980101'",
        &[(15215, "Warning: The certificate you created is not yet valid; its start date is in the future.")],
    );
    std::fs::write(server.path("C/temp/no.cer"), b"nothing").unwrap();
    let not_valid = "The certificate, asymmetric key, or private key file is not valid or does not exist; or you do not \
                     have permissions for it.";
    server.says("CREATE CERTIFICATE c4 FROM FILE = 'C:\\temp\\no.cer'", &[(15208, not_valid)]);
    server.says("CREATE CERTIFICATE c4 FROM FILE = 'C:\\temp\\missing.cer'", &[(15208, not_valid)]);
    server.says(
        "CREATE CERTIFICATE c5 FROM FILE = 'C:\\temp\\Cert.cer' WITH PRIVATE KEY (FILE = 'C:\\temp\\Cert.key', \
         DECRYPTION BY PASSWORD = 'wrong password')",
        &[(15465, "The private key password is invalid.")],
    );
    server.done("CREATE CERTIFICATE c7 WITH SUBJECT = 'a'");
    server.says(
        "BACKUP CERTIFICATE c7 TO FILE = 'C:\\temp\\c7.cer' WITH PRIVATE KEY (FILE = 'C:\\temp\\c7.key', \
         ENCRYPTION BY PASSWORD = 'p@ssw0rd')
         CREATE CERTIFICATE c6 FROM FILE = 'C:\\temp\\c7.cer' WITH PRIVATE KEY (FILE = 'C:\\temp\\Cert.key', \
         DECRYPTION BY PASSWORD = 'p@ssw0rd')",
        &[(15474, "Invalid private key. The private key does not match the public key of the certificate.")],
    );
    server
        .done("DROP CERTIFICATE c7 CREATE CERTIFICATE public_half FROM FILE = 'C:\\temp\\c7.cer'");
    server.says(
        "BACKUP CERTIFICATE public_half TO FILE = 'C:\\temp\\p.cer' WITH PRIVATE KEY (FILE = 'C:\\temp\\p.key', \
         ENCRYPTION BY PASSWORD = 'p@ssw0rd')",
        &[(
            15246,
            "Cannot dump the private key of certificate 'public_half' because the private key cannot be found.",
        )],
    );
    server.says(
        "USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE public_half",
        &[(
            33101,
            "Cannot use certificate 'public_half', because its private key is not present or it is not protected by the \
             database master key. SQL Server requires the ability to automatically access the private key of the \
             certificate used for this operation.",
        )],
    );
    server.says("BACKUP DATABASE sales TO DISK = 'e.bak' WITH FORMAT, ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = c2)",
        &[(3096, "The Certificate specified for backup encryption has expired."), BACKUP_ENDS]);
    // Backups do not keep a certificate; how many are lost with it is told.
    server.done(
        "CREATE CERTIFICATE gone WITH SUBJECT = 'a'
         BACKUP DATABASE sales TO DISK = 'g.bak' WITH FORMAT, ENCRYPTION (ALGORITHM = AES_128, SERVER CERTIFICATE = gone)
         BACKUP DATABASE sales TO DISK = 'h.bak' WITH FORMAT, ENCRYPTION (ALGORITHM = AES_128, SERVER CERTIFICATE = gone)",
    );
    server.says(
        "DROP CERTIFICATE gone",
        &[(
            50016,
            "10: Warning: 2 backup sets can be restored only where another copy of certificate 'gone' is.",
        )],
    );
    server.says(
        "RESTORE DATABASE copy FROM DISK = 'g.bak' WITH MOVE 'sales' TO 'D:\\copy.db'",
        &[(33111, "Cannot find server certificate with thumbprint '0x%'."), RESTORE_ENDS],
    );
    // Its file in the keyring is damaged.
    let file = server.place.path("keys/keyring/certificates/Cert");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    server.says(
        "BACKUP CERTIFICATE Cert TO FILE = 'C:\\temp\\again.cer'",
        &[(15507, "A key required by this operation appears to be corrupted.")],
    );
}

#[test]
fn encryption_of_databases() {
    let server = Server::ready();
    server.says(
        "CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE Cert",
        &[(
            33102,
            "Cannot encrypt a system database. Database encryption operations cannot be performed for 'master', 'model', \
             'tempdb', 'msdb', or 'resource' databases.",
        )],
    );
    server.says(
        "ALTER DATABASE sales SET ENCRYPTION ON",
        &[(33106, "Cannot change database encryption state because no database encryption key is set."), ALTER_ENDS],
    );
    let missing = "A database encryption key does not exist for this database.";
    server.says("USE sales DROP DATABASE ENCRYPTION KEY", &[(33104, missing)]);
    server.says(
        "USE sales ALTER DATABASE ENCRYPTION KEY REGENERATE WITH ALGORITHM = AES_128",
        &[(33104, missing)],
    );
    server.says(
        "USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER ASYMMETRIC KEY k",
        &[(
            33120,
            "In order to encrypt the database encryption key with an asymmetric key, please use an asymmetric key that \
             resides on an extensible key management provider.",
        )],
    );
    server.says(
        "USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = TRIPLE_DES_3KEY ENCRYPTION BY SERVER CERTIFICATE Cert",
        &[(
            33128,
            "Encryption failed. Key uses deprecated algorithm 'TRIPLE_DES_3KEY' which is no longer supported at this db \
             compatibility level. If you still need to use this key switch to a lower db compatibility level.",
        )],
    );
    let create = "USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE Fresh";
    server.says(
        &format!("USE master CREATE CERTIFICATE Fresh WITH SUBJECT = 'b' {create}"),
        &[(33091, NOT_BACKED_UP)],
    );
    server.says(create, &[(33103, "A database encryption key already exists for this database.")]);
    server.says(
        "ALTER DATABASE sales SET ENCRYPTION OFF",
        &[
            (33108, "Cannot disable database encryption because it is already disabled."),
            ALTER_ENDS,
        ],
    );
    let in_use =
        "The certificate cannot be dropped because it is used by one or more databases to encrypt a Database Encryption Key.";
    server.says("DROP CERTIFICATE Fresh", &[(33127, in_use)]);
    server.done(
        "ALTER DATABASE sales SET ENCRYPTION ON
         WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state <> 3) WAITFOR DELAY '00:00:00.05'",
    );
    server.says(
        "ALTER DATABASE sales SET ENCRYPTION ON",
        &[(33107, "Cannot enable database encryption because it is already enabled."), ALTER_ENDS],
    );
    server.says(
        "USE sales DROP DATABASE ENCRYPTION KEY",
        &[(
            33105,
            "Cannot drop the database encryption key because it is currently in use. Database encryption needs to be \
             turned off to be able to drop the database encryption key.",
        )],
    );
    server.says("DROP CERTIFICATE Fresh", &[(33127, in_use)]);
    let thumbprint = "Cannot find server certificate with thumbprint '0x%'.";
    let keyring = server.place.path("keys/keyring/certificates/Fresh");
    let aside = server.place.path("aside");
    std::fs::rename(&keyring, &aside).unwrap();
    server.says("USE sales", &[(33111, thumbprint)]);
    std::fs::rename(&aside, &keyring).unwrap();
    server.done(
        "ALTER DATABASE sales SET ENCRYPTION OFF
         WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state <> 1) WAITFOR DELAY '00:00:00.05'
         GO
         USE sales DROP DATABASE ENCRYPTION KEY SELECT name FROM t",
    );
}

#[test]
fn scans_that_are_under_way() {
    let server = Server::ready();
    server.done(
        "USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE Cert
         ALTER DATABASE sales SET ENCRYPTION ON
         WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state <> 3) WAITFOR DELAY '00:00:00.05'",
    );
    // A program in a read transaction keeps the scan from its end.
    let path = server.place.path("keys/data/sales.db");
    let mut reader = server.place.command(PELLUCID);
    reader.args(["run", "--", "python3", "-c"]).arg(format!(
        "import sqlite3,sys\nc=sqlite3.connect({:?})\nc.execute('BEGIN')\nc.execute('SELECT * FROM t').fetchall()\nprint('ready',flush=True)\nsys.stdin.read()",
        path.display().to_string()
    ));
    let mut reader = crate::support::Held::start(reader);
    server.done("USE sales ALTER DATABASE ENCRYPTION KEY REGENERATE WITH ALGORITHM = AES_128");
    server.says(
        "USE sales ALTER DATABASE ENCRYPTION KEY REGENERATE WITH ALGORITHM = AES_192",
        &[(
            33110,
            "Cannot change database encryption key while an encryption, decryption, or key change scan is in progress.",
        )],
    );
    server.says(
        "ALTER DATABASE sales SET ENCRYPTION ON",
        &[
            (33109, "Cannot enable database encryption while an encryption, decryption, or key change scan is in progress."),
            ALTER_ENDS,
        ],
    );
    server.says(
        "ALTER DATABASE sales SET ENCRYPTION OFF",
        &[
            (33109, "Cannot disable database encryption while an encryption, decryption, or key change scan is in progress."),
            ALTER_ENDS,
        ],
    );
    reader.end();
    server.done(
        "WHILE EXISTS (SELECT 1 FROM sys.dm_database_encryption_keys WHERE encryption_state = 4) WAITFOR DELAY '00:00:00.05'",
    );
}

#[test]
fn providers() {
    let server = Server::ready();
    let disabled = "Extensible Key Management is disabled or not supported on this edition of SQL Server.  Use sp_configure \
                    'EKM provider enabled' to enable it.";
    server.says("CREATE CRYPTOGRAPHIC PROVIDER p FROM FILE = 'x.dll'", &[(33053, disabled)]);
    server.says(
        "CREATE ASYMMETRIC KEY k FROM PROVIDER p WITH ALGORITHM = RSA_2048, PROVIDER_KEY_NAME = 'n'",
        &[(33053, disabled)],
    );
    server.says(
        "BACKUP DATABASE sales TO DISK = 'x.bak' WITH ENCRYPTION (ALGORITHM = AES_256, SERVER ASYMMETRIC KEY = k)",
        &[(33053, disabled), BACKUP_ENDS],
    );
}

#[test]
fn backups() {
    let server = Server::ready();
    let to = "BACKUP DATABASE sales TO DISK = 'D:\\s.bak'";
    server.says(
        &format!("BEGIN TRAN {to} ROLLBACK"),
        &[
            (3021, "Cannot perform a backup or restore operation within a transaction."),
            BACKUP_ENDS,
        ],
    );
    server.says(
        &format!("{to} WITH FORMAT, NOINIT"),
        &[
            (3031, "Option 'FORMAT' conflicts with option(s) 'NOINIT'. Remove the conflicting option and reissue the statement."),
            BACKUP_ENDS,
        ],
    );
    server.says(
        &format!("{to} WITH DIFFERENTIAL"),
        &[
            (
                3035,
                "Cannot perform a differential backup for database \"sales\", because a current database backup does not \
                 exist. Perform a full database backup by reissuing BACKUP DATABASE, omitting the WITH DIFFERENTIAL option.",
            ),
            BACKUP_ENDS,
        ],
    );
    let sealed = "ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = Cert)";
    server.says(
        &format!("{to} WITH FILE_SNAPSHOT, {sealed}"),
        &[
            (3072, "Backup encryption is incompatible with file snapshot backup if TDE is not enabled on the database."),
            BACKUP_ENDS,
        ],
    );
    server.says(
        &format!("{to} WITH BLOCKSIZE = 1000"),
        &[
            (3253, "The block size parameter must supply a value that is a power of 2."),
            BACKUP_ENDS,
        ],
    );
    server.says(
        "BACKUP DATABASE sales TO nowhere",
        &[
            (
                3206,
                "Backup device 'nowhere' does not exist. To view existing backup devices, use the sys.backup_devices catalog \
                 view. To create a new backup device use either sp_addumpdevice or SQL Server Management Studio.",
            ),
            BACKUP_ENDS,
        ],
    );
    server.says(
        "BACKUP DATABASE sales TO DISK = 'D:\\missing\\s.bak'",
        &[
            (
                3201,
                "Cannot open backup device '%/D/missing/s.bak'. Operating system error 2(No such file or directory).",
            ),
            BACKUP_ENDS,
        ],
    );
    server.says(
        "BACKUP DATABASE tempdb TO DISK = 'D:\\t.bak'",
        &[(3147, "Backup and restore operations are not allowed on database tempdb."), BACKUP_ENDS],
    );
    server.says(
        "BACKUP LOG sales TO DISK = 'D:\\l.bak'",
        &[
            (
                4208,
                "The statement BACKUP LOG is not allowed while the recovery model is SIMPLE. Use BACKUP DATABASE or change \
                 the recovery model using ALTER DATABASE.",
            ),
            (3013, "BACKUP LOG is terminating abnormally."),
        ],
    );
    server.says(
        "ALTER DATABASE sales SET RECOVERY FULL BACKUP LOG sales TO DISK = 'D:\\l.bak'",
        &[
            (50010, "BACKUP LOG is not available yet: take full and differential backups of database 'sales'."),
            (3013, "BACKUP LOG is terminating abnormally."),
        ],
    );
    let heard = server.run(&format!("{to} WITH INIT, STATS = 50"));
    let numbers: Vec<_> = heard.iter().map(|(number, severity, _)| (*number, *severity)).collect();
    assert_eq!(numbers, [(3211, 10), (4035, 10), (3211, 10), (3014, 10)], "{heard:?}");
    assert_eq!(heard[0].2, "50 percent processed.");
    assert!(
        matches(&heard[1].2, "Processed % pages for database 'sales', file 'sales' on file 1."),
        "{heard:?}"
    );
    assert_eq!(heard[2].2, "100 percent processed.");
    let done = "BACKUP DATABASE successfully processed % pages in %.% seconds (%.% MB/sec).";
    assert!(matches(&heard[3].2, done), "{heard:?}");
    server.says(
        &format!("{to} WITH INIT, {sealed}"),
        &[
            (
                3095,
                "The backup cannot be performed because 'ENCRYPTION' was requested after the media was formatted with an \
                 incompatible structure. To append to this media set, either omit 'ENCRYPTION' or create a new media set by \
                 using WITH FORMAT in your BACKUP statement. If you use WITH FORMAT on an existing media set, all its backup \
                 sets will be overwritten.",
            ),
            BACKUP_ENDS,
        ],
    );
    server.says(
        &format!("{to} WITH COMPRESSION"),
        &[
            (
                3098,
                "The backup cannot be performed because 'COMPRESSION' was requested after the media was formatted with an \
                 incompatible structure. To append to this media set, either omit 'COMPRESSION' or specify \
                 'NO_COMPRESSION'. Alternatively, you can create a new media set by using WITH FORMAT in your BACKUP \
                 statement. If you use WITH FORMAT on an existing media set, all its backup sets will be overwritten.",
            ),
            BACKUP_ENDS,
        ],
    );
    server.done("BACKUP DATABASE sales TO DISK = 'D:\\1.bak', DISK = 'D:\\2.bak' WITH FORMAT");
    server.says(
        "BACKUP DATABASE sales TO DISK = 'D:\\1.bak' WITH INIT",
        &[
            (
                3231,
                "The media loaded on \"%/D/1.bak\" is formatted to support 2 media families, but 1 media families are \
                 expected according to the backup device specification.",
            ),
            BACKUP_ENDS,
        ],
    );
    server.says(
        "BACKUP DATABASE sales TO DISK = 'D:\\s.bak' MIRROR TO DISK = 'D:\\m.bak' WITH INIT",
        &[(3215, "Use WITH FORMAT to create a new mirrored backup set."), BACKUP_ENDS],
    );
    std::fs::write(server.path("D/text.bak"), vec![b'x'; 4096]).unwrap();
    server.says(
        "BACKUP DATABASE sales TO DISK = 'D:\\text.bak'",
        &[
            (
                3241,
                "The media family on device '%/D/text.bak' is incorrectly formed. SQL Server cannot process this media \
                 family.",
            ),
            BACKUP_ENDS,
        ],
    );
}

#[test]
fn restores() {
    let server = Server::ready();
    server.done(
        "BACKUP DATABASE sales TO DISK = 'D:\\s.bak' WITH INIT
         BACKUP DATABASE sales TO DISK = 'D:\\1.bak', DISK = 'D:\\2.bak' WITH FORMAT
         CREATE DATABASE other",
    );
    let from = "FROM DISK = 'D:\\s.bak'";
    server.says(
        &format!("USE sales RESTORE DATABASE sales {from} WITH REPLACE"),
        &[
            (
                3102,
                "RESTORE cannot process database 'sales' because it is in use by this session. It is recommended that the \
                 master database be used when performing this operation.",
            ),
            RESTORE_ENDS,
        ],
    );
    server.says(
        &format!("RESTORE DATABASE sales {from}"),
        &[
            (
                3159,
                "The tail of the log for the database \"sales\" has not been backed up. Use BACKUP LOG WITH NORECOVERY to \
                 backup the log if it contains work you do not want to lose. Use the WITH REPLACE or WITH STOPAT clause of \
                 the RESTORE statement to just overwrite the contents of the log.",
            ),
            RESTORE_ENDS,
        ],
    );
    server.says(
        &format!("RESTORE DATABASE other {from}"),
        &[
            (3154, "The backup set holds a backup of a database other than the existing 'other' database."),
            RESTORE_ENDS,
        ],
    );
    std::fs::write(server.path("D/taken.db"), b"something").unwrap();
    server.says(
        &format!("RESTORE DATABASE copy {from} WITH MOVE 'sales' TO 'D:\\taken.db'"),
        &[
            (
                3142,
                "File \"%/D/taken.db\" cannot be restored over the existing \"%/D/taken.db\". Reissue the RESTORE statement \
                 using WITH REPLACE to overwrite pre-existing files, or WITH MOVE to identify an alternate location.",
            ),
            RESTORE_ENDS,
        ],
    );
    server.says(
        &format!("RESTORE DATABASE copy {from} WITH MOVE 'nothing' TO 'D:\\copy.db'"),
        &[
            (
                3234,
                "Logical file 'nothing' is not part of database 'copy'. Use RESTORE FILELISTONLY to list the logical file \
                 names.",
            ),
            RESTORE_ENDS,
        ],
    );
    server.says(
        &format!("RESTORE DATABASE copy {from} WITH STOPAT = '20260101'"),
        &[
            (3145, "The STOPAT option is not supported for databases that use the SIMPLE recovery model."),
            RESTORE_ENDS,
        ],
    );
    server.says(
        "RESTORE DATABASE copy FROM DISK = 'D:\\1.bak' WITH MOVE 'sales' TO 'D:\\copy.db'",
        &[
            (3132, "The media set has 2 media families but only 1 are provided. All members must be provided."),
            RESTORE_ENDS,
        ],
    );
    server.says(
        "RESTORE DATABASE tempdb FROM DISK = 'D:\\s.bak'",
        &[
            (3147, "Backup and restore operations are not allowed on database tempdb."),
            RESTORE_ENDS,
        ],
    );
    server.says(
        "RESTORE HEADERONLY FROM DISK = 'D:\\missing.bak'",
        &[
            (3201, "Cannot open backup device '%/D/missing.bak'. Operating system error 2(No such file or directory)."),
            (3013, "RESTORE HEADERONLY is terminating abnormally."),
        ],
    );
    std::fs::write(server.path("D/tape.bak"), [b"TAPE".as_slice(), &[0; 4096]].concat()).unwrap();
    server.says(
        "RESTORE DATABASE copy FROM DISK = 'D:\\tape.bak'",
        &[(3242, "The file on device '%/D/tape.bak' is not a valid Microsoft Tape Format backup set."), RESTORE_ENDS],
    );
    server.says(
        &format!("RESTORE VERIFYONLY {from}"),
        &[(3262, "10: The backup set on file 1 is valid.")],
    );
    let mut bytes = std::fs::read(server.path("D/s.bak")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(server.path("D/bad.bak"), bytes).unwrap();
    let heard = server.run("RESTORE VERIFYONLY FROM DISK = 'D:\\bad.bak'");
    let last: Vec<_> =
        heard.iter().rev().take(2).map(|(number, _, text)| (*number, text.as_str())).collect();
    assert_eq!(
        last,
        [
            (3013, "RESTORE VERIFYONLY is terminating abnormally."),
            (3189, "Damage to the backup set was detected.")
        ],
        "{heard:?}"
    );
    // Another program has it open.
    let path = server.place.path("keys/data/other.db");
    let mut holder = server.place.command("/usr/bin/sqlite3");
    holder.args(["-batch"]).arg(&path);
    let mut holder = crate::support::Held::start_with(
        holder,
        "BEGIN IMMEDIATE; CREATE TABLE x(a); SELECT 'ready';\n",
    );
    server.says(
        &format!("RESTORE DATABASE other {from} WITH REPLACE"),
        &[
            (3101, "Exclusive access could not be obtained because the database is in use."),
            RESTORE_ENDS,
        ],
    );
    holder.end();
}

#[test]
fn differentials() {
    let server = Server::ready();
    server.done(
        "BACKUP DATABASE sales TO DISK = 'D:\\full.bak' WITH INIT
         USE sales INSERT INTO t VALUES (3, 'Cem') USE master
         BACKUP DATABASE sales TO DISK = 'D:\\diff.bak' WITH INIT, DIFFERENTIAL
         USE sales INSERT INTO t VALUES (4, 'Dana') USE master
         BACKUP DATABASE sales TO DISK = 'D:\\full2.bak' WITH INIT",
    );
    server.says(
        "RESTORE DATABASE sales FROM DISK = 'D:\\diff.bak' WITH REPLACE",
        &[
            (3117, "The log or differential backup cannot be restored because no files are ready to rollforward."),
            RESTORE_ENDS,
        ],
    );
    let heard = server.run(
        "RESTORE DATABASE sales FROM DISK = 'D:\\full2.bak' WITH REPLACE, NORECOVERY
         RESTORE DATABASE sales FROM DISK = 'D:\\diff.bak' WITH RECOVERY",
    );
    let last: Vec<_> =
        heard.iter().rev().take(2).map(|(number, _, text)| (*number, text.as_str())).collect();
    assert_eq!(
        last,
        [
            (3013, "RESTORE DATABASE is terminating abnormally."),
            (
                3136,
                "This differential backup cannot be restored because the database has not been restored to the correct \
                 earlier state."
            )
        ],
        "{heard:?}"
    );
    server.says(
        "USE sales",
        &[(927, "14: Database 'sales' cannot be opened. It is in the middle of a restore.")],
    );
    server.done(
        "RESTORE DATABASE sales FROM DISK = 'D:\\full.bak' WITH REPLACE, NORECOVERY
         RESTORE DATABASE sales FROM DISK = 'D:\\diff.bak' WITH RECOVERY
         GO
         USE sales IF (SELECT COUNT(*) FROM t) <> 3 RAISERROR('not three', 16, 1)",
    );
}

#[test]
fn what_cannot_be_written_is_not_encrypted() {
    let server = Server::ready();
    server.done(
        "USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER CERTIFICATE Cert
         USE master ALTER DATABASE sales SET READ_ONLY",
    );
    server.says(
        "ALTER DATABASE sales SET ENCRYPTION ON",
        &[
            (
                33118,
                "Cannot enable or modify database encryption on a database that is read-only, has read-only files or is not \
                 recovered.",
            ),
            ALTER_ENDS,
        ],
    );
}

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
