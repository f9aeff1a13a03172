//! The key hierarchy: master keys, certificates, database encryption keys, providers.

use super::{Name, StringLiteral};
use crate::keyword::words;
use crate::secret::Secret;

/// Statements on SERVICE MASTER KEY and MASTER KEY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MasterKeyStatement {
    /// `ALTER SERVICE MASTER KEY [FORCE] REGENERATE`
    RegenerateService { force: bool },
    /// `BACKUP SERVICE MASTER KEY`
    BackupService { file: StringLiteral, password: Secret },
    /// `RESTORE SERVICE MASTER KEY`
    RestoreService { file: StringLiteral, password: Secret, force: bool },
    /// `CREATE MASTER KEY [ENCRYPTION BY PASSWORD]`
    Create { password: Option<Secret> },
    /// `OPEN MASTER KEY`
    Open { password: Secret },
    /// `CLOSE MASTER KEY`
    Close,
    /// `DROP MASTER KEY`
    Drop,
    /// `ALTER MASTER KEY [FORCE] REGENERATE`
    Regenerate { force: bool, password: Secret },
    /// `ALTER MASTER KEY ADD ENCRYPTION BY`
    AddEncryption(MasterKeyEncryption),
    /// `ALTER MASTER KEY DROP ENCRYPTION BY`
    DropEncryption(MasterKeyEncryption),
    /// `BACKUP MASTER KEY`
    Backup { file: StringLiteral, password: Secret },
    /// `RESTORE MASTER KEY`
    Restore { file: StringLiteral, decryption: Secret, encryption: Secret, force: bool },
}

/// What a database master key is wrapped by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MasterKeyEncryption {
    /// The service master key.
    ServiceMasterKey,
    /// A password.
    Password(Secret),
}

/// Statements on CERTIFICATE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateStatement {
    /// `CREATE CERTIFICATE`
    Create(CreateCertificate),
    /// `ALTER CERTIFICATE`
    Alter { name: Name, action: AlterCertificate },
    /// `BACKUP CERTIFICATE`
    Backup(BackupCertificate),
    /// `DROP CERTIFICATE`
    Drop { name: Name },
}

/// `CREATE CERTIFICATE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateCertificate {
    /// Its name.
    pub name: Name,
    /// Its owner.
    pub authorization: Option<Name>,
    /// Where it comes from.
    pub source: CertificateSource,
    /// `ACTIVE FOR BEGIN_DIALOG = {ON | OFF}`
    pub active_for_begin_dialog: Option<bool>,
}

/// Where a certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// It is made here.
    SelfSigned {
        /// What protects its private key; `None`: the database master key.
        password: Option<Secret>,
        /// `SUBJECT`
        subject: StringLiteral,
        /// `START_DATE`
        start_date: Option<StringLiteral>,
        /// `EXPIRY_DATE`
        expiry_date: Option<StringLiteral>,
    },
    /// `FROM ASSEMBLY`
    Assembly(Name),
    /// `FROM [EXECUTABLE] FILE`
    File {
        executable: bool,
        path: StringLiteral,
        format: Option<CertificateFormat>,
        private_key: Option<PrivateKey>,
    },
    /// `FROM BINARY`
    Binary { bytes: Vec<u8>, private_key: Option<PrivateKey> },
}

/// `WITH FORMAT = '..'`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateFormat {
    /// `'DER'`
    Der,
    /// `'PFX'`
    Pfx,
}

/// `PRIVATE KEY (..)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateKey {
    /// Where it is or goes.
    pub source: Option<PrivateKeySource>,
    /// `DECRYPTION BY PASSWORD`
    pub decryption: Option<Secret>,
    /// `ENCRYPTION BY PASSWORD`
    pub encryption: Option<Secret>,
    /// `ALGORITHM = 'AES_256'`, of PFX files.
    pub algorithm: Option<StringLiteral>,
}

/// Where a private key is or goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateKeySource {
    /// `FILE = '..'`
    File(StringLiteral),
    /// `BINARY = 0x..`, which may be a key in clear.
    Binary(BinarySecret),
}

/// Bytes that may be a key in clear; kept as their hexadecimal digits.
pub type BinarySecret = Secret;

/// What `ALTER CERTIFICATE` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterCertificate {
    /// `REMOVE PRIVATE KEY`
    RemovePrivateKey,
    /// `WITH PRIVATE KEY (..)`
    PrivateKey(PrivateKey),
    /// `WITH ACTIVE FOR BEGIN_DIALOG = {ON | OFF}`
    ActiveForBeginDialog(bool),
}

/// `BACKUP CERTIFICATE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupCertificate {
    /// Which one.
    pub name: Name,
    /// `TO FILE`
    pub file: StringLiteral,
    /// `WITH FORMAT`
    pub format: Option<CertificateFormat>,
    /// `WITH PRIVATE KEY`
    pub private_key: Option<PrivateKey>,
}

words! {
    /// Ciphers of backups.
    pub enum Algorithm {
        Aes128 = AES_128,
        Aes192 = AES_192,
        Aes256 = AES_256,
        TripleDes3Key = TRIPLE_DES_3KEY,
    }
}

words! {
    /// Ciphers of databases: SQL Server's, and one of ours.
    pub enum DatabaseAlgorithm {
        Aes128 = AES_128,
        Aes192 = AES_192,
        Aes256 = AES_256,
        TripleDes3Key = TRIPLE_DES_3KEY,
        Aegis256 = AEGIS_256,
    }
}

words! {
    /// Asymmetric ciphers of a provider.
    pub enum RsaAlgorithm {
        Rsa512 = RSA_512,
        Rsa1024 = RSA_1024,
        Rsa2048 = RSA_2048,
        Rsa3072 = RSA_3072,
        Rsa4096 = RSA_4096,
    }
}

/// What wraps a database's or a backup's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encryptor {
    /// `SERVER CERTIFICATE`
    Certificate(Name),
    /// `SERVER ASYMMETRIC KEY`
    AsymmetricKey(Name),
}

/// Statements on DATABASE ENCRYPTION KEY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseEncryptionKeyStatement {
    /// `CREATE DATABASE ENCRYPTION KEY`
    Create { algorithm: DatabaseAlgorithm, encryptor: Encryptor },
    /// `ALTER DATABASE ENCRYPTION KEY REGENERATE`
    Regenerate { algorithm: DatabaseAlgorithm },
    /// `ALTER DATABASE ENCRYPTION KEY ENCRYPTION BY`
    EncryptBy(Encryptor),
    /// `DROP DATABASE ENCRYPTION KEY`
    Drop,
}

/// Statements on keys outside the instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderStatement {
    /// `CREATE CRYPTOGRAPHIC PROVIDER`
    CreateProvider { name: Name, file: StringLiteral },
    /// `ALTER CRYPTOGRAPHIC PROVIDER`
    AlterProvider { name: Name, change: ProviderChange },
    /// `DROP CRYPTOGRAPHIC PROVIDER`
    DropProvider { name: Name },
    /// `CREATE CREDENTIAL`
    CreateCredential {
        name: Name,
        identity: StringLiteral,
        secret: Option<Secret>,
        provider: Option<Name>,
    },
    /// `ALTER CREDENTIAL`
    AlterCredential { name: Name, identity: StringLiteral, secret: Option<Secret> },
    /// `DROP CREDENTIAL`
    DropCredential { name: Name },
    /// `CREATE ASYMMETRIC KEY .. FROM PROVIDER`
    CreateAsymmetricKey {
        name: Name,
        authorization: Option<Name>,
        provider: Name,
        options: Vec<AsymmetricKeyOption>,
    },
    /// `DROP ASYMMETRIC KEY`
    DropAsymmetricKey { name: Name, remove_provider_key: bool },
    /// `CREATE LOGIN .. FROM ASYMMETRIC KEY`
    CreateLogin { name: Name, key: Name },
    /// `ALTER LOGIN .. {ADD | DROP} CREDENTIAL`
    LoginCredential { login: Name, add: bool, credential: Name },
    /// `DROP LOGIN`
    DropLogin { name: Name },
}

/// What `ALTER CRYPTOGRAPHIC PROVIDER` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderChange {
    /// `FROM FILE = '..'`
    File(StringLiteral),
    /// `ENABLE`, or `DISABLE`
    Enable(bool),
}

/// Options of `CREATE ASYMMETRIC KEY .. FROM PROVIDER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AsymmetricKeyOption {
    /// `ALGORITHM`
    Algorithm(RsaAlgorithm),
    /// `PROVIDER_KEY_NAME`
    ProviderKeyName(StringLiteral),
    /// `CREATION_DISPOSITION = {CREATE_NEW | OPEN_EXISTING}`
    OpenExisting(bool),
}
