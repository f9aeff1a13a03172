//! RESTORE.

use super::Parser;
use crate::ast::{
    Inspect, InspectKind, OrVariable, Restore, RestoreFlag, RestoreOption, RestoreSource,
    StatementKind, StopMark,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::known;
use crate::lexer::{Symbol, TokenKind};

impl Parser<'_> {
    pub(super) fn restore(&mut self) -> Result<StatementKind> {
        self.advance();
        match self.keyword() {
            Some(K::MASTER) => return self.restore_master_key(),
            Some(K::SERVICE) => return self.restore_service_master_key(),
            Some(K::SYMMETRIC) => return self.unsupported("RESTORE SYMMETRIC KEY"),
            Some(K::TRAN | K::TRANSACTION) => return self.unsupported("RESTORE TRANSACTION"),
            _ => {}
        }
        if let Some(kind) = self.accept_word::<InspectKind>() {
            self.require(K::FROM)?;
            let devices = self.comma_list(Self::device)?;
            let options = self.restore_options()?;
            return Ok(StatementKind::Inspect(Box::new(Inspect { kind, devices, options })));
        }
        let (kind, database) = self.backup_target()?;
        let files = self.file_selections()?;
        let source = match self.accept(K::FROM) {
            true => self.restore_source()?,
            false => RestoreSource::Nothing,
        };
        let options = self.restore_options()?;
        let restore = Restore { kind, database, files, source, options };
        Ok(StatementKind::Restore(Box::new(restore)))
    }

    fn restore_source(&mut self) -> Result<RestoreSource> {
        let snapshot =
            self.at(K::DATABASE_SNAPSHOT) && self.peek() == TokenKind::Symbol(Symbol::Equal);
        if !snapshot {
            return self.comma_list(Self::device).map(RestoreSource::Devices);
        }
        self.advance();
        self.require_symbol(Symbol::Equal)?;
        if matches!(self.current.kind, TokenKind::String { .. }) {
            let name = self.name_or_string()?;
            return Ok(RestoreSource::Snapshot(OrVariable::Given(name)));
        }
        self.name_or_variable().map(RestoreSource::Snapshot)
    }

    fn restore_options(&mut self) -> Result<Vec<RestoreOption>> {
        match self.accept(K::WITH) {
            true => self.comma_list(Self::restore_option),
            false => Ok(Vec::new()),
        }
    }

    fn restore_option(&mut self) -> Result<RestoreOption> {
        if let Some(flag) = self.accept_word::<RestoreFlag>() {
            return Ok(RestoreOption::Flag(flag));
        }
        if let Some(option) = self.media_option()? {
            return Ok(RestoreOption::Media(option));
        }
        if let Some(option) = self.words_of(known::RESTORE_OPTIONS) {
            return self.unsupported(format!("RESTORE WITH {option}"));
        }
        let Some(word) = self.keyword() else { return self.unknown_option("RESTORE") };
        match word {
            K::STANDBY | K::MOVE | K::FILE | K::STOPAT | K::STOPATMARK | K::STOPBEFOREMARK => {}
            _ => return self.unknown_option("RESTORE"),
        }
        self.advance();
        Ok(match word {
            K::STANDBY => RestoreOption::Standby(self.equal_text()?),
            K::MOVE => {
                let logical = self.string_or_variable()?;
                self.require(K::TO)?;
                RestoreOption::Move { logical, path: self.string_or_variable()? }
            }
            K::FILE => RestoreOption::File(self.equal_number()?),
            K::STOPAT => RestoreOption::StopAt(self.equal_text()?),
            K::STOPATMARK => RestoreOption::StopAtMark(self.stop_mark()?),
            _ => RestoreOption::StopBeforeMark(self.stop_mark()?),
        })
    }

    fn stop_mark(&mut self) -> Result<StopMark> {
        let mark = self.equal_text()?;
        let after = match self.accept(K::AFTER) {
            true => Some(self.string_or_variable()?),
            false => None,
        };
        Ok(StopMark { mark, after })
    }
}
