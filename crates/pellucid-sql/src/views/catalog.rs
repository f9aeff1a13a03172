//! sys.configurations, sys.backup_devices, and what is in the current database.

use super::lists::{arranged, Same};
use super::{flag, text, Column, Row};
use crate::instance::{Known, Module, ModuleKind, MASTER, MSDB, SETTINGS, TEMPDB};
use crate::message::Result;
use crate::session::{object_id, split, Databases};
use crate::values::convert::Value;
use crate::values::types::SqlType;

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
pub(super) const OBJECTS: [Column; 12] = [
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
    ("is_published", SqlType::Bit),
    ("is_schema_published", SqlType::Bit),
];

/// Source: Microsoft's "sys.tables".
pub(super) const TABLES: &[Column] = columns!(object:
    lob_data_space_id INT, filestream_data_space_id INT, max_column_id_used INT, lock_on_bulk_load BIT,
    uses_ansi_nulls BIT, is_replicated BIT, has_replication_filter BIT, is_merge_published BIT,
    is_sync_tran_subscribed BIT, has_unchecked_assembly_data BIT, text_in_row_limit INT,
    large_value_types_out_of_row BIT, is_tracked_by_cdc BIT, lock_escalation BYTE, lock_escalation_desc DESC,
    is_filetable BIT, is_memory_optimized BIT, durability BYTE, durability_desc DESC, temporal_type BYTE,
    temporal_type_desc DESC, history_table_id INT, is_remote_data_archive_enabled BIT, is_external BIT,
    history_retention_period INT, history_retention_period_unit INT, history_retention_period_unit_desc DESC,
    is_node BIT, is_edge BIT, data_retention_period INT, data_retention_period_unit INT,
    data_retention_period_unit_desc DESC, ledger_type BYTE, ledger_type_desc DESC, ledger_view_id INT,
    is_dropped_ledger_table BIT
);

/// As every table is here, with ANSI_NULLS ON, whatever was set.
const OF_TABLES: [(&str, Same); 12] = [
    ("lob_data_space_id", Same::Number(0)),
    ("uses_ansi_nulls", Same::Number(1)),
    ("text_in_row_limit", Same::Number(0)),
    ("lock_escalation", Same::Number(0)),
    ("lock_escalation_desc", Same::Text("TABLE")),
    ("durability", Same::Number(0)),
    ("durability_desc", Same::Text("SCHEMA_AND_DATA")),
    ("temporal_type", Same::Number(0)),
    ("temporal_type_desc", Same::Text("NON_TEMPORAL_TABLE")),
    ("ledger_type", Same::Number(0)),
    ("ledger_type_desc", Same::Text("NON_LEDGER_TABLE")),
    ("is_remote_data_archive_enabled", Same::Number(0)),
];

/// Source: Microsoft's "sys.views".
pub(super) const VIEWS: &[Column] = columns!(object:
    is_replicated BIT, has_replication_filter BIT, has_opaque_metadata BIT, has_unchecked_assembly_data BIT,
    with_check_option BIT, is_date_correlation_view BIT, is_tracked_by_cdc BIT, has_snapshot BIT,
    ledger_view_type BYTE, ledger_view_type_desc DESC, is_dropped_ledger_view BIT
);

/// Source: Microsoft's "sys.procedures".
pub(super) const PROCEDURES: &[Column] = columns!(object:
    is_auto_executed BIT, is_execution_replicated BIT, is_repl_serializable_only BIT, skips_repl_constraints BIT
);

/// Source: Microsoft's "sys.sql_modules".
pub(super) const MODULES: [Column; 12] = [
    ("object_id", SqlType::Int),
    ("definition", SqlType::NVARCHAR_MAX),
    ("uses_ansi_nulls", SqlType::Bit),
    ("uses_quoted_identifier", SqlType::Bit),
    ("is_schema_bound", SqlType::Bit),
    ("uses_database_collation", SqlType::Bit),
    ("is_recompiled", SqlType::Bit),
    ("null_on_null_input", SqlType::Bit),
    ("execute_as_principal_id", SqlType::Int),
    ("uses_native_compilation", SqlType::Bit),
    ("inline_type", SqlType::Bit),
    ("is_inlineable", SqlType::Bit),
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
pub(super) const SYSOBJECTS: &[Column] = columns!(
    name NAME, id INT, xtype C2, uid SMALL, info SMALL, status INT, base_schema_ver INT, replinfo INT, parent_obj INT,
    crdate TIME, ftcatid SMALL, schema_ver INT, stats_schema_ver INT, type C2, userstat SMALL, sysstat SMALL,
    indexdel SMALL, refdate TIME, version INT, deltrig INT, instrig INT, updtrig INT, seltrig INT, category INT,
    cache SMALL
);

/// Source: Microsoft's "TABLES".
pub(super) const INFORMATION_TABLES: [Column; 4] = [
    ("TABLE_CATALOG", SqlType::SYSNAME),
    ("TABLE_SCHEMA", SqlType::SYSNAME),
    ("TABLE_NAME", SqlType::SYSNAME),
    ("TABLE_TYPE", SqlType::varchar(10)),
];

pub(super) fn configurations(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for setting in &SETTINGS {
        let (set, running) = databases.instance.configured(setting)?;
        rows.push(vec![
            Value::Integer(
                setting.number().unwrap_or_else(|| object_id("configuration", setting.name)),
            ),
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
pub(super) type Names = Vec<(String, bool)>;

/// The current database, the schema it is attached as, and its tables and views; none for one of the server's own.
pub(super) fn found(databases: &Databases) -> Result<Option<(Known, String, Names)>> {
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

pub(super) fn schema_id(name: &str) -> i64 {
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
    rows.extend(super::constraint::objects(databases)?);
    Ok(rows)
}

pub(super) fn procedures(databases: &Databases) -> Result<Vec<Row>> {
    let rows = modules_of(databases, |kind| kind == ModuleKind::Procedure)?;
    Ok(arranged(PROCEDURES, &OBJECTS, &[], rows))
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
            flag(false),
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
            flag(false),
            Value::Null,
            flag(false),
            flag(false),
            flag(false),
        ]
    };
    let modules = match databases.shown_object() {
        Some(id) => {
            let is_it = |name: &str| object_id(&known.name, name) == id;
            databases.instance.modules_called(&known, is_it)?
        }
        None => databases.instance.modules(&known)?,
    };
    Ok(modules.iter().map(row).collect())
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
    Ok(arranged(TABLES, &OBJECTS, &OF_TABLES, objects_of(databases, |is_view| !is_view)?))
}

pub(super) fn views(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = objects_of(databases, |is_view| is_view)?;
    rows.extend(modules_of(databases, |kind| kind == ModuleKind::View)?);
    Ok(as_views(rows))
}

/// Rows of `sys.objects` as those of `sys.views`.
pub(super) fn as_views(rows: Vec<Row>) -> Vec<Row> {
    let same = [
        ("ledger_view_type", Same::Number(0)),
        ("ledger_view_type_desc", Same::Text("NON_LEDGER_VIEW")),
    ];
    arranged(VIEWS, &OBJECTS, &same, rows)
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

/// The tables of `msdb`.
fn of_msdb() -> Vec<Row> {
    let row = |name: &str| {
        vec![
            text(name),
            // As OBJECT_ID numbers them.
            Value::Integer(object_id("server", &format!("dbo.{name}"))),
            Value::Null,
            Value::Integer(schema_id("dbo")),
            Value::Integer(0),
            text("U "),
            text("USER_TABLE"),
            Value::Null,
            Value::Null,
            flag(true),
            flag(false),
            flag(false),
        ]
    };
    super::msdb_tables().map(row).collect()
}

fn objects_of(databases: &Databases, wanted: fn(bool) -> bool) -> Result<Vec<Row>> {
    let Some((known, _, all)) = found(databases)? else {
        let is_msdb = wanted(false) && databases.current_id() == MSDB;
        return Ok(if is_msdb { of_msdb() } else { Vec::new() });
    };
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
            flag(false),
            flag(false),
        ]
    };
    Ok(all.iter().filter(|(_, is_view)| wanted(*is_view)).map(row).collect())
}

pub(super) fn sysobjects(databases: &Databases) -> Result<Vec<Row>> {
    let known = ["name", "id", "uid", "xtype", "parent_obj", "type", "crdate", "refdate"];
    let known = known.map(|name| (name, SqlType::Int));
    let of = |row: Row| -> Row {
        let at = [0, 1, 3, 5, 4, 5, 7, 7];
        at.iter().map(|at| row.get(*at).cloned().unwrap_or(Value::Null)).collect()
    };
    let numbers = SYSOBJECTS.iter().filter(|(name, _)| *name != "crdate" && *name != "refdate");
    let same: Vec<_> = numbers.map(|(name, _)| (*name, Same::Number(0))).collect();
    let rows = objects(databases)?.into_iter().map(of).collect();
    Ok(arranged(SYSOBJECTS, &known, &same, rows))
}

pub(super) fn information_tables(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let mut all = found(databases)?.map(|(_, _, all)| all).unwrap_or_default();
    if known.id == MSDB {
        all.extend(super::msdb_tables().map(|name| (name.to_owned(), false)));
    }
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
