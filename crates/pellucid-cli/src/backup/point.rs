//! A point in time, as people write it.

use pellucid::lsn::Lsn;
use pellucid_backup::job::Point;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

/// Reads a point: `last`, `lsn:N`, `mark:NAME`, `before-mark:NAME`, or a time, in UTC where it says nothing else.
pub fn parse(text: &str) -> Result<Point, String> {
    if text.eq_ignore_ascii_case("last") {
        return Ok(Point::Last);
    }
    if text.starts_with("lsn:") {
        let number = Lsn::parse(text).filter(|lsn| !lsn.is_none());
        return number.map(Point::Lsn).ok_or_else(|| format!("`{text}` is no LSN"));
    }
    for (prefix, point) in
        [("mark:", Point::Mark as fn(String) -> Point), ("before-mark:", Point::BeforeMark)]
    {
        match text.strip_prefix(prefix) {
            None => {}
            Some("") => return Err(format!("`{text}` names no mark")),
            Some(name) => return Ok(point(name.to_owned())),
        }
    }
    let micros = time_of(text).ok_or_else(|| {
        format!("`{text}` is no time: `2026-11-25 03:12:07.5`, `2026-11-25T03:12:07+01:00`, `lsn:N`, `mark:NAME`, \
             `before-mark:NAME` or `last`")
    })?;
    u64::try_from(micros).map(Point::Time).map_err(|_| "it is before 1970".to_owned())
}

fn time_of(text: &str) -> Option<i128> {
    let micros = |at: OffsetDateTime| at.unix_timestamp_nanos() / 1000;
    if let Ok(at) = OffsetDateTime::parse(text, &Rfc3339) {
        return Some(micros(at));
    }
    let text = text.strip_suffix(" UTC").unwrap_or(text).replacen('T', " ", 1);
    let text = &text;
    let whole = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    let parts = format_description!("[year]-[month]-[day] [hour]:[minute]:[second].[subsecond]");
    let minutes = format_description!("[year]-[month]-[day] [hour]:[minute]");
    let parsed = PrimitiveDateTime::parse(text, whole)
        .or_else(|_| PrimitiveDateTime::parse(text, parts))
        .or_else(|_| PrimitiveDateTime::parse(text, minutes));
    parsed.ok().map(|at| micros(at.assume_utc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_write_a_point() {
        let noon = 1_764_072_000_000_000;
        for (text, micros) in [
            ("2025-11-25 12:00", noon),
            ("2025-11-25 12:00:00", noon),
            ("2025-11-25T12:00:00", noon),
            ("2025-11-25 12:00:00.5", noon + 500_000),
            ("2025-11-25 12:00:00.000001 UTC", noon + 1),
            ("2025-11-25T13:00:00+01:00", noon),
            ("2025-11-25T12:00:00Z", noon),
        ] {
            assert_eq!(parse(text), Ok(Point::Time(micros)), "{text}");
        }
        assert_eq!(parse("lsn:3000000000700001"), Ok(Point::Lsn(Lsn::new(3, 7))));
        assert_eq!(parse("LAST"), Ok(Point::Last));
        assert_eq!(parse("mark:a b"), Ok(Point::Mark("a b".into())));
        assert_eq!(parse("before-mark:last"), Ok(Point::BeforeMark("last".into())));
        for text in [
            "",
            "mark:",
            "before-mark:",
            "lsn:",
            "lsn:0",
            "noon",
            "1960-01-01 00:00",
            "2025-13-01 00:00",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
