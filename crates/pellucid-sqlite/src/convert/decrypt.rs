//! Decryption: a container becomes a plain database again, in place.

use std::os::unix::fs::FileExt;
use std::path::Path;

use pellucid::{Error, Subject};
use pellucid_keyring::{Action, Event};

use super::connection::uri;
use super::copy::CopyFile;
use super::encrypt::{next_counter, set_first_page, AS_COPY};
use super::laying::{plain_sector, sync_directory, Laying};
use super::original::Original;
use super::switch::{check_space, fill_copy, Source};
use super::{assert_one_name, full_name, resolved, schema, ConvertError, Options, Progress};
use crate::file::lower_of_open;
use crate::seal_request::forget;

/// Opens the sealed database at `path` for good: afterwards any SQLite reads it.
///
/// # Errors
/// [`ConvertError`]; before the commit point nothing is changed, after it any opener finishes.
pub fn decrypt(
    path: &Path,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<(), ConvertError> {
    let path = &resolved(path)?;
    let original = Original::hold(path)?;
    assert_one_name(path)?;
    let sealed_uri = uri(path, "vfs=pellucid&require=sealed");
    let reader = original.look(path, &sealed_uri, options)?;
    let page_bytes = reader.number("PRAGMA page_size")? as u64;
    let expected = reader.number("PRAGMA page_count")?.max(0) as u64 * page_bytes;
    drop(reader);
    check_space(path, expected + expected / 16)?;

    let mut source = Source::reserve_held(original, path, &sealed_uri, options)?;
    Event::new(Action::Decrypted, "database").of(full_name(path)).record_here()?;
    let copy = source.make_copy()?;
    // The only place where plaintext reaches a disk: the copy is what was asked for.
    let lent = copy.lend(true);
    let target = uri(copy.path(), &format!("{AS_COPY}&reserve=0"));
    fill_copy(&source, &sealed_uri, &copy, &target, options, expected, progress)?;
    let order = schema::order(&source.handle)?;
    schema::restore_order(path, &uri(copy.path(), AS_COPY), &order, options)?;
    drop(lent);
    finish_copy(&copy, next_counter(&source.handle)?, source.was_wal)?;

    // SAFETY: the file object of an open connection over the shim; used before it closes.
    let (lower, link) = unsafe { lower_of_open(source.handle.file()?) }.ok_or_else(|| {
        Error::misuse(Subject::File(path.to_owned()), "not an encrypted database")
    })?;
    let header = link.header();
    let file_id = header.as_ref().map_or([0; 16], |header| header.file_id);
    let sector = plain_sector(file_id, &copy)?.encode(page_bytes as u32);
    source.switch(lower, &sector, Laying::of(copy, false)?, progress)?;
    if let Some(header) = header {
        forget(&header, path);
    }
    Ok(())
}

fn finish_copy(copy: &CopyFile, counter: u32, wal: bool) -> Result<(), ConvertError> {
    let io = |error| Error::io(Subject::File(copy.path().to_owned()), error);
    let file = copy.file();
    let mut head = [0; 100];
    file.read_exact_at(&mut head, 0).map_err(io)?;
    set_first_page(&mut head, counter, wal);
    file.write_all_at(&head, 0).map_err(io)?;
    file.sync_all().map_err(io)?;
    sync_directory(copy.path())?;
    Ok(())
}
