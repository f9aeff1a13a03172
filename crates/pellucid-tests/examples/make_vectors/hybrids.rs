//! Vectors of hybrid wraps. The protectors of those that are refused are put together here from docs/format.md, by somebody who has
//! the certificate's RSA key and lacks its companion's: whoever breaks RSA.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RsaKeyPair, RSA_PSS_SHA256};
use pellucid::certificate::{enable_hybrid, Certificate, CertificateRequest, Companion};
use pellucid::derive::commitment;
use pellucid::protector::{self, Binding, Purpose, Wrapping};
use pellucid::secret::Secret32;
use pellucid::{Algorithm, Dek, Result};

use super::bundles::{entry, sealed_around, ID, MADE};
use super::keyrings::{sealed_file, versioned};
use super::{headers, key_bytes, Case, FILE_ID};

/// When the companion was added: an hour before the bundles were made.
const ADDED: u64 = MADE - 3600;
/// Payload behind the name `app` and the thumbprint: the companion's thumbprint, the ciphertexts.
const COMPANION_AT: usize = 4 + 1 + 3 + 32;
const KEM_AT: usize = COMPANION_AT + 32;
const WRAPPED_AT: usize = KEM_AT + 1088;
const RSA_AT: usize = WRAPPED_AT + 60 + 2;

/// A certificate with a companion.
pub fn certificate(added: u64) -> Result<Certificate> {
    enable_hybrid();
    let request = CertificateRequest { rsa_bits: 2048, ..CertificateRequest::new("Vectors", 365) };
    Certificate::generate("app", &request)?.add_companion(added)
}

/// Certificate and companion as lines of a case.
pub fn with_keys(case: Case, own: &Certificate) -> Case {
    let companion = own.public().companion().unwrap();
    case.with_bytes("certificate", own.public().der())
        .with_bytes("private-key", own.private_key().unwrap())
        .with("companion-added", companion.added())
        .with_bytes("companion", companion.key())
        .with_bytes("companion-signature", companion.signature())
        .with_bytes("companion-private-key", own.companion_key().unwrap())
}

fn key() -> Dek {
    Dek::from_secret(Secret32::new(&mut key_bytes(48)))
}

fn wrapped(key: &Dek, id: &[u8; 16], purpose: Purpose, with: &Wrapping<'_>) -> Result<Vec<u8>> {
    let commitment = commitment(key, id)?;
    let binding = Binding { purpose, id, algorithm: Algorithm::Aes256, commitment: &commitment };
    let mut bytes = Vec::new();
    protector::wrap(key, &binding, with)?.encode(&mut bytes);
    Ok(bytes)
}

/// The protector with another signature, made with the certificate's RSA key.
fn signed(mut bytes: Vec<u8>, own: &Certificate) -> Result<Vec<u8>> {
    let at = bytes.len() - own.public().rsa_bits() / 8;
    let mut message = b"pellucid/1 hybrid protector".to_vec();
    message.push(3);
    message.extend_from_slice(&ID);
    message.push(Algorithm::Aes256.id());
    message.extend_from_slice(&commitment(&key(), &ID)?);
    message.extend_from_slice(&bytes[4..at - 2]);
    let pair = RsaKeyPair::from_pkcs8(own.private_key()?).unwrap();
    pair.sign(&RSA_PSS_SHA256, &SystemRandom::new(), &message, &mut bytes[at..]).unwrap();
    Ok(bytes)
}

pub fn cases() -> Result<Vec<Case>> {
    let own = certificate(ADDED)?;
    let by_both = Wrapping::Certificate(&own);
    let wrap = |id: &[u8; 16]| wrapped(&key(), id, Purpose::Bundle, &by_both);
    let one = wrap(&ID)?;
    let another = wrap(&ID)?;
    let classical = Certificate::from_parts("app", own.public().der(), own.private_key()?, None)?;
    let by_rsa = wrapped(&key(), &ID, Purpose::Bundle, &Wrapping::Certificate(&classical))?;
    let other = classical.clone().add_companion(ADDED)?;

    let entries = entries(&own);
    let body = |protector: &[u8]| sealed_around(protector, &key_bytes(48), &entries.concat());
    let good = Case::new("bundle", "hybrid")
        .with("expect", "success")
        .with("made", MADE)
        .with_bytes("database-master-key", &key_bytes(160))
        .with_bytes("app-certificate", own.public().der())
        .with_bytes("app-private-key", own.private_key()?)
        .with_bytes("file-id", &FILE_ID)
        .with("sequence", 5)
        .with("database-path", "/srv/app.db");
    let good = with_keys(good, &own).with_body(&body(&one)?);
    let told = "the wrapped key does not open";
    let changed = |kind: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = one.clone();
        change(&mut bytes);
        let case = good.failing(kind, "unauthentic", told);
        Ok::<_, pellucid::Error>(case.with_body(&body(&signed(bytes, &own)?)?))
    };
    let garbage =
        |at: usize| move |bytes: &mut Vec<u8>| bytes[at..at + 32].copy_from_slice(&key_bytes(200));
    let unsigned = {
        let mut bytes = wrapped(&key(), &ID, Purpose::Bundle, &Wrapping::Recovery(own.public()))?;
        bytes[1] = 0;
        bytes
    };
    let mut cut = one.clone();
    cut.remove(KEM_AT);
    let length = (cut.len() - 4) as u16;
    cut[2..4].copy_from_slice(&length.to_be_bytes());
    let of_another_file = wrap(&FILE_ID)?;
    let companion = |own: &Certificate| own.public().companion().unwrap().clone();
    let swapped = with_keys(good.clone(), &other)
        .with_bytes("companion-signature", companion(&own).signature());

    let for_public_half = {
        let bytes = wrapped(&key(), &ID, Purpose::Bundle, &Wrapping::Recovery(own.public()))?;
        good.clone()
            .with("kind", "hybrid-recovery")
            .with("allow-recovery", "yes")
            .with_body(&body(&bytes)?)
    };
    let mut cases = vec![
        changed("hybrid-garbage-kem", &garbage(KEM_AT))?,
        changed("hybrid-garbage-rsa", &garbage(RSA_AT))?,
        changed("hybrid-garbage-key", &garbage(WRAPPED_AT + 12))?,
        changed("hybrid-kem-of-another", &|bytes| {
            bytes[KEM_AT..WRAPPED_AT].copy_from_slice(&another[KEM_AT..WRAPPED_AT]);
        })?,
        changed("hybrid-rsa-of-another", &|bytes| {
            bytes[RSA_AT..RSA_AT + 256].copy_from_slice(&another[RSA_AT..RSA_AT + 256]);
        })?,
        changed("hybrid-of-another-set", &|bytes| bytes.clone_from(&of_another_file))?,
        good.failing("hybrid-not-signed", "unauthentic", "was not made by this certificate")
            .with_body(&body(&unsigned)?),
        good.failing("hybrid-cut", "corrupt", "a protector's fields are malformed")
            .with_body(&body(&cut)?),
        good.failing("hybrid-downgrade", "unauthentic", "wrapped by RSA alone after")
            .with_body(&body(&by_rsa)?),
        // The same set, made before the companion was added.
        with_keys(good.clone(), &classical.clone().add_companion(MADE)?)
            .with("kind", "hybrid-classical-before")
            .with_body(&body(&by_rsa)?),
        with_keys(
            good.failing("hybrid-other-companion", "missing-key", "another companion key than"),
            &other,
        ),
        swapped.failing("hybrid-swapped-companion", "unauthentic", "was not signed by it"),
        good.failing("hybrid-without-companion", "missing-key", "whose companion key is not in")
            .with("companion-added", "none"),
        for_public_half,
    ];
    cases.push(in_a_header(&own)?);
    cases.extend(keyring(&own)?);
    // With the kind of a certificate without a companion.
    let mut misnamed = entries.clone();
    misnamed[1][0] = 3;
    let misnamed = sealed_around(&one, &key_bytes(48), &misnamed.concat())?;
    cases.push(
        good.failing("hybrid-entry-of-another-kind", "corrupt", "its entries do not fit")
            .with_body(&misnamed),
    );
    cases.push(good);
    Ok(cases)
}

/// Entries of a bundle, one of them the certificate with its companion.
fn entries(own: &Certificate) -> [Vec<u8>; 3] {
    let id = pellucid::hash::hex(&FILE_ID);
    let mut database = vec![0, 0, 0, 0, 0, 0, 0, 5, 1, 1];
    database.extend_from_slice(own.public().thumbprint());
    database.extend_from_slice(b"/srv/app.db");
    let certificate = content(own, own.public().companion().unwrap());
    [entry(1, "", &key_bytes(160)), entry(5, "app", &certificate), entry(4, &id, &database)]
}

/// Hybrid wraps are not for databases.
fn in_a_header(own: &Certificate) -> Result<Case> {
    let mut bytes = wrapped(&super::dek(), &FILE_ID, Purpose::Backup, &Wrapping::Certificate(own))?;
    bytes[1] = 0;
    let case =
        with_keys(headers::header_case("hybrid"), own).with_body(&headers::sealed(&[bytes])?);
    Ok(case.failing("hybrid-protector", "unsupported", "hybrid wraps are for backups and bundles"))
}

/// The content of a certificate's file in a keyring.
fn content(own: &Certificate, companion: &Companion) -> Vec<u8> {
    let der = own.public().der();
    let mut content = 1_700_000_000u64.to_be_bytes().to_vec();
    content.extend_from_slice(&[255; 4]);
    content.extend_from_slice(&companion.added().to_be_bytes());
    content.extend_from_slice(companion.key());
    content.extend_from_slice(&(companion.signature().len() as u16).to_be_bytes());
    content.extend_from_slice(companion.signature());
    content.extend_from_slice(&(der.len() as u32).to_be_bytes());
    content.extend_from_slice(der);
    content.extend_from_slice(own.companion_key().unwrap());
    content.extend_from_slice(own.private_key().unwrap());
    content
}

fn keyring(own: &Certificate) -> Result<Vec<Case>> {
    let (service, master) = (key_bytes(96), key_bytes(160));
    let companion = own.public().companion().unwrap();
    let hybrid = content(own, companion);
    let file = |version, content: &[u8]| versioned(&master, version, 2, 0, "app", content);
    let good = with_keys(Case::new("keyring", "hybrid-certificate"), own)
        .with("expect", "success")
        .with_bytes("service-key", &service)
        .with_bytes("database-master-key", &master)
        .with("path", "keyring/certificates/app")
        .with_bytes("master-key-file", &sealed_file(&service, 1, "", &master)?)
        .with("backed-up", 1_700_000_000u64)
        .with_body(&file(2, &hybrid)?);
    let mut other = companion.key().to_vec();
    other[0] ^= 1;
    let swapped = Companion::new(companion.added(), &other, companion.signature()).unwrap();
    Ok(vec![
        good.failing("hybrid-in-version-1", "corrupt", "its content is that of another version")
            .with_body(&file(1, &hybrid)?),
        good.failing("hybrid-swapped-companion", "unauthentic", "was not signed by it")
            .with_body(&file(2, &content(own, &swapped))?),
        good.failing("hybrid-newer-version", "unsupported", "version 3 is newer than 2")
            .with_body(&file(3, &hybrid)?),
        good,
    ])
}
