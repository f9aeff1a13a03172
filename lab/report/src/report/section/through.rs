//! Processor time through one run, second by second.

use crate::record::Session;
use crate::report::chart::{Line, Stroke};
use crate::report::reading::Material;

/// A line through fewer points of a run's time shows nothing of it.
pub(super) const LEAST_POINTS: usize = 10;

/// Processor time through one run of each side.
#[derive(Debug)]
pub struct Through {
    pub title: String,
    /// Which line is which.
    pub key: String,
    pub lines: Vec<Line>,
}

impl Through {
    /// Of the newest session that has the series of `cell`, in its first round.
    pub(super) fn of(cell: &str, scenario: &str, material: &Material) -> Option<Self> {
        let of = |session: &Session, side: &str| -> Vec<(f64, f64)> {
            let mut points: Vec<(f64, f64)> = material
                .observations
                .iter()
                .filter(|one| one.session == session.session && one.round == 1)
                .filter(|one| one.cell == cell && one.side == side)
                .filter_map(|one| {
                    let second = one.what.strip_prefix("workers_second_")?;
                    let second: u32 = second.strip_suffix("_percent_cpu")?.parse().ok()?;
                    Some((f64::from(second) + 0.5, one.value))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        };
        let has = |session: &&Session| {
            session.scenario == scenario
                && !session.sides.is_empty()
                && session.sides.iter().all(|side| of(session, &side.side).len() >= LEAST_POINTS)
        };
        let with_series = material.sessions.iter().filter(has);
        let session = with_series.max_by(|a, b| a.session.cmp(&b.session))?;
        let strokes = [(Stroke::Dashed, "dashed"), (Stroke::Dotted, "dotted")];
        let last = session.sides.len() - 1;
        let (mut lines, mut key) = (Vec::new(), Vec::new());
        for (at, side) in session.sides.iter().enumerate() {
            let solid = (Stroke::Solid, "line");
            let (stroke, word) = *strokes.get(at).filter(|_| at < last).unwrap_or(&solid);
            lines.push(Line { points: of(session, &side.side), stroke });
            key.push(format!("{word}: {}", side.side));
        }
        let title = format!(
            "Processor time of the workers through one run, {cell}: percent of all processors"
        );
        Some(Self { title, key: key.join("; "), lines })
    }
}
