//! What a database that nobody measured would take, by a line through the lengths that were.

use pellucid_lab_measure::error::{Error, Result};

use super::bench::Size;
use super::line::Line;
use super::{CHECKS, DECRYPT, ENCRYPT, PLAIN, SIDES};
use crate::experiment::notes::{Notes, Turn};

/// What each of the cells would take of a database that nobody measured, from a line through the sizes of each round. A
/// projection, and called so.
pub(super) fn project(
    notes: &mut Notes,
    sizes: &[Size],
    algorithms: &[&str],
    rounds: usize,
    gb: f64,
) -> Result<()> {
    let mut works: Vec<String> = CHECKS.iter().map(|check| format!("{check} {PLAIN}")).collect();
    for algorithm in algorithms {
        let all = [ENCRYPT, CHECKS[0], CHECKS[1], DECRYPT];
        works.extend(all.iter().map(|what| format!("{what} {algorithm}")));
    }
    for work in works {
        let cell = format!("projection to {gb} GB: {work}");
        for (place, side) in SIDES.into_iter().enumerate() {
            let of =
                |size: &Size| notes.values(&format!("{work}, {}", size.name), side, "elapsed_s");
            let measured: Vec<Vec<f64>> = sizes.iter().map(of).collect();
            for round in 1..=rounds {
                let points: Option<Vec<(f64, f64)>> = sizes
                    .iter()
                    .zip(&measured)
                    .map(|(size, seconds)| {
                        Some((size.bytes as f64 / 1e9, *seconds.get(round - 1)?))
                    })
                    .collect();
                let line = points.and_then(|points| Line::through(&points));
                let line = line.ok_or_else(|| Error::invalid(format!("{cell}: no line")))?;
                let turn = Turn { cell: &cell, round, place, side };
                let numbers = [
                    ("elapsed_s", line.at(gb)),
                    ("fixed_s", line.at(0.0)),
                    ("rise_s_per_gb", line.rise),
                    ("largest_residual_s", line.residual),
                ];
                notes.write(turn, numbers)?;
            }
        }
    }
    Ok(())
}
