//! Decryption: a container becomes a plain database again, in place.

use std::os::unix::fs::FileExt;
use std::path::Path;

use pellucid::sector::SectorZero;
use pellucid::{Error, Subject};
use pellucid_files::paths::{assert_one_name, full_name, resolved};
use pellucid_host::connection::uri;
use pellucid_host::{DatabaseError, Options};
use pellucid_keyring::{Action, Event};
use pellucid_vfs::copy::CopyFile;
use pellucid_vfs::laying::{plain_sector, Laying};
use pellucid_vfs::opened;
use pellucid_vfs::pins::Expectation;
use pellucid_vfs::seal_request::forget;

use crate::convert::encrypt::{next_counter, set_first_page, AS_COPY};
use crate::convert::original::Original;
use crate::convert::switch::{check_space, fill_copy, Source};
use crate::convert::{schema, Progress};

/// Makes a plain database of the sealed one at `path`, in place. Any SQLite reads it afterwards.
///
/// # Errors
/// [`DatabaseError`]. Before the commit point nothing is changed; after it the next connection that
/// may write finishes the work.
pub fn decrypt(
    path: &Path,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<(), DatabaseError> {
    let pins = Expectation::at_all_names(path)?;
    let path = &resolved(path)?;
    let original = Original::hold(path)?;
    assert_one_name(path)?;
    let sealed_uri = uri(path, "vfs=pellucid&require=container");
    let reader = original.look(path, &sealed_uri, options)?;
    let page_bytes = reader.number("PRAGMA page_size")? as u64;
    let expected = reader.number("PRAGMA page_count")?.max(0) as u64 * page_bytes;
    drop(reader);
    check_space(path, expected + expected / 16)?;

    let source = Source::reserve_held(original, path, &sealed_uri, options)?;
    Event::new(Action::Decrypted, "database").of(full_name(path)).record_here()?;
    let copy = source.make_copy()?;
    // This is the only place where plaintext reaches a disk, because the caller asked for a plain
    // database.
    let lent = copy.lend(true);
    let target = uri(copy.path(), &format!("{AS_COPY}&reserve=0"));
    fill_copy(&source, &sealed_uri, &copy, &target, options, expected, progress)?;
    let order = schema::order(&source.handle)?;
    schema::restore_order(path, &uri(copy.path(), AS_COPY), &order, options)?;
    drop(lent);
    finish_copy(&copy, next_counter(&source.handle)?, source.was_wal)?;

    let (lower, container) = opened::sealed(&source.handle)?.ok_or_else(|| {
        Error::misuse(Subject::File(path.to_owned()), "not an encrypted database")
    })?;
    let header = container.header();
    let file_id = header.as_ref().map_or([0; 16], |header| header.file_id);
    let sector = plain_sector(file_id, &copy)?;
    let hash = match &sector {
        SectorZero::LayingPlain { copy_sha256, .. } => Some(*copy_sha256),
        _ => None,
    };
    let sector = sector.encode(page_bytes as u32);
    // Before the file is plain: nothing can be written once the process is killed.
    pins.let_go(hash)?;
    if let Err(error) = source.switch(lower, &sector, Laying::of(copy, false)?, progress) {
        if !source.is_done() {
            // It is still the container that is expected.
            let _ = pins.let_go(None);
        }
        return Err(error);
    }
    if let Some(header) = header {
        forget(&header, path);
    }
    if let Err(error) = pins.release() {
        let what =
            format!("the keyring still knows this path as that of an encrypted database: {error}");
        pellucid_host::code::note(pellucid_host::ffi::OK, path, &what);
    }
    Ok(())
}

fn finish_copy(copy: &CopyFile, counter: u32, wal: bool) -> Result<(), DatabaseError> {
    let io = |error| Error::io(Subject::File(copy.path().to_owned()), error);
    let file = copy.file();
    let mut head = [0; 100];
    file.read_exact_at(&mut head, 0).map_err(io)?;
    set_first_page(&mut head, counter, wal);
    file.write_all_at(&head, 0).map_err(io)?;
    file.sync_all().map_err(io)?;
    Ok(copy.sync_folder()?)
}
