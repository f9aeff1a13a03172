//! What has to be so before the keys of a database or its encryption are changed, and SQL Server's words where it is not.

use std::io::ErrorKind;
use std::path::Path;

use pellucid::header::EncryptionState;
use pellucid::message::{self, Message};
use pellucid_engine::inspect::SealedHeader;

use crate::container::sealed;
use crate::output::{Failure, Id};

/// The header of a container that can be changed. `no_key` is told of a plain database.
pub fn ready(database: &Path, no_key: &Message) -> Result<Box<SealedHeader>, Failure> {
    let found = sealed(database).map_err(|failure| match failure {
        failure if failure.is(Id::Plain) => failure.tells(no_key, ""),
        failure if failure.is(Id::Interrupted) => failure.tells(&message::READ_ONLY, ""),
        failure => failure,
    })?;
    writable(database)?;
    Ok(found)
}

/// The same of one whose protectors are to be changed.
pub fn ready_for_protector(database: &Path) -> Result<(), Failure> {
    let found = ready(database, &message::NO_KEY)?;
    match found.header.state {
        EncryptionState::ProtectionChange => Err(Failure::new(Id::Message,
            message::PROTECTOR_CHANGES.text,
            "another version of pellucid began the change of protectors: finish it with that version",
        )
        .number(message::PROTECTOR_CHANGES.number)
        .about(database)),
        _ => Ok(()),
    }
}

/// Whether the file can be written, asked before anything else is begun.
pub fn writable(database: &Path) -> Result<(), Failure> {
    match pellucid_files::regular::open_to_write(database).map_err(|error| error.kind()) {
        Err(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => Err(Failure::new(Id::ReadOnly,
            message::READ_ONLY.text,
            "the file cannot be written: look at its permissions, its directory and how the disk is mounted",
        )
        .number(message::READ_ONLY.number)
        .about(database)),
        // Whatever else is wrong with it has words of its own.
        _ => Ok(()),
    }
}

/// What a change of keys is told when others do not give way.
pub fn locked(failure: Failure, database: &Path) -> Failure {
    if !failure.is(Id::InUse) {
        return failure;
    }
    let name = database.display().to_string();
    let hint = Some("nothing was changed; close the other connections, or try again".to_owned());
    Failure { hint, ..failure.tells(&message::KEY_LOCKED, &name) }
}
