//! Pinned paths: a path where the keyring has seen an encrypted database, and which database that was.
//!
//! A pin says what has to be found at its path. It is made when a database is first opened, made or restored there. From then on
//! the path never holds less unasked: a pin's sequence number only grows, and no pin is removed but by a command that was
//! asked for it (`accept`, `decrypt`). Retired keys lie beside the pins: data encryption keys that a rekey replaced.
//!
//! Looking for a pin opens no keyring: each lies under a name made of its path, so one look at the directory says whether there
//! is one. Layout: docs/format.md, "Keyring".

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};
use pellucid::hash::{hex, Sha256};

use super::broker::{Broker, Query};
use super::sealed_file::{Kind, SealedFile};
use super::{found, instance, Keyring};

const VERSION: u8 = 1;
const SEALED: u8 = 1;
const MAY_OFF: u8 = 2;
const HAS_OTHER: u8 = 4;
const HAS_NEXT: u8 = 8;
const HAS_FORMER: u8 = 16;
const HAS_RETIRED: u8 = 32;
const HAS_PLAIN: u8 = 64;
const HAS_PAGES: u8 = 128;
/// Hexadecimal digits of a hash that make a file's name.
const NAME_DIGITS: usize = 32;
/// The directories that are made when they are first needed, each with the kind of its files.
pub(super) const DIRECTORIES: [(&str, Kind); 4] = [
    ("paths", Kind::Pin),
    ("retired", Kind::Retired),
    ("checks", Kind::Check),
    ("witnesses", Kind::Witness),
];

/// What the keyring expects at a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pin {
    /// The path: absolute, as it was opened, or with its directory's symbolic links followed.
    pub path: PathBuf,
    /// The database.
    pub file_id: [u8; 16],
    /// The highest header sequence number that was seen of it here.
    pub sequence: u64,
    /// The commitment of that header's data encryption key.
    pub dek: [u8; 32],
    /// Whether that header's pages are sealed; encryption is switched off otherwise.
    pub sealed: bool,
    /// Encryption is being switched off by a command.
    pub may_off: bool,
    /// Another encrypted database that was found here. It was told, and is not accepted yet.
    pub other: Option<[u8; 16]>,
    /// The database that a restore is about to put here, or the file id that a rekey is about to give this one.
    pub next: Option<[u8; 16]>,
    /// The database that was expected here before, and has made room.
    pub former: Option<[u8; 16]>,
    /// The commitment of a retired key: a file under it was accepted for reading.
    pub retired: Option<[u8; 32]>,
    /// SHA-256 of the plain database that a decryption or restore is about to put here.
    pub plain: Option<[u8; 32]>,
    /// The database was seen with pages: it is never again its header alone.
    pub has_pages: bool,
}

impl Pin {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut flags = 0;
        for (is_set, flag) in [
            (self.sealed, SEALED),
            (self.may_off, MAY_OFF),
            (self.other.is_some(), HAS_OTHER),
            (self.next.is_some(), HAS_NEXT),
            (self.former.is_some(), HAS_FORMER),
            (self.retired.is_some(), HAS_RETIRED),
            (self.plain.is_some(), HAS_PLAIN),
            (self.has_pages, HAS_PAGES),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        let mut bytes = vec![VERSION, flags];
        bytes.extend_from_slice(&self.file_id);
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
        bytes.extend_from_slice(&self.dek);
        for id in [self.other, self.next, self.former] {
            bytes.extend_from_slice(&id.unwrap_or_default());
        }
        for hash in [self.retired, self.plain] {
            bytes.extend_from_slice(&hash.unwrap_or_default());
        }
        bytes.extend_from_slice(self.path.as_os_str().as_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let ([version, flags], rest) = bytes.split_first_chunk()?;
        if *version != VERSION {
            return None;
        }
        let (file_id, rest) = rest.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (dek, rest) = rest.split_first_chunk()?;
        let (other, rest) = rest.split_first_chunk()?;
        let (next, rest) = rest.split_first_chunk()?;
        let (former, rest) = rest.split_first_chunk()?;
        let (retired, rest) = rest.split_first_chunk()?;
        let (plain, path) = rest.split_first_chunk()?;
        let has = |flag| flags & flag != 0;
        Some(Self {
            path: PathBuf::from(OsStr::from_bytes(path)),
            file_id: *file_id,
            sequence: u64::from_be_bytes(*sequence),
            dek: *dek,
            sealed: has(SEALED),
            may_off: has(MAY_OFF),
            other: has(HAS_OTHER).then_some(*other),
            next: has(HAS_NEXT).then_some(*next),
            former: has(HAS_FORMER).then_some(*former),
            retired: has(HAS_RETIRED).then_some(*retired),
            plain: has(HAS_PLAIN).then_some(*plain),
            has_pages: has(HAS_PAGES),
        })
    }
}

/// The name of the pin of a path.
pub(super) fn name_of(path: &Path) -> String {
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_bytes());
    let mut name = hex(&hash.finish());
    name.truncate(NAME_DIGITS);
    name
}

fn pin_file(home: &Path, path: &Path) -> SealedFile {
    let name = name_of(path);
    SealedFile::new(home.join("keyring/paths").join(&name), Kind::Pin, &name)
}

fn retired_file(home: &Path, commitment: &[u8; 32]) -> SealedFile {
    let name = &hex(commitment)[..NAME_DIGITS];
    SealedFile::new(home.join("keyring/retired").join(name), Kind::Retired, name)
}

/// Whether a file of the instance at `home` is there. An account that may not look into the machine's instance has none of it.
fn is_there(home: &Path, file: &Path) -> Result<bool> {
    match file.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(false),
            // `HOME` may be no directory. A memory that something else lies in the place of is not an empty one.
            ErrorKind::NotADirectory if !instance::has_keyring(home) => Ok(false),
            // The group's: this account is not in it. One that is closed to everybody has a broker, which would have been asked.
            ErrorKind::PermissionDenied
                if instance::is_configured(home) && instance::group_of(home).is_some() =>
            {
                Ok(false)
            }
            _ => Err(Error::io(Subject::File(file.to_owned()), error)),
        },
    }
}

impl Keyring {
    /// The instance that is used and, where that one is a user's own, the machine's: what either expects counts. None if there is
    /// no place for an instance, or no keyring in one that others could exchange.
    ///
    /// # Errors
    /// [`Error::Misuse`] if others could exchange the instance, and a keyring is there.
    pub fn all_homes() -> Result<Vec<PathBuf>> {
        let home = match instance::locate() {
            Ok(home) => home,
            Err(Error::Misuse { subject: Subject::Option(_), .. }) => return Ok(Vec::new()),
            // Where nobody knows which place that would be, nobody knows that nothing is expected.
            Err(error) => match instance::wanted() {
                Ok(home) if !instance::has_keyring(&home) => return Ok(Vec::new()),
                _ => return Err(error),
            },
        };
        let machine = instance::behind_surely(&home)?;
        Ok(std::iter::once(home).chain(machine).collect())
    }

    /// The pins of paths in the instances at `homes`. No key is needed where there is none.
    ///
    /// # Errors
    /// [`Error::Io`] and those of [`Keyring::open`] where there is a pin; what is wrong with its file.
    pub fn pins_at(homes: &[PathBuf], paths: &[PathBuf]) -> Result<Vec<Pin>> {
        pellucid::sabotage!(Pins => return Ok(Vec::new()));
        let mut pins = Vec::new();
        for home in homes {
            if let Some(broker) = Broker::of(home)? {
                let query = Query { paths: paths.to_vec(), ..Query::default() };
                for bytes in broker.recall(&query)?.pins {
                    let pin = Pin::decode(&bytes).filter(|pin| paths.contains(&pin.path));
                    pins.push(pin.ok_or_else(|| broker.unfit())?);
                }
                continue;
            }
            let mut keyring = None;
            for path in paths {
                let file = pin_file(home, path);
                if !is_there(home, file.path())? {
                    continue;
                }
                let keyring = match &mut keyring {
                    Some(keyring) => keyring,
                    none => none.insert(Self::open(home)?),
                };
                pins.extend(keyring.read_pin(&file)?);
            }
        }
        Ok(pins)
    }

    fn read_pin(&self, file: &SealedFile) -> Result<Option<Pin>> {
        let Some(bytes) = self.read(file)? else { return Ok(None) };
        pellucid::sabotage!(OlderHeader => return Ok(Pin::decode(&bytes).map(|pin| Pin { sequence: 0, ..pin })));
        Pin::decode(&bytes).map(Some).ok_or_else(|| {
            Error::corrupt(Subject::File(file.path().to_owned()), "its fields do not fit")
        })
    }

    /// Changes the pin of `path`, or makes one; `change` gets the present one and returns the next. Nothing is written if
    /// that is the same, and the pin is removed if it is none.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written; what is wrong with the present one.
    pub fn change_pin(
        &self,
        path: &Path,
        change: impl FnOnce(Option<&Pin>) -> Option<Pin>,
    ) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        let file = pin_file(&self.home, path);
        let present = now.read_pin(&file)?;
        let next = change(present.as_ref());
        if next == present {
            return Ok(());
        }
        match next {
            Some(pin) => {
                instance::make_directory(&self.home.join("keyring/paths"))?;
                file.replace(&now.master_key, &pin.encode())
            }
            None => file.remove(),
        }
    }

    /// Removes the pin of `path`, if there is one, readable or not.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn unpin(&self, path: &Path) -> Result<()> {
        let (_change, _) = self.begin_change()?;
        pin_file(&self.home, path).remove()
    }

    /// All pins, each with its file: what is wrong with one hides no other.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory cannot be read.
    pub fn each_pin(&self) -> Result<Vec<(PathBuf, Result<Pin>)>> {
        let directory = self.home.join("keyring/paths");
        let paths = instance::names_if_there(&directory)?.into_iter();
        let paths = paths.map(|name| directory.join(name));
        let read =
            |name: &str| self.read_pin(&SealedFile::new(directory.join(name), Kind::Pin, name));
        Ok(found::each(paths, read))
    }

    /// Remembers that a rekey replaced the data encryption key with this commitment. It never seals again here.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn retire(&self, commitment: &[u8; 32]) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        let file = retired_file(&self.home, commitment);
        if is_there(&self.home, file.path())? {
            return Ok(());
        }
        instance::make_directory(&self.home.join("keyring/retired"))?;
        file.replace(&now.master_key, commitment)
    }

    /// Whether one of the instances at `homes` remembers the data encryption key with this commitment as retired. That
    /// there is such a file is enough, so no key is needed.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be looked for.
    pub fn is_retired_at(homes: &[PathBuf], commitment: &[u8; 32]) -> Result<bool> {
        pellucid::sabotage!(RetiredKeys => return Ok(false));
        for home in homes {
            if let Some(broker) = Broker::of(home)? {
                let query = Query { commitments: vec![*commitment], ..Query::default() };
                if broker.recall(&query)?.retired.contains(&true) {
                    return Ok(true);
                }
                continue;
            }
            if is_there(home, retired_file(home, commitment).path())? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(path: &str) -> Pin {
        Pin { path: path.into(), file_id: [7; 16], sequence: 5, sealed: true, ..Pin::default() }
    }

    #[test]
    fn a_pin_is_written_and_read_with_all_its_fields() {
        let full = Pin {
            may_off: true,
            dek: [4; 32],
            other: Some([1; 16]),
            next: Some([3; 16]),
            former: Some([5; 16]),
            retired: Some([2; 32]),
            plain: Some([6; 32]),
            has_pages: true,
            ..pin("/a\nb/\u{e4}.db")
        };
        for one in [pin("/app.db"), full, Pin::default()] {
            assert_eq!(Pin::decode(&one.encode()), Some(one));
        }
        let mut bytes = pin("/app.db").encode();
        bytes[0] = 2;
        assert_eq!(Pin::decode(&bytes), None, "a newer version");
        assert_eq!(Pin::decode(&bytes[..40]), None);
    }

    #[test]
    fn pins_are_found_by_path_and_outlive_a_new_master_key() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let homes = [home.to_owned()];
        let at = |path: &str| Keyring::pins_at(&homes, &[path.into()]).unwrap();
        assert_eq!(at("/app.db"), [], "there is no keyring");
        let (keyring, _) = Keyring::open_or_create(home).unwrap();
        keyring.change_pin(Path::new("/app.db"), |_| Some(pin("/app.db"))).unwrap();
        keyring.retire(&[3; 32]).unwrap();
        assert_eq!((at("/app.db"), at("/other.db")), (vec![pin("/app.db")], vec![]));
        let change = crate::Change::begin(home).unwrap();
        change.replace_service_key(None, false).unwrap();
        change.replace_database_key(Some(&keyring), None, None, false).unwrap();
        drop(change);
        assert_eq!(at("/app.db"), [pin("/app.db")]);
        assert!(Keyring::is_retired_at(&homes, &[3; 32]).unwrap());
        assert!(!Keyring::is_retired_at(&homes, &[4; 32]).unwrap());
        let keyring = Keyring::open(home).unwrap();
        assert_eq!(keyring.each_pin().unwrap().len(), 1);
        keyring.change_pin(Path::new("/app.db"), |_| None).unwrap();
        assert_eq!(at("/app.db"), []);
    }

    #[test]
    fn a_file_in_the_place_of_the_memory_is_an_error_and_a_home_that_is_a_file_is_none() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("home");
        let (keyring, _) = Keyring::open_or_create(&home).unwrap();
        for memory in ["paths", "retired", "databases"] {
            let _ = std::fs::remove_dir(home.join("keyring").join(memory));
            std::fs::write(home.join("keyring").join(memory), "").unwrap();
        }
        drop(keyring);
        let homes = [home.clone()];
        assert!(matches!(Keyring::pins_at(&homes, &["/b".into()]), Err(Error::Io { .. })));
        assert!(matches!(Keyring::is_retired_at(&homes, &[3; 32]), Err(Error::Io { .. })));
        assert!(matches!(Keyring::recall_at(&home, &[1; 16]), Err(Error::Io { .. })));
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        let homes = [file.join("home")];
        assert_eq!(Keyring::pins_at(&homes, &["/b".into()]).unwrap(), []);
        assert!(!Keyring::is_retired_at(&homes, &[3; 32]).unwrap());
        assert!(Keyring::recall_at(&homes[0], &[1; 16]).unwrap().is_none());
    }

    #[test]
    fn a_pin_under_another_name_or_cut_is_an_error_and_not_none() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let homes = [home.to_owned()];
        let (keyring, _) = Keyring::open_or_create(home).unwrap();
        keyring.change_pin(Path::new("/app.db"), |_| Some(pin("/app.db"))).unwrap();
        let (mine, other) = (pin_file(home, Path::new("/app.db")), pin_file(home, Path::new("/b")));
        std::fs::copy(mine.path(), other.path()).unwrap();
        assert!(matches!(Keyring::pins_at(&homes, &["/b".into()]), Err(Error::Unauthentic { .. })));
        std::fs::write(mine.path(), "").unwrap();
        assert!(matches!(
            Keyring::pins_at(&homes, &["/app.db".into()]),
            Err(Error::Corrupt { .. })
        ));
    }
}
