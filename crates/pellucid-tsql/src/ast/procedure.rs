//! EXECUTE.

use super::{Expression, Literal, Name, ObjectName, Variable};

/// `EXECUTE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Execute {
    /// `[@result =] procedure [arguments]`
    Procedure {
        /// Where the return value goes.
        result: Option<Variable>,
        /// What is called.
        procedure: ProcedureName,
        /// With what.
        arguments: Vec<Argument>,
    },
    /// `('statements' + @v)`
    Statements(Expression),
}

/// What EXECUTE calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcedureName {
    /// By name.
    Name(ObjectName),
    /// By a variable that holds its name.
    Variable(Variable),
}

/// `[@parameter =] value`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Which parameter; `None`: the next.
    pub parameter: Option<Variable>,
    /// What is passed.
    pub value: ArgumentValue,
}

/// What is passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentValue {
    /// A constant, maybe with a sign.
    Literal { negative: bool, value: Literal },
    /// A bare word, such as `REG_SZ`: a string.
    Word(Name),
    /// `@v [OUTPUT]`
    Variable { variable: Variable, output: bool },
    /// `@@v`
    SystemVariable(String),
    /// `DEFAULT`
    Default,
}
