//! The frames that one transaction writes to the log: held until they are written with one call, and what is known of a write
//! that failed.

use std::path::PathBuf;

use pellucid::wal::FRAME_HEADER_BYTES;
use pellucid_host::code::{Code, Outcome};

use crate::frame_headers::FrameHeaders;
use crate::held::Held;
use crate::lower::{code_that_ends, Lower};
use crate::write_out::WriteOut;

/// The frames of the transaction that this connection has under way.
#[derive(Debug)]
pub struct Frames {
    /// Sealed frames that are not written yet, and their offset.
    pub held: Held,
    write_out: WriteOut,
    headers: FrameHeaders,
    /// First frame written in this transaction. From it on, a frame that does not open is an error
    /// even at recovery.
    from: u32,
    /// Last frame written in this transaction.
    to: u32,
    failed: Option<Failure>,
}

/// The error of frames that could not be written.
#[derive(Debug, Clone, Copy)]
pub struct Failure {
    pub code: Code,
    /// The offset of the first lost frame.
    pub from: u64,
    /// SQLite was given the error and rolls the transaction back.
    pub told: bool,
}

impl Failure {
    /// Makes the failure, with a code for which SQLite ends the transaction.
    fn new(code: Code, from: u64) -> Self {
        Self { code: code_that_ends(code), from, told: false }
    }
}

impl Frames {
    /// None yet, of the log at `path`.
    pub fn new(path: PathBuf) -> Self {
        Self {
            held: Held::default(),
            write_out: WriteOut::new(path),
            headers: FrameHeaders::default(),
            from: u32::MAX,
            to: 0,
            failed: None,
        }
    }

    /// How a write of them failed.
    pub fn failure(&self) -> Option<Failure> {
        self.failed
    }

    /// Notes that frames from the first held one on are lost, by `code`. Returns the code that SQLite gets.
    pub fn fail(&mut self, code: Code) -> Code {
        let failure = Failure::new(code, self.held.at());
        self.failed = Some(failure);
        failure.code
    }

    /// Records that SQLite was given the failed write's error. Until its next write it reads
    /// committed frames only.
    pub fn tell(&mut self) {
        if let Some(failure) = &mut self.failed {
            failure.told = true;
        }
    }

    /// Whether this transaction wrote a frame.
    pub fn has(&self, number: u32) -> bool {
        self.from <= number && number <= self.to
    }

    /// Whether a frame is one of this transaction, or goes on behind it.
    pub fn goes_on_at(&self, number: u32) -> bool {
        self.from <= number && number <= self.to.saturating_add(1)
    }

    /// Whether this transaction wrote the frame or one before it.
    pub fn is_behind(&self, number: u32) -> bool {
        number >= self.from
    }

    /// Whether this transaction wrote a frame or one behind it.
    pub fn reach(&self, number: u32) -> bool {
        number <= self.to
    }

    /// Adds a sealed frame, which is held, with its header in clear.
    pub fn sealed(&mut self, number: u32, header: Option<&[u8; FRAME_HEADER_BYTES]>) {
        self.from = self.from.min(number);
        self.to = self.to.max(number);
        if let Some(header) = header {
            self.headers.keep(number, header);
        }
    }

    /// The header of a frame of this transaction.
    pub fn header(&self, number: u32) -> Option<&[u8; FRAME_HEADER_BYTES]> {
        self.headers.get(number)
    }

    /// Forgets headers from a frame on.
    pub fn forget_headers_from(&mut self, number: u32) {
        self.headers.forget_from(number);
    }

    /// Writes the held frames.
    ///
    /// # Errors
    /// As [`super::WalFile::flush`].
    pub fn flush(&mut self, lower: Lower) -> Outcome<()> {
        match self.failed {
            Some(failure) if failure.told => return Ok(()),
            Some(failure) => return Err(failure.code),
            None => {}
        }
        if self.held.is_empty() {
            return Ok(());
        }
        let written = self.held.write(lower);
        let flushed = match written {
            Ok(()) => {
                self.write_out.wrote(self.held.at(), self.held.end());
                Ok(())
            }
            Err(code) => Err(self.fail(code)),
        };
        self.held.clear();
        flushed
    }

    /// Starts the kernel's write-out of the complete part of the log.
    pub fn begin_write_out(&mut self) {
        self.write_out.begin();
    }

    /// Ends the transaction. Returns whether a write of it had failed.
    pub fn end(&mut self) -> bool {
        let had_failed = self.failed.take().is_some();
        if had_failed {
            self.held.clear();
        }
        self.forget();
        had_failed
    }

    /// Forgets which frames were written.
    pub fn forget(&mut self) {
        self.from = u32::MAX;
        self.to = 0;
        self.headers.forget_from(0);
    }
}

#[cfg(test)]
mod tests {
    use pellucid_host::ffi;

    use super::*;

    #[test]
    fn a_failure_has_a_code_that_ends_the_transaction() {
        for (code, told) in [
            (ffi::FULL, ffi::FULL),
            (ffi::IOERR, ffi::IOERR),
            (ffi::IOERR_DATA, ffi::IOERR_DATA),
            (ffi::AUTH, ffi::IOERR_WRITE),
            (ffi::BUSY, ffi::IOERR_WRITE),
        ] {
            assert_eq!(Failure::new(Code(code), 0).code, Code(told));
        }
    }
}
