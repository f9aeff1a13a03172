//! Goal: no secret is in an argument, an environment, an output, a log, or any file but where it belongs.
//!
//! Method: passphrases, passwords and keys that can be searched for are used in every way there is, wrong ones too, under
//! `strace`, which shows what each process executed with which arguments and environment, what it wrote, and to which
//! file. Then all of it is searched: for the secret as it is, in hexadecimal of both cases, in base64. That the search
//! works is shown with a secret that is put into an argument.
//!
//! Core dumps: core_dump.rs. `Debug`: the unit tests beside each type that holds a secret.

use std::path::{Path, PathBuf};

use crate::support::{extension, said_with, Place, PELLUCID};
use base64::prelude::{Engine, BASE64_STANDARD_NO_PAD};

const PASSPHRASE: &[u8] = b"marker-passphrase-77aa01";
const PASSWORD: &[u8] = b"marker-password-77aa02";
const WRONG: &[u8] = b"marker-wrong-77aa03";
const RAW: &[u8; 32] = b"marker-raw-key-of-32-bytes-77aa0";

/// What a secret may look like: three alignments of base64 lose at most two characters at each end.
pub fn shapes(secret: &[u8]) -> Vec<Vec<u8>> {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut shapes = vec![secret.to_vec(), hex.to_uppercase().into_bytes(), hex.into_bytes()];
    for shift in 0..3 {
        let text = BASE64_STANDARD_NO_PAD.encode(&secret[shift..]);
        shapes.push(text.as_bytes()[..text.len() - 3].to_vec());
    }
    shapes
}

struct Search {
    secrets: Vec<(&'static str, Vec<Vec<u8>>)>,
}

impl Search {
    fn found_in(&self, bytes: &[u8]) -> Vec<&'static str> {
        let among = |shapes: &Vec<Vec<u8>>| {
            shapes.iter().any(|shape| memchr::memmem::find(bytes, shape).is_some())
        };
        self.secrets.iter().filter(|(_, shapes)| among(shapes)).map(|(name, _)| *name).collect()
    }
}

/// Runs the program under strace; what it said and what strace saw of it and its children.
fn traced(place: &Place, words: &[&str], input: &str) -> (i32, Vec<u8>) {
    let mut command = place.command("strace");
    // -v and -s: whole environments and whole strings; -y: which file a descriptor is.
    let calls = "trace=execve,write,pwrite64,writev,sendto,sendmsg";
    command.args(["-f", "-v", "-y", "-s", "65536", "-e", calls, "-o", "trace", PELLUCID]);
    let told = said_with(command.args(words), input);
    let mut all = told.all().into_bytes();
    let trace = std::fs::read(place.path("trace")).unwrap();
    assert!(memchr::memmem::find(&trace, b"execve(").is_some(), "strace saw nothing");
    // strace prints what was written as C strings; secrets here have no character that it escapes.
    all.extend_from_slice(&trace);
    (told.code, all)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn no_secret_shows_anywhere() {
    let place = Place::new();
    let given = ["passphrase", "password", "wrong", "raw.key", "wrong.key"];
    for (name, bytes) in given.iter().zip([PASSPHRASE, PASSWORD, WRONG, &RAW[..], &RAW[..31]]) {
        place.secret(name, bytes);
    }
    let mut search = Search {
        secrets: vec![
            ("passphrase", shapes(PASSPHRASE)),
            ("password", shapes(PASSWORD)),
            ("wrong password", shapes(WRONG)),
            ("raw key", shapes(&RAW[..31])),
        ],
    };
    let (_, seen) = traced(&place, &["status", std::str::from_utf8(WRONG).unwrap()], "");
    assert_eq!(search.found_in(&seen), ["wrong password"], "the search does not work");

    for name in ["a.db", "b.db", "c.db"] {
        place.plain(name);
    }
    let loader = format!(
        "import sqlite3\nloader = sqlite3.connect(':memory:')\nloader.enable_load_extension(True)\n\
         loader.load_extension('{}')\n\
         db = sqlite3.connect('file:b.db?vfs=pellucid&passphrase_file=passphrase', uri=True)\n\
         db.execute('INSERT INTO t(b) SELECT b FROM t'); db.commit()\n",
        extension(&place)
    );
    std::fs::write(place.path("application.py"), loader).unwrap();
    let passphrase = std::str::from_utf8(PASSPHRASE).unwrap();
    let works = [
        ("encrypt a.db", ""),
        ("encrypt b.db --passphrase-file passphrase", ""),
        ("encrypt c.db --key-file raw.key", ""),
        ("status a.db b.db c.db", ""),
        ("--json check b.db --passphrase-file -", passphrase),
        ("check c.db --key-file raw.key", ""),
        ("run -- env", ""),
        ("run -- python3 application.py", ""),
        ("protector add a.db --new-passphrase-file passphrase", ""),
        ("protector add c.db --key-file raw.key --new-passphrase-file -", passphrase),
        ("protector list c.db", ""),
        ("cert export pellucid --cert-file c.pem --key-file c.key --password-file password", ""),
        ("key backup service --file s.backup --password-file password", ""),
        ("key backup master --file m.backup --password-file password", ""),
        ("key password add --password-file password", ""),
        ("key close", ""),
        ("key open --password-file password", ""),
        ("key restore master --file m.backup --password-file password", ""),
        ("key regenerate master", ""),
        ("key restore service --file s.backup --password-file password", ""),
        ("decrypt b.db --passphrase-file passphrase", ""),
        ("events", ""),
        ("doctor", ""),
    ];
    let refused = [
        ("check c.db --key-file wrong.key", ""),
        ("check c.db --key-file wrong", ""),
        ("check c.db --passphrase-file wrong", ""),
        ("--json check c.db --passphrase-file -", std::str::from_utf8(WRONG).unwrap()),
        ("cert import again --cert-file c.pem --key-file c.key --password-file wrong", ""),
        ("cert import again --cert-file passphrase --key-file password", ""),
        ("cert import again --cert-file c.pem --key-file raw.key", ""),
        ("key restore service --file s.backup --password-file wrong", ""),
        ("key restore service --file password --password-file wrong", ""),
        ("key open --password-file wrong", ""),
        ("encrypt passphrase", ""),
    ];
    for ((words, input), succeeds) in
        works.iter().map(|one| (one, true)).chain(refused.iter().map(|one| (one, false)))
    {
        let (code, seen) = traced(&place, &words.split(' ').collect::<Vec<_>>(), input);
        let text = String::from_utf8_lossy(&seen[..seen.len().min(2000)]).into_owned();
        // `doctor` has something to say about the backup of a restored key.
        assert_eq!(matches!(code, 0 | 4), succeeds, "{words}: {code} {text}");
        assert_eq!(search.found_in(&seen), Vec::<&str>::new(), "{words}: {text}");
    }

    // And no file has one, but those it was given in; no private key lies in clear in any form.
    search.secrets.push(("private key", vec![b"PRIVATE KEY-----\nMII".to_vec()]));
    for file in files(&place.path("")) {
        if given.contains(&file.file_name().unwrap().to_str().unwrap()) {
            continue;
        }
        let bytes = std::fs::read(&file).unwrap();
        let mut found = search.found_in(&bytes);
        // An encrypted one says so.
        found.retain(|name| {
            *name != "private key"
                || memchr::memmem::find(&bytes, b"ENCRYPTED PRIVATE KEY").is_none()
        });
        assert!(found.is_empty(), "{}: {found:?}", file.display());
    }
}

/// Statements carry their passwords in their text: they come by standard input or a file, and go nowhere else.
#[test]
fn no_password_of_a_statement_shows_anywhere() {
    let place = Place::new();
    let search =
        Search { secrets: vec![("password", shapes(PASSWORD)), ("wrong password", shapes(WRONG))] };
    let right = std::str::from_utf8(PASSWORD).unwrap();
    let wrong = std::str::from_utf8(WRONG).unwrap();
    let scripts = [
        format!("CREATE MASTER KEY ENCRYPTION BY PASSWORD = '{right}'"),
        format!("CREATE MASTER KEY ENCRYPTION BY PASSWORD = N'{right}'"),
        format!("OPEN MASTER KEY DECRYPTION BY PASSWORD = '{wrong}'"),
        format!("OPEN MASTER KEY DECRYPTION BY PASSWORD = '{right}'"),
        "CREATE CERTIFICATE c WITH SUBJECT = 'a'".to_owned(),
        format!(
            "BACKUP CERTIFICATE c TO FILE = 'c.cer' \
             WITH PRIVATE KEY (FILE = 'c.key', ENCRYPTION BY PASSWORD = '{right}')"
        ),
        format!("BACKUP MASTER KEY TO FILE = 'm.key' ENCRYPTION BY PASSWORD = '{right}'"),
        format!("BACKUP SERVICE MASTER KEY TO FILE = 's.key' ENCRYPTION BY PASSWORD = '{right}'"),
        format!(
            "RESTORE SERVICE MASTER KEY FROM FILE = 's.key' DECRYPTION BY PASSWORD = '{wrong}'"
        ),
        format!(
            "RESTORE MASTER KEY FROM FILE = 'm.key' DECRYPTION BY PASSWORD = '{right}' \
             ENCRYPTION BY PASSWORD = '{right}'"
        ),
        format!("ALTER MASTER KEY ADD ENCRYPTION BY PASSWORD = '{wrong}'"),
        format!("ALTER MASTER KEY DROP ENCRYPTION BY PASSWORD = '{wrong}'"),
        format!(
            "CREATE CERTIFICATE d FROM FILE = 'c.cer' \
             WITH PRIVATE KEY (FILE = 'c.key', DECRYPTION BY PASSWORD = '{wrong}')"
        ),
        format!("CREATE CREDENTIAL x WITH IDENTITY = 'i', SECRET = '{right}'"),
        // What does not parse, and what is cut off within the literal.
        format!("CREATE MASTER KEY ENCRYPTION BY PASSWORD '{right}'"),
        format!("CREATE MASTER KEY ENCRYPTION BY PASSWORD = '{right}' AND MORE"),
        format!("CREATE MASTER KEY ENCRYPTION BY PASSWORD = '{right}"),
        format!("CREATE LOGIN x WITH PASSWORD = '{right}'"),
        format!(
            "BACKUP DATABASE master TO DISK = 'x' \
             WITH PASSWORD = '{right}', MEDIAPASSWORD = '{right}'"
        ),
        // Between double quotes, with and without `=`.
        format!("BACKUP DATABASE master TO DISK = 'x' WITH PASSWORD \"{right}\", MEDIAPASSWORD \"{right}\""),
        format!("RESTORE DATABASE q FROM DISK = 'x' WITH MEDIAPASSWORD N\"{right}\", PASSWORD = N\"{wrong}\""),
        format!("EXEC (\"BACKUP LOG msdb TO DISK = 'x' WITH MEDIAPASSWORD \"\"{right}\"\"\")"),
        format!("EXEC ('RESTORE LOG q FROM DISK = ''x'' WITH PASSWORD \"{right}\"')"),
        // Kept in a procedure, which msdb seals; called, it fails and is told.
        format!(
            "CREATE PROCEDURE opens AS OPEN MASTER KEY DECRYPTION BY PASSWORD = '{wrong}'\nGO\nEXEC opens\nGO\n\
             CREATE OR ALTER PROCEDURE opens AS EXEC ('CREATE LOGIN x WITH PASSWORD ''{right}''') \
             BACKUP DATABASE msdb TO DISK = 'x' WITH MEDIAPASSWORD \"{right}\"\nGO\nEXEC opens"
        ),
        // Within strings that are executed, and values that do not convert.
        format!("EXEC sp_executesql N'OPEN MASTER KEY DECRYPTION BY PASSWORD = ''{wrong}'''"),
        format!("EXEC ('CREATE MASTER KEY ENCRYPTION BY PASSWORD ''{right}''')"),
        format!("SELECT CAST('CREATE LOGIN x WITH PASSWORD = ''{right}''' AS int)"),
        format!(
            "BEGIN TRY OPEN MASTER KEY DECRYPTION BY PASSWORD = '{wrong}' END TRY \
             BEGIN CATCH PRINT ERROR_MESSAGE(); THROW; END CATCH"
        ),
        "EXEC sp_readerrorlog".to_owned(),
    ];
    for script in &scripts {
        let masked = script.replace(right, "RIGHT").replace(wrong, "WRONG");
        for words in [&["sql"][..], &["sql", "-e"], &["--json", "sql"]] {
            let (code, seen) = traced(&place, words, script);
            assert!(code == 0 || code == 1, "{masked}: {code}");
            assert_eq!(search.found_in(&seen), Vec::<&str>::new(), "{words:?}: {masked}");
        }
    }
    for file in files(&place.path("")) {
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(search.found_in(&bytes), Vec::<&str>::new(), "{}", file.display());
    }
}
