//! A log set: the commits of a stretch of the log, and every version of a page that they wrote.

use std::sync::mpsc::Sender;

use pellucid::error::{Error, Result, Subject};
use pellucid::media::{
    check_commits, ChunkKind, ChunkPrefix, Kind, LogCommit, Stored, MOST_CHUNK_BYTES, VERSION_BYTES,
};

use super::families::{FamilyTarget, FamilyWriter};
use super::pipeline::{write_chunks, Content};
use super::pool::{Pool, Slot};
use super::write::{begin, end, NewSet, Options, Written};

/// Where the commits of a log set come from.
pub trait LogSource {
    /// The commits, in their order. The set header says how many, and the first and last time and number.
    fn commits(&self) -> &[LogCommit];

    /// The versions of pages: page and place of its commit in [`LogSource::commits`], strictly ascending. No page is behind the
    /// end that the database has after the commit.
    fn versions(&self) -> &[(u32, u32)];

    /// Reads the page of `versions()[at]`, with zeros where a sealed page has its tail.
    ///
    /// # Errors
    /// What is wrong with it; the backup ends with that.
    fn read(&mut self, at: usize, into: &mut [u8]) -> Result<()>;
}

/// Writes a log set behind what the families have already. `progress` gets the versions that were read and the bytes that are
/// stored; `commits` gets the hash of the manifest before that is written anywhere.
///
/// # Errors
/// The first thing that went wrong, [`Error::Misuse`] for commits or versions that do not fit the set header. There is no
/// manifest then.
pub fn write_log_set(
    source: &mut dyn LogSource,
    set: &NewSet<'_>,
    targets: &mut [FamilyTarget],
    options: &Options,
    progress: &mut dyn FnMut(u32, u64),
    commits: &mut dyn FnMut([u8; 32]),
) -> Result<Written> {
    check(source, set)?;
    let mut families = begin(set, targets)?;
    let mut reading = |pool: &Pool, work: &Sender<Slot>, go_on: &mut dyn FnMut(u32) -> bool| {
        read_versions(source, set, pool, work, go_on)
    };
    write_chunks(&mut reading, set, Content::Log, &mut families, options, progress)?;
    write_commits(source.commits(), set, &mut families)?;
    let mut written = end(set, families, Vec::new(), commits)?;
    written.fenced = targets.iter_mut().flat_map(FamilyTarget::fenced).collect();
    Ok(written)
}

/// Refuses what no reader would take, before anything is written.
fn check(source: &dyn LogSource, set: &NewSet<'_>) -> Result<()> {
    let header = &set.header;
    let misuse = |what: String| Err(Error::misuse(Subject::BackupSet(header.position), what));
    let facts = header.version2.and_then(|own| own.chain.zip(own.log));
    let (Kind::Log, Some((place, log))) = (header.kind, facts) else {
        return misuse("it is no log set with a place in a chain".to_owned());
    };
    if let Err(error) = check_commits(&place, &log, source.commits()) {
        return misuse(error.to_string());
    }
    let (commits, versions) = (source.commits(), source.versions());
    if u32::try_from(versions.len()).is_err() {
        return misuse(format!("{} versions of pages are too many", versions.len()));
    }
    let ascends = versions.windows(2).all(|pair| pair[0] < pair[1]);
    let in_bounds = versions.iter().all(|(page, commit)| {
        *page > 0 && commits.get(*commit as usize).is_some_and(|commit| *page <= commit.pages)
    });
    match ascends && in_bounds {
        true => Ok(()),
        false => misuse("its versions are out of order, or of no page of the database".to_owned()),
    }
}

/// Reads all versions in order, a chunk at a time. `go_on` says whether there is a point in it.
fn read_versions(
    source: &mut dyn LogSource,
    set: &NewSet<'_>,
    pool: &Pool,
    work: &Sender<Slot>,
    go_on: &mut dyn FnMut(u32) -> bool,
) -> Result<()> {
    let page_bytes = set.header.page_size as usize;
    // With its list and its tag a chunk is no longer than a reader takes.
    let most = (MOST_CHUNK_BYTES - pellucid::cipher::TAG_BYTES) / (page_bytes + VERSION_BYTES);
    let of_chunk = (set.header.chunk_pages as usize).clamp(1, most.max(1));
    let (mut order, mut next) = (0, 0);
    loop {
        let list = source.versions().get(next..).unwrap_or_default();
        let list = list.get(..of_chunk).unwrap_or(list);
        if list.is_empty() {
            return Ok(());
        }
        let Some(mut slot) = pool.take() else { return Ok(()) };
        let count = list.len();
        slot.order = order;
        slot.numbers.clear();
        slot.numbers.extend(list.iter().map(|(page, _)| *page));
        slot.content.clear();
        for (page, commit) in list {
            slot.content.extend_from_slice(&page.to_be_bytes());
            slot.content.extend_from_slice(&commit.to_be_bytes());
        }
        slot.content.resize(count * (VERSION_BYTES + page_bytes), 0);
        let pages = slot.content[count * VERSION_BYTES..].chunks_exact_mut(page_bytes);
        for (at, page) in (next..).zip(pages) {
            source.read(at, page)?;
        }
        order += 1;
        next += count;
        if work.send(slot).is_err() || !go_on(next as u32) {
            return Ok(());
        }
    }
}

/// Writes the list of commits, each chunk of it to the family that has the least.
fn write_commits(
    commits: &[LogCommit],
    set: &NewSet<'_>,
    families: &mut [FamilyWriter<'_>],
) -> Result<()> {
    let (mut rest, mut number) = (commits, 0);
    while !rest.is_empty() {
        let (mut body, count) = LogCommit::encode_chunk(rest)?;
        let mut prefix = ChunkPrefix {
            kind: ChunkKind::Commits,
            stored: Stored::Raw,
            without_tails: false,
            number,
            first_page: 0,
            pages: count as u32,
            content_bytes: body.len() as u32,
            stored_bytes: 0,
        };
        let prefix_bytes = prefix.seal(set.keys, &mut body)?;
        let Some(family) = families.iter_mut().min_by_key(|family| family.bytes()) else { break };
        family.chunk(&prefix, &prefix_bytes, &body)?;
        rest = rest.get(count..).unwrap_or_default();
        number += 1;
    }
    Ok(())
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// Writes a set of chunks that nothing has checked, all in the first family.
    pub fn write_chunks_as_given(
        chunks: Vec<(ChunkPrefix, Vec<u8>)>,
        set: &NewSet<'_>,
        targets: &mut [FamilyTarget],
    ) -> Result<Written> {
        let mut families = begin(set, targets)?;
        for (mut prefix, mut body) in chunks {
            prefix.content_bytes = body.len() as u32;
            let bytes = prefix.seal(set.keys, &mut body)?;
            families[0].chunk(&prefix, &bytes, &body)?;
        }
        end(set, families, Vec::new(), &mut |_| ())
    }
}
