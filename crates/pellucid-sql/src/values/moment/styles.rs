//! Dates and times as CONVERT's styles print them.
//!
//! Source: Microsoft's "CAST and CONVERT", table of date and time styles.

use super::{Moment, MONTHS, TICKS_SECOND};
use crate::values::types::SqlType;

/// Whether CONVERT knows the style for dates and times.
pub(crate) fn is_style(style: i64) -> bool {
    matches!(style, 0..=14 | 20..=25 | 100..=114 | 120 | 121 | 126 | 127)
}

impl Moment {
    /// As `style` prints it, cut to the parts that the type has; `None` if there is no such style.
    pub fn styled(self, of: SqlType, style: i64) -> Option<String> {
        let has_date = !matches!(of, SqlType::Time(_));
        let has_clock = !matches!(of, SqlType::Date);
        let (date, clock) = match style {
            0 | 100 => (Some("M D Y"), Some("h:mp")),
            1 => (Some("k/d/y"), None),
            101 => (Some("k/d/Y"), None),
            2 => (Some("y.k.d"), None),
            102 => (Some("Y.k.d"), None),
            3 => (Some("d/k/y"), None),
            103 => (Some("d/k/Y"), None),
            4 => (Some("d.k.y"), None),
            104 => (Some("d.k.Y"), None),
            5 => (Some("d-k-y"), None),
            105 => (Some("d-k-Y"), None),
            6 => (Some("d M y"), None),
            106 => (Some("d M Y"), None),
            7 => (Some("M d, y"), None),
            107 => (Some("M d, Y"), None),
            8 | 24 | 108 => (None, Some("H:m:s")),
            9 | 109 => (Some("M D Y"), Some("h:m:s:fp")),
            10 => (Some("k-d-y"), None),
            110 => (Some("k-d-Y"), None),
            11 => (Some("y/k/d"), None),
            111 => (Some("Y/k/d"), None),
            12 => (Some("ykd"), None),
            112 => (Some("Ykd"), None),
            13 | 113 => (Some("d M Y"), Some("H:m:s:f")),
            14 | 114 => (None, Some("H:m:s:f")),
            20 | 120 => (Some("Y-k-d"), Some("H:m:s")),
            21 | 25 | 121 => (Some("Y-k-d"), Some("H:m:s.f")),
            22 => (Some("k/d/y"), Some("h:m:s p")),
            23 => (Some("Y-k-d"), None),
            126 | 127 => (Some("Y-k-d"), Some("H:m:s.f")),
            _ => return None,
        };
        let date = date.filter(|_| has_date).map(|pattern| self.patterned(pattern, of, style));
        let clock = clock.filter(|_| has_clock).map(|pattern| self.patterned(pattern, of, style));
        match (date, clock) {
            (Some(date), Some(clock)) => {
                let between = if matches!(style, 126 | 127) { "T" } else { " " };
                Some(format!("{date}{between}{clock}"))
            }
            (date, clock) => date.or(clock),
        }
    }

    fn patterned(self, pattern: &str, of: SqlType, style: i64) -> String {
        let (year, month, day) = self.ymd();
        let (hour, minute, second, ticks) = self.hms();
        let mut text = String::new();
        for letter in pattern.chars() {
            let part = match letter {
                'Y' => format!("{year:04}"),
                'y' => format!("{:02}", year % 100),
                'k' => format!("{month:02}"),
                'M' => MONTHS[(month - 1) as usize][..3].to_owned(),
                'd' => format!("{day:02}"),
                'D' => format!("{day:2}"),
                'H' => format!("{hour:02}"),
                'h' => format!("{:2}", (hour + 11) % 12 + 1),
                'm' => format!("{minute:02}"),
                's' => format!("{second:02}"),
                'p' => (if hour < 12 { "AM" } else { "PM" }).to_owned(),
                'f' => match fraction(ticks, of, style) {
                    Some(fraction) => fraction,
                    None => {
                        text.pop(); // the point before it
                        String::new()
                    }
                },
                other => other.to_string(),
            };
            text.push_str(&part);
        }
        text
    }
}

/// Digits of the second, as many as the type has. ISO 8601 leaves out three zeros.
fn fraction(ticks: i64, of: SqlType, style: i64) -> Option<String> {
    let digits = match of {
        SqlType::Time(digits) | SqlType::DateTime2(digits) => digits,
        _ => 3,
    };
    let iso = matches!(style, 126 | 127);
    if digits == 0 || (iso && ticks == 0) || (iso && of == SqlType::SmallDateTime) {
        return None;
    }
    let unit = TICKS_SECOND / 10_i64.pow(digits.into());
    Some(format!("{:0width$}", ticks / unit, width = usize::from(digits)))
}
