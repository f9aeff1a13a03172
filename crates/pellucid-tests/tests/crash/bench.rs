//! Where the tests work: directories in memory, the key, and the shim registered over the Unix VFS.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, OnceLock};

use crate::disk::Image;
use crate::limits::limit_files;
use crate::memory;
use crate::scenario::{Scenario, Theme};
use crate::work::KEY;

/// One at a time: faults and the record belong to the process.
static ONE: Mutex<()> = Mutex::new(());

const MOST_FILE_BYTES: u64 = 64 << 20;

pub struct Bench {
    directory: tempfile::TempDir,
    /// Of new databases, where the theme leaves it open.
    format: Option<OsString>,
    _one: MutexGuard<'static, ()>,
}

impl Bench {
    pub fn new() -> Self {
        let one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        static READY: Once = Once::new();
        READY.call_once(|| {
            limit_files(MOST_FILE_BYTES);
            // What stays in memory meets no power cut and no failing call.
            std::env::set_var("PELLUCID_TEMP_MEMORY", "0");
            // Some commits fit into the log, and then it is kept and begins anew.
            std::env::set_var("PELLUCID_LOG_LIMIT", "12000");
            memory::install();
            pellucid_bundled::register().unwrap();
        });
        static FORMAT: OnceLock<Option<OsString>> = OnceLock::new();
        let format = FORMAT.get_or_init(|| std::env::var_os("PELLUCID_FORMAT")).clone();
        let directory = tempfile::Builder::new()
            .prefix("pellucid-crash")
            .tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let key = directory.path().join("key");
        fs::write(&key, KEY).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        std::env::set_var("PELLUCID_KEY_FILE", &key);
        // No instance: nothing here needs one.
        std::env::set_var("PELLUCID_HOME", directory.path().join("nowhere"));
        Self { directory, format, _one: one }
    }

    /// Where databases lie: always the same place, because a journal can name files by their whole paths.
    fn place(&self) -> PathBuf {
        self.directory.path().join("db")
    }

    /// That place, empty.
    pub fn fresh(&self) -> PathBuf {
        let path = self.place();
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        std::env::set_var("SQLITE_TMPDIR", &path);
        path
    }

    /// What a scenario needs of the environment.
    pub fn settle(&self, scenario: &Scenario) {
        match (scenario.theme, &self.format) {
            (Theme::LogChain, _) => std::env::set_var("PELLUCID_FORMAT", "2"),
            (_, Some(format)) => std::env::set_var("PELLUCID_FORMAT", format),
            (_, None) => std::env::remove_var("PELLUCID_FORMAT"),
        }
        match scenario.theme {
            Theme::Generations => std::env::set_var("PELLUCID_GENERATION_WRITES", "48"),
            _ => std::env::remove_var("PELLUCID_GENERATION_WRITES"),
        }
    }

    /// Lays an image there, and nothing else.
    pub fn lay(&self, image: &Image) -> PathBuf {
        let path = self.place();
        for entry in fs::read_dir(&path).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => fs::remove_dir_all(entry.path()).unwrap(),
                false => fs::remove_file(entry.path()).unwrap(),
            }
        }
        for name in &image.folders {
            fs::create_dir(path.join(name)).unwrap();
        }
        for (name, content) in &image.files {
            fs::write(path.join(name), content).unwrap();
        }
        path
    }
}
