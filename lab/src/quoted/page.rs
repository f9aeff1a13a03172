//! A document: its text, its headings and its tables. Blocks of code are no part of it.

use super::written::{interval_within, Written};

/// A page of Markdown.
#[derive(Debug)]
pub struct Page<'a> {
    /// All of it.
    pub text: &'a str,
    /// Each line with its first byte's place, without those of blocks of code.
    lines: Vec<(usize, &'a str)>,
}

/// A cell of a table: its place in the page and its text.
#[derive(Debug, Clone, Copy)]
pub struct Cell<'a> {
    /// The first byte of its text.
    pub at: usize,
    /// The text without the blanks around it.
    pub text: &'a str,
}

impl<'a> Page<'a> {
    /// Reads a page.
    pub fn new(text: &'a str) -> Self {
        let (mut lines, mut at, mut code) = (Vec::new(), 0, false);
        for line in text.split_inclusive('\n') {
            if line.trim_start().starts_with("```") {
                code = !code;
            } else if !code {
                lines.push((at, line.trim_end_matches('\n')));
            }
            at += line.len();
        }
        Self { text, lines }
    }

    /// The number of the line that a byte is in.
    pub fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// The places behind a text that stands outside code, in each line that has it.
    pub fn behind(&self, wanted: &str) -> Vec<usize> {
        let found = self.lines.iter().flat_map(|(at, line)| {
            line.match_indices(wanted).map(move |(column, _)| at + column + wanted.len())
        });
        found.collect()
    }

    /// The tables between a heading and the next one: rows of cells, the titles first, without the line of dashes.
    pub fn tables(&self, heading: &str) -> Vec<Vec<Vec<Cell<'a>>>> {
        let (mut tables, mut under, mut before) = (Vec::new(), false, false);
        for (at, line) in &self.lines {
            if let Some(title) = line.strip_prefix('#') {
                under = title.trim_start_matches('#').trim() == heading;
            }
            let is_row = under && line.starts_with('|');
            if is_row && !before {
                tables.push(Vec::new());
            }
            if let (true, Some(table)) = (is_row && !line.starts_with("|---"), tables.last_mut()) {
                table.push(cells(*at, line));
            }
            before = is_row;
        }
        tables
    }

    /// Every interval behind a number, outside code, which has examples: the place of its bracket, and its text.
    pub fn intervals(&self) -> Vec<(usize, &'a str)> {
        let mut found = Vec::new();
        for (at, line) in &self.lines {
            for (column, _) in line.match_indices('(') {
                let behind_number = line[..column]
                    .trim_end_matches(|c: char| !c.is_ascii_digit() && !";,.|".contains(c))
                    .ends_with(|c: char| c.is_ascii_digit());
                let is_code = line[..column].matches('`').count() % 2 == 1;
                let within = line[column + 1..].split(')').next().unwrap_or_default();
                if behind_number && !is_code && interval_within(within) {
                    found.push((at + column, &line[column..column + within.len() + 2]));
                }
            }
        }
        found
    }
}

fn cells(at: usize, line: &str) -> Vec<Cell<'_>> {
    let mut cells = Vec::new();
    let mut from = 1;
    for cell in line[1..].split_inclusive('|') {
        let text = cell.trim_end_matches('|').trim();
        let blanks = cell.len() - cell.trim_start().len();
        if cell.ends_with('|') {
            cells.push(Cell { at: at + from + blanks, text });
        }
        from += cell.len();
    }
    cells
}

impl Cell<'_> {
    /// Whether the cell begins with a number.
    pub fn has_figure(&self) -> bool {
        Written::read(self.text).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_no_part_of_a_page() {
        let page = Page::new("a 1 (0..2)\n```\na 1 (0..3)\n```\na 1 (0..4)\n");
        assert_eq!(page.behind("a "), [2, 32]);
        assert_eq!(page.intervals(), [(4, "(0..2)"), (34, "(0..4)")]);
        assert_eq!(page.line(32), 5);
    }

    #[test]
    fn intervals_stand_behind_numbers() {
        let found = |text: &str| Page::new(text).intervals().len();
        for one in [
            "+3.5 % (+0.6 to +6.4 %)",
            "0.967 (0.940..0.994)",
            "95 KiB (94..97)",
            "**2 times** (1.5 to 2.5 times)",
        ] {
            assert_eq!(found(one), 1, "{one}");
        }
        for none in [
            "+3.5 % (six cells)",
            "of all (10 to 20)",
            "2 of them; others (1 to 3)",
            "7 (see 3 to 4)",
            "`1 (2..3)`",
        ] {
            assert_eq!(found(none), 0, "{none}");
        }
    }

    #[test]
    fn tables_are_found_by_their_heading() {
        let page = Page::new(
            "# A\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n## B\ntext\n| z |\n|---|\n| 3 |\n\n| w |\n",
        );
        let texts = |heading: &str| -> Vec<Vec<Vec<&str>>> {
            let text = |row: &Vec<Cell<'static>>| row.iter().map(|cell| cell.text).collect();
            page.tables(heading).iter().map(|table| table.iter().map(text).collect()).collect()
        };
        assert_eq!(texts("A"), [[["x", "y"], ["1", "2"]]]);
        assert_eq!(texts("B"), [vec![vec!["z"], vec!["3"]], vec![vec!["w"]]]);
        assert_eq!(&page.text[page.tables("A")[0][1][1].at..][..1], "2");
    }
}
