//! The commits of a log set, in the rows of its chunks of commits.
//!
//! Layout: docs/format.md, "Chunk". A commit's place in the list is what the pages of the set name it by.

use super::block::{ChainPlace, LogFacts};
use super::chunk::CHUNK_BYTES;
use super::header::is_readable;
use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::lsn::Lsn;

/// The most characters of the name of a mark.
pub const MOST_MARK_CHARACTERS: usize = 128;
/// The most bytes of it.
pub const MOST_MARK_BYTES: usize = 512;

/// Bytes of a row without the name of its mark.
const ROW_BYTES: usize = 23;
const FLAG_STEPPED_BACK: u8 = 1;

/// A commit of a log set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogCommit {
    /// Its number.
    pub lsn: Lsn,
    /// When it was, in microseconds since 1970.
    pub time: u64,
    /// Pages of the database behind it.
    pub pages: u32,
    /// Whether the clock had stepped back before it.
    pub stepped_back: bool,
    /// The name of its mark: no more than 128 characters, without control characters but line feed and tab.
    pub mark: Option<String>,
}

impl LogCommit {
    /// Encodes the first commits of `commits`, as many as one chunk has. Returns the rows and their number.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a commit that no reader takes.
    pub fn encode_chunk(commits: &[Self]) -> Result<(Vec<u8>, usize)> {
        let mut out = Vec::new();
        let mut count = 0;
        for commit in commits {
            let mark = commit.mark.as_deref().unwrap_or_default();
            if count > 0 && out.len() + ROW_BYTES + mark.len() > CHUNK_BYTES {
                break;
            }
            if commit.pages == 0 || (commit.mark.is_some() && !is_mark(mark)) {
                return Err(Error::misuse(
                    Subject::Commits,
                    "one has no pages, or a name of a mark that is empty, too long or has control characters",
                ));
            }
            out.extend_from_slice(&commit.lsn.encode());
            out.extend_from_slice(&commit.time.to_be_bytes());
            out.extend_from_slice(&commit.pages.to_be_bytes());
            out.push(if commit.stepped_back { FLAG_STEPPED_BACK } else { 0 });
            out.extend_from_slice(&(mark.len() as u16).to_be_bytes());
            out.extend_from_slice(mark.as_bytes());
            count += 1;
        }
        Ok((out, count))
    }

    /// Appends the `rows` commits in the content of a chunk to `commits`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if they are malformed, [`Error::Unsupported`] for a flag that is not known.
    pub fn parse_chunk(content: &[u8], rows: u32, commits: &mut Vec<Self>) -> Result<()> {
        let malformed = || Error::corrupt(Subject::Commits, "a row is malformed");
        let mut fields = Fields::new(content);
        let mut read = 0;
        while !fields.rest().is_empty() {
            let (commit, flags) = Self::parse(&mut fields).ok_or_else(malformed)?;
            let unknown = flags & !FLAG_STEPPED_BACK;
            if unknown != 0 {
                return Err(Error::unsupported(
                    Subject::Commits,
                    format!("flags {unknown} are not known to this version: a newer version of pellucid made it"),
                ));
            }
            commits.push(commit);
            read += 1;
        }
        match read == rows {
            true => Ok(()),
            false => Err(malformed()),
        }
    }

    fn parse(fields: &mut Fields<'_>) -> Option<(Self, u8)> {
        let (lsn, time) = (Lsn::of_word(fields.u64()?), fields.u64()?);
        let (pages, flags) = (fields.u32()?, fields.u8()?);
        let mark = match usize::from(fields.u16()?) {
            0 => None,
            bytes => {
                let mark = std::str::from_utf8(fields.take(bytes)?).ok()?;
                Some(Some(mark).filter(|mark| is_mark(mark))?.to_owned())
            }
        };
        let stepped_back = flags & FLAG_STEPPED_BACK != 0;
        (pages > 0).then_some((Self { lsn, time, pages, stepped_back, mark }, flags))
    }
}

/// Whether text can be the name of a mark.
pub(crate) fn is_mark(name: &str) -> bool {
    (1..=MOST_MARK_BYTES).contains(&name.len())
        && name.chars().count() <= MOST_MARK_CHARACTERS
        && is_readable(name)
}

/// Checks that `commits` are those of the log set that says `place` and `facts`.
///
/// # Errors
/// [`Error::Corrupt`], which says what does not fit.
pub fn check_commits(place: &ChainPlace, facts: &LogFacts, commits: &[LogCommit]) -> Result<()> {
    let corrupt = |cause: &'static str| Err(Error::corrupt(Subject::Commits, cause));
    if commits.len() as u64 != u64::from(facts.commits) {
        return corrupt("they are not as many as the set header says");
    }
    let mut before = place.first;
    for commit in commits {
        if commit.lsn <= before {
            return corrupt("their numbers do not grow");
        }
        if !(facts.first_time..=facts.last_time).contains(&commit.time) {
            return corrupt("one has a time that is not between those of the set header");
        }
        before = commit.lsn;
    }
    let times = commits.iter().map(|commit| commit.time);
    let times = times.clone().min().zip(times.max());
    if before != place.last || times.unwrap_or_default() != (facts.first_time, facts.last_time) {
        return corrupt("they end elsewhere than the set header says");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commits() -> Vec<LogCommit> {
        let commit = |at: u32, mark: Option<String>| LogCommit {
            lsn: Lsn::new(1 + at / 2, 3 + at),
            time: 100 + u64::from(at),
            pages: 7 + at,
            stepped_back: at == 1,
            mark,
        };
        let marks =
            [None, Some("before the import".into()), Some("ü".repeat(128)), Some("😀".repeat(128))];
        (0..).zip(marks).map(|(at, mark)| commit(at, mark)).collect()
    }

    fn parse(content: &[u8], rows: u32) -> Result<Vec<LogCommit>> {
        let mut read = Vec::new();
        LogCommit::parse_chunk(content, rows, &mut read).map(|()| read)
    }

    #[test]
    fn they_read_back_and_no_length_or_count_is_believed() {
        let all = commits();
        let (bytes, count) = LogCommit::encode_chunk(&all).unwrap();
        assert_eq!(count, all.len());
        assert_eq!(parse(&bytes, 4).unwrap(), all);
        assert_eq!(parse(&[], 0).unwrap(), []);
        for rows in [0, 3, 5, u32::MAX] {
            assert!(parse(&bytes, rows).is_err(), "{rows}");
        }
        for length in 0..bytes.len() {
            assert!(parse(&bytes[..length], 4).is_err(), "{length}");
        }
        // Each other byte is another list, or none.
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x80;
            assert!(parse(&changed, 4).map_or(true, |read| read != all), "byte {at}");
        }
        assert!(parse(&[0xff; 700], 1).is_err());
        let mut flagged = bytes.clone();
        flagged[20] = 2;
        assert!(matches!(parse(&flagged, 4), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn a_chunk_ends_at_a_row() {
        let one = LogCommit { pages: 1, mark: Some("x".repeat(100)), ..LogCommit::default() };
        let many = vec![one; 3 * (CHUNK_BYTES / (ROW_BYTES + 100)) + 1];
        let (mut rest, mut read, mut chunks) = (&many[..], Vec::new(), 0);
        while !rest.is_empty() {
            let (bytes, count) = LogCommit::encode_chunk(rest).unwrap();
            assert!(bytes.len() <= CHUNK_BYTES && count > 0);
            LogCommit::parse_chunk(&bytes, count as u32, &mut read).unwrap();
            rest = &rest[count..];
            chunks += 1;
        }
        assert!(read == many);
        assert_eq!(chunks, 4);
    }

    #[test]
    fn a_commit_that_no_reader_takes_is_not_written() {
        let with =
            |mark: &str| LogCommit { pages: 1, mark: Some(mark.into()), ..LogCommit::default() };
        let long = "x".repeat(129);
        for commit in [LogCommit::default(), with(""), with(&long), with("\x1b[2J")] {
            assert!(matches!(
                LogCommit::encode_chunk(std::slice::from_ref(&commit)),
                Err(Error::Misuse { .. })
            ));
        }
        for mark in [&long[..], "\x1b[2J"] {
            let (mut bytes, _) = LogCommit::encode_chunk(&[with("x")]).unwrap();
            bytes.truncate(ROW_BYTES);
            bytes[21..].copy_from_slice(&(mark.len() as u16).to_be_bytes());
            bytes.extend_from_slice(mark.as_bytes());
            assert!(matches!(parse(&bytes, 1), Err(Error::Corrupt { .. })));
        }
    }

    #[test]
    fn commits_of_another_set_do_not_fit() {
        let all = commits();
        let place = ChainPlace { fork: [1; 16], first: Lsn::new(1, 2), last: all[3].lsn };
        let facts = LogFacts { first_time: 100, last_time: 103, commits: 4, ..LogFacts::default() };
        check_commits(&place, &facts, &all).unwrap();
        let empty = ChainPlace { first: place.last, ..place };
        check_commits(&empty, &LogFacts::default(), &[]).unwrap();
        let changed = |change: fn(&mut Vec<LogCommit>)| {
            let mut changed = all.clone();
            change(&mut changed);
            changed
        };
        for wrong in [
            all[..3].to_vec(),
            changed(|all| all.swap(1, 2)),
            changed(|all| all[1].lsn = all[0].lsn),
            changed(|all| all[2].time = 99),
            changed(|all| all[2].time = 104),
            changed(|all| all[3].time = 102),
            changed(|all| all[3].lsn.frame += 1),
            changed(|all| all[0].lsn = Lsn::new(1, 2)),
        ] {
            assert!(matches!(check_commits(&place, &facts, &wrong), Err(Error::Corrupt { .. })));
        }
    }
}
