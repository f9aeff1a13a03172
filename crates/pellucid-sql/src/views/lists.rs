//! Lists of columns, one word for each type.

use super::{flag, text, Column, Row};
use crate::values::convert::Value;
use crate::values::types::{Length, SqlType};

pub(super) const NAME: SqlType = SqlType::SYSNAME;
pub(super) const DESC: SqlType = SqlType::nvarchar(60);
pub(super) const GUID: SqlType = SqlType::UniqueIdentifier;
pub(super) const LSN: SqlType = SqlType::numeric(25, 0);
pub(super) const SIZE: SqlType = SqlType::numeric(20, 0);
pub(super) const NUMBER: SqlType = SqlType::numeric(10, 0);
pub(super) const INT: SqlType = SqlType::Int;
pub(super) const BIGINT: SqlType = SqlType::BigInt;
pub(super) const SMALL: SqlType = SqlType::SmallInt;
pub(super) const BYTE: SqlType = SqlType::TinyInt;
pub(super) const BIT: SqlType = SqlType::Bit;
pub(super) const REAL: SqlType = SqlType::Real;
pub(super) const FLOAT: SqlType = SqlType::Float;
pub(super) const XML: SqlType = SqlType::Xml;
pub(super) const TIME: SqlType = SqlType::DateTime;
pub(super) const TIME2: SqlType = SqlType::DateTime2(7);
pub(super) const VARIANT: SqlType = SqlType::Variant;
pub(super) const SID: SqlType = SqlType::VarBinary(Length::Of(85));
pub(super) const BIN2: SqlType = SqlType::Binary(2);
pub(super) const BIN6: SqlType = SqlType::Binary(6);
pub(super) const BIN8: SqlType = SqlType::Binary(8);
pub(super) const BIN20: SqlType = SqlType::Binary(20);
/// A thumbprint, as [`crate::values::thumbprint`] shows it.
pub(super) const PRINT: SqlType = SqlType::VarBinary(Length::Of(20));
pub(super) const BIN32: SqlType = SqlType::VarBinary(Length::Of(32));
pub(super) const BIN64: SqlType = SqlType::VarBinary(Length::Of(64));
pub(super) const BIN86: SqlType = SqlType::Binary(86);
pub(super) const BIN128: SqlType = SqlType::VarBinary(Length::Of(128));
pub(super) const BIN256: SqlType = SqlType::VarBinary(Length::Of(256));
pub(super) const BIN1088: SqlType = SqlType::VarBinary(Length::Of(1088));
pub(super) const BIN2048: SqlType = SqlType::VarBinary(Length::Of(2048));
pub(super) const BINMAX: SqlType = SqlType::VarBinary(Length::Max);
pub(super) const C1: SqlType = SqlType::Char(1);
pub(super) const C2: SqlType = SqlType::Char(2);
pub(super) const C4: SqlType = SqlType::Char(4);
pub(super) const V3: SqlType = SqlType::varchar(3);
pub(super) const V8: SqlType = SqlType::varchar(8);
pub(super) const V20: SqlType = SqlType::varchar(20);
pub(super) const V23: SqlType = SqlType::varchar(23);
pub(super) const V80: SqlType = SqlType::varchar(80);
pub(super) const V128: SqlType = SqlType::varchar(128);
pub(super) const V386: SqlType = SqlType::varchar(386);
pub(super) const VMAX: SqlType = SqlType::VARCHAR_MAX;
pub(super) const NC10: SqlType = SqlType::NChar(10);
pub(super) const NC12: SqlType = SqlType::NChar(12);
pub(super) const NC26: SqlType = SqlType::NChar(26);
pub(super) const NC30: SqlType = SqlType::NChar(30);
pub(super) const NC32: SqlType = SqlType::NChar(32);
pub(super) const N120: SqlType = SqlType::nvarchar(120);
pub(super) const NC128: SqlType = SqlType::NChar(128);
pub(super) const NC256: SqlType = SqlType::NChar(256);
pub(super) const N1: SqlType = SqlType::nvarchar(1);
pub(super) const N3: SqlType = SqlType::nvarchar(3);
pub(super) const N8: SqlType = SqlType::nvarchar(8);
pub(super) const N16: SqlType = SqlType::nvarchar(16);
pub(super) const N17: SqlType = SqlType::nvarchar(17);
pub(super) const N20: SqlType = SqlType::nvarchar(20);
pub(super) const N24: SqlType = SqlType::nvarchar(24);
pub(super) const N30: SqlType = SqlType::nvarchar(30);
pub(super) const N32: SqlType = SqlType::nvarchar(32);
pub(super) const N34: SqlType = SqlType::nvarchar(34);
pub(super) const N60: SqlType = SqlType::nvarchar(60);
pub(super) const N64: SqlType = SqlType::nvarchar(64);
pub(super) const N100: SqlType = SqlType::nvarchar(100);
pub(super) const N128: SqlType = SqlType::nvarchar(128);
pub(super) const N255: SqlType = SqlType::nvarchar(255);
pub(super) const N256: SqlType = SqlType::nvarchar(256);
pub(super) const N260: SqlType = SqlType::nvarchar(260);
pub(super) const N500: SqlType = SqlType::nvarchar(500);
pub(super) const N1024: SqlType = SqlType::nvarchar(1024);
pub(super) const N3072: SqlType = SqlType::nvarchar(3072);
pub(super) const N3900: SqlType = SqlType::nvarchar(3900);
pub(super) const N4000: SqlType = SqlType::nvarchar(4000);
pub(super) const NMAX: SqlType = SqlType::NVARCHAR_MAX;

/// `columns!(name NAME, object_id INT)`; `columns!(object: ...)` begins with the columns of `sys.objects`.
macro_rules! columns {
    (object: $($name:ident $kind:ident),* $(,)?) => {
        columns!(
            name NAME, object_id INT, principal_id INT, schema_id INT, parent_object_id INT, type C2, type_desc DESC,
            create_date TIME, modify_date TIME, is_ms_shipped BIT, is_published BIT, is_schema_published BIT,
            $($name $kind),*
        )
    };
    ($($name:ident $kind:ident),* $(,)?) => {
        &[$((stringify!($name), $crate::views::lists::$kind)),*]
    };
}

/// Views without rows: `views!(sys [services: name NAME, service_id INT] [routes: ..])`
macro_rules! views {
    ($make:ident $([$view:ident: $($column:tt)*])*) => {
        &[$($crate::views::$make(stringify!($view), columns!($($column)*), $crate::views::absent::none)),*]
    };
}

/// What a column has where nothing else is known of it.
#[derive(Clone, Copy)]
pub(super) enum Same {
    Number(i64),
    Text(&'static str),
    Unknown,
}

impl Same {
    /// As SQLite keeps it.
    pub fn value(self) -> Value {
        match self {
            Same::Number(number) => Value::Integer(number),
            Same::Text(same) => text(same),
            Same::Unknown => Value::Null,
        }
    }
}

/// Rows with the columns `known`, put into the order of `columns`. Columns that are not known have what `same` says; others are
/// off if they are bits, and NULL.
pub(super) fn arranged(
    columns: &[Column],
    known: &[Column],
    same: &[(&str, Same)],
    rows: Vec<Row>,
) -> Vec<Row> {
    enum From {
        Row(usize),
        Value(Value),
    }
    let from = columns.iter().map(|(name, data_type)| {
        let here = known.iter().position(|(other, _)| other == name);
        let fixed = same.iter().find(|(other, _)| other == name).map(|(_, same)| *same);
        match (here, fixed) {
            (Some(at), _) => From::Row(at),
            (None, Some(same)) => From::Value(same.value()),
            (None, None) if *data_type == SqlType::Bit => From::Value(flag(false)),
            (None, None) => From::Value(Value::Null),
        }
    });
    let from: Vec<From> = from.collect();
    let arrange = |row: Row| {
        let value = |from: &From| match from {
            From::Row(at) => row.get(*at).cloned().unwrap_or(Value::Null),
            From::Value(value) => value.clone(),
        };
        from.iter().map(value).collect()
    };
    rows.into_iter().map(arrange).collect()
}
