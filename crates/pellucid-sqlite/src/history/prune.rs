//! Old backups leave the history, and if asked the disk: whole chains only, and never what a newer differential needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use pellucid::certificate::hex;
use pellucid::restore::{Family, FileSource, Tail};
use pellucid::{Error, Subject};

use super::{time_of, History, KnownSet};
use crate::convert::ConvertError;

/// What would go, and what stays although it is old.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Sets that go.
    pub sets: Vec<KnownSet>,
    /// Old sets that stay: a newer differential is based on them, or they have not expired.
    pub kept: Vec<(KnownSet, &'static str)>,
    /// Files of media of which no set is left.
    pub files: Vec<PlannedFile>,
}

/// A file of media of which no set is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// Where it is.
    pub path: PathBuf,
    /// The media set it has to belong to, in hexadecimal.
    pub media_set: String,
}

impl History {
    /// What is to go of sets that were finished before `limit`, in microseconds since 1970.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub fn plan(&self, limit: u64) -> Result<Plan, ConvertError> {
        let mut old = BTreeSet::new();
        let query = format!(
            "SELECT backup_set_uuid FROM backupset WHERE backup_finish_date < {}",
            time_of(limit)
        );
        self.handle.rows(&query, |row| {
            old.insert(row.text(0));
        })?;
        let now = pellucid::backup::now_micros();
        let mut unexpired = BTreeSet::new();
        let query = format!(
            "SELECT backup_set_uuid FROM backupset WHERE expiration_date > {}",
            time_of(now)
        );
        self.handle.rows(&query, |row| {
            unexpired.insert(row.text(0));
        })?;
        let sets = self.sets(None)?;
        let mut plan = Plan::default();
        let goes = |set: &KnownSet| old.contains(&set.set) && !unexpired.contains(&set.set);
        for set in &sets {
            // A differential without its full is of no use, and a full goes only with all that need it.
            let needed = sets.iter().any(|other| other.base == set.set && !goes(other));
            let whole = set.base.is_empty() || {
                let base = sets.iter().find(|other| other.set == set.base);
                base.is_none_or(|base| chain_goes(base, &sets, &goes))
            };
            match (old.contains(&set.set), goes(set) && !needed && whole) {
                (false, _) => {}
                (true, true) => plan.sets.push(set.clone()),
                (true, false) if needed => {
                    plan.kept.push((set.clone(), "a newer differential is based on it"));
                }
                (true, false) if unexpired.contains(&set.set) => {
                    plan.kept.push((set.clone(), "it has not expired"));
                }
                (true, false) => plan.kept.push((set.clone(), "its chain is not old as a whole")),
            }
        }
        plan.files = self.files_of(&plan)?;
        Ok(plan)
    }

    /// The files of media sets of which every known set goes.
    fn files_of(&self, plan: &Plan) -> Result<Vec<PlannedFile>, ConvertError> {
        let going: BTreeSet<_> = plan.sets.iter().map(|set| set.set.clone()).collect();
        let mut media: BTreeMap<i64, bool> = BTreeMap::new();
        self.handle.rows("SELECT media_set_id, backup_set_uuid FROM backupset", |row| {
            let all = media.entry(row.number(0)).or_insert(true);
            *all &= going.contains(&row.text(1));
        })?;
        let mut files = Vec::new();
        let query = "SELECT media_set_id, physical_device_name, media_uuid FROM backupmediafamily \
                     JOIN backupmediaset USING(media_set_id)";
        self.handle.rows(query, |row| {
            if media.get(&row.number(0)) == Some(&true) {
                files
                    .push(PlannedFile { path: PathBuf::from(row.text(1)), media_set: row.text(2) });
            }
        })?;
        Ok(files)
    }

    /// Removes what the plan says from the history. With `files`, first the files of media that nothing is left of; one
    /// that is another file by now, or has sets that the history does not know, stays.
    ///
    /// # Errors
    /// [`ConvertError`]; what was not removed is still known.
    pub fn prune(
        &self,
        plan: &Plan,
        limit: u64,
        files: bool,
    ) -> Result<Vec<PathBuf>, ConvertError> {
        let going: BTreeSet<&str> = plan.sets.iter().map(|set| set.set.as_str()).collect();
        let mut removed = Vec::new();
        for file in plan.files.iter().filter(|_| files) {
            if !is_of_plan(file, &going) {
                continue;
            }
            std::fs::remove_file(&file.path)
                .map_err(|error| Error::io(Subject::File(file.path.clone()), error))?;
            removed.push(file.path.clone());
        }
        self.transaction(|| {
            for set in &plan.sets {
                let id = format!("(SELECT backup_set_id FROM backupset WHERE backup_set_uuid = '{}')", set.set);
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
        })?;
        Ok(removed)
    }
}

/// Whether a full set and everything based on it goes.
fn chain_goes(full: &KnownSet, sets: &[KnownSet], goes: &impl Fn(&KnownSet) -> bool) -> bool {
    goes(full) && sets.iter().filter(|set| set.base == full.set).all(goes)
}

/// Whether the file still is what the history knows, with no set in it that is not to go.
fn is_of_plan(file: &PlannedFile, going: &BTreeSet<&str>) -> bool {
    let family = FileSource::open(&file.path).and_then(|source| Family::open(Box::new(source)));
    family.is_ok_and(|family| {
        hex(&family.header.media_set) == file.media_set
            && !matches!(family.tail, Tail::Damaged(_))
            && family.sets.iter().all(|set| going.contains(hex(&set.header.set).as_str()))
    })
}
