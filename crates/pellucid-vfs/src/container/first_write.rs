//! What an empty database file becomes with its first write, and what other new files learn of a
//! sealed one.

use pellucid::Error;
use pellucid_host::code::Outcome;
use pellucid_host::ffi;

use super::{Container, Phase};
use crate::newcomer;
use crate::newcomer::{Sealed, RESERVED, RESERVED_AT};
use crate::seal_request::{Birth, Request};
use crate::temp_file;
use pellucid::sector::SQLITE_MAGIC;

/// What happens to a page that SQLite writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Sealed,
    Plain,
    /// To a file of [`Phase::New`].
    Undecided,
}

impl Container {
    /// What happens to a page that SQLite writes now.
    pub fn written(&self) -> Written {
        match self.state.borrow().phase {
            Phase::Unborn(_) | Phase::Sealed => Written::Sealed,
            Phase::Plain => Written::Plain,
            Phase::New => Written::Undecided,
        }
    }

    /// Whether it is not decided yet what the empty file becomes.
    pub fn is_new(&self) -> bool {
        self.written() == Written::Undecided
    }

    /// Whether the file is sealed because a sealed database was open at its first write.
    pub fn is_copy(&self) -> bool {
        self.copied_with.borrow().is_some()
    }

    /// Whether copies of sealed databases may be plain in this file.
    pub fn allows_plain_copies(&self) -> bool {
        self.plain_copies
    }

    /// Refuses a page 1 of a backup, on its way to this plain database or its log, if it has
    /// reserved bytes. The rollback that follows is no backup.
    ///
    /// # Errors
    /// `SQLITE_PERM` after a line in the log.
    pub fn refuse_copied_over(&self, bytes: &[u8]) -> Outcome<()> {
        let is_first = bytes.starts_with(SQLITE_MAGIC) && bytes.get(RESERVED_AT) == Some(&RESERVED);
        if !is_first || self.plain_copies {
            return Ok(());
        }
        self.transaction.set_by_backup(false);
        Err(self.report(&newcomer::copied_over()))
    }

    /// Notes that the new file is a plain database: page 1 lies in it in clear.
    pub fn settle_plain(&self) {
        if self.is_new() {
            self.state.borrow_mut().phase = Phase::Plain;
        }
    }

    /// Watches an empty file again whose first transaction was rolled back.
    pub(super) fn watch_again(&self) {
        let mut state = self.state.borrow_mut();
        if self.was_new && matches!(state.phase, Phase::Plain) {
            state.phase = Phase::New;
        }
    }

    /// Lets the new file become a container with its first write, under the protectors of
    /// `source`. A line in the log says so.
    ///
    /// # Errors
    /// As [`Sealed::birth`].
    pub fn seal_like(&self, source: &Sealed) -> Outcome<()> {
        let typed = |error: Error| self.report(&error);
        let (birth, line) = source.birth().map_err(typed)?;
        self.expect(birth)?;
        *self.copied_with.borrow_mut() = Some(source.credentials());
        self.note(ffi::OK, &line);
        Ok(())
    }

    /// Lets the new file become a container with its first write, under the keys of `request`.
    ///
    /// # Errors
    /// As [`Birth::requested`].
    pub fn seal_as(&self, request: &Request) -> Outcome<()> {
        match Birth::requested(request).map_err(|error| self.report(&error))? {
            Some(birth) => self.expect(birth),
            None => Ok(()),
        }
    }

    fn expect(&self, birth: Birth) -> Outcome<()> {
        let keys = birth.keys().map_err(|error| self.report(&error))?;
        temp_file::saw(birth.first_header());
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Unborn(Box::new(birth));
        state.keys = Some(keys);
        Ok(())
    }

    /// Enters the database among those that new ones are sealed like, and that decide what temporary
    /// files are sealed under. A copy hands on the keys of
    /// its source, because its own connection names none.
    pub(super) fn announce(&self) {
        if let Some(header) = &self.state.borrow().header {
            temp_file::saw(header);
            let source = self.copied_with.borrow();
            let credentials = source.as_ref().unwrap_or(&self.credentials);
            let (at, path) = (self.address(), &self.path);
            newcomer::announce(at, path, header, credentials, self.plain_copies);
        }
    }
}
