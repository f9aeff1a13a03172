//! DBCC, UPDATE STATISTICS, CHECKPOINT, RECONFIGURE.

use super::Parser;
use crate::ast::{DbccArgument, DbccOption, MaintenanceStatement, StatementKind, StatisticsOption};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::known;
use crate::lexer::{Symbol, TokenKind};

impl Parser<'_> {
    pub(super) fn dbcc(&mut self) -> Result<StatementKind> {
        self.advance();
        let command = self.name()?;
        let mut arguments = Vec::new();
        if self.accept_symbol(Symbol::LeftParenthesis) {
            if !self.at_symbol(Symbol::RightParenthesis) {
                arguments = self.comma_list(Self::dbcc_argument)?;
            }
            self.require_symbol(Symbol::RightParenthesis)?;
        }
        let options = match self.accept(K::WITH) {
            true => self.comma_list(Self::dbcc_option)?,
            false => Vec::new(),
        };
        let dbcc = MaintenanceStatement::Dbcc { command, arguments, options };
        Ok(StatementKind::Maintenance(dbcc))
    }

    fn dbcc_argument(&mut self) -> Result<DbccArgument> {
        if let Some(variable) = self.accept_variable()? {
            return Ok(DbccArgument::Variable(variable));
        }
        if self.current.kind == TokenKind::SystemVariable {
            let name = self.advance();
            return Ok(DbccArgument::SystemVariable(self.text(name)[2..].to_owned()));
        }
        if self.at_name() {
            return self.object_name().map(DbccArgument::Name);
        }
        let (negative, value) = self.signed_literal()?;
        Ok(DbccArgument::Literal { negative, value })
    }

    fn dbcc_option(&mut self) -> Result<DbccOption> {
        let name = self.name()?;
        let value = match self.accept_symbol(Symbol::Equal) {
            true => Some(self.integer()?),
            false => None,
        };
        Ok(DbccOption { name, value })
    }

    pub(super) fn update_statistics(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::UPDATE, K::STATISTICS])?;
        let table = self.object_name()?;
        let targets = match self.at_symbol(Symbol::LeftParenthesis) {
            true => self.optional_names()?,
            false => self.accept_name()?.into_iter().collect(),
        };
        let options = match self.accept(K::WITH) {
            true => self.comma_list(Self::statistics_option)?,
            false => Vec::new(),
        };
        let update = MaintenanceStatement::UpdateStatistics { table, targets, options };
        Ok(StatementKind::Maintenance(update))
    }

    fn statistics_option(&mut self) -> Result<StatisticsOption> {
        if let Some(scope) = self.accept_word() {
            return Ok(StatisticsOption::Scope(scope));
        }
        let word = self.keyword();
        match word {
            Some(
                K::FULLSCAN | K::RESAMPLE | K::SAMPLE | K::NORECOMPUTE | K::INCREMENTAL | K::MAXDOP,
            ) => self.advance(),
            _ => match self.words_of(known::STATISTICS_OPTIONS) {
                Some(option) => {
                    return self.unsupported(format!("UPDATE STATISTICS WITH {option}"));
                }
                None => return self.unknown_option("UPDATE STATISTICS"),
            },
        };
        Ok(match word {
            Some(K::FULLSCAN) => StatisticsOption::FullScan,
            Some(K::RESAMPLE) if self.at(K::ON) => {
                return self.unsupported("RESAMPLE ON PARTITIONS");
            }
            Some(K::RESAMPLE) => StatisticsOption::Resample,
            Some(K::NORECOMPUTE) => StatisticsOption::NoRecompute,
            Some(K::INCREMENTAL) => {
                self.require_symbol(Symbol::Equal)?;
                StatisticsOption::Incremental(self.on_off()?)
            }
            Some(K::MAXDOP) => StatisticsOption::MaxDop(self.equal_integer()?),
            _ => {
                let value = self.integer()?;
                match self.accept(K::PERCENT) {
                    true => StatisticsOption::SamplePercent(value),
                    false => {
                        self.require(K::ROWS)?;
                        StatisticsOption::SampleRows(value)
                    }
                }
            }
        })
    }

    pub(super) fn checkpoint(&mut self) -> Result<StatementKind> {
        self.advance();
        let seconds = match self.current.kind {
            TokenKind::Integer => Some(self.integer()?),
            _ => None,
        };
        Ok(StatementKind::Maintenance(MaintenanceStatement::Checkpoint(seconds)))
    }

    pub(super) fn reconfigure(&mut self) -> Result<StatementKind> {
        self.advance();
        let with_override = self.at_both(K::WITH, K::OVERRIDE);
        if with_override {
            self.require_all(&[K::WITH, K::OVERRIDE])?;
        }
        Ok(StatementKind::Maintenance(MaintenanceStatement::Reconfigure { with_override }))
    }
}
