//! sys.indexes, sys.index_columns, sys.key_constraints, sys.partitions, sys.dm_db_partition_stats, sys.allocation_units,
//! sys.sysindexes

use rusqlite::OptionalExtension;

use super::catalog::{found, schema_id};
use super::lists::{arranged, Same};
use super::{flag, text, Column, Row};
use crate::execute::{key_constraints, Constraint};
use crate::message::Result;
use crate::session::{object_id, split, Databases};
use crate::translate::quoted;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Source: Microsoft's "sys.indexes".
pub(super) const INDEXES: &[Column] = columns!(
    object_id INT, name NAME, index_id INT, type BYTE, type_desc DESC, is_unique BIT, data_space_id INT,
    ignore_dup_key BIT, is_primary_key BIT, is_unique_constraint BIT, fill_factor BYTE, is_padded BIT,
    is_disabled BIT, is_hypothetical BIT, is_ignored_in_optimization BIT, allow_row_locks BIT,
    allow_page_locks BIT, has_filter BIT, filter_definition NMAX, compression_delay INT,
    suppress_dup_key_messages BIT, auto_created BIT, optimize_for_sequential_key BIT
);

/// Source: Microsoft's "sys.index_columns".
pub(super) const COLUMNS: &[Column] = columns!(
    object_id INT, index_id INT, index_column_id INT, column_id INT, key_ordinal BYTE, partition_ordinal BYTE,
    is_descending_key BIT, is_included_column BIT, column_store_order_ordinal BYTE
);

/// Source: Microsoft's "sys.key_constraints".
pub(super) const KEYS: &[Column] =
    columns!(object: unique_index_id INT, is_system_named BIT, is_enforced BIT);

/// Source: Microsoft's "sys.partitions".
pub(super) const PARTITIONS: &[Column] = columns!(
    partition_id BIGINT, object_id INT, index_id INT, partition_number INT, hobt_id BIGINT, rows BIGINT,
    filestream_filegroup_id SMALL, data_compression BYTE, data_compression_desc DESC, xml_compression BIT,
    xml_compression_desc V3
);

/// Source: Microsoft's "sys.dm_db_partition_stats".
pub(super) const STATS: &[Column] = columns!(
    partition_id BIGINT, object_id INT, index_id INT, partition_number INT, in_row_data_page_count BIGINT,
    in_row_used_page_count BIGINT, in_row_reserved_page_count BIGINT, lob_used_page_count BIGINT,
    lob_reserved_page_count BIGINT, row_overflow_used_page_count BIGINT, row_overflow_reserved_page_count BIGINT,
    used_page_count BIGINT, reserved_page_count BIGINT, row_count BIGINT
);

/// An index, or the table's own b-tree.
pub(super) struct Index {
    table: String,
    pub object: i64,
    name: Option<String>,
    /// What the text of the table calls it.
    constraint: Option<String>,
    pub number: i64,
    is_unique: bool,
    is_primary: bool,
    is_constraint: bool,
    filter: Option<String>,
}

impl Index {
    /// The table's own: a clustered key, or a heap.
    fn is_own(&self) -> bool {
        self.number < 2
    }

    /// Its name in the views: that of its constraint, before SQLite's own.
    fn shown(&self) -> Option<String> {
        let key = || format!("PK_{}", split(&self.table).1);
        let own = self.constraint.clone().or_else(|| self.name.clone());
        own.or_else(|| self.is_primary.then(key))
    }

    /// What SQLite calls its b-tree.
    pub fn tree(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.table)
    }

    /// The number of its one partition.
    pub fn partition(&self) -> Value {
        Value::Integer(((self.object & 0xffff_ffff) << 16) | self.number)
    }
}

/// Those of the current database, and the schema that it is attached as.
fn all(databases: &Databases) -> Result<(String, Vec<Index>)> {
    match found(databases)? {
        Some((known, schema, _)) => {
            let indexes = of_database(databases, &known.name, &schema)?;
            Ok((schema, indexes))
        }
        None => Ok((String::new(), Vec::new())),
    }
}

/// Those of a database that is attached.
pub(super) fn of_database(
    databases: &Databases,
    database: &str,
    schema: &str,
) -> Result<Vec<Index>> {
    let of_schema = quoted(schema);
    let text_of = |kind: &str, name: &str| {
        let sql =
            format!("SELECT sql FROM {of_schema}.sqlite_schema WHERE type = ?1 AND name = ?2");
        let found = databases.connection.query_row(&sql, [kind, name], |row| row.get(0));
        found.optional().map(|sql: Option<Option<String>>| sql.flatten())
    };
    let mut indexes = Vec::new();
    for (sqlite, _) in
        databases.tables_and_views(schema)?.into_iter().filter(|(_, is_view)| !is_view)
    {
        let object = object_id(database, &sqlite);
        let sql = "SELECT name, \"unique\", origin, partial FROM pragma_index_list(?1, ?2) ORDER BY seq DESC";
        let mut statement = databases.connection.prepare_cached(sql)?;
        let mut found = statement.query([sqlite.as_str(), schema])?;
        let is_key = databases.row_column(schema, &sqlite)?.is_some();
        let written = key_constraints(&text_of("table", &sqlite)?.unwrap_or_default());
        let own = written.iter().find(|one| one.is_primary).map(|one| one.name.clone());
        indexes.push(Index {
            table: sqlite.clone(),
            object,
            name: None,
            constraint: own.filter(|_| is_key),
            number: i64::from(is_key),
            is_unique: is_key,
            is_primary: is_key,
            is_constraint: false,
            filter: None,
        });
        let mut number = 1;
        while let Some(row) = found.next()? {
            number += 1;
            let name: String = row.get(0)?;
            let origin: String = row.get(2)?;
            let filter = match row.get(3)? {
                true => text_of("index", &name)?.and_then(|sql| filter_of(&sql)),
                false => None,
            };
            let constraint = match origin.as_str() {
                "c" => None,
                _ => constraint_of(databases, (schema, &name), origin == "pk", &written)?,
            };
            indexes.push(Index {
                table: sqlite.clone(),
                object,
                name: Some(name),
                constraint,
                number,
                is_unique: row.get(1)?,
                is_primary: origin == "pk",
                is_constraint: origin == "u",
                filter,
            });
        }
    }
    Ok(indexes)
}

/// The name of the key, of those written, that this index of SQLite's is of: SQLite has one index for the same columns.
fn constraint_of(
    databases: &Databases,
    (schema, index): (&str, &str),
    is_primary: bool,
    written: &[Constraint],
) -> Result<Option<String>> {
    let sql = "SELECT name FROM pragma_index_info(?1, ?2) ORDER BY seqno";
    let mut statement = databases.connection.prepare_cached(sql)?;
    let rows = statement.query_map([index, schema], |row| row.get::<_, Option<String>>(0))?;
    let columns: Vec<Option<String>> = rows.collect::<rusqlite::Result<_>>()?;
    let is_of = |one: &&Constraint| {
        let same = |(own, other): (&Option<String>, &String)| {
            own.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(other))
        };
        one.columns.len() == columns.len() && columns.iter().zip(&one.columns).all(same)
    };
    let of_kind = written.iter().filter(is_of).find(|one| one.is_primary == is_primary);
    Ok(of_kind.map(|one| one.name.clone()))
}

/// What stands behind WHERE in the text of an index.
fn filter_of(sql: &str) -> Option<String> {
    let at = sql.to_ascii_lowercase().find(" where ")?;
    sql.get(at + " where ".len()..).map(|filter| format!("({})", filter.trim()))
}

pub(super) fn indexes(databases: &Databases) -> Result<Vec<Row>> {
    let (_, all) = all(databases)?;
    let row = |index: &Index| {
        let (kind, described) = match index.number {
            0 => (0, "HEAP"),
            1 => (1, "CLUSTERED"),
            _ => (2, "NONCLUSTERED"),
        };
        vec![
            Value::Integer(index.object),
            super::optional(index.shown()),
            Value::Integer(index.number),
            Value::Integer(kind),
            text(described),
            flag(index.is_unique),
            flag(index.is_primary),
            flag(index.is_constraint),
            flag(index.filter.is_some()),
            super::optional(index.filter.clone()),
        ]
    };
    let known = [
        "object_id",
        "name",
        "index_id",
        "type",
        "type_desc",
        "is_unique",
        "is_primary_key",
        "is_unique_constraint",
        "has_filter",
        "filter_definition",
    ];
    let same = [
        ("data_space_id", Same::Number(1)),
        ("fill_factor", Same::Number(0)),
        ("allow_row_locks", Same::Number(1)),
        ("allow_page_locks", Same::Number(1)),
    ];
    let known = known.map(|name| (name, SqlType::Int));
    Ok(arranged(INDEXES, &known, &same, all.iter().map(row).collect()))
}

pub(super) fn columns(databases: &Databases) -> Result<Vec<Row>> {
    let (schema, all) = all(databases)?;
    let mut rows = Vec::new();
    for index in &all {
        let mut row = |at: i64, column: i64, descends: bool| {
            rows.push(vec![
                Value::Integer(index.object),
                Value::Integer(index.number),
                Value::Integer(at),
                Value::Integer(column),
                Value::Integer(at),
                Value::Integer(0),
                flag(descends),
                flag(false),
                Value::Integer(0),
            ]);
        };
        let Some(name) = &index.name else {
            let sql = "SELECT cid + 1 FROM pragma_table_xinfo(?1, ?2) WHERE pk > 0";
            if index.number == 1 {
                let mut statement = databases.connection.prepare_cached(sql)?;
                row(1, statement.query_row([&index.table, &schema], |row| row.get(0))?, false);
            }
            continue;
        };
        let sql = "SELECT seqno + 1, cid + 1, \"desc\" FROM pragma_index_xinfo(?1, ?2) WHERE key ORDER BY seqno";
        let mut statement = databases.connection.prepare_cached(sql)?;
        let mut found = statement.query([name, &schema])?;
        while let Some(one) = found.next()? {
            row(one.get(0)?, one.get(1)?, one.get(2)?);
        }
    }
    Ok(rows)
}

/// Keys are objects of their own, named as their indexes.
pub(super) fn keys(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let (_, all) = all(databases)?;
    let row = |index: &Index| {
        let kind = if index.is_primary { "PK" } else { "UQ" };
        let schema = split(&index.table).0;
        let name = index.shown().unwrap_or_default();
        vec![
            text(&name),
            Value::Integer(object_id(&known.name, &format!("{}.{name}", index.table))),
            Value::Null,
            Value::Integer(schema_id(schema)),
            Value::Integer(index.object),
            text(kind),
            text(if index.is_primary { "PRIMARY_KEY_CONSTRAINT" } else { "UNIQUE_CONSTRAINT" }),
            Value::Null,
            Value::Null,
            flag(false),
            flag(false),
            flag(false),
            Value::Integer(index.number),
            flag(true),
            flag(true),
        ]
    };
    Ok(all.iter().filter(|index| index.is_primary || index.is_constraint).map(row).collect())
}

/// Each index is one partition.
fn counted(databases: &Databases) -> Result<Vec<(Index, i64)>> {
    let (schema, all) = all(databases)?;
    let mut counted = Vec::with_capacity(all.len());
    let mut count = 0;
    for index in all {
        // The table's own comes before its others.
        if index.is_own() {
            let sql = format!("SELECT count(*) FROM {}.{}", quoted(&schema), quoted(&index.table));
            count = databases.connection.query_row(&sql, [], |row| row.get(0))?;
        }
        counted.push((index, count));
    }
    Ok(counted)
}

pub(super) fn partitions(databases: &Databases) -> Result<Vec<Row>> {
    let row = |(index, count): &(Index, i64)| {
        vec![
            index.partition(),
            Value::Integer(index.object),
            Value::Integer(index.number),
            Value::Integer(1),
            index.partition(),
            Value::Integer(*count),
            Value::Integer(0),
            Value::Integer(0),
            text("NONE"),
            flag(false),
            text("OFF"),
        ]
    };
    Ok(counted(databases)?.iter().map(row).collect())
}

/// Source: Microsoft's "sys.allocation_units".
pub(super) const UNITS: &[Column] = columns!(
    allocation_unit_id BIGINT, type BYTE, type_desc DESC, container_id BIGINT, data_space_id INT, total_pages BIGINT,
    used_pages BIGINT, data_pages BIGINT
);

/// Source: Microsoft's "sys.sysindexes".
pub(super) const SYSINDEXES: &[Column] = columns!(
    id INT, status INT, first BIN6, indid SMALL, root BIN6, minlen SMALL, keycnt SMALL, groupid SMALL, dpages INT,
    reserved INT, used INT, rowcnt BIGINT, rowmodctr INT, reserved3 BYTE, reserved4 BYTE, xmaxlen SMALL,
    maxirow SMALL, OrigFillFactor BYTE, StatVersion BYTE, reserved2 INT, FirstIAM BIN6, impid SMALL,
    lockflags SMALL, pgmodctr INT, keys BIN1088, name NAME, statblob BINMAX, maxlen INT, rows INT
);

/// Each index with its rows and its pages of 8 KB, whatever size those of the file have; NULL where nothing counts them.
fn measured(databases: &Databases) -> Result<Vec<(Index, i64, Value)>> {
    const PAGE_BYTES: i64 = 8192;
    let schema = found(databases)?.map(|(_, schema, _)| schema).unwrap_or_default();
    let pages = |name: &str| {
        let sql = "SELECT sum(pgsize) FROM dbstat(?1) WHERE name = ?2";
        let bytes = databases.connection.query_row(sql, [&schema, name], |row| row.get(0));
        let bytes: Option<i64> = bytes.ok().flatten();
        bytes.map_or(Value::Null, |bytes| Value::Integer((bytes + PAGE_BYTES - 1) / PAGE_BYTES))
    };
    let measure = |(index, count): (Index, i64)| {
        let pages = pages(index.tree());
        (index, count, pages)
    };
    Ok(counted(databases)?.into_iter().map(measure).collect())
}

pub(super) fn stats(databases: &Databases) -> Result<Vec<Row>> {
    let row = |(index, count, pages): &(Index, i64, Value)| {
        let none = Value::Integer(0);
        vec![
            index.partition(),
            Value::Integer(index.object),
            Value::Integer(index.number),
            Value::Integer(1),
            pages.clone(),
            pages.clone(),
            pages.clone(),
            none.clone(),
            none.clone(),
            none.clone(),
            none,
            pages.clone(),
            pages.clone(),
            Value::Integer(*count),
        ]
    };
    Ok(measured(databases)?.iter().map(row).collect())
}

/// Each index is one, within its rows.
pub(super) fn units(databases: &Databases) -> Result<Vec<Row>> {
    let row = |(index, _, pages): &(Index, i64, Value)| {
        vec![
            index.partition(),
            Value::Integer(1),
            text("IN_ROW_DATA"),
            index.partition(),
            Value::Integer(1),
            pages.clone(),
            pages.clone(),
            pages.clone(),
        ]
    };
    Ok(measured(databases)?.iter().map(row).collect())
}

pub(super) fn sysindexes(databases: &Databases) -> Result<Vec<Row>> {
    let known = ["id", "indid", "groupid", "dpages", "reserved", "used", "rowcnt", "rows", "name"];
    let known = known.map(|name| (name, SqlType::Int));
    let same = [("status", Same::Number(0)), ("OrigFillFactor", Same::Number(0))];
    let row = |(index, count, pages): &(Index, i64, Value)| {
        vec![
            Value::Integer(index.object),
            Value::Integer(index.number),
            Value::Integer(1),
            pages.clone(),
            pages.clone(),
            pages.clone(),
            Value::Integer(*count),
            Value::Integer(*count),
            super::optional(index.shown()),
        ]
    };
    let rows = measured(databases)?.iter().map(row).collect();
    Ok(arranged(SYSINDEXES, &known, &same, rows))
}
