//! Goal: whoever looks at a chain of backups sees what it leads to, and from when to when it leads nowhere.
//!
//! Method: `history --timeline` over a real chain (full, differential, logs), with a log set taken away, another recovery fork, files
//! that are no backups, and nothing; its page is looked at as text.

use serde_json::Value;

use crate::log_backups::{facts, second, sql};
use crate::support::Place;

fn made(place: &Place, options: &[&str], name: &str) {
    let words = [&["backup", "app.db"], options, &["--to", name]].concat();
    place.pellucid(&words).succeeded();
}

fn all(told: &Value, field: &str) -> Vec<Value> {
    told["timeline"][0][field].as_array().unwrap().clone()
}

fn uses(told: &Value) -> Vec<String> {
    all(told, "sets").iter().map(|set| set["use"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_chain_is_drawn_with_its_gap_its_forks_and_what_cannot_be_read() {
    let place = Place::new();
    second(&place);
    facts(&place, "recovery app.db full");
    let empty = place.pellucid(&["history", "--timeline", "app.db"]);
    assert!(empty.code == 0 && empty.stdout.contains("No backup of a chain"), "{}", empty.all());
    std::fs::create_dir(place.path("d")).unwrap();
    made(&place, &[], "d/full.bak");
    for name in ["d/1.bak", "d/2.bak", "d/3.bak"] {
        sql(&place, "DELETE FROM t WHERE rowid = (SELECT max(rowid) FROM t)");
        made(&place, &["--log"], name);
    }
    made(&place, &["--differential", "--base", "d/full.bak"], "d/diff.bak");
    let whole = facts(&place, "history --timeline app.db");
    assert_eq!(uses(&whole), ["restore"; 5], "{whole}");
    assert!(all(&whole, "cannot_be_restored").is_empty(), "{whole}");
    let points = facts(&place, "history --points app.db");
    let last = &points["forks"][0]["ranges"][0]["to_lsn"];
    assert_eq!(&all(&whole, "can_be_restored")[0]["to_lsn"], last, "{points}");
    // A commit that no log backup has is what the machine's loss costs.
    sql(&place, "DELETE FROM t WHERE rowid = (SELECT max(rowid) FROM t)");
    let drawn = place.pellucid(&["history", "--timeline", "app.db"]);
    assert!(drawn.stdout.contains("are lost if this machine is gone now"), "{}", drawn.all());
    let lanes: Vec<_> = drawn.stdout.lines().take(7).collect();
    assert!(lanes.iter().all(|line| line.is_ascii() && line.len() <= 80), "{lanes:#?}");
    assert!(lanes[1].starts_with("full") && lanes[1].contains('F'), "{lanes:#?}");
    assert!(lanes[2].contains('D') && lanes[3].contains('='), "{lanes:#?}");
    assert!(lanes[4].contains('#') && !lanes[4].contains('!'), "{lanes:#?}");
    // What the archiver would remove: nothing before the full backup, which is the last one.
    assert!(all(&whole, "sets").iter().all(|set| set["archive_keep_removes"] == false));
    std::thread::sleep(std::time::Duration::from_secs(1));
    made(&place, &[], "d/again.bak");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let kept = facts(&place, "history --timeline ./d --keep 1s");
    let goes = |set: &&Value| set["archive_keep_removes"] == true;
    let goes: Vec<_> =
        all(&kept, "sets").iter().filter(goes).map(|set| set["type"].clone()).collect();
    assert_eq!(goes, ["full", "log", "log", "log"], "{kept}");
    // Without the second log set nothing leads to the commits of the third one.
    std::fs::remove_file(place.path("d/2.bak")).unwrap();
    std::fs::remove_file(place.path("d/diff.bak")).unwrap();
    let gap = facts(&place, "history --timeline ./d");
    let holes = all(&gap, "cannot_be_restored");
    assert_eq!(holes.len(), 1, "{gap}");
    let first = all(&gap, "can_be_restored");
    assert_eq!(holes[0]["behind_lsn"], first[0]["to_lsn"], "{gap}");
    assert_eq!(holes[0]["before_lsn"], first[1]["from_lsn"], "{gap}");
    assert!(uses(&gap).contains(&"none: sets before it are missing".to_owned()), "{gap}");
    // Another fork, a file that is no backup and half of one.
    facts(&place, "recovery app.db simple");
    facts(&place, "recovery app.db full");
    made(&place, &[], "d/other.bak");
    std::fs::write(place.path("d/junk.bak"), "<b>junk</b>").unwrap();
    let bytes = std::fs::read(place.path("d/3.bak")).unwrap();
    std::fs::write(place.path("d/half.bak"), &bytes[..bytes.len() / 2]).unwrap();
    let words = ["--json", "history", "--timeline", "./d", "--html", "page.html"];
    let said = place.pellucid(&words);
    let told: Value = serde_json::from_str(said.stdout.trim()).unwrap();
    assert_eq!((said.code, told["timeline"].as_array().unwrap().len()), (1, 2), "{}", said.all());
    assert!(said.stderr.contains("junk.bak`: it is left out"), "{}", said.all());
    assert!(said.stderr.contains("half.bak`: it is left out"), "{}", said.all());
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 2, "{page}");
    assert!(page.contains("class=\"gap\"") && page.contains("can be restored"), "{page}");
    for never in ["<script", "http", "{{"] {
        assert!(!page.contains(never), "{never}: {page}");
    }
}
