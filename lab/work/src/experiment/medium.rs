//! Backups and restores by statement, timed: what they took, what they said, what msdb remembers.

use std::path::Path;

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{length, remove};
use pellucid_lab_measure::machine::{self, Load};
use pellucid_lab_measure::sql::{quoted, Answer, Server};
use pellucid_lab_report::record::SideDescription;

use crate::experiment::notes::{Notes, Turn};
use crate::fixture::settle;

/// Encryption choices; the base is the first.
pub const CHOICES: [&str; 5] = ["none", "AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY"];
/// The word of a backup's statement that compresses it.
pub const COMPRESSION: &str = "COMPRESSION";
/// The word of a backup's statement that does not.
pub const NO_COMPRESSION: &str = "NO_COMPRESSION";

/// `RESTORE DATABASE successfully processed ..` and the same of BACKUP.
const PROCESSED: i64 = 3014;
const MB: f64 = 1e6;

/// What msdb remembers of the last backup of a name: durations in whole seconds, as article 0's query has them, and from
/// the columns as they are.
const REMEMBERED: &str = "SELECT TOP 1 backup_size, compressed_backup_size, key_algorithm, \
     DATEDIFF(SECOND, backup_start_date, backup_finish_date) AS whole_s, \
     DATEDIFF(MILLISECOND, backup_start_date, backup_finish_date) AS ms \
     FROM msdb.dbo.backupset WHERE ISNULL(name, '') = {name} ORDER BY backup_set_id DESC";

/// A statement that was timed.
#[derive(Debug)]
pub struct Timed {
    pub answer: Answer,
    pub dirty_kib: u64,
    /// Of others and stolen, as [`Load::shares`] has them.
    pub shares: (f64, f64),
}

impl Timed {
    /// Executes `script` once the machine is quiet.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub fn run(server: &Server, script: &str) -> Result<Self> {
        let dirty_kib = settle();
        let load = Load::begin();
        let answer = server.run(script)?;
        let shares = load.end().shares(answer.cpu_s);
        Ok(Self { answer, dirty_kib, shares })
    }

    /// Writes what it took of a database of `bytes`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it did not say what it processed.
    pub fn write(&self, notes: &mut Notes, turn: Turn<'_>, bytes: u64) -> Result<()> {
        self.write_said(notes, turn, bytes, processed(&self.answer)?)
    }

    /// The same of a script of several backups or restores: pages and seconds are those of all.
    ///
    /// # Errors
    /// As [`Timed::write`].
    pub fn write_all(&self, notes: &mut Notes, turn: Turn<'_>, bytes: u64) -> Result<()> {
        let said = all_processed(&self.answer)?;
        let sum = |of: fn(&(f64, f64)) -> f64| said.iter().map(of).sum();
        self.write_said(notes, turn, bytes, (sum(|one| one.0), sum(|one| one.1)))
    }

    fn write_said(
        &self,
        notes: &mut Notes,
        turn: Turn<'_>,
        bytes: u64,
        (pages, said_s): (f64, f64),
    ) -> Result<()> {
        let wall_s = self.answer.wall_s;
        let numbers = [
            ("elapsed_s", wall_s),
            ("said_s", said_s),
            ("processed_pages", pages),
            ("speed_mb_per_s", bytes as f64 / MB / wall_s),
            ("others_percent_cpu", self.shares.0 * 100.0),
            ("stolen_percent_cpu", self.shares.1 * 100.0),
            ("dirty_kib", self.dirty_kib as f64),
        ];
        notes.write(turn, numbers)?;
        notes.write(turn, self.answer.cpu_s.map(|seconds| ("cpu_s", seconds)))
    }
}

/// Pages and seconds of the message that a backup or a restore ends with.
///
/// # Errors
/// [`Error::Invalid`] if there is none.
pub fn processed(answer: &Answer) -> Result<(f64, f64)> {
    let last = all_processed(answer)?.pop();
    last.ok_or_else(|| Error::invalid("not told what was processed"))
}

/// The same of each backup and restore of a script.
fn all_processed(answer: &Answer) -> Result<Vec<(f64, f64)>> {
    let told = answer.messages.iter().filter(|message| message.number == PROCESSED);
    let read = |text: &str| {
        let (_, rest) = text.split_once("successfully processed ")?;
        let (pages, rest) = rest.split_once(" pages in ")?;
        let (seconds, _) = rest.split_once(" seconds")?;
        Some((pages.parse().ok()?, seconds.parse().ok()?))
    };
    told.map(|message| {
        let text = &message.text;
        read(text).ok_or_else(|| Error::invalid(format!("not told what was processed: `{text}`")))
    })
    .collect()
}

/// Writes lengths and durations of the backup called `name`, which lies at `path`.
///
/// # Errors
/// [`Error::Invalid`] if it is not encrypted as `turn.side` says, in the words of msdb.
pub fn remember(
    server: &Server,
    notes: &mut Notes,
    turn: Turn<'_>,
    name: &str,
    path: &Path,
) -> Result<()> {
    let wanted = Some(turn.side).filter(|side| *side != CHOICES[0]);
    remember_sealed(server, notes, turn, name, path, wanted)
}

/// The same of a backup that has to be encrypted with `wanted`, whatever its statement said.
///
/// # Errors
/// As [`remember`].
pub fn remember_sealed(
    server: &Server,
    notes: &mut Notes,
    turn: Turn<'_>,
    name: &str,
    path: &Path,
    wanted: Option<&str>,
) -> Result<()> {
    let answer = server.run(&REMEMBERED.replace("{name}", &quoted(name)))?;
    let table = answer.table()?;
    let algorithm = table.value(0, "key_algorithm")?.as_str();
    if algorithm != wanted {
        return Err(Error::invalid(format!("backup `{name}` is encrypted with {algorithm:?}")));
    }
    let numbers = [
        ("media_bytes", length(path)? as f64),
        ("natural_bytes", table.number(0, "backup_size")?),
        ("compressed_bytes", table.number(0, "compressed_backup_size")?),
        ("msdb_whole_s", table.number(0, "whole_s")?),
        ("msdb_s", table.number(0, "ms")? / 1000.0),
    ];
    notes.write(turn, numbers)
}

/// Takes a medium away, after it was looked at if this is the warm-up: a sealed one shows no row's text, and a plain one
/// that is not compressed does.
///
/// # Errors
/// [`Error::Invalid`] if it is not what it should be.
pub fn discard(turn: Turn<'_>, is_compressed: bool, path: &Path) -> Result<()> {
    if turn.round == 0 {
        let is_readable = super::content::is_readable(path)?;
        let is_plain = turn.side == CHOICES[0];
        if is_readable && !is_plain || !is_readable && is_plain && !is_compressed {
            let seen = if is_readable { "seen" } else { "not seen" };
            return Err(Error::invalid(format!("{} backup: a row's text {seen}", turn.side)));
        }
    }
    remove(path)
}

/// The choices of a scenario.
///
/// # Errors
/// [`Error::Invalid`] for one that is none, and if the first is not `none`, the base.
pub fn checked(choices: &[String]) -> Result<Vec<&'static str>> {
    let known = |choice: &String| CHOICES.into_iter().find(|known| known == choice);
    let found: Vec<_> = choices.iter().filter_map(known).collect();
    let good = found.len() == choices.len() && found.first() == CHOICES.first();
    match good && (1..found.len()).all(|at| !found[..at].contains(&found[at])) {
        true => Ok(found),
        false => Err(Error::invalid(format!(
            "choices: `none` first, then each of {} at most once",
            CHOICES[1..].join(", ")
        ))),
    }
}

/// The words of a scenario that compress backups, or do not.
///
/// # Errors
/// [`Error::Invalid`] for one that is none, for none and for one twice.
pub fn compressions(names: &[String]) -> Result<Vec<&'static str>> {
    let known = |name: &String| [COMPRESSION, NO_COMPRESSION].into_iter().find(|one| one == name);
    let found: Vec<_> = names.iter().filter_map(known).collect();
    let twice = (1..found.len()).any(|at| found[..at].contains(&found[at]));
    match found.len() == names.len() && !found.is_empty() && !twice {
        true => Ok(found),
        false => Err(Error::invalid("compression: COMPRESSION, NO_COMPRESSION or both")),
    }
}

/// The record's words for each choice: `program` does the work.
///
/// # Errors
/// As [`machine::sha256`].
pub fn describe(
    choices: &[&str],
    program: &Path,
    content: &super::content::Content,
    bytes: u64,
) -> Result<Vec<SideDescription>> {
    let hash = machine::sha256(program)?;
    let one = |choice: &&str| {
        let is_plain = *choice == CHOICES[0];
        SideDescription {
            side: choice.to_string(),
            kind: if is_plain { "plain backup" } else { "sealed backup" }.into(),
            algorithm: (!is_plain).then(|| choice.to_string()),
            extension: Some("pellucid".into()),
            extension_sha256: Some(hash.clone()),
            library: None,
            change: None,
            engine: Some(content.engine.clone()),
            file_bytes: Some(bytes),
            page_size_bytes: Some(pellucid_lab_report::plan::PAGE_SIZE_BYTES),
        }
    };
    Ok(choices.iter().map(one).collect())
}

/// About how many seconds, for estimates.
pub mod seconds {
    use super::{CHOICES, COMPRESSION};

    /// Of a database, while it is backed up: compressed, and as it is.
    const MB_PER_S: [f64; 2] = [150.0, 350.0];
    /// While it is restored.
    const RESTORED_MB_PER_S: [f64; 2] = [270.0, 400.0];
    /// Of what is stored, 3DES.
    const TRIPLE_DES_MB_PER_S: f64 = 22.0;
    /// What is stored of a compressed database.
    const COMPRESSED_SHARE: f64 = 0.4;
    /// A database that is made, and read or copied.
    const MADE_MB_PER_S: f64 = 40.0;
    const COPIED_MB_PER_S: f64 = 400.0;
    /// Of every statement, its waiting for a quiet machine included.
    const EACH: f64 = 0.8;
    /// Of a set more in a chain, made, or read by the command.
    pub const SET: f64 = 0.03;
    /// Of one that a statement restores.
    pub const SET_BY_STATEMENT: f64 = 0.08;
    /// What is checked whole.
    const CHECKED_MB_PER_S: f64 = 50.0;
    /// Rows that are written anew.
    const WRITTEN_MB_PER_S: f64 = 20.0;

    /// Of a backup of `bytes` to a medium.
    pub fn backup(choice: &str, compression: &str, bytes: u64) -> f64 {
        sealing(choice, compression, bytes) + mb(bytes) / MB_PER_S[place(compression)] + EACH
    }

    /// With the database's removal and the counting of its rows.
    pub fn restore(choice: &str, compression: &str, bytes: u64) -> f64 {
        let work = mb(bytes) / RESTORED_MB_PER_S[place(compression)] + mb(bytes) / COPIED_MB_PER_S;
        sealing(choice, compression, bytes) + work + EACH
    }

    /// All pages are read; few are stored.
    pub fn differential(choice: &str, compression: &str, bytes: u64, share: f64) -> f64 {
        sealing(choice, compression, (bytes as f64 * share) as u64) + mb(bytes) / MB_PER_S[1] + EACH
    }

    /// Of making a database of `bytes`.
    pub fn made(bytes: u64) -> f64 {
        mb(bytes) / MADE_MB_PER_S
    }

    /// Of copying `bytes`.
    pub fn copied(bytes: u64) -> f64 {
        mb(bytes) / COPIED_MB_PER_S
    }

    /// Of writing rows of `bytes` of pages anew.
    pub fn written(bytes: u64) -> f64 {
        mb(bytes) / WRITTEN_MB_PER_S + EACH / 4.0
    }

    /// Of looking at a database whole.
    pub fn checked(bytes: u64) -> f64 {
        mb(bytes) / CHECKED_MB_PER_S
    }

    fn sealing(choice: &str, compression: &str, bytes: u64) -> f64 {
        let stored = if compression == COMPRESSION { COMPRESSED_SHARE } else { 1.0 };
        let is_slow = Some(&choice) == CHOICES.last();
        if is_slow {
            mb(bytes) * stored / TRIPLE_DES_MB_PER_S
        } else {
            0.0
        }
    }

    fn place(compression: &str) -> usize {
        usize::from(compression != COMPRESSION)
    }

    fn mb(bytes: u64) -> f64 {
        bytes as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use pellucid_lab_measure::sql::Message;

    use super::*;

    #[test]
    fn the_base_is_first_and_nothing_is_there_twice() {
        let checked = |names: &[&str]| {
            checked(&names.iter().map(|name| name.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(checked(&CHOICES).unwrap(), CHOICES);
        assert_eq!(checked(&["none", "AES_256"]).unwrap(), ["none", "AES_256"]);
        for wrong in [&["AES_256"][..], &[], &["none", "AES_256", "AES_256"], &["none", "DES"]] {
            assert!(checked(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_medium_that_is_not_what_it_should_be_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.bak");
        let turn = |side, round| Turn { cell: "", round, place: 0, side };
        let discard = |text: &str, side, is_compressed| {
            std::fs::write(&path, text).unwrap();
            super::discard(turn(side, 0), is_compressed, &path).is_ok() && !path.exists()
        };
        let readable = crate::scenario::whole::MARKER;
        assert!(discard(readable, "none", false) && discard("-", "none", true));
        assert!(discard("-", "AES_256", false) && discard("-", "AES_256", true));
        assert!(!discard(readable, "AES_256", false) && !discard(readable, "AES_256", true));
        assert!(!discard("-", "none", false));
    }

    #[test]
    fn compressions_are_the_two_each_at_most_once() {
        let of = |names: &[&str]| {
            compressions(&names.iter().map(|name| name.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(of(&[NO_COMPRESSION, COMPRESSION]).unwrap(), [NO_COMPRESSION, COMPRESSION]);
        for wrong in [&[][..], &["zstd"], &[COMPRESSION, COMPRESSION]] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn each_backup_of_a_script_says_what_it_processed() {
        let message = |number, text: &str| Message { number, severity: 10, text: text.into() };
        let mut answer = Answer {
            tables: Vec::new(),
            messages: vec![
                message(PROCESSED, "RESTORE DATABASE successfully processed 45 pages in 0.192 seconds (0.914 MB/sec)."),
                message(4035, "Processed 18 pages for database 'restored', file 'a' on file 1."),
                message(PROCESSED, "RESTORE LOG successfully processed 18 pages in 0.030 seconds (2.349 MB/sec)."),
            ],
            changed: Vec::new(),
            wall_s: 1.0,
            cpu_s: None,
        };
        assert_eq!(all_processed(&answer).unwrap(), [(45.0, 0.192), (18.0, 0.03)]);
        assert_eq!(processed(&answer).unwrap(), (18.0, 0.03));
        answer.messages.push(message(PROCESSED, "RESTORE LOG was long."));
        assert!(all_processed(&answer).is_err());
        answer.messages.clear();
        assert!(processed(&answer).is_err());
    }

    #[test]
    fn an_estimate_knows_that_3des_is_slow() {
        let of = |choice| seconds::backup(choice, NO_COMPRESSION, 1 << 30);
        assert!(of("TRIPLE_DES_3KEY") > 10.0 * of("AES_256"));
        assert_eq!(of("none"), of("AES_256"));
    }
}
