//! Programs of scalar functions: kept by number for the statements that call them, and run.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use rusqlite::Connection;

use crate::message::{table, Message, Result};
use crate::translate::{execute_assignments, Program, Statement, Step, Variables};
use crate::values::convert::Value;

/// Calls within one another, as SQL Server has it.
const NESTED_MOST: usize = 32;

#[derive(Default)]
pub(crate) struct Programs {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    numbers: HashMap<String, usize>,
    programs: Vec<Option<Arc<Program>>>,
    /// Those that the statement at hand has made.
    made: HashSet<usize>,
    depth: usize,
}

impl Programs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Another statement is translated: what it calls is made anew, as its names stand for now.
    pub fn begin_statement(&self) {
        self.state().made.clear();
    }

    /// The number of a program by its key, and whether the statement at hand has not made it yet.
    pub fn reserve(&self, key: &str) -> (usize, bool) {
        let mut state = self.state();
        let number = match state.numbers.get(key) {
            Some(number) => *number,
            None => {
                let number = state.programs.len();
                state.programs.push(None);
                state.numbers.insert(key.to_owned(), number);
                number
            }
        };
        let is_new = state.made.insert(number);
        (number, is_new)
    }

    /// Keeps the program of that number.
    pub fn keep(&self, number: usize, program: Program) {
        if let Some(place) = self.state().programs.get_mut(number) {
            *place = Some(Arc::new(program));
        }
    }

    /// What the function of that number gives; `rows` is told how many each of its statements had.
    ///
    /// # Errors
    /// What its statements say; 217.
    pub fn run(
        &self,
        connection: &Connection,
        number: usize,
        arguments: Vec<Value>,
        rows: &dyn Fn(u64),
    ) -> Result<Value> {
        let program = {
            let mut state = self.state();
            let program = state.programs.get(number).cloned().flatten();
            let Some(program) = program else { return Err(Message::of(table::TOO_DEEP, [])) };
            if state.depth >= NESTED_MOST {
                return Err(Message::of(table::TOO_DEEP, []));
            }
            state.depth += 1;
            program
        };
        let given = Call { connection, rows }.run(&program, arguments);
        self.state().depth -= 1;
        given
    }
}

/// The variables of one call.
#[derive(Default)]
struct Locals(HashMap<String, Value>);

impl Variables for Locals {
    fn get(&self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or(Value::Null)
    }

    fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }
}

/// How a step ends.
enum Next {
    Step,
    Break,
    Continue,
    Return(Value),
}

/// What the statements of a call need.
struct Call<'c> {
    connection: &'c Connection,
    rows: &'c dyn Fn(u64),
}

impl Call<'_> {
    fn run(&self, program: &Program, arguments: Vec<Value>) -> Result<Value> {
        if program.null_on_null && arguments.contains(&Value::Null) {
            return Ok(Value::Null);
        }
        let mut locals = Locals(program.parameters.iter().cloned().zip(arguments).collect());
        match self.steps(&program.steps, &mut locals)? {
            Next::Return(value) => Ok(value),
            _ => Ok(Value::Null),
        }
    }

    fn steps(&self, all: &[Step], locals: &mut Locals) -> Result<Next> {
        for step in all {
            let next = match step {
                Step::Set { variable, value } => {
                    let value = self.first(value, locals)?;
                    locals.set(variable, value);
                    (self.rows)(1);
                    Next::Step
                }
                Step::Assign(assignments) => {
                    (self.rows)(execute_assignments(|_| self.connection, assignments, locals)?);
                    Next::Step
                }
                Step::If { condition, then, otherwise } => match self.holds(condition, locals)? {
                    true => self.steps(then, locals)?,
                    false => self.steps(otherwise, locals)?,
                },
                Step::While { condition, body } => loop {
                    if !self.holds(condition, locals)? {
                        break Next::Step;
                    }
                    match self.steps(body, locals)? {
                        Next::Break => break Next::Step,
                        Next::Step | Next::Continue => {}
                        given @ Next::Return(_) => break given,
                    }
                },
                Step::Break => Next::Break,
                Step::Continue => Next::Continue,
                Step::Return(value) => Next::Return(self.first(value, locals)?),
            };
            match next {
                Next::Step => {}
                other => return Ok(other),
            }
        }
        Ok(Next::Step)
    }

    fn holds(&self, condition: &Statement, locals: &Locals) -> Result<bool> {
        Ok(self.first(condition, locals)? == Value::Integer(1))
    }

    fn first(&self, statement: &Statement, locals: &Locals) -> Result<Value> {
        let mut prepared = statement.prepare(self.connection, locals)?;
        let mut rows = prepared.raw_query();
        match rows.next()? {
            Some(row) => Ok(row.get(0)?),
            None => Ok(Value::Null),
        }
    }
}
