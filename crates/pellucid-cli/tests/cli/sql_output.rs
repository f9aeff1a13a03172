//! Goal: `sql` takes sqlcmd's options and prints as sqlcmd prints: layout, messages, streams, exit statuses; secrets are
//! taken by no argument and shown by no echo.
//!
//! Method: the program from outside; expected lines are typed by hand.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{said, said_with, Place, Said, PELLUCID};

fn sql(place: &Place, arguments: &[&str]) -> Said {
    place.pellucid(&[&["sql"], arguments].concat())
}

/// What a query prints.
fn query(text: &str, options: &[&str]) -> String {
    sql(&Place::new(), &[&["-Q", text], options].concat()).succeeded()
}

/// A script on standard input.
fn script(place: &Place, text: &str, options: &[&str]) -> Said {
    said_with(place.command(PELLUCID).arg("sql").args(options), text)
}

fn server() -> String {
    let said = said(Command::new("uname").arg("-n"));
    said.succeeded().trim_end().to_owned()
}

fn error(number: u32, line: u32, text: &str) -> String {
    format!("Msg {number}, Level 16, State 1, Server {}, Line {line}\n{text}\n", server())
}

#[test]
fn numbers_and_text_stand_in_columns() {
    let shown = query(
        "SELECT 1 AS id, CAST(N'Chai' AS nvarchar(6)) AS name, CAST(18 AS money) AS price, CAST(0.5 AS numeric(5,2)) AS share
         UNION ALL SELECT -20, NULL, NULL, NULL",
        &[],
    );
    assert_eq!(
        shown,
        "id          name   price                 share  \n\
         ----------- ------ --------------------- -------\n\
         \x20         1 Chai                 18.0000     .50\n\
         \x20       -20 NULL                    NULL    NULL\n\
         \n\
         (2 rows affected)\n"
    );
}

#[test]
fn dates_bytes_and_floats_have_their_forms() {
    let shown = query(
        "SELECT CAST('2024-01-02 03:04:05' AS datetime) AS at, CAST('2024-01-02' AS date) AS day,
         CAST(0x00AB AS varbinary(4)) AS hash, CAST(1 AS float) AS f, CAST(1 AS bit) AS yes",
        &[],
    );
    assert_eq!(
        shown,
        "at                      day              hash       f                        yes \n\
         ----------------------- ---------------- ---------- ------------------------ ----\n\
         2024-01-02 03:04:05.000       2024-01-02 0x00AB                          1.0    1\n\
         \n\
         (1 rows affected)\n"
    );
    let shown = query(
        "SELECT CAST('6F9619FF-8B86-D011-B42D-00C04FC964FF' AS uniqueidentifier) AS id",
        &["-h-1"],
    );
    assert_eq!(shown, "6F9619FF-8B86-D011-B42D-00C04FC964FF\n\n(1 rows affected)\n");
}

#[test]
fn options_of_the_layout() {
    let two = "SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, 'y'";
    assert_eq!(query(two, &["-W", "-s", ";"]), "a;b\n-;-\n1;x\n2;y\n\n(2 rows affected)\n");
    assert_eq!(query(two, &["-W", "-s,", "-h", "-1"]), "1,x\n2,y\n\n(2 rows affected)\n");
    let repeated = query(two, &["-W", "-h1"]);
    assert_eq!(repeated, "a b\n- -\n1 x\n\na b\n- -\n2 y\n\n(2 rows affected)\n");
    let cut = query("SELECT CAST('abcdef' AS varchar(10)) AS a", &["-Y", "3"]);
    assert_eq!(cut, "a  \n---\nabc\n\n(1 rows affected)\n");
    let broken = query("SELECT 1 AS a", &["-w", "10", "-h-1"]);
    assert_eq!(broken, "          \n1\n\n(1 rows af\nfected)\n");
    let long = query("SELECT REPLICATE(CAST('x' AS varchar(max)), 300) AS a", &[]);
    assert_eq!(long.lines().nth(2).unwrap().len(), 256);
    let whole = query("SELECT REPLICATE(CAST('x' AS varchar(max)), 300) AS a", &["-y0"]);
    assert_eq!(whole.lines().next().unwrap().len(), 300);
    for wrong in [&["-w", "8"][..], &["-W", "-y", "10"], &["-h", "-2"], &["-v", "1"], &["-r", "2"]]
    {
        let told = sql(&Place::new(), &[&["-Q", "PRINT 1"], wrong].concat());
        assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{wrong:?}: {told:?}");
    }
}

#[test]
fn errors_and_messages() {
    let place = Place::new();
    let text = "PRINT 'before'\n\nSELECT * FROM nothing\nGO\nPRINT 'after'";
    let expected = error(208, 3, "Invalid object name 'nothing'.");
    let told = script(&place, text, &[]);
    assert_eq!((told.code, told.stdout), (0, format!("before\n{expected}after\n")));
    let told = script(&place, "PRINT 1 +", &[]);
    assert!(told.stdout.starts_with("Msg 102, Level 15, State 1, Server "), "{told:?}");
}

#[test]
fn an_error_stops_a_script_where_that_is_asked() {
    let place = Place::new();
    let text = "SELECT * FROM nothing\nGO\nPRINT 'after'\n";
    let told = script(&place, text, &["-b"]);
    assert_eq!((told.code, told.stdout), (1, error(208, 1, "Invalid object name 'nothing'.")));
    let told = script(&place, &format!(":on error exit\n{text}"), &[]);
    assert_eq!(told.code, 1);
    assert!(!told.stdout.contains("after"));
    let told = script(&place, &format!(":on error ignore\n{text}"), &["-b"]);
    assert_eq!(told.code, 0);
    assert!(told.stdout.ends_with("after\n"));
    let told = script(&place, "PRINT 'no error'", &["-b"]);
    assert_eq!((told.code, told.stdout.as_str()), (0, "no error\n"));
    let told = script(&place, "RAISERROR('over', 16, 127)\nGO\nPRINT 'never'", &[]);
    assert_eq!((told.code, told.stdout.lines().last()), (1, Some("over")));
    // What a batch has said before its error counts, the rest of the script does not.
    let told = script(&place, "PRINT 'left'\nGO\n:quit\nPRINT 'never'", &[]);
    assert_eq!((told.code, told.stdout.as_str()), (0, "left\n"));
    let told = script(&place, "PRINT 'a'\nGO\n:nonsense\nPRINT 'b'", &[]);
    assert_eq!((told.code, told.stdout.as_str()), (1, "a\n"));
    assert_eq!(
        told.stderr,
        "Sqlcmd: Error: there is no command ':nonsense' at line 3 of `stdin`\n"
    );
}

/// As sqlcmd's: with -b a script ends at the first error of that severity, without it the last one is the exit status.
#[test]
fn a_severity_level_says_which_errors_count() {
    let place = Place::new();
    let text = "RAISERROR('first', 14, 1)\nGO\nRAISERROR('second', 16, 1)\nGO\nPRINT 'after'\n";
    for (options, status, last) in [
        (&["-b", "-V", "16"][..], 16, "second"),
        (&["-b", "-V14"], 14, "first"),
        (&["-b", "-V17"], 0, "after"),
        (&["-b", "-V", "1"], 14, "first"),
        (&["-b", "--error-severity-level=16"], 16, "second"),
        (&["-b", "-V", "0"], 1, "first"),
        (&["-b", "-V", "-1"], 1, "first"),
        (&["-V", "14"], 16, "after"),
        (&["-V", "17"], 0, "after"),
        (&["-V", "0"], 0, "after"),
    ] {
        let told = script(&place, text, options);
        assert_eq!((told.code, told.stdout.lines().last()), (status, Some(last)), "{options:?}");
    }
    // What is no error does not count, whatever the level.
    let told = script(&place, "RAISERROR('told', 3, 1)", &["-b", "-V", "2"]);
    assert_eq!((told.code, told.stdout.as_str()), (0, "told\n"));
    let version = place.pellucid(&["sql", "--version"]).succeeded();
    assert!(version.ends_with(concat!(env!("CARGO_PKG_VERSION"), "\n")), "{version}");
    for wrong in ["-V", "-Vhigh", "-V26"] {
        assert_eq!(place.pellucid(&["sql", "-Q", "PRINT 1", wrong]).code, 2, "{wrong}");
    }
}

#[test]
fn messages_go_to_standard_error_where_that_is_asked() {
    let place = Place::new();
    let text = "PRINT 'said'\nSELECT 1 AS a\nSELECT * FROM nothing";
    let row = "a          \n-----------\n          1\n\n(1 rows affected)\n";
    let wrong = error(208, 3, "Invalid object name 'nothing'.");
    for (option, out, errors) in [
        ("-r0", format!("said\n{row}"), wrong.clone()),
        ("-r", format!("said\n{row}"), wrong.clone()),
        ("-r1", row.to_owned(), format!("said\n{wrong}")),
    ] {
        let told = script(&place, text, &[option]);
        assert_eq!((told.stdout, told.stderr), (out, errors), "{option}");
    }
}

#[test]
fn a_batch_is_repeated() {
    let told = script(&Place::new(), "PRINT 'x'\nGO 3\nPRINT 'y'\nGO 1\nPRINT 'z'\nGO 0\n", &[]);
    assert_eq!(
        told.succeeded(),
        "Beginning execution loop\nx\nx\nx\nBatch execution completed 3 times.\ny\n"
    );
}

#[test]
fn variables_come_from_options_and_the_environment() {
    let place = Place::new();
    let text = "PRINT '$(first) $(SECOND) $(third)'";
    let mut command = place.command(PELLUCID);
    command.env("third", "3").env("first", "never").args(["sql", "-v", "first=1", "second=a b"]);
    assert_eq!(said_with(&mut command, text).succeeded(), "1 a b 3\n");
    let told = script(&place, "PRINT '$(nothing)'", &[]);
    assert_eq!(told.code, 1);
    assert!(told.stderr.contains("'nothing' scripting variable not defined"), "{told:?}");
    let told = script(&place, "PRINT '$(nothing)'", &["-x"]);
    assert_eq!(told.succeeded(), "$(nothing)\n");
}

#[test]
fn scripts_are_files_too() {
    let place = Place::new();
    place.secret("one.sql", b"PRINT '1'\nGO\n:setvar n two");
    place.secret("two.sql", b"PRINT '$(n)'\n:r three.sql\n");
    place.secret("three.sql", b"PRINT '3'");
    let told = sql(&place, &["-i", "one.sql,two.sql", "-o", "out"]);
    assert_eq!(told.succeeded(), "");
    assert_eq!(std::fs::read_to_string(place.path("out")).unwrap(), "1\ntwo\n3\n");
    std::fs::create_dir(place.path("d")).unwrap();
    std::fs::rename(place.path("three.sql"), place.path("d/three.sql")).unwrap();
    let drive = format!("D={}", place.path("d").display());
    assert_eq!(sql(&place, &["-i", r"D:\three.sql", "--drive", &drive]).succeeded(), "3\n");
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_DRIVES", &drive).args(["sql", "-i", "D:three.sql"]);
    assert_eq!(said(&mut command).succeeded(), "3\n");
    let told = sql(&place, &["-i", "none.sql"]);
    assert_eq!(told.code, 1);
    assert!(told.stderr.starts_with("pellucid: error: `none.sql`: No such file"), "{told:?}");
    command = place.command(PELLUCID);
    let told = said(command.env("PELLUCID_DRIVES", "nonsense").args(["sql", "-Q", "PRINT 1"]));
    assert_eq!(told.code, 2, "{told:?}");
    let told = sql(&place, &["-d", "nothing", "-Q", "PRINT 1"]);
    assert_eq!(told.code, 1);
    assert!(told.stderr.contains("'nothing'") && told.stderr.contains("(911)"), "{told:?}");
}

#[test]
fn a_password_is_taken_by_no_argument() {
    let place = Place::new();
    for (option, text) in [
        ("-Q", "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'marker-71f3'"),
        ("-q", "EXEC('OPEN MASTER KEY DECRYPTION BY PASSWORD = ''marker-71f3''')"),
        ("-Q", "CREATE CREDENTIAL c WITH IDENTITY = 'i', SECRET = N'marker-71f3'"),
    ] {
        let told = sql(&place, &[option, text]);
        assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{told:?}");
        assert!(told.stderr.contains("$(NAME)") && !told.stderr.contains("marker"), "{told:?}");
    }
    assert!(!place.path("keys").exists(), "something was begun");
    // What is between quotes is not always one.
    assert_eq!(sql(&place, &["-Q", "PRINT 'PASSWORD: ' + 'x'"]).succeeded(), "PASSWORD: x\n");
    // From the environment it comes, and the echo does not show it.
    let mut command = place.command(PELLUCID);
    command.env("SECRET_OF_KEY", "Marker-71f3-Long-Enough");
    command.args(["sql", "-e", "-b", "-Q"]);
    let text = "CREATE MASTER KEY ENCRYPTION BY PASSWORD = '$(SECRET_OF_KEY)'";
    let told = said(command.arg(text));
    assert_eq!(
        told.stdout.lines().next(),
        Some("CREATE MASTER KEY ENCRYPTION BY PASSWORD = '***'")
    );
    assert!(!told.all().contains("Marker-71f3"), "{told:?}");
}

#[test]
fn json_has_the_same_facts() {
    let place = Place::new();
    let text = "PRINT 'said'\nSELECT 1 AS a, CAST(NULL AS nvarchar(3)) AS b, CAST(0.5 AS numeric(5,2)) AS c\nGO 2\n\
                SELECT * FROM nothing";
    let told = script(&place, text, &["--json"]);
    let lines: Vec<serde_json::Value> =
        told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5, "{told:?}");
    assert_eq!(lines[0]["text"], "said");
    assert_eq!(lines[0]["severity"], 0);
    assert_eq!(
        lines[1],
        serde_json::json!({
            "columns": [
                {"name": "a", "type": "int"},
                {"name": "b", "type": "nvarchar(3)"},
                {"name": "c", "type": "numeric(5,2)"},
            ],
            "rows": [[1, null, 0.5]],
            "rows_affected": 1,
        })
    );
    assert_eq!(lines[3], lines[1]);
    assert_eq!(
        lines[4],
        serde_json::json!({
            "number": 208, "severity": 16, "state": 1, "server": server(), "procedure": null, "line": 1,
            "text": "Invalid object name 'nothing'.",
        })
    );
}

#[test]
fn a_reader_that_is_gone_ends_it_quietly() {
    let place = Place::new();
    let text = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)\n\
                SELECT i FROM n OPTION (MAXRECURSION 0)\nGO 1000\n";
    place.secret("many.sql", text.as_bytes());
    let mut command = place.command("sh");
    command.args(["-c", &format!("{PELLUCID} sql -i many.sql | head -n 3")]);
    let told = said(&mut command);
    assert_eq!((told.stdout.lines().count(), told.stderr.as_str()), (3, ""), "{told:?}");
}

/// Sends SIGINT to the program; what it says then.
fn interrupted(place: &Place, text: &str, after: &str) -> Said {
    place.secret("long.sql", text.as_bytes());
    let mut command = place.command("sh");
    let shell = format!(
        "{PELLUCID} sql -i long.sql > out & pid=$!; \
         until grep -q '{after}' out; do sleep 0.05; done; kill -INT $pid; wait $pid"
    );
    let mut told = said(command.args(["-mc", &shell]).stdin(Stdio::null()));
    told.stdout = std::fs::read_to_string(Path::new(&place.path("out"))).unwrap();
    told
}

#[test]
fn an_interrupt_cancels_the_batch() {
    let told = interrupted(
        &Place::new(),
        "PRINT 'begun'\nWAITFOR DELAY '00:10:00'\nPRINT 'never'\nGO\nPRINT 'never'",
        "begun",
    );
    assert_eq!(told.code, 1, "{told:?}");
    assert_eq!(told.stdout, "begun\nQuery was cancelled by user.\n", "{told:?}");
}
