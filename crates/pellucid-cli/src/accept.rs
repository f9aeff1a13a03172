//! `accept`: what lies at a path is to be taken as it is, although the keyring expects something else there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pellucid::hash::hex;
use pellucid::header::Header;
use pellucid::sector::{SectorZero, SECTOR_BYTES, SQLITE_MAGIC};
use pellucid::shown::Shown;
use pellucid_backup::history::History;
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_files::paths::{copy_path, original_path, own_name};
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_keyring::{Action, Event, Keyring};
use pellucid_vfs::lost_log;
use pellucid_vfs::opened;
use pellucid_vfs::pins::{parse_id, Expectation, Lesser};

use crate::container::{begin, not_a_database};
use crate::keys::OpenWith;
use crate::output::{name, Failure, Id, Output};
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
        // A file of the instance's own; what is wrong with its key is said where the key is needed.
        let _ = History::offer_key_of(path);
        accept(path, output).map_err(|failure| failure.about(path))?;
        if args.rekey {
            give_new_key(path, &args.scan, &args.with, output)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn accept(path: &Path, output: &Output) -> Result<(), Failure> {
    let told = path.shown();
    let logs = lost_log::kept(path);
    if !logs.is_empty() {
        record(path)?;
        for log in lost_log::accept(path)? {
            output.line(format!(
                "{told}: accepted: goes on without the commits of a damaged log; `{}` has them, and is yours to remove",
                log.shown()
            ));
        }
    }
    let expected = Expectation::at(path)?;
    let found = match path.try_exists() {
        Ok(false) => Found::Lesser(Lesser::Missing),
        _ => match inspect(path)?.kind {
            Kind::Sealed(_) => Found::Sealed(authenticated(path)?),
            Kind::Empty => Found::Lesser(Lesser::Empty),
            Kind::Plain => Found::Lesser(Lesser::Plain),
            Kind::Damaged(error) => return Err(Failure::of_header(error)),
            Kind::Unfinished => return let_go(path, &expected, output),
            _ => return Err(not_a_database(path)),
        },
    };
    let what = match &found {
        Found::Sealed(header) => format!(
            "the encrypted database with the file id {}, header {}",
            hex(&header.file_id),
            header.sequence
        ),
        Found::Lesser(lesser) => lesser.text().to_owned(),
    };
    if matches!(found, Found::Lesser(Lesser::Missing)) && forget(&[original_path(path)])? > 0 {
        record(path)?;
        expected.release()?;
        output.line(format!(
            "{told}: accepted: no file; the keyring knows no database there any more"
        ));
        output.facts(&serde_json::json!({"path": name(path), "state": "accepted"}));
        return Ok(());
    }
    if found.is_expected(&expected) {
        let also = if logs.is_empty() { "nothing to accept" } else { "nothing else to accept" };
        output.line(format!("{told}: {also}: {what} is what is expected there"));
        output.facts(&serde_json::json!({"path": name(path), "state": "expected"}));
        return Ok(());
    }
    record(path)?;
    match &found {
        Found::Sealed(header) => take(&expected, header)?,
        Found::Lesser(_) => expected.release()?,
    }
    output.line(format!("{told}: accepted: {what}"));
    output.facts(&serde_json::json!({"path": name(path), "state": "accepted"}));
    Ok(())
}

/// What lies at the path.
enum Found {
    /// A container whose header was authenticated.
    Sealed(Box<Header>),
    Lesser(Lesser),
}

impl Found {
    fn is_expected(&self, expected: &Expectation) -> bool {
        match self {
            Found::Sealed(header) => {
                let pins = expected.check(header);
                pins.is_ok_and(|pins| pins.iter().all(|pin| pin.file_id == header.file_id))
            }
            Found::Lesser(lesser) => expected.refuse_lesser(*lesser).is_ok(),
        }
    }
}

/// The header of the container at `path`, opened with the keys at hand, whatever is expected there.
fn authenticated(path: &Path) -> Result<Box<Header>, Failure> {
    let uri = uri(path, "vfs=pellucid&require=container&pellucid_accept=1");
    let handle = Handle::open(path, &uri, ffi::OPEN_READONLY)?;
    let opened = opened::sealed(&handle)?;
    let header = opened.and_then(|(_, container)| container.header());
    header.map(Box::new).ok_or_else(|| not_a_database(path))
}

/// Expects the database of this header from now on.
fn take(expected: &Expectation, header: &Header) -> Result<(), Failure> {
    let retired = header.current_dek().map(|row| row.commitment)?;
    let retired = expected.forbids_writing(header)?.map(|_| retired);
    if expected.pins().is_err() {
        // A pin that cannot be read is one that nothing would ever be compared with.
        expected.release()?;
    }
    expected.put(header, retired)?;
    // A machine's pin behind the caller's own keyring is its administrator's.
    expected.check(header)?;
    Ok(())
}

/// Lets an interrupted decryption be finished, which an earlier version began, or a process that did not know this keyring: the
/// very copy that lies there now. One whose copy is sealed needs nothing.
fn let_go(path: &Path, expected: &Expectation, output: &Output) -> Result<(), Failure> {
    let Some(hash) = plain_copy(path) else { return Err(crate::container::interrupted()) };
    record(path)?;
    expected.let_go(Some(hash))?;
    output.line(format!(
        "{}: accepted: an interrupted decryption; the program that opens it next finishes it",
        path.shown()
    ));
    output.facts(&serde_json::json!({"path": name(path), "state": "accepted"}));
    Ok(())
}

/// The SHA-256 of the plain copy that the laying at `path` is finished from.
fn plain_copy(path: &Path) -> Option<[u8; 32]> {
    let read = |path: &Path| {
        let mut sector = [0; SECTOR_BYTES];
        let mut file = pellucid_files::regular::open(path).ok()?;
        std::io::Read::read_exact(&mut file, &mut sector).ok().map(|()| sector)
    };
    let own = own_name(path);
    let is_plain = read(&copy_path(&own))?.starts_with(SQLITE_MAGIC);
    match SectorZero::parse(&read(path)?) {
        Ok(Some(SectorZero::LayingPlain { copy_sha256, .. })) if is_plain => Some(copy_sha256),
        _ => None,
    }
}

fn record(path: &Path) -> Result<(), Failure> {
    let event = Event::new(Action::Accepted, "file at a pinned path");
    Ok(event.of(pellucid_files::paths::full_name(path)).record_here()?)
}

/// Forgets the databases that the keyring knows to lie at these paths, where no file is, and which keys they need: no rotation
/// waits for them. How far their headers had come stays. Returns how many.
fn forget(paths: &[PathBuf]) -> Result<usize, Failure> {
    let keyring = Keyring::open(&Keyring::locate()?)?;
    let mut forgotten = 0;
    for (file, memory) in keyring.each_database()? {
        let id = file.file_name().and_then(std::ffi::OsStr::to_str).and_then(parse_id);
        let is_one = memory.is_ok_and(|memory| paths.contains(&memory.path));
        if let (Some(id), true) = (id, is_one) {
            keyring.forget_database(&id)?;
            forgotten += 1;
        }
    }
    Ok(forgotten)
}

fn forget_gone(directory: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let under = std::path::absolute(directory).map_err(|error| {
        Failure::new(Id::of_system(&error), error, "look at the path").about(directory)
    })?;
    let real = under.canonicalize().unwrap_or_else(|_| under.clone());
    let keyring = Keyring::open(&Keyring::locate()?)?;
    let mut gone = Vec::new();
    for (file, pin) in keyring.each_pin()? {
        let pin = match pin {
            Ok(pin) => pin,
            Err(error) => {
                output.warning(format_args!("`{}`: left alone: {error}", file.shown()));
                continue;
            }
        };
        let is_under = pin.path.starts_with(&under) || pin.path.starts_with(&real);
        let there = pin.path.symlink_metadata();
        if is_under && there.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            gone.push(pin.path);
        }
    }
    if !gone.is_empty() {
        Event::new(Action::Accepted, "missing files at pinned paths")
            .of(under.display().to_string())
            .record_here()?;
    }
    forget(&gone)?;
    for path in &gone {
        keyring.unpin(path)?;
    }
    let number = gone.len();
    output.line(format!(
        "{}: nothing is expected any more at {number} path{} where no file is",
        directory.shown(),
        if number == 1 { "" } else { "s" }
    ));
    output.facts(&serde_json::json!({"under": name(directory), "paths": number}));
    Ok(ExitCode::SUCCESS)
}
