//! Vectors of headers: each protector, older DEKs, and what somebody may have done to them.

use std::sync::Arc;

use aws_lc_rs::digest;
use pellucid::certificate::{Certificate, CertificateRequest, KeyPlace};
use pellucid::derive::commitment;
use pellucid::header::{DekRow, Header, COPY_BYTES};
use pellucid::keys::{generation_cipher, HeaderKey};
use pellucid::protector::{
    self, Argon2Cost, Binding, KeyFile, Passphrase, Protector, Purpose, Wrapping,
};
use pellucid::secret::Secret32;
use pellucid::unit::{self, FileKind, Place};
use pellucid::{Algorithm, Dek, Result};
use pellucid_tests::elsewhere::Held;

use super::{
    case, dek, flip, header, key_bytes, Case, Fixed, FILE_ID, GENERATION, NONCE, OTHER_ID,
};

const PASSPHRASE: &str = "correct horse battery staple";
const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
const ALGORITHM: Algorithm = Algorithm::Aes256;

pub(super) fn wrapped(dek: &Dek, id: &[u8; 16], with: &Wrapping<'_>) -> Result<Vec<u8>> {
    let commitment = commitment(dek, id)?;
    let binding =
        Binding { purpose: Purpose::Database, id, algorithm: ALGORITHM, commitment: &commitment };
    let mut bytes = Vec::new();
    protector::wrap(dek, &binding, with)?.encode(&mut bytes);
    Protector::decode(&bytes)?;
    Ok(bytes)
}

pub(super) fn header_case(kind: &str) -> Case {
    case("header", kind, ALGORITHM)
        .with("copy", 0)
        .with("sequence", 5)
        .with("page-size", 512)
        .with("state", "encrypted")
        .with("created", 1_700_000_000u64)
}

pub(super) fn sealed(protectors: &[Vec<u8>]) -> Result<Vec<u8>> {
    encoded(&Header { protectors: protectors.to_vec(), ..header(&dek(), FILE_ID, ALGORITHM)? })
}

pub(super) fn encoded(header: &Header) -> Result<Vec<u8>> {
    Ok(header.encode(&HeaderKey::derive(&dek(), &header.file_id)?)?.to_vec())
}

/// Changes bytes and makes both sums right again, as somebody who has the DEK could.
pub(super) fn patched(copy: &[u8], change: impl FnOnce(&mut [u8])) -> Result<Vec<u8>> {
    let mut copy = copy.to_vec();
    change(&mut copy);
    let mac = HeaderKey::derive(&dek(), &FILE_ID)?.sign(&[&copy[..COPY_BYTES - 64]]);
    copy[COPY_BYTES - 64..COPY_BYTES - 32].copy_from_slice(&mac);
    Ok(with_checksum(copy))
}

/// Makes the checksum right, which takes no key.
pub(super) fn with_checksum(mut copy: Vec<u8>) -> Vec<u8> {
    let sum = digest::digest(&digest::SHA256, &copy[..COPY_BYTES - 32]);
    copy[COPY_BYTES - 32..].copy_from_slice(sum.as_ref());
    copy
}

fn with_certificate(case: Case, certificate: &Certificate) -> Case {
    case.with_bytes("certificate", certificate.public().der())
        .with_bytes("private-key", certificate.private_key().unwrap())
}

pub fn cases() -> Result<Vec<Case>> {
    let key_file = KeyFile::parse(&key_bytes(64)).unwrap();
    let by_key_file = wrapped(&dek(), &FILE_ID, &Wrapping::KeyFile(&key_file))?;
    let passphrase = Passphrase::new(PASSPHRASE.as_bytes());
    let by_passphrase = wrapped(&dek(), &FILE_ID, &Wrapping::Passphrase(&passphrase, CHEAP))?;
    let certificate = Certificate::generate("app", &CertificateRequest::new("Vectors", 365))?;
    let by_certificate = wrapped(&dek(), &FILE_ID, &Wrapping::Certificate(&certificate))?;
    let recovery = wrapped(&dek(), &FILE_ID, &Wrapping::Recovery(certificate.public()))?;

    let good = header_case("key-file")
        .with_bytes("key-file", &key_bytes(64))
        .with_body(&sealed(std::slice::from_ref(&by_key_file))?);
    let digits = pellucid::hash::hex(&key_bytes(64)) + "\n";
    let with_passphrase = header_case("passphrase")
        .with("passphrase", PASSPHRASE)
        .with_body(&sealed(std::slice::from_ref(&by_passphrase))?);
    let with_cert = with_certificate(header_case("certificate"), &certificate)
        .with_body(&sealed(std::slice::from_ref(&by_certificate))?);
    let with_recovery = with_certificate(header_case("recovery"), &certificate)
        .with("allow-recovery", "yes")
        .with_body(&sealed(std::slice::from_ref(&recovery))?);
    let several = sealed(&[by_passphrase.clone(), by_certificate.clone(), by_key_file.clone()])?;
    let mut cases = vec![
        good.clone(),
        good.clone().with("kind", "key-file-hexadecimal").with_bytes("key-file", digits.as_bytes()),
        with_passphrase.clone(),
        with_cert.clone(),
        with_recovery.clone(),
        good.clone().with("kind", "several").with_body(&several),
        with_passphrase
            .failing("wrong-passphrase", "missing-key", "wrong passphrase")
            .with("passphrase", "correct horse battery stable"),
        with_recovery
            .failing(
                "recovery-not-asked-for",
                "missing-key",
                "no key for it. It opens with recovery certificate",
            )
            .with("allow-recovery", "no"),
    ];
    let other = Certificate::generate("other", &CertificateRequest::new("Somebody", 365))?;
    cases.push(with_certificate(
        with_cert.failing("missing-certificate", "missing-key", "is not in the keyring"),
        &other,
    ));
    let mut escape = by_certificate.clone();
    escape[5] = 0x1b;
    cases.push(
        with_cert
            .failing("control-character-in-name", "corrupt", "a protector's fields are malformed")
            .with_body(&sealed(&[escape])?),
    );
    cases.extend(costs(&with_passphrase, &by_passphrase)?);
    cases.push(weak(&with_cert, &by_certificate)?);
    cases.extend(substitutions(&with_cert, &certificate, &good, &key_file)?);
    cases.extend(elsewhere(&certificate, &by_key_file)?);
    cases.extend(older_dek(&good, &by_key_file)?);
    cases.extend(structure(&good, &with_passphrase, &by_key_file)?);
    Ok(cases)
}

/// Somebody who has no key, only public halves and headers of other files.
fn substitutions(
    with_cert: &Case,
    certificate: &Certificate,
    good: &Case,
    key_file: &KeyFile,
) -> Result<Vec<Case>> {
    let mut unsigned = wrapped(&dek(), &FILE_ID, &Wrapping::Recovery(certificate.public()))?;
    unsigned[1] = 0;
    let foreign = Dek::from_secret(Secret32::new(&mut key_bytes(32)));
    let other_file = wrapped(&dek(), &OTHER_ID, &Wrapping::KeyFile(key_file))?;
    // Made for the header's commitment, so that the tag is right and only the DEK is another.
    let commitment = commitment(&dek(), &FILE_ID)?;
    let binding = Binding {
        purpose: Purpose::Database,
        id: &FILE_ID,
        algorithm: ALGORITHM,
        commitment: &commitment,
    };
    let mut committed = Vec::new();
    protector::wrap(&foreign, &binding, &Wrapping::KeyFile(key_file))?.encode(&mut committed);
    Ok(vec![
        with_cert
            .failing("substituted-certificate", "unauthentic", "was not made by this certificate")
            .with_body(&sealed(&[unsigned])?),
        good.failing(
            "substituted-dek",
            "unauthentic",
            "holds another key than the one the header commits to",
        )
        .with_body(&sealed(&[committed])?),
        good.failing("protector-of-another-file", "missing-key", "wrong key")
            .with_body(&sealed(&[other_file])?),
    ])
}

/// A key that never leaves its provider, and what somebody may do to its protector who has public halves alone.
fn elsewhere(certificate: &Certificate, by_key_file: &[u8]) -> Result<Vec<Case>> {
    let private_key = certificate.private_key()?;
    let place = KeyPlace::new("pkcs11", "pkcs11:token=Vectors;object=tde")?;
    let held = Held::new(place.clone(), private_key);
    let public_key = held.public_key();
    let key = Certificate::elsewhere("tde", &public_key, Arc::new(held))?;
    let protector = wrapped(&dek(), &FILE_ID, &Wrapping::Certificate(&key))?;
    let mut encoded_place = Vec::new();
    place.encode(&mut encoded_place);
    let good = header_case("provider-key")
        .with("provider", place.provider())
        .with("provider-key", place.key())
        .with_bytes("public-key", &public_key)
        .with_bytes("private-key", private_key)
        .with_body(&sealed(std::slice::from_ref(&protector))?);
    let mut moved = protector.clone();
    *moved.last_mut().unwrap() ^= 3;
    let mut other_provider = protector.clone();
    let name_at = protector.len() - encoded_place.len() + 1;
    other_provider[name_at] = b'q';
    let mut no_name = protector.clone();
    no_name[name_at] = b'P';
    // As if it were a certificate's whose place nobody said.
    let mut as_certificate = protector[..protector.len() - encoded_place.len()].to_vec();
    as_certificate[0] = 3;
    let length = (as_certificate.len() - 4) as u16;
    as_certificate[2..4].copy_from_slice(&length.to_be_bytes());
    let mut for_recovery = protector.clone();
    for_recovery[1] = 1;
    let not_made = "was not made by this certificate";
    let malformed = "a protector's fields are malformed";
    let several = sealed(&[protector.clone(), by_key_file.to_vec()])?;
    Ok(vec![
        good.failing("provider-key-of-another-name", "unauthentic", not_made)
            .with_body(&sealed(&[moved])?),
        good.failing("provider-key-of-another-provider", "unauthentic", not_made)
            .with_body(&sealed(&[other_provider])?),
        good.failing("provider-key-as-certificate", "unauthentic", not_made)
            .with_body(&sealed(&[as_certificate])?),
        good.failing("provider-key-for-recovery", "unsupported", "protector flag 1 is not known")
            .with_body(&sealed(&[for_recovery])?),
        good.failing("provider-malformed", "corrupt", malformed).with_body(&sealed(&[no_name])?),
        header_case("provider-key-and-key-file")
            .with_bytes("key-file", &key_bytes(64))
            .with_body(&several),
        good,
    ])
}

fn older_dek(good: &Case, by_key_file: &[u8]) -> Result<Vec<Case>> {
    let older = Dek::from_secret(Secret32::new(&mut key_bytes(32)));
    let mut nonces = Fixed(0);
    let row = DekRow::wrap_older(&older, 1..=2, Algorithm::Aes128, &dek(), &FILE_ID, &mut nonces)?;
    let mut header = header(&dek(), FILE_ID, ALGORITHM)?;
    header.deks[0].first_generation = GENERATION;
    header.deks.insert(0, row);
    header.protectors = vec![by_key_file.to_vec()];
    let kind = FileKind::Database;
    let cipher = generation_cipher(&older, &FILE_ID, 2, Algorithm::Aes128, kind)?;
    let mut page = [0; 512];
    let plain = [0x5a; 480];
    unit::seal(&cipher, 2, &NONCE, &Place::page(&FILE_ID, 7), &plain, &mut page)?;
    let with_older = good
        .clone()
        .with("kind", "older-dek")
        .with_bytes("older-dek", &key_bytes(32))
        .with_bytes("nonce", &NONCE)
        .with_bytes("older-page", &page)
        .with_bytes("plaintext", &plain)
        .with_body(&encoded(&header)?);
    let flipped = patched(&with_older.body, |copy| copy[128 + 44 + 20] ^= 1)?;
    // The same while the container gets another file id: what is older is bound to the one before.
    header.scan.older_id = Some(OTHER_ID);
    header.deks[0].commitment = commitment(&older, &OTHER_ID)?;
    let cipher = generation_cipher(&older, &OTHER_ID, 2, Algorithm::Aes128, kind)?;
    unit::seal(&cipher, 2, &NONCE, &Place::page(&OTHER_ID, 7), &plain, &mut page)?;
    let renamed = with_older
        .clone()
        .with("kind", "another-file-id")
        .with_bytes("older-file-id", &OTHER_ID)
        .with_bytes("older-page", &page)
        .with_body(&encoded(&header)?);
    let unflagged = patched(&renamed.body, |copy| copy[128 + 9] ^= 4)?;
    Ok(vec![
        renamed
            .failing("another-file-id-unflagged", "corrupt", "contradict its older file id")
            .with_body(&unflagged),
        renamed,
        with_older
            .failing("flipped-older-dek", "unauthentic", "an older DEK does not unwrap")
            .with_body(&flipped),
        with_older,
    ])
}

/// What is wrong with the bytes of a copy.
fn structure(good: &Case, with_passphrase: &Case, by_key_file: &[u8]) -> Result<Vec<Case>> {
    let mut torn = good.body.clone();
    torn[512..].fill(0);
    let mut forged = good.body.clone();
    forged[24 + 7] = 9;
    let costly = |copy: &mut [u8]| copy[128 + 104 + 4..][..4].copy_from_slice(&[0, 0x20, 0, 0]);
    let lanes = |copy: &mut [u8]| copy[128 + 104 + 12..][..4].copy_from_slice(&[0x80, 0, 0, 0]);
    let patch = |at: usize, value: u8| patched(&good.body, |copy| copy[at] = value);
    let unknown = [&[9, 0, 0, 2][..], &[1, 2]].concat();
    Ok(vec![
        good.failing("torn", "corrupt", "header copy 0: torn or damaged").with_body(&torn),
        flip(good.failing("not-a-header", "corrupt", "header copy 1: not a header"), 0)
            .with("copy", 1),
        good.failing("forged", "unauthentic", "header copy 0: authentication tag does not match")
            .with_body(&with_checksum(forged)),
        good.failing("newer-version", "unsupported", "format version 2 is newer than 1")
            .with_body(&patch(19, 2)?),
        good.failing("incompatible-flag", "unsupported", "incompatible flags 0x0100 are not known")
            .with_body(&patch(120, 1)?),
        good.clone()
            .with("kind", "read-only-flag")
            .with_bytes("flags", &[0, 0, 0, 4, 0, 0])
            .with_body(&patch(123, 4)?),
        good.clone()
            .with("kind", "compatible-flag")
            .with_bytes("flags", &[0, 0, 0, 0, 2, 0])
            .with_body(&patch(124, 2)?),
        good.failing("byte-in-use", "unsupported", "byte 69 is not zero").with_body(&patch(69, 1)?),
        good.failing("padding-in-use", "unsupported", "byte 7103 is not zero")
            .with_body(&patch(COPY_BYTES - 65, 9)?),
        good.failing("row-in-use", "unsupported", "byte 138 is not zero")
            .with_body(&patch(128 + 10, 1)?),
        good.failing("current-dek-wrapped", "unsupported", "byte 231 is not zero")
            .with_body(&patch(128 + 103, 1)?),
        good.failing(
            "ends-elsewhere",
            "corrupt",
            "its fields do not have the length that it states",
        )
        .with_body(&patch(22, good.body[22] + 1)?),
        good.failing("reserved-algorithm", "unsupported", "algorithm 5 is reserved")
            .with_body(&patch(128 + 8, Algorithm::RESERVED_ID)?),
        good.failing("unknown-algorithm", "unsupported", "algorithm 77 is not known")
            .with_body(&patch(128 + 8, 77)?),
        good.failing("unknown-state", "unsupported", "encryption state 7 is not known")
            .with_body(&patch(52, 7)?),
        good.failing("unknown-protector", "unsupported", "protector type 9 is not known")
            .with_body(&sealed(&[by_key_file.to_vec(), unknown])?),
        good.failing("too-many-protectors", "limit", "9 protectors, more than 8")
            .with_body(&patch(53, 9)?),
        good.failing("protector-runs-over", "corrupt", "its fields are longer than the copy")
            .with_body(&patched(&good.body, |copy| copy[128 + 104 + 2..][..2].fill(255))?),
        good.failing("no-protector", "missing-key", "the header has no protector")
            .with_body(&sealed(&[])?),
        with_passphrase
            .failing("argon2-cost-too-high", "unsupported", "asks for 2097152 KiB")
            .with_body(&patched(&with_passphrase.body, costly)?),
        with_passphrase
            .failing("argon2-lanes-too-many", "unsupported", "2147483648 lanes of Argon2id")
            .with_body(&patched(&with_passphrase.body, lanes)?),
        good.failing("no-key", "missing-key", "no key for it. It opens with a key file")
            .with("key-file", ""),
        good.failing("wrong-key", "missing-key", "wrong key")
            .with_bytes("key-file", &key_bytes(65)),
    ])
}

/// Costs within the limits of a protector, and above what is given to a file that is not authentic yet.
fn costs(with_passphrase: &Case, by_passphrase: &[u8]) -> Result<Vec<Case>> {
    let dear = |kib: u32, passes: u32| {
        let mut bytes = by_passphrase.to_vec();
        bytes[4..8].copy_from_slice(&kib.to_be_bytes());
        bytes[8..12].copy_from_slice(&passes.to_be_bytes());
        bytes
    };
    let refused = |kind: &str, protectors: &[Vec<u8>]| {
        let case = with_passphrase.failing(kind, "unsupported", "its passphrase costs");
        Ok(case.with_body(&sealed(protectors)?))
    };
    Ok(vec![
        refused("dear-passphrase", &[dear(524_288, 1)])?,
        refused("dear-passes", &[dear(262_144, 7)])?,
        refused("dear-passphrase-and-wrong-one", &[dear(524_288, 1), by_passphrase.to_vec()])?
            .with("passphrase", "correct horse battery stable"),
        with_passphrase
            .clone()
            .with("kind", "dear-passphrase-before-another")
            .with_body(&sealed(&[dear(524_288, 1), by_passphrase.to_vec()])?),
    ])
}

/// A protector that names a certificate with a short key.
fn weak(with_cert: &Case, by_certificate: &[u8]) -> Result<Case> {
    let (der, key) = super::keyrings::weak_certificate();
    let mut protector = by_certificate.to_vec();
    // Behind type, flags, length, and the name `app` with its length.
    let sum = digest::digest(&digest::SHA256, &der);
    protector[8..40].copy_from_slice(sum.as_ref());
    Ok(with_cert
        .failing("weak-certificate", "unsupported", "1024")
        .with_bytes("certificate", &der)
        .with_bytes("private-key", &key)
        .with_body(&sealed(&[protector])?))
}
