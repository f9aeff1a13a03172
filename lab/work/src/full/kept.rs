//! The directory of a `lab full`: a file of records for each piece, and which of them are complete.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::machine;
use pellucid_lab_report::record::Machine;
use serde::{Deserialize, Serialize};

/// Beside the records; no report is made of it.
const NOTES: &str = "pieces.json";
/// Below the directory: records of pieces that were stopped.
const ASIDE: &str = "aside";
const PREFIX: &str = "full-";
const RECORDS: &str = "lab/records";

/// Under which conditions a piece was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    pub words: Vec<String>,
    /// As [`Machine::identity`] has them, with the tree.
    pub machine: Vec<String>,
    /// SHA-256 of programs and library, by their names.
    pub artefacts: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Note {
    conditions: Conditions,
    /// Length of the complete records; none while they are not.
    complete_bytes: Option<u64>,
}

/// What a directory of records has.
#[derive(Debug)]
pub struct Kept {
    dir: PathBuf,
    notes: BTreeMap<String, Note>,
}

impl Kept {
    /// The directory at `given`, or a new one; to go on with, the newest.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Invalid`] for one that has pieces already, unless it is gone on with, and if there is none to
    /// go on with.
    pub fn open(given: Option<&PathBuf>, resume: bool) -> Result<Self> {
        let dir = match given {
            Some(dir) => dir.clone(),
            None if resume => newest(Path::new(RECORDS))?,
            None => {
                Path::new(RECORDS).join(format!("{PREFIX}{}", pellucid_lab_report::clock::stamp()))
            }
        };
        let notes = dir.join(NOTES);
        if !notes.exists() {
            return Ok(Self { dir, notes: BTreeMap::new() });
        }
        if !resume {
            return Err(Error::invalid(format!(
                "{}: has pieces already: `--resume` goes on with them, another `--records` begins anew",
                dir.display()
            )));
        }
        let name = notes.display().to_string();
        let text = std::fs::read_to_string(&notes).map_err(Error::io(name.clone()))?;
        let notes = serde_json::from_str(&text)
            .map_err(|error| Error::invalid(format!("{name}: {error}")))?;
        Ok(Self { dir, notes })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file of records of `piece`.
    pub fn records(&self, piece: &str) -> PathBuf {
        self.dir.join(format!("{piece}.jsonl"))
    }

    /// Whether the records of `piece` are complete, and of these conditions.
    pub fn has(&self, piece: &str, conditions: &Conditions) -> bool {
        self.notes
            .get(piece)
            .is_some_and(|note| note.conditions == *conditions && self.whole(piece, note))
    }

    /// Whether the records are those that were noted as complete: nobody has written to them since.
    fn whole(&self, piece: &str, note: &Note) -> bool {
        let bytes = std::fs::metadata(self.records(piece)).map(|file| file.len()).ok();
        note.complete_bytes.is_some() && note.complete_bytes == bytes
    }

    /// Before a piece is run: what is there of it is set aside, but where it can go on with it. Says whether it can.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn begin(&mut self, piece: &str, conditions: &Conditions, resumes: bool) -> Result<bool> {
        let records = self.records(piece);
        let same = self.notes.get(piece).is_some_and(|note| note.conditions == *conditions);
        let goes_on = records.exists() && same && resumes;
        if records.exists() && !goes_on {
            let aside = self.dir.join(ASIDE);
            std::fs::create_dir_all(&aside).map_err(Error::io(aside.display().to_string()))?;
            let mut free = (1..).map(|number| aside.join(format!("{piece}-{number}.jsonl")));
            let free = free.find(|path| !path.exists()).unwrap_or(aside);
            std::fs::rename(&records, &free).map_err(Error::io(records.display().to_string()))?;
            eprintln!("lab: full: {piece}: what there was is in {}", free.display());
        }
        self.note(piece, conditions, None)?;
        Ok(goes_on)
    }

    /// The records of `piece` are complete.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn complete(&mut self, piece: &str, conditions: &Conditions) -> Result<()> {
        let bytes = pellucid_lab_measure::files::length(&self.records(piece))?;
        self.note(piece, conditions, Some(bytes))
    }

    /// Files of all complete pieces of `machine`, an identity with its tree, but `excluded`.
    pub fn complete_records(&self, machine: &[String], excluded: &[&str]) -> Vec<PathBuf> {
        let complete = self.notes.iter().filter(|(piece, note)| {
            !excluded.contains(&piece.as_str())
                && note.conditions.machine == machine
                && self.whole(piece, note)
        });
        complete.map(|(piece, _)| self.records(piece)).collect()
    }

    fn note(&mut self, piece: &str, conditions: &Conditions, complete: Option<u64>) -> Result<()> {
        let note = Note { conditions: conditions.clone(), complete_bytes: complete };
        self.notes.insert(piece.into(), note);
        let text = serde_json::to_string_pretty(&self.notes)
            .map_err(|error| Error::invalid(format!("{NOTES}: {error}")))?;
        let (path, new) = (self.dir.join(NOTES), self.dir.join(format!(".{NOTES}.new")));
        std::fs::create_dir_all(&self.dir)
            .and_then(|()| std::fs::write(&new, text + "\n"))
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(Error::io(path.display().to_string()))
    }
}

impl Conditions {
    /// Takes down the conditions of a piece.
    ///
    /// # Errors
    /// As [`machine::sha256`].
    pub fn of(
        words: &[String],
        machine: &Machine,
        artefacts: &[PathBuf],
        hashes: &mut Hashes,
    ) -> Result<Self> {
        Ok(Self {
            words: words.to_vec(),
            machine: machine.identity().into(),
            artefacts: hashes.of(artefacts)?,
        })
    }
}

/// SHA-256 of files, each taken once.
#[derive(Debug, Default)]
pub struct Hashes(BTreeMap<PathBuf, String>);

impl Hashes {
    /// By the files' names and those of their directories: peers' libraries have one name.
    fn of(&mut self, files: &[PathBuf]) -> Result<BTreeMap<String, String>> {
        let mut named = BTreeMap::new();
        for path in files {
            let hash = match self.0.get(path) {
                Some(hash) => hash.clone(),
                None => machine::sha256(path)?,
            };
            self.0.insert(path.clone(), hash.clone());
            let parts: Vec<_> = path.components().collect();
            let last: PathBuf = parts[parts.len().saturating_sub(2)..].iter().collect();
            named.insert(last.display().to_string(), hash);
        }
        Ok(named)
    }
}

/// Their names hold the time.
fn newest(records: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(records).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && entry.path().is_dir() {
            found.push(entry.path());
        }
    }
    found.into_iter().max().ok_or_else(|| {
        Error::invalid(format!(
            "--resume: no {PREFIX}* in {}: name it with --records",
            records.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(word: &str) -> Conditions {
        Conditions { words: vec![word.into()], machine: vec![], artefacts: BTreeMap::new() }
    }

    #[test]
    fn a_piece_is_there_when_complete_and_of_the_same_conditions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_path_buf();
        let open = |resume| Kept::open(Some(&path), resume);
        let (one, other) = (conditions("a"), conditions("b"));
        let mut kept = open(false).unwrap();
        assert!(!kept.begin("cells", &one, false).unwrap());
        std::fs::write(kept.records("cells"), "1\n").unwrap();
        assert!(!kept.has("cells", &one) && kept.complete_records(&[], &[]).is_empty());
        kept.complete("cells", &one).unwrap();

        assert!(open(false).unwrap_err().to_string().contains("--resume"));
        let mut kept = open(true).unwrap();
        assert!(kept.has("cells", &one) && !kept.has("cells", &other));
        assert_eq!(kept.complete_records(&[], &[]), [kept.records("cells")]);
        assert!(kept.complete_records(&[], &["cells"]).is_empty());
        assert!(kept.complete_records(&["another".into()], &[]).is_empty());
        std::fs::write(kept.records("cells"), "1\n2\n").unwrap();
        assert!(!kept.has("cells", &one), "somebody wrote to it");
        assert!(kept.complete_records(&[], &[]).is_empty(), "no page is made of it");

        // It is run again, and what there was is kept, each time.
        for number in 1..=2 {
            assert!(!kept.begin("cells", &one, false).unwrap());
            assert!(!kept.records("cells").exists());
            assert!(path.join(format!("aside/cells-{number}.jsonl")).exists());
            std::fs::write(kept.records("cells"), "3\n").unwrap();
        }
        // One that can go on keeps its records, if they are of the same conditions.
        assert!(kept.begin("cells", &one, true).unwrap() && kept.records("cells").exists());
        assert!(!kept.begin("cells", &other, true).unwrap() && !kept.records("cells").exists());
    }

    #[test]
    fn files_of_one_name_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let files =
            ["plain/libsqlite3.so.0", "aegis/libsqlite3.so.0"].map(|name| dir.path().join(name));
        for file in &files {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, file.display().to_string()).unwrap();
        }
        let named = Hashes::default().of(&files).unwrap();
        assert_eq!(
            named.keys().collect::<Vec<_>>(),
            ["aegis/libsqlite3.so.0", "plain/libsqlite3.so.0"]
        );
        assert_ne!(named["aegis/libsqlite3.so.0"], named["plain/libsqlite3.so.0"]);
    }

    #[test]
    fn the_newest_is_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        assert!(newest(dir.path()).unwrap_err().to_string().contains("--records"));
        for name in ["full-20261122T090000Z", "full-20261121T230000Z", "quick-20270101T000000Z"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        assert!(newest(dir.path()).unwrap().ends_with("full-20261122T090000Z"));
    }
}
