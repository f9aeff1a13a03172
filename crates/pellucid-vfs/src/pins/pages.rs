//! A database that was seen with pages is never again its header alone: SQLite would take that for an empty database, and delete the
//! log beside it.

use std::io::Read;
use std::path::Path;

use pellucid::Result;
use pellucid_files::paths::beside;
use pellucid_keyring::Pin;

use super::{expected, Expectation};

impl Expectation {
    /// Refuses a file that was cut to its header, where one of the pins has seen pages.
    ///
    /// # Errors
    /// [`pellucid::Error::Replaced`]; those of [`Expectation::pins`].
    pub(crate) fn refuse_cut(&self) -> Result<()> {
        match self.pins()?.iter().find(|pin| pin.has_pages) {
            Some(pin) => Err(expected(pin, "a header without pages: the file was cut")),
            None => Ok(()),
        }
    }

    /// Remembers that the database has pages. Those of a transaction that a hot journal beside `path` takes back do not count.
    ///
    /// A keyring that cannot be written prevents no opening.
    pub(crate) fn expect_pages(&self, path: &Path) {
        if !is_hot(&beside(path, "-journal")) {
            let seen = |pin: &Pin| Pin { has_pages: true, ..pin.clone() };
            let _ = self.change(|_, pin| pin.map(seen));
        }
    }
}

/// Whether a journal begins as one that SQLite would play back. One that cannot be read may be.
fn is_hot(journal: &Path) -> bool {
    let mut magic = [0; pellucid::journal::MAGIC.len()];
    match pellucid_files::regular::open(journal) {
        Ok(mut file) => file.read_exact(&mut magic).is_ok() && magic != [0; 8],
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}
