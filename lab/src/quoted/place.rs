//! Where a figure stands in a page: behind a text, or in a cell of a table.

use super::page::{Cell, Page};
use super::written::Written;
use crate::error::{Error, Result};

/// The place of one figure, or of the figures of a table.
#[derive(Debug)]
pub enum Place<'e> {
    /// Directly behind this text, which the page has once.
    After(&'e str),
    /// In the table with this number under a heading: in one row, in one column, or in all of them.
    Table(Table<'e>),
}

/// A table, and which of its cells have the figures.
#[derive(Debug)]
pub struct Table<'e> {
    /// The heading that it stands under.
    pub heading: &'e str,
    /// Which of the tables there it is, from 1.
    pub number: usize,
    /// The first cell of the one row.
    pub row: Option<&'e str>,
    /// The title of the one column.
    pub column: Option<&'e str>,
    /// The selector: a cell that it names, as `{1}`, is a label and no figure.
    pub selector: &'e str,
}

/// A figure that was found, and the labels of its row and column.
#[derive(Debug)]
pub struct Found {
    /// The byte that it begins with.
    pub at: usize,
    labels: Vec<(String, String)>,
}

impl Found {
    /// A field of a selector with the labels of the figure's place: `{1}` is the row's first cell, `{column}` the
    /// column's title, blanks as hyphens.
    pub fn fill(&self, field: &str) -> String {
        let mut field = field.to_owned();
        for (name, label) in &self.labels {
            field = field.replace(name, label);
        }
        field
    }
}

impl Place<'_> {
    /// The figures at this place.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is none, or if the text stands there more than once.
    pub fn find(&self, page: &Page<'_>) -> Result<Vec<Found>> {
        let found = match self {
            Self::After(text) => {
                let places = page.behind(text);
                let [at] = places.as_slice() else {
                    let times = places.len();
                    return Err(Error::invalid(format!(
                        "`{text}` stands there {times} times, not once"
                    )));
                };
                vec![Found { at: *at, labels: Vec::new() }]
            }
            Self::Table(table) => {
                let tables = page.tables(table.heading);
                let cells = table.number.checked_sub(1).and_then(|number| tables.get(number));
                let cells = cells.ok_or_else(|| {
                    let Table { heading, number, .. } = table;
                    Error::invalid(format!("there is no table {number} under `{heading}`"))
                })?;
                table.figures(cells)
            }
        };
        if found.is_empty() {
            return Err(Error::invalid(format!("no figure at {self:?}")));
        }
        match found.iter().find(|one| Written::read(&page.text[one.at..]).is_none()) {
            Some(_) => Err(Error::invalid(format!("no number stands at {self:?}"))),
            None => Ok(found),
        }
    }
}

impl Table<'_> {
    fn figures(&self, table: &[Vec<Cell<'_>>]) -> Vec<Found> {
        let name = |text: &str| text.trim_matches('`').replace(' ', "-");
        let mut found = Vec::new();
        let Some((titles, rows)) = table.split_first() else { return found };
        for cells in rows {
            if self.row.is_some_and(|row| cells.first().is_none_or(|cell| cell.text != row)) {
                continue;
            }
            for (at, (title, cell)) in titles.iter().zip(cells).enumerate() {
                let in_column = self.column.is_none_or(|column| title.text == column);
                if self.has_label(at) || !in_column || !cell.has_figure() {
                    continue;
                }
                let mut labels = vec![("{column}".to_owned(), name(title.text))];
                for (at, cell) in cells.iter().enumerate() {
                    labels.push((format!("{{{}}}", at + 1), name(cell.text)));
                }
                found.push(Found { at: cell.at, labels });
            }
        }
        found
    }

    fn has_label(&self, at: usize) -> bool {
        (at == 0 && self.row.is_some()) || self.selector.contains(&format!("{{{}}}", at + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(place: &Place<'_>, text: &str) -> Result<Vec<(usize, String)>> {
        let page = Page::new(text);
        let found = place.find(&page)?;
        Ok(found.iter().map(|one| (page.line(one.at), one.fill("{1}-{2}-{column}"))).collect())
    }

    #[test]
    fn a_text_leads_to_the_figure_behind_it() {
        let text = "one\nand 0.967 (0.946..0.989), or 3\n";
        assert_eq!(places(&Place::After("and "), text).unwrap()[0].0, 2);
        for (after, said) in [("gone", "0 times"), ("o", "2 times"), ("on", "no number")] {
            let error = places(&Place::After(after), text).unwrap_err().to_string();
            assert!(error.contains(said), "{after}: {error}");
        }
    }

    #[test]
    fn a_table_has_a_figure_in_each_place_that_holds_one() {
        let text = "# T\n\n| n | `sync` | 4/3/3 | 1 FULL |\n|---|---|---|---|\n\
                    | 1 | NORMAL | 0.9 (0.8..1.0) | |\n| 2 | FULL | - | 1.1 |\n| 3 | x | about | 2 |\n";
        let selector = "{1}-{2}-{column}";
        let numbered = |number, row, column| {
            Place::Table(Table { heading: "T", number, row, column, selector })
        };
        let table = |row, column| numbered(1, row, column);
        let of = |row, column| places(&table(row, column), text).unwrap();
        assert_eq!(
            of(None, None),
            [
                (5, "1-NORMAL-4/3/3".to_owned()),
                (6, "2-FULL-1-FULL".to_owned()),
                (7, "3-x-1-FULL".to_owned()),
            ]
        );
        assert_eq!(of(Some("2"), None), [(6, "2-FULL-1-FULL".to_owned())]);
        assert_eq!(of(None, Some("4/3/3")), [(5, "1-NORMAL-4/3/3".to_owned())]);
        for none in [table(Some("4"), None), table(Some("2"), Some("4/3/3"))] {
            assert!(places(&none, text).unwrap_err().to_string().contains("no figure"));
        }
        let gone = numbered(2, None, None);
        assert!(places(&gone, text).unwrap_err().to_string().contains("no table 2"));
    }
}
