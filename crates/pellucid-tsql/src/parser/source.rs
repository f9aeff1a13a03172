//! FROM: tables, derived tables, joins.

use super::name::is_name;
use super::Parser;
use crate::ast::{
    Expression, Join, JoinKind, Name, ObjectName, Pivot, Query, TableAlias, TableHint,
    TablePrimary, TableSource, Unpivot,
};
use crate::error::{ErrorKind, Result};
use crate::keyword::{Keyword as K, Word};
use crate::lexer::{Symbol, TokenKind};

/// PIVOT and UNPIVOT one behind another at most: each holds all before it.
const TURNS_MOST: usize = 4;

/// What a parenthesis in FROM turned out to hold.
enum Parenthesized {
    Query(Query),
    Values(Vec<Vec<Expression>>),
    Source(TableSource),
}

impl Parser<'_> {
    /// `FROM a, b JOIN c ..`; empty if there is none.
    pub(super) fn from(&mut self) -> Result<Vec<TableSource>> {
        match self.accept(K::FROM) {
            true => self.comma_list(Self::table_source),
            false => Ok(Vec::new()),
        }
    }

    pub(super) fn table_source(&mut self) -> Result<TableSource> {
        let table = self.table_primary()?;
        self.table_source_from(table)
    }

    /// The rest of a source of which `table` is taken.
    fn table_source_from(&mut self, table: TablePrimary) -> Result<TableSource> {
        let mut source = TableSource { table, joins: Vec::new() };
        let mut turns = 0;
        loop {
            let table = match self.keyword() {
                Some(K::PIVOT | K::UNPIVOT) if turns == TURNS_MOST => {
                    return self.fail(ErrorKind::TooDeep)
                }
                // What is joined so far is turned as a whole.
                Some(K::PIVOT) => TablePrimary::Pivot(Box::new(self.nested(|p| p.pivot(source))?)),
                Some(K::UNPIVOT) => {
                    TablePrimary::Unpivot(Box::new(self.nested(|p| p.unpivot(source))?))
                }
                _ => match self.join()? {
                    Some(join) => {
                        source.joins.push(join);
                        continue;
                    }
                    None => return Ok(source),
                },
            };
            turns += 1;
            source = TableSource { table, joins: Vec::new() };
        }
    }

    /// `PIVOT (aggregate(value) FOR column IN (a, b)) AS alias`
    fn pivot(&mut self, source: TableSource) -> Result<Pivot> {
        self.advance();
        self.require_symbol(Symbol::LeftParenthesis)?;
        let aggregate = self.name()?;
        self.require_symbol(Symbol::LeftParenthesis)?;
        if self.at_symbol(Symbol::Star) {
            return self.unexpected();
        }
        let value = self.column_name()?;
        self.require_symbol(Symbol::RightParenthesis)?;
        self.require(K::FOR)?;
        let column = self.column_name()?;
        self.require(K::IN)?;
        let values = self.parenthesized_list(Self::name)?;
        self.require_symbol(Symbol::RightParenthesis)?;
        let alias = self.table_alias()?;
        Ok(Pivot { source, aggregate, value, column, values, alias })
    }

    /// `UNPIVOT (value FOR name IN (a, b)) AS alias`
    fn unpivot(&mut self, source: TableSource) -> Result<Unpivot> {
        self.advance();
        self.require_symbol(Symbol::LeftParenthesis)?;
        let value = self.name()?;
        self.require(K::FOR)?;
        let name = self.name()?;
        self.require(K::IN)?;
        let columns = self.parenthesized_list(Self::column_name)?;
        self.require_symbol(Symbol::RightParenthesis)?;
        let alias = self.table_alias()?;
        Ok(Unpivot { source, value, name, columns, alias })
    }

    fn join(&mut self) -> Result<Option<Join>> {
        let kind = match self.keyword() {
            Some(K::CROSS) => {
                self.advance();
                match self.accept(K::APPLY) {
                    true => JoinKind::CrossApply,
                    false => self.require(K::JOIN).map(|()| JoinKind::Cross)?,
                }
            }
            Some(K::OUTER) => {
                self.advance();
                self.require(K::APPLY)?;
                JoinKind::OuterApply
            }
            Some(side @ (K::JOIN | K::INNER | K::LEFT | K::RIGHT | K::FULL)) => {
                return self.nested(|p| p.join_on(side)).map(Some);
            }
            Some(K::TABLESAMPLE) => return self.unsupported("TABLESAMPLE"),
            _ => return Ok(None),
        };
        let right = self.table_primary()?;
        Ok(Some(Join { kind, right }))
    }

    fn join_on(&mut self, side: K) -> Result<Join> {
        if side != K::JOIN {
            self.advance();
        }
        if matches!(side, K::LEFT | K::RIGHT | K::FULL) {
            self.accept(K::OUTER);
        }
        if let Some(hint @ (K::LOOP | K::HASH | K::MERGE | K::REMOTE)) = self.keyword() {
            // How to join is SQLite's affair; at another server nothing is joined.
            if hint == K::REMOTE {
                return self.unsupported("REMOTE JOIN");
            }
            self.advance();
        }
        self.require(K::JOIN)?;
        let table = self.table_primary()?;
        // `a JOIN b JOIN c ON .. ON ..`: what is joined before ON belongs to the right side.
        let right = self.table_source_from(table)?;
        let right = match right.joins.is_empty() {
            true => right.table,
            false => TablePrimary::Joined(Box::new(right)),
        };
        self.require(K::ON)?;
        let on = self.condition()?;
        let kind = match side {
            K::LEFT => JoinKind::Left(on),
            K::RIGHT => JoinKind::Right(on),
            K::FULL => JoinKind::Full(on),
            _ => JoinKind::Inner(on),
        };
        Ok(Join { kind, right })
    }

    fn table_primary(&mut self) -> Result<TablePrimary> {
        match self.current.kind {
            TokenKind::Symbol(Symbol::LeftParenthesis) => {
                let content = self.parenthesized_source()?;
                self.primary_of(content)
            }
            TokenKind::Symbol(Symbol::DoubleColon) => self.server_function(),
            TokenKind::Variable if self.peek() == TokenKind::Symbol(Symbol::Dot) => self.nodes(),
            TokenKind::Variable => {
                let Some(variable) = self.accept_table_variable()? else {
                    return self.unexpected();
                };
                let alias = self.simple_alias()?;
                Ok(TablePrimary::Variable { variable, alias })
            }
            TokenKind::Keyword(
                word @ (K::OPENROWSET
                | K::OPENQUERY
                | K::OPENDATASOURCE
                | K::OPENXML
                | K::OPENJSON
                | K::CONTAINSTABLE
                | K::FREETEXTTABLE
                | K::SEMANTICKEYPHRASETABLE
                | K::SEMANTICSIMILARITYTABLE
                | K::SEMANTICSIMILARITYDETAILSTABLE),
            ) if self.peek() == TokenKind::Symbol(Symbol::LeftParenthesis) => {
                self.unsupported(word.text())
            }
            _ => match self.words_of(&["CHANGETABLE (", "PREDICT ("]) {
                Some(words) => self.unsupported(&words[..words.len() - 2]),
                None => self.named_table(),
            },
        }
    }

    /// `::fn_..(..)`: as scripts for SQL Server 2000 write a function of the schema `sys`.
    fn server_function(&mut self) -> Result<TablePrimary> {
        self.advance();
        let mut name = ObjectName::from(self.name()?);
        name.schema = Name::new("sys");
        let call = self.call(name)?;
        let alias = self.optional_table_alias()?;
        Ok(TablePrimary::Function { call, alias })
    }

    fn named_table(&mut self) -> Result<TablePrimary> {
        let name: ObjectName = self.object_name()?;
        if self.at_symbol(Symbol::LeftParenthesis) {
            if !self.hint_follows() {
                let call = self.call(name)?;
                let alias = self.optional_table_alias()?;
                return Ok(TablePrimary::Function { call, alias });
            }
            let hints = self.parenthesized_list(Self::table_hint)?;
            let alias = self.simple_alias()?;
            return Ok(TablePrimary::Table { name, alias, hints });
        }
        if self.at_both(K::FOR, K::SYSTEM_TIME) {
            return self.unsupported("FOR SYSTEM_TIME");
        }
        let alias = self.simple_alias()?;
        let hints = match self.at_symbol(Symbol::LeftParenthesis) && self.hint_follows() {
            true => self.parenthesized_list(Self::table_hint)?,
            false => self.table_hints()?,
        };
        Ok(TablePrimary::Table { name, alias, hints })
    }

    /// Old scripts leave out the WITH before hints.
    fn hint_follows(&self) -> bool {
        matches!(self.peek(), TokenKind::Keyword(word) if TableHint::from_keyword(word).is_some())
    }

    /// `WITH (NOLOCK, ..)`; empty if there is none.
    pub(super) fn table_hints(&mut self) -> Result<Vec<TableHint>> {
        let hinted = self.at(K::WITH) && self.peek() == TokenKind::Symbol(Symbol::LeftParenthesis);
        if !hinted {
            return Ok(Vec::new());
        }
        self.advance();
        self.parenthesized_list(Self::table_hint)
    }

    fn table_hint(&mut self) -> Result<TableHint> {
        match self.accept_word() {
            Some(hint) => Ok(hint),
            None if self.at_name() || self.at(K::INDEX) => {
                let hint = self.text(self.current).to_uppercase();
                self.unsupported(format!("WITH ({hint})"))
            }
            None => self.unexpected(),
        }
    }

    /// Whether `WINDOW name AS` is here, which is a clause and no alias.
    pub(super) fn at_window(&self) -> bool {
        let mut ahead = self.lexer.clone();
        self.current.kind == TokenKind::Name
            && self.text(self.current).eq_ignore_ascii_case("WINDOW")
            && ahead.token().is_ok_and(|token| is_name(token.kind))
            && ahead.token().is_ok_and(|token| token.kind == TokenKind::Keyword(K::AS))
    }

    /// `[[AS] a]`
    fn simple_alias(&mut self) -> Result<Option<Name>> {
        match self.accept(K::AS) {
            true => self.name().map(Some),
            false if self.at_window() => Ok(None),
            false => self.accept_name(),
        }
    }

    fn optional_table_alias(&mut self) -> Result<Option<TableAlias>> {
        match self.at(K::AS) || is_name(self.current.kind) {
            true => self.table_alias().map(Some),
            false => Ok(None),
        }
    }

    /// `[AS] a [(columns)]`
    pub(super) fn table_alias(&mut self) -> Result<TableAlias> {
        self.accept(K::AS);
        let name = self.name()?;
        let columns = self.optional_names()?;
        Ok(TableAlias { name, columns })
    }

    /// `( .. )` in FROM: a query, rows, or joined tables.
    fn parenthesized_source(&mut self) -> Result<Parenthesized> {
        self.nested(|p| {
            p.require_symbol(Symbol::LeftParenthesis)?;
            let content = p.source_content()?;
            p.require_symbol(Symbol::RightParenthesis)?;
            Ok(content)
        })
    }

    fn source_content(&mut self) -> Result<Parenthesized> {
        match self.current.kind {
            TokenKind::Keyword(K::SELECT) => self.query().map(Parenthesized::Query),
            TokenKind::Keyword(K::VALUES) => {
                self.advance();
                let rows = self.comma_list(|p| p.parenthesized_list(Self::expression))?;
                Ok(Parenthesized::Values(rows))
            }
            TokenKind::Symbol(Symbol::LeftParenthesis) => match self.parenthesized_source()? {
                Parenthesized::Query(query) if self.at_set_operator() => {
                    self.query_from(query).map(Parenthesized::Query)
                }
                Parenthesized::Query(query) if self.at_symbol(Symbol::RightParenthesis) => {
                    Ok(Parenthesized::Query(query))
                }
                inner => {
                    let table = self.primary_of(inner)?;
                    self.table_source_from(table).map(Parenthesized::Source)
                }
            },
            _ => self.table_source().map(Parenthesized::Source),
        }
    }

    /// What stood in parentheses, with its alias.
    fn primary_of(&mut self, content: Parenthesized) -> Result<TablePrimary> {
        Ok(match content {
            Parenthesized::Query(query) => {
                TablePrimary::Query { query: Box::new(query), alias: self.table_alias()? }
            }
            Parenthesized::Values(rows) => {
                TablePrimary::Values { rows, alias: self.table_alias()? }
            }
            Parenthesized::Source(source) if source.joins.is_empty() => source.table,
            Parenthesized::Source(source) => TablePrimary::Joined(Box::new(source)),
        })
    }
}
