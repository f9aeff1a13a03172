//! What there is here of SQL Server: each statement, option, function, view and procedure by name, and its state.
//!
//! Names come from the tables that execute them and from those of what is refused. Where the grammar is the table, the names
//! stand in this module, each with an example; a test of the program runs every example and finds the state that is claimed.

mod functions;
mod objects;
mod options;
mod properties;
mod statements;

pub use crate::known::State;

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `BACKUP DATABASE`
    Statement,
    /// A part of queries and of other statements.
    Clause,
    /// What SET sets.
    Setting,
    /// Of ALTER DATABASE SET.
    DatabaseOption,
    /// Of BACKUP.
    BackupOption,
    /// Of RESTORE.
    RestoreOption,
    /// A type of columns and variables.
    DataType,
    /// A function that gives a value.
    Function,
    /// A function that gives a table.
    TableFunction,
    /// `@@VERSION`
    GlobalVariable,
    /// A view, or a table that the server has.
    View,
    /// A procedure that the server has.
    Procedure,
    /// A command of DBCC.
    Dbcc,
    /// What SERVERPROPERTY and its like are asked for.
    Property,
    /// An option of sqlcmd.
    SqlcmdOption,
    /// A command of sqlcmd.
    SqlcmdCommand,
}

impl Kind {
    /// As it is shown, one of them.
    pub fn text(self) -> &'static str {
        match self {
            Kind::Statement => "statement",
            Kind::Clause => "clause",
            Kind::Setting => "setting",
            Kind::DatabaseOption => "database option",
            Kind::BackupOption => "backup option",
            Kind::RestoreOption => "restore option",
            Kind::DataType => "data type",
            Kind::Function => "function",
            Kind::TableFunction => "table function",
            Kind::GlobalVariable => "global variable",
            Kind::View => "view",
            Kind::Procedure => "procedure",
            Kind::Dbcc => "DBCC command",
            Kind::Property => "property",
            Kind::SqlcmdOption => "sqlcmd option",
            Kind::SqlcmdCommand => "sqlcmd command",
        }
    }
}

/// One thing that SQL Server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// What it is.
    pub kind: Kind,
    /// Its name, as statements write it.
    pub name: String,
    /// What becomes of it.
    pub state: State,
    /// What its state leaves out; empty if nothing.
    pub note: &'static str,
    /// A batch that has it; none of what a script does not have.
    pub example: String,
}

impl Feature {
    fn new(kind: Kind, name: impl Into<String>, state: State, example: impl Into<String>) -> Self {
        Self { kind, name: name.into(), state, note: "", example: example.into() }
    }

    fn with_note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }
}

/// A row of the tables within this module: state, name, note, example.
type Entry = (State, &'static str, &'static str, &'static str);

fn entries(kind: Kind, table: &'static [Entry]) -> impl Iterator<Item = Feature> {
    table.iter().map(move |(state, name, note, example)| {
        Feature::new(kind, *name, *state, *example).with_note(note)
    })
}

/// All that statements may name, each kind sorted by name.
pub fn all() -> Vec<Feature> {
    let mut all: Vec<Feature> = statements::all()
        .chain(options::all())
        .chain(functions::all())
        .chain(objects::all())
        .chain(properties::all())
        .collect();
    all.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    all
}

#[cfg(test)]
mod tests;
