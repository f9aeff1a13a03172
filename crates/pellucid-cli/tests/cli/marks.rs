//! Goal: whoever names a commit finds it again, and sees to which points backups lead.
//!
//! Method: marks by `sqlite3` under `run` and by statements of SQL Server's; `restore --at mark:`, RESTORE LOG WITH STOPATMARK, the
//! view `logmarkhistory` and `history --points` over whole chains and chains with gaps.

use serde_json::Value;

use crate::log_backups::{count, facts, refused, second, sql};
use crate::sql_log::{done, ids, one, rows, with_chain};
use crate::sql_server::count as times;
use crate::support::Place;

/// A database with a chain, and rows as many as `count` says.
fn chained(place: &Place) -> u64 {
    second(place);
    facts(place, "recovery app.db full");
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    count(place, "app.db").parse().unwrap()
}

fn log(place: &Place, name: &str) {
    place.pellucid(&["backup", "app.db", "--log", "--to", name]).succeeded();
}

fn deleted(place: &Place, mark: &str) {
    sql(
        place,
        &format!(
            "BEGIN IMMEDIATE; SELECT pellucid_mark('{mark}', 'a day''s end');
             DELETE FROM t WHERE rowid = (SELECT max(rowid) FROM t); COMMIT;"
        ),
    );
}

#[test]
fn a_program_names_a_commit_and_a_restore_stops_there() {
    let place = Place::new();
    let rows = chained(&place);
    deleted(&place, "before deploy");
    deleted(&place, "nightly");
    deleted(&place, "nightly");
    log(&place, "1.bak");
    let restore = |at: &str| {
        let to = format!("{}.db", at.replace([':', ' '], "-"));
        let words = ["--json", "restore", "full.bak", "1.bak", "--at", at, "--to", &to];
        let said = place.pellucid(&words).succeeded();
        let told: Value = serde_json::from_str(&said).unwrap();
        (rows - count(&place, &to).parse::<u64>().unwrap(), told)
    };
    assert_eq!(restore("before-mark:before deploy").0, 0);
    let (gone, told) = restore("mark:before deploy");
    assert_eq!((gone, told["later_marks"].as_array().unwrap().len()), (1, 0));
    let (gone, told) = restore("mark:nightly");
    assert_eq!((gone, told["later_marks"].as_array().unwrap().len()), (2, 1), "{told}");
    let again = told["later_marks"][0].as_str().unwrap();
    assert_eq!(restore(&format!("lsn:{again}")).0, 3);
    let words = ["restore", "full.bak", "1.bak", "--at", "mark:nightly", "--to", "told.db"];
    let said = place.pellucid(&words);
    assert!(said.stderr.contains("a later commit has the same mark: LSN"), "{}", said.all());
    let none = "restore full.bak 1.bak --at mark:noon --to x.db";
    refused(&place, none, "has the mark `noon`", "`before deploy`, `nightly`");
    let empty = place.pellucid(&["restore", "full.bak", "1.bak", "--at", "mark:", "--to", "x.db"]);
    assert!(empty.code == 2 && empty.stderr.contains("names no mark"), "{}", empty.all());
    // The function says why there is no mark.
    let mut command = place.command(crate::support::PELLUCID);
    let script = "SELECT pellucid_mark('x');";
    let alone = command.args(["run", "--", "sqlite3", "-batch", "-bail", "app.db"]);
    let alone = crate::support::said_with(alone, script).all();
    assert!(alone.contains("pellucid_mark: no transaction is open"), "{alone}");
}

#[test]
fn the_points_that_backups_lead_to_are_shown_with_what_is_missing() {
    let place = Place::new();
    chained(&place);
    for name in ["1.bak", "2.bak", "3.bak"] {
        deleted(&place, &name[..1]);
        log(&place, name);
    }
    let lsns = |range: &Value| {
        let of = |field: &str| range[field].as_str().unwrap().parse::<u64>().unwrap();
        (of("from_lsn"), of("to_lsn"))
    };
    let whole = facts(&place, "history --points app.db");
    let mut by_name = facts(&place, "history --points 3.bak full.bak 1.bak 2.bak");
    let file = &whole["forks"][0]["ranges"][0]["begins_with"];
    by_name["forks"][0]["ranges"][0]["begins_with"] = file.clone();
    assert_eq!(by_name["forks"], whole["forks"]);
    let fork = &whole["forks"][0];
    assert_eq!(whole["forks"].as_array().unwrap().len(), 1);
    assert_eq!(fork["ranges"].as_array().unwrap().len(), 1, "{fork}");
    assert_eq!(fork["gaps"].as_array().unwrap().len(), 0, "{fork}");
    let range = &fork["ranges"][0];
    assert_eq!((range["commits"].as_u64(), range["log_backups"].as_u64()), (Some(3), Some(3)));
    assert!(range["begins_with"]["file"].as_str().unwrap().ends_with("full.bak"), "{range}");
    let (from, to) = lsns(range);
    assert!(from < to);
    let names: Vec<_> = fork["marks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mark| mark["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["1", "2", "3"]);
    assert_eq!(
        (&whole["waiting"], fork["marks"][2]["can_be_restored"].as_bool()),
        (&Value::Null, Some(true))
    );
    // What the range says is what a restore does.
    let restored =
        facts(&place, &format!("restore full.bak 1.bak 2.bak 3.bak --at lsn:{to} --to to.db"));
    assert_eq!(restored["last_lsn"].as_str().unwrap().parse::<u64>().unwrap(), to);
    // A log backup is missing: what is behind it cannot be had.
    let gap = facts(&place, "history --points full.bak 1.bak 3.bak");
    let fork = &gap["forks"][0];
    assert_eq!(fork["ranges"].as_array().unwrap().len(), 1, "{fork}");
    let (_, end) = lsns(&fork["ranges"][0]);
    assert!(end < to && fork["ranges"][0]["commits"].as_u64() == Some(1), "{fork}");
    let missing: Vec<_> =
        fork["gaps"].as_array().unwrap().iter().map(|gap| &gap["missing"]).collect();
    assert_eq!(missing, ["log backups", "full backup"], "{fork}");
    assert_eq!(fork["gaps"][0]["behind_lsn"], end.to_string());
    let can: Vec<_> = fork["marks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["can_be_restored"].as_bool())
        .collect();
    assert_eq!(can, [Some(true), Some(false)]);
    refused(
        &place,
        &format!("restore full.bak 1.bak 3.bak --at lsn:{to} --to x.db"),
        "are missing",
        "",
    );
    // Without a full backup nothing can be had.
    let none = facts(&place, "history --points 2.bak 3.bak");
    let fork = &none["forks"][0];
    assert_eq!(
        (fork["ranges"].as_array().unwrap().len(), &fork["gaps"][0]["missing"]),
        (0, &"full backup".into())
    );
    // The database is gone.
    let gone = ["app.db", "app.db-wal", "app.db-shm"].map(|name| place.path(name));
    let away =
        gone.clone().map(|path| std::path::PathBuf::from(format!("{}.away", path.display())));
    for (from, to) in gone.iter().zip(&away) {
        let _ = std::fs::rename(from, to);
    }
    let lost = place.pellucid(&["--json", "history", "--points", "app.db"]);
    let told: Value = serde_json::from_str(&lost.stdout).unwrap();
    assert_eq!(told["forks"], whole["forks"], "{}", lost.all());
    assert!(lost.stderr.contains("which commits no log backup has is not known"), "{}", lost.all());
    for (from, to) in gone.iter().zip(&away) {
        let _ = std::fs::rename(to, from);
    }
    // A commit that waits, and a file that is gone.
    deleted(&place, "4");
    std::fs::remove_file(place.path("2.bak")).unwrap();
    let waits = facts(&place, "history --points app.db");
    assert_eq!(
        waits["waiting"]["behind_lsn"].as_str().unwrap().parse::<u64>().unwrap(),
        to,
        "{waits}"
    );
    assert_eq!(waits["absent"].as_array().unwrap().len(), 1);
    let told = place.pellucid(&["history", "--points", "app.db"]);
    let shown = told.all();
    for says in [
        "Recovery fork ",
        "Missing: the log backups behind LSN",
        "are in no log backup yet",
        "2.bak`: the history knows it",
        "can be restored",
    ] {
        assert!(shown.contains(says), "{says}: {shown}");
    }
}

#[test]
fn a_transaction_with_a_mark_is_found_by_statements() {
    let server = with_chain();
    let shown = done(
        &server,
        "BEGIN TRAN deploy WITH MARK N'change 4711'
         INSERT INTO Sales.dbo.t VALUES (2)
         BEGIN TRAN inner_one WITH MARK 'not this one'
         COMMIT TRAN inner_one
         COMMIT TRAN deploy
         GO
         BEGIN TRANSACTION undone WITH MARK
         INSERT INTO Sales.dbo.t VALUES (9)
         ROLLBACK
         GO
         INSERT INTO Sales.dbo.t VALUES (3)
         GO
         WAITFOR DELAY '00:00:00.05'
         DECLARE @name varchar(20) = 'deploy'
         BEGIN TRAN @name WITH MARK
         INSERT INTO Sales.dbo.t VALUES (4)
         COMMIT
         BACKUP LOG Sales TO DISK = 'D:\\1.trn'",
    );
    let ignored = "The WITH MARK option only applies to the first BEGIN TRAN WITH MARK statement. The option is ignored.";
    assert_eq!(times(&shown, ignored), 1, "{shown}");
    let known = "SELECT database_name, mark_name, description, user_name, CASE WHEN lsn > (SELECT checkpoint_lsn FROM \
                 msdb.dbo.backupset WHERE type = 'D') THEN 1 END, DATEDIFF(minute, mark_time, GETUTCDATE()) FROM \
                 msdb.dbo.logmarkhistory ORDER BY lsn";
    assert_eq!(
        server.rows(known),
        ["Sales|deploy|change 4711|NULL|1|0", "Sales|deploy|NULL|NULL|1|0"]
    );
    assert_eq!(
        one(&server, "SELECT DISTINCT coalesce(fork_point_lsn, 0) FROM msdb.dbo.backupset"),
        "0"
    );
    let full = "RESTORE DATABASE Copy FROM DISK = 'D:\\full.bak' WITH MOVE 'Sales' TO 'D:\\Copy.db', REPLACE, NORECOVERY";
    for (stop, expected) in [
        ("STOPATMARK = 'deploy'", "1 2"),
        ("STOPBEFOREMARK = 'deploy'", "1"),
        ("STOPATMARK = 'deploy' AFTER '2001-01-01'", "1 2"),
    ] {
        done(&server, &format!("{full} RESTORE LOG Copy FROM DISK = 'D:\\1.trn' WITH {stop}"));
        assert_eq!(ids(&server, "Copy"), expected, "{stop}");
    }
    // AFTER a time between the two takes the second one.
    let between = one(
        &server,
        "SELECT CONVERT(varchar(30), DATEADD(millisecond, 5, min(mark_time)), 121) FROM msdb.dbo.logmarkhistory",
    );
    done(
        &server,
        &format!("{full} RESTORE LOG Copy FROM DISK = 'D:\\1.trn' WITH STOPATMARK = 'deploy' AFTER '{between}'"),
    );
    assert_eq!(ids(&server, "Copy"), "1 2 3 4");
    let never = done(
        &server,
        &format!("{full} RESTORE LOG Copy FROM DISK = 'D:\\1.trn' WITH STOPATMARK = 'undone'"),
    );
    let no_mark = "This log file contains records logged before the designated mark. The database is being left in the \
                   Restoring state so you can apply another log file.";
    assert_eq!(times(&never, no_mark), 1, "{never}");
    // Under SIMPLE the option means nothing, as there.
    done(
        &server,
        &format!(
            "ALTER DATABASE Sales SET RECOVERY SIMPLE
             BEGIN TRAN simple WITH MARK
             INSERT INTO Sales.dbo.t VALUES (5)
             COMMIT
             {}",
            rows(6, 6)
        ),
    );
    assert_eq!(ids(&server, "Sales"), "1 2 3 4 5 6");
}
