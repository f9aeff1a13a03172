//! CREATE and ALTER PROCEDURE.

use super::Parser;
use crate::ast::{
    Expression, Literal, ObjectStatement, Procedure, ProcedureParameter, StatementKind,
    StringLiteral, ViewVerb,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

impl Parser<'_> {
    /// `PROCEDURE name [parameters] [WITH ..] AS body`, behind its verb. The body is the rest of the batch.
    pub(super) fn procedure(&mut self, verb: ViewVerb) -> Result<StatementKind> {
        self.require_first("CREATE/ALTER PROCEDURE")?;
        self.advance();
        let name = self.object_name()?;
        if self.at_symbol(Symbol::Semicolon) && self.peek() == TokenKind::Integer {
            return self.unsupported("procedure number");
        }
        let parenthesized = self.accept_symbol(Symbol::LeftParenthesis);
        let parameters = match self.current.kind {
            TokenKind::Variable => self.comma_list(Self::procedure_parameter)?,
            _ => Vec::new(),
        };
        if parenthesized {
            self.require_symbol(Symbol::RightParenthesis)?;
        }
        let recompile = self.accept(K::WITH);
        if recompile {
            self.procedure_options()?;
        }
        if self.at_both(K::FOR, K::REPLICATION) {
            return self.unsupported("PROCEDURE FOR REPLICATION");
        }
        self.require(K::AS)?;
        if self.at(K::EXTERNAL) {
            return self.unsupported("PROCEDURE AS EXTERNAL NAME");
        }
        let was_module = std::mem::replace(&mut self.in_module, true);
        let body = self.rest_of_batch();
        self.in_module = was_module;
        let procedure = Procedure { verb, name, parameters, recompile, body: body? };
        Ok(StatementKind::Object(ObjectStatement::Procedure(Box::new(procedure))))
    }

    /// `RECOMPILE` alone: EXECUTE AS would need accounts, ENCRYPTION hides from nobody who has the key.
    fn procedure_options(&mut self) -> Result<()> {
        self.comma_list(|p| match p.keyword() {
            Some(K::ENCRYPTION) => p.unsupported("PROCEDURE WITH ENCRYPTION"),
            Some(K::EXEC | K::EXECUTE) => p.unsupported("PROCEDURE WITH EXECUTE AS"),
            _ => p.require(K::RECOMPILE),
        })
        .map(drop)
    }

    fn procedure_parameter(&mut self) -> Result<ProcedureParameter> {
        let variable = self.variable()?;
        self.accept(K::AS);
        if self.at(K::CURSOR) {
            return self.unsupported("cursor as a parameter");
        }
        let data_type = self.data_type()?;
        if self.at(K::VARYING) {
            return self.unexpected();
        }
        if self.accept(K::NOT) {
            self.require(K::NULL)?;
            return self.unsupported("parameter NOT NULL");
        }
        self.accept(K::NULL);
        let default = match self.accept_symbol(Symbol::Equal) {
            true => Some(self.default_of_parameter()?),
            false => None,
        };
        let output = self.accept(K::OUTPUT) || self.accept(K::OUT);
        if self.at_name() && self.text(self.current).eq_ignore_ascii_case("READONLY") {
            return self.unsupported("table type");
        }
        Ok(ProcedureParameter { variable, data_type, default, output })
    }

    /// A constant; a bare word is a string.
    fn default_of_parameter(&mut self) -> Result<Expression> {
        if self.at_name() && self.current.kind != TokenKind::Keyword(K::NULL) {
            let text = self.name()?.as_str().to_owned();
            let literal = StringLiteral { text, national: true };
            return Ok(Expression::Literal(Literal::String(literal)));
        }
        self.signed_constant()
    }
}
