//! Goal: what was backed up comes back, on any machine with the certificate; what was encrypted is never on disk in
//! clear; what is not whole is never taken for a backup.
//!
//! Method: the program from outside, on databases in use; its files searched, damaged and cut off.
//! Kills: backup_kills.rs.

use std::path::Path;
use std::process::Stdio;

use crate::support::{edit, header, said_with, sha256, Place, PELLUCID};

const MARKER: &str = "marked-plaintext";

fn query(place: &Place, name: &str, sql: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", "-batch", name, sql]).succeeded()
}

/// A database of some megabytes with the marker in it; sealed or plain.
fn database(place: &Place, name: &str, page_size: u32, journal: &str, sealed: bool) {
    let sql = format!(
        "PRAGMA page_size = {page_size}; PRAGMA journal_mode = {journal};
         CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
         INSERT INTO t SELECT i, printf('{MARKER} %d %s', i, hex(randomblob(150))) FROM n;
         DELETE FROM t WHERE a % 10 = 0;"
    );
    place.sqlite3(name, &sql).succeeded();
    if sealed {
        place.pellucid(&["encrypt", name]).succeeded();
    }
}

/// Every row, in order.
fn rows(place: &Place, name: &str) -> [u8; 32] {
    let said = query(place, name, "SELECT * FROM t ORDER BY a; PRAGMA integrity_check");
    assert!(said.ends_with("ok\n"), "{}", &said[said.len().saturating_sub(200)..]);
    sha256(said.as_bytes())
}

fn has_marker(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes())
}

#[test]
fn a_sealed_database_is_backed_up_sealed_and_comes_back_sealed_without_an_option() {
    for (page_size, journal) in [(512, "WAL"), (4096, "DELETE"), (65536, "WAL")] {
        let place = Place::new();
        database(&place, "app.db", page_size, journal, true);
        let before = rows(&place, "app.db");
        let said = place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
        assert!(said.contains("AES_256 under certificate `pellucid`"), "{said}");
        assert!(!has_marker(&place.path("app.bak")));
        place.pellucid(&["restore", "app.bak", "--to", "back.db"]).succeeded();
        assert!(!has_marker(&place.path("back.db")));
        assert_eq!(rows(&place, "back.db"), before, "{page_size} {journal}");
        assert_ne!(
            header(&place.path("back.db")).file_id,
            header(&place.path("app.db")).file_id,
            "a database of its own"
        );
        assert_ne!(place.sqlite3("back.db", "SELECT 1 FROM t").code, 0);
        place.pellucid(&["check", "back.db"]).succeeded();
        // It is used on.
        query(&place, "back.db", "INSERT INTO t(b) VALUES ('more'); VACUUM");
    }
}

#[test]
fn another_machine_needs_the_media_and_the_certificate_and_nothing_else() {
    let here = Place::new();
    database(&here, "app.db", 4096, "WAL", true);
    let before = rows(&here, "app.db");
    let stripes = ["backup", "app.db", "--to", "one.bak", "two.bak", "three.bak"];
    here.pellucid(&[&stripes[..], &["--compression", "lz4", "--algorithm", "AES_128"]].concat())
        .succeeded();
    here.secret("password", b"a long enough password");
    let export = ["cert", "export", "pellucid", "--cert-file", "c.pem", "--key-file", "c.key"];
    here.pellucid(&[&export[..], &["--password-file", "password"]].concat()).succeeded();

    let there = Place::new();
    for name in ["one.bak", "two.bak", "three.bak", "c.pem", "c.key"] {
        std::fs::copy(here.path(name), there.path(name)).unwrap();
    }
    there.secret("password", b"a long enough password");
    let media = ["three.bak", "one.bak", "two.bak"];
    let restore = [&["restore"], &media[..], &["--to", "app.db"]].concat();
    let refused = there.pellucid(&restore);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("Cannot find server certificate"), "{refused:?}");
    assert!(!there.path("app.db").exists());

    // What anybody may know, without the key.
    let shown = there.pellucid(&[&["--json", "header"], &media[..]].concat()).succeeded();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["key_algorithm"], "AES_128");
    assert_eq!(shown["encryptor_type"], "CERTIFICATE");
    assert_eq!(shown["database"], serde_json::Value::Null);
    there.pellucid(&[&["verify"], &media[..]].concat()).succeeded();

    there.pellucid(&["init"]).succeeded();
    let import = ["cert", "import", "moved", "--cert-file", "c.pem", "--key-file", "c.key"];
    there.pellucid(&[&import[..], &["--password-file", "password"]].concat()).succeeded();
    there.pellucid(&restore).succeeded();
    assert_eq!(rows(&there, "app.db"), before);
    there.pellucid(&[&["verify", "--open"], &media[..]].concat()).succeeded();
    let shown = there.pellucid(&[&["--json", "header"], &media[..]].concat()).succeeded();
    assert!(shown.contains("\"database\":\"app\""), "{shown}");
}

#[test]
fn plain_databases_too_in_clear_or_not_as_asked() {
    let place = Place::new();
    database(&place, "app.db", 4096, "DELETE", false);
    let before = rows(&place, "app.db");
    place.pellucid(&["backup", "app.db", "--to", "app.bak", "--compression", "none"]).succeeded();
    assert!(has_marker(&place.path("app.bak")));
    place.pellucid(&["restore", "app.bak", "--to", "back.db"]).succeeded();
    assert_eq!(rows(&place, "back.db"), before);
    place.sqlite3("back.db", "SELECT 1 FROM t").succeeded();

    place.pellucid(&["init"]).succeeded();
    place.pellucid(&["cert", "create", "backups"]).succeeded();
    let sealed = ["--to", "sealed.bak", "--certificate", "backups", "--compression", "none"];
    let said = place.pellucid(&[&["backup", "app.db"], &sealed[..]].concat());
    assert!(said.stderr.contains("has not been backed up"), "{said:?}");
    said.succeeded();
    assert!(!has_marker(&place.path("sealed.bak")));
    place.pellucid(&["restore", "sealed.bak", "--to", "again.db"]).succeeded();
    place.sqlite3("again.db", "SELECT 1 FROM t").succeeded();
    let missing = ["backup", "app.db", "--to", "x.bak", "--certificate", "nothing"];
    assert_eq!(place.pellucid(&missing).code, 1);
    assert!(!place.path("x.bak").exists() && !place.path("x.bak.pellucid-new").exists());
}

#[test]
fn an_encrypted_database_is_never_backed_up_in_clear_and_decrypted_only_when_asked() {
    let place = Place::new();
    database(&place, "app.db", 4096, "WAL", true);
    let refused = place.pellucid(&["backup", "app.db", "--to", "app.bak", "--no-encryption"]);
    let text = "Option 'NO_ENCRYPTION' conflicts with option(s) 'ENCRYPTION'. Remove the conflicting option and reissue the statement. (3031)";
    assert!(refused.stderr.contains(text), "{refused:?}");
    assert!(!place.path("app.bak").exists());
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    place.pellucid(&["restore", "app.bak", "--to", "plain.db", "--decrypted"]).succeeded();
    let count = place.sqlite3("plain.db", "PRAGMA integrity_check; SELECT count(*) FROM t");
    assert_eq!(count.succeeded(), "ok\n5400\n");
}

#[test]
fn a_chain_of_full_and_differentials_gives_each_moment_back_also_across_a_rekey() {
    let place = Place::new();
    database(&place, "app.db", 4096, "WAL", true);
    let mut moments = vec![rows(&place, "app.db")];
    place.pellucid(&["backup", "app.db", "--to", "chain.bak"]).succeeded();
    let steps = [
        "UPDATE t SET b = 'changed' WHERE a BETWEEN 100 AND 120",
        "DELETE FROM t WHERE a > 3000; VACUUM",
        "INSERT INTO t(b) SELECT hex(randomblob(400)) FROM t LIMIT 2000",
    ];
    for (number, sql) in steps.iter().enumerate() {
        query(&place, "app.db", sql);
        if number == 1 {
            place.pellucid(&["rekey", "app.db", "--algorithm", "AES_192"]).succeeded();
        }
        moments.push(rows(&place, "app.db"));
        let arguments = ["backup", "app.db", "--to", "chain.bak", "--append", "--differential"];
        let said = place.pellucid(&[&["--json"], &arguments[..]].concat()).succeeded();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["position"], number + 2);
        assert_eq!(said["type"], "differential");
        if number == 0 {
            assert!(said["pages"].as_u64().unwrap() < 30, "what changed, not all: {said}");
        }
    }
    for (position, before) in (1..).zip(moments) {
        let (position, name) = (position.to_string(), format!("moment-{position}.db"));
        let restore = ["restore", "chain.bak", "--position", &position, "--to", &name];
        place.pellucid(&restore).succeeded();
        assert_eq!(rows(&place, &name), before, "position {position}");
    }
    // A rekey changes no page: the next differential has none for it.
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    place.pellucid(&["rekey", "app.db"]).succeeded();
    let apart = ["--json", "backup", "app.db", "--to", "diff.bak", "--differential", "--base"];
    let said = place.pellucid(&[&apart[..], &["full.bak"]].concat()).succeeded();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(said["pages"].as_u64().unwrap() <= 1, "{said}");
    let alone = place.pellucid(&["restore", "diff.bak", "--to", "alone.db"]);
    assert!(alone.stderr.contains("is a differential"), "{alone:?}");
    place.pellucid(&["restore", "diff.bak", "--base", "full.bak", "--to", "alone.db"]).succeeded();
    assert_eq!(rows(&place, "alone.db"), rows(&place, "app.db"));
}

#[test]
fn files_that_are_there_are_left_appended_to_or_replaced_as_asked() {
    let place = Place::new();
    database(&place, "app.db", 4096, "WAL", true);
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    let first = std::fs::read(place.path("app.bak")).unwrap();
    let again = place.pellucid(&["backup", "app.db", "--to", "app.bak"]);
    assert!(again.stderr.contains("--append") && again.code == 1, "{again:?}");
    assert_eq!(std::fs::read(place.path("app.bak")).unwrap(), first);
    place.pellucid(&["backup", "app.db", "--to", "app.bak", "--append"]).succeeded();
    let both = std::fs::read(place.path("app.bak")).unwrap();
    assert_eq!(both[..first.len()], first, "nothing of the first set is written again");
    let shown = place.pellucid(&["--json", "header", "app.bak"]).succeeded();
    assert_eq!(shown.lines().count(), 2, "{shown}");
    place.pellucid(&["backup", "app.db", "--to", "app.bak", "--overwrite"]).succeeded();
    let shown = place.pellucid(&["--json", "header", "app.bak"]).succeeded();
    assert_eq!(shown.lines().count(), 1, "{shown}");
    place.pellucid(&["backup", "app.db", "--to", "{db}-{utc}.bak"]).succeeded();
    let names = std::fs::read_dir(place.path(".")).unwrap();
    let named = |name: &str| name.starts_with("app-20") && name.ends_with("Z.bak");
    assert!(names.flatten().any(|entry| named(&entry.file_name().to_string_lossy())));
    // A plain database's set in clear does not go beside sealed ones.
    place.plain("plain.db");
    let mixed = place.pellucid(&["backup", "plain.db", "--to", "app.bak", "--append"]);
    assert!(mixed.stderr.contains("(3098)"), "{mixed:?}");
}

#[test]
fn standard_output_and_input_take_a_backup_and_nothing_else() {
    let place = Place::new();
    database(&place, "app.db", 4096, "WAL", true);
    let before = rows(&place, "app.db");
    let pipe = |line: &str| {
        let mut command = place.command("/bin/sh");
        command.env("PELLUCID", PELLUCID).args(["-ec", line]);
        crate::support::said(&mut command)
    };
    pipe("$PELLUCID backup app.db --to - > piped.bak").succeeded();
    assert!(!has_marker(&place.path("piped.bak")));
    place.pellucid(&["verify", "piped.bak", "--open"]).succeeded();
    pipe("$PELLUCID --json backup app.db --to - | $PELLUCID restore - --to back.db").succeeded();
    assert_eq!(rows(&place, "back.db"), before);
    let shown = pipe("$PELLUCID --json header - < piped.bak").succeeded();
    assert!(shown.contains("AES_256"), "{shown}");
    // Half of it is no backup, and who stops listening is an error.
    let half = pipe("head -c 60000 piped.bak | $PELLUCID restore - --to half.db");
    assert!(half.code == 3 && half.stderr.contains("interrupted"), "{half:?}");
    let gone =
        pipe("{ $PELLUCID backup app.db --to - || echo told >&2; } | head -c 10 > /dev/null");
    assert!(gone.stderr.contains("Broken pipe") && gone.stderr.contains("told"), "{gone:?}");
    let two = place.pellucid(&["backup", "app.db", "--to", "-", "x.bak"]);
    assert!(two.stderr.contains("one file"), "{two:?}");
}

#[test]
fn damage_is_named_a_mirror_helps_and_a_missing_stripe_is_asked_for() {
    let place = Place::new();
    database(&place, "app.db", 4096, "WAL", true);
    let before = rows(&place, "app.db");
    let files = ["--to", "a1.bak", "a2.bak", "--mirror", "b1.bak", "b2.bak"];
    place.pellucid(&[&["backup", "app.db"], &files[..]].concat()).succeeded();
    assert_eq!(
        std::fs::read(place.path("a1.bak")).unwrap()[4096..],
        std::fs::read(place.path("b1.bak")).unwrap()[4096..]
    );
    let missing = place.pellucid(&["restore", "a2.bak", "--to", "x.db"]);
    assert!(missing.stderr.contains("media family 1 of 2 is missing"), "{missing:?}");
    edit(&place.path("a1.bak"), |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
    let found = place.pellucid(&["verify", "a1.bak", "a2.bak"]);
    assert_eq!(found.code, 3, "{found:?}");
    assert!(found.stderr.contains("chunk") && found.stderr.contains("damaged"), "{found:?}");
    let alone = place.pellucid(&["restore", "a1.bak", "a2.bak", "--to", "x.db"]);
    assert_eq!(alone.code, 3, "{alone:?}");
    assert!(!place.path("x.db").exists());
    place.pellucid(&["restore", "a1.bak", "b1.bak", "b2.bak", "--to", "x.db"]).succeeded();
    assert_eq!(rows(&place, "x.db"), before);
    let damaged = place.pellucid(&["verify", "app.db"]);
    assert!(damaged.stderr.contains("this is no backup of Pellucid's"), "{damaged:?}");
}

#[test]
fn a_backup_of_a_database_in_use_is_one_moment_of_it() {
    for journal in ["WAL", "DELETE"] {
        let place = Place::new();
        database(&place, "app.db", 4096, journal, true);
        query(&place, "app.db", "CREATE TABLE pair(a, b); INSERT INTO pair VALUES (0, 0)");
        let loop_ = "import sqlite3, sys, time
c = sqlite3.connect('app.db', timeout=300, isolation_level=None)
print('ready', flush=True)
for i in range(1, 100000):
    c.execute('BEGIN IMMEDIATE')
    c.execute('UPDATE pair SET a = ?', (i,))
    c.execute('INSERT INTO t(b) VALUES (hex(randomblob(200)))')
    c.execute('UPDATE pair SET b = ?', (i,))
    c.execute('COMMIT')
";
        let mut writer = place.command(PELLUCID);
        writer.args(["run", "--", "python3", "-c", loop_]).stdout(Stdio::piped());
        let mut writer = writer.spawn().unwrap();
        let mut line = String::new();
        let reader = writer.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(reader), &mut line).unwrap();
        for number in 0..3 {
            let (media, back) = (format!("{number}.bak"), format!("{number}.db"));
            // The writer leaves it alone for moments only, and a disk that stands still makes those rare.
            place.pellucid(&["backup", "app.db", "--timeout", "600", "--to", &media]).succeeded();
            place.pellucid(&["restore", &media, "--to", &back]).succeeded();
            let pair = query(&place, &back, "SELECT a = b FROM pair; PRAGMA integrity_check");
            assert_eq!(pair, "1\nok\n", "{journal}, {number}");
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
    }
}

#[test]
fn a_set_with_zeros_for_pages_is_called_damaged_by_everything() {
    let place = Place::new();
    let path = place.sealed("app.db", &[]);
    edit(&path, |bytes| {
        let at = bytes.len() - 3000;
        bytes[at] ^= 1;
    });
    let words = ["backup", "app.db", "--to", "app.bak", "--continue-after-error", "--no-spool"];
    assert_eq!(place.pellucid(&words).code, 3);
    for more in [&[][..], &["--open"]] {
        let told = place.pellucid(&[&["verify", "app.bak"], more].concat());
        assert!(told.code == 3 && told.stderr.contains("are zeros in it"), "{told:?}");
        let facts = place.pellucid(&[&["--json", "verify", "app.bak"], more].concat()).stdout;
        let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
        assert_eq!((&facts["valid"], &facts["damaged"]), (&true.into(), &true.into()), "{facts}");
    }
    assert_eq!(place.pellucid(&["restore", "app.bak", "--to", "back.db"]).code, 3);
}

#[test]
fn standard_input_is_read_once_and_for_one_thing() {
    let place = Place::new();
    place.plain("plain.db");
    let ask = |words: &str, input: &str| {
        let mut command = place.command(PELLUCID);
        said_with(command.args(words.split(' ')), input)
    };
    let (phrase, key) = ("a long passphrase\n", "07".repeat(32));
    place.secret("pass", phrase.as_bytes());
    place.secret("key", key.as_bytes());
    ask("backup plain.db --to p.bak --passphrase-file -", phrase).succeeded();
    ask("backup plain.db --to k.bak --key-file -", &key).succeeded();
    ask("restore p.bak --to p.db --passphrase-file pass", "").succeeded();
    ask("restore k.bak --to k.db --key-file key", "").succeeded();
    for name in ["a.db", "b.db"] {
        place.sealed(name, &["--passphrase-file", "pass"]);
        ask(&format!("decrypt {name} --keep-container --passphrase-file pass"), "").succeeded();
    }
    place.plain("c.db");
    ask("encrypt a.db c.db b.db --passphrase-file -", phrase).succeeded();
    for name in ["a.db", "b.db", "c.db"] {
        ask(&format!("check {name} --passphrase-file pass"), "").succeeded();
    }
    for words in [
        "restore - --to x.db --passphrase-file -",
        "restore k.bak --base - --to x.db --key-file -",
        "verify - -",
        "check a.db --key-file - --passphrase-file -",
        "protector add a.db --new-passphrase-file - --passphrase-file -",
        "rewrap a.db --new-key-file - --passphrase-file -",
    ] {
        let mut command = place.command(PELLUCID);
        let told = crate::support::said(command.args(words.split(' ')));
        assert!(told.code == 2 && told.stderr.contains("standard input"), "{words}: {told:?}");
    }
    assert!(!place.path("x.db").exists());
}

#[test]
fn facts_do_not_go_where_the_backup_goes() {
    let place = Place::new();
    let failed = place.pellucid(&["--json", "backup", "none.db", "--to", "-"]);
    assert!(failed.code == 1 && failed.stdout.is_empty(), "{failed:?}");
    let facts = failed.stderr.lines().next().unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(facts).unwrap()["error"].is_string());
    place.sealed("app.db", &[]);
    let mut command = place.command("/bin/sh");
    command.args(["-c", "\"$0\" --json backup app.db --to - 2>facts >piped.bak", PELLUCID]);
    said_with(&mut command, "").succeeded();
    let facts = std::fs::read_to_string(place.path("facts")).unwrap();
    let line = facts.lines().find(|line| line.starts_with('{')).unwrap();
    let facts: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(facts["type"], "full");
    place.pellucid(&["restore", "piped.bak", "--to", "back.db"]).succeeded();
}
