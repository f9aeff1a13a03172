//! Goal: `pellucid lab` is the lab's program, word for word, wherever both are; and a clear error where there is none.
//!
//! Method: the programs of this build, and copies of `pellucid` beside a script that prints what it was given.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::{said, Place, PELLUCID};

/// Prints its own path, its arguments one a line, and its environment; ends with 7.
const SCRIPT: &str =
    "#!/bin/sh\necho \"at $0\"\nfor word; do echo \"word $word\"; done\nenv\nexit 7\n";

/// A place with a copy of the program in `bin`.
fn installed() -> (Place, PathBuf) {
    let place = Place::new();
    let program = place.path("bin/pellucid");
    std::fs::create_dir(place.path("bin")).unwrap();
    // Where it lies on the same file system, a link is a copy for nothing.
    if std::fs::hard_link(PELLUCID, &program).is_err() {
        place.copy_program(PELLUCID.as_ref(), "bin/pellucid");
    }
    (place, program)
}

#[test]
fn the_lab_of_this_build_answers() {
    let built = Path::new(PELLUCID).with_file_name("lab");
    assert!(built.is_file(), "`cargo build --workspace` makes {}", built.display());
    let place = Place::new();
    let version = place.pellucid(&["lab", "--version"]).succeeded();
    assert_eq!(version, format!("lab {}\n", env!("CARGO_PKG_VERSION")));
    let help = place.pellucid(&["lab", "--help"]).succeeded();
    assert!(help.contains("lab <COMMAND>") && help.contains("backup-matrix"), "{help}");

    // What it says, where it says it, and how it ends are the lab's.
    let records =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/records/vacuum-20261122.jsonl");
    let records = records.to_str().unwrap();
    for arguments in
        [vec!["verdict", "--json", records], vec!["verdict", "none.jsonl"], vec!["nonsense"]]
    {
        let own = said(place.command(built.to_str().unwrap()).args(&arguments));
        let handed = place.pellucid(&[&["lab"], &arguments[..]].concat());
        assert_eq!((handed.code, &handed.stdout), (own.code, &own.stdout));
        assert_eq!(handed.stderr, own.stderr);
    }
    assert!(place.pellucid(&["lab", "verdict", records]).stdout.contains("sealed / plain"));
}

#[test]
fn words_and_environment_come_through_unchanged() {
    let (place, program) = installed();
    place.script("lib/pellucid/lab", SCRIPT);
    let words = ["lab", "quick", "--json", "-q", "--help", "--", "a b", "", "--records=-"];
    let mut command = place.command(program.to_str().unwrap());
    command
        .args(words)
        .env("PELLUCID_EXTENSION", "/x/libpellucid.so")
        .env("PELLUCID_OTHER", "kept");
    let answer = said(&mut command);
    assert_eq!(answer.code, 7, "{answer:?}");
    let heard: Vec<_> =
        answer.stdout.lines().filter_map(|line| line.strip_prefix("word ")).collect();
    assert_eq!(heard, words[1..]);
    let real = place.path("lib/pellucid/lab").canonicalize().unwrap();
    for line in [
        format!("at {}", real.display()),
        "PELLUCID_EXTENSION=/x/libpellucid.so".into(),
        "PELLUCID_OTHER=kept".into(),
        format!("PELLUCID_HOME={}", place.path("keys").display()),
    ] {
        assert!(answer.stdout.lines().any(|heard| heard == line), "{line}: {answer:?}");
    }
}

#[test]
fn a_lab_beside_the_program_counts_only_in_a_build() {
    let (place, program) = installed();
    let program = program.to_str().unwrap();
    let ask = || said(place.command(program).args(["lab", "quick"]));
    // Another program of that name.
    place.script("bin/lab", SCRIPT);
    let answer = ask();
    assert_eq!((answer.code, answer.stdout.as_str()), (1, ""), "{answer:?}");
    for part in ["error", "`lab` was not found", "lib/pellucid/lab", "make install"] {
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
    }
    std::fs::write(place.path("bin/libpellucid.so"), "").unwrap();
    assert!(ask().stdout.contains("bin/lab\n"));
    // One that anybody may exchange is not started.
    let lab = place.path("bin/lab");
    std::fs::set_permissions(&lab, PermissionsExt::from_mode(0o757)).unwrap();
    let answer = ask();
    assert_eq!((answer.code, answer.stdout.as_str()), (1, ""), "{answer:?}");
    assert!(answer.stderr.contains("everybody may write"), "{answer:?}");
    // One that cannot be started.
    std::fs::set_permissions(&lab, PermissionsExt::from_mode(0o644)).unwrap();
    let answer = ask();
    assert!(answer.code == 1 && answer.stderr.contains("could not be started"), "{answer:?}");
}

#[test]
fn options_of_the_program_before_the_word_are_refused() {
    let place = Place::new();
    for option in ["--json", "-q", "--yes"] {
        let answer = place.pellucid(&[option, "lab", "verdict", "--help"]);
        assert_eq!(
            (answer.code, answer.stdout.contains("lab")),
            (2, option == "--json"),
            "{answer:?}"
        );
        assert!(answer.all().contains("come behind its word"), "{answer:?}");
    }
}

#[test]
fn manual_and_completions_have_it() {
    let place = Place::new();
    place.pellucid(&["manual", "share"]).succeeded();
    let page = std::fs::read_to_string(place.path("share/man/man1/pellucid-lab.1")).unwrap();
    assert!(page.contains("pellucid lab quick"), "{page}");
    for shell in [
        "bash-completion/completions/pellucid",
        "zsh/site-functions/_pellucid",
        "fish/vendor_completions.d/pellucid.fish",
    ] {
        let text = std::fs::read_to_string(place.path("share").join(shell)).unwrap();
        assert!(text.contains("lab"), "{shell}");
    }
    let help = place.pellucid(&["--help"]).succeeded();
    assert!(help.lines().any(|line| line.trim_start().starts_with("lab ")), "{help}");
}
