//! `manual`: man pages and completions, from the same definitions the program reads its arguments by.
//!
//! The environment is the guide's page, and exit statuses are those of the program's help: each is written once.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::roff::{bold, italic, roman, Inline, Roff};
use clap_mangen::Man;

use pellucid::shown::Shown;

use crate::output::{Failure, Id, Output};

/// What `manual` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid manual share")]
pub struct ManualArgs {
    /// Directory for man/man1, bash-completion, zsh and fish, laid out as under /usr/share
    directory: PathBuf,
}

/// Completions by shell, in the places where distributions look for them.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/pellucid"),
    (Shell::Zsh, "zsh/site-functions/_pellucid"),
    (Shell::Fish, "fish/vendor_completions.d/pellucid.fish"),
];

/// Writes them.
pub fn run(args: &ManualArgs, output: &Output) -> Result<ExitCode, Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(
            Id::ManualNotWritten,
            format!("`{}`: {error}", path.shown()),
            "name a directory that can be written",
        )
    };
    let mut command = without_help_pages(crate::Cli::command());
    command.build();
    let pages = args.directory.join("man/man1");
    write_pages(&command, &pages).map_err(|error| failed(&pages, error))?;
    for (shell, name) in COMPLETIONS {
        let path = args.directory.join(name);
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "pellucid", &mut text);
        write(&path, &text).map_err(|error| failed(&path, error))?;
    }
    output.line(format!("wrote  {}", args.directory.shown()));
    Ok(ExitCode::SUCCESS)
}

/// A file, and the directories that it lies in.
fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    std::fs::write(path, text)
}

/// Variables, by the guide's page.
const ENVIRONMENT: &str = include_str!("../../../docs/guide/environment.md");

/// Exit statuses (`main.rs`, `exit`).
const STATUSES: [(&str, &str); 5] = [
    ("0", "Done."),
    ("1", "Failed; nothing else than what the message says was changed."),
    ("2", "Wrong usage."),
    ("3", "Damage was found, in a database, a log, a backup or a key, and nothing else."),
    ("4", "Something needs attention: status --check, doctor, events."),
];

/// Files, with what they are.
const FILES: [(&str, &str); 8] = [
    ("/etc/pellucid.conf", "Names the instance of the machine, which init --system makes."),
    ("/var/lib/pellucid", "The instance of the machine: keys, certificates, policies, history, event log."),
    (
        "$XDG_DATA_HOME/pellucid, ~/.local/share/pellucid",
        "The instance of an account. Back it up: without it no database and no backup under it opens again.",
    ),
    ("DB-wal, DB-journal", "Log and journal of SQLite, sealed where the database is. DB-shm, the index of the log, holds no content."),
    ("DB-pellucid", "The copy of an encryption, a decryption or a restore under way; what opens DB finishes it."),
    ("DB-wal-lost-N", "The rest of a log that was damaged before whole commits; salvage --lost-log reads it."),
    ("DB.pellucid-new", "A restore that is not whole."),
    ("BACKUP.pellucid-new", "A backup that is not whole; the next one to the same place removes it."),
];

/// A page for the program and one for each command, those within commands included.
fn write_pages(command: &Command, directory: &Path) -> std::io::Result<()> {
    let display = command.get_display_name().unwrap_or("pellucid").to_owned();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let commands: Vec<_> =
        command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    if !commands.is_empty() {
        man.render_subcommands_section(&mut page)?;
    }
    if command.get_after_help().is_some() {
        examples(command, &mut page)?;
    }
    let is_program = display == "pellucid";
    if is_program {
        entries("ENVIRONMENT", &variables(), &mut page)?;
        entries("FILES", &FILES.map(|(file, what)| (file.to_owned(), what.to_owned())), &mut page)?;
    }
    let mut statuses =
        Vec::from(STATUSES.map(|(status, what)| (status.to_owned(), what.to_owned())));
    if command.get_name() == "run" {
        let own = "The program's own status otherwise; 128 and N if signal N ended it.";
        statuses.push(("N".to_owned(), own.to_owned()));
    }
    entries("EXIT STATUS", &statuses, &mut page)?;
    see_also(command, &display, &commands, &mut page)?;
    write(&directory.join(format!("{display}.1")), &page)?;
    commands.into_iter().try_for_each(|command| write_pages(command, directory))
}

/// The variables of the guide's tables, with what they mean, without the marks of the page.
fn variables() -> Vec<(String, String)> {
    let rows = ENVIRONMENT.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").split_once(" | "));
    cells.map(|(name, meaning)| (plain(name), plain(meaning))).collect()
}

/// Text of a Markdown page without its marks; of a link its words.
fn plain(text: &str) -> String {
    let mut left = text;
    let mut said = String::new();
    while let Some((before, link)) = left.split_once('[') {
        said.push_str(before);
        let Some((words, rest)) = link.split_once("](") else { break };
        said.push_str(words);
        left = rest.split_once(')').map_or("", |(_, rest)| rest);
    }
    said.push_str(left);
    said.replace('`', "")
}

fn entries(heading: &str, entries: &[(String, String)], page: &mut Vec<u8>) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    for (term, text) in entries {
        roff.control("TP", []).text([bold(term)]).text([roman(text)]);
    }
    roff.to_writer(page)
}

/// What stands behind the options in the help: its examples line by line.
fn examples(command: &Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in text.lines().filter(|line| line.starts_with("  ")) {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.to_writer(page)
}

/// The pages around this one: that of the command that it is of, those of the commands in it, and SQLite's.
fn see_also(
    command: &Command,
    display: &str,
    commands: &[&Command],
    page: &mut Vec<u8>,
) -> std::io::Result<()> {
    // A command's own name may have hyphens, as `add-hybrid` has.
    let above = display.strip_suffix(&format!("-{}", command.get_name())).map(str::to_owned);
    let within = commands.iter().filter_map(|within| within.get_display_name()).map(str::to_owned);
    let mut roff = Roff::new();
    let mut line: Vec<Inline> = Vec::new();
    for name in above.into_iter().chain(within) {
        line.extend([bold(name), roman("(1), ")]);
    }
    line.extend([bold("sqlite3"), roman("(1)")]);
    roff.control("SH", ["SEE ALSO"]).text(line).control("PP", []);
    if command.get_name() == "run" {
        roff.text([bold("ld.so"), roman("(8)")]).control("PP", []);
    }
    roff.text([roman("The guide: "), italic("/usr/share/doc/pellucid/docs/guide.md")]);
    roff.to_writer(page)?;
    page.flush()
}

/// `help` is a word for the terminal, not a page for each command.
fn without_help_pages(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help_pages)
}
