//! AEGIS-256X4 (draft-irtf-cfrg-aegis-aead) with tags of 128 bits: libaegis, of which only sealing and opening are built.
//!
//! It picks the implementation for the processor that it runs on. The one for processors without AES instructions is
//! bit-sliced: no branch and no address in it depends on keys or content. It knows nothing of units, places and nonces;
//! the crate `pellucid` does.

use std::fmt;
use std::sync::OnceLock;

use zeroize::Zeroize;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 32;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

type Seal = unsafe extern "C" fn(
    ciphertext: *mut u8,
    tag: *mut u8,
    plaintext: *const u8,
    plaintext_bytes: usize,
    aad: *const u8,
    aad_bytes: usize,
    nonce: *const u8,
    key: *const u8,
);
type Open = unsafe extern "C" fn(
    plaintext: *mut u8,
    ciphertext: *const u8,
    ciphertext_bytes: usize,
    tag: *const u8,
    aad: *const u8,
    aad_bytes: usize,
    nonce: *const u8,
    key: *const u8,
) -> i32;
#[cfg(feature = "sabotage")]
type OpenUnchecked = unsafe extern "C" fn(
    plaintext: *mut u8,
    ciphertext: *const u8,
    ciphertext_bytes: usize,
    aad: *const u8,
    aad_bytes: usize,
    nonce: *const u8,
    key: *const u8,
);

/// An implementation of AEGIS-256X4. All give the same bytes.
#[derive(Clone, Copy)]
pub struct Implementation {
    name: &'static str,
    seal: Seal,
    open: Open,
    #[cfg(feature = "sabotage")]
    open_unchecked: OpenUnchecked,
}

macro_rules! implementation {
    ($name:literal, $seal:ident, $open:ident, $unchecked:ident) => {{
        extern "C" {
            fn $seal(
                ciphertext: *mut u8,
                tag: *mut u8,
                plaintext: *const u8,
                plaintext_bytes: usize,
                aad: *const u8,
                aad_bytes: usize,
                nonce: *const u8,
                key: *const u8,
            );
            fn $open(
                plaintext: *mut u8,
                ciphertext: *const u8,
                ciphertext_bytes: usize,
                tag: *const u8,
                aad: *const u8,
                aad_bytes: usize,
                nonce: *const u8,
                key: *const u8,
            ) -> i32;
            #[cfg(feature = "sabotage")]
            fn $unchecked(
                plaintext: *mut u8,
                ciphertext: *const u8,
                ciphertext_bytes: usize,
                aad: *const u8,
                aad_bytes: usize,
                nonce: *const u8,
                key: *const u8,
            );
        }
        Implementation {
            name: $name,
            seal: $seal,
            open: $open,
            #[cfg(feature = "sabotage")]
            open_unchecked: $unchecked,
        }
    }};
}

impl Implementation {
    /// Those that this processor can run, the fastest first. The last is the one without AES instructions.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::with_capacity(4);
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let vaes = has!("aes") && has!("vaes");
            if vaes && has!("avx512f") && has!("avx512vl") {
                all.push(implementation!(
                    "VAES and AVX-512",
                    pellucid_aegis_avx512_seal,
                    pellucid_aegis_avx512_open,
                    pellucid_aegis_avx512_open_unchecked
                ));
            }
            if vaes && has!("avx2") {
                all.push(implementation!(
                    "VAES and AVX2",
                    pellucid_aegis_avx2_seal,
                    pellucid_aegis_avx2_open,
                    pellucid_aegis_avx2_open_unchecked
                ));
            }
            if has!("aes") && has!("avx") {
                all.push(implementation!(
                    "AES-NI",
                    pellucid_aegis_aesni_seal,
                    pellucid_aegis_aesni_open,
                    pellucid_aegis_aesni_open_unchecked
                ));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("aes") {
            all.push(implementation!(
                "NEON and AES",
                pellucid_aegis_neon_seal,
                pellucid_aegis_neon_open,
                pellucid_aegis_neon_open_unchecked
            ));
        }
        all.push(implementation!(
            "software",
            pellucid_aegis_soft_seal,
            pellucid_aegis_soft_open,
            pellucid_aegis_soft_open_unchecked
        ));
        all
    }

    /// The fastest that this processor can run.
    pub fn best() -> Self {
        static BEST: OnceLock<Implementation> = OnceLock::new();
        *BEST.get_or_init(|| Self::all()[0])
    }

    /// The instructions that it takes, or `software`.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Debug for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Implementation({})", self.name)
    }
}

/// The error of a tag that does not match, or of lengths that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAuthentic;

/// The error of a ciphertext that is not as long as its plaintext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthsDiffer;

/// A key, wiped when it is dropped. It is boxed, so that moving it leaves no copy behind.
pub struct Key {
    bytes: Box<[u8; KEY_BYTES]>,
    implementation: Implementation,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl Key {
    /// Takes a key for the fastest implementation. `None` if it does not have [`KEY_BYTES`].
    pub fn new(key: &[u8]) -> Option<Self> {
        Self::with(Implementation::best(), key)
    }

    /// Takes a key for an implementation, which tests and measurements choose.
    pub fn with(implementation: Implementation, key: &[u8]) -> Option<Self> {
        let mut bytes = Box::new([0; KEY_BYTES]);
        if key.len() != KEY_BYTES {
            return None;
        }
        bytes.copy_from_slice(key);
        Some(Self { bytes, implementation })
    }

    /// Seals `plaintext` into `ciphertext` and returns the tag. A nonce serves one plaintext under one key: two under the
    /// same give away the difference of the first 64 bytes in which they differ, and forgeries.
    ///
    /// # Errors
    /// [`LengthsDiffer`]; nothing is written then.
    pub fn seal(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        plaintext: &[u8],
        ciphertext: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], LengthsDiffer> {
        if plaintext.len() != ciphertext.len() {
            return Err(LengthsDiffer);
        }
        let mut tag = [0; TAG_BYTES];
        // SAFETY: each pointer and length is of one slice or array of this call, the two texts are equally long and do not
        // overlap, because one is borrowed mutably. `all` has only implementations whose instructions the processor has.
        unsafe {
            (self.implementation.seal)(
                ciphertext.as_mut_ptr(),
                tag.as_mut_ptr(),
                plaintext.as_ptr(),
                plaintext.len(),
                aad.as_ptr(),
                aad.len(),
                nonce.as_ptr(),
                self.bytes.as_ptr(),
            );
        }
        Ok(tag)
    }

    /// Seals `data` in place and returns the tag; see [`Key::seal`].
    pub fn seal_in_place(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        data: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let (mut tag, text) = ([0; TAG_BYTES], data.as_mut_ptr());
        // SAFETY: as in `seal`. libaegis takes each block before it writes the same bytes, so the texts may be one; both
        // pointers come from the same mutable borrow.
        unsafe {
            (self.implementation.seal)(
                text,
                tag.as_mut_ptr(),
                text,
                data.len(),
                aad.as_ptr(),
                aad.len(),
                nonce.as_ptr(),
                self.bytes.as_ptr(),
            );
        }
        tag
    }

    /// Opens `ciphertext` into `plaintext`.
    ///
    /// # Errors
    /// [`NotAuthentic`] if the tag does not match or the lengths differ; `plaintext` is zeroed then.
    pub fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_BYTES],
        plaintext: &mut [u8],
    ) -> Result<(), NotAuthentic> {
        if plaintext.len() != ciphertext.len() {
            plaintext.fill(0);
            return Err(NotAuthentic);
        }
        // SAFETY: as in `seal`.
        let wrong = unsafe {
            (self.implementation.open)(
                plaintext.as_mut_ptr(),
                ciphertext.as_ptr(),
                ciphertext.len(),
                tag.as_ptr(),
                aad.as_ptr(),
                aad.len(),
                nonce.as_ptr(),
                self.bytes.as_ptr(),
            )
        };
        match wrong {
            0 => Ok(()),
            _ => {
                plaintext.fill(0);
                Err(NotAuthentic)
            }
        }
    }

    /// Opens without a look at the tag, for tests that take authentication away.
    ///
    /// # Errors
    /// [`LengthsDiffer`].
    #[cfg(feature = "sabotage")]
    pub fn open_unchecked(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        ciphertext: &[u8],
        plaintext: &mut [u8],
    ) -> Result<(), LengthsDiffer> {
        if plaintext.len() != ciphertext.len() {
            return Err(LengthsDiffer);
        }
        // SAFETY: as in `seal`.
        unsafe {
            (self.implementation.open_unchecked)(
                plaintext.as_mut_ptr(),
                ciphertext.as_ptr(),
                ciphertext.len(),
                aad.as_ptr(),
                aad.len(),
                nonce.as_ptr(),
                self.bytes.as_ptr(),
            );
        }
        Ok(())
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
    ) -> Result<(), NotAuthentic> {
        let text = data.as_mut_ptr();
        // SAFETY: as in `seal_in_place`.
        let wrong = unsafe {
            (self.implementation.open)(
                text,
                text,
                data.len(),
                tag.as_ptr(),
                aad.as_ptr(),
                aad.len(),
                nonce.as_ptr(),
                self.bytes.as_ptr(),
            )
        };
        match wrong {
            0 => Ok(()),
            _ => {
                data.fill(0);
                Err(NotAuthentic)
            }
        }
    }
}
