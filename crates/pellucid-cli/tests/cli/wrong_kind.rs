//! Goal: a wrong name is a wrong name: no damage, no reason to restore anything, no hint that leads nowhere.
//!
//! Method: every command that takes a database gets files that are none, every command that takes a backup gets files that
//! are none. Each ends with 1, names the file and what it is, and leaves all files as they were. Then damage of real media:
//! each of their first 64 bytes flipped, their header torn, their first half sector gone: that is damage, with 3.

use crate::support::{edit, Place};

const TAKE_DATABASE: &[&[&str]] = &[
    &["backup", "FILE", "--to", "new.bak"],
    &["check", "FILE"],
    &["encrypt", "FILE"],
    &["decrypt", "FILE"],
    &["rekey", "FILE"],
    &["rewrap", "FILE", "--certificate", "pellucid"],
    &["upgrade", "FILE"],
    &["salvage", "FILE", "--to", "new.db"],
    &["protector", "list", "FILE"],
    &["scan", "status", "FILE"],
    &["scan", "verify", "FILE"],
    &["accept", "FILE"],
];

const TAKE_BACKUP: &[&[&str]] = &[
    &["verify", "FILE"],
    &["verify", "app.bak", "FILE"],
    &["header", "FILE"],
    &["files", "FILE"],
    &["label", "FILE"],
    &["restore", "FILE", "--to", "new.db"],
    &["restore", "app.bak", "FILE", "--to", "new.db"],
    &["history", "rebuild", "FILE"],
];

fn files() -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.plain("plain.db");
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    std::fs::write(place.path("list.txt"), "a shopping list\n").unwrap();
    std::fs::write(place.path("noise"), [b"\x1b\xc3noise".as_slice(); 5000].concat()).unwrap();
    std::fs::write(place.path("empty"), "").unwrap();
    place
}

#[test]
fn no_other_file_is_called_a_damaged_database_or_backup() {
    let place = files();
    let mut wrong = Vec::new();
    for (commands, names) in [
        (
            TAKE_DATABASE,
            &[
                ("app.bak", "a backup, not a database"),
                ("list.txt", "neither"),
                ("noise", "neither"),
            ][..],
        ),
        (
            TAKE_BACKUP,
            &[
                ("app.db", "no backup of Pellucid's, but a database"),
                ("plain.db", "no backup of Pellucid's, but a database"),
                ("list.txt", "no backup of Pellucid's"),
                ("noise", "no backup of Pellucid's"),
                ("empty", "it is empty"),
            ],
        ),
    ] {
        for command in commands {
            for (name, says) in names {
                let arguments: Vec<_> =
                    command.iter().map(|word| if *word == "FILE" { name } else { *word }).collect();
                let before = place.snapshot();
                let told = place.pellucid(&arguments);
                let names_it = told.stderr.contains(&format!("`{name}`"));
                let is_right = told.code == 1 && names_it && told.stderr.contains(says);
                let hints =
                    !told.stderr.contains("restore a backup;") && told.stderr.contains("hint");
                if !is_right || !hints || place.snapshot() != before {
                    wrong.push(format!("{arguments:?}: {} {}", told.code, told.stderr));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn damage_of_a_backups_first_bytes_is_damage() {
    let place = files();
    let whole = std::fs::read(place.path("app.bak")).unwrap();
    let cases = (0..64).step_by(7).map(|at| ("flipped", at..at + 1)).chain([
        ("torn", 16..4096),
        ("gone", 0..256),
        ("gone", 0..4096),
    ]);
    for (what, bytes) in cases {
        std::fs::write(place.path("app.bak"), &whole).unwrap();
        edit(&place.path("app.bak"), |medium| {
            medium[bytes.clone()].iter_mut().for_each(|byte| *byte ^= 0x55);
        });
        for command in [&["verify", "app.bak"][..], &["restore", "app.bak", "--to", "new.db"]] {
            let told = place.pellucid(command);
            assert_eq!(told.code, 3, "{what} {bytes:?} {command:?}: {told:?}");
        }
    }
}
