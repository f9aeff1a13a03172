//! Functions that SQLite lacks, as functions of a connection: names `tsql_..`, called by translated statements only.
//!
//! Arguments come in the forms of [`crate::values::types`]; where a function takes several types it is told which by
//! [`SqlType::code`](crate::values::types::SqlType::code). Errors are [`Message`]s.

mod aggregate;
mod alike;
mod builtin;
mod date;
mod date_part;
mod format;
mod format_number;
mod hash;
mod like;
mod math;
mod message_text;
mod operator;
mod server;
mod text;
mod text_search;
mod xml;

use std::sync::Arc;

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::Connection;

use crate::message::{table, Message, Result};
use crate::values::convert::Value;
use crate::values::moment::Moment;
use crate::values::types::SqlType;

pub(crate) use builtin::{builtin, Builtin, Parameter, ResultType, AGENT_DATETIME, BUILTINS};
pub(crate) use date_part::DatePart;
pub(crate) use hash::new_guid;
pub(crate) use math::widened;
pub(crate) use message_text::formatted_of;
pub(crate) use server::{server_function, FUNCTIONS as SERVER_FUNCTIONS};
pub(crate) use text_search::{NATIONAL, SENSITIVE};

/// What only the server knows: its clock, names and state. A session implements it.
pub trait Server: Send + Sync {
    /// The time here. Should stand still while a statement runs, as SQL Server's does.
    fn now(&self) -> Moment;
    /// The time in UTC.
    fn utc_now(&self) -> Moment;
    /// Whether a path is a file's, whether it is a folder's, and whether its folder is there.
    fn look(&self, _path: &str) -> [bool; 3] {
        [false; 3]
    }
    /// An aggregate leaves out a NULL.
    fn meet_null(&self) {}
    /// What the script's function of that number gives.
    ///
    /// # Errors
    /// What its statements say.
    fn run(&self, _: &Connection, number: usize, _: Vec<Value>) -> Result<Value> {
        Err(unexpected(number))
    }
    /// What the function `name` gives: `DB_NAME`, `@@ROWCOUNT`, `CURRENT_USER`, `ERROR_NUMBER`, in capitals. Numbers
    /// may be INTEGER or TEXT; NULL is what SQL Server gives for what there is not.
    ///
    /// # Errors
    /// 50001 for a function that the session does not have.
    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value>;
}

/// A function of its arguments alone.
struct Scalar {
    name: &'static str,
    /// Whether it is called with NULLs; otherwise one NULL makes NULL.
    nulls: bool,
    run: fn(&[Value]) -> Result<Value>,
}

const fn scalar(name: &'static str, run: fn(&[Value]) -> Result<Value>) -> Scalar {
    Scalar { name, nulls: false, run }
}

const fn with_nulls(name: &'static str, run: fn(&[Value]) -> Result<Value>) -> Scalar {
    Scalar { name, nulls: true, run }
}

/// Makes every function known to `connection`.
///
/// # Errors
/// SQLite's, if it has no memory for them.
pub fn register(connection: &Connection, server: Arc<dyn Server>) -> rusqlite::Result<()> {
    let pure = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    let groups = [
        operator::SCALARS,
        math::SCALARS,
        text::SCALARS,
        text_search::SCALARS,
        date::SCALARS,
        hash::SCALARS,
        xml::SCALARS,
        alike::SCALARS,
        message_text::SCALARS,
    ];
    for Scalar { name, nulls, run } in groups.into_iter().flatten() {
        connection.create_scalar_function(*name, -1, pure, move |context: &Context<'_>| {
            let arguments = arguments(context)?;
            if !nulls && arguments.contains(&Value::Null) {
                return Ok(Value::Null);
            }
            run(&arguments).map_err(Message::raise)
        })?;
    }
    let each_time = FunctionFlags::SQLITE_UTF8;
    for (name, run) in hash::RANDOM {
        connection.create_scalar_function(*name, -1, each_time, move |context: &Context<'_>| {
            run(&arguments(context)?).map_err(Message::raise)
        })?;
    }
    server::register(connection, server)?;
    xml::register(connection)?;
    aggregate::register(connection)
}

fn arguments(context: &Context<'_>) -> rusqlite::Result<Vec<Value>> {
    (0..context.len())
        .map(|at| {
            Ok(match context.get_raw(at) {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => Value::Integer(number),
                ValueRef::Real(number) => Value::Real(number),
                // Text that is no UTF-8 is still text.
                ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
                ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
            })
        })
        .collect()
}

fn unexpected(at: usize) -> Message {
    Message::of(table::SQLITE_ARGUMENT, [&at])
}

fn int(arguments: &[Value], at: usize) -> Result<i64> {
    match arguments.get(at) {
        Some(Value::Integer(number)) => Ok(*number),
        _ => Err(unexpected(at)),
    }
}

fn float(arguments: &[Value], at: usize) -> Result<f64> {
    match arguments.get(at) {
        Some(Value::Real(number)) => Ok(*number),
        Some(Value::Integer(number)) => Ok(*number as f64),
        _ => Err(unexpected(at)),
    }
}

fn text_at(arguments: &[Value], at: usize) -> Result<&str> {
    match arguments.get(at) {
        Some(Value::Text(text)) => Ok(text),
        _ => Err(unexpected(at)),
    }
}

fn value_at(arguments: &[Value], at: usize) -> Result<&Value> {
    arguments.get(at).ok_or_else(|| unexpected(at))
}

fn type_at(arguments: &[Value], at: usize) -> Result<SqlType> {
    SqlType::of_code(int(arguments, at)?).ok_or_else(|| unexpected(at))
}

/// Bytes of a text or of bytes at most: SQLite's own limit.
const BYTES_MOST: usize = 1_000_000_000;

/// Whether a value of so many bytes may be made; asked before it is.
fn bounded(bytes: usize) -> Result<()> {
    match bytes <= BYTES_MOST {
        true => Ok(()),
        false => Err(Message::of(table::LOB_TOO_LARGE, [&BYTES_MOST])),
    }
}

fn text_value(text: impl Into<String>) -> Result<Value> {
    Ok(Value::Text(text.into()))
}
