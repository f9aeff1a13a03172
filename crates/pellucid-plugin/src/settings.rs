//! A plugin's own settings: `NAME.conf`, a file of root's, so that the environment of whoever asks decides nothing.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};
use pellucid_files::trusted;

/// Where it lies.
const DIRECTORY: &str = "/etc/pellucid/plugins";
const BYTES_MOST: u64 = 65536;
const OTHERS_READ: u32 = 0o004;

/// Lines `NAME = VALUE`; a name may have several.
#[derive(Debug, Default)]
pub struct Settings {
    path: PathBuf,
    lines: Vec<(String, String)>,
    others_read: bool,
}

impl Settings {
    /// Reads the settings of the plugin `name`: `NAME.conf` beside this program where there is one, and else in
    /// `/etc/pellucid/plugins`. None there is the same as an empty one.
    ///
    /// # Errors
    /// [`Error::Misuse`] if somebody other than root could have written it, or for a line that is none; [`Error::Io`].
    pub fn read(name: &str) -> Result<Self> {
        let file = format!("{name}.conf");
        let program = std::env::current_exe().ok();
        let beside = program.as_deref().and_then(Path::parent).map(|place| place.join(&file));
        for path in beside.into_iter().chain([Path::new(DIRECTORY).join(&file)]) {
            match trusted::open_of_root(&path) {
                Ok(open) => return Self::parse(path, open),
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { path: Path::new(DIRECTORY).join(file), ..Self::default() })
    }

    fn parse(path: PathBuf, file: std::fs::File) -> Result<Self> {
        let io = |error| Error::io(Subject::File(path.clone()), error);
        let others_read = file.metadata().map_err(io)?.mode() & OTHERS_READ != 0;
        let mut text = String::new();
        file.take(BYTES_MOST).read_to_string(&mut text).map_err(io)?;
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                let told = format!("line {} is not `NAME = VALUE`", at + 1);
                return Err(Error::misuse(Subject::File(path), told));
            };
            lines.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(Self { path, lines, others_read })
    }

    /// The file that was read, or that is to be written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.lines.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    /// All values of `name`, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter(move |(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    /// The value of `name`, which is secret.
    ///
    /// # Errors
    /// [`Error::Misuse`] if everybody may read the file.
    pub fn secret(&self, name: &str) -> Result<Option<&str>> {
        match self.get(name) {
            Some(_) if self.others_read => Err(Error::misuse(
                Subject::File(self.path.clone()),
                format!("it has the secret `{name}`, and everybody may read it; `chmod o-r` it"),
            )),
            found => Ok(found),
        }
    }

    /// The names that are none of `known`, which a plugin refuses.
    pub fn unknown(&self, known: &[&str]) -> Option<&str> {
        self.lines.iter().map(|(name, _)| name.as_str()).find(|name| !known.contains(name))
    }
}
