//! Cold runs: how a database gets out of the page cache before them.
//!
//! Whether it was out is proved elsewhere, by the bytes that the run had to fetch from the device. In a virtual machine
//! only this system's own cache is emptied: its host may still hold the file, which reports call guest cold.

use std::path::Path;

use clap::Args;

use crate::error::{Error, Result};
use crate::files::evict;

/// 3: page cache, and directory entries and inodes (kernel documentation, sysctl/vm, drop_caches).
const DROP: (&str, &str) = ("/proc/sys/vm/drop_caches", "3");
/// Why a run is no cold one where nobody can prove it.
pub const UNTOLD: &str =
    "the system does not tell what came from the device, so that no run can be called cold";

/// How cold a cold run is.
#[derive(Debug, Clone, Copy, Args)]
pub struct ColdOptions {
    /// For cold runs take everything out of the machine's page cache, not the database alone; only root may
    #[arg(long)]
    pub drop_caches: bool,
}

impl ColdOptions {
    /// Takes the file at `path` out of the page cache, or everything.
    ///
    /// # Errors
    /// [`Error::Io`] of the file; of the kernel's switch, which nobody but root may use.
    pub fn make_cold(self, path: &Path) -> Result<()> {
        evict(path)?;
        if self.drop_caches {
            // What is not written yet would stay.
            rustix::fs::sync();
            let (switch, words) = DROP;
            std::fs::write(switch, words)
                .map_err(Error::io(format!("{switch} (--drop-caches; only root may)")))?;
        }
        Ok(())
    }

    /// For the record.
    pub fn name(self) -> &'static str {
        match self.drop_caches {
            true => "drop_caches",
            false => "POSIX_FADV_DONTNEED",
        }
    }
}
