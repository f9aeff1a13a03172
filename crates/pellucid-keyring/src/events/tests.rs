//! Goal: each edit of the event log is found, no crash of a writer is taken for one, and no writer's line is lost.
//!
//! Method: logs are written as the program does, then changed, cut, or left as a crash leaves them.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::Change;

/// An instance with a log of `count` chained lines, the first of them its second or third.
fn instance(count: usize) -> (tempfile::TempDir, Keyring) {
    let home = tempfile::tempdir().unwrap();
    let (keyring, _) = Keyring::open_or_create(home.path()).unwrap();
    for number in 0..count {
        event(number).record(home.path()).unwrap();
    }
    (home, keyring)
}

fn event(number: usize) -> Event {
    Event::new(Action::Created, "certificate").of(format!("number {number}"))
}

fn log_path(home: &tempfile::TempDir) -> std::path::PathBuf {
    home.path().join("events.log")
}

fn lines(home: &tempfile::TempDir) -> Vec<String> {
    let text = std::fs::read_to_string(log_path(home)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn write(home: &tempfile::TempDir, lines: &[String]) {
    let text: String = lines.iter().map(|line| line.clone() + "\n").collect();
    std::fs::write(log_path(home), text).unwrap();
}

fn found(home: &tempfile::TempDir) -> EventLog {
    check_events(home.path()).unwrap()
}

fn wrong(home: &tempfile::TempDir) -> Option<(usize, Wrong)> {
    found(home).wrong.map(|found| (found.line, found.wrong))
}

/// The log after each of these edits is not as it was written, before and after other lines are appended.
#[test]
fn each_kind_of_edit_is_found() {
    type Edit = fn(&mut Vec<String>);
    let edits: [(Edit, usize, Wrong); 9] = [
        (|all| all[4] = all[4].replace("number 2", "number 9"), 5, Wrong::Changed),
        (|all| drop(all.remove(5)), 6, Wrong::Missing(4, 4)),
        (|all| drop(all.drain(4..6)), 5, Wrong::Missing(3, 4)),
        (|all| all.insert(5, all[0].clone()), 6, Wrong::Inserted),
        (|all| all.insert(6, all[4].clone()), 7, Wrong::Moved),
        (|all| all.swap(4, 5), 5, Wrong::Moved),
        (|all| all[1] = all[1].replace("created", "dropped"), 3, Wrong::Beginning),
        (|all| drop(all.remove(0)), 2, Wrong::Beginning),
        (|all| drop(all.remove(2)), 3, Wrong::Beginning),
    ];
    for (index, (edit, line, kind)) in edits.into_iter().enumerate() {
        let (home, _) = instance(6);
        assert_eq!((wrong(&home), found(&home).holds_from), (None, Some(3)));
        let mut all = lines(&home);
        edit(&mut all);
        write(&home, &all);
        for appended in 0..3 {
            assert_eq!(wrong(&home), Some((line, kind.clone())), "edit {index}, {appended} more");
            event(99).record(home.path()).unwrap();
        }
    }
}

/// What is cut off at the end is not there to be seen wrong: the keyring knows of it.
#[test]
fn a_log_that_was_cut_emptied_removed_or_exchanged_is_found() {
    let (other, _) = instance(8);
    type Edit = fn(&std::path::Path, &[u8], &[u8]);
    let last_line =
        |log: &[u8]| log[..log.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    let edits: [(Edit, Wrong); 6] = [
        (
            |path, log, _| {
                let at = log[..log.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
                std::fs::write(path, &log[..at]).unwrap();
            },
            Wrong::End(5, 6),
        ),
        (|path, log, _| std::fs::write(path, &log[..log.len() - 9]).unwrap(), Wrong::End(5, 6)),
        (|path, _, _| std::fs::write(path, "").unwrap(), Wrong::End(0, 6)),
        (|path, _, _| std::fs::remove_file(path).unwrap(), Wrong::End(0, 6)),
        (|path, _, other| std::fs::write(path, other).unwrap(), Wrong::Changed),
        (
            |path, log, _| {
                let at = log[..log.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
                let last =
                    String::from_utf8(log[at..].to_vec()).unwrap().replace("number 5", "number 7");
                std::fs::write(path, [&log[..at], last.as_bytes()].concat()).unwrap();
            },
            Wrong::Changed,
        ),
    ];
    for (index, (edit, kind)) in edits.into_iter().enumerate() {
        let (home, _) = instance(6);
        let log = std::fs::read(log_path(&home)).unwrap();
        assert!(last_line(&log) > 0);
        edit(&log_path(&home), &log, &std::fs::read(log_path(&other)).unwrap());
        assert_eq!(wrong(&home).unwrap().1, kind, "edit {index}");
        event(99).record(home.path()).unwrap();
        event(99).record(home.path()).unwrap();
        assert!(wrong(&home).is_some(), "edit {index} is covered by what comes later");
        // And nothing is ever taken for the log as it was, but the log as it was.
        std::fs::write(log_path(&home), &log).unwrap();
        assert_eq!(wrong(&home).unwrap().1, Wrong::End(6, 8), "edit {index}");
    }
}

/// Every single byte that is flipped is found.
#[test]
fn each_flipped_byte_is_found() {
    let (home, _) = instance(3);
    let log = std::fs::read(log_path(&home)).unwrap();
    for at in 0..log.len() {
        let mut damaged = log.clone();
        damaged[at] ^= 1;
        std::fs::write(log_path(&home), damaged).unwrap();
        assert!(wrong(&home).is_some(), "byte {at}");
    }
}

/// Without the keyring's memory of it a chain is not believed, nor begun anew in silence.
#[test]
fn what_the_keyring_holds_of_the_log_is_missed_or_damaged() {
    let (other, _) = instance(6);
    let memory = |home: &tempfile::TempDir| home.path().join("keyring/events");
    let edits: [fn(&std::path::Path, &std::path::Path); 3] = [
        |memory, _| std::fs::remove_file(memory).unwrap(),
        |memory, _| std::fs::write(memory, "nothing").unwrap(),
        |memory, other| std::fs::copy(other, memory).map(drop).unwrap(),
    ];
    for edit in edits {
        let (home, _) = instance(6);
        edit(&memory(&home), &memory(&other));
        assert!(matches!(wrong(&home), Some((_, Wrong::Unknown(_)))));
        // What has to be recorded is, and waits.
        event(99).record(home.path()).unwrap();
        assert!(matches!(wrong(&home), Some((_, Wrong::Unknown(_)))));
        assert_eq!((lines(&home).len(), found(&home).waiting), (8, 1));
        restart_events(home.path()).unwrap();
        let found = found(&home);
        assert_eq!((found.wrong, found.holds_from, found.waiting), (None, Some(9), 0));
        assert_eq!(lines(&home).len(), 10);
    }
}

/// Keys are never made without an event, so both were taken away.
#[test]
fn a_log_that_is_gone_with_the_keyrings_memory_of_it_is_missed() {
    for emptied in [false, true] {
        let (home, _) = instance(3);
        std::fs::remove_file(home.path().join("keyring/events")).unwrap();
        match emptied {
            true => std::fs::write(log_path(&home), "").unwrap(),
            false => std::fs::remove_file(log_path(&home)).unwrap(),
        }
        for waiting in 1..3 {
            assert!(matches!(wrong(&home), Some((1, Wrong::Unknown(_)))));
            event(99).record(home.path()).unwrap();
            assert_eq!(found(&home).waiting, waiting);
        }
        restart_events(home.path()).unwrap();
        assert_eq!((wrong(&home), found(&home).waiting), (None, 0));
    }
}

/// A chain that was begun anew answers for all lines as they were then, and says what was wrong.
#[test]
fn the_chain_goes_on_after_a_break_by_command() {
    let (home, _) = instance(6);
    let mut all = lines(&home);
    all.remove(4);
    write(&home, &all);
    event(99).record(home.path()).unwrap();
    restart_events(home.path()).unwrap();
    event(99).record(home.path()).unwrap();
    let found_then = found(&home);
    assert_eq!((found_then.wrong, found_then.holds_from), (None, Some(9)));
    assert_eq!(found_then.left_behind, [LogBreak { line: 5, wrong: Wrong::Missing(3, 3) }]);
    assert!(lines(&home)[8].contains("\"restarted\""));
    let mut all = lines(&home);
    all[0] = all[0].replace("created", "dropped");
    write(&home, &all);
    assert_eq!(wrong(&home), Some((3, Wrong::Beginning)), "an old line was changed afterwards");
}

/// A log of before there was a chain keeps its lines, and the first chained line answers for them.
#[test]
fn a_log_without_a_chain_is_taken_over() {
    let home = tempfile::tempdir().unwrap();
    Keyring::open_or_create(home.path()).unwrap();
    let old: Vec<String> = (0..5).map(|number| format!("{{\"old\":{number}}}")).collect();
    write(&home, &old);
    let _ = std::fs::remove_file(home.path().join("keyring/events"));
    assert_eq!((wrong(&home), found(&home).holds_from), (None, None));
    event(1).record(home.path()).unwrap();
    event(2).record(home.path()).unwrap();
    assert_eq!((wrong(&home), found(&home).holds_from), (None, Some(6)));
    let mut all = lines(&home);
    assert_eq!(all[..5], old);
    all[2] = "{\"old\":9}".to_owned();
    write(&home, &all);
    assert_eq!(wrong(&home), Some((6, Wrong::Beginning)));
}

/// From `least` to `most` bytes: those at both ends, and some between.
fn lengths(least: usize, most: usize) -> impl Iterator<Item = usize> {
    (least..=most).filter(move |at| at - least < 3 || most - at < 4 || at % 17 == 0)
}

/// The log and the keyring's memory of it as each crash leaves them: of the line everything, some, or nothing, and the
/// memory of before or after it. Behind by a whole line is what no crash leaves.
#[test]
fn no_crash_of_a_writer_is_taken_for_an_edit() {
    for count in [0, 3] {
        let (home, _) = instance(count);
        let memory = home.path().join("keyring/events");
        let before = (std::fs::read(log_path(&home)).unwrap(), std::fs::read(&memory).ok());
        event(98).record(home.path()).unwrap();
        let after = std::fs::read(log_path(&home)).unwrap();
        for length in lengths(before.0.len(), after.len()) {
            std::fs::write(log_path(&home), &after[..length]).unwrap();
            match &before.1 {
                Some(memory_before) => std::fs::write(&memory, memory_before).unwrap(),
                None => {
                    // The first memory is made before the first line.
                    std::fs::write(log_path(&home), &before.0).unwrap();
                    let _ = std::fs::remove_file(&memory);
                }
            }
            assert_eq!(wrong(&home), None, "{count}: {length} bytes");
            for _ in 0..2 {
                event(99).record(home.path()).unwrap();
                let found = found(&home);
                assert_eq!(found.wrong, None, "{count}: {length} bytes");
                let is_cut = (before.0.len() + 1..after.len() - 1).contains(&length);
                let is_cut = is_cut && before.1.is_some();
                assert_eq!(found.unfinished.len(), usize::from(is_cut), "{count}: {length} bytes");
            }
        }
    }
}

/// The first line of a chain, too: the keyring has its key before there is a line.
#[test]
fn a_crash_while_the_chain_begins_is_none_either() {
    let (home, keyring) = instance(0);
    let before = std::fs::read(log_path(&home)).unwrap();
    let memory = chain::Memory::begin().unwrap();
    file(home.path()).replace(keyring.key(), &memory.encode()).unwrap();
    let sealed = std::fs::read(home.path().join("keyring/events")).unwrap();
    event(98).record(home.path()).unwrap();
    let after = std::fs::read(log_path(&home)).unwrap();
    for length in lengths(before.len(), after.len()) {
        std::fs::write(log_path(&home), &after[..length]).unwrap();
        std::fs::write(home.path().join("keyring/events"), &sealed).unwrap();
        assert_eq!(wrong(&home), None, "{length} bytes");
        event(99).record(home.path()).unwrap();
        event(99).record(home.path()).unwrap();
        assert_eq!(wrong(&home), None, "{length} bytes");
    }
}

/// Another database master key, with the old one at hand: the key of the chain is carried over.
#[test]
fn the_chain_goes_on_under_another_master_key() {
    let (home, keyring) = instance(2);
    let change = Change::begin(home.path()).unwrap();
    change.replace_database_key(Some(&keyring), None, None, false).unwrap();
    change.replace_service_key(None, false).unwrap();
    drop(change);
    event(3).record(home.path()).unwrap();
    assert_eq!((wrong(&home), found(&home).holds_from), (None, Some(3)));
    assert_eq!(found(&home).lines, 2 + 2 + 2 + 1);
}

/// Threads have locks of their own, as processes do; `tests/cli/event_log.rs` has two processes.
#[test]
fn a_thousand_appends_at_once_keep_a_whole_chain() {
    let (home, _) = instance(1);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let home = home.path();
            scope.spawn(move || {
                for number in 0..125 {
                    match number % 5 {
                        0 => waiting::put(home, event(number).facts(), thread % 2 == 0).unwrap(),
                        _ => event(number).record(home).unwrap(),
                    }
                }
            });
        }
    });
    event(0).record(home.path()).unwrap();
    let found = found(&home);
    assert_eq!((found.wrong, found.waiting, found.lines), (None, 0, 3 + 1000 + 1));
}

/// A key is regenerated over and over while others record.
#[test]
fn a_master_key_that_changes_meanwhile_breaks_nothing() {
    let (home, _) = instance(1);
    std::thread::scope(|scope| {
        let path = home.path();
        let recording: Vec<_> = (0..3)
            .map(|_| scope.spawn(move || (0..40).for_each(|n| event(n).record(path).unwrap())))
            .collect();
        for _ in 0..10 {
            let change = Change::begin(path).unwrap();
            let keyring = Keyring::open(path).unwrap();
            change.replace_database_key(Some(&keyring), None, None, false).unwrap();
        }
        recording.into_iter().for_each(|thread| thread.join().unwrap());
    });
    event(0).record(home.path()).unwrap();
    let found = found(&home);
    assert_eq!((found.wrong, found.waiting, found.lines), (None, 0, 3 + 120 + 10 + 1));
}

/// What accounts wrote is taken in once, under the account that wrote it, whatever it says of itself.
#[test]
fn what_waits_is_taken_in_once_and_as_its_accounts() {
    let (home, _) = instance(1);
    let own = rustix::process::geteuid().as_raw();
    event(7).facts();
    waiting::put(home.path(), event(7).facts(), true).unwrap();
    let file = home.path().join(format!("waiting/events-{own}"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let forged = "{\"seq\":1,\"mac\":\"00\",\"prev\":\"00\",\"begins\":true,\"noted_by_uid\":4242,\"id\":\"a\"}";
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}{forged}\nno JSON \u{1b}[31m\n{{\"cut")).unwrap();
    waiting::put(home.path(), event(8).facts(), false).unwrap();
    assert_eq!((found(&home).waiting, read_events(home.path()).unwrap().len()), (5, 8));
    // As a crash leaves it after the lines were written: the file is still there, and the memory is of before.
    let kept = std::fs::read(&file).unwrap();
    let memory = std::fs::read(home.path().join("keyring/events")).unwrap();
    event(9).record(home.path()).unwrap();
    assert!(!file.exists());
    std::fs::write(&file, &kept).unwrap();
    std::fs::write(home.path().join("keyring/events"), &memory).unwrap();
    event(10).record(home.path()).unwrap();
    let all = lines(&home);
    for name in ["number 7", "number 8", "number 9", "number 10", "\"id\":\"a\""] {
        assert_eq!(all.iter().filter(|line| line.contains(name)).count(), 1, "{name}");
    }
    assert!(
        !all.iter().any(|line| line.contains("\"noted_by_uid\":4242") || line.contains('\u{1b}')),
        "{all:?}"
    );
    assert_eq!((wrong(&home), found(&home).waiting), (None, 0));
}

/// Names that others could have put there are not followed, nor waited for.
#[test]
fn strange_files_among_those_that_wait_stop_nobody() {
    let (home, _) = instance(1);
    let own = rustix::process::geteuid().as_raw();
    waiting::put(home.path(), event(7).facts(), true).unwrap();
    let run = home.path().join("waiting");
    let ours = run.join(format!("events-{own}"));
    std::fs::rename(&ours, run.join("events-other")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &ours).unwrap();
    std::fs::create_dir(run.join("events-directory")).unwrap();
    std::fs::hard_link(log_path(&home), run.join("events-link")).unwrap();
    // Made by this process: one that it forked would have the locks that other tests of it hold.
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, run.join("events-pipe"), kind, mode, 0).unwrap();
    waiting::put(home.path(), event(8).facts(), true).unwrap();
    event(9).record(home.path()).unwrap();
    let all = lines(&home).join("\n");
    assert!(["number 7", "number 8", "number 9"].iter().all(|name| all.contains(name)), "{all}");
    assert!(!all.contains("root:"), "{all}");
    assert_eq!((wrong(&home), found(&home).waiting), (None, 0));
}

/// A log in parts, which are closed at some ten lines.
fn in_parts(count: usize) -> (tempfile::TempDir, Vec<std::path::PathBuf>) {
    parts::tests::MOST.set(Some(4000));
    let (home, _) = instance(count);
    let closed = parts::closed(home.path()).unwrap().into_iter().map(|(_, path)| path).collect();
    (home, closed)
}

fn count_of(home: &tempfile::TempDir) -> usize {
    parts::closed(home.path()).unwrap().len()
}

fn whole(home: &tempfile::TempDir) -> Vec<u8> {
    log::bytes(home.path()).unwrap()
}

#[test]
fn a_log_goes_on_in_parts_and_no_line_is_lost() {
    let (home, closed) = in_parts(60);
    assert!(closed.len() > 2, "{closed:?}");
    for (number, path) in (1..).zip(&closed) {
        assert_eq!(*path, home.path().join(format!("events.{number}")));
        assert!(std::fs::metadata(path).unwrap().len() >= 4000);
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let found = found(&home);
    assert_eq!((&found.wrong, found.closed.len()), (&None, closed.len()));
    let listed = read_events(home.path()).unwrap();
    for number in 0..60 {
        let name = format!("\"number {number}\"");
        assert_eq!(listed.iter().filter(|line| line.contains(&name)).count(), 1, "{name}");
    }
    // A chain that is begun anew begins over all parts.
    restart_events(home.path()).unwrap();
    event(60).record(home.path()).unwrap();
    assert_eq!(wrong(&home), None);
    // Another database master key leaves them as they are.
    let keyring = Keyring::open(home.path()).unwrap();
    let change = Change::begin(home.path()).unwrap();
    change.replace_database_key(Some(&keyring), None, None, false).unwrap();
    drop(change);
    event(61).record(home.path()).unwrap();
    assert_eq!(wrong(&home), None);
}

#[test]
fn what_is_changed_in_a_closed_part_is_found_and_named() {
    let (home, closed) = in_parts(60);
    for (index, path) in closed.iter().enumerate() {
        let before = std::fs::read(path).unwrap();
        let mut changed = before.clone();
        let at = changed.iter().rposition(|byte| *byte == b':').unwrap() - 200;
        changed[at] ^= 1;
        std::fs::write(path, &changed).unwrap();
        let log = found(&home);
        let (name, line) = log.place(log.wrong.as_ref().unwrap().line);
        assert_eq!(name, format!("events.{}", index + 1));
        assert_eq!(line, before.iter().filter(|byte| **byte == b'\n').count());
        let aside = home.path().join("aside");
        std::fs::rename(path, &aside).unwrap();
        assert!(wrong(&home).is_some(), "{index} is missing");
        event(99).record(home.path()).unwrap();
        assert!(wrong(&home).is_some(), "{index} is missing, and one more line");
        std::fs::write(path, before).unwrap();
        std::fs::remove_file(aside).unwrap();
        // Lines that were chained meanwhile stand in their place.
        assert_eq!(wrong(&home), None, "{index} is back");
    }
    std::fs::write(home.path().join("events.99"), "{\"action\":\"dropped\"}\n").unwrap();
    assert!(wrong(&home).is_some(), "a part that is none");
    std::fs::remove_file(home.path().join("events.99")).unwrap();
    std::fs::write(home.path().join("events.01"), "no part").unwrap();
    assert_eq!(wrong(&home), None);
}

/// A writer is killed between the steps of closing a part.
#[test]
fn no_crash_while_a_part_is_closed_is_taken_for_an_edit() {
    let (home, closed) = in_parts(30);
    let (count, before) = (closed.len(), whole(&home));
    // The part was renamed, and the next one not begun.
    let number = count as u64 + 1;
    std::fs::rename(log_path(&home), home.path().join(format!("events.{number}"))).unwrap();
    assert_eq!((wrong(&home), whole(&home)), (None, before));
    event(30).record(home.path()).unwrap();
    assert_eq!(wrong(&home), None);
    // A line was brought into the log and not into the keyring, and the part is full.
    let held = log::file(home.path());
    for number in 31..60 {
        let (memory, parts) = (std::fs::read(held.path()).unwrap(), count_of(&home));
        event(number).record(home.path()).unwrap();
        // Whoever closes a part has brought its lines into the keyring before.
        if count_of(&home) == parts {
            std::fs::write(held.path(), memory).unwrap();
        }
        assert_eq!(wrong(&home), None, "{number}");
    }
    let listed = read_events(home.path()).unwrap();
    for number in 0..60 {
        let name = format!("\"number {number}\"");
        assert_eq!(listed.iter().filter(|line| line.contains(&name)).count(), 1, "{name}");
    }
}

#[test]
fn events_that_wait_are_never_refused_for_their_number() {
    parts::tests::MOST.set(Some(4000));
    let (home, _) = instance(1);
    for number in 0..60 {
        waiting::put(home.path(), event(number).facts(), number % 2 == 0).unwrap();
    }
    let files = std::fs::read_dir(home.path().join("waiting")).unwrap().count();
    assert!(files > 2, "{files}");
    assert_eq!(found(&home).waiting, 60);
    event(99).record(home.path()).unwrap();
    assert_eq!(std::fs::read_dir(home.path().join("waiting")).unwrap().count(), 0);
    assert_eq!(wrong(&home), None);
    let names: Vec<String> = read_events(home.path())
        .unwrap()
        .iter()
        .filter(|line| line.contains("noted_by_uid"))
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().into())
        .collect();
    let expected: Vec<String> = (0..60).map(|number| format!("number {number}")).collect();
    assert_eq!(names, expected, "in their order");
}
