//! Goal: sqlcmd's own commands and scripting variables have their meaning, and a command that would start a program or
//! reach another machine is refused by its name before anything is executed.
//!
//! Method: the program from outside; expected lines are typed by hand.

use crate::support::{said_with, Place, Said, PELLUCID};

/// A script on standard input.
fn script(place: &Place, text: &str, options: &[&str]) -> Said {
    said_with(place.command(PELLUCID).arg("sql").args(options), text)
}

/// A script in a file.
fn file(place: &Place, text: &str, options: &[&str]) -> Said {
    place.secret("given.sql", text.as_bytes());
    place.pellucid(&[&["sql", "-i", "given.sql"], options].concat())
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap()
}

#[test]
fn exit_gives_the_value_of_its_query() {
    let place = Place::new();
    for (text, code) in [
        ("EXIT(SELECT 3)", 3),
        (":exit (SELECT COUNT(*) FROM sys.databases WHERE database_id < 3) -- so many", 2),
        ("DECLARE @n int = 7\nexit(SELECT @n\n  + 1)\nPRINT 'never'", 8),
        ("SELECT 5\nGO\nEXIT(SELECT '6')", 6),
        ("EXIT(SELECT 4 UNION ALL SELECT 9)", 4),
        ("EXIT(SELECT 256)", 255),
        ("EXIT(SELECT -1)", 255),
        ("EXIT(SELECT 1 WHERE 1 = 0)", 155),
        ("EXIT(SELECT 'many')", 154),
        ("EXIT(SELECT NULL)", 154),
        ("EXIT(SELECT * FROM nothing)", 156),
        ("PRINT 'done'\nEXIT()", 0),
        ("PRINT 'never'\nEXIT", 0),
    ] {
        for told in [file(&place, text, &[]), script(&place, text, &[])] {
            assert_eq!(told.code, code, "{text}: {told:?}");
            assert!(!told.stdout.contains("never"), "{text}: {told:?}");
        }
    }
    assert_eq!(file(&place, "PRINT 'done'\nEXIT()", &[]).stdout, "done\n");
    assert_eq!(place.pellucid(&["sql", "-Q", "EXIT(SELECT 12)"]).code, 12);
    // Under -b an error counts more.
    assert_eq!(file(&place, "EXIT(SELECT * FROM nothing)", &["-b"]).code, 1);
    let told = file(&place, "PRINT 'never'\nEXIT(SELECT (1)", &[]);
    assert!(told.code == 1 && told.stderr.contains("near command 'EXIT'"), "{told:?}");
}

#[test]
fn nothing_is_executed_of_a_script_that_would_start_a_program() {
    let place = Place::new();
    for command in ["!! touch made", "!!touch made", ":!! touch made", ":!!touch made", ":ed", "ed"]
    {
        let text = format!("PRINT 'before'\nGO\n{command}\nGO\nPRINT 'after'\nGO\n");
        for options in [&[][..], &["-b"], &["-X1"]] {
            let told = file(&place, &text, options);
            assert_eq!((told.code, told.stdout.as_str()), (1, ""), "{command}: {told:?}");
            assert!(
                told.stderr.contains("not supported (a script starts no program) at line 3"),
                "{told:?}"
            );
            assert!(told.stderr.contains("at line 3 of `given.sql`"), "{told:?}");
            // Standard input is read once.
            let told = script(&place, &text, options);
            assert_eq!((told.code, told.stdout.as_str()), (1, "before\n"), "{command}: {told:?}");
        }
        let told = file(&place, &text, &["-X"]);
        assert_eq!(
            (told.code, told.stdout.as_str()),
            (0, "before\nafter\n"),
            "{command}: {told:?}"
        );
        assert!(told.stderr.contains("Sqlcmd: Warning: "), "{told:?}");
    }
    assert!(!place.path("made").exists());
    place.secret("inner.sql", b"!! touch made\n");
    let told = file(&place, "PRINT 'before'\nGO\n:r inner.sql\n", &[]);
    assert_eq!((told.code, told.stdout.as_str()), (1, ""), "{told:?}");
    // What is never reached is not refused, nor is text.
    let told = file(&place, "PRINT '\n!! x'\nGO\n:quit\n!! x\n", &[]);
    assert_eq!(told.succeeded(), "\n!! x\n");
}

#[test]
fn a_script_connects_to_this_machine_only() {
    let place = Place::new();
    let text =
        "CREATE TABLE #t (a int)\nGO\n:connect . -U sa -P marker-09ab -l 5\nSELECT * FROM #t\nGO\n\
                :connect tcp:localhost,1433\nPRINT 'on'\n";
    let told = file(&place, text, &[]);
    assert!(told.code == 0 && told.stdout.ends_with("Invalid object name '#t'.\non\n"), "{told:?}");
    assert!(!told.all().contains("marker"), "{told:?}");
    let told = file(&place, "PRINT 'before'\nGO\n:connect PROD01 -P marker-09ab\nPRINT 'x'", &[]);
    assert_eq!((told.code, told.stdout.as_str()), (1, ""), "{told:?}");
    assert!(told.stderr.contains("for another machine (`PROD01`) at line 3 of"), "{told:?}");
    assert!(!told.all().contains("marker"), "{told:?}");
}

#[test]
fn results_and_errors_go_where_a_script_says() {
    let place = Place::new();
    std::fs::create_dir(place.path("d")).unwrap();
    let text = "PRINT '1'\nGO\n:setvar n out\n:out \"d\\$(n).txt\"\nPRINT '2'\nGO\n:error errors.txt\n\
                RAISERROR('bad', 16, 1)\nGO\n:OUT stderr\nPRINT '3'\nGO\n:out STDOUT\n:error stdout\n\
                RAISERROR('worse', 16, 1)\nPRINT '4'\nGO\n";
    let told = file(&place, text, &[]);
    assert_eq!((told.code, told.stderr.as_str()), (0, "3\n"), "{told:?}");
    assert!(told.stdout.starts_with("1\nMsg 50000, ") && told.stdout.ends_with("worse\n4\n"));
    assert_eq!(read(&place, "d/out.txt"), "2\n");
    let errors = read(&place, "errors.txt");
    assert!(errors.starts_with("Msg 50000, ") && errors.ends_with("\nbad\n"), "{errors}");
    let told = file(&place, ":out none/out.txt\nPRINT 'never'", &[]);
    assert_eq!((told.code, told.stdout.as_str()), (1, ""), "{told:?}");
    assert!(told.stderr.contains("cannot make `none/out.txt`: "), "{told:?}");
    let told = file(&place, ":perftrace times.txt\nPRINT '1'\nGO\n", &["-p1"]);
    assert_eq!(told.succeeded(), "1\n");
    assert!(read(&place, "times.txt").starts_with("4096:1:"), "{}", read(&place, "times.txt"));
}

#[test]
fn what_is_pending_is_listed_and_forgotten() {
    let place = Place::new();
    let text =
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'marker-b2b2'\n:list\n:reset\nPRINT 'a'\nreset\n\
                PRINT 'b'\nGO\n:help\n:serverlist\n";
    let told = file(&place, text, &[]).succeeded();
    let listed = "OPEN MASTER KEY DECRYPTION BY PASSWORD = '***'\nb\nGO [COUNT] ";
    assert!(told.starts_with(listed) && !told.contains("marker"), "{told}");
    assert!(told.contains("\nServers:\n   "), "{told}");
}

#[test]
fn values_stand_one_behind_the_other_under_xml() {
    let place = Place::new();
    let text =
        ":xml on\nSELECT '<a>', 1 UNION ALL SELECT '</a>', 2\nGO\n:XML OFF\nSELECT 1 AS a\nGO";
    let told = file(&place, text, &["-W"]).succeeded();
    assert_eq!(told, "<a>1</a>2\na\n-\n1\n\n(1 rows affected)\n");
}

#[test]
fn sqlcmds_own_variables_have_values() {
    let place = Place::new();
    let text = "PRINT '$(SQLCMDSERVER)|$(SQLCMDDBNAME)|$(SQLCMDUSER)|$(SQLCMDCOLSEP)|$(SQLCMDCOLWIDTH)|\
                $(SQLCMDHEADERS)|$(SQLCMDERRORLEVEL)|$(SQLCMDMAXVARTYPEWIDTH)|$(SQLCMDMAXFIXEDTYPEWIDTH)|\
                $(SQLCMDLOGINTIMEOUT)|$(SQLCMDSTATTIMEOUT)|$(SQLCMDPACKETSIZE)|$(SQLCMDEDITOR)|$(SQLCMDINI)'";
    assert!(script(&place, text, &[]).succeeded().ends_with("||| |0|0|0|256|0|8|0|4096||\n"));
    let options = [
        "-S", ".", "-d", "msdb", "-U", "sa", "-s,", "-w", "200", "-h", "5", "-m0", "-y", "9",
        "-Y9", "-l1", "-t2", "-a", "512",
    ];
    let told = script(&place, text, &options).succeeded();
    assert_eq!(told, ".|msdb|sa|,|200|5|0|9|9|1|2|512||\n");
    let mut command = place.command(PELLUCID);
    command.env("SQLCMDUSER", "ada").env("SQLCMDDBNAME", "msdb").env("SQLCMDCOLSEP", ";");
    let told = said_with(command.arg("sql"), "PRINT '$(SQLCMDUSER) $(SQLCMDCOLSEP) ' + DB_NAME()");
    assert_eq!(told.succeeded(), "ada ; msdb\n");
    // Under -X a script has nothing of the environment.
    let mut command = place.command(PELLUCID);
    command.env("SQLCMDUSER", "ada").env("OTHER", "x").args(["sql", "-X"]);
    let told = said_with(&mut command, "PRINT '[$(SQLCMDUSER)]'\nGO\nPRINT '$(OTHER)'");
    assert_eq!((told.code, told.stdout.as_str()), (1, "[]\n"), "{told:?}");
    let told =
        script(&place, ":listvar\n", &["-v", "db=sales", "key_password=marker-1b"]).succeeded();
    assert!(told.contains("SQLCMDPACKETSIZE = \"4096\"\n") && told.contains("DB = \"sales\"\n"));
    assert!(!told.contains("marker"), "{told}");
}

#[test]
fn setvar_changes_how_rows_stand() {
    let place = Place::new();
    let row = "SELECT 1 AS a, CAST(N'abcdefgh' AS nvarchar(max)) AS b, N'ABCDEFGH' AS c\nGO\n";
    let text = format!(
        ":setvar SQLCMDCOLSEP \"|\"\n:setvar SQLCMDMAXVARTYPEWIDTH 5\n:setvar SQLCMDHEADERS -1\n{row}\
         :setvar sqlcmdmaxfixedtypewidth 3\n{row}:setvar SQLCMDCOLSEP\n{row}\
         :setvar SQLCMDFORMAT vertical\n{row}:setvar SQLCMDERRORLEVEL 1\nPRINT 'never'\n"
    );
    let told = file(&place, &text, &[]).succeeded().replace("\n(1 rows affected)\n", "");
    assert_eq!(
        told,
        "          1|abcde|ABCDE\n          1|abcde|ABC\n          1 abcde ABC\n1\nabcde\nABC\n\n"
    );
    for (line, says) in [
        (":setvar SQLCMDUSER x", "'SQLCMDUSER' is read-only"),
        (":setvar SQLCMDHEADERS many", "'SQLCMDHEADERS' has an invalid value"),
        (":setvar SQLCMDCOLWIDTH 3", "'SQLCMDCOLWIDTH' has an invalid value"),
    ] {
        let told = file(&place, &format!("{line}\nPRINT 'never'"), &[]);
        assert_eq!((told.code, told.stdout.as_str()), (1, ""), "{line}");
        assert!(told.stderr.contains(says), "{told:?}");
    }
    for given in ["SQLCMDSERVER=x", "SQLCMDHEADERS=x"] {
        let told = script(&place, "PRINT 'never'", &["-v", given]);
        assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{given}");
        assert!(told.stderr.contains("[own-variable]"), "{told:?}");
    }
    let mut command = place.command(PELLUCID);
    let told = said_with(command.env("SQLCMDSTATTIMEOUT", "soon").arg("sql"), "PRINT 'never'");
    assert!(told.code == 2 && told.stderr.contains("`SQLCMDSTATTIMEOUT`"), "{told:?}");
}

#[test]
fn a_startup_script_comes_first() {
    let place = Place::new();
    place.secret("first.sql", b":setvar who ada\nPRINT 'first'\nGO\n");
    let said_of = |options: &[&str]| {
        let mut command = place.command(PELLUCID);
        command.env("SQLCMDINI", "first.sql").arg("sql").args(options);
        said_with(&mut command, "PRINT 'second'")
    };
    assert_eq!(said_of(&[]).succeeded(), "first\nsecond\n");
    assert_eq!(said_of(&["-Q", "PRINT '$(who)'"]).succeeded(), "first\nada\n");
    assert_eq!(said_of(&["-X"]).succeeded(), "second\n");
}
