//! What the keyring expects at paths, for `status` and `doctor`: databases that are not pinned, and pinned files that are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pellucid::hash::hex;
use pellucid::shown::Shown;
use pellucid::Result;
use pellucid_engine::inspect::{Inspection, Kind};
use pellucid_files::paths::look_at_name;
use pellucid_keyring::Keyring;
use pellucid_vfs::pins::Expectation;

/// What to do about a database that is not pinned.
pub const OPEN_IT: &str =
    "open it once with an account that may write the keyring, as `pellucid check` does";
/// Returns what is told of an encrypted database that the keyring, which is there, does not expect at its path.
pub fn not_pinned(found: &Inspection) -> Option<String> {
    let Kind::Sealed(sealed) = &found.kind else { return None };
    let pins = Expectation::at(&found.path).and_then(|expected| expected.pins());
    // What cannot be read is told by itself.
    let is_pinned = sealed.header.is_switched_off() || pins.map_or(true, |pins| !pins.is_empty());
    (!is_pinned).then(|| {
        format!(
            "`{}`: not pinned: nothing is expected at this path, so that another file would be taken in its place",
            found.path.shown()
        )
    })
}

/// Returns each pinned path where no file is, unless its database lies at another pinned path by now, with the file id that is expected
/// there. It needs no attention: who removes a database is not asked why. A file that is put there is refused.
///
/// # Errors
/// As [`Keyring::open`] and [`Keyring::each_pin`].
pub fn missing(home: &Path) -> Result<Vec<(PathBuf, String)>> {
    let pins = Keyring::open(home)?.each_pin()?;
    let (mut gone, mut there) = (BTreeMap::new(), BTreeSet::new());
    for pin in pins.into_iter().filter_map(|(_, pin)| pin.ok()) {
        match look_at_name(&pin.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                gone.insert(pin.path, pin.file_id);
            }
            _ => {
                there.insert(pin.file_id);
            }
        }
    }
    let gone = gone.into_iter().filter(|(_, id)| !there.contains(id));
    Ok(gone.map(|(path, id)| (path, hex(&id))).collect())
}

/// Returns the line about one of them.
pub fn missing_text((path, id): &(PathBuf, String)) -> String {
    format!(
        "`{}`: the encrypted database with the file id {id} is expected here and is missing; a file in its place is refused until \
         `pellucid accept` with this path",
        path.shown()
    )
}
