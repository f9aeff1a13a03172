//! `init`: makes an instance, for oneself or for a machine's services.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use nix::unistd::{Gid, Group, Uid};
use pellucid::shown::Shown;
use pellucid_keyring::broker::Broker;
use pellucid_keyring::policy::{Limit, Policy};
use pellucid_keyring::{Keyring, Made};

use crate::output::{Failure, Id, Output};

/// What `init` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid init\n  sudo pellucid init --system")]
pub struct InitArgs {
    /// Create the system instance, for services: a directory that the group `pellucid` can read, named in
    /// /etc/pellucid.conf; needs root
    #[arg(long)]
    system: bool,
    /// Directory of the system instance
    #[arg(long, value_name = "DIR", default_value = "/var/lib/pellucid", requires = "system")]
    directory: PathBuf,
    /// Group of the accounts that can read it; created if it does not exist
    #[arg(long, value_name = "NAME", default_value = "pellucid", requires = "system")]
    group: String,
}

/// Makes it, or says that it is there.
pub fn run(args: &InitArgs, output: &Output) -> Result<ExitCode, Failure> {
    if args.system {
        return system(&args.directory, &args.group, output);
    }
    let home = Keyring::locate()?;
    make_keys(&home, output)?;
    output.facts(&serde_json::json!({"home": crate::output::name(&home), "system": false}));
    Ok(ExitCode::SUCCESS)
}

fn make_keys(home: &Path, output: &Output) -> Result<(), Failure> {
    let (_, made) = Keyring::open_or_create(home)?;
    say_made(&made, output);
    output.line(format!("instance  {}", home.shown()));
    Ok(())
}

fn system(home: &Path, group: &str, output: &Output) -> Result<ExitCode, Failure> {
    if !Uid::effective().is_root() {
        return Err(Failure::new(Id::NotRoot,
            "only root can make a system instance",
            "run `sudo pellucid init --system`, or leave `--system` out for an instance of your own",
        ));
    }
    let config = Keyring::config_path();
    if let Some(broker) = Broker::configured()? {
        return Err(Failure::new(
            Id::AnotherInstance,
            format!("`{}` names a broker, `{}`", config.shown(), broker.shown()),
            "the instance is there, and root's alone; `pellucid broker disable` gives it back to the group first",
        ));
    }
    if let Some(other) = Keyring::configured().filter(|other| other != home) {
        return Err(Failure::new(
            Id::AnotherInstance,
            format!("`{}` names another instance: `{}`", config.shown(), other.shown()),
            "use that instance, or change the file",
        ));
    }
    let id = group_id(group)?;
    Keyring::make_system_directories(home, id.as_raw())?;
    make_keys(home, output)?;
    let keyring = Keyring::open(home)?;
    if !keyring.policies()?.is_set(Policy::StrictPaths) {
        keyring.set_policy(Policy::StrictPaths, Some(Limit::On))?;
    }
    crate::config_file::write(home, None, output)?;
    if let Some(own) = Keyring::own().filter(|own| own != home) {
        output.warning(format_args!(
            "root has keys of its own in `{}`: from now on `PELLUCID_HOME` has to name them; `pellucid instance export` \
             and `import` bring them into this instance",
            own.shown()
        ));
    }
    output.line(format!(
        "Services open databases as members of the group `{group}`: usermod -aG {group} USER"
    ));
    output.facts(
        &serde_json::json!({"home": crate::output::name(home), "system": true, "group": group}),
    );
    Ok(ExitCode::SUCCESS)
}

/// The group's number; it is made if it is not there.
fn group_id(name: &str) -> Result<Gid, Failure> {
    let find = || Group::from_name(name).ok().flatten().map(|group| group.gid);
    if let Some(found) = find() {
        return Ok(found);
    }
    let made = Command::new("groupadd").args(["--system", name]).status();
    find().ok_or_else(|| {
        let why = made.map_or_else(|error| error.to_string(), |status| status.to_string());
        Failure::new(
            Id::GroupNotMade,
            format!("the group `{name}` cannot be made: groupadd: {why}"),
            format!("make it yourself: groupadd --system {name}"),
        )
    })
}

/// Which master keys had to be made.
pub fn say_made(made: &Made, output: &Output) {
    if let Some(path) = &made.service_master_key {
        output.line(format!("made  service master key    {}", path.shown()));
    }
    if let Some(path) = &made.database_master_key {
        output.line(format!("made  database master key   {}", path.shown()));
    }
}
