//! Goal: nothing that an administrator has made in `master` and `msdb` is lost with a machine: tables, procedures, the history.
//!
//! Method: an instance with a marker in all of them is backed up, broken and restored, here and on another instance; every file
//! that was written is searched for the marker.

use std::path::Path;

use crate::sql_server::{errors, Server};
use crate::support::{edit, Held, PELLUCID};

const MARK: &str = "birch-and-alder";

/// An instance with a table of `master`, procedures of two databases and a history.
fn filled() -> Server {
    let server = Server::with(&[]);
    let script = format!(
        "CREATE TABLE kept(id int, note nvarchar(40));
INSERT INTO kept VALUES (1, '{MARK}');
CREATE DATABASE app;
GO
CREATE PROCEDURE sp_shared AS PRINT 'shared {MARK}'
GO
USE app
GO
CREATE PROCEDURE own AS PRINT 'own {MARK}'
"
    );
    let told = server.run(&script).all();
    assert!(!told.contains("Msg "), "{told}");
    server
}

fn numbers(told: &str) -> Vec<String> {
    let number = |(number, _): (String, String)| number.trim_start_matches("Msg ").to_owned();
    errors(told).into_iter().map(number).collect()
}

#[track_caller]
fn runs(server: &Server, script: &str) -> String {
    let told = said(server, script);
    assert!(!told.contains("Msg "), "{script}\n{told}");
    told
}

/// What a script says; `@/` is the folder of the test.
fn said(server: &Server, script: &str) -> String {
    server.run(&script.replace("@/", &server.0.path("").display().to_string())).all()
}

/// Whatever was made is there and works.
#[track_caller]
fn has_all(server: &Server) {
    let told = runs(server, "SELECT note FROM master.dbo.kept; EXEC sp_shared; EXEC app.dbo.own;");
    for line in [MARK.to_owned(), format!("shared {MARK}"), format!("own {MARK}")] {
        assert!(told.lines().any(|told| told == line), "{line}\n{told}");
    }
}

fn sealed(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    assert!(!bytes.windows(MARK.len()).any(|window| window == MARK.as_bytes()), "{path:?}");
}

#[test]
fn what_was_dropped_comes_back() {
    let server = filled();
    let made = runs(
        &server,
        "BACKUP DATABASE master TO DISK = '@/master.bak' WITH INIT, CHECKSUM, STATS = 50;
BACKUP DATABASE msdb TO DISK = '@/msdb.bak' WITH INIT, CHECKSUM;
RESTORE VERIFYONLY FROM DISK = '@/master.bak'; RESTORE VERIFYONLY FROM DISK = '@/msdb.bak';",
    );
    assert_eq!(made.matches("is valid").count(), 2, "{made}");
    assert!(made.contains("BACKUP CERTIFICATE write them to files"), "{made}");
    assert_eq!(made.matches("opens with the keys of this instance alone").count(), 2, "{made}");
    ["master.bak", "msdb.bak"].iter().for_each(|name| sealed(&server.0.path(name)));
    assert_eq!(
        server.rows("SELECT database_name, type FROM msdb.dbo.backupset ORDER BY backup_set_id"),
        ["master|D", "msdb|D"]
    );
    runs(&server, "DROP TABLE kept; DROP PROCEDURE sp_shared; DROP PROCEDURE app.dbo.own;");
    runs(
        &server,
        "RESTORE DATABASE master FROM DISK = '@/master.bak' WITH REPLACE;
RESTORE DATABASE msdb FROM DISK = '@/msdb.bak' WITH REPLACE;",
    );
    has_all(&server);
    let restored = "SELECT destination_database_name, replace FROM msdb.dbo.restorehistory";
    assert_eq!(server.rows(restored), ["msdb|1"], "that of master is what msdb does not have");
    assert_eq!(server.rows("SELECT COUNT(*) FROM sys.dm_exec_requests"), ["0"]);
    let status = server.0.pellucid(&["status"]).all();
    assert!(!status.contains("Missing"), "{status}");
    server.0.pellucid(&["check", "keys/master.db", "keys/msdb.db"]).succeeded();
    // A copy of it under another name, to look into.
    runs(
        &server,
        "RESTORE DATABASE old FROM DISK = '@/msdb.bak' WITH MOVE 'MSDBData' TO '@/old.db';
IF (SELECT COUNT(*) FROM old.dbo.pellucid_module) <> 2 THROW 50001, 'lost', 1;",
    );
}

#[test]
fn what_is_refused_changes_nothing() {
    let server = filled();
    runs(
        &server,
        "BACKUP DATABASE master TO DISK = '@/master.bak'; BACKUP DATABASE msdb TO DISK = '@/msdb.bak';
BACKUP DATABASE app TO DISK = '@/app.bak'",
    );
    for (statement, wanted) in [
        ("RESTORE DATABASE msdb FROM DISK = '@/msdb.bak'", "3159"),
        ("RESTORE DATABASE msdb FROM DISK = '@/master.bak' WITH REPLACE", "3154"),
        ("RESTORE DATABASE master FROM DISK = '@/msdb.bak' WITH REPLACE", "3154"),
        // A set in clear.
        ("RESTORE DATABASE msdb FROM DISK = '@/app.bak' WITH REPLACE", "50008"),
        ("RESTORE DATABASE msdb FROM DISK = '@/msdb.bak' WITH REPLACE, NORECOVERY", "50001"),
        (
            "RESTORE DATABASE msdb FROM DISK = '@/msdb.bak' WITH REPLACE, MOVE 'msdb' TO '@/x.db'",
            "50001",
        ),
        ("RESTORE DATABASE model FROM DISK = '@/msdb.bak' WITH REPLACE", "50001"),
        ("RESTORE LOG msdb FROM DISK = '@/msdb.bak'", "50001"),
        ("USE msdb; RESTORE DATABASE msdb FROM DISK = '@/msdb.bak' WITH REPLACE", "3102"),
        ("BACKUP DATABASE master TO DISK = '@/d.bak' WITH DIFFERENTIAL", "3024"),
        ("BACKUP DATABASE msdb TO DISK = '@/d.bak' WITH DIFFERENTIAL", "50001"),
        ("BACKUP LOG master TO DISK = '@/d.bak'", "4212"),
        ("BACKUP LOG msdb TO DISK = '@/d.bak'", "4208"),
        ("BACKUP LOG model TO DISK = '@/d.bak'", "50001"),
        ("BEGIN TRAN; RESTORE DATABASE master FROM DISK = '@/master.bak' WITH REPLACE", "3021"),
    ] {
        let told = said(&server, statement);
        assert_eq!(numbers(&told).first().map(String::as_str), Some(wanted), "{statement}\n{told}");
    }
    // Nothing is in it: a loop over the system databases goes on.
    let told = said(&server, "BACKUP DATABASE model TO DISK = '@/d.bak' WITH INIT; PRINT 'behind'");
    let note = "Database 'model' has no file here and nothing in it: no backup was written.";
    assert!(told.contains(note) && told.contains("behind"), "{told}");
    assert!(numbers(&told).is_empty(), "{told}");
    assert!(!server.0.path("d.bak").exists());
    has_all(&server);
    // A damaged set leaves what is there.
    edit(&server.0.path("master.bak"), |bytes| {
        let at = bytes.len() / 2;
        bytes[at..at + 64].fill(7);
    });
    let told = said(&server, "RESTORE DATABASE master FROM DISK = '@/master.bak' WITH REPLACE");
    assert!(!numbers(&told).is_empty(), "{told}");
    has_all(&server);
}

/// 3101, as SQL Server wants it for itself.
#[test]
fn another_session_keeps_it() {
    let server = filled();
    runs(&server, "BACKUP DATABASE msdb TO DISK = '@/msdb.bak'");
    let mut other = server.0.command(PELLUCID);
    other.arg("sql");
    let mut held = Held::start_with(other, "PRINT 'ready'\nGO\n");
    let statement = "RESTORE DATABASE msdb FROM DISK = '@/msdb.bak' WITH REPLACE";
    let told = said(&server, statement);
    assert_eq!(numbers(&told)[0], "3101", "{told}");
    held.end();
    runs(&server, statement);
    has_all(&server);
}

/// The documented way: `instance export`, the backups; on the other machine `instance import`, the restores.
#[test]
fn another_machine_gets_all_of_it() {
    let old = filled();
    old.0.secret("password", b"correct horse battery staple");
    runs(
        &old,
        "BACKUP DATABASE app TO DISK = '@/app.bak'; BACKUP DATABASE master TO DISK = '@/master.bak';
BACKUP DATABASE msdb TO DISK = '@/msdb.bak'",
    );
    let export = ["instance", "export", "--to", "k.bundle", "--password-file", "password"];
    old.0.pellucid(&export).succeeded();
    let new = crate::support::Place::new();
    for name in ["app.bak", "master.bak", "msdb.bak", "k.bundle", "password"] {
        std::fs::copy(old.0.path(name), new.path(name)).unwrap();
    }
    let import = ["instance", "import", "k.bundle", "--password-file", "password"];
    let imported = new.pellucid(&import).succeeded();
    assert!(imported.contains("key of the history"), "{imported}");
    let new = Server(new);
    runs(
        &new,
        "RESTORE DATABASE msdb FROM DISK = '@/msdb.bak' WITH REPLACE;
RESTORE DATABASE master FROM DISK = '@/master.bak';
RESTORE DATABASE app FROM DISK = '@/app.bak' WITH REPLACE, MOVE 'app' TO '@/app.db';",
    );
    has_all(&new);
    let known =
        "SELECT database_name FROM msdb.dbo.backupset WHERE type = 'D' ORDER BY backup_set_id";
    assert!(new.rows(known).starts_with(&["app".to_owned(), "master".to_owned()]));
}

/// Another instance that has a history of its own takes sets under a certificate.
#[test]
fn a_certificate_opens_them_elsewhere() {
    let old = filled();
    let made = runs(
        &old,
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'correct horse battery staple';
CREATE CERTIFICATE mover WITH SUBJECT = 'mover';
BACKUP CERTIFICATE mover TO FILE = '@/mover.cer'
  WITH PRIVATE KEY (FILE = '@/mover.key', ENCRYPTION BY PASSWORD = 'correct horse battery staple');
BACKUP DATABASE master TO DISK = '@/master.bak'
  WITH ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = mover);
BACKUP DATABASE msdb TO DISK = '@/msdb.bak'
  WITH ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = mover);",
    );
    assert!(!made.contains("opens with the keys of this instance alone"), "{made}");
    let new = Server::with(&[]);
    for name in ["master.bak", "msdb.bak", "mover.cer", "mover.key"] {
        std::fs::copy(old.0.path(name), new.0.path(name)).unwrap();
    }
    let restore = "RESTORE DATABASE msdb FROM DISK = '@/msdb.bak' WITH REPLACE;
RESTORE DATABASE master FROM DISK = '@/master.bak';";
    assert_eq!(numbers(&said(&new, restore))[0], "33111");
    runs(
        &new,
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'correct horse battery staple';
CREATE CERTIFICATE mover FROM FILE = '@/mover.cer'
  WITH PRIVATE KEY (FILE = '@/mover.key', DECRYPTION BY PASSWORD = 'correct horse battery staple');",
    );
    runs(&new, restore);
    let told = runs(&new, "SELECT note FROM kept; EXEC sp_shared;");
    assert!(told.contains(&format!("shared {MARK}")), "{told}");
    ["keys/master.db", "keys/msdb.db"].iter().for_each(|name| sealed(&new.0.path(name)));
}

/// DBCC CHECKDB, `check` and `doctor` name a file of the instance that is damaged, plain or under another key.
#[test]
fn the_instance_s_own_files_are_checked() {
    let server = filled();
    let other = filled();
    let path = |server: &Server, file: &str| server.0.path("keys").join(file);
    let told = runs(&server, "DBCC CHECKDB (master); DBCC CHECKDB ('msdb'); DBCC CHECKDB (model)");
    for name in ["master", "msdb"] {
        let line = format!(
            "CHECKDB found 0 allocation errors and 0 consistency errors in database '{name}'."
        );
        assert!(told.contains(&line), "{told}");
    }
    server.0.pellucid(&["check", "keys/master.db", "keys/msdb.db"]).succeeded();
    let doctor = server.0.pellucid(&["doctor"]);
    assert!(!doctor.stdout.contains("!!  instance"), "{doctor:?}");
    let whole = std::fs::read(path(&server, "master.db")).unwrap();
    let damaged = |bytes: &mut Vec<u8>| {
        let at = bytes.len() - 2000;
        bytes[at..at + 16].fill(7);
    };
    for what in ["damaged", "plain", "another key"] {
        let file = path(&server, "master.db");
        match what {
            "damaged" => edit(&file, damaged),
            "plain" => {
                std::fs::remove_file(&file).unwrap();
                let plain = rusqlite::Connection::open(&file).unwrap();
                plain.execute_batch("CREATE TABLE kept(note)").unwrap();
            }
            _ => drop(std::fs::copy(path(&other, "master.db"), &file).unwrap()),
        }
        let told = server.run("DBCC CHECKDB (master)").all();
        assert!(!numbers(&told).is_empty() && told.contains("master"), "{what}\n{told}");
        let told = server.run("DBCC CHECKDB (msdb)").all();
        assert_eq!(numbers(&told), Vec::<String>::new(), "{what}\n{told}");
        let check = server.0.pellucid(&["check", "keys/master.db"]);
        assert!(check.code != 0 && check.all().contains("master.db"), "{what}\n{check:?}");
        let doctor = server.0.pellucid(&["doctor"]);
        let named = |line: &str| line.starts_with("!!  instance") && line.contains("master.db");
        assert!(doctor.code == 4 && doctor.stdout.lines().any(named), "{what}\n{doctor:?}");
        std::fs::write(&file, &whole).unwrap();
    }
    std::fs::copy(path(&other, "msdb.db"), path(&server, "msdb.db")).unwrap();
    let doctor = server.0.pellucid(&["doctor"]);
    let named = |line: &str| line.starts_with("!!  instance") && line.contains("msdb.db");
    assert!(doctor.stdout.lines().any(named), "{doctor:?}");
}

/// A job that is asked for, and one that was due long ago.
const JOBS: &str = "EXEC msdb.dbo.sp_add_job 'asked'
EXEC msdb.dbo.sp_add_jobstep @job_name = 'asked', @step_name = 's', @command = N'CREATE DATABASE of_asked'
EXEC msdb.dbo.sp_add_jobserver @job_name = 'asked'
EXEC msdb.dbo.sp_start_job 'asked'
EXEC msdb.dbo.sp_add_job 'due'
EXEC msdb.dbo.sp_add_jobstep @job_name = 'due', @step_name = 's', @command = N'CREATE DATABASE of_due'
EXEC msdb.dbo.sp_add_jobserver @job_name = 'due'
EXEC msdb.dbo.sp_add_jobschedule @job_name = 'due', @name = 'w', @freq_type = 4, @freq_interval = 1;";

/// Whoever makes a backup of msdb writes owners, schedules and requests into it: nobody's agent believes them.
#[test]
fn jobs_of_a_restored_msdb_run_once_they_are_enabled() {
    let server = filled();
    runs(&server, JOBS);
    runs(
        &server,
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'correct horse battery staple';
CREATE CERTIFICATE shared WITH SUBJECT = 'shared';",
    );
    let history = || crate::support::history(&server.0);
    let make_due =
        || history().execute("UPDATE pellucid_job_schedule SET next_run = 1", []).unwrap();
    make_due();
    runs(
        &server,
        "BACKUP DATABASE msdb TO DISK = '@/msdb.bak'
  WITH ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = shared);",
    );
    let made = "SELECT COUNT(*) FROM sys.databases WHERE name LIKE 'of[_]%'";
    let enabled = "SELECT CONCAT(name, ' ', enabled) FROM msdb.dbo.sysjobs ORDER BY name";
    let told = runs(&server, "RESTORE DATABASE msdb FROM DISK = '@/msdb.bak' WITH REPLACE");
    assert!(told.contains("2, are disabled") && told.contains("sp_update_job"), "{told}");
    make_due();
    assert_eq!(server.0.pellucid(&["agent", "--once"]).succeeded(), "");
    assert_eq!(server.rows(made), ["0"]);
    assert_eq!(server.rows(enabled), ["asked 0", "due 0"]);
    // Disabled once: what is enabled here runs, and stays so.
    runs(&server, "EXEC msdb.dbo.sp_update_job @job_name = 'due', @enabled = 1");
    make_due();
    assert_eq!(server.0.pellucid(&["agent", "--once"]).succeeded(), "due: succeeded\n");
    assert_eq!(server.rows(enabled), ["asked 0", "due 1"]);
    assert_eq!(server.rows(made), ["1"]);
    // Sealed by what opens sets, it is no file of the instance's own.
    let to = server.0.path("keys/msdb.db");
    let to = to.to_str().unwrap();
    let restore = ["restore", "msdb.bak", "--to", to, "--replace", "--certificate", "shared"];
    server.0.pellucid(&restore).succeeded();
    let agent = server.0.pellucid(&["agent", "--once"]);
    assert!(agent.code != 0 && agent.stderr.contains("history rebuild"), "{agent:?}");
    server.0.pellucid(&["history", "rebuild", "msdb.bak"]).succeeded();
    runs(&server, "RESTORE DATABASE msdb FROM DISK = '@/msdb.bak' WITH REPLACE");
    assert_eq!(server.rows(enabled), ["asked 0", "due 0"]);
}

/// A set brings a schema along, too: nothing of it comes into msdb, and what reads as no msdb changes nothing.
#[test]
fn rows_alone_come_out_of_a_set() {
    const AGAIN: &str = "UPDATE pellucid_job SET enabled = 1; UPDATE pellucid_job_schedule SET next_run = 1;
INSERT OR REPLACE INTO pellucid_job_request SELECT job_id, '2026-01-01', 1, 'root' FROM pellucid_job;";
    let trigger = |when: &str| format!("CREATE TRIGGER x {when} BEGIN {AGAIN} END;");
    let odd = |what: &str| {
        format!("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET {what} WHERE name = 'x'; PRAGMA writable_schema = OFF")
    };
    let of_history = trigger("AFTER INSERT ON backupset");
    let as_view = "ALTER TABLE pellucid_job RENAME TO hidden; CREATE VIEW pellucid_job AS SELECT * FROM hidden;";
    let ignored = "CREATE TABLE kept AS SELECT * FROM pellucid_job; DROP TABLE pellucid_job;
CREATE TABLE pellucid_job(job_id TEXT PRIMARY KEY, name, owner_uid, enabled UNIQUE ON CONFLICT IGNORE, description, start_step_id,
 category_id, notify_level_eventlog, notify_level_email, notify_level_netsend, notify_level_page, notify_email_operator_id,
 notify_netsend_operator_id, notify_page_operator_id, delete_level, date_created, date_modified, version_number, server_id,
 last_run_outcome, last_outcome_message, last_run_date, last_run_time, last_run_duration);
INSERT INTO pellucid_job SELECT * FROM kept WHERE name = 'due'; UPDATE kept SET enabled = 0;
INSERT INTO pellucid_job SELECT * FROM kept WHERE name = 'asked';";
    for (what, crafted, is_taken) in [
        ("of a setting", trigger("AFTER INSERT ON pellucid_setting"), true),
        ("of jobs", trigger("AFTER UPDATE ON pellucid_job WHEN new.enabled = 0"), true),
        ("of the history", of_history.clone(), true),
        ("of another case", of_history.clone() + &odd("type = 'TRIGGER'"), true),
        ("of another name", of_history + &odd("name = 'X'"), true),
        ("a view", as_view.to_owned(), false),
        ("ignored", ignored.to_owned(), true),
        (
            "an index",
            "CREATE UNIQUE INDEX x ON pellucid_job(enabled) WHERE enabled = 0".to_owned(),
            true,
        ),
        (
            "a row of nothing",
            "INSERT INTO pellucid_job_schedule VALUES (777, 'no job', 1)".to_owned(),
            true,
        ),
        ("bytes for a name", "UPDATE pellucid_database SET name = x'00ff'".to_owned(), false),
        ("text for a number", "UPDATE pellucid_schedule SET freq_type = 'daily'".to_owned(), false),
        (
            "the last number",
            "UPDATE sqlite_sequence SET seq = 9223372036854775807".to_owned(),
            true,
        ),
    ] {
        let server = filled();
        runs(&server, JOBS);
        let history = crate::support::history(&server.0);
        history.execute("UPDATE pellucid_job_schedule SET next_run = 1", []).unwrap();
        // The set is another instance's: what it is made of is not this one's any more.
        std::fs::copy(server.0.path("keys/msdb.db"), server.0.path("kept.db")).unwrap();
        history.execute_batch(&crafted).unwrap();
        drop(history);
        let made = said(&server, "BACKUP DATABASE msdb TO DISK = '@/msdb.bak' WITH FORMAT");
        std::fs::copy(server.0.path("kept.db"), server.0.path("keys/msdb.db")).unwrap();
        if !server.0.path("msdb.bak").exists() {
            assert!(!numbers(&made).is_empty(), "{what}\n{made}");
            continue;
        }
        let told = said(&server, "RESTORE DATABASE msdb FROM DISK = '@/msdb.bak' WITH REPLACE");
        let jobs =
            server.rows("SELECT CONCAT(name, ' ', enabled) FROM msdb.dbo.sysjobs ORDER BY name");
        assert!(!server.0.path("keys/.msdb.db.restored").exists(), "{what}");
        if !is_taken {
            assert!(!numbers(&told).is_empty(), "{what}\n{told}");
            assert_eq!(jobs, ["asked 1", "due 1"], "{what}");
            has_all(&server);
            continue;
        }
        assert!(told.contains("are disabled"), "{what}\n{told}");
        runs(&server, "BACKUP DATABASE master TO DISK = '@/behind.bak'");
        assert_eq!(server.0.pellucid(&["agent", "--once"]).succeeded(), "", "{what}");
        assert_eq!(jobs, ["asked 0", "due 0"], "{what}");
        runs(
            &server,
            "EXEC msdb.dbo.sp_update_job @job_name = 'due', @enabled = 1; EXEC msdb.dbo.sp_start_job 'due'
EXEC msdb.dbo.sp_add_schedule @schedule_name = 'another', @freq_type = 4, @freq_interval = 1",
        );
        assert_eq!(
            server.0.pellucid(&["agent", "--once"]).succeeded(),
            "due: succeeded\n",
            "{what}"
        );
        has_all(&server);
        let left = crate::support::history(&server.0).query_row(
            "SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR name IN ('x', 'X', 'hidden', 'kept')",
            [],
            |row| row.get(0),
        );
        assert_eq!(left, Ok(0), "{what}");
    }
}

/// Any key of the keyring would open it.
#[test]
fn another_database_in_the_place_of_an_own_file_is_refused() {
    let server = filled();
    runs(&server, JOBS);
    crate::support::history(&server.0)
        .execute("UPDATE pellucid_job_schedule SET next_run = 1", [])
        .unwrap();
    runs(
        &server,
        "BACKUP DATABASE msdb TO DISK = '@/msdb.bak'; BACKUP DATABASE master TO DISK = '@/master.bak';
RESTORE DATABASE old FROM DISK = '@/msdb.bak' WITH MOVE 'MSDBData' TO '@/msdb.db';
RESTORE DATABASE older FROM DISK = '@/master.bak' WITH MOVE 'master' TO '@/master.db';",
    );
    for name in ["msdb.db", "master.db"] {
        let own = server.0.path(&format!("keys/{name}"));
        let kept = std::fs::read(&own).unwrap();
        std::fs::copy(server.0.path(name), &own).unwrap();
        let command = format!("pellucid accept '{}'", own.display());
        let mut all = vec![server.run("SELECT note FROM master.dbo.kept").all()];
        if name == "msdb.db" {
            let agent = server.0.pellucid(&["agent", "--once"]);
            assert_ne!(agent.code, 0, "{agent:?}");
            all.push(agent.all());
        }
        for told in all {
            assert!(told.contains(&command) && !told.contains(MARK), "{name}\n{told}");
        }
        std::fs::write(&own, kept).unwrap();
    }
    assert_eq!(server.rows("SELECT COUNT(*) FROM sys.databases WHERE name LIKE 'of[_]%'"), ["0"]);
    // Accepted, a copy of this instance's own is what it was.
    std::fs::copy(server.0.path("msdb.db"), server.0.path("keys/msdb.db")).unwrap();
    server.0.pellucid(&["accept", "keys/msdb.db"]).succeeded();
    let agent = server.0.pellucid(&["agent", "--once"]);
    assert_eq!(agent.code, 0, "{agent:?}");
}

/// One that was lost is made anew, in the place of the one that was expected.
#[test]
fn a_lost_own_file_is_made_anew() {
    let server = filled();
    for name in ["msdb.db", "master.db"] {
        std::fs::remove_file(server.0.path(&format!("keys/{name}"))).unwrap();
        runs(&server, "CREATE TABLE again(id int); DROP TABLE again; PRINT 'made'");
        runs(&server, "PRINT 'opened'");
    }
}
