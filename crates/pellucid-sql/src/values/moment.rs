//! Dates and times: a day from year 1 to 9999 and 100-nanosecond ticks within it.

mod parse;
mod styles;

use time::{Date, Month};

use crate::values::types::SqlType;

pub(crate) use styles::is_style;

/// Ticks of a second.
pub const TICKS_SECOND: i64 = 10_000_000;
/// Ticks of a day.
pub const TICKS_DAY: i64 = 86_400 * TICKS_SECOND;

/// What a second of a datetime is counted in.
const DATETIME_SECOND: i64 = 300;

/// A day and the time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// The day.
    pub date: Date,
    /// Ticks since midnight, below [`TICKS_DAY`].
    pub ticks: i64,
}

/// Names of months, as styles and DATENAME print them.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Names of days, Sunday first.
pub const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl Moment {
    /// A day at midnight; `None` if there is no such day from year 1 to 9999.
    pub fn new(year: i64, month: i64, day: i64) -> Option<Self> {
        let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
        let year = i32::try_from(year).ok().filter(|year| (1..=9999).contains(year))?;
        let date = Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()?;
        Some(Self { date, ticks: 0 })
    }

    /// 1900-01-01, which is 0 as a datetime and the day of a time.
    pub fn epoch() -> Self {
        Self::of_days(0, 0).unwrap_or(Self { date: Date::MIN, ticks: 0 })
    }

    /// Days since 1900-01-01 and ticks, which may be more than a day has.
    pub fn of_days(days: i64, ticks: i64) -> Option<Self> {
        const JULIAN_1900: i64 = 2_415_021;
        let days = days.checked_add(ticks.div_euclid(TICKS_DAY))?.checked_add(JULIAN_1900)?;
        let date = Date::from_julian_day(i32::try_from(days).ok()?).ok()?;
        (1..=9999).contains(&date.year()).then(|| Self { date, ticks: ticks.rem_euclid(TICKS_DAY) })
    }

    /// Days since 1900-01-01.
    pub fn days(self) -> i64 {
        i64::from(self.date.to_julian_day()) - 2_415_021
    }

    /// With a time of day; `None` if there is no such time.
    pub fn at(self, hour: i64, minute: i64, second: i64, ticks: i64) -> Option<Self> {
        let fits = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..TICKS_SECOND).contains(&ticks);
        fits.then(|| {
            let seconds = hour * 3600 + minute * 60 + second;
            Self { ticks: seconds * TICKS_SECOND + ticks, ..self }
        })
    }

    /// Of the system's clock or any other.
    pub fn of_time(time: time::PrimitiveDateTime) -> Option<Self> {
        let (hour, minute, second, nanos) = time.as_hms_nano();
        let [year, month, day] =
            [i64::from(time.year()), i64::from(u8::from(time.month())), time.day().into()];
        Self::new(year, month, day)?.at(
            hour.into(),
            minute.into(),
            second.into(),
            i64::from(nanos / 100),
        )
    }

    /// Year, month, day.
    pub fn ymd(self) -> (i64, i64, i64) {
        let (year, month, day) = self.date.to_calendar_date();
        (year.into(), u8::from(month).into(), day.into())
    }

    /// Hour, minute, second, ticks.
    pub fn hms(self) -> (i64, i64, i64, i64) {
        let seconds = self.ticks / TICKS_SECOND;
        (seconds / 3600, seconds / 60 % 60, seconds % 60, self.ticks % TICKS_SECOND)
    }

    /// The time of day as a datetime counts it, in 1/300 of a second.
    fn three_hundredths(self) -> i64 {
        (self.ticks * DATETIME_SECOND + TICKS_SECOND / 2) / TICKS_SECOND
    }

    /// The same of a datetime to the tick, of whose thirds of milliseconds its text has none.
    #[must_use]
    pub fn exact(self) -> Self {
        let ticks =
            (self.three_hundredths() * TICKS_SECOND + DATETIME_SECOND / 2) / DATETIME_SECOND;
        Self { ticks, ..self }
    }

    /// Days and the part of a day since 1900-01-01, of a datetime or smalldatetime.
    pub fn to_float(self) -> f64 {
        let day = (86_400 * DATETIME_SECOND) as f64;
        self.days() as f64 + self.three_hundredths() as f64 / day
    }

    /// As precise as a type is; `None` if the type has no such day.
    pub fn rounded(self, to: SqlType) -> Option<Self> {
        let to_digits = |digits: u8| {
            let unit = 10_i64.pow(u32::from(7 - digits.min(7)));
            (self.ticks + unit / 2) / unit * unit
        };
        match to {
            SqlType::Date => Some(Self { ticks: 0, ..self }),
            SqlType::Time(digits) => {
                Some(Self { ticks: to_digits(digits) % TICKS_DAY, ..Self::epoch() })
            }
            SqlType::SmallDateTime => {
                // As of a datetime: 29.998 seconds are rounded down, 29.999 up.
                let minutes =
                    (self.three_hundredths() + 30 * DATETIME_SECOND) / (60 * DATETIME_SECOND);
                let rounded = Self::of_days(self.days(), minutes * 60 * TICKS_SECOND)?;
                (0..65_536).contains(&rounded.days()).then_some(rounded)
            }
            SqlType::DateTime => {
                let millis = (self.three_hundredths() * 20 + 3) / 6;
                let rounded = Self::of_days(self.days(), millis * 10_000)?;
                (rounded.date.year() >= 1753).then_some(rounded)
            }
            SqlType::DateTime2(digits) => {
                Self::of_days(self.days(), to_digits(digits)).or(Some(Self {
                    ticks: TICKS_DAY - 10_i64.pow(u32::from(7 - digits.min(7))),
                    ..self
                }))
            }
            _ => None,
        }
    }

    /// As it travels through SQLite.
    pub fn to_iso(self, of: SqlType) -> String {
        let (year, month, day) = self.ymd();
        let date = format!("{year:04}-{month:02}-{day:02}");
        match of {
            SqlType::Date => date,
            SqlType::Time(digits) => self.clock(digits),
            SqlType::SmallDateTime => format!("{date} {}", self.clock(0)),
            SqlType::DateTime => format!("{date} {}", self.clock(3)),
            SqlType::DateTime2(digits) => format!("{date} {}", self.clock(digits)),
            _ => format!("{date} {}", self.clock(7)),
        }
    }

    /// `hh:mm:ss.fff`
    pub fn clock(self, digits: u8) -> String {
        let (hour, minute, second, ticks) = self.hms();
        let clock = format!("{hour:02}:{minute:02}:{second:02}");
        match digits {
            0 => clock,
            digits => {
                let fraction = ticks / 10_i64.pow(u32::from(7 - digits.min(7)));
                format!("{clock}.{fraction:0width$}", width = usize::from(digits))
            }
        }
    }

    /// 0 for Sunday.
    pub fn weekday(self) -> i64 {
        i64::from(self.date.weekday().number_days_from_sunday())
    }
}
