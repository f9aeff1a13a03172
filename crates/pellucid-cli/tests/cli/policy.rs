//! Goal: what the policies find due is called out by everything that looks, is done by `policy run`, and is not called
//! out any more once it is done.
//!
//! Method: databases whose headers say, authentically, that they are older than they are: written with the keys of the
//! place's own keyring. The program from outside, then the headers as they lie on disk.

use std::process::Stdio;

use pellucid::header::EncryptionState;
use pellucid::scan::ScanState;

use crate::rekey::{more_rows, wait_for, SLOW_ROWS};
use crate::support::plant::rewrite_header;
use crate::support::{edit, header, said, said_with, Place, Said, PELLUCID};

const DAY_SECONDS: u64 = 86_400;

/// A sealed database whose key was made so many days ago.
fn aged(place: &Place, name: &str, days: u64) {
    place.sealed(name, &[]);
    rewrite_header(place, name, 0, |header| header.created -= days * DAY_SECONDS);
}

fn words(place: &Place, words: &str) -> Said {
    place.pellucid(&words.split(' ').collect::<Vec<_>>())
}

fn export(place: &Place) {
    place.secret("password", b"a Pa55word of some length");
    words(
        place,
        "cert export pellucid --cert-file a.pem --key-file a.key --password-file password",
    )
    .succeeded();
}

fn json(said: &Said) -> serde_json::Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// What `status` finds due, as policy and words.
fn due(place: &Place) -> Vec<(String, String)> {
    let facts = json(&words(place, "--json status"));
    let due = facts["due"].as_array().unwrap();
    let text = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap_or("").to_owned();
    due.iter().map(|one| (text(one, "policy"), text(one, "told"))).collect()
}

#[track_caller]
fn nothing_due(place: &Place) {
    assert_eq!(due(place), []);
    for command in ["status --check --quiet", "doctor"] {
        let said = words(place, command);
        assert_eq!(said.code, 0, "{said:?}");
    }
}

#[test]
fn policies_are_shown_set_and_cleared() {
    let place = Place::new();
    let shown = words(&place, "policy show").succeeded();
    assert!(shown.contains("rekey-after ") && shown.contains("730d"), "{shown}");
    assert_eq!(words(&place, "policy set rekey-after 365d").code, 1, "there is no keyring yet");
    assert!(!place.path("keys").exists());

    place.sealed("app.db", &[]);
    let values = |command: &str| -> Vec<(String, bool)> {
        let facts = json(&words(&place, command));
        let all = facts["policies"].as_array().unwrap().clone();
        all.iter()
            .map(|one| (one["value"].as_str().unwrap().to_owned(), one["set"].as_bool().unwrap()))
            .collect()
    };
    let defaults = ["730d", "off", "30d", "90d", "off", "off", "off", "1", "off", "fail"]
        .map(|value| (value.to_owned(), false))
        .to_vec();
    assert_eq!(values("--json policy show"), defaults);
    words(&place, "policy set rekey-after-writes 1000000").succeeded();
    words(&place, "policy set warn-before-expiry off").succeeded();
    let set = values("--json policy set rekey-after 365d");
    assert_eq!(
        set[..3],
        [("365d", true), ("1000000", true), ("off", true)].map(|(a, b)| (a.to_owned(), b))
    );
    assert_eq!(values("--json policy clear warn-before-expiry rekey-after")[2], defaults[2]);
    assert_eq!(values("--json policy clear"), defaults);

    let before = place.snapshot();
    for (wrong, code, told) in [
        ("policy set rekey 365d", 2, "possible values: rekey-after, rekey-after-writes"),
        ("policy set rekey-after 365", 1, "a number of days"),
        ("policy set rekey-after-writes 0", 1, "a number of writes"),
        ("policy clear nothing", 2, "possible values: rekey-after"),
    ] {
        let said = words(&place, wrong);
        assert!(said.code == code && said.stderr.contains(told), "{said:?}");
    }
    assert_eq!(before, place.snapshot());
    let events = words(&place, "events").succeeded();
    assert!(events.contains("policy `rekey-after 365d` changed"), "{events}");
    assert!(events.contains("policy `all default` changed"), "{events}");
}

#[test]
fn a_damaged_file_of_policies_is_called_out_and_cleared() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    export(&place);
    // Off, where the default finds something due.
    aged(&place, "old.db", 5000);
    words(&place, "policy set rekey-after off").succeeded();
    let before = header(&place.path("old.db"));
    edit(&place.path("keys/keyring/settings"), |bytes| *bytes.last_mut().unwrap() ^= 1);
    for command in ["status --check", "doctor"] {
        let said = words(&place, command);
        assert!(said.code == 4 && said.all().contains("`pellucid policy clear`"), "{said:?}");
    }
    assert_eq!(words(&place, "policy show").code, 3);
    for command in ["policy run", "policy run --dry-run"] {
        let said = words(&place, command);
        assert!(said.code == 1 && said.stderr.contains("policy clear"), "{said:?}");
        assert!(said.stdout.is_empty(), "{said:?}");
    }
    assert_eq!(header(&place.path("old.db")), before);
    words(&place, "policy clear").succeeded();
    words(&place, "policy run").succeeded();
    assert_ne!(header(&place.path("old.db")).deks, before.deks, "what is due by default");
    nothing_due(&place);
}

#[test]
fn what_is_due_is_called_out_by_each_that_looks_and_done_by_a_run() {
    let place = Place::new();
    place.sealed("new.db", &[]);
    aged(&place, "old.db", 800);
    aged(&place, "year.db", 400);
    export(&place);
    let old = "old.db`: its data encryption key was made on ";
    let found = due(&place);
    assert!(
        found.len() == 1 && found[0].0 == "rekey-after" && found[0].1.contains(old),
        "{found:?}"
    );
    let said = words(&place, "status --check --quiet");
    assert!(said.code == 4 && said.stderr.contains("more than 730 days ago"), "{said:?}");
    let said = words(&place, "doctor");
    assert!(said.code == 4 && said.stdout.contains("`pellucid policy run`, or"), "{said:?}");
    let metrics = words(&place, "status --prometheus").succeeded();
    assert!(metrics.contains("pellucid_policy_findings{policy=\"rekey-after\"} 1"), "{metrics}");
    words(&place, "policy set rekey-after off").succeeded();
    nothing_due(&place);
    words(&place, "policy set rekey-after 365d").succeeded();
    assert_eq!(due(&place).len(), 2);

    let before = place.snapshot();
    let said = words(&place, "policy run --dry-run").succeeded();
    assert_eq!(said.matches("would rekey: ").count(), 2, "{said}");
    assert_eq!(before, place.snapshot(), "a dry run changes nothing");

    let headers = || ["new.db", "old.db", "year.db"].map(|name| header(&place.path(name)));
    let was = headers();
    let said = words(&place, "policy run").succeeded();
    assert_eq!(said.matches(" is complete. (").count(), 2, "{said}");
    let is = headers();
    for (name, (was, is)) in ["new.db", "old.db", "year.db"].iter().zip(was.iter().zip(&is)) {
        let rekeyed = was.deks[0].commitment != is.deks[0].commitment;
        assert_eq!((rekeyed, is.deks.len()), (*name != "new.db", 1), "{name}");
        words(&place, &format!("check {name}")).succeeded();
    }
    nothing_due(&place);
    let said = words(&place, "policy run").succeeded();
    assert_eq!(said, "nothing is due\n");
    assert_eq!(headers(), is);
}

/// A key that cannot be had keeps one database from its rekey, and no other.
#[test]
fn a_database_that_cannot_be_rekeyed_does_not_stop_the_others() {
    let place = Place::new();
    place.sealed("a.db", &[]);
    place.secret("pass", b"a long passphrase");
    words(&place, "protector add a.db --new-passphrase-file pass").succeeded();
    rewrite_header(&place, "a.db", 0, |header| header.created -= 1000 * DAY_SECONDS);
    aged(&place, "b.db", 1000);
    export(&place);
    let key = |name: &str| header(&place.path(name)).deks[0].commitment;
    let was = [key("a.db"), key("b.db")];
    let said = words(&place, "policy run");
    assert!(said.code == 1 && said.stderr.contains("its passphrase is not at hand"), "{said:?}");
    assert!(key("a.db") == was[0] && key("b.db") != was[1]);
    words(&place, "policy run --passphrase-file pass").succeeded();
    assert_ne!(key("a.db"), was[0]);
    nothing_due(&place);
}

#[test]
fn writes_make_a_key_due_as_well() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    export(&place);
    // A new container begins with a whole block of writes reserved, and a key made later with none.
    words(&place, "rekey app.db").succeeded();
    words(&place, "policy set rekey-after-writes 1500").succeeded();
    nothing_due(&place);
    let sql = "PRAGMA synchronous=OFF;\n".to_owned()
        + &"UPDATE t SET b = b || 'x' WHERE a = 1;\n".repeat(800);
    let mut command = place.command(PELLUCID);
    said_with(command.args(["run", "--", "sqlite3", "-batch", "app.db"]), &sql).succeeded();
    let found = due(&place);
    assert!(found.len() == 1 && found[0].0 == "rekey-after-writes", "{found:?}");
    let facts = json(&words(&place, "--json status"))["databases"][0].clone();
    assert!(facts["key_writes"].as_u64().unwrap() > 1500, "{facts}");
    words(&place, "policy run").succeeded();
    nothing_due(&place);
}

/// The machine went down in mid-scan: nobody goes on with it until somebody notices.
#[test]
fn a_scan_that_nobody_runs_is_noticed_and_brought_to_its_end() {
    let place = Place::new();
    place.plain("app.db");
    place.sqlite3("app.db", &more_rows(SLOW_ROWS)).succeeded();
    words(&place, "encrypt app.db").succeeded();
    export(&place);
    let mut command = place.command(PELLUCID);
    let mut scan =
        command.args(["rekey", "app.db", "--throttle", "1"]).stdout(Stdio::null()).spawn().unwrap();
    wait_for("progress", || {
        let said = words(&place, "--json scan status app.db");
        json(&said)["scans"][0]["percent_complete"].as_f64().is_some_and(|percent| percent > 0.0)
    });
    scan.kill().unwrap();
    scan.wait().unwrap();
    // No policy says so before a while has gone by. Who looks is told at once.
    assert_eq!(due(&place), []);
    for command in ["status --check --quiet", "doctor"] {
        let said = words(&place, command);
        let told = said.all();
        assert!(said.code == 4 && told.contains("app.db`: its scan is not running"), "{said:?}");
        assert!(
            told.contains("`pellucid scan resume ") && told.contains("app.db` goes on"),
            "{said:?}"
        );
    }
    assert_eq!(words(&place, "policy run").succeeded(), "nothing is due\n");
    rewrite_header(&place, "app.db", 3600, |header| header.scan.modified -= 3600);
    assert_eq!(header(&place.path("app.db")).state, EncryptionState::KeyChange);
    let found = due(&place);
    assert!(found.len() == 1 && found[0].1.contains("nobody goes on with its scan"), "{found:?}");
    let said = words(&place, "policy run").succeeded();
    assert!(said.contains("scan resume: ") && !said.contains("a new data"), "{said}");
    let after = header(&place.path("app.db"));
    assert_eq!((after.state, after.scan.state), (EncryptionState::Encrypted, ScanState::Complete));
    words(&place, "check app.db").succeeded();
    nothing_due(&place);
}

#[test]
fn certificates_and_master_keys_are_called_out_as_the_policies_say() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let policies = |place: &Place| -> Vec<String> {
        due(place).into_iter().map(|(policy, _)| policy).collect()
    };
    assert_eq!(policies(&place), ["certificate-backup-age"]);
    words(&place, "policy set certificate-backup-age off").succeeded();
    nothing_due(&place);
    words(&place, "policy clear certificate-backup-age").succeeded();
    export(&place);
    nothing_due(&place);
    words(&place, "policy set warn-before-expiry 400d").succeeded();
    assert_eq!(policies(&place), ["warn-before-expiry"]);
    words(&place, "policy clear").succeeded();

    words(&place, "policy set master-key-backup-age 90d").succeeded();
    assert_eq!(policies(&place), ["master-key-backup-age"; 2]);
    let said = words(&place, "doctor");
    assert!(said.stdout.contains("pellucid key backup service --file service.backup"), "{said:?}");
    for key in ["service", "master"] {
        let backup = format!("key backup {key} --file {key}.backup --password-file password");
        words(&place, &backup).succeeded();
    }
    nothing_due(&place);
    words(&place, "key regenerate master").succeeded();
    let found = due(&place);
    assert!(found.len() == 1 && found[0].1 == "it has no backup", "the new key: {found:?}");
}

#[test]
fn a_damaged_certificate_is_named_and_hides_no_other() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    export(&place);
    words(&place, "cert create a").succeeded();
    edit(&place.path("keys/keyring/certificates/a"), |bytes| *bytes.last_mut().unwrap() ^= 1);
    let told = "certificate `a` cannot be read: ";
    let said = words(&place, "status --check");
    assert!(said.code == 4 && said.stderr.contains(told), "{said:?}");
    assert!(said.stderr.contains("`pellucid cert import a` from its export"), "{said:?}");
    assert!(said.stdout.contains("\npellucid ") && said.stdout.contains("app.db"), "{said:?}");
    let said = words(&place, "doctor");
    assert!(said.code == 4 && said.stdout.contains("`a` cannot be read: "), "{said:?}");
    let said = words(&place, "cert list");
    assert!(said.stderr.contains(told) && said.stdout.contains("\npellucid "), "{said:?}");
    assert_eq!(json(&words(&place, "--json cert list"))["damaged"], serde_json::json!(["a"]));
    let metrics = words(&place, "status --prometheus").succeeded();
    assert!(metrics.contains("\npellucid_keyring_damaged_files 1\n"), "{metrics}");

    words(&place, "cert drop a --force").succeeded();
    nothing_due(&place);
    // What a damaged certificate opened is not told to be without one.
    edit(&place.path("keys/keyring/certificates/pellucid"), |bytes| bytes[60] ^= 1);
    let said = words(&place, "status");
    assert!(said.stderr.contains("its certificate `pellucid` cannot be read"), "{said:?}");
    // One that is needed is imported again, under its name.
    words(&place, "cert drop pellucid --force").succeeded();
    let import = "cert import pellucid --cert-file a.pem --key-file a.key --password-file password";
    words(&place, import).succeeded();
    words(&place, "check app.db").succeeded();
}

#[test]
fn a_database_that_may_not_be_looked_at_hides_no_other() {
    let place = Place::new();
    place.sealed("a.db", &[]);
    place.sealed("b.db", &[]);
    export(&place);
    let memory = std::fs::read_dir(place.path("keys/keyring/databases")).unwrap().next().unwrap();
    std::fs::write(memory.unwrap().path(), b"damaged").unwrap();
    let said = words(&place, "status --check");
    assert!(said.code == 4 && said.stdout.matches(".db").count() == 1, "{said:?}");
    assert!(said.stderr.contains("makes the database known again"), "{said:?}");
    let refused = words(&place, "cert drop pellucid");
    assert_eq!(refused.code, 3, "which databases need it is not known: {refused:?}");
}

/// What a scrape takes for granted (Prometheus, "Text-based format"): names, one HELP and one TYPE before the samples of
/// each metric, no sample twice, whole numbers.
#[test]
fn the_metrics_are_in_the_format_that_scrapers_read() {
    let place = Place::new();
    aged(&place, "old \"1\"\\.db", 800);
    words(&place, "cert create over --start 2020-01-01 --expiry 2020-12-31").succeeded();
    let mut command = place.command(PELLUCID);
    let text = said(command.args(["status", "--prometheus"])).succeeded();
    let mut declared = std::collections::BTreeMap::<&str, (bool, bool)>::new();
    let mut samples = std::collections::BTreeMap::<&str, i64>::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty() && declared.insert(name, (true, false)).is_none(), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.strip_suffix(" gauge").unwrap();
            assert_eq!(declared.insert(name, (true, true)), Some((true, false)), "{line}");
        } else if line != "# EOF" {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            assert!(name.starts_with("pellucid_"), "{line}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
            assert_eq!(declared.get(name), Some(&(true, true)), "{line}");
            assert!(samples.insert(sample, value.parse().unwrap()).is_none(), "twice: {line}");
        }
    }
    let value = |start: &str| {
        let found: Vec<i64> =
            samples.iter().filter(|(name, _)| name.starts_with(start)).map(|(_, v)| *v).collect();
        assert_eq!(found.len(), 1, "{start} in {text}");
        found[0]
    };
    let of_old = format!(
        "{{database=\"{}\"}}",
        place
            .path("old \"1\"\\.db")
            .display()
            .to_string()
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
    );
    let age = value(&format!("pellucid_database_key_age_seconds{of_old}"));
    assert!((800 * 86_400..800 * 86_400 + 600).contains(&age), "{age}");
    let used = value(&format!("pellucid_database_generation_writes{of_old}"));
    assert!(used > 0 && used <= value(&format!("pellucid_database_key_writes{of_old}")));
    assert_eq!(value("pellucid_generation_writes_limit"), 1 << 30);
    let days = value("pellucid_certificate_expiry_days{certificate=\"pellucid\"");
    assert!((364..=365).contains(&days), "{days}");
    assert!(value("pellucid_certificate_expiry_days{certificate=\"over\"") < -1000);
    assert!(!text.contains("pellucid_certificate_backup_age_seconds{"), "none was backed up");
    assert_eq!(
        value("pellucid_master_key_backup_timestamp_seconds{key=\"service master key\"}"),
        0
    );
    assert_eq!(value("pellucid_policy_findings{policy=\"certificate-backup-age\"}"), 2);
    export(&place);
    for key in ["service", "master"] {
        let backup = format!("key backup {key} --file {key}.backup --password-file password");
        words(&place, &backup).succeeded();
    }
    // Now there is something to tell by each.
    let text = words(&place, "status --prometheus").succeeded();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut names: Vec<&str> = types.map(|line| line.split(' ').next().unwrap()).collect();
    names.sort();
    let page = include_str!("../../../../docs/guide/watching.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.filter_map(|row| row.split('`').next());
    let mut told: Vec<&str> = rows.filter(|row| row.starts_with("pellucid_")).collect();
    // Those of an archiver are there where one has run: `archive.rs` asks for each.
    told.retain(|name| !name.contains("_archive_"));
    told.sort();
    assert_eq!(names, told, "the guide's table");
}
