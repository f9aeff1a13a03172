//! What every measurement is: options that say what it will take and that run it.

use std::fmt::Debug;

use pellucid_lab_measure::error::Result;

use crate::estimate::Estimate;
use crate::piece::Piece;

/// A measurement, as somebody asked for it: the options of its command.
///
/// Its type is in the list of this crate (`src/lib.rs`); commands, help, estimates and the pieces of `lab full` follow from that. Its doc
/// comment is the help of the command, and its arguments are those of `clap::Args`.
pub trait Measurement: Debug {
    /// Names the command, and in the records its sessions.
    fn name() -> &'static str
    where
        Self: Sized;

    /// What `lab full` runs of it, nothing unless it says so.
    fn pieces() -> &'static [Piece]
    where
        Self: Sized,
    {
        &[]
    }

    /// Whether only the estimate is wanted.
    fn only_estimates(&self) -> bool;

    /// Refuses options that are no measurement, before anything else is done.
    ///
    /// # Errors
    /// Of its options.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Says what it will take.
    ///
    /// # Errors
    /// Of its options.
    fn estimate(&self) -> Result<Estimate>;

    /// Measures and writes the records; false if what was asked for was not reached, or if somebody stopped it.
    ///
    /// # Errors
    /// Of the first run that failed, and of its options.
    fn run(&self) -> Result<bool>;
}

impl dyn Measurement {
    /// Does what was asked for: prints the estimate, or runs.
    ///
    /// # Errors
    /// As [`Measurement::check`], [`Measurement::estimate`] and [`Measurement::run`].
    pub fn perform(&self) -> Result<bool> {
        self.check()?;
        if self.only_estimates() {
            self.estimate()?.print()
        } else {
            self.run()
        }
    }
}
