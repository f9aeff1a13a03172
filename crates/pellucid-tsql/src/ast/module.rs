//! CREATE, ALTER and DROP PROCEDURE.

use super::{DataType, Expression, ObjectName, Statement, Variable, ViewVerb};

/// `{CREATE [OR ALTER] | ALTER} PROCEDURE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Procedure {
    /// Whether it may or must be there already.
    pub verb: ViewVerb,
    /// Its name.
    pub name: ObjectName,
    /// What it takes.
    pub parameters: Vec<ProcedureParameter>,
    /// `WITH RECOMPILE`, which changes no result.
    pub recompile: bool,
    /// What it does: the rest of its batch.
    pub body: Vec<Statement>,
}

/// `@p type [= default] [OUTPUT]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcedureParameter {
    /// Its name.
    pub variable: Variable,
    /// Its type.
    pub data_type: DataType,
    /// A constant that it has where it is not given.
    pub default: Option<Expression>,
    /// `OUTPUT`
    pub output: bool,
}
