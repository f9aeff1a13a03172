//! `sql`: SQL Server's statements, from scripts or at a prompt, as sqlcmd has them.

mod aligned;
mod args;
mod argument;
mod drives;
mod files;
mod form;
mod interrupt;
mod json;
mod prompt;
mod runner;
mod screen;
mod secret;
mod value;

use std::cell::RefCell;
use std::io::{BufRead, BufReader, BufWriter, Cursor, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use pellucid::shown::Shown;
use pellucid_sql::session::{Options, Session};
use pellucid_tsql::batch::{Script, Variables};
use zeroize::Zeroizing;

use crate::exit;
use crate::output::{standard_output, tell, unwritten, Failure, Id, Output};
use aligned::{Aligned, Layout};
pub use args::SqlArgs;
use files::Disk;
use form::Form;
use interrupt::Interrupts;
use runner::{End, Runner};
use screen::{Screen, Shared};

/// Executes what is given, or asks for it.
pub fn run(args: &SqlArgs, output: &Output) -> Result<ExitCode, Failure> {
    for text in args.query.iter().chain(&args.initial) {
        refuse_secret(text)?;
    }
    let at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let is_prompt = args.input.is_empty() && args.query.is_none() && at_terminal;
    let disk = Disk { drives: drives(args)?, verbatim: args.no_variables };
    for (_, value) in &args.variable {
        refuse_secret(value)?;
    }
    if argument::becomes_secret(args, &disk) {
        return Err(secret_variable());
    }
    let mut runner = open(args, output, &disk, is_prompt)?;
    let mut variables = disk.with_dollar(variables(args));
    let mut end = End::Over;
    for (name, reader) in scripts(args, &disk, is_prompt)? {
        let mut script = Script::new(&name, reader, disk.clone(), variables);
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
            tell(format_args!(
                "pellucid {version}: GO executes, :help shows commands, Ctrl-D leaves\n"
            ));
        }
        end = prompt::run(&mut runner, &disk, variables)?;
    }
    Ok(match end {
        End::Over | End::Left => runner.counted.map_or(ExitCode::SUCCESS, ExitCode::from),
        End::Error => ExitCode::from(runner.counted.unwrap_or(exit::FAILED)),
        End::Cancelled => ExitCode::from(exit::FAILED),
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
    let environment = std::env::var(drives::VARIABLE).ok();
    drives::all(&args.drive, environment.as_deref()).map_err(|error| {
        let failure = Failure::new(
            Id::Drives,
            format!("{}: {error}", drives::VARIABLE),
            "write it as `C=/srv/c;D=/srv/d`",
        );
        Failure { exit: exit::USAGE, ..failure }
    })
}

fn variables(args: &SqlArgs) -> Variables {
    let mut variables = Variables::with_environment();
    for (name, value) in &args.variable {
        variables.set(name, Some(Zeroizing::new(value.clone())));
    }
    variables
}

fn open(args: &SqlArgs, output: &Output, disk: &Disk, is_prompt: bool) -> Result<Runner, Failure> {
    let limit = |count: u16| (count > 0).then_some(usize::from(count));
    let form: Box<dyn Form> = match output.json {
        true => Box::new(json::Json::default()),
        false => Box::new(Aligned::new(Layout {
            separator: args.separator.clone(),
            trim: args.trim,
            width: args.width.map(usize::from),
            variable: limit(args.variable_width),
            fixed: limit(args.fixed_width),
            headers: args.headers,
        })),
    };
    let out: Box<dyn Write> = match &args.output {
        Some(path) => {
            Box::new(BufWriter::new(pellucid_files::regular::create_given(path).map_err(of(path))?))
        }
        None => Box::new(BufWriter::new(standard_output())),
    };
    let errors = Box::new(std::io::stderr());
    let is_terminal = args.output.is_none() && std::io::stdout().is_terminal();
    let screen = Screen::new(form, out, errors, args.redirect).at_terminal(is_terminal);
    let screen = Rc::new(RefCell::new(screen));
    let interrupts = Interrupts::watch(is_prompt).map_err(|error| {
        Failure::new(Id::InterruptsUnwatched, format!("Ctrl-C: {error}"), "try again")
    })?;
    let options = Options {
        program: std::env::current_exe().ok(),
        drives: disk.drives.clone(),
        database: args.database.clone(),
        application: "pellucid sql".to_owned(),
        quoted_identifier: args.quoted_identifiers,
        load: args.load.clone(),
    };
    let session = Session::open(options, Box::new(Shared(Rc::clone(&screen))));
    let session = session.map_err(|message| {
        let hint =
            "`SELECT name FROM sys.databases` shows the databases, `pellucid doctor` the instance";
        let failure = Failure::new(Id::Message, message.text, hint);
        Failure { number: u16::try_from(message.number).ok(), ..failure }
    })?;
    screen.borrow_mut().cancels_by(session.cancel());
    interrupts.cancels_by(session.cancel());
    let session = Rc::new(RefCell::new(session));
    Ok(Runner {
        session,
        screen,
        interrupts,
        echo: args.echo,
        stop: args.stop,
        level: args.level(),
        counted: None,
        given: argument::Given::of(args),
        json: output.json,
    })
}

type Scripts = Vec<(String, Box<dyn BufRead>)>;

/// What is executed before there is a prompt, if there is one.
fn scripts(args: &SqlArgs, disk: &Disk, is_prompt: bool) -> Result<Scripts, Failure> {
    let mut scripts = Scripts::new();
    for text in args.query.iter().chain(&args.initial) {
        let reader = disk.read(Cursor::new(text.clone().into_bytes()));
        scripts.push(("command line".to_owned(), reader.map_err(of(Path::new("-Q")))?));
    }
    for path in &args.input {
        let name = path.to_string_lossy().into_owned();
        // A name that is not UTF-8 is a path as it is.
        let file = path.to_str().map_or_else(|| path.clone(), |n| drives::file(&disk.drives, n));
        let reader = pellucid_files::regular::open_given(&file)
            .and_then(|file| disk.read(BufReader::new(file)));
        scripts.push((name, reader.map_err(of(path))?));
    }
    if args.input.is_empty() && args.query.is_none() && !is_prompt {
        let reader = disk.read(BufReader::new(std::io::stdin()));
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
