//! The tables of msdb's history, with SQL Server's types.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::{Column, Row};
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::{from_hex, Value};
use crate::values::types::{Length, SqlType};

const N128: SqlType = SqlType::nvarchar(128);
const LSN: SqlType = SqlType::numeric(25, 0);
const SIZE: SqlType = SqlType::numeric(20, 0);
const GUID: SqlType = SqlType::UniqueIdentifier;
const THUMBPRINT: SqlType = SqlType::VarBinary(Length::Of(32));

/// Source: Microsoft's "backupset".
pub(super) const SETS: [Column; 49] = [
    ("backup_set_id", SqlType::Int),
    ("backup_set_uuid", GUID),
    ("media_set_id", SqlType::Int),
    ("position", SqlType::Int),
    ("expiration_date", SqlType::DateTime),
    ("name", N128),
    ("description", SqlType::nvarchar(255)),
    ("user_name", N128),
    ("first_lsn", LSN),
    ("last_lsn", LSN),
    ("checkpoint_lsn", LSN),
    ("database_backup_lsn", LSN),
    ("database_creation_date", SqlType::DateTime),
    ("backup_start_date", SqlType::DateTime),
    ("backup_finish_date", SqlType::DateTime),
    ("type", SqlType::Char(1)),
    ("compatibility_level", SqlType::TinyInt),
    ("backup_size", SIZE),
    ("database_name", N128),
    ("server_name", N128),
    ("machine_name", N128),
    ("recovery_model", SqlType::nvarchar(60)),
    ("has_backup_checksums", SqlType::Bit),
    ("is_damaged", SqlType::Bit),
    ("begins_log_chain", SqlType::Bit),
    ("is_copy_only", SqlType::Bit),
    ("differential_base_lsn", LSN),
    ("differential_base_guid", GUID),
    ("compressed_backup_size", SIZE),
    ("key_algorithm", SqlType::nvarchar(32)),
    ("encryptor_thumbprint", THUMBPRINT),
    ("encryptor_type", SqlType::nvarchar(32)),
    ("last_valid_restore_time", SqlType::DateTime),
    ("compression_algorithm", SqlType::nvarchar(32)),
    ("is_password_protected", SqlType::Bit),
    ("is_readonly", SqlType::Bit),
    ("software_vendor_id", SqlType::Int),
    ("software_major_version", SqlType::TinyInt),
    ("software_minor_version", SqlType::TinyInt),
    ("software_build_version", SqlType::SmallInt),
    ("has_bulk_logged_data", SqlType::Bit),
    ("is_snapshot", SqlType::Bit),
    ("is_single_user", SqlType::Bit),
    ("has_incomplete_metadata", SqlType::Bit),
    ("is_force_offline", SqlType::Bit),
    ("first_recovery_fork_guid", GUID),
    ("last_recovery_fork_guid", GUID),
    ("fork_point_lsn", LSN),
    ("database_guid", GUID),
];

/// Source: Microsoft's "logmarkhistory".
pub(super) const MARKS: [Column; 6] = [
    ("database_name", N128),
    ("mark_name", N128),
    ("description", SqlType::nvarchar(255)),
    ("user_name", N128),
    ("lsn", LSN),
    ("mark_time", SqlType::DateTime),
];

/// Source: Microsoft's "backupmediaset".
pub(super) const MEDIA: [Column; 12] = [
    ("media_set_id", SqlType::Int),
    ("media_uuid", GUID),
    ("media_family_count", SqlType::TinyInt),
    ("name", N128),
    ("description", SqlType::nvarchar(255)),
    ("software_name", N128),
    ("software_vendor_id", SqlType::Int),
    ("MTF_major_version", SqlType::TinyInt),
    ("mirror_count", SqlType::TinyInt),
    ("is_password_protected", SqlType::Bit),
    ("is_compressed", SqlType::Bit),
    ("is_encrypted", SqlType::Bit),
];

/// Source: Microsoft's "backupmediafamily".
pub(super) const FAMILIES: [Column; 9] = [
    ("media_set_id", SqlType::Int),
    ("family_sequence_number", SqlType::TinyInt),
    ("media_family_id", GUID),
    ("media_count", SqlType::Int),
    ("logical_device_name", N128),
    ("physical_device_name", SqlType::nvarchar(260)),
    ("device_type", SqlType::TinyInt),
    ("physical_block_size", SqlType::Int),
    ("mirror", SqlType::TinyInt),
];

/// Source: Microsoft's "backupfile".
pub(super) const FILES: [Column; 17] = [
    ("backup_set_id", SqlType::Int),
    ("filegroup_name", N128),
    ("page_size", SqlType::Int),
    ("file_number", SqlType::numeric(10, 0)),
    ("backed_up_page_count", SqlType::numeric(10, 0)),
    ("file_type", SqlType::Char(1)),
    ("file_size", SIZE),
    ("logical_name", N128),
    ("physical_drive", SqlType::nvarchar(260)),
    ("physical_name", SqlType::nvarchar(260)),
    ("state", SqlType::TinyInt),
    ("create_lsn", LSN),
    ("drop_lsn", LSN),
    ("differential_base_lsn", LSN),
    ("backup_size", SIZE),
    ("is_readonly", SqlType::Bit),
    ("is_present", SqlType::Bit),
];

/// Source: Microsoft's "restorehistory".
pub(super) const RESTORES: [Column; 13] = [
    ("restore_history_id", SqlType::Int),
    ("restore_date", SqlType::DateTime),
    ("destination_database_name", N128),
    ("user_name", N128),
    ("backup_set_id", SqlType::Int),
    ("restore_type", SqlType::Char(1)),
    ("replace", SqlType::Bit),
    ("recovery", SqlType::Bit),
    ("restart", SqlType::Bit),
    ("stop_at", SqlType::DateTime),
    ("device_count", SqlType::TinyInt),
    ("stop_at_mark_name", N128),
    ("stop_before", SqlType::Bit),
];

/// Source: Microsoft's "restorefile".
pub(super) const RESTORE_FILES: [Column; 4] = [
    ("restore_history_id", SqlType::Int),
    ("file_number", SqlType::numeric(10, 0)),
    ("destination_phys_drive", SqlType::nvarchar(260)),
    ("destination_phys_name", SqlType::nvarchar(260)),
];

/// What no set is here: scripts ask for 0, not for what is unknown.
const NEVER: [&str; 7] = [
    "is_password_protected",
    "is_readonly",
    "has_bulk_logged_data",
    "is_snapshot",
    "is_single_user",
    "has_incomplete_metadata",
    "is_force_offline",
];

fn deny(rows: &mut [Row], at: usize) {
    for row in rows {
        if row[at] == Value::Null {
            row[at] = Value::Integer(0);
        }
    }
}

pub(super) fn sets(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = read(databases, "backupset", &SETS)?;
    let place = |wanted: &str| SETS.iter().position(|(name, _)| *name == wanted);
    let known = ["server_name", "database_name", "database_creation_date"].map(place);
    if let (Some(guid), [Some(server), Some(name), Some(created)]) = (place("database_guid"), known)
    {
        for row in &mut rows {
            row[guid] = database_guid(&row[server], &row[name], &row[created]);
        }
    }
    let forks = forks(databases)?;
    let ends = ["first_recovery_fork_guid", "last_recovery_fork_guid"].map(place);
    if let (Some(set), [Some(first), Some(last)]) = (place("backup_set_uuid"), ends) {
        for row in &mut rows {
            let Value::Text(set) = &row[set] else { continue };
            if let Some(fork) = forks.get(set) {
                (row[first], row[last]) = (Value::Text(fork.clone()), Value::Text(fork.clone()));
            }
        }
    }
    super::sequence::number(&mut rows);
    let never = NEVER.iter().filter_map(|name| place(name));
    never.for_each(|at| deny(&mut rows, at));
    Ok(rows)
}

pub(super) fn marks(databases: &Databases) -> Result<Vec<Row>> {
    read(databases, "logmarkhistory", &MARKS)
}

/// The recovery forks of the sets that have one, both as they are shown.
fn forks(databases: &Databases) -> Result<HashMap<String, String>> {
    let msdb = databases.instance.msdb();
    let mut statement = msdb.prepare("SELECT backup_set_uuid, fork FROM pellucid_log")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut found = HashMap::new();
    for row in rows {
        let (set, fork): (String, String) = row?;
        found.extend(guid(&set).zip(guid(&fork)));
    }
    Ok(found)
}

/// The same for the sets of one database, another one for one that is made again: of what tells databases apart.
fn database_guid(server: &Value, name: &Value, created: &Value) -> Value {
    let (Value::Text(server), Value::Text(name), Value::Text(created)) = (server, name, created)
    else {
        return Value::Null;
    };
    let digest = Sha256::digest(format!("{server}\n{}\n{created}", name.to_lowercase()));
    let digits: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    guid(&digits).map_or(Value::Null, Value::Text)
}

pub(super) fn media(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = read(databases, "backupmediaset", &MEDIA)?;
    if let Some(at) = MEDIA.iter().position(|(name, _)| *name == "is_password_protected") {
        deny(&mut rows, at);
    }
    Ok(rows)
}

pub(super) fn families(databases: &Databases) -> Result<Vec<Row>> {
    read(databases, "backupmediafamily", &FAMILIES)
}

pub(super) fn files(databases: &Databases) -> Result<Vec<Row>> {
    read(databases, "backupfile", &FILES)
}

pub(super) fn restores(databases: &Databases) -> Result<Vec<Row>> {
    read(databases, "restorehistory", &RESTORES)
}

pub(super) fn restore_files(databases: &Databases) -> Result<Vec<Row>> {
    read(databases, "restorefile", &RESTORE_FILES)
}

/// The columns of a table of the history; NULL for those that it does not have.
fn read(databases: &Databases, table: &str, columns: &[Column]) -> Result<Vec<Row>> {
    let msdb = databases.instance.msdb();
    let known = {
        let mut statement = msdb.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let rows = statement.query_map([table], |row| row.get::<_, String>(0))?;
        rows.collect::<rusqlite::Result<Vec<_>>>()?
    };
    let list: Vec<String> = columns
        .iter()
        .map(|(name, _)| match known.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            true => format!("\"{name}\""),
            false => "NULL".to_owned(),
        })
        .collect();
    let mut statement = msdb.prepare(&format!("SELECT {} FROM {table}", list.join(", ")))?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let mut values = Vec::with_capacity(columns.len());
        for (at, (_, data_type)) in columns.iter().enumerate() {
            values.push(as_kept(row.get(at)?, *data_type));
        }
        found.push(values);
    }
    Ok(found)
}

/// The history keeps bytes as hexadecimal digits.
fn as_kept(value: Value, data_type: SqlType) -> Value {
    match (data_type, value) {
        (SqlType::VarBinary(_), Value::Text(digits)) => {
            from_hex(&digits).map_or(Value::Null, Value::Blob)
        }
        // A set without NAME or DESCRIPTION has none, and neither has a mark.
        (SqlType::NVarChar(_), Value::Text(empty)) if empty.is_empty() => Value::Null,
        (SqlType::UniqueIdentifier, Value::Text(digits)) => {
            guid(&digits).map_or(Value::Null, Value::Text)
        }
        // Sequence numbers that SQLite has no integer for.
        (SqlType::Numeric { .. }, Value::Blob(digits)) => {
            String::from_utf8(digits).map_or(Value::Null, Value::Text)
        }
        (_, value) => value,
    }
}

/// 16 bytes as a uniqueidentifier.
pub(super) fn guid_of(bytes: &[u8; 16]) -> Value {
    guid(&pellucid::hash::hex(bytes)).map_or(Value::Null, Value::Text)
}

/// 32 digits as a uniqueidentifier. Others, such as those of a media family, have none.
fn guid(digits: &str) -> Option<String> {
    let digits = digits.to_uppercase();
    let is_whole = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_whole.then(|| {
        format!(
            "{}-{}-{}-{}-{}",
            &digits[..8],
            &digits[8..12],
            &digits[12..16],
            &digits[16..20],
            &digits[20..]
        )
    })
}
