//! `rekey` and `rewrap`: new keys for databases that are in use.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use pellucid::hash::hex;
use pellucid::header::EncryptionState;
use pellucid::message;
use pellucid::shown::Shown;
use pellucid::Algorithm;
use pellucid_engine::protectors;
use pellucid_engine::scan;
use pellucid_engine::scan::Target;
use pellucid_keyring::Keyring;
use pellucid_vfs::pins::Expectation;
use pellucid_vfs::seal_request::Protection;

use crate::container::{begin, sealed};
use crate::exit;
use crate::key_change::{locked, ready, ready_for_protector};
use crate::keys::{certificate, only_new, OpenWith};
use crate::known::databases_under;
use crate::named;
use crate::output::{seconds, Failure, Id, Output};
use crate::scan::{go_on, ScanOptions};

/// What `rekey` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid rekey app.db\n  pellucid rekey app.db --algorithm AES_128 \
                  --background\n  pellucid rekey copy.db --new-id"
)]
pub struct RekeyArgs {
    /// Encrypted database; programs go on using it
    database: PathBuf,
    /// Cipher [default: the present one]
    #[arg(long, value_name = "NAME", ignore_case = true, value_parser = named::algorithm())]
    algorithm: Option<Algorithm>,
    /// Also give the database a new file id, for a copy: no page of the copy then opens in the original, or the reverse
    #[arg(long)]
    new_id: bool,
    #[command(flatten)]
    scan: ScanOptions,
    #[command(flatten)]
    with: OpenWith,
}

/// What `rewrap` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid rewrap app.db --certificate C2027\n  pellucid rewrap \
                  --all-under C2026 --certificate C2027"
)]
pub struct RewrapArgs {
    /// Encrypted databases to rewrap
    #[arg(value_name = "DB", required_unless_present = "all_under")]
    databases: Vec<PathBuf>,
    /// Rewrap every database that the keyring knows under this certificate
    #[arg(long, value_name = "CERTIFICATE", conflicts_with = "databases")]
    all_under: Option<String>,
    #[command(flatten)]
    new: NewProtection,
    #[command(flatten)]
    with: OpenWith,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct NewProtection {
    /// Certificate of the keyring that protects them from now on
    #[arg(long, value_name = "NAME")]
    certificate: Option<String>,
    /// File with the raw key that protects them from now on: 32 bytes or 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,
    /// File with the passphrase that protects them from now on; its last line end is not part of it. `-` reads standard
    /// input, or asks at a terminal
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,
}

impl NewProtection {
    fn protection(&self) -> Result<Protection, Failure> {
        match &self.certificate {
            Some(name) => certificate(name),
            None => only_new(self.new_key_file.as_deref(), self.new_passphrase_file.as_deref()),
        }
    }
}

/// Gives a database a new key and scans it.
pub fn rekey(args: &RekeyArgs, output: &Output) -> Result<ExitCode, Failure> {
    let algorithm = args.algorithm;
    if algorithm.is_some_and(Algorithm::is_deprecated) {
        output.warning("TRIPLE_DES_3KEY is deprecated and slow; AES_256 is the default");
    }
    ready(&args.database, &message::NO_KEY)?;
    args.scan.check(&args.with)?;
    args.with.offer()?;
    begin()?;
    if !args.new_id {
        assert_no_copies(&args.database, output)?;
    }
    new_key(&args.database, algorithm, args.new_id, output)?;
    go_on(&args.database, &args.scan, &args.with, output)
}

/// Refuses a rekey that would stop another file: one under the same key, which the keyring would retire.
fn assert_no_copies(database: &Path, output: &Output) -> Result<(), Failure> {
    let dek = sealed(database)?.header.current_dek()?.commitment;
    let copies = Expectation::copies_under(database, &dek)?;
    let Some(copy) = copies.first() else { return Ok(()) };
    let told = format!(
        "`{}` is under the same key: with a rekey here that is retired, and the other file opens no more",
        copy.shown()
    );
    let hint = "`rekey --new-id` gives a copy a key of its own and leaves the original alone; `--yes` goes on";
    let refusal = Failure::new(Id::Copies, &told, hint).about(database);
    output.confirm_or(&format!("{told}. Go on?"), refusal)
}

/// A new key for a database that was accepted, and its scan.
pub fn give_new_key(
    database: &Path,
    options: &ScanOptions,
    with: &OpenWith,
    output: &Output,
) -> Result<(), Failure> {
    ready(database, &message::NO_KEY)?;
    new_key(database, None, false, output)?;
    go_on(database, options, with, output).map(|_| ())
}

fn new_key(
    database: &Path,
    algorithm: Option<Algorithm>,
    new_id: bool,
    output: &Output,
) -> Result<(), Failure> {
    let older = sealed(database)?.header.file_id;
    let switch = if new_id { scan::rekey_as_new } else { scan::rekey };
    let header = switch(database, algorithm)
        .map_err(|error| locked(error.into(), database).about(database))?;
    let (name, algorithm) = (database.shown(), header.algorithm()?);
    if new_id {
        let id = hex(&header.file_id);
        crate::broker::let_openers_in(&older, &header.file_id)?;
        output.line(format!(
            "{name}: a new file id, {id}, and a new data encryption key, {algorithm}; when the scan is \
             complete, no page of the file it was copied from opens here, and none of these there"
        ));
    } else {
        output.line(format!(
            "{name}: a new data encryption key, {algorithm}; programs go on, their next commits are \
             under it"
        ));
    }
    Ok(())
}

/// What a policy has found due: a new key and its scan, or the rest of a scan that nobody runs.
pub fn renew(
    database: &Path,
    rekeys: bool,
    options: &ScanOptions,
    with: &OpenWith,
    output: &Output,
) -> Result<(), Failure> {
    begin()?;
    if rekeys {
        assert_no_copies(database, output)?;
        new_key(database, None, false, output)?;
    }
    go_on(database, options, with, output).map(|_| ())
}

/// Switches the encryption of a container on or off, and scans it.
pub fn set(
    database: &Path,
    target: Target,
    options: &ScanOptions,
    with: &OpenWith,
    output: &Output,
) -> Result<(), Failure> {
    let before = sealed(database)?.header.state;
    begin()?;
    scan::set(database, target).map_err(|error| Failure::from(error).about(database))?;
    let off = target == Target::Off;
    let turned = match (before, off) {
        (EncryptionState::Encrypting, true) => {
            "; the scan turns back, and opens what it has sealed so far"
        }
        (EncryptionState::Decrypting, false) => {
            "; the scan turns back, and seals what it has opened so far"
        }
        _ => "",
    };
    output.line(format!(
        "{}: what is written from now on is {}; programs go on{turned}",
        database.shown(),
        if off { "in clear" } else { "sealed" },
    ));
    go_on(database, options, with, output).map(|_| ())
}

/// Protects databases by something else; their pages are not touched.
pub fn rewrap(args: &RewrapArgs, output: &Output) -> Result<ExitCode, Failure> {
    let protection = args.new.protection()?;
    args.with.offer()?;
    begin()?;
    let mut skipped = Vec::new();
    let (databases, old): (Vec<_>, _) = match &args.all_under {
        Some(name) => {
            let keyring = Keyring::open(&Keyring::locate()?)?;
            let print = *keyring.stored_certificate(name)?.public().thumbprint();
            let (there, others): (Vec<_>, _) =
                databases_under(&keyring, &print)?.into_iter().partition(|user| user.is_there);
            skipped = others;
            (there.into_iter().map(|user| user.path).collect(), Some(print))
        }
        None => (args.databases.clone(), None),
    };
    if skipped.is_empty() && databases.is_empty() {
        output.line("no database that the keyring knows is under this certificate");
    }
    for database in &databases {
        let started = Instant::now();
        ready_for_protector(database)?;
        protectors::exchange(database, old.as_ref(), &protection)
            .map_err(|error| locked(error.into(), database).about(database))?;
        output.line(format!(
            "{}: protected anew in {}",
            database.shown(),
            seconds(started.elapsed())
        ));
        output.facts(&serde_json::json!({
            "database": crate::output::name(database), "state": "rewrapped", "seconds": started.elapsed().as_secs_f64(),
        }));
    }
    if !databases.is_empty() {
        output.warning(
            "copies and backups made before still open with what protected them: their data encryption \
             key is the same; `pellucid rekey` gives a new one",
        );
    }
    for database in skipped.iter().map(|user| &user.path) {
        output.warning(match database.as_os_str().is_empty() {
            true => {
                "a database was skipped: where it lies is not known; it needs the certificate still"
                    .to_owned()
            }
            false => format!(
                "`{}`: skipped: it is not there; it needs the certificate still",
                database.shown()
            ),
        });
        output.facts(
            &serde_json::json!({ "database": crate::output::name(database), "state": "skipped" }),
        );
    }
    Ok(match skipped.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(exit::FAILED),
    })
}
