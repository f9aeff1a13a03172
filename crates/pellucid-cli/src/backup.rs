//! `backup`, `restore`, and what looks at media: `verify`, `header`, `files`, `label`.

mod image;
mod look;
mod make;
mod names;
mod point;
mod restore;
mod verify;

pub use look::{files, header, label, left_out, FilesArgs, HeaderArgs, LabelArgs};
pub use make::{broken_chain, is_of_chain, run as back_up, BackupArgs};
pub use restore::{run as restore, RestoreArgs};
pub use verify::{run as verify, VerifyArgs};

use std::path::Path;

use pellucid_backup::restore::Signer;

use crate::output::{Failure, Id};

/// The VFS, for what has to open a database.
fn register() -> Result<(), Failure> {
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })
}

/// A time on media, in microseconds since 1970, as people and machines read it.
pub fn moment(micros: u64) -> String {
    let at = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000);
    let format = time::format_description::well_known::Rfc3339;
    at.ok().and_then(|at| at.format(&format).ok()).unwrap_or_else(|| "?".to_owned())
}

/// The name of the certificate that signed a set, if that was checked.
fn signed_by(signer: &Signer) -> Option<&str> {
    match signer {
        Signer::Certificate { name, .. } => Some(name),
        Signer::Nobody | Signer::NotHere { .. } => None,
    }
}

/// MB/s, with MB as 10^6 bytes.
pub fn rate(bytes: u64, seconds: f64) -> String {
    format!("{:.0} MB/s", bytes as f64 / 1e6 / seconds.max(1e-6))
}

/// The rest of the hint about damaged media.
const ASK_VERIFY: &str = "; `pellucid verify` says what is damaged";

/// An error about media, with what to do about it.
pub fn about_media(error: impl Into<Failure>, path: &Path) -> Failure {
    let mut failure: Failure = error.into();
    if failure.is(Id::Corrupt) || failure.is(Id::Unauthentic) {
        failure.hint = Some(format!("use a mirror or another backup set{ASK_VERIFY}"));
    }
    if failure.is(Id::NotADatabase) {
        failure.hint = Some(
            "look at the path; `pellucid history` names the backups, `pellucid check` checks a database".into(),
        );
        failure = failure.called(Id::NotABackup);
        // It names the file, which need not be the first.
        if failure.message.starts_with('`') {
            return failure;
        }
    }
    failure.about(path)
}
