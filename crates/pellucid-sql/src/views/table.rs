//! sys.columns, sys.all_columns, sys.system_columns, INFORMATION_SCHEMA.COLUMNS

use super::catalog::found;
use super::lists::{arranged, Same};
use super::shipped::type_of;
use super::{flag, text, Column, Row, View};
use crate::instance::MSDB;
use crate::message::Result;
use crate::session::{bytes_most, catalog_type, object_id, split, Databases};
use crate::translate::{is_table_function, ResultColumn};
use crate::values::convert::Value;
use crate::values::types::{Family, Length, SqlType};

const COLLATION: &str = "SQL_Latin1_General_CP1_CI_AS";
const SENSITIVE: &str = "SQL_Latin1_General_CP1_CS_AS";

/// Source: Microsoft's "sys.columns".
pub(super) const COLUMNS: &[Column] = columns!(
    object_id INT, name NAME, column_id INT, system_type_id BYTE, user_type_id INT, max_length SMALL, precision BYTE,
    scale BYTE, collation_name NAME, is_nullable BIT, is_ansi_padded BIT, is_rowguidcol BIT, is_identity BIT,
    is_computed BIT, is_filestream BIT, is_replicated BIT, is_non_sql_subscribed BIT, is_merge_published BIT,
    is_dts_replicated BIT, is_xml_document BIT, xml_collection_id INT, default_object_id INT, rule_object_id INT,
    is_sparse BIT, is_column_set BIT, generated_always_type BYTE, generated_always_type_desc DESC,
    encryption_type INT, encryption_type_desc DESC, encryption_algorithm_name NAME, column_encryption_key_id INT,
    column_encryption_key_database_name NAME, is_hidden BIT, is_masked BIT, graph_type INT, graph_type_desc DESC,
    is_data_deletion_filter_column BIT, ledger_view_column_type INT, ledger_view_column_type_desc DESC,
    is_dropped_ledger_column BIT
);

/// Source: Microsoft's "sys.syscolumns".
pub(super) const SYSCOLUMNS: &[Column] = columns!(
    name NAME, id INT, xtype BYTE, typestat BYTE, xusertype SMALL, length SMALL, xprec BYTE, xscale BYTE, colid SMALL,
    xoffset SMALL, bitpos BYTE, reserved BYTE, colstat SMALL, cdefault INT, domain INT, number SMALL,
    colorder SMALL, autoval BINMAX, offset SMALL, collationid INT, language INT, status BYTE, type BYTE,
    usertype SMALL, printfmt V20, prec SMALL, scale INT, iscomputed INT, isoutparam INT, isnullable INT,
    collation NAME
);

/// What is known of a column, in the order of [`row`].
const KNOWN: [(&str, SqlType); 14] = {
    let names = [
        "object_id",
        "name",
        "column_id",
        "system_type_id",
        "user_type_id",
        "max_length",
        "precision",
        "scale",
        "collation_name",
        "is_nullable",
        "is_ansi_padded",
        "is_identity",
        "is_computed",
        "default_object_id",
    ];
    let mut known = [("", SqlType::Int); 14];
    let mut at = 0;
    while at < known.len() {
        known[at].0 = names[at];
        at += 1;
    }
    known
};

const SAME: [(&str, Same); 4] = [
    ("xml_collection_id", Same::Number(0)),
    ("rule_object_id", Same::Number(0)),
    ("generated_always_type", Same::Number(0)),
    ("generated_always_type_desc", Same::Text("NOT_APPLICABLE")),
];

/// Source: Microsoft's "COLUMNS".
pub(super) const INFORMATION_COLUMNS: &[Column] = columns!(
    TABLE_CATALOG NAME, TABLE_SCHEMA NAME, TABLE_NAME NAME, COLUMN_NAME NAME, ORDINAL_POSITION INT,
    COLUMN_DEFAULT N4000, IS_NULLABLE V3, DATA_TYPE NAME, CHARACTER_MAXIMUM_LENGTH INT, CHARACTER_OCTET_LENGTH INT,
    NUMERIC_PRECISION BYTE, NUMERIC_PRECISION_RADIX SMALL, NUMERIC_SCALE INT, DATETIME_PRECISION SMALL,
    CHARACTER_SET_CATALOG NAME, CHARACTER_SET_SCHEMA NAME, CHARACTER_SET_NAME NAME, COLLATION_CATALOG NAME,
    COLLATION_SCHEMA NAME, COLLATION_NAME NAME, DOMAIN_CATALOG NAME, DOMAIN_SCHEMA NAME, DOMAIN_NAME NAME
);

/// A column of a table or view.
struct Found {
    name: String,
    number: i64,
    data_type: SqlType,
    /// The name of its type.
    type_name: &'static str,
    is_nullable: bool,
    is_computed: bool,
    is_identity: bool,
    is_sensitive: bool,
    default: Option<String>,
}

impl Found {
    fn of_view(number: i64, name: String, data_type: SqlType) -> Self {
        Found {
            name,
            number,
            data_type,
            type_name: data_type.name(),
            is_nullable: true,
            is_computed: false,
            is_identity: false,
            is_sensitive: false,
            default: None,
        }
    }

    /// Whether it is text, ntext or image, which hold a pointer of 16 bytes.
    fn is_large(&self) -> bool {
        matches!(self.type_name, "text" | "ntext" | "image")
    }

    fn collation(&self) -> Value {
        match self.data_type.family() == Family::Text {
            true => text(if self.is_sensitive { SENSITIVE } else { COLLATION }),
            false => Value::Null,
        }
    }
}

/// As SQL Server has them of each type.
fn precision_and_scale(data_type: SqlType) -> (i64, i64) {
    match data_type {
        SqlType::Time(digits) => (8 + i64::from(digits > 0) + i64::from(digits), digits.into()),
        SqlType::DateTime2(digits) => {
            (19 + i64::from(digits > 0) + i64::from(digits), digits.into())
        }
        SqlType::Numeric { precision, scale } => (precision.into(), scale.into()),
        other => {
            let facts = type_of(other.name());
            (facts.precision, facts.scale)
        }
    }
}

fn columns_of(
    databases: &Databases,
    schema: &str,
    table: &str,
    is_view: bool,
) -> Result<Vec<Found>> {
    let sql =
        "SELECT cid + 1, \"notnull\" = 0 AND pk = 0, hidden > 1, dflt_value, type FROM pragma_table_xinfo(?1, ?2) ORDER BY cid";
    let own = databases.table_of(schema, table, is_view)?.columns;
    let mut statement = databases.connection.prepare_cached(sql)?;
    let mut rows = statement.query([table, schema])?;
    let mut all = Vec::new();
    for column in own {
        let Some(row) = rows.next()? else { break };
        let declared: Option<String> = row.get(4)?;
        all.push(Found {
            name: column.name,
            number: row.get(0)?,
            data_type: column.data_type,
            type_name: catalog_type(declared.as_deref().unwrap_or_default(), column.data_type),
            is_nullable: row.get(1)?,
            is_computed: row.get(2)?,
            is_identity: column.identity,
            is_sensitive: column.sensitive,
            default: row.get(3)?,
        });
    }
    Ok(all)
}

/// A table or view: its name in SQLite, its number, its columns.
type Listed = (String, i64, Vec<Found>);

/// The current database's tables and views, those of scripts too, with their columns.
fn all_of_them(databases: &Databases) -> Result<Vec<Listed>> {
    let known = databases.current()?;
    let mut listed = Vec::new();
    if let Some((_, schema, all)) = found(databases)? {
        for (sqlite, is_view) in all {
            let columns = columns_of(databases, &schema, &sqlite, is_view)?;
            let object = object_id(&known.name, &sqlite);
            listed.push((sqlite, object, columns));
        }
    }
    let of_view = |(number, column): (i64, ResultColumn)| {
        Found::of_view(number, column.name, column.data_type)
    };
    for (name, columns) in databases.columns_of_views(&known)? {
        let object = object_id(&known.name, &name);
        listed.push((name, object, (1..).zip(columns).map(of_view).collect()));
    }
    if known.id == MSDB {
        for view in super::every().filter(|view| view.schema == "msdb") {
            let object = object_id("server", &format!("dbo.{}", view.name));
            listed.push((view.name.to_owned(), object, columns_of_view(view)));
        }
    }
    Ok(listed)
}

fn columns_of_view(view: &View) -> Vec<Found> {
    let of_view = |(number, (name, data_type)): (i64, &Column)| {
        Found::of_view(number, (*name).to_owned(), *data_type)
    };
    (1..).zip(view.columns).map(of_view).collect()
}

/// Characters and bytes that a column of text or bytes holds at most; -1 for `max`.
fn lengths(column: &Found) -> (Option<i64>, Option<i64>) {
    const LARGEST: i64 = 2_147_483_647;
    match (column.type_name, column.data_type.length()) {
        ("text" | "image", _) => (Some(LARGEST), Some(LARGEST)),
        ("ntext", _) => (Some(LARGEST / 2), Some(LARGEST - 1)),
        (_, Some(Length::Of(length))) => (Some(length.into()), Some(bytes_most(column.data_type))),
        (_, Some(Length::Max)) => (Some(-1), Some(-1)),
        (_, None) => (None, None),
    }
}

fn row(object: i64, column: &Found, default: i64) -> Row {
    let data_type = column.data_type;
    let facts = type_of(column.type_name);
    let (precision, scale) = precision_and_scale(data_type);
    let is_padded = matches!(data_type.family(), Family::Text | Family::Binary | Family::Variant);
    vec![
        Value::Integer(object),
        text(&column.name),
        Value::Integer(column.number),
        Value::Integer(facts.system_type),
        Value::Integer(facts.user_type),
        Value::Integer(match column.is_large() {
            true => facts.max_length,
            false => bytes_most(data_type),
        }),
        Value::Integer(precision),
        Value::Integer(scale),
        column.collation(),
        flag(column.is_nullable),
        flag(is_padded),
        flag(column.is_identity),
        flag(column.is_computed),
        Value::Integer(default),
    ]
}

pub(super) fn columns(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let mut rows = Vec::new();
    for (sqlite, object, columns) in all_of_them(databases)? {
        for column in columns {
            let default = match column.default {
                Some(_) => object_id(&known.name, &format!("{sqlite}.default.{}", column.name)),
                None => 0,
            };
            rows.push(row(object, &column, default));
        }
    }
    Ok(arranged(COLUMNS, &KNOWN, &SAME, rows))
}

/// The columns of the server's views.
pub(super) fn system_columns(_: &Databases) -> Result<Vec<Row>> {
    let is_here = |view: &&View| view.schema != "msdb" && !is_table_function(view.name);
    let mut rows = Vec::new();
    for view in super::every().filter(is_here) {
        // As OBJECT_ID numbers them.
        let object = object_id("server", &format!("{}.{}", view.schema, view.name));
        rows.extend(columns_of_view(view).iter().map(|column| row(object, column, 0)));
    }
    Ok(arranged(COLUMNS, &KNOWN, &SAME, rows))
}

/// The columns of `sys.columns` by their old names; parameters of procedures are not among them.
pub(super) fn syscolumns(databases: &Databases) -> Result<Vec<Row>> {
    let same = ["number", "isoutparam", "bitpos", "reserved", "domain", "status"];
    let same = same.map(|name| (name, Same::Number(0)));
    let of = |row: Row| -> Row {
        let value = |name: &str| {
            let at = COLUMNS.iter().position(|(other, _)| *other == name);
            at.and_then(|at| row.get(at)).cloned().unwrap_or(Value::Null)
        };
        OLD_NAMES.iter().map(|(_, name)| value(name)).collect()
    };
    let known = OLD_NAMES.map(|(old, _)| (old, SqlType::Int));
    let rows = columns(databases)?.into_iter().map(of).collect();
    Ok(arranged(SYSCOLUMNS, &known, &same, rows))
}

const OLD_NAMES: [(&str, &str); 15] = [
    ("name", "name"),
    ("id", "object_id"),
    ("xtype", "system_type_id"),
    ("xusertype", "user_type_id"),
    ("length", "max_length"),
    ("xprec", "precision"),
    ("xscale", "scale"),
    ("colid", "column_id"),
    ("colorder", "column_id"),
    ("cdefault", "default_object_id"),
    ("prec", "precision"),
    ("scale", "scale"),
    ("iscomputed", "is_computed"),
    ("isnullable", "is_nullable"),
    ("collation", "collation_name"),
];

pub(super) fn all_columns(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = columns(databases)?;
    rows.extend(system_columns(databases)?);
    Ok(rows)
}

pub(super) fn information_columns(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let mut rows = Vec::new();
    for (sqlite, _, columns) in all_of_them(databases)? {
        let (schema, name) = split(&sqlite);
        for column in columns {
            let data_type = column.data_type;
            let (length, octets) = lengths(&column);
            let (precision, scale) = precision_and_scale(data_type);
            let is_text = data_type.family() == Family::Text;
            let (numeric, radix, places, moment) = match data_type.family() {
                Family::Moment => (None, None, None, Some(scale)),
                Family::Float => (Some(precision), Some(2), None, None),
                Family::Integer | Family::Decimal if data_type != SqlType::Bit => {
                    (Some(precision), Some(10), Some(scale), None)
                }
                _ => (None, None, None, None),
            };
            let number = |number: Option<i64>| number.map_or(Value::Null, Value::Integer);
            let charset = match (is_text, data_type.is_national()) {
                (false, _) => Value::Null,
                (true, true) => text("UNICODE"),
                (true, false) => text("iso_1"),
            };
            let mut row = vec![
                text(&known.name),
                text(schema),
                text(name),
                text(&column.name),
                Value::Integer(column.number),
                column.default.as_ref().map_or(Value::Null, |default| text(format!("({default})"))),
                text(if column.is_nullable { "YES" } else { "NO" }),
                text(if column.type_name == "sysname" { "nvarchar" } else { column.type_name }),
                length.map_or(Value::Null, Value::Integer),
                octets.map_or(Value::Null, Value::Integer),
                number(numeric),
                number(radix),
                number(places),
                number(moment),
                Value::Null,
                Value::Null,
                charset,
                Value::Null,
                Value::Null,
                column.collation(),
            ];
            row.resize(INFORMATION_COLUMNS.len(), Value::Null);
            rows.push(row);
        }
    }
    Ok(rows)
}
