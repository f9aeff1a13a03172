//! First encryption and decryption of a database in place, keeping the file's inode.
//!
//! A copy of the other kind is built beside the file while readers go on. Then, under EXCLUSIVE,
//! the first sector is replaced, which is the only commit point, and the rest is laid over the
//! file. From then on the next connection that may write can finish the work. Described in
//! docs/format.md, "Laying".

pub mod adopt;
pub mod decrypt;
pub mod encrypt;
pub mod original;
pub mod schema;
pub mod switch;
mod unfinished;

/// The step of a conversion, to show its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Building the copy; readers go on.
    Copying,
    /// Laying it over the file; every other connection waits.
    Laying,
}

/// The progress callback, called now and then with the step, the bytes done and the bytes in all.
pub type Progress<'a> = dyn FnMut(Stage, u64, u64) + 'a;
