//! sp_MSforeachdb, sp_MSforeachtable, sp_renamedb, sp_attach_db, sp_set_session_context: procedures that execute
//! statements, or set what a function gives.

use super::{after, Arguments};
use crate::execute::{Done, Flow, Raised};
use crate::instance::{State, MASTER};
use crate::message::{table, Message};
use crate::session::{split, Frame, Session};
use crate::values::convert::Value;

impl Session {
    /// For each database that is online, in the order of their numbers. SQL Server puts the name in as it is.
    pub(super) fn sp_ms_foreachdb(&mut self, arguments: &Arguments<'_>) -> Done<Flow> {
        let all = self.databases.instance.databases()?;
        let online = all.into_iter().filter(|known| known.state == State::Online);
        let names: Vec<String> = online.map(|known| known.name).collect();
        // @command1, @replacechar, @command2, @command3, @precommand, @postcommand
        self.for_each(arguments, &names, [4, 5])
    }

    /// For each table of the database that the session is in, as `[schema].[name]`.
    pub(super) fn sp_ms_foreachtable(&mut self, arguments: &Arguments<'_>) -> Done<Flow> {
        if arguments.text(4)?.is_some() {
            return Err(Message::unsupported("@whereand").into());
        }
        let known = self.databases.current()?;
        let schema = match known.id {
            MASTER => self.databases.attach_master()?,
            _ if known.is_system() => None,
            _ => Some(self.databases.attach(&known)?),
        };
        let mut names = Vec::new();
        if let Some(schema) = schema {
            for (sqlite, is_view) in self.databases.tables_and_views(&schema)? {
                if !is_view {
                    let (schema, name) = split(&sqlite);
                    names.push(format!(
                        "[{}].[{}]",
                        schema.replace(']', "]]"),
                        name.replace(']', "]]")
                    ));
                }
            }
        }
        // @command1, @replacechar, @command2, @command3, @whereand, @precommand, @postcommand
        self.for_each(arguments, &names, [5, 6])
    }

    fn for_each(
        &mut self,
        arguments: &Arguments<'_>,
        names: &[String],
        [before, behind]: [usize; 2],
    ) -> Done<Flow> {
        let mut commands = vec![arguments.required(0)?];
        for at in [2, 3] {
            commands.extend(arguments.text(at)?);
        }
        let place = arguments.text(1)?.filter(|text| !text.is_empty()).unwrap_or("?".to_owned());
        if place.chars().count() != 1 {
            return Err(Message::unsupported("@replacechar of several characters").into());
        }
        let (before, behind) = (arguments.text(before)?, arguments.text(behind)?);
        if let Some(text) = before {
            self.execute_text(&text)?;
        }
        for name in names {
            for command in &commands {
                self.execute_text(&command.replace(&place, name))?;
            }
        }
        if let Some(text) = behind {
            self.execute_text(&text)?;
        }
        Ok(Flow::Next)
    }

    fn execute_text(&mut self, text: &str) -> Done<Flow> {
        let (done, _) = self.run_nested(text, Frame::default());
        after(done)
    }

    /// ALTER DATABASE .. MODIFY NAME
    pub(super) fn sp_renamedb(&mut self, arguments: &Arguments<'_>) -> Done<Flow> {
        let (old, new) = (arguments.required(0)?, arguments.required(1)?);
        self.execute_text(&format!("ALTER DATABASE {} MODIFY NAME = {}", name(&old), name(&new)))
    }

    /// CREATE DATABASE .. FOR ATTACH
    pub(super) fn sp_attach_db(&mut self, arguments: &Arguments<'_>) -> Done<Flow> {
        const FILES_MOST: usize = 16;
        let mut files = vec![arguments.required(1)?];
        for at in 2..=FILES_MOST {
            files.extend(arguments.text(at)?);
        }
        let files: Vec<String> = files
            .iter()
            .map(|file| format!("(FILENAME = N'{}')", file.trim_end().replace('\'', "''")))
            .collect();
        let database = name(&arguments.required(0)?);
        self.execute_text(&format!("CREATE DATABASE {database} ON {} FOR ATTACH", files.join(", ")))
    }

    /// What SESSION_CONTEXT gives from now on.
    pub(super) fn sp_set_session_context(&mut self, arguments: &Arguments<'_>) -> Done {
        let key = arguments.required(0)?;
        let value = arguments.find(1).map_or(Value::Null, |given| given.value.clone());
        if matches!(value, Value::Blob(_)) {
            return Err(Message::unsupported("a session context of bytes or numerics").into());
        }
        let is_read_only = arguments.integer(2)?.unwrap_or(0) != 0;
        match self.shared.set_context(&key, value, is_read_only) {
            true => Ok(()),
            false => Err(Raised::from(Message::of(table::CONTEXT_READ_ONLY, [&key]))
                .in_procedure("sp_set_session_context")),
        }
    }
}

fn name(text: &str) -> String {
    format!("[{}]", text.replace(']', "]]"))
}
