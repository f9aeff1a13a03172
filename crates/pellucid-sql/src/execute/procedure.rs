//! EXECUTE: strings, and the system procedures that there are.

mod configure;
mod delete_file;
mod each;
mod files;
mod folders;
mod help;
mod history;
mod jobs;
mod logins;
mod registry;
mod shell;
mod space;

pub(crate) use files::{access, log_bytes, log_path, size_kb};
pub(crate) use jobs::names as job_procedures;

use std::sync::Arc;

use pellucid_tsql::ast::{
    Argument, ArgumentValue, Execute, Expression, Literal, Name, ObjectName, OrVariable,
    ProcedureName, StringLiteral, UnaryOperator, Variable,
};

use super::{Done, Flow, Raised};
use crate::instance::MSDB;
use crate::known;
use crate::message::{table, Message};
use crate::session::{Frame, Session};
use crate::translate::{VariableTypes, Variables};
use crate::values::convert::{convert, natural_type, Value};
use crate::values::types::{Family, Length, SqlType};

/// An argument: its value, and the variable that OUTPUT names.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub parameter: Option<String>,
    pub value: Value,
    /// In whose form the value is.
    pub data_type: SqlType,
    pub output: Option<String>,
    /// The type of a numeric that is written, whose value is text.
    pub written: Option<SqlType>,
    /// DEFAULT: as if it were not given.
    pub is_default: bool,
}

impl Given {
    /// The value as one of another type.
    pub fn converted(&self, to: SqlType) -> Done<Value> {
        Ok(convert(self.value.clone(), self.data_type, to, None)?)
    }

    /// The value as one of a parameter: what does not convert is 8114.
    pub fn as_parameter(&self, to: SqlType) -> Done<Value> {
        use crate::values::Error;
        let (mut value, mut from) = (self.value.clone(), self.data_type);
        if let Some(written) = self.written {
            (value, from) = (convert(value, from, written, None)?, written);
        }
        let done = convert(value, from, to, None);
        Ok(done.map_err(|error| match error {
            Error::NotConvertible(..)
            | Error::NotADate
            | Error::DateOutOfRange(..)
            | Error::OverflowedInt(..)
            | Error::OverflowedSmall(..)
            | Error::IntegerOverflow(..)
            | Error::FloatOverflow(..)
            | Error::Overflow(..)
            | Error::NotMoney
            | Error::NotSmallMoney
            | Error::NotAGuid => Error::ErrorConverting(from, to),
            error => error,
        })?)
    }

    /// 214 for what is no national text.
    fn check_national(&self, parameter: &str) -> Done {
        match self.data_type {
            SqlType::NVarChar(_) | SqlType::NChar(_) | SqlType::Null => Ok(()),
            _ => {
                let expected: [&dyn std::fmt::Display; 2] =
                    [&format!("@{parameter}"), &"ntext/nchar/nvarchar"];
                let message = Message::of(table::PARAMETER_TYPE, expected).with_state(2);
                let raised = Raised { line: Some(1), ..Raised::from(message) };
                Err(raised.in_procedure("sp_executesql"))
            }
        }
    }

    /// What goes back to the variable that OUTPUT names.
    pub fn give_back(&mut self, value: Value, data_type: SqlType) {
        (self.value, self.data_type) = (value, data_type);
    }
}

/// The arguments of a procedure, by place or by name.
pub(super) struct Arguments<'a> {
    procedure: &'static str,
    given: &'a [Given],
    parameters: &'static [&'static str],
}

impl<'a> Arguments<'a> {
    /// Checks them against the names of the parameters.
    fn new(
        procedure: &'static str,
        given: &'a [Given],
        parameters: &'static [&'static str],
    ) -> Done<Self> {
        if given.len() > parameters.len() {
            return Err(Raised::from(Message::too_many_arguments(procedure)).at_call(procedure));
        }
        for one in given.iter().filter_map(|one| one.parameter.as_deref()) {
            if !parameters.iter().any(|parameter| parameter.eq_ignore_ascii_case(one)) {
                let unknown = Message::of(table::UNKNOWN_PARAMETER, [&one, &procedure]);
                return Err(Raised::from(unknown).at_call(procedure));
            }
        }
        Ok(Self { procedure, given, parameters })
    }

    fn find(&self, at: usize) -> Option<&'a Given> {
        let named = self.given.iter().find(|one| {
            one.parameter
                .as_deref()
                .is_some_and(|name| name.eq_ignore_ascii_case(self.parameters[at]))
        });
        named.or_else(|| self.given.get(at).filter(|one| one.parameter.is_none()))
    }

    /// As text; none where it is not given, or NULL.
    fn text(&self, at: usize) -> Done<Option<String>> {
        let Some(given) = self.find(at) else { return Ok(None) };
        // A date or time with all that it has: its short form leaves seconds out.
        let style = matches!(given.data_type.family(), Family::Moment).then_some(121);
        let value = given.value.clone();
        match convert(value, given.data_type, SqlType::NVARCHAR_MAX, style)? {
            Value::Text(text) => Ok(Some(text)),
            _ => Ok(None),
        }
    }

    /// The same where it has to be given.
    pub(super) fn required(&self, at: usize) -> Done<String> {
        let missing = || Message::argument_missing(self.procedure, self.parameters[at]);
        self.text(at)?.ok_or_else(|| Raised::from(missing()).at_call(self.procedure))
    }

    fn integer(&self, at: usize) -> Done<Option<i64>> {
        let Some(given) = self.find(at) else { return Ok(None) };
        match given.as_parameter(SqlType::BigInt)? {
            Value::Integer(number) => Ok(Some(number)),
            _ => Ok(None),
        }
    }
}

/// The procedures that [`Session::call`] knows.
pub(crate) const PROCEDURES: &[&str] = &[
    "sp_addumpdevice",
    "sp_attach_db",
    "sp_change_users_login",
    "sp_changedbowner",
    "sp_configure",
    "sp_cycle_errorlog",
    "sp_databases",
    "sp_delete_backuphistory",
    "sp_delete_database_backuphistory",
    "sp_detach_db",
    "sp_dropdevice",
    "sp_enumerrorlogs",
    "sp_executesql",
    "sp_help",
    "sp_help_log_shipping_monitor",
    "sp_helpdb",
    "sp_helpfile",
    "sp_helpfilegroup",
    "sp_helptext",
    "sp_ms_marksystemobject",
    "sp_msforeachdb",
    "sp_msforeachtable",
    "sp_readerrorlog",
    "sp_renamedb",
    "sp_set_session_context",
    "sp_spaceused",
    "sp_who",
    "sp_who2",
    "xp_cmdshell",
    "xp_create_subdir",
    "xp_delete_file",
    "xp_dirtree",
    "xp_enumerrorlogs",
    "xp_fileexist",
    "xp_fixeddrives",
    "xp_loginconfig",
    "xp_instance_regdeletevalue",
    "xp_instance_regread",
    "xp_instance_regwrite",
    "xp_readerrorlog",
    "xp_regdeletevalue",
    "xp_regread",
    "xp_regwrite",
];

impl Session {
    pub(super) fn execute_procedure(&mut self, execute: &Execute) -> Done<Flow> {
        match execute {
            Execute::Statements(text) => {
                self.shared.end_statement(None, 0);
                let text = match self.value(text, Some(SqlType::NVARCHAR_MAX))? {
                    Value::Text(text) => text,
                    _ => return Ok(Flow::Next),
                };
                // EXEC (..) sees no variables of the batch.
                let (done, _) = self.run_nested(&text, Frame::default());
                after(done)
            }
            Execute::Procedure { result, procedure, arguments } => {
                let name = match procedure {
                    ProcedureName::Name(name) => name.clone(),
                    ProcedureName::Variable(variable) => {
                        let text: OrVariable<StringLiteral> =
                            OrVariable::Variable(variable.clone());
                        let text = self.text(&text)?;
                        named(&text).ok_or_else(|| Message::unknown_procedure(&text))?
                    }
                };
                let mut given = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    given.push(self.given(argument)?);
                }
                self.shared.end_statement(None, 0);
                // The server's own come first; those of jobs are procedures of msdb.
                let of_jobs = jobs::find(name.object.as_str()).filter(|_| self.is_in_msdb(&name));
                let mut done = match of_jobs {
                    Some(procedure) => self.job_procedure(procedure, &mut given),
                    None => self.call_own(&name, &mut given),
                };
                if is_unknown(&done) && known::is_procedure(&name) {
                    done = Err(Message::unsupported(name.object.as_str()).into());
                }
                let failed = match &done {
                    Ok(_) => self.shared.last_error(),
                    Err(raised) => raised.messages.last().map_or(0, |message| message.number),
                };
                let module = match failed == table::UNKNOWN_PROCEDURE.number {
                    true => self.module_of(&name)?,
                    false => None,
                };
                let (done, returned) = match module {
                    // What failed gives nothing back: 0 would say that it has succeeded.
                    Some((known, module)) => {
                        let (flow, returned) = self.call_module(&known, &module, &mut given)?;
                        (Ok(flow), returned)
                    }
                    None if is_unknown(&done) && known::is_procedure_of_msdb(&name) => {
                        (Err(Message::unsupported(name.object.as_str()).into()), failed.into())
                    }
                    // By its whole name.
                    None if is_unknown(&done) => {
                        let name = crate::translate::object_text(&name);
                        (Err(Message::unknown_procedure(&name).into()), failed.into())
                    }
                    None => (done, failed.into()),
                };
                for one in &given {
                    if let Some(variable) = &one.output {
                        self.assign(variable, one.value.clone(), one.data_type)?;
                    }
                }
                if let Some(variable) = result {
                    self.assign(&variable.0, Value::Integer(returned), SqlType::BigInt)?;
                }
                done
            }
        }
    }

    /// A procedure of the server's, in the database that its name is written with.
    fn call_own(&mut self, name: &ObjectName, given: &mut [Given]) -> Done<Flow> {
        let Some(database) = &name.database else {
            return self.call(name.object.as_str(), given);
        };
        let here = self.databases.current_name();
        let known = self.databases.instance.database(database.as_str())?;
        self.databases.enter(&known);
        let done = self.call(name.object.as_str(), given);
        // DROP DATABASE may have ended it.
        if let Ok(Some(before)) = self.databases.instance.find(&here) {
            self.databases.enter(&before);
        }
        done
    }

    /// Whether a name is one of the schema dbo of msdb.
    fn is_in_msdb(&self, name: &ObjectName) -> bool {
        let is_dbo = |schema: &Name| schema.as_str().eq_ignore_ascii_case("dbo");
        name.schema.as_ref().is_none_or(is_dbo)
            && match &name.database {
                Some(database) => database.as_str().eq_ignore_ascii_case("msdb"),
                None => self.databases.current_id() == MSDB,
            }
    }

    fn call(&mut self, name: &str, given: &mut [Given]) -> Done<Flow> {
        match name.to_lowercase().as_str() {
            "sp_executesql" => return self.sp_executesql(given),
            "sp_helpfile" => {
                self.sp_helpfile(&Arguments::new("sp_helpfile", given, &["filename"])?)
            }
            "sp_helpfilegroup" => self.sp_helpfilegroup(&Arguments::new(
                "sp_helpfilegroup",
                given,
                &["filegroupname"],
            )?),
            "sp_spaceused" => {
                let parameters = &[
                    "objname",
                    "updateusage",
                    "mode",
                    "oneresultset",
                    "include_total_xtp_storage",
                ];
                self.sp_spaceused(&Arguments::new("sp_spaceused", given, parameters)?)
            }
            "sp_who" => self.sp_who(&Arguments::new("sp_who", given, &["loginame"])?),
            "sp_who2" => self.sp_who2(&Arguments::new("sp_who2", given, &["loginame"])?),
            "sp_helpdb" => self.sp_helpdb(&Arguments::new("sp_helpdb", given, &["dbname"])?),
            "sp_databases" => self.sp_databases(),
            "sp_helptext" => self.sp_helptext(&Arguments::new("sp_helptext", given, &["objname"])?),
            "sp_configure" => self.sp_configure(&Arguments::new(
                "sp_configure",
                given,
                &["configname", "configvalue"],
            )?),
            "sp_delete_backuphistory" => self.sp_delete_backuphistory(&Arguments::new(
                "sp_delete_backuphistory",
                given,
                &["oldest_date"],
            )?),
            "sp_delete_database_backuphistory" => self.sp_delete_database_backuphistory(
                &Arguments::new("sp_delete_database_backuphistory", given, &["database_name"])?,
            ),
            "sp_readerrorlog" | "xp_readerrorlog" => self.sp_readerrorlog(&Arguments::new(
                "sp_readerrorlog",
                given,
                &["p1", "p2", "p3", "p4", "p5", "p6", "p7"],
            )?),
            "sp_enumerrorlogs" | "xp_enumerrorlogs" => {
                self.sp_enumerrorlogs(&Arguments::new("sp_enumerrorlogs", given, &["p1"])?)
            }
            "sp_ms_marksystemobject" => {
                let parameters = &["objname", "namespace"];
                let arguments = Arguments::new("sp_MS_marksystemobject", given, parameters)?;
                self.sp_ms_marksystemobject(&arguments)
            }
            "xp_cmdshell" => self.xp_cmdshell(),
            "sp_cycle_errorlog" => {
                Arguments::new("sp_cycle_errorlog", given, &[])?;
                self.sp_cycle_errorlog()
            }
            "sp_help" => return self.sp_help(&Arguments::new("sp_help", given, &["objname"])?),
            "sp_change_users_login" => self.sp_change_users_login(&Arguments::new(
                "sp_change_users_login",
                given,
                &["Action", "UserNamePattern", "LoginName", "Password"],
            )?),
            "xp_loginconfig" => {
                self.xp_loginconfig(&Arguments::new("xp_loginconfig", given, &["config_name"])?)
            }
            "sp_help_log_shipping_monitor" => {
                let parameters = &["verbose"];
                Arguments::new("sp_help_log_shipping_monitor", given, parameters)?;
                self.sp_help_log_shipping_monitor()
            }
            "sp_changedbowner" => {
                let arguments = Arguments::new("sp_changedbowner", given, &["loginame", "map"])?;
                let owner = arguments.required(0)?;
                self.set_owner(&self.databases.current_name(), &owner)
            }
            "xp_instance_regwrite" | "xp_regwrite" => self.registry_write(given),
            "xp_instance_regread" | "xp_regread" => self.registry_read(given),
            "xp_instance_regdeletevalue" | "xp_regdeletevalue" => self.registry_delete(given),
            "sp_detach_db" => self.sp_detach_db(&Arguments::new(
                "sp_detach_db",
                given,
                &["dbname", "skipchecks", "keepfulltextindexfile"],
            )?),
            "xp_create_subdir" => {
                self.xp_create_subdir(&Arguments::new("xp_create_subdir", given, &["directory"])?)
            }
            "xp_dirtree" => self.xp_dirtree(&Arguments::new(
                "xp_dirtree",
                given,
                &["directory", "depth", "file"],
            )?),
            "xp_fileexist" => self.xp_fileexist(given),
            "xp_fixeddrives" => {
                self.xp_fixeddrives(&Arguments::new("xp_fixeddrives", given, &["type"])?)
            }
            "xp_delete_file" => self.xp_delete_file(&Arguments::new(
                "xp_delete_file",
                given,
                &["filetype", "folderpath", "extension", "cutoffdate", "subfolder"],
            )?),
            "sp_msforeachdb" => {
                let parameters = &[
                    "command1",
                    "replacechar",
                    "command2",
                    "command3",
                    "precommand",
                    "postcommand",
                ];
                return self.sp_ms_foreachdb(&Arguments::new("sp_MSforeachdb", given, parameters)?);
            }
            "sp_msforeachtable" => {
                let parameters = &[
                    "command1",
                    "replacechar",
                    "command2",
                    "command3",
                    "whereand",
                    "precommand",
                    "postcommand",
                ];
                let arguments = Arguments::new("sp_MSforeachtable", given, parameters)?;
                return self.sp_ms_foreachtable(&arguments);
            }
            "sp_renamedb" => {
                let arguments = Arguments::new("sp_renamedb", given, &["dbname", "newname"])?;
                return self.sp_renamedb(&arguments);
            }
            "sp_attach_db" => {
                let parameters = &[
                    "dbname",
                    "filename1",
                    "filename2",
                    "filename3",
                    "filename4",
                    "filename5",
                    "filename6",
                    "filename7",
                    "filename8",
                    "filename9",
                    "filename10",
                    "filename11",
                    "filename12",
                    "filename13",
                    "filename14",
                    "filename15",
                    "filename16",
                ];
                return self.sp_attach_db(&Arguments::new("sp_attach_db", given, parameters)?);
            }
            "sp_set_session_context" => self.sp_set_session_context(&Arguments::new(
                "sp_set_session_context",
                given,
                &["key", "value", "read_only"],
            )?),
            "sp_addumpdevice" => self.sp_addumpdevice(&Arguments::new(
                "sp_addumpdevice",
                given,
                &["devtype", "logicalname", "physicalname", "cntrltype", "devstatus"],
            )?),
            "sp_dropdevice" => self.sp_dropdevice(&Arguments::new(
                "sp_dropdevice",
                given,
                &["logicalname", "delfile"],
            )?),
            _ => return Err(Message::unknown_procedure(name).into()),
        }?;
        Ok(Flow::Next)
    }

    fn given(&mut self, argument: &Argument) -> Done<Given> {
        let parameter = argument.parameter.as_ref().map(|Variable(name)| name.clone());
        let mut data_type = None;
        let (value, output) = match &argument.value {
            ArgumentValue::Literal { negative, value } => {
                let literal = Expression::Literal(value.clone());
                let whole = match negative {
                    true => Expression::Unary {
                        operator: UnaryOperator::Minus,
                        operand: Box::new(literal),
                    },
                    false => literal,
                };
                let is_int = is_int(value);
                if is_int {
                    data_type = Some(SqlType::Int);
                }
                let is_decimal = !is_int
                    && matches!(
                        value,
                        Literal::Integer(_) | Literal::Decimal(_) | Literal::Money(_)
                    );
                // Numerics are taken as text, which converts to whatever the parameter is.
                let to = is_decimal.then_some(SqlType::NVARCHAR_MAX);
                (self.value(&whole, to)?, None)
            }
            ArgumentValue::Word(name) => (Value::Text(name.as_str().to_owned()), None),
            ArgumentValue::Variable { variable, output } => {
                if !self.frame().has(&variable.0) {
                    return Err(Message::undeclared(&variable.0).into());
                }
                let value = self.value(&Expression::Variable(variable.clone()), None)?;
                data_type = self.frame().variable_type(&variable.0);
                (value, output.then(|| variable.0.clone()))
            }
            ArgumentValue::SystemVariable(name) => {
                (self.value(&Expression::SystemVariable(name.clone()), None)?, None)
            }
            ArgumentValue::Default => (Value::Null, None),
        };
        if let ArgumentValue::Literal { value: Literal::String(text), .. } = &argument.value {
            if !text.national {
                data_type = Some(SqlType::VarChar(Length::Max));
            }
        }
        let is_default = argument.value == ArgumentValue::Default;
        let data_type = data_type.unwrap_or_else(|| natural_type(&value));
        let written = written_type(&argument.value);
        Ok(Given { parameter, value, data_type, output, written, is_default })
    }

    /// Gives a variable a value of the type `from`, converted to its own.
    fn assign(&mut self, variable: &str, value: Value, from: SqlType) -> Done {
        let Some(data_type) = self.frame().variable_type(variable) else {
            return Err(Message::undeclared(variable).into());
        };
        let value = convert(value, from, data_type, None)?;
        self.frame().set(variable, value);
        Ok(())
    }

    fn sp_executesql(&mut self, given: &mut [Given]) -> Done<Flow> {
        let Some((statement, rest)) = given.split_first_mut() else {
            return Err(Message::argument_missing("sp_executesql", "statement").into());
        };
        statement.check_national("statement")?;
        if let Some(declaration) = rest.first() {
            declaration.check_national("params")?;
        }
        let Value::Text(text) = statement.value.clone() else { return Ok(Flow::Next) };
        let mut frame = Frame::default();
        let mut outputs = Vec::new();
        if let Some((declaration, values)) = rest.split_first_mut() {
            let declared = match &declaration.value {
                Value::Text(declared) => parameters(declared)?,
                _ => Vec::new(),
            };
            for (at, parameter) in declared.iter().enumerate() {
                let found = values
                    .iter()
                    .position(|one| {
                        one.parameter
                            .as_deref()
                            .is_some_and(|name| name.eq_ignore_ascii_case(&parameter.name))
                    })
                    .or_else(|| {
                        (values.get(at).is_some_and(|one| one.parameter.is_none())).then_some(at)
                    });
                let Some(found) = found else {
                    let declared = match &declaration.value {
                        Value::Text(declared) => declared.as_str(),
                        _ => "",
                    };
                    let whole = format!("({declared}){text}");
                    return Err(
                        Message::of(table::PARAMETER_MISSING, [&whole, &parameter.name]).into()
                    );
                };
                let value = values[found].as_parameter(parameter.data_type)?;
                if !frame.declare(&parameter.name, parameter.data_type, value) {
                    return Err(Message::of(table::DECLARED_TWICE, [&parameter.name]).into());
                }
                if parameter.is_output {
                    outputs.push((found + 2, parameter.name.clone(), parameter.data_type));
                }
            }
        }
        let (done, frame) = self.run_nested(&text, frame);
        for (at, name, data_type) in outputs {
            if let Some(one) = given.get_mut(at) {
                one.give_back(frame.get(&name), data_type);
            }
        }
        after(done)
    }
}

/// Whether a number that is written is an int; a larger one is a numeric.
fn is_int(value: &Literal) -> bool {
    matches!(value, Literal::Integer(text) if text.parse::<i32>().is_ok())
}

/// The type of a numeric that is written as an argument: as many digits as it has.
fn written_type(value: &ArgumentValue) -> Option<SqlType> {
    let ArgumentValue::Literal { value, .. } = value else { return None };
    let text = match value {
        Literal::Decimal(text) => text,
        Literal::Integer(text) if !is_int(value) => text,
        _ => return None,
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = u8::try_from(fraction.len()).ok()?;
    let digits = u8::try_from(whole.len()).ok()?.checked_add(scale)?;
    (1..=38).contains(&digits).then(|| SqlType::numeric(digits, scale))
}

/// Whether nothing here has the name of a procedure.
fn is_unknown(done: &Done<Flow>) -> bool {
    let last = done.as_ref().err().and_then(|raised| raised.messages.last());
    last.is_some_and(|message| message.number == table::UNKNOWN_PROCEDURE.number)
}

/// The name that a text is, such as `master.dbo.[my p]`.
pub(super) fn named(text: &str) -> Option<ObjectName> {
    let parsed = pellucid_tsql::parse(&format!("EXECUTE {text}")).ok()?;
    match parsed.into_iter().next()?.kind {
        pellucid_tsql::ast::StatementKind::Execute(execute) => match *execute {
            Execute::Procedure {
                procedure: ProcedureName::Name(name),
                result: None,
                arguments,
            } if arguments.is_empty() => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// RETURN ends the string, not the batch around it; what was told does not end the batch either.
pub(super) fn after(done: Done<Flow>) -> Done<Flow> {
    match done {
        Ok(_) => Ok(Flow::Next),
        Err(raised) if raised.is_told && !raised.is_thrown => Ok(Flow::Next),
        Err(raised) => Err(raised),
    }
}

/// A parameter of `sp_executesql`.
struct Parameter {
    name: String,
    data_type: SqlType,
    is_output: bool,
}

/// `@a int, @b nvarchar(10) OUTPUT`
fn parameters(text: &str) -> Done<Vec<Parameter>> {
    let mut parameters = Vec::new();
    for part in parts(text) {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let last = part.rsplit(char::is_whitespace).next().unwrap_or_default();
        let is_output = ["OUTPUT", "OUT"].iter().any(|word| word.eq_ignore_ascii_case(last));
        let declared = if is_output { &part[..part.len() - last.len()] } else { part };
        let parsed = pellucid_tsql::parse(&format!("DECLARE {declared}")).map_err(Message::from)?;
        let declarations = match parsed.into_iter().next().map(|statement| statement.kind) {
            Some(pellucid_tsql::ast::StatementKind::Declare(declarations)) => declarations,
            _ => Vec::new(),
        };
        for declaration in declarations {
            if let pellucid_tsql::ast::Declaration::Scalar { variable, data_type, .. } = declaration
            {
                let data_type = SqlType::declared(&data_type, 1)?;
                parameters.push(Parameter { name: variable.0, data_type, is_output });
            }
        }
    }
    Ok(parameters)
}

/// Divided by the commas that are in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (at, next) in text.char_indices() {
        match next {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

impl Raised {
    /// The same, said by a procedure.
    fn in_procedure(mut self, procedure: &'static str) -> Self {
        self.procedure = Some(Arc::from(procedure));
        self
    }
}
