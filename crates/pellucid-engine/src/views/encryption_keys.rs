//! `pellucid_encryption_keys`: the data encryption key of each database and its state, as `sys.dm_database_encryption_keys`.

use pellucid::facts::KeyFacts;
use pellucid::header::Dates;
use pellucid_host::table::{Cell, Row, View};

use super::databases::trouble;
use super::known::{database_id, databases, Known};
use crate::inspect::Kind;

/// The data encryption keys of those databases.
pub const VIEW: View = View {
    name: c"pellucid_encryption_keys",
    schema: c"CREATE TABLE x(database_id INTEGER, encryption_state INTEGER, create_date TEXT,
        regenerate_date TEXT, modify_date TEXT, set_date TEXT, key_algorithm TEXT, key_length INTEGER,
        encryptor_thumbprint BLOB, encryptor_type TEXT, percent_complete REAL,
        encryption_state_desc TEXT, encryption_scan_state INTEGER, encryption_scan_state_desc TEXT,
        encryption_scan_modify_date TEXT, protectors INTEGER, path TEXT, error TEXT)",
    rows: |connection| databases(connection).iter().map(row).collect(),
};

/// Columns between the first and the last two.
const OF_THE_KEY: usize = 15;

fn row(known: &Known) -> Row {
    let mut row = vec![Cell::Integer(database_id(&known.path))];
    row.extend(match &known.found {
        Ok(Kind::Sealed(sealed)) => of_the_key(&KeyFacts::of(&sealed.header, sealed.percent())),
        found if trouble(found) == Cell::Null => of_the_key(&KeyFacts::of_plain()),
        _ => std::array::from_fn(|_| Cell::Null),
    });
    row.push(Cell::path(&known.path));
    row.push(trouble(&known.found));
    row
}

fn of_the_key(facts: &KeyFacts) -> [Cell; OF_THE_KEY] {
    let date = |of: fn(&Dates) -> u64| {
        facts.dates.as_ref().map_or(Cell::Null, |dates| Cell::time_unless_never(of(dates)))
    };
    let (name, bits) = facts.key.map_or((Cell::Null, Cell::Null), |(name, bits)| {
        (Cell::text(name), Cell::Integer(bits.into()))
    });
    let thumbprint = facts.encryptor.and_then(|encryptor| encryptor.thumbprint);
    [
        Cell::Integer(facts.state.into()),
        date(|dates| dates.created),
        date(|dates| dates.regenerated),
        date(|dates| dates.modified),
        date(|dates| dates.set),
        name,
        bits,
        thumbprint.map_or(Cell::Null, |bytes| Cell::Blob(bytes.to_vec())),
        facts.encryptor.map_or(Cell::Null, |encryptor| Cell::text(encryptor.kind)),
        Cell::Real(facts.percent.into()),
        Cell::text(facts.state_description),
        Cell::Integer(facts.scan_state.into()),
        Cell::text(facts.scan_description),
        date(|dates| dates.scan_modified.unwrap_or(0)),
        match facts.dates {
            Some(_) => Cell::Integer(facts.openers.len() as i64),
            None => Cell::Null,
        },
    ]
}
