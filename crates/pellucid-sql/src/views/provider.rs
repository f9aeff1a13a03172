//! sys.cryptographic_providers, sys.credentials, sys.dm_cryptographic_provider_properties

use pellucid_keyring::Provider;
use pellucid_plugin::{Operation, Plugin};

use super::{flag, text, Column, Row};
use crate::message::Result;
use crate::session::{object_id, Databases};
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Source: Microsoft's "sys.cryptographic_providers".
pub(super) const PROVIDERS: [Column; 6] = [
    ("provider_id", SqlType::Int),
    ("name", SqlType::SYSNAME),
    ("guid", SqlType::UniqueIdentifier),
    ("version", SqlType::nvarchar(50)),
    ("dll_path", SqlType::nvarchar(512)),
    ("is_enabled", SqlType::Bit),
];

/// Source: Microsoft's "sys.credentials".
pub(super) const CREDENTIALS: [Column; 7] = [
    ("credential_id", SqlType::Int),
    ("name", SqlType::SYSNAME),
    ("credential_identity", SqlType::nvarchar(4000)),
    ("create_date", SqlType::DateTime),
    ("modify_date", SqlType::DateTime),
    ("target_type", SqlType::nvarchar(100)),
    ("target_id", SqlType::Int),
];

/// Source: Microsoft's "sys.dm_cryptographic_provider_properties".
pub(super) const PROPERTIES: [Column; 14] = [
    ("provider_id", SqlType::Int),
    ("guid", SqlType::UniqueIdentifier),
    ("provider_version", SqlType::nvarchar(256)),
    ("sqlcrypt_version", SqlType::nvarchar(256)),
    ("friendly_name", SqlType::nvarchar(2048)),
    ("authentication_type", SqlType::nvarchar(256)),
    ("symmetric_key_support", SqlType::TinyInt),
    ("symmetric_key_persistance", SqlType::TinyInt),
    ("symmetric_key_export", SqlType::TinyInt),
    ("symmetric_key_import", SqlType::TinyInt),
    ("asymmetric_key_support", SqlType::TinyInt),
    ("asymmetric_key_persistance", SqlType::TinyInt),
    ("asymmetric_key_export", SqlType::TinyInt),
    ("asymmetric_key_import", SqlType::TinyInt),
];

/// The version of SQL Server's interface whose place the protocol of plugins takes.
const INTERFACE: &str = "1.01.0000.00";

fn id(name: &str) -> Value {
    Value::Integer(object_id("provider", name))
}

fn guid(provider: &Provider) -> Value {
    let digits = pellucid::hash::hex(&provider.guid).to_uppercase();
    let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    let parts: Vec<&str> = parts.iter().filter_map(|(from, to)| digits.get(*from..*to)).collect();
    text(parts.join("-"))
}

/// A plugin's version as `aa.bb.cccc.dd`.
fn version(stated: &str) -> String {
    let mut parts = stated.split(['.', '-', '+']).map(|part| part.parse::<u32>().unwrap_or(0));
    let mut part = || parts.next().unwrap_or(0);
    format!("{}.{:02}.{:04}.00", part(), part(), part())
}

pub(super) fn providers(databases: &Databases) -> Result<Vec<Row>> {
    let all = databases.instance.keyring()?.providers()?;
    let row = |provider: &Provider| {
        let described = Plugin::find(&provider.plugin).and_then(|plugin| plugin.describe()).ok();
        vec![
            id(&provider.name),
            text(&provider.name),
            guid(provider),
            described.map_or(Value::Null, |found| text(version(&found.version))),
            text(provider.file.to_string_lossy()),
            flag(provider.is_enabled),
        ]
    };
    Ok(all.providers.iter().map(row).collect())
}

pub(super) fn credentials(databases: &Databases) -> Result<Vec<Row>> {
    let all = databases.instance.keyring()?.providers()?;
    let row = |credential: &pellucid_keyring::Credential| {
        vec![
            Value::Integer(object_id("credential", &credential.name)),
            text(&credential.name),
            text(&credential.identity),
            Value::Null,
            Value::Null,
            text("CRYPTOGRAPHIC PROVIDER"),
            id(&credential.provider),
        ]
    };
    Ok(all.credentials.iter().map(row).collect())
}

/// Of the providers that answer.
pub(super) fn properties(databases: &Databases) -> Result<Vec<Row>> {
    let all = databases.instance.keyring()?.providers()?;
    let mut rows = Vec::new();
    for provider in all.providers.iter().filter(|provider| provider.is_enabled) {
        let described = Plugin::find(&provider.plugin).and_then(|plugin| plugin.describe());
        let Ok(described) = described else { continue };
        let can = |operation| flag(described.can.contains(&operation));
        let never = || Value::Integer(0);
        rows.push(vec![
            id(&provider.name),
            guid(provider),
            text(version(&described.version)),
            text(INTERFACE),
            text(&described.name),
            text("BASIC"),
            never(),
            never(),
            never(),
            never(),
            can(Operation::Decrypt),
            can(Operation::Create),
            never(),
            never(),
        ]);
    }
    Ok(rows)
}
