//! What people and machines read: lines, warnings, errors with hints, tables, progress, numbers with units.
//!
//! Nothing goes out with a control character but line ends, tabulators and the few styles of this file: names are other
//! people's. Where a line end in a name would forge a line, `pellucid::shown` shows the name.

use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use pellucid::message::Message;
use pellucid::shown::{printable, printable_json, printable_lines};

mod failure;
mod id;
mod names;
mod table;
mod wrap;

pub use failure::{no_folder_hint, Failure};
pub use id::Id;
pub use names::{name, names, quoted, word};
pub use table::{list, pad, table, Grid};
pub use wrap::columns;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";
const STYLES: [&str; 5] = [BOLD, DIM, RED, YELLOW, PLAIN];
/// Words of tables and verdicts that somebody has to look at. Colour says nothing that they do not.
const ALARMS: [&str; 3] = ["!!", "DAMAGED", "MISSING"];
const CAUTIONS: [&str; 2] = ["NEVER", "PLAIN"];

/// How to talk.
#[derive(Debug)]
pub struct Output {
    /// JSON for machines.
    pub json: bool,
    quiet: bool,
    yes: bool,
    colour: bool,
    /// The same of standard error.
    colour_of_errors: bool,
    /// Standard output is taken by something else.
    taken: bool,
    /// Why the first line that could not be written was not.
    unwritten: Mutex<Option<io::Error>>,
}

impl Output {
    /// As the global options say.
    pub fn new(json: bool, quiet: bool, yes: bool, colour: Colour) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let on = |is_terminal: bool| match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => !plain && is_terminal,
        };
        Self {
            json,
            quiet,
            yes,
            colour: on(io::stdout().is_terminal()) && !json,
            colour_of_errors: on(io::stderr().is_terminal()),
            taken: false,
            unwritten: Mutex::default(),
        }
    }

    /// For a command that writes something else to standard output: facts go to standard error.
    pub fn beside(self) -> Self {
        Self { taken: true, quiet: true, ..self }
    }

    /// Whether nothing but the answer is wanted on standard output.
    pub fn is_quiet(&self) -> bool {
        self.quiet && !self.json
    }

    /// `text` in bold, where colours are shown.
    pub fn bold(&self, text: impl Display) -> String {
        self.styled(BOLD, text)
    }

    /// `text` dimmed, where colours are shown.
    pub fn dim(&self, text: impl Display) -> String {
        self.styled(DIM, text)
    }

    /// `text` as an alarm, where colours are shown.
    pub fn alarm(&self, text: impl Display) -> String {
        self.styled(RED, text)
    }

    fn styled(&self, style: &str, text: impl Display) -> String {
        if self.colour {
            return format!("{style}{text}{PLAIN}");
        }
        text.to_string()
    }

    /// A line on standard output. One that cannot be written is no reason to stop half way through a change:
    /// [`Output::written`] tells of it at the end.
    fn put(&self, line: impl Display) {
        let line = line.to_string();
        let line = if self.colour { styled_lines(&line).into() } else { printable_lines(&line) };
        if let Err(error) = writeln!(standard_output(), "{line}") {
            self.first_unwritten().get_or_insert(error);
        }
    }

    fn first_unwritten(&self) -> MutexGuard<'_, Option<io::Error>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all that was printed reached standard output.
    ///
    /// # Errors
    /// [`Failure`] for the first line that did not: half an answer may pass for a whole one. Without words if the program
    /// that read the lines has left (`| head`).
    pub fn written(&self) -> Result<(), Failure> {
        let flushed = io::stdout().flush().err();
        match self.first_unwritten().take().or(flushed) {
            Some(error) => Err(unwritten(&error)),
            None => Ok(()),
        }
    }

    /// A line for people.
    pub fn line(&self, line: impl Display) {
        if self.json || self.quiet {
            return;
        }
        let line = self.marked(&line.to_string());
        match wrap::columns().filter(|_| io::stdout().is_terminal()) {
            Some(columns) => self.put(wrap::wrapped(&line, columns.into())),
            None => self.put(&line),
        }
    }

    /// `text` with the words that need an eye in colour, where colours are shown.
    fn marked(&self, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let mark = |word: &str| {
            let bare = word.trim_end_matches([',', ':']);
            let style = match bare {
                _ if ALARMS.contains(&bare) => RED,
                _ if CAUTIONS.contains(&bare) => YELLOW,
                _ => return word.to_owned(),
            };
            format!("{style}{bare}{PLAIN}{}", &word[bare.len()..])
        };
        let lines =
            text.split('\n').map(|line| line.split(' ').map(mark).collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Words behind `pellucid: ` and the kind of what is told, which is in colour where colours are shown.
    fn tell_of(&self, kind: &str, style: &str, text: &str) {
        let line = on_error(format_args!("pellucid: {kind}: {}\n", printable(text)));
        let painted = format!("pellucid: {style}{kind}:{PLAIN}");
        let line = match self.colour_of_errors {
            true => line.replacen(&format!("pellucid: {kind}:"), &painted, 1),
            false => line,
        };
        let _ = io::stderr().write_all(line.as_bytes());
    }

    /// A warning: shown even when quiet.
    pub fn warning(&self, text: impl Display) {
        self.tell_of("warning", YELLOW, &text.to_string());
    }

    /// Asks before something cannot be undone; only at a terminal, and not with `--yes`: a script has decided already.
    ///
    /// # Errors
    /// [`Failure`] unless the answer is yes; nothing was changed then.
    pub fn confirm(&self, question: &str) -> Result<(), Failure> {
        if self.yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(());
        }
        tell(format_args!("pellucid: {} [y/N] ", printable_lines(question)));
        let mut answer = String::new();
        // An unreadable answer is no yes.
        let _ = io::stdin().read_line(&mut answer);
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Failure::new(
                Id::Declined,
                "nothing was changed",
                "answer `y`, or give `--yes`",
            )),
        }
    }

    /// Like [`Output::confirm`], but a script has to say `--yes`: without it and without a terminal the answer is `refusal`.
    pub fn confirm_or(&self, question: &str, refusal: Failure) -> Result<(), Failure> {
        let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
        match self.yes || is_asked {
            true => self.confirm(question),
            false => Err(refusal),
        }
    }

    /// One of SQL Server's messages that informs, in its own words, with its number.
    pub fn message(&self, message: &Message) {
        let text = message.text.trim_start_matches("Warning: ");
        self.warning(format_args!("{text} ({})", message.number));
    }

    /// The same about `name`.
    pub fn message_about(&self, message: &Message, name: &str) {
        self.warning(format_args!("{} ({})", message.with(name), message.number));
    }

    /// A path alone, also when quiet, because it is what was asked for; as bytes, because it need not be UTF-8.
    ///
    /// # Errors
    /// [`Failure`] if standard output cannot be written.
    pub fn path(&self, path: &Path) -> Result<(), Failure> {
        let mut out = standard_output();
        let written =
            out.write_all(path.as_os_str().as_bytes()).and_then(|()| out.write_all(b"\n"));
        written.map_err(|error| unwritten(&error))
    }

    /// Text that is the whole answer, also when quiet.
    ///
    /// # Errors
    /// [`Failure`] if it could not be made.
    pub fn text(&self, text: &Result<String, std::fmt::Error>) -> Result<(), Failure> {
        let text = text.as_ref().map_err(|error| {
            Failure::new(Id::Defect, error, "this is a defect of pellucid: report it")
        })?;
        self.put(text.trim_end());
        Ok(())
    }

    /// Facts for machines, on standard output where that is free.
    pub fn facts(&self, facts: &serde_json::Value) {
        let facts = names::settled(facts).to_string();
        let facts = printable_json(&facts);
        match (self.json, self.taken) {
            (true, false) => self.put(&facts),
            (true, true) => tell(format_args!("{facts}\n")),
            _ => {}
        }
    }

    /// An error with its hint.
    pub fn failure(&self, failure: &Failure) {
        self.facts(&serde_json::json!({
            "error": failure.message, "hint": failure.hint, "id": failure.id(), "kind": failure.kind(),
            "message": failure.number,
        }));
        if failure.is(Id::Unread) {
            return;
        }
        self.tell_of("error", RED, &failure.line_with_id());
        if let Some(hint) = &failure.hint {
            tell(format_args!("pellucid: hint: {}\n", printable(hint)));
        }
    }

    /// A bar with the rate and the time that is left, for people at a terminal.
    pub fn progress(&self, what: &str, unit: Unit) -> Progress {
        // Whatever is told of it before its length is known would be drawn, and stay on the screen: so it is hidden until then.
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let template = match unit {
            Unit::Bytes => {
                "{msg} {wide_bar} {bytes} of {total_bytes}  {binary_bytes_per_sec}  {eta} left"
            }
            Unit::Pages => "{msg} {wide_bar} {pos} of {len} pages  {rate}/s  {eta} left",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                let _ = write!(out, "{:.0}", state.per_sec());
            };
            bar.set_style(style.with_key("rate", rate));
        }
        bar.set_message(printable(what).into_owned());
        let shown = !self.quiet && !self.json && io::stderr().is_terminal();
        Progress { bar, waiting: Cell::new(shown) }
    }
}

/// Standard output; every write to one that was closed at the start fails.
pub fn standard_output() -> Box<dyn Write> {
    match pellucid_vfs::streams::was_output_closed() {
        true => Box::new(Closed),
        false => Box::new(io::stdout()),
    }
}

/// A closed stream.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(libc::EBADF))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line that did not reach standard output.
pub fn unwritten(error: &io::Error) -> Failure {
    let id = match error.kind() {
        // Nobody reads standard output any more, so that no word reaches anybody.
        ErrorKind::BrokenPipe => Id::Unread,
        _ => Id::Unwritten,
    };
    Failure::new(id,
        format!("standard output: {error}; what was printed is not whole"),
        "the command did everything else; run it again where its output can be written, if that only shows something",
    )
}

/// Words on standard error; not by `eprint!`, which panics where nobody reads.
pub fn tell(words: impl Display) {
    let _ = io::stderr().write_all(on_error(words).as_bytes());
}

/// Words as they go to standard error.
fn on_error(words: impl Display) -> String {
    let words = words.to_string();
    let shown = printable_lines(&words);
    let columns = wrap::columns().filter(|_| io::stderr().is_terminal());
    columns.map_or_else(|| shown.to_string(), |columns| wrap::wrapped(&shown, columns.into()))
}

/// When there are colours. Without the option, and by `auto`: at a terminal, unless `NO_COLOR` or `TERM=dumb` says
/// otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// At a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also into files and pipes
    Always,
    /// Nowhere
    Never,
}

/// Text with its lines and styles, and without other control characters.
fn styled_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let next =
        |rest: &str| STYLES.iter().filter_map(|style| Some((rest.find(style)?, *style))).min();
    while let Some((at, style)) = next(rest) {
        shown += &printable_lines(&rest[..at]);
        shown += style;
        rest = &rest[at + style.len()..];
    }
    shown += &printable_lines(rest);
    shown
}

/// A bar that is drawn from the moment its length is known.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// It is to be drawn, and is not yet.
    waiting: Cell<bool>,
}

impl Progress {
    /// How much there is to do.
    pub fn set_length(&self, length: u64) {
        if length > 0 && self.waiting.take() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        }
        self.bar.set_length(length);
    }
}

impl Deref for Progress {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.bar
    }
}

/// What a progress bar counts.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Pages.
    Pages,
}

/// `1.2 MiB`.
pub fn bytes(count: u64) -> String {
    indicatif::BinaryBytes(count).to_string()
}

/// `0.05 s`.
pub fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

/// `2027-11-21`, from seconds since 1970.
pub fn date(seconds: impl TryInto<i64>) -> String {
    told(seconds, |at| Some(at.date().to_string()))
}

/// `2027-11-21 09:30:00`, from seconds since 1970.
pub fn date_time(seconds: impl TryInto<i64>) -> String {
    moment(seconds).replace('T', " ").replace('Z', "")
}

/// `2027-11-21T09:30:00Z`, from seconds since 1970.
pub fn moment(seconds: impl TryInto<i64>) -> String {
    told(seconds, |at| at.format(&time::format_description::well_known::Rfc3339).ok())
}

/// `?` for a time that no calendar has: it may come from a damaged file.
fn told(
    seconds: impl TryInto<i64>,
    tell: impl FnOnce(time::OffsetDateTime) -> Option<String>,
) -> String {
    let at = seconds.try_into().ok();
    at.and_then(|at| time::OffsetDateTime::from_unix_timestamp(at).ok())
        .and_then(tell)
        .unwrap_or_else(|| "?".to_owned())
}

/// Seconds since 1970.
pub fn now() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_need_an_eye_are_in_colour_where_colours_are_shown() {
        let text = "a.db: DAMAGED: 1\n!!  key   NEVER  /DAMAGED/x  ok";
        let with = |colour| Output::new(false, false, false, colour).marked(text);
        assert_eq!(with(Colour::Never), text);
        assert_eq!(with(Colour::Auto), text, "a test has no terminal");
        assert_eq!(
            with(Colour::Always),
            "a.db: \x1b[1;31mDAMAGED\x1b[0m: 1\n\x1b[1;31m!!\x1b[0m  key   \x1b[33mNEVER\x1b[0m  /DAMAGED/x  ok"
        );
        assert_eq!(Output::new(true, false, false, Colour::Always).marked(text), text, "JSON");
    }

    #[test]
    fn styles_and_lines_stay_and_everything_else_is_escaped() {
        let shown = styled_lines(
            "\x1b[1mbold\x1b[0m\n\tplain \x1b[31mred\x1b]0;t\x07\x1b[2mdim\x1b[0m\r\u{9b}m",
        );
        assert_eq!(
            shown,
            "\x1b[1mbold\x1b[0m\n\tplain \\x1b[31mred\\x1b]0;t\\x07\x1b[2mdim\x1b[0m\\r\\u{9b}m"
        );
    }
}
