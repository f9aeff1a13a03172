//! The change counter of a database that takes the place of another one: no connection may trust a page that it read of
//! the old one.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pellucid::error::{Error, Result, Subject};
use pellucid::header::REGION_BYTES;
use pellucid::keys::ContainerKeys;
use pellucid::nonce::SystemNonces;
use pellucid::unit::{FileKind, Place, TAIL_BYTES};

/// Change counter and "version valid for" (SQLite file format, 1.3.6 and 1.3.13).
const COUNTER: std::ops::Range<usize> = 24..28;
const VALID_FOR: std::ops::Range<usize> = 92..96;

/// Sets the change counter of a restored file that nobody else has open, and forces it to disk. A container needs its keys.
/// `path` is for errors: its name may be another file's by now.
///
/// # Errors
/// [`Error::Io`], or [`Error::Unauthentic`] if page 1 does not open.
pub fn set_change_counter(
    file: &File,
    path: &Path,
    keys: Option<&ContainerKeys>,
    page_bytes: usize,
    counter: u32,
) -> Result<()> {
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    match keys {
        None => {
            let mut head = [0; 100];
            file.read_exact_at(&mut head, 0).map_err(io)?;
            set(&mut head, counter);
            file.write_all_at(&head, 0).map_err(io)?;
        }
        Some(keys) => set_sealed(file, path, keys, page_bytes, counter)?,
    }
    file.sync_all().map_err(io)
}

fn set_sealed(
    file: &File,
    path: &Path,
    keys: &ContainerKeys,
    page_bytes: usize,
    counter: u32,
) -> Result<()> {
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let mut unit = vec![0; page_bytes];
    file.read_exact_at(&mut unit, REGION_BYTES).map_err(io)?;
    let mut content = vec![0; page_bytes - TAIL_BYTES];
    let place = Place::page(keys.file_id(), 1);
    keys.open(FileKind::Database, &place, &unit, &mut content, || Subject::Page(1))?;
    set(&mut content, counter);
    keys.seal(FileKind::Database, &place, &mut SystemNonces, &content, &mut unit)?;
    file.write_all_at(&unit, REGION_BYTES).map_err(io)
}

/// Where the size in the header was not to be trusted, it is not to be afterwards either.
fn set(page: &mut [u8], counter: u32) {
    let trusted = page[COUNTER] == page[VALID_FOR];
    let valid_for = if trusted { counter } else { counter.wrapping_sub(1) };
    page[COUNTER].copy_from_slice(&counter.to_be_bytes());
    page[VALID_FOR].copy_from_slice(&valid_for.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_counted_counts_and_one_that_did_not_does_not() {
        let mut page = [0; 100];
        set(&mut page, 7);
        assert_eq!((&page[COUNTER], &page[VALID_FOR]), (&[0, 0, 0, 7][..], &[0, 0, 0, 7][..]));
        page[VALID_FOR.start] = 1;
        set(&mut page, 0);
        assert_eq!((&page[COUNTER], &page[VALID_FOR]), (&[0; 4][..], &[255; 4][..]));
    }
}
