//! FORMATMESSAGE, and the texts with places that RAISERROR has too.

use super::{value_at, with_nulls, Scalar};
use crate::message::{table, Message, Result};
use crate::values::convert::Value;

pub(super) const SCALARS: &[Scalar] = &[with_nulls("tsql_formatmessage", format_message)];

/// A longer text is cut off, with three dots at its end.
const CHARS_MOST: usize = 2047;

fn format_message(arguments: &[Value]) -> Result<Value> {
    let Value::Text(text) = value_at(arguments, 0)? else { return Ok(Value::Null) };
    let text = formatted(text, &arguments[1..])?;
    if text.chars().count() <= CHARS_MOST {
        return Ok(Value::Text(text));
    }
    let cut: String = text.chars().take(CHARS_MOST - 3).collect();
    Ok(Value::Text(cut + "..."))
}

/// No width and no precision is larger.
const WIDTH_MOST: usize = 2048;

/// RAISERROR's format: `%d`, `%i`, `%u`, `%o`, `%x`, `%X`, `%s`, with flags, width and precision, which `*` takes from the
/// arguments. An argument that is not given is `(null)`.
///
/// # Errors
/// 2787 for another format, 2786 for an argument of another type.
pub(crate) fn formatted(text: &str, arguments: &[Value]) -> Result<String> {
    formatted_of(text, arguments, &[])
}

/// The same of arguments of which some, by their places, are bigint: these take `%I64d` alone.
pub(crate) fn formatted_of(text: &str, arguments: &[Value], big: &[usize]) -> Result<String> {
    let mut out = String::new();
    let mut given = Given { arguments, big, taken: 0 };
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("%%") {
            out.push('%');
            rest = after;
            continue;
        }
        let place = Place::read(rest, &mut given)?;
        out.push_str(&place.shown(&mut given)?);
        rest = &rest[place.length..];
    }
    Ok(out + rest)
}

/// The arguments, of which the first ones are taken already.
struct Given<'a> {
    arguments: &'a [Value],
    /// Places of bigint.
    big: &'a [usize],
    taken: usize,
}

impl<'a> Given<'a> {
    fn next(&mut self) -> &'a Value {
        self.taken += 1;
        self.arguments.get(self.taken - 1).unwrap_or(&Value::Null)
    }

    /// Whether the argument that was taken last is a bigint.
    fn is_big(&self) -> bool {
        self.big.contains(&(self.taken - 1))
    }

    /// 2786, of the argument that was taken last.
    fn mismatch(&self) -> Message {
        Message::of(table::FORMAT_TYPE, [&self.taken])
    }
}

/// One place of a format.
struct Place<'t> {
    flags: &'t str,
    width: usize,
    precision: Option<usize>,
    kind: char,
    /// `I64` stands before the kind.
    is_wide: bool,
    /// Its bytes in the format.
    length: usize,
}

impl<'t> Place<'t> {
    /// What `text` begins with, a `%`.
    fn read(text: &'t str, given: &mut Given<'_>) -> Result<Self> {
        let flags_end = text.len() - text[1..].trim_start_matches(['-', '+', '0', '#', ' ']).len();
        let (width, mut end) = number(text, flags_end, given)?;
        let mut precision = None;
        if text[end..].starts_with('.') {
            let found = number(text, end + 1, given)?;
            (precision, end) = (Some(found.0.unwrap_or(0)), found.1);
        }
        let is_wide = text[end..].starts_with("I64");
        end += match is_wide {
            true => 3,
            false => usize::from(text[end..].starts_with(['l', 'h'])),
        };
        let kind = text[end..].chars().next();
        let length = end + kind.map_or(0, char::len_utf8);
        let kind = kind.filter(|kind| "diuoxXs".contains(*kind));
        let kind = kind.ok_or_else(|| Message::of(table::BAD_FORMAT, [&&text[..length]]))?;
        Ok(Self {
            flags: &text[1..flags_end],
            width: width.unwrap_or(0),
            precision,
            kind,
            is_wide,
            length,
        })
    }

    fn shown(&self, given: &mut Given<'_>) -> Result<String> {
        let value = given.next();
        let (sign, digits) = match (self.kind, value) {
            _ if given.is_big() && !self.is_wide => return Err(given.mismatch()),
            (_, Value::Null) => ("", "(null)".to_owned()),
            ('s', Value::Text(text)) => {
                ("", text.chars().take(self.precision.unwrap_or(usize::MAX)).collect())
            }
            (kind, Value::Integer(number)) if kind != 's' => self.digits(*number),
            _ => return Err(given.mismatch()),
        };
        let missing = self.width.saturating_sub(sign.len() + digits.chars().count());
        let has_digits = self.kind != 's' && self.precision.is_none();
        Ok(match () {
            () if self.flags.contains('-') => format!("{sign}{digits}{}", " ".repeat(missing)),
            () if self.flags.contains('0') && has_digits => {
                format!("{sign}{}{digits}", "0".repeat(missing))
            }
            () => format!("{}{sign}{digits}", " ".repeat(missing)),
        })
    }

    /// What stands before the digits of a number, and these.
    fn digits(&self, number: i64) -> (&'static str, String) {
        // A negative one without a sign is that of an int, if it can be one.
        let bits = match i32::try_from(number) {
            Ok(number) => u64::from(number as u32),
            Err(_) => number as u64,
        };
        let is_prefixed = self.flags.contains('#') && number != 0;
        let (sign, digits) = match self.kind {
            'd' | 'i' => {
                let sign = match number {
                    ..0 => "-",
                    _ if self.flags.contains('+') => "+",
                    _ if self.flags.contains(' ') => " ",
                    _ => "",
                };
                (sign, number.unsigned_abs().to_string())
            }
            'o' => (if is_prefixed { "0" } else { "" }, format!("{bits:o}")),
            'x' => (if is_prefixed { "0x" } else { "" }, format!("{bits:x}")),
            'X' => (if is_prefixed { "0X" } else { "" }, format!("{bits:X}")),
            _ => ("", bits.to_string()),
        };
        let missing = self.precision.unwrap_or(0).saturating_sub(digits.len());
        (sign, "0".repeat(missing) + &digits)
    }
}

/// The number that stands at `at`, or that `*` takes from the arguments, and where it ends.
fn number(text: &str, at: usize, given: &mut Given<'_>) -> Result<(Option<usize>, usize)> {
    if text[at..].starts_with('*') {
        let Value::Integer(number) = given.next() else { return Err(given.mismatch()) };
        let number = usize::try_from(*number).unwrap_or(0).min(WIDTH_MOST);
        return Ok((Some(number), at + 1));
    }
    let end = text.len() - text[at..].trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = text[at..end].parse::<usize>().ok().map(|number| number.min(WIDTH_MOST));
    // A longer row of digits than a number has.
    let number = number.or((end > at).then_some(WIDTH_MOST));
    Ok((number, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn raiserror_formats_as_printf_does() {
        let arguments = [Value::Integer(7), text("abc")];
        let shown = |format: &str| formatted(format, &arguments).unwrap();
        assert_eq!(shown("%d of %s%%"), "7 of abc%");
        assert_eq!(shown("[%5d][%-6s]"), "[    7][abc   ]");
        assert_eq!(shown("%05d %.2s"), "00007 ab");
        assert_eq!(shown("%+d|%5.1s"), "+7|    a");
        assert_eq!(shown("%#x|%s|%d"), "0x7|abc|(null)");
        assert_eq!(shown("%.3d"), "007");
        assert_eq!(shown("%I64d"), "7");
        assert_eq!(
            formatted("%x %u", &[Value::Integer(-1), Value::Integer(-1)]).unwrap(),
            "ffffffff 4294967295"
        );
        assert_eq!(formatted("%s %d", &[]).unwrap(), "(null) (null)");
    }

    /// The example of Microsoft's page on RAISERROR, and its like.
    #[test]
    fn width_and_precision_are_arguments() {
        let arguments = [Value::Integer(7), Value::Integer(3), text("abcde")];
        assert_eq!(formatted("<<%*.*s>>", &arguments).unwrap(), "<<    abc>>");
        let wide = [Value::Integer(i64::MAX), Value::Integer(1)];
        assert_eq!(formatted("%*d", &wide).unwrap().len(), WIDTH_MOST);
        assert_eq!(formatted("%99999999999999999999d", &wide[1..]).unwrap().len(), WIDTH_MOST);
    }

    #[test]
    fn formats_and_types_that_there_are_not_are_refused() {
        let refused = |format: &str, arguments: &[Value]| {
            let message = formatted(format, arguments).unwrap_err();
            (message.number, message.text)
        };
        let (number, told) = refused("bad %z", &[]);
        assert_eq!((number, &*told), (2787, "Invalid format specification: '%z'."));
        let (number, told) = refused("select %", &[]);
        assert_eq!((number, &*told), (2787, "Invalid format specification: '%'."));
        let (number, told) = refused("%s %d", &[text("a"), text("x")]);
        assert_eq!(
            (number, &*told),
            (
                2786,
                "The data type of substitution parameter 2 does not match the expected type of the format specification."
            )
        );
        assert_eq!(refused("%s", &[Value::Integer(1)]).0, 2786);
        assert_eq!(refused("%*s", &[text("a"), text("b")]).0, 2786);
        let number = [Value::Integer(1)];
        assert_eq!(formatted_of("%d", &number, &[0]).unwrap_err().number, 2786);
        assert_eq!(formatted_of("%I64d", &number, &[0]).unwrap(), "1");
    }
}
