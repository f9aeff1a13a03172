//! `pellucid_databases`: the known databases, as `sys.databases`.

use pellucid_host::table::{Cell, Row, View};

use super::known::{database_id, databases, Known};
use crate::inspect::Kind;

/// The databases of the connection and of the keyring.
pub const VIEW: View = View {
    name: c"pellucid_databases",
    schema:
        c"CREATE TABLE x(name TEXT, database_id INTEGER, create_date TEXT, is_encrypted INTEGER,
        attached_as TEXT, path TEXT, file_id BLOB, page_size INTEGER, error TEXT)",
    rows: |connection| databases(connection).iter().map(row).collect(),
};

fn row(known: &Known) -> Row {
    let mut row = vec![
        known.path.file_name().map_or(Cell::Null, |name| Cell::Text(name.to_string_lossy().into())),
        Cell::Integer(database_id(&known.path)),
    ];
    let (clear, identity, error) = match &known.found {
        Ok(Kind::Sealed(sealed)) => {
            let header = &sealed.header;
            (
                // As in `sys.databases`: the last `SET ENCRYPTION`.
                [Cell::time_unless_never(header.created), encrypted(!header.is_switched_off())],
                [Cell::Blob(header.file_id.to_vec()), Cell::Integer(header.page_size.into())],
                Cell::Null,
            )
        }
        found => {
            let told = trouble(found);
            let is = if told == Cell::Null { encrypted(false) } else { Cell::Null };
            ([Cell::Null, is], [Cell::Null, Cell::Null], told)
        }
    };
    row.extend(clear);
    row.push(known.schema.as_ref().map_or(Cell::Null, Cell::text));
    row.push(Cell::path(&known.path));
    row.extend(identity);
    row.push(error);
    row
}

fn encrypted(is: bool) -> Cell {
    Cell::Integer(is.into())
}

/// The error that keeps a database from being shown. NULL for a whole or plain one.
pub fn trouble(found: &Result<Kind, String>) -> Cell {
    match found {
        Ok(Kind::Sealed(_) | Kind::Plain | Kind::Empty) => Cell::Null,
        Ok(Kind::Unfinished) => Cell::text("an encryption or decryption of it was interrupted"),
        Ok(Kind::NotADatabase) => Cell::text("neither an SQLite database nor sealed"),
        Ok(Kind::Damaged(error)) => Cell::text(error),
        Err(told) => Cell::text(told),
    }
}
