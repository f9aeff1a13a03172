//! Backup media of the vectors: the set at `position` restored, with the full set at 1 before a differential or a log set.

use std::path::PathBuf;
use std::sync::Mutex;

use pellucid::media::Kind;
use pellucid::Result;
use pellucid_backup::job::{refuse_looked_at, Chain};
use pellucid_backup::restore::{
    restore_pages, verify_checksums, Family, LogSet, Media, MediaSource, OpenSet, PageTarget,
};
use pellucid_host::DatabaseError;

use super::case::Case;
use super::objects::Keys;

struct Memory(Vec<u8>, usize);

impl MediaSource for Memory {
    fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let bytes = rest.len().min(into.len());
        into[..bytes].copy_from_slice(&rest[..bytes]);
        Ok(bytes)
    }

    fn bytes(&self) -> std::io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn name(&self) -> PathBuf {
        format!("family-{}", self.1).into()
    }
}

struct Database(Mutex<Vec<u8>>, usize);

impl PageTarget for Database {
    fn write(&self, first: u32, pages: &[u8]) -> Result<()> {
        let mut bytes = self.0.lock().unwrap();
        let at = (first as usize - 1) * self.1;
        let end = bytes.len().max(at + pages.len());
        bytes.resize(end, 0);
        bytes[at..at + pages.len()].copy_from_slice(pages);
        Ok(())
    }
}

pub fn media(case: &Case) -> Result<()> {
    let keys = Keys::of(case);
    let mut families = vec![Family::open(Box::new(Memory(case.body.clone(), 1)))?];
    for number in 2.. {
        let name = format!("family-{number}");
        if case.get(&name).is_none() {
            break;
        }
        families.push(Family::open(Box::new(Memory(case.bytes(&name), number)))?);
    }
    let media = Media::assemble(families)?;
    let position = case.number("position") as u32;
    media.refuse_clear(position)?;
    let families = media.set(position)?;
    let header = &families[0][0].1.header;
    // Whatever else is known of it, the instance says.
    if header.algorithm.is_none() && header.sealed_source {
        refuse_looked_at(&media, position, &[]).map_err(|error| match error {
            DatabaseError::Typed(error) => error,
            other => panic!("{other}"),
        })?;
    }
    let set = OpenSet::open(&media, position, &keys)?;
    assert_eq!(set.description().database, "vectors");
    let flags = case.get("flags").map_or([0; 6], |_| case.array("flags"));
    assert_eq!(set.header().flags.encode(), flags);
    let database = Database(Mutex::new(Vec::new()), set.header().page_size as usize);
    if set.header().kind == Kind::Differential {
        let chain = Chain::open(&media, &media, position, &keys)?;
        restore_pages(chain.base().unwrap(), &database, 1, &mut |_| ())?;
    }
    match set.header().kind {
        Kind::Log => apply(case, &set, &OpenSet::open(&media, 1, &keys)?, &database)?,
        _ => restore_pages(&set, &database, 1, &mut |_| ())?,
    }
    for (family, set) in media.set(position)?.into_iter().flatten() {
        verify_checksums(family, set, &mut |_| ())?;
    }
    assert_eq!(database.0.into_inner().unwrap(), case.bytes("database"));
    Ok(())
}

/// Restores the full set, then the commits of the log set up to where the case stops.
fn apply(case: &Case, set: &OpenSet<'_>, full: &OpenSet<'_>, database: &Database) -> Result<()> {
    restore_pages(full, database, 1, &mut |_| ())?;
    let log = LogSet::open(set)?;
    let stop = case.get("stop").map_or(log.commits().len(), |_| case.number("stop") as usize);
    log.apply(stop, &mut |page, content| database.write(page, content))?;
    if let Some(commit) = stop.checked_sub(1) {
        let bytes = log.commits()[commit].pages as usize * database.1;
        database.0.lock().unwrap().resize(bytes, 0);
    }
    Ok(())
}
