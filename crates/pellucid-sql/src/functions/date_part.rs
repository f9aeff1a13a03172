//! Parts of dates: what DATEADD, DATEDIFF, DATEPART and DATENAME take.
//!
//! Source: Microsoft's "DATEDIFF", "DATEADD", "DATEPART", "DATENAME". Weeks begin on Sunday (DATEFIRST 7).

use crate::message::{table, Message, Result};
use crate::values::moment::{Moment, DAYS, MONTHS, TICKS_DAY, TICKS_SECOND};
use crate::values::types::SqlType;

macro_rules! parts {
    ($($part:ident = $($name:literal)+;)+) => {
        /// A part of a date.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum DatePart {
            $($part,)+
        }

        impl DatePart {
            /// Every part, by its number.
            pub const EVERY: &'static [DatePart] = &[$(DatePart::$part,)+];

            /// The part of this name or abbreviation.
            pub fn named(name: &str) -> Option<Self> {
                match name.to_ascii_lowercase().as_str() {
                    $($($name)|+ => Some(DatePart::$part),)+
                    _ => None,
                }
            }

            /// Its name and its abbreviations.
            pub fn name(self) -> &'static str {
                match self {
                    $(DatePart::$part => [$($name),+][0],)+
                }
            }
        }
    };
}

parts! {
    Year = "year" "yy" "yyyy";
    Quarter = "quarter" "qq" "q";
    Month = "month" "mm" "m";
    DayOfYear = "dayofyear" "dy" "y";
    Day = "day" "dd" "d";
    Week = "week" "wk" "ww";
    Weekday = "weekday" "dw" "w";
    Hour = "hour" "hh";
    Minute = "minute" "mi" "n";
    Second = "second" "ss" "s";
    Millisecond = "millisecond" "ms";
    Microsecond = "microsecond" "mcs";
    Nanosecond = "nanosecond" "ns";
    IsoWeek = "iso_week" "isowk" "isoww";
}

impl DatePart {
    /// Whether DATEADD and DATEDIFF take it.
    pub fn counts(self) -> bool {
        self != Self::IsoWeek
    }

    /// Ticks of the part, if it is always as long.
    fn ticks(self) -> Option<i64> {
        Some(match self {
            Self::Hour => 3600 * TICKS_SECOND,
            Self::Minute => 60 * TICKS_SECOND,
            Self::Second => TICKS_SECOND,
            Self::Millisecond => TICKS_SECOND / 1000,
            Self::Microsecond => TICKS_SECOND / 1_000_000,
            _ => return None,
        })
    }

    /// The part of a moment, as DATEPART gives it.
    pub fn of(self, moment: Moment) -> i64 {
        let (year, month, day) = moment.ymd();
        let (hour, minute, second, ticks) = moment.hms();
        match self {
            Self::Year => year,
            Self::Quarter => (month - 1) / 3 + 1,
            Self::Month => month,
            Self::DayOfYear => moment.date.ordinal().into(),
            Self::Day => day,
            Self::Week => {
                let ordinal = i64::from(moment.date.ordinal());
                let new_year = (moment.weekday() - (ordinal - 1)).rem_euclid(7);
                (ordinal - 1 + new_year) / 7 + 1
            }
            Self::Weekday => moment.weekday() + 1,
            Self::Hour => hour,
            Self::Minute => minute,
            Self::Second => second,
            Self::Millisecond => ticks / 10_000,
            Self::Microsecond => ticks / 10,
            Self::Nanosecond => ticks * 100,
            Self::IsoWeek => moment.date.iso_week().into(),
        }
    }

    /// The part as DATENAME gives it.
    pub fn name_of(self, moment: Moment) -> String {
        match self {
            Self::Month => MONTHS[(moment.ymd().1 - 1) as usize].to_owned(),
            Self::Weekday => DAYS[moment.weekday() as usize].to_owned(),
            _ => self.of(moment).to_string(),
        }
    }

    /// Boundaries of the part between two moments.
    pub fn between(self, from: Moment, to: Moment) -> i128 {
        let ticks = |moment: Moment| {
            i128::from(moment.days()) * i128::from(TICKS_DAY) + i128::from(moment.ticks)
        };
        let count = |moment: Moment| -> i128 {
            let (year, month, _) = moment.ymd();
            match (self, self.ticks()) {
                (_, Some(unit)) => ticks(moment).div_euclid(unit.into()),
                (Self::Nanosecond, _) => ticks(moment) * 100,
                (Self::Year, _) => year.into(),
                (Self::Quarter, _) => (year * 4 + (month - 1) / 3).into(),
                (Self::Month, _) => (year * 12 + month).into(),
                // 1899-12-31 was a Sunday.
                (Self::Week, _) => (moment.days() + 1).div_euclid(7).into(),
                _ => moment.days().into(),
            }
        };
        count(to) - count(from)
    }

    /// The moment with what is smaller than the part left off, as DATETRUNC gives it.
    pub fn truncated(self, moment: Moment, data_type: SqlType) -> Result<Moment> {
        let is_clock = self.ticks().is_some();
        let digits = match self {
            Self::Millisecond => 3,
            Self::Microsecond => 6,
            _ => 0,
        };
        let fits = match data_type {
            SqlType::Date => !is_clock,
            SqlType::Time(has) => is_clock && has >= digits,
            SqlType::DateTime2(has) => has >= digits,
            SqlType::DateTime => digits <= 3,
            _ => digits == 0,
        };
        if !fits || matches!(self, Self::Weekday | Self::Nanosecond) {
            let values: [&dyn std::fmt::Display; 3] =
                [&self.name(), &"datetrunc", &data_type.name()];
            return Err(Message::of(table::DATE_PART_REFUSED, values));
        }
        let (year, month, _) = moment.ymd();
        let cut = match (self, self.ticks()) {
            (_, Some(unit)) => Moment::of_days(moment.days(), moment.ticks - moment.ticks % unit),
            (Self::Year, _) => Moment::new(year, 1, 1),
            (Self::Quarter, _) => Moment::new(year, (month - 1) / 3 * 3 + 1, 1),
            (Self::Month, _) => Moment::new(year, month, 1),
            (Self::Week, _) => Moment::of_days(moment.days() - moment.weekday(), 0),
            (Self::IsoWeek, _) => Moment::of_days(moment.days() - (moment.weekday() + 6) % 7, 0),
            _ => Moment::of_days(moment.days(), 0),
        };
        let overflow = || Message::of(table::DATE_OVERFLOW, [&data_type.name()]);
        cut.and_then(|moment| moment.rounded(data_type)).ok_or_else(overflow)
    }

    /// `count` parts later, as precise as the type is.
    pub fn added(self, moment: Moment, count: i64, data_type: SqlType) -> Result<Moment> {
        let overflow = || Message::of(table::DATE_OVERFLOW, [&data_type.name()]);
        let unsupported =
            || Message::of(table::DATE_PART_REFUSED, [&self.name(), &"dateadd", &data_type.name()]);
        let is_clock = self.ticks().is_some() || self == Self::Nanosecond;
        match data_type {
            SqlType::Date if is_clock => return Err(unsupported()),
            SqlType::Time(_) if !is_clock => return Err(unsupported()),
            _ => {}
        }
        let months = match self {
            Self::Year => count.checked_mul(12),
            Self::Quarter => count.checked_mul(3),
            Self::Month => Some(count),
            _ => None,
        };
        let later = match (self, self.ticks()) {
            (Self::Year | Self::Quarter | Self::Month, _) => {
                months.and_then(|months| plus_months(moment, months))
            }
            (Self::Week, _) => count
                .checked_mul(7)
                .and_then(|days| moment.days().checked_add(days))
                .and_then(|days| Moment::of_days(days, moment.ticks)),
            (Self::Nanosecond, _) => {
                Moment::of_days(moment.days(), moment.ticks + (count + count.signum() * 50) / 100)
            }
            (_, Some(unit)) => {
                let ticks = i128::from(count) * i128::from(unit) + i128::from(moment.ticks);
                let day = i128::from(TICKS_DAY);
                let days = i64::try_from(ticks.div_euclid(day)).ok();
                days.and_then(|days| moment.days().checked_add(days))
                    .and_then(|days| Moment::of_days(days, ticks.rem_euclid(day) as i64))
            }
            _ => moment
                .days()
                .checked_add(count)
                .and_then(|days| Moment::of_days(days, moment.ticks)),
        };
        later.and_then(|moment| moment.rounded(data_type)).ok_or_else(overflow)
    }
}

/// A day that the month does not have becomes its last one.
fn plus_months(moment: Moment, months: i64) -> Option<Moment> {
    let (year, month, day) = moment.ymd();
    let total = (year * 12 + month - 1).checked_add(months)?;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    (0..4)
        .find_map(|fewer| Moment::new(year, month, day - fewer))
        .map(|date| Moment { ticks: moment.ticks, ..date })
}
