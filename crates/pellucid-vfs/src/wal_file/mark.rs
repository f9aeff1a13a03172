//! The named mark of a commit is on disk before the frame with which the commit ends.

use pellucid::log_archive::MarkedFrame;
use pellucid::wal::{Run, Stamp};
use pellucid_host::code::Outcome;

use super::WalFile;
use crate::log_archive::Archive;
use crate::pool::WearKind;

impl WalFile {
    /// Whether the commit of the transaction under way has a mark.
    pub(super) fn is_marked(&self) -> bool {
        self.container.mark.borrow().is_some() && self.container.chain().is_some()
    }

    /// Puts the mark of the commit that ends with frame `number` into the archive, and syncs it.
    ///
    /// # Errors
    /// A code after a line in the log: the transaction is not committed then, because nothing would say later that a mark is missing.
    pub(super) fn keep_mark(&self, number: u32, run: &Run, stamp: Stamp) -> Outcome<()> {
        let Some(mark) = self.container.mark.borrow().clone() else { return Ok(()) };
        let sealed = self.container.seal_with(WearKind::Log, |keys, nonces| {
            mark.seal(keys, nonces, (run, stamp), number)
        })?;
        let put = Archive::open(self.container.path())
            .and_then(|archive| archive.put_mark(&MarkedFrame::of(run, number, stamp), &sealed));
        put.map_err(|error| self.container.report(&error))
    }
}
