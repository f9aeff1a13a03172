//! What a measurement will take, said before it is run.

use pellucid_lab_measure::error::Result;

/// What a measurement will take of time and disk.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    pub seconds: f64,
    /// On the file system of `--dir`, the most at once.
    pub bytes: u64,
}

impl Estimate {
    /// For `--estimate`: the seconds alone.
    ///
    /// # Errors
    /// None; as a measurement's end.
    pub fn print(&self) -> Result<bool> {
        println!("{:.0}", self.seconds);
        Ok(true)
    }
}
