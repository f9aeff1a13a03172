//! Goal: xp_delete_file removes old backups of its own instance, and no other file, whatever a script names.
//!
//! Method: files that it must leave lie where it looks, with a name and a time that it would take: others' files, links, media of
//! another instance, media that are damaged, locked, not expired, in part elsewhere. Beside each lies one that it takes, so that
//! a test in which nothing is removed fails.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::support::{edit, said_with, Place, PELLUCID};

const LATER: &str = "2099-01-01T00:00:00";

struct Server(Place);

impl Server {
    fn new() -> Self {
        let server = Self(Place::new());
        server.run("CREATE DATABASE q");
        server.backup("taken.bak", "");
        server
    }

    fn run(&self, script: &str) -> String {
        said_with(self.0.command(PELLUCID).args(["sql", "-W", "-h", "-1"]), script).stdout
    }

    fn folder(&self) -> PathBuf {
        self.0.path("keys/backup")
    }

    /// A backup that is two hours old, as its name says.
    fn backup(&self, name: &str, options: &str) -> PathBuf {
        let shown = self.run(&format!("BACKUP DATABASE q TO DISK = '{name}' WITH INIT{options}"));
        assert!(shown.contains("successfully processed"), "{shown}");
        let path = self.folder().join(name);
        aged(&path);
        path
    }

    fn delete(&self, arguments: &str) -> String {
        self.run(&format!("EXECUTE master.dbo.xp_delete_file {arguments}"))
    }

    /// Everything that is old, of whatever extension; one file that may go does, and each of `kept` stays.
    #[track_caller]
    fn keeps(&self, kept: &[&Path]) {
        let before: Vec<_> = kept.iter().map(|path| std::fs::read(path).unwrap()).collect();
        let shown = self.delete(&format!("0, '.', '*', '{LATER}', 1"));
        for (path, before) in kept.iter().zip(before) {
            assert_eq!(std::fs::read(path).ok(), Some(before), "{}: {shown}", path.display());
        }
        assert!(!self.folder().join("taken.bak").exists(), "{shown}");
    }
}

fn aged(path: &Path) {
    let then = SystemTime::now() - Duration::from_secs(7200);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

#[test]
fn old_backups_go_by_extension_date_and_folder() {
    let server = Server::new();
    std::fs::create_dir_all(server.folder().join("sub/deeper")).unwrap();
    let sub = server.backup("sub/a.bak", "");
    let deeper = server.backup("sub/deeper/b.bak", "");
    let taken = server.folder().join("taken.bak");
    for arguments in [
        format!("0, '{}', 'trn', '{LATER}', 1", server.folder().display()),
        "0, '.', 'bak', '2020-01-01T00:00:00', 1".to_owned(),
        format!("0, 'sub/deeper', 'dif', '{LATER}'"),
    ] {
        assert_eq!(server.delete(&arguments).trim(), "", "{arguments}");
        assert!(taken.exists() && sub.exists() && deeper.exists(), "{arguments}");
    }
    server.delete(&format!("0, '.', 'BAK', '{LATER}'"));
    assert!(!taken.exists() && sub.exists());
    // The first level below, and no further.
    server.delete(&format!("0, '{}', N'bak', N'{LATER}', 1", server.folder().display()));
    assert!(!sub.exists() && deeper.exists());
    // One file by its name.
    server.delete(&format!("0, 'sub/deeper/b.bak', N'bak', N'{LATER}'"));
    assert!(!deeper.exists());
    // By the folder of a drive.
    server.run("BACKUP DATABASE q TO DISK = 'D:\\x.bak'");
    let drive = server.0.path("keys/drives/D/x.bak");
    aged(&drive);
    server.delete(&format!("0, 'D:\\', N'bak', N'{LATER}'"));
    assert!(!drive.exists());
    // The history stays, as SQL Server's does.
    assert_eq!(server.run("SET NOCOUNT ON SELECT COUNT(*) FROM msdb.dbo.backupset").trim(), "4");
    let shown = server.delete("1, '.', 'txt', '2099-01-01'");
    assert!(shown.contains("'xp_delete_file of reports' is not supported."), "{shown}");
}

#[test]
fn a_file_that_is_no_medium_stays() {
    let server = Server::new();
    let folder = server.folder();
    let notes = folder.join("notes.bak");
    std::fs::write(&notes, "notes").unwrap();
    let empty = folder.join("empty.bak");
    std::fs::write(&empty, "").unwrap();
    let database = folder.join("database.bak");
    std::fs::copy(server.0.path("keys/data/q.db"), &database).unwrap();
    // It begins as a medium does.
    let begun = folder.join("begun.bak");
    let medium = std::fs::read(folder.join("taken.bak")).unwrap();
    std::fs::write(&begun, &medium[..64]).unwrap();
    let kept = [&*notes, &empty, &database, &begun];
    kept.iter().for_each(|path| aged(path));
    server.keeps(&kept);
}

#[test]
fn a_medium_that_is_not_as_it_was_written_stays() {
    let server = Server::new();
    let damaged = server.backup("damaged.bak", "");
    edit(&damaged, |bytes| {
        let end = bytes.len() - 9;
        bytes[end] ^= 1;
    });
    let cut = server.backup("cut.bak", "");
    edit(&cut, |bytes| bytes.truncate(bytes.len() - 40));
    let fresh = server.backup("fresh.bak", ", RETAINDAYS = 3");
    let held = server.backup("held.bak", "");
    [&damaged, &cut].iter().for_each(|path| aged(path));
    let lock = std::fs::File::open(&held).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    server.keeps(&[&damaged, &cut, &fresh, &held]);
}

#[test]
fn a_medium_of_another_instance_stays() {
    let (server, other) = (Server::new(), Server::new());
    let foreign = server.folder().join("foreign.bak");
    std::fs::copy(other.folder().join("taken.bak"), &foreign).unwrap();
    aged(&foreign);
    // Reading it makes it no backup of this instance's.
    server.run(
        "RESTORE HEADERONLY FROM DISK = 'foreign.bak' RESTORE VERIFYONLY FROM DISK = 'foreign.bak'",
    );
    let history = server.0.pellucid(&["history", "rebuild", foreign.to_str().unwrap()]);
    assert_eq!(history.code, 0, "{history:?}");
    server.keeps(&[&foreign]);
}

#[test]
fn no_link_is_followed() {
    let server = Server::new();
    let outside = server.0.path("outside");
    std::fs::create_dir(&outside).unwrap();
    let target = outside.join("a.bak");
    let shown = server.run(&format!("BACKUP DATABASE q TO DISK = '{}'", target.display()));
    assert!(shown.contains("successfully"), "{shown}");
    aged(&target);
    let folder = server.folder();
    symlink(&target, folder.join("link.bak")).unwrap();
    symlink(&outside, folder.join("linked")).unwrap();
    server.keeps(&[&target, &folder.join("link.bak")]);
    assert!(folder.join("linked").is_symlink());
    for named in ["linked", "linked/a.bak", "link.bak"] {
        let shown = server.delete(&format!("0, '{named}', 'bak', '{LATER}', 1"));
        assert!(shown.contains("Msg 22049"), "{named}: {shown}");
        assert!(target.exists(), "{named}");
    }
}

#[test]
fn a_path_outside_is_refused() {
    let server = Server::new();
    let outside = server.0.path("keys/elsewhere.bak");
    let shown = server.run(&format!("BACKUP DATABASE q TO DISK = '{}'", outside.display()));
    assert!(shown.contains("successfully"), "{shown}");
    aged(&outside);
    let folder = server.folder().display().to_string();
    let home = server.0.path("keys").display().to_string();
    for path in [
        home.clone(),
        outside.display().to_string(),
        format!("{folder}/.."),
        format!("{folder}/../elsewhere.bak"),
        format!("{folder}x"),
        "..".to_owned(),
        "/".to_owned(),
        "D:\\..\\..".to_owned(),
        "\\\\server\\share".to_owned(),
    ] {
        let shown = server.delete(&format!("0, '{path}', 'bak', '{LATER}', 1"));
        assert!(shown.contains("Msg 50012"), "{path}: {shown}");
        assert!(outside.exists(), "{path}");
    }
    server.keeps(&[&outside]);
}

#[test]
fn files_of_one_medium_go_together() {
    let server = Server::new();
    let shown = server.run("BACKUP DATABASE q TO DISK = 'one.bak', DISK = 'two.bak'");
    assert!(shown.contains("successfully"), "{shown}");
    let [one, two] = ["one.bak", "two.bak"].map(|name| server.folder().join(name));
    [&one, &two].iter().for_each(|path| aged(path));
    let away = server.0.path("two.bak");
    std::fs::rename(&two, &away).unwrap();
    server.keeps(&[&one, &away]);
    std::fs::rename(&away, &two).unwrap();
    let shown = server.delete(&format!("0, '.', 'bak', '{LATER}'"));
    assert!(!one.exists() && !two.exists(), "{shown}");
}
