//! CREATE, ALTER, DROP PROCEDURE, and their calls.
//!
//! Source: Microsoft's "CREATE PROCEDURE" and "EXECUTE". The definition is kept as it was written, with CREATE
//! for ALTER, and read again at its call.

use std::rc::Rc;
use std::sync::Arc;

use pellucid_tsql::ast::{
    Expression, ObjectName, ObjectStatement, Procedure, ProcedureParameter, StatementKind, ViewVerb,
};
use pellucid_tsql::parse_as;

use super::procedure::{after, named, Arguments, Given};
use super::{control, labels, Done, Flow, Raised};
use crate::instance::{Known, Module, ModuleKind, MASTER};
use crate::message::{table, Message};
use crate::session::{object_id, split, sqlite_name, Frame, Session};
use crate::translate::{object_text, ResultColumn, Variables};
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Procedures that are kept as they were read.
const READ_MOST: usize = 64;

/// What goes back: the place of the argument, the parameter's name and its type.
type Output = (usize, String, SqlType);

/// A procedure as it is called.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The text it was read from.
    definition: String,
    ansi_nulls: bool,
    quoted_identifier: bool,
    procedure: Procedure,
}

impl Session {
    pub(super) fn create_procedure(&mut self, procedure: &Procedure) -> Done {
        let shown = procedure.name.object.as_str();
        if procedure.name.database.is_some() || procedure.name.server.is_some() {
            return Err(Message::of(table::NO_DATABASE_PREFIX, [&"CREATE/ALTER PROCEDURE"]).into());
        }
        if shown.starts_with("##") {
            return Err(Message::unsupported("global temporary procedure").into());
        }
        self.outside_transaction("CREATE/ALTER PROCEDURE")?;
        for (at, parameter) in procedure.parameters.iter().enumerate() {
            let name = &parameter.variable.0;
            let is_same = |other: &ProcedureParameter| other.variable.0.eq_ignore_ascii_case(name);
            if procedure.parameters[..at].iter().any(is_same) {
                return Err(Message::of(table::DECLARED_TWICE, [name]).into());
            }
            SqlType::of_declaration(&parameter.data_type, at + 1)?;
        }
        let parameters = procedure.parameters.iter().map(|parameter| &parameter.variable);
        control::declarations(&procedure.body, parameters)?;
        labels::check(&procedure.body)?;
        if shown.starts_with('#') {
            return self.keep_temporary(procedure);
        }
        let known = self.databases.current()?;
        let name = sqlite_name(&procedure.name);
        self.check_module_name(&known, ModuleKind::Procedure, procedure.verb, &procedure.name)?;
        let as_set = (!self.settings.nulls_are_equal, !self.settings.quotes_are_strings);
        let definition = self.definition(procedure.verb);
        let named = (ModuleKind::Procedure, name.as_str());
        Ok(self.databases.instance.keep_module(&known, named, &definition, as_set)?)
    }

    /// The text that is kept of a module: CREATE stands where the batch says ALTER, as SQL Server has it.
    pub(super) fn definition(&mut self, verb: ViewVerb) -> Rc<str> {
        let frame = self.frame();
        let (text, begin) = (frame.text.clone(), frame.span.start);
        let Some((before, statement)) = text.split_at_checked(begin) else { return text };
        let kept = match verb {
            ViewVerb::Create => return text,
            ViewVerb::Alter => statement.get("ALTER".len()..).map(|rest| format!("CREATE{rest}")),
            ViewVerb::CreateOrAlter => without_or_alter(statement),
        };
        kept.map_or_else(|| text.clone(), |kept| format!("{before}{kept}").into())
    }

    /// One that only this session has, in its memory: as its text it is in no file.
    fn keep_temporary(&mut self, procedure: &Procedure) -> Done {
        let name = procedure.name.object.as_str();
        let before = self.databases.temporary_procedure(name);
        match (procedure.verb, before.is_some()) {
            (ViewVerb::Create, true) => return Err(Message::object_exists(name).into()),
            (ViewVerb::Alter, false) => {
                return Err(Message::of(table::UNKNOWN_OBJECT, [&name]).into());
            }
            _ => {}
        }
        let module = Module {
            kind: ModuleKind::Procedure,
            name: name.to_owned(),
            definition: self.frame().text.to_string(),
            created: String::new(),
            modified: String::new(),
            ansi_nulls: !self.settings.nulls_are_equal,
            quoted_identifier: !self.settings.quotes_are_strings,
        };
        self.databases.drop_temporary_procedure(name);
        self.databases.keep_temporary_procedure(module);
        Ok(())
    }

    pub(super) fn drop_procedures(&mut self, names: &[ObjectName], if_exists: bool) -> Done {
        self.outside_transaction("DROP PROCEDURE")?;
        for name in names {
            let shown = name.object.as_str();
            if shown.starts_with('#') {
                if !self.databases.drop_temporary_procedure(shown) && !if_exists {
                    return Err(Message::cannot_drop("procedure", &object_text(name)).into());
                }
                continue;
            }
            let known = match &name.database {
                Some(database) => self.databases.instance.database(database.as_str())?,
                None => self.databases.current()?,
            };
            self.drop_module_of(&known, ModuleKind::Procedure, name, if_exists)?;
        }
        Ok(())
    }

    /// The procedure or view that a name means here, and its database: of the name's own, of the current one, and of `master` where
    /// the name begins with `sp_`.
    pub(super) fn module_of(&mut self, name: &ObjectName) -> Done<Option<(Known, Module)>> {
        if let Some(server) = &name.server {
            return Err(Message::unknown_server(server.as_str()).into());
        }
        if name.object.as_str().starts_with('#') {
            // It works on the database that it is called in.
            let found = self.databases.temporary_procedure(name.object.as_str());
            return Ok(match found {
                Some(module) => Some((self.databases.current()?, module)),
                None => None,
            });
        }
        let instance = &self.databases.instance;
        let known = match &name.database {
            Some(database) => instance.database(database.as_str())?,
            None => self.databases.current()?,
        };
        let sqlite = sqlite_name(name);
        if let Some(module) = instance.module(&known, &sqlite)? {
            return Ok(Some((known, module)));
        }
        let is_shared = name.object.as_str().to_lowercase().starts_with("sp_");
        if is_shared && name.database.is_none() && known.id != MASTER {
            let master = instance.database("master")?;
            if let Some(module) = instance.module(&master, &sqlite)? {
                // It works on the database that it is called in.
                return Ok(Some((known, module)));
            }
        }
        Ok(None)
    }

    /// Calls a procedure; what it returns.
    pub(super) fn call_module(
        &mut self,
        known: &Known,
        module: &Module,
        given: &mut [Given],
    ) -> Done<(Flow, i64)> {
        if module.kind == ModuleKind::View {
            let name = split(&module.name).1;
            return Err(Message::of(table::NOT_A_PROCEDURE, [&name, &name, &"view"]).into());
        }
        if module.kind.is_function() {
            return Err(Message::unsupported("EXECUTE of a function").into());
        }
        let ready = self.ready(module)?;
        let name: Arc<str> = Arc::from(ready.procedure.name.object.as_str());
        let bound = self.bound(&ready.procedure, &name, given);
        let (mut frame, outputs) = bound.map_err(|raised| raised.at_call(&name))?;
        frame.procedure = Some(Arc::clone(&name));
        frame.text = module.definition.as_str().into();
        let transactions = self.transactions;
        let here = self.databases.current_name();
        if !here.eq_ignore_ascii_case(&known.name) {
            self.databases.enter(known);
        }
        let returned = self.returned.take();
        let severity = std::mem::take(&mut self.severity);
        let of = if module.name.starts_with('#') { "tempdb" } else { known.name.as_str() };
        let id = self.shared.set_procedure_id(object_id(of, &module.name));
        let (done, frame) = self.nested(frame, |session| {
            session.settings.nulls_are_equal = !ready.ansi_nulls;
            session.settings.quotes_are_strings = !ready.quoted_identifier;
            session.announce(&control::declarations(&ready.procedure.body, [])?);
            session.run_block(&ready.procedure.body)
        });
        let returned = std::mem::replace(&mut self.returned, returned);
        self.shared.set_procedure_id(id);
        if let Ok(Some(before)) = self.databases.instance.find(&here) {
            self.databases.enter(&before);
        }
        // Without a value of RETURN the return value tells of errors: -6 for severity 16.
        let own = self.severity;
        self.severity = own.max(severity);
        let returned = returned.unwrap_or(if own > 10 { 10 - i64::from(own) } else { 0 });
        let flow = after(done)?;
        for (at, parameter, data_type) in outputs {
            if let Some(one) = given.get_mut(at) {
                one.give_back(frame.get(&parameter), data_type);
            }
        }
        if self.transactions != transactions {
            let counts: [&dyn std::fmt::Display; 2] = [&transactions, &self.transactions];
            let mismatch = Message::of(table::TRANSACTIONS_MISMATCH, counts).with_state(2);
            return Err(Raised::from(mismatch).at_call(&name));
        }
        Ok((flow, returned))
    }

    /// The procedure, read as it was when it was made.
    fn ready(&mut self, module: &Module) -> Done<Rc<Ready>> {
        let is_it = |ready: &&Rc<Ready>| {
            ready.definition == module.definition
                && ready.ansi_nulls == module.ansi_nulls
                && ready.quoted_identifier == module.quoted_identifier
        };
        if let Some(ready) = self.modules.iter().find(is_it) {
            return Ok(Rc::clone(ready));
        }
        let parsed =
            parse_as(&module.definition, module.quoted_identifier).map_err(Message::from)?;
        let procedure = parsed.statements.into_iter().find_map(|statement| match statement.kind {
            StatementKind::Object(ObjectStatement::Procedure(procedure)) => Some(*procedure),
            _ => None,
        });
        let Some(procedure) = procedure else {
            return Err(Message::unknown_procedure(&module.name).into());
        };
        let ready = Rc::new(Ready {
            definition: module.definition.clone(),
            ansi_nulls: module.ansi_nulls,
            quoted_identifier: module.quoted_identifier,
            procedure,
        });
        if self.modules.len() >= READ_MOST {
            self.modules.clear();
        }
        self.modules.push(Rc::clone(&ready));
        Ok(ready)
    }

    /// A frame with the parameters, and those whose values go back: the place of the argument and the parameter's name.
    fn bound(
        &mut self,
        procedure: &Procedure,
        name: &str,
        given: &[Given],
    ) -> Done<(Frame, Vec<Output>)> {
        let parameters = &procedure.parameters;
        if given.len() > parameters.len() {
            return Err(Message::too_many_arguments(name).into());
        }
        let is_named = |one: &Given, parameter: &ProcedureParameter| {
            let wanted = one.parameter.as_deref();
            wanted.is_some_and(|wanted| wanted.eq_ignore_ascii_case(&parameter.variable.0))
        };
        for one in given.iter().filter(|one| one.parameter.is_some()) {
            if !parameters.iter().any(|parameter| is_named(one, parameter)) {
                let unknown = one.parameter.as_deref().unwrap_or_default();
                return Err(Message::of(table::UNKNOWN_PARAMETER, [&unknown, &name]).into());
            }
        }
        let (mut frame, mut outputs) = (Frame::default(), Vec::new());
        for (at, parameter) in parameters.iter().enumerate() {
            let own = &parameter.variable.0;
            let data_type = SqlType::declared(&parameter.data_type, 1)?;
            let found = given
                .iter()
                .position(|one| is_named(one, parameter))
                .or_else(|| given.get(at).is_some_and(|one| one.parameter.is_none()).then_some(at));
            let argument = found.and_then(|at| given.get(at)).filter(|one| !one.is_default);
            let value = match (argument, &parameter.default) {
                (Some(one), _) => {
                    if one.output.is_some() && !parameter.output {
                        return Err(Message::of(table::NOT_AN_OUTPUT, [own]).into());
                    }
                    one.as_parameter(data_type)?
                }
                (None, Some(default)) => self.default_value(default, data_type)?,
                (None, None) => return Err(Message::argument_missing(name, own).into()),
            };
            frame.declare(own, data_type, value);
            if parameter.output {
                outputs.extend(found.map(|at| (at, own.clone(), data_type)));
            }
        }
        Ok((frame, outputs))
    }

    /// `sp_helptext`: the lines of a definition.
    pub(super) fn sp_helptext(&mut self, arguments: &Arguments<'_>) -> Done {
        let text = arguments.required(0)?;
        let found = match named(&text) {
            Some(name) => self.module_of(&name)?,
            None => None,
        };
        let Some((_, module)) = found else {
            let database = self.databases.current_name();
            return Err(Message::of(table::UNKNOWN_OBJECT_IN, [&text, &database]).into());
        };
        let data_type = SqlType::nvarchar(255);
        self.output().columns(&[ResultColumn { name: "Text".to_owned(), data_type }]);
        let mut count = 0;
        for line in module.definition.split_inclusive('\n') {
            let line = format!("{}\r\n", line.trim_end_matches(['\r', '\n']));
            self.output().row(vec![Value::Text(line)]);
            count += 1;
        }
        self.count(count);
        Ok(())
    }

    fn default_value(&mut self, default: &Expression, data_type: SqlType) -> Done<Value> {
        self.value(default, Some(data_type))
    }
}

/// CREATE OR ALTER without its last two words; the blanks around them stay. None where comments stand between.
fn without_or_alter(statement: &str) -> Option<String> {
    let (create, rest) = statement.split_at_checked("CREATE".len())?;
    let word = |text: &'_ str, word: &str| {
        let found = text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        found.then_some(word.len())
    };
    let or = rest.trim_start();
    let behind_or = &or[word(or, "OR")?..];
    let alter = behind_or.trim_start();
    let behind = &alter[word(alter, "ALTER")?..];
    let blanks = (&rest[..rest.len() - or.len()], &behind_or[..behind_or.len() - alter.len()]);
    Some(format!("{create}{}{}{behind}", blanks.0, blanks.1))
}
