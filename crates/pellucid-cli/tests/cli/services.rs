//! Goal: root encrypts, and a service under its own account goes on; where it could not, nothing is encrypted.
//!
//! Method: a system instance in a place of its own, for the group `daemon`; programs run as `nobody` with and without
//! that group, without HOME, and with the service master key as a credential in the manner of systemd. Needs root to
//! change users: another caller gets a line that says so, and no verdict.

use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rekey::{more_rows, wait_for, SLOW_ROWS};
use crate::support::{extension, said, Place, Said, PELLUCID};

const NOBODY: u32 = 65534;
/// Less than the 30 s that a start waits for at most; it needs a second.
const BEGUN_UNSEEN: Duration = Duration::from_secs(25);

pub fn id(kind: &str, name: &str) -> u32 {
    let file = std::fs::read_to_string(format!("/etc/{kind}")).unwrap();
    let line = file.lines().find(|line| line.split(':').next() == Some(name)).unwrap();
    line.split(':').nth(2).unwrap().parse().unwrap()
}

struct Server {
    place: Place,
    daemon: u32,
}

impl Server {
    /// A directory that everybody may enter, with `app.db` of nobody's in a folder of its own; none without root.
    fn new() -> Option<Self> {
        let mut id_of_caller = std::process::Command::new("id");
        if said(id_of_caller.arg("-u")).stdout.trim() != "0" {
            println!("not root: users cannot be changed, nothing is tested");
            return None;
        }
        let place = Place::new();
        let open = |name: &str, mode| {
            std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(mode)).unwrap();
        };
        open("", 0o755);
        std::fs::create_dir(place.path("private")).unwrap();
        place.plain("private/app.db");
        chown(place.path("private"), Some(NOBODY), Some(NOBODY)).unwrap();
        chown(place.path("private/app.db"), Some(NOBODY), Some(NOBODY)).unwrap();
        open("private", 0o700);
        // The program where nobody may run it: the build directory may be closed to others.
        for file in [PELLUCID.into(), extension(&place)] {
            let file: String = file;
            let name = file.rsplit('/').next().unwrap().to_owned();
            place.copy_program(file.as_ref(), &name);
            open(&name, 0o755);
        }
        Some(Self { place, daemon: id("group", "daemon") })
    }

    fn root(&self, words: &str) -> Said {
        let mut command = self.place.command(PELLUCID);
        command.env_remove("PELLUCID_HOME").env("PELLUCID_CONFIG", self.place.path("conf"));
        said(command.args(words.split(' ')))
    }

    /// The machine's instance, and `app.db` encrypted under it by root, for nobody to use.
    fn encrypted(&self) -> PathBuf {
        let instance = self.place.path("instance");
        let init = format!("init --system --group daemon --directory {}", instance.display());
        self.root(&init).succeeded();
        // As if nobody were a member of the group by /etc/group.
        let database = self.place.path("private/app.db");
        chown(&database, Some(id("passwd", "daemon")), Some(self.daemon)).unwrap();
        self.root("encrypt private/app.db").succeeded();
        chown(&database, Some(NOBODY), Some(NOBODY)).unwrap();
        instance
    }

    /// As nobody, in `group`, with nothing of root's environment.
    fn nobody(&self, group: u32, words: &[&str], variables: &[(&str, &str)]) -> Said {
        let mut command = self.place.command(self.place.path("pellucid").to_str().unwrap());
        command.env_clear().env("PATH", "/usr/bin:/bin").envs(variables.iter().copied());
        command.env("PELLUCID_CONFIG", self.place.path("conf")).uid(NOBODY).gid(group);
        said(command.args(words))
    }
}

const READ: [&str; 5] = ["run", "--", "sqlite3", "private/app.db", "SELECT count(*) FROM t"];
const WRITE: [&str; 5] =
    ["run", "--", "sqlite3", "private/app.db", "INSERT INTO t VALUES(NULL, 'x')"];

#[test]
fn root_encrypts_and_a_service_goes_on() {
    let Some(server) = Server::new() else { return };
    let instance = server.place.path("instance");
    let init = format!("init --system --group daemon --directory {}", instance.display());
    server.root(&init).succeeded();
    server.root(&init).succeeded(); // again: it is there
    let mode =
        |name: &str| std::fs::metadata(instance.join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!([mode(""), mode("keyring"), mode("keyring/certificates")], [0o750; 3]);

    // Nobody is not in the group yet by /etc/group: refused before the first byte.
    let before = server.place.snapshot();
    let told = server.root("--json encrypt private/app.db");
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stdout.contains("owner-locked-out"), "{told:?}");
    assert!(
        told.stderr.contains("usermod -aG daemon nobody")
            && told.stderr.contains("sudo -u nobody env PELLUCID_HOME=DIR"),
        "{told:?}"
    );
    assert_eq!(before, server.place.snapshot());

    // Once it can be read, as by a member of the group (here: the file belongs to its account).
    let daemon = id("passwd", "daemon");
    chown(server.place.path("private/app.db"), Some(daemon), Some(server.daemon)).unwrap();
    server.root("encrypt private/app.db").succeeded();
    chown(server.place.path("private/app.db"), Some(NOBODY), Some(NOBODY)).unwrap();
    assert_eq!([mode("service.key"), mode("keyring/certificates/pellucid")], [0o640; 2]);
    assert_eq!(server.nobody(server.daemon, &READ, &[]).succeeded().trim(), "200");
    server.nobody(server.daemon, &WRITE, &[]).succeeded();
    assert_eq!(server.nobody(server.daemon, &READ, &[]).succeeded().trim(), "201");
    // Without the group it is locked out, and told what it may not read.
    let told = server.nobody(NOBODY, &READ, &[]);
    assert!(told.code != 0 && told.stderr.contains("instance"), "{told:?}");
    assert!(told.stderr.contains("authorization denied"), "{told:?}");
}

#[test]
fn a_credential_of_systemd_takes_the_place_of_the_key_file() {
    let Some(server) = Server::new() else { return };
    let instance = server.encrypted();

    // LoadCredential=pellucid-smk: a directory that only the service may read.
    let credentials = server.place.path("credentials");
    std::fs::create_dir(&credentials).unwrap();
    std::fs::rename(instance.join("service.key"), credentials.join("pellucid-smk")).unwrap();
    for name in ["", "pellucid-smk"] {
        chown(credentials.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
        let mode = if name.is_empty() { 0o500 } else { 0o400 };
        std::fs::set_permissions(credentials.join(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    let variables = [("CREDENTIALS_DIRECTORY", credentials.to_str().unwrap())];
    assert_eq!(server.nobody(server.daemon, &READ, &variables).succeeded().trim(), "200");
    assert_ne!(server.nobody(server.daemon, &READ, &[]).code, 0);
}

#[test]
fn a_user_keeps_the_keys_of_before_the_machine_got_some() {
    let Some(server) = Server::new() else { return };
    let own = server.place.path("private");
    let home = [("HOME", own.to_str().unwrap())];
    let encrypt = ["--quiet", "encrypt", "private/app.db"];
    server.nobody(NOBODY, &encrypt, &home).succeeded();
    assert!(own.join(".local/share/pellucid/service.key").exists());
    let instance = server.place.path("instance");
    let init = format!("init --system --group daemon --directory {}", instance.display());
    server.root(&init).succeeded();
    // Neither the service's account nor a member of the machine's group is locked out.
    for group in [NOBODY, server.daemon] {
        assert_eq!(server.nobody(group, &READ, &home).succeeded().trim(), "200");
    }
    let status = server.nobody(NOBODY, &["status"], &home).succeeded();
    assert!(status.contains("private/app.db"), "{status}");
    // What is sealed under the machine's keys opens besides, for who may read those.
    server.place.plain("machine.db");
    server.root("--quiet encrypt machine.db").succeeded();
    let read = ["run", "--", "sqlite3", "-readonly", "machine.db", "SELECT count(*) FROM t"];
    assert_eq!(server.nobody(server.daemon, &read, &home).succeeded().trim(), "200");
    let told = server.nobody(NOBODY, &read, &home);
    assert!(told.code != 0 && told.stderr.contains("Cannot find server certificate"), "{told:?}");
    let status = ["status", "machine.db"];
    let told = server.nobody(server.daemon, &status, &home);
    assert!(told.code == 0 && !told.stderr.contains("is gone"), "{told:?}");
    let told = server.nobody(NOBODY, &status, &home);
    assert!(told.stderr.contains("is gone"), "{told:?}");
    // Root's keys are the machine's, whatever root had before; it is told where its own are.
    let mut command = server.place.command(PELLUCID);
    command.env("PELLUCID_HOME", server.place.path(".local/share/pellucid"));
    said(command.args(["--quiet", "init"])).succeeded();
    let told = server.root(&init);
    assert!(told.stderr.contains("root has keys of its own"), "{told:?}");
    assert!(server.root("status").succeeded().contains(instance.to_str().unwrap()));
}

/// A user's own keyring has an older memory of a database than the machine's: the later one counts.
#[test]
fn a_header_put_back_is_noticed_by_what_the_machines_keyring_knows() {
    let Some(server) = Server::new() else { return };
    server.encrypted();
    let database = server.place.path("private/app.db");
    let own = server.place.path("private/.local/share/pellucid");
    let home = [("HOME", server.place.path("private"))];
    let home = home.each_ref().map(|(name, path)| (*name, path.to_str().unwrap()));
    let user =
        |words: &str| server.nobody(server.daemon, &words.split(' ').collect::<Vec<_>>(), &home);
    let of_his_own = [home[0], ("PELLUCID_HOME", own.to_str().unwrap())];
    server.nobody(server.daemon, &["--quiet", "init"], &of_his_own).succeeded();
    user("--quiet rekey private/app.db").succeeded();
    assert_eq!(std::fs::read_dir(own.join("keyring/databases")).unwrap().count(), 1);

    // Off and on again by root; the header of between comes back.
    let daemon = id("passwd", "daemon");
    server.root("--quiet decrypt private/app.db --keep-container").succeeded();
    let off = std::fs::read(&database).unwrap();
    chown(&database, Some(daemon), Some(server.daemon)).unwrap();
    server.root("--quiet encrypt private/app.db").succeeded();
    chown(&database, Some(NOBODY), Some(NOBODY)).unwrap();
    user("check private/app.db").succeeded();
    std::fs::write(&database, off).unwrap();
    for told in [user("check private/app.db"), user("run -- sqlite3 private/app.db .tables")] {
        assert!(told.code != 0 && told.all().contains("older header was put back"), "{told:?}");
    }
}

const STATUS: [&str; 4] = ["--json", "scan", "status", "private/app.db"];

/// What `scan status` says of the process.
fn process(said: Said) -> Value {
    let facts: Value = serde_json::from_str(&said.succeeded()).unwrap();
    facts["scans"][0]["process"].clone()
}

/// The registry of the machine's instance: root's scans and those of its members are found by both, and by nobody else;
/// each goes on where the other one was killed.
#[test]
fn scans_are_found_again_by_every_member_of_the_machines_instance() {
    let Some(server) = Server::new() else { return };
    server.place.sqlite3("private/app.db", &more_rows(SLOW_ROWS)).succeeded();
    let run = server.encrypted().join("run");
    let mode = |path: &std::path::Path| {
        let metadata = std::fs::metadata(path).unwrap();
        (metadata.mode() & 0o7777, metadata.uid(), metadata.gid())
    };
    let entries = || -> Vec<PathBuf> {
        let paths = std::fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path());
        // While one is written anew it has a temporary name, too, and who is killed then leaves that behind.
        paths.filter(|path| path.extension().is_none()).collect()
    };
    assert_eq!(mode(&run), (0o1770, 0, server.daemon));
    let member =
        |words: &str| server.nobody(server.daemon, &words.split(' ').collect::<Vec<_>>(), &[]);
    let by_root = || process(server.root(&STATUS.join(" ")));
    let by_member = || process(server.nobody(server.daemon, &STATUS, &[]));
    let by_stranger = || process(server.nobody(NOBODY, &STATUS, &[]));
    let kill = |pid: &Value| {
        let pid = rustix::process::Pid::from_raw(pid.as_i64().unwrap() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        wait_for("its end", || by_root()["running"] == false);
    };

    // Root's.
    server.root("rekey private/app.db --background --throttle 1").succeeded();
    let pid = by_root()["pid"].clone();
    assert!(pid.is_number(), "{:?}", by_root());
    assert_eq!(by_member()["pid"], pid);
    let seen = by_stranger();
    assert!(seen["running"] == true && seen["pid"].is_null(), "by the lock alone: {seen}");
    let [entry] = &entries()[..] else { panic!("{:?}", entries()) };
    assert_eq!(mode(entry), (0o640, 0, server.daemon));
    kill(&pid);
    assert_eq!(by_member()["gone"], pid);

    // Gone on with by a member, who cannot replace what is root's; the lock tells.
    let begun = Instant::now();
    member("scan resume private/app.db --background --throttle 1").succeeded();
    assert!(begun.elapsed() < BEGUN_UNSEEN, "that it has begun is seen by the lock, too");
    assert_eq!(by_root()["running"], true);
    assert!(by_root()["pid"].is_null(), "{:?}", by_root());
    server.root("scan suspend private/app.db").succeeded();
    wait_for("its end", || by_root()["running"] == false);
    server.root("scan resume private/app.db").succeeded();
    assert_eq!(entries(), [""; 0].map(PathBuf::from));

    // A member's own: entry, owner, and root goes on with it.
    member("rekey private/app.db --background --throttle 1").succeeded();
    let pid = by_member()["pid"].clone();
    assert!(pid.is_number(), "{:?}", by_member());
    assert_eq!(by_root()["pid"], pid);
    let [entry] = &entries()[..] else { panic!("{:?}", entries()) };
    assert_eq!(mode(entry), (0o640, NOBODY, server.daemon));
    kill(&pid);
    assert_eq!(by_root()["gone"], pid);
    server.root("scan resume private/app.db").succeeded();
    assert_eq!(entries(), [""; 0].map(PathBuf::from));
    let rows = (SLOW_ROWS + 200).to_string();
    assert_eq!(server.nobody(server.daemon, &READ, &[]).succeeded().trim(), rows);
}

/// SQL Server's words for a database that cannot be written, before anything is begun (33118).
#[test]
fn what_cannot_be_written_is_neither_encrypted_nor_changed() {
    let Some(server) = Server::new() else { return };
    server.encrypted();
    server.place.plain("plain.db");
    std::fs::copy(server.place.path("private/app.db"), server.place.path("sealed.db")).unwrap();
    let before = server.place.snapshot();
    for words in [
        "encrypt plain.db",
        "rekey sealed.db",
        "rekey sealed.db --new-id",
        "rewrap sealed.db --certificate pellucid",
        "protector add sealed.db --certificate pellucid",
        "protector drop sealed.db --number 1",
        "decrypt sealed.db",
        "decrypt sealed.db --keep-container",
        "upgrade sealed.db",
        "scan suspend sealed.db",
        "scan resume sealed.db",
    ] {
        let told = server.nobody(server.daemon, &words.split(' ').collect::<Vec<_>>(), &[]);
        let text = "Cannot enable or modify database encryption on a database that is read-only, has read-only files or \
                    is not recovered. (33118)";
        assert!(told.code == 1 && told.stderr.contains(text), "{words}: {told:?}");
    }
    assert_eq!(before, server.place.snapshot());
    server.nobody(server.daemon, &["check", "sealed.db"], &[]).succeeded();
}
