//! The families of a media set, put together.

use std::path::PathBuf;

use pellucid::error::{Error, Result, Subject};
use pellucid::media::MediaHeader;
use pellucid::protector::KeySource;
use pellucid::shown::Shown;

use super::family::{Family, FamilySet, Tail};
use super::signer::{not_signed, Signer};

/// A media set: for each family its copies.
#[derive(Debug)]
pub struct Media {
    families: Vec<Vec<Family>>,
    left_out: Vec<Family>,
}

impl Media {
    /// Puts files together that were found, in whatever order they were named.
    ///
    /// # Errors
    /// [`Error::Misuse`] if they do not belong together, a family is missing, or copies disagree and nothing tells which of
    /// them counts.
    pub fn assemble(found: Vec<Family>) -> Result<Self> {
        match Self::put_together(found)? {
            (media, None) => Ok(media),
            (_, Some([one, other])) => Err(Error::misuse(
                Subject::File(one),
                format!(
                    "it holds another backup set than `{}` at the same place, both are whole, and \
                     nothing tells which one counts: name the files of one of them alone",
                    other.shown()
                ),
            )),
        }
    }

    /// The same for whoever replaces them, or looks whether he can append to them: copies that disagree are no error. The
    /// clock says then which of them are left out.
    ///
    /// # Errors
    /// [`Error::Misuse`] if they do not belong together or a family is missing.
    pub fn assemble_to_write(found: Vec<Family>) -> Result<Self> {
        Ok(Self::put_together(found)?.0)
    }

    /// And two files that disagree, if nothing tells which one counts.
    fn put_together(found: Vec<Family>) -> Result<(Self, Option<[PathBuf; 2]>)> {
        let Some(first) = found.first().map(|family| family.header.clone()) else {
            return Err(Error::misuse(Subject::MediaHeader, "no media are named"));
        };
        let mut families: Vec<Vec<Family>> = Vec::new();
        families.resize_with(usize::from(first.families), Vec::new);
        for family in found {
            let of_set = family.header.media_set == first.media_set
                && family.header.version == first.version
                && family.header.families == first.families;
            let place = families.get_mut(usize::from(family.header.family) - 1);
            let (true, Some(place)) = (of_set, place) else {
                return Err(Error::misuse(
                    Subject::File(family.source.name()),
                    "it belongs to another media set than the first file named: files that are named together are the families \
                     and mirrors of one backup; name one backup at a time",
                ));
            };
            place.push(family);
        }
        if let Some(missing) = families.iter().position(Vec::is_empty) {
            return Err(Error::misuse(
                Subject::MediaHeader,
                format!(
                    "media family {} of {} is missing: name all files of media set {}",
                    missing + 1,
                    first.families,
                    pellucid::hash::hex(&first.media_set)
                ),
            ));
        }
        let mut families = commit(families);
        let (left_out, doubt) = leave_out(&mut families);
        Ok((Self { families, left_out }, doubt))
    }

    /// Copies that were left out, because they hold another backup set than the other copies have at its place: mirrors
    /// that a backup gave up on.
    pub fn stale(&self) -> Vec<PathBuf> {
        self.left_out.iter().map(|family| family.source.name()).collect()
    }

    /// The same.
    pub fn left_out(&self) -> &[Family] {
        &self.left_out
    }

    /// The media header of the first family.
    pub fn header(&self) -> &MediaHeader {
        &self.families[0][0].header
    }

    /// Each family with its copies.
    pub fn families(&self) -> &[Vec<Family>] {
        &self.families
    }

    /// How many whole sets there are: in each family at least one copy has them.
    pub fn sets(&self) -> u32 {
        let most = |copies: &Vec<Family>| copies.iter().map(|family| family.sets.len()).max();
        self.families.iter().filter_map(most).min().unwrap_or(0) as u32
    }

    /// The position of the last set. Sets that an interrupted backup left do not count.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if damage hides what is behind the whole sets, or as [`Media::refuse_cut`]; [`Error::Misuse`] if
    /// there is none.
    pub fn last(&self) -> Result<u32> {
        let sets = self.sets();
        // Copies that end with damage hide something, but for what another one has. One that is whole says what there is.
        let hidden = |family: &Family| {
            matches!(family.tail, Tail::Damaged(_)) && family.sets.len() <= sets as usize
        };
        let lost = self.families.iter().find(|copies| copies.iter().all(hidden));
        if let Some(family) = lost.and_then(|copies| copies.first()) {
            return family.set(sets + 1).map(|_| sets);
        }
        self.refuse_cut()?;
        match sets {
            0 => self.set(1).map(|_| 1),
            sets => Ok(sets),
        }
    }

    /// Refuses media of which one family has a set whole and another one does not have all of it: all of a set lies in all
    /// families before one of them has its manifest, so that the other one was cut, and the set before is not the last one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the set and both files.
    pub fn refuse_cut(&self) -> Result<()> {
        let sets = self.sets() as usize;
        let has_more = |family: &&Family| family.sets.len() > sets;
        let Some(whole) = self.families.iter().flatten().find(has_more) else { return Ok(()) };
        let lacks_it = |copies: &&Vec<Family>| !copies.iter().any(|family| has_more(&family));
        let cut = self.families.iter().find(lacks_it).and_then(|copies| copies.first());
        let Some(cut) = cut else { return Ok(()) };
        let before = match sets {
            0 => String::new(),
            sets => format!(
                "; `--position {sets}`, of statements FILE = {sets}, takes the set before it"
            ),
        };
        Err(Error::corrupt(
            Subject::BackupSet(sets as u32 + 1),
            format!(
                "it is whole in `{}`, and `{}` does not have all of it, so that it was cut or is an older copy: take a copy \
                 that has it{before}",
                whole.source.name().shown(),
                cut.source.name().shown()
            ),
        ))
    }

    /// Refuses a set in clear among sealed ones, or where the media header says that they are sealed: no writer puts one
    /// there, and anybody who can write to the files can. Nothing authenticates that flag, so that both are asked.
    ///
    /// # Errors
    /// [`Error::Misuse`] naming the set; as [`Media::set`].
    pub fn refuse_clear(&self, position: u32) -> Result<()> {
        let is_clear = |(_, set): &(&Family, &FamilySet)| set.header.algorithm.is_none();
        let families = self.set(position)?;
        let mut all = self.families.iter().flatten().chain(&self.left_out);
        // Of one that is sealed in some files only these are not the same set, which is told by whoever opens it.
        if !families.iter().flatten().all(is_clear) || !all.any(Family::is_sealed) {
            return Ok(());
        }
        Err(not_sealed(position, "its media are of sealed sets"))
    }

    /// Refuses a set without a signature behind one that has one: no writer puts one there, and every holder of its key can.
    /// One whose certificate is not at hand counts as none behind one that can be checked.
    ///
    /// # Errors
    /// [`Error::Misuse`] naming the set; as [`Media::set`] and [`Signer::of`].
    pub fn refuse_unsigned(&self, position: u32, keys: &dyn KeySource) -> Result<()> {
        let first = |position| -> Result<Option<&FamilySet>> {
            Ok(self.set(position)?.first().and_then(|copies| copies.first()).map(|(_, set)| *set))
        };
        let Some(set) = first(position)? else { return Ok(()) };
        // Whoever believes one in clear asks for more than this.
        if set.header.algorithm.is_none() {
            return Ok(());
        }
        let signer = Signer::of(&set.header, &set.manifest, keys)?;
        if signer.is_known() {
            return Ok(());
        }
        for before in 1..position {
            let Some(set) = first(before)? else { continue };
            let is_signed = match signer {
                Signer::Nobody => set.manifest.signing.signature().is_some(),
                _ => Signer::of(&set.header, &set.manifest, keys)?.is_known(),
            };
            if is_signed {
                let why = format!("backup set {before} before it is signed");
                return Err(not_signed(position, &signer, &why));
            }
        }
        Ok(())
    }

    /// The set at `position` in each family, with the copies that have it.
    ///
    /// # Errors
    /// As [`Family::set`]; [`Error::Corrupt`] if the families disagree about it, or as [`Media::refuse_cut`].
    pub fn set(&self, position: u32) -> Result<Vec<Vec<(&Family, &FamilySet)>>> {
        let mut found = Vec::with_capacity(self.families.len());
        for copies in &self.families {
            let mut have = Vec::new();
            let mut trouble = None;
            for family in copies {
                match family.set(position) {
                    Ok(set) => have.push((family, set)),
                    Err(error) => trouble = Some((family.source.name(), error)),
                }
            }
            if let (true, Some((_, error))) = (have.is_empty(), trouble) {
                if matches!(error, Error::Misuse { .. }) && position == self.sets() + 1 {
                    self.refuse_cut()?;
                }
                return Err(error);
            }
            found.push(have);
        }
        let id = found.first().and_then(|copies| copies.first()).map(|(_, set)| set.header.set);
        for (at, copies) in found.iter().enumerate() {
            for (family, set) in copies {
                if set.header.media_set != family.header.media_set {
                    return Err(Error::corrupt(
                        Subject::File(family.source.name()),
                        format!("its backup set {position} was written to another media set"),
                    ));
                }
                let same = Some(set.header.set) == id
                    && usize::from(set.header.family) == at + 1
                    && usize::from(set.header.families) == self.families.len();
                if !same {
                    return Err(Error::corrupt(
                        Subject::File(family.source.name()),
                        format!(
                            "its backup set {position} is another one than that of the first family"
                        ),
                    ));
                }
            }
        }
        Ok(found)
    }
}

/// What is said of a set in clear where a sealed one is expected.
pub fn not_sealed(position: u32, why: &str) -> Error {
    Error::misuse(
        Subject::BackupSet(position),
        format!(
            "it is NOT sealed, so that anybody can have made it, and {why}: take another set or another copy; with \
             `--allow-clear`, of statements `PELLUCID_ALLOW_CLEAR=1` in the environment, it is believed as it is"
        ),
    )
}

/// Leaves out copies that disagree with those that have a whole set, one in each family. Of two whole sets for one place the
/// sealed one counts. Where that does not tell, two files that disagree are given, too, and the one counts that was begun
/// later: only for whoever restores nothing of it, because clocks are set back, and no key is in what they say.
fn leave_out(families: &mut [Vec<Family>]) -> (Vec<Family>, Option<[PathBuf; 2]>) {
    let (mut left_out, mut doubt) = (Vec::new(), None);
    let id = |family: &Family, at: usize| family.sets.get(at).map(|set| set.header.set);
    let mut at = 0;
    while families.iter().flatten().any(|family| family.sets.len() > at) {
        let whole = |set: [u8; 16]| {
            families.iter().all(|copies| copies.iter().any(|copy| id(copy, at) == Some(set)))
        };
        let sets =
            families.iter().flatten().filter_map(|copy| Some((copy, &copy.sets.get(at)?.header)));
        let sets: Vec<_> = sets.filter(|(_, header)| whole(header.set)).collect();
        let best = sets.iter().max_by_key(|(_, set)| (set.algorithm.is_some(), set.begun, set.set));
        at += 1;
        let Some((copy, best)) = best else { continue };
        let rival = sets.iter().find(|(other, set)| {
            set.set != best.set
                && set.algorithm.is_some() == best.algorithm.is_some()
                && other.header.family == copy.header.family
        });
        if let (None, Some((other, _))) = (&doubt, rival) {
            doubt = Some([copy.source.name(), other.source.name()]);
        }
        let best = best.set;
        for copies in families.iter_mut() {
            let keep = |copy: &Family| id(copy, at - 1).is_none_or(|set| set == best);
            let (kept, others) = std::mem::take(copies).into_iter().partition(keep);
            *copies = kept;
            left_out.extend::<Vec<_>>(others);
        }
    }
    (left_out, doubt)
}

/// One manifest commits a set in all its families: the others were written before it.
fn commit(mut families: Vec<Vec<Family>>) -> Vec<Vec<Family>> {
    let last = |family: &Family| family.sets.last().cloned();
    let newest = families.iter().flatten().filter_map(last).max_by_key(|set| set.header.position);
    if let Some(newest) = newest {
        families.iter_mut().flatten().for_each(|family| family.commit_by(&newest));
    }
    families
}
