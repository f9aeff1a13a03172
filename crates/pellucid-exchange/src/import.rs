//! Certificates and private keys as other programs write them: PEM or DER, PKCS#8 and PKCS#1, PFX, SQL Server's PVK.
//!
//! Everything here is untrusted: sizes and the cost of password derivations are limited before any work is done.

mod pvk;

use pkcs8::der::pem::PemLabel as _;
use pkcs8::der::{Decode, Encode, SecretDocument};
use pkcs8::{pkcs5, EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};
use zeroize::Zeroizing;

use pellucid_keyring::Stored;

use crate::companion;
use pellucid::certificate::{Certificate, Companion, PublicCertificate};
use pellucid::error::{Error, Result, Subject};
use pellucid::message;
use pellucid::protector::Passphrase;

/// A chain with a key of 4096 bits has about 10 KiB.
pub const FILE_BYTES_MOST: usize = 1 << 20;
/// Ten times what OWASP asks of PBKDF2-HMAC-SHA256 in 2023; a few seconds.
const ITERATIONS_MOST: u32 = 6_000_000;
/// Of scrypt: N * r * 128.
const SCRYPT_BYTES_MOST: u64 = 256 << 20;
const SCRYPT_LANES_MOST: u16 = 16;

/// Reads the certificate `name` from the bytes of its file and, unless that is a PFX, of its private key's file.
///
/// # Errors
/// SQL Server's messages 15208, 15465 and 15474; [`Error::Unsupported`] for keys and costs outside the limits;
/// [`Error::Unauthentic`] for a self-signature that does not match.
pub fn import(
    name: &str,
    certificate: &[u8],
    private_key: Option<&[u8]>,
    password: Option<&Passphrase>,
) -> Result<Stored> {
    let stored = read(name, certificate, private_key, password)?;
    stored.public().check_given()?;
    Ok(stored)
}

fn read(
    name: &str,
    certificate: &[u8],
    private_key: Option<&[u8]>,
    password: Option<&Passphrase>,
) -> Result<Stored> {
    for bytes in [Some(certificate), private_key].into_iter().flatten() {
        if bytes.len() > FILE_BYTES_MOST {
            return Err(not_valid());
        }
    }
    if let Some(der) = certificate_der(certificate) {
        let public_half = companion_of(name, certificate)?;
        let Some(private_key) = private_key else {
            let public = PublicCertificate::from_der(name, &der)?;
            return Ok(Stored::Public(match public_half {
                Some(companion) => public.with_companion(companion)?,
                None => public,
            }));
        };
        let key = private_key_der(private_key, password)?;
        let mut made = pair(name, &der, &key)?;
        let private_half = match (&public_half, companion_key(private_key, password)) {
            // Behind another program's key there may be anything.
            (None, Err(_)) => None,
            (_, found) => found?,
        };
        match (public_half, private_half) {
            (None, None) => {}
            (Some(companion), Some(key)) => {
                made = made.with_companion(companion, &key)?;
                made.check_pair()?;
            }
            (Some(_), None) => return Err(half(name, "private key's file has no companion key")),
            (None, Some(_)) => return Err(half(name, "certificate's file has no companion key")),
        }
        return Ok(Stored::Whole(made));
    }
    let (der, key) = read_pfx(certificate, password)?;
    pair(name, &der, &key).map(Stored::Whole)
}

fn pair(name: &str, der: &[u8], key: &[u8]) -> Result<Certificate> {
    let certificate = Certificate::from_parts(name, der, key, None)?;
    certificate.check_pair()?;
    Ok(certificate)
}

/// The first certificate of a PEM or DER file; none if it is something else, as a PFX is.
fn certificate_der(bytes: &[u8]) -> Option<Vec<u8>> {
    if let Some(der) = pem(bytes, "CERTIFICATE") {
        return Some(der.to_vec());
    }
    x509_parser::parse_x509_certificate(bytes).is_ok().then(|| bytes.to_vec())
}

/// The public half of the companion key in a certificate's file, if there is one. Nothing of it is verified yet.
fn companion_of(name: &str, certificate: &[u8]) -> Result<Option<Companion>> {
    let malformed = || {
        let told = "its companion key is malformed";
        Error::corrupt(Subject::Certificate(name.to_owned()), told)
    };
    let begins = format!("-----BEGIN {}-----", companion::LABEL).into_bytes();
    if !certificate.windows(begins.len()).any(|window| window == begins) {
        return Ok(None);
    }
    let block = pem(certificate, companion::LABEL).ok_or_else(malformed)?;
    companion::decode(&block).map(Some).ok_or_else(malformed)
}

/// The private half of a companion key behind the private key, if the second block of the file is one.
fn companion_key(
    bytes: &[u8],
    password: Option<&Passphrase>,
) -> Result<Option<Zeroizing<Vec<u8>>>> {
    if let Some(der) = pem_at(bytes, EncryptedPrivateKeyInfoRef::PEM_LABEL, 1) {
        return decrypt(&der, password).map(|key| companion::from_key_info(&key));
    }
    let der = pem_at(bytes, PrivateKeyInfoRef::PEM_LABEL, 1);
    Ok(der.and_then(|key| companion::from_key_info(&key)))
}

/// Of two halves only one is there.
fn half(name: &str, told: &str) -> Error {
    Error::misuse(
        Subject::Certificate(name.to_owned()),
        format!("the {told}: both files have to be of the same export, one made after the companion key was added"),
    )
}

/// The body of the first PEM block with `label`, wherever it begins.
fn pem(bytes: &[u8], label: &str) -> Option<Zeroizing<Vec<u8>>> {
    pem_at(bytes, label, 0)
}

/// The body of the block with `label` that has so many of that label before it.
fn pem_at(bytes: &[u8], label: &str, before: usize) -> Option<Zeroizing<Vec<u8>>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let (from, _) = text.match_indices(&begin).nth(before)?;
    let to = from + text[from..].find(&end)? + end.len();
    // The same line ends throughout: files come from other systems.
    let block = Zeroizing::new(text[from..to].replace("\r\n", "\n") + "\n");
    let (found, der) = pkcs8::der::pem::decode_vec(block.as_bytes()).ok()?;
    (found == label).then(|| Zeroizing::new(der))
}

/// A private key as PKCS#8.
fn private_key_der(bytes: &[u8], password: Option<&Passphrase>) -> Result<Zeroizing<Vec<u8>>> {
    if pvk::is_pvk(bytes) {
        return pvk::read(bytes, password);
    }
    if let Some(der) = pem(bytes, EncryptedPrivateKeyInfoRef::PEM_LABEL) {
        return decrypt(&der, password);
    }
    if let Some(der) = pem(bytes, PrivateKeyInfoRef::PEM_LABEL) {
        return Ok(der);
    }
    if let Some(der) = pem(bytes, "RSA PRIVATE KEY") {
        return from_pkcs1(&der);
    }
    if EncryptedPrivateKeyInfoRef::from_der(bytes).is_ok() {
        return decrypt(bytes, password);
    }
    if PrivateKeyInfoRef::from_der(bytes).is_ok() {
        return Ok(Zeroizing::new(bytes.to_vec()));
    }
    Err(not_valid())
}

/// PKCS#1's key as PKCS#8 (RFC 5208, RFC 8017 A.1.2).
fn from_pkcs1(der: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    let algorithm = pkcs8::AlgorithmIdentifierRef {
        oid: pkcs8::ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1"),
        parameters: Some(pkcs8::der::asn1::AnyRef::NULL),
    };
    let key = pkcs8::der::asn1::OctetStringRef::new(der).map_err(|_| not_valid())?;
    PrivateKeyInfoRef::new(algorithm, key).to_der().map(Zeroizing::new).map_err(|_| not_valid())
}

fn decrypt(der: &[u8], password: Option<&Passphrase>) -> Result<Zeroizing<Vec<u8>>> {
    let sealed = EncryptedPrivateKeyInfoRef::from_der(der).map_err(|_| not_valid())?;
    check_cost(&sealed.encryption_algorithm)?;
    let password = password.ok_or_else(wrong_password)?;
    let opened: SecretDocument = sealed.decrypt(password.expose()).map_err(|_| wrong_password())?;
    Ok(Zeroizing::new(opened.as_bytes().to_vec()))
}

/// Refused before any work: what would burn memory or hours.
fn check_cost(scheme: &pkcs5::EncryptionScheme) -> Result<()> {
    let too_dear = |what: String| {
        Err(Error::unsupported(
            Subject::Key("private key"),
            format!("its password derivation {what}"),
        ))
    };
    let Some(parameters) = scheme.pbes2() else {
        // PBES1 has no scrypt, and its count is limited alike by the library.
        return Ok(());
    };
    if let Some(kdf) = parameters.kdf.pbkdf2() {
        if kdf.iteration_count > ITERATIONS_MOST {
            let count = kdf.iteration_count;
            return too_dear(format!(
                "asks for {count} iterations; at most {ITERATIONS_MOST} are done"
            ));
        }
    }
    if let Some(kdf) = parameters.kdf.scrypt() {
        let bytes = kdf.cost_parameter.saturating_mul(128 * u64::from(kdf.block_size));
        if bytes > SCRYPT_BYTES_MOST || kdf.parallelization > SCRYPT_LANES_MOST {
            return too_dear(format!(
                "asks for {bytes} bytes of memory; at most {SCRYPT_BYTES_MOST} are given"
            ));
        }
    }
    Ok(())
}

/// The certificate and key of a PFX (PKCS#12, RFC 7292). Its iterations are limited by the library.
fn read_pfx(bytes: &[u8], password: Option<&Passphrase>) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>)> {
    use p12_keystore::{error::Error as PfxError, KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
    let password = match password.map(|password| std::str::from_utf8(password.expose())) {
        Some(Ok(password)) => password,
        Some(Err(_)) => return Err(wrong_password()),
        None => "",
    };
    let store =
        KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Strict).map_err(|error| {
            match error {
                PfxError::MacError(_) => wrong_password(),
                _ => not_valid(),
            }
        })?;
    let mut chains = store.entries().filter_map(|(_, entry)| match entry {
        KeyStoreEntry::PrivateKeyChain(chain) => Some(chain),
        _ => None,
    });
    let (Some(chain), None) = (chains.next(), chains.next()) else {
        return Err(Error::misuse(
            Subject::Key("private key"),
            "a PFX file has to hold one certificate with its private key",
        ));
    };
    let leaf = chain.certs().first().ok_or_else(not_valid)?;
    Ok((leaf.as_der().to_vec(), Zeroizing::new(chain.key().as_der().to_vec())))
}

fn not_valid() -> Error {
    Error::message(message::FILE_NOT_VALID, "")
}

fn wrong_password() -> Error {
    Error::message(message::PASSWORD_INVALID, "")
}
