//! Goal: a database and its backups under a key that never leaves a token are as those under a certificate, and open nowhere without it.
//!
//! Method: SoftHSM's token and the plugin as it is shipped; the commands that the tests of certificates run.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::token::{command, open_at_once, pellucid, shell, Token};
use crate::support::{extension, said, Place, Said};

fn words(place: &Place, words: &str) -> Said {
    pellucid(place, &words.split(' ').collect::<Vec<_>>())
}

fn create(place: &Place, name: &str, key: &str, more: &[&str]) -> Said {
    let mut all = vec!["cert", "create", name, "--plugin", "pkcs11", "--key", key];
    all.extend(more);
    pellucid(place, &all)
}

/// What databases and backups under a certificate go through, under the one of this name. Whatever it, or the service master key above
/// it, lies in has to be there.
pub fn matrix(place: &Place, name: &str) {
    let run = |text: &str| words(place, text).succeeded();
    let reads = |database: &str| {
        assert_eq!(rows(place, database).stdout.trim(), "200", "{database} under {name}");
    };
    place.plain("matrix.db");
    run(&format!("encrypt matrix.db --certificate {name}"));
    reads("matrix.db");
    run(&format!("backup matrix.db --to matrix.bak --certificate {name}"));
    run(&format!("backup matrix.db --to matrix.bak --append --certificate {name} --differential"));
    run("verify matrix.bak");
    run("restore matrix.bak --to matrix-again.db");
    reads("matrix-again.db");
    run("rekey matrix.db");
    run("--yes rekey matrix-again.db --new-id");
    run("cert create beside");
    run("protector add matrix.db --certificate beside");
    run("protector drop matrix.db --number 1");
    reads("matrix.db");
    run(&format!("rewrap matrix.db --certificate {name}"));
    run("decrypt matrix.db --keep-container");
    run("encrypt matrix.db");
    run("check matrix.db");
    run("check matrix-again.db");
    reads("matrix.db");
    run("decrypt matrix.db");
    run("cert drop beside --force");
}

/// What a program's SQLite reads of the database's table.
fn rows(place: &Place, database: &str) -> Said {
    said(&mut shell(place, &[&format!(".open {database}"), "SELECT count(*) FROM t"]))
}

#[test]
fn a_key_of_a_token_does_what_a_certificate_does() {
    let place = Place::new();
    let Some(token) = Token::make(&place) else { return };
    place.secret("password", b"a Pa55word of some length");
    let told = create(&place, "hsm", &token.key("tde"), &["--new-key"]).succeeded();
    assert!(told.contains("in provider `pkcs11`, key `pkcs11:token=T;object=tde"), "{told}");
    place.plain("app.db");
    words(&place, "encrypt app.db --certificate hsm").succeeded();
    assert_eq!(rows(&place, "app.db").stdout.trim(), "200");
    let header = std::fs::read(place.path("app.db")).unwrap();
    assert!(header[..8192].windows(6).any(|part| part == b"pkcs11"), "a provider key's protector");
    for told in
        [words(&place, "status app.db"), words(&place, "cert show hsm"), words(&place, "cert list")]
    {
        assert!(told.succeeded().contains("hsm"));
    }
    // Nobody asks for a backup of what cannot be had.
    let told = words(&place, "doctor");
    assert!(!told.all().contains("has not been backed up"), "{told:?}");
    let told = words(
        &place,
        "cert export hsm --cert-file hsm.pem --key-file hsm.key --password-file password",
    );
    assert!(told.code != 0 && told.stderr.contains("which it never leaves"), "{told:?}");
    assert!(!place.path("hsm.key").exists() && !place.path("hsm.pem").exists());

    words(&place, "backup app.db --to app.bak --certificate hsm").succeeded();
    words(&place, "verify app.bak").succeeded();
    words(&place, "restore app.bak --to again.db").succeeded();
    assert_eq!(rows(&place, "again.db").stdout.trim(), "200");
    words(&place, "rekey app.db").succeeded();
    words(&place, "check app.db").succeeded();
    // To a certificate, and to another key of the token.
    words(&place, "cert create soft").succeeded();
    words(&place, "rewrap app.db --certificate soft").succeeded();
    token.pkcs11("--keypairgen --key-type RSA:4096 --label other");
    create(&place, "other", &token.key("other"), &[]).succeeded();
    words(&place, "rewrap app.db --certificate other").succeeded();
    assert_eq!(rows(&place, "app.db").stdout.trim(), "200");

    matrix(&place, "hsm");

    // Another instance with the same token.
    words(&place, "instance export --to all.pellucid --password-file password").succeeded();
    let elsewhere = |words: &str| {
        let mut pellucid = command(&place);
        pellucid.env("PELLUCID_HOME", place.path("elsewhere"));
        said(pellucid.args(words.split(' ')))
    };
    elsewhere("instance import all.pellucid --password-file password").succeeded();
    elsewhere("check app.db").succeeded();
    elsewhere("verify app.bak").succeeded();

    // Without the token nothing opens, and it is said who must act; a passphrase beside it still does.
    std::fs::rename(place.path("tokens"), place.path("out")).unwrap();
    std::fs::create_dir(place.path("tokens")).unwrap();
    for one in ["check app.db", "restore app.bak --to other.db", "backup app.db --to other.bak"] {
        let told = words(&place, one);
        assert!(
            told.code != 0 && told.stderr.contains("no token in any slot fits the key"),
            "{one}: {told:?}"
        );
    }
    assert_eq!(rows(&place, "app.db").stdout.trim(), "");
}

#[test]
fn a_key_that_cannot_be_told_from_another_one_is_refused() {
    let place = Place::new();
    let Some(token) = Token::make(&place) else { return };
    for _ in 0..2 {
        token.pkcs11("--keypairgen --key-type RSA:2048 --label twice");
    }
    let told = create(&place, "hsm", &token.key("twice"), &[]);
    assert!(told.code != 0 && told.stderr.contains("twice"), "{told:?}");
    let told = create(&place, "hsm", &token.key("nothing"), &[]);
    assert!(told.code != 0, "{told:?}");
    assert!(!words(&place, "cert list").all().contains("hsm"));
    // And one that is there is not made again under its name.
    create(&place, "hsm", &token.key("new"), &["--new-key"]).succeeded();
    assert_ne!(create(&place, "second", &token.key("new"), &["--new-key"]).code, 0);
}

#[test]
fn many_processes_open_at_once() {
    let place = Place::new();
    let Some(token) = Token::make(&place) else { return };
    create(&place, "hsm", &token.key("tde"), &["--new-key"]).succeeded();
    place.plain("app.db");
    words(&place, "encrypt app.db --certificate hsm").succeeded();
    open_at_once(&place, 25);
}

/// A private key that the test knows is imported into the token. Neither a program that has the database open, nor its core, nor any file
/// beside the token has it.
#[test]
fn the_private_key_is_in_no_process_and_no_file_but_the_tokens() {
    let place = Place::new();
    let Some(token) = Token::make(&place) else { return };
    let tool = |text: &str| {
        let mut words = text.split(' ');
        said(place.command(words.next().unwrap()).args(words)).succeeded()
    };
    tool("openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out known.pem");
    token.tool(&format!(
        "softhsm2-util --import {} --token T --label known --id 0b --pin PIN",
        place.path("known.pem").display()
    ));
    let text = tool("openssl pkey -in known.pem -noout -text");
    std::fs::remove_file(place.path("known.pem")).unwrap();
    let parts = ["privateExponent", "prime1", "prime2", "exponent1", "exponent2", "coefficient"];
    let secrets: Vec<(String, Vec<u8>)> = parts
        .iter()
        .flat_map(|part| {
            let lines = text.lines().skip_while(|line| !line.starts_with(part)).skip(1);
            let digits: String = lines.take_while(|line| line.starts_with(' ')).collect();
            let pairs = digits.split([':', ' ']).filter(|pair| !pair.is_empty());
            let bytes: Vec<u8> = pairs
                .map(|pair| u8::from_str_radix(pair, 16).unwrap())
                .skip_while(|b| *b == 0)
                .collect();
            assert!(bytes.len() > 100, "{part}");
            // As it is written, and as numbers lie in memory; a part is enough.
            let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
            [bytes, reversed].map(|bytes| ((*part).to_owned(), bytes[..32].to_vec()))
        })
        .collect();
    create(&place, "hsm", &token.key("known"), &[]).succeeded();
    place.plain("app.db");
    words(&place, "encrypt app.db --certificate hsm").succeeded();
    words(&place, "backup app.db --to app.bak --certificate hsm").succeeded();
    let code = r#"
import resource, sqlite3, sys
resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
loader = sqlite3.connect(":memory:")
loader.enable_load_extension(True)
loader.load_extension(sys.argv[1])
db = sqlite3.connect("file:app.db?vfs=pellucid", uri=True)
assert db.execute("SELECT count(*) FROM t").fetchone() == (200,)
print("ready", flush=True)
sys.stdin.readline()
"#;
    let mut program = place.command("/usr/bin/python3");
    program.env("PELLUCID_PLUGIN_PATH", place.path("plugins"));
    program.args(["-c", code, &extension(&place)]).stdin(Stdio::piped());
    let mut held = program.stdout(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(held.stdout.as_mut().unwrap()).read_line(&mut told).unwrap();
    assert_eq!(told, "ready\n");
    let found = |bytes: &[u8], of: &str| {
        for (part, secret) in &secrets {
            assert!(memchr::memmem::find(bytes, secret).is_none(), "{part} in {of}");
        }
    };
    let memory = crate::core_dump::memory(held.id());
    assert!(memory.len() > 1 << 20);
    found(&memory, "the program");
    let pid = rustix::process::Pid::from_child(&held);
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
    held.wait().unwrap();
    for (path, _) in place.snapshot() {
        if !path.starts_with(place.path("tokens")) {
            found(&std::fs::read(&path).unwrap_or_default(), &path.display().to_string());
        }
    }
}

/// Threads that open and children that are made in the middle of it: a plugin is a process of its own, so nobody has another one's token.
#[test]
fn a_fork_in_the_middle_harms_neither_side() {
    const MANY: usize = 6;
    let place = Place::new();
    let Some(token) = Token::make(&place) else { return };
    create(&place, "hsm", &token.key("tde"), &["--new-key"]).succeeded();
    for number in 0..MANY {
        place.plain(&format!("{number}.db"));
        words(&place, &format!("encrypt {number}.db --certificate hsm")).succeeded();
    }
    let code = format!(
        r#"
import os, sqlite3, sys, threading, time
loader = sqlite3.connect(":memory:")
loader.enable_load_extension(True)
loader.load_extension(sys.argv[1])
def rows():
    opened = [sqlite3.connect("file:%d.db?vfs=pellucid" % n, uri=True, timeout=60) for n in range({MANY})]
    return sum(db.execute("SELECT count(*) FROM t").fetchone()[0] for db in opened)
found = []
thread = threading.Thread(target=lambda: found.append(rows()))
thread.start()
children = []
for _ in range(4):
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        # A child that hangs is ended, and has failed.
        import signal
        signal.alarm(120)
        os._exit(0 if rows() == {MANY} * 200 else 1)
    children.append(child)
ended = [os.waitpid(child, 0)[1] for child in children]
thread.join()
print(found, ended)
"#
    );
    let mut python = place.command("/usr/bin/python3");
    python.env("PELLUCID_PLUGIN_PATH", place.path("plugins"));
    let told = said(python.args(["-c", &code, &extension(&place)]));
    assert_eq!(told.stdout.trim(), format!("[{}] [0, 0, 0, 0]", MANY * 200), "{told:?}");
}

#[test]
fn a_locked_pin_is_the_security_officers_to_set() {
    let place = Place::new();
    let Some(token) = Token::make(&place) else { return };
    create(&place, "hsm", &token.key("tde"), &["--new-key"]).succeeded();
    place.plain("app.db");
    words(&place, "encrypt app.db --certificate hsm").succeeded();
    let source =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/locked_pin.c");
    let module = place.compile_library(&source, "locked.so");
    let open = std::fs::read_to_string(place.path("plugins/pkcs11.conf")).unwrap();
    let locked = format!(
        "{}\nenvironment = PELLUCID_TEST_MODULE={}\n",
        open.replace(token.module(), module.to_str().unwrap()),
        token.module()
    );
    std::fs::write(place.path("plugins/pkcs11.conf"), locked).unwrap();
    for one in ["check app.db", "backup app.db --to app.bak", "rekey app.db"] {
        let told = words(&place, one);
        assert!(told.code != 0 && told.stderr.contains("PIN is locked"), "{one}: {told:?}");
    }
    std::fs::write(place.path("plugins/pkcs11.conf"), open).unwrap();
    words(&place, "check app.db").succeeded();
}
