//! xp_dirtree, xp_fileexist, xp_fixeddrives: what lies in the folders that statements name.

use pellucid_files::volume::Volume;
use pellucid_host::folder::Folder as OpenFolder;

use super::{Arguments, Given};
use crate::execute::Done;
use crate::instance::paths::{look_at, Folder};
use crate::message::Message;
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Folders within one another that are listed, at most.
const DEPTH_MOST: i64 = 128;

impl Session {
    /// Folders, and with the third argument files, down to a depth; 0: all. Of a folder that is not there nothing, as SQL
    /// Server has it. Symbolic links are named and not followed.
    pub(super) fn xp_dirtree(&mut self, arguments: &Arguments<'_>) -> Done {
        let written = arguments.required(0)?;
        let depth = match arguments.integer(1)?.unwrap_or(0) {
            0 => DEPTH_MOST,
            depth => depth.min(DEPTH_MOST),
        };
        let with_files = arguments.integer(2)?.unwrap_or(0) != 0;
        let mut columns = vec![("subdirectory", SqlType::nvarchar(512)), ("depth", SqlType::Int)];
        if with_files {
            columns.push(("file", SqlType::Int));
        }
        let mut rows = Vec::new();
        let place = self.databases.instance.file(&written, Folder::Backup)?;
        if let Ok(folder) = OpenFolder::of(&place.join("x")) {
            list(&folder, (1, depth), with_files, &mut rows);
        }
        self.give_rows(&columns, rows)
    }

    /// Whether a name is a file's, a folder's, and its folder is there. With OUTPUT the first alone.
    pub(super) fn xp_fileexist(&mut self, given: &mut [Given]) -> Done {
        let arguments = Arguments::new("xp_fileexist", given, &["filename", "exists"])?;
        let written = arguments.required(0)?;
        let place = self.databases.instance.file(&written, Folder::Backup)?;
        let found = look_at(&place);
        if let Some(output) = given.get_mut(1).filter(|one| one.output.is_some()) {
            output.give_back(Value::Integer(found[0].into()), SqlType::Int);
            return Ok(());
        }
        let columns = [
            ("File Exists", SqlType::TinyInt),
            ("File is a Directory", SqlType::TinyInt),
            ("Parent Directory Exists", SqlType::TinyInt),
        ];
        let row = found.map(|is| Value::Integer(is.into()));
        self.give_rows(&columns, vec![row.into()])
    }

    /// Each drive that has a folder, with what is free on the volume of it.
    pub(super) fn xp_fixeddrives(&mut self, arguments: &Arguments<'_>) -> Done {
        const MIB: u64 = 1 << 20;
        if arguments.integer(0)?.unwrap_or(0) != 0 {
            return Err(Message::unsupported("xp_fixeddrives of remote drives").into());
        }
        let columns = [("drive", SqlType::Char(1)), ("MB free", SqlType::Int)];
        let mut rows = Vec::new();
        for (drive, folder) in self.databases.instance.known_drives()? {
            let Ok(volume) = Volume::of(&folder) else { continue };
            let free = i64::try_from(volume.free_bytes / MIB).unwrap_or(i64::MAX);
            let free = free.min(i64::from(i32::MAX));
            rows.push(vec![Value::Text(drive.to_string()), Value::Integer(free)]);
        }
        self.give_rows(&columns, rows)
    }
}

fn list(folder: &OpenFolder, (at, most): (i64, i64), files: bool, rows: &mut Vec<Vec<Value>>) {
    let mut names = folder.names().unwrap_or_default();
    names.sort();
    for name in names {
        let Ok(found) = folder.look(&name) else { continue };
        let is_folder = found.is_dir();
        if !is_folder && !files {
            continue;
        }
        let mut row = vec![Value::Text(name.to_string_lossy().into_owned()), Value::Integer(at)];
        if files {
            row.push(Value::Integer((!is_folder).into()));
        }
        rows.push(row);
        if is_folder && at < most {
            if let Ok(within) = folder.folder(&name) {
                list(&within, (at + 1, most), files, rows);
            }
        }
    }
}
