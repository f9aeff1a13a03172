//! How numbers are written for a reader.

use crate::statistics::Interval;

/// Above this a change is told as a factor.
const FACTOR: f64 = 10.0;

/// A change as a share of its base: `+1.9 %`.
pub fn change(share: f64) -> String {
    if 1.0 + share >= FACTOR {
        return format!("×{:.1}", 1.0 + share);
    }
    format!("{} %", signed(share, decimals(share)))
}

/// The same without a sign, where a word says the direction.
pub fn amount(share: f64) -> String {
    if 1.0 + share >= FACTOR {
        return format!("×{:.1}", 1.0 + share);
    }
    format!("{:.*} %", decimals(share), share.abs() * 100.0)
}

/// The ends of an interval of changes: `-1.0 to +2.1`, or without signs of the same direction.
pub fn ends(low: f64, high: f64, bare: bool) -> String {
    let digits = decimals(low).max(decimals(high)).min(2);
    let one = |share: f64| match (bare, 1.0 + share >= FACTOR) {
        (_, true) => format!("×{:.1}", 1.0 + share),
        (true, _) => format!("{:.digits$}", share.abs() * 100.0),
        (false, _) => signed(share, digits),
    };
    let (low, high) = if bare && low < 0.0 { (high, low) } else { (low, high) };
    format!("{} to {}", one(low), one(high))
}

/// An interval of ratios as a change: `+1.9 % (-1.0 to +2.1)`.
pub fn of_ratio(interval: &Interval) -> String {
    let Interval { mean, low, high, .. } = interval;
    format!("{} ({})", change(mean - 1.0), ends(low - 1.0, high - 1.0, false))
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

/// Small changes need more digits: backups grow by hundredths of a percent.
fn decimals(share: f64) -> usize {
    match share.abs() {
        s if s < 0.001 => 2,
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
            (0.0003, "+0.03 %"),
            (0.0, "0.00 %"),
            (0.43, "+43.0 %"),
            (1.67, "+167 %"),
            (21.1, "×22.1"),
            (-0.5, "−50.0 %"),
        ] {
            assert_eq!(change(share), expected, "{share}");
        }
        assert_eq!(amount(-0.0191), "1.9 %");
        assert_eq!(ends(-0.01, 0.021, false), "−1.0 to +2.1");
        assert_eq!(ends(-0.04, -0.021, true), "2.1 to 4.0");
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
