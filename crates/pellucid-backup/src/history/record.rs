//! What is written into the history: backups that were made or found, and restores.

use std::path::{Path, PathBuf};

use pellucid::hash::hex;
use pellucid::media::{Compression, Description, Kind, Manifest, MediaHeader, SetHeader};
use pellucid::protector::Protector;
use pellucid::Algorithm;
use pellucid_host::connection::literal;
use pellucid_host::DatabaseError;

use super::found::{Change, Origin};
use super::logs::Place;
use super::{hex_of, time_of, History, Link};
use crate::job::{is_file, STDIO};
use crate::restore::{Family, Media};

/// SQL Server's number for a file on disk.
const DEVICE_DISK: u8 = 2;

/// A file of a media set.
#[derive(Debug, Clone)]
pub struct FamilyFile {
    /// Which family, from 1.
    pub family: u16,
    /// Which copy of it, from 0.
    pub mirror: u8,
    /// Where it is.
    pub path: PathBuf,
}

/// A backup set and where it lies.
#[derive(Debug)]
pub struct SetRecord<'a> {
    /// The header of its media.
    pub media: &'a MediaHeader,
    /// Its own header.
    pub set: &'a SetHeader,
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// What it is called; empty where the key was not at hand.
    pub description: &'a Description,
    /// Its files.
    pub files: &'a [FamilyFile],
    /// Files that were there before, and whose content it has replaced.
    pub replaced: &'a [PathBuf],
    /// Its manifest's hash, and who made it.
    pub link: Link,
}

/// A restore that was done.
#[derive(Debug, Clone)]
pub struct RestoreRecord {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// The sets it needed: the last one is what was restored.
    pub sets: Vec<[u8; 16]>,
    /// What the last one was.
    pub kind: Kind,
    /// The database.
    pub to: PathBuf,
    /// Whether something was there before.
    pub replaced: bool,
    /// How many families it was read from.
    pub devices: u16,
    /// How long it took.
    pub seconds: f64,
    /// Bytes of the database.
    pub bytes: u64,
}

/// A file's whole path; what is no file's name is whole.
pub fn whole_name(name: &Path) -> PathBuf {
    let whole = std::path::absolute(name).ok().filter(|_| is_file(name));
    whole.unwrap_or_else(|| name.to_owned())
}

/// Where the files of media are.
pub fn files_of(media: &Media) -> Vec<FamilyFile> {
    let of = |family: &Family| FamilyFile {
        family: family.header.family,
        mirror: family.header.mirror,
        path: whole_name(&family.source.name()),
    };
    media.families().iter().flatten().map(of).collect()
}

impl History {
    /// Writes a set down, and whether it was: what is found changes nothing that is believed more. What is known of the same
    /// set is written anew.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn record_set(&self, record: &SetRecord<'_>) -> Result<bool, DatabaseError> {
        self.transaction(|| {
            let (change, is_placed) = self.change_of(record)?;
            if change == Change::Nothing {
                return Ok(false);
            }
            let (media, is_there) = self.record_media(record, is_placed)?;
            if change >= Change::Set {
                self.insert_set(record, media)?;
            }
            if change == Change::Link {
                self.record_link(record)?;
            }
            self.settle_one(&hex(&record.set.set))?;
            if is_there {
                self.mark_there(record)?;
            }
            self.mark_gone(record, media)?;
            Ok(true)
        })
    }

    /// A set that was overwritten has turned up again.
    fn mark_there(&self, record: &SetRecord<'_>) -> Result<(), DatabaseError> {
        self.handle.run(&format!(
            "DELETE FROM pellucid_gone WHERE backup_set_id = (SELECT backup_set_id FROM backupset WHERE backup_set_uuid = \
             '{}')",
            hex(&record.set.set)
        ))
    }

    /// Marks the sets that lay in files that this one has replaced, if no other copy of the file is known.
    fn mark_gone(&self, record: &SetRecord<'_>, media: i64) -> Result<(), DatabaseError> {
        if record.replaced.is_empty() {
            return Ok(());
        }
        let set = format!("'{}'", hex(&record.set.set));
        let paths: Vec<_> = record
            .replaced
            .iter()
            .map(|path| literal(&whole_name(path).display().to_string()))
            .collect();
        let replaced = format!("physical_device_name IN ({})", paths.join(", "));
        // Of other media: a set is gone when of one family every copy is.
        let lost = format!(
            "SELECT media_set_id FROM backupmediafamily WHERE media_set_id <> {media} GROUP BY media_set_id, \
             family_sequence_number HAVING min({replaced})"
        );
        self.handle.run(&format!(
            "INSERT OR IGNORE INTO pellucid_gone SELECT backup_set_id, {}, {set} FROM backupset WHERE backup_set_uuid \
             <> {set} AND (media_set_id = {media} OR media_set_id IN ({lost}))",
            time_of(record.manifest.finished)
        ))?;
        // Where there is another copy, that is where the set is.
        self.handle.run(&format!(
            "DELETE FROM backupmediafamily WHERE media_set_id <> {media} AND {replaced} AND media_set_id NOT IN ({lost})"
        ))
    }

    /// The media's number, and whether one of the files is now known as where they are. None is added unless it is believed
    /// that they are there.
    fn record_media(
        &self,
        record: &SetRecord<'_>,
        is_placed: bool,
    ) -> Result<(i64, bool), DatabaseError> {
        let media = record.media;
        let uuid = hex(&media.media_set);
        self.handle.run(&format!(
            "INSERT INTO backupmediaset(media_uuid, media_family_count, name, description, software_name, \
             software_vendor_id, MTF_major_version, mirror_count, is_password_protected, is_compressed, is_encrypted)
             VALUES ('{uuid}', {}, {}, {}, 'Pellucid', NULL, 1, {}, 0, {}, {}) ON CONFLICT(media_uuid) DO NOTHING",
            media.families,
            literal(&media.name),
            literal(&media.description),
            media.mirrors,
            u8::from(media.compressed),
            u8::from(media.encrypted),
        ))?;
        let query = format!("SELECT media_set_id FROM backupmediaset WHERE media_uuid = '{uuid}'");
        let id = self.find(&query)?.unwrap_or(0);
        let mut is_there = false;
        for file in record.files {
            let path = literal(&file.path.display().to_string());
            let place = format!("{id}, {}, '{uuid}-{}'", file.family, file.family);
            let is_taken = record.link.origin == Origin::Own || self.gives_way(id, file)?;
            // Where it came in from is no place to find it: one that is known is better.
            let or = match is_taken && file.path != Path::new(STDIO) {
                true => "REPLACE",
                false => "IGNORE",
            };
            if is_placed {
                self.handle.run(&format!(
                    "INSERT OR {or} INTO backupmediafamily VALUES ({place}, 1, NULL, {path}, {DEVICE_DISK}, 512, {})",
                    file.mirror,
                ))?;
            }
            let known = format!(
                "SELECT count(*) FROM backupmediafamily WHERE media_set_id = {id} AND family_sequence_number = {} AND \
                 mirror = {} AND physical_device_name = {path}",
                file.family, file.mirror,
            );
            is_there |= self.find(&known)? == Some(1);
        }
        Ok((id, is_there))
    }

    fn insert_set(&self, record: &SetRecord<'_>, media: i64) -> Result<(), DatabaseError> {
        let (set, manifest, said) = (record.set, record.manifest, record.description);
        let uuid = hex(&set.set);
        let query = format!("SELECT backup_set_id FROM backupset WHERE backup_set_uuid = '{uuid}'");
        // One that is known keeps its number: restores name it.
        let known = self.find(&query)?.map_or("NULL".to_owned(), |id| id.to_string());
        let protectors = set.protectors().unwrap_or_default();
        let thumbprint = protectors.iter().find_map(thumbprint);
        let of_certificate = protectors.iter().find_map(|protector| match protector {
            Protector::Certificate(own) => Some(own.encryptor_type()),
            _ => None,
        });
        let kind = match set.algorithm {
            None => "NULL".to_owned(),
            Some(_) => literal(of_certificate.unwrap_or("PASSWORD")),
        };
        let compression = match set.compression {
            Compression::None => "NULL".to_owned(),
            other => literal(&other.name().to_uppercase()),
        };
        let server = &said.server;
        let created = match server.created.as_str() {
            "" => "NULL".to_owned(),
            created => literal(created),
        };
        let level = match server.compatibility_level {
            0 => "NULL".to_owned(),
            level => level.to_string(),
        };
        let place = Place::of(set);
        let model = match server.recovery_model.as_str() {
            // Only another model has a chain.
            "" if place.has_chain => literal("FULL"),
            "" => literal("SIMPLE"),
            model => literal(model),
        };
        let logical = server.files.first().map_or(&said.database, |(name, _)| name);
        let is_log = set.kind == Kind::Log;
        self.handle.run(&format!(
            "INSERT OR REPLACE INTO backupset VALUES ({known}, '{uuid}', {media}, {}, {}, {}, {}, {}, {}, {}, {}, {}, \
             {created}, {}, {}, '{}', {level}, {}, {}, {}, {}, {model}, 1, {}, {}, {}, {}, {}, {}, {}, {}, {kind}, NULL, \
             {compression})",
            set.position,
            time_of(set.expires.saturating_mul(1_000_000)),
            literal(&said.name),
            literal(&said.description),
            literal(&said.user),
            place.first,
            place.last,
            place.checkpoint,
            place.full,
            time_of(set.begun),
            time_of(manifest.finished),
            letter(set.kind),
            manifest.content_bytes,
            literal(&said.database),
            literal(&said.machine),
            literal(&said.machine),
            u8::from(manifest.damaged),
            place.begins,
            u8::from(set.copy_only),
            place.base,
            hex_of(&set.base),
            manifest.stored_bytes,
            set.algorithm.map_or("NULL".to_owned(), |algorithm| literal(Algorithm::name(algorithm))),
            thumbprint.map_or("NULL".to_owned(), |print| format!("'{print}'")),
        ))?;
        let id = self.find(&query)?.unwrap_or(0);
        self.handle.run(&format!(
            "INSERT OR REPLACE INTO backupfile VALUES ({id}, 'PRIMARY', {}, 1, {}, 'D', {}, {}, NULL, {}, 0, NULL, \
             NULL, NULL, {}, 0, 1)",
            set.page_size,
            if is_log { 0 } else { manifest.pages },
            u64::from(set.pages) * u64::from(set.page_size),
            literal(logical),
            literal(&said.path),
            if is_log { 0 } else { manifest.content_bytes },
        ))?;
        if is_log {
            let names = server.files.get(1).map(|(name, _)| name.clone());
            let logical = names.unwrap_or_else(|| format!("{}_log", said.database));
            self.handle.run(&format!(
                "INSERT OR REPLACE INTO backupfile VALUES ({id}, NULL, {}, 2, {}, 'L', {}, {}, NULL, NULL, 0, NULL, NULL, \
                 NULL, {}, 0, 1)",
                set.page_size,
                manifest.pages,
                manifest.content_bytes,
                literal(&logical),
                manifest.content_bytes,
            ))?;
        }
        self.record_place(set)?;
        self.handle.run(&format!("DELETE FROM pellucid_encryptor WHERE backup_set_id = {id}"))?;
        for (number, protector) in (1..).zip(&protectors) {
            let name = match protector {
                Protector::Certificate(own) => own.name(),
                _ => "",
            };
            self.handle.run(&format!(
                "INSERT INTO pellucid_encryptor VALUES ({id}, {number}, {}, {}, {})",
                literal(protector.kind_name()),
                literal(name),
                thumbprint_of(protector),
            ))?;
        }
        Ok(())
    }

    /// Writes a restore down.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn record_restore(&self, record: &RestoreRecord) -> Result<(), DatabaseError> {
        let set = record.sets.last().map_or("NULL".to_owned(), |set| {
            format!("(SELECT backup_set_id FROM backupset WHERE backup_set_uuid = '{}')", hex(set))
        });
        let name = record.to.file_stem().unwrap_or_default().to_string_lossy();
        let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
        self.transaction(|| {
            self.handle.run(&format!(
                "INSERT INTO restorehistory VALUES (NULL, {}, {}, {}, {set}, '{}', {}, 1, 0, NULL, {}, NULL, NULL)",
                time_of(record.at),
                literal(&name),
                literal(&user),
                letter(record.kind),
                u8::from(record.replaced),
                record.devices,
            ))?;
            let id = self.find("SELECT max(restore_history_id) FROM restorehistory")?.unwrap_or(0);
            let to = literal(&record.to.display().to_string());
            self.handle.run(&format!("INSERT INTO restorefile VALUES ({id}, 1, NULL, {to})"))?;
            self.handle.run(&format!(
                "INSERT INTO pellucid_restore VALUES ({id}, {}, {})",
                record.seconds, record.bytes
            ))
        })
    }
}

/// SQL Server's letter of a backup.
fn letter(kind: Kind) -> char {
    match kind {
        Kind::Full => 'D',
        Kind::Log => 'L',
        Kind::Differential => 'I',
    }
}

fn thumbprint(protector: &Protector) -> Option<String> {
    match protector {
        Protector::Certificate(own) => Some(hex(own.thumbprint())),
        _ => None,
    }
}

fn thumbprint_of(protector: &Protector) -> String {
    thumbprint(protector).map_or("NULL".to_owned(), |print| format!("'{print}'"))
}
