//! The axis of a chart: how far it reaches, and which places of it have a label.

use super::words::length;
use super::Row;

/// A cost beyond this is an arrow at the edge if others lie within: its number is beside it.
const FAR: f64 = 2.0;
pub(super) const TICK: f64 = 12.0;

/// A number of an axis without what floating point adds to it.
pub(super) fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".into()
    } else {
        text.into()
    }
}

/// Logarithms that hold all intervals but those of far rows, and a little more. Where far rows are more than a tenth they are
/// no exception: the axis holds them all.
pub(super) fn reach(rows: &[Row]) -> (f64, f64) {
    let near = |row: &&Row| row.mean.is_some_and(|mean| mean.ln().abs() <= FAR.ln());
    let far = rows.iter().filter(|row| row.mean.is_some() && !near(row)).count();
    // What surprises is near: there a far row stays the exception.
    let few = far * 10 <= rows.len().max(10) || rows.iter().any(|row| row.star.is_some());
    let some_near = few && rows.iter().any(|row| near(&row));
    let mut reach = (-0.045_f64, 0.045_f64);
    for row in rows.iter().filter(|row| !some_near || near(row)) {
        let ends = row.ends.or(row.mean.map(|mean| (mean, mean)));
        let dots = row.dots.iter().copied().filter(|dot| *dot > 0.0);
        // An outlier is shown, as an interval's end is.
        let ends = ends.into_iter().chain(dots.map(|dot| (dot, dot)));
        for (low, high) in ends {
            // A wide interval may go beyond what is near, but not without end.
            let most = if some_near { 2.0 * FAR.ln() } else { 20.0 };
            reach = (reach.0.min(low.ln().max(-most)), reach.1.max(high.ln().min(most)));
        }
    }
    let air = (reach.1 - reach.0) * 0.06;
    (reach.0 - air, reach.1 + air)
}

type Label = fn(f64) -> String;

/// At most `most` places on the axis that is `plot` pixels long: percents of one step, or factors where it is long. No two
/// labels touch.
pub(super) fn ticks(low: f64, high: f64, most: usize, plot: f64) -> (Vec<f64>, Label) {
    let apart = |places: &[f64], label: Label| {
        places.windows(2).all(|two| {
            let [one, other] = [two[0], two[1]].map(|place| f64::from(length(&label(place), TICK)));
            (two[1] - two[0]) / (high - low) * plot > (one + other) / 2.0 + 8.0
        })
    };
    let within = |ratio: &f64| *ratio > 0.0 && (low..=high).contains(&ratio.ln());
    for step in [1, 2, 5, 10, 20, 25, 50] {
        let percents = (-100 / step..=200 / step).map(|k| k * step);
        let places = percents.map(|percent| 1.0 + f64::from(percent) / 100.0).filter(within);
        let places: Vec<f64> = places.map(f64::ln).collect();
        let short = high < 3.0_f64.ln() && low > 0.4_f64.ln();
        if short && places.len() <= most && apart(&places, percents_of) {
            return (places, percents_of);
        }
    }
    let factors = |of: &[f64]| -> Vec<f64> {
        let all = (-4..=4).flat_map(|power| of.iter().map(move |digit| digit * 10_f64.powi(power)));
        all.filter(within).map(f64::ln).collect()
    };
    let mut places = Vec::from([&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]].map(factors));
    for place in &mut places {
        place.sort_by(f64::total_cmp);
    }
    let fits = |places: &&Vec<f64>| places.len() <= most && apart(places, factor_of);
    let chosen = places.iter().find(fits).or(places.last());
    (chosen.cloned().unwrap_or_default(), factor_of)
}

fn percents_of(log: f64) -> String {
    match ((log.exp() - 1.0) * 100.0).round() {
        percent if percent > 0.0 => format!("+{percent} %"),
        percent if percent < 0.0 => format!("−{} %", -percent),
        _ => "0 %".into(),
    }
}

fn factor_of(log: f64) -> String {
    let ratio = log.exp();
    let digits = if ratio < 0.95 { 2 } else { 0 };
    format!("×{ratio:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    #[test]
    fn one_far_row_does_not_squeeze_the_others() {
        let (low, high) = reach(&[row(1.02, 1.0, 1.04), row(22.0, 21.0, 23.0)]);
        assert!(high < 0.1 && low < 0.0, "{low} {high}");
        let (_, high) = reach(&[row(22.0, 21.0, 23.0)]);
        assert!(high > 23.0_f64.ln());
        // Nothing measured still has an axis.
        assert!(reach(&[]).1 > 0.0);
    }

    #[test]
    fn an_axis_has_its_middle_and_not_too_many_places() {
        for (low, high) in [(-0.05, 0.05), (-0.2, 0.3), (-0.7, 1.0), (-3.0, 3.5), (-0.01, 7.0)] {
            for most in [5, 9] {
                let (places, label) = ticks(low, high, most, if most == 5 { 334.0 } else { 500.0 });
                assert!(places.len() <= most && places.len() >= 2, "{low} {high}: {places:?}");
                assert!(places.iter().any(|place| place.abs() < 1e-12), "{low} {high}");
                assert!(["0 %", "×1"].contains(&label(0.0).as_str()));
            }
        }
    }

    #[test]
    fn labels_of_an_axis_do_not_touch() {
        let (places, label) = ticks(-0.1, 0.68, 9, 300.0);
        let widths: i32 = places.iter().map(|place| length(&label(*place), TICK) + 8).sum();
        assert!(places.len() > 2 && widths < 300, "{places:?}");
        assert_eq!([0.6000000000000001, 2.0, 0.0, -0.0].map(plain), ["0.6", "2", "0", "0"]);
    }
}
