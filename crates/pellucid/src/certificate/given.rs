//! What a certificate has to be, whichever way it comes in: its key's size, and the signature that it makes of itself.

use aws_lc_rs::signature::{
    UnparsedPublicKey, VerificationAlgorithm, RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

use super::{PublicCertificate, RSA_BITS};
use crate::error::{Error, Result, Subject};

/// Signatures of RSA keys by their object identifier. With MD5 and MD2, which are not here, none is checked.
const ALGORITHMS: [(&str, &[&dyn VerificationAlgorithm]); 5] = [
    ("1.2.840.113549.1.1.5", &[&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY]),
    ("1.2.840.113549.1.1.11", &[&RSA_PKCS1_2048_8192_SHA256]),
    ("1.2.840.113549.1.1.12", &[&RSA_PKCS1_2048_8192_SHA384]),
    ("1.2.840.113549.1.1.13", &[&RSA_PKCS1_2048_8192_SHA512]),
    (
        "1.2.840.113549.1.1.10",
        &[&RSA_PSS_2048_8192_SHA256, &RSA_PSS_2048_8192_SHA384, &RSA_PSS_2048_8192_SHA512],
    ),
];

/// Refuses a key that is too short to protect anything, or too long to be used: the bits of an RSA key.
///
/// # Errors
/// [`Error::Unsupported`] about `subject`.
pub(super) fn check_key(parsed: &X509Certificate<'_>, subject: &Subject) -> Result<()> {
    let Ok(PublicKey::RSA(key)) = parsed.public_key().parsed() else {
        return Err(Error::unsupported(subject.clone(), "its key is not an RSA key"));
    };
    let modulus = key.modulus.iter().skip_while(|byte| **byte == 0).count();
    check_bits(modulus * 8, subject)
}

/// Refuses an RSA key of so many bits, wherever it comes from.
///
/// # Errors
/// [`Error::Unsupported`] about `subject`.
pub(super) fn check_bits(bits: usize, subject: &Subject) -> Result<()> {
    match RSA_BITS.contains(&bits) {
        true => Ok(()),
        false => Err(Error::unsupported(
            subject.clone(),
            format!("its RSA key has {bits} bits; 2048 to 4096 are supported"),
        )),
    }
}

impl PublicCertificate {
    /// Refuses a certificate that says it signed itself and did not: its bytes were changed after it
    /// was made, or its maker never had the private key. For certificates that come from elsewhere;
    /// those in the keyring are authenticated by it. Refuses a companion that it did not sign.
    ///
    /// # Errors
    /// [`Error::Unauthentic`].
    pub fn check_given(&self) -> Result<()> {
        if self.is_key_alone {
            return Ok(());
        }
        self.check_companion()?;
        let (_, parsed) = X509Certificate::from_der(self.der())
            .map_err(|_| Error::corrupt(self.as_subject(), "not an X.509 certificate in DER"))?;
        if parsed.issuer().as_raw() != parsed.subject().as_raw() {
            return Ok(());
        }
        let named = parsed.signature_algorithm.algorithm.to_id_string();
        let Some((_, algorithms)) = ALGORITHMS.iter().find(|(id, _)| *id == named) else {
            return Ok(());
        };
        let (signed, signature) = (parsed.tbs_certificate.as_ref(), &parsed.signature_value.data);
        let matches = algorithms.iter().any(|algorithm| {
            UnparsedPublicKey::new(*algorithm, &self.public_key).verify(signed, signature).is_ok()
        });
        match matches {
            true => Ok(()),
            false => Err(Error::unauthentic(
                self.as_subject(),
                "its self-signature does not match: it was changed, or made without its private key",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Certificate, CertificateRequest};
    use super::*;

    #[test]
    fn a_changed_byte_of_a_self_signed_certificate_is_refused() {
        let certificate =
            Certificate::generate("app", &CertificateRequest::new("App", 10)).unwrap();
        certificate.public().check_given().unwrap();
        let der = certificate.public().der();
        let at = der.windows(3).position(|window| window == b"App").unwrap();
        for place in [at, der.len() - 1] {
            let mut changed = der.to_vec();
            // In both names, so that it still says it signed itself.
            let last = changed.windows(3).rposition(|window| window == b"App").unwrap();
            changed[place] ^= 1;
            if place == at && last != at {
                changed[last] ^= 1;
            }
            let read = PublicCertificate::from_der("app", &changed).unwrap();
            let told = read.check_given().unwrap_err();
            assert!(matches!(told, Error::Unauthentic { .. }), "{told}");
        }
    }
}
