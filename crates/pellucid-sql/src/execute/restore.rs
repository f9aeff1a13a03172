//! RESTORE DATABASE and RESTORE LOG.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid::header::Standing;
use pellucid::media::{Description, Kind, SetHeader};
use pellucid::shown::Shown;
use pellucid::{Algorithm, Error};
use pellucid_backup::job::{
    mend, open_family, open_media, restore_and, Believe, Mending, Restored, Restoring,
};
use pellucid_backup::restore::{is_log_set, not_sealed, Media, OpenSet};
use pellucid_engine::inspect::Kind as Found;
use pellucid_files::paths::{belongs_beside, BELONGS_BESIDE};
use pellucid_host::DatabaseError;
use pellucid_tsql::ast::{
    BackupKind, FileSelection, Restore, RestoreFlag, RestoreOption, RestoreSource, StopMark,
};
use pellucid_vfs::seal_request::{Credentials, Request as KeyRequest};

use super::backup::{percent, percent_processed, processed, successfully_processed, Stats};
use super::device::{told, Doing};
use super::media_option::{self, MediaOptions};
use super::request::Request;
use super::steps::{Step, Steps};
use super::{Done, Raised};
use crate::instance::files;
use crate::instance::paths::{canonical, Folder};
use crate::instance::{Instance, Known, State};
use crate::message::{table, Message};
use crate::session::{Report, Session};

/// How long a restore waits for programs that have the database open.
const WAIT: Duration = Duration::from_secs(10);

/// What WITH says.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub flags: Vec<RestoreFlag>,
    pub media: MediaOptions,
    pub moves: Vec<(String, String)>,
    pub file: Option<u64>,
    pub stop: Option<Stop>,
    /// `STANDBY`: the file of it has nothing to undo, because no set has what was not committed.
    pub standby: bool,
}

/// The point that a restore stops at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// `STOPAT`, in microseconds since 1970.
    At(u64),
    /// `STOPATMARK` and `STOPBEFOREMARK`.
    Mark {
        name: String,
        /// Not before this moment.
        after: u64,
        /// Behind the commit with the mark, or before it.
        includes: bool,
    },
}

impl Options {
    /// Whether WITH names the flag.
    pub fn has(&self, flag: RestoreFlag) -> bool {
        self.flags.contains(&flag)
    }
}

impl Session {
    pub(super) fn restore(&mut self, statement: &Restore) -> Done {
        let name = match statement.kind {
            BackupKind::Database => "RESTORE DATABASE",
            BackupKind::Log => "RESTORE LOG",
        };
        self.restore_database(statement).map_err(|raised| match raised.is_cancelled {
            true => raised,
            false => raised.and(Message::of(table::TERMINATING, [&name])),
        })
    }

    fn restore_database(&mut self, statement: &Restore) -> Done {
        if self.transactions > 0 {
            return Err(Message::of(table::BACKUP_IN_TRANSACTION, []).into());
        }
        let name = self.database_name(&statement.database)?;
        if name.eq_ignore_ascii_case("tempdb") {
            return Err(Message::of(table::TEMPDB_REFUSED, []).into());
        }
        let known = self.databases.instance.find(&name)?;
        let options = self.restore_options(&statement.options)?;
        self.check_restore(&options)?;
        if let Some(known) = known.as_ref().filter(|known| known.is_system()) {
            return self.restore_system(known, statement, &options);
        }
        let devices = match &statement.source {
            RestoreSource::Snapshot(_) => {
                // There are none.
                return Err(Message::of(table::NO_SNAPSHOT, []).into());
            }
            RestoreSource::Nothing => {
                let known = known.ok_or_else(|| Message::of(table::UNKNOWN_DATABASE, [&name]))?;
                return self.recover(&known, &options);
            }
            RestoreSource::Devices(devices) => self.files_of(devices)?,
        };
        if statement.kind == BackupKind::Log {
            let none = || Message::of(table::DATABASE_NOT_MADE, [&name]);
            return self.restore_log(&known.ok_or_else(none)?, devices, &options);
        }
        if self.databases.current_name().eq_ignore_ascii_case(&name) {
            return Err(Message::of(table::RESTORE_OF_CURRENT, [&name]).into());
        }
        if !matches!(&statement.files[..], [] | [FileSelection::Page(_)]) {
            // Media that there are not are told first.
            open(&devices)?;
        }
        if let Some(pages) = pages_of(&statement.files)? {
            let known = known.ok_or_else(|| Message::of(table::UNKNOWN_DATABASE, [&name]))?;
            let text = self.text(&pages)?;
            return self.restore_pages(&known, &text, devices, &options);
        }
        self.restore_from(&name, known, devices, &options)
    }

    pub(super) fn restore_options(&mut self, given: &[RestoreOption]) -> Done<Options> {
        let mut options = Options::default();
        for option in given {
            match option {
                RestoreOption::Flag(flag) => options.flags.push(*flag),
                RestoreOption::Media(option) => self.media_option(option, &mut options.media)?,
                RestoreOption::Standby(file) => {
                    self.text(file)?;
                    options.standby = true;
                }
                RestoreOption::Move { logical, path } => {
                    options.moves.push((self.text(logical)?, self.text(path)?));
                }
                RestoreOption::File(number) => options.file = Some(self.number(number)?),
                RestoreOption::StopAt(text) => {
                    options.stop = Some(Stop::At(super::certificate::micros(&self.text(text)?)?));
                }
                RestoreOption::StopAtMark(mark) => options.stop = Some(self.stop(mark, true)?),
                RestoreOption::StopBeforeMark(mark) => options.stop = Some(self.stop(mark, false)?),
            }
        }
        media_option::check(&options.media.flags)?;
        Ok(options)
    }

    fn stop(&mut self, mark: &StopMark, includes: bool) -> Done<Stop> {
        let after = match &mark.after {
            Some(after) => super::certificate::micros(&self.text(after)?)?,
            None => 0,
        };
        Ok(Stop::Mark { name: self.text(&mark.mark)?, after, includes })
    }

    pub(super) fn check_restore(&self, options: &Options) -> Done {
        use RestoreFlag as R;
        if options.has(R::Recovery) && options.has(R::NoRecovery) {
            return Err(Message::option_conflict("RECOVERY", "NORECOVERY").into());
        }
        for (flag, name) in [(R::Recovery, "RECOVERY"), (R::NoRecovery, "NORECOVERY")] {
            if options.standby && options.has(flag) {
                return Err(Message::option_conflict("STANDBY", name).into());
            }
        }
        for flag in [
            R::Partial,
            R::KeepReplication,
            R::KeepCdc,
            R::EnableBroker,
            R::ErrorBrokerConversations,
            R::NewBroker,
        ] {
            if options.has(flag) {
                return Err(Message::unsupported(flag).into());
            }
        }
        Ok(())
    }

    /// RESTORE without FROM.
    fn recover(&mut self, known: &Known, options: &Options) -> Done {
        let standing = self.databases.standing(known)?;
        let restoring = known.state == State::Restoring || standing == Standing::Restoring;
        if !restoring && standing == Standing::Online {
            return Err(Message::of(table::RECOVERED_ALREADY, []).into());
        }
        if options.has(RestoreFlag::NoRecovery) {
            self.databases.set_standing(known, Standing::Restoring)?;
            return Ok(self.databases.instance.set(known, "state", &1)?);
        }
        // A standby has all of it already.
        let steps = match restoring {
            true => Steps::parse(known.restored_from.as_deref().unwrap_or_default()),
            false => Steps::default(),
        };
        self.roll_forward(known, &steps, options, "RESTORE DATABASE")?;
        self.inform(successfully_processed("RESTORE DATABASE", 0, 0, Duration::ZERO));
        Ok(())
    }

    fn restore_from(
        &mut self,
        name: &str,
        known: Option<Known>,
        devices: Vec<PathBuf>,
        options: &Options,
    ) -> Done {
        let failed = |error: Error| told(error.into(), &devices, Doing::Reading);
        let media = open(&devices)?;
        let position = position(options)?;
        let facts = self.facts(&media, position).map_err(failed)?;
        if facts.is_none() {
            // Who is missing is said before anything else.
            let credentials = Credentials::gather(&KeyRequest::default())?.for_many();
            OpenSet::open_as_it_is(&media, position, &credentials).map_err(failed)?;
        }
        check_media_name(&media, options)?;
        let header = first_header(&media, position).map_err(failed)?;
        if header.kind == Kind::Log {
            return Err(failed(is_log_set(position)));
        }
        // A point that is not reached leaves it restoring.
        let mut options = options.clone();
        let not_reached = stop_of_database(&media, &header, &options)?;
        if not_reached.is_some() {
            options.flags.push(RestoreFlag::NoRecovery);
        }
        let options = &options;
        let answers = Self::answers_for_path(&header);
        let to = self.place(name, known.as_ref(), facts.as_ref(), answers, options)?;
        let is_moved = known.is_some() || !options.moves.is_empty();
        let (differential, sealed) = (header.kind != Kind::Full, header.sealed_source);
        let was_sealed = match &known {
            Some(known) => {
                matches!(self.databases.look(known)?.as_deref(), Ok(Found::Sealed(_)))
            }
            None => false,
        };
        let standing = match &known {
            Some(known) => self.databases.standing(known)?,
            None => Standing::Online,
        };
        let goes_on =
            |known: &Known| known.state == State::Restoring || standing != Standing::Online;
        let base = match (differential, &known) {
            (false, _) => None,
            (true, Some(known @ Known { restored_from: Some(from), .. })) if goes_on(known) => {
                let steps = Steps::parse(from);
                Some(steps.full().map_or_else(Vec::new, |full| full.files.clone()))
            }
            (true, _) => return Err(not_ready().into()),
        };
        let is_own = known.as_ref().is_some_and(|known| known.path == to);
        if was_sealed && header.algorithm.is_none() && !Believe::default().any() {
            let error = not_sealed(position, &format!("the database '{name}' is"));
            return Err(told(error.into(), &devices, Doing::Reading));
        }
        if let Some(known) = &known {
            self.databases.release(known)?;
            // Whoever goes on with the old file would write what nobody finds.
            if !is_own && super::database::is_open_elsewhere(&known.path) {
                return Err(Message::from(pellucid::message::IN_USE).into());
            }
        }
        let restoring = known.as_ref().is_some_and(goes_on);
        // The mark has its place where log backups can follow.
        let can_mark = sealed && header.version2.is_some_and(|own| own.chain.is_some());
        let leave = match (options.standby, options.has(RestoreFlag::NoRecovery)) {
            (true, _) if !can_mark => return Err(Message::unsupported("STANDBY").into()),
            (true, _) => Standing::Standby,
            (_, true) if can_mark => Standing::Restoring,
            _ => Standing::Online,
        };
        let job = Restoring {
            media: devices.clone(),
            base,
            point: None,
            only: Vec::new(),
            position: Some(position),
            to: to.clone(),
            protections: Vec::new(),
            algorithm: Algorithm::Aes256,
            // A plain one takes the place of an encrypted one where REPLACE says so, as there.
            decrypted: !sealed && options.has(RestoreFlag::Replace) && is_own && was_sealed,
            plain_differential: false,
            allow_clear: false,
            allow_unsigned: false,
            replace: options.has(RestoreFlag::Replace) || restoring,
            leave,
            timeout: WAIT,
            workers: pellucid_backup::job::processors(),
        };
        let started = Instant::now();
        let done = self.run_restore(&job, ("RESTORE DATABASE", name), options).map_err(
            |error| match error {
                DatabaseError::Typed(Error::Misuse { .. }) if differential => wrong_base(error),
                error => told(error, &devices, Doing::Reading),
            },
        )?;
        let took = started.elapsed();
        let known = match known {
            Some(known) => {
                if known.path != to {
                    self.databases.instance.set(
                        &known,
                        "path",
                        &crate::instance::registry::text(&to),
                    )?;
                }
                known
            }
            None => self.databases.instance.register(name, &to)?,
        };
        let step = Step::of_database(&header, &devices);
        let steps = match (differential, &known.restored_from) {
            (true, Some(from)) => Steps::parse(from).with_differential(step),
            _ => Steps::of(step),
        };
        self.note_restore(&known, &to, facts.as_ref(), &steps, options, &done)?;
        if !options.has(RestoreFlag::NoRecovery) && !options.standby {
            self.keep_names(name, facts.as_ref())?;
        }
        let pages = match differential {
            // Those that the set has, as at its backup.
            true => first_pages(&media, position).unwrap_or(done.pages),
            false => done.pages,
        };
        let done = Restored { pages, ..done };
        self.tell_restored(&known, facts.as_ref(), position, &done, options, took, not_reached);
        if !is_moved && !answers && facts.as_ref().is_some_and(|facts| Path::new(&facts.path) != to)
        {
            self.inform(Message::of(table::RESTORED_TO, [&to.shown()]));
        }
        if was_sealed && !done.sealed {
            self.inform(Message::of(table::NOT_ENCRYPTED_ANY_MORE, [&known.name]));
        }
        Ok(())
    }

    /// Whether somebody who has a private key of this instance answers for what a set says of paths. Anybody can make one
    /// that is in clear, or under a key that he has given away.
    fn answers_for_path(set: &SetHeader) -> bool {
        // Without key files and passphrases, and not by a recovery protector, which the public half makes.
        set.algorithm.is_some() && set.unwrap(&Credentials::default()).is_ok()
    }

    /// Where the database goes: to where MOVE says, to where it is known; else to where it lay, if somebody answers for that
    /// (`answers`), and if not into the folder for data, under the database's own name, if nothing has that.
    fn place(
        &mut self,
        name: &str,
        known: Option<&Known>,
        facts: Option<&Description>,
        answers: bool,
        options: &Options,
    ) -> Done<PathBuf> {
        let files = facts.map(|facts| &facts.server.files);
        let stem = facts.map_or(name, |facts| facts.database.as_str());
        let logical = |at: usize, default: String| {
            files.and_then(|files| files.get(at)).map_or(default, |(logical, _)| logical.clone())
        };
        let (data, log) = (logical(0, stem.to_owned()), logical(1, format!("{stem}_log")));
        let mut moved = None;
        for (logical, path) in &options.moves {
            let file = self.databases.instance.file(path, Folder::Data)?;
            if logical.eq_ignore_ascii_case(&data) {
                moved = Some(file);
            } else if !logical.eq_ignore_ascii_case(&log) {
                return Err(Message::of(table::FILE_NOT_OF_DATABASE, [&logical, &name]).into());
            }
        }
        let mut is_free = moved.is_some() || known.is_some() || answers;
        let to = canonical(match (moved, known) {
            (Some(to), _) => to,
            (None, Some(known)) => known.path.clone(),
            (None, None) => match facts.map(|facts| PathBuf::from(&facts.path)) {
                Some(path) if answers && path.parent().is_some_and(Path::is_dir) => path,
                // Nothing that the media say is in the name: whoever made them would choose it.
                _ => {
                    let folder = self.databases.instance.folder(Folder::Data)?;
                    is_free |= answers;
                    folder.join(super::database::file_name(name)?)
                }
            },
        });
        if !is_free && std::fs::symlink_metadata(&to).is_ok() {
            return Err(not_planned(Message::file_exists(&to), &data, &to));
        }
        if belongs_beside(&to) {
            let why = Message::path(&to.display().to_string(), BELONGS_BESIDE);
            return Err(not_planned(why, &data, &to));
        }
        let other = self.databases.instance.of_file(&to)?;
        if let Some(other) = other.filter(|other| known.is_none_or(|known| known.id != other.id)) {
            return Err(not_planned(Message::file_in_use(&to, &other.name), &data, &to));
        }
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(Err(error)) = folder.map(std::fs::metadata) {
            return Err(not_planned(Message::no_directory(&to, &error), &data, &to));
        }
        Ok(to)
    }

    /// What only the key tells; none without it.
    pub(super) fn facts(
        &self,
        media: &Media,
        position: u32,
    ) -> pellucid::Result<Option<Description>> {
        let credentials = Credentials::gather(&KeyRequest::default())?.for_many();
        let header = first_header(media, position)?;
        match header.algorithm {
            None => Ok(header.described(None).ok()),
            // Whether it has to be signed is asked by whoever restores it.
            Some(_) => match OpenSet::open_as_it_is(media, position, &credentials) {
                Ok(set) => Ok(Some(set.description().clone())),
                // Which certificate is missing is said by whoever needs it.
                Err(Error::MissingKey { .. } | Error::Message { .. }) => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    pub(super) fn run_restore(
        &mut self,
        job: &Restoring,
        (command, name): (&str, &str),
        options: &Options,
    ) -> Result<Restored, DatabaseError> {
        self.run_restore_and(job, (command, name), options, &mut |_| Ok(()))
    }

    /// The same, with what is to be done with the restored file before the history is written.
    pub(super) fn run_restore_and(
        &mut self,
        job: &Restoring,
        (command, name): (&str, &str),
        options: &Options,
        then: &mut dyn FnMut(&Instance) -> Result<(), DatabaseError>,
    ) -> Result<Restored, DatabaseError> {
        let line = self.frame().line;
        let procedure = self.frame().procedure.clone();
        let server = self.shared.server_name().to_owned();
        let mut stats = Stats::new(options.media.stats);
        let text = self.statement_text();
        let mut request =
            Request::begin(&self.databases.instance, &self.shared, command, name, &text);
        let (sink, instance) = (&mut self.sink, &self.databases.instance);
        let mut progress = |done, all| {
            let percent = percent(done, all);
            request.progress(percent);
            stats.until(percent.min(99.0), &mut |message| {
                let (procedure, server) = (procedure.clone(), server.clone());
                sink.message(&Report { message, line, procedure, server });
            });
        };
        restore_and(job, &mut progress, &mut || then(instance))
    }

    #[allow(clippy::too_many_arguments)]
    fn note_restore(
        &mut self,
        known: &Known,
        to: &Path,
        facts: Option<&Description>,
        steps: &Steps,
        options: &Options,
        done: &Restored,
    ) -> Done {
        let instance = &self.databases.instance;
        instance.drop_pending_key(known)?;
        let restoring = options.has(RestoreFlag::NoRecovery);
        instance.set(known, "state", &i64::from(restoring))?;
        let from = (restoring || options.standby).then(|| steps.to_string());
        instance.set(known, "restored_from", &from)?;
        if options.has(RestoreFlag::RestrictedUser) {
            instance.set(known, "access", &2)?;
        }
        if let Some(server) = facts.map(|facts| &facts.server).filter(|server| !server.is_none()) {
            let model = match server.recovery_model.as_str() {
                "FULL" => 1,
                "BULK_LOGGED" => 2,
                _ => 3,
            };
            self.databases.instance.set(known, "recovery_model", &model)?;
            if !restoring && !options.standby {
                self.databases
                    .set_recovery(&Known { state: State::Online, ..known.clone() }, model)?;
            }
            let instance = &self.databases.instance;
            if server.compatibility_level > 0 {
                instance.set(
                    known,
                    "compatibility_level",
                    &i64::from(server.compatibility_level),
                )?;
            }
        }
        if done.unrecorded.is_none() {
            self.note_history(known, to, options, restoring)?;
        }
        Ok(())
    }

    /// What only the statement knows of the restore that was written into the history last.
    pub(super) fn note_history(
        &self,
        known: &Known,
        to: &Path,
        options: &Options,
        restoring: bool,
    ) -> Done {
        let (at, mark, before) = match &options.stop {
            None => (None, None, None),
            Some(Stop::At(micros)) => (Some(*micros as f64 / 1e6), None, None),
            Some(Stop::Mark { name, includes, .. }) => (None, Some(name), Some(!includes)),
        };
        self.databases.instance.msdb().execute(
            "UPDATE restorehistory SET destination_database_name = ?1, user_name = ?2, recovery = ?4, replace = ?5, \
             stop_at = strftime('%Y-%m-%d %H:%M:%f', ?6, 'unixepoch'), stop_at_mark_name = ?7, stop_before = ?8 \
             WHERE restore_history_id = (SELECT max(restore_history_id) FROM restorefile \
             WHERE destination_phys_name = ?3)",
            (
                &known.name,
                self.shared.user(),
                to.display().to_string(),
                i64::from(!restoring),
                i64::from(options.has(RestoreFlag::Replace)),
                at,
                mark,
                before,
            ),
        )?;
        Ok(())
    }

    /// Logical names stay what they were, although the file is called otherwise now.
    pub(super) fn keep_names(&mut self, name: &str, facts: Option<&Description>) -> Done {
        let Some(facts) = facts else { return Ok(()) };
        let known = self.databases.instance.database(name)?;
        let schema = match self.databases.attach(&known) {
            Ok(schema) => schema,
            // Who uses it is told why it does not open.
            Err(_) => return Ok(()),
        };
        let mut found = files::read(&self.databases.connection, &schema, &known)?;
        let mut changed = false;
        for (file, (logical, _)) in found.iter_mut().zip(&facts.server.files) {
            changed |= file.name != *logical;
            file.name.clone_from(logical);
        }
        if changed {
            files::write(&self.databases.connection, &schema, &found)?;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn tell_restored(
        &mut self,
        known: &Known,
        facts: Option<&Description>,
        position: u32,
        done: &Restored,
        options: &Options,
        took: Duration,
        not_reached: Option<Message>,
    ) {
        self.tell_doubts(done);
        let file = facts
            .and_then(|facts| facts.server.files.first())
            .map_or(known.name.as_str(), |(name, _)| name);
        if options.media.stats.is_some() {
            self.inform(percent_processed(100));
        }
        self.inform(processed(done.pages.into(), &known.name, file, position));
        if let Some(told) = not_reached {
            self.inform(told);
        }
        self.inform(successfully_processed(
            "RESTORE DATABASE",
            done.pages.into(),
            done.page_size.into(),
            took,
        ));
    }

    /// What speaks against what was restored.
    pub(super) fn tell_doubts(&mut self, done: &Restored) {
        for path in &done.stale {
            self.inform(Message::of(table::MIRROR_LEFT_OUT, [&path.shown()]));
        }
        if done.doubtful {
            self.inform(Message::of(table::SET_NOT_SEALED, []));
        }
        for what in &done.told {
            self.inform(Message::of(table::REMARK_OF, [what]));
        }
        for page in &done.missing {
            self.inform(Message::of(table::PAGE_IS_ZEROS, [&page]));
        }
        if let Some(why) = &done.unrecorded {
            self.inform(Message::of(table::REMARK_OF, [&why]));
        }
    }

    /// RESTORE DATABASE .. PAGE
    fn restore_pages(
        &mut self,
        known: &Known,
        text: &str,
        devices: Vec<PathBuf>,
        options: &Options,
    ) -> Done {
        let mut pages = Vec::new();
        for part in text.split(',') {
            let page = part.trim().split_once(':').filter(|(file, _)| file.trim() == "1");
            match page
                .and_then(|(_, page)| page.trim().parse::<u32>().ok())
                .filter(|page| *page > 0)
            {
                Some(page) => pages.push(page),
                None => return Err(Message::of(table::BAD_PAGE_LIST, [&text]).into()),
            }
        }
        self.databases.release(known)?;
        let started = Instant::now();
        let job = Mending {
            media: devices.clone(),
            base: None,
            position: Some(position(options)?),
            to: known.path.clone(),
            pages,
            unproven: false,
            allow_clear: false,
            allow_unsigned: false,
            timeout: WAIT,
        };
        let mended = mend(&job).map_err(|error| told(error, &devices, Doing::Reading))?;
        for what in &mended.told {
            self.inform(Message::of(table::REMARK_OF, [what]));
        }
        let count = mended.pages.len() as u64;
        self.inform(processed(count, &known.name, &known.name, position(options)?));
        let statement = "RESTORE DATABASE ... FILE=<name>";
        self.inform(successfully_processed(statement, count, 4096, started.elapsed()));
        Ok(())
    }
}

/// The list of PAGE, if it is one.
fn pages_of(files: &[FileSelection]) -> Done<Option<pellucid_tsql::ast::Text>> {
    match files {
        [] => Ok(None),
        [FileSelection::Page(text)] => Ok(Some(text.clone())),
        _ => Err(Message::unsupported("RESTORE DATABASE of files and filegroups").into()),
    }
}

/// FILE = n; the first set without it.
pub(super) fn position(options: &Options) -> Done<u32> {
    let position = options.file.unwrap_or(1);
    u32::try_from(position)
        .ok()
        .filter(|position| *position > 0)
        .ok_or_else(|| Message::of(table::NO_SUCH_SET, [&position]).into())
}

/// The media of a restore; 3132 where files of it are not named.
pub(super) fn open(devices: &[PathBuf]) -> Done<Media> {
    let error = match open_media(devices) {
        Ok(media) => return Ok(media),
        Err(error) => error,
    };
    let found: Vec<_> = devices.iter().filter_map(|device| open_family(device).ok()).collect();
    let mut there: Vec<u16> = found.iter().map(|family| family.header.family).collect();
    there.sort_unstable();
    there.dedup();
    match found.first().map(|family| usize::from(family.header.families)) {
        Some(wanted) if found.len() == devices.len() && there.len() < wanted => {
            Err(Message::of(table::FAMILIES_MISSING, [&wanted, &there.len()]).into())
        }
        _ => Err(told(error.into(), devices, Doing::Reading)),
    }
}

/// STOPAT of a full set or a differential: 3145 without a chain of log backups, 4340 for a mark, 4338 for a point before it. 4322 for
/// one behind it.
fn stop_of_database(media: &Media, header: &SetHeader, options: &Options) -> Done<Option<Message>> {
    let has_chain = header.version2.is_some_and(|own| own.chain.is_some());
    let at = match &options.stop {
        None => return Ok(None),
        Some(_) if !has_chain => return Err(Message::of(table::STOPAT_UNDER_SIMPLE, []).into()),
        Some(Stop::Mark { .. }) => return Err(Message::of(table::STOP_OF_LOGS, []).into()),
        Some(Stop::At(at)) => *at,
    };
    if at < header.begun {
        return Err(Message::of(table::STOP_BEFORE_SET, []).into());
    }
    let sets = media.set(header.position)?;
    let finished = sets.iter().flatten().next().map_or(0, |(_, set)| set.manifest.finished);
    let told = || Message::of(table::STOP_BEHIND_SET, []);
    Ok((at > finished && !options.has(RestoreFlag::NoRecovery)).then(told))
}

pub(super) fn check_media_name(media: &Media, options: &Options) -> Done {
    match &options.media.name {
        Some(name) if *name != media.header().name => {
            Err(Message::of(table::ANOTHER_MEDIA_NAME, [&media.header().name, &name]).into())
        }
        _ => Ok(()),
    }
}

/// The pages that a set has.
fn first_pages(media: &Media, position: u32) -> Option<u32> {
    let sets = media.set(position).ok()?;
    sets.iter().flatten().next().map(|(_, set)| set.manifest.pages)
}

/// The header of a set, of whichever file has it.
pub(super) fn first_header(media: &Media, position: u32) -> pellucid::Result<SetHeader> {
    let sets = media.set(position)?;
    let found = sets.iter().flatten().next().map(|(_, set)| set.header.clone());
    found.ok_or_else(|| {
        Error::misuse(pellucid::Subject::BackupSet(position), "it is not on these media")
    })
}

/// 3156 and 3119, behind why a file has no place
fn not_planned(why: Message, logical: &str, to: &Path) -> Raised {
    Raised::of(vec![
        why,
        Message::of(table::FILE_NOT_RESTORED, [&logical, &to.shown()]),
        Message::of(table::NOT_PLANNED, []),
    ])
}

/// 3117
pub(super) fn not_ready() -> Message {
    Message::of(table::NOT_READY, [])
}

/// 3136, behind what is wrong.
fn wrong_base(error: DatabaseError) -> Raised {
    Raised::of(vec![error.into(), Message::of(table::WRONG_BASE, [])])
}
