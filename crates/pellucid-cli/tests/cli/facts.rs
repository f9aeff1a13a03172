//! Goal: what a header says of a database's key is said alike by the extension's table, by SQL Server's view, by `status`
//! in each of its forms and by `protector list`, whatever protects the database and whatever was done to it.
//!
//! Method: databases under each combination of a certificate, a passphrase, a key file and a recovery certificate, in
//! either order; and under each algorithm, switched off, with a new key and with a new protector. The answers of all are
//! brought to one form and compared, with each other and with the rule.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::support::{extension, said, Place, PELLUCID};

/// The columns that everybody has, in order.
const COLUMNS: [&str; 9] = [
    "encryption_state",
    "encryption_state_desc",
    "key_algorithm",
    "key_length",
    "encryptor_type",
    "encryptor_thumbprint",
    "percent_complete",
    "encryption_scan_state",
    "encryption_scan_state_desc",
];
const DATES: [&str; 4] = ["create_date", "regenerate_date", "modify_date", "set_date"];

type Row = BTreeMap<String, String>;

/// One form for texts, numbers and thumbprints, however they were shown.
fn plain(value: &Value) -> String {
    let text = match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text = text.trim().trim_start_matches("0x").to_owned();
    let text = text.strip_suffix(".0").map_or(text.clone(), str::to_owned);
    if text.is_empty() {
        "NULL".to_owned()
    } else {
        text.to_uppercase()
    }
}

fn date(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).take(14).collect()
}

fn row(of: impl Fn(&str) -> Value) -> Row {
    let mut row: Row = COLUMNS.iter().map(|name| ((*name).to_owned(), plain(&of(name)))).collect();
    for name in DATES {
        row.insert(name.to_owned(), date(&plain(&of(name))));
    }
    row
}

/// Every key that there is: what nobody remembers has to be opened, to be shown.
fn with_keys(mut command: Command) -> Command {
    command.env("PELLUCID_PASSPHRASE_FILE", "pass").env("PELLUCID_KEY_FILE", "key");
    command.env("PELLUCID_RECOVERY", "1");
    command
}

fn of_the_extension(place: &Place, name: &str) -> Row {
    let columns: Vec<String> = COLUMNS
        .iter()
        .chain(&DATES)
        .map(|column| match *column {
            "encryptor_thumbprint" => {
                "'encryptor_thumbprint', hex(encryptor_thumbprint)".to_owned()
            }
            column => format!("'{column}', {column}"),
        })
        .collect();
    let sql = format!(
        "SELECT json_object({}) FROM pellucid_encryption_keys WHERE path LIKE '%/{name}'",
        columns.join(", ")
    );
    let mut command = with_keys(place.command("/usr/bin/sqlite3"));
    let path = place.path(name).display().to_string();
    let attach = format!("ATTACH 'file:{path}?vfs=pellucid' AS one");
    command.args([
        "-cmd",
        &format!(".load {}", extension(place)),
        "-cmd",
        &attach,
        ":memory:",
        &sql,
    ]);
    let told: Value = serde_json::from_str(&said(&mut command).succeeded()).unwrap();
    row(|column| told[column].clone())
}

fn of_sql_server(place: &Place, name: &str) -> Row {
    let words: Vec<String> = COLUMNS
        .iter()
        .chain(&DATES)
        .map(|column| match *column {
            "encryptor_thumbprint" => {
                "ISNULL(CONVERT(varchar(80), encryptor_thumbprint, 2), 'NULL')".to_owned()
            }
            column if DATES.contains(&column) => format!("CONVERT(varchar(30), {column}, 120)"),
            column => format!("ISNULL(CAST({column} AS varchar(80)), 'NULL')"),
        })
        .collect();
    let database = name.trim_end_matches(".db");
    let query = format!(
        "SET NOCOUNT ON; IF DB_ID('{database}') IS NULL CREATE DATABASE {database} ON (FILENAME = '{}') FOR ATTACH; \
         SELECT {} FROM sys.dm_database_encryption_keys WHERE database_id = DB_ID('{database}')",
        place.path(name).display(),
        words.join(" + '|' + ")
    );
    let mut command = with_keys(place.command(PELLUCID));
    let told = said(command.args(["sql", "-h", "-1", "-y", "0", "-Q", &query])).succeeded();
    let line = told.lines().find(|line| line.contains('|')).unwrap_or_else(|| panic!("{told}"));
    let fields: Vec<&str> = line.trim().split('|').collect();
    let at = |name: &str| COLUMNS.iter().chain(&DATES).position(|column| *column == name).unwrap();
    row(|column| fields[at(column)].into())
}

fn of_status(place: &Place, name: &str) -> (Row, Vec<String>) {
    let told: Value =
        serde_json::from_str(&place.pellucid(&["--json", "status", name]).succeeded()).unwrap();
    let database = &told["databases"][0];
    let openers = database["protectors"].as_array().unwrap().iter();
    let openers = openers.map(|one| one.as_str().unwrap().to_owned()).collect();
    (row(|column| database["encryption"][column].clone()), openers)
}

/// A file that was encrypted in one go has had no scan; SQL Server's view has one that is complete wherever all is encrypted. Of a
/// thumbprint it has 20 bytes.
fn in_sql_server(mut row: Row) -> Row {
    let is = |name: &str, value: &str| row[name] == value;
    if is("encryption_state", "3") && is("encryption_scan_state", "0") {
        row.insert("encryption_scan_state".to_owned(), "4".to_owned());
        row.insert("encryption_scan_state_desc".to_owned(), "COMPLETE".to_owned());
    }
    if let Some(print) = row.get_mut("encryptor_thumbprint") {
        print.truncate(40);
    }
    row
}

/// All of them, which have to say the same; and the words for what opens it.
#[track_caller]
fn asked(place: &Place, name: &str) -> (Row, Vec<String>) {
    let (status, openers) = of_status(place, name);
    assert_eq!(of_the_extension(place, name), status, "{name}");
    assert_eq!(of_sql_server(place, name), in_sql_server(status.clone()), "{name}");
    let metrics = place.pellucid(&["status", "--prometheus", name]).succeeded();
    let line = metrics
        .lines()
        .find(|line| line.starts_with("pellucid_database_encryption_state{"))
        .unwrap();
    assert_eq!(line.rsplit(' ').next().unwrap(), status["encryption_state"], "{name}");
    let list: Value =
        serde_json::from_str(&place.pellucid(&["--json", "protector", "list", name]).succeeded())
            .unwrap();
    let listed = list["protectors"].as_array().unwrap();
    assert_eq!(listed.len(), openers.len(), "{name}");
    let table = place.pellucid(&["status", name]).succeeded();
    for (number, opener) in openers.iter().enumerate() {
        let told = listed[number]["opened_by"].as_str().unwrap();
        let recovers = |text: &str| text.starts_with("for recovery: ");
        assert_eq!(recovers(told), recovers(opener), "{name}: {told} / {opener}");
        // The table is for reading: it leaves the thumbprint to JSON.
        let shown = opener.split(" (").next().unwrap();
        assert!(table.contains(shown), "{opener}: {table}");
    }
    (status, openers)
}

const PROTECTORS: [&str; 4] = ["certificate", "passphrase", "key file", "recovery"];

#[test]
fn all_say_the_same_of_each_combination_of_protectors() {
    let place = Place::new();
    place.secret("pass", b"a long enough passphrase");
    place.secret("key", &[7; 32]);
    let words = |line: &str| {
        place.pellucid(&line.split(' ').collect::<Vec<_>>()).succeeded();
    };
    words("--quiet cert create pellucid");
    words("--quiet cert create rec");
    // First what it is born with, then the others, in either order.
    for combination in 1u32..16 {
        for reversed in [false, true] {
            let mut with: Vec<usize> = (0..4).filter(|bit| combination >> bit & 1 == 1).collect();
            if reversed {
                with.reverse();
                if with.len() < 2 {
                    continue;
                }
            }
            // Recovery alone: what it was born with is dropped at the end.
            let born = with.iter().copied().find(|one| *one != 3).unwrap_or(2);
            let name = format!("d{combination}{}.db", u8::from(reversed));
            place.plain(&name);
            let option = ["", " --passphrase-file pass", " --key-file key"][born];
            let opens = if born == 0 { "" } else { option };
            words(&format!("--quiet encrypt {name}{option}"));
            for one in with.iter().filter(|one| **one != born) {
                let new = [
                    "--certificate pellucid",
                    "--new-passphrase-file pass",
                    "--new-key-file key",
                    "--recovery-certificate rec",
                ][*one];
                words(&format!("protector add {name} {new}{opens}"));
            }
            if !with.contains(&born) {
                words(&format!("protector drop {name} --number 1{opens}"));
            }
            let (row, openers) = asked(&place, &name);
            let kinds: Vec<&str> = with.iter().map(|one| PROTECTORS[*one]).collect();
            let marked = openers.iter().filter(|one| one.starts_with("for recovery: ")).count();
            assert_eq!(marked, usize::from(kinds.contains(&"recovery")), "{kinds:?}: {openers:?}");
            let first = openers.iter().find(|one| !one.starts_with("for recovery: "));
            let wanted = match (kinds.contains(&"certificate"), first) {
                (true, _) | (false, None) => "CERTIFICATE",
                (false, Some(first)) if first.contains("passphrase") => "PASSPHRASE",
                (false, Some(_)) => "KEY FILE",
            };
            assert_eq!(row["encryptor_type"], wanted, "{kinds:?}");
            let has_print = row["encryptor_thumbprint"] != "NULL";
            assert_eq!(has_print, wanted == "CERTIFICATE", "{kinds:?}");
        }
    }
}

#[test]
fn all_say_the_same_after_each_change() {
    let place = Place::new();
    place.secret("pass", b"a long enough passphrase");
    place.secret("key", &[7; 32]);
    let words = |line: &str| place.pellucid(&line.split(' ').collect::<Vec<_>>()).succeeded();
    for (number, algorithm) in
        ["AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY"].iter().enumerate()
    {
        let name = format!("a{number}.db");
        place.plain(&name);
        words(&format!("--quiet encrypt {name} --algorithm {algorithm}"));
        let (row, _) = asked(&place, &name);
        assert_eq!(row["encryption_state_desc"], "ENCRYPTED");
    }
    words("--quiet decrypt a0.db --keep-container");
    assert_eq!(asked(&place, "a0.db").0["encryption_state_desc"], "UNENCRYPTED");
    words("--quiet rekey a1.db");
    asked(&place, "a1.db");
    words("--quiet cert create second");
    words("--quiet rewrap a2.db --certificate second");
    asked(&place, "a2.db");
}
