//! What of a set that was found on media goes into the history, and what of it is left as it is.
//!
//! Anybody can put a set on media that says it is another one. So nothing that is found changes what this instance wrote, and
//! what nobody proved changes nothing that is known.

use std::path::{Path, PathBuf};

use pellucid::hash::hex;
use pellucid::media::Description;
use pellucid::protector::KeySource;
use pellucid::{Error, Result};
use pellucid_host::connection::literal;
use pellucid_host::DatabaseError;

use super::record::SetRecord;
use super::{FamilyFile, History, Link};
use crate::job::{is_file, url_of};
use crate::restore::{Media, OpenSet};

/// Who vouches for a set of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This instance wrote it just now.
    Own,
    /// It was opened with its key, and its chunks are those that its manifest names.
    Proven,
    /// Nobody: it is in clear, or its key is not at hand.
    Seen,
}

impl Origin {
    /// As `pellucid_manifest` has it.
    pub(super) fn is_own(self) -> &'static str {
        match self {
            Self::Own => "1",
            Self::Proven => "0",
            Self::Seen => "NULL",
        }
    }
}

/// Opens a set on media if its key is at hand. Whoever calls this has compared its chunks with its roots
/// ([`crate::restore::verify_checksums`]).
///
/// # Errors
/// [`Error::Unauthentic`] or [`Error::Corrupt`] for one that is not what somebody with its key has written.
pub fn look_at(
    media: &Media,
    position: u32,
    keys: &dyn KeySource,
) -> Result<(Option<Description>, Link)> {
    let families = media.set(position)?;
    let first = families.first().and_then(|copies| copies.first());
    let hash = first.map(|(_, set)| pellucid::media::Manifest::hash(&set.manifest_bytes));
    let seen = Link::seen(hash.unwrap_or_default());
    let header = first.map(|(_, set)| &set.header).filter(|header| header.algorithm.is_none());
    if let Some(header) = header {
        return Ok((header.described(None).ok(), seen));
    }
    // Whether it has to be signed is asked by whoever restores it.
    match OpenSet::open_as_it_is(media, position, keys) {
        Ok(set) => Ok((Some(set.description().clone()), Link::proven(set.hash(), set.signer()))),
        Err(
            Error::MissingKey { .. }
            | Error::Message { .. }
            | Error::Unsupported { .. }
            | Error::LimitReached { .. },
        ) => Ok((None, seen)),
        Err(error) => Err(error),
    }
}

/// What a set may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// Nothing: one of its identity is believed more.
    Nothing,
    /// Where it lies.
    Place,
    /// And what it is.
    Set,
    /// And what is known of its manifest.
    Link,
}

impl History {
    /// What a set may change of what is known, and whether it is believed where its media lie.
    pub(super) fn change_of(
        &self,
        record: &SetRecord<'_>,
    ) -> std::result::Result<(Change, bool), DatabaseError> {
        let (uuid, manifest) = (hex(&record.set.set), hex(&record.link.manifest));
        let origin = record.link.origin;
        if origin == Origin::Own {
            return Ok((Change::Link, true));
        }
        let is_proven = origin == Origin::Proven;
        let mut link = None;
        self.handle.rows(
            &format!(
                "SELECT is_own IS NOT NULL, manifest = '{manifest}' FROM pellucid_manifest WHERE backup_set_uuid = '{uuid}'"
            ),
            |row| link = Some((row.number(0) != 0, row.number(1) != 0)),
        )?;
        let set = format!("SELECT count(*) FROM backupset WHERE backup_set_uuid = '{uuid}'");
        let is_known = self.find(&set)? == Some(1);
        let change = match link {
            // One that is known has been since before manifests were kept.
            None if is_proven || !is_known => Change::Link,
            None => Change::Nothing,
            Some((false, _)) if is_proven => Change::Link,
            Some((_, true)) if is_proven || !is_known => Change::Set,
            Some((_, true)) => Change::Place,
            Some((_, false)) => Change::Nothing,
        };
        let is_placed = is_proven || link == Some((true, true)) || !self.believes_media(record)?;
        Ok((change, is_placed))
    }

    /// Whether any set of its media is known that not just anybody can have made.
    fn believes_media(&self, record: &SetRecord<'_>) -> std::result::Result<bool, DatabaseError> {
        let query = format!(
            "SELECT count(*) FROM backupset JOIN backupmediaset USING(media_set_id) LEFT JOIN pellucid_manifest p \
             USING(backup_set_uuid) WHERE media_uuid = '{}' AND (p.manifest IS NULL OR is_own IS NOT NULL)",
            hex(&record.media.media_set)
        );
        Ok(self.find(&query)?.unwrap_or(0) > 0)
    }

    /// Whether the name that is known of a file of media gives way to one where it was found. A copy that somebody restored
    /// from elsewhere takes nothing from the file that was made.
    pub(super) fn gives_way(
        &self,
        media: i64,
        file: &FamilyFile,
    ) -> std::result::Result<bool, DatabaseError> {
        let mut known = None;
        let query = format!(
            "SELECT physical_device_name FROM backupmediafamily WHERE media_set_id = {media} AND family_sequence_number = \
             {} AND mirror = {}",
            file.family, file.mirror
        );
        self.handle.rows(&query, |row| known = Some(row.text(0)))?;
        let Some(known) = known else { return Ok(true) };
        let path = PathBuf::from(&known);
        // Where standard output went, and what was kept nowhere, is no place to find it.
        let is_place = |path: &Path| is_file(path) || url_of(path).is_some();
        if !is_place(&path) || !is_place(&file.path) || is_gone(&path) {
            return Ok(is_place(&file.path));
        }
        // By now it is the name of other media of this instance's own.
        let newer = format!(
            "SELECT count(*) FROM backupmediafamily f JOIN backupset s USING(media_set_id) JOIN pellucid_manifest m \
             USING(backup_set_uuid) WHERE physical_device_name = {} AND f.media_set_id > {media} AND is_own",
            literal(&known)
        );
        Ok(self.find(&newer)?.unwrap_or(0) > 0)
    }
}

/// Whether a name of a file has none. What a store has is not asked.
fn is_gone(path: &Path) -> bool {
    let is_missing = |error: std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    is_file(path) && pellucid_files::paths::look(path).is_err_and(is_missing)
}
