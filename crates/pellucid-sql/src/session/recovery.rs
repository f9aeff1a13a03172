//! The recovery model of a database. The header of a container of version 2 says it; of others the registry remembers it.

use std::rc::Rc;

use pellucid::header::{Header, RecoveryModel, Standing};
use pellucid::lsn::Lsn;
use pellucid_engine::inspect::Kind;
use pellucid_engine::log_chain::{self, Waiting};

use super::Databases;
use crate::instance::{Known, State};
use crate::message::Result;

/// The option of a database whose model is to go into its header, once that has room for it.
const WAITING: &str = "RECOVERY_WAITING";

/// What the header says of the chain of log backups.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recovery {
    /// 1 FULL, 2 BULK_LOGGED, 3 SIMPLE
    pub model: i64,
    /// Whether the database is a container of version 2, which alone can have a chain.
    pub has_room: bool,
    /// Whether it is a container.
    pub is_sealed: bool,
    /// The fork of the chain that has begun.
    pub fork: Option<[u8; 16]>,
    /// Where that begins.
    pub begins: Lsn,
    /// Whether a restore, or a backup of the tail, has left it restoring or as a standby.
    pub standing: Standing,
}

impl Databases {
    /// The recovery model of a database, and its chain.
    ///
    /// # Errors
    /// As [`Databases::look`].
    pub fn recovery(&self, known: &Known) -> Result<Recovery> {
        let remembered = Recovery { model: known.recovery_model, ..Recovery::default() };
        if known.is_system() || known.state != State::Online {
            let standing = match known.state {
                State::Restoring => Standing::Restoring,
                _ => Standing::Online,
            };
            return Ok(Recovery { standing, ..remembered });
        }
        let Some(header) = self.header(known)? else { return Ok(remembered) };
        let waiting = self.waiting(known)?;
        let model = number(log_chain::model_of(&header));
        Ok(match &header.second {
            Some(second) => Recovery {
                model: waiting.unwrap_or(model),
                has_room: true,
                is_sealed: true,
                fork: log_chain::chain_of(&header),
                begins: Lsn::of_word(second.chain_begins),
                standing: second.standing(),
            },
            None => Recovery { is_sealed: true, ..remembered },
        })
    }

    /// Whether the header says that the database is restoring or a standby.
    ///
    /// # Errors
    /// As [`Databases::look`].
    pub fn standing(&self, known: &Known) -> Result<Standing> {
        Ok(self.header(known)?.map_or(Standing::Online, |header| header.standing()))
    }

    /// Says in the header who may open the database, if that has room for it and says otherwise.
    ///
    /// # Errors
    /// The engine's.
    pub fn set_standing(&self, known: &Known, standing: Standing) -> Result<()> {
        let header = self.header(known)?.filter(|header| header.second.is_some());
        if header.is_some_and(|header| header.standing() != standing) {
            // The header is changed past this connection.
            self.release(known)?;
            pellucid_engine::standing::change(&known.path, standing, || Ok(()))?;
        }
        Ok(())
    }

    /// What of its chain waits for a log backup. None where it has none, and where nothing says so now: another program has it for
    /// itself alone, or its archive cannot be read.
    pub fn waits_for_backup(&self, known: &Known, recovery: &Recovery) -> Option<Waiting> {
        let look = || log_chain::waiting(&known.path).ok().flatten();
        recovery.fork.and_then(|_| self.glances.waiting(known, look))
    }

    /// Why its log is not free: `LOG_BACKUP` where it has commits that no log backup has, also where that cannot be known.
    pub fn holds_log(&self, recovery: &Recovery, waiting: Option<Waiting>) -> bool {
        recovery.fork.is_some() && waiting.is_none_or(|waiting| waiting.is_some())
    }

    /// Gives a database another recovery model: in its header, if that has room for it, else as soon as it has.
    ///
    /// # Errors
    /// The engine's; SQLite's.
    pub fn set_recovery(&self, known: &Known, model: i64) -> Result<()> {
        let has_room = self.header(known)?.is_some_and(|header| header.second.is_some());
        if has_room {
            self.write_model(known, model)?;
        }
        let waits = !has_room && model != number(RecoveryModel::Simple);
        self.instance.set_option(known, WAITING, if waits { model } else { 0 })?;
        self.instance.set(known, "recovery_model", &model)
    }

    /// Writes a model that was waiting into the header, if that has room by now.
    ///
    /// # Errors
    /// As [`Databases::set_recovery`].
    pub fn settle_recovery(&self, known: &Known) -> Result<()> {
        match self.waiting(known)? {
            Some(model) => self.set_recovery(known, model),
            None => Ok(()),
        }
    }

    fn waiting(&self, known: &Known) -> Result<Option<i64>> {
        Ok(self.instance.option(known, WAITING)?.filter(|model| *model != 0))
    }

    fn write_model(&self, known: &Known, model: i64) -> Result<()> {
        // The header is changed past this connection.
        self.release(known)?;
        let model = match model {
            1 => RecoveryModel::Full,
            2 => RecoveryModel::BulkLogged,
            _ => RecoveryModel::Simple,
        };
        log_chain::set_model(&known.path, model)?;
        Ok(())
    }

    /// The header of a container; none for another database, and for one that cannot be read.
    fn header(&self, known: &Known) -> Result<Option<Header>> {
        let found: Option<Rc<Kind>> = self.look(known)?.ok();
        Ok(match found.as_deref() {
            Some(Kind::Sealed(sealed)) => Some(sealed.header.clone()),
            _ => None,
        })
    }
}

/// `sys.databases.recovery_model`
fn number(model: RecoveryModel) -> i64 {
    model as i64
}
