//! Rows in boxes, as go-sqlcmd draws them: columns are as wide as their longest value.

/// A result, until its end.
#[derive(Debug, Default)]
pub struct Boxes {
    rows: Vec<Vec<String>>,
}

impl Boxes {
    /// Another row.
    pub fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines of all rows, which are forgotten; `columns` are names and whether their values stand on the right.
    pub fn take(
        &mut self,
        columns: &[(&str, bool)],
        separator: &str,
        has_header: bool,
    ) -> Vec<String> {
        let separator = if separator.trim().is_empty() { "|" } else { separator };
        let rows = std::mem::take(&mut self.rows);
        let length = |text: &str| text.chars().count();
        let width = |(at, (name, _)): (usize, &(&str, bool))| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| length(cell));
            cells.chain([length(name)]).max().unwrap_or(0)
        };
        let widths: Vec<_> = columns.iter().enumerate().map(width).collect();
        let line = |cells: &[&str], is_right: &dyn Fn(usize) -> bool| {
            let mut line = separator.to_owned();
            for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let spaces = " ".repeat(width.saturating_sub(length(cell)));
                line += &match is_right(at) {
                    true => format!(" {spaces}{cell} {separator}"),
                    false => format!(" {cell}{spaces} {separator}"),
                };
            }
            line
        };
        let dashes = widths.iter().map(|width| "-".repeat(width + 2) + "+").collect::<String>();
        let border = format!("+{dashes}");
        let mut lines = vec![border.clone()];
        if has_header {
            let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
            lines.extend([line(&names, &|_| false), border.clone()]);
        }
        let is_right = |at: usize| columns.get(at).is_some_and(|(_, is_right)| *is_right);
        for row in &rows {
            let cells: Vec<_> = row.iter().map(String::as_str).collect();
            lines.push(line(&cells, &is_right));
        }
        lines.push(border);
        lines
    }
}
