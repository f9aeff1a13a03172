//! Types as statements write them.

use pellucid_tsql::ast::{DataType, TypeSize};

use super::{Length, SqlType, PRECISION_MOST};
use crate::values::{Error, Result};

/// Characters of varchar and bytes of varbinary, without `max`.
const LENGTH_MOST: u32 = 8000;
/// Digits of a second at most.
const FRACTION_MOST: u32 = 7;

impl SqlType {
    /// The type of the column, parameter or variable `number`, counted from 1.
    ///
    /// # Errors
    /// 2715 for an unknown type; else as [`Self::declared`].
    pub fn of_declaration(written: &DataType, number: usize) -> Result<Self> {
        Self::declared(written, 1).map_err(|error| match error {
            Error::UnknownType(name) => Error::NoDataType(number, name),
            Error::WidthRefused(_, name) => Error::WidthRefused(number, name),
            error => error,
        })
    }

    /// The type a declaration or a conversion names. Without a length, text has 1 character where it is declared
    /// and 30 where it is converted to (`default_length`).
    ///
    /// # Errors
    /// 243 for an unknown type, 131 and 192 for a size that it does not have, 50001 for types that there are not here.
    pub fn declared(written: &DataType, default_length: u16) -> Result<Self> {
        let schema = written.name.schema.as_ref().map(|name| name.as_str().to_lowercase());
        let name = written.name.object.as_str().to_lowercase();
        let system = written.name.server.is_none()
            && written.name.database.is_none()
            && schema.as_deref().is_none_or(|schema| schema == "sys");
        if !system {
            // CREATE TYPE makes it, which there is not here.
            return Err(Error::Unsupported(format!("type {}", type_text(written))));
        }
        let size = written.size;
        let chars = |most: u32| length(&name, size, default_length, most);
        let found = match name.as_str() {
            "bit" => Self::Bit,
            "tinyint" => Self::TinyInt,
            "smallint" => Self::SmallInt,
            "int" | "integer" => Self::Int,
            "bigint" => Self::BigInt,
            "money" => Self::Money,
            "smallmoney" => Self::SmallMoney,
            "numeric" | "decimal" | "dec" => return numeric(&name, size),
            "real" => Self::Real,
            "float" | "double precision" => return float(size),
            "date" => Self::Date,
            "time" => return digits(&name, size).map(Self::Time),
            "smalldatetime" => Self::SmallDateTime,
            "datetime" => Self::DateTime,
            "datetime2" => return digits(&name, size).map(Self::DateTime2),
            "char" | "character" => return Ok(Self::Char(fixed(&name, chars(LENGTH_MOST)?)?)),
            "nchar" | "national char" | "national character" => {
                return Ok(Self::NChar(fixed(&name, chars(LENGTH_MOST / 2)?)?))
            }
            "varchar" | "char varying" | "character varying" => {
                return chars(LENGTH_MOST).map(Self::VarChar)
            }
            "nvarchar"
            | "national varchar"
            | "national char varying"
            | "national character varying" => return chars(LENGTH_MOST / 2).map(Self::NVarChar),
            "text" => Self::VARCHAR_MAX,
            "ntext" => Self::NVARCHAR_MAX,
            "sysname" => Self::SYSNAME,
            "binary" => return Ok(Self::Binary(fixed(&name, chars(LENGTH_MOST)?)?)),
            "varbinary" | "binary varying" => return chars(LENGTH_MOST).map(Self::VarBinary),
            "image" => Self::VarBinary(Length::Max),
            "uniqueidentifier" => Self::UniqueIdentifier,
            "xml" => Self::Xml,
            "sql_variant" => Self::Variant,
            "datetimeoffset" | "rowversion" | "timestamp" | "hierarchyid" | "geometry"
            | "geography" | "cursor" | "table" | "json" | "vector" => {
                return Err(Error::Unsupported(name))
            }
            _ => return Err(Error::UnknownType(type_text(written))),
        };
        match size {
            TypeSize::Default => Ok(found),
            _ => Err(Error::WidthRefused(1, name)),
        }
    }
}

fn type_text(written: &DataType) -> String {
    match &written.name.schema {
        Some(schema) => format!("{}.{}", schema.as_str(), written.name.object.as_str()),
        None => written.name.object.as_str().to_owned(),
    }
}

fn too_large(given: u32, name: &str, most: u32) -> Error {
    Error::SizeTooLarge(given, name.to_owned(), most)
}

fn length(name: &str, size: TypeSize, default: u16, most: u32) -> Result<Length> {
    match size {
        TypeSize::Default => Ok(Length::Of(default)),
        TypeSize::Max => Ok(Length::Max),
        TypeSize::One(n) if (1..=most).contains(&n) => Ok(Length::Of(n as u16)),
        TypeSize::One(0) => Err(Error::SizeZero),
        TypeSize::One(n) | TypeSize::Two(n, _) => Err(too_large(n, name, most)),
    }
}

fn fixed(name: &str, length: Length) -> Result<u16> {
    match length {
        Length::Of(n) => Ok(n),
        Length::Max => Err(Error::Max(name.to_owned())),
    }
}

fn numeric(name: &str, size: TypeSize) -> Result<SqlType> {
    let (precision, scale) = match size {
        TypeSize::Default => (18, 0),
        TypeSize::One(precision) => (precision, 0),
        TypeSize::Two(precision, scale) => (precision, scale),
        TypeSize::Max => return Err(too_large(0, name, PRECISION_MOST.into())),
    };
    if !(1..=u32::from(PRECISION_MOST)).contains(&precision) {
        return Err(too_large(precision, name, PRECISION_MOST.into()));
    }
    if scale > precision {
        return Err(Error::ScaleAbovePrecision);
    }
    Ok(SqlType::numeric(precision as u8, scale as u8))
}

fn float(size: TypeSize) -> Result<SqlType> {
    match size {
        TypeSize::Default => Ok(SqlType::Float),
        TypeSize::One(1..=24) => Ok(SqlType::Real),
        TypeSize::One(25..=53) => Ok(SqlType::Float),
        TypeSize::One(n) | TypeSize::Two(n, _) => Err(too_large(n, "float", 53)),
        TypeSize::Max => Err(too_large(0, "float", 53)),
    }
}

fn digits(name: &str, size: TypeSize) -> Result<u8> {
    match size {
        TypeSize::Default => Ok(FRACTION_MOST as u8),
        TypeSize::One(n) if n <= FRACTION_MOST => Ok(n as u8),
        TypeSize::One(n) | TypeSize::Two(n, _) => Err(Error::BadScale(n)),
        TypeSize::Max => Err(too_large(0, name, FRACTION_MOST)),
    }
}
