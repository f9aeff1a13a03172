//! `sql`: SQL Server's statements, from scripts or at a prompt, as sqlcmd has them.

mod aligned;
mod args;
mod argument;
mod clock;
mod code_page;
mod commands;
mod drives;
mod features;
mod files;
mod form;
mod idle;
mod interrupt;
mod json;
pub mod large_stack;
mod prompt;
mod runner;
mod screen;
mod secret;
mod server;
mod settings;
mod sheet;
pub mod step;
mod value;

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Cursor, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use pellucid::shown::Shown;
use pellucid_sql::session::{Options, Session};
use pellucid_tsql::batch::settings::{is_read_only, Layout as RowForm};
use pellucid_tsql::batch::{Dialect, Variables};

use crate::exit;
use crate::output::{tell, unwritten, Failure, Id, Output};
use aligned::{Aligned, Layout};
pub use args::{as_sqlcmd_reads, SqlArgs};
use clock::Statistics;
use code_page::CodePage;
use files::Disk;
use form::Form;
use interrupt::Interrupts;
use runner::{End, Runner};
use screen::{Screen, Shared};
use settings::Fixed;
use sheet::Sheet;

/// Executes what is given, or asks for it.
pub fn run(args: &SqlArgs, output: &Output) -> Result<ExitCode, Failure> {
    if let Some(form) = args.features {
        return features::write(form, output);
    }
    for text in args.query.iter().chain(&args.initial) {
        refuse_secret(text)?;
    }
    let at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let is_prompt = args.input.is_empty() && args.query.is_none() && at_terminal;
    let disk = disk(args)?;
    for (_, value) in &args.variable {
        refuse_secret(value)?;
    }
    let variables = variables(args)?;
    if argument::becomes_secret(args, &disk) {
        return Err(secret_variable());
    }
    if let Some(has_heading) = args.list_servers.as_ref().map(|how| how.is_empty()) {
        let mut out = Sheet::standard(disk.output);
        let written = out.write(&commands::servers(has_heading)).and_then(|()| out.flush());
        return written.map(|()| ExitCode::SUCCESS).map_err(|error| unwritten(&error));
    }
    tell_idle(args, output);
    if args.idle.change_password_and_exit.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    let refused = argument::refused(args, &disk);
    let mut runner = open(args, output, &disk, is_prompt)?;
    if let Some(error) = refused {
        runner.tell_wrong(&error);
        return Ok(ExitCode::from(exit::FAILED));
    }
    let mut variables = disk.with_dollar(variables);
    let mut end = End::Over;
    for (name, reader) in scripts(args, &disk, is_prompt)? {
        let mut script = disk.script(&name, reader, variables);
        end = runner.script(&mut script);
        variables = script.variables;
        if !matches!(end, End::Over) {
            break;
        }
    }
    if is_prompt && matches!(end, End::Over | End::Cancelled | End::Wrong(_)) {
        if let End::Wrong(error) = &end {
            runner.tell_wrong(error);
        }
        if !args.quiet && !output.json {
            let version = env!("CARGO_PKG_VERSION");
            let go = &disk.dialect.terminator;
            tell(format_args!(
                "pellucid {version}: {go} executes, :help shows commands, Ctrl-D leaves\n"
            ));
        }
        end = prompt::run(&mut runner, &disk, variables)?;
    }
    Ok(match end {
        End::Over | End::Left => runner.counted.map_or(ExitCode::SUCCESS, ExitCode::from),
        End::Error | End::Closed => ExitCode::from(runner.counted.unwrap_or(exit::FAILED)),
        End::Cancelled => ExitCode::from(exit::FAILED),
        End::Returned(status) => ExitCode::from(runner.counted.unwrap_or(status)),
        End::Failed(failure) => return Err(failure),
        End::Unread => return Err(unread(args, &runner)),
        End::Secret => return Err(secret_variable()),
        End::Wrong(error) => {
            runner.tell_wrong(&error);
            ExitCode::from(exit::FAILED)
        }
    })
}

/// What was to be read and could not be written.
fn unread(args: &SqlArgs, runner: &Runner) -> Failure {
    let error = runner.screen.borrow_mut().why_gone();
    let error = error.unwrap_or_else(|| std::io::ErrorKind::BrokenPipe.into());
    match &args.output {
        Some(path) => of(path)(error),
        None => unwritten(&error),
    }
}

/// Arguments are seen by every user of the machine, and kept by shells.
fn refuse_secret(text: &str) -> Result<(), Failure> {
    if !secret::is_shown(text) {
        return Ok(());
    }
    let hint = "give the statement by `-i` or standard input, or write `$(NAME)` for the secret and set NAME in the \
                environment";
    let failure =
        Failure::new(Id::PasswordInArgument, "a password in an argument is seen by others", hint);
    Err(Failure { exit: exit::USAGE, ..failure })
}

/// Of a variable whose value stands in an argument.
fn secret_variable() -> Failure {
    let hint = "set NAME in the environment, where `$(NAME)` finds it, and leave out its `-v` or `:setvar` (`read -rs NAME; \
                export NAME`); choose another password, as others may have seen this one";
    let told = "a password in an argument is seen by others, also as the value of a variable; nothing was executed with it";
    Failure::new(Id::SecretInVariable, told, hint)
}

fn drives(args: &SqlArgs) -> Result<Vec<(char, PathBuf)>, Failure> {
    all_drives(&args.drive)
}

/// Folders for drives that the environment names.
fn environment_drives() -> Result<Vec<(char, PathBuf)>, Failure> {
    all_drives(&[])
}

fn all_drives(given: &[drives::Drive]) -> Result<Vec<(char, PathBuf)>, Failure> {
    let environment = std::env::var(drives::VARIABLE).ok();
    drives::all(given, environment.as_deref()).map_err(|error| {
        let failure = Failure::new(
            Id::Drives,
            format!("{}: {error}", drives::VARIABLE),
            "write it as `C=/srv/c;D=/srv/d`",
        );
        Failure { exit: exit::USAGE, ..failure }
    })
}

/// Where files lie, and how they are read and written.
fn disk(args: &SqlArgs) -> Result<Disk, Failure> {
    let pages = args.code_pages;
    let output = pages.and_then(|pages| pages.output).unwrap_or(CodePage::UTF_8);
    Ok(Disk {
        drives: drives(args)?,
        verbatim: args.no_variables,
        input: pages.and_then(|pages| pages.input).unwrap_or(CodePage::UTF_8),
        output,
        file_output: if args.unicode { CodePage::UTF_16 } else { output },
        dialect: Dialect {
            terminator: args.terminator.clone().unwrap_or_else(|| "GO".to_owned()),
            passes_over_programs: args.no_commands == Some(0),
            is_here: server::is_here,
        },
    })
}

/// The variables that scripts begin with.
fn variables(args: &SqlArgs) -> Result<Variables, Failure> {
    let usage = |told: String, hint: &str| {
        let failure = Failure::new(Id::OwnVariable, told, hint);
        Err(Failure { exit: exit::USAGE, ..failure })
    };
    if let Some((name, _)) = args.variable.iter().find(|(name, _)| is_read_only(name)) {
        let hint = "an option sets it: -U, -S, -H, -d or -a";
        return usage(format!("the scripting variable `{name}` is read-only"), hint);
    }
    let variables = settings::variables(args, &str::to_owned);
    match settings::wrong(&variables) {
        Some(name) => {
            let hint = "look at the environment and at -v";
            usage(format!("the scripting variable `{name}` has an invalid value"), hint)
        }
        None => Ok(variables),
    }
}

/// What options would do elsewhere and do not do here.
fn tell_idle(args: &SqlArgs, output: &Output) {
    if let Some(server) = args.server.as_ref().filter(|server| !server::is_here(server)) {
        let server = server.shown();
        output.warning(format_args!(
            "`-S {server}`: there is no server here; what follows is executed in this machine's instance"
        ));
    }
    if let Some(form) = args.form.as_ref().filter(|form| RowForm::of(form).is_none()) {
        let form = form.shown();
        output.warning(format_args!(
            "`-F {form}`: neither `horizontal` nor `vertical`, so a host name in a certificate, of which there is none here"
        ));
    }
    if args.idle.change_password.is_some() || args.idle.change_password_and_exit.is_some() {
        output.warning("`-z` and `-Z`: nobody logs in here, and no password was changed");
    }
}

fn open(args: &SqlArgs, output: &Output, disk: &Disk, is_prompt: bool) -> Result<Runner, Failure> {
    let form: Box<dyn Form> = match output.json {
        true => Box::new(json::Json::default()),
        false => Box::new(Aligned::new(Layout::default())),
    };
    let out = match &args.output {
        Some(path) => {
            let file =
                path.to_str().map_or_else(|| path.clone(), |n| drives::made(&disk.drives, n));
            Sheet::file(&file, disk.file_output).map_err(of(path))?
        }
        None => Sheet::standard(disk.output),
    };
    let screen = Screen::new(form, out, Sheet::errors(disk.output), args.redirect);
    let screen = Rc::new(RefCell::new(screen));
    let interrupts = Interrupts::watch(is_prompt).map_err(|error| {
        Failure::new(Id::InterruptsUnwatched, format!("Ctrl-C: {error}"), "try again")
    })?;
    let in_environment = args.no_commands.is_none().then(|| std::env::var("SQLCMDDBNAME").ok());
    let in_environment = in_environment.flatten().filter(|name| !name.is_empty());
    let options = Options {
        program: std::env::current_exe().ok(),
        drives: disk.drives.clone(),
        database: args.database.clone().or(in_environment),
        application: "pellucid sql".to_owned(),
        quoted_identifier: args.quoted_identifiers,
        workstation: args.workstation.clone(),
        load: args.load.clone(),
        stack_bytes: Some(large_stack::STATEMENT_BYTES),
    };
    let reopen = move |screen: &Rc<RefCell<Screen>>, interrupts: &Interrupts| {
        session(options.clone(), screen, interrupts)
    };
    let session = reopen(&screen, &interrupts)?;
    Ok(Runner {
        session: Rc::new(RefCell::new(session)),
        screen,
        interrupts,
        echo: args.echo,
        stop: args.stop,
        level: args.level(),
        counted: None,
        given: argument::Given::of(args),
        json: output.json,
        disk: disk.clone(),
        fixed: Fixed::of(args),
        has_failed: false,
        stream: false,
        statistics: args.statistics.map(|how| Statistics { has_colons: how == 1 }),
        traced: None,
        reopen: Box::new(reopen),
    })
}

/// A session that talks to `screen`.
fn session(
    options: Options,
    screen: &Rc<RefCell<Screen>>,
    interrupts: &Interrupts,
) -> Result<Session, Failure> {
    let session = Session::open(options, Box::new(Shared(Rc::clone(screen))));
    let session = session.map_err(|message| {
        let hint =
            "`SELECT name FROM sys.databases` shows the databases, `pellucid doctor` the instance";
        let failure = Failure::new(Id::Message, message.text, hint);
        Failure { number: u16::try_from(message.number).ok(), ..failure }
    })?;
    screen.borrow_mut().cancels_by(session.cancel());
    interrupts.cancels_by(session.cancel());
    Ok(session)
}

type Scripts = Vec<(String, Box<dyn BufRead>)>;

/// What is executed before there is a prompt, if there is one.
fn scripts(args: &SqlArgs, disk: &Disk, is_prompt: bool) -> Result<Scripts, Failure> {
    let mut scripts = Scripts::new();
    let in_environment = args.no_commands.is_none().then(|| std::env::var_os("SQLCMDINI"));
    let first = in_environment.flatten().filter(|name| !name.is_empty()).map(PathBuf::from);
    let first = first.as_ref();
    for path in first.into_iter().chain(&args.input) {
        let name = path.to_string_lossy().into_owned();
        let open = pellucid_files::regular::open_given;
        // A name that is not UTF-8 is a path as it is.
        let reader = match path.to_str() {
            Some(name) => disk.open_by(name, open),
            None => open(path).and_then(|file| disk.decoded(BufReader::new(file))),
        };
        scripts.push((name, reader.map_err(of(path))?));
    }
    for text in args.query.iter().chain(&args.initial) {
        let reader = disk.read(Cursor::new(text.clone().into_bytes()));
        scripts.push(("command line".to_owned(), reader.map_err(of(Path::new("-Q")))?));
    }
    if args.input.is_empty() && args.query.is_none() && !is_prompt {
        let reader = disk.decoded(BufReader::new(std::io::stdin()));
        scripts.push(("stdin".to_owned(), reader.map_err(of(Path::new("stdin")))?));
    }
    Ok(scripts)
}

fn of(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + '_ {
    move |error| {
        Failure::new(
            Id::of_system(&error),
            format!("`{}`: {error}", path.shown()),
            "look at the path and its permissions",
        )
    }
}
