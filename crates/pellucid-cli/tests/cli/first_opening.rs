//! Goal: whatever opens a new instance first, at once with others, finds it whole; no key is ever made twice, or over another one.
//!
//! Method: many processes at the same moment, of one command and of several, on a home that is not there, or whose `msdb.db` was
//! removed, again and again; a process stopped while it makes one; a making that was interrupted after each file; homes that may only be
//! read, and links in the way.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{extension, said, Place, Said, PELLUCID};

/// So many open it at once.
const PROCESSES: usize = 20;
/// So often: each time some of them failed before there was a lock.
const ROUNDS: usize = 3;
const SELECT: [&str; 4] = ["sql", "-b", "-Q", "SELECT 1"];

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn all_succeed(what: &str, commands: Vec<Command>) {
    let started: Vec<_> = commands.into_iter().map(start).collect();
    let ended: Vec<Output> =
        started.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let failed: Vec<_> = ended.iter().filter(|output| !output.status.success()).collect();
    assert!(failed.is_empty(), "{what}: {} of {}: {failed:?}", failed.len(), ended.len());
}

fn select(place: &Place) -> Command {
    let mut command = place.command(PELLUCID);
    command.args(SELECT);
    command
}

fn many(place: &Place) -> Vec<Command> {
    (0..PROCESSES).map(|_| select(place)).collect()
}

/// Both master keys, and that of the history.
fn keys(place: &Place) -> Vec<Vec<u8>> {
    let names = ["keys/service.key", "keys/keyring/master.key", "keys/keyring/history"];
    names.iter().map(|name| fs::read(place.path(name)).unwrap()).collect()
}

/// Names in the instance's directory that something was to get another name from.
fn working_names(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.path("keys")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with('.')).collect()
}

fn events(place: &Place, event: &str) -> usize {
    place.pellucid(&["events"]).succeeded().matches(event).count()
}

#[test]
fn many_that_open_a_new_instance_at_once_find_it_whole() {
    for round in 0..ROUNDS {
        let place = Place::new();
        all_succeed(&format!("round {round}"), many(&place));
        for made in ["service master key created", "database master key created"] {
            assert_eq!(events(&place, made), 1, "{made}");
        }
        assert_eq!(working_names(&place), Vec::<PathBuf>::new());
        let before = keys(&place);
        all_succeed("opened again", many(&place));
        assert_eq!(before, keys(&place));
    }
}

#[test]
fn many_that_open_an_instance_without_its_msdb_at_once_find_it_made() {
    let place = Place::new();
    said(&mut select(&place)).succeeded();
    let before = keys(&place);
    for round in 0..ROUNDS {
        fs::remove_file(place.path("keys/msdb.db")).unwrap();
        all_succeed(&format!("round {round}"), many(&place));
        assert_eq!(working_names(&place), Vec::<PathBuf>::new());
    }
    // And `master.db`, which the first table in it makes.
    let table = |number: usize| {
        let mut command = place.command(PELLUCID);
        command.args(["sql", "-b", "-Q", &format!("CREATE TABLE t{number}(a int)")]);
        command
    };
    all_succeed("master", (0..PROCESSES / 2).map(table).collect());
    let count = place.pellucid(&["sql", "-b", "-h", "-1", "-Q", "SELECT count(*) FROM sys.tables"]);
    assert!(count.succeeded().contains(&(PROCESSES / 2).to_string()));
    assert_eq!(before, keys(&place));
}

/// One has seen that there is none and makes its own; another one has given its own the name, and the keyring does not expect it yet.
#[test]
fn an_msdb_that_is_made_while_another_one_gets_its_name_is_never_expected_there() {
    let place = Place::new();
    said(&mut select(&place)).succeeded();
    fs::remove_file(place.path("keys/msdb.db")).unwrap();
    let late = place.compile_preload("late_open.c");
    let stopped = |at: (&str, &str), waits: &str| {
        let mut command = select(&place);
        command.env("LD_PRELOAD", &late).env(at.0, at.1).env("LATE_WAITS", place.path(waits));
        start(command)
    };
    let waits_at = |waits: &str, most: Duration| {
        let begun = Instant::now();
        while !place.path(waits).exists() && begun.elapsed() < most {
            std::thread::sleep(Duration::from_millis(1));
        }
        place.path(waits).exists()
    };
    // The first pin is that of the file that it makes.
    let first = stopped(("LATE_NAME", "keyring/lock"), "first");
    assert!(waits_at("first", Duration::from_secs(60)));
    let second = stopped(("LATE_LINK", "/msdb.db"), "second");
    // It waits for the first one now, or goes on to its link.
    waits_at("second", Duration::from_secs(3));
    fs::remove_file(place.path("first")).unwrap();
    let first = first.wait_with_output().unwrap();
    let _ = fs::remove_file(place.path("second"));
    let second = second.wait_with_output().unwrap();
    assert!(first.status.success() && second.status.success(), "{first:?} {second:?}");
    assert_eq!(working_names(&place), Vec::<PathBuf>::new());
}

/// Keys and certificates, an encryption, one of the extension's, a backup, a query.
#[test]
fn whatever_opens_a_new_instance_at_once_finds_the_same_keys() {
    let words: [&[&str]; 6] = [
        &["init"],
        &["cert", "create", "one"],
        &["encrypt", "first.db"],
        &["encrypt", "second.db"],
        &["backup", "plain.db", "--to", "plain.bak", "--passphrase-file", "password"],
        &SELECT,
    ];
    for round in 0..ROUNDS {
        let place = Place::new();
        for name in ["first.db", "second.db", "plain.db"] {
            place.plain(name);
        }
        place.secret("password", b"a long Passw0rd of words");
        let mut commands = Vec::new();
        for words in words {
            let mut command = place.command(PELLUCID);
            command.args(words);
            commands.push(command);
        }
        let mut born = place.command(PELLUCID);
        born.args(["run", "--encrypt-new", "--", "sqlite3", "born.db", "CREATE TABLE t(a)"]);
        commands.push(born);
        let mut loaded = place.command("/usr/bin/sqlite3");
        loaded.env("PELLUCID_ENCRYPT_NEW", "1").args(["-batch", "-bail", ":memory:"]);
        let new = "ATTACH 'file:loaded.db?vfs=pellucid' AS new; CREATE TABLE new.t(a)";
        loaded.args([&format!(".load {}", extension(&place)), new]);
        commands.push(loaded);
        all_succeed(&format!("round {round}"), commands);
        for name in ["first.db", "second.db", "born.db", "loaded.db"] {
            place.pellucid(&["check", name]).succeeded();
        }
        for made in ["service master key created", "database master key created"] {
            assert_eq!(events(&place, made), 1, "{made}");
        }
    }
}

/// What a making leaves that was interrupted before its next file.
#[test]
fn a_making_that_was_interrupted_is_completed_and_nothing_replaced() {
    let folders = ["", "keyring", "keyring/certificates", "keyring/databases"];
    for (left, has_service_key) in [(1, false), (2, false), (4, false), (4, true)] {
        for words in [&SELECT[..], &["init"], &["cert", "create", "one"]] {
            let place = Place::new();
            let home = place.path("keys");
            for folder in &folders[..left] {
                fs::create_dir(home.join(folder)).unwrap();
                fs::set_permissions(home.join(folder), PermissionsExt::from_mode(0o700)).unwrap();
            }
            if has_service_key {
                place.secret("keys/service.key", &[7; 32]);
            } else if left > 1 {
                // Who makes nothing says so.
                let told = place.pellucid(&["cert", "list"]);
                assert!(told.code != 0 && told.stderr.contains("was interrupted"), "{told:?}");
                assert!(told.stderr.contains("pellucid init"), "{told:?}");
            }
            place.pellucid(words).succeeded();
            place.pellucid(&["cert", "list"]).succeeded();
            said(&mut select(&place)).succeeded();
            let key = fs::read(home.join("service.key")).unwrap();
            assert_eq!(key == [7; 32], has_service_key, "{words:?}");
        }
    }
}

/// One whose key was lost is no beginning.
#[test]
fn a_keyring_whose_key_is_lost_is_told_by_all_and_gets_no_other_one() {
    let place = Place::new();
    said(&mut select(&place)).succeeded();
    let files = ["keys/service.key", "keys/keyring/master.key"];
    for lost in files {
        let bytes = fs::read(place.path(lost)).unwrap();
        fs::remove_file(place.path(lost)).unwrap();
        let before = place.snapshot();
        for words in [&SELECT[..], &["init"], &["cert", "create", "one"]] {
            let told = place.pellucid(words);
            assert!(told.code != 0 || words == SELECT, "{lost}: {told:?}");
            assert!(!told.all().contains("was interrupted"), "{lost}: {told:?}");
        }
        let after = place.snapshot();
        let is_key = |path: &Path| {
            let name = path.to_string_lossy();
            name.contains("service") || name.contains("master.key") || name.contains("/keyring/")
        };
        let new = after.keys().filter(|path| !before.contains_key(*path) && is_key(path));
        let new: Vec<_> = new.filter(|path| !path.ends_with("keyring/lock")).collect();
        assert!(new.is_empty(), "{lost}: {new:?}");
        fs::write(place.path(lost), bytes).unwrap();
        fs::set_permissions(place.path(lost), PermissionsExt::from_mode(0o600)).unwrap();
    }
    said(&mut select(&place)).succeeded();
}

/// A maker that does not get on is waited for, by those that make and those that read alone.
#[test]
fn whoever_comes_while_it_is_made_waits_for_the_maker() {
    let place = Place::new();
    let home = place.path("keys");
    for folder in ["", "keyring"] {
        fs::create_dir(home.join(folder)).unwrap();
        fs::set_permissions(home.join(folder), PermissionsExt::from_mode(0o700)).unwrap();
    }
    place.secret("keys/making.lock", b"");
    let held = fs::File::open(home.join("making.lock")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let wait = |words: &[&str]| {
        let mut command = place.command(PELLUCID);
        command.args(words);
        start(command)
    };
    let mut waiting = [wait(&SELECT), wait(&["cert", "list"]), wait(&["cert", "create", "one"])];
    std::thread::sleep(Duration::from_secs(1));
    for child in &mut waiting {
        assert!(child.try_wait().unwrap().is_none(), "it has waited for nobody");
    }
    // The maker, as far as the others can see: another home that gets this name.
    let whole = Place::new();
    whole.pellucid(&["init"]).succeeded();
    for name in ["service.key", "keyring/master.key"] {
        fs::copy(whole.path("keys").join(name), home.join(name)).unwrap();
    }
    let made = [fs::read(home.join("service.key")), fs::read(home.join("keyring/master.key"))]
        .map(Result::unwrap);
    drop(held);
    for child in waiting {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(fs::read(home.join("service.key")).unwrap(), made[0]);
    assert_eq!(fs::read(home.join("keyring/master.key")).unwrap(), made[1]);
}

/// A link in the way to a new home, or in the place of its lock, is no way to make or change something elsewhere.
#[test]
fn links_that_lie_in_the_way_are_not_followed_to_another_place() {
    let place = Place::new();
    let told = |place: &Place| -> Said { said(&mut select(place)) };
    // To nowhere, in the place of the home.
    symlink("nowhere", place.path("keys")).unwrap();
    assert_ne!(told(&place).code, 0);
    assert!(!place.path("nowhere").exists());
    fs::remove_file(place.path("keys")).unwrap();
    // In the place of the lock, to a file of the account's.
    place.secret("file", b"as it was");
    fs::create_dir(place.path("keys")).unwrap();
    fs::set_permissions(place.path("keys"), PermissionsExt::from_mode(0o700)).unwrap();
    symlink(place.path("file"), place.path("keys/making.lock")).unwrap();
    let refused = told(&place);
    assert!(refused.code != 0 && refused.stderr.contains("making.lock"), "{refused:?}");
    assert_eq!(fs::read(place.path("file")).unwrap(), b"as it was");
    fs::remove_file(place.path("keys/making.lock")).unwrap();
    told(&place).succeeded();
    // A home in a directory where everybody can exchange it is none.
    fs::create_dir(place.path("open")).unwrap();
    fs::set_permissions(place.path("open"), PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = select(&place);
    assert_ne!(said(command.env("PELLUCID_HOME", place.path("open/keys"))).code, 0);
    assert_eq!(fs::read_dir(place.path("open")).unwrap().count(), 0);
}
