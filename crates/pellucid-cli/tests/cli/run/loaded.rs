//! The extension, loaded by hand.

use std::path::Path;

use super::host::HOSTS;
use super::workplace::{answer, library, need, text, Workplace};

#[test]
fn every_host_that_loads_extensions_works_on_a_sealed_database() {
    for host in HOSTS {
        let place = Workplace::with_database();
        // PHP wants the directory, so the name is taken off there.
        let library = library().to_str().unwrap();
        let Some(mut arguments) = host.arguments_loading("app.db", library) else { continue };
        for word in &mut arguments {
            *word = word.replace("/libpellucid.so/..", "");
        }
        let output = place.command(host.program()).args(&arguments).output().unwrap();
        assert_eq!(answer(&output), "10", "{}", host.name);
        assert!(place.is_sealed("app.db"), "{}", host.name);
    }
}

#[test]
fn it_may_be_loaded_twice_and_a_plain_database_stays_plain() {
    let place = Workplace::new();
    let load = format!(".load {}", library().display());
    let mut command = place.command(need("/usr/bin/sqlite3", "sqlite3"));
    command.args([":memory:", &load, &load, ".open plain.db", "CREATE TABLE t(a)", ".vfsname"]);
    assert_eq!(answer(&command.output().unwrap()), "pellucid/unix");
    assert!(!place.is_sealed("plain.db"));
}

#[test]
fn a_static_program_is_refused_and_goes_on() {
    let place = Workplace::with_database();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/run/c/load.c");
    for (linking, refused) in [("-static", true), ("-static-pie", true), ("-pie", false)] {
        let program = place.path("load");
        let mut command = place.command(need("/usr/bin/gcc", "gcc libc6-dev"));
        command.arg(linking).arg("-o").arg(&program).arg(&source);
        answer(&command.args(["-lsqlite3", "-lm", "-ldl", "-lpthread"]).output().unwrap());
        let output = place.command(&program).arg(library()).arg("app.db").output().unwrap();
        let said = text(&output);
        if refused {
            assert_eq!(output.status.code(), Some(3), "{linking}: {said}");
            assert!(said.contains("is statically linked"), "{linking}: {said}");
        } else {
            assert_eq!(answer(&output), "3", "{linking}");
        }
    }
}

#[test]
fn the_path_is_printed_and_a_library_that_anybody_may_exchange_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let place = Workplace::new();
    let path = library().to_str().unwrap();
    assert_eq!(answer(&place.pellucid(&["extension"]).output().unwrap()), path);
    let facts = answer(&place.pellucid(&["extension", "--json"]).output().unwrap());
    let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(facts["path"], path);
    assert_eq!(facts["entry_point"], "sqlite3_pellucid_init");

    let open = place.path("libpellucid.so");
    std::fs::copy(path, &open).unwrap();
    let ask = |place: &Workplace| {
        place.pellucid(&["extension"]).env("PELLUCID_EXTENSION", "libpellucid.so").output().unwrap()
    };
    assert_eq!(answer(&ask(&place)), open.canonicalize().unwrap().to_str().unwrap());
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o757)).unwrap();
    let output = ask(&place);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("everybody may write"), "{}", text(&output));
    std::fs::remove_file(&open).unwrap();
    let output = ask(&place);
    assert!(text(&output).contains("`PELLUCID_EXTENSION` names"), "{}", text(&output));
}

#[test]
fn the_library_exports_four_functions_and_imports_none_of_sqlite() {
    let place = Workplace::new();
    let nm = need("/usr/bin/nm", "binutils");
    let names = |option: &str| -> Vec<String> {
        let output = place.command(&nm).args(["-D", option]).arg(library()).output().unwrap();
        let lines = answer(&output);
        lines.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect()
    };
    let exports = ["sqlite3_open", "sqlite3_open16", "sqlite3_open_v2", "sqlite3_pellucid_init"];
    assert_eq!(names("--defined-only"), exports);
    let imports = names("--undefined-only");
    assert!(!imports.is_empty() && !imports.iter().any(|name| name.contains("sqlite3")));
}
