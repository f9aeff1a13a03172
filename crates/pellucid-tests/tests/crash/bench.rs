//! Where the tests work: directories in memory, the key, and the shim registered over the Unix VFS.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once};

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
            memory::install();
            pellucid_bundled::register().unwrap();
        });
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
        Self { directory, _one: one }
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
        match scenario.theme {
            Theme::Generations => std::env::set_var("PELLUCID_GENERATION_WRITES", "48"),
            _ => std::env::remove_var("PELLUCID_GENERATION_WRITES"),
        }
    }

    /// Lays an image there, and nothing else.
    pub fn lay(&self, image: &Image) -> PathBuf {
        let path = self.place();
        for entry in fs::read_dir(&path).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (name, content) in &image.files {
            fs::write(path.join(name), content).unwrap();
        }
        path
    }
}
