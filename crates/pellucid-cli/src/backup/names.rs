//! Names of a backup's files that stand for more: of which database, and of when.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use pellucid_files::paths::resolved;

/// `{db}`, `{path}` and `{utc}` in a file name, which need not be text.
pub fn expand(name: &OsStr, database: &Path) -> PathBuf {
    let whole = resolved(database).unwrap_or_else(|_| database.to_owned()).with_extension("");
    let parts = whole.as_os_str().as_bytes().split(|byte| *byte == b'/');
    let path = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(&b'-');
    let utc = time::OffsetDateTime::now_utc();
    let utc = format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        utc.year(),
        u8::from(utc.month()),
        utc.day(),
        utc.hour(),
        utc.minute(),
        utc.second()
    );
    let stem = database.file_stem().unwrap_or_default();
    let words: [(&[u8], &[u8]); 3] =
        [(b"{db}", stem.as_bytes()), (b"{path}", &path), (b"{utc}", utc.as_bytes())];
    let mut rest = name.as_bytes();
    let mut expanded = Vec::with_capacity(rest.len());
    while let [first, behind @ ..] = rest {
        match words.iter().find(|(word, _)| rest.starts_with(word)) {
            Some((word, value)) => {
                expanded.extend_from_slice(value);
                rest = &rest[word.len()..];
            }
            None => {
                expanded.push(*first);
                rest = behind;
            }
        }
    }
    PathBuf::from(OsString::from_vec(expanded))
}

/// Whether a file name has `word` in it.
pub fn holds(name: &OsStr, word: &str) -> bool {
    name.as_bytes().windows(word.len()).any(|part| part == word.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_replaced_once_and_bytes_stay() {
        let name = OsStr::from_bytes(b"out/\xe9-{db}-{path}-{x}.bak");
        let database = Path::new("/no such place/a{utc}/data.db");
        let expanded = expand(name, database);
        let is = b"out/\xe9-data-no such place-a{utc}-data-{x}.bak";
        assert_eq!(expanded.as_os_str().as_bytes(), is);
        let dated = expand(OsStr::new("{utc}"), database);
        assert_eq!(dated.as_os_str().len(), "20261125T080000Z".len());
    }
}
