//! Options of `sql`, as sqlcmd spells them.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::drives::Drive;

const EXAMPLES: &str = "Example:
  pellucid sql -i nightly.sql -b
  pellucid sql -Q \"BACKUP DATABASE sales TO DISK = 'sales.bak' WITH INIT\"
  pellucid sql --drive D=/srv/sql -i from-the-runbook.sql

Exit status: 0 done, 1 an error under -b or :on error exit, or in a script's own commands, 2 usage; with -V the severity
of the last error that counts.";

/// What `sql` takes.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true, after_help = EXAMPLES)]
pub struct SqlArgs {
    /// Scripts to execute, one after the other
    #[arg(short, long = "input-file", value_name = "FILE", value_delimiter = ',')]
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
    #[arg(
        short,
        long = "column-separator",
        value_name = "TEXT",
        default_value = " ",
        hide_default_value = true
    )]
    pub separator: String,
    /// Leave out the spaces that align columns
    #[arg(short = 'W', long = "remove-trailing-spaces", conflicts_with_all = ["variable_width", "fixed_width"])]
    pub trim: bool,
    /// Break lines after so many characters, 9 to 65535
    #[arg(
        short,
        long = "screen-width",
        value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(9..)
    )]
    pub width: Option<u16>,
    /// Show so many characters of types without a fixed size; 0 shows all of them, and no headers
    #[arg(short = 'y', long = "variable-type-width", value_name = "COUNT", default_value_t = 256)]
    pub variable_width: u16,
    /// Show so many characters of other text and binary types; 0 shows all of them
    #[arg(
        short = 'Y',
        long = "fixed-type-width",
        value_name = "COUNT",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub fixed_width: u16,
    /// Repeat the column names every so many rows; 0 prints them once, -1 never
    #[arg(
        short = 'h',
        long = "headers",
        value_name = "ROWS",
        default_value_t = 0,
        hide_default_value = true,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(-1..)
    )]
    pub headers: i32,
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
    /// Accepted without effect: scripts never start programs
    #[arg(short = 'X', long = "disable-cmd", hide = true)]
    pub no_commands: bool,
    /// Print no greeting at the prompt
    // These two are the global options: elsewhere they have the short forms -q and -y, which here are sqlcmd's.
    #[arg(id = "quiet", long = "quiet")]
    pub quiet: bool,
    #[arg(id = "yes", long = "yes", hide = true)]
    pub yes: bool,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
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
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a variable is given as NAME=VALUE")?;
    match pellucid_tsql::batch::Variables::is_name(name) {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err("its name is made of letters, digits, `_` and `-`".to_owned()),
    }
}
