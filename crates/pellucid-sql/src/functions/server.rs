//! Functions that the session answers ([`Server`]).

use std::sync::Arc;

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::Connection;

use super::builtin::Parameter;
use super::{arguments, unexpected, Server};
use crate::message::{Message, Result};
use crate::values::convert::{read_stored, Value};
use crate::values::types::{Length, SqlType};

/// A function of the server's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerFunction {
    /// Its name in capitals; with `@@` if that is how it is written.
    pub name: &'static str,
    /// Arguments at least and at most.
    pub least: usize,
    pub most: usize,
    /// What they are converted to; the last one counts for all that follow.
    pub parameters: &'static [Parameter],
    /// What it gives.
    pub result: SqlType,
}

use Parameter::{Int as I, National as N};

const fn function(
    name: &'static str,
    (least, most): (usize, usize),
    parameters: &'static [Parameter],
    result: SqlType,
) -> ServerFunction {
    ServerFunction { name, least, most, parameters, result }
}

const NAME: SqlType = SqlType::SYSNAME;
const INT: SqlType = SqlType::Int;
const ANY: SqlType = SqlType::Variant;
const ID: SqlType = SqlType::numeric(38, 0);

/// Source: Microsoft's "System Functions", "Metadata Functions", "Security Functions", "Configuration Functions".
pub(crate) const FUNCTIONS: &[ServerFunction] = &[
    function("APP_NAME", (0, 0), &[], NAME),
    function("ASYMKEY_ID", (1, 1), &[N], INT),
    function("CERT_ID", (1, 1), &[N], INT),
    function("CERTENCODED", (1, 1), &[I], SqlType::VarBinary(Length::Max)),
    function("CERTPROPERTY", (2, 2), &[I, N], ANY),
    function("COL_LENGTH", (2, 2), &[N], SqlType::SmallInt),
    function("COL_NAME", (2, 2), &[I], NAME),
    function("CONNECTIONPROPERTY", (1, 1), &[N], ANY),
    function("CONTEXT_INFO", (0, 0), &[], SqlType::VarBinary(Length::Of(128))),
    function("DATABASE_PRINCIPAL_ID", (0, 1), &[N], INT),
    function("CURSOR_STATUS", (2, 2), &[N], SqlType::SmallInt),
    function("DATABASEPROPERTY", (2, 2), &[N], INT),
    function("DATABASEPROPERTYEX", (2, 2), &[N], ANY),
    function("DB_ID", (0, 1), &[N], INT),
    function("DB_NAME", (0, 1), &[I], NAME),
    function("DEFAULT_DOMAIN", (0, 0), &[], NAME),
    function("ERROR_LINE", (0, 0), &[], INT),
    function("ERROR_MESSAGE", (0, 0), &[], SqlType::nvarchar(4000)),
    function("ERROR_NUMBER", (0, 0), &[], INT),
    function("ERROR_PROCEDURE", (0, 0), &[], NAME),
    function("ERROR_SEVERITY", (0, 0), &[], INT),
    function("ERROR_STATE", (0, 0), &[], INT),
    function("FILE_ID", (1, 1), &[N], SqlType::SmallInt),
    function("FILE_IDEX", (1, 1), &[N], INT),
    function("FILE_NAME", (1, 1), &[I], NAME),
    function("FILEGROUP_ID", (1, 1), &[N], INT),
    function("FILEGROUP_NAME", (1, 1), &[I], NAME),
    function("FILEPROPERTY", (2, 2), &[N], INT),
    function("FN_HADR_BACKUP_IS_PREFERRED_REPLICA", (1, 1), &[N], SqlType::Bit),
    function("HAS_DBACCESS", (1, 1), &[N], INT),
    function("HAS_PERMS_BY_NAME", (3, 5), &[N], INT),
    function("HOST_ID", (0, 0), &[], SqlType::Char(10)),
    function("HOST_NAME", (0, 0), &[], NAME),
    function("IS_MEMBER", (1, 1), &[N], INT),
    function("IS_ROLEMEMBER", (1, 2), &[N], INT),
    function("IS_SRVROLEMEMBER", (1, 2), &[N], INT),
    function("KEY_GUID", (1, 1), &[N], SqlType::UniqueIdentifier),
    function("KEY_ID", (1, 1), &[N], INT),
    function("OBJECT_DEFINITION", (1, 1), &[I], SqlType::NVARCHAR_MAX),
    function("OBJECT_ID", (1, 2), &[N], INT),
    function("OBJECT_NAME", (1, 2), &[I], NAME),
    function("OBJECT_SCHEMA_NAME", (1, 2), &[I], NAME),
    function("ORIGINAL_DB_NAME", (0, 0), &[], NAME),
    function("ORIGINAL_LOGIN", (0, 0), &[], NAME),
    function("SCHEMA_ID", (0, 1), &[N], INT),
    function("SCHEMA_NAME", (0, 1), &[I], NAME),
    function("SCOPE_IDENTITY", (0, 0), &[], ID),
    function("SERVERPROPERTY", (1, 1), &[N], ANY),
    function("SESSION_CONTEXT", (1, 1), &[N], ANY),
    function("SESSIONPROPERTY", (1, 1), &[N], ANY),
    function("SUSER_ID", (0, 1), &[N], INT),
    function("SUSER_NAME", (0, 1), &[I], NAME),
    function("SUSER_SID", (0, 2), &[N], SqlType::VarBinary(Length::Of(85))),
    function("SUSER_SNAME", (0, 1), &[Parameter::Binary], NAME),
    function("TYPE_ID", (1, 1), &[N], INT),
    function("TYPE_NAME", (1, 1), &[I], NAME),
    function("USER_ID", (0, 1), &[N], INT),
    function("USER_NAME", (0, 1), &[I], NAME),
    function("XACT_STATE", (0, 0), &[], SqlType::SmallInt),
    function("CURRENT_USER", (0, 0), &[], NAME),
    function("SESSION_USER", (0, 0), &[], NAME),
    function("SYSTEM_USER", (0, 0), &[], NAME),
    function("USER", (0, 0), &[], NAME),
    function("@@CPU_BUSY", (0, 0), &[], INT),
    function("@@CONNECTIONS", (0, 0), &[], INT),
    function("@@CURSOR_ROWS", (0, 0), &[], INT),
    function("@@DATEFIRST", (0, 0), &[], SqlType::TinyInt),
    function("@@ERROR", (0, 0), &[], INT),
    function("@@FETCH_STATUS", (0, 0), &[], INT),
    function("@@IDENTITY", (0, 0), &[], ID),
    function("@@IDLE", (0, 0), &[], INT),
    function("@@IO_BUSY", (0, 0), &[], INT),
    function("@@LANGID", (0, 0), &[], SqlType::SmallInt),
    function("@@LANGUAGE", (0, 0), &[], NAME),
    function("@@LOCK_TIMEOUT", (0, 0), &[], INT),
    function("@@MAX_CONNECTIONS", (0, 0), &[], INT),
    function("@@MAX_PRECISION", (0, 0), &[], SqlType::TinyInt),
    function("@@MICROSOFTVERSION", (0, 0), &[], INT),
    function("@@NESTLEVEL", (0, 0), &[], INT),
    function("@@OPTIONS", (0, 0), &[], INT),
    function("@@PACKET_ERRORS", (0, 0), &[], INT),
    function("@@PACK_RECEIVED", (0, 0), &[], INT),
    function("@@PACK_SENT", (0, 0), &[], INT),
    function("@@PROCID", (0, 0), &[], INT),
    function("@@REMSERVER", (0, 0), &[], NAME),
    function("@@ROWCOUNT", (0, 0), &[], INT),
    function("@@SERVERNAME", (0, 0), &[], NAME),
    function("@@SERVICENAME", (0, 0), &[], NAME),
    function("@@SPID", (0, 0), &[], SqlType::SmallInt),
    function("@@TEXTSIZE", (0, 0), &[], INT),
    function("@@TIMETICKS", (0, 0), &[], INT),
    function("@@TOTAL_ERRORS", (0, 0), &[], INT),
    function("@@TOTAL_READ", (0, 0), &[], INT),
    function("@@TOTAL_WRITE", (0, 0), &[], INT),
    function("@@TRANCOUNT", (0, 0), &[], INT),
    function("@@VERSION", (0, 0), &[], SqlType::nvarchar(300)),
];

/// The function of this name, which is in capitals.
pub(crate) fn server_function(name: &str) -> Option<&'static ServerFunction> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// `tsql_server(name, ..)`, `tsql_now(type, utc)`, `tsql_scripted(number, ..)` `tsql_look(path)`, the bits of `sys.dm_os_file_exists`, and
/// `tsql_met(x)`, an aggregate's argument as it is, which is told of a NULL.
pub(super) fn register(connection: &Connection, server: Arc<dyn Server>) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8;
    let (clock, files, scripted) = (server.clone(), server.clone(), server.clone());
    pellucid_bundled::create_nested_function(
        connection,
        "tsql_scripted",
        move |context, nested| {
            let mut arguments = arguments(context)?;
            let number = match arguments.first() {
                Some(Value::Integer(number)) => usize::try_from(*number).ok(),
                _ => None,
            };
            let Some(number) = number else { return Err(Message::raise(unexpected(0))) };
            arguments.remove(0);
            scripted.run(nested, number, arguments).map_err(Message::raise)
        },
    )?;
    connection.create_scalar_function("tsql_look", 1, flags, move |context: &Context<'_>| {
        Ok(match arguments(context)?.first() {
            Some(Value::Text(path)) => {
                let found = files.look(path).into_iter().enumerate();
                Value::Integer(found.map(|(bit, is)| i64::from(is) << bit).sum())
            }
            _ => Value::Integer(0),
        })
    })?;
    let met = server.clone();
    let of_row = flags | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("tsql_met", 1, of_row, move |context: &Context<'_>| {
        let value = arguments(context)?.pop().unwrap_or(Value::Null);
        if value == Value::Null {
            met.meet_null();
        }
        Ok(value)
    })?;
    connection.create_scalar_function("tsql_server", -1, flags, move |context: &Context<'_>| {
        call(&*server, &arguments(context)?).map_err(Message::raise)
    })?;
    connection.create_scalar_function("tsql_now", 2, flags, move |context: &Context<'_>| {
        now(&*clock, &arguments(context)?).map_err(Message::raise)
    })
}

fn call(server: &dyn Server, arguments: &[Value]) -> Result<Value> {
    let Some((Value::Text(name), arguments)) = arguments.split_first() else {
        return Err(unexpected(0));
    };
    let function = server_function(name).ok_or_else(|| Message::unknown_function(name))?;
    let value = server.call(name, arguments)?;
    match function.result {
        SqlType::Variant => Ok(value),
        result => Ok(read_stored(value, result)?),
    }
}

fn now(server: &dyn Server, arguments: &[Value]) -> Result<Value> {
    let of = super::type_at(arguments, 0)?;
    let moment = match super::int(arguments, 1)? {
        0 => server.now(),
        _ => server.utc_now(),
    };
    let rounded = moment.rounded(of).ok_or_else(|| Message::date_out_of_range(of, of))?;
    Ok(Value::Text(rounded.to_iso(of)))
}
