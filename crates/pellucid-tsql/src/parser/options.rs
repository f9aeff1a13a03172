//! What BACKUP and RESTORE share: databases, devices, media options.

use super::Parser;
use crate::ast::{
    BackupKind, Device, DeviceKind, FileSelection, MediaOption, NameOrVariable, StringLiteral,
};
use crate::error::{ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

impl Parser<'_> {
    /// `{DATABASE | LOG} {name | @v}`
    pub(super) fn backup_target(&mut self) -> Result<(BackupKind, NameOrVariable)> {
        Ok((self.require_word()?, self.name_or_variable()?))
    }

    /// `FILE = .., FILEGROUP = .., READ_WRITE_FILEGROUPS, PAGE = ..`; empty if there are none.
    pub(super) fn file_selections(&mut self) -> Result<Vec<FileSelection>> {
        match self.keyword() {
            Some(K::FILE | K::FILEGROUP | K::READ_WRITE_FILEGROUPS | K::PAGE) => {
                self.comma_list(Self::file_selection)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn file_selection(&mut self) -> Result<FileSelection> {
        let word = self.keyword();
        self.advance();
        match word {
            Some(K::FILE) => self.equal_text().map(FileSelection::File),
            Some(K::FILEGROUP) => self.equal_text().map(FileSelection::Filegroup),
            Some(K::PAGE) => self.equal_text().map(FileSelection::Page),
            Some(K::READ_WRITE_FILEGROUPS) => Ok(FileSelection::ReadWriteFilegroups),
            _ => self.unexpected(),
        }
    }

    pub(super) fn device(&mut self) -> Result<Device> {
        let named = self.peek() == TokenKind::Symbol(Symbol::Equal);
        match self.at_word() {
            // The others may be names.
            Some(kind) if named || kind == DeviceKind::Disk => {
                self.advance();
                return Ok(Device::Physical { kind, path: self.equal_text()? });
            }
            _ => {}
        }
        if self.at(K::VIRTUAL_DEVICE) && named {
            return self.unsupported("VIRTUAL_DEVICE");
        }
        self.name_or_variable().map(Device::Logical)
    }

    /// An option that BACKUP and RESTORE share, if one is here.
    pub(super) fn media_option(&mut self) -> Result<Option<MediaOption>> {
        if let Some(flag) = self.accept_word() {
            return Ok(Some(MediaOption::Flag(flag)));
        }
        let Some(word) = self.keyword() else { return Ok(None) };
        match word {
            K::PASSWORD => {
                return self.secret(word).map(|secret| Some(MediaOption::Password(secret)))
            }
            K::MEDIAPASSWORD => {
                return self.secret(word).map(|secret| Some(MediaOption::MediaPassword(secret)));
            }
            K::BLOCKSIZE
            | K::BUFFERCOUNT
            | K::MAXTRANSFERSIZE
            | K::STATS
            | K::MEDIANAME
            | K::CREDENTIAL => {}
            _ => return Ok(None),
        }
        self.advance();
        Ok(Some(match word {
            K::BLOCKSIZE => MediaOption::BlockSize(self.equal_number()?),
            K::BUFFERCOUNT => MediaOption::BufferCount(self.equal_number()?),
            K::MAXTRANSFERSIZE => MediaOption::MaxTransferSize(self.equal_number()?),
            K::STATS => MediaOption::Stats(match self.accept_symbol(Symbol::Equal) {
                true => Some(self.integer_or_variable()?),
                false => None,
            }),
            K::MEDIANAME => MediaOption::MediaName(self.equal_text()?),
            _ => MediaOption::Credential(self.credential()?),
        }))
    }

    /// `= 'name'` or `= [name]`
    fn credential(&mut self) -> Result<StringLiteral> {
        self.require_symbol(Symbol::Equal)?;
        match self.at_name() {
            true => {
                let text = self.name()?.as_str().to_owned();
                Ok(StringLiteral { text, national: false })
            }
            false => self.string(),
        }
    }

    /// A word that is no option of `statement`.
    pub(super) fn unknown_option<T>(&self, statement: &'static str) -> Result<T> {
        match self.current.kind {
            TokenKind::Name | TokenKind::Keyword(_) if !self.at(K::WITH) => {
                let option = self.near(self.current);
                self.fail(ErrorKind::UnknownOption { option, statement })
            }
            _ => self.unexpected(),
        }
    }
}
