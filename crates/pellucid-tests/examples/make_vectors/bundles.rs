//! Vectors of bundles, put together here from docs/format.md and not by the keyring's code.

use aws_lc_rs::digest;
use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::cipher::Cipher;
use pellucid::derive::commitment;
use pellucid::protector::{self, Argon2Cost, Binding, Passphrase, Purpose, Wrapping};
use pellucid::secret::Secret32;
use pellucid::{Algorithm, Dek, Result};

use super::keyrings::derive;
use super::{flip, key_bytes, Case, FILE_ID, NONCE};

const PASSPHRASE: &str = "correct horse battery staple";
const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
pub const ID: [u8; 16] = *b"bundle-of-a-test";
pub const MADE: u64 = 1_700_000_000;

pub fn entry(kind: u8, name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, name.len() as u8];
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(&(content.len() as u32).to_be_bytes());
    bytes.extend_from_slice(content);
    bytes
}

fn sealed(with: &Wrapping<'_>, content: &[u8]) -> Result<Vec<u8>> {
    let key = Dek::from_secret(Secret32::new(&mut key_bytes(48)));
    let commitment = commitment(&key, &ID)?;
    let algorithm = Algorithm::Aes256;
    let binding = Binding { purpose: Purpose::Bundle, id: &ID, algorithm, commitment: &commitment };
    let mut protector = Vec::new();
    protector::wrap(&key, &binding, with)?.encode(&mut protector);
    sealed_around(&protector, &key_bytes(48), content)
}

/// A bundle under `key`, with this protector of it.
pub fn sealed_around(protector: &[u8], key: &[u8; 32], content: &[u8]) -> Result<Vec<u8>> {
    let commitment = commitment(&Dek::from_secret(Secret32::new(&mut key.clone())), &ID)?;
    let mut bytes = b"Pellucid bundle\0".to_vec();
    bytes.extend_from_slice(&[0, 1]);
    bytes.extend_from_slice(&(protector.len() as u16).to_be_bytes());
    bytes.extend_from_slice(&ID);
    bytes.extend_from_slice(&commitment);
    bytes.extend_from_slice(&MADE.to_be_bytes());
    bytes.extend_from_slice(protector);
    bytes.extend_from_slice(&NONCE);
    let own: [u8; 32] = derive(key, &ID, &[b"pellucid/1 bundle"]);
    let (mut ciphertext, mut tag) = (vec![0; content.len()], [0; 16]);
    Cipher::new(Algorithm::Aes256, &own)?.seal(
        &NONCE,
        &bytes,
        content,
        &mut ciphertext,
        &mut tag,
    )?;
    bytes.extend_from_slice(&ciphertext);
    bytes.extend_from_slice(&tag);
    Ok(summed(bytes))
}

fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = digest::digest(&digest::SHA256, &bytes);
    bytes.extend_from_slice(sum.as_ref());
    bytes
}

pub fn cases() -> Result<Vec<Case>> {
    let master = key_bytes(160);
    let certificate = Certificate::generate("app", &CertificateRequest::new("Vectors", 365))?;
    let (der, key) = (certificate.public().der(), certificate.private_key().unwrap());
    let mut stored = MADE.to_be_bytes().to_vec();
    stored.extend_from_slice(&(der.len() as u32).to_be_bytes());
    stored.extend_from_slice(der);
    stored.extend_from_slice(key);
    let id = pellucid::hash::hex(&FILE_ID);
    let mut database = vec![0, 0, 0, 0, 0, 0, 0, 5, 1, 1];
    database.extend_from_slice(certificate.public().thumbprint());
    database.extend_from_slice(b"/srv/app.db");
    let entries = [entry(1, "", &master), entry(3, "app", &stored), entry(4, &id, &database)];

    let passphrase = Passphrase::new(PASSPHRASE.as_bytes());
    let by_passphrase = Wrapping::Passphrase(&passphrase, CHEAP);
    let good = Case::new("bundle", "passphrase")
        .with("expect", "success")
        .with("passphrase", PASSPHRASE)
        .with("made", MADE)
        .with_bytes("database-master-key", &master)
        .with_bytes("app-certificate", der)
        .with_bytes("app-private-key", key)
        .with_bytes("file-id", &FILE_ID)
        .with("sequence", 5)
        .with("database-path", "/srv/app.db")
        .with_body(&sealed(&by_passphrase, &entries.concat())?);
    let inbox = Certificate::generate("inbox", &CertificateRequest::new("Elsewhere", 365))?;
    let for_certificate = good
        .clone()
        .with("kind", "certificate")
        .with("passphrase", "")
        .with_bytes("certificate", inbox.public().der())
        .with_bytes("private-key", inbox.private_key().unwrap())
        .with("allow-recovery", "yes")
        .with_body(&sealed(&Wrapping::Recovery(inbox.public()), &entries.concat())?);
    let twice = sealed(&by_passphrase, &[&entries.concat()[..], &entries[1]].concat())?;
    let mut renamed = entries.clone();
    renamed[1] = entry(3, "../app", &stored);
    let outside = sealed(&by_passphrase, &renamed.concat())?;
    let unknown = sealed(&by_passphrase, &[&entries[0][..], &entry(9, "x", b"y")].concat())?;
    let at = good.body.len() - 60;
    let mut forged = good.body[..good.body.len() - 32].to_vec();
    forged[at] ^= 1;
    let patched = |at: usize, value: &[u8]| {
        let mut bytes = good.body[..good.body.len() - 32].to_vec();
        bytes[at..at + value.len()].copy_from_slice(value);
        summed(bytes)
    };
    Ok(vec![
        good.failing("newer-version", "unsupported", "version 2 is newer than 1")
            .with_body(&patched(17, &[2])),
        good.failing("dear-passphrase", "unsupported", "its passphrase costs")
            .with_body(&patched(80, &524_288u32.to_be_bytes())),
        good.failing("runs-over", "corrupt", "its fields run over its end")
            .with_body(&patched(18, &[255])),
        good.failing("wrong-passphrase", "missing-key", "wrong passphrase")
            .with("passphrase", "correct horse battery stable"),
        good.failing("torn", "corrupt", "torn or damaged").with_body(&good.body[..at]),
        flip(good.failing("flipped", "corrupt", "torn or damaged"), -60),
        good.failing("forged", "unauthentic", "its tag does not match").with_body(&summed(forged)),
        good.failing("entry-twice", "corrupt", "its entries do not fit").with_body(&twice),
        good.failing("entry-elsewhere", "corrupt", "its entries do not fit").with_body(&outside),
        good.failing("unknown-entry", "unsupported", "entries of kind 9 are not known")
            .with_body(&unknown),
        good,
        for_certificate,
    ])
}
