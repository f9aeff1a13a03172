//! First encryption: a plain database becomes a container, in place.

use std::os::unix::fs::FileExt;
use std::path::Path;

use pellucid::header::REGION_BYTES;
use pellucid::keys::ContainerKeys;
use pellucid::nonce::SystemNonces;
use pellucid::sector::SECTOR_BYTES;
use pellucid::unit::{FileKind, Place, TAIL_BYTES};
use pellucid::{Error, Subject};
use pellucid_files::paths::{assert_one_name, full_name, resolved};
use pellucid_host::connection::{uri, Handle};
use pellucid_host::lending::Lender;
use pellucid_host::{DatabaseError, Options};
use pellucid_keyring::{Action, Event};
use pellucid_vfs::copy::CopyFile;
use pellucid_vfs::laying::Laying;
use pellucid_vfs::names::Held;
use pellucid_vfs::open_file::OpenFile;
use pellucid_vfs::pins::{Expectation, Lesser};
use pellucid_vfs::seal_request::{prepare_birth, Birth};

use crate::convert::original::Original;
use crate::convert::switch::{check_space, fill_copy, Source};
use crate::convert::{schema, Progress};

/// Seals the plain database at `path`, in place, with the keys of `birth`, and returns its file id. `birth` is asked once nothing
/// else stands in the way, since it may have to make keys: a refused encryption leaves none behind.
///
/// # Errors
/// [`DatabaseError`]. Before the commit point nothing is changed; after it the next connection that
/// may write finishes the work.
pub fn encrypt(
    path: &Path,
    birth: impl FnOnce() -> Result<Birth, DatabaseError>,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<[u8; 16], DatabaseError> {
    let pins = Expectation::at(path)?;
    pins.refuse_lesser(Lesser::Plain)?;
    let path = &resolved(path)?;
    let original = Original::hold(path)?;
    // The plain file is read without the shim.
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let _names = Held::of(path).map_err(io)?;
    assert_one_name(path)?;
    let lower_uri = uri(path, "vfs=unix");
    let reader = original.look(path, &lower_uri, options)?;
    options.equip(&reader)?;
    schema::check(path, &reader, options)?;
    let page_bytes = reader.number("PRAGMA page_size")? as usize;
    let pages = reader.number("PRAGMA page_count")?.max(0) as u64;
    drop(reader);
    let expected = expected_bytes(pages, page_bytes);
    check_space(path, expected + expected / 16)?;

    let source = Source::reserve_held(original, path, &lower_uri, options)?;
    let birth = birth()?;
    let keys = birth.keys()?;
    let header = birth.header(page_bytes as u32)?;
    Event::new(Action::Encrypted, "database").of(full_name(path)).record_here()?;
    let copy = source.make_copy()?;
    let token = prepare_birth(birth)?;
    let lent = copy.lend(false);
    // Encrypting builds of SQLite reserve more, and some leave that so when they decrypt.
    let target =
        uri(copy.path(), &format!("{AS_COPY}&reserve={TAIL_BYTES}&pellucid_birth={token}"));
    fill_copy(&source, &lower_uri, &copy, &target, options, expected, progress)?;
    let order = schema::order(&source.handle)?;
    schema::restore_order(path, &uri(copy.path(), AS_COPY), &order, options)?;
    drop(lent);
    finish_copy(&copy, &keys, page_bytes, next_counter(&source.handle)?, source.was_wal)?;

    if options.lender.as_ref().is_some_and(Lender::failed) {
        return Err(Error::misuse(
            Subject::File(path.to_owned()),
            "a collation of the application failed; nothing was changed",
        )
        .into());
    }
    let lower = OpenFile::of(&source.handle)?;
    let mut sector = [0; SECTOR_BYTES];
    copy.file()
        .read_exact_at(&mut sector, 0)
        .map_err(|error| Error::io(Subject::File(copy.path().to_owned()), error))?;
    source.switch(lower, &sector, Laying::of(copy, true)?, progress)?;
    pins.put_if_writable(path, &header);
    Ok(header.file_id)
}

/// The URI parameters that open a lent copy, and no other file.
pub const AS_COPY: &str = "vfs=pellucid&pellucid_copy=1";

/// The expected size of the copy in bytes. Each page loses the bytes of its tail, so a full
/// database needs more pages.
pub fn expected_bytes(pages: u64, page_bytes: usize) -> u64 {
    let usable = page_bytes.saturating_sub(TAIL_BYTES).max(1) as u64;
    // A file with holes has as many pages as its maker likes.
    let content = (u128::from(pages) + 2) * (page_bytes as u128).pow(2) / u128::from(usable);
    let most = u64::MAX >> 1;
    u64::try_from(content).unwrap_or(most).min(most) + REGION_BYTES
}

/// Returns the change counter after the next commit, so that no connection trusts a page in its
/// cache.
pub fn next_counter(handle: &Handle<'_>) -> Result<u32, DatabaseError> {
    let file = OpenFile::of(handle)?;
    let mut counter = [0; 4];
    file.read(&mut counter, 24).map_err(|code| DatabaseError::Sqlite {
        file: String::new(),
        code: code.0,
        message: "the change counter cannot be read".to_owned(),
    })?;
    Ok(u32::from_be_bytes(counter).wrapping_add(1))
}

/// Sets the fields of page 1 that `VACUUM INTO` does not keep, and forces the copy to disk.
pub fn finish_copy(
    copy: &CopyFile,
    keys: &ContainerKeys,
    page_bytes: usize,
    counter: u32,
    wal: bool,
) -> Result<(), DatabaseError> {
    let io = |error| Error::io(Subject::File(copy.path().to_owned()), error);
    let file = copy.file();
    let mut unit = vec![0; page_bytes];
    file.read_exact_at(&mut unit, REGION_BYTES).map_err(io)?;
    let mut content = vec![0; page_bytes - TAIL_BYTES];
    let place = Place::page(keys.file_id(), 1);
    keys.open(FileKind::Database, &place, &unit, &mut content, || Subject::Page(1))?;
    set_first_page(&mut content, counter, wal);
    keys.seal(FileKind::Database, &place, &mut SystemNonces, &content, &mut unit)?;
    file.write_all_at(&unit, REGION_BYTES).map_err(io)?;
    file.sync_all().map_err(io)?;
    Ok(copy.sync_folder()?)
}

/// Sets the change counter, "version valid for" and the two format bytes (SQLite file format, 1.3).
pub fn set_first_page(page: &mut [u8], counter: u32, wal: bool) {
    page[18..20].fill(if wal { 2 } else { 1 });
    page[24..28].copy_from_slice(&counter.to_be_bytes());
    page[92..96].copy_from_slice(&counter.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_pages_is_expected_to_need_less_than_it_has() {
        for page_bytes in [512, 4096, 65536] {
            for pages in [0, 1, 1000, u64::from(u32::MAX), i64::MAX as u64] {
                let expected = expected_bytes(pages, page_bytes);
                let least = u128::from(pages) * page_bytes as u128;
                assert!(u128::from(expected) >= least.min(u128::from(u64::MAX >> 1)), "{pages}");
                assert!(expected.checked_add(expected / 16).is_some(), "{pages}");
            }
        }
    }
}
