//! Tables: a line under the header, none between rows, and no wider than the terminal.

use std::fmt;

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};

use super::wrap::columns;

/// Only the line under the header, and through it where columns meet.
const HEADER_LINE: &str = "     \u{2500}\u{2500}            ";
/// Between two values of a row that has lines of its own.
const BETWEEN: &str = ", ";
const INDENT: &str = "  ";

/// Rows under a header. Where the terminal is so narrow that a word would be cut, each row has lines of its own: its first
/// column, and below it the other columns by name.
#[derive(Debug)]
pub struct Grid {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// An empty table with a header.
pub fn table<const N: usize>(header: [&str; N]) -> Grid {
    Grid { header: header.map(str::to_owned).to_vec(), rows: Vec::new() }
}

impl Grid {
    /// Adds a row.
    pub fn add_row<T: ToString>(&mut self, row: impl IntoIterator<Item = T>) {
        self.rows.push(row.into_iter().map(|cell| cell.to_string()).collect());
    }

    /// Adds rows.
    pub fn add_rows<T: ToString, R: IntoIterator<Item = T>>(
        &mut self,
        rows: impl IntoIterator<Item = R>,
    ) {
        rows.into_iter().for_each(|row| self.add_row(row));
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text for a terminal of `width` columns; for a file or pipe if there is none.
    fn fitted(&self, width: Option<u16>) -> String {
        let mut table = list();
        table.load_preset(HEADER_LINE).set_header(&self.header);
        table.add_rows(&self.rows);
        pad(&mut table);
        match width {
            None => table.set_content_arrangement(ContentArrangement::Disabled),
            Some(width) => {
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width)
            }
        };
        let text = table.to_string();
        match width {
            Some(width) if self.is_cut_in(&text) => self.in_blocks(width.into()),
            _ => text,
        }
    }

    /// Whether a word of a cell is not whole in the text.
    fn is_cut_in(&self, text: &str) -> bool {
        let words = self.rows.iter().flatten().flat_map(|cell| cell.split_whitespace());
        words.into_iter().any(|word| !text.contains(word))
    }

    fn in_blocks(&self, width: usize) -> String {
        let mut lines = Vec::new();
        for row in &self.rows {
            let mut cells = row.iter();
            let (name, first) = (self.header.first(), cells.next().cloned().unwrap_or_default());
            // A number says nothing without its name.
            lines.push(match name {
                Some(name) if first.parse::<u64>().is_ok() => format!("{name} {first}"),
                _ => first,
            });
            let mut line = String::new();
            for (name, cell) in self.header.iter().skip(1).zip(cells) {
                if name.is_empty() || cell.is_empty() {
                    continue;
                }
                let value = format!("{name} {cell}");
                let more = BETWEEN.len() + value.chars().count();
                if !line.is_empty() && line.chars().count() + more + 1 > width {
                    lines.push(format!("{line},"));
                    line.clear();
                }
                line += if line.is_empty() { INDENT } else { BETWEEN };
                line += &value;
            }
            if !line.is_empty() {
                lines.push(line);
            }
        }
        lines.join("\n")
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fitted(columns()))
    }
}

/// An empty table without lines, as wide as the terminal that knows its width.
pub fn list() -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    match columns() {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table
}

/// Text begins at the left margin, like every other line. Columns are known once there is a row.
pub fn pad(table: &mut Table) {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_cut_at_any_width() {
        let mut grid = table(["begun (UTC)", "type", "size", "", "file"]);
        let path = "/srv/backups/2026/november/app-20261125T033009Z.bak";
        grid.add_row(["2026-11-25 03:30:09", "full", "36.00 KiB", "######", path]);
        grid.add_row(["2026-11-26 03:30:09", "differential", "4.00 KiB", "#", "b.bak"]);
        let wide = grid.fitted(None);
        assert_eq!(grid.fitted(Some(200)), wide);
        assert_eq!(wide.lines().count(), 4, "{wide}");
        for width in 40..200 {
            let text = grid.fitted(Some(width));
            for word in grid.rows.iter().flatten().flat_map(|cell| cell.split_whitespace()) {
                let is_bar = word.starts_with('#');
                assert!(is_bar || text.contains(word), "{width}: {word} in\n{text}");
            }
            let most = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(most <= usize::from(width).max(path.len() + 8), "{width}:\n{text}");
        }
        assert_eq!(
            grid.fitted(Some(60)),
            format!(
                "2026-11-25 03:30:09\n  type full, size 36.00 KiB,\n  file {path}\n2026-11-26 03:30:09\n  type differential, \
                 size 4.00 KiB, file b.bak"
            )
        );
    }
}
