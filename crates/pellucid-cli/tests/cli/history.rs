//! Goal: the history knows every backup and restore of the instance, nothing depends on it, and it forgets whole chains.
//!
//! Method: the program from outside; the tables read with SQL; the history lost, damaged and made again from media.

use serde_json::Value;

use crate::support::{edit, history, Place, PELLUCID};

fn json(place: &Place, arguments: &[&str]) -> Value {
    let said = place.pellucid(&[&["--json"], arguments].concat()).succeeded();
    serde_json::from_str(&said).unwrap()
}

fn backups(place: &Place) -> Vec<Value> {
    json(place, &["history"])["backups"].as_array().unwrap().clone()
}

/// A place with a sealed database, a full backup and a differential of it, each in a file of its own.
fn chain() -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["backup", "app.db", "--to", "full.bak", "--name", "sunday's"]).succeeded();
    let update = "UPDATE t SET b = 'x' WHERE a = 5";
    place.pellucid(&["run", "--", "sqlite3", "app.db", update]).succeeded();
    let arguments = ["--to", "diff.bak", "--differential", "--base", "full.bak"];
    place.pellucid(&[&["backup", "app.db"], &arguments[..]].concat()).succeeded();
    place
}

#[test]
fn it_has_what_sql_servers_tables_have_and_is_itself_sealed() {
    let place = chain();
    let known = backups(&place);
    assert_eq!(known.len(), 2, "{known:?}");
    let header = json(&place, &["header", "full.bak"]);
    assert_eq!(known[0]["backup_set_uuid"], header["backup_set"]);
    assert_eq!(known[0]["database_name"], "app");
    assert_eq!(known[0]["name"], "sunday's");
    assert_eq!(known[0]["backup_size"], header["backup_size"]);
    assert_eq!(known[0]["compressed_backup_size"], header["compressed_backup_size"]);
    assert_eq!(known[0]["key_algorithm"], "AES_256");
    assert_eq!(known[0]["under"], "certificate pellucid");
    assert_eq!(known[1]["differential_base_guid"], header["backup_set"]);
    assert_eq!(known[0]["files"][0], place.path("full.bak").to_str().unwrap());
    assert!(known[0]["seconds"].as_f64().unwrap() > 0.0, "not whole seconds: {known:?}");
    let shown = place.pellucid(&["history"]).succeeded();
    assert!(shown.contains("MB/s") && shown.contains('#'), "{shown}");

    place.pellucid(&["restore", "diff.bak", "--base", "full.bak", "--to", "a.db"]).succeeded();
    let restores = json(&place, &["history", "--restores"])["restores"].clone();
    assert_eq!(restores[0]["destination_database_name"], "a");
    assert_eq!(restores[0]["restore_type"], "I");
    assert_eq!(restores[0]["backup_set_uuid"], known[1]["backup_set_uuid"]);
    assert_eq!(restores[0]["replace"], false);
    assert_eq!(backups(&place).len(), 2, "a restore knows the sets again, it does not double them");

    let bytes = std::fs::read(place.path("keys/msdb.db")).unwrap();
    for word in [&b"backupset"[..], b"sunday", b"app.db", b"SQLite format"] {
        assert!(!bytes.windows(word.len()).any(|window| window == word), "{word:?}");
    }
}

#[test]
fn where_there_is_no_instance_none_is_made_for_it() {
    let place = Place::new();
    place.plain("app.db");
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    assert!(!place.path("keys").exists());
    assert!(backups(&place).is_empty());
}

#[test]
fn without_it_backups_and_restores_go_on_and_it_is_made_again_from_media() {
    let place = chain();
    let before = backups(&place);
    edit(&place.path("keys/msdb.db"), |bytes| bytes[..16384].fill(0x55));
    let refused = place.pellucid(&["history"]);
    assert!(refused.code != 0 && refused.stderr.contains("history rebuild"), "{refused:?}");
    let said = place.pellucid(&["backup", "app.db", "--to", "more.bak"]);
    assert!(said.code == 0 && said.stderr.contains("history was not written"), "{said:?}");
    let said = place.pellucid(&["restore", "full.bak", "--to", "b.db"]);
    assert!(said.code == 0 && said.stderr.contains("history was not written"), "{said:?}");
    let said = place.pellucid(&["history", "rebuild", "full.bak", "diff.bak", "more.bak"]);
    assert!(said.code == 0 && said.stderr.contains("is kept as"), "{said:?}");
    let again = backups(&place);
    assert_eq!(again[..2], before[..]);
    assert_eq!(again.len(), 3);
    // The key of it lost with the keyring's file: likewise.
    std::fs::remove_file(place.path("keys/keyring/history")).unwrap();
    assert_ne!(place.pellucid(&["history"]).code, 0);
    place.pellucid(&["history", "rebuild", "full.bak", "diff.bak", "more.bak"]).succeeded();
    assert_eq!(backups(&place), again);
    place.pellucid(&["key", "regenerate", "master"]).succeeded();
    assert_eq!(backups(&place), again);
}

#[test]
fn pruning_takes_whole_chains_says_so_first_and_leaves_what_a_newer_differential_needs() {
    let place = chain();
    place.pellucid(&["backup", "app.db", "--to", "next.bak"]).succeeded();
    let differential = ["--to", "next.bak", "--append", "--differential", "--retain-days", "9"];
    place.pellucid(&[&["backup", "app.db"], &differential[..]].concat()).succeeded();
    let prune = ["history", "prune", "--older-than", "0", "--files"];
    let planned = json(&place, &prune);
    assert_eq!(planned["sets"].as_array().unwrap().len(), 2, "{planned}");
    assert_eq!(
        planned["kept"].as_array().unwrap().len(),
        2,
        "the last one has not expired: {planned}"
    );
    assert_eq!(backups(&place).len(), 4, "nothing is done by saying it");
    // A file that is another one by now is not the history's to remove.
    std::fs::write(place.path("diff.bak"), "somebody's notes").unwrap();
    let done = json(&place, &[&prune[..], &["--apply"]].concat());
    assert_eq!(done["files"], serde_json::json!([place.path("full.bak")]), "{done}");
    assert!(!place.path("full.bak").exists() && place.path("next.bak").exists());
    assert!(place.path("diff.bak").exists());
    let left = backups(&place);
    assert_eq!(left.len(), 2, "{left:?}");
    let base = &left[0]["backup_set_uuid"];
    assert_eq!(&left[1]["differential_base_guid"], base);
    place.pellucid(&["restore", "next.bak", "--to", "c.db"]).succeeded();
}

/// Of each known set: its file, and whether it is known to be gone.
fn known(place: &Place) -> Vec<(String, bool)> {
    let gone = |set: &Value| {
        assert_eq!(set["overwritten_date"].is_null(), set["overwritten_by"].is_null(), "{set}");
        !set["overwritten_date"].is_null()
    };
    let file =
        |set: &Value| set["files"][0].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    backups(place).iter().map(|set| (file(set), gone(set))).collect()
}

#[test]
fn sets_that_were_overwritten_are_known_to_be_gone_until_a_copy_turns_up() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let back_up = |words: &str| {
        let words = format!("backup app.db --to {words}");
        place.pellucid(&words.split(' ').collect::<Vec<_>>()).succeeded();
    };
    let is = |expected: &[(&str, bool)]| {
        let found = known(&place);
        let found: Vec<_> = found.iter().map(|(file, gone)| (file.as_str(), *gone)).collect();
        assert_eq!(found, expected);
    };
    back_up("a.bak");
    back_up("a.bak --append");
    std::fs::copy(place.path("a.bak"), place.path("kept.bak")).unwrap();
    is(&[("a.bak", false), ("a.bak", false)]);
    back_up("a.bak --overwrite");
    is(&[("a.bak", true), ("a.bak", true), ("a.bak", false)]);
    let shown = place.pellucid(&["history"]).succeeded();
    let lines: Vec<_> = shown.lines().filter(|line| line.contains("a.bak")).collect();
    assert!(lines.len() == 3 && lines[0].contains("a.bak (overwritten 20"), "{shown}");
    assert!(!lines[2].contains("overwritten"), "{shown}");
    back_up("a.bak --format");
    is(&[("a.bak", true), ("a.bak", true), ("a.bak", true), ("a.bak", false)]);
    let by = backups(&place)[2]["overwritten_by"].clone();
    assert_eq!(by, backups(&place)[3]["backup_set_uuid"]);
    // A copy of the file that was overwritten.
    place.pellucid(&["restore", "kept.bak", "--to", "x.db", "--position", "2"]).succeeded();
    assert!(!known(&place)[1].1, "it was just restored");
    place.pellucid(&["history", "rebuild", "kept.bak"]).succeeded();
    is(&[("kept.bak", false), ("kept.bak", false), ("kept.bak", true), ("a.bak", false)]);

    // A stripe that is gone is the set; a mirror is not.
    let place = Place::new();
    place.sealed("app.db", &[]);
    let back_up = |words: &str| {
        let words = format!("backup app.db --to {words}");
        place.pellucid(&words.split(' ').collect::<Vec<_>>()).succeeded();
    };
    back_up("s.bak t.bak");
    back_up("m.bak --mirror n.bak");
    back_up("t.bak --format");
    back_up("m.bak --format");
    let found = known(&place);
    let found: Vec<_> = found.iter().map(|(file, gone)| (file.as_str(), *gone)).collect();
    assert_eq!(found, [("s.bak", true), ("n.bak", false), ("t.bak", false), ("m.bak", false)]);
    place.pellucid(&["restore", "n.bak", "--to", "y.db"]).succeeded();
    back_up("n.bak --format");
    assert!(known(&place)[1].1, "both of its copies are gone");
    // Where the disk is another one and the name the same, nothing was overwritten.
    std::fs::rename(place.path("t.bak"), place.path("elsewhere.bak")).unwrap();
    back_up("t.bak");
    assert!(!known(&place)[2].1);
    // They are pruned like others.
    place.pellucid(&["history", "prune", "--older-than", "0", "--apply"]).succeeded();
    assert!(known(&place).is_empty());
}

#[test]
fn a_history_of_before_learns_what_is_gone() {
    let place = chain();
    history(&place).execute_batch("DROP TABLE pellucid_gone").unwrap();
    assert_eq!(backups(&place).len(), 2);
    place.pellucid(&["backup", "app.db", "--to", "full.bak", "--overwrite"]).succeeded();
    assert_eq!(
        known(&place),
        [
            ("full.bak".to_owned(), true),
            ("diff.bak".to_owned(), false),
            ("full.bak".to_owned(), false)
        ]
    );
}

#[test]
fn a_certificate_that_backups_need_is_not_dropped_by_the_way() {
    let place = chain();
    place.pellucid(&["cert", "create", "other"]).succeeded();
    place.pellucid(&["rewrap", "app.db", "--certificate", "other"]).succeeded();
    let refused = place.pellucid(&["cert", "drop", "pellucid"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("(15352)") && refused.stderr.contains("full.bak"),
        "{refused:?}"
    );
    place.pellucid(&["cert", "drop", "pellucid", "--force"]).succeeded();
    assert_ne!(place.pellucid(&["restore", "full.bak", "--to", "d.db"]).code, 0);
    place.pellucid(&["history"]).succeeded();
}

#[test]
fn a_killed_backup_leaves_a_history_that_opens() {
    let place = chain();
    for kill in 0..8u64 {
        let mut backup = place.command(PELLUCID);
        backup.args(["backup", "app.db", "--to", "k.bak", "--overwrite", "--quiet"]);
        let mut backup = backup.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(kill * 4));
        backup.kill().unwrap();
        backup.wait().unwrap();
        assert!(backups(&place).len() >= 2);
    }
}
