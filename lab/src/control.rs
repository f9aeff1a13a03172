//! Whether this machine tells apart what is apart, and nothing else: the same short session of one cell, again and again.
//!
//! Plain against plain has to come out as no difference, or as not resolved. A double of the shim that is slower by a known
//! share (lab/tests/double) has to be found, and a smaller share not to be taken for it. Intervals are of 99 %. How long a
//! session has to be for that, a pilot of plain against plain finds: it is the machine's affair.

use comfy_table::{presets::UTF8_FULL_CONDENSED, CellAlignment, Table};

use crate::arguments::{ControlledOptions, PurchaseOptions};
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::purchase;
use crate::report::figures::{Sense, Word};
use crate::statistics::{Interval, LogMean};

/// An interval of 95 % corrected for so many cells is one of 99 %.
const CELLS_OF_99_PERCENT: usize = 5;

/// What a session has to say.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wanted {
    /// No difference, or not resolved.
    Nothing,
    Slower,
    /// That it is not slower by this factor.
    Less(f64),
}

/// Measures all sessions, and says how many came out as they had to; false if too few.
///
/// # Errors
/// Of the first run that failed; [`Error::Invalid`] unless there is one cell and two sides.
pub fn measure(options: &ControlledOptions) -> Result<bool> {
    let one = &options.purchase;
    if one.plan()?.len() != 1 || one.common.sides.sides.len() != 2 {
        return Err(Error::invalid("control: one cell and two sides"));
    }
    if one.common.estimate {
        return estimate(options)?.print();
    }
    if let Some(percent) = options.tell_percent {
        return pilot(one, percent);
    }
    let wanted = match (options.slower, options.less_than_percent) {
        (true, _) => Wanted::Slower,
        (false, Some(percent)) => Wanted::Less(1.0 + percent / 100.0),
        (false, None) => Wanted::Nothing,
    };
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(["run", "time, mean (99 %)", "", ""]);
    let mut good = 0;
    for run in 0..options.runs {
        let mut one = one.clone();
        one.common.seed = one.common.seed.wrapping_add(run as u64);
        let time = session(&one)?.inverse().interval(CELLS_OF_99_PERCENT);
        let is_good = wanted.is_said_by(&time);
        good += usize::from(is_good);
        table.add_row([
            (run + 1).to_string(),
            format!("{:.4} ({:.4}..{:.4})", time.mean, time.low, time.high),
            Sense::Time.words(Word::of(&time)).into(),
            if is_good { "as it has to be" } else { "not as it has to be" }.into(),
        ]);
    }
    table.column_iter_mut().take(2).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    println!("{table}");
    println!(
        "{good} of {} runs {}, each of {} pairs of {} s; at least {} are wanted",
        options.runs,
        wanted.words(),
        one.common.rounds,
        one.seconds,
        options.at_least
    );
    Ok(good >= options.at_least)
}

/// The ratios of speeds of one session.
fn session(one: &PurchaseOptions) -> Result<LogMean> {
    let cells = purchase::run(one)?.end()?;
    let ratios = cells.first().map(|cell| cell.ratios.as_slice()).unwrap_or_default();
    LogMean::of(ratios).ok_or_else(|| Error::invalid("control: a session without an interval"))
}

/// Says how many pairs it takes to tell `percent` from nothing.
fn pilot(one: &PurchaseOptions, percent: f64) -> Result<bool> {
    let pilot = session(one)?;
    let pairs = pilot
        .pairs_to_tell(1.0 + percent / 100.0, CELLS_OF_99_PERCENT)
        .ok_or_else(|| Error::invalid("control: no number of pairs tells so little here"))?;
    println!(
        "pairs of {} s differ by {:.1} %; to tell {percent} % takes {pairs} pairs",
        one.seconds,
        pilot.spread() * 100.0
    );
    Ok(true)
}

/// What it will take.
///
/// # Errors
/// [`Error::Invalid`] for a name that no cell has.
pub fn estimate(options: &ControlledOptions) -> Result<Estimate> {
    let one = purchase::estimate(&options.purchase)?;
    let runs = if options.tell_percent.is_some() { 1 } else { options.runs };
    Ok(Estimate { seconds: one.seconds * runs as f64, ..one })
}

impl Wanted {
    /// Of an interval of times, side over base.
    fn is_said_by(self, time: &Interval) -> bool {
        match self {
            Self::Nothing => matches!(Word::of(time), Word::NoDifference | Word::NotResolved),
            Self::Slower => time.low > 1.0,
            Self::Less(factor) => time.high < factor,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Nothing => "say no difference, or not resolved".into(),
            Self::Slower => "find the side slower".into(),
            Self::Less(factor) => {
                format!("find the side slower by less than {:.1} %", (factor - 1.0) * 100.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn interval(ratios: &[f64]) -> Interval {
        LogMean::of(ratios).unwrap().inverse().interval(CELLS_OF_99_PERCENT)
    }

    /// Twenty ratios of speeds around `middle` with a noise of 2 %.
    fn noisy(middle: f64, seed: u64) -> Vec<f64> {
        ratios(20, middle, 0.02, seed)
    }

    /// So many ratios of speeds around `middle`, about normal.
    fn ratios(pairs: usize, middle: f64, spread: f64, seed: u64) -> Vec<f64> {
        let mut random = Random::of(&[seed]);
        let mut uniform = || random.below(1 << 30) as f64 / f64::from(1 << 30);
        let mut noise = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        (0..pairs).map(|_| middle * (spread * noise()).exp()).collect()
    }

    #[test]
    fn an_interval_of_99_percent_is_one() {
        let interval = interval(&[1.0, 1.01, 0.99, 1.0]);
        assert!((interval.confidence - 0.99).abs() < 1e-12, "{interval:?}");
    }

    /// 1,000 sessions each, so that the shares are those of the method and not of luck.
    #[test]
    fn what_is_not_there_is_not_found_and_3_percent_are() {
        let share = |middle: f64, wanted: Wanted| {
            let said = |seed: &u64| wanted.is_said_by(&interval(&noisy(middle, *seed)));
            (0..1000).filter(said).count()
        };
        assert!((980..1000).contains(&share(1.0, Wanted::Nothing)));
        assert!(share(1.0 / 1.03, Wanted::Slower) > 950);
        assert!(share(1.0 / 1.005, Wanted::Less(1.03)) > 950);
        assert!(share(1.0, Wanted::Slower) < 15);
        assert!(share(1.0 / 1.03, Wanted::Less(1.03)) < 15);
    }

    /// On a machine ten times as noisy too: so many pairs are enough, and not many more than enough.
    #[test]
    fn a_pilot_says_how_many_pairs_find_3_percent() {
        for spread in [0.02, 0.06, 0.2] {
            let (mut found, mut pairs) = (0, 0);
            for seed in 0..500 {
                let pilot = LogMean::of(&ratios(60, 1.0, spread, seed)).unwrap();
                let wanted = pilot.pairs_to_tell(1.03, CELLS_OF_99_PERCENT).unwrap();
                let session = ratios(wanted, 1.0 / 1.03, spread, 1000 + seed);
                found += usize::from(Wanted::Slower.is_said_by(&interval(&session)));
                pairs += wanted;
            }
            let enough = (4.23 * spread / 0.0296_f64).powi(2).max(10.0);
            let mean = pairs as f64 / 500.0;
            assert!(found >= 475, "{spread}: {found} of 500");
            assert!(
                (enough..1.5 * enough).contains(&mean),
                "{spread}: {mean}, {enough} are enough"
            );
        }
    }
}
