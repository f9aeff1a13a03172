//! Where results and messages go: standard output or a file, and standard error.
//!
//! Results are buffered; a message is seen at once, and so is the end of a batch. A reader that is gone ends a result,
//! which nobody reads, but no change that is under way: it is carried out, and nothing after it. A terminal gets no control
//! character but line ends and tabulators; messages have none anywhere, and rows go into files and pipes as they are.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use pellucid_sql::session::{Cancel, Report, Sink};
use pellucid_sql::translate::ResultColumn;
use pellucid_sql::values::convert::Value;
use pellucid_sql::values::types::SqlType;

use super::aligned::Layout;
use super::form::Form;
use super::sheet::Sheet;
use super::value;

/// With this state, a message asks sqlcmd to leave.
const LEAVE: u8 = 127;

/// Takes what statements give.
pub struct Screen {
    form: Box<dyn Form>,
    out: Sheet,
    errors: Sheet,
    /// -r: messages from this severity on go to standard error.
    redirected: Option<u8>,
    cancel: Option<Cancel>,
    /// Messages of a lower severity are not shown.
    level: i8,
    /// The first value of the result at hand, for `EXIT(..)`.
    first: First,
    types: Vec<SqlType>,
    /// Why nothing is written any more.
    gone: Option<io::Error>,
    asks_to_leave: bool,
    text: String,
}

/// The first value of the first row of a result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum First {
    /// There is no row.
    #[default]
    NoRow,
    /// Its text; none for NULL.
    Value(Option<String>),
}

/// The session's hold of it.
pub struct Shared(pub Rc<RefCell<Screen>>);

impl Screen {
    /// One that writes to `out`, and to `errors` what `redirect` says.
    pub fn new(form: Box<dyn Form>, out: Sheet, errors: Sheet, redirect: Option<u8>) -> Self {
        let redirected = redirect.map(|which| if which == 0 { 11 } else { 0 });
        Self {
            form,
            out,
            errors,
            redirected,
            cancel: None,
            level: 0,
            first: First::default(),
            types: Vec::new(),
            gone: None,
            asks_to_leave: false,
            text: String::new(),
        }
    }

    /// Results go to `out` from here on.
    pub fn to(&mut self, out: Sheet) {
        self.flush();
        self.out = out;
    }

    /// Errors go to `errors` from here on.
    pub fn errors_to(&mut self, errors: Sheet) {
        let _ = self.errors.flush();
        self.errors = errors;
        self.redirected.get_or_insert(11);
    }

    /// Rows stand so from here on.
    pub fn set_layout(&mut self, layout: &Layout) {
        self.level = layout.level;
        self.form.set_layout(layout);
    }

    /// The first value of the last result; a new one begins.
    pub fn take_first(&mut self) -> First {
        std::mem::take(&mut self.first)
    }

    /// What a result is cancelled by when nobody reads it.
    pub fn cancels_by(&mut self, cancel: Cancel) {
        self.cancel = Some(cancel);
    }

    /// Whether nobody reads any more.
    pub fn is_gone(&self) -> bool {
        self.gone.is_some()
    }

    /// Why nobody does.
    pub fn why_gone(&mut self) -> Option<io::Error> {
        self.gone.take()
    }

    /// Whether a message has asked to leave.
    pub fn asks_to_leave(&self) -> bool {
        self.asks_to_leave
    }

    /// A line for people.
    pub fn remark(&mut self, line: &str) {
        self.write(|form, text| form.remark(line, text));
        self.flush();
    }

    /// Text as it is.
    pub fn raw(&mut self, words: &str) {
        self.write(|_, text| text.push_str(words));
        self.flush();
    }

    /// The batch has ended.
    pub fn end(&mut self) {
        self.write(|form, text| form.end(text));
        self.flush();
    }

    fn write(&mut self, form: impl FnOnce(&mut dyn Form, &mut String)) {
        self.text.clear();
        form(&mut *self.form, &mut self.text);
        if self.out.is_terminal {
            self.text = self.form.harmless(&self.text);
        }
        if self.gone.is_none() {
            self.gone = self.out.write(&self.text).err();
        }
    }

    fn flush(&mut self) {
        if self.gone.is_none() {
            self.gone = self.out.flush().err();
        }
    }
}

impl Sink for Shared {
    fn columns(&mut self, columns: &[ResultColumn]) {
        let mut screen = self.0.borrow_mut();
        screen.first = First::NoRow;
        screen.types = columns.iter().map(|column| column.data_type).collect();
        screen.write(|form, text| form.columns(columns, text));
    }

    fn row(&mut self, values: Vec<Value>) {
        let mut screen = self.0.borrow_mut();
        if screen.first == First::NoRow {
            let value = values.first().zip(screen.types.first());
            screen.first = First::Value(value.and_then(|(value, kind)| value::text(value, *kind)));
        }
        screen.write(|form, text| form.row(&values, text));
        if screen.is_gone() {
            screen.cancel.iter().for_each(Cancel::ask);
        }
    }

    fn done(&mut self, rows: Option<u64>) {
        self.0.borrow_mut().write(|form, text| form.done(rows, text));
    }

    fn message(&mut self, report: &Report) {
        let mut screen = self.0.borrow_mut();
        let message = &report.message;
        screen.asks_to_leave |= message.state == LEAVE;
        if i16::from(message.severity) < i16::from(screen.level) {
            return;
        }
        if screen.redirected.is_some_and(|from| message.severity >= from) {
            screen.flush();
            let mut text = String::new();
            screen.form.message(report, &mut text);
            let text = screen.form.harmless(&text);
            // Nobody reads it: no reason to stop.
            let _ = screen.errors.write(&text).and_then(|()| screen.errors.flush());
            return;
        }
        screen.write(|form, text| {
            form.message(report, text);
            *text = form.harmless(text);
        });
        screen.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::aligned::Aligned;
    use std::io::Write;

    use pellucid_sql::message::Message;

    /// Text that two hold.
    #[derive(Clone, Default)]
    struct Paper(Rc<RefCell<Vec<u8>>>);

    impl Paper {
        fn text(&self) -> String {
            String::from_utf8(self.0.borrow().clone()).unwrap()
        }
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn said(redirect: Option<u8>, severity: u8) -> (String, String) {
        let (out, errors) = (Paper::default(), Paper::default());
        let form = Box::new(Aligned::new(Layout::default()));
        let sheet = |paper: &Paper| Sheet::plain(Box::new(paper.clone()));
        let screen = Screen::new(form, sheet(&out), sheet(&errors), redirect);
        let report = Report {
            message: Message::new(50_000, severity, "said"),
            line: 1,
            procedure: None,
            server: "S".into(),
        };
        Shared(Rc::new(RefCell::new(screen))).message(&report);
        (out.text(), errors.text())
    }

    #[test]
    fn errors_or_all_messages_go_to_standard_error() {
        let error = "Msg 50000, Level 16, State 1, Server S, Line 1\nsaid\n";
        for (redirect, severity, out, errors) in [
            (None, 16, error, ""),
            (Some(0), 16, "", error),
            (Some(0), 10, "said\n", ""),
            (Some(1), 0, "", "said\n"),
        ] {
            assert_eq!(said(redirect, severity), (out.to_owned(), errors.to_owned()));
        }
    }

    #[test]
    fn a_reader_that_is_gone_is_noticed() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let form = Box::new(crate::sql::json::Json::default());
        let screen =
            Screen::new(form, Sheet::plain(Box::new(Gone)), Sheet::plain(Box::new(Gone)), None);
        let mut sink = Shared(Rc::new(RefCell::new(screen)));
        assert!(!sink.0.borrow().is_gone());
        sink.done(Some(1));
        assert!(sink.0.borrow().is_gone());
    }
}
