//! The entries of `docs/figures.toml`: for each page the places of its figures and what they are of.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::page::Page;
use super::place::{Place, Table};
use super::selector::{Evidence, Quote};
use crate::error::{Error, Result};

/// All entries, by page.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Entries(BTreeMap<String, Vec<Entry>>);

/// One place of a page, and what its figures are of: a record (`of`); the file that says them (`source`), for figures
/// that no record has alone, such as those of two programs by `lab verdict`; or how they were measured
/// (`unrecorded`), where no record was kept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    after: Option<String>,
    under: Option<String>,
    table: Option<usize>,
    row: Option<String>,
    column: Option<String>,
    of: Option<String>,
    source: Option<String>,
    unrecorded: Option<String>,
}

impl Entries {
    /// Reads the file of entries.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Invalid`] if it is not TOML of this form.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(Error::io(name.clone()))?;
        toml::from_str(&text).map_err(|error| Error::invalid(format!("{name}: {error}")))
    }

    /// Refuses a page that is not there, whose entries nothing would check.
    ///
    /// # Errors
    /// [`Error::Invalid`] with its name.
    pub fn all_pages_are_under(&self, root: &Path) -> Result<()> {
        match self.0.keys().find(|page| !root.join(page).is_file()) {
            Some(page) => {
                Err(Error::invalid(format!("there are entries for `{page}`, which is not there")))
            }
            None => Ok(()),
        }
    }

    /// The figures of a page, each with what it is of.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an entry that names no figure of the page.
    pub fn quotes<'a>(&self, page: &Page<'a>, name: &str) -> Result<Vec<Quote<'a>>> {
        let mut quotes = Vec::new();
        for entry in self.0.get(name).into_iter().flatten() {
            quotes.extend(entry.quotes(page)?);
        }
        Ok(quotes)
    }
}

impl Entry {
    fn quotes<'a>(&self, page: &Page<'a>) -> Result<Vec<Quote<'a>>> {
        let found = self.place()?.find(page)?;
        let quotes = found.into_iter().map(|figure| {
            let evidence = match self.evidence()? {
                Evidence::Record(fields) => {
                    Evidence::Record(fields.iter().map(|field| figure.fill(field)).collect())
                }
                other => other,
            };
            Ok(Quote::new(page, figure.at, evidence))
        });
        quotes.collect()
    }

    fn evidence(&self) -> Result<Evidence> {
        match (&self.of, &self.source, &self.unrecorded) {
            (Some(of), None, None) => {
                Ok(Evidence::Record(of.split('|').map(|field| field.trim().to_owned()).collect()))
            }
            (None, Some(source), None) => Ok(Evidence::Source(source.clone())),
            (None, None, Some(how)) if !how.is_empty() => Ok(Evidence::Unrecorded),
            _ => Err(Error::invalid(format!(
                "an entry has `of`, `source` or `unrecorded`: {self:?}"
            ))),
        }
    }

    fn has_no_cell(&self) -> bool {
        self.table.is_none() && self.row.is_none() && self.column.is_none()
    }

    fn place(&self) -> Result<Place<'_>> {
        match (&self.after, &self.under) {
            (Some(text), None) if self.has_no_cell() => Ok(Place::After(text)),
            (None, Some(heading)) => Ok(Place::Table(Table {
                heading,
                number: self.table.unwrap_or(1),
                row: self.row.as_deref(),
                column: self.column.as_deref(),
                selector: self.of.as_deref().unwrap_or_default(),
            })),
            _ => Err(Error::invalid(format!(
                "an entry has `after`, or `under` with a table's place: {self:?}"
            ))),
        }
    }
}
