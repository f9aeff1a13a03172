//! What a batch says: one type per statement, named as SQL Server's reference names things.
//!
//! Options stay in the order in which they are written and are not checked against one another: that is for whoever
//! executes. Two trees are equal if they say the same: positions, white space and quoting do not count.

mod backup;
mod change;
mod control;
mod cursor;
mod database;
mod expression;
mod key;
mod maintenance;
mod module;
mod name;
mod procedure;
mod query;
mod restore;
mod session;
mod table;

use std::ops::Range;

pub use backup::*;
pub use change::*;
pub use control::*;
pub use cursor::*;
pub use database::*;
pub use expression::*;
pub use key::*;
pub use maintenance::*;
pub use module::*;
pub use name::*;
pub use procedure::*;
pub use query::*;
pub use restore::*;
pub use session::*;
pub use table::*;

/// One statement and where it stands.
#[derive(Debug, Clone)]
pub struct Statement {
    /// What it says.
    pub kind: StatementKind,
    /// Line within the batch, from 1: what messages print.
    pub line: u32,
    /// Its bytes within the batch, without the semicolon.
    pub span: Range<usize>,
}

impl PartialEq for Statement {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for Statement {}

impl From<StatementKind> for Statement {
    /// A statement that stands nowhere.
    fn from(kind: StatementKind) -> Self {
        Self { kind, line: 1, span: 0..0 }
    }
}

/// What a statement says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementKind {
    /// SERVICE MASTER KEY and MASTER KEY.
    MasterKey(MasterKeyStatement),
    /// CERTIFICATE.
    Certificate(CertificateStatement),
    /// DATABASE ENCRYPTION KEY.
    DatabaseEncryptionKey(DatabaseEncryptionKeyStatement),
    /// CRYPTOGRAPHIC PROVIDER, CREDENTIAL, ASYMMETRIC KEY and their logins.
    Provider(ProviderStatement),
    /// BACKUP DATABASE and BACKUP LOG.
    Backup(Box<Backup>),
    /// RESTORE DATABASE and RESTORE LOG.
    Restore(Box<Restore>),
    /// RESTORE HEADERONLY and its like.
    Inspect(Box<Inspect>),
    /// CREATE, ALTER, DROP DATABASE.
    Database(DatabaseStatement),
    /// CREATE, ALTER, DROP of what is in a database.
    Object(ObjectStatement),
    /// DBCC, ALTER INDEX, UPDATE STATISTICS, CHECKPOINT, RECONFIGURE.
    Maintenance(MaintenanceStatement),
    /// SELECT.
    Select(Box<Query>),
    /// INSERT.
    Insert(Box<Insert>),
    /// UPDATE.
    Update(Box<Update>),
    /// DELETE.
    Delete(Box<Delete>),
    /// EXECUTE.
    Execute(Box<Execute>),
    /// DECLARE.
    Declare(Vec<Declaration>),
    /// DECLARE CURSOR, OPEN, FETCH, CLOSE, DEALLOCATE.
    Cursor(CursorStatement),
    /// USE and SET.
    Session(SessionStatement),
    /// BEGIN, COMMIT, ROLLBACK, SAVE TRANSACTION.
    Transaction(TransactionStatement),
    /// IF, WHILE, BEGIN .. END, TRY, PRINT and the rest of control of flow.
    Control(Control),
}
