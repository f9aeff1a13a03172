//! Goal: whatever a release left on people's disks is opened by the program as it is now, and what this one makes of it is
//! opened by the release, or refused by name and not harmed.
//!
//! Method: `tests/releases/NAME/fixtures.tar.xz` has databases, media and keys of a release in every state, made by its own
//! program (tests/releases/make.sh), and `program-ARCH.tar.xz` that program. Each case is opened from a copy, changed, and handed
//! to the release's program; what this program leaves in the same states is handed to it, too. A version that has no
//! directory yet is this one: it is made here, so that the maker is tried before a release is. docs/compatibility.md is what
//! comes of it; PELLUCID_COMPATIBILITY=write writes it anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{edit_headers, extension, said, said_with, sha256, Place, Said, PELLUCID};

const LINES: &str = "SELECT a || '|' || b || '|' || hex(c) FROM t ORDER BY a;";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn unpack(archive: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let mut command = Command::new("tar");
    said(command.arg("-xJf").arg(archive).arg("-C").arg(to)).succeeded();
}

/// A release: its fixtures, unpacked, and its program, if it runs here.
struct Release {
    name: String,
    fixtures: PathBuf,
    program: Option<PathBuf>,
}

fn own_program() -> PathBuf {
    Path::new(PELLUCID).to_owned()
}

/// What `make.sh` makes of the program that is tested.
fn made_now(place: &Place) -> PathBuf {
    // The library that `run` preloads lies beside the program.
    extension(place);
    let mut make = Command::new(root().join("tests/releases/make.sh"));
    make.arg(own_program().parent().unwrap()).arg(place.path("made"));
    said(&mut make).succeeded();
    let fixtures = place.path("fixtures-made");
    unpack(&place.path("made/fixtures.tar.xz"), &fixtures);
    fixtures
}

fn releases(place: &Place, made_now: &Path) -> Vec<Release> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("tests/releases")).unwrap() {
        let path = entry.unwrap().path();
        let archive = path.join("fixtures.tar.xz");
        if !archive.exists() {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let fixtures = place.path(&format!("fixtures-{name}"));
        unpack(&archive, &fixtures);
        let packed = path.join(format!("program-{}.tar.xz", std::env::consts::ARCH));
        let program = packed.exists().then(|| {
            let to = place.path(&format!("program-{name}"));
            unpack(&packed, &to);
            to.join("pellucid")
        });
        if program.is_none() {
            println!(
                "SKIP: {} is not there: what {name} opens is not tried here",
                packed.display()
            );
        }
        found.push(Release { name, fixtures, program });
    }
    let this = env!("CARGO_PKG_VERSION");
    if !found.iter().any(|release| release.name == this) {
        let (fixtures, program) = (made_now.to_owned(), Some(own_program()));
        found.push(Release { name: this.to_owned(), fixtures, program });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// One case: what it says of itself, in a copy of its own.
struct Case {
    place: Place,
    name: String,
    facts: BTreeMap<String, String>,
}

impl Case {
    fn copy(fixtures: &Path, name: &str) -> Self {
        let place = Place::new();
        for from in ["keys", "app.key", "passphrase", "password", name] {
            let mut copy = Command::new("cp");
            said(copy.arg("-a").arg(fixtures.join(from)).arg(place.path(from))).succeeded();
        }
        let text = std::fs::read_to_string(place.path(name).join("case")).unwrap();
        let fact = |line: &str| {
            let (key, value) = line.split_once(": ").unwrap();
            (key.to_owned(), value.to_owned())
        };
        let facts = text.lines().map(fact).collect();
        Self { place, name: name.to_owned(), facts }
    }

    fn fact(&self, key: &str) -> Option<&str> {
        self.facts.get(key).map(String::as_str)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path(&self.name).join(name)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = self.place.command(program.to_str().unwrap());
        command.current_dir(self.place.path(&self.name));
        match self.fact("opens") {
            Some("key-file") => command.env("PELLUCID_KEY_FILE", "../app.key"),
            Some("passphrase") => command.env("PELLUCID_PASSPHRASE_FILE", "../passphrase"),
            Some("recovery") => command.env("PELLUCID_RECOVERY", "1"),
            _ => &mut command,
        };
        if let Some(elsewhere) = self.fact("elsewhere") {
            command.env("PELLUCID_HOME", self.path(elsewhere));
        }
        command
    }

    fn run(&self, program: &Path, words: &str) -> Said {
        said(self.command(program).args(words.split(' ')))
    }

    fn sqlite(&self, program: &Path, name: &str, sql: &str) -> Said {
        let mut command = self.command(program);
        command.args(["run", "--", "sqlite3", "-batch", "-bail", name]);
        said_with(&mut command, sql)
    }
}

/// What became of it: it was opened, and all was right; or it was refused by name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Opened,
    Refused(String),
}

/// Ends a trial at the first command that did not succeed.
type Trial = Result<(), Said>;

fn ok(told: Said) -> Result<String, Said> {
    match told.code {
        0 => Ok(told.stdout),
        _ => Err(told),
    }
}

fn outcome(trial: Trial, what: &str) -> Outcome {
    match trial {
        Ok(()) => Outcome::Opened,
        Err(told) => {
            // The words for what is newer.
            let named = ["newer", "not known to this version", "reserved"];
            let by_name = named.iter().any(|word| told.stderr.contains(word));
            assert!(by_name, "{what}: {told:?}");
            let first = told.stderr.lines().next().unwrap_or_default();
            Outcome::Refused(first.rsplit(": ").next().unwrap_or_default().to_owned())
        }
    }
}

/// The rows a database has to have, as lines of `LINES`.
struct Held {
    sha256: String,
    more: Vec<String>,
}

impl Held {
    fn of(case: &Case) -> Self {
        Self { sha256: case.fact("sha256").unwrap_or_default().to_owned(), more: Vec::new() }
    }

    /// Reads the database and compares what was there at first and each row that was added since.
    fn check(&self, case: &Case, program: &Path, name: &str) -> Trial {
        let lines = ok(case.sqlite(program, name, LINES))?;
        let (own, more): (Vec<&str>, Vec<&str>) =
            lines.lines().partition(|line| !line.starts_with('7') || line.find('|') != Some(4));
        let own: String = own.iter().map(|line| format!("{line}\n")).collect();
        let digest = pellucid::hash::hex(&sha256(own.as_bytes()));
        assert_eq!(digest, self.sha256, "{}: other rows: {lines}", case.name);
        assert_eq!(more, self.more, "{}: rows that were added", case.name);
        Ok(())
    }

    fn insert(&mut self, case: &Case, program: &Path, name: &str, more: &str) -> Trial {
        let number = 7000 + self.more.len();
        let sql = format!("INSERT INTO t VALUES ({number}, 'added', '');\n{more}");
        ok(case.sqlite(program, name, &sql))?;
        self.more.push(format!("{number}|added|"));
        Ok(())
    }
}

/// The state that `status` tells.
fn state(case: &Case, program: &Path) -> Result<String, Said> {
    let told = ok(case.run(program, "--json status app.db"))?;
    let facts: serde_json::Value = serde_json::from_str(&told).unwrap();
    let state = &facts["databases"][0]["encryption"]["encryption_state_desc"];
    let state = state.as_str().unwrap_or_else(|| panic!("{told}"));
    Ok(state.to_owned())
}

fn database_opens(case: &Case, program: &Path, held: &Held) -> Trial {
    held.check(case, program, "app.db")?;
    if let Some(finish) = case.fact("finish") {
        ok(case.run(program, &format!("{finish} app.db")))?;
        held.check(case, program, "app.db")?;
    }
    let wanted = match case.fact("state") {
        Some("plain") => "NONE",
        Some("unencrypted") => "UNENCRYPTED",
        _ => "ENCRYPTED",
    };
    assert_eq!(state(case, program)?, wanted, "{}", case.name);
    match wanted {
        "NONE" => Ok(()),
        _ => ok(case.run(program, "check app.db")).map(drop),
    }
}

/// Changed by this program in each way, and by the release in between.
fn database_changed(case: &Case, release: &Path, held: &mut Held) -> Trial {
    let now = &own_program();
    let mine = |told: Trial| told.unwrap_or_else(|told| panic!("{}: {told:?}", case.name));
    let there = |words: &str| mine(ok(case.run(now, words)).map(drop));
    if case.fact("state").is_some() {
        // What was left of an interruption is no longer known by its inode once it was unpacked: moved away, as it says.
        for stale in ["app.db-pellucid", "app.db-pellucid-of"] {
            let _ = std::fs::remove_file(case.path(stale));
        }
        there("encrypt app.db");
    }
    mine(held.insert(case, now, "app.db", "PRAGMA wal_checkpoint;\nVACUUM;\n"));
    held.check(case, release, "app.db")?;
    held.insert(case, release, "app.db", "")?;
    mine(held.check(case, now, "app.db"));
    // A recovery protector alone has no private key here that could make it again.
    if case.fact("opens") != Some("recovery") {
        there("rekey app.db");
        held.check(case, release, "app.db")?;
    }
    ok(case.run(release, "check app.db"))?;
    there("decrypt --keep-container app.db");
    held.check(case, release, "app.db")?;
    there("encrypt app.db");
    held.check(case, release, "app.db")?;
    there("check app.db");
    Ok(())
}

fn media(case: &Case) -> String {
    case.fact("media").unwrap().to_owned()
}

fn base(case: &Case) -> String {
    case.fact("base").map_or(String::new(), |base| format!(" --base {base}"))
}

fn media_open(case: &Case, program: &Path, held: &Held, sets: u64) -> Trial {
    let (media, base) = (media(case), base(case));
    let told = ok(case.run(program, &format!("--json header {media}")))?;
    let found = told.lines().filter(|line| line.contains("\"position\"")).count() as u64;
    assert_eq!(found, sets, "{}: {told}", case.name);
    ok(case.run(program, &format!("verify {media} --open{base}")))?;
    let last = if base.is_empty() { String::new() } else { format!(" --position 1{base}") };
    let last =
        if sets.to_string() == case.fact("sets").unwrap_or("1") { last } else { String::new() };
    let _ = std::fs::remove_file(case.path("new.db"));
    ok(case.run(program, &format!("restore {media} --to new.db{last}")))?;
    held.check(case, program, "new.db")
}

fn sets(case: &Case) -> u64 {
    case.fact("sets").unwrap().parse().unwrap()
}

/// Another set behind those that are there, by this program and then by the release.
fn media_changed(case: &Case, release: &Path, held: &mut Held) -> Trial {
    let now = &own_program();
    let mine = |told: Trial| told.unwrap_or_else(|told| panic!("{}: {told:?}", case.name));
    let files = media(case);
    let to = match case.fact("mirror") {
        Some(_) => "one.bak two.bak --mirror three.bak four.bak".to_owned(),
        None => files,
    };
    let how = match (case.fact("plain"), case.name.as_str()) {
        (Some(_), "media-in-clear") => " --no-encryption",
        (Some(_), _) => " --certificate app",
        _ => "",
    };
    let compression = case.fact("compression").unwrap_or("zstd");
    let append = format!("backup new.db --append --to {to}{how} --compression {compression}");
    mine(held.insert(case, now, "new.db", ""));
    mine(ok(case.run(now, &append)).map(drop));
    media_open(case, release, held, sets(case) + 1)?;
    held.insert(case, release, "new.db", "")?;
    ok(case.run(release, &append))?;
    mine(media_open(case, now, held, sets(case) + 2));
    Ok(())
}

fn damaged_media_open(case: &Case, program: &Path) -> Trial {
    for words in ["verify app.bak", "restore app.bak --to new.db"] {
        let told = case.run(program, words);
        if told.code != 3 || !told.stderr.contains("could not be read") {
            return Err(told);
        }
    }
    Ok(())
}

/// Reads `app.db` in a new instance at `home` that `words` fill.
fn elsewhere(case: &Case, program: &Path, home: &str, words: &[&str], held: &Held) -> Trial {
    let home = case.path(home);
    for words in words {
        let mut command = case.command(program);
        ok(said(command.env("PELLUCID_HOME", &home).args(words.split(' '))))?;
    }
    let mut command = case.command(program);
    command.env("PELLUCID_HOME", &home);
    command.args(["run", "--", "sqlite3", "-batch", "-bail", "app.db"]);
    let lines = ok(said_with(&mut command, LINES))?;
    let digest = pellucid::hash::hex(&sha256(lines.as_bytes()));
    assert_eq!(digest, held.sha256, "{}: other rows: {lines}", case.name);
    Ok(())
}

const PASSWORD: &str = "--password-file ../password";

fn exports_open(case: &Case, program: &Path, held: &Held) -> Trial {
    let import = format!("cert import app --cert-file app.pem --key-file app.pem.key {PASSWORD}");
    elsewhere(case, program, "imported", &["init", &import], held)?;
    for key in ["service", "master"] {
        ok(case.run(program, &format!("key restore {key} --file {key}.backup {PASSWORD}")))?;
        held.check(case, program, "app.db")?;
    }
    Ok(())
}

fn exports_changed(case: &Case, release: &Path, held: &Held) -> Trial {
    let now = &own_program();
    for words in [
        "cert create later".to_owned(),
        "rewrap app.db --certificate later".to_owned(),
        format!("cert export later --cert-file later.pem --key-file later.key {PASSWORD}"),
        format!("key backup service --file later.service {PASSWORD}"),
        format!("key backup master --file later.master {PASSWORD}"),
    ] {
        case.run(now, &words).succeeded();
    }
    let import = format!("cert import later --cert-file later.pem --key-file later.key {PASSWORD}");
    elsewhere(case, release, "later", &["init", &import], held)?;
    for key in ["service", "master"] {
        ok(case.run(release, &format!("key restore {key} --file later.{key} {PASSWORD}")))?;
        held.check(case, release, "app.db")?;
    }
    Ok(())
}

fn bundle_opens(case: &Case, program: &Path, home: &str, bundle: &str, held: &Held) -> Trial {
    let password = if case.fact("password") == Some("yes") { PASSWORD } else { "" };
    let import = format!("instance import {bundle} {password}").trim_end().to_owned();
    elsewhere(case, program, home, &[&import], held)
}

fn bundle_changed(case: &Case, release: &Path, home: &str, held: &Held) -> Trial {
    let mut export = case.command(&own_program());
    export.env("PELLUCID_HOME", case.place.path("keys"));
    export.args(["instance", "export", "--to", "later.bundle"]);
    match case.fact("password") {
        Some("yes") => export.args(PASSWORD.split(' ')),
        _ => export.args(["--certificate", "inbox"]),
    };
    said(&mut export).succeeded();
    bundle_opens(case, release, home, "later.bundle", held)
}

fn instance_opens(case: &Case, program: &Path, certificates: &[&str]) -> Trial {
    let told = ok(case.run(program, "cert list"))?;
    for name in certificates {
        assert!(told.contains(name), "{name}: {told}");
    }
    assert!(ok(case.run(program, "policy show"))?.contains("365d"));
    ok(case.run(program, "key status"))?;
    let told = ok(case.run(program, "--json history"))?;
    assert!(told.contains("media-striped"), "{told}");
    ok(case.run(program, "events")).map(drop)
}

const CERTIFICATES: [&str; 4] = ["pellucid", "app", "rescue", "inbox"];

fn instance_changed(case: &Case, release: &Path) -> Trial {
    let now = &own_program();
    case.place.secret("instance/other", b"Another Key of a Release 2\n");
    for words in [
        "cert create later --expiry 2099-12-31",
        "key password add --password-file other",
        "key regenerate master --password-file other",
        "key regenerate service",
        "cert drop inbox",
        "policy set warn-before-expiry 40d",
    ] {
        case.run(now, words).succeeded();
    }
    instance_opens(case, release, &["pellucid", "app", "rescue", "later"])?;
    ok(case.run(release, "cert create last"))?;
    // A release of before the event log had a chain writes lines that are none of it: named until the chain begins anew.
    let told = case.run(now, "events");
    if told.code != 0 {
        assert!(told.code == 4 && told.stderr.contains("it was put in"), "{told:?}");
        case.run(now, "events restart").succeeded();
    }
    instance_opens(case, now, &["later", "last"]).unwrap_or_else(|told| panic!("{told:?}"));
    Ok(())
}

fn opens(case: &Case, program: &Path) -> Trial {
    let held = Held::of(case);
    match case.fact("kind").unwrap() {
        "database" => database_opens(case, program, &held),
        "media" => media_open(case, program, &held, sets(case)),
        "damaged-media" => damaged_media_open(case, program),
        "exports" => exports_open(case, program, &held),
        "bundle" => bundle_opens(
            case,
            program,
            case.fact("elsewhere").unwrap_or("taken"),
            "keys.bundle",
            &held,
        ),
        "instance" => instance_opens(case, program, &CERTIFICATES),
        kind => panic!("{}: kind {kind}", case.name),
    }
}

fn changed(case: &Case, release: &Path) -> Trial {
    let mut held = Held::of(case);
    match case.fact("kind").unwrap() {
        "database" => database_changed(case, release, &mut held),
        "media" => media_changed(case, release, &mut held),
        // It is of a database that is not there any more.
        "damaged-media" => Ok(()),
        "exports" => exports_changed(case, release, &held),
        "bundle" => bundle_changed(case, release, case.fact("elsewhere").unwrap_or("later"), &held),
        "instance" => instance_changed(case, release),
        kind => panic!("{}: kind {kind}", case.name),
    }
}

fn cases(fixtures: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(fixtures)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("case").exists())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// What a case is, and what became of it: opened by this program, changed by it and opened by the release, made by it
/// and opened by the release.
type Row = (String, [Option<Outcome>; 3]);

fn row(release: &Release, made: &Path, name: &str) -> Row {
    let what = format!("{} of {}", name, release.name);
    let case = Case::copy(&release.fixtures, name);
    let first = outcome(opens(&case, &own_program()), &what);
    assert_eq!(first, Outcome::Opened, "{what} is not opened any more");
    let second = release.program.as_deref().map(|program| {
        let found = outcome(changed(&case, program), &format!("{what}, changed"));
        let held = case.fact("kind") == Some("database");
        if held && found != Outcome::Opened {
            // Refused, and nothing is lost by that.
            let told = case.sqlite(&own_program(), "app.db", "SELECT count(*) FROM t;");
            assert_eq!(told.code, 0, "{what}: {told:?}");
        }
        found
    });
    let third = release.program.as_deref().filter(|_| made.join(name).exists()).map(|program| {
        let case = Case::copy(made, name);
        let found = outcome(opens(&case, program), &format!("{what}, made now"));
        if found != Outcome::Opened {
            let told = opens(&Case::copy(made, name), &own_program());
            told.unwrap_or_else(|told| panic!("{what}: {told:?}"));
        }
        found
    });
    (case.fact("what").unwrap().to_owned(), [Some(first), second, third])
}

fn page(tables: &[(String, Vec<Row>)]) -> String {
    let mut page = String::from(
        "# Compatibility\n\nWhat the files of each release are to this version, and the other way round. A test tries it with the files of \
         each release and with its own program (`crates/pellucid-cli/tests/cli/releases.rs`) and fails unless this page is what it \
         found: `PELLUCID_COMPATIBILITY=write cargo test --workspace --test cli -- releases` writes it anew.\n\nA release's files are always opened: \
         logs are replayed, journals rolled back, half conversions finished. What this version has changed is opened by the \
         release, too, or refused by name and not harmed ([format.md](format.md), \"Later versions\").\n",
    );
    for (name, rows) in tables {
        let _ = write!(
            page,
            "\n## {name}\n\n| Files of {name} | opened by this version | then changed by this version, opened by {name} \
             | made by this version, opened by {name} |\n|---|---|---|---|\n"
        );
        for (what, outcomes) in rows {
            let cell = |outcome: &Option<Outcome>| match outcome {
                None => "not tried".to_owned(),
                Some(Outcome::Opened) => "yes".to_owned(),
                Some(Outcome::Refused(why)) => format!("refused: {why}"),
            };
            let cells: Vec<String> = outcomes.iter().map(cell).collect();
            let _ = writeln!(page, "| {what} | {} |", cells.join(" | "));
        }
    }
    page
}

/// The trial can fail: other rows, a commit that is missing, and a file that is refused by name.
fn a_trial_notices(made: &Path) {
    let now = &own_program();
    let fails = |case: &Case| {
        let opened = || opens(case, now).is_err();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(opened));
        assert!(caught.unwrap_or(true), "{}: not noticed", case.name);
    };
    let mut other = Case::copy(made, "journal-wal");
    other.facts.insert("sha256".into(), "0".repeat(64));
    fails(&other);
    let lost = Case::copy(made, "hot-wal");
    std::fs::remove_file(lost.path("app.db-wal")).unwrap();
    fails(&lost);
    let newer = Case::copy(made, "page-4096");
    edit_headers(&newer.path("app.db"), |copy| copy[121] = 4);
    let Outcome::Refused(why) = outcome(opens(&newer, now), "a newer one") else {
        panic!("opened: a newer one")
    };
    assert!(why.contains("newer version"), "{why}");
}

#[test]
fn what_releases_left_is_opened_and_what_is_made_of_it_is_too() {
    let place = Place::new();
    let made = made_now(&place);
    a_trial_notices(&made);
    let releases = releases(&place, &made);
    let mut tables = Vec::new();
    for release in &releases {
        let names = cases(&release.fixtures);
        assert!(names.len() >= 45, "{}: {} cases", release.name, names.len());
        let next = std::sync::atomic::AtomicUsize::new(0);
        let rows = std::sync::Mutex::new(BTreeMap::new());
        let workers = std::thread::available_parallelism().map_or(2, usize::from).min(8);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    let Some(name) = names.get(at) else { break };
                    let row = row(release, &made, name);
                    rows.lock().unwrap().insert(at, row);
                });
            }
        });
        tables.push((release.name.clone(), rows.into_inner().unwrap().into_values().collect()));
    }
    if releases.iter().any(|release| release.program.is_none()) {
        return;
    }
    let found = page(&tables);
    let path = root().join("docs/compatibility.md");
    if std::env::var_os("PELLUCID_COMPATIBILITY").is_some_and(|value| value == "write") {
        std::fs::write(&path, &found).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == found, "docs/compatibility.md is not what was found; PELLUCID_COMPATIBILITY=write writes it:\n{found}");
}
