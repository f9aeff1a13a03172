//! Decimal numbers of up to 38 digits: exact, with a scale that their type says.
//!
//! Within SQLite such a number is a BLOB of 16 bytes: the value without its point, big-endian, with the sign bit
//! turned over. Numbers of one scale then compare as their bytes do, and SQLite orders and groups them by itself.
//! 38 digits fit into an `i128`; products and quotients are computed with more.

use num_bigint::{BigInt, Sign};

use crate::values::types::PRECISION_MOST;

/// Bytes of a number within SQLite.
pub const KEY_BYTES: usize = 16;

/// `unscaled / 10^scale`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    unscaled: i128,
    scale: u8,
}

/// What to do with digits that do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, a half away from zero.
    Nearest,
    /// Towards zero, as in a division.
    Truncate,
}

const fn power(exponent: u8) -> i128 {
    10_i128.pow(exponent as u32)
}

/// 10^`exponent`
fn big_power(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal { unscaled: 0, scale: 0 };

    /// `unscaled / 10^scale`; `None` if it has more than 38 digits.
    pub fn new(unscaled: i128, scale: u8) -> Option<Self> {
        let fits = scale <= PRECISION_MOST && unscaled.unsigned_abs() < power(38).unsigned_abs();
        fits.then_some(Self { unscaled, scale })
    }

    /// The value without its point.
    pub fn unscaled(self) -> i128 {
        self.unscaled
    }

    /// Digits behind the point.
    pub fn scale(self) -> u8 {
        self.scale
    }

    /// The number of these digits with an optional sign, point and exponent; `None` if it is none or too long.
    /// Digits behind the 38th scale place are rounded.
    pub fn parse(text: &str) -> Option<Self> {
        const EXPONENT_MOST: u32 = 400;
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        if exponent.unsigned_abs() > EXPONENT_MOST {
            return None;
        }
        let (negative, digits) = match mantissa.as_bytes().first()? {
            b'-' => (true, &mantissa[1..]),
            b'+' => (false, &mantissa[1..]),
            _ => (false, mantissa),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction)
        {
            return None;
        }
        if digits.len() > 400 {
            return None;
        }
        let mut value = BigInt::parse_bytes(format!("0{whole}{fraction}").as_bytes(), 10)?;
        if negative {
            value = -value;
        }
        let scale = i32::try_from(fraction.len()).ok()? - exponent;
        Self::of_big(value, scale, scale.clamp(0, PRECISION_MOST.into()) as u8, Rounding::Nearest)
    }

    /// The nearest number to a float with this scale; `None` if it is too large.
    pub fn of_float(value: f64, scale: u8) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        // A float has 17 digits that count.
        let exact = Self::parse(&format!("{value:.16e}"));
        match exact {
            Some(decimal) => decimal.with_scale(scale, Rounding::Nearest),
            None => Self::parse(&format!("{value:.*}", usize::from(scale)))
                .and_then(|decimal| decimal.with_scale(scale, Rounding::Nearest)),
        }
    }

    /// As a float, rounded.
    pub fn to_float(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Its whole part; `None` if it does not fit.
    pub fn to_integer(self) -> Option<i64> {
        i64::try_from(self.unscaled / power(self.scale)).ok()
    }

    /// The same number with another scale; `None` if it does not fit.
    pub fn with_scale(self, scale: u8, rounding: Rounding) -> Option<Self> {
        match scale.checked_sub(self.scale) {
            Some(0) => Some(self),
            Some(more) => {
                Self::new(self.unscaled.checked_mul(10_i128.checked_pow(more.into())?)?, scale)
            }
            None => {
                let unit = power(self.scale - scale);
                Self::new(divided(self.unscaled, unit, rounding), scale)
            }
        }
    }

    /// The number as a numeric of this precision and scale; `None` if it does not fit.
    pub fn fit(self, precision: u8, scale: u8, rounding: Rounding) -> Option<Self> {
        let fitted = self.with_scale(scale, rounding)?;
        let most = power(precision.min(PRECISION_MOST));
        (fitted.unscaled.abs() < most).then_some(fitted)
    }

    /// The sum, exact; `None` if it does not fit.
    pub fn plus(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let [a, b] = [self, other].map(|d| d.big(scale));
        Self::of_big(a + b, scale.into(), scale, Rounding::Nearest)
    }

    /// The number with the other sign.
    pub fn negated(self) -> Self {
        Self { unscaled: -self.unscaled, scale: self.scale }
    }

    /// The product with this scale, rounded; `None` if it does not fit.
    pub fn multiply(self, other: Self, scale: u8) -> Option<Self> {
        let product = BigInt::from(self.unscaled) * BigInt::from(other.unscaled);
        let exact = i32::from(self.scale) + i32::from(other.scale);
        Self::of_big(product, exact, scale, Rounding::Nearest)
    }

    /// The number to this power with this scale, rounded once; `None` if it does not fit.
    ///
    /// All digits are computed, 38 for each factor: callers bound the exponent.
    pub fn power(self, exponent: u8, scale: u8) -> Option<Self> {
        let product = BigInt::from(self.unscaled).pow(exponent.into());
        Self::of_big(product, i32::from(self.scale) * i32::from(exponent), scale, Rounding::Nearest)
    }

    /// The quotient with this scale, cut off; `None` if it does not fit. The divisor is not zero.
    pub fn divide(self, other: Self, scale: u8) -> Option<Self> {
        if other.unscaled == 0 {
            return None;
        }
        // (a / 10^sa) / (b / 10^sb) = (a * 10^(scale + sb - sa) / b) / 10^scale
        let mut dividend = BigInt::from(self.unscaled);
        let mut divisor = BigInt::from(other.unscaled);
        match i32::from(scale) + i32::from(other.scale) - i32::from(self.scale) {
            shift if shift >= 0 => dividend *= big_power(shift.unsigned_abs()),
            shift => divisor *= big_power(shift.unsigned_abs()),
        }
        Self::of_big(dividend / divisor, scale.into(), scale, Rounding::Truncate)
    }

    /// The remainder, with the sign of the dividend; `None` if it does not fit. The divisor is not zero.
    pub fn remainder(self, other: Self) -> Option<Self> {
        if other.unscaled == 0 {
            return None;
        }
        let scale = self.scale.max(other.scale);
        Self::of_big(self.big(scale) % other.big(scale), scale.into(), scale, Rounding::Truncate)
    }

    fn big(self, scale: u8) -> BigInt {
        BigInt::from(self.unscaled) * big_power((scale.saturating_sub(self.scale)).into())
    }

    fn of_big(value: BigInt, from: i32, to: u8, rounding: Rounding) -> Option<Self> {
        let shift = i32::from(to) - from;
        let scaled = match shift >= 0 {
            true => value * big_power(shift.unsigned_abs()),
            false => {
                let unit = big_power(shift.unsigned_abs());
                let half = match rounding {
                    Rounding::Nearest => &unit / 2,
                    Rounding::Truncate => BigInt::from(0),
                };
                match value.sign() {
                    Sign::Minus => (value - half) / unit,
                    _ => (value + half) / unit,
                }
            }
        };
        Self::new(i128::try_from(scaled).ok()?, to)
    }

    /// Its bytes within SQLite.
    pub fn to_key(self) -> [u8; KEY_BYTES] {
        (self.unscaled as u128 ^ 1 << 127).to_be_bytes()
    }

    /// The number that has these bytes.
    pub fn of_key(bytes: &[u8], scale: u8) -> Option<Self> {
        let bytes: [u8; KEY_BYTES] = bytes.try_into().ok()?;
        Self::new((u128::from_be_bytes(bytes) ^ 1 << 127) as i128, scale)
    }
}

fn divided(value: i128, unit: i128, rounding: Rounding) -> i128 {
    let (quotient, rest) = (value / unit, value % unit);
    match rounding {
        Rounding::Nearest if rest.abs() >= unit - rest.abs() => quotient + value.signum(),
        _ => quotient,
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self { unscaled: value.into(), scale: 0 }
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let digits = self.unscaled.unsigned_abs();
        match self.scale {
            0 => write!(f, "{sign}{digits}"),
            scale => {
                let unit = power(scale).unsigned_abs();
                let width = usize::from(scale);
                write!(f, "{sign}{}.{:0width$}", digits / unit, digits % unit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn texts() {
        for (text, shown) in [
            ("1.50", "1.50"),
            ("-.5", "-0.5"),
            ("+7", "7"),
            ("1.", "1"),
            ("1.5e3", "1500"),
            ("15e-3", "0.015"),
            ("00.10", "0.10"),
            ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
        ] {
            assert_eq!(decimal(text).to_string(), shown, "{text}");
        }
        for text in [
            "",
            ".",
            "-",
            "1.2.3",
            "1,5",
            "x",
            "100000000000000000000000000000000000000",
            "1e-2147483648",
            "1e2147483647",
            "1e401",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn computed_beyond_64_bits() {
        let nines = decimal("9999999999999999999");
        assert_eq!(
            nines.multiply(nines, 0).unwrap().to_string(),
            "99999999999999999980000000000000000001"
        );
        assert_eq!(nines.multiply(decimal("99999999999999999999"), 0), None);
        assert_eq!(decimal("2").divide(decimal("3.0"), 6).unwrap().to_string(), "0.666666");
        assert_eq!(decimal("-2").divide(decimal("3"), 6).unwrap().to_string(), "-0.666666");
        assert_eq!(decimal("7.5").remainder(decimal("-2")).unwrap().to_string(), "1.5");
        assert_eq!(decimal("0.125").multiply(decimal("1"), 2).unwrap().to_string(), "0.13");
        assert_eq!(decimal("-0.125").fit(5, 2, Rounding::Nearest).unwrap().to_string(), "-0.13");
        assert_eq!(decimal("99.995").fit(4, 2, Rounding::Nearest), None);
        assert_eq!(decimal("1.5").plus(decimal("-0.25")).unwrap().to_string(), "1.25");
    }

    #[test]
    fn bytes_are_ordered_as_numbers() {
        let numbers = ["-10.5", "-0.1", "0.0", "0.1", "2.0", "10.5"].map(decimal);
        let keys = numbers.map(|n| n.with_scale(1, Rounding::Nearest).unwrap().to_key());
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(Decimal::of_key(&keys[0], 1), Some(numbers[0]));
    }

    #[test]
    fn floats() {
        assert_eq!(Decimal::of_float(0.1, 3).unwrap().to_string(), "0.100");
        assert_eq!(Decimal::of_float(1e20, 0).unwrap().to_string(), "100000000000000000000");
        assert_eq!(Decimal::of_float(1e39, 0), None);
        assert_eq!(decimal("0.1").to_float(), 0.1);
    }
}
