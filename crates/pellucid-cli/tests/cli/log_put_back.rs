//! Goal: what is put back to an older state is told, as far back as the chain of log backups reaches.
//!
//! Method: pages, the archive alone, and database, log and archive together are copied and put back later, as who owns the directory can;
//! the keyring is out of reach. `check --against`, `backup`, `status`, `doctor` and `require=fresh` have to say so.

use std::fs;
use std::path::Path;

use crate::log_backups::{count, facts, refused, second, sql};
use crate::support::{said_with, Place, PELLUCID};

/// All that lies beside the database, and itself.
fn copy_all(place: &Place, from: &Path, to: &Path) {
    for name in ["app.db", "app.db-wal", "app.db-shm"] {
        let _ = fs::remove_file(to.join(name));
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
    copy_archive(place, &from.join("app.db-log"), &to.join("app.db-log"));
}

fn copy_archive(_: &Place, from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A database with a full backup and two log backups. The older state of everything is in the folder `older`.
fn begun() -> Place {
    let place = Place::new();
    second(&place);
    place.pellucid(&["recovery", "app.db", "full"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "full.bak"]).succeeded();
    sql(&place, "INSERT INTO t VALUES (5001, 'one');");
    place.pellucid(&["backup", "app.db", "--log", "--to", "one.bak"]).succeeded();
    fs::create_dir(place.path("older")).unwrap();
    copy_all(&place, &place.path(""), &place.path("older"));
    sql(&place, "INSERT INTO t VALUES (5002, 'two'); UPDATE t SET b = 'later' WHERE a = 3;");
    place.pellucid(&["backup", "app.db", "--log", "--to", "two.bak"]).succeeded();
    place
}

fn fresh(place: &Place) -> (i32, String) {
    let mut command = place.command(PELLUCID);
    let uri = format!("file:{}?vfs=pellucid&require=fresh", place.path("app.db").display());
    let script = "SELECT count(*) FROM t;\n";
    let said = said_with(command.args(["run", "--", "sqlite3", "-batch", "-bail", &uri]), script);
    (said.code, said.all())
}

#[test]
fn a_database_that_is_put_back_with_its_archive_is_told_by_everybody() {
    let place = begun();
    let media = "full.bak one.bak two.bak";
    let found = facts(&place, &format!("check app.db --against {media}"));
    assert_eq!(found["older_pages"], serde_json::json!([]));
    assert_eq!(fresh(&place).0, 0, "{}", fresh(&place).1);
    copy_all(&place, &place.path("older"), &place.path(""));
    // Everything opens: it was all authentic then.
    let rows: u64 = count(&place, "app.db").parse().unwrap();
    let (code, told) = fresh(&place);
    assert!(code != 0 && told.contains("was put back"), "{told}");
    let status = place.pellucid(&["status", "--check", "app.db"]);
    assert!(status.code == 4 && status.all().contains("was put back"), "{}", status.all());
    let doctor = place.pellucid(&["doctor"]).all();
    assert!(doctor.contains("was put back"), "{doctor}");
    refused(&place, &format!("check app.db --against {media}"), "missing from its chain", "");
    refused(&place, "backup app.db --log --to three.bak", "chain-broken", "missing from its chain");
    assert!(!place.path("three.bak").exists());
    let events = place.pellucid(&["events"]).succeeded();
    assert!(events.contains("chain of log backups put back"), "{events}");
    // Nobody takes it for the newest because it was told once.
    let (code, told) = fresh(&place);
    assert!(code != 0 && told.contains("is broken"), "{told}");
    let status = place.pellucid(&["status", "--check", "app.db"]);
    assert!(status.code == 4 && status.all().contains("is broken"), "{}", status.all());
    // What was lost is in the backups.
    facts(&place, &format!("restore {media} --at last --to last.db"));
    assert_eq!(count(&place, "last.db"), (rows + 1).to_string());
    // Whoever accepts it as it is begins the chain anew.
    let full = place.pellucid(&["backup", "app.db", "--to", "again.bak"]);
    assert_eq!(full.code, 0, "{}", full.all());
    sql(&place, "INSERT INTO t VALUES (5003, 'three');");
    place.pellucid(&["backup", "app.db", "--log", "--to", "four.bak"]).succeeded();
    assert_eq!(fresh(&place).0, 0, "{}", fresh(&place).1);
    facts(&place, "restore again.bak four.bak --at last --to new.db");
    assert_eq!(count(&place, "new.db"), (rows + 1).to_string());
    let quiet = place.pellucid(&["status", "app.db"]).all();
    assert!(!quiet.contains("put back"), "{quiet}");
}

/// What only a full backup had is known as well, also where programs have gone on with what was put back.
#[test]
fn what_a_full_backup_alone_has_is_not_put_back_unseen() {
    let place = begun();
    fs::create_dir(place.path("before")).unwrap();
    copy_all(&place, &place.path(""), &place.path("before"));
    sql(&place, "INSERT INTO t VALUES (5003, 'three');");
    place.pellucid(&["backup", "app.db", "--to", "again.bak"]).succeeded();
    copy_all(&place, &place.path("before"), &place.path(""));
    for number in 0..8 {
        sql(&place, &format!("INSERT INTO t VALUES ({}, 'goes on');", 6000 + number));
        sql(&place, "PRAGMA wal_checkpoint(TRUNCATE);");
    }
    let status = place.pellucid(&["status", "--check", "app.db"]);
    assert!(status.code == 4 && status.all().contains("was put back"), "{}", status.all());
    let (code, told) = fresh(&place);
    assert!(code != 0 && told.contains("was put back"), "{told}");
    refused(&place, "backup app.db --log --to three.bak", "chain-broken", "missing from its chain");
}

/// The log has not begun anew since, so nothing but the witness knows.
#[test]
fn an_archive_that_is_put_back_under_a_log_that_goes_on_is_told() {
    let place = begun();
    copy_archive(&place, &place.path("older/app.db-log"), &place.path("app.db-log"));
    let told = place.pellucid(&["backup", "app.db", "--log", "--to", "three.bak"]);
    assert!(told.code == 3 && told.all().contains("missing from its chain"), "{}", told.all());
    let full = place.pellucid(&["backup", "app.db", "--to", "again.bak"]);
    assert_eq!(full.code, 0, "{}", full.all());
    place.pellucid(&["backup", "app.db", "--log", "--to", "four.bak"]).succeeded();
}

/// The first one to look is a full backup, which accepts it. It is whole, and the chain goes on behind it.
#[test]
fn a_full_backup_of_what_was_put_back_is_the_first_of_a_new_chain() {
    let place = begun();
    copy_all(&place, &place.path("older"), &place.path(""));
    let full = place.pellucid(&["backup", "app.db", "--to", "again.bak"]);
    assert!(full.code == 0 && full.all().contains("was put back"), "{}", full.all());
    sql(&place, "INSERT INTO t VALUES (5003, 'three');");
    place.pellucid(&["backup", "app.db", "--log", "--to", "four.bak"]).succeeded();
    facts(&place, "restore again.bak four.bak --at last --to new.db");
    assert_eq!(count(&place, "new.db"), count(&place, "app.db"));
    facts(&place, "check app.db --against again.bak four.bak");
}

/// The last sets taken away leave media that are whole up to there.
#[test]
fn media_whose_end_was_cut_off_are_told_where_the_keyring_knows_more() {
    let place = begun();
    let restored = |media: &[&str], at: &str| {
        let words = [&["restore"], media, &["--at", at, "--to", "new.db", "--replace"]].concat();
        let said = place.pellucid(&words);
        assert_eq!(said.code, 0, "{}", said.all());
        said.all()
    };
    let whole = restored(&["full.bak", "one.bak", "two.bak"], "last");
    assert!(!whole.contains("the keyring knows"), "{whole}");
    let cut = restored(&["full.bak", "one.bak"], "last");
    assert!(cut.contains("the keyring knows of backups up to LSN"), "{cut}");
    // Who asks for another point gets it, and no word of later ones.
    let lsn = cut.split("Its last commit is LSN ").nth(1).unwrap();
    let lsn = format!("lsn:{}", lsn.split(' ').next().unwrap());
    let asked = restored(&["full.bak", "one.bak"], &lsn);
    assert!(!asked.contains("the keyring knows"), "{asked}");
}

/// Nobody knows whether it was put back where its own witness is damaged. That of another database keeps nobody.
#[test]
fn a_damaged_witness_is_an_error_for_its_own_database_alone() {
    let place = begun();
    let folder = place.path("keys/keyring/witnesses");
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|name| name.unwrap().path()).collect();
    let [own] = &names[..] else { panic!("{names:?}") };
    let whole = fs::read(own).unwrap();
    fs::copy(own, folder.join("0".repeat(32))).unwrap();
    place.pellucid(&["backup", "app.db", "--log", "--to", "three.bak"]).succeeded();
    let mut flipped = whole;
    flipped[60] ^= 1;
    fs::write(own, flipped).unwrap();
    let told = place.pellucid(&["backup", "app.db", "--log", "--to", "four.bak"]);
    assert!(told.code == 3 && told.all().contains("keyring/witnesses"), "{}", told.all());
}

/// A link to an older copy in the place of the database has the name that the keyring knows.
#[test]
fn a_link_to_an_older_copy_is_no_other_database() {
    let place = begun();
    for name in ["app.db", "app.db-wal", "app.db-shm", "app.db-log"] {
        let _ = fs::rename(place.path(name), place.path("away").with_extension(name));
    }
    std::os::unix::fs::symlink(place.path("older/app.db"), place.path("app.db")).unwrap();
    let told = place.pellucid(&["backup", "app.db", "--log", "--to", "three.bak"]);
    assert!(told.code == 3 && told.all().contains("was put back"), "{}", told.all());
    let (code, told) = fresh(&place);
    assert!(code != 0, "{told}");
}

#[test]
fn a_page_that_is_put_back_is_named_and_the_backups_have_what_it_was() {
    let place = begun();
    let media = "full.bak one.bak two.bak";
    sql(&place, "PRAGMA wal_checkpoint(TRUNCATE);");
    let older = {
        facts(&place, "restore full.bak --at last --to unused.db");
        fs::read(place.path("older/app.db")).unwrap()
    };
    let newer = fs::read(place.path("app.db")).unwrap();
    let page_bytes = sql(&place, "PRAGMA page_size;").trim().parse::<usize>().unwrap();
    let region = newer.len() % page_bytes;
    let region = if region == 0 { 16384 } else { region };
    let differ: Vec<usize> = (region..older.len().min(newer.len()))
        .step_by(page_bytes)
        .filter(|at| older[*at..at + page_bytes] != newer[*at..at + page_bytes])
        .filter(|at| older[*at..at + page_bytes].iter().any(|byte| *byte != 0))
        .collect();
    assert!(!differ.is_empty());
    let at = *differ.last().unwrap();
    let mut mixed = newer.clone();
    mixed[at..at + page_bytes].copy_from_slice(&older[at..at + page_bytes]);
    fs::write(place.path("app.db"), &mixed).unwrap();
    let said = place.pellucid(&[
        "--json",
        "check",
        "app.db",
        "--against",
        "full.bak",
        "one.bak",
        "two.bak",
    ]);
    assert_eq!(said.code, 3, "{}", said.all());
    let page = (at - region) / page_bytes + 1;
    assert!(said.all().contains(&format!("\"older_pages\":[{page}]")), "{}", said.all());
    let shown = place.pellucid(&["check", "app.db", "--against", "full.bak", "one.bak", "two.bak"]);
    assert!(shown.all().contains(&format!("page {page} is an older state")), "{}", shown.all());
    facts(&place, &format!("restore {media} --at last --to last.db"));
}

#[test]
fn who_asks_for_a_fresh_database_gets_none_without_a_witness() {
    let place = Place::new();
    second(&place);
    let (code, told) = fresh(&place);
    assert!(code != 0 && told.contains("nobody knows whether it is the newest"), "{told}");
    place.plain("plain.db");
    let mut command = place.command(PELLUCID);
    let uri = format!("file:{}?vfs=pellucid&require=fresh", place.path("plain.db").display());
    let said = said_with(
        command.args(["run", "--", "sqlite3", "-batch", "-bail", &uri]),
        "SELECT 1 FROM t;\n",
    );
    assert!(said.code != 0, "{}", said.all());
}

/// The pages of a file, each by its number: where they begin, and their bytes.
fn pages_of(place: &Place, file: &[u8]) -> (usize, Vec<Vec<u8>>) {
    let page_bytes = sql(place, "PRAGMA page_size;").trim().parse::<usize>().unwrap();
    let region = 16384;
    (region, file[region..].chunks_exact(page_bytes).map(<[u8]>::to_vec).collect())
}

/// A full backup reads each page, and the one before it has what those have to be that no commit has changed since. So does a scan.
#[test]
fn a_full_backup_and_a_scan_name_the_pages_that_were_put_back_since_the_last_one() {
    let place = begun();
    sql(&place, "UPDATE t SET b = upper(b) WHERE a % 3 = 0; PRAGMA wal_checkpoint(TRUNCATE);");
    let older = fs::read(place.path("older/app.db")).unwrap();
    place.pellucid(&["backup", "app.db", "--to", "again.bak"]).succeeded();
    place.pellucid(&["backup", "app.db", "--log", "--to", "three.bak"]).succeeded();
    let newer = fs::read(place.path("app.db")).unwrap();
    let (region, older) = pages_of(&place, &older);
    let (_, now) = pages_of(&place, &newer);
    let differ: Vec<usize> = (0..older.len().min(now.len()))
        .filter(|at| older[*at] != now[*at] && older[*at].iter().any(|byte| *byte != 0))
        .collect();
    assert!(differ.len() > 3, "{differ:?}");
    let page_bytes = now[0].len();
    let mixed = |put_back: &[usize]| {
        let mut file = newer.clone();
        for at in put_back {
            let from = region + at * page_bytes;
            file[from..from + page_bytes].copy_from_slice(&older[*at]);
        }
        fs::write(place.path("app.db"), file).unwrap();
    };
    let full = |words: &[&str]| {
        let _ = fs::remove_file(place.path("next.bak"));
        place.pellucid(&[&["backup", "app.db", "--to", "next.bak", "--copy-only"], words].concat())
    };
    assert_eq!(full(&[]).code, 0);
    let named: Vec<String> = differ.iter().map(|at| (at + 1).to_string()).collect();
    for (at, number) in differ.iter().zip(&named) {
        mixed(&[*at]);
        let told = full(&[]);
        assert_eq!(told.code, 3, "{told:?}");
        let said = told.all();
        assert!(said.contains(&format!("page {number}: an older state of itself")), "{said}");
        assert!(said.contains("again.bak") && said.contains("restore"), "{said}");
        assert!(!place.path("next.bak").exists());
    }
    mixed(&differ);
    let told = full(&[]).all();
    assert!(told.contains(&format!("page {}", named[..3].join(", "))), "{told}");
    // Who wants it gets it, and is told.
    let told = full(&["--continue-after-error"]);
    assert!(told.code == 3 && told.all().contains("the backup has what is there"), "{told:?}");
    let told = full(&["--continue-after-error", "--json"]);
    let facts_of: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    let pages: Vec<_> = differ.iter().map(|at| at + 1).collect();
    assert_eq!(facts_of["older_pages"], serde_json::json!(pages), "{told:?}");
    assert!(place.path("next.bak").exists());
    // What it names brings them back.
    let words = ["restore", "again.bak", "three.bak", "--page", &named.join(","), "--to", "app.db"];
    place.pellucid(&words).succeeded();
    assert_eq!(full(&[]).code, 0, "{}", full(&[]).all());
    // Without the files of the one before nobody knows.
    mixed(&differ);
    fs::rename(place.path("again.bak"), place.path("away.bak")).unwrap();
    assert_eq!(full(&[]).code, 0);
    fs::rename(place.path("away.bak"), place.path("again.bak")).unwrap();
    // A scan seals them anew like all others, and names them.
    let told = place.pellucid(&["rekey", "app.db"]);
    assert!(told.code == 3 && told.all().contains("is complete"), "{told:?}");
    let said = format!("page {}: an older state of itself", named.join(", "));
    assert!(told.all().contains(&said), "{said}: {told:?}");
    let status = place.pellucid(&["status", "--check", "app.db"]);
    assert!(status.code == 4 && status.all().contains("DAMAGED"), "{status:?}");
    assert!(full(&[]).all().contains(&said));
    place.pellucid(&["backup", "app.db", "--log", "--to", "four.bak"]).succeeded();
    let words = [&["restore", "again.bak", "three.bak", "four.bak"], &words[3..]].concat();
    place.pellucid(&words).succeeded();
    assert_eq!(full(&[]).code, 0, "{}", full(&[]).all());
    let again = place.pellucid(&["rekey", "app.db"]);
    assert_eq!(again.code, 0, "{again:?}");
    // Without the list of changed pages nothing can be compared, and that is said.
    fs::remove_file(place.path("app.db-log/changed")).unwrap();
    for told in [full(&[]), place.pellucid(&["rekey", "app.db"])] {
        assert!(told.code == 0 && told.all().contains("were not compared"), "{told:?}");
    }
}

/// Databases that grow, shrink, are rebuilt and sealed anew between full backups, log backups and checkpoints.
#[test]
fn a_full_backup_of_a_database_that_nobody_touched_is_never_refused() {
    let place = begun();
    for name in ["first.bak", "second.bak"] {
        place.pellucid(&["backup", "app.db", "--to", name]).succeeded();
        // Nobody commits, and all pages are sealed anew.
        place.pellucid(&["rekey", "app.db"]).succeeded();
    }
    let changes = [
        "UPDATE t SET b = b || 'x' WHERE a % 17 = 0;",
        "WITH RECURSIVE c(x) AS (SELECT 9000 UNION ALL SELECT x + 1 FROM c WHERE x < 9300)
         INSERT INTO t SELECT x, hex(randomblob(400)) FROM c;",
        "DELETE FROM t WHERE a >= 9000;",
        "VACUUM;",
        "CREATE TABLE IF NOT EXISTS u(a); INSERT INTO u SELECT randomblob(5000) FROM t LIMIT 9;",
        "DROP TABLE IF EXISTS u; PRAGMA wal_checkpoint(TRUNCATE);",
        "PRAGMA incremental_vacuum; REINDEX;",
    ];
    for round in 0..21 {
        sql(&place, changes[round % changes.len()]);
        if round % 5 == 3 {
            let log = format!("log-{round}.bak");
            place.pellucid(&["backup", "app.db", "--log", "--to", &log]).succeeded();
        }
        if round == 9 {
            place.pellucid(&["rekey", "app.db"]).succeeded();
        }
        // Each second one is no base of the next.
        let name = format!("full-{round}.bak");
        let mut words = vec!["backup", "app.db", "--to", &name];
        words.extend((round % 2 == 1).then_some("--copy-only"));
        let told = place.pellucid(&words);
        assert!(told.code == 0 && !told.all().contains("older state"), "round {round}: {told:?}");
    }
}

/// A damaged state is no state that says nothing is wrong.
#[test]
fn an_archive_whose_state_is_damaged_is_told_without_a_key() {
    let place = begun();
    let state = place.path("app.db-log/state");
    let bytes = fs::read(&state).unwrap();
    fs::write(&state, vec![0; bytes.len()]).unwrap();
    let status = place.pellucid(&["status", "--check", "app.db"]);
    assert!(status.code == 4 && status.all().contains("`state` is damaged"), "{}", status.all());
    for words in [
        &["backup", "app.db", "--to", "f.bak"][..],
        &["backup", "app.db", "--log", "--to", "l.bak"],
    ] {
        let told = place.pellucid(words);
        assert!(told.code == 3 && told.all().contains("gone or damaged"), "{told:?}");
    }
    place.pellucid(&["recovery", "app.db", "simple"]).succeeded();
    place.pellucid(&["recovery", "app.db", "full"]).succeeded();
    place.pellucid(&["backup", "app.db", "--to", "new.bak"]).succeeded();
    place.pellucid(&["status", "app.db"]).succeeded();
}
