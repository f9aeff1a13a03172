//! From a keyring that the group reads to a broker, and back.

use std::path::Path;

use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_keyring::broker::Broker;
use pellucid_keyring::Keyring;

use super::locked_out;
use crate::config_file;
use crate::output::{Failure, Id, Output};

/// The broker answers before anybody has to ask it, and accounts ask it before the keyring is closed to them.
pub fn enable(home: &Path, socket: &Path, output: &Output) -> Result<(), Failure> {
    let start =
        "start it first: `systemctl enable --now pellucid-broker`, or `pellucid broker run`";
    let served = match socket.is_absolute() {
        true => Broker::at(socket).answers(),
        false => Err(Error::misuse(
            Subject::Option("--socket".into()),
            "has to be an absolute path: accounts look for it from wherever they are",
        )),
    };
    let served = served.map_err(|error| Failure::new(Id::CannotOpen, error.to_string(), start))?;
    if served != home {
        let told = format!("the broker at `{}` answers for `{}`", socket.shown(), served.shown());
        return Err(Failure::new(Id::AnotherInstance, told, start));
    }
    let keyring = Keyring::open(home)?;
    let roles = keyring.roles()?;
    let locked_out = locked_out(&keyring, &roles)?;
    if let Some(first) = locked_out.first() {
        let told = format!("owners of {} databases would open them no more", locked_out.len());
        for command in &locked_out {
            output.warning(format!("the owner of a database does not open it: `{command}`"));
        }
        let refusal = Failure::new(Id::OwnerLockedOut, &told, format!("`{first}`; or `--yes`"));
        output.confirm_or(&format!("{told}. Go on?"), refusal)?;
    }
    config_file::write(home, Some(socket), output)?;
    Keyring::close_to_group(home)?;
    output.line(format!("{}: root's alone from now on", home.shown()));
    output.line(format!("who may what: {}, `pellucid broker list`", roles.pairs.len()));
    output.facts(&serde_json::json!({"socket": crate::output::name(socket), "enabled": true}));
    Ok(())
}

/// Accounts read the keyring before they stop asking the broker.
pub fn disable(home: &Path, output: &Output) -> Result<(), Failure> {
    if Broker::configured()?.is_none() {
        return Err(Failure::new(
            Id::NoInstance,
            format!("`{}` names no broker", Keyring::config_path().shown()),
            "there is nothing to give back to the group",
        ));
    }
    let group = Keyring::open_to_group(home)?;
    config_file::write(home, None, output)?;
    output.line(format!("{}: read by its group again", home.shown()));
    output.facts(&serde_json::json!({"socket": null, "enabled": false, "gid": group}));
    Ok(())
}
