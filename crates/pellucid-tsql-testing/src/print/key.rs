//! The key hierarchy.

use pellucid_tsql::ast::{
    AlterCertificate, AsymmetricKeyOption, BackupCertificate, CertificateFormat, CertificateSource,
    CertificateStatement, CreateCertificate, DatabaseEncryptionKeyStatement, Encryptor, Literal,
    MasterKeyEncryption, MasterKeyStatement, PrivateKey, PrivateKeySource, ProviderChange,
    ProviderStatement,
};
use pellucid_tsql::secret::{Secret, MASK};

use super::{put, If, List, Maybe, OnOff, One, Print, Printer};

impl Print for MasterKeyStatement {
    fn print(&self, to: &mut Printer) {
        use MasterKeyStatement::*;
        match self {
            RegenerateService { force } => {
                put!(to, "ALTER SERVICE MASTER KEY ", If(*force, "FORCE "), "REGENERATE");
            }
            BackupService { file, password } => {
                put!(to, "BACKUP SERVICE MASTER KEY TO FILE = ", file, Encrypted(password));
            }
            RestoreService { file, password, force } => {
                put!(to, "RESTORE SERVICE MASTER KEY FROM FILE = ", file);
                put!(to, Decrypted(password), If(*force, " FORCE"));
            }
            Create { password } => {
                put!(to, "CREATE MASTER KEY", Maybe("", &password.as_ref().map(Encrypted)));
            }
            Open { password } => put!(to, "OPEN MASTER KEY", Decrypted(password)),
            Close => put!(to, "CLOSE MASTER KEY"),
            Drop => put!(to, "DROP MASTER KEY"),
            Regenerate { force, password } => {
                put!(to, "ALTER MASTER KEY ", If(*force, "FORCE "), "REGENERATE WITH");
                put!(to, Encrypted(password));
            }
            AddEncryption(by) => put!(to, "ALTER MASTER KEY ADD ENCRYPTION BY ", by),
            DropEncryption(by) => put!(to, "ALTER MASTER KEY DROP ENCRYPTION BY ", by),
            Backup { file, password } => {
                put!(to, "BACKUP MASTER KEY TO FILE = ", file, Encrypted(password));
            }
            Restore { file, decryption, encryption, force } => {
                put!(to, "RESTORE MASTER KEY FROM FILE = ", file, Decrypted(decryption));
                put!(to, Encrypted(encryption), If(*force, " FORCE"));
            }
        }
    }
}

struct Encrypted<'a>(&'a Secret);

impl Print for Encrypted<'_> {
    fn print(&self, to: &mut Printer) {
        put!(to, " ENCRYPTION BY PASSWORD = ", self.0);
    }
}

struct Decrypted<'a>(&'a Secret);

impl Print for Decrypted<'_> {
    fn print(&self, to: &mut Printer) {
        put!(to, " DECRYPTION BY PASSWORD = ", self.0);
    }
}

impl Print for MasterKeyEncryption {
    fn print(&self, to: &mut Printer) {
        match self {
            MasterKeyEncryption::ServiceMasterKey => put!(to, "SERVICE MASTER KEY"),
            MasterKeyEncryption::Password(password) => put!(to, "PASSWORD = ", password),
        }
    }
}

impl Print for CertificateStatement {
    fn print(&self, to: &mut Printer) {
        match self {
            CertificateStatement::Create(create) => create.print(to),
            CertificateStatement::Alter { name, action } => {
                put!(to, "ALTER CERTIFICATE ", name, " ");
                match action {
                    AlterCertificate::RemovePrivateKey => put!(to, "REMOVE PRIVATE KEY"),
                    AlterCertificate::PrivateKey(key) => put!(to, "WITH ", key),
                    AlterCertificate::ActiveForBeginDialog(on) => {
                        put!(to, "WITH ACTIVE FOR BEGIN_DIALOG = ", OnOff(*on));
                    }
                }
            }
            CertificateStatement::Backup(BackupCertificate { name, file, format, private_key }) => {
                put!(to, "BACKUP CERTIFICATE ", name, " TO FILE = ", file);
                put!(to, FileOptions(format, private_key));
            }
            CertificateStatement::Drop { name } => put!(to, "DROP CERTIFICATE ", name),
        }
    }
}

impl Print for CreateCertificate {
    fn print(&self, to: &mut Printer) {
        put!(to, "CREATE CERTIFICATE ", self.name, Maybe(" AUTHORIZATION ", &self.authorization));
        match &self.source {
            CertificateSource::SelfSigned { password, subject, start_date, expiry_date } => {
                put!(to, Maybe("", &password.as_ref().map(Encrypted)), " WITH SUBJECT = ", subject);
                put!(to, Maybe(", START_DATE = ", start_date));
                put!(to, Maybe(", EXPIRY_DATE = ", expiry_date));
            }
            CertificateSource::Assembly(name) => put!(to, " FROM ASSEMBLY ", name),
            CertificateSource::File { executable, path, format, private_key } => {
                put!(to, " FROM ", If(*executable, "EXECUTABLE "), "FILE = ", path);
                put!(to, FileOptions(format, private_key));
            }
            CertificateSource::Binary { bytes, private_key } => {
                put!(to, " FROM BINARY = ", Literal::Binary(bytes.clone()));
                put!(to, Maybe(" WITH ", private_key));
            }
        }
        let active = self.active_for_begin_dialog.map(OnOff);
        put!(to, Maybe(" ACTIVE FOR BEGIN_DIALOG = ", &active));
    }
}

/// `WITH FORMAT = '..', PRIVATE KEY (..)`
struct FileOptions<'a>(&'a Option<CertificateFormat>, &'a Option<PrivateKey>);

impl Print for FileOptions<'_> {
    fn print(&self, to: &mut Printer) {
        let format = self.0.map(|format| match format {
            CertificateFormat::Der => "'DER'",
            CertificateFormat::Pfx => "'PFX'",
        });
        put!(to, Maybe(" WITH FORMAT = ", &format));
        put!(to, Maybe(if format.is_some() { ", " } else { " WITH " }, self.1));
    }
}

impl Print for PrivateKey {
    fn print(&self, to: &mut Printer) {
        put!(to, "PRIVATE KEY (");
        let mut before = "";
        if let Some(source) = &self.source {
            put!(to, source);
            before = ", ";
        }
        for (word, secret) in [
            ("DECRYPTION BY PASSWORD = ", &self.decryption),
            ("ENCRYPTION BY PASSWORD = ", &self.encryption),
        ] {
            if let Some(secret) = secret {
                put!(to, before, word, secret);
                before = ", ";
            }
        }
        if let Some(algorithm) = &self.algorithm {
            put!(to, before, "ALGORITHM = ", algorithm);
        }
        put!(to, ")");
    }
}

impl Print for PrivateKeySource {
    fn print(&self, to: &mut Printer) {
        match self {
            PrivateKeySource::File(path) => put!(to, "FILE = ", path),
            PrivateKeySource::Binary(digits) if to.reveal => {
                put!(to, "BINARY = 0x", digits.reveal());
            }
            PrivateKeySource::Binary(_) => put!(to, "BINARY = 0x /* ", MASK, " */"),
        }
    }
}

impl Print for Encryptor {
    fn print(&self, to: &mut Printer) {
        match self {
            Encryptor::Certificate(name) => put!(to, "SERVER CERTIFICATE ", name),
            Encryptor::AsymmetricKey(name) => put!(to, "SERVER ASYMMETRIC KEY ", name),
        }
    }
}

impl Print for DatabaseEncryptionKeyStatement {
    fn print(&self, to: &mut Printer) {
        match self {
            DatabaseEncryptionKeyStatement::Create { algorithm, encryptor } => {
                put!(to, "CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = ", One(*algorithm));
                put!(to, " ENCRYPTION BY ", encryptor);
            }
            DatabaseEncryptionKeyStatement::Regenerate { algorithm } => {
                put!(to, "ALTER DATABASE ENCRYPTION KEY REGENERATE WITH ALGORITHM = ");
                put!(to, One(*algorithm));
            }
            DatabaseEncryptionKeyStatement::EncryptBy(encryptor) => {
                put!(to, "ALTER DATABASE ENCRYPTION KEY ENCRYPTION BY ", encryptor);
            }
            DatabaseEncryptionKeyStatement::Drop => put!(to, "DROP DATABASE ENCRYPTION KEY"),
        }
    }
}

impl Print for ProviderStatement {
    fn print(&self, to: &mut Printer) {
        match self {
            ProviderStatement::CreateProvider { name, file } => {
                put!(to, "CREATE CRYPTOGRAPHIC PROVIDER ", name, " FROM FILE = ", file);
            }
            ProviderStatement::AlterProvider { name, change } => {
                put!(to, "ALTER CRYPTOGRAPHIC PROVIDER ", name);
                match change {
                    ProviderChange::File(file) => put!(to, " FROM FILE = ", file),
                    ProviderChange::Enable(true) => put!(to, " ENABLE"),
                    ProviderChange::Enable(false) => put!(to, " DISABLE"),
                }
            }
            ProviderStatement::AlterCredential { name, identity, secret } => {
                put!(to, "ALTER CREDENTIAL ", name, " WITH IDENTITY = ", identity);
                put!(to, Maybe(", SECRET = ", secret));
            }
            ProviderStatement::DropLogin { name } => put!(to, "DROP LOGIN ", name),
            ProviderStatement::DropProvider { name } => {
                put!(to, "DROP CRYPTOGRAPHIC PROVIDER ", name);
            }
            ProviderStatement::CreateCredential { name, identity, secret, provider } => {
                put!(to, "CREATE CREDENTIAL ", name, " WITH IDENTITY = ", identity);
                put!(to, Maybe(", SECRET = ", secret));
                put!(to, Maybe(" FOR CRYPTOGRAPHIC PROVIDER ", provider));
            }
            ProviderStatement::DropCredential { name } => put!(to, "DROP CREDENTIAL ", name),
            ProviderStatement::CreateAsymmetricKey { name, authorization, provider, options } => {
                put!(to, "CREATE ASYMMETRIC KEY ", name, Maybe(" AUTHORIZATION ", authorization));
                put!(to, " FROM PROVIDER ", provider, " WITH ", List(options));
            }
            ProviderStatement::DropAsymmetricKey { name, remove_provider_key } => {
                put!(to, "DROP ASYMMETRIC KEY ", name);
                put!(to, If(*remove_provider_key, " REMOVE PROVIDER KEY"));
            }
            ProviderStatement::CreateLogin { name, key } => {
                put!(to, "CREATE LOGIN ", name, " FROM ASYMMETRIC KEY ", key);
            }
            ProviderStatement::LoginCredential { login, add, credential } => {
                put!(to, "ALTER LOGIN ", login, if *add { " ADD" } else { " DROP" });
                put!(to, " CREDENTIAL ", credential);
            }
        }
    }
}

impl Print for AsymmetricKeyOption {
    fn print(&self, to: &mut Printer) {
        match self {
            AsymmetricKeyOption::Algorithm(algorithm) => {
                put!(to, "ALGORITHM = ", One(*algorithm));
            }
            AsymmetricKeyOption::ProviderKeyName(name) => put!(to, "PROVIDER_KEY_NAME = ", name),
            AsymmetricKeyOption::OpenExisting(existing) => {
                put!(to, "CREATION_DISPOSITION = ");
                put!(to, if *existing { "OPEN_EXISTING" } else { "CREATE_NEW" });
            }
        }
    }
}
