//! The last chain of each database: what it can be restored from stays, however old it is and whatever a clock says.
//!
//! Nightly backups that fail do not tell whoever prunes, and a clock that jumps ahead makes all of them old at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pellucid::hash::hex;
use pellucid::shown::Shown;
use pellucid_host::DatabaseError;

use super::logs::base_of;
use super::{History, KnownSet};
use crate::job::{is_file, open_media};
use crate::restore::Media;

/// A full set, and the differentials of it and the logs behind it that are there.
#[derive(Debug, Default)]
struct Chain {
    /// The sets of it, with when they were written down and begun.
    members: Vec<(String, i64, String)>,
    /// When the full set was; none if the history does not know it, or it is not there.
    full: Option<(i64, String)>,
    /// It is there, with all its pages, and is not just said to be one.
    is_whole: bool,
}

/// What a set is, besides what is told of it.
#[derive(Debug)]
struct Row {
    id: i64,
    media: i64,
    /// Which database it is of: machine and path, and below that the name. Two may be called the same.
    of: [String; 2],
    /// Nobody vouches for it.
    is_seen: bool,
}

/// A number and a date to go by: the greatest is the newest.
type Newest = fn(&Chain) -> (i64, &str);

/// The history's order does not heed clocks, dates do not heed a history that was made again. A differential may be of an
/// older full set than the last one. Where they disagree, each keeps its own.
const NEWEST: [Newest; 4] = [
    |chain| (chain.members.iter().map(|(_, id, _)| *id).max().unwrap_or(0), ""),
    |chain| (0, chain.members.iter().map(|(.., begun)| begun.as_str()).max().unwrap_or("")),
    |chain| (chain.full.as_ref().map_or(0, |(id, _)| *id), ""),
    |chain| (0, chain.full.as_ref().map_or("", |(_, begun)| begun)),
];

impl History {
    /// The sets of the newest chain from which each database can be restored, each with why it stays. What lies in a file
    /// that is not there, in a store or behind standard output is not counted on. Newer sets that are not a whole chain, for
    /// want of a full set or of pages, or that anybody can have put on media, are not counted on either and stay with it.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub(super) fn last_chains(
        &self,
        sets: &[KnownSet],
        except: &[String],
    ) -> Result<BTreeMap<String, String>, DatabaseError> {
        let rows = self.rows_of_sets()?;
        let mut media: BTreeMap<i64, Option<Media>> = BTreeMap::new();
        let mut databases: BTreeMap<[String; 3], BTreeMap<String, Chain>> = BTreeMap::new();
        for set in sets.iter().filter(|set| !except.contains(&set.database)) {
            let Some(row) = rows.get(&set.set) else { continue };
            let on = media.entry(row.media).or_insert_with(|| there(&set.files));
            let Some(found) = on.as_ref().and_then(|media| find(media, &set.set)) else { continue };
            let [machine, path] = row.of.clone();
            let key = match (set.database.as_str(), path.as_str()) {
                // Its key was not at hand: the file id tells, if it has one.
                ("", "") => {
                    [found.source.unwrap_or_else(|| set.set.clone()), String::new(), String::new()]
                }
                (name, _) => [machine, path, name.to_owned()],
            };
            let is_full = set.kind == "D" && set.base.is_empty();
            let id = match set.kind.as_str() {
                // Without a full set it leads nowhere.
                "L" => match base_of(set, sets) {
                    Some(full) => &full.set,
                    None => continue,
                },
                _ if is_full => &set.set,
                _ => &set.base,
            };
            let chain = databases.entry(key).or_default().entry(id.clone()).or_default();
            chain.members.push((set.set.clone(), row.id, set.begun.clone()));
            if is_full {
                chain.full = Some((row.id, set.begun.clone()));
                chain.is_whole = !found.is_damaged && !row.is_seen;
            }
        }
        let mut staying = BTreeMap::new();
        for ([.., name], chains) in &databases {
            let name = word(name);
            let why = format!(
                "it is of the last backups that the database can be restored from; `--last {name}` takes them, too"
            );
            for newest in NEWEST {
                let mut order: Vec<&Chain> = chains.values().collect();
                order.sort_by(|one, other| newest(other).cmp(&newest(one)));
                let to_whole = order.iter().position(|chain| chain.is_whole);
                for chain in &order[..to_whole.map_or(order.len(), |at| at + 1)] {
                    staying
                        .extend(chain.members.iter().map(|(set, ..)| (set.clone(), why.clone())));
                }
            }
        }
        Ok(staying)
    }

    fn rows_of_sets(&self) -> Result<BTreeMap<String, Row>, DatabaseError> {
        let mut rows = BTreeMap::new();
        let query = "SELECT backup_set_uuid, backup_set_id, media_set_id, coalesce(machine_name, ''), \
                     coalesce((SELECT physical_name FROM backupfile f WHERE f.backup_set_id = s.backup_set_id AND \
                     f.file_number = 1), ''), backup_set_uuid IN (SELECT backup_set_uuid FROM pellucid_manifest WHERE \
                     is_own IS NULL) FROM backupset s WHERE backup_set_id NOT IN (SELECT backup_set_id FROM \
                     pellucid_gone)";
        self.handle.rows(query, |row| {
            let of = [row.text(3), row.text(4)];
            let is_seen = row.number(5) != 0;
            rows.insert(row.text(0), Row { id: row.number(1), media: row.number(2), of, is_seen });
        })?;
        Ok(rows)
    }
}

/// The media in those of these files that are there; none if they are not all that a set needs.
fn there(files: &[String]) -> Option<Media> {
    let is_there = |path: &&PathBuf| is_file(path) && Path::new(path).is_file();
    let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let there: Vec<PathBuf> = files.iter().filter(is_there).cloned().collect();
    open_media(&there).ok()
}

struct FoundSet {
    is_damaged: bool,
    /// The file id of the sealed database that it is of.
    source: Option<String>,
}

/// A set by its identity, if all families have it.
fn find(media: &Media, set: &str) -> Option<FoundSet> {
    (1..=media.sets()).find_map(|position| {
        let families = media.set(position).ok()?;
        let (_, found) = families.first()?.first()?;
        let source = found.header.source;
        (hex(&found.header.set) == set).then(|| FoundSet {
            is_damaged: found.manifest.damaged,
            source: source.iter().any(|byte| *byte != 0).then(|| hex(&source)),
        })
    })
}

/// A name as a shell takes it, in a line that people copy: whoever named the database, or made its media, chose it.
fn word(name: &str) -> String {
    let shown = name.shown().to_string();
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_./=:@+-".contains(&byte);
    match !shown.is_empty() && shown.bytes().all(is_safe) {
        true => shown,
        false => format!("'{}'", shown.replace('\'', "'\\''")),
    }
}
