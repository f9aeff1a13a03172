//! What a database tells without a key: for machines, and its dates for people.
//!
//! Names and numbers are those of SQL Server's `sys.dm_database_encryption_keys`; docs/guide/watching.md, "Dates".

use pellucid::facts::KeyFacts;
use pellucid::hash::hex;
use pellucid::header::Dates;
use pellucid::shown::Shown;
use pellucid_engine::inspect::{Inspection, Kind, SealedHeader};
use pellucid_keyring::Check;
use serde_json::{json, Value};

use super::{kind_name, pages, protectors};
use crate::archived::Archived;
use crate::index::Place;
use crate::known::Known;
use crate::output::{date_time, moment, table, Grid};
use crate::scan::status::process_facts;
use crate::standby::Followed;

/// The dates of the sealed ones among `rows`; none if there are none.
pub fn date_table(rows: &[Inspection]) -> Option<Grid> {
    let mut table = table([
        "dates (UTC)",
        "created",
        "regenerated",
        "modified",
        "set",
        "scan changed",
        "format",
    ]);
    for found in rows {
        let Kind::Sealed(sealed) = &found.kind else { continue };
        let dates = sealed.header.dates();
        table.add_row([
            found.path.shown().to_string(),
            date_time(dates.created),
            date_time(dates.regenerated),
            date_time(dates.modified),
            date_time(dates.set),
            dates.scan_modified.map_or_else(|| "-".to_owned(), date_time),
            sealed.header.version().to_string(),
        ]);
    }
    (!table.is_empty()).then_some(table)
}

/// What `sys.dm_database_encryption_keys` says of a database, under its names.
fn encryption(found: &Inspection, sealed: &SealedHeader) -> Value {
    let of = KeyFacts::of(&sealed.header, sealed.percent());
    let date = |date: fn(&Dates) -> u64| of.dates.as_ref().map(date).map(moment);
    let mut row = json!({
        "encryption_state": of.state,
        "encryption_state_desc": of.state_description,
        "create_date": date(|dates| dates.created),
        "regenerate_date": date(|dates| dates.regenerated),
        "modify_date": date(|dates| dates.modified),
        "set_date": date(|dates| dates.set),
        // Opening a database writes nothing.
        "opened_date": null,
        "key_algorithm": of.key.map(|(name, _)| name),
        "key_length": of.key.map(|(_, bits)| bits),
        "encryptor_thumbprint": of.encryptor.and_then(|found| found.thumbprint).map(|print| hex(&print)),
        "encryptor_type": of.encryptor.map(|found| found.kind),
        "percent_complete": of.percent,
        "encryption_scan_state": of.scan_state,
        "encryption_scan_state_desc": of.scan_description,
        "encryption_scan_modify_date": of.dates.and_then(|dates| dates.scan_modified).map(moment),
    });
    if let Some(process) = process_facts(&found.path, sealed) {
        row["scan_process"] = process;
    }
    row
}

/// What checks have found.
fn of_check(check: &Check) -> Value {
    let damage = check.damage.as_ref();
    json!({
        "at": moment(check.at), "pages_only": check.pages_only, "in_part": check.in_part, "ok": damage.is_none(),
        "last_good": (check.good_at > 0).then(|| moment(check.good_at)),
        "damage": damage.map(|damage| json!({
            "at": moment(damage.at), "findings": damage.findings, "pages": damage.pages,
        })),
    })
}

/// The same of a database without a key of its own.
fn encryption_of_plain() -> Value {
    let of = KeyFacts::of_plain();
    json!({
        "encryption_state": of.state, "encryption_state_desc": of.state_description,
        "percent_complete": of.percent, "encryption_scan_state": of.scan_state,
        "encryption_scan_state_desc": of.scan_description,
    })
}

/// Of these names, a sealed database's facts have the values as well.
const ALSO_OUTSIDE: [&str; 8] = [
    "encryption_state",
    "encryption_scan_state",
    "create_date",
    "regenerate_date",
    "modify_date",
    "set_date",
    "opened_date",
    "encryption_scan_modify_date",
];

/// Everything, for machines.
pub fn facts(found: &Inspection, known: &Known) -> Value {
    let mut facts = json!({
        "database": crate::output::name(&found.path), "kind": kind_name(&found.kind), "bytes": found.bytes,
        "copy": found.copy.as_ref().map(crate::output::name),
        "logs": found.logs.iter().map(|(log, bytes)| json!([crate::output::name(log), bytes])).collect::<Vec<_>>(),
    });
    match &found.kind {
        Kind::Sealed(sealed) => {
            let header = &sealed.header;
            let encryption = encryption(found, sealed);
            for name in ALSO_OUTSIDE {
                facts[name] = encryption[name].clone();
            }
            facts["encryption"] = encryption;
            facts["state"] = header.state.name().into();
            facts["algorithm"] = header.algorithm().map_or("", |a| a.name()).into();
            facts["format_version"] = header.version().into();
            facts["page_size"] = header.page_size.into();
            facts["pages"] = pages(found, sealed).into();
            facts["generation"] = header.generation.into();
            facts["sequence"] = header.sequence.into();
            facts["standing"] = header.standing().name().into();
            facts["index"] = Place::of(header).word().into();
            facts["file_id"] = hex(&header.file_id).into();
            facts["protectors"] = protectors(sealed).into();
            facts["key_writes"] = sealed.key_writes().into();
            facts["generation_writes"] = sealed.generation_writes().into();
            facts["check"] =
                known.check_of(found).ok().flatten().map_or(Value::Null, |check| of_check(&check));
            facts["scan"] = header.scan.state.name().into();
            facts["percent_complete"] = sealed.percent().into();
            facts["archive"] = Archived::of_found(found).map_or(Value::Null, |one| one.facts());
            facts["standby"] = Followed::of_found(found).map_or(Value::Null, |one| one.facts());
        }
        Kind::Plain | Kind::Empty => facts["encryption"] = encryption_of_plain(),
        Kind::Damaged(error) => facts["error"] = error.to_string().into(),
        _ => {}
    }
    facts
}
