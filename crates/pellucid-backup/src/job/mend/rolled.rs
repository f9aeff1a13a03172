//! Damaged pages of a database with a chain of log backups: put back, and rolled forward to its present moment.
//!
//! The logs have every version of a page, so the others need no comparison. They have to lead to the very commit that the
//! database is at, while nobody can make another one.

use std::collections::BTreeMap;
use std::path::Path;

use pellucid::lsn::Lsn;
use pellucid::{Error, Subject};
use pellucid_engine::inspect::{inspect, Kind as Found};
use pellucid_engine::log_chain;
use pellucid_files::paths::full_name;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::{ffi, DatabaseError};
use pellucid_keyring::{Action, Event};
use pellucid_vfs::opened;
use pellucid_vfs::seal_request::Credentials;

use super::super::chain::Chain;
use super::super::clear::{refuse_chain, Believe};
use super::super::point::Point;
use super::super::replace::lock_exclusive;
use super::super::restore::From;
use super::super::standing::{standing_of_log, standings};
use super::{failed, refuse, write, Mended, Mending};
use crate::restore::LogSet;

/// Whether the database at `to` has a chain, by which its pages are rolled forward.
pub(super) fn has_chain(to: &Path) -> bool {
    matches!(inspect(to).map(|found| found.kind), Ok(Found::Sealed(sealed)) if log_chain::chain_of(&sealed.header).is_some())
}

/// Puts the pages back as they are at the last commit of the database.
pub(super) fn roll_forward(
    job: &Mending,
    to: &Path,
    pages: &[u32],
    credentials: &Credentials,
) -> Result<Mended, DatabaseError> {
    let believe =
        Believe { clear: job.allow_clear, unsigned: job.allow_unsigned, differential: false };
    let from = From::of_point(&job.media, &[], &Point::Last, credentials)?;
    let (media, base) = (from.media(), from.base());
    let chain = Chain::open_with(media, base, from.position(), credentials, believe)?;
    let header = chain.header();
    let logs = from.logs(credentials, header.page_size)?;
    let files = from.files_of_sets();
    refuse_chain(&chain, files, Some(to), believe)?;
    let mut told = standings(&chain, [media, base], files, Some(to), believe)?;
    for ((set, _), on) in logs.iter().zip(from.places_of_logs()) {
        told.extend(standing_of_log(set, &chain, on, Some(to), believe)?);
    }
    let place = header.version2.and_then(|own| own.chain);
    let (fork, last) = place.map_or(([0; 16], Lsn::NONE), |place| (place.fork, place.last));
    let (reached, count) = from.reached();
    let (reached, count) = (reached.unwrap_or(last), count.unwrap_or(header.pages));

    let parameters = uri(to, "vfs=pellucid&require=container");
    let handle = Handle::open(to, &parameters, ffi::OPEN_READWRITE)?;
    // No commit comes from here on.
    handle
        .begin("BEGIN EXCLUSIVE", job.timeout)
        .map_err(|error| pellucid_engine::header_change::in_use(to, error))?;
    let (_, container) = opened::sealed(&handle)?.ok_or_else(|| not_of_them(to))?;
    let present = log_chain::hand_out(to, &handle)?;
    if container.chain() != Some(fork) {
        return Err(not_of_them(to).into());
    }
    if present != Some(reached) {
        let present = present.unwrap_or(Lsn::NONE);
        return Err(refuse(
            to,
            &format!(
                "it is at LSN {present}, and these log backups lead to LSN {reached}: take a log backup of it, and name all since \
                 the full one"
            ),
        ));
    }
    if let Some(beyond) = pages.iter().find(|page| **page > count) {
        return Err(refuse(to, &format!("it has no page {beyond}")));
    }
    let mut content = BTreeMap::new();
    for (set, commits) in &logs {
        LogSet::open(set)?.apply(*commits, &mut |number, page| {
            if pages.binary_search(&number).is_ok() {
                content.insert(number, page.to_vec());
            }
            Ok(())
        })?;
    }
    for number in pages.iter().filter(|number| **number <= header.pages) {
        if !content.contains_key(number) {
            content.insert(*number, chain.page(*number)?);
        }
    }
    Event::new(Action::Restored, "pages of a database").of(full_name(to)).record_here()?;
    let lower = opened::on_disk(&handle)?;
    lock_exclusive(lower, to, job.timeout)?;
    let keys = container.keys().map_err(|code| failed(to, code))?;
    let zeros = vec![0; header.page_size as usize];
    for number in pages {
        // No commit has written what is missing: SQLite leaves such gaps.
        write(lower, Some(&keys), *number, content.get(number).unwrap_or(&zeros), to)?;
    }
    lower.sync(ffi::SYNC_NORMAL).map_err(|code| failed(to, code))?;
    handle.run("ROLLBACK")?;
    Ok(Mended { pages: pages.to_vec(), told })
}

fn not_of_them(to: &Path) -> Error {
    Error::misuse(
        Subject::File(to.to_owned()),
        "it is of another recovery fork than these backups, so that its pages are none of theirs",
    )
}
