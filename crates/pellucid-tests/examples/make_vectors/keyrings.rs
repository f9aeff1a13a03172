//! Vectors of the keyring's files, sealed here from docs/format.md and not by the keyring's code.

use std::process::Command;

use aws_lc_rs::{digest, hkdf};
use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::cipher::Cipher;
use pellucid::hash::hex;
use pellucid::{Algorithm, Result};

use super::{flip, key_bytes, Case, FILE_ID, NONCE};

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

pub fn derive<const N: usize>(parent: &[u8; 32], salt: &[u8], info: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
        .extract(parent)
        .expand(info, Length(N))
        .and_then(|okm| okm.fill(&mut out))
        .unwrap();
    out
}

pub fn sealed_file(parent: &[u8; 32], kind: u8, name: &str, content: &[u8]) -> Result<Vec<u8>> {
    flagged(parent, kind, 0, name, content)
}

fn flagged(parent: &[u8; 32], kind: u8, flags: u8, name: &str, content: &[u8]) -> Result<Vec<u8>> {
    versioned(parent, 1, kind, flags, name, content)
}

pub fn versioned(
    parent: &[u8; 32],
    version: u8,
    kind: u8,
    flags: u8,
    name: &str,
    content: &[u8],
) -> Result<Vec<u8>> {
    let mut bytes = b"Pellucid key\0\0\0\0".to_vec();
    bytes.extend_from_slice(&[0, version, kind, flags]);
    bytes.extend_from_slice(&derive::<16>(parent, b"", &[b"pellucid/1 key check"]));
    bytes.extend_from_slice(&NONCE);
    let key: [u8; 32] = derive(parent, b"", &[b"pellucid/1 keyring", &[kind]]);
    let aad = [&bytes, name.as_bytes()].concat();
    let (mut ciphertext, mut tag) = (vec![0; content.len()], [0; 16]);
    Cipher::new(Algorithm::Aes256, &key)?.seal(&NONCE, &aad, content, &mut ciphertext, &mut tag)?;
    bytes.extend_from_slice(&ciphertext);
    bytes.extend_from_slice(&tag);
    Ok(bytes)
}

pub fn cases() -> Result<Vec<Case>> {
    let (service, master) = (key_bytes(96), key_bytes(160));
    let master_file = sealed_file(&service, 1, "", &master)?;
    let case = |kind: &str, path: &str, body: &[u8]| {
        Case::new("keyring", kind)
            .with("expect", "success")
            .with_bytes("service-key", &service)
            .with_bytes("database-master-key", &master)
            .with("path", path)
            .with_body(body)
    };
    let good = case("master-key", "keyring/master.key", &master_file);

    let certificate = Certificate::generate("app", &CertificateRequest::new("Vectors", 365))?;
    let (der, key) = (certificate.public().der(), certificate.private_key().unwrap());
    let mut content = 1_700_000_000u64.to_be_bytes().to_vec();
    content.extend_from_slice(&(der.len() as u32).to_be_bytes());
    content.extend_from_slice(der);
    content.extend_from_slice(key);
    let sealed = sealed_file(&master, 2, "app", &content)?;
    let with_certificate = case("certificate", "keyring/certificates/app", &sealed)
        .with_bytes("master-key-file", &master_file)
        .with_bytes("certificate", der)
        .with_bytes("private-key", key)
        .with("backed-up", 1_700_000_000u64);

    let name = hex(&FILE_ID);
    let sealed = sealed_file(&master, 3, &name, &[0, 0, 0, 0, 0, 0, 0, 5, 1])?;
    let database = case("database", &format!("keyring/databases/{name}"), &sealed)
        .with_bytes("master-key-file", &master_file)
        .with_bytes("file-id", &FILE_ID)
        .with("sequence", 5)
        .with("sealed", "yes");

    let mut more = pins(&case, &master, &master_file)?;
    more.extend(checks(&case, &master, &master_file)?);
    more.extend(witnesses(&case, &master, &master_file)?);
    more.push(weak(&case, &master, &master_file)?);
    let memory = [0, 0, 0, 0, 0, 0, 0, 5, 1];
    let with_flags =
        |flags| Ok(database.clone().with_body(&flagged(&master, 3, flags, &name, &memory)?));
    let mut flags = vec![
        with_flags(8)?.with("kind", "read-only-flag"),
        with_flags(64)?.with("kind", "compatible-flag"),
    ];
    for flag in [1u8, 2, 4] {
        let told = format!("incompatible flags {flag:#06x}");
        flags.push(with_flags(flag)?.failing(
            &format!("incompatible-flag-{flag}"),
            "unsupported",
            &told,
        ));
    }
    let mut newer = good.body.clone();
    newer[17] = 2;
    flags.extend(more);
    flags.extend([
        good.failing("torn", "corrupt", "truncated").with_body(&good.body[..63]),
        flip(good.failing("flipped-tag", "unauthentic", "its tag does not match"), -1),
        good.failing("wrong-key", "missing-key", "it was sealed under another key")
            .with_bytes("service-key", &key_bytes(97)),
        good.failing("newer-version", "unsupported", "version 2 is newer than 1").with_body(&newer),
        with_certificate
            .failing("wrong-name", "unauthentic", "its tag does not match")
            .with("path", "keyring/certificates/app2"),
        good,
        with_certificate,
        database,
    ]);
    Ok(flags)
}

type Make<'a> = dyn Fn(&str, &str, &[u8]) -> Case + 'a;

/// What the checks of a database found.
fn checks(case: &Make<'_>, master: &[u8; 32], master_file: &[u8]) -> Result<Vec<Case>> {
    const PATH: &str = "/srv/app.db";
    let (good_at, at) = (1_764_547_200u64, 1_767_225_600u64);
    let content = |version: u8| {
        let mut content = vec![version, 4];
        content.extend_from_slice(&FILE_ID);
        for seconds in [at, good_at, at] {
            content.extend_from_slice(&seconds.to_be_bytes());
        }
        content.extend_from_slice(&3u32.to_be_bytes());
        content.extend_from_slice(&2u16.to_be_bytes());
        content.extend_from_slice(&[0, 0, 0, 3, 0, 0, 0, 17]);
        content.extend_from_slice(PATH.as_bytes());
        content
    };
    let of = |kind: &str, content: &[u8]| {
        let name = &hex_of(PATH)[..32];
        let sealed = sealed_file(master, 9, name, content)?;
        Ok(case(kind, &format!("keyring/checks/{name}"), &sealed)
            .with_bytes("master-key-file", master_file)
            .with("checked-path", PATH)
            .with_bytes("file-id", &FILE_ID)
            .with("at", at)
            .with("good-at", good_at)
            .with("findings", 3))
    };
    let good = of("check", &content(1))?;
    let refused = |case: Case, kind: &str| case.failing(kind, "corrupt", "its fields do not fit");
    Ok(vec![
        refused(of("", &content(2))?, "check-newer-version"),
        refused(of("", &content(1)[..55])?, "check-cut"),
        flip(good.failing("check-flipped", "unauthentic", "its tag does not match"), -1),
        good,
    ])
}

/// How far a chain of log backups had come.
fn witnesses(case: &Make<'_>, master: &[u8; 32], master_file: &[u8]) -> Result<Vec<Case>> {
    const PATH: &str = "/srv/app.db";
    let content = |version: u8, base: u64| {
        let mut content = vec![version];
        content.extend_from_slice(&FILE_ID);
        content.extend_from_slice(&key_bytes(1)[..16]);
        for number in [5u64, 12, 0x0000_0002_0000_0003] {
            content.extend_from_slice(&number.to_be_bytes());
        }
        content.extend_from_slice(&key_bytes(100));
        content.extend_from_slice(&1_767_225_600u64.to_be_bytes());
        content.extend_from_slice(&base.to_be_bytes());
        content.extend_from_slice(PATH.as_bytes());
        content
    };
    let of = |kind: &str, base: u64, content: &[u8]| {
        let name = &hex_of(PATH)[..32];
        let sealed = sealed_file(master, 10, name, content)?;
        Ok(case(kind, &format!("keyring/witnesses/{name}"), &sealed)
            .with_bytes("master-key-file", master_file)
            .with("witness-path", PATH)
            .with_bytes("file-id", &FILE_ID)
            .with_bytes("fork", &key_bytes(1)[..16])
            .with("header-sequence", 5)
            .with("archive-sequence", 12)
            .with("lsn", 0x0000_0002_0000_0003u64)
            .with("base", base)
            .with_bytes("last-set", &key_bytes(100))
            .with("at", 1_767_225_600u64))
    };
    const BASE: u64 = 0x0000_0002_0000_0001;
    let good = of("witness", BASE, &content(1, BASE))?;
    let refused = |case: Case, kind: &str| case.failing(kind, "corrupt", "its fields do not fit");
    Ok(vec![
        of("witness-without-base", 0, &content(1, 0))?,
        refused(of("", BASE, &content(2, BASE))?, "witness-newer-version"),
        refused(of("", BASE, &content(1, BASE)[..104])?, "witness-cut"),
        flip(good.failing("witness-flipped", "unauthentic", "its tag does not match"), -1),
        good,
    ])
}

/// What is expected at a path, and a key that a rekey replaced.
fn pins(case: &Make<'_>, master: &[u8; 32], master_file: &[u8]) -> Result<Vec<Case>> {
    const PATH: &str = "/srv/app.db";
    let name = hex_of(PATH);
    let file = |version: u8, flags: u8| {
        let mut content = vec![version, flags];
        content.extend_from_slice(&FILE_ID);
        content.extend_from_slice(&5u64.to_be_bytes());
        content.extend_from_slice(&key_bytes(200));
        content.resize(170, 0);
        content.extend_from_slice(PATH.as_bytes());
        content
    };
    let at = |kind: &str, content: &[u8], place: &str| {
        let sealed = sealed_file(master, 7, &name[..32], content)?;
        Ok(case(kind, &format!("keyring/paths/{}", &hex_of(place)[..32]), &sealed)
            .with_bytes("master-key-file", master_file)
            .with("pinned-path", place)
            .with_bytes("file-id", &FILE_ID)
            .with("sequence", 5)
            .with_bytes("commitment", &key_bytes(200)))
    };
    let good = at("pin", &file(1, 1), PATH)?;
    let refused = |case: Case, kind: &str| case.failing(kind, "corrupt", "its fields do not fit");
    let retired = hex(&key_bytes(200));
    let sealed = sealed_file(master, 8, &retired[..32], &key_bytes(200))?;
    Ok(vec![
        refused(at("", &file(2, 1), PATH)?, "pin-newer-version"),
        refused(at("", &file(1, 1)[..169], PATH)?, "pin-cut"),
        at("", &file(1, 1), "/srv/other.db")?.failing(
            "pin-of-another-path",
            "unauthentic",
            "its tag does not match",
        ),
        flip(good.failing("pin-flipped", "unauthentic", "its tag does not match"), -1),
        good,
        case("retired", &format!("keyring/retired/{}", &retired[..32]), &sealed)
            .with_bytes("master-key-file", master_file)
            .with_bytes("commitment", &key_bytes(200)),
    ])
}

fn hex_of(path: &str) -> String {
    hex(digest::digest(&digest::SHA256, path.as_bytes()).as_ref())
}

/// A certificate whose RSA key has 1024 bits, with its private key; made by OpenSSL, since nothing of ours makes one.
pub fn weak_certificate() -> (Vec<u8>, Vec<u8>) {
    let openssl = |arguments: &str| {
        let arguments = arguments.split(' ');
        let done = Command::new("openssl").args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    };
    let pem = std::env::temp_dir().join(format!("weak-{}.pem", std::process::id()));
    let place = pem.display();
    let der = openssl(&format!(
        "req -x509 -newkey rsa:1024 -nodes -days 3650 -subj /CN=Weak -keyout {place} -outform DER"
    ));
    let key = openssl(&format!("pkcs8 -topk8 -nocrypt -in {place} -outform DER"));
    std::fs::remove_file(pem).unwrap();
    (der, key)
}

fn weak(case: &Make<'_>, master: &[u8; 32], master_file: &[u8]) -> Result<Case> {
    let (der, key) = weak_certificate();
    let mut content = vec![0; 8];
    content.extend_from_slice(&(der.len() as u32).to_be_bytes());
    content.extend_from_slice(&der);
    content.extend_from_slice(&key);
    let sealed = sealed_file(master, 2, "weak", &content)?;
    Ok(case("", "keyring/certificates/weak", &sealed)
        .with_bytes("master-key-file", master_file)
        .failing("weak-certificate", "unsupported", "RSA key has 1024 bits"))
}
