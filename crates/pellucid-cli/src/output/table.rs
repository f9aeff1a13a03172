//! Tables: a line under the header, none between rows, and no wider than the terminal.

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};

/// Only the line under the header, and through it where columns meet.
const HEADER_LINE: &str = "     \u{2500}\u{2500}            ";

/// An empty table with a header.
pub fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = list();
    table.load_preset(HEADER_LINE).set_header(header);
    pad(&mut table);
    table
}

/// An empty table without lines.
pub fn list() -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table
}

/// Text begins at the left margin, like every other line. Columns are known once there is a row.
pub fn pad(table: &mut Table) {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
}
