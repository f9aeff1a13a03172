//! The files that media are written to. A new file is made under a temporary name and gets its name
//! when its set is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::media::{Manifest, MediaHeader};
use pellucid::message;
use pellucid::shown::Shown;
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::{self, beside, is_there, look, look_at_name};
use pellucid_files::regular;
use pellucid_host::folder::{identity, identity_of, name_of, open_to_append, Folder, Identity};

use super::error::JobError;
use super::media::{about, last_set, open_family, open_media_to_write};
use super::occupant::{assert_left_over, refuse_to_replace, Occupant};
use super::overwrite::{Existing, Rules};
use super::store::{store_of, url_of, Commit, Created};
use super::taking_back::take_back_appended;
use super::working;
use crate::history::{whole_name, FamilyFile};
use crate::restore::{Family, FileSource, Media, Tail};
use crate::set::{
    lock_media, unlock_media, FamilyTarget, FileSink, MediaSink, NullSink, StdoutSink,
};

/// How long another backup may hold a file's lock to look at it, and how often this one waits for
/// that.
const LOOK_OF_ANOTHER: Duration = Duration::from_millis(10);
const LOOKS_OF_OTHERS: u32 = 50;

/// The names of the files of a media set.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// One name for each family.
    pub families: Vec<PathBuf>,
    /// For each mirror one name for each family.
    pub mirrors: Vec<Vec<PathBuf>>,
}

/// SQL Server's name of the device that keeps nothing.
const NUL: &str = "NUL";
/// Standard input or output, by direction.
pub const STDIO: &str = "-";

/// Whether a backup to this name leaves a file under it.
pub fn is_file(path: &Path) -> bool {
    path != Path::new(NUL) && path != Path::new(STDIO) && url_of(path).is_none()
}

impl Files {
    /// Returns all names, mirror by mirror.
    pub fn all(&self) -> Vec<PathBuf> {
        std::iter::once(&self.families).chain(&self.mirrors).flatten().cloned().collect()
    }

    /// Returns the files that have the set. `fenced` are the names of failed mirrors.
    pub fn present(&self, fenced: &[PathBuf]) -> Vec<FamilyFile> {
        let mut present = Vec::new();
        for (mirror, copies) in (0..).zip(std::iter::once(&self.families).chain(&self.mirrors)) {
            for (family, path) in (1..).zip(copies) {
                if !fenced.contains(path) && !fenced.contains(&new_name(path)) {
                    let path = whole_name(path);
                    present.push(FamilyFile { family, mirror, path });
                }
            }
        }
        present
    }

    /// Puts the names that the caller gave in the place of the temporary ones.
    pub fn as_named<E>(&self, files: Vec<(PathBuf, E)>) -> Vec<(PathBuf, E)> {
        let all = self.all();
        let named =
            |path: PathBuf| all.iter().find(|own| new_name(own) == path).cloned().unwrap_or(path);
        files.into_iter().map(|(path, with)| (named(path), with)).collect()
    }

    /// Returns the names under which files exist.
    fn existing(&self) -> Vec<PathBuf> {
        self.all().into_iter().filter(|path| is_file(path) && is_there(path)).collect()
    }

    /// Refuses names of files that must not be lost: the database, the files that belong to it, and
    /// the full set that a differential is to be based on.
    ///
    /// # Errors
    /// [`Error::Misuse`] naming the file.
    pub fn spare(
        &self,
        database: &Path,
        existing: Existing,
        base: Option<&[PathBuf]>,
    ) -> Result<()> {
        let own = ["", "-wal", "-journal", "-shm", "-pellucid"].map(|end| beside(database, end));
        let replaces = matches!(existing, Existing::Initialize | Existing::Format);
        let base = base.unwrap_or_default();
        for path in self.all().iter().filter(|path| is_file(path)) {
            // A file under the temporary name is removed as the rest of an interrupted backup.
            let other = new_name(path);
            let refuse =
                |cause: &'static str| Err(Error::misuse(Subject::File(path.clone()), cause));
            if own.iter().any(|own| is_same_file(path, own) || is_same_file(&other, own)) {
                return refuse(
                    "it is the database that is to be backed up, or a file that belongs to it: take \
                     another name",
                );
            }
            let is_base = |path: &Path| base.iter().any(|base| is_same_file(path, base));
            if (replaces && is_base(path)) || is_base(&other) {
                return refuse(
                    "it holds the full backup that the differential is to be based on, which would \
                     be lost: take another name, or `--append`",
                );
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let refuse = |what: &'static str| Err(Error::misuse(Subject::MediaHeader, what));
        let families = self.families.len();
        if families == 0 || families > usize::from(pellucid::media::MOST_FAMILIES) {
            return refuse("a backup has 1 to 64 media families (stripes)");
        }
        if self.mirrors.len() >= usize::from(pellucid::media::MOST_MIRRORS) {
            return refuse("a backup has at most 3 mirrors beside its first files");
        }
        if self.mirrors.iter().any(|mirror| mirror.len() != families) {
            return refuse("each mirror has as many files as there are media families (stripes)");
        }
        let mut names = self.all();
        if names.iter().any(|name| name == Path::new(STDIO)) && names.len() > 1 {
            return refuse("standard output takes a backup of one file");
        }
        names.retain(|name| name != Path::new(NUL));
        names.sort();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return refuse("a file is named twice");
        }
        Ok(())
    }
}

/// The files that are being written. A drop before [`Targets::finish`] removes the new ones.
#[derive(Debug)]
pub struct Targets {
    families: Vec<FamilyTarget>,
    /// The new files and the names that they get.
    renames: Vec<Rename>,
    /// The existing files that are replaced.
    replaced: Vec<PathBuf>,
    /// The locks on the replaced files, so that no other backup appends to them meanwhile.
    locked: Vec<(PathBuf, File)>,
    /// The open files that are appended to, and their sizes in bytes before.
    appended: Vec<(File, u64)>,
    /// The objects, which get their names last.
    objects: Vec<Object>,
    can_be_read: bool,
    /// Of the sets on media that are appended to: the database's file id, and the hash of the manifest.
    pub before: Vec<([u8; 16], [u8; 32])>,
    /// Whether one of them is signed.
    pub has_signed: bool,
    /// The set's position on the media.
    pub position: u32,
    /// The media header of the first file.
    pub header: MediaHeader,
}

impl Targets {
    /// Prepares all files. New media get `header`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for existing files that may not be touched or are of another shape.
    pub fn prepare(
        files: &Files,
        rules: &Rules,
        header: MediaHeader,
        expected_bytes: u64,
    ) -> std::result::Result<Self, JobError> {
        let existing = rules.existing;
        files.check()?;
        for path in files.all() {
            let Some((store, url)) = store_of(&path)? else { continue };
            let io = |error| Error::io(Subject::File(path.clone()), error);
            if store.exists(url).map_err(io)? {
                if rules.existing == Existing::Refuse {
                    return Err(JobError::exists(&path));
                }
                let cause = "an object is not appended to and not overwritten: take another name";
                return Err(Error::misuse(Subject::File(path.clone()), cause).into());
            }
        }
        settle(files)?;
        let there = files.existing();
        let is_dangling =
            |path: &&PathBuf| is_file(path) && !is_there(path) && look_at_name(path).is_ok();
        if let Some(path) = files.all().iter().find(is_dangling) {
            let cause = "it is a symbolic link to nothing: name the file itself";
            return Err(Error::misuse(Subject::File(path.clone()), cause).into());
        }
        if let Some(path) = there.iter().find(|path| !paths::is_file(path)) {
            return Err(
                Error::misuse(Subject::File(path.clone()), "it is there and is no file").into()
            );
        }
        if let (Existing::Refuse, Some(path)) = (existing, there.first()) {
            return Err(JobError::exists(path));
        }
        let mut header = header;
        let occupants = there.iter().map(|path| Occupant::of(path)).collect::<Result<Vec<_>>>()?;
        let is_media = |occupant: &Occupant| *occupant == Occupant::Media;
        if let (Existing::Append, Some(at)) =
            (existing, occupants.iter().position(|o| !is_media(o)))
        {
            let device = there[at].shown().to_string();
            return Err(Error::message(message::NOT_MEDIA, &device).into());
        }
        if existing == Existing::Append && !there.is_empty() {
            return Ok(Self::append(files, rules, &header)?);
        }
        for (path, _) in there.iter().zip(&occupants).filter(|(_, it)| **it == Occupant::Other) {
            refuse_to_replace(path, existing == Existing::Initialize)?;
        }
        let locked = lock_all(&there)?;
        if existing == Existing::Initialize && occupants.iter().any(is_media) {
            let media = open_media_to_write(&files.all())?;
            rules.check(&media, &header)?;
            header = media.header().clone();
        }
        let mut targets = Self {
            families: Vec::new(),
            renames: Vec::new(),
            replaced: there,
            locked,
            appended: Vec::new(),
            objects: Vec::new(),
            can_be_read: files.all().iter().all(|path| is_file(path) || url_of(path).is_some()),
            before: Vec::new(),
            has_signed: false,
            position: 1,
            header,
        };
        targets.create(files, expected_bytes)?;
        Ok(targets)
    }

    /// Prepares an object that gets its name and its bytes by one request. Nothing is asked before, nor read behind it.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the name is no URL.
    pub fn whole(path: &Path, header: MediaHeader) -> Result<Self> {
        let none = || Error::misuse(Subject::File(path.to_owned()), "it is no object's URL");
        let (store, url) = store_of(path)?.ok_or_else(none)?;
        let Created { sink, commit } = store
            .create_whole(url)
            .map_err(|error| Error::io(Subject::File(path.to_owned()), error))?;
        let mut targets = Self::of_sink(sink, header)?;
        targets.objects.push(Object { name: path.to_owned(), commit });
        Ok(targets)
    }

    /// New media of one family that go to `sink`, which is nobody's file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of_sink(mut sink: Box<dyn MediaSink>, header: MediaHeader) -> Result<Self> {
        let name = sink.name();
        sink.write(&header.encode()?).map_err(|error| Error::io(Subject::File(name), error))?;
        Ok(Self {
            families: vec![FamilyTarget::new(vec![sink])],
            renames: Vec::new(),
            replaced: Vec::new(),
            locked: Vec::new(),
            appended: Vec::new(),
            objects: Vec::new(),
            can_be_read: false,
            before: Vec::new(),
            has_signed: false,
            position: 1,
            header,
        })
    }

    fn append(files: &Files, rules: &Rules, wanted: &MediaHeader) -> Result<Self> {
        // The ends of the files are valid only when no other backup can append to them.
        let mut sinks = BTreeMap::new();
        let mut families = Vec::new();
        for path in files.all() {
            let io = |error| Error::io(Subject::File(path.clone()), error);
            let file = open_to_append(&path).map_err(io)?;
            let sink = FileSink::of(file, &path).map_err(io)?;
            // The end is read from the open file itself, whichever file has its name by now.
            let source = FileSource::of(sink.handle().map_err(io)?, &path);
            families.push(Family::open(Box::new(source)).map_err(|error| about(&path, error))?);
            sinks.insert(path, sink);
        }
        let media = Media::assemble_to_write(families)?;
        rules.check(&media, wanted)?;
        let position = media.sets() + 1;
        if let Some(stale) = media.stale().first() {
            return Err(Error::corrupt(
                Subject::File(stale.clone()),
                "it holds another backup set than its mirrors: nothing can be appended; \
                 `--overwrite` replaces all of them",
            ));
        }
        for family in media.families().iter().flatten() {
            can_go_on(family, position)?;
        }
        let mut targets = Self {
            families: Vec::with_capacity(files.families.len()),
            renames: Vec::new(),
            replaced: Vec::new(),
            locked: Vec::new(),
            appended: Vec::new(),
            objects: Vec::new(),
            can_be_read: true,
            before: Vec::new(),
            has_signed: false,
            position,
            header: media.header().clone(),
        };
        let first = media.families().first().and_then(|copies| copies.first());
        for set in first.iter().flat_map(|family| &family.sets) {
            targets.has_signed |= set.manifest.signing.signature().is_some();
            targets.before.push((set.header.source, Manifest::hash(&set.manifest_bytes)));
        }
        for copies in media.families() {
            let mut of_family: Vec<Box<dyn MediaSink>> = Vec::with_capacity(copies.len());
            for family in copies {
                let name = family.source.name();
                let io = |error| Error::io(Subject::File(name.clone()), error);
                let twice =
                    || Error::misuse(Subject::File(name.clone()), "it is another file by now");
                let mut sink = sinks.remove(&name).ok_or_else(twice)?;
                sink.go_on_at(family.end).map_err(io)?;
                let mut end = family.end;
                if let Some(last) = family.sets.last().filter(|set| set.committed_elsewhere) {
                    sink.write(&last.manifest_bytes).map_err(io)?;
                    end += last.manifest_bytes.len() as u64;
                }
                targets.appended.push((sink.handle().map_err(io)?, end));
                of_family.push(Box::new(sink));
            }
            targets.families.push(FamilyTarget::new(of_family));
        }
        Ok(targets)
    }

    fn create(&mut self, files: &Files, expected_bytes: u64) -> Result<()> {
        for family in 0..files.families.len() {
            let mut sinks: Vec<Box<dyn MediaSink>> = Vec::new();
            for mirror in 0..=files.mirrors.len() {
                let path = match mirror.checked_sub(1) {
                    None => &files.families[family],
                    Some(mirror) => &files.mirrors[mirror][family],
                };
                let header = MediaHeader {
                    family: family as u16 + 1,
                    mirror: mirror as u8,
                    ..self.header.clone()
                };
                let mut sink = self.create_one(path, expected_bytes)?;
                let io = |error| Error::io(Subject::File(path.clone()), error);
                sink.write(&header.encode()?).map_err(io)?;
                sinks.push(sink);
            }
            self.families.push(FamilyTarget::new(sinks));
        }
        Ok(())
    }

    fn create_one(&mut self, path: &Path, expected_bytes: u64) -> Result<Box<dyn MediaSink>> {
        if path == Path::new(NUL) {
            return Ok(Box::new(NullSink));
        }
        if path == Path::new(STDIO) {
            if pellucid_vfs::streams::was_output_closed() {
                let closed =
                    "standard output is closed (Bad file descriptor): the backup would be lost";
                return Err(Error::io(
                    Subject::File(path.to_owned()),
                    std::io::Error::other(closed),
                ));
            }
            return Ok(Box::new(StdoutSink));
        }
        if let Some((store, url)) = store_of(path)? {
            let created = store.create(url, expected_bytes);
            let created = created.map_err(|e| Error::io(Subject::File(path.to_owned()), e))?;
            self.objects.push(Object { name: path.to_owned(), commit: created.commit });
            return Ok(created.sink);
        }
        let beside = new_name(path);
        let io = |error| Error::io(Subject::File(beside.clone()), error);
        let folder =
            Folder::of(path).map_err(|error| Error::io(Subject::File(path.to_owned()), error))?;
        // The rest of an interrupted backup. A complete one has got its name before ([`settle`]).
        if let Some(left) = opened(&beside, false)? {
            assert_left_over(&beside)?;
            let name = name_of(&beside);
            let locked = lock_named(&left, || folder.identity(&name, false));
            locked.and_then(|()| folder.remove(&name, &left)).map_err(io)?;
        }
        let replaced = self.locked.iter().find(|(replaced, _)| replaced == path);
        let replaces = replaced.map(|(_, file)| identity(file)).transpose().map_err(io)?;
        let is_free = !self.replaced.iter().any(|replaced| replaced == path);
        let made = working::add(&folder, &beside, || create_locked(&folder, &beside));
        let (file, sink) = made.map_err(io)?;
        self.renames.push(Rename {
            folder,
            file,
            beside: beside.clone(),
            name: path.to_owned(),
            is_free,
            replaces,
            given: false,
        });
        Ok(Box::new(sink))
    }

    /// Whether the written media can be read again.
    pub fn can_be_read(&self) -> bool {
        self.can_be_read
    }

    /// The existing files that are replaced.
    pub fn replaced(&self) -> &[PathBuf] {
        &self.replaced
    }

    /// Returns the families that the set is written to.
    pub fn families(&mut self) -> &mut [FamilyTarget] {
        &mut self.families
    }

    /// Gives the new files their names. Failed mirrors get none.
    ///
    /// # Errors
    /// [`JobError::Exists`] if a name was taken meanwhile; [`Error::Io`]. Until the first file is
    /// replaced, nothing is left then. A rename that was not reached later is made up for by the
    /// next reader ([`super::open_media`]).
    pub fn finish(mut self, fenced: &[PathBuf]) -> std::result::Result<(), JobError> {
        self.appended.clear();
        working::forget(self.renames.iter().map(|rename| &rename.beside));
        let (of_no_use, renames): (Vec<_>, Vec<_>) = std::mem::take(&mut self.renames)
            .into_iter()
            .partition(|rename| fenced.contains(&rename.beside));
        for rename in of_no_use {
            rename.remove_beside();
        }
        self.objects.retain(|object| !fenced.contains(&object.name));
        // If `self` is dropped with them, it removes them.
        self.renames = renames;
        for rename in &self.renames {
            // Finds a file whose directory is gone before another file has replaced an existing
            // one.
            rename
                .is_there()
                .map_err(|error| Error::io(Subject::File(rename.name.clone()), error))?;
        }
        // The upload of an object's last part fails most easily, so it comes before any file has
        // its name.
        for Object { name, commit } in &mut self.objects {
            commit.complete().map_err(|error| Error::io(Subject::File(name.clone()), error))?;
        }
        self.name_objects()?;
        // A rename that replaces nothing can be undone, so those come first.
        self.renames.sort_by_key(|rename| !rename.is_free);
        for at in 0..self.renames.len() {
            let mut replaced = at > 0 && !self.renames[at - 1].is_free;
            let rename = &mut self.renames[at];
            let given = rename.give();
            replaced |= given.is_ok() && !rename.is_free;
            let Err(error) = given.and_then(|()| Ok(rename.sync()?)) else { continue };
            if replaced {
                self.renames.clear();
            } else {
                for rename in self.renames[..=at].iter().filter(|rename| rename.given) {
                    let _ = rename.folder.remove(&name_of(&rename.name), &rename.file);
                }
                take_back(&mut self.objects);
            }
            return Err(error);
        }
        self.renames.clear();
        Ok(())
    }

    /// Gives all objects their names, or none.
    fn name_objects(&mut self) -> Result<()> {
        for at in 0..self.objects.len() {
            let Object { name, commit } = &mut self.objects[at];
            let Err(error) = commit.give_name() else { continue };
            let error = Error::io(Subject::File(name.clone()), error);
            take_back(&mut self.objects[..=at]);
            return Err(error);
        }
        Ok(())
    }
}

fn take_back(objects: &mut [Object]) {
    for object in objects {
        // If the store does not remove it, it is a part of a set that no reader takes for complete.
        let _ = object.commit.take_back();
    }
}

/// A new file that is going to get its name.
#[derive(Debug)]
struct Rename {
    /// The directory of both names.
    folder: Folder,
    /// The file itself.
    file: File,
    beside: PathBuf,
    name: PathBuf,
    /// Whether no file had the name.
    is_free: bool,
    /// The file that had the name, if it is known.
    replaces: Option<Identity>,
    /// Whether the file has got its name.
    given: bool,
}

impl Rename {
    fn give(&mut self) -> std::result::Result<(), JobError> {
        self.named()?;
        self.given = true;
        Ok(())
    }

    fn named(&self) -> std::result::Result<(), JobError> {
        let io = |error| JobError::from(Error::io(Subject::File(self.name.clone()), error));
        let (beside, name) = (name_of(&self.beside), name_of(&self.name));
        if !self.is_free {
            let now = self.folder.identity(&name, true);
            if self.replaces.is_some_and(|was| now.is_ok_and(|now| now != was)) {
                let cause = "it is another file than when the backup began, and was left as it is";
                return Err(Error::misuse(Subject::File(self.name.clone()), cause).into());
            }
            return self.folder.rename(&beside, &name, &self.file).map_err(io);
        }
        match self.folder.link(&beside, &name, &self.file) {
            Ok(()) => {
                // The next writer removes the temporary name if this cannot.
                self.remove_beside();
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(JobError::exists(&self.name))
            }
            Err(error) if self.is_there().is_err() => Err(io(error)),
            // The file system has no hard links.
            Err(_) if self.folder.identity(&name, false).is_err() => {
                self.folder.rename(&beside, &name, &self.file).map_err(io)
            }
            Err(error) => Err(io(error)),
        }
    }

    /// Whether the file still has the name that it was made under.
    fn is_there(&self) -> std::io::Result<()> {
        self.folder.identity(&name_of(&self.beside), false).map(drop)
    }

    fn remove_beside(&self) {
        let _ = self.folder.remove(&name_of(&self.beside), &self.file);
    }

    fn sync(&self) -> Result<()> {
        self.folder.sync().map_err(|error| Error::io(Subject::File(self.name.clone()), error))
    }
}

/// An object that is going to get its name.
struct Object {
    name: PathBuf,
    commit: Box<dyn Commit>,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        for rename in &self.renames {
            rename.remove_beside();
        }
        working::forget(self.renames.iter().map(|rename| &rename.beside));
        let families = usize::from(self.header.families);
        take_back_appended(&self.appended, self.header.version, families, &mut || ());
        let made = self.renames.iter().map(|rename| &rename.file);
        let appended = self.appended.iter().map(|(file, _)| file);
        self.locked.iter().map(|(_, file)| file).chain(made).chain(appended).for_each(unlock_media);
    }
}

/// Gives the files under temporary names their names, if they are the newest of their media. The
/// process that wrote them was stopped between two renames, and there is no other copy of that set.
fn settle(files: &Files) -> Result<()> {
    let all: Vec<_> = files.all().into_iter().filter(|path| is_file(path)).collect();
    let is_there_beside = |path: &&PathBuf| look_at_name(&new_name(path)).is_ok();
    let beside: Vec<_> = all.iter().filter(is_there_beside).collect();
    if beside.is_empty() {
        return Ok(());
    }
    beside.iter().try_for_each(|path| assert_left_over(&new_name(path)))?;
    let mut locks = Vec::new();
    for path in &beside {
        let beside = new_name(path);
        if let Some(file) = opened(&beside, false)? {
            let locked = lock_named(&file, || identity_of(&look_at_name(&beside)?));
            locked.map_err(|error| Error::io(Subject::File(beside.clone()), error))?;
            locks.push((beside, file));
        }
    }
    for path in &beside {
        // A file that cannot be read now may be complete.
        if_there(open_family(&new_name(path)))?;
    }
    // Files that are no media have no set that could be lost.
    let Some(media) = if_there(open_media_to_write(&all))? else { return Ok(()) };
    let sets: BTreeSet<_> = media.families().iter().flatten().map(last_set).collect();
    let disagree = sets.len() > 1 || !media.stale().is_empty();
    let names: Vec<_> =
        media.families().iter().flatten().map(|family| family.source.name()).collect();
    for path in beside {
        let beside = new_name(path);
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let Some((_, file)) = locks.iter().find(|(locked, _)| *locked == beside) else { continue };
        let folder = Folder::of(path).map_err(io)?;
        if names.contains(&beside) && media.sets() > 0 {
            let renamed = folder.rename(&name_of(&beside), &name_of(path), file);
            renamed.and_then(|()| folder.sync()).map_err(io)?;
        } else if is_there(path) {
            if disagree && open_family(&beside).is_ok_and(|family| !family.sets.is_empty()) {
                return Err(Error::misuse(
                    Subject::File(beside),
                    "an interrupted backup left a backup set in it, and the other files do not tell \
                     whether that counts: move it away first",
                ));
            }
            // The rest of an interrupted backup, of a set that cannot be restored.
            folder.remove(&name_of(&beside), file).map_err(io)?;
        }
    }
    Ok(())
}

/// Turns the error of a missing file, or of one that is no media, into `None`. Every other error is
/// returned.
fn if_there<T>(opened: Result<T>) -> Result<Option<T>> {
    match opened {
        Ok(found) => Ok(Some(found)),
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error @ (Error::Io { .. } | Error::Unsupported { .. })) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether two names lead to one file, or would.
fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    if let (Ok(one), Ok(other)) = (look(one), look(other)) {
        return (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    let place = |path: &Path| {
        let directory = pellucid_files::paths::directory_of(path).canonicalize().ok()?;
        Some(directory.join(path.file_name()?))
    };
    place(one).is_some_and(|place_of_one| Some(place_of_one) == place(other))
}

/// Checks that a set can be written behind the sets of a file.
fn can_go_on(family: &Family, position: u32) -> Result<()> {
    let subject = Subject::File(family.source.name());
    if let Tail::Damaged(error) = &family.tail {
        let told = format!("nothing can be appended to it: {error}");
        return Err(match error {
            Error::Unsupported { .. } => Error::unsupported(subject, told),
            _ => Error::corrupt(subject, told),
        });
    }
    for set in &family.sets {
        let checked = set.header.flags.check_writable(Subject::BackupSet(set.header.position));
        checked.map_err(|error| Error::unsupported(subject.clone(), error.to_string()))?;
    }
    if family.sets.len() as u32 + 1 == position {
        return Ok(());
    }
    Err(Error::corrupt(
        subject,
        format!(
            "it has {} backup sets, and another file of these media has {}: nothing can be appended. Take other media, or bring \
             a copy of the shorter file that has them all; `--overwrite` (INIT) replaces what is there",
            family.sets.len(),
            position - 1
        ),
    ))
}

fn busy() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::WouldBlock, "another backup is writing to it")
}

/// Makes a file under a name that no file has yet, and locks it. Until it is locked it looks like
/// the rest of an interrupted backup: another backup that comes just then locks it, looks at it,
/// and releases or removes it.
fn create_locked(folder: &Folder, beside: &Path) -> std::io::Result<(File, FileSink)> {
    let name = name_of(beside);
    let create = || {
        folder.create(&name).map_err(|error| match error.kind() {
            // The caller has checked before that there is none.
            std::io::ErrorKind::AlreadyExists => busy(),
            _ => error,
        })
    };
    let mut file = create()?;
    for _ in 0..LOOKS_OF_OTHERS {
        match FileSink::of(file.try_clone()?, beside) {
            Ok(sink) => return Ok((file, sink)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => file = create()?,
            Err(error) => return Err(error),
        }
        std::thread::sleep(LOOK_OF_ANOTHER);
    }
    // The file is removed only if it is still the one that was made here.
    let _ = folder.remove(&name, &file);
    Err(busy())
}

/// Locks a file that was opened by a name, and checks that it still has the name. The previous
/// holder of the lock may have removed the name or given it to another file; from here on no other
/// backup does. `now` finds out which file has the name.
fn lock_named(file: &File, now: impl FnOnce() -> std::io::Result<Identity>) -> std::io::Result<()> {
    lock_media(file)?;
    match now() {
        Ok(now) if now == identity(file)? => Ok(()),
        Ok(_) => Err(busy()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(busy()),
        Err(error) => Err(error),
    }
}

/// Locks files that are to be replaced.
fn lock_all(paths: &[PathBuf]) -> Result<Vec<(PathBuf, File)>> {
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        if let Some(file) = opened(path, true)? {
            let locked = lock_named(&file, || identity_of(&look(path)?));
            locked.map_err(|error| Error::io(Subject::File(path.clone()), error))?;
            files.push((path.clone(), file));
        }
    }
    Ok(files)
}

/// Opens a file to lock it. Some file systems lock only files that are open for writing. `None` if
/// it is not there.
fn opened(path: &Path, follow: bool) -> Result<Option<File>> {
    let (to_write, to_read) = match follow {
        true => (regular::open_to_write(path), regular::open as fn(&Path) -> _),
        false => (regular::open_named_to_write(path), regular::open_named as fn(&Path) -> _),
    };
    let open = to_write.or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Err(error),
        _ => to_read(path),
    });
    match open {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(Subject::File(path.to_owned()), error)),
    }
}

/// What stands behind a file's name until it is complete.
pub const NEW: &str = ".pellucid-new";

/// Returns the temporary name that a file has until it is complete.
pub fn new_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(NEW);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_program_puts_under_the_name_is_not_taken_back() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("a.bak");
        let beside = new_name(&name);
        let folder = Folder::of(&name).unwrap();
        let file = folder.create(&name_of(&beside)).unwrap();
        let mut rename = Rename {
            folder,
            file: file.try_clone().unwrap(),
            beside,
            name: name.clone(),
            is_free: true,
            replaces: None,
            given: false,
        };
        // The file itself is gone, and its name another's.
        let moved = directory.path().join("moved");
        std::fs::rename(&rename.beside, &moved).unwrap();
        std::fs::write(&name, "somebody's").unwrap();
        assert!(rename.give().is_err() && !rename.given);
        std::fs::rename(&moved, &rename.beside).unwrap();
        std::fs::write(&rename.beside, "ours").unwrap();
        assert!(rename.give().is_err() && !rename.given);
        std::fs::remove_file(&name).unwrap();
        rename.give().unwrap();
        assert!(rename.given && !rename.beside.exists());
        assert_eq!(std::fs::read(&name).unwrap(), b"ours");
    }
}
