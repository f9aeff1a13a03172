//! `pellucid_certificates`: the certificates of the keyring, as `sys.certificates`.

use std::path::PathBuf;

use pellucid::{Error, Result};
use pellucid_host::table::{Cell, Row, View};
use pellucid_keyring::Stored;

use super::keyring;

/// The certificates of the keyring.
pub const VIEW: View = View {
    name: c"pellucid_certificates",
    schema:
        c"CREATE TABLE x(name TEXT, pvt_key_encryption_type TEXT, pvt_key_encryption_type_desc TEXT,
        issuer_name TEXT, cert_serial_number TEXT, subject TEXT, expiry_date TEXT, start_date TEXT,
        thumbprint BLOB, thumbprint_sha1 BLOB, pvt_key_last_backup_date TEXT, key_length INTEGER,
        error TEXT)",
    rows: |_| rows(),
};

/// Columns between the first and the last.
const OF_THE_CERTIFICATE: usize = 11;

fn rows() -> Vec<Row> {
    let trouble = |name: Cell, told: String| {
        let mut row = vec![name];
        row.extend(vec![Cell::Null; OF_THE_CERTIFICATE]);
        row.push(Cell::Text(told));
        row
    };
    let keyring = match keyring() {
        None => return Vec::new(),
        Some(Err((_, error))) => return vec![trouble(Cell::Null, error)],
        Some(Ok(keyring)) => keyring,
    };
    let each = match keyring.each_certificate() {
        Ok(each) => each,
        Err(error) => return vec![trouble(Cell::Null, error.to_string())],
    };
    let row = |(file, stored): (PathBuf, Result<Stored>)| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let found = stored.and_then(|stored| of_the_certificate(&stored));
        match found {
            Ok(cells) => {
                let mut row = vec![Cell::text(name)];
                row.extend(cells);
                row.push(Cell::Null);
                row
            }
            Err(error) => trouble(Cell::text(name), Error::to_string(&error)),
        }
    };
    each.into_iter().map(row).collect()
}

fn of_the_certificate(stored: &Stored) -> Result<[Cell; OF_THE_CERTIFICATE]> {
    let public = stored.public();
    let (issuer, serial) = public.issuer_and_serial()?;
    let (from, to) = public.validity();
    let (kind, described) = match stored.has_private_key() {
        true => ("MK", "ENCRYPTED_BY_MASTER_KEY"),
        false => ("NA", "NO_PRIVATE_KEY"),
    };
    Ok([
        Cell::text(kind),
        Cell::text(described),
        Cell::Text(issuer),
        Cell::Text(pellucid::hash::hex(&serial)),
        Cell::text(public.subject()),
        Cell::time(to),
        Cell::time(from),
        Cell::Blob(public.thumbprint().to_vec()),
        Cell::Blob(public.sha1_thumbprint().to_vec()),
        stored.backed_up().map_or(Cell::Null, Cell::time_unless_never),
        Cell::Integer(public.rsa_bits() as i64),
    ])
}
