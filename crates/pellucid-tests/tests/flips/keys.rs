//! What wraps a DEK: protectors, and the files of the keyring.

use std::rc::Rc;

use pellucid::certificate::Certificate;
use pellucid::derive::commitment;
use pellucid::protector::{
    unwrap, wrap, Argon2Cost, Binding, KeyFile, KeySource, Passphrase, Protector, Purpose, Wrapping,
};
use pellucid::{Algorithm, Dek};
use pellucid_keyring::{read_key_backup, DatabaseMemory, Keyring, MasterKey};

use super::bed::{class, Bed, Class, Found};
use super::bench::{Bench, KEY};

const ID: [u8; 16] = [4; 16];
const PASSPHRASE: &[u8] = b"correct horse battery";
const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
const CERTIFICATE: &str = "pellucid";

struct Keys {
    key_files: [KeyFile; 1],
    passphrases: [Passphrase; 1],
    keyring: Keyring,
}

impl KeySource for Keys {
    fn key_files(&self) -> &[KeyFile] {
        &self.key_files
    }
    fn passphrases(&self) -> &[Passphrase] {
        &self.passphrases
    }
    fn certificate(&self, thumbprint: &[u8; 32]) -> pellucid::Result<Option<Certificate>> {
        self.keyring.certificate_by_thumbprint(thumbprint)
    }
}

fn keys(bench: &Bench) -> Keys {
    Keys {
        key_files: [KeyFile::parse(&KEY).unwrap()],
        passphrases: [Passphrase::new(PASSPHRASE)],
        keyring: Keyring::open_or_create(&bench.path("home")).unwrap().0,
    }
}

fn binding(commitment: &[u8; 32]) -> Binding<'_> {
    Binding { purpose: Purpose::Database, id: &ID, algorithm: Algorithm::Aes256, commitment }
}

/// The DEK is the right one, or another, or there is none.
fn compare(found: pellucid::Result<Dek>, right: &Dek) -> Found {
    Found::told(found.map(|dek| if dek == *right { "the DEK" } else { "another" }.to_owned()))
}

/// One protector, opened by itself: what a header's sums would catch before it is not in the way.
pub fn protector(bench: &Rc<Bench>, kind: usize) -> Bed {
    let keys = keys(bench);
    let dek = Dek::random().unwrap();
    let committed = commitment(&dek, &ID).unwrap();
    let certificate = keys.keyring.ensure_default_certificate().unwrap().0;
    let (name, wrapping) = match kind {
        0 => ("protector, key file", Wrapping::KeyFile(&keys.key_files[0])),
        1 => ("protector, passphrase", Wrapping::Passphrase(&keys.passphrases[0], CHEAP)),
        _ => ("protector, certificate", Wrapping::Certificate(&certificate)),
    };
    let mut bytes = Vec::new();
    wrap(&dek, &binding(&committed), &wrapping).unwrap().encode(&mut bytes);
    let path = bench.path("protector");
    let spots = class(name, 0, [0..bytes.len()]);
    Bed {
        name: name.to_owned(),
        files: vec![(path.clone(), bytes)],
        strays: Vec::new(),
        classes: vec![spots],
        right: "the DEK".to_owned(),
        look: Box::new(move |_| {
            let bytes = std::fs::read(&path).unwrap();
            let opened = Protector::decode(&bytes)
                .and_then(|(one, _)| unwrap(&[one], &binding(&committed), &keys));
            compare(opened, &dek)
        }),
        third: Box::new(|_, _| false),
    }
}

/// The keyring's files, from the service master key to what a certificate opens.
pub fn keyring(bench: &Rc<Bench>) -> Bed {
    let home = bench.path("home");
    let (opened, _) = Keyring::open_or_create(&home).unwrap();
    let certificate = opened.ensure_default_certificate().unwrap().0;
    let memory = DatabaseMemory {
        sequence: 3,
        sealed: true,
        certificates: vec![*certificate.public().thumbprint()],
        path: bench.path("a.db"),
    };
    opened.remember_database(&ID, &memory).unwrap();
    let hexadecimal: String = ID.iter().map(|byte| format!("{byte:02x}")).collect();
    let names = [
        ("keyring, service master key", "home/service.key".to_owned()),
        ("keyring, database master key", "home/keyring/master.key".to_owned()),
        ("keyring, certificate", format!("home/keyring/certificates/{CERTIFICATE}")),
        ("keyring, database", format!("home/keyring/databases/{hexadecimal}")),
    ];
    let files: Vec<_> = names.iter().map(|(_, name)| bench.read(name)).collect();
    let classes: Vec<Class> = names
        .iter()
        .enumerate()
        .map(|(at, (name, _))| class(name, at, [0..files[at].1.len()]))
        .collect();
    let dek = Dek::random().unwrap();
    let committed = commitment(&dek, &ID).unwrap();
    let protector = wrap(&dek, &binding(&committed), &Wrapping::Certificate(&certificate)).unwrap();
    Bed {
        name: "keyring".to_owned(),
        files,
        strays: Vec::new(),
        classes,
        right: "the DEK, Some(true)".to_owned(),
        look: Box::new(move |_| {
            let looked = Keyring::open(&home).and_then(|keyring| {
                let recalled = keyring.recall_database(&ID)?.map(|found| found == memory);
                let keys = Keys {
                    key_files: [KeyFile::random()?],
                    passphrases: [Passphrase::new(b"another")],
                    keyring,
                };
                let found = unwrap(std::slice::from_ref(&protector), &binding(&committed), &keys)?;
                let found = if found == dek { "the DEK" } else { "another" };
                Ok(format!("{found}, {recalled:?}"))
            });
            Found::told(looked)
        }),
        third: Box::new(|_, _| false),
    }
}

/// A backup of the database master key under a password.
pub fn password_file(bench: &Rc<Bench>) -> Bed {
    let home = bench.path("home");
    let (keyring, _) = Keyring::open_or_create(&home).unwrap();
    let path = bench.path("password-file");
    let password = Passphrase::new(PASSPHRASE);
    let _ = std::fs::remove_file(&path);
    keyring.back_up_database_key(&path, &password).unwrap();
    let files = vec![bench.read("password-file")];
    let right = read_key_backup(MasterKey::Database, &path, &password).unwrap();
    let length = files[0].1.len();
    Bed {
        name: "password file".to_owned(),
        files,
        strays: Vec::new(),
        classes: vec![class("password file", 0, [0..length])],
        right: "the key".to_owned(),
        look: Box::new(move |_| {
            let read = read_key_backup(MasterKey::Database, &path, &password);
            Found::told(read.map(|key| if key == right { "the key" } else { "another" }.to_owned()))
        }),
        third: Box::new(|_, _| false),
    }
}
