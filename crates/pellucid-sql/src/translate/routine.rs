//! Functions that scripts make.
//!
//! A scalar function becomes a [`Program`]: its statements, translated where it is called, run by a function of SQLite's for each
//! of its calls. One that gives a table is a sub-select, whose parameters are its arguments.

use std::collections::HashMap;
use std::rc::Rc;

use pellucid_tsql::ast::{
    Chain, Condition, Control, Declaration, Expression, Function, FunctionArguments, FunctionBody,
    FunctionCall, Name, QueryBody, SelectItem, SessionStatement, Statement as Ast, StatementKind,
    TableAlias, TablePrimary,
};

use super::assign::assigns;
use super::from::add;
use super::module::{local, Within, Written};
use super::scope::{object_text, same, Clause, Level, Relation};
use super::{
    typed, Assignments, ResultColumn, Selection, Statement, Translator, Typed, VariableTypes, View,
    Work,
};
use crate::message::{table, Message, Result};
use crate::values::types::SqlType;

/// A function that a script has made.
#[derive(Debug, Clone)]
pub struct FunctionDefinition {
    /// The database that it lies in, whose names those within it are.
    pub database: Name,
    /// Its name, parameters and body.
    pub function: Rc<Function>,
    /// ANSI_NULLS of its making.
    pub ansi_nulls: bool,
    /// The length of its text, in bytes.
    pub bytes: usize,
}

/// A scalar function, ready to be run.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Its name, for messages.
    pub name: String,
    /// Its parameters, in lower case, in order.
    pub parameters: Vec<String>,
    /// It gives NULL where an argument is NULL.
    pub null_on_null: bool,
    pub(crate) steps: Vec<Step>,
}

/// A step of a program.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Set { variable: String, value: Statement },
    Assign(Assignments),
    If { condition: Statement, then: Vec<Step>, otherwise: Vec<Step> },
    While { condition: Statement, body: Vec<Step> },
    Break,
    Continue,
    Return(Statement),
}

impl Program {
    /// The texts of its statements.
    pub fn statements(&self) -> Vec<&str> {
        let mut all = Vec::new();
        collect(&self.steps, &mut all);
        all
    }
}

fn collect<'s>(steps: &'s [Step], all: &mut Vec<&'s str>) {
    for step in steps {
        match step {
            Step::Set { value, .. } | Step::Return(value) => all.push(&value.sql),
            Step::Assign(assignments) => {
                all.push(&assignments.rows.sql);
                all.extend(assignments.each.iter().map(|one| one.step.sql.as_str()));
            }
            Step::If { condition, then, otherwise } => {
                all.push(&condition.sql);
                collect(then, all);
                collect(otherwise, all);
            }
            Step::While { condition, body } => {
                all.push(&condition.sql);
                collect(body, all);
            }
            Step::Break | Step::Continue => {}
        }
    }
}

/// The parameters and variables of a function. All of its declarations count from its beginning.
struct Locals(HashMap<String, SqlType>);

impl VariableTypes for Locals {
    fn variable_type(&self, name: &str) -> Option<SqlType> {
        self.0.get(&name.to_lowercase()).copied()
    }
}

impl Translator<'_> {
    /// What a function that is about to be made cannot do is said.
    ///
    /// # Errors
    /// As [`Self::select`]; 443, 444, 455 for statements that no function has.
    pub fn function(self, definition: &FunctionDefinition) -> Result<()> {
        let mut work = self.work();
        match &definition.function.body {
            FunctionBody::Scalar { .. } => work.program(definition).map(drop),
            FunctionBody::Table(_) => {
                let parameters = (1..).zip(&definition.function.parameters);
                let arguments = parameters.map(|(number, parameter)| {
                    Ok(typed("NULL", SqlType::of_declaration(&parameter.data_type, number)?))
                });
                let arguments = arguments.collect::<Result<Vec<_>>>()?;
                work.called(definition, arguments).map(drop)
            }
        }
    }
}

impl Work<'_> {
    /// A call of a scalar function that a script has made; none, if there is none of that name.
    pub(super) fn scripted(
        &mut self,
        call: &FunctionCall,
        view: View<'_>,
    ) -> Result<Option<Typed>> {
        let Some(definition) = self.function_of(call)? else { return Ok(None) };
        let FunctionBody::Scalar { data_type, .. } = &definition.function.body else {
            return Ok(None);
        };
        let result = SqlType::declared(data_type, 1)?;
        let arguments = self.arguments_of(&definition, call, view)?;
        let number = self.program(&definition)?;
        let mut list = vec![number.to_string()];
        list.extend(arguments.into_iter().map(|argument| argument.sql));
        Ok(Some(typed(format!("tsql_scripted({})", list.join(", ")), result)))
    }

    /// What a name calls: also one that is about to be made, and calls itself.
    fn function_of(&self, call: &FunctionCall) -> Result<Option<FunctionDefinition>> {
        let placed = self.placed(&call.name);
        let is_it = |definition: &&FunctionDefinition| {
            let database = placed.database.as_ref().map(Name::as_str);
            database.is_some_and(|database| same(definition.database.as_str(), database))
                && same(&local(&definition.function.name), &local(&placed))
        };
        match self.functions.iter().find(is_it) {
            Some(definition) => Ok(Some(definition.clone())),
            None => self.catalog.function(&placed),
        }
    }

    /// A table that such a function gives, in FROM.
    pub(super) fn scripted_table(
        &mut self,
        call: &FunctionCall,
        alias: Option<&TableAlias>,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<Option<String>> {
        let Some(definition) = self.function_of(call)? else { return Ok(None) };
        if !matches!(definition.function.body, FunctionBody::Table(_)) {
            return Ok(None);
        }
        let arguments = self.arguments_of(&definition, call, outer)?;
        let relation = self.called(&definition, arguments)?;
        self.derived(relation, &alias_of(call, alias), level).map(Some)
    }

    /// Such a table behind APPLY, whose arguments look at the left side; `false` if it is none, or they do not.
    pub(super) fn scripted_applied(
        &mut self,
        right: &TablePrimary,
        keep: bool,
        level: &mut Level,
        outer: View<'_>,
        text: &mut String,
    ) -> Result<bool> {
        let TablePrimary::Function { call, alias } = right else { return Ok(false) };
        let Some(definition) = self.function_of(call)? else { return Ok(false) };
        let FunctionBody::Table(query) = &definition.function.body else { return Ok(false) };
        let (aliases, parameters) = (self.aliases, self.parameters.len());
        level.used.set(false);
        let view = View::inner(&outer, level, Clause::Other);
        let arguments = self.arguments_of(&definition, call, view)?;
        if !level.used.replace(true) {
            self.aliases = aliases;
            self.parameters.truncate(parameters);
            return Ok(false);
        }
        let alias = alias_of(call, alias.as_ref());
        let (table, joined) = self.with_arguments(&definition, arguments, |work| {
            work.query_applied(query, &alias, keep, View::EMPTY, level)
        })?;
        text.push_str(&joined);
        add(level, table)?;
        Ok(true)
    }

    fn arguments_of(
        &mut self,
        definition: &FunctionDefinition,
        call: &FunctionCall,
        view: View<'_>,
    ) -> Result<Vec<Typed>> {
        let FunctionArguments::Values(values) = &call.arguments else {
            return Err(Message::of(table::INCORRECT_SYNTAX, [&"*"]));
        };
        let parameters = &definition.function.parameters;
        let shown = object_text(&call.name);
        if values.len() > parameters.len() {
            return Err(Message::too_many_arguments(&shown));
        }
        if values.len() < parameters.len() {
            return Err(Message::of(table::TOO_FEW_ARGUMENTS, [&shown]));
        }
        let mut arguments = Vec::with_capacity(values.len());
        for (value, parameter) in values.iter().zip(parameters) {
            let data_type = SqlType::declared(&parameter.data_type, 1)?;
            let value = match matches!(value, Expression::Default) {
                // A default is a constant, which sees nothing.
                true => match &parameter.default {
                    Some(default) => self.expression(default, View::EMPTY)?,
                    None => {
                        let name = &parameter.variable.0;
                        return Err(Message::argument_missing(&shown, name));
                    }
                },
                false => self.expression(value, view)?,
            };
            arguments.push(self.coerced(value, data_type)?);
        }
        Ok(arguments)
    }

    /// The query of a function that gives a table, its parameters being `arguments`.
    fn called(
        &mut self,
        definition: &FunctionDefinition,
        arguments: Vec<Typed>,
    ) -> Result<Relation> {
        let function = &definition.function;
        let FunctionBody::Table(query) = &function.body else {
            return Err(Message::of(table::UNKNOWN_OBJECT, [&object_text(&function.name)]));
        };
        self.with_arguments(definition, arguments, |work| work.query(query, View::EMPTY, true))
    }

    /// Translates what is within a function, its parameters being `arguments`.
    fn with_arguments<T: Written>(
        &mut self,
        definition: &FunctionDefinition,
        arguments: Vec<Typed>,
        translate: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let function = &definition.function;
        let length: usize = arguments.iter().map(|argument| argument.sql.len()).sum();
        self.repeat(length)?;
        let names = function.parameters.iter().map(|parameter| parameter.variable.0.to_lowercase());
        let arguments: HashMap<String, Typed> = names.zip(arguments).collect();
        let within = Within::of(&definition.database, &function.name, function.schema_binding);
        self.within(within, definition.bytes, definition.ansi_nulls, |work| {
            let others = work.arguments.replace(arguments);
            let translated = translate(work);
            work.arguments = others;
            translated
        })
    }

    /// The number of the function's program, which the catalog keeps.
    fn program(&mut self, definition: &FunctionDefinition) -> Result<usize> {
        let function = &definition.function;
        let key = format!("{}.{}", definition.database.as_str(), object_text(&function.name));
        let (number, is_new) = self.catalog.reserve_program(&key.to_lowercase());
        if !is_new {
            // It calls itself, or is called twice.
            return Ok(number);
        }
        let FunctionBody::Scalar { data_type, statements } = &function.body else {
            return Err(Message::of(table::UNKNOWN_OBJECT, [&object_text(&function.name)]));
        };
        let result = SqlType::declared(data_type, 1)?;
        let mut locals = HashMap::new();
        for (number, parameter) in (1..).zip(&function.parameters) {
            let data_type = SqlType::of_declaration(&parameter.data_type, number)?;
            locals.insert(parameter.variable.0.to_lowercase(), data_type);
        }
        declared(statements, &mut locals)?;
        let locals = Locals(locals);
        if !matches!(
            statements.last().map(|last| &last.kind),
            Some(StatementKind::Control(Control::Return(Some(_))))
        ) {
            return Err(Message::of(table::LAST_IS_NO_RETURN, []));
        }
        let within = Within::of(&definition.database, &function.name, function.schema_binding);
        let ansi_nulls = definition.ansi_nulls;
        let steps = self.within(within, definition.bytes, ansi_nulls, |work| {
            work.functions.push(definition.clone());
            let steps = Steps { work, locals: &locals, result }.of(statements);
            work.functions.pop();
            steps
        })?;
        self.catalog.keep_program(
            number,
            Program {
                name: object_text(&function.name),
                parameters: function
                    .parameters
                    .iter()
                    .map(|parameter| parameter.variable.0.to_lowercase())
                    .collect(),
                null_on_null: function.null_on_null,
                steps,
            },
        )?;
        Ok(number)
    }
}

fn alias_of(call: &FunctionCall, alias: Option<&TableAlias>) -> TableAlias {
    match alias {
        Some(alias) => alias.clone(),
        None => TableAlias { name: call.name.object.clone(), columns: Vec::new() },
    }
}

/// The statements of a function as steps.
struct Steps<'w, 'c> {
    work: &'w mut Work<'c>,
    locals: &'w Locals,
    result: SqlType,
}

impl Steps<'_, '_> {
    fn of(&self, statements: &[Ast]) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        for statement in statements {
            self.one(&statement.kind, &mut steps)?;
        }
        Ok(steps)
    }

    /// A translation of its own, with the function's variables, in its database.
    fn fresh(&self) -> Work<'_> {
        let mut work =
            Translator::new(self.work.catalog, self.locals).ansi_nulls(self.work.ansi_nulls).work();
        work.views = self.work.views.clone();
        work.functions = self.work.functions.clone();
        work.views_named = self.work.views_named;
        work.depth = self.work.depth;
        work
    }

    fn value(&self, value: &Expression, to: SqlType) -> Result<Statement> {
        let mut work = self.fresh();
        let value = work.expression(value, View::EMPTY)?;
        let value = work.coerced(value, to)?;
        for (called, name) in [("tsql_rand(", "rand"), ("tsql_newid(", "newid")] {
            if value.sql.contains(called) {
                return Err(side_effect(name));
            }
        }
        let column = ResultColumn { name: String::new(), data_type: to };
        Ok(work.finish_value(format!("SELECT {}", value.sql), column))
    }

    fn condition(&self, condition: &Condition) -> Result<Statement> {
        let mut work = self.fresh();
        let sql = work.condition(condition, View::EMPTY)?;
        let column = ResultColumn { name: String::new(), data_type: SqlType::Bit };
        Ok(work.finish_value(format!("SELECT {sql} IS TRUE"), column))
    }

    fn local(&self, name: &str) -> Result<SqlType> {
        self.locals.variable_type(name).ok_or_else(|| Message::undeclared(name))
    }

    fn one(&self, kind: &StatementKind, steps: &mut Vec<Step>) -> Result<()> {
        match kind {
            StatementKind::Declare(declarations) => {
                for declaration in declarations {
                    let Declaration::Scalar { variable, data_type, value } = declaration else {
                        return Err(Message::unsupported("table variable or cursor in a function"));
                    };
                    let to = SqlType::declared(data_type, 1)?;
                    // Without a value it keeps what it has, in a loop.
                    let Some(value) = value else { continue };
                    let value = self.value(value, to)?;
                    steps.push(Step::Set { variable: variable.0.to_lowercase(), value });
                }
            }
            StatementKind::Session(SessionStatement::SetVariable { variable, operator, value }) => {
                let to = self.local(&variable.0)?;
                let value = match super::assign::binary(*operator) {
                    None => self.value(value, to)?,
                    Some(operator) => {
                        let first = Expression::Variable(variable.clone());
                        let rest = vec![(operator, value.clone())];
                        let chain = Chain { first, rest };
                        self.value(&Expression::Chain(Box::new(chain)), to)?
                    }
                };
                steps.push(Step::Set { variable: variable.0.to_lowercase(), value });
            }
            StatementKind::Select(query) => {
                let returns = !assigns(query);
                let is_into =
                    matches!(&query.body, QueryBody::Select(select) if select.into.is_some());
                if is_into {
                    return Err(side_effect("SELECT INTO"));
                }
                if returns {
                    return Err(Message::of(table::FUNCTION_RETURNS_DATA, []));
                }
                if let QueryBody::Select(select) = &query.body {
                    for item in &select.items {
                        if let SelectItem::Assign { variable, .. } = item {
                            self.local(&variable.0)?;
                        }
                    }
                }
                let Selection::Assign(assignments) = self.fresh().selection(query)? else {
                    return Err(Message::of(table::FUNCTION_RETURNS_DATA, []));
                };
                steps.push(Step::Assign(assignments));
            }
            StatementKind::Control(control) => self.control(control, steps)?,
            StatementKind::Insert(_) => return Err(side_effect("INSERT")),
            StatementKind::Update(_) => return Err(side_effect("UPDATE")),
            StatementKind::Delete(_) => return Err(side_effect("DELETE")),
            StatementKind::Execute(_) => return Err(side_effect("EXECUTE STRING")),
            StatementKind::Transaction(_) => return Err(side_effect("BEGIN TRANSACTION")),
            StatementKind::Session(_) => return Err(side_effect("SET OPTION ON")),
            StatementKind::Cursor(_) => return Err(Message::unsupported("cursor in a function")),
            _ => return Err(side_effect("STATEMENT")),
        }
        Ok(())
    }

    fn control(&self, control: &Control, steps: &mut Vec<Step>) -> Result<()> {
        let body = |statement: &Ast| self.of(std::slice::from_ref(statement));
        steps.push(match control {
            Control::If { condition, then, otherwise } => Step::If {
                condition: self.condition(condition)?,
                then: body(then)?,
                otherwise: otherwise.as_deref().map(body).transpose()?.unwrap_or_default(),
            },
            Control::While { condition, body: inner } => {
                Step::While { condition: self.condition(condition)?, body: body(inner)? }
            }
            Control::Block(statements) => {
                steps.extend(self.of(statements)?);
                return Ok(());
            }
            Control::Break => Step::Break,
            Control::Continue => Step::Continue,
            Control::Return(Some(value)) => Step::Return(self.value(value, self.result)?),
            Control::Return(None) => return Err(Message::of(table::LAST_IS_NO_RETURN, [])),
            Control::Print(_) => return Err(side_effect("PRINT")),
            Control::RaiseError(_) => return Err(side_effect("RAISERROR")),
            Control::Throw(_) => return Err(side_effect("THROW")),
            Control::Try { .. } => return Err(side_effect("BEGIN TRY")),
            Control::WaitFor { .. } => return Err(side_effect("WAITFOR")),
            Control::Goto(_) | Control::Label(_) => {
                return Err(Message::unsupported("GOTO in a function"))
            }
        });
        Ok(())
    }
}

/// 443
fn side_effect(what: &str) -> Message {
    Message::of(table::SIDE_EFFECT, [&what])
}

fn declared(statements: &[Ast], locals: &mut HashMap<String, SqlType>) -> Result<()> {
    for statement in statements {
        match &statement.kind {
            StatementKind::Declare(declarations) => {
                for (number, declaration) in (1..).zip(declarations) {
                    if let Declaration::Scalar { variable, data_type, .. } = declaration {
                        let data_type = SqlType::of_declaration(data_type, number)?;
                        if locals.insert(variable.0.to_lowercase(), data_type).is_some() {
                            return Err(Message::of(table::DECLARED_TWICE, [&variable.0]));
                        }
                    }
                }
            }
            StatementKind::Control(Control::If { then, otherwise, .. }) => {
                declared(std::slice::from_ref(then), locals)?;
                if let Some(otherwise) = otherwise {
                    declared(std::slice::from_ref(otherwise), locals)?;
                }
            }
            StatementKind::Control(Control::While { body, .. }) => {
                declared(std::slice::from_ref(body), locals)?;
            }
            StatementKind::Control(Control::Block(inner)) => declared(inner, locals)?,
            _ => {}
        }
    }
    Ok(())
}
