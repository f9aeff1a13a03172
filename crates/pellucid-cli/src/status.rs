//! `status`: the one honest screen, warnings first.

mod prometheus;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use comfy_table::Table;
use pellucid::certificate::hex;
use pellucid::keyring::{Keyring, Stored};
use pellucid::protector::Protector;
use pellucid::scan::ScanState;
use pellucid::Error;
use pellucid_sqlite::inspect::{inspect, Inspection, Kind, SealedHeader};

use crate::doctor::{certificate_gone, EXPIRY_DAYS};
use crate::exit;
use crate::output::{bytes, date, table, Failure, Output};

/// What `status` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid status app.db\n  pellucid status --check *.db")]
pub struct StatusArgs {
    /// Databases; without any, those the keyring knows
    #[arg(value_name = "DB")]
    databases: Vec<PathBuf>,
    /// Metrics for Prometheus (text format), as node_exporter's textfile collector takes them
    #[arg(long)]
    prometheus: bool,
    /// Exit with 4 if anything needs attention
    #[arg(long)]
    check: bool,
}

const DAY_SECONDS: i64 = 86_400;

/// Shows databases and keyring.
pub fn run(args: &StatusArgs, output: &Output) -> Result<ExitCode, Failure> {
    let mut warnings = Vec::new();
    let keyring = keyring_rows(&mut warnings);
    let mut rows = Vec::new();
    let named = !args.databases.is_empty();
    for database in if named { &args.databases } else { &keyring.databases } {
        let found = inspect(database).map_err(|error| Failure::from(error).about(database))?;
        warn_about(&found, &keyring, &mut warnings);
        rows.push(found);
    }
    if args.prometheus {
        output.text(&prometheus::metrics(&rows, &keyring.certificates, warnings.len()))?;
        return Ok(attention(args, &warnings));
    }
    for warning in &warnings {
        output.warning(warning);
    }
    if !rows.is_empty() && !output.json {
        output.line(database_table(&rows));
    }
    if let Some(table) = &keyring.table {
        let above = if rows.is_empty() { "" } else { "\n" };
        output.line(format!("{above}Keyring {}", keyring.home.display()));
        output.line(table);
    }
    output.facts(&serde_json::json!({
        "warnings": warnings,
        "databases": rows.iter().map(facts).collect::<Vec<_>>(),
        "keyring": keyring.facts,
    }));
    Ok(attention(args, &warnings))
}

fn attention(args: &StatusArgs, warnings: &[String]) -> ExitCode {
    let attention = args.check && !warnings.is_empty();
    if attention {
        ExitCode::from(exit::ATTENTION)
    } else {
        ExitCode::SUCCESS
    }
}

fn warn_about(found: &Inspection, keyring: &KeyringRows, warnings: &mut Vec<String>) {
    let name = found.path.display();
    match &found.kind {
        Kind::Plain => warnings.push(format!("`{name}` is NOT encrypted")),
        Kind::Unfinished => warnings.push(format!(
            "`{name}`: an encryption or decryption was interrupted; `pellucid check` finishes it"
        )),
        Kind::Damaged(error) => warnings.push(format!("`{name}`: {error}")),
        Kind::Sealed(sealed) => {
            if sealed.first_copy_damaged {
                warnings.push(format!("`{name}`: header copy 0 is damaged, copy 1 is in use"));
            }
            if sealed.sector_damaged {
                warnings
                    .push(format!("`{name}`: sector 0 is damaged, the header behind it is whole"));
            }
            if sealed.header.algorithm().is_ok_and(pellucid::Algorithm::is_deprecated) {
                warnings.push(format!("`{name}`: its algorithm is deprecated"));
            }
            if sealed.header.is_switched_off() {
                warnings.push(format!("`{name}` is NOT encrypted: its encryption is switched off"));
            }
            match sealed.header.scan.state {
                ScanState::Suspended | ScanState::Aborted => warnings.push(format!(
                    "`{name}`: its scan is {}; `pellucid scan resume` goes on with it",
                    sealed.header.scan.state.name()
                )),
                _ => {}
            }
            let gone = certificate_gone(sealed, &keyring.certificates);
            if let (Some(gone), true) = (gone, keyring.readable) {
                warnings.push(format!("`{name}`: {gone}"));
            }
        }
        _ => {}
    }
    if let (Some(copy), false) = (&found.copy, matches!(found.kind, Kind::Unfinished)) {
        warnings.push(format!(
            "`{}` is left over from an interrupted conversion{}; the next one removes it",
            copy.display(),
            // Only a decryption builds a plain copy beside a sealed database.
            if matches!(found.kind, Kind::Sealed(_)) { " and may hold plain pages" } else { "" },
        ));
    }
}

/// The state, and how far a scan has come with it.
fn state(sealed: &SealedHeader) -> String {
    let name = sealed.header.state.name();
    match crate::rekey::percent(sealed) {
        Some(percent) => format!("{name}, {percent:.0} %"),
        None => name.to_owned(),
    }
}

fn database_table(rows: &[Inspection]) -> Table {
    let mut table = table(["database", "state", "algorithm", "size", "opens with"]);
    for found in rows {
        let name = found.path.display().to_string();
        let size = bytes(found.bytes);
        let row = match &found.kind {
            Kind::Sealed(sealed) => {
                let header = &sealed.header;
                vec![
                    name,
                    state(sealed),
                    header.algorithm().map_or("?".to_owned(), |a| a.name().to_owned()),
                    size,
                    protectors(sealed).join("\n"),
                ]
            }
            kind => vec![name, kind_name(kind).to_owned(), String::new(), size],
        };
        table.add_row(row);
    }
    table
}

fn pages(found: &Inspection, sealed: &SealedHeader) -> u64 {
    let region = pellucid::header::REGION_BYTES;
    found.bytes.saturating_sub(region) / u64::from(sealed.header.page_size)
}

fn protectors(sealed: &SealedHeader) -> Vec<String> {
    let describe = |bytes: &Vec<u8>| match Protector::decode(bytes) {
        Ok((protector, _)) => short(&protector),
        Err(error) => error.to_string(),
    };
    sealed.header.protectors.iter().map(describe).collect()
}

fn short(protector: &Protector) -> String {
    match protector {
        Protector::Certificate(p) => {
            let print = hex(&p.thumbprint()[..8]);
            format!("certificate `{}` ({print}..)", p.name())
        }
        other => other.describe(),
    }
}

fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Empty => "empty",
        Kind::Plain => "PLAIN",
        Kind::Sealed(_) => "encrypted",
        Kind::Unfinished => "interrupted",
        Kind::Damaged(_) => "DAMAGED",
        _ => "not a database",
    }
}

fn facts(found: &Inspection) -> serde_json::Value {
    let mut facts = serde_json::json!({
        "database": found.path, "kind": kind_name(&found.kind), "bytes": found.bytes,
        "copy": found.copy, "logs": found.logs,
    });
    match &found.kind {
        Kind::Sealed(sealed) => {
            let header = &sealed.header;
            facts["state"] = header.state.name().into();
            facts["algorithm"] = header.algorithm().map_or("", |a| a.name()).into();
            facts["page_size"] = header.page_size.into();
            facts["pages"] = pages(found, sealed).into();
            facts["generation"] = header.generation.into();
            facts["sequence"] = header.sequence.into();
            facts["file_id"] = hex(&header.file_id).into();
            facts["protectors"] = protectors(sealed).into();
        }
        Kind::Damaged(error) => facts["error"] = error.to_string().into(),
        _ => {}
    }
    facts
}

struct KeyringRows {
    home: PathBuf,
    /// It was read, or there is none; otherwise nothing is known of its certificates.
    readable: bool,
    certificates: Vec<Stored>,
    /// The encrypted databases it knows, as far as they are still there.
    databases: Vec<PathBuf>,
    table: Option<Table>,
    facts: serde_json::Value,
}

fn keyring_rows(warnings: &mut Vec<String>) -> KeyringRows {
    let home = Keyring::locate().unwrap_or_default();
    let mut rows = KeyringRows {
        home: home.clone(),
        readable: true,
        certificates: Vec::new(),
        databases: Vec::new(),
        table: None,
        facts: serde_json::Value::Null,
    };
    let opened = Keyring::open(&home)
        .and_then(|keyring| Ok((keyring.certificates()?, keyring.databases()?)));
    let (certificates, databases) = match opened {
        Ok(found) => found,
        Err(Error::MissingKey { .. }) if !Keyring::is_at(&home) => {
            if Keyring::configured().is_some_and(|configured| configured == home) {
                warnings.push(format!(
                    "there is no keyring in `{}`, which `{}` names",
                    home.display(),
                    Keyring::config_path().display()
                ));
            }
            return rows;
        }
        Err(error) => {
            rows.readable = false;
            warnings.push(format!("the keyring cannot be used: {error}"));
            return rows;
        }
    };
    let mut table = table(["certificate", "key", "valid to", "backed up", "SHA-256 thumbprint"]);
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let mut list = Vec::new();
    for certificate in &certificates {
        let public = certificate.public();
        let expires = public.validity().1;
        let backed_up = certificate.backed_up().map(|at| date(at as i64));
        if backed_up.is_none() {
            warnings.push(format!(
                "certificate `{}` has no backup: if this keyring is lost, so is every database \
                 under it",
                public.name()
            ));
        }
        if expires < now {
            warnings.push(format!("certificate `{}` expired on {}", public.name(), date(expires)));
        } else if expires - now < EXPIRY_DAYS * DAY_SECONDS {
            warnings.push(format!("certificate `{}` expires on {}", public.name(), date(expires)));
        }
        table.add_row(vec![
            public.name().to_owned(),
            format!("RSA-{}", public.rsa_bits()),
            date(expires),
            backed_up.clone().unwrap_or_else(|| "NEVER".to_owned()),
            format!("{}..", hex(&public.thumbprint()[..8])),
        ]);
        list.push(serde_json::json!({
            "name": public.name(), "rsa_bits": public.rsa_bits(), "valid_to": date(expires),
            "backed_up": backed_up, "thumbprint_sha256": hex(public.thumbprint()),
        }));
    }
    rows.databases = databases
        .into_iter()
        .filter(|memory| memory.sealed && memory.path.is_file())
        .map(|memory| memory.path)
        .collect();
    rows.databases.sort();
    rows.databases.dedup();
    rows.certificates = certificates;
    rows.table = Some(table);
    rows.facts = serde_json::json!({"home": home, "certificates": list});
    rows
}
