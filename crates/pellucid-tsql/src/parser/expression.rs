//! Values. Precedence: `~` and COLLATE, then `* / %`, then `+ - & ^ |`, the signs among the last.

use super::condition::Operand;
use super::name::is_name;
use super::Parser;
use crate::ast::{
    BinaryOperator, Case, CaseBranches, ColumnName, Convert, Expression, Frame, FrameBound,
    FunctionArguments, FunctionCall, Iif, Literal, Name, ObjectName, Over, StringLiteral,
    UnaryOperator,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::{binary_value, string_value, Symbol, Token, TokenKind};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expression> {
        self.nested(|p| {
            let first = p.signed()?;
            p.sum_from(first)
        })
    }

    /// The rest of an expression of which `first`, in parentheses, is taken.
    pub(super) fn expression_from(&mut self, first: Expression) -> Result<Expression> {
        let first = self.collated(first)?;
        self.sum_from(first)
    }

    fn sum_from(&mut self, first: Expression) -> Result<Expression> {
        let mut left = self.product_from(first)?;
        self.refuse_doubled()?;
        while let Some(operator) = self.sum_operator() {
            self.advance();
            let first = self.signed()?;
            left = Expression::binary(left, operator, self.product_from(first)?);
            self.refuse_doubled()?;
        }
        Ok(left)
    }

    /// The operators of SQL Server's that are two symbols here.
    fn refuse_doubled(&self) -> Result<()> {
        let is_doubled =
            |symbol| self.at_symbol(symbol) && self.peek() == TokenKind::Symbol(symbol);
        match () {
            () if is_doubled(Symbol::Less) => self.unsupported("<<"),
            () if is_doubled(Symbol::Greater) => self.unsupported(">>"),
            () if is_doubled(Symbol::Bar) => self.unsupported("||"),
            () => Ok(()),
        }
    }

    fn product_from(&mut self, mut left: Expression) -> Result<Expression> {
        loop {
            let operator = match self.current.kind {
                TokenKind::Symbol(Symbol::Star) => BinaryOperator::Multiply,
                TokenKind::Symbol(Symbol::Slash) => BinaryOperator::Divide,
                TokenKind::Symbol(Symbol::Percent) => BinaryOperator::Modulo,
                _ => return Ok(left),
            };
            self.advance();
            left = Expression::binary(left, operator, self.signed()?);
        }
    }

    fn sum_operator(&self) -> Option<BinaryOperator> {
        match self.current.kind {
            TokenKind::Symbol(Symbol::Plus) => Some(BinaryOperator::Add),
            TokenKind::Symbol(Symbol::Minus) => Some(BinaryOperator::Subtract),
            TokenKind::Symbol(Symbol::Ampersand) => Some(BinaryOperator::BitAnd),
            TokenKind::Symbol(Symbol::Bar) => Some(BinaryOperator::BitOr),
            TokenKind::Symbol(Symbol::Caret) => Some(BinaryOperator::BitXor),
            _ => None,
        }
    }

    /// An operand with what stands before it. The signs take a whole product: `-a % b` is `-(a % b)`.
    fn signed(&mut self) -> Result<Expression> {
        let operator = match self.current.kind {
            TokenKind::Symbol(Symbol::Minus) => UnaryOperator::Minus,
            TokenKind::Symbol(Symbol::Plus) => UnaryOperator::Plus,
            TokenKind::Symbol(Symbol::Tilde) => UnaryOperator::Not,
            _ => {
                let operand = self.primary()?;
                return self.collated(operand);
            }
        };
        self.advance();
        let operand = self.nested(|p| {
            let first = p.signed()?;
            match operator {
                UnaryOperator::Not => Ok(first),
                _ => p.product_from(first),
            }
        })?;
        Ok(Expression::Unary { operator, operand: Box::new(operand) })
    }

    fn collated(&mut self, operand: Expression) -> Result<Expression> {
        let mut operand = self.xml_methods(operand)?;
        if self.accept(K::COLLATE) {
            let collation = self.name()?;
            operand = Expression::Collate { operand: Box::new(operand), collation };
        }
        if self.at_both(K::AT, K::TIME) {
            return self.unsupported("AT TIME ZONE");
        }
        Ok(operand)
    }

    fn primary(&mut self) -> Result<Expression> {
        match self.current.kind {
            TokenKind::String { .. }
            | TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Float
            | TokenKind::Money
            | TokenKind::Binary
            | TokenKind::Keyword(K::NULL) => self.literal().map(Expression::Literal),
            TokenKind::Variable => self.variable().map(Expression::Variable),
            TokenKind::SystemVariable => {
                let token = self.advance();
                Ok(Expression::SystemVariable(self.text(token)[2..].to_owned()))
            }
            TokenKind::Symbol(Symbol::LeftParenthesis) => match self.parenthesized(false)? {
                Operand::Value(value) => Ok(value),
                Operand::Query(query) => Ok(Expression::Subquery(Box::new(query))),
                Operand::Truth(_) => self.unexpected(),
            },
            TokenKind::Symbol(Symbol::LeftBrace) => self.unsupported("ODBC escape sequence"),
            TokenKind::Keyword(word) => self.word(word),
            TokenKind::Stray if self.text(self.current) == "$" => self.unsupported("$IDENTITY"),
            TokenKind::Name | TokenKind::QuotedName => self.column_or_call(),
            _ => self.unexpected(),
        }
    }

    /// A constant without sign.
    pub(super) fn literal(&mut self) -> Result<Literal> {
        let text = self.text(self.current);
        let literal = match self.current.kind {
            TokenKind::String { national } => {
                let text = string_value(text).into_owned();
                Literal::String(StringLiteral { text, national })
            }
            TokenKind::Integer => Literal::Integer(text.to_owned()),
            TokenKind::Decimal => Literal::Decimal(text.to_owned()),
            TokenKind::Float if text.ends_with(['e', 'E']) => Literal::Float(format!("{text}0")),
            TokenKind::Float => Literal::Float(text.to_owned()),
            TokenKind::Money => Literal::Money(text[1..].to_owned()),
            TokenKind::Binary => Literal::Binary(binary_value(text)),
            TokenKind::Keyword(K::NULL) => Literal::Null,
            _ => return self.unexpected(),
        };
        self.advance();
        Ok(literal)
    }

    /// What begins with a word that some statement knows.
    fn word(&mut self, word: K) -> Result<Expression> {
        if let Some(niladic) = self.accept_word() {
            return Ok(Expression::Niladic(niladic));
        }
        let called = self.peek() == TokenKind::Symbol(Symbol::LeftParenthesis);
        match word {
            K::CASE => self.case(),
            K::CAST | K::TRY_CAST if called => self.cast(word == K::TRY_CAST),
            K::CONVERT | K::TRY_CONVERT if called => self.convert(word == K::TRY_CONVERT),
            K::IIF if called => self.iif(),
            K::PARSE | K::TRY_PARSE | K::IDENTITY if called => self.unsupported(word.text()),
            K::IDENTITYCOL | K::ROWGUIDCOL => self.unsupported(word.text()),
            K::NEXT if self.words_of(&["NEXT VALUE FOR"]).is_some() => {
                self.unsupported("NEXT VALUE FOR")
            }
            K::LEFT | K::RIGHT | K::COALESCE | K::NULLIF if called => {
                let token = self.advance();
                let name = self.name_of(token)?.into();
                self.call(name).map(|call| Expression::Function(Box::new(call)))
            }
            _ if is_name(self.current.kind) => self.column_or_call(),
            _ => self.unexpected(),
        }
    }

    fn column_or_call(&mut self) -> Result<Expression> {
        let [server, database, schema, object, last] = self.dotted()?;
        let Some(last) = last else { return self.unexpected() };
        match self.current.kind {
            TokenKind::Symbol(Symbol::LeftParenthesis) if server.is_none() => {
                let (server, database, schema) = (database, schema, object);
                let name = ObjectName { server, database, schema, object: last };
                self.call(name).map(|call| Expression::Function(Box::new(call)))
            }
            TokenKind::Symbol(Symbol::DoubleColon) => self.unsupported("static method of a type"),
            _ => {
                let column = self.column_of([server, database, schema, object, Some(last)])?;
                Ok(Expression::Column(Box::new(column)))
            }
        }
    }

    pub(super) fn column_name(&mut self) -> Result<ColumnName> {
        let parts = self.dotted()?;
        self.column_of(parts)
    }

    fn column_of(&self, parts: [Option<Name>; 5]) -> Result<ColumnName> {
        match parts {
            [server, database, schema, Some(object), Some(column)] => {
                let table = Some(ObjectName { server, database, schema, object });
                Ok(ColumnName { table, column })
            }
            [None, None, None, None, Some(column)] => Ok(ColumnName { table: None, column }),
            _ => self.unexpected(), // `a..b`
        }
    }

    fn function_argument(&mut self) -> Result<Expression> {
        match self.at(K::DEFAULT) {
            true => {
                self.advance();
                Ok(Expression::Default)
            }
            false => self.expression(),
        }
    }

    /// `(arguments) [WITHIN GROUP (..)] [OVER (..)]`
    pub(super) fn call(&mut self, name: ObjectName) -> Result<FunctionCall> {
        let trims = name.is_bare() && name.object.as_str().eq_ignore_ascii_case("TRIM");
        self.require_symbol(Symbol::LeftParenthesis)?;
        let distinct = self.accept(K::DISTINCT);
        if !distinct {
            self.accept(K::ALL);
        }
        let arguments = match self.current.kind {
            TokenKind::Symbol(Symbol::Star) => {
                self.advance();
                FunctionArguments::Star
            }
            TokenKind::Symbol(Symbol::RightParenthesis) if !distinct => {
                FunctionArguments::Values(Vec::new())
            }
            _ => FunctionArguments::Values(self.comma_list(Self::function_argument)?),
        };
        if trims && self.at(K::FROM) {
            return self.unsupported("TRIM with FROM");
        }
        self.require_symbol(Symbol::RightParenthesis)?;
        let mut within_group = Vec::new();
        if self.at_both(K::WITHIN, K::GROUP) {
            self.require_all(&[K::WITHIN, K::GROUP])?;
            self.require_symbol(Symbol::LeftParenthesis)?;
            within_group = self.order_by()?;
            if within_group.is_empty() {
                return self.unexpected();
            }
            self.require_symbol(Symbol::RightParenthesis)?;
        }
        let over = match self.accept(K::OVER) {
            true => Some(self.over()?),
            false => None,
        };
        Ok(FunctionCall { name, distinct, arguments, within_group, over })
    }

    fn over(&mut self) -> Result<Over> {
        if self.at_name() {
            return self.unsupported("OVER of a named window");
        }
        self.require_symbol(Symbol::LeftParenthesis)?;
        let mut over = Over::default();
        if self.accept(K::PARTITION) {
            self.require(K::BY)?;
            over.partition = self.comma_list(Self::expression)?;
        }
        over.order = self.order_by()?;
        if let Some(unit) = self.accept_word() {
            over.frame = Some(match self.accept(K::BETWEEN) {
                true => {
                    let start = self.frame_bound()?;
                    self.require(K::AND)?;
                    Frame { unit, start, end: Some(self.frame_bound()?) }
                }
                false => Frame { unit, start: self.frame_bound()?, end: None },
            });
        }
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(over)
    }

    fn frame_bound(&mut self) -> Result<FrameBound> {
        if self.accept(K::CURRENT) {
            return self.require(K::ROW).map(|()| FrameBound::CurrentRow);
        }
        let rows = match self.accept(K::UNBOUNDED) {
            true => None,
            false => Some(self.integer()?),
        };
        Ok(match (self.accept(K::PRECEDING), rows) {
            (true, None) => FrameBound::UnboundedPreceding,
            (true, Some(rows)) => FrameBound::Preceding(rows),
            (false, rows) => {
                self.require(K::FOLLOWING)?;
                rows.map_or(FrameBound::UnboundedFollowing, FrameBound::Following)
            }
        })
    }

    fn case(&mut self) -> Result<Expression> {
        self.require(K::CASE)?;
        let branches = match self.at(K::WHEN) {
            true => CaseBranches::Searched(self.branches(Self::condition)?),
            false => {
                let operand = self.expression()?;
                CaseBranches::Simple { operand, branches: self.branches(Self::expression)? }
            }
        };
        let otherwise = match self.accept(K::ELSE) {
            true => Some(self.expression()?),
            false => None,
        };
        self.require(K::END)?;
        Ok(Expression::Case(Box::new(Case { branches, otherwise })))
    }

    /// `WHEN .. THEN .. WHEN .. THEN ..`
    fn branches<T>(
        &mut self,
        when: impl Fn(&mut Self) -> Result<T>,
    ) -> Result<Vec<(T, Expression)>> {
        let mut branches = Vec::new();
        loop {
            self.require(K::WHEN)?;
            let when = when(self)?;
            self.require(K::THEN)?;
            branches.push((when, self.expression()?));
            if !self.at(K::WHEN) {
                return Ok(branches);
            }
        }
    }

    fn cast(&mut self, or_null: bool) -> Result<Expression> {
        self.advance();
        self.require_symbol(Symbol::LeftParenthesis)?;
        let operand = self.expression()?;
        self.require(K::AS)?;
        let data_type = self.data_type()?;
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(Expression::Convert(Box::new(Convert { operand, data_type, style: None, or_null })))
    }

    fn convert(&mut self, or_null: bool) -> Result<Expression> {
        self.advance();
        self.require_symbol(Symbol::LeftParenthesis)?;
        let data_type = self.data_type()?;
        self.require_symbol(Symbol::Comma)?;
        let operand = self.expression()?;
        let style = match self.accept_symbol(Symbol::Comma) {
            true => Some(self.expression()?),
            false => None,
        };
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(Expression::Convert(Box::new(Convert { operand, data_type, style, or_null })))
    }

    fn iif(&mut self) -> Result<Expression> {
        self.advance();
        self.require_symbol(Symbol::LeftParenthesis)?;
        let condition = self.condition()?;
        self.require_symbol(Symbol::Comma)?;
        let then = self.expression()?;
        self.require_symbol(Symbol::Comma)?;
        let otherwise = self.expression()?;
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(Expression::Iif(Box::new(Iif { condition, then, otherwise })))
    }

    /// A constant with or without a minus, as an expression.
    pub(super) fn signed_constant(&mut self) -> Result<Expression> {
        let (negative, value) = self.signed_literal()?;
        let literal = Expression::Literal(value);
        Ok(match negative {
            true => {
                Expression::Unary { operator: UnaryOperator::Minus, operand: Box::new(literal) }
            }
            false => literal,
        })
    }

    /// A constant with or without a minus.
    pub(super) fn signed_literal(&mut self) -> Result<(bool, Literal)> {
        let negative = self.accept_symbol(Symbol::Minus);
        if !negative {
            self.accept_symbol(Symbol::Plus);
        }
        let unsigned =
            matches!(self.current.kind, TokenKind::Keyword(_) | TokenKind::String { .. });
        if matches!(self.last, Token { kind: TokenKind::Symbol(Symbol::Minus | Symbol::Plus), .. })
            && unsigned
        {
            return self.unexpected();
        }
        Ok((negative, self.literal()?))
    }
}
