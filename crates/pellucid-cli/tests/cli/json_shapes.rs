//! Goal: there is a schema for what each command writes with `--json`.
//!
//! Method: a walk through the commands that other tests run without it; whoever runs one with `--json` holds its answer to its
//! schema (`support/shapes.rs`). Then the manual's pages, one for each command, are compared with the schemas.

use std::collections::BTreeSet;

use serde_json::json;

use crate::rekey::slow;
use crate::support::shapes::{differences, directory};
use crate::support::{said, Place, PELLUCID};

/// Commands that write no facts: they are families of others, have a format of their own, or go on until they are stopped.
const WITHOUT: [&str; 16] = [
    "pellucid",
    "broker",
    "broker-run",
    "cert",
    "instance",
    "key",
    "key-password",
    "plugin",
    "protector",
    "scan",
    "policy",
    "lab",
    "run",
    "sql",
    "manual",
    "help",
];

#[test]
fn a_walk_through_all_keys_and_files() {
    let place = Place::new();
    for name in ["pass", "word", "more"] {
        place.secret(name, format!("a long enough passphrase of {name}").as_bytes());
    }
    let json = |line: &str| {
        let words: Vec<_> = std::iter::once("--json").chain(line.split(' ')).collect();
        let said = place.pellucid(&words);
        assert!([0, 4].contains(&said.code), "{line}: {said:?}");
        assert!(said.stdout.lines().any(|line| line.starts_with('{')), "{line}: {said:?}");
    };
    json("init");
    json("cert create one");
    json("cert create two");
    json("cert list");
    json("cert show one");
    json("cert export one --cert-file one.pem --key-file one.key --password-file word");
    json("cert export two --cert-file two.pem");
    json("cert drop two --force");
    json("cert import two --cert-file two.pem");
    json("cert drop two --force");
    json("key status");
    json("key backup service --file service.bak --password-file word");
    json("key backup master --file master.bak --password-file word");
    json("key restore master --file master.bak --password-file word");
    json("key restore service --file service.bak --password-file word");
    json("key regenerate master");
    json("key regenerate service");
    json("key password add --password-file word");
    json("key close");
    json("key open --password-file word");
    json("key password drop --password-file word");
    json("key bind --passphrase-file pass");
    place.plain("app.db");
    let service = |line: &str| {
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_SERVICE_PASSPHRASE_FILE", place.path("pass"));
        let said = said(command.arg("--json").args(line.split(' ')));
        assert!([0, 4].contains(&said.code), "{line}: {said:?}");
    };
    service("key bind --here");
    json("encrypt app.db --certificate one");
    json("status app.db");
    json("status");
    json("check app.db");
    json("protector add app.db --new-passphrase-file pass");
    json("protector list app.db");
    json("protector drop app.db --number 2");
    json("rekey app.db --new-id");
    json("scan status app.db");
    json("scan verify app.db");
    json("backup app.db --to app.bak");
    json("verify app.bak");
    json("verify app.bak --check");
    json("header app.bak");
    json("files app.bak");
    json("label app.bak");
    json("history");
    json("history --restores");
    json("restore app.bak --to again.db");
    json("history --restores");
    json("history rebuild app.bak");
    json("history prune --older-than 1");
    json("salvage app.db --to saved.db");
    json("cert create three");
    json("rewrap app.db --certificate three");
    json("policy show");
    json("policy set rekey-after 100d");
    json("policy clear rekey-after");
    json("policy run --dry-run");
    json("policy run");
    json("events");
    json("events verify");
    json("doctor");
    json("extension");
    json("accept app.db");
    json("instance export --to all.bundle --password-file word");
    let other = Place::new();
    std::fs::copy(place.path("all.bundle"), other.path("all.bundle")).unwrap();
    other.secret("word", b"a long enough passphrase of word");
    let import = ["--json", "instance", "import", "all.bundle", "--password-file", "word"];
    other.pellucid(&import).succeeded();
    json("decrypt again.db");
    std::fs::remove_file(place.path("keys/events.log")).unwrap();
    json("events restart");
}

#[test]
fn a_chain_of_log_backups() {
    let place = Place::new();
    let json = |line: &str| {
        let words: Vec<_> = std::iter::once("--json").chain(line.split(' ')).collect();
        let said = place.pellucid(&words);
        assert!([0, 4].contains(&said.code), "{line}: {said:?}");
    };
    json("init");
    json("policy set format-version 2");
    place.plain("app.db");
    place.sqlite3("app.db", "PRAGMA journal_mode = WAL").succeeded();
    json("encrypt app.db");
    json("recovery app.db");
    json("recovery app.db full");
    json("backup app.db --to full.bak");
    place.pellucid(&["run", "--", "sqlite3", "app.db", "UPDATE t SET b = 'x'"]).succeeded();
    json("backup app.db --log --to log.bak");
    json("header log.bak");
    json("verify log.bak");
    json("history");
    json("restore full.bak log.bak --at last --to again.db");
    let marked = "BEGIN IMMEDIATE; SELECT pellucid_mark('m'); UPDATE t SET b = 'y'; COMMIT";
    place.pellucid(&["run", "--", "sqlite3", "app.db", marked]).succeeded();
    place.pellucid(&["run", "--", "sqlite3", "app.db", marked]).succeeded();
    json("history --points app.db");
    json("backup app.db --log --to marked.bak");
    json("restore full.bak log.bak marked.bak --at mark:m --to marked.db");
    json("history --points full.bak marked.bak");
    json("history --points full.bak log.bak marked.bak");
    json("history --timeline app.db");
    json("history --timeline full.bak marked.bak");
    json("recovery app.db simple");
}

#[test]
fn a_scan_that_is_suspended_and_goes_on() {
    let place = Place::new();
    slow(&place);
    place.pellucid(&["rekey", "app.db", "--background", "--throttle", "1"]).succeeded();
    place.pellucid(&["--json", "scan", "suspend", "app.db"]).succeeded();
    place.pellucid(&["--json", "scan", "status", "app.db"]).succeeded();
    place.pellucid(&["--json", "scan", "resume", "app.db", "--background"]).succeeded();
}

#[test]
fn a_broker_of_accounts() {
    if !rustix::process::geteuid().is_root() {
        println!("not root: only root has a broker, nothing is tested");
        return;
    }
    let place = Place::new();
    let socket = place.path("sockets/broker");
    let command = || {
        let mut command = place.command(PELLUCID);
        command.env_remove("PELLUCID_HOME").env("PELLUCID_CONFIG", place.path("conf"));
        command
    };
    let json = |line: &str| {
        let said = said(command().arg("--json").args(line.split(' ')));
        assert!([0, 4].contains(&said.code), "{line}: {said:?}");
        assert!(said.stdout.lines().any(|line| line.starts_with('{')), "{line}: {said:?}");
    };
    for name in ["sockets", "sets"] {
        std::fs::create_dir(place.path(name)).unwrap();
    }
    json(&format!("init --system --group daemon --directory {}", place.path("instance").display()));
    place.plain("app.db");
    json("encrypt app.db");
    json("broker list");
    json("broker allow daemon app.db");
    json("broker allow daemon --backup app.db");
    json("broker deny daemon app.db");
    json("broker media sets");
    json("broker list");
    let mut broker = command();
    broker.args(["--quiet", "broker", "run", "--socket"]).arg(&socket);
    let mut broker = broker.spawn().unwrap();
    json(&format!("broker enable --socket {}", socket.display()));
    json("broker list");
    json("broker allow root --backup app.db");
    json("broker backup app.db --to app.bak");
    json("events");
    json("doctor");
    json("broker media --none");
    json("broker disable");
    broker.kill().unwrap();
    broker.wait().unwrap();
}

#[test]
fn each_command_has_a_schema_and_each_schema_a_command() {
    let place = Place::new();
    place.pellucid(&["manual", "share"]).succeeded();
    let entries = std::fs::read_dir(place.path("share/man/man1")).unwrap();
    let pages = entries.map(|entry| entry.unwrap().path());
    let commands: BTreeSet<_> = pages
        .map(|page| page.file_stem().unwrap().to_str().unwrap().replacen("pellucid-", "", 1))
        .filter(|name| !WITHOUT.contains(&name.as_str()))
        .collect();
    let schemas: BTreeSet<_> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "error")
        .collect();
    assert_eq!(commands, schemas);
}

#[test]
fn what_is_not_as_its_schema_says_is_found() {
    let schema = json!({
        "type": "object",
        "required": ["a"],
        "properties": { "a": { "type": ["integer", "null"] }, "b": { "type": "array", "items": { "type": "string" } } },
    });
    let wrong = |value: serde_json::Value| {
        let mut wrong = Vec::new();
        differences(&schema, &value, "it", &mut wrong);
        wrong
    };
    assert!(wrong(json!({ "a": 1 })).is_empty());
    assert!(wrong(json!({ "a": null, "b": ["x"] })).is_empty());
    for (value, says) in [
        (json!({}), "it.a is missing"),
        (json!({ "a": "1" }), "it.a is string, not integer or null"),
        (json!({ "a": 1, "b": [1] }), "it.b[0] is integer, not string"),
        (json!({ "a": 1, "c": 1 }), "it.c is not in the schema"),
        (json!([]), "it is array, not object"),
    ] {
        assert_eq!(wrong(value), [says]);
    }
}
