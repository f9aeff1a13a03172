//! Numbers as documents write them: a change in percent, or a factor, with its interval.

/// A number as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Written {
    /// Its value.
    pub value: f64,
    /// How many digits stand behind the point.
    pub digits: usize,
}

impl Written {
    /// The number that `text` begins with, behind marks of emphasis, and what follows it.
    pub fn read(text: &str) -> Option<(Self, &str)> {
        let text = text.trim_start_matches([' ', '\n', '*', '_', '(', '×']);
        let (negative, body) = match text.strip_prefix(['-', '−']) {
            Some(body) => (true, body),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let mut end = body.find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len());
        let mut digits = 0;
        if let Some(part) = body[end..].strip_prefix('.') {
            digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            end += if digits > 0 { digits + 1 } else { 0 };
        }
        let value: f64 = body[..end].parse().ok()?;
        Some((Self { value: if negative { -value } else { value }, digits }, &body[end..]))
    }

    /// True if `value` is written so: within half of the last digit.
    pub fn is(self, value: f64) -> bool {
        (self.value - value).abs() <= 0.5 * 10_f64.powi(-(self.digits as i32)) + 1e-9
    }
}

/// What stands between a number and its interval: emphasis and the unit of a change or of a factor.
fn unit(rest: &str) -> &str {
    let rest = rest.trim_start_matches(['*', '_', ' ', '%']);
    rest.strip_prefix("times").unwrap_or(rest).trim_start_matches(['*', '_', ' '])
}

/// Whether the number before `rest` is a change in percent.
pub fn percent(rest: &str) -> bool {
    rest.trim_start_matches(['*', '_', ' ']).starts_with('%')
}

/// `(0.946..0.989)`, `(-1.0 to +2.1)`, `(-1 to +2 %)`, `(14.2 to 18.4 times)`, directly behind the number.
pub fn interval(rest: &str) -> Option<(Written, Written)> {
    let rest = unit(rest).strip_prefix('(')?;
    let (low, rest) = Written::read(rest)?;
    let rest = rest.strip_prefix("..").or_else(|| rest.strip_prefix(" to "))?;
    let (high, rest) = Written::read(rest)?;
    unit(rest).starts_with(')').then_some((low, high))
}

/// Whether what stands in parentheses directly behind the number has two ends.
pub fn looks_like_an_interval(rest: &str) -> bool {
    let within = unit(rest).strip_prefix('(');
    let within = within.and_then(|rest| rest.split_once(')')).map_or("", |(within, _)| within);
    let between = within.trim_start_matches(|c: char| !c.is_ascii_digit());
    within.starts_with(|c: char| c.is_ascii_digit() || "+-−".contains(c))
        && ["..", " to ", "–", "—", "…"].iter().any(|mark| between.contains(mark))
}

/// Whether the text of a bracket is two numbers with `..` or `to` between them.
pub fn interval_within(text: &str) -> bool {
    let signs = ['+', '-', '−', ' ', '%', '*'];
    let number = |c: char| c.is_ascii_digit() || c == '.' || signs.contains(&c);
    let is_number = |part: &str| !part.trim_matches(signs).is_empty() && part.chars().all(number);
    let text = text.trim_end_matches("times");
    let ends = text.split_once("..").or_else(|| text.split_once(" to "));
    ends.is_some_and(|(low, high)| is_number(low) && is_number(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_digits_and_its_interval() {
        let (mean, rest) = Written::read("0.967 (0.946..0.989)").unwrap();
        assert_eq!((mean.value, mean.digits, percent(rest)), (0.967, 3, false));
        let (low, high) = interval(rest).unwrap();
        assert_eq!((low.value, high.value), (0.946, 0.989));
        let (mean, rest) = Written::read("16.2 times (14.2 to 18.4 times)").unwrap();
        let (low, high) = interval(rest).unwrap();
        assert_eq!((mean.value, low.value, high.value), (16.2, 14.2, 18.4));
    }

    #[test]
    fn changes_have_signs_and_intervals_too() {
        let (mean, rest) = Written::read(" **+1.9 %** (−1.0 to +2.1 %)").unwrap();
        assert_eq!((mean.value, mean.digits, percent(rest)), (1.9, 1, true));
        assert_eq!(Written::read("−3 %").unwrap().0.value, -3.0);
        assert_eq!(Written::read("about 3"), None);
        assert_eq!(interval(" of all (2 cells)"), None);
        for (text, is_one) in [
            (" (0.900–0.999)", true),
            (" % (−1.0 % to +2.1 %)", true),
            (" (6 cells)", false),
            (" (about 1 to 2)", false),
        ] {
            assert_eq!((interval(text), looks_like_an_interval(text)), (None, is_one), "{text}");
        }
        assert_eq!(Written::read("7. Next").unwrap().0, Written { value: 7.0, digits: 0 });
    }

    #[test]
    fn a_figure_is_right_to_its_last_digit() {
        let written = Written { value: 0.967, digits: 3 };
        assert!(written.is(0.9670107) && written.is(0.9665));
        assert!(!written.is(0.9660) && !written.is(0.9676));
    }

    #[test]
    fn two_numbers_are_an_interval() {
        for text in ["0.940..0.994", "+0.6 to +6.4 %", "−1 to 2", "14.2 to 18.4 times"] {
            assert!(interval_within(text), "{text}");
        }
        for text in ["6 cells", "about 1 to 2", "..", "1"] {
            assert!(!interval_within(text), "{text}");
        }
    }
}
