//! `/etc/pellucid.conf`: the file by which every account finds the system instance, and its broker.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pellucid::shown::Shown;
use pellucid_keyring::Keyring;

use crate::output::{Failure, Id, Output};

/// Writes it, whole or not at all, and waits until it is on disk: what is closed next is closed to nobody who has not read it. Lines of
/// other meaning stay.
pub fn write(home: &Path, broker: Option<&Path>, output: &Output) -> Result<(), Failure> {
    let config = Keyring::config_path();
    let written = (|| {
        let known = match std::fs::read_to_string(&config) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            known => known?,
        };
        let is_own = |line: &&str| {
            let key = line.split('=').next().map(str::trim);
            !matches!(key, Some("home" | "broker"))
        };
        let mut text: String =
            known.lines().filter(is_own).map(|line| format!("{line}\n")).collect();
        text += &format!("home = {}\n", home.display());
        if let Some(broker) = broker {
            text += &format!("broker = {}\n", broker.display());
        }
        let new = config.with_extension("new");
        let mut file = std::fs::File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(PermissionsExt::from_mode(0o644))?;
        file.sync_all()?;
        std::fs::rename(&new, &config)?;
        let directory = config.parent().filter(|parent| !parent.as_os_str().is_empty());
        std::fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    })();
    written.map_err(|error: std::io::Error| {
        Failure::new(
            Id::ConfigNotWritten,
            format!("`{}`: {error}", config.shown()),
            "every account finds the system instance by this file: look at its permissions",
        )
    })?;
    output.line(format!("wrote     {}", config.shown()));
    Ok(())
}
