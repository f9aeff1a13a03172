//! IF, WHILE, TRY, THROW, RAISERROR, PRINT, WAITFOR, DECLARE.

use std::time::{Duration, Instant};

use pellucid_tsql::ast::{
    Control, Declaration, Expression, OrVariable, RaiseError, Statement, StatementKind, Text,
    Throw, WaitKind,
};

use super::{Done, Flow, Raised};
use crate::message::{table, Message};
use crate::session::{Caught, Session};
use crate::translate::Variables;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Bytes of what PRINT and RAISERROR show.
const PRINT_CHARS_MOST: usize = 4000;
/// How often a wait looks whether it is cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The number of what RAISERROR raises without one.
const RAISED: u32 = 50_000;

/// Before anything is executed: no variable is declared twice.
pub(super) fn check_declarations(statements: &[Statement]) -> Done {
    let mut names = Vec::new();
    collect(statements, &mut names)?;
    Ok(())
}

fn collect<'s>(
    statements: impl IntoIterator<Item = &'s Statement>,
    names: &mut Vec<String>,
) -> Done {
    for statement in statements {
        match &statement.kind {
            StatementKind::Declare(declarations) => {
                for declaration in declarations {
                    let (Declaration::Scalar { variable, .. }
                    | Declaration::Table { variable, .. }
                    | Declaration::Cursor(variable)) = declaration;
                    let name = variable.0.to_lowercase();
                    if names.contains(&name) {
                        let raised =
                            Raised::from(Message::of(table::DECLARED_TWICE, [&variable.0]));
                        return Err(Raised { line: statement.line, ..raised });
                    }
                    names.push(name);
                }
            }
            StatementKind::Control(Control::If { then, otherwise, .. }) => {
                collect([&**then], names)?;
                if let Some(otherwise) = otherwise {
                    collect([&**otherwise], names)?;
                }
            }
            StatementKind::Control(Control::While { body, .. }) => collect([&**body], names)?,
            StatementKind::Control(Control::Block(body)) => collect(body, names)?,
            StatementKind::Control(Control::Try { body, catch }) => {
                collect(body, names)?;
                collect(catch, names)?;
            }
            _ => {}
        }
    }
    Ok(())
}

impl Session {
    pub(super) fn control(&mut self, control: &Control) -> Done<Flow> {
        match control {
            Control::If { condition, then, otherwise } => {
                let holds = match self.seeks_within(then) {
                    true => true,
                    // A GOTO leads into one of them.
                    false if self.label.is_some() => false,
                    false => self.holds(condition)?,
                };
                match (holds, otherwise) {
                    (true, _) => self.run_statement(then),
                    (false, Some(otherwise)) => self.run_statement(otherwise),
                    (false, None) => Ok(Flow::Next),
                }
            }
            Control::While { condition, body } => {
                while self.label.is_some() || self.holds(condition)? {
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
                        Value::Integer(number) => number,
                        // RETURN NULL is 0, with a warning.
                        _ => 0,
                    },
                    None => 0,
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
                Ok(Flow::Next)
            }
            Control::Throw(throw) => Err(self.throw(throw.as_ref())?),
            Control::RaiseError(raise) => self.raise_error(raise).map(|()| Flow::Next),
            Control::WaitFor { kind, time } => self.wait_for(*kind, time).map(|()| Flow::Next),
        }
    }

    fn try_catch(&mut self, body: &[Statement], catch: &[Statement]) -> Done<Flow> {
        self.tries += 1;
        let done = self.run_block(body);
        self.tries -= 1;
        let raised = match done {
            Err(raised) if !raised.is_cancelled && !raised.is_told => raised,
            other => return other,
        };
        // What happened before the last one is told; the last one is caught.
        let Some((message, before)) = raised.messages.split_last() else { return Err(raised) };
        if message.severity <= 10 || message.severity >= 20 {
            return Err(raised);
        }
        for message in before {
            self.tell(message.clone(), raised.line.max(1));
        }
        self.shared.push_caught(Caught {
            message: message.clone(),
            line: raised.line.max(1),
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
            let raised = Raised::from(caught.message);
            return Ok(Raised {
                line: caught.line,
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
        for argument in &raise.arguments {
            arguments.push(self.value(argument, None)?);
        }
        let text = match self.value(&raise.message, None)? {
            Value::Text(text) => text,
            Value::Integer(number) => {
                return Err(Message::of(table::UNKNOWN_RAISED, [&number, &severity, &state]).into())
            }
            _ => String::new(),
        };
        let severity = severity.clamp(0, 25) as u8;
        let mut message = Message::new(RAISED, severity, shortened(formatted(&text, &arguments)));
        message.state = u8::try_from(state.max(1)).unwrap_or(1);
        if severity <= 10 {
            message.number = if severity == 0 { 0 } else { RAISED };
            self.inform(message);
            return Ok(());
        }
        Err(Raised { is_raised: true, ..message.into() })
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

    pub(super) fn declare(&mut self, declarations: &[Declaration]) -> Done {
        for declaration in declarations {
            match declaration {
                Declaration::Scalar { variable, data_type, value } => {
                    let data_type = SqlType::declared(data_type, 1)?;
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

/// RAISERROR's format: `%d`, `%i`, `%u`, `%o`, `%x`, `%X`, `%s`, with flags, width and precision.
fn formatted(text: &str, arguments: &[Value]) -> String {
    const WIDTH_MOST: usize = 2048;
    let mut out = String::new();
    let mut arguments = arguments.iter();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let flags = rest.len() - rest.trim_start_matches(['-', '+', '0', '#', ' ']).len();
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let width_end = flags + digits(&rest[flags..]);
        let width = rest[flags..width_end].parse::<usize>().unwrap_or(0).min(WIDTH_MOST);
        let (precision, mut end) = match rest[width_end..].strip_prefix('.') {
            Some(after) => {
                let length = digits(after);
                (after[..length].parse::<usize>().ok(), width_end + 1 + length)
            }
            None => (None, width_end),
        };
        end += if rest[end..].starts_with("I64") {
            3
        } else {
            usize::from(rest[end..].starts_with(['l', 'h']))
        };
        let Some(kind) = rest[end..].chars().next() else { break };
        let argument = arguments.next().unwrap_or(&Value::Null);
        let shown = match (kind, argument) {
            ('d' | 'i' | 'u', Value::Integer(number)) => number.to_string(),
            ('o', Value::Integer(number)) => format!("{number:o}"),
            ('x', Value::Integer(number)) => format!("{number:x}"),
            ('X', Value::Integer(number)) => format!("{number:X}"),
            ('s', Value::Text(text)) => match precision {
                Some(precision) => text.chars().take(precision).collect(),
                None => text.clone(),
            },
            _ => "(null)".to_owned(),
        };
        let missing = width.saturating_sub(shown.chars().count());
        let flags = &rest[..flags];
        if flags.contains('-') {
            out.push_str(&shown);
            out.extend(std::iter::repeat_n(' ', missing));
        } else {
            let fill = if flags.contains('0') && kind != 's' { '0' } else { ' ' };
            out.extend(std::iter::repeat_n(fill, missing));
            out.push_str(&shown);
        }
        rest = &rest[end + kind.len_utf8()..];
    }
    out + rest
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

    #[test]
    fn raiserror_formats_as_printf_does() {
        let arguments = [Value::Integer(7), Value::Text("abc".to_owned())];
        assert_eq!(formatted("%d of %s%%", &arguments), "7 of abc%");
        assert_eq!(formatted("[%5d][%-6s]", &arguments), "[    7][abc   ]");
        assert_eq!(formatted("%05d %.2s", &arguments), "00007 ab");
        assert_eq!(formatted("%s %d", &[]), "(null) (null)");
        assert_eq!(formatted("100%", &[]), "100");
        assert_eq!(formatted("%I64d", &arguments), "7");
    }
}
