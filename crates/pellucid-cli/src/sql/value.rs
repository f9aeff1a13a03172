//! Values as text: what sqlcmd shows of each type.

use pellucid_sql::values::convert::{convert, to_hex, Value};
use pellucid_sql::values::types::{Family, SqlType};

/// Digits that tell every float from every other, and those that sqlcmd shows of a real.
const FLOAT_DIGITS: usize = 17;
const REAL_DIGITS: usize = 8;

/// The value as sqlcmd shows it; none for NULL.
pub fn text(value: &Value, data_type: SqlType) -> Option<String> {
    if data_type.family() == Family::Decimal {
        // The ODBC driver writes no zero before the point.
        return exact(value, data_type).map(|text| match text.strip_prefix('-') {
            Some(digits) if digits.starts_with("0.") => format!("-{}", &digits[1..]),
            _ if text.starts_with("0.") => text[1..].to_owned(),
            _ => text,
        });
    }
    plain(value, data_type)
}

/// The value with all of its digits, as programs read it; none for NULL.
pub fn exact(value: &Value, data_type: SqlType) -> Option<String> {
    let money = matches!(data_type, SqlType::Money | SqlType::SmallMoney);
    let style = if money { 2 } else { 0 }; // four digits
    if data_type.family() == Family::Decimal && *value != Value::Null {
        let converted = convert(value.clone(), data_type, SqlType::NVARCHAR_MAX, Some(style));
        if let Ok(Value::Text(text)) = converted {
            return Some(text);
        }
    }
    plain(value, data_type)
}

fn plain(value: &Value, data_type: SqlType) -> Option<String> {
    // A column of a plain database may hold another type than it is declared as.
    match value {
        Value::Null => None,
        Value::Integer(number) => Some(number.to_string()),
        Value::Real(number) => {
            let digits = if data_type == SqlType::Real { REAL_DIGITS } else { FLOAT_DIGITS };
            Some(float(*number, digits))
        }
        Value::Text(text) => Some(text.clone()),
        Value::Blob(bytes) => Some(format!("0x{}", to_hex(bytes))),
    }
}

/// A float as the ODBC driver writes it: `0.5`, `1.0`, `5.0000000000000003E-2`, `1.0E+20`.
fn float(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-1..digits as i32 - 1).contains(&exponent) {
        let mantissa = mantissa.trim_end_matches('0');
        let dot = if mantissa.ends_with('.') { "0" } else { "" };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}{dot}E{sign}{}", exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(1) as usize;
    let fixed = format!("{value:.decimals$}");
    let fixed = fixed.trim_end_matches('0');
    match fixed.ends_with('.') {
        true => format!("{fixed}0"),
        false => fixed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pellucid_sql::values::convert::decimal_value;
    use pellucid_sql::values::decimal::Decimal;

    #[test]
    fn floats_are_written_as_the_driver_does() {
        for (value, shown) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (0.1, "0.10000000000000001"),
            (0.05, "5.0000000000000003E-2"),
            (123456.789, "123456.789"),
            (1e20, "1.0E+20"),
            (1.5e-9, "1.5E-9"),
        ] {
            assert_eq!(float(value, FLOAT_DIGITS).as_str(), shown, "{value}");
        }
        assert_eq!(float(f64::from(4.56_f32), REAL_DIGITS), "4.5599999");
        assert_eq!(float(f64::from(0.1_f32), REAL_DIGITS), "0.1");
    }

    #[test]
    fn exact_numbers_lose_only_the_zero_before_the_point() {
        let value = |text: &str| decimal_value(Decimal::parse(text).unwrap());
        let numeric = SqlType::numeric(9, 2);
        assert_eq!(text(&value("0.50"), numeric).as_deref(), Some(".50"));
        assert_eq!(text(&value("-0.50"), numeric).as_deref(), Some("-.50"));
        assert_eq!(text(&value("10.50"), numeric).as_deref(), Some("10.50"));
        assert_eq!(exact(&value("-0.50"), numeric).as_deref(), Some("-0.50"));
        assert_eq!(text(&value("18.0000"), SqlType::Money).as_deref(), Some("18.0000"));
        assert_eq!(text(&Value::Null, numeric), None);
    }

    #[test]
    fn bytes_are_hexadecimal_and_text_is_itself() {
        let bytes = Value::Blob(vec![0, 0xab]);
        assert_eq!(text(&bytes, SqlType::Binary(2)).as_deref(), Some("0x00AB"));
        let date = Value::Text("2024-01-02 03:04:05.000".into());
        assert_eq!(text(&date, SqlType::DateTime).as_deref(), Some("2024-01-02 03:04:05.000"));
        assert_eq!(text(&Value::Integer(-7), SqlType::Int).as_deref(), Some("-7"));
    }
}
