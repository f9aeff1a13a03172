//! Sets that were begun. A set's manifest is known as this instance's own before the media have it, so that a crash between
//! the media and the history makes no stranger of it.
//!
//! Whether such a set was finished the media tell. Until they have, nothing goes on behind it.

use std::path::PathBuf;

use pellucid::hash::hex;
use pellucid::media::{Description, Manifest, SetHeader};
use pellucid_files::paths;
use pellucid_host::connection::literal;
use pellucid_host::DatabaseError;

use super::{chain_of, hex_of, FamilyFile, History};
use crate::job::{is_file, new_name, open_media};

/// A set that is going to be written.
#[derive(Debug)]
pub struct Begun<'a> {
    /// Its identity.
    pub set: [u8; 16],
    chain: Option<String>,
    /// The hash of the manifest of the set before it; zeros for none.
    before: [u8; 32],
    /// The thumbprint of the certificate that signs it.
    signer: Option<[u8; 32]>,
    /// The files that it is written to.
    files: &'a [FamilyFile],
}

impl<'a> Begun<'a> {
    /// By its header, what it says of itself, the certificate that signs it, and its files.
    pub fn new(
        header: &SetHeader,
        said: &Description,
        signer: Option<[u8; 32]>,
        files: &'a [FamilyFile],
    ) -> Self {
        let before = header.version2.map_or([0; 32], |own| own.before);
        Self { set: header.set, chain: chain_of(header, said), before, signer, files }
    }
}

/// A condition on rows of `pellucid_manifest`.
pub(super) const IS_BEGUN: &str = "backup_set_uuid IN (SELECT backup_set_uuid FROM pellucid_begun)";

impl History {
    /// Writes a set down as begun, with the hash of the manifest that it is about to get.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn begin_set(&self, begun: &Begun<'_>, manifest: [u8; 32]) -> Result<(), DatabaseError> {
        let uuid = hex(&begun.set);
        self.transaction(|| {
            self.handle.run(&format!(
                "INSERT OR REPLACE INTO pellucid_manifest VALUES ('{uuid}', {}, '{}', {}, {}, 1)",
                begun.chain.as_deref().map_or("NULL".to_owned(), literal),
                hex(&manifest),
                hex_of(&begun.before),
                begun.signer.map_or("NULL".to_owned(), |print| hex_of(&print)),
            ))?;
            for (number, file) in (1..).zip(begun.files) {
                self.handle.run(&format!(
                    "INSERT OR REPLACE INTO pellucid_begun VALUES ('{uuid}', {number}, {})",
                    literal(&file.path.display().to_string()),
                ))?;
            }
            Ok(())
        })
    }

    /// Forgets a set that was begun and failed, unless its files have it all the same or cannot tell.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn forget_begun(&self, set: &[u8; 16]) -> Result<(), DatabaseError> {
        let uuid = hex(set);
        let condition = format!("backup_set_uuid = '{uuid}'");
        for (_, manifest) in self.begun(&condition)? {
            let files = self.files_of_begun(&uuid)?;
            if files.iter().all(|path| is_file(path)) && !is_on(&files, &uuid, &manifest) {
                self.transaction(|| {
                    self.handle.run(&format!("DELETE FROM pellucid_manifest WHERE {condition}"))?;
                    self.settle_one(&uuid)
                })?;
            }
        }
        Ok(())
    }

    /// Looks whether sets of a chain that were begun behind its last one were finished. One that its files do not have stays
    /// known as begun: somebody may have moved it.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn settle_begun(&self, chain: &str) -> Result<(), DatabaseError> {
        let chain = literal(chain);
        let condition = format!(
            "chain = {chain} AND rowid > coalesce((SELECT max(rowid) FROM pellucid_manifest WHERE chain = {chain} AND \
             is_own AND NOT {IS_BEGUN}), 0)"
        );
        for (uuid, manifest) in self.begun(&condition)? {
            if is_on(&self.files_of_begun(&uuid)?, &uuid, &manifest) {
                self.settle_one(&uuid)?;
            }
        }
        Ok(())
    }

    /// A set that was begun is finished, or forgotten.
    pub(super) fn settle_one(&self, uuid: &str) -> Result<(), DatabaseError> {
        self.handle.run(&format!("DELETE FROM pellucid_begun WHERE backup_set_uuid = '{uuid}'"))
    }

    /// Identity and manifest of the sets that were begun and that a condition holds for.
    fn begun(&self, condition: &str) -> Result<Vec<(String, String)>, DatabaseError> {
        let mut found = Vec::new();
        let query = format!(
            "SELECT backup_set_uuid, manifest FROM pellucid_manifest WHERE {IS_BEGUN} AND {condition} ORDER BY rowid"
        );
        self.handle.rows(&query, |row| found.push((row.text(0), row.text(1))))?;
        Ok(found)
    }

    fn files_of_begun(&self, uuid: &str) -> Result<Vec<PathBuf>, DatabaseError> {
        let mut files = Vec::new();
        let query = format!(
            "SELECT physical_device_name FROM pellucid_begun WHERE backup_set_uuid = '{uuid}' ORDER BY number"
        );
        self.handle.rows(&query, |row| files.push(PathBuf::from(row.text(0))))?;
        Ok(files)
    }
}

/// Whether files have a set, with this manifest. What cannot be read has none.
fn is_on(files: &[PathBuf], uuid: &str, manifest: &str) -> bool {
    // One that has not got its name lies under another one, and counts.
    let is_there = |path: &&PathBuf| {
        is_file(path) && (paths::is_there(path) || paths::is_there(&new_name(path)))
    };
    let there: Vec<_> = files.iter().filter(is_there).cloned().collect();
    let Ok(media) = open_media(&there) else { return false };
    (1..=media.sets()).any(|position| {
        media.set(position).is_ok_and(|families| {
            families.first().and_then(|copies| copies.first()).is_some_and(|(_, set)| {
                hex(&set.header.set) == uuid
                    && hex(&Manifest::hash(&set.manifest_bytes)) == manifest
            })
        })
    })
}
