//! The key and the protectors of a backup set. A sealed database is never backed up in clear.

use pellucid::certificate::Certificate;
use pellucid::derive::commitment;
use pellucid::header::Header;
use pellucid::media::{SetHeader, SetKeys};
use pellucid::protector::{KeySource, Protector};
use pellucid::{Algorithm, Dek, Error, Result, Subject};
use pellucid_vfs::seal_request::{Credentials, Protection};

/// Makes the key of a set, its protectors and its commitment, and writes them into `header`.
///
/// Without `protections` the set gets the protectors of the database's DEK.
///
/// # Errors
/// [`Error::MissingKey`], which names a protector that cannot be made.
pub fn seal(
    header: &mut SetHeader,
    algorithm: Algorithm,
    protections: &[Protection],
    source: Option<&Header>,
    credentials: &Credentials,
) -> Result<SetKeys> {
    let key = Dek::random()?;
    header.algorithm = Some(algorithm);
    header.commitment = commitment(&key, &header.set)?;
    header.page_hash_key = [0; 32];
    let mut protectors = Vec::new();
    {
        let binding = header.binding()?;
        for protection in protections {
            protectors.push(protection.wrap(&key, &binding)?);
        }
        if let (true, Some(source)) = (protections.is_empty(), source) {
            let old = source.current_dek()?.binding(&source.file_id);
            for bytes in &source.protectors {
                let (protector, _) = Protector::decode(bytes)?;
                protectors.push(protector.again(&old, &binding, &key, credentials)?);
            }
        }
    }
    if protectors.is_empty() {
        return Err(Error::misuse(Subject::Container, "nothing is named that would open the set"));
    }
    header.protectors = protectors.iter().map(Protector::encoded).collect();
    SetKeys::derive(&key, &header.set, algorithm)
}

/// The SHA-256 thumbprint of the first certificate that protects the DEK; zeros for none.
pub fn thumbprint(source: &Header) -> [u8; 32] {
    let certificate = |bytes: &Vec<u8>| match Protector::decode(bytes) {
        Ok((Protector::Certificate(protector), _)) => Some(*protector.thumbprint()),
        _ => None,
    };
    source.protectors.iter().find_map(certificate).unwrap_or_default()
}

/// The certificate that signs a set under `protectors`: the first one whose private key is at hand.
pub fn signer(protectors: &[Vec<u8>], credentials: &Credentials) -> Option<Certificate> {
    let at_hand = |bytes: &Vec<u8>| match Protector::decode(bytes) {
        Ok((Protector::Certificate(own), _)) if !own.is_recovery() => {
            credentials.certificate(own.thumbprint()).ok().flatten()
        }
        _ => None,
    };
    protectors.iter().find_map(at_hand)
}
