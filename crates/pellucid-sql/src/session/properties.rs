//! What functions give of files, columns, certificates, types and the connection.

use crate::message::{Message, Result};
use crate::values::convert::Value;
use crate::values::types::{Length, SqlType};

/// A column that COL_LENGTH and COL_NAME find.
#[derive(Debug)]
pub(crate) struct ColumnFacts {
    /// The number of its table.
    pub object: i64,
    /// Its number, from 1.
    pub number: i64,
    pub name: String,
    pub data_type: SqlType,
}

/// A file of the database that the session is in.
#[derive(Debug)]
pub(crate) struct FileFacts {
    pub id: i64,
    pub name: String,
    pub is_log: bool,
    pub is_read_only: bool,
    /// Pages of 8 KiB that have something in them.
    pub used_pages: i64,
}

/// A certificate.
#[derive(Debug)]
pub(crate) struct CertificateFacts {
    pub id: i64,
    pub subject: String,
    pub issuer: String,
    /// In hexadecimal.
    pub serial: String,
    pub start: Value,
    pub expiry: Value,
    /// What CERTENCODED gives: nothing of it is secret.
    pub der: Vec<u8>,
}

impl FileFacts {
    /// Source: Microsoft's "FILEPROPERTY"; NULL for another property.
    pub fn get(&self, property: &str) -> Value {
        match property.trim_end().to_lowercase().as_str() {
            "isreadonly" => Value::Integer(self.is_read_only.into()),
            "isprimaryfile" => Value::Integer((self.id == 1).into()),
            "islogfile" => Value::Integer(self.is_log.into()),
            "spaceused" => Value::Integer(self.used_pages),
            _ => Value::Null,
        }
    }
}

impl CertificateFacts {
    /// Source: Microsoft's "CERTPROPERTY". There are no SIDs.
    pub fn get(&self, property: &str) -> Value {
        match property.trim_end().to_lowercase().as_str() {
            "expiry_date" => self.expiry.clone(),
            "start_date" => self.start.clone(),
            "issuer_name" => Value::Text(self.issuer.clone()),
            "cert_serial_number" => Value::Text(self.serial.clone()),
            "subject" => Value::Text(self.subject.clone()),
            _ => Value::Null,
        }
    }
}

/// Source: Microsoft's "CONNECTIONPROPERTY", for a session in the process that asks; NULL for another property.
pub(super) fn connection_property(property: &str) -> Value {
    match property.trim_end().to_lowercase().as_str() {
        "net_transport" | "physical_net_transport" => Value::Text("Shared memory".to_owned()),
        "protocol_type" => Value::Text("TSQL".to_owned()),
        "client_net_address" => Value::Text("<local machine>".to_owned()),
        _ => Value::Null,
    }
}

/// Bytes that a value of the type has at most; -1 for `max`: `sys.columns.max_length`, COL_LENGTH.
pub(crate) fn bytes_most(data_type: SqlType) -> i64 {
    let each = if data_type.is_national() { 2 } else { 1 };
    match (data_type.length(), data_type) {
        (Some(Length::Of(length)), _) => i64::from(length) * each,
        (Some(Length::Max), _) => -1,
        (None, SqlType::Bit | SqlType::TinyInt) => 1,
        (None, SqlType::SmallInt) => 2,
        (None, SqlType::Int | SqlType::Real | SqlType::SmallMoney | SqlType::SmallDateTime) => 4,
        (None, SqlType::Date) => 3,
        (None, SqlType::Time(digits)) => 3 + i64::from(digits > 2) + i64::from(digits > 4),
        (None, SqlType::DateTime2(digits)) => 6 + i64::from(digits > 2) + i64::from(digits > 4),
        (None, SqlType::UniqueIdentifier) => 16,
        (None, SqlType::Numeric { precision, .. }) => match precision {
            0..=9 => 5,
            10..=19 => 9,
            20..=28 => 13,
            _ => 17,
        },
        (None, SqlType::Xml) => -1,
        (None, SqlType::Variant) => 8016,
        _ => 8,
    }
}

/// Source: Microsoft's "sys.types", of the types that every database has: `user_type_id`.
const TYPES: [(i64, &str); 34] = [
    (34, "image"),
    (35, "text"),
    (36, "uniqueidentifier"),
    (40, "date"),
    (41, "time"),
    (42, "datetime2"),
    (43, "datetimeoffset"),
    (48, "tinyint"),
    (52, "smallint"),
    (56, "int"),
    (58, "smalldatetime"),
    (59, "real"),
    (60, "money"),
    (61, "datetime"),
    (62, "float"),
    (98, "sql_variant"),
    (99, "ntext"),
    (104, "bit"),
    (106, "decimal"),
    (108, "numeric"),
    (122, "smallmoney"),
    (127, "bigint"),
    (128, "hierarchyid"),
    (129, "geometry"),
    (130, "geography"),
    (165, "varbinary"),
    (167, "varchar"),
    (173, "binary"),
    (175, "char"),
    (189, "timestamp"),
    (231, "nvarchar"),
    (239, "nchar"),
    (241, "xml"),
    (256, "sysname"),
];

/// TYPE_NAME
pub(super) fn type_name(id: Option<i64>) -> Option<&'static str> {
    TYPES.iter().find(|(other, _)| Some(*other) == id).map(|(_, name)| *name)
}

/// TYPE_ID, also of `sys.name` and of names in brackets.
pub(super) fn type_id(name: &str) -> Option<i64> {
    let bare = |part: &str| part.trim().trim_matches(['[', ']', '"']).to_lowercase();
    let name = match name.rsplit_once('.') {
        None => bare(name),
        Some((schema, name)) if bare(schema) == "sys" => bare(name),
        Some(_) => return None,
    };
    TYPES.iter().find(|(_, other)| *other == name).map(|(id, _)| *id)
}

impl super::server::DatabaseProperties {
    /// Source: Microsoft's "DATABASEPROPERTY", which is older than DATABASEPROPERTYEX.
    ///
    /// # Errors
    /// 50001 for a property that is not known here.
    pub fn get_old(&self, property: &str) -> Result<Value> {
        let is = match property.trim_end().to_lowercase().as_str() {
            "isreadonly" => self.is_read_only,
            "isinstandby" => self.is_in_standby,
            "isoffline" => self.status == "OFFLINE",
            "isinload" => self.status == "RESTORING",
            "issingleuser" => self.access == "SINGLE_USER",
            "isdboonly" => self.access == "RESTRICTED_USER",
            "istrunclog" => self.recovery == "SIMPLE",
            "isbulkcopy" => self.recovery == "BULK_LOGGED",
            "issuspect" | "isemergencymode" | "isinrecovery" | "isnotrecovered" | "isshutdown" => {
                false
            }
            other => return Err(Message::unsupported(format!("DATABASEPROPERTY '{other}'"))),
        };
        Ok(Value::Integer(is.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_numbers() {
        assert_eq!(type_id("int"), Some(56));
        assert_eq!(type_id("sys.NVarChar"), Some(231));
        assert_eq!(type_id("[sysname]"), Some(256));
        assert_eq!(type_id("dbo.int"), None);
        assert_eq!(type_id("nothing"), None);
        assert_eq!(type_name(Some(167)), Some("varchar"));
        assert_eq!(type_name(Some(1)), None);
        assert!(TYPES.is_sorted());
    }

    #[test]
    fn columns_have_lengths() {
        let of = |data_type| bytes_most(data_type);
        assert_eq!(of(SqlType::nvarchar(40)), 80);
        assert_eq!(of(SqlType::VARCHAR_MAX), -1);
        assert_eq!(of(SqlType::DateTime2(0)), 6);
        assert_eq!(of(SqlType::DateTime2(7)), 8);
        assert_eq!(of(SqlType::Time(7)), 5);
        assert_eq!(of(SqlType::numeric(38, 4)), 17);
    }
}
