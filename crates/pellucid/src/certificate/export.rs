//! What leaves a keyring: the certificate as PEM, its private key as PKCS#8 under a password, both as `openssl x509` and
//! `openssl pkcs8` read them.

use pkcs8::der::pem::LineEnding;
use pkcs8::pkcs5::pbes2;
use pkcs8::PrivateKeyInfoRef;
use zeroize::Zeroizing;

use super::{Certificate, PublicCertificate};
use crate::error::{Error, Result, Subject};
use crate::protector::Passphrase;
use crate::secret::fill_random;

/// PBKDF2-HMAC-SHA256, as OWASP asks for it in 2023: what every reader of PKCS#8 knows, scrypt and Argon2id are not.
const ITERATIONS: u32 = 600_000;
const SALT_BYTES: usize = 16;

impl PublicCertificate {
    /// The certificate as PEM (RFC 7468).
    ///
    /// # Errors
    /// None in practice.
    pub fn to_pem(&self) -> Result<String> {
        pkcs8::der::pem::encode_string("CERTIFICATE", LineEnding::LF, self.der())
            .map_err(|_| Error::corrupt(self.as_subject(), "its DER cannot be written as PEM"))
    }
}

impl Certificate {
    /// The private key as encrypted PKCS#8 in PEM: PBES2 with PBKDF2-HMAC-SHA256 and AES-256-CBC (RFC 8018).
    ///
    /// # Errors
    /// [`Error::Io`] if no randomness can be had.
    pub fn to_encrypted_pem(&self, password: &Passphrase) -> Result<Zeroizing<String>> {
        let refused =
            || Error::corrupt(self.public().as_subject(), "its private key is not PKCS#8");
        let (mut salt, mut iv) = ([0; SALT_BYTES], [0; 16]);
        fill_random(&mut salt)?;
        fill_random(&mut iv)?;
        let parameters = pbes2::Parameters::generate_pbkdf2_sha256_aes256cbc(ITERATIONS, &salt, iv)
            .map_err(|_| refused())?;
        PrivateKeyInfoRef::try_from(self.private_key())
            .and_then(|key| key.encrypt_with_params(parameters, password.expose()))
            .map_err(|_| refused())?
            .to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF)
            .map_err(|_| Error::corrupt(Subject::Key("private key"), "it cannot be written as PEM"))
    }
}
