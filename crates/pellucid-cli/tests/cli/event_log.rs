//! Goal: what is recorded cannot be edited unnoticed; uses of a key are recorded; what has to be and cannot be is not done.
//!
//! Method: the program and an application do things in a place of their own. The log is edited, or kept from being written,
//! and every command that looks at it is asked. A system instance has root and a member of its group; that part needs root
//! to change users, and another caller gets a line that says so, and no verdict.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{said, Place, Said, PELLUCID};

const NOBODY: u32 = 65534;

fn pellucid(place: &Place, words: &str) -> Said {
    place.pellucid(&words.split(' ').collect::<Vec<_>>())
}

/// `app.db`, sealed, with some events.
fn place() -> Place {
    let place = Place::new();
    place.sealed("app.db", &[]);
    for days in 1..4 {
        pellucid(&place, &format!("policy set rekey-after {days}d")).succeeded();
    }
    place
}

fn log(place: &Place) -> PathBuf {
    place.path("keys/events.log")
}

fn verified(place: &Place) -> Value {
    let said = pellucid(place, "--json events verify");
    let mut facts: Value = serde_json::from_str(said.stdout.trim()).unwrap();
    facts["exit"] = said.code.into();
    facts
}

/// `SUBJECT ACTION` of each event that `events` shows.
fn shown(said: Said) -> Vec<String> {
    let facts: Value = serde_json::from_str(&said.succeeded()).unwrap();
    let events = facts["events"].as_array().unwrap();
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    events.iter().map(|event| text(event, "subject") + " " + &text(event, "action")).collect()
}

#[test]
fn an_edited_log_is_named_by_every_command_that_looks_at_it() {
    type Edit = fn(&Path, &[&str]);
    let write = |path: &Path, lines: &[&str]| {
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
    };
    let edits: [(&str, Edit, &str); 7] = [
        (
            "changed",
            |path, all| {
                let text = all.join("\n").replace("rekey-after 2d", "rekey-after 9d");
                std::fs::write(path, text + "\n").unwrap();
            },
            "line 6: it was changed",
        ),
        (
            "taken out",
            |path, all| {
                let all = [&all[..4], &all[5..]].concat();
                std::fs::write(path, all.join("\n") + "\n").unwrap();
            },
            "line 5: number 3 is missing",
        ),
        (
            "put in",
            |path, all| {
                let all = [&all[..4], &all[..1], &all[4..]].concat();
                std::fs::write(path, all.join("\n") + "\n").unwrap();
            },
            "line 5: it was put in",
        ),
        (
            "exchanged",
            |path, all| {
                let all = [&all[..4], &[all[5], all[4]], &all[6..]].concat();
                std::fs::write(path, all.join("\n") + "\n").unwrap();
            },
            "line 5: it is not at the place",
        ),
        (
            "cut",
            |path, all| {
                std::fs::write(path, all[..all.len() - 1].join("\n") + "\n").unwrap();
            },
            "number 5 is missing at its end",
        ),
        ("emptied", |path, _| std::fs::write(path, "").unwrap(), "missing or empty"),
        ("removed", |path, _| std::fs::remove_file(path).unwrap(), "missing or empty"),
    ];
    for (name, edit, told) in edits {
        let place = place();
        let text = std::fs::read_to_string(log(&place)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), verified(&place)["exit"].as_i64()), (7, Some(0)), "{name}");
        assert_eq!(verified(&place)["holds_from_line"], 3, "{name}");
        edit(&log(&place), &lines);
        let facts = verified(&place);
        assert_eq!((facts["exit"].as_i64(), facts["kind"].as_str()), (Some(1), Some("event-log")));
        assert!(facts["error"].as_str().unwrap().contains(told), "{name}: {facts}");
        for words in ["events", "doctor", "status --check"] {
            let said = pellucid(&place, words);
            assert_eq!(said.code, 4, "{name}, {words}: {said:?}");
            assert!(said.all().contains(told), "{name}, {words}: {said:?}");
        }
        let metrics = pellucid(&place, "status --prometheus").succeeded();
        assert!(metrics.contains("\npellucid_event_log_broken 1\n"), "{metrics}");
        // Work goes on, and hides nothing.
        pellucid(&place, "policy set rekey-after 77d").succeeded();
        pellucid(&place, "run -- sqlite3 app.db SELECT(1)").succeeded();
        assert_eq!(verified(&place)["exit"], 1, "{name}");
        // Until somebody says so, on record.
        pellucid(&place, "events restart").succeeded();
        assert_eq!(verified(&place)["exit"], 0, "{name}");
        let events = pellucid(&place, "events").succeeded();
        assert!(events.contains("chain of the event log restarted"), "{events}");
        let again = pellucid(&place, "events restart");
        assert_eq!(again.code, 1, "{again:?}");
        // Back as it was before: it lacks what came since.
        write(&log(&place), &lines);
        assert_eq!(verified(&place)["exit"], 1, "{name}");
    }
}

#[test]
fn the_log_of_another_instance_and_a_lost_memory_of_it_are_found() {
    let (place, other) = (place(), place());
    let own = std::fs::read(log(&place)).unwrap();
    std::fs::copy(log(&other), log(&place)).unwrap();
    assert_eq!(verified(&place)["exit"], 1);
    std::fs::write(log(&place), &own).unwrap();
    assert_eq!(verified(&place)["exit"], 0);
    std::fs::remove_file(place.path("keys/keyring/events")).unwrap();
    pellucid(&place, "policy set rekey-after 9d").succeeded();
    let facts = verified(&place);
    assert!(facts["error"].as_str().unwrap().contains("keyring/events"), "{facts}");
    assert_eq!(std::fs::read(log(&place)).unwrap(), own, "nothing is begun anew unasked");
    assert_eq!(pellucid(&place, "events").code, 4);
}

#[test]
fn a_line_that_a_crash_or_a_full_disk_cut_is_said_to_be_that() {
    let place = place();
    let mut text = std::fs::read(log(&place)).unwrap();
    text.extend_from_slice(b"{\"action\":\"created\",\"na");
    std::fs::write(log(&place), text).unwrap();
    for _ in 0..2 {
        let said = pellucid(&place, "events verify");
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.stderr.contains("line 8 was not finished by its writer"), "{said:?}");
        pellucid(&place, "policy set rekey-after 9d").succeeded();
    }
}

#[test]
fn uses_of_a_key_are_recorded() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.secret("password", b"a Pa55word of some length");
    for words in [
        "run -- sqlite3 app.db SELECT(1)",
        "check app.db",
        "backup app.db --to app.bak",
        "verify app.bak --open",
        "restore app.bak --to sealed.db",
        "restore app.bak --to plain.db --decrypted",
        "salvage app.db --to salvaged.db",
        "salvage app.db --to clear.db --decrypted",
        "rewrap app.db --certificate pellucid",
    ] {
        let said = pellucid(&place, words);
        assert!(said.code == 0 || words.starts_with("rewrap"), "{words}: {said:?}");
    }
    let events = shown(pellucid(&place, "--json events"));
    let expected = [
        "service master key created",
        "database master key created",
        "certificate created",
        "database encrypted",
        "database opened",
        "database checked",
        "database backed up",
        "backup verified",
        "database restored",
        "database restored",
        "database salvaged",
        "database decrypted",
    ];
    assert_eq!(&events[..expected.len()], expected);
    let text = pellucid(&place, "events").succeeded();
    assert!(text.contains("plain.db` restored in clear"), "{text}");
    let opened = text.lines().find(|line| line.ends_with_trimmed("opened")).unwrap();
    assert!(opened.contains("sqlite3 [") && opened.contains("app.db`"), "by path: {opened}");
    assert_eq!(verified(&place)["exit"], 0);
}

trait Trimmed {
    fn ends_with_trimmed(&self, end: &str) -> bool;
}

impl Trimmed for &str {
    fn ends_with_trimmed(&self, end: &str) -> bool {
        self.trim_end().ends_with(end)
    }
}

#[test]
fn a_process_notes_a_database_once_and_the_program_none_twice() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let open = "import sqlite3\nfor n in range(3): sqlite3.connect('app.db').execute('SELECT count(*) FROM t').fetchone()";
    let mut command = place.command(PELLUCID);
    said(command.args(["run", "--", "/usr/bin/python3", "-c", open])).succeeded();
    pellucid(&place, "check app.db").succeeded();
    pellucid(&place, "backup app.db --to app.bak").succeeded();
    let events = shown(pellucid(&place, "--json events"));
    assert_eq!(events.iter().filter(|event| *event == "database opened").count(), 1, "{events:?}");
}

#[test]
fn where_nothing_can_be_noted_everything_opens_that_did() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    pellucid(&place, "backup app.db --to app.bak").succeeded();
    let read = ["sqlite3 app.db 'SELECT count(*) FROM t'", "check", "verify"];
    // A disk that cannot be written, for the keyring alone.
    let script = format!(
        "set -e; mount --bind keys keys; mount -o remount,bind,ro keys; ! touch keys/x 2>/dev/null; \
         {PELLUCID} run -- {}; {PELLUCID} {} app.db; {PELLUCID} {} app.bak --open; {PELLUCID} events verify; \
         ! {PELLUCID} cert export pellucid --cert-file a.pem; ! test -e a.pem",
        read[0], read[1], read[2]
    );
    let mut command = place.command("unshare");
    if !nix::unistd::getuid().is_root() {
        command.arg("--map-root-user");
    }
    let told = said(command.args(["--mount", "sh", "-c", &script]));
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains("what has to be recorded is not done"), "{told:?}");
    assert!(told.stderr.contains("events.log"), "{told:?}");
}

#[test]
fn processes_at_once_keep_a_whole_chain() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    let script = format!(
        "for n in 1 2 3 4 5 6; do {PELLUCID} --quiet policy set rekey-after ${{n}}d || exit 1; \
         {PELLUCID} run -- sqlite3 app.db 'SELECT count(*) FROM t' >/dev/null || exit 1; done"
    );
    let start = || {
        let mut command = place.command("sh");
        command.args(["-c", &script]).spawn().unwrap()
    };
    let mut writers: Vec<_> = (0..3).map(|_| start()).collect();
    let mut keys = place.command(PELLUCID);
    let mut keys = keys.args(["--quiet", "key", "regenerate", "master"]).spawn().unwrap();
    for writer in &mut writers {
        assert!(writer.wait().unwrap().success());
    }
    assert!(keys.wait().unwrap().success());
    let facts = verified(&place);
    let (lines, waiting) = (facts["lines"].as_u64().unwrap(), facts["waiting"].as_u64().unwrap());
    // What is recorded or not done is there. An opening is noted where that does not have to wait for another process.
    let (recorded, openings) = (4 + 1 + 3 * 6, 3 * 6);
    assert_eq!(facts["exit"].as_i64(), Some(0), "{facts}");
    assert!((recorded + 1..=recorded + openings).contains(&(lines + waiting)), "{facts}");
}

/// A system instance of the group `daemon`, in which nobody is.
struct System {
    place: Place,
    group: u32,
}

impl System {
    /// None without root.
    fn new() -> Option<Self> {
        if !nix::unistd::getuid().is_root() {
            println!("not root: users cannot be changed, nothing is tested");
            return None;
        }
        let group = nix::unistd::Group::from_name("daemon").unwrap().unwrap().gid.as_raw();
        let system = Self { place: Place::new(), group };
        let open = |name: &str, mode| {
            let path = system.place.path(name);
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        open("", 0o755);
        std::fs::create_dir(system.place.path("out")).unwrap();
        std::os::unix::fs::chown(system.place.path("out"), Some(NOBODY), None).unwrap();
        open("out", 0o755);
        system.place.copy_program(PELLUCID.as_ref(), "pellucid");
        open("pellucid", 0o755);
        let init =
            format!("init --system --group daemon --directory {}", system.path("").display());
        system.root(&init).succeeded();
        system.root("cert create app").succeeded();
        system.place.secret("out/password", b"a Pa55word of some length");
        std::os::unix::fs::chown(system.place.path("out/password"), Some(NOBODY), None).unwrap();
        Some(system)
    }

    fn path(&self, name: &str) -> PathBuf {
        match name {
            "" => self.place.path("instance"),
            name => self.place.path("instance").join(name),
        }
    }

    fn root(&self, words: &str) -> Said {
        let mut command = self.place.command(PELLUCID);
        command.env_remove("PELLUCID_HOME").env("PELLUCID_CONFIG", self.place.path("conf"));
        said(command.args(words.split(' ')))
    }

    fn member(&self, words: &str) -> Said {
        let mut command = self.place.command(self.place.path("pellucid").to_str().unwrap());
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(self.place.path("out"));
        command.env("PELLUCID_CONFIG", self.place.path("conf")).uid(NOBODY).gid(self.group);
        said(command.args(words.split(' ')))
    }

    fn has(&self, event: &str) -> bool {
        self.root("events").succeeded().contains(event)
    }
}

const EXPORT: &str = "cert export app --cert-file c.pem --key-file c.key --password-file password";
const BACK_UP: &str = "key backup master --file master.backup --password-file password";

#[test]
fn a_member_of_the_group_is_recorded_or_gets_no_key() {
    let Some(system) = System::new() else { return };
    let made = |name: &str| system.place.path("out").join(name).exists();
    // The mark that a key was exported is root's to make: without it there is no key.
    let told = system.member(EXPORT);
    assert!(told.code == 1 && !made("c.key") && !made("c.pem"), "{told:?}");
    assert!(told.stderr.contains("keyring/certificates/app`: Permission denied"), "{told:?}");

    let told = system.member(BACK_UP);
    assert!(told.code == 0 && made("master.backup"), "{told:?}");
    assert!(system.has("database master key backed up") && system.has("uid 65534"));
    assert!(system.member("events").succeeded().contains("database master key backed up"));
    assert_eq!(std::fs::read_dir(system.path("waiting")).unwrap().count(), 1);
    // Taken into the chain by the next writer; nobody's file is gone then.
    system.root("policy set rekey-after 5d").succeeded();
    assert_eq!(std::fs::read_dir(system.path("waiting")).unwrap().count(), 0);
    let log = std::fs::read_to_string(system.path("events.log")).unwrap();
    let line = log.lines().find(|line| line.contains("backed up")).unwrap();
    assert!(line.contains("\"noted_by_uid\":65534") && line.contains("\"mac\":"), "{line}");
    assert_eq!(system.root("events verify").code, 0);
    assert_eq!(system.member("events verify").code, 0);

    // No place to record it: nothing is written.
    std::fs::remove_file(system.place.path("out/master.backup")).unwrap();
    for name in ["waiting", "run"] {
        std::fs::set_permissions(system.path(name), PermissionsExt::from_mode(0o750)).unwrap();
    }
    let told = system.member(BACK_UP);
    assert!(told.code == 1 && !made("master.backup"), "{told:?}");
    assert!(told.stderr.contains("what has to be recorded is not done"), "{told:?}");
}

/// What another member may put in the way of an account.
#[test]
fn a_name_that_another_member_took_keeps_nobody_from_being_recorded() {
    let Some(system) = System::new() else { return };
    let waiting = system.path("waiting");
    std::fs::write(waiting.join("events-65534"), "{\"uid\":65534,\"action\":\"forged\"}\n")
        .unwrap();
    system.member(BACK_UP).succeeded();
    system.root("policy set rekey-after 5d").succeeded();
    let log = std::fs::read_to_string(system.path("events.log")).unwrap();
    let line = |word: &str| log.lines().find(|line| line.contains(word)).unwrap();
    assert!(line("backed up").contains("\"noted_by_uid\":65534"), "{log}");
    assert!(line("forged").contains("\"noted_by_uid\":0"), "{log}");
}

/// Parts are one log, joined: where a line stands is told by the part.
#[test]
fn the_log_is_listed_and_verified_over_its_parts() {
    let place = Place::new();
    place.sealed("app.db", &[]);
    place.pellucid(&["check", "app.db"]).succeeded();
    place.pellucid(&["rekey", "app.db"]).succeeded();
    let log = place.path("keys/events.log");
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let listed = place.pellucid(&["events"]).succeeded();
    // With the first lines of the chain.
    let chained = lines.iter().position(|line| line.contains("\"mac\"")).unwrap();
    let (closed, open) = (lines[..chained + 2].concat(), lines[chained + 2..].concat());
    std::fs::write(place.path("keys/events.1"), &closed).unwrap();
    std::fs::write(&log, open).unwrap();
    assert_eq!(place.pellucid(&["events"]).succeeded(), listed);
    let told = place.pellucid(&["events", "verify"]).succeeded();
    assert!(told.contains("with the part before it"), "{told}");
    let at = closed.rfind("database").or(closed.rfind("subject")).unwrap();
    let changed = format!("{}x{}", &closed[..at], &closed[at + 1..]);
    std::fs::write(place.path("keys/events.1"), changed).unwrap();
    let told = place.pellucid(&["events", "verify"]);
    assert!(told.code == 1 && told.stderr.contains("events.1`: line "), "{told:?}");
    assert_eq!(place.pellucid(&["doctor"]).code, 4);
}
