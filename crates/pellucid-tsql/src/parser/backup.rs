//! BACKUP.

use super::Parser;
use crate::ast::{
    Algorithm, Backup, BackupFlag, BackupOption, Compression, Device, Encryptor, StatementKind,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::known;
use crate::lexer::Symbol;

impl Parser<'_> {
    pub(super) fn backup(&mut self) -> Result<StatementKind> {
        self.advance();
        match self.keyword() {
            Some(K::CERTIFICATE) => self.backup_certificate(),
            Some(K::MASTER) => self.backup_master_key(),
            Some(K::SERVICE) => self.backup_service_master_key(),
            _ => match self.words_of(known::BACKUPS) {
                Some(words) => self.unsupported(format!("BACKUP {words}")),
                None => self.backup_database(),
            },
        }
    }

    fn backup_database(&mut self) -> Result<StatementKind> {
        let (kind, database) = self.backup_target()?;
        let files = self.file_selections()?;
        self.require(K::TO)?;
        let devices = self.comma_list(Self::device)?;
        let mut mirrors: Vec<Vec<Device>> = Vec::new();
        while self.accept(K::MIRROR) {
            self.require(K::TO)?;
            mirrors.push(self.comma_list(Self::device)?);
        }
        let options = match self.accept(K::WITH) {
            true => self.comma_list(Self::backup_option)?,
            false => Vec::new(),
        };
        let backup = Backup { kind, database, files, devices, mirrors, options };
        Ok(StatementKind::Backup(Box::new(backup)))
    }

    fn backup_option(&mut self) -> Result<BackupOption> {
        if let Some(flag) = self.accept_word::<BackupFlag>() {
            return Ok(BackupOption::Flag(flag));
        }
        if let Some(option) = self.media_option()? {
            return Ok(BackupOption::Media(option));
        }
        if let Some(option) = self.words_of(known::BACKUP_OPTIONS) {
            return self.unsupported(format!("BACKUP WITH {option}"));
        }
        let Some(word) = self.keyword() else { return self.unknown_option("BACKUP") };
        match word {
            K::COMPRESSION
            | K::ENCRYPTION
            | K::NAME
            | K::DESCRIPTION
            | K::MEDIADESCRIPTION
            | K::EXPIREDATE
            | K::RETAINDAYS
            | K::STANDBY => {}
            _ => return self.unknown_option("BACKUP"),
        }
        self.advance();
        Ok(match word {
            K::COMPRESSION => BackupOption::Compression(self.compression()?),
            K::ENCRYPTION => self.backup_encryption()?,
            K::NAME => BackupOption::Name(self.equal_text()?),
            K::DESCRIPTION => BackupOption::Description(self.equal_text()?),
            K::MEDIADESCRIPTION => BackupOption::MediaDescription(self.equal_text()?),
            K::EXPIREDATE => BackupOption::ExpireDate(self.equal_text()?),
            K::RETAINDAYS => BackupOption::RetainDays(self.equal_number()?),
            _ => BackupOption::Standby(self.equal_text()?),
        })
    }

    /// `[(ALGORITHM = .. [, LEVEL = ..])]`; the reference also prints it without parentheses.
    fn compression(&mut self) -> Result<Option<Compression>> {
        if self.at(K::ALGORITHM) {
            self.advance();
            self.require_symbol(Symbol::Equal)?;
            let algorithm = self.require_word()?;
            return Ok(Some(Compression { algorithm, level: None }));
        }
        if !self.accept_symbol(Symbol::LeftParenthesis) {
            return Ok(None);
        }
        self.require(K::ALGORITHM)?;
        self.require_symbol(Symbol::Equal)?;
        let algorithm = self.require_word()?;
        let mut level = None;
        if self.accept_symbol(Symbol::Comma) {
            self.require(K::LEVEL)?;
            self.require_symbol(Symbol::Equal)?;
            level = Some(self.require_word()?);
        }
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(Some(Compression { algorithm, level }))
    }

    /// `(ALGORITHM = .., SERVER ..)`
    fn backup_encryption(&mut self) -> Result<BackupOption> {
        self.require_symbol(Symbol::LeftParenthesis)?;
        self.require(K::ALGORITHM)?;
        self.require_symbol(Symbol::Equal)?;
        let algorithm: Algorithm = self.require_word()?;
        self.require_symbol(Symbol::Comma)?;
        self.require(K::SERVER)?;
        let certificate = self.accept(K::CERTIFICATE);
        if !certificate {
            self.require_all(&[K::ASYMMETRIC, K::KEY])?;
        }
        self.require_symbol(Symbol::Equal)?;
        let name = self.name()?;
        self.require_symbol(Symbol::RightParenthesis)?;
        let encryptor = match certificate {
            true => Encryptor::Certificate(name),
            false => Encryptor::AsymmetricKey(name),
        };
        Ok(BackupOption::Encryption { algorithm, encryptor })
    }
}
