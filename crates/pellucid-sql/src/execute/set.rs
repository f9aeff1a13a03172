//! USE and SET.

use pellucid_tsql::ast::{
    AssignmentOperator, BinaryOperator, Expression, Name, ObjectName, OrVariable, Principal,
    SessionSetting, SessionStatement, SessionSwitch, SettingValue, StatisticsKind,
};

use super::{Done, Raised};
use crate::known::State;
use crate::message::{table, Message};
use crate::session::{IdentityInsertOn, Session};
use crate::translate::{object_text, VariableTypes, Variables};

impl Session {
    pub(super) fn set(&mut self, statement: &SessionStatement) -> Done {
        match statement {
            SessionStatement::Use(name) => {
                // What follows was meant for that database.
                let ends = |message| Raised { is_thrown: true, ..Raised::from(message) };
                self.databases.use_database(name.as_str()).map_err(ends)?;
                let name = self.databases.current_name();
                self.inform(Message::of(table::CONTEXT_CHANGED, [&name]).with_state(2));
            }
            SessionStatement::SetVariable { variable, operator, value } => {
                if let Some(cursor) = self.cursor_of(variable, value) {
                    return self.set_cursor_variable(&variable.0, &cursor);
                }
                let Some(data_type) = self.frame().variable_type(&variable.0) else {
                    return Err(Message::undeclared(&variable.0).into());
                };
                let value = match binary(*operator) {
                    None => self.value(value, Some(data_type))?,
                    Some(operator) => {
                        let whole = Expression::binary(
                            Expression::Variable(variable.clone()),
                            operator,
                            value.clone(),
                        );
                        self.value(&whole, Some(data_type))?
                    }
                };
                self.frame().set(&variable.0, value);
            }
            SessionStatement::SetStatistics { kinds, on } => {
                let refused = kinds.iter().find(|kind| *on && **kind != StatisticsKind::Time);
                if let Some(kind) = refused {
                    return Err(Message::unsupported(format!("SET STATISTICS {kind}")).into());
                }
                if kinds.contains(&StatisticsKind::Time) {
                    self.settings.statistics_time = *on;
                }
            }
            SessionStatement::SetSwitches { switches, on } => {
                for switch in switches {
                    if state_of_switch(*switch, *on) == State::Refused {
                        let how = if *on { "ON" } else { "OFF" };
                        return Err(Message::unsupported(format!("SET {switch} {how}")).into());
                    }
                }
                switches.iter().for_each(|switch| self.switch(*switch, *on));
            }
            SessionStatement::SetValue { setting, value } => self.setting(*setting, value)?,
            // One writer at a time, and a reader sees one state: SERIALIZABLE, whatever is asked for.
            SessionStatement::SetIsolation(_) => {}
            // A session has one principal: who it is counts, and nothing is to be reverted.
            SessionStatement::ExecuteAs(principal) => self.execute_as(principal)?,
            SessionStatement::Revert => {}
            SessionStatement::SetIdentityInsert { table, on } => {
                self.identity_insert(table, *on)?
            }
        }
        Ok(())
    }

    /// 15406 and 15517 for whoever is none of the session's own names.
    fn execute_as(&mut self, principal: &Principal) -> Done {
        let (name, unknown, owns) = match principal {
            Principal::Caller => return Ok(()),
            Principal::Login(name) => (self.text(name)?, table::NO_LOGIN_TO_BE, "sa"),
            Principal::User(name) => (self.text(name)?, table::NO_USER_TO_BE, "dbo"),
        };
        let own = [owns, self.shared.user()];
        match own.iter().any(|own| own.eq_ignore_ascii_case(&name)) {
            true => Ok(()),
            false => Err(Message::of(unknown, [&name]).into()),
        }
    }

    /// For one table at a time.
    fn identity_insert(&mut self, name: &ObjectName, on: bool) -> Done {
        let shown = object_text(name);
        let found = match name.server {
            None => self.find(name)?,
            Some(_) => None,
        };
        let Some((schema, sqlite, is_view)) = found else {
            return Err(Message::of(table::UNKNOWN_TARGET, [&shown]).with_state(11).into());
        };
        let table = self.databases.table_of(&schema, &sqlite, is_view)?;
        if !table.columns.iter().any(|column| column.identity) {
            return Err(Message::of(table::NO_IDENTITY, [&shown]).into());
        }
        let before = self.databases.identity_insert.on();
        if before.as_ref().is_some_and(|before| before.sqlite == table.sqlite) {
            if !on {
                self.databases.identity_insert.set(None);
            }
            return Ok(());
        }
        if !on {
            return Ok(());
        }
        if let Some(before) = before {
            // It ends with its table, however that went.
            if matches!(self.find(&before.name), Ok(Some(_))) {
                let names = [&before.whole as &dyn std::fmt::Display, &shown];
                return Err(Message::of(table::IDENTITY_INSERT_ELSEWHERE, names).into());
            }
        }
        let database = match schema.as_str() {
            "temp" => "tempdb".to_owned(),
            _ => self.databases.schema_of(name.database.as_ref())?.0.name,
        };
        let (schema, bare) = crate::session::split(&sqlite);
        let whole = format!("{database}.{schema}.{bare}");
        let name = match bare.starts_with('#') {
            true => name.clone(),
            false => ObjectName { database: Name::new(database), ..name.clone() },
        };
        self.databases.identity_insert.set(Some(IdentityInsertOn {
            sqlite: table.sqlite,
            whole,
            name,
        }));
        Ok(())
    }

    fn switch(&mut self, switch: SessionSwitch, on: bool) {
        match switch {
            SessionSwitch::NoCount => self.settings.no_count = on,
            SessionSwitch::XactAbort => self.settings.abort = on,
            SessionSwitch::NoExec => self.settings.no_execution = on,
            SessionSwitch::ParseOnly => self.settings.parse_only = on,
            SessionSwitch::AnsiNulls => self.settings.nulls_are_equal = !on,
            SessionSwitch::AnsiWarnings => self.settings.no_warnings = !on,
            // QUOTED_IDENTIFIER counts for the text behind it, and was met when that was read.
            _ => {}
        }
    }

    fn setting(&mut self, setting: SessionSetting, value: &SettingValue) -> Done {
        match (setting, value) {
            (SessionSetting::RowCount, SettingValue::Number { negative: false, value }) => {
                self.settings.row_count = *value;
            }
            (SessionSetting::LockTimeout, SettingValue::Number { negative, value }) => {
                // Milliseconds; -1 waits for ever.
                let wait = if *negative {
                    u64::from(u32::MAX >> 1)
                } else {
                    (*value).min(u64::from(u32::MAX >> 1))
                };
                self.databases.connection.busy_timeout(std::time::Duration::from_millis(wait))?;
            }
            (SessionSetting::DateFirst, SettingValue::Number { negative: false, value: 7 })
            | (SessionSetting::TextSize, SettingValue::Number { .. })
            | (SessionSetting::DeadlockPriority, _)
            | (SessionSetting::QueryGovernorCostLimit, SettingValue::Number { value: 0, .. }) => {}
            (SessionSetting::DateFormat, SettingValue::Word(OrVariable::Given(name)))
                if name.as_str().eq_ignore_ascii_case("mdy") => {}
            (SessionSetting::Language, SettingValue::Word(OrVariable::Given(name)))
                if is_english(name.as_str()) => {}
            (setting, _) => return Err(Message::unsupported(format!("SET {setting}")).into()),
        }
        Ok(())
    }
}

/// What SET does with a switch.
pub(crate) fn state_of_switch(switch: SessionSwitch, on: bool) -> State {
    match switch {
        SessionSwitch::NoCount
        | SessionSwitch::XactAbort
        | SessionSwitch::NoExec
        | SessionSwitch::ParseOnly
        | SessionSwitch::AnsiNulls
        | SessionSwitch::QuotedIdentifier => State::Works,
        // OFF would do without errors that there are here all the same: overflow, division by zero, text that is too long.
        // It does without 8153.
        SessionSwitch::AnsiPadding | SessionSwitch::AnsiWarnings | SessionSwitch::ArithAbort => {
            State::NoEffect
        }
        // As they are here, whatever is said: the other way is refused.
        SessionSwitch::AnsiDefaults
        | SessionSwitch::AnsiNullDefaultOn
        | SessionSwitch::ConcatNullYieldsNull
            if on =>
        {
            State::NoEffect
        }
        SessionSwitch::AnsiDefaults
        | SessionSwitch::AnsiNullDefaultOn
        | SessionSwitch::ConcatNullYieldsNull => State::Refused,
        SessionSwitch::AnsiNullDefaultOff
        | SessionSwitch::ArithIgnore
        | SessionSwitch::CursorCloseOnCommit
        | SessionSwitch::FmtOnly
        | SessionSwitch::ForcePlan
        | SessionSwitch::ImplicitTransactions
        | SessionSwitch::NumericRoundAbort
        | SessionSwitch::RemoteProcTransactions
        | SessionSwitch::ShowPlanAll
        | SessionSwitch::ShowPlanText
        | SessionSwitch::ShowPlanXml => match on {
            true => State::Refused,
            false => State::NoEffect,
        },
    }
}

fn is_english(name: &str) -> bool {
    ["us_english", "english"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn binary(operator: AssignmentOperator) -> Option<BinaryOperator> {
    crate::translate::operator_of(operator)
}
