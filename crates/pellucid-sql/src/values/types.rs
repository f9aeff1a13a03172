//! Types of values: what they are called, how they travel through SQLite, and which of two wins.
//!
//! Within a translated statement a value of each type has one form, so that SQLite's own comparison orders it:
//!
//! | Type | In SQLite |
//! |---|---|
//! | bit, tinyint .. bigint | INTEGER |
//! | numeric, money | BLOB of 16 bytes, see [`crate::values::decimal`] |
//! | float, real | REAL |
//! | char .. nvarchar, xml | TEXT |
//! | date .. datetime2 | TEXT as in ISO 8601, as many digits as the type has |
//! | binary, varbinary | BLOB |
//! | uniqueidentifier | TEXT, in capitals |
//! | sql_variant | as it is |

mod arithmetic;
mod declared;
mod unify;

pub use arithmetic::{arithmetic, average, sum};
pub use unify::{implicit, literal_numeric, unify};

/// Characters or bytes that a type holds at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Length {
    /// So many.
    Of(u16),
    /// `max`
    Max,
}

/// A type of SQL Server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SqlType {
    /// NULL without a type.
    Null,
    Bit,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    SmallMoney,
    Money,
    /// `numeric(precision, scale)`, `decimal`
    Numeric {
        precision: u8,
        scale: u8,
    },
    Real,
    Float,
    Date,
    /// With digits of a second.
    Time(u8),
    SmallDateTime,
    DateTime,
    /// With digits of a second.
    DateTime2(u8),
    Char(u16),
    VarChar(Length),
    NChar(u16),
    NVarChar(Length),
    Binary(u16),
    VarBinary(Length),
    UniqueIdentifier,
    Xml,
    /// A node that nodes() has given.
    XmlNode,
    Variant,
}

/// Types that are dealt with alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    Null,
    Integer,
    /// numeric and money
    Decimal,
    Float,
    /// date, time and both
    Moment,
    Text,
    Binary,
    Guid,
    Xml,
    Variant,
}

/// Digits of a numeric at most.
pub const PRECISION_MOST: u8 = 38;

impl SqlType {
    /// `sysname`
    pub const SYSNAME: SqlType = SqlType::NVarChar(Length::Of(128));
    /// `varchar(max)`
    pub const VARCHAR_MAX: SqlType = SqlType::VarChar(Length::Max);
    /// `nvarchar(max)`
    pub const NVARCHAR_MAX: SqlType = SqlType::NVarChar(Length::Max);

    /// `numeric(precision, scale)`
    pub const fn numeric(precision: u8, scale: u8) -> Self {
        Self::Numeric { precision, scale }
    }

    /// `nvarchar(length)`
    pub const fn nvarchar(length: u16) -> Self {
        Self::NVarChar(Length::Of(length))
    }

    /// `varchar(length)`
    pub const fn varchar(length: u16) -> Self {
        Self::VarChar(Length::Of(length))
    }

    /// What it is dealt with like.
    pub fn family(self) -> Family {
        match self {
            Self::Null => Family::Null,
            Self::Bit | Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt => {
                Family::Integer
            }
            Self::SmallMoney | Self::Money | Self::Numeric { .. } => Family::Decimal,
            Self::Real | Self::Float => Family::Float,
            Self::Date
            | Self::Time(_)
            | Self::SmallDateTime
            | Self::DateTime
            | Self::DateTime2(_) => Family::Moment,
            Self::Char(_) | Self::VarChar(_) | Self::NChar(_) | Self::NVarChar(_) => Family::Text,
            Self::Binary(_) | Self::VarBinary(_) => Family::Binary,
            Self::UniqueIdentifier => Family::Guid,
            Self::Xml | Self::XmlNode => Family::Xml,
            Self::Variant => Family::Variant,
        }
    }

    /// Its name, without size.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Bit => "bit",
            Self::TinyInt => "tinyint",
            Self::SmallInt => "smallint",
            Self::Int => "int",
            Self::BigInt => "bigint",
            Self::SmallMoney => "smallmoney",
            Self::Money => "money",
            Self::Numeric { .. } => "numeric",
            Self::Real => "real",
            Self::Float => "float",
            Self::Date => "date",
            Self::Time(_) => "time",
            Self::SmallDateTime => "smalldatetime",
            Self::DateTime => "datetime",
            Self::DateTime2(_) => "datetime2",
            Self::Char(_) => "char",
            Self::VarChar(_) => "varchar",
            Self::NChar(_) => "nchar",
            Self::NVarChar(_) => "nvarchar",
            Self::Binary(_) => "binary",
            Self::VarBinary(_) => "varbinary",
            Self::UniqueIdentifier => "uniqueidentifier",
            Self::Xml | Self::XmlNode => "xml",
            Self::Variant => "sql_variant",
        }
    }

    /// Whether it is text of the national kind.
    pub fn is_national(self) -> bool {
        matches!(self, Self::NChar(_) | Self::NVarChar(_))
    }

    /// Characters or bytes of text and binary types.
    pub fn length(self) -> Option<Length> {
        match self {
            Self::Char(n) | Self::NChar(n) | Self::Binary(n) => Some(Length::Of(n)),
            Self::VarChar(length) | Self::NVarChar(length) | Self::VarBinary(length) => {
                Some(length)
            }
            _ => None,
        }
    }

    /// Scale of numeric and money, 0 for others.
    pub fn scale(self) -> u8 {
        match self {
            Self::Numeric { scale, .. } => scale,
            Self::Money | Self::SmallMoney => 4,
            _ => 0,
        }
    }

    /// As a numeric: integers and money have one that holds them.
    pub fn as_numeric(self) -> Option<(u8, u8)> {
        Some(match self {
            Self::Numeric { precision, scale } => (precision, scale),
            Self::Money => (19, 4),
            Self::SmallMoney => (10, 4),
            Self::BigInt => (19, 0),
            Self::Int => (10, 0),
            Self::SmallInt => (5, 0),
            Self::TinyInt => (3, 0),
            Self::Bit => (1, 0),
            _ => return None,
        })
    }

    /// Smallest and largest value of an integer type.
    pub fn integer_range(self) -> Option<(i64, i64)> {
        Some(match self {
            Self::Bit => (0, 1),
            Self::TinyInt => (0, 255),
            Self::SmallInt => (i16::MIN.into(), i16::MAX.into()),
            Self::Int => (i32::MIN.into(), i32::MAX.into()),
            Self::BigInt => (i64::MIN, i64::MAX),
            _ => return None,
        })
    }

    /// Smallest and largest value of money types, in their smallest unit.
    pub fn money_range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::Money => (i64::MIN.into(), i64::MAX.into()),
            Self::SmallMoney => (i32::MIN.into(), i32::MAX.into()),
            _ => return None,
        })
    }

    /// The number by which functions within SQLite are told a type.
    pub fn code(self) -> i64 {
        let (tag, first, second) = match self {
            Self::Null => (0, 0, 0),
            Self::Bit => (1, 0, 0),
            Self::TinyInt => (2, 0, 0),
            Self::SmallInt => (3, 0, 0),
            Self::Int => (4, 0, 0),
            Self::BigInt => (5, 0, 0),
            Self::SmallMoney => (6, 0, 0),
            Self::Money => (7, 0, 0),
            Self::Numeric { precision, scale } => (8, u16::from(precision), scale),
            Self::Real => (9, 0, 0),
            Self::Float => (10, 0, 0),
            Self::Date => (11, 0, 0),
            Self::Time(digits) => (12, 0, digits),
            Self::SmallDateTime => (13, 0, 0),
            Self::DateTime => (14, 0, 0),
            Self::DateTime2(digits) => (15, 0, digits),
            Self::Char(n) => (16, n, 0),
            Self::VarChar(length) => (17, length.code(), 0),
            Self::NChar(n) => (18, n, 0),
            Self::NVarChar(length) => (19, length.code(), 0),
            Self::Binary(n) => (20, n, 0),
            Self::VarBinary(length) => (21, length.code(), 0),
            Self::UniqueIdentifier => (22, 0, 0),
            Self::Xml => (23, 0, 0),
            Self::XmlNode => (25, 0, 0),
            Self::Variant => (24, 0, 0),
        };
        tag | i64::from(first) << 8 | i64::from(second) << 24
    }

    /// The type that has this number.
    pub fn of_code(code: i64) -> Option<Self> {
        let first = (code >> 8 & 0xffff) as u16;
        let second = (code >> 24 & 0xff) as u8;
        let length = match first {
            0 => Length::Max,
            n => Length::Of(n),
        };
        Some(match code & 0xff {
            0 => Self::Null,
            1 => Self::Bit,
            2 => Self::TinyInt,
            3 => Self::SmallInt,
            4 => Self::Int,
            5 => Self::BigInt,
            6 => Self::SmallMoney,
            7 => Self::Money,
            8 => Self::Numeric { precision: first as u8, scale: second },
            9 => Self::Real,
            10 => Self::Float,
            11 => Self::Date,
            12 => Self::Time(second),
            13 => Self::SmallDateTime,
            14 => Self::DateTime,
            15 => Self::DateTime2(second),
            16 => Self::Char(first),
            17 => Self::VarChar(length),
            18 => Self::NChar(first),
            19 => Self::NVarChar(length),
            20 => Self::Binary(first),
            21 => Self::VarBinary(length),
            22 => Self::UniqueIdentifier,
            23 => Self::Xml,
            25 => Self::XmlNode,
            24 => Self::Variant,
            _ => return None,
        })
    }
}

impl Length {
    fn code(self) -> u16 {
        match self {
            Self::Of(n) => n,
            Self::Max => 0,
        }
    }
}

impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Of(n) => write!(f, "{n}"),
            Self::Max => f.write_str("max"),
        }
    }
}

impl std::fmt::Display for SqlType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Numeric { precision, scale } => write!(f, "({precision},{scale})"),
            Self::Time(digits) | Self::DateTime2(digits) => write!(f, "({digits})"),
            _ => self.length().map_or(Ok(()), |length| write!(f, "({length})")),
        }
    }
}
