//! Goal: any SQLite client that loads the extension can select which databases, certificates and keys there are and in
//! what state they are; a broken one hides no other; and looking disturbs nobody.
//!
//! Method: a stock python3 loads the extension and prints what it selects. The states are brought about by the program.
//! That looking drops no lock is seen from another process, which must stay locked out; the same script opens and closes
//! the file behind SQLite's back instead, and then the other process gets in.

use serde_json::{json, Value};

use crate::support::{edit, extension, said, Place};

const LOOK: &str = r"
import json, sqlite3, sys
extension, sql, *attach = sys.argv[1:]
for _ in range(2):
    # The second goes by the VFS that the first has made the default: so does what it attaches.
    db = sqlite3.connect('file::memory:', uri=True)
    db.enable_load_extension(True)
    db.load_extension(extension)
for number, uri in enumerate(attach):
    db.execute('ATTACH ? AS ?', (uri, 'a%d' % number))
db.row_factory = sqlite3.Row
rows = [dict(row) for row in db.execute(sql)]
print(json.dumps([{k: v.hex() if isinstance(v, bytes) else v for k, v in row.items()} for row in rows]))
";

/// The rows of a statement, with databases attached as `a0`, `a1` and so on.
#[track_caller]
fn select(place: &Place, sql: &str, attached: &[&str]) -> Vec<Value> {
    let mut command = place.command("/usr/bin/python3");
    command.args(["-c", LOOK, &extension(place), sql]).args(attached);
    serde_json::from_str(&said(&mut command).succeeded()).unwrap()
}

fn names(row: &Value) -> Vec<&str> {
    row.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_state_of_every_database_can_be_selected() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.sealed("small.db", &["--algorithm", "AES_128"]);
    place.secret("key", &[7; 32]);
    place.sealed("apart.db", &["--key-file", "key"]);
    place.plain("plain.db");
    let keys = "SELECT d.name, d.attached_as, d.is_encrypted, k.* FROM pellucid_encryption_keys k
        JOIN pellucid_databases d USING (database_id) ORDER BY d.name";
    let rows = select(&place, keys, &[]);
    let told: Vec<_> = rows.iter().map(|row| json!([row["name"], row["key_length"]])).collect();
    assert_eq!(told, [json!(["app.db", 256]), json!(["small.db", 128])], "{rows:?}");

    let apart = format!(
        "file:{}?vfs=pellucid&key_file={}",
        place.path("apart.db").display(),
        place.path("key").display()
    );
    let rows = select(&place, keys, &[&apart, "plain.db", "app.db"]);
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            json!([
                row["name"],
                row["attached_as"],
                row["is_encrypted"],
                row["encryption_state"],
                row["encryptor_type"]
            ])
        })
        .collect();
    assert_eq!(
        told,
        [
            json!(["apart.db", "a0", 1, 3, "KEY FILE"]),
            json!(["app.db", "a2", 1, 3, "CERTIFICATE"]),
            json!(["plain.db", "a1", 0, 0, null]),
            json!(["small.db", null, 1, 3, "CERTIFICATE"]),
        ],
        "{rows:?}"
    );
    let app = &rows[1];
    assert_eq!(app["encryption_state_desc"], "ENCRYPTED");
    assert_eq!(app["encryption_scan_state_desc"], "NONE");
    assert_eq!((&app["key_algorithm"], &app["percent_complete"]), (&json!("AES"), &json!(0.0)));
    assert_eq!(app["create_date"].as_str().unwrap().len(), "2026-01-01 00:00:00".len());
    assert_eq!(app["error"], Value::Null);
    let every = select(&place, "SELECT * FROM pellucid_databases LIMIT 1", &[]);
    assert_eq!(
        names(&every[0]),
        [
            "attached_as",
            "create_date",
            "database_id",
            "error",
            "file_id",
            "is_encrypted",
            "name",
            "page_size",
            "path"
        ]
    );

    // The query of SQL Server's documentation.
    let backups = "SELECT pvt_key_last_backup_date AS at, c.name FROM pellucid_certificates c
        JOIN pellucid_encryption_keys dek ON c.thumbprint = dek.encryptor_thumbprint";
    let rows = select(&place, backups, &[]);
    assert_eq!(rows, vec![json!({"at": null, "name": "pellucid"}); 2]);
    place.secret("password", b"a password of some length");
    place
        .pellucid(&[
            "cert",
            "export",
            "pellucid",
            "--cert-file",
            "p.pem",
            "--key-file",
            "p.key",
            "--password-file",
            "password",
        ])
        .succeeded();
    assert_ne!(select(&place, backups, &[])[0]["at"], Value::Null);
    let shown = place.pellucid(&["--json", "cert", "show", "pellucid"]).succeeded();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let row = &select(&place, "SELECT * FROM pellucid_certificates", &[])[0];
    assert_eq!(row["thumbprint"], shown["thumbprint_sha256"]);
    assert_eq!(row["thumbprint_sha1"], shown["thumbprint_sha1"]);
    assert_eq!(
        (&row["issuer_name"], &row["pvt_key_encryption_type"]),
        (&shown["subject"], &json!("MK"))
    );
    assert!(
        row["expiry_date"].as_str().unwrap().starts_with(shown["valid_to"].as_str().unwrap()),
        "{row}"
    );
}

#[test]
fn scans_are_seen() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let state = || {
        let rows = select(
            &place,
            "SELECT encryption_state_desc AS state, encryption_scan_state_desc AS scan, set_date > create_date AS set_later
             FROM pellucid_encryption_keys",
            &[],
        );
        assert_eq!(rows.len(), 1);
        (
            rows[0]["state"].as_str().unwrap().to_owned(),
            rows[0]["scan"].as_str().unwrap().to_owned(),
        )
    };
    let is = |state: &str, scan: &str| (state.to_owned(), scan.to_owned());
    assert_eq!(state(), is("ENCRYPTED", "NONE"));
    place.pellucid(&["rekey", "app.db"]).succeeded();
    assert_eq!(state(), is("ENCRYPTED", "COMPLETE"));
    place.pellucid(&["decrypt", "--keep-container", "app.db"]).succeeded();
    assert_eq!(state(), is("UNENCRYPTED", "COMPLETE"));
    let sql = "SELECT is_encrypted FROM pellucid_databases";
    assert_eq!(select(&place, sql, &[]), [json!({"is_encrypted": 0})]);
}

#[test]
fn one_that_is_broken_hides_no_other() {
    let place = Place::new();
    for name in ["app.db", "other.db", "gone.db"] {
        place.sealed(name, &[]);
    }
    place.pellucid(&["cert", "create", "spare"]).succeeded();
    edit(&place.path("app.db"), |bytes| bytes[2048..16384].fill(0x55));
    std::fs::remove_file(place.path("gone.db")).unwrap();
    edit(&place.path("keys/keyring/certificates/spare"), |bytes| *bytes.last_mut().unwrap() ^= 1);
    let sql =
        "SELECT path, encryption_state AS state, error FROM pellucid_encryption_keys ORDER BY path";
    let rows = select(&place, sql, &[]);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[0]["state"], Value::Null);
    assert!(rows[0]["error"].as_str().unwrap().contains("header copy 0"), "{rows:?}");
    assert_eq!((&rows[1]["state"], &rows[1]["error"]), (&json!(3), &Value::Null));
    let certificates =
        "SELECT name, error IS NULL AS whole FROM pellucid_certificates ORDER BY name";
    let rows = select(&place, certificates, &[]);
    assert_eq!(
        rows,
        [json!({"name": "pellucid", "whole": 1}), json!({"name": "spare", "whole": 0})]
    );

    // A file of the keyring about a database, and then the key above all of them.
    let databases = std::fs::read_dir(place.path("keys/keyring/databases")).unwrap();
    let first = databases.map(|entry| entry.unwrap().path()).min().unwrap();
    edit(&first, |bytes| *bytes.last_mut().unwrap() ^= 1);
    let rows =
        select(&place, "SELECT error FROM pellucid_databases WHERE path LIKE '%keyring%'", &[]);
    let told = rows[0]["error"].as_str().unwrap();
    assert!(rows.len() == 1 && told.contains("its tag does not match"), "{rows:?}");
    edit(&place.path("keys/service.key"), |bytes| bytes[0] ^= 1);
    for (table, attached) in [("databases", 1), ("encryption_keys", 1), ("certificates", 0)] {
        let sql = format!("SELECT error FROM pellucid_{table} ORDER BY error IS NULL");
        place.plain(&format!("{table}.db"));
        let rows = select(&place, &sql, &[&format!("{table}.db")]);
        assert_eq!(rows.len(), 1 + attached, "{rows:?}");
        assert!(rows[0]["error"].as_str().unwrap().contains("another key"), "{rows:?}");
        assert!(rows.len() == 1 || rows[1]["error"] == Value::Null, "{rows:?}");
    }
    std::fs::remove_dir_all(place.path("keys")).unwrap();
    assert!(select(&place, "SELECT * FROM pellucid_certificates", &[]).is_empty());
}

#[test]
fn the_tables_are_read_only_and_not_for_schemas() {
    let place = Place::new();
    let refused = |sql: &str, why: &str| {
        let mut command = place.command("/usr/bin/python3");
        let told = said(command.args(["-c", LOOK, &extension(&place), sql]));
        assert!(told.code == 1 && told.stderr.contains(why), "{sql}: {told:?}");
    };
    for table in ["databases", "certificates", "encryption_keys"] {
        refused(&format!("INSERT INTO pellucid_{table} DEFAULT VALUES"), "may not be modified");
        refused(&format!("DELETE FROM pellucid_{table}"), "may not be modified");
    }
    place.sqlite3("trap.db", "CREATE VIEW v AS SELECT * FROM pellucid_databases").succeeded();
    let mut command = place.command("/usr/bin/python3");
    let told =
        said(command.args(["-c", LOOK, &extension(&place), "SELECT * FROM a0.v", "trap.db"]));
    assert!(told.code == 1 && told.stderr.contains("unsafe use"), "{told:?}");
}

const LOCKED: &str = r"
import sqlite3, subprocess, sys
extension, mode, how = sys.argv[1:]
def connect(name):
    db = sqlite3.connect(':memory:')
    db.enable_load_extension(True)
    db.load_extension(extension)
    return db, sqlite3.connect('file:app.db?vfs=pellucid', uri=True, isolation_level=None)
look, holder = connect('app.db')
holder.execute('PRAGMA journal_mode = ' + mode)
holder.execute('BEGIN IMMEDIATE')
holder.execute('INSERT INTO t(b) VALUES (?)', ('held',))
for _ in range(3):
    if how == 'look':
        rows = look.execute('SELECT encryption_state, error FROM pellucid_encryption_keys').fetchall()
        assert rows == [(3, None)], rows
    else:
        open('app.db', 'rb').close()
other = '''
import sqlite3, sys
db = sqlite3.connect(':memory:')
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
db = sqlite3.connect('file:app.db?vfs=pellucid', uri=True, isolation_level=None, timeout=0)
try:
    db.execute('BEGIN IMMEDIATE')
    print('in')
except sqlite3.OperationalError as error:
    print(error)
'''
print(subprocess.run([sys.executable, '-c', other, extension], capture_output=True, text=True).stdout.strip())
";

#[test]
fn looking_drops_no_lock() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let other = |mode: &str, how: &str| {
        let mut command = place.command("/usr/bin/python3");
        said(command.args(["-c", LOCKED, &extension(&place), mode, how])).succeeded()
    };
    for mode in ["DELETE", "WAL"] {
        assert_eq!(other(mode, "look").trim(), "database is locked", "{mode}");
    }
    assert_eq!(other("DELETE", "behind its back").trim(), "in", "this test could not fail");
}
