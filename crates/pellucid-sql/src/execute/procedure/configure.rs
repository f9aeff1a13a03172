//! sp_configure

use super::shell::SHELL;
use super::Arguments;
use crate::execute::{Done, Raised};
use crate::instance::{Setting, SETTINGS};
use crate::message::{table, Message};
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

const COLUMNS: [(&str, SqlType); 5] = [
    ("name", SqlType::nvarchar(35)),
    ("minimum", SqlType::Int),
    ("maximum", SqlType::Int),
    ("config_value", SqlType::Int),
    ("run_value", SqlType::Int),
];
const NAME: &str = "sp_configure";

impl Session {
    pub(super) fn sp_configure(&mut self, arguments: &Arguments<'_>) -> Done {
        let instance = &self.databases.instance;
        let advanced = instance.running("show advanced options")? == 1;
        let shown = |setting: &&Setting| advanced || !setting.advanced;
        let Some(name) = arguments.text(0)? else {
            let settings: Vec<_> = SETTINGS.iter().filter(shown).collect();
            return self.show(&settings);
        };
        let found: Vec<_> = SETTINGS
            .iter()
            .filter(shown)
            .filter(|setting| setting.name.to_lowercase().starts_with(&name.to_lowercase()))
            .collect();
        let exact = found.iter().find(|setting| setting.name.eq_ignore_ascii_case(&name));
        let setting = match (exact, found.as_slice()) {
            (Some(setting), _) => *setting,
            (None, [only]) => *only,
            (None, several) => {
                let row = match several.is_empty() {
                    true => table::UNKNOWN_OPTION,
                    false => table::OPTION_NOT_UNIQUE,
                };
                return Err(Raised::from(Message::of(row, [&name])).in_procedure(NAME));
            }
        };
        let Some(value) = arguments.integer(1)? else { return self.show(&[setting]) };
        if !(setting.least..=setting.most).contains(&value) {
            return Err(Raised::from(Message::of(
                table::BAD_OPTION_VALUE,
                [&value, &setting.name],
            ))
            .in_procedure(NAME));
        }
        // Nobody is to believe that it works.
        if setting.name == SHELL && value != 0 {
            return Err(Message::unsupported(format!("sp_configure '{SHELL}', {value}")).into());
        }
        let (before, _) = self.databases.instance.configured(setting)?;
        self.databases.instance.configure(setting, value)?;
        let procedure = self.frame().procedure.replace(NAME.into());
        self.inform(Message::of(table::OPTION_CHANGED, [&setting.name, &before, &value]));
        self.frame().procedure = procedure;
        if !setting.counts {
            let told = format!("The option '{}' is kept and has no effect here.", setting.name);
            self.inform(Message::text(told));
        }
        Ok(())
    }

    fn show(&mut self, settings: &[&Setting]) -> Done {
        let mut rows = Vec::new();
        for setting in settings {
            let (set, running) = self.databases.instance.configured(setting)?;
            rows.push(vec![
                Value::Text(setting.name.to_owned()),
                Value::Integer(setting.least),
                Value::Integer(setting.most),
                Value::Integer(set),
                Value::Integer(running),
            ]);
        }
        self.give_rows(&COLUMNS, rows)
    }
}
