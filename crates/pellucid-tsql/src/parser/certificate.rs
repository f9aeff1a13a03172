//! Certificates.

use super::Parser;
use crate::ast::{
    AlterCertificate, BackupCertificate, CertificateFormat, CertificateSource,
    CertificateStatement, CreateCertificate, Name, PrivateKey, PrivateKeySource, StatementKind,
    StringLiteral,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::{binary_value, Symbol, TokenKind};
use crate::secret::Secret;

/// Each of these begins behind its verb.
impl Parser<'_> {
    pub(super) fn create_certificate(&mut self) -> Result<StatementKind> {
        self.require(K::CERTIFICATE)?;
        let name = self.name()?;
        let authorization = self.authorization()?;
        let source = match self.accept(K::FROM) {
            true => self.certificate_source()?,
            false => self.self_signed()?,
        };
        let active_for_begin_dialog = match self.at(K::ACTIVE) {
            true => Some(self.active_for_begin_dialog()?),
            false => None,
        };
        let create = CreateCertificate { name, authorization, source, active_for_begin_dialog };
        Ok(StatementKind::Certificate(CertificateStatement::Create(create)))
    }

    fn certificate_source(&mut self) -> Result<CertificateSource> {
        if self.accept(K::ASSEMBLY) {
            return self.name().map(CertificateSource::Assembly);
        }
        if self.accept(K::BINARY) {
            self.require_symbol(Symbol::Equal)?;
            let bytes = self.binary()?;
            let private_key = match self.accept(K::WITH) {
                true => Some(self.private_key()?),
                false => None,
            };
            return Ok(CertificateSource::Binary { bytes, private_key });
        }
        let executable = self.accept(K::EXECUTABLE);
        self.require(K::FILE)?;
        let path = self.equal_string()?;
        let (format, private_key) = self.certificate_options()?;
        Ok(CertificateSource::File { executable, path, format, private_key })
    }

    /// `[WITH [FORMAT = '..'] [,] [PRIVATE KEY (..)]]`
    fn certificate_options(&mut self) -> Result<(Option<CertificateFormat>, Option<PrivateKey>)> {
        if !self.accept(K::WITH) {
            return Ok((None, None));
        }
        if !self.accept(K::FORMAT) {
            return Ok((None, Some(self.private_key()?)));
        }
        self.require_symbol(Symbol::Equal)?;
        let format = match &self.text(self.current).to_ascii_uppercase()[..] {
            "'DER'" | "N'DER'" => CertificateFormat::Der,
            "'PFX'" | "N'PFX'" => CertificateFormat::Pfx,
            _ => return self.unexpected(),
        };
        self.advance();
        let private_key = match self.accept_symbol(Symbol::Comma) {
            true => Some(self.private_key()?),
            false => None,
        };
        Ok((Some(format), private_key))
    }

    fn self_signed(&mut self) -> Result<CertificateSource> {
        let password = match self.at(K::ENCRYPTION) {
            true => Some(self.by_password(K::ENCRYPTION)?),
            false => None,
        };
        self.require_all(&[K::WITH, K::SUBJECT])?;
        let subject = self.equal_string()?;
        let (mut start_date, mut expiry_date): (Option<StringLiteral>, Option<StringLiteral>) =
            (None, None);
        while self.accept_symbol(Symbol::Comma) {
            let date = match self.keyword() {
                Some(K::START_DATE) if start_date.is_none() => &mut start_date,
                Some(K::EXPIRY_DATE) if expiry_date.is_none() => &mut expiry_date,
                _ => return self.unexpected(),
            };
            self.advance();
            *date = Some(self.equal_string()?);
        }
        Ok(CertificateSource::SelfSigned { password, subject, start_date, expiry_date })
    }

    /// `PRIVATE KEY (..)`
    fn private_key(&mut self) -> Result<PrivateKey> {
        self.require_all(&[K::PRIVATE, K::KEY])?;
        let mut key =
            PrivateKey { source: None, decryption: None, encryption: None, algorithm: None };
        self.parenthesized_list(|p| {
            match p.keyword() {
                Some(K::FILE) if key.source.is_none() => {
                    p.advance();
                    key.source = Some(PrivateKeySource::File(p.equal_string()?));
                }
                Some(K::BINARY) if key.source.is_none() => {
                    p.secret = true;
                    p.advance();
                    p.require_symbol(Symbol::Equal)?;
                    let digits = p.secret_digits()?;
                    key.source = Some(PrivateKeySource::Binary(digits));
                }
                Some(K::DECRYPTION) if key.decryption.is_none() => {
                    key.decryption = Some(p.by_password(K::DECRYPTION)?);
                }
                Some(K::ENCRYPTION) if key.encryption.is_none() => {
                    key.encryption = Some(p.by_password(K::ENCRYPTION)?);
                }
                Some(K::ALGORITHM) if key.algorithm.is_none() => {
                    p.advance();
                    key.algorithm = Some(p.equal_string()?);
                }
                _ => return p.unexpected(),
            }
            Ok(())
        })?;
        Ok(key)
    }

    /// The digits of `0x..`, two for each byte, with no copy of them left behind.
    fn secret_digits(&mut self) -> Result<Secret> {
        if self.current.kind != TokenKind::Binary {
            return self.unexpected();
        }
        let token = self.advance();
        let written = &self.text(token)[2..];
        let mut digits = String::with_capacity(written.len() + 1);
        digits.push_str(if written.len() % 2 == 1 { "0" } else { "" });
        digits.extend(written.chars().map(|digit| digit.to_ascii_uppercase()));
        Ok(Secret::new(digits))
    }

    fn binary(&mut self) -> Result<Vec<u8>> {
        match self.current.kind {
            TokenKind::Binary => {
                let token = self.advance();
                Ok(binary_value(self.text(token)))
            }
            _ => self.unexpected(),
        }
    }

    fn active_for_begin_dialog(&mut self) -> Result<bool> {
        self.require_all(&[K::ACTIVE, K::FOR, K::BEGIN_DIALOG])?;
        self.require_symbol(Symbol::Equal)?;
        self.on_off()
    }

    pub(super) fn alter_certificate(&mut self) -> Result<StatementKind> {
        self.require(K::CERTIFICATE)?;
        let name = self.name()?;
        let action = match self.accept(K::REMOVE) {
            true => {
                self.require_all(&[K::PRIVATE, K::KEY])?;
                AlterCertificate::RemovePrivateKey
            }
            false => {
                self.require(K::WITH)?;
                match self.at(K::ACTIVE) {
                    true => AlterCertificate::ActiveForBeginDialog(self.active_for_begin_dialog()?),
                    false => AlterCertificate::PrivateKey(self.private_key()?),
                }
            }
        };
        Ok(StatementKind::Certificate(CertificateStatement::Alter { name, action }))
    }

    pub(super) fn backup_certificate(&mut self) -> Result<StatementKind> {
        self.require(K::CERTIFICATE)?;
        let name = self.name()?;
        self.require_all(&[K::TO, K::FILE])?;
        let file = self.equal_string()?;
        let (format, private_key) = self.certificate_options()?;
        let backup = BackupCertificate { name, file, format, private_key };
        Ok(StatementKind::Certificate(CertificateStatement::Backup(backup)))
    }

    pub(super) fn drop_certificate(&mut self) -> Result<StatementKind> {
        self.require(K::CERTIFICATE)?;
        let name = self.name()?;
        Ok(StatementKind::Certificate(CertificateStatement::Drop { name }))
    }

    /// `[AUTHORIZATION u]`
    pub(super) fn authorization(&mut self) -> Result<Option<Name>> {
        match self.accept(K::AUTHORIZATION) {
            true => self.name().map(Some),
            false => Ok(None),
        }
    }
}
