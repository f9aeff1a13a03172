//! How results and messages are written: aligned for people, JSON for programs.

use pellucid::shown::printable_lines;
use pellucid_sql::session::Report;
use pellucid_sql::translate::ResultColumn;
use pellucid_sql::values::convert::Value;

use super::aligned::Layout;

/// A way to write them. Each function appends to `out` what is to be written.
pub trait Form {
    /// A result begins.
    fn columns(&mut self, columns: &[ResultColumn], out: &mut String);
    /// A row of it.
    fn row(&mut self, values: &[Value], out: &mut String);
    /// It has ended, or a statement has changed so many rows.
    fn done(&mut self, rows: Option<u64>, out: &mut String);
    /// A message.
    fn message(&mut self, report: &Report, out: &mut String);
    /// The batch has ended, whatever was open.
    fn end(&mut self, out: &mut String);
    /// `text`, which this form has written, without control characters. Lines of scripts may end as those of Windows do.
    fn harmless(&self, text: &str) -> String {
        let lines: Vec<_> = text.split("\r\n").map(printable_lines).collect();
        lines.join("\r\n")
    }
    /// Rows stand so from here on.
    fn set_layout(&mut self, _: &Layout) {}
    /// A line for people, which is no message of the server.
    fn remark(&mut self, line: &str, out: &mut String);
}
