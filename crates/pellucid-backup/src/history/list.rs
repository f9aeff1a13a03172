//! What the history knows.

use std::path::PathBuf;

use pellucid::lsn::Lsn;
use pellucid::media::{Description, SetHeader};
use pellucid_host::connection::literal;
use pellucid_host::DatabaseError;

use super::{whole_name, History};
use crate::job::is_file;

/// A backup set of the history.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownSet {
    /// Its identity, in hexadecimal.
    pub set: String,
    /// The database's name; empty where the key was not at hand.
    pub database: String,
    /// Its file, by its whole path; empty where the key was not at hand.
    pub path: String,
    /// What it was called.
    pub name: String,
    /// `D` full, `I` differential, `L` log.
    pub kind: String,
    /// No differential is based on it.
    pub copy_only: bool,
    /// Position on its media.
    pub position: i64,
    /// When it was begun, `2026-11-22 03:00:00.123456`, UTC.
    pub begun: String,
    /// When it was finished.
    pub finished: String,
    /// When it expires; empty for never.
    pub expires: String,
    /// How long it took.
    pub seconds: f64,
    /// Bytes of its pages.
    pub content_bytes: u64,
    /// Bytes on media.
    pub stored_bytes: u64,
    /// How it is sealed; empty if it is not.
    pub algorithm: String,
    /// Who can open it, as `certificate nightly`.
    pub under: String,
    /// Pages are missing.
    pub damaged: bool,
    /// The full set a differential is based on.
    pub base: String,
    /// Its files, first copies first.
    pub files: Vec<String>,
    /// When another backup took the place of one of its files, so that it cannot be restored from them; empty if it can.
    pub gone: String,
    /// The set that did, in hexadecimal.
    pub gone_for: String,
    /// The recovery fork of its chain of log backups, in hexadecimal; empty without one.
    pub fork: String,
    /// Behind it a log set goes on, or the logs behind another set begin.
    pub first: Lsn,
    /// The last commit of a log set, or the moment that another set has.
    pub last: Lsn,
}

/// A restore of the history.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownRestore {
    /// When, UTC.
    pub at: String,
    /// The database that was made.
    pub database: String,
    /// Where.
    pub path: String,
    /// `D` full, `I` differential, `L` up to a commit of a log.
    pub kind: String,
    /// Whether something was there before.
    pub replaced: bool,
    /// The set, in hexadecimal; empty if it is not known any more.
    pub set: String,
    /// Who.
    pub user: String,
    /// How long it took.
    pub seconds: f64,
    /// Bytes of the database.
    pub bytes: u64,
}

const SETS: &str = "SELECT backup_set_uuid, database_name, s.name, type, is_copy_only, position, backup_start_date, \
    backup_finish_date, coalesce(expiration_date, ''), \
    (julianday(backup_finish_date) - julianday(backup_start_date)) * 86400000000, backup_size, \
    compressed_backup_size, coalesce(key_algorithm, ''), \
    coalesce((SELECT group_concat(trim(e.kind || ' ' || e.name), ', ') FROM pellucid_encryptor e \
    WHERE e.backup_set_id = s.backup_set_id), ''), is_damaged, coalesce(differential_base_guid, ''), \
    coalesce((SELECT group_concat(physical_device_name, char(10)) FROM (SELECT physical_device_name FROM \
    backupmediafamily f WHERE f.media_set_id = s.media_set_id ORDER BY mirror, family_sequence_number)), ''), \
    coalesce(gone_date, ''), coalesce(gone_for, ''), \
    coalesce((SELECT physical_name FROM backupfile f WHERE f.backup_set_id = s.backup_set_id AND file_number = 1), ''), \
    coalesce((SELECT fork FROM pellucid_log l WHERE l.backup_set_uuid = s.backup_set_uuid), ''), \
    coalesce(CAST(first_lsn AS TEXT), ''), coalesce(CAST(last_lsn AS TEXT), '') \
    FROM backupset s LEFT JOIN pellucid_gone USING(backup_set_id)";

impl History {
    /// The backup sets, oldest first; of one database if it is named.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn sets(&self, database: Option<&str>) -> Result<Vec<KnownSet>, DatabaseError> {
        let of = database
            .map_or(String::new(), |name| format!(" WHERE database_name = {}", literal(name)));
        self.read_sets(&format!("{of} ORDER BY backup_start_date, backup_set_id"))
    }

    /// The sets that a certificate opens, and nothing else of the keyring's does.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn sets_under(&self, thumbprint: &[u8; 32]) -> Result<Vec<KnownSet>, DatabaseError> {
        let print = pellucid::hash::hex(thumbprint);
        self.read_sets(&format!(
            " WHERE EXISTS (SELECT 1 FROM pellucid_encryptor e WHERE e.backup_set_id = s.backup_set_id AND \
             e.thumbprint = '{print}') AND NOT EXISTS (SELECT 1 FROM pellucid_encryptor e WHERE \
             e.backup_set_id = s.backup_set_id AND e.thumbprint IS NOT '{print}') ORDER BY backup_start_date"
        ))
    }

    /// The set that this instance wrote, and whose manifest has that hash; none if it is not known, or something took its place.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn own_set(&self, manifest: &[u8; 32]) -> Result<Option<KnownSet>, DatabaseError> {
        let sets = self.read_sets(&format!(
            " WHERE backup_set_uuid = (SELECT backup_set_uuid FROM pellucid_manifest WHERE manifest = '{}' AND is_own)",
            pellucid::hash::hex(manifest)
        ))?;
        Ok(sets.into_iter().find(|set| set.gone.is_empty()))
    }

    pub(super) fn read_sets(&self, clause: &str) -> Result<Vec<KnownSet>, DatabaseError> {
        let mut sets = Vec::new();
        self.handle.rows(&format!("{SETS}{clause}"), |row| {
            let count = |column| u64::try_from(row.number(column)).unwrap_or(0);
            sets.push(KnownSet {
                set: row.text(0),
                database: row.text(1),
                name: row.text(2),
                kind: row.text(3),
                copy_only: row.number(4) != 0,
                position: row.number(5),
                begun: row.text(6),
                finished: row.text(7),
                expires: row.text(8),
                seconds: count(9) as f64 / 1e6,
                content_bytes: count(10),
                stored_bytes: count(11),
                algorithm: row.text(12),
                under: row.text(13),
                damaged: row.number(14) != 0,
                base: row.text(15),
                files: row.text(16).lines().map(str::to_owned).collect(),
                gone: row.text(17),
                gone_for: row.text(18),
                path: row.text(19),
                fork: row.text(20),
                first: Lsn::parse(&row.text(21)).unwrap_or_default(),
                last: Lsn::parse(&row.text(22)).unwrap_or_default(),
            });
        })?;
        Ok(sets)
    }

    /// The restores, oldest first; of one database if it is named.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn restores(&self, database: Option<&str>) -> Result<Vec<KnownRestore>, DatabaseError> {
        let of = database.map_or(String::new(), |name| {
            format!(" WHERE destination_database_name = {}", literal(name))
        });
        let mut restores = Vec::new();
        let query = format!(
            "SELECT restore_date, destination_database_name, f.destination_phys_name, restore_type, replace, \
             coalesce(b.backup_set_uuid, ''), r.user_name, CAST(o.seconds * 1000000 AS INTEGER), o.bytes \
             FROM restorehistory r LEFT JOIN restorefile f USING(restore_history_id) LEFT JOIN pellucid_restore o \
             USING(restore_history_id) LEFT JOIN backupset b USING(backup_set_id){of} ORDER BY restore_history_id"
        );
        self.handle.rows(&query, |row| {
            let count = |column| u64::try_from(row.number(column)).unwrap_or(0);
            restores.push(KnownRestore {
                at: row.text(0),
                database: row.text(1),
                path: row.text(2),
                kind: row.text(3),
                replaced: row.number(4) != 0,
                set: row.text(5),
                user: row.text(6),
                seconds: count(7) as f64 / 1e6,
                bytes: count(8),
            });
        })?;
        Ok(restores)
    }
}

/// What the history knows of where a set comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownOf {
    /// The last set under a name of its media is sealed.
    pub media_are_sealed: bool,
    /// The last set of a database at its path is; none if there is none.
    pub path_is_sealed: Option<bool>,
    /// The last set of a database of its name is.
    pub name_is_sealed: bool,
    /// It is a set in clear that is known.
    pub is_own: bool,
}

impl History {
    /// The names of files of media, and those that the history has for the same files: by way of `..` or of a link they
    /// are what they are.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn names_of(&self, media: &[PathBuf]) -> Result<Vec<String>, DatabaseError> {
        let mut names: Vec<_> =
            media.iter().map(|path| whole_name(path).display().to_string()).collect();
        let is_one = |path: &&PathBuf| is_file(path);
        let files: Vec<_> =
            media.iter().filter(is_one).filter_map(|path| path.canonicalize().ok()).collect();
        let query = "SELECT DISTINCT physical_device_name FROM backupmediafamily";
        self.handle.rows(query, |row| {
            let known = row.text(0);
            let path = PathBuf::from(&known);
            if is_file(&path) && path.canonicalize().is_ok_and(|path| files.contains(&path)) {
                names.push(known);
            }
        })?;
        Ok(names)
    }

    /// What is known of a set's origin. Sets that were overwritten are none.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn known_of(
        &self,
        set: &SetHeader,
        said: &Description,
        media: &[String],
    ) -> Result<KnownOf, DatabaseError> {
        let last = |condition: &str| {
            self.find(&format!(
                "SELECT key_algorithm IS NOT NULL FROM backupset s WHERE {condition} AND backup_set_id NOT IN (SELECT \
                 backup_set_id FROM pellucid_gone) ORDER BY backup_set_id DESC LIMIT 1"
            ))
        };
        let names: Vec<_> = media.iter().map(|name| literal(name)).collect();
        let of_media = format!(
            "media_set_id IN (SELECT media_set_id FROM backupmediafamily WHERE physical_device_name IN ({}))",
            names.join(", ")
        );
        let of_path = format!(
            "EXISTS (SELECT 1 FROM backupfile f WHERE f.backup_set_id = s.backup_set_id AND file_number = 1 AND \
             physical_name = {})",
            literal(&said.path)
        );
        let own = format!("backup_set_uuid = '{}'", pellucid::hash::hex(&set.set));
        Ok(KnownOf {
            media_are_sealed: last(&of_media)? == Some(1),
            path_is_sealed: last(&of_path)?.map(|is_sealed| is_sealed == 1),
            name_is_sealed: last(&format!("database_name = {}", literal(&said.database)))?
                == Some(1),
            is_own: last(&own)? == Some(0),
        })
    }
}
