//! Vectors of the keyring's files, sealed here from docs/format.md and not by the keyring's code.

use aws_lc_rs::hkdf;
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

fn sealed_file(parent: &[u8; 32], kind: u8, name: &str, content: &[u8]) -> Result<Vec<u8>> {
    flagged(parent, kind, 0, name, content)
}

fn flagged(parent: &[u8; 32], kind: u8, flags: u8, name: &str, content: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = b"Pellucid key\0\0\0\0".to_vec();
    bytes.extend_from_slice(&[0, 1, kind, flags]);
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
    let (der, key) = (certificate.public().der(), certificate.private_key());
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
