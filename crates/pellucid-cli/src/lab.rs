//! `pellucid lab`: hands over to the lab's program, which measures what encryption costs on this machine.
//!
//! All that follows the word is the lab's, `--help` too: it is taken before the arguments are read, and the program takes
//! this one's place, with its environment.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pellucid::shown::Shown;

use crate::exit;
use crate::extension;
use crate::output::{Failure, Id};

const NAME: &str = "lab";
/// From the directory of this program.
const INSTALLED: &str = "../lib/pellucid";

/// Measure what encryption costs here: quick, full, report and more
///
/// Starts the lab, a separate program, with the arguments that follow; `pellucid lab --help` is its help. The lab is
/// beside this program after a build, and in ../lib/pellucid from there after an installation.
///
/// Examples: `pellucid lab quick`, `pellucid lab full --estimate`
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct LabArgs {
    /// Arguments of the lab
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// The lab's arguments, if `arguments` of this program, without its name, are for the lab.
pub fn arguments(mut arguments: impl Iterator<Item = OsString>) -> Option<Vec<OsString>> {
    (arguments.next()? == NAME).then(|| arguments.collect())
}

/// For a line on which options of this program come before the word.
pub fn refuse(_: &LabArgs) -> Failure {
    let message = "the lab has options of its own, and they come behind its word";
    Failure {
        exit: exit::USAGE,
        ..Failure::new(Id::LabArguments, message, "`pellucid lab --help`")
    }
}

/// Becomes the lab; comes back only if that cannot be.
pub fn hand_over(arguments: &[OsString]) -> Failure {
    let program = match locate() {
        Ok(program) => program,
        Err(failure) => return failure,
    };
    let error = Command::new(&program).args(arguments).exec();
    Failure::new(
        Id::LabNotStarted,
        format!("`{}` could not be started: {error}", program.shown()),
        "install or build it again",
    )
}

/// Beside this program only where the library is too: elsewhere any program may have that name.
fn locate() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().and_then(|path| path.canonicalize());
    let directory = own.as_deref().ok().and_then(Path::parent).unwrap_or(Path::new("/"));
    let built = directory.join(NAME);
    let installed = directory.join(INSTALLED).join(NAME);
    let found = match built.is_file() && directory.join(extension::FILE_NAME).is_file() {
        true => Some(built.clone()),
        false => installed.canonicalize().ok().filter(|path| path.is_file()),
    };
    let Some(found) = found else {
        return Err(Failure::new(Id::LabMissing,
            format!("the lab's program `{NAME}` was not found"),
            format!(
                "looked for `{}` and `{}`; `make install`, the archive and the Debian package install it, the Python \
                 package does not; `cargo build --release -p pellucid-lab` builds it",
                built.shown(),
                installed.shown()
            ),
        ));
    };
    pellucid_files::trusted::check(&found).map_err(|error| {
        Failure::new(Id::LabUntrusted,
            format!("the lab is not started: {error}"),
            "it and every directory on its way have to be yours or root's, and nobody else's to write to",
        )
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_begins_with_its_word_is_the_labs() {
        let of = |line: &str| {
            let words = arguments(line.split_whitespace().map(OsString::from))?;
            Some(words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            of("lab report --json -q --help").unwrap(),
            ["report", "--json", "-q", "--help"]
        );
        assert_eq!(of("lab"), Some(vec![]));
        for other in ["", "status lab", "--json lab verdict", "labs"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
