//! Keys outside the instance: providers, credentials, asymmetric keys and their logins.

use super::Parser;
use crate::ast::{
    AsymmetricKeyOption, ProviderChange, ProviderStatement, StatementKind, StringLiteral,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Symbol;
use crate::secret::Secret;

/// Each of these begins behind its verb.
impl Parser<'_> {
    pub(super) fn create_provider(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::CRYPTOGRAPHIC, K::PROVIDER])?;
        let name = self.name()?;
        self.require_all(&[K::FROM, K::FILE])?;
        let file = self.equal_string()?;
        Ok(StatementKind::Provider(ProviderStatement::CreateProvider { name, file }))
    }

    pub(super) fn alter_provider(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::CRYPTOGRAPHIC, K::PROVIDER])?;
        let name = self.name()?;
        let change = match (self.accept(K::ENABLE), self.accept(K::DISABLE)) {
            (false, false) => {
                self.require_all(&[K::FROM, K::FILE])?;
                ProviderChange::File(self.equal_string()?)
            }
            (enable, _) => ProviderChange::Enable(enable),
        };
        Ok(StatementKind::Provider(ProviderStatement::AlterProvider { name, change }))
    }

    pub(super) fn drop_provider(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::CRYPTOGRAPHIC, K::PROVIDER])?;
        let name = self.name()?;
        Ok(StatementKind::Provider(ProviderStatement::DropProvider { name }))
    }

    pub(super) fn create_credential(&mut self) -> Result<StatementKind> {
        self.require(K::CREDENTIAL)?;
        let name = self.name()?;
        let (identity, secret) = self.credential_identity()?;
        let provider = match self.accept(K::FOR) {
            true => {
                self.require_all(&[K::CRYPTOGRAPHIC, K::PROVIDER])?;
                Some(self.name()?)
            }
            false => None,
        };
        let create = ProviderStatement::CreateCredential { name, identity, secret, provider };
        Ok(StatementKind::Provider(create))
    }

    /// `WITH IDENTITY = '..' [, SECRET = '..']`
    fn credential_identity(&mut self) -> Result<(StringLiteral, Option<Secret>)> {
        self.require(K::WITH)?;
        self.require(K::IDENTITY)?;
        let identity = self.equal_string()?;
        let secret = match self.accept_symbol(Symbol::Comma) {
            true => Some(self.secret(K::SECRET)?),
            false => None,
        };
        Ok((identity, secret))
    }

    pub(super) fn alter_credential(&mut self) -> Result<StatementKind> {
        self.require(K::CREDENTIAL)?;
        let name = self.name()?;
        let (identity, secret) = self.credential_identity()?;
        let alter = ProviderStatement::AlterCredential { name, identity, secret };
        Ok(StatementKind::Provider(alter))
    }

    pub(super) fn drop_login(&mut self) -> Result<StatementKind> {
        self.require(K::LOGIN)?;
        let name = self.name()?;
        Ok(StatementKind::Provider(ProviderStatement::DropLogin { name }))
    }

    pub(super) fn drop_credential(&mut self) -> Result<StatementKind> {
        self.require(K::CREDENTIAL)?;
        let name = self.name()?;
        Ok(StatementKind::Provider(ProviderStatement::DropCredential { name }))
    }

    pub(super) fn create_asymmetric_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::ASYMMETRIC, K::KEY])?;
        let name = self.name()?;
        let authorization = self.authorization()?;
        if !self.at_both(K::FROM, K::PROVIDER) {
            return self.unsupported("CREATE ASYMMETRIC KEY outside a provider");
        }
        self.require_all(&[K::FROM, K::PROVIDER])?;
        let provider = self.name()?;
        self.require(K::WITH)?;
        let options = self.comma_list(Self::asymmetric_key_option)?;
        let create =
            ProviderStatement::CreateAsymmetricKey { name, authorization, provider, options };
        Ok(StatementKind::Provider(create))
    }

    fn asymmetric_key_option(&mut self) -> Result<AsymmetricKeyOption> {
        if self.accept(K::PROVIDER_KEY_NAME) {
            return self.equal_string().map(AsymmetricKeyOption::ProviderKeyName);
        }
        if self.accept(K::ALGORITHM) {
            self.require_symbol(Symbol::Equal)?;
            return self.require_word().map(AsymmetricKeyOption::Algorithm);
        }
        self.require(K::CREATION_DISPOSITION)?;
        self.require_symbol(Symbol::Equal)?;
        match self.accept(K::OPEN_EXISTING) {
            true => Ok(AsymmetricKeyOption::OpenExisting(true)),
            false => {
                self.require(K::CREATE_NEW)?;
                Ok(AsymmetricKeyOption::OpenExisting(false))
            }
        }
    }

    pub(super) fn drop_asymmetric_key(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::ASYMMETRIC, K::KEY])?;
        let name = self.name()?;
        let remove_provider_key = self.accept(K::REMOVE);
        if remove_provider_key {
            self.require_all(&[K::PROVIDER, K::KEY])?;
        }
        let drop = ProviderStatement::DropAsymmetricKey { name, remove_provider_key };
        Ok(StatementKind::Provider(drop))
    }

    pub(super) fn create_login(&mut self) -> Result<StatementKind> {
        self.require(K::LOGIN)?;
        let name = self.name()?;
        if !self.at_both(K::FROM, K::ASYMMETRIC) {
            return self.unsupported("CREATE LOGIN other than from an asymmetric key");
        }
        self.require_all(&[K::FROM, K::ASYMMETRIC, K::KEY])?;
        let key = self.name()?;
        Ok(StatementKind::Provider(ProviderStatement::CreateLogin { name, key }))
    }

    pub(super) fn alter_login(&mut self) -> Result<StatementKind> {
        self.require(K::LOGIN)?;
        let login = self.name()?;
        let add = match (self.at_both(K::ADD, K::CREDENTIAL), self.at_both(K::DROP, K::CREDENTIAL))
        {
            (false, false) => return self.unsupported("ALTER LOGIN other than its credential"),
            (add, _) => add,
        };
        self.advance();
        self.advance();
        let credential = self.name()?;
        let alter = ProviderStatement::LoginCredential { login, add, credential };
        Ok(StatementKind::Provider(alter))
    }
}
