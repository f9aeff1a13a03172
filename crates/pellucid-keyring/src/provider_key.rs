//! A private key that a plugin has: asked for each signature, and for each wrapped key once in a process.

use std::sync::Mutex;

use aws_lc_rs::digest;
use pellucid::certificate::{KeyPlace, PrivateKey};
use pellucid::error::{Error, Result, Subject};
use pellucid::secret::Secret32;
use pellucid_plugin::Plugin;
use zeroize::Zeroizing;

/// How many opened keys a process remembers: opening a database again asks nobody.
const REMEMBERED: usize = 64;

/// SHA-256 of what was decrypted, with the place and the label, and what came out.
type Opened = ([u8; 32], Secret32);

/// The keys that were opened last, the newest at the end.
static OPENED: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

/// A private key at its place.
#[derive(Debug)]
pub(super) struct ProviderKey {
    place: KeyPlace,
    pin: Pin,
}

/// What the place wants before it answers.
pub(super) enum Pin {
    /// Nothing that the keyring knows.
    None,
    /// This.
    Known(Zeroizing<String>),
    /// It must not be asked, for this reason.
    Refused(Error),
}

impl std::fmt::Debug for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pin")
    }
}

impl ProviderKey {
    pub(super) fn new(place: KeyPlace, pin: Pin) -> Self {
        Self { place, pin }
    }

    fn plugin(&self) -> Result<Plugin> {
        let plugin = Plugin::find(self.place.provider())?;
        match &self.pin {
            Pin::None => Ok(plugin),
            Pin::Known(pin) => Ok(plugin.with_pin(pin)),
            Pin::Refused(error) => {
                Err(Error::missing_key(Subject::Key("provider key"), error.to_string()))
            }
        }
    }
}

impl PrivateKey for ProviderKey {
    fn place(&self) -> &KeyPlace {
        &self.place
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        self.plugin()?.sign(self.place.key(), message)
    }

    fn decrypt(&self, wrapped: &[u8], label: &[u8]) -> Result<Secret32> {
        let plugin = self.plugin()?;
        let identity = self.identity(wrapped, label);
        // Nobody waits for another one's plugin: what two open at once is asked for twice.
        let known = {
            let opened = OPENED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            opened.iter().find(|(known, _)| *known == identity).map(|(_, key)| key.clone())
        };
        if let Some(key) = known {
            return Ok(key);
        }
        let plaintext = plugin.decrypt(self.place.key(), label, wrapped)?;
        let key = Secret32::from_slice(&plaintext).ok_or_else(|| {
            Error::unauthentic(Subject::Key("provider key"), "what it decrypts is no key")
        })?;
        let mut opened = OPENED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if opened.len() == REMEMBERED {
            opened.remove(0);
        }
        opened.push((identity, key.clone()));
        Ok(key)
    }
}

impl ProviderKey {
    fn identity(&self, wrapped: &[u8], label: &[u8]) -> [u8; 32] {
        let mut context = digest::Context::new(&digest::SHA256);
        let pin = match &self.pin {
            Pin::Known(pin) => pin.as_bytes(),
            Pin::None | Pin::Refused(_) => b"",
        };
        for part in
            [self.place.provider().as_bytes(), self.place.key().as_bytes(), pin, label, wrapped]
        {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut identity = [0; 32];
        identity.copy_from_slice(context.finish().as_ref());
        identity
    }
}
