//! A DEK under a passphrase, stretched by Argon2id (RFC 9106).

use std::fmt;

use argon2::{Algorithm as Argon2Kind, Argon2, Params, Version};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::missing::{Closed, Missing};
use super::{unwrap_symmetric, wrap_symmetric, Binding, Wrapped, TYPE_PASSPHRASE};
use crate::error::{Error, Result, Subject};
use crate::message;
use crate::secret::{fill_random, Dek, Secret32};

const SALT_BYTES: usize = 16;
/// SQL Server's policy asks for eight characters; what stretches them makes more of it than rules about their kinds.
pub const PASSPHRASE_CHARS_LEAST: usize = 8;
/// The most that anybody may ask for: 1 GiB, 16 passes, 16 lanes. What an untrusted file may is less ([`super::Budget`]).
const MOST_KIB: u32 = 1 << 20;
/// The most passes that an untrusted header may ask for.
const MOST_PASSES: u32 = 16;
/// The most lanes that an untrusted header may ask for.
const MOST_LANES: u32 = 16;

/// A passphrase, zeroized on drop.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Passphrase(Vec<u8>);

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

impl Passphrase {
    /// Makes a passphrase of `bytes` without the line end behind them.
    pub fn new(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        Self(bytes.strip_suffix(b"\r").unwrap_or(bytes).to_vec())
    }

    /// Whether the passphrase has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses a new passphrase or password that guessing would find, whatever it is to protect. One
    /// that is in use already opens as before.
    ///
    /// # Errors
    /// Message 33062.
    pub fn check_new(&self) -> Result<()> {
        let chars = match std::str::from_utf8(&self.0) {
            Ok(text) => text.chars().count(),
            Err(_) => self.0.len(),
        };
        match chars >= PASSPHRASE_CHARS_LEAST {
            true => Ok(()),
            false => {
                let least = PASSPHRASE_CHARS_LEAST.to_string();
                Err(Error::message(message::PASSWORD_TOO_SHORT, &least))
            }
        }
    }

    /// Returns the bytes, for a derivation only.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Returns a value that distinguishes passphrases within this process and does not contain one.
    pub fn identity(&self) -> [u8; 32] {
        crate::secret::identity(&self.0)
    }
}

/// The cost of Argon2id for one guess of a passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argon2Cost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Lanes, which can be computed at the same time.
    pub lanes: u32,
}

impl Default for Argon2Cost {
    /// Returns the second recommended option of RFC 9106, 4: 64 MiB, 3 passes, 4 lanes.
    fn default() -> Self {
        Self { memory_kib: 64 * 1024, passes: 3, lanes: 4 }
    }
}

impl fmt::Display for Argon2Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Argon2id, {} MiB, {} passes", self.memory_kib / 1024, self.passes)
    }
}

impl Argon2Cost {
    /// The memory that is written, in KiB.
    pub(super) fn work_kib(self) -> u64 {
        u64::from(self.memory_kib) * u64::from(self.passes)
    }

    /// Refuses, before any work, a cost above the limits, which would take memory or hours, and a cost
    /// that Argon2id does not allow.
    fn check(self) -> Result<Self> {
        let above =
            self.memory_kib > MOST_KIB || self.passes > MOST_PASSES || self.lanes > MOST_LANES;
        let below =
            self.passes == 0 || self.lanes == 0 || self.memory_kib < self.lanes.saturating_mul(8);
        if above || below {
            return Err(Error::unsupported(
                Subject::Container,
                format!(
                    "a passphrase protector asks for {} KiB, {} passes, {} lanes of Argon2id; at \
                     most {MOST_KIB}, {MOST_PASSES}, {MOST_LANES} are allowed",
                    self.memory_kib, self.passes, self.lanes
                ),
            ));
        }
        Ok(self)
    }

    /// Derives the KEK from a passphrase.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a cost outside the limits.
    pub fn stretch(self, passphrase: &Passphrase, salt: &[u8; SALT_BYTES]) -> Result<Secret32> {
        let cost = self.check()?;
        let refused = || Error::unsupported(Subject::Container, "Argon2id refuses its parameters");
        let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(32))
            .map_err(|_| refused())?;
        let mut kek = Zeroizing::new([0u8; 32]);
        Argon2::new(Argon2Kind::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.expose(), salt, &mut kek[..])
            .map_err(|_| refused())?;
        Ok(Secret32::new(&mut kek))
    }
}

/// The payload of a passphrase protector: cost, salt, wrapped DEK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassphraseProtector {
    cost: Argon2Cost,
    salt: [u8; SALT_BYTES],
    wrapped: Wrapped,
}

impl PassphraseProtector {
    pub(super) fn wrap(
        dek: &Dek,
        binding: &Binding<'_>,
        passphrase: &Passphrase,
        cost: Argon2Cost,
    ) -> Result<Self> {
        let mut salt = [0; SALT_BYTES];
        fill_random(&mut salt)?;
        let kek = cost.stretch(passphrase, &salt)?;
        let wrapped = wrap_symmetric(&kek, TYPE_PASSPHRASE, binding, dek)?;
        Ok(Self { cost, salt, wrapped })
    }

    pub(super) fn unwrap(
        &self,
        binding: &Binding<'_>,
        passphrases: &[Passphrase],
    ) -> std::result::Result<Dek, Closed> {
        self.cost.check()?;
        for passphrase in passphrases {
            let kek = self.cost.stretch(passphrase, &self.salt)?;
            if let Some(dek) = unwrap_symmetric(&kek, TYPE_PASSPHRASE, binding, &self.wrapped) {
                return Ok(dek);
            }
        }
        Err(Closed::Missing(match passphrases {
            [] => Missing::Passphrase,
            _ => Missing::WrongPassphrase,
        }))
    }

    /// Refuses a cost above all limits.
    pub(super) fn check_cost(&self) -> Result<()> {
        self.cost.check().map(|_| ())
    }

    /// Returns the cost of one guess.
    pub fn cost(&self) -> Argon2Cost {
        self.cost
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(12 + SALT_BYTES + self.wrapped.len());
        for number in [self.cost.memory_kib, self.cost.passes, self.cost.lanes] {
            payload.extend_from_slice(&number.to_be_bytes());
        }
        payload.extend_from_slice(&self.salt);
        payload.extend_from_slice(&self.wrapped);
        payload
    }

    pub(super) fn parse(payload: &[u8]) -> Option<Self> {
        let number = |at: usize| payload.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        let cost = Argon2Cost { memory_kib: number(0)?, passes: number(4)?, lanes: number(8)? };
        let salt = payload.get(12..12 + SALT_BYTES)?.try_into().ok()?;
        let wrapped = payload.get(12 + SALT_BYTES..)?.try_into().ok()?;
        Some(Self { cost, salt, wrapped })
    }
}
