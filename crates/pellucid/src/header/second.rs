//! The fields that a header of version 2 has, and one of version 1 has not.
//!
//! Layout: docs/format.md, "Header of version 2". Most of them belong to log backups.

use crate::error::{Error, Result, Subject};

/// The byte of the recovery model, and the one of the marks behind it.
const MODEL_AT: usize = 69;
const MARKS_AT: usize = 70;
/// Where the fields that lie behind the words of flags begin, and where the DEKs do.
const FIELDS_AT: usize = 128;
pub(super) const FIXED_BYTES: usize = 192;

const MARK_INDEX: u8 = 1;
const MARK_CHAIN: u8 = 2;
const MARK_RESTORING: u8 = 4;
const MARK_STANDBY: u8 = 8;
const MARKS: u8 = MARK_INDEX | MARK_CHAIN | MARK_RESTORING | MARK_STANDBY;

/// What happens to the log of a database once its pages are in the file, with the numbers of
/// `sys.databases` in SQL Server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum RecoveryModel {
    /// Each commit goes into the chain of log backups.
    Full = 1,
    /// The same, but for what bulk changes wrote.
    BulkLogged = 2,
    /// The log is used anew; there are no log backups.
    #[default]
    Simple = 3,
}

impl RecoveryModel {
    fn from_id(id: u8) -> Result<Self> {
        match id {
            1 => Ok(Self::Full),
            2 => Ok(Self::BulkLogged),
            3 => Ok(Self::Simple),
            _ => Err(Error::unsupported(
                Subject::Container,
                format!("recovery model {id} is not known to this version"),
            )),
        }
    }

    /// SQL Server's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::BulkLogged => "BULK_LOGGED",
            Self::Simple => "SIMPLE",
        }
    }
}

/// Who may open a database, by what the restore that made it has left, or the backup of its tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Everybody.
    #[default]
    Online,
    /// Nobody: it is in the middle of a restore.
    Restoring,
    /// Whoever reads: more log backups are to come.
    Standby,
}

impl Standing {
    /// SQL Server's word of it, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Restoring => "restoring",
            Self::Standby => "standby",
        }
    }
}

/// The fields of version 2.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Second {
    /// The recovery model.
    pub model: RecoveryModel,
    /// The wal-index is in the machine's memory and not in the file `-shm`.
    pub index_in_memory: bool,
    /// A chain of log backups has begun.
    pub has_chain: bool,
    /// The database is being restored: nobody reads or writes it before the end of that.
    pub is_restoring: bool,
    /// The database follows another one: it is read, and only log backups change it.
    pub is_standby: bool,
    /// The recovery fork of the chain, zeros where none has begun.
    pub fork: [u8; 16],
    /// The LSN at which the chain begins.
    pub chain_begins: u64,
    /// An LSN below which every log was handed out.
    pub handed_out: u64,
    /// What a witness has to know. Reserved.
    pub witness: [u8; 32],
}

impl Second {
    /// Writes the fields into a header's first bytes.
    pub(super) fn encode(&self, out: &mut [u8]) {
        let mark = |set: bool, mark: u8| if set { mark } else { 0 };
        out[MODEL_AT] = self.model as u8;
        out[MARKS_AT] = mark(self.index_in_memory, MARK_INDEX)
            | mark(self.has_chain, MARK_CHAIN)
            | mark(self.is_restoring, MARK_RESTORING)
            | mark(self.is_standby, MARK_STANDBY);
        let fields = &mut out[FIELDS_AT..FIXED_BYTES];
        fields[..16].copy_from_slice(&self.fork);
        fields[16..24].copy_from_slice(&self.chain_begins.to_be_bytes());
        fields[24..32].copy_from_slice(&self.handed_out.to_be_bytes());
        fields[32..].copy_from_slice(&self.witness);
    }

    /// Reads the fields of a whole header copy.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a recovery model or a mark that this version does not know.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let marks = bytes[MARKS_AT];
        if marks & !MARKS != 0 {
            return Err(Error::unsupported(
                Subject::Container,
                format!("marks {marks:#04x} are not known to this version"),
            ));
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(word)
        };
        let mut second = Self {
            model: RecoveryModel::from_id(bytes[MODEL_AT])?,
            index_in_memory: marks & MARK_INDEX != 0,
            has_chain: marks & MARK_CHAIN != 0,
            is_restoring: marks & MARK_RESTORING != 0,
            is_standby: marks & MARK_STANDBY != 0,
            chain_begins: word(FIELDS_AT + 16),
            handed_out: word(FIELDS_AT + 24),
            ..Self::default()
        };
        second.fork.copy_from_slice(&bytes[FIELDS_AT..FIELDS_AT + 16]);
        second.witness.copy_from_slice(&bytes[FIELDS_AT + 32..FIXED_BYTES]);
        Ok(second)
    }

    /// Whether a field is in use that version 1 has no room for.
    pub fn is_used(&self) -> bool {
        *self != Self::default()
    }

    /// What of it is in use, in words that follow the database's name.
    pub fn uses(&self) -> Option<String> {
        let used = match self {
            Self { is_restoring: true, .. } => "is being restored by log backups",
            Self { is_standby: true, .. } => "is a standby database",
            Self { model: RecoveryModel::Full | RecoveryModel::BulkLogged, .. } => {
                return Some(format!("has the recovery model {}", self.model.name()))
            }
            Self { has_chain: true, .. } => "has a chain of log backups",
            Self { index_in_memory: true, .. } => "has its wal-index in memory",
            other if other.is_used() => "takes part in log backups",
            _ => return None,
        };
        Some(used.to_owned())
    }

    /// Whether each commit goes into a chain of log backups.
    pub fn keeps_log(&self) -> bool {
        self.has_chain && self.model != RecoveryModel::Simple
    }

    /// Who may open the database.
    pub fn standing(&self) -> Standing {
        match self {
            Self { is_restoring: true, .. } => Standing::Restoring,
            Self { is_standby: true, .. } => Standing::Standby,
            _ => Standing::Online,
        }
    }

    /// Says who may open the database.
    pub fn set_standing(&mut self, standing: Standing) {
        self.is_restoring = standing == Standing::Restoring;
        self.is_standby = standing == Standing::Standby;
    }

    /// Refuses to write a standby database: its commits would be missing from the chain.
    ///
    /// # Errors
    /// [`Error::Unsupported`], which says why.
    pub fn check_writable(&self) -> Result<()> {
        match self.is_standby {
            true => Err(refused("is a standby, which nobody changes but a restore")),
            false => Ok(()),
        }
    }

    /// Refuses to open a database that is being restored.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn check_readable(&self) -> Result<()> {
        match self.is_restoring {
            true => Err(refused(
                "is being restored, and nobody reads or writes it before that has ended",
            )),
            false => Ok(()),
        }
    }
}

fn refused(why: &str) -> Error {
    Error::unsupported(
        Subject::Container,
        format!("it {why}: `pellucid restore --online --to DB` makes it a database like any other"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Second {
        Second {
            model: RecoveryModel::Full,
            index_in_memory: true,
            has_chain: true,
            is_restoring: true,
            is_standby: true,
            fork: [1; 16],
            chain_begins: 2,
            handed_out: 3,
            witness: [4; 32],
        }
    }

    #[test]
    fn each_field_reads_back() {
        for second in [Second::default(), full()] {
            let mut bytes = [0; FIXED_BYTES];
            second.encode(&mut bytes);
            assert_eq!(Second::parse(&bytes).unwrap(), second);
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let mut bytes = [0; FIXED_BYTES];
        Second::default().encode(&mut bytes);
        for model in [0, 4, 255] {
            bytes[MODEL_AT] = model;
            let told = Second::parse(&bytes).unwrap_err().to_string();
            assert!(told.contains(&format!("recovery model {model}")), "{told}");
        }
        bytes[MODEL_AT] = 3;
        for mark in [16, 32, 64, 128] {
            bytes[MARKS_AT] = mark;
            let told = Second::parse(&bytes).unwrap_err().to_string();
            assert!(told.contains("marks"), "{told}");
        }
    }

    #[test]
    fn a_chain_is_kept_under_each_model_but_simple() {
        for (model, keeps) in [
            (RecoveryModel::Full, true),
            (RecoveryModel::BulkLogged, true),
            (RecoveryModel::Simple, false),
        ] {
            let second = Second { model, has_chain: true, ..Second::default() };
            assert_eq!((second.keeps_log(), second.check_writable().is_ok()), (keeps, true));
            assert!(!Second { has_chain: false, ..second }.keeps_log());
        }
    }

    #[test]
    fn what_is_restored_is_not_opened_and_what_follows_is_read() {
        let mut second = Second::default();
        let mut at = |standing| {
            second.set_standing(standing);
            assert_eq!(second.standing(), standing);
            let is_ok = [second.check_readable().is_ok(), second.check_writable().is_ok()];
            (is_ok, second.is_used())
        };
        assert_eq!(at(Standing::Restoring), ([false, true], true));
        assert_eq!(at(Standing::Standby), ([true, false], true));
        assert_eq!(at(Standing::Online), ([true, true], false));
    }
}
