//! Folders for drive letters: `--drive D=/srv/d` and `PELLUCID_DRIVES`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The environment variable with more of them, between semicolons.
pub const VARIABLE: &str = "PELLUCID_DRIVES";

/// A drive and the folder that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drive(pub char, pub PathBuf);

impl FromStr for Drive {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (letter, folder) = text.split_once('=').ok_or("a drive is given as LETTER=FOLDER")?;
        let letter = letter.strip_suffix(':').unwrap_or(letter);
        let mut chars = letter.chars();
        let (Some(letter), None) = (chars.next().filter(char::is_ascii_alphabetic), chars.next())
        else {
            return Err(format!("`{letter}` is no drive letter"));
        };
        if folder.is_empty() {
            return Err(format!("drive {letter} has no folder"));
        }
        let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
        Ok(Self(letter.to_ascii_uppercase(), folder))
    }
}

/// Those that were given, then those of the environment: the first one of a letter counts.
///
/// # Errors
/// What is wrong with the environment's.
pub fn all(given: &[Drive], environment: Option<&str>) -> Result<Vec<(char, PathBuf)>, String> {
    let more = environment.unwrap_or_default().split(';').map(str::trim);
    let more = more.filter(|text| !text.is_empty()).map(Drive::from_str);
    let more = more.collect::<Result<Vec<_>, _>>()?;
    Ok(given.iter().cloned().chain(more).map(|Drive(letter, folder)| (letter, folder)).collect())
}

/// The file that `name` is where a file is made: without a drive, `\` stands between folders as well.
pub fn made(drives: &[(char, PathBuf)], name: &str) -> PathBuf {
    let path = file(drives, name);
    match path.to_str() {
        Some(same) if same == name => with_slashes(name),
        _ => path,
    }
}

/// `name` with `/` between its folders.
pub fn with_slashes(name: &str) -> PathBuf {
    PathBuf::from(name.replace('\\', "/"))
}

/// The file of this machine that `name`, perhaps with a drive, is.
pub fn file(drives: &[(char, PathBuf)], name: &str) -> PathBuf {
    let mut chars = name.chars();
    let letter = chars.next().filter(char::is_ascii_alphabetic);
    if let (Some(letter), Some(':')) = (letter, chars.next()) {
        let found = drives.iter().find(|(drive, _)| drive.eq_ignore_ascii_case(&letter));
        if let Some((_, folder)) = found {
            let rest = chars.as_str().replace('\\', "/");
            return folder.join(rest.trim_start_matches('/'));
        }
    }
    Path::new(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_are_letters_with_folders() {
        let drive = |text: &str| text.parse::<Drive>();
        assert_eq!(drive("d=/srv/d"), Ok(Drive('D', "/srv/d".into())));
        assert_eq!(drive("C:=/srv/c"), Ok(Drive('C', "/srv/c".into())));
        for wrong in ["D", "D=", "DD=/srv", "1=/srv", "=/srv"] {
            assert!(drive(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_given_comes_before_the_environment() {
        let given = [Drive('D', "/given".into())];
        let found = all(&given, Some("C=/srv/c; D=/srv/d;")).unwrap();
        assert_eq!(found[0], ('D', "/given".into()));
        assert_eq!(file(&found, r"d:\scripts\a.sql"), PathBuf::from("/given/scripts/a.sql"));
        assert_eq!(file(&found, r"C:a.sql"), PathBuf::from("/srv/c/a.sql"));
        assert_eq!(file(&found, "E:a.sql"), PathBuf::from("E:a.sql"));
        assert_eq!(file(&found, "scripts/a.sql"), PathBuf::from("scripts/a.sql"));
        assert!(all(&given, Some("nonsense")).is_err());
        assert_eq!(made(&found, r".\a\b.txt"), PathBuf::from("./a/b.txt"));
        assert_eq!(made(&found, r"D:\a\b.txt"), PathBuf::from("/given/a/b.txt"));
    }
}
