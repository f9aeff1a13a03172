//! Paths as statements write them, as files of this machine.
//!
//! `C:\temp\x` is the file `temp/x` in the folder of drive C; a drive without a folder of its own has one in the
//! instance directory, `drives/C`. A path without a drive and without a folder lies in the default folder of its kind.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::Instance;
use crate::message::{Message, Result};

/// The registry key of SQL Server's default folders.
pub(crate) const SERVER_KEY: &str = r"Software\Microsoft\MSSQLServer\MSSQLServer";
/// The registry key of drives.
pub(crate) const DRIVES_KEY: &str = r"Software\Pellucid\Drives";

/// What lies in a default folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folder {
    /// Databases.
    Data,
    /// Their logs; only remembered.
    Log,
    /// Backups, and keys that are backed up.
    Backup,
}

impl Folder {
    fn value(self) -> &'static str {
        match self {
            Self::Data => "DefaultData",
            Self::Log => "DefaultLog",
            Self::Backup => "BackupDirectory",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Data | Self::Log => "data",
            Self::Backup => "backup",
        }
    }
}

/// The name under which a value of the registry is kept.
pub(crate) fn registry_name(key: &str, value: &str) -> String {
    format!(r"registry:{}\{value}", key.trim_matches('\\'))
}

/// What paths stand for: the folders of drives and the default one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    drives: BTreeMap<char, PathBuf>,
    backup: PathBuf,
}

impl Places {
    /// The file that `path` names; none of a drive that there is not.
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        let drive = |letter: char| {
            let known = self.drives.get(&letter.to_ascii_uppercase()).cloned();
            known.ok_or_else(|| Message::path(path, "there is no such drive"))
        };
        resolved(path, drive, || Ok(self.backup.clone())).ok()
    }
}

/// Whether there is a file of this name, whether it is a folder, and whether its folder is there; links are not followed.
pub(crate) fn look_at(place: &Path) -> [bool; 3] {
    let found = pellucid_files::paths::look(place).ok();
    [
        found.as_ref().is_some_and(std::fs::Metadata::is_file),
        found.as_ref().is_some_and(std::fs::Metadata::is_dir),
        place.parent().is_none_or(|parent| pellucid_files::paths::look(parent).is_ok()),
    ]
}

/// The file that `path` names, with the folder of a drive and the default one.
fn resolved(
    path: &str,
    drive: impl FnOnce(char) -> Result<PathBuf>,
    default: impl FnOnce() -> Result<PathBuf>,
) -> Result<PathBuf> {
    if path.starts_with(r"\\") {
        return Err(Message::path(
            path,
            "shares of other machines are not reached: mount it and name the folder",
        ));
    }
    if let Some((letter, rest)) = split_drive(path) {
        return inside(&drive(letter)?, rest)
            .ok_or_else(|| Message::path(path, "it leaves the folder of its drive"));
    }
    let written = PathBuf::from(path.replace('\\', "/"));
    if written.is_absolute() {
        return Ok(written);
    }
    inside(&default()?, path).ok_or_else(|| Message::path(path, "it leaves the default folder"))
}

impl Instance {
    /// The file that `path` names.
    ///
    /// # Errors
    /// 50012 for `\\server\share`, and for a path that leaves the folder of its drive.
    pub fn file(&self, path: &str, folder: Folder) -> Result<PathBuf> {
        resolved(path, |drive| self.drive(drive), || self.folder(folder))
    }

    /// What paths stand for now, for whoever only looks.
    ///
    /// # Errors
    /// 50012.
    pub fn places(&self) -> Result<Places> {
        Ok(Places { drives: self.known_drives()?, backup: self.folder(Folder::Backup)? })
    }

    /// The default folder, made if it is in the instance directory.
    ///
    /// # Errors
    /// 50012.
    pub fn folder(&self, folder: Folder) -> Result<PathBuf> {
        let set = self.text_setting(&registry_name(SERVER_KEY, folder.value()))?;
        match set.filter(|text| !text.trim().is_empty()) {
            // Of its own kind it would ask for itself.
            Some(text) if split_drive(&text).is_some() || text.starts_with(['/', '\\']) => {
                self.file(&text, folder)
            }
            _ => {
                let own = self.home.join(folder.name());
                make(&own)?;
                Ok(own)
            }
        }
    }

    /// The default folder that a value of the registry stands for, where none is set.
    ///
    /// # Errors
    /// 50012.
    pub fn default_of(&self, registry: &str) -> Result<Option<String>> {
        let kinds = [Folder::Data, Folder::Log, Folder::Backup];
        let is_it =
            |kind: &Folder| registry.eq_ignore_ascii_case(&registry_name(SERVER_KEY, kind.value()));
        let found = kinds.into_iter().find(is_it).map(|kind| self.folder(kind)).transpose()?;
        Ok(found.map(|path| path.display().to_string()))
    }

    /// The drives that have a folder, by their letters.
    ///
    /// # Errors
    /// SQLite's.
    pub fn known_drives(&self) -> Result<BTreeMap<char, PathBuf>> {
        let key = registry_name(DRIVES_KEY, "");
        let mut drives = BTreeMap::new();
        for letter in 'A'..='Z' {
            let own = self.home.join("drives").join(letter.to_string());
            let set = self.text_setting(&format!("{key}{letter}"))?;
            let is_made = || pellucid_files::paths::look(&own).is_ok();
            let is_given = self.drives.iter().any(|(drive, _)| drive.eq_ignore_ascii_case(&letter));
            if is_given || set.is_some() || is_made() {
                drives.insert(letter, self.drive(letter)?);
            }
        }
        Ok(drives)
    }

    fn drive(&self, letter: char) -> Result<PathBuf> {
        let letter = letter.to_ascii_uppercase();
        if let Some((_, folder)) =
            self.drives.iter().find(|(drive, _)| drive.eq_ignore_ascii_case(&letter))
        {
            return Ok(folder.clone());
        }
        let set = self.text_setting(&registry_name(DRIVES_KEY, &letter.to_string()))?;
        if let Some(folder) = set.filter(|text| text.starts_with('/')) {
            return Ok(PathBuf::from(folder));
        }
        let own = self.home.join("drives").join(letter.to_string());
        make(&own)?;
        Ok(own)
    }
}

/// Whether a path has no folder and so lies in the default one.
pub(crate) fn split_drive(path: &str) -> Option<(char, &str)> {
    let mut chars = path.chars();
    let letter = chars.next().filter(char::is_ascii_alphabetic)?;
    (chars.next() == Some(':')).then_some((letter, chars.as_str()))
}

fn inside(root: &Path, rest: &str) -> Option<PathBuf> {
    let rest = rest.replace('\\', "/");
    let mut file = root.to_owned();
    for component in Path::new(rest.trim_start_matches('/')).components() {
        match component {
            Component::Normal(name) => file.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(file)
}

/// One name for a file, whatever links lead to it and whether or not it is there yet.
pub(crate) fn canonical(path: PathBuf) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let whole = std::path::absolute(&path).unwrap_or(path);
    match (whole.parent().and_then(|parent| parent.canonicalize().ok()), whole.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => whole,
    }
}

/// For the owner of the instance alone.
fn make(folder: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Message::path(&folder.display().to_string(), &error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_its_folder() {
        let root = Path::new("/srv/d");
        assert_eq!(inside(root, r"\backup\a.bak"), Some(PathBuf::from("/srv/d/backup/a.bak")));
        assert_eq!(inside(root, "DBAWorkWide.bak"), Some(PathBuf::from("/srv/d/DBAWorkWide.bak")));
        assert_eq!(inside(root, r"\..\x"), None);
        assert_eq!(inside(root, r"a\..\..\x"), None);
        assert_eq!(split_drive(r"D:\x"), Some(('D', r"\x")));
        assert_eq!(split_drive("D:x"), Some(('D', "x")));
        assert_eq!(split_drive("/x"), None);
        assert_eq!(split_drive("x.bak"), None);
    }
}
