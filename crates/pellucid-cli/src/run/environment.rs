//! The environment that carries the shim into the program and its children.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use super::refusal::Refusal;
use super::RunArgs;

/// `LD_PRELOAD` with the library in front of what is there already.
///
/// # Errors
/// [`Refusal::Unpreloadable`] if the dynamic linker would take the path apart (ld.so(8): list separators, and `$`
/// begins a token such as `$ORIGIN`).
pub fn preload(library: &Path) -> Result<OsString, Refusal> {
    let path = library.as_os_str();
    if path.as_bytes().iter().any(|byte| matches!(byte, b':' | b'$') || byte.is_ascii_whitespace())
    {
        return Err(Refusal::Unpreloadable(library.to_owned()));
    }
    let mut value = path.to_owned();
    if let Some(present) = std::env::var_os("LD_PRELOAD") {
        for other in present.as_bytes().split(|byte| matches!(byte, b':' | b' ')) {
            if !other.is_empty() && other != path.as_bytes() {
                value.push(":");
                value.push(OsStr::from_bytes(other));
            }
        }
    }
    Ok(value)
}

/// Gives `command` its environment.
pub fn set(command: &mut Command, preload: OsString, args: &RunArgs, eager: bool) {
    command.env("LD_PRELOAD", preload);
    command.env("PELLUCID_PRELOAD", if eager { "eager" } else { "1" });
    if std::env::var_os("PELLUCID_LOG").is_none() {
        command.env("PELLUCID_LOG", "stderr");
    }
    if args.encrypt_new {
        command.env("PELLUCID_ENCRYPT_NEW", "1");
    }
    if pellucid_keyring::is_cost_allowed() {
        command.env(pellucid_keyring::ALLOW_COST, "1");
    }
    if args.require_sealed {
        command.env("PELLUCID_REQUIRE", "1");
    }
    if args.plain_copies {
        command.env("PELLUCID_PLAIN_COPIES", "1");
    }
}
