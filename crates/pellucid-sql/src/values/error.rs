//! Why a value or a type is refused.

use super::types::SqlType;

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a value or a type is refused, in SQL Server's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A size larger than its type may have: what is given, the type, the most.
    #[error("The size ({0}) given to the type '{1}' exceeds the maximum allowed for any data type ({2}).")]
    SizeTooLarge(u32, String, u32),
    /// A type that cannot have `(max)`.
    #[error("Incorrect syntax near '{0}'.")]
    Max(String),
    /// A scale larger than the precision.
    #[error("The scale must be less than or equal to the precision.")]
    ScaleAbovePrecision,
    /// Types that no operation brings together.
    #[error("Operand type clash: {a} is incompatible with {b}", a = .0.name(), b = .1.name())]
    TypeClash(SqlType, SqlType),
    /// An integer too large for tinyint or smallint.
    #[error("Arithmetic overflow error for data type {a}, value = {1}.", a = .0.name())]
    IntegerOverflow(SqlType, i128),
    /// A float too large for its type; the number is text already.
    #[error("Arithmetic overflow error for type {a}, value = {1}.", a = .0.name())]
    FloatOverflow(SqlType, String),
    /// A text that is no money.
    #[error("Cannot convert a char value to money. The char value has incorrect syntax.")]
    NotMoney,
    /// A text that is no smallmoney.
    #[error("Cannot convert a char value to smallmoney. The char value has incorrect syntax.")]
    NotSmallMoney,
    /// A text that is no date or time.
    #[error("Conversion failed when converting date and/or time from character string.")]
    NotADate,
    /// A text that is no smalldatetime.
    #[error("Conversion failed when converting character string to smalldatetime data type.")]
    NotASmallDateTime,
    /// A date that its new type cannot hold.
    #[error(
        "The conversion of a {a} data type to a {b} data type resulted in an out-of-range value.",
        a = .0.name(),
        b = .1.name()
    )]
    DateOutOfRange(SqlType, SqlType),
    /// A type that there is not.
    #[error("Type {0} is not a defined system type.")]
    UnknownType(String),
    /// The same where something is declared: its number and the type.
    #[error("Column, parameter, or variable #{0}: Cannot find data type {1}.")]
    NoDataType(usize, String),
    /// A text that is no integer.
    #[error("Conversion failed when converting the {a} value '{1}' to data type {b}.", a = .0.name(), b = .2.name())]
    NotConvertible(SqlType, String, SqlType),
    /// A text whose number an int cannot hold.
    #[error("The conversion of the {a} value '{1}' overflowed an int column.", a = .0.name())]
    OverflowedInt(SqlType, String),
    /// A text whose number tinyint (INT1) or smallint (INT2) cannot hold.
    #[error(
        "The conversion of the {a} value '{1}' overflowed an {2} column. Use a larger integer column.",
        a = .0.name()
    )]
    OverflowedSmall(SqlType, String, &'static str),
    /// A style that a conversion does not have.
    #[error("{0} is not a valid style number when converting from {a} to a character string.", a = .1.name())]
    BadStyle(i64, SqlType),
    /// Types that no operator brings together.
    #[error("The data types {a} and {b} are incompatible in the {2} operator.", a = .0.name(), b = .1.name())]
    Incompatible(SqlType, SqlType, &'static str),
    /// A conversion that there is not.
    #[error("Explicit conversion from data type {a} to {b} is not allowed.", a = .0.name(), b = .1.name())]
    NoConversion(SqlType, SqlType),
    /// A length or precision of 0.
    #[error("Line 1: Length or precision specification 0 is invalid.")]
    SizeZero,
    /// A scale that a type of dates cannot have.
    #[error("Line 1: Specified scale {0} is invalid.")]
    BadScale(u32),
    /// A size of a type that has none.
    #[error(
        "Column, parameter, or variable #{0}: Cannot specify a column width on data type {1}."
    )]
    WidthRefused(usize, String),
    /// A value that its new type cannot be made of.
    #[error("Error converting data type {a} to {b}.", a = .0.name(), b = .1.name())]
    ErrorConverting(SqlType, SqlType),
    /// A number that its new type cannot hold.
    #[error("Arithmetic overflow error converting {0} to data type {1}.")]
    Overflow(&'static str, &'static str),
    /// A type that an operator does not take.
    #[error("Operand data type {a} is invalid for {1} operator.", a = .0.name())]
    BadOperand(SqlType, String),
    /// A text that is no uniqueidentifier.
    #[error("Conversion failed when converting from a character string to uniqueidentifier.")]
    NotAGuid,
    /// A text too short for a uniqueidentifier.
    #[error("Insufficient result space to convert uniqueidentifier value to char.")]
    NoRoomForGuid,
    /// Text that is no xml.
    #[error("XML parsing: line {line}, character {column}, {text}")]
    Xml {
        /// As SQL Server's parser has it, 9400 to 9480.
        number: u32,
        /// From 1.
        line: u32,
        /// From 1.
        column: u32,
        /// What is wrong.
        text: &'static str,
    },
    /// More elements within one another than so many.
    #[error("XML datatype instance has too many levels of nested nodes. Maximum allowed depth is {0} levels.")]
    XmlTooDeep(usize),
    /// A text too short for a value of xml.
    #[error("Target string size is too small to represent the XML instance.")]
    NoRoomForXml,
    /// What SQL Server knows and Pellucid does not do.
    #[error("'{0}' is not supported.")]
    Unsupported(String),
}

impl Error {
    /// The number of the message, as `sys.messages` has it; 50001 is one of our own.
    pub fn number(&self) -> u32 {
        match self {
            Self::Max(_) => 102,
            Self::SizeTooLarge(..) => 131,
            Self::ScaleAbovePrecision => 192,
            Self::TypeClash(..) => 206,
            Self::IntegerOverflow(..) => 220,
            Self::FloatOverflow(..) => 232,
            Self::NotMoney => 235,
            Self::NotADate => 241,
            Self::DateOutOfRange(..) => 242,
            Self::UnknownType(_) => 243,
            Self::OverflowedSmall(..) => 244,
            Self::NotConvertible(..) => 245,
            Self::OverflowedInt(..) => 248,
            Self::BadStyle(..) => 281,
            Self::NotSmallMoney => 293,
            Self::NotASmallDateTime => 295,
            Self::Incompatible(..) => 402,
            Self::NoConversion(..) => 529,
            Self::SizeZero => 1001,
            Self::BadScale(_) => 1002,
            Self::NoDataType(..) => 2715,
            Self::WidthRefused(..) => 2716,
            Self::ErrorConverting(..) => 8114,
            Self::Overflow(..) => 8115,
            Self::BadOperand(..) => 8117,
            Self::XmlTooDeep(_) => 6335,
            Self::NoRoomForXml => 6354,
            Self::Xml { number, .. } => *number,
            Self::NotAGuid => 8169,
            Self::NoRoomForGuid => 8170,
            Self::Unsupported(_) => 50_001,
        }
    }

    /// 15 for what is wrong in the statement, 16 for what is wrong with a value.
    pub fn severity(&self) -> u8 {
        match self {
            Self::Max(_)
            | Self::SizeTooLarge(..)
            | Self::ScaleAbovePrecision
            | Self::SizeZero
            | Self::BadScale(_)
            | Self::Unsupported(_) => 15,
            _ => 16,
        }
    }

    /// Where it was raised, as SQL Server numbers it.
    pub fn state(&self) -> u8 {
        match self {
            Self::Overflow("numeric", "char" | "varchar" | "nchar" | "nvarchar") => 5,
            Self::Overflow("float" | "real", "numeric") => 6,
            Self::Overflow("numeric" | "int" | "varchar" | "nvarchar", "numeric") => 8,
            Self::IntegerOverflow(SqlType::TinyInt, _) => 2,
            Self::FloatOverflow(SqlType::Int, _) => 3,
            Self::TypeClash(..) | Self::NoConversion(..) | Self::Overflow(..) | Self::NotAGuid => 2,
            Self::DateOutOfRange(..) | Self::NoDataType(..) | Self::NotASmallDateTime => 3,
            Self::ErrorConverting(..) => 5,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::values::convert::{convert, Value};
    use crate::values::types::{Length, SqlType};

    /// Source: SQL Server 2019, as its users quote it.
    #[test]
    fn overflows_have_the_states_of_their_types() {
        let narrow = SqlType::numeric(3, 2);
        let wide = SqlType::numeric(10, 2);
        let decimal = |digits| convert(Value::Integer(digits), SqlType::Int, wide, None).unwrap();
        let text = || Value::Text("99999".to_owned());
        for (value, from, to, number, state) in [
            (decimal(99_999), wide, narrow, 8115, 8),
            (Value::Integer(99_999), SqlType::Int, narrow, 8115, 8),
            (text(), SqlType::VARCHAR_MAX, narrow, 8115, 8),
            (Value::Real(99_999.0), SqlType::Float, narrow, 8115, 6),
            (decimal(99_999), wide, SqlType::VarChar(Length::Of(3)), 8115, 5),
            (Value::Integer(1 << 40), SqlType::BigInt, SqlType::Int, 8115, 2),
            (Value::Real(1e10), SqlType::Float, SqlType::Int, 232, 3),
            (Value::Integer(300), SqlType::Int, SqlType::TinyInt, 220, 2),
            (Value::Integer(99_999), SqlType::Int, SqlType::SmallInt, 220, 1),
        ] {
            let error = convert(value, from, to, None).unwrap_err();
            assert_eq!((error.number(), error.state()), (number, state), "{from} to {to}");
        }
    }
}
