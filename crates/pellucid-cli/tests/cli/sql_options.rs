//! Goal: `sql` takes every option of sqlcmd, of ODBC's and of the one in Go, with its meaning or, for a server and a login
//! that do not exist here, with none; and no option stands for something else.
//!
//! Method: the program from outside; expected lines are typed by hand.

use crate::support::{said, said_with, Place, Said, PELLUCID};

fn sql(place: &Place, arguments: &[&str]) -> Said {
    place.pellucid(&[&["sql"], arguments].concat())
}

/// A script on standard input.
fn script(place: &Place, text: &str, options: &[&str]) -> Said {
    said_with(place.command(PELLUCID).arg("sql").args(options), text)
}

#[test]
fn options_of_a_connection_are_taken_and_have_no_effect() {
    let place = Place::new();
    let expected = "          1\n\n(1 rows affected)\n";
    for options in [
        "-S localhost",
        "-S. -E",
        r"-S .\SQLEXPRESS",
        "-Stcp:localhost,1433",
        "-E",
        "-C",
        "-N",
        "-No",
        "-N true",
        "-Nstrict",
        "-l 30",
        "-l0",
        "-a 32767",
        "-a512",
        "-A",
        "-K ReadOnly",
        "-Kreadwrite",
        "-M",
        "-R",
        "-D -S localhost",
        "-g",
        "-G",
        "-j",
        "-J server.pem",
        "-I",
        "-U sa -P x",
        "-Usa -Px",
        "-U sa -P-minus-",
        "-X",
        "-X1",
        "-X 1",
        "-F horizontal",
        "--server localhost --user-name sa --password x",
        "--use-trusted-connection --trust-server-certificate --encrypt-connection mandatory",
        "--trusted-connection",
        "--login-timeout 8 --packet-size 4096 --application-intent ReadOnly",
        "--login-timeOut 8 --multi-subnet-failover --dedicated-admin-connection",
        "--client-regional-setting --enable-column-encryption --raw-errors --use-aad",
        "--authentication-method SqlPassword --server-name x --driver-logging-level 0 --trace-file t",
        "--disable-cmd-and-warn --trim-spaces --format horizontal",
    ] {
        let options: Vec<_> = options.split(' ').collect();
        let told = sql(&place, &[&options, &["-h", "-1", "-Q", "SELECT 1"][..]].concat());
        let shown = told.stdout.trim_start();
        assert_eq!((told.code, shown), (0, expected.trim_start()), "{options:?}: {told:?}");
        assert_eq!(told.stderr, "", "{options:?}");
    }
    assert_eq!(sql(&place, &["-Q", "PRINT 'x'", "-U", "sa", "-P"]).succeeded(), "x\n");
    for wrong in [
        "-K Never",
        "-a 12",
        "-l -1",
        "-N maybe",
        "-t 65535",
        "-m 26",
        "-k3",
        "-p2",
        "-X2",
        "-Lx",
        "-f 12345",
        "-f latin1",
        "-c GO!(",
        "-n",
    ] {
        let options: Vec<_> = wrong.split(' ').collect();
        let told = sql(&place, &[&options, &["-Q", "SELECT 1"][..]].concat());
        assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{wrong}: {told:?}");
    }
}

#[test]
fn what_cannot_have_its_meaning_here_is_told() {
    let place = Place::new();
    let told = sql(&place, &["-S", r"PROD01\SALES", "-W", "-h-1", "-Q", "PRINT '$(SQLCMDSERVER)'"]);
    assert_eq!((told.code, told.stdout.as_str()), (0, "PROD01\\SALES\n"), "{told:?}");
    assert!(told.stderr.contains("no server here") && told.stderr.contains("PROD01"), "{told:?}");
    let told = sql(&place, &["-z", "marker-18e2", "-Q", "PRINT 'on'"]);
    assert_eq!((told.code, told.stdout.as_str()), (0, "on\n"), "{told:?}");
    assert!(told.stderr.contains("no password was changed"), "{told:?}");
    assert!(!told.all().contains("marker"), "{told:?}");
    // -Z changes a password and executes nothing.
    let told = sql(&place, &["-Z", "marker-18e2", "-Q", "PRINT 'on'"]);
    assert_eq!((told.code, told.stdout.as_str()), (0, ""), "{told:?}");
    assert!(told.stderr.contains("no password was changed"), "{told:?}");
    let told = sql(&place, &["-F", "db.example.org", "-Q", "PRINT 'on'"]);
    assert_eq!((told.code, told.stdout.as_str()), (0, "on\n"), "{told:?}");
    assert!(told.stderr.contains("host name in a certificate"), "{told:?}");
}

#[test]
fn no_password_is_ever_shown() {
    let place = Place::new();
    let text = ":listvar\nPRINT 'on'\nGO\n:nonsense\n";
    for password in [&["-P", "marker-77c0"][..], &["-Pmarker-77c0"], &["--password=-marker-77c0"]] {
        for option in ["-e", "-p", "-m-1"] {
            let told = script(&place, text, &[&["-U", "sa", option], password].concat());
            assert!(told.stdout.contains("on\n"), "{told:?}");
            assert!(!told.all().contains("marker"), "{told:?}");
        }
        // Not even where the other options are wrong.
        let told = sql(&place, &[password, &["-w", "1"]].concat());
        assert!(told.code == 2 && !told.all().contains("marker"), "{told:?}");
    }
    // An option is no password: neither -b nor the password gets lost.
    for option in ["-P", "-z", "-Z"] {
        for value in ["-b", "-marker-77c0"] {
            let told = sql(&place, &[option, value, "-Q", "PRINT 'never'"]);
            assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{told:?}");
            assert!(!told.all().contains("marker"), "{told:?}");
        }
    }
    // A login may be a password as well.
    let text = "OPEN MASTER KEY DECRYPTION BY PASSWORD = '$(SQLCMDUSER)'";
    let told = sql(&place, &["-U", "Marker-77c0-Long", "-Q", text]);
    assert!(told.stderr.contains("[secret-in-variable]"), "{told:?}");
}

#[test]
fn servers_are_this_machine() {
    let place = Place::new();
    let machine = said(std::process::Command::new("uname").arg("-n")).succeeded();
    assert_eq!(sql(&place, &["-L"]).succeeded(), format!("\nServers:\n   {machine}"));
    assert_eq!(sql(&place, &["-Lc"]).succeeded(), machine);
    assert_eq!(sql(&place, &["--list-servers", "c"]).succeeded(), machine);
}

#[test]
fn the_help_is_sqlcmds() {
    let place = Place::new();
    let help = sql(&place, &["-?"]).succeeded();
    assert!(help.contains("--query-timeout") && help.contains("Taken without effect"), "{help}");
}

#[test]
fn messages_are_shown_by_severity() {
    let place = Place::new();
    let text = "PRINT 'said'\nRAISERROR('low', 12, 1)\nRAISERROR('high', 16, 1)";
    let shown = |options: &[&str]| {
        let told = script(&place, text, options);
        ["said", "low", "high"].map(|word| told.stdout.contains(&format!("{word}\n")))
    };
    assert_eq!(shown(&["-m", "0"]), [true, true, true]);
    assert_eq!(shown(&["-m1"]), [false, true, true]);
    assert_eq!(shown(&["-m", "13"]), [false, false, true]);
    assert_eq!(shown(&["--error-level", "17"]), [false, false, false]);
    let told = script(&place, "PRINT 'said'", &["-m-1"]).succeeded();
    assert!(told.starts_with("Msg 0, Level 0, State 1, Server "), "{told}");
    assert!(told.ends_with(", Line 1\nsaid\n"), "{told}");
    // What is not shown counts as before.
    assert_eq!(script(&place, text, &["-m", "17", "-b"]).code, 1);
    assert_eq!(script(&place, text, &["-m", "17", "-V", "16"]).code, 16);
}

#[test]
fn a_batch_that_takes_too_long_is_cancelled() {
    let place = Place::new();
    let text = "PRINT 'begun'\nWAITFOR DELAY '00:01:00'\nPRINT 'never'\nGO\nPRINT 'after'";
    let told = script(&place, text, &["-t", "1"]);
    assert_eq!((told.code, told.stdout.as_str()), (0, "begun\nTimeout expired\nafter\n"));
    let told = script(&place, text, &["-t1", "-b"]);
    assert_eq!((told.code, told.stdout.as_str()), (1, "begun\nTimeout expired\n"));
    let told = script(&place, &format!(":setvar SQLCMDSTATTIMEOUT 1\n{text}"), &["-b"]);
    assert_eq!((told.code, told.stdout.as_str()), (1, "begun\nTimeout expired\n"));
    let told = script(&place, "PRINT 'x'", &["-t", "0", "-t", "65534"]);
    assert_eq!(told.code, 2, "an option is given once");
    assert_eq!(script(&place, "PRINT 'x'", &["-t", "65534"]).succeeded(), "x\n");
}

#[test]
fn batches_end_where_c_says() {
    let place = Place::new();
    let told = script(&place, "PRINT 'a'\nRUN\nPRINT 'b'\nrun 2\nPRINT 'c'", &["-c", "RUN"]);
    let looped = "Beginning execution loop\nb\nb\nBatch execution completed 2 times.\n";
    assert_eq!(told.succeeded(), format!("a\n{looped}c\n"));
    assert_eq!(script(&place, "PRINT 'a'\nGO\nPRINT 'b'", &["-cGO"]).succeeded(), "a\nb\n");
}

#[test]
fn rows_stand_as_options_say() {
    let place = Place::new();
    let text = "SELECT 1 AS id, N'a' + NCHAR(9) + NCHAR(10) + N'b' AS name";
    let shown = |options: &[&str]| {
        let told = sql(&place, &[&["-W", "-Q", text], options].concat()).succeeded();
        told.replace("\n\n(1 rows affected)\n", "")
    };
    assert_eq!(shown(&["-h-1"]), "1 a\t\nb");
    assert_eq!(shown(&["-h-1", "-k"]), "1 ab");
    assert_eq!(shown(&["-h-1", "-k1"]), "1 a  b");
    assert_eq!(shown(&["-h-1", "-k", "2"]), "1 a b");
    for vertical in [&["-F", "vertical"][..], &["-Fvert"], &["--vertical"]] {
        assert_eq!(shown(&[vertical, &["-k2"]].concat()), "id   1\nname a b\n", "{vertical:?}");
    }
    let boxes = "+----+------+\n| id | name |\n+----+------+\n|  1 | ab   |\n+----+------+";
    assert_eq!(shown(&["--ascii", "-k"]), boxes);
    assert_eq!(shown(&["-F", "ascii", "-k", "-h", "0"]), boxes);
    for separator in ["-s=", "-s;", "-s=="] {
        let told = shown(&[separator, "-h-1", "-k"]);
        assert_eq!(told, format!("1{}ab", &separator[2..]));
    }
    let told = sql(&place, &["-p1", "-h-1", "-W", "-Q", "PRINT 'x'"]).succeeded();
    let figures: Vec<_> = told.trim_end().rsplit('\n').next().unwrap().split(':').collect();
    assert!(figures.len() == 5 && figures[..2] == ["4096", "1"], "{told}");
    let told = sql(&place, &["-p", "-a", "8192", "-Q", "PRINT 'x'"]).succeeded();
    assert!(told.starts_with("x\n\nNetwork packet size (bytes): 8192\n1 xact[s]:\n"), "{told}");
    assert!(told.contains("Clock Time (ms.): total ") && told.contains(" xacts per sec.)\n"));
    let told = sql(&place, &["-H", "desk", "-Q", "PRINT HOST_NAME() + ' $(SQLCMDWORKSTATION)'"]);
    assert_eq!(told.succeeded(), "desk desk\n");
}

#[test]
fn several_scripts_are_named_with_commas_or_spaces() {
    let place = Place::new();
    place.secret("one.sql", b"PRINT '1'");
    std::fs::create_dir(place.path("d")).unwrap();
    place.secret("d/two.sql", b":r .\\d\\three.sql\nPRINT '2'");
    place.secret("d/three.sql", b"PRINT '3'\nGO\n");
    for names in [&["one.sql,d/two.sql"][..], &["one.sql", r".\d\two.sql"], &["one.sql,d\\two.sql"]]
    {
        let told = sql(&place, &[&["-o", r".\d\out.txt", "-i"], names].concat());
        assert_eq!(told.succeeded(), "", "{names:?}");
        let out = std::fs::read_to_string(place.path("d/out.txt")).unwrap();
        assert_eq!(out, "1\n3\n2\n", "{names:?}");
    }
    // A file that has a backslash in its name is that file.
    place.secret(r"d\two.sql", b"PRINT 'itself'");
    assert_eq!(sql(&place, &["-i", r"d\two.sql"]).succeeded(), "itself\n");
}
