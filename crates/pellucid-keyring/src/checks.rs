//! What the last checks of a database found, as SQL Server keeps `suspect_pages` and the last good CHECKDB.
//!
//! One file for each path. It is about the database with its file id: another one at that path has not been checked. What a
//! check found stays until one that began later, and looks at as much, finds nothing. Layout: docs/format.md, "Keyring".

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};

use super::pins::name_of;
use super::sealed_file::{Kind, SealedFile};
use super::{instance, Keyring};

const VERSION: u8 = 1;
const PAGES_ONLY: u8 = 1;
const IN_PART: u8 = 2;
const IS_DAMAGED: u8 = 4;
const IS_OF_CONTENT: u8 = 8;
const ALL: u8 = PAGES_ONLY | IN_PART | IS_DAMAGED | IS_OF_CONTENT;
/// Of more damaged pages only the number of findings is kept.
const PAGES_MOST: usize = 1000;
const HEAD_BYTES: usize = 48;

/// The memory of the checks of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Where it lies: its whole path.
    pub path: PathBuf,
    /// Its file id; zeros for a plain database.
    pub file_id: [u8; 16],
    /// When the last check ended, in seconds since 1970.
    pub at: u64,
    /// The last check authenticated pages only, without SQLite's own checks.
    pub pages_only: bool,
    /// SQLite could not check a part of it for want of the application's functions.
    pub in_part: bool,
    /// When the last check that found nothing ended; 0 for never.
    pub good_at: u64,
    /// What was found, and no later check has found mended.
    pub damage: Option<CheckDamage>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckDamage {
    /// When that check ended.
    pub at: u64,
    /// How many findings it had.
    pub findings: u32,
    /// SQLite's own checks found something: only they can find it mended.
    pub of_content: bool,
    /// The damaged pages, or the first of them.
    pub pages: Vec<u32>,
}

/// A check that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckFound {
    /// It authenticated pages only.
    pub pages_only: bool,
    /// SQLite could not check a part.
    pub in_part: bool,
    /// How many findings it had.
    pub findings: u32,
    /// SQLite's own checks found something.
    pub of_content: bool,
    /// The damaged pages.
    pub pages: Vec<u32>,
}

impl Check {
    /// The memory once another check has ended at `at`, which knew `begun` when it began.
    fn after(
        path: &Path,
        file_id: &[u8; 16],
        known: Option<Self>,
        begun: Option<&Self>,
        found: &CheckFound,
        at: u64,
    ) -> Self {
        let known = known.filter(|known| known.file_id == *file_id);
        let good_at = known.as_ref().map_or(0, |known| known.good_at);
        let stood = known.and_then(|known| known.damage);
        // Another check has found it meanwhile, where this one may have looked before it was there.
        let is_newer = stood.is_some() && stood.as_ref() != begun.and_then(|b| b.damage.as_ref());
        let damage = match found.findings {
            0 => stood.filter(|damage| {
                is_newer || damage.of_content && (found.pages_only || found.in_part)
            }),
            findings => Some(CheckDamage {
                at,
                findings,
                // A look at the pages alone does not unsay what SQLite's checks have found.
                of_content: found.of_content
                    || ((found.pages_only || is_newer)
                        && stood.is_some_and(|stood| stood.of_content)),
                pages: found.pages.iter().take(PAGES_MOST).copied().collect(),
            }),
        };
        let is_good = found.findings == 0 && !found.in_part;
        Self {
            path: path.to_owned(),
            file_id: *file_id,
            at,
            pages_only: found.pages_only,
            in_part: found.in_part,
            good_at: if is_good { at } else { good_at },
            damage,
        }
    }

    /// What two memories of one database say together, of which `self` is the earlier: one account's check unsays of what another's
    /// has found no more than its own would.
    fn and(self, later: Self) -> Self {
        let (good_at, has_looked) = (later.good_at, !later.pages_only && !later.in_part);
        let stands = |damage: &CheckDamage| {
            good_at <= damage.at || damage.of_content && !(has_looked && good_at == later.at)
        };
        let damage = later.damage.or_else(|| self.damage.filter(stands));
        Self { damage, good_at: good_at.max(self.good_at), ..later }
    }

    fn encode(&self) -> Vec<u8> {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let damage = self.damage.as_ref();
        let pages = damage.map_or(&[][..], |damage| &damage.pages);
        let mut bytes = vec![VERSION];
        bytes.push(
            flag(self.pages_only, PAGES_ONLY)
                | flag(self.in_part, IN_PART)
                | flag(damage.is_some(), IS_DAMAGED)
                | flag(damage.is_some_and(|damage| damage.of_content), IS_OF_CONTENT),
        );
        bytes.extend_from_slice(&self.file_id);
        bytes.extend_from_slice(&self.at.to_be_bytes());
        bytes.extend_from_slice(&self.good_at.to_be_bytes());
        bytes.extend_from_slice(&damage.map_or(0, |damage| damage.at).to_be_bytes());
        bytes.extend_from_slice(&damage.map_or(0, |damage| damage.findings).to_be_bytes());
        bytes.extend_from_slice(&(pages.len() as u16).to_be_bytes());
        pages.iter().for_each(|page| bytes.extend_from_slice(&page.to_be_bytes()));
        bytes.extend_from_slice(self.path.as_os_str().as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (version, flags) = (head[0], head[1]);
        if version != VERSION || flags & !ALL != 0 {
            return None;
        }
        let number = |at: usize| Some(u64::from_be_bytes(*head[at..].first_chunk()?));
        let count = usize::from(u16::from_be_bytes([head[46], head[47]]));
        let (pages, path) = rest.split_at_checked(count * 4)?;
        let damage = CheckDamage {
            at: number(34)?,
            findings: u32::from_be_bytes(*head[42..].first_chunk()?),
            of_content: flags & IS_OF_CONTENT != 0,
            pages: pages
                .chunks_exact(4)
                .filter_map(|page| page.try_into().ok())
                .map(u32::from_be_bytes)
                .collect(),
        };
        Some(Self {
            path: PathBuf::from(OsStr::from_bytes(path)),
            file_id: *head[2..].first_chunk()?,
            at: number(18)?,
            pages_only: flags & PAGES_ONLY != 0,
            in_part: flags & IN_PART != 0,
            good_at: number(26)?,
            damage: (flags & IS_DAMAGED != 0).then_some(damage),
        })
    }
}

impl Keyring {
    /// What checks of a database at `path` have found, in the order in which they ended: the memory of this keyring, and
    /// of the machine's, where this one is the caller's own. It may be about a database that lay there before.
    ///
    /// # Errors
    /// What is wrong with the file of it.
    pub fn recall_checks(&self, path: &Path) -> Result<Vec<Check>> {
        let whole = whole(path);
        let mut checks = Vec::from_iter(self.read_check(&whole)?);
        if let Some(machine) = self.behind() {
            checks.extend(machine.read_check(&whole)?);
        }
        checks.sort_by_key(|check| check.at);
        Ok(checks)
    }

    /// What they say together of the database with this file id; none if that was never checked.
    ///
    /// # Errors
    /// As [`Keyring::recall_checks`].
    pub fn recall_check(&self, path: &Path, file_id: &[u8; 16]) -> Result<Option<Check>> {
        let checks = self.recall_checks(path)?.into_iter();
        Ok(checks.filter(|check| check.file_id == *file_id).reduce(Check::and))
    }

    /// What this keyring itself knows of a path when a check begins, for [`Keyring::remember_check`] when it ends; none if nothing, or
    /// if that cannot be read.
    pub fn begin_check(&self, path: &Path) -> Option<Check> {
        self.read_check(&whole(path)).ok().flatten()
    }

    /// Remembers a check that ended at `at`, in seconds since 1970, and returns what is known now. `begun` is what
    /// [`Keyring::begin_check`] said before the check looked at anything.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written. A memory that cannot be read is replaced, unless a newer version made it.
    pub fn remember_check(
        &self,
        path: &Path,
        file_id: &[u8; 16],
        begun: Option<&Check>,
        found: &CheckFound,
        at: u64,
    ) -> Result<Check> {
        let whole = whole(path);
        let (_change, now) = self.begin_change()?;
        let known = now.read_check(&whole).unwrap_or_default();
        let check = Check::after(&whole, file_id, known, begun, found, at);
        instance::make_directory(&self.home.join("keyring/checks"))?;
        check_file(&self.home, &whole).replace(&now.master_key, &check.encode())?;
        Ok(check)
    }

    /// Forgets what checks of a database at `path` have found: it is gone.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn forget_check(&self, path: &Path) -> Result<()> {
        let (_change, _) = self.begin_change()?;
        check_file(&self.home, &whole(path)).remove()
    }

    fn read_check(&self, whole: &Path) -> Result<Option<Check>> {
        let file = check_file(&self.home, whole);
        let Some(bytes) = self.read(&file)? else { return Ok(None) };
        let check = Check::decode(&bytes).filter(|check| check.path == whole);
        check.map(Some).ok_or_else(|| {
            Error::corrupt(Subject::File(file.path().to_owned()), "its fields do not fit")
        })
    }
}

fn check_file(home: &Path, whole: &Path) -> SealedFile {
    let name = name_of(whole);
    SealedFile::new(home.join("keyring/checks").join(&name), Kind::Check, &name)
}

fn whole(path: &Path) -> PathBuf {
    pellucid_files::paths::original_path(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: [u8; 16] = [7; 16];

    fn clean() -> CheckFound {
        CheckFound::default()
    }

    fn damaged(pages: &[u32]) -> CheckFound {
        CheckFound { findings: pages.len() as u32, pages: pages.to_vec(), ..CheckFound::default() }
    }

    fn of_content() -> CheckFound {
        CheckFound { findings: 2, of_content: true, ..CheckFound::default() }
    }

    fn pages_only(found: CheckFound) -> CheckFound {
        CheckFound { pages_only: true, ..found }
    }

    fn in_part(found: CheckFound) -> CheckFound {
        CheckFound { in_part: true, ..found }
    }

    /// Checks one after the other, at 1, 2, ...: what stands then, as (damage's time, last good one's time).
    fn after(checks: &[CheckFound]) -> (Option<u64>, u64) {
        let mut known = None;
        for (at, found) in (1..).zip(checks) {
            let begun = known.clone();
            known = Some(Check::after(Path::new("/a.db"), &ID, known, begun.as_ref(), found, at));
        }
        known.map_or((None, 0), |known| (known.damage.map(|damage| damage.at), known.good_at))
    }

    #[test]
    fn damage_stands_until_a_check_that_looks_at_as_much_finds_nothing() {
        let bad = || damaged(&[3]);
        for (checks, expected) in [
            (vec![], (None, 0)),
            (vec![clean()], (None, 1)),
            (vec![clean(), bad()], (Some(2), 1)),
            (vec![clean(), bad(), bad()], (Some(3), 1)),
            (vec![bad(), clean()], (None, 2)),
            (vec![bad(), pages_only(clean())], (None, 2)),
            (vec![bad(), in_part(clean())], (None, 0)),
            (vec![of_content(), clean()], (None, 2)),
            (vec![of_content(), pages_only(clean())], (Some(1), 2)),
            (vec![of_content(), in_part(clean())], (Some(1), 0)),
            (vec![of_content(), pages_only(bad()), pages_only(clean())], (Some(2), 3)),
            (vec![of_content(), pages_only(bad()), clean()], (None, 3)),
            (vec![of_content(), bad(), pages_only(clean())], (None, 3)),
            (vec![clean(), in_part(clean())], (None, 1)),
        ] {
            assert_eq!(after(&checks), expected, "{checks:?}");
        }
    }

    /// A check that takes hours may have looked at a page before it was damaged, and end after the one that found that.
    #[test]
    fn damage_that_another_check_has_found_meanwhile_stands() {
        let path = Path::new("/a.db");
        let one = |known: Option<Check>, begun: Option<&Check>, found: &CheckFound, at| {
            Check::after(path, &ID, known, begun, found, at)
        };
        let before = [None, Some(one(None, None, &damaged(&[7]), 1))];
        for begun in before {
            for found in [damaged(&[3]), of_content()] {
                let short = one(begun.clone(), begun.as_ref(), &found, 2);
                for long in [clean(), pages_only(clean()), in_part(clean()), damaged(&[9])] {
                    let ended = one(Some(short.clone()), begun.as_ref(), &long, 3);
                    let damage = ended.damage.clone().unwrap();
                    assert_eq!(damage.of_content, found.of_content, "{long:?}");
                    // One that began after that looks at all of it.
                    let again = one(Some(ended.clone()), Some(&ended), &clean(), 4);
                    assert_eq!((again.damage, again.good_at), (None, 4));
                }
            }
        }
    }

    #[test]
    fn a_check_of_another_account_unsays_what_the_same_account_s_would() {
        for (earlier, later) in [
            (damaged(&[3]), clean()),
            (damaged(&[3]), pages_only(clean())),
            (of_content(), clean()),
            (of_content(), pages_only(clean())),
            (of_content(), in_part(clean())),
            (clean(), damaged(&[3])),
            (clean(), in_part(clean())),
            (of_content(), damaged(&[3])),
        ] {
            let of = |found, at| Check::after(Path::new("/a.db"), &ID, None, None, found, at);
            let both = of(&earlier, 1).and(of(&later, 2));
            let told = (both.damage.map(|damage| damage.at), both.good_at);
            assert_eq!(told, after(&[earlier.clone(), later.clone()]), "{earlier:?} {later:?}");
        }
    }

    #[test]
    fn another_database_at_the_path_was_not_checked() {
        let known = Check::after(Path::new("/a.db"), &ID, None, None, &damaged(&[3]), 1);
        let begun = known.clone();
        let (known, begun) = (Some(known), Some(&begun));
        let other = Check::after(Path::new("/a.db"), &[8; 16], known, begun, &in_part(clean()), 2);
        assert_eq!((other.damage, other.good_at), (None, 0));
    }

    #[test]
    fn a_memory_reads_back_and_is_refused_when_it_is_cut_or_says_more() {
        let many: Vec<u32> = (1..=1500).collect();
        for (found, kept) in [(damaged(&many), PAGES_MOST), (of_content(), 0), (clean(), 0)] {
            let check = Check::after(Path::new("/a \u{e9}.db"), &ID, None, None, &found, 9);
            let bytes = check.encode();
            assert_eq!(Check::decode(&bytes), Some(check.clone()));
            assert_eq!(check.damage.map_or(0, |damage| damage.pages.len()), kept);
            for length in 0..HEAD_BYTES + kept * 4 {
                assert_eq!(Check::decode(&bytes[..length]), None, "{length} bytes");
            }
            for (at, value) in [(0, 2), (1, 16)] {
                let mut other = bytes.clone();
                other[at] |= value;
                assert_eq!(Check::decode(&other), None, "byte {at}");
            }
        }
    }

    #[test]
    fn it_outlives_a_new_master_key_and_one_that_cannot_be_read_gives_way() {
        let place = tempfile::tempdir().unwrap();
        let (home, path) = (place.path().join("home"), place.path().join("a.db"));
        let (keyring, _) = Keyring::open_or_create(&home).unwrap();
        assert_eq!(keyring.recall_check(&path, &ID).unwrap(), None);
        let known = keyring.remember_check(&path, &ID, None, &damaged(&[3]), 5).unwrap();
        let change = crate::Change::begin(&home).unwrap();
        change.replace_database_key(Some(&keyring), None, None, false).unwrap();
        drop(change);
        let keyring = Keyring::open(&home).unwrap();
        assert_eq!(keyring.recall_check(&path, &ID).unwrap(), Some(known));
        assert_eq!(keyring.recall_check(&path, &[8; 16]).unwrap(), None);

        let file = check_file(&home, &whole(&path));
        let other = check_file(&home, Path::new("/b.db"));
        std::fs::copy(file.path(), other.path()).unwrap();
        assert!(keyring.recall_check(Path::new("/b.db"), &ID).is_err(), "another path's");
        let mut bytes = std::fs::read(file.path()).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(file.path(), bytes).unwrap();
        assert!(keyring.recall_check(&path, &ID).is_err());
        keyring.remember_check(&path, &ID, None, &clean(), 6).unwrap();
        assert_eq!(keyring.recall_check(&path, &ID).unwrap().unwrap().good_at, 6);
        keyring.forget_check(&path).unwrap();
        keyring.forget_check(&path).unwrap();
        assert_eq!(keyring.recall_check(&path, &ID).unwrap(), None);
    }
}
