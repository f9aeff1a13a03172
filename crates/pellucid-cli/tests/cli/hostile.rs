//! Goal: what somebody else has written, or named, costs little, shows as it is, and passes for nothing else.
//!
//! Method: names with escape sequences, line ends and overrides of the writing direction for everything that can be named;
//! headers, master key files and bundles that ask for gigabytes of Argon2id; passwords in the arguments of `sql`; weak keys,
//! passphrases and certificates that were changed, brought in by every way there is.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::support::{edit, edit_headers, said, said_with, sha256, Place, Said, PELLUCID};

/// What a terminal executes, and what forges a line of a log.
const LOUD: &str =
    "a\x1b]0;owned\x07\x1b[2J\u{9b}31m\r\npellucid: forged\tline\u{202e}\u{2066}\u{2028}z";

/// No character of `LOUD` that a terminal executes is in it; line ends and tabulators of the program's own are.
fn harmless(what: &str, told: &Said) {
    for text in [&told.stdout, &told.stderr] {
        let found = text.chars().find(|one| {
            (one.is_control() && !matches!(one, '\n' | '\t'))
                || matches!(*one, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        assert_eq!(found, None, "{what}: {text:?}");
        let forged = text.lines().find(|line| line.trim_start().starts_with("pellucid: forged"));
        assert_eq!(forged, None, "{what}: {text}");
    }
}

#[test]
fn no_name_reaches_a_terminal_or_a_log_as_it_is() {
    let place = Place::new();
    let directory = place.path(LOUD);
    std::fs::create_dir(&directory).unwrap();
    place.plain("plain.db");
    let name = format!("{LOUD}/{LOUD}.db");
    std::fs::copy(place.path("plain.db"), place.path(&name)).unwrap();
    let backup = format!("{LOUD}.bak");
    place.secret("pass", b"correct horse");
    for words in [
        vec!["encrypt", &name],
        vec!["encrypt", &name],
        vec!["status"],
        vec!["status", &name],
        vec!["status", "--prometheus"],
        vec!["--json", "status"],
        vec!["doctor"],
        vec!["check", &name],
        vec!["protector", "add", &name, "--new-passphrase-file", "pass"],
        vec!["protector", "list", &name],
        vec!["rekey", &name],
        vec!["scan", "status"],
        vec!["scan", "verify", &name],
        vec!["backup", &name, "--to", &backup],
        vec!["backup", &name, "--to", &backup],
        vec!["header", &backup],
        vec!["files", &backup],
        vec!["label", &backup],
        vec!["verify", &backup, "--open"],
        vec!["history"],
        vec!["--json", "history"],
        vec!["history", "prune", "--older-than", "0"],
        vec!["history", "prune", "--older-than", "0", "--last", LOUD],
        vec!["accept", &name],
        vec!["accept", "--gone", "--under", LOUD],
        vec!["restore", &backup, "--to", &name],
        vec!["restore", &backup, "--to", &format!("{LOUD}-back.db")],
        vec!["history", "--restores"],
        vec!["events"],
        vec!["--json", "events"],
        vec!["salvage", &name, "--to", &format!("{LOUD}-saved.db")],
        vec!["decrypt", &name],
        vec!["decrypt", &name],
        vec!["check", &format!("{LOUD}-none.db")],
        vec!["cert", "import", LOUD, "--cert-file", LOUD],
        vec!["cert", "create", LOUD],
        vec!["cert", "show", LOUD],
        vec!["backup", "plain.db", "--to", "m.bak", "--media-name", LOUD],
        vec!["backup", "plain.db", "--to", "m.bak", "--name", LOUD],
        vec!["instance", "import", LOUD, "--password-file", "pass"],
        vec!["key", "restore", "service", "--file", LOUD, "--password-file", "pass"],
        vec!["run", "--", LOUD],
        vec!["sql", "-i", LOUD],
        vec!["sql", "-d", LOUD, "-Q", "SELECT 1"],
    ] {
        harmless(&format!("{words:?}"), &place.pellucid(&words));
    }
}

#[test]
fn errors_of_the_shim_are_one_line_each() {
    let place = Place::new();
    let name = format!("{LOUD}.db");
    place.plain(&name);
    place.pellucid(&["--quiet", "encrypt", &name]).succeeded();
    edit(&place.path(&name), |bytes| bytes[17_000] ^= 1);
    let told = place.pellucid(&["run", "--", "sqlite3", &name, "SELECT * FROM t"]);
    assert!(told.stderr.contains("\\npellucid: forged"), "{told:?}");
    harmless("run", &told);
    harmless("check", &place.pellucid(&["check", &name]));
}

#[test]
fn a_name_that_is_not_utf_8_shows_its_bytes() {
    let place = Place::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9\x1b[2J.db");
    std::fs::copy(place.plain("plain.db"), place.path("").join(name)).unwrap();
    let told = said(place.command(PELLUCID).arg("encrypt").arg(name));
    assert!(told.stdout.contains("caf\\xe9\\x1b[2J.db: encrypted"), "{told:?}");
    harmless("encrypt", &told);
}

#[test]
fn the_subject_of_a_certificate_and_the_names_of_media_show_without_their_control_characters() {
    let place = Place::new();
    let openssl = |arguments: &[&str]| {
        said(place.command("openssl").args(arguments)).succeeded();
    };
    let subject = format!("/CN=x{}y", LOUD.replace(['/', '+'], ""));
    let new = [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-utf8", "-keyout", "k.pem", "-out",
        "c.pem",
    ];
    openssl(&[&new[..], &["-subj", &subject]].concat());
    place.pellucid(&["--quiet", "init"]);
    for words in ["cert import loud --cert-file c.pem", "cert list", "cert show loud"] {
        harmless(words, &place.pellucid(&words.split(' ').collect::<Vec<_>>()));
    }
    // Media whose names have lines, as a description may: each stays in its own line.
    place.plain("app.db");
    let words = ["backup", "app.db", "--to", "m.bak", "--media-name", "abcdefghijklmnopqrstuvwxyz"];
    place.pellucid(&words).succeeded();
    edit(&place.path("m.bak"), |bytes| {
        let at =
            bytes.windows(26).position(|window| window == b"abcdefghijklmnopqrstuvwxyz").unwrap();
        bytes[at..at + 26].copy_from_slice(b"x\npellucid: forged\xe2\x80\xae line");
        let sum = sha256(&bytes[..4064]);
        bytes[4064..4096].copy_from_slice(&sum);
    });
    let told = place.pellucid(&["label", "m.bak"]);
    assert!(told.stdout.contains("x\\npellucid: forged\\u{202e} line"), "{told:?}");
    harmless("label", &told);
}

#[test]
fn messages_of_statements_have_no_control_characters() {
    let place = Place::new();
    let script = "PRINT 'one' + CHAR(27) + '[2J' + CHAR(13) + CHAR(10) + 'two' + CHAR(9) + NCHAR(155);\nGO\n\
                  DROP DATABASE [\x1b(0t\x07];\nGO\nBACKUP DATABASE master TO DISK = 'no\x1b[2J.bak'\n";
    for options in [&["sql"][..], &["sql", "-r", "1"], &["--json", "sql"]] {
        let told = said_with(place.command(PELLUCID).args(options), script);
        let [stdout, stderr] = [told.stdout, told.stderr].map(|text| text.replace("\r\n", "\n"));
        harmless("sql", &Said { stdout, stderr, code: told.code });
    }
}

/// A header whose passphrase protectors ask for this (docs/format.md, "Protectors"), with the kept one behind them.
fn forge(database: &Path, costs: &[[u32; 3]], keep: bool) {
    edit_headers(database, |copy| {
        let from = 128 + 104 * usize::from(copy[54]);
        let to = u32::from_be_bytes(copy[20..24].try_into().unwrap()) as usize;
        let kept = copy[from..to].to_vec();
        let mut protectors = Vec::new();
        for cost in costs {
            protectors.extend_from_slice(&[2, 0, 0, 88]);
            cost.iter().for_each(|number| protectors.extend_from_slice(&number.to_be_bytes()));
            protectors.extend_from_slice(&[7; 76]);
        }
        let count = costs.len() + usize::from(keep);
        if keep {
            protectors.extend_from_slice(&kept);
        }
        copy[from..from + protectors.len()].copy_from_slice(&protectors);
        copy[53] = count as u8;
        copy[20..24].copy_from_slice(&((from + protectors.len()) as u32).to_be_bytes());
    });
}

/// In 10 s of processor time and 600 MB of data.
fn within(place: &Place, words: &str, environment: (&str, &str)) -> Said {
    let mut command = place.command("sh");
    // Half a gigabyte of address space would be too little for the program itself: of data is what it may take.
    command
        .args(["-c", &format!("ulimit -t 10; ulimit -d 600000; exec {PELLUCID} {words}")])
        .env(environment.0, environment.1);
    let told = said(&mut command);
    // 128 and SIGXCPU, or SIGKILL.
    assert!(!matches!(told.code, 137 | 152), "{words}: {told:?}");
    told
}

#[test]
fn a_forged_header_costs_little() {
    let place = Place::new();
    place.secret("pass", b"correct horse");
    for (costs, what) in [
        (vec![[1 << 20, 16, 16]; 8], "protector 1"),
        (vec![[1 << 20, 1, 1]], "protector 1"),
        (vec![[262_144, 7, 4]], "protector 1"),
        (vec![[65_536, 16, 4], [65_536, 16, 4], [65_536, 16, 4]], "protector 2"),
    ] {
        std::fs::remove_file(place.path("app.db")).ok();
        place.plain("app.db");
        place.pellucid(&["--quiet", "encrypt", "app.db", "--passphrase-file", "pass"]).succeeded();
        forge(&place.path("app.db"), &costs, false);
        let told = within(&place, "check app.db --passphrase-file pass", ("NONE", ""));
        for word in [what, "Argon2id", "256 MiB", "--allow-cost", "PELLUCID_ALLOW_COST=1"] {
            assert!(told.stderr.contains(word), "{costs:?}: {word}: {told:?}");
        }
        assert_eq!(told.code, 1, "{told:?}");
        let query = "run -- sqlite3 app.db 'SELECT 1 FROM t'";
        let told = within(&place, query, ("PELLUCID_PASSPHRASE_FILE", "pass"));
        assert!(told.code != 0 && told.stderr.contains("--allow-cost"), "{told:?}");
    }
}

#[test]
fn a_dear_protector_that_somebody_put_in_keeps_nobody_out() {
    let place = Place::new();
    place.secret("pass", b"correct horse");
    place.plain("app.db");
    place.pellucid(&["--quiet", "encrypt", "app.db", "--passphrase-file", "pass"]).succeeded();
    forge(&place.path("app.db"), &[[1 << 20, 16, 16]; 3], true);
    // The header is not authentic, which is told once the true protector has opened: at little cost.
    let told = within(&place, "check app.db --passphrase-file pass", ("NONE", ""));
    assert!(!told.stderr.contains("--allow-cost"), "{told:?}");
    assert_eq!(told.code, 3, "{told:?}");
}

#[test]
fn as_many_passphrases_as_a_header_has_room_for_open_it() {
    let place = Place::new();
    place.secret("first", b"the first passphrase");
    place.plain("app.db");
    place.pellucid(&["--quiet", "encrypt", "app.db", "--passphrase-file", "first"]).succeeded();
    for number in 2..=8 {
        place.secret("next", format!("passphrase number {number}").as_bytes());
        let add = "protector add app.db --passphrase-file first --new-passphrase-file next";
        place.pellucid(&add.split(' ').collect::<Vec<_>>()).succeeded();
    }
    place.pellucid(&["check", "app.db", "--passphrase-file", "next"]).succeeded();
    place.secret("wrong", b"another passphrase");
    let told = place.pellucid(&["check", "app.db", "--passphrase-file", "wrong"]);
    assert!(told.stderr.contains("wrong passphrase") && !told.stderr.contains("cost"), "{told:?}");
}

#[test]
fn a_dear_master_key_file_and_a_dear_bundle_need_the_option() {
    let place = Place::new();
    place.secret("pass", b"correct horse");
    place.plain("app.db");
    place.pellucid(&["--quiet", "encrypt", "app.db"]).succeeded();
    let run = |words: &str| place.pellucid(&words.split(' ').collect::<Vec<_>>());
    run("key backup service --file smk --password-file pass").succeeded();
    run("instance export --to bundle --password-file pass").succeeded();
    for (file, cost_at, words) in [
        ("smk", 36, "key restore service --file smk --password-file pass"),
        ("bundle", 80, "instance import bundle --password-file pass --dry-run"),
    ] {
        edit(&place.path(file), |bytes| {
            // 272 MiB once: dear, and no more than a machine of today has.
            for (at, number) in [(0, 278_528u32), (4, 1), (8, 4)] {
                bytes[cost_at + at..cost_at + at + 4].copy_from_slice(&number.to_be_bytes());
            }
            let end = bytes.len() - 32;
            let sum = sha256(&bytes[..end]);
            bytes[end..].copy_from_slice(&sum);
        });
        let told = run(words);
        assert!(told.code == 1 && told.stderr.contains("--allow-cost"), "{told:?}");
        // Allowed, it is the wrong password: the cost was another one when it was sealed.
        for (option, variable) in [("--allow-cost ", "0"), ("", "1")] {
            let told = said(
                place
                    .command(PELLUCID)
                    .args(format!("{option}{words}").split(' '))
                    .env("PELLUCID_ALLOW_COST", variable),
            );
            assert!(told.code == 1 && !told.stderr.contains("--allow-cost"), "{told:?}");
        }
    }
}

/// The budget of many sets is in `pellucid::protector`; here, that a few of another passphrase hide nothing.
#[test]
fn sets_that_no_passphrase_opens_hide_no_other() {
    let place = Place::new();
    place.secret("pass", b"correct horse");
    place.plain("app.db");
    for append in [&[][..], &["--append"], &["--append"]] {
        let back_up = ["backup", "app.db", "--to", "m.bak", "--passphrase-file", "pass"];
        place.pellucid(&[&back_up, append].concat()).succeeded();
    }
    place.secret("wrong", b"another passphrase");
    let told = place.pellucid(&["header", "m.bak", "--passphrase-file", "wrong"]);
    assert_eq!(told.stdout.matches("(needs the key)").count(), 3, "{told:?}");
    let told = place.pellucid(&["header", "m.bak", "--passphrase-file", "pass"]);
    assert!(!told.stdout.contains("(needs the key)"), "{told:?}");
}

#[test]
fn a_password_in_an_argument_is_refused_before_anything_runs() {
    let place = Place::new();
    std::fs::write(place.path("in.sql"), "PRINT 'ran'\nGO\n:r more.sql\n").unwrap();
    std::fs::write(place.path("more.sql"), "OPEN MASTER KEY DECRYPTION BY PASSWORD = '$(pw)'\n")
        .unwrap();
    std::fs::write(
        place.path("part.sql"),
        "PRINT 'ran'\nGO\nOPEN MASTER KEY DECRYPTION BY PASSWORD = 'x$(PW)'\n",
    )
    .unwrap();
    let open = "PRINT 'ran'; OPEN MASTER KEY DECRYPTION BY PASSWORD =";
    let run = |words: &[&str], input: &str| {
        said_with(
            place.command(PELLUCID).arg("sql").args(words).env("ENVPW", "from elsewhere"),
            input,
        )
    };
    for words in [
        vec!["-v", "pw=Pa55-argv-Secret", "-Q", &format!("{open} '$(pw)'")],
        vec!["-v", "pw=x", "-Q", &format!("{open} '$(pw)'")],
        vec!["-v", "pw=x", "-Q", &format!("{open} N'$(PW)'")],
        vec!["-v", "pw=x", "-Q", &format!("EXEC('{open} ''$(pw)''')")],
        vec!["-Q", &format!(":setvar q Pa55-argv-Secret\n{open} '$(q)'")],
        vec!["-v", "pw='Pa55-argv-Secret'", "-Q", &format!("{open} $(pw)")],
        vec![
            "-v",
            "pw=Pa55-argv-Secret",
            "-Q",
            "CREATE CREDENTIAL c WITH IDENTITY = 'i', SECRET = '$(pw)'",
        ],
        vec!["-v", &format!("all={open} 'Pa55-argv-Secret'"), "-Q", "$(all)"],
        vec!["-v", "pw=x", "-i", "in.sql"],
        vec!["-v", "pw=x", "-i", "part.sql"],
    ] {
        let told = run(&words, "");
        assert!(matches!(told.code, 1 | 2), "{words:?}: {told:?}");
        assert!(told.stderr.contains("seen by others"), "{words:?}: {told:?}");
        assert!(told.stderr.contains("environment"), "{words:?}: {told:?}");
        assert!(!told.all().contains("ran") && !told.all().contains("Pa55"), "{words:?}: {told:?}");
    }
    // Standard input is read once: the batch with the password is not executed.
    let told = run(
        &["-v", "pw=Pa55-argv-Secret"],
        &format!("PRINT 'one'\nGO\n{open} '$(pw)'\nGO\nPRINT 'three'\n"),
    );
    assert!(told.code == 1 && told.stderr.contains("seen by others"), "{told:?}");
    assert!(told.stdout.contains("one") && !told.stdout.contains("ran"), "{told:?}");
    // From the environment, and for anything else, a variable is what it was.
    for words in [
        vec!["-v", "db=master", "-Q", &format!("USE $(db); {open} '$(ENVPW)'")],
        vec!["-v", "name=PASSWORD", "-Q", "PRINT 'ran $(name)'"],
        vec!["-v", "text=ran", "-Q", "PRINT '$(text)'"],
    ] {
        let told = run(&words, "");
        assert!(
            told.stdout.contains("ran") && !told.stderr.contains("seen"),
            "{words:?}: {told:?}"
        );
    }
}

#[test]
fn what_is_weak_is_refused_alike_whichever_way_it_comes() {
    let place = Place::new();
    place.plain("app.db");
    place.plain("other.db");
    place.plain("plain.db");
    place.secret("short", b"seven77");
    place.secret("long", b"correct horse");
    place.pellucid(&["--quiet", "encrypt", "app.db"]).succeeded();
    for words in [
        "encrypt other.db --passphrase-file short",
        "protector add app.db --new-passphrase-file short",
        "rewrap app.db --new-passphrase-file short",
        "backup plain.db --to x.bak --passphrase-file short",
        "cert export pellucid --cert-file c.pem --key-file c.key --password-file short",
        "key backup service --file s --password-file short",
        "key backup master --file s --password-file short",
        "key password add --password-file short",
        "key bind --passphrase-file short",
        "instance export --to bundle --password-file short",
    ] {
        let told = place.pellucid(&words.split(' ').collect::<Vec<_>>());
        assert!(told.code == 1 && told.stderr.contains("(33062)"), "{words}: {told:?}");
    }
    let openssl = |arguments: &str| {
        said(place.command("openssl").args(arguments.split(' '))).succeeded();
    };
    let changed = |from: &str, to: &str| {
        openssl(&format!("x509 -in {from} -outform DER -out {to}"));
        edit(&place.path(to), |bytes| *bytes.last_mut().unwrap() ^= 1);
    };
    openssl("req -x509 -newkey rsa:1024 -nodes -keyout small.key -out small.pem -subj /CN=small");
    openssl("req -x509 -newkey rsa:2048 -nodes -keyout good.key -out good.pem -subj /CN=good");
    changed("good.pem", "bad.der");
    for (file, key, says) in [
        ("small.pem", "small.key", "its RSA key has 1024 bits; 2048 to 4096 are supported"),
        ("bad.der", "good.key", "its self-signature does not match"),
    ] {
        let path = |name: &str| place.path(name).display().to_string();
        for words in [
            vec!["cert", "import", "one", "--cert-file", file],
            vec!["cert", "import", "one", "--cert-file", file, "--key-file", key],
            vec![
                "sql",
                "-b",
                "-Q",
                &format!("CREATE CERTIFICATE one FROM FILE = '{}'", path(file)),
            ],
            vec![
                "sql",
                "-b",
                "-Q",
                &format!(
                    "CREATE CERTIFICATE one FROM FILE = '{}' WITH PRIVATE KEY (FILE = '{}')",
                    path(file),
                    path(key)
                ),
            ],
        ] {
            let told = place.pellucid(&words);
            assert!(told.code != 0 && told.all().contains(says), "{words:?}: {told:?}");
        }
    }
    place
        .pellucid(&["cert", "import", "good", "--cert-file", "good.pem", "--key-file", "good.key"])
        .succeeded();
}

#[test]
fn the_guide_has_the_rules_that_are_tested_here() {
    let guide = include_str!("../../../../docs/guide/keys.md");
    for row in [
        "| RSA key of fewer than 2048 or more than 4096 bits | refused |",
        "| certificate whose self-signature does not match | refused |",
        "| new passphrase or password of fewer than 8 characters | refused (33062) |",
    ] {
        assert!(guide.contains(row), "{row}");
    }
}

/// Media whose sets all ask for as much as one header is given: nothing is derived for more than one medium's budget.
#[test]
fn media_with_many_dear_sets_cost_little() {
    let place = Place::new();
    place.secret("pass", b"correct horse");
    place.plain("app.db");
    for append in [&[][..], &["--append"], &["--append"]] {
        let back_up = ["backup", "app.db", "--to", "m.bak", "--passphrase-file", "pass"];
        place.pellucid(&[&back_up, append].concat()).succeeded();
    }
    let verify = ["verify", "m.bak", "--open", "--passphrase-file", "pass"];
    let told = place.pellucid(&verify);
    assert_eq!(told.succeeded().matches("is valid").count(), 3);
    edit(&place.path("m.bak"), |bytes| {
        let starts: Vec<usize> = bytes
            .windows(16)
            .enumerate()
            .filter_map(|(at, window)| (window == b"Pellucid backup\0").then_some(at))
            .collect();
        for at in starts {
            let length = u32::from_be_bytes(bytes[at + 20..at + 24].try_into().unwrap()) as usize;
            // The passphrase's cost: 64 MiB, 4 passes.
            bytes[at + 260..at + 268].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 4]);
            let sum = sha256(&bytes[at..at + length - 32]);
            bytes[at + length - 32..at + length].copy_from_slice(&sum);
        }
    });
    for words in [
        "verify m.bak --open --passphrase-file pass",
        "verify m.bak --check --passphrase-file pass",
        "restore m.bak --to x.db --passphrase-file pass",
    ] {
        let told = within(&place, words, ("NONE", ""));
        assert!(told.code != 0, "{words}: {told:?}");
        assert!(!place.path("x.db").exists());
    }
}

/// An administrator copies what the program proposes.
#[test]
fn a_name_is_one_word_in_a_command_that_is_proposed() {
    let place = Place::new();
    let names = [
        "plain.db",
        "a b.db",
        "$(touch owned).db",
        "`touch owned`.db",
        "a;touch owned;.db",
        "it's.db",
        "-x.db",
        "*.db",
    ];
    place.sealed("sealed.db", &[]);
    for name in names {
        let path = place.path(name);
        let proposed = |words: &[&str], begin: &str, end: &str| {
            let told = place.pellucid(words).all();
            let (_, rest) = told.split_once(begin).unwrap_or_else(|| panic!("{words:?}: {told}"));
            let (word, _) = rest.split_once(end).unwrap_or_else(|| panic!("{words:?}: {told}"));
            let shell = said(place.command("sh").args(["-c", &format!("printf '%s\\n' {word}")]));
            shell.succeeded().trim_end().trim_start_matches("./").to_owned()
        };
        place.plain("new.db");
        std::fs::rename(place.path("new.db"), &path).unwrap();
        let file = format!("./{name}");
        let of = |found: String| found.rsplit('/').next().unwrap().to_owned();
        assert_eq!(of(proposed(&["doctor", &file], "`pellucid encrypt ", "` encrypts")), name);
        std::fs::copy(place.path("sealed.db"), &path).unwrap();
        assert_eq!(of(proposed(&["doctor", &file], "`pellucid status ", "` has more")), name);
        edit(&path, |bytes| *bytes.last_mut().unwrap() ^= 1);
        let check = ["check", "--physical-only", &file];
        assert_eq!(of(proposed(&check, "`pellucid salvage ", " --to NEW`")), name);
        std::fs::write(
            &path,
            (0..64u32).flat_map(|n| sha256(&n.to_le_bytes())).collect::<Vec<_>>(),
        )
        .unwrap();
        assert_eq!(of(proposed(&["doctor", &file], "`pellucid encrypt ", " --from")), name);
        std::fs::remove_file(&path).unwrap();
    }
    assert!(!place.path("owned").exists());
}
