//! Master keys and database encryption keys.

use super::Parser;
use crate::ast::{
    DatabaseEncryptionKeyStatement, Encryptor, MasterKeyEncryption, MasterKeyStatement,
    StatementKind,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Symbol;

fn master(statement: MasterKeyStatement) -> StatementKind {
    StatementKind::MasterKey(statement)
}

/// Each of these begins behind its verb.
impl Parser<'_> {
    pub(super) fn create_master_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::MASTER, K::KEY])?;
        let password = match self.at(K::ENCRYPTION) {
            true => Some(self.by_password(K::ENCRYPTION)?),
            false => None,
        };
        Ok(master(MasterKeyStatement::Create { password }))
    }

    pub(super) fn open_master_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::MASTER, K::KEY])?;
        let password = self.by_password(K::DECRYPTION)?;
        Ok(master(MasterKeyStatement::Open { password }))
    }

    pub(super) fn close_master_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::MASTER, K::KEY])?;
        Ok(master(MasterKeyStatement::Close))
    }

    pub(super) fn drop_master_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::MASTER, K::KEY])?;
        Ok(master(MasterKeyStatement::Drop))
    }

    pub(super) fn alter_master_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::MASTER, K::KEY])?;
        Ok(master(match self.keyword() {
            Some(K::ADD) => {
                self.advance();
                MasterKeyStatement::AddEncryption(self.master_key_encryption()?)
            }
            Some(K::DROP) => {
                self.advance();
                MasterKeyStatement::DropEncryption(self.master_key_encryption()?)
            }
            _ => {
                let force = self.accept(K::FORCE);
                self.require_all(&[K::REGENERATE, K::WITH])?;
                let password = self.by_password(K::ENCRYPTION)?;
                MasterKeyStatement::Regenerate { force, password }
            }
        }))
    }

    fn master_key_encryption(&mut self) -> Result<MasterKeyEncryption> {
        self.require_all(&[K::ENCRYPTION, K::BY])?;
        match self.at(K::SERVICE) {
            true => {
                self.require_all(&[K::SERVICE, K::MASTER, K::KEY])?;
                Ok(MasterKeyEncryption::ServiceMasterKey)
            }
            false => self.secret(K::PASSWORD).map(MasterKeyEncryption::Password),
        }
    }

    pub(super) fn alter_service_master_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::SERVICE, K::MASTER, K::KEY])?;
        if self.accept(K::WITH) {
            return self.unsupported("ALTER SERVICE MASTER KEY WITH an account");
        }
        let force = self.accept(K::FORCE);
        self.require(K::REGENERATE)?;
        Ok(master(MasterKeyStatement::RegenerateService { force }))
    }

    pub(super) fn backup_master_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::MASTER, K::KEY, K::TO, K::FILE])?;
        let file = self.equal_string()?;
        let password = self.by_password(K::ENCRYPTION)?;
        Ok(master(MasterKeyStatement::Backup { file, password }))
    }

    pub(super) fn backup_service_master_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::SERVICE, K::MASTER, K::KEY, K::TO, K::FILE])?;
        let file = self.equal_string()?;
        let password = self.by_password(K::ENCRYPTION)?;
        Ok(master(MasterKeyStatement::BackupService { file, password }))
    }

    pub(super) fn restore_master_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::MASTER, K::KEY, K::FROM, K::FILE])?;
        let file = self.equal_string()?;
        let decryption = self.by_password(K::DECRYPTION)?;
        let encryption = self.by_password(K::ENCRYPTION)?;
        let force = self.accept(K::FORCE);
        Ok(master(MasterKeyStatement::Restore { file, decryption, encryption, force }))
    }

    pub(super) fn restore_service_master_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::SERVICE, K::MASTER, K::KEY, K::FROM, K::FILE])?;
        let file = self.equal_string()?;
        let password = self.by_password(K::DECRYPTION)?;
        let force = self.accept(K::FORCE);
        Ok(master(MasterKeyStatement::RestoreService { file, password, force }))
    }

    /// `DATABASE` is taken, too.
    pub(super) fn create_database_encryption_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::ENCRYPTION, K::KEY, K::WITH, K::ALGORITHM])?;
        self.require_symbol(Symbol::Equal)?;
        let algorithm = self.require_word()?;
        let encryptor = self.encryption_by_server()?;
        let create = DatabaseEncryptionKeyStatement::Create { algorithm, encryptor };
        Ok(StatementKind::DatabaseEncryptionKey(create))
    }

    pub(super) fn alter_database_encryption_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::ENCRYPTION, K::KEY])?;
        let statement = match self.accept(K::REGENERATE) {
            true => {
                self.require_all(&[K::WITH, K::ALGORITHM])?;
                self.require_symbol(Symbol::Equal)?;
                DatabaseEncryptionKeyStatement::Regenerate { algorithm: self.require_word()? }
            }
            false => DatabaseEncryptionKeyStatement::EncryptBy(self.encryption_by_server()?),
        };
        Ok(StatementKind::DatabaseEncryptionKey(statement))
    }

    pub(super) fn drop_database_encryption_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::ENCRYPTION, K::KEY])?;
        Ok(StatementKind::DatabaseEncryptionKey(DatabaseEncryptionKeyStatement::Drop))
    }

    fn encryption_by_server(&mut self) -> Result<Encryptor> {
        self.require_all(&[K::ENCRYPTION, K::BY, K::SERVER])?;
        match self.accept(K::CERTIFICATE) {
            true => self.name().map(Encryptor::Certificate),
            false => {
                self.require_all(&[K::ASYMMETRIC, K::KEY])?;
                self.name().map(Encryptor::AsymmetricKey)
            }
        }
    }
}
