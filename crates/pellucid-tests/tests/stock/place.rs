//! The built extension, a stock `sqlite3`, a place to work in.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::built::built;
use crate::random::Random;

/// The environment that would change what the shim does; tests set what they need.
const SWITCHES: [&str; 7] = [
    "PELLUCID_LOG",
    "PELLUCID_ENCRYPT_NEW",
    "PELLUCID_KEY_FILE",
    "PELLUCID_PASSPHRASE_FILE",
    "PELLUCID_REQUIRE",
    "PELLUCID_PLAIN_COPIES",
    "LD_PRELOAD",
];

/// `libpellucid.so` as it was built with this test.
pub fn extension() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("libpellucid.so"))
}

/// A folder of its own with a key file in it.
#[derive(Debug)]
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        use std::os::unix::fs::OpenOptionsExt;
        let mut builder = tempfile::Builder::new();
        builder.prefix("pellucid-test-");
        // In memory where there is such a place: these tests sync by the thousand.
        let folder = match builder.tempdir_in("/dev/shm") {
            Ok(folder) if std::env::var_os("TMPDIR").is_none() => folder,
            _ => builder.tempdir().unwrap(),
        };
        let mut options = std::fs::OpenOptions::new();
        let key = options.write(true).create_new(true).mode(0o600).open(folder.path().join("key"));
        let mut random = Random(7);
        let bytes: Vec<u8> = (0..32).map(|_| random.draw() as u8).collect();
        key.unwrap().write_all(&bytes).unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn key(&self) -> PathBuf {
        self.path("key")
    }

    /// The names of all files, without the key.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false if path == self.key() => {}
                    false => found.push(path),
                }
            }
        }
        found.sort();
        found
    }

    /// Stock `sqlite3` in this place, without the shim.
    pub fn stock(&self) -> Command {
        let mut command = Command::new("sqlite3");
        command.current_dir(self.folder.path()).env("SQLITE_TMPDIR", self.path("tmp"));
        for name in SWITCHES {
            command.env_remove(name);
        }
        command
    }

    /// Stock `sqlite3` with the shim loaded; new databases are sealed with this place's key.
    pub fn shimmed(&self) -> Command {
        let mut command = self.stock();
        command.arg("-cmd").arg(format!(".load {}", extension().display()));
        self.sealing(&mut command);
        command
    }

    pub fn sealing(&self, command: &mut Command) {
        command
            .env("PELLUCID_KEY_FILE", self.key())
            .env("PELLUCID_ENCRYPT_NEW", "1")
            .env("PELLUCID_LOG", "stderr");
    }
}

/// Runs `command` with `input` on standard input and waits.
pub fn feed(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sqlite3 is installed (Debian: apt install sqlite3)");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A program that was killed on purpose leaves its input unread.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Compiles a shared library out of `tests/tools`.
pub fn compile(place: &Place, name: &str) -> PathBuf {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(format!("{name}.c"));
    let library = place.path("tmp").join(format!("{name}.so"));
    let compiled = Command::new("gcc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status()
        .expect("gcc is installed");
    assert!(compiled.success(), "{name}.c: needs sqlite3ext.h (Debian: libsqlite3-dev)");
    library
}
