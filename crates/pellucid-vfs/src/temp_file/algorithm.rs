//! Which algorithm seals temporary files: AEGIS_256 while every database that this process has opened sealed has it.
//!
//! Content of a database that was put under AES lies under AES everywhere. Where it went in a process is not known: an
//! application reads it and writes it into another connection's temporary table. So the first database of another algorithm
//! decides for good, also after it was closed or detached, and for files that are open.

use std::sync::atomic::{AtomicU8, Ordering};

use pellucid::header::Header;
use pellucid::Algorithm;

/// No sealed database was opened.
const NONE: u8 = 0;
/// Databases under AEGIS_256 and no others.
const AEGIS: u8 = 1;
/// One under another algorithm. Nothing follows it.
const OTHER: u8 = 2;

/// What was opened. A forked child has it of its parent, with the parent's content.
#[derive(Debug)]
pub(super) struct Seen(AtomicU8);

static SEEN: Seen = Seen::new();

impl Seen {
    const fn new() -> Self {
        Self(AtomicU8::new(NONE))
    }

    /// Counts a database. One key of another algorithm suffices, while a rekey is under way as well.
    fn saw(&self, header: &Header) {
        let aegis = header.deks.iter().all(|row| row.algorithm == Algorithm::Aegis256);
        // Only upwards.
        self.0.fetch_max(if aegis { AEGIS } else { OTHER }, Ordering::SeqCst);
    }

    fn algorithm(&self) -> Algorithm {
        match self.0.load(Ordering::SeqCst) {
            AEGIS => Algorithm::Aegis256,
            _ => Algorithm::Aes256,
        }
    }
}

/// Counts a database that is opened or begun, before the first byte of its content is read or written.
pub fn saw(header: &Header) {
    SEEN.saw(header);
}

/// The algorithm of the next block of a temporary file.
pub fn algorithm() -> Algorithm {
    SEEN.algorithm()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal_request::Birth;

    #[test]
    fn one_database_of_another_algorithm_decides_for_good() {
        let header = |algorithm| Birth::new(algorithm, &[]).unwrap().header(4096).unwrap();
        let (aegis, aes) = (header(Algorithm::Aegis256), header(Algorithm::Aes128));
        let seen = Seen::new();
        assert_eq!(seen.algorithm(), Algorithm::Aes256, "nothing is sealed yet");
        seen.saw(&aegis);
        seen.saw(&aegis);
        assert_eq!(seen.algorithm(), Algorithm::Aegis256);
        seen.saw(&aes);
        assert_eq!(seen.algorithm(), Algorithm::Aes256);
        seen.saw(&aegis);
        assert_eq!(seen.algorithm(), Algorithm::Aes256, "for good");

        let seen = Seen::new();
        let mut between = header(Algorithm::Aegis256);
        between.deks.extend(aes.deks);
        seen.saw(&between);
        assert_eq!(seen.algorithm(), Algorithm::Aes256, "a rekey that has not ended");
    }
}
