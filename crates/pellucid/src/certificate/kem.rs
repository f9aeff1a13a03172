//! ML-KEM-768 (FIPS 203), by aws-lc-rs, for programs that ask for it.
//!
//! Backups and bundles need it, and opening a database does not. `libpellucid.so` never calls [`enable_hybrid`], so that the
//! linker leaves ML-KEM out of it. Where it is not there, nothing is wrapped or opened in its place.

use std::sync::OnceLock;

use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};
use zeroize::Zeroizing;

use crate::secret::Secret32;

type Pair = (Vec<u8>, Zeroizing<Vec<u8>>);
type Encapsulated = (Vec<u8>, Secret32);

struct Kem {
    generate: fn() -> Option<Pair>,
    encapsulate: fn(&[u8]) -> Option<Encapsulated>,
    decapsulate: fn(&[u8], &[u8]) -> Option<Secret32>,
}

static KEM: OnceLock<Kem> = OnceLock::new();

/// Lets this process make and open hybrid wraps. A program that makes or reads backups or bundles calls it first.
pub fn enable_hybrid() {
    KEM.get_or_init(|| Kem {
        generate: generate_pair,
        encapsulate: encapsulate_to,
        decapsulate: decapsulate_by,
    });
}

/// Whether this process has it.
pub fn is_here() -> bool {
    KEM.get().is_some()
}

/// A new pair: public key, and private key expanded.
pub fn generate() -> Option<Pair> {
    (KEM.get()?.generate)()
}

/// A ciphertext and its shared secret.
pub fn encapsulate(public_key: &[u8]) -> Option<Encapsulated> {
    (KEM.get()?.encapsulate)(public_key)
}

/// The shared secret of a ciphertext. One of another key gives another secret and no error (FIPS 203, implicit rejection).
pub fn decapsulate(private_key: &[u8], ciphertext: &[u8]) -> Option<Secret32> {
    (KEM.get()?.decapsulate)(private_key, ciphertext)
}

fn generate_pair() -> Option<Pair> {
    let pair = DecapsulationKey::generate(&ML_KEM_768).ok()?;
    let public_key = pair.encapsulation_key().ok()?.key_bytes().ok()?;
    let private_key = Zeroizing::new(pair.key_bytes().ok()?.as_ref().to_vec());
    Some((public_key.as_ref().to_vec(), private_key))
}

fn encapsulate_to(public_key: &[u8]) -> Option<Encapsulated> {
    let key = EncapsulationKey::new(&ML_KEM_768, public_key).ok()?;
    let (ciphertext, secret) = key.encapsulate().ok()?;
    Some((ciphertext.as_ref().to_vec(), Secret32::from_slice(secret.as_ref())?))
}

fn decapsulate_by(private_key: &[u8], ciphertext: &[u8]) -> Option<Secret32> {
    let key = DecapsulationKey::new(&ML_KEM_768, private_key).ok()?;
    let secret = key.decapsulate(Ciphertext::from(ciphertext)).ok()?;
    Secret32::from_slice(secret.as_ref())
}
