//! sys.filegroups, sys.data_spaces, sys.dm_db_file_space_usage: a database is one filegroup, PRIMARY, of one file.

use super::{flag, text, Column, Row};
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// The number of the filegroup that is the database's file.
const PRIMARY: i64 = 1;

/// Source: Microsoft's "sys.filegroups"; `sys.data_spaces` has the first six.
pub(super) const FILEGROUPS: [Column; 10] = [
    ("name", SqlType::SYSNAME),
    ("data_space_id", SqlType::Int),
    ("type", SqlType::Char(2)),
    ("type_desc", SqlType::nvarchar(60)),
    ("is_default", SqlType::Bit),
    ("is_system", SqlType::Bit),
    ("filegroup_guid", SqlType::UniqueIdentifier),
    ("log_filegroup_id", SqlType::Int),
    ("is_read_only", SqlType::Bit),
    ("is_autogrow_all_files", SqlType::Bit),
];

/// Source: Microsoft's "sys.dm_db_file_space_usage".
pub(super) const USAGE: [Column; 11] = [
    ("database_id", SqlType::SmallInt),
    ("file_id", SqlType::SmallInt),
    ("filegroup_id", SqlType::SmallInt),
    ("total_page_count", SqlType::BigInt),
    ("allocated_extent_page_count", SqlType::BigInt),
    ("unallocated_extent_page_count", SqlType::BigInt),
    ("version_store_reserved_page_count", SqlType::BigInt),
    ("user_object_reserved_page_count", SqlType::BigInt),
    ("internal_object_reserved_page_count", SqlType::BigInt),
    ("mixed_extent_page_count", SqlType::BigInt),
    ("modified_extent_page_count", SqlType::BigInt),
];

pub(super) fn filegroups(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let mut row = data_space();
    row.extend([Value::Null, Value::Null, flag(known.is_read_only), flag(false)]);
    Ok(vec![row])
}

pub(super) fn data_spaces(_: &Databases) -> Result<Vec<Row>> {
    Ok(vec![data_space()])
}

fn data_space() -> Row {
    vec![
        text("PRIMARY"),
        Value::Integer(PRIMARY),
        text("FG"),
        text("ROWS_FILEGROUP"),
        flag(true),
        flag(false),
    ]
}

/// In pages of 8 KB, whatever size the pages of the file have. Which of them have changed since the last full backup is known
/// to backups alone.
pub(super) fn usage(databases: &Databases) -> Result<Vec<Row>> {
    let known = databases.current()?;
    let (total, used) = databases.pages()?;
    let mut row = vec![Value::Null; USAGE.len()];
    let known_here = [known.id, PRIMARY, PRIMARY, total, used, total - used, 0, 0, 0, 0];
    for (value, known) in row.iter_mut().zip(known_here) {
        *value = Value::Integer(known);
    }
    Ok(vec![row])
}
