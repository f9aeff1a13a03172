//! Encryption switched on and off, keys and algorithms changed, while writers and readers go on.

use clap::Args;
use pellucid_lab_measure::error::Result;

use crate::estimate::Estimate;
use crate::load::{self, LoadOptions};
use crate::measurement::Measurement;
use crate::piece::{Piece, Scaled};
use crate::scenario::step::Step;

/// Names the command and the sessions.
const NAME: &str = "scan-load";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[
    Piece::new(NAME, NAME, Scaled::LoadMib(2048), &[]),
    Piece::new("scan-load-delete", NAME, Scaled::LoadMib(2048), &["--journal", "DELETE"]),
    Piece::new(
        "scan-load-3des",
        NAME,
        Scaled::LoadMib(256),
        &["--algorithms", "TRIPLE_DES_3KEY,AES_256"],
    ),
];

/// Keys and algorithms changed under a constant load of writers and readers; the control is a plain rewrite.
///
/// Example: lab scan-load --journal DELETE
#[derive(Debug, Clone, Args)]
pub struct ScanLoad {
    #[command(flatten)]
    options: LoadOptions,
}

impl Measurement for ScanLoad {
    fn name() -> &'static str {
        NAME
    }

    fn pieces() -> &'static [Piece] {
        PIECES
    }

    fn only_estimates(&self) -> bool {
        self.options.common.estimate
    }

    fn estimate(&self) -> Result<Estimate> {
        Ok(load::estimate(&self.options, &Step::scans(&self.options.algorithms)))
    }

    fn run(&self) -> Result<bool> {
        load::measure(NAME, &self.options, &Step::scans(&self.options.algorithms))
    }
}
