//! Principals and what they may: the account that runs the statements is `sa` and everybody's `dbo`, and may everything.
//!
//! Other logins and users there are not; the fixed roles have their names.

use super::lists::{arranged, Same};
use super::{flag, text, Column, Row};
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::{Family, Length, SqlType};

const NAME: SqlType = SqlType::SYSNAME;
const DESC: SqlType = SqlType::nvarchar(60);
const SID: SqlType = SqlType::VarBinary(Length::Of(85));
const INT: SqlType = SqlType::Int;
const TIME: SqlType = SqlType::DateTime;
const BIT: SqlType = SqlType::Bit;

/// Source: Microsoft's "sys.server_principals".
pub(super) const SERVER: [Column; 13] = [
    ("name", NAME),
    ("principal_id", INT),
    ("sid", SID),
    ("type", SqlType::Char(1)),
    ("type_desc", DESC),
    ("is_disabled", BIT),
    ("create_date", TIME),
    ("modify_date", TIME),
    ("default_database_name", NAME),
    ("default_language_name", NAME),
    ("credential_id", INT),
    ("owning_principal_id", INT),
    ("is_fixed_role", BIT),
];

/// Source: Microsoft's "sys.database_principals".
pub(super) const DATABASE: [Column; 15] = [
    ("name", NAME),
    ("principal_id", INT),
    ("type", SqlType::Char(1)),
    ("type_desc", DESC),
    ("default_schema_name", NAME),
    ("create_date", TIME),
    ("modify_date", TIME),
    ("owning_principal_id", INT),
    ("sid", SID),
    ("is_fixed_role", BIT),
    ("authentication_type", INT),
    ("authentication_type_desc", DESC),
    ("default_language_name", NAME),
    ("default_language_lcid", INT),
    ("allow_encrypted_value_modifications", BIT),
];

/// Source: Microsoft's "sys.server_role_members"; those of databases have no member either.
pub(super) const SERVER_MEMBERS: [Column; 2] =
    [("role_principal_id", INT), ("member_principal_id", INT)];

/// Source: Microsoft's "sys.database_role_members".
pub(super) const DATABASE_MEMBERS: [Column; 2] = SERVER_MEMBERS;

/// Source: Microsoft's "sys.server_permissions" and "sys.database_permissions".
pub(super) const PERMISSIONS: [Column; 10] = [
    ("class", SqlType::TinyInt),
    ("class_desc", DESC),
    ("major_id", INT),
    ("minor_id", INT),
    ("grantee_principal_id", INT),
    ("grantor_principal_id", INT),
    ("type", SqlType::Char(4)),
    ("permission_name", SqlType::nvarchar(128)),
    ("state", SqlType::Char(1)),
    ("state_desc", DESC),
];

/// Source: Microsoft's "sys.sql_logins": nobody has a password here.
pub(super) const SQL_LOGINS: &[Column] = columns!(
    name NAME, principal_id INT, sid SID, type C1, type_desc DESC, is_disabled BIT, create_date TIME,
    modify_date TIME, default_database_name NAME, default_language_name NAME, credential_id INT,
    is_policy_checked BIT, is_expiration_checked BIT, password_hash BIN256
);

/// Source: Microsoft's "sys.syslogins".
pub(super) const SYSLOGINS: &[Column] = columns!(
    sid SID, status SMALL, createdate TIME, updatedate TIME, accdate TIME, totcpu INT, totio INT, spacelimit INT,
    timelimit INT, resultlimit INT, name NAME, dbname NAME, password NAME, language NAME, denylogin INT,
    hasaccess INT, isntname INT, isntgroup INT, isntuser INT, sysadmin INT, securityadmin INT, serveradmin INT,
    setupadmin INT, processadmin INT, diskadmin INT, dbcreator INT, bulkadmin INT, loginname NAME
);

/// Source: Microsoft's "sys.sysusers".
pub(super) const SYSUSERS: &[Column] = columns!(
    uid SMALL, status SMALL, name NAME, sid SID, roles BIN2048, createdate TIME, updatedate TIME, altuid SMALL,
    password BIN256, gid SMALL, environ N255, hasdbaccess INT, islogin INT, isntname INT, isntgroup INT,
    isntuser INT, issqluser INT, isaliased INT, issqlrole INT, isapprole INT
);

/// Source: Microsoft's "sys.sysmembers".
pub(super) const SYSMEMBERS: [Column; 2] =
    [("memberuid", SqlType::SmallInt), ("groupuid", SqlType::SmallInt)];

/// Their numbers are SQL Server's.
const SERVER_ROLES: [(&str, i64); 9] = [
    ("public", 2),
    ("sysadmin", 3),
    ("securityadmin", 4),
    ("serveradmin", 5),
    ("setupadmin", 6),
    ("processadmin", 7),
    ("diskadmin", 8),
    ("dbcreator", 9),
    ("bulkadmin", 10),
];

const DATABASE_ROLES: [(&str, i64); 9] = [
    ("db_owner", 16_384),
    ("db_accessadmin", 16_385),
    ("db_securityadmin", 16_386),
    ("db_ddladmin", 16_387),
    ("db_backupoperator", 16_389),
    ("db_datareader", 16_390),
    ("db_datawriter", 16_391),
    ("db_denydatareader", 16_392),
    ("db_denydatawriter", 16_393),
];

/// `sa`, and the account by its name, which are one person.
fn logins(databases: &Databases) -> [(String, i64); 2] {
    const FIRST_OWN: i64 = 256;
    [("sa".to_owned(), 1), (databases.shared.user().to_owned(), FIRST_OWN)]
}

fn sid(id: i64) -> Value {
    Value::Blob(vec![u8::try_from(id).unwrap_or(u8::MAX)])
}

fn begun(databases: &Databases) -> Value {
    Value::Text(databases.shared.begun().to_iso(SqlType::DateTime))
}

pub(super) fn server(databases: &Databases) -> Result<Vec<Row>> {
    let time = begun(databases);
    let row = |name: &str, id: i64, is_role: bool| {
        let of_login = |value: Value| if is_role { Value::Null } else { value };
        vec![
            text(name),
            Value::Integer(id),
            sid(id),
            text(if is_role { "R" } else { "S" }),
            text(if is_role { "SERVER_ROLE" } else { "SQL_LOGIN" }),
            flag(false),
            time.clone(),
            time.clone(),
            of_login(text("master")),
            of_login(text("us_english")),
            Value::Null,
            if is_role { Value::Integer(1) } else { Value::Null },
            flag(is_role && id != 2),
        ]
    };
    let logins = logins(databases);
    let mut rows: Vec<Row> = logins.iter().map(|(name, id)| row(name, *id, false)).collect();
    rows.extend(SERVER_ROLES.iter().map(|(name, id)| row(name, *id, true)));
    Ok(rows)
}

pub(super) fn database(databases: &Databases) -> Result<Vec<Row>> {
    let time = begun(databases);
    let row = |name: &str, id: i64, is_role: bool, sid: Value| {
        vec![
            text(name),
            Value::Integer(id),
            text(if is_role { "R" } else { "S" }),
            text(if is_role { "DATABASE_ROLE" } else { "SQL_USER" }),
            if is_role { Value::Null } else { text(name) },
            time.clone(),
            time.clone(),
            if is_role { Value::Integer(1) } else { Value::Null },
            sid,
            flag(is_role && id != 0),
            Value::Integer(i64::from(name == "dbo")),
            text(if name == "dbo" { "INSTANCE" } else { "NONE" }),
            Value::Null,
            Value::Null,
            flag(false),
        ]
    };
    let users = [("dbo", 1, sid(1)), ("guest", 2, Value::Blob(vec![0]))];
    let own = [("INFORMATION_SCHEMA", 3), ("sys", 4)];
    let mut rows = vec![row("public", 0, true, Value::Null)];
    rows.extend(users.into_iter().map(|(name, id, sid)| row(name, id, false, sid)));
    rows.extend(own.into_iter().map(|(name, id)| row(name, id, false, Value::Null)));
    rows.extend(DATABASE_ROLES.iter().map(|(name, id)| row(name, *id, true, Value::Null)));
    Ok(rows)
}

/// Both logins are of sysadmin (3).
pub(super) fn server_members(databases: &Databases) -> Result<Vec<Row>> {
    let row = |(_, id): &(String, i64)| vec![Value::Integer(3), Value::Integer(*id)];
    Ok(logins(databases).iter().map(row).collect())
}

/// `dbo` is of db_owner.
pub(super) fn database_members(_: &Databases) -> Result<Vec<Row>> {
    Ok(vec![vec![Value::Integer(DATABASE_ROLES[0].1), Value::Integer(1)]])
}

pub(super) fn sysmembers(_: &Databases) -> Result<Vec<Row>> {
    Ok(vec![vec![Value::Integer(1), Value::Integer(DATABASE_ROLES[0].1)]])
}

pub(super) fn sql_logins(databases: &Databases) -> Result<Vec<Row>> {
    let time = begun(databases);
    let row = |(name, id): &(String, i64)| {
        vec![
            text(name),
            Value::Integer(*id),
            sid(*id),
            text("S"),
            text("SQL_LOGIN"),
            time.clone(),
            time.clone(),
            text("master"),
            text("us_english"),
        ]
    };
    let known = [
        "name",
        "principal_id",
        "sid",
        "type",
        "type_desc",
        "create_date",
        "modify_date",
        "default_database_name",
        "default_language_name",
    ];
    let known = known.map(|name| (name, INT));
    Ok(arranged(SQL_LOGINS, &known, &[], logins(databases).iter().map(row).collect()))
}

pub(super) fn syslogins(databases: &Databases) -> Result<Vec<Row>> {
    let time = begun(databases);
    let row = |(name, id): &(String, i64)| {
        let (name, time) = (text(name), time.clone());
        vec![sid(*id), name.clone(), name, time.clone(), time.clone(), time]
    };
    let known = ["sid", "name", "loginname", "createdate", "updatedate", "accdate"];
    let known = known.map(|name| (name, INT));
    // What is a number is 0: nobody logs in through Windows, and sysadmin is enough.
    let numbers = SYSLOGINS.iter().filter(|(_, data_type)| data_type.family() == Family::Integer);
    let mut same = vec![
        ("dbname", Same::Text("master")),
        ("language", Same::Text("us_english")),
        ("hasaccess", Same::Number(1)),
        ("sysadmin", Same::Number(1)),
    ];
    same.extend(numbers.map(|(name, _)| (*name, Same::Number(0))));
    Ok(arranged(SYSLOGINS, &known, &same, logins(databases).iter().map(row).collect()))
}

pub(super) fn sysusers(databases: &Databases) -> Result<Vec<Row>> {
    let rows = database(databases)?.into_iter().map(|principal| {
        let is_role = principal[2] == text("R");
        vec![
            principal[1].clone(),
            Value::Integer(0),
            principal[0].clone(),
            principal[8].clone(),
            principal[5].clone(),
            principal[6].clone(),
            flag(principal[0] == text("dbo")),
            flag(!is_role),
            flag(!is_role),
            flag(is_role),
        ]
    });
    let known = [
        "uid",
        "status",
        "name",
        "sid",
        "createdate",
        "updatedate",
        "hasdbaccess",
        "islogin",
        "issqluser",
        "issqlrole",
    ];
    let known = known.map(|name| (name, INT));
    let same = ["altuid", "gid", "isntname", "isntgroup", "isntuser", "isaliased", "isapprole"];
    let same = same.map(|name| (name, Same::Number(0)));
    Ok(arranged(SYSUSERS, &known, &same, rows.collect()))
}
