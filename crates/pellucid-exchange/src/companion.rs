//! The companion key of a certificate in exported files: a block of its own behind the certificate, and PKCS#8 behind the private
//! key.
//!
//! Layout: docs/format.md, "Companion key".

use pkcs8::der::asn1::OctetStringRef;
use pkcs8::{AlgorithmIdentifierRef, ObjectIdentifier, PrivateKeyInfoRef};
use zeroize::Zeroizing;

use pellucid::certificate::{Companion, COMPANION_BYTES, COMPANION_PRIVATE_BYTES};

/// The label of the block with the public half.
pub const LABEL: &str = "PELLUCID COMPANION KEY";

/// `id-alg-ml-kem-768` (RFC 9935, 3).
const ML_KEM_768: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.4.2");

/// SubjectPublicKeyInfo of an ML-KEM-768 key (RFC 9935, 4) before the key itself.
const PUBLIC_KEY_INFO: [u8; 22] = [
    0x30, 0x82, 0x04, 0xb2, 0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x04,
    0x02, 0x03, 0x82, 0x04, 0xa1, 0x00,
];

/// `expandedKey` of ML-KEM-768-PrivateKey (RFC 9935, 6) before the key itself: an OCTET STRING of 2,400 bytes.
const EXPANDED_KEY: [u8; 4] = [0x04, 0x82, 0x09, 0x60];

/// `[SubjectPublicKeyInfo 1206][added 8][signature]`.
pub fn encode(companion: &Companion) -> Vec<u8> {
    let added = companion.added().to_be_bytes();
    [&PUBLIC_KEY_INFO[..], companion.key(), &added, companion.signature()].concat()
}

/// Reads what [`encode`] wrote.
pub fn decode(bytes: &[u8]) -> Option<Companion> {
    let rest = bytes.strip_prefix(&PUBLIC_KEY_INFO)?;
    let (key, rest) = rest.split_at_checked(COMPANION_BYTES)?;
    let (added, signature) = rest.split_first_chunk()?;
    Companion::new(u64::from_be_bytes(*added), key, signature)
}

/// The private half as ML-KEM-768-PrivateKey.
pub fn private_key(expanded: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(EXPANDED_KEY.len() + expanded.len()));
    bytes.extend_from_slice(&EXPANDED_KEY);
    bytes.extend_from_slice(expanded);
    bytes
}

/// The same as PKCS#8.
pub fn key_info(private_key: &[u8]) -> Option<PrivateKeyInfoRef<'_>> {
    let algorithm = AlgorithmIdentifierRef { oid: ML_KEM_768, parameters: None };
    Some(PrivateKeyInfoRef::new(algorithm, OctetStringRef::new(private_key).ok()?))
}

/// The expanded private half in a PKCS#8 of an ML-KEM-768 key. `None` for any other key, and for one that is a seed alone.
pub fn from_key_info(der: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let info = PrivateKeyInfoRef::try_from(der).ok()?;
    let key = info.private_key.as_bytes().strip_prefix(&EXPANDED_KEY)?;
    let fits = info.algorithm.oid == ML_KEM_768 && key.len() == COMPANION_PRIVATE_BYTES;
    fits.then(|| Zeroizing::new(key.to_vec()))
}
