//! What a measurement will take, said before it is run.

use std::time::Duration;

use time::OffsetDateTime;

use crate::arguments::Command;
use crate::error::{Error, Result};
use crate::experiment::{
    acceleration, backup_matrix, backup_overhead, hummer, maintenance, side_effects,
};
use crate::{backup_speed, control, opening, purchase, scan_load, scan_speed, speedtest1, whole};

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    pub seconds: f64,
    /// On the file system of `--dir`, the most at once.
    pub bytes: u64,
}

impl Estimate {
    /// Of a command that measures.
    ///
    /// # Errors
    /// Of its own options; [`Error::Invalid`] for a command that measures nothing.
    pub fn of(command: &Command) -> Result<Self> {
        match command {
            Command::Purchase(options) => purchase::estimate(options),
            Command::Control(options) => control::estimate(options),
            Command::Whole(options) => Ok(whole::estimate(options)),
            Command::Speedtest1(options) => Ok(speedtest1::estimate(options)),
            Command::Opening(options) => Ok(opening::estimate(options)),
            Command::ScanLoad(options) => Ok(scan_load::estimate(options)),
            Command::BackupLoad(options) => Ok(scan_load::estimate_backups(options)),
            Command::ScanSpeed(options) => Ok(scan_speed::estimate(options)),
            Command::BackupSpeed(options) => backup_speed::estimate(options),
            Command::BackupMatrix(options) => backup_matrix::estimate(options),
            Command::BackupOverhead(options) => backup_overhead::estimate(options),
            Command::Hummer(options) => hummer::estimate(options),
            Command::Maintenance(options) => maintenance::estimate(options),
            Command::Acceleration(options) => acceleration::estimate(options),
            Command::SideEffects(options) => side_effects::estimate(options),
            _ => Err(Error::invalid("a command that measures nothing has no estimate")),
        }
    }

    /// For `--estimate`: the seconds alone.
    ///
    /// # Errors
    /// None; as a measurement's end.
    pub fn print(&self) -> Result<bool> {
        println!("{:.0}", self.seconds);
        Ok(true)
    }
}

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
