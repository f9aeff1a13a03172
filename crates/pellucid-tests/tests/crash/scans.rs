//! Scans in the workloads: a new key, encryption switched off and on, turned back in mid-scan, while rows are
//! committed; and that a scan goes on to its end with whatever a power cut has left.

use std::path::Path;
use std::time::Duration;

use pellucid::header::EncryptionState;
use pellucid::scan::ScanState;
use pellucid::{Error, Subject};
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_engine::scan;
use pellucid_engine::scan::{Ended, Options};
use pellucid_host::DatabaseError;
use pellucid_vfs::lost_log;

use crate::cuts::Found;
use crate::rows::{self, Wrong};
use crate::scenario::{Change, Scenario, State};
use crate::work::{open, Failed, Work};

/// Rows are committed between so many batches of a scan.
const COMMIT_EVERY: usize = 3;

/// One page at a time, without a pause, so that a record is the same each time.
pub fn slow() -> Options {
    Options { hold: Duration::ZERO, patience: Duration::ZERO, ..Options::default() }
}

/// In as few transactions as can be.
fn fast() -> Options {
    Options { exclusive: true, ..slow() }
}

/// Scans, and commits rows in between; with `stop` it is suspended before that batch.
pub fn scan(work: &mut Work, commits: &[Vec<Change>], stop: Option<usize>) -> Result<(), Failed> {
    let path = work.path();
    if commits.is_empty() && stop.is_none() {
        // One that a power cut found suspended; where none is under way there is nothing to go on with.
        let _ = scan::change_state(&path, ScanState::Running);
    }
    let mut told = Ok(());
    let (mut batch, mut next) = (0, commits.iter());
    let ended = scan::run(&path, &slow(), &mut |_, _, _| {
        batch += 1;
        if told.is_err() {
            return;
        }
        if stop == Some(batch) {
            told =
                scan::change_state(&path, ScanState::Suspended).map(drop).map_err(Failed::Convert);
        }
        if batch % COMMIT_EVERY == 0 {
            if let Some(changes) = next.next() {
                told = work.commit(changes, batch % 2 == 0);
            }
        }
    });
    let ended = ended.map_err(Failed::Convert)?;
    told?;
    let wanted = if stop.is_some() { Ended::Suspended } else { Ended::Complete };
    assert!(ended == wanted || ended == Ended::NothingToDo, "{ended:?} after {batch} batches");
    next.try_for_each(|changes| work.commit(changes, false))
}

/// Goes on with whatever is under way: the rows are the same afterwards, one key is left, and everything is under it. Where a
/// power cut left what may be the rest of a damaged log, under the older key, the scan has to say so and go on without it.
pub fn go_on(scenario: &Scenario, directory: &Path, rows: &State) -> Result<Option<Found>, Wrong> {
    let path = directory.join("a.db");
    let damaged = |what: String| Ok(Some(Found::Damaged(what)));
    if let Err(told) = end(&path) {
        return damaged(told);
    }
    let survey = scan::survey(&path, &mut |_, _, _| ());
    match &survey {
        Ok(survey) if survey.is_current() => {}
        other => return damaged(format!("the proof does not hold: {other:?}")),
    }
    let Ok(Kind::Sealed(found)) = inspect(&path).map(|found| found.kind) else {
        return damaged("no header after the scan".to_owned());
    };
    let header = found.header;
    let settled = [EncryptionState::Encrypted, EncryptionState::Unencrypted];
    if !settled.contains(&header.state) || header.deks.len() != 1 {
        return damaged(format!(
            "after the scan: {:?} with {} keys",
            header.state,
            header.deks.len()
        ));
    }
    let connection = open(scenario, &path, true)?;
    if rows::read(&connection, "main", scenario.page_bytes)? != *rows {
        return damaged("the scan has changed rows".to_owned());
    }
    Ok(rows::damage(&connection, "main")?
        .map(|what| Found::Damaged(format!("after the scan: {what}"))))
}

fn end(path: &Path) -> Result<(), String> {
    let run = || loop {
        let ended = scan::run(path, &fast(), &mut |_, _, _| ());
        match lost_log::kept(path).pop() {
            Some(copy) if ended.as_ref().is_err_and(|error| names(error, &copy)) => {
                std::fs::remove_file(&copy)
                    .map_err(|error| format!("{}: {error}", copy.display()))?;
            }
            _ => return ended.map_err(|error| format!("the scan does not go on: {error}")),
        }
    };
    if run()? != Ended::Suspended {
        return Ok(());
    }
    scan::change_state(path, ScanState::Running)
        .map_err(|error| format!("the scan cannot be resumed: {error}"))?;
    match run()? {
        Ended::Complete => Ok(()),
        other => Err(format!("the scan is resumed and {other:?}")),
    }
}

/// Whether an error is about a copy of a log's rest, and no damage.
fn names(error: &DatabaseError, copy: &Path) -> bool {
    matches!(error, DatabaseError::Typed(Error::Misuse { subject: Subject::File(file), .. }) if file == copy)
}
