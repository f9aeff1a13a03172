//! Control of flow, variables, transactions.

use pellucid_tsql::ast::{
    Condition, Control, Declaration, RaiseError, Statement, StatementKind, Throw,
    TransactionStatement,
};

use super::{put, List, Listed, Maybe, One, Print, Printer};

/// Statements one level deeper, each on a line of its own.
pub(super) struct Indented<'a>(pub &'a [Statement]);

impl Print for Indented<'_> {
    fn print(&self, to: &mut Printer) {
        to.indent += 1;
        for statement in self.0 {
            to.line();
            statement.print(to);
        }
        to.indent -= 1;
        to.line();
    }
}

/// The body of IF, ELSE or WHILE: a block stays on its line.
fn body(statement: &Statement, to: &mut Printer) {
    match &statement.kind {
        StatementKind::Control(Control::Block(_)) => put!(to, " ", statement.kind),
        _ => {
            to.indent += 1;
            to.line();
            statement.print(to);
            to.indent -= 1;
        }
    }
}

/// A condition with its body. Before a body that begins with a parenthesis the condition gets parentheses too: a name at its
/// end would be read as a function that is called.
fn guarded(condition: &Condition, inner: &Statement, to: &mut Printer) {
    let start = to.text.len();
    condition.print(to);
    let end = to.text.len();
    body(inner, to);
    if to.text[end..].trim_start().starts_with('(') {
        to.text.insert(end, ')');
        to.text.insert(start, '(');
    }
}

/// Whether the text of `control` ends with that of a statement, which brings its own semicolon.
pub(super) fn ends_with_statement(control: &Control) -> bool {
    let last = match control {
        Control::If { then, otherwise, .. } => otherwise.as_ref().unwrap_or(then),
        Control::While { body, .. } => body,
        _ => return false,
    };
    !matches!(last.kind, StatementKind::Control(Control::Block(_)))
}

impl Print for Control {
    fn print(&self, to: &mut Printer) {
        match self {
            Control::If { condition, then, otherwise } => {
                put!(to, "IF ");
                guarded(condition, then, to);
                if let Some(otherwise) = otherwise {
                    to.line();
                    put!(to, "ELSE");
                    body(otherwise, to);
                }
            }
            Control::While { condition, body: inner } => {
                put!(to, "WHILE ");
                guarded(condition, inner, to);
            }
            Control::Block(statements) => put!(to, "BEGIN", Indented(statements), "END"),
            Control::Try { body, catch } => {
                put!(to, "BEGIN TRY", Indented(body), "END TRY");
                to.line();
                put!(to, "BEGIN CATCH", Indented(catch), "END CATCH");
            }
            Control::Break => put!(to, "BREAK"),
            Control::Continue => put!(to, "CONTINUE"),
            Control::Return(value) => put!(to, "RETURN", Maybe(" ", value)),
            Control::Goto(label) => put!(to, "GOTO ", label),
            Control::Label(label) => put!(to, label, ":"),
            Control::Print(value) => put!(to, "PRINT ", value),
            Control::Throw(throw) => put!(to, "THROW", Maybe(" ", throw)),
            Control::RaiseError(raise) => raise.print(to),
            Control::WaitFor { kind, time } => put!(to, "WAITFOR ", One(*kind), " ", time),
        }
    }
}

impl Print for Throw {
    fn print(&self, to: &mut Printer) {
        put!(to, self.number, ", ", self.message, ", ", self.state);
    }
}

impl Print for RaiseError {
    fn print(&self, to: &mut Printer) {
        put!(to, "RAISERROR(", self.message, ", ", self.severity, ", ", self.state);
        put!(to, Listed(", ", &self.arguments, ""), ")");
        let options: Vec<_> = self.options.iter().map(|option| One(*option)).collect();
        put!(to, Listed(" WITH ", &options, ""));
    }
}

impl Print for Declaration {
    fn print(&self, to: &mut Printer) {
        match self {
            Declaration::Scalar { variable, data_type, value } => {
                put!(to, variable, " ", data_type, Maybe(" = ", value));
            }
            Declaration::Table { variable, elements } => {
                put!(to, variable, " TABLE (", List(elements), ")");
            }
            Declaration::Cursor(variable) => put!(to, variable, " CURSOR"),
        }
    }
}

impl Print for TransactionStatement {
    fn print(&self, to: &mut Printer) {
        match self {
            TransactionStatement::Begin { name, mark } => {
                put!(to, "BEGIN TRANSACTION", Maybe(" ", name));
                if let Some(description) = mark {
                    put!(to, " WITH MARK", Maybe(" ", description));
                }
            }
            TransactionStatement::Commit { name } => {
                put!(to, "COMMIT TRANSACTION", Maybe(" ", name));
            }
            TransactionStatement::Rollback { name } => {
                put!(to, "ROLLBACK TRANSACTION", Maybe(" ", name));
            }
            TransactionStatement::Save { name } => put!(to, "SAVE TRANSACTION ", name),
        }
    }
}
