//! Which sides a session compares, and with which libraries.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};

use crate::error::{Error, Result};
use crate::side::{Cipher, Kind, Recovery, Side};

/// Options that say which sides a session compares.
#[derive(Debug, Clone, Args)]
pub struct SideOptions {
    /// What is compared, the first with each other: plain, again (plain once more, the control),
    /// loaded (a plain database in a process with the extension), sealed, sealed=LIBPELLUCID.SO, full (sealed, under the
    /// recovery model FULL), archived (the same beside `pellucid archive`); and sqlcipher, aegis, chacha20 in the lab that
    /// lab/peers/build.sh makes.
    #[arg(long, value_name = "SIDE,..", value_delimiter = ',', default_value = "plain,sealed")]
    pub sides: Vec<SideChoice>,
    /// libpellucid.so of sides that name none; by default the one beside this program.
    #[arg(long, value_name = "FILE", env = "PELLUCID_EXTENSION")]
    pub extension: Option<PathBuf>,
    /// Of the sealed sides.
    #[arg(long, ignore_case = true, default_value = "AES_256")]
    pub algorithm: Algorithm,
}

/// A side, as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SideChoice {
    Plain,
    Again,
    /// A plain database in a process that has loaded the extension.
    Loaded,
    /// With the extension that `--extension` names, or with this one.
    Sealed(Option<PathBuf>),
    /// Sealed, and under the recovery model FULL.
    Full,
    /// The same, beside an archiver.
    Archived,
    Sqlcipher,
    Ciphers(Cipher),
}

/// An algorithm of a sealed database, as SQL Server names it, and one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Algorithm {
    #[value(name = "AES_128")]
    Aes128,
    #[value(name = "AES_192")]
    Aes192,
    #[value(name = "AES_256")]
    Aes256,
    #[value(name = "TRIPLE_DES_3KEY")]
    TripleDes3Key,
    #[value(name = "AEGIS_256")]
    Aegis256,
}

impl SideOptions {
    /// Whether one of the sides is another product.
    pub fn has_peers(&self) -> bool {
        self.sides.iter().any(|side| matches!(side, SideChoice::Sqlcipher | SideChoice::Ciphers(_)))
    }

    /// The sides, with a name for each; `key_file` is theirs.
    ///
    /// The sealed side of the goals is called `sealed`; with another algorithm that is part of its
    /// name, and a second one has a number.
    ///
    /// # Errors
    /// [`Error::Io`] if an extension is not there, [`Error::Invalid`] for fewer than two sides.
    pub fn sides(&self, key_file: &Path) -> Result<Vec<Side>> {
        if self.sides.len() < 2 {
            return Err(Error::invalid("--sides: a comparison takes two at least"));
        }
        let mut sides: Vec<Side> = Vec::new();
        for choice in &self.sides {
            let key_file = key_file.to_path_buf();
            let (name, kind) = match choice {
                SideChoice::Plain => ("plain".to_string(), Kind::Plain),
                SideChoice::Again => ("again".to_string(), Kind::Plain),
                SideChoice::Loaded => {
                    let extension = extension(self.extension.as_ref())?;
                    ("loaded".to_string(), Kind::Loaded { extension })
                }
                SideChoice::Sqlcipher => ("sqlcipher".to_string(), Kind::Sqlcipher { key_file }),
                SideChoice::Ciphers(cipher) => {
                    (cipher.name().to_string(), Kind::Ciphers { cipher: *cipher, key_file })
                }
                SideChoice::Sealed(_) | SideChoice::Full | SideChoice::Archived => {
                    let algorithm = self.algorithm.name();
                    let (path, name) = match choice {
                        SideChoice::Full => (None, "full"),
                        SideChoice::Archived => (None, "archived"),
                        SideChoice::Sealed(path) => (path.as_ref(), "sealed"),
                        _ => (None, "sealed"),
                    };
                    let extension = extension(path.or(self.extension.as_ref()))?;
                    let name = match self.algorithm {
                        Algorithm::Aes256 => name.to_string(),
                        _ => format!("{name}-{algorithm}"),
                    };
                    (name, Kind::Sealed { extension, key_file, algorithm })
                }
            };
            let same = sides.iter().filter(|side| side.kind.name() == kind.name()).count();
            let taken = sides.iter().any(|side| side.name == name);
            let name = if taken { format!("{name}-{}", same + 1) } else { name };
            let library = library(&kind)?;
            let recovery = match choice {
                SideChoice::Full => Recovery::Full,
                SideChoice::Archived => Recovery::Archived,
                _ => Recovery::Simple,
            };
            sides.push(Side { name, kind, library, recovery });
        }
        Ok(sides)
    }
}

impl Algorithm {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
    }
}

impl FromStr for SideChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once('=') {
            None if text == "plain" => Ok(Self::Plain),
            None if text == "again" => Ok(Self::Again),
            None if text == "loaded" => Ok(Self::Loaded),
            None if text == "sealed" => Ok(Self::Sealed(None)),
            None if text == "full" => Ok(Self::Full),
            None if text == "archived" => Ok(Self::Archived),
            None if text == "sqlcipher" => Ok(Self::Sqlcipher),
            None if text == "aegis" => Ok(Self::Ciphers(Cipher::Aegis)),
            None if text == "chacha20" => Ok(Self::Ciphers(Cipher::Chacha20)),
            Some(("sealed", path)) if !path.is_empty() => Ok(Self::Sealed(Some(path.into()))),
            _ => Err("not plain, again, loaded, sealed, sealed=FILE, full, archived, sqlcipher, aegis or chacha20"
                .into()),
        }
    }
}

/// The extension at `given`, else the one beside this program, as an absolute path.
pub fn extension(given: Option<&PathBuf>) -> Result<PathBuf> {
    let beside = || {
        let program = std::env::current_exe().unwrap_or_default();
        program.with_file_name(format!("libpellucid{}", std::env::consts::DLL_SUFFIX))
    };
    let path = given.cloned().unwrap_or_else(beside);
    path.canonicalize().map_err(Error::io(format!(
        "extension `{}` (build it with `cargo build --release`, or name it with `--extension`)",
        path.display()
    )))
}

/// Where the SQLite of a side lies: built in, or beside this program, as lab/peers/build.sh puts it.
fn library(kind: &Kind) -> Result<Option<PathBuf>> {
    let name = match kind {
        Kind::Plain | Kind::Loaded { .. } | Kind::Sealed { .. } => "plain",
        Kind::Sqlcipher { .. } => kind.name(),
        // Both ciphers are of one library.
        Kind::Ciphers { .. } => Cipher::Aegis.name(),
    };
    if cfg!(not(feature = "bundled")) {
        let program = std::env::current_exe().unwrap_or_default();
        let library = program.with_file_name(name).join("libsqlite3.so.0");
        std::fs::metadata(&library).map_err(Error::io(library.display().to_string()))?;
        Ok(Some(program.with_file_name(name)))
    } else if name == "plain" {
        Ok(None)
    } else {
        Err(Error::invalid(format!(
            "side {name}: this lab has its SQLite built in; lab/peers/build.sh makes target/peers/lab"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: SideOptions,
    }

    fn options(line: &str) -> SideOptions {
        Line::parse_from(["lab"].into_iter().chain(line.split_whitespace())).options
    }

    #[test]
    fn sides_have_names_of_their_own() {
        let this = std::env::current_exe().unwrap();
        let names = |line: &str| -> Vec<String> {
            let line = format!("{line} --extension {}", this.display());
            let sides = options(&line).sides(Path::new("/key")).unwrap();
            sides.into_iter().map(|side| side.name).collect()
        };
        let all = ["plain", "again", "loaded", "sealed"];
        assert_eq!(names("--sides plain,again,loaded,sealed"), all);
        let twice = format!("--sides sealed={0},sealed={0},sealed", this.display());
        assert_eq!(names(&twice), ["sealed", "sealed-2", "sealed-3"]);
        let other = names("--sides plain,sealed --algorithm triple_des_3key");
        assert_eq!(other, ["plain", "sealed-TRIPLE_DES_3KEY"]);
        let peer = options("--sides plain,aegis").sides(Path::new("/key"));
        assert!(peer.unwrap_err().to_string().contains("lab/peers/build.sh"));
        assert!(options("--sides plain").sides(Path::new("/key")).is_err());
    }
}
