//! Goal: where a broker has the keyring, an account opens what it was let into and nothing else, and no account has a private key.
//!
//! Method: a system instance in a place of its own whose keyring is root's alone, a broker that runs as root, and programs of three
//! accounts, each with a database that all of them can read. Needs root to change users: another caller gets a line that says so, and
//! no verdict.

use std::io::{Read, Write};
use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::services::id;
use crate::support::{edit_headers, extension, header, said, Place, Said, PELLUCID};

/// Accounts that each Debian system has. The first one is of the group that read the keyring before.
const ACCOUNTS: [&str; 3] = ["daemon", "games", "nobody"];
const GROUP: &str = "daemon";

struct Machine {
    place: Place,
    broker: Option<Child>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Machine {
    /// An instance that the group still reads, with a database of each account; none without root.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("not root: users cannot be changed, nothing is tested");
            return None;
        }
        let place = Place::new();
        let open = |name: &str, mode| {
            std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(mode)).unwrap();
        };
        open("", 0o755);
        for file in [PELLUCID.into(), extension(&place)] {
            let file: String = file;
            let name = file.rsplit('/').next().unwrap().to_owned();
            place.copy_program(file.as_ref(), &name);
            open(&name, 0o755);
        }
        std::fs::create_dir(place.path("sockets")).unwrap();
        let machine = Self { place, broker: None };
        let instance = machine.place.path("instance");
        let init = format!("init --system --group {GROUP} --directory {}", instance.display());
        machine.root(&init).succeeded();
        for account in ACCOUNTS {
            let name = machine.place.plain(&format!("{account}.db"));
            // Root's while it is encrypted: the group alone opens it before there is a broker.
            machine.root(&format!("--quiet encrypt {account}.db")).succeeded();
            chown(&name, Some(id("passwd", account)), None).unwrap();
            std::fs::set_permissions(&name, PermissionsExt::from_mode(0o644)).unwrap();
        }
        Some(machine)
    }

    /// The same with a broker in use, and each account let into its own database.
    fn brokered() -> Option<Self> {
        let mut machine = Self::new()?;
        machine.start();
        for account in ACCOUNTS {
            machine.root(&format!("broker allow {account} {account}.db")).succeeded();
        }
        machine.root(&format!("broker enable --socket {}", machine.socket())).succeeded();
        Some(machine)
    }

    fn socket(&self) -> String {
        self.place.path("sockets/broker").display().to_string()
    }

    fn command_of_root(&self, words: &str) -> Command {
        let mut command = self.by_root(PELLUCID);
        command.args(words.split(' '));
        command
    }

    fn by_root(&self, program: &str) -> Command {
        let mut command = self.place.command(program);
        command.env_remove("PELLUCID_HOME").env("PELLUCID_CONFIG", self.place.path("conf"));
        command
    }

    fn root(&self, words: &str) -> Said {
        said(&mut self.command_of_root(words))
    }

    /// Starts the broker, and waits until it answers.
    fn start(&mut self) {
        let mut broker = self.spawned();
        let mut line = [0; 7];
        broker.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(&line, b"answers");
        self.broker = Some(broker);
    }

    /// A broker as its unit starts one, with `UMask=0077`.
    fn spawned(&self) -> Child {
        let mut command = self.by_root("/bin/sh");
        command.args(["-c", "umask 077; exec \"$0\" broker run --socket \"$1\"", PELLUCID]);
        command.arg(self.socket());
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    fn kill(&mut self) {
        if let Some(mut broker) = self.broker.take() {
            broker.kill().unwrap();
            broker.wait().unwrap();
        }
    }

    fn command_of(&self, account: &str, words: &[&str]) -> Command {
        let mut command = self.place.command(self.place.path("pellucid").to_str().unwrap());
        command.env_clear().env("PATH", "/usr/bin:/bin");
        command.env("PELLUCID_CONFIG", self.place.path("conf"));
        command.uid(id("passwd", account)).gid(id("group", GROUP)).args(words);
        command
    }

    /// As an account of the group, with nothing of root's environment.
    fn of(&self, account: &str, words: &[&str]) -> Said {
        said(&mut self.command_of(account, words))
    }

    fn reads(&self, account: &str, database: &str) -> Said {
        let name = format!("file:{database}?immutable=0");
        self.of(account, &["run", "--", "sqlite3", "-readonly", &name, "SELECT count(*) FROM t"])
    }

    /// The processes that have opened a database, as the event log has it.
    fn opened(&self, account: &str) -> Vec<u64> {
        let uid = id("passwd", account);
        let told: Value = serde_json::from_str(&self.root("--json events").succeeded()).unwrap();
        let events = told["events"].as_array().unwrap().iter();
        let opened = events.filter(|one| one["action"] == "opened" && one["by_broker"] == true);
        opened.filter(|one| one["uid"] == uid).map(|one| one["pid"].as_u64().unwrap()).collect()
    }
}

#[test]
fn an_account_opens_what_it_may_and_nothing_else() {
    let Some(machine) = Machine::brokered() else { return };
    machine.root("broker allow nobody games.db").succeeded();
    let may = |account: &str, database: &str| {
        account == database || (account == "nobody" && database == "games")
    };
    for account in ACCOUNTS {
        for database in ACCOUNTS {
            let told = machine.reads(account, &format!("{database}.db"));
            match may(account, database) {
                true => assert_eq!(told.succeeded().trim(), "200", "{account} {database}"),
                false => {
                    let is_told = told.stderr.contains("the broker does not open it");
                    assert!(told.code != 0 && is_told, "{account} {database}: {told:?}");
                }
            }
        }
        // Each key that left is in the log, and nothing else.
        let expected = ACCOUNTS.iter().filter(|database| may(account, database)).count();
        assert_eq!(machine.opened(account).len(), expected, "{account}");
    }
    // Another database's protectors under one's own file id: the wrap is bound to the file id.
    let (own, others) = (header(&machine.place.path("daemon.db")), "games.db");
    std::fs::copy(machine.place.path(others), machine.place.path("mixed.db")).unwrap();
    edit_headers(&machine.place.path("mixed.db"), |copy| {
        let known = header(&machine.place.path(others)).file_id;
        let at = copy.windows(16).position(|bytes| bytes == known).unwrap();
        copy[at..at + 16].copy_from_slice(&own.file_id);
    });
    let told = machine.reads("daemon", "mixed.db");
    assert!(told.code != 0 && !told.all().contains("200"), "{told:?}");
    // Nobody is let in by a name that has another number now, nor by a number that has another name.
    let told = machine.root("broker allow no-such-account daemon.db");
    assert!(told.code == 1 && told.stderr.contains("there is no account"), "{told:?}");
    // Somebody else's file under another name is told, and a file that was put in the way takes nothing back.
    std::fs::copy(machine.place.path("daemon.db"), machine.place.path("mine.db")).unwrap();
    let told = machine.root("broker allow games mine.db");
    assert!(told.code == 1 && told.stderr.contains("it is the database of"), "{told:?}");
    assert_ne!(machine.reads("games", "mine.db").code, 0);
    std::fs::rename(machine.place.path("games.db"), machine.place.path("aside.db")).unwrap();
    machine.place.plain("games.db");
    // Out again, from the next opening on: also where a link to another database of the account's lies in the way.
    std::fs::remove_file(machine.place.path("games.db")).unwrap();
    std::os::unix::fs::symlink("nobody.db", machine.place.path("games.db")).unwrap();
    machine.root("broker deny nobody games.db").succeeded();
    assert_eq!(machine.reads("nobody", "nobody.db").succeeded().trim(), "200");
    std::fs::remove_file(machine.place.path("games.db")).unwrap();
    std::fs::rename(machine.place.path("aside.db"), machine.place.path("games.db")).unwrap();
    assert_ne!(machine.reads("nobody", "games.db").code, 0);
    assert_eq!(machine.reads("games", "games.db").succeeded().trim(), "200");
    // A copy that becomes a database of its own keeps who opens it.
    machine.root("--yes rekey games.db --new-id").succeeded();
    assert_eq!(machine.reads("games", "games.db").succeeded().trim(), "200");
    // What is encrypted from now on is opened by its owner.
    let name = machine.place.plain("later.db");
    chown(&name, Some(id("passwd", "games")), None).unwrap();
    let told = machine.root("encrypt later.db").succeeded();
    assert!(told.contains("its owner, `games`, opens it by the broker"), "{told}");
    assert_eq!(machine.reads("games", "later.db").succeeded().trim(), "200");
    assert_ne!(machine.reads("nobody", "later.db").code, 0);
}

/// Each process asks once; in between the broker is killed and started again, at any moment.
#[test]
fn killed_and_started_again_under_load_no_opening_fails_and_the_log_has_each() {
    const EACH: usize = 25;
    let Some(mut machine) = Machine::brokered() else { return };
    let over = AtomicBool::new(false);
    let mut kills = 0;
    let mut broker = machine.broker.take();
    let machine = &machine;
    let opened: Vec<(&str, u64)> = std::thread::scope(|scope| {
        let clients: Vec<_> = ACCOUNTS
            .into_iter()
            .map(|account| {
                scope.spawn(move || {
                    let open = || {
                        let words = ["run", "--", "sqlite3", "-readonly", "-bail"];
                        let mut command = machine.command_of(account, &words);
                        command.arg(format!("{account}.db")).arg("SELECT count(*) FROM t");
                        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
                        let child = child.unwrap();
                        let pid = u64::from(child.id());
                        let told = child.wait_with_output().unwrap();
                        assert!(told.status.success() && told.stdout == b"200\n", "{told:?}");
                        (account, pid)
                    };
                    (0..EACH).map(|_| open()).collect::<Vec<_>>()
                })
            })
            .collect();
        let over = &over;
        let killer = scope.spawn(move || {
            let mut kills = 0;
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(120));
                if let Some(mut one) = broker.take() {
                    one.kill().unwrap();
                    one.wait().unwrap();
                }
                // The next one is killed once it answers, however long a start takes here.
                let mut next = machine.spawned();
                let mut line = [0; 7];
                next.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
                broker = Some(next);
                kills += 1;
            }
            (kills, broker)
        });
        let ended: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        over.store(true, Ordering::Relaxed);
        let opened = ended.into_iter().flat_map(|client| client.unwrap()).collect();
        let (counted, last) = killer.join().unwrap();
        kills = counted;
        if let Some(mut last) = last {
            last.kill().unwrap();
            last.wait().unwrap();
        }
        opened
    });
    assert_eq!(opened.len(), ACCOUNTS.len() * EACH);
    let logged = ACCOUNTS.map(|account| machine.opened(account));
    for (account, pid) in opened {
        let at = ACCOUNTS.iter().position(|one| *one == account).unwrap();
        assert!(logged[at].contains(&pid), "{account} {pid} is not in the log");
    }
    // Whole, with nothing that a killed writer left.
    machine.root("events --last 1").succeeded();
    assert!(kills > 2, "killed {kills} times only");
    println!("RESULT {kills} kills");
}

#[test]
fn no_member_of_the_group_exports_a_key() {
    let Some(machine) = Machine::brokered() else { return };
    let own = machine.place.path("own");
    std::fs::create_dir(&own).unwrap();
    chown(&own, Some(id("passwd", "daemon")), None).unwrap();
    machine.place.secret("own/password", b"a long Pa55word");
    chown(own.join("password"), Some(id("passwd", "daemon")), None).unwrap();
    let export =
        "cert export pellucid --cert-file own/c --key-file own/k --password-file own/password";
    let told = machine.of("daemon", &export.split(' ').collect::<Vec<_>>());
    assert!(told.code == 1, "{told:?}");
    assert!(!own.join("k").exists() && !own.join("c").exists());
    let others = [
        "instance export --to own/i --password-file own/password",
        "key backup master --file own/m --password-file own/password",
    ];
    for words in others {
        assert_eq!(machine.of("daemon", &words.split(' ').collect::<Vec<_>>()).code, 1, "{words}");
    }
    // No directory of the instance is anybody's but root's, and no file that was made since.
    machine.root("cert create later").succeeded();
    let mut waiting = vec![machine.place.path("instance")];
    while let Some(path) = waiting.pop() {
        let found = path.symlink_metadata().unwrap();
        assert_eq!(found.uid(), 0, "{}", path.display());
        if found.is_dir() {
            assert_eq!(found.mode() & 0o077, 0, "{}", path.display());
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    let later = machine.place.path("instance/keyring/certificates/later");
    assert_eq!(later.metadata().unwrap().mode() & 0o077, 0);
    // Nor by the broker: a backup has to be signed, and is root's to make.
    let told = machine.of("daemon", &["backup", "daemon.db", "--to", "own/b"]);
    assert!(told.code != 0 && !own.join("b").exists(), "{told:?}");
    machine.root("--quiet backup daemon.db --to own/b").succeeded();
    chown(own.join("b"), Some(id("passwd", "daemon")), None).unwrap();
    let told = machine.of("daemon", &["restore", "own/b", "--to", "own/r.db"]);
    assert!(told.code != 0 && !own.join("r.db").exists(), "{told:?}");
    // Without its line in the configuration a closed keyring does not count as one that expects nothing.
    let conf = std::fs::read_to_string(machine.place.path("conf")).unwrap();
    let line: String = conf.lines().filter(|line| line.starts_with("home")).collect();
    std::fs::write(machine.place.path("conf"), line).unwrap();
    std::fs::rename(machine.place.path("daemon.db"), machine.place.path("aside.db")).unwrap();
    machine.place.plain("daemon.db");
    let told = machine.reads("daemon", "daemon.db");
    assert!(told.code != 0 && !told.stdout.contains("200"), "{told:?}");
    std::fs::write(machine.place.path("conf"), conf).unwrap();
    assert_ne!(machine.reads("daemon", "daemon.db").code, 0);
    std::fs::rename(machine.place.path("aside.db"), machine.place.path("daemon.db")).unwrap();
    // And back: the group opens by itself again, and gets nothing else.
    machine.place.secret("instance/of-an-administrator", b"x");
    machine.root("broker disable").succeeded();
    let kept = machine.place.path("instance/of-an-administrator").metadata().unwrap();
    assert_eq!((kept.mode() & 0o777, kept.gid()), (0o600, 0));
    assert_eq!(machine.root("broker disable").code, 1, "there is nothing to give back");
    assert_eq!(machine.reads("daemon", "games.db").succeeded().trim(), "200");
    assert_eq!(machine.root("broker list").succeeded().matches(".db").count(), 3);
}

/// Who backs up gets no key: neither the database nor what was backed up opens for that account.
#[test]
fn an_account_has_backups_made_of_what_it_cannot_read() {
    let Some(machine) = Machine::brokered() else { return };
    let sets = machine.place.path("sets");
    std::fs::create_dir(&sets).unwrap();
    std::fs::set_permissions(machine.place.path("games.db"), PermissionsExt::from_mode(0o600))
        .unwrap();
    let backs_up = |words: &str| {
        machine
            .of("nobody", &format!("broker backup games.db {words}").split(' ').collect::<Vec<_>>())
    };
    let told = backs_up("--to games.bak");
    assert!(told.code != 0 && told.stderr.contains("may not have it backed up"), "{told:?}");
    machine.root("broker allow --backup nobody games.db").succeeded();
    let told = backs_up("--to games.bak");
    assert!(told.code != 0 && told.stderr.contains("no place for backups"), "{told:?}");
    machine.root("broker media sets").succeeded();
    backs_up("--to games.bak").succeeded();
    let told = backs_up("--to games.bak");
    assert!(told.code != 0, "it is there: {told:?}");
    backs_up("--to games.bak --append --differential").succeeded();
    for name in ["../conf", "/etc/passwd", ".hidden", "{db}"] {
        let told = backs_up(&format!("--to {name}"));
        assert!(told.code != 0 && told.stderr.contains("no name for a backup"), "{told:?}");
    }
    // Root's, in a directory of the account's: its group carries a copy away, and nobody but root changes it.
    let found = sets.join("nobody/games.bak").metadata().unwrap();
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (0, id("group", GROUP), 0o640));
    assert_eq!(sets.join("nobody").metadata().unwrap().mode() & 0o777, 0o755);
    assert_eq!(std::fs::read_dir(&sets).unwrap().count(), 1);
    // Neither another database that came to the path, nor a plain one that root has accepted there.
    std::fs::rename(machine.place.path("games.db"), machine.place.path("aside.db")).unwrap();
    std::fs::copy(machine.place.path("daemon.db"), machine.place.path("games.db")).unwrap();
    machine.root("--yes accept games.db").succeeded();
    let told = backs_up("--to other.bak");
    assert!(told.code != 0 && told.stderr.contains("it is not the encrypted database"), "{told:?}");
    std::fs::remove_file(machine.place.path("games.db")).unwrap();
    machine.place.plain("games.db");
    machine.root("--yes accept games.db").succeeded();
    let told = backs_up("--to plain.bak");
    assert!(told.code != 0 && told.stderr.contains("it is not the encrypted database"), "{told:?}");
    std::fs::rename(machine.place.path("aside.db"), machine.place.path("games.db")).unwrap();
    machine.root("--yes accept games.db").succeeded();
    assert_eq!(std::fs::read_dir(sets.join("nobody")).unwrap().count(), 1);
    // Another account that backs up has media of its own.
    let before = std::fs::read(sets.join("nobody/games.bak")).unwrap();
    machine.root("broker allow --backup daemon daemon.db").succeeded();
    let append = ["broker", "backup", "daemon.db", "--to", "games.bak", "--append"];
    machine.of("daemon", &append).succeeded();
    assert!(sets.join("daemon/games.bak").exists());
    assert_eq!(before, std::fs::read(sets.join("nobody/games.bak")).unwrap());
    // It verifies its backups, and reads nothing of them.
    machine.of("nobody", &["verify", "sets/nobody/games.bak"]).succeeded();
    assert_ne!(machine.reads("nobody", "games.db").code, 0);
    let told = machine.of("nobody", &["restore", "sets/nobody/games.bak", "--to", "/tmp/never.db"]);
    assert!(told.code != 0, "{told:?}");
    assert_ne!(machine.of("games", &["broker", "backup", "games.db", "--to", "x"]).code, 0);
    // Root restores it.
    machine.root("--quiet restore sets/nobody/games.bak --to restored.db").succeeded();
    let told: Value = serde_json::from_str(&machine.root("--json events").succeeded()).unwrap();
    let events = told["events"].as_array().unwrap().iter();
    let by_nobody = events.filter(|one| one["action"] == "backed up" && one["by_broker"] == true);
    // Each request is recorded before it is served: the three, and the two that found another file.
    assert_eq!(by_nobody.filter(|one| one["uid"] == id("passwd", "nobody")).count(), 5);
}

/// One account holds as many connections as it gets, says nothing, says too much, and asks what is no question.
#[test]
fn nobody_keeps_the_others_out() {
    let Some(machine) = Machine::brokered() else { return };
    let socket = machine.socket();
    let hostile = format!(
        "import socket, sys\nheld = []\nfor n in range(200):\n    s = socket.socket(socket.AF_UNIX)\n    s.connect({socket:?})\n    held.append(s)\n\
         for n, s in enumerate(held):\n    try:\n        s.send([b'', b'PLB', b'PLB\\x01\\x01\\xff\\xff\\xff\\xff', b'PLB\\x01\\x09\\0\\0\\0\\0', b'PLB\\x02\\x01\\0\\0\\0\\0',\n                b'PLB\\x01\\x02\\0\\0\\0\\x04\\xff\\xff\\xff\\xff'][n % 6])\n    except OSError: pass\nprint('ready', flush=True)\nsys.stdin.read()\n"
    );
    let mut command = Command::new("python3");
    command.args(["-c", &hostile]).uid(id("passwd", "games")).gid(id("group", "games"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 5];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    assert_eq!(&ready, b"ready");
    for account in ["daemon", "nobody"] {
        assert_eq!(machine.reads(account, &format!("{account}.db")).succeeded().trim(), "200");
    }
    drop(child.stdin.take());
    child.wait().unwrap();
    // What was in the way ends by itself; its account is served again.
    assert_eq!(machine.reads("games", "games.db").succeeded().trim(), "200");
    // Each question that is none has an answer that says so, or none at all.
    for (question, status) in [
        (&b"PLB\x01\x09\0\0\0\0"[..], Some(4)),
        (b"PLB\x02\x01\0\0\0\0", Some(4)),
        (b"PLB\x01\x01\0\0\0\x01\0", Some(4)),
        (b"PLB\x01\x02\0\0\0\x04\xff\xff\xff\xff", Some(4)),
        (b"PLB\x01\x02\0\0\0\x0d\0\0\0\x01\0\0\0\x01/\0\0\0\0", Some(4)),
        (b"PLB\x01\x01\xff\xff\xff\xff", None),
    ] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(question).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer.first().copied(), status, "{question:?}: {answer:?}");
    }
}

#[test]
fn without_the_broker_nothing_is_plain_and_nothing_opens() {
    let Some(mut machine) = Machine::brokered() else { return };
    assert_eq!(machine.reads("games", "games.db").succeeded().trim(), "200");
    machine.kill();
    let begun = Instant::now();
    let told = machine.reads("games", "games.db");
    assert!(told.code != 0 && told.stderr.contains("does not answer"), "{told:?}");
    assert!(
        begun.elapsed() >= Duration::from_secs(3),
        "a broker that is about to start is waited for"
    );
    // Somebody deletes the database, and puts a plain one in its place.
    let sealed = std::fs::read(machine.place.path("games.db")).unwrap();
    std::fs::remove_file(machine.place.path("games.db")).unwrap();
    machine.place.plain("games.db");
    let told = machine.reads("games", "games.db");
    assert!(told.code != 0 && !told.stdout.contains("200"), "{told:?}");
    machine.start();
    let told = machine.reads("games", "games.db");
    let is_told = told.stderr.contains("the keyring expects the encrypted database");
    assert!(told.code != 0 && is_told, "{told:?}");
    // However few descriptors a program may have.
    for home in ["/nonexistent", ""] {
        for most in 3..=14 {
            let code = format!("ulimit -n {most}; exec sqlite3 games.db 'SELECT count(*) FROM t'");
            let mut command = machine.command_of("games", &["run", "--", "bash", "-c", &code]);
            let told = said(command.env("HOME", home));
            assert!(told.code != 0 && !told.stdout.contains("200"), "{most}: {told:?}");
        }
    }
    // And whatever mode the file has by which the broker is found.
    for mode in [0o600, 0o666] {
        let conf = machine.place.path("conf");
        std::fs::set_permissions(&conf, PermissionsExt::from_mode(mode)).unwrap();
        let told = machine.reads("games", "games.db");
        assert!(told.code != 0 && !told.stdout.contains("200"), "{mode:o}: {told:?}");
        std::fs::set_permissions(&conf, PermissionsExt::from_mode(0o644)).unwrap();
    }
    // Another database of the instance is no more welcome there.
    std::fs::copy(machine.place.path("nobody.db"), machine.place.path("games.db")).unwrap();
    machine.root("broker allow games nobody.db").succeeded();
    let told = machine.reads("games", "games.db");
    assert!(told.code != 0 && !told.stdout.contains("200"), "{told:?}");
    std::fs::write(machine.place.path("games.db"), sealed).unwrap();
    assert_eq!(machine.reads("games", "games.db").succeeded().trim(), "200");
    // Who was let into nothing is protected by what is expected all the same.
    machine.root("broker deny games games.db").succeeded();
    machine.root("broker deny games nobody.db").succeeded();
    std::fs::remove_file(machine.place.path("games.db")).unwrap();
    machine.place.plain("games.db");
    let told = machine.reads("games", "games.db");
    let is_told = told.stderr.contains("the keyring expects the encrypted database");
    assert!(told.code != 0 && is_told, "{told:?}");

    // Who listens has to be root.
    machine.kill();
    let planted = machine.place.path("sockets/broker");
    std::fs::remove_file(&planted).unwrap();
    let code = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind({:?})\ns.listen(5)\nprint('ready', flush=True)\nc, _ = s.accept()\n\
         c.recv(9)\nc.send(b'\\0\\0\\0\\0\\x20' + bytes(32))\nc.recv(1)\n",
        planted.display().to_string()
    );
    std::fs::set_permissions(machine.place.path("sockets"), PermissionsExt::from_mode(0o777))
        .unwrap();
    let mut command = Command::new("python3");
    command.args(["-c", &code]).uid(id("passwd", "nobody")).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut ready = [0; 5];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let told = machine.reads("games", "games.db");
    assert!(told.code != 0 && !told.stdout.contains("200"), "a directory of all: {told:?}");
    std::fs::set_permissions(machine.place.path("sockets"), PermissionsExt::from_mode(0o755))
        .unwrap();
    std::fs::set_permissions(&planted, PermissionsExt::from_mode(0o777)).unwrap();
    let told = machine.reads("games", "games.db");
    assert!(told.code != 0 && told.stderr.contains("listens there, not root"), "{told:?}");
    child.kill().unwrap();
    child.wait().unwrap();

    // One that takes the question and never answers.
    std::fs::remove_file(&planted).unwrap();
    let silent = UnixListener::bind(&planted).unwrap();
    std::fs::set_permissions(&planted, PermissionsExt::from_mode(0o777)).unwrap();
    let held = std::thread::spawn(move || {
        let mut all = Vec::new();
        while let Ok((stream, _)) = silent.accept() {
            let mut byte = [0];
            if (&stream).read(&mut byte).is_ok_and(|read| read == 0) {
                break;
            }
            all.push(stream);
        }
    });
    let told = machine.reads("games", "games.db");
    assert!(told.code != 0 && told.stderr.contains("it took too long"), "{told:?}");
    drop(UnixStream::connect(&planted).unwrap());
    held.join().unwrap();
}

#[test]
fn a_broker_that_does_not_run_is_not_enabled_and_nothing_is_changed() {
    let Some(mut machine) = Machine::new() else { return };
    let before = machine.place.snapshot();
    let told = machine.root(&format!("broker enable --socket {}", machine.socket()));
    assert!(told.code == 1 && told.stderr.contains("start it first"), "{told:?}");
    assert_eq!(before, machine.place.snapshot());
    // Owners that would be locked out are named, with the command that lets them in.
    machine.start();
    let held = std::fs::File::open(machine.place.path("instance/keyring/lock")).unwrap();
    let told = machine.root(&format!("broker enable --socket {}", machine.socket()));
    for account in ACCOUNTS {
        let command = format!("pellucid broker allow {account} ");
        assert!(told.code == 1 && told.stderr.contains(&command), "{told:?}");
    }
    assert_eq!(machine.reads("daemon", "games.db").succeeded().trim(), "200");
    // By whichever way it is closed to the group, nobody of it keeps it open.
    machine.root(&format!("--yes broker enable --socket {}", machine.socket())).succeeded();
    // Who had a file of the instance open holds up nobody by that.
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    machine.root("broker allow daemon daemon.db").succeeded();
    drop(held);
    let told = machine.root("broker enable --socket sockets/broker");
    assert!(told.code == 1 && told.stderr.contains("absolute path"), "{told:?}");
    let told = machine.root(&format!("broker run --socket {}", machine.socket()));
    assert!(told.code == 1 && told.stderr.contains("another broker answers there"), "{told:?}");
    let told = machine.of("daemon", &["broker", "allow", "daemon", "games.db"]);
    assert!(told.code == 1 && told.stderr.contains("only root"), "{told:?}");
    let doctor = machine.of("daemon", &["doctor"]);
    assert!(doctor.stdout.contains("root's alone; the broker at"), "{doctor:?}");
}
