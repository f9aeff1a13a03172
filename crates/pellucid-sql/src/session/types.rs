//! Declared types of SQLite's columns as types of T-SQL.

use pellucid_tsql::ast::{DataType, Name, TypeSize};

use crate::values::types::{Family, Length, SqlType};

/// The type of a column that is declared so. What SQLite alone knows gets the type that holds all of it.
pub(crate) fn declared_type(declared: &str) -> SqlType {
    let text = declared.trim();
    let (name, size) = match text.split_once('(') {
        Some((name, rest)) => (name.trim(), rest.trim_end_matches(')').trim()),
        None => (text, ""),
    };
    let lower = name.to_ascii_lowercase();
    // SQLite's own habits: 64 bits, text of any length, numbers with a fraction.
    match (lower.as_str(), size) {
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
    identity_said(lower, name).and_then(|(_, seed)| seed.parse().ok()).unwrap_or(1)
}

fn identity_said<'t>(lower: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let begin =
        format!("{} integer {IDENTITY_IS}", crate::translate::quoted(&name.to_ascii_lowercase()));
    let (said, _) = lower.split_once(&begin)?.1.split_once("*/")?;
    Some(said.split_once(IDENTITY_FROM).unwrap_or((said, "")))
}

/// How a column of SQLite's is declared so that [`declared_type`] gives the type.
pub(crate) fn declaration(data_type: SqlType) -> String {
    match data_type {
        SqlType::Null => "int".to_owned(),
        SqlType::Real => "float(24)".to_owned(),
        SqlType::NVarChar(Length::Max) => "ntext".to_owned(),
        SqlType::VarChar(Length::Max) => "text".to_owned(),
        SqlType::VarBinary(Length::Max) => "image".to_owned(),
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
            SqlType::Binary(2),
            SqlType::VarBinary(Length::Of(9)),
            SqlType::VarBinary(Length::Max),
            SqlType::UniqueIdentifier,
            SqlType::Xml,
            SqlType::Variant,
        ] {
            assert_eq!(declared_type(&declaration(data_type)), data_type);
        }
        // SQLite's text is national.
        assert_eq!(declared_type(&declaration(SqlType::VARCHAR_MAX)), SqlType::NVARCHAR_MAX);
    }
}
