//! Authenticated encryption of one unit: a page, a frame, a record, a block.
//!
//! Layout: docs/format.md, "Sealed unit". It does not choose keys, nonces or AAD: [`crate::keys`]
//! and [`crate::unit`] do. The nonce has to be unique for each use of one key; the AAD binds the
//! place of the unit.

use std::fmt;

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_128_GCM, AES_192_GCM, AES_256_GCM};
#[allow(deprecated)]
// offered on purpose, for parity with old systems; see Algorithm::is_deprecated
use aws_lc_rs::cipher::{
    DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
    DES_EDE3_FOR_LEGACY_USE_ONLY,
};
use aws_lc_rs::{constant_time, hkdf, hmac};
use zeroize::Zeroizing;

use crate::algorithm::Algorithm;
use crate::error::{Error, Result, Subject};
use crate::nonce::UnitNonce;

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 12;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

const DES_BLOCK_BYTES: usize = 8;

/// A key that seals and opens units under one algorithm.
pub struct Cipher(Inner);

enum Inner {
    Gcm(Box<LessSafeKey>),
    /// Content in clear. Its tag is that of an empty plaintext with the content as AAD.
    Plain(Box<LessSafeKey>),
    /// The root from which each single seal derives its keys, see [`TripleDesKeys::derive`].
    TripleDes(Box<hkdf::Prk>),
    /// It seals units alone: its nonce has the unit's place.
    Aegis(pellucid_aegis::Key),
}

/// The error of a tag that does not match or a length that no cipher takes. It deliberately says
/// nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAuthentic;

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Inner::Gcm(_) => "Cipher::Gcm(..)",
            Inner::Plain(_) => "Cipher::Plain(..)",
            Inner::TripleDes(_) => "Cipher::TripleDes(..)",
            Inner::Aegis(_) => "Cipher::Aegis(..)",
        })
    }
}

impl Cipher {
    /// Bytes of the key that `algorithm` takes.
    pub const fn key_bytes(algorithm: Algorithm) -> usize {
        match algorithm {
            Algorithm::Aes128 => 16,
            Algorithm::Aes192 => 24,
            Algorithm::Aes256 | Algorithm::TripleDes3Key | Algorithm::Aegis256 => 32,
        }
    }

    /// Makes a cipher from exactly [`Cipher::key_bytes`] bytes of key.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the length is another.
    pub fn new(algorithm: Algorithm, key: &[u8]) -> Result<Self> {
        let misuse = || Error::misuse(Subject::Key("generation key"), "wrong length");
        if key.len() != Self::key_bytes(algorithm) {
            return Err(misuse());
        }
        let gcm = match algorithm {
            Algorithm::Aes128 => &AES_128_GCM,
            Algorithm::Aes192 => &AES_192_GCM,
            Algorithm::Aes256 => &AES_256_GCM,
            Algorithm::TripleDes3Key => {
                let prk = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, key);
                return Ok(Self(Inner::TripleDes(Box::new(prk))));
            }
            Algorithm::Aegis256 => {
                return pellucid_aegis::Key::new(key).map(Inner::Aegis).map(Self).ok_or_else(misuse)
            }
        };
        let key = UnboundKey::new(gcm, key).map_err(|_| misuse())?;
        Ok(Self(Inner::Gcm(Box::new(LessSafeKey::new(key)))))
    }

    /// Makes a cipher that leaves content in clear and gives it a tag: AES-256-GCM of an empty
    /// plaintext, with AAD and content as its AAD. It is for databases that are switched to
    /// unencrypted, and nothing else.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the key does not have 32 bytes.
    pub fn plain(key: &[u8]) -> Result<Self> {
        let misuse = |_| Error::misuse(Subject::Key("generation key"), "wrong length");
        let key = UnboundKey::new(&AES_256_GCM, key).map_err(misuse)?;
        Ok(Self(Inner::Plain(Box::new(LessSafeKey::new(key)))))
    }

    /// Seals `plaintext` of a unit into `ciphertext` of the same length and `tag`.
    ///
    /// # Errors
    /// As [`Cipher::seal`].
    pub fn seal_unit(
        &self,
        nonce: &UnitNonce,
        aad: &[u8],
        plaintext: &[u8],
        ciphertext: &mut [u8],
        tag: &mut [u8; TAG_BYTES],
    ) -> Result<()> {
        match &self.0 {
            Inner::Aegis(key) => {
                *tag = key
                    .seal(&nonce.aegis(), aad, plaintext, ciphertext)
                    .map_err(|_| Error::misuse(Subject::Container, "cipher refused to seal"))?;
                Ok(())
            }
            _ => self.seal(&nonce.drawn, aad, plaintext, ciphertext, tag),
        }
    }

    /// Opens `ciphertext` of a unit into `plaintext` of the same length.
    ///
    /// # Errors
    /// [`NotAuthentic`]; `plaintext` is zeroed then.
    pub fn open_unit(
        &self,
        nonce: &UnitNonce,
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_BYTES],
        plaintext: &mut [u8],
    ) -> std::result::Result<(), NotAuthentic> {
        match &self.0 {
            #[cfg(feature = "sabotage")]
            Inner::Aegis(key) if is_sabotaged() => key
                .open_unchecked(&nonce.aegis(), aad, ciphertext, plaintext)
                .map_err(|_| NotAuthentic),
            Inner::Aegis(key) => {
                key.open(&nonce.aegis(), aad, ciphertext, tag, plaintext).map_err(|_| NotAuthentic)
            }
            _ => self.open(&nonce.drawn, aad, ciphertext, tag, plaintext),
        }
    }

    /// Opens `data` of a unit in place.
    ///
    /// # Errors
    /// [`NotAuthentic`]; `data` is zeroed then.
    pub fn open_unit_in_place(
        &self,
        nonce: &UnitNonce,
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> std::result::Result<(), NotAuthentic> {
        match &self.0 {
            #[cfg(feature = "sabotage")]
            Inner::Aegis(key) if is_sabotaged() => {
                let sealed = data.to_vec();
                key.open_unchecked(&nonce.aegis(), aad, &sealed, data).map_err(|_| NotAuthentic)
            }
            Inner::Aegis(key) => {
                key.open_in_place(&nonce.aegis(), aad, data, tag).map_err(|_| NotAuthentic)
            }
            _ => self.open_in_place(&nonce.drawn, aad, data, tag),
        }
    }

    /// Seals `plaintext` into `ciphertext` of the same length and `tag`. AEGIS_256 seals units alone
    /// ([`Cipher::seal_unit`]).
    ///
    /// # Errors
    /// [`Error::Misuse`] on lengths that differ or a cipher that refuses; outputs are then meaningless.
    pub fn seal(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        plaintext: &[u8],
        ciphertext: &mut [u8],
        tag: &mut [u8; TAG_BYTES],
    ) -> Result<()> {
        let misuse = || Error::misuse(Subject::Container, "cipher refused to seal");
        match &self.0 {
            Inner::Gcm(key) => key
                .seal_out_of_place_scatter(
                    Nonce::assume_unique_for_key(*nonce),
                    Aad::from(aad),
                    plaintext,
                    ciphertext,
                    &[],
                    tag,
                )
                .map_err(|_| misuse()),
            Inner::Plain(key) => {
                if ciphertext.len() != plaintext.len() {
                    return Err(misuse());
                }
                let aad = Aad::from([aad, plaintext].concat());
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let made =
                    key.seal_in_place_separate_tag(nonce, aad, &mut []).map_err(|_| misuse())?;
                tag.copy_from_slice(made.as_ref());
                ciphertext.copy_from_slice(plaintext);
                Ok(())
            }
            Inner::TripleDes(prk) => {
                if ciphertext.len() != plaintext.len() {
                    return Err(misuse());
                }
                let keys = TripleDesKeys::derive(prk, nonce).map_err(|_| misuse())?;
                ciphertext.copy_from_slice(plaintext);
                keys.encrypt(ciphertext).map_err(|_| misuse())?;
                tag.copy_from_slice(&keys.tag(aad, ciphertext));
                Ok(())
            }
            Inner::Aegis(_) => Err(misuse()),
        }
    }

    /// Seals `data` in place and returns its tag.
    ///
    /// # Errors
    /// As [`Cipher::seal`]; `data` is meaningless then.
    pub fn seal_in_place(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<[u8; TAG_BYTES]> {
        let misuse = || Error::misuse(Subject::Container, "cipher refused to seal");
        match &self.0 {
            Inner::Gcm(key) => {
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let tag = key
                    .seal_in_place_separate_tag(nonce, Aad::from(aad), data)
                    .map_err(|_| misuse())?;
                tag.as_ref().try_into().map_err(|_| misuse())
            }
            _ => {
                let (plain, mut tag) = (Zeroizing::new(data.to_vec()), [0; TAG_BYTES]);
                self.seal(nonce, aad, &plain, data, &mut tag)?;
                Ok(tag)
            }
        }
    }

    /// Opens `data` in place.
    ///
    /// # Errors
    /// [`NotAuthentic`]; `data` is zeroed then.
    pub fn open_in_place(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> std::result::Result<(), NotAuthentic> {
        let opened = match &self.0 {
            #[cfg(feature = "sabotage")]
            Inner::Gcm(key) if is_sabotaged() => unmask(key, nonce, data),
            Inner::Gcm(key) => {
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let opened = key.open_in_place_separate_tag(nonce, Aad::from(aad), tag, data);
                opened.map(|_| ()).map_err(|_| NotAuthentic)
            }
            Inner::Plain(key) => check_plain(key, nonce, aad, data, tag),
            Inner::TripleDes(prk) => open_triple_des(prk, nonce, aad, data, tag),
            Inner::Aegis(_) => Err(NotAuthentic),
        };
        if opened.is_err() {
            data.fill(0);
        }
        opened
    }

    /// Opens `ciphertext` into `plaintext` of the same length.
    ///
    /// # Errors
    /// [`NotAuthentic`]; `plaintext` is zeroed then.
    pub fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_BYTES],
        plaintext: &mut [u8],
    ) -> std::result::Result<(), NotAuthentic> {
        if ciphertext.len() != plaintext.len() {
            plaintext.fill(0);
            return Err(NotAuthentic);
        }
        match &self.0 {
            Inner::Gcm(key) if !is_sabotaged() => {
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let aad = Aad::from(aad);
                let opened = key.open_separate_gather(nonce, aad, ciphertext, tag, plaintext);
                opened.map_err(|_| {
                    plaintext.fill(0);
                    NotAuthentic
                })
            }
            _ => {
                plaintext.copy_from_slice(ciphertext);
                self.open_in_place(nonce, aad, plaintext, tag)
            }
        }
    }
}

/// Whether a test has switched authentication off.
#[cfg(feature = "sabotage")]
fn is_sabotaged() -> bool {
    crate::sabotage::Sabotage::Authentication.is_on()
}

#[cfg(not(feature = "sabotage"))]
const fn is_sabotaged() -> bool {
    false
}

/// Opens without authentication: GCM's counter mode alone (NIST SP 800-38D, 7.2), which goes the same
/// way in both directions.
#[cfg(feature = "sabotage")]
fn unmask(
    key: &LessSafeKey,
    nonce: &[u8; NONCE_BYTES],
    data: &mut [u8],
) -> std::result::Result<(), NotAuthentic> {
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let sealed = key.seal_in_place_separate_tag(nonce, Aad::empty(), data);
    sealed.map(|_| ()).map_err(|_| NotAuthentic)
}

fn check_plain(
    key: &LessSafeKey,
    nonce: &[u8; NONCE_BYTES],
    aad: &[u8],
    content: &[u8],
    tag: &[u8; TAG_BYTES],
) -> std::result::Result<(), NotAuthentic> {
    if is_sabotaged() {
        return Ok(());
    }
    let aad = Aad::from([aad, content].concat());
    let nonce = Nonce::assume_unique_for_key(*nonce);
    key.open_separate_gather(nonce, aad, &[], tag, &mut []).map_err(|_| NotAuthentic)
}

fn open_triple_des(
    prk: &hkdf::Prk,
    nonce: &[u8; NONCE_BYTES],
    aad: &[u8],
    data: &mut [u8],
    tag: &[u8; TAG_BYTES],
) -> std::result::Result<(), NotAuthentic> {
    let keys = TripleDesKeys::derive(prk, nonce)?;
    if !is_sabotaged() {
        constant_time::verify_slices_are_equal(&keys.tag(aad, data), tag)
            .map_err(|_| NotAuthentic)?;
    }
    keys.decrypt(data)
}

/// Cipher key, IV and MAC key of one single seal, so that no two seals share a 64-bit block key
/// (Sweet32, CVE-2016-2183).
struct TripleDesKeys(Zeroizing<[u8; TripleDesKeys::BYTES]>);

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl TripleDesKeys {
    const BYTES: usize = 24 + DES_BLOCK_BYTES + 32;

    fn derive(prk: &hkdf::Prk, nonce: &[u8]) -> std::result::Result<Self, NotAuthentic> {
        let mut keys = Zeroizing::new([0; Self::BYTES]);
        let info = [b"pellucid/1 triple-des".as_slice(), nonce];
        prk.expand(&info, Length(Self::BYTES))
            .and_then(|okm| okm.fill(&mut keys[..]))
            .map_err(|_| NotAuthentic)?;
        Ok(Self(keys))
    }

    #[allow(deprecated)]
    fn block_key(&self) -> std::result::Result<UnboundCipherKey, NotAuthentic> {
        UnboundCipherKey::new(&DES_EDE3_FOR_LEGACY_USE_ONLY, &self.0[..24])
            .map_err(|_| NotAuthentic)
    }

    fn iv(&self) -> [u8; DES_BLOCK_BYTES] {
        let mut iv = [0; DES_BLOCK_BYTES];
        iv.copy_from_slice(&self.0[24..32]);
        iv
    }

    fn tag(&self, aad: &[u8], ciphertext: &[u8]) -> [u8; TAG_BYTES] {
        let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0[32..]));
        mac.update(&(aad.len() as u64).to_be_bytes());
        mac.update(aad);
        mac.update(ciphertext);
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&mac.sign().as_ref()[..TAG_BYTES]);
        tag
    }

    /// CBC in place; a rest shorter than a block is XORed with the encrypted last block (residual
    /// block termination), which is sound because no key and IV serve twice.
    fn encrypt(&self, data: &mut [u8]) -> std::result::Result<(), NotAuthentic> {
        let whole = data.len() - data.len() % DES_BLOCK_BYTES;
        let (blocks, rest) = data.split_at_mut(whole);
        self.cbc_encrypt(self.iv(), blocks)?;
        let last = last_block(blocks).unwrap_or_else(|| self.iv());
        self.mask_rest(last, rest)
    }

    fn decrypt(&self, data: &mut [u8]) -> std::result::Result<(), NotAuthentic> {
        let whole = data.len() - data.len() % DES_BLOCK_BYTES;
        let (blocks, rest) = data.split_at_mut(whole);
        let last = last_block(blocks).unwrap_or_else(|| self.iv());
        self.mask_rest(last, rest)?;
        if blocks.is_empty() {
            return Ok(());
        }
        let key = DecryptingKey::cbc(self.block_key()?).map_err(|_| NotAuthentic)?;
        key.decrypt(blocks, DecryptionContext::Iv64(self.iv().into())).map_err(|_| NotAuthentic)?;
        Ok(())
    }

    fn cbc_encrypt(
        &self,
        iv: [u8; DES_BLOCK_BYTES],
        blocks: &mut [u8],
    ) -> std::result::Result<(), NotAuthentic> {
        if blocks.is_empty() {
            return Ok(());
        }
        let key = EncryptingKey::cbc(self.block_key()?).map_err(|_| NotAuthentic)?;
        key.less_safe_encrypt(blocks, EncryptionContext::Iv64(iv.into()))
            .map_err(|_| NotAuthentic)?;
        Ok(())
    }

    fn mask_rest(
        &self,
        last: [u8; DES_BLOCK_BYTES],
        rest: &mut [u8],
    ) -> std::result::Result<(), NotAuthentic> {
        if rest.is_empty() {
            return Ok(());
        }
        let mut mask = [0; DES_BLOCK_BYTES];
        self.cbc_encrypt(last, &mut mask)?;
        rest.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        Ok(())
    }
}

fn last_block(blocks: &[u8]) -> Option<[u8; DES_BLOCK_BYTES]> {
    blocks.rchunks_exact(DES_BLOCK_BYTES).next().and_then(|b| b.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cipher(algorithm: Algorithm) -> Cipher {
        Cipher::new(algorithm, &vec![7; Cipher::key_bytes(algorithm)]).unwrap()
    }

    fn nonce(byte: u8) -> UnitNonce {
        UnitNonce { drawn: [byte; 12], generation: 1, kind: 1, position: 7 }
    }

    #[test]
    fn every_algorithm_round_trips_every_length_and_refuses_every_flipped_bit() {
        for algorithm in Algorithm::ALL {
            let cipher = cipher(algorithm);
            for length in [0, 1, 7, 8, 9, 28, 480, 484, 4064] {
                let plain: Vec<u8> = (0..length).map(|i| i as u8).collect();
                let (mut sealed, mut tag) = (vec![0; length], [0; TAG_BYTES]);
                cipher.seal_unit(&nonce(3), b"place", &plain, &mut sealed, &mut tag).unwrap();
                if length >= 8 {
                    assert_ne!(plain, sealed, "{algorithm} {length}");
                }
                let mut opened = vec![1; length];
                cipher.open_unit(&nonce(3), b"place", &sealed, &tag, &mut opened).unwrap();
                assert_eq!(plain, opened, "{algorithm} {length}");
                opened.copy_from_slice(&sealed);
                cipher.open_unit_in_place(&nonce(3), b"place", &mut opened, &tag).unwrap();
                assert_eq!(plain, opened, "{algorithm} {length}, in place");
                assert!(cipher
                    .open_unit(&nonce(3), b"plaice", &sealed, &tag, &mut opened)
                    .is_err());
                assert!(cipher.open_unit(&nonce(4), b"place", &sealed, &tag, &mut opened).is_err());
                if length == 28 {
                    for bit in 0..length * 8 {
                        sealed[bit / 8] ^= 1 << (bit % 8);
                        assert!(cipher
                            .open_unit(&nonce(3), b"place", &sealed, &tag, &mut opened)
                            .is_err());
                        assert!(opened.iter().all(|b| *b == 0), "plaintext handed out");
                        opened.copy_from_slice(&sealed);
                        assert!(cipher
                            .open_unit_in_place(&nonce(3), b"place", &mut opened, &tag)
                            .is_err());
                        assert!(opened.iter().all(|b| *b == 0), "plaintext handed out in place");
                        sealed[bit / 8] ^= 1 << (bit % 8);
                    }
                }
            }
        }
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        for algorithm in Algorithm::ALL {
            assert!(Cipher::new(algorithm, &[0; 31]).is_err());
        }
    }

    #[test]
    fn each_part_of_a_units_place_is_in_the_nonce_of_aegis() {
        let of = UnitNonce {
            drawn: [9; 12],
            generation: 0x0102_0304,
            kind: 3,
            position: 0x1122_3344_5566_7788,
        };
        let expected: [u8; 32] = [
            9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 3, 0, 0, 0, 0x11, 0x22, 0x33, 0x44,
            0x55, 0x66, 0x77, 0x88, 0, 0, 0, 0,
        ];
        assert_eq!(of.aegis(), expected);
    }

    #[test]
    fn aegis_seals_nothing_whose_place_is_not_known() {
        let cipher = cipher(Algorithm::Aegis256);
        let (mut text, mut tag) = ([1; 8], [0; TAG_BYTES]);
        assert!(cipher.seal(&[3; 12], &[], &[0; 8], &mut text, &mut tag).is_err());
        assert!(cipher.seal_in_place(&[3; 12], &[], &mut text).is_err());
        assert!(cipher.open(&[3; 12], &[], &[0; 8], &tag, &mut text).is_err());
        assert_eq!(text, [0; 8]);
    }
}
