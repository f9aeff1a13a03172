//! Which statement it is.

use super::name::is_name;
use super::Parser;
use crate::ast::{Control, CursorStatement, Statement, StatementKind};
use crate::error::{ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::known;
use crate::lexer::{Symbol, TokenKind};

impl Parser<'_> {
    /// The next statement of the batch; `None` at its end.
    pub(super) fn next_statement(&mut self) -> Result<Option<Statement>> {
        self.skip_semicolons();
        match self.current.kind {
            TokenKind::End => Ok(None),
            _ => self.statement().map(Some),
        }
    }

    fn skip_semicolons(&mut self) {
        while self.accept_symbol(Symbol::Semicolon) {
            self.separated = true;
        }
    }

    /// Statements up to an `END`, which is not taken.
    pub(super) fn statements_to_end(&mut self) -> Result<Vec<Statement>> {
        let mut statements = Vec::new();
        self.separated = true;
        loop {
            self.skip_semicolons();
            if self.at(K::END) && self.peek() != TokenKind::Keyword(K::CONVERSATION) {
                return Ok(statements);
            }
            statements.push(self.statement()?);
        }
    }

    /// Statements up to the end of the batch.
    pub(super) fn rest_of_batch(&mut self) -> Result<Vec<Statement>> {
        let mut statements = Vec::new();
        self.separated = true;
        // None of them is the first of its batch.
        self.first = false;
        loop {
            self.skip_semicolons();
            if self.current.kind == TokenKind::End {
                return Ok(statements);
            }
            statements.push(self.statement()?);
        }
    }

    /// One statement, as the body of IF, ELSE or WHILE.
    pub(super) fn body(&mut self) -> Result<Box<Statement>> {
        self.separated = true;
        self.statement().map(Box::new)
    }

    fn statement(&mut self) -> Result<Statement> {
        if self.closed || (self.at(K::WITH) && !self.separated) {
            return self.unexpected();
        }
        let (line, start) = (self.current.line, self.current.start as usize);
        // What no statement begins with may be the rest of a secret with a quote in it.
        self.secret &= self.keyword().is_none();
        self.declared.begin_statement();
        let kind = self.nested(Self::statement_kind)?;
        self.first = false;
        self.separated = false;
        Ok(Statement { kind, line, span: start..self.last.end as usize })
    }

    fn statement_kind(&mut self) -> Result<StatementKind> {
        let TokenKind::Keyword(word) = self.current.kind else {
            return match self.current.kind {
                TokenKind::Symbol(Symbol::LeftParenthesis) => self.select_statement(),
                _ => self.other_statement(),
            };
        };
        match word {
            K::SELECT => self.select_statement(),
            K::WITH => self.with_statement(),
            K::INSERT => self.insert(Vec::new()),
            K::UPDATE if self.peek() == TokenKind::Keyword(K::STATISTICS) => {
                self.update_statistics()
            }
            K::UPDATE => self.update(Vec::new()),
            K::DELETE => self.delete(Vec::new()),
            K::TRUNCATE => self.truncate(),
            K::CREATE => self.create(),
            K::ALTER => self.alter(),
            K::DROP => self.drop(),
            K::BACKUP => self.backup(),
            K::RESTORE => self.restore(),
            K::OPEN => self.open(),
            K::CLOSE => self.close(),
            K::EXEC | K::EXECUTE => self.execute_statement(),
            K::REVERT => self.revert(),
            K::DECLARE => self.declare(),
            K::USE => self.use_database(),
            K::SET => self.set(),
            K::DBCC => self.dbcc(),
            K::CHECKPOINT => self.checkpoint(),
            K::RECONFIGURE => self.reconfigure(),
            K::BEGIN => self.begin(),
            K::COMMIT | K::ROLLBACK | K::SAVE => self.transaction(word),
            K::IF => self.if_statement(),
            K::WHILE => self.while_statement(),
            K::BREAK | K::CONTINUE => self.leave_loop(word),
            K::RETURN => self.return_statement(),
            K::PRINT => self.print(),
            K::RAISERROR => self.raiserror(),
            K::WAITFOR => self.waitfor(),
            K::THROW => self.throw().map(StatementKind::Control),
            K::GOTO => self.goto(),
            K::FETCH => self.fetch(),
            K::DEALLOCATE => {
                self.advance();
                self.cursor_name().map(|c| StatementKind::Cursor(CursorStatement::Deallocate(c)))
            }
            _ => self.other_statement(),
        }
    }

    /// What is refused by the words that it begins with; a call or a label.
    fn other_statement(&mut self) -> Result<StatementKind> {
        let is_label = self.peek() == TokenKind::Symbol(Symbol::Colon);
        if self.words_of(&["DISABLE TRIGGER", "ENABLE TRIGGER"]).is_some() {
            return self.switch_triggers();
        }
        match self.words_of(known::STATEMENTS) {
            Some(words) if !is_label => self.unsupported(words),
            _ if is_name(self.current.kind) => self.call_or_label(),
            _ => self.unexpected(),
        }
    }

    fn select_statement(&mut self) -> Result<StatementKind> {
        self.query().map(|query| StatementKind::Select(Box::new(query)))
    }

    fn with_statement(&mut self) -> Result<StatementKind> {
        let word = TokenKind::Keyword(K::XMLNAMESPACES);
        if self.peek() == word {
            return self.unsupported("WITH XMLNAMESPACES");
        }
        let with = self.with()?;
        match self.keyword() {
            Some(K::INSERT) => self.insert(with),
            Some(K::UPDATE) => self.update(with),
            Some(K::DELETE) => self.delete(with),
            Some(K::MERGE) => self.unsupported("MERGE"),
            _ => self.query_with(with).map(|query| StatementKind::Select(Box::new(query))),
        }
    }

    /// `procedure arguments`, which EXECUTE may be left out of at the beginning of a batch; or `label:`.
    fn call_or_label(&mut self) -> Result<StatementKind> {
        if self.peek() == TokenKind::Symbol(Symbol::Colon) {
            return self.label();
        }
        match self.first && self.depth == 1 {
            true => self.execute_procedure(None).map(|call| StatementKind::Execute(Box::new(call))),
            false => self.unexpected(),
        }
    }

    /// The statement at hand has to be the first of its batch.
    pub(super) fn require_first(&self, statement: &'static str) -> Result<()> {
        match self.first && self.depth == 1 {
            true => Ok(()),
            false => self.fail(ErrorKind::NotFirst { statement }),
        }
    }

    /// `OPEN ..`
    fn open(&mut self) -> Result<StatementKind> {
        self.advance();
        match self.keyword() {
            Some(K::MASTER) => self.open_master_key(),
            Some(K::SYMMETRIC) => self.unsupported("OPEN SYMMETRIC KEY"),
            _ => self.cursor_name().map(|c| StatementKind::Cursor(CursorStatement::Open(c))),
        }
    }

    /// `CLOSE ..`
    fn close(&mut self) -> Result<StatementKind> {
        self.advance();
        match self.keyword() {
            Some(K::MASTER) => self.close_master_key(),
            Some(K::SYMMETRIC) => self.unsupported("CLOSE SYMMETRIC KEY"),
            Some(K::ALL) => self.unsupported("CLOSE ALL SYMMETRIC KEYS"),
            _ => self.cursor_name().map(|c| StatementKind::Cursor(CursorStatement::Close(c))),
        }
    }

    fn print(&mut self) -> Result<StatementKind> {
        self.advance();
        self.expression().map(|value| StatementKind::Control(Control::Print(value)))
    }
}
