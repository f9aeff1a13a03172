//! Control of flow, variables, transactions.

use super::{
    Condition, DataType, Expression, Name, OrVariable, Statement, StringLiteral, TableElement,
    Text, Variable,
};
use crate::keyword::words;

/// Control of flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// `IF .. [ELSE ..]`. `then` does not end in an `IF` without `ELSE` if there is an `otherwise`.
    If { condition: Condition, then: Box<Statement>, otherwise: Option<Box<Statement>> },
    /// `WHILE`
    While { condition: Condition, body: Box<Statement> },
    /// `BEGIN .. END`
    Block(Vec<Statement>),
    /// `BEGIN TRY .. END TRY BEGIN CATCH .. END CATCH`
    Try { body: Vec<Statement>, catch: Vec<Statement> },
    /// `BREAK`
    Break,
    /// `CONTINUE`
    Continue,
    /// `RETURN [value]`; the value only within a procedure.
    Return(Option<Expression>),
    /// `GOTO label`
    Goto(Name),
    /// `label:`
    Label(Name),
    /// `PRINT`
    Print(Expression),
    /// `THROW [number, message, state]`
    Throw(Option<Throw>),
    /// `RAISERROR`
    RaiseError(Box<RaiseError>),
    /// `WAITFOR {DELAY | TIME}`
    WaitFor { kind: WaitKind, time: Text },
}

words! {
    /// What is waited for.
    pub enum WaitKind {
        Delay = DELAY,
        Time = TIME,
    }
}

/// `number, message, state`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throw {
    /// From 50000.
    pub number: OrVariable<u64>,
    /// Its text.
    pub message: Text,
    /// 0 to 255.
    pub state: OrVariable<u64>,
}

/// `RAISERROR (message, severity, state [, argument ..]) [WITH ..]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaiseError {
    /// A number, a text or a variable.
    pub message: Expression,
    /// Severity.
    pub severity: Expression,
    /// State.
    pub state: Expression,
    /// What the text's `%` stand for.
    pub arguments: Vec<Expression>,
    /// `WITH`
    pub options: Vec<RaiseErrorOption>,
}

words! {
    /// Options of RAISERROR.
    pub enum RaiseErrorOption {
        Log = LOG,
        NoWait = NOWAIT,
        SetError = SETERROR,
    }
}

/// One variable of DECLARE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declaration {
    /// `@v type [= value]`
    Scalar { variable: Variable, data_type: DataType, value: Option<Expression> },
    /// `@t TABLE (..)`
    Table { variable: Variable, elements: Vec<TableElement> },
    /// `@c CURSOR`
    Cursor(Variable),
}

impl Declaration {
    /// What is declared.
    pub fn variable(&self) -> &Variable {
        match self {
            Self::Scalar { variable, .. } | Self::Table { variable, .. } => variable,
            Self::Cursor(variable) => variable,
        }
    }
}

/// Statements on TRANSACTION.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionStatement {
    /// `BEGIN TRANSACTION [name] [WITH MARK ['..']]`
    Begin { name: Option<OrVariable<Name>>, mark: Option<Option<StringLiteral>> },
    /// `COMMIT`
    Commit { name: Option<OrVariable<Name>> },
    /// `ROLLBACK`
    Rollback { name: Option<OrVariable<Name>> },
    /// `SAVE TRANSACTION`
    Save { name: OrVariable<Name> },
}
