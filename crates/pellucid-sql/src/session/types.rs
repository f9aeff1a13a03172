//! Declared types of SQLite's columns as types of T-SQL.

use pellucid_tsql::ast::{DataType, Name, TypeSize};

use crate::values::types::{Family, Length, SqlType};

/// Bytes that a text or image holds at most. With this size the types of T-SQL are told from SQLite's TEXT.
const TEXT_MOST: &str = "2147483647";
/// Characters that an ntext holds at most.
const NTEXT_MOST: &str = "1073741823";
/// How a sysname is declared: SQLite would make numbers of the texts in a column whose type has no CHAR or TEXT.
const SYSNAME: &str = "sysname nvarchar";

/// A declared type in small letters, and what stands in its brackets.
fn parts(declared: &str) -> (String, &str) {
    let text = declared.trim();
    let (name, size) = match text.split_once('(') {
        Some((name, rest)) => (name.trim(), rest.trim_end_matches(')').trim()),
        None => (text, ""),
    };
    (name.to_ascii_lowercase(), size)
}

/// The type of a column that is declared so. What SQLite alone knows gets the type that holds all of it.
pub(crate) fn declared_type(declared: &str) -> SqlType {
    let (lower, size) = parts(declared);
    match (lower.as_str(), size) {
        ("text", TEXT_MOST) | ("varchar max", _) => return SqlType::VARCHAR_MAX,
        ("ntext", NTEXT_MOST) | ("nvarchar max", _) => return SqlType::NVARCHAR_MAX,
        ("image", TEXT_MOST) | ("varbinary max", _) => return SqlType::VarBinary(Length::Max),
        (SYSNAME, _) => return SqlType::SYSNAME,
        // SQLite's own habits: 64 bits, text of any length, numbers with a fraction.
        ("integer", _) => return SqlType::BigInt,
        ("text" | "clob", _) => return SqlType::NVARCHAR_MAX,
        ("blob", _) => return SqlType::VarBinary(Length::Max),
        ("double" | "double precision", _) => return SqlType::Float,
        ("real", "") => return SqlType::Float,
        ("numeric" | "decimal", "") => return SqlType::numeric(38, 6),
        ("boolean" | "bool", _) => return SqlType::Bit,
        ("xmltext", _) => return SqlType::Xml,
        ("timestamp", _) => return SqlType::DateTime2(7),
        ("", _) => return SqlType::Variant,
        _ => {}
    }
    let size = match size.split_once(',') {
        _ if size.is_empty() => TypeSize::Default,
        _ if size.eq_ignore_ascii_case("max") => TypeSize::Max,
        Some((precision, scale)) => match (precision.trim().parse(), scale.trim().parse()) {
            (Ok(precision), Ok(scale)) => TypeSize::Two(precision, scale),
            _ => TypeSize::Default,
        },
        None => size.parse().map_or(TypeSize::Default, TypeSize::One),
    };
    let Some(name) = Name::new(lower.as_str()) else { return SqlType::Variant };
    let written = DataType { name: name.into(), size };
    SqlType::declared(&written, 1).unwrap_or_else(|_| by_affinity(&lower))
}

/// Before the type of an identity in the text of its table, where the column itself is declared INTEGER.
pub(crate) const IDENTITY_IS: &str = "/*";
/// Behind that type and before the first number, if that is not 1.
pub(crate) const IDENTITY_FROM: &str = " from ";

/// The type of an identity, which the text of its table, in small letters, says beside INTEGER.
pub(crate) fn identity_type(lower: &str, name: &str) -> Option<SqlType> {
    let (declared, _) = identity_said(lower, name)?;
    Some(declared_type(declared)).filter(|known| known.family() == Family::Integer)
}

/// The first number of an identity by the same text.
pub(crate) fn identity_seed(lower: &str, name: &str) -> i64 {
    let said = identity_said(lower, name).and_then(|(_, seed)| seed.parse().ok());
    // Whoever makes the file can have written anything.
    said.filter(|seed| *seed > 0).unwrap_or(1)
}

fn identity_said<'t>(lower: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let begin =
        format!("{} integer {IDENTITY_IS}", crate::translate::quoted(&name.to_ascii_lowercase()));
    let (said, _) = lower.split_once(&begin)?.1.split_once("*/")?;
    Some(said.split_once(IDENTITY_FROM).unwrap_or((said, "")))
}

/// What the catalog calls the type of a column that is declared so and is of the type `data_type`.
pub(crate) fn catalog_type(declared: &str, data_type: SqlType) -> &'static str {
    let (lower, size) = parts(declared);
    match (lower.as_str(), size) {
        ("text", TEXT_MOST) => "text",
        ("ntext", NTEXT_MOST) => "ntext",
        ("image", TEXT_MOST) => "image",
        (SYSNAME | "sysname", _) => "sysname",
        ("decimal" | "dec", _) => "decimal",
        _ => data_type.name(),
    }
}

/// The same for a column that a statement declares.
pub(crate) fn written_declaration(written: &DataType, data_type: SqlType) -> String {
    let name = written.name.object.as_str().to_ascii_lowercase();
    match (name.as_str(), written.size) {
        ("text" | "image", _) => format!("{name}({TEXT_MOST})"),
        ("ntext", _) => format!("{name}({NTEXT_MOST})"),
        ("sysname", _) => format!("{SYSNAME}(128)"),
        ("decimal" | "dec", TypeSize::Default) => "decimal(18,0)".to_owned(),
        ("decimal" | "dec", TypeSize::One(precision)) => format!("decimal({precision},0)"),
        ("decimal" | "dec", TypeSize::Two(precision, scale)) => {
            format!("decimal({precision},{scale})")
        }
        _ => declaration(data_type),
    }
}

/// How a column of SQLite's is declared so that [`declared_type`] gives the type.
pub(crate) fn declaration(data_type: SqlType) -> String {
    match data_type {
        SqlType::Null => "int".to_owned(),
        SqlType::Real => "float(24)".to_owned(),
        // SQLite's grammar takes no `max` in brackets.
        SqlType::NVarChar(Length::Max) => "nvarchar max".to_owned(),
        SqlType::VarChar(Length::Max) => "varchar max".to_owned(),
        SqlType::VarBinary(Length::Max) => "varbinary max".to_owned(),
        // Without an affinity that makes numbers of text.
        SqlType::Variant => String::new(),
        SqlType::Xml => "xmltext".to_owned(),
        other => other.to_string(),
    }
}

/// SQLite's own rules (datatype3.html, 3.1).
fn by_affinity(name: &str) -> SqlType {
    let has = |part: &str| name.contains(part);
    if has("int") {
        SqlType::BigInt
    } else if has("char") || has("clob") || has("text") {
        SqlType::NVARCHAR_MAX
    } else if has("blob") {
        SqlType::VarBinary(Length::Max)
    } else if has("real") || has("floa") || has("doub") {
        SqlType::Float
    } else {
        SqlType::Variant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_are_those_of_both_worlds() {
        let expected = [
            ("INTEGER", SqlType::BigInt),
            ("int", SqlType::Int),
            ("TEXT", SqlType::NVARCHAR_MAX),
            ("nvarchar(40)", SqlType::nvarchar(40)),
            ("NVARCHAR ( 40 )", SqlType::nvarchar(40)),
            ("numeric(20,0)", SqlType::numeric(20, 0)),
            ("NUMERIC", SqlType::numeric(38, 6)),
            ("varchar(max)", SqlType::VARCHAR_MAX),
            // As earlier builds declared (max).
            ("ntext", SqlType::NVARCHAR_MAX),
            ("image", SqlType::VarBinary(Length::Max)),
            ("sysname", SqlType::SYSNAME),
            ("REAL", SqlType::Float),
            ("TEXT(100)", SqlType::NVARCHAR_MAX),
            ("text(2147483647)", SqlType::VARCHAR_MAX),
            ("sysname nvarchar(128)", SqlType::SYSNAME),
            ("DATETIME", SqlType::DateTime),
            ("UNSIGNED BIG INT", SqlType::BigInt),
            ("", SqlType::Variant),
            ("STRANGE", SqlType::Variant),
        ];
        for (declared, data_type) in expected {
            assert_eq!(declared_type(declared), data_type, "{declared}");
        }
    }

    #[test]
    fn types_are_declared_so_that_they_are_found_again() {
        for data_type in [
            SqlType::Bit,
            SqlType::TinyInt,
            SqlType::SmallInt,
            SqlType::Int,
            SqlType::BigInt,
            SqlType::SmallMoney,
            SqlType::Money,
            SqlType::numeric(20, 3),
            SqlType::Real,
            SqlType::Float,
            SqlType::Date,
            SqlType::Time(3),
            SqlType::SmallDateTime,
            SqlType::DateTime,
            SqlType::DateTime2(7),
            SqlType::Char(3),
            SqlType::varchar(8000),
            SqlType::NChar(4),
            SqlType::nvarchar(4000),
            SqlType::NVARCHAR_MAX,
            SqlType::VARCHAR_MAX,
            SqlType::Binary(2),
            SqlType::VarBinary(Length::Of(9)),
            SqlType::VarBinary(Length::Max),
            SqlType::UniqueIdentifier,
            SqlType::Xml,
            SqlType::Variant,
        ] {
            assert_eq!(declared_type(&declaration(data_type)), data_type);
        }
    }
}
