//! Goal: the history knows every backup and restore of the instance, nothing depends on it, and it forgets whole chains.
//!
//! Method: the program from outside; the tables read with SQL; the history lost, damaged and made again from media; media on
//! a disk that is not mounted, in a store, and locked as a backup locks them.

use std::process::Stdio;

use pellucid_backup::set::lock_media;
use serde_json::Value;

use crate::support::{at_a_terminal, edit, history, said_with, Place, Said, PELLUCID};

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
    let said = place.pellucid(&[&prune[..], &["--apply"]].concat());
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("diff.bak"), "{said:?}");
    assert!(place.path("diff.bak").exists());
    assert!(place.path("full.bak").exists(), "what stays is based on it");
    assert_eq!(backups(&place).len(), 4);
    std::fs::remove_file(place.path("diff.bak")).unwrap();
    let done = json(&place, &[&prune[..], &["--missing", "--apply"]].concat());
    assert_eq!(done["files"], serde_json::json!([place.path("full.bak")]), "{done}");
    assert!(!place.path("full.bak").exists() && place.path("next.bak").exists());
    let left = backups(&place);
    assert_eq!(left.len(), 2, "{left:?}");
    let base = &left[0]["backup_set_uuid"];
    assert_eq!(&left[1]["differential_base_guid"], base);
    place.pellucid(&["restore", "next.bak", "--to", "c.db"]).succeeded();
}

/// What stays for being the last that there is has a test of its own.
const PRUNE: [&str; 7] = ["history", "prune", "--older-than", "0", "--files", "--last", "app"];

fn prune(place: &Place, more: &[&str]) -> (Said, Value) {
    let said = place.pellucid(&[&["--json"], &PRUNE[..], more].concat());
    let facts = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    (said, facts)
}

/// Nothing goes, of `sets` that are known, because of a file; the dry run says the same.
#[track_caller]
fn nothing_goes(place: &Place, sets: usize, because_of: &str) {
    for more in [&[][..], &["--apply"]] {
        let before = place.snapshot().into_iter().filter(|(path, _)| path.ends_with(".bak"));
        let before: Vec<_> = before.collect();
        let (said, facts) = prune(place, more);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.stderr.contains(because_of), "{said:?}");
        assert_eq!(facts["sets"], serde_json::json!([]), "{facts}");
        assert_eq!(facts["files"], serde_json::json!([]), "{facts}");
        assert_eq!(facts["kept"].as_array().unwrap().len(), sets, "{facts}");
        assert!(facts["stuck"][0]["file"].as_str().unwrap().contains(because_of), "{facts}");
        let after = place.snapshot().into_iter().filter(|(path, _)| path.ends_with(".bak"));
        assert_eq!(before, after.collect::<Vec<_>>());
        assert_eq!(backups(place).len(), sets, "{more:?}");
    }
}

#[test]
fn sets_whose_files_stay_are_not_forgotten_nor_what_they_are_based_on() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    std::fs::create_dir(place.path("disk")).unwrap();
    place.pellucid(&["backup", "app.db", "--to", "disk/full.bak"]).succeeded();
    let arguments = ["--to", "diff.bak", "--differential", "--base", "disk/full.bak"];
    place.pellucid(&[&["backup", "app.db"], &arguments[..]].concat()).succeeded();
    // A disk that is not mounted.
    std::fs::rename(place.path("disk"), place.path("away")).unwrap();
    nothing_goes(&place, 2, "disk/full.bak");
    let said = place.pellucid(&[&PRUNE[..], &["--missing", "--apply"]].concat());
    assert!(said.code == 1 && said.stderr.contains("disk/full.bak"), "{said:?}");
    // Nor is it where the directory is the one that it is mounted on.
    std::fs::create_dir(place.path("disk")).unwrap();
    nothing_goes(&place, 2, "disk/full.bak");
    std::fs::remove_dir(place.path("disk")).unwrap();
    std::fs::rename(place.path("away"), place.path("disk")).unwrap();
    // A set that the history does not know, behind the one that it does.
    place
        .pellucid(&["backup", "app.db", "--to", "diff.bak", "--append", "--copy-only"])
        .succeeded();
    let sql = "DELETE FROM backupset WHERE position = 2";
    assert_eq!(history(&place).execute(sql, []).unwrap(), 1);
    nothing_goes(&place, 2, "diff.bak");
    place.pellucid(&["history", "rebuild", "diff.bak"]).succeeded();
    let (said, facts) = prune(&place, &["--apply"]);
    assert_eq!((said.code, facts["files"].as_array().unwrap().len()), (0, 2), "{said:?}");
    assert!(backups(&place).is_empty());
    assert!(!place.path("disk/full.bak").exists() && !place.path("diff.bak").exists());

    // One that somebody removed is not in the way, if he says so.
    place.pellucid(&["backup", "app.db", "--to", "disk/full.bak"]).succeeded();
    std::fs::remove_file(place.path("disk/full.bak")).unwrap();
    nothing_goes(&place, 1, "disk/full.bak");
    let alone = place.pellucid(&["history", "prune", "--older-than", "0", "--missing"]);
    assert!(alone.code == 2 && alone.stderr.contains("--files"), "{alone:?}");
    let (said, facts) = prune(&place, &["--missing", "--apply"]);
    assert!(said.code == 0 && facts["stuck"] == serde_json::json!([]), "{said:?}");
    assert!(backups(&place).is_empty());

    // Nor is one that was overwritten: what is under its name is another's.
    place.pellucid(&["backup", "app.db", "--to", "a.bak"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "a.bak", "--format"]).succeeded();
    let (said, facts) = prune(&place, &["--apply"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(facts["files"], serde_json::json!([place.path("a.bak")]));
    assert!(backups(&place).is_empty());

    // An object in a store; without `--files` it is forgotten.
    let url = format!("file://{}", place.path("object.bak").display());
    place.pellucid(&["backup", "app.db", "--to", &url]).succeeded();
    nothing_goes(&place, 1, "object.bak");
    place.pellucid(&["history", "prune", "--older-than", "0", "--apply"]).succeeded();
    assert!(backups(&place).is_empty() && place.path("object.bak").exists());

    // Where standard output went nobody knows; the device that keeps nothing has no file.
    let mut command = place.command("/bin/sh");
    command.args(["-c", "exec \"$0\" backup app.db --to - >piped.bak", PELLUCID]);
    said_with(&mut command, "").succeeded();
    nothing_goes(&place, 1, "-");
    place.pellucid(&["history", "prune", "--older-than", "0", "--apply"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "NUL"]).succeeded();
    let (said, facts) = prune(&place, &["--apply"]);
    assert!(said.code == 0 && facts["stuck"] == serde_json::json!([]), "{said:?}");
    assert!(backups(&place).is_empty());
}

#[test]
fn what_goes_is_shown_before_somebody_is_asked() {
    let place = chain();
    let words = PRUNE.join(" ") + " --apply --quiet";
    let before = place.snapshot();
    let told = at_a_terminal(&place, &words, "n").all();
    let (shown, _) = told.split_once("[y/N]").unwrap_or_else(|| panic!("{told}"));
    for name in ["full app", "differential app", "/full.bak", "/diff.bak", "Remove 2 files"] {
        assert!(shown.contains(name), "{name}: {told}");
    }
    assert_eq!(place.snapshot(), before);
    at_a_terminal(&place, &words, "y");
    assert!(backups(&place).is_empty() && !place.path("full.bak").exists());
}

#[test]
fn an_error_behind_the_removal_says_which_files_are_gone() {
    let place = chain();
    let refuse = "CREATE TRIGGER refuse BEFORE DELETE ON backupset BEGIN SELECT RAISE(ABORT, 'for the test'); END";
    history(&place).execute(refuse, []).unwrap();
    let said = place.pellucid(&[&PRUNE[..], &["--apply"]].concat());
    for told in ["for the test", "/full.bak`", "/diff.bak`", "`--missing`"] {
        assert!(said.code == 1 && said.stderr.contains(told), "{told}: {said:?}");
    }
    assert!(!place.path("full.bak").exists() && !place.path("diff.bak").exists());
    assert_eq!(backups(&place).len(), 2);
    history(&place).execute("DROP TRIGGER refuse", []).unwrap();
    let (said, _) = prune(&place, &["--missing", "--apply"]);
    assert!(said.code == 0 && backups(&place).is_empty(), "{said:?}");
}

#[test]
fn files_that_hold_what_stays_are_forgotten_in_no_part() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["backup", "app.db", "--to", "a.bak"]).succeeded();
    place
        .pellucid(&["backup", "app.db", "--to", "a.bak", "--append", "--retain-days", "9"])
        .succeeded();
    let (said, facts) = prune(&place, &["--apply"]);
    assert_eq!((said.code, &facts["sets"]), (0, &serde_json::json!([])), "{said:?}");
    assert_eq!(backups(&place).len(), 2);
    // Once the last one expires, both go: none is unknown by then.
    history(&place).execute("UPDATE backupset SET expiration_date = NULL", []).unwrap();
    // The media know better than the history when it does.
    nothing_goes(&place, 2, "a.bak");
}

#[test]
fn files_that_a_backup_writes_to_are_not_pruned() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["backup", "app.db", "--to", "s.bak", "t.bak"]).succeeded();
    // What an append looks like that is under way: more than the last set, and the lock.
    let mut bytes = std::fs::read(place.path("t.bak")).unwrap();
    bytes.extend_from_slice(b"begun");
    std::fs::write(place.path("t.bak"), bytes).unwrap();
    let file = std::fs::File::open(place.path("t.bak")).unwrap();
    lock_media(&file).unwrap();
    let (said, facts) = prune(&place, &["--apply"]);
    assert!(said.code == 1 && said.stderr.contains("another backup"), "{said:?}");
    assert_eq!(facts["files"], serde_json::json!([]), "nor the other file of the set");
    assert!(place.path("s.bak").exists() && place.path("t.bak").exists());
    assert_eq!(backups(&place).len(), 1);
    // Whatever process another test is just starting has the file open, too.
    rustix::fs::flock(&file, rustix::fs::FlockOperation::Unlock).unwrap();
    drop(file);
    let (said, facts) = prune(&place, &["--apply"]);
    assert_eq!((said.code, facts["files"].as_array().unwrap().len()), (0, 2), "{said:?}");
    assert!(backups(&place).is_empty());
}

#[test]
fn the_longest_retention_protects() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    for days in ["100000", "5000000", "18446744073709551615", "-1"] {
        let said = place.pellucid(&["backup", "app.db", "--to", "a.bak", "--retain-days", days]);
        assert!(said.code == 2 && !place.path("a.bak").exists(), "{days}: {said:?}");
    }
    place.pellucid(&["backup", "app.db", "--to", "a.bak", "--retain-days", "99999"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "b.bak", "--expires", "9999-12-31"]).succeeded();
    let (said, facts) = prune(&place, &["--apply"]);
    assert!(said.code == 0 && facts["kept"].as_array().unwrap().len() == 2, "{said:?}");
    assert!(place.path("a.bak").exists() && place.path("b.bak").exists());
}

/// Names in the keyring's directory that are a history's.
fn histories(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("keys")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.contains("msdb")).collect();
    names.sort();
    names
}

#[test]
fn a_rebuild_that_fails_leaves_the_history() {
    let place = chain();
    let before = backups(&place);
    place.secret("password", b"a Pa55word of some length");
    let whole = std::fs::read(place.path("keys/msdb.db")).unwrap();
    let stays = |words: &[&str], told: &str| {
        let said = place.pellucid(&[&["history", "rebuild"], words].concat());
        assert!(said.code == 1 && said.stderr.contains(told), "{said:?}");
        assert_eq!(histories(&place), ["msdb.db"], "{said:?}");
    };
    // Master key closed: the keyring opens later.
    place.pellucid(&["key", "password", "add", "--password-file", "password"]).succeeded();
    place.pellucid(&["key", "close"]).succeeded();
    stays(&["full.bak"], "(15581)");
    assert!(!place.pellucid(&["history"]).stderr.contains("history rebuild"), "no remedy for this");
    place.pellucid(&["key", "open", "--password-file", "password"]).succeeded();
    assert_eq!(backups(&place), before);
    // Media that are not there, beside a history that is damaged.
    edit(&place.path("keys/msdb.db"), |bytes| bytes[..16384].fill(0x55));
    stays(&["full.bak", "fulll.bak"], "fulll.bak");
    std::fs::write(place.path("keys/msdb.db"), whole).unwrap();
    assert_eq!(backups(&place), before);
}

/// Who comes second finds the history of the first in the place of the lost one, and goes on with it.
#[test]
fn rebuilds_at_once_take_nothing_from_one_another() {
    let place = chain();
    for round in 0..3 {
        edit(&place.path("keys/msdb.db"), |bytes| bytes[..16384].fill(0x55));
        let rebuild = |media: &str| {
            let mut command = place.command(PELLUCID);
            command.args(["history", "rebuild", media]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let started: Vec<_> = ["full.bak", "diff.bak", "full.bak"].map(rebuild).into();
        for child in started {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "round {round}: {output:?}");
        }
        assert_eq!(backups(&place).len(), 2, "round {round}");
        let kept = histories(&place);
        assert_eq!(kept.len(), round + 2, "one more was set aside: {kept:?}");
    }
}

#[test]
fn a_history_set_aside_takes_no_name_and_no_side_file_stays() {
    let place = chain();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let taken: Vec<_> =
        (now..now + 600).map(|at| place.path(&format!("keys/msdb.db.{at}"))).collect();
    taken.iter().for_each(|path| std::fs::write(path, "another").unwrap());
    edit(&place.path("keys/msdb.db"), |bytes| bytes[..16384].fill(0x55));
    std::fs::write(place.path("keys/msdb.db-shm"), "of the damaged one").unwrap();
    let said = place.pellucid(&["history", "rebuild", "full.bak", "diff.bak"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(taken.iter().all(|path| std::fs::read(path).unwrap() == b"another"));
    let kept: Vec<_> = histories(&place).into_iter().filter(|name| name.contains("-1")).collect();
    assert!(kept.len() == 2 && kept[1] == format!("{}-shm", kept[0]), "{kept:?}");
    assert!(said.stderr.contains(&format!("{}`", kept[0])), "{said:?}");
    assert_eq!(backups(&place).len(), 2);
}

#[test]
fn a_rebuild_reads_media_wherever_they_are() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let url = format!("file://{}", place.path("object.bak").display());
    place.pellucid(&["backup", "app.db", "--to", &url]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "piped.bak"]).succeeded();
    let before = backups(&place);
    std::fs::remove_file(place.path("keys/msdb.db")).unwrap();
    place.pellucid(&["history", "rebuild", &url]).succeeded();
    assert_eq!(backups(&place), before[..1]);
    let mut command = place.command("/bin/sh");
    command.args(["-c", "exec \"$0\" history rebuild - <piped.bak", PELLUCID]);
    said_with(&mut command, "").succeeded();
    assert_eq!(backups(&place)[1]["backup_set_uuid"], before[1]["backup_set_uuid"]);
    // Where it lies is known better by its name than by standard input, whichever comes first.
    place.pellucid(&["history", "rebuild", "piped.bak"]).succeeded();
    assert_eq!(backups(&place)[1], before[1]);
    let mut command = place.command("/bin/sh");
    command.args(["-c", "exec \"$0\" history rebuild - <piped.bak", PELLUCID]);
    said_with(&mut command, "").succeeded();
    assert_eq!(backups(&place)[1], before[1]);
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
    place
        .pellucid(&["history", "prune", "--older-than", "0", "--last", "app", "--apply"])
        .succeeded();
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
    // Where nobody can tell, it is not dropped by the way either.
    let whole = std::fs::read(place.path("keys/msdb.db")).unwrap();
    edit(&place.path("keys/msdb.db"), |bytes| bytes[..16384].fill(0x55));
    let refused = place.pellucid(&["cert", "drop", "pellucid"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("which backups the certificate opens"),
        "{refused:?}"
    );
    std::fs::write(place.path("keys/msdb.db"), whole).unwrap();
    place.pellucid(&["cert", "show", "pellucid"]).succeeded();
    // Databases and backups: both are named.
    place.sealed("two.db", &["--certificate", "pellucid"]);
    let refused = place.pellucid(&["cert", "drop", "pellucid"]);
    for name in ["(33127)", "two.db", "full.bak"] {
        assert!(refused.code == 1 && refused.stderr.contains(name), "{name}: {refused:?}");
    }
    let dropped = place.pellucid(&["cert", "drop", "pellucid", "--force"]);
    for name in ["two.db", "full.bak", "diff.bak"] {
        assert!(dropped.code == 0 && dropped.stderr.contains(name), "{name}: {dropped:?}");
    }
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

/// Each service has its `data.db`.
#[test]
fn databases_of_one_name_are_told_apart() {
    let place = Place::new();
    for service in ["one", "two"] {
        std::fs::create_dir(place.path(service)).unwrap();
        let database = format!("{service}/data.db");
        place.sealed(&database, &[]);
        place.pellucid(&["backup", &database, "--to", &format!("{service}.bak")]).succeeded();
        let shown = place.pellucid(&["history"]).succeeded();
        assert_eq!(shown.contains("…/one/data.db"), service == "two", "{shown}");
    }
    let shown = place.pellucid(&["history"]).succeeded();
    assert!(shown.contains("…/two/data.db"), "{shown}");
    let known = backups(&place);
    assert_eq!(known[1]["database_name"], "data");
    assert_eq!(known[1]["physical_name"], place.path("two/data.db").to_str().unwrap());
    for columns in [80, 200] {
        let said = said_with(
            place.command("script").args([
                "-qec",
                &format!("stty cols {columns} rows 40; {PELLUCID} history"),
                "/dev/null",
            ]),
            "",
        );
        let lines: Vec<&str> = said.stdout.lines().map(str::trim_end).collect();
        for word in ["…/one/data.db", "…/two/data.db", "AES_256", "certificate"] {
            assert!(lines.iter().any(|line| line.contains(word)), "{columns}: {word} in {said:?}");
        }
        assert!(lines.iter().all(|line| line.chars().count() <= columns), "{columns}: {said:?}");
    }
}
