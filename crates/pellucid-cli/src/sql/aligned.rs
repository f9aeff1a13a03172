//! Results and messages as sqlcmd prints them.
//!
//! Widths are ODBC's display sizes of the types. A value that is longer than its type allows, as SQLite lets it be, is
//! shown whole; only -y and -Y cut.

mod boxes;

use pellucid_sql::session::Report;
use pellucid_sql::translate::ResultColumn;
use pellucid_sql::values::convert::Value;
use pellucid_sql::values::types::{Family, Length, SqlType};
use pellucid_tsql::batch::settings::Layout as RowForm;

use super::form::Form;
use super::value;
use boxes::Boxes;

/// sqlcmd's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// -s
    pub separator: String,
    /// -W
    pub trim: bool,
    /// -w
    pub width: Option<usize>,
    /// -y; none: whole, and no headers.
    pub variable: Option<usize>,
    /// -Y; none: whole.
    pub fixed: Option<usize>,
    /// -h
    pub headers: i32,
    /// -F
    pub form: RowForm,
    /// `:xml on`: values one behind the other, as they are.
    pub stream: bool,
    /// -k
    pub controls: Controls,
    /// -m: messages of a lower severity are not shown; -1: all of them are, with their numbers.
    pub level: i8,
}

/// What becomes of control characters in values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controls {
    /// They are shown.
    Kept,
    /// They are left out: -k.
    Removed,
    /// Each is a space: -k1.
    Spaces,
    /// All that stand together are one space: -k2.
    OneSpace,
}

impl Controls {
    fn apply(self, text: String) -> String {
        if self == Self::Kept || !text.contains(char::is_control) {
            return text;
        }
        let mut was_control = false;
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            let is_control = c.is_control();
            match self {
                _ if !is_control => out.push(c),
                Self::Spaces => out.push(' '),
                Self::OneSpace if !was_control => out.push(' '),
                _ => {}
            }
            was_control = is_control;
        }
        out
    }
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            separator: " ".to_owned(),
            trim: false,
            width: None,
            variable: Some(256),
            fixed: None,
            headers: 0,
            form: RowForm::Horizontal,
            stream: false,
            controls: Controls::Kept,
            level: 0,
        }
    }
}

/// A result is aligned by this.
#[derive(Debug)]
struct Column {
    name: String,
    data_type: SqlType,
    /// Spaces up to here; none: none.
    width: usize,
    /// Characters at most.
    most: usize,
    is_right: bool,
}

/// The printer.
#[derive(Debug)]
pub struct Aligned {
    layout: Layout,
    columns: Vec<Column>,
    is_open: bool,
    rows: u64,
    boxes: Boxes,
}

impl Aligned {
    /// One that prints so.
    pub fn new(layout: Layout) -> Self {
        Self { layout, columns: Vec::new(), is_open: false, rows: 0, boxes: Boxes::default() }
    }

    fn has_header(&self) -> bool {
        let Layout { headers, variable, form, stream, .. } = self.layout;
        headers >= 0 && variable.is_some() && form == RowForm::Horizontal && !stream
    }

    /// The boxes of the rows that were held back.
    fn draw(&mut self, out: &mut String) {
        if self.layout.form != RowForm::Ascii || !self.is_open || self.layout.stream {
            return;
        }
        let columns: Vec<_> =
            self.columns.iter().map(|column| (column.name.as_str(), column.is_right)).collect();
        let has_header = self.layout.headers >= 0;
        let lines = self.boxes.take(&columns, &self.layout.separator, has_header);
        lines.iter().for_each(|line| self.line(line, out));
    }

    /// A row, a column a line, and an empty line.
    fn block(&self, values: &[Value], out: &mut String) {
        let longest = self.columns.iter().map(|column| column.name.chars().count()).max();
        for (column, value) in self.columns.iter().zip(values) {
            let cell = self.cell(column, value);
            match self.layout.headers >= 0 {
                true => {
                    let missing = longest.unwrap_or(0).saturating_sub(column.name.chars().count());
                    let name = format!("{}{}", column.name, " ".repeat(missing));
                    self.line(&format!("{name} {cell}"), out);
                }
                false => self.line(&cell, out),
            }
        }
        out.push('\n');
    }

    fn header(&self, out: &mut String) {
        let (mut names, mut dashes) = (Vec::new(), Vec::new());
        for column in &self.columns {
            let length = column.name.chars().count();
            let width = if self.layout.trim { length.max(1) } else { column.width };
            let missing = width.saturating_sub(length);
            names.push(format!("{}{}", column.name, " ".repeat(missing)));
            dashes.push("-".repeat(width));
        }
        self.line(&names.join(&self.layout.separator), out);
        self.line(&dashes.join(&self.layout.separator), out);
    }

    /// A line, broken at the width.
    fn line(&self, text: &str, out: &mut String) {
        let Some(width) = self.layout.width else {
            out.push_str(text);
            out.push('\n');
            return;
        };
        let mut at = 0;
        for c in text.chars() {
            if c == '\n' {
                at = 0;
            } else if at == width {
                out.push('\n');
                at = 1;
            } else {
                at += 1;
            }
            out.push(c);
        }
        out.push('\n');
    }

    fn cell(&self, column: &Column, value: &Value) -> String {
        let mut text = value::text(value, column.data_type).unwrap_or_else(|| "NULL".to_owned());
        text = self.layout.controls.apply(text);
        if let Some((at, _)) = text.char_indices().nth(column.most) {
            text.truncate(at);
        }
        if self.layout.trim {
            text.truncate(text.trim_end_matches(' ').len());
            return text;
        }
        if self.layout.form != RowForm::Horizontal {
            return text;
        }
        let spaces = " ".repeat(column.width.saturating_sub(text.chars().count()));
        match column.is_right {
            true => spaces + &text,
            false => text + &spaces,
        }
    }
}

impl Form for Aligned {
    fn columns(&mut self, columns: &[ResultColumn], out: &mut String) {
        self.end(out);
        self.columns = columns.iter().map(|column| column_of(column, &self.layout)).collect();
        self.is_open = true;
        self.rows = 0;
        if self.has_header() {
            self.header(out);
        }
    }

    fn row(&mut self, values: &[Value], out: &mut String) {
        self.rows += 1;
        if self.layout.stream {
            for (column, value) in self.columns.iter().zip(values) {
                out.push_str(&value::text(value, column.data_type).unwrap_or_default());
            }
            return;
        }
        match self.layout.form {
            RowForm::Horizontal => {}
            RowForm::Vertical => return self.block(values, out),
            RowForm::Ascii => {
                let cells = self.columns.iter().zip(values);
                let cells = cells.map(|(column, value)| self.cell(column, value)).collect();
                return self.boxes.push(cells);
            }
        }
        let every = u64::try_from(self.layout.headers).unwrap_or(0);
        if every > 0 && self.rows > 1 && (self.rows - 1) % every == 0 && self.has_header() {
            out.push('\n');
            self.header(out);
        }
        let cells = self.columns.iter().zip(values).map(|(column, value)| self.cell(column, value));
        let line = cells.collect::<Vec<_>>().join(&self.layout.separator);
        self.line(&line, out);
    }

    fn done(&mut self, rows: Option<u64>, out: &mut String) {
        self.draw(out);
        if self.is_open || (rows.is_some() && !self.layout.stream) {
            out.push('\n');
        }
        self.is_open = false;
        if let Some(rows) = rows.filter(|_| !self.layout.stream) {
            self.line(&format!("({rows} rows affected)"), out);
        }
    }

    fn message(&mut self, report: &Report, out: &mut String) {
        let Report { message, line, procedure, server } = report;
        if !message.informs() {
            self.draw(out);
            // What it breaks off has no end of its own.
            self.is_open = false;
        }
        if !message.informs() || self.layout.level < 0 {
            let within =
                procedure.as_ref().map_or_else(String::new, |name| format!(", Procedure {name}"));
            let head = format!(
                "Msg {}, Level {}, State {}, Server {server}{within}, Line {line}",
                message.number, message.severity, message.state
            );
            self.line(&head, out);
        }
        self.line(&message.text, out);
    }

    fn end(&mut self, out: &mut String) {
        self.draw(out);
        if std::mem::take(&mut self.is_open) {
            out.push('\n');
        }
    }

    fn set_layout(&mut self, layout: &Layout) {
        self.layout = layout.clone();
    }

    fn remark(&mut self, line: &str, out: &mut String) {
        self.line(line, out);
    }
}

fn column_of(column: &ResultColumn, layout: &Layout) -> Column {
    let data_type = column.data_type;
    let limited = |size: usize| (layout.fixed.map_or(size, |most| size.min(most)), layout.fixed);
    let (size, most) = match data_type {
        // Wide enough for NULL.
        SqlType::Bit | SqlType::TinyInt => (4, None),
        SqlType::SmallInt => (6, None),
        SqlType::Int | SqlType::Null => (11, None),
        SqlType::BigInt => (20, None),
        SqlType::SmallMoney => (12, None),
        SqlType::Money => (21, None),
        SqlType::Numeric { precision, .. } => (usize::from(precision) + 2, None),
        SqlType::Real => (14, None),
        SqlType::Float => (24, None),
        SqlType::Date | SqlType::Time(_) => (16, None),
        SqlType::SmallDateTime => (19, None),
        SqlType::DateTime => (23, None),
        SqlType::DateTime2(_) => (38, None),
        SqlType::UniqueIdentifier => (36, None),
        SqlType::Char(n) | SqlType::NChar(n) => limited(n.into()),
        SqlType::VarChar(Length::Of(n)) | SqlType::NVarChar(Length::Of(n)) => limited(n.into()),
        SqlType::Binary(n) | SqlType::VarBinary(Length::Of(n)) => limited(2 * usize::from(n) + 2),
        SqlType::Variant => limited(8000),
        _ => (layout.variable.unwrap_or(0), layout.variable),
    };
    let is_right = matches!(
        data_type.family(),
        Family::Null | Family::Integer | Family::Decimal | Family::Float | Family::Moment
    );
    Column {
        name: column.name.clone(),
        data_type,
        width: size.max(column.name.chars().count()),
        most: most.unwrap_or(usize::MAX),
        is_right,
    }
}

#[cfg(test)]
#[path = "aligned_tests.rs"]
mod tests;
