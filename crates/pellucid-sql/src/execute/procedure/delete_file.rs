//! xp_delete_file: removes old media of this instance, as maintenance plans do.
//!
//! A script gives it a folder and a date. What it removes is never what the script says alone: a file has to be a backup
//! medium that the history knows as one that this instance wrote, with the manifests that it wrote, and to lie below the
//! instance's folders. Each folder is opened by its own name in the one above, so that no symbolic link leads elsewhere,
//! and the file that is removed is the one that was read.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use pellucid::clock::now_micros;
use pellucid::hash::hex;
use pellucid::media::Manifest;
use pellucid::shown::Shown;
use pellucid_backup::restore::{Family, FileSource, Tail};
use pellucid_backup::set::lock_media;
use pellucid_host::folder::Folder as OpenFolder;
use rusqlite::OptionalExtension;

use super::Arguments;
use crate::execute::{Done, Raised};
use crate::instance::paths::{split_drive, Folder};
use crate::message::{system_error, table, Message};
use crate::session::Session;
use crate::values::moment::{Moment, TICKS_SECOND};

const NAME: &str = "xp_delete_file";
/// Files that stay are told, so many at most.
const TOLD_MOST: usize = 20;

/// A file of a medium that is old enough.
struct Found {
    folder: OpenFolder,
    name: OsString,
    path: PathBuf,
    /// Open, and locked where the file system can, so that no backup writes to it.
    file: File,
    family: Family,
}

/// What is to go.
struct Wanted {
    /// Without its full stop; none: any.
    extension: Option<String>,
    /// In microseconds since 1970.
    before: u64,
}

impl Session {
    pub(super) fn xp_delete_file(&mut self, arguments: &Arguments<'_>) -> Done {
        self.delete_files(arguments).map_err(|raised| raised.in_procedure(NAME))
    }

    fn delete_files(&mut self, arguments: &Arguments<'_>) -> Done {
        if arguments.integer(0)?.unwrap_or(0) != 0 {
            return Err(Message::unsupported("xp_delete_file of reports").into());
        }
        let written = arguments.required(1)?;
        let extension = arguments.text(2)?.filter(|text| !matches!(text.trim(), "" | "*"));
        let wanted = Wanted {
            extension: extension.map(|text| text.trim().trim_start_matches('.').to_owned()),
            before: match arguments.text(3)? {
                Some(text) => micros(&text)?,
                None => now_micros(),
            },
        };
        let deep = arguments.integer(4)?.unwrap_or(0) == 1;
        let place = self.databases.instance.file(&written, Folder::Backup)?;
        let root = self.root_of(&written, &place)?;
        let failed = |error: &std::io::Error| {
            let number = error.raw_os_error().unwrap_or(0);
            Raised::from(Message::of(table::DELETE_FAILED, [&number, &system_error(error)]))
        };
        // Of a name within it: the folder itself is what is opened.
        let mut folder = OpenFolder::of(&root.join("x")).map_err(|error| failed(&error))?;
        let below = place.strip_prefix(&root).unwrap_or(Path::new(""));
        let names: Vec<OsString> =
            below.components().map(|part| part.as_os_str().to_owned()).collect();
        let mut only = None;
        let mut path = root;
        for (at, name) in names.iter().enumerate() {
            let is_last = at + 1 == names.len();
            if is_last && folder.look(name).is_ok_and(|found| found.is_file()) {
                only = Some(name.clone());
                break;
            }
            folder = folder.folder(name).map_err(|error| failed(&error))?;
            path.push(name);
        }
        let mut told = Vec::new();
        let mut found = Vec::new();
        match only {
            Some(name) => look_at(&folder, &path, name, &wanted, &mut found, &mut told),
            None => look_in(&folder, &path, (deep, &wanted), &mut found, &mut told)
                .map_err(|error| failed(&error))?,
        }
        self.remove_media(found, &wanted, &mut told)?;
        told.truncate(TOLD_MOST);
        told.iter().for_each(|what| self.inform(Message::of(table::REMARK_OF, [what])));
        Ok(())
    }

    /// The folder of the instance's that a path lies in: that of its drive, or the default one for backups.
    fn root_of(&self, written: &str, place: &Path) -> Done<PathBuf> {
        let instance = &self.databases.instance;
        let mut roots = vec![instance.folder(Folder::Backup)?, instance.home().join("drives")];
        if let Some((drive, _)) = split_drive(written) {
            roots = vec![instance.file(&format!(r"{drive}:\"), Folder::Backup)?];
        }
        let is_plain =
            |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        let is_inside =
            |root: &&PathBuf| place.starts_with(root) && place.components().all(is_plain);
        let found = roots.iter().find(is_inside).cloned();
        let refused = || {
            let why = "xp_delete_file removes backups below the folder for backups and below drives alone; `pellucid \
                       history prune --files` removes those that lie elsewhere";
            Message::path(written, why)
        };
        Ok(found.ok_or_else(refused)?)
    }

    /// Removes media of which every file was found, and every set in them is old and known.
    fn remove_media(&self, found: Vec<Found>, wanted: &Wanted, told: &mut Vec<String>) -> Done {
        let mut media: BTreeMap<[u8; 16], Vec<Found>> = BTreeMap::new();
        for one in found {
            media.entry(one.family.header.media_set).or_default().push(one);
        }
        for mut files in media.into_values() {
            // One manifest commits a set in all files.
            let all = files.iter().flat_map(|one| &one.family.sets);
            if let Some(newest) = all.max_by_key(|set| set.header.position).cloned() {
                files.iter_mut().for_each(|one| one.family.commit_by(&newest));
            }
            let copies: BTreeSet<(u16, u8)> = files
                .iter()
                .map(|one| (one.family.header.family, one.family.header.mirror))
                .collect();
            let mut why = None;
            for one in &files {
                let count = usize::from(one.family.header.families)
                    * usize::from(one.family.header.mirrors);
                why = match count == copies.len() {
                    false => Some("other files of its media set are not among those that go"),
                    true => self.stays(&one.family, wanted)?,
                };
                if why.is_some() {
                    break;
                }
            }
            for one in files {
                let shown = one.path.shown();
                match why {
                    Some(why) => told.push(format!("`{shown}` stays: {why}")),
                    None => {
                        if let Err(error) = one.folder.remove(&one.name, &one.file) {
                            told.push(format!("`{shown}` stays: {error}"));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Why a file of media stays, if it does.
    fn stays(&self, family: &Family, wanted: &Wanted) -> Done<Option<&'static str>> {
        let now = now_micros() / 1_000_000;
        if matches!(family.tail, Tail::Damaged(_)) {
            return Ok(Some("it is damaged, and what is behind that cannot be known"));
        }
        if family.sets.is_empty() {
            return Ok(Some("it has no whole backup"));
        }
        let mut known = self.databases.instance.msdb().prepare_cached(
            "SELECT p.manifest FROM backupset AS s JOIN backupmediaset AS m USING(media_set_id) \
             JOIN pellucid_manifest AS p USING(backup_set_uuid) \
             WHERE s.backup_set_uuid = ?1 AND m.media_uuid = ?2 AND p.is_own = 1",
        )?;
        for set in &family.sets {
            let names = [hex(&set.header.set), hex(&family.header.media_set)];
            let manifest: Option<Option<String>> =
                known.query_row(names, |row| row.get(0)).optional()?;
            if manifest.flatten().as_deref() != Some(&hex(&Manifest::hash(&set.manifest_bytes))) {
                return Ok(Some("a backup in it is not known as one that this instance wrote"));
            }
            if set.manifest.finished >= wanted.before {
                return Ok(Some("a backup in it is newer than the date"));
            }
            if set.header.expires > now {
                return Ok(Some("a backup in it has not expired"));
            }
        }
        Ok(None)
    }
}

/// The files in a folder that the extension and their own time choose; with `deep` also those of the folders in it.
fn look_in(
    folder: &OpenFolder,
    path: &Path,
    (deep, wanted): (bool, &Wanted),
    found: &mut Vec<Found>,
    told: &mut Vec<String>,
) -> std::io::Result<()> {
    let mut names = folder.names()?;
    names.sort();
    for name in names {
        let Ok(looked) = folder.look(&name) else { continue };
        if looked.is_dir() && deep {
            let within = folder.folder(&name);
            let at = path.join(&name);
            let done =
                within.and_then(|within| look_in(&within, &at, (false, wanted), found, told));
            if let Err(error) = done {
                told.push(format!("`{}` was left out: {error}", at.shown()));
            }
        } else if looked.is_file() {
            look_at(folder, path, name, wanted, found, told);
        }
    }
    Ok(())
}

fn look_at(
    folder: &OpenFolder,
    path: &Path,
    name: OsString,
    wanted: &Wanted,
    found: &mut Vec<Found>,
    told: &mut Vec<String>,
) {
    let path = path.join(&name);
    let has_extension = wanted.extension.as_ref().is_none_or(|wanted| {
        path.extension().is_some_and(|own| own.to_string_lossy().eq_ignore_ascii_case(wanted))
    });
    if !has_extension {
        return;
    }
    let opened = open(folder, &name, &path, wanted);
    match opened {
        Ok(Some((folder, file, family))) => found.push(Found { folder, name, path, file, family }),
        Ok(None) => {}
        Err(error) => told.push(format!("`{}` stays: {error}", path.shown())),
    }
}

/// A file that is older than the date, locked and read; none for a newer one.
fn open(
    folder: &OpenFolder,
    name: &OsString,
    path: &Path,
    wanted: &Wanted,
) -> std::io::Result<Option<(OpenFolder, File, Family)>> {
    // Some file systems lock only for writers.
    let file = folder.open_to_write(name).or_else(|_| folder.open(name))?;
    let changed = file.metadata()?.modified()?;
    let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    if changed >= u128::from(wanted.before) {
        return Ok(None);
    }
    lock_media(&file)?;
    let family = Family::open(Box::new(FileSource::of(file.try_clone()?, path)))
        .map_err(|_| std::io::Error::other("it is no backup medium"))?;
    Ok(Some((folder.try_clone()?, file, family)))
}

/// A date as SQL Server's, in microseconds since 1970. The server's time is UTC.
fn micros(text: &str) -> Done<u64> {
    /// 1970-01-01, counted from 1900-01-01.
    const DAYS_TO_1970: i64 = 25_567;
    const TICKS_MICRO: i64 = TICKS_SECOND / 1_000_000;
    let moment = Moment::parse(text, 0).ok_or_else(Message::not_a_date)?;
    let micros = (moment.days() - DAYS_TO_1970) * 86_400_000_000 + moment.ticks / TICKS_MICRO;
    Ok(u64::try_from(micros).unwrap_or(0))
}
