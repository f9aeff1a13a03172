//! The observations of a session while it runs, and the table at its end.

use comfy_table::{presets::UTF8_FULL_CONDENSED, CellAlignment, Table};

use crate::error::Result;
use crate::record::Observation;
use crate::session::Place;
use crate::statistics::LogMean;

const ELAPSED: &str = "elapsed_s";
const SPEED: &str = "ops_per_s";

/// A session that observes.
#[derive(Debug)]
pub struct Notes {
    pub place: Place,
    session: String,
    sides: Vec<String>,
    all: Vec<Observation>,
}

/// Which run it is.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    pub cell: &'a str,
    /// From 1; 0 is the warm-up.
    pub round: usize,
    pub place: usize,
    pub side: &'a str,
}

impl Notes {
    pub fn new(place: Place, session: String, sides: Vec<String>) -> Self {
        Self { place, session, sides, all: Vec::new() }
    }

    /// Writes numbers of a run.
    ///
    /// # Errors
    /// [`crate::error::Error::Io`]
    pub fn write<'w>(
        &mut self,
        turn: Turn<'_>,
        numbers: impl IntoIterator<Item = (&'w str, f64)>,
    ) -> Result<()> {
        for (what, value) in numbers {
            let observation = Observation {
                session: self.session.clone(),
                cell: turn.cell.into(),
                round: turn.round,
                place: turn.place,
                side: turn.side.into(),
                what: what.into(),
                value,
            };
            self.place.observe(observation.clone())?;
            self.all.push(observation);
        }
        Ok(())
    }

    /// The values of the rounds that count, in their order.
    pub fn values(&self, cell: &str, side: &str, what: &str) -> Vec<f64> {
        let wanted = |one: &&Observation| {
            one.round > 0 && (&*one.cell, &*one.side, &*one.what) == (cell, side, what)
        };
        self.all.iter().filter(wanted).map(|one| one.value).collect()
    }

    /// Prints the machine and the table, if nobody asked for records instead.
    ///
    /// # Errors
    /// As [`Place::finish`].
    pub fn finish(self, json: bool) -> Result<()> {
        let table = self.table();
        self.place.finish()?;
        if !json {
            println!("{table}");
        }
        Ok(())
    }

    /// Elapsed time of every cell and side, or speed where work goes on for a set time: mean, spread, and time over the
    /// base's.
    fn table(&self) -> Table {
        let mut table = Table::new();
        let base = self.sides.first().map(String::as_str).unwrap_or_default();
        table.load_preset(UTF8_FULL_CONDENSED).set_header([
            String::new(),
            "elapsed s,\nor per s: mean".into(),
            "deviation".into(),
            "min..max".into(),
            format!("time over {base}'s,\nmean (95 %)"),
            "CPU s".into(),
            "media MiB".into(),
        ]);
        let mut cells: Vec<&str> = Vec::new();
        for one in &self.all {
            if !cells.contains(&&*one.cell) {
                cells.push(&one.cell);
            }
        }
        cells.sort_unstable();
        for cell in cells {
            let has = |what| self.all.iter().any(|one| one.cell == cell && one.what == what);
            let timed = has(ELAPSED) || !has(SPEED);
            let (what, per_s) = if timed { (ELAPSED, "") } else { (SPEED, ", per s") };
            for side in &self.sides {
                let values = |what| self.values(cell, side, what);
                let elapsed = values(what);
                let ratios: Vec<f64> = elapsed
                    .iter()
                    .zip(self.values(cell, base, what))
                    .map(|(side, base)| if timed { side / base } else { base / side })
                    .collect();
                let over = match LogMean::of(&ratios).map(|mean| mean.interval(1)) {
                    _ if side == base => "-".into(),
                    Some(of) => format!("{:.3} ({:.3}..{:.3})", of.mean, of.low, of.high),
                    None => mean(&ratios).map_or("-".into(), |mean| format!("{mean:.3}")),
                };
                let shown = |number: Option<f64>| number.map_or_else(|| "-".into(), digits);
                let (least, most) = elapsed
                    .iter()
                    .fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
                table.add_row([
                    format!("{cell}: {side}{per_s}"),
                    shown(mean(&elapsed)),
                    shown(deviation(&elapsed)),
                    if elapsed.is_empty() {
                        "-".into()
                    } else {
                        format!("{}..{}", digits(least), digits(most))
                    },
                    over,
                    shown(mean(&values("cpu_s"))),
                    mean(&values("media_bytes"))
                        .map_or("-".into(), |bytes| format!("{:.2}", bytes / 1048576.0)),
                ]);
            }
        }
        table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
        table
    }
}

/// A statement may take microseconds.
fn digits(number: f64) -> String {
    if number.abs() < 0.1 {
        format!("{number:.6}")
    } else {
        format!("{number:.3}")
    }
}

/// `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Of a sample; `None` of fewer than two.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_are_those_of_a_sample() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(deviation(&[1.0, 2.0, 6.0]), Some(7.0_f64.sqrt()));
        assert_eq!((mean(&[]), deviation(&[1.0])), (None, None));
        assert_eq!((digits(12.3456), digits(0.000_123)), ("12.346".into(), "0.000123".into()));
    }
}
