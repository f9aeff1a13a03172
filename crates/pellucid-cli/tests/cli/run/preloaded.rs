//! Unmodified programs over a sealed database, started by `pellucid run`.

use super::host::HOSTS;
use super::workplace::{answer, library, need, text, Workplace};

#[test]
fn every_host_reads_and_writes_a_sealed_database() {
    for host in HOSTS {
        let place = Workplace::with_database();
        let arguments = host.arguments("app.db");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = place.run(&[], &host.program(), &arguments);
        assert_eq!(answer(&output), "10", "{}", host.name);
        assert!(place.is_sealed("app.db"), "{}", host.name);
        // The test means something: without the shim the same program gets nowhere.
        let output = place.command(host.program()).args(&arguments).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(!printed.contains("14"), "{}: {}", host.name, text(&output));
    }
}

#[test]
fn configuring_first_many_threads_and_shutting_down_are_survived() {
    let place = Workplace::with_database();
    let program = place.compile("lifecycle.c", "lifecycle", &["-lsqlite3", "-lpthread"]);
    assert_eq!(answer(&place.run(&[], &program, &["app.db"])), "fine");
    assert_eq!(place.command(&program).arg("app.db").status().unwrap().code(), Some(1));
}

#[test]
fn where_the_shim_cannot_be_put_in_place_nothing_is_opened() {
    let place = Workplace::new();
    let options = ["-shared", "-fPIC", "-Wl,-soname,libsqlite3.so.0"];
    let broken = place.compile("broken_sqlite.c", "libsqlite3.so.0", &options);
    let here = format!("-Wl,-rpath,{}", place.path("").display());
    let program =
        place.compile("open_once.c", "open_once", &[broken.to_str().unwrap(), here.as_str()]);
    assert_eq!(answer(&place.command(&program).output().unwrap()), "99 connection");
    let output = place.run(&[], &program, &[]);
    assert_eq!(answer(&output), "14 null");
    assert!(text(&output).contains("takes no automatic extension"), "{}", text(&output));
    // Preloaded without being asked to work, the library is not in the way.
    let output = place.command(&program).env("LD_PRELOAD", library()).output().unwrap();
    assert_eq!(answer(&output), "99 connection");
    let output = place.run(&["--eager"], &program, &[]);
    assert_eq!(output.status.code(), Some(126), "{}", text(&output));
}

#[test]
fn a_call_goes_to_the_library_it_was_meant_for_and_a_second_one_is_refused() {
    let place = Workplace::with_database();
    let shared = ["-shared", "-fPIC"];
    let other = place.compile("broken_sqlite.c", "libother.so", &shared);
    let here = format!("-Wl,-rpath,{}", place.path("").display());
    let plugin = |name: &str, with: &str| {
        place.compile("plugin.c", name, &[&shared[..], &[with, here.as_str()]].concat())
    };
    let first = plugin("first.so", "-lsqlite3");
    let second = plugin("second.so", other.to_str().unwrap());
    let program = place.compile("two_libraries.c", "two_libraries", &["-ldl"]);
    let modules = [first.to_str().unwrap(), second.to_str().unwrap()];
    let output = place.run(&[], &program, &modules);
    assert_eq!(answer(&output), "0\n14");
    assert!(text(&output).contains("two SQLite libraries"), "{}", text(&output));
    let output =
        place.command(&program).args(modules).env("LD_PRELOAD", library()).output().unwrap();
    assert_eq!(answer(&output), "0\n99");
}

#[test]
fn scripts_and_env_are_followed_and_php_is_started_eagerly() {
    let place = Workplace::new();
    need("/usr/bin/php", "php-cli");
    let script = |name: &str, text: &str| {
        let path = place.path(name);
        crate::support::write_script(&path, text);
        path
    };
    let print = "<?php echo getenv('PELLUCID_PRELOAD');";
    for line in ["#!/usr/bin/php", "#!/usr/bin/env php", "#!/usr/bin/env -S php -d x=1"] {
        let path = script("eager", &format!("{line}\n{print}"));
        assert_eq!(answer(&place.run(&[], &path, &[])), "eager", "{line}");
    }
    let path =
        script("lazy", "#!/usr/bin/env -S A=1 sh\necho $PELLUCID_PRELOAD $A $1 $PELLUCID_LOG");
    assert_eq!(answer(&place.run(&[], &path, &["two"])), "1 1 two stderr");
    let env = need("/usr/bin/env", "coreutils");
    let output = place.run(&[], &env, &["php", "-r", "echo getenv('PELLUCID_PRELOAD');"]);
    assert_eq!(answer(&output), "eager");
}

#[test]
fn what_is_preloaded_already_stays_and_comes_after() {
    let place = Workplace::new();
    let shell = need("/bin/sh", "dash");
    let mut command = place.pellucid(&["run", "--"]);
    command.arg(&shell).args(["-c", "echo $LD_PRELOAD"]).env("LD_PRELOAD", "libm.so.6");
    let expected = format!("{}:libm.so.6", library().display());
    assert_eq!(answer(&command.output().unwrap()), expected);
}

#[test]
fn plain_databases_are_refused_only_where_sealed_ones_are_required() {
    let place = Workplace::with_database();
    let sqlite3 = need("/usr/bin/sqlite3", "sqlite3");
    answer(&place.run(&[], &sqlite3, &["plain.db", "CREATE TABLE t(a)"]));
    assert!(!place.is_sealed("plain.db"));
    answer(&place.run(&["--require-sealed"], &sqlite3, &["app.db", "SELECT * FROM t"]));
    for name in ["plain.db", "new.db"] {
        let output = place.run(&["--require-sealed"], &sqlite3, &[name, "CREATE TABLE u(a)"]);
        assert!(!output.status.success(), "{name}: {}", text(&output));
    }
}

#[test]
fn the_programs_own_status_comes_back() {
    let place = Workplace::new();
    let shell = need("/bin/sh", "dash");
    assert_eq!(place.run(&[], &shell, &["-c", "exit 7"]).status.code(), Some(7));
    let output = place.run(&[], &shell, &["-c", "kill -TERM $$"]);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(15));
}

#[test]
fn a_vfs_that_the_program_puts_on_top_stays_the_default() {
    let place = Workplace::with_database();
    let program = place.compile("on_top.c", "on_top", &["-lsqlite3"]);
    let said = answer(&place.run(&[], &program, &["app.db"]));
    // After a shutdown the program would have to register its own again; the shim is in place all the same.
    assert_eq!(said, "counting 1, 3; pellucid 0, 3");
}
