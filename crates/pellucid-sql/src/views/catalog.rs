//! sys.configurations, sys.backup_devices, and what is in the current database.

use rusqlite::OptionalExtension;

use super::{flag, text, Column, Row};
use crate::instance::{Known, Module, ModuleKind, MASTER, SETTINGS, TEMPDB};
use crate::message::Result;
use crate::session::{bytes_most, declared_type, object_id, split, Databases};
use crate::translate::{quoted, ResultColumn};
use crate::values::convert::Value;
use crate::values::types::{Length, SqlType};

const DESC: SqlType = SqlType::nvarchar(60);

/// Source: Microsoft's "sys.configurations".
pub(super) const CONFIGURATIONS: [Column; 9] = [
    ("configuration_id", SqlType::Int),
    ("name", SqlType::nvarchar(35)),
    ("value", SqlType::Variant),
    ("minimum", SqlType::Variant),
    ("maximum", SqlType::Variant),
    ("value_in_use", SqlType::Variant),
    ("description", SqlType::nvarchar(255)),
    ("is_dynamic", SqlType::Bit),
    ("is_advanced", SqlType::Bit),
];

/// Source: Microsoft's "sys.backup_devices".
pub(super) const BACKUP_DEVICES: [Column; 4] = [
    ("name", SqlType::SYSNAME),
    ("type", SqlType::TinyInt),
    ("type_desc", DESC),
    ("physical_name", SqlType::nvarchar(260)),
];

/// Source: Microsoft's "sys.schemas".
pub(super) const SCHEMAS: [Column; 3] =
    [("name", SqlType::SYSNAME), ("schema_id", SqlType::Int), ("principal_id", SqlType::Int)];

/// Source: Microsoft's "sys.objects".
pub(super) const OBJECTS: [Column; 10] = [
    ("name", SqlType::SYSNAME),
    ("object_id", SqlType::Int),
    ("principal_id", SqlType::Int),
    ("schema_id", SqlType::Int),
    ("parent_object_id", SqlType::Int),
    ("type", SqlType::Char(2)),
    ("type_desc", DESC),
    ("create_date", SqlType::DateTime),
    ("modify_date", SqlType::DateTime),
    ("is_ms_shipped", SqlType::Bit),
];

/// Source: Microsoft's "sys.tables": the first ten are those of `sys.objects`.
pub(super) const TABLES: [Column; 20] = {
    let mut columns = [("", SqlType::Bit); 20];
    let mut at = 0;
    while at < OBJECTS.len() {
        columns[at] = OBJECTS[at];
        at += 1;
    }
    columns[10] = ("is_published", SqlType::Bit);
    columns[11] = ("uses_ansi_nulls", SqlType::Bit);
    columns[12] = ("is_replicated", SqlType::Bit);
    columns[13] = ("is_tracked_by_cdc", SqlType::Bit);
    columns[14] = ("is_filetable", SqlType::Bit);
    columns[15] = ("is_memory_optimized", SqlType::Bit);
    columns[16] = ("durability", SqlType::TinyInt);
    columns[17] = ("temporal_type", SqlType::TinyInt);
    columns[18] = ("is_external", SqlType::Bit);
    columns[19] = ("is_node", SqlType::Bit);
    columns
};

/// Source: Microsoft's "sys.sql_modules".
pub(super) const MODULES: [Column; 7] = [
    ("object_id", SqlType::Int),
    ("definition", SqlType::NVARCHAR_MAX),
    ("uses_ansi_nulls", SqlType::Bit),
    ("uses_quoted_identifier", SqlType::Bit),
    ("is_schema_bound", SqlType::Bit),
    ("uses_database_collation", SqlType::Bit),
    ("is_recompiled", SqlType::Bit),
];

/// Source: Microsoft's "ROUTINES".
pub(super) const ROUTINES: [Column; 7] = [
    ("ROUTINE_CATALOG", SqlType::SYSNAME),
    ("ROUTINE_SCHEMA", SqlType::SYSNAME),
    ("ROUTINE_NAME", SqlType::SYSNAME),
    ("ROUTINE_TYPE", SqlType::nvarchar(20)),
    ("ROUTINE_DEFINITION", SqlType::nvarchar(4000)),
    ("CREATED", SqlType::DateTime),
    ("LAST_ALTERED", SqlType::DateTime),
];

/// Source: Microsoft's "VIEWS".
pub(super) const INFORMATION_VIEWS: [Column; 6] = [
    ("TABLE_CATALOG", SqlType::SYSNAME),
    ("TABLE_SCHEMA", SqlType::SYSNAME),
    ("TABLE_NAME", SqlType::SYSNAME),
    ("VIEW_DEFINITION", SqlType::nvarchar(4000)),
    ("CHECK_OPTION", SqlType::varchar(7)),
    ("IS_UPDATABLE", SqlType::varchar(2)),
];

/// Source: Microsoft's "sys.sysobjects".
pub(super) const SYSOBJECTS: [Column; 6] = [
    ("name", SqlType::SYSNAME),
    ("id", SqlType::Int),
    ("xtype", SqlType::Char(2)),
    ("parent_obj", SqlType::Int),
    ("crdate", SqlType::DateTime),
    ("type", SqlType::Char(2)),
];

/// Source: Microsoft's "sys.columns".
pub(super) const COLUMNS: [Column; 8] = [
    ("object_id", SqlType::Int),
    ("name", SqlType::SYSNAME),
    ("column_id", SqlType::Int),
    ("max_length", SqlType::SmallInt),
    ("precision", SqlType::TinyInt),
    ("scale", SqlType::TinyInt),
    ("is_nullable", SqlType::Bit),
    ("is_computed", SqlType::Bit),
];

/// Source: Microsoft's "sys.indexes".
pub(super) const INDEXES: [Column; 7] = [
    ("object_id", SqlType::Int),
    ("name", SqlType::SYSNAME),
    ("index_id", SqlType::Int),
    ("type", SqlType::TinyInt),
    ("type_desc", DESC),
    ("is_unique", SqlType::Bit),
    ("is_primary_key", SqlType::Bit),
];

/// Source: Microsoft's "TABLES".
pub(super) const INFORMATION_TABLES: [Column; 4] = [
    ("TABLE_CATALOG", SqlType::SYSNAME),
    ("TABLE_SCHEMA", SqlType::SYSNAME),
    ("TABLE_NAME", SqlType::SYSNAME),
    ("TABLE_TYPE", SqlType::varchar(10)),
];

/// Source: Microsoft's "COLUMNS".
pub(super) const INFORMATION_COLUMNS: [Column; 8] = [
    ("TABLE_CATALOG", SqlType::SYSNAME),
    ("TABLE_SCHEMA", SqlType::SYSNAME),
    ("TABLE_NAME", SqlType::SYSNAME),
    ("COLUMN_NAME", SqlType::SYSNAME),
    ("ORDINAL_POSITION", SqlType::Int),
    ("IS_NULLABLE", SqlType::varchar(3)),
    ("DATA_TYPE", SqlType::SYSNAME),
    ("CHARACTER_MAXIMUM_LENGTH", SqlType::Int),
];

pub(super) fn configurations(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for setting in &SETTINGS {
        let (set, running) = databases.instance.configured(setting)?;
        rows.push(vec![
            Value::Integer(object_id("configuration", setting.name)),
            text(setting.name),
            Value::Integer(set),
            Value::Integer(setting.least),
            Value::Integer(setting.most),
            Value::Integer(running),
            text(setting.name),
            flag(true),
            flag(setting.advanced),
        ]);
    }
    Ok(rows)
}

pub(super) fn backup_devices(databases: &Databases) -> Result<Vec<Row>> {
    let sql = "SELECT substr(name, 8), value FROM pellucid_setting WHERE name LIKE 'device:%' ORDER BY name";
    let mut statement = databases.instance.msdb().prepare(sql)?;
    let rows = statement
        .query_map([], |row| Ok(vec![row.get(0)?, Value::Integer(2), text("DISK"), row.get(1)?]))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// SQLite's names of tables and views, and which are views.
type Names = Vec<(String, bool)>;

/// The current database, the schema it is attached as, and its tables and views; none for one of the server's own.
fn found(databases: &Databases) -> Result<Option<(Known, String, Names)>> {
    let known = databases.current()?;
    let schema = match known.id {
        MASTER => match databases.attach_master()? {
            Some(schema) => schema,
            None => return Ok(None),
        },
        id if known.is_system() && id != TEMPDB => return Ok(None),
        _ => databases.attach(&known)?,
    };
    let all = databases.tables_and_views(&schema)?;
    Ok(Some((known, schema, all)))
}

fn schema_id(name: &str) -> i64 {
    match name.to_lowercase().as_str() {
        "dbo" => 1,
        "information_schema" => 3,
        "sys" => 4,
        other => object_id("schema", other),
    }
}

pub(super) fn schemas(databases: &Databases) -> Result<Vec<Row>> {
    let mut names = ["dbo", "INFORMATION_SCHEMA", "sys"].map(str::to_owned).to_vec();
    if let Some((_, _, all)) = found(databases)? {
        let modules = databases.instance.modules(&databases.current()?)?;
        let modules = modules.iter().map(|module| &module.name);
        for sqlite in all.iter().map(|(sqlite, _)| sqlite).chain(modules) {
            let (schema, _) = split(sqlite);
            if !names.iter().any(|name| name.eq_ignore_ascii_case(schema)) {
                names.push(schema.to_owned());
            }
        }
    }
    let row = |name: &String| vec![text(name), Value::Integer(schema_id(name)), Value::Integer(1)];
    Ok(names.iter().map(row).collect())
}

pub(super) fn objects(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = objects_of(databases, |_| true)?;
    rows.extend(modules_of(databases, |_| true)?);
    Ok(rows)
}

pub(super) fn procedures(databases: &Databases) -> Result<Vec<Row>> {
    modules_of(databases, |kind| kind == ModuleKind::Procedure)
}

fn modules_of(databases: &Databases, wanted: fn(ModuleKind) -> bool) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let row = |module: &Module| {
        let (schema, name) = split(&module.name);
        vec![
            text(name),
            Value::Integer(object_id(&known.name, &module.name)),
            Value::Null,
            Value::Integer(schema_id(schema)),
            Value::Integer(0),
            text(format!("{:2}", module.kind.letter())),
            text(match module.kind {
                ModuleKind::Procedure => "SQL_STORED_PROCEDURE",
                ModuleKind::View => "VIEW",
                ModuleKind::Function => "SQL_SCALAR_FUNCTION",
                ModuleKind::TableFunction => "SQL_INLINE_TABLE_VALUED_FUNCTION",
            }),
            text(&module.created),
            text(&module.modified),
            flag(false),
        ]
    };
    let modules = databases.instance.modules(&known)?;
    Ok(modules.iter().filter(|module| wanted(module.kind)).map(row).collect())
}

pub(super) fn modules(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let row = |module: &Module| {
        vec![
            Value::Integer(object_id(&known.name, &module.name)),
            text(&module.definition),
            flag(module.ansi_nulls),
            flag(module.quoted_identifier),
            flag(false),
            flag(false),
            flag(false),
        ]
    };
    Ok(databases.instance.modules(&known)?.iter().map(row).collect())
}

pub(super) fn routines(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let row = |module: &Module| {
        let (schema, name) = split(&module.name);
        let begin: String = module.definition.chars().take(4000).collect();
        vec![
            text(&known.name),
            text(schema),
            text(name),
            text(if module.kind.is_function() { "FUNCTION" } else { "PROCEDURE" }),
            text(begin),
            text(&module.created),
            text(&module.modified),
        ]
    };
    let modules = databases.instance.modules(&known)?;
    let is_routine = |module: &&Module| module.kind != ModuleKind::View;
    Ok(modules.iter().filter(is_routine).map(row).collect())
}

pub(super) fn tables(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = objects_of(databases, |is_view| !is_view)?;
    for row in &mut rows {
        row.resize(TABLES.len(), Value::Integer(0));
        // ANSI_NULLS ON, whatever was set.
        row[11] = Value::Integer(1);
    }
    Ok(rows)
}

pub(super) fn views(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = objects_of(databases, |is_view| is_view)?;
    rows.extend(modules_of(databases, |kind| kind == ModuleKind::View)?);
    Ok(rows)
}

/// Those of scripts. Of SQLite's own, what made them is not T-SQL.
pub(super) fn information_views(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let row = |name: &str, definition: Value| {
        let (schema, name) = split(name);
        vec![text(&known.name), text(schema), text(name), definition, text("NONE"), text("NO")]
    };
    let stored = found(databases)?.map(|(_, _, all)| all).unwrap_or_default();
    let stored = stored.iter().filter(|(_, is_view)| *is_view);
    let mut rows: Vec<Row> = stored.map(|(name, _)| row(name, Value::Null)).collect();
    let modules = databases.instance.modules(&known)?;
    let modules = modules.iter().filter(|module| module.kind == ModuleKind::View);
    rows.extend(modules.map(|module| {
        // Where it does not fit, SQL Server gives none.
        let fits = module.definition.chars().count() <= 4000;
        row(&module.name, if fits { text(&module.definition) } else { Value::Null })
    }));
    Ok(rows)
}

fn objects_of(databases: &Databases, wanted: fn(bool) -> bool) -> Result<Vec<Row>> {
    let Some((known, _, all)) = found(databases)? else { return Ok(Vec::new()) };
    let row = |(sqlite, is_view): &(String, bool)| {
        let (schema, name) = split(sqlite);
        vec![
            text(name),
            Value::Integer(object_id(&known.name, sqlite)),
            Value::Null,
            Value::Integer(schema_id(schema)),
            Value::Integer(0),
            text(if *is_view { "V " } else { "U " }),
            text(if *is_view { "VIEW" } else { "USER_TABLE" }),
            Value::Null,
            Value::Null,
            flag(false),
        ]
    };
    Ok(all.iter().filter(|(_, is_view)| wanted(*is_view)).map(row).collect())
}

pub(super) fn sysobjects(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let row = |name: &str, kind: &str| {
        vec![
            text(split(name).1),
            Value::Integer(object_id(&known.name, name)),
            text(kind),
            Value::Integer(0),
            Value::Null,
            text(kind),
        ]
    };
    let tables = found(databases)?.map(|(_, _, all)| all).unwrap_or_default();
    let tables = tables.iter().map(|(name, is_view)| row(name, if *is_view { "V " } else { "U " }));
    let mut rows: Vec<Row> = tables.collect();
    let modules = databases.instance.modules(&known)?;
    let kind = |module: &Module| format!("{:2}", module.kind.letter());
    rows.extend(modules.iter().map(|module| row(&module.name, &kind(module))));
    Ok(rows)
}

/// A column of a table or view.
struct Found {
    name: String,
    number: i64,
    data_type: SqlType,
    is_nullable: bool,
    is_computed: bool,
}

fn columns_of(databases: &Databases, schema: &str, table: &str) -> Result<Vec<Found>> {
    let sql = "SELECT name, cid + 1, type, \"notnull\" = 0 AND pk = 0, hidden > 1 FROM pragma_table_xinfo(?1, ?2) \
               ORDER BY cid";
    let mut statement = databases.connection.prepare_cached(sql)?;
    let rows = statement.query_map([table, schema], |row| {
        Ok(Found {
            name: row.get(0)?,
            number: row.get(1)?,
            data_type: declared_type(&row.get::<_, Option<String>>(2)?.unwrap_or_default()),
            is_nullable: row.get(3)?,
            is_computed: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The current database's tables and views, those of scripts too, with their columns.
fn all_columns(databases: &Databases) -> Result<Vec<(String, Vec<Found>)>> {
    let mut listed = Vec::new();
    if let Some((_, schema, all)) = found(databases)? {
        for (sqlite, _) in all {
            let columns = columns_of(databases, &schema, &sqlite)?;
            listed.push((sqlite, columns));
        }
    }
    let of_view = |(number, column): (i64, ResultColumn)| Found {
        name: column.name,
        number,
        data_type: column.data_type,
        is_nullable: true,
        is_computed: false,
    };
    for (name, columns) in databases.columns_of_views(&databases.current()?)? {
        listed.push((name, (1..).zip(columns).map(of_view).collect()));
    }
    Ok(listed)
}

pub(super) fn columns(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let mut rows = Vec::new();
    for (sqlite, columns) in all_columns(databases)? {
        for column in columns {
            let data_type = column.data_type;
            let (precision, scale) = data_type.as_numeric().unwrap_or((0, 0));
            rows.push(vec![
                Value::Integer(object_id(&known.name, &sqlite)),
                text(column.name),
                Value::Integer(column.number),
                Value::Integer(bytes_most(data_type)),
                Value::Integer(precision.into()),
                Value::Integer(scale.into()),
                flag(column.is_nullable),
                flag(column.is_computed),
            ]);
        }
    }
    Ok(rows)
}

pub(super) fn indexes(databases: &Databases) -> Result<Vec<Row>> {
    let Some((known, schema, all)) = found(databases)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for (sqlite, is_view) in &all {
        if *is_view {
            continue;
        }
        let id = object_id(&known.name, sqlite);
        let sql =
            "SELECT name, \"unique\", origin FROM pragma_index_list(?1, ?2) ORDER BY seq DESC";
        let mut statement = databases.connection.prepare_cached(sql)?;
        let mut found = statement.query([sqlite, &schema])?;
        // The table's own b-tree comes first: a clustered key, or a heap.
        let own: Option<String> = databases
            .connection
            .query_row(
                &format!(
                    "SELECT sql FROM {}.sqlite_schema WHERE type = 'table' AND name = ?1",
                    quoted(&schema)
                ),
                [sqlite],
                |row| row.get(0),
            )
            .optional()?;
        let is_rowid_key =
            own.is_some_and(|sql| sql.to_lowercase().contains("integer primary key"));
        let (kind, described) = if is_rowid_key { (1, "CLUSTERED") } else { (0, "HEAP") };
        rows.push(vec![
            Value::Integer(id),
            Value::Null,
            Value::Integer(kind),
            Value::Integer(kind),
            text(described),
            flag(is_rowid_key),
            flag(is_rowid_key),
        ]);
        let mut number = 1;
        while let Some(row) = found.next()? {
            number += 1;
            let origin: String = row.get(2)?;
            rows.push(vec![
                Value::Integer(id),
                row.get(0)?,
                Value::Integer(number),
                Value::Integer(2),
                text("NONCLUSTERED"),
                row.get(1)?,
                flag(origin == "pk"),
            ]);
        }
    }
    Ok(rows)
}

pub(super) fn information_tables(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let mut all = found(databases)?.map(|(_, _, all)| all).unwrap_or_default();
    let modules = databases.instance.modules(&known)?.into_iter();
    let views = modules.filter(|module| module.kind == ModuleKind::View);
    all.extend(views.map(|module| (module.name, true)));
    let row = |(sqlite, is_view): &(String, bool)| {
        let (schema, name) = split(sqlite);
        vec![
            text(&known.name),
            text(schema),
            text(name),
            text(if *is_view { "VIEW" } else { "BASE TABLE" }),
        ]
    };
    Ok(all.iter().map(row).collect())
}

pub(super) fn information_columns(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let mut rows = Vec::new();
    for (sqlite, columns) in all_columns(databases)? {
        let (schema, name) = split(&sqlite);
        for column in columns {
            let data_type = column.data_type;
            let length = match data_type.length() {
                Some(Length::Of(length)) => Value::Integer(length.into()),
                Some(Length::Max) => Value::Integer(-1),
                None => Value::Null,
            };
            rows.push(vec![
                text(&known.name),
                text(schema),
                text(name),
                text(column.name),
                Value::Integer(column.number),
                text(if column.is_nullable { "YES" } else { "NO" }),
                text(data_type.name()),
                length,
            ]);
        }
    }
    Ok(rows)
}
