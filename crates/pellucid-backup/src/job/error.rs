//! The error of a backup that was not made, by what the caller can do about it.

use std::path::Path;

use pellucid::{Error, Subject};
use pellucid_host::DatabaseError;

/// The error of a backup that was not made. Its text is that of the error within.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A file has the name of the media, and the job neither appends to it nor replaces it.
    #[error(transparent)]
    Exists(Error),
    /// The full backup that the differential is to be compared with does not open with the keys at hand.
    #[error(transparent)]
    FullBackupLocked(Error),
    /// No differential of the present database fits that full backup: a new full backup has to be
    /// made first.
    #[error(transparent)]
    FullBackupNeeded(Error),
    /// Any other error.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl JobError {
    /// Makes the error for a `path` that exists.
    pub(super) fn exists(path: &Path) -> Self {
        Self::Exists(Error::misuse(Subject::File(path.to_owned()), "it is there already"))
    }

    /// Whether the text begins with the name of a file.
    pub fn names_a_file(&self) -> bool {
        match self {
            Self::Exists(_) => true,
            Self::FullBackupLocked(error) | Self::FullBackupNeeded(error) => is_of_a_file(error),
            Self::Database(DatabaseError::Typed(error)) => is_of_a_file(error),
            Self::Database(_) => true,
        }
    }
}

fn is_of_a_file(error: &Error) -> bool {
    match error {
        Error::Io { subject, .. }
        | Error::Corrupt { subject, .. }
        | Error::Unauthentic { subject, .. }
        | Error::WrongKind { subject, .. }
        | Error::Unsupported { subject, .. }
        | Error::MissingKey { subject, .. }
        | Error::Misuse { subject, .. }
        | Error::LimitReached { subject, .. } => {
            matches!(subject, Subject::File(_) | Subject::Option(_))
        }
        _ => false,
    }
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<JobError> for DatabaseError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Exists(error)
            | JobError::FullBackupLocked(error)
            | JobError::FullBackupNeeded(error) => error.into(),
            JobError::Database(error) => error,
        }
    }
}
