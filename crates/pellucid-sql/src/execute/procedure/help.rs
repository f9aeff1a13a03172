//! sp_help: written in the language itself, over the catalog views.

use super::{after, named, Arguments};
use crate::execute::{Done, Flow, Raised};
use crate::message::{table, Message};
use crate::session::{Frame, Session};
use crate::values::convert::Value;
use crate::values::types::SqlType;

impl Session {
    /// Of one object, or of all. Source: Microsoft's "sp_help".
    pub(super) fn sp_help(&mut self, arguments: &Arguments<'_>) -> Done<Flow> {
        let Some(text) = arguments.text(0)? else {
            let (done, _) = self.run_nested(include_str!("scripts/help_all.sql"), Frame::default());
            return after(done);
        };
        let is_here = match named(&text) {
            Some(name) => {
                let known = self.databases.current()?;
                let database = name.database.as_ref().map(|database| database.as_str());
                database.is_none_or(|database| database.eq_ignore_ascii_case(&known.name))
                    && (self.module_of(&name)?.is_some()
                        || self.stored_object(&known, &name)?.is_some())
            }
            None => false,
        };
        if !is_here {
            let unknown =
                Message::of(table::UNKNOWN_OBJECT_IN, [&text, &self.databases.current_name()]);
            return Err(Raised::from(unknown).in_procedure("sp_help"));
        }
        let mut frame = Frame::default();
        frame.declare("objname", SqlType::nvarchar(776), Value::Text(text));
        let (done, _) = self.run_nested(include_str!("scripts/help.sql"), frame);
        after(done)
    }
}
