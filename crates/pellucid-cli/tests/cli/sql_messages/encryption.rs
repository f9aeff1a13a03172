//! Of database encryption keys and scans.

use super::{Server, ALTER_ENDS, NOT_BACKED_UP};
use crate::support::PELLUCID;

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
