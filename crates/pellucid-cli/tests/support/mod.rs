//! A private place for each test: a directory with databases, keys and a keyring, and what programs said there.
#![allow(dead_code)] // each test file uses its own part

pub mod plant;
pub mod shapes;
pub mod store;
pub mod token;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use pellucid::hash::Sha256;
use pellucid::header::{Header, COPY_BYTES, COPY_OFFSETS};

/// The program under test.
pub const PELLUCID: &str = env!("CARGO_BIN_EXE_pellucid");

/// A directory that is gone with the test.
pub struct Place(tempfile::TempDir);

/// With PELLUCID_KEEP set, a test that fails leaves its directory and says where.
impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("PELLUCID_KEEP").is_some() {
            self.0.disable_cleanup(true);
            eprintln!("kept: {}", self.0.path().display());
        }
    }
}

/// What a program said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// Of a command that has to succeed.
    pub fn succeeded(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// Both streams.
    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Path, mode and SHA-256 of every file below a directory.
pub type Snapshot = BTreeMap<PathBuf, (u32, [u8; 32])>;

impl Place {
    pub fn new() -> Self {
        Place(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A command in this place, with nothing of the caller's environment.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", "/usr/bin:/bin").env("HOME", self.0.path());
        command.env("PELLUCID_HOME", self.path("keys")).env("LC_ALL", "C.UTF-8");
        command
    }

    pub fn pellucid(&self, arguments: &[&str]) -> Said {
        said(self.command(PELLUCID).args(arguments))
    }

    /// `sqlite3 NAME SQL`, the stock one, without the shim.
    pub fn sqlite3(&self, name: &str, sql: &str) -> Said {
        said(self.command("/usr/bin/sqlite3").args(["-batch", name, sql]))
    }

    /// A plain database with two hundred rows.
    pub fn plain(&self, name: &str) -> PathBuf {
        let sql = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            INSERT INTO t SELECT i, printf('row %d %s', i, hex(zeroblob(60))) FROM n;";
        self.sqlite3(name, sql).succeeded();
        self.path(name)
    }

    /// The instance of this place, if it has none: a copy of the one that [`Instance`] is.
    pub fn instance(&self) {
        if !self.path("keys").exists() {
            Instance::shared().write(&self.path("keys"));
        }
    }

    /// A sealed database with the same rows, in the instance of this place.
    pub fn sealed(&self, name: &str, options: &[&str]) -> PathBuf {
        self.instance();
        self.sealed_anew(name, options)
    }

    /// The same, where `encrypt` makes the instance if there is none.
    pub fn sealed_anew(&self, name: &str, options: &[&str]) -> PathBuf {
        let path = self.plain(name);
        self.pellucid(&[&["encrypt", name], options].concat()).succeeded();
        path
    }

    /// Copies a program here that can be run at once. By another process: what a thread of this one forks meanwhile would have the copy
    /// open for writing, and the system runs no such file (execve(2), ETXTBSY).
    pub fn copy_program(&self, from: &Path, name: &str) {
        said(Command::new("/usr/bin/cp").arg(from).arg(self.path(name))).succeeded();
    }

    /// A script here, as [`write_script`] makes it.
    pub fn script(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_script(&path, text);
    }

    /// A file with `bytes` that nobody else can read.
    pub fn secret(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    }

    /// A library to preload, from a source beside this file.
    pub fn compile_preload(&self, source: &str) -> PathBuf {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support").join(source);
        self.compile_library(&path, &source.replace(".c", ".so"))
    }

    /// A library to preload, from any source.
    pub fn compile_library(&self, source: &Path, name: &str) -> PathBuf {
        let library = self.path(name);
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&library).arg(source);
        said(command.arg("-ldl")).succeeded();
        library
    }

    /// Copies every file and directory to another place.
    pub fn copy_to(&self, other: &Place) {
        let mut command = Command::new("cp");
        command.arg("-a").arg(self.0.path().join(".")).arg(other.0.path());
        said(&mut command).succeeded();
    }

    /// The state of all files here.
    pub fn snapshot(&self) -> Snapshot {
        let mut files = Snapshot::new();
        let mut directories = vec![self.0.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                    continue;
                }
                let mode = path.symlink_metadata().unwrap().permissions().mode();
                let content = match std::fs::read_link(&path) {
                    Ok(target) => target.into_os_string().into_encoded_bytes(),
                    Err(_) => std::fs::read(&path).unwrap(),
                };
                let digest = sha256(&content);
                files.insert(path, (mode, digest));
            }
        }
        files
    }
}

/// A new instance with the certificate that `encrypt` makes, which takes its time: made once for all places of a test program.
struct Instance(Vec<(PathBuf, u32, Vec<u8>)>);

impl Instance {
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Instance> = OnceLock::new();
        SHARED.get_or_init(|| {
            let place = Place::new();
            place.pellucid(&["cert", "create", "pellucid"]).succeeded();
            let keys = place.path("keys");
            let mut files = Vec::new();
            for (path, (mode, _)) in place.snapshot() {
                if let Ok(name) = path.strip_prefix(&keys) {
                    files.push((name.to_owned(), mode, std::fs::read(&path).unwrap()));
                }
            }
            Self(files)
        })
    }

    fn write(&self, keys: &Path) {
        for (name, mode, bytes) in &self.0 {
            let path = keys.join(name);
            let folder = path.parent().unwrap();
            let mut make = std::fs::DirBuilder::new();
            make.recursive(true).mode(0o700).create(folder).unwrap();
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(*mode)).unwrap();
        }
    }
}

/// How many calls further a command is killed the next time: each call has its turn in the campaign `key-kills`, which asks for 1.
pub fn kill_stride() -> u32 {
    let asked = std::env::var("PELLUCID_KILL_STRIDE");
    asked.map_or(4, |stride| stride.parse().expect("a number of calls"))
}

/// Runs a command to its end.
pub fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let code = output.status.code().or(output.status.signal().map(|signal| 128 + signal));
    let said = Said {
        code: code.expect("a status"),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    let words: Vec<_> =
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    if command.get_program() == PELLUCID && words.iter().any(|word| word == "--json") {
        shapes::check(&words, &said.stdout);
    }
    said
}

/// Runs a command with `input` on its standard input.
pub fn said_with(command: &mut Command, input: &str) -> Said {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that has ended without reading it closed the pipe.
    let written = child.stdin.take().unwrap().write_all(input.as_bytes());
    assert!(!written.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe), "not written");
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Writes a script that can be run at once: by another process, as [`Place::copy_program`] does.
pub fn write_script(path: &Path, text: &str) {
    let write = ["-c", "cat >\"$0\" && chmod 755 \"$0\""];
    said_with(Command::new("/bin/sh").args(write).arg(path), text).succeeded();
}

/// What the program says at a terminal where somebody types these lines.
pub fn at_a_terminal(place: &Place, words: &str, answers: &str) -> Said {
    let mut command = place.command("script");
    command.args(["-qec", &format!("{PELLUCID} {words}"), "/dev/null"]);
    said_with(&mut command, &format!("{answers}\n"))
}

pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(bytes);
    hash.finish()
}

/// Changes the file's bytes in place.
pub fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// Changes both header copies and makes their checksums right again (docs/format.md, "Header").
pub fn edit_headers(path: &Path, change: impl Fn(&mut [u8])) {
    edit(path, |bytes| {
        for at in COPY_OFFSETS {
            let copy = &mut bytes[at as usize..at as usize + COPY_BYTES];
            change(copy);
            let sum = sha256(&copy[..COPY_BYTES - 32]);
            copy[COPY_BYTES - 32..].copy_from_slice(&sum);
        }
    });
}

/// The fields of header copy 0.
pub fn header(path: &Path) -> Header {
    let read = || {
        let bytes = std::fs::read(path).unwrap();
        let at = COPY_OFFSETS[0] as usize;
        Header::parse(&bytes[at..at + COPY_BYTES], 0)
    };
    // A scan may be writing it right now.
    for _ in 0..100 {
        if let Ok(header) = read() {
            return header;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    read().unwrap()
}

/// The loadable extension, which Cargo builds beside the program only with the whole workspace.
pub fn extension(place: &Place) -> String {
    let said = place.pellucid(&["extension"]);
    assert_eq!(said.code, 0, "`cargo build --workspace` has to come first: {said:?}");
    said.stdout.trim_end().to_owned()
}

/// The history of an instance, opened past the program: in its file it is sealed.
pub fn history(place: &Place) -> rusqlite::Connection {
    use pellucid_vfs::seal_request::{offer, Offer};
    pellucid_bundled::register().unwrap();
    let keyring = pellucid_keyring::Keyring::open(&place.path("keys")).unwrap();
    offer(Offer::KeyFile(keyring.history_key().unwrap().unwrap()));
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let path = place.path("keys/msdb.db");
    rusqlite::Connection::open_with_flags_and_vfs(path, flags, c"pellucid").unwrap()
}

/// A program that holds something until it is told to end.
pub struct Held(std::process::Child);

impl Held {
    /// Starts it, and waits until it says `ready`.
    pub fn start(command: Command) -> Self {
        Self::start_with(command, "")
    }

    /// The same with something on its standard input, which stays open.
    pub fn start_with(mut command: Command, text: &str) -> Self {
        use std::io::BufRead;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a program that starts");
        child.stdin.as_mut().expect("a pipe").write_all(text.as_bytes()).expect("a reader");
        let output = std::io::BufReader::new(child.stdout.as_mut().expect("a pipe"));
        let is_ready = output.lines().map_while(Result::ok).any(|line| line == "ready");
        assert!(is_ready, "it ended");
        Self(child)
    }

    /// Lets go.
    pub fn end(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("its end");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
