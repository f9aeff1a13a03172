//! Figures that documents quote: each is recomputed from the record that `docs/figures.toml` names for it.
//!
//! The documents have text alone. An entry finds its figure by its place (`place.rs`) and names the record
//! (`selector.rs`), so that a figure that moves or changes is noticed. A figure with an interval and without an entry is
//! wrong, an entry without its figure is an error.

mod entry;
mod page;
mod place;
mod selector;
mod written;

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use entry::Entries;
use page::Page;

/// Where the entries are, from the root of the repository.
const ENTRIES: &str = "docs/figures.toml";

/// Prints each figure that differs from its record or has none; false if there is one.
///
/// # Errors
/// [`Error::Io`], and [`Error::Invalid`] for an entry that names no figure or no record, and for documents without
/// a single entry: a check of nothing is none.
pub fn check(documents: &[PathBuf], root: &Path) -> Result<bool> {
    let entries = Entries::read(&root.join(ENTRIES))?;
    entries.all_pages_are_under(root)?;
    let (mut right, mut wrong) = (0, 0);
    for document in documents {
        let name = document.display().to_string();
        let text = std::fs::read_to_string(document).map_err(Error::io(name.clone()))?;
        let page = Page::new(&text);
        let quotes = entries
            .quotes(&page, &within(root, document))
            .map_err(|error| Error::invalid(format!("{name}: {error}")))?;
        for quote in &quotes {
            let place = format!("{name}:{}", page.line(quote.at));
            match quote.check(root) {
                Ok(None) => right += 1,
                Ok(Some(difference)) => {
                    wrong += 1;
                    println!("{place}: {difference}");
                }
                Err(error) => return Err(Error::invalid(format!("{place}: {error}"))),
            }
        }
        for (at, bare) in page.intervals() {
            if quotes.iter().all(|quote| quote.interval_at != Some(at)) {
                wrong += 1;
                println!("{name}:{}: `{bare}` has no entry in {ENTRIES}", page.line(at));
            }
        }
    }
    println!("{right} figures are as their records say, {wrong} differ or have none");
    if right + wrong == 0 {
        return Err(Error::invalid("no figure in these documents names its record"));
    }
    Ok(wrong == 0)
}

/// The name of a document as entries have it: from the root.
fn within(root: &Path, document: &Path) -> String {
    let inside = match (root.canonicalize(), document.canonicalize()) {
        (Ok(root), Ok(document)) => document.strip_prefix(root).map(Path::to_path_buf).ok(),
        _ => None,
    };
    inside.unwrap_or_else(|| document.to_path_buf()).display().to_string()
}
