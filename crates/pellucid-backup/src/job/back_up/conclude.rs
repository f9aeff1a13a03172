//! The end of a backup: its files get their names, and the history knows it.

use std::path::PathBuf;

use pellucid::certificate::Certificate;
use pellucid::header::Header;
use pellucid::media::{Description, MediaVersion, SetHeader};
use pellucid::{Error, Subject};
use pellucid_files::paths::{directory_of, full_name};
use pellucid_host::DatabaseError;

use super::Done;
use crate::history;
use crate::history::{chain_at, Begun, FamilyFile, History, Link, Origin, SetRecord};
use crate::job::error::JobError;
use crate::job::leftovers::leftovers;
use crate::job::media::open_media;
use crate::job::plan::Job;
use crate::job::targets::{is_file, new_name, Targets};
use crate::set::Written;

/// A backup whose set is written.
pub(super) struct Concluding<'a> {
    pub job: &'a Job,
    pub targets: Targets,
    pub known: BegunSet,
    pub set: (SetHeader, Description),
    pub signer: Option<Certificate>,
    /// The version that was asked for.
    pub wanted: MediaVersion,
}

impl Concluding<'_> {
    /// Gives the files their names, and writes the set down.
    pub(super) fn conclude(self, written: Written) -> Result<Done, JobError> {
        let Self { job, targets, mut known, set: (header, description), signer, wanted } = self;
        let fenced: Vec<_> = written.fenced.iter().map(|(path, _)| path.clone()).collect();
        let media = targets.header.clone();
        let can_be_read = targets.can_be_read();
        let mut replaced = targets.replaced().to_vec();
        replaced.retain(|path| !fenced.contains(path) && !fenced.contains(&new_name(path)));
        targets.finish(&fenced)?;
        known.keep();
        let files = job.files.present(&fenced);
        if can_be_read {
            assert_written(&files, &header)?;
        }
        let signed_by = signer.as_ref().map(Certificate::public);
        let record = SetRecord {
            media: &media,
            set: &header,
            manifest: &written.manifest,
            description: &description,
            files: &files,
            replaced: &replaced,
            link: Link {
                manifest: written.hash,
                signer: signed_by.map(|own| *own.thumbprint()),
                origin: Origin::Own,
            },
        };
        let unrecorded = history::told(record_set(&record));
        let cleared = clear_away(job);
        let could_be_signed =
            wanted == MediaVersion::Two && media.version == MediaVersion::One && !job.unsigned;
        Ok(Done {
            header,
            manifest: written.manifest,
            hash: written.hash,
            fenced: job.files.as_named(written.fenced),
            cleared,
            missing: written.missing,
            older: Vec::new(),
            signer: signed_by.map(|own| own.name().to_owned()),
            could_be_signed,
            told: Vec::new(),
            held: None,
            unrecorded,
        })
    }
}

/// Removes the working files of stopped backups beside the files of this one. One that cannot be removed is for `doctor`.
pub(super) fn clear_away(job: &Job) -> Vec<PathBuf> {
    let files = job.files.all();
    let on_disk = files.iter().filter(|path| is_file(path));
    let dead =
        leftovers(on_disk.map(|path| directory_of(path))).into_iter().filter(|one| one.is_dead);
    dead.filter(|one| one.remove().is_ok()).map(|one| one.path).collect()
}

pub(super) fn record_set(record: &SetRecord<'_>) -> Result<(), DatabaseError> {
    match History::open_or_begin()? {
        Some(history) => history.record_set(record).map(drop),
        None => Ok(()),
    }
}

/// Looks whether backups of the database that were stopped before the history knew of them were finished.
pub(super) fn settle_chain(job: &Job, sealed: Option<&Header>) {
    let chain =
        chain_at(sealed.map_or([0; 16], |header| header.file_id), &full_name(&job.database));
    // A history that cannot be read or written counts as none.
    if let (Some(chain), Ok(Some(history))) = (chain, History::open()) {
        let _ = history.settle_begun(&chain);
    }
}

/// The set that is being written, which the history knows as begun. A drop before [`BegunSet::keep`] takes that back if the
/// set is not there.
#[derive(Debug, Default)]
pub(super) struct BegunSet(Option<[u8; 16]>);

impl BegunSet {
    /// Without a history, or with one that cannot be written, it is known when it is finished.
    pub(super) fn write_down(&mut self, begun: &Begun<'_>, manifest: [u8; 32]) {
        if let Ok(Some(history)) = History::open_or_begin() {
            self.0 = history.begin_set(begun, manifest).is_ok().then_some(begun.set);
        }
    }

    pub(super) fn keep(&mut self) {
        self.0 = None;
    }
}

impl Drop for BegunSet {
    fn drop(&mut self) {
        if let (Some(set), Ok(Some(history))) = (self.0, History::open()) {
            let _ = history.forget_begun(&set);
        }
    }
}

/// Reads the set's header again from the media, and checks that it is sealed if it should be.
pub(super) fn assert_written(
    files: &[FamilyFile],
    header: &SetHeader,
) -> Result<(), DatabaseError> {
    let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
    let media = open_media(&paths)?;
    let sets = media.set(header.position)?;
    let same = |set: &SetHeader| set.set == header.set && set.algorithm == header.algorithm;
    if sets.iter().flatten().all(|(_, found)| same(&found.header)) {
        return Ok(());
    }
    let what = format!(
        "backup set {}: what is on the media is not what was written; another writer may have put its own there",
        header.position
    );
    let subject = paths
        .first()
        .map_or(Subject::BackupSet(header.position), |path| Subject::File(path.clone()));
    Err(Error::corrupt(subject, what).into())
}
