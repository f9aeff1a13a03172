//! Who signed a backup set. A set's key makes all its tags right, for each of its holders; only a certificate's private key
//! makes its signature.

use pellucid::error::{Error, Result, Subject};
use pellucid::media::{Manifest, SetHeader, Signing};
use pellucid::protector::{KeySource, Protector};

/// Who signed a set, as far as it can be known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// Nobody: it is of version 1, or no private key was at hand.
    Nobody,
    /// A certificate, and the signature is right.
    Certificate {
        /// Its name in the keyring.
        name: String,
        /// SHA-256 of its DER bytes.
        thumbprint: [u8; 32],
    },
    /// A certificate that is not at hand, so that nothing is known of the signature.
    NotHere {
        /// Its name in the set's header.
        name: String,
        /// SHA-256 of its DER bytes.
        thumbprint: [u8; 32],
    },
}

impl Signer {
    /// Finds out who signed a set. This says nothing about its chunks: the roots in the manifest do, which have to be
    /// compared with them.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] for a signature that is wrong, by a certificate that does not protect the set, or by one that does
    /// so by RSA alone although it had a companion key.
    pub fn of(header: &SetHeader, manifest: &Manifest, keys: &dyn KeySource) -> Result<Self> {
        let Signing::Signed(signature) = &manifest.signing else { return Ok(Self::Nobody) };
        let thumbprint = signature.thumbprint;
        let protectors = header.protectors()?;
        let own = protectors.iter().find_map(|protector| match protector {
            Protector::Certificate(own)
                if !own.is_recovery() && *own.thumbprint() == thumbprint =>
            {
                Some(own)
            }
            _ => None,
        });
        let Some(own) = own else {
            return Err(Error::unauthentic(
                Subject::BackupSet(header.position),
                "it is signed by a certificate that does not protect it",
            ));
        };
        // A keyring that cannot be read has no certificate: other protectors open the set without one.
        match keys.public_certificate(&thumbprint) {
            Ok(Some(certificate)) => {
                manifest.check_signature(&certificate)?;
                if !keys.allow_classical() {
                    own.check_downgrade(&certificate, header.begun / 1_000_000)?;
                }
                // The name in the header is a hint alone: whoever made the set has chosen it.
                Ok(Self::Certificate { name: certificate.name().to_owned(), thumbprint })
            }
            _ => Ok(Self::NotHere { name: own.name().to_owned(), thumbprint }),
        }
    }

    /// Whether a certificate signed it, and that was checked.
    pub fn is_known(&self) -> bool {
        matches!(self, Self::Certificate { .. })
    }
}

/// What is said of a set without a signature where signed ones belong.
pub fn not_signed(position: u32, signer: &Signer, why: &str) -> Error {
    let what = match signer {
        Signer::NotHere { .. } => {
            "its signature cannot be checked: the certificate that it names is not at hand"
        }
        _ => "it is NOT signed",
    };
    Error::misuse(
        Subject::BackupSet(position),
        format!(
            "{what}, so that whoever has its key can have made it, and {why}: take another set or another copy; with \
             `--allow-unsigned`, of statements `PELLUCID_ALLOW_UNSIGNED=1` in the environment, it is believed as it is"
        ),
    )
}
