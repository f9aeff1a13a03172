//! The copy of the database's header that an archive has: it belongs to the state beside it, or counts for nothing.

use super::ArchiveState;
use crate::error::{Error, Result, Subject};
use crate::header::{Header, Second};

/// Refuses an authentic header copy and a state that are of two databases, or of two chains of one.
///
/// # Errors
/// [`Error::Unauthentic`], which says whose header it is.
pub fn check_header(header: &Header, state: &ArchiveState) -> Result<()> {
    let second = header.second.as_ref().filter(|second| Second::keeps_log(second));
    let is_file = [Some(header.file_id), header.scan.older_id].contains(&Some(state.file_id));
    let what = match second {
        Some(second) if is_file && second.fork == state.fork => return Ok(()),
        Some(_) if is_file => "another recovery fork than its state",
        Some(_) => "another database than its state",
        None => "a database that has no chain of log backups",
    };
    let cause = format!("its copy of the header is of {what}");
    Err(Error::unauthentic(Subject::LogArchive, cause))
}
