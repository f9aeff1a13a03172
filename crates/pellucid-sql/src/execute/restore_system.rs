//! RESTORE DATABASE of `master` and `msdb`: what scripts keep there, out of a backup of the same database.
//!
//! The file of `master` is replaced as that of any database is, under the key of this instance. Of `msdb` the rows are read into the
//! one that is there (`Instance::import_msdb`). The keys of the instance are in neither.

use std::path::Path;
use std::time::{Duration, Instant};

use pellucid::header::Standing;
use pellucid::media::Kind;
use pellucid::message as known_messages;
use pellucid::{Algorithm, Error, Subject};
use pellucid_backup::history::{History, FILE, MASTER_FILE};
use pellucid_backup::job::Restoring;
use pellucid_backup::restore::OpenSet;
use pellucid_files::paths::beside;
use pellucid_host::folder::{name_of, Folder};
use pellucid_tsql::ast::{BackupKind, Restore, RestoreFlag, RestoreSource};
use pellucid_vfs::seal_request::{Credentials, Protection, Request};

use super::device::{told, Doing};
use super::restore::{check_media_name, first_header, open, position, Options};
use super::Done;
use crate::instance::{DatabaseFile, Known, MASTER, MSDB};
use crate::message::{table, Message};
use crate::session::Session;

/// The file that a set of `msdb` is restored to, so that its rows can be read.
const WORKING_NAME: &str = ".msdb.db.restored";
/// How long a restore waits for programs that have the database open.
const WAIT: Duration = Duration::from_secs(10);

impl Session {
    pub(super) fn restore_system(
        &mut self,
        known: &Known,
        statement: &Restore,
        options: &Options,
    ) -> Done {
        let whole = statement.kind == BackupKind::Database
            && statement.files.is_empty()
            && [MASTER, MSDB].contains(&known.id)
            && !options.has(RestoreFlag::NoRecovery)
            && !options.standby
            && options.stop.is_none()
            && options.moves.is_empty();
        let RestoreSource::Devices(devices) = &statement.source else {
            return Err(Message::unsupported(format!("RESTORE DATABASE {}", known.name)).into());
        };
        if !whole {
            let what = format!("RESTORE of {} but of a full backup as a whole", known.name);
            return Err(Message::unsupported(what).into());
        }
        // As there, where `master` is restored by a session that can be in no other one.
        if known.id == MSDB && self.databases.current_id() == MSDB {
            return Err(Message::of(table::RESTORE_OF_CURRENT, [&known.name]).into());
        }
        let devices = self.files_of(devices)?;
        let failed = |error: Error| told(error.into(), &devices, Doing::Reading);
        let media = open(&devices)?;
        let position = position(options)?;
        check_media_name(&media, options)?;
        let header = first_header(&media, position).map_err(failed)?;
        if header.algorithm.is_none() || !header.sealed_source {
            let why =
                format!("it is NOT sealed, and '{}' comes out of sealed sets alone", known.name);
            return Err(failed(Error::misuse(Subject::BackupSet(position), why)));
        }
        let credentials = Credentials::gather(&Request::default())?.for_many();
        let set = OpenSet::open_as_it_is(&media, position, &credentials).map_err(failed)?;
        let facts = set.description().clone();
        // Only BACKUP DATABASE of this name says all of it; once its file was called as the database.
        let [data, _] = DatabaseFile::defaults(&known.name);
        let is_it = header.kind == Kind::Full
            && facts.database == known.name
            && facts.server.created == known.created
            && facts
                .server
                .files
                .first()
                .is_some_and(|(logical, _)| *logical == known.name || *logical == data.name);
        if !is_it {
            return Err(Message::known(&known_messages::ANOTHER_DATABASE, &[&known.name]).into());
        }
        drop(set);
        if super::database::is_open_elsewhere(&known.path) {
            return Err(Message::from(known_messages::IN_USE).into());
        }
        if known.id == MSDB && !options.has(RestoreFlag::Replace) {
            let tail = &known_messages::TAIL_NOT_BACKED_UP;
            return Err(Message::known(tail, &[&known.name]).into());
        }
        // The rows of an msdb go into the one that is there.
        let to = match known.id {
            MSDB => self.databases.instance.home().join(WORKING_NAME),
            _ => known.path.clone(),
        };
        let job = Restoring {
            media: devices.clone(),
            base: None,
            point: None,
            only: Vec::new(),
            position: Some(position),
            to: to.clone(),
            protections: vec![Protection::KeyFile(
                self.databases.instance.keyring()?.ensure_history_key()?,
            )],
            algorithm: Algorithm::Aes256,
            decrypted: false,
            plain_differential: false,
            allow_clear: false,
            allow_unsigned: false,
            // Nothing lies at the working name, or it is not this restore's.
            replace: known.id != MSDB && options.has(RestoreFlag::Replace),
            leave: Standing::Online,
            timeout: WAIT,
            workers: pellucid_backup::job::processors(),
        };
        let here = self.databases.current_name();
        match known.id {
            MSDB => self.databases.release_all()?,
            _ => self.databases.release(known)?,
        }
        // Left behind, they are told as missing.
        let _ = History::forget_working_names(MASTER_FILE);
        let started = Instant::now();
        let mut enabled = 0;
        let what = ("RESTORE DATABASE", &*known.name);
        let done = match known.id {
            MSDB => {
                remove_working_file(&to);
                let done = self.run_restore_and(&job, what, options, &mut |instance| {
                    enabled = instance.import_msdb(&to).map_err(|message| {
                        Error::misuse(Subject::BackupSet(position), message.text)
                    })?;
                    Ok(())
                });
                remove_working_file(&to);
                done
            }
            _ => self.run_restore(&job, what, options),
        };
        let done = done.map_err(|error| told(error, &devices, Doing::Reading))?;
        if known.id == MSDB {
            let instance = &self.databases.instance;
            instance.register_known()?;
            let sql = "UPDATE restorefile SET destination_phys_name = ?2 WHERE destination_phys_name = ?1";
            let names = (to.display().to_string(), known.path.display().to_string());
            instance.msdb().execute(sql, names)?;
            let known = match instance.find(&here)? {
                Some(known) => known,
                None => instance.database("master")?,
            };
            self.databases.enter(&known);
        }
        if enabled > 0 {
            self.inform(Message::of(table::JOBS_DISABLED, [&enabled]));
        }
        if done.unrecorded.is_none() {
            self.note_history(known, &known.path, options, false)?;
        }
        let took = started.elapsed();
        self.tell_restored(known, Some(&facts), position, &done, options, took, None);
        Ok(())
    }
}

/// What a restore that was killed has left goes as well.
fn remove_working_file(path: &Path) {
    if let Ok(folder) = Folder::of(path) {
        for ending in ["", "-journal", "-wal", "-shm", "-pellucid"] {
            let _ = folder.remove_name(&name_of(&beside(path, ending)));
        }
    }
    let _ = History::forget_working_names(FILE);
}
