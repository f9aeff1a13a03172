//! The sets of media along time: what each has, what leads nowhere, and what cannot be read.

use std::path::PathBuf;

use pellucid::lsn::Lsn;
use pellucid::media::Kind;
use pellucid::protector::KeySource;
use pellucid::{Error, Result};

use super::media::open_family;
use super::point::{Base, Library, Log, Spot};
use super::points::{points_of, ForkPoints};
use crate::restore::{Family, Media};

/// What media have, by recovery fork.
#[derive(Debug)]
pub struct Timeline {
    /// The forks, the newest one first.
    pub forks: Vec<TimelineFork>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// The media of all that could.
    pub library: Library,
}

/// One recovery fork.
#[derive(Debug)]
pub struct TimelineFork {
    /// What can be had of it.
    pub points: ForkPoints,
    /// Its sets in their order.
    pub sets: Vec<TimelineSet>,
}

/// A set of a chain.
#[derive(Debug, Clone, Copy)]
pub struct TimelineSet {
    /// Where it is.
    pub spot: Spot,
    /// What it is.
    pub kind: Kind,
    /// The moment behind which its commits are, in microseconds since 1970; that of its pages for a full set or a differential.
    pub from: u64,
    /// When it was begun: it has nothing later.
    pub begun: u64,
    /// Its commits are behind this one.
    pub first: Lsn,
    /// The last commit that it has.
    pub last: Lsn,
    /// Commits of a log set.
    pub commits: usize,
    /// What it is good for.
    pub covers: Covers,
}

/// What a set is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// A restore can use it.
    Points,
    /// It lacks others before it.
    Nothing,
    /// It has commits of a branch that was left.
    Branch,
}

/// A file or a set that could not be read.
#[derive(Debug)]
pub struct Unread {
    /// The file.
    pub path: PathBuf,
    /// Why not.
    pub error: Error,
}

impl Timeline {
    /// Reads media, and goes on behind what cannot be read.
    ///
    /// # Errors
    /// [`Error::Misuse`] if two logs have other commits under one number.
    pub fn of(paths: &[PathBuf], keys: &dyn KeySource) -> Result<Self> {
        let mut unread = Vec::new();
        let mut groups: Vec<([u8; 16], Vec<Family>, Vec<PathBuf>)> = Vec::new();
        for path in paths {
            let family = match open_family(path) {
                Ok(family) => family,
                Err(error) => {
                    unread.push(Unread { path: path.clone(), error });
                    continue;
                }
            };
            let id = family.header.media_set;
            match groups.iter_mut().find(|group| group.0 == id) {
                Some((_, families, files)) => {
                    families.push(family);
                    files.push(path.clone());
                }
                None => groups.push((id, vec![family], vec![path.clone()])),
            }
        }
        let mut library = Library::open(&[])?;
        for (_, families, files) in groups {
            match Media::assemble(families) {
                Ok(media) => {
                    if let Err(error) = media.last() {
                        unread.extend(files.first().cloned().map(|path| Unread { path, error }));
                    }
                    library.add(media, files);
                }
                Err(error) => {
                    unread.extend(files.into_iter().next().map(|path| Unread { path, error }));
                }
            }
        }
        let (bases, logs) = library.sets_but(keys, &mut |spot, error| {
            let path = library.files(spot.media).first().cloned().unwrap_or_default();
            unread.push(Unread { path, error });
            Ok(())
        })?;
        let forks = points_of(&bases, &logs)?
            .into_iter()
            .map(|points| {
                let sets = sets_of(&points, &bases, &logs, &library);
                TimelineFork { points, sets }
            })
            .collect();
        Ok(Self { forks, unread, library })
    }
}

fn sets_of(
    points: &ForkPoints,
    bases: &[Base],
    logs: &[Log],
    library: &Library,
) -> Vec<TimelineSet> {
    let own = bases.iter().filter(|base| base.place.fork == points.fork);
    let mut sets: Vec<TimelineSet> = own
        .map(|base| TimelineSet {
            spot: base.spot,
            kind: kind_of(base, library),
            from: base.begun,
            begun: base.begun,
            first: base.place.first,
            last: base.place.last,
            commits: 0,
            // It leads to its own moment, whatever else.
            covers: Covers::Points,
        })
        .collect();
    let mut own: Vec<&Log> = logs.iter().filter(|log| log.place.fork == points.fork).collect();
    own.sort_by_key(|log| (log.place.first, log.place.last));
    for log in own {
        let is_reached = |lsn: Lsn| {
            points.ranges.iter().any(|range| lsn > range.from.lsn && lsn <= range.to.lsn)
        };
        // One without commits is as good as the moment that it goes on from.
        let is_useful = match log.commits.is_empty() {
            true => points
                .ranges
                .iter()
                .any(|range| (range.from.lsn..=range.to.lsn).contains(&log.place.first)),
            false => log.commits.iter().any(|commit| is_reached(commit.lsn)),
        };
        let covers = match (points.left.contains(&log.spot), is_useful) {
            (true, _) => Covers::Branch,
            (false, true) => Covers::Points,
            (false, false) => Covers::Nothing,
        };
        // It begins where the one before it was begun, if that is there.
        let ends_here = |set: &&TimelineSet| set.last == log.place.first && set.begun <= log.begun;
        let before = sets.iter().filter(ends_here).map(|set| set.begun).max();
        let first = log.commits.first().map_or(log.begun, |commit| commit.time);
        sets.push(TimelineSet {
            spot: log.spot,
            kind: Kind::Log,
            from: before.map_or(first, |before| before.min(first)),
            begun: log.begun,
            first: log.place.first,
            last: log.place.last,
            commits: log.commits.len(),
            covers,
        });
    }
    sets.sort_by_key(|set| (set.begun, set.last));
    sets
}

/// A differential has its pages beside a full set that is another one.
fn kind_of(base: &Base, library: &Library) -> Kind {
    let set = library.media(base.spot.media).set(base.spot.position).ok();
    let first = set.and_then(|set| Some(set.first()?.first()?.1.header.kind));
    first.unwrap_or(Kind::Full)
}
