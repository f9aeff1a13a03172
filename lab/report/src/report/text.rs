//! How numbers are written for a reader.

use crate::statistics::Interval;

/// Above this a change is told as a factor.
const FACTOR: f64 = 4.0;

/// How the numbers of one estimate are written: a mean in percent beside an end that is a factor cannot be compared.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Factor,
    /// With so many digits behind the point.
    Percent(usize),
}

impl Unit {
    fn of(shares: &[f64]) -> Self {
        match shares.iter().any(|share| 1.0 + share >= FACTOR) {
            true => Self::Factor,
            false => {
                Self::Percent(decimals(shares.iter().map(|share| share.abs()).fold(0.0, f64::max)))
            }
        }
    }

    /// The bare number, with its sign or without.
    fn write(self, share: f64, sign: bool) -> String {
        match (self, sign) {
            // Of a time that takes a tenth, one digit would say nothing.
            (Self::Factor, _) if share < 0.0 => format!("{:.2}", 1.0 + share),
            (Self::Factor, _) => format!("{:.1}", 1.0 + share),
            (Self::Percent(digits), true) => signed(share, digits),
            (Self::Percent(digits), false) => format!("{:.digits$}", share.abs() * 100.0),
        }
    }

    fn with(self, number: &str) -> String {
        match self {
            Self::Factor => format!("×{number}"),
            Self::Percent(_) => format!("{number} %"),
        }
    }
}

/// A change as a share of its base: `+1.9 %`.
pub fn change(share: f64) -> String {
    let unit = Unit::of(&[share]);
    unit.with(&unit.write(share, true))
}

/// A change with its interval, all in one unit: `+1.9 % (−1.0 to +2.1)`, `×16.7 (16.1 to 17.3)`.
pub fn estimate(share: f64, low: f64, high: f64) -> String {
    let unit = Unit::of(&[share, low, high]);
    if (high - low).abs() < f64::EPSILON {
        return format!("{} (no spread)", change(share));
    }
    let [mean, low, high] = [share, low, high].map(|one| unit.write(one, true));
    format!("{} ({low} to {high})", unit.with(&mean))
}

/// An interval of ratios as a change: `+1.9 % (−1.0 to +2.1)`.
pub fn of_ratio(interval: &Interval) -> String {
    let Interval { mean, low, high, .. } = interval;
    estimate(mean - 1.0, low - 1.0, high - 1.0)
}

/// What a word such as `slower` is said with: `slower by 1.9 % (1.2 to 2.6)`, and of more than can be told in percent
/// `takes ×16.7 of the time (16.1 to 17.3)`.
pub fn by(word: &str, of: &str, interval: &Interval) -> String {
    let shares = [interval.mean, interval.low, interval.high].map(|ratio| ratio - 1.0);
    let unit = Unit::of(&shares);
    let [mean, low, high] = shares.map(|share| unit.write(share, false));
    let mean = unit.with(&mean);
    match unit {
        Unit::Factor => format!("takes {mean} of the {of} ({low} to {high})"),
        // Of what is less the end that is nearer to nothing comes first.
        Unit::Percent(_) if interval.high < 1.0 => format!("{word} by {mean} ({high} to {low})"),
        Unit::Percent(_) => format!("{word} by {mean} ({low} to {high})"),
    }
}

/// What a change is in time, of work that takes `base` seconds: `, 0.83 ms of 2.7 ms`.
pub fn in_time(base: f64, cost: &Interval) -> String {
    let ms = |seconds: f64| {
        let ms = seconds * 1e3;
        let digits = if ms.abs() < 1.0 { 2 } else { 1 };
        format!("{ms:.digits$} ms").replace('-', "−")
    };
    format!(", {} of {}", ms(base * (cost.mean - 1.0)), ms(base))
}

/// A value in the unit that its name ends with; bytes as MB.
pub fn value(what: &str, value: f64) -> String {
    match what {
        _ if what.ends_with("_bytes") => format!("{} MB", number(value / 1e6)),
        _ => number(value),
    }
}

/// A name with its unit as a reader sees it: `elapsed_s` is `elapsed, s`.
pub fn quantity(what: &str) -> String {
    if let Some(name) = what.strip_suffix("_per_s") {
        return format!("{}/s", spaced(name));
    }
    match what.rsplit_once('_') {
        Some((name, "bytes")) => format!("{}, MB", spaced(name)),
        Some((name, unit @ ("s" | "ms" | "us" | "ns"))) => format!("{}, {unit}", spaced(name)),
        _ => spaced(what),
    }
}

fn spaced(name: &str) -> String {
    name.split('_')
        .map(|word| match word {
            "cpu" => "CPU".into(),
            "mb" => "MB".into(),
            other => other.to_string(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Four digits at least, thousands apart.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 1000.0 || v == 0.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 0.1 => 3,
        v if v >= 0.001 => 5,
        _ => 8,
    };
    let plain = format!("{:.digits$}", value.abs());
    let (whole, part) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut text = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if !part.is_empty() {
        text = format!("{text}.{part}");
    }
    if value < 0.0 {
        format!("−{text}")
    } else {
        text
    }
}

/// `1.034`; of ratios from 100 on one digit.
pub fn ratio(ratio: f64) -> String {
    let digits = if ratio >= 100.0 { 1 } else { 3 };
    format!("{ratio:.digits$}")
}

/// When a session began, which its name says in milliseconds; else its name.
pub fn began(session: &str) -> String {
    let millis = session.split_once('-').and_then(|(millis, _)| millis.parse::<u64>().ok());
    millis.map_or_else(|| session.to_string(), |millis| moment(millis / 1000))
}

/// Midnight-based date and time of a moment, UTC.
pub fn moment(unix_s: u64) -> String {
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    let days = (unix_s / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (unix_s % 86_400 / 3600, unix_s % 3600 / 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// Digits behind the point of a percentage: below a tenth of a percent as many as leave three that say something, for
/// backups grow by thousandths.
fn decimals(share: f64) -> usize {
    match share.abs() {
        0.0 => 0,
        s if s < 0.001 => (2.0 - (s * 100.0).log10().floor()).clamp(0.0, 9.0) as usize,
        s if s < 1.0 => 1,
        _ => 0,
    }
}

fn signed(share: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", share.abs() * 100.0);
    match text.parse() {
        Ok(0.0) => text,
        _ if share < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_sign_and_enough_digits() {
        for (share, expected) in [
            (0.0191, "+1.9 %"),
            (-0.0041, "−0.4 %"),
            (0.0003, "+0.0300 %"),
            (-0.000_002_634, "−0.000263 %"),
            (0.0, "0 %"),
            (0.43, "+43.0 %"),
            (1.67, "+167 %"),
            (21.1, "×22.1"),
            (-0.5, "−50.0 %"),
        ] {
            assert_eq!(change(share), expected, "{share}");
        }
    }

    #[test]
    fn an_estimate_and_its_interval_are_of_one_unit() {
        let interval = |mean, low, high| Interval { mean, low, high, confidence: 0.95 };
        assert_eq!(of_ratio(&interval(1.0003, 0.99, 1.012)), "0.0 % (−1.0 to +1.2)");
        assert_eq!(of_ratio(&interval(3.8, 3.3, 4.4)), "×3.8 (3.3 to 4.4)");
        assert_eq!(of_ratio(&interval(1.000046, 1.000046, 1.000046)), "+0.00460 % (no spread)");
        assert_eq!(of_ratio(&interval(1.9, 0.6, 3.1)), "+90 % (−40 to +210)");
        let by = |mean, low, high| by("slower", "time", &interval(mean, low, high));
        assert_eq!(by(1.019, 1.012, 1.026), "slower by 1.9 % (1.2 to 2.6)");
        assert_eq!(by(0.97, 0.96, 0.979), "slower by 3.0 % (2.1 to 4.0)");
        assert_eq!(by(16.7, 9.1, 17.3), "takes ×16.7 of the time (9.1 to 17.3)");
    }

    #[test]
    fn numbers_are_written_for_reading() {
        for (value, expected) in [
            (1234567.0, "1,234,567"),
            (1000.0, "1,000"),
            (999.96, "1,000.0"),
            (12.346, "12.35"),
            (0.5, "0.500"),
            (0.0, "0"),
            (-12.0, "−12.00"),
        ] {
            assert_eq!(number(value), expected, "{value}");
        }
        assert_eq!(value("media_bytes", 1_590_000_000.0), "1,590 MB");
        assert_eq!(quantity("cpu_us_per_op"), "CPU us per op");
        assert_eq!(quantity("elapsed_s"), "elapsed, s");
        assert_eq!(quantity("mb_per_s"), "MB/s");
        assert_eq!(moment(1_795_288_145), "2026-11-21 19:09 UTC");
        assert_eq!(moment(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(began("1795288145123-77"), "2026-11-21 19:09 UTC");
        assert_eq!(began("s-1"), "s-1");
    }
}
