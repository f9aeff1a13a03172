//! BACKUP DATABASE and BACKUP LOG.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pellucid::header::Standing;
use pellucid::media::{Compression, Kind, MediaHeader, ServerFacts};
use pellucid::message as known;
use pellucid::shown::Shown;
use pellucid_backup::history::History;
use pellucid_backup::job::{
    back_up, open_family, Done as BackedUp, Existing, Files, Job, JobError, LogJob, Retention,
    Rules,
};
use pellucid_tsql::ast::{
    Backup, BackupFlag, BackupKind, BackupOption, CompressionAlgorithm, CompressionLevel,
    Encryptor, FileSelection, MediaFlag, OrVariable, StringLiteral,
};
use rusqlite::OptionalExtension;

use super::device::{told, Doing};
use super::media_option::{self, MediaOptions};
use super::request::Request;
use super::{Done, Raised};
use crate::instance::{folders, DatabaseFile, FileKind, Known, MASTER, MSDB};
use crate::message::{table, Message};
use crate::session::{Report, Session};

/// `sys.databases.recovery_model` of SIMPLE.
const SIMPLE: i64 = 3;
/// How long a backup waits for a lock.
const WAIT: Duration = Duration::from_secs(60);

/// What WITH says.
#[derive(Debug, Default)]
struct Options {
    flags: Vec<BackupFlag>,
    media: MediaOptions,
    compression: Option<Option<pellucid_tsql::ast::Compression>>,
    encryption: Option<(pellucid_tsql::ast::Algorithm, Encryptor)>,
    name: String,
    description: String,
    media_description: String,
    expires: u64,
    retain_days: Option<u64>,
    standby: bool,
}

impl Options {
    fn has(&self, flag: BackupFlag) -> bool {
        self.flags.contains(&flag)
    }
}

impl Session {
    pub(super) fn backup(&mut self, backup: &Backup) -> Done {
        let statement = match backup.kind {
            BackupKind::Database => "BACKUP DATABASE",
            BackupKind::Log => "BACKUP LOG",
        };
        self.back_up(backup).map_err(|raised| match raised.is_cancelled {
            true => raised,
            false => raised.and(Message::of(table::TERMINATING, [&statement])),
        })
    }

    fn back_up(&mut self, backup: &Backup) -> Done {
        if self.transactions > 0 {
            return Err(Message::of(table::BACKUP_IN_TRANSACTION, []).into());
        }
        let name = self.database_name(&backup.database)?;
        let is_tail =
            |option: &BackupOption| matches!(option, BackupOption::Flag(BackupFlag::NoTruncate));
        let no_truncate = backup.kind == BackupKind::Log && backup.options.iter().any(is_tail);
        if backup.kind == BackupKind::Database && self.is_model(&name)? {
            // A loop over the system databases goes on.
            self.inform(Message::of(table::MODEL_IS_EMPTY, []));
            return Ok(());
        }
        let known = self.database_to_back_up(&name, backup.kind, no_truncate)?;
        self.databases.settle_recovery(&known)?;
        if backup.kind == BackupKind::Log && !no_truncate {
            self.refuse_without_chain(&known)?;
        }
        if let Some(selection) = backup.files.first() {
            return Err(match selection {
                FileSelection::Page(_) => Message::unsupported("PAGE"),
                _ => Message::unsupported("BACKUP DATABASE of files and filegroups"),
            }
            .into());
        }
        let options = self.options(backup)?;
        if options.has(BackupFlag::Differential) && known.is_system() {
            return Err(match known.id {
                MASTER => Message::of(table::FULL_OF_MASTER, []),
                _ => Message::unsupported("BACKUP DATABASE msdb WITH DIFFERENTIAL"),
            }
            .into());
        }
        let files = Files {
            families: self.files_of(&backup.devices)?,
            mirrors: backup
                .mirrors
                .iter()
                .map(|mirror| self.files_of(mirror))
                .collect::<Done<_>>()?,
        };
        let devices = files.all();
        // A new copy of a medium makes the media set another one.
        let is_new = |path: &PathBuf| {
            path.as_os_str() != "NUL" && !path.to_string_lossy().contains("://") && !path.exists()
        };
        if !files.mirrors.is_empty()
            && !options.has(BackupFlag::Format)
            && devices.iter().any(is_new)
        {
            return Err(Message::from(known::NEW_MIRROR).into());
        }
        let leave = match (options.has(BackupFlag::NoRecovery), options.standby) {
            (true, _) => Standing::Restoring,
            (_, true) => Standing::Standby,
            _ => Standing::Online,
        };
        if leave != Standing::Online
            && self.databases.current_name().eq_ignore_ascii_case(&known.name)
        {
            return Err(Message::from(known::IN_USE).into());
        }
        let job = Job {
            log: (backup.kind == BackupKind::Log).then_some(LogJob {
                no_truncate,
                leave,
                ..LogJob::default()
            }),
            ..self.job(&known, files, &options)?
        };
        let roots = self.shared.folders_asked_for();
        for device in devices.iter().filter(|device| is_new(device)) {
            // Where it cannot be made, the medium cannot either, and that is told.
            let _ = folders::make_for(device, &roots);
        }
        self.databases.release(&known)?;
        let started = Instant::now();
        let done = self.run_job(&job, &known, &options).map_err(|error| match error {
            // SQL Server has one message for all of it; why comes before.
            JobError::FullBackupNeeded(_) => {
                Raised::of(vec![Message::of(table::REMARK_OF, [&error])])
                    .and(Message::known(&known::NO_DATABASE_BACKUP, &[&known.name]))
            }
            error => told(error.into(), &devices, Doing::Writing),
        })?;
        if leave != Standing::Online {
            let is_restoring = i64::from(leave == Standing::Restoring);
            self.databases.instance.set(&known, "state", &is_restoring)?;
            self.databases.instance.set(&known, "restored_from", &rusqlite::types::Null)?;
        }
        self.tell_done(&known, &job, &done, &options, started.elapsed());
        Ok(())
    }

    pub(super) fn database_name(
        &mut self,
        name: &pellucid_tsql::ast::NameOrVariable,
    ) -> Done<String> {
        match name {
            OrVariable::Given(name) => Ok(name.as_str().to_owned()),
            OrVariable::Variable(variable) => {
                let text: OrVariable<StringLiteral> = OrVariable::Variable(variable.clone());
                self.text(&text)
            }
        }
    }

    fn database_to_back_up(
        &mut self,
        name: &str,
        kind: BackupKind,
        no_truncate: bool,
    ) -> Done<Known> {
        let known = self.databases.instance.database(name)?;
        match known.id {
            MASTER if kind == BackupKind::Log => Err(Message::of(table::LOG_OF_MASTER, []).into()),
            2 => Err(Message::of(table::TEMPDB_REFUSED, []).into()),
            // By that file `instance export` knows that the key of both is needed elsewhere.
            MASTER | MSDB => {
                History::master_file()?;
                Ok(known)
            }
            _ if known.is_system() => {
                Err(Message::unsupported(format!("BACKUP DATABASE {}", known.name)).into())
            }
            // Its file may be gone.
            _ if no_truncate => {
                self.databases.release(&known)?;
                Ok(known)
            }
            _ => {
                // What keeps it from being opened is said before anything is written.
                self.databases.attach(&known)?;
                Ok(known)
            }
        }
    }

    /// `model`, in which nobody can make anything.
    fn is_model(&self, name: &str) -> Done<bool> {
        let known = self.databases.instance.database(name)?;
        Ok(known.is_system() && known.name.eq_ignore_ascii_case("model"))
    }

    /// 4208 under SIMPLE. 4214 where the database can have no chain of log backups, and why before it.
    fn refuse_without_chain(&self, known: &Known) -> Done {
        let recovery = self.databases.recovery(known)?;
        if recovery.model == SIMPLE {
            return Err(Message::of(table::NO_LOG_UNDER_SIMPLE, [&"BACKUP LOG"]).into());
        }
        let why = match (recovery.has_room, recovery.is_sealed) {
            (true, _) => return Ok(()),
            (_, true) => {
                Message::of(table::NO_CHAIN_IN_VERSION_1, [&known.name, &known.path.shown()])
            }
            _ => Message::of(table::NO_CHAIN_IN_PLAIN, [&known.name]),
        };
        Err(Raised::of(vec![why]).and(known::NO_CURRENT_BACKUP.into()))
    }

    fn options(&mut self, backup: &Backup) -> Done<Options> {
        let mut options = Options::default();
        for option in &backup.options {
            match option {
                BackupOption::Flag(flag) => options.flags.push(*flag),
                BackupOption::Media(option) => self.media_option(option, &mut options.media)?,
                BackupOption::Compression(how) => options.compression = Some(how.clone()),
                BackupOption::Encryption { algorithm, encryptor } => {
                    options.encryption = Some((*algorithm, encryptor.clone()));
                }
                BackupOption::Name(text) => options.name = self.text(text)?,
                BackupOption::Description(text) => options.description = self.text(text)?,
                BackupOption::MediaDescription(text) => {
                    options.media_description = self.text(text)?
                }
                BackupOption::ExpireDate(text) => {
                    let at = super::certificate::seconds(&self.text(text)?)?;
                    options.expires = u64::try_from(at).unwrap_or(0);
                }
                BackupOption::RetainDays(days) => options.retain_days = Some(self.number(days)?),
                BackupOption::Standby(file) => {
                    // Nothing is in a set that was not committed, so that the file would have nothing to undo.
                    self.text(file)?;
                    options.standby = true;
                }
            }
        }
        check(&options, backup.kind)?;
        Ok(options)
    }

    fn job(&mut self, known: &Known, files: Files, options: &Options) -> Done<Job> {
        let mut job = Job::new(known.path.clone(), files);
        if let Some((algorithm, encryptor)) = &options.encryption {
            if let Encryptor::AsymmetricKey(_) = encryptor {
                self.check_extensible()?;
            }
            let certificate = self.certificate_of(encryptor)?;
            job.seal_under(&self.databases.instance.keyring()?, &certificate)?;
            self.warn_about_backup(&certificate)?;
            job.algorithm = algorithm.to_string().parse()?;
        }
        let (compression, level) = self.compression(options, &job.files)?;
        job.keep(self.retention(options)?);
        Ok(Job {
            database_name: Some(known.name.clone()),
            user: Some(self.shared.user().to_owned()),
            server: self.server_facts(known, options.has(BackupFlag::NoTruncate))?,
            rules: Rules {
                existing: match (options.has(BackupFlag::Format), options.has(BackupFlag::Init)) {
                    (true, _) => Existing::Format,
                    (_, true) => Existing::Initialize,
                    _ => Existing::Append,
                },
                skip: options.has(BackupFlag::Skip) || options.has(BackupFlag::Format),
                parity: options.encryption.is_some(),
            },
            compression,
            level,
            differential: match options.has(BackupFlag::Differential) {
                true => Some(self.last_full(known)?),
                false => None,
            },
            copy_only: options.has(BackupFlag::CopyOnly) && !options.has(BackupFlag::Differential),
            name: options.name.clone(),
            description: options.description.clone(),
            media_name: options.media.name.clone().unwrap_or_default(),
            media_description: options.media_description.clone(),
            continue_after_error: options.media.flags.contains(&MediaFlag::ContinueAfterError),
            timeout: WAIT,
            ..job
        })
    }

    /// What the statement says, else the instance.
    fn retention(&mut self, options: &Options) -> Done<Retention> {
        if let Some(days) = options.retain_days {
            return Ok(Retention::Days(days));
        }
        if options.expires != 0 {
            return Ok(Retention::Until(options.expires));
        }
        let days = u64::try_from(self.databases.instance.running("media retention")?).unwrap_or(0);
        Ok(if days > 0 { Retention::Days(days) } else { Retention::None })
    }

    /// Where the statement says nothing, media that are kept decide, then the instance.
    ///
    /// Source: Microsoft's KB 2297053, "Behavior of compressed backups when you append backups".
    /// `MS_XPRESS` is what tools write for the server's standard algorithm, which is ZSTD here: that is said.
    fn compression(&mut self, options: &Options, files: &Files) -> Done<(Compression, i32)> {
        let on = match &options.compression {
            None if options.has(BackupFlag::NoCompression) => false,
            None => match kept_media(options, files) {
                Some(header) => header.compressed,
                None => self.databases.instance.running("backup compression default")? == 1,
            },
            Some(None) => true,
            Some(Some(how)) => {
                match how.algorithm {
                    CompressionAlgorithm::Zstd => {}
                    CompressionAlgorithm::MsXpress => self.inform(Message::text(
                        "COMPRESSION (ALGORITHM = MS_XPRESS): this set is compressed by the standard algorithm here, ZSTD.",
                    )),
                    other @ CompressionAlgorithm::QatDeflate => {
                        let option = format!("COMPRESSION (ALGORITHM = {other})");
                        return Err(Message::unsupported(option).into());
                    }
                }
                let level = match how.level {
                    None | Some(CompressionLevel::Low) => 1,
                    Some(CompressionLevel::Medium) => 3,
                    Some(CompressionLevel::High) => 9,
                };
                return Ok((Compression::Zstd, level));
            }
        };
        Ok(if on { (Compression::Zstd, 1) } else { (Compression::None, 0) })
    }

    /// What goes into the set besides pages.
    fn server_facts(&mut self, known: &Known, may_be_gone: bool) -> Done<ServerFacts> {
        let files = match self.databases.files(known) {
            // Only the file knows other names.
            Err(_) if may_be_gone => DatabaseFile::defaults(&known.name).into(),
            files => files?,
        };
        let of = |file: &crate::instance::DatabaseFile| {
            let physical = match file.kind {
                FileKind::Data => known.path.display().to_string(),
                FileKind::Log => file.physical.clone().unwrap_or_default(),
            };
            (file.name.clone(), physical)
        };
        Ok(ServerFacts {
            files: files.iter().map(of).collect(),
            recovery_model: recovery_model(self.databases.recovery(known)?.model).to_owned(),
            compatibility_level: u16::try_from(known.compatibility_level).unwrap_or(0),
            created: known.created.clone(),
        })
    }

    /// The files of the last full backup that differentials are based on.
    fn last_full(&mut self, known: &Known) -> Done<Vec<PathBuf>> {
        let sql = "SELECT s.media_set_id FROM backupset s WHERE s.database_name = ?1 AND s.type = 'D' \
                   AND coalesce(s.is_copy_only, 0) = 0 \
                   AND NOT EXISTS (SELECT 1 FROM pellucid_gone g WHERE g.backup_set_id = s.backup_set_id) \
                   ORDER BY s.backup_set_id DESC LIMIT 1";
        let msdb = self.databases.instance.msdb();
        let media: Option<i64> = msdb.query_row(sql, [&known.name], |row| row.get(0)).optional()?;
        let none = || Message::known(&known::NO_DATABASE_BACKUP, &[&known.name]);
        let media = media.ok_or_else(none)?;
        let sql = "SELECT physical_device_name FROM backupmediafamily WHERE media_set_id = ?1 AND mirror = 0 \
                   ORDER BY family_sequence_number";
        let mut statement = msdb.prepare(sql)?;
        let rows = statement.query_map([media], |row| row.get::<_, String>(0))?;
        let files: Vec<PathBuf> =
            rows.map(|row| row.map(PathBuf::from)).collect::<rusqlite::Result<_>>()?;
        match files.is_empty() {
            true => Err(none().into()),
            false => Ok(files),
        }
    }

    fn run_job(
        &mut self,
        job: &Job,
        known: &Known,
        options: &Options,
    ) -> std::result::Result<BackedUp, JobError> {
        let line = self.frame().line;
        let procedure = self.frame().procedure.clone();
        let server = self.shared.server_name().to_owned();
        let mut stats = Stats::new(options.media.stats);
        let command = if job.log.is_some() { "BACKUP LOG" } else { "BACKUP DATABASE" };
        let text = self.statement_text();
        let mut request =
            Request::begin(&self.databases.instance, &self.shared, command, &known.name, &text);
        let sink = &mut self.sink;
        // Nobody writes to a database whose pages are being set aside, nor how far that is.
        let can_tell = known.id != MSDB;
        back_up(job, &mut |now| {
            let percent = percent(now.pages, now.all);
            if can_tell {
                request.progress(percent);
            }
            stats.until(percent.min(99.0), &mut |message| {
                let (procedure, server) = (procedure.clone(), server.clone());
                sink.message(&Report { message, line, procedure, server });
            });
        })
    }

    fn tell_done(
        &mut self,
        known: &Known,
        job: &Job,
        done: &BackedUp,
        options: &Options,
        took: Duration,
    ) {
        for (path, error) in &done.fenced {
            self.inform(Message::of(table::MIRROR_GIVEN_UP, [&path.shown(), &error]));
        }
        for (page, error) in &done.missing {
            let file = known.path.shown();
            self.inform(Message::of(table::PAGE_UNREADABLE, [&known.name, &page, &file, &error]));
        }
        for what in done.told.iter().chain(&done.unrecorded) {
            self.inform(Message::of(table::REMARK_OF, [what]));
        }
        let pages = u64::from(done.manifest.pages);
        let log = usize::from(done.header.kind == Kind::Log);
        let file = job.server.files.get(log).map_or(known.name.as_str(), |(name, _)| name);
        self.inform(processed(pages, &known.name, file, done.header.position));
        if options.media.stats.is_some() {
            self.inform(percent_processed(100));
        }
        let statement = match done.header.kind {
            Kind::Full => "BACKUP DATABASE",
            Kind::Log => "BACKUP LOG",
            Kind::Differential => "BACKUP DATABASE WITH DIFFERENTIAL",
        };
        self.inform(successfully_processed(
            statement,
            pages,
            u64::from(done.header.page_size),
            took,
        ));
        if known.id == MASTER {
            self.inform(Message::of(table::KEYS_NOT_IN_MASTER, []));
        }
        if known.is_system() && options.encryption.is_none() {
            self.inform(Message::of(table::UNDER_OWN_KEY, [&known.name]));
        }
    }
}

/// 3031 and 3032.
fn check(options: &Options, kind: BackupKind) -> Done {
    use BackupFlag as B;
    for (one, other) in [
        (B::Format, B::NoFormat),
        (B::Format, B::NoInit),
        (B::Init, B::NoInit),
        (B::Skip, B::NoSkip),
    ] {
        if options.has(one) && options.has(other) {
            return Err(Message::option_conflict(&one.to_string(), &other.to_string()).into());
        }
    }
    if options.has(B::Format) && options.has(B::NoSkip) {
        return Err(Message::option_conflict("FORMAT", "NOSKIP").into());
    }
    if options.compression.is_some() && options.has(B::NoCompression) {
        return Err(Message::option_conflict("COMPRESSION", "NO_COMPRESSION").into());
    }
    if options.encryption.is_some() && options.has(B::NoEncryption) {
        return Err(Message::option_conflict("ENCRYPTION", "NO_ENCRYPTION").into());
    }
    if options.encryption.is_some() && options.has(B::FileSnapshot) {
        return Err(Message::of(table::SNAPSHOT_WITH_ENCRYPTION, []).into());
    }
    media_option::check(&options.media.flags)?;
    // Only logs have tails, and no differentials.
    let not_of_it: &[B] = match kind {
        BackupKind::Log => &[B::Differential],
        BackupKind::Database => &[B::NoRecovery, B::NoTruncate],
    };
    for flag in not_of_it {
        if options.has(*flag) {
            return Err(not_supported(&flag.to_string()).into());
        }
    }
    if options.standby && kind == BackupKind::Database {
        return Err(not_supported("STANDBY").into());
    }
    if options.standby && options.has(B::NoRecovery) {
        return Err(Message::option_conflict("STANDBY", "NORECOVERY").into());
    }
    if options.has(B::FileSnapshot) {
        return Err(Message::unsupported("FILE_SNAPSHOT").into());
    }
    Ok(())
}

fn not_supported(option: &str) -> Message {
    Message::of(table::OPTION_NOT_SUPPORTED, [&option])
}

/// The header of the media that a backup is added to; none where they are made anew.
fn kept_media(options: &Options, files: &Files) -> Option<MediaHeader> {
    let first = files.families.first()?;
    let is_made = options.has(BackupFlag::Format) || !first.is_file();
    // What cannot be read is told by whoever writes to it.
    (!is_made).then(|| open_family(first).ok()).flatten().map(|family| family.header)
}

pub(crate) fn recovery_model(number: i64) -> &'static str {
    match number {
        1 => "FULL",
        2 => "BULK_LOGGED",
        _ => "SIMPLE",
    }
}

pub(super) fn percent(done: u32, all: u32) -> f64 {
    f64::from(done) * 100.0 / f64::from(all.max(1))
}

/// STATS: says each step that has been passed.
pub(super) struct Stats {
    every: Option<u64>,
    next: u64,
}

impl Stats {
    /// Says every `every` percent; nothing where the statement has no STATS.
    pub fn new(every: Option<u64>) -> Self {
        let every = every.map(|every| every.clamp(1, 100));
        Self { every, next: every.unwrap_or(0) }
    }

    /// Tells each step up to `percent` that has not been told.
    pub fn until(&mut self, percent: f64, tell: &mut dyn FnMut(Message)) {
        let Some(every) = self.every else { return };
        while self.next as f64 <= percent && self.next < 100 {
            tell(percent_processed(self.next));
            self.next += every;
        }
    }
}

/// 3211
pub(super) fn percent_processed(percent: u64) -> Message {
    Message::of(table::PERCENT_PROCESSED, [&percent])
}

/// 4035
pub(super) fn processed(pages: u64, database: &str, file: &str, position: u32) -> Message {
    Message::of(table::PROCESSED, [&pages, &database, &file, &position])
}

/// 3014
pub(super) fn successfully_processed(
    statement: &str,
    pages: u64,
    page_bytes: u64,
    took: Duration,
) -> Message {
    let seconds = took.as_secs_f64().max(0.001);
    let rate = (pages * page_bytes) as f64 / (1024.0 * 1024.0) / seconds;
    Message::of(
        table::SUCCESSFULLY_PROCESSED,
        [&statement, &pages, &format_args!("{seconds:.3}"), &format_args!("{rate:.3}")],
    )
}

/// The system refused.
impl From<std::io::Error> for Raised {
    fn from(error: std::io::Error) -> Self {
        Message::of(table::SYSTEM_ERROR, [&error]).into()
    }
}
