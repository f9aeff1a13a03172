//! `pellucid_encryption_keys`: the data encryption key of each database and its state, as `sys.dm_database_encryption_keys`.

use pellucid::header::Header;
use pellucid::protector::Protector;
use pellucid::Algorithm;

use super::databases::trouble;
use super::known::{database_id, Known};
use super::{Cell, Row, View};
use crate::inspect::{Kind, SealedHeader};

pub const VIEW: View = View {
    name: c"pellucid_encryption_keys",
    schema: c"CREATE TABLE x(database_id INTEGER, encryption_state INTEGER, create_date TEXT,
        regenerate_date TEXT, modify_date TEXT, set_date TEXT, key_algorithm TEXT, key_length INTEGER,
        encryptor_thumbprint BLOB, encryptor_type TEXT, percent_complete REAL,
        encryption_state_desc TEXT, encryption_scan_state INTEGER, encryption_scan_state_desc TEXT,
        encryption_scan_modify_date TEXT, protectors INTEGER, path TEXT, error TEXT)",
    rows: |source| source.databases().iter().map(row).collect(),
};

/// Columns between the first and the last two.
const OF_THE_KEY: usize = 15;

fn row(known: &Known) -> Row {
    let mut row = vec![Cell::Integer(database_id(&known.path))];
    match &known.found {
        Ok(Kind::Sealed(sealed)) => row.extend(of_the_key(sealed)),
        found => {
            let mut none = vec![Cell::Null; OF_THE_KEY];
            if trouble(found) == Cell::Null {
                none[0] = Cell::Integer(0);
                none[9] = Cell::Real(0.0);
                none[10] = Cell::text("NONE");
            }
            row.extend(none);
        }
    }
    row.push(Cell::path(&known.path));
    row.push(trouble(&known.found));
    row
}

fn of_the_key(sealed: &SealedHeader) -> [Cell; OF_THE_KEY] {
    let header = &sealed.header;
    let scan = &header.scan;
    let dates = header.dates();
    let (name, bits) = match header.algorithm() {
        Ok(algorithm) => key(algorithm),
        Err(_) => (Cell::Null, Cell::Null),
    };
    let (thumbprint, encryptor) = encryptor(header);
    [
        Cell::Integer(header.state as i64),
        Cell::time_unless_never(dates.created),
        Cell::time_unless_never(dates.regenerated),
        Cell::time_unless_never(dates.modified),
        Cell::time_unless_never(dates.set),
        name,
        bits,
        thumbprint,
        encryptor,
        Cell::Real(sealed.percent().unwrap_or(0.0).into()),
        Cell::text(header.state.description()),
        Cell::Integer(scan.state as i64),
        Cell::text(scan.state.description()),
        Cell::time_unless_never(scan.modified),
        Cell::Integer(header.protectors.len() as i64),
    ]
}

fn key(algorithm: Algorithm) -> (Cell, Cell) {
    let (name, bits) = match algorithm {
        Algorithm::Aes128 => ("AES", 128),
        Algorithm::Aes192 => ("AES", 192),
        Algorithm::Aes256 => ("AES", 256),
        other => (other.name(), 192),
    };
    (Cell::text(name), Cell::Integer(bits))
}

/// Thumbprint and kind of what protects the key: of the first certificate, else of the first protector.
fn encryptor(header: &Header) -> (Cell, Cell) {
    let mut protectors: Vec<Protector> = header
        .protectors
        .iter()
        .filter_map(|bytes| Protector::decode(bytes).ok())
        .map(|(protector, _)| protector)
        .collect();
    protectors.sort_by_key(|protector| match protector {
        Protector::Certificate(found) => u8::from(found.is_recovery()),
        _ => 2,
    });
    match protectors.first() {
        Some(Protector::Certificate(found)) => {
            (Cell::Blob(found.thumbprint().to_vec()), Cell::text("CERTIFICATE"))
        }
        Some(other) => (Cell::Null, Cell::Text(other.kind_name().to_uppercase())),
        None => (Cell::Null, Cell::Null),
    }
}
