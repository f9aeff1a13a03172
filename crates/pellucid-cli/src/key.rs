//! `key`: the two master keys of the instance.

mod bind;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use pellucid::message;
use pellucid::protector::Passphrase;
use pellucid::secret::Secret32;
use pellucid::shown::Shown;
use pellucid::Error;
use pellucid_keyring::{back_up_service_key, read_key_backup, Change, Keyring, Lost, MasterKey};

use crate::keys::passphrase;
use crate::output::{Failure, Id, Output};

/// What `key` does.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid key backup master --file master.backup --password-file -\n  \
                  pellucid key regenerate service\n  \
                  pellucid key bind --passphrase-file /media/stick/passphrase"
)]
pub struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Show the master keys and what opens them
    Status,
    /// Back up a master key to a new file, encrypted with a password
    Backup(BackupArgs),
    /// Restore a master key from its backup, and reseal everything below it
    Restore(RestoreArgs),
    /// Make a new master key, and reseal everything below it
    Regenerate(RegenerateArgs),
    /// Add or drop a password of the database master key
    Password(PasswordArgs),
    /// Let the service master key open the database master key again; needs its password
    Open(PasswordFile),
    /// Let only passwords open the database master key; nothing below it opens until `key open`
    Close,
    /// Bind the service master key elsewhere than beside the databases: to a passphrase, or to this machine
    Bind(bind::BindArgs),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Which {
    /// The service master key, the root of the instance
    Service,
    /// The database master key, which seals the certificates
    Master,
}

impl Which {
    fn name(self) -> &'static str {
        self.kind().name()
    }

    fn kind(self) -> MasterKey {
        match self {
            Which::Service => MasterKey::Service,
            Which::Master => MasterKey::Database,
        }
    }
}

#[derive(Debug, Args)]
struct BackupArgs {
    /// Which master key
    which: Which,
    /// File of the backup; `backup` never overwrites an existing file
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// File with the password; its last line end is not part of it. `-` reads standard input, or asks at a terminal
    #[arg(long, value_name = "FILE")]
    password_file: PathBuf,
}

#[derive(Debug, Args)]
struct RestoreArgs {
    #[command(flatten)]
    backup: BackupArgs,
    /// Go on even if something cannot be opened afterwards; says what
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct RegenerateArgs {
    /// Which master key
    which: Which,
    /// Go on even if something cannot be opened afterwards; says what
    #[arg(long)]
    force: bool,
    /// For the database master key: file with the password that opens it from now on; old passwords are removed
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct PasswordArgs {
    #[command(subcommand)]
    command: PasswordCommand,
}

#[derive(Debug, Subcommand)]
enum PasswordCommand {
    /// Add a password that opens the database master key
    Add(PasswordFile),
    /// Drop a password of the database master key
    Drop(PasswordFile),
}

#[derive(Debug, Args)]
struct PasswordFile {
    /// File with the password; its last line end is not part of it. `-` reads standard input, or asks at a terminal
    #[arg(long, value_name = "FILE")]
    password_file: PathBuf,
}

/// Does it.
pub fn run(args: &KeyArgs, output: &Output) -> Result<ExitCode, Failure> {
    let home = Keyring::locate()?;
    match &args.command {
        KeyCommand::Status => status(&home, output),
        KeyCommand::Backup(args) => backup(&home, args, output),
        KeyCommand::Restore(args) => restore(&home, args, output),
        KeyCommand::Regenerate(args) => regenerate(&home, args, output),
        KeyCommand::Password(args) => password(&home, args, output),
        KeyCommand::Open(args) => open(&home, args, output),
        KeyCommand::Close => close(&home, output),
        KeyCommand::Bind(args) => bind::run(&home, args, output),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn status(home: &Path, output: &Output) -> Result<(), Failure> {
    let found = Keyring::describe(home)?;
    let yes = |present| if present { "there" } else { "MISSING" };
    output.line(format!("instance              {}", home.shown()));
    output.line(format!(
        "service master key    {}",
        match &found.service_key {
            Some(source) => format!("{} ({source})", yes(true)),
            None => yes(false).to_owned(),
        }
    ));
    output.line(format!(
        "database master key   {}, opened by {}",
        yes(found.exists()),
        found.opened_by()
    ));
    output.line(format!("certificates          {}", found.certificates));
    output.facts(&serde_json::json!({
        "home": crate::output::name(home), "service_master_key": found.service_key.map(|source| source.to_string()),
        "encrypted_by_service_master_key": found.encrypted_by_service_key,
        "passwords": found.passwords, "certificates": found.certificates,
    }));
    Ok(())
}

fn backup(home: &Path, args: &BackupArgs, output: &Output) -> Result<(), Failure> {
    let password = passphrase(&args.password_file, true)?;
    match args.which {
        Which::Service => back_up_service_key(home, &args.file, &password)?,
        Which::Master => Keyring::open(home)?.back_up_database_key(&args.file, &password)?,
    }
    output.line(format!("wrote  {}   {}", args.which.name(), args.file.shown()));
    output.facts(
        &serde_json::json!({"key": args.which.name(), "file": crate::output::name(&args.file)}),
    );
    Ok(())
}

fn restore(home: &Path, args: &RestoreArgs, output: &Output) -> Result<(), Failure> {
    let which = args.backup.which;
    let password = passphrase(&args.backup.password_file, false)?;
    let key = read_key_backup(which.kind(), &args.backup.file, &password)
        .map_err(|error| Failure::from(error).about(&args.backup.file))?;
    Keyring::make_directories(home)?;
    let change = Change::begin(home)?;
    match which {
        Which::Service => {
            warn_about_service_key(home, Some(&key), args.force, output)?;
            change.replace_service_key(Some(key), args.force)?;
        }
        Which::Master => {
            let present = present(home)?;
            let lost = change.would_lose(present.as_ref(), Some(&key))?;
            warn_about(&lost, args.force, output)?;
            change.replace_database_key(present.as_ref(), Some(key), None, args.force)?;
        }
    }
    say(which, "restored", output);
    Ok(())
}

fn regenerate(home: &Path, args: &RegenerateArgs, output: &Output) -> Result<(), Failure> {
    let change = Change::begin(home)?;
    match args.which {
        Which::Service => {
            if args.password_file.is_some() {
                return Err(Failure::new(
                    Id::PasswordNotTaken,
                    "the service master key has no password",
                    "leave `--password-file` out",
                ));
            }
            warn_about_service_key(home, None, args.force, output)?;
            change.replace_service_key(None, args.force)?;
        }
        Which::Master => {
            let password =
                args.password_file.as_deref().map(|path| passphrase(path, true)).transpose()?;
            let present = present(home)?;
            if present.is_none() && !args.force {
                return Err(Error::message(message::CURRENT_KEY_UNREADABLE, "").into());
            }
            let lost = change.would_lose(present.as_ref(), None)?;
            warn_about(&lost, args.force, output)?;
            change.replace_database_key(present.as_ref(), None, password.as_ref(), args.force)?;
        }
    }
    say(args.which, "regenerated", output);
    Ok(())
}

/// Before FORCE: what is lost by it.
fn warn_about(lost: &Lost, force: bool, output: &Output) -> Result<(), Failure> {
    if lost.is_empty() || !force {
        return Ok(());
    }
    for path in lost {
        output
            .warning(format!("`{}` will be lost: the present key does not open it", path.shown()));
    }
    output.confirm("Lose it for good?")
}

/// Before FORCE: without the present service master key the database master key opens by its passwords only.
fn warn_about_service_key(
    home: &Path,
    next: Option<&Secret32>,
    force: bool,
    output: &Output,
) -> Result<(), Failure> {
    if !force || Keyring::opens_by_service_key(home, next)? {
        return Ok(());
    }
    let found = Keyring::describe(home)?;
    output.warning(match (found.exists(), found.passwords) {
        (false, _) => return Ok(()),
        (true, 0) => {
            "the database master key will be lost, and every certificate under it: it does not open \
             under the present service master key and has no password"
        }
        _ => "the database master key will open by its passwords only",
    });
    output.confirm("Go on?")
}

/// The present database master key; none if it is lost or does not open.
fn present(home: &Path) -> Result<Option<Keyring>, Failure> {
    match Keyring::open(home) {
        Ok(keyring) => Ok(Some(keyring)),
        Err(error @ Error::Io { .. }) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

fn say(which: Which, what: &str, output: &Output) {
    output.line(format!("{what}  {}; everything below is sealed under it", which.name()));
    output.facts(&serde_json::json!({"key": which.name(), "done": what}));
}

fn password(home: &Path, args: &PasswordArgs, output: &Output) -> Result<(), Failure> {
    let change = Change::begin(home)?;
    let done = match &args.command {
        PasswordCommand::Add(args) => {
            let password: Passphrase = passphrase(&args.password_file, true)?;
            change.add_password(&Keyring::open(home)?, &password)?;
            "added"
        }
        PasswordCommand::Drop(args) => {
            change.drop_password(&passphrase(&args.password_file, false)?)?;
            "dropped"
        }
    };
    output.line(format!("{done}  a password of the database master key"));
    output.facts(&serde_json::json!({"password": done}));
    Ok(())
}

fn open(home: &Path, args: &PasswordFile, output: &Output) -> Result<(), Failure> {
    let change = Change::begin(home)?;
    let keyring = Keyring::open_by_password(home, &passphrase(&args.password_file, false)?)?;
    change.add_service_encryption(&keyring)?;
    output.line("opened  the database master key: it opens by itself from now on");
    output.facts(&serde_json::json!({"key": Which::Master.name(), "done": "opened"}));
    Ok(())
}

fn close(home: &Path, output: &Output) -> Result<(), Failure> {
    let change = Change::begin(home)?;
    change.drop_service_encryption(&Keyring::open(home)?)?;
    output.line("closed  the database master key: only its passwords open it from now on");
    output.facts(&serde_json::json!({"key": Which::Master.name(), "done": "closed"}));
    Ok(())
}
