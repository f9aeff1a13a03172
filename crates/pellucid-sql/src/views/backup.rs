//! The tables of msdb's history, with SQL Server's types.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::lists::{Same, PRINT};
use super::{Column, Row};
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::{from_hex, Value};
use crate::values::thumbprint;
use crate::values::types::SqlType;

const N128: SqlType = SqlType::nvarchar(128);
const LSN: SqlType = SqlType::numeric(25, 0);
const GUID: SqlType = SqlType::UniqueIdentifier;

/// Source: Microsoft's "backupset".
pub(super) const SETS: &[Column] = columns!(
    backup_set_id INT, backup_set_uuid GUID, media_set_id INT, first_family_number BYTE, first_media_number SMALL,
    last_family_number BYTE, last_media_number SMALL, catalog_family_number BYTE, catalog_media_number SMALL,
    position INT, expiration_date TIME, software_vendor_id INT, name N128, description N255, user_name N128,
    software_major_version BYTE, software_minor_version BYTE, software_build_version SMALL, time_zone SMALL,
    mtf_minor_version BYTE, first_lsn LSN, last_lsn LSN, checkpoint_lsn LSN, database_backup_lsn LSN,
    database_creation_date TIME, backup_start_date TIME, backup_finish_date TIME, type C1, sort_order SMALL,
    code_page SMALL, compatibility_level BYTE, database_version INT, backup_size SIZE, database_name N128,
    server_name N128, machine_name N128, flags INT, unicode_locale INT, unicode_compare_style INT,
    collation_name N128, is_password_protected BIT, recovery_model DESC, has_bulk_logged_data BIT, is_snapshot BIT,
    is_readonly BIT, is_single_user BIT, has_backup_checksums BIT, is_damaged BIT, begins_log_chain BIT,
    has_incomplete_metadata BIT, is_force_offline BIT, is_copy_only BIT, first_recovery_fork_guid GUID,
    last_recovery_fork_guid GUID, fork_point_lsn LSN, database_guid GUID, family_guid GUID,
    differential_base_lsn LSN, differential_base_guid GUID, compressed_backup_size SIZE, key_algorithm N32,
    encryptor_thumbprint PRINT, encryptor_type N32, last_valid_restore_time TIME, compression_algorithm N32
);

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
pub(super) const FILES: &[Column] = columns!(
    backup_set_id INT, first_family_number BYTE, first_media_number SMALL, filegroup_name N128, page_size INT,
    file_number NUMBER, backed_up_page_count NUMBER, file_type C1, source_file_block_size NUMBER, file_size SIZE,
    logical_name N128, physical_drive N260, physical_name N260, state BYTE, state_desc N64, create_lsn LSN,
    drop_lsn LSN, file_guid GUID, read_only_lsn LSN, read_write_lsn LSN, differential_base_lsn LSN,
    differential_base_guid GUID, backup_size SIZE, filegroup_guid GUID, is_readonly BIT, is_present BIT
);

/// Source: Microsoft's "backupfilegroup".
pub(super) const FILEGROUPS: &[Column] = columns!(
    backup_set_id INT, name NAME, filegroup_id INT, filegroup_guid GUID, type C2, type_desc DESC, is_default BIT,
    is_readonly BIT, log_filegroup_guid GUID
);

/// Source: Microsoft's "restorefilegroup".
pub(super) const RESTORE_FILEGROUPS: &[Column] =
    columns!(restore_history_id INT, filegroup_name N128);

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

/// What every set has: the first medium of the first family, and the one collation.
const EVER: [(&str, Same); 6] = [
    ("first_family_number", Same::Number(1)),
    ("first_media_number", Same::Number(1)),
    ("last_media_number", Same::Number(1)),
    ("catalog_family_number", Same::Number(1)),
    ("catalog_media_number", Same::Number(1)),
    ("collation_name", Same::Text("SQL_Latin1_General_CP1_CI_AS")),
];

fn give(rows: &mut [Row], columns: &[Column], same: &[(&str, Same)]) {
    for (name, value) in same {
        let Some(at) = columns.iter().position(|(other, _)| other == name) else { continue };
        for row in rows.iter_mut().filter(|row| row[at] == Value::Null) {
            row[at] = value.value();
        }
    }
}

fn deny(rows: &mut [Row], at: usize) {
    for row in rows {
        if row[at] == Value::Null {
            row[at] = Value::Integer(0);
        }
    }
}

pub(super) fn sets(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = read(databases, "backupset", SETS)?;
    let place = |wanted: &str| SETS.iter().position(|(name, _)| *name == wanted);
    let known = ["server_name", "database_name", "database_creation_date"].map(place);
    if let (Some(guid), [Some(server), Some(name), Some(created)]) = (place("database_guid"), known)
    {
        for row in &mut rows {
            row[guid] = database_guid(&row[server], &row[name], &row[created]);
            // The family begins with the database.
            if let Some(family) = place("family_guid") {
                row[family] = row[guid].clone();
            }
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
    give(&mut rows, SETS, &EVER);
    Ok(rows)
}

/// Of each set the one filegroup.
pub(super) fn filegroups(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = read(databases, "backupset", FILEGROUPS)?;
    for row in &mut rows {
        row[1] = Value::Null;
    }
    let same = [
        ("name", Same::Text("PRIMARY")),
        ("filegroup_id", Same::Number(1)),
        ("type_desc", Same::Text("ROWS_FILEGROUP")),
        ("is_default", Same::Number(1)),
        ("is_readonly", Same::Number(0)),
    ];
    give(&mut rows, FILEGROUPS, &same);
    for row in &mut rows {
        row[4] = Value::Text("FG".to_owned());
    }
    Ok(rows)
}

/// Of each restore of a database the one filegroup.
pub(super) fn restore_filegroups(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = read(databases, "restorehistory", &RESTORES)?;
    rows.retain(|row| row[5] == Value::Text("D".to_owned()));
    let row = |row: &Row| vec![row[0].clone(), Value::Text("PRIMARY".to_owned())];
    Ok(rows.iter().map(row).collect())
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
    let mut rows = read(databases, "backupfile", FILES)?;
    let same = [
        ("first_family_number", Same::Number(1)),
        ("first_media_number", Same::Number(1)),
        ("state_desc", Same::Text("ONLINE")),
        ("source_file_block_size", Same::Number(4096)),
    ];
    give(&mut rows, FILES, &same);
    Ok(rows)
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
pub(super) fn as_kept(value: Value, data_type: SqlType) -> Value {
    match (data_type, value) {
        (PRINT, Value::Text(digits)) => {
            from_hex(&digits).map_or(Value::Null, |bytes| thumbprint(&bytes))
        }
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
