//! `encrypt` and `decrypt`.

mod foreign;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use pellucid::hash::hex;
use pellucid::header::EncryptionState;
use pellucid::message;
use pellucid::shown::Shown;
use pellucid::{Algorithm, Error};
use pellucid_engine::convert::{decrypt as open_for_good, encrypt as seal, Stage};
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_engine::scan::Target;
use pellucid_host::{ffi, DatabaseError, Options};
use pellucid_keyring::Keyring;
use pellucid_vfs::seal_request::{Birth, Protection};

use crate::container::{interrupted, not_a_database, refuse_unexpected, tell_of_mount};
use crate::init::say_made;
use crate::interrupted;
use crate::key_change::{ready, writable};
use crate::key_place;
use crate::keys::{certificate, Keys, OpenWith};
use crate::named;
use crate::output::{bytes, date, seconds, word, Failure, Id, Output, Unit};
use crate::rekey;
use crate::scan::ScanOptions;
use crate::seems::seems;

/// What `encrypt` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid encrypt app.db\n  pellucid encrypt app.db --key-file \
                        app.key --algorithm AES_128\n  pellucid encrypt old.db --from sqlcipher \
                        --passphrase-file - --to new.db"
)]
pub struct EncryptArgs {
    /// Plain databases to encrypt
    #[arg(required = true, value_name = "DB")]
    databases: Vec<PathBuf>,
    /// Certificate of the keyring that protects the databases. If none is named and the keyring has none, one is made
    #[arg(long, value_name = "NAME")]
    certificate: Option<String>,
    #[command(flatten)]
    with: OpenWith,
    /// Cipher
    #[arg(long, value_name = "NAME", default_value = "AES_256", ignore_case = true, value_parser = named::algorithm())]
    algorithm: Algorithm,
    /// Run the scan in the background. Only for a database whose encryption is switched on again
    #[arg(long)]
    background: bool,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    from: foreign::FromArgs,
}

/// What `decrypt` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid decrypt app.db")]
pub struct DecryptArgs {
    /// Encrypted databases to decrypt
    #[arg(required = true, value_name = "DB")]
    databases: Vec<PathBuf>,
    /// Decrypt the pages while programs use the database, and keep the container; `encrypt` switches encryption on again
    #[arg(long)]
    keep_container: bool,
    /// Run the scan in the background; `pellucid scan status` shows how far it is
    #[arg(long, requires = "keep_container")]
    background: bool,
    #[command(flatten)]
    with: OpenWith,
    #[command(flatten)]
    waiting: Waiting,
}

#[derive(Debug, Args)]
struct Waiting {
    /// Seconds to wait for locks of other connections [default: 10; for a scan, during which programs go on: 60]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// SQLite extension with the collations and functions that the schema needs
    #[arg(long, value_name = "FILE")]
    load: Vec<PathBuf>,
}

impl Waiting {
    fn options(&self) -> Options<'static> {
        Options::new(Duration::from_secs(self.timeout.unwrap_or(10)), self.load.clone())
    }

    fn of_scan(&self, background: bool) -> ScanOptions {
        ScanOptions::plain(background, self.timeout)
    }
}

/// Encrypts each database.
pub fn encrypt(args: &EncryptArgs, output: &Output) -> Result<ExitCode, Failure> {
    let algorithm = args.algorithm;
    if algorithm.is_deprecated() {
        output.warning(format!("{algorithm} is deprecated and slow; AES_256 is the default"));
    }
    if let Some(done) = foreign::run(args, output)? {
        return Ok(done);
    }
    let options = args.waiting.of_scan(args.background);
    options.check(&args.with)?;
    let (mut plain, mut switched_off) = (Vec::new(), Vec::new());
    for database in &args.databases {
        match found(database)? {
            Found::Plain if args.background => return Err(Failure::new(
                Id::NotInBackground,
                "a first encryption rewrites the whole database and cannot run in the background",
                "leave out `--background`",
            )
            .about(database)),
            Found::Plain => plain.push(database),
            Found::SwitchedOff => switched_off.push(database),
        }
        writable(database)?;
        tell_of_mount(database, output);
    }
    let keys = args.with.read(!plain.is_empty())?;
    if !switched_off.is_empty() {
        keys.offer();
    }
    for database in switched_off {
        rekey::set(database, Target::On(algorithm), &options, &args.with, output)?;
    }
    if plain.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let other_key = args.with.key_file.is_some() || args.with.passphrase_file.is_some();
    if args.certificate.is_some() || !other_key {
        let home = Keyring::locate()?;
        for database in &plain {
            crate::owner::check(database, &home).map_err(|failure| failure.about(database))?;
        }
    }
    let protections = protections(args, keys)?;
    let mut is_made = false;
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    for database in plain {
        let mut birth = || {
            let is_default =
                protections.iter().any(|one| matches!(one, Protection::Certificate(None)));
            if is_default && !std::mem::replace(&mut is_made, true) {
                make_default_certificate(output)?;
            }
            let birth = Birth::new(algorithm, &protections)?;
            if has_certificate(&protections) {
                crate::broker::let_owner_in(database, birth.file_id(), output)?;
            }
            Ok(birth)
        };
        encrypt_one(database, &mut birth, &protections, args, output).map_err(|failure| {
            let keyring = Keyring::locate().map(|home| format!("`{}", home.shown()));
            // What is wrong with the keyring is not about the database.
            match keyring.is_ok_and(|keyring| failure.message.starts_with(&keyring)) {
                true => failure,
                false => failure.about(database),
            }
        })?;
    }
    warn_about_backup(&protections, output)?;
    tell_of_key(&args.databases, &protections, output)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a certificate of the keyring is to open it.
fn has_certificate(protections: &[Protection]) -> bool {
    protections.iter().any(|one| matches!(one, Protection::Certificate(_)))
}

/// What can be encrypted.
enum Found {
    Plain,
    /// A container whose encryption was switched off.
    SwitchedOff,
}

fn found(database: &Path) -> Result<Found, Failure> {
    match inspect(database)?.kind {
        // A header in clear, and no plain database behind it.
        Kind::Plain if seems(database).is_some() => Err(not_a_database(database)),
        Kind::Plain => Ok(Found::Plain),
        Kind::Sealed(sealed) if sealed.header.is_switched_off() => Ok(Found::SwitchedOff),
        Kind::Sealed(sealed) => Err(match sealed.header.state {
            EncryptionState::KeyChange => {
                Error::message(message::STATE_DURING_SCAN, "enable").into()
            }
            _ => Failure::from(Error::message(message::ON_ALREADY, "")).called(Id::Sealed),
        }),
        Kind::Empty => Err(Failure::new(
            Id::Empty,
            "it is empty: there is nothing to encrypt",
            "`pellucid run --encrypt-new` makes new databases encrypted from the start",
        )),
        Kind::Unfinished => Err(interrupted().tells(&message::READ_ONLY, "")),
        Kind::Damaged(error) => Err(Failure::of_header(error)),
        _ => Err(not_a_database(database)),
    }
    .map_err(|failure| failure.about(database))
}

/// What the DEKs are wrapped with; the default certificate where nothing is named.
fn protections(args: &EncryptArgs, keys: Keys) -> Result<Vec<Protection>, Failure> {
    let mut protections = keys.protections();
    if let Some(name) = &args.certificate {
        protections.push(certificate(name)?);
    }
    if protections.is_empty() {
        protections.push(Protection::Certificate(None));
    }
    Ok(protections)
}

/// Makes a keyring and a certificate where there is none.
fn make_default_certificate(output: &Output) -> pellucid::Result<()> {
    let (keyring, made) = Keyring::open_or_create(&Keyring::locate()?)?;
    say_made(&made, output);
    let (certificate, fresh) = keyring.ensure_default_certificate()?;
    if fresh {
        let public = certificate.public();
        output.line(format!(
            "made  certificate `{}`    {} (RSA-{}, valid to {}, SHA-256 thumbprint {})",
            public.name(),
            keyring.home().join("keyring/certificates").join(public.name()).shown(),
            public.rsa_bits(),
            date(public.validity().1),
            hex(public.thumbprint()),
        ));
    }
    Ok(())
}

fn encrypt_one(
    database: &Path,
    birth: &mut dyn FnMut() -> Result<Birth, DatabaseError>,
    protections: &[Protection],
    args: &EncryptArgs,
    output: &Output,
) -> Result<(), Failure> {
    let started = Instant::now();
    let algorithm = args.algorithm;
    let bar = output.progress("", Unit::Bytes);
    let options = args.waiting.options();
    say_if_interrupted(database, Stage::Copying);
    let file_id = seal::encrypt(database, birth, &options, &mut |stage, done, all| {
        bar.set_message(stage_name(stage, "encrypting"));
        say_if_interrupted(database, stage);
        bar.set_length(all.max(done));
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    let size = std::fs::metadata(database).map_or(0, |metadata| metadata.len());
    let under: Vec<String> = protections.iter().map(describe).collect();
    output.line(format!(
        "{}: encrypted, {algorithm} under {}, {} in {}",
        database.shown(),
        under.join(" and "),
        bytes(size),
        seconds(started.elapsed()),
    ));
    output.facts(&serde_json::json!({
        "database": crate::output::name(database), "state": "encrypted", "algorithm": algorithm.name(),
        "protectors": under, "bytes": size, "file_id": hex(&file_id),
        "seconds": started.elapsed().as_secs_f64(),
    }));
    Ok(())
}

fn stage_name(stage: Stage, verb: &str) -> String {
    match stage {
        Stage::Copying => format!("{verb} beside the file"),
        Stage::Laying => "laying it over the file".to_owned(),
    }
}

/// What is told on Ctrl-C.
fn say_if_interrupted(database: &Path, stage: Stage) {
    let name = database.shown();
    match stage {
        Stage::Copying => interrupted::answer_with(format_args!("`{name}` is as it was")),
        Stage::Laying => interrupted::answer_with(format_args!(
            "`{name}` is whole: the next program that opens it through pellucid finishes the work, as `pellucid check {}` does",
            word(database)
        )),
    }
}

fn describe(protection: &Protection) -> String {
    match protection {
        Protection::Certificate(name) => {
            let name = name.as_deref().unwrap_or(pellucid_keyring::DEFAULT_CERTIFICATE);
            format!("certificate `{name}`")
        }
        Protection::Recovery(public) => format!("recovery certificate `{}`", public.name()),
        Protection::KeyFile(_) => "a key file".to_owned(),
        Protection::Passphrase(_) => "a passphrase".to_owned(),
    }
}

fn warn_about_backup(protections: &[Protection], output: &Output) -> Result<(), Failure> {
    for protection in protections {
        let Protection::Certificate(name) = protection else { continue };
        let keyring = Keyring::open(&Keyring::locate()?)?;
        let name = name.as_deref().unwrap_or(pellucid_keyring::DEFAULT_CERTIFICATE);
        if keyring.certificate(name)?.needs_backup() {
            output.message(&message::NOT_BACKED_UP);
            output.line(format!(
                "To back it up: pellucid cert export {name} --cert-file {name}.pem --key-file \
                 {name}.key --password-file -"
            ));
        }
    }
    Ok(())
}

/// Where the keys lie, for somebody who encrypts because of stolen disks.
fn tell_of_key(
    databases: &[PathBuf],
    under: &[Protection],
    output: &Output,
) -> Result<(), Failure> {
    if has_certificate(under) {
        let databases = databases.iter().map(PathBuf::as_path);
        if let Some(advice) = key_place::advice(&Keyring::locate()?, databases) {
            output.line(format!("Advice: {advice}; {}", key_place::INSTEAD));
        }
    }
    Ok(())
}

/// There is nothing to decrypt.
fn not_encrypted() -> Failure {
    Failure::new(Id::Plain, "it is not encrypted", "see `pellucid status`")
        .tells(&message::NO_KEY_SET, "")
}

/// Decrypts each database.
pub fn decrypt(args: &DecryptArgs, output: &Output) -> Result<ExitCode, Failure> {
    let options = args.waiting.of_scan(args.background);
    options.check(&args.with)?;
    args.with.offer()?;
    if args.keep_container {
        for database in &args.databases {
            ready(database, &message::NO_KEY_SET)?;
            rekey::set(database, Target::Off, &options, &args.with, output)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    for database in &args.databases {
        let found = inspect(database)?.kind;
        refuse_unexpected(database, &found)?;
        match found {
            Kind::Sealed(_) | Kind::Unfinished => Ok(()),
            Kind::Plain => Err(not_encrypted()),
            Kind::Empty => Err(Failure::new(
                Id::Empty,
                "it is empty: there is nothing to decrypt",
                "look at the path",
            )),
            Kind::Damaged(error) => Err(Failure::of_header(error)),
            _ => Err(not_a_database(database)),
        }
        .map_err(|failure: Failure| failure.about(database))?;
        writable(database)?;
        tell_of_mount(database, output);
    }
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    for database in &args.databases {
        let started = Instant::now();
        let bar = output.progress("", Unit::Bytes);
        say_if_interrupted(database, Stage::Copying);
        open_for_good::decrypt(database, &args.waiting.options(), &mut |stage, done, all| {
            bar.set_message(stage_name(stage, "decrypting"));
            say_if_interrupted(database, stage);
            bar.set_length(all.max(done));
            bar.set_position(done);
        })
        .map_err(|error| {
            let now = inspect(database).map(|found| found.kind);
            let failure = match (error, now) {
                // Another process has opened what an interrupted decryption left, and so finished it.
                (
                    DatabaseError::Typed(Error::Misuse { .. })
                    | DatabaseError::Sqlite { code: ffi::PERM, .. },
                    Ok(Kind::Plain),
                ) => not_encrypted(),
                (error, _) => Failure::from(error),
            };
            failure.about(database)
        })?;
        bar.finish_and_clear();
        let size = std::fs::metadata(database).map_or(0, |metadata| metadata.len());
        output.line(format!(
            "{}: decrypted, {} in {}",
            database.shown(),
            bytes(size),
            seconds(started.elapsed())
        ));
        output.facts(&serde_json::json!({
            "database": crate::output::name(database), "state": "plain", "bytes": size,
            "seconds": started.elapsed().as_secs_f64(),
        }));
    }
    Ok(ExitCode::SUCCESS)
}
