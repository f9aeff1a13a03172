//! `accept`: what lies at a path is to be taken as it is, although the keyring expects something else there.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pellucid::hash::hex;
use pellucid::header::Header;
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_keyring::{Action, Event, Keyring, Pin};
use pellucid_vfs::lost_log;
use pellucid_vfs::pins::{Expectation, Lesser};

use crate::container::{begin, not_a_database};
use crate::keys::OpenWith;
use crate::output::{name, Failure, Output};
use crate::rekey::give_new_key;
use crate::scan::ScanOptions;

/// What `accept` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid accept app.db\n  pellucid accept restored.db --rekey\n  pellucid accept --gone \
                  --under /var/tmp"
)]
pub struct AcceptArgs {
    /// Paths whose files are taken as they are
    #[arg(value_name = "PATH", required_unless_present = "gone")]
    paths: Vec<PathBuf>,
    /// Give the database a new data encryption key: one that a rekey replaced is read, but not written, without
    #[arg(long, conflicts_with = "gone")]
    rekey: bool,
    /// Expect nothing any more at paths where no file is
    #[arg(long, requires = "under", conflicts_with = "paths")]
    gone: bool,
    /// The directory that these paths lie in
    #[arg(long, value_name = "DIRECTORY", requires = "gone")]
    under: Option<PathBuf>,
    #[command(flatten)]
    scan: ScanOptions,
    #[command(flatten)]
    with: OpenWith,
}

/// Accepts the files at the paths, or that there is none.
pub fn run(args: &AcceptArgs, output: &Output) -> Result<ExitCode, Failure> {
    if let Some(directory) = &args.under {
        return forget_gone(directory, output);
    }
    if args.rekey {
        args.scan.check(&args.with)?;
    }
    args.with.offer()?;
    begin()?;
    for path in &args.paths {
        accept(path, output).map_err(|failure| failure.about(path))?;
        if args.rekey {
            give_new_key(path, &args.scan, &args.with, output)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn accept(path: &Path, output: &Output) -> Result<(), Failure> {
    let expected = Expectation::at(path);
    let found = match path.try_exists() {
        Ok(false) => Err(Lesser::Missing),
        _ => match inspect(path)?.kind {
            Kind::Sealed(sealed) => Ok(sealed.header),
            Kind::Empty => Err(Lesser::Empty),
            Kind::Plain => Err(Lesser::Plain),
            Kind::Damaged(error) => return Err(Failure::of_header(error)),
            Kind::Unfinished => return let_go(path, &expected, output),
            _ => return Err(not_a_database()),
        },
    };
    let differs = match &found {
        Ok(header) => {
            expected.check(header).is_err()
                || expected.pins()?.iter().any(|pin| pin.file_id != header.file_id)
        }
        Err(lesser) => expected.refuse_lesser(*lesser).is_err(),
    };
    let told = path.display();
    let what = match &found {
        Ok(header) => format!(
            "the encrypted database with the file id {}, header {}",
            hex(&header.file_id),
            header.sequence
        ),
        Err(lesser) => lesser.text().to_owned(),
    };
    let logs = lost_log::kept(path);
    if !logs.is_empty() {
        record(path)?;
        for log in lost_log::accept(path)? {
            output.line(format!(
                "{told}: accepted: goes on without the commits of a damaged log; `{}` has them, and is yours to remove",
                log.display()
            ));
        }
    }
    if !differs && !logs.is_empty() {
        output.facts(&serde_json::json!({"path": name(path), "state": "accepted"}));
        return Ok(());
    }
    if !differs {
        output.line(format!("{told}: nothing to accept: {what} is what is expected there"));
        output.facts(&serde_json::json!({"path": name(path), "state": "expected"}));
        return Ok(());
    }
    record(path)?;
    match &found {
        Ok(header) => take(path, &expected, header)?,
        Err(_) => expected.release()?,
    }
    output.line(format!("{told}: accepted: {what}"));
    output.facts(&serde_json::json!({"path": name(path), "state": "accepted"}));
    Ok(())
}

/// Lets an interrupted decryption be finished, which an earlier version began, or a process that did not know this keyring.
fn let_go(path: &Path, expected: &Expectation, output: &Output) -> Result<(), Failure> {
    record(path)?;
    expected.let_go(true)?;
    output.line(format!(
        "{}: accepted: an interrupted conversion; whoever opens it next finishes it",
        path.display()
    ));
    output.facts(&serde_json::json!({"path": name(path), "state": "accepted"}));
    Ok(())
}

fn record(path: &Path) -> Result<(), Failure> {
    let event = Event::new(Action::Accepted, "file at a pinned path");
    Ok(event.of(pellucid_files::paths::full_name(path)).record_here()?)
}

/// Expects the database of this header from now on, if it opens: until then nobody has authenticated the header.
fn take(path: &Path, expected: &Expectation, header: &Header) -> Result<(), Failure> {
    let before = expected.pins()?;
    let retired = header.current_dek().map(|row| row.commitment)?;
    let retired = expected.forbids_writing(header)?.map(|_| retired);
    expected.put(header, retired)?;
    let opened = Handle::open(path, &uri(path, "vfs=pellucid"), ffi::OPEN_READONLY)
        .and_then(|handle| handle.run("SELECT 1 FROM sqlite_schema"));
    if let Err(error) = opened {
        put_back(expected, &before)?;
        return Err(error.into());
    }
    Ok(())
}

fn put_back(expected: &Expectation, before: &[Pin]) -> Result<(), Failure> {
    expected.release()?;
    let keyring = Keyring::open(&Keyring::locate()?)?;
    for pin in before {
        keyring.change_pin(&pin.path, |_| Some(pin.clone()))?;
    }
    Ok(())
}

fn forget_gone(directory: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let under = std::path::absolute(directory)
        .map_err(|error| Failure::new(error, "look at the path").about(directory))?;
    let real = under.canonicalize().unwrap_or_else(|_| under.clone());
    let keyring = Keyring::open(&Keyring::locate()?)?;
    let mut gone = Vec::new();
    for (file, pin) in keyring.each_pin()? {
        let pin = pin.map_err(|error| Failure::from(error).about(&file))?;
        let is_under = pin.path.starts_with(&under) || pin.path.starts_with(&real);
        if is_under && pin.path.symlink_metadata().is_err() {
            gone.push(pin.path);
        }
    }
    if !gone.is_empty() {
        Event::new(Action::Accepted, "missing files at pinned paths")
            .of(under.display().to_string())
            .record_here()?;
    }
    for path in &gone {
        keyring.unpin(path)?;
    }
    let number = gone.len();
    output.line(format!(
        "{}: nothing is expected any more at {number} path{} where no file is",
        directory.display(),
        if number == 1 { "" } else { "s" }
    ));
    output.facts(&serde_json::json!({"under": name(directory), "paths": number}));
    Ok(ExitCode::SUCCESS)
}
