//! A private key as a token holds it: whoever asks has its place, what it signs and what it decrypts, and never the key.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{OaepPrivateDecryptingKey, PrivateDecryptingKey, OAEP_SHA256_MGF1SHA256};
use aws_lc_rs::signature::{KeyPair, RsaKeyPair, RSA_PSS_SHA256};
use pellucid::certificate::{KeyPlace, PrivateKey};
use pellucid::error::{Error, Result, Subject};
use pellucid::secret::Secret32;

/// An RSA key in this process that answers as one elsewhere does.
#[derive(Debug)]
pub struct Held {
    place: KeyPlace,
    signing: RsaKeyPair,
    decrypting: PrivateDecryptingKey,
}

impl Held {
    /// A key in PKCS#8 at a place.
    pub fn new(place: KeyPlace, private_key: &[u8]) -> Self {
        let signing = RsaKeyPair::from_pkcs8(private_key).unwrap();
        let decrypting = PrivateDecryptingKey::from_pkcs8(private_key).unwrap();
        Self { place, signing, decrypting }
    }

    /// The public half, a SubjectPublicKeyInfo in DER.
    pub fn public_key(&self) -> Vec<u8> {
        use aws_lc_rs::encoding::AsDer;
        self.signing.public_key().as_der().unwrap().as_ref().to_vec()
    }
}

impl PrivateKey for Held {
    fn place(&self) -> &KeyPlace {
        &self.place
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let mut signature = vec![0; self.signing.public_modulus_len()];
        self.signing.sign(&RSA_PSS_SHA256, &SystemRandom::new(), message, &mut signature).unwrap();
        Ok(signature)
    }

    fn decrypt(&self, wrapped: &[u8], label: &[u8]) -> Result<Secret32> {
        let key = OaepPrivateDecryptingKey::new(self.decrypting.clone()).unwrap();
        let mut out = vec![0; key.min_output_size()];
        let opened = key.decrypt(&OAEP_SHA256_MGF1SHA256, wrapped, &mut out, Some(label));
        opened
            .ok()
            .and_then(|secret| Secret32::from_slice(secret))
            .ok_or_else(|| Error::unauthentic(Subject::Key("provider key"), "does not open it"))
    }
}
