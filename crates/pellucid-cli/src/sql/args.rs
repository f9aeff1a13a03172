//! Options of `sql`, as sqlcmd spells them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use pellucid_tsql::batch::settings::Layout as Form;

use super::code_page::CodePages;
use super::drives::Drive;
use super::features::FeatureForm;
use super::idle::Idle;

const EXAMPLES: &str = "Example:
  pellucid sql -i nightly.sql -b
  pellucid sql -Q \"BACKUP DATABASE sales TO DISK = 'sales.bak'\"
  pellucid sql --drive D=/srv/sql -i from-the-runbook.sql

Taken without effect, as there is no server and nobody logs in: -a -A -C -D -E -g -G -I -j -J
-K -l -M -N -P -R -S -U -z -Z. A warning says so if -S names another machine, and of -z and -Z that
no password was changed.

Exit status: 0 done, 1 an error under -b or :on error exit, or in a script's own commands, 2 usage;
with -V the severity of the last error that counts; after EXIT(query) the query's value.";

/// What `sql` takes.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true, after_help = EXAMPLES)]
pub struct SqlArgs {
    /// Scripts to execute, one after the other
    #[arg(short, long = "input-file", value_name = "FILE", value_delimiter = ',', num_args = 1..)]
    pub input: Vec<PathBuf>,
    /// Execute these statements and exit
    #[arg(short = 'Q', long, value_name = "TEXT", conflicts_with = "input")]
    pub query: Option<String>,
    /// Execute these statements and go on at the prompt
    #[arg(
        short = 'q',
        long = "initial-query",
        value_name = "TEXT",
        conflicts_with_all = ["input", "query"]
    )]
    pub initial: Option<String>,
    /// Database to begin in [default: master]
    #[arg(short, long = "database-name", value_name = "NAME")]
    pub database: Option<String>,
    /// Write results and messages to this file
    #[arg(short, long = "output-file", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Set scripting variables, for `$(NAME)`; those that are not set here come from the environment
    #[arg(short, long = "variables", value_name = "NAME=VALUE", num_args = 1.., value_parser = variable)]
    pub variable: Vec<(String, String)>,
    /// Do not replace `$(NAME)` by the value of the variable
    #[arg(short = 'x', long = "disable-variable-substitution")]
    pub no_variables: bool,
    /// Folder that a drive letter in paths stands for; takes precedence over `PELLUCID_DRIVES` (`C=/srv/c;D=/srv/d`)
    #[arg(long, value_name = "LETTER=FOLDER")]
    pub drive: Vec<Drive>,
    /// SQLite extension with the collations and functions that the schemas of databases need; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub load: Vec<PathBuf>,
    /// Text between columns
    #[arg(short, long = "column-separator", value_name = "TEXT")]
    pub separator: Option<String>,
    /// Leave out the spaces that align columns
    #[arg(short = 'W', long = "remove-trailing-spaces", alias = "trim-spaces", conflicts_with_all = ["variable_width", "fixed_width"])]
    pub trim: bool,
    /// Break lines after so many characters, 9 to 65535
    #[arg(
        short,
        long = "screen-width",
        value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(9..)
    )]
    pub width: Option<u16>,
    /// Show so many characters of types without a fixed size; 0 shows all of them, and no headers [default: 256]
    #[arg(short = 'y', long = "variable-type-width", value_name = "COUNT")]
    pub variable_width: Option<u16>,
    /// Show so many characters of other text and binary types; 0 shows all of them
    #[arg(short = 'Y', long = "fixed-type-width", value_name = "COUNT")]
    pub fixed_width: Option<u16>,
    /// Repeat the column names every so many rows; 0 prints them once, -1 never
    #[arg(
        short = 'h',
        long = "headers",
        value_name = "ROWS",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(-1..)
    )]
    pub headers: Option<i32>,
    /// Print rows as `horizontal` lines, in boxes (`ascii`) or, a column a line, `vertical`; any other value is the host name in a certificate, and has no effect
    #[arg(short = 'F', long = "format", value_name = "FORM")]
    pub form: Option<String>,
    #[arg(long, hide = true)]
    pub vertical: bool,
    #[arg(long, hide = true, conflicts_with = "vertical")]
    pub ascii: bool,
    /// Control characters in values: remove them, 1 print a space for each, 2 one for all that stand together
    #[arg(
        short = 'k',
        long = "remove-control-characters",
        value_name = "1|2",
        num_args = 0..=1,
        default_missing_value = "0",
        value_parser = clap::value_parser!(u8).range(0..=2)
    )]
    pub controls: Option<u8>,
    /// Show messages of this severity and above only; -1 shows the numbers of all messages
    #[arg(
        short = 'm',
        long = "error-level",
        value_name = "LEVEL",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i8).range(-1..=25)
    )]
    pub message_level: Option<i8>,
    /// Code page of scripts and output: `1252`, or `i:1252,o:65001` [default: 65001]
    #[arg(short = 'f', long = "code-page", value_name = "NUMBER")]
    pub code_pages: Option<CodePages>,
    /// Write files of output in UTF-16
    #[arg(short = 'u', long = "unicode-output-file")]
    pub unicode: bool,
    /// Word that ends a batch [default: GO]
    #[arg(short = 'c', long = "batch-terminator", value_name = "WORD", value_parser = terminator)]
    pub terminator: Option<String>,
    /// Cancel a batch after so many seconds; 0 never does
    #[arg(
        short = 't',
        long = "query-timeout",
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u16).range(..=65534)
    )]
    pub query_timeout: Option<u16>,
    /// Print how long each batch took; 1 with colons between the figures
    #[arg(
        short = 'p',
        long = "print-statistics",
        value_name = "1",
        num_args = 0..=1,
        default_missing_value = "0",
        value_parser = clap::value_parser!(u8).range(0..=1)
    )]
    pub statistics: Option<u8>,
    /// What HOST_NAME() and $(SQLCMDWORKSTATION) give
    #[arg(short = 'H', long = "workstation-name", value_name = "NAME")]
    pub workstation: Option<String>,
    /// List the servers, which is this machine, and exit; c without a heading
    #[arg(
        short = 'L',
        long = "list-servers",
        value_name = "c",
        num_args = 0..=1,
        default_missing_value = "",
        hide_possible_values = true,
        value_parser = ["", "c"]
    )]
    pub list_servers: Option<String>,
    /// List what there is of SQL Server and of sqlcmd, works or is refused, and exit
    #[arg(
        long,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table"
    )]
    pub features: Option<FeatureForm>,
    /// Stop at the first error of severity 11 or more, with exit status 1
    #[arg(short = 'b', long = "exit-on-error")]
    pub stop: bool,
    /// Least severity of an error that counts: for -b, and for the exit status, which is then the severity of the error
    #[arg(
        short = 'V',
        long = "error-severity-level",
        value_name = "LEVEL",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i16).range(..=25)
    )]
    pub severity: Option<i16>,
    /// Write messages to standard error: 0 errors only, 1 all of them
    #[arg(
        short = 'r',
        long = "errors-to-stderr",
        value_name = "0|1",
        num_args = 0..=1,
        default_missing_value = "0",
        value_parser = clap::value_parser!(u8).range(0..=1)
    )]
    pub redirect: Option<u8>,
    /// Print each batch before it is executed, without its secrets
    #[arg(short = 'e', long = "echo-input")]
    pub echo: bool,
    /// Let double quotes enclose names (SET QUOTED_IDENTIFIER ON); without it they enclose text, as in sqlcmd
    #[arg(short = 'I', long = "enable-quoted-identifiers")]
    pub quoted_identifiers: bool,
    /// Give scripts no environment variables; `!!` and `:ed` are passed over, with 1 they are errors
    #[arg(
        short = 'X',
        long = "disable-cmd",
        alias = "disable-cmd-and-warn",
        value_name = "1",
        num_args = 0..=1,
        default_missing_value = "0",
        value_parser = clap::value_parser!(u8).range(0..=1)
    )]
    pub no_commands: Option<u8>,
    /// Server to log in to; $(SQLCMDSERVER)
    #[arg(short = 'S', long, value_name = "NAME", hide = true)]
    pub server: Option<String>,
    /// Login; $(SQLCMDUSER)
    #[arg(short = 'U', long = "user-name", value_name = "NAME", hide = true)]
    pub user: Option<String>,
    /// Bytes of a packet; $(SQLCMDPACKETSIZE)
    #[arg(
        short = 'a',
        long,
        value_name = "BYTES",
        hide = true,
        value_parser = clap::value_parser!(u16).range(512..=32767)
    )]
    pub packet_size: Option<u16>,
    /// Seconds to wait for a login; $(SQLCMDLOGINTIMEOUT)
    #[arg(
        short = 'l',
        long = "login-timeout",
        alias = "login-timeOut",
        value_name = "SECONDS",
        hide = true,
        value_parser = clap::value_parser!(u16).range(..=65534)
    )]
    pub login_timeout: Option<u16>,
    #[command(flatten)]
    pub idle: Idle,
    /// Print no greeting at the prompt
    // These two are the global options: elsewhere they have the short forms -q and -y, which here are sqlcmd's.
    #[arg(id = "quiet", long = "quiet")]
    pub quiet: bool,
    #[arg(id = "yes", long = "yes", hide = true)]
    pub yes: bool,
    /// Print help
    #[arg(long, short = '?', action = ArgAction::Help)]
    help: Option<bool>,
    /// Print version
    #[arg(long, action = ArgAction::Version)]
    version: Option<bool>,
}

impl SqlArgs {
    /// The level of -V; sqlcmd takes 0 and less for none.
    pub fn level(&self) -> Option<u8> {
        self.severity.and_then(|level| u8::try_from(level).ok()).filter(|level| *level > 0)
    }

    /// How rows are printed, if that is asked for.
    pub fn row_form(&self) -> Option<&str> {
        let given = self.form.as_deref().filter(|form| Form::of(form).is_some());
        match () {
            () if self.vertical => Some("vertical"),
            () if self.ascii => Some("ascii"),
            () => given,
        }
    }
}

/// The arguments of the program as sqlcmd reads them: `-s=` is the separator `=`, which elsewhere stands before a value, and
/// `-P` at the end is no password.
pub fn as_sqlcmd_reads(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<_> = arguments.collect();
    let is_option = |argument: &OsString| argument.as_encoded_bytes().starts_with(b"-");
    let mut words = arguments.iter().skip(1);
    let mut command = words.next();
    while let Some(option) = command.filter(|argument| is_option(argument)) {
        if option == "--color" {
            words.next();
        }
        command = words.next();
    }
    if command.is_some_and(|command| command == "sql") {
        for argument in &mut arguments {
            let separator = argument.to_str().and_then(|text| text.strip_prefix("-s="));
            if let Some(separator) = separator.map(|rest| format!("--column-separator=={rest}")) {
                *argument = separator.into();
            }
        }
        if arguments.last().is_some_and(|last| last == "-P") {
            arguments.push(OsString::new());
        }
    }
    arguments
}

fn terminator(text: &str) -> Result<String, String> {
    match !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '(') {
        true => Ok(text.to_owned()),
        false => Err("what ends a batch is one word".to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a variable is given as NAME=VALUE")?;
    match pellucid_tsql::batch::Variables::is_name(name) {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err("its name is made of letters, digits, `_` and `-`".to_owned()),
    }
}
