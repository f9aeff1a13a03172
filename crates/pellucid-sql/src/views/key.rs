//! sys.certificates, sys.symmetric_keys, sys.key_encryptions, sys.dm_database_encryption_keys

use pellucid::certificate::PublicCertificate;
use pellucid::facts::KeyFacts;
use pellucid::header::Dates;
use pellucid_engine::inspect::{Kind, SealedHeader};
use pellucid_files::paths::copy_path;

use super::lists::{arranged, Same, BIN32, PRINT};
use super::{optional, text, time, Column, Row};
use crate::execute::state_of_process;
use crate::instance::{Known, PendingKey, MASTER};
use crate::message::Result;
use crate::session::{object_id, CertificateFacts, Databases};
use crate::values::convert::{from_hex, Value};
use crate::values::moment::Moment;
use crate::values::thumbprint;
use crate::values::types::{Length, SqlType};

const DESC: SqlType = SqlType::nvarchar(60);

/// Source: Microsoft's "sys.certificates".
pub(super) const CERTIFICATES: [Column; 17] = [
    ("name", SqlType::SYSNAME),
    ("certificate_id", SqlType::Int),
    ("principal_id", SqlType::Int),
    ("pvt_key_encryption_type", SqlType::Char(2)),
    ("pvt_key_encryption_type_desc", DESC),
    ("is_active_for_begin_dialog", SqlType::Bit),
    ("issuer_name", SqlType::nvarchar(884)),
    ("cert_serial_number", SqlType::nvarchar(64)),
    ("sid", SqlType::VarBinary(Length::Of(85))),
    ("string_sid", SqlType::nvarchar(128)),
    ("subject", SqlType::nvarchar(4000)),
    ("expiry_date", SqlType::DateTime),
    ("start_date", SqlType::DateTime),
    ("thumbprint", BIN32),
    ("attested_by", SqlType::nvarchar(260)),
    ("pvt_key_last_backup_date", SqlType::DateTime),
    ("key_length", SqlType::Int),
];

/// Source: Microsoft's "sys.symmetric_keys".
pub(super) const SYMMETRIC_KEYS: [Column; 13] = [
    ("name", SqlType::SYSNAME),
    ("principal_id", SqlType::Int),
    ("symmetric_key_id", SqlType::Int),
    ("key_length", SqlType::Int),
    ("key_algorithm", SqlType::Char(2)),
    ("algorithm_desc", DESC),
    ("create_date", SqlType::DateTime),
    ("modify_date", SqlType::DateTime),
    ("key_guid", SqlType::UniqueIdentifier),
    ("key_thumbprint", SqlType::Variant),
    ("provider_type", SqlType::nvarchar(120)),
    ("cryptographic_provider_guid", SqlType::UniqueIdentifier),
    ("cryptographic_provider_algid", SqlType::Variant),
];

/// Source: Microsoft's "sys.asymmetric_keys".
pub(super) const ASYMMETRIC_KEYS: &[Column] = columns!(
    name NAME, principal_id INT, asymmetric_key_id INT, pvt_key_encryption_type C2, pvt_key_encryption_type_desc DESC,
    thumbprint BIN32, algorithm C2, algorithm_desc DESC, key_length INT, sid SID, string_sid N128, public_key BINMAX,
    attested_by N260, provider_type N120, cryptographic_provider_guid GUID, cryptographic_provider_algid VARIANT
);

/// Source: Microsoft's "sys.key_encryptions".
pub(super) const KEY_ENCRYPTIONS: [Column; 5] = [
    ("key_id", SqlType::Int),
    ("thumbprint", BIN32),
    ("crypt_type", SqlType::Char(4)),
    ("crypt_type_desc", DESC),
    ("crypt_property", SqlType::VarBinary(Length::Max)),
];

/// Source: Microsoft's "sys.dm_database_encryption_keys".
pub(super) const ENCRYPTION_KEYS: [Column; 16] = [
    ("database_id", SqlType::Int),
    ("encryption_state", SqlType::Int),
    ("create_date", SqlType::DateTime),
    ("regenerate_date", SqlType::DateTime),
    ("modify_date", SqlType::DateTime),
    ("set_date", SqlType::DateTime),
    ("opened_date", SqlType::DateTime),
    ("key_algorithm", SqlType::nvarchar(32)),
    ("key_length", SqlType::Int),
    ("encryptor_thumbprint", PRINT),
    ("encryptor_type", SqlType::nvarchar(32)),
    ("percent_complete", SqlType::Real),
    ("encryption_state_desc", SqlType::nvarchar(32)),
    ("encryption_scan_state", SqlType::Int),
    ("encryption_scan_state_desc", SqlType::nvarchar(32)),
    ("encryption_scan_modify_date", SqlType::DateTime),
];

/// Numbers that SQL Server gives its own keys.
const MASTER_KEY_ID: i64 = 101;
const SERVICE_KEY_ID: i64 = 102;

pub(super) fn certificates(databases: &Databases) -> Result<Vec<Row>> {
    if databases.current_id() != MASTER {
        return Ok(Vec::new());
    }
    let keyring = databases.instance.keyring()?;
    let row = |stored: &pellucid_keyring::Stored| -> Result<Row> {
        let public: &PublicCertificate = stored.public();
        let (issuer, serial) = public.issuer_and_serial()?;
        let (from, to) = public.validity();
        let (kind, described) = match stored.has_private_key() {
            true => ("MK", "ENCRYPTED_BY_MASTER_KEY"),
            false => ("NA", "NO_PRIVATE_KEY"),
        };
        Ok(vec![
            text(public.name()),
            Value::Integer(object_id("certificate", public.name())),
            Value::Integer(1),
            text(kind),
            text(described),
            Value::Null,
            text(bare(&issuer)),
            text(in_pairs(&serial)),
            Value::Null,
            Value::Null,
            text(bare(public.subject())),
            time(u64::try_from(to).unwrap_or(0)),
            time(u64::try_from(from).unwrap_or(0)),
            thumbprint(public.thumbprint()),
            Value::Null,
            stored.backed_up().map_or(Value::Null, time),
            Value::Integer(i64::try_from(public.rsa_bits()).unwrap_or(0)),
        ])
    };
    let found = keyring.find_certificates()?.whole;
    found.iter().filter(|stored| stored.place().is_none()).map(row).collect()
}

/// A name of nothing but a common name, without its `CN=`, as SQL Server shows what WITH SUBJECT said.
fn bare(name: &str) -> &str {
    name.strip_prefix("CN=").filter(|rest| !rest.contains([',', '+', '\\'])).unwrap_or(name)
}

/// Bytes as `c7 64 80`.
fn in_pairs(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}

/// What CERTPROPERTY and CERTENCODED give of each certificate: public parts alone.
pub(crate) fn certificate_facts(databases: &Databases) -> Result<Vec<CertificateFacts>> {
    let found = databases.instance.keyring()?.find_certificates()?.whole;
    let facts = |stored: &pellucid_keyring::Stored| -> Result<CertificateFacts> {
        let public: &PublicCertificate = stored.public();
        let (issuer, serial) = public.issuer_and_serial()?;
        let (from, to) = public.validity();
        let moment = |seconds: i64| match time(u64::try_from(seconds).unwrap_or(0)) {
            Value::Text(text) => Moment::parse(&text, 0)
                .map_or(Value::Null, |at| Value::Text(at.to_iso(SqlType::DateTime))),
            other => other,
        };
        Ok(CertificateFacts {
            id: object_id("certificate", public.name()),
            subject: bare(public.subject()).to_owned(),
            issuer: bare(&issuer).to_owned(),
            serial: in_pairs(&serial),
            start: moment(from),
            expiry: moment(to),
            der: public.der().to_vec(),
        })
    };
    found.iter().filter(|stored| stored.place().is_none()).map(facts).collect()
}

/// The keys that KEY_ID finds: those of the view.
pub(crate) fn key_ids(databases: &Databases) -> Result<Vec<(String, i64)>> {
    let id = |row: Row| match row.as_slice() {
        [Value::Text(name), _, Value::Integer(id), ..] => Some((name.clone(), *id)),
        _ => None,
    };
    Ok(symmetric_keys(databases)?.into_iter().filter_map(id).collect())
}

pub(super) fn asymmetric_keys(databases: &Databases) -> Result<Vec<Row>> {
    if databases.current_id() != MASTER {
        return Ok(Vec::new());
    }
    let keyring = databases.instance.keyring()?;
    let row = |stored: &pellucid_keyring::Stored| {
        let public = stored.public();
        let (algorithm, described) = match public.rsa_bits() {
            2048 => ("2R", "RSA_2048"),
            3072 => ("3R", "RSA_3072"),
            _ => ("4R", "RSA_4096"),
        };
        vec![
            text(public.name()),
            Value::Integer(1),
            Value::Integer(object_id("asymmetric key", public.name())),
            text("CP"),
            thumbprint(public.thumbprint()),
            text(algorithm),
            text(described),
            Value::Integer(i64::try_from(public.rsa_bits()).unwrap_or(0)),
        ]
    };
    let known = [
        "name",
        "principal_id",
        "asymmetric_key_id",
        "pvt_key_encryption_type",
        "thumbprint",
        "algorithm",
        "algorithm_desc",
        "key_length",
    ];
    let known = known.map(|name| (name, SqlType::Int));
    let same = [
        ("pvt_key_encryption_type_desc", Same::Text("ENCRYPTED_BY_CRYPTOGRAPHIC_PROVIDER")),
        ("provider_type", Same::Text("CRYPTOGRAPHIC PROVIDER")),
    ];
    let found = keyring.find_certificates()?.whole;
    let rows = found.iter().filter(|stored| stored.place().is_some()).map(row).collect();
    Ok(arranged(ASYMMETRIC_KEYS, &known, &same, rows))
}

/// As those of certificates, keys of `master` alone: another database has none of its own.
pub(super) fn symmetric_keys(databases: &Databases) -> Result<Vec<Row>> {
    if databases.current_id() != MASTER {
        return Ok(Vec::new());
    }
    let home = databases.instance.home();
    let made = |name: &str| {
        let at = std::fs::metadata(home.join(name)).and_then(|metadata| metadata.modified()).ok();
        at.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
            .map_or(Value::Null, |at| time(at.as_secs()))
    };
    let row = |name: &str, id: i64, modified: Value| {
        vec![
            text(name),
            Value::Integer(1),
            Value::Integer(id),
            Value::Integer(256),
            text("A3"),
            text("AES_256"),
            Value::Null,
            modified,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ]
    };
    let mut rows = Vec::new();
    if databases.instance.is_master_key_declared()? {
        rows.push(row("##MS_DatabaseMasterKey##", MASTER_KEY_ID, made("keyring/master.key")));
    }
    rows.push(row("##MS_ServiceMasterKey##", SERVICE_KEY_ID, made("service.key")));
    Ok(rows)
}

pub(super) fn key_encryptions(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if databases.instance.is_master_key_declared()? {
        let described = pellucid_keyring::Keyring::describe(databases.instance.home())?;
        let row = |kind: &str, name: &str| {
            vec![Value::Integer(MASTER_KEY_ID), Value::Null, text(kind), text(name), Value::Null]
        };
        if described.encrypted_by_service_key {
            rows.push(row("ESKM", "ENCRYPTION BY MASTER KEY"));
        }
        rows.extend((0..described.passwords).map(|_| row("ESP3", "ENCRYPTION BY PASSWORD")));
    }
    Ok(rows)
}

/// The key of a database, as the view shows it.
pub(super) struct KeyState {
    pub id: i64,
    /// What SET ENCRYPTION said last.
    pub is_on: bool,
    row: Row,
}

pub(super) fn encryption_keys(databases: &Databases) -> Result<Vec<Row>> {
    Ok(states(databases)?.into_iter().map(|state| state.row).collect())
}

/// Of every database that has a key, or was asked to have one.
pub(super) fn states(databases: &Databases) -> Result<Vec<KeyState>> {
    let mut states = Vec::new();
    let keyring = databases.instance.keyring().ok();
    let is_elsewhere = |name: &str| {
        let stored = keyring.as_ref().and_then(|keyring| keyring.stored_certificate(name).ok());
        stored.is_some_and(|stored| stored.place().is_some())
    };
    // Asked before files are looked at: a process that has ended by then has left what it made.
    let mut all_pending = databases.instance.pending_keys()?;
    for known in databases.shown()? {
        if known.is_system() {
            continue;
        }
        let pending = all_pending.remove(&known.id);
        let is_running = pending.as_ref().and_then(|key| key.process).is_some_and(state_of_process);
        match databases.look(&known)?.as_deref() {
            Ok(Kind::Sealed(sealed)) => states.push(of_header(&known, sealed)),
            // What cannot be read has no state that is known.
            Ok(Kind::Damaged(_)) | Err(_) => {}
            Ok(_) => states.extend(pending.map(|key| {
                let kind = match is_elsewhere(&key.certificate) {
                    true => "ASYMMETRIC KEY",
                    false => "CERTIFICATE",
                };
                of_pending(&known, &key, kind, is_running)
            })),
        }
    }
    Ok(states)
}

/// `encryption_state` of a database that is encrypted as a whole.
const ENCRYPTED: u8 = 3;
/// `encryption_scan_state` where a scan has come to its end.
const COMPLETE: i64 = 4;

/// Of a container: what its header says.
fn of_header(known: &Known, sealed: &SealedHeader) -> KeyState {
    let facts = KeyFacts::of(&sealed.header, sealed.percent());
    let date =
        |of: fn(&Dates) -> u64| facts.dates.as_ref().map_or(Value::Null, |dates| time(of(dates)));
    let (name, bits) = facts.key.map_or((Value::Null, Value::Null), |(name, bits)| {
        (text(name), Value::Integer(bits.into()))
    });
    let print = facts.encryptor.and_then(|encryptor| encryptor.thumbprint);
    // One that was encrypted in one go had its scan then.
    let (scan, scan_described) = match (facts.state, facts.scan_state) {
        (ENCRYPTED, 0) => (COMPLETE, "COMPLETE"),
        (_, state) => (state.into(), facts.scan_description),
    };
    KeyState {
        id: known.id,
        is_on: !sealed.header.is_switched_off(),
        row: vec![
            Value::Integer(known.id),
            Value::Integer(facts.state.into()),
            date(|dates| dates.created),
            date(|dates| dates.regenerated),
            date(|dates| dates.modified),
            date(|dates| dates.set),
            Value::Null,
            name,
            bits,
            print.map_or(Value::Null, |print| thumbprint(&print)),
            facts.encryptor.map_or(Value::Null, |encryptor| text(encryptor.kind)),
            Value::Real(facts.percent.into()),
            text(facts.state_description),
            Value::Integer(scan),
            text(scan_described),
            match scan {
                COMPLETE => date(|dates| dates.scan_modified.unwrap_or(dates.set)),
                _ => date(|dates| dates.scan_modified.unwrap_or(0)),
            },
        ],
    }
}

/// Of one that is still plain: 1, or 2 while a process makes its container.
fn of_pending(known: &Known, pending: &PendingKey, encryptor: &str, is_running: bool) -> KeyState {
    let was_begun = pending.process.is_some();
    let (state, described) =
        if is_running { (2, "ENCRYPTION_IN_PROGRESS") } else { (1, "UNENCRYPTED") };
    let (scan, scan_described) = match (is_running, was_begun) {
        (true, _) => (1, "RUNNING"),
        (false, true) => (3, "ABORTED"),
        (false, false) => (0, "NONE"),
    };
    let key = pending.algorithm.parse().ok().map(pellucid::facts::key);
    let (algorithm, bits) = key.map_or((Value::Null, Value::Null), |(name, bits)| {
        (text(name), Value::Integer(bits.into()))
    });
    let bytes =
        |path: &std::path::Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let all = bytes(&known.path).max(1);
    let percent = match is_running {
        true => (bytes(&copy_path(&known.path)) as f64 * 100.0 / all as f64).min(99.0),
        false => 0.0,
    };
    KeyState {
        id: known.id,
        is_on: is_running,
        row: vec![
            Value::Integer(known.id),
            Value::Integer(state),
            text(&pending.created),
            text(&pending.created),
            text(&pending.created),
            optional(pending.set.clone()),
            Value::Null,
            algorithm,
            bits,
            from_hex(&pending.thumbprint).map_or(Value::Null, |print| thumbprint(&print)),
            text(encryptor),
            Value::Real(percent),
            text(described),
            Value::Integer(scan),
            text(scan_described),
            optional(pending.set.clone()),
        ],
    }
}
