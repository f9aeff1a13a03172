//! Reading the header: opened by the keys that are at hand, compared with what is expected at the path, and adopted.

use pellucid::header::Header;
use pellucid::sector::SQLITE_MAGIC;
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::copy_path;
use pellucid_files::trusted;
use pellucid_host::code::Outcome;
use pellucid_host::ffi;

use super::read_header::{Failure, ReadHeader};
use super::{Container, Phase, ATTEMPTS};
use crate::laying;
use crate::lower::Lower;

impl Container {
    /// Reads and authenticates the header.
    ///
    /// # Errors
    /// A code after a line in the log.
    pub fn load(&self) -> Outcome<()> {
        let lower = self.lower()?;
        self.load_from(lower).map_err(|failure| failure.report(&self.path))
    }

    pub(super) fn load_from(&self, lower: Lower) -> std::result::Result<(), Failure> {
        let _moment = trusted::Moment::begin();
        let known = self.state.borrow().keys.clone();
        let mut read = self.read_whole_header(lower)?;
        let mut attempt = 0;
        let (keys, pins) = loop {
            if self.expected.obeys_marks() {
                read.header.check_readable()?;
            }
            self.refuse_older(&read.header)?;
            self.over.map_or(Ok(()), |over| over.check(&read.header))?;
            let keys = self
                .credentials
                .unlock(&read.header, &read.bytes, read.copy, known.as_ref())
                .and_then(|keys| Ok((keys, self.expected.check(&read.header)?)));
            attempt += 1;
            match keys {
                // The keyring was read after the header; another process may have changed both in
                // between.
                Err(error) if attempt < ATTEMPTS => {
                    let again = self.read_whole_header(lower)?;
                    if again.bytes == read.bytes {
                        return Err(error.into());
                    }
                    read = again;
                }
                keys => break keys?,
            }
        };
        if read.first_damaged {
            self.note(ffi::CORRUPT, "header copy 0 is damaged; using copy 1");
        }
        if read.sector_damaged {
            self.note(ffi::CORRUPT, "sector 0 is damaged; the header behind it is whole");
        }
        if read.second_behind {
            // The header may not be on disk yet, and the keyring is never ahead of that.
            lower.sync(ffi::SYNC_NORMAL)?;
        }
        self.expected.keep(&read.header, &pins);
        self.note_pins(&pins);
        let forbidden = self.expected.forbids_writing(&read.header)?;
        let mut state = self.state.borrow_mut();
        state.forbidden = forbidden;
        let same = state
            .keys
            .as_ref()
            .is_some_and(|k| k.generation() == keys.generation() && k.file_id() == keys.file_id());
        if !same {
            self.transaction.pool().drop_reserved();
        }
        self.forget_log_sector();
        state.phase = Phase::Sealed;
        state.keys = Some(keys);
        state.header = Some(read.header);
        state.head = read.head;
        state.mend = read.first_damaged;
        state.behind = read.second_behind;
        drop(state);
        self.announce();
        Ok(())
    }

    fn read_whole_header(&self, lower: Lower) -> std::result::Result<ReadHeader, Failure> {
        let mut attempt = 0;
        loop {
            let read = self.read_header(lower)?;
            attempt += 1;
            // Another process may be writing the copy right now.
            if !read.first_damaged || attempt == ATTEMPTS {
                return Ok(read);
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn read_header(&self, lower: Lower) -> std::result::Result<ReadHeader, Failure> {
        match ReadHeader::read(lower) {
            Err(Failure::Typed(error)) => {
                let mut magic = [0; 16];
                lower.read(&mut magic, 0)?;
                if magic == *SQLITE_MAGIC {
                    return Err(was_decrypted().into());
                }
                // An unfinished laying has a sealed copy beside it; without that the file is
                // damaged.
                let has_copy = copy_path(self.path()).exists();
                if has_copy && laying::is_unfinished(lower, self.path())? {
                    return Err(was_interrupted().into());
                }
                Err(error.into())
            }
            read => read,
        }
    }

    /// Refuses a header with a lower sequence number than one this connection has read from the
    /// same container.
    fn refuse_older(&self, header: &Header) -> Result<()> {
        let state = self.state.borrow();
        let known = state.header.as_ref().filter(|known| known.file_id == header.file_id);
        match known {
            Some(known) if known.sequence > header.sequence => Err(Error::unauthentic(
                Subject::Container,
                format!(
                    "header {} was put back after header {} was seen",
                    header.sequence, known.sequence
                ),
            )),
            _ => Ok(()),
        }
    }
}

fn was_interrupted() -> Error {
    Error::misuse(
        Subject::Container,
        "an encryption of it was interrupted while this connection was open; open it again",
    )
}

pub(super) fn was_decrypted() -> Error {
    Error::misuse(
        Subject::Container,
        "it was decrypted while this connection was open; open it again",
    )
}
