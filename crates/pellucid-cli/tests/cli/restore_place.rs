//! Goal: without MOVE no backup says where RESTORE DATABASE makes its file, unless somebody who has a private key of this
//! instance answers for it.
//!
//! Method: sets by strangers, in clear and under a passphrase, that say of their database that it lay where a file of theirs
//! would do harm; what RESTORE makes is looked for everywhere.

use crate::support::{said, said_with, Place, Said, PELLUCID};

fn sql(place: &Place, script: &str) -> Said {
    said_with(place.command(PELLUCID).args(["sql", "-b"]), &format!("{script}\nGO\n"))
}

/// A backup by a stranger of a database that lay at `path`, which is gone then.
fn theirs(place: &Place, path: &str, more: &[&str]) {
    place.sqlite3(path, "CREATE TABLE t(a); INSERT INTO t VALUES (1)").succeeded();
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_HOME", place.path("evil"));
    let words = ["backup", path, "--to", "customer.bak", "--format"];
    said(command.args(words).args(more)).succeeded();
    std::fs::remove_file(place.path(path)).unwrap();
}

fn restore(place: &Place, name: &str, with: &str) -> Said {
    let bak = place.path("customer.bak");
    sql(place, &format!("RESTORE DATABASE {name} FROM DISK = '{}'{with}", bak.display()))
}

/// Files of this place that are databases, but for the instance's own.
fn databases(place: &Place) -> Vec<String> {
    let home = place.path("");
    let is_database = |path: &std::path::Path| {
        std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3"))
    };
    let names = place.snapshot().into_keys().filter(|path| is_database(path));
    names.map(|path| path.strip_prefix(&home).unwrap().display().to_string()).collect()
}

fn scene() -> Place {
    let place = Place::new();
    sql(&place, "SELECT 1 AS made").succeeded();
    for folder in ["victim/.ssh", "srv", "evil"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
    }
    place
}

#[test]
fn what_nobody_here_answers_for_goes_into_the_folder_for_data() {
    let place = scene();
    place.secret("passphrase", b"known to both");
    let sealed = ["--passphrase-file", "passphrase"];
    for (path, more, made) in [
        ("victim/.ssh/authorized_keys", &[][..], "db0.db"),
        ("srv/app.db", &[], "db1.db"),
        ("srv/.profile", &[], "db2.db"),
        ("srv/two\nlines", &[], "db3.db"),
        ("srv/db0.db-journal", &[], "db4.db"),
        ("srv/db0.db-wal", &[], "db5.db"),
        ("srv/db0.db-pellucid-of", &[], "db6.db"),
        ("srv/under.db", &sealed, "db7.db"),
    ] {
        let name = format!("db{}", databases(&place).len());
        theirs(&place, path, more);
        let before = databases(&place);
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_PASSPHRASE_FILE", place.path("passphrase")).args(["sql", "-b"]);
        let bak = place.path("customer.bak");
        let script = format!("RESTORE DATABASE {name} FROM DISK = '{}'\nGO\n", bak.display());
        let told = said_with(&mut command, &script);
        let mut after = databases(&place);
        after.retain(|path| !before.contains(path));
        assert_eq!(after.len(), 1, "{path:?}: {told:?}");
        assert!(
            after[0].starts_with("keys/") && after[0].ends_with(&format!("/{made}")),
            "{after:?}"
        );
        assert!(told.all().contains(&after[0]) && told.all().contains("WITH MOVE"), "{told:?}");
    }
}

#[test]
fn no_file_that_is_there_is_taken_for_its_place_not_even_with_replace() {
    let place = scene();
    theirs(&place, "srv/app.db", &[]);
    restore(&place, "one", "").succeeded();
    let one = databases(&place).into_iter().find(|path| path.ends_with("/one.db")).unwrap();
    let there = one.replace("one.db", "two.db");
    std::fs::copy(place.path(&one), place.path(&there)).unwrap();
    let before = place.snapshot();
    for with in ["", " WITH REPLACE"] {
        let refused = restore(&place, "two", with);
        assert!(refused.code == 1 && refused.all().contains("Use WITH MOVE"), "{refused:?}");
    }
    let changed = place.snapshot();
    let data = |name: &std::path::PathBuf| name.ends_with("two.db");
    assert!(before
        .iter()
        .filter(|(name, _)| data(name))
        .eq(changed.iter().filter(|(name, _)| data(name))));
    // MOVE is somebody's word.
    let to = place.path("srv/moved.db");
    restore(&place, "two", &format!(" WITH MOVE 'app' TO '{}'", to.display())).succeeded();
    assert!(to.exists() && !place.path("srv/app.db").exists());
}

#[test]
fn under_a_certificate_of_this_instance_it_goes_where_it_lay() {
    let place = scene();
    place.sealed("srv/app.db", &[]);
    place.pellucid(&["backup", "srv/app.db", "--to", "customer.bak"]).succeeded();
    std::fs::remove_file(place.path("srv/app.db")).unwrap();
    restore(&place, "again", "").succeeded();
    assert!(place.path("srv/app.db").exists());
}

#[test]
fn no_database_gets_the_name_of_a_part_of_another() {
    let place = scene();
    theirs(&place, "srv/app.db", &[]);
    let ends = ["-journal", "-wal", "-shm", "-pellucid", "-pellucid-of", "-mj0123AF9F0"];
    let names = ends.map(|end| format!("srv/other.db{end}"));
    for name in &names {
        let to = place.path(name);
        let refused = restore(&place, "one", &format!(" WITH MOVE 'app' TO '{}'", to.display()));
        assert!(refused.code == 1 && refused.all().contains("a part of another"), "{refused:?}");
        let made = sql(
            &place,
            &format!("CREATE DATABASE one ON (NAME = one, FILENAME = '{}')", to.display()),
        );
        assert!(made.code == 1 && made.all().contains("a part of another"), "{made:?}");
        for more in [&[][..], &["--replace"]] {
            let words = [&["restore", "customer.bak", "--to", name][..], more].concat();
            let refused = place.pellucid(&words);
            let told = refused.all().contains("a part of another");
            assert!(refused.code != 0 && refused.code != 3 && told, "{refused:?}");
        }
        assert!(to.symlink_metadata().is_err(), "{name}");
    }
}
