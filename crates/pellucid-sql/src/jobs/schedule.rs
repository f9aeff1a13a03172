//! When a schedule runs next. Times are UTC, like every time of an instance.
//!
//! Source: Microsoft's "dbo.sysschedules" and "sp_add_schedule".

use time::{Date, Duration, Month, PrimitiveDateTime, Time};

/// `freq_type`
pub(crate) const ONCE: i64 = 1;
pub(crate) const DAILY: i64 = 4;
pub(crate) const WEEKLY: i64 = 8;
pub(crate) const MONTHLY: i64 = 16;
pub(crate) const MONTHLY_RELATIVE: i64 = 32;
pub(crate) const AT_AGENT_START: i64 = 64;
pub(crate) const WHEN_IDLE: i64 = 128;

/// How far a next day is sought: no recurrence that anybody means is rarer.
const DAYS_MOST: i64 = 200 * 366;

/// A schedule, in the encodings of `sysschedules`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub freq_type: i64,
    pub freq_interval: i64,
    /// 0 and 1: once a day; 2, 4, 8: every n seconds, minutes, hours.
    pub freq_subday_type: i64,
    pub freq_subday_interval: i64,
    /// 1, 2, 4, 8: the first to the fourth; 16: the last.
    pub freq_relative_interval: i64,
    pub freq_recurrence_factor: i64,
    /// `yyyymmdd`
    pub active_start_date: i64,
    pub active_end_date: i64,
    /// `hhmmss`
    pub active_start_time: i64,
    pub active_end_time: i64,
}

/// The first time behind `after` at which it runs; none if there is no such time.
pub(crate) fn next_run(schedule: &Schedule, after: PrimitiveDateTime) -> Option<PrimitiveDateTime> {
    let start = date_of(schedule.active_start_date)?;
    let end = date_of(schedule.active_end_date).unwrap_or(Date::MAX);
    if schedule.freq_type == ONCE {
        let at = PrimitiveDateTime::new(start, time_of(schedule.active_start_time)?);
        return Some(at).filter(|at| *at > after);
    }
    // A span of the day before may reach behind midnight.
    let first = after.date().previous_day().unwrap_or(Date::MIN).max(start);
    (0..DAYS_MOST)
        .map_while(|days| first.checked_add(Duration::days(days)))
        .take_while(|day| *day <= end)
        .filter(|day| runs_on(schedule, start, *day))
        .find_map(|day| next_of_day(schedule, day, after))
}

/// The first time behind `after` that belongs to `day`.
fn next_of_day(
    schedule: &Schedule,
    day: Date,
    after: PrimitiveDateTime,
) -> Option<PrimitiveDateTime> {
    let first = PrimitiveDateTime::new(day, time_of(schedule.active_start_time)?);
    let unit = match schedule.freq_subday_type {
        2 => 1,
        4 => 60,
        8 => 3600,
        _ => return Some(first).filter(|at| *at > after),
    };
    let step = schedule.freq_subday_interval.max(1).checked_mul(unit)?;
    let mut last = PrimitiveDateTime::new(day, time_of(schedule.active_end_time)?);
    if last < first {
        last = last.checked_add(Duration::days(1))?;
    }
    let gone = (after - first).whole_seconds();
    let steps = if gone < 0 { 0 } else { gone / step + 1 };
    let next = first.checked_add(Duration::seconds(steps.checked_mul(step)?))?;
    Some(next).filter(|at| *at <= last && *at > after)
}

/// Whether a recurring one runs on that day, which is not before its first one.
fn runs_on(schedule: &Schedule, start: Date, day: Date) -> bool {
    let interval = schedule.freq_interval;
    let factor = schedule.freq_recurrence_factor.max(1);
    let months = |date: Date| i64::from(date.year()) * 12 + i64::from(u8::from(date.month()));
    let is_month = || (months(day) - months(start)) % factor == 0;
    match schedule.freq_type {
        DAILY => (day - start).whole_days() % interval.max(1) == 0,
        WEEKLY => {
            // Weeks begin on Sunday.
            let week = |date: Date| (i64::from(date.to_julian_day()) + 1).div_euclid(7);
            let bit = 1 << day.weekday().number_days_from_sunday();
            interval & bit != 0 && (week(day) - week(start)) % factor == 0
        }
        MONTHLY => is_month() && i64::from(day.day()) == interval,
        MONTHLY_RELATIVE => is_month() && is_relative_day(schedule, day),
        _ => false,
    }
}

/// Whether it is the first, .. or last Sunday, day, weekday or weekend day of its month.
fn is_relative_day(schedule: &Schedule, day: Date) -> bool {
    let counts = |date: Date| {
        let weekday = i64::from(date.weekday().number_days_from_sunday());
        match schedule.freq_interval {
            one @ 1..=7 => weekday == one - 1,
            8 => true,
            9 => (1..=5).contains(&weekday),
            10 => weekday == 0 || weekday == 6,
            _ => false,
        }
    };
    if !counts(day) {
        return false;
    }
    let of_month = |number: u8| Date::from_calendar_date(day.year(), day.month(), number).ok();
    let days = || (1..=31).map_while(of_month).filter(|date| counts(*date));
    let wanted = match schedule.freq_relative_interval {
        1 => days().next(),
        2 => days().nth(1),
        4 => days().nth(2),
        8 => days().nth(3),
        16 => days().last(),
        _ => None,
    };
    wanted == Some(day)
}

/// `yyyymmdd` as a day.
pub(crate) fn date_of(number: i64) -> Option<Date> {
    let month = Month::try_from(u8::try_from(number / 100 % 100).ok()?).ok()?;
    let year = i32::try_from(number / 10_000).ok().filter(|year| (1..=9999).contains(year))?;
    Date::from_calendar_date(year, month, u8::try_from(number % 100).ok()?).ok()
}

/// `hhmmss` as a time.
pub(crate) fn time_of(number: i64) -> Option<Time> {
    let part = |divisor: i64| u8::try_from(number / divisor % 100).ok();
    (0..=235_959).contains(&number).then_some(())?;
    Time::from_hms(part(10_000)?, part(100)?, part(1)?).ok()
}

/// A day as `yyyymmdd`.
pub(crate) fn date_number(date: Date) -> i64 {
    i64::from(date.year()) * 10_000
        + i64::from(u8::from(date.month())) * 100
        + i64::from(date.day())
}

/// A time as `hhmmss`.
pub(crate) fn time_number(time: Time) -> i64 {
    i64::from(time.hour()) * 10_000 + i64::from(time.minute()) * 100 + i64::from(time.second())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every day at 02:00 from 2026-01-01, a Thursday.
    const NIGHTLY: Schedule = Schedule {
        freq_type: DAILY,
        freq_interval: 1,
        freq_subday_type: 1,
        freq_subday_interval: 0,
        freq_relative_interval: 0,
        freq_recurrence_factor: 0,
        active_start_date: 20_260_101,
        active_end_date: 99_991_231,
        active_start_time: 20_000,
        active_end_time: 235_959,
    };

    fn at(date: i64, time: i64) -> PrimitiveDateTime {
        PrimitiveDateTime::new(date_of(date).unwrap(), time_of(time).unwrap())
    }

    /// The runs behind a moment, as numbers.
    fn runs(schedule: &Schedule, date: i64, time: i64, count: usize) -> Vec<(i64, i64)> {
        let mut after = at(date, time);
        let mut found = Vec::new();
        while let Some(next) = next_run(schedule, after).filter(|_| found.len() < count) {
            assert!(next > after);
            found.push((date_number(next.date()), time_number(next.time())));
            after = next;
        }
        found
    }

    #[test]
    fn once() {
        let once = Schedule { freq_type: ONCE, active_start_date: 20_260_310, ..NIGHTLY };
        assert_eq!(runs(&once, 20_260_101, 0, 3), [(20_260_310, 20_000)]);
        assert_eq!(runs(&once, 20_260_310, 15_959, 3), [(20_260_310, 20_000)]);
        assert_eq!(runs(&once, 20_260_310, 20_000, 3), []);
    }

    #[test]
    fn daily_and_every_third_day() {
        assert_eq!(
            runs(&NIGHTLY, 20_260_227, 20_000, 2),
            [(20_260_228, 20_000), (20_260_301, 20_000)]
        );
        assert_eq!(runs(&NIGHTLY, 20_251_201, 0, 1), [(20_260_101, 20_000)]);
        let third = Schedule { freq_interval: 3, ..NIGHTLY };
        assert_eq!(
            runs(&third, 20_260_101, 20_000, 2),
            [(20_260_104, 20_000), (20_260_107, 20_000)]
        );
        let ended = Schedule { active_end_date: 20_260_102, ..NIGHTLY };
        assert_eq!(runs(&ended, 20_260_101, 30_000, 3), [(20_260_102, 20_000)]);
    }

    #[test]
    fn weekly_on_several_days_and_every_second_week() {
        // Monday and Saturday.
        let weekly = Schedule {
            freq_type: WEEKLY,
            freq_interval: 2 | 64,
            freq_recurrence_factor: 1,
            ..NIGHTLY
        };
        assert_eq!(
            runs(&weekly, 20_260_101, 0, 3),
            [(20_260_103, 20_000), (20_260_105, 20_000), (20_260_110, 20_000)]
        );
        let second = Schedule { freq_recurrence_factor: 2, ..weekly };
        assert_eq!(
            runs(&second, 20_260_101, 0, 3),
            [(20_260_103, 20_000), (20_260_112, 20_000), (20_260_117, 20_000)]
        );
    }

    #[test]
    fn monthly_leaves_out_months_without_the_day() {
        let monthly = Schedule {
            freq_type: MONTHLY,
            freq_interval: 31,
            freq_recurrence_factor: 1,
            ..NIGHTLY
        };
        assert_eq!(
            runs(&monthly, 20_260_101, 0, 3),
            [(20_260_131, 20_000), (20_260_331, 20_000), (20_260_531, 20_000)]
        );
        let quarterly = Schedule { freq_interval: 1, freq_recurrence_factor: 3, ..monthly };
        assert_eq!(
            runs(&quarterly, 20_260_101, 20_000, 2),
            [(20_260_401, 20_000), (20_260_701, 20_000)]
        );
    }

    #[test]
    fn monthly_relative() {
        let relative = |which, what| Schedule {
            freq_type: MONTHLY_RELATIVE,
            freq_interval: what,
            freq_relative_interval: which,
            freq_recurrence_factor: 1,
            ..NIGHTLY
        };
        let first = |which, what| runs(&relative(which, what), 20_260_201, 0, 1)[0].0;
        // February 2026 begins on a Sunday and has 28 days.
        assert_eq!(first(1, 1), 20_260_201);
        assert_eq!(first(2, 3), 20_260_210);
        assert_eq!(first(4, 7), 20_260_221);
        assert_eq!(first(8, 2), 20_260_223);
        assert_eq!(first(16, 6), 20_260_227);
        assert_eq!(first(16, 8), 20_260_228);
        assert_eq!(first(1, 9), 20_260_202);
        assert_eq!(first(2, 10), 20_260_207);
        assert_eq!(
            runs(&relative(16, 9), 20_260_228, 0, 2),
            [(20_260_331, 20_000), (20_260_430, 20_000)]
        );
    }

    #[test]
    fn every_n_minutes_within_a_span_of_the_day() {
        let often = Schedule {
            freq_subday_type: 4,
            freq_subday_interval: 20,
            active_start_time: 80_000,
            active_end_time: 84_500,
            ..NIGHTLY
        };
        assert_eq!(
            runs(&often, 20_260_105, 80_001, 4),
            [
                (20_260_105, 82_000),
                (20_260_105, 84_000),
                (20_260_106, 80_000),
                (20_260_106, 82_000)
            ]
        );
        let hourly = Schedule {
            freq_subday_type: 8,
            freq_subday_interval: 12,
            active_start_time: 0,
            ..NIGHTLY
        };
        assert_eq!(runs(&hourly, 20_260_105, 0, 2), [(20_260_105, 120_000), (20_260_106, 0)]);
        let seconds = Schedule { freq_subday_type: 2, freq_subday_interval: 10, ..often };
        assert_eq!(
            runs(&seconds, 20_260_105, 84_455, 2),
            [(20_260_105, 84_500), (20_260_106, 80_000)]
        );
    }

    #[test]
    fn a_span_may_reach_behind_midnight() {
        let night = Schedule {
            freq_type: WEEKLY,
            freq_interval: 32,
            freq_recurrence_factor: 1,
            freq_subday_type: 8,
            freq_subday_interval: 1,
            active_start_time: 230_000,
            active_end_time: 10_000,
            ..NIGHTLY
        };
        // Of Friday the 2nd, and only of Fridays.
        assert_eq!(
            runs(&night, 20_260_102, 233_000, 3),
            [(20_260_103, 0), (20_260_103, 10_000), (20_260_109, 230_000)]
        );
    }

    #[test]
    fn what_has_no_time_has_none() {
        for freq_type in [AT_AGENT_START, WHEN_IDLE, 0, 3] {
            assert_eq!(runs(&Schedule { freq_type, ..NIGHTLY }, 20_260_101, 0, 1), []);
        }
        let never = Schedule {
            freq_type: MONTHLY,
            freq_interval: 32,
            freq_recurrence_factor: 1,
            ..NIGHTLY
        };
        assert_eq!(runs(&never, 20_260_101, 0, 1), []);
        assert_eq!(runs(&Schedule { active_start_date: 0, ..NIGHTLY }, 20_260_101, 0, 1), []);
        assert_eq!(runs(&NIGHTLY, 99_991_231, 30_000, 1), []);
        assert_eq!((date_of(20_260_230), time_of(246_060), time_of(-1)), (None, None, None));
    }
}
