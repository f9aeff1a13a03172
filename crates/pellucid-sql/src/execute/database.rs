//! CREATE, ALTER and DROP DATABASE.

use pellucid::shown::Shown;
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_files::paths::{belongs_beside, look, look_at_name, BELONGS_BESIDE};
use pellucid_host::folder;
use pellucid_keyring::Keyring;
use pellucid_tsql::ast::{
    AlterDatabase, Attach, ByteUnit, CreateDatabase, DatabaseAccess, DatabaseOption,
    DatabaseStatement, FileSize, FileSpec, MaxSize, Name, PageVerify, RecoveryModel, SizeUnit,
};
use rusqlite::{Connection, OpenFlags};

use super::{Done, Raised};
use crate::instance::files;
use crate::instance::paths::{canonical, Folder};
use crate::instance::{uri, DatabaseFile, FileKind, Known, State};
use crate::message::{table, Message};
use crate::session::Session;

/// Compatibility levels of SQL Server 2008 to 2022.
const LEVELS: [u64; 7] = [100, 110, 120, 130, 140, 150, 160];

/// Whether SET refuses a word about who may use a database, and how.
pub(crate) fn is_refused_access(access: DatabaseAccess) -> bool {
    matches!(
        access,
        DatabaseAccess::Emergency
            | DatabaseAccess::EnableBroker
            | DatabaseAccess::DisableBroker
            | DatabaseAccess::NewBroker
            | DatabaseAccess::ErrorBrokerConversations
    )
}

/// 50001 for an option that SET refuses: asked before any of a statement's is set.
fn refuse_option(option: &DatabaseOption) -> Done {
    match option {
        DatabaseOption::Access(access) if is_refused_access(*access) => {
            Err(Message::unsupported(format!("SET {access}")).into())
        }
        DatabaseOption::DelayedDurability(how)
            if !matches!(how, pellucid_tsql::ast::DelayedDurability::Disabled) =>
        {
            Err(Message::unsupported(format!("DELAYED_DURABILITY = {how}")).into())
        }
        _ => Ok(()),
    }
}

impl Session {
    pub(super) fn database_statement(&mut self, statement: &DatabaseStatement) -> Done {
        match statement {
            DatabaseStatement::Create(create) => {
                self.outside_transaction("CREATE DATABASE")?;
                self.create_database(create)
            }
            DatabaseStatement::Alter { database, action } => {
                self.outside_transaction("ALTER DATABASE")?;
                let name = database
                    .as_ref()
                    .map_or_else(|| self.databases.current_name(), |name| name.as_str().to_owned());
                let known = match self.databases.instance.find(&name)? {
                    Some(known) => known,
                    None => {
                        let refused = Raised::from(Message::of(table::ALTER_REFUSED, [&name]));
                        return Err(refused.and(Message::of(table::ALTER_FAILED, [])));
                    }
                };
                self.alter_database(&known, action).map_err(|raised| match raised.is_cancelled {
                    true => raised,
                    false => raised.and(Message::of(table::ALTER_FAILED, [])),
                })
            }
            DatabaseStatement::Authorize { database, owner } => {
                self.set_owner(database.as_str(), owner.as_str())
            }
            DatabaseStatement::Drop { if_exists, databases } => {
                self.outside_transaction("DROP DATABASE")?;
                for name in databases {
                    self.drop_database(name, *if_exists)?;
                }
                Ok(())
            }
        }
    }

    /// Every database has the one owner that there is: told is a database or a login that there is not.
    pub(super) fn set_owner(&mut self, database: &str, owner: &str) -> Done {
        if self.databases.instance.find(database)?.is_none() {
            return Err(Message::does_not_exist("find", "database", database).into());
        }
        let is_login = ["sa", self.shared.user()].iter().any(|own| own.eq_ignore_ascii_case(owner));
        match is_login {
            true => Ok(()),
            false => Err(Message::does_not_exist("find", "principal", owner).into()),
        }
    }

    fn create_database(&mut self, create: &CreateDatabase) -> Done {
        let name = create.name.as_str();
        if self.databases.instance.find(name)?.is_some() {
            return Err(Message::database_exists(name).into());
        }
        if let Some(group) = create.filegroups.first() {
            return Err(Message::unsupported(format!("FILEGROUP {}", group.name.as_str())).into());
        }
        if let Some(option) = create.options.iter().find(|option| option.on) {
            return Err(Message::unsupported(format!("{} ON", option.switch)).into());
        }
        if let Some(collation) = &create.collation {
            // What compares otherwise than all do here.
            let upper = collation.as_str().to_uppercase();
            if ["_CS", "_BIN", "_AI"].iter().any(|kind| upper.contains(kind)) {
                let option = format!("CREATE DATABASE COLLATE {}", collation.as_str());
                return Err(Message::unsupported(option).into());
            }
        }
        let mut files = create.files.as_slice();
        if let (Some(_), [data, log]) = (create.attach, files) {
            // FOR ATTACH takes the log in the same list; where it was is in the database.
            if is_log(log) && !is_log(data) {
                files = std::slice::from_ref(data);
            }
        }
        let [data] = files else {
            return match create.files.is_empty() {
                true if create.attach.is_some() => {
                    Err(Message::of(table::INCORRECT_SYNTAX, [&"ATTACH"]).into())
                }
                true => self.make_database(create, None),
                false => Err(Message::unsupported("more than one data file").into()),
            };
        };
        match create.attach {
            Some(attach) => self.attach_database(create, data, attach),
            None => self.make_database(create, Some(data)),
        }
    }

    fn make_database(&mut self, create: &CreateDatabase, data: Option<&FileSpec>) -> Done {
        let name = create.name.as_str();
        let path = match data.and_then(|data| data.file_name.as_ref()) {
            Some(path) => self.databases.instance.file(&path.text, Folder::Data)?,
            None => self.databases.instance.folder(Folder::Data)?.join(file_name(name)?),
        };
        let path = canonical(path);
        if belongs_beside(&path) {
            let why = Message::path(&path.shown().to_string(), BELONGS_BESIDE);
            return Err(Raised::of(vec![why, Message::create_failed()]));
        }
        if let Some(other) = self.databases.instance.of_file(&path)? {
            return Err(Raised::of(vec![
                Message::file_in_use(&path, &other.name),
                Message::create_failed(),
            ]));
        }
        if look_at_name(&path).is_ok() {
            return Err(Raised::of(vec![Message::file_exists(&path), Message::create_failed()]));
        }
        make_file(&path).map_err(|raised| raised.and(Message::create_failed()))?;
        let known = self.databases.instance.register(name, &path).inspect_err(|_| {
            // Nothing is in it yet, and nobody knows of it.
            let _ = remove(&path);
        })?;
        if let Some(collation) = &create.collation {
            self.databases.instance.set(&known, "collation", &collation.as_str())?;
        }
        self.keep_files(&known, create, data)
    }

    /// Files that were described are remembered in the database itself.
    fn keep_files(
        &mut self,
        known: &Known,
        create: &CreateDatabase,
        data: Option<&FileSpec>,
    ) -> Done {
        if data.is_none_or(|data| *data == only_path(data)) && create.log_files.is_empty() {
            return Ok(());
        }
        let stem = known.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut files = DatabaseFile::defaults(&stem);
        if let Some(data) = data {
            described(&mut files[0], data)?;
        }
        if let Some(log) = create.log_files.first() {
            described(&mut files[1], log)?;
        }
        let schema = self.databases.attach(known)?;
        Ok(files::write(&self.databases.connection, &schema, &files)?)
    }

    fn attach_database(
        &mut self,
        create: &CreateDatabase,
        data: &FileSpec,
        attach: Attach,
    ) -> Done {
        let name = create.name.as_str();
        let Some(path) = &data.file_name else {
            return Err(Message::of(table::INCORRECT_SYNTAX, [&"ATTACH"]).into());
        };
        let path = canonical(self.databases.instance.file(&path.text, Folder::Data)?);
        if !path.is_file() {
            return Err(Message::inaccessible(
                &path,
                "2(The system cannot find the file specified.)",
            )
            .into());
        }
        if let Some(other) = self.databases.instance.of_file(&path)? {
            // `pellucid encrypt` may have named it: then it gets the name that is asked for.
            let is_default =
                path.file_stem().is_some_and(|stem| stem.to_string_lossy() == other.name);
            return match is_default && !other.name.eq_ignore_ascii_case(name) {
                true => Ok(self.databases.instance.rename(&other, name)?),
                false => Err(Message::file_in_use(&path, &other.name).into()),
            };
        }
        match inspect(&path)?.kind {
            Kind::NotADatabase => {
                return Err(Message::of(table::BAD_FILE_HEADER, [&path.shown()]).into())
            }
            Kind::Damaged(error) => return Err(error.into()),
            _ => {}
        }
        let known = self.databases.instance.register(name, &path)?;
        if let Err(message) = self.databases.attach(&known) {
            self.databases.instance.unregister(&known)?;
            return Err(message.into());
        }
        if attach == Attach::RebuildLog {
            // The log is the WAL that SQLite makes; what was in it has been read by now.
            let log = path.with_extension("ldf");
            let text = format!("New log file '{}' was created.", log.shown());
            self.inform(Message::text(text));
        }
        self.keep_files(&known, create, Some(data))
    }

    fn alter_database(&mut self, known: &Known, action: &AlterDatabase) -> Done {
        if known.state == State::Restoring {
            return Err(Message::of(table::NOT_PERMITTED_WHILE, [&"Restoring"]).into());
        }
        match action {
            AlterDatabase::Set { options, termination: _ } => {
                options.iter().try_for_each(refuse_option)?;
                for option in options {
                    self.set_option(known, option)?;
                }
                Ok(())
            }
            AlterDatabase::ModifyFile(spec) => self.modify_file(known, spec),
            AlterDatabase::ModifyName(name) => {
                self.user_database(known)?;
                self.databases.instance.rename(known, name.as_str())?;
                if self.databases.current_id() == known.id {
                    let renamed = self.databases.instance.database(name.as_str())?;
                    self.databases.enter(&renamed);
                }
                self.inform(Message::text(format!(
                    "The database name '{}' has been set.",
                    name.as_str()
                )));
                Ok(())
            }
            AlterDatabase::Collate(_) => Err(Message::unsupported("ALTER DATABASE COLLATE").into()),
            AlterDatabase::AddFiles { .. } | AlterDatabase::AddLogFiles(_) => {
                Err(Message::unsupported("ALTER DATABASE ADD FILE").into())
            }
            AlterDatabase::RemoveFile(_) => {
                Err(Message::unsupported("ALTER DATABASE REMOVE FILE").into())
            }
            AlterDatabase::AddFilegroup(_) | AlterDatabase::RemoveFilegroup(_) => {
                Err(Message::unsupported("FILEGROUP").into())
            }
        }
    }

    fn user_database(&self, known: &Known) -> Done {
        match known.is_system() {
            true => Err(Message::of(table::OPTION_NOT_SET, [&known.name]).into()),
            false => Ok(()),
        }
    }

    fn set_option(&mut self, known: &Known, option: &DatabaseOption) -> Done {
        if let DatabaseOption::Encryption(action) = option {
            return self.set_encryption(known, *action);
        }
        self.user_database(known)?;
        let instance = &self.databases.instance;
        match option {
            DatabaseOption::Encryption(_) => {}
            DatabaseOption::Recovery(model) => {
                let number = match model {
                    RecoveryModel::Full => 1,
                    RecoveryModel::BulkLogged => 2,
                    RecoveryModel::Simple => 3,
                };
                self.databases.set_recovery(known, number)?;
            }
            DatabaseOption::CompatibilityLevel(level) => {
                if !LEVELS.contains(level) {
                    return Err(Message::of(table::BAD_COMPATIBILITY_LEVEL, []).into());
                }
                let level = i64::try_from(*level).unwrap_or(160);
                instance.set(known, "compatibility_level", &level)?;
            }
            DatabaseOption::Access(access) => return self.set_access(known, *access),
            DatabaseOption::PageVerify(verify) => {
                let number = match verify {
                    PageVerify::None => 0,
                    PageVerify::TornPageDetection => 1,
                    PageVerify::Checksum => 2,
                };
                instance.set(known, "page_verify", &number)?;
            }
            DatabaseOption::Switch { switch, on } => {
                instance.set_option(known, &switch.to_string(), i64::from(*on))?;
            }
            DatabaseOption::ForcedParameterization(on) => {
                instance.set_option(known, "FORCED_PARAMETERIZATION", i64::from(*on))?;
            }
            DatabaseOption::LocalCursors(on) => {
                instance.set_option(known, "LOCAL_CURSORS", i64::from(*on))?
            }
            DatabaseOption::TargetRecoverySeconds(seconds) => {
                let seconds = i64::try_from(*seconds).unwrap_or(i64::MAX);
                instance.set_option(known, "TARGET_RECOVERY_SECONDS", seconds)?;
            }
            DatabaseOption::DelayedDurability(_) => {}
        }
        Ok(())
    }

    fn set_access(&mut self, known: &Known, access: DatabaseAccess) -> Done {
        let instance = &self.databases.instance;
        match access {
            DatabaseAccess::MultiUser => instance.set(known, "access", &0)?,
            DatabaseAccess::SingleUser => instance.set(known, "access", &1)?,
            DatabaseAccess::RestrictedUser => instance.set(known, "access", &2)?,
            DatabaseAccess::Online => instance.set(known, "state", &(State::Online as i64))?,
            DatabaseAccess::Offline => {
                self.databases.release(known)?;
                if self.databases.current_id() == known.id {
                    self.databases.use_database("master")?;
                }
                self.databases.instance.set(known, "state", &(State::Offline as i64))?;
            }
            DatabaseAccess::ReadOnly => instance.set(known, "is_read_only", &1)?,
            DatabaseAccess::ReadWrite => instance.set(known, "is_read_only", &0)?,
            DatabaseAccess::Emergency
            | DatabaseAccess::EnableBroker
            | DatabaseAccess::DisableBroker
            | DatabaseAccess::NewBroker
            | DatabaseAccess::ErrorBrokerConversations => {
                return refuse_option(&DatabaseOption::Access(access));
            }
        }
        Ok(())
    }

    fn modify_file(&mut self, known: &Known, spec: &FileSpec) -> Done {
        self.user_database(known)?;
        let name = spec.name.as_ref().map(Name::as_str).unwrap_or_default();
        let mut found = self.databases.files(known)?;
        let Some(file) = found.iter_mut().find(|file| file.name.eq_ignore_ascii_case(name)) else {
            return Err(Message::of(table::UNKNOWN_FILE, [&name]).into());
        };
        if file.kind == FileKind::Data && spec.file_name.is_some() {
            return Err(Message::unsupported("another FILENAME for the data file").into());
        }
        described(file, spec)?;
        if let Some(new) = &spec.new_name {
            file.name = new.as_str().to_owned();
        }
        let schema = self.databases.attach(known)?;
        files::write(&self.databases.connection, &schema, &found)?;
        if let Some(new) = &spec.new_name {
            self.inform(Message::of(table::FILE_NAME_SET, [&new.as_str()]));
        }
        Ok(())
    }

    fn drop_database(&mut self, name: &Name, if_exists: bool) -> Done {
        let name = name.as_str();
        let Some(known) = self.databases.instance.find(name)? else {
            return match if_exists {
                true => Ok(()),
                false => Err(Message::unknown_database_to_drop(name).into()),
            };
        };
        if known.is_system() {
            return Err(Message::of(table::DROP_OF_SYSTEM, [&name]).into());
        }
        let in_use = || Raised::from(Message::of(table::DROP_IN_USE, [&name]));
        if self.databases.current_id() == known.id {
            return Err(in_use());
        }
        self.databases.release(&known)?;
        if let Some(pending) = self.databases.instance.pending_key(&known)? {
            if pending.process.is_some_and(super::state_of_process) {
                return Err(in_use());
            }
        }
        // The files of a database that is offline are kept, as there.
        if known.path.is_file() && known.state != State::Offline {
            remove_files(&known).map_err(|found| match found {
                Removal::InUse => in_use(),
                Removal::Failed(error) => Raised::from(error),
            })?;
        }
        Ok(self.databases.instance.unregister(&known)?)
    }

    /// `sp_detach_db`: the name is forgotten; the file stays, with its log in it.
    pub(in crate::execute) fn detach_database(&mut self, name: &str) -> Done {
        let Some(known) = self.databases.instance.find(name)? else {
            return Err(Message::of(table::NO_SUCH_DATABASE, [&name]).into());
        };
        if known.is_system() {
            return Err(Message::of(table::DETACH_OF_SYSTEM, []).into());
        }
        let in_use = || Raised::from(Message::of(table::DETACH_IN_USE, [&name]));
        let pending = self.databases.instance.pending_key(&known)?;
        let is_scanned = pending.and_then(|key| key.process).is_some_and(super::state_of_process);
        if self.databases.current_id() == known.id || is_scanned {
            return Err(in_use());
        }
        self.databases.release(&known)?;
        if known.path.is_file() {
            match alone(&known.path) {
                // As it closes, what its log holds goes into the file.
                Ok(connection) => drop(connection),
                Err(error) => match error.sqlite_error_code() {
                    Some(rusqlite::ErrorCode::DatabaseBusy) => return Err(in_use()),
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(self.databases.instance.detach(&known)?)
    }
}

/// Why a database was not removed.
enum Removal {
    InUse,
    Failed(std::io::Error),
}

/// By its name, as scripts have it: a database has one log here, which is SQLite's.
fn is_log(file: &FileSpec) -> bool {
    let name = file.file_name.as_ref().map(|name| name.text.to_ascii_lowercase());
    name.is_some_and(|name| name.ends_with(".ldf") || name.ends_with("-wal"))
}

/// A connection that has the database for itself.
///
/// Whoever has it open holds a lock in WAL mode, or takes one now and then; who holds none sees a file without a name.
fn alone(path: &std::path::Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri(path), flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(2))?;
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT")?;
    Ok(connection)
}

/// Removes a database with its logs, if nobody else has it open.
fn remove_files(known: &Known) -> Result<(), Removal> {
    let failed = Removal::Failed;
    if is_open_elsewhere(&known.path) {
        return Err(Removal::InUse);
    }
    let header = match inspect(&known.path).map(|found| found.kind) {
        Ok(Kind::Sealed(sealed)) => Some(sealed.header.file_id),
        _ => None,
    };
    let held = match alone(&known.path) {
        Ok(connection) => Some(connection),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
            return Err(Removal::InUse)
        }
        // What cannot be opened can be dropped.
        Err(_) => None,
    };
    let other = |error: pellucid::Error| Removal::Failed(std::io::Error::other(error.to_string()));
    let expected = pellucid_vfs::pins::Expectation::at_all_names(&known.path).map_err(other)?;
    remove(&known.path).map_err(failed)?;
    drop(held);
    for end in ["-journal", "-wal", "-shm"] {
        let mut name = known.path.clone().into_os_string();
        name.push(end);
        match remove(std::path::Path::new(&name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Removal::Failed(error))
            }
            _ => {}
        }
    }
    let released = expected.release();
    released.map_err(other)?;
    // Another database of this name was not checked yet.
    if let Ok(keyring) = Keyring::locate().and_then(|home| Keyring::open(&home)) {
        let _ = keyring.forget_check(&known.path);
    }
    if let Some(id) = header {
        // The certificate is no longer needed for it.
        let forgotten = Keyring::locate()
            .and_then(|home| Keyring::open(&home))
            .and_then(|keyring| keyring.forget_database(&id));
        if let Err(error) = forgotten {
            return Err(Removal::Failed(std::io::Error::other(error.to_string())));
        }
    }
    Ok(())
}

/// Whether another process has the file open, as far as this one may see: an idle connection holds no lock that would
/// tell, and what it wrote afterwards would be lost.
pub(super) fn is_open_elsewhere(path: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(own) = look(path) else { return false };
    let same = |link: std::fs::DirEntry| {
        std::fs::metadata(link.path())
            .is_ok_and(|found| found.ino() == own.ino() && found.dev() == own.dev())
    };
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let is_other = |name: &std::ffi::OsStr| {
        name.to_str()
            .and_then(|name| name.parse::<u32>().ok())
            .is_some_and(|pid| pid != std::process::id())
    };
    processes
        .flatten()
        .filter(|process| is_other(&process.file_name()))
        .filter_map(|process| std::fs::read_dir(process.path().join("fd")).ok())
        .any(|descriptors| descriptors.flatten().any(same))
}

/// The mode of a new database, of which the umask takes what it takes of every file.
const NEW_MODE: u32 = 0o666;

/// Removes a file in the folder that its way leads to.
fn remove(path: &std::path::Path) -> std::io::Result<()> {
    folder::Folder::of(path)?.remove_name(&folder::name_of(path))
}

/// An empty database: one page, so that it is one to everybody.
fn make_file(path: &std::path::Path) -> Done {
    let io = |error: std::io::Error| Raised::from(Message::no_directory(path, &error));
    let made = |at: folder::Folder| at.create_with(&folder::name_of(path), NEW_MODE);
    folder::Folder::of(path).and_then(made).map_err(io)?;
    // Encrypted databases of the session say nothing about this one.
    let made = Connection::open_with_flags(
        format!("{}&plain_copies=1", uri(path)),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI,
    )
    .and_then(|connection| connection.execute_batch("PRAGMA journal_mode = WAL; VACUUM"));
    if let Err(error) = made {
        let _ = remove(path);
        return Err(error.into());
    }
    Ok(())
}

/// The file of a database that is made without one being named.
pub(super) fn file_name(name: &str) -> Done<String> {
    match name.contains(['/', '\\', '\0']) || name.starts_with('.') {
        true => Err(Message::path(name, "it is no name for a file: give one with FILENAME").into()),
        false => Ok(format!("{name}.db")),
    }
}

/// A description that says no more than where the file is.
fn only_path(spec: &FileSpec) -> FileSpec {
    FileSpec { file_name: spec.file_name.clone(), ..FileSpec::default() }
}

/// What a statement says of a file.
fn described(file: &mut DatabaseFile, spec: &FileSpec) -> Done {
    if spec.offline {
        return Err(Message::unsupported("OFFLINE of a file").into());
    }
    if let Some(name) = &spec.name {
        file.name = name.as_str().to_owned();
    }
    if let Some(path) = &spec.file_name {
        file.physical = Some(path.text.clone());
    }
    if let Some(size) = spec.size {
        file.size_kb = Some(kilobytes(size)?);
    }
    match spec.max_size {
        Some(MaxSize::Size(size)) => file.most_kb = Some(kilobytes(size)?),
        Some(MaxSize::Unlimited) => file.most_kb = None,
        None => {}
    }
    match spec.growth {
        Some(FileSize { value, unit: Some(SizeUnit::Percent) }) => {
            file.growth = i64::try_from(value).unwrap_or(i64::MAX);
            file.is_percent = true;
        }
        Some(size) => {
            file.growth = kilobytes(size)?;
            file.is_percent = false;
        }
        None => {}
    }
    Ok(())
}

/// MB where no unit is written.
fn kilobytes(size: FileSize) -> Done<i64> {
    let factor: u64 = match size.unit {
        Some(SizeUnit::Bytes(ByteUnit::Kilobytes)) => 1,
        None | Some(SizeUnit::Bytes(ByteUnit::Megabytes)) => 1 << 10,
        Some(SizeUnit::Bytes(ByteUnit::Gigabytes)) => 1 << 20,
        Some(SizeUnit::Bytes(ByteUnit::Terabytes)) => 1 << 30,
        Some(SizeUnit::Percent) => return Err(Message::of(table::INCORRECT_SYNTAX, [&"%"]).into()),
    };
    let bytes = size.value.checked_mul(factor).and_then(|kb| i64::try_from(kb).ok());
    bytes.ok_or_else(|| Message::of(table::FILE_SIZE_TOO_LARGE, []).into())
}
