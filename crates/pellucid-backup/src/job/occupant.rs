//! The file that already has the name of new media. A backup replaces media, and no file that
//! somebody may still need.

use std::io::Read;
use std::path::Path;

use pellucid::header::REGION_BYTES;
use pellucid::media::MediaHeader;
use pellucid::message;
use pellucid::protector::KeyFile;
use pellucid::shown::Shown;
use pellucid::{Error, Result, Subject};
use pellucid_engine::inspect::{kind_of, Kind as Found};

/// The first bytes of keys and certificates besides Pellucid's own: Microsoft's private keys, and
/// DER (X.690, 8.1.3) as in certificates, PKCS#8 and PKCS#12.
const KEYS: [&[u8]; 5] =
    [&[0x1e, 0xf1, 0xb5, 0xb0], &[0x30, 0x80], &[0x30, 0x81], &[0x30, 0x82], &[0x30, 0x83]];
/// The mark of PEM (RFC 7468), which text may precede.
const PEM: &[u8] = b"-----BEGIN ";
/// The first bytes of SQLite's logs (SQLite file format, 3 and 4). Without its log a database loses
/// commits.
const LOGS: [&[u8]; 3] = [
    &[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7],
    &[0x37, 0x7f, 0x06, 0x82],
    &[0x37, 0x7f, 0x06, 0x83],
];

/// The kind of a file that a backup would replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupant {
    /// An empty file.
    Empty,
    /// Media, complete or not.
    Media,
    /// Any other file.
    Other,
}

impl Occupant {
    /// Reads the kind of the file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of(path: &Path) -> Result<Self> {
        let (start, _) = start_of(path)?;
        Ok(match start.is_empty() {
            true => Self::Empty,
            false if MediaHeader::begins(&start) => Self::Media,
            false => Self::Other,
        })
    }
}

/// Refuses to replace a database or keys, because a caller who names one has mistaken it for a
/// backup. With `only_media` also refuses every file that is not media: INIT keeps their header,
/// and only FORMAT makes new media of any file.
///
/// # Errors
/// [`Error::Misuse`], which names the file, or SQL Server's 3241.
pub fn refuse_to_replace(path: &Path, only_media: bool) -> Result<()> {
    let (start, is_whole) = start_of(path)?;
    let what = match kind_of(&start, false, is_whole) {
        Found::Empty | Found::NotADatabase if begins_with(&start, &LOGS) => "a log of a database",
        Found::Empty | Found::NotADatabase if are_keys(&start, is_whole) => {
            "a key or a certificate"
        }
        Found::Empty | Found::NotADatabase if start.starts_with(b"Pellucid ") => {
            "a file of pellucid's"
        }
        Found::Empty | Found::NotADatabase if only_media => {
            return Err(Error::message(message::NOT_MEDIA, &path.shown().to_string()));
        }
        Found::Empty | Found::NotADatabase => return Ok(()),
        _ => "a database",
    };
    let cause = format!(
        "it is {what}, and no backup: take another name, or remove it first if nobody needs it"
    );
    Err(Error::misuse(Subject::File(path.to_owned()), cause))
}

/// Checks that a file with the temporary name of media is the rest of an interrupted backup: media,
/// or not even their first word. A missing file is no error, because a running backup has just
/// renamed it.
///
/// # Errors
/// [`Error::Misuse`], which names the file, if it is any other file.
pub fn assert_left_over(path: &Path) -> Result<()> {
    let is_gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let is_file = match pellucid_files::paths::look_at_name(path) {
        Err(error) if is_gone(&error) => return Ok(()),
        found => found.is_ok_and(|found| found.is_file()),
    };
    let (start, is_whole) = match is_file.then(|| start_of(path)).transpose() {
        Err(Error::Io { source, .. }) if is_gone(&source) => return Ok(()),
        start => start?.unwrap_or_default(),
    };
    let is_begun = is_whole && MediaHeader::may_begin(&start);
    if is_file && (is_begun || MediaHeader::begins(&start)) {
        return Ok(());
    }
    Err(Error::misuse(
        Subject::File(path.to_owned()),
        "it has the name that a backup has until it is whole, and no backup of pellucid's has made it: move it away",
    ))
}

fn begins_with(start: &[u8], any: &[&[u8]]) -> bool {
    any.iter().any(|known| start.starts_with(known))
}

fn are_keys(start: &[u8], is_whole: bool) -> bool {
    let is_key_file = is_whole && KeyFile::parse(start).is_some();
    is_key_file || begins_with(start, &KEYS) || start.windows(PEM.len()).any(|part| part == PEM)
}

/// Reads the first bytes of a file, and whether they are all.
fn start_of(path: &Path) -> Result<(Vec<u8>, bool)> {
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let file = pellucid_files::regular::open(path).map_err(io)?;
    let is_whole = file.metadata().map_err(io)?.len() <= REGION_BYTES;
    let mut start = Vec::new();
    file.take(REGION_BYTES).read_to_end(&mut start).map_err(io)?;
    Ok((start, is_whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_may_need_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("m.bak");
        let media = MediaHeader::single([1; 16], false, false, 1).encode().unwrap();
        let mut torn = media.clone();
        torn[100] ^= 1;
        let mut pem = b"Bag Attributes\n".to_vec();
        pem.extend_from_slice(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIE");
        // What is there, whether INIT takes it, whether FORMAT does.
        let cases: [(&str, &[u8], bool, bool); 14] = [
            ("notes", b"somebody's notes", false, true),
            ("zeros", &[0; 30_000], false, true),
            ("SQL Server's", b"TAPE\0\0\x03\0", false, true),
            ("PEM", &pem, false, false),
            ("PVK", &[0x1e, 0xf1, 0xb5, 0xb0, 0, 0, 0, 0], false, false),
            ("DER", &[0x30, 0x82, 4, 1, 2, 1, 0], false, false),
            ("raw key", &[7; 32], false, false),
            ("key in digits", &[b'a'; 64], false, false),
            ("database", b"SQLite format 3\0\x10\0", false, false),
            ("journal", LOGS[0], false, false),
            ("log", LOGS[2], false, false),
            ("keyring", b"Pellucid key\0\0\0\0\0\x01", false, false),
            ("bundle", b"Pellucid bundle\0\0\x01", false, false),
            ("sealed", b"Pellucid sealed 1", false, false),
        ];
        for (what, content, init, format) in cases {
            std::fs::write(&path, content).unwrap();
            assert_eq!(Occupant::of(&path).unwrap(), Occupant::Other, "{what}");
            assert_eq!(refuse_to_replace(&path, true).is_ok(), init, "{what}");
            assert_eq!(refuse_to_replace(&path, false).is_ok(), format, "{what}");
            assert!(assert_left_over(&path).is_err(), "{what}");
        }
        for (what, content) in [("media", &media), ("damaged media", &torn)] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(Occupant::of(&path).unwrap(), Occupant::Media, "{what}");
            assert_left_over(&path).unwrap();
        }
        // A backup that was killed before its first write, or in it.
        for content in [&b""[..], b"Pellucid med"] {
            std::fs::write(&path, content).unwrap();
            assert_left_over(&path).unwrap();
        }
        std::fs::remove_file(&path).unwrap();
        // A backup that runs has given it its name since it was seen.
        assert_left_over(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(assert_left_over(&path).is_err(), "a link is nobody's left-over");
    }
}
