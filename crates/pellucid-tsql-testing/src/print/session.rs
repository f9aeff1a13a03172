//! USE and SET.

use pellucid_tsql::ast::{IsolationLevel, Literal, Principal, SessionStatement, SettingValue};

use super::{put, If, List, OnOff, One, Print, Printer};

impl Print for SessionStatement {
    fn print(&self, to: &mut Printer) {
        match self {
            SessionStatement::Use(name) => put!(to, "USE ", name),
            SessionStatement::SetVariable { variable, operator, value } => {
                put!(to, "SET ", variable, " ", operator, " ", value);
            }
            SessionStatement::SetStatistics { kinds, on } => {
                let kinds: Vec<_> = kinds.iter().map(|kind| One(*kind)).collect();
                put!(to, "SET STATISTICS ", List(&kinds), " ", OnOff(*on));
            }
            SessionStatement::SetSwitches { switches, on } => {
                let switches: Vec<_> = switches.iter().map(|switch| One(*switch)).collect();
                put!(to, "SET ", List(&switches), " ", OnOff(*on));
            }
            SessionStatement::SetValue { setting, value } => {
                put!(to, "SET ", One(*setting), " ", value);
            }
            SessionStatement::SetIsolation(level) => {
                put!(to, "SET TRANSACTION ISOLATION LEVEL ", level);
            }
            SessionStatement::SetIdentityInsert { table, on } => {
                put!(to, "SET IDENTITY_INSERT ", table, " ", OnOff(*on));
            }
            SessionStatement::ExecuteAs(Principal::Caller) => put!(to, "EXECUTE AS CALLER"),
            SessionStatement::ExecuteAs(Principal::Login(name)) => {
                put!(to, "EXECUTE AS LOGIN = ", name);
            }
            SessionStatement::ExecuteAs(Principal::User(name)) => {
                put!(to, "EXECUTE AS USER = ", name);
            }
            SessionStatement::Revert => put!(to, "REVERT"),
        }
    }
}

impl Print for SettingValue {
    fn print(&self, to: &mut Printer) {
        match self {
            SettingValue::Number { negative, value } => put!(to, If(*negative, "-"), value),
            SettingValue::Binary(bytes) => put!(to, Literal::Binary(bytes.clone())),
            SettingValue::Text(text) => text.print(to),
            SettingValue::Word(word) => word.print(to),
        }
    }
}

impl Print for IsolationLevel {
    fn print(&self, to: &mut Printer) {
        let text = match self {
            IsolationLevel::ReadUncommitted => "READ UNCOMMITTED",
            IsolationLevel::ReadCommitted => "READ COMMITTED",
            IsolationLevel::RepeatableRead => "REPEATABLE READ",
            IsolationLevel::Snapshot => "SNAPSHOT",
            IsolationLevel::Serializable => "SERIALIZABLE",
        };
        put!(to, text);
    }
}
