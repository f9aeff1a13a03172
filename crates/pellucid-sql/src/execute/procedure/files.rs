//! sp_helpfile, sp_helpdb, sp_databases, sp_detach_db, xp_create_subdir, sp_addumpdevice, sp_dropdevice

use super::Arguments;
use crate::execute::{Done, Raised};
use crate::instance::paths::Folder;
use crate::instance::{DatabaseFile, FileKind, Known};
use crate::message::{table, Message};
use crate::session::{shown, Session};
use crate::values::convert::{convert, Value};
use crate::values::types::SqlType;

/// Source: Microsoft's "sp_helpfile".
const FILES: [(&str, SqlType); 8] = [
    ("name", SqlType::SYSNAME),
    ("fileid", SqlType::SmallInt),
    ("filename", SqlType::NChar(260)),
    ("filegroup", SqlType::SYSNAME),
    ("size", SqlType::nvarchar(15)),
    ("maxsize", SqlType::nvarchar(15)),
    ("growth", SqlType::nvarchar(15)),
    ("usage", SqlType::varchar(9)),
];
/// Source: Microsoft's "sp_helpdb".
const DATABASES: [(&str, SqlType); 7] = [
    ("name", SqlType::SYSNAME),
    ("db_size", SqlType::nvarchar(13)),
    ("owner", SqlType::SYSNAME),
    ("dbid", SqlType::SmallInt),
    ("created", SqlType::nvarchar(11)),
    ("status", SqlType::nvarchar(600)),
    ("compatibility_level", SqlType::TinyInt),
];

impl Session {
    pub(super) fn sp_helpfile(&mut self, arguments: &Arguments<'_>) -> Done {
        let known = self.databases.current()?;
        let mut files = self.databases.files(&known)?;
        if let Some(name) = arguments.text(0)? {
            files.retain(|file| file.name.eq_ignore_ascii_case(&name));
            if files.is_empty() {
                return Err(Raised::from(Message::of(table::NO_SUCH_FILE, [&name]))
                    .in_procedure("sp_helpfile"));
            }
        }
        let rows = files.iter().map(|file| row(&known, file)).collect();
        self.give_rows(&FILES, rows)
    }

    pub(super) fn sp_helpdb(&mut self, arguments: &Arguments<'_>) -> Done {
        let named = arguments.text(0)?;
        let all = match &named {
            Some(name) => match self.databases.instance.find(name)? {
                Some(known) => vec![known],
                None => {
                    return Err(Raised::from(Message::of(table::NO_SUCH_DATABASE, [&name]))
                        .in_procedure("sp_helpdb"));
                }
            },
            None => self.databases.instance.databases()?,
        };
        let owner = self.shared.user().to_owned();
        let mut rows = Vec::new();
        for known in &all {
            rows.push(database_row(known, &owner, self.databases.recovery(known)?.model));
        }
        self.give_rows(&DATABASES, rows)?;
        match (&named, all.first()) {
            (Some(_), Some(known)) => {
                let files = self.databases.files(known)?;
                let rows = files.iter().map(|file| row(known, file)).collect();
                self.give_rows(&FILES, rows)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn sp_databases(&mut self) -> Done {
        let columns = [
            ("DATABASE_NAME", SqlType::SYSNAME),
            ("DATABASE_SIZE", SqlType::Int),
            ("REMARKS", SqlType::varchar(254)),
        ];
        let all = self.databases.instance.databases()?;
        let row = |known: &Known| {
            let kb = i64::try_from(bytes_on_disk(known) / 1024).unwrap_or(i64::MAX);
            vec![Value::Text(known.name.clone()), Value::Integer(kb), Value::Null]
        };
        let rows = all.iter().map(row).collect();
        self.give_rows(&columns, rows)
    }

    /// Statistics are as they were, whatever `@skipchecks` says.
    pub(super) fn sp_detach_db(&mut self, arguments: &Arguments<'_>) -> Done {
        let name = arguments.required(0)?;
        self.detach_database(&name).map_err(|raised| raised.in_procedure("sp_detach_db"))
    }

    /// Like SQL Server's, it is content with a folder that is there.
    pub(super) fn xp_create_subdir(&mut self, arguments: &Arguments<'_>) -> Done {
        let written = arguments.required(0)?;
        let folder = self.databases.instance.file(&written, Folder::Backup)?;
        crate::instance::folders::make(&folder).map_err(|error| {
            let number = error.raw_os_error().unwrap_or(0);
            let why = error.kind();
            Raised::from(Message::of(table::SUBDIR_FAILED, [&number, &why]))
                .in_procedure("xp_create_subdir")
        })
    }

    pub(super) fn sp_addumpdevice(&mut self, arguments: &Arguments<'_>) -> Done {
        let (kind, name, path) =
            (arguments.required(0)?, arguments.required(1)?, arguments.required(2)?);
        if !kind.eq_ignore_ascii_case("disk") {
            return Err(Message::unsupported(format!("a backup device of type {kind}")).into());
        }
        let setting = format!("device:{name}");
        if self.databases.instance.text_setting(&setting)?.is_some() {
            return Err(Raised::from(Message::of(table::DEVICE_EXISTS, [&name]))
                .in_procedure("sp_addumpdevice"));
        }
        self.databases.instance.set_text(&setting, &path)?;
        self.inform(Message::text("Device added."));
        Ok(())
    }

    pub(super) fn sp_dropdevice(&mut self, arguments: &Arguments<'_>) -> Done {
        let name = arguments.required(0)?;
        if arguments.text(1)?.is_some() {
            return Err(Message::unsupported("@delfile").into());
        }
        match self.databases.instance.forget_setting(&format!("device:{name}"))? {
            true => {
                self.inform(Message::text("Device dropped."));
                Ok(())
            }
            false => Err(Raised::from(Message::of(table::NO_SUCH_DEVICE, [&name]))
                .in_procedure("sp_dropdevice")),
        }
    }
}

fn row(known: &Known, file: &DatabaseFile) -> Vec<Value> {
    let is_log = file.kind == FileKind::Log;
    let physical = match is_log {
        false => shown(&known.path),
        true => file.physical.clone().map_or_else(|| shown(&log_path(known)), Value::Text),
    };
    let growth = match file.is_percent {
        true => format!("{}%", file.growth),
        false => format!("{} KB", file.growth),
    };
    vec![
        Value::Text(file.name.clone()),
        Value::Integer(file.id),
        physical,
        if is_log { Value::Null } else { Value::Text("PRIMARY".to_owned()) },
        Value::Text(format!("{} KB", size_kb(known, file))),
        Value::Text(file.most_kb.map_or("Unlimited".to_owned(), |kb| format!("{kb} KB"))),
        Value::Text(growth),
        Value::Text(if is_log { "log only" } else { "data only" }.to_owned()),
    ]
}

/// Eight pages of SQL Server's.
const EXTENT_KB: i64 = 64;

/// What the file has on disk, or was asked to have.
pub(crate) fn size_kb(known: &Known, file: &DatabaseFile) -> i64 {
    let path = match file.kind {
        FileKind::Data => known.path.clone(),
        FileKind::Log => log_path(known),
    };
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let kb = i64::try_from(bytes.div_ceil(1024)).unwrap_or(i64::MAX);
    // What nobody has made anything in is as large as it can be made there: one extent.
    let least = if known.is_system() { EXTENT_KB } else { 0 };
    kb.max(file.size_kb.unwrap_or(least))
}

/// The WAL beside a database.
pub(crate) fn log_path(known: &Known) -> std::path::PathBuf {
    let mut name = known.path.clone().into_os_string();
    name.push("-wal");
    name.into()
}

/// Bytes of the log beside a database.
pub(crate) fn log_bytes(known: &Known) -> u64 {
    bytes_of(&log_path(known))
}

fn bytes_on_disk(known: &Known) -> u64 {
    bytes_of(&known.path) + log_bytes(known)
}

fn bytes_of(path: &std::path::Path) -> u64 {
    std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)
        .map_or(0, |metadata| metadata.len())
}

/// `user_access_desc`
pub(crate) fn access(known: &Known) -> &'static str {
    match known.access {
        1 => "SINGLE_USER",
        2 => "RESTRICTED_USER",
        _ => "MULTI_USER",
    }
}

fn database_row(known: &Known, owner: &str, model: i64) -> Vec<Value> {
    let kb = bytes_on_disk(known) / 1024;
    let created = Value::Text(known.created.clone());
    let text = SqlType::nvarchar(30);
    // `Nov 29 2026`
    let created = convert(created, text, SqlType::DateTime, None)
        .and_then(|created| convert(created, SqlType::DateTime, SqlType::nvarchar(11), Some(0)));
    let created = created.unwrap_or(Value::Null);
    let status = format!(
        "Status={}, Updateability={}, UserAccess={}, Recovery={}",
        known.state.name(),
        if known.is_read_only { "READ_ONLY" } else { "READ_WRITE" },
        access(known),
        crate::execute::recovery_model(model),
    );
    vec![
        Value::Text(known.name.clone()),
        Value::Text(format!("{:10.2} MB", kb as f64 / 1024.0)),
        Value::Text(owner.to_owned()),
        Value::Integer(known.id),
        created,
        Value::Text(status),
        Value::Integer(known.compatibility_level),
    ]
}
