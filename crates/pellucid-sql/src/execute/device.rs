//! Backup devices as files, and what the system says of them.

use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use pellucid::error::Subject;
use pellucid::media::MediaHeader;
use pellucid::shown::Shown;
use pellucid::Error;
use pellucid_backup::job::open_family;
use pellucid_host::DatabaseError;
use pellucid_tsql::ast::{Device, DeviceKind, OrVariable, StringLiteral};

use super::{Done, Raised};
use crate::instance::paths::Folder;
use crate::message::{system_error, table, Message};
use crate::session::Session;

/// What a real SQL Server backup begins with: a tape header of Microsoft Tape Format.
const TAPE_HEADER: &[u8] = b"TAPE";
/// Bytes of a file that say what it is.
const START_BYTES: u64 = 4096;

impl Session {
    /// The files of devices, in order.
    pub(super) fn files_of(&mut self, devices: &[Device]) -> Done<Vec<PathBuf>> {
        let mut files = Vec::with_capacity(devices.len());
        for device in devices {
            files.push(self.file_of(device)?);
        }
        Ok(files)
    }

    fn file_of(&mut self, device: &Device) -> Done<PathBuf> {
        match device {
            Device::Logical(name) => {
                let name = match name {
                    OrVariable::Given(name) => name.as_str().to_owned(),
                    OrVariable::Variable(variable) => {
                        let text: OrVariable<StringLiteral> =
                            OrVariable::Variable(variable.clone());
                        self.text(&text)?
                    }
                };
                match self.databases.instance.text_setting(&format!("device:{name}"))? {
                    Some(path) => Ok(self.databases.instance.file(&path, Folder::Backup)?),
                    None => Err(Message::of(table::UNKNOWN_DEVICE, [&name]).into()),
                }
            }
            Device::Physical { kind: DeviceKind::Tape, .. } => {
                Err(Message::unsupported("TAPE").into())
            }
            Device::Physical { kind, path } => {
                let path = self.text(path)?;
                if path.eq_ignore_ascii_case("NUL") {
                    return Ok(PathBuf::from("NUL"));
                }
                match (kind, path.contains("://")) {
                    (DeviceKind::Url, true) => Ok(PathBuf::from(path)),
                    (DeviceKind::Url, false) => Err(Message::path(
                        &path,
                        "it is not a URL of an object store that is known here",
                    )
                    .into()),
                    _ => Ok(self.databases.instance.file(&path, Folder::Backup)?),
                }
            }
        }
    }
}

/// What is being done with a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Writing,
    Reading,
}

/// An error of a backup or restore in SQL Server's words; `files` are the devices.
pub(super) fn told(error: DatabaseError, files: &[PathBuf], doing: Doing) -> Raised {
    let device =
        |path: &PathBuf| files.contains(path) || files.iter().any(|file| beside(file, path));
    match &error {
        DatabaseError::Typed(Error::Io { subject: Subject::File(path), source })
            if device(path) =>
        {
            let named =
                files.iter().find(|file| *file == path || beside(file, path)).unwrap_or(path);
            let named = named.shown();
            let why = system_error(source);
            let message = match (source.kind(), doing) {
                (
                    ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::NotADirectory,
                    _,
                ) => Message::of(table::DEVICE_NOT_OPENED, [&named, &why]),
                (_, Doing::Writing) => Message::of(table::WRITE_FAILED, [&named, &why]),
                (_, Doing::Reading) => Message::of(table::READ_FAILED, [&named, &why]),
            };
            message.into()
        }
        DatabaseError::InUse { .. } if doing == Doing::Reading => {
            Message::from(pellucid::message::IN_USE).into()
        }
        DatabaseError::Typed(
            Error::Unauthentic { .. }
            | Error::Corrupt { .. }
            | Error::WrongKind { .. }
            | Error::Message { .. },
        ) => match not_media(files) {
            Some(raised) => raised,
            None if doing == Doing::Reading
                && !matches!(error, DatabaseError::Typed(Error::Message { .. })) =>
            {
                let damage = Message::of(table::SET_DAMAGED, []);
                Raised::from(error).and(damage)
            }
            None => error.into(),
        },
        DatabaseError::Typed(Error::Misuse { .. }) if doing == Doing::Writing => {
            fewer_families(files).unwrap_or_else(|| error.into())
        }
        DatabaseError::Typed(Error::Misuse { subject: Subject::BackupSet(position), .. })
            if doing == Doing::Reading =>
        {
            no_set(files, *position).unwrap_or_else(|| error.into())
        }
        _ => error.into(),
    }
}

/// 4038 for media that have fewer sets.
fn no_set(files: &[PathBuf], position: u32) -> Option<Raised> {
    let first = files.first()?;
    let is_there = open_family(first).ok()?.set(position).is_ok();
    (!is_there).then(|| Message::of(table::NO_SUCH_FILE_ID, [&position, &first.shown()]).into())
}

/// 3231 for media of another number of files than is named.
fn fewer_families(files: &[PathBuf]) -> Option<Raised> {
    let first = files.first()?;
    let there = open_family(first).ok()?.header.families;
    let counts = [first.shown().to_string(), there.to_string(), files.len().to_string()];
    let arguments = counts.each_ref().map(String::as_str);
    (usize::from(there) != files.len())
        .then(|| Message::known(&pellucid::message::FAMILIES_EXPECTED, &arguments).into())
}

/// 3241 for a file that is no backup of Pellucid's, 3242 for one of a real SQL Server.
fn not_media(files: &[PathBuf]) -> Option<Raised> {
    let (path, start) = files.iter().find_map(|path| {
        let mut start = Vec::new();
        pellucid_files::regular::open_given(path)
            .and_then(|file| file.take(START_BYTES).read_to_end(&mut start))
            .ok()?;
        (!start.is_empty() && !MediaHeader::begins(&start)).then_some((path, start))
    })?;
    let path = path.shown();
    if !start.starts_with(TAPE_HEADER) {
        let path = path.to_string();
        return Some(Message::known(&pellucid::message::NOT_MEDIA, &[&path]).into());
    }
    Some(Raised::of(vec![
        Message::of(table::ONLY_SQL_SERVER_RESTORES, [&path]),
        Message::of(table::NOT_TAPE_FORMAT, [&path]),
    ]))
}

/// Whether `path` is what is written before it gets the name of `file`.
fn beside(file: &std::path::Path, path: &std::path::Path) -> bool {
    file.parent() == path.parent()
        && file.file_name().is_some_and(|name| {
            path.file_name()
                .is_some_and(|other| other.to_string_lossy().contains(&*name.to_string_lossy()))
        })
}

/// SQL Server's sizes of blocks: a power of 2.
pub(super) fn check_block_size(bytes: u64) -> Done {
    match bytes.is_power_of_two() && (512..=65_536).contains(&bytes) {
        true => Ok(()),
        false => Err(Message::of(table::BAD_BLOCK_SIZE, []).into()),
    }
}
