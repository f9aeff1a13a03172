//! SELECT.

use super::name::is_name;
use super::Parser;
use crate::ast::{
    AssignmentOperator, CommonTable, Expression, Name, ObjectName, Offset, OrderItem, Query,
    QueryBody, QueryOption, Select, SelectItem, SetOperator, Top,
};
use crate::error::{ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

impl Parser<'_> {
    /// A query with all that belongs to it but WITH.
    pub(super) fn query(&mut self) -> Result<Query> {
        self.query_with(Vec::new())
    }

    /// The query behind `with`.
    pub(super) fn query_with(&mut self, with: Vec<CommonTable>) -> Result<Query> {
        self.nested(|p| {
            let body = p.query_body()?;
            p.query_end(with, body)
        })
    }

    /// `WITH a AS (..), b (c) AS (..)`; empty if there is none.
    pub(super) fn with(&mut self) -> Result<Vec<CommonTable>> {
        if !self.accept(K::WITH) {
            return Ok(Vec::new());
        }
        self.comma_list(|p| {
            let name = p.name()?;
            if p.at_symbol(Symbol::Dot) {
                return p.unexpected();
            }
            let columns = p.optional_names()?;
            p.require(K::AS)?;
            p.require_symbol(Symbol::LeftParenthesis)?;
            let query = p.query()?;
            p.require_symbol(Symbol::RightParenthesis)?;
            Ok(CommonTable { name, columns, query })
        })
    }

    /// `(a, b)`; empty if there is no parenthesis.
    pub(super) fn optional_names(&mut self) -> Result<Vec<Name>> {
        match self.at_symbol(Symbol::LeftParenthesis) {
            true => self.parenthesized_list(Self::name),
            false => Ok(Vec::new()),
        }
    }

    fn query_body(&mut self) -> Result<QueryBody> {
        let first = self.query_term()?;
        self.query_body_from(first)
    }

    pub(super) fn at_set_operator(&self) -> bool {
        matches!(self.keyword(), Some(K::UNION | K::EXCEPT | K::INTERSECT))
    }

    /// The rest of a body of which `first` is taken.
    pub(super) fn query_body_from(&mut self, first: QueryBody) -> Result<QueryBody> {
        let mut left = self.intersection_from(first)?;
        loop {
            let operator = match self.keyword() {
                Some(K::UNION) => SetOperator::Union,
                Some(K::EXCEPT) => SetOperator::Except,
                _ => return Ok(left),
            };
            self.advance();
            let operator = match operator == SetOperator::Union && self.accept(K::ALL) {
                true => SetOperator::UnionAll,
                false => operator,
            };
            let first = self.query_term()?;
            left = QueryBody::set(left, operator, self.intersection_from(first)?);
        }
    }

    fn intersection_from(&mut self, mut left: QueryBody) -> Result<QueryBody> {
        while self.accept(K::INTERSECT) {
            left = QueryBody::set(left, SetOperator::Intersect, self.query_term()?);
        }
        Ok(left)
    }

    /// One SELECT, or a body in parentheses.
    fn query_term(&mut self) -> Result<QueryBody> {
        if !self.accept_symbol(Symbol::LeftParenthesis) {
            return self.select().map(|select| QueryBody::Select(Box::new(select)));
        }
        let body = self.nested(Self::query_body)?;
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(body)
    }

    /// What follows a body: ORDER BY, OFFSET, FOR, OPTION.
    pub(super) fn query_end(&mut self, with: Vec<CommonTable>, body: QueryBody) -> Result<Query> {
        let order = self.order_by()?;
        let offset = match !order.is_empty() && self.accept(K::OFFSET) {
            true => Some(self.offset()?),
            false => None,
        };
        let mut xml = None;
        if !self.at_end_of_cursor() && self.accept(K::FOR) {
            xml = match self.keyword() {
                Some(K::XML) => Some(self.for_xml()?),
                Some(K::BROWSE) => return self.unsupported("FOR BROWSE"),
                Some(K::JSON) => return self.unsupported("FOR JSON"),
                _ => return self.unexpected(),
            };
        }
        let options = self.query_options()?;
        Ok(Query { with, body, order, offset, xml, options })
    }

    /// `ORDER BY a, b DESC`; empty if there is none.
    pub(super) fn order_by(&mut self) -> Result<Vec<OrderItem>> {
        if !self.accept(K::ORDER) {
            return Ok(Vec::new());
        }
        self.require(K::BY)?;
        self.comma_list(|p| {
            let value = p.expression()?;
            Ok(OrderItem { value, descending: p.descending() })
        })
    }

    /// `[ASC | DESC]`
    pub(super) fn descending(&mut self) -> bool {
        let descending = self.accept(K::DESC);
        if !descending {
            self.accept(K::ASC);
        }
        descending
    }

    fn offset(&mut self) -> Result<Offset> {
        let skip = self.expression()?;
        self.row_or_rows()?;
        if !self.accept(K::FETCH) {
            return Ok(Offset { skip, fetch: None });
        }
        if !self.accept(K::NEXT) {
            self.require(K::FIRST)?;
        }
        let fetch = Some(self.expression()?);
        self.row_or_rows()?;
        self.require(K::ONLY)?;
        Ok(Offset { skip, fetch })
    }

    fn row_or_rows(&mut self) -> Result<()> {
        match self.accept(K::ROW) {
            true => Ok(()),
            false => self.require(K::ROWS),
        }
    }

    /// `OPTION (..)`; empty if there is none.
    pub(super) fn query_options(&mut self) -> Result<Vec<QueryOption>> {
        if !self.accept(K::OPTION) {
            return Ok(Vec::new());
        }
        self.parenthesized_list(|p| match p.keyword() {
            Some(K::RECOMPILE) => {
                p.advance();
                Ok(QueryOption::Recompile)
            }
            Some(K::MAXRECURSION) => {
                p.advance();
                p.integer().map(QueryOption::MaxRecursion)
            }
            Some(K::MAXDOP) => {
                p.advance();
                p.integer().map(QueryOption::MaxDop)
            }
            _ if p.at_name() || p.keyword().is_some() => {
                let hint = p.text(p.current).to_uppercase();
                p.unsupported(format!("OPTION ({hint})"))
            }
            _ => p.unexpected(),
        })
    }

    fn select(&mut self) -> Result<Select> {
        self.require(K::SELECT)?;
        let distinct = self.accept(K::DISTINCT);
        if !distinct {
            self.accept(K::ALL);
        }
        let top = self.top()?;
        let items = self.comma_list(Self::select_item)?;
        if items.iter().any(is_assignment) && !items.iter().all(is_assignment) {
            return self.fail(ErrorKind::AssignsAndRetrieves);
        }
        let into = match self.accept(K::INTO) {
            true => Some(self.object_name()?),
            false => None,
        };
        let from = self.from()?;
        let filter = match self.accept(K::WHERE) {
            true => Some(self.condition()?),
            false => None,
        };
        let mut group = Vec::new();
        if self.accept(K::GROUP) {
            self.require(K::BY)?;
            group = self.comma_list(Self::group_item)?;
            if self.at(K::WITH) && matches!(self.peek(), TokenKind::Keyword(K::ROLLUP | K::CUBE)) {
                self.advance();
                return self.unsupported(format!("GROUP BY WITH {}", self.text(self.current)));
            }
        }
        let having = match self.accept(K::HAVING) {
            true => Some(self.condition()?),
            false => None,
        };
        if self.at_window() {
            return self.unsupported("WINDOW");
        }
        if self.at(K::COMPUTE) {
            return self.unsupported("COMPUTE");
        }
        Ok(Select { distinct, top, items, into, from, filter, group, having })
    }

    fn group_item(&mut self) -> Result<Expression> {
        match self.keyword() {
            Some(K::ALL) => self.unsupported("GROUP BY ALL"),
            Some(word @ (K::ROLLUP | K::CUBE))
                if self.peek() == TokenKind::Symbol(Symbol::LeftParenthesis) =>
            {
                self.unsupported(format!("GROUP BY {}", word.text()))
            }
            _ if self.peek() == TokenKind::Keyword(K::SETS) => {
                self.unsupported("GROUP BY GROUPING SETS")
            }
            _ => self.expression(),
        }
    }

    /// `TOP (n) [PERCENT] [WITH TIES]`
    pub(super) fn top(&mut self) -> Result<Option<Top>> {
        if !self.accept(K::TOP) {
            return Ok(None);
        }
        let count = match self.accept_symbol(Symbol::LeftParenthesis) {
            true => {
                let count = self.expression()?;
                self.require_symbol(Symbol::RightParenthesis)?;
                count
            }
            // Old scripts leave the parentheses out around a constant.
            false => Expression::Literal(self.literal()?),
        };
        let percent = self.accept(K::PERCENT);
        let with_ties = self.at_both(K::WITH, K::TIES);
        if with_ties {
            self.require_all(&[K::WITH, K::TIES])?;
        }
        Ok(Some(Top { count, percent, with_ties }))
    }

    pub(super) fn select_item(&mut self) -> Result<SelectItem> {
        match self.current.kind {
            TokenKind::Symbol(Symbol::Star) => {
                self.advance();
                return Ok(SelectItem::Star(None));
            }
            TokenKind::Variable if assignment_operator(self.peek()).is_some() => {
                let variable = self.variable()?;
                let operator = self.assignment_operator()?;
                return Ok(SelectItem::Assign { variable, operator, value: self.expression()? });
            }
            kind if is_name(kind) || matches!(kind, TokenKind::String { .. }) => {
                match self.peek() {
                    TokenKind::Symbol(Symbol::Equal) => {
                        let alias = Some(self.name_or_string()?);
                        self.advance();
                        return Ok(SelectItem::Value { value: self.expression()?, alias });
                    }
                    TokenKind::Symbol(Symbol::Dot) if self.at_qualified_star() => {
                        return self.qualified_star();
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        let value = self.expression()?;
        let named = self.accept(K::AS);
        let alias = match self.current.kind {
            TokenKind::String { .. } => Some(self.name_or_string()?),
            _ if named => Some(self.name()?),
            _ => self.accept_name()?,
        };
        Ok(SelectItem::Value { value, alias })
    }

    /// Whether `t.*` is here, with any number of parts before the star.
    fn at_qualified_star(&self) -> bool {
        let mut ahead = self.lexer.clone();
        let mut behind_dot = false;
        loop {
            match ahead.token().map_or(TokenKind::Stray, |token| token.kind) {
                TokenKind::Symbol(Symbol::Dot) => behind_dot = true,
                TokenKind::Symbol(Symbol::Star) => return behind_dot,
                kind if behind_dot && is_name(kind) => behind_dot = false,
                _ => return false,
            }
        }
    }

    fn qualified_star(&mut self) -> Result<SelectItem> {
        let mut parts = [None, None, None, Some(self.name()?)];
        let mut prefixes = 0;
        self.require_symbol(Symbol::Dot)?;
        while !self.accept_symbol(Symbol::Star) {
            prefixes += 1;
            if prefixes == parts.len() {
                return self.unexpected();
            }
            parts.rotate_left(1);
            parts[3] = match self.at_symbol(Symbol::Dot) {
                true => None,
                false => Some(self.name()?),
            };
            self.require_symbol(Symbol::Dot)?;
        }
        match parts {
            [server, database, schema, Some(object)] => {
                Ok(SelectItem::Star(Some(ObjectName { server, database, schema, object })))
            }
            _ => self.unexpected(),
        }
    }

    /// `=`, `+=` and their like.
    pub(super) fn assignment_operator(&mut self) -> Result<AssignmentOperator> {
        match assignment_operator(self.current.kind) {
            Some(operator) => {
                self.advance();
                Ok(operator)
            }
            None => self.unexpected(),
        }
    }
}

fn is_assignment(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Assign { .. })
}

pub(super) fn assignment_operator(kind: TokenKind) -> Option<AssignmentOperator> {
    let TokenKind::Symbol(symbol) = kind else { return None };
    Some(match symbol {
        Symbol::Equal => AssignmentOperator::Set,
        Symbol::PlusEqual => AssignmentOperator::Add,
        Symbol::MinusEqual => AssignmentOperator::Subtract,
        Symbol::StarEqual => AssignmentOperator::Multiply,
        Symbol::SlashEqual => AssignmentOperator::Divide,
        Symbol::PercentEqual => AssignmentOperator::Modulo,
        Symbol::AmpersandEqual => AssignmentOperator::BitAnd,
        Symbol::BarEqual => AssignmentOperator::BitOr,
        Symbol::CaretEqual => AssignmentOperator::BitXor,
        _ => return None,
    })
}
