//! Goal: whoever made, exported or dropped a key, used FORCE, or switched encryption is in the event log and in syslog;
//! what cannot be recorded is not done; what was refused is not recorded.
//!
//! Method: the program does each of these in a place of its own, and the log is read as a machine would. Syslog is a real
//! socket at /dev/log, in a mount namespace of the test's own.

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use crate::support::{extension, said, Place, Said, PELLUCID};
use serde_json::Value;

fn place() -> Place {
    let place = Place::new();
    place.secret("password", b"a Pa55word of some length");
    place
}

fn pellucid(place: &Place, words: &str) -> Said {
    place.pellucid(&words.split(' ').collect::<Vec<_>>())
}

fn events(place: &Place) -> Vec<Value> {
    let text = std::fs::read_to_string(place.path("keys/events.log")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// `SUBJECT ACTION` of each event, with the name where there is one.
fn told(events: &[Value]) -> Vec<String> {
    let one = |event: &Value| {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let name = text("name").rsplit('/').next().unwrap_or_default().to_owned();
        let forced = if event["forced"] == true { " forced" } else { "" };
        [text("subject"), name, text("action")].join("|") + forced
    };
    events.iter().map(one).collect()
}

#[test]
fn each_use_of_a_key_is_recorded() {
    let place = place();
    place.sealed("app.db", &[]);
    let works = |words: &str| pellucid(&place, words).succeeded();
    works("cert create two");
    works("cert export two --cert-file public.pem");
    works("cert export two --cert-file two.pem --key-file two.key --password-file password");
    works("protector add app.db --certificate two");
    works("protector drop app.db --number 1");
    works("key backup service --file service.backup --password-file password");
    works("key backup master --file master.backup --password-file password");
    works("key password add --password-file password");
    works("key password drop --password-file password");
    works("key regenerate master");
    works("key regenerate service --force");
    works("key restore service --file service.backup --password-file password");
    works("key restore master --file master.backup --password-file password");
    works("cert drop pellucid");
    works("cert drop two --force");
    works("cert import again --cert-file two.pem --key-file two.key --password-file password");
    works("decrypt app.db");
    let found = events(&place);
    let expected = "\
        service master key||created
        database master key||created
        certificate|pellucid|created
        database|app.db|encrypted
        certificate|two|created
        certificate|two|exported
        private key|two|backed up
        protector of database|app.db|added
        protector of database|app.db|dropped
        service master key||backed up
        database master key||backed up
        password of the database master key||added
        password of the database master key||dropped
        database master key||regenerated
        service master key||regenerated forced
        service master key||restored
        database master key||restored
        certificate|pellucid|dropped
        certificate|two|dropped
        certificate|again|imported
        database|app.db|decrypted";
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(told(&found), expected);
    let mut before = String::new();
    for event in &found {
        assert_eq!(event["uid"], nix::unistd::getuid().as_raw());
        assert!(event["program"].as_str().unwrap().ends_with("/pellucid"), "{event}");
        assert!(event["pid"].as_u64().unwrap() > 1, "{event}");
        let time = event["time"].as_str().unwrap();
        assert!(time.ends_with('Z') && time >= before.as_str(), "{event}");
        before = time.to_owned();
    }
    assert_eq!(found[2]["thumbprint_sha256"].as_str().unwrap().len(), 64);
    let shown = works("events --last 3");
    assert_eq!(shown.lines().count(), 2 + 3, "{shown}");
    assert!(shown.contains("database `"), "{shown}");
}

#[test]
fn an_application_that_encrypts_is_recorded_by_its_own_name() {
    let place = place();
    place.plain("app.db");
    let script = format!(
        "import sqlite3\ndb = sqlite3.connect('app.db')\ndb.enable_load_extension(True)\n\
         db.load_extension('{}')\nprint(db.execute('SELECT pellucid_encrypt()').fetchone())\n",
        extension(&place)
    );
    said(place.command("/usr/bin/python3").args(["-c", &script])).succeeded();
    let found = events(&place);
    assert_eq!(told(&found).last().unwrap(), "database|app.db|encrypted");
    assert!(found.last().unwrap()["program"].as_str().unwrap().contains("python3"));
}

#[test]
fn what_was_refused_is_not_recorded() {
    let place = place();
    place.sealed("app.db", &[]);
    let before = events(&place);
    for words in [
        "cert create pellucid",
        "cert drop pellucid",
        "cert export nobody --cert-file a.pem",
        "protector drop app.db --number 1",
        "key password drop --password-file password",
        "encrypt app.db",
    ] {
        assert_ne!(pellucid(&place, words).code, 0, "{words}");
    }
    assert_eq!(events(&place), before);
}

#[test]
fn what_cannot_be_recorded_is_not_done() {
    let place = place();
    place.sealed("app.db", &[]);
    // The keyring notes that it has seen pages at the first opening.
    place.pellucid(&["check", "app.db"]).succeeded();
    place.plain("plain.db");
    std::fs::remove_file(place.path("keys/events.log")).unwrap();
    // A disk that is full, for this file alone.
    std::os::unix::fs::symlink("/dev/full", place.path("keys/events.log")).unwrap();
    let before = place.snapshot();
    for words in [
        "cert create two",
        "cert export pellucid --cert-file a.pem --key-file a.key --password-file password",
        "cert drop pellucid --force",
        "key regenerate master",
        "key regenerate service",
        "key backup master --file b --password-file password",
        "key password add --password-file password",
        "protector add app.db --new-passphrase-file password",
        "encrypt plain.db",
        "decrypt app.db",
    ] {
        let told = pellucid(&place, words);
        assert_eq!(told.code, 1, "{words}: {told:?}");
        assert!(told.stderr.contains("events.log`: No space left"), "{words}: {told:?}");
        assert!(before == place.snapshot(), "{words}: something was changed");
    }
}

/// Runs a shell script where /dev/log is a socket of the test's; what arrived there.
fn with_syslog(place: &Place, script: &str) -> (Said, Vec<String>) {
    let _ = std::fs::remove_file(place.path("log"));
    let socket = UnixDatagram::bind(place.path("log")).unwrap();
    socket.set_nonblocking(true).unwrap();
    let devices = "null zero full random urandom";
    let setup = format!(
        "set -e; cp -a --parents $(for d in {devices}; do echo /dev/$d; done) .; \
         mount -t tmpfs none /dev; for d in {devices}; do cp -a dev/$d /dev/$d; done; \
         ln -s \"$PWD/log\" /dev/log; mkdir -p \"$PWD\"; mount -c --bind . \"$PWD\"; cd \"$PWD\"; {script}"
    );
    let mut command = place.command("unshare");
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    if !nix::unistd::getuid().is_root() {
        command.arg("--map-root-user");
    }
    let said = said(command.args(["--mount", "sh", "-c", &setup]));
    let mut lines = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(length) = socket.recv(&mut bytes) {
        lines.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
    }
    (said, lines)
}

#[test]
fn syslog_hears_of_every_event() {
    let place = place();
    let (told, lines) = with_syslog(&place, &format!("{PELLUCID} cert create one"));
    told.succeeded();
    let in_file = std::fs::read_to_string(place.path("keys/events.log")).unwrap();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for (heard, line) in lines.iter().zip(in_file.lines()) {
        // Facility auth (4), severity notice (5).
        assert!(heard.starts_with("<37>") && heard.contains("pellucid: "), "{heard}");
        assert!(heard.trim_end_matches('\0').ends_with(line), "{heard}");
    }
}

#[test]
fn syslog_gets_the_shims_lines_when_asked() {
    let place = place();
    let path = place.sealed("app.db", &[]);
    crate::support::edit(&path, |bytes| *bytes.last_mut().unwrap() ^= 1);
    let script = format!(
        "import sqlite3\ndb = sqlite3.connect(':memory:')\ndb.enable_load_extension(True)\n\
         db.load_extension('{}')\n\
         try: sqlite3.connect('app.db').execute('SELECT count(*), max(b) FROM t').fetchone()\n\
         except sqlite3.Error as error: print(error)\n",
        extension(&place)
    );
    std::fs::write(place.path("read.py"), script).unwrap();
    let read = "/usr/bin/python3 read.py";
    let (told, lines) = with_syslog(&place, &format!("PELLUCID_LOG=syslog {read}"));
    assert!(told.stdout.contains("disk I/O error"), "{told:?}");
    // Facility user (1), severity warning (4), under the application's own name.
    let heard = lines.iter().find(|line| line.contains("authentication tag does not match"));
    let heard = heard.unwrap_or_else(|| panic!("{lines:?}"));
    assert!(heard.starts_with("<12>") && heard.contains("app.db: page"), "{heard}");
    let (_, lines) = with_syslog(&place, read);
    assert!(lines.is_empty(), "not asked for: {lines:?}");
}

#[test]
fn an_instance_may_forbid_the_system_to_change_the_log() {
    let place = place();
    pellucid(&place, "cert create one").succeeded();
    let flag = |flag: &str| {
        Command::new("chattr").arg(flag).arg(place.path("keys/events.log")).output().unwrap()
    };
    // Not every file system has the attribute, and only root may set it.
    if !flag("+a").status.success() {
        eprintln!("chattr +a does not work here");
        return;
    }
    let told = pellucid(&place, "cert create two");
    let cut = std::fs::write(place.path("keys/events.log"), "");
    assert!(flag("-a").status.success());
    told.succeeded();
    assert!(cut.is_err(), "the attribute does nothing here");
    assert_eq!(events(&place).len(), 4);
}
