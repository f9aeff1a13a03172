//! First encryption and decryption of a database in place, keeping the file's inode.
//!
//! A copy of the other kind is built beside the file while readers go on; then, under EXCLUSIVE, the
//! first sector is replaced (the only commit point) and the rest laid over the file. From then on any
//! opener can finish the work. Described in docs/format.md, "Laying".

pub mod decrypt;
pub mod encrypt;
pub mod original;
pub mod schema;
pub mod switch;

/// Which part of the work is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Building the copy; readers go on.
    Copying,
    /// Laying it over the file; everybody waits.
    Laying,
}

/// Told now and then how far the work is, in bytes.
pub type Progress<'a> = dyn FnMut(Stage, u64, u64) + 'a;
