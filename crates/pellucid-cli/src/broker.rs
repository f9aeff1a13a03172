//! `broker`: opens databases for accounts that may not read the keyring.

mod serve;
mod switch;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use nix::unistd::{Uid, User};
use pellucid::hash::hex;
use pellucid::shown::Shown;
use pellucid_files::paths::original_path;
use pellucid_keyring::broker::{Asked, BackupKind, Broker, SOCKET};
use pellucid_keyring::{Account, Keyring, Pair, Role, Roles};
use pellucid_vfs::pins::parse_id;

use crate::container::sealed;
use crate::output::{table, word, Failure, Id, Output};

/// What `broker` does.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid broker allow notes /srv/notes/notes.db\n  systemctl enable --now \
                  pellucid-broker\n  pellucid broker enable"
)]
pub struct BrokerArgs {
    #[command(subcommand)]
    command: BrokerCommand,
}

#[derive(Debug, Subcommand)]
enum BrokerCommand {
    /// Let an account open databases, or have them backed up
    Allow(PairArgs),
    /// Take that back; programs that have a database open keep it until they close it
    Deny(PairArgs),
    /// List who may what
    List,
    /// Have the broker make a backup: for accounts that back up and do not read
    Backup(BackupArgs),
    /// Say where such backups go: a directory of root's
    Media(MediaArgs),
    /// Answer accounts, in the foreground: what `pellucid-broker.service` runs
    Run(SocketArgs),
    /// Have accounts ask the broker, and take the keyring away from the group; the broker has to run
    Enable(SocketArgs),
    /// Give the keyring back to the group: its members open databases themselves
    Disable,
}

#[derive(Debug, Args)]
struct PairArgs {
    /// Account of this machine
    account: String,
    /// Encrypted databases, by path or by file id (32 hexadecimal digits)
    #[arg(required = true, value_name = "DB")]
    databases: Vec<PathBuf>,
    /// Backups made by the broker, in the place of the key
    #[arg(long)]
    backup: bool,
}

impl PairArgs {
    fn role(&self) -> Role {
        match self.backup {
            true => Role::BacksUp,
            false => Role::Opens,
        }
    }
}

#[derive(Debug, Args)]
struct BackupArgs {
    /// Encrypted database
    database: PathBuf,
    /// Name of the backup in the directory that root has said: letters, digits, `.`, `_` and `-`
    #[arg(long, value_name = "NAME")]
    to: String,
    /// Back up what has changed since the full backup on the same media
    #[arg(long, conflicts_with = "log", requires = "append")]
    differential: bool,
    /// Back up the commits since the last log backup
    #[arg(long)]
    log: bool,
    /// Append to media that have backup sets
    #[arg(long)]
    append: bool,
}

#[derive(Debug, Args)]
struct MediaArgs {
    /// Directory that is root's, with all above it
    #[arg(required_unless_present = "none")]
    directory: Option<PathBuf>,
    /// No directory: no account has backups made
    #[arg(long, conflicts_with = "directory")]
    none: bool,
}

#[derive(Debug, Args)]
struct SocketArgs {
    /// Socket at which the broker answers [default: the one in /etc/pellucid.conf, else /run/pellucid/broker]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl SocketArgs {
    fn path(&self) -> Result<PathBuf, Failure> {
        match &self.socket {
            Some(socket) => Ok(socket.clone()),
            None => Ok(Broker::configured()?.unwrap_or_else(|| PathBuf::from(SOCKET))),
        }
    }
}

/// Does it.
pub fn run(args: &BrokerArgs, output: &Output) -> Result<ExitCode, Failure> {
    if let BrokerCommand::Backup(args) = &args.command {
        return back_up(args, output);
    }
    let home = home()?;
    match &args.command {
        BrokerCommand::Backup(_) => Ok(()),
        BrokerCommand::Media(args) => media(&home, args, output),
        BrokerCommand::Allow(args) => allow(&home, args, output),
        BrokerCommand::Deny(args) => deny(&home, args, output),
        BrokerCommand::List => list(&home, output),
        BrokerCommand::Run(args) => serve::run(&home, &args.path()?, output),
        BrokerCommand::Enable(args) => switch::enable(&home, &args.path()?, output),
        BrokerCommand::Disable => switch::disable(&home, output),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The machine's instance, which the caller owns.
fn home() -> Result<PathBuf, Failure> {
    let home = Keyring::locate()?;
    if Keyring::configured().as_deref() != Some(&home) {
        return Err(Failure::new(
            Id::NoInstance,
            format!(
                "`{}` is not the instance of the machine: only that one has a broker",
                home.shown()
            ),
            "make it (`sudo pellucid init --system`), or leave out `PELLUCID_HOME`",
        ));
    }
    if !Uid::effective().is_root()
        && std::fs::metadata(&home).map_or(true, |found| found.uid() != Uid::effective().as_raw())
    {
        return Err(Failure::new(
            Id::NotRoot,
            "only root says who opens what by the broker",
            "run it with `sudo`",
        ));
    }
    Ok(home)
}

fn account(name: &str) -> Result<Account, Failure> {
    match User::from_name(name) {
        Ok(Some(user)) => Ok(Account { uid: user.uid.as_raw(), name: user.name }),
        _ => Err(Failure::new(
            Id::NotFound,
            format!("there is no account `{}`", name.shown()),
            "`getent passwd` lists the accounts of this machine",
        )),
    }
}

/// A file id, or that of the database at a path. Where the keyring knows that database at another path, the file may be a copy that the
/// account has made of somebody else's.
fn file_id(keyring: &Keyring, database: &Path, output: &Output) -> Result<[u8; 16], Failure> {
    if let Some(id) = database.to_str().and_then(parse_id).filter(|_| !database.exists()) {
        return Ok(id);
    }
    let id = sealed(database)?.header.file_id;
    let known = keyring.recall_database(&id)?.map(|memory| memory.path);
    let known = known.filter(|known| !known.as_os_str().is_empty());
    if let Some(known) = known.filter(|known| *known != original_path(database)) {
        let told =
            format!("it is the database of `{}`: who opens the one opens the other", known.shown());
        let hint = "name that path, if it is meant; `--yes` goes on";
        let refusal = Failure::new(Id::Copies, &told, hint).about(database);
        output.confirm_or(&format!("{}: {told}. Go on?", database.shown()), refusal)?;
    }
    Ok(id)
}

/// The file ids that are meant by a path or a file id. What the keyring knows of the path comes first, and a link there is not followed:
/// what lies there now is somebody else's to exchange.
fn known_ids(keyring: &Keyring, database: &Path) -> Result<Vec<[u8; 16]>, Failure> {
    let named = std::path::absolute(database).unwrap_or_else(|_| database.to_owned());
    let real = named.parent().and_then(|folder| folder.canonicalize().ok());
    let real = real.zip(named.file_name()).map(|(folder, name)| folder.join(name));
    let is_it = |path: &Path| path == named || Some(path) == real.as_deref();
    let mut ids = Vec::new();
    for (entry, memory) in keyring.each_database()? {
        let id = entry.file_name().and_then(|name| parse_id(name.to_str()?));
        let memory = memory?;
        ids.extend(id.filter(|_| is_it(&memory.path)));
    }
    for (_, pin) in keyring.each_pin()? {
        let pin = pin?;
        ids.extend(Some(pin.file_id).filter(|_| is_it(&pin.path)));
    }
    if ids.is_empty() {
        ids.push(match database.to_str().and_then(parse_id) {
            Some(id) => id,
            None => sealed(database)?.header.file_id,
        });
    }
    Ok(ids)
}

fn allow(home: &Path, args: &PairArgs, output: &Output) -> Result<(), Failure> {
    let account = account(&args.account)?;
    let keyring = Keyring::open(home)?;
    let roles = keyring.roles()?;
    let mut others = roles.pairs.iter().map(|pair| &pair.account);
    if let Some(other) = others.find(|one| one.uid == account.uid && one.name != account.name) {
        return Err(Failure::new(
            Id::Misuse,
            format!(
                "the number of `{}` has roles that were given to `{}`",
                account.name.shown(),
                other.name.shown()
            ),
            format!(
                "take those first: `pellucid broker deny {} ..`; `pellucid broker list` has them",
                other.name.shown()
            ),
        ));
    }
    let ids: Vec<_> = args
        .databases
        .iter()
        .map(|one| file_id(&keyring, one, output))
        .collect::<Result<_, _>>()?;
    for (database, file_id) in args.databases.iter().zip(ids) {
        let pair = Pair { role: args.role(), account: account.clone(), file_id };
        let said = match keyring.allow(&pair)? {
            true => "from now on",
            false => "already",
        };
        tell(database, &pair, said, output);
    }
    if Broker::configured()?.is_none() {
        output.line("The broker is not in use yet: `pellucid broker enable`");
    }
    Ok(())
}

/// By the name that the account had when it was let in, or its number: it may be gone.
fn deny(home: &Path, args: &PairArgs, output: &Output) -> Result<(), Failure> {
    let keyring = Keyring::open(home)?;
    let roles = keyring.roles()?;
    let own: Vec<&Pair> =
        roles.named(&args.account).filter(|pair| pair.role == args.role()).collect();
    for database in &args.databases {
        let ids = known_ids(&keyring, database)?;
        let of_database: Vec<_> = own.iter().filter(|pair| ids.contains(&pair.file_id)).collect();
        for pair in &of_database {
            keyring.deny(pair)?;
            tell(database, pair, "no more", output);
        }
        if of_database.is_empty() {
            return Err(Failure::new(
                Id::NotFound,
                format!("`{}` has no such role with it", args.account.shown()),
                "`pellucid broker list` has all of them, with accounts, databases and file ids",
            )
            .about(database));
        }
    }
    if !args.backup {
        output.line(
            "A program that has it open keeps its key. `pellucid rekey` gives the database another one",
        );
    }
    Ok(())
}

fn tell(database: &Path, pair: &Pair, said: &str, output: &Output) {
    let name = pair.account.name.shown();
    let (does, id) = (pair.role.does(), hex(&pair.file_id));
    let sentence = match pair.role {
        Role::Opens => "opens it",
        Role::BacksUp => "backs it up",
    };
    output.line(format!("{}: `{name}` {sentence} {said} (file id {id})", database.shown()));
    output.facts(&serde_json::json!({
        "database": crate::output::name(database), "file_id": id, "account": pair.account.name,
        "uid": pair.account.uid, "role": does, "allowed": said != "no more",
        "changed": said != "already",
    }));
}

fn media(home: &Path, args: &MediaArgs, output: &Output) -> Result<(), Failure> {
    let directory = args.directory.as_deref().map(std::fs::canonicalize).transpose();
    let directory = directory.map_err(|error| {
        Failure::new(
            Id::NotFound,
            error.to_string(),
            "make the directory first: `install -d -m 755 DIRECTORY`",
        )
        .about(args.directory.as_deref().unwrap_or(home))
    })?;
    if let Some(directory) = &directory {
        pellucid_files::trusted::check(directory)?;
    }
    Keyring::open(home)?.set_backup_place(directory.as_deref())?;
    output.line(match &directory {
        Some(directory) => format!("backups for accounts go to {}", directory.shown()),
        None => "no account has backups made".to_owned(),
    });
    output.facts(&serde_json::json!({"directory": directory.as_deref().map(crate::output::name)}));
    Ok(())
}

fn back_up(args: &BackupArgs, output: &Output) -> Result<ExitCode, Failure> {
    let socket = Broker::configured()?.ok_or_else(|| {
        Failure::new(
            Id::NoInstance,
            "the machine has no broker",
            "who reads the keyring makes backups by `pellucid backup`",
        )
    })?;
    let kind = match (args.differential, args.log) {
        (true, _) => BackupKind::Differential,
        (_, true) => BackupKind::Log,
        _ => BackupKind::Full,
    };
    let asked = Asked {
        database: original_path(&args.database),
        name: args.to.clone(),
        kind,
        append: args.append,
    };
    let told = Broker::at(&socket).back_up(&asked).map_err(Failure::from)?;
    output.line(told.trim_end());
    output.facts(&serde_json::json!({
        "database": crate::output::name(&asked.database), "name": args.to, "told": told.trim_end(),
    }));
    Ok(ExitCode::SUCCESS)
}

fn list(home: &Path, output: &Output) -> Result<(), Failure> {
    let keyring = Keyring::open(home)?;
    let socket = Broker::configured()?;
    let mut rows = table(["account", "role", "database", "file id"]);
    let mut facts = Vec::new();
    let roles = keyring.roles()?;
    for pair in &roles.pairs {
        let path = keyring.recall_database(&pair.file_id)?.map(|memory| memory.path);
        let path = path.filter(|path| !path.as_os_str().is_empty());
        let shown = path.as_ref().map_or_else(|| "?".to_owned(), |path| path.shown().to_string());
        let role = pair.role.does();
        // A role waits for the account to come back, or to be taken away.
        let is_gone = account(&pair.account.name).map_or(true, |there| there != pair.account);
        let name = pair.account.name.shown();
        let name = if is_gone { format!("{name} (gone)") } else { name.to_string() };
        rows.add_row([name, role.to_owned(), shown, hex(&pair.file_id)]);
        facts.push(serde_json::json!({
            "account": pair.account.name, "uid": pair.account.uid, "role": pair.role.does(),
            "database": path.as_deref().map(crate::output::name), "file_id": hex(&pair.file_id),
        }));
    }
    match roles.pairs.is_empty() {
        true => output.line("no account has anything from the broker"),
        false => output.line(rows),
    }
    let told = match &socket {
        Some(socket) => format!("Accounts ask the broker at {}", socket.shown()),
        None => "The broker is not in use: members of the group read the keyring (`pellucid broker enable`)".to_owned(),
    };
    output.line(told);
    if let Some(place) = &roles.place {
        output.line(format!("Backups for accounts go to {}", place.shown()));
    }
    output.facts(&serde_json::json!({
        "roles": facts, "socket": socket.as_deref().map(crate::output::name),
        "media": roles.place.as_deref().map(crate::output::name),
    }));
    Ok(())
}

/// Lets the owner of a database that is about to be encrypted open it, where accounts ask a broker.
pub fn let_owner_in(database: &Path, file_id: &[u8; 16], output: &Output) -> pellucid::Result<()> {
    let home = Keyring::locate()?;
    let Some(owner) = owner_elsewhere(database, &home)? else { return Ok(()) };
    let pair = Pair { role: Role::Opens, account: owner, file_id: *file_id };
    if Keyring::open(&home)?.allow(&pair)? {
        output.line(format!(
            "{}: its owner, `{}`, opens it by the broker",
            database.shown(),
            pair.account.name.shown()
        ));
    }
    Ok(())
}

/// Whoever opens the database by the broker opens it under its new file id, too.
pub fn let_openers_in(older: &[u8; 16], newer: &[u8; 16]) -> pellucid::Result<()> {
    let home = Keyring::locate()?;
    let is_machines = Keyring::configured().as_deref() == Some(&home);
    // Another account than root changes no role, and had another key than a certificate's for the rekey.
    match is_machines && Broker::configured()?.is_some() && Broker::of(&home)?.is_none() {
        true => Keyring::open(&home)?.allow_as(older, newer),
        false => Ok(()),
    }
}

/// The owner of a database, if that is an account which asks the broker.
fn owner_elsewhere(database: &Path, home: &Path) -> pellucid::Result<Option<Account>> {
    if Broker::configured()?.is_none() || Keyring::configured().as_deref() != Some(home) {
        return Ok(None);
    }
    let Ok(found) = std::fs::metadata(database) else { return Ok(None) };
    let uid = Uid::from_raw(found.uid());
    if uid == Uid::effective() || uid.is_root() {
        return Ok(None);
    }
    let user = User::from_uid(uid).ok().flatten();
    Ok(user.map(|user| Account { uid: uid.as_raw(), name: user.name }))
}

/// Databases that the keyring knows and whose owner would not open them by the broker, with the command that lets it in.
fn locked_out(keyring: &Keyring, roles: &Roles) -> pellucid::Result<Vec<String>> {
    let mut told = Vec::new();
    for (entry, memory) in keyring.each_database()? {
        let Ok(memory) = memory else { continue };
        let id = entry.file_name().and_then(|name| parse_id(name.to_str()?));
        let (Some(id), Ok(found)) = (id, std::fs::metadata(&memory.path)) else { continue };
        let owner = Uid::from_raw(found.uid());
        let user = User::from_uid(owner).ok().flatten().filter(|_| !owner.is_root());
        let Some(user) = user else { continue };
        let account = Account { uid: owner.as_raw(), name: user.name };
        if memory.sealed && !roles.has(Role::Opens, &account, &id) {
            told.push(format!("pellucid broker allow {} {}", account.name, word(&memory.path)));
        }
    }
    Ok(told)
}
