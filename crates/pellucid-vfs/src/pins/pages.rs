//! A database that was seen with pages is never again its header alone: SQLite would take that for an empty database, and delete the
//! log beside it.

use std::io::Read;
use std::path::Path;

use pellucid::hash::hex;
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::beside;
use pellucid_keyring::Pin;

use super::{expected, Expectation};

const CUT: &str = "a header without pages: the file was cut";

impl Expectation {
    /// Refuses a file that was cut to its header, where one of the pins has seen pages, or where the caller names a file id,
    /// which no database has that is just being made.
    ///
    /// # Errors
    /// [`Error::Replaced`]; those of [`Expectation::pins`].
    pub(crate) fn refuse_cut(&self) -> Result<()> {
        if let [id, ..] = &self.ids[..] {
            let asked = format!("the database with the file id {} is asked for", hex(id));
            let cause = format!("{asked}, and there is {CUT}");
            return Err(Error::replaced(Subject::Container, cause));
        }
        match self.pins()?.iter().find(|pin| pin.has_pages) {
            Some(pin) => Err(expected(pin, CUT)),
            None => Ok(()),
        }
    }

    /// Remembers that the database has pages, and returns whether it does. Those of a transaction that a hot journal beside
    /// `path` takes back do not count.
    ///
    /// A keyring that cannot be written prevents no opening.
    pub(crate) fn expect_pages(&self, path: &Path) -> bool {
        if is_hot(&beside(path, "-journal")) {
            return false;
        }
        let seen = |pin: &Pin| Pin { has_pages: true, ..pin.clone() };
        self.change(|_, pin| pin.map(seen)).is_ok()
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
