//! Sets in clear where a sealed one is expected. Anybody can make a set in clear, so before one is
//! believed, this module asks what the instance knows of the database, of the media's names and of
//! the place where the set goes.

use std::path::{Path, PathBuf};

use pellucid::media::{Description, Kind, SetHeader};
use pellucid::shown::Shown;
use pellucid::{Error, Result};
use pellucid_engine::inspect::{inspect, Kind as Found};
use pellucid_files::paths::original_path;
use pellucid_host::DatabaseError;
use pellucid_keyring::broker::Broker;
use pellucid_keyring::{DatabaseMemory, Keyring};
use pellucid_vfs::seal_request::flag;

use super::chain::Chain;
use super::targets::STDIO;
use crate::history::History;
use crate::restore::{not_sealed, Media};

/// The environment variable that allows sets in clear where no option can.
const VARIABLE: &str = "PELLUCID_ALLOW_CLEAR";

/// The sets in clear that the caller believes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Believe {
    /// Any set.
    pub clear: bool,
    /// A set without a signature where signed ones belong.
    pub unsigned: bool,
    /// A differential of a sealed full set of a plain database ([`super::Chain::open_with`]).
    pub differential: bool,
}

impl Believe {
    /// Whether the caller believes `set` without a check.
    pub fn takes(self, set: &SetHeader) -> bool {
        let is_sealed = set.algorithm.is_some();
        is_sealed || self.any() || (self.differential && set.kind == Kind::Differential)
    }

    /// Whether the caller believes any set.
    pub fn any(self) -> bool {
        pellucid::sabotage!(ClearSets => return true);
        self.clear || flag(VARIABLE)
    }
}

/// The place of a set and the place where it goes.
#[derive(Debug)]
struct Place<'a> {
    /// The files of its media.
    media: &'a [PathBuf],
    /// The database that it becomes or mends; `None` if it is only looked at.
    to: Option<&'a Path>,
}

/// Refuses a set in clear of a database that this instance knows as sealed.
///
/// # Errors
/// [`Error::Misuse`], which says who knows it; the error of a keyring that is there and cannot be
/// read.
fn refuse_clear(
    set: &SetHeader,
    description: &Description,
    place: &Place<'_>,
) -> std::result::Result<(), DatabaseError> {
    if set.algorithm.is_some() {
        return Ok(());
    }
    match why_not(set, description, place)? {
        Some(why) => Err(not_sealed(set.position, &why).into()),
        None => Ok(()),
    }
}

/// Refuses the set at `position` of media that are only looked at, if it is in clear on media with
/// sealed sets, or of a database that this instance knows as sealed.
///
/// # Errors
/// [`Error::Misuse`], which says why; the error of a keyring that is there and cannot be read.
pub fn refuse_looked_at(
    media: &Media,
    position: u32,
    files: &[PathBuf],
) -> std::result::Result<(), DatabaseError> {
    media.refuse_clear(position)?;
    let families = media.set(position)?;
    let Some((_, set)) = families.first().and_then(|copies| copies.first()) else { return Ok(()) };
    if set.header.algorithm.is_some() {
        return Ok(());
    }
    let description = set.header.described(None).unwrap_or_default();
    refuse_clear(&set.header, &description, &Place { media: files, to: None })
}

/// Like [`refuse_clear`], for all that a database is restored from: the files of the last set and
/// of its full set.
///
/// # Errors
/// Those of [`refuse_clear`].
pub fn refuse_chain(
    chain: &Chain<'_>,
    [last, base]: [&[PathBuf]; 2],
    to: Option<&Path>,
    believe: Believe,
) -> std::result::Result<(), DatabaseError> {
    for (set, media) in
        chain.base().map(|set| (set, base)).into_iter().chain([(chain.last(), last)])
    {
        if !believe.takes(set.header()) {
            refuse_clear(set.header(), set.description(), &Place { media, to })?;
        }
    }
    Ok(())
}

/// Whether a set in clear is among the restored ones and the user has to be warned: if sealed
/// databases are known here, or if the set has no name of which something could be known.
///
/// # Errors
/// The error of a keyring that is there and cannot be read.
pub fn is_doubtful(chain: &Chain<'_>, media: &[PathBuf]) -> Result<bool> {
    if chain.sets().all(|set| set.header().algorithm.is_some()) {
        return Ok(false);
    }
    let is_nameless = media.iter().any(|path| path == Path::new(STDIO));
    Ok(is_nameless || sealed_databases()?.is_none_or(|all| !all.is_empty()))
}

fn why_not(set: &SetHeader, said: &Description, place: &Place<'_>) -> Result<Option<String>> {
    if flag("PELLUCID_REQUIRE") {
        return Ok(Some("PELLUCID_REQUIRE=1 asks for sealed ones".to_owned()));
    }
    if set.sealed_source || set.source != [0; 16] {
        return Ok(Some("says that the database was, which is never backed up so".to_owned()));
    }
    let to = place.to.map(original_path);
    if let Some(to) = &to {
        let is_sealed = |found: Found| match found {
            Found::Sealed(sealed) => !sealed.header.is_switched_off(),
            _ => false,
        };
        if pellucid_files::paths::is_there(to)
            && inspect(to).is_ok_and(|found| is_sealed(found.kind))
        {
            return Ok(Some(format!("the database `{}` is", to.shown())));
        }
    }
    let Some(sealed) = sealed_databases()? else {
        let told = "the keyring, which knows what has to be sealed, is root's alone";
        return Ok(Some(told.to_owned()));
    };
    let path = PathBuf::from(&said.path);
    let is_known = |memory: &&DatabaseMemory| {
        let is = |other: &Path| memory.path == other || original_path(&memory.path) == other;
        to.as_deref().is_some_and(is)
            || (!said.path.is_empty() && (is(&path) || is(&original_path(&path))))
    };
    if let Some(memory) = sealed.iter().find(is_known) {
        let known = memory.path.shown();
        return Ok(Some(format!("the keyring knows the database `{known}` as encrypted")));
    }
    // Backups do not depend on the history, so one that cannot be read counts as knowing nothing.
    let Ok(Some(history)) = History::open() else { return Ok(None) };
    let media = history.names_of(place.media).unwrap_or_default();
    let known = history.known_of(set, said, &media).unwrap_or_default();
    if known.media_are_sealed {
        return Ok(Some("the history knows sealed sets of this name".to_owned()));
    }
    if known.is_own {
        return Ok(None);
    }
    let is_called = |memory: &&DatabaseMemory| {
        memory.path.file_stem().is_some_and(|stem| stem.to_string_lossy() == said.database)
    };
    let by_name = known.name_is_sealed || sealed.iter().any(|memory| is_called(&memory));
    let knows = match known.path_is_sealed {
        Some(is_sealed) => is_sealed,
        None => by_name && !said.database.is_empty(),
    };
    let why = || format!("the history knows backups of `{}` that are", said.database);
    Ok(knows.then(why))
}

/// Returns the databases that the keyring knows as encrypted. A keyring that this user may not read
/// counts as knowing none; none where a broker has it, which names no databases.
fn sealed_databases() -> Result<Option<Vec<DatabaseMemory>>> {
    let home = Keyring::locate()?;
    if !Keyring::is_at(&home) {
        return Ok(Some(Vec::new()));
    }
    if Broker::of(&home)?.is_some() {
        return Ok(None);
    }
    let found = Keyring::open(&home).and_then(|keyring| keyring.find_databases()?.all());
    match found {
        Ok(all) => Ok(Some(all.into_iter().filter(|memory| memory.sealed).collect())),
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Ok(Some(Vec::new()))
        }
        Err(error) => Err(error),
    }
}
