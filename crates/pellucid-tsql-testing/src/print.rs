//! From trees to text: canonical T-SQL that parses to an equal tree.
//!
//! One statement takes one line, but for what holds other statements. Every statement ends with a semicolon. Names
//! are in brackets where they would be read as anything else. A secret is printed as `'***'`.

mod backup;
mod change;
mod control;
mod cursor;
mod database;
mod expression;
mod key;
mod maintenance;
mod name;
mod query;
mod session;
mod statement;
mod table;

use pellucid_tsql::ast::Statement;
use pellucid_tsql::keyword::{Keyword, Word};
use zeroize::Zeroizing;

/// What has a text.
trait Print {
    fn print(&self, to: &mut Printer);
}

/// Where the text goes.
struct Printer {
    text: String,
    /// Levels of blocks around.
    indent: usize,
    reveal: bool,
}

/// Prints its arguments one behind the other.
macro_rules! put {
    ($to:expr, $($what:expr),+ $(,)?) => {{ $($crate::print::Print::print(&$what, $to);)+ }};
}
use put;

impl Printer {
    fn of(statement: &Statement, reveal: bool) -> String {
        let mut printer = Self { text: String::new(), indent: 0, reveal };
        statement.print(&mut printer);
        printer.text
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("    ", self.indent));
    }
}

/// A statement as text, canonical T-SQL on one line but for what holds other statements.
///
/// ```
/// use pellucid_tsql::parse;
/// use pellucid_tsql_testing::ToSql;
///
/// let batch = "USE master BACKUP DATABASE db TO DISK = 'db.bak' WITH INIT, STATS = 5";
/// let statements = parse(batch)?;
/// assert_eq!(statements[1].to_sql(), "BACKUP DATABASE db TO DISK = 'db.bak' WITH INIT, STATS = 5;");
/// # Ok::<(), pellucid_tsql::ParseError>(())
/// ```
pub trait ToSql {
    /// The text with `***` for each secret: it parses, but to another secret.
    fn to_sql(&self) -> String;
    /// The text with its secrets in clear, for tests of the round trip. Never log it.
    fn to_sql_with_secrets(&self) -> Zeroizing<String>;
}

impl ToSql for Statement {
    fn to_sql(&self) -> String {
        Printer::of(self, false)
    }

    fn to_sql_with_secrets(&self) -> Zeroizing<String> {
        Zeroizing::new(Printer::of(self, true))
    }
}

impl Print for str {
    fn print(&self, to: &mut Printer) {
        to.text.push_str(self);
    }
}

impl<T: Print + ?Sized> Print for &T {
    fn print(&self, to: &mut Printer) {
        (**self).print(to);
    }
}

impl<T: Print> Print for Box<T> {
    fn print(&self, to: &mut Printer) {
        (**self).print(to);
    }
}

impl Print for u64 {
    fn print(&self, to: &mut Printer) {
        to.text.push_str(&self.to_string());
    }
}

impl Print for Keyword {
    fn print(&self, to: &mut Printer) {
        to.text.push_str(self.text());
    }
}

/// A variant that is one word.
struct One<W>(W);

impl<W: Word> Print for One<W> {
    fn print(&self, to: &mut Printer) {
        self.0.keyword().print(to);
    }
}

/// `ON` or `OFF`
struct OnOff(bool);

impl Print for OnOff {
    fn print(&self, to: &mut Printer) {
        put!(to, if self.0 { "ON" } else { "OFF" });
    }
}

/// The text, if the condition holds.
struct If<T>(bool, T);

impl<T: Print> Print for If<T> {
    fn print(&self, to: &mut Printer) {
        if self.0 {
            self.1.print(to);
        }
    }
}

/// What stands before, and the thing, if there is one.
struct Maybe<'a, T>(&'a str, &'a Option<T>);

impl<T: Print> Print for Maybe<'_, T> {
    fn print(&self, to: &mut Printer) {
        if let Some(what) = self.1 {
            put!(to, self.0, what);
        }
    }
}

/// `a, b, c`
struct List<'a, T>(&'a [T]);

impl<T: Print> Print for List<'_, T> {
    fn print(&self, to: &mut Printer) {
        for (at, item) in self.0.iter().enumerate() {
            put!(to, if at > 0 { ", " } else { "" }, item);
        }
    }
}

/// What stands before and behind, and a list between; nothing at all if the list is empty.
struct Listed<'a, T>(&'a str, &'a [T], &'a str);

impl<T: Print> Print for Listed<'_, T> {
    fn print(&self, to: &mut Printer) {
        if !self.1.is_empty() {
            put!(to, self.0, List(self.1), self.2);
        }
    }
}
