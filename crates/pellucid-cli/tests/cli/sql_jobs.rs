//! Goal: jobs are made, changed, shown and dropped as SQL Server Agent's procedures do it, within transactions too, and the
//! agent runs those that are due.
//!
//! Method: a script as Management Studio writes it, and what views and messages show behind; the agent is the program's own.

use crate::sql_server::{errors, Server};
use crate::support::{said_with, Held, PELLUCID};

/// "Script Job as CREATE": in a transaction, each return code looked at, a label behind its end.
fn script(name: &str, command: &str, schedule: &str) -> String {
    let check = "IF (@@ERROR <> 0 OR @ReturnCode <> 0) GOTO QuitWithRollback";
    format!(
        "USE [msdb]
GO
/****** Object:  Job [{name}] ******/
BEGIN TRANSACTION
DECLARE @ReturnCode INT
SELECT @ReturnCode = 0
IF NOT EXISTS (SELECT name FROM msdb.dbo.syscategories WHERE name=N'[Uncategorized (Local)]' AND category_class=1)
BEGIN
EXEC @ReturnCode = msdb.dbo.sp_add_category @class=N'JOB', @type=N'LOCAL', @name=N'[Uncategorized (Local)]'
{check}

END

DECLARE @jobId BINARY(16)
EXEC @ReturnCode =  msdb.dbo.sp_add_job @job_name=N'{name}',
\t\t@enabled=1,
\t\t@notify_level_eventlog=0,
\t\t@notify_level_email=0,
\t\t@notify_level_netsend=0,
\t\t@notify_level_page=0,
\t\t@delete_level=0,
\t\t@description=N'of the tests',
\t\t@category_name=N'[Uncategorized (Local)]',
\t\t@owner_login_name=N'sa', @job_id = @jobId OUTPUT
{check}
EXEC @ReturnCode = msdb.dbo.sp_add_jobstep @job_id=@jobId, @step_name=N'first',
\t\t@step_id=1,
\t\t@cmdexec_success_code=0,
\t\t@on_success_action=1,
\t\t@on_success_step_id=0,
\t\t@on_fail_action=2,
\t\t@on_fail_step_id=0,
\t\t@retry_attempts=0,
\t\t@retry_interval=0,
\t\t@os_run_priority=0, @subsystem=N'TSQL',
\t\t@command=N'{command}',
\t\t@database_name=N'master',
\t\t@flags=0
{check}
EXEC @ReturnCode = msdb.dbo.sp_update_job @job_id = @jobId, @start_step_id = 1
{check}
EXEC @ReturnCode = msdb.dbo.sp_add_jobschedule @job_id=@jobId, @name=N'when', @enabled=1, {schedule}
{check}
EXEC @ReturnCode = msdb.dbo.sp_add_jobserver @job_id = @jobId, @server_name = N'(local)'
{check}
COMMIT TRANSACTION
GOTO EndSave
QuitWithRollback:
    IF (@@TRANCOUNT > 0) ROLLBACK TRANSACTION
EndSave:
GO
",
        command = command.replace('\'', "''")
    )
}

/// Every night at two, as Management Studio writes it.
const NIGHTLY: &str = "@freq_type=4, @freq_interval=1, @freq_subday_type=1, @freq_subday_interval=0, \
                       @freq_relative_interval=0, @freq_recurrence_factor=0, @active_start_date=20260101, \
                       @active_end_date=99991231, @active_start_time=20000, @active_end_time=235959";

/// Makes a job; nothing is said about it.
#[track_caller]
fn make(server: &Server, name: &str, command: &str, schedule: &str) {
    let told = server.run(&script(name, command, schedule)).succeeded();
    assert_eq!(told.trim(), "Changed database context to 'msdb'.");
}

fn refused(server: &Server, script: &str) -> Vec<(String, String)> {
    let told = server.run(script).all();
    let found = errors(&told);
    assert!(!found.is_empty(), "{script}\n{told}");
    let number = |number: String| number.trim_start_matches("Msg ").to_owned();
    found.into_iter().map(|(found, text)| (number(found), text)).collect()
}

#[test]
fn a_script_of_management_studio_makes_a_job() {
    let server = Server::with(&[]);
    make(&server, "nightly", "PRINT 'done'", NIGHTLY);
    let of_job = "SELECT j.name, j.enabled, j.description, c.name, j.start_step_id, j.version_number, \
                  CASE SUSER_SNAME(j.owner_sid) WHEN SUSER_SNAME() THEN 'own' END, s.last_run_outcome, s.server_id \
                  FROM msdb.dbo.sysjobs AS j JOIN msdb.dbo.syscategories AS c ON c.category_id = j.category_id \
                  JOIN msdb.dbo.sysjobservers AS s ON s.job_id = j.job_id";
    assert_eq!(server.rows(of_job), ["nightly|1|of the tests|[Uncategorized (Local)]|1|5|own|5|0"]);
    let of_step = "SELECT t.step_id, t.step_name, t.subsystem, t.command, t.database_name, t.on_success_action, \
                   t.on_fail_action FROM msdb.dbo.sysjobsteps AS t JOIN msdb.dbo.sysjobs_view AS j ON j.job_id = t.job_id";
    assert_eq!(server.rows(of_step), ["1|first|TSQL|PRINT 'done'|master|1|2"]);
    // Tomorrow's, or today's before two.
    let of_schedule = "SELECT s.name, s.freq_type, s.active_start_time, \
                       DATEDIFF(hour, GETDATE(), msdb.dbo.agent_datetime(a.next_run_date, a.next_run_time)) / 25, \
                       a.next_run_time FROM msdb.dbo.sysschedules AS s \
                       JOIN msdb.dbo.sysjobschedules AS a ON a.schedule_id = s.schedule_id";
    assert_eq!(server.rows(of_schedule), ["when|4|20000|0|20000"]);
    // Once more: it is there, and nothing of the script stays.
    let again = server.run(&script("nightly", "PRINT 'other'", NIGHTLY)).all();
    let found = errors(&again);
    assert_eq!(found.len(), 1, "{again}");
    assert_eq!(found[0].1, "The specified @job_name ('nightly') already exists.");
    assert_eq!(server.rows("SELECT COUNT(*) FROM msdb.dbo.sysschedules"), ["1"]);
    server.run("EXEC msdb.dbo.sp_delete_job @job_name = N'nightly'").succeeded();
    let left = "SELECT (SELECT COUNT(*) FROM msdb.dbo.sysjobs), (SELECT COUNT(*) FROM msdb.dbo.sysjobsteps), \
                (SELECT COUNT(*) FROM msdb.dbo.sysschedules), (SELECT COUNT(*) FROM msdb.dbo.sysjobschedules)";
    assert_eq!(server.rows(left), ["0|0|0|0"]);
}

#[test]
fn what_is_rolled_back_does_not_stay() {
    let server = Server::with(&[]);
    let broken = script("broken", "SELECT 1", "@freq_type=8, @freq_interval=0");
    assert_eq!(
        refused(&server, &broken),
        [(
            "14278".to_owned(),
            "The schedule for this job is invalid (reason: @freq_interval must be a valid day of the week bitmask \
             [Sunday = 1 .. Saturday = 64] for a weekly job.)."
                .to_owned()
        )]
    );
    assert_eq!(server.rows("SELECT COUNT(*) FROM msdb.dbo.sysjobs"), ["0"]);
    let savepoints = "SET NOCOUNT ON
BEGIN TRANSACTION
EXEC msdb.dbo.sp_add_job 'a'
SAVE TRANSACTION here
EXEC msdb.dbo.sp_add_job 'b'
EXEC msdb.dbo.sp_add_job 'b'
SAVE TRANSACTION there
EXEC msdb.dbo.sp_add_job 'c'
SELECT name FROM msdb.dbo.sysjobs ORDER BY name
ROLLBACK TRANSACTION there
SELECT name FROM msdb.dbo.sysjobs ORDER BY name
ROLLBACK TRANSACTION here
EXEC msdb.dbo.sp_add_job 'd'
COMMIT";
    let told = server.run(savepoints).all();
    let names: Vec<&str> = told.lines().filter(|line| line.len() == 1 && *line != "-").collect();
    assert_eq!(names, ["a", "b", "c", "a", "b"], "{told}");
    assert_eq!(server.rows("SELECT name FROM msdb.dbo.sysjobs ORDER BY name"), ["a", "d"]);
    // A session that ends leaves nothing behind, and a transaction of databases takes both with it.
    let both = "CREATE DATABASE app
GO
USE app
CREATE TABLE t(a int)
GO
BEGIN TRANSACTION
INSERT INTO t VALUES (1)
EXEC msdb.dbo.sp_add_job 'e'
ROLLBACK
BEGIN TRANSACTION
INSERT INTO t VALUES (2)
EXEC msdb.dbo.sp_add_job 'f'
COMMIT
BEGIN TRANSACTION
EXEC msdb.dbo.sp_add_job 'g'
EXEC msdb.dbo.sp_delete_backuphistory '2000-01-01'";
    server.run(both).succeeded();
    let left = server.rows("SELECT name FROM msdb.dbo.sysjobs ORDER BY name");
    assert_eq!(left, ["a", "d", "f"]);
    assert_eq!(server.rows("SELECT a FROM app..t"), ["2"]);
}

#[test]
fn values_are_checked_in_the_words_of_sql_server() {
    let server = Server::with(&[]);
    make(&server, "nightly", "SELECT 1", NIGHTLY);
    let valid = |parameter: &str, values: &str| {
        format!("The specified '@{parameter}' is invalid (valid values are: {values}).")
    };
    for (call, number, text) in [
        ("sp_add_job 'x', @enabled = 2", "14266", valid("enabled", "0, 1")),
        ("sp_add_job 'x', @none = 2", "8145", "@none is not a parameter for procedure sp_add_job.".into()),
        (
            "sp_add_job",
            "201",
            "Procedure or function 'sp_add_job' expects parameter '@job_name', which was not supplied.".into(),
        ),
        (
            "sp_add_job 'x', @category_name = 'none'",
            "14234",
            "The specified '@category_name' is invalid (valid values are returned by sp_help_category).".into(),
        ),
        (
            "sp_add_job 'x', @owner_login_name = 'no such account'",
            "14234",
            "The specified '@owner_login_name' is invalid (valid values are returned by sp_helplogins [excluding Windows NT \
             groups])."
                .into(),
        ),
        (
            "sp_add_jobstep @job_name = 'none', @step_name = 's'",
            "14262",
            "The specified @job_name ('none') does not exist.".into(),
        ),
        (
            "sp_add_jobstep @step_name = 's'",
            "14294",
            "Supply either @job_id or @job_name to identify the job.".into(),
        ),
        ("sp_add_jobstep @job_name = 'nightly', @step_name = 's', @step_id = 4", "14266", valid("step_id", "1..2")),
        (
            "sp_add_jobstep @job_name = 'nightly', @step_name = 'FIRST'",
            "14261",
            "The specified @step_name ('FIRST') already exists.".into(),
        ),
        (
            "sp_add_jobstep @job_name = 'nightly', @step_name = 's', @database_name = 'none'",
            "14262",
            "The specified @database_name ('none') does not exist.".into(),
        ),
        (
            "sp_add_jobstep @job_name = 'nightly', @step_name = 's', @on_success_action = 4",
            "14235",
            "The specified '@on_success_step' is invalid (valid values are greater than 0 but excluding 2).".into(),
        ),
        (
            "sp_add_jobstep @job_name = 'nightly', @step_name = 's', @subsystem = 'CmdExec', @command = 'ls'",
            "50001",
            "'subsystem CMDEXEC' is not supported.".into(),
        ),
        (
            "sp_add_jobstep @job_name = 'nightly', @step_name = 's', @flags = 8",
            "50001",
            "'@flags = 8' is not supported.".into(),
        ),
        ("sp_add_schedule 's', @freq_type = 3", "14266", valid("freq_type", "1, 4, 8, 16, 32, 64, 128")),
        (
            "sp_add_schedule 's', @freq_type = 4",
            "14278",
            "The schedule for this job is invalid (reason: @freq_interval must be at least 1 for a daily job.).".into(),
        ),
        (
            "sp_add_schedule 's', @freq_type = 1, @active_start_date = 20260230",
            "14287",
            "The '@active_start_date' supplied has an invalid date.".into(),
        ),
        (
            "sp_delete_schedule @schedule_name = 'when'",
            "14372",
            "The schedule was not deleted because it is being used by one or more jobs.".into(),
        ),
        (
            "sp_delete_category 'JOB', 'Log Shipping'",
            "14276",
            "'Log Shipping' is a permanent job category and cannot be deleted.".into(),
        ),
        ("sp_add_notification 'a', 'b', 1", "50001", "'sp_add_notification' is not supported.".into()),
        (
            "sp_stop_job 'nightly'",
            "22022",
            "SQLServerAgent Error: Request to stop job nightly (from User".into(),
        ),
    ] {
        let found = refused(&server, &format!("EXEC msdb.dbo.{call}"));
        assert_eq!(found.len(), 1, "{call}: {found:?}");
        assert_eq!(found[0].0, number, "{call}");
        assert!(found[0].1.starts_with(&text), "{call}: {}", found[0].1);
    }
    // Nothing of it was done, and msdb alone has them.
    let left = "SELECT (SELECT COUNT(*) FROM msdb.dbo.sysjobs), (SELECT COUNT(*) FROM msdb.dbo.sysjobsteps), \
                (SELECT COUNT(*) FROM msdb.dbo.sysschedules)";
    assert_eq!(server.rows(left), ["1|1|1"]);
    assert_eq!(refused(&server, "USE master EXEC sp_add_job 'x'")[0].0, "2812");
}

#[test]
fn steps_schedules_and_operators_are_changed() {
    let server = Server::with(&[]);
    make(&server, "nightly", "SELECT 1", NIGHTLY);
    let script = "SET NOCOUNT ON
USE msdb
GO
EXEC sp_add_jobstep @job_name = 'nightly', @step_name = 'last', @on_fail_action = 4, @on_fail_step_id = 1, @flags = 4
EXEC sp_add_jobstep @job_name = 'nightly', @step_name = 'zero', @step_id = 1, @on_success_action = 3, @command = N'SELECT 0'
EXEC sp_update_jobstep @job_name = 'nightly', @step_id = 2, @retry_attempts = 3, @retry_interval = 5, @step_name = 'middle'
GO
SELECT CONCAT(step_id, ' ', step_name, ' ', on_success_action, ' ', on_fail_action, ' ', on_fail_step_id, ' ', retry_attempts)
FROM dbo.sysjobsteps ORDER BY step_id
EXEC sp_delete_jobstep @job_name = 'nightly', @step_id = 2
SELECT CONCAT(step_id, ' ', step_name, ' ', on_fail_action, ' ', on_fail_step_id) FROM dbo.sysjobsteps ORDER BY step_id
EXEC sp_add_schedule @schedule_name = 'fridays', @freq_type = 8, @freq_interval = 32, @freq_recurrence_factor = 1
EXEC sp_attach_schedule @job_name = 'nightly', @schedule_name = 'fridays'
EXEC sp_update_schedule @name = 'fridays', @new_name = 'mondays', @freq_interval = 2
EXEC sp_update_jobschedule @job_name = 'nightly', @name = 'when', @enabled = 0
SELECT CONCAT(s.name, ' ', s.enabled, ' ', s.freq_interval, ' ',
DATEPART(weekday, msdb.dbo.agent_datetime(a.next_run_date, a.next_run_time)))
FROM sysschedules AS s JOIN sysjobschedules AS a ON a.schedule_id = s.schedule_id WHERE s.name = 'mondays'
EXEC sp_detach_schedule @job_name = 'nightly', @schedule_name = 'mondays', @delete_unused_schedule = 1
EXEC sp_add_operator @name = N'ada', @email_address = N'ada@example.org'
EXEC sp_update_job @job_name = 'nightly', @notify_email_operator_name = 'ada', @notify_level_email = 2
SELECT CONCAT(o.name, ' ', o.email_address, ' ', j.notify_level_email)
FROM sysoperators AS o JOIN sysjobs AS j ON j.notify_email_operator_id = o.id
EXEC sp_delete_operator 'ada'
SELECT CONCAT('level ', notify_level_email) FROM sysjobs";
    let told = server.run(script).succeeded();
    assert!(!told.contains("Msg "), "{told}");
    let shown: Vec<&str> = told
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['-', 'C']))
        .collect();
    assert_eq!(
        shown,
        [
            "1 zero 3 2 0 0",
            "2 middle 1 2 0 3",
            "3 last 1 4 2 0",
            // What went to the step that is gone quits with failure.
            "1 zero 2 0",
            "2 last 2 0",
            "mondays 1 2 2",
            "ada ada@example.org 2",
            "level 0"
        ],
        "{told}"
    );
    assert_eq!(server.rows("SELECT name FROM msdb.dbo.sysschedules"), ["when"]);
    let help = server
        .run("EXEC msdb.dbo.sp_help_job @job_name = 'nightly', @job_aspect = 'JOB'")
        .succeeded();
    assert!(help.contains("nightly") && help.contains("[Uncategorized (Local)]"), "{help}");
}

/// Nothing of a job lies anywhere in clear.
#[test]
fn no_command_lies_in_clear() {
    let server = Server::with(&[]);
    let marker = "visible-to-nobody-3781";
    make(&server, "sealed", &format!("SELECT '{marker}'"), NIGHTLY);
    assert_in_no_file(&server, marker);
}

/// Looks into every file of the instance.
fn assert_in_no_file(server: &Server, marker: &str) {
    let mut waiting = vec![server.0.path("")];
    let mut files = 0;
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|one| one.unwrap().path()));
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = bytes.windows(marker.len()).any(|part| part == marker.as_bytes());
        assert!(!found, "{}", path.display());
    }
    assert!(files > 3, "{files}");
}

/// `pellucid agent --once`: what it printed.
fn agent_once(server: &Server) -> crate::support::Said {
    server.0.pellucid(&["agent", "--once"])
}

/// The history, a line for each row: step, name, number of the error, outcome, tries before.
fn outcomes(server: &Server) -> Vec<String> {
    server.rows(
        "SELECT CONCAT(step_id, ' ', step_name, ' ', sql_message_id, ' ', run_status, ' ', retries_attempted) \
         FROM msdb.dbo.sysjobhistory ORDER BY instance_id",
    )
}

/// A job without a schedule, of a step for each command, that is to be started.
fn request(server: &Server, name: &str, steps: &[(&str, &str)]) {
    let mut script = format!("SET NOCOUNT ON\nEXEC msdb.dbo.sp_add_job '{name}'\n");
    for (at, (command, options)) in steps.iter().enumerate() {
        let command = command.replace('\'', "''");
        script += &format!(
            "EXEC msdb.dbo.sp_add_jobstep @job_name = '{name}', @step_name = 'step{}', @command = N'{command}'{options}\n",
            at + 1
        );
    }
    script += &format!(
        "EXEC msdb.dbo.sp_add_jobserver @job_name = '{name}'\nEXEC msdb.dbo.sp_start_job '{name}'"
    );
    let told = said_with(server.0.command(PELLUCID).args(["sql", "-x"]), &script).succeeded();
    assert!(told.contains("no 'pellucid agent' is running"), "{told}");
}

/// Makes every schedule due.
fn make_due(server: &Server) {
    crate::support::history(&server.0)
        .execute("UPDATE pellucid_job_schedule SET next_run = 1", [])
        .unwrap();
}

#[test]
fn the_agent_runs_what_was_asked_for() {
    let server = Server::with(&["C"]);
    server.run("CREATE DATABASE app").succeeded();
    let marker = "hidden-from-history-5512";
    request(
        &server,
        "work",
        &[
            ("CREATE TABLE t(a int)\nGO\nINSERT INTO t VALUES (1), (2)", ", @database_name = 'app', @on_success_action = 3"),
            // What fails goes on, after a second try; nothing behind its error is executed.
            (
                &format!("PRINT 'CREATE CERTIFICATE c ENCRYPTION BY PASSWORD = ''{marker}'''\nSELECT 1/0\nGO\nPRINT 'never'"),
                ", @retry_attempts = 1, @on_fail_action = 4, @on_fail_step_id = 4",
            ),
            ("PRINT 'left out'", ""),
            (
                "SELECT '$(ESCAPE_SQUOTE(JOBNAME))' AS job, APP_NAME() AS app, DB_NAME() AS db\nPRINT 'a$(b'",
                ", @flags = 4, @database_name = 'app'",
            ),
        ],
    );
    let said = agent_once(&server).succeeded();
    assert_eq!(said.trim(), "work: succeeded");
    assert_eq!(server.rows("SELECT a FROM app..t ORDER BY a"), ["1", "2"]);
    assert_eq!(
        outcomes(&server),
        [
            "1 step1 0 1 0",
            "2 step2 8134 2 0",
            "2 step2 8134 0 1",
            "4 step4 0 1 0",
            "0 (Job outcome) 0 1 0"
        ]
    );
    let messages = server.rows("SELECT message FROM msdb.dbo.sysjobhistory ORDER BY instance_id");
    assert!(
        messages[0].starts_with("Executed as user: ")
            && messages[0].ends_with("  The step succeeded."),
        "{messages:?}"
    );
    let failed = &messages[2];
    assert!(
        failed.contains("Divide by zero error encountered. [SQLSTATE 42000] (Error 8134)"),
        "{failed}"
    );
    assert!(
        failed.contains("PASSWORD = '***'") && failed.ends_with("  The step failed."),
        "{failed}"
    );
    assert!(!failed.contains("never"), "{failed}");
    assert!(
        messages[3].contains("work SQLAgent - TSQL JobStep (Job work : Step 4) app"),
        "{messages:?}"
    );
    assert!(messages[3].contains("a$(b"), "{messages:?}");
    assert!(
        messages[4].contains("The job succeeded.  The Job was invoked by User "),
        "{messages:?}"
    );
    assert!(messages[4].ends_with("The last step to run was step 4 (step4)."), "{messages:?}");
    assert!(!messages.concat().contains(marker));
    let last = "SELECT j.last_run_outcome, a.last_executed_step_id, a.run_requested_source, t.last_run_outcome, t.last_run_retries \
                FROM msdb.dbo.sysjobservers AS j JOIN msdb.dbo.sysjobactivity AS a ON a.job_id = j.job_id \
                JOIN msdb.dbo.sysjobsteps AS t ON t.job_id = j.job_id AND t.step_id = 2 \
                WHERE a.stop_execution_date IS NOT NULL AND a.session_id = (SELECT MAX(session_id) FROM msdb.dbo.syssessions)";
    assert_eq!(server.rows(last), ["1|4|4|0|1"]);
    // It was asked for once.
    assert_eq!(agent_once(&server).succeeded(), "");
    server.run("EXEC msdb.dbo.sp_purge_jobhistory @job_name = 'work'").succeeded();
    assert_eq!(outcomes(&server), [""; 0]);
    assert_in_no_file(&server, marker);
}

#[test]
fn a_failure_is_the_agents_status() {
    let server = Server::with(&[]);
    request(&server, "bad", &[("RAISERROR('it is broken', 16, 1)", "")]);
    let said = agent_once(&server);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("job `bad` failed"), "{said:?}");
    assert_eq!(outcomes(&server), ["1 step1 50000 0 0", "0 (Job outcome) 0 0 0"]);
    // A token that there is not, and a command of sqlcmd: neither is executed.
    request(
        &server,
        "token",
        &[("PRINT '$(ESCAPE_NONE(SQLLOGDIR))'", ", @on_fail_action = 3"), (":r /etc/passwd", "")],
    );
    assert_eq!(agent_once(&server).code, 1);
    let messages = server.rows(
        "SELECT message FROM msdb.dbo.sysjobhistory WHERE instance_id > 2 ORDER BY instance_id",
    );
    assert!(messages[0].contains("Variable SQLLOGDIR not found"), "{messages:?}");
    assert!(!messages[1].contains("root:"), "{messages:?}");
    // An instance is not made by looking for its jobs.
    let empty = crate::support::Place::new();
    assert_eq!(empty.pellucid(&["agent", "--once"]).code, 1);
    assert!(!empty.path("keys/msdb.db").exists());
}

/// A time that was missed is made up for once, and two agents do not share a job.
#[test]
fn what_is_due_runs_once() {
    let server = Server::with(&[]);
    make(&server, "nightly", "WAITFOR DELAY '00:00:02'", NIGHTLY);
    make(&server, "off", "SELECT 1", NIGHTLY);
    server.run("EXEC msdb.dbo.sp_update_job @job_name = 'off', @enabled = 0").succeeded();
    assert_eq!(agent_once(&server).succeeded(), "");
    make_due(&server);
    let agents: Vec<_> = std::thread::scope(|scope| {
        let begun: Vec<_> =
            (0..2).map(|_| scope.spawn(|| agent_once(&server).succeeded())).collect();
        begun.into_iter().map(|agent| agent.join().unwrap()).collect()
    });
    assert_eq!(agents.concat(), "nightly: succeeded\n", "{agents:?}");
    assert_eq!(agent_once(&server).succeeded(), "");
    assert_eq!(outcomes(&server), ["1 first 0 1 0", "0 (Job outcome) 0 1 0"]);
    let invoked = server.rows("SELECT message FROM msdb.dbo.sysjobhistory WHERE step_id = 0");
    assert!(invoked[0].contains("was invoked by Schedule 1 (when)."), "{invoked:?}");
    // Its next run is the next one, not the one that was missed.
    let next = "SELECT COUNT(*) FROM msdb.dbo.sysjobschedules AS a JOIN msdb.dbo.sysjobs AS j ON j.job_id = a.job_id \
                WHERE j.enabled = 1 AND msdb.dbo.agent_datetime(a.next_run_date, a.next_run_time) > GETDATE()";
    assert_eq!(server.rows(next), ["1"]);
    // What was disabled has missed nothing.
    server.run("EXEC msdb.dbo.sp_update_job @job_name = 'off', @enabled = 1").succeeded();
    assert_eq!(agent_once(&server).succeeded(), "");
    // One that goes when it has run.
    server.run("EXEC msdb.dbo.sp_update_job @job_name = 'off', @delete_level = 1").succeeded();
    make_due(&server);
    assert!(agent_once(&server).succeeded().contains("off: succeeded"));
    assert_eq!(server.rows("SELECT name FROM msdb.dbo.sysjobs"), ["nightly"]);
}

#[test]
fn a_job_of_another_account_is_left_alone() {
    let server = Server::with(&[]);
    make(&server, "nightly", "CREATE DATABASE made_by_another", NIGHTLY);
    make_due(&server);
    let change = "UPDATE pellucid_job SET owner_uid = 54321";
    crate::support::history(&server.0).execute(change, []).unwrap();
    let said = agent_once(&server);
    assert_eq!(said.code, 0, "{said:?}");
    let told =
        "job `nightly` is left alone: it belongs to the account `#54321`, whose agent runs it";
    assert!(said.stderr.contains(told), "{said:?}");
    assert_eq!(outcomes(&server), [""; 0]);
    assert_eq!(
        server.rows("SELECT COUNT(*) FROM sys.databases WHERE name = 'made_by_another'"),
        ["0"]
    );
    assert_eq!(server.rows("SELECT SUSER_SNAME(owner_sid) FROM msdb.dbo.sysjobs"), ["#54321"]);
    if !rustix::process::geteuid().is_root() {
        let found =
            refused(&server, "EXEC msdb.dbo.sp_update_job @job_name = 'nightly', @enabled = 0");
        assert_eq!(found[0].0, "14525");
        assert_eq!(refused(&server, "EXEC msdb.dbo.sp_start_job 'nightly'")[0].0, "14393");
    }
}

/// Waits until a query gives this.
#[track_caller]
fn until(server: &Server, query: &str, wanted: &str) {
    let begun = std::time::Instant::now();
    while server.rows(query) != [wanted] {
        assert!(begun.elapsed().as_secs() < 60, "{query}: {:?}", server.rows(query));
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

const RUNNING: &str =
    "SELECT COUNT(*) FROM msdb.dbo.sysjobactivity WHERE start_execution_date IS NOT NULL \
                       AND stop_execution_date IS NULL";

#[test]
fn a_job_is_stopped_by_a_statement_and_with_its_agent() {
    let server = Server::with(&[]);
    let slow = "WAITFOR DELAY '00:10:00'";
    request(&server, "slow", &[(slow, "")]);
    // At its start as well.
    make(&server, "first", "PRINT 'begun'", "@freq_type=64");
    let log = std::fs::File::create(server.0.path("agent.log")).unwrap();
    let agent = || {
        let mut command = server.0.command(PELLUCID);
        command.arg("agent").stdout(log.try_clone().unwrap()).stderr(log.try_clone().unwrap());
        command.spawn().unwrap()
    };
    let mut running = agent();
    until(&server, RUNNING, "1");
    let again = refused(&server, "EXEC msdb.dbo.sp_start_job 'slow'");
    assert!(again[0].1.contains("refused because the job is already running"), "{again:?}");
    let told = server.run("EXEC msdb.dbo.sp_stop_job 'slow'").succeeded();
    assert_eq!(told.trim(), "Job 'slow' stopped successfully.");
    until(&server, RUNNING, "0");
    let status = "SELECT CONCAT(MAX(run_status), ' ', COUNT(*)) FROM msdb.dbo.sysjobhistory AS h \
                  JOIN msdb.dbo.sysjobs AS j ON j.job_id = h.job_id WHERE j.name = ";
    assert_eq!(server.rows(&format!("{status}'slow'")), ["3 2"]);
    assert_eq!(server.rows(&format!("{status}'first'")), ["1 2"]);
    // The agent ends with what it runs.
    let told = server.run("EXEC msdb.dbo.sp_start_job 'slow'").succeeded();
    assert_eq!(told.trim(), "Job 'slow' started successfully.");
    until(&server, RUNNING, "1");
    let pid = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(running.wait().unwrap().success());
    assert_eq!(server.rows(RUNNING), ["0"]);
    // One that is killed leaves a job that the next one gives an end, and no step goes on by itself.
    let disable =
        "EXEC msdb.dbo.sp_update_jobschedule @job_name = 'first', @name = 'when', @enabled = 0";
    server.run(disable).succeeded();
    server.run("EXEC msdb.dbo.sp_start_job 'slow'").succeeded();
    let mut running = agent();
    until(&server, RUNNING, "1");
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(server.rows(RUNNING), ["1"]);
    server.run("EXEC msdb.dbo.sp_start_job 'first'").succeeded();
    assert!(agent_once(&server).succeeded().contains("first: succeeded"));
    assert_eq!(server.rows(RUNNING), ["0"]);
    let last = server
        .rows("SELECT last_outcome_message FROM msdb.dbo.sysjobservers WHERE last_run_outcome = 3");
    assert_eq!(last, ["The job was stopped prior to completion: the agent that ran it has ended."]);
}

#[test]
fn the_agents_facts_have_a_schema() {
    let server = Server::with(&[]);
    request(&server, "work", &[("SELECT 1", "")]);
    let said = server.0.pellucid(&["--json", "agent", "--once"]).succeeded();
    let facts: serde_json::Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!(
        facts,
        serde_json::json!({"jobs": [{"name": "work", "outcome": "succeeded"}], "of_others": []})
    );
}

#[test]
fn a_job_that_is_deleted_while_it_runs_ends() {
    let server = Server::with(&[]);
    request(&server, "slow", &[("WAITFOR DELAY '00:10:00'", "")]);
    let mut command = server.0.command(PELLUCID);
    command.args(["--quiet", "agent", "--once"]).stderr(std::process::Stdio::null());
    let mut agent = command.spawn().unwrap();
    until(&server, RUNNING, "1");
    server.run("EXEC msdb.dbo.sp_delete_job @job_name = 'slow'").succeeded();
    assert_eq!(agent.wait().unwrap().code(), Some(1));
    assert_eq!(outcomes(&server), [""; 0]);
}

/// Root's agent does not open an instance in which another account could write jobs, and nobody else's opens root's.
#[test]
fn no_agent_runs_the_instance_of_another_account() {
    use std::os::unix::fs::{chown, PermissionsExt};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        println!("not root: users cannot be changed, nothing is tested");
        return;
    }
    let server = Server::with(&[]);
    let open = |name: &str| {
        std::fs::set_permissions(server.0.path(name), PermissionsExt::from_mode(0o755)).unwrap();
    };
    open("");
    server.0.copy_program(PELLUCID.as_ref(), "program");
    open("program");
    std::fs::create_dir(server.0.path("of-nobody")).unwrap();
    chown(server.0.path("of-nobody"), Some(NOBODY), Some(NOBODY)).unwrap();
    let run = |user: u32, home: &str, words: &[&str], script: &str| {
        let program = server.0.path("program");
        let mut command = server.0.command(program.to_str().unwrap());
        command.env("PELLUCID_HOME", server.0.path(home)).args(words).uid(user).gid(user);
        said_with(&mut command, script)
    };
    let homes = [(NOBODY, "of-nobody/keys"), (0, "keys")];
    for (user, home) in homes {
        let script = script("made", "CREATE DATABASE made_by_the_job", "@freq_type=64")
            + "EXEC msdb.dbo.sp_start_job 'made'";
        let told = run(user, home, &["sql"], &script).succeeded();
        assert!(told.contains("is to be started"), "{told}");
    }
    // Each tries the other's, and then its own.
    let made = "SET NOCOUNT ON; SELECT COUNT(*) FROM sys.databases WHERE name = 'made_by_the_job'";
    for ((user, home), (other, _)) in homes.into_iter().zip(homes.into_iter().rev()) {
        let said = run(other, home, &["agent", "--once"], "");
        assert_eq!(said.code, 1, "{said:?}");
        let count = |wanted: &str| {
            let said = run(user, home, &["sql", "-h", "-1", "-W"], made).succeeded();
            assert_eq!(said.trim(), wanted);
        };
        count("0");
        assert_eq!(run(user, home, &["agent", "--once"], "").succeeded().trim(), "made: succeeded");
        count("1");
    }
}

/// A step has the stack that a script has: functions within one another, each out of many blocks.
#[test]
fn a_step_nests_as_deep_as_a_script() {
    let server = Server::with(&[]);
    let made = "DECLARE @i int = 0
WHILE @i < 31 BEGIN
  DECLARE @text varchar(max) = 'CREATE FUNCTION dbo.deep' + CAST(@i AS varchar(9)) + '(@x int) RETURNS int AS BEGIN '
    + REPLICATE('IF 1 = 1 BEGIN ', 20) + ' SET @x = ' + CASE WHEN @i = 0 THEN '@x' ELSE REPLICATE('(', 30) + 'dbo.deep'
    + CAST(@i - 1 AS varchar(9)) + '(@x)' + REPLICATE(')', 30) END + ' + 1 ' + REPLICATE(' END ', 20) + ' RETURN @x END'
  EXEC (@text)
  SET @i += 1
END";
    let shown = server.run(made).succeeded();
    assert!(!shown.contains("Msg "), "{shown}");
    let command = "DECLARE @deep int = dbo.deep30(1) PRINT @deep";
    assert!(server.run(command).succeeded().contains("32"));
    request(&server, "deep", &[(command, "")]);
    agent_once(&server).succeeded();
    assert_eq!(outcomes(&server), ["1 step1 0 1 0", "0 (Job outcome) 0 1 0"]);
}

/// Its path is of whoever has made the job: it is shown, and no file is written by it.
#[test]
fn the_output_file_of_a_step_is_kept_and_not_written() {
    let server = Server::with(&[]);
    let file = server.0.path("steps.txt");
    let path = file.display();
    server
        .run(&format!(
            "EXEC msdb.dbo.sp_add_job 'told'
EXEC msdb.dbo.sp_add_jobstep @job_name = 'told', @step_name = 'one', @command = 'PRINT ''said''',
  @output_file_name = N' {path} ', @flags = 2
EXEC msdb.dbo.sp_add_jobserver @job_name = 'told'
EXEC msdb.dbo.sp_start_job 'told'"
        ))
        .succeeded();
    let kept =
        server.rows("SET NOCOUNT ON SELECT output_file_name, flags FROM msdb.dbo.sysjobsteps");
    assert_eq!(kept, [format!("{path}|2")]);
    agent_once(&server).succeeded();
    let history = "SET NOCOUNT ON SELECT message FROM msdb.dbo.sysjobhistory WHERE step_id = 1";
    let told = server.rows(history).join("\n");
    let note = "The output file was not written: the agent writes none.  The step succeeded.";
    assert!(told.contains("said") && told.ends_with(note), "{told}");
    assert!(!file.exists());
    server
        .run(
            "EXEC msdb.dbo.sp_update_jobstep @job_name = 'told', @step_id = 1, @output_file_name = N''
EXEC msdb.dbo.sp_start_job 'told'",
        )
        .succeeded();
    agent_once(&server).succeeded();
    let told = server.rows(&format!("{history} ORDER BY instance_id DESC")).remove(0);
    assert!(told.contains("said") && !told.contains("output file"), "{told}");
}

/// A session that has looked at msdb keeps nobody from it, whatever its transactions do.
#[test]
fn a_transaction_elsewhere_leaves_msdb_to_others() {
    let server = Server::with(&[]);
    server.run("CREATE DATABASE app\nGO\nUSE app CREATE TABLE t(a int)").succeeded();
    let mut other = server.0.command(PELLUCID);
    other.arg("sql");
    let script = "SELECT COUNT(*) FROM msdb.dbo.backupset, msdb.dbo.sysjobs\nGO\nBEGIN TRAN\nSELECT COUNT(*) FROM app.dbo.t\n\
                  INSERT app.dbo.t VALUES (1)\nPRINT 'ready'\nGO\n";
    let mut held = Held::start_with(other, script);
    for statement in ["EXEC msdb.dbo.sp_add_job 'x'", "CREATE DATABASE another"] {
        let told = server.run(statement).all();
        assert!(!told.contains("Msg "), "{statement}\n{told}");
    }
    held.end();
}
