//! Of master keys, certificates and providers.

use super::{Server, BACKUP_ENDS, RESTORE_ENDS};

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
