//! USE and SET.

use super::{
    AssignmentOperator, Expression, Name, ObjectName, OrVariable, StringLiteral, Text, Variable,
};
use crate::keyword::words;

/// What changes the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStatement {
    /// `USE`
    Use(Name),
    /// `SET @v = value`
    SetVariable { variable: Variable, operator: AssignmentOperator, value: Expression },
    /// `SET STATISTICS TIME, IO {ON | OFF}`
    SetStatistics { kinds: Vec<StatisticsKind>, on: bool },
    /// `SET NOCOUNT, XACT_ABORT {ON | OFF}`
    SetSwitches { switches: Vec<SessionSwitch>, on: bool },
    /// `SET LOCK_TIMEOUT n`
    SetValue { setting: SessionSetting, value: SettingValue },
    /// `SET TRANSACTION ISOLATION LEVEL`
    SetIsolation(IsolationLevel),
    /// `SET IDENTITY_INSERT t {ON | OFF}`
    SetIdentityInsert { table: ObjectName, on: bool },
    /// `EXECUTE AS ..`
    ExecuteAs(Principal),
    /// `REVERT`
    Revert,
}

/// Whose rights count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// `CALLER`
    Caller,
    /// `LOGIN = ..`
    Login(Text),
    /// `USER = ..`
    User(Text),
}

words! {
    /// What is measured.
    pub enum StatisticsKind {
        Time = TIME,
        Io = IO,
        Profile = PROFILE,
        Xml = XML,
    }
}

words! {
    /// Settings of a session that are on or off.
    pub enum SessionSwitch {
        AnsiDefaults = ANSI_DEFAULTS,
        AnsiNulls = ANSI_NULLS,
        AnsiNullDefaultOff = ANSI_NULL_DFLT_OFF,
        AnsiNullDefaultOn = ANSI_NULL_DFLT_ON,
        AnsiPadding = ANSI_PADDING,
        AnsiWarnings = ANSI_WARNINGS,
        ArithAbort = ARITHABORT,
        ArithIgnore = ARITHIGNORE,
        ConcatNullYieldsNull = CONCAT_NULL_YIELDS_NULL,
        CursorCloseOnCommit = CURSOR_CLOSE_ON_COMMIT,
        FmtOnly = FMTONLY,
        ForcePlan = FORCEPLAN,
        ImplicitTransactions = IMPLICIT_TRANSACTIONS,
        NoCount = NOCOUNT,
        NoExec = NOEXEC,
        NumericRoundAbort = NUMERIC_ROUNDABORT,
        ParseOnly = PARSEONLY,
        QuotedIdentifier = QUOTED_IDENTIFIER,
        RemoteProcTransactions = REMOTE_PROC_TRANSACTIONS,
        ShowPlanAll = SHOWPLAN_ALL,
        ShowPlanText = SHOWPLAN_TEXT,
        ShowPlanXml = SHOWPLAN_XML,
        XactAbort = XACT_ABORT,
    }
}

words! {
    /// Settings of a session that have a value.
    pub enum SessionSetting {
        ContextInfo = CONTEXT_INFO,
        DateFirst = DATEFIRST,
        DateFormat = DATEFORMAT,
        DeadlockPriority = DEADLOCK_PRIORITY,
        Language = LANGUAGE,
        LockTimeout = LOCK_TIMEOUT,
        QueryGovernorCostLimit = QUERY_GOVERNOR_COST_LIMIT,
        RowCount = ROWCOUNT,
        TextSize = TEXTSIZE,
    }
}

/// A setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    /// `[-]n`
    Number { negative: bool, value: u64 },
    /// `0x..`
    Binary(Vec<u8>),
    /// `'..'`
    Text(StringLiteral),
    /// A bare word, such as `dmy`, `LOW`, `us_english`; or a variable.
    Word(OrVariable<Name>),
}

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    /// `READ UNCOMMITTED`
    ReadUncommitted,
    /// `READ COMMITTED`
    ReadCommitted,
    /// `REPEATABLE READ`
    RepeatableRead,
    /// `SNAPSHOT`
    Snapshot,
    /// `SERIALIZABLE`
    Serializable,
}
