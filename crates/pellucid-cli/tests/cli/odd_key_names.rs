//! Goal: files of keys, passphrases, certificates, backups of master keys, bundles and scripts may have every name that a file
//! can have; a certificate's own name is refused for what it is.
//!
//! Method: the names of `odd_names.rs` times the commands that make such a file and those that read it, on one instance. A name
//! is refused only if it is too long for the file that is made beside it. Passwords take their time, so that a run has a name
//! of each kind; PELLUCID_ALL_NAMES=1 has all.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::odd_names::names;
use crate::support::{said, Place, PELLUCID};

/// Folders for the files of each kind.
const FOLDERS: [&str; 6] = ["word", "cert", "private", "master", "bundle", "script"];

/// A name of each kind.
const KINDS: [&[u8]; 6] = [b"caf\xe9.db", b"new\nline", b"-dash", b"--to", b"q'uote", b"file:x.db"];

/// In this order for each name; `@` stands for it, `#` for its number.
const USES: [&str; 13] = [
    "encrypt #.db --key-file=@",
    "check #.db --key-file=@",
    "rewrap #.db --key-file=@ --new-passphrase-file=word/@",
    "check #.db --passphrase-file=word/@",
    "backup #.db --to #.bak --passphrase-file=word/@",
    "verify --open #.bak --passphrase-file=word/@",
    "cert export pellucid --cert-file=cert/@ --key-file=private/@ --password-file=word/@",
    "cert import pellucid --cert-file=cert/@ --key-file=private/@ --password-file=word/@",
    "key backup service --file=master/@ --password-file=word/@",
    "key restore service --file=master/@ --password-file=word/@",
    "instance export --to=bundle/@ --password-file=word/@",
    "instance import bundle/@ --password-file=word/@",
    "sql -i script/@ -o script/@.out",
];

fn secret(folder: &Path, name: &OsStr, bytes: &[u8]) {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

/// A word of a use, with the name in the place of its `@`.
fn word(word: &str, name: &OsStr, number: usize) -> OsString {
    let word = word.replace('#', &number.to_string());
    let mut parts = word.split('@');
    let mut made = OsString::from(parts.next().unwrap());
    for part in parts {
        made.push(name);
        made.push(part);
    }
    made
}

#[test]
fn every_name_of_a_file_with_keys_works_or_is_too_long() {
    let place = Place::new();
    place.pellucid(&["cert", "create", "pellucid"]).succeeded();
    for folder in FOLDERS {
        std::fs::create_dir(place.path(folder)).unwrap();
    }
    let all = std::env::var_os("PELLUCID_ALL_NAMES").is_some();
    let is_tried = |name: &Vec<u8>| {
        let is_long = [200, 239, 255].contains(&name.len()) && name[0] == b'x';
        all || is_long || KINDS.contains(&&name[..])
    };
    let (mut worked, mut refused) = (0, 0);
    for (number, name) in names().into_iter().filter(is_tried).enumerate() {
        let (name, bytes) = (OsStr::from_bytes(&name), name.len());
        secret(&place.path("."), name, &[b'k'; 32]);
        secret(&place.path("word"), name, b"a long enough passphrase");
        std::fs::write(place.path("script").join(name), "SELECT 1 AS one;\n").unwrap();
        place.plain(&format!("{number}.db"));
        for line in USES {
            // What has not been made, because its name is too long, cannot be read.
            let reads =
                [("cert import", "cert"), ("key restore", "master"), ("instance import", "bundle")];
            let read = reads.iter().find(|(start, _)| line.starts_with(start));
            if read.is_some_and(|(_, folder)| !place.path(folder).join(name).exists()) {
                assert!(bytes > 230, "{name:?}: {line}: nothing was made");
                continue;
            }
            let words = line.split(' ').map(|one| word(one, name, number));
            let told = said(place.command(PELLUCID).arg("--quiet").arg("--yes").args(words));
            let what = format!("{name:?}, {bytes} bytes, {line}: {told:?}");
            // It is read, and the keyring has it.
            let is_there = line.starts_with("cert import") && told.stderr.contains("15232");
            // As `sqlcmd` has it, a comma stands between files.
            let is_two = line.starts_with("sql") && name == "a,b";
            if told.code == 0 || is_there || is_two {
                worked += 1;
                continue;
            }
            refused += 1;
            assert!(told.code == 1 && bytes > 230 && told.stderr.contains("too long"), "{what}");
        }
    }
    println!("{worked} uses of names worked, {refused} were refused");
    assert!(worked > 100 && refused > 0);
}

#[test]
fn a_certificate_has_a_name_that_is_told() {
    let place = Place::new();
    place.pellucid(&["init"]).succeeded();
    let before = place.pellucid(&["--json", "cert", "list"]).succeeded();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    for name in names().into_iter().filter(|name| !name.iter().all(is_plain) || name.len() > 128) {
        let shown = OsStr::from_bytes(&name);
        for words in [
            &["cert", "create", "--"][..],
            &["cert", "show", "--"],
            &["cert", "drop", "--yes", "--"],
        ] {
            let told = said(place.command(PELLUCID).args(words).arg(shown));
            let what = format!("{shown:?}, {words:?}: {told:?}");
            // Arguments that are no text are refused before they are looked at.
            assert!(told.code == 1 || told.code == 2 && told.stderr.contains("UTF-8"), "{what}");
            assert!(
                told.stderr.contains("name") || told.code == 2 || words[1] != "create",
                "{what}"
            );
            let is_steered = told.stderr.chars().any(|one| one.is_control() && one != '\n');
            assert!(!is_steered && !told.stderr.contains("new\nline"), "{what}");
        }
    }
    assert_eq!(place.pellucid(&["--json", "cert", "list"]).succeeded(), before);
}
