//! CREATE and ALTER of PROCEDURE and FUNCTION.

use super::Parser;
use crate::ast::{
    Control, Expression, Function, FunctionBody, Literal, ObjectStatement, Procedure,
    ProcedureParameter, Query, Statement, StatementKind, StringLiteral, ViewVerb,
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

    /// `FUNCTION name (parameters) RETURNS ..`, behind its verb. It ends its batch.
    pub(super) fn create_function(&mut self, verb: ViewVerb) -> Result<StatementKind> {
        self.require_first("CREATE/ALTER FUNCTION")?;
        self.advance();
        let name = self.object_name()?;
        self.require_symbol(Symbol::LeftParenthesis)?;
        let parameters = match self.current.kind {
            TokenKind::Variable => self.comma_list(Self::procedure_parameter)?,
            _ => Vec::new(),
        };
        if parameters.iter().any(|parameter| parameter.output) {
            return self.unexpected();
        }
        self.require_symbol(Symbol::RightParenthesis)?;
        if !self.at_text("RETURNS") {
            return self.unexpected();
        }
        self.advance();
        if self.current.kind == TokenKind::Variable {
            return self.unsupported("function of several statements that gives a table");
        }
        let is_table = self.accept(K::TABLE);
        let data_type = if is_table { None } else { Some(self.data_type()?) };
        let (mut schema_binding, mut null_on_null) = (false, false);
        if self.accept(K::WITH) {
            self.comma_list(|p| p.function_option(&mut schema_binding, &mut null_on_null))?;
        }
        self.accept(K::AS);
        if self.at(K::EXTERNAL) {
            return self.unsupported("FUNCTION AS EXTERNAL NAME");
        }
        let body = match data_type {
            Some(data_type) => {
                let statements = self.function_block()?;
                FunctionBody::Scalar { data_type, statements }
            }
            None => FunctionBody::Table(Box::new(self.function_query()?)),
        };
        let function = Function { verb, name, parameters, schema_binding, null_on_null, body };
        Ok(StatementKind::Object(ObjectStatement::Function(Box::new(function))))
    }

    /// ENCRYPTION would hide from nobody who has the key; whether it is inlined changes no result.
    fn function_option(
        &mut self,
        schema_binding: &mut bool,
        null_on_null: &mut bool,
    ) -> Result<()> {
        let word = self.text(self.current).to_uppercase();
        match word.as_str() {
            "ENCRYPTION" => self.unsupported("FUNCTION WITH ENCRYPTION"),
            "EXEC" | "EXECUTE" => self.execute_as_option("FUNCTION WITH EXECUTE AS"),
            "SCHEMABINDING" => {
                *schema_binding = true;
                self.advance();
                Ok(())
            }
            "INLINE" => {
                self.advance();
                self.require_symbol(Symbol::Equal)?;
                self.on_off().map(drop)
            }
            "RETURNS" | "CALLED" => {
                self.advance();
                if word == "RETURNS" {
                    self.require(K::NULL)?;
                    *null_on_null = true;
                }
                self.require(K::ON)?;
                self.require(K::NULL)?;
                if !self.at_text("INPUT") {
                    return self.unexpected();
                }
                self.advance();
                Ok(())
            }
            _ => self.unexpected(),
        }
    }

    pub(super) fn at_text(&self, word: &str) -> bool {
        self.at_name() && self.text(self.current).eq_ignore_ascii_case(word)
    }

    /// `BEGIN .. END`, which is the rest of the batch.
    fn function_block(&mut self) -> Result<Vec<Statement>> {
        if !self.at(K::BEGIN) {
            return self.unexpected();
        }
        let was_module = std::mem::replace(&mut self.in_module, true);
        let rest = self.rest_of_batch();
        self.in_module = was_module;
        let mut rest = rest?.into_iter();
        match (rest.next().map(|statement| statement.kind), rest.next()) {
            (Some(StatementKind::Control(Control::Block(statements))), None) => Ok(statements),
            _ => self.unexpected(),
        }
    }

    /// `RETURN query`, in parentheses or not.
    fn function_query(&mut self) -> Result<Query> {
        self.require(K::RETURN)?;
        let is_in_parentheses = self.accept_symbol(Symbol::LeftParenthesis);
        let with = self.with()?;
        let query = self.query_with(with)?;
        if is_in_parentheses {
            self.require_symbol(Symbol::RightParenthesis)?;
        }
        self.closed = true;
        Ok(query)
    }

    /// `RECOMPILE`, `EXECUTE AS ..`: ENCRYPTION hides from nobody who has the key.
    fn procedure_options(&mut self) -> Result<()> {
        self.comma_list(|p| match p.keyword() {
            Some(K::ENCRYPTION) => p.unsupported("PROCEDURE WITH ENCRYPTION"),
            Some(K::EXEC | K::EXECUTE) => p.execute_as_option("PROCEDURE WITH EXECUTE AS"),
            _ => p.require(K::RECOMPILE),
        })
        .map(drop)
    }

    /// `EXECUTE AS {CALLER | OWNER | SELF}`: whoever calls is the one person that there is, and has the rights of his account. A
    /// user by his name would need accounts.
    fn execute_as_option(&mut self, refused: &'static str) -> Result<()> {
        self.advance();
        self.require(K::AS)?;
        match ["CALLER", "OWNER", "SELF"].iter().any(|word| self.at_text(word)) {
            true => self.advance(),
            false => return self.unsupported(refused),
        };
        Ok(())
    }

    fn procedure_parameter(&mut self) -> Result<ProcedureParameter> {
        let variable = self.variable_name()?;
        self.declare_variable(&variable);
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
