//! What the keyring expects at the database's path, asked at an opening and at locks.

use std::time::{Duration, Instant};

use pellucid::header::REGION_BYTES;
use pellucid::{Error, Subject};
use pellucid_host::code::Outcome;
use pellucid_host::ffi;
use pellucid_keyring::Pin;

use super::read_header::Failure;
use super::Container;
use crate::lost_log;
use crate::pins::Lesser;
use crate::seal_request::check_state;

/// How long a connection that stays open may go on under a key that was retired meanwhile. Each look is a system call, which a
/// transaction of some 20 us would notice.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

impl Container {
    /// Reads the header of a file of `size` bytes that is being opened, and tells what there is to tell of it.
    ///
    /// # Errors
    /// [`Failure`]: of the header, a typed error that is not in the log yet.
    pub fn begin(&self, size: u64) -> std::result::Result<(), Failure> {
        self.load_from(self.lower()?)?;
        self.check_pages(size)?;
        self.tell_of_lost_log()?;
        self.end_announced();
        Ok(())
    }

    /// Refuses a plain file where a container is expected. Another process may have put it there since it was opened.
    ///
    /// # Errors
    /// A code after a line in the log.
    pub fn refuse_lesser(&self) -> Outcome<()> {
        if self.is_sealing() {
            return Ok(());
        }
        let lower = self.lower()?;
        let hash = || lower.size().ok().and_then(|size| lower.sha256(size));
        self.expected.refuse_plain(Lesser::Plain, hash).map_err(|error| self.report(&error))
    }

    /// Refuses a file of `size` bytes that is a header alone, where the keyring has seen pages. Where there are some that it has
    /// not seen yet, it remembers them.
    ///
    /// # Errors
    /// A code after a line in the log.
    fn check_pages(&self, size: u64) -> Outcome<()> {
        let seen = self.seen_pages.get();
        if size > REGION_BYTES {
            if seen != Some(true) && self.expected.expect_pages(&self.path) {
                self.seen_pages.set(Some(true));
            }
            return Ok(());
        }
        // Another process may have made the database meanwhile.
        match self.lower()?.size()? {
            now if now > REGION_BYTES => Ok(()),
            _ => self.expected.refuse_cut().map_err(|error| self.report(&error)),
        }
    }

    /// Refuses a file without a page, where the keyring has seen some. SQLite never cuts a database so, but for one that it takes back as
    /// it is made.
    ///
    /// # Errors
    /// A code after a line in the log.
    pub fn refuse_cut(&self) -> Outcome<()> {
        match self.seen_pages.get() {
            Some(true) => self.expected.refuse_cut().map_err(|error| self.report(&error)),
            _ => Ok(()),
        }
    }

    /// Compares the header with the remembered state again before this connection writes. While the
    /// connection was idle, the header it knows may have become an older one that was put back.
    /// Costs nothing while units are being sealed. Asks the keyring at most each 50 ms whether a rekey has retired the key.
    ///
    /// # Errors
    /// A code after a line in the log.
    pub fn check_remembered(&self) -> Outcome<()> {
        let forbidden = {
            let state = self.state.borrow();
            let Some(header) = &state.header else { return Ok(()) };
            check_state(header).map_err(|error| self.report(&error))?;
            if self.looked.get().is_some_and(|looked| looked.elapsed() < BETWEEN_LOOKS) {
                return Ok(());
            }
            // A rekey of a copy may have retired the key meanwhile.
            self.expected.forbids_writing(header).map_err(|error| self.report(&error))?
        };
        self.looked.set(Some(Instant::now()));
        self.state.borrow_mut().forbidden = forbidden;
        Ok(())
    }

    /// Lets the keyring expect this connection's header at the database's path. The header is on disk.
    pub fn keep(&self) {
        if let (Some(header), Ok(pins)) = (self.header(), self.expected.pins()) {
            self.expected.keep(&header, &pins);
        }
    }

    pub(super) fn note_pins(&self, pins: &[Pin]) {
        self.announced.set(pins.iter().any(|pin| pin.plain.is_some() || pin.next.is_some()));
        self.seen_pages.set(pins.iter().map(|pin| pin.has_pages).max());
    }

    /// Takes back what a conversion or restore announced that is not under way any more: it would hold RESERVED.
    fn end_announced(&self) {
        if !self.announced.get() {
            return;
        }
        if let (Ok(pins), Ok(lower)) = (self.expected.pins(), self.lower()) {
            if !lower.is_reserved() {
                self.expected.end_announced(&pins);
            }
        }
    }

    /// Tells of a damaged log whose rest is kept beside the database, at each opening until that is accepted.
    ///
    /// # Errors
    /// A code, if the caller wishes that.
    fn tell_of_lost_log(&self) -> Outcome<()> {
        if !lost_log::is_kept(&self.path) {
            return Ok(());
        }
        let what = format!(
            "commits of a damaged log do not count and are kept in `{}`: {}",
            lost_log::kept(&self.path)
                .first()
                .map_or_else(String::new, |one| one.display().to_string()),
            lost_log::TO_DO
        );
        if self.is_strict_about_logs() {
            return Err(self.report(&Error::unauthentic(Subject::WalHeader, what)));
        }
        self.note(ffi::NOTICE, &what);
        Ok(())
    }

    /// Whether commits behind a damaged frame of the log are an error, by the caller's wish.
    pub fn is_strict_about_logs(&self) -> bool {
        self.expected.is_strict_about_logs()
    }
}
