//! The same actions by the programs: `pellucid`, and the `sqlite3` shell under `pellucid run`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pellucid_tests::processes::built;

use crate::act::{Action, Outcome};
use crate::oracle::{Class, Verdict};
use crate::rows::{READS, WRITE};
use crate::world::World;

fn pellucid(words: &[&str]) -> Output {
    Command::new(built("pellucid"))
        .args(words)
        .env("PELLUCID_LIB", built("libpellucid.so"))
        .output()
        .unwrap()
}

/// Looks at it with `status --check`, which changes nothing, and calls nothing well whose header has to be refused.
///
/// # Errors
/// What it said.
pub fn status(path: &Path, verdict: &Verdict) -> Result<(), String> {
    let looked = pellucid(&["status", "--check", path.to_str().unwrap()]);
    let calls_well = verdict.class == Class::Refused && verdict.by_header;
    match looked.status.code() {
        None | Some(101) => Err(format!("`status` ended with {looked:?}")),
        Some(0) if calls_well => Err(format!("`status` calls it well: {looked:?}")),
        Some(_) => Ok(()),
    }
}

/// Does it.
pub fn act(world: &World, path: &Path, action: Action, secret: &str) -> Outcome {
    let run = pellucid;
    let name = path.to_str().unwrap();
    let reads: Vec<String> = READS.iter().map(|sql| format!("{sql};")).collect();
    let read = |path: &str, first: &str| {
        let script = format!("{first}{}", reads.concat());
        run(&["run", "--", "/usr/bin/sqlite3", "-batch", "-bail", path, &script])
    };
    match action {
        Action::Read => said(&read(name, ""), true),
        Action::Write | Action::Idle => {
            said(&read(name, &format!("{};", WRITE.replace('?', &format!("'{secret}'")))), true)
        }
        Action::Checkpoint => {
            let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
            let first = said(&run(&["run", "--", "/usr/bin/sqlite3", "-bail", name, sql]), false);
            match first.error {
                Some(_) => first,
                None => said(&read(name, ""), true),
            }
        }
        Action::Check => {
            let mut outcome = said(&run(&["check", name]), false);
            if let Some((_, text)) = outcome.error.take() {
                // Another current database is told, and has no damage.
                let is_told = text.contains(": clean: ") && !text.contains("-wal-lost-");
                if !is_told {
                    outcome.damage.push(text);
                }
            }
            outcome
        }
        Action::Backup => {
            let (media, to) =
                (world.folder("out").join("case.bak"), world.folder("out").join("case.db"));
            let (media, to) = (media.to_str().unwrap(), to.to_str().unwrap());
            let mut notices = Vec::new();
            for words in [&["backup", name, "--to", media][..], &["restore", media, "--to", to]] {
                let made = said(&run(words), false);
                if made.error.is_some() {
                    return made;
                }
                notices.extend(made.notices);
            }
            let outcome = said(&read(to, ""), true);
            Outcome { notices, ..outcome }
        }
    }
}

/// The same with media: `verify --open`, or a restore that is read.
pub fn act_on_media(media: &[PathBuf], restore: Option<(&Path, bool)>) -> Outcome {
    let names: Vec<&str> = media.iter().map(|path| path.to_str().unwrap()).collect();
    let Some((to, replaces)) = restore else {
        return said(&pellucid(&[&["verify", "--open"], &names[..]].concat()), false);
    };
    let to = to.to_str().unwrap();
    let replace: &[&str] = if replaces { &["--replace"] } else { &[] };
    let words = [&["restore", "--to", to], replace, &["--"], &names[..]].concat();
    let made = said(&pellucid(&words), false);
    if made.error.is_some() {
        return made;
    }
    let reads: Vec<String> = READS.iter().map(|sql| format!("{sql};")).collect();
    let read = ["run", "--", "/usr/bin/sqlite3", "-batch", "-bail", to, &reads.concat()];
    said(&pellucid(&read), true)
}

fn said(output: &Output, has_rows: bool) -> Outcome {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let error = match output.status.code() {
        Some(0) => None,
        // A program that panicked or was killed has refused nothing.
        None | Some(101) => {
            Some((rusqlite::ffi::SQLITE_ERROR, format!("{:?}: {errors}", output.status)))
        }
        Some(_) if errors.contains("no such table") => {
            Some((rusqlite::ffi::SQLITE_ERROR, errors.clone()))
        }
        Some(_) => Some((0, format!("{out}{errors}"))),
    };
    Outcome {
        lines: if has_rows { lines(&out) } else { Vec::new() },
        error,
        notices: lines(&errors),
        damage: Vec::new(),
    }
}
