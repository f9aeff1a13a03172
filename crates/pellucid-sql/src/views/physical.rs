//! sys.dm_db_index_physical_stats: how the pages of indexes lie in their files.

use std::collections::HashMap;

use super::index::of_database;
use super::lists::arranged;
use super::{text, Column, Row};
use crate::instance::State;
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Source: Microsoft's "sys.dm_db_index_physical_stats".
pub(super) const STATS: &[Column] = columns!(
    database_id SMALL, object_id INT, index_id INT, partition_number INT, index_type_desc N60,
    alloc_unit_type_desc N60, index_depth BYTE, index_level BYTE, avg_fragmentation_in_percent FLOAT,
    fragment_count BIGINT, avg_fragment_size_in_pages FLOAT, page_count BIGINT,
    avg_page_space_used_in_percent FLOAT, record_count BIGINT, ghost_record_count BIGINT,
    version_ghost_record_count BIGINT, min_record_size_in_bytes INT, max_record_size_in_bytes INT,
    avg_record_size_in_bytes FLOAT, forwarded_record_count BIGINT, compressed_page_count BIGINT, hobt_id BIGINT,
    columnstore_delete_buffer_state BYTE, columnstore_delete_buffer_state_desc DESC,
    version_record_count BIGINT, inrow_version_record_count BIGINT, inrow_diff_version_record_count BIGINT,
    total_inrow_version_payload_size_in_bytes BIGINT, offrow_regular_version_record_count BIGINT,
    offrow_long_term_version_record_count BIGINT
);

/// What the pages of a b-tree say.
struct Tree {
    depth: i64,
    leaves: i64,
    /// Runs of leaves that follow each other in the file.
    runs: i64,
}

/// Of each b-tree of a database; every page is looked at.
fn trees(databases: &Databases, schema: &str) -> Result<HashMap<String, Tree>> {
    let sql = "WITH p AS (SELECT name, pagetype, pageno, length(path) - length(replace(path, '/', '')) AS depth, \
               lag(pageno) OVER (PARTITION BY name, pagetype ORDER BY path) AS before FROM dbstat(?1)) \
               SELECT name, max(depth), sum(pagetype = 'leaf'), \
               sum(pagetype = 'leaf' AND (before IS NULL OR pageno <> before + 1)) FROM p \
               WHERE pagetype IN ('leaf', 'internal') GROUP BY name";
    let mut statement = databases.connection.prepare(sql)?;
    let rows = statement.query_map([schema], |row| {
        let tree = Tree { depth: row.get(1)?, leaves: row.get(2)?, runs: row.get(3)? };
        Ok((row.get::<_, String>(0)?, tree))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// As in the mode LIMITED there: what only reading every row would tell is NULL. Pages are those of the file.
pub(super) fn stats(databases: &Databases) -> Result<Vec<Row>> {
    let known = [
        "database_id",
        "object_id",
        "index_id",
        "partition_number",
        "index_type_desc",
        "alloc_unit_type_desc",
        "index_depth",
        "index_level",
        "avg_fragmentation_in_percent",
        "fragment_count",
        "avg_fragment_size_in_pages",
        "page_count",
        "hobt_id",
    ];
    let known = known.map(|name| (name, SqlType::Int));
    let mut rows = Vec::new();
    let all = databases.shown()?;
    let is_one = all.len() == 1;
    for database in all {
        if database.is_system() || database.state != State::Online {
            continue;
        }
        let of_it = || {
            let schema = databases.attach(&database)?;
            let trees = trees(databases, &schema)?;
            Ok((trees, of_database(databases, &database.name, &schema)?))
        };
        let (trees, indexes) = match of_it() {
            Ok(found) => found,
            // One that is damaged keeps nobody from those of the others.
            Err(error) if is_one => return Err(error),
            Err(_) => continue,
        };
        for index in indexes {
            let Some(tree) = trees.get(index.tree()) else { continue };
            let (leaves, runs) = (tree.leaves as f64, tree.runs as f64);
            let out_of_order = if tree.leaves > 1 { (runs - 1.0) * 100.0 / leaves } else { 0.0 };
            rows.push(vec![
                Value::Integer(database.id),
                Value::Integer(index.object),
                Value::Integer(index.number),
                Value::Integer(1),
                text(match index.number {
                    0 => "HEAP",
                    1 => "CLUSTERED INDEX",
                    _ => "NONCLUSTERED INDEX",
                }),
                text("IN_ROW_DATA"),
                Value::Integer(tree.depth),
                Value::Integer(0),
                Value::Real(out_of_order),
                Value::Integer(tree.runs),
                Value::Real(if tree.runs > 0 { leaves / runs } else { 0.0 }),
                Value::Integer(tree.leaves),
                index.partition(),
            ]);
        }
    }
    Ok(arranged(STATS, &known, &[], rows))
}
