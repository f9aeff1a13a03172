//! `status`: the one honest screen, warnings first.

mod facts;
mod prometheus;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pellucid::facts::{KeyFacts, Opener};
use pellucid::hash::hex;
use pellucid::header::{Header, Standing};
use pellucid::shown::Shown;
use pellucid::{Error, Subject};
use pellucid_engine::inspect::{inspect, Inspection, Kind, SealedHeader};
use pellucid_keyring::broker::Broker;
use pellucid_keyring::{Keyring, Stored};
use pellucid_vfs::lost_log;
use pellucid_vfs::pins::{Expectation, Lesser};

use crate::archived::{archive_table, Archived};
use crate::container::unreadable;
use crate::exit;
use crate::index::Place;
use crate::key_place;
use crate::known::{certificate_gone, Known};
use crate::output::{bytes, date, now, table, word, Failure, Grid, Output};
use crate::pinned;
use crate::policy::Told;
use crate::recovery;
use crate::scan;
use crate::seems::seems;
use crate::standby::{standby_table, Followed};

/// What `status` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid status app.db\n  pellucid status --check *.db")]
pub struct StatusArgs {
    /// Databases to show [default: those that the keyring knows]
    #[arg(value_name = "DB")]
    databases: Vec<PathBuf>,
    /// Write metrics in Prometheus text format, for the textfile collector of node_exporter
    #[arg(long)]
    prometheus: bool,
    /// Exit with status 4 if anything needs attention
    #[arg(long)]
    check: bool,
}

/// Shows databases and keyring.
pub fn run(args: &StatusArgs, output: &Output) -> Result<ExitCode, Failure> {
    let mut warnings = Vec::new();
    let (home, (known, keyring)) = match Keyring::locate() {
        Ok(home) => {
            let found = look(&home, &mut warnings);
            (home, found)
        }
        // No place for a keyring is none; one that is not to be trusted is told.
        Err(Error::Misuse { subject: Subject::Option(_), .. }) => {
            (PathBuf::new(), (Known::default(), State::None))
        }
        Err(error) => {
            warnings.push(format!("the keyring cannot be used: {error}"));
            (PathBuf::new(), (Known::default(), State::Closed))
        }
    };
    let named = !args.databases.is_empty();
    let mut rows = Vec::new();
    for database in if named { &args.databases } else { &known.databases } {
        match inspect(database).map_err(|error| Failure::from(error).about(database)) {
            Ok(found) => rows.push(found),
            Err(failure) if named => return Err(failure),
            // One that cannot be read does not hide the others.
            Err(failure) => warnings.push(failure.message),
        }
    }
    let now = now();
    let due = known.due(&rows, now);
    let told: Vec<Told> = due.iter().map(Told::new).collect();
    warnings.extend(told.iter().map(Told::line));
    for found in &rows {
        if let Err(error) = known.check_of(found) {
            let name = found.path.shown();
            warnings.push(format!(
                "`{name}`: what the keyring knows of its checks cannot be read: {error} (`pellucid check {}` makes it known again)",
                word(&found.path)
            ));
        }
        warn_about(found, &known, keyring, &mut warnings);
    }
    let missing = match !named && keyring == State::There {
        true => pinned::missing(&home)?,
        false => Vec::new(),
    };
    if args.prometheus {
        let facts = prometheus::Facts {
            databases: &rows,
            known: &known,
            due: &due,
            warnings: warnings.len(),
            now,
        };
        output.text(&prometheus::metrics(&facts))?;
        return Ok(attention(args, &warnings));
    }
    for warning in &warnings {
        output.warning(warning);
    }
    // No warning: by default it is so, and a machine whose disks are sealed below may leave it so.
    let advice = key_place::advice(&home, key_place::under_certificates(&rows, &known));
    if !output.json {
        let mut tables = Vec::new();
        if !rows.is_empty() {
            tables.push(database_table(&rows, &known).to_string());
        }
        // Of those that were asked about: for a thousand it would be a second screen.
        tables.extend(facts::date_table(&rows).filter(|_| named).map(|table| table.to_string()));
        tables.extend(archive_table(&rows).map(|table| table.to_string()));
        tables.extend(standby_table(&rows).map(|table| table.to_string()));
        if keyring == State::There {
            let place = key_place::elsewhere(&home).map(|told| format!("\n{told}"));
            tables.push(format!(
                "Keyring {}\n{}{}",
                home.shown(),
                certificate_table(&known),
                place.unwrap_or_default()
            ));
        }
        tables.extend(missing.iter().map(|one| format!("Missing: {}", pinned::missing_text(one))));
        if tables.is_empty() && warnings.is_empty() {
            tables.push(nothing(&home));
        }
        if !tables.is_empty() {
            output.line(tables.join("\n\n"));
        }
        if let Some(advice) = &advice {
            output.line(format!("\nAdvice: {advice}; {}", key_place::INSTEAD));
        }
    }
    output.facts(&serde_json::json!({
        "warnings": warnings, "advice": advice,
        "due": told.iter().map(Told::facts).collect::<Vec<_>>(),
        "databases": rows.iter().map(|found| facts::facts(found, &known)).collect::<Vec<_>>(),
        "missing": missing.iter().map(|(path, id)| {
            serde_json::json!({"path": crate::output::name(path), "file_id": id})
        }).collect::<Vec<_>>(),
        "keyring": match keyring {
            State::There => serde_json::json!({
                "home": crate::output::name(&home),
                "certificates": known.certificates.iter().map(certificate_facts).collect::<Vec<_>>(),
                "damaged_certificates": known.damaged_certificates,
            }),
            _ => serde_json::Value::Null,
        },
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

fn warn_about(found: &Inspection, known: &Known, keyring: State, warnings: &mut Vec<String>) {
    let name = found.path.shown();
    if let Some(told) = not_expected(found) {
        warnings.push(format!("`{name}`: {told}"));
    }
    if let Some(log) = lost_log::kept(&found.path).first() {
        warnings.push(format!(
            "`{name}`: commits of a damaged log do not count and are kept in `{}`: {}",
            log.shown(),
            lost_log::TO_DO
        ));
    }
    match &found.kind {
        Kind::Plain | Kind::NotADatabase => match (seems(&found.path), &found.kind) {
            (Some(seems), _) => warnings.push(format!("`{name}` {}; {}", seems.told, seems.todo)),
            (None, Kind::Plain) => warnings.push(format!("`{name}` is NOT encrypted")),
            (None, _) => {}
        },
        Kind::Unfinished => warnings.push(format!(
            "`{name}`: an encryption or decryption was interrupted; `pellucid check` finishes it"
        )),
        Kind::Damaged(error) => warnings.push(format!("`{name}`: {}", unreadable(error))),
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
            if let Some((told, todo)) = scan::status::stands(&found.path, sealed) {
                warnings.push(format!("{told}; {todo}"));
            }
            let archived = Archived::of_found(found).and_then(|one| one.trouble(&found.path));
            let followed = Followed::of_found(found).and_then(|one| one.trouble(&found.path));
            for (told, todo) in recovery::trouble(&found.path, &sealed.header)
                .into_iter()
                .chain(archived)
                .chain(followed)
            {
                warnings.push(format!("{told}; {todo}"));
            }
            if keyring == State::There {
                let told = pinned::not_pinned(found);
                warnings.extend(told.map(|told| format!("{told}; {}", pinned::OPEN_IT)));
            }
            let gone = certificate_gone(sealed, known);
            if let (Some(gone), true) = (gone, keyring != State::Closed) {
                warnings.push(format!("`{name}`: {gone}"));
            }
        }
        _ => {}
    }
    warnings.extend(left_over(found));
}

/// A copy that a killed conversion has left beside a database, which does not need it.
pub fn left_over(found: &Inspection) -> Option<String> {
    let copy = found.copy.as_ref().filter(|_| !matches!(found.kind, Kind::Unfinished))?;
    // Only a decryption builds a plain copy beside a sealed database.
    let plain =
        if matches!(found.kind, Kind::Sealed(_)) { " and may hold plain pages" } else { "" };
    Some(format!(
        "`{}` is left over from an interrupted conversion{plain}; the next one removes it, unless it is somebody else's",
        copy.shown()
    ))
}

/// What is wrong with the file, by what the keyring expects at its path.
fn not_expected(found: &Inspection) -> Option<String> {
    let expected = match Expectation::at(&found.path) {
        Ok(expected) => expected,
        Err(error) => return Some(error.to_string()),
    };
    let refused = match &found.kind {
        Kind::Sealed(sealed) => match expected.check(&sealed.header) {
            Ok(pins) => {
                let other = pins.iter().find(|pin| pin.other == Some(sealed.header.file_id))?;
                return Some(format!(
                    "another encrypted database, file id {}, has taken the place of file id {}; `pellucid accept` takes it as it is",
                    hex(&sealed.header.file_id),
                    hex(&other.file_id)
                ));
            }
            Err(error) => error,
        },
        Kind::Empty => expected.refuse_lesser(Lesser::Empty).err()?,
        Kind::Plain | Kind::NotADatabase => expected.refuse_lesser(Lesser::Plain).err()?,
        _ => return None,
    };
    let text = refused.to_string();
    Some(text.strip_prefix("container: ").map_or(text.clone(), str::to_owned))
}

/// The state, how far a scan has come with it, and which process it is.
fn state(found: &Inspection, sealed: &SealedHeader) -> String {
    let name = sealed.header.state.name();
    let process = scan::status::process(&found.path, sealed)
        .map_or_else(String::new, |pid| format!("\nin process {pid}"));
    match sealed.percent() {
        Some(percent) => format!("{name}, {percent:.0} %{process}"),
        None => name.to_owned(),
    }
}

/// What the restore that made it has left, or the backup of its tail, if it is not open to everybody.
fn standing(header: &Header) -> &'static str {
    match header.standing() {
        Standing::Online => "",
        Standing::Restoring => "\nrestoring",
        Standing::Standby => "\nstandby",
    }
}

/// Where the wal-index is, if it is not where it is by default.
fn index_place(header: &Header) -> &'static str {
    match Place::of(header) {
        Place::Memory => "\nindex in memory",
        Place::File => "",
    }
}

fn database_table(rows: &[Inspection], known: &Known) -> Grid {
    let mut table = table(["database", "state", "checked", "algorithm", "size", "opens with"]);
    for found in rows {
        let name = found.path.shown().to_string();
        let size = bytes(found.bytes);
        let row = match &found.kind {
            Kind::Sealed(sealed) => {
                let header = &sealed.header;
                vec![
                    name,
                    state(found, sealed) + standing(header) + index_place(header),
                    checked(found, known),
                    header.algorithm().map_or("?".to_owned(), |a| a.name().to_owned()),
                    size,
                    openers(sealed, known).join("\n"),
                ]
            }
            kind => vec![name, kind_name(kind).to_owned(), String::new(), String::new(), size],
        };
        table.add_row(row);
    }
    table
}

/// When it was checked last, and with which result.
fn checked(found: &Inspection, known: &Known) -> String {
    let check = match known.check_of(found) {
        Ok(Some(check)) => check,
        Ok(None) => return "never".to_owned(),
        Err(_) => return "?".to_owned(),
    };
    match &check.damage {
        Some(damage) => format!("{} DAMAGED", date(damage.at)),
        None if check.in_part => format!("{} in part", date(check.at)),
        None if check.pages_only => format!("{} pages ok", date(check.at)),
        None => format!("{} ok", date(check.at)),
    }
}

fn pages(found: &Inspection, sealed: &SealedHeader) -> u64 {
    let region = pellucid::header::REGION_BYTES;
    found.bytes.saturating_sub(region) / u64::from(sealed.header.page_size)
}

fn protectors(sealed: &SealedHeader) -> Vec<String> {
    let facts = KeyFacts::of(&sealed.header, sealed.percent());
    facts.openers.iter().map(Opener::describe_shortly).collect()
}

/// The same beside a table of the keyring's certificates, which has their thumbprints.
fn openers(sealed: &SealedHeader, known: &Known) -> Vec<String> {
    let listed: Vec<String> = known
        .certificates
        .iter()
        .map(|stored| format!(" ({}..)", hex(&stored.public().thumbprint()[..8])))
        .collect();
    let short = |told: String| {
        let print = listed.iter().find(|print| told.ends_with(*print));
        print.and_then(|print| told.strip_suffix(print)).map_or(told.clone(), str::to_owned)
    };
    protectors(sealed).into_iter().map(short).collect()
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

/// What there is to be known of a keyring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    There,
    /// There is none.
    None,
    /// It does not open: nothing is known of its certificates.
    Closed,
}

fn look(home: &Path, warnings: &mut Vec<String>) -> (Known, State) {
    match Known::open(home) {
        Ok(known) => {
            let damage = known.damage.iter();
            warnings.extend(damage.map(|one| match one.what {
                "certificate" => format!("certificate {} ({})", one.told, one.todo),
                what => format!("{what}: {} ({})", one.told, one.todo),
            }));
            (known, State::There)
        }
        Err(Error::MissingKey { .. }) if !Keyring::is_at(home) => {
            if Keyring::configured().is_some_and(|configured| configured == home) {
                warnings.push(format!(
                    "there is no keyring in `{}`, which `{}` names",
                    home.shown(),
                    Keyring::config_path().shown()
                ));
            }
            (Known::default(), State::None)
        }
        // Root's alone, and not this account's to look at.
        Err(_) if Broker::of(home).is_ok_and(|broker| broker.is_some()) => {
            (Known::default(), State::Closed)
        }
        Err(error) => {
            warnings.push(format!("the keyring cannot be used: {error}"));
            (Known::default(), State::Closed)
        }
    }
}

/// What a machine is told that has nothing to show yet.
fn nothing(home: &Path) -> String {
    let keyring = match home.as_os_str().is_empty() {
        true => {
            "No keyring: there is no home directory, and `PELLUCID_HOME` names none.".to_owned()
        }
        false => format!("No keyring yet in `{}`, and no database is named.", home.shown()),
    };
    format!(
        "{keyring} `pellucid encrypt DB` encrypts a database, and makes the keyring where none is."
    )
}

fn backed_up(stored: &Stored) -> Option<String> {
    stored.backed_up().map(date)
}

fn certificate_table(known: &Known) -> Grid {
    let mut table = table(["certificate", "key", "valid to", "backed up", "SHA-256 thumbprint"]);
    for stored in &known.certificates {
        let public = stored.public();
        table.add_row(vec![
            public.name().to_owned(),
            format!("RSA-{}", public.rsa_bits()),
            date(public.validity().1),
            backed_up(stored).unwrap_or_else(|| "NEVER".to_owned()),
            format!("{}..", hex(&public.thumbprint()[..8])),
        ]);
    }
    table
}

fn certificate_facts(stored: &Stored) -> serde_json::Value {
    let public = stored.public();
    serde_json::json!({
        "name": public.name(), "rsa_bits": public.rsa_bits(), "valid_to": date(public.validity().1),
        "backed_up": backed_up(stored), "thumbprint_sha256": hex(public.thumbprint()),
    })
}
