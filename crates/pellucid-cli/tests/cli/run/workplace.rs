//! A directory with its own keys, the built program and library, and what tests do with them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// First bytes of a plain database.
pub const MAGIC: &[u8] = b"SQLite format 3\0";
const PELLUCID: &str = env!("CARGO_BIN_EXE_pellucid");

/// `libpellucid.so` of this build, beside the program. Never built here: Cargo would put one without the features of the
/// build that is tested in its place.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let path = Path::new(PELLUCID).with_file_name("libpellucid.so");
        assert!(path.exists(), "{} is missing: `cargo build --workspace` makes it", path.display());
        path
    })
}

/// The path of a program that has to be there; `package` says how to get it.
pub fn need(path: &str, package: &str) -> PathBuf {
    assert!(Path::new(path).exists(), "`{path}` is missing: `apt-get install {package}`");
    path.into()
}

/// A temporary directory, with an instance in it.
pub struct Workplace {
    directory: tempfile::TempDir,
}

impl Workplace {
    pub fn new() -> Self {
        library();
        Workplace { directory: tempfile::tempdir().unwrap() }
    }

    /// One with `app.db`, sealed, of one table `t` with the rows 1, 2, 3.
    pub fn with_database() -> Self {
        let place = Self::new();
        let sqlite3 = need("/usr/bin/sqlite3", "sqlite3");
        let rows = "CREATE TABLE t(a INTEGER); INSERT INTO t VALUES (1), (2), (3)";
        assert!(place.command(sqlite3).args(["app.db", rows]).status().unwrap().success());
        let output = place.pellucid(&["encrypt", "app.db"]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert!(place.is_sealed("app.db"));
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn is_sealed(&self, name: &str) -> bool {
        let bytes = std::fs::read(self.path(name)).unwrap();
        assert!(!bytes.is_empty(), "{name} is empty");
        !bytes.starts_with(MAGIC)
    }

    /// Any program, in this directory and with this instance.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.directory.path()).env("PELLUCID_HOME", self.path("instance"));
        for name in ["LD_PRELOAD", "PELLUCID_EXTENSION", "PELLUCID_PRELOAD", "PELLUCID_WITNESS"] {
            command.env_remove(name);
        }
        command
    }

    pub fn pellucid(&self, words: &[&str]) -> Command {
        let mut command = self.command(PELLUCID);
        command.args(words);
        command
    }

    /// `pellucid run OPTIONS -- PROGRAM ARGUMENTS`, to its end.
    pub fn run(&self, options: &[&str], program: &Path, arguments: &[&str]) -> Output {
        let mut command = self.pellucid(&["run"]);
        command.args(options).arg("--").arg(program).args(arguments).output().unwrap()
    }

    /// Compiles `tests/cli/run/c/SOURCE` into `name`.
    pub fn compile(&self, source: &str, name: &str, options: &[&str]) -> PathBuf {
        let gcc = need("/usr/bin/gcc", "gcc libc6-dev");
        need("/usr/include/sqlite3.h", "libsqlite3-dev");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/run/c").join(source);
        let made = self.path(name);
        let output =
            self.command(gcc).arg("-o").arg(&made).arg(source).args(options).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        made
    }
}

/// Everything a program said, for messages.
pub fn text(output: &Output) -> String {
    let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, part(&output.stdout), part(&output.stderr))
}

/// Standard output of a program that has to succeed.
#[track_caller]
pub fn answer(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(output));
    String::from_utf8(output.stdout.clone()).unwrap().trim_end().to_owned()
}
