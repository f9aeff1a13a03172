//! Lengths of time and moments, as the lab writes them.

use std::time::Duration;

use time::OffsetDateTime;

/// `50 s`, `12 min`, `3 h 20 min`: rounded up.
pub fn length_of(seconds: f64) -> String {
    const MINUTE: u64 = 60;
    let seconds = seconds.max(0.0).ceil() as u64;
    let minutes = seconds.div_ceil(MINUTE);
    match minutes {
        _ if seconds < 2 * MINUTE => format!("{seconds} s"),
        0..120 => format!("{minutes} min"),
        _ => format!("{} h {:02} min", minutes / 60, minutes % 60),
    }
}

/// What time it will be: `Thu 03:20 UTC`.
pub fn clock_after(seconds: f64) -> String {
    let then = OffsetDateTime::now_utc() + Duration::from_secs_f64(seconds.max(0.0));
    let weekday = then.weekday().to_string();
    format!("{:.3} {:02}:{:02} UTC", weekday, then.hour(), then.minute())
}

/// What time it is, as part of a file's name: `20261122T093000Z`.
pub fn stamp() -> String {
    let now = OffsetDateTime::now_utc();
    let (date, clock) = (now.date(), now.time());
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_told_in_the_unit_that_fits() {
        let told = [0.0, 50.2, 119.0, 120.5, 3600.0, 7199.0, 12_000.0].map(length_of);
        assert_eq!(told, ["0 s", "51 s", "119 s", "3 min", "60 min", "2 h 00 min", "3 h 20 min"]);
    }

    #[test]
    fn times_have_one_form() {
        let (stamp, clock) = (stamp(), clock_after(100_000.0));
        assert!(
            stamp.len() == 16 && stamp.ends_with('Z') && stamp[8..].starts_with('T'),
            "{stamp}"
        );
        assert!(clock.len() == 13 && clock.ends_with(" UTC"), "{clock}");
    }
}
