//! Openers who see another `/dev/shm`, or may do less in it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{chown, PermissionsExt};

use crate::child::Child;
use crate::{refused, Bench, ELSEWHERE, UNUSABLE};

const APART: [&str; 4] = ["unshare", "--mount", "--propagation", "private"];

/// A child with a `/dev/shm` of its own, made by commands of a shell. `None` where the machine does not allow it.
fn apart(before: &str) -> Option<Child> {
    let child = Child::try_under(&APART, before);
    if child.is_none() {
        println!("SKIP: no mount namespaces here: {before}");
    }
    child
}

const PRIVATE: &str = "mount -t tmpfs none /dev/shm";

#[test]
fn a_private_memory_keeps_out_whoever_comes_second() {
    let bench = Bench::new();
    let Some(mut inside) = apart(PRIVATE) else { return };
    let mut outside = Child::start();
    outside.open(&bench.database()).unwrap();
    inside.open(&bench.database()).unwrap();
    outside.sql("INSERT INTO t VALUES(2)").unwrap();
    refused(inside.sql("SELECT * FROM t"), ELSEWHERE);
    refused(inside.sql("INSERT INTO t VALUES(-1)"), "does not have its index");
    outside.sql("INSERT INTO t VALUES(3)").unwrap();
    outside.tell("close").unwrap();
    inside.sql("INSERT INTO t VALUES(4)").unwrap();
    outside.open(&bench.database()).unwrap();
    refused(outside.sql("SELECT * FROM t"), ELSEWHERE);
    // Killed in there, found out here: the other start's object is nobody's.
    inside.kill();
    outside.sql("INSERT INTO t VALUES(5)").unwrap();
    outside.tell("close").unwrap();
    assert_eq!(bench.rows(), [1, 2, 3, 4, 5]);
    assert!(!bench.object().exists());
}

#[test]
#[cfg(feature = "sabotage")]
fn two_indexes_would_lose_commits_and_that_is_noticed() {
    let bench = Bench::new();
    let off = "export PELLUCID_SABOTAGE=index-place";
    let Some(mut inside) = apart(&format!("{PRIVATE}; {off}")) else { return };
    let mut outside = Child::under(&[], off);
    outside.open(&bench.database()).unwrap();
    outside.sql("INSERT INTO t VALUES(2)").unwrap();
    inside.open(&bench.database()).unwrap();
    inside.sql("INSERT INTO t VALUES(3)").unwrap();
    let wrote = outside.sql("INSERT INTO t VALUES(4)");
    inside.kill();
    outside.kill();
    let seen = std::panic::catch_unwind(|| bench.rows()).ok();
    assert!(wrote.is_err() || seen != Some(vec![1, 2, 3, 4]), "nothing was lost: {seen:?}");
}

#[test]
fn another_mount_point_of_the_database_is_refused() {
    let bench = Bench::new();
    // As a container sees a single file that was mounted into it.
    let before = format!(
        "mkdir {0}/in; : > {0}/in/a.db; mount --bind {0}/a.db {0}/in/a.db",
        bench.directory.path().display()
    );
    let Some(mut inside) = apart(&before) else { return };
    let mut outside = Child::start();
    outside.open(&bench.database()).unwrap();
    outside.sql("INSERT INTO t VALUES(2)").unwrap();
    inside.open(&bench.path("in/a.db")).unwrap();
    refused(inside.sql("SELECT * FROM t"), ELSEWHERE);
    outside.sql("INSERT INTO t VALUES(3)").unwrap();
    outside.tell("close").unwrap();
    assert_eq!(bench.rows(), [1, 2, 3]);
}

#[test]
fn namespaces_with_one_memory_share_the_index() {
    let bench = Bench::new();
    let Some(mut inside) = Child::try_under(&["unshare", "--mount", "--ipc"], "") else {
        return println!("SKIP: no namespaces here");
    };
    let mut outside = Child::start();
    for child in [&mut inside, &mut outside] {
        child.open(&bench.database()).unwrap();
    }
    for number in 0..10 {
        inside.sql(&format!("INSERT INTO t VALUES({})", 2 * number + 2)).unwrap();
        outside.sql(&format!("INSERT INTO t VALUES({})", 2 * number + 3)).unwrap();
    }
    assert_eq!(inside.sql("SELECT count(*) FROM t").unwrap(), "21");
    drop((inside, outside));
    assert_eq!(bench.rows(), (1..=21).collect::<Vec<_>>());
}

#[test]
fn no_memory_is_said_in_words_and_the_file_is_the_way_back() {
    let cases = [
        ("mount -t tmpfs -o size=32k none /dev/shm", "No space left"),
        ("mount -t tmpfs -o ro none /dev/shm", "Read-only file system"),
        (
            "mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; mknod -m 444 /dev/urandom c 1 9",
            "No such file or directory",
        ),
        ("mkdir disk; mount --bind disk /dev/shm", "it is not memory"),
        ("mount -t tmpfs none /proc", "which start of the machine"),
    ];
    for (before, words) in cases {
        let bench = Bench::new();
        let before = format!("cd {}; {before}; cd /", bench.directory.path().display());
        let Some(mut child) = apart(&before) else { return };
        child.open(&bench.database()).unwrap();
        for sql in ["SELECT * FROM t", "INSERT INTO t VALUES(-1)"] {
            refused(child.sql(sql), UNUSABLE);
            refused(child.sql(sql), words);
        }
        drop(child);
        assert_eq!(bench.rows(), [1], "{before}");
    }
}

#[test]
fn a_memory_that_fills_up_fails_the_statement_and_loses_nothing() {
    let bench = Bench::new();
    let Some(mut child) = apart("mount -t tmpfs -o size=64k none /dev/shm") else { return };
    child.open(&bench.database()).unwrap();
    child.sql("PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=50").unwrap();
    child.sql("INSERT INTO t VALUES(2)").unwrap();
    let many = "WITH RECURSIVE c(x) AS (SELECT 10 UNION ALL SELECT x + 1 FROM c WHERE x < 6009) \
                INSERT INTO t SELECT zeroblob(3900) FROM c";
    refused(child.sql(many), "No space left");
    child.sql("INSERT INTO t VALUES(3)").unwrap();
    assert_eq!(child.sql("SELECT sum(x) FROM t").unwrap(), "6");
    // With the log in the database there is room again.
    child.sql("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    child.sql("INSERT INTO t VALUES(4)").unwrap();
    child.kill();
    assert_eq!(bench.rows(), [1, 2, 3, 4]);
}

/// Two accounts that no machine knows, and the group that they share.
pub const ACCOUNTS: [u32; 2] = [61_001, 61_002];
pub const GROUP: u32 = 61_000;

/// A child of an account, with a key file of its own.
pub fn child_of(account: u32, groups: &str, bench: &Bench) -> Option<Child> {
    let home = bench.homes.path().join(format!("home-{account}"));
    if !home.exists() {
        fs::create_dir(&home).unwrap();
        fs::write(home.join("key"), [7; 32]).unwrap();
        fs::set_permissions(home.join("key"), Permissions::from_mode(0o600)).unwrap();
        for path in [home.clone(), home.join("key")] {
            chown(path, Some(account), Some(account)).ok()?;
        }
    }
    let id = account.to_string();
    let starter =
        ["setpriv", "--reuid", &id, "--regid", &id, "--groups", groups, "--bounding-set", "-all"];
    let before = format!(
        "umask 022; export PELLUCID_KEY_FILE={0}/key PELLUCID_HOME={0} HOME={0}",
        home.display()
    );
    let child = Child::try_under(&starter, &before);
    if child.is_none() {
        println!("SKIP: no other accounts here");
    }
    child
}

/// A database that the first account owns, in a folder of the group.
pub fn shared(mode: u32) -> Option<Bench> {
    let bench = Bench::new();
    let directory = bench.directory.path();
    fs::set_permissions(bench.database(), Permissions::from_mode(mode)).unwrap();
    let owned = [bench.database(), directory.to_owned()]
        .iter()
        .all(|path| chown(path, Some(ACCOUNTS[0]), Some(GROUP)).is_ok());
    if !owned {
        println!("SKIP: only root gives files away");
        return None;
    }
    fs::set_permissions(directory, Permissions::from_mode(0o2775)).unwrap();
    Some(bench)
}

#[test]
fn two_accounts_of_a_group_use_one_object_whoever_comes_first() {
    for first in [0, 1] {
        let Some(bench) = shared(0o660) else { return };
        let group = GROUP.to_string();
        let Some(mut one) = child_of(ACCOUNTS[first], &group, &bench) else { return };
        let mut two = child_of(ACCOUNTS[1 - first], &group, &bench).unwrap();
        one.open(&bench.database()).unwrap();
        one.sql("INSERT INTO t VALUES(2)").unwrap();
        two.open(&bench.database()).unwrap();
        two.sql("INSERT INTO t VALUES(3)").unwrap();
        assert_eq!(one.sql("SELECT sum(x) FROM t").unwrap(), "6");
        // Its maker is killed, and the other one uses what lies there: it cannot remove it.
        one.kill();
        two.kill();
        let left = fs::metadata(bench.object()).unwrap();
        let mut two = child_of(ACCOUNTS[1 - first], &group, &bench).unwrap();
        two.open(&bench.database()).unwrap();
        two.sql("INSERT INTO t VALUES(4)").unwrap();
        assert_eq!(fs::metadata(bench.object()).unwrap().len(), left.len());
        two.tell("close").unwrap();
        // Root's own openers, and the end of it all.
        assert_eq!(bench.rows(), [1, 2, 3, 4]);
        assert!(!bench.object().exists());
    }
}

#[test]
fn an_account_that_may_only_read_reads_beside_a_writer_and_alone() {
    let Some(bench) = shared(0o640) else { return };
    // The reader gets at the files, not at the folder.
    fs::set_permissions(bench.directory.path(), Permissions::from_mode(0o2755)).unwrap();
    let group = GROUP.to_string();
    let Some(mut writer) = child_of(ACCOUNTS[0], &group, &bench) else { return };
    let mut reader = child_of(ACCOUNTS[1], &group, &bench).unwrap();
    writer.open(&bench.database()).unwrap();
    writer.sql("INSERT INTO t VALUES(2)").unwrap();
    reader.open_with(&bench.database(), "&mode=ro").unwrap();
    assert_eq!(reader.sql("SELECT sum(x) FROM t").unwrap(), "3");
    writer.sql("INSERT INTO t VALUES(3)").unwrap();
    assert_eq!(reader.sql("SELECT sum(x) FROM t").unwrap(), "6");
    // Alone, it reads the log by an index of its own.
    writer.kill();
    reader.tell("close").unwrap();
    reader.open_with(&bench.database(), "&mode=ro").unwrap();
    assert_eq!(reader.sql("SELECT sum(x) FROM t").unwrap(), "6");
    // And by the object again, once somebody has made one.
    let mut writer = child_of(ACCOUNTS[0], &group, &bench).unwrap();
    writer.open(&bench.database()).unwrap();
    writer.sql("INSERT INTO t VALUES(4)").unwrap();
    assert_eq!(reader.sql("SELECT sum(x) FROM t").unwrap(), "10");
    drop((writer, reader));
    assert_eq!(bench.rows(), [1, 2, 3, 4]);
}

#[test]
fn a_stranger_who_takes_the_name_first_gets_no_index() {
    let Some(bench) = shared(0o660) else { return };
    let object = bench.object();
    fs::write(&object, "mine").unwrap();
    fs::set_permissions(&object, Permissions::from_mode(0o666)).unwrap();
    chown(&object, Some(61_009), Some(61_009)).unwrap();
    let group = GROUP.to_string();
    let Some(mut child) = child_of(ACCOUNTS[0], &group, &bench) else {
        return fs::remove_file(&object).unwrap();
    };
    child.open(&bench.database()).unwrap();
    refused(child.sql("INSERT INTO t VALUES(-1)"), "another account's file");
    assert_eq!(fs::read(&object).unwrap(), b"mine");
    drop(child);
    // Root removes it.
    assert_eq!(bench.rows(), [1]);
    assert!(!object.exists());
}
