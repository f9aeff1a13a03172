//! What every database has from its beginning: the server's own views and types.

use super::{catalog, flag, text, Column, Row, View};
use crate::message::Result;
use crate::session::{object_id, Databases};
use crate::translate::is_table_function;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// `schema_id` of `sys` and of `INFORMATION_SCHEMA`.
const SYS: i64 = 4;
const INFORMATION_SCHEMA: i64 = 3;

/// Source: Microsoft's "sys.types".
pub(super) const TYPES: [Column; 15] = [
    ("name", SqlType::SYSNAME),
    ("system_type_id", SqlType::TinyInt),
    ("user_type_id", SqlType::Int),
    ("schema_id", SqlType::Int),
    ("principal_id", SqlType::Int),
    ("max_length", SqlType::SmallInt),
    ("precision", SqlType::TinyInt),
    ("scale", SqlType::TinyInt),
    ("collation_name", SqlType::SYSNAME),
    ("is_nullable", SqlType::Bit),
    ("is_user_defined", SqlType::Bit),
    ("is_assembly_type", SqlType::Bit),
    ("default_object_id", SqlType::Int),
    ("rule_object_id", SqlType::Int),
    ("is_table_type", SqlType::Bit),
];

/// Source: Microsoft's "SCHEMATA".
pub(super) const SCHEMATA: [Column; 6] = [
    ("CATALOG_NAME", SqlType::SYSNAME),
    ("SCHEMA_NAME", SqlType::SYSNAME),
    ("SCHEMA_OWNER", SqlType::SYSNAME),
    ("DEFAULT_CHARACTER_SET_CATALOG", SqlType::varchar(6)),
    ("DEFAULT_CHARACTER_SET_SCHEMA", SqlType::varchar(3)),
    ("DEFAULT_CHARACTER_SET_NAME", SqlType::SYSNAME),
];

/// A type: name, `system_type_id`, `user_type_id`, `max_length`, `precision`, `scale`.
type Shipped = (&'static str, i64, i64, i64, i64, i64);

/// Those that columns and variables may have here, as SQL Server numbers them.
const SHIPPED: [Shipped; 29] = [
    ("image", 34, 34, 16, 0, 0),
    ("text", 35, 35, 16, 0, 0),
    ("uniqueidentifier", 36, 36, 16, 0, 0),
    ("date", 40, 40, 3, 10, 0),
    ("time", 41, 41, 5, 16, 7),
    ("datetime2", 42, 42, 8, 27, 7),
    ("tinyint", 48, 48, 1, 3, 0),
    ("smallint", 52, 52, 2, 5, 0),
    ("int", 56, 56, 4, 10, 0),
    ("smalldatetime", 58, 58, 4, 16, 0),
    ("real", 59, 59, 4, 24, 0),
    ("money", 60, 60, 8, 19, 4),
    ("datetime", 61, 61, 8, 23, 3),
    ("float", 62, 62, 8, 53, 0),
    ("sql_variant", 98, 98, 8016, 0, 0),
    ("ntext", 99, 99, 16, 0, 0),
    ("bit", 104, 104, 1, 1, 0),
    ("decimal", 106, 106, 17, 38, 38),
    ("numeric", 108, 108, 17, 38, 38),
    ("smallmoney", 122, 122, 4, 10, 4),
    ("bigint", 127, 127, 8, 19, 0),
    ("varbinary", 165, 165, 8000, 0, 0),
    ("varchar", 167, 167, 8000, 0, 0),
    ("binary", 173, 173, 8000, 0, 0),
    ("char", 175, 175, 8000, 0, 0),
    ("nvarchar", 231, 231, 8000, 0, 0),
    ("nchar", 239, 239, 8000, 0, 0),
    ("xml", 241, 241, -1, 0, 0),
    ("sysname", 231, 256, 256, 0, 0),
];

/// What `sys.types` says of a type.
#[derive(Default)]
pub(super) struct TypeFacts {
    pub system_type: i64,
    pub user_type: i64,
    pub max_length: i64,
    pub precision: i64,
    pub scale: i64,
}

/// The facts of a type by its name; zeros if there is none.
pub(super) fn type_of(wanted: &str) -> TypeFacts {
    let found = SHIPPED.iter().find(|(name, ..)| *name == wanted);
    found.map(facts).unwrap_or_default()
}

fn facts(shipped: &Shipped) -> TypeFacts {
    let (_, system_type, user_type, max_length, precision, scale) = *shipped;
    TypeFacts { system_type, user_type, max_length, precision, scale }
}

pub(super) fn types(_: &Databases) -> Result<Vec<Row>> {
    let is_text =
        |name: &str| name.ends_with("char") || name.ends_with("text") || name == "sysname";
    let row = |(name, system, user, length, precision, scale): &Shipped| {
        let collation = match is_text(name) {
            true => text("SQL_Latin1_General_CP1_CI_AS"),
            false => Value::Null,
        };
        vec![
            text(*name),
            Value::Integer(*system),
            Value::Integer(*user),
            Value::Integer(SYS),
            Value::Null,
            Value::Integer(*length),
            Value::Integer(*precision),
            Value::Integer(*scale),
            collation,
            flag(*name != "sysname"),
            flag(false),
            flag(false),
            Value::Integer(0),
            Value::Integer(0),
            flag(false),
        ]
    };
    Ok(SHIPPED.iter().map(row).collect())
}

pub(super) fn schemata(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let row = |row: Row| {
        let name = row.into_iter().next().unwrap_or(Value::Null);
        let owner = text("dbo");
        vec![text(&known.name), name, owner, Value::Null, Value::Null, text("iso_1")]
    };
    Ok(catalog::schemas(databases)?.into_iter().map(row).collect())
}

/// The server's views as objects.
pub(super) fn system_objects(_: &Databases) -> Result<Vec<Row>> {
    let is_here = |view: &&View| view.schema != "msdb" && !is_table_function(view.name);
    let row = |view: &View| {
        let (schema, name) = match view.schema {
            "sys" => (SYS, view.name.to_owned()),
            _ => (INFORMATION_SCHEMA, view.name.to_uppercase()),
        };
        vec![
            text(name),
            // As OBJECT_ID numbers them.
            Value::Integer(object_id("server", &format!("{}.{}", view.schema, view.name))),
            Value::Null,
            Value::Integer(schema),
            Value::Integer(0),
            text("V "),
            text("VIEW"),
            Value::Null,
            Value::Null,
            flag(true),
            flag(false),
            flag(false),
        ]
    };
    Ok(super::every().filter(is_here).map(row).collect())
}

pub(super) fn system_views(databases: &Databases) -> Result<Vec<Row>> {
    Ok(catalog::as_views(system_objects(databases)?))
}

pub(super) fn all_objects(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = catalog::objects(databases)?;
    rows.extend(system_objects(databases)?);
    Ok(rows)
}

pub(super) fn all_views(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = catalog::views(databases)?;
    rows.extend(system_views(databases)?);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use pellucid_tsql::ast::{DataType, Name, TypeSize};

    use super::*;

    #[test]
    fn types_are_those_that_may_be_declared() {
        for (name, ..) in SHIPPED {
            let written =
                DataType { name: Name::new(name).unwrap().into(), size: TypeSize::Default };
            assert!(SqlType::declared(&written, 1).is_ok(), "{name}");
        }
    }
}
