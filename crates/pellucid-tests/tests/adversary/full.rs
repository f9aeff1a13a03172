//! Goal: an older state of a database under a chain of log backups, of its log, of its archive, or of several of them, does not pass for
//! the present one: where a backup has been made since, whoever looks is told of it. The keyring is out of reach.
//!
//! Method: a database lives through commits, checkpoints, closes and backups; all that lies on its storage is kept at each moment, as
//! a power cut would leave it, and the keyring beside it. Then parts of a moment are put in the place of a later one, by a seed, and four
//! things are done with each: `status` and `require=fresh`, a log backup, `check --against`, and a program that goes on first. An
//! oracle that has the moments alone says who has to be told.
//!
//! What was committed since the last backup may be cut off: that is what remains.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::header::RecoveryModel;
use pellucid_backup::job::{back_up, compare, Comparing, Files as Media, Job, LogJob};
use pellucid_engine::log_chain;
use pellucid_keyring::Keyring;
use pellucid_tests::processes::number;
use pellucid_tests::random::Random;
use pellucid_tests::{content, processes};
use pellucid_vfs::{log_archive, witness};
use rusqlite::Connection;

use crate::storage::write_private;

/// Steps of a history.
const STEPS: usize = 30;
/// Cases of a history.
const CASES_OF_ONE: u64 = 40;
/// Of so many cases one is looked at by `pellucid status`, too.
const PROGRAMS: u64 = 25;

/// Files by their paths below a folder.
type Kept = BTreeMap<PathBuf, Vec<u8>>;

/// A part of what lies on the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Database,
    Log,
    Archive,
}

impl Part {
    const ALL: [Self; 3] = [Self::Database, Self::Log, Self::Archive];

    fn of(path: &Path) -> Option<Self> {
        match path.to_str()? {
            "a.db" => Some(Self::Database),
            "a.db-wal" => Some(Self::Log),
            other => other.starts_with("a.db-log/").then_some(Self::Archive),
        }
    }
}

/// What there was at a moment.
struct Moment {
    storage: Kept,
    keyring: Kept,
    /// The content, as it is read.
    content: String,
    /// Media of the chain so far, and the content that the last of them has.
    media: usize,
    covered: String,
    /// The same of log backups.
    logged: String,
}

struct History {
    scratch: tempfile::TempDir,
    moments: Vec<Moment>,
    media: Vec<PathBuf>,
}

fn keep(folder: &Path) -> Kept {
    let mut kept = Kept::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.to_str().unwrap().ends_with("-shm") {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                kept.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    kept
}

/// Makes `folder` what was kept.
fn put(folder: &Path, kept: &Kept) {
    let now = keep(folder);
    for name in now.keys().filter(|name| !kept.contains_key(*name)) {
        fs::remove_file(folder.join(name)).unwrap();
    }
    let _ = fs::remove_file(folder.join("a.db-shm"));
    for (name, bytes) in kept.iter().filter(|(name, bytes)| now.get(*name) != Some(bytes)) {
        let path = folder.join(name);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).unwrap();
        }
        write_private(&path, bytes);
    }
}

fn connect(path: &Path, more: &str) -> rusqlite::Result<Connection> {
    let connection = content::open(&format!("file:{}?vfs=pellucid{more}", path.display()))?;
    connection.busy_timeout(Duration::from_secs(10))?;
    Ok(connection)
}

/// All that is read.
fn read(connection: &Connection) -> rusqlite::Result<String> {
    let sql = "SELECT count(*) || ' ' || sum(v) || ' ' || sum(v * id) || ' ' || (SELECT n FROM counter) FROM t";
    connection.query_row(sql, [], |row| row.get(0))
}

fn commit(connection: &Connection, random: &mut Random) -> rusqlite::Result<()> {
    let (every, at) = (3 + random.below(30u64), random.below(3u64));
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; UPDATE counter SET n = n + 1; UPDATE t SET v = v + 1 WHERE id % {every} = {at}; COMMIT"
    ))
}

impl History {
    fn live_through(random: &mut Random) -> Self {
        pellucid_bundled::register().unwrap();
        let scratch = tempfile::Builder::new().prefix("pellucid-full").tempdir_in("/dev/shm");
        let scratch = scratch.or_else(|_| tempfile::tempdir()).unwrap();
        for folder in ["live", "media"] {
            fs::create_dir(scratch.path().join(folder)).unwrap();
        }
        std::env::set_var("PELLUCID_HOME", scratch.path().join("home"));
        std::env::set_var("PELLUCID_FORMAT", "2");
        Keyring::open_or_create(&scratch.path().join("home")).unwrap();
        let mut history = Self { scratch, moments: Vec::new(), media: Vec::new() };
        std::env::set_var("PELLUCID_ENCRYPT_NEW", "1");
        let mut connection = Some(history.open());
        connection
            .as_ref()
            .unwrap()
            .execute_batch(
                "PRAGMA page_size=1024; PRAGMA journal_mode=WAL; CREATE TABLE counter(n INTEGER);
                 INSERT INTO counter VALUES(0); CREATE TABLE t(id INTEGER PRIMARY KEY, v INTEGER, b BLOB);
                 WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 90)
                 INSERT INTO t SELECT x, x, zeroblob(60) FROM c",
            )
            .unwrap();
        std::env::remove_var("PELLUCID_ENCRYPT_NEW");
        log_chain::set_model(&history.database(), RecoveryModel::Full).unwrap();
        let (mut covered, mut logged) = (String::new(), String::new());
        for step in 0..STEPS {
            let open = connection.get_or_insert_with(|| history.open());
            match if step == 0 { 9 } else { random.below(12u64) } {
                0..5 => (0..=random.below(3u64)).for_each(|_| commit(open, random).unwrap()),
                5 | 6 => {
                    let mode = ["PASSIVE", "RESTART", "TRUNCATE"][random.below(3usize)];
                    let sql = format!("PRAGMA wal_checkpoint({mode})");
                    open.query_row(&sql, [], |_| Ok(())).unwrap();
                }
                7 => drop(connection.take()),
                kind => {
                    covered = read(open).unwrap();
                    let is_log = kind >= 10 || step > 0 && kind == 8;
                    if is_log || step == 0 {
                        logged.clone_from(&covered);
                    }
                    let name = format!("media/{step}.bak");
                    let media = history.scratch.path().join(name);
                    backed_up(&history.database(), &media, is_log).unwrap();
                    history.media.push(media);
                }
            }
            history.keep_moment(connection.as_ref(), &covered, &logged);
        }
        history
    }

    fn keep_moment(&mut self, connection: Option<&Connection>, covered: &str, logged: &str) {
        let storage = keep(&self.scratch.path().join("live"));
        let content = match connection {
            Some(connection) => read(connection).unwrap(),
            None => self.moments.last().map_or(String::new(), |last| last.content.clone()),
        };
        self.moments.push(Moment {
            storage,
            keyring: keep(&self.scratch.path().join("home")),
            content,
            media: self.media.len(),
            covered: covered.to_owned(),
            logged: logged.to_owned(),
        });
    }

    fn database(&self) -> PathBuf {
        self.scratch.path().join("live/a.db")
    }

    fn open(&self) -> Connection {
        let connection = connect(&self.database(), "").unwrap();
        connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        connection
    }
}

fn backed_up(database: &Path, to: &Path, is_log: bool) -> Result<(), String> {
    let job =
        Job::new(database.to_owned(), Media { families: vec![to.to_owned()], mirrors: Vec::new() });
    let log = is_log.then(LogJob::default);
    back_up(&Job { log, ..job }, &mut |_| ()).map(|_| ()).map_err(|error| error.to_string())
}

/// What is put back: each part with the moment that it is of, behind which the present one is.
struct Case {
    present: usize,
    older: BTreeMap<Part, usize>,
}

impl Case {
    fn draw(history: &History, random: &mut Random) -> Self {
        let present = 1 + random.below(history.moments.len() - 1);
        let moment = random.below(present);
        let parts = match random.below(8u64) {
            0 => vec![],
            1 | 2 => Part::ALL.to_vec(),
            3 => vec![Part::Archive],
            4 => vec![Part::Database, Part::Log],
            _ => Part::ALL.into_iter().filter(|_| random.chance(50)).collect(),
        };
        let is_mixed = random.chance(20);
        let mut older = BTreeMap::new();
        for part in parts {
            older.insert(part, if is_mixed { random.below(present) } else { moment });
        }
        let mut case = Self { present, older };
        // What is the same as now is none.
        let parts = |moment: usize, part: Part| -> Vec<_> {
            let all = &history.moments[moment].storage;
            all.iter().filter(|(name, _)| Part::of(name) == Some(part)).collect()
        };
        case.older.retain(|part, moment| parts(*moment, *part) != parts(present, *part));
        case
    }

    fn storage(&self, history: &History) -> Kept {
        let mut found = Kept::new();
        for part in Part::ALL {
            let moment = self.older.get(&part).copied().unwrap_or(self.present);
            let of_it = &history.moments[moment].storage;
            found.extend(
                of_it
                    .iter()
                    .filter(|(name, _)| Part::of(name) == Some(part))
                    .map(|(name, bytes)| (name.clone(), bytes.clone())),
            );
        }
        found
    }

    fn name(&self) -> String {
        let names: Vec<_> =
            self.older.keys().map(|part| format!("{part:?}").to_lowercase()).collect();
        match names.is_empty() {
            true => "nothing".to_owned(),
            false => names.join("+"),
        }
    }
}

/// Who was told.
#[derive(Debug, Default, Clone)]
struct Told {
    opening: Option<String>,
    status: Option<String>,
    fresh: Option<String>,
    log: Option<String>,
    /// Behind the log backup.
    later: Option<String>,
    check: Option<String>,
    /// Where a program went on first.
    gone_on: Option<String>,
    content: Option<String>,
}

struct Bench<'a> {
    history: &'a History,
    case: &'a Case,
}

impl Bench<'_> {
    fn put(&self) -> PathBuf {
        let root = self.history.scratch.path();
        put(&root.join("live"), &self.case.storage(self.history));
        put(&root.join("home"), &self.history.moments[self.case.present].keyring);
        self.history.database()
    }

    fn status(&self) -> Option<String> {
        let path = self.history.database();
        let look = log_archive::Archive::open(&path).and_then(|archive| archive.look());
        match look {
            Err(error) => Some(error.to_string()),
            Ok(None) => Some("no state".to_owned()),
            Ok(Some(state)) if !state.broken_at.is_none() => Some("broken".to_owned()),
            Ok(Some(state)) => {
                witness::ahead(&path, &state).unwrap().map(|_| "put back".to_owned())
            }
        }
    }

    /// What the program says of the same.
    fn assert_status_by_program(&self, told: &Told) {
        let mut command = std::process::Command::new(processes::built("pellucid"));
        let said =
            command.args(["status", "--check"]).arg(self.history.database()).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned()
            + &String::from_utf8_lossy(&said.stderr);
        let is_told = said.contains("was put back") || said.contains("is broken");
        assert_eq!(is_told, told.status.is_some(), "{said}");
    }

    fn fresh(&self) -> Option<String> {
        let opened = connect(&self.history.database(), "&require=fresh");
        opened.and_then(|connection| read(&connection)).err().map(|error| error.to_string())
    }

    fn log(&self, name: &str) -> Option<String> {
        let to = self.history.scratch.path().join("media").join(name);
        let _ = fs::remove_file(&to);
        backed_up(&self.history.database(), &to, true).err()
    }

    fn check(&self, more: Option<&str>) -> Option<String> {
        let mut media =
            self.history.media[..self.history.moments[self.case.present].media].to_vec();
        media.extend(more.map(|name| self.history.scratch.path().join("media").join(name)));
        let comparing = Comparing {
            database: self.history.database(),
            media,
            timeout: Duration::from_secs(10),
        };
        match compare(&comparing, &mut |_, _| ()) {
            Err(error) => Some(error.to_string()),
            Ok(found) => (!found.older.is_empty() || !found.unread.is_empty())
                .then(|| format!("{:?}, unread {:?}", found.older, found.unread)),
        }
    }

    fn try_all(&self, by_program: bool, random: &mut Random) -> Told {
        let path = self.put();
        let mut told = Told { status: self.status(), ..Told::default() };
        if by_program {
            self.assert_status_by_program(&told);
        }
        told.fresh = self.fresh();
        match connect(&path, "").and_then(|connection| read(&connection)) {
            Ok(content) => told.content = Some(content),
            Err(error) => told.opening = Some(error.to_string()),
        }
        self.put();
        told.log = self.log("next.bak");
        told.later = self.status().or_else(|| self.fresh());
        self.put();
        told.check = self.check(None);
        self.put();
        let gone = connect(&path, "").and_then(|connection| {
            connection.execute_batch("PRAGMA wal_autocheckpoint=0")?;
            commit(&connection, random)
        });
        told.gone_on = gone.err().map(|error| error.to_string());
        told.gone_on = told
            .gone_on
            .or_else(|| self.log("gone.bak"))
            .or_else(|| self.status())
            .or_else(|| self.fresh());
        told
    }
}

/// What is wrong with what came of it.
fn judge(history: &History, case: &Case, told: &Told) -> Result<&'static str, String> {
    let (present, moments) = (&history.moments[case.present], &history.moments);
    let fails = |what: &str| Err(format!("{what}: {told:?}"));
    if case.older.is_empty() {
        let all = [
            &told.opening,
            &told.status,
            &told.fresh,
            &told.log,
            &told.later,
            &told.check,
            &told.gone_on,
        ];
        let is_right = told.content.as_ref() == Some(&present.content);
        return match is_right && all.iter().all(|one| one.is_none()) {
            true => Ok("quiet"),
            false => fails("a false alarm, or other content"),
        };
    }
    let archive = case.older.get(&Part::Archive).map(|moment| &moments[*moment]);
    if let Some(archive) = archive.filter(|archive| archive.media < present.media) {
        // The log backup refuses, and says so from then on. Where no log backup had a commit in between, the log has all of them, and
        // who goes on with the older archive keeps them: a program, or the log backup itself.
        let at_once = told.status.is_some() && told.fresh.is_some();
        let later = [&told.log, &told.later, &told.gone_on];
        let is_whole = archive.logged == present.logged;
        return match at_once && (is_whole || later.iter().all(|one| one.is_some())) {
            true => Ok("told"),
            false => fails("an archive of before a backup is not told by everybody"),
        };
    }
    let is_present = told.content.as_ref() == Some(&present.content);
    if is_present {
        return Ok("harmless");
    }
    // What the backups have is at least the content of the last one.
    let is_covered = told.content.as_ref().is_some_and(|content| {
        moments[..=case.present].iter().rposition(|one| one.content == *content)
            >= moments[..=case.present].iter().position(|one| one.content == present.covered)
    });
    if told.content.is_some() && is_covered {
        return Ok("remains");
    }
    if told.opening.is_some() {
        return Ok("refused");
    }
    if told.log.is_some() && told.gone_on.is_some() {
        return Ok("told");
    }
    // Older pages beside the present log: what a sync has to return for is there.
    let is_pages_alone = case.older.keys().eq([&Part::Database]);
    match is_pages_alone && told.check.is_some() {
        true => Ok("told-by-check"),
        false => fails("an older state is not told"),
    }
}

/// Runs `count` cases of `seed` from number `first` on.
pub fn run(seed: u64, first: u64, count: u64) {
    println!("full: seed {seed}, cases {first} to {}", first + count);
    let mut kinds: BTreeMap<(String, &str), u64> = BTreeMap::new();
    let mut failures = Vec::new();
    let mut history: Option<(u64, History)> = None;
    for number_of_it in first..first + count {
        let own = number_of_it / CASES_OF_ONE;
        if history.as_ref().is_none_or(|(of, _)| *of != own) {
            let mut random =
                Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ own.wrapping_mul(0x9e37_79b9));
            history = Some((own, History::live_through(&mut random)));
        }
        let history = &history.as_ref().unwrap().1;
        let mut random = Random(seed ^ number_of_it.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.draw();
        let case = Case::draw(history, &mut random);
        let told =
            Bench { history, case: &case }.try_all(number_of_it % PROGRAMS == 0, &mut random);
        match judge(history, &case, &told) {
            Ok(class) => *kinds.entry((case.name(), class)).or_default() += 1,
            Err(failure) => {
                println!(
                    "full case {number_of_it}, {} of {:?} at {}: {failure}",
                    case.name(),
                    case.older,
                    case.present
                );
                for (at, moment) in history.moments[..=case.present].iter().enumerate() {
                    let sizes: Vec<_> = moment
                        .storage
                        .iter()
                        .map(|(name, bytes)| format!("{}:{}", name.display(), bytes.len()))
                        .collect();
                    println!(
                        "  {at}: {}, covered {}, media {}, {}",
                        moment.content,
                        moment.covered,
                        moment.media,
                        sizes.join(" ")
                    );
                }
                failures.push(number_of_it);
            }
        }
        if failures.len() >= number("PELLUCID_ADVERSARY_SHOWN", 20) {
            break;
        }
    }
    for ((kind, class), count) in &kinds {
        println!("FULL\t{kind}\t{class}\t{count}");
    }
    let classes = ["told", "told-by-check", "refused", "remains", "harmless", "quiet"];
    let sum = |class: &str| {
        kinds.iter().filter(|((_, of), _)| *of == class).map(|(_, count)| count).sum()
    };
    let each: [u64; 6] = classes.map(sum);
    println!("RESULT {count} {}", each.map(|count| count.to_string()).join(" "));
    assert!(failures.is_empty(), "full: cases that were not told, or falsely: {failures:?}");
}
