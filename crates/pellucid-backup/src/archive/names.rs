//! What the sets of a place are called. Described in docs/format.md, "Archived sets".

use pellucid::hash::hex;
use pellucid::lsn::Lsn;

/// The end of the name of a log set.
const LOG: &str = ".log";
/// That of a full set that the archiver has made.
pub const FULL: &str = ".full";
/// Digits of an LSN (numeric(25,0)).
const LSN_DIGITS: usize = 25;
const EPOCH_DIGITS: usize = 10;

/// The name of a log set, by what it goes on behind. Who ships the same commits twice, or a copy of the database that went on by
/// itself, meets the name that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogName {
    /// It goes on behind this commit.
    pub first: Lsn,
    /// The last one of a merged set.
    pub last: Option<Lsn>,
    /// The epoch of a branch: it goes on behind a commit that another set already goes on behind.
    pub branch: Option<u32>,
}

impl LogName {
    /// Of commits as they come.
    pub fn of(first: Lsn, branch: Option<u32>) -> Self {
        Self { first, last: None, branch }
    }

    /// Of a set that several have become.
    pub fn merged(first: Lsn, last: Lsn, branch: Option<u32>) -> Self {
        Self { first, last: Some(last), branch }
    }

    /// Its text.
    pub fn text(&self) -> String {
        let mut text = digits(self.first);
        if let Some(last) = self.last {
            text = format!("{text}-{}", digits(last));
        }
        if let Some(epoch) = self.branch {
            text = format!("{text}-b{epoch:0EPOCH_DIGITS$}");
        }
        text + LOG
    }

    /// From its text; none for another file's.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_suffix(LOG)?.split('-').peekable();
        let first = lsn(parts.next()?)?;
        let last = parts.next_if(|part| !part.starts_with('b'));
        let branch = parts.next();
        if parts.next().is_some() {
            return None;
        }
        let name = Self {
            first,
            last: last.map(lsn).transpose_some()?,
            branch: branch.map(epoch).transpose_some()?,
        };
        (name.text() == text).then_some(name)
    }
}

/// `Option<Option<T>>`, where none within is none of all.
trait TransposeSome<T> {
    fn transpose_some(self) -> Option<Option<T>>;
}

impl<T> TransposeSome<T> for Option<Option<T>> {
    fn transpose_some(self) -> Option<Option<T>> {
        match self {
            None => Some(None),
            Some(None) => None,
            Some(found) => Some(found),
        }
    }
}

fn digits(lsn: Lsn) -> String {
    format!("{:0LSN_DIGITS$}", lsn.numeric())
}

fn lsn(text: &str) -> Option<Lsn> {
    match text.len() == LSN_DIGITS {
        true => Lsn::of_numeric(text.parse().ok()?),
        false => None,
    }
}

fn epoch(text: &str) -> Option<u32> {
    text.strip_prefix('b')?.parse().ok()
}

/// The folder of a chain.
pub fn folder_of_fork(folder: &str, fork: &[u8; 16]) -> String {
    format!("{folder}/{}", hex(fork))
}

/// The folder of a database: its name, as far as each store takes it, and the beginning of its file id.
pub fn folder_of_database(name: &str, file_id: &[u8; 16]) -> String {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let safe: String =
        name.chars().take(64).map(|letter| if is_safe(letter) { letter } else { '_' }).collect();
    format!("{}-{}", safe.trim_start_matches('.'), &hex(file_id)[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_reads_back_and_they_sort_as_their_commits() {
        let (one, two) = (Lsn::new(3, 7), Lsn::new(12, 1));
        let names = [
            LogName::merged(one, two, Some(4)),
            LogName::merged(one, two, None),
            LogName::of(one, Some(4)),
            LogName::of(one, None),
            LogName::of(two, None),
        ];
        for name in names {
            assert_eq!(LogName::parse(&name.text()), Some(name), "{}", name.text());
        }
        let texts: Vec<_> = names.iter().map(LogName::text).collect();
        assert!(texts.is_sorted(), "{texts:?}");
        assert_eq!(texts[3], "0000000003000000000700001.log");
        for other in ["", ".log", "1.log", "0000000003000000000700001", "x.full"] {
            assert_eq!(LogName::parse(other), None, "{other}");
        }
        for more in ["-", "-b", "-b1", "-b0000000004-b0000000004", "x", "-1"] {
            let other = format!("0000000003000000000700001{more}.log");
            assert_eq!(LogName::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn a_folder_is_a_name_that_each_store_takes() {
        let folder = folder_of_database("../a b/ü", &[0xab; 16]);
        assert_eq!(folder, "_a_b__-abababababababab");
        assert_eq!(folder_of_fork("a", &[1; 16]), format!("a/{}", "01".repeat(16)));
    }
}
