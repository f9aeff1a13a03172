//! Goal: a backup that is stopped between its media and the history, or whose history cannot be written, is this instance's
//! own afterwards: neither a fork nor without the signature that it never had; and one that came to nothing lets nothing
//! else pass for it.
//!
//! Method: kills before each change to the instance's directory (tests/tools/killat.c) while a set is made in a new file and
//! behind another one, then a backup behind it; histories that refuse the set; rows as a killed backup leaves them. What a
//! machine without that history says is asked as well.

use std::path::Path;

use serde_json::json;

use crate::support::{history, said, Place, Said, PELLUCID};

fn back_up(place: &Place, words: &str) -> Said {
    place.pellucid(&[&["backup", "app.db"], &words.split(' ').collect::<Vec<_>>()[..]].concat())
}

/// Nothing speaks against any set of these media, here and where the history is not.
#[track_caller]
fn nothing_is_told(place: &Place, media: &str, what: &str) {
    let verify = ["verify", media, "--json"];
    let stranger = place.path("stranger");
    if !stranger.exists() {
        said(
            std::process::Command::new("cp").arg("-a").args([place.path("keys"), stranger.clone()]),
        )
        .succeeded();
        let _ = std::fs::remove_file(stranger.join("msdb.db"));
    }
    let elsewhere = said(place.command(PELLUCID).env("PELLUCID_HOME", stranger).args(verify));
    for said in [place.pellucid(&verify), elsewhere] {
        assert_eq!(said.code, 0, "{what}: {said:?}");
        let facts = said.stdout.lines().map(serde_json::from_str::<serde_json::Value>);
        for facts in facts.map(Result::unwrap) {
            assert_eq!(facts["chain"], json!([]), "{what}: {said:?}");
        }
    }
}

#[test]
fn a_backup_killed_at_any_change_to_the_instance_is_no_fork() {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/killat.c");
    let model = Place::new();
    model.sealed("app.db", &[]);
    let preload = model.compile_library(&tool, "killat.so");
    back_up(&model, "--to a.bak").succeeded();
    for (to, next) in [("b.bak", "c.bak"), ("a.bak --append", "a.bak --append")] {
        let (mut at, mut on_media) = (0, 0);
        loop {
            at += 1;
            let what = format!("--to {to}, killed at {at}");
            let place = Place::new();
            model.copy_to(&place);
            let mut command = place.command(PELLUCID);
            command.env("LD_PRELOAD", &preload).env("KILL_DIR", place.path("keys"));
            command.env("KILL_AT", at.to_string()).args(["backup", "app.db", "--to"]);
            let killed = said(command.args(to.split(' ')));
            let media = to.split(' ').next().unwrap();
            let shown = place.pellucid(&["header", media, "--json"]);
            let sets = shown.stdout.matches("\"backup_set\"").count();
            let is_there = sets == 1 + usize::from(media == "a.bak");
            on_media += u32::from(is_there && killed.code != 0);
            assert!(is_there || killed.code != 0, "{what}: {killed:?}");
            // What comes to nothing is only looked at now and then.
            if is_there || at % 8 == 0 {
                back_up(&place, &format!("--to {next}")).succeeded();
                for media in [media, next.split(' ').next().unwrap()] {
                    if place.path(media).exists() {
                        nothing_is_told(&place, media, &what);
                    }
                }
            }
            if killed.code == 0 {
                break;
            }
        }
        println!("--to {to}: {at} changes, {on_media} kills with the set on its media");
        assert!(on_media > 3, "{to}: {on_media}");
    }
}

const REFUSE: &str =
    "CREATE TRIGGER refuse BEFORE INSERT ON backupset BEGIN SELECT RAISE(ABORT, 'for the test'); END";

#[test]
fn a_backup_that_the_history_refuses_is_no_fork_and_needs_no_signature() {
    for more in ["", " --unsigned", " --passphrase-file secret"] {
        let place = Place::new();
        place.sealed("app.db", &[]);
        place.secret("secret", b"a passphrase of some length");
        back_up(&place, "--to a.bak").succeeded();
        history(&place).execute(REFUSE, []).unwrap();
        let unwritten = back_up(&place, &format!("--to b.bak{more}"));
        assert!(unwritten.code == 0 && unwritten.stderr.contains("not written"), "{unwritten:?}");
        history(&place).execute("DROP TRIGGER refuse", []).unwrap();
        let verify = ["verify", "b.bak"];
        assert_eq!(place.pellucid(&verify).code, 0, "{more}: {:?}", place.pellucid(&verify));
        back_up(&place, "--to c.bak").succeeded();
        let said = place.pellucid(&verify);
        assert!(said.code == 0 && !said.all().contains("fork"), "{more}: {said:?}");
        // It is known once it is read.
        let rebuild = [
            &["history", "rebuild", "b.bak"][..],
            match more.contains("secret") {
                true => &["--passphrase-file", "secret"],
                false => &[],
            },
        ]
        .concat();
        place.pellucid(&rebuild).succeeded();
        let known = place.pellucid(&["history", "--json"]).succeeded();
        assert!(known.matches("\"app\"").count() == 3 && known.contains("b.bak"), "{known}");
        assert_eq!(place.pellucid(&verify).code, 0, "{more}");
    }
}

#[test]
fn a_backup_that_fails_is_forgotten() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    std::fs::create_dir(place.path("full")).unwrap();
    back_up(&place, "--to full/a.bak").succeeded();
    let count = |table: &str| -> i64 {
        let query = format!("SELECT count(*) FROM {table}");
        history(&place).query_row(&query, [], |row| row.get(0)).unwrap()
    };
    let trigger = "CREATE TABLE seen(at);
        CREATE TRIGGER told AFTER INSERT ON pellucid_begun BEGIN INSERT INTO seen VALUES (1); END";
    history(&place).execute_batch(trigger).unwrap();
    let library = place.compile_preload("disk_full.c");
    for words in ["--to full/b.bak", "--to full/a.bak --append"] {
        history(&place).execute("DELETE FROM seen", []).unwrap();
        // Until there is room for all of it.
        for room in (0..).step_by(200) {
            let mut command = place.command(PELLUCID);
            command.env("LD_PRELOAD", &library).env("ROOM_PATH", place.path("full/"));
            command.env("ROOM_BYTES", room.to_string()).args(["backup", "app.db"]);
            let failed = said(command.args(words.split(' ')));
            if failed.code == 0 {
                break;
            }
            assert!(failed.code == 1 && failed.stderr.contains("No space left"), "{failed:?}");
            assert_eq!(count("pellucid_begun"), 0, "{words}: {room}");
            let sets = count("backupset");
            assert_eq!(count("pellucid_manifest"), sets, "{words}: {room}");
        }
        assert!(count("seen") > 2, "{words}: none failed in its manifest");
    }
    back_up(&place, "--to full/c.bak").succeeded();
    nothing_is_told(&place, "full/c.bak", "behind what failed");
}

/// A copy of the instance on another machine makes a set without a signature, and one of its own.
#[test]
fn a_backup_that_came_to_nothing_stands_for_no_other() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    back_up(&place, "--to a.bak").succeeded();
    let other = place.path("other-keys");
    said(std::process::Command::new("cp").arg("-a").args([place.path("keys"), other.clone()]))
        .succeeded();
    let elsewhere = |words: &str| {
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_HOME", &other).args(["backup", "app.db", "--to"]);
        said(command.args(words.split(' '))).succeeded();
    };
    elsewhere("signed.bak");
    elsewhere("unsigned.bak --unsigned");
    // As a backup without a signature leaves it that was killed before its manifest was on the media, and one with a
    // signature behind the same set.
    history(&place)
        .execute_batch(
            "INSERT INTO pellucid_manifest SELECT 'aa', chain, 'aa', manifest, NULL, 1 FROM pellucid_manifest;
             INSERT INTO pellucid_manifest SELECT 'bb', chain, 'bb', manifest, signer, 1 FROM pellucid_manifest WHERE
             backup_set_uuid <> 'aa';
             INSERT INTO pellucid_begun VALUES ('aa', 1, '/nowhere/a.bak'), ('bb', 1, '/nowhere/b.bak');",
        )
        .unwrap();
    let said = place.pellucid(&["verify", "unsigned.bak"]);
    assert!(said.code == 1 && said.stderr.contains("it is NOT signed"), "{said:?}");
    let said = place.pellucid(&["verify", "signed.bak"]);
    assert!(said.code == 0 && !said.all().contains("fork"), "no other set is there: {said:?}");
    back_up(&place, "--to b.bak").succeeded();
    nothing_is_told(&place, "b.bak", "behind what came to nothing");
    let said = place.pellucid(&["verify", "signed.bak"]);
    assert!(said.code == 4 && said.all().contains("a fork"), "{said:?}");
}
