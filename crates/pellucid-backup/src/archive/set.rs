//! A log set of a place, read and believed: sealed under this database's keys, of its chain, and signed where it signs.

use std::path::Path;

use pellucid::hash::hex;
use pellucid::header::Header;
use pellucid::lsn::Lsn;
use pellucid::media::{ChainPlace, Kind, LogCommit, LogFacts};
use pellucid::{Error, Result, Subject};
use pellucid_host::DatabaseError;
use pellucid_vfs::seal_request::{Credentials, Request};

use crate::history::{files_of, History, Link, Origin, SetRecord};
use crate::job::open_media;
use crate::restore::{restore_pages, LogSet, Media, OpenSet, PageTarget, Signer};

/// Whose sets are believed.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The database's header.
    pub header: Header,
    /// Its chain.
    pub fork: [u8; 16],
    /// The certificate that signs its sets; none where nothing does.
    pub signer: Option<[u8; 32]>,
}

/// What a set says, and what is in it.
#[derive(Debug)]
pub struct Found {
    /// Its place in the chain.
    pub place: ChainPlace,
    /// Its facts.
    pub facts: LogFacts,
    /// Its commits.
    pub commits: Vec<LogCommit>,
    /// The hash of its manifest, and that of the set before.
    pub hash: [u8; 32],
    /// That of the set before.
    pub before: [u8; 32],
    /// When it was begun.
    pub begun: u64,
    /// Its identity, in hexadecimal.
    pub id: String,
    /// Pages of the database behind it.
    pub pages: u32,
    /// Versions of pages: page and place of the commit, and where their bytes are.
    pub versions: Vec<(u32, u32, usize)>,
    /// Their bytes, if they were wanted.
    pub bytes: Vec<u8>,
    /// They were wanted, and are too many.
    pub is_large: bool,
}

impl Found {
    /// Whether it can be a part of a larger set: it is small, and says nothing of itself that is not said of its commits.
    pub fn can_be_merged(&self) -> bool {
        let LogFacts { full, first_time, last_time, commits, .. } = self.facts;
        !self.is_large
            && self.facts
                == LogFacts { full, first_time, last_time, commits, ..LogFacts::default() }
    }

    /// Whether all commits of `other` are in it.
    pub fn has_all_of(&self, other: &Self) -> bool {
        let is_here = |commit: &LogCommit| {
            let at = self.commits.binary_search_by_key(&commit.lsn, |own| own.lsn);
            at.is_ok_and(|at| self.commits[at] == *commit)
        };
        other.commits.iter().all(is_here)
    }
}

/// What of a set is read besides its commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Nothing.
    Commits,
    /// Each page is opened.
    Whole,
    /// Each page is opened and held in memory, if they are no more bytes than so many.
    Pages(u64),
}

/// Reads the set at `path`.
///
/// # Errors
/// [`Error::Misuse`] for one that is another database's or chain's, or that is not signed; what reading it says.
pub fn read(path: &Path, owner: &Owner, reading: Reading) -> Result<Found> {
    let credentials = Credentials::gather(&Request::default())?;
    let media = open_media(&[path.to_owned()])?;
    read_of(&media, path, owner, &credentials, reading)
}

fn read_of(
    media: &Media,
    path: &Path,
    owner: &Owner,
    credentials: &Credentials,
    reading: Reading,
) -> Result<Found> {
    let refused = |what: String| Error::misuse(Subject::File(path.to_owned()), what);
    let set = OpenSet::open(media, 1, credentials)?;
    let header = set.header();
    let block = header.version2.and_then(|own| Some((own.chain?, own.log?, own.before)));
    let Some((place, facts, before)) = block else {
        return Err(refused("it is no log set of a chain".to_owned()));
    };
    let (fork, file_id) = (owner.fork, owner.header.file_id);
    if place.fork != fork || header.source != file_id || header.algorithm.is_none() {
        return Err(refused(format!(
            "it is of another recovery fork or database, and is left as it is: this one has fork {}",
            hex(&fork)
        )));
    }
    let signed = match set.signer() {
        Signer::Certificate { thumbprint, .. } => Some(*thumbprint),
        _ => None,
    };
    // Who has the certificate alone can seal a set, and what is made of it would be signed here.
    if owner.signer.is_some() && signed.is_none() {
        return Err(refused(
            "it is not signed, or its signature cannot be checked here".to_owned(),
        ));
    }
    let log = LogSet::open(&set)?;
    let mut found = Found {
        place,
        facts,
        commits: log.commits().to_vec(),
        hash: set.hash(),
        before,
        begun: header.begun,
        id: hex(&header.set),
        pages: header.pages,
        versions: Vec::new(),
        bytes: Vec::new(),
        is_large: matches!(reading, Reading::Pages(most) if set.manifest().content_bytes > most),
    };
    match reading {
        Reading::Commits => {}
        Reading::Whole => log.verify()?,
        Reading::Pages(most) if set.manifest().content_bytes > most => {}
        Reading::Pages(_) => log.versions(&mut |page, commit, bytes| {
            found.versions.push((page, commit, found.bytes.len()));
            found.bytes.extend_from_slice(bytes);
            Ok(())
        })?,
    }
    Ok(found)
}

/// Reads all of the full set at `path`, which was not begun before `seconds`, and returns its place in the chain: what is older goes when
/// it is whole, and not before.
///
/// # Errors
/// As [`read`]; [`Error::Corrupt`] if pages of it are missing or damaged.
pub fn read_full(path: &Path, owner: &Owner, seconds: u64) -> Result<ChainPlace> {
    let credentials = Credentials::gather(&Request::default())?;
    let media = open_media(&[path.to_owned()])?;
    let set = OpenSet::open(&media, 1, &credentials)?;
    let header = set.header();
    let place = header.version2.and_then(|own| own.chain);
    let place = place.filter(|place| {
        let is_own = place.fork == owner.fork && header.source == owner.header.file_id;
        let is_of_then = header.begun / 1_000_000 >= seconds;
        is_own && is_of_then && header.kind == Kind::Full && header.algorithm.is_some()
    });
    let is_signed = matches!(set.signer(), Signer::Certificate { .. });
    let refused = |what: &str| Error::misuse(Subject::File(path.to_owned()), what.to_owned());
    let place =
        place.ok_or_else(|| refused("it is no full set of this chain of the time in its name"))?;
    if owner.signer.is_some() && !is_signed {
        return Err(refused("it is not signed, or its signature cannot be checked here"));
    }
    if let Some(page) = set.index().missing.first() {
        return Err(refused(&format!("page {page} could not be read when it was backed up")));
    }
    restore_pages(&set, &Nowhere, 1, &mut |_| ())?;
    set.prove()?;
    Ok(place)
}

/// Pages are opened, and go nowhere.
struct Nowhere;

impl PageTarget for Nowhere {
    fn write(&self, _: u32, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Writes a set into the history as this instance's own: it was put by a process that was killed before it could do that.
///
/// # Errors
/// The history's, or what reading the set says.
pub fn write_down(path: &Path) -> std::result::Result<(), DatabaseError> {
    let Some(history) = History::open_or_begin()? else { return Ok(()) };
    let credentials = Credentials::gather(&Request::default())?;
    let media = open_media(&[path.to_owned()])?;
    let set = OpenSet::open(&media, 1, &credentials)?;
    history.record_set(&SetRecord {
        media: media.header(),
        set: set.header(),
        manifest: set.manifest(),
        description: set.description(),
        files: &files_of(&media),
        replaced: &[],
        link: Link { origin: Origin::Own, ..Link::proven(set.hash(), set.signer()) },
    })?;
    Ok(())
}

/// Where the last of some commits is.
pub fn last_of(commits: &[LogCommit], place: &ChainPlace) -> Lsn {
    commits.last().map_or(place.last, |commit| commit.lsn)
}
