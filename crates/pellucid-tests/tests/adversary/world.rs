//! A small instance with a history: databases that were written, rekeyed, switched off and on, copied and backed up, and what
//! lay on the storage at each of twenty moments.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::Algorithm;
use pellucid_backup::job::{open_family, Existing};
use pellucid_engine::{protectors, scan};
use pellucid_keyring::policy::Policy;
use pellucid_keyring::Keyring;
use pellucid_tests::{content, processes};
use pellucid_vfs::lost_log;
use pellucid_vfs::seal_request::Protection;
use rusqlite::{Connection, OpenFlags};

use crate::archive::{Archive, FRAME, LOG_HEADER};
use crate::media::{self, Media};
pub use crate::name::Name;
use crate::rows;
use crate::storage::{keep, Files, Folder};

/// Bytes of a page of all databases.
pub const PAGE: usize = 1024;
/// Rows of a database at its beginning.
const ROWS: i64 = 30;

/// The instance's folder, and the strict one's.
const HOMES: [&str; 2] = ["home", "strict"];

/// The content of one database after one of its commits.
pub struct State {
    /// Whose it is.
    pub whose: Name,
    /// All that is read of it.
    pub lines: Vec<String>,
    /// Its pages, each of which is read for these lines.
    pub pages: usize,
}

/// What lay on the storage at a moment.
pub struct Moment {
    /// Databases, logs, journals and media.
    pub files: Files,
    /// The state of each database that was there.
    pub states: BTreeMap<Name, usize>,
}

/// The instance, its history, and the folder in which cases are tried.
pub struct World {
    scratch: tempfile::TempDir,
    pub moments: Vec<Moment>,
    pub states: Vec<State>,
    pub archive: Archive,
    /// All rows that were ever read of a database.
    pub known: BTreeMap<Name, HashSet<String>>,
    /// The instance, and the same where another database at a pinned path is an error.
    homes: Vec<Folder>,
    open: BTreeMap<Name, Connection>,
    counts: BTreeMap<Name, i64>,
    foreign: Option<usize>,
    /// Each backup that was made, with all files of its media then.
    pub backups: Vec<Backup>,
    /// What somebody without a key makes of media.
    pub forged: Vec<(String, Vec<u8>)>,
}

/// Media after a backup.
pub struct Backup {
    pub media: Media,
    pub files: Vec<Option<Vec<u8>>>,
    /// Where the manifest of the last set begins in each.
    pub manifests: Vec<u64>,
    /// What was backed up.
    pub state: usize,
}

impl World {
    /// Lives through the history. Needs about a second.
    pub fn new() -> Self {
        pellucid_bundled::register().unwrap();
        let scratch = tempfile::Builder::new().prefix("pellucid-adversary").tempdir_in("/dev/shm");
        let scratch = scratch.or_else(|_| tempfile::tempdir()).unwrap();
        let mut world = Self {
            scratch,
            moments: Vec::new(),
            states: Vec::new(),
            archive: Archive::default(),
            known: BTreeMap::new(),
            homes: Vec::new(),
            open: BTreeMap::new(),
            counts: BTreeMap::new(),
            foreign: None,
            backups: Vec::new(),
            forged: Vec::new(),
        };
        for folder in ["live", "elsewhere", "out"] {
            fs::create_dir(world.folder(folder)).unwrap();
        }
        std::env::set_var("PELLUCID_ENCRYPT_NEW", "1");
        world.live_through();
        std::env::remove_var("PELLUCID_ENCRYPT_NEW");
        world.make_strict();
        world.homes = HOMES.iter().map(|name| Folder::keep(&world.folder(name))).collect();
        world.use_home(false);
        world
    }

    fn make_strict(&self) {
        let (from, to) = (self.folder(HOMES[0]), self.folder(HOMES[1]));
        let copied = std::process::Command::new("cp").arg("-a").args([&from, &to]).status();
        assert!(copied.unwrap().success());
        let keyring = Keyring::open(&to).unwrap();
        let on = Policy::StrictPaths.parse("on").unwrap();
        keyring.set_policy(Policy::StrictPaths, Some(on)).unwrap();
    }

    /// A folder of the run: `live` is the storage, `home` the instance, `elsewhere` where links lead, `out` for results.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The path of a file on the storage.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder("live").join(file)
    }

    /// The last moment: the present.
    pub fn now(&self) -> &Moment {
        self.moments.last().unwrap()
    }

    /// A file at a moment.
    pub fn file(&self, moment: usize, name: &str) -> Option<&Vec<u8>> {
        self.moments[moment].files.get(name)
    }

    /// Puts the keyring and the storage back as they are now.
    pub fn put_back(&mut self) {
        self.homes.iter_mut().for_each(Folder::put_back);
        let (live, now) = (self.folder("live"), &self.moments.last().unwrap().files);
        for entry in fs::read_dir(&live).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_link = entry.file_type().unwrap().is_symlink();
            if is_link || !now.contains_key(&name) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        for (name, bytes) in now {
            let path = live.join(name);
            // Reading is quicker than writing, and times are too coarse.
            if fs::read(&path).ok().as_ref() != Some(bytes) {
                fs::write(&path, bytes).unwrap();
            }
        }
        for folder in ["elsewhere", "out"] {
            for entry in fs::read_dir(self.folder(folder)).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }

    /// Uses the instance; `is_strict` is what it is about other databases at pinned paths.
    pub fn use_home(&self, is_strict: bool) {
        std::env::set_var("PELLUCID_HOME", self.folder(HOMES[usize::from(is_strict)]));
    }

    /// Bytes of the event log of the instance.
    pub fn events(&self) -> u64 {
        let log = self.folder(HOMES[0]).join("events.log");
        fs::metadata(log).map_or(0, |about| about.len())
    }

    fn connect(&mut self, name: Name) -> &Connection {
        let path = self.path(name.file());
        self.open.entry(name).or_insert_with(|| {
            let connection = match name {
                Name::Plain => open(&path, "vfs=unix"),
                _ => open(&path, "vfs=pellucid"),
            };
            let connection = connection.unwrap();
            connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
            self.archive.synced.remove(&name);
            connection
        })
    }

    fn make(&mut self, name: Name) {
        let (whose, mode) = (name.file(), name.mode());
        let version = content::version();
        let of_it = if name == Name::Other { 3 - version } else { version };
        std::env::set_var("PELLUCID_FORMAT", of_it.to_string());
        let connection = self.connect(name);
        rows::make(connection, PAGE, mode);
        rows::add(connection, whose, 1, ROWS);
        if name.has_log() {
            connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        }
        std::env::set_var("PELLUCID_FORMAT", version.to_string());
        if name == Name::Other {
            // The keyring notes at an opening that a database has pages, and nothing else opens this one again.
            self.open.remove(&name);
            self.connect(name);
        }
    }

    fn commit(&mut self, name: Name, times: usize) {
        for _ in 0..times {
            let count = self.counts.entry(name).or_insert(0);
            *count += 1;
            let count = *count;
            rows::commit(self.connect(name), name.file(), count);
            self.know(name);
            self.archive.synced.insert(name);
        }
        if name == Name::Log {
            // Now and then the file grows.
            let first = ROWS + 1 + 2 * self.counts[&name];
            rows::add(self.connect(name), name.file(), first, first);
            self.know(name);
        }
    }

    /// Notes the state of a database after a commit, and takes its files into the archive.
    fn know(&mut self, name: Name) -> usize {
        let lines = self.all_lines(name);
        let free: i64 = self.pragma(name, "freelist_count");
        assert_eq!(free, 0, "{name:?}: each page is read by the rows");
        let pages = self.pragma(name, "page_count") as usize;
        let same = |state: &State| state.whose == name && state.lines == lines;
        let state = self.states.iter().rposition(same).unwrap_or_else(|| {
            self.states.push(State { whose: name, lines, pages });
            self.states.len() - 1
        });
        let files = keep(&self.folder("live"), name.file());
        self.archive.add(name, &files, state);
        state
    }

    fn checkpoint(&mut self, name: Name) {
        self.connect(name).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    }

    /// From its next commit on the log begins anew, in the place of the frames that it has.
    fn restart(&mut self, name: Name) {
        self.connect(name).execute_batch("PRAGMA wal_checkpoint(RESTART)").unwrap();
    }

    /// A transaction that spills its pages into the log, and is rolled back: its frames lie there behind the end.
    fn roll_back(&mut self, name: Name) {
        let state = self.know(name);
        // Each page is written once: a second time would put its checksum off.
        let sql = "PRAGMA cache_size=2; BEGIN; UPDATE item SET version = 1";
        self.connect(name).execute_batch(sql).unwrap();
        let files = keep(&self.folder("live"), name.file());
        self.archive.add(name, &files, state);
        self.connect(name).execute_batch("ROLLBACK; PRAGMA cache_size=100").unwrap();
        self.know(name);
    }

    /// A power cut before the first frame of the last two transactions reached the disk, which nobody had synced: a recovery
    /// takes them back, and the next, smaller transaction leaves frames of the second behind the end.
    fn lose_two(&mut self, name: Name) {
        self.know(name);
        let log_name = format!("{}-wal", name.file());
        let before = self.counted(name, &keep(&self.folder("live"), name.file()));
        self.connect(name).execute_batch("PRAGMA synchronous=NORMAL").unwrap();
        for _ in 0..2 {
            let sql = "UPDATE item SET version = 1 - (version = 1)";
            self.connect(name).execute_batch(sql).unwrap();
            self.know(name);
            self.archive.synced.remove(&name);
        }
        let mut files = keep(&self.folder("live"), name.file());
        assert!(self.counted(name, &files) > before);
        self.open.remove(&name);
        let log = files.get_mut(&log_name).unwrap();
        log[LOG_HEADER + before * FRAME..][..FRAME].fill(0);
        self.archive.recovered(log, before);
        for (name, bytes) in &files {
            fs::write(self.path(name), bytes).unwrap();
        }
        self.all_lines(name);
        // It may have been damage; here nobody wants those commits.
        for kept in lost_log::kept(&self.path(name.file())) {
            fs::remove_file(kept).unwrap();
        }
        self.know(name);
    }

    /// The frames of a log that count.
    fn counted(&self, name: Name, files: &Files) -> usize {
        let file = &files[name.file()];
        let head = self.archive.head(file).unwrap();
        self.archive.log(&files[&format!("{}-wal", name.file())], &head, file).counted
    }

    fn pragma(&mut self, name: Name, pragma: &str) -> i64 {
        let sql = format!("PRAGMA {pragma}");
        self.connect(name).query_row(&sql, [], |row| row.get(0)).unwrap()
    }

    fn all_lines(&mut self, name: Name) -> Vec<String> {
        let mut lines = Vec::new();
        rows::read(self.connect(name), &mut lines).unwrap();
        self.known.entry(name).or_default().extend(lines.iter().cloned());
        lines
    }

    /// A moment: keeps all that lies on the storage.
    fn moment(&mut self) {
        let mut states = BTreeMap::new();
        for name in self.open.keys().copied().collect::<Vec<_>>() {
            states.insert(name, self.know(name));
        }
        states.extend(self.foreign.map(|state| (Name::Foreign, state)));
        self.keep_moment(states);
    }

    fn keep_moment(&mut self, states: BTreeMap<Name, usize>) {
        let moment = Moment { files: keep(&self.folder("live"), ""), states };
        self.moments.push(moment);
    }

    /// A moment in the middle of a transaction that has spilled: the file is half written, the journal is hot.
    fn moment_while_hot(&mut self) {
        let mut states = self.moments.last().unwrap().states.clone();
        let name = Name::Roll;
        states.insert(name, self.know(name));
        let connection = self.connect(name);
        connection.execute_batch("PRAGMA cache_size=2; BEGIN; DELETE FROM counter").unwrap();
        rows::change(connection, name.file(), 90_000);
        rows::change(connection, name.file(), 90_001);
        // What is not committed is of this database, too: without its journal it comes to light.
        self.all_lines(name);
        let files = keep(&self.folder("live"), name.file());
        self.archive.add(name, &files, states[&name]);
        self.keep_moment(states);
        self.connect(name).execute_batch("ROLLBACK; PRAGMA cache_size=100").unwrap();
    }

    fn switch(&mut self, name: Name, target: scan::Target) {
        self.open.remove(&name);
        let path = self.path(name.file());
        scan::set(&path, target).unwrap();
        self.scan(&path);
        self.connect(name);
    }

    fn scan(&self, path: &Path) {
        let options = scan::Options { hold: Duration::from_millis(50), ..scan::Options::default() };
        assert_eq!(scan::run(path, &options, &mut |_, _, _| ()).unwrap(), scan::Ended::Complete);
    }

    /// The other instance's database is made by another process: this one would remember its key.
    fn live_elsewhere(&mut self) -> usize {
        self.ask("foreign");
        let lines = fs::read_to_string(self.scratch.path().join("lines")).unwrap();
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        self.known.insert(Name::Foreign, lines.iter().cloned().collect());
        self.states.push(State { whose: Name::Foreign, lines, pages: 0 });
        let state = self.states.len() - 1;
        let files = keep(&self.folder("live"), Name::Foreign.file());
        self.archive.add(Name::Foreign, &files, state);
        state
    }

    /// Another process, which has none of the keys, forges media.
    fn forge(&mut self) {
        self.ask("forge");
        let evil = self.folder("evil");
        for entry in fs::read_dir(&evil).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            self.forged.push((name, fs::read(&path).unwrap()));
        }
        self.forged.sort();
    }

    fn back_up(&mut self, media: Media, name: Name, existing: Existing) {
        media::make(self, media, existing);
        let files = media.files().iter().map(|file| Some(fs::read(self.path(file)).unwrap()));
        let files = files.collect();
        let manifest = |file: &&str| {
            let family = open_family(&self.path(file)).unwrap();
            family.sets.last().unwrap().manifest_at
        };
        let manifests = media.files().iter().map(manifest).collect();
        let state = self.know(name);
        self.backups.push(Backup { media, files, manifests, state });
    }

    fn ask(&self, role: &str) {
        let asked = processes::child(role)
            .env("PELLUCID_HOME", self.folder("home-of-others"))
            .env("PELLUCID_ADVERSARY_PLACE", self.scratch.path())
            .env_remove("PELLUCID_ENCRYPT_NEW")
            .output()
            .unwrap();
        assert!(asked.status.success(), "{role}: {}", String::from_utf8_lossy(&asked.stderr));
    }

    fn live_through(&mut self) {
        self.use_home(false);
        self.foreign = Some(self.live_elsewhere());
        let (keyring, _) = Keyring::open_or_create(&self.folder(HOMES[0])).unwrap();
        keyring.ensure_default_certificate().unwrap();
        keyring.create_certificate("second", &media::request()).unwrap();
        let all =
            [Name::Log, Name::Roll, Name::Key, Name::Scan, Name::Off, Name::Other, Name::Plain];
        all.iter().for_each(|name| self.make(*name));
        self.moment(); // 0
        for _ in 0..2 {
            all.iter().for_each(|name| self.commit(*name, 3));
            self.moment(); // 1, 2
        }
        self.checkpoint(Name::Log);
        media::plain(self);
        self.moment(); // 3
        fs::copy(self.path("log.db"), self.path("copy.db")).unwrap();
        self.counts.insert(Name::Copy, 500);
        self.connect(Name::Copy);
        self.commit(Name::Copy, 2);
        self.commit(Name::Log, 2);
        self.back_up(Media::Appended, Name::Log, Existing::Refuse);
        self.back_up(Media::Striped, Name::Roll, Existing::Refuse);
        self.back_up(Media::Other, Name::Off, Existing::Refuse);
        self.moment(); // 4
        self.moment_while_hot(); // 5
        self.switch(Name::Off, scan::Target::Off);
        self.moment(); // 6
        self.commit(Name::Off, 2);
        self.commit(Name::Roll, 1);
        self.moment(); // 7
        self.switch(Name::Off, scan::Target::On(Algorithm::Aes256));
        self.commit(Name::Off, 1);
        self.moment(); // 8
        self.commit(Name::Key, 2);
        self.open.remove(&Name::Key);
        scan::rekey(&self.path("key.db"), None).unwrap();
        self.scan(&self.path("key.db"));
        self.connect(Name::Key);
        self.moment(); // 9
        self.commit(Name::Key, 3);
        self.commit(Name::Log, 3);
        self.moment(); // 10
        for name in [Name::Log, Name::Key, Name::Copy, Name::Other] {
            self.checkpoint(name);
        }
        self.back_up(Media::Appended, Name::Log, Existing::Append);
        self.back_up(Media::Striped, Name::Roll, Existing::Format);
        self.moment(); // 11
        let second = Protection::Certificate(Some("second".to_owned()));
        protectors::exchange(&self.path("roll.db"), None, &second).unwrap();
        self.commit(Name::Roll, 1);
        self.moment(); // 12
        for name in Name::PINNED {
            self.commit(name, 2);
        }
        for name in [Name::Log, Name::Key, Name::Other] {
            self.roll_back(name);
        }
        self.moment(); // 13
                       // The log begins anew, and has frames of its earlier run behind the new ones.
        self.restart(Name::Log);
        self.moment(); // 14
        self.commit(Name::Log, 1);
        self.commit(Name::Copy, 2);
        self.moment(); // 15
        self.commit(Name::Key, 1);
        self.commit(Name::Off, 1);
        self.lose_two(Name::Copy);
        self.commit(Name::Copy, 1);
        self.moment(); // 16
        self.moment_while_hot(); // 17
        for name in [Name::Log, Name::Key, Name::Scan, Name::Copy] {
            self.checkpoint(name);
        }
        self.restart(Name::Other);
        self.commit(Name::Roll, 2);
        self.open.remove(&Name::Scan);
        scan::rekey(&self.path("scan.db"), None).unwrap();
        self.connect(Name::Scan);
        self.moment(); // 18
        for name in [Name::Log, Name::Other] {
            self.commit(name, 2);
            self.roll_back(name);
        }
        for name in Name::PINNED {
            self.commit(name, 4);
        }
        for name in [Name::Key, Name::Other] {
            self.lose_two(name);
            self.commit(name, 1);
        }
        self.commit(Name::Plain, 1);
        self.moment(); // 19
                       // Closing brings the logs to the files. What cases begin with is what a killed process leaves.
        self.open.clear();
        self.forge();
        assert_eq!(self.moments.len(), 20);
    }
}

/// What the process of the other instance does.
pub fn make_foreign(place: &Path) {
    pellucid_bundled::register().unwrap();
    std::env::set_var("PELLUCID_ENCRYPT_NEW", "1");
    let name = Name::Foreign;
    let connection = open(&place.join("live").join(name.file()), "vfs=pellucid").unwrap();
    connection.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
    rows::make(&connection, PAGE, name.mode());
    rows::add(&connection, name.file(), 1, ROWS);
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    for n in 1..4 {
        rows::commit(&connection, name.file(), n);
    }
    let mut lines = Vec::new();
    rows::read(&connection, &mut lines).unwrap();
    fs::write(place.join("lines"), lines.join("\n")).unwrap();
    media::foreign(place);
    // Without its end: the log stays.
    std::process::exit(0);
}

/// Opens a database that is there.
pub fn open(path: &Path, parameters: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(format!("file:{}?{parameters}", path.display()), flags)
}
