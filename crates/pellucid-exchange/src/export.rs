//! What leaves a keyring: the certificate as PEM, its private key as PKCS#8 under a password, both as `openssl x509` and
//! `openssl pkcs8` read them.

use pkcs8::der::pem::LineEnding;
use pkcs8::pkcs5::pbes2;
use pkcs8::PrivateKeyInfoRef;
use zeroize::Zeroizing;

use pellucid::certificate::{Certificate, PublicCertificate};
use pellucid::error::{Error, Result, Subject};
use pellucid::protector::Passphrase;
use pellucid::secret::fill_random;
use pellucid_keyring::Encoding;

use crate::companion;

/// PBKDF2-HMAC-SHA256, as OWASP asks for it in 2023: what every reader of PKCS#8 knows, scrypt and Argon2id are not.
const ITERATIONS: u32 = 600_000;
const SALT_BYTES: usize = 16;

/// PEM (RFC 7468); a private key as encrypted PKCS#8: PBES2 with PBKDF2-HMAC-SHA256 and AES-256-CBC (RFC 8018).
pub const PEM: Encoding = Encoding { public: to_pem, private: to_encrypted_pem };

/// The certificate as PEM (RFC 7468), and behind it the public half of its companion key, which other programs pass over.
///
/// # Errors
/// None in practice.
pub fn to_pem(certificate: &PublicCertificate) -> Result<String> {
    let pem = |label, bytes: &[u8]| {
        pkcs8::der::pem::encode_string(label, LineEnding::LF, bytes)
            .map_err(|_| Error::corrupt(subject(certificate), "it cannot be written as PEM"))
    };
    let label = if certificate.is_key_alone() { "PUBLIC KEY" } else { "CERTIFICATE" };
    let mut text = pem(label, certificate.der())?;
    if let Some(companion) = certificate.companion() {
        text.push_str(&pem(companion::LABEL, &companion::encode(companion))?);
    }
    Ok(text)
}

/// The private key as encrypted PKCS#8 in PEM: PBES2 with PBKDF2-HMAC-SHA256 and AES-256-CBC (RFC 8018). Behind it the private
/// half of the companion key in the same form (RFC 9935).
///
/// # Errors
/// [`Error::Io`] if no randomness can be had.
pub fn to_encrypted_pem(
    certificate: &Certificate,
    password: &Passphrase,
) -> Result<Zeroizing<String>> {
    let refused = || Error::corrupt(subject(certificate.public()), "its private key is not PKCS#8");
    let key = PrivateKeyInfoRef::try_from(certificate.private_key()?).map_err(|_| refused())?;
    let text = encrypted(&key, password)?;
    let Some(companion_key) = certificate.companion_key() else { return Ok(text) };
    let key = companion::private_key(companion_key);
    let key = companion::key_info(&key).ok_or_else(refused)?;
    let second = encrypted(&key, password)?;
    // Of its full size at once: growing would leave a copy behind.
    let mut both = Zeroizing::new(String::with_capacity(text.len() + second.len()));
    both.push_str(&text);
    both.push_str(&second);
    Ok(both)
}

fn encrypted(key: &PrivateKeyInfoRef<'_>, password: &Passphrase) -> Result<Zeroizing<String>> {
    let refused = || Error::corrupt(Subject::Key("private key"), "it cannot be written as PEM");
    let (mut salt, mut iv) = ([0; SALT_BYTES], [0; 16]);
    fill_random(&mut salt)?;
    fill_random(&mut iv)?;
    let parameters = pbes2::Parameters::generate_pbkdf2_sha256_aes256cbc(ITERATIONS, &salt, iv)
        .map_err(|_| refused())?;
    key.encrypt_with_params(parameters, password.expose())
        .map_err(|_| refused())?
        .to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF)
        .map_err(|_| refused())
}

fn subject(certificate: &PublicCertificate) -> Subject {
    Subject::Certificate(certificate.name().to_owned())
}
