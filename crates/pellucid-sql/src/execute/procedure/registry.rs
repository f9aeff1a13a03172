//! xp_instance_regwrite, xp_instance_regread, xp_instance_regdeletevalue: values that the instance keeps.
//!
//! Default folders (`DefaultData`, `DefaultLog`, `BackupDirectory` of the server's key) and the folders of drives
//! (`Software\Pellucid\Drives`) have a meaning; others are only kept.

use super::Given;
use crate::execute::Done;
use crate::instance::paths::{registry_name, SERVER_KEY};
use crate::message::Message;
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

impl Session {
    pub(super) fn registry_write(&mut self, given: &[Given]) -> Done {
        let [hive, key, name, _, value] = given else {
            return Err(Message::argument_missing("xp_instance_regwrite", "value").into());
        };
        let name = place(hive, key, &text(name)?)?;
        let value = text(value)?;
        Ok(self.databases.instance.set_text(&name, &value)?)
    }

    /// Without the name of a value it says whether there is the key.
    pub(super) fn registry_read(&mut self, given: &mut [Given]) -> Done {
        in_order(given, &["rootkey", "key", "value_name", "value"]);
        let [hive, key, name, rest @ ..] = given else {
            let [hive, key] = given else {
                return Err(Message::argument_missing("xp_instance_regread", "key").into());
            };
            let values = place(hive, key, "")?;
            let is_servers = values.eq_ignore_ascii_case(&registry_name(SERVER_KEY, ""));
            let is_there = is_servers || self.databases.instance.has_settings(&values)?;
            let row = vec![Value::Integer(is_there.into())];
            return self.give_rows(&[("KeyExist", SqlType::Int)], vec![row]);
        };
        let shown = text(name)?;
        let kept = place(hive, key, &shown)?;
        let found = match self.databases.instance.text_setting(&kept)? {
            Some(found) => Some(found),
            None => self.databases.instance.default_of(&kept)?,
        };
        match rest.first_mut().filter(|one| one.output.is_some()) {
            Some(output) => {
                if let Some(found) = found {
                    output.give_back(Value::Text(found), SqlType::NVARCHAR_MAX);
                }
                Ok(())
            }
            None => {
                let columns =
                    [("Value", SqlType::nvarchar(255)), ("Data", SqlType::nvarchar(4000))];
                let rows = found.map(|found| vec![Value::Text(shown), Value::Text(found)]);
                self.give_rows(&columns, rows.into_iter().collect())
            }
        }
    }

    pub(super) fn registry_delete(&mut self, given: &[Given]) -> Done {
        let [hive, key, name] = given else {
            return Err(
                Message::argument_missing("xp_instance_regdeletevalue", "value_name").into()
            );
        };
        self.databases.instance.forget_setting(&place(hive, key, &text(name)?)?)?;
        Ok(())
    }
}

/// Arguments that are given by their names in the order of `parameters`.
fn in_order(given: &mut [Given], parameters: &[&str]) {
    let place = |one: &Given| {
        let name = one.parameter.as_deref()?;
        parameters.iter().position(|parameter| parameter.eq_ignore_ascii_case(name))
    };
    let places: Vec<Option<usize>> = given.iter().map(place).collect();
    // Those without a name stand first, where they are.
    let mut sorted: Vec<(usize, Given)> = given
        .iter()
        .zip(places)
        .enumerate()
        .map(|(at, (one, place))| (place.unwrap_or(at), one.clone()))
        .collect();
    sorted.sort_by_key(|(place, _)| *place);
    for (to, (_, one)) in given.iter_mut().zip(sorted) {
        *to = one;
    }
}

fn place(hive: &Given, key: &Given, name: &str) -> Done<String> {
    let hive = text(hive)?;
    match hive.to_uppercase().as_str() {
        "HKEY_LOCAL_MACHINE" | "HKLM" => Ok(registry_name(&text(key)?, name)),
        _ => Err(Message::unsupported(format!("the registry hive {hive}")).into()),
    }
}

fn text(given: &Given) -> Done<String> {
    match given.converted(SqlType::NVARCHAR_MAX)? {
        Value::Text(text) => Ok(text),
        _ => Ok(String::new()),
    }
}
