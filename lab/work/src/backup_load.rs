//! Backups of a plain and of a sealed database, packed and not, while writers and readers go on.

use clap::Args;
use pellucid_lab_measure::error::Result;

use crate::estimate::Estimate;
use crate::load::{self, LoadOptions};
use crate::measurement::Measurement;
use crate::piece::{Piece, Scaled};
use crate::scenario::step::Step;

/// Names the command and the sessions.
const NAME: &str = "backup-load";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[
    Piece::new(NAME, NAME, Scaled::LoadMib(2048), &[]),
    Piece::new(
        "backup-load-delete",
        NAME,
        Scaled::LoadMib(2048),
        &["--journal", "DELETE", "--busy-timeout-ms", "10000"],
    ),
];

/// Backups under a constant load of writers and readers, of a plain and of a sealed database.
///
/// Example: lab backup-load --journal DELETE --busy-timeout-ms 10000
#[derive(Debug, Clone, Args)]
pub struct BackupLoad {
    #[command(flatten)]
    options: LoadOptions,
}

impl Measurement for BackupLoad {
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
        Ok(load::estimate(&self.options, &Step::backups()))
    }

    fn run(&self) -> Result<bool> {
        load::measure(NAME, &self.options, &Step::backups())
    }
}
