//! Goal: root encrypts, and a service under its own account goes on; where it could not, nothing is encrypted.
//!
//! Method: a system instance in a place of its own, for the group `daemon`; programs run as `nobody` with and without
//! that group, without HOME, and with the service master key as a credential in the manner of systemd. Needs root to
//! change users: another caller gets a line that says so, and no verdict.

use std::os::unix::fs::{chown, PermissionsExt};
use std::os::unix::process::CommandExt;

use crate::support::{extension, said, Place, Said, PELLUCID};

const NOBODY: u32 = 65534;

fn id(kind: &str, name: &str) -> u32 {
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
            std::fs::copy(&file, place.path(&name)).unwrap();
            open(&name, 0o755);
        }
        Some(Self { place, daemon: id("group", "daemon") })
    }

    fn root(&self, words: &str) -> Said {
        let mut command = self.place.command(PELLUCID);
        command.env_remove("PELLUCID_HOME").env("PELLUCID_CONFIG", self.place.path("conf"));
        said(command.args(words.split(' ')))
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
}

#[test]
fn a_credential_of_systemd_takes_the_place_of_the_key_file() {
    let Some(server) = Server::new() else { return };
    let instance = server.place.path("instance");
    let init = format!("init --system --group daemon --directory {}", instance.display());
    server.root(&init).succeeded();
    let daemon = id("passwd", "daemon");
    chown(server.place.path("private/app.db"), Some(daemon), Some(server.daemon)).unwrap();
    server.root("encrypt private/app.db").succeeded();
    chown(server.place.path("private/app.db"), Some(NOBODY), Some(NOBODY)).unwrap();

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
