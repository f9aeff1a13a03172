//! sys.messages and the old view of it: the messages that there are here; sys.syscacheobjects.

use super::{flag, text, Column, Row};
use crate::message::{table, Result};
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// us_english
const LANGUAGE: i64 = 1033;

/// Source: Microsoft's "sys.messages".
pub(super) const MESSAGES: [Column; 5] = [
    ("message_id", SqlType::Int),
    ("language_id", SqlType::SmallInt),
    ("severity", SqlType::TinyInt),
    ("is_event_logged", SqlType::Bit),
    ("text", SqlType::nvarchar(2048)),
];

/// Source: Microsoft's "sys.sysmessages".
pub(super) const SYSMESSAGES: [Column; 5] = [
    ("error", SqlType::Int),
    ("severity", SqlType::TinyInt),
    ("dlevel", SqlType::SmallInt),
    ("description", SqlType::nvarchar(255)),
    ("msglangid", SqlType::SmallInt),
];

/// Source: Microsoft's "sys.syscacheobjects".
pub(super) const CACHE: &[Column] = columns!(
    bucketid INT, cacheobjtype N17, objtype N8, objid INT, dbid SMALL, dbidexec SMALL, uid SMALL, refcounts INT,
    usecounts INT, pagesused INT, setopts INT, langid SMALL, dateformat SMALL, status INT, lasttime BIGINT,
    maxexectime BIGINT, avgexectime BIGINT, lastreads BIGINT, lastwrites BIGINT, sqlbytes INT, sql N3900
);

/// Its places as SQL Server writes them.
fn with_places(written: &str) -> String {
    let mut parts = written.split('{');
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str("%ls");
        shown.push_str(part.split_once('}').map_or(part, |(_, rest)| rest));
    }
    shown
}

pub(super) fn messages(_: &Databases) -> Result<Vec<Row>> {
    let row = |(number, severity, written): &(u32, u8, &str)| {
        vec![
            Value::Integer(i64::from(*number)),
            Value::Integer(LANGUAGE),
            Value::Integer(i64::from(*severity)),
            flag(false),
            text(with_places(written)),
        ]
    };
    Ok(table::every().iter().map(row).collect())
}

pub(super) fn sysmessages(_: &Databases) -> Result<Vec<Row>> {
    let row = |(number, severity, written): &(u32, u8, &str)| {
        vec![
            Value::Integer(i64::from(*number)),
            Value::Integer(i64::from(*severity)),
            Value::Integer(0),
            text(with_places(written).chars().take(255).collect::<String>()),
            Value::Integer(LANGUAGE),
        ]
    };
    Ok(table::every().iter().map(row).collect())
}
