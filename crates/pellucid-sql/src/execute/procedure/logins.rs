//! xp_loginconfig, sp_change_users_login: there are no logins but the account's own, and no users without one.

use super::Arguments;
use crate::execute::{Done, Raised};
use crate::message::{table, Message};
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

impl Session {
    /// Source: Microsoft's "xp_loginconfig".
    pub(super) fn xp_loginconfig(&mut self, arguments: &Arguments<'_>) -> Done {
        let machine = self.shared.server_name().to_owned();
        let all = [
            ("login mode", "Mixed"),
            ("default login", "guest"),
            ("default domain", &machine),
            // Nobody logs in: there is nothing to be audited.
            ("audit level", "none"),
            ("set hostname", "false"),
            ("map _", "domain separator"),
            ("map $", "NULL"),
            ("map #", "-"),
        ];
        let wanted = arguments.text(0)?;
        let is_wanted = |name: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted.trim().eq_ignore_ascii_case(name))
        };
        let text = |text: &str| Value::Text(text.to_owned());
        let rows = all.iter().filter(|(name, _)| is_wanted(name));
        let rows = rows.map(|(name, value)| vec![text(name), text(value)]).collect();
        let columns = [("name", SqlType::nvarchar(256)), ("config_value", SqlType::nvarchar(256))];
        self.give_rows(&columns, rows)
    }

    /// Report: no user is without a login. Source: Microsoft's "sp_change_users_login".
    pub(super) fn sp_change_users_login(&mut self, arguments: &Arguments<'_>) -> Done {
        let action = arguments.required(0)?;
        if action.trim().eq_ignore_ascii_case("Report") {
            let columns = [
                ("UserName", SqlType::SYSNAME),
                ("UserSID", SqlType::VarBinary(crate::values::types::Length::Of(85))),
            ];
            return self.give_rows(&columns, Vec::new());
        }
        match arguments.text(1)? {
            Some(user) => {
                let unknown = Message::of(table::UNKNOWN_USER, [&user]);
                Err(Raised::from(unknown).in_procedure("sp_change_users_login"))
            }
            None => Err(Message::unsupported("sp_change_users_login other than 'Report'").into()),
        }
    }
}
