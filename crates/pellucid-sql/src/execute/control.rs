//! IF, WHILE, TRY, THROW, RAISERROR, PRINT, WAITFOR, DECLARE.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use pellucid_tsql::ast::{
    Condition, Control, Declaration, Expression, OrVariable, RaiseError, RaiseErrorOption,
    Statement, StatementKind, Text, Throw, Variable, WaitKind,
};
use pellucid_tsql::Undeclared;

use super::{Done, Flow, Raised};
use crate::functions::formatted_of;
use crate::message::{table, Message};
use crate::session::{Caught, Session};
use crate::translate::Variables;
use crate::values::convert::Value;
use crate::values::types::SqlType;
use crate::values::Error;

/// Bytes of what PRINT and RAISERROR show.
const PRINT_CHARS_MOST: usize = 4000;
/// How often a wait looks whether it is cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The number of what RAISERROR raises without one.
const RAISED: u32 = 50_000;

/// Before anything is executed: what is declared, wherever it stands; no variable twice, `names` among them, and each
/// of a type that there is.
pub(super) fn declarations<'s>(
    statements: &'s [Statement],
    names: impl IntoIterator<Item = &'s Variable>,
) -> Done<Vec<&'s Declaration>> {
    let mut names = names.into_iter().map(|name| name.0.to_lowercase()).collect();
    let mut found = Vec::new();
    collect(statements, &mut names, &mut found)?;
    Ok(found)
}

fn collect<'s>(
    statements: impl IntoIterator<Item = &'s Statement>,
    names: &mut HashSet<String>,
    found: &mut Vec<&'s Declaration>,
) -> Done {
    for statement in statements {
        match &statement.kind {
            StatementKind::Declare(declarations) => {
                for (number, declaration) in (1..).zip(declarations) {
                    let refused = |message: Message| {
                        Err(Raised { line: Some(statement.line), ..Raised::from(message) })
                    };
                    let name = &declaration.variable().0;
                    if !names.insert(name.to_lowercase()) {
                        return refused(Message::of(table::DECLARED_TWICE, [name]));
                    }
                    if let Some(error) = unknown_type(declaration, number) {
                        return refused(error.into());
                    }
                    found.push(declaration);
                }
            }
            StatementKind::Control(Control::If { then, otherwise, .. }) => {
                collect([&**then], names, found)?;
                if let Some(otherwise) = otherwise {
                    collect([&**otherwise], names, found)?;
                }
            }
            StatementKind::Control(Control::While { body, .. }) => {
                collect([&**body], names, found)?
            }
            StatementKind::Control(Control::Block(body)) => collect(body, names, found)?,
            StatementKind::Control(Control::Try { body, catch }) => {
                collect(body, names, found)?;
                collect(catch, names, found)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Why there is no such type as that of the variable `number` of a DECLARE.
fn unknown_type(declaration: &Declaration, number: usize) -> Option<Error> {
    let Declaration::Scalar { data_type, .. } = declaration else { return None };
    let error = SqlType::of_declaration(data_type, number).err()?;
    matches!(error, Error::NoDataType(..) | Error::WidthRefused(..)).then_some(error)
}

impl Session {
    pub(super) fn control(&mut self, control: &Control) -> Done<Flow> {
        match control {
            Control::If { condition, then, otherwise } => {
                let holds = match self.seeks_within(then) {
                    true => true,
                    // A GOTO leads into one of them.
                    false if self.label.is_some() => false,
                    false => self.asked(condition)?,
                };
                match (holds, otherwise) {
                    (true, _) => self.run_statement(then),
                    (false, Some(otherwise)) => self.run_statement(otherwise),
                    (false, None) => Ok(Flow::Next),
                }
            }
            Control::While { condition, body } => {
                while self.label.is_some() || self.asked(condition)? {
                    match self.run_statement(body)? {
                        Flow::Break => break,
                        Flow::Return => return Ok(Flow::Return),
                        // Within the body, it goes there again without asking the condition.
                        Flow::Goto if !self.seeks_within(body) => return Ok(Flow::Goto),
                        Flow::Next | Flow::Continue | Flow::Goto => {}
                    }
                    if self.cancel.is_asked() {
                        return Err(Raised::cancelled());
                    }
                }
                Ok(Flow::Next)
            }
            Control::Block(body) => self.run_block(body),
            Control::Try { body, catch } => self.try_catch(body, catch),
            Control::Break => Ok(Flow::Break),
            Control::Continue => Ok(Flow::Continue),
            Control::Return(value) => {
                self.returned = match value {
                    Some(value) => match self.value(value, Some(SqlType::Int))? {
                        Value::Integer(number) => Some(number),
                        // RETURN NULL is 0, with a warning.
                        _ => Some(0),
                    },
                    None => None,
                };
                Ok(Flow::Return)
            }
            Control::Goto(label) => {
                self.label = Some(label.as_str().to_lowercase());
                Ok(Flow::Goto)
            }
            Control::Label(_) => {
                self.label = None;
                Ok(Flow::Next)
            }
            Control::Print(value) => {
                let text = match self.value(value, Some(SqlType::NVARCHAR_MAX))? {
                    Value::Text(text) => text,
                    _ => String::new(),
                };
                self.inform(Message::text(shortened(text)));
                self.shared.end_statement(None, 0);
                Ok(Flow::Next)
            }
            Control::Throw(throw) => Err(self.throw(throw.as_ref())?),
            Control::RaiseError(raise) => self.raise_error(raise).map(|()| Flow::Next),
            Control::WaitFor { kind, time } => self.wait_for(*kind, time).map(|()| Flow::Next),
        }
    }

    /// The condition of IF and WHILE, behind which `@@ROWCOUNT` and `@@ERROR` are 0.
    fn asked(&mut self, condition: &Condition) -> Done<bool> {
        let holds = self.holds(condition)?;
        self.shared.end_statement(Some(0), 0);
        Ok(holds)
    }

    fn try_catch(&mut self, body: &[Statement], catch: &[Statement]) -> Done<Flow> {
        self.tries += 1;
        let done = self.run_block(body);
        self.tries -= 1;
        let raised = match done {
            Err(raised) if !raised.is_cancelled && !raised.is_told => raised,
            other => return other,
        };
        if raised.uncompiled == Some(self.frames.len()) {
            return Err(raised);
        }
        // The last one is what CATCH sees. Errors before it are caught with it, remarks are told.
        let Some((message, before)) = raised.messages.split_last() else { return Err(raised) };
        if message.informs() || message.ends_session() {
            return Err(raised);
        }
        let (remarks, before): (Vec<_>, Vec<_>) =
            before.iter().cloned().partition(Message::informs);
        for message in remarks {
            self.tell(message, raised.line.unwrap_or(1));
        }
        self.shared.push_caught(Caught {
            message: message.clone(),
            before,
            line: raised.line.unwrap_or(1),
            procedure: raised.procedure.clone(),
        });
        let done = self.run_block(catch);
        self.shared.pop_caught();
        done
    }

    fn throw(&mut self, throw: Option<&Throw>) -> Done<Raised> {
        let Some(throw) = throw else {
            let caught =
                self.shared.caught().ok_or_else(|| Message::of(table::THROW_OUTSIDE_CATCH, []))?;
            let raised = Raised::of(caught.before).and(caught.message);
            return Ok(Raised {
                line: Some(caught.line),
                procedure: caught.procedure,
                is_thrown: true,
                ..raised
            });
        };
        let number = self.number(&throw.number)?;
        let text = self.text(&throw.message)?;
        let state = self.number(&throw.state)?;
        let Some(number) =
            u32::try_from(number).ok().filter(|number| (50_000..=2_147_483_647).contains(number))
        else {
            return Err(Message::of(table::BAD_THROW_NUMBER, [&number]).into());
        };
        let mut message = Message::new(number, 16, shortened(text));
        message.state = u8::try_from(state).unwrap_or(u8::MAX);
        Ok(Raised { is_thrown: true, ..message.into() })
    }

    fn raise_error(&mut self, raise: &RaiseError) -> Done {
        let severity = self.integer(&raise.severity)?;
        let state = self.integer(&raise.state)?;
        let mut arguments = Vec::new();
        let mut big = Vec::new();
        for (at, argument) in raise.arguments.iter().enumerate() {
            let data_type = self.type_of(argument)?;
            if !is_formatted(data_type) {
                // The text, the severity and the state are parameters, too.
                let places: [&dyn std::fmt::Display; 2] = [&data_type.name(), &(at + 4)];
                return Err(Message::of(table::NOT_FORMATTED, places).into());
            }
            if data_type == SqlType::BigInt {
                big.push(at);
            }
            arguments.push(self.value(argument, None)?);
        }
        let text = match self.value(&raise.message, None)? {
            Value::Text(text) => text,
            Value::Integer(number) => {
                return Err(Message::of(table::UNKNOWN_RAISED, [&number, &severity, &state]).into())
            }
            _ => String::new(),
        };
        const SEVERITY_WITHOUT_LOG: i64 = 18;
        if severity > SEVERITY_WITHOUT_LOG && !raise.options.contains(&RaiseErrorOption::Log) {
            return Err(Message::of(table::LOG_NEEDED, []).into());
        }
        let severity = severity.clamp(0, 25) as u8;
        let mut message =
            Message::new(RAISED, severity, shortened(formatted_of(&text, &arguments, &big)?));
        message.state = u8::try_from(state.max(1)).unwrap_or(1);
        if severity <= 10 {
            message.number = if severity == 0 { 0 } else { RAISED };
            let sets_error = raise.options.contains(&RaiseErrorOption::SetError);
            self.shared.end_statement(None, if sets_error { RAISED } else { 0 });
            self.inform(message);
            return Ok(());
        }
        let mut messages = Vec::new();
        if message.ends_session() {
            let session = self.shared.session_id();
            messages.push(Message::session_ended(session, message.number, severity));
        }
        messages.push(message);
        Err(Raised { is_raised: true, ..Raised::of(messages) })
    }

    fn wait_for(&mut self, kind: WaitKind, time: &Text) -> Done {
        let text = self.text(time)?;
        let wanted = clock(&text).ok_or_else(|| Message::of(table::BAD_WAIT, [&text]))?;
        let wait = match kind {
            WaitKind::Delay => wanted,
            WaitKind::Time => {
                let (hour, minute, second, ticks) = self.shared.statement_time().hms();
                let seconds = (hour * 3600 + minute * 60 + second).max(0) as u64;
                let now =
                    Duration::from_secs(seconds) + Duration::from_nanos(ticks.max(0) as u64 * 100);
                match wanted.checked_sub(now) {
                    Some(wait) => wait,
                    None => wanted + Duration::from_secs(86_400) - now,
                }
            }
        };
        let begun = Instant::now();
        while let Some(left) = wait.checked_sub(begun.elapsed()) {
            if self.cancel.is_asked() {
                return Err(Raised::cancelled());
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
        Ok(())
    }

    /// Before anything is executed: what the text uses without a declaration is known to who executes it.
    ///
    /// # Errors
    /// 137 or 1087 for each statement; all but the last are told.
    pub(super) fn check_declared(&mut self, undeclared: &[Undeclared]) -> Done {
        let frame = self.frame();
        let is_unknown = |one: &&Undeclared| {
            let name = &one.variable.0;
            !frame.has(name)
                && frame.table(name).is_none()
                && !frame.cursor_variables.contains_key(&name.to_lowercase())
        };
        let mut unknown: Vec<&Undeclared> = undeclared.iter().filter(is_unknown).collect();
        unknown.dedup_by_key(|one| one.statement);
        let message = |one: &Undeclared| match one.is_table {
            true => Message::undeclared_table(&one.variable.0),
            false => Message::undeclared(&one.variable.0),
        };
        let Some((last, before)) = unknown.split_last() else { return Ok(()) };
        if self.tries == 0 {
            before.iter().for_each(|one| self.tell(message(one), one.line));
        }
        Err(Raised { line: Some(last.line), ..message(last).into() })
    }

    /// Before anything is executed: each variable is there, and is NULL, wherever its declaration stands. What is wrong
    /// with one is told where it stands.
    pub(super) fn announce(&mut self, declarations: &[&Declaration]) {
        for declaration in declarations {
            match declaration {
                Declaration::Scalar { variable, data_type, .. } => {
                    if let Ok(data_type) = SqlType::declared(data_type, 1) {
                        self.frame().declare(&variable.0, data_type, Value::Null);
                    }
                }
                // What is made within a transaction would go with it.
                Declaration::Table { variable, elements } if self.transactions == 0 => {
                    let _ = self.declare_table(&variable.0, elements);
                }
                Declaration::Table { .. } => {}
                Declaration::Cursor(variable) => {
                    self.frame().declare_cursor(&variable.0);
                    self.tell_cursors();
                }
            }
        }
    }

    pub(super) fn declare(&mut self, declarations: &[Declaration]) -> Done {
        for (number, declaration) in (1..).zip(declarations) {
            match declaration {
                Declaration::Scalar { variable, data_type, value } => {
                    let data_type = SqlType::of_declaration(data_type, number)?;
                    let given = match value {
                        Some(value) => Some(self.value(value, Some(data_type))?),
                        None => None,
                    };
                    let frame = self.frame();
                    let initial = given.clone().unwrap_or(Value::Null);
                    // Within a loop the declaration is met again, and only assigns.
                    if !frame.declare(&variable.0, data_type, initial) {
                        if let Some(given) = given {
                            frame.set(&variable.0, given);
                        }
                    }
                }
                Declaration::Table { variable, elements } => {
                    self.declare_table(&variable.0, elements)?
                }
                Declaration::Cursor(variable) => {
                    self.frame().declare_cursor(&variable.0);
                    self.tell_cursors();
                }
            }
        }
        Ok(())
    }

    /// What an option that may be a variable says.
    pub(crate) fn text(&mut self, text: &Text) -> Done<String> {
        match text {
            OrVariable::Given(literal) => Ok(literal.text.clone()),
            OrVariable::Variable(variable) => {
                match self
                    .value(&Expression::Variable(variable.clone()), Some(SqlType::NVARCHAR_MAX))?
                {
                    Value::Text(text) => Ok(text),
                    _ => Ok(String::new()),
                }
            }
        }
    }

    /// The same of a number.
    pub(crate) fn number(&mut self, number: &OrVariable<u64>) -> Done<u64> {
        match number {
            OrVariable::Given(number) => Ok(*number),
            OrVariable::Variable(variable) => {
                let value = self.integer(&Expression::Variable(variable.clone()))?;
                Ok(u64::try_from(value).unwrap_or(0))
            }
        }
    }

    pub(crate) fn integer(&mut self, value: &Expression) -> Done<i64> {
        match self.value(value, Some(SqlType::BigInt))? {
            Value::Integer(number) => Ok(number),
            _ => Ok(0),
        }
    }
}

/// Whether RAISERROR takes an argument of the type. Source: Microsoft's "RAISERROR".
fn is_formatted(data_type: SqlType) -> bool {
    matches!(
        data_type,
        SqlType::Null
            | SqlType::TinyInt
            | SqlType::SmallInt
            | SqlType::Int
            | SqlType::BigInt
            | SqlType::Char(_)
            | SqlType::VarChar(_)
            | SqlType::NChar(_)
            | SqlType::NVarChar(_)
            | SqlType::Binary(_)
            | SqlType::VarBinary(_)
    )
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(PRINT_CHARS_MOST) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}

/// `hh:mm[:ss[.fff]]`
fn clock(text: &str) -> Option<Duration> {
    let mut parts = text.trim().split(':');
    let whole = |part: Option<&str>, most: u64| {
        part?.trim().parse::<u64>().ok().filter(|number| *number <= most)
    };
    let (hours, minutes) = (whole(parts.next(), 23)?, whole(parts.next(), 59)?);
    let seconds = match parts.next() {
        None => 0.0,
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            text.parse::<f64>().ok()?
        }
        Some(_) => return None,
    };
    if parts.next().is_some() || seconds >= 60.0 {
        return None;
    }
    Some(Duration::from_secs(hours * 3600 + minutes * 60) + Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_read() {
        assert_eq!(clock("00:00:01"), Some(Duration::from_secs(1)));
        assert_eq!(clock("01:02"), Some(Duration::from_secs(3720)));
        assert_eq!(clock("00:00:00.250"), Some(Duration::from_millis(250)));
        for wrong in ["", "1", "24:00", "00:60", "00:00:60", "00:00:1e9", "a:b", "0:0:0:0"] {
            assert_eq!(clock(wrong), None, "{wrong}");
        }
    }
}
