//! Who may open a database: everybody, nobody while it is being restored, or readers of a standby.

use std::path::Path;

use pellucid::header::Standing;
use pellucid::{Error, Subject};
use pellucid_files::paths::full_name;
use pellucid_host::DatabaseError;
use pellucid_keyring::{Action, Event};

use crate::header_change;

/// Gives the database another standing, once `before` is done, behind which no other connection commits. Returns whether that
/// was a change; `before` is called where it is one.
///
/// # Errors
/// [`Error::Unsupported`] for a database of version 1, whose header has no room for it; those of `before`. The standing is as it was
/// then.
pub fn change(
    path: &Path,
    standing: Standing,
    before: impl FnOnce() -> Result<(), DatabaseError>,
) -> Result<bool, DatabaseError> {
    let mut is_change = false;
    header_change::recover_in(
        path,
        |_, header, _| {
            is_change = header.standing() != standing;
            let mut next = header.clone();
            let second = next.second.as_mut().ok_or_else(|| of_version_1(path))?;
            second.set_standing(standing);
            Ok(is_change.then(|| next.into()))
        },
        |_, _| {
            before()?;
            Ok(Event::new(Action::Standing, "database").of(full_name(path)).record_here()?)
        },
    )?;
    Ok(is_change)
}

/// The error of a database whose header has no room for a standing.
pub fn of_version_1(path: &Path) -> Error {
    Error::unsupported(
        Subject::File(path.to_owned()),
        "only an encrypted database of format version 2 can be left restoring, or as a standby; `pellucid upgrade` gives it version 2",
    )
}
