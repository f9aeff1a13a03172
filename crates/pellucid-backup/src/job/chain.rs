//! The backup sets of one state of a database: a full one, and perhaps a differential of it.

use pellucid::media::{ChunkKind, Kind, SetHeader, PAGE_HASH_BYTES};
use pellucid::protector::KeySource;
use pellucid::shown::Shown;
use pellucid::{Error, Result, Subject};

use super::clear::Believe;
use crate::restore::{is_log_set, restore_pages, Media, OpenSet, PageTarget, Signer};

/// A full set, then perhaps a differential.
#[derive(Debug)]
pub struct Chain<'a> {
    full: Option<OpenSet<'a>>,
    last: OpenSet<'a>,
}

impl<'a> Chain<'a> {
    /// Opens the set at `position`. The full set of a differential is looked for on `base`.
    ///
    /// # Errors
    /// Those of [`OpenSet::open`]; [`Error::Misuse`] if the full set is not there.
    pub fn open(
        media: &'a Media,
        base: &'a Media,
        position: u32,
        keys: &dyn KeySource,
    ) -> Result<Self> {
        Self::open_with(media, base, position, keys, Believe::default())
    }

    /// Like [`Chain::open`], with sets that the caller believes.
    ///
    /// `believe` may accept a set in clear where sealed ones belong, and an unencrypted
    /// differential of an encrypted full set of a plain database. Earlier versions made such
    /// differentials, and nothing shows whether another person has put one there.
    ///
    /// # Errors
    /// Those of [`Chain::open`].
    pub fn open_with(
        media: &'a Media,
        base: &'a Media,
        position: u32,
        keys: &dyn KeySource,
        believe: Believe,
    ) -> Result<Self> {
        let last = OpenSet::open_as_it_is(media, position, keys)?;
        let full = match last.header().kind {
            Kind::Full => None,
            Kind::Log => return Err(is_log_set(position)),
            Kind::Differential => Some(open_base(base, &last, keys, believe)?),
        };
        if !believe.any_unsigned() {
            media.refuse_unsigned(position, keys)?;
        }
        if !believe.takes(last.header()) {
            media.refuse_clear(position)?;
        }
        Ok(Self { full, last })
    }

    /// The set that was asked for.
    pub fn last(&self) -> &OpenSet<'a> {
        &self.last
    }

    /// The full set that it is based on.
    pub fn base(&self) -> Option<&OpenSet<'a>> {
        self.full.as_ref()
    }

    /// Returns the sets in the order in which they are restored.
    pub fn sets(&self) -> impl Iterator<Item = &OpenSet<'a>> {
        self.full.iter().chain([&self.last])
    }

    /// Who signed them. Most pages may be the full set's, and a signed differential does not vouch for them: the one of whom
    /// less is known.
    pub fn signer(&self) -> &Signer {
        let full = self.full.as_ref().map(OpenSet::signer).filter(|signer| !signer.is_known());
        full.unwrap_or(self.last.signer())
    }

    /// Returns the header of the last set.
    pub fn header(&self) -> &SetHeader {
        self.last.header()
    }

    /// Pages that could not be read when they were backed up.
    pub fn missing(&self) -> Vec<u32> {
        let mut missing = self.last.index().missing.clone();
        if let Some(full) = &self.full {
            let of_full = full.index().missing.iter().copied();
            missing.extend(of_full.filter(|page| !self.is_repaired(*page)));
        }
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Whether a page that is missing in the full set is in the differential, or behind the
    /// database's end by then.
    fn is_repaired(&self, page: u32) -> bool {
        let header = self.header();
        let found = page_of(&self.last, page, header.page_size as usize);
        page > header.pages || matches!(found, Ok(Some(_)))
    }

    /// Writes the full set, then the changed pages. `progress` is called with the pages done and
    /// the pages in all.
    ///
    /// # Errors
    /// Those of [`restore_pages`].
    pub fn fill(
        &self,
        target: &dyn PageTarget,
        workers: usize,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<()> {
        // These numbers are not authenticated in a set in clear. They only show the progress.
        let pages = self.sets().fold(0, |all: u32, set| all.saturating_add(set.manifest().pages));
        let mut before = 0u32;
        for set in self.sets() {
            restore_pages(set, target, workers, &mut |done| {
                progress(before.saturating_add(done), pages);
            })?;
            before = before.saturating_add(set.manifest().pages);
        }
        Ok(())
    }

    /// Returns one page as it was backed up.
    ///
    /// # Errors
    /// Those of [`OpenSet::read`]; [`Error::Corrupt`] if no set has it.
    pub fn page(&self, number: u32) -> Result<Vec<u8>> {
        let bytes = self.header().page_size as usize;
        for set in [Some(&self.last), self.full.as_ref()].into_iter().flatten() {
            set.prove()?;
            if set.index().missing.contains(&number) {
                return Err(Error::corrupt(
                    Subject::Page(number),
                    "it could not be read when it was backed up",
                ));
            }
            if let Some(page) = page_of(set, number, bytes)? {
                return Ok(page);
            }
        }
        Err(Error::corrupt(Subject::Page(number), "it is not in the backup"))
    }

    /// Returns the hashes of all pages from page 1 on and their key: those of the full set, with
    /// the differential's in their places.
    ///
    /// # Errors
    /// Those of [`OpenSet::page_hashes`].
    pub fn page_hashes(&self) -> Result<([u8; 32], Vec<u8>)> {
        let full = self.full.as_ref().unwrap_or(&self.last);
        let (key, mut hashes) = (full.page_hash_key(), full.page_hashes()?);
        let bytes = self.header().page_size as usize;
        hashes.resize(self.header().pages as usize * PAGE_HASH_BYTES, 0);
        if self.full.is_some() {
            each_page(&self.last, bytes, &mut |number, page| {
                let at = (number as usize - 1) * PAGE_HASH_BYTES;
                if let Some(place) = hashes.get_mut(at..at + PAGE_HASH_BYTES) {
                    place.copy_from_slice(&pellucid::media::page_hash(&key, page));
                }
            })?;
            self.last.prove()?;
        }
        Ok((key, hashes))
    }
}

/// Finds and opens the full set that a differential was made from.
fn open_base<'a>(
    media: &'a Media,
    differential: &OpenSet<'_>,
    keys: &dyn KeySource,
    believe: Believe,
) -> Result<OpenSet<'a>> {
    let wanted = differential.header();
    for position in 1..=media.sets() {
        let families = media.set(position)?;
        let first = families.first().and_then(|copies| copies.first());
        if first.is_some_and(|(_, set)| set.header.set == wanted.base) {
            let full = OpenSet::open_as_it_is(media, position, keys)?;
            check_base(full.header(), wanted, believe)?;
            check_manifest(&full, differential)?;
            if !believe.takes(full.header()) {
                media.refuse_clear(position)?;
            }
            if !believe.any_unsigned() {
                media.refuse_unsigned(position, keys)?;
            }
            return Ok(full);
        }
    }
    Err(Error::misuse(
        Subject::BackupSet(wanted.position),
        format!(
            "it is a differential, and the full set {} that it was made from is not on the media \
             that are named",
            pellucid::hash::hex(&wanted.base)
        ),
    ))
}

/// Checks that a full set has the manifest that the differential names, if it names one. Its signature covers that, so that
/// a signed differential takes no other full set, whoever has that one's key.
fn check_manifest(full: &OpenSet<'_>, differential: &OpenSet<'_>) -> Result<()> {
    let named = differential.header().version2.map_or([0; 32], |own| own.base);
    if named == [0; 32] || named == full.hash() {
        return Ok(());
    }
    let of = differential.header().position;
    Err(Error::unauthentic(
        Subject::File(full.file()),
        format!(
            "backup set {} in it has another manifest than the full set from which differential {of} in `{}` was made: \
             somebody has exchanged what is in it",
            full.header().position,
            differential.file().shown()
        ),
    ))
}

/// Checks that a full set and a differential are a database together. The backup that makes a
/// differential checks this too, so that none is made that cannot be restored.
///
/// # Errors
/// [`Error::Misuse`] or [`Error::Corrupt`], which say why not.
pub fn check_base(full: &SetHeader, differential: &SetHeader, believe: Believe) -> Result<()> {
    if full.kind != Kind::Full || full.set != differential.base {
        return Err(Error::corrupt(
            Subject::BackupSet(full.position),
            "it is not the full set that the differential was made from",
        ));
    }
    if full.page_size != differential.page_size {
        return Err(Error::misuse(
            Subject::BackupSet(differential.position),
            format!(
                "it is a differential of pages of {} bytes, and its full backup has pages of {}: a full backup has to \
                 come between",
                differential.page_size, full.page_size
            ),
        ));
    }
    // No option allows it if an encrypted database was backed up.
    if full.sealed_source || !believe.differential {
        check_guard(full, differential)?;
    }
    if full.algorithm.is_none() && differential.algorithm.is_some() && !believe.any() {
        return Err(Error::misuse(
            Subject::BackupSet(differential.position),
            "it is an encrypted differential, and its full backup is NOT sealed, so that anybody can have made it: a full \
             backup has to come between",
        ));
    }
    Ok(())
}

/// Checks that a differential is protected as well as its full set. Anybody can put a differential
/// on media that names a sealed set as its base and says that a plain database, or no key, is
/// enough.
fn check_guard(full: &SetHeader, differential: &SetHeader) -> Result<()> {
    let refuse =
        |what: &'static str| Err(Error::misuse(Subject::BackupSet(differential.position), what));
    if full.algorithm.is_some() && differential.algorithm.is_none() {
        return refuse(
            "it is a differential that is not encrypted, of a full backup that is: a full backup \
             has to come between",
        );
    }
    if full.sealed_source && !differential.sealed_source {
        return refuse(
            "it is a differential of a plain database, and its full backup is of an encrypted one: \
             a full backup has to come between",
        );
    }
    Ok(())
}

/// Returns one page of a set. `None` if the set does not have it.
pub fn page_of(set: &OpenSet<'_>, number: u32, page_bytes: usize) -> Result<Option<Vec<u8>>> {
    let mut content = Default::default();
    let mut found = None;
    // Each list begins at its first page, so the right list is the last one that begins before
    // `number`.
    let entry = set.index().chunks.iter().rev().find(|entry| entry.first_page <= number);
    let Some(entry) = entry else { return Ok(None) };
    let prefix = set.read(entry, &mut content)?;
    pages_of(&content.bytes, &prefix, page_bytes, &mut |at, page| {
        if at == number {
            found = Some(page.to_vec());
        }
    });
    Ok(found)
}

fn each_page(set: &OpenSet<'_>, page_bytes: usize, each: &mut dyn FnMut(u32, &[u8])) -> Result<()> {
    let mut content = Default::default();
    for entry in &set.index().chunks {
        let prefix = set.read(entry, &mut content)?;
        pages_of(&content.bytes, &prefix, page_bytes, each);
    }
    Ok(())
}

/// Splits a chunk into its pages with their numbers (docs/format.md, "Chunk").
fn pages_of(
    content: &[u8],
    prefix: &pellucid::media::ChunkPrefix,
    page_bytes: usize,
    each: &mut dyn FnMut(u32, &[u8]),
) {
    let listed = prefix.kind == ChunkKind::ListedPages;
    let list = if listed { (prefix.pages as usize * 4).min(content.len()) } else { 0 };
    let (list, pages) = content.split_at(list);
    for (at, page) in (0..).zip(pages.chunks_exact(page_bytes)) {
        let number = match list.chunks_exact(4).nth(at) {
            Some(n) => u32::from_be_bytes([n[0], n[1], n[2], n[3]]),
            None => prefix.first_page.saturating_add(at as u32),
        };
        each(number, page);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use pellucid::media::Compression;
    use pellucid::Algorithm;

    use super::*;

    pub fn header(sealed: bool, sealed_source: bool) -> SetHeader {
        SetHeader {
            version2: None,
            media_set: [1; 16],
            set: [2; 16],
            family: 1,
            families: 1,
            position: 1,
            kind: Kind::Full,
            algorithm: sealed.then_some(Algorithm::Aes256),
            compression: Compression::None,
            copy_only: false,
            sealed_source,
            page_size: 4096,
            pages: 1,
            chunk_pages: 1,
            begun: 1,
            expires: 0,
            source: [0; 16],
            base: [0; 16],
            commitment: [0; 32],
            source_thumbprint: [0; 32],
            page_hash_key: [0; 32],
            flags: pellucid::flags::Flags::default(),
            protectors: Vec::new(),
            description: Vec::new(),
        }
    }

    #[test]
    fn what_is_no_database_together_is_refused_on_both_sides() {
        let (full, differential) =
            (header(true, true), SetHeader { base: [2; 16], ..header(true, true) });
        let told = |full: &SetHeader, differential: &SetHeader| {
            check_base(full, differential, Believe::default())
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert_eq!(told(&full, &differential), "");
        let larger = SetHeader { page_size: 8192, ..differential.clone() };
        assert!(told(&full, &larger)
            .contains("pages of 8192 bytes, and its full backup has pages of 4096"));
        let of_another = SetHeader { base: [3; 16], ..differential.clone() };
        assert!(told(&full, &of_another).contains("not the full set"));
        let no_full = SetHeader { kind: Kind::Differential, ..full.clone() };
        assert!(told(&no_full, &differential).contains("not the full set"));
        assert!(told(&full, &SetHeader { base: [2; 16], ..header(false, true) })
            .contains("not encrypted"));
    }

    #[test]
    fn a_differential_guards_what_its_full_set_guards() {
        let told = |full, differential| {
            let differential = SetHeader { base: [2; 16], ..differential };
            let outcome = check_base(&full, &differential, Believe::default());
            outcome.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let (plain, backup_sealed, sealed) =
            (|| header(false, false), || header(true, false), || header(true, true));
        assert_eq!(told(sealed(), sealed()), "");
        assert_eq!(told(backup_sealed(), backup_sealed()), "");
        assert_eq!(told(backup_sealed(), sealed()), "");
        // The sealed one answers for its own pages only.
        assert!(told(plain(), sealed()).contains("its full backup is NOT sealed"));
        assert_eq!(told(plain(), plain()), "");
        assert!(told(sealed(), plain()).contains("differential that is not encrypted"));
        assert!(told(backup_sealed(), plain()).contains("differential that is not encrypted"));
        // Encrypted itself, but what is restored would be a plain database.
        assert!(told(sealed(), backup_sealed()).contains("differential of a plain database"));
    }
}
