//! The sets of a place that lead to a point: the full backups in it or beside it say which chain, and the names which logs
//! of the archiver's. Logs of another name are known by their headers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pellucid::hash::hex;
use pellucid::media::{ChainPlace, Kind};
use pellucid::shown::Shown;
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::look;

use super::names::{LogName, FULL};
use super::place::Place;
use crate::job::{open_family, store_of, Point};

/// The ends of the names of media that are no logs of the archiver's: full backups, and whatever `backup` has made.
const OTHERS: [&str; 2] = [FULL, ".bak"];

/// A set of a chain, as its header says before anybody has its key.
struct Base {
    path: PathBuf,
    kind: Kind,
    place: ChainPlace,
    begun: u64,
    source: [u8; 16],
}

/// A log set of a place.
struct Log {
    path: PathBuf,
    folder: String,
    fork: String,
    name: LogName,
}

/// Puts the media that lead to `point` in the place of the directories and parts of stores among `media`.
///
/// # Errors
/// [`Error::Misuse`] if sets of several databases are there, or none; what opening them says.
pub fn media_of(media: &[PathBuf], point: &Point) -> Result<Vec<PathBuf>> {
    let mut named = Vec::new();
    let (mut found, mut logs) = (Vec::new(), Vec::new());
    let mut places = Vec::new();
    for path in media {
        let Some(place) = place_at(path)? else {
            named.push(path.clone());
            continue;
        };
        let names = place.list(None)?;
        for name in &names {
            // The bytes of an object lie under another name beside it.
            if OTHERS.iter().any(|end| name.ends_with(end)) {
                found.push(place.path_of(&as_url(&place, name)));
            }
            logs.extend(log_of(&place, name));
        }
        places.push(path);
    }
    let Some(first) = places.first() else { return Ok(named) };
    let refused = |what: String| Err(Error::misuse(Subject::File(first.to_path_buf()), what));
    let mut bases = Vec::new();
    for path in &named {
        bases.extend(base_of(path)?);
    }
    for path in &found {
        match base_of(path) {
            // Something else of that name.
            Err(Error::WrongKind { .. }) => {}
            found => bases.extend(found?),
        }
    }
    let (others, bases): (Vec<_>, Vec<_>) =
        bases.into_iter().partition(|one| one.kind == Kind::Log);
    let sources: BTreeSet<_> = bases.iter().map(|base| base.source).collect();
    let folders: BTreeSet<_> = logs.iter().map(|log| log.folder.as_str()).collect();
    if sources.len() > 1 || (folders.len() > 1 && sources.len() != 1) {
        let mut names: Vec<_> = folders.iter().map(|name| format!("`{name}`")).collect();
        if names.len() < 2 {
            let first = |source: &[u8; 16]| bases.iter().find(|base| base.source == *source);
            let firsts = sources.iter().filter_map(first);
            names = firsts.map(|base| format!("`{}`", base.path.shown())).collect();
        }
        return refused(format!(
            "sets of several databases are there: name those of one, such as {}",
            names.join(" or ")
        ));
    }
    let Some(base) = base_for(&bases, point) else {
        return refused(
            "no full backup of a database with a chain of log backups is there: name it, too"
                .to_owned(),
        );
    };
    let fork = hex(&base.place.fork);
    let begins = base.place.first;
    let mut wanted: Vec<_> = logs.iter().filter(|log| log.fork == fork).collect();
    wanted.sort_by_key(|log| log.name);
    // What ends before the base is of no use; a small set ends where the next one begins, if that is no branch.
    let ends_before = |at: usize| match wanted[at].name {
        LogName { last: Some(last), .. } => last <= begins,
        _ => wanted.get(at + 1).is_some_and(|next| {
            next.name.branch.is_none()
                && next.name.first <= begins
                && next.name.first > wanted[at].name.first
        }),
    };
    let mut paths = named.clone();
    let bases = bases.iter().filter(|one| one.place.fork == base.place.fork);
    // A differential needs its full set, whichever that is, and who restores leaves out the logs that nobody needs.
    let others = others.iter().filter(|one| one.place.fork == base.place.fork);
    let mut seen: BTreeSet<_> = named.into_iter().collect();
    for one in bases.chain(others) {
        if seen.insert(one.path.clone()) {
            paths.push(one.path.clone());
        }
    }
    paths
        .extend((0..wanted.len()).filter(|at| !ends_before(*at)).map(|at| wanted[at].path.clone()));
    Ok(paths)
}

/// All media of a directory or a part of a store, by their names; none if it is neither.
///
/// # Errors
/// [`Error::Io`].
pub fn media_in(path: &Path) -> Result<Option<Vec<PathBuf>>> {
    let Some(place) = place_at(path)? else { return Ok(None) };
    let names = place.list(None)?.into_iter();
    let is_one = |name: &String| {
        OTHERS.iter().any(|end| name.ends_with(end)) || log_of(&place, name).is_some()
    };
    Ok(Some(names.filter(is_one).map(|name| place.path_of(&as_url(&place, &name))).collect()))
}

/// The place that holds the folder of a database, and that folder, by the fork of its chain and its file id: a place may be named as
/// a whole, or the folder of one database in it, or of one chain. None if nothing of it is there.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn holder_of(
    place: &Place,
    fork: &str,
    source: &str,
) -> Result<Option<(Place, String)>> {
    let root = place.root().display().to_string();
    let is_own =
        |folder: &str| source.get(..16).is_some_and(|id| folder.ends_with(&format!("-{id}")));
    let split = |root: &str| {
        let (above, folder) = root.rsplit_once('/')?;
        is_own(folder).then(|| (PathBuf::from(above), folder.to_owned()))
    };
    let of_chain = root.strip_suffix(fork).and_then(|root| root.strip_suffix('/'));
    if let Some((above, folder)) = of_chain.and_then(split).or_else(|| split(&root)) {
        return Ok(Some((Place::of(&above)?, folder)));
    }
    let names = place.list(None)?;
    let found =
        names.iter().filter_map(|name| name.split_once('/')).find(|(folder, _)| is_own(folder));
    Ok(found.map(|(folder, _)| (place.clone(), folder.to_owned())))
}

/// A directory, or a URL that no object has.
pub(super) fn place_at(path: &Path) -> Result<Option<Place>> {
    if let Some((store, url)) = store_of(path)? {
        let is_one = !url.ends_with('/') && matches!(store.exists(url), Ok(true));
        return if is_one { Ok(None) } else { Place::of(path).map(Some) };
    }
    match look(path) {
        Ok(found) if found.is_dir() => Place::of(path).map(Some),
        _ => Ok(None),
    }
}

/// A name as a URL has it: whoever makes a backup beside the archiver's may call it anything.
fn as_url(place: &Place, name: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._/".contains(byte);
    let encoded = |byte: u8| match is_plain(&byte) {
        true => String::from(byte as char),
        false => format!("%{byte:02X}"),
    };
    match place.is_store() {
        true => name.bytes().map(encoded).collect(),
        false => name.to_owned(),
    }
}

fn log_of(place: &Place, name: &str) -> Option<Log> {
    let mut parts = name.rsplitn(3, '/');
    let parsed = LogName::parse(parts.next()?)?;
    // Where the place is a chain's own folder, its name is the last of the path.
    let root = place.root().to_str()?;
    let mut above = root.rsplit('/');
    let (fork, folder) = match (parts.next(), parts.next()) {
        (Some(fork), Some(folder)) => (fork.to_owned(), folder.to_owned()),
        (Some(fork), None) => (fork.to_owned(), above.next()?.to_owned()),
        (None, _) => (above.next()?.to_owned(), above.next()?.to_owned()),
    };
    Some(Log { path: place.path_of(name), folder, fork, name: parsed })
}

fn base_of(path: &Path) -> Result<Vec<Base>> {
    let family = open_family(path)?;
    let sets = family.sets.iter().filter_map(|set| {
        let header = &set.header;
        let place = header.version2?.chain?;
        Some(Base {
            path: path.to_owned(),
            kind: header.kind,
            place,
            begun: header.begun,
            source: header.source,
        })
    });
    Ok(sets.collect())
}

/// The newest full set that is not behind the point. The one of a time tells the chain, which a later restore may have replaced.
fn base_for<'a>(bases: &'a [Base], point: &Point) -> Option<&'a Base> {
    let is_before = |base: &&Base| match point {
        Point::Time(time) => base.begun <= *time,
        Point::Lsn(lsn) => base.place.last <= *lsn,
        Point::Last | Point::Mark(_) | Point::BeforeMark(_) => true,
    };
    let full = || bases.iter().filter(|base| base.kind == Kind::Full);
    let before = full().filter(is_before).max_by_key(|base| base.begun);
    // What cannot be had is told by who looks for it, who knows what can.
    before.or_else(|| full().min_by_key(|base| base.begun))
}
