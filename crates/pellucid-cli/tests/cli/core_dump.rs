//! Goal: a core dump of a program over sealed databases has no key in it; of `pellucid` itself there is none.
//!
//! Method: the stock python3 works on a sealed database through the extension. While it lives its memory is searched for
//! every key there is, as the second reader derives them: the keys in use have to be found, so the search works. Then
//! SIGABRT; the kernel's core file is searched for the same keys, for the bytes of a raw key and of a passphrase. The
//! application's own marker has to be in it, so the dump is a whole one.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::support::{extension, said, Place, PELLUCID};

const PASSPHRASE: &str = "passphrase of the core dump test 8c41";
const MARKER: &str = "marker of the application 5f2d";

/// Opens three databases, one for each kind of protector, works on them and waits with the connections open.
const APPLICATION: &str = r#"
import os, resource, sqlite3, sys
resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if len(sys.argv) > 1:
    loader = sqlite3.connect(":memory:")
    loader.enable_load_extension(True)
    loader.load_extension(sys.argv[1])
marker = "marker of the application " + "5f2d"
open_ones = []
for name in ["certificate.db", "passphrase.db?passphrase_file=passphrase", "raw.db?key_file=raw"]:
    joined = "&" if "?" in name else "?"
    db = sqlite3.connect("file:" + name + joined + "vfs=pellucid", uri=True)
    for mode in ["wal", "delete", "wal"]:
        assert db.execute("PRAGMA journal_mode=" + mode).fetchone()[0] == mode
        db.execute("INSERT INTO t(b) SELECT b FROM t")
        db.commit()
        # The shim's own temporary files have keys, too.
        db.execute("PRAGMA temp_store=1")
        db.execute("CREATE TEMP TABLE IF NOT EXISTS x AS SELECT * FROM t ORDER BY b")
    open_ones.append(db)
print("ready", flush=True)
sys.stdin.readline()
os.abort()
"#;

type Keys = Vec<(String, Vec<u8>)>;

fn keys(place: &Place, database: &str) -> Keys {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = place.command("python3");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.arg(root.join("crates/pellucid-cli/tests/support/keys.py"));
    command.arg(root.join("python/reader")).arg(database).arg(place.path("keys"));
    let listed = said(&mut command).succeeded();
    let key = |line: &str| {
        let (name, hex) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), unhex(hex))
    };
    listed.lines().map(key).collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The names of the keys that lie somewhere in `bytes`.
fn among<'a>(keys: &'a Keys, bytes: &[u8]) -> Vec<&'a str> {
    let found = keys.iter().filter(|(_, key)| memchr::memmem::find(bytes, key).is_some());
    found.map(|(name, _)| name.as_str()).collect()
}

/// All of a process's memory that can be read.
pub fn memory(process: u32) -> Vec<u8> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let mut file = File::open(format!("/proc/{process}/mem")).unwrap();
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let bounds = [start, end].map(|hex| u64::from_str_radix(hex, 16).unwrap());
        file.seek(SeekFrom::Start(bounds[0])).unwrap();
        // A part may be gone a moment later.
        let _ = file.by_ref().take(bounds[1] - bounds[0]).read_to_end(&mut all);
    }
    all
}

/// The core file that the kernel writes into the working directory; where a program takes dumps, the test cannot look.
fn core_file(place: &Place, process: u32) -> PathBuf {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    assert!(
        !pattern.starts_with(['|', '/']),
        "this machine gives core dumps to `{}`; `sysctl kernel.core_pattern=core` lets this test see one",
        pattern.trim_end()
    );
    let numbered = place.path(&format!("core.{process}"));
    match numbered.exists() {
        true => numbered,
        false => place.path("core"),
    }
}

fn place() -> Place {
    place_under("AES_256")
}

fn place_under(algorithm: &str) -> Place {
    let place = Place::new();
    place.secret("passphrase", PASSPHRASE.as_bytes());
    place.secret("raw", &(100..132u8).rev().collect::<Vec<_>>());
    place.sealed("certificate.db", &["--algorithm", algorithm]);
    place.sealed("passphrase.db", &["--passphrase-file", "passphrase", "--algorithm", algorithm]);
    place.sealed("raw.db", &["--key-file", "raw", "--algorithm", algorithm]);
    place
}

fn start(place: &Place, words: &[&str]) -> Child {
    let mut command = place.command(words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.process_group(0).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

/// The process that runs python3: the child itself, or the one it supervises.
fn python(child: &Child) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let children = std::fs::read_to_string(children).unwrap();
    children.split_whitespace().next().map_or(child.id(), |pid| pid.parse().unwrap())
}

#[track_caller]
fn no_key_in_the_dump(place: &Place, words: &[&str]) {
    let mut secrets = keys(place, "certificate.db");
    let in_use = secrets.len();
    secrets.push(("passphrase".into(), PASSPHRASE.as_bytes().to_vec()));
    secrets.push(("raw key".into(), (100..132u8).rev().collect()));
    assert_eq!(in_use, 2 + 6 + 2 + 3, "{:?}", secrets.iter().map(|(n, _)| n).collect::<Vec<_>>());

    let mut child = start(place, words);
    let process = python(&child);
    let alive = memory(process);
    let found = among(&secrets, &alive);
    for key in ["generation key 1 of the database", "generation key 1 of the wal"] {
        assert!(found.contains(&key), "the search does not find a key in use: {found:?}");
    }
    drop(child.stdin.take());
    child.wait().unwrap();

    let dump = std::fs::read(core_file(place, process)).unwrap();
    assert!(memchr::memmem::find(&dump, MARKER.as_bytes()).is_some(), "{} bytes", dump.len());
    assert_eq!(among(&secrets, &dump), Vec::<&str>::new());
}

#[test]
fn no_key_is_in_the_dump_of_a_program_that_loads_the_extension() {
    let place = place();
    std::fs::write(place.path("application.py"), APPLICATION).unwrap();
    let extension = extension(&place);
    no_key_in_the_dump(&place, &["/usr/bin/python3", "application.py", &extension]);
}

/// Whose cipher works with the key itself at each call, on the program's stack.
#[test]
fn no_key_is_in_the_dump_of_a_program_over_databases_under_aegis() {
    let place = place_under("AEGIS_256");
    std::fs::write(place.path("application.py"), APPLICATION).unwrap();
    let extension = extension(&place);
    no_key_in_the_dump(&place, &["/usr/bin/python3", "application.py", &extension]);
}

#[test]
fn no_key_is_in_the_dump_of_a_program_under_run() {
    let place = place();
    std::fs::write(place.path("application.py"), APPLICATION).unwrap();
    no_key_in_the_dump(&place, &[PELLUCID, "run", "--", "/usr/bin/python3", "application.py"]);
}

/// Killed with SIGABRT while it asks for a password: no dump, whatever the limit.
#[test]
fn the_program_itself_leaves_no_dump() {
    let place = place();
    // It waits for its password within some milliseconds: on a busy machine, within two seconds.
    let script =
        "ulimit -c unlimited; \"$0\" cert export pellucid --cert-file a.pem --key-file a.key \
                  --password-file <(exec sleep 60 2>&-) & \
                  child=$!; sleep 2; kill -ABRT $child; wait $child; echo $?";
    let mut command = place.command("/bin/bash");
    command.env("PATH", "/usr/bin:/bin").args(["-c", script, PELLUCID]);
    let told = said(&mut command);
    assert!(told.stdout.contains("134"), "{told:?}");
    assert!(!told.all().contains("core dumped"), "{told:?}");
    let names: Vec<_> = std::fs::read_dir(place.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().starts_with("core"))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}
