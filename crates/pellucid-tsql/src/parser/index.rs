//! Indexes and their options.

use super::Parser;
use crate::ast::{
    CreateIndex, DropIndex, IndexAction, IndexColumn, IndexOption, IndexSwitch,
    MaintenanceStatement, ObjectName, ObjectStatement, Partition, StatementKind, TableIndex,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::known;
use crate::lexer::{Symbol, TokenKind};

/// Statements begin behind their verb.
impl Parser<'_> {
    pub(super) fn create_index(&mut self) -> Result<StatementKind> {
        let unique = self.accept(K::UNIQUE);
        let clustering = self.accept_word();
        let columnstore = self.accept(K::COLUMNSTORE);
        self.require(K::INDEX)?;
        let name = self.name()?;
        self.require(K::ON)?;
        let table = self.object_name()?;
        let columns = match self.at_symbol(Symbol::LeftParenthesis) || !columnstore {
            true => self.parenthesized_list(Self::index_column)?,
            false => Vec::new(),
        };
        let include = match self.accept(K::INCLUDE) {
            true => self.parenthesized_list(Self::name)?,
            false => Vec::new(),
        };
        let filter = match self.accept(K::WHERE) {
            true => Some(self.condition()?),
            false => None,
        };
        let options = self.with_index_options()?;
        let filegroup = self.on_filegroup()?;
        Ok(StatementKind::Object(ObjectStatement::CreateIndex(CreateIndex {
            unique,
            clustering,
            columnstore,
            name,
            table,
            columns,
            include,
            filter,
            options,
            filegroup,
        })))
    }

    /// `INDEX name (columns)` among the columns of a table
    pub(super) fn table_index(&mut self) -> Result<TableIndex> {
        self.require(K::INDEX)?;
        let name = self.name()?;
        let unique = self.accept(K::UNIQUE);
        let clustering = self.accept_word();
        if self.at(K::COLUMNSTORE) || self.at(K::HASH) {
            return self.unsupported("COLUMNSTORE and HASH of an index in a table");
        }
        let columns = self.parenthesized_list(Self::index_column)?;
        let include = match self.accept(K::INCLUDE) {
            true => self.parenthesized_list(Self::name)?,
            false => Vec::new(),
        };
        if self.at(K::WHERE) {
            return self.unsupported("WHERE of an index in a table");
        }
        let options = self.with_index_options()?;
        let filegroup = self.on_filegroup()?;
        Ok(TableIndex { name, unique, clustering, columns, include, options, filegroup })
    }

    /// `name [ASC | DESC]`
    pub(super) fn index_column(&mut self) -> Result<IndexColumn> {
        Ok(IndexColumn { name: self.name()?, descending: self.descending() })
    }

    pub(super) fn drop_indexes(&mut self) -> Result<StatementKind> {
        self.require(K::INDEX)?;
        let if_exists = self.if_exists()?;
        let indexes = self.comma_list(Self::dropped_index)?;
        Ok(StatementKind::Object(ObjectStatement::DropIndexes { if_exists, indexes }))
    }

    /// `index ON table`, or `table.index` as it was once written.
    fn dropped_index(&mut self) -> Result<DropIndex> {
        let [database, schema, table, index] = self.dotted()?;
        match (index, table) {
            (Some(name), Some(object)) => {
                let table = ObjectName { server: None, database, schema, object };
                Ok(DropIndex { name, table })
            }
            (Some(name), None) if schema.is_none() => {
                self.require(K::ON)?;
                let table = self.object_name()?;
                match self.at(K::WITH) {
                    true => self.unsupported("DROP INDEX WITH"),
                    false => Ok(DropIndex { name, table }),
                }
            }
            _ => self.unexpected(),
        }
    }

    pub(super) fn alter_index(&mut self) -> Result<StatementKind> {
        self.require(K::INDEX)?;
        let index = match self.accept(K::ALL) {
            true => None,
            false => Some(self.name()?),
        };
        self.require(K::ON)?;
        let table = self.object_name()?;
        let action = match self.keyword() {
            Some(K::REBUILD) => {
                self.advance();
                self.rebuild()?
            }
            Some(K::REORGANIZE) => {
                self.advance();
                let partition = match self.accept(K::PARTITION) {
                    true => Some(self.equal_integer()?),
                    false => None,
                };
                IndexAction::Reorganize { partition, options: self.with_index_options()? }
            }
            Some(K::DISABLE) => {
                self.advance();
                IndexAction::Disable
            }
            Some(K::SET) => {
                self.advance();
                IndexAction::Set(self.parenthesized_list(Self::index_option)?)
            }
            Some(word @ (K::RESUME | K::PAUSE | K::ABORT)) => {
                return self.unsupported(format!("ALTER INDEX {}", word.text()));
            }
            _ => return self.unexpected(),
        };
        Ok(StatementKind::Maintenance(MaintenanceStatement::AlterIndex { index, table, action }))
    }

    fn rebuild(&mut self) -> Result<IndexAction> {
        let mut partition = None;
        if self.accept(K::PARTITION) {
            self.require_symbol(Symbol::Equal)?;
            partition = Some(match self.accept(K::ALL) {
                true => Partition::All,
                false => Partition::Number(self.integer()?),
            });
        }
        Ok(IndexAction::Rebuild { partition, options: self.with_index_options()? })
    }

    /// `[WITH (..)]`, or `WITH FILLFACTOR = n` as it was once written.
    pub(super) fn with_index_options(&mut self) -> Result<Vec<IndexOption>> {
        if !self.at(K::WITH) {
            return Ok(Vec::new());
        }
        match self.peek() {
            TokenKind::Symbol(Symbol::LeftParenthesis) => {
                self.advance();
                self.parenthesized_list(Self::index_option)
            }
            TokenKind::Keyword(K::FILLFACTOR) => {
                self.advance();
                self.index_option().map(|option| vec![option])
            }
            _ => Ok(Vec::new()),
        }
    }

    fn index_option(&mut self) -> Result<IndexOption> {
        if let Some(switch) = self.accept_word::<IndexSwitch>() {
            self.require_symbol(Symbol::Equal)?;
            let on = self.on_off()?;
            if on && switch == IndexSwitch::IgnoreDupKey {
                return self.unsupported("IGNORE_DUP_KEY = ON");
            }
            return match on && self.at_symbol(Symbol::LeftParenthesis) {
                true => self.unsupported("WAIT_AT_LOW_PRIORITY"),
                false => Ok(IndexOption::Switch { switch, on }),
            };
        }
        let word = self.keyword();
        match word {
            Some(
                K::FILLFACTOR
                | K::MAXDOP
                | K::MAX_DURATION
                | K::COMPRESSION_DELAY
                | K::DATA_COMPRESSION,
            ) => self.advance(),
            _ => match self.words_of(known::TABLE_OPTIONS) {
                Some(option) => return self.unsupported(format!("WITH ({option})")),
                None => return self.unknown_option("INDEX"),
            },
        };
        self.require_symbol(Symbol::Equal)?;
        if word == Some(K::DATA_COMPRESSION) {
            return self.require_word().map(IndexOption::DataCompression);
        }
        let value = self.integer()?;
        Ok(match word {
            Some(K::FILLFACTOR) => IndexOption::FillFactor(value),
            Some(K::MAXDOP) => IndexOption::MaxDop(value),
            Some(K::MAX_DURATION) => {
                self.accept(K::MINUTES);
                IndexOption::MaxDurationMinutes(value)
            }
            _ => {
                self.accept(K::MINUTES);
                IndexOption::CompressionDelayMinutes(value)
            }
        })
    }
}
