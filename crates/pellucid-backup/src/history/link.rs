//! The chain of a database's backup sets, as the history knows it: the manifest of each set, the one before it, who signed
//! it, and whether this instance wrote it.
//!
//! A set of this instance's own is known by its manifest's hash, whatever was backed up beside it at the same time. What
//! was learned from media does not count as the instance's own, and what nothing proved counts for nothing here.

use std::path::{Path, PathBuf};

use pellucid::hash::hex;
use pellucid::media::{Description, SetHeader};
use pellucid_host::connection::literal;
use pellucid_host::DatabaseError;

use super::begun::IS_BEGUN;
use super::found::Origin;
use super::record::SetRecord;
use super::{hex_of, whole_name, History};
use crate::restore::Signer;

/// What joins a set to others, and to who made it.
#[derive(Debug, Clone)]
pub struct Link {
    /// The hash of its manifest.
    pub manifest: [u8; 32],
    /// The thumbprint of the certificate that signed it, if that was checked.
    pub signer: Option<[u8; 32]>,
    /// Who vouches for it.
    pub origin: Origin,
}

impl Link {
    /// Of a set that was found on media and opened with its key.
    pub fn proven(manifest: [u8; 32], signer: &Signer) -> Self {
        let signer = match signer {
            Signer::Certificate { thumbprint, .. } => Some(*thumbprint),
            _ => None,
        };
        Self { manifest, signer, origin: Origin::Proven }
    }

    /// Of a set that anybody can have made: in clear, or without its key at hand.
    pub fn seen(manifest: [u8; 32]) -> Self {
        Self { manifest, signer: None, origin: Origin::Seen }
    }
}

/// The chain that a set belongs to: that of its database, by the file id of a sealed one, else by its path. None where the
/// key that would tell was not at hand.
pub fn chain_of(set: &SetHeader, said: &Description) -> Option<String> {
    chain_at(set.source, &said.path)
}

/// The chain of a database by its file id, zeros for one that is not sealed, and its path.
pub fn chain_at(source: [u8; 16], path: &str) -> Option<String> {
    match (source != [0; 16], path.is_empty()) {
        (true, _) => Some(hex(&source)),
        (false, false) => Some(format!("path {path}")),
        (false, true) => None,
    }
}

/// A number for a set that nothing proves.
const SEEN: i64 = 4;

/// What is known of a set's manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownManifest {
    /// Nothing: the set is not known, or nothing proved what is.
    Unknown,
    /// The set is known, from before manifests were kept.
    Former,
    /// It is the one that this instance wrote.
    Own,
    /// This instance wrote another one.
    NotOwn,
    /// It is the one that was found before.
    Found,
    /// Another one was found before.
    NotFound,
}

impl History {
    /// Writes the link down. It takes the place of one that is known.
    pub(super) fn record_link(&self, record: &SetRecord<'_>) -> Result<(), DatabaseError> {
        let (set, link) = (record.set, &record.link);
        let chain = chain_of(set, record.description);
        let before = set.version2.map_or([0; 32], |own| own.before);
        self.handle.run(&format!(
            "INSERT OR REPLACE INTO pellucid_manifest VALUES ('{}', {}, '{}', {}, {}, {})",
            hex(&set.set),
            chain.map_or("NULL".to_owned(), |chain| literal(&chain)),
            hex(&link.manifest),
            hex_of(&before),
            link.signer.map_or("NULL".to_owned(), |print| hex_of(&print)),
            link.origin.is_own(),
        ))
    }

    fn one(&self, query: &str) -> Result<Option<String>, DatabaseError> {
        let mut found = None;
        self.handle.rows(query, |row| found = (!row.is_null(0)).then(|| row.text(0)))?;
        Ok(found)
    }

    /// The manifest of the last set of a chain that this instance wrote, and finished.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn last_of_chain(&self, chain: &str) -> Result<Option<[u8; 32]>, DatabaseError> {
        let found = self.one(&format!(
            "SELECT manifest FROM pellucid_manifest WHERE chain = {} AND is_own AND NOT {IS_BEGUN} ORDER BY rowid DESC LIMIT \
             1",
            literal(chain)
        ))?;
        Ok(found.and_then(|digits| bytes_of(&digits)))
    }

    /// What is known of the manifest of a set.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn manifest_of(
        &self,
        set: &[u8; 16],
        manifest: &[u8; 32],
    ) -> Result<KnownManifest, DatabaseError> {
        let uuid = hex(set);
        let known = self.find(&format!(
            "SELECT coalesce(is_own + 2 * (manifest = '{}'), {SEEN}) FROM pellucid_manifest WHERE backup_set_uuid = \
             '{uuid}'",
            hex(manifest)
        ))?;
        Ok(match known {
            Some(3) => KnownManifest::Own,
            Some(1) => KnownManifest::NotOwn,
            Some(2) => KnownManifest::Found,
            Some(SEEN) => KnownManifest::Unknown,
            Some(_) => KnownManifest::NotFound,
            None => {
                let query =
                    format!("SELECT count(*) FROM backupset WHERE backup_set_uuid = '{uuid}'");
                match self.find(&query)? {
                    Some(0) | None => KnownManifest::Unknown,
                    Some(_) => KnownManifest::Former,
                }
            }
        })
    }

    /// Why a set should be signed: the last set that is known of its chain, of the database at a path, or under a name of
    /// media is. Sets count that this instance wrote, and those whose signature was checked; one without a signature that was
    /// begun may not have been finished, and does not.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn expects_signature(
        &self,
        chain: Option<&str>,
        paths: &[&Path],
        media: &[String],
    ) -> Result<Option<&'static str>, DatabaseError> {
        let last = |condition: &str| {
            let signed = self.find(&format!(
                "SELECT m.signer IS NOT NULL FROM pellucid_manifest m LEFT JOIN backupset s USING(backup_set_uuid) WHERE \
                 (is_own OR signer IS NOT NULL) AND NOT (signer IS NULL AND m.{IS_BEGUN}) AND {condition} ORDER BY m.rowid DESC LIMIT 1"
            ))?;
            Ok::<_, DatabaseError>(signed == Some(1))
        };
        if let Some(chain) = chain {
            if last(&format!("chain = {}", literal(chain)))? {
                return Ok(Some("the history knows signed sets of its database"));
            }
        }
        let listed = |names: &mut dyn Iterator<Item = String>| -> String {
            names.map(|name| literal(&name)).collect::<Vec<_>>().join(", ")
        };
        let paths = listed(&mut paths.iter().map(|path| path.display().to_string()));
        if !paths.is_empty()
            && last(&format!(
                "EXISTS (SELECT 1 FROM backupfile f WHERE f.backup_set_id = s.backup_set_id AND file_number = 1 AND \
                 physical_name IN ({paths}))"
            ))?
        {
            return Ok(Some("the history knows signed sets of a database of this path"));
        }
        let media = listed(&mut media.iter().cloned());
        if !media.is_empty()
            && last(&format!(
                "s.backup_set_id NOT IN (SELECT backup_set_id FROM pellucid_gone) AND media_set_id IN (SELECT \
                 media_set_id FROM backupmediafamily WHERE physical_device_name IN ({media}))"
            ))?
        {
            return Ok(Some("the history knows signed sets of this name"));
        }
        Ok(None)
    }

    /// Another set than `set` that goes on behind the same manifest, and that this instance wrote and finished.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn own_behind(
        &self,
        before: &[u8; 32],
        set: &[u8; 16],
    ) -> Result<Option<String>, DatabaseError> {
        self.one(&format!(
            "SELECT backup_set_uuid FROM pellucid_manifest WHERE manifest_before = {} AND is_own AND NOT {IS_BEGUN} AND \
             backup_set_uuid <> '{}' ORDER BY rowid LIMIT 1",
            hex_of(before),
            hex(set)
        ))
    }

    /// Whether any set has this manifest, of which that is proven.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn knows_manifest(&self, manifest: &[u8; 32]) -> Result<bool, DatabaseError> {
        let query = format!(
            "SELECT count(*) FROM pellucid_manifest WHERE manifest = '{}' AND is_own IS NOT NULL",
            hex(manifest)
        );
        Ok(self.find(&query)?.unwrap_or(0) > 0)
    }
}

fn bytes_of(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 2 * bytes.len() || !digits.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Names of media as the history has them.
pub fn names(history: &History, media: &[PathBuf]) -> Vec<String> {
    history.names_of(media).unwrap_or_else(|_| {
        media.iter().map(|path| whole_name(path).display().to_string()).collect()
    })
}
