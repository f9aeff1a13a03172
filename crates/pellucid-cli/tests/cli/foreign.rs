//! Goal: a database of SQLCipher or SQLite3 Multiple Ciphers becomes a sealed one with the same content, or there is none and
//! the error says which of the possible reasons it is.
//!
//! Method: files that those programs themselves made (`tests/data/foreign/make.py`), with some thirty settings. The new
//! database's dump is compared with that of a plain database of the same statements. Then files, logs and secrets are damaged
//! and exchanged.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use rusqlite::Connection;

use crate::support::{edit, said, said_with, Place, Said, PELLUCID};

const MARKER: &[u8] = b"foreign-plaintext-marker";

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/foreign").join(name)
}

/// A line of cases.tsv.
struct Case {
    name: String,
    program: String,
    secret: String,
    kind: String,
    arguments: Vec<String>,
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(data("cases.tsv")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut fields = line.split('\t').map(str::to_owned);
            let mut next = || fields.next().unwrap();
            Case {
                name: next(),
                program: next(),
                secret: next(),
                kind: next(),
                arguments: next().split_whitespace().map(str::to_owned).collect(),
            }
        })
        .collect()
}

/// A place with the files of a case, its secret, and a new key.
fn bring(place: &Place, case: &Case) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(place.path(&format!("old.db{suffix}")));
        let _ = std::fs::remove_file(place.path(&format!("new.db{suffix}")));
        let from = data(&format!("{}.db{suffix}", case.name));
        if from.exists() {
            let to = place.path(&format!("old.db{suffix}"));
            std::fs::copy(from, &to).unwrap();
            std::fs::set_permissions(to, PermissionsExt::from_mode(0o640)).unwrap();
        }
    }
    place.secret("word", format!("{}\n", case.secret).as_bytes());
    place.secret("new.key", &[7; 32]);
}

fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).unwrap()
}

/// A place with the files of the case.
fn with(name: &str) -> (Place, Case) {
    let (place, case) = (Place::new(), case(name));
    bring(&place, &case);
    (place, case)
}

fn encrypt(place: &Place, case: &Case, more: &[&str]) -> Said {
    let mut command = place.command(PELLUCID);
    command.args(["encrypt", "old.db", "--from", &case.program, "--to", "new.db"]);
    command.args(["--passphrase-file", "word", "--new-key-file", "new.key"]);
    said(command.args(&case.arguments).args(more))
}

/// The same, with arguments that are given once instead of those of the case.
fn encrypt_with(place: &Place, words: &str) -> Said {
    let mut command = place.command(PELLUCID);
    command.args(["encrypt", "old.db", "--to", "new.db", "--new-key-file", "new.key"]);
    said(command.args(words.split_whitespace()))
}

fn dump(place: &Place, name: &str) -> String {
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_KEY_FILE", place.path("new.key"));
    command.args(["run", "--", "/usr/bin/sqlite3", name]);
    let sql = "PRAGMA integrity_check; PRAGMA user_version; PRAGMA application_id;\n.dump\n";
    said_with(&mut command, sql).succeeded()
}

/// The dump of a plain database of the statements in these files.
fn dump_of(files: &[&str]) -> String {
    let place = Place::new();
    for file in files {
        place.sqlite3("plain.db", &std::fs::read_to_string(data(file)).unwrap()).succeeded();
    }
    let dump = "PRAGMA integrity_check; PRAGMA user_version; PRAGMA application_id;\n.dump\n";
    said_with(place.command("/usr/bin/sqlite3").arg("plain.db"), dump).succeeded()
}

fn statements(kind: &str) -> &'static [&'static str] {
    match kind {
        "small" => &["small.sql"],
        "log" => &["content.sql", "more.sql"],
        _ => &["content.sql"],
    }
}

/// No new database, nothing beside it, and the old files as they were.
fn assert_refused(place: &Place, said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, code, "{said:?}");
    for word in words {
        assert!(said.stderr.contains(word), "`{word}` is not in {said:?}");
    }
    for left in ["new.db", "new.db.pellucid-encrypting", "new.db-wal", "new.db-journal"] {
        assert!(!place.path(left).exists(), "{left}");
    }
}

#[test]
fn what_the_programs_themselves_made_has_the_same_dump_in_a_sealed_database() {
    let place = Place::new();
    let mut done = 0;
    for case in cases().iter().filter(|case| case.kind != "refused") {
        bring(&place, case);
        let before = std::fs::read(place.path("old.db")).unwrap();
        let said = encrypt(&place, case, &[]);
        assert_eq!(said.code, 0, "{}: {said:?}", case.name);
        assert_eq!(dump(&place, "new.db"), dump_of(statements(&case.kind)), "{}", case.name);
        assert_eq!(std::fs::read(place.path("old.db")).unwrap(), before, "{}", case.name);
        let mode = std::fs::metadata(place.path("new.db")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o640, "{}: of the old one", case.name);
        let new = std::fs::read(place.path("new.db")).unwrap();
        assert!(memchr::memmem::find(&new, MARKER).is_none(), "{}", case.name);
        place.pellucid(&["check", "new.db", "--key-file", "new.key"]).succeeded();
        done += 1;
    }
    assert!(done >= 24, "{done}");
}

#[test]
fn ciphers_that_no_well_kept_library_has_are_refused_by_name() {
    let (place, case) = with("mc-ascon128");
    let said = encrypt(&place, &case, &["--cipher", "ascon128"]);
    assert_refused(&place, &said, 1, &["`ascon128` is not read"]);
}

#[test]
fn a_wrong_secret_is_told_as_one_for_each_setting() {
    let place = Place::new();
    for case in cases().iter().filter(|case| case.kind != "refused") {
        bring(&place, case);
        let wrong = match case.secret.starts_with("x'") {
            true => case.secret.replacen("00", "01", 1),
            false => format!("{} ", case.secret),
        };
        place.secret("word", wrong.as_bytes());
        let said = encrypt(&place, case, &[]);
        // RC4 under the same key stream for each page leaves a structure, so that it does not look encrypted.
        let words = match case.name.as_str() {
            "mc-rc4" => "neither an SQLite database nor an encrypted one",
            _ => "opens no page of it",
        };
        assert_refused(&place, &said, 1, &[words]);
        assert!(!said.all().contains(wrong.trim()), "{said:?}");
    }
}

/// Every page in turn, in each format with tags.
#[test]
fn a_damaged_page_is_named_and_exit_3() {
    for name in ["sc4", "sc4-hmac-sha256", "sc3-debian", "mc-chacha20", "mc-sqleet", "mc-sqlcipher"]
    {
        let (place, case) = with(name);
        let length = std::fs::metadata(place.path("old.db")).unwrap().len() as usize;
        let page = if name == "sc3-debian" { 1024 } else { 4096 };
        let (mut refused, mut all) = (0, 0);
        for number in 1..=length / page {
            // Behind the salt and the clear bytes, in the middle, and in the tag.
            for at in [100, page / 2, page - 33] {
                bring(&place, &case);
                edit(&place.path("old.db"), |bytes| bytes[(number - 1) * page + at] ^= 1);
                let said = encrypt(&place, &case, &[]);
                all += 1;
                if said.code == 0 {
                    // A page that nothing leads to is not read.
                    assert_eq!(
                        dump(&place, "new.db"),
                        dump_of(&["content.sql"]),
                        "{name}: {number}"
                    );
                    continue;
                }
                let words = format!("page {number}: authentication tag does not match");
                assert_refused(&place, &said, 3, &[&words]);
                refused += 1;
            }
        }
        assert!(refused * 10 >= all * 8, "{name}: {refused} of {all}");
    }
}

/// Whoever can write the file must not choose that nothing is authenticated. Without tags the vector is where the tag was:
/// moved there, each page decrypts to what it was, and to what somebody made of it.
#[test]
fn a_database_whose_tags_do_not_match_is_believed_only_if_its_owner_says_that_it_has_none() {
    let (place, case) = with("sc4");
    let spoil = |bytes: &mut Vec<u8>| {
        bytes.chunks_exact_mut(4096).for_each(|page| page.copy_within(4016..4032, 4080));
    };
    edit(&place.path("old.db"), spoil);
    let said = encrypt(&place, &case, &[]);
    assert_refused(&place, &said, 1, &["opens only if nothing is authenticated", "--hmac none"]);
    for name in ["sc4-no-hmac", "sc3-debian-no-hmac", "sc4-as-1"] {
        let (place, case) = with(name);
        let bare = Case { arguments: Vec::new(), ..case };
        let said = encrypt(&place, &bare, &[]);
        assert_refused(&place, &said, 1, &["opens only if nothing is authenticated"]);
        let said = encrypt(&place, &bare, &["--hmac", "none"]);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.stderr.contains("its pages have no tag"), "{said:?}");
    }
}

/// The bytes of page 1 that some formats neither encrypt nor authenticate.
#[test]
fn a_changed_byte_of_a_clear_header_makes_no_other_database() {
    for name in
        ["mc-sqlcipher", "mc-chacha20", "sc4-header", "sc4-header-raw-48", "mc-chacha20-header"]
    {
        for at in 16..32 {
            let (place, case) = with(name);
            edit(&place.path("old.db"), |bytes| bytes[at] ^= 0x41);
            let said = encrypt(&place, &case, &[]);
            if said.code == 0 {
                assert_eq!(dump(&place, "new.db"), dump_of(&["content.sql"]), "{name}: {at}");
            }
        }
    }
}

#[test]
fn a_file_that_ends_too_early_is_damage() {
    for name in ["sc4", "mc-chacha20", "mc-aes256cbc"] {
        for cut in [4096, 4000, 1] {
            let (place, case) = with(name);
            edit(&place.path("old.db"), |bytes| bytes.truncate(bytes.len() - cut));
            let said = encrypt(&place, &case, &[]);
            assert_refused(&place, &said, 3, &["it is cut off"]);
        }
    }
}

/// SQLite's check is what finds it.
#[test]
fn damage_without_tags_is_damage_where_sqlite_finds_it() {
    let (place, case) = with("mc-aes256cbc");
    edit(&place.path("old.db"), |bytes| bytes[4096] ^= 1);
    let said = encrypt(&place, &case, &[]);
    assert_refused(&place, &said, 3, &["old.db"]);
}

#[test]
fn another_kind_of_file_is_told_as_what_it_is() {
    let place = Place::new();
    place.secret("word", b"correct horse");
    place.secret("new.key", &[7; 32]);
    let text = "SELECT * FROM t; -- no database at all\n".repeat(300);
    let sealed = place.sealed("sealed.db", &["--key-file", "new.key"]);
    let plain = place.plain("plain.db");
    let kinds: [(Vec<u8>, &str); 6] = [
        (text.into_bytes(), "neither an SQLite database nor an encrypted one"),
        (std::fs::read(plain).unwrap(), "it is not encrypted"),
        (std::fs::read(sealed).unwrap(), "encrypted by pellucid already"),
        (Vec::new(), "it is empty"),
        (vec![0; 8192], "it is empty"),
        (b"-----BEGIN CERTIFICATE-----\n".repeat(100), "neither an SQLite database"),
    ];
    for (content, words) in kinds {
        std::fs::write(place.path("old.db"), content).unwrap();
        for program in ["sqlcipher", "sqlite3mc"] {
            let said = encrypt_with(&place, &format!("--from {program} --passphrase-file word"));
            assert_refused(&place, &said, 1, &[words]);
        }
    }
}

#[test]
fn a_header_in_clear_needs_the_salt_and_says_so() {
    let (place, _) = with("sc4-header");
    let said = encrypt_with(&place, "--from sqlcipher --passphrase-file word");
    assert_refused(&place, &said, 1, &["header in clear", "--plaintext-header 32"]);
    let said =
        encrypt_with(&place, "--from sqlcipher --passphrase-file word --plaintext-header 32");
    assert_refused(&place, &said, 1, &["salt is not in the file", "--salt"]);
}

#[test]
fn a_torn_tail_of_the_log_is_none_and_a_damaged_frame_before_commits_is_damage() {
    for name in ["sc4-log", "mc-chacha20-log", "mc-aes256cbc-log", "sc4-log-page-1024"] {
        let (place, case) = with(name);
        let page = if name == "sc4-log-page-1024" { 1024 } else { 4096 };
        let log = std::fs::read(place.path("old.db-wal")).unwrap();
        let frames = (log.len() - 32) / (page + 24);
        assert!(frames > 2, "{name}: {frames}");
        let with_log = |log: &[u8]| {
            bring(&place, &case);
            std::fs::write(place.path("old.db-wal"), log).unwrap();
            encrypt(&place, &case, &[])
        };
        let same = |said: Said| {
            assert_eq!(said.code, 0, "{name}: {said:?}");
            assert_eq!(dump(&place, "new.db"), dump_of(&["content.sql", "more.sql"]), "{name}");
        };
        // Half a frame more, and a whole one of nothing.
        same(with_log(&[&log[..], &log[32..800]].concat()));
        same(with_log(&[&log[..], &vec![0; page + 24]].concat()));
        // The first commit alone, which has the first frame alone or a few.
        for at in [32 + 10, 32 + 24 + 100] {
            let mut damaged = log.clone();
            damaged[at] ^= 1;
            let said = with_log(&damaged);
            assert_refused(&place, &said, 3, &["frame 1: damaged", "commits lie behind it"]);
        }
        // Its first word, the order of its bytes, the number of the checkpoint: SQLite takes none of them for a log.
        for at in [0, 3, 13] {
            let mut damaged = log.clone();
            damaged[at] ^= 1;
            let said = with_log(&damaged);
            assert_refused(&place, &said, 3, &["WAL header: damaged"]);
        }
        // The last commit's frame, behind which nothing was committed: as after a crash in that commit.
        let frame = |number: usize| 32 + number * (page + 24);
        let is_commit = |number: &usize| log[frame(*number) + 4..frame(*number) + 8] != [0; 4];
        let last = (0..frames).rev().find(is_commit).unwrap();
        let mut damaged = log.clone();
        damaged[frame(last) + 30] ^= 1;
        let said = with_log(&damaged);
        assert_eq!(said.code, 0, "{name}: {said:?}");
        let (now, all) = (dump(&place, "new.db"), dump_of(&["content.sql", "more.sql"]));
        assert!(now.contains("of the log") && !now.contains("changed in the log"), "{name}: {now}");
        assert_ne!(now, all);
    }
}

/// Checksums of a log are no secret: somebody who changes a frame makes them right again.
#[test]
fn a_frame_with_right_checksums_and_a_wrong_tag_is_damage() {
    let (place, case) = with("sc4-log");
    edit(&place.path("old.db-wal"), |log| {
        log[32 + 24 + 300] ^= 1;
        sum_again(log, 4096);
    });
    let said = encrypt(&place, &case, &[]);
    assert_refused(&place, &said, 3, &["authentication tag does not match in frame 1 of the log"]);
}

fn sum_again(log: &mut [u8], page: usize) {
    let big = log[3] == 0x83;
    let word = |four: &[u8]| {
        let four = four.try_into().unwrap();
        if big {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        }
    };
    let sum = |start: (u32, u32), bytes: &[u8]| {
        bytes.chunks_exact(8).fold(start, |(one, two): (u32, u32), pair| {
            let one = one.wrapping_add(word(&pair[..4])).wrapping_add(two);
            (one, two.wrapping_add(word(&pair[4..])).wrapping_add(one))
        })
    };
    let mut at = sum((0, 0), &log[..24]);
    for frame in log[32..].chunks_exact_mut(page + 24) {
        at = sum(sum(at, &frame[..8]), &frame[24..]);
        frame[16..20].copy_from_slice(&at.0.to_be_bytes());
        frame[20..24].copy_from_slice(&at.1.to_be_bytes());
    }
}

#[test]
fn a_hot_journal_is_left_to_its_own_program() {
    let (place, case) = with("sc4");
    let journal = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7\x00\x00\x00\x01".repeat(200);
    std::fs::write(place.path("old.db-journal"), journal).unwrap();
    let said = encrypt(&place, &case, &[]);
    assert_refused(&place, &said, 1, &["hot journal", "old.db-journal"]);
    // Of a journal that was played back, its header is zeros.
    std::fs::write(place.path("old.db-journal"), [0; 2400]).unwrap();
    assert_eq!(encrypt(&place, &case, &[]).code, 0);
}

/// SQLite's own lock of a reader, by a plain connection to the same file: which program has it open does not matter.
#[test]
fn a_database_that_a_program_has_open_is_in_use() {
    let (place, case) = with("sc4");
    let holder = place.path("holder.py");
    let script = "import fcntl, sys, time\nf = open('old.db', 'r+b')\n\
                  fcntl.lockf(f, fcntl.LOCK_SH, 510, 0x40000002)\nprint('held', flush=True)\nsys.stdin.read()\n";
    std::fs::write(&holder, script).unwrap();
    let mut command = place.command("/usr/bin/python3");
    let mut child =
        command.arg(&holder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    assert_eq!(line, "held\n");
    let said = encrypt(&place, &case, &["--timeout", "0"]);
    assert_refused(&place, &said, 1, &["is in use"]);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(encrypt(&place, &case, &["--timeout", "0"]).code, 0);
}

#[test]
fn a_name_that_is_taken_is_never_written_over() {
    let (place, case) = with("sc4");
    for name in ["new.db", "new.db-wal", "new.db-journal"] {
        std::fs::write(place.path(name), "somebody's").unwrap();
        let said = encrypt(&place, &case, &[]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.stderr.contains(&format!("{name}`: it is there already")), "{said:?}");
        assert_eq!(std::fs::read(place.path(name)).unwrap(), b"somebody's");
        std::fs::remove_file(place.path(name)).unwrap();
    }
    assert!(!place.path("keys").exists(), "a refused command makes no keys");
}

/// What a killed run leaves has a mode that no other file has, and nobody holds its lock.
#[test]
fn what_a_killed_run_left_is_removed_and_nothing_else_of_that_name() {
    let (place, case) = with("sc4");
    let left = place.path("new.db.pellucid-encrypting");
    std::fs::write(&left, [7; 5000]).unwrap();
    let said = encrypt(&place, &case, &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("move it away"), "{said:?}");
    assert_eq!(std::fs::read(&left).unwrap(), [7; 5000]);
    std::fs::set_permissions(&left, PermissionsExt::from_mode(0o1600)).unwrap();
    assert_eq!(encrypt(&place, &case, &[]).code, 0);
    assert!(!left.exists());
    assert_eq!(dump(&place, "new.db"), dump_of(&["content.sql"]));
}

/// Root reads what others may not write; another user's file that cannot be opened for writing is read as well.
#[test]
fn a_database_that_may_only_be_read_is_taken() {
    let (place, case) = with("sc4-log");
    let names = ["old.db", "old.db-wal"].map(|name| place.path(name));
    for name in &names {
        std::fs::set_permissions(name, PermissionsExt::from_mode(0o400)).unwrap();
    }
    // A second name in a folder that others may write to: not opened for writing, even by root.
    std::fs::create_dir(place.path("open")).unwrap();
    std::fs::set_permissions(place.path("open"), PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::hard_link(&names[0], place.path("open/old.db")).unwrap();
    std::fs::rename(&names[1], place.path("open/old.db-wal")).unwrap();
    let mut command = place.command(PELLUCID);
    command.args(["encrypt", "open/old.db", "--from", "sqlcipher", "--to", "new.db"]);
    command.args(["--passphrase-file", "word", "--new-key-file", "new.key"]);
    let said = said(command.args(&case.arguments));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(dump(&place, "new.db"), dump_of(&["content.sql", "more.sql"]));
}

#[test]
fn secrets_come_from_files_that_nobody_else_reads_and_from_standard_input() {
    let (place, case) = with("sc4");
    std::fs::set_permissions(place.path("word"), PermissionsExt::from_mode(0o644)).unwrap();
    let said = encrypt(&place, &case, &[]);
    assert_refused(&place, &said, 1, &["others can read this secret"]);
    let words =
        "encrypt old.db --from sqlcipher --to new.db --new-key-file new.key --passphrase-file -";
    let mut command = place.command(PELLUCID);
    let said = said_with(command.args(words.split(' ')), "correct horse\n");
    assert_eq!(said.code, 0, "{said:?}");

    let (place, case) = with("sc4-raw-48");
    let said = encrypt_with(&place, "--from sqlcipher --raw-key-file word");
    assert_eq!(said.code, 0, "{said:?}");
    let digits = case.secret.trim_start_matches("x'").trim_end_matches('\'');
    let bytes: Vec<u8> = (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).unwrap())
        .collect();
    for content in [digits.as_bytes(), &bytes] {
        std::fs::remove_file(place.path("new.db")).unwrap();
        place.secret("word", content);
        let said = encrypt_with(&place, "--from sqlcipher --raw-key-file word");
        assert_eq!(said.code, 0, "{said:?}");
    }
    std::fs::remove_file(place.path("new.db")).unwrap();
    place.secret("word", b"x'0011'");
    let said = encrypt_with(&place, "--from sqlcipher --raw-key-file word");
    assert_refused(&place, &said, 1, &["it is not a raw key"]);
}

#[test]
fn settings_that_cannot_be_are_refused_before_anything_is_computed() {
    let (place, _) = with("sc4");
    for (words, told) in [
        ("--kdf-iter 0", "1 to 10,000,000 iterations"),
        ("--kdf-iter 4000000000", "1 to 10,000,000 iterations"),
        ("--page-size 1000", "power of two"),
        ("--compatibility 5", "version 1, 2, 3 or 4"),
        ("--plaintext-header 17", "multiple of 16"),
        ("--salt 00", "32 hexadecimal digits"),
        ("--cipher rc4", "SQLCipher has one cipher"),
    ] {
        let said =
            encrypt_with(&place, &format!("--from sqlcipher --passphrase-file word {words}"));
        assert_refused(&place, &said, 2, &[told]);
    }
    for words in [
        "--from sqlcipher --passphrase-file word --key-file new.key",
        "--from sqlcipher",
        "--from sqlcipher --passphrase-file word --background",
        "--from see --passphrase-file word",
    ] {
        let said = encrypt_with(&place, words);
        assert_refused(&place, &said, 2, &[]);
    }
}

/// The program is stopped at every moment that a directory listing can tell, and every file is searched.
#[test]
fn no_file_has_a_word_of_it_in_clear_while_it_is_converted() {
    let place = Place::new();
    // The search finds the marker in a plain database.
    let plain = place.path("plain.db");
    let db = Connection::open(&plain).unwrap();
    db.execute_batch(&std::fs::read_to_string(data("content.sql")).unwrap()).unwrap();
    drop(db);
    let has = |bytes: &[u8]| memchr::memmem::find(bytes, MARKER).is_some();
    assert!(has(&std::fs::read(&plain).unwrap()), "the search can find it");
    std::fs::remove_file(plain).unwrap();

    for name in ["sc4-log", "mc-aes256cbc-log", "mc-rc4", "sc4-page-65536"] {
        let case = case(name);
        bring(&place, &case);
        let mut command = place.command("/usr/bin/strace");
        command.args([
            "-f",
            "-qq",
            "-s",
            "70000",
            "-e",
            "trace=write,pwrite64,pwritev,writev",
            "-o",
            "calls",
        ]);
        command.args([PELLUCID, "encrypt", "old.db", "--from", &case.program, "--to", "new.db"]);
        command.args(["--passphrase-file", "word", "--new-key-file", "new.key"]);
        said(command.args(&case.arguments)).succeeded();
        let calls = std::fs::read(place.path("calls")).unwrap();
        assert!(memchr::memmem::find(&calls, b"pwrite64(").is_some(), "{name}: it writes");
        assert!(!has(&calls), "{name}: a byte in clear was written");
        assert!(!has(&std::fs::read(place.path("new.db")).unwrap()), "{name}");
    }
}

#[test]
fn doctor_status_and_encrypt_say_what_a_file_of_another_program_seems_to_be() {
    let kinds = [
        ("sc4", "it has no structure", "--from sqlcipher"),
        ("sc3-debian", "it has no structure", "--from sqlcipher"),
        ("sc4-header", "header in clear", "--plaintext-header 32"),
        ("mc-chacha20", "chacha20 or ascon128", "--from sqlite3mc"),
        ("mc-aegis", "aegis-256", "--from sqlite3mc"),
        ("mc-sqlcipher", "80 reserved bytes sqlcipher", "--from sqlite3mc"),
        ("mc-aes256cbc", "aes128cbc or aes256cbc", "--from sqlite3mc"),
    ];
    for (name, told, todo) in kinds {
        let (place, _) = with(name);
        let doctor = place.pellucid(&["doctor", "old.db"]).succeeded();
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat(&doctor).contains(told) && flat(&doctor).contains(todo), "{name}: {doctor}");
        let status = place.pellucid(&["status", "old.db"]);
        assert!(status.stderr.contains(told), "{name}: {status:?}");
        assert!(!status.stderr.contains("is NOT encrypted"), "{name}: {status:?}");
        let encrypt = place.pellucid(&["encrypt", "old.db"]);
        assert_eq!(encrypt.code, 1, "{name}: {encrypt:?}");
        assert!(encrypt.stderr.contains(told), "{name}: {encrypt:?}");
    }
    let place = Place::new();
    place.plain("plain.db");
    place.sealed("sealed.db", &[]);
    std::fs::write(place.path("text"), "some text\n".repeat(900)).unwrap();
    std::fs::write(place.path("key.pvk"), b"\x1e\xf1\xb5\xb0 and more").unwrap();
    for (name, told) in [
        ("plain.db", "is a plain SQLite database"),
        ("sealed.db", "is a database that pellucid encrypted"),
        ("text", "neither an SQLite database nor an encrypted one"),
        ("key.pvk", "(PVK)"),
    ] {
        let said = place.pellucid(&["doctor", name]).succeeded();
        assert!(said.contains(told), "{name}: {said}");
    }
    assert_eq!(place.pellucid(&["doctor", "nothing"]).code, 1);
    let status = place.pellucid(&["status", "plain.db"]);
    assert!(status.stderr.contains("is NOT encrypted"), "{status:?}");
}
