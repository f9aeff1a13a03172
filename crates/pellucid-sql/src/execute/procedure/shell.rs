//! xp_cmdshell, which is off; sp_MS_marksystemobject, which changes nothing.

use std::fmt::Display;

use super::{named, Arguments};
use crate::execute::Done;
use crate::message::{table, Message};
use crate::session::Session;

/// The option that switches it on there.
pub(super) const SHELL: &str = "xp_cmdshell";

impl Session {
    /// 15281, as of a server where nobody has switched it on. Nothing here executes commands of a machine.
    pub(super) fn xp_cmdshell(&mut self) -> Done {
        match self.databases.instance.running(SHELL)? {
            0 => {
                let name = format!("sys.{SHELL}");
                let [component, enabled, searched, named] = [&SHELL as &dyn Display; 4];
                let told = [&name, component, enabled, searched, named];
                Err(Message::of(table::COMPONENT_OFF, told).into())
            }
            // An instance of before may have it.
            _ => Err(Message::unsupported(SHELL).into()),
        }
    }

    /// A procedure of `master` that is called `sp_..` works in every database without it; 15001 for what there is not.
    pub(super) fn sp_ms_marksystemobject(&mut self, arguments: &Arguments<'_>) -> Done {
        let text = arguments.required(0)?;
        let is_there = match named(&text) {
            Some(name) => {
                let known = match &name.database {
                    Some(database) => self.databases.instance.database(database.as_str())?,
                    None => self.databases.current()?,
                };
                self.module_of(&name)?.is_some() || self.stored_object(&known, &name)?.is_some()
            }
            None => false,
        };
        match is_there {
            true => Ok(()),
            false => Err(Message::of(table::NO_SUCH_OBJECT, [&text]).into()),
        }
    }
}
