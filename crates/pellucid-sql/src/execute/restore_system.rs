//! RESTORE DATABASE of `master` and `msdb`: what scripts keep there, out of a backup of the same database.
//!
//! The file is replaced as that of any database is, under the key of this instance. Its keys are in neither.

use std::time::{Duration, Instant};

use pellucid::header::Standing;
use pellucid::media::Kind;
use pellucid::message as known_messages;
use pellucid::{Algorithm, Error, Subject};
use pellucid_backup::history::{History, FILE, MASTER_FILE};
use pellucid_backup::job::Restoring;
use pellucid_backup::restore::OpenSet;
use pellucid_tsql::ast::{BackupKind, Restore, RestoreFlag, RestoreSource};
use pellucid_vfs::seal_request::{Credentials, Protection, Request};

use super::device::{told, Doing};
use super::restore::{check_media_name, first_header, open, position, Options};
use super::Done;
use crate::instance::{DatabaseFile, Known, MASTER, MSDB};
use crate::message::{table, Message};
use crate::session::Session;

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
        let job = Restoring {
            media: devices.clone(),
            base: None,
            point: None,
            only: Vec::new(),
            position: Some(position),
            to: known.path.clone(),
            protections: vec![Protection::KeyFile(
                self.databases.instance.keyring()?.ensure_history_key()?,
            )],
            algorithm: Algorithm::Aes256,
            decrypted: false,
            plain_differential: false,
            allow_clear: false,
            allow_unsigned: false,
            replace: options.has(RestoreFlag::Replace),
            leave: Standing::Online,
            timeout: WAIT,
            workers: pellucid_backup::job::processors(),
        };
        let here = self.databases.current_name();
        match known.id {
            MSDB => {
                self.databases.release_all()?;
                self.databases.instance.close_msdb()?;
            }
            _ => self.databases.release(known)?,
        }
        let file = if known.id == MSDB { FILE } else { MASTER_FILE };
        // Left behind, they are told as missing.
        let _ = History::forget_working_names(file);
        let started = Instant::now();
        let done = self.run_restore(&job, ("RESTORE DATABASE", &known.name), options);
        // Whatever came of it, the session goes on with what is there.
        self.databases.instance.open_msdb_if_closed()?;
        let done = done.map_err(|error| told(error, &devices, Doing::Reading))?;
        if known.id == MSDB {
            let instance = &self.databases.instance;
            let known = match instance.find(&here)? {
                Some(known) => known,
                None => instance.database("master")?,
            };
            self.databases.enter(&known);
        }
        if done.unrecorded.is_none() {
            self.note_history(known, &known.path, options, false)?;
        }
        let took = started.elapsed();
        self.tell_restored(known, Some(&facts), position, &done, options, took, None);
        Ok(())
    }
}
