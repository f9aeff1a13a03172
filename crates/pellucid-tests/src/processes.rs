//! What the crash tests share: the built extension, databases plain and sealed, children that die at
//! a chosen system call, and tables whose every row proves itself.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use rusqlite::{Connection, OpenFlags};

pub mod built;
pub mod footprint;
pub mod rows;

pub use crate::random::Random;
pub use built::built;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The extension the tests load; children may be given another.
pub fn extension() -> PathBuf {
    match std::env::var_os("CRASH_EXTENSION") {
        Some(path) => path.into(),
        None => built("libpellucid.so"),
    }
}

/// Keeps this process and its children from the instance of whoever runs the tests, which would expect databases at their
/// paths and record what is done to them. A test that has an instance of its own keeps it.
pub fn leave_instance_alone() {
    static LEFT: OnceLock<()> = OnceLock::new();
    LEFT.get_or_init(|| {
        if std::env::var_os("PELLUCID_HOME").is_none() {
            std::env::set_var("PELLUCID_HOME", tools().join("no instance"));
        }
    });
}

/// Loads the extension into this process's SQLite; it stays, and its VFS is the default.
pub fn load_extension() {
    static LOADED: OnceLock<()> = OnceLock::new();
    LOADED.get_or_init(|| {
        leave_instance_alone();
        let connection = Connection::open_in_memory().unwrap();
        // SAFETY: the library is this repository's own, built for the tests.
        unsafe {
            connection.load_extension_enable().unwrap();
            connection.load_extension(extension(), None::<&str>).unwrap();
        }
    });
}

/// Which VFS a test works over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The Unix VFS.
    Plain,
    /// The shim.
    Sealed,
}

impl Over {
    /// Each of them.
    pub const BOTH: [Self; 2] = [Self::Plain, Self::Sealed];

    /// What it is called in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Sealed => "sealed",
        }
    }

    /// By that name.
    pub fn parse(name: &str) -> Self {
        match name {
            "plain" => Self::Plain,
            "sealed" => Self::Sealed,
            other => panic!("neither plain nor sealed: {other}"),
        }
    }

    /// Opens, and creates; the key lies beside the database.
    pub fn open(self, database: &Path) -> Connection {
        self.try_open(database).unwrap()
    }

    /// The same, or SQLite's error.
    pub fn try_open(self, database: &Path) -> rusqlite::Result<Connection> {
        load_extension();
        let key = key_beside(database);
        let uri = match self {
            Self::Plain => format!("file:{}?vfs=unix", database.display()),
            Self::Sealed => {
                format!("file:{}?vfs=pellucid&key_file={}", database.display(), key.display())
            }
        };
        let connection = Connection::open_with_flags(
            uri,
            OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_URI
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        connection.busy_timeout(std::time::Duration::from_secs(300))?;
        Ok(connection)
    }
}

/// The key file of a database, made on first use. It lies in the directory above, so that the
/// database's directory holds SQLite's files only.
pub fn key_beside(database: &Path) -> PathBuf {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let key = database.parent().unwrap().parent().unwrap().join("crash.key");
    if !key.exists() {
        let fresh = key.with_extension(format!("{}.new", std::process::id()));
        let options = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh);
        let bytes = std::array::from_fn::<u8, 32, _>(|n| n as u8 ^ 0x5a);
        options.unwrap().write_all(&bytes).unwrap();
        // Whole for whoever looks; a thread that was faster wrote the same.
        let _ = std::fs::rename(&fresh, &key);
    }
    key
}

/// A directory in memory if there is one: what is tested is kill -9, not the disk.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() {
        tempfile::Builder::new().prefix("pellucid-crash").tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    made.unwrap()
}

/// Where the tools and the key of [`key_in_environment`] lie.
fn tools() -> PathBuf {
    built("libpellucid.so").with_file_name("crash-tools")
}

/// Compiles a preload library from tests/tools, unless it is there already.
pub fn preload(source: &str) -> PathBuf {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE_AT_A_TIME.lock();
    let source = root().join("tests/tools").join(source);
    let library = tools().join(source.file_name().unwrap()).with_extension("so");
    let changed = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    if changed(&library) > changed(&source) {
        return library;
    }
    std::fs::create_dir_all(tools()).unwrap();
    // Other test processes may be at it; the rename makes it whole for all.
    let fresh = library.with_extension(format!("{}.new", std::process::id()));
    let compiled = Command::new("gcc")
        .args(["-O2", "-Wall", "-shared", "-fPIC", "-o"])
        .args([&fresh, &source])
        .arg("-ldl")
        .status()
        .expect("gcc is needed to build tests/tools");
    assert!(compiled.success(), "gcc failed on {}", source.display());
    std::fs::rename(&fresh, &library).unwrap();
    library
}

/// Lets every database opened from now on find the key of [`key_beside`], which is always the same.
pub fn key_in_environment() {
    static SET: OnceLock<()> = OnceLock::new();
    leave_instance_alone();
    SET.get_or_init(|| {
        let beside = tools().join("keys/x.db");
        std::fs::create_dir_all(beside.parent().unwrap()).unwrap();
        std::env::set_var("PELLUCID_KEY_FILE", key_beside(&beside));
    });
}

/// This test binary again, in the role of a child: it runs `child_entry`, which does what `CRASH_ROLE`
/// says.
pub fn child(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child_entry", "--nocapture", "--test-threads=1"])
        .env("CRASH_ROLE", role)
        .stdin(Stdio::null());
    command
}

/// What a child was told; none in the parent.
pub fn role() -> Option<String> {
    std::env::var("CRASH_ROLE").ok()
}

/// An argument of a child.
pub fn told(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Runs under killat; with `at` the child dies before that call, or with `torn` other than 0 in the
/// middle of it, having written whole units of so many bytes.
pub fn run_counted(mut command: Command, dir: &Path, at: Option<u64>, torn: u32) -> Ended {
    let count = dir.parent().unwrap().join("calls");
    let _ = std::fs::remove_file(&count);
    command
        .env("LD_PRELOAD", preload("killat.c"))
        .env("KILL_DIR", dir.join(""))
        .env("KILL_COUNT_FILE", &count);
    if let Some(at) = at {
        command.env("KILL_AT", at.to_string());
    }
    if torn > 0 {
        command.env("KILL_TORN", torn.to_string());
    }
    let output = command.output().unwrap();
    let calls = std::fs::read_to_string(&count).ok().and_then(|text| text.trim().parse().ok());
    let killed =
        std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(libc::SIGKILL);
    Ended { output, calls, killed }
}

/// How a counted child ended.
#[derive(Debug)]
pub struct Ended {
    pub output: Output,
    /// Its calls, if it lived to tell.
    pub calls: Option<u64>,
    pub killed: bool,
}

impl Ended {
    /// The calls of a child that was not killed and did its work.
    pub fn whole(&self) -> u64 {
        assert!(
            self.output.status.success(),
            "the child failed: {}{}",
            String::from_utf8_lossy(&self.output.stdout),
            String::from_utf8_lossy(&self.output.stderr)
        );
        self.calls.expect("the child told no count: is killat loaded?")
    }
}

/// Copies SQLite's files of one directory into another that is emptied first.
pub fn copy_files(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    // The files of another moment: a keyring beside them would expect the last ones.
    let _ = std::fs::remove_dir_all(to.with_file_name("home").join("keyring/paths"));
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A number from the environment.
pub fn number<T: std::str::FromStr>(name: impl AsRef<OsStr>, otherwise: T) -> T {
    std::env::var(name.as_ref()).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
