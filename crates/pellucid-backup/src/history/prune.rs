//! Old backups leave the history, and if asked the disk: whole chains only, and never what a newer differential needs, or
//! the way from a full backup that stays to any later point.
//!
//! With their files, the sets of a media set go together or not at all: as long as a file stays, the history knows what
//! is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use pellucid::clock::now_micros;
use pellucid::hash::hex;
use pellucid::media::Manifest;
use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_files::regular;
use pellucid_host::folder::{name_of, Folder};
use pellucid_host::DatabaseError;
use rustix::fs::{access, Access};

use super::logs::held;
use super::{time_of, History, KnownSet};
use crate::job::{is_file, url_of, STDIO};
use crate::restore::{Family, FamilySet, FileSource, Tail};
use crate::set::lock_media;

/// What is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruning {
    /// Sets that were finished before, in microseconds since 1970.
    pub limit: u64,
    /// Together with the files of their media.
    pub files: bool,
    /// Files that are not there are gone for good, says the caller: no disk is missing.
    pub missing: bool,
    /// Databases of which the last backups may go, too.
    pub last: Vec<String>,
}

/// What would go, and what stays although it is old.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Sets that go.
    pub sets: Vec<KnownSet>,
    /// Old sets that stay, and why.
    pub kept: Vec<(KnownSet, String)>,
    /// Files that go, of media of which no set is left.
    pub files: Vec<PathBuf>,
    /// Media that would go and cannot: a file, and why. Their sets stay.
    pub stuck: Vec<(PathBuf, String)>,
}

/// A media set and where it lies.
#[derive(Debug, Default)]
struct OnMedia {
    /// Its identity, in hexadecimal.
    uuid: String,
    files: Vec<PathBuf>,
    /// The sets that lie in these files, not those that were overwritten, each with its manifest where the history has that.
    sets: BTreeMap<String, Option<String>>,
}

/// Why a file cannot go.
type Stuck = (PathBuf, String);

/// The files of media that are there, each with its lock where one was taken.
type Held = Vec<(PathBuf, File)>;

impl History {
    /// What would go.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn plan(&self, what: &Pruning) -> Result<Plan, DatabaseError> {
        let old = self.found(&format!("backup_finish_date < {}", time_of(what.limit)))?;
        let media = if what.files { self.on_media()? } else { BTreeMap::new() };
        let (mut plan, going) = self.settle(&old, &media, &what.last, &mut |media, going| {
            let held = look(media, going, what, false)?;
            Ok(held.into_iter().map(|(path, _)| path).collect::<Vec<_>>())
        })?;
        plan.files = going.into_values().flatten().collect();
        Ok(plan)
    }

    /// Removes what the plan says from the history. With their files, first the files of media that nothing is left of: all
    /// files of a media set are locked and looked at before one of them goes. Tells what went, and what of the plan did
    /// not and why.
    ///
    /// # Errors
    /// [`DatabaseError`]; what was not removed is still known, and of what is known the files that are gone already are named.
    pub fn prune(&self, plan: &Plan, what: &Pruning) -> Result<Plan, DatabaseError> {
        let old = plan.sets.iter().map(|set| set.set.clone()).collect();
        let media = if what.files { self.on_media()? } else { BTreeMap::new() };
        let (mut done, mut going) =
            self.settle(&old, &media, &what.last, &mut |media, going| {
                look(media, going, what, true)
            })?;
        // The oldest last, which others may be based on: an error leaves what the rest needs.
        let begun: BTreeMap<_, _> =
            done.sets.iter().map(|set| (set.set.clone(), set.begun.clone())).collect();
        let mut order: Vec<i64> = going.keys().copied().collect();
        order.sort_by_key(|id| media[id].sets.keys().filter_map(|set| begun.get(set)).min());
        while let Some(id) = order.pop() {
            let held = going.remove(&id).unwrap_or_default();
            if let Err(stuck) = remove(&held, &mut done.files) {
                let (path, why) = &stuck;
                let why = format!("`{}`: {why}", path.shown());
                done.keep(&media[&id].sets, &why);
                for later in &order {
                    done.keep(&media[later].sets, "its files stay after this error");
                }
                done.stuck.push(stuck);
                break;
            }
        }
        self.forget(&done.sets, what.limit).map_err(|error| with_removed(error, &done.files))?;
        Ok(done)
    }

    /// Divides what is old. Each media set that goes as a whole is given to `take`, which may say that it cannot go.
    fn settle<T>(
        &self,
        old: &BTreeSet<String>,
        media: &BTreeMap<i64, OnMedia>,
        last: &[String],
        take: &mut impl FnMut(&OnMedia, &BTreeSet<String>) -> Result<T, Stuck>,
    ) -> Result<(Plan, BTreeMap<i64, T>), DatabaseError> {
        let unexpired = self.found(&format!("expiration_date > {}", time_of(now_micros())))?;
        let sets = self.sets(None)?;
        // Sets that stay because of where they lie. What is based on them, or they on, may stay for that.
        let mut staying = self.last_chains(&sets, last)?;
        let mut taken: BTreeMap<i64, T> = BTreeMap::new();
        let mut stuck = BTreeMap::new();
        loop {
            let mut plan = divide(&sets, old, &unexpired, &staying);
            let going: BTreeSet<_> = plan.sets.iter().map(|set| set.set.clone()).collect();
            let before = staying.len();
            staying.extend(held(&sets, &going));
            if staying.len() > before {
                continue;
            }
            for (id, on) in media {
                let stays = |set: &&String| !going.contains(*set);
                if on.sets.keys().any(|set| stays(&set)) {
                    taken.remove(id);
                    for set in on.sets.keys().filter(|set| !stays(set)) {
                        let why = "other backups in its files stay";
                        staying.entry(set.clone()).or_insert_with(|| why.to_owned());
                    }
                } else if !on.sets.is_empty() && !taken.contains_key(id) {
                    match take(on, &going) {
                        Ok(held) => drop(taken.insert(*id, held)),
                        Err((path, why)) => {
                            let told = format!("`{}`: {why}", path.shown());
                            staying.extend(on.sets.keys().map(|set| (set.clone(), told.clone())));
                            stuck.insert(*id, (path, why));
                        }
                    }
                }
            }
            if staying.len() == before {
                plan.stuck = stuck.into_values().collect();
                return Ok((plan, taken));
            }
        }
    }

    /// The sets that a condition holds for.
    fn found(&self, condition: &str) -> Result<BTreeSet<String>, DatabaseError> {
        let mut found = BTreeSet::new();
        let query = format!("SELECT backup_set_uuid FROM backupset WHERE {condition}");
        self.handle.rows(&query, |row| {
            found.insert(row.text(0));
        })?;
        Ok(found)
    }

    fn on_media(&self) -> Result<BTreeMap<i64, OnMedia>, DatabaseError> {
        let mut media: BTreeMap<i64, OnMedia> = BTreeMap::new();
        let query =
            "SELECT media_set_id, media_uuid, physical_device_name FROM backupmediafamily JOIN \
                     backupmediaset USING(media_set_id)";
        self.handle.rows(query, |row| {
            let on = media.entry(row.number(0)).or_default();
            on.uuid = row.text(1);
            on.files.push(PathBuf::from(row.text(2)));
        })?;
        let query = "SELECT media_set_id, backup_set_uuid, manifest FROM backupset LEFT JOIN pellucid_manifest \
                     USING(backup_set_uuid) WHERE backup_set_id NOT IN (SELECT backup_set_id FROM pellucid_gone)";
        self.handle.rows(query, |row| {
            if let Some(on) = media.get_mut(&row.number(0)) {
                on.sets.insert(row.text(1), (!row.is_null(2)).then(|| row.text(2)));
            }
        })?;
        Ok(media)
    }

    fn forget(&self, sets: &[KnownSet], limit: u64) -> Result<(), DatabaseError> {
        self.transaction(|| {
            for set in sets {
                let id = format!("(SELECT backup_set_id FROM backupset WHERE backup_set_uuid = '{}')", set.set);
                let place = format!("DELETE FROM pellucid_log WHERE backup_set_uuid = '{}'", set.set);
                self.handle.run(&place)?;
                for table in ["backupfile", "pellucid_encryptor", "pellucid_gone", "backupset"] {
                    self.handle.run(&format!("DELETE FROM {table} WHERE backup_set_id = {id}"))?;
                }
            }
            self.handle.run(&format!("DELETE FROM restorehistory WHERE restore_date < {}", time_of(limit)))?;
            for statement in [
                "DELETE FROM restorefile WHERE restore_history_id NOT IN (SELECT restore_history_id FROM restorehistory)",
                "DELETE FROM pellucid_restore WHERE restore_history_id NOT IN (SELECT restore_history_id FROM \
                 restorehistory)",
                "DELETE FROM backupmediaset WHERE media_set_id NOT IN (SELECT media_set_id FROM backupset)",
                "DELETE FROM backupmediafamily WHERE media_set_id NOT IN (SELECT media_set_id FROM backupset)",
            ] {
                self.handle.run(statement)?;
            }
            Ok(())
        })
    }
}

impl Plan {
    /// Sets that were to go stay.
    fn keep(&mut self, which: &BTreeMap<String, Option<String>>, why: &str) {
        let all = std::mem::take(&mut self.sets);
        let (stay, go): (Vec<_>, _) = all.into_iter().partition(|set| which.contains_key(&set.set));
        self.sets = go;
        self.kept.extend(stay.into_iter().map(|set| (set, why.to_owned())));
    }
}

/// What goes of what is old, and why the rest of it stays.
fn divide(
    sets: &[KnownSet],
    old: &BTreeSet<String>,
    unexpired: &BTreeSet<String>,
    staying: &BTreeMap<String, String>,
) -> Plan {
    let mut plan = Plan::default();
    let goes = |set: &KnownSet| {
        old.contains(&set.set) && !unexpired.contains(&set.set) && !staying.contains_key(&set.set)
    };
    for set in sets.iter().filter(|set| old.contains(&set.set)) {
        // A differential without its full is of no use, and a full goes only with all that need it.
        let needed = sets.iter().any(|other| other.base == set.set && !goes(other));
        let whole = set.base.is_empty() || {
            let base = sets.iter().find(|other| other.set == set.base);
            base.is_none_or(|base| chain_goes(base, sets, &goes))
        };
        if goes(set) && !needed && whole {
            plan.sets.push(set.clone());
            continue;
        }
        let why = match staying.get(&set.set) {
            Some(why) => why,
            None if unexpired.contains(&set.set) => "it has not expired",
            None if needed => "a newer differential is based on it",
            None => "its chain is not old as a whole",
        };
        plan.kept.push((set.clone(), why.to_owned()));
    }
    plan
}

/// Whether a full set and everything based on it goes.
fn chain_goes(full: &KnownSet, sets: &[KnownSet], goes: &impl Fn(&KnownSet) -> bool) -> bool {
    goes(full) && sets.iter().filter(|set| set.base == full.set).all(goes)
}

/// The files of media that are there, if all of them still are what the history knows and can be removed, with no set in
/// them that is not to go. With `locked` no backup writes to them until they are closed: one that is being written
/// looks like one that was interrupted.
fn look(
    on: &OnMedia,
    going: &BTreeSet<String>,
    what: &Pruning,
    locked: bool,
) -> Result<Held, Stuck> {
    let mut held = Held::new();
    let mut families = Vec::new();
    for path in &on.files {
        let stuck = |why: String| (path.clone(), why);
        let Some(file) = there(path, what.missing).map_err(stuck)? else { continue };
        if locked {
            lock_media(&file).map_err(|error| stuck(error.to_string()))?;
        }
        // What is looked at is what is locked.
        let own = file.try_clone().map_err(|error| stuck(error.to_string()))?;
        let family = Family::open(Box::new(FileSource::of(own, path)));
        families.push((path, family.map_err(|error| stuck(error.to_string()))?));
        held.push((path.clone(), file));
    }
    // One manifest commits a set in all files.
    let all = families.iter().flat_map(|(_, family)| &family.sets);
    if let Some(newest) = all.max_by_key(|set| set.header.position).cloned() {
        families.iter_mut().for_each(|(_, family)| family.commit_by(&newest));
    }
    let now = now_micros() / 1_000_000;
    let mut at = BTreeMap::new();
    for (path, family) in &families {
        let known = |id: &[u8; 16]| going.contains(&hex(id));
        // The file says what is in it, and not whoever wrote the set down: another one may have said that it is this one.
        let is_other = |set: &FamilySet| match on.sets.get(&hex(&set.header.set)) {
            Some(Some(manifest)) => hex(&Manifest::hash(&set.manifest_bytes)) != *manifest,
            _ => set.manifest.finished >= what.limit,
        };
        let disagrees = |set: &FamilySet| {
            *at.entry(set.header.position).or_insert(set.header.set) != set.header.set
        };
        let why = if hex(&family.header.media_set) != on.uuid {
            "it is another file by now"
        } else if family.sets.iter().any(disagrees) {
            "it holds another backup than another file of its media"
        } else if matches!(family.tail, Tail::Damaged(_)) {
            "it is damaged, and what is behind that cannot be known"
        } else if family.sets.iter().any(|set| !known(&set.header.set)) {
            "there is a backup in it that the history does not know; `pellucid history rebuild` reads it"
        } else if family.sets.iter().any(is_other) {
            "a backup in it is another one than the history knows"
        } else if family.sets.iter().any(|set| set.header.expires > now) {
            "a backup in it has not expired"
        } else {
            continue;
        };
        return Err(((*path).clone(), why.to_owned()));
    }
    Ok(held)
}

/// A file of media that can be removed; none if nothing ever was there, or with `missing` if nothing is any more.
fn there(path: &Path, missing: bool) -> Result<Option<File>, String> {
    if path == Path::new(STDIO) {
        return Err("where standard output went is not known here".to_owned());
    }
    if url_of(path).is_some() {
        return Err("an object in a store is not removed from here".to_owned());
    }
    if !is_file(path) {
        return Ok(None);
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    match pellucid_files::paths::look(path) {
        // A disk that is not there takes its directories along, but for the one that it is mounted on.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && directory.is_dir() => {
            let why = "it is not there, and its disk may be one that is not mounted; if it was removed, `--missing` \
                       forgets it";
            return if missing { Ok(None) } else { Err(why.to_owned()) };
        }
        Err(error) => return Err(error.to_string()),
        Ok(metadata) if !metadata.is_file() => return Err("it is no file".to_owned()),
        Ok(_) => {}
    }
    // Some file systems lock only for writers.
    let opened = regular::open_to_write(path);
    let file = opened.or_else(|_| regular::open(path)).map_err(|error| error.to_string())?;
    access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        format!("its directory cannot be written: {}", std::io::Error::from(error))
    })?;
    Ok(Some(file))
}

fn remove(held: &Held, removed: &mut Vec<PathBuf>) -> Result<(), Stuck> {
    for (path, file) in held {
        // A link goes as a link, and what it leads to stays.
        let gone = Folder::of(path).and_then(|folder| {
            let name = name_of(path);
            match folder.look(&name)?.is_symlink() {
                true => folder.remove_name(&name),
                false => folder.remove(&name, file),
            }
        });
        match gone {
            Ok(()) => removed.push(path.clone()),
            Err(error) => return Err((path.clone(), error.to_string())),
        }
    }
    Ok(())
}

/// An error that leaves sets known whose files are gone already.
fn with_removed(error: DatabaseError, removed: &[PathBuf]) -> DatabaseError {
    let Some(first) = removed.first() else { return error };
    let names: Vec<_> = removed.iter().map(|path| format!("`{}`", path.shown())).collect();
    let cause = format!(
        "the history still knows the backups of files that are removed already, {}: {error}; once that is mended, \
         `--missing` forgets them",
        names.join(", ")
    );
    Error::io(Subject::File(first.clone()), std::io::Error::other(cause)).into()
}
