//! CREATE, ALTER and DROP of PROCEDURE and FUNCTION.

use super::{DataType, Expression, ObjectName, Query, Statement, Variable, ViewVerb};

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

/// `{CREATE [OR ALTER] | ALTER} FUNCTION`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Whether it may or must be there already.
    pub verb: ViewVerb,
    /// Its name.
    pub name: ObjectName,
    /// What it takes; none has OUTPUT.
    pub parameters: Vec<ProcedureParameter>,
    /// `WITH SCHEMABINDING`
    pub schema_binding: bool,
    /// `WITH RETURNS NULL ON NULL INPUT`
    pub null_on_null: bool,
    /// What it gives.
    pub body: FunctionBody,
}

/// What a function gives, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionBody {
    /// `RETURNS type AS BEGIN .. END`
    Scalar { data_type: DataType, statements: Vec<Statement> },
    /// `RETURNS TABLE AS RETURN query`
    Table(Box<Query>),
}
